mod extension;
mod joining;
#[cfg(feature = "runtime")]
mod lifespan;
mod offer;
pub(super) mod usage;

use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::links::Links;
use super::listed::{Common, Kind};
use super::options::DECLARABLE;
use super::registry::Registry;
use super::usage::Meter;
use super::{CacheOptions, Router, ServerOptions};
use crate::budget;
#[cfg(feature = "runtime")]
use crate::call::Context;
#[cfg(feature = "runtime")]
use crate::call::rounds::Principal;
use crate::call::{Chain, Middleware, TaskOptions, Tasks};
use crate::error::{Error, Result};
use crate::jsonrpc::{Limits, RawJson};
use crate::model::{Capabilities, Implementation, TASKS_EXTENSION};
use crate::options::kept;
use crate::protocol::revision::{Revision, spoken};
use crate::protocol::{Facts, Input, KeepAlive, Role, States};
use crate::signal::Signal;

/// A server: what it offers, to any number of connections at once. A clone is the same server.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add { a: i64, b: i64 }
///
/// let server = Server::new("calculator")
///     .version("1.0.0")
///     .tool("add", "Add two numbers", async |Add { a, b }: Add| Ok(a + b));
/// // A program serves it: `server.run().await`. A test needs neither a process nor a socket:
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// assert_eq!(client.call_tool("add", json!({"a": 1, "b": 2})).await?.text(), "3");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
    /// The first thing that went wrong while building; reported when serving starts.
    pub(super) mistake: Option<Error>,
}

pub(crate) struct Shared {
    options: RwLock<ServerOptions>,
    pub(crate) router: Arc<Router>,
    facts: Mutex<Option<Arc<Facts>>>,
    /// Set when the server is to stop serving everywhere.
    pub(crate) stop: Signal,
    /// Set when it is to end as soon as what runs is answered.
    #[cfg(feature = "http")]
    pub(crate) draining: Signal,
    /// Number of listeners with requests that are being answered, or may be.
    #[cfg(feature = "http")]
    pub(crate) undrained: Arc<AtomicUsize>,
    #[cfg(feature = "http")]
    pub(crate) mounted: Mutex<Vec<Weak<dyn Drains>>>,
    pub(crate) connections: AtomicUsize,
    /// The transports that have more to count.
    pub(crate) meters: Mutex<Vec<Weak<dyn Meter>>>,
    /// The connections that are told of changes.
    pub(crate) links: Links,
    /// Changes that other processes are told of.
    #[cfg(feature = "runtime")]
    pub(crate) outbox: Arc<crate::store::Outbox>,
    /// The tasks that keep this process together with others, for as long as the server is in use.
    #[cfg(feature = "redis")]
    pub(crate) node: Mutex<Weak<dyn Any + Send + Sync>>,
    #[cfg(feature = "runtime")]
    pub(crate) lifespan: RwLock<Option<Arc<dyn super::Lifespan>>>,
    #[cfg(feature = "runtime")]
    pub(crate) life: tokio::sync::Mutex<super::lifespan::Life>,
}

/// A mounted endpoint, which ends gently with its server.
#[cfg(feature = "http")]
pub(crate) trait Drains: Send + Sync {
    /// Resolves when what runs has been answered, or its time is over.
    fn drained(self: Arc<Self>) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl Server {
    /// A server called `name`, with every option at its default. Say its [`version`](Self::version), most simply as
    /// `env!("CARGO_PKG_VERSION")`; it is `0.0.0` else.
    pub fn new(name: impl Into<String>) -> Self {
        Self::with_options(ServerOptions { name: name.into(), ..ServerOptions::default() })
    }

    /// A server with these options.
    #[must_use]
    pub fn with_options(options: ServerOptions) -> Self {
        let mistake = options.check().err();
        let states = States::default();
        #[cfg(feature = "runtime")]
        let states = match options.sealer() {
            Ok(sealer) => states.and(Arc::new(sealer)),
            // It is the mistake already.
            Err(_) => states,
        };
        let router = Arc::new_cyclic(|this| Router {
            this: this.clone(),
            middleware: Chain::default(),
            states: RwLock::new(states),
            lifespan_state: RwLock::default(),
            registry: RwLock::new(Registry::default()),
            common: Arc::new(Common::default()),
            page_size: AtomicUsize::new(options.page_size.max(1)),
            cache: RwLock::new(options.cache),
            tasks: RwLock::new(options.tasks.clone().map(Tasks::new)),
            extensions: super::extension::Extensions::default(),
        });
        router.common.set_tool_timeout(limit_of(&options));
        let shared = Shared {
            options: RwLock::new(options),
            router,
            facts: Mutex::new(None),
            stop: Signal::default(),
            #[cfg(feature = "http")]
            draining: Signal::default(),
            #[cfg(feature = "http")]
            undrained: Arc::default(),
            #[cfg(feature = "http")]
            mounted: Mutex::default(),
            connections: AtomicUsize::new(0),
            meters: Mutex::default(),
            links: Links::default(),
            #[cfg(feature = "runtime")]
            outbox: Arc::default(),
            #[cfg(feature = "redis")]
            node: Mutex::new(Weak::<()>::new()),
            #[cfg(feature = "runtime")]
            lifespan: RwLock::default(),
            #[cfg(feature = "runtime")]
            life: tokio::sync::Mutex::default(),
        };
        let server = Self { shared: Arc::new(shared), mistake };
        server.tells_of_tasks();
        server
    }

    /// Tells clients that listen to tasks the states of these.
    fn tells_of_tasks(&self) {
        let Some(tasks) = self.shared.router.tasks() else { return };
        let shared = Arc::downgrade(&self.shared);
        tasks.heard_by(move |id, version, params| {
            if let Some(shared) = shared.upgrade() {
                shared.links.tell(|| Input::Task { id: id.into(), version, params: params.clone() });
            }
        });
    }

    fn set(mut self, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut options = self.shared.options.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut options);
        let (checked, page_size, cache) = (options.check(), options.page_size.max(1), options.cache);
        self.shared.router.common.set_tool_timeout(limit_of(&options));
        drop(options);
        if let Err(error) = checked {
            self.mistake.get_or_insert(error);
        }
        self.shared.router.page_size.store(page_size, Ordering::Relaxed);
        *self.shared.router.cache.write().unwrap_or_else(PoisonError::into_inner) = cache;
        self.changed();
        self
    }

    /// Version of the program. Default `0.0.0`.
    #[must_use]
    pub fn version(self, version: impl Into<String>) -> Self {
        self.set(|o| o.version = version.into())
    }

    /// Speaks only this revision, such as `2025-11-25`, or only those with handshakes (`legacy`) or without (`modern`).
    /// Default: all of them.
    #[must_use]
    pub fn revision(self, revision: impl Into<String>) -> Self {
        self.set(|o| o.revision = Some(revision.into()))
    }

    /// Name for people.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.set(|o| o.title = Some(title.into()))
    }

    /// Sets the description, for people.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.set(|o| o.description = Some(description.into()))
    }

    /// Sets the web page about it.
    #[must_use]
    pub fn website_url(self, url: impl Into<String>) -> Self {
        self.set(|o| o.website_url = Some(url.into()))
    }

    /// The schema's `Icon` objects, as an array.
    #[must_use]
    pub fn icons(self, icons: &Value) -> Self {
        self.set(|o| o.icons = Some(RawJson::from_value(icons)))
    }

    /// A hint for the model on how to use the server.
    #[must_use]
    pub fn instructions(self, text: impl Into<String>) -> Self {
        self.set(|o| o.instructions = Some(text.into()))
    }

    /// Declares these to clients besides the existing ones, though there is none of it yet: `completions`, `prompts`,
    /// `resources`. A client never asks for a feature that it was not told of as it connected. Default: none.
    #[must_use]
    pub fn capabilities<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.set(|o| o.capabilities.extend(names.into_iter().map(|name| (name.into(), json!({})))))
    }

    /// Declares a capability that this library knows nothing of to clients, such as `experimental`: an object.
    #[must_use]
    pub fn capability(self, name: impl Into<String>, value: Value) -> Self {
        self.set(|o| drop(o.capabilities.insert(name.into(), value)))
    }

    /// Introduces the server as another one has introduced itself, which it stands before: `serverInfo`, and capabilities
    /// besides its own. They are the other's, so nothing of them is checked.
    #[doc(hidden)]
    #[must_use]
    pub fn introduction(self, info: Option<RawJson>, capabilities: Map<String, Value>) -> Self {
        self.set(|o| o.introduction = Some((info, capabilities)))
    }

    /// Entries on one page of a list. Default 250; 0 is a mistake, reported when serving starts, here and below.
    #[must_use]
    pub fn page_size(self, entries: usize) -> Self {
        self.set(|o| o.page_size = entries)
    }

    /// Sets the lifetime and the scope of the server's answers in clients' caches (revision 2026-07-28). Default: none
    /// is cached.
    #[must_use]
    pub fn cache(self, options: CacheOptions) -> Self {
        self.set(|o| o.cache = options)
    }

    /// The longest message in bytes. Default 4 MiB.
    #[must_use]
    pub fn max_message_bytes(self, bytes: usize) -> Self {
        self.set(|o| o.max_message_bytes = bytes)
    }

    /// The deepest nesting of a message. Default 128.
    #[must_use]
    pub fn max_nesting(self, levels: usize) -> Self {
        self.set(|o| o.max_nesting = levels)
    }

    /// The most memory that a message's values may take once they are decoded, in bytes and by estimate: many small ones
    /// take a hundred times what their text does. Default 64 MiB.
    #[must_use]
    pub fn max_decoded_bytes(self, bytes: usize) -> Self {
        self.set(|o| o.max_decoded_bytes = bytes)
    }

    /// The most that the whole process keeps for its peers at any time, in bytes: long bodies and what is in them,
    /// events for clients that lose a stream, notifications for slow readers. One client has at most as much as is left
    /// for others. Beyond it what is idle is given up, then new work is refused (503 over HTTP). All servers and
    /// clients of the process draw on it, and the last one to set it sets it for all. Default: a quarter of the memory
    /// that the machine or its control group has, and 64 MiB at least.
    #[must_use]
    pub fn max_memory(self, bytes: usize) -> Self {
        self.set(|o| o.max_memory = Some(bytes))
    }

    /// Requests worked on at once per connection. Default 256.
    #[must_use]
    pub fn max_in_flight(self, requests: usize) -> Self {
        self.set(|o| o.max_in_flight = requests)
    }

    /// Notifications that may wait for a slow peer. Default 256; 0 is none.
    #[must_use]
    pub fn max_queued_notifications(self, notifications: usize) -> Self {
        self.set(|o| o.max_queued_notifications = notifications)
    }

    /// Listen streams (`subscriptions/listen`) that one connection may have open; over HTTP each is a request of its own.
    /// Default 64.
    #[must_use]
    pub fn max_listeners(self, streams: usize) -> Self {
        self.set(|o| o.max_listeners = streams)
    }

    /// Time without a message of a legacy client after which it is asked for a sign of life, where it can be reached
    /// (over HTTP: through a standalone stream). Default: never; zero is never.
    #[must_use]
    pub fn ping_interval(self, interval: Duration) -> Self {
        self.set(|o| o.ping_interval = kept(interval))
    }

    /// Time after which a client that does not answer that is taken for lost, and its session ends. Default 20 s.
    #[must_use]
    pub fn ping_timeout(self, timeout: Duration) -> Self {
        self.set(|o| o.ping_timeout = kept(timeout))
    }

    /// Time after which a tool's handler is cancelled, and its caller answered with an error that the model can read. It
    /// begins anew with each round of questions in revision 2026-07-28; in others the wait for answers of the client counts.
    /// Default: none; zero is none.
    /// [`Tool::timeout`](crate::model::Tool::timeout) says otherwise for one tool.
    #[must_use]
    pub fn tool_timeout(self, time: Duration) -> Self {
        self.set(|o| o.tool_timeout = kept(time))
    }

    /// Runs tool calls as tasks, where client and tool want that: in 2025-11-25 as the specification has them
    /// (experimental), in 2026-07-28 by the extension `io.modelcontextprotocol/tasks`. A tool says so with
    /// [`Tool::task_support`](crate::model::Tool::task_support), or its handler with
    /// [`Context::run_as_task`](crate::Context::run_as_task). Tasks belong to a client's session or connection: no other
    /// sees them, and they end with it. Over HTTP those of 2026-07-28 belong to their principal, or to whoever knows their
    /// id, and end by their time.
    #[must_use]
    pub fn tasks(self, options: TaskOptions) -> Self {
        let tasks = Some(Tasks::new(options.clone()));
        let before =
            std::mem::replace(&mut *self.shared.router.tasks.write().unwrap_or_else(PoisonError::into_inner), tasks);
        drop(before);
        self.tells_of_tasks();
        self.set(|o| o.tasks = Some(options))
    }

    /// Secrets of at least 32 bytes that seal what a request of revision 2026-07-28 remembers between two rounds of
    /// questions (`requestState`). The first one seals, all of them open. Servers that answer the same clients need the
    /// same, and the same name: another does not open what this one has sealed. Default: a secret of this process alone.
    /// None at all, such as of a setting that was lost, is a mistake.
    #[cfg(feature = "runtime")]
    #[must_use]
    pub fn request_state_keys<S: Into<String>>(self, keys: impl IntoIterator<Item = S>) -> Self {
        self.set(|o| o.request_state_keys = keys.into_iter().collect()).sealing()
    }

    /// Sets the lifetime of such a state: as long as a user may take to answer one round. A client that comes back in
    /// time gets a new one, which holds as long again. Whole seconds count, begun ones too. Default 10 minutes.
    #[cfg(feature = "runtime")]
    #[must_use]
    pub fn request_state_ttl(self, ttl: Duration) -> Self {
        self.set(|o| o.request_state_ttl = kept(ttl)).sealing()
    }

    /// The longest such state, in bytes as it is sent: Base64, so that the answers and steps in it have three quarters
    /// of that. Default 16 KiB.
    #[cfg(feature = "runtime")]
    #[must_use]
    pub fn max_request_state_bytes(self, bytes: usize) -> Self {
        self.set(|o| o.max_request_state_bytes = bytes).sealing()
    }

    /// Sets the store that makes one server of several processes: a URL such as `redis://host:6379`, or
    /// [`StoreOptions`](super::StoreOptions). They need the same name and the same store. Needs the feature `redis`.
    /// Default: the URL in the environment variable `TRICORN_STORE`; without one each process is a server of its own.
    #[cfg(feature = "runtime")]
    #[must_use]
    pub fn store(self, store: impl Into<super::StoreOptions>) -> Self {
        self.set(|o| o.store = Some(store.into()))
    }

    /// Sets the function that names the principal of a request: a state between rounds (`requestState`) of one
    /// principal is refused to all others. Values that middleware put beside the request
    /// ([`Context::with_state`](crate::Context::with_state)) are there. `None`: no principal in particular, and any
    /// request that gets the same answer may go on. Called from any thread, of requests that ask or go on alone; it
    /// must not ask the client. Default: the [principal](crate::Context::principal) where access tokens are checked;
    /// else the issuer and subject of a JSON Web Token in `Authorization`, which is not verified here, else that header
    /// as it is.
    ///
    /// ```
    /// # use tricorn::Server;
    /// let header = |name| move |cx: &tricorn::Context| {
    ///     let headers = cx.request().transport.headers();
    ///     headers.into_iter().find(|(own, _)| own == name).map(|(_, value)| value)
    /// };
    /// Server::new("shop").principal(header("x-api-key"));
    /// ```
    #[cfg(feature = "runtime")]
    #[must_use]
    pub fn principal<F>(self, of: F) -> Self
    where
        F: Fn(&Context) -> Option<String> + Send + Sync + 'static,
    {
        self.state(Principal(Arc::new(move |context| Ok(of(context)))))
    }

    #[cfg(feature = "runtime")]
    fn sealing(self) -> Self {
        match self.options().sealer() {
            Ok(sealer) => self.state(sealer),
            // It is the mistake already.
            Err(_) => self,
        }
    }

    /// Hears of errors that the model is not shown, and of the tool that failed: those that `?` made a
    /// [`HandlerError`](super::HandlerError) of, panics, results that do not fit the output schema. Called from any thread.
    /// Default: a line on standard error.
    #[must_use]
    pub fn on_error<F>(self, f: F) -> Self
    where
        F: Fn(&(dyn std::error::Error + Send + Sync + 'static), &str) + Send + Sync + 'static,
    {
        self.hears_of_errors(move |error, name, _| f(error, name));
        self
    }

    /// As [`on_error`](Self::on_error), with what kind of error it is.
    pub(crate) fn hears_of_errors<F>(&self, f: F)
    where
        F: Fn(&(dyn std::error::Error + Send + Sync + 'static), &str, &str) + Send + Sync + 'static,
    {
        self.shared.router.common.failures.heard_by(Arc::new(f));
    }

    /// Puts middleware around every request that a handler of this server answers, on every transport; the first that
    /// was added is the outermost.
    #[must_use]
    pub fn middleware(self, middleware: impl Middleware) -> Self {
        self.add_middleware(Arc::new(middleware));
        self
    }

    /// As [`middleware`](Self::middleware), for requests that come from now on.
    pub fn add_middleware(&self, middleware: Arc<dyn Middleware>) {
        self.shared.router.middleware.add(middleware);
    }

    /// Gives every handler this value, as [`Context::state`](crate::Context::state).
    #[must_use]
    pub fn state<T: Any + Send + Sync>(self, value: T) -> Self {
        let mut states = self.shared.router.states.write().unwrap_or_else(PoisonError::into_inner);
        *states = states.and(Arc::new(value));
        drop(states);
        self
    }

    /// Stops serving everywhere: nothing more is accepted, running calls and tasks are cancelled.
    pub fn close(&self) {
        if let Some(tasks) = self.shared.router.tasks() {
            tasks.end_all();
        }
        self.shared.stop.set();
    }

    /// To know whether it is still there.
    #[cfg(feature = "runtime")]
    pub(crate) fn weak(&self) -> Weak<dyn Any + Send + Sync> {
        Arc::downgrade(&self.shared) as Weak<dyn Any + Send + Sync>
    }

    pub(super) fn changed(&self) {
        *self.shared.facts.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The first mistake that was made while building, and whether it may be used still.
    ///
    /// # Errors
    /// That mistake; [`Closed`](crate::ErrorKind::Closed) when it was closed.
    pub(crate) fn check(&self) -> Result<()> {
        if self.shared.stop.is_set() {
            return Err(Error::closed("the server was closed: make a new one"));
        }
        #[cfg(feature = "http")]
        if self.shared.draining.is_set() {
            return Err(Error::closed("the server drains, and is closed then: make a new one"));
        }
        if let Some(bytes) = self.shared.options.read().unwrap_or_else(PoisonError::into_inner).max_memory {
            budget::set_max(bytes);
        }
        self.mistake.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn options(&self) -> ServerOptions {
        self.shared.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn limits(&self) -> Limits {
        let options = self.shared.options.read().unwrap_or_else(PoisonError::into_inner);
        Limits {
            max_message_bytes: options.max_message_bytes,
            max_nesting: options.max_nesting,
            max_decoded_bytes: options.max_decoded_bytes,
            max_batch: options.max_in_flight,
        }
    }

    /// Tools may come at any time, and what a connection was told when it began holds as long as it does. Other things
    /// are declared once there are some.
    fn declared(&self) -> Map<String, Value> {
        let registry = self.shared.router.registry.read().unwrap_or_else(PoisonError::into_inner);
        let given = self.shared.options.read().unwrap_or_else(PoisonError::into_inner).capabilities.clone();
        let ahead = |name: &str| given.contains_key(name);
        let mut declared = Map::new();
        let resources =
            ahead("resources") || registry.offers(Kind::Resource) || registry.offers(Kind::ResourceTemplate);
        let prompts = ahead("prompts") || registry.offers(Kind::Prompt);
        if prompts || ahead("completions") || registry.offers(Kind::ResourceTemplate) || registry.completion.is_some() {
            declared.insert("completions".into(), json!({}));
        }
        declared.insert("logging".into(), json!({}));
        if prompts {
            declared.insert("prompts".into(), json!({"listChanged": true}));
        }
        if resources {
            declared.insert("resources".into(), json!({"subscribe": true, "listChanged": true}));
        }
        if self.shared.router.tasks().is_some() {
            let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
            declared.insert("tasks".into(), tasks);
        }
        declared.insert("tools".into(), json!({"listChanged": true}));
        declared.extend(given.into_iter().filter(|(name, _)| !DECLARABLE.contains(&name.as_str())));
        let mut extensions = self.shared.router.extensions.settings();
        if self.shared.router.tasks().is_some() {
            extensions.insert(TASKS_EXTENSION.into(), json!({}));
        }
        if !extensions.is_empty()
            && let Some(all) = declared.entry("extensions").or_insert_with(|| json!({})).as_object_mut()
        {
            all.extend(extensions);
        }
        declared
    }

    /// Returns the facts that every connection of this server announces.
    pub(crate) fn facts(&self) -> Arc<Facts> {
        let mut slot = self.shared.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(facts) = &*slot {
            return facts.clone();
        }
        let options = self.options();
        let mut info = Implementation::new(options.name, options.version);
        info.title = options.title;
        info.description = options.description;
        info.website_url = options.website_url;
        info.icons = options.icons;
        let mut capabilities = self.declared();
        let mut info = RawJson::from_value(&info);
        if let Some((theirs, foreign)) = options.introduction {
            info = theirs.unwrap_or(info);
            for (name, value) in foreign {
                capabilities.entry(name).or_insert(value);
            }
        }
        let facts = Arc::new(Facts {
            role: Role::Server,
            info,
            capabilities: Capabilities::new(RawJson::from_value(&capabilities)),
            instructions: options.instructions,
            discovery: options.cache.of_discovery(),
            revisions: spoken("server", options.revision.as_deref()).unwrap_or_else(|_| Revision::ALL.to_vec()),
            methods: self.shared.router.extensions.rows(),
            passes_on: self.shared.router.has_fallback(),
            max_in_flight: options.max_in_flight,
            max_listeners: options.max_listeners,
            max_queued_notifications: options.max_queued_notifications,
            keep_alive: KeepAlive::of(options.ping_interval, options.ping_timeout).unwrap_or_default(),
        });
        *slot = Some(facts.clone());
        facts
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("options", &self.options()).finish_non_exhaustive()
    }
}

/// Returns the longest time of a tool's handler. A mistake in it is found elsewhere.
fn limit_of(options: &ServerOptions) -> Duration {
    Duration::try_from_secs_f64(options.tool_timeout).unwrap_or_default()
}
