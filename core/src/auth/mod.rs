//! Authorization over HTTP: servers as OAuth 2.1 resource servers, and clients that find the authorization server,
//! register, log in, refresh and step up by themselves. One file for each RFC.
//!
//! **Invariant**: nothing here reads a socket, a file or a clock. What has to be fetched is a [`Fetch`](fetch::Fetch)
//! that the HTTP transport carries out; what depends on the time is given it.

pub(crate) mod assertion;
pub(crate) mod dpop;
pub(crate) mod fetch;
pub(crate) mod jose;
mod secret;

pub use jose::Algorithm;
pub use secret::Secret;
