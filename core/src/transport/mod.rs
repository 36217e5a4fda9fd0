//! Moves frames between a peer and the outside: standard streams, child processes, memory, HTTP.
//!
//! **Invariant**: knows JSON-RPC frames only; what they mean is the connection's business.

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
#[cfg(feature = "stdio")]
mod lines;
pub(crate) mod memory;
#[cfg(feature = "stdio")]
pub(crate) mod own;
#[cfg(feature = "stdio")]
mod program;
#[cfg(feature = "runtime")]
mod record;
#[cfg(feature = "runtime")]
mod replay;
#[cfg(feature = "runtime")]
mod run;
#[cfg(feature = "stdio")]
mod sink;
#[cfg(feature = "stdio")]
pub(crate) mod stdio;
