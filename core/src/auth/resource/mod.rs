//! A server as an OAuth 2.1 resource server: the tokens that it takes, and its answer to requests without one.
//!
//! Decisions are made here; `endpoint/http/server/guard/mod.rs` asks for them, fetches and answers.

pub(crate) mod bearer;
pub(crate) mod claims;
pub(crate) mod introspection;
pub(crate) mod keys;
mod options;
pub(crate) mod scopes;

pub use options::Auth;
pub(crate) use options::{Fetcher, Source};
