use std::collections::HashMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body as HttpBody;

use super::admit::Verb;
use super::body::Body;
use super::forwarded::Proxies;
#[cfg(feature = "auth")]
use super::guard::Guard;
use super::headers::{Accepts, SESSION_ID, Single, Version};
use super::incoming::collect;
use super::lanes::Resumption;
use super::options::{HttpOptions, Patience};
use super::origin::Allowed;
use super::outlet::{End, Outlet};
use super::pair::{self, Pairs};
use super::reply::{self, Refusal};
use super::sender::Sender;
use super::sessions::Sessions;
use super::shares::{Counted, Shares};
use super::tickets::{LISTENERS_FULL, News, STREAMS_FULL};
use super::uses::Begun;
use super::{cors, ending, heavy, legacy, modern};
use crate::budget::{self, Reclaim};
use crate::call::Link;
use crate::driver::{Peer, now, runtime};
use crate::error::{Error, Result};
use crate::jsonrpc::{self, Decoded, Limits, Message, code};
use crate::protocol::revision::{Revision, modern as envelope};
use crate::protocol::{self, Facts, Head, Origin};
use crate::server::{Drains, Meter, Server, Usage};
use crate::signal::Signal;

/// A server as a function from HTTP request to HTTP response, without a socket: served by
/// [`Server::serve_http`], or mounted in any HTTP server. Both eras on one path. A clone is the same endpoint.
///
/// Dropping the future or the response's body means that the client has gone away.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use http_body_util::Full;
/// use tricorn::http::HttpOptions;
/// use tricorn::prelude::*;
///
/// let options = HttpOptions::new().stateless(true).allowed_hosts(["mcp.example.com"]);
/// let endpoint = Server::new("demo").endpoint(options)?;
/// // In an HTTP server of your own, with the request that it has read:
/// let ping = Full::from(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#);
/// let request = http::Request::post("https://mcp.example.com/mcp")
///     .header("host", "mcp.example.com")
///     .header("content-type", "application/json")
///     .header("accept", "application/json, text/event-stream");
/// let response = endpoint.handle(request.body(ping).unwrap()).await;
/// assert_eq!(response.status(), 200);
/// # Ok(())
/// # }
/// ```
///
/// With `axum`: `Router::new().nest_service("/mcp", endpoint)`.
#[derive(Clone)]
pub struct Endpoint {
    pub(super) inner: Arc<Inner>,
}

type Waiting = HashMap<u64, (Weak<Outlet>, Weak<Peer>)>;

pub(super) struct Inner {
    pub(super) server: Server,
    pub(super) options: HttpOptions,
    pub(super) limits: Limits,
    pub(super) max_queued: usize,
    pub(super) max_in_flight: usize,
    pub(super) keep_alive: Duration,
    pub(super) patience: Patience,
    pub(super) resumption: Option<Resumption>,
    pub(super) sessions: Sessions,
    pub(super) pairs: Pairs,
    pub(super) allowed: Allowed,
    #[cfg(feature = "auth")]
    pub(super) guard: Option<Arc<Guard>>,
    /// True for a mounted endpoint: a listening one has a path, a mounted one is reached wherever its host has put it.
    pub(super) mounted: bool,
    /// Cause of all requests: the listening on a port.
    pub(super) origin: Option<Origin>,
    /// The stateless requests that wait for their handlers.
    open: Mutex<Waiting>,
    pub(super) last: AtomicUsize,
    /// The stateless requests that are being answered.
    pub(super) stateless: Counted,
    /// The calls of sessions whose handlers run.
    pub(super) calls: Arc<Counted>,
    /// The listen streams, from their requests on.
    pub(super) listening: Shares<News>,
    /// The standalone streams.
    pub(super) streams: Shares<News>,
    pub(super) proxies: Proxies,
    /// The server's own facts, and those of them that hold without sessions.
    pub(super) sessionless: Mutex<Option<(Arc<Facts>, Arc<Facts>)>>,
    pub(super) closed: AtomicBool,
    kept: AtomicBool,
    /// Held while a copy of a session of another process comes in.
    #[cfg(feature = "redis")]
    pub(super) adopting: Mutex<()>,
    /// Number of the streams of answers that go out at other processes.
    #[cfg(feature = "redis")]
    pub(super) writers: Arc<AtomicUsize>,
    /// A mounted endpoint uses the server from its first request on.
    pub(super) begun: Begun,
    /// Number of futures that wait for its end.
    pub(super) ending: AtomicUsize,
    /// The server drains.
    pub(super) drains: AtomicBool,
    /// Set when the endpoint is dropped.
    pub(super) gone: Arc<Signal>,
}

impl Server {
    /// The server as an HTTP endpoint without a socket, which answers whatever path it is mounted at. With
    /// `allowed_hosts` left empty it answers to the loopback names with any port: say what it is called elsewhere.
    ///
    /// # Errors
    /// A mistake in the server's definition; [`Misuse`](crate::ErrorKind::Misuse) naming the option that is wrong.
    pub fn endpoint(&self, options: HttpOptions) -> Result<Endpoint> {
        Endpoint::new(self, options, None, None)
    }
}

impl Endpoint {
    /// `port` is the one listened on, if it is this crate that listens.
    pub(super) fn new(
        server: &Server,
        options: HttpOptions,
        port: Option<u16>,
        origin: Option<Origin>,
    ) -> Result<Self> {
        server.check()?;
        options.check()?;
        let of_server = server.options();
        let inner = Arc::new(Inner {
            server: server.clone(),
            limits: server.limits(),
            max_queued: of_server.max_queued_notifications,
            max_in_flight: of_server.max_in_flight,
            keep_alive: options.keep_alive()?,
            patience: options.patience()?,
            resumption: options.resumption()?,
            sessions: Sessions::new(options.max_sessions, options.session_idle()?),
            pairs: Pairs::default(),
            allowed: Allowed::new(&options, port),
            #[cfg(feature = "auth")]
            guard: Guard::of(server, &options, port)?,
            mounted: port.is_none(),
            origin,
            open: Mutex::default(),
            last: AtomicUsize::new(0),
            stateless: Counted::new(options.max_connections),
            calls: Arc::new(Counted::new(options.max_connections)),
            listening: Shares::new((options.max_connections / 2).max(1), LISTENERS_FULL),
            streams: Shares::new(options.max_connections, STREAMS_FULL),
            proxies: Proxies::parse(&options.trusted_proxies)?,
            sessionless: Mutex::default(),
            closed: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            #[cfg(feature = "redis")]
            adopting: Mutex::default(),
            #[cfg(feature = "redis")]
            writers: Arc::default(),
            begun: Begun::default(),
            options,
            ending: AtomicUsize::new(0),
            drains: AtomicBool::new(false),
            gone: Arc::default(),
        });
        let meter: Arc<dyn Meter> = inner.clone();
        server.shared.add_meter(&meter);
        let idle: Arc<dyn Reclaim> = inner.clone();
        budget::reclaim_from(&idle);
        if inner.mounted {
            let drains: Arc<dyn Drains> = inner.clone();
            let mut mounted = server.shared.mounted.lock().unwrap_or_else(PoisonError::into_inner);
            mounted.retain(|other| other.strong_count() > 0);
            mounted.push(Arc::downgrade(&drains));
        }
        Ok(Self { inner })
    }

    /// Answers one request.
    pub async fn handle<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes>,
    {
        self.answer(request, None).await
    }

    /// Answers one request that has come from there, if that is known.
    pub(super) async fn answer<B>(&self, request: Request<B>, from: Option<IpAddr>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes>,
    {
        let (head, body) = request.into_parts();
        #[cfg(feature = "auth")]
        if let Some(response) = self.inner.metadata(&head) {
            return response;
        }
        if let Some(response) = self.inner.probed(&head) {
            return response;
        }
        let page = self.inner.page(&head.headers).cloned();
        let admitted = self.inner.admit(head, from).await;
        #[cfg(feature = "redis")]
        let (admitted, named) = match admitted {
            Ok((verb, sender)) => match self.inner.found(&verb, &sender).await {
                Ok(named) => (Ok((verb, sender)), named),
                Err(refusal) => (Err(refusal), None),
            },
            Err(refusal) => (Err(refusal), None),
        };
        let mut response = match admitted {
            Ok((Verb::Post(accepts), sender)) => self.inner.post(sender, body, accepts).await,
            Ok((verb @ (Verb::Get | Verb::OpenPair), sender))
                if (self.inner.is_ending() || self.inner.is_draining())
                    && !(matches!(verb, Verb::Get) && legacy::resumes_an_answer(&sender.headers)) =>
            {
                ending::refused(None)
            }
            Ok((Verb::Get, sender)) => legacy::get(&self.inner, &sender).await,
            Ok((Verb::Delete, sender)) => legacy::delete(&self.inner, &sender),
            Ok((Verb::OpenPair, sender)) => pair::get(&self.inner, sender).await,
            Ok((Verb::PostToPair(session), sender)) => self.inner.post_to_pair(&session, sender, body).await,
            Ok((Verb::Preflight, sender)) => cors::preflight(&sender.headers),
            Err(refusal) => refusal.into(),
        };
        #[cfg(feature = "redis")]
        if let Some(named) = named {
            named.done(&self.inner, response.status()).await;
        }
        if let Some(page) = page {
            cors::allow(&mut response, page);
            #[cfg(feature = "auth")]
            self.inner.expose_challenge(&mut response);
        }
        response
    }

    /// The answer to what is no HTTP request.
    pub(crate) fn malformed(&self, why: &str) -> Response<Body> {
        Refusal::new(StatusCode::BAD_REQUEST, format!("malformed request: {why}")).into()
    }

    /// Ends every session, stream and running call. Later requests are refused.
    pub(super) fn close(&self) {
        self.inner.close();
    }
}

impl<B> hyper::service::Service<Request<B>> for Endpoint
where
    B: HttpBody<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { Ok(endpoint.handle(request).await) })
    }
}

/// For `nest_service` of `axum`, and whatever else speaks `tower`.
impl<B> tower_service::Service<Request<B>> for Endpoint
where
    B: HttpBody<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { Ok(endpoint.handle(request).await) })
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

impl Inner {
    /// The origin of the page that asks, if the options name it.
    pub(super) fn page<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        headers.get(http::header::ORIGIN).filter(|origin| origin.to_str().is_ok_and(|o| self.allowed.names(o)))
    }

    async fn post_to_pair<B>(self: &Arc<Self>, session: &str, sender: Sender, body: B) -> Response<Body>
    where
        B: HttpBody<Data = Bytes>,
    {
        let owner = sender.holder().owner();
        if budget::is_spent(owner) {
            return Refusal::over_budget().into();
        }
        let body = match collect(&sender.headers, body, self.limits.max_message_bytes, owner).await {
            Ok(body) => body,
            Err(refusal) => return refusal.into(),
        };
        let body = unmarked(body);
        let decoded = jsonrpc::decode(&body, &self.limits);
        #[cfg(feature = "redis")]
        if let Some(passed) = self.passes_to_pair(session, &sender, &body, &decoded).await {
            return passed;
        }
        let needed = || {
            let pair = self.pairs.find(session, sender.principal.as_ref());
            self.scopes_needed(pair.as_ref().map(|pair| &*pair.peer), decoded.as_ref().ok())
        };
        if let Err(refusal) = self.permit(&sender, needed) {
            return refusal.into();
        }
        match decoded {
            Ok(decoded) if asks(&decoded) && self.is_ending() => ending::refused(id_of(&decoded)),
            Ok(decoded) => pair::post(self, session, sender, decoded),
            Err(error) => pair::garbled(self, session, &sender, &error).into(),
        }
    }

    /// Returns true if the session that a request names has batches. Without one it is told what is missing.
    fn takes_batches(&self, sender: &Sender) -> bool {
        let id = Single::of(&sender.headers, &SESSION_ID).text();
        let session = id.and_then(|id| self.sessions.find(id, sender.principal.as_ref(), now()));
        session.is_none_or(|session| session.peer.takes_batches())
    }

    async fn post<B>(self: &Arc<Self>, sender: Sender, body: B, accepts: Accepts) -> Response<Body>
    where
        B: HttpBody<Data = Bytes>,
    {
        let owner = sender.holder().owner();
        if budget::is_spent(owner) {
            return Refusal::over_budget().into();
        }
        let body = match collect(&sender.headers, body, self.limits.max_message_bytes, owner).await {
            Ok(body) => body,
            Err(refusal) => return refusal.into(),
        };
        let body = unmarked(body);
        // A server without sessions takes all for what it speaks.
        let version = Version::of(&sender.headers);
        let modern = version.is_modern || !self.has_sessions();
        let mut limits = self.limits;
        if body.trim_ascii_start().first() == Some(&b'[') && (modern || !self.takes_batches(&sender)) {
            limits.max_batch = 0;
        }
        let turn = heavy::turn(body.len(), || sender.holder()).await;
        let read = heavy::at_length(body.len(), || protocol::decode(&body, &limits));
        drop(turn);
        let (decoded, head) = match read {
            Ok((decoded, head)) => (Ok(decoded), head),
            Err(error) => (Err(error), None),
        };
        let needed = || {
            let id = Single::of(&sender.headers, &SESSION_ID).text().filter(|_| !modern);
            let session = id.and_then(|id| self.sessions.find(id, sender.principal.as_ref(), now()));
            self.scopes_needed(session.as_ref().map(|session| &*session.peer), decoded.as_ref().ok())
        };
        if let Err(refusal) = self.permit(&sender, needed) {
            return refusal.with_id(decoded.as_ref().ok().and_then(id_of)).into();
        }
        let decoded = match decoded {
            Ok(decoded) => decoded,
            Err(error) if !modern && (error.answers.is_some() || !error.answers_too.is_empty()) => {
                return legacy::garbled(self, sender, error, accepts).await;
            }
            Err(error) => {
                let revision = version.text.text().and_then(Revision::parse);
                let revision = revision.or_else(|| modern.then_some(Revision::NEWEST));
                return Refusal::undecodable(&error, revision.map(Revision::rules)).into();
            }
        };
        // The decoded parts hold what they need of it.
        drop(body);
        if self.is_ending() && asks(&decoded) {
            return ending::refused(id_of(&decoded));
        }
        match decoded {
            Decoded::One(Message::Request { id, method, params }) => {
                match head.map_or_else(|| Head::read(params.as_ref()), Ok) {
                    Ok(head) if head.is_modern() || (modern && method != "initialize") => {
                        let request = modern::Request { id, method, params, head };
                        let facts = self.server.facts();
                        match modern::check(self, &facts, &sender.headers, version, &request) {
                            Ok(row) => modern::post(self, sender, request, facts, row, accepts).await,
                            Err(error) => Refusal::bad(Some(&request.id), &error).into(),
                        }
                    }
                    Err(error) if modern => Refusal::bad(Some(&id), &error).into(),
                    head => {
                        let decoded = Decoded::One(Message::Request { id, method, params });
                        legacy::post(self, sender, decoded, head.ok(), accepts).await
                    }
                }
            }
            Decoded::One(Message::Notification { params, .. }) if modern || has_envelope(params.as_ref()) => {
                // No notification of a client means anything here.
                reply::empty(StatusCode::ACCEPTED)
            }
            Decoded::Batch(_) if modern => refuse("batches are not part of this revision: send one message at a time"),
            Decoded::One(Message::Response { .. } | Message::Error { .. }) if modern => {
                refuse("responses are not part of this revision: the server sends no requests")
            }
            decoded => legacy::post(self, sender, decoded, None, accepts).await,
        }
    }

    /// Checks that a request's access token has the scopes that it needs.
    #[cfg(not(feature = "auth"))]
    #[expect(clippy::unused_self, reason = "as with access tokens")]
    pub(super) fn patience(&self, _: &Sender) -> Option<Duration> {
        None
    }

    #[cfg(not(feature = "auth"))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as with access tokens")]
    pub(super) fn permit(&self, _: &Sender, _: impl FnOnce() -> Vec<String>) -> Result<(), Refusal> {
        Ok(())
    }

    /// The scopes that the requests in a body need, as the session sees what there is.
    pub(super) fn scopes_needed(&self, session: Option<&Peer>, decoded: Option<&Decoded>) -> Vec<String> {
        let one = |message: &Message| match message {
            Message::Request { method, params, .. } => {
                self.server.shared.router.scopes_needed(session.map(Link::session), method, params.as_ref())
            }
            _ => Vec::new(),
        };
        match decoded {
            Some(Decoded::One(message)) => one(message),
            Some(Decoded::Batch(parts)) => parts.iter().flatten().flat_map(one).collect(),
            None => Vec::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.end_all("the server was closed");
    }

    /// Ends every session, stream and running call.
    pub(super) fn end_all(&self, why: &str) {
        let open: Vec<_> = self.lock().values().cloned().collect();
        for (outlet, peer) in open {
            if let (Some(outlet), Some(peer)) = (outlet.upgrade(), peer.upgrade()) {
                modern::end(&outlet, &peer);
            }
        }
        self.sessions.end_all(End::ServerClosed, why);
        self.pairs.end_all(End::ServerClosed, why);
    }

    /// Starts the task that ends idle sessions, and everything when the server is closed. It ends with the endpoint.
    pub(super) fn keep(self: &Arc<Self>) {
        if !self.kept.swap(true, Ordering::AcqRel) {
            runtime::spawn(keep(Arc::downgrade(self), self.gone.clone(), self.server.clone()));
        }
    }
}

async fn keep(inner: Weak<Inner>, gone: Arc<Signal>, server: Server) {
    let Some(idle) = inner.upgrade().map(|inner| inner.sessions.idle()) else {
        return;
    };
    let pause = (idle / 8).clamp(Duration::from_millis(50), Duration::from_secs(60));
    loop {
        tokio::select! {
            biased;
            () = gone.wait() => return,
            () = server.shared.stop.wait() => {
                if let Some(inner) = inner.upgrade() {
                    inner.close();
                }
                return;
            }
            () = tokio::time::sleep(pause) => {
                let Some(inner) = inner.upgrade() else { return };
                #[cfg(feature = "redis")]
                inner.keep_busy().await;
                inner.sessions.sweep(now());
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gone.set();
        self.sessions.end_all(End::ServerClosed, "the endpoint was dropped");
        self.pairs.end_all(End::ServerClosed, "the endpoint was dropped");
    }
}

impl Reclaim for Inner {
    fn reclaim(&self, bytes: usize) -> usize {
        self.sessions.forget(bytes)
    }
}

impl Meter for Inner {
    fn read(&self, usage: &mut Usage) {
        usage.sessions += self.sessions.len() + self.pairs.len();
        usage.in_flight += self.stateless.len() + self.sessions.in_flight() + self.pairs.in_flight();
        usage.streams += self.streams.len();
    }
}

/// Returns true if there is something to answer in it.
pub(super) fn asks(decoded: &Decoded) -> bool {
    !matches!(decoded, Decoded::One(message) if !matches!(message, Message::Request { .. }))
}

fn id_of(decoded: &Decoded) -> Option<&jsonrpc::Id> {
    match decoded {
        Decoded::One(Message::Request { id, .. }) => Some(id),
        _ => None,
    }
}

/// The body without a byte order mark.
fn unmarked(body: Bytes) -> Bytes {
    if body.starts_with(jsonrpc::MARK) { body.slice(jsonrpc::MARK.len()..) } else { body }
}

fn has_envelope(params: Option<&jsonrpc::RawJson>) -> bool {
    Head::read(params).is_ok_and(|head| envelope::version(&head).is_ok())
}

fn refuse(message: &str) -> Response<Body> {
    Refusal::bad(None, &Error::rpc(code::INVALID_REQUEST, message)).into()
}
