//! From a target to a connected client.

use std::collections::VecDeque;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use tokio::sync::oneshot;

use super::memory::{Pipe, PipeSink};
use crate::client::{Client, ClientOptions, Closer, Connected, Target};
use crate::driver::{Peer, Service, runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{RawJson, code};
use crate::protocol::revision::Era;
use crate::protocol::{Call, Connection, Opening, Transport};
use crate::server::{Link, Server};

/// Connects to a server with every option at its default: a URL, or a command line with POSIX quoting.
///
/// # Errors
/// As [`Client::connect`].
pub async fn connect(target: &str) -> Result<Client> {
    Client::connect(&Target::from_text(target)?, &ClientOptions::default()).await
}

/// What a client hears besides its answers. Called from any thread; must not block.
pub trait Events: Send + Sync + 'static {
    /// The server sent a notification.
    fn notification(&self, _method: &str, _params: Option<&RawJson>) {}
    /// A child process wrote a line to its standard error (`Stderr::Event`).
    fn stderr(&self, _line: &str) {}
    /// Something about the server is wrong that is no reason to fail, such as a tool that cannot be offered.
    fn warning(&self, _message: &str) {}
    /// The connection ended.
    fn closed(&self, _reason: &Error) {}
}

/// No interest in events.
#[derive(Debug, Clone, Copy)]
pub struct Quiet;

impl Events for Quiet {}

/// The legacy servers met so far, newest last: their next connection starts with `initialize`.
static LEGACY: Mutex<VecDeque<Key>> = Mutex::new(VecDeque::new());
const MAX_KNOWN: usize = 256;

/// Names a target without keeping what it holds, such as tokens in headers.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key(u64);

impl Key {
    fn of(target: &Target) -> Self {
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(SEED.hash_one(format!("{target:?}")))
    }
}

fn is_known_legacy(key: Key) -> bool {
    LEGACY.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
}

fn remember(key: Key, era: Era) {
    let mut known = LEGACY.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|k| *k != key);
    if era == Era::Legacy {
        if known.len() >= MAX_KNOWN {
            known.pop_front();
        }
        known.push_back(key);
    }
}

/// How opening went; a failure says whether the server should be launched again.
type Outcome = Result<Opening, (Error, bool)>;

/// What a client does with what comes in unasked.
struct Answers {
    events: Arc<dyn Events>,
    opened: Mutex<Option<oneshot::Sender<Outcome>>>,
}

impl Answers {
    fn settle(&self, outcome: Outcome) -> bool {
        let waiting = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting.is_some_and(|waiting| waiting.send(outcome).is_ok())
    }
}

impl Service for Answers {
    fn dispatch(&self, peer: &Arc<Peer>, call: Box<Call>) {
        let error = Error::rpc(code::METHOD_NOT_FOUND, format!("method {:?} is not served", call.method.name));
        Link::complete(peer.clone(), call.id, Err(error));
    }

    fn notified(&self, method: &str, params: Option<RawJson>) {
        self.events.notification(method, params.as_ref());
    }

    fn warning(&self, message: &str) {
        self.events.warning(message);
    }

    fn opened(&self, _peer: &Arc<Peer>, opening: Opening) {
        self.settle(Ok(opening));
    }

    fn closed(&self, _peer: &Arc<Peer>, reason: &Error, relaunch: bool) {
        if !self.settle(Err((reason.clone(), relaunch))) {
            self.events.closed(reason);
        }
    }
}

/// One way to the server, built but not negotiated.
struct Attempt {
    peer: Arc<Peer>,
    closer: Arc<dyn Closer>,
    transport: &'static str,
}

impl Client {
    /// Connects to a server, negotiating the revision.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) for wrong options, [`Transport`](ErrorKind::Transport) when the server cannot be
    /// reached, [`Unsupported`](ErrorKind::Unsupported) without a common revision, [`Timeout`](ErrorKind::Timeout).
    pub async fn connect(target: &Target, options: &ClientOptions) -> Result<Self> {
        Self::connect_with(target, options, Arc::new(Quiet)).await
    }

    /// Connects to a server and hears its events.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(target: &Target, options: &ClientOptions, events: Arc<dyn Events>) -> Result<Self> {
        options.check()?;
        let key = Key::of(target);
        // Where one revision is asked for there is no question, and the answer says nothing about the server.
        let asks = options.revision.is_none();
        let known_legacy = asks && is_known_legacy(key);
        let outcome = match once(target, options, &events, known_legacy).await {
            // The old server died of the probe: a new process, and no probe.
            Err((_, true)) => once(target, options, &events, true).await,
            // What was known of it may no longer be true.
            Err((error, false)) if known_legacy && error.kind() != ErrorKind::Misuse => {
                remember(key, Era::Modern);
                once(target, options, &events, false).await
            }
            outcome => outcome,
        };
        let client = outcome.map_err(|(error, _)| error)?;
        if asks {
            remember(key, client.revision().era());
        }
        Ok(client)
    }

    /// Connects to a server in this process, through memory.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn in_memory(server: &Server, options: &ClientOptions) -> Result<Self> {
        Self::in_memory_with(server, options, Arc::new(Quiet)).await
    }

    /// Connects to a server in this process and hears its events.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn in_memory_with(server: &Server, options: &ClientOptions, events: Arc<dyn Events>) -> Result<Self> {
        options.check()?;
        server.check()?;
        let (service, opened) = answers(&events);
        let (up, down) = (Pipe::new(), Pipe::new());
        let transport = Arc::new(Transport::new("memory"));
        let connection = Connection::new(server.facts(), transport.clone());
        let far =
            Peer::new(connection, server.limits(), server.shared.router.clone(), |_| Arc::new(PipeSink(down.clone())));
        let connection = Connection::new(Arc::new(options.facts()), transport);
        let peer = Peer::new(connection, options.limits(), service, |_| Arc::new(PipeSink(up.clone())));
        up.connect(&far);
        down.connect(&peer);
        let (watched, server) = (Arc::downgrade(&far), server.clone());
        let watch = runtime::spawn(async move {
            server.shared.stop.wait().await;
            if let Some(far) = watched.upgrade() {
                far.close("the server was closed");
            }
        });
        let closer = Arc::new(MemoryCloser { near: Arc::downgrade(&peer), far, watch });
        negotiate(Attempt { peer, closer, transport: "memory" }, opened, options, false)
            .await
            .map_err(|(error, _)| error)
    }
}

async fn once(
    target: &Target,
    options: &ClientOptions,
    events: &Arc<dyn Events>,
    known_legacy: bool,
) -> Result<Client, (Error, bool)> {
    let (service, opened) = answers(events);
    let attempt = attempt(target, options, service, events)?;
    negotiate(attempt, opened, options, known_legacy).await
}

type Opened = oneshot::Receiver<Outcome>;

fn answers(events: &Arc<dyn Events>) -> (Arc<Answers>, Opened) {
    let (settle, opened) = oneshot::channel();
    (Arc::new(Answers { events: events.clone(), opened: Mutex::new(Some(settle)) }), opened)
}

fn attempt(
    target: &Target,
    options: &ClientOptions,
    service: Arc<Answers>,
    events: &Arc<dyn Events>,
) -> Result<Attempt, (Error, bool)> {
    match target {
        #[cfg(feature = "client-process")]
        Target::Command { .. } => super::child::launch(target, options, service, events)
            .map(|(peer, closer)| Attempt { peer, closer, transport: "stdio" }),
        #[cfg(feature = "http")]
        Target::Url { url, headers } => {
            let all: Vec<(String, String)> =
                options.headers.iter().chain(headers).map(|(k, v)| (k.clone(), v.clone())).collect();
            super::http::client::connect(url, &all, options, service).map(|(peer, closer)| Attempt {
                peer,
                closer,
                transport: "http",
            })
        }
        #[expect(unreachable_patterns, reason = "reached when a feature is off")]
        _ => Err(Error::misuse("this build has no transport for the target: enable \"http\" or \"client-process\"")),
    }
    .map_err(|error| (error, false))
}

async fn negotiate(
    attempt: Attempt,
    opened: Opened,
    options: &ClientOptions,
    known_legacy: bool,
) -> Result<Client, (Error, bool)> {
    let Attempt { peer, closer, transport } = attempt;
    let pinned = options.pinned().map_err(|error| (error, false))?;
    let probe = crate::client::seconds("probe_timeout", options.probe_timeout).map_err(|error| (error, false))?;
    // Dropped while it waits, the connection ends.
    let unfinished = CloseOnDrop(Some(closer.clone()));
    peer.open(pinned, probe, options.timeout(), known_legacy);
    let outcome = opened.await.unwrap_or_else(|_| Err((Error::closed("the connection ended while opening"), false)));
    match outcome {
        Ok(opening) => {
            unfinished.disarm();
            let connected = Connected { link: peer, closer, opening, timeout: options.timeout(), transport };
            Ok(Client { connected: Arc::new(connected) })
        }
        Err((error, relaunch)) => {
            unfinished.disarm();
            closer.close().await;
            Err((error, relaunch))
        }
    }
}

struct CloseOnDrop(Option<Arc<dyn Closer>>);

impl CloseOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if let Some(closer) = self.0.take() {
            runtime::spawn(closer.close());
        }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        drop(CloseOnDrop(Some(self.closer.clone())));
    }
}

struct MemoryCloser {
    near: Weak<Peer>,
    far: Arc<Peer>,
    /// Ends the far side with the server.
    watch: tokio::task::JoinHandle<()>,
}

impl Closer for MemoryCloser {
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if let Some(near) = self.near.upgrade() {
            near.close("the client was closed");
        }
        self.far.close("the client was closed");
        self.watch.abort();
        Box::pin(std::future::ready(()))
    }
}
