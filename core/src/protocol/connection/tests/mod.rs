mod client;
mod early;
mod keep_alive;
mod listening;
mod opening;
mod restarting;
mod restoring;
#[cfg(feature = "redis")]
mod sharing;

use serde_json::{Value, json};

use super::*;
use crate::error::ErrorKind;
use crate::jsonrpc::code;
use crate::model::Capabilities;
use crate::protocol::revision::{Method, modern};

fn facts(role: Role, max_in_flight: usize) -> Arc<Facts> {
    let capabilities = if role == Role::Server { r#"{"tools":{},"logging":{}}"# } else { "{}" };
    Arc::new(Facts {
        role,
        info: RawJson::trusted(r#"{"name":"n","version":"1","title":"T","icons":[]}"#),
        capabilities: Capabilities::new(RawJson::trusted(capabilities)),
        instructions: Some("Be kind.".into()),
        discovery: crate::model::CacheHints::new(),
        revisions: Revision::ALL.to_vec(),
        max_in_flight,
        methods: Vec::new(),
        passes_on: false,
        max_listeners: 64,
        max_queued_notifications: 256,
        keep_alive: None,
    })
}

fn connection(role: Role) -> Connection {
    Connection::new(facts(role, 4), Arc::new(Transport::new("stdio")))
}

const START: Duration = Duration::ZERO;

fn message(value: &Value) -> Message {
    match jsonrpc::decode(&Bytes::from(value.to_string()), &jsonrpc::Limits::default()).expect("a message") {
        jsonrpc::Decoded::One(message) => message,
        jsonrpc::Decoded::Batch(_) => panic!("a batch"),
    }
}

fn feed(c: &mut Connection, value: Value) -> Vec<Action> {
    c.handle(START, Input::Received(message(&value)))
}

/// The messages among the actions.
fn sent(actions: &[Action]) -> Vec<Value> {
    let frames = actions.iter().filter_map(|a| match a {
        Action::Send(outbound) => Some(&outbound.frame),
        _ => None,
    });
    frames.map(|frame| serde_json::from_slice(frame).expect("json")).collect()
}

fn one(actions: &[Action]) -> Value {
    let all = sent(actions);
    assert_eq!(all.len(), 1, "{actions:?}");
    all.into_iter().next().unwrap_or_default()
}

fn dispatched(actions: Vec<Action>) -> Box<Call> {
    actions
        .into_iter()
        .find_map(|a| if let Action::Dispatch(call) = a { Some(call) } else { None })
        .expect("a dispatch")
}

fn initialize(revision: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": revision,
        "capabilities": {"sampling": {}}, "clientInfo": {"name": "c", "version": "1"}}})
}

fn envelope(revision: &str) -> Value {
    json!({"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": {}})
}

fn call(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}})
}

fn legacy(revision: &str) -> Connection {
    let mut c = connection(Role::Server);
    feed(&mut c, initialize(revision));
    feed(&mut c, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    c
}

#[test]
fn every_method_is_in_the_table_and_says_no_by_table() {
    assert_eq!(Method::all().len(), 34);
    for revision in Revision::ALL {
        for method in Method::all().iter().filter(|m| !m.notification) {
            let mut c = connection(Role::Server);
            let mut request = json!({"jsonrpc": "2.0", "id": 7, "method": method.name, "params": {}});
            if revision.era() == Era::Modern {
                request["params"]["_meta"] = envelope(revision.as_str());
            } else {
                feed(&mut c, initialize(revision.as_str()));
            }
            let actions = feed(&mut c, request);
            let served = method.exists_in(revision)
                && method.from_client()
                && method.capability.is_none_or(|c| ["tools", "logging"].contains(&c));
            let code = sent(&actions).first().and_then(|m| m["error"]["code"].as_i64());
            assert_eq!(code != Some(code::METHOD_NOT_FOUND), served, "{} in {revision}: {actions:?}", method.name);
        }
    }
}

#[test]
fn what_cannot_be_read_has_the_id_that_its_sender_knows() {
    let unreadable = |c: &mut Connection| {
        let read = jsonrpc::decode(&Bytes::from_static(b"{"), &jsonrpc::Limits::default());
        one(&c.handle(START, Input::Invalid(read.expect_err("no JSON"))))
    };
    // Nobody has said yet how old it is; from then on it is known.
    let mut c = connection(Role::Server);
    assert_eq!(unreadable(&mut c).get("id"), Some(&Value::Null));
    let discover =
        json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": envelope("2026-07-28")}});
    feed(&mut c, discover);
    assert_eq!(unreadable(&mut c).get("id"), None);
    feed(&mut c, initialize("2024-11-05"));
    assert_eq!(unreadable(&mut c).get("id"), Some(&Value::Null));
}

#[test]
fn initialize_echoes_or_counters() {
    for revision in Revision::of_era(Era::Legacy) {
        let answer = one(&feed(&mut connection(Role::Server), initialize(revision.as_str())));
        assert_eq!(answer["result"]["protocolVersion"], revision.as_str());
        assert_eq!(answer["result"]["serverInfo"].get("title").is_some(), revision.rules().structured);
        assert_eq!(answer["result"]["serverInfo"].get("icons").is_some(), revision.rules().icons);
    }
    for unknown in ["1999-01-01", "2099-01-01", Revision::NEWEST.as_str()] {
        let answer = one(&feed(&mut connection(Role::Server), initialize(unknown)));
        assert_eq!(answer["result"]["protocolVersion"], Revision::NEWEST_LEGACY.as_str(), "{unknown}");
    }
}

#[test]
fn requests_before_initialize_are_told_what_to_do() {
    let mut c = connection(Role::Server);
    assert_eq!(one(&feed(&mut c, json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})))["result"], json!({}));
    let early = one(&feed(&mut c, call(2)));
    assert_eq!(early["error"]["code"], code::INVALID_REQUEST);
    assert!(early["error"]["message"].as_str().is_some_and(|m| m.contains("initialize")));
    assert_eq!(one(&feed(&mut c, initialize("2025-06-18")))["id"], 0);
    let again = one(&feed(&mut c, initialize("2025-06-18")));
    assert_eq!(again["result"]["protocolVersion"], "2025-06-18", "one pipe may serve several clients");
}

#[test]
fn both_eras_share_one_pipe() {
    let mut c = legacy("2025-06-18");
    let mut modern = call(5);
    modern["params"]["_meta"] = envelope("2026-07-28");
    let run = dispatched(feed(&mut c, modern));
    assert_eq!(run.context.revision, Revision::NEWEST);
    let answer = one(&c.handle(START, Input::Completed(run.id, Ok(Payload::Text("x".into())))));
    assert_eq!(answer["result"]["resultType"], "complete");
    let run = dispatched(feed(&mut c, call(6)));
    assert_eq!(run.context.revision.as_str(), "2025-06-18");
    let answer = one(&c.handle(START, Input::Completed(run.id, Ok(Payload::Text("x".into())))));
    assert_eq!(answer["result"], json!({"content": [{"type": "text", "text": "x"}]}));
}

#[test]
fn the_envelope_is_required_and_checked() {
    let mut c = connection(Role::Server);
    let ask = |c: &mut Connection, meta: Value| {
        one(&feed(c, json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}})))
    };
    assert_eq!(ask(&mut c, envelope("2026-07-28"))["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(ask(&mut c, json!({}))["error"]["code"], code::INVALID_PARAMS);
    let mut without = envelope("2026-07-28");
    without.as_object_mut().map(|m| m.remove("io.modelcontextprotocol/clientCapabilities"));
    assert_eq!(ask(&mut c, without)["error"]["code"], code::INVALID_PARAMS);
    let unknown = ask(&mut c, envelope("v999"));
    assert_eq!(unknown["error"]["code"], modern::UNSUPPORTED_VERSION);
    assert_eq!(unknown["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "v999"}));
    assert_eq!(ask(&mut c, envelope("2025-11-25"))["error"]["code"], modern::UNSUPPORTED_VERSION);
}

#[test]
fn an_id_in_flight_is_not_taken_twice() {
    let mut c = legacy("2025-11-25");
    let run = dispatched(feed(&mut c, call(1)));
    assert_eq!(one(&feed(&mut c, call(1)))["error"]["code"], code::INVALID_REQUEST);
    assert_eq!(c.in_flight(), 1);
    c.handle(START, Input::Completed(run.id, Ok(Payload::Text(String::new()))));
    dispatched(feed(&mut c, call(1)));
}

#[test]
fn more_than_the_cap_is_refused() {
    let mut c = legacy("2025-11-25");
    for id in 1..=4 {
        dispatched(feed(&mut c, call(id)));
    }
    assert!(c.is_full());
    let refused = one(&feed(&mut c, call(5)));
    assert!(refused["error"]["message"].as_str().is_some_and(|m| m.contains("max_in_flight")));
}

#[test]
fn a_cancelled_request_is_aborted_and_never_answered() {
    let mut c = legacy("2025-11-25");
    let run = dispatched(feed(&mut c, call(1)));
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "reason": "r"}});
    let actions = feed(&mut c, cancel.clone());
    assert!(matches!(&actions[..], [Action::Abort(id, Some(reason))] if *id == run.id && reason == "r"), "{actions:?}");
    assert!(c.handle(START, Input::Completed(run.id, Ok(Payload::Text("late".into())))).is_empty());
    let late = Input::Progress { call: run.id, progress: 1.0, total: None, message: None };
    assert!(c.handle(START, late).is_empty());
    assert!(feed(&mut c, cancel).is_empty(), "unknown ids are ignored");
    assert_eq!(c.in_flight(), 0);
}

#[test]
fn a_progress_token_is_short() {
    let mut c = legacy("2025-11-25");
    let mut request = call(1);
    request["params"]["_meta"] = json!({"progressToken": "x".repeat(5000)});
    let answer = &sent(&feed(&mut c, request))[0];
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32602)), "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("longer than 4096")), "{answer}");
}

#[test]
fn progress_grows_and_ends_with_the_request() {
    let mut c = legacy("2024-11-05");
    let mut request = call(1);
    request["params"]["_meta"] = json!({"progressToken": "p"});
    let run = dispatched(feed(&mut c, request));
    let mut report = |progress: f64| {
        let input = Input::Progress { call: run.id, progress, total: Some(2.5), message: Some("m".into()) };
        sent(&c.handle(START, input))
    };
    // The oldest revision has no `message`.
    assert_eq!(report(1.0)[0]["params"], json!({"progressToken": "p", "progress": 1, "total": 2.5}));
    assert!(report(1.0).is_empty() && report(0.5).is_empty() && report(f64::NAN).is_empty());
    assert_eq!(report(2.0).len(), 1);
}

#[test]
fn batches_only_where_the_revision_has_them() {
    let parts = || vec![Ok(message(&call(1))), Ok(message(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})))];
    let mut c = legacy("2025-03-26");
    let run = dispatched(c.handle(START, Input::Batch(parts())));
    let answer = one(&c.handle(START, Input::Completed(run.id, Ok(Payload::Text("x".into())))));
    assert_eq!(answer.as_array().map(Vec::len), Some(2));
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let answer = one(&legacy(revision).handle(START, Input::Batch(parts())));
        assert_eq!(answer["error"]["code"], code::INVALID_REQUEST, "{revision}");
    }
    let mut c = connection(Role::Server);
    assert_eq!(
        one(&c.handle(START, Input::Batch(vec![Ok(message(&initialize("2025-03-26")))])))["error"]["code"],
        code::INVALID_REQUEST
    );
}

#[test]
fn answers_nobody_asked_for_are_dropped() {
    let mut c = legacy("2025-11-25");
    assert!(feed(&mut c, json!({"jsonrpc": "2.0", "id": 99, "result": {}})).is_empty());
    assert!(feed(&mut c, json!({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": ""}})).is_empty());
    assert!(feed(&mut c, json!({"jsonrpc": "2.0", "error": {"code": 1, "message": ""}})).is_empty());
}

#[test]
fn the_name_is_the_member_that_the_method_names() {
    let mut c = legacy("2025-11-25");
    let ask = |method: &str, id: u64| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"uri": "add", "arguments": {"a": 1, "b": 2}}});
    assert_eq!(dispatched(feed(&mut c, ask("tools/call", 1))).name, None);
    assert_eq!(dispatched(feed(&mut c, ask("tools/list", 2))).name, None);
    let mut modern = ask("tools/call", 3);
    modern["params"]["_meta"] = envelope("2026-07-28");
    assert_eq!(dispatched(feed(&mut c, modern)).name, None);
    assert_eq!(dispatched(feed(&mut c, call(4))).name.as_ref().map(RawJson::get), Some("\"add\""));
}

#[test]
fn progress_that_json_cannot_say_is_not_sent() {
    let mut c = legacy("2025-11-25");
    let mut request = call(1);
    request["params"]["_meta"] = json!({"progressToken": 1});
    let run = dispatched(feed(&mut c, request));
    for (progress, total) in [(f64::INFINITY, None), (f64::NEG_INFINITY, None), (1.0, Some(f64::NAN))] {
        let input = Input::Progress { call: run.id, progress, total, message: None };
        assert!(c.handle(START, input).is_empty(), "{progress} of {total:?}");
    }
    let input = Input::Progress { call: run.id, progress: 1.0, total: Some(2.0), message: None };
    assert_eq!(sent(&c.handle(START, input)).len(), 1);
}

#[test]
fn what_a_modern_request_says_after_its_answer_is_not_sent_whatever_else_the_pipe_carries() {
    let mut c = legacy("2025-11-25");
    let mut request = call(1);
    request["params"]["_meta"] = envelope("2026-07-28");
    let run = dispatched(feed(&mut c, request)).id;
    let told = |c: &mut Connection| {
        let params = RawJson::trusted(r#"{"level":"info","data":1}"#);
        sent(&c.handle(START, Input::Tell { call: run, method: "notifications/message", params })).len()
    };
    assert_eq!(told(&mut c), 1);
    c.handle(START, Input::Completed(run, Ok(Payload::Text("done".into()))));
    assert_eq!(told(&mut c), 0);
}

#[test]
fn what_a_peer_sent_is_not_echoed_whole() {
    let mut c = legacy("2025-11-25");
    let long = "x".repeat(100_000);
    let answer = one(&feed(&mut c, json!({"jsonrpc": "2.0", "id": 1, "method": long})));
    assert_eq!(answer["error"]["code"], code::METHOD_NOT_FOUND);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.len() < 200 && message.contains("xxx…"), "{message}");
}

#[test]
fn what_was_read_before_the_end_was_known_runs_no_handler() {
    for mut c in [connection(Role::Server), legacy("2025-03-26")] {
        c.handle(START, Input::Closed("the end".into()));
        let mut modern = call(7);
        modern["params"]["_meta"] = envelope("2026-07-28");
        for value in [call(6), modern] {
            assert!(feed(&mut c, value.clone()).is_empty());
            assert!(c.handle(START, Input::Batch(vec![Ok(message(&value))])).is_empty());
        }
        assert_eq!(c.in_flight(), 0);
    }
}

#[test]
fn what_a_client_says_of_itself_is_kept_and_so_has_a_bound() {
    let mut c = connection(Role::Server);
    let mut hello = initialize("2025-11-25");
    hello["params"]["clientInfo"]["title"] = json!("x".repeat(65 << 10));
    let answer = one(&feed(&mut c, hello));
    assert_eq!(answer["error"]["code"], code::INVALID_PARAMS);
    assert!(answer["error"]["message"].as_str().is_some_and(|m| m.contains("clientInfo")), "{answer}");
    assert_eq!(one(&feed(&mut c, initialize("2025-11-25")))["result"]["protocolVersion"], "2025-11-25");
}

#[test]
fn tasks_are_there_in_the_revision_that_has_them_and_where_they_are_declared() {
    for (declared, revision) in Revision::ALL.into_iter().flat_map(|r| {
        [r#"{"tools":{},"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#, r#"{"tools":{}}"#].map(|d| (d, r))
    }) {
        let facts = Facts {
            capabilities: Capabilities::new(RawJson::trusted(declared)),
            revisions: Revision::ALL.to_vec(),
            instructions: None,
            discovery: crate::model::CacheHints::new(),
            info: RawJson::empty_object(),
            role: Role::Server,
            keep_alive: None,
            max_in_flight: 9,
            methods: Vec::new(),
            passes_on: false,
            max_listeners: 64,
            max_queued_notifications: 256,
        };
        let mut c = Connection::new(Arc::new(facts), Arc::new(Transport::new("stdio")));
        let has = revision.rules().tasks && declared.contains("tasks");
        let mut task = call(1);
        task["params"]["task"] = json!({"ttl": 1});
        if revision.era() == Era::Modern {
            task["params"]["_meta"] = envelope(revision.as_str());
            let found = one(&feed(
                &mut c,
                json!({"jsonrpc": "2.0", "id": 2, "method": "server/discover",
                "params": {"_meta": envelope(revision.as_str())}}),
            ));
            assert_eq!(found["result"]["capabilities"], json!({"tools": {}}));
        } else {
            let opened = one(&feed(&mut c, initialize(revision.as_str())));
            assert_eq!(opened["result"]["capabilities"].get("tasks").is_some(), has, "{revision}");
            for (method, served) in [("tasks/get", has), ("tasks/list", has), ("tasks/cancel", false)] {
                let actions = feed(&mut c, json!({"jsonrpc": "2.0", "id": method, "method": method}));
                assert_eq!(sent(&actions).is_empty(), served, "{method} {revision}");
            }
        }
        assert_eq!(dispatched(feed(&mut c, task)).task.is_some(), has, "{declared} {revision}");
    }
}
