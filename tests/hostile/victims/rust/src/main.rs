//! A client program that does what each line says, as `tests/cases/runners` do, and keeps nothing of what it gets.
//!
//! One JSON command a line on standard input, one line for each on standard output: `{"id", "result": {}}` or
//! `{"id", "error": {"kind", "message"}}`.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![allow(clippy::print_stdout, reason = "reporting on standard output is the job")]

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tricorn::client::Auth;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::protocol::Kind;
use tricorn::{Events, Result};

type Clients = Arc<Mutex<HashMap<u64, Client>>>;

/// The server's notifications, looked at by nobody.
struct Deaf;

impl Events for Deaf {
    fn notification(&self, _: &str, _: Option<&RawJson>) {}
}

/// Answers the server with what the command says.
struct Said(Value);

impl tricorn::Handler for Said {
    fn call(&self, _: Context, _: RawJson, reply: tricorn::Reply) {
        reply.value(RawJson::from_value(&self.0));
    }
}

fn handlers(answers: &Value) -> Result<Handlers> {
    let mut handlers = Handlers::new().events(Arc::new(Deaf));
    if let Some(answer) = answers.get("sampling") {
        handlers = handlers.sampling(Arc::new(Said(answer.clone())));
    }
    if let Some(answer) = answers.get("elicitation") {
        let modes = serde_json::Map::from_iter([("form".to_owned(), json!({}))]);
        handlers = handlers.answer("elicitation/create", Arc::new(Said(answer.clone())), modes.into());
    }
    if let Some(roots) = answers.get("roots").and_then(Value::as_array) {
        handlers = handlers.roots(&Roots::new(roots.clone())?);
    }
    Ok(handlers)
}

async fn connect(command: &Value) -> Result<Client> {
    let target = Target::parse(&command["target"].to_string())?;
    let mut given = command["options"].clone();
    let auth = given.as_object_mut().and_then(|members| members.shift_remove("auth"));
    let mut options = ClientOptions::parse(&given.to_string())?;
    if let Some(auth) = auth {
        let auth: Auth = serde_json::from_value(auth).map_err(|error| Error::misuse(format!("auth: {error}")))?;
        options = options.auth(auth);
    }
    Client::connect_with(&target, &options, &handlers(&command["answers"])?).await
}

async fn perform(clients: &Clients, command: &Value) -> Result<()> {
    let text = |name: &str| command[name].as_str().unwrap_or_default();
    let key = command["client"].as_u64().unwrap_or_default();
    match text("do") {
        "connect" => {
            let client = connect(command).await?;
            locked(clients).insert(key, client);
            return Ok(());
        }
        "close" => {
            let known = locked(clients).remove(&key);
            if let Some(client) = known {
                client.close().await;
            }
            return Ok(());
        }
        _ => {}
    }
    let client = locked(clients).get(&key).cloned().ok_or_else(|| Error::misuse("no such client"))?;
    match text("do") {
        "list_tools" => drop(client.list_tools().await?),
        "call_tool" => {
            let mut options = CallOptions::new();
            if let Some(seconds) = command["timeout"].as_f64() {
                options = options.timeout(Duration::from_secs_f64(seconds));
            }
            let arguments = command.get("arguments").cloned().unwrap_or_else(|| json!({}));
            drop(client.call_tool_with(text("name"), &arguments, &options).await?);
        }
        "ping" => client.ping().await?,
        "list" if text("what") == "resources" => drop(client.list_resources().await?),
        "list" => drop(client.list_resource_templates().await?),
        "read_resource" => drop(client.read_resource(text("uri")).await?),
        "get_prompt" => drop(client.get_prompt(text("name"), &command["arguments"]).await?),
        "complete" => {
            drop(client.complete(Kind::Prompt, text("prompt"), text("argument"), text("value"), None).await?);
        }
        other => return Err(Error::misuse(format!("{other:?} is no command"))),
    }
    Ok(())
}

fn locked(clients: &Clients) -> std::sync::MutexGuard<'_, HashMap<u64, Client>> {
    clients.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(clients: Clients, command: Value) {
    let id = &command["id"];
    let line = match perform(&clients, &command).await {
        Ok(()) => json!({"id": id, "result": {}}),
        Err(error) => {
            let message: String = error.message().chars().take(300).collect();
            json!({"id": id, "error": {"kind": error.kind().as_str(), "message": message}})
        }
    };
    println!("{line}");
}

#[tokio::main]
async fn main() {
    let clients = Clients::default();
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
        tokio::spawn(answer(clients.clone(), command));
    }
    let open: Vec<Client> = locked(&clients).drain().map(|(_, client)| client).collect();
    for client in open {
        client.close().await;
    }
}
