//! Our client in Rust: `interop-client PLAN`.
#![expect(deprecated, reason = "what the specification has deprecated works on")]
#![expect(clippy::print_stdout, reason = "the report is the standard output")]

use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tricorn::client::{Change, Listening};
use tricorn::jsonrpc::RawJson;
use tricorn::model::SubscriptionFilter;
use tricorn::prelude::*;
use tricorn::protocol::{Kind, LogLevel};
use tricorn::{Events, Result};

/// For what a server sends by itself.
const WAIT: Duration = Duration::from_secs(10);

/// What the server said by itself.
#[derive(Default)]
struct Heard {
    uris: Mutex<Vec<Value>>,
    logs: Mutex<Vec<Value>>,
    more: Notify,
}

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let mut params: Value = params.and_then(|p| p.to().ok()).unwrap_or_default();
        let (list, what) = match method {
            "notifications/resources/updated" => (&self.uris, params["uri"].take()),
            "notifications/message" => (&self.logs, params["data"].take()),
            _ => return,
        };
        list.lock().unwrap_or_else(PoisonError::into_inner).push(what);
        self.more.notify_one();
    }
}

impl Heard {
    async fn wait(&self, list: &Mutex<Vec<Value>>, count: usize) -> Result<Value> {
        let enough = async {
            loop {
                let list = list.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if list.len() >= count {
                    return list;
                }
                self.more.notified().await;
            }
        };
        tokio::time::timeout(WAIT, enough).await.map(Value::Array).map_err(|_| Error::misuse("it was not heard"))
    }
}

/// Answers what a function makes of the server's parameters.
struct Answer<F>(F);

impl<F: Fn(Value) -> Value + Send + Sync + 'static> tricorn::Handler for Answer<F> {
    fn call(&self, _: Context, params: RawJson, reply: tricorn::Reply) {
        reply.value(RawJson::from_value(&(self.0)(params.to().unwrap_or_default())));
    }
}

fn handlers(answers: &Value, heard: &Arc<Heard>) -> Result<Handlers> {
    let form = answers["elicitation"].clone();
    let sampling = Answer(|params: Value| {
        let last = params["messages"].as_array().and_then(|m| m.last()).cloned().unwrap_or_default();
        let text = last["content"]["text"].as_str().or_else(|| last["content"][0]["text"].as_str()).unwrap_or_default();
        json!(format!("heard {text}"))
    });
    let roots = Roots::new(answers["roots"].as_array().cloned().unwrap_or_default())?;
    Ok(Handlers::new()
        .events(heard.clone())
        .sampling(Arc::new(sampling))
        .elicitation(Arc::new(Answer(move |_| json!({"action": "accept", "content": form}))))
        .roots(&roots))
}

fn names(list: Vec<Map<String, Value>>, name: &str) -> Value {
    json!({"names": list.into_iter().map(|mut entry| entry.get_mut(name).map(Value::take)).collect::<Vec<_>>()})
}

fn text(step: &Value, name: &str) -> String {
    step[name].as_str().unwrap_or_default().to_owned()
}

async fn call(client: &Client, step: &Value) -> Result<Value> {
    let progress = Arc::new(Mutex::new(Vec::new()));
    let mut options = CallOptions::new();
    if step["progress"] == true {
        let seen = progress.clone();
        options = options.on_progress(move |report| {
            let report: Value = report.to().unwrap_or_default();
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(json!([report["progress"], report["total"]]));
        });
    }
    let result = client.call_tool_with(&text(step, "name"), &step["arguments"], &options).await?;
    let blocks = json!(result.content);
    let types: Vec<&Value> = blocks.as_array().into_iter().flatten().map(|b| &b["type"]).collect();
    Ok(json!({
        "error": result.is_error,
        "text": blocks[0]["text"].as_str().unwrap_or(""),
        "types": types,
        "structured": result.structured_content,
        "progress": *progress.lock().unwrap_or_else(PoisonError::into_inner),
    }))
}

/// Fifty calls at once.
async fn many(client: &Client, step: &Value) -> Result<Value> {
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (client, step) = (client.clone(), step.clone());
        running.spawn(async move { call(&client, &step).await });
    }
    let mut all = Vec::new();
    while let Some(done) = running.join_next().await {
        all.push(done.map_err(|error| Error::misuse(error.to_string()))??);
    }
    Ok(json!({"all": all}))
}

/// A call that is given up at once, and the next one.
async fn cancel(client: &Client, step: &Value) -> Result<Value> {
    let _ = tokio::time::timeout(Duration::from_millis(10), call(client, step)).await;
    call(client, step).await
}

/// Asks whoever has started this for something, and waits until it is done.
async fn ask(what: &str) -> Result<()> {
    println!("{}", json!({"ask": what}));
    let line = tokio::task::spawn_blocking(|| std::io::stdin().lines().next().is_some_and(|line| line.is_ok())).await;
    if line.unwrap_or_default() { Ok(()) } else { Err(Error::misuse("nobody answers")) }
}

/// Between two calls the server is killed: it is started again, or the client says at once that it is gone.
async fn killed(client: &Client, opened: &Opened<'_>, step: &Value) -> Result<Value> {
    ask("kill").await?;
    for _ in 0..2 {
        match tokio::time::timeout(WAIT, call(client, step)).await {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(_)) => {}
            Err(_) => return Err(Error::misuse("a call to a server that is gone does not end")),
        }
    }
    let fresh = opened.again().await?;
    let result = call(&fresh, step).await;
    fresh.close().await;
    result
}

/// The names of a list, and something of the first entry that can be had without knowing more.
async fn first_resource(client: &Client, step: &Value) -> Result<Value> {
    let list = client.list_resources().await?;
    if let Some(uri) = list.first().and_then(|entry| entry["uri"].as_str()).filter(|_| step["first"] == true)
        && client.read_resource(uri).await?.contents.is_empty()
    {
        return Err(Error::misuse(format!("{uri} has no contents")));
    }
    Ok(names(list, "uri"))
}

/// As [`first_resource`], of prompts.
async fn first_prompt(client: &Client, step: &Value) -> Result<Value> {
    let list = client.list_prompts().await?;
    let is_whole = |entry: &&Map<String, Value>| {
        let arguments = entry.get("arguments").and_then(Value::as_array);
        arguments.into_iter().flatten().all(|argument| argument["required"] != true)
    };
    if let Some(name) = list.iter().find(is_whole).and_then(|e| e["name"].as_str()).filter(|_| step["first"] == true) {
        let messages = &Value::Object(client.get_prompt(name, &json!({})).await?)["messages"];
        if messages.as_array().is_none_or(Vec::is_empty) {
            return Err(Error::misuse(format!("prompt {name:?} has no messages")));
        }
    }
    Ok(names(list, "name"))
}

/// How the client is connected.
struct Opened<'a> {
    target: &'a Target,
    options: &'a ClientOptions,
    handlers: &'a Handlers,
}

impl Opened<'_> {
    async fn again(&self) -> Result<Client> {
        Client::connect_with(self.target, self.options, self.handlers).await
    }
}

/// What is listened to, and what came.
#[derive(Default)]
struct Changes {
    listening: Option<Listening>,
    all: Vec<Value>,
}

impl Changes {
    async fn listen(&mut self, client: &Client, step: &Value) -> Result<Value> {
        let mut filter = SubscriptionFilter::new();
        if step["tools"] == true {
            filter = filter.tools();
        }
        for uri in step["uris"].as_array().into_iter().flatten() {
            filter = filter.resource(uri.as_str().unwrap_or_default());
        }
        let honoured = self.listening.insert(client.listen(filter).await?).honoured();
        Ok(json!({"tools": honoured.tools_list_changed, "uris": honoured.resource_subscriptions}))
    }

    async fn wait(&mut self, count: usize) -> Result<Value> {
        let listening = self.listening.as_mut().ok_or_else(|| Error::misuse("nothing is listened to"))?;
        while self.all.len() < count {
            let next = tokio::time::timeout(WAIT, listening.next()).await;
            let change = next.map_err(|_| Error::misuse("nothing has changed"))?;
            self.all.push(match change.ok_or_else(|| Error::misuse("the stream has ended"))?? {
                Change::ResourceUpdated(uri) => json!(uri),
                Change::ToolsListChanged => json!("tools"),
                other => json!(other.method()),
            });
        }
        Ok(json!({"changes": self.all}))
    }
}

async fn cached(client: &Client, step: &Value) -> Result<Value> {
    let (mut said, mut hits) = (Value::Null, 0);
    for _ in 0..2 {
        hits = client.cache_usage().hits;
        said = match step["uri"].as_str() {
            Some(uri) => json!(client.read_resource(uri).await?),
            None => json!(client.list_tools_page(None).await?),
        };
    }
    let kept = client.cache_usage().hits > hits;
    Ok(json!({"ttlMs": said["ttlMs"], "cacheScope": said["cacheScope"], "kept": kept}))
}

async fn task(client: &Client, step: &Value) -> Result<Value> {
    let name = text(step, "name");
    let task = client.call_tool_task(&name, &step["arguments"], None, &CallOptions::new()).await?;
    let created: Value = task.created().and_then(|created| created.to().ok()).unwrap_or_default();
    let result = task.result().await?;
    let text = &json!(result.content)[0]["text"];
    Ok(json!({"created": created["task"]["status"], "error": result.is_error, "text": text}))
}

async fn perform(
    client: &Client,
    opened: &Opened<'_>,
    heard: &Heard,
    changes: &mut Changes,
    step: &Value,
) -> Result<Value> {
    let count = usize::try_from(step["count"].as_u64().unwrap_or_default()).unwrap_or_default();
    Ok(match step["do"].as_str().unwrap_or_default() {
        "tools" => names(client.list_tools().await?, "name"),
        "resources" => first_resource(client, step).await?,
        "templates" => names(client.list_resource_templates().await?, "uriTemplate"),
        "prompts" => first_prompt(client, step).await?,
        "call" => call(client, step).await?,
        "many" => many(client, step).await?,
        "cancel" => cancel(client, step).await?,
        "restart" => {
            ask("restart").await?;
            call(client, step).await?
        }
        "killed" => killed(client, opened, step).await?,
        "read" => json!(client.read_resource(&text(step, "uri")).await?.contents.first()),
        "prompt" => {
            let result = client.get_prompt(&text(step, "name"), &step["arguments"]).await?;
            let message = &Value::Object(result)["messages"][0];
            json!({"role": message["role"], "text": message["content"]["text"]})
        }
        "complete" => {
            let (prompt, argument, value) = (text(step, "prompt"), text(step, "argument"), text(step, "value"));
            json!(client.complete(Kind::Prompt, &prompt, &argument, &value, None).await?.completion)
        }
        "subscribe" => client.subscribe(&text(step, "uri")).await.map(|()| json!({}))?,
        "unsubscribe" => client.unsubscribe(&text(step, "uri")).await.map(|()| json!({}))?,
        "level" => client.set_log_level(LogLevel::Debug).await.map(|()| json!({}))?,
        "updated" => json!({"uris": heard.wait(&heard.uris, count).await?}),
        "logs" => json!({"logs": heard.wait(&heard.logs, count).await?}),
        "listen" => changes.listen(client, step).await?,
        "changes" => changes.wait(count).await?,
        "unlisten" => {
            changes.listening = None;
            json!({})
        }
        "cached" => cached(client, step).await?,
        "task" => task(client, step).await?,
        other => return Err(Error::misuse(format!("what is {other:?}?"))),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let usage = || Error::misuse("usage: interop-client PLAN");
    let plan: Value = std::env::args().nth(1).and_then(|plan| serde_json::from_str(&plan).ok()).ok_or_else(usage)?;
    let target = match &plan["target"] {
        Value::String(url) => json!({"url": url}),
        words => json!({"command": words[0], "args": words.as_array().and_then(|w| w.get(1..))}),
    };
    let options = plan["revision"].as_str().into_iter().fold(ClientOptions::new(), ClientOptions::revision);
    let heard = Arc::new(Heard::default());
    let mut handlers = handlers(&plan["answers"], &heard)?;
    // Of older revisions they are another thing.
    if options.get_revision().is_none() {
        handlers = handlers.tasks(TaskOptions::new())?;
    }
    let target = Target::parse(&target.to_string())?;
    let opened = Opened { target: &target, options: &options, handlers: &handlers };
    let client = opened.again().await?;
    let (mut said, mut changes) = (Vec::new(), Changes::default());
    for step in plan["steps"].as_array().into_iter().flatten() {
        said.push(match perform(&client, &opened, &heard, &mut changes, step).await {
            Ok(result) => json!({"result": result}),
            Err(error) => json!({"error": error.to_string()}),
        });
    }
    println!("{}", json!({"protocolVersion": client.revision().to_string(), "steps": said}));
    client.close().await;
    Ok(())
}
