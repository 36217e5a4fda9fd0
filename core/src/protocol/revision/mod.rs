//! The revisions of the protocol as data: one [`Rules`] row per revision, one [`Method`] row per method.
//!
//! **Invariant**: the only place that knows dates. Code elsewhere asks a property (`rules.sessions`), never a date.

pub(crate) mod ask;
pub(crate) mod legacy;
mod method;
pub(crate) mod modern;
pub(crate) mod negotiate;
pub(crate) mod object;
mod rules;
pub(crate) mod shape;
mod spoken;
pub(crate) mod visits;

pub use method::{Direction, Method};
pub(crate) use negotiate::{is_internal, tried_both};
pub use rules::{Era, Revision, Rules};
pub(crate) use spoken::spoken;
