//! The client's side: what to connect to, and the calls a connected client makes.
//!
//! **Invariant**: no tasks, no sockets. Connecting is the transport's business; here is what comes before and after.

mod calls;
mod options;

#[cfg(feature = "runtime")]
pub(crate) use calls::check_of;
pub use calls::{CallOptions, Client, ListToolsResult};
pub(crate) use calls::{Closer, Connected, Guard, Link};
pub(crate) use options::seconds;
pub use options::{ClientOptions, Stderr, Target};
