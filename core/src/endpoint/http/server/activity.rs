use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

use super::access_log::Entry;
use super::body::Body;
use super::options::Patience;
use super::shares::{Shares, Use, Yielding};
use crate::driver::now;

/// State of a socket: the requests that are being answered, since when it has none, and since when its peer takes nothing
/// of what is to be written. A timer per request would cost more than the request; this costs some stores, and one task
/// looks at all sockets now and then.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// One at most, unless it speaks HTTP/2.
    busy: AtomicU32,
    /// Number of them that are streams which wait for news.
    waits: AtomicU32,
    /// Time since which it has a request, or none. Milliseconds on the engine's clock, as all times here.
    since: AtomicU64,
    /// Time at which the head of the next request began, or 0.
    head: AtomicU64,
    /// Something has come.
    heard: AtomicBool,
    /// Number of them with a body that is still on its way.
    arriving: AtomicU32,
    /// It speaks HTTP/2: of what comes nothing says that it is a head.
    is_multiplexed: AtomicBool,
    /// Times by which the answers that are on their way over HTTP/2 have to be taken, by number.
    answers: Mutex<(u64, BTreeMap<u64, u64>)>,
    /// Time since which its peer takes nothing, or 0 while writing goes on.
    blocked: AtomicU64,
    /// Time for which its peer has taken nothing, in all, before that; and the number of bytes that it took meanwhile.
    stalled: AtomicU64,
    written: AtomicU64,
    /// Time at which it took something again.
    freed: AtomicU64,
    /// Another needs its place.
    yields: AtomicBool,
    /// Tells the socket to look whether it is due.
    pub(super) look: Notify,
}

/// Time for which a server that drains waits for the rest of a head, and for the first byte of a new socket: milliseconds.
const BEGUN: u64 = 1_000;
const CONNECTED: u64 = 100;

/// Pauses that are so long ago do not count: milliseconds.
const FORGIVEN: u64 = 60_000;

fn millis() -> u64 {
    super::sessions::millis(now()).max(1)
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { since: AtomicU64::new(millis()), ..Self::default() })
    }

    /// A request is being answered until the answer is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        // Its head has just come: the clock need not be asked again.
        let began = self.head.swap(0, Ordering::AcqRel);
        self.since.store(if began == 0 { millis() } else { began }, Ordering::Release);
        self.busy.fetch_add(1, Ordering::AcqRel);
        Busy { activity: self.clone(), waits: false }
    }

    /// Returns true if a request is being read or answered, an answer is not taken yet, or a request may be on its way: a
    /// head that has begun, or a socket of which nothing is read yet. That for a while only, as nothing more may come. A
    /// stream that waits for news is none.
    pub(super) fn is_engaged(&self) -> bool {
        let is_new = |since: &AtomicU64, limit: u64| {
            let since = since.load(Ordering::Acquire);
            since != 0 && millis() < since.saturating_add(limit)
        };
        let busy = self.busy.load(Ordering::Acquire);
        let may_begin =
            || is_new(&self.head, BEGUN) || (!self.heard.load(Ordering::Acquire) && is_new(&self.since, CONNECTED));
        let is_taken = || self.blocked.load(Ordering::Acquire) == 0;
        busy > self.waits.load(Ordering::Acquire) || (busy == 0 && (!is_taken() || may_begin()))
    }

    /// The body of a request is on its way, until this is dropped.
    pub(super) fn arrives(self: &Arc<Self>) -> Arriving {
        self.arriving.fetch_add(1, Ordering::AcqRel);
        Arriving(self.clone())
    }

    /// From now on it carries several requests at once.
    pub(super) fn multiplexes(&self) {
        self.is_multiplexed.store(true, Ordering::Release);
        self.head.store(0, Ordering::Release);
    }

    /// An answer of so many bytes is on its way, until this is dropped.
    fn answers(self: &Arc<Self>, bytes: u64, patience: &Patience) -> Taken {
        let due = millis() + super::sessions::millis(patience.write.saturating_add(patience.of_bytes(bytes)));
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.0 += 1;
        let number = answers.0;
        answers.1.insert(number, due);
        Taken { activity: self.clone(), number }
    }

    /// Returns true if an answer over HTTP/2 is not taken. Its window may be shut while the socket itself is not
    /// blocked.
    fn is_untaken(&self) -> bool {
        if !self.is_multiplexed.load(Ordering::Acquire) {
            return false;
        }
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.1.values().any(|due| *due <= millis())
    }

    /// Waits until the socket has to end.
    pub(super) async fn is_to_end(&self, patience: &Patience) {
        while !self.is_due(patience) {
            self.look.notified().await;
        }
    }

    /// Returns true if its peer takes what is written more slowly than may be: of the time in which it takes nothing
    /// there is that of the option, and what its bytes take at the slowest rate.
    fn is_slow(&self, patience: &Patience) -> bool {
        let since = self.blocked.load(Ordering::Acquire);
        if since == 0 {
            return false;
        }
        let stalled = self.stalled.load(Ordering::Acquire) + millis().saturating_sub(since);
        let allowed = patience.write.saturating_add(patience.of_bytes(self.written.load(Ordering::Acquire)));
        super::sessions::millis(allowed) <= stalled
    }

    /// Returns true if the socket has to end: its client was waited for long enough, or another needs its place.
    pub(super) fn is_due(&self, patience: &Patience) -> bool {
        let long_ago = |then: &AtomicU64, limit| {
            let then = then.load(Ordering::Acquire);
            then != 0 && then.saturating_add(super::sessions::millis(limit)) <= millis()
        };
        let idle = if self.heard.load(Ordering::Acquire) { patience.idle } else { patience.first };
        let is_idle = self.busy.load(Ordering::Acquire) == 0
            && (long_ago(&self.since, idle) || long_ago(&self.head, patience.head));
        is_idle
            || long_ago(&self.blocked, patience.write)
            || self.is_slow(patience)
            || self.is_untaken()
            || self.yields.load(Ordering::Acquire)
    }

    fn wrote(&self, outcome: &Poll<io::Result<usize>>) {
        let since = self.blocked.load(Ordering::Relaxed);
        if outcome.is_pending() && since == 0 {
            let now = millis();
            // After a minute without a pause all is forgotten.
            if self.freed.load(Ordering::Relaxed).saturating_add(FORGIVEN) <= now {
                self.stalled.store(0, Ordering::Release);
                self.written.store(0, Ordering::Release);
            }
            self.blocked.store(now, Ordering::Release);
        } else if !outcome.is_pending() && since != 0 {
            let now = millis();
            self.stalled.fetch_add(now.saturating_sub(since), Ordering::AcqRel);
            self.freed.store(now, Ordering::Release);
            self.blocked.store(0, Ordering::Release);
        }
        // Where nothing has stalled nothing is to be made up for.
        if let Poll::Ready(Ok(bytes)) = outcome
            && self.stalled.load(Ordering::Relaxed) != 0
        {
            self.written.fetch_add(*bytes as u64, Ordering::AcqRel);
        }
    }

    /// Bytes have come.
    fn read(&self) {
        if self.busy.load(Ordering::Relaxed) == 0 && self.head.load(Ordering::Relaxed) == 0 {
            self.heard.store(true, Ordering::Release);
            if !self.is_multiplexed.load(Ordering::Relaxed) {
                self.head.store(millis(), Ordering::Release);
            }
        }
    }
}

impl Yielding for Activity {
    fn used(&self) -> (Use, u64) {
        let arriving = self.arriving.load(Ordering::Acquire);
        let used = match (self.busy.load(Ordering::Acquire), self.waits.load(Ordering::Acquire)) {
            (0, _) => Use::Idle,
            (busy, waits) if busy == waits => Use::Waiting,
            (busy, waits) if busy <= waits + arriving => Use::Arriving,
            _ => Use::Answering,
        };
        (used, self.since.load(Ordering::Acquire))
    }

    fn make_room(&self) {
        self.yields.store(true, Ordering::Release);
        self.look.notify_one();
    }
}

/// Lives as long as a request and its answer.
pub(super) struct Busy {
    activity: Arc<Activity>,
    waits: bool,
}

impl Busy {
    /// Says that its answer is a stream that waits for news.
    pub(super) fn waits(&mut self) {
        if !std::mem::replace(&mut self.waits, true) {
            self.activity.waits.fetch_add(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.waits {
            self.activity.waits.fetch_sub(1, Ordering::AcqRel);
        }
        self.activity.since.store(millis(), Ordering::Release);
        self.activity.busy.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Lives as long as the body of a request is on its way.
pub(super) struct Arriving(Arc<Activity>);

impl Drop for Arriving {
    fn drop(&mut self) {
        self.0.arriving.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Lives until an answer over HTTP/2 was taken.
struct Taken {
    activity: Arc<Activity>,
    number: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut answers = self.activity.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.1.remove(&self.number);
    }
}

/// The sockets of one listener.
pub(super) type Sockets = Shares<Activity>;

impl Sockets {
    /// Tells the sockets that are due to look again. It is the socket that decides: a request may have begun meanwhile.
    pub(super) fn sweep(&self, patience: &Patience) {
        self.each(|socket| {
            if socket.is_due(patience) {
                socket.look.notify_one();
            }
        });
    }
}

/// A socket that knows whether its peer takes what is written.
pub(super) struct Metered<S> {
    pub(super) socket: S,
    pub(super) activity: Arc<Activity>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let outcome = Pin::new(&mut self.socket).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.read();
        }
        outcome
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

/// A body over HTTP/2 in pieces: the protocol takes what it is given into its own memory, and says no more of it.
pub(super) struct Pieces {
    rest: Bytes,
    _taken: Option<Taken>,
}

/// The longest of them.
const PIECE: usize = 16 << 10;

impl Pieces {
    pub(super) fn new(body: &Body, activity: &Arc<Activity>, patience: &Patience) -> Self {
        let bytes = http_body::Body::size_hint(body).exact();
        Self {
            rest: Bytes::new(),
            _taken: bytes.filter(|bytes| *bytes > 0).map(|bytes| activity.answers(bytes, patience)),
        }
    }
}

/// A response's body that keeps its socket busy.
pub(super) struct Watched {
    pub(super) body: Body,
    pub(super) _busy: Busy,
    /// Over HTTP/2.
    pub(super) pieces: Option<Pieces>,
    /// Written when the body is over, or its client gone.
    pub(super) entry: Option<Entry>,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let rest = match &mut this.pieces {
            Some(pieces) if !pieces.rest.is_empty() => Some(std::mem::take(&mut pieces.rest)),
            _ => None,
        };
        let mut frame = match rest {
            Some(rest) => Some(Ok(Frame::data(rest))),
            None => std::task::ready!(Pin::new(&mut this.body).poll_frame(cx)),
        };
        if let Some(pieces) = &mut this.pieces
            && let Some(Ok(data)) = &mut frame
            && let Some(data) = data.data_mut()
            && data.len() > PIECE
        {
            pieces.rest = data.split_off(PIECE);
        }
        if let (Some(entry), Some(Ok(frame))) = (&mut self.entry, &frame) {
            entry.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.as_ref().is_none_or(|pieces| pieces.rest.is_empty()) && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.pieces.as_ref().map_or(0, |pieces| pieces.rest.len() as u64);
        match self.body.size_hint().exact() {
            Some(bytes) => SizeHint::with_exact(bytes + rest),
            None => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::time::Duration;

    use super::*;
    use crate::endpoint::http::server::holder::Holder;

    fn told(socket: &Activity) -> bool {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(socket.look.notified()).poll(&mut cx).is_ready()
    }

    const AT_ONCE: Duration = Duration::ZERO;
    const LATER: Duration = Duration::from_secs(3600);
    const PATIENT: Patience =
        Patience { first: LATER, head: LATER, idle: LATER, body: LATER, write: LATER, rate: 4096 };
    const HASTY: Patience =
        Patience { first: AT_ONCE, head: AT_ONCE, idle: AT_ONCE, body: AT_ONCE, write: AT_ONCE, rate: 4096 };

    #[test]
    fn only_sockets_without_a_request_are_closed() {
        let sockets = Sockets::new(9, "full");
        let (idle, busy) = (Activity::new(), Activity::new());
        for socket in [&idle, &busy] {
            assert!(sockets.add(Holder::Unknown, socket.clone()).is_some());
        }
        let request = busy.begin();
        sockets.sweep(&PATIENT);
        assert!(!told(&idle) && !told(&busy));
        sockets.sweep(&HASTY);
        assert!(told(&idle) && !told(&busy));
        drop(request);
        sockets.sweep(&HASTY);
        assert!(told(&busy));
        // A request that begins after that is answered.
        let request = busy.begin();
        assert!(!busy.is_due(&HASTY));
        drop(request);
    }

    #[test]
    fn each_silence_has_its_own_time() {
        let socket = Activity::new();
        assert!(socket.is_due(&Patience { first: AT_ONCE, ..PATIENT }), "nothing came");
        socket.read();
        assert!(!socket.is_due(&Patience { first: AT_ONCE, ..PATIENT }));
        assert!(socket.is_due(&Patience { head: AT_ONCE, ..PATIENT }), "half a head came");
        let mut request = socket.begin();
        assert!(!socket.is_due(&HASTY));
        assert_eq!(socket.used().0, Use::Answering);
        request.waits();
        assert_eq!(socket.used().0, Use::Waiting);
        let other = socket.begin();
        assert_eq!(socket.used().0, Use::Answering, "beside one that waits");
        drop(other);
        assert_eq!(socket.used().0, Use::Waiting);
        drop(request);
        assert!(!socket.is_due(&Patience { first: AT_ONCE, head: AT_ONCE, write: AT_ONCE, ..PATIENT }));
        assert!(socket.is_due(&Patience { idle: AT_ONCE, ..PATIENT }), "no other request came");
        assert_eq!(socket.used().0, Use::Idle);
        let _request = socket.begin();
        socket.make_room();
        assert!(told(&socket) && socket.is_due(&PATIENT), "another needs its place");
    }

    #[test]
    fn a_peer_that_takes_nothing_is_not_waited_for() {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let (near, far) = tokio::io::duplex(4);
        let activity = Activity::new();
        let _request = activity.begin();
        let mut socket = Metered { socket: near, activity: activity.clone() };
        assert!(Pin::new(&mut socket).poll_write(&mut cx, b"1234").is_ready());
        assert!(!activity.is_due(&HASTY), "nothing waits");
        assert!(Pin::new(&mut socket).poll_write(&mut cx, b"5").is_pending());
        assert!(activity.is_due(&HASTY) && !activity.is_due(&PATIENT));
        let (mut far, mut bytes) = (far, [0; 2]);
        assert!(Pin::new(&mut far).poll_read(&mut cx, &mut ReadBuf::new(&mut bytes)).is_ready());
        assert!(Pin::new(&mut socket).poll_write(&mut cx, b"5").is_ready());
        assert!(!activity.is_due(&HASTY));
    }
}
