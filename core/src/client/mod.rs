//! The client's side: what to connect to, and the calls a connected client makes.
//!
//! **Invariant**: no tasks, no sockets. Connecting is the transport's business; here is what comes before and after.

mod calls;
mod config;
mod events;
mod features;
#[cfg(feature = "runtime")]
mod group;
mod handlers;
mod options;
mod tasks;

pub use calls::Client;
#[cfg(feature = "runtime")]
pub(crate) use calls::{Closer, Connected};
pub use events::{Events, NoEvents};
#[cfg(feature = "runtime")]
pub(crate) use features::check_of;
pub use features::{ListPage, ListToolsResult, Pages};
#[cfg(feature = "runtime")]
pub use group::{ClientGroup, Connect, GroupEntry, GroupListing, GroupOptions, Prefix, Servers};
pub use handlers::{Handlers, Roots};
pub use options::{ClientOptions, Stderr, Target};
#[cfg(feature = "runtime")]
pub(crate) use tasks::Known;
pub use tasks::{TaskChanges, TaskHandle};
