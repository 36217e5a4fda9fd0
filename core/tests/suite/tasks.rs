//! Tasks of 2025-11-25: requests that go on after their answer, on both sides.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod client;
mod fixture;
mod http;
mod middleware;
mod server;
