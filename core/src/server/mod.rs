//! The server's side: what is registered, and how a request finds it.
//!
//! **Invariant**: no tasks, no sockets. The driver hands a [`Call`](crate::protocol::Call) and a link for the answer.

mod builder;
mod context;
#[cfg(feature = "files")]
pub mod files;
mod handler;
mod quick;
mod registry;
mod router;
mod usage;
mod validate;

pub use builder::{Server, ServerOptions};
pub use context::Context;
pub(crate) use context::Link;
pub(crate) use handler::BoxFuture;
pub use handler::{Handler, IntoAnswer, IntoHandler, Reply, ToolError};
pub(crate) use router::Router;
#[cfg(feature = "runtime")]
pub(crate) use usage::Meter;
pub use usage::Usage;
