//! The legacy revisions: sessions, their streams, batches.

use std::time::Duration;

use super::*;

fn in_session(session: &str) -> [(&str, &str); 1] {
    [("mcp-session-id", session)]
}

const GET: (&str, &str) = ("accept", "text/event-stream");

#[tokio::test]
async fn a_session_is_issued_required_and_ended() {
    let it = Fixture::new();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let id = it.session(version).await;
        assert!(id.len() >= 22 && id.bytes().all(|b| b.is_ascii_graphic()), "{id}");
        let named = in_session(&id);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = it.post(&named, &initialized).await;
        assert_eq!((answer.status, answer.text.as_str()), (202, ""));
        assert_eq!(it.post(&named, &legacy(1, "ping", &json!({}))).await.json["result"], json!({}));
        let add = legacy(2, "tools/call", &tool("add", json!({"a": 1, "b": 2})));
        assert_eq!(it.post(&named, &add).await.json["result"]["content"][0]["text"], "3");
        // Responses that nobody asked for.
        let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        assert_eq!(it.post(&named, &response).await.status, 202);
        for (headers, status) in [(&[][..], 400), (&[("mcp-session-id", "no-such-session")], 404)] {
            for body in [&add, &initialized, &response] {
                let answer = it.post(headers, body).await;
                assert_eq!(answer.status, status, "{answer:?}");
                assert!(answer.text.contains("ession"), "{answer:?}");
                assert_eq!(answer.json["id"], if *body == add { json!(2) } else { Value::Null });
            }
            assert_eq!(it.send("DELETE", "/mcp", headers, "").await.status, status);
            assert_eq!(it.send("GET", "/mcp", &[headers, &[GET]].concat(), "").await.status, status);
        }
        assert_eq!(it.send("DELETE", "/mcp", &named, "").await.status, 204);
        assert_eq!(it.send("DELETE", "/mcp", &named, "").await.status, 404);
        assert_eq!(it.post(&named, &add).await.status, 404);
    }
    assert_eq!(it.server.usage(), tricorn::server::Usage::default());
}

#[tokio::test]
async fn only_a_successful_initialize_starts_a_session() {
    let it = Fixture::new();
    for body in [
        legacy(1, "initialize", &json!({})),
        legacy(1, "initialize", &json!({"protocolVersion": 7})),
        legacy(1, "tools/list", &json!({})),
    ] {
        let answer = it.post(&[], &body).await;
        assert!(answer.json["error"]["code"].is_i64(), "{answer:?}");
        assert!(!answer.headers.contains_key("mcp-session-id"), "{answer:?}");
    }
    let batch = json!([initialize("2025-03-26")]);
    assert_eq!(it.post(&[], &batch).await.refused(), (400, INVALID));
    assert_eq!(it.server.usage().sessions, 0);
    let id = it.session("2025-03-26").await;
    let again = it.post(&in_session(&id), &initialize("2025-03-26")).await;
    assert_eq!(again.json["result"]["protocolVersion"], "2025-03-26", "{again:?}");
    assert_eq!(it.server.usage().sessions, 1);
    // Counter-offer, and a header that says what is asked for.
    let answer = it.post(&[("mcp-protocol-version", "2025-11-25")], &initialize("1999-01-01")).await;
    assert_eq!(answer.json["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn the_version_header_is_one_that_is_served_or_absent() {
    let it = Fixture::new();
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let id = it.session(version).await;
        let ping = legacy(1, "ping", &json!({}));
        for (header, status) in
            [("-", 200), (version, 200), ("1999-01-01", 400), ("2025-03-26", 200), ("a version", 400)]
        {
            let answer = it.post(&[("mcp-session-id", &id), ("mcp-protocol-version", header)], &ping).await;
            assert_eq!(answer.status, status, "{version} {header}: {answer:?}");
            assert!(status == 200 || answer.text.contains(header), "{answer:?}");
        }
        let headers = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", "1999-01-01"), GET];
        assert_eq!(it.send("GET", "/mcp", &headers, "").await.status, 400);
        assert_eq!(it.send("DELETE", "/mcp", &headers, "").await.status, 400);
        // The header is of the requests that follow: `initialize` says itself what it asks for.
        for header in ["1999-01-01", "2027-01-01", "2026-07-28", ""] {
            let answer = it.post(&[("mcp-protocol-version", header)], &initialize(version)).await;
            assert_eq!(answer.json["result"]["protocolVersion"], version, "{header}: {answer:?}");
        }
        let gone = it.post(&[("mcp-session-id", "gone")], &initialize(version)).await;
        assert_eq!(gone.status, 200, "{gone:?}");
        assert_ne!(gone.header("mcp-session-id"), Some("gone".to_owned()));
    }
}

#[tokio::test]
async fn one_endpoint_serves_both_eras() {
    let it = Fixture::new();
    let id = it.session("2025-06-18").await;
    let add = tool("add", json!({"a": 1, "b": 2}));
    let in_legacy = it.post(&in_session(&id), &legacy(1, "tools/call", &add)).await;
    assert_eq!(in_legacy.json["result"]["structuredContent"], json!({"result": 3}));
    let stateless = it.post(&in_session(&id), &modern(1, "tools/call", add)).await;
    assert_eq!(stateless.json["result"]["structuredContent"], 3);
    assert!(!stateless.headers.contains_key("mcp-session-id"));
    assert_eq!(it.server.usage().sessions, 1);
}

#[tokio::test]
async fn batches_are_answered_where_they_exist() {
    let it = Fixture::new();
    let (ping, add) = (legacy(1, "ping", &json!({})), legacy("b", "tools/call", &tool("add", json!({"a": 1, "b": 2}))));
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}});
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let id = it.session(version).await;
        let answer = it.post(&in_session(&id), &json!([ping])).await;
        assert_eq!(answer.refused(), (400, INVALID), "{answer:?}");
        assert!(answer.text.contains("batch"));
    }
    let id = it.session("2025-03-26").await;
    let named = in_session(&id);
    let answer = it.post(&named, &json!([ping, cancelled, add, 7])).await;
    assert_eq!(answer.status, 200);
    let answers = answer.json.as_array().unwrap();
    assert_eq!(answers.len(), 3, "{answer:?}");
    assert!(answers.iter().any(|a| a["id"] == "b" && a["result"]["content"][0]["text"] == "3"));
    assert!(answers.iter().any(|a| a["error"]["code"] == INVALID));
    let answer = it.post(&named, &json!([cancelled, {"jsonrpc": "2.0", "id": 1, "result": {}}])).await;
    assert_eq!((answer.status, answer.text.as_str()), (202, ""));
    // Something before the answers makes it a stream; the answers stay together.
    let steps = json!({"name": "steps", "arguments": {}, "_meta": {"progressToken": "t"}});
    let answer = it.post(&named, &json!([ping, legacy(2, "tools/call", &steps)])).await;
    assert_eq!(answer.events.len(), 3, "{answer:?}");
    assert_eq!(answer.events[2].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn errors_in_a_methods_own_terms_are_ordinary_answers() {
    let it = Fixture::new();
    let id = it.session("2025-11-25").await;
    for (body, code) in [
        (legacy(1, "no/such", &json!({})), UNKNOWN_METHOD),
        (legacy(1, "server/discover", &json!({})), UNKNOWN_METHOD),
        (legacy(1, "tools/call", &tool("no such", json!({}))), PARAMS),
        (legacy(1, "tools/call", &tool("samples", json!({}))), PARAMS),
        (legacy(1, "tools/list", &json!({"_meta": 7})), PARAMS),
    ] {
        let answer = it.post(&in_session(&id), &body).await;
        assert_eq!((answer.refused(), &answer.json["id"]), ((200, code), &json!(1)), "{answer:?}");
    }
}

#[tokio::test]
async fn an_id_in_use_is_refused_within_its_session_only() {
    let it = Fixture::new();
    let (one, two) = (it.session("2025-11-25").await, it.session("2025-11-25").await);
    let call = legacy("same", "tools/call", &json!({"name": "waits", "arguments": {}, "_meta": {"progressToken": 1}}));
    let mut running = it.open(&in_session(&one), &call).await;
    let ping = legacy("same", "ping", &json!({}));
    assert_eq!(it.post(&in_session(&one), &ping).await.refused(), (400, INVALID));
    assert_eq!(it.post(&in_session(&two), &ping).await.status, 200);
    it.gate.open();
    assert_eq!(next(running.body_mut()).await.unwrap()["params"]["progress"], 0);
    assert_eq!(next(running.body_mut()).await.unwrap()["result"]["content"][0]["text"], "open");
}

#[tokio::test]
async fn a_lost_connection_is_no_cancellation_and_a_notification_is() {
    let it = Fixture::new();
    let id = it.session("2025-11-25").await;
    let named = in_session(&id);
    let call =
        |id: &str| legacy(id, "tools/call", &json!({"name": "waits", "arguments": {}, "_meta": {"progressToken": id}}));
    drop(it.open(&named, &call("lost")).await);
    assert_eq!((it.gate.started(), it.gate.cancelled(), it.server.usage().in_flight), (1, 0, 1));
    it.gate.open();
    assert_eq!(it.server.usage().in_flight, 0);
    let mut running = it.open(&named, &call("unwanted")).await;
    assert!(next(running.body_mut()).await.is_some());
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "unwanted"}});
    assert_eq!(it.post(&named, &cancel).await.status, 202);
    assert_eq!(next(running.body_mut()).await, None, "no answer");
    assert_eq!(it.gate.cancelled(), 1);
    // Before the head is sent.
    let silent = legacy("silent", "tools/call", &tool("waits", json!({})));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "silent"}});
    let cancelling = async {
        until("the call runs", || it.gate.started() == 3).await;
        assert_eq!(it.post(&named, &cancel).await.status, 202);
    };
    let (answer, ()) = tokio::join!(it.post(&named, &silent), cancelling);
    assert_eq!((answer.status, answer.text.as_str()), (200, ""));
    assert_eq!(it.server.usage().in_flight, 0);
}

#[tokio::test]
async fn what_belongs_to_a_call_goes_to_its_own_answer() {
    let it = Fixture::new();
    let id = it.session("2025-11-25").await;
    let named = in_session(&id);
    let mut stream = it.start("GET", "/mcp", &[named[0], GET], "").await;
    assert_eq!(
        (stream.status().as_u16(), &stream.headers()["content-type"]),
        (200, &http::HeaderValue::from_static("text/event-stream"))
    );
    let steps =
        |id: &str| legacy(id, "tools/call", &json!({"name": "steps", "arguments": {}, "_meta": {"progressToken": id}}));
    let (first, second) = (steps("1"), steps("2"));
    let (a, b) = tokio::join!(it.post(&named, &first), it.post(&named, &second));
    for (answer, id) in [(a, "1"), (b, "2")] {
        assert_eq!(answer.events.len(), 3, "{answer:?}");
        assert!(answer.events[..2].iter().all(|e| e["params"]["progressToken"] == id), "{answer:?}");
        assert_eq!(answer.events[2]["id"], id);
    }
    assert_eq!(it.server.usage().streams, 1);
    assert_eq!(it.send("DELETE", "/mcp", &named, "").await.status, 204);
    assert_eq!(next(stream.body_mut()).await, None, "the session's end is the stream's");
    drop(stream);
    assert_eq!(it.server.usage(), tricorn::server::Usage::default());
}

#[tokio::test]
async fn ending_a_session_ends_its_calls() {
    let it = Fixture::new();
    let id = it.session("2025-11-25").await;
    let named = in_session(&id);
    let ending = async {
        until("the call runs", || it.gate.started() == 1).await;
        assert_eq!(it.send("DELETE", "/mcp", &named, "").await.status, 204);
    };
    let call = legacy(1, "tools/call", &tool("waits", json!({})));
    let (answer, ()) = tokio::join!(it.post(&named, &call), ending);
    assert_eq!((answer.status, it.gate.cancelled()), (200, 1), "{answer:?}");
}

#[tokio::test]
async fn streams_of_a_session_are_bounded() {
    let it = Fixture::new();
    let id = it.session("2025-11-25").await;
    let headers = [in_session(&id)[0], GET];
    let mut streams = Vec::new();
    for _ in 0..16 {
        let stream = it.start("GET", "/mcp", &headers, "").await;
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    assert_eq!(it.send("GET", "/mcp", &headers, "").await.status, 409);
    streams.pop();
    assert_eq!(it.start("GET", "/mcp", &headers, "").await.status(), 200);
    let headers = [in_session(&id)[0], ("accept", "application/json")];
    assert_eq!(it.send("GET", "/mcp", &headers, "").await.status, 406);
}

#[tokio::test]
async fn the_session_idle_for_longest_makes_room() {
    let it = Fixture::with(|server| server, r#"{"max_sessions": 2}"#);
    let ping = legacy(1, "ping", &json!({}));
    let alive = async |id: &str| it.post(&in_session(id), &ping).await.status == 200;
    let (one, two) = (it.session("2025-11-25").await, it.session("2025-11-25").await);
    assert!(alive(&one).await);
    let three = it.session("2025-11-25").await;
    assert!(alive(&one).await && !alive(&two).await && alive(&three).await);
    // A stream keeps a session busy, although the other was used later.
    let stream = it.start("GET", "/mcp", &[in_session(&one)[0], GET], "").await;
    assert!(alive(&three).await);
    let four = it.session("2025-11-25").await;
    assert!(alive(&one).await && !alive(&three).await && alive(&four).await);
    let other = it.start("GET", "/mcp", &[in_session(&four)[0], GET], "").await;
    let refused = it.post(&[], &initialize("2025-11-25")).await;
    assert_eq!(refused.status, 503, "all are busy: {refused:?}");
    drop((stream, other));
    it.session("2025-11-25").await;
    assert_eq!(it.server.usage().sessions, 2);
}

#[tokio::test]
async fn an_idle_session_ends_by_itself_and_a_busy_one_does_not() {
    let it = Fixture::with(|server| server, r#"{"session_idle_timeout": 0.05}"#);
    let (idle, busy) = (it.session("2025-11-25").await, it.session("2025-11-25").await);
    let stream = it.start("GET", "/mcp", &[in_session(&busy)[0], GET], "").await;
    until("the idle one is gone", || it.server.usage().sessions == 1).await;
    let ping = legacy(1, "ping", &json!({}));
    assert_eq!(it.post(&in_session(&idle), &ping).await.status, 404);
    assert_eq!(it.post(&in_session(&busy), &ping).await.status, 200);
    drop(stream);
    until("nothing is left", || it.server.usage().sessions == 0).await;
}

#[tokio::test]
async fn a_call_whose_client_has_hung_up_does_not_keep_its_session() {
    let it = Fixture::with(|server| server, r#"{"session_idle_timeout": 0.05}"#);
    let id = it.session("2025-11-25").await;
    let call = legacy(1, "tools/call", &json!({"name": "waits", "arguments": {}, "_meta": {"progressToken": 1}}));
    drop(it.open(&in_session(&id), &call).await);
    assert_eq!(it.gate.started(), 1);
    until("the session is gone", || it.server.usage().sessions == 0).await;
    until("the handler is told", || it.gate.cancelled() == 1).await;
}

#[tokio::test]
async fn a_client_that_answers_no_ping_loses_its_session() {
    let (interval, timeout) = (Duration::from_millis(50), Duration::from_millis(200));
    let it = Fixture::with(|server| server.ping_interval(interval).ping_timeout(timeout), "{}");
    let (id, other) = (it.session("2025-11-25").await, it.session("2025-11-25").await);
    let mut stream = it.start("GET", "/mcp", &[("mcp-session-id", &id), GET], "").await.into_body();
    // What is answered is a sign of life.
    for _ in 0..2 {
        let ping = within("a ping", next(&mut stream)).await.unwrap();
        assert_eq!(ping["method"], "ping");
        let answer = json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}});
        assert_eq!(it.post(&in_session(&id), &answer).await.status, 202);
    }
    let ended = async { while next(&mut stream).await.is_some() {} };
    within("the end of the stream", ended).await;
    let ping = legacy(1, "ping", &json!({}));
    assert_eq!(it.post(&in_session(&id), &ping).await.status, 404);
    assert_eq!(it.post(&in_session(&other), &ping).await.status, 200, "it could not be asked");
}
