//! The HTTP client and the oldest transport: a stream to read from and a path to post to.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;
use serde_json::{Value, json};
use tricorn::Context;
use tricorn::client::{Client, ClientOptions, Target};
use tricorn::http::HttpOptions;
use tricorn::server::HandlerError;
use tricorn::{Error, ErrorKind};

use crate::http_client::server::*;

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{what} within {PATIENCE:?}"))
}

async fn connect(target: &str) -> Result<Client, Error> {
    let target = Target::parse(target).unwrap();
    within("connecting", Client::connect(&target, &ClientOptions::default())).await
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_two_sides_of_this_crate_understand_each_other() {
    let server = tricorn::Server::new("old")
        .tool("hello", "", |_: Nothing| async move { Ok::<_, HandlerError>("hello".to_owned()) })
        .tool("waits", "", |_: Nothing, cx: Context| async move {
            cx.cancelled().await;
            Ok::<_, HandlerError>(0)
        });
    let in_flight = async |number: usize| {
        within("the calls", async {
            while server.usage().in_flight != number {
                tokio::task::yield_now().await;
            }
        })
        .await;
    };
    let options = HttpOptions::parse(r#"{"port": 0, "sse": true}"#).unwrap();
    let serving = within("listening", server.serve_http(options)).await.unwrap();
    let url = format!("http://{}/sse", serving.local_addr().unwrap());
    // Found out, remembered, and said.
    for target in [format!("{url:?}"), format!("{url:?}"), json!({"type": "sse", "url": url}).to_string()] {
        let client = connect(&target).await.unwrap_or_else(|e| panic!("{target}: {e}"));
        assert_eq!((client.transport(), client.session_id()), ("http", None));
        let calls = (0..8).map(|_| {
            let client = client.clone();
            tokio::spawn(async move { within("calling", client.call_tool("hello", json!({}))).await })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap().unwrap().content[0].as_text(), Some("hello"));
        }
        let waiting = client.clone();
        let call = tokio::spawn(async move { waiting.call_tool("waits", json!({})).await.map(drop) });
        in_flight(1).await;
        call.abort();
        in_flight(0).await;
        assert_eq!(server.usage().sessions, 1);
        within("closing", client.close()).await;
        within("the session's end", async {
            while server.usage().sessions > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Returns an old server's answer to requests that it does not know.
fn old(seen: &Seen, endpoint: &str, status: &'static str) -> Reply {
    match (seen.verb.as_str(), seen.path.as_str()) {
        ("GET", "/mcp") => {
            let event = chunk(&format!(": hello\n\nevent: endpoint\ndata: {endpoint}\n\n"));
            Reply::Hold(vec![SSE_HEAD.into(), event])
        }
        _ => raw(status, &[], "no"),
    }
}

#[tokio::test]
async fn only_after_the_newer_transports_were_refused_is_the_oldest_asked_for() {
    for status in ["400 Bad Request", "404 Not Found", "405 Method Not Allowed"] {
        let server = Server::new(move |seen| old(seen, "http://evil.example/messages", status)).await;
        let failed = connect(&format!("{:?}", server.url())).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::PeerMisbehaved, "{failed}");
        assert!(failed.message().contains("same origin") && failed.message().contains("evil"), "{failed}");
        let seen = server.seen();
        let asked: Vec<_> = seen.iter().map(|s| (s.verb.as_str(), s.method())).collect();
        assert_eq!(asked, [("POST", "server/discover"), ("POST", "initialize"), ("GET", "")]);
        assert_eq!(seen[2].header("accept"), Some("text/event-stream"));
    }
    for (status, what) in [("401 Unauthorized", ErrorKind::Auth), ("500 Internal Server Error", ErrorKind::Transport)] {
        let server = Server::new(move |seen| match seen.method() {
            "server/discover" => raw("400 Bad Request", &[], ""),
            _ => old(seen, "/messages", status),
        })
        .await;
        let failed = connect(&format!("{:?}", server.url())).await.unwrap_err();
        assert_eq!((failed.kind(), server.seen().len()), (what, 2), "{failed}");
    }
}

#[tokio::test]
async fn what_a_server_speaks_is_remembered_by_its_address() {
    // Speaks before it is asked: the ids of the two ways to `initialize` are known.
    let ids = AtomicUsize::new(2);
    let server = Server::new(move |seen| match (seen.verb.as_str(), seen.path.as_str()) {
        ("GET", "/mcp") => {
            let id = ids.fetch_sub(1, Ordering::SeqCst);
            let result = json!({"protocolVersion": "2024-11-05", "capabilities": {},
                                "serverInfo": {"name": "old", "version": "1"}});
            let opened = json!({"jsonrpc": "2.0", "id": id, "result": result});
            Reply::Hold(vec![SSE_HEAD.into(), chunk("event: endpoint\ndata: messages?s=1\n\n"), event(&opened)])
        }
        ("POST", "/messages?s=1") => raw("202 Accepted", &[], ""),
        _ => raw("405 Method Not Allowed", &[], ""),
    })
    .await;
    for asked in [&["/mcp", "/mcp", "/messages?s=1"][..], &["/messages?s=1"]] {
        let before = server.seen().len();
        let client = connect(&format!("{:?}", server.url())).await.unwrap();
        assert_eq!(client.revision().as_str(), "2024-11-05");
        within("closing", client.close()).await;
        server.wait_for_connections(0).await;
        let seen = server.seen().split_off(before);
        let posts = seen.iter().filter(|s| s.verb == "POST");
        let opening: Vec<_> = posts.filter(|s| ["server/discover", "initialize"].contains(&s.method())).collect();
        assert!(asked.starts_with(&opening.iter().map(|s| s.path.as_str()).collect::<Vec<_>>()), "{seen:?}");
        let told = seen.iter().find(|s| s.method() == "notifications/initialized").unwrap();
        assert_eq!((told.path.as_str(), told.header("mcp-session-id")), ("/messages?s=1", None));
        assert_eq!(seen.iter().filter(|s| s.verb == "GET").count(), 1, "no standalone stream: {seen:?}");
        assert!(seen.iter().all(|s| s.verb != "DELETE"));
    }
}

#[tokio::test]
async fn without_such_a_stream_the_first_refusal_counts() {
    for reply in ["405", "json", "other event", "end"] {
        let server = Server::new(move |seen| match (seen.verb.as_str(), reply) {
            ("GET", "405") => raw("405 Method Not Allowed", &[], ""),
            ("GET", "json") => answer("200 OK", &[], &json!({})),
            ("GET", "other event") => Reply::Hold(vec![SSE_HEAD.into(), event(&json!({"jsonrpc": "2.0"}))]),
            ("GET", _) => Reply::Write(vec![SSE_HEAD.into(), SSE_END.into()]),
            _ => raw("404 Not Found", &[], "nothing of that name"),
        })
        .await;
        let failed = connect(&format!("{:?}", server.url())).await.unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Unsupported, "{reply}: {failed}");
        assert!(failed.message().contains("nothing of that name"), "{reply}: {failed}");
        server.wait_for_connections(0).await;
        let forced = json!({"type": "sse", "url": server.url()}).to_string();
        let posts = server.methods().len();
        let failed = connect(&forced).await.unwrap_err();
        assert!(failed.message().contains("event"), "{reply}: {failed}");
        assert_eq!(server.methods().len(), posts, "nothing was posted");
    }
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    // Says where to post and nothing more.
    let server = Server::new(|seen| match seen.verb.as_str() {
        "GET" => Reply::WriteAndClose(vec![SSE_HEAD.into(), chunk("event: endpoint\ndata: ?session_id=1\n\n")]),
        _ if seen.path == "/mcp?session_id=1" => raw("202 Accepted", &[], ""),
        _ => raw("405 Method Not Allowed", &[], ""),
    })
    .await;
    let failed = connect(&json!({"type": "sse", "url": server.url()}).to_string()).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Closed, "{failed}");
    assert!(failed.message().contains("stream"), "{failed}");
    let posted: Vec<Value> = server.seen().into_iter().filter(|s| s.verb == "POST").map(|s| s.body).collect();
    assert!(posted.len() <= 1 && posted.iter().all(|body| body["method"] == "initialize"), "{posted:?}");
}
