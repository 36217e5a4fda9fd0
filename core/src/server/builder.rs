use std::any::Any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::Router;
use super::listed::{Common, Kind};
use super::registry::Registry;
use super::session::Links;
use super::usage::Meter;
use crate::call::{Chain, Middleware, TaskOptions, Tasks};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{Limits, RawJson};
use crate::model::{Capabilities, Implementation, check_icons};
use crate::protocol::revision::Revision;
use crate::protocol::{Facts, KeepAlive, Role};
use crate::signal::Signal;

/// What a server says of itself and what it will bear. The same names in every language.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Programmatic name. Required.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Name for people.
    pub title: Option<String>,
    /// What it is, for people.
    pub description: Option<String>,
    /// Where to read about it.
    pub website_url: Option<String>,
    /// The schema's `Icon` objects.
    pub icons: Option<RawJson>,
    /// A hint for the model on how to use the server.
    pub instructions: Option<String>,
    /// What is declared to clients besides what there is: `completions`, `prompts`, `resources` though there is none of it
    /// yet, because what a client was not told of as it connected it never asks for; and as members with an object,
    /// `experimental` or any other capability that this library knows nothing of. JSON: an array of names, or an
    /// object. Default: nothing.
    #[serde(deserialize_with = "names_or_members")]
    pub capabilities: Map<String, Value>,
    /// Entries on one page of a list. Default 250.
    pub page_size: usize,
    /// The longest message in bytes. Default 4 MiB.
    pub max_message_bytes: usize,
    /// The deepest nesting of a message. Default 128.
    pub max_nesting: usize,
    /// Requests worked on at once per connection. Default 256.
    pub max_in_flight: usize,
    /// Notifications that may wait for a slow peer. Default 256.
    pub max_queued_notifications: usize,
    /// Seconds without a message of a legacy client after which it is asked for a sign of life, where it can be reached
    /// (over HTTP: through a standalone stream); 0 for never, the default.
    pub ping_interval: f64,
    /// Seconds after which a client that does not answer that is taken for lost, and its session ends. Default 20.
    pub ping_timeout: f64,
    /// Runs tool calls as tasks, where client and tool want that. Default: no tasks.
    pub tasks: Option<TaskOptions>,
}

/// What can be declared before there is any.
const DECLARABLE: [&str; 4] = ["completions", "prompts", "resources", "tools"];
/// What the engine declares, and from what.
const OWN: [(&str, &str); 2] = [("logging", "it is always there"), ("tasks", "switch them on by the option \"tasks\"")];

/// Of names each is a capability without details.
fn names_or_members<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Map<String, Value>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected names of capabilities, or an object")]
    enum Given {
        Names(Vec<String>),
        Members(Map<String, Value>),
    }
    Ok(match Given::deserialize(deserializer)? {
        Given::Names(names) => names.into_iter().map(|name| (name, json!({}))).collect(),
        Given::Members(members) => members,
    })
}

/// Whether a server may declare this.
fn check_capability(name: &str, value: &Value) -> Result<()> {
    let wrong = |why: String| Err(Error::misuse(format!("server option \"capabilities\": {name:?}: {why}")));
    let Some(members) = value.as_object() else {
        return wrong(format!("expected an object, got {}", shortened(&value.to_string(), 60)));
    };
    if let Some((_, why)) = OWN.iter().find(|(own, _)| *own == name) {
        return wrong((*why).to_owned());
    }
    let known = DECLARABLE.contains(&name);
    if known && !members.is_empty() {
        return wrong("what it says is the engine's, expected {}".to_owned());
    }
    // A name that is nobody's and says nothing is a slip of the pen.
    if !known && members.is_empty() && !matches!(name, "experimental" | "extensions") {
        let expected = DECLARABLE.join(", ");
        return wrong(format!("expected {expected}, or an object of what it offers"));
    }
    Ok(())
}

impl Default for ServerOptions {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            name: String::new(),
            version: "0.0.0".into(),
            title: None,
            description: None,
            website_url: None,
            icons: None,
            instructions: None,
            capabilities: Map::new(),
            page_size: 250,
            max_message_bytes: limits.max_message_bytes,
            max_nesting: limits.max_nesting,
            max_in_flight: 256,
            max_queued_notifications: 256,
            ping_interval: 0.0,
            ping_timeout: 20.0,
            tasks: None,
        }
    }
}

impl ServerOptions {
    /// Reads the options from JSON.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let options: Self = crate::options::read("server options", text)?;
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<()> {
        if self.name.is_empty() {
            return Err(Error::misuse("server option \"name\": missing, expected the server's name"));
        }
        KeepAlive::of(self.ping_interval, self.ping_timeout)?;
        if let Some(icons) = &self.icons {
            let icons = icons.to().unwrap_or_default();
            check_icons(&icons).map_err(|why| Error::misuse(format!("server option {why}")))?;
        }
        self.capabilities.iter().try_for_each(|(name, value)| check_capability(name, value))?;
        for (name, value) in [
            ("page_size", self.page_size),
            ("max_message_bytes", self.max_message_bytes),
            ("max_nesting", self.max_nesting),
            ("max_in_flight", self.max_in_flight),
        ] {
            if value == 0 {
                return Err(Error::misuse(format!("server option {name:?}: expected at least 1, got 0")));
            }
        }
        self.tasks.as_ref().map_or(Ok(()), TaskOptions::check)
    }
}

/// A server: what it offers, to any number of connections at once. A clone is the same server.
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
    pub(crate) connections: AtomicUsize,
    /// The transports that have more to count.
    pub(crate) meters: Mutex<Vec<Weak<dyn Meter>>>,
    /// The connections that are told of changes.
    pub(crate) links: Links,
    #[cfg(feature = "runtime")]
    pub(crate) lifespan: RwLock<Option<Arc<dyn super::Lifespan>>>,
    #[cfg(feature = "runtime")]
    pub(crate) life: tokio::sync::Mutex<super::lifespan::Life>,
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
        let router = Arc::new_cyclic(|this| Router {
            this: this.clone(),
            middleware: Chain::default(),
            states: RwLock::default(),
            lifespan_state: RwLock::default(),
            registry: RwLock::new(Registry::default()),
            common: Arc::new(Common::default()),
            page_size: AtomicUsize::new(options.page_size.max(1)),
            tasks: RwLock::new(options.tasks.clone().map(Tasks::new)),
        });
        let mistake = options.check().err();
        let shared = Shared {
            options: RwLock::new(options),
            router,
            facts: Mutex::new(None),
            stop: Signal::default(),
            connections: AtomicUsize::new(0),
            meters: Mutex::default(),
            links: Links::default(),
            #[cfg(feature = "runtime")]
            lifespan: RwLock::default(),
            #[cfg(feature = "runtime")]
            life: tokio::sync::Mutex::default(),
        };
        Self { shared: Arc::new(shared), mistake }
    }

    fn set(mut self, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut options = self.shared.options.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut options);
        let (checked, page_size) = (options.check(), options.page_size.max(1));
        drop(options);
        if let Err(error) = checked {
            self.mistake.get_or_insert(error);
        }
        self.shared.router.page_size.store(page_size, Ordering::Relaxed);
        self.changed();
        self
    }

    /// Version of the program.
    #[must_use]
    pub fn version(self, version: impl Into<String>) -> Self {
        self.set(|o| o.version = version.into())
    }

    /// Name for people.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.set(|o| o.title = Some(title.into()))
    }

    /// What it is, for people.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        self.set(|o| o.description = Some(description.into()))
    }

    /// Where to read about it.
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

    /// Declares these to clients, also before there are any: `completions`, `prompts`, `resources`.
    #[must_use]
    pub fn capabilities<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.set(|o| o.capabilities.extend(names.into_iter().map(|name| (name.into(), json!({})))))
    }

    /// Declares a capability that this library knows nothing of to clients, such as `experimental`: an object.
    #[must_use]
    pub fn capability(self, name: impl Into<String>, value: Value) -> Self {
        self.set(|o| drop(o.capabilities.insert(name.into(), value)))
    }

    /// Entries on one page of a list. Default 250; 0 is a mistake, reported when serving starts, here and below.
    #[must_use]
    pub fn page_size(self, entries: usize) -> Self {
        self.set(|o| o.page_size = entries)
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

    /// Time without a message of a legacy client after which it is asked for a sign of life, where it can be reached
    /// (over HTTP: through a standalone stream). Default: never; zero is never.
    #[must_use]
    pub fn ping_interval(self, interval: Duration) -> Self {
        self.set(|o| o.ping_interval = interval.as_secs_f64())
    }

    /// Time after which a client that does not answer that is taken for lost, and its session ends. Default 20 s.
    #[must_use]
    pub fn ping_timeout(self, timeout: Duration) -> Self {
        self.set(|o| o.ping_timeout = timeout.as_secs_f64())
    }

    /// Runs tool calls as tasks, where client and tool want that (specification 2025-11-25, tasks, experimental). A tool
    /// says so with [`Tool::task_support`](crate::model::Tool::task_support). Tasks belong to a client's session: no
    /// other sees them, and they end with it.
    #[must_use]
    pub fn tasks(self, options: TaskOptions) -> Self {
        let tasks = Some(Tasks::new(options.clone()));
        let before =
            std::mem::replace(&mut *self.shared.router.tasks.write().unwrap_or_else(PoisonError::into_inner), tasks);
        drop(before);
        self.set(|o| o.tasks = Some(options))
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

    /// Stops serving everywhere: nothing more is accepted, running calls are cancelled.
    pub fn close(&self) {
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

    /// The first mistake that was made while building.
    ///
    /// # Errors
    /// That mistake.
    pub(crate) fn check(&self) -> Result<()> {
        self.mistake.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn options(&self) -> ServerOptions {
        self.shared.options.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn limits(&self) -> Limits {
        let options = self.shared.options.read().unwrap_or_else(PoisonError::into_inner);
        Limits { max_message_bytes: options.max_message_bytes, max_nesting: options.max_nesting }
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
        declared
    }

    /// What every connection of this server says.
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
        let capabilities = self.declared();
        let facts = Arc::new(Facts {
            role: Role::Server,
            info: RawJson::from_value(&info),
            capabilities: Capabilities::new(RawJson::from_value(&capabilities)),
            instructions: options.instructions,
            revisions: Revision::ALL.to_vec(),
            max_in_flight: options.max_in_flight,
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
