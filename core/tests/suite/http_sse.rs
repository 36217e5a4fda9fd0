//! HTTP+SSE, the oldest transport: a stream to read from and a path to post to.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use tricorn::http::HttpOptions;
use tricorn::server::Usage;

use crate::http_server::fixture::*;
use crate::http_server::reader::Reader;

const GET: (&str, &str) = ("accept", "text/event-stream");
const JSON: (&str, &str) = ("content-type", "application/json");
const OLDEST: &str = "2024-11-05";

/// One client.
struct Pair<'a> {
    it: &'a Fixture,
    stream: Reader,
    /// Address to post to.
    target: String,
}

impl<'a> Pair<'a> {
    async fn open(it: &'a Fixture, path: &str) -> Self {
        let response = it.start("GET", path, &[GET], "").await;
        assert_eq!(response.status(), 200);
        let mut stream = Reader::new(response);
        let first = stream.next().await.unwrap();
        assert_eq!((first.kind.as_str(), first.id.as_str()), ("endpoint", ""));
        // As a URL's reference is resolved.
        let target = if first.data.starts_with('?') { format!("{path}{}", first.data) } else { first.data };
        Self { it, stream, target }
    }

    async fn post(&self, body: &Value) -> Answer {
        self.it.send("POST", &self.target, &[JSON], body.to_string()).await
    }

    async fn next(&mut self) -> Value {
        let event = self.stream.next().await.unwrap();
        assert_eq!((event.kind.as_str(), event.id.as_str()), ("message", ""));
        event.json()
    }

    async fn ask(&mut self, body: &Value) -> Value {
        let answer = self.post(body).await;
        assert_eq!((answer.status, answer.text.as_str()), (202, ""), "{answer:?}");
        self.next().await
    }
}

fn served(options: &str) -> Fixture {
    Fixture::with(|server| server, options)
}

#[tokio::test]
async fn a_session_lives_on_its_stream() {
    let it = served(r#"{"sse": true}"#);
    let mut pair = Pair::open(&it, "/any/where").await;
    assert!(pair.target.starts_with("/any/where?session_id="), "{}", pair.target);
    let opened = pair.ask(&initialize(OLDEST)).await;
    assert_eq!(opened["result"]["protocolVersion"], OLDEST);
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(pair.post(&initialized).await.status, 202);
    let added = pair.ask(&legacy(1, "tools/call", &tool("add", json!({"a": 1, "b": 2})))).await;
    assert_eq!((&added["id"], &added["result"]["content"][0]["text"]), (&json!(1), &json!("3")));
    let steps = json!({"name": "steps", "arguments": {}, "_meta": {"progressToken": "t"}});
    let steps = legacy(2, "tools/call", &steps);
    assert_eq!(pair.ask(&steps).await["params"]["progress"], 1);
    assert_eq!(pair.next().await["params"]["progress"], 2);
    assert_eq!(pair.next().await["id"], 2);
    // What a call is told of its request.
    let context = pair.ask(&legacy(3, "tools/call", &tool("context", json!({})))).await;
    let context = context["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(pair.target.ends_with(serde_json::from_str::<Value>(&context).unwrap()["sessionId"].as_str().unwrap()));
    assert_eq!(pair.ask(&json!([legacy(4, "ping", &json!({}))])).await["error"]["code"], -32600);
    assert_eq!((it.server.usage().sessions, it.server.usage().streams), (1, 1));
    // The main endpoint knows nothing of it.
    let id = pair.target.split_once('=').unwrap().1.to_owned();
    assert_eq!(it.post(&[("mcp-session-id", &id)], &legacy(1, "ping", &json!({}))).await.status, 404);
    let target = pair.target.clone();
    assert_eq!(pair.post(&legacy(5, "tools/call", &tool("waits", json!({})))).await.status, 202);
    until("the call runs", || it.gate.started() == 1).await;
    drop(pair);
    assert_eq!((it.gate.cancelled(), it.server.usage()), (1, Usage::default()));
    let late = it.send("POST", &target, &[JSON], legacy(1, "ping", &json!({})).to_string()).await;
    assert!(late.status == 404 && late.json["id"] == 1, "{late:?}");
    for garbled in ["{", r#"{"jsonrpc": "2.0", "id": 1, "result": 7}"#] {
        let late = it.send("POST", &target, &[JSON], garbled.to_owned()).await;
        assert_eq!(late.status, 404, "{garbled}: {late:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_message_ends_its_question() {
    let it = served(r#"{"sse": true}"#);
    let mut pair = Pair::open(&it, "/").await;
    let mut opening = initialize(OLDEST);
    opening["params"]["capabilities"] = json!({"roots": {}});
    pair.ask(&opening).await;
    pair.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    for (n, bad) in [("result", json!(7)), ("error", json!("no")), ("result", json!(null))].into_iter().enumerate() {
        let question = pair.ask(&legacy(n + 1, "tools/call", &tool("roots", json!({})))).await;
        assert_eq!(question["method"], "roots/list");
        let (member, value) = bad;
        let answer = pair.post(&json!({"jsonrpc": "2.0", "id": question["id"], member: value})).await;
        assert_eq!((answer.status, &answer.json["error"]["code"]), (400, &json!(-32600)), "{answer:?}");
        let called = pair.next().await;
        assert_eq!((&called["id"], &called["result"]["isError"]), (&json!(n + 1), &json!(true)), "{called}");
        assert!(called["result"]["content"][0]["text"].as_str().unwrap().contains("no message"), "{called}");
    }
}

#[tokio::test]
async fn a_session_hears_what_has_changed() {
    let it = served(r#"{"sse": true}"#);
    let mut pair = Pair::open(&it, "/").await;
    pair.ask(&initialize(OLDEST)).await;
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(pair.post(&initialized).await.status, 202);
    pair.ask(&legacy(1, "ping", &json!({}))).await;
    assert!(it.server.remove_tool("add"));
    assert_eq!(pair.next().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn the_negotiated_revision_says_what_else_there_is() {
    let it = served(r#"{"sse": true}"#);
    let mut pair = Pair::open(&it, "/").await;
    assert_eq!(pair.ask(&initialize("2025-03-26")).await["result"]["protocolVersion"], "2025-03-26");
    let batch = pair.ask(&json!([legacy(1, "ping", &json!({})), legacy(2, "ping", &json!({}))])).await;
    assert_eq!(batch.as_array().unwrap().len(), 2);
    // Both transports at one place.
    let session = it.session("2025-11-25").await;
    let ping = legacy(1, "ping", &json!({}));
    assert_eq!(it.post(&[("mcp-session-id", &session)], &ping).await.json["result"], json!({}));
    assert_eq!(it.post(&[], &modern(1, "tools/list", json!({}))).await.status, 200);
    let standalone = it.start("GET", "/mcp", &[("mcp-session-id", session.as_str()), GET], "").await;
    assert!(Reader::new(standalone).next().await.unwrap().id.starts_with('s'));
}

#[tokio::test]
async fn it_is_guarded_like_the_main_endpoint() {
    let it = Fixture::with(
        |server| server.max_message_bytes(1000).max_in_flight(1),
        r#"{"sse": true, "max_sessions": 1, "sse_message_path": "/prefix/messages"}"#,
    );
    for (headers, status) in [
        (&[GET, ("origin", "http://evil.example.com")][..], 403),
        (&[GET, ("host", "evil.example.com")], 403),
        (&[("accept", "application/json")], 406),
    ] {
        assert_eq!(it.send("GET", "/sse", headers, "").await.status, status, "{headers:?}");
    }
    let pair = Pair::open(&it, "/sse").await;
    assert!(pair.target.starts_with("/prefix/messages?session_id="), "{}", pair.target);
    assert_eq!(it.send("GET", "/sse", &[GET], "").await.status, 503, "max_sessions");
    let post = async |headers: &[(&str, &str)], body: &str| {
        let answer = it.send("POST", &pair.target, headers, body.to_owned()).await;
        (answer.status, answer.json["error"]["code"].as_i64().unwrap_or_default())
    };
    let ping = legacy(1, "ping", &json!({})).to_string();
    assert_eq!(post(&[JSON, ("origin", "http://evil.example.com")], &ping).await.0, 403);
    assert_eq!(post(&[("content-type", "text/plain")], &ping).await.0, 415);
    assert_eq!(post(&[JSON], "{").await, (400, -32700));
    assert_eq!(post(&[JSON], &"x".repeat(3000)).await.0, 413);
    assert_eq!(post(&[JSON], &ping).await.0, 202);
    // Its answer is not read: no further one is worked on.
    assert_eq!(post(&[JSON], &ping).await.0, 503);
    it.server.close();
    assert_eq!(post(&[JSON], &ping).await.0, 503);
}

#[tokio::test]
async fn unless_asked_for_it_is_not_there() {
    let it = Fixture::new();
    assert_eq!(it.send("GET", "/sse", &[GET], "").await.status, 400, "a session is missing");
    let ping = legacy(1, "ping", &json!({})).to_string();
    assert_eq!(it.send("POST", "/messages?session_id=1", &[JSON], ping).await.status, 400);
}

#[tokio::test]
async fn a_port_has_paths_for_it() {
    let it = served("");
    let options = HttpOptions::parse(r#"{"port": 0, "sse": true}"#).unwrap();
    let serving = within("listening", it.server.serve_http(options)).await.unwrap();
    let exchange = async |verb: &str, path: &str| {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut socket = tokio::net::TcpStream::connect(serving.local_addr().unwrap()).await.unwrap();
        let host = serving.local_addr().unwrap();
        let head = format!("{verb} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n");
        let body = if verb == "POST" { "{}" } else { "" };
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        let mut chunk = [0u8; 4096];
        while !(text.contains("session_id=") || text.contains('}')) {
            let read = within("reading", socket.read(&mut chunk)).await.unwrap();
            assert_ne!(read, 0, "{text}");
            text += std::str::from_utf8(&chunk[..read]).unwrap();
        }
        text
    };
    let stream = exchange("GET", "/sse").await;
    assert!(stream.contains("text/event-stream"), "{stream}");
    assert!(stream.contains("event: endpoint\ndata: /messages?session_id="), "{stream}");
    for (verb, path, status, says) in [
        ("POST", "/sse", "405", "allow: GET"),
        ("DELETE", "/sse", "405", "allow: GET"),
        ("GET", "/messages", "405", "allow: POST"),
        ("POST", "/messages", "400", "session_id"),
        ("POST", "/messages?session_id=nobody", "404", "session not found"),
        ("GET", "/elsewhere", "404", "/mcp"),
        ("GET", "/mcp", "400", "Mcp-Session-Id"),
    ] {
        let answer = exchange(verb, path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{verb} {path}: {answer}");
        assert!(answer.contains(says), "{verb} {path}: {answer}");
    }
    until("the session is over", || it.server.usage().sessions == 0).await;
}

/// Sessions of both transports count together, and the idle ones of the newer make room for either.
#[tokio::test]
async fn sessions_of_both_transports_make_room() {
    let it = served(r#"{"sse": true, "max_sessions": 2}"#);
    for _ in 0..2 {
        assert_eq!(it.post(&[], &initialize(OLDEST)).await.status, 200);
    }
    let mut pair = Pair::open(&it, "/sse").await;
    assert_eq!(pair.ask(&initialize(OLDEST)).await["result"]["protocolVersion"], OLDEST);
    assert_eq!(it.server.usage().sessions, 2);
    assert_eq!(it.post(&[], &initialize(OLDEST)).await.status, 200);
    assert_eq!(it.server.usage().sessions, 2, "the sum is no more than may be");
    // Streams that are read make room where whoever has them has more than the newcomer.
    let _second = Pair::open(&it, "/sse").await;
    assert_eq!(it.server.usage().sessions, 2);
    assert_eq!(it.post(&[], &initialize(OLDEST)).await.status, 200);
    assert_eq!(it.server.usage().sessions, 2);
}
