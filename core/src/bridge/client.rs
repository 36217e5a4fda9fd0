use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::following::{Following, follow};
use super::origin::Started;
use super::timing::timing_of;
use super::{Bridge, HostHandler, lock};
use crate::call::{CallOptions, Middleware};
use crate::client::{self, Change, ClientOptions, Events, Handlers, Listening, Roots, Target};
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::middleware::Timing;
use crate::options::type_of;
use crate::protocol::Opening;
use crate::protocol::revision::{Method, Revision, object};
use crate::server;
use crate::signal::Signal;

/// A host's client object.
pub struct Client {
    pub(super) bridge: Bridge,
    pub(super) source: u32,
    pub(super) timing: Timing,
    target: To,
    options: ClientOptions,
    handlers: Arc<Mutex<Handlers>>,
    roots: Mutex<Option<Roots>>,
    state: Connection,
    /// Streams that the host listens to, by its own numbers.
    listening: Arc<Mutex<HashMap<u64, Arc<Listening>>>>,
    following: Following,
}

/// Options in which functions of the host are numbers.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
pub(super) fn given<T>(
    bridge: &Bridge,
    options: &str,
    parse: fn(&str) -> Result<T>,
    of: fn(&mut T) -> &mut ClientOptions,
) -> Result<T> {
    #[cfg(feature = "auth")]
    let parse = |rest: &str| super::auth::client_options(bridge, rest, parse, of);
    let parse = |rest: &str| super::cache::client_options(bridge, rest, parse, of);
    super::http_transport::client_options(bridge, options, parse, of)
}

/// Splits the values of a configuration's placeholders from the options.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for values that are no texts by name.
pub(super) fn variables(options: &str) -> Result<(BTreeMap<String, String>, Cow<'_, str>)> {
    const NAME: &str = "variables";
    if !options.contains(NAME) {
        return Ok((BTreeMap::new(), Cow::Borrowed(options)));
    }
    let mut members: Map<String, Value> =
        serde_json::from_str(options).map_err(|e| Error::misuse(format!("client options: {e}")))?;
    let given = members.shift_remove(NAME).unwrap_or_default();
    let given = match given {
        Value::Null => Map::new(),
        Value::Object(given) => given,
        other => {
            let got = type_of(&other);
            let why = format!("client options: option \"variables\": expected an object of strings, got {got}");
            return Err(Error::misuse(why));
        }
    };
    let text = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok((name, text)),
        other => {
            let got = type_of(&other);
            let why = format!("client options: option \"variables\": {name:?}: expected a string, got {got}");
            Err(Error::misuse(why))
        }
    };
    let given = given.into_iter().map(text).collect::<Result<_>>()?;
    Ok((given, Cow::Owned(Value::Object(members).to_string())))
}

/// State of the client's connection.
#[derive(Default)]
pub(super) enum State {
    #[default]
    Idle,
    /// Set when it is closed meanwhile.
    Connecting(Arc<Signal>),
    Connected(client::Client),
    /// By the host, which may connect anew.
    Closed,
}

/// One attempt to connect. Dropped before it succeeds, the client may try again.
struct Attempt {
    state: Connection,
    closed: Arc<Signal>,
}

impl Attempt {
    fn begin(state: &Arc<Mutex<State>>) -> Result<Self> {
        let mut now = lock(state);
        match *now {
            State::Idle | State::Closed => {}
            State::Connecting(_) => return Err(Error::misuse("the client is connecting already")),
            State::Connected(_) => return Err(Error::misuse("the client is already connected")),
        }
        let closed = Arc::new(Signal::default());
        *now = State::Connecting(closed.clone());
        drop(now);
        Ok(Self { state: state.clone(), closed })
    }

    /// Puts `next` where this attempt is, unless the client was closed meanwhile: then it comes back.
    fn replace(&self, next: State) -> Option<State> {
        let mut now = lock(&self.state);
        match &*now {
            State::Connecting(closed) if Arc::ptr_eq(closed, &self.closed) => {
                *now = next;
                None
            }
            _ => Some(next),
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        drop(self.replace(State::Idle));
    }
}

/// A client's place, which its group fills, too.
pub(super) type Connection = Arc<Mutex<State>>;

/// Result of opening a connection: the server's own words, and the way to it where that is not known.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Opened<'a> {
    protocol_version: Revision,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    era: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_info: Option<&'a RawJson>,
    capabilities: &'a RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
    initialize_result: &'a RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
}

impl<'a> Opened<'a> {
    fn of(opening: &'a Opening) -> Self {
        Self {
            protocol_version: opening.revision,
            transport: None,
            era: opening.revision.era().as_str(),
            server_info: opening.peer.info.as_ref(),
            capabilities: opening.peer.capabilities.raw(),
            instructions: opening.instructions.as_deref(),
            initialize_result: &opening.result,
            session_id: None,
        }
    }
}

/// Returns the facts that are settled once a client has connected.
pub(super) fn opened(client: &client::Client) -> RawJson {
    let (transport, session_id) = (Some(client.transport()), client.session_id());
    RawJson::from_value(&Opened { transport, session_id, ..Opened::of(&client.connected.opening()) })
}

#[derive(Clone)]
enum To {
    Target(Target),
    Memory(server::Server),
    /// The group that it is one of connects it.
    Group,
}

struct HostEvents {
    bridge: Bridge,
    source: u32,
}

impl Events for HostEvents {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        self.bridge.offer_event(self.source, "notification", super::message(method, params));
    }

    fn notification_within(&self, origin: u64, method: &str, params: Option<&RawJson>) {
        self.bridge.offer_event_of(origin, self.source, "notification", super::message(method, params));
    }

    fn stderr(&self, line: &str) {
        self.bridge.offer_event(self.source, "stderr", RawJson::from_value(&json!({"line": line})));
    }

    fn warning(&self, message: &str) {
        self.bridge.offer_event(self.source, "warning", RawJson::from_value(&json!({"message": message})));
    }

    fn reopened(&self, opening: &Opening) {
        self.bridge.event(self.source, "reopened", RawJson::from_value(&Opened::of(opening)));
    }

    fn closed(&self, reason: &Error) {
        self.bridge.event(self.source, "closed", RawJson::from_value(&json!({"reason": reason.message()})));
    }
}

impl Client {
    /// A client that is not connected yet; `source` is the number under which its events arrive, `target` and
    /// `options` are JSON. Besides the client's own, an option `variables` says what the placeholders of a configuration
    /// stand for.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn new(bridge: &Bridge, source: u32, target: &str, options: &str) -> Result<Self> {
        let (variables, options) = variables(options)?;
        Self::to(bridge, source, To::Target(Target::parse_with(target, &variables)?), &options)
    }

    /// A client for a server in this process, through memory.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn in_memory(bridge: &Bridge, source: u32, server: &super::Server, options: &str) -> Result<Self> {
        let (_, options) = variables(options)?;
        Self::to(bridge, source, To::Memory(server.server.clone()), &options)
    }

    fn to(bridge: &Bridge, source: u32, target: To, options: &str) -> Result<Self> {
        let options = given(bridge, options, ClientOptions::parse, |own| own)?;
        Ok(Self::made(bridge, source, target, options))
    }

    /// The client of one server of a group.
    pub(super) fn of_group(bridge: &Bridge, source: u32, options: ClientOptions) -> Self {
        Self::made(bridge, source, To::Group, options)
    }

    fn made(bridge: &Bridge, source: u32, target: To, options: ClientOptions) -> Self {
        let handlers = Handlers::new().events(HostEvents { bridge: bridge.clone(), source }).hearing(false);
        Self {
            bridge: bridge.clone(),
            source,
            timing: Timing::new(),
            target,
            options,
            handlers: Arc::new(Mutex::new(handlers)),
            roots: Mutex::default(),
            state: Arc::default(),
            listening: Arc::default(),
            following: Arc::default(),
        }
    }

    /// Returns the parts that a group needs to connect this client.
    pub(super) fn parts(&self) -> (Arc<Mutex<Handlers>>, Connection) {
        (self.handlers.clone(), self.state.clone())
    }

    /// Answers a request that a server may send, such as `sampling/createMessage`, with a host's function; `capability`
    /// is JSON, what is declared for it, such as `{"tools": {}}`. Before connecting.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a request that no server sends, or a capability that is no object.
    pub fn set_handler(&self, method: &str, capability: &str, handler: u32) -> Result<()> {
        let row = Method::find(method)
            .filter(|row| row.from_server() && !row.from_client() && !row.notification && row.capability.is_some());
        let row = row.ok_or_else(|| Error::misuse(format!("{method:?} is no request of a server")))?;
        let capability: Value =
            serde_json::from_str(capability).map_err(|e| Error::misuse(format!("capability of {method:?}: {e}")))?;
        if !capability.is_object() {
            return Err(Error::misuse(format!("capability of {method:?}: expected an object, got {capability}")));
        }
        let mut handlers = lock(&self.handlers);
        let host = Arc::new(HostHandler { bridge: self.bridge.clone(), handler });
        *handlers = std::mem::take(&mut *handlers).answer(row.name, host, capability);
        Ok(())
    }

    pub(super) fn wrap(&self, middleware: Arc<dyn Middleware>) {
        let mut handlers = lock(&self.handlers);
        *handlers = std::mem::take(&mut *handlers).middleware(middleware);
    }

    /// Answers `roots/list` with these, a JSON array of `file://` URIs, paths or `Root` objects. After connecting, the
    /// server is told that they have changed.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for what is no `file://` URI.
    #[expect(deprecated, reason = "hosts mark it in their languages")]
    pub fn set_roots(&self, roots: &str) -> Result<()> {
        let given: Vec<Value> = serde_json::from_str(roots).map_err(|e| Error::misuse(format!("roots: {e}")))?;
        let known = lock(&self.roots).clone();
        if let Some(roots) = known {
            return roots.set(given);
        }
        if matches!(*lock(&self.state), State::Connected(_)) {
            return Err(Error::misuse("roots: none were given before connecting, so the server was not told of any"));
        }
        let roots = Roots::new(given)?;
        let mut handlers = lock(&self.handlers);
        *handlers = std::mem::take(&mut *handlers).roots(&roots);
        *lock(&self.roots) = Some(roots);
        Ok(())
    }

    /// Connects; settles `{"protocolVersion", "era", "transport", "serverInfo"?, "capabilities", "instructions"?,
    /// "initializeResult", "sessionId"?}`; `initializeResult` is what the server answered to `initialize` or
    /// `server/discover`, as it came.
    pub fn connect(&self, op: u64) {
        let (target, options) = (self.target.clone(), self.options.clone());
        let handlers = lock(&self.handlers).clone();
        let attempt = Attempt::begin(&self.state);
        self.bridge.spawn_causing(op, |_| async move {
            let attempt = attempt?;
            let connecting = async {
                match target {
                    To::Target(target) => client::Client::connect_with(&target, &options, &handlers).await,
                    To::Memory(server) => client::Client::in_memory_with(&server, &options, &handlers).await,
                    To::Group => Err(Error::misuse("the client is one of a group: connect that")),
                }
            };
            let closed = || Error::closed("the client was closed while it connected");
            // Dropped, it ends what it has begun.
            let client = tokio::select! {
                client = connecting => client?,
                () = attempt.closed.wait() => return Err(closed()),
            };
            let opened = opened(&client);
            if attempt.replace(State::Connected(client.clone())).is_some() {
                client.close().await;
                return Err(closed());
            }
            Ok(opened)
        });
    }

    fn connected(&self) -> Result<client::Client> {
        match &*lock(&self.state) {
            State::Connected(client) => Ok(client.clone()),
            State::Closed => Err(Error::closed("the client was closed")),
            _ => Err(Error::misuse("the client is not connected: await connect first")),
        }
    }

    /// Sends a request; settles its result object. `options` are `{"timeout"?, "max_timeout"?, "progress"?,
    /// "idempotent"?, "task"?: {"ttl"?: milliseconds}, "cache"?: "default"|"refresh"|"bypass"}` or ""; with `task` a tool's call runs as a task of the server, of
    /// which the result is settled; settling `op` early cancels it. So does a call without, of a tool that was listed
    /// with `"taskSupport": "required"`. `"wait": true` of `tasks/get` waits until the task is finished, and lets its
    /// questions come; the other options are for each look. Of `tasks/result` it waits for the result, however often the way
    /// there breaks off; the limits of time are for all of it then. `"follow": n` of `tasks/get`, a number of the host's own as that
    /// of a listener, settles how the task is, and each time after that its next change, until it is finished; its
    /// questions are answered until then or until [`end_listening`](Self::end_listening). The other options are those of
    /// the first time, for each look.
    pub fn request(&self, op: u64, method: &str, params: Option<RawJson>, options: &str) {
        let prepared = self.connected().and_then(|client| Ok((client, CallOptions::parse(options)?)));
        let (bridge, all) = (self.bridge.clone(), self.following.clone());
        let (started, origin) = Started::new(&self.bridge, op);
        self.bridge.operation_as(started, op, |finish| match prepared {
            Err(error) => {
                finish.with(Err(error));
                Box::new(())
            }
            Ok((client, (mut options, progress))) => {
                options.origin = Some(origin);
                if progress {
                    let bridge = bridge.clone();
                    options.progress =
                        Some(Arc::new(move |params| bridge.offer(super::Delivery::Progress { op, params })));
                }
                let read = client::reading_of(method);
                let done = move |outcome: Result<RawJson>| finish.with(outcome.and_then(read));
                match method {
                    "tasks/get" if options.wait => {
                        return client.wait_for_task(params.as_ref(), options, Box::new(done));
                    }
                    "tasks/result" if options.wait => {
                        return client.wait_for_result(params.as_ref(), options, Box::new(done));
                    }
                    _ => {}
                }
                if let (Some(number), "tasks/get") = (options.follow, method) {
                    return follow(&client, &all, number, params.as_ref(), options, Box::new(done));
                }
                client.start(method, params, &options, Box::new(done))
            }
        });
    }

    /// There is somebody in the host who hears of notifications: from now on the events `notification` bring the changes
    /// of lists in every revision. Modern servers tell only those who listen, so a host with nobody to hear leaves this.
    pub fn hear_changes(&self) {
        let mut handlers = lock(&self.handlers);
        *handlers = std::mem::take(&mut *handlers).hearing(true);
        drop(handlers);
        let client = self.connected();
        if let Ok(client) = client {
            client.hear_lists(Box::new(drop));
        }
    }

    /// Listens to what `filter` asks for, a `SubscriptionFilter` as JSON, under a number of the host's own that is used
    /// once; settles what the server tells of: `{"toolsListChanged"?, "promptsListChanged"?, "resourcesListChanged"?,
    /// "resourceSubscriptions"?}`. Whoever settles it early ends the listener all the same: it may have begun already.
    pub fn listen(&self, op: u64, listener: u64, filter: &str) {
        let filter = serde_json::from_str(filter).map_err(|e| Error::misuse(format!("listen: {e}")));
        let prepared = self.connected().and_then(|client| Ok((client, filter?)));
        let (bridge, all, state) = (self.bridge.clone(), self.listening.clone(), self.state.clone());
        self.bridge.spawn(op, async move {
            let (client, filter) = prepared?;
            let listening = client.listen(filter).await?;
            let honoured = RawJson::from_value(&listening.honoured());
            let before = lock(&all).insert(listener, Arc::new(listening));
            drop(before);
            // Given up, or closed, before it was there to be ended?
            if !lock(&bridge.0.ops).contains_key(&op) || !matches!(*lock(&state), State::Connected(_)) {
                let gone = lock(&all).remove(&listener);
                drop(gone);
            }
            Ok(honoured)
        });
    }

    /// Takes the next change of a listener: settles `{"method", "uri"?, "params"?}`, with parameters for a notification
    /// of an extension and of a task, and `null` after the last one. A change that is settled early is taken all the
    /// same when it was there already. Of a client that was closed it fails with [`Closed`](crate::ErrorKind::Closed).
    pub fn next_change(&self, op: u64, listener: u64) {
        let listening = lock(&self.listening).get(&listener).cloned();
        let gone = if listening.is_none() { self.connected().map(drop) } else { Ok(()) };
        self.bridge.spawn(op, async move {
            gone?;
            let next = match &listening {
                Some(listening) => listening.shared_next().await.transpose()?,
                None => None,
            };
            Ok(match next {
                None => RawJson::trusted("null"),
                Some(change @ (Change::Extension { .. } | Change::Task { .. })) => {
                    let mut text = String::from("{");
                    object::push_member(&mut text, "method", RawJson::from_value(&change.method()).get());
                    object::push_member(&mut text, "params", change.params().get());
                    text.push('}');
                    RawJson::written(text)
                }
                Some(change) => match change.uri() {
                    Some(uri) => RawJson::from_value(&json!({"method": change.method(), "uri": uri})),
                    None => RawJson::from_value(&json!({"method": change.method()})),
                },
            })
        });
    }

    /// No longer listens: a waiting call for a change gets `null`. No longer follows a task.
    pub fn end_listening(&self, listener: u64) {
        let followed = lock(&self.following).remove(&listener);
        drop(followed);
        let gone = lock(&self.listening).remove(&listener);
        gone.iter().for_each(|listening| listening.end());
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) before the client is connected or for a method that is no notification.
    pub fn notify(&self, method: &str, params: Option<RawJson>) -> Result<()> {
        self.connected()?.notify(method, params)
    }

    /// The id of the legacy HTTP session as it is now; it changes when the server loses the session.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.connected().ok()?.session_id()
    }

    /// Ends the connection in order, also one that is being opened; settles `{}`. Requests from now on fail with
    /// [`Closed`](crate::ErrorKind::Closed).
    pub fn close(&self, op: u64) {
        let before = std::mem::replace(&mut *lock(&self.state), State::Closed);
        if let State::Connecting(closed) = &before {
            closed.set();
        }
        let (listening, following) = (self.listening.clone(), self.following.clone());
        self.bridge.spawn(op, async move {
            if let State::Connected(client) = before {
                client.close().await;
            }
            let listening = std::mem::take(&mut *lock(&listening));
            drop(listening);
            let following = std::mem::take(&mut *lock(&following));
            drop(following);
            Ok(RawJson::empty_object())
        });
    }

    /// Returns the questions, answers and decisions of the last logins, oldest first: `[{"step", "url"?, "status"?,
    /// "decision"?}]`, 128 at most, without secrets. Also of a client that is not connected.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn auth_trace(&self) -> RawJson {
        let trace = self.options.auth.as_ref().map(crate::client::Auth::trace);
        RawJson::from_value(&trace.unwrap_or_default())
    }

    /// `{"awaited", "cache", "timing"?}`: requests that wait for an answer, what was kept of the server's answers and what
    /// that was good for (`{"entries", "bytes", "hits", "misses", "stale", "failures"}`), and what the built-in middleware
    /// counted.
    #[must_use]
    pub fn metrics(&self) -> RawJson {
        let client = self.connected().ok();
        let awaited = client.as_ref().map_or(0, client::Client::awaited);
        let client::CacheUsage { entries, bytes, hits, misses, stale, failures } =
            client.map(|client| client.cache_usage()).unwrap_or_default();
        let mut cache = json!({"entries": entries, "bytes": bytes, "hits": hits, "misses": misses, "stale": stale});
        cache["failures"] = failures.into();
        let mut members = Map::from_iter([("awaited".to_owned(), awaited.into()), ("cache".to_owned(), cache)]);
        members.extend(timing_of(&self.timing).map(|timing| ("timing".to_owned(), timing)));
        RawJson::from_value(&members)
    }
}
