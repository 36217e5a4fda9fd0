//! A server's questions to a client that has not said that it is initialized; answers in arrays.

use super::*;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A server's connection whose client has opened it, and said no more.
fn early() -> Connection {
    let mut c = connection(Role::Server);
    let mut opening = initialize("2025-11-25");
    opening["params"]["capabilities"] = json!({"roots": {}});
    feed(&mut c, opening);
    c
}

fn question(call: u64, method: &str) -> Input {
    Input::Call(Invocation::new(CallId(call), method, None))
}

fn resolved(actions: &[Action]) -> Vec<(u64, Option<ErrorKind>)> {
    let outcomes = actions.iter().filter_map(|action| match action {
        Action::Resolve(call, outcome) => Some((call.0, outcome.as_ref().err().map(Error::kind))),
        _ => None,
    });
    outcomes.collect()
}

#[test]
fn a_question_waits_for_initialized() {
    let mut c = early();
    // A question of the client shows that it is there, and not that it is ready to be asked.
    dispatched(feed(&mut c, call(1)));
    assert!(c.handle(at(1), question(1, "roots/list")).is_empty());
    assert!(c.is_due_sooner());
    assert_eq!(c.next_tick(), Some(at(6)));
    assert!(c.handle(at(5), Input::Tick).is_empty());
    let actions =
        c.handle(at(5), Input::Received(message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))));
    assert_eq!(one(&actions)["method"], "roots/list");
    assert_eq!(c.next_tick(), None);
    assert_eq!(one(&c.handle(at(5), question(2, "roots/list")))["method"], "roots/list");
}

#[test]
fn it_does_not_wait_for_ever() {
    let mut c = early();
    assert!(c.handle(at(1), question(1, "roots/list")).is_empty());
    assert!(c.handle(at(4), question(2, "roots/list")).is_empty());
    assert_eq!(sent(&c.handle(at(6), Input::Tick)).len(), 2, "both with the first one's patience");
    assert_eq!(one(&c.handle(at(6), question(3, "roots/list")))["method"], "roots/list");
}

#[test]
fn a_sign_of_life_may_be_asked_for_at_once() {
    let mut c = early();
    assert_eq!(one(&c.handle(at(1), question(1, "ping")))["method"], "ping");
    // Cancelled while it waits, a question is never sent.
    assert!(c.handle(at(1), question(2, "roots/list")).is_empty());
    assert!(c.handle(at(2), Input::Cancel(CallId(2), None)).is_empty());
    assert!(sent(&c.handle(at(6), Input::Tick)).is_empty());
}

#[test]
fn what_the_client_cannot_take_does_not_wait() {
    let mut c = early();
    let unsupported = Some(ErrorKind::Unsupported);
    for (call, method) in [(1, "sampling/createMessage"), (2, "subscriptions/listen")] {
        assert_eq!(resolved(&c.handle(at(1), question(call, method))), [(call, unsupported)], "{method}");
    }
    let mode = RawJson::from_value(&json!({"mode": "voice", "message": "m"}));
    let wrong = c.handle(at(1), Input::Call(Invocation::new(CallId(3), "elicitation/create", Some(mode))));
    assert!(matches!(&*resolved(&wrong), [(3, Some(_))]), "{wrong:?}");
    assert_eq!((c.awaited(), c.next_tick()), (0, None));
}

#[test]
fn a_ping_passes_the_questions_that_wait() {
    let mut c = early();
    assert!(c.handle(at(1), question(1, "roots/list")).is_empty());
    assert!(c.handle(at(1), question(2, "roots/list")).is_empty());
    assert_eq!(one(&c.handle(at(1), question(3, "ping")))["method"], "ping");
    let actions =
        c.handle(at(2), Input::Received(message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))));
    assert_eq!(sent(&actions).len(), 2);
}

#[test]
fn an_answer_in_an_array_fails_its_request_where_there_are_no_batches() {
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut c = connection(Role::Server);
        let mut opening = initialize(revision);
        opening["params"]["capabilities"] = json!({"roots": {}});
        feed(&mut c, opening);
        feed(&mut c, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let asked = [1, 2, 3].map(|call| one(&c.handle(START, question(call, "roots/list")))["id"].clone());
        let text = json!([
            {"jsonrpc": "2.0", "id": asked[0], "result": {"roots": []}},
            {"jsonrpc": "2.0", "id": asked[1], "result": 7},
        ]);
        let decoded = jsonrpc::decode(&Bytes::from(text.to_string()), &jsonrpc::Limits::default());
        let Ok(jsonrpc::Decoded::Batch(parts)) = decoded else { panic!("{decoded:?}") };
        let actions = c.handle(START, Input::Batch(parts));
        let failed = Some(ErrorKind::PeerMisbehaved);
        assert_eq!(resolved(&actions), [(1, failed), (2, failed)], "{revision}");
        assert_eq!(one(&actions)["error"]["code"], code::INVALID_REQUEST);
        assert_eq!(c.awaited(), 1, "what is not answered in it goes on");
    }
}

#[test]
fn an_answer_in_a_batch_that_is_too_long_fails_its_request() {
    let mut c = connection(Role::Server);
    let mut opening = initialize("2025-03-26");
    opening["params"]["capabilities"] = json!({"roots": {}});
    feed(&mut c, opening);
    feed(&mut c, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let asked = one(&c.handle(START, question(1, "roots/list")))["id"].clone();
    let mut parts = vec![json!({"jsonrpc": "2.0", "method": "notifications/x"}); 10_000];
    parts.push(json!({"jsonrpc": "2.0", "id": asked, "result": {"roots": []}}));
    let text = Value::Array(parts).to_string();
    let refused = jsonrpc::decode(&Bytes::from(text), &jsonrpc::Limits::default()).expect_err("too many");
    let actions = c.handle(START, Input::Invalid(refused));
    assert_eq!(resolved(&actions), [(1, Some(ErrorKind::PeerMisbehaved))]);
    assert_eq!(one(&actions)["error"]["code"], code::INVALID_REQUEST);
    assert_eq!(c.awaited(), 0);
}

#[test]
fn a_request_with_an_envelope_is_not_part_of_a_batch() {
    let mut c = connection(Role::Server);
    feed(&mut c, initialize("2025-03-26"));
    feed(&mut c, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for method in ["tools/list", "subscriptions/listen"] {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let text = json!([
            {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": meta}},
            {"jsonrpc": "2.0", "id": 8, "method": "ping"},
        ]);
        let decoded = jsonrpc::decode(&Bytes::from(text.to_string()), &jsonrpc::Limits::default());
        let Ok(jsonrpc::Decoded::Batch(parts)) = decoded else { panic!("{decoded:?}") };
        let answers = one(&c.handle(START, Input::Batch(parts)));
        assert_eq!(answers[0]["error"]["code"], code::INVALID_REQUEST, "{method}");
        assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!(7), &json!(8)), "{method}");
        assert_eq!(answers[1]["result"], json!({}), "{method}");
    }
}
