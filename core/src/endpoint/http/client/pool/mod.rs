//! Connections to one origin, kept open between exchanges.
//!
//! An exchange drives its connection itself: the task that waits for an answer is the one that writes the request and
//! reads the socket, so that a call costs no hop between tasks. A connection at rest is not driven by anybody; what
//! has happened to it meanwhile is seen when it gets its next request.

use std::path::{Path, PathBuf};
#[cfg(feature = "auth")]
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{HeaderValue, PROXY_AUTHORIZATION};
use http::{StatusCode, Uri};
use http_body::Body;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
#[cfg(feature = "auth")]
use hyper_util::client::legacy::connect::{Connection, HttpInfo};
use tower_service::Service;

use super::head::Head;
use super::link::{Io, Link, Outgoing, Tcp, poll_data};
use super::multiplexed::{Multiplexed, REST, Slot, Stream, is_refused};
use crate::budget::{Charge, Owner, STEP};
use crate::client::{HttpBody, HttpTransport};
use crate::endpoint::http::network::{Network, Way, advised, with_port};
#[cfg(feature = "auth")]
use crate::endpoint::http::reach::{Reach, Whereabouts};
use crate::error::{Error, ErrorKind, Result};
use crate::idiom::named;

/// Time for name resolution, TCP and TLS together.
const CONNECT: Duration = Duration::from_secs(10);
/// A connection at rest for longer may have been closed by the server without the reactor having seen it.
const STALE: Duration = Duration::from_millis(500);
/// Connections that may refuse a request before it is given up.
const MAX_REFUSED: u32 = 2;
/// The most connections at rest.
const MAX_RESTING: usize = 64;
/// A body of more pieces than that has to bring some bytes in each of them: each is worked on.
const MAX_PIECES: usize = 100_000;
const LEAST_PIECE: usize = 4;
/// Room that a body gets before any of it is there.
const MAX_ROOM: usize = 1 << 20;

#[derive(Clone)]
enum Connector {
    Direct(HttpsConnector<HttpConnector>),
    /// To a socket of this machine.
    Unix(PathBuf),
    /// To a proxy that is asked for the whole URL.
    Forward(HttpConnector, Forward),
    Tunnel(HttpsConnector<Tunnel<HttpConnector>>),
    Socks(HttpsConnector<SocksV5<HttpConnector>>),
    /// The program carries it itself.
    Given(Arc<dyn HttpTransport>),
}

/// A proxy for requests in the clear, and what it is shown.
#[derive(Clone)]
struct Forward {
    at: Uri,
    auth: Option<HeaderValue>,
}

impl Connector {
    fn new(network: &Network, origin: &Uri) -> Result<Self> {
        if let Some(transport) = &network.transport {
            return Ok(Self::Given(transport.clone()));
        }
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT));
        http.enforce_http(false);
        let failed = |why: String| Error::new(ErrorKind::Transport, why);
        Ok(match network.way(origin, http.clone()).map_err(failed)? {
            Way::Direct => Self::Direct(network.secured_for_exchanges(http).map_err(failed)?),
            Way::Forward(at, auth) => Self::Forward(http, Forward { at, auth }),
            Way::Tunnel(tunnel) => Self::Tunnel(network.secured_for_exchanges(tunnel).map_err(failed)?),
            Way::Socks(socks) => Self::Socks(network.secured_for_exchanges(socks).map_err(failed)?),
        })
    }

    async fn connect(self, to: Uri) -> Result<Io, Unmade> {
        match self {
            Self::Direct(connector) => made(connector, to).await,
            Self::Unix(path) => local(&path).await,
            Self::Tunnel(connector) => made(connector, to).await,
            Self::Socks(connector) => {
                let port = if to.scheme() == Some(&http::uri::Scheme::HTTPS) { 443 } else { 80 };
                made(connector, with_port(&to, port)).await
            }
            Self::Forward(mut http, Forward { at, .. }) => match std::future::poll_fn(|cx| http.poll_ready(cx)).await {
                Ok(()) => {
                    http.call(at).await.map(|io| Io::Tcp(Box::new(Tcp::Http(io)))).map_err(|e| Unmade::of(e.into()))
                }
                Err(e) => Err(Unmade::of(e.into())),
            },
            Self::Given(_) => Err("the program makes the connections itself".to_owned().into()),
        }
    }

    /// Returns true if what is connected to is not the server.
    #[cfg(feature = "auth")]
    fn is_proxied(&self) -> bool {
        !matches!(self, Self::Direct(_))
    }
}

#[cfg(unix)]
async fn local(path: &Path) -> Result<Io, Unmade> {
    let stream = tokio::net::UnixStream::connect(path).await.map_err(|e| Unmade::of(e.into()))?;
    Ok(Io::Unix(hyper_util::rt::TokioIo::new(stream)))
}

#[cfg(not(unix))]
async fn local(_: &Path) -> Result<Io, Unmade> {
    Err(crate::endpoint::http::unix::NONE.to_owned().into())
}

/// The reason why there is no connection.
pub(super) struct Unmade {
    /// For people.
    pub(super) why: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Unmade {
    fn of(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self { why: causes(&*error), source: Some(error) }
    }
}

impl From<String> for Unmade {
    fn from(why: String) -> Self {
        Self { why, source: None }
    }
}

pub(super) async fn made<S>(mut connector: S, to: Uri) -> Result<Io, Unmade>
where
    S: Service<Uri, Response = Tcp, Error = Box<dyn std::error::Error + Send + Sync>>,
{
    match std::future::poll_fn(|cx| connector.poll_ready(cx)).await {
        Ok(()) => connector.call(to).await.map(|io| Io::Tcp(Box::new(io))).map_err(Unmade::of),
        Err(e) => Err(Unmade::of(e)),
    }
}

/// Words the failure of a connection through a proxy, with more than the words of whoever made it.
pub(in crate::endpoint::http) fn through(why: &str, proxy: &str) -> String {
    let why = if why.contains("proxy authorization required") {
        "it wants a password, or another one (407): http://user:password@host:port".to_owned()
    } else if why.contains("unsuccessful") {
        "it does not lead there: it refuses to, cannot get there, or wants another password".to_owned()
    } else {
        why.to_owned()
    };
    format!("through the proxy {proxy}: {why}")
}

/// An error and what caused it, as one text.
pub(in crate::endpoint::http) fn causes(error: &dyn std::error::Error) -> String {
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

/// A new connection.
enum Made {
    Link(Box<Link>),
    Multiplexed(Multiplexed),
}

struct Resting {
    link: Box<Link>,
    since: Instant,
}

/// The connections to one origin.
pub(super) struct Pool {
    origin: Uri,
    /// The same for people.
    shown: String,
    /// The server, as the owner of what it sends.
    owner: Owner,
    connector: Connector,
    /// The proxy that it goes through, as part of a sentence.
    via: Option<String>,
    resting: Mutex<Vec<Resting>>,
    /// Connections over HTTP/2.
    multiplexed: Slot,
    /// It has done so.
    multiplexes: AtomicBool,
    connecting: tokio::sync::Mutex<()>,
    sweeping: AtomicBool,
    closed: AtomicBool,
    /// Kinds of the addresses that it has connected to, each once.
    #[cfg(feature = "auth")]
    reached: Mutex<Vec<Reach>>,
}

impl Pool {
    pub(super) fn new(network: &Network, origin: Uri) -> Result<Arc<Self>> {
        let connector = Connector::new(network, &origin)?;
        let via = network.named_proxy(&origin).filter(|_| network.transport.is_none());
        Ok(Self::over(connector, via, origin))
    }

    /// To a socket of this machine, where no proxy is.
    pub(super) fn local(socket: PathBuf, origin: Uri) -> Arc<Self> {
        Self::over(Connector::Unix(socket), None, origin)
    }

    fn over(connector: Connector, via: Option<String>, origin: Uri) -> Arc<Self> {
        let (sweeping, closed) = (AtomicBool::new(false), AtomicBool::new(false));
        let shown = match &connector {
            Connector::Unix(path) => format!("unix:{}", path.display()),
            _ => origin.to_string().trim_end_matches('/').to_owned(),
        };
        Arc::new(Self {
            owner: Owner::of(&shown),
            origin,
            shown,
            connector,
            via,
            resting: Mutex::default(),
            multiplexed: Slot::default(),
            multiplexes: AtomicBool::new(false),
            connecting: tokio::sync::Mutex::default(),
            sweeping,
            closed,
            #[cfg(feature = "auth")]
            reached: Mutex::default(),
        })
    }

    /// Sends a request and waits for the head of its answer. `repeatable`: it may be sent again when a connection
    /// that was used before ends without an answer.
    pub(super) async fn send(self: &Arc<Self>, request: impl Fn() -> Outgoing, repeatable: bool) -> Result<Answer> {
        if let Connector::Given(transport) = &self.connector {
            return Box::pin(self.carried(&**transport, request())).await;
        }
        let mut refused = 0;
        loop {
            let mut link = match self.take().await {
                Some(link) => link,
                // Boxed, as everything that is rare, so that the tasks of ordinary exchanges are small.
                None => match self.multiplexed.get() {
                    Some(connection) => match Box::pin(self.send_on(connection, &request, repeatable)).await {
                        Some(answer) => return answer,
                        None => continue,
                    },
                    None => match Box::pin(self.connect_in_turn()).await? {
                        Made::Link(link) => link,
                        Made::Multiplexed(connection) => {
                            match Box::pin(self.send_on(connection, &request, false)).await {
                                Some(answer) => return answer,
                                // Another one may do it; a server that refuses all is not asked for ever.
                                None if refused < MAX_REFUSED => refused += 1,
                                None => return Err(self.failed("no answer: the server refuses requests")),
                            }
                            continue;
                        }
                    },
                },
            };
            let used = link.used;
            match link.send(self.addressed(request())).await {
                Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
                    return Err(self.failed("no answer: it switches protocols"));
                }
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    let head = Head { status: head.status, headers: head.headers };
                    return Ok(self.answer(head, Source::Link { link, body }));
                }
                Err(failed) => {
                    let unsent = failed.message().is_some();
                    let error = failed.into_error();
                    if !(used && (unsent || (repeatable && !error.is_parse()))) {
                        return Err(self.unanswered(unsent, &error));
                    }
                }
            }
        }
    }

    fn unanswered(&self, unsent: bool, error: &hyper::Error) -> Error {
        let failed = self.failed(&format!("no answer: {}", causes(error)));
        if unsent || error.is_parse() { failed } else { failed.answer_lost() }
    }

    /// As `send`, on this connection. `None`: it has ended, and the request may be sent on another.
    async fn send_on(
        self: &Arc<Self>,
        mut connection: Multiplexed,
        request: &impl Fn() -> Outgoing,
        repeatable: bool,
    ) -> Option<Result<Answer>> {
        match connection.send(request(), &self.origin).await {
            Ok(response) => {
                let (head, body) = response.into_parts();
                let head = Head { status: head.status, headers: head.headers };
                Some(Ok(self.answer(head, Source::Stream { body, _stream: connection.stream() })))
            }
            Err(failed) => {
                let unsent = failed.message().is_some();
                let error = failed.into_error();
                let unsent = unsent || is_refused(&error);
                self.multiplexed.remove(&connection);
                (!(unsent || (repeatable && !error.is_parse()))).then(|| Err(self.unanswered(unsent, &error)))
            }
        }
    }

    /// As `send`, by the program's own transport.
    async fn carried(self: &Arc<Self>, transport: &dyn HttpTransport, request: Outgoing) -> Result<Answer> {
        let url = format!("{}{}", self.origin.to_string().trim_end_matches('/'), request.uri());
        let answer = super::carried::send(transport, request, url).await;
        let (status, headers, body) = answer.map_err(|e| self.uncarried("no answer", e))?;
        let head = Head { status, headers };
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.failed("no answer: it switches protocols"));
        }
        Ok(self.answer(head, Source::Given(body)))
    }

    fn uncarried(&self, what: &str, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Misuse | ErrorKind::Cancelled => error,
            _ => self.failed(&format!("{what}: {}", error.message())).answer_lost(),
        }
    }

    fn answer(self: &Arc<Self>, head: Head, source: Source) -> Answer {
        Answer { head, source, shown: None, on: None, pool: self.clone() }
    }

    /// The request as whoever is connected to wants it: a proxy the whole URL.
    fn addressed(&self, mut request: Outgoing) -> Outgoing {
        if let Connector::Forward(_, forward) = &self.connector {
            let mut whole = self.origin.clone().into_parts();
            whole.path_and_query = request.uri().path_and_query().cloned();
            // It has the same parts as before.
            if let Ok(whole) = Uri::from_parts(whole) {
                *request.uri_mut() = whole;
            }
            if let Some(auth) = &forward.auth {
                request.headers_mut().insert(PROXY_AUTHORIZATION, auth.clone());
            }
        }
        request
    }

    /// Returns true if whoever is connected to keeps the connection. A proxy for requests in the clear may pass on the
    /// words of the server, and close its own: it has to say that it does not.
    fn is_kept(&self, head: &Head) -> bool {
        let says = |name: &str| {
            let values = head.headers.get_all(name).iter();
            values
                .filter_map(|value| value.to_str().ok())
                .any(|value| value.to_ascii_lowercase().contains("keep-alive"))
        };
        !matches!(self.connector, Connector::Forward(..)) || says("connection") || says("proxy-connection")
    }

    /// The proxy that answers are of, or come through, where requests are not secret to it.
    pub(super) fn forwarded_by(&self) -> Option<&str> {
        self.via.as_deref().filter(|_| matches!(self.connector, Connector::Forward(..)))
    }

    /// Opens a connection that will be needed soon.
    pub(super) async fn warm(self: &Arc<Self>) {
        if matches!(self.connector, Connector::Given(_)) {
            return;
        }
        if let Ok(Made::Link(mut link)) = self.connect().await {
            link.used = true;
            self.put(link);
        }
    }

    pub(super) fn failed(&self, why: &str) -> Error {
        Error::new(ErrorKind::Transport, format!("{}: {why}", self.shown))
    }

    async fn take(&self) -> Option<Box<Link>> {
        let Resting { link, since } = self.lock().pop()?;
        if since.elapsed() > STALE {
            // Lets the reactor look at the socket first.
            tokio::task::yield_now().await;
        }
        Some(link)
    }

    /// Connects; where connections are shared, to one at a time, which whoever waits then uses, too.
    async fn connect_in_turn(self: &Arc<Self>) -> Result<Made> {
        if !self.multiplexes.load(Ordering::Relaxed) {
            return self.connect().await;
        }
        let _turn = self.connecting.lock().await;
        match self.multiplexed.get() {
            Some(connection) => Ok(Made::Multiplexed(connection)),
            None => self.connect().await,
        }
    }

    async fn connect(self: &Arc<Self>) -> Result<Made> {
        let connecting = self.connector.clone().connect(self.origin.clone());
        let Unmade { why, source } = match tokio::time::timeout(CONNECT, connecting).await {
            Ok(Ok(io)) => match self.begun(io).await {
                Ok(made) => return Ok(made),
                Err(error) => Unmade::of(error.into()),
            },
            Ok(Err(unmade)) => unmade,
            Err(_) => {
                let through = self.via.as_ref().map_or(String::new(), |proxy| format!(" through the proxy {proxy}"));
                return Err(self.failed(&format!("no connection{through} within {} s", CONNECT.as_secs())));
            }
        };
        let why = match &self.via {
            Some(proxy) => through(&why, proxy),
            None => why,
        };
        let failed = self.failed(&format!("cannot connect: {}", advised(why)));
        Err(match source {
            Some(source) => failed.caused_by(source),
            None => failed,
        })
    }

    async fn begun(self: &Arc<Self>, io: Io) -> hyper::Result<Made> {
        #[cfg(feature = "auth")]
        self.reach(&io);
        if !Multiplexed::is_spoken(&io) {
            return Ok(Made::Link(Box::new(Link::new(io).await?)));
        }
        let connection = Multiplexed::new(io).await?;
        self.multiplexes.store(true, Ordering::Relaxed);
        if !self.closed.load(Ordering::Relaxed) {
            // As the sweep does, so that it sees this one or has ended.
            let resting = self.lock();
            self.multiplexed.put(&connection);
            drop(resting);
            self.sweep_later();
        }
        Ok(Made::Multiplexed(connection))
    }

    /// Remembers where a connection leads. TLS has found by now that it is the server there.
    #[cfg(feature = "auth")]
    fn reach(&self, io: &Io) {
        // Where a proxy is says nothing of where the server is.
        if self.connector.is_proxied() {
            return;
        }
        let io = match io {
            Io::Tcp(io) => io,
            #[cfg(unix)]
            Io::Unix(_) => return,
        };
        let mut about = http::Extensions::new();
        io.connected().get_extras(&mut about);
        let Some(info) = about.get::<HttpInfo>() else { return };
        let reach = Reach::of(info.remote_addr().ip());
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        if !reached.contains(&reach) {
            reached.push(reach);
        }
    }

    fn put(self: &Arc<Self>, link: Box<Link>) {
        let mut resting = self.lock();
        if self.closed.load(Ordering::Relaxed) || resting.len() >= MAX_RESTING {
            return;
        }
        resting.push(Resting { link, since: Instant::now() });
        drop(resting);
        self.sweep_later();
    }

    /// Closes what has rested for long, when it has.
    fn sweep_later(self: &Arc<Self>) {
        if !self.sweeping.swap(true, Ordering::Relaxed) {
            let pool = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(REST).await;
                    let Some(pool) = pool.upgrade() else { return };
                    let mut resting = pool.lock();
                    let old: Vec<_> = resting.extract_if(.., |r| r.since.elapsed() >= REST).collect();
                    let empty = pool.multiplexed.sweep() && resting.is_empty();
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
        self.multiplexed.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Resting>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "auth")]
impl Whereabouts for Arc<Pool> {
    fn reaches(&self) -> Pin<Box<dyn Future<Output = Vec<Reach>> + Send + '_>> {
        Box::pin(async move {
            let reached = || self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if reached().is_empty() {
                self.warm().await;
            }
            reached()
        })
    }
}

/// An answer whose body is still to be read. Read to its end, its connection is used again; dropped before, it is
/// closed.
pub(super) struct Answer {
    pub(super) head: Head,
    /// The access token that its request has shown.
    pub(super) shown: Option<Shown>,
    /// The name of the exchange, where somebody wants to see what passes.
    pub(super) on: Option<Arc<str>>,
    source: Source,
    pool: Arc<Pool>,
}

/// Source of the body of an answer.
enum Source {
    Link {
        link: Box<Link>,
        body: Incoming,
    },
    /// One of many of a connection.
    Stream {
        body: Incoming,
        _stream: Stream,
    },
    Given(HttpBody),
    /// All of it was read, or it broke off.
    Over,
}

/// An access token that was shown.
#[derive(Clone)]
#[cfg_attr(not(feature = "auth"), expect(dead_code, reason = "there are none"))]
pub(super) struct Shown {
    /// Its number among the connection's tokens.
    pub(super) number: u64,
    pub(super) token: Arc<str>,
}

impl Answer {
    /// The proxy that may have answered in place of the server.
    pub(super) fn proxy(&self) -> Option<&str> {
        self.pool.forwarded_by()
    }

    /// The next piece of the body.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let read = match &mut self.source {
            Source::Link { link, body } => ready!(link.poll_piece(body, cx)).map(|piece| (piece, body.is_end_stream())),
            Source::Stream { body, .. } => ready!(poll_data(body, cx)).map(|piece| (piece, body.is_end_stream())),
            Source::Given(body) => {
                let piece = ready!(body.as_mut().poll_next(cx));
                let piece = piece.map(|piece| piece.map_err(|e| self.pool.uncarried("the answer broke off", e)));
                if !matches!(piece, Some(Ok(_))) {
                    self.source = Source::Over;
                }
                return Poll::Ready(piece);
            }
            Source::Over => return Poll::Ready(None),
        };
        let (piece, is_over) = match read {
            Some((Ok(piece), is_over)) => (Some(Ok(piece)), is_over),
            Some((Err(error), _)) => {
                self.source = Source::Over;
                let why = format!("the answer broke off: {}", causes(&error));
                (Some(Err(self.pool.failed(&why).answer_lost())), false)
            }
            None => (None, true),
        };
        if is_over {
            self.release(cx);
        }
        Poll::Ready(piece)
    }

    /// The body is complete: lets others use the connection, unless the server ends it.
    fn release(&mut self, cx: &mut Context<'_>) {
        if let Source::Link { mut link, .. } = std::mem::replace(&mut self.source, Source::Over)
            && link.is_reusable(cx)
            && self.pool.is_kept(&self.head)
        {
            self.pool.put(link);
        }
    }

    /// The whole body.
    pub(super) async fn collect(mut self, limit: usize) -> Result<Bytes> {
        let too_long = |bytes: String| {
            let option = named("max_message_bytes");
            let message = format!("the answer has {bytes} bytes, more than the limit of {limit} ({option})");
            Error::new(ErrorKind::PeerMisbehaved, message)
        };
        let length = match &self.source {
            Source::Link { body, .. } | Source::Stream { body, .. } => body.size_hint().exact(),
            Source::Given(_) | Source::Over => None,
        };
        if let Some(length) = length.filter(|length| *length > limit as u64) {
            return Err(too_long(length.to_string()));
        }
        let (mut all, mut charge, mut pieces) = (BytesMut::new(), self.charge(), 0);
        while let Some(piece) = std::future::poll_fn(|cx| self.poll_piece(cx)).await.transpose()? {
            if all.len() + piece.len() > limit {
                return Err(too_long(format!("at least {}", all.len() + piece.len())));
            }
            if !pays(&mut charge, all.len() + piece.len()) {
                return Err(over_budget(all.len() + piece.len()));
            }
            if all.is_empty() {
                if matches!(self.source, Source::Over) {
                    // All of it in one piece, as most are.
                    return Ok(charge.of(piece));
                }
                let length = length.and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
                all.reserve(length.min(MAX_ROOM));
            }
            all.extend_from_slice(&piece);
            pieces += 1;
            if pieces > MAX_PIECES && all.len() / pieces < LEAST_PIECE {
                let message =
                    format!("the answer comes in pieces of {} bytes, more than {MAX_PIECES}", all.len() / pieces);
                return Err(Error::new(ErrorKind::PeerMisbehaved, message));
            }
        }
        Ok(charge.of(all.freeze()))
    }

    /// The part of the budget that what it brings takes.
    pub(super) fn charge(&self) -> Charge {
        Charge::new(self.pool.owner)
    }
}

/// Takes or gives back what is missing to so many bytes, of which few are free. `false`: there are not so many left.
pub(super) fn pays(charge: &mut Charge, bytes: usize) -> bool {
    let wanted = if bytes > STEP { bytes } else { 0 };
    charge.fit(wanted) || charge.grow(wanted - charge.bytes())
}

/// Refuses an answer of so many bytes.
pub(super) fn over_budget(bytes: usize) -> Error {
    let option = named("max_memory");
    let message = format!("an answer of at least {bytes} bytes is more than this process may still keep ({option})");
    // As with one that is too long, nothing is asked for again.
    Error::new(ErrorKind::PeerMisbehaved, message)
}

#[cfg(test)]
mod tests;
