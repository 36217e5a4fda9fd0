//! Tricorn: the Model Context Protocol, client and server, all revisions, one engine.
#![cfg_attr(
    not(all(feature = "http", feature = "client-process")),
    allow(dead_code, unused_imports, unused_variables, unfulfilled_lint_expectations)
)]

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
#[cfg(feature = "http")]
mod store;
mod transport;

#[cfg(feature = "runtime")]
pub use transport::connect::{Events, Quiet};
/// Streamable HTTP.
#[cfg(feature = "http")]
pub use transport::http;

pub use error::{Error, ErrorKind, Result};

/// What most programs need: `use tricorn::prelude::*;`
///
/// The derives `Deserialize`, `Serialize` and `JsonSchema` need the crates `serde` and `schemars` beside this one.
pub mod prelude {
    /// What `main` returns from [`Server::run`](crate::Server::run).
    pub use std::process::ExitCode;

    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};

    pub use crate::client::{CallOptions, Client, ClientOptions, Target};
    #[cfg(feature = "runtime")]
    pub use crate::connect;
    pub use crate::model::{CallToolResult, Content, Tool, ToolAnnotations};
    pub use crate::server::{Context, Server, ToolError};
    pub use crate::{Error, ErrorKind};
}

pub use client::Client;
pub use server::{Context, Server, ToolError};
#[cfg(feature = "runtime")]
pub use transport::connect::connect;

/// This crate's version, which is every language package's too.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
