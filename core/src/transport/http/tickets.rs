//! How many requests and streams an endpoint has room for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::endpoint::Inner;
use super::modern;
use super::outlet::Outlet;
use crate::call::Link;
use crate::driver::Peer;

impl Inner {
    /// Room for one more stateless request, if there is any.
    pub(super) fn ticket(self: &Arc<Self>) -> Option<Ticket> {
        self.counted(Counts::Requests, self.options.max_connections)
    }

    /// Room for one more listen stream, if there is any. They live long, so they leave half of the room to the others.
    pub(super) fn listener_ticket(self: &Arc<Self>) -> Option<Ticket> {
        self.counted(Counts::Listeners, self.max_listeners())
    }

    /// The most listen streams of all clients.
    pub(super) fn max_listeners(&self) -> usize {
        (self.options.max_connections / 2).max(1)
    }

    /// Counts one standalone stream.
    pub(super) fn stream_ticket(self: &Arc<Self>) -> Ticket {
        self.streams.fetch_add(1, Ordering::Relaxed);
        Ticket { inner: self.clone(), key: None, counts: Counts::Streams, joined: false }
    }

    fn counted(self: &Arc<Self>, counts: Counts, most: usize) -> Option<Ticket> {
        let before = self.gauge(counts).fetch_add(1, Ordering::Relaxed);
        let ticket = Ticket { inner: self.clone(), key: None, counts, joined: false };
        (before < most).then_some(ticket)
    }

    fn gauge(&self, counts: Counts) -> &AtomicUsize {
        match counts {
            Counts::Requests => &self.stateless,
            Counts::Listeners => &self.listening,
            Counts::Streams => &self.streams,
        }
    }
}

/// What a ticket is for.
#[derive(Clone, Copy)]
enum Counts {
    /// A stateless request.
    Requests,
    /// A listen stream.
    Listeners,
    /// A standalone stream.
    Streams,
}

/// Counts a request or a stream for as long as it lives.
pub(super) struct Ticket {
    inner: Arc<Inner>,
    key: Option<u64>,
    counts: Counts,
    /// It is told of changes.
    joined: bool,
}

impl Ticket {
    /// The request's connection is told of changes from now on.
    pub(super) fn join(&mut self, link: &Arc<dyn Link>) {
        self.inner.server.shared.links.add(link);
        self.joined = true;
    }

    /// Lets the closing of the server find a request that waits.
    pub(super) fn list(&mut self, outlet: &Arc<Outlet>, peer: &Arc<Peer>) {
        let key = self.inner.last.fetch_add(1, Ordering::Relaxed) as u64;
        self.inner.lock().insert(key, (Arc::downgrade(outlet), Arc::downgrade(peer)));
        self.key = Some(key);
        self.inner.keep();
        if self.inner.closed.load(Ordering::Acquire) {
            modern::end(outlet, peer);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.inner.lock().remove(&key);
        }
        if self.joined {
            self.inner.server.shared.links.left();
        }
        self.inner.gauge(self.counts).fetch_sub(1, Ordering::Relaxed);
    }
}
