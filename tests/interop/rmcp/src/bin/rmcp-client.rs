//! A client on the official Rust SDK: `rmcp-client PLAN`.
#![allow(deprecated, reason = "what the newest revision has no longer is what the older ones are tested for")]

use anyhow::Context;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequestParams, ElicitResult, ErrorData, GetTaskParams, ListRootsResult, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam, UpdateTaskParams,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RoleClient, RunningService,
    RxJsonRpcMessage, Subscription, TxJsonRpcMessage,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess, Transport};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// For what a server sends by itself.
const WAIT: Duration = Duration::from_secs(10);

/// What the server said by itself.
#[derive(Default)]
struct Heard {
    lists: Mutex<Value>,
    more: Notify,
}

impl Heard {
    fn add(&self, what: &str, value: Value) {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        match lists[what].as_array_mut() {
            Some(list) => list.push(value),
            None => lists[what] = json!([value]),
        }
        self.more.notify_one();
    }

    fn list(&self, what: &str) -> Vec<Value> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        lists.get(what).and_then(Value::as_array).cloned().unwrap_or_default()
    }

    async fn wait(&self, what: &str, step: &Value) -> anyhow::Result<Value> {
        let enough = async {
            while (self.list(what).len() as u64) < step["count"].as_u64().unwrap_or_default() {
                self.more.notified().await;
            }
        };
        tokio::time::timeout(WAIT, enough).await.with_context(|| format!("heard only {:?}", self.list(what)))?;
        Ok(json!({ what: self.list(what) }))
    }
}

/// A value of the SDK from its JSON, and the other way.
fn value<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|e| ErrorData::internal_error(e.to_string(), None))
}

fn wire(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// A transport with the number of messages that were sent.
struct Counted<T>(T, Arc<AtomicUsize>);

impl<T: Transport<RoleClient>> Transport<RoleClient> for Counted<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.send(item)
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleClient>>> + Send {
        self.0.receive()
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.0.close()
    }
}

#[derive(Clone)]
struct Handler {
    answers: Value,
    heard: Arc<Heard>,
    sent: Arc<AtomicUsize>,
    /// Whether it speaks the newest revision: tasks are another thing in older ones.
    newest: bool,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = json!({"sampling": {}, "elicitation": {"form": {}}, "roots": {}});
        if self.newest {
            capabilities["extensions"] = json!({"io.modelcontextprotocol/tasks": {}});
        }
        let all = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": {"name": "interop", "version": "1.0.0"}});
        serde_json::from_value(all).unwrap_or_default()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let params = wire(&params);
        let content = params["messages"].as_array().and_then(|m| m.last()).map(|m| m["content"].clone());
        let content = content.unwrap_or_default();
        let text = content["text"].as_str().or(content[0]["text"].as_str()).unwrap_or_default();
        let content = json!({"type": "text", "text": format!("heard {text}")});
        value(json!({"role": "assistant", "model": "interop", "content": content}))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        value(json!({"action": "accept", "content": self.answers["elicitation"]}))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let roots = self.answers["roots"].as_array().into_iter().flatten();
        value(json!({"roots": roots.map(|uri| json!({"uri": uri})).collect::<Vec<_>>()}))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.add("progress", json!([params.progress, params.total]));
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.add("logs", params.data);
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.add("uris", params.uri.into());
    }
}

type Service = RunningService<RoleClient, Handler>;

fn names(list: &impl Serialize, name: &str) -> Value {
    let list = wire(list);
    json!({"names": list.as_array().into_iter().flatten().map(|entry| &entry[name]).collect::<Vec<_>>()})
}

async fn call(service: &Service, step: &Value) -> anyhow::Result<Value> {
    let heard = &service.service().heard;
    let before = heard.list("progress").len();
    let arguments = value(step["arguments"].clone())?;
    let name = step["name"].as_str().unwrap_or_default().to_owned();
    let result = service.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await?;
    let blocks = wire(&result.content);
    // Notifications have tasks of their own, which run in no order: wait for those that the test asks for.
    if let Some(count) = step["reports"].as_u64() {
        heard.wait("progress", &json!({"count": before as u64 + count})).await?;
    }
    let mut progress = heard.list("progress").split_off(before);
    progress.sort_by_key(|report| report[0].as_f64().unwrap_or_default() as i64);
    Ok(json!({
        "error": result.is_error.unwrap_or(false),
        "text": blocks[0]["text"].as_str().unwrap_or(""),
        "types": blocks.as_array().into_iter().flatten().map(|b| b["type"].clone()).collect::<Vec<_>>(),
        "structured": result.structured_content,
        "progress": progress,
    }))
}

/// What is listened to, and what came.
#[derive(Default)]
struct Changes {
    stream: Option<Subscription>,
    all: Vec<Value>,
}

impl Changes {
    async fn listen(&mut self, service: &Service, step: &Value) -> anyhow::Result<Value> {
        let filter = json!({"toolsListChanged": step["tools"], "resourceSubscriptions": step["uris"]});
        let stream = self.stream.insert(service.listen(value(filter)?).await?);
        let honoured = wire(stream.acknowledged());
        Ok(json!({"tools": honoured["toolsListChanged"], "uris": honoured["resourceSubscriptions"]}))
    }

    async fn wait(&mut self, step: &Value) -> anyhow::Result<Value> {
        let stream = self.stream.as_mut().context("nothing is listened to")?;
        while (self.all.len() as u64) < step["count"].as_u64().unwrap_or_default() {
            let next = tokio::time::timeout(WAIT, stream.next()).await.context("nothing has changed")?;
            let change = wire(&next?.context("the stream has ended")?);
            self.all.push(match change["method"].as_str() {
                Some("notifications/tools/list_changed") => json!("tools"),
                _ => change["params"]["uri"].clone(),
            });
        }
        Ok(json!({"changes": self.all}))
    }

    async fn end(&mut self) -> anyhow::Result<Value> {
        self.stream.take().context("nothing is listened to")?.cancel().await?;
        Ok(json!({}))
    }
}

async fn cached(service: &Service, step: &Value) -> anyhow::Result<Value> {
    let sent = || service.service().sent.load(Ordering::SeqCst);
    let (mut said, mut before) = (Value::Null, 0);
    for _ in 0..2 {
        before = sent();
        said = match step.get("uri") {
            Some(uri) => wire(&service.read_resource(value(json!({"uri": uri}))?).await?),
            None => wire(&service.list_tools(None).await?),
        };
    }
    Ok(json!({"ttlMs": said["ttlMs"], "cacheScope": said["cacheScope"], "kept": sent() == before}))
}

async fn task(service: &Service, step: &Value) -> anyhow::Result<Value> {
    let arguments = value(step["arguments"].clone())?;
    let name = step["name"].as_str().unwrap_or_default().to_owned();
    let CallToolResponse::Task(created) =
        service.call_tool_once(CallToolRequestParams::new(name).with_arguments(arguments)).await?
    else {
        anyhow::bail!("it was answered at once");
    };
    let created = wire(&created);
    let id = created["taskId"].as_str().unwrap_or_default();
    let mut answered = false;
    loop {
        let task = wire(&service.get_task(GetTaskParams::new(id)).await?);
        match task["status"].as_str().unwrap_or_default() {
            "input_required" if !answered => {
                let answer = json!({"action": "accept", "content": service.service().answers["elicitation"]});
                let keys = task["inputRequests"].as_object().into_iter().flatten();
                let answers = keys.map(|(key, _)| (key.clone(), answer.clone())).collect();
                service.update_task(UpdateTaskParams::new(id, answers)).await?;
                answered = true;
            }
            "working" | "input_required" => {
                let pause = task["pollIntervalMs"].as_u64().unwrap_or(100).min(1000);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            "completed" => {
                let result = &task["result"];
                let (error, text) = (result["isError"] == true, &result["content"][0]["text"]);
                return Ok(json!({"created": created["status"], "error": error, "text": text}));
            }
            other => anyhow::bail!("it is {other:?}"),
        }
    }
}

async fn perform(service: &Service, changes: &mut Changes, step: &Value) -> anyhow::Result<Value> {
    let heard = &service.service().heard;
    let only = |names: &[&str]| {
        let pick = |name: &&str| step.get(*name).map(|v| ((*name).to_owned(), v.clone()));
        Value::Object(names.iter().filter_map(pick).collect())
    };
    Ok(match step["do"].as_str().unwrap_or_default() {
        "tools" => names(&service.list_all_tools().await?, "name"),
        "resources" => names(&service.list_all_resources().await?, "uri"),
        "templates" => names(&service.list_all_resource_templates().await?, "uriTemplate"),
        "prompts" => names(&service.list_all_prompts().await?, "name"),
        "call" => call(service, step).await?,
        "read" => wire(&service.read_resource(value(only(&["uri"]))?).await?)["contents"][0].take(),
        "prompt" => {
            let result = wire(&service.get_prompt(value(only(&["name", "arguments"]))?).await?);
            let message = &result["messages"][0];
            json!({"role": message["role"], "text": message["content"]["text"]})
        }
        "complete" => {
            let reference = json!({"type": "ref/prompt", "name": step["prompt"]});
            let argument = json!({"name": step["argument"], "value": step["value"]});
            wire(&service.complete(value(json!({"ref": reference, "argument": argument}))?).await?.completion)
        }
        "subscribe" => service.subscribe(value(only(&["uri"]))?).await.map(|()| json!({}))?,
        "unsubscribe" => service.unsubscribe(value(only(&["uri"]))?).await.map(|()| json!({}))?,
        "level" => service.set_level(value(only(&["level"]))?).await.map(|()| json!({}))?,
        "updated" => heard.wait("uris", step).await?,
        "logs" => heard.wait("logs", step).await?,
        "listen" => changes.listen(service, step).await?,
        "changes" => changes.wait(step).await?,
        "unlisten" => changes.end().await?,
        "cached" => cached(service, step).await?,
        "task" => task(service, step).await?,
        other => anyhow::bail!("what is {other:?}?"),
    })
}

async fn run() -> anyhow::Result<()> {
    let plan: Value = serde_json::from_str(&std::env::args().nth(1).context("rmcp-client PLAN")?)?;
    let modern = vec![ProtocolVersion::V_2026_07_28];
    let mode = match plan["revision"].as_str() {
        None => ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version: None },
        Some("2026-07-28") => ClientLifecycleMode::Discover { preferred_versions: modern },
        Some(_) => ClientLifecycleMode::Initialize,
    };
    let sent = Arc::<AtomicUsize>::default();
    let newest = plan["revision"].is_null();
    let handler = Handler { answers: plan["answers"].clone(), heard: Arc::default(), sent: sent.clone(), newest };
    let service = match &plan["target"] {
        Value::String(url) => {
            let transport = StreamableHttpClientTransport::from_uri(url.clone());
            handler.serve_with_lifecycle(Counted(transport, sent), mode).await?
        }
        words => {
            let words: Vec<String> = serde_json::from_value(words.clone())?;
            let mut command = tokio::process::Command::new(words.first().context("an empty command")?);
            command.args(&words[1..]);
            handler.serve_with_lifecycle(Counted(TokioChildProcess::new(command)?, sent), mode).await?
        }
    };
    let (mut said, mut changes) = (Vec::new(), Changes::default());
    for step in plan["steps"].as_array().into_iter().flatten() {
        said.push(match perform(&service, &mut changes, step).await {
            Ok(result) => json!({"result": result}),
            Err(error) => json!({"error": format!("{error:#}")}),
        });
    }
    let version = service.peer_info().map(|info| info.protocol_version.to_string());
    println!("{}", json!({ "protocolVersion": version, "steps": said }));
    service.cancel().await?;
    Ok(())
}

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}
