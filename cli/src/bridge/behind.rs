//! The side behind a bridge: one server, or those of a configuration file as one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use tricorn::client::{Client, ClientGroup, ClientOptions, Events, Handlers, Servers};
use tricorn::jsonrpc::RawJson;
use tricorn::protocol::{Kind, LogLevel};
use tricorn::{CallOptions, Error, Result};

use crate::failure::{Failure, Outcome};
use crate::output::{Screen, shown};
use crate::targets::{Elsewhere, Found, Reach};

/// A connection, or several.
pub(super) enum Behind {
    One(Client),
    Many(ClientGroup),
}

/// Description that it gives of itself.
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) title: Option<String>,
    pub(super) instructions: Option<String>,
    /// The whole of its `serverInfo`, if that has a name.
    pub(super) info: Option<RawJson>,
    /// Its capabilities that the protocol does not have, and their settings.
    pub(super) foreign: Map<String, Value>,
    pub(super) has: Box<dyn Fn(&str) -> bool>,
}

/// Lines of standard error that are kept of a server until it is connected.
const OPENING: usize = 50;

/// The last lines of a server's standard error.
#[derive(Clone, Default)]
struct Heard(Arc<(Mutex<VecDeque<String>>, Elsewhere)>);

impl Heard {
    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events for Heard {
    fn stderr(&self, line: &str) {
        self.0.1.look(line);
        let mut lines = self.lock();
        if lines.len() == OPENING {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }

    fn warning(&self, message: &str) {
        self.0.1.look(message);
    }
}

/// Capabilities of servers that a bridge declares for itself, where the server behind has them. Tasks end with the session
/// that they were made in, and extensions belong to a revision without sessions.
const DECLARED: [&str; 7] = ["tools", "resources", "prompts", "completions", "logging", "tasks", "extensions"];

/// The members of declared capabilities that are none of these.
pub(super) fn foreign(declared: &RawJson, known: &[&str]) -> Map<String, Value> {
    let mut members: Map<String, Value> = declared.to().unwrap_or_default();
    members.retain(|name, value| value.is_object() && !known.contains(&name.as_str()));
    members
}

/// Lists, and what belongs to them.
const LISTS: [&str; 4] = ["tools", "resources", "prompts", "completions"];

impl Facts {
    /// The facts of a group of which nothing is known but its name.
    pub(super) fn of_group(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            version: tricorn::VERSION.to_owned(),
            title: None,
            instructions: None,
            info: None,
            foreign: Map::new(),
            has: Box::new(|path| LISTS.contains(&path)),
        }
    }

    /// The same of a server that is asked for its tools even if it has none.
    pub(super) fn with_tools(mut self) -> Self {
        let has = self.has;
        self.has = Box::new(move |path| path == "tools" || has(path));
        self
    }

    /// The same of a server that may have tools, resources, prompts and completions when it is started anew.
    pub(super) fn with_lists(mut self) -> Self {
        let has = self.has;
        self.has = Box::new(move |path| LISTS.contains(&path) || has(path));
        self
    }
}

impl Behind {
    /// Connects; what the server of a name asks is answered by `handlers`.
    pub(super) async fn connect(
        reach: &Reach,
        options: &ClientOptions,
        handlers: impl Fn(&str) -> Handlers + Send + Sync + 'static,
    ) -> Result<Self> {
        match reach {
            Reach::One(target) => Client::connect_with(target, options, &handlers("")).await.map(Self::One),
            Reach::Many(file) => {
                let servers = Servers::from_file(file)?;
                ClientGroup::connect_with(servers, options.clone(), handlers).await.map(Self::Many)
            }
        }
    }

    /// Connects for a moment, and says what could not be connected, with the last lines of its standard error.
    pub(super) async fn scout(found: &Found, options: &ClientOptions, screen: &Screen) -> Outcome<Self> {
        let heard = Heard::default();
        let hears = heard.clone();
        let connecting = Self::connect(&found.reach, options, move |_| Handlers::new().events(hears.clone()));
        let behind = tokio::select! {
            behind = connecting => behind,
            failure = heard.0.1.serves(found), if matches!(found.reach, Reach::One(_)) => return Err(failure),
        };
        let behind = behind.map_err(|error| {
            heard.lock().iter().for_each(|line| screen.line(&shown(line)));
            Failure::connecting(&found.name, &error)
        })?;
        behind.check(&found.name)?;
        behind.tell(&found.name, screen);
        Ok(behind)
    }

    /// Looks if any server of a group is connected.
    ///
    /// # Errors
    /// None of them is.
    pub(super) fn check(&self, target: &str) -> Outcome<()> {
        let Self::Many(group) = self else { return Ok(()) };
        let failures = group.failures();
        match failures.iter().next().filter(|_| failures.len() == group.names().len()) {
            Some((name, error)) => Err(Failure::connecting(&format!("{target}#{name}"), error)),
            None => Ok(()),
        }
    }

    /// Says which servers of a group are not connected.
    pub(super) fn tell(&self, target: &str, screen: &Screen) {
        let Self::Many(group) = self else { return };
        for (name, error) in &group.failures() {
            screen.warn(&Failure::connecting(&format!("{target}#{name}"), error).message);
        }
    }

    fn clients(&self) -> Vec<Client> {
        match self {
            Self::One(client) => vec![client.clone()],
            Self::Many(group) => group.names().iter().filter_map(|name| group.get(name)).collect(),
        }
    }

    /// Returns its description; many servers have the name of their file.
    pub(super) fn facts(&self, name: &str) -> Facts {
        let clients = self.clients();
        let has = Box::new(move |path: &str| clients.iter().any(|client| client.capabilities().has(path)));
        match self {
            Self::One(client) => {
                let info: Value = client.server_info().and_then(|info| info.to().ok()).unwrap_or_default();
                let text = |name: &str| info[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
                Facts {
                    name: text("name").unwrap_or_else(|| name.to_owned()),
                    version: text("version").unwrap_or_else(|| "0.0.0".to_owned()),
                    title: text("title"),
                    instructions: client.instructions(),
                    info: client.server_info().filter(|_| text("name").is_some() && text("version").is_some()),
                    foreign: foreign(client.capabilities().raw(), &DECLARED),
                    has,
                }
            }
            Self::Many(_) => {
                Facts { has: Box::new(move |path| path != "resources.subscribe" && has(path)), ..Facts::of_group(name) }
            }
        }
    }

    /// Returns the definitions of a kind; none where it has no such list, or that fails.
    pub(super) async fn list(&self, kind: Kind) -> Vec<Map<String, Value>> {
        let Self::One(client) = self else { return Vec::new() };
        let capability = match kind {
            Kind::Tool => "tools",
            Kind::Prompt => "prompts",
            _ => "resources",
        };
        if !client.capabilities().has(capability) {
            return Vec::new();
        }
        let listed = match kind {
            Kind::Tool => client.list_tools().await,
            Kind::Prompt => client.list_prompts().await,
            Kind::Resource => client.list_resources().await,
            Kind::ResourceTemplate => client.list_resource_templates().await,
            _ => return Vec::new(),
        };
        listed.unwrap_or_default()
    }

    /// Sends a request.
    pub(super) async fn request(&self, method: &str, params: RawJson, options: &CallOptions) -> Result<RawJson> {
        match self {
            Self::One(client) => client.request(method, Some(params), options).await,
            Self::Many(group) => asked(group, method, &params, options).await,
        }
    }

    /// Subscribes to a resource, or no longer.
    pub(super) async fn subscribe(&self, uri: &str, begins: bool) -> Result<()> {
        match self {
            Self::One(client) if begins => client.subscribe(uri).await,
            Self::One(client) => client.unsubscribe(uri).await,
            Self::Many(_) => Err(Error::rpc(-32601, "a group has no subscriptions")),
        }
    }

    /// Passes on a notification outside the protocol. Nobody knows which server of a group it is for.
    pub(super) fn pass_on(&self, method: &str, params: &RawJson) {
        if let Self::One(client) = self {
            client.pass_on(method, Some(params.clone()));
        }
    }

    /// Tells that the roots are others.
    pub(super) fn roots_changed(&self) {
        for client in self.clients() {
            // Where there are no roots nobody is told.
            let _ = client.notify("notifications/roots/list_changed", None);
        }
    }

    /// Asks for all log messages: who does not want all of them is not told all of them.
    pub(super) async fn log_all(&self) {
        for client in self.clients() {
            if client.capabilities().has("logging") {
                #[expect(deprecated, reason = "servers that log in this way are there")]
                let _ = client.set_log_level(LogLevel::Debug).await;
            }
        }
    }

    pub(super) async fn close(&self) {
        match self {
            Self::One(client) => client.close().await,
            Self::Many(group) => group.close().await,
        }
    }
}

/// Asks the server of a group that a request is about.
async fn asked(group: &ClientGroup, method: &str, params: &RawJson, options: &CallOptions) -> Result<RawJson> {
    let params: Value = params.to().unwrap_or_default();
    let text = |name: &str| params[name].as_str().unwrap_or_default();
    let arguments = || params.get("arguments").cloned().unwrap_or_else(|| json!({}));
    Ok(match method {
        "tools/list" => listed(group, Kind::Tool, "tools", options).await,
        "resources/list" => listed(group, Kind::Resource, "resources", options).await,
        "resources/templates/list" => listed(group, Kind::ResourceTemplate, "resourceTemplates", options).await,
        "prompts/list" => listed(group, Kind::Prompt, "prompts", options).await,
        "tools/call" => {
            RawJson::from_value(&group.call_tool_with(text("name"), arguments(), options).await.map_err(invalid)?)
        }
        "prompts/get" => {
            RawJson::from_value(&group.get_prompt_with(text("name"), arguments(), options).await.map_err(invalid)?)
        }
        "resources/read" => {
            RawJson::from_value(&group.read_resource_with(text("uri"), options).await.map_err(invalid)?)
        }
        "completion/complete" => {
            let (reference, argument) = (&params["ref"], &params["argument"]);
            let (kind, name) = match reference["uri"].as_str() {
                Some(uri) => (Kind::ResourceTemplate, uri),
                None => (Kind::Prompt, reference["name"].as_str().unwrap_or_default()),
            };
            let known = params["context"]["arguments"].as_object();
            let of = |name: &str| argument[name].as_str().unwrap_or_default();
            let completed = group.complete(kind, name, of("name"), of("value"), known).await;
            RawJson::from_value(&completed.map_err(invalid)?)
        }
        other => return Err(Error::rpc(-32601, format!("{other:?} is not passed on to a group"))),
    })
}

/// Turns a name that the group does not have into the caller's mistake: it is not this program's.
fn invalid(error: Error) -> Error {
    match error.kind() {
        tricorn::ErrorKind::Misuse => Error::invalid_params(error.message()),
        _ => error,
    }
}

/// Everything of one kind, under its public name.
async fn listed(group: &ClientGroup, kind: Kind, key: &str, options: &CallOptions) -> RawJson {
    let listing = group.list(kind, options).await;
    let is_named = matches!(kind, Kind::Tool | Kind::Prompt);
    let entries = listing.entries.into_iter().map(|entry| {
        let mut definition = entry.definition;
        if is_named {
            definition.insert("name".into(), entry.name.into());
        }
        Value::Object(definition)
    });
    let mut result = Map::new();
    result.insert(key.to_owned(), entries.collect());
    RawJson::from_value(&result)
}
