//! The server's side: what is registered, and how a request finds it.
//!
//! **Invariant**: no tasks, no sockets. The driver hands a [`Call`](crate::protocol::Call) and a link for the answer.

mod ask;
mod builder;
mod cache;
mod completion;
mod dispatch;
mod entries;
mod extension;
#[cfg(feature = "files")]
pub mod files;
mod form;
mod handler;
#[cfg(feature = "files")]
mod jobs;
#[cfg(feature = "runtime")]
mod lifespan;
mod links;
mod listed;
mod options;
pub(crate) mod paging;
mod parameters;
mod permits;
mod prompts;
mod question;
mod registry;
mod resources;
mod router;
mod session;
mod told;
mod tools;
mod typed;
mod usage;

#[cfg(feature = "runtime")]
pub(crate) use crate::server::builder::usage::Open;
pub use ask::{CreateMessageRequestParams, CreateMessageResult, ElicitAction, ElicitResult, ListRootsResult, Root};
#[cfg(feature = "http")]
pub(crate) use builder::Drains;
pub use builder::Server;
#[cfg(feature = "redis")]
pub(crate) use builder::Shared as ServerShared;
pub use cache::CacheOptions;
pub use extension::Extension;
pub use form::Form;
pub use handler::{ForModel, HandlerError, IntoAnswer, IntoHandler};
#[cfg(all(test, feature = "files"))]
pub(crate) use jobs::Jobs;
#[cfg(feature = "runtime")]
pub(crate) use lifespan::{Lifespan, NOT_STARTED, Shared as SharedState};
pub use listed::Kind;
pub use options::ServerOptions;
pub use parameters::Parameters;
pub use question::{InputRequired, Question};
pub(crate) use router::Router;
pub use session::Session;
#[cfg(feature = "runtime")]
pub(crate) use usage::Meter;
pub use usage::{Usage, memory_kept};

#[cfg(feature = "auth")]
pub use crate::auth::resource::Auth;
pub use crate::store::StoreOptions;
#[cfg(feature = "redis")]
pub use crate::store::redis::documents::check_document_store;
#[cfg(feature = "redis")]
pub use crate::store::{Document, DocumentStore, DocumentWrite};
