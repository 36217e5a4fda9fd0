//! Authorization over HTTP: servers as OAuth 2.1 resource servers, and clients that find the authorization server,
//! register, log in, refresh and step up by themselves. One file for each RFC.
//!
//! **Invariant**: nothing here reads a socket, a file or a clock. What has to be fetched is a [`Fetch`](fetch::Fetch)
//! that the HTTP transport carries out; what depends on the time is given it. Only the token store, which is files, has
//! files, and waits.

pub(crate) mod assertion;
pub(crate) mod dpop;
pub(crate) mod fetch;
pub(crate) mod jose;
mod secret;
mod store;

pub use jose::Algorithm;
pub use secret::Secret;
pub use store::{FileStore, MemoryStore, Reservation, TokenKey, TokenStore};
