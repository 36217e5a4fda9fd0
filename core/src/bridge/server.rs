use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::origin::current;
use super::timing::timing_of;
use super::{Bridge, HostHandler, principal};
use crate::call::{Context, Handler, Reply};
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::middleware::Timing;
use crate::model::{CacheHints, Prompt, Resource, ResourceTemplate, Tool};
use crate::protocol::Origin;
use crate::protocol::revision::visits;
#[cfg(feature = "files")]
use crate::server::files::{Directory, File};
use crate::server::{self, Kind, Parameters, ServerOptions};
#[cfg(feature = "http")]
use crate::signal::Signal;

/// Options of a host for a definition.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AddOptions {
    parameters: Option<Value>,
    completions: BTreeMap<String, u32>,
    enabled: Option<bool>,
    replace: bool,
    cache: CacheHints,
    scopes: Vec<String>,
    judged: Vec<Side>,
    timeout: Option<f64>,
}

/// The side of a definition that the host's own library checks, and the engine does not.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Input,
    Output,
}

/// Options of a host for a file or a directory.
#[cfg(feature = "files")]
#[derive(Default, Deserialize)]
#[serde(default)]
struct FileOptions {
    path: String,
    uri: String,
    hidden: bool,
    max_files: Option<usize>,
    max_bytes: Option<u64>,
    directory: Option<bool>,
    cache: CacheHints,
    scopes: Vec<String>,
}

struct Added {
    parameters: Parameters,
    enabled: Option<bool>,
    replace: bool,
    hints: CacheHints,
    scopes: Vec<String>,
    judged: Vec<Side>,
    timeout: Option<Duration>,
}

pub(super) fn kind_of(name: &str) -> Result<Kind> {
    Kind::parse(name).ok_or_else(|| {
        let known: Vec<_> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        Error::misuse(format!("kind {name:?}: expected one of {}", known.join(", ")))
    })
}

fn name_of(kind: Kind, members: &Map<String, Value>) -> String {
    members.get(kind.key()).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A host's server object.
pub struct Server {
    pub(super) bridge: Bridge,
    pub(super) source: u32,
    pub(super) server: server::Server,
    pub(super) timing: Timing,
    /// The signal that ends the listening of an operation.
    #[cfg(feature = "http")]
    pub(super) listening: Arc<Mutex<BTreeMap<u64, Arc<Signal>>>>,
}

/// Place for a definition.
pub(super) enum Place<'a> {
    Server(&'a server::Server),
    Session(server::Session),
}

/// Adds a definition.
pub(super) fn add(
    bridge: &Bridge,
    place: &Place<'_>,
    kind: &str,
    definition: &str,
    options: &str,
    handler: u32,
) -> Result<()> {
    let (word, kind) = (kind.replace('_', " "), kind_of(kind)?);
    let of: Option<Weak<dyn Any + Send + Sync>> = match place {
        Place::Server(server) => Some(server.weak()),
        Place::Session(_) => None,
    };
    let host = |handler| -> Arc<dyn Handler> {
        Arc::new(OwnedHandler { host: HostHandler { bridge: bridge.clone(), handler }, of: of.clone() })
    };
    // First, so that the host hears of it whatever is wrong with the rest.
    let handler = host(handler);
    let read = |what: &str| parameters(&host, what, options);
    let Added { parameters, enabled, replace, hints, scopes, judged, timeout } =
        read("options").or_else(|_| read(&format!("{word} {:?}", name_in(kind, definition))))?;
    if hints != CacheHints::new() && !matches!(kind, Kind::Resource | Kind::ResourceTemplate) {
        return Err(Error::misuse("options: option \"cache\": only what is read has it, a resource or a template"));
    }
    if timeout.is_some() && kind != Kind::Tool {
        return Err(Error::misuse("options: option \"timeout\": only a tool has it"));
    }
    let name = match kind {
        Kind::Tool => {
            let of = |side| judged.contains(&side);
            let mut tool = Tool::parse(definition)?.scopes(scopes).judged(of(Side::Input), of(Side::Output));
            if let Some(time) = timeout {
                tool = tool.timeout(time);
            }
            let name = tool.name().to_owned();
            match place {
                Place::Server(server) if replace => server.replace_tool(tool, handler)?,
                Place::Server(server) => server.add_tool(tool, handler)?,
                Place::Session(session) if replace => session.replace_tool(tool, handler)?,
                Place::Session(session) => session.add_tool(tool, handler)?,
            }
            name
        }
        Kind::Resource => {
            let resource = Resource::parse(definition)?.cache(hints).scopes(scopes);
            let name = name_of(kind, resource.members());
            match place {
                Place::Server(server) if replace => server.replace_resource(resource, handler)?,
                Place::Server(server) => server.add_resource(resource, handler)?,
                Place::Session(session) if replace => session.replace_resource(resource, handler)?,
                Place::Session(session) => session.add_resource(resource, handler)?,
            }
            name
        }
        Kind::ResourceTemplate => {
            let template = ResourceTemplate::parse(definition)?.cache(hints).scopes(scopes);
            let name = name_of(kind, template.members());
            match place {
                Place::Server(server) if replace => server.replace_resource_template(template, parameters, handler)?,
                Place::Server(server) => server.add_resource_template(template, parameters, handler)?,
                Place::Session(session) if replace => {
                    session.replace_resource_template(template, parameters, handler)?
                }
                Place::Session(session) => session.add_resource_template(template, parameters, handler)?,
            }
            name
        }
        Kind::Prompt => {
            let prompt = Prompt::parse(definition)?.scopes(scopes);
            let name = name_of(kind, prompt.members());
            match place {
                Place::Server(server) if replace => server.replace_prompt(prompt, parameters, handler)?,
                Place::Server(server) => server.add_prompt(prompt, parameters, handler)?,
                Place::Session(session) if replace => session.replace_prompt(prompt, parameters, handler)?,
                Place::Session(session) => session.add_prompt(prompt, parameters, handler)?,
            }
            name
        }
    };
    // A new entry is to be seen anyway.
    if let Some(yes) = enabled.filter(|yes| replace || !yes) {
        match place {
            Place::Server(server) => drop(server.set_enabled(kind, &name, yes)),
            Place::Session(session) => drop(session.set_enabled(kind, &name, yes)?),
        }
    }
    Ok(())
}

fn host_handler(bridge: &Bridge, handler: u32) -> Arc<dyn Handler> {
    Arc::new(HostHandler { bridge: bridge.clone(), handler })
}

/// A handler of a definition. When that is removed or replaced, or its session has ended, the host hears that it can
/// forget the handler.
struct OwnedHandler {
    host: HostHandler,
    /// The server, at the end of which the host needs not to be told; `None`: it is a session's.
    of: Option<Weak<dyn Any + Send + Sync>>,
}

impl Handler for OwnedHandler {
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        self.host.call(cx, params, reply);
    }

    fn cancel(&self, cx: &Context, reason: Option<&str>) {
        self.host.cancel(cx, reason);
    }
}

impl Drop for OwnedHandler {
    fn drop(&mut self) {
        if self.of.as_ref().is_some_and(|server| server.strong_count() == 0) {
            return;
        }
        let HostHandler { bridge, handler } = &self.host;
        bridge.event(0, "released", RawJson::from_value(&json!({"handler": handler})));
    }
}

/// The name of a definition, for a message.
fn name_in(kind: Kind, definition: &str) -> String {
    name_of(kind, &serde_json::from_str(definition).unwrap_or_default())
}

fn parameters(host: &dyn Fn(u32) -> Arc<dyn Handler>, what: &str, options: &str) -> Result<Added> {
    let options: AddOptions = crate::options::read(what, options)?;
    let mut parameters = Parameters::of(options.parameters);
    for (name, handler) in options.completions {
        parameters.completions.push((name, host(handler)));
    }
    parameters.judged = options.judged.contains(&Side::Input);
    let timeout = options.timeout.map(|time| crate::options::seconds("timeout", time)).transpose();
    let timeout = timeout.map_err(|error| Error::misuse(format!("{what}: {}", error.message())))?;
    Ok(Added {
        parameters,
        enabled: options.enabled,
        replace: options.replace,
        hints: options.cache,
        scopes: options.scopes,
        judged: options.judged,
        timeout,
    })
}

/// A port that is listened on, as long as this lives.
#[cfg(feature = "http")]
struct Listens {
    listening: Arc<Mutex<BTreeMap<u64, Arc<Signal>>>>,
    op: u64,
}

#[cfg(feature = "http")]
impl Listens {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Signal>>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(feature = "http")]
impl Drop for Listens {
    fn drop(&mut self) {
        self.lock().remove(&self.op);
    }
}

impl Server {
    /// A server; `source` is the number under which its events arrive, `options` are [`ServerOptions`] as JSON. The event
    /// `failed` `{"name", "message"}` says what failed although no function of the host's did, and what the client is not
    /// told: a tool whose result does not fit its output schema, a file that cannot be read.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn new(bridge: &Bridge, source: u32, options: &str) -> Result<Self> {
        let (options, store) = super::store::server_options(bridge, options)?;
        let parse = |options: &str| -> Result<ServerOptions> {
            let mut options = ServerOptions::parse(options)?;
            options.store = store.or(options.store);
            Ok(options)
        };
        #[cfg(feature = "auth")]
        let server = {
            let (options, auth) = super::auth::server_options(bridge, &options)?;
            let server = server::Server::with_options(parse(&options)?);
            match auth {
                Some(auth) => server.auth(auth),
                None => server,
            }
        };
        #[cfg(not(feature = "auth"))]
        let server = server::Server::with_options(parse(&options)?);
        let told = bridge.clone();
        server.hears_of_errors(move |error, name, kind| {
            // The host's own function failed: it has told the host why.
            if kind == server::NOT_STARTED {
                return;
            }
            let message = format!("{kind}: {error}");
            let origin = current().as_ref().map_or(0, Origin::number);
            let told_of = RawJson::from_value(&json!({"name": name, "message": message}));
            told.offer_event_of(origin, source, "failed", told_of);
        });
        Ok(Self {
            bridge: bridge.clone(),
            source,
            server,
            timing: Timing::new(),
            #[cfg(feature = "http")]
            listening: Arc::default(),
        })
    }

    fn handler(&self, handler: u32) -> Arc<dyn Handler> {
        host_handler(&self.bridge, handler)
    }

    /// Adds a tool, a resource, a resource template or a prompt. `kind` is `tool`, `resource`, `resource_template` or
    /// `prompt`, `definition` the schema's `Tool`, `Resource`, `ResourceTemplate` or `Prompt` as JSON, `handler` names
    /// the host's function: it gets the arguments, `{"uri"}`, the template's variables, or the prompt's arguments.
    /// `options` are `""` or JSON: `{"parameters"?: JSON Schema of variables or arguments, "completions"?: {name:
    /// handler}, "enabled"?: bool, "replace"?: bool, "cache"?: {"ttl"?: seconds, "scope"?}, "scopes"?: [scope],
    /// "judged"?: ["input" | "output"], "timeout"?: seconds}`; `scopes` are what the caller's access token needs, `cache` is
    /// how long what is read of a resource or a template keeps, and for whom, `timeout` a tool's longest time. A `judged`
    /// side is listed with its schema but checked by the host's function alone: arguments, variables (`input`) and a tool's
    /// structured content (`output`). With
    /// `replace` it takes the place of what has its name, URI or URI template, and is hidden when that is, unless
    /// `enabled` says otherwise; what is not there yet is added. When nothing will call a handler any more that was
    /// replaced or removed, the event `released` `{"handler"}` of source 0 says so.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the definition or a schema is bad or the name is taken.
    pub fn add(&self, kind: &str, definition: &str, options: &str, handler: u32) -> Result<()> {
        add(&self.bridge, &Place::Server(&self.server), kind, definition, options, handler)
    }

    /// Adds a file or a directory as resources. `options` are JSON: `{"path", "uri", "hidden"?: bool, "max_files"?,
    /// "max_bytes"?, "directory"?: bool, "cache"?: {"ttl"?, "scope"?}, "scopes"?: [scope]}`; a directory's files have the
    /// URI with their path behind it. `directory` says which of both it has to be; without it, what is there decides.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the path that is not what it has to be, or a URI that is none or is
    /// taken.
    #[cfg(feature = "files")]
    pub fn add_files(&self, options: &str) -> Result<()> {
        let options: FileOptions = crate::options::read("files", options)?;
        let path = std::path::PathBuf::from(&options.path);
        if options.directory.unwrap_or_else(|| path.is_dir()) {
            let directory = Directory::new(path, &options.uri)?.hidden(options.hidden);
            let mut directory = directory.cache(options.cache).scopes(options.scopes);
            if let Some(most) = options.max_files {
                directory = directory.max_files(most);
            }
            if let Some(most) = options.max_bytes {
                directory = directory.max_bytes(most);
            }
            return self.server.add_directory(directory);
        }
        let mut file = File::new(path, &options.uri)?.cache(options.cache).scopes(options.scopes);
        if let Some(most) = options.max_bytes {
            file = file.max_bytes(most);
        }
        self.server.add_file(file)
    }

    /// Offers an extension of the protocol. `definition` is JSON: `{"id", "settings"?: object, "methods"?: [{"name",
    /// "handler", "idempotent"?: bool, "schema"?: JSON Schema of the parameters}], "notifications"?: [{"method",
    /// "member"}]}`; `handler` names the host's function, which gets the parameters and answers with an object, `member` is
    /// the member of the filter of `subscriptions/listen` that asks for the notification.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming what is wrong or taken.
    pub fn add_extension(&self, definition: &str) -> Result<()> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Wire {
            id: String,
            settings: Option<Value>,
            methods: Vec<Row>,
            notifications: Vec<Told>,
        }
        #[derive(Deserialize)]
        struct Row {
            name: String,
            handler: u32,
            #[serde(default)]
            idempotent: bool,
            #[serde(default)]
            schema: Option<Value>,
        }
        #[derive(Deserialize)]
        struct Told {
            method: String,
            member: String,
        }
        let Wire { id, settings, methods, notifications } = crate::options::read("extension", definition)?;
        let mut extension = server::Extension::new(id).settings(settings.unwrap_or_else(|| json!({})));
        for Row { name, handler, idempotent, schema } in methods {
            extension = extension.row(name, idempotent, schema, self.handler(handler));
        }
        for Told { method, member } in notifications {
            extension = extension.notification(method, member);
        }
        self.server.add_extension(extension)
    }

    /// Sends a notification of an extension to the clients that asked for it; `key` is what it is about.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when no extension has it, and for parameters that are no object.
    pub fn notify(&self, method: &str, params: Option<RawJson>, key: Option<&str>) -> Result<()> {
        self.server.notify(method, params, key)
    }

    /// Removes what has this name, URI or URI template. Says whether there was something.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for an unknown kind, here and below.
    pub fn remove(&self, kind: &str, name: &str) -> Result<bool> {
        Ok(self.server.remove(kind_of(kind)?, name))
    }

    /// Shows or hides what has this name, URI or URI template. Says whether that changed anything.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn set_enabled(&self, kind: &str, name: &str, yes: bool) -> Result<bool> {
        Ok(self.server.set_enabled(kind_of(kind)?, name, yes))
    }

    /// Sets the source of everything that is not registered: `list` is a host's function that gets `{"cursor"?}` and
    /// answers with definitions, `get` one that gets the parameters of `tools/call`, `resources/read` or `prompts/get`.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn set_source(&self, kind: &str, list: Option<u32>, get: Option<u32>) -> Result<()> {
        let handler = |number: Option<u32>| number.map(|number| self.handler(number));
        self.server.set_source(kind_of(kind)?, handler(list), handler(get));
        Ok(())
    }

    /// A host's function for `complete` (the parameters of `completion/complete`, where nothing else completes),
    /// `subscribe` (`{"uri", "subscribed"}`), `roots_changed` (`{}`, in a call that belongs to no request) or
    /// `principal` (`{}`, of each request of 2026-07-28 that may ask its client, or is about tasks: answers with
    /// `{"principal": "…" | null}`, see [`Server::principal`](crate::Server::principal)).
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for another name.
    pub fn set_hook(&self, name: &str, handler: u32) -> Result<()> {
        match name {
            "complete" => self.server.set_completion(self.handler(handler)),
            "subscribe" => self.server.set_subscription(self.handler(handler)),
            "roots_changed" => self.server.set_roots_changed(self.handler(handler)),
            "principal" => principal::ask(&self.server, &self.bridge, handler),
            other => {
                return Err(Error::misuse(format!(
                    "hook {other:?}: expected \"complete\", \"subscribe\", \"roots_changed\" or \"principal\""
                )));
            }
        }
        Ok(())
    }

    /// Tells the client that was asked to let its user visit a page that this is done.
    pub fn elicitation_complete(&self, elicitation_id: &str) {
        self.server.elicitation_complete(elicitation_id);
    }

    /// Tells those who subscribed to `uri` that it has changed.
    pub fn resource_updated(&self, uri: &str) {
        self.server.resource_updated(uri);
    }

    /// Tells clients that the list of a source has changed.
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn list_changed(&self, kind: &str) -> Result<()> {
        self.server.list_changed(kind_of(kind)?);
        Ok(())
    }

    /// Serves on the process's standard streams; settles `{}` when input has ended and all is answered. The streams are
    /// the protocol's until [`give_back_streams`](super::give_back_streams).
    #[cfg(feature = "stdio")]
    pub fn serve_stdio(&self, op: u64) {
        let server = self.server.clone();
        self.bridge.spawn_causing(op, |origin| async move {
            let served = server.serve_own(true, Some(origin)).await.map(|()| RawJson::empty_object());
            #[cfg(unix)]
            super::ending::streams_ended();
            served
        });
    }

    /// Serves over HTTP. `options` are [`HttpOptions`](crate::http::HttpOptions) as JSON. The event `listening`
    /// `{"op", "url"}` says where; settles `{}` after [`close`](Self::close) or [`end_http`](Self::end_http).
    #[cfg(feature = "http")]
    pub fn serve_http(&self, options: &str, op: u64) {
        let options = crate::http::HttpOptions::parse(options);
        let (server, bridge, source) = (self.server.clone(), self.bridge.clone(), self.source);
        let listening = self.listening.clone();
        self.bridge.spawn_causing(op, |origin| async move {
            let serving = server.serve_http_of(options?, Some(origin)).await?;
            let listens = Listens { listening, op };
            listens.lock().insert(op, serving.closing());
            bridge.event(source, "listening", RawJson::from_value(&json!({"op": op, "url": serving.url()})));
            serving.join().await;
            drop(listens);
            Ok(RawJson::empty_object())
        });
    }

    /// Ends what [`serve_http`](Self::serve_http) began as `op`, which settles then; the server goes on elsewhere. Before the
    /// event `listening` nothing happens.
    #[cfg(feature = "http")]
    pub fn end_http(&self, op: u64) {
        let listens = self.listening.lock().unwrap_or_else(PoisonError::into_inner).get(&op).cloned();
        if let Some(closing) = listens {
            closing.set();
        }
    }

    /// The server as an HTTP endpoint without a socket, to be mounted in the host's own HTTP server.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    #[cfg(feature = "http")]
    pub fn http(&self, options: &str) -> Result<super::HttpEndpoint> {
        let options = crate::http::HttpOptions::parse(options)?;
        let endpoint = self.server.endpoint(options)?;
        Ok(super::HttpEndpoint::new(self.bridge.clone(), self.source, endpoint))
    }

    /// Drains, as [`Server::drain`](server::Server::drain), and closes. `op` settles `{}` when the server is closed; 0: nobody
    /// waits for it.
    #[cfg(feature = "http")]
    pub fn drain(&self, op: u64) {
        let drained = self.server.drain();
        if op == 0 {
            return;
        }
        self.bridge.spawn(op, async move {
            drained.await;
            Ok(RawJson::empty_object())
        });
    }

    /// Tries the rules of the server's `DocumentStore`. `op` settles `{}`, or fails with those that it
    /// breaks, a line for each.
    pub fn check_store(&self, op: u64) {
        #[cfg(feature = "redis")]
        let store = self.server.options().store.and_then(|store| store.documents);
        self.bridge.spawn(op, async move {
            #[cfg(feature = "redis")]
            if let Some(store) = store {
                return server::check_document_store(store.0).await.map(|()| RawJson::empty_object());
            }
            Err(Error::misuse(format!("{}: expected a DocumentStore", server::StoreOptions::option())))
        });
    }

    /// Stops serving everywhere: nothing more is accepted, running calls are cancelled, serving operations settle.
    pub fn close(&self) {
        self.server.close();
    }

    /// `{"connections", "bridge_queued", "bridge_calls", "bridge_ops", "bridge_dropped", "timing"?: {method:
    /// {"count", "failed", "seconds", "longest"}}, …}`
    #[must_use]
    pub fn metrics(&self) -> RawJson {
        let bridge = self.bridge.metrics();
        let mut value = self.server.metrics();
        if let Some(members) = value.as_object_mut() {
            members.extend(timing_of(&self.timing).map(|timing| ("timing".to_owned(), timing)));
            members.insert("bridge_queued".into(), bridge.queued.into());
            members.insert("bridge_calls".into(), bridge.calls.into());
            members.insert("bridge_ops".into(), bridge.ops.into());
            members.insert("bridge_dropped".into(), bridge.dropped.into());
        }
        RawJson::from_value(&value)
    }
}

impl server::Server {
    /// The server's gauges as a JSON object: `connections` (pipes, sockets and clients in this process), `in_flight` (calls of all transports),
    /// `listeners` (clients that listen), `tasks` (kept, finished or not), `memory` (bytes that the process keeps for its peers), and of HTTP `sessions` and `streams`.
    #[must_use]
    pub fn metrics(&self) -> serde_json::Value {
        let usage = self.usage();
        json!({
            "connections": usage.connections,
            "sessions": usage.sessions,
            "in_flight": usage.in_flight,
            "streams": usage.streams,
            "listeners": usage.listeners,
            "tasks": usage.tasks,
            "memory": server::memory_kept(),
        })
    }
}

/// Says whether a user can be sent to these pages, an array of `{"mode": "url", "elicitationId", "url", "message"}`, by
/// the error −32042.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) saying what is wrong.
pub fn check_pages(pages: &RawJson) -> Result<()> {
    let pages: Vec<Value> = pages.to().map_err(|_| Error::misuse("elicitations: expected an array of pages"))?;
    visits::check(&pages).map_err(Error::misuse)
}

/// Checks that a client can make a form of this JSON Schema, as [`Form::new`](crate::server::Form::new) says.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) that names the property.
pub fn check_form(schema: &RawJson) -> Result<()> {
    let schema = schema.to().map_err(|error| Error::misuse(format!("form: {error}")))?;
    crate::server::Form::new(schema).map(|_| ())
}

/// The refusal of an option of a host's own that does not exist: in the words of the engine's, by the same rule. The name is
/// as its caller has written it; those that are known have snake_case.
#[must_use]
pub fn unknown_option(what: &str, written: &str, known: &[&str]) -> Error {
    Error::misuse(format!("{what}: {}", crate::options::unknown_of_host(written, known)))
}

/// Known names that were probably meant by one that is not known, the likeliest first: by the rule for options.
#[must_use]
pub fn meant<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    crate::options::meant(name, known)
}
