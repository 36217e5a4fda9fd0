//! Moves frames between a peer and the outside: standard streams, child processes, memory, HTTP.
//!
//! **Invariant**: knows JSON-RPC frames only; what they mean is the connection's business.

#[cfg(feature = "client-process")]
mod child;
#[cfg(feature = "runtime")]
pub(crate) mod connect;
#[cfg(feature = "runtime")]
mod group;
#[cfg(feature = "client-process")]
mod hearing;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "client-process")]
mod lines;
pub(crate) mod memory;
#[cfg(feature = "client-process")]
pub(crate) mod own;
#[cfg(feature = "client-process")]
mod program;
#[cfg(feature = "runtime")]
mod run;
#[cfg(feature = "client-process")]
mod sink;
#[cfg(feature = "client-process")]
pub(crate) mod stdio;
