//! Tests of the value that a server starts with its first use and stops with its last, over memory, HTTP and mounted.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use serde_json::json;
use tricorn::ErrorKind;
use tricorn::client::{Client, ClientOptions, Target};
use tricorn::http::HttpOptions;
use tricorn::prelude::*;

const PATIENCE: Duration = Duration::from_secs(20);

type Log = Arc<Mutex<Vec<String>>>;

/// Value that is started: the number of its start.
struct Pool(usize);

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server(log: &Log) -> Server {
    let (starts, stops) = (log.clone(), log.clone());
    Server::new("s")
        .state("plain")
        .tool("pool", "", |_: Nothing, cx: Context| async move {
            let plain = cx.state::<&str>().map_or("none", |state| *state);
            Ok(format!("{plain} {}", cx.state::<Pool>().map_or(0, |pool| pool.0)))
        })
        .lifespan(
            move || {
                let log = starts.clone();
                async move {
                    tokio::task::yield_now().await;
                    let mut log = log.lock().unwrap();
                    let count = log.iter().filter(|line| line.starts_with("start")).count() + 1;
                    log.push(format!("start {count}"));
                    if count == 3 { Err("no database") } else { Ok(Pool(count)) }
                }
            },
            move |pool: Arc<Pool>| {
                let log = stops.clone();
                async move {
                    tokio::task::yield_now().await;
                    log.lock().unwrap().push(format!("stop {}", pool.0));
                }
            },
        )
}

fn said(log: &Log) -> Vec<String> {
    log.lock().unwrap().clone()
}

async fn until(log: &Log, count: usize) {
    let end = tokio::time::Instant::now() + PATIENCE;
    while said(log).len() < count {
        assert!(tokio::time::Instant::now() < end, "{:?}", said(log));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn it_starts_with_the_first_use_and_stops_with_the_last() {
    let log = Log::default();
    let server = server(&log);
    let options = ClientOptions::default();
    let (one, two) = tokio::join!(Client::in_memory(&server, &options), Client::in_memory(&server, &options));
    let (one, two) = (one.unwrap(), two.unwrap());
    for client in [&one, &two] {
        assert_eq!(client.call_tool("pool", json!({})).await.unwrap().text(), "plain 1");
    }
    one.close().await;
    assert_eq!(said(&log), ["start 1"]);
    assert_eq!(two.call_tool("pool", json!({})).await.unwrap().text(), "plain 1");
    two.close().await;
    assert_eq!(said(&log), ["start 1", "stop 1"], "it has stopped when the last client is closed");
    let again = Client::in_memory(&server, &options).await.unwrap();
    assert_eq!(again.call_tool("pool", json!({})).await.unwrap().text(), "plain 2");
    // Dropped, not closed.
    drop(again);
    until(&log, 4).await;
    let error = Client::in_memory(&server, &options).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Misuse, "the server could not start: no database"));
    let after = Client::in_memory(&server, &options).await.unwrap();
    assert_eq!(after.call_tool("pool", json!({})).await.unwrap().text(), "plain 4");
    server.close();
    until(&log, 7).await;
    assert_eq!(said(&log), ["start 1", "stop 1", "start 2", "stop 2", "start 3", "start 4", "stop 4"]);
}

#[tokio::test]
async fn a_port_that_is_listened_on_is_a_use() {
    let log = Log::default();
    let server = server(&log);
    let http = server.serve_http(HttpOptions::parse(r#"{"port": 0}"#).unwrap()).await.unwrap();
    assert_eq!(said(&log), ["start 1"]);
    for revision in ["2025-11-25", "2026-07-28"] {
        let options = ClientOptions::parse(&json!({"revision": revision}).to_string()).unwrap();
        let client = Client::connect(&Target::from_text(http.url()).unwrap(), &options).await.unwrap();
        assert_eq!(client.call_tool("pool", json!({})).await.unwrap().text(), "plain 1");
        client.close().await;
    }
    http.close();
    http.join().await;
    assert_eq!(said(&log), ["start 1", "stop 1"]);
}

#[tokio::test]
async fn a_mounted_endpoint_is_a_use_from_its_first_request() {
    let log = Log::default();
    let server = server(&log);
    let endpoint = server.endpoint(HttpOptions::default()).unwrap();
    assert!(said(&log).is_empty());
    let ask = || async {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "pool", "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }}});
        let request = http::Request::post("/")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "pool")
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        let response = endpoint.handle(request).await;
        let status = response.status().as_u16();
        let text = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
        (status, String::from_utf8(text.to_vec()).unwrap())
    };
    let (one, two) = tokio::join!(ask(), ask());
    assert_eq!((one.0, two.0), (200, 200));
    assert!(one.1.contains("plain 1") && two.1.contains("plain 1"), "{one:?}");
    assert_eq!(said(&log), ["start 1"]);
    log.lock().unwrap().push("start 2".into());
    drop(endpoint);
    until(&log, 3).await;
    assert_eq!(said(&log)[2], "stop 1");
    let endpoint = server.endpoint(HttpOptions::default()).unwrap();
    let request = http::Request::get("/").header("host", "localhost").header("accept", "text/event-stream");
    let response = endpoint.handle(request.body(Full::new(Bytes::new())).unwrap()).await;
    assert_eq!(response.status(), 503);
    let text = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("the server could not start") && !text.contains("no database"), "{text}");
}
