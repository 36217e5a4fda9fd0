//! Tests of the HTTP client that loses a stream or a session.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tricorn::CallOptions;
use tricorn::Context;
use tricorn::client::{Client, ClientOptions, Handlers, Target};
use tricorn::http::HttpOptions;
use tricorn::jsonrpc::RawJson;
use tricorn::server::HandlerError;
use tricorn::{Error, ErrorKind, Events};

use crate::http_client::cut;
use crate::http_client::server::*;

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

#[derive(Default)]
struct Heard {
    notifications: Mutex<Vec<String>>,
    warnings: Mutex<Vec<String>>,
}

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let text = params.map_or("", RawJson::get);
        self.notifications.lock().unwrap().push(format!("{method} {text}").trim().to_owned());
    }

    fn warning(&self, message: &str) {
        self.warnings.lock().unwrap().push(message.to_owned());
    }
}

async fn connect(url: &str) -> (Client, Arc<Heard>) {
    let heard = Arc::new(Heard::default());
    let target = Target::from_text(url).unwrap();
    let options = ClientOptions::new().revision("2025-11-25");
    let client = within("connecting", Client::connect_with(&target, &options, &Handlers::new().events(heard.clone())))
        .await
        .unwrap();
    (client, heard)
}

async fn call(client: &Client, name: &str) -> Result<String, Error> {
    let result = within("calling", client.call_tool(name, json!({}))).await?;
    Ok(result.content[0].as_text().unwrap_or_default().to_owned())
}

fn answered(id: &Value, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})
}

fn note(text: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": text}})
}

fn named(id: &str, message: &Value) -> String {
    chunk(&format!("id: {id}\ndata: {message}\n\n"))
}

// ---- the two sides of this crate, and a network that breaks ---------------------------------------------------------

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_survives_a_network_that_breaks_again_and_again() {
    const STEPS: u32 = 40;
    let server = tricorn::Server::new("counts").tool("count", "", |_: Nothing, cx: Context| async move {
        for step in 1..=STEPS {
            cx.progress(f64::from(step), None, Some(&"x".repeat(100)));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok::<_, HandlerError>("counted".to_owned())
    });
    let options = HttpOptions::parse(r#"{"port": 0, "sse_retry": 0.1, "allowed_hosts": ["*"]}"#).unwrap();
    let serving = within("listening", server.serve_http(options)).await.unwrap();
    // Each stream is cut after so many bytes, in the middle of whatever is there.
    let proxy = cut::Proxy::new(serving.local_addr().unwrap(), &[300, 777, 1500]).await;
    let (client, heard) = connect(&proxy.url()).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let options = CallOptions::new().on_progress(move |params| {
        let progress = params.to::<Value>().unwrap()["progress"].as_u64().unwrap();
        told.lock().unwrap().push(progress);
    });
    let result = within("the call", client.call_tool_with("count", json!({}), &options)).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("counted"));
    assert_eq!(*seen.lock().unwrap(), (1..=u64::from(STEPS)).collect::<Vec<_>>(), "each once, in order");
    assert_eq!(proxy.cuts(), 3, "it was really cut");
    assert_eq!(*heard.warnings.lock().unwrap(), [""; 0]);
    within("closing", client.close()).await;
}

// ---- streams --------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn what_a_server_repeats_is_not_heard_twice() {
    let asked = Arc::new(Mutex::new(Value::Null));
    let server = Server::new(move |seen| match (seen.verb.as_str(), seen.method(), seen.header("last-event-id")) {
        (_, "tools/call", _) => {
            *asked.lock().unwrap() = seen.body["id"].clone();
            let events = [chunk("id: 1\nretry: 1\ndata: \n\n"), named("2", &note("a")), named("3", &note("b"))];
            Reply::WriteAndClose([vec![SSE_HEAD.to_owned()], events.to_vec()].concat())
        }
        // The whole stream, as if nothing of it had been seen.
        ("GET", _, Some("3")) => {
            let id = asked.lock().unwrap().clone();
            let events = [named("2", &note("a")), named("3", &note("b")), named("4", &note("c"))];
            let end = [named("5", &answered(&id, "done")), SSE_END.to_owned()];
            Reply::Write([vec![SSE_HEAD.to_owned()], events.to_vec(), end.to_vec()].concat())
        }
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let (client, heard) = connect(&server.url()).await;
    assert_eq!(call(&client, "t").await.unwrap(), "done");
    let data: Vec<_> =
        heard.notifications.lock().unwrap().iter().map(|n| n[n.len() - 3..n.len() - 2].to_owned()).collect();
    assert_eq!(data, ["a", "b", "c"]);
}

#[tokio::test]
async fn an_answer_that_cannot_be_had_any_more_is_said_to_be_lost() {
    let server = Server::new(|seen| match (seen.verb.as_str(), seen.body["params"]["name"].as_str()) {
        ("POST", Some("nameless")) => Reply::WriteAndClose(vec![SSE_HEAD.into(), event(&note("a"))]),
        ("POST", Some("refused")) => Reply::WriteAndClose(vec![SSE_HEAD.into(), chunk("id: 1\nretry: 1\ndata:\n\n")]),
        ("GET", _) if seen.header("last-event-id").is_some() => raw("400 Bad Request", &[], "unknown event"),
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let (client, _) = connect(&server.url()).await;
    for (name, part) in [("nameless", "the answer is lost"), ("refused", "HTTP 400")] {
        let failed = call(&client, name).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Transport, "{failed}");
        assert!(failed.message().contains(part) && failed.message().contains("lost"), "{failed}");
    }
    let asked = server.seen().iter().filter(|seen| seen.header("last-event-id").is_some()).count();
    assert_eq!(asked, 1);
}

#[tokio::test]
async fn waiting_for_the_rest_ends_with_the_calls_own_time() {
    let server = Server::new(|seen| match (seen.verb.as_str(), seen.method()) {
        ("POST", "tools/call") => Reply::WriteAndClose(vec![SSE_HEAD.into(), chunk("id: 1\nretry: 1\ndata:\n\n")]),
        ("GET", _) if seen.header("last-event-id").is_some() => raw("503 Service Unavailable", &[], ""),
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let (client, _) = connect(&server.url()).await;
    let options = CallOptions::new().timeout(Duration::from_millis(300));
    let failed = within("failing", client.call_tool_with("t", json!({}), &options)).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Timeout, "{failed}");
    server.wait_for("cancelled", |seen| seen.method() == "notifications/cancelled").await;
    assert_eq!(client.awaited(), 0);
}

#[tokio::test]
async fn a_standalone_stream_begins_anew_where_its_end_is_forgotten() {
    let rounds = AtomicUsize::new(0);
    let server = Server::new(move |seen| match (seen.verb.as_str(), seen.header("last-event-id")) {
        ("GET", None) if rounds.fetch_add(1, Ordering::SeqCst) == 0 => {
            Reply::WriteAndClose(vec![SSE_HEAD.into(), chunk("retry: 1\nid: 1\ndata:\n\n"), named("2", &note("a"))])
        }
        ("GET", None) => Reply::Hold(vec![SSE_HEAD.into(), named("7", &note("b"))]),
        ("GET", Some("2")) => raw("400 Bad Request", &[], "unknown event"),
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let (client, heard) = connect(&server.url()).await;
    within("both notes", async {
        while heard.notifications.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert!(heard.notifications.lock().unwrap()[1].contains("\"b\""));
    assert_eq!(*heard.warnings.lock().unwrap(), [""; 0]);
    drop(client);
}

// ---- sessions -------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_call_that_a_lost_session_refuses_is_sent_again_in_a_new_one() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let count = sessions.clone();
    let server = Server::new(move |seen| match seen.method() {
        "initialize" => {
            let session = count.fetch_add(1, Ordering::SeqCst) + 1;
            let capabilities = json!({"tools": {}, "logging": {}, "resources": {"subscribe": true}});
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
                                "serverInfo": {"name": "scripted", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
            answer("200 OK", &[&format!("Mcp-Session-Id: s-{session}")], &body)
        }
        "tools/call" | "ping" if seen.header("mcp-session-id") == Some("s-1") => raw("404 Not Found", &[], ""),
        "tools/call" => result(seen, &json!({"content": [{"type": "text", "text": "done"}]})),
        "ping" | "resources/subscribe" | "logging/setLevel" => result(seen, &json!({})),
        _ => legacy(seen, "").unwrap(),
    })
    .await;
    let (client, _) = connect(&server.url()).await;
    let ask = async |method: &str, params: Value| {
        let params = RawJson::from_value(&params);
        within(method, client.request(method, Some(params), &CallOptions::default())).await.unwrap();
    };
    ask("resources/subscribe", json!({"uri": "a:"})).await;
    ask("logging/setLevel", json!({"level": "error"})).await;
    // It was refused before anything ran.
    assert_eq!(call(&client, "t").await.unwrap(), "done");
    within("ping", client.ping()).await.unwrap();
    assert_eq!((sessions.load(Ordering::SeqCst), client.session_id().as_deref()), (2, Some("s-2")));
    let told: Vec<_> = server.seen().into_iter().filter(|s| s.header("mcp-session-id") == Some("s-2")).collect();
    for method in ["notifications/initialized", "resources/subscribe", "logging/setLevel"] {
        assert!(told.iter().any(|seen| seen.method() == method), "{method}: {told:?}");
    }
    assert!(told.iter().all(|seen| !seen.verb.is_empty() && seen.header("mcp-protocol-version").is_some()));
}

#[tokio::test]
async fn a_session_that_is_lost_with_the_stream_is_begun_anew() {
    let server = Server::new(|seen| match (seen.verb.as_str(), seen.method()) {
        ("POST", "tools/call") => Reply::WriteAndClose(vec![SSE_HEAD.into(), chunk("id: 1\nretry: 1\ndata:\n\n")]),
        ("POST", "ping") => result(seen, &json!({})),
        ("GET", _) if seen.header("last-event-id").is_some() => raw("404 Not Found", &[], ""),
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let (client, _) = connect(&server.url()).await;
    let failed = call(&client, "t").await.unwrap_err();
    assert!(failed.message().contains("lost the session"), "{failed}");
    within("ping", client.ping()).await.unwrap();
    assert_eq!(server.methods().iter().filter(|method| *method == "initialize").count(), 2);
}

#[tokio::test]
async fn a_client_that_only_listens_begins_a_lost_session_anew() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let count = sessions.clone();
    let server = Server::new(move |seen| match (seen.verb.as_str(), seen.method()) {
        ("POST", "initialize") => {
            let session = count.fetch_add(1, Ordering::SeqCst) + 1;
            let capabilities = json!({"resources": {"subscribe": true}});
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
                                "serverInfo": {"name": "scripted", "version": "1"}});
            let body = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
            answer("200 OK", &[&format!("Mcp-Session-Id: s-{session}")], &body)
        }
        ("POST", "resources/subscribe") => result(seen, &json!({})),
        ("GET", _) => match (seen.header("mcp-session-id"), seen.header("last-event-id")) {
            (Some("s-1"), None) => Reply::WriteAndClose(vec![SSE_HEAD.into(), named("1", &note("a"))]),
            (Some("s-1"), _) => raw("404 Not Found", &[], ""),
            _ => Reply::Hold(vec![SSE_HEAD.into(), named("1", &note("b"))]),
        },
        _ => legacy(seen, "").unwrap(),
    })
    .await;
    let (client, heard) = connect(&server.url()).await;
    let params = RawJson::from_value(&json!({"uri": "a:"}));
    let subscribing = client.request("resources/subscribe", Some(params), &CallOptions::default());
    within("subscribing", subscribing).await.unwrap();
    within("both notes", async {
        while heard.notifications.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    server
        .wait_for("the subscription", |seen| {
            seen.method() == "resources/subscribe" && seen.header("mcp-session-id") == Some("s-2")
        })
        .await;
    assert_eq!((sessions.load(Ordering::SeqCst), client.session_id().as_deref()), (2, Some("s-2")));
}

#[tokio::test]
async fn the_standalone_stream_is_opened_at_once_and_again_where_it_ended() {
    let refused = AtomicUsize::new(0);
    let server = Server::new(move |seen| match (seen.verb.as_str(), seen.header("last-event-id")) {
        ("GET", None) => {
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            let event = chunk(&format!("id: g-1\nretry: 1\ndata: {changed}\n\n"));
            Reply::WriteAndClose(vec![SSE_HEAD.into(), event])
        }
        ("GET", Some("g-1")) => {
            Reply::Hold(vec![SSE_HEAD.into(), event(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"}))])
        }
        // The answer to the ping, which the server has no time for at first.
        ("POST", _) if seen.method().is_empty() => match refused.fetch_add(1, Ordering::SeqCst) {
            0 => raw("503 Service Unavailable", &[], ""),
            _ => raw("202 Accepted", &[], ""),
        },
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let (client, heard) = connect(&format!("http://127.0.0.1:{}/mcp", server.port)).await;
    let pong = server.wait_for("the answer to ping", |s| s.body["id"] == "p").await;
    assert_eq!(pong.body["result"], json!({}));
    assert_eq!(pong.header("mcp-session-id"), Some("s"));
    let pongs = || server.seen().iter().filter(|s| s.body["id"] == "p").count();
    within("the answer again", async {
        while pongs() < 2 {
            tokio::task::yield_now().await
        }
    })
    .await;
    assert_eq!(*heard.notifications.lock().unwrap(), ["notifications/tools/list_changed"]);
    let streams: Vec<_> = server.seen().into_iter().filter(|s| s.verb == "GET").collect();
    assert_eq!(streams.len(), 2);
    assert_eq!(streams[0].protocol_headers(), [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", "s")]);
    assert_eq!(streams[0].header("content-type"), None);
    drop(client);
    server.wait_for_connections(0).await;
}

#[tokio::test]
async fn an_answer_in_an_array_fails_its_request_at_once() {
    let server = Server::new(|seen| {
        let id = &seen.body["id"];
        match seen.body["params"]["name"].as_str().unwrap_or_default() {
            "body" => answer("200 OK", &[], &json!([answered(id, "x")])),
            "another's" => answer("200 OK", &[], &json!([answered(&json!("other"), "x")])),
            "event" => Reply::Hold(vec![SSE_HEAD.into(), event(&json!([answered(id, "x")]))]),
            "fine" => answer("200 OK", &[], &answered(id, "fine")),
            _ => legacy(seen, "s").unwrap(),
        }
    })
    .await;
    let (client, _) = connect(&server.url()).await;
    for (name, part) in [("body", "JSON array"), ("another's", "not the answer"), ("event", "JSON array")] {
        let failed = call(&client, name).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::PeerMisbehaved, "{name}: {failed}");
        assert!(failed.message().contains(part), "{name}: {failed}");
        assert_eq!(call(&client, "fine").await.unwrap(), "fine", "after {name}");
    }
    assert_eq!(client.awaited(), 0);
}
