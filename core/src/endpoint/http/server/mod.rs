//! The server's side of Streamable HTTP: from a request to the peer of its connection, and from its answer to a response.

pub(super) mod access_log;
pub(super) mod activity;
pub(super) mod admit;
pub(super) mod body;
pub(super) mod cors;
pub(super) mod descriptors;
pub(super) mod ending;
pub(super) mod endpoint;
pub(super) mod exchange;
#[cfg(feature = "redis")]
pub(super) mod feeds;
pub(crate) mod forwarded;
pub(super) mod frames;
#[cfg(feature = "auth")]
pub(super) mod guard;
pub(crate) mod headers;
pub(super) mod heavy;
pub(super) mod holder;
pub(super) mod incoming;
pub(super) mod lanes;
pub(super) mod legacy;
pub(super) mod modern;
pub(super) mod options;
pub(super) mod origin;
pub(super) mod outlet;
pub(super) mod pair;
pub(super) mod reply;
#[cfg(feature = "auth")]
pub(super) mod resource;
pub(super) mod sender;
pub(super) mod serve;
pub(super) mod sessions;
#[cfg(feature = "redis")]
pub(super) mod shared;
pub(super) mod shares;
#[cfg(all(test, feature = "redis", feature = "auth"))]
mod simulation;
pub(super) mod stateless;
pub(super) mod tickets;
pub(super) mod tls;
pub(super) mod uses;

pub use body::Body;
pub use endpoint::Endpoint;
pub use options::HttpOptions;
#[cfg(feature = "auth")]
pub use resource::MetadataDocument;
pub use serve::HttpServer;
