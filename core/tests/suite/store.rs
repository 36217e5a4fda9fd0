//! Processes that are one server, by a store: two servers of one name, and a real Valkey or Redis.
#![cfg(all(feature = "redis", feature = "http", unix))]
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../src/store/redis/tests/running.rs"]
mod running;

use std::future::Future;
use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tricorn::client::{Change, Client, ClientOptions, Listening};
use tricorn::http::{Endpoint, HttpOptions};
use tricorn::model::SubscriptionFilter;
use tricorn::prelude::*;
use tricorn::server::{Kind, StoreOptions};

use running::Running;

const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server(url: &str) -> Server {
    let ask = |_: Nothing, cx: Context| async move {
        let form = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        let first = cx.elicit("first?", &form).await?;
        let second = cx.elicit("second?", &form).await?;
        Ok(format!("{} {}", first.content["a"], second.content["a"]))
    };
    Server::new("shop")
        .store(url)
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
        let (a, b) = (server(&running.url()), server(&running.url()));
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
    let (a, b) = (server(&running.url()), server(&running.url()));
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
    let (a, b) = (server(&running.url()), server(&running.url()));
    let (listener, other) = (connected(&a, "2026-07-28").await, connected(&b, "2026-07-28").await);
    let mut listening = listener.listen(SubscriptionFilter::new().resource("a://one")).await.unwrap();
    b.resource_updated("a://one");
    other.close().await;
    assert_eq!(next(&mut listening).await, Change::ResourceUpdated("a://one".into()));
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
