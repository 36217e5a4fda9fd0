//! Numbers of open things.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};

use super::Shared;
use crate::server::Server;
use crate::server::usage::{Meter, Usage};

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
