//! Streamable HTTP: the server's endpoint, the client, and the login of a person in a browser.

pub(crate) mod client;
#[cfg(feature = "auth")]
pub(crate) mod fetch;
#[cfg(feature = "auth")]
pub(crate) mod login;
pub(crate) mod network;
#[cfg(feature = "auth")]
mod reach;
pub(crate) mod server;
mod unix;

#[doc(hidden)]
pub use client::{Exchanged, Exchanges};
#[cfg(feature = "auth")]
pub use server::MetadataDocument;
pub use server::{Body, Endpoint, HttpOptions, HttpServer};
