//! Streamable HTTP.
pub(crate) mod client;
mod stub;
pub use stub::{Endpoint, HttpOptions, HttpServer};
