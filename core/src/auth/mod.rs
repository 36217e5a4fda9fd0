//! Authorization over HTTP: servers as OAuth 2.1 resource servers, and clients that find the authorization server,
//! register, log in, refresh and step up by themselves. One file for each RFC.
//!
//! **Invariant**: nothing here reads a socket, a file or a clock. Each request is a `Fetch` that the HTTP transport
//! carries out; what depends on the time is given it. Only the token store, which is files, has files, and waits.

pub(crate) mod assertion;
pub(crate) mod authorization;
pub(crate) mod challenge;
pub(crate) mod client;
pub(crate) mod dpop;
pub(crate) mod exchange;
pub(crate) mod fetch;
pub(crate) mod flow;
pub(crate) mod jose;
pub(crate) mod login;
pub(crate) mod pkce;
pub(crate) mod refusal;
mod registration;
pub(crate) mod resource;
pub(crate) mod resource_metadata;
pub(crate) mod secret;
pub(crate) mod server_metadata;
pub(crate) mod session;
pub(crate) mod store;
pub(crate) mod token;
pub(crate) mod url;

pub use flow::AuthStep;
pub use jose::Algorithm;
pub use login::Login;
pub use resource_metadata::ResourceMetadata;
pub use secret::Secret;
#[cfg(feature = "redis")]
pub use store::RedisStore;
pub use store::{FileStore, MemoryStore, Reservation, TokenKey, TokenStore};
