//! Tests of the shares in a server, and of making room; the end of sessions, of hosts, and of streams.

use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tricorn::http::{HttpOptions, HttpServer};
use tricorn::server::Server;

use super::reader::Reader;
use super::*;

const EVENTS: (&str, &str) = ("accept", "text/event-stream");

async fn listening(server: &Server, options: &str) -> HttpServer {
    within("listening", server.serve_http(HttpOptions::parse(options).unwrap())).await.unwrap()
}

async fn connect(serving: &HttpServer) -> TcpStream {
    within("connecting", TcpStream::connect(serving.local_addr().unwrap())).await.unwrap()
}

async fn write(socket: &mut TcpStream, verb: &str, changes: &[(&str, &str)], body: &Value) {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let mut head = format!("{verb} /mcp HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in correct(changes, body) {
        head += &format!("{name}: {value}\r\n");
    }
    head += &format!("Content-Length: {}\r\n\r\n{text}", text.len());
    within("writing", socket.write_all(head.as_bytes())).await.unwrap();
}

/// Reads until the text holds `end`, or to the end of the stream.
async fn read_until(socket: &mut TcpStream, end: &str) -> String {
    let (mut text, mut chunk) = (String::new(), [0u8; 4096]);
    while !text.contains(end) {
        match within("reading", socket.read(&mut chunk)).await.unwrap_or(0) {
            0 => break,
            n => text += &String::from_utf8_lossy(&chunk[..n]),
        }
    }
    text
}

/// A newcomer is answered.
async fn is_served(serving: &HttpServer) {
    let mut socket = connect(serving).await;
    write(&mut socket, "POST", &[], &modern(1, "server/discover", json!({}))).await;
    let answer = read_until(&mut socket, "serverInfo").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn silent_sockets_make_room_for_others() {
    let it = Fixture::new();
    let serving = listening(&it.server, r#"{"port": 0, "max_connections": 4}"#).await;
    let mut silent = Vec::new();
    for _ in 0..9 {
        silent.push(connect(&serving).await);
    }
    is_served(&serving).await;
    // The oldest are gone, the newest are not.
    assert_eq!(read_until(&mut silent[0], "\0").await, "");
    write(silent.last_mut().unwrap(), "POST", &[], &modern(1, "server/discover", json!({}))).await;
    assert!(read_until(silent.last_mut().unwrap(), "serverInfo").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn streams_that_nobody_reads_make_room_for_others() {
    let it = Fixture::new();
    let serving = listening(&it.server, r#"{"port": 0, "max_connections": 4}"#).await;
    let mut streams = Vec::new();
    for _ in 0..6 {
        let session = it_session(&serving).await;
        let mut socket = connect(&serving).await;
        write(&mut socket, "GET", &[EVENTS, ("mcp-session-id", &session)], &Value::Null).await;
        read_until(&mut socket, ":\n\n").await;
        streams.push(socket);
    }
    is_served(&serving).await;
    read_until(&mut streams[0], "\0").await;
    it.server.close();
    within("the end", serving.join()).await;
}

async fn it_session(serving: &HttpServer) -> String {
    let mut socket = connect(serving).await;
    write(&mut socket, "POST", &[], &initialize("2025-06-18")).await;
    let answer = read_until(&mut socket, "serverInfo").await;
    let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    id.trim().to_owned()
}

#[tokio::test]
async fn where_everything_answers_somebody_the_next_one_is_told_to_come_back() {
    let it = Fixture::new();
    let serving = listening(&it.server, r#"{"port": 0, "max_connections": 2}"#).await;
    let mut busy = Vec::new();
    for id in 0..2 {
        let mut socket = connect(&serving).await;
        write(&mut socket, "POST", &[], &modern(id, "tools/call", tool("waits", json!({})))).await;
        busy.push(socket);
    }
    until("both calls run", || it.gate.started() == 2).await;
    let answer = read_until(&mut connect(&serving).await, "max_connections").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("Retry-After: 1"), "{answer}");
    it.gate.open();
    for socket in &mut busy {
        assert!(read_until(socket, "open").await.starts_with("HTTP/1.1 200"));
    }
    is_served(&serving).await;
}

#[tokio::test]
async fn behind_a_trusted_proxy_each_client_has_a_share_of_its_own() {
    let it = Fixture::new();
    let options = r#"{"port": 0, "max_connections": 3, "trusted_proxies": ["127.0.0.0/8"]}"#;
    let serving = listening(&it.server, options).await;
    let mut eves = Vec::new();
    for id in 0..3 {
        let mut socket = connect(&serving).await;
        let from = [("x-forwarded-for", "203.0.113.9")];
        write(&mut socket, "POST", &from, &modern(id, "tools/call", tool("waits", json!({})))).await;
        eves.push(socket);
        until("the call runs", || it.gate.started() == eves.len()).await;
    }
    // All three answer somebody, but the same one.
    is_served(&serving).await;
    until("one of hers has made room", || it.gate.cancelled() == 1).await;
}

#[tokio::test]
async fn the_oldest_stream_of_who_has_the_most_makes_room() {
    let it = Fixture::with(|server| server, r#"{"max_connections": 2}"#);
    let session = it.session("2025-11-25").await;
    let headers = [EVENTS, ("mcp-session-id", session.as_str())];
    let mut first = it.start("GET", "/mcp", &headers, "").await.into_body();
    let second = it.start("GET", "/mcp", &headers, "").await;
    let third = it.start("GET", "/mcp", &headers, "").await;
    assert_eq!((second.status(), third.status()), (http::StatusCode::OK, http::StatusCode::OK));
    let mut text = String::new();
    while let Some(frame) = within("the end of the first", first.frame()).await {
        text += std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap();
    }
    assert!(text.ends_with(": closed: it made room for another (max_connections)\n\n"), "{text}");
    // Listen streams have half of that, and end in order.
    let listen = |id: u64| modern(id, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut one = it.open(&[], &listen(1)).await.into_body();
    assert!(next(&mut one).await.is_some());
    let mut other = it.open(&[], &listen(2)).await.into_body();
    assert!(next(&mut other).await.is_some());
    let answer = next(&mut one).await.expect("an answer");
    assert!(answer["id"] == 1 && answer["result"].is_object(), "{answer}");
    assert_eq!(next(&mut one).await, None);
}

#[tokio::test]
async fn what_was_accepted_before_the_end_of_its_session_is_answered() {
    let it = Fixture::new();
    for (round, accept) in ["application/json", "application/json, text/event-stream", EVENTS.1].iter().enumerate() {
        let session = it.session("2025-11-25").await;
        let named = [("mcp-session-id", session.as_str()), ("accept", accept)];
        let (call, delete) = (legacy(7, "tools/call", &tool("waits", json!({}))), async {
            until("the call runs", || it.gate.started() == round + 1).await;
            it.send("DELETE", "/mcp", &named[..1], "").await
        });
        let (answer, deleted) = tokio::join!(it.post(&named, &call), delete);
        assert_eq!((answer.status, deleted.status), (200, 204), "{accept}: {answer:?}");
        let error = answer.events.last().unwrap_or(&answer.json);
        assert_eq!((&error["id"], &error["error"]["message"]), (&json!(7), &json!("the session has ended")));
        assert_eq!(it.post(&named, &call).await.status, 404, "after the end");
    }
    assert_eq!(it.gate.cancelled(), 3);
}

#[tokio::test]
async fn the_end_of_the_server_answers_what_runs_in_sessions() {
    let it = Fixture::new();
    let session = it.session("2025-11-25").await;
    let named = [("mcp-session-id", session.as_str())];
    let call = legacy(7, "tools/call", &tool("waits", json!({})));
    let (answer, ()) = tokio::join!(it.post(&named, &call), async {
        until("the call runs", || it.gate.started() == 1).await;
        it.server.close();
    });
    let error = answer.events.last().unwrap_or(&answer.json);
    assert_eq!((answer.status, &error["error"]["message"]), (200, &json!("the server was closed")));
}

#[tokio::test]
async fn the_end_of_the_host_ends_streams_at_once_and_leaves_calls_their_time() {
    let it = Fixture::new();
    let session = it.session("2025-11-25").await;
    let named = [("mcp-session-id", session.as_str())];
    let mut stream = Reader::new(it.start("GET", "/mcp", &[EVENTS, named[0]], "").await);
    assert!(stream.next().await.is_some(), "a stream that can be resumed");
    let listen = modern(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut listening = it.open(&[], &listen).await.into_body();
    assert!(next(&mut listening).await.is_some());
    let old = legacy(7, "tools/call", &tool("waits", json!({})));
    let new = modern(8, "tools/call", tool("waits", json!({})));
    let ending = async {
        until("both calls run", || it.gate.started() == 2).await;
        let ended = it.endpoint.shutdown(PATIENCE);
        assert_eq!(stream.next().await, None);
        assert_eq!(next(&mut listening).await.expect("an answer")["id"], 1);
        assert_eq!(next(&mut listening).await, None);
        let refused = it.post(&[], &modern(9, "tools/list", json!({}))).await;
        assert_eq!((refused.status, refused.header("retry-after").as_deref()), (503, Some("1")));
        assert_eq!(it.start("GET", "/mcp", &[EVENTS, named[0]], "").await.status(), 503);
        it.gate.open();
        within("the end", ended).await;
    };
    let (old, new, ()) = tokio::join!(it.post(&named, &old), it.post(&[], &new), ending);
    for answer in [old, new] {
        let answered = answer.events.last().unwrap_or(&answer.json);
        assert_eq!((answer.status, &answered["result"]["content"][0]["text"]), (200, &json!("open")));
    }
    assert_eq!(it.gate.cancelled(), 0);
    // It can be served again.
    assert_eq!(it.post(&[], &modern(9, "tools/list", json!({}))).await.status, 200);
    assert_eq!(it.post(&named, &legacy(9, "tools/list", &json!({}))).await.status, 404);
}

#[tokio::test]
async fn calls_end_with_their_host_when_they_have_no_time_left() {
    let it = Fixture::new();
    let call = modern(8, "tools/call", tool("waits", json!({})));
    let (answer, ()) = tokio::join!(it.post(&[], &call), async {
        until("the call runs", || it.gate.started() == 1).await;
        within("the end", it.endpoint.shutdown(std::time::Duration::ZERO)).await;
    });
    assert!(answer.status == 503 || !answer.events.is_empty() || answer.text.contains("closed"), "{answer:?}");
    assert_eq!(it.gate.cancelled(), 1);
}

#[tokio::test]
async fn another_initialize_in_a_session_negotiates_anew() {
    let it = Fixture::new();
    let session = it.session("2025-11-25").await;
    let named = ("mcp-session-id", session.as_str());
    let again = it.post(&[named], &initialize("2025-06-18")).await;
    assert_eq!((again.status, &again.json["result"]["protocolVersion"]), (200, &json!("2025-06-18")));
    let list = legacy(2, "tools/list", &json!({}));
    for (version, status) in [("1999-01-01", 400), ("2025-06-18", 200)] {
        assert_eq!(it.post(&[named, ("mcp-protocol-version", version)], &list).await.status, status, "{version}");
    }
    let said = json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": null});
    assert_eq!(it.post(&[named], &said).await.status, 202);
    assert_eq!(it.post(&[named], &said).await.status, 202);
}

#[tokio::test]
async fn bodies_that_expand_are_refused_before_they_do() {
    let it = Fixture::new();
    let session = it.session("2025-03-26").await;
    let headers = |version| [("content-type", "application/json"), ("mcp-protocol-version", version)];
    let ones = format!("[{}1]", "1,".repeat((4 << 20) / 2 - 2));
    for (version, says) in [(MODERN, "batches are not part"), ("2025-11-25", "batch of 2097151 messages")] {
        let answer = it.send("POST", "/mcp", &headers(version), ones.clone()).await;
        assert_eq!(answer.refused(), (400, INVALID), "{version}");
        assert!(answer.text.contains(says), "{version}: {answer:?}");
    }
    let members = format!("[{}{{}}]", "{\"a\":0},".repeat((3 << 20) / 8));
    for (name, params) in [
        ("arguments", format!(r#"{{"name":"add","arguments":{{"a":{members}}}}}"#)),
        ("_meta", format!(r#"{{"_meta":{{"x":{members}}}}}"#)),
        ("params", format!(r#"{{"x":{members}}}"#)),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"tools/call","params":{params},"id":7}}"#);
        let named = ("mcp-session-id", session.as_str());
        for headers in [&headers(MODERN)[..], &[headers("2025-03-26")[0], named]] {
            let answer = it.send("POST", "/mcp", headers, body.clone()).await;
            assert_eq!((answer.refused(), &answer.json["id"]), ((400, INVALID), &json!(7)), "{name}");
            assert!(answer.text.contains("max_decoded_bytes"), "{name}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_body_that_is_packed_is_refused_as_such() {
    let it = Fixture::new();
    let body = modern(1, "tools/list", json!({}));
    for coding in ["gzip", "br", "deflate, gzip", "x"] {
        let answer = it.post(&[("content-encoding", coding)], &body).await;
        assert_eq!((answer.status, answer.header("accept-encoding").as_deref()), (415, Some("identity")), "{coding}");
        assert!(answer.text.contains("Content-Encoding"), "{answer:?}");
    }
    assert_eq!(it.post(&[("content-encoding", "identity")], &body).await.status, 200);
    for (coding, status) in [("gzip, chunked", 501), ("chunked, chunked", 400), ("chunked", 200)] {
        assert_eq!(it.post(&[("transfer-encoding", coding)], &body).await.status, status, "{coding}");
    }
}

#[tokio::test]
async fn the_target_says_more_of_the_host_than_its_header() {
    let it = Fixture::new();
    let body = modern(1, "tools/list", json!({}));
    for (target, host, status) in [
        ("http://evil.example.com/mcp", "localhost", 403),
        ("http://localhost:9000/mcp", "localhost", 200),
        ("/mcp", "localhost:9000", 200),
    ] {
        let mut headers = correct(&[], &body);
        headers.push(("host", host));
        assert_eq!(it.send("POST", target, &headers, body.to_string()).await.status, status, "{target} {host}");
    }
}

#[tokio::test]
async fn event_streams_are_not_to_be_transformed() {
    let it = Fixture::new();
    let session = it.session("2025-11-25").await;
    let named = ("mcp-session-id", session.as_str());
    let listen = modern(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut steps = modern(2, "tools/call", tool("steps", json!({})));
    steps["params"]["_meta"]["progressToken"] = json!(1);
    for response in [
        it.start("GET", "/mcp", &[EVENTS, named], "").await,
        it.open(&[], &listen).await,
        it.open(&[], &steps).await,
        it.open(&[EVENTS, named], &legacy(3, "ping", &json!({}))).await,
    ] {
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache, no-transform");
    }
}

// ---- without sessions ---------------------------------------------------------------------------------------------

#[tokio::test]
async fn handshake_revisions_can_be_served_without_sessions() {
    let it = Fixture::with(|server| server, r#"{"stateless": true}"#);
    let opened = it.post(&[], &initialize("2025-11-25")).await;
    assert_eq!((opened.status, opened.header("mcp-session-id")), (200, None));
    let declared = &opened.json["result"]["capabilities"];
    assert_eq!((&declared["tools"], &declared["logging"]), (&json!({}), &Value::Null), "{opened:?}");
    let said = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(it.post(&[], &said).await.status, 202);
    for version in ["2025-03-26", "2025-06-18", "2025-11-25", "-"] {
        let version = ("mcp-protocol-version", version);
        let call = legacy(2, "tools/call", &tool("add", json!({"a": 1, "b": 2})));
        // A session of another process is none of ours.
        let answer = it.post(&[version, ("mcp-session-id", "elsewhere")], &call).await;
        assert_eq!((answer.status, &answer.json["result"]["content"][0]["text"]), (200, &json!("3")), "{answer:?}");
        let asks = it.post(&[version], &legacy(3, "tools/call", &tool("roots", json!({})))).await;
        assert!(asks.status == 200 && !asks.text.contains("listed"), "{asks:?}");
    }
    for method in ["logging/setLevel", "resources/subscribe", "tasks/get"] {
        let answer = it.post(&[], &legacy(4, method, &json!({"uri": "a:b", "level": "info"}))).await;
        assert_eq!((answer.refused(), &answer.json["id"]), ((200, UNKNOWN_METHOD), &json!(4)), "{method}");
        assert!(answer.text.contains("session") && answer.text.contains("stateless"), "{answer:?}");
        let batch = json!([legacy(6, "ping", &json!({})), legacy(7, method, &json!({"uri": "a:b", "level": "info"}))]);
        let answer = it.post(&[("mcp-protocol-version", "2025-03-26")], &batch).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.text.contains("stateless") && answer.text.contains("\"id\":6"), "{answer:?}");
    }
    let call = legacy(5, "tools/call", &tool("steps", json!({})));
    let mut steps = call.clone();
    steps["params"]["_meta"] = json!({"progressToken": 1});
    assert_eq!(it.post(&[], &steps).await.events.len(), 3);
    for verb in ["GET", "DELETE"] {
        let answer = it.send(verb, "/mcp", &[EVENTS], "").await;
        assert_eq!((answer.status, answer.header("allow").as_deref()), (405, Some("POST")), "{verb}");
    }
    let batch = json!([legacy(6, "ping", &json!({})), legacy(7, "tools/list", &json!({}))]);
    let answer = it.post(&[("mcp-protocol-version", "2025-03-26")], &batch).await;
    assert_eq!(answer.json.as_array().map(Vec::len), Some(2), "{answer:?}");
    assert_eq!(it.post(&[("mcp-protocol-version", "2025-11-25")], &batch).await.status, 400);
    assert_eq!(it.post(&[], &modern(8, "tools/list", json!({}))).await.status, 200, "the newest revision goes on");
    assert_eq!(it.server.usage().sessions, 0);
}
