//! Streamable HTTP.
pub(crate) mod client;
