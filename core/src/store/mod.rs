//! Stores of data for later, in memory, behind traits; and what several processes share.
//!
//! **Invariant**: knows no transport and no protocol; what a text means is its owner's business.

mod cache;
#[cfg(feature = "runtime")]
mod change;
#[cfg(feature = "redis")]
mod documents;
mod memory;
mod options;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(feature = "redis")]
pub(crate) mod ring;
#[cfg(feature = "redis")]
mod shared;
mod tasks;

use std::fmt;

use bytes::Bytes;

pub use cache::MemoryCache;
pub(crate) use cache::{CacheEntry, CacheKey};
#[cfg(feature = "runtime")]
pub(crate) use change::{Change, Outbox};
#[cfg(feature = "redis")]
pub use documents::{Document, DocumentStore, DocumentWrite};
pub(crate) use memory::MemoryEvents;
#[cfg(feature = "redis")]
pub(crate) use options::Own;
pub use options::StoreOptions;
#[cfg(feature = "runtime")]
pub(crate) use options::VARIABLE;
#[cfg(feature = "redis")]
pub(crate) use shared::{MAX_OUTCOME, SharedTask, outcome_text};
pub(crate) use tasks::{Full, Kept, MemoryTasks, Outcome, Owner, Room as TaskRoom, TaskStore};

/// One stream of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// The stream of one POST.
    Request(u64),
    /// A stream that belongs to no POST.
    Standalone(u64),
}

/// Names an event: its stream, and a number that grows and is used once in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) stream: Stream,
    pub(crate) number: u64,
    /// Place in the log of changes up to which its client knows them, where several processes share one. 0: none.
    pub(crate) place: u64,
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stream {
            Stream::Request(stream) => write!(f, "r{stream}-{}", self.number)?,
            Stream::Standalone(stream) => write!(f, "s{stream}-{}", self.number)?,
        }
        if self.place == 0 { Ok(()) } else { write!(f, "-{}", self.place) }
    }
}

impl EventId {
    /// Reads what [`Display`](fmt::Display) writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (stream, rest) = text.get(1..)?.split_once('-')?;
        let (number, place) = rest.split_once('-').map_or((rest, None), |(number, place)| (number, Some(place)));
        let digits = |text: &str| text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        let (stream, number) = (digits(stream)?, digits(number)?);
        let place = place.map_or(Some(0), |place| digits(place).filter(|place| *place > 0))?;
        let stream = match text.as_bytes()[0] {
            b'r' => Stream::Request(stream),
            b's' => Stream::Standalone(stream),
            _ => return None,
        };
        Some(Self { stream, number, place })
    }
}

/// A message that goes out on a stream, with its name where the stream can be resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: Option<EventId>,
    pub(crate) text: Bytes,
}

/// Limits of the events kept of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// The events of one session, for clients that lose a stream. Called under the session's lock: must not wait, so a
/// store that is shared queues what it writes.
pub(crate) trait EventStore: Send {
    /// Keeps an event, at the cost of the oldest.
    fn keep(&mut self, id: EventId, text: &Bytes);
    /// Returns the events that followed the one with this id on its stream, oldest first.
    fn after(&self, id: EventId) -> Vec<Event>;
    /// Forgets an event that was not sent after all.
    fn take_back(&mut self, id: EventId);
    /// Forgets all of them. Says how many bytes that gives back to the budget.
    fn forget(&mut self) -> usize;
}
