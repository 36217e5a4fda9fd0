use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::body::Body;
use crate::driver::now;
use crate::signal::Signal;

/// Whether a socket has a request that is being answered, and since when it has none. A timer per request would cost
/// more than the request; this costs two stores, and one task looks at all sockets now and then.
#[derive(Debug, Default)]
pub(super) struct Activity {
    busy: AtomicBool,
    /// Milliseconds on the engine's clock.
    since: AtomicU64,
    /// Set when the socket is to be closed.
    pub(super) over: Signal,
}

fn millis() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}

impl Activity {
    /// A request is being answered until the answer is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.busy.store(true, Ordering::Release);
        Busy(self.clone())
    }
}

/// Lives as long as a request and its answer.
pub(super) struct Busy(Arc<Activity>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.since.store(millis(), Ordering::Release);
        self.0.busy.store(false, Ordering::Release);
    }
}

/// The sockets of one listener.
#[derive(Debug, Default)]
pub(super) struct Sockets(Mutex<Vec<Weak<Activity>>>);

impl Sockets {
    /// A new socket. It is known for as long as somebody holds it.
    pub(super) fn add(&self) -> Arc<Activity> {
        let activity = Arc::new(Activity { since: AtomicU64::new(millis()), ..Activity::default() });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&activity));
        activity
    }

    /// Closes the sockets that have had no request for `limit`, and forgets those that are gone.
    pub(super) fn sweep(&self, limit: Duration) {
        let now = millis();
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let mut idle = Vec::new();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|socket| {
            let Some(socket) = socket.upgrade() else { return false };
            let is_idle = !socket.busy.load(Ordering::Acquire);
            if is_idle && socket.since.load(Ordering::Acquire).saturating_add(limit) <= now {
                idle.push(socket);
                return false;
            }
            true
        });
        if all.len() * 4 < all.capacity() {
            all.shrink_to_fit();
        }
        drop(all);
        for socket in idle {
            socket.over.set();
        }
    }
}

/// A response's body that keeps its socket busy.
pub(super) struct Watched {
    pub(super) body: Body,
    pub(super) _busy: Busy,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_without_a_request_are_closed() {
        let sockets = Sockets::default();
        let (idle, busy, gone) = (sockets.add(), sockets.add(), sockets.add());
        let request = busy.begin();
        drop(gone);
        sockets.sweep(Duration::from_secs(3600));
        assert!(!idle.over.is_set() && !busy.over.is_set());
        sockets.sweep(Duration::ZERO);
        assert!(idle.over.is_set() && !busy.over.is_set());
        drop(request);
        sockets.sweep(Duration::ZERO);
        assert!(busy.over.is_set());
        assert_eq!(sockets.0.lock().expect("lock").len(), 0);
    }
}
