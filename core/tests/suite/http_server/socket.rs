//! Over real sockets: what only a socket has.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tricorn::http::{HttpOptions, HttpServer};
use tricorn::server::{Server, Usage};

use super::*;

async fn listening(server: &Server) -> HttpServer {
    let options = HttpOptions::parse(r#"{"port": 0}"#).unwrap();
    within("listening", server.serve_http(options)).await.unwrap()
}

async fn connect(serving: &HttpServer) -> TcpStream {
    within("connecting", TcpStream::connect(serving.local_addr().unwrap())).await.unwrap()
}

pub(super) async fn write(socket: &mut TcpStream, serving: &HttpServer, body: &Value) {
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", serving.local_addr().unwrap());
    let text = body.to_string();
    for (name, value) in correct(&[], body) {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n{text}", text.len());
    within("writing", socket.write_all(head.as_bytes())).await.unwrap();
}

/// Reads until the text holds `end`, or to the end of the stream.
pub(super) async fn read_until(socket: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    let mut chunk = [0u8; 4096];
    while !String::from_utf8_lossy(&text).contains(end) {
        match within("reading", socket.read(&mut chunk)).await.unwrap_or(0) {
            0 => break,
            n => text.extend_from_slice(&chunk[..n]),
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn localhost_is_both_of_its_addresses() {
    let it = Fixture::new();
    let options = HttpOptions::new().host("localhost").port(0);
    let serving = within("listening", it.server.serve_http(options.clone())).await.unwrap();
    let port = serving.local_addr().unwrap().port();
    // Where the machine has both.
    let has_ipv6 = tokio::net::TcpListener::bind(("::1", 0)).await.is_ok();
    for address in ["127.0.0.1", "::1"].into_iter().take(1 + usize::from(has_ipv6)) {
        let mut socket = within("connecting", TcpStream::connect((address, port))).await.unwrap();
        write(&mut socket, &serving, &modern(1, "tools/call", tool("add", json!({"a": 1, "b": 2})))).await;
        assert!(read_until(&mut socket, "serverInfo").await.starts_with("HTTP/1.1 200"), "{address}");
    }
    let taken = it.server.serve_http(options.port(port)).await.expect_err("it is taken");
    assert!(taken.message().contains("cannot listen on localhost"), "{}", taken.message());
}

#[tokio::test]
async fn an_address_that_is_none_is_named() {
    let it = Fixture::new();
    for (options, part) in [
        (r#"{"host": "0.0.0.0:8000"}"#, "\"host\": expected a name or an address without a port"),
        (r#"{"host": "http://localhost"}"#, "\"host\": expected a name"),
        (r#"{"host": ""}"#, "\"host\": expected a name"),
        (r#"{"port": 70000}"#, "expected a whole number from 0 to 65535, got 70000"),
        (r#"{"port": -1}"#, "expected a whole number from 0 to 65535, got -1"),
    ] {
        let refused = match HttpOptions::parse(options) {
            Ok(options) => it.server.serve_http(options.port(0)).await.expect_err(part),
            Err(error) => error,
        };
        assert!(refused.message().contains(part), "{}", refused.message());
    }
}

#[tokio::test]
async fn requests_come_over_one_connection_until_the_server_closes() {
    let it = Fixture::new();
    let serving = listening(&it.server).await;
    assert_eq!(serving.url(), format!("http://{}/mcp", serving.local_addr().unwrap()));
    let mut socket = connect(&serving).await;
    for id in 0..3 {
        write(&mut socket, &serving, &modern(id, "tools/call", tool("add", json!({"a": id, "b": 2})))).await;
        let answer = read_until(&mut socket, "serverInfo").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        assert!(answer.contains(&format!("\"structuredContent\":{}", id + 2)), "{answer}");
    }
    write(&mut socket, &serving, &initialize("2025-11-25")).await;
    assert!(read_until(&mut socket, "serverInfo").await.contains("mcp-session-id: "));
    for path in ["/", "/elsewhere", "/mcp/more"] {
        let get = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", serving.local_addr().unwrap());
        within("writing", socket.write_all(get.as_bytes())).await.unwrap();
        let answer = read_until(&mut socket, "}").await;
        assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("path is /mcp"), "{path}: {answer}");
    }
    // An orchestrator asks at any name, and is told nothing else.
    for (path, verb) in [("/healthz", "GET"), ("/readyz", "GET"), ("/readyz", "HEAD")] {
        let ask = format!("{verb} {path} HTTP/1.1\r\nHost: pod-7.internal\r\n\r\n");
        within("writing", socket.write_all(ask.as_bytes())).await.unwrap();
        let answer = read_until(&mut socket, if verb == "GET" { "ok\n" } else { "\r\n\r\n" }).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("no-store"), "{path}: {answer}");
    }
    let post = "POST /healthz HTTP/1.1\r\nHost: pod-7.internal\r\nContent-Length: 0\r\n\r\n";
    within("writing", socket.write_all(post.as_bytes())).await.unwrap();
    assert!(!read_until(&mut socket, "}").await.starts_with("HTTP/1.1 200"), "only questions are answered");
    assert_eq!((it.server.usage().connections, it.server.usage().sessions), (1, 1));
    let address = serving.local_addr().unwrap();
    it.server.close();
    within("the end", serving.join()).await;
    assert_eq!(read_until(&mut socket, "\0").await, "");
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens");
    assert_eq!(it.server.usage(), Usage::default());
}

#[tokio::test]
async fn a_client_that_hangs_up_cancels_its_call() {
    let it = Fixture::new();
    let serving = listening(&it.server).await;
    for (round, token) in [None, Some(1)].into_iter().enumerate() {
        let mut call = modern(1, "tools/call", tool("waits", json!({})));
        if let Some(token) = token {
            call["params"]["_meta"]["progressToken"] = json!(token);
        }
        let mut socket = connect(&serving).await;
        write(&mut socket, &serving, &call).await;
        if token.is_some() {
            assert!(read_until(&mut socket, "notifications/progress").await.contains("text/event-stream"));
        }
        until("the call runs", || it.gate.started() == round + 1).await;
        drop(socket);
        until("the call is cancelled", || it.gate.cancelled() == round + 1).await;
    }
    until("nothing is left", || it.server.usage() == Usage::default()).await;
    serving.close();
    within("the end", serving.join()).await;
}

#[tokio::test]
async fn closing_ends_calls_and_streams_within_a_moment() {
    let it = Fixture::new();
    let serving = listening(&it.server).await;
    let mut socket = connect(&serving).await;
    write(&mut socket, &serving, &modern(1, "tools/call", tool("waits", json!({})))).await;
    until("the call runs", || it.gate.started() == 1).await;
    serving.close();
    assert!(read_until(&mut socket, "closed").await.starts_with("HTTP/1.1 503"), "an answer, not silence");
    within("the end", serving.join()).await;
    assert_eq!((it.gate.cancelled(), it.server.usage()), (1, Usage::default()));
    // The server itself goes on.
    assert_eq!(it.post(&[], &modern(1, "tools/list", json!({}))).await.status, 200);
}

#[tokio::test]
async fn a_server_that_drains_answers_what_runs_and_takes_no_more() {
    let it = Fixture::new();
    let serving = listening(&it.server).await;
    let (mut call, mut idle) = (connect(&serving).await, connect(&serving).await);
    let mut listener = connect(&serving).await;
    write(&mut call, &serving, &modern(1, "tools/call", tool("waits", json!({})))).await;
    let listen = modern(2, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    write(&mut listener, &serving, &listen).await;
    read_until(&mut listener, "acknowledged").await;
    write(&mut idle, &serving, &modern(3, "tools/list", json!({}))).await;
    read_until(&mut idle, "serverInfo").await;
    until("the call runs", || it.gate.started() == 1).await;
    let address = serving.local_addr().unwrap();
    let drained = it.server.drain();
    let last = read_until(&mut listener, "0\r\n\r\n").await;
    assert!(last.contains("\"id\":2"), "a listener ends in order: {last}");
    until("nobody listens", || std::net::TcpStream::connect(address).is_err()).await;
    // Connections that there are get an answer, and are told not to come again.
    let ready = "GET /readyz HTTP/1.1\r\nHost: pod-7.internal\r\n\r\n";
    within("writing", idle.write_all(ready.as_bytes())).await.unwrap();
    let answer = read_until(&mut idle, "\0").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("connection: close"), "{answer}");
    assert_eq!(it.gate.cancelled(), 0);
    it.gate.open();
    let answer = read_until(&mut call, "\0").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("open"), "{answer}");
    within("the drain", drained).await;
    within("the end", serving.join()).await;
    assert_eq!(it.server.usage(), Usage::default());
}

#[tokio::test]
async fn a_mounted_endpoint_drains_with_its_server_however_often_that_is_told() {
    let it = Fixture::new();
    let call = modern(1, "tools/call", tool("waits", json!({})));
    let ends = async {
        until("the call runs", || it.gate.started() == 1).await;
        let (first, second) = (it.server.drain(), it.server.drain());
        let late = it.post(&[], &modern(2, "tools/list", json!({}))).await;
        assert_eq!((late.status, it.gate.cancelled()), (503, 0));
        it.gate.open();
        within("the drain", async { (first.await, second.await) }).await;
    };
    let (answer, ()) = tokio::join!(it.post(&[], &call), ends);
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_drain_ends_with_its_time_and_with_a_close() {
    for closes in [false, true] {
        let it = Fixture::new();
        let patience = Duration::from_millis(if closes { 600_000 } else { 50 });
        let options = HttpOptions::new().port(0).drain_timeout(patience);
        let serving = within("listening", it.server.serve_http(options)).await.unwrap();
        let mut call = connect(&serving).await;
        write(&mut call, &serving, &modern(1, "tools/call", tool("waits", json!({})))).await;
        until("the call runs", || it.gate.started() == 1).await;
        let drained = it.server.drain();
        if closes {
            it.server.close();
        }
        assert!(read_until(&mut call, "closed").await.starts_with("HTTP/1.1 503"), "an answer, not silence");
        within("the drain", drained).await;
        within("the end", serving.join()).await;
        assert_eq!((it.gate.cancelled(), it.server.usage()), (1, Usage::default()));
    }
    // One that serves nothing closes at once.
    let it = Fixture::new();
    within("the drain", it.server.drain()).await;
    assert!(it.server.serve_http(HttpOptions::new().port(0)).await.is_err());
}

#[tokio::test]
async fn a_client_has_the_times_of_the_options() {
    let it = Fixture::new();
    let (short, long) = (Duration::from_millis(200), Duration::from_secs(600));
    let patient = || HttpOptions::new().port(0).header_timeout(long).idle_timeout(long).body_timeout(long);
    let silent = "";
    let half_a_head = "POST /mcp HTTP/1.1\r\nHost: ";
    let half_a_body = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{";
    let whole = "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (options, begun, answer) in [
        (patient().header_timeout(short), silent, ""),
        (patient().header_timeout(short), half_a_head, ""),
        (patient().idle_timeout(short), whole, "HTTP/1.1 404"),
        (patient().body_timeout(short), half_a_body, "HTTP/1.1 400"),
    ] {
        let serving = within("listening", it.server.serve_http(options)).await.unwrap();
        let mut socket = connect(&serving).await;
        within("writing", socket.write_all(begun.as_bytes())).await.unwrap();
        let read = read_until(&mut socket, "\0").await;
        assert!(read.starts_with(answer) && read.is_empty() == answer.is_empty(), "{begun:?}: {read:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_does_not_cost_the_connection() {
    let it = Fixture::with(|server| server.max_message_bytes(100_000), "");
    let serving = listening(&it.server).await;
    let mut socket = connect(&serving).await;
    let text = "x".repeat(150_000);
    write(&mut socket, &serving, &modern(1, "tools/call", tool("region", json!({"region": text})))).await;
    let answer = read_until(&mut socket, "max_message_bytes").await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    write(&mut socket, &serving, &modern(1, "server/discover", json!({}))).await;
    assert!(read_until(&mut socket, "serverInfo").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn an_address_that_is_taken_is_named() {
    let it = Fixture::new();
    let serving = listening(&it.server).await;
    let options = HttpOptions::parse(&format!("{{\"port\": {}}}", serving.local_addr().unwrap().port())).unwrap();
    let error = it.server.serve_http(options).await.expect_err("taken");
    assert!(error.message().contains(&serving.local_addr().unwrap().to_string()), "{error}");
}

#[tokio::test]
async fn dropping_the_handle_closes() {
    let it = Fixture::new();
    let serving = listening(&it.server).await;
    let mut socket = connect(&serving).await;
    drop(serving);
    assert_eq!(read_until(&mut socket, "\0").await, "");
    until("nothing is left", || it.server.usage() == Usage::default()).await;
}

#[tokio::test]
async fn a_body_that_says_it_is_too_long_is_not_waited_for() {
    let it = Fixture::with(|server| server.max_message_bytes(100_000), "");
    let serving = listening(&it.server).await;
    for (length, expect) in [(9_999_999_999u64, ""), (150_000, ""), (150_000, "Expect: 100-continue\r\n")] {
        let mut socket = connect(&serving).await;
        let host = serving.local_addr().unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
             {expect}Content-Length: {length}\r\n\r\n"
        );
        within("writing", socket.write_all(head.as_bytes())).await.unwrap();
        let answer = read_until(&mut socket, "max_message_bytes").await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{length} {expect}: {answer}");
    }
}

#[tokio::test]
async fn a_request_says_which_host_it_is_for() {
    let it = Fixture::new();
    let serving = listening(&it.server).await;
    for (version, status) in [("1.1", "400"), ("1.0", "405")] {
        let mut socket = connect(&serving).await;
        let head = format!("PATCH /mcp HTTP/{version}\r\n\r\n");
        within("writing", socket.write_all(head.as_bytes())).await.unwrap();
        let answer = read_until(&mut socket, "}").await;
        assert!(answer.split(' ').nth(1) == Some(status), "{version}: {answer}");
        assert_eq!(answer.contains("header Host: missing"), version == "1.1", "{answer}");
    }
}
