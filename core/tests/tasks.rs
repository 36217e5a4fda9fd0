//! Tasks of 2025-11-25: requests that go on after their answer, on both sides.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "tasks/client.rs"]
mod client;
#[path = "tasks/fixture.rs"]
mod fixture;
#[path = "tasks/http.rs"]
mod http;
#[path = "tasks/middleware.rs"]
mod middleware;
#[path = "tasks/server.rs"]
mod server;
