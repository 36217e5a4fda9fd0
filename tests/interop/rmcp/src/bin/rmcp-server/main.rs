//! A server on the official Rust SDK: `rmcp-server --stdio | --http HOST:PORT`.
#![allow(deprecated, reason = "what the newest revision has no longer is what the older ones are tested for")]

mod newest;

use anyhow::{Context, bail};
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::tool::ToolCallContext;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams,
    CompleteResult, ContentBlock, ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams,
    GetTaskResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::transport::common::server_side_http::ServerSseMessage;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{EventId, EventStore, EventStoreError, EventStream};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt, schemars, tool, tool_handler, tool_router};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Message {
    text: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Place {
    city: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Weather {
    city: String,
    temperature: f64,
    conditions: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Kind {
    kind: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ToModel {
    prompt: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ToUser {
    message: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Touched {
    uri: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Region {
    #[serde(default = "nowhere")]
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

fn nowhere() -> String {
    "none".to_owned()
}

/// What those who listen are told.
#[derive(Clone)]
enum Changed {
    Tools,
    Resource(String),
}

/// After which a client that lost a stream asks for the rest: when the servers of all SDKs have noticed that it is gone.
const RETRY: Duration = Duration::from_secs(1);

/// A value of the SDK from its JSON.
fn value<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(|e| ErrorData::internal_error(e.to_string(), None))
}

fn failed(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// The form of `test_elicitation`.
fn person() -> Value {
    json!({
        "type": "object",
        "properties": {"username": {"type": "string"}, "email": {"type": "string", "format": "email"}},
        "required": ["username", "email"],
    })
}

/// One object is one client's; tasks and changes are everybody's.
#[derive(Clone)]
struct Fixture {
    tool_router: ToolRouter<Self>,
    subscribed: Arc<Mutex<HashMap<String, Peer<RoleServer>>>>,
    tasks: TaskManager,
    changes: broadcast::Sender<Changed>,
    /// What is told from the moment on in which the client was promised it.
    promised: Arc<Mutex<Option<broadcast::Receiver<Changed>>>>,
}

#[tool_router]
impl Fixture {
    #[tool(description = "Add two numbers")]
    fn add(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> String {
        (a + b).to_string()
    }

    #[tool(description = "Return the text unchanged")]
    fn echo(&self, Parameters(Message { text }): Parameters<Message>) -> String {
        text
    }

    #[tool(description = "A weather report")]
    fn structured(&self, Parameters(Place { city }): Parameters<Place>) -> Json<Weather> {
        Json(Weather { city, temperature: 22.5, conditions: "sunny".to_owned() })
    }

    #[tool(description = "Fail when asked to")]
    fn fail(&self, Parameters(Kind { kind }): Parameters<Kind>) -> CallToolResult {
        match kind.as_str() {
            "tool" => CallToolResult::error(vec![ContentBlock::text("the tool says no")]),
            _ => CallToolResult::success(vec![ContentBlock::text("no failure")]),
        }
    }

    #[tool(description = "Report progress three times")]
    async fn test_tool_with_progress(&self, context: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        let token = context.meta.get_progress_token().map(|token| json!(token));
        for progress in [0, 50, 100] {
            if let Some(token) = &token {
                let report = value(json!({"progressToken": token, "progress": progress, "total": 100}))?;
                context.peer.notify_progress(report).await.map_err(failed)?;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok("Tool with progress executed successfully".to_owned())
    }

    #[tool(description = "Log three messages")]
    async fn test_tool_with_logging(&self, context: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        for message in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
            let message = value(json!({"level": "info", "data": message}))?;
            context.peer.notify_logging_message(message).await.map_err(failed)?;
        }
        Ok("Tool with logging executed successfully".to_owned())
    }

    #[tool(description = "Ask the client's model")]
    async fn test_sampling(
        &self,
        Parameters(ToModel { prompt }): Parameters<ToModel>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
        let question = value(json!({"messages": [message], "maxTokens": 100}))?;
        let answer = json!(context.peer.create_message(question).await.map_err(failed)?);
        Ok(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default()))
    }

    #[tool(description = "Ask the user")]
    async fn test_elicitation(
        &self,
        Parameters(ToUser { message }): Parameters<ToUser>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, ErrorData> {
        let question = value(json!({"mode": "form", "message": message, "requestedSchema": person()}))?;
        let answer = json!(context.peer.create_elicitation(question).await.map_err(failed)?);
        Ok(format!(
            "User response: action={}, content={}",
            answer["action"].as_str().unwrap_or_default(),
            answer["content"]
        ))
    }

    #[tool(description = "Return the URIs of the client's roots")]
    async fn roots(&self, context: RequestContext<RoleServer>) -> Result<String, ErrorData> {
        let answer = context.peer.list_roots().await.map_err(failed)?;
        Ok(answer.roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(" "))
    }

    #[tool(description = "Say that a resource has changed")]
    async fn touch(&self, Parameters(Touched { uri }): Parameters<Touched>) -> Result<String, ErrorData> {
        let peer = self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).get(&uri).cloned();
        if let Some(peer) = peer {
            peer.notify_resource_updated(value(json!({"uri": uri}))?).await.map_err(failed)?;
        }
        // Nobody may be listening.
        let _ = self.changes.send(Changed::Resource(uri.clone()));
        Ok(format!("touched {uri}"))
    }

    #[tool(description = "Return the region, which also travels as a header")]
    fn test_x_mcp_header(&self, Parameters(Region { region }): Parameters<Region>) -> String {
        format!("region: {region}")
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = json!({
            "tools": {"listChanged": true},
            "resources": {"subscribe": true},
            "prompts": {},
            "completions": {},
            "logging": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        ServerConfig::new(serde_json::from_value(capabilities).unwrap_or_default())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.tool_router.list_all();
        if !newest::is(&context) {
            return Ok(ListToolsResult::with_all_items(tools));
        }
        tools.extend(newest::tools()?);
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(60_000).with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tasks = context.client_capabilities().is_some_and(|c| c.supports_tasks()).then_some(&self.tasks);
        if newest::is(&context)
            && let Some(response) = newest::call(&request, tasks, &self.changes).await?
        {
            return Ok(response);
        }
        self.tool_router.call(ToolCallContext::new(self, request, context)).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        *self.promised.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.changes.subscribe());
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let promised = self.promised.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut changes = promised.unwrap_or_else(|| self.changes.subscribe());
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = changes.recv() => change.map_err(failed)?,
            };
            // What was not asked for is refused.
            let _ = match change {
                Changed::Tools => context.sink().notify_tool_list_changed().await,
                Changed::Resource(uri) => context.sink().notify_resource_updated(uri).await,
            };
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resource =
            |name: &str, mime: &str| json!({"uri": format!("test://{name}"), "name": name, "mimeType": mime});
        let all = json!([
            resource("static-text", "text/plain"),
            resource("static-binary", "image/png"),
            resource("watched-resource", "text/plain"),
        ]);
        value(all).map(ListResourcesResult::with_all_items)
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template =
            json!({"uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json"});
        value(json!([template])).map(ListResourceTemplatesResult::with_all_items)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let contents = match uri.as_str() {
            "test://static-text" => {
                json!({"mimeType": "text/plain", "text": "This is the content of the static text resource."})
            }
            "test://static-binary" => json!({"mimeType": "image/png", "blob": "iVBORw=="}),
            "test://watched-resource" => json!({"mimeType": "text/plain", "text": "This resource can be watched."}),
            _ => {
                let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
                let id = id.ok_or_else(|| ErrorData::resource_not_found("no such resource", None))?;
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"mimeType": "application/json", "text": data.to_string()})
            }
        };
        let mut contents = contents;
        contents["uri"] = uri.into();
        let result = ReadResourceResult::new(value(json!([contents]))?);
        // Older revisions know nothing of it.
        let keeps = newest::is(&context) && contents["uri"] == "test://static-text";
        Ok(if keeps { result.with_ttl_ms(5_000).with_cache_scope(CacheScope::Public).into() } else { result.into() })
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).insert(request.uri, context.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.uri);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let arguments = json!([{"name": "arg1", "required": true}, {"name": "arg2", "required": true}]);
        let prompt = json!({"name": "test_prompt_with_arguments", "arguments": arguments});
        let asking = json!({"name": "test_input_required_result_prompt"});
        value(json!([prompt, asking])).map(ListPromptsResult::with_all_items)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" {
            return newest::prompt(&request);
        }
        let given = Value::Object(request.arguments.unwrap_or_default());
        let argument = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
        let text = format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2"));
        let message = json!({"role": "user", "content": {"type": "text", "text": text}});
        value(json!([message])).map(|messages| GetPromptResult::new(messages).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let words = ["paris", "park", "party", "test"];
        let values: Vec<&str> = words.into_iter().filter(|word| word.starts_with(&request.argument.value)).collect();
        value(json!({"values": values})).map(CompleteResult::new)
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }
}

/// The newest thousand events of all sessions, each with its number and its stream.
#[derive(Default)]
struct Events(Mutex<VecDeque<(u64, String, ServerSseMessage)>>);

#[async_trait::async_trait]
impl EventStore for Events {
    async fn store_event(&self, stream: &str, event: &ServerSseMessage) -> Result<EventId, EventStoreError> {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = events.back().map_or(1, |last| last.0 + 1);
        let mut event = event.clone();
        event.event_id = Some(number.to_string());
        events.push_back((number, stream.to_owned(), event));
        if events.len() > 1000 {
            events.pop_front();
        }
        Ok(number.to_string())
    }

    async fn replay_events_after(&self, last: &str) -> Result<EventStream, EventStoreError> {
        let last: u64 = last.parse()?;
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = events.iter().find(|event| event.0 == last).map(|event| event.1.clone());
        let after = events.iter().filter(|event| event.0 > last && Some(&event.1) == stream.as_ref());
        let after: Vec<_> = after.map(|event| event.2.clone()).collect();
        Ok(Box::pin(futures::stream::iter(after)))
    }
}

async fn run() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (tasks, changes) = (TaskManager::new(), broadcast::channel(100).0);
    let fixture = move || Fixture {
        tool_router: Fixture::tool_router(),
        subscribed: Arc::default(),
        tasks: tasks.clone(),
        changes: changes.clone(),
        promised: Arc::default(),
    };
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--stdio"] => {
            fixture().serve(rmcp::transport::stdio()).await?.waiting().await?;
        }
        ["--http", address] => {
            let retry = Some(RETRY);
            let config = StreamableHttpServerConfig::default().with_sse_retry(retry);
            let mut sessions = LocalSessionManager::default().with_event_store(Arc::new(Events::default()));
            sessions.session_config.sse_retry = retry;
            let sessions = Arc::new(sessions);
            let service = StreamableHttpService::new(move || Ok(fixture()), sessions, config);
            let app = axum::Router::new().nest_service("/mcp", service);
            let listener = tokio::net::TcpListener::bind(address).await.context("cannot listen")?;
            eprintln!("ready http://{}/mcp", listener.local_addr()?);
            axum::serve(listener, app).await?;
        }
        _ => bail!("rmcp-server --stdio | --http HOST:PORT"),
    }
    Ok(())
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let result = runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run()));
    if let Err(error) = &result {
        eprintln!("{error:#}");
    }
    // The runtime's stdin thread may still be blocked in a read.
    std::process::exit(i32::from(result.is_err()));
}
