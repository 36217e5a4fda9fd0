//! Streamable HTTP, the client's side: each message of ours is one POST, its answer JSON or a stream of events.
//!
//! On the walk this is the mirror of the endpoint: `Sink::send` here, `Peer::handle` with what comes back.
//!
//! **Invariant**: decides nothing about the protocol; what a status or a broken stream means for a request goes to the
//! connection as an input.

#[cfg(feature = "auth")]
mod authorize;
pub(in crate::endpoint::http) mod carried;
pub(crate) mod encoding;
mod exchange;
mod fault;
mod head;
pub(crate) mod headers;
mod link;
mod mirror;
mod multiplexed;
#[cfg(feature = "auth")]
mod once;
mod out;
mod pair;
mod pool;
mod raw;
pub(crate) mod stream;
mod target;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue};
use http::{Method, StatusCode, Uri};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle};

use self::fault::Post;
#[cfg(feature = "auth")]
pub(super) use self::link::Tcp;
use self::mirror::Tools;
#[cfg(feature = "auth")]
pub(super) use self::once::once;
use self::pool::Pool;
#[cfg(feature = "auth")]
pub(super) use self::pool::{causes, through};
pub use self::raw::{Exchanged, Exchanges};
use self::target::Target;
use super::network::Network;
use crate::client::{ClientOptions, Closer};
use crate::driver::{Peer, Service, Sink, runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{self, Decoded, Id, Limits, Message, RawJson};
use crate::protocol::revision::Revision;
use crate::protocol::{Connection, Input, Outbound, Sent, Transport};

/// The longest that one notification or response of ours may hold up the next.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Attempts to send an answer to the server, with a pause in between, when it does not arrive.
const ANSWER_TRIES: usize = 3;
const ANSWER_PAUSE: Duration = Duration::from_millis(500);
/// Notifications and responses that wait to be sent.
const MAX_QUEUED: usize = 1024;
/// The longest that requests wait for the standalone stream. Some servers say nothing on it before the first event.
const LISTEN_PATIENCE: Duration = Duration::from_millis(200);
const MAX_REDIRECTS: usize = 3;

/// Joins an HTTP endpoint to a peer; with `pair`, one that is known to speak the oldest transport. Called by `endpoint/connect/mod.rs`, which then calls `peer.open`.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for a wrong URL or header.
pub(crate) fn connect(
    url: &str,
    headers: &[(String, String)],
    options: &ClientOptions,
    service: Arc<dyn Service>,
    pair: bool,
) -> Result<(Arc<Peer>, Arc<dyn Closer>)> {
    let target = Target::new(url, headers)?;
    let network = Network::of(options)?;
    let pool = match target.socket.clone() {
        Some(_) if network.transport.is_some() => {
            return Err(Error::misuse(
                "target \"url\": a Unix socket is not for an HTTP transport of the program's own",
            ));
        }
        Some(socket) => Pool::local(socket, target.origin.clone()),
        None => Pool::new(&network, target.origin.clone())?,
    };
    #[cfg(feature = "auth")]
    if target.socket.is_some() && options.auth.is_some() {
        return Err(Error::misuse(format!(
            "option \"auth\": a server on a Unix socket has no address that a login could name: send a token in \"{}\"",
            crate::idiom::named("headers")
        )));
    }
    let grace = crate::options::seconds("shutdown_grace", options.shutdown_grace)?;
    let transport = Transport { cancel_by_closing: true, ..Transport::new("http") };
    let connection = Connection::new(Arc::new(options.facts()), Arc::new(transport));
    let limits = options.limits();
    #[cfg(feature = "auth")]
    let authorizer = options.auth.as_ref().map(|auth| {
        let shown = target.headers(&Method::GET).contains_key(http::header::AUTHORIZATION);
        authorize::Authorizer::new(auth, url, &pool, network, options, shown)
    });
    #[cfg(feature = "auth")]
    let authorizer = authorizer.transpose()?;
    let mut shared = None;
    let peer = Peer::new(connection, limits, service, |peer| {
        let made = Arc::new(Shared {
            peer: peer.clone(),
            runtime: runtime::handle(),
            #[cfg(feature = "auth")]
            authorizer: authorizer.map(|authorizer| authorizer.of(peer)),
            state: Mutex::new(State { path: target.path.clone(), pair: pair.then_some(None), ..State::default() }),
            target,
            pool,
            limits,
            tools: Tools::default(),
        });
        shared = Some(made.clone());
        Arc::new(HttpSink(made))
    });
    peer.tap_with(options.tapping(None));
    let shared = shared.ok_or_else(|| Error::misuse("the peer made no sink"))?;
    Ok((peer, Arc::new(HttpCloser { shared, grace })))
}

/// The sending side of a client's peer.
struct HttpSink(Arc<Shared>);

impl Sink for HttpSink {
    fn send(&self, batch: Vec<Outbound>) {
        for Outbound { frame, sent, .. } in batch {
            match sent {
                Sent::Request { id, method, revision, params, idempotent } => {
                    self.0.start(Post { id, method, revision, params, idempotent, frame, session: None });
                }
                _ => self.0.queue(frame),
            }
        }
    }

    fn abandon(&self, id: &Id) {
        // Dropping the exchange closes its connection: in modern that is the cancellation.
        let running = self.0.lock().running.remove(id);
        if let Some(running) = running {
            running.abort();
        }
    }

    fn close(&self) {
        self.0.stop();
    }
}

impl Drop for HttpSink {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// State that the exchanges of one connection share.
struct Shared {
    peer: Weak<Peer>,
    /// Sockets belong to the runtime that they were opened on.
    runtime: Handle,
    target: Target,
    pool: Arc<Pool>,
    limits: Limits,
    tools: Tools,
    #[cfg(feature = "auth")]
    authorizer: Option<Arc<authorize::Authorizer>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: HashMap<Id, AbortHandle>,
    session: Option<HeaderValue>,
    /// The negotiated revision.
    revision: Option<Revision>,
    /// Address of requests; a permanent redirect changes it.
    path: Uri,
    /// The oldest transport is spoken, and messages go there once the server has said where.
    pair: Option<Option<Uri>>,
    /// Notifications and responses, which are sent one after the other.
    queue: VecDeque<Queued>,
    sending: bool,
    sender: Option<JoinHandle<()>>,
    /// `true` once the server has taken `initialized` and is listened to; requests wait for that.
    ready: Option<watch::Receiver<bool>>,
    listener: Option<AbortHandle>,
    closed: bool,
}

/// A notification or response that waits.
struct Queued {
    frame: Bytes,
    /// Session that it belongs to.
    session: Option<HeaderValue>,
    revision: Option<Revision>,
    /// Set for `initialized`.
    opens: Option<watch::Sender<bool>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, input: Input) {
        if let Some(peer) = self.peer.upgrade() {
            peer.handle(input);
        }
    }

    /// Gives the peer a message that answers nothing in particular. Text that is no message is passed over: there is no
    /// request to fail, and over HTTP no way to say so.
    fn feed(&self, on: Option<&str>, frame: &Bytes) {
        self.came(on, frame);
        match jsonrpc::decode_leniently(frame, &self.limits) {
            Ok(Decoded::One(message)) => {
                // An answer may come on another stream than the one that waits for it.
                let answered = match &message {
                    Message::Response { id, .. } | Message::Error { id: Some(id), .. } if !self.is_pair() => {
                        self.lock().running.remove(&id.clone().counted())
                    }
                    _ => None,
                };
                self.handle(Input::Received(message));
                answered.into_iter().for_each(|waiting| waiting.abort());
            }
            Ok(Decoded::Batch(parts)) => self.handle(Input::Batch(parts)),
            // All answers of the oldest transport come in this way.
            Err(error) if error.answers.is_some() => self.handle(Input::Invalid(error)),
            Err(_) => {}
        }
    }

    fn learn(&self, result: RawJson) -> RawJson {
        let mut warnings = Vec::new();
        let kept = self.tools.learn(&result, &mut |warning| warnings.push(warning));
        if let Some(peer) = self.peer.upgrade() {
            warnings.iter().for_each(|warning| peer.warn(warning));
        }
        kept.unwrap_or(result)
    }

    // ---- sessions ---------------------------------------------------------------------------------------------

    fn session(&self) -> Option<HeaderValue> {
        self.lock().session.clone()
    }

    fn begin_session(&self, session: Option<HeaderValue>) {
        self.lock().session = session;
    }

    // ---- the oldest transport ---------------------------------------------------------------------------------

    /// Returns true if the server was found to speak the oldest transport.
    fn is_pair(&self) -> bool {
        matches!(self.lock().pair, Some(Some(_)))
    }

    /// Returns true if the server is said to speak it.
    fn begins_with_pair(&self) -> bool {
        matches!(self.lock().pair, Some(None))
    }

    fn begin_pair(&self, target: Uri) {
        self.lock().pair = Some(Some(target));
    }

    fn resolved(&self, reference: &str) -> Option<Uri> {
        let path = self.lock().path.clone();
        self.target.resolved(&path, reference)
    }

    /// Runs what reads a stream that is not an answer's, instead of the one before.
    fn hold(&self, listening: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        let before = state.listener.replace(self.runtime.spawn(listening).abort_handle());
        drop(state);
        before.into_iter().for_each(|listener| listener.abort());
    }

    // ---- out --------------------------------------------------------------------------------------------------

    /// Sends a request in a task of its own.
    fn start(self: &Arc<Self>, mut post: Post) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        if post.is_initialize() {
            state.session = None;
            state.revision = None;
            if let Some(listener) = state.listener.take() {
                listener.abort();
            }
        }
        // A session that is lost before the task gets so far is still the one that it belongs to.
        post.session = state.session.clone();
        let ready = state.ready.clone().filter(|ready| !*ready.borrow());
        let (shared, id) = (self.clone(), post.id.clone());
        // Spawned under the lock, so that a task that ends at once finds its entry.
        // Boxed: the runtime moves a task several times.
        let task = self.runtime.spawn(Box::pin(async move {
            if let Some(mut ready) = ready {
                let _ = ready.wait_for(|ready| *ready).await;
            }
            exchange::run(shared, post).await;
        }));
        state.running.insert(id, task.abort_handle());
    }

    /// Opens the standalone stream of a legacy session. The receiver ends when the server has answered.
    fn listen(self: &Arc<Self>) -> oneshot::Receiver<()> {
        let (settled, settling) = oneshot::channel();
        let (revision, session) = {
            let state = self.lock();
            (state.revision, state.session.clone())
        };
        if !self.is_pair() {
            self.hold(stream::listen(self.clone(), revision, session, settled));
        }
        settling
    }

    fn finished(&self, id: &Id) {
        self.lock().running.remove(id);
    }

    /// Queues a notification or response.
    fn queue(self: &Arc<Self>, frame: Bytes) {
        let revision = self.peer.upgrade().and_then(|peer| peer.revision());
        let mut state = self.lock();
        state.revision = revision.or(state.revision);
        if state.closed {
            return;
        }
        if state.queue.len() >= MAX_QUEUED {
            drop(state);
            return self.handle(Input::Closed(format!("the server takes no messages: {MAX_QUEUED} wait to be sent")));
        }
        let mut message = Queued { frame, session: state.session.clone(), revision: state.revision, opens: None };
        if message.frame == jsonrpc::encode_notification("notifications/initialized", None) {
            let (opens, ready) = watch::channel(false);
            message.opens = Some(opens);
            state.ready = Some(ready);
            let pool = self.pool.clone();
            self.runtime.spawn(async move { pool.warm().await });
        }
        state.queue.push_back(message);
        if !std::mem::replace(&mut state.sending, true) {
            state.sender = Some(self.runtime.spawn(send_queued(self.clone())));
        }
    }

    #[cfg(feature = "auth")]
    fn is_logging_in(&self) -> bool {
        self.authorizer.as_ref().is_some_and(|authorizer| authorizer.is_busy())
    }

    #[cfg(not(feature = "auth"))]
    fn is_logging_in(&self) -> bool {
        false
    }

    /// Ends everything but the sending of what is queued.
    fn stop(&self) {
        #[cfg(feature = "auth")]
        if let Some(authorizer) = &self.authorizer {
            authorizer.stop();
        }
        let mut state = self.lock();
        state.closed = true;
        let running = std::mem::take(&mut state.running);
        let listener = state.listener.take();
        drop(state);
        running.into_values().chain(listener).for_each(|task| task.abort());
    }

    /// The orderly end: what is queued is sent, the session deleted.
    async fn end(self: Arc<Self>, grace: Duration) {
        let sender = self.lock().sender.take();
        if let Some(mut sender) = sender
            && tokio::time::timeout(grace, &mut sender).await.is_err()
        {
            sender.abort();
        }
        let (session, revision) = {
            let mut state = self.lock();
            (state.session.take(), state.revision)
        };
        if let Some(session) = session {
            let headers = |out: &mut HeaderMap| headers::put_session(out, revision, Some(&session));
            // A server may refuse, or be gone.
            let _ =
                tokio::time::timeout(grace, self.exchange(Method::DELETE, headers, &Bytes::new(), true, true)).await;
        }
        #[cfg(feature = "auth")]
        if let Some(authorizer) = &self.authorizer {
            authorizer.ended().await;
        }
        self.pool.close();
    }
}

/// Sends the queued messages one after the other.
async fn send_queued(shared: Arc<Shared>) {
    loop {
        let Queued { frame, session, revision, opens } = {
            let mut state = shared.lock();
            match state.queue.pop_front() {
                Some(next) => next,
                None => {
                    state.sending = false;
                    return;
                }
            }
        };
        let mut sending = std::pin::pin!(send_message(&shared, &frame, session, revision));
        let outcome = loop {
            match tokio::time::timeout(MESSAGE_TIMEOUT, &mut sending).await {
                Err(_) if shared.is_logging_in() => {}
                outcome => break outcome,
            }
        };
        match outcome {
            Ok(Err(error)) if notified(&shared, &frame).is_none() => {
                // Somebody over there waits for it.
                if let Some(peer) = shared.peer.upgrade() {
                    peer.warn(&format!("an answer to the server did not arrive: {}", error.message()));
                }
            }
            // A notification that does not arrive is not worth more; the next request will find out what is wrong.
            _ => {}
        }
        if let Some(opens) = opens {
            // The server may want to ask something while it works on the first request: it needs the stream for that.
            let _ = tokio::time::timeout(LISTEN_PATIENCE, shared.listen()).await;
            opens.send_replace(true);
        }
    }
}

async fn send_message(
    shared: &Shared,
    frame: &Bytes,
    session: Option<HeaderValue>,
    revision: Option<Revision>,
) -> Result<()> {
    let headers = |out: &mut HeaderMap| {
        headers::put_message(out, revision, session.as_ref(), || notified(shared, frame));
    };
    // An answer that comes twice is one that nobody waits for any more.
    let tries = if notified(shared, frame).is_some() { 1 } else { ANSWER_TRIES };
    let mut outcome = Ok(());
    for attempt in 0..tries {
        if attempt > 0 {
            tokio::time::sleep(ANSWER_PAUSE).await;
        }
        outcome = match shared.post(headers, frame, false).await {
            Ok(answer) => {
                let status = answer.head.status;
                // There is nothing in it for us; read so that the connection can be used again.
                answer.collect(shared.limits.max_message_bytes).await?;
                match status {
                    StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                        Err(Error::new(ErrorKind::Transport, format!("HTTP status {status}")))
                    }
                    _ => return Ok(()),
                }
            }
            // The next try would ask the user once more.
            Err(error) if error.kind() == ErrorKind::Auth => return Err(error),
            Err(error) => Err(error),
        };
    }
    outcome
}

/// The notification's method, if it is one.
fn notified(shared: &Shared, frame: &Bytes) -> Option<String> {
    match jsonrpc::decode(frame, &shared.limits) {
        Ok(Decoded::One(Message::Notification { method, .. })) => Some(method),
        _ => None,
    }
}

/// Ends the connection in order.
struct HttpCloser {
    shared: Arc<Shared>,
    grace: Duration,
}

impl Closer for HttpCloser {
    fn session_id(&self) -> Option<String> {
        self.shared.session().and_then(|id| id.to_str().ok().map(str::to_owned))
    }

    fn is_pair(&self) -> bool {
        self.shared.is_pair()
    }

    fn listed_elsewhere(&self, result: &RawJson) {
        self.shared.tools.learn_from_another(result);
    }

    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if let Some(peer) = self.shared.peer.upgrade() {
            peer.close("the client was closed");
        }
        self.shared.stop();
        let ending = self.shared.runtime.spawn(self.shared.clone().end(self.grace));
        Box::pin(async move {
            let _ = ending.await;
        })
    }
}
