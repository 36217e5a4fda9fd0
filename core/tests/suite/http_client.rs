//! The HTTP client against servers that answer by script.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

pub(crate) mod cut;
pub(crate) mod heard;
mod negotiation;
pub(crate) mod server;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use heard::{Heard, listening};
use serde_json::{Value, json};
use server::*;
use tricorn::CallOptions;
use tricorn::client::{Client, ClientOptions, Target};
use tricorn::jsonrpc::RawJson;
use tricorn::protocol::revision::{Era, Revision};
use tricorn::{Error, ErrorKind};

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

async fn connect(server: &Server) -> Result<Client, Error> {
    connect_as(server, &ClientOptions::default()).await
}

async fn connect_as(server: &Server, options: &ClientOptions) -> Result<Client, Error> {
    let target = Target::from_text(&server.url()).unwrap();
    within("connecting", Client::connect(&target, options)).await
}

/// The streams on which messages with a result came.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<Vec<String>>>);

impl tricorn::client::Tap for Streams {
    fn frame(&self, by_client: bool, on: &str, frame: &bytes::Bytes) {
        let message: Value = serde_json::from_slice(frame).unwrap_or_default();
        if !by_client && message.get("result").is_some() {
            self.0.lock().unwrap().push(on.to_owned());
        }
    }
}

fn tools(names: &[&str]) -> Value {
    let tools: Vec<_> = names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    json!({"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "resultType": "complete"})
}

async fn names(client: &Client) -> Result<Vec<String>, Error> {
    let tools = within("listing", client.list_tools()).await?;
    Ok(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
}

async fn call(client: &Client, name: &str, arguments: Value) -> Result<String, Error> {
    let repeatable = CallOptions::new().idempotent(true);
    let result = within("calling", client.call_tool_with(name, arguments, &repeatable)).await?;
    Ok(result.content[0].as_text().unwrap_or_default().to_owned())
}

// ---- sessions -----------------------------------------------------------------------------------------------------

#[tokio::test]
async fn requests_wait_until_the_server_has_taken_initialized() {
    let (taken, early) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (set, seen_early) = (taken.clone(), early.clone());
    let server = Server::new(move |seen| match seen.method() {
        "notifications/initialized" => {
            // A slow server: a request that did not wait would be here first.
            std::thread::sleep(std::time::Duration::from_millis(50));
            set.store(true, Ordering::SeqCst);
            raw("202 Accepted", &[], "")
        }
        "tools/list" => {
            seen_early.fetch_or(!taken.load(Ordering::SeqCst), Ordering::SeqCst);
            result(seen, &tools(&[]))
        }
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    names(&connect(&server).await.unwrap()).await.unwrap();
    assert!(!early.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_lost_session_is_begun_anew_and_the_request_sent_again() {
    let sessions = Arc::new(AtomicUsize::new(0));
    let count = sessions.clone();
    let server = Server::new(move |seen| match seen.method() {
        "initialize" => legacy(seen, &format!("s-{}", count.fetch_add(1, Ordering::SeqCst) + 1)).unwrap(),
        "tools/call" if seen.header("mcp-session-id") == Some("s-1") => {
            error("404 Not Found", &Value::Null, -32001, &Value::Null)
        }
        "tools/call" => result(seen, &text("done")),
        _ => legacy(seen, "").unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    let calls = (0..8).map(|n| {
        let client = client.clone();
        tokio::spawn(async move { call(&client, "add", json!({"n": n})).await })
    });
    for one in calls.collect::<Vec<_>>() {
        assert_eq!(one.await.unwrap().unwrap(), "done");
    }
    assert_eq!(sessions.load(Ordering::SeqCst), 2, "one new session for all of them");
    let second = server.seen().into_iter().filter(|s| s.method() == "initialize").nth(1).unwrap();
    assert_eq!(second.protocol_headers(), []);
    within("closing", client.close()).await;
    let end = server.wait_for("DELETE", |s| s.verb == "DELETE").await;
    assert_eq!(end.header("mcp-session-id"), Some("s-2"));
}

#[tokio::test]
async fn a_server_that_knows_no_session_twice_in_a_row_is_not_asked_for_ever() {
    let server = Server::new(|seen| match seen.method() {
        "tools/call" => raw("404 Not Found", &[], ""),
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    let failed = call(&client, "add", json!({})).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Transport);
    assert_eq!(server.methods().iter().filter(|m| *m == "tools/call").count(), 2);
}

// ---- answers ------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn an_answer_may_come_as_events_in_any_pieces() {
    let server = Server::new(|seen| match seen.method() {
        "tools/call" => {
            let token = &seen.body["params"]["_meta"]["progressToken"];
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                                  "params": {"progressToken": token, "progress": 1, "message": "größer"}});
            let answer = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": text("fünf")}).to_string();
            let (first, rest) = answer.split_once(',').unwrap();
            let body = format!(
                "\u{feff}: a comment\r\n\r\nid: 1\ndata:\n\nid: 2\r\ndata: {progress}\r\n\r\n\
                 event: other\ndata: {{\"not\": \"ours\"}}\n\ndata: not json\n\n\
                 event: message\ndata: {first},\ndata: {rest}\n\n"
            );
            let letters: Vec<char> = body.chars().collect();
            let mut pieces = vec![SSE_HEAD.to_owned()];
            pieces.extend(letters.chunks(7).map(|piece| chunk(&piece.iter().collect::<String>())));
            pieces.push(SSE_END.into());
            Reply::Write(pieces)
        }
        _ => modern(seen).unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = heard.clone();
    let options = CallOptions::new().on_progress(move |params| hear.lock().unwrap().push(params.get().to_owned()));
    let result = within("calling", client.call_tool_with("add", json!({}), &options)).await.unwrap();
    assert_eq!(result.content[0].as_text(), Some("fünf"));
    assert_eq!(heard.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn answers_that_are_none_fail_the_request_and_nothing_else() {
    let server = Server::new(|seen| {
        let id = seen.body["id"].clone();
        match seen.body["params"]["name"].as_str().unwrap_or_default() {
            "garbled" => raw("200 OK", &["content-type: application/json"], "{\"jsonrpc\":"),
            "foreign" => answer("200 OK", &[], &json!({"jsonrpc": "2.0", "id": "other", "result": {}})),
            "array" => answer("200 OK", &[], &json!({"jsonrpc": "2.0", "id": id, "result": []})),
            "long" => answer("200 OK", &[], &json!({"jsonrpc": "2.0", "id": id, "result": text(&"x".repeat(3000))})),
            "long event" => {
                let long = "x".repeat(500);
                Reply::Hold([vec![SSE_HEAD.into(), chunk("data: ")], vec![chunk(&long); 20]].concat())
            }
            "cut" => Reply::WriteAndClose(vec!["HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"json".into()]),
            "silent" => Reply::WriteAndClose(vec![]),
            "no answer" => Reply::Write(vec![SSE_HEAD.into(), chunk(": nothing\n\n"), SSE_END.into()]),
            "busy" => raw("503 Service Unavailable", &["retry-after: 1"], "busy"),
            "gone" => raw("404 Not Found", &[], "no such page"),
            "too long" => raw("431 Request Header Fields Too Large", &[], ""),
            "refused" => error("400 Bad Request", &id, -32602, &json!({"a": 1})),
            "fine" => result(seen, &text("fine")),
            _ => modern(seen).unwrap(),
        }
    })
    .await;
    let options = ClientOptions::new().max_message_bytes(2000);
    let client = connect_as(&server, &options).await.unwrap();
    for (name, kind, part) in [
        ("garbled", ErrorKind::PeerMisbehaved, "JSON"),
        ("foreign", ErrorKind::PeerMisbehaved, "not the answer"),
        ("array", ErrorKind::PeerMisbehaved, "expected an object"),
        ("long", ErrorKind::PeerMisbehaved, "max_message_bytes"),
        ("long event", ErrorKind::PeerMisbehaved, "max_message_bytes"),
        ("cut", ErrorKind::Transport, "broke off"),
        ("silent", ErrorKind::Transport, "no answer"),
        ("no answer", ErrorKind::Transport, "ended before"),
        ("busy", ErrorKind::Transport, "503"),
        ("gone", ErrorKind::Transport, "404"),
        ("too long", ErrorKind::Transport, "headers are too long; those that repeat its name and arguments"),
        ("refused", ErrorKind::Rpc, "no"),
    ] {
        let failed = call(&client, name, json!({})).await.unwrap_err();
        assert_eq!(failed.kind(), kind, "{name}: {failed}");
        assert!(failed.message().contains(part), "{name}: {failed}");
        assert_eq!(call(&client, "fine", json!({})).await.unwrap(), "fine", "after {name}");
    }
    assert_eq!(client.awaited(), 0);
}

#[tokio::test]
async fn a_modern_answer_that_is_lost_is_asked_for_again_by_another_request() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = tries.clone();
    let server = Server::new(move |seen| match seen.method() {
        "tools/call" if counted.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) => {
            Reply::WriteAndClose(vec![SSE_HEAD.into(), chunk(": begun\n\n")])
        }
        "tools/call" => result(seen, &text("fine")),
        _ => modern(seen).unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    assert_eq!(call(&client, "cut", json!({})).await.unwrap(), "fine");
    let ids: Vec<_> =
        server.seen().into_iter().filter(|s| s.method() == "tools/call").map(|s| s.body["id"].clone()).collect();
    assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
    // Nobody has said that it may be carried out twice.
    let failed = within("calling", client.call_tool("cut", json!({}))).await.unwrap_err();
    assert!(failed.kind() == ErrorKind::Transport && failed.message().contains("not repeated"), "{failed}");
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_legacy_stream_that_breaks_off_is_resumed() {
    let served = Arc::new(Mutex::new(Value::Null));
    let server = Server::new(move |seen| match (seen.verb.as_str(), seen.method(), seen.header("last-event-id")) {
        (_, "tools/call", _) => {
            *served.lock().unwrap() = seen.body["id"].clone();
            let events = chunk("id: a-1\nretry: 5\ndata:\n\n");
            Reply::Write(vec![SSE_HEAD.into(), events, SSE_END.into()])
        }
        ("GET", _, Some("a-1")) => Reply::WriteAndClose(vec![SSE_HEAD.into(), chunk("id: a-2\ndata: \n\n")]),
        ("GET", _, Some("a-2")) => {
            let answer = json!({"jsonrpc": "2.0", "id": *served.lock().unwrap(), "result": text("at last")});
            Reply::Hold(vec![SSE_HEAD.into(), event(&answer)])
        }
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let streams = Streams::default();
    let client = connect_as(&server, &ClientOptions::default().tap(streams.clone())).await.unwrap();
    assert_eq!(call(&client, "slow", json!({})).await.unwrap(), "at last");
    let on = streams.0.lock().unwrap().pop();
    assert!(on.as_deref().is_some_and(|on| on.starts_with("get:")), "{on:?}");
    let resumed = server.seen().into_iter().find(|s| s.header("last-event-id").is_some()).unwrap();
    assert_eq!(resumed.header("mcp-session-id"), Some("s"));
    assert_eq!(resumed.header("accept"), Some("text/event-stream"));
    drop(client);
    server.wait_for_connections(0).await;
}

#[tokio::test]
async fn a_redirect_is_followed_within_the_origin_only() {
    let server = Server::new(|seen| match (seen.path.as_str(), seen.method()) {
        ("/mcp", "server/discover") => raw("307 Temporary Redirect", &["location: /old"], ""),
        ("/old", "server/discover") => raw("308 Permanent Redirect", &["location: /mcp/"], ""),
        ("/mcp/", "server/discover") => modern(seen).unwrap(),
        ("/mcp/", "tools/list") => result(seen, &tools(&[])),
        _ => raw("307 Temporary Redirect", &["location: http://elsewhere.example/mcp"], ""),
    })
    .await;
    let client = connect(&server).await.unwrap();
    names(&client).await.unwrap();
    let failed = call(&client, "add", json!({})).await.unwrap_err();
    assert!(failed.kind() == ErrorKind::Transport && failed.message().contains("elsewhere.example"), "{failed}");
}

// ---- connections and their end ------------------------------------------------------------------------------------

#[tokio::test]
async fn cancelling_a_modern_call_closes_its_stream_and_says_nothing() {
    let server = Server::new(|seen| match seen.method() {
        "tools/call" => Reply::Hold(vec![SSE_HEAD.into()]),
        _ => modern(seen).unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    let running = client.request("tools/call", Some(RawJson::trusted(r#"{"name":"x"}"#)), &CallOptions::default());
    server.wait_for("the call", |s| s.method() == "tools/call").await;
    server.wait_for_connections(1).await;
    drop(running);
    server.wait_for_connections(0).await;
    assert_eq!(client.awaited(), 0);
    assert_eq!(server.methods(), ["server/discover", "tools/call"]);
}

#[tokio::test]
async fn cancelling_a_legacy_call_notifies_and_lets_its_connection_go() {
    let server = Server::new(|seen| match seen.method() {
        "tools/call" => Reply::Hold(vec![SSE_HEAD.into()]),
        _ => legacy(seen, "s").unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    for _ in 0..20 {
        let running = client.request("tools/call", Some(RawJson::trusted(r#"{"name":"x"}"#)), &CallOptions::default());
        drop(running);
    }
    let running = client.request("tools/call", Some(RawJson::trusted(r#"{"name":"x"}"#)), &CallOptions::default());
    let called = server.wait_for("the call", |s| s.method() == "tools/call").await;
    drop(running);
    let id = called.body["id"].clone();
    let told = server
        .wait_for("cancelled", |s| s.method() == "notifications/cancelled" && s.body["params"]["requestId"] == id)
        .await;
    assert_eq!(told.header("mcp-session-id"), Some("s"));
    within("closing", client.close()).await;
    server.wait_for_connections(0).await;
    assert_eq!(server.methods().iter().filter(|m| *m == "notifications/cancelled").count(), 21);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used_again() {
    let server = Server::new(|seen| match seen.method() {
        "tools/list" => {
            let Reply::Write(pieces) = result(seen, &tools(&["a"])) else { unreachable!() };
            Reply::WriteAndClose(pieces)
        }
        "tools/call" => answer(
            "200 OK",
            &["connection: close"],
            &json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": text("x")}),
        ),
        _ => modern(seen).unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    for _ in 0..20 {
        assert_eq!(names(&client).await.unwrap(), ["a"]);
        server.wait_for_connections(0).await;
        assert_eq!(call(&client, "x", json!({})).await.unwrap(), "x");
        server.wait_for_connections(0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_share_few_connections() {
    let server = Server::new(|seen| match seen.method() {
        "tools/call" => result(seen, &text(&seen.body["params"]["arguments"]["n"].to_string())),
        _ => modern(seen).unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    let workers = (0..16).map(|worker| {
        let client = client.clone();
        tokio::spawn(async move {
            for n in (0..50).map(|n| worker * 1000 + n) {
                assert_eq!(call(&client, "echo", json!({"n": n})).await.unwrap(), n.to_string());
            }
        })
    });
    for worker in workers.collect::<Vec<_>>() {
        worker.await.unwrap();
    }
    let most = server.seen().iter().map(|s| s.connection).max().unwrap();
    assert!(most <= 17, "{most} connections for 16 calls at once");
    drop(client);
    server.wait_for_connections(0).await;
}

// ---- mirrored arguments -------------------------------------------------------------------------------------------

fn marked(name: &str, kind: &str, mark: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"v": {"type": kind, "x-mcp-header": mark}}}})
}

#[tokio::test]
async fn marked_arguments_are_mirrored_and_tools_with_wrong_marks_left_out() {
    let server = Server::new(|seen| match seen.method() {
        "tools/list" => {
            let tools =
                [marked("good", "string", "Region"), marked("bad", "number", "N"), marked("worse", "string", "a b")];
            result(seen, &json!({"tools": tools, "resultType": "complete"}))
        }
        "tools/call" => result(seen, &text("ok")),
        _ => modern(seen).unwrap(),
    })
    .await;
    let heard = Arc::new(Heard::default());
    let client = listening(&server, &heard).await;
    assert_eq!(names(&client).await.unwrap(), ["good"]);
    let warnings = heard.warnings.lock().unwrap().clone();
    assert!(
        warnings.len() == 2 && warnings[0].contains("\"bad\"") && warnings[1].contains("\"worse\""),
        "{warnings:?}"
    );
    for (value, header) in [
        (json!("eu-west"), Some("eu-west")),
        (json!(""), Some("")),
        (json!(" x"), Some("=?base64?IHg=?=")),
        (json!(null), None),
    ] {
        call(&client, "good", json!({"v": value})).await.unwrap();
        assert_eq!(server.seen().last().unwrap().header("mcp-param-region"), header, "{value}");
    }
}

#[tokio::test]
async fn a_call_refused_for_its_headers_learns_them_and_is_sent_again() {
    let server = Server::new(|seen| match (seen.method(), seen.header("mcp-param-region")) {
        ("tools/list", _) if seen.body["params"]["cursor"].is_null() => result(
            seen,
            &json!({"tools": [marked("other", "string", "O")], "nextCursor": "2", "resultType": "complete"}),
        ),
        ("tools/list", _) => {
            result(seen, &json!({"tools": [marked("good", "string", "Region")], "resultType": "complete"}))
        }
        ("tools/call", Some("eu")) => result(seen, &text("ok")),
        ("tools/call", _) => error("400 Bad Request", &seen.body["id"], -32020, &Value::Null),
        _ => modern(seen).unwrap(),
    })
    .await;
    let client = connect(&server).await.unwrap();
    assert_eq!(call(&client, "good", json!({"v": "eu"})).await.unwrap(), "ok");
    assert_eq!(server.methods(), ["server/discover", "tools/call", "tools/list", "tools/list", "tools/call"]);
    let (first, second) = (server.seen()[1].clone(), server.seen()[4].clone());
    assert_eq!(first.body, second.body);
    assert_eq!(server.seen()[2].body["params"]["_meta"], first.body["params"]["_meta"]);
    // Refused again: the error is the caller's.
    let failed = call(&client, "good", json!({"v": "us"})).await.unwrap_err();
    assert_eq!(failed.code(), Some(-32020));
    assert_eq!(client.awaited(), 0);
}

#[tokio::test]
async fn a_stream_that_nobody_acknowledged_tells_nothing() {
    let server = Server::new(|seen| match seen.method() {
        "server/discover" => result(
            seen,
            &json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 0, "cacheScope": "private"}),
        ),
        _ => result(seen, &json!({"resultType": "complete"})),
    })
    .await;
    let client = connect(&server).await.unwrap();
    let filter = tricorn::model::SubscriptionFilter::new().tools();
    let ended = within("listening", client.listen(filter)).await.unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::PeerMisbehaved, "{ended}");
    assert!(ended.message().contains("never said what it tells of"), "{ended}");
}
