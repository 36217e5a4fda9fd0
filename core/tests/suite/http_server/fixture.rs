//! A server whose handlers can be watched, and requests in the shortest words.
#![expect(deprecated, reason = "what the specification has deprecated works on")]

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full};
use serde::Deserialize;
use serde_json::{Value, json};
use tricorn::http::{Body, Endpoint, HttpOptions};
use tricorn::jsonrpc::RawJson;
use tricorn::model::Tool;
use tricorn::server::{HandlerError, Server};
use tricorn::{Context, Handler, Reply};

/// Longer than anything here takes, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    within(what, async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Calls that wait until they are told to go on.
#[derive(Default)]
pub(crate) struct Gate {
    waiting: Mutex<Vec<(Context, Reply)>>,
    pub(crate) started: AtomicUsize,
    pub(crate) cancelled: AtomicUsize,
}

impl Gate {
    /// Lets all that wait finish.
    pub(crate) fn open(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock().unwrap());
        waiting.into_iter().for_each(|(_, reply)| reply.text("open"));
    }

    /// Something on the way of every call that waits.
    pub(crate) fn progress(&self, progress: f64) {
        self.waiting.lock().unwrap().iter().for_each(|(cx, _)| cx.progress(progress, None, None));
    }

    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

struct Waits {
    gate: Arc<Gate>,
    /// Lets its stream end at once.
    pauses: bool,
}

impl Handler for Waits {
    fn call(&self, cx: Context, _params: RawJson, reply: Reply) {
        if self.pauses {
            cx.close_stream();
        }
        cx.progress(0.0, None, None);
        self.gate.waiting.lock().unwrap().push((cx, reply));
        self.gate.started.fetch_add(1, Ordering::SeqCst);
    }

    fn cancel(&self, _cx: &Context, _reason: Option<&str>) {
        self.gate.cancelled.fetch_add(1, Ordering::SeqCst);
        self.gate.waiting.lock().unwrap().retain(|(cx, _)| !cx.is_cancelled());
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
pub(crate) struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub(crate) struct Region {
    region: Option<String>,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub(crate) struct Nothing {}

pub(crate) fn server(gate: &Arc<Gate>, change: impl FnOnce(Server) -> Server) -> Server {
    let region = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
    change(Server::new("fixture"))
        .tool("add", "", |Add { a, b }: Add| async move { Ok::<_, HandlerError>(a + b) })
        .tool("context", "", |_: Nothing, cx: Context| async move {
            Ok::<_, HandlerError>(cx.request().to_json().get().to_owned())
        })
        .tool("steps", "", |_: Nothing, cx: Context| async move {
            cx.progress(1.0, Some(2.0), None);
            cx.progress(2.0, Some(2.0), None);
            Ok::<_, HandlerError>("done".to_owned())
        })
        .tool("samples", "", |_: Nothing, cx: Context| async move {
            cx.require("sampling")?;
            Ok::<_, HandlerError>("sampled".to_owned())
        })
        .tool("roots", "", |_: Nothing, cx: Context| async move {
            cx.list_roots().await?;
            Ok::<_, HandlerError>("listed".to_owned())
        })
        .tool("panics", "", |_: Nothing| async move {
            if PATIENCE > Duration::ZERO {
                panic!("a secret");
            }
            Ok::<_, HandlerError>(1)
        })
        .tool_with(Tool::new("region", "").input_schema(region), |r: Region| async move {
            Ok::<_, HandlerError>(r.region.unwrap_or_else(|| "none".into()))
        })
        .tool_with(Tool::new("waits", ""), Waits { gate: gate.clone(), pauses: false })
        .tool_with(Tool::new("pauses", ""), Waits { gate: gate.clone(), pauses: true })
}

pub(crate) struct Fixture {
    pub(crate) server: Server,
    pub(crate) endpoint: Endpoint,
    pub(crate) gate: Arc<Gate>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(|server| server, "")
    }

    pub(crate) fn with(change: impl FnOnce(Server) -> Server, http: &str) -> Self {
        let gate = Arc::default();
        let server = server(&gate, change);
        let endpoint = server.endpoint(HttpOptions::parse(http).unwrap()).unwrap();
        Self { server, endpoint, gate }
    }

    /// Any request.
    pub(crate) async fn send(
        &self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        Answer::new(self.start(verb, path, headers, body).await).await
    }

    /// Any request, up to the head of its answer.
    pub(crate) async fn start(
        &self,
        verb: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Response<Body> {
        let mut request = Request::builder().method(verb).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "localhost:1");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        within("an answer", self.endpoint.handle(request)).await
    }

    /// A POST as a correct client sends it, with these headers changed; a value of `-` takes one away.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        Answer::new(self.open(headers, body).await).await
    }

    pub(crate) async fn open(&self, headers: &[(&str, &str)], body: &Value) -> Response<Body> {
        self.start("POST", "/mcp", &correct(headers, body), body.to_string()).await
    }

    /// Starts a session and names it.
    pub(crate) async fn session(&self, version: &str) -> String {
        let answer = self.post(&[], &initialize(version)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json["result"]["protocolVersion"], version);
        answer.header("mcp-session-id").unwrap()
    }
}

/// The headers of a correct client for this body.
pub(crate) fn correct<'a>(changes: &[(&'a str, &'a str)], body: &'a Value) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let meta = &body["params"]["_meta"];
    if let Some(version) = meta["io.modelcontextprotocol/protocolVersion"].as_str() {
        headers.push(("mcp-protocol-version", version));
        headers.push(("mcp-method", body["method"].as_str().unwrap_or_default()));
        if let Some(name) = body["params"]["name"].as_str() {
            headers.push(("mcp-name", name));
        }
    }
    for (name, value) in changes {
        headers.retain(|(known, _)| known != name);
        if *value != "-" {
            headers.push((name, value));
        }
    }
    headers
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// The body, when it is JSON.
    pub(crate) json: Value,
    /// The body's events, when it is a stream.
    pub(crate) events: Vec<Value>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) async fn new(response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        let text = within("a whole body", body.collect()).await.unwrap().to_bytes();
        let text = String::from_utf8(text.to_vec()).unwrap();
        let events = events(&text);
        let json = serde_json::from_str(&text).unwrap_or_default();
        Self { status: head.status.as_u16(), headers: head.headers, json, events, text }
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.headers.get(name).map(|v| v.to_str().unwrap().to_owned())
    }

    /// The status and the JSON-RPC error's code.
    pub(crate) fn refused(&self) -> (u16, i64) {
        (self.status, self.json["error"]["code"].as_i64().unwrap_or_default())
    }
}

/// The messages in a stream's text.
pub(crate) fn events(text: &str) -> Vec<Value> {
    // An event without data only says where the stream can be taken up again.
    let data = |event: &str| {
        let data = event.lines().find_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
        data.map(|data| serde_json::from_str(data).unwrap())
    };
    text.split("\n\n").filter_map(data).collect()
}

/// The next message of a stream; `None` at its end.
pub(crate) async fn next(body: &mut Body) -> Option<Value> {
    loop {
        let frame = within("the next event", body.frame()).await?.unwrap();
        let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
        if let Some(message) = events(&text).pop() {
            return Some(message);
        }
    }
}

pub(crate) const MODERN: &str = "2026-07-28";

/// A request of the newest revision.
pub(crate) fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    let meta = &mut params["_meta"];
    if meta.is_null() {
        *meta = json!({});
    }
    let meta = meta.as_object_mut().unwrap();
    meta.entry("io.modelcontextprotocol/protocolVersion").or_insert(json!(MODERN));
    meta.entry("io.modelcontextprotocol/clientCapabilities").or_insert(json!({}));
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub(crate) fn legacy(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub(crate) fn tool(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

pub(crate) fn initialize(version: &str) -> Value {
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    legacy("init", "initialize", &params)
}
