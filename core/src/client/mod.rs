//! The client's side: what to connect to, and the calls a connected client makes.
//!
//! **Invariant**: no tasks, no sockets. Connecting is the transport's business; here is what comes before and after.

mod call_options;
mod calls;
mod config;
mod options;

pub use call_options::CallOptions;
pub use calls::{Client, ListToolsResult};
#[cfg(feature = "runtime")]
pub(crate) use calls::{Closer, Connected, check_of};
pub(crate) use calls::{Guard, Link};
pub(crate) use options::seconds;
pub use options::{ClientOptions, Stderr, Target};
