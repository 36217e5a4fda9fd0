//! The client's side: what to connect to, and the calls a connected client makes.
//!
//! **Invariant**: no tasks, no sockets. Connecting is the transport's business; here is what comes before and after.

mod calls;
mod config;
mod features;
mod handlers;
mod options;
mod tasks;

pub use calls::Client;
#[cfg(feature = "runtime")]
pub(crate) use calls::{Closer, Connected};
#[cfg(feature = "runtime")]
pub(crate) use features::check_of;
pub use features::{ListToolsResult, Page, Pages};
pub use handlers::{Events, Handlers, Quiet, Roots};
pub use options::{ClientOptions, Stderr, Target};
#[cfg(feature = "runtime")]
pub(crate) use tasks::Known;
pub use tasks::{TaskChanges, TaskHandle};
