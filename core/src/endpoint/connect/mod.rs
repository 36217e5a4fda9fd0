//! From a target to a connected client.
#![expect(deprecated, reason = "targets may be of the oldest transport")]

mod place;

use std::collections::VecDeque;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::oneshot;

use self::place::{endpoint, own_place, place_of};
use super::memory::{Pipe, PipeSink};
use super::record;
use crate::budget;
use crate::call::{BoxFuture, Link};
use crate::cassette::Cassette;
use crate::client::{Cache, Client, ClientOptions, Closer, Connected, Handlers, Hub, Outside, Place, Target};
use crate::driver::{Peer, Service, Time, Use, runtime};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::revision::{Era, is_internal, tried_both};
use crate::protocol::{Call, Connection, NotificationCause, Opening, Transport};
use crate::server::{Meter, Open, Server};
use crate::signal::Signal;

/// Connects to a server with every option at its default: a URL, or a command line with POSIX quoting.
///
/// # Errors
/// As [`Client::connect`].
pub async fn connect(target: &str) -> Result<Client> {
    Client::connect(&Target::from_text(target)?, &ClientOptions::default()).await
}

/// Eras of the servers met so far, as they have shown them.
static VERDICTS: Mutex<Verdicts> = Mutex::new(Verdicts(VecDeque::new()));
const MAX_KNOWN: usize = 256;
/// The longest that connecting waits until the server's changes are listened to.
const LISTEN_PATIENCE: std::time::Duration = std::time::Duration::from_millis(200);

/// Eras of servers, newest last, of those that have shown one: neither silence nor a failure does. The next connection to a legacy one starts with `initialize`; a modern one is never
/// taken for a legacy one because of a single odd answer.
struct Verdicts(VecDeque<(Key, Verdict)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Verdict {
    era: Era,
    /// It speaks the oldest HTTP transport.
    pair: bool,
}

const LEGACY: Verdict = Verdict { era: Era::Legacy, pair: false };

impl Verdicts {
    fn get(&self, key: Key) -> Option<Verdict> {
        self.0.iter().find(|(k, _)| *k == key).map(|(_, verdict)| *verdict)
    }

    fn set(&mut self, key: Key, verdict: Option<Verdict>) {
        self.0.retain(|(k, _)| *k != key);
        if let Some(verdict) = verdict {
            if self.0.len() >= MAX_KNOWN {
                self.0.pop_front();
            }
            self.0.push_back((key, verdict));
        }
    }
}

fn verdicts() -> MutexGuard<'static, Verdicts> {
    VERDICTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names a server, whoever asks and with whatever headers or environment, without keeping what its address holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key(u64);

impl Key {
    fn of(target: &Target) -> Self {
        static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(match target {
            Target::Url { url, .. } | Target::Sse { url, .. } => SEED.hash_one(endpoint(url)),
            Target::Command { command, args, cwd, .. } => SEED.hash_one((command, args, cwd)),
            Target::Replay { file, .. } => SEED.hash_one(file),
        })
    }
}

/// Outcome of opening; the flag of a failure is true if the server should be launched again.
type Outcome = Result<Opening, (Error, bool)>;

/// Receiver of everything that comes to a client unasked.
struct Answers {
    handlers: Handlers,
    opened: Mutex<Option<oneshot::Sender<Outcome>>>,
    hub: Arc<Hub>,
}

impl Answers {
    fn settle(&self, outcome: Outcome) -> bool {
        let waiting = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting.is_some_and(|waiting| waiting.send(outcome).is_ok())
    }
}

impl Service for Answers {
    fn dispatch(&self, peer: &Arc<Peer>, call: Box<Call>) {
        let link: Arc<dyn Link> = peer.clone();
        self.handlers.dispatch(&link, *call);
    }

    fn notified(&self, method: &str, params: Option<RawJson>, cause: &NotificationCause) {
        self.hub.notified(method, params.as_ref(), cause);
    }

    fn warning(&self, message: &str) {
        self.handlers.heard().warning(message);
    }

    fn outdated(&self, method: &str) {
        self.hub.cache.forget(method);
    }

    fn logged_in(&self) {
        self.hub.cache.logged_in();
    }

    fn opened(&self, _peer: &Arc<Peer>, opening: Opening) {
        let waiting = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        match waiting {
            // Should nobody wait for it any more, it is closed next.
            Some(waiting) => drop(waiting.send(Ok(opening))),
            None => self.hub.reopened(opening),
        }
    }

    fn session_lost(&self, peer: &Arc<Peer>) {
        self.handlers.ended(&**peer);
        self.hub.missed();
    }

    fn closed(&self, peer: &Arc<Peer>, reason: &Error, relaunch: bool) {
        self.handlers.ended(&**peer);
        self.hub.closed(reason);
        if !self.settle(Err((reason.clone(), relaunch))) {
            self.handlers.heard().closed(reason);
        }
    }
}

/// One way to the server, built but not negotiated.
struct Attempt {
    peer: Arc<Peer>,
    closer: Arc<dyn Closer>,
    transport: &'static str,
    hub: Arc<Hub>,
}

impl Client {
    /// Connects to a server, negotiating the revision.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) for wrong options, [`Transport`](ErrorKind::Transport) when the server cannot be
    /// reached, [`Unsupported`](ErrorKind::Unsupported) without a common revision, [`Timeout`](ErrorKind::Timeout).
    pub async fn connect(target: &Target, options: &ClientOptions) -> Result<Self> {
        Self::connect_with(target, options, &Handlers::default()).await
    }

    /// Connects to a server, answers its requests and hears its notifications.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(target: &Target, options: &ClientOptions, handlers: &Handlers) -> Result<Self> {
        Self::connecting(target, options, handlers).await
    }

    /// Boxed by a function that is not `async`: what those do is compiled again in each program that calls them.
    fn connecting<'a>(
        target: &'a Target,
        options: &'a ClientOptions,
        handlers: &'a Handlers,
    ) -> Pin<Box<dyn Future<Output = Result<Self>> + Send + 'a>> {
        Box::pin(Self::connect_to(target, options, handlers))
    }

    async fn connect_to(target: &Target, options: &ClientOptions, handlers: &Handlers) -> Result<Self> {
        options.check()?;
        options.max_memory.into_iter().for_each(budget::set_max);
        let handlers = &handlers.with_tasks(options.tasks.as_ref());
        let options = &record::recording(&with_capabilities(options, handlers), record::To::Target(target), handlers)?;
        if let Target::Replay { file, strict } = target {
            return Self::replay(file, *strict, options, handlers).await;
        }
        let key = Key::of(target);
        // Where one revision or transport is asked for there is no question, and the answer says nothing about the
        // server.
        let forced = matches!(target, Target::Sse { .. }).then_some(Verdict { era: Era::Legacy, pair: true });
        let asks = options.revision.is_none() && forced.is_none();
        // A transport of the program's own may lead to another server under the same URL.
        let remembers = asks && !options.http_transport.is_given();
        let known = if remembers { verdicts().get(key) } else { forced };
        let outcome = match once(target, options, handlers, known).await {
            // The old server died of the probe: a new process, and no probe.
            Err((first, true)) => once(target, options, handlers, Some(LEGACY))
                .await
                .map_err(|(error, relaunch)| (tried_both(&error, first.message()), relaunch)),
            // The known era may no longer be true.
            Err((error, false))
                if asks && known.is_some_and(|k| k.era == Era::Legacy) && error.kind() != ErrorKind::Misuse =>
            {
                verdicts().set(key, None);
                once(target, options, handlers, None).await
            }
            // Told to the caller, who finds out anew by connecting again.
            Err((error, false)) if known.is_some_and(|k| k.era == Era::Modern) && is_about_the_server(&error) => {
                verdicts().set(key, None);
                Err((error, false))
            }
            outcome => outcome,
        };
        let client = outcome.map_err(|(error, _)| error)?;
        // Guessed from something that passes, it counts for this connection alone.
        if remembers && client.connected.opening().certain {
            let verdict = Verdict { era: client.revision().era(), pair: client.connected.closer.is_pair() };
            verdicts().set(key, Some(verdict));
        }
        Ok(client)
    }

    /// Connects to a cassette, in the era that it begins with.
    async fn replay(file: &str, strict: bool, options: &ClientOptions, handlers: &Handlers) -> Result<Self> {
        let cassette = Cassette::read(file)?;
        let known = cassette.is_legacy().then_some(Era::Legacy);
        let cache = cache_of(options, handlers, own_place(options));
        let (service, opened) = answers(&handlers.declaring(options.capabilities.as_ref()), &cache);
        let hub = service.hub.clone();
        let (peer, closer) = super::replay::play(&cassette, strict, options, service);
        let attempt = Attempt { peer, closer, transport: "memory", hub };
        negotiate(attempt, opened, options, handlers, known).await.map_err(|(error, _)| error)
    }

    /// Connects to a server in this process, through memory.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn in_memory(server: &Server, options: &ClientOptions) -> Result<Self> {
        Self::in_memory_with(server, options, &Handlers::default()).await
    }

    /// Connects to a server in this process, answers its requests and hears its notifications.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn in_memory_with(server: &Server, options: &ClientOptions, handlers: &Handlers) -> Result<Self> {
        Self::connecting_in_memory(server, options, handlers).await
    }

    /// As [`connecting`](Self::connecting).
    fn connecting_in_memory<'a>(
        server: &'a Server,
        options: &'a ClientOptions,
        handlers: &'a Handlers,
    ) -> Pin<Box<dyn Future<Output = Result<Self>> + Send + 'a>> {
        Box::pin(Self::connect_in_memory(server, options, handlers))
    }

    async fn connect_in_memory(server: &Server, options: &ClientOptions, handlers: &Handlers) -> Result<Self> {
        options.check()?;
        options.max_memory.into_iter().for_each(budget::set_max);
        server.check()?;
        let uses = Use::begin(server).await?;
        let handlers = &handlers.with_tasks(options.tasks.as_ref());
        let options = &record::recording(&with_capabilities(options, handlers), record::To::Memory, handlers)?;
        let cache = cache_of(options, handlers, own_place(options));
        let (service, opened) = answers(&handlers.declaring(options.capabilities.as_ref()), &cache);
        let hub = service.hub.clone();
        let (up, down) = (Pipe::new(), Pipe::new());
        let transport = Arc::new(Transport::new("memory"));
        let connection = Connection::new(server.facts(), transport.clone());
        let far =
            Peer::new(connection, server.limits(), server.shared.router.clone(), |_| Arc::new(PipeSink(down.clone())));
        let connection = Connection::new(Arc::new(options.facts()), transport);
        let peer = Peer::new(connection, options.limits(), service, |_| Arc::new(PipeSink(up.clone())));
        peer.tap_with(options.tapping(Some("memory")));
        let meter: Arc<dyn Meter> = far.clone();
        server.shared.add_meter(&meter);
        let link: Arc<dyn Link> = far.clone();
        server.shared.join(&link);
        up.connect(&far);
        down.connect(&peer);
        let (watched, server) = (Arc::downgrade(&far), server.clone());
        let over = Arc::new(Signal::default());
        let closing = over.clone();
        let open = Open::new(&server);
        let watch = runtime::spawn(async move {
            tokio::select! {
                () = server.shared.stop.wait() => {}
                () = closing.wait() => {}
            }
            if let Some(far) = watched.upgrade() {
                far.end_streams();
                far.close("the server was closed");
            }
            drop(open);
            uses.end().await;
        });
        let closer = Arc::new(MemoryCloser { near: Arc::downgrade(&peer), far, over, watch: Mutex::new(Some(watch)) });
        negotiate(Attempt { peer, closer, transport: "memory", hub }, opened, options, handlers, None)
            .await
            .map_err(|(error, _)| error)
    }
}

/// Returns true if a failure may mean that the server has become another, and not just that the way to it is blocked.
fn is_about_the_server(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Misuse | ErrorKind::Transport | ErrorKind::Auth) && !is_internal(error)
}

async fn once(
    target: &Target,
    options: &ClientOptions,
    handlers: &Handlers,
    known: Option<Verdict>,
) -> Result<Client, (Error, bool)> {
    let cache = cache_of(options, handlers, place_of(target, &with_capabilities(options, handlers)));
    let (service, opened) = answers(&handlers.declaring(options.capabilities.as_ref()), &cache);
    let attempt = attempt(target, options, service, handlers, known.is_some_and(|known| known.pair))?;
    negotiate(attempt, opened, options, handlers, known.map(|known| known.era)).await
}

type Opened = oneshot::Receiver<Outcome>;

fn cache_of(options: &ClientOptions, handlers: &Handlers, place: Place) -> Arc<Cache> {
    fn spawn(future: BoxFuture<()>) {
        runtime::spawn(future);
    }
    let outside = Outside { events: handlers.heard().clone(), clock: Arc::new(Time), spawn };
    Cache::anywhere(&options.cache, place, &outside)
}

fn answers(handlers: &Handlers, cache: &Arc<Cache>) -> (Arc<Answers>, Opened) {
    let (settle, opened) = oneshot::channel();
    let (handlers, opening) = (handlers.clone(), Mutex::new(Some(settle)));
    let hub = Hub::new(handlers.heard(), cache);
    (Arc::new(Answers { handlers, opened: opening, hub }), opened)
}

/// The options with what the handlers can do declared.
fn with_capabilities(options: &ClientOptions, handlers: &Handlers) -> ClientOptions {
    let mut options = options.clone();
    options.capabilities = handlers.capabilities(options.capabilities.as_ref(), &options.extensions);
    options.passes_on = handlers.have_fallback();
    options
}

fn attempt(
    target: &Target,
    options: &ClientOptions,
    service: Arc<Answers>,
    handlers: &Handlers,
    pair: bool,
) -> Result<Attempt, (Error, bool)> {
    let hub = service.hub.clone();
    match target {
        #[cfg(feature = "stdio")]
        Target::Command { .. } => super::program::launch(target, options, service, handlers.heard())
            .map(|(peer, closer)| Attempt { peer, closer, transport: "stdio", hub }),
        #[cfg(feature = "http")]
        Target::Url { url, headers } | Target::Sse { url, headers } => {
            let all: Vec<(String, String)> =
                options.headers.iter().chain(headers).map(|(k, v)| (k.clone(), v.clone())).collect();
            super::http::client::connect(url, &all, options, service, pair).map(|(peer, closer)| Attempt {
                peer,
                closer,
                transport: "http",
                hub,
            })
        }
        // A cassette needs none.
        _ => Err(Error::misuse("this build has no transport for the target: enable \"http\" or \"stdio\"")),
    }
    .map_err(|error| (error, false))
}

async fn negotiate(
    attempt: Attempt,
    opened: Opened,
    options: &ClientOptions,
    handlers: &Handlers,
    known: Option<Era>,
) -> Result<Client, (Error, bool)> {
    let Attempt { peer, closer, transport, hub } = attempt;
    let pinned = options.pinned().map_err(|error| (error, false))?;
    let probe = crate::options::seconds("probe_timeout", options.probe_timeout).map_err(|error| (error, false))?;
    // Dropped while it waits, the connection ends.
    let unfinished = CloseOnDrop(Some(closer.clone()));
    peer.open(pinned, probe, options.timeout(), known);
    let outcome = opened.await.unwrap_or_else(|_| Err((Error::closed("the connection ended while opening"), false)));
    match outcome {
        Ok(opening) => {
            unfinished.disarm();
            let link: Arc<dyn Link> = peer.clone();
            handlers.join(&link);
            let (middleware, timeout) = (handlers.around().clone(), options.timeout());
            let handlers = handlers.declaring(options.capabilities.as_ref());
            let hears = handlers.hears();
            let connected = Connected {
                link: peer,
                closer,
                first: Arc::new(opening),
                timeout,
                transport,
                middleware,
                trace: options.trace_source(),
                known: hub.known.clone(),
                validate_output: options.validate_output,
                cache: hub.cache.clone(),
                handlers,
                hub,
                lengths: Arc::default(),
            };
            let client = Client { connected: Arc::new(connected) };
            if hears {
                let (heard, hearing) = oneshot::channel();
                client.hear_lists(Box::new(move |outcome| drop(heard.send(outcome))));
                // Changes from now on are heard of, if the server does not take its time.
                if tokio::time::timeout(LISTEN_PATIENCE, hearing).await.is_err() {
                    client.connected.hub.listens_late();
                }
            }
            Ok(client)
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
    /// Set when the client is closed.
    over: Arc<Signal>,
    /// Ends the far side with the server, and the server's use with the far side.
    watch: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Closer for MemoryCloser {
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        if let Some(near) = self.near.upgrade() {
            near.close("the client was closed");
        }
        self.far.close("the client was closed");
        self.over.set();
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            if let Some(watch) = watch {
                let _ = watch.await;
            }
        })
    }
}

#[cfg(test)]
mod tests;
