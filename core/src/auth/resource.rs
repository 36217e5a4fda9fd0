//! A server as an OAuth 2.1 resource server: which tokens it takes, and what it says to those who bring none.
//!
//! What is decided is decided here; `transport/http/guard.rs` asks for it, fetches and answers.

pub(crate) mod bearer;
pub(crate) mod claims;
pub(crate) mod introspection;
pub(crate) mod keys;
mod options;
pub(crate) mod scopes;

pub use options::Auth;
pub(crate) use options::{Fetcher, Source};
