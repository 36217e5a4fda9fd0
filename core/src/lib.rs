//! Tricorn: the Model Context Protocol, client and server, all revisions, one engine.
//!
//! # A server
//!
//! ```no_run
//! use tricorn::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! #[tokio::main]
//! async fn main() -> tricorn::Result<ExitCode> {
//!     Server::new("demo")
//!         .tool("add", "Add two numbers", |Add { a, b }: Add, _: Context| async move { Ok(a + b) })
//!         .run().await
//! }
//! ```
//!
//! It serves standard streams, and Streamable HTTP when it is started with `--http`:
//! [`Server::run`](crate::Server::run). Resources, prompts and options are added in the same way.
//!
//! # A client
//!
//! ```no_run
//! use serde_json::json;
//! use tricorn::prelude::*;
//!
//! #[tokio::main]
//! async fn main() -> tricorn::Result<()> {
//!     let client = connect("https://example.com/mcp").await?; // or a command line, such as "target/debug/demo"
//!     let sum: i64 = client.call_tool("add", json!({"a": 1, "b": 2})).await?.structured_as()?;
//!     println!("{sum}");
//!     client.close().await;
//!     Ok(())
//! }
//! ```
//!
//! [`Client::connect_with`](crate::Client::connect_with) takes options, and handlers for the server's questions.
//! [`Client::in_memory`](crate::Client::in_memory) connects to a server in the same process, as tests do.
//!
//! Both programs need the crates `serde`, `schemars`, `serde_json` and `tokio` beside this one.
//!
//! # Features
//!
//! | feature | default | what it is |
//! |---|---|---|
//! | `stdio` | yes | the server's own standard streams, and child processes for the client |
//! | `http` | yes | Streamable HTTP, server and client |
//! | `auth` | yes | OAuth 2.1 over Streamable HTTP: resource servers and clients |
//! | `files` | yes | files and directories served as resources |
//! | `redis` | no | one server out of many processes, whose sessions, tasks and events are in Redis or Valkey |
//! | `keychain` | no | kept logins are sealed with a key of the desktop's keyring, on Linux and its like |
//! | `tracing` | no | events of `tracing` inside of a handler as log messages for its client |
//! | `otel` | no | requests as spans and metrics of OpenTelemetry |
//!
//! A server on standard streams needs `default-features = false, features = ["stdio"]`.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(feature = "http", feature = "stdio", feature = "files")),
    allow(dead_code, unreachable_pub, unused_imports, unused_variables, unfulfilled_lint_expectations)
)]

pub mod apps;
#[cfg(feature = "auth")]
pub mod auth;
#[cfg(feature = "runtime")]
#[doc(hidden)]
pub mod bridge;
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "what is kept beyond a message is HTTP's"))]
mod budget;
mod call;
pub mod cassette;
pub mod client;
mod driver;
mod endpoint;
mod error;
#[cfg(all(test, feature = "http", feature = "auth"))]
mod fuzz;
mod idiom;
pub mod jsonrpc;
#[cfg(feature = "runtime")]
mod loopback;
pub mod model;
mod options;
#[cfg(feature = "otel")]
pub mod otel;
pub mod protocol;
mod random;
mod report;
pub mod server;
mod signal;
#[cfg(all(test, feature = "redis"))]
mod simulated;
mod store;
#[cfg(all(any(unix, windows), feature = "runtime"))]
mod streams;
mod surface;
#[cfg(feature = "tracing")]
pub mod tracing;
mod transport;

/// Streamable HTTP.
#[cfg(feature = "http")]
pub use endpoint::http;

pub use error::{Error, ErrorKind, Result};

/// Middleware around every request of a server or of a client: your own, and the kinds that most programs need.
pub mod middleware {
    #[cfg(feature = "runtime")]
    pub use crate::call::ConcurrencyLimit;
    pub use crate::call::{Logging, MethodTiming, Middleware, Next, RateLimit, Request, RequestRecord, Timing};
}

/// Names that most programs need: `use tricorn::prelude::*;`
///
/// The derives `Deserialize`, `Serialize` and `JsonSchema` need the crates `serde` and `schemars` beside this one.
pub mod prelude {
    /// Result of `main` that [`Server::run`](crate::Server::run) returns.
    pub use std::process::ExitCode;

    pub use schemars::JsonSchema;
    pub use serde::{Deserialize, Serialize};

    pub use crate::client::{Client, ClientOptions, Handlers, Roots, Target};
    #[cfg(feature = "runtime")]
    pub use crate::client::{ClientGroup, Servers};
    #[cfg(feature = "runtime")]
    pub use crate::connect;
    pub use crate::model::{
        CallToolResult, Content, GetPromptResult, Prompt, PromptMessage, ReadResourceResult, Resource,
        ResourceContents, ResourceTemplate, TaskSupport, Tool, ToolAnnotations,
    };
    pub use crate::server::{ElicitResult, ForModel, HandlerError, Server};
    pub use crate::{CallOptions, Context, Error, ErrorKind, TaskOptions};
}

pub use call::{Answer, BoxFuture, CacheMode, CallOptions, Context, Handler, Reply, RequestHandler, TaskOptions};
pub use client::{Client, Events, NoEvents};
#[cfg(feature = "runtime")]
pub use endpoint::connect::connect;
pub use model::TraceContext;
pub use server::{ForModel, HandlerError, Server};

/// For `core/fuzz`.
#[cfg(fuzzing)]
#[doc(hidden)]
pub use call::rounds::request_state;

/// This crate's version, which is every language package's too.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
