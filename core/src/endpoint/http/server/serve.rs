use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
#[cfg(unix)]
use tokio::io::Interest;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use super::access_log::Entry;
use super::activity::{Activity, Arriving, Busy, Metered, Pieces, Sockets, Watched};
use super::body::{Body, Quiet};
use super::descriptors;
use super::ending::Undrained;
use super::endpoint::Endpoint;
use super::frames::Framed;
use super::holder::Holder;
use super::options::{HttpOptions, Patience};
use super::shares::Said;
use super::tls::{HANDSHAKE, Tls};
use crate::budget;
use crate::driver::{Use, now, runtime};
use crate::endpoint::http::unix;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::Origin;
use crate::server::Server;
use crate::signal::Signal;

/// Approximate memory of a socket, in bytes.
const SOCKET: usize = 16 << 10;
/// Interval of the checks of silent sockets, where the times that they have are no shorter.
const SWEEP: Duration = Duration::from_secs(5);
const SHORTEST_SWEEP: Duration = Duration::from_millis(50);
/// Number of clients that are told at once that there is no room for them, and the time for each.
const TURNED_AWAY: usize = 64;
const TURNING: Duration = Duration::from_secs(1);
/// The longest head of a request.
const MAX_HEAD: usize = 64 << 10;
/// The most that is read of a socket, or waits to be written, at once.
const MAX_BUFFER: usize = 128 << 10;
/// The longest head of a request over HTTP/2, and its most fields: a byte may stand for a field there.
const MAX_LIST: u32 = 16 << 10;
const MAX_FIELDS: usize = 100;
/// Approximate memory of a connection over HTTP/2, in bytes, with all that it carries.
const MULTIPLEXED: usize = 512 << 10;
/// Requests of one connection at once, over HTTP/2.
const MAX_STREAMS: u32 = 100;
/// A client that says nothing for so long over HTTP/2 is asked for a sign of life, and has as long again.
const PING: Duration = Duration::from_secs(20);
/// After so many sockets were taken those that are there have their turn.
const TAKEN: u32 = 4;
/// Time for which a server that drains goes on to listen: connections that wait in the system's queue are taken, and a
/// balancer that has just been told may still send to one that is idle.
const LINGER: Duration = Duration::from_millis(100);
/// Time for answers that are on their way when the server closes.
const GRACE: Duration = Duration::from_millis(500);

impl Server {
    /// Listens and serves over HTTP/1.1, with a certificate over HTTP/2 as well, until [`HttpServer::close`] or [`Server::close`].
    ///
    /// # Errors
    /// A mistake in the server's definition or in the options; [`Transport`](ErrorKind::Transport) when the address
    /// cannot be listened on.
    pub async fn serve_http(&self, options: HttpOptions) -> Result<HttpServer> {
        self.serve_http_of(options, None).await
    }

    /// The same, with what caused it.
    pub(crate) async fn serve_http_of(&self, options: HttpOptions, origin: Option<Origin>) -> Result<HttpServer> {
        self.check()?;
        options.check()?;
        let uses = Use::begin(self).await?;
        let listeners = Listeners::bind(&options.host, options.port).await?;
        let address = listeners.address()?;
        let path = options.path.clone();
        let max = descriptors::most(options.max_connections);
        let tls = Tls::of(&options)?;
        let url = match (address, unix::named(&options.host)) {
            (Some(address), _) => url(if tls.is_some() { "https" } else { "http" }, address, &path),
            (None, Some(socket)) => unix::url(socket, &path),
            (None, None) => path.clone(),
        };
        let port = address.map_or(0, |address| address.port());
        let endpoint = Endpoint::new(self, options, Some(port), origin)?;
        let closing = Arc::new(Signal::default());
        let task = start(listeners, endpoint, self.clone(), tls, closing.clone(), max, uses);
        Ok(HttpServer { url, address, closing, task: Some(task) })
    }
}

/// Most connections that wait to be accepted, as far as the system lets them.
const BACKLOG: u32 = 4096;

/// Listens on the first address of a name that can be listened on.
async fn listen(host: &str, port: u16) -> std::io::Result<TcpListener> {
    let mut last = None;
    for address in tokio::net::lookup_host((host, port)).await? {
        match listen_at(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidInput, "the name has no address")))
}

/// As [`TcpListener::bind`], with room for a crowd.
fn listen_at(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On Windows it would let another program listen there, too.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The sockets that are listened on.
enum Listeners {
    Port {
        first: TcpListener,
        /// The other one of the two addresses of `localhost`: clients try either first.
        other: Option<TcpListener>,
    },
    #[cfg(unix)]
    Unix(unix::Listener),
}

/// A client that was let in.
enum Accepted {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(tokio::net::UnixStream),
}

impl Listeners {
    async fn bind(host: &str, port: u16) -> Result<Self> {
        #[cfg(unix)]
        if let Some(path) = unix::named(host) {
            let bound = unix::Listener::bind(path).await;
            let failed = |e: std::io::Error| {
                Error::new(ErrorKind::Transport, format!("cannot listen on {host} (host): {e}")).caused_by(e)
            };
            return bound.map(Self::Unix).map_err(failed);
        }
        #[cfg(not(unix))]
        if unix::named(host).is_some() {
            return Err(Error::misuse(format!("HTTP option \"host\": {host:?}: {}", unix::NONE)));
        }
        Self::bind_port(host.trim_matches(['[', ']']), port).await
    }

    async fn bind_port(host: &str, port: u16) -> Result<Self> {
        let failed = |host: &str, port: u16, e: std::io::Error| {
            Error::new(ErrorKind::Transport, format!("cannot listen on {host}:{port} (host, port): {e}")).caused_by(e)
        };
        let first = listen(host, port).await.map_err(|e| failed(host, port, e))?;
        let address = first.local_addr()?;
        if !host.eq_ignore_ascii_case("localhost") {
            return Ok(Self::Port { first, other: None });
        }
        let ip = match address.ip() {
            IpAddr::V4(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let other = SocketAddr::new(ip, address.port());
        match listen_at(other) {
            Ok(other) => Ok(Self::Port { first, other: Some(other) }),
            // Clients would get to whoever has it.
            Err(e) if e.kind() == std::io::ErrorKind::AddrInUse && port != 0 => {
                Err(failed(&format!("{host}, {ip}"), port, e))
            }
            Err(_) => Ok(Self::Port { first, other: None }),
        }
    }

    /// The one that the endpoint's URL names; `None` for a Unix socket.
    fn address(&self) -> Result<Option<SocketAddr>> {
        match self {
            Self::Port { first, .. } => Ok(Some(first.local_addr()?)),
            #[cfg(unix)]
            Self::Unix(_) => Ok(None),
        }
    }

    /// The next client, and where it is.
    async fn accept(&self) -> std::io::Result<(Accepted, IpAddr)> {
        let (stream, from) = match self {
            #[cfg(unix)]
            Self::Unix(listener) => {
                return Ok((Accepted::Unix(listener.accept().await?), IpAddr::V4(Ipv4Addr::LOCALHOST)));
            }
            Self::Port { first, other: None } => first.accept().await?,
            Self::Port { first, other: Some(other) } => tokio::select! {
                accepted = first.accept() => accepted?,
                accepted = other.accept() => accepted?,
            },
        };
        // Without it the second of two small writes waits for the client.
        let _ = stream.set_nodelay(true);
        Ok((Accepted::Tcp(stream), from.ip()))
    }
}

/// A server that listens. Dropped, it closes.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::http::HttpOptions;
/// use tricorn::prelude::*;
///
/// let serving = Server::new("demo").serve_http(HttpOptions::new().port(0)).await?; // any free port
/// let client = connect(serving.url()).await?;
/// client.ping().await?;
/// client.close().await;
/// serving.close();
/// serving.join().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HttpServer {
    url: String,
    address: Option<SocketAddr>,
    closing: Arc<Signal>,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl HttpServer {
    /// The endpoint's URL, such as `http://127.0.0.1:8000/mcp` or `unix:///run/mcp.sock`.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address listened on; `None` for a Unix socket.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Stops listening and ends what runs over HTTP; the server goes on elsewhere. [`join`](Self::join) waits for it.
    pub fn close(&self) {
        self.closing.set();
    }

    /// The signal that [`close`](Self::close) sets.
    pub(crate) fn closing(&self) -> Arc<Signal> {
        self.closing.clone()
    }

    /// Waits until serving has ended.
    pub async fn join(mut self) {
        if let Some(task) = self.task.take() {
            // Only a panic or a runtime that ends could fail it: serving has ended then too.
            let _ = task.await;
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.closing.set();
    }
}

fn url(scheme: &str, address: SocketAddr, path: &str) -> String {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        reachable.set_ip(match address.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    format!("{scheme}://{reachable}{path}")
}

const SOCKETS_FULL: &str = "there are as many connections as there may be (max_connections, or the process's limit of open \
     files): for each further one the one idle for longest of whoever has the most of them ends";
const NO_DESCRIPTORS: &str = "no connection can be taken: the process or the system has no file descriptors left; the one \
     idle for longest of whoever has the most connections ends";

/// Serves in a task of its own. No `async fn`: what those do is compiled again for each program that calls them.
fn start(
    listeners: Listeners,
    endpoint: Endpoint,
    server: Server,
    tls: Option<Tls>,
    closing: Arc<Signal>,
    max: usize,
    uses: Use,
) -> tokio::task::JoinHandle<()> {
    let undrained = Undrained::begin(&server);
    runtime::spawn(async move {
        accept(listeners, endpoint, server, tls, closing, (max, undrained)).await;
        uses.end().await;
    })
}

async fn accept(
    listeners: Listeners,
    endpoint: Endpoint,
    server: Server,
    tls: Option<Tls>,
    closing: Arc<Signal>,
    (max, undrained): (usize, Undrained),
) {
    let mut stop = std::pin::pin!(async {
        tokio::select! {
            () = closing.wait() => {}
            () = server.shared.stop.wait() => {}
        }
    });
    let mut drains = std::pin::pin!(server.shared.draining.wait());
    // Since it drains: the time that it goes on to listen, and that requests have.
    let mut leaving: Option<(Instant, Duration)> = None;
    let sockets = Arc::new(Sockets::new(max, SOCKETS_FULL));
    let (turned_away, no_descriptors) = (Arc::new(Semaphore::new(TURNED_AWAY)), Said::default());
    // Every connection has one end of it: the other one sees when all of them are gone.
    let (alive, mut gone) = mpsc::channel::<Infallible>(1);
    let mut sweep = tokio::time::interval(endpoint.inner.patience.shortest().div_f64(2.0).clamp(SHORTEST_SWEEP, SWEEP));
    let mut taken = 0;
    loop {
        taken = (taken + 1) % TAKEN;
        if taken == 0 {
            tokio::task::yield_now().await;
        }
        let leaves = async {
            match leaving {
                Some((at, _)) => tokio::time::sleep_until(at).await,
                None => drains.as_mut().await,
            }
        };
        let accepted = tokio::select! {
            () = stop.as_mut() => break,
            () = leaves => {
                if leaving.is_some() {
                    break;
                }
                let patience = endpoint.begin_drain();
                leaving = Some((Instant::now() + LINGER.min(patience), patience));
                continue;
            }
            accepted = listeners.accept() => accepted,
            _ = sweep.tick() => {
                sockets.sweep(&endpoint.inner.patience);
                continue;
            }
        };
        match accepted {
            Ok((stream, from)) => {
                let activity = Activity::new();
                match sockets.add(Holder::of(None, Some(from)), activity.clone()) {
                    Some(key) => {
                        let counted = Counted::new(server.clone(), sockets.clone(), key, alive.clone());
                        let acceptor = tls.as_ref().map(Tls::acceptor);
                        let client =
                            Client { from, endpoint: endpoint.clone(), closing: closing.clone(), activity, counted };
                        match stream {
                            Accepted::Tcp(stream) => drop(runtime::spawn(client.served(stream, acceptor))),
                            #[cfg(unix)]
                            Accepted::Unix(stream) => drop(runtime::spawn(client.served(stream, acceptor))),
                        }
                    }
                    // Everything answers somebody.
                    None => {
                        if let Ok(permit) = turned_away.clone().try_acquire_owned() {
                            let turned = async move {
                                let _ = match stream {
                                    Accepted::Tcp(stream) => tokio::time::timeout(TURNING, turn_away(stream)).await,
                                    #[cfg(unix)]
                                    Accepted::Unix(stream) => tokio::time::timeout(TURNING, turn_away(stream)).await,
                                };
                                drop(permit);
                            };
                            runtime::spawn(turned);
                        }
                    }
                }
            }
            Err(error) => {
                if descriptors::are_used_up(&error) {
                    no_descriptors.say(NO_DESCRIPTORS);
                    sockets.shrink();
                }
                // The client may be gone already; else somebody has to go first.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    drop(listeners);
    if let Some((_, patience)) = leaving {
        let busy = || sockets.any(|socket| socket.is_engaged());
        tokio::select! {
            () = stop.as_mut() => {}
            () = undrained.drain(&endpoint, patience, busy) => {}
            () = async {
                loop {
                    sweep.tick().await;
                    sockets.sweep(&endpoint.inner.patience);
                }
            } => {}
        }
    } else {
        drop(undrained);
    }
    endpoint.close();
    closing.set();
    drop(alive);
    let _ = tokio::time::timeout(GRACE * 2, gone.recv()).await;
    #[cfg(feature = "redis")]
    endpoint.inner.notes_are_sent(GRACE).await;
}

/// Tells a client that there is no room for it, whatever it asks.
async fn turn_away(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let body = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"too many connections (max_connections)"}}"#;
    let head =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n";
    let text = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    if stream.write_all(text.as_bytes()).await.is_err() || stream.shutdown().await.is_err() {
        return;
    }
    // Closed with something unread, the answer might be lost.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

/// A live socket.
struct Counted {
    server: Server,
    sockets: Arc<Sockets>,
    key: u64,
    _alive: mpsc::Sender<Infallible>,
}

impl Counted {
    fn new(server: Server, sockets: Arc<Sockets>, key: u64, alive: mpsc::Sender<Infallible>) -> Self {
        server.shared.connections.fetch_add(1, Ordering::Relaxed);
        Self { server, sockets, key, _alive: alive }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.sockets.remove(self.key);
        budget::worked(SOCKET);
        self.server.shared.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The socket of somebody who has connected.
trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Ready when something has come, or the end. Of a new socket tokio believes that it is readable: only reading tells.
    fn poll_heard(&self, context: &mut Context<'_>) -> Poll<()>;
}

impl Socket for TcpStream {
    fn poll_heard(&self, context: &mut Context<'_>) -> Poll<()> {
        self.poll_peek(context, &mut ReadBuf::new(&mut [0])).map(drop)
    }
}

#[cfg(unix)]
impl Socket for UnixStream {
    fn poll_heard(&self, context: &mut Context<'_>) -> Poll<()> {
        let peek = || Ok(rustix::net::recv(self, &mut [0], rustix::net::RecvFlags::PEEK)?);
        loop {
            if std::task::ready!(self.poll_read_ready(context)).is_err() {
                return Poll::Ready(());
            }
            match self.try_io(Interest::READABLE, peek) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                _ => return Poll::Ready(()),
            }
        }
    }
}

/// Somebody who has connected.
struct Client {
    from: IpAddr,
    endpoint: Endpoint,
    closing: Arc<Signal>,
    activity: Arc<Activity>,
    counted: Counted,
}

impl Client {
    /// Answers it until one of the two ends. A socket has the memory that answering takes once something has come: boxed,
    /// as it would make the task of a silent one as large.
    async fn served(self, stream: impl Socket, acceptor: Option<TlsAcceptor>) {
        tokio::select! {
            () = std::future::poll_fn(|context| stream.poll_heard(context)) => {}
            () = self.closing.wait() => return,
            // Another needs its place.
            () = self.activity.is_to_end(&self.endpoint.inner.patience) => return,
        }
        let socket = Metered { socket: stream, activity: self.activity.clone() };
        match acceptor {
            None => Box::pin(connection(socket, self)).await,
            Some(acceptor) => Box::pin(self.secured(socket, acceptor)).await,
        }
    }

    /// The same over TLS.
    async fn secured(self, socket: Metered<impl Socket>, acceptor: TlsAcceptor) {
        let shaken = tokio::select! {
            shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(socket)) => shaken,
            () = self.closing.wait() => return,
            // Another needs its place.
            () = self.activity.is_to_end(&self.endpoint.inner.patience) => return,
        };
        // The handshake itself refuses a client without TLS.
        let Ok(Ok(socket)) = shaken else { return };
        match socket.get_ref().1.alpn_protocol() == Some(b"h2") {
            true => Box::pin(multiplexed(socket, self)).await,
            false => Box::pin(connection(socket, self)).await,
        }
    }
}

/// State that the requests of one connection share.
struct Common {
    from: IpAddr,
    endpoint: Endpoint,
    activity: Arc<Activity>,
    counted: Counted,
    /// One request for each time that the task has its turn: whoever sends many at once waits for the others in between.
    turn: AtomicBool,
}

/// A request that is to be answered.
struct Begun {
    busy: Busy,
    client: IpAddr,
    entry: Option<Entry>,
    is_next: bool,
}

impl Common {
    fn begin(&self, request: &http::Request<Incoming>) -> Begun {
        let busy = self.activity.begin();
        let is_next = self.turn.swap(false, Ordering::Relaxed);
        let client = self.endpoint.inner.proxies.client(self.from, request.headers());
        if client != self.from {
            self.counted.sockets.belongs(self.counted.key, &Holder::of(None, Some(client)));
        }
        let logs = self.endpoint.inner.options.access_log;
        let entry = logs.then(|| Entry::new(client, request.method(), request.uri(), request.version()));
        Begun { busy, client, entry, is_next }
    }

    async fn answer(&self, request: http::Request<Incoming>, begun: Begun) -> Result<Response<Watched>, Infallible> {
        let Begun { mut busy, client, mut entry, is_next } = begun;
        if !is_next {
            tokio::task::yield_now().await;
            self.turn.store(false, Ordering::Relaxed);
        }
        let (version, is_get) = (request.version(), request.method() == http::Method::GET);
        let request = request.map(|body| Patient::new(body, &self.activity, self.endpoint.inner.patience));
        let mut response = self.endpoint.answer(request, Some(client)).await;
        if response.body().waits() {
            busy.waits();
        }
        if let Some(entry) = &mut entry {
            entry.answered(response.status());
        }
        let is_http2 = version == http::Version::HTTP_2;
        // A client that waits for its call may be asked on the way, and keeps the connection for its answers.
        let inner = &self.endpoint.inner;
        let may_be_asked = || (is_get || response.status() == StatusCode::ACCEPTED) && inner.asks_may_come();
        if !is_http2 && inner.is_draining() && !may_be_asked() {
            response.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| {
            let pieces = is_http2.then(|| Pieces::new(&body, &self.activity, &inner.patience));
            Watched { body, _busy: busy, pieces, entry }
        }))
    }
}

impl Common {
    fn refuse(&self, status: StatusCode, begun: Begun) -> Response<Watched> {
        let Begun { busy, mut entry, .. } = begun;
        if let Some(entry) = &mut entry {
            entry.answered(status);
        }
        let mut response = Response::new(Watched { body: Body::empty(), _busy: busy, pieces: None, entry });
        *response.status_mut() = status;
        response
    }
}

impl Client {
    fn apart(self) -> (Common, Arc<Signal>) {
        let Self { from, endpoint, closing, activity, counted } = self;
        (Common { from, endpoint, activity, counted, turn: AtomicBool::new(true) }, closing)
    }
}

async fn connection(socket: impl AsyncRead + AsyncWrite + Unpin, client: Client) {
    let (common, closing) = client.apart();
    let service = service_fn(|request| {
        let begun = common.begin(&request);
        common.answer(request, begun)
    });
    let mut builder = http1::Builder::new();
    // hyper's own timer would be set and cleared for each request.
    builder.header_read_timeout(None).max_header_size(MAX_HEAD).max_buf_size(MAX_BUFFER);
    let mut serving = std::pin::pin!(builder.serve_connection(TokioIo::new(socket), service));
    if driven(serving.as_mut(), &common, &closing, None).await == Driven::Closing {
        serving.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(GRACE, serving).await;
    }
}

/// The same over HTTP/2.
async fn multiplexed(socket: impl AsyncRead + AsyncWrite + Unpin, client: Client) {
    let (common, closing) = client.apart();
    common.activity.multiplexes();
    let common = Arc::new(common);
    let own = common.clone();
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        name_host(&mut request);
        let (common, begun) = (own.clone(), own.begin(&request));
        async move {
            if request.headers().len() > MAX_FIELDS {
                return Ok(common.refuse(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, begun));
            }
            common.answer(request, begun).await
        }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let buffer = u32::try_from(MAX_BUFFER).unwrap_or(u32::MAX);
    builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PING);
    builder.max_concurrent_streams(MAX_STREAMS).max_header_list_size(MAX_LIST).max_send_buf_size(MAX_BUFFER);
    builder.initial_stream_window_size(buffer).initial_connection_window_size(2 * buffer);
    let mut serving = std::pin::pin!(builder.serve_connection(TokioIo::new(Framed::new(socket)), service));
    // A client that is told to go elsewhere still gets its answers.
    if driven(serving.as_mut(), &common, &closing, Some(|serving| serving.graceful_shutdown())).await != Driven::Ended {
        // Says which requests were not taken.
        serving.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(GRACE, serving).await;
    }
    budget::worked(MULTIPLEXED);
}

/// Over HTTP/2 the host is part of the URL.
fn name_host(request: &mut http::Request<Incoming>) {
    if let Some(host) = request.uri().authority()
        && !request.headers().contains_key(HOST)
        && let Ok(host) = HeaderValue::from_str(host.as_str())
    {
        request.headers_mut().insert(HOST, host);
    }
}

/// Reason why a connection is driven no more.
#[derive(PartialEq)]
enum Driven {
    Ended,
    /// Its client was waited for long enough, or another needs its place.
    Due,
    Closing,
}

/// Drives a connection. `leave` tells its client that the server drains, where no answer can.
async fn driven<F: Future>(
    mut serving: Pin<&mut F>,
    common: &Common,
    closing: &Signal,
    mut leave: Option<fn(Pin<&mut F>)>,
) -> Driven {
    let inner = &common.endpoint.inner;
    let mut draining = std::pin::pin!(inner.server.shared.draining.wait());
    let (mut closing, mut look) = (std::pin::pin!(closing.wait()), std::pin::pin!(common.activity.look.notified()));
    std::future::poll_fn(|cx| {
        common.turn.store(true, Ordering::Relaxed);
        if serving.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Driven::Ended);
        }
        // Clients that may be asked on the way keep it.
        if let Some(tell) = leave
            && draining.as_mut().poll(cx).is_ready()
            && !inner.asks_may_come()
        {
            leave = None;
            tell(serving.as_mut());
            if serving.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Driven::Ended);
            }
        }
        while look.as_mut().poll(cx).is_ready() {
            if common.activity.is_due(&inner.patience) {
                return Poll::Ready(Driven::Due);
            }
            look.set(common.activity.look.notified());
        }
        closing.as_mut().poll(cx).map(|()| Driven::Closing)
    })
    .await
}

/// A request's body that does not wait for ever.
struct Patient {
    body: Incoming,
    quiet: Quiet,
    pace: Pace,
    arriving: Option<Arriving>,
}

impl Patient {
    fn new(body: Incoming, activity: &Arc<Activity>, patience: Patience) -> Self {
        let arriving = (!body.is_end_stream()).then(|| activity.arrives());
        Self { body, quiet: Quiet::new(patience.body), pace: Pace::of(patience), arriving }
    }
}

/// Pace of a body. Asked for the time only when it does not come at once.
#[derive(Debug)]
struct Pace {
    patience: Patience,
    started: Option<Duration>,
    bytes: u64,
}

impl Pace {
    fn of(patience: Patience) -> Self {
        Self { patience, started: None, bytes: 0 }
    }

    fn waits(&mut self, now: impl Fn() -> Duration) {
        self.started.get_or_insert_with(now);
    }

    /// Returns true if the body comes too slowly, now that so much of it has come.
    fn is_slow(&mut self, bytes: usize, now: impl Fn() -> Duration) -> bool {
        self.bytes += bytes as u64;
        let allowed = self.patience.body.saturating_add(self.patience.of_bytes(self.bytes));
        self.started.is_some_and(|started| now().saturating_sub(started) > allowed)
    }
}

/// The body broke off, or its sender fell silent.
struct BrokenOff;

impl HttpBody for Patient {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(frame) => {
                self.quiet.restart();
                if frame.is_none() || self.body.is_end_stream() {
                    self.arriving = None;
                }
                let bytes = frame.iter().flatten().filter_map(Frame::data_ref).map(Bytes::len).sum();
                if frame.is_some() && self.pace.is_slow(bytes, now) {
                    return Poll::Ready(Some(Err(BrokenOff)));
                }
                Poll::Ready(frame.map(|f| f.map_err(|_| BrokenOff)))
            }
            Poll::Pending => {
                self.pace.waits(now);
                self.quiet.poll(cx).map(|()| Some(Err(BrokenOff)))
            }
        }
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
    fn a_body_has_a_minute_and_what_its_size_takes() {
        let at = |seconds| move || Duration::from_secs(seconds);
        let patience = HttpOptions::new().patience().expect("defaults");
        let mut trickle = Pace::of(patience);
        assert!(!trickle.is_slow(1, at(0)), "it came at once");
        trickle.waits(at(10));
        assert!(!trickle.is_slow(1, at(69)));
        assert!(trickle.is_slow(1, at(128)));
        let mut large = Pace::of(patience);
        large.waits(at(0));
        assert!(!large.is_slow(4 << 20, at(1000)));
        assert!(large.is_slow(1, at(1100)));
        let mut hasty = Pace::of(HttpOptions::new().body_timeout(Duration::from_secs(1)).patience().expect("options"));
        hasty.waits(at(0));
        assert!(hasty.is_slow(1, at(3)));
        let mut any = Pace::of(HttpOptions::new().min_rate(0).patience().expect("options"));
        any.waits(at(0));
        assert!(!any.is_slow(1, at(100_000)));
    }
}
