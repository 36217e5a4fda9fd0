//! The HTTP endpoint, without sockets: what is refused in which order, what is answered in which form.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

mod crowd;
pub(crate) mod fixture;
mod held;
mod http2;
pub(crate) mod reader;
mod sessions;
mod socket;
mod tls;
mod unix;

use fixture::*;
use serde_json::{Value, json};

const INVALID: i64 = -32600;
const PARSE: i64 = -32700;
const UNKNOWN_METHOD: i64 = -32601;
const PARAMS: i64 = -32602;
const MISMATCH: i64 = -32020;
const CAPABILITY: i64 = -32021;
const VERSION: i64 = -32022;

// ---- before the body ----------------------------------------------------------------------------------------------

#[tokio::test]
async fn what_stands_before_the_body_is_refused_by_its_status() {
    let it = Fixture::new();
    let body = modern(1, "tools/list", json!({})).to_string();
    let json_type = ("content-type", "application/json");
    for (verb, path, headers, status, says) in [
        ("POST", "/mcp", &[("origin", "http://evil.example.com")][..], 403, "allowed_origins"),
        ("POST", "/mcp", &[("origin", "null")], 403, "allowed_origins"),
        ("POST", "/mcp", &[("host", "evil.example.com")], 403, "allowed_hosts"),
        ("PUT", "/mcp", &[("origin", "http://evil.example.com")], 403, "allowed_origins"),
        ("POST", "/elsewhere", &[("host", "evil.example.com")], 403, "allowed_hosts"),
        ("POST", "/elsewhere", &[], 415, "application/json"),
        ("PUT", "/mcp", &[], 405, "GET, POST or DELETE"),
        ("HEAD", "/mcp", &[], 405, ""),
        ("OPTIONS", "/mcp", &[], 405, ""),
        ("GET", "/mcp", &[("mcp-protocol-version", MODERN)], 405, "POST"),
        ("DELETE", "/mcp", &[("mcp-protocol-version", MODERN)], 405, "POST"),
        ("POST", "/mcp", &[], 415, "application/json"),
        ("POST", "/mcp", &[("content-type", "text/plain")], 415, "application/json"),
        ("POST", "/mcp", &[json_type, ("accept", "text/plain")], 406, "text/event-stream"),
        ("POST", "/mcp", &[json_type, ("host", "localhost:1"), ("host", "localhost:1")], 400, "Host"),
    ] {
        let answer = it.send(verb, path, headers, body.clone()).await;
        assert_eq!(answer.status, status, "{verb} {path} {headers:?}: {answer:?}");
        assert!(answer.text.contains(says), "{verb} {path} {headers:?}: {answer:?}");
        let is_modern = headers.iter().any(|(_, value)| *value == MODERN);
        let allow = if is_modern { "POST" } else { "GET, POST, DELETE" };
        assert_eq!(answer.header("allow").as_deref(), (status == 405).then_some(allow), "{verb} {path} {headers:?}");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn only_pages_that_the_options_name_may_read_the_answers() {
    let page = ("origin", "https://app.example.com");
    let asked =
        [page, ("access-control-request-method", "POST"), ("access-control-request-headers", "mcp-method, x-a")];
    let it = Fixture::with(|server| server, r#"{"allowed_origins": ["https://app.example.com"]}"#);
    let answer = it.send("OPTIONS", "/mcp", &asked, "").await;
    assert_eq!((answer.status, &*answer.text), (204, ""));
    for (name, value) in [
        ("access-control-allow-origin", page.1),
        ("access-control-allow-methods", "GET, POST, DELETE"),
        ("access-control-allow-headers", "mcp-method, x-a"),
        ("vary", "Origin"),
    ] {
        assert_eq!(answer.header(name).as_deref(), Some(value), "{answer:?}");
    }
    let answer = it.post(&[page], &initialize("2025-11-25")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin").as_deref(), Some(page.1));
    assert_eq!(answer.header("access-control-expose-headers").as_deref(), Some("Mcp-Session-Id"));
    let others = [("origin", "https://evil.example.com"), asked[1]];
    let answer = it.send("OPTIONS", "/mcp", &others, "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (403, None));
    let answer = it.post(&[], &initialize("2025-11-25")).await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
    // By default pages of this machine may ask, but none may read.
    let it = Fixture::new();
    let local = [("origin", "http://localhost:1"), asked[1]];
    let answer = it.send("OPTIONS", "/mcp", &local, "").await;
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (405, None));
}

#[tokio::test]
async fn a_body_that_is_no_message_is_a_bad_request() {
    let it = Fixture::with(|server| server.max_message_bytes(1000), "");
    let long = format!("\"{}\"", "x".repeat(1000));
    for (body, refused) in [
        ("", (400, PARSE)),
        ("hello", (400, PARSE)),
        ("{\"jsonrpc\":", (400, PARSE)),
        ("7", (400, INVALID)),
        ("{}", (400, INVALID)),
        ("[]", (400, INVALID)),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}]", (400, INVALID)),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", (400, INVALID)),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"m\"}}", (400, INVALID)),
        (&"{\"a\":".repeat(150), (400, PARSE)),
        (&long, (413, INVALID)),
    ] {
        for version in [MODERN, "2025-11-25"] {
            let headers = [("content-type", "application/json"), ("mcp-protocol-version", version)];
            let answer = it.send("POST", "/mcp", &headers, body.to_owned()).await;
            assert_eq!(answer.refused(), refused, "{body} {version}: {answer:?}");
            assert!(answer.json["id"].is_null(), "{answer:?}");
        }
    }
    let broken = [("content-type", "application/json"), ("mcp-protocol-version", MODERN)];
    let answer = it.send("POST", "/mcp", &broken, "{\"jsonrpc\":\"1.0\",\"id\":\"x\",\"method\":\"ping\"}").await;
    assert_eq!((answer.refused(), &answer.json["id"]), ((400, INVALID), &json!("x")));
}

// ---- stateless requests -------------------------------------------------------------------------------------------

#[tokio::test]
async fn stateless_requests_are_checked_in_order() {
    let it = Fixture::new();
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    let meta = |meta: Value| legacy(1, "tools/list", &json!({"_meta": meta}));
    let named = ("mcp-protocol-version", MODERN);
    let echo = modern(1, "tools/call", tool("add", json!({"a": 1, "b": 2})));
    for (headers, body, refused, says) in [
        // The envelope, when a header promises one.
        (&[named][..], legacy(1, "tools/list", &json!({})), (400, PARAMS), version),
        (&[named], meta(json!({capabilities: {}})), (400, PARAMS), version),
        (&[named], meta(json!({version: null, capabilities: {}})), (400, PARAMS), version),
        (&[named], meta(json!({version: MODERN})), (400, PARAMS), capabilities),
        (&[named], meta(json!({version: MODERN, capabilities: []})), (400, PARAMS), capabilities),
        (&[named], legacy(1, "tools/list", &json!({"_meta": 7})), (400, PARAMS), "_meta"),
        // … before the header's version.
        (&[named], meta(json!({version: "v999"})), (400, PARAMS), capabilities),
        (&[named], meta(json!({version: "v999", capabilities: {}})), (400, MISMATCH), "v999"),
        (&[("mcp-protocol-version", "-")], echo.clone(), (400, MISMATCH), "MCP-Protocol-Version"),
        (&[("mcp-protocol-version", "2025-11-25")], echo.clone(), (400, MISMATCH), "2025-11-25"),
        // … before the version itself.
        (&[("mcp-method", "-")], meta(json!({version: "v999", capabilities: {}})), (400, VERSION), "v999"),
        (&[], meta(json!({version: "2025-11-25", capabilities: {}})), (400, VERSION), "2025-11-25"),
        // … before the mirrored headers.
        (&[("mcp-method", "-")], echo.clone(), (400, MISMATCH), "Mcp-Method"),
        (&[("mcp-method", "TOOLS/CALL")], echo.clone(), (400, MISMATCH), "Mcp-Method"),
        (&[("mcp-method", "tools/list")], modern(1, "no/such", json!({})), (400, MISMATCH), "Mcp-Method"),
        (&[("mcp-name", "-")], echo.clone(), (400, MISMATCH), "Mcp-Name"),
        (&[("mcp-name", "ADD")], echo.clone(), (400, MISMATCH), "Mcp-Name"),
        (&[("mcp-name", "=?base64?YWRk==?=")], echo.clone(), (400, MISMATCH), "Mcp-Name"),
        (&[], modern(1, "tools/call", tool("region", json!({"region": "eu"}))), (400, MISMATCH), "Mcp-Param-Region"),
        (
            &[("mcp-param-region", "us")],
            modern(1, "tools/call", tool("region", json!({"region": "eu"}))),
            (400, MISMATCH),
            "Mcp-Param-Region",
        ),
        // … before the method.
        (&[], modern(1, "no/such", json!({"cursor": 7})), (404, UNKNOWN_METHOD), "no/such"),
        (&[], modern(1, "initialize", initialize("2025-11-25")["params"].clone()), (404, UNKNOWN_METHOD), "initialize"),
        (&[], modern(1, "ping", json!({})), (404, UNKNOWN_METHOD), "ping"),
        (&[], modern(1, "logging/setLevel", json!({"level": "debug"})), (404, UNKNOWN_METHOD), "logging"),
        (&[], modern(1, "subscriptions/listen", json!({})), (200, PARAMS), "notifications"),
        // … before the capability, and that before anything that a handler says.
        (&[], modern(1, "tools/call", tool("samples", json!({}))), (400, CAPABILITY), "sampling"),
        (&[], modern(1, "tools/call", tool("no such", json!({}))), (200, PARAMS), "no such"),
        (&[], modern(1, "tools/list", json!({"cursor": 7})), (200, PARAMS), "cursor"),
        (&[], modern(1, "tools/list", json!({"_meta": {"progressToken": 1.5}})), (400, PARAMS), "progressToken"),
    ] {
        let answer = it.post(headers, &body).await;
        assert_eq!(answer.refused(), refused, "{headers:?} {body}: {answer:?}");
        assert_eq!(answer.json["id"], 1, "{answer:?}");
        assert!(answer.json["error"]["message"].as_str().unwrap().contains(says), "{says}: {answer:?}");
        assert!(!answer.headers.contains_key("mcp-session-id"));
    }
    let data = it.post(&[], &modern(1, "tools/call", tool("samples", json!({})))).await.json["error"]["data"].take();
    assert_eq!(data, json!({"requiredCapabilities": {"sampling": {}}}));
    assert_eq!(it.server.usage(), tricorn::server::Usage::default());
}

#[tokio::test]
async fn correct_stateless_requests_are_answered_with_json() {
    let it = Fixture::new();
    let add = modern("a", "tools/call", tool("add", json!({"a": 1, "b": 2})));
    for headers in [
        &[][..],
        &[("accept", "*/*")],
        &[("accept", "application/json")],
        &[("accept", "-")],
        &[("content-type", "application/json; charset=utf-8")],
        &[("mcp-name", "=?base64?YWRk?=")],
        &[("mcp-session-id", "whatever"), ("last-event-id", "17")],
        &[("origin", "http://localhost:1")],
    ] {
        let answer = it.post(headers, &add).await;
        assert_eq!(answer.status, 200, "{headers:?}: {answer:?}");
        assert_eq!(answer.header("content-type").as_deref(), Some("application/json"));
        assert_eq!((&answer.json["id"], &answer.json["result"]["structuredContent"]), (&json!("a"), &json!(3)));
        assert!(!answer.headers.contains_key("mcp-session-id"));
    }
    let region = modern(1, "tools/call", tool("region", json!({"region": "Zürich"})));
    let answer = it.post(&[("mcp-param-region", "=?base64?WsO8cmljaA==?=")], &region).await;
    assert_eq!(answer.json["result"]["content"][0]["text"], "Zürich");
    let answer = it.post(&[], &modern(1, "server/discover", json!({}))).await;
    assert_eq!(answer.json["result"]["supportedVersions"], json!([MODERN]));
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/whatever"});
    let answer = it.post(&[("mcp-protocol-version", MODERN)], &notification).await;
    assert_eq!((answer.status, answer.text.as_str()), (202, ""));
}

#[tokio::test]
async fn a_handler_that_panics_has_answered() {
    let it = Fixture::new();
    let answer = it.post(&[], &modern(1, "tools/call", tool("panics", json!({})))).await;
    assert_eq!((answer.status, &answer.json["result"]["isError"]), (200, &json!(true)));
    assert!(!answer.text.contains("secret"));
}

#[tokio::test]
async fn the_handler_sees_the_request_as_it_came() {
    let it = Fixture::new();
    let body = modern(1, "tools/call", json!({"name": "context", "arguments": {}, "_meta": {"com.example/a": 1}}));
    let answer = it.post(&[("x-trace", "t-1")], &body).await;
    let seen: Value = serde_json::from_str(answer.json["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&seen["transport"], &seen["era"]), (&json!("http"), &json!("modern")));
    assert!(seen["headers"].as_array().unwrap().contains(&json!(["x-trace", "t-1"])), "{seen}");
    assert_eq!((&seen["meta"]["com.example/a"], &seen["sessionId"]), (&json!(1), &Value::Null));
}

// ---- streams ------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn what_comes_before_the_answer_makes_it_a_stream() {
    let it = Fixture::new();
    let call = json!({"name": "steps", "arguments": {}, "_meta": {"progressToken": "t"}});
    let answer = it.post(&[], &modern(1, "tools/call", call.clone())).await;
    assert_eq!(answer.header("content-type").as_deref(), Some("text/event-stream"));
    assert_eq!(answer.header("x-accel-buffering").as_deref(), Some("no"));
    let steps: Vec<_> = answer.events.iter().map(|e| e["params"]["progress"].clone()).collect();
    assert_eq!(steps, [json!(1), json!(2), Value::Null]);
    assert_eq!(answer.events[2]["result"]["content"][0]["text"], "done");
    // A client that cannot read streams gets the answer alone, one that can read nothing else a stream.
    let answer = it.post(&[("accept", "application/json")], &modern(1, "tools/call", call)).await;
    assert_eq!(answer.json["result"]["content"][0]["text"], "done");
    let add = modern(1, "tools/call", tool("add", json!({"a": 1, "b": 2})));
    let answer = it.post(&[("accept", "text/event-stream")], &add).await;
    assert_eq!(answer.events[0]["result"]["structuredContent"], 3);
}

#[tokio::test]
async fn a_large_answer_is_one_event() {
    let it = Fixture::new();
    let text = "x".repeat(1 << 20);
    let call = json!({"name": "region", "arguments": {"region": text}});
    let headers = [("accept", "text/event-stream"), ("mcp-param-region", text.as_str())];
    let answer = it.post(&headers, &modern(1, "tools/call", call)).await;
    assert_eq!(answer.events[0]["result"]["content"][0]["text"], text);
}

#[tokio::test]
async fn a_silent_call_becomes_a_stream_with_comments() {
    let it = Fixture::with(|server| server, r#"{"keep_alive_interval": 0.01}"#);
    let mut response = it.open(&[], &modern(1, "tools/call", tool("waits", json!({})))).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    for _ in 0..3 {
        let comment = within("a comment", http_body_util::BodyExt::frame(response.body_mut())).await.unwrap().unwrap();
        assert_eq!(comment.into_data().unwrap(), ":\n\n");
    }
    it.gate.open();
    assert_eq!(next(response.body_mut()).await.unwrap()["result"]["content"][0]["text"], "open");
    assert_eq!(next(response.body_mut()).await, None);
}

#[tokio::test]
async fn going_away_cancels_a_stateless_call() {
    let it = Fixture::new();
    let silent = modern(1, "tools/call", tool("waits", json!({})));
    let mut loud = silent.clone();
    loud["params"]["_meta"]["progressToken"] = json!(1);
    // While the head is awaited.
    let ended = tokio::time::timeout(std::time::Duration::from_millis(20), it.open(&[], &silent)).await;
    assert!(ended.is_err());
    assert_eq!((it.gate.started(), it.gate.cancelled()), (1, 1));
    // While the stream is read.
    let mut response = it.open(&[], &loud).await;
    assert_eq!(next(response.body_mut()).await.unwrap()["params"]["progress"], 0);
    drop(response);
    assert_eq!((it.gate.started(), it.gate.cancelled()), (2, 2));
    // After the answer there is nothing to cancel.
    let mut response = it.open(&[], &loud).await;
    it.gate.open();
    while next(response.body_mut()).await.is_some() {}
    drop(response);
    assert_eq!((it.gate.started(), it.gate.cancelled()), (3, 2));
    assert_eq!(it.server.usage(), tricorn::server::Usage::default());
}

#[tokio::test]
async fn a_slow_reader_loses_progress_and_never_the_answer() {
    let it = Fixture::with(|server| server.max_queued_notifications(3), "");
    let mut call = modern(1, "tools/call", tool("waits", json!({})));
    call["params"]["_meta"]["progressToken"] = json!(1);
    let mut response = it.open(&[], &call).await;
    for step in 1..100 {
        it.gate.progress(f64::from(step));
    }
    it.gate.open();
    let mut messages = Vec::new();
    while let Some(message) = next(response.body_mut()).await {
        messages.push(message);
    }
    assert_eq!(messages.len(), 5, "{messages:?}");
    assert_eq!(messages[4]["result"]["content"][0]["text"], "open");
}

// ---- bounds and ends ----------------------------------------------------------------------------------------------

#[tokio::test]
async fn too_many_calls_are_asked_to_come_back() {
    let it = Fixture::with(|server| server.max_in_flight(1), r#"{"max_connections": 1}"#);
    let mut call = modern(1, "tools/call", tool("waits", json!({})));
    call["params"]["_meta"]["progressToken"] = json!(1);
    let running = it.open(&[], &call).await;
    let answer = it.post(&[], &call).await;
    assert_eq!((answer.status, answer.header("retry-after").as_deref()), (503, Some("1")), "{answer:?}");
    assert_eq!(answer.json["error"]["code"], -32603, "the server's fault, and temporary: {answer:?}");
    drop(running);
    assert_eq!(it.post(&[], &modern(1, "tools/list", json!({}))).await.status, 200);
    let session = it.session("2025-11-25").await;
    let named = [("mcp-session-id", session.as_str())];
    let call = legacy(1, "tools/call", &json!({"name": "waits", "arguments": {}, "_meta": {"progressToken": 1}}));
    let running = it.open(&named, &call).await;
    let answer = it.post(&named, &legacy(2, "ping", &json!({}))).await;
    assert_eq!((answer.status, answer.header("retry-after").as_deref()), (503, Some("1")), "{answer:?}");
    it.gate.open();
    drop(running);
    assert_eq!(it.post(&named, &legacy(2, "ping", &json!({}))).await.status, 200);
}

#[tokio::test]
async fn calls_of_sessions_count_together_until_their_handlers_end() {
    let it = Fixture::with(|server| server, r#"{"max_connections": 3}"#);
    for running in 1..=3 {
        // Each in a session of its own, and nobody waits for the answer.
        let session = it.session("2025-11-25").await;
        let named = [("mcp-session-id", session.as_str())];
        let call = legacy(1, "tools/call", &json!({"name": "waits", "arguments": {}, "_meta": {"progressToken": 1}}));
        drop(it.open(&named, &call).await);
        until("the call runs", || it.gate.started() == running).await;
    }
    let session = it.session("2025-11-25").await;
    let named = [("mcp-session-id", session.as_str())];
    let answer = it.post(&named, &legacy(2, "ping", &json!({}))).await;
    assert_eq!((answer.status, answer.header("retry-after").as_deref()), (503, Some("1")), "{answer:?}");
    let told = answer.json["error"]["message"].as_str().unwrap_or_default();
    assert!(told.contains("max_connections"), "{answer:?}");
    it.gate.open();
    assert_eq!(it.post(&named, &legacy(3, "ping", &json!({}))).await.status, 200);
    // The engine answers these by itself, and nothing is left of them.
    for n in 0..20 {
        let method = ["ping", "tools/list", "resources/list"][n % 3];
        assert_eq!(it.post(&named, &legacy(n + 4, method, &json!({}))).await.status, 200, "{method}");
    }
}

#[tokio::test]
async fn closing_the_server_ends_everything_that_runs() {
    let it = Fixture::new();
    let session = it.session("2025-11-25").await;
    let named = [("mcp-session-id", session.as_str())];
    let mut stream = it.start("GET", "/mcp", &[named[0], ("accept", "text/event-stream")], "").await;
    let waits = modern(1, "tools/call", tool("waits", json!({})));
    let in_session = legacy(1, "tools/call", &tool("waits", json!({})));
    let closing = async {
        until("both calls run", || it.gate.started() == 2).await;
        assert_eq!((it.server.usage().in_flight, it.server.usage().streams), (2, 1));
        it.server.close();
    };
    let (stateless, legacy, ()) = tokio::join!(it.post(&[], &waits), it.post(&named, &in_session), closing);
    assert_eq!((stateless.status, legacy.status), (503, 200), "{stateless:?} {legacy:?}");
    assert_eq!(next(stream.body_mut()).await, None);
    assert_eq!(it.gate.cancelled(), 2);
    assert_eq!(it.post(&[], &modern(1, "tools/list", json!({}))).await.status, 503);
    drop(stream);
    assert_eq!(it.server.usage(), tricorn::server::Usage::default());
}

#[tokio::test]
async fn a_mounted_endpoint_of_a_closed_server_answers_nothing() {
    let it = Fixture::new();
    it.server.close();
    assert_eq!(it.post(&[], &modern(1, "tools/list", json!({}))).await.status, 503);
    assert_eq!(it.post(&[], &modern(2, "tools/call", tool("waits", json!({})))).await.status, 503);
    assert_eq!(it.gate.started(), 0);
}

#[tokio::test]
async fn a_refusal_says_back_only_so_much() {
    let it = Fixture::new();
    let long = "x".repeat(100_000);
    let mut call = modern(1, "tools/call", tool(&long, json!({})));
    let head = [("mcp-name", "-")];
    let answer = it.post(&head, &call).await;
    assert!(answer.status == 400 && answer.text.len() < 1000, "{} bytes", answer.text.len());
    call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(long);
    let answer = it.post(&[], &call).await;
    assert!(answer.status == 400 && answer.text.len() < 1000, "{} bytes", answer.text.len());
    let answer = it.post(&[("origin", &long)], &call).await;
    assert!(answer.status == 403 && answer.text.len() < 1000, "{} bytes", answer.text.len());
}

#[tokio::test]
async fn a_server_without_sessions_says_nothing_of_them() {
    let it = Fixture::with(|server| server.revision("modern"), "{}");
    let json = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    let with = |name, value| [&json[..], &[(name, value)]].concat();
    let refused = |answer: &Answer| (answer.status, answer.json["error"]["code"].clone());
    for headers in [json.to_vec(), with("mcp-session-id", "s"), with("mcp-protocol-version", "2025-11-25")] {
        let answer = it.post(&headers, &initialize("2025-11-25")).await;
        assert_eq!(refused(&answer), (400, json!(-32022)), "{headers:?}: {}", answer.text);
        assert_eq!(answer.json["error"]["data"]["supported"], json!(["2026-07-28"]));
        for method in ["tools/list", "ping"] {
            let answer = it.post(&headers, &legacy(1, method, &json!({}))).await;
            assert_eq!(refused(&answer), (400, json!(-32602)), "{method} {headers:?}: {}", answer.text);
        }
    }
    let array = it.post(&json, &json!([legacy(1, "ping", &json!({}))])).await;
    assert_eq!(refused(&array), (400, json!(-32600)), "{}", array.text);
    assert!(array.json.as_object().is_some_and(|error| !error.contains_key("id")), "{}", array.text);
}

#[tokio::test]
async fn the_method_is_named_as_it_is() {
    let it = Fixture::new();
    let body = modern(1, "tools/list", json!({}));
    for (said, status) in [("tools/list", 200), ("=?base64?dG9vbHMvbGlzdA==?=", 400), ("Tools/list", 400)] {
        let answer = it.post(&correct(&[("mcp-method", said)], &body), &body).await;
        assert_eq!(answer.status, status, "{said}: {}", answer.text);
        assert!(status == 200 || answer.json["error"]["code"] == -32020, "{said}");
    }
}

#[tokio::test]
async fn headers_of_a_sources_tool_are_compared_with_what_it_listed_last() {
    use std::sync::{Arc, Mutex};
    use tricorn::server::{IntoHandler, Kind};

    let it = Fixture::new();
    let mark = Arc::new(Mutex::new(json!({"type": "string", "x-mcp-header": "Zone"})));
    let marked = mark.clone();
    let list = (move |_: Value| {
        let zone = marked.lock().unwrap().clone();
        async move {
            let schema = json!({"type": "object", "properties": {"zone": zone}});
            // The server's own tool of this name comes first.
            let other = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "No"}}});
            Ok(json!([{"name": "far", "inputSchema": schema}, {"name": "region", "inputSchema": other}]))
        }
    })
    .into_handler();
    let set = || {
        let get = (|params: Value| async move { Ok(format!("ran in {}", params["arguments"]["zone"])) }).into_handler();
        it.server.set_source(Kind::Tool, Some(list.clone()), Some(get));
    };
    let call = modern(1, "tools/call", tool("far", json!({"zone": "eu"})));
    let listed = async || {
        let first = it.post(&[], &modern(1, "tools/list", json!({}))).await;
        let cursor = first.json["result"]["nextCursor"].clone();
        let last = it.post(&[], &modern(1, "tools/list", json!({"cursor": cursor}))).await;
        assert!(last.text.contains("\"far\""), "{last:?}");
    };
    let refused = async |headers: &[(&str, &str)]| {
        let answer = it.post(headers, &call).await;
        assert_eq!(answer.refused(), (400, MISMATCH), "{headers:?}: {answer:?}");
        assert!(answer.json["error"]["message"].as_str().unwrap().contains("Mcp-Param-Zone"), "{answer:?}");
    };
    let ran = async |headers: &[(&str, &str)]| {
        let answer = it.post(headers, &call).await;
        assert_eq!(answer.json["result"]["content"][0]["text"], "ran in \"eu\"", "{headers:?}: {answer:?}");
    };
    set();
    // It has listed nothing yet.
    ran(&[]).await;
    listed().await;
    refused(&[]).await;
    refused(&[("mcp-param-zone", "us")]).await;
    ran(&[("mcp-param-zone", "eu")]).await;
    let region = modern(1, "tools/call", tool("region", json!({"region": "eu"})));
    let answer = it.post(&[("mcp-param-region", "eu")], &region).await;
    assert_eq!(answer.json["result"]["content"][0]["text"], "eu", "{answer:?}");

    *mark.lock().unwrap() = json!({"type": "string"});
    refused(&[]).await;
    listed().await;
    ran(&[]).await;
    *mark.lock().unwrap() = json!({"type": "string", "x-mcp-header": "Zone"});
    listed().await;
    refused(&[]).await;
    // Another source has said nothing of its tools.
    set();
    ran(&[]).await;
}
