//! The protocol without input or output: [`Connection::handle`] takes an [`Input`] and returns [`Action`]s.
//!
//! **Invariant**: no sockets, tasks, clocks or randomness in here; time comes in as an argument.

mod action;
mod connection;
mod context;
mod envelope;
mod exchange;
mod ids;
mod kind;
mod lazy_map;
mod origin;
mod payload;
mod pending;
pub mod revision;

pub use crate::protocol::ids::{CallId, Route};
pub use crate::protocol::payload::{Payload, Structured};
pub(crate) use action::Counted;
pub use action::{
    Action, Announcement, Call, Facts, Input, Invocation, KeepAlive, Listen, NotificationCause, Opening, Outbound,
    Role, Sent,
};
pub use connection::Connection;
#[cfg(feature = "redis")]
pub(crate) use connection::sharing::Told;
#[cfg(feature = "http")]
pub(crate) use context::HeaderList;
pub use context::{LogLevel, PeerFacts, RequestContext, Transport};
pub(crate) use context::{Room, States};
pub(crate) use envelope::{Head, decode};
pub(crate) use exchange::Arrival;
pub use kind::Kind;
pub(crate) use lazy_map::LazyMap;
pub(crate) use origin::{Cause, Origin};
pub(crate) use pending::Pace;
