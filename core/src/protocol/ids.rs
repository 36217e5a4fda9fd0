//! Numbers of calls and of ways back.

/// Names one call within a connection, in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(crate) u64);

impl CallId {
    /// A name for a request of one's own: any number that no other of the connection's waiting requests has.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(number)
    }
}

/// Names the exchange that a message of the peer came in with, where a connection has several: one POST and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route(pub(crate) u64);
