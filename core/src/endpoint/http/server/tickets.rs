//! Tickets for the requests and streams that an endpoint has room for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;

use super::endpoint::Inner;
use super::holder::Holder;
use super::modern;
use super::outlet::{End, Outlet};
use super::reply::Refusal;
use super::sessions::millis;
use super::shares::{Counted, Use, Yielding};
use crate::call::Link;
use crate::driver::{Peer, now};
use crate::protocol::Room;

pub(super) const LISTENERS_FULL: &str = "there are as many listen streams as there may be (half of max_connections): for \
     each further one the oldest of whoever has the most of them ends";
pub(super) const STREAMS_FULL: &str = "there are as many event streams as there may be (max_connections): for each further \
     one the oldest of whoever has the most of them ends";

/// A stream that waits for news.
pub(super) struct News {
    since: u64,
    end: Box<dyn Fn() + Send + Sync>,
}

impl News {
    fn new(end: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { since: millis(now()), end: Box::new(end) })
    }
}

impl Yielding for News {
    fn used(&self) -> (Use, u64) {
        (Use::Waiting, self.since)
    }

    fn make_room(&self) {
        (self.end)();
    }
}

impl Inner {
    /// Room for one more stateless request, if there is any.
    pub(super) fn ticket(self: &Arc<Self>, holder: Holder) -> Option<Ticket> {
        self.stateless.take(&holder).then(|| self.counted(Counts::Request(holder)))
    }

    /// Room for one more listen stream. They live long, so they leave half of the room to the others.
    pub(super) fn listener_ticket(
        self: &Arc<Self>,
        holder: Holder,
        outlet: &Arc<Outlet>,
        peer: &Arc<Peer>,
    ) -> Option<Ticket> {
        let (outlet, peer) = (outlet.clone(), Arc::downgrade(peer));
        let end = move || {
            if let Some(peer) = peer.upgrade() {
                peer.end_streams();
            }
            outlet.end(End::MadeRoom);
        };
        self.listening.add(holder, News::new(end)).map(|key| self.counted(Counts::Listener(key)))
    }

    /// Room for one more standalone stream, which `end` ends.
    pub(super) fn stream_ticket(
        self: &Arc<Self>,
        holder: Holder,
        end: impl Fn() + Send + Sync + 'static,
    ) -> Result<Ticket, Refusal> {
        self.streams.add(holder, News::new(end)).map(|key| self.counted(Counts::Stream(key))).ok_or_else(|| {
            let message = format!("more than {} event streams (max_connections)", self.streams.most());
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
        })
    }

    fn counted(self: &Arc<Self>, counts: Counts) -> Ticket {
        Ticket { inner: self.clone(), key: None, counts, joined: false }
    }
}

/// Room for the calls of a message of a session, each of which takes its part until its handler ends: their client may be
/// gone long before.
pub(super) struct Rooms {
    calls: Arc<Counted>,
    holder: Holder,
    left: AtomicUsize,
}

impl Inner {
    /// The refusal of a request for which there is no room.
    pub(super) fn no_room(&self) -> Refusal {
        let message = format!("more than {} requests in flight (max_connections)", self.options.max_connections);
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Room for so many more calls of sessions, if there is any.
    pub(super) fn rooms(&self, holder: Holder, count: usize) -> Option<Arc<dyn Room>> {
        let rooms = Rooms { calls: self.calls.clone(), holder, left: AtomicUsize::new(0) };
        for _ in 0..count {
            if !rooms.calls.take(&rooms.holder) {
                return None;
            }
            rooms.left.fetch_add(1, Ordering::Relaxed);
        }
        Some(Arc::new(rooms))
    }
}

impl Room for Rooms {
    fn give_back(&self) {
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            self.calls.give_back(&self.holder);
        }
    }
}

impl Drop for Rooms {
    fn drop(&mut self) {
        // Calls that the engine answered by itself, or nobody.
        while *self.left.get_mut() > 0 {
            self.give_back();
        }
    }
}

/// Purpose of a ticket.
enum Counts {
    /// A stateless request of somebody.
    Request(Holder),
    /// A listen stream.
    Listener(u64),
    /// A standalone stream.
    Stream(u64),
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

    pub(super) fn is_of_listener(&self) -> bool {
        matches!(self.counts, Counts::Listener(_))
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
        match &self.counts {
            Counts::Request(holder) => self.inner.stateless.give_back(holder),
            Counts::Listener(key) => self.inner.listening.remove(*key),
            Counts::Stream(key) => self.inner.streams.remove(*key),
        }
    }
}
