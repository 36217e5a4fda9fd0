//! The case runner of Rust: does what each line says, with the public client, and reports what came of it.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![allow(clippy::print_stdout, reason = "reporting on standard output is the job")]

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tricorn::auth::{FileStore, MemoryStore};
use tricorn::client::Auth;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::protocol::{Kind, LogLevel};
use tricorn::{Events, Result};

type Shared<T> = Arc<Mutex<HashMap<u64, T>>>;

#[derive(Clone, Default)]
struct Runner {
    clients: Shared<Connected>,
    running: Shared<Arc<Notify>>,
}

const LEVELS: [LogLevel; 8] = [
    LogLevel::Debug,
    LogLevel::Info,
    LogLevel::Notice,
    LogLevel::Warning,
    LogLevel::Error,
    LogLevel::Critical,
    LogLevel::Alert,
    LogLevel::Emergency,
];

/// The server's notifications, and its questions.
#[derive(Default)]
struct Heard {
    notifications: Mutex<Vec<Value>>,
    asked: Mutex<Vec<Value>>,
}

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let params = params.map_or(Value::Null, read);
        locked(&self.notifications).push(json!({"method": method, "params": params}));
    }
}

/// Answers the server with what the case says.
struct Said {
    heard: Arc<Heard>,
    /// By the name that the case has for it.
    answers: Value,
}

impl tricorn::Handler for Said {
    fn call(&self, _: Context, params: RawJson, reply: tricorn::Reply) {
        let params = read(&params);
        let (name, question) = match &params {
            page if page["mode"] == "url" => {
                let mut page = page.clone();
                page.as_object_mut().into_iter().for_each(|members| drop(members.shift_remove("mode")));
                ("elicitation_url", page)
            }
            form if form.get("requestedSchema").is_some() => {
                ("elicitation", json!({"form": form["requestedSchema"], "message": form["message"]}))
            }
            sampling => ("sampling", json!({"sampling": sampling})),
        };
        locked(&self.heard.asked).push(question);
        let answer = &self.answers[name];
        match answer.get("error") {
            Some(error) => {
                let (code, message) = (error["code"].as_i64(), error["message"].as_str());
                reply.error(Error::rpc(code.unwrap_or_default(), message.unwrap_or_default()));
            }
            None => reply.value(RawJson::from_value(answer)),
        }
    }
}

fn handlers(answers: &Value, heard: &Arc<Heard>) -> Result<(Handlers, Option<Roots>)> {
    let said = || Arc::new(Said { heard: heard.clone(), answers: answers.clone() });
    let mut handlers = Handlers::new().events(heard.clone());
    if answers.get("sampling").is_some() {
        let tools = answers["sampling_tools"] == true;
        handlers = if tools { handlers.sampling_with_tools(said()) } else { handlers.sampling(said()) };
    }
    let modes: serde_json::Map<String, Value> = [("elicitation", "form"), ("elicitation_url", "url")]
        .into_iter()
        .filter(|(name, _)| answers.get(name).is_some())
        .map(|(_, mode)| (mode.to_owned(), json!({})))
        .collect();
    if !modes.is_empty() {
        handlers = handlers.answer("elicitation/create", said(), modes.into());
    }
    let roots = answers.get("roots").and_then(Value::as_array).cloned().map(Roots::new).transpose()?;
    if let Some(roots) = &roots {
        handlers = handlers.roots(roots);
    }
    Ok((handlers, roots))
}

/// A client, and what belongs to it.
#[derive(Clone)]
struct Connected {
    client: Client,
    heard: Arc<Heard>,
    roots: Option<Roots>,
}

fn locked<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(raw: &RawJson) -> Value {
    raw.to().unwrap_or_default()
}

fn number(command: &Value, name: &str) -> u64 {
    command[name].as_u64().unwrap_or_default()
}

fn failure(error: &Error) -> Value {
    let mut facts = json!({"kind": error.kind().as_str(), "message": error.message()});
    if let Some(code) = error.code() {
        facts["code"] = code.into();
    }
    if let Some(data) = error.data() {
        facts["data"] = read(data);
    }
    facts
}

/// Returns the facts of the connection; missing ones are left out.
fn info(client: &Client, heard: &Heard) -> Value {
    let revision = client.revision();
    let mut facts = json!({
        "protocolVersion": revision.as_str(),
        "era": revision.era().as_str(),
        "capabilities": read(client.capabilities().raw()),
        "notifications": locked(&heard.notifications).clone(),
        "asked": locked(&heard.asked).clone(),
    });
    if let Some(info) = client.server_info() {
        facts["serverInfo"] = read(&info);
    }
    if let Some(instructions) = client.instructions() {
        facts["instructions"] = instructions.into();
    }
    facts["initializeResult"] = read(&client.initialize_result());
    if let Some(session) = client.session_id() {
        facts["sessionId"] = session.into();
    }
    facts
}

impl Runner {
    async fn perform(&self, command: &Value) -> Result<Value> {
        let key = number(command, "client");
        match command["do"].as_str().unwrap_or_default() {
            "connect" => return self.connect(key, command).await,
            "cancel" => {
                let call = number(command, "call");
                if let Some(running) = locked(&self.running).get(&call) {
                    running.notify_one();
                }
                return Ok(json!({}));
            }
            "close" => {
                let known = locked(&self.clients).remove(&key);
                if let Some(known) = known {
                    known.client.close().await;
                }
                return Ok(json!({}));
            }
            _ => {}
        }
        let known = locked(&self.clients).get(&key).cloned();
        let Connected { client, heard, roots } = known.ok_or_else(|| Error::misuse("no such client"))?;
        let params = command.get("params").map(RawJson::from_value);
        Ok(match command["do"].as_str().unwrap_or_default() {
            "info" => info(&client, &heard),
            "list_tools" => client.list_tools().await?.into_iter().map(Value::Object).collect(),
            "list_tools_page" => {
                let page = client.list_tools_page(command["cursor"].as_str()).await?;
                serde_json::to_value(page).unwrap_or_default()
            }
            "call_tool" => call_tool(&client, command).await?,
            "ping" => client.ping().await.map(|()| json!({}))?,
            "request" => {
                let method = command["method"].as_str().unwrap_or_default();
                read(&client.request(method, params, &CallOptions::new()).await?)
            }
            "notify" => {
                client.notify(command["method"].as_str().unwrap_or_default(), params)?;
                json!({})
            }
            "metrics" => json!({"awaited": client.awaited()}),
            "roots_changed" => client.roots_changed().map(|()| json!({}))?,
            "wait_for_task" => {
                let task = client.task(command["task"].as_str().unwrap_or_default()).wait().await?;
                serde_json::to_value(task).unwrap_or_default()
            }
            "set_roots" => {
                let roots = roots.ok_or_else(|| Error::misuse("a client without roots"))?;
                roots.set(command["roots"].as_array().cloned().unwrap_or_default())?;
                json!({})
            }
            other => feature(&client, other, command).await?,
        })
    }

    async fn connect(&self, key: u64, command: &Value) -> Result<Value> {
        let target = Target::parse(&command["target"].to_string())?;
        let options = options(&command["options"])?;
        let heard = Arc::new(Heard::default());
        let (handlers, roots) = handlers(&command["answers"], &heard)?;
        let client = Client::connect_with(&target, &options, &handlers).await?;
        let facts = info(&client, &heard);
        locked(&self.clients).insert(key, Connected { client, heard, roots });
        Ok(facts)
    }

    async fn answer(self, command: Value, cancelled: Arc<Notify>) {
        let id = number(&command, "id");
        let line = tokio::select! {
            biased;
            () = cancelled.notified() => {
                json!({"id": id, "error": {"kind": "cancelled_here", "message": "dropped"}})
            }
            outcome = self.perform(&command) => match outcome {
                Ok(result) => json!({"id": id, "result": result}),
                Err(error) => json!({"id": id, "error": failure(&error)}),
            },
        };
        println!("{line}");
        locked(&self.running).remove(&id);
    }
}

/// The client's options; `auth` has the place of its store in it.
fn options(given: &Value) -> Result<ClientOptions> {
    let mut given = given.clone();
    let auth = given.as_object_mut().and_then(|members| members.shift_remove("auth"));
    let options = ClientOptions::parse(&given.to_string())?;
    let Some(mut auth) = auth else { return Ok(options) };
    let store = auth.as_object_mut().and_then(|members| members.shift_remove("store")).unwrap_or_default();
    let auth: Auth = serde_json::from_value(auth).map_err(|error| Error::misuse(format!("auth: {error}")))?;
    Ok(options.auth(match store["directory"].as_str() {
        Some(directory) => auth.store(FileStore::at(directory)),
        None => auth.store(MemoryStore::new()),
    }))
}

async fn feature(client: &Client, name: &str, command: &Value) -> Result<Value> {
    let text = |name: &str| command[name].as_str().unwrap_or_default();
    let whole = command["whole"] == true;
    Ok(match name {
        "list" => {
            let all = match text("what") {
                "resources" => client.list_resources().await?,
                "resource_templates" => client.list_resource_templates().await?,
                _ => client.list_prompts().await?,
            };
            all.into_iter().map(Value::Object).collect()
        }
        "list_page" => list_page(client, text("what"), command["cursor"].as_str()).await?,
        "read_resource" => {
            let read = client.read_resource(text("uri")).await?;
            if whole { json!(read) } else { json!(read.contents) }
        }
        "subscribe" => client.subscribe(text("uri")).await.map(|()| json!({}))?,
        "unsubscribe" => client.unsubscribe(text("uri")).await.map(|()| json!({}))?,
        "get_prompt" => Value::Object(client.get_prompt(text("name"), &command["arguments"]).await?),
        "complete" => {
            let (kind, of) = match command.get("template").and_then(Value::as_str) {
                Some(template) => (Kind::ResourceTemplate, template),
                None => (Kind::Prompt, text("prompt")),
            };
            let context = command["context"].as_object();
            let found = client.complete(kind, of, text("argument"), text("value"), context).await?;
            if whole { json!(found) } else { json!(found.completion) }
        }
        "set_log_level" => {
            let known = LEVELS.into_iter().find(|level| json!(level) == command["level"]);
            let level = known.ok_or_else(|| Error::misuse("no such level"))?;
            client.set_log_level(level).await.map(|()| json!({}))?
        }
        other => return Err(Error::misuse(format!("what is {other:?}?"))),
    })
}

/// A page with all its members.
async fn list_page(client: &Client, what: &str, cursor: Option<&str>) -> Result<Value> {
    let kinds = [
        ("tools", "tools", Kind::Tool),
        ("resources", "resources", Kind::Resource),
        ("resource_templates", "resourceTemplates", Kind::ResourceTemplate),
        ("prompts", "prompts", Kind::Prompt),
    ];
    let known = kinds.into_iter().find(|(name, ..)| *name == what);
    let (_, member, kind) = known.ok_or_else(|| Error::misuse("no such list"))?;
    let page = client.page(kind, cursor, &CallOptions::new()).await?;
    let mut all = page.extra;
    all.insert(member.to_owned(), json!(page.entries));
    all.extend(page.next_cursor.map(|cursor| ("nextCursor".to_owned(), cursor.into())));
    all.extend(page.meta.map(|meta| ("_meta".to_owned(), meta.into())));
    Ok(all.into())
}

async fn call_tool(client: &Client, command: &Value) -> Result<Value> {
    let id = number(command, "id");
    let name = command["name"].as_str().unwrap_or_default();
    let mut options = CallOptions::new();
    let seconds = |name: &str| command.get(name).and_then(Value::as_f64).map(Duration::from_secs_f64);
    if let Some(timeout) = seconds("timeout") {
        options = options.timeout(timeout);
    }
    if let Some(timeout) = seconds("max_timeout") {
        options = options.max_timeout(timeout);
    }
    if command["progress"] == true {
        options = options.on_progress(move |progress| println!("{}", json!({"id": id, "progress": read(&progress)})));
    }
    if let Some(meta) = command.get("meta") {
        options = options.meta(meta);
    }
    let arguments = command.get("arguments").cloned().unwrap_or_else(|| json!({}));
    let result = client.call_tool_with(name, &arguments, &options).await?;
    if command["whole"] == true {
        return Ok(json!(result));
    }
    let mut answer = Map::new();
    answer.insert("text".into(), result.text().into());
    answer.insert("is_error".into(), result.is_error.into());
    answer.insert("content".into(), serde_json::to_value(&result.content).unwrap_or_default());
    answer.insert("meta".into(), result.meta.clone().unwrap_or_default().into());
    if let Some(structured) = &result.structured_content {
        answer.insert("structured".into(), read(structured));
    }
    Ok(answer.into())
}

#[tokio::main]
async fn main() {
    let runner = Runner::default();
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if line.map_or(true, |line| sender.send(line).is_err()) {
                return;
            }
        }
    });
    while let Some(line) = lines.recv().await {
        let command: Value = serde_json::from_str(&line).unwrap_or_default();
        let cancelled = Arc::new(Notify::new());
        locked(&runner.running).insert(number(&command, "id"), cancelled.clone());
        tokio::spawn(runner.clone().answer(command, cancelled));
    }
    let open: Vec<_> = locked(&runner.clients).drain().map(|(_, known)| known.client).collect();
    for client in open {
        client.close().await;
    }
}
