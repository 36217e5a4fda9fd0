//! Tricorn: the Model Context Protocol, client and server, all revisions, one engine.

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
