//! Frames of JSON-RPC on their way: lines of standard streams and pipes, events of a stream of HTTP.
//!
//! **Invariant**: knows frames only; who they belong to is the endpoints' business, and their meaning the connection's.

#[cfg(feature = "stdio")]
pub(crate) mod lines;
#[cfg(feature = "stdio")]
pub(crate) mod own;
#[cfg(feature = "stdio")]
pub(crate) mod sink;
#[cfg(feature = "http")]
pub(crate) mod sse;
