//! The only owner of tasks and timers: joins a [`Connection`](crate::protocol::Connection) to a transport's sink and
//! to the service (server or client) that runs what comes in.
//!
//! **Invariant**: no user code, no send and no answer happens while a lock is held.

mod clock;
#[cfg(feature = "runtime")]
mod lifespan;
mod link;
#[cfg(feature = "redis")]
mod node;
mod peer;
#[cfg(feature = "runtime")]
pub(crate) mod runtime;
mod service;
#[cfg(test)]
mod tests;
mod waiter;

#[cfg(feature = "runtime")]
pub(crate) use clock::Time;
pub(crate) use clock::now;
#[cfg(feature = "runtime")]
pub(crate) use lifespan::Use;
#[cfg(all(feature = "redis", feature = "http"))]
pub(crate) use node::{Mailbox, Node};
pub(crate) use peer::{Peer, Service, Sink};
pub(crate) use waiter::Waiter;
