//! The connections of a bridge to the server behind it: one for each session, so that what the server asks finds the one
//! who called.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tricorn::client::{ClientOptions, Events, Handlers};
use tricorn::jsonrpc::RawJson;
use tricorn::protocol::{Kind, LogLevel};
use tricorn::{CallOptions, Context, Error, ErrorKind, Handler, Reply, Result, Server};

use super::behind::{Behind, Facts, foreign};
use super::front::internal;
use super::order::{Order, Standing, Turn};
use crate::failure::{Failure, Outcome};
use crate::output::{Screen, shown};
use crate::targets::Found;

/// Time that an unused connection stays, whatever has become of its session.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// Calls of one session at a time whose contexts are kept.
const AT_WORK: usize = 1024;

/// Subscriptions of one session that outlive a restart of the server.
const SUBSCRIBED: usize = 1024;
/// Time in which the calls to a server that another one has replaced may end.
const GRACE: Duration = Duration::from_secs(10);

/// Questions of servers, and the capability that lets them ask.
const QUESTIONS: [(&str, &str); 3] =
    [("elicitation", "elicitation/create"), ("sampling", "sampling/createMessage"), ("roots", "roots/list")];

/// Capabilities of clients that a bridge declares for itself, where the client has them.
const ANSWERED: [&str; 5] = ["elicitation", "sampling", "roots", "tasks", "extensions"];

/// A connection that was made before its session, and what its client was said to be able to do.
struct Prepared {
    declared: Map<String, Value>,
    upstream: Arc<Upstream>,
    /// It was said what is not connected.
    is_told: bool,
}

/// The connection of one session.
pub(super) struct Upstream {
    pub(super) behind: Behind,
    callers: Arc<Callers>,
}

/// Those who called in one session.
#[derive(Default)]
struct Callers(Mutex<Calling>);

#[derive(Default)]
struct Calling {
    count: u64,
    /// Those whose calls go on, by number, the last one last.
    at_work: Vec<(u64, Context)>,
    /// The last caller.
    last: Option<Context>,
    /// The connection has ended.
    is_over: bool,
    /// Resources that they are subscribed to, at most [`SUBSCRIBED`].
    subscribed: BTreeSet<String>,
}

impl Callers {
    fn lock(&self) -> MutexGuard<'_, Calling> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client that can be asked and told.
    fn last(&self) -> Option<Context> {
        let state = self.lock();
        state.at_work.last().map(|(_, context)| context.clone()).or_else(|| state.last.clone())
    }

    fn end(&self) {
        self.lock().is_over = true;
    }

    fn is_over(&self) -> bool {
        self.lock().is_over
    }
}

/// A call goes on while it lives.
pub(super) struct AtWork(Arc<Callers>, u64);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.lock().at_work.retain(|(number, _)| *number != self.1);
    }
}

impl Upstream {
    /// Remembers who called, for as long as what is returned lives.
    pub(super) fn works_for(&self, context: &Context) -> AtWork {
        let mut state = self.callers.lock();
        state.count += 1;
        let number = state.count;
        if state.at_work.len() < AT_WORK {
            state.at_work.push((number, context.clone()));
        }
        state.last = Some(context.clone());
        AtWork(self.callers.clone(), number)
    }

    fn is_at_work(&self) -> bool {
        !self.callers.lock().at_work.is_empty()
    }

    /// Subscribes to a resource, or no longer.
    pub(super) async fn subscribe(&self, uri: &str, begins: bool) -> Result<()> {
        self.behind.subscribe(uri, begins).await?;
        let subscribed = &mut self.callers.lock().subscribed;
        if !begins {
            subscribed.remove(uri);
        } else if subscribed.len() < SUBSCRIBED {
            subscribed.insert(uri.to_owned());
        }
        Ok(())
    }

    /// Ends it when its calls have ended, or soon.
    async fn retire(&self) {
        let begun = Instant::now();
        while self.is_at_work() && begun.elapsed() < GRACE {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.behind.close().await;
    }
}

/// The connection of a session, there or being made.
type Slot = Arc<tokio::sync::Mutex<Place>>;

#[derive(Default)]
struct Place {
    upstream: Option<Arc<Upstream>>,
    /// Subscriptions of a connection that is no more, for the next one.
    subscribed: BTreeSet<String>,
    /// Its last caller.
    last: Option<Context>,
    /// The session has ended: what stands in line still connects nobody.
    is_over: bool,
}

impl Place {
    /// Takes the connection out, and keeps its subscriptions.
    fn take(&mut self) -> Option<Arc<Upstream>> {
        let upstream = self.upstream.take()?;
        self.subscribed.append(&mut upstream.callers.lock().subscribed.clone());
        self.last = upstream.callers.last();
        Some(upstream)
    }
}

/// A session, and when it was used last. Whoever comes while it is being connected waits for that.
struct Entry {
    session: Option<Arc<str>>,
    used: Instant,
    slot: Slot,
    order: Order,
}

/// A message of a client, before it is known who it is for.
pub(super) struct Arrival {
    slot: Slot,
    standing: Standing,
}

/// All of them.
pub(super) struct Upstreams {
    found: RwLock<Found>,
    options: ClientOptions,
    screen: Screen,
    most: usize,
    runtime: Handle,
    server: Arc<OnceLock<Server>>,
    entries: Mutex<Vec<Entry>>,
    /// Held for as long as it is being made.
    prepared: tokio::sync::Mutex<Option<Prepared>>,
    /// Nobody was connected yet.
    is_first: AtomicBool,
    failed: watch::Sender<Option<Failure>>,
    /// It was said that notifications are dropped.
    has_dropped: AtomicBool,
}

impl Upstreams {
    /// Must be called within a runtime.
    pub(super) fn new(found: Found, options: ClientOptions, screen: Screen, most: usize) -> Self {
        Self {
            found: RwLock::new(found),
            options,
            screen,
            most,
            runtime: Handle::current(),
            server: Arc::default(),
            entries: Mutex::default(),
            prepared: tokio::sync::Mutex::default(),
            is_first: AtomicBool::new(true),
            failed: watch::Sender::new(None),
            has_dropped: AtomicBool::new(false),
        }
    }

    /// Connects for a client that has these capabilities, before it asks. `tells`: says what is not connected at once, not
    /// when the client asks for the first time.
    pub(super) async fn prepare(&self, declared: &Value, tells: bool) -> Outcome<Arc<Upstream>> {
        let (found, mut place) = (self.found(), self.prepared.lock().await);
        let connected = self.connected(declared, None).await;
        let upstream = Arc::new(connected.map_err(|error| Failure::connecting(&found.name, &error))?);
        upstream.behind.check(&found.name)?;
        if tells {
            upstream.behind.tell(&found.name, &self.screen);
        }
        let prepared = Prepared { declared: passed(declared), upstream: upstream.clone(), is_told: tells };
        *place = Some(prepared);
        self.is_first.store(false, Ordering::Relaxed);
        Ok(upstream)
    }

    /// The facts of what was prepared, if that is there.
    pub(super) fn prepared(&self, name: &str) -> Option<Facts> {
        let place = self.prepared.try_lock().ok()?;
        place.as_ref().map(|prepared| prepared.upstream.behind.facts(name))
    }

    /// Tells that the first connection has failed.
    pub(super) fn fail(&self, failure: Failure) {
        self.failed.send_replace(Some(failure));
    }

    /// Waits until the first connection has failed.
    pub(super) async fn failed(&self) -> Failure {
        let mut failed = self.failed.subscribe();
        let failure = match failed.wait_for(Option::is_some).await {
            Ok(failure) => failure.clone(),
            Err(_) => None,
        };
        match failure {
            Some(failure) => failure,
            None => std::future::pending().await,
        }
    }

    /// Tells who hears of changes.
    pub(super) fn serves(&self, server: &Server) {
        let _ = self.server.set(server.clone());
    }

    fn found(&self) -> Found {
        self.found.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects to another server for a moment.
    pub(super) async fn scout(&self, found: &Found) -> Outcome<Behind> {
        Behind::scout(found, &self.options, &self.screen).await
    }

    /// Connects all sessions to another server, with their subscriptions. The calls to the one before may end.
    pub(super) async fn renew(self: &Arc<Self>, found: Found) {
        *self.found.write().unwrap_or_else(PoisonError::into_inner) = found;
        let slots: Vec<Slot> = self.lock().iter().map(|entry| entry.slot.clone()).collect();
        for slot in slots {
            let mut place = slot.lock().await;
            if let Some(before) = place.take() {
                self.spawn(async move { before.retire().await });
            }
            let Some(context) = place.last.clone() else { continue };
            // A session that could not be connected is, with its next request or the next server.
            let _ = self.fill(&mut place, &context).await;
        }
    }

    /// Connects, with the subscriptions that there were.
    async fn fill(&self, place: &mut Place, context: &Context) -> Result<Arc<Upstream>> {
        let upstream = self.connect(context).await?;
        for uri in std::mem::take(&mut place.subscribed) {
            if let Err(error) = upstream.subscribe(&uri, true).await {
                self.screen.warn(&format!("{}: subscription to {uri:?}: {}", self.found().name, error.message()));
            }
        }
        place.upstream = Some(upstream.clone());
        Ok(upstream)
    }

    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(work));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message of a client has come: it goes on after those that came before it.
    pub(super) fn arrives(self: &Arc<Self>, context: &Context) -> Arrival {
        let (slot, order) = self.session(context);
        Arrival { slot, standing: order.request() }
    }

    /// The same for a notification; `None` if too many wait.
    pub(super) fn is_told(self: &Arc<Self>, context: &Context) -> Option<Arrival> {
        let (slot, order) = self.session(context);
        let standing = order.notification();
        if standing.is_none() && !self.has_dropped.swap(true, Ordering::Relaxed) {
            self.screen.warn(&format!("notifications are dropped, as many wait for {}", self.found().name));
        }
        Some(Arrival { slot, standing: standing? })
    }

    fn session(self: &Arc<Self>, context: &Context) -> (Slot, Order) {
        let session = context.request().transport.session_id.clone();
        let (slot, order, is_new, gone) = self.slot(session);
        for slot in gone {
            self.spawn(async move { end(&slot).await });
        }
        if is_new {
            self.ends_with_session(context, &slot);
        }
        (slot, order)
    }

    /// The connection of the session that a message came in, once it is its turn.
    pub(super) async fn of(self: &Arc<Self>, arrival: Arrival, context: &Context) -> Result<(Arc<Upstream>, Turn)> {
        let turn = arrival.standing.turn().await;
        let mut place = arrival.slot.lock().await;
        if let Some(upstream) = place.upstream.as_ref().filter(|upstream| !upstream.callers.is_over()) {
            return Ok((upstream.clone(), turn));
        }
        if place.is_over {
            return Err(Error::closed("the session has ended"));
        }
        drop(place.take());
        Ok((self.fill(&mut place, context).await?, turn))
    }

    /// Ends a connection when the session that it is for has ended.
    fn ends_with_session(self: &Arc<Self>, context: &Context, slot: &Slot) {
        let Ok(session) = context.session() else { return };
        let (upstreams, slot) = (Arc::downgrade(self), slot.clone());
        self.spawn(async move {
            session.ended().await;
            if let Some(upstreams) = upstreams.upgrade() {
                upstreams.lock().retain(|entry| !Arc::ptr_eq(&entry.slot, &slot));
            }
            end(&slot).await;
        });
    }

    /// The slot and the order of a session, true if it is new, and those that nobody has used for long or that there are too many of.
    fn slot(&self, session: Option<Arc<str>>) -> (Slot, Order, bool, Vec<Slot>) {
        let (mut entries, now) = (self.lock(), Instant::now());
        if let Some(entry) = entries.iter_mut().find(|entry| entry.session == session) {
            entry.used = now;
            return (entry.slot.clone(), entry.order.clone(), false, Vec::new());
        }
        let is_busy = |entry: &Entry| match entry.slot.try_lock() {
            _ if entry.order.is_taken() => true,
            Ok(place) => place.upstream.as_ref().is_some_and(|upstream| upstream.is_at_work()),
            Err(_) => true,
        };
        let mut gone = Vec::new();
        entries.retain(|entry| {
            let stays = now.duration_since(entry.used) < IDLE || is_busy(entry);
            if !stays {
                gone.push(entry.slot.clone());
            }
            stays
        });
        if entries.len() >= self.most {
            let oldest =
                entries.iter().enumerate().filter(|(_, entry)| !is_busy(entry)).min_by_key(|(_, entry)| entry.used);
            if let Some(at) = oldest.map(|(at, _)| at) {
                gone.push(entries.remove(at).slot);
            }
        }
        let (slot, order) = (Slot::default(), Order::default());
        entries.push(Entry { session, used: now, slot: slot.clone(), order: order.clone() });
        (slot, order, true, gone)
    }

    /// Connects for a client, with the capabilities that it has.
    async fn connect(&self, context: &Context) -> Result<Arc<Upstream>> {
        let declared: Value = context.request().peer.capabilities.raw().to().unwrap_or_default();
        let prepared = self.prepared.lock().await.take();
        if let Some(Prepared { declared: known, upstream, is_told }) = prepared {
            if known == passed(&declared) && !upstream.callers.is_over() {
                if !is_told {
                    upstream.behind.tell(&self.found().name, &self.screen);
                }
                upstream.callers.lock().last = Some(context.clone());
                return Ok(upstream);
            }
            upstream.behind.close().await;
        }
        let is_first = self.is_first.swap(false, Ordering::Relaxed);
        let connected = self.connected(&declared, Some(context)).await.map(Arc::new);
        if !is_first {
            return connected;
        }
        let name = self.found().name;
        let checked = match &connected {
            Ok(upstream) => upstream.behind.check(&name),
            Err(error) => Err(Failure::connecting(&name, error)),
        };
        let Err(failure) = checked else {
            connected.iter().for_each(|upstream| upstream.behind.tell(&name, &self.screen));
            return connected;
        };
        let error = internal(&failure.message);
        self.fail(failure);
        // Its own error has the last line of its standard error, too.
        connected.and(Err(error))
    }

    /// Makes a connection, for the client that has asked if there is one.
    async fn connected(&self, declared: &Value, context: Option<&Context>) -> Result<Upstream> {
        let callers = Arc::<Callers>::default();
        callers.lock().last = context.cloned();
        let options = introduced(&self.options, declared, context);
        let (calling, declared) = (callers.clone(), questions(declared));
        let (server, runtime) = (self.server.clone(), self.runtime.clone());
        let found = self.found();
        let (screen, name) = (self.screen.clone(), found.name);
        let handlers = move |member: &str| {
            let is_alone = member.is_empty();
            let name = if is_alone { name.clone() } else { member.to_owned() };
            let (server, callers, screen) = (server.clone(), calling.clone(), screen.clone());
            let told = Told { server, callers, screen, name, is_alone };
            let mut handlers = Handlers::new().events(told);
            let passed = || Arc::new(Asked { callers: calling.clone(), runtime: runtime.clone() });
            for (capability, method) in QUESTIONS {
                if let Some(value) = declared.get(capability) {
                    handlers = handlers.answer(method, passed(), value.clone());
                }
            }
            handlers.fallback(passed())
        };
        let behind = Behind::connect(&found.reach, &options, handlers).await?;
        behind.log_all().await;
        Ok(Upstream { behind, callers })
    }

    /// Ends all connections.
    pub(super) async fn close(&self) {
        let prepared = self.prepared.lock().await.take();
        let entries = std::mem::take(&mut *self.lock());
        let mut closing = tokio::task::JoinSet::new();
        for entry in entries {
            closing.spawn(async move { end(&entry.slot).await });
        }
        if let Some(Prepared { upstream, .. }) = prepared {
            closing.spawn(async move { upstream.behind.close().await });
        }
        while closing.join_next().await.is_some() {}
    }
}

/// The capabilities of a client that its server is told of.
fn passed(declared: &Value) -> Map<String, Value> {
    let mut all = questions(declared);
    all.extend(foreign(&RawJson::from_value(declared), &ANSWERED));
    all
}

/// Options of a connection whose server is told of the client before the bridge, and whose answers are that client's to
/// check.
fn introduced(options: &ClientOptions, declared: &Value, context: Option<&Context>) -> ClientOptions {
    let foreign = foreign(&RawJson::from_value(declared), &ANSWERED);
    let mut options = options.clone().validate_output(false);
    if !foreign.is_empty() {
        options = options.capabilities(RawJson::from_value(&foreign));
    }
    let info = context.and_then(|context| context.request().peer.info.as_ref()?.to::<Value>().ok()).unwrap_or_default();
    let text = |member: &str| info[member].as_str().filter(|text| !text.is_empty());
    let (Some(name), Some(version)) = (text("name"), text("version")) else { return options };
    options = options.name(name).version(version);
    if let Some(title) = text("title") {
        options = options.title(title);
    }
    if let Some(description) = text("description") {
        options = options.description(description);
    }
    if let Some(website) = text("websiteUrl") {
        options = options.website_url(website);
    }
    match info.get("icons").filter(|icons| icons.is_array()) {
        Some(icons) => options.icons(RawJson::from_value(icons)),
        None => options,
    }
}

/// The capabilities of a client that let servers ask it.
fn questions(declared: &Value) -> Map<String, Value> {
    let known = QUESTIONS.iter().filter_map(|(name, _)| Some(((*name).to_owned(), declared.get(*name)?.clone())));
    known.collect()
}

/// Ends the connection that is there.
async fn end(slot: &Slot) {
    let mut place = slot.lock().await;
    place.is_over = true;
    let upstream = place.upstream.take();
    drop(place);
    if let Some(upstream) = upstream {
        upstream.behind.close().await;
    }
}

/// Passes a question of the server on.
struct Asked {
    callers: Arc<Callers>,
    runtime: Handle,
}

impl Handler for Asked {
    fn call(&self, context: Context, params: RawJson, reply: Reply) {
        let (method, caller) = (context.request().method, self.callers.last());
        self.runtime.spawn(async move {
            let Some(caller) = caller else { return reply.error(internal("nobody is there to be asked")) };
            let options = CallOptions::new().timeout(Duration::ZERO);
            let outcome = tokio::select! {
                outcome = caller.ask(method, Some(params), &options) => outcome,
                () = context.cancelled() => return,
            };
            match outcome {
                Ok(result) => reply.result(result),
                Err(error) => reply.error(answered(&error)),
            }
        });
    }
}

/// An error of the one side in the words of the other.
pub(super) fn answered(error: &Error) -> Error {
    let made = match (error.kind(), error.code()) {
        (ErrorKind::Rpc, Some(code)) => Error::rpc(code, error.message()),
        (ErrorKind::Unsupported, _) => Error::rpc(-32601, error.message()),
        _ => internal(error.message()),
    };
    match error.data() {
        Some(data) => made.with_data(data.clone()),
        None => made,
    }
}

/// Passes on what the server tells.
struct Told {
    server: Arc<OnceLock<Server>>,
    callers: Arc<Callers>,
    screen: Screen,
    name: String,
    /// There is no other server behind the bridge.
    is_alone: bool,
}

impl Events for Told {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let Some(server) = self.server.get() else { return };
        match method {
            "notifications/tools/list_changed" => server.list_changed(Kind::Tool),
            "notifications/prompts/list_changed" => server.list_changed(Kind::Prompt),
            "notifications/resources/list_changed" => server.list_changed(Kind::Resource),
            "notifications/resources/updated" => {
                let told: Value = params.and_then(|params| params.to().ok()).unwrap_or_default();
                told["uri"].as_str().into_iter().for_each(|uri| server.resource_updated(uri));
            }
            "notifications/elicitation/complete" => {
                let told: Value = params.and_then(|params| params.to().ok()).unwrap_or_default();
                told["elicitationId"].as_str().into_iter().for_each(|id| server.elicitation_complete(id));
            }
            "notifications/message" => self.log(params),
            // The protocol's own of another kind are not passed on.
            other => {
                if let Some(caller) = self.callers.last() {
                    caller.pass_on(other, params.cloned());
                }
            }
        }
    }

    fn stderr(&self, line: &str) {
        self.screen.line(&shown(line));
    }

    fn warning(&self, message: &str) {
        self.screen.warn(&format!("{}: {message}", self.name));
    }

    fn closed(&self, _reason: &Error) {
        if self.is_alone {
            self.callers.end();
        }
    }
}

impl Told {
    fn log(&self, params: Option<&RawJson>) {
        let (Some(caller), Some(Ok(told))) = (self.callers.last(), params.map(RawJson::to::<Value>)) else { return };
        let level = told["level"].as_str().and_then(|level| level.parse().ok()).unwrap_or(LogLevel::Info);
        #[expect(deprecated, reason = "servers that log in this way are there")]
        caller.log(level, told["logger"].as_str(), &told["data"]);
    }
}
