use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};

use super::Server;
use super::builder::Shared;

/// What a server has open at the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Pipes and sockets.
    pub connections: usize,
    /// Legacy HTTP sessions.
    pub sessions: usize,
    /// Requests that are being worked on.
    pub in_flight: usize,
    /// Standalone event streams.
    pub streams: usize,
    /// Tasks that are kept, finished or not.
    pub tasks: usize,
}

/// A transport that counts what it has open.
pub(crate) trait Meter: Send + Sync {
    /// Adds its numbers.
    fn read(&self, usage: &mut Usage);
}

impl Server {
    /// What is open at the moment, over all transports.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage = Usage { connections: self.shared.connections.load(Ordering::Relaxed), ..Usage::default() };
        usage.tasks = self.shared.router.tasks().map_or(0, |tasks| tasks.len());
        let meters = self.shared.meters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        meters.iter().filter_map(Weak::upgrade).for_each(|meter| meter.read(&mut usage));
        usage
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
