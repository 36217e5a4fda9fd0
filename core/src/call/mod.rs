//! One request, from the sides of its handler and of its caller: [`Handler`], [`Context`] and [`Reply`];
//! [`CallOptions`] and [`Answer`]. Servers and clients do both.
//!
//! **Invariant**: no tasks, no sockets, nothing of what is served: [`Link`] is the way to the rest.

mod context;
mod forwards;
mod handler;
mod middleware;
mod request;
#[cfg(feature = "runtime")]
pub(crate) mod rounds;
mod scope;
pub(crate) mod tasks;
mod trace;
mod unasked;

pub use context::Context;
pub(crate) use context::{Clock, Link, SessionSlot};
pub use handler::BoxFuture;
pub(crate) use handler::{Failures, HiddenError, Ran, Shaper, run};
pub use handler::{Handler, Reply, RequestHandler};
pub(crate) use middleware::Chain;
#[cfg(feature = "runtime")]
pub use middleware::ConcurrencyLimit;
#[cfg(feature = "runtime")]
pub(crate) use middleware::handled;
pub(crate) use middleware::inside;
pub use middleware::{Logging, MethodTiming, Middleware, Next, RateLimit, Request, RequestRecord, Timing};
pub use request::{Answer, CacheMode, CallOptions};
pub(crate) use request::{Done, Guard, Told, prepared};
#[cfg(feature = "otel")]
pub(crate) use scope::OtelScope;
pub(crate) use scope::Scope;
#[cfg(feature = "tracing")]
pub(crate) use scope::current;
#[cfg(feature = "runtime")]
pub(crate) use scope::in_scope;
#[cfg(feature = "redis")]
pub(crate) use tasks::Commons;
pub use tasks::TaskOptions;
pub(crate) use tasks::{Detachable, Listened, Tasks, may_be_task};
pub(crate) use trace::{TraceSource, trace_of, traced};
