//! Streams that break off, and what their clients get when they ask for the rest.
#![cfg(feature = "http")]
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::{Value, json};
use tricorn::server::Usage;

use crate::http_server::fixture::*;
use crate::http_server::reader::{Event, Reader};

const GET: (&str, &str) = ("accept", "text/event-stream");
const LATEST: &str = "2025-11-25";

fn in_session(session: &str) -> [(&str, &str); 1] {
    [("mcp-session-id", session)]
}

fn call(id: &str, tool: &str) -> Value {
    legacy(id, "tools/call", &json!({"name": tool, "arguments": {}, "_meta": {"progressToken": id}}))
}

async fn get(it: &Fixture, session: &str, last: Option<&str>) -> Reader {
    let mut headers = vec![in_session(session)[0], GET];
    headers.extend(last.map(|last| ("last-event-id", last)));
    Reader::new(it.start("GET", "/mcp", &headers, "").await)
}

async fn refused(it: &Fixture, session: &str, last: &str) -> Answer {
    it.send("GET", "/mcp", &[in_session(session)[0], GET, ("last-event-id", last)], "").await
}

#[tokio::test]
async fn a_stream_begins_with_an_event_without_data_where_the_revision_has_it() {
    let it = Fixture::with(|server| server, r#"{"sse_retry": 2.5}"#);
    for (version, primes) in [("2025-03-26", false), ("2025-06-18", false), (LATEST, true)] {
        let session = it.session(version).await;
        let events = Reader::new(it.open(&in_session(&session), &call("1", "steps")).await).rest().await;
        let mut ids: Vec<_> = events.iter().map(|event| event.id.clone()).collect();
        assert_eq!(events.len(), if primes { 4 } else { 3 }, "{version}: {events:?}");
        assert_eq!((events[0].retry == "2500", events[0].data.is_empty()), (primes, primes), "{version}: {events:?}");
        assert!(ids.iter().all(|id| id.starts_with('r')), "{ids:?}");
        assert_eq!(events.last().unwrap().json()["id"], "1");
        let standalone = it.start("GET", "/mcp", &[in_session(&session)[0], GET], "").await;
        if primes {
            let first = Reader::new(standalone).next().await.unwrap();
            assert_eq!((&first.id[..1], &*first.retry, &*first.data), ("s", "2500", ""));
            ids.push(first.id);
        }
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "each only once in a session");
    }
    // An answer that comes at once is no stream, and a stateless revision has no ids.
    let session = it.session(LATEST).await;
    let ping = it.post(&in_session(&session), &legacy(1, "ping", &json!({}))).await;
    assert_eq!(ping.json["result"], json!({}));
    let mut steps = modern(1, "tools/call", tool("steps", json!({})));
    steps["params"]["_meta"]["progressToken"] = json!("1");
    let stateless = it.post(&[], &steps).await;
    assert!(stateless.events.len() == 3 && !stateless.text.contains("id: "), "{stateless:?}");
}

#[tokio::test]
async fn a_call_goes_on_without_its_stream_and_is_answered_on_the_next() {
    let it = Fixture::new();
    let session = it.session(LATEST).await;
    let mut stream = Reader::new(it.open(&in_session(&session), &call("1", "waits")).await);
    let primed = stream.next().await.unwrap();
    let first = stream.next().await.unwrap();
    assert_eq!((primed.data.as_str(), &first.json()["params"]["progress"]), ("", &json!(0)));
    drop(stream);
    it.gate.progress(1.0);
    // Another stream gets nothing of it.
    let mut other = get(&it, &session, None).await;
    assert_eq!(other.next().await.unwrap().data, "");
    let mut resumed = get(&it, &session, Some(&first.id)).await;
    assert_eq!(resumed.next().await.unwrap().json()["params"]["progress"], 1);
    it.gate.progress(2.0);
    let seen = resumed.next().await.unwrap();
    assert_eq!(seen.json()["params"]["progress"], 2);
    drop(resumed);
    it.gate.open();
    assert_eq!((it.server.usage().in_flight, it.gate.cancelled()), (0, 0));
    let rest = get(&it, &session, Some(&seen.id)).await.rest().await;
    assert_eq!(rest.len(), 1, "the answer and nothing twice: {rest:?}");
    assert_eq!(rest[0].json()["result"]["content"][0]["text"], "open");
    // The whole stream again, for a client that has seen its beginning only.
    let all = get(&it, &session, Some(&primed.id)).await.rest().await;
    assert_eq!(all.iter().map(|e| e.json()["params"]["progress"].clone()).collect::<Vec<_>>()[..3], [0, 1, 2]);
    let nothing = refused(&it, &session, &rest[0].id).await;
    assert!(nothing.status == 400 && nothing.text.contains("is over"), "{nothing:?}");
    assert_eq!(it.send("DELETE", "/mcp", &in_session(&session), "").await.status, 204);
    assert_eq!(other.next().await, None);
    drop(other);
    assert_eq!(it.server.usage(), Usage::default());
}

#[tokio::test]
async fn a_handler_may_end_its_stream_before_it_answers() {
    let it = Fixture::new();
    let session = it.session(LATEST).await;
    let mut stream = Reader::new(it.open(&in_session(&session), &call("1", "pauses")).await);
    let primed = stream.next().await.unwrap();
    assert_eq!((primed.retry.as_str(), stream.next().await), ("1000", None));
    assert_eq!((it.gate.started(), it.gate.cancelled()), (1, 0));
    it.gate.open();
    let rest = get(&it, &session, Some(&primed.id)).await.rest().await;
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[1].json()["id"], "1");
    // Where the revision does not know it, the stream stays.
    let session = it.session("2025-06-18").await;
    let mut stream = Reader::new(it.open(&in_session(&session), &call("2", "pauses")).await);
    assert_eq!(stream.next().await.unwrap().json()["params"]["progress"], 0);
    it.gate.open();
    assert_eq!(stream.next().await.unwrap().json()["id"], "2");
    let json =
        it.post(&[in_session(&session)[0], ("accept", "application/json")], &legacy(3, "ping", &json!({}))).await;
    assert_eq!(json.json["id"], 3);
}

#[tokio::test]
async fn ids_of_nobody_are_refused_and_what_is_dropped_is_gone() {
    let it = Fixture::with(|server| server, r#"{"max_events": 2}"#);
    let session = it.session(LATEST).await;
    let other = it.session(LATEST).await;
    let mut stream = Reader::new(it.open(&in_session(&session), &call("1", "waits")).await);
    let primed = stream.next().await.unwrap();
    drop(stream);
    for progress in 1..5 {
        it.gate.progress(f64::from(progress));
    }
    it.gate.open();
    let rest = get(&it, &session, Some(&primed.id)).await.rest().await;
    let kept: Vec<_> = rest.iter().map(Event::json).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!((&kept[0]["params"]["progress"], &kept[1]["id"]), (&json!(4), &json!("1")));
    for last in ["r1-99", "x", "r0-0", "r99-99"] {
        let answer = refused(&it, &session, last).await;
        assert!(answer.status == 400 && answer.text.contains("Last-Event-ID"), "{answer:?}");
    }
    assert_eq!(refused(&it, &other, &rest[1].id).await.status, 400, "another session's");
    assert_eq!(refused(&it, "no-such-session", &rest[1].id).await.status, 404);
}

#[tokio::test]
async fn without_room_for_events_there_is_nothing_to_resume() {
    let it = Fixture::with(|server| server, r#"{"max_events": 0}"#);
    let session = it.session(LATEST).await;
    let mut stream = Reader::new(it.open(&in_session(&session), &call("1", "pauses")).await);
    assert_eq!(stream.next().await.unwrap().id, "");
    it.gate.open();
    assert_eq!(stream.next().await.unwrap().json()["id"], "1");
    let streams = it.server.usage().streams;
    let _standalone = get(&it, &session, Some("whatever")).await;
    assert_eq!(it.server.usage().streams, streams + 1);
}
