//! The connection that a page works with, and what is asked over it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hyper::body::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tricorn::client::{Client, ClientOptions, Events, Roots, Tap};
use tricorn::jsonrpc::RawJson;
use tricorn::model::SubscriptionFilter;
use tricorn::protocol::{Kind, Opening};
use tricorn::{CacheMode, CallOptions, Error};

use super::apps::Apps;
use super::export;
use super::hub::{Hub, What};
use super::questions::Questions;
use crate::bridge::Bridge;
use crate::failure::Failure;
use crate::logins::with_login;
use crate::output::Screen;
use crate::targets::{Elsewhere, Found, Reach};

/// Calls at once, and the longest name of one.
const CALLS: usize = 200;
const NAME: usize = 64;

/// Work that a page asks for, under a name of its own.
#[derive(Deserialize)]
pub(super) struct Ask {
    call: String,
    #[serde(rename = "do")]
    what: Verb,
    /// `tools`, `resources`, `templates` or `prompts`; a method; a URI; the id of a task.
    #[serde(default)]
    of: String,
    params: Option<Box<RawValue>>,
    filter: Option<SubscriptionFilter>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Verb {
    List,
    Request,
    CallAsTask,
    Tasks,
    TaskStatus,
    TaskResult,
    TaskCancel,
    Listen,
    OpenApp,
}

/// Connection and calls. Ended by [`close`](Self::close).
pub(super) struct Session {
    found: Found,
    options: ClientOptions,
    /// Requests take as long as they take.
    waits: bool,
    screen: Screen,
    hub: Arc<Hub>,
    questions: Arc<Questions>,
    apps: Arc<Apps>,
    roots: Roots,
    root_list: Mutex<Vec<Value>>,
    live: Mutex<Live>,
    /// One connection after the other.
    turn: tokio::sync::Mutex<()>,
}

struct Live {
    status: Status,
    connection: u64,
    client: Option<Client>,
    bridge: Option<Bridge>,
    calls: BTreeMap<String, Call>,
}

struct Call {
    what: String,
    since: f64,
    task: Option<AbortHandle>,
}

enum Status {
    Connecting,
    Connected,
    /// There is none, for this reason.
    Failed(String),
    /// There was one.
    Closed(String),
}

impl Session {
    pub(super) fn new(
        found: Found,
        options: ClientOptions,
        waits: bool,
        screen: &Screen,
        hub: &Arc<Hub>,
        questions: &Arc<Questions>,
        apps: &Arc<Apps>,
    ) -> Arc<Self> {
        Arc::new(Self {
            found,
            options,
            waits,
            screen: screen.clone(),
            hub: hub.clone(),
            questions: questions.clone(),
            apps: apps.clone(),
            roots: Roots::default(),
            root_list: Mutex::default(),
            live: Mutex::new(Live {
                status: Status::Connecting,
                connection: 0,
                client: None,
                bridge: None,
                calls: BTreeMap::new(),
            }),
            turn: tokio::sync::Mutex::new(()),
        })
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects, instead of the connection that there is.
    pub(super) fn reconnect(self: Arc<Self>) {
        tokio::spawn(async move {
            let _turn = self.turn.lock().await;
            self.end().await;
            let connection = self.hub.begin_connection();
            {
                let mut live = self.live();
                (live.connection, live.status) = (connection, Status::Connecting);
            }
            self.tell_state();
            let outcome = self.connect(connection).await;
            let mut live = self.live();
            match outcome {
                Ok((client, bridge)) => {
                    (live.client, live.bridge) = (Some(client), bridge);
                    // It may have ended already.
                    if matches!(live.status, Status::Connecting) {
                        live.status = Status::Connected;
                    }
                }
                Err(why) => {
                    self.screen.warn(&why);
                    live.status = Status::Failed(why);
                }
            }
            drop(live);
            self.tell_state();
        });
    }

    async fn connect(self: &Arc<Self>, connection: u64) -> Result<(Client, Option<Bridge>), String> {
        let elsewhere = Arc::<Elsewhere>::default();
        let heard = Heard { session: Arc::downgrade(self), connection, elsewhere: elsewhere.clone() };
        let handlers = self.questions.handlers(&self.roots, &Handle::current()).events(heard);
        let options = self.options.clone().tap(Passing { hub: self.hub.clone(), connection, server: None });
        let failed = |error: &Error| {
            let address = match &self.found.reach {
                Reach::One(tricorn::client::Target::Url { url, .. }) => url.clone(),
                _ => self.found.name.clone(),
            };
            // The address may have a secret in it, which its name has not.
            Failure::connecting(&self.found.name, error).message.replace(&address, &self.found.name)
        };
        match &self.found.reach {
            Reach::One(target) => {
                let options = with_login(options, target, &self.screen).await;
                tokio::select! {
                    client = Client::connect_with(target, &options, &handlers) => {
                        client.map(|client| (client, None)).map_err(|error| failed(&error))
                    }
                    failure = elsewhere.serves(&self.found) => Err(failure.message),
                }
            }
            Reach::Many(_) => {
                let bridge = Bridge::for_client(self.found.clone(), options.clone(), &self.screen, &handlers).await;
                let bridge = bridge.map_err(|failure| failure.message)?;
                let client = Client::in_memory_with(&bridge.server, &options, &handlers).await;
                client.map(|client| (client, Some(bridge))).map_err(|error| failed(&error))
            }
        }
    }

    /// Ends the connection that there is, with its calls.
    async fn end(&self) {
        let (client, bridge, calls) = {
            let mut live = self.live();
            (live.client.take(), live.bridge.take(), std::mem::take(&mut live.calls))
        };
        for (name, call) in calls {
            if let Some(task) = call.task {
                task.abort();
            }
            self.hub.tell("done", &json!({"call": name, "cancelled": true}));
        }
        self.tell_calls();
        if let Some(client) = client {
            client.close().await;
        }
        if let Some(bridge) = bridge {
            bridge.close().await;
        }
    }

    /// Ends everything, in its turn.
    pub(super) async fn close(&self) {
        let _turn = self.turn.lock().await;
        self.end().await;
    }

    /// The connection of this number has ended.
    fn closed(&self, connection: u64, reason: &Error) {
        let mut live = self.live();
        if live.connection != connection || matches!(live.status, Status::Failed(_)) {
            return;
        }
        live.status = Status::Closed(reason.message().to_owned());
        drop(live);
        self.tell_state();
    }

    /// Starts what a page asks for; its outcome is told to all pages.
    ///
    /// # Errors
    /// There is no connection, or the name will not do.
    pub(super) fn start(self: &Arc<Self>, ask: Ask) -> Result<(), String> {
        if ask.call.is_empty() || ask.call.len() > NAME {
            return Err(format!("\"call\": expected a name of 1 to {NAME} bytes"));
        }
        let mut live = self.live();
        let client = live.client.clone().ok_or("there is no connection")?;
        if live.calls.contains_key(&ask.call) {
            return Err("there is a call of that name".to_owned());
        }
        if live.calls.len() >= CALLS {
            return Err(format!("{CALLS} calls go on already"));
        }
        let (name, session) = (ask.call.clone(), self.clone());
        live.calls.insert(name.clone(), Call { what: ask.title(), since: self.hub.time(), task: None });
        drop(live);
        self.tell_calls();
        let (work, own) = (name.clone(), name.clone());
        let task = tokio::spawn(async move {
            let since = session.hub.time();
            let outcome = session.carry_out(&client, ask).await;
            if session.live().calls.remove(&own).is_none() {
                // It was cancelled meanwhile, and that was told.
                return;
            }
            let time = session.hub.time() - since;
            let (name, what) = match outcome {
                Ok(result) => ("result", result),
                Err(error) => ("error", error.to_json()),
            };
            // The page takes what follows the name as it stands.
            session
                .hub
                .tell_text("done", &format!("{{\"call\":{},\"ms\":{time},\"{name}\":{}}}", json!(own), what.get()));
            session.tell_calls();
        });
        if let Some(call) = self.live().calls.get_mut(&work) {
            call.task = Some(task.abort_handle());
        }
        Ok(())
    }

    /// Cancels a call, at the server too.
    pub(super) fn cancel(&self, name: &str) {
        let Some(call) = self.live().calls.remove(name) else { return };
        if let Some(task) = call.task {
            task.abort();
        }
        self.hub.tell("done", &json!({"call": name, "cancelled": true}));
        self.tell_calls();
    }

    async fn carry_out(&self, client: &Client, ask: Ask) -> Result<RawJson, Error> {
        let mut options = CallOptions::new().cache(CacheMode::Refresh);
        if self.waits {
            options = options.timeout(Duration::ZERO);
        }
        let params = ask.params.map(|params| RawJson::trusted(Box::<str>::from(params).into_string()));
        let progressing = |options: CallOptions| {
            let (hub, call) = (self.hub.clone(), ask.call.clone());
            options.on_progress(move |progress| hub.tell("progress", &json!({"call": call, "progress": progress})))
        };
        let task = |id: &str| client.task(id);
        Ok(match ask.what {
            Verb::List => {
                let kind = match ask.of.as_str() {
                    "tools" => Kind::Tool,
                    "resources" => Kind::Resource,
                    "templates" => Kind::ResourceTemplate,
                    "prompts" => Kind::Prompt,
                    other => return Err(Error::misuse(format!("\"of\": no list {other:?}"))),
                };
                RawJson::from_value(&client.pages(kind, &options).all().await?)
            }
            Verb::Request => client.request(&ask.of, params, &progressing(options)).await?,
            Verb::CallAsTask => {
                #[derive(Deserialize)]
                struct Params {
                    name: String,
                    #[serde(default = "RawJson::empty_object")]
                    arguments: RawJson,
                }
                let Some(Ok(Params { name, arguments })) = params.map(|params| params.to()) else {
                    return Err(Error::misuse("\"params\": expected name and arguments"));
                };
                let task = client.call_tool_task(&name, &arguments, None, &options).await?;
                RawJson::from_value(&json!({"taskId": task.id(), "created": task.created()}))
            }
            Verb::Tasks => RawJson::from_value(&client.tasks().await?),
            Verb::TaskStatus => RawJson::from_value(&task(&ask.of).status().await?),
            Verb::TaskResult => RawJson::from_value(&task(&ask.of).result().await?),
            Verb::TaskCancel => RawJson::from_value(&task(&ask.of).cancel().await?),
            Verb::Listen => {
                let mut listening = client.listen(ask.filter.unwrap_or_default()).await?;
                self.hub.tell("listening", &json!({"call": ask.call, "filter": listening.honoured()}));
                while let Some(change) = listening.next().await {
                    let change = change?;
                    let change = json!({"method": change.method(), "params": change.params()});
                    self.hub.tell("change", &json!({"call": ask.call, "change": change}));
                }
                RawJson::empty_object()
            }
            Verb::OpenApp => {
                let params = RawJson::from_value(&json!({"uri": ask.of}));
                let result: Value =
                    client.request("resources/read", Some(params), &options).await?.to().unwrap_or_default();
                let contents = result["contents"].as_array().map(Vec::as_slice).unwrap_or_default();
                RawJson::from_value(
                    &self.apps.open(contents).map_err(|why| Error::misuse(format!("{}: {why}", ask.of)))?,
                )
            }
        })
    }

    /// Sets the roots, and tells the server.
    ///
    /// # Errors
    /// One of them is no root.
    pub(super) fn set_roots(&self, roots: Vec<Value>) -> Result<(), String> {
        const MOST: usize = 1000;
        if roots.len() > MOST {
            return Err(format!("{MOST} roots at most"));
        }
        #[expect(deprecated, reason = "servers that ask for roots are there")]
        self.roots.set(roots.iter().cloned()).map_err(|error| error.message().to_owned())?;
        *self.root_list.lock().unwrap_or_else(PoisonError::into_inner) = roots;
        self.tell("roots");
        Ok(())
    }

    /// Everything that a new page has to know: events and their data.
    pub(super) fn shown(&self) -> Vec<(&'static str, Value)> {
        ["state", "calls", "roots"].into_iter().map(|event| (event, self.data(event))).collect()
    }

    fn tell(&self, event: &'static str) {
        self.hub.tell(event, &self.data(event));
    }

    fn tell_state(&self) {
        self.tell("state");
    }

    fn tell_calls(&self) {
        self.tell("calls");
    }

    fn data(&self, event: &str) -> Value {
        match event {
            "roots" => json!(*self.root_list.lock().unwrap_or_else(PoisonError::into_inner)),
            "calls" => {
                let live = self.live();
                let call =
                    |(name, call): (&String, &Call)| json!({"call": name, "what": call.what, "since": call.since});
                live.calls.iter().map(call).collect()
            }
            _ => self.state(),
        }
    }

    fn state(&self) -> Value {
        let live = self.live();
        let (status, why) = match &live.status {
            Status::Connecting => ("connecting", None),
            Status::Connected => ("connected", None),
            Status::Failed(why) => ("failed", Some(why)),
            Status::Closed(why) => ("closed", Some(why)),
        };
        let mut state = json!({
            "target": self.found.name,
            "version": tricorn::VERSION,
            "now": self.hub.time(),
            "connection": live.connection,
            "status": status,
            "why": why,
        });
        if let (Some(client), Value::Object(state)) = (&live.client, &mut state) {
            let value = |json: &RawJson| json.to::<Value>().unwrap_or_default();
            state.insert("revision".into(), client.revision().to_string().into());
            state.insert("transport".into(), client.transport().into());
            state.insert("server".into(), client.server_info().map(|info| value(&info)).unwrap_or_default());
            state.insert("capabilities".into(), value(client.capabilities().raw()));
            state.insert("instructions".into(), client.instructions().into());
            state.insert("opening".into(), value(&client.initialize_result()));
            // The id of a session opens it.
            state.insert("hasSession".into(), client.session_id().is_some().into());
        }
        state
    }

    /// The messages of this connection as a cassette.
    pub(super) fn cassette(&self) -> String {
        let state = self.state();
        let at = humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string();
        let head = json!({
            "cassette": 1,
            "by": format!("tricorn {}", tricorn::VERSION),
            "at": at,
            "transport": state["transport"],
            "target": self.found.name,
            "revision": state["revision"],
        });
        let Value::Object(mut head) = head else { return String::new() };
        head.retain(|_, value| !value.is_null());
        let mut redaction = export::redaction(&self.found.reach, self.options.get_headers());
        let connection = self.live().connection;
        export::cassette(head, connection, &mut redaction, &self.hub.log())
    }

    /// Adds what was said by the connection of this number.
    fn event(&self, connection: u64, name: &'static str, text: &str) {
        self.hub.record(connection, What::Event { name, text: text.to_owned() });
    }
}

impl Ask {
    /// Its name for people.
    fn title(&self) -> String {
        let name = || {
            #[derive(Deserialize)]
            struct Named {
                name: Option<String>,
                uri: Option<String>,
            }
            let named: Named = serde_json::from_str(self.params.as_ref()?.get()).ok()?;
            named.name.or(named.uri)
        };
        let title = match self.what {
            Verb::List => format!("list {}", self.of),
            Verb::Request => match name() {
                Some(name) => format!("{} {name}", self.of),
                None => self.of.clone(),
            },
            Verb::CallAsTask => format!("tools/call {} as a task", name().unwrap_or_default()),
            Verb::Tasks => "list tasks".to_owned(),
            Verb::TaskStatus => format!("task {}", self.of),
            Verb::TaskResult => format!("result of task {}", self.of),
            Verb::TaskCancel => format!("cancel task {}", self.of),
            Verb::Listen => "listen".to_owned(),
            Verb::OpenApp => format!("open {}", self.of),
        };
        title.chars().take(200).collect()
    }
}

/// Sees the messages of one connection.
struct Passing {
    hub: Arc<Hub>,
    connection: u64,
    /// One of a group.
    server: Option<Arc<str>>,
}

impl Tap for Passing {
    fn frame(&self, by_client: bool, on: &str, frame: &Bytes) {
        let text = String::from_utf8_lossy(frame).into_owned();
        let (server, on) = (self.server.clone(), on.to_owned());
        self.hub.record(self.connection, What::Message { by_client, server, on, text });
    }

    fn of_server(&self, name: &str) -> Option<Arc<dyn Tap>> {
        Some(Arc::new(Self { hub: self.hub.clone(), connection: self.connection, server: Some(name.into()) }))
    }

    fn status(&self, on: &str, status: u16) {
        if !(200..300).contains(&status) {
            self.hub.record(self.connection, What::Event { name: "http", text: format!("{status} on {on}") });
        }
    }
}

/// Hears what a connection says besides messages.
struct Heard {
    session: Weak<Session>,
    connection: u64,
    elsewhere: Arc<Elsewhere>,
}

impl Heard {
    fn with(&self, work: impl FnOnce(&Session)) {
        if let Some(session) = self.session.upgrade() {
            work(&session);
        }
    }
}

impl Events for Heard {
    fn stderr(&self, line: &str) {
        self.elsewhere.look(line);
        self.with(|session| session.event(self.connection, "stderr", line));
    }

    fn warning(&self, message: &str) {
        self.elsewhere.look(message);
        self.with(|session| session.event(self.connection, "warning", message));
    }

    fn reopened(&self, _opening: &Opening) {
        self.with(|session| session.tell_state());
    }

    fn closed(&self, reason: &Error) {
        self.with(|session| {
            session.event(self.connection, "closed", reason.message());
            session.closed(self.connection, reason);
        });
    }
}
