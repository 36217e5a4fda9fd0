//! Tricorn: the Model Context Protocol, client and server, all revisions, one engine.

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

pub use error::{Error, ErrorKind, Result};

/// This crate's version, which is every language package's too.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
