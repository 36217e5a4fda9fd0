//! The case runner of Rust: does what each line says, with the public client, and reports what came of it.
#![allow(clippy::print_stdout, reason = "reporting on standard output is the job")]

use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::{Events, Result};

type Shared<T> = Arc<Mutex<HashMap<u64, T>>>;

#[derive(Clone, Default)]
struct Runner {
    clients: Shared<(Client, Arc<Heard>)>,
    running: Shared<Arc<Notify>>,
}

/// The server's notifications.
#[derive(Default)]
struct Heard(Mutex<Vec<Value>>);

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let params = params.map_or(Value::Null, read);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(json!({"method": method, "params": params}));
    }
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

/// What there is of the connection, without what there is not.
fn info(client: &Client, heard: &Heard) -> Value {
    let revision = client.revision();
    let mut facts = json!({
        "protocolVersion": revision.as_str(),
        "era": revision.era().as_str(),
        "capabilities": read(client.capabilities().raw()),
        "notifications": locked(&heard.0).clone(),
    });
    if let Some(info) = client.server_info() {
        facts["serverInfo"] = read(info);
    }
    if let Some(instructions) = client.instructions() {
        facts["instructions"] = instructions.into();
    }
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
                let client = locked(&self.clients).remove(&key);
                if let Some((client, _)) = client {
                    client.close().await;
                }
                return Ok(json!({}));
            }
            _ => {}
        }
        let known = locked(&self.clients).get(&key).cloned();
        let (client, heard) = known.ok_or_else(|| Error::misuse("no such client"))?;
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
            other => return Err(Error::misuse(format!("what is {other:?}?"))),
        })
    }

    async fn connect(&self, key: u64, command: &Value) -> Result<Value> {
        let target = Target::parse(&command["target"].to_string())?;
        let options = ClientOptions::parse(&command["options"].to_string())?;
        let heard = Arc::new(Heard::default());
        let client = Client::connect_with(&target, &options, &Handlers::new().events(heard.clone())).await?;
        let facts = info(&client, &heard);
        locked(&self.clients).insert(key, (client, heard));
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
    let open: Vec<_> = locked(&runner.clients).drain().map(|(_, (client, _))| client).collect();
    for client in open {
        client.close().await;
    }
}
