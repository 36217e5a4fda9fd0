//! Processes that are one server, by a store: two servers of one name, and a real Valkey or Redis.
#![cfg(all(feature = "redis", feature = "http", unix))]
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../src/store/redis/tests/running.rs"]
mod running;

use std::collections::BTreeMap;
use std::future::Future;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tricorn::BoxFuture;
use tricorn::client::{Change, Client, ClientOptions, Listening};
use tricorn::http::{Endpoint, HttpOptions};
use tricorn::middleware::{ConcurrencyLimit, Middleware, RateLimit};
use tricorn::model::SubscriptionFilter;
use tricorn::prelude::*;
use tricorn::server::{Document, DocumentStore, DocumentWrite, Kind, StoreOptions, check_document_store};

use running::Running;

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server(store: impl Into<StoreOptions>) -> Server {
    let ask = |_: Nothing, cx: Context| async move {
        let form = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        let first = cx.elicit("first?", &form).await?;
        let second = cx.elicit("second?", &form).await?;
        Ok(format!("{} {}", first.content["a"], second.content["a"]))
    };
    Server::new("shop")
        .store(store)
        .tool("ask", "", ask)
        .tool("plain", "", |_: Nothing| async { Ok("plain") })
        .resource(Resource::new("a://one", "one"), || async { Ok("1") })
        .prompt(Prompt::new("p"), || async { Ok("p".to_owned()) })
}

fn endpoint(url: &str) -> Endpoint {
    server(url).endpoint(HttpOptions::default()).unwrap()
}

fn params(tool: &str) -> Value {
    json!({"name": tool, "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }})
}

/// The status, the seconds of `Retry-After` and the body of the answer to a call.
async fn call(endpoint: &Endpoint, params: &Value) -> (u16, Option<String>, Value) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let request = http::Request::post("/mcp")
        .header("Host", "localhost")
        .header("Content-Type", "application/json")
        .header("Accept", "application/json, text/event-stream")
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "tools/call")
        .header("Mcp-Name", params["name"].as_str().unwrap());
    let response = within("an answer", endpoint.handle(request.body(Full::new(Bytes::from(body))).unwrap())).await;
    let retry = response.headers().get("Retry-After").map(|value| value.to_str().unwrap().to_owned());
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, retry, serde_json::from_slice(&bytes).unwrap())
}

fn retry(answer: &Value, content: &str) -> Value {
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let mut params = params("ask");
    let keys = result["inputRequests"].as_object().unwrap().keys();
    let responses: serde_json::Map<String, Value> =
        keys.map(|key| (key.clone(), json!({"action": "accept", "content": {"a": content}}))).collect();
    params["inputResponses"] = responses.into();
    params["requestState"] = result["requestState"].clone();
    params
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

async fn next(listening: &mut Listening) -> Change {
    within("a change", listening.next()).await.expect("not at its end").unwrap()
}

async fn connected(server: &Server, revision: &str) -> Client {
    Client::in_memory(server, &ClientOptions::new().revision(revision)).await.unwrap()
}

fn by_hand(running: &Running, command: &[&str]) -> String {
    let path = running.url();
    let mut cli = Command::new(running.client());
    match path.strip_prefix("unix://") {
        Some(path) => cli.args(["-s", path]),
        None => cli.args(["-p", &running.port().to_string()]),
    };
    String::from_utf8(cli.args(command).output().unwrap().stdout).unwrap()
}

#[tokio::test]
async fn one_process_asks_and_another_goes_on() {
    let running = Running::on_socket();
    let (a, b, c) = (endpoint(&running.url()), endpoint(&running.url()), endpoint(&running.url()));
    let (_, _, first) = call(&a, &params("ask")).await;
    let (_, _, second) = call(&b, &retry(&first, "x")).await;
    let (status, _, done) = call(&c, &retry(&second, "y")).await;
    assert_eq!((status, &done["result"]["content"][0]["text"]), (200, &json!("\"x\" \"y\"")), "{done}");
    // A process that starts later has the same keys, and a server of another name has others.
    let (_, _, third) = call(&endpoint(&running.url()), &retry(&first, "z")).await;
    assert_eq!(third["result"]["resultType"], "input_required", "{third}");
}

#[tokio::test]
async fn without_its_store_a_server_answers_and_what_asks_is_told_to_come_again() {
    let mut running = Running::on_port(&[]);
    running.kill();
    let it = endpoint(&running.url());
    let begun = Instant::now();
    let (status, _, plain) = call(&it, &params("plain")).await;
    assert_eq!((status, &plain["result"]["content"][0]["text"]), (200, &json!("plain")), "{plain}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    let begun = Instant::now();
    let (status, after, error) = call(&it, &params("ask")).await;
    assert_eq!((status, after.as_deref(), &error["error"]["code"]), (503, Some("1"), &json!(-32010)), "{error}");
    assert_eq!(error["error"]["data"], json!({"retryAfter": 1}));
    assert!(begun.elapsed() < Duration::from_millis(250));
    // It comes back, and nothing is started anew.
    running.again();
    within("a question", async {
        while call(&it, &params("ask")).await.0 != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    // Gone again: the keys are known.
    let (_, _, first) = call(&it, &params("ask")).await;
    running.kill();
    let (status, _, second) = call(&it, &retry(&first, "x")).await;
    assert_eq!((status, &second["result"]["resultType"]), (200, &json!("input_required")), "{second}");
}

#[tokio::test]
async fn a_call_that_does_not_ask_touches_no_store() {
    let running = Running::on_socket();
    let it = endpoint(&running.url());
    call(&it, &params("ask")).await;
    let count = || {
        let stats = by_hand(&running, &["INFO", "stats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    let before = count();
    for _ in 0..200 {
        assert_eq!(call(&it, &params("plain")).await.0, 200);
        assert_eq!(call(&it, &params("ask")).await.0, 200);
    }
    let asked = count() - before;
    assert!(asked < 20, "{asked} commands: what runs in the background asks once in five seconds");
}

#[tokio::test]
async fn changes_of_one_process_reach_the_clients_of_another() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let running = Running::on_socket();
        let (a, b) = (server(running.url()), server(running.url()));
        let (listener, other) = (connected(&a, revision).await, connected(&b, revision).await);
        let filter = SubscriptionFilter::new().tools().prompts().resource("a://one");
        let mut listening = listener.listen(filter.clone()).await.unwrap();
        let mut too = other.listen(filter).await.unwrap();
        b.resource_updated("a://one");
        for listening in [&mut listening, &mut too] {
            assert_eq!(next(listening).await, Change::ResourceUpdated("a://one".into()), "{revision}");
        }
        b.add_tool(Tool::new("late", ""), std::sync::Arc::new(Answers)).unwrap();
        assert_eq!(next(&mut listening).await, Change::ToolsListChanged, "{revision}");
        b.list_changed(Kind::Prompt);
        assert_eq!(next(&mut listening).await, Change::PromptsListChanged, "{revision}");
        let log = by_hand(&running, &["XLEN", "tricorn:{shop}:changes:1"]);
        assert_eq!(log.trim(), "3", "one entry for each change: {revision}");
    }
}

struct Answers;

impl tricorn::Handler for Answers {
    fn call(&self, _: Context, _: tricorn::jsonrpc::RawJson, reply: tricorn::Reply) {
        reply.text("x");
    }
}

#[tokio::test]
async fn a_store_that_was_away_has_cost_no_change() {
    let mut running = Running::on_port(&[]);
    let (a, b) = (server(running.url()), server(running.url()));
    let (listener, _other) = (connected(&a, "2026-07-28").await, connected(&b, "2026-07-28").await);
    let mut listening = listener.listen(SubscriptionFilter::new().tools().prompts().resource("a://one")).await.unwrap();
    b.resource_updated("a://one");
    assert_eq!(next(&mut listening).await, Change::ResourceUpdated("a://one".into()));
    running.kill();
    let begun = Instant::now();
    (0..5000).for_each(|n| b.resource_updated(&format!("a://{n}")));
    b.resource_updated("a://one");
    assert!(begun.elapsed() < Duration::from_secs(1), "nobody waits for the store");
    running.again();
    within("the change", async { while next(&mut listening).await != Change::ResourceUpdated("a://one".into()) {} })
        .await;
}

#[tokio::test]
async fn the_last_change_before_the_end_is_told() {
    let running = Running::on_socket();
    let (a, b) = (server(running.url()), server(running.url()));
    let (listener, other) = (connected(&a, "2026-07-28").await, connected(&b, "2026-07-28").await);
    let mut listening = listener.listen(SubscriptionFilter::new().resource("a://one")).await.unwrap();
    b.resource_updated("a://one");
    other.close().await;
    assert_eq!(next(&mut listening).await, Change::ResourceUpdated("a://one".into()));
}

/// Sends a request of the oldest transport.
async fn send(endpoint: &Endpoint, verb: &str, uri: &str, body: &Value) -> http::Response<tricorn::http::Body> {
    let accept = if verb == "GET" { "text/event-stream" } else { "application/json" };
    let request = http::Request::builder().method(verb).uri(uri).header("Host", "localhost").header("Accept", accept);
    let request = request.header("Content-Type", "application/json");
    let body = match body {
        Value::Null => String::new(),
        // Sent as it is.
        Value::String(text) => text.clone(),
        body => body.to_string(),
    };
    within("an answer", endpoint.handle(request.body(Full::new(Bytes::from(body))).unwrap())).await
}

/// The data of the next event that has some.
async fn event(stream: &mut http::Response<tricorn::http::Body>) -> String {
    loop {
        let frame = within("an event", stream.body_mut().frame()).await.unwrap().unwrap();
        let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
        if let Some((_, data)) = text.split_once("data: ") {
            return data.trim_end().to_owned();
        }
    }
}

#[tokio::test]
async fn any_process_takes_messages_for_a_stream_of_the_oldest_transport() {
    let running = Running::on_port(&[]);
    let options = || HttpOptions::parse(r#"{"sse": true}"#).unwrap();
    let all: Vec<_> = (0..3).map(|_| server(running.url()).endpoint(options()).unwrap()).collect();
    let mut stream = send(&all[0], "GET", "/sse", &Value::Null).await;
    assert_eq!(stream.status(), 200);
    let target = format!("/sse{}", event(&mut stream).await);
    let id = target.split_once('=').unwrap().1.to_owned();
    let post = async |at: usize, body: &Value| send(&all[at], "POST", &target, body).await.status().as_u16();
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "c", "version": "1"},
    });
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    assert_eq!(post(1, &initialize).await, 202);
    let opened: Value = serde_json::from_str(&event(&mut stream).await).unwrap();
    assert_eq!((&opened["id"], &opened["result"]["protocolVersion"]), (&json!(1), &json!("2025-06-18")));
    assert_eq!(post(2, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await, 202);
    // Each next one to another process.
    for n in 2..8 {
        let call =
            json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "plain", "arguments": {}}});
        assert_eq!(post(n % 3, &call).await, 202);
        let answer: Value = serde_json::from_str(&event(&mut stream).await).unwrap();
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(n), &json!("plain")));
    }
    // A text that is no message is refused at once, and fails the question that it was to answer.
    assert_eq!((post(1, &json!("{")).await, post(0, &json!("{")).await), (400, 400));
    let asks = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "ask", "arguments": {}}});
    assert_eq!(post(2, &asks).await, 202);
    let question: Value = serde_json::from_str(&event(&mut stream).await).unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let bad = json!({"jsonrpc": "2.0", "id": question["id"], "result": 1, "error": 2});
    assert_eq!(post(1, &bad).await, 400);
    let failed: Value = serde_json::from_str(&event(&mut stream).await).unwrap();
    assert!(failed["id"] == 9 && failed["result"]["isError"] == true, "{failed}");
    // The store shows no id.
    let keys = by_hand(&running, &["KEYS", "*"]);
    assert!(!keys.contains(&id) && keys.contains(":session:"), "{keys}");
    assert_eq!(send(&all[1], "POST", &target.replace(&id, "1.unknown"), &initialize).await.status(), 404);
    assert_eq!(send(&all[1], "POST", &target.replace(&id, "unknown"), &initialize).await.status(), 404);
    drop(stream);
    within("its end", async {
        while post(1, &initialize).await != 404 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(!by_hand(&running, &["KEYS", "*"]).contains(":session:"));
}

/// Processes of one server with middleware.
fn limited(url: &str, middleware: impl Fn() -> Arc<dyn Middleware>) -> [Endpoint; 3] {
    let make = || {
        let (begun, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let waits = move |_: Nothing| {
            let (begun, go_on) = (begun.clone(), go_on.clone());
            async move {
                begun.add_permits(1);
                let _ = go_on.acquire().await;
                Ok("waited")
            }
        };
        let server = server(url).tool("waits", "", waits);
        server.add_middleware(middleware());
        server.endpoint(HttpOptions::default()).unwrap()
    };
    [make(), make(), make()]
}

/// Calls in turn. Returns the time to wait after which a refused one may come again.
async fn counted(endpoint: &Endpoint) -> Option<f64> {
    let (_, _, answer) = call(endpoint, &params("plain")).await;
    answer["error"]["data"]["retryAfter"].as_f64()
}

#[tokio::test]
async fn processes_count_a_rate_together() {
    let running = Running::on_port(&[]);
    let rate = || RateLimit::per_second(0.1).unwrap().burst(4.try_into().unwrap());
    let all = limited(&running.url(), || Arc::new(rate()));
    for n in 0..4 {
        assert_eq!(counted(&all[n % 3]).await, None, "call {n}");
    }
    for endpoint in &all {
        let wait = counted(endpoint).await.expect("one too many");
        assert!(wait > 5.0 && wait <= 10.0, "{wait}");
    }
    // A later process knows of it, and those of another limit do not.
    let [late, ..] = limited(&running.url(), || Arc::new(rate()));
    assert!(counted(&late).await.is_some());
    let [other, ..] = limited(&running.url(), || Arc::new(rate().burst(1.try_into().unwrap())));
    assert_eq!(counted(&other).await, None);
    assert!(counted(&other).await.is_some());
    let keys = by_hand(&running, &["KEYS", "*:rate:*"]);
    assert_eq!(keys.lines().count(), 2, "{keys}");
    for key in keys.lines() {
        let lives: i64 = by_hand(&running, &["PTTL", key]).trim().parse().unwrap();
        assert!(lives > 0 && lives <= 40_000, "{key}: {lives}");
    }
    // A clock that was ahead by an hour costs no more than a full limit.
    let ahead = by_hand(&running, &["TIME"]).lines().next().unwrap().parse::<u64>().unwrap() + 3600;
    let of = keys.lines().find(|key| key.contains(":4:")).unwrap();
    by_hand(&running, &["ZADD", of, &format!("{ahead}000000"), ""]);
    let [late, ..] = limited(&running.url(), || Arc::new(rate()));
    assert!(counted(&late).await.expect("full") <= 10.0);
}

#[tokio::test]
async fn a_rate_without_its_store_is_counted_by_each_process() {
    let mut running = Running::on_port(&[]);
    let all = limited(&running.url(), || Arc::new(RateLimit::per_second(0.1).unwrap().burst(2.try_into().unwrap())));
    assert_eq!((counted(&all[0]).await, counted(&all[1]).await), (None, None));
    assert!(counted(&all[2]).await.is_some());
    running.kill();
    // One that was refused keeps its time; the others count anew.
    assert!(counted(&all[2]).await.is_some());
    for _ in 0..2 {
        assert_eq!((counted(&all[0]).await, counted(&all[1]).await), (None, None));
    }
    assert!(counted(&all[0]).await.is_some() && counted(&all[1]).await.is_some());
}

#[tokio::test]
async fn processes_count_requests_at_once_together() {
    let running = Running::on_port(&[]);
    let limit = || Arc::new(ConcurrencyLimit::new(2).expect("a limit").max_waiting(1)) as Arc<dyn Middleware>;
    let all = limited(&running.url(), limit);
    let start = |endpoint: &Endpoint| {
        let endpoint = endpoint.clone();
        tokio::spawn(async move { call(&endpoint, &params("waits")).await })
    };
    let counts = || by_hand(&running, &["ZCARD", "tricorn:{shop}:running:0:1"]).trim().parse::<usize>().unwrap_or(0);
    let until = async |count: usize| {
        within("the count", async {
            while counts() != count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    };
    let (first, second) = (start(&all[0]), start(&all[1]));
    until(2).await;
    // One waits in each process, and another has no place.
    let waits = start(&all[2]);
    within("a refusal", async {
        while call(&all[2], &params("plain")).await.2["error"]["message"]
            .as_str()
            .is_none_or(|text| !text.contains("concurrency limit"))
        {}
    })
    .await;
    // Its client has gone: the one that waits runs.
    first.abort();
    let _ = first.await;
    until(2).await;
    second.abort();
    waits.abort();
    let _ = (second.await, waits.await);
    until(0).await;
    assert_eq!(call(&all[0], &params("plain")).await.2["result"]["content"][0]["text"], "plain");
    // Those of a process that is gone count for as long as their lease.
    by_hand(&running, &["ZADD", "tricorn:{shop}:running:0:1", "1", "gone:1", "1", "gone:2"]);
    assert_eq!(call(&all[0], &params("plain")).await.2["result"]["content"][0]["text"], "plain");
}

#[tokio::test]
async fn a_process_with_many_requests_lets_those_of_others_run() {
    let running = Running::on_port(&[]);
    let limit = || Arc::new(ConcurrencyLimit::new(1).expect("a limit").max_waiting(100)) as Arc<dyn Middleware>;
    let all = limited(&running.url(), limit);
    let busy: Vec<_> = (0..8)
        .map(|_| {
            let endpoint = all[0].clone();
            tokio::spawn(async move {
                loop {
                    call(&endpoint, &params("plain")).await;
                }
            })
        })
        .collect();
    for _ in 0..5 {
        let (_, _, answer) = call(&all[1], &params("plain")).await;
        assert_eq!(answer["result"]["content"][0]["text"], "plain", "{answer}");
    }
    busy.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Documents that the processes of a test share; `None` while the store is away.
#[derive(Clone)]
struct Documents(Arc<Mutex<Option<BTreeMap<String, Document>>>>);

impl Documents {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(BTreeMap::new()))))
    }

    fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut BTreeMap<String, Document>) -> T + Send + 'static,
    ) -> BoxFuture<tricorn::Result<T>> {
        let this = self.0.clone();
        Box::pin(async move {
            let mut all = this.lock().unwrap();
            all.as_mut().map(act).ok_or_else(|| Error::new(tricorn::ErrorKind::Transport, "the database is away"))
        })
    }
}

impl DocumentStore for Documents {
    fn get(&self, keys: Vec<String>) -> BoxFuture<tricorn::Result<Vec<Option<Document>>>> {
        self.with(move |all| keys.iter().map(|key| all.get(key).cloned()).collect())
    }

    fn commit(
        &self,
        expected: Vec<(String, Option<String>)>,
        writes: Vec<DocumentWrite>,
    ) -> BoxFuture<tricorn::Result<bool>> {
        self.with(move |all| {
            if expected.iter().any(|(key, version)| all.get(key).map(|it| &it.version) != version.as_ref()) {
                return false;
            }
            for write in writes {
                match write.document {
                    Some(document) => drop(all.insert(write.key, document)),
                    None => drop(all.remove(&write.key)),
                }
            }
            true
        })
    }
}

#[tokio::test]
async fn a_store_of_the_program_serves_sessions_questions_and_changes_of_all_processes() {
    let documents = Documents::new();
    check_document_store(documents.clone()).await.unwrap();
    let process = || server(StoreOptions::documents(documents.clone())).endpoint(HttpOptions::default()).unwrap();
    let (a, b, c) = (process(), process(), process());
    // A question of one process, answered at the next.
    let (_, _, first) = call(&a, &params("ask")).await;
    let (_, _, second) = call(&b, &retry(&first, "x")).await;
    let (status, _, done) = call(&c, &retry(&second, "y")).await;
    assert_eq!((status, &done["result"]["content"][0]["text"]), (200, &json!("\"x\" \"y\"")), "{done}");
    // A session of one process, at the other, until it is ended there.
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"},
    }});
    let request = |verb: &str, session: Option<&str>, body: &Value| {
        let mut request = http::Request::builder().method(verb).uri("/mcp").header("Host", "localhost");
        request = request.header("Content-Type", "application/json");
        request = request.header("Accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("Mcp-Session-Id", session).header("MCP-Protocol-Version", "2025-06-18");
        }
        request.body(Full::new(Bytes::from(body.to_string()))).unwrap()
    };
    let response = within("an answer", a.handle(request("POST", None, &initialize))).await;
    let session = response.headers()["Mcp-Session-Id"].to_str().unwrap().to_owned();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let listed = async |at: &Endpoint| {
        within("an answer", at.handle(request("POST", Some(&session), &list))).await.status().as_u16()
    };
    assert_eq!((listed(&b).await, listed(&a).await), (200, 200));
    // Without its store a process serves what needs none, and says so of the rest.
    let kept = documents.0.lock().unwrap().take();
    assert_eq!(listed(&c).await, 503);
    assert_eq!(call(&c, &params("plain")).await.0, 200);
    *documents.0.lock().unwrap() = kept;
    within("the session", async {
        while listed(&c).await != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let ended = within("an answer", b.handle(request("DELETE", Some(&session), &json!({})))).await;
    assert!(ended.status().is_success(), "{ended:?}");
    assert_eq!((listed(&a).await, listed(&c).await), (404, 404));
}

#[test]
fn a_bad_store_is_named_and_its_url_is_not() {
    for (store, why) in [
        (StoreOptions::new("postgres://ann:hush@h"), "\"url\": expected redis://"),
        (StoreOptions::new("redis://ann:hush@h").secret("hush"), "\"secret\": expected at least 32 bytes"),
    ] {
        let error = Server::new("s").store(store).endpoint(HttpOptions::default()).unwrap_err();
        assert!(error.message().contains(why) && error.message().contains("\"store\""), "{error}");
        assert!(!error.to_string().contains("hush") && !format!("{error:?}").contains("hush"), "{error}");
    }
    let shown = format!("{:?}", server("redis://ann:hush@h"));
    assert!(!shown.contains("hush"), "{shown}");
}
