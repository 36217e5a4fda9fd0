//! One request, from the side of who handles it and of who makes it: [`Handler`], [`Context`] and [`Reply`];
//! [`CallOptions`] and [`Answer`]. Servers and clients do both.
//!
//! **Invariant**: no tasks, no sockets, nothing of what is served: [`Link`] is the way to the rest.

mod context;
mod handler;
mod request;
pub(crate) mod tasks;

pub use context::Context;
pub(crate) use context::{Clock, Link, SessionSlot};
pub(crate) use handler::{BoxFuture, Failures, HiddenError, Shaper};
pub use handler::{Handler, Reply};
pub use request::{Answer, CallOptions};
pub(crate) use request::{Done, Guard, prepared};
pub use tasks::TaskOptions;
pub(crate) use tasks::Tasks;
