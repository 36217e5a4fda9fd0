//! Streamable HTTP.
pub(crate) mod client;

mod access_log;
mod activity;
mod admit;
mod body;
#[cfg(feature = "auth")]
pub(crate) mod browser;
#[cfg(feature = "auth")]
pub(crate) mod callback;
mod cors;
mod descriptors;
mod ending;
mod endpoint;
mod exchange;
#[cfg(feature = "redis")]
mod feeds;
#[cfg(feature = "auth")]
pub(crate) mod fetch;
pub(crate) mod forwarded;
mod frames;
#[cfg(feature = "auth")]
mod guard;
pub(crate) mod headers;
mod heavy;
mod holder;
mod incoming;
mod lanes;
mod legacy;
mod modern;
pub(crate) mod network;
mod options;
mod origin;
mod outlet;
mod pair;
#[cfg(feature = "auth")]
mod reach;
mod reply;
#[cfg(feature = "auth")]
mod resource;
mod sender;
mod serve;
mod sessions;
#[cfg(feature = "redis")]
mod shared;
mod shares;
#[cfg(all(test, feature = "redis", feature = "auth"))]
mod simulation;
pub(crate) mod sse;
mod stateless;
mod tickets;
mod tls;
mod unix;
mod uses;

pub use body::Body;
#[doc(hidden)]
pub use client::{Exchanged, Exchanges};
pub use endpoint::Endpoint;
pub use options::HttpOptions;
#[cfg(feature = "auth")]
pub use resource::MetadataDocument;
pub use serve::HttpServer;
