use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};

use super::Server;
use super::builder::Shared;
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
/// [`max_memory`](super::ServerOptions#structfield.max_memory).
#[must_use]
pub fn memory_kept() -> usize {
    budget::used()
}

/// A transport that counts what it has open.
pub(crate) trait Meter: Send + Sync {
    /// Adds its numbers.
    fn read(&self, usage: &mut Usage);
}

impl Server {
    /// Returns the numbers of open things at the moment, over all transports.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage = Usage { connections: self.shared.connections.load(Ordering::Relaxed), ..Usage::default() };
        usage.tasks = self.shared.router.tasks().map_or(0, |tasks| tasks.len());
        usage.listeners = self.shared.router.common.listeners.load(Ordering::Relaxed);
        let meters = self.shared.meters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        meters.iter().filter_map(Weak::upgrade).for_each(|meter| meter.read(&mut usage));
        usage
    }
}

/// Counts one connection for as long as it lives.
#[cfg(feature = "runtime")]
pub(crate) struct Open(Server);

#[cfg(feature = "runtime")]
impl Open {
    pub(crate) fn new(server: &Server) -> Self {
        server.shared.connections.fetch_add(1, Ordering::Relaxed);
        Self(server.clone())
    }
}

#[cfg(feature = "runtime")]
impl Drop for Open {
    fn drop(&mut self) {
        self.0.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    /// Counts a transport in for as long as it lives.
    #[cfg(feature = "runtime")]
    pub(crate) fn add_meter(&self, meter: &Arc<dyn Meter>) {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        meters.retain(|m| m.strong_count() > 0);
        meters.push(Arc::downgrade(meter));
    }
}
