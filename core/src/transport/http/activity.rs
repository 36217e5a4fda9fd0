use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::body::Body;
use crate::driver::now;

/// Whether a socket has a request that is being answered, since when it has none, and since when its peer takes nothing
/// of what is to be written. A timer per request would cost more than the request; this costs two stores, and one task
/// looks at all sockets now and then.
#[derive(Debug, Default)]
pub(super) struct Activity {
    busy: AtomicBool,
    /// Milliseconds on the engine's clock.
    since: AtomicU64,
    /// The same, or 0 while writing goes on.
    blocked: AtomicU64,
    /// Tells the socket to look whether it is due.
    pub(super) look: Notify,
}

fn millis() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX).max(1)
}

impl Activity {
    /// A request is being answered until the answer is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.busy.store(true, Ordering::Release);
        Busy(self.clone())
    }

    /// Whether the socket has had no request, or its peer has taken nothing, for `limit`.
    pub(super) fn is_due(&self, limit: Duration) -> bool {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let long_ago = |then: &AtomicU64| then.load(Ordering::Acquire).saturating_add(limit) <= millis();
        let is_idle = !self.busy.load(Ordering::Acquire) && long_ago(&self.since);
        is_idle || (self.blocked.load(Ordering::Acquire) != 0 && long_ago(&self.blocked))
    }

    fn wrote<T>(&self, outcome: &Poll<T>) {
        let is_blocked = self.blocked.load(Ordering::Relaxed) != 0;
        if outcome.is_pending() != is_blocked {
            self.blocked.store(if is_blocked { 0 } else { millis() }, Ordering::Release);
        }
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

    /// Tells the sockets that are due to look again, and forgets those that are gone. It is the socket that decides: a
    /// request may have begun meanwhile.
    pub(super) fn sweep(&self, limit: Duration) {
        let mut due = Vec::new();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|socket| {
            let socket = socket.upgrade();
            due.extend(socket.iter().filter(|socket| socket.is_due(limit)).cloned());
            socket.is_some()
        });
        if all.len() * 4 < all.capacity() {
            all.shrink_to_fit();
        }
        drop(all);
        for socket in due {
            socket.look.notify_one();
        }
    }
}

/// A socket that knows whether its peer takes what is written.
pub(super) struct Metered<S> {
    pub(super) socket: S,
    pub(super) activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.activity.wrote(&outcome);
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.activity.wrote(&outcome);
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
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
    use std::future::Future;

    use super::*;

    fn told(socket: &Activity) -> bool {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(socket.look.notified()).poll(&mut cx).is_ready()
    }

    #[test]
    fn only_sockets_without_a_request_are_closed() {
        let sockets = Sockets::default();
        let (idle, busy, gone) = (sockets.add(), sockets.add(), sockets.add());
        let request = busy.begin();
        drop(gone);
        sockets.sweep(Duration::from_secs(3600));
        assert!(!told(&idle) && !told(&busy));
        sockets.sweep(Duration::ZERO);
        assert!(told(&idle) && !told(&busy));
        drop(request);
        sockets.sweep(Duration::ZERO);
        assert!(told(&busy));
        // A request that begins after that is answered, and the socket is still known.
        let request = busy.begin();
        assert!(!busy.is_due(Duration::ZERO));
        drop(request);
        assert_eq!(sockets.0.lock().expect("lock").len(), 2);
        drop(idle);
        sockets.sweep(Duration::ZERO);
        assert!(told(&busy));
        assert_eq!(sockets.0.lock().expect("lock").len(), 1);
    }

    #[test]
    fn a_peer_that_takes_nothing_is_not_waited_for() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let (near, far) = tokio::io::duplex(4);
        let activity = Sockets::default().add();
        let _request = activity.begin();
        let mut socket = Metered { socket: near, activity: activity.clone() };
        assert!(Pin::new(&mut socket).poll_write(&mut cx, b"1234").is_ready());
        assert!(!activity.is_due(Duration::ZERO), "nothing waits");
        assert!(Pin::new(&mut socket).poll_write(&mut cx, b"5").is_pending());
        assert!(activity.is_due(Duration::ZERO) && !activity.is_due(Duration::from_secs(3600)));
        let (mut far, mut bytes) = (far, [0; 2]);
        assert!(Pin::new(&mut far).poll_read(&mut cx, &mut ReadBuf::new(&mut bytes)).is_ready());
        assert!(Pin::new(&mut socket).poll_write(&mut cx, b"5").is_ready());
        assert!(!activity.is_due(Duration::ZERO));
    }
}
