use crate::budget;

/// Numbers of the things that a server has open at the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Pipes, sockets and clients in this process.
    pub connections: usize,
    /// Legacy HTTP sessions.
    pub sessions: usize,
    /// Requests that are being worked on.
    pub in_flight: usize,
    /// Standalone event streams.
    pub streams: usize,
    /// Clients that listen (`subscriptions/listen`); none of them is a request that is being worked on.
    pub listeners: usize,
    /// Tasks that are kept, finished or not.
    pub tasks: usize,
}

/// Bytes that the whole process keeps for its peers at the moment, in all servers: of at most
/// [`max_memory`](crate::Server::max_memory).
#[must_use]
pub fn memory_kept() -> usize {
    budget::used()
}

/// A transport that counts what it has open.
pub(crate) trait Meter: Send + Sync {
    /// Adds its numbers.
    fn read(&self, usage: &mut Usage);
}
