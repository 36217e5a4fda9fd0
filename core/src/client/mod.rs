//! The client's side: what to connect to, and the calls a connected client makes.
//!
//! **Invariant**: no tasks, no sockets. Connecting is the transport's business; here is what comes before and after.

mod cache;
mod cache_options;
mod calls;
mod checking;
#[cfg(feature = "runtime")]
mod checks;
mod config;
mod events;
#[cfg(feature = "runtime")]
mod extended_tasks;
mod features;
#[cfg(feature = "runtime")]
mod group;
mod handlers;
mod http_transport;
mod known;
mod lengths;
mod listening;
mod options;
mod outputs;
#[cfg(any(windows, test))]
pub(crate) mod programs;
mod results;
mod roots;
#[cfg(feature = "runtime")]
mod rounds;
mod stderr;
mod tap;
mod target;
mod tasks;
mod trace;

pub use crate::client::target::Target;
#[cfg(feature = "redis")]
pub use cache::RedisCache;
pub(crate) use cache::{Cache, Place};
pub use cache::{CacheStore, CacheUsage};
#[cfg(feature = "runtime")]
pub(crate) use cache::{Outside, digest};
pub use cache_options::CacheOptions;
pub use calls::Client;
#[cfg(feature = "runtime")]
pub(crate) use calls::{Closer, Connected};
pub use events::{Events, NoEvents};
pub use features::Pages;
#[cfg(feature = "runtime")]
pub use group::{ClientGroup, Connect, GroupEntry, GroupListing, GroupOptions, Prefix, Servers};
pub use handlers::Handlers;
pub(crate) use http_transport::Carried;
pub use http_transport::{HttpBody, HttpRequest, HttpResponse, HttpTransport};
#[cfg(feature = "runtime")]
pub(crate) use listening::Hub;
pub use listening::{Change, Listening};
#[cfg(feature = "stdio")]
pub(crate) use options::split;
pub use options::{ClientOptions, InheritEnv};
#[cfg(feature = "runtime")]
pub(crate) use results::reading_of;
pub use results::{ListPage, ListToolsResult};
pub use roots::Roots;
pub use stderr::Stderr;
pub use tap::Tap;
pub(crate) use tap::{Tapped, Tapping};
pub use tasks::{TaskChanges, TaskHandle};

#[cfg(feature = "auth")]
pub use crate::auth::client::{Auth, Browser, Callback, Grant, Identity, Redirect, Wanted};
pub use crate::store::{MemoryCache, StoreOptions};
