//! Tricorn: the Model Context Protocol, client and server, all revisions, one engine.

#[cfg(feature = "runtime")]
pub mod bridge;
pub mod client;
mod driver;
mod error;
pub mod jsonrpc;
pub mod model;
mod options;
pub mod protocol;
pub mod server;
mod signal;
mod transport;

/// Streamable HTTP.
#[cfg(feature = "http")]
pub use transport::http;
#[cfg(feature = "runtime")]
pub use transport::connect::{Events, Quiet};

pub use error::{Error, ErrorKind, Result};

/// This crate's version, which is every language package's too.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
