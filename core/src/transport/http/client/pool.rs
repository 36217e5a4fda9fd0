//! Connections to one origin, kept open between exchanges.
//!
//! An exchange drives its connection itself: the task that waits for an answer is the one that writes the request and
//! reads the socket, so that a call costs no hop between tasks. A connection at rest is not driven by anybody; it is
//! looked at before it is used again.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{Request, Response, Uri};
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::error::{Error, ErrorKind, Result};

type Body = Full<Bytes>;
type Io = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Time for name resolution, TCP and TLS together.
const CONNECT: Duration = Duration::from_secs(10);
/// A connection at rest for longer is closed. Servers give up theirs after five seconds or more.
const REST: Duration = Duration::from_secs(15);
/// A connection at rest for longer may have been closed by the server without the reactor having seen it.
const STALE: Duration = Duration::from_millis(500);
/// The most connections at rest.
const MAX_RESTING: usize = 64;

#[derive(Clone)]
enum Connector {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

impl Connector {
    fn new(tls: bool) -> Result<Self> {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT));
        http.enforce_http(false);
        if !tls {
            return Ok(Self::Plain(http));
        }
        let tls = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
            .map_err(|e| Error::new(ErrorKind::Transport, format!("TLS: {e}")))?;
        Ok(Self::Tls(tls.https_or_http().enable_http1().wrap_connector(http)))
    }

    async fn connect(mut self, to: Uri) -> Result<Io, String> {
        match &mut self {
            Self::Plain(http) => match std::future::poll_fn(|cx| http.poll_ready(cx)).await {
                Ok(()) => http.call(to).await.map(MaybeHttpsStream::Http).map_err(|e| causes(&e)),
                Err(e) => Err(causes(&e)),
            },
            Self::Tls(tls) => match std::future::poll_fn(|cx| tls.poll_ready(cx)).await {
                Ok(()) => tls.call(to).await.map_err(|e| causes(&*e)),
                Err(e) => Err(causes(&*e)),
            },
        }
    }
}

/// An error and what caused it, as one text.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// One connection with the sending half of its dispatcher.
struct Link {
    sender: SendRequest<Body>,
    connection: Connection<Io, Body>,
    used: bool,
}

impl Link {
    /// `Ready`: the connection has ended.
    fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.connection).poll(cx).map(drop)
    }

    /// Whether it takes another request.
    async fn is_alive(&mut self) -> bool {
        std::future::poll_fn(|cx| match self.drive(cx) {
            Poll::Ready(()) => Poll::Ready(false),
            Poll::Pending => self.sender.poll_ready(cx).map(|ready| ready.is_ok()),
        })
        .await
    }

    async fn send(&mut self, request: Request<Body>) -> Result<Response<Incoming>, Unsent> {
        let (mut answer, connection) = (pin!(self.sender.try_send_request(request)), &mut self.connection);
        let mut ended = false;
        std::future::poll_fn(|cx| {
            ended = ended || Pin::new(&mut *connection).poll(cx).is_ready();
            answer.as_mut().poll(cx)
        })
        .await
        .map_err(|mut e| Unsent { request: e.take_message(), why: causes(e.error()) })
    }
}

/// A request without an answer; `request` is there when nothing of it was written.
struct Unsent {
    request: Option<Request<Body>>,
    why: String,
}

struct Resting {
    link: Box<Link>,
    since: Instant,
}

/// The connections to one origin.
pub(super) struct Pool {
    origin: Uri,
    connector: Connector,
    resting: Mutex<Vec<Resting>>,
    sweeping: AtomicBool,
    closed: AtomicBool,
}

impl Pool {
    pub(super) fn new(origin: Uri) -> Result<Arc<Self>> {
        let connector = Connector::new(origin.scheme_str() == Some("https"))?;
        let (sweeping, closed) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Arc::new(Self { origin, connector, resting: Mutex::default(), sweeping, closed }))
    }

    /// Sends a request and waits for the head of its answer. `repeatable`: it may be sent again when a connection
    /// that was used before ends without a word.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Body>,
        repeatable: bool,
    ) -> Result<Response<Answer>> {
        loop {
            let mut link = match self.take().await {
                Some(link) => link,
                None => self.connect().await?,
            };
            let spare = (repeatable && link.used).then(|| request.clone());
            match link.send(request).await {
                Ok(response) => {
                    link.used = true;
                    let pool = self.clone();
                    return Ok(response.map(|incoming| Answer { incoming, link: Some(link), pool }));
                }
                Err(Unsent { request: unsent, why }) => match unsent.or(spare).filter(|_| link.used) {
                    Some(again) => request = again,
                    None => return Err(self.failed(&format!("no answer: {why}"))),
                },
            }
        }
    }

    /// Opens a connection that will be needed soon.
    pub(super) async fn warm(self: &Arc<Self>) {
        if let Ok(mut link) = self.connect().await {
            link.used = true;
            self.put(link);
        }
    }

    pub(super) fn failed(&self, why: &str) -> Error {
        Error::new(ErrorKind::Transport, format!("{}: {why}", self.origin.to_string().trim_end_matches('/')))
    }

    async fn take(&self) -> Option<Box<Link>> {
        loop {
            let Resting { mut link, since } = self.lock().pop()?;
            if since.elapsed() > STALE {
                // Lets the reactor look at the socket first.
                tokio::task::yield_now().await;
            }
            if link.is_alive().await {
                return Some(link);
            }
        }
    }

    async fn connect(&self) -> Result<Box<Link>> {
        let connecting = self.connector.clone().connect(self.origin.clone());
        let io = match tokio::time::timeout(CONNECT, connecting).await {
            Ok(Ok(io)) => io,
            Ok(Err(why)) => return Err(self.failed(&format!("cannot connect: {why}"))),
            Err(_) => return Err(self.failed(&format!("no connection within {} s", CONNECT.as_secs()))),
        };
        let (sender, connection) = http1::handshake(io).await.map_err(|e| self.failed(&causes(&e)))?;
        let mut link = Box::new(Link { sender, connection, used: false });
        if link.is_alive().await { Ok(link) } else { Err(self.failed("the connection was closed at once")) }
    }

    fn put(self: &Arc<Self>, link: Box<Link>) {
        let mut resting = self.lock();
        if self.closed.load(Ordering::Relaxed) || resting.len() >= MAX_RESTING {
            return;
        }
        resting.push(Resting { link, since: Instant::now() });
        drop(resting);
        if !self.sweeping.swap(true, Ordering::Relaxed) {
            let pool = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(REST).await;
                    let Some(pool) = pool.upgrade() else { return };
                    let mut resting = pool.lock();
                    let old: Vec<_> = resting.extract_if(.., |r| r.since.elapsed() >= REST).collect();
                    let empty = resting.is_empty();
                    if empty {
                        pool.sweeping.store(false, Ordering::Relaxed);
                    }
                    drop(resting);
                    drop(old);
                    if empty {
                        return;
                    }
                }
            });
        }
    }

    /// Closes what rests, and from now on what comes to rest.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let resting = std::mem::take(&mut *self.lock());
        drop(resting);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Resting>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The body of an answer. Read to its end, its connection is used again; dropped before, it is closed.
pub(super) struct Answer {
    incoming: Incoming,
    link: Option<Box<Link>>,
    pool: Arc<Pool>,
}

impl Answer {
    /// The next piece.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        loop {
            if self.link.as_mut().is_some_and(|link| link.drive(cx).is_ready()) {
                // What was read before the connection ended is still to be had.
                self.link = None;
            }
            match std::task::ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if self.incoming.is_end_stream() {
                        self.release(cx);
                    }
                    if let Ok(piece) = frame.into_data() {
                        return Poll::Ready(Some(Ok(piece)));
                    }
                }
                Some(Err(e)) => {
                    self.link = None;
                    return Poll::Ready(Some(Err(self.pool.failed(&format!("the answer broke off: {}", causes(&e))))));
                }
                None => {
                    self.release(cx);
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// The body is complete: lets others use the connection, unless the server ends it.
    fn release(&mut self, cx: &mut Context<'_>) {
        if let Some(mut link) = self.link.take()
            && link.drive(cx).is_pending()
        {
            self.pool.put(link);
        }
    }

    async fn piece(&mut self) -> Result<Option<Bytes>> {
        std::future::poll_fn(|cx| self.poll_piece(cx)).await.transpose()
    }

    /// The whole body.
    pub(super) async fn collect(mut self, limit: usize) -> Result<Bytes> {
        let expected = usize::try_from(self.incoming.size_hint().lower()).unwrap_or(usize::MAX);
        let (mut first, mut all) = (Bytes::new(), BytesMut::new());
        while let Some(piece) = self.piece().await? {
            let len = first.len() + all.len() + piece.len();
            if expected.max(len) > limit {
                return Err(Error::new(
                    ErrorKind::PeerMisbehaved,
                    format!("the answer is longer than the limit of {limit} bytes (max_message_bytes)"),
                ));
            }
            if len == piece.len() {
                first = piece;
            } else {
                if all.is_empty() {
                    all.reserve(expected.max(len));
                    all.extend_from_slice(&std::mem::take(&mut first));
                }
                all.extend_from_slice(&piece);
            }
            if self.incoming.is_end_stream() {
                break;
            }
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }
}
