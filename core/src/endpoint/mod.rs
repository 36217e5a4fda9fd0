//! Joins a peer to the outside: standard streams, child processes, memory, HTTP, and targets of any of these.
//!
//! **Invariant**: nothing below knows an endpoint; what a message means is the connection's business.

#[cfg(feature = "stdio")]
mod child;
#[cfg(feature = "runtime")]
pub(crate) mod connect;
#[cfg(feature = "runtime")]
mod group;
#[cfg(feature = "stdio")]
mod hearing;
#[cfg(feature = "http")]
pub mod http;
pub(crate) mod memory;
#[cfg(feature = "stdio")]
mod program;
#[cfg(feature = "runtime")]
mod record;
#[cfg(feature = "runtime")]
mod replay;
#[cfg(feature = "runtime")]
mod run;
#[cfg(feature = "stdio")]
pub(crate) mod stdio;
