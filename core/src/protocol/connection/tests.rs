use super::*;
use crate::error::ErrorKind;
use crate::jsonrpc::code;
use crate::model::Capabilities;
use crate::protocol::revision::{Method, modern};
use serde_json::{Value, json};

fn facts(role: Role, max_in_flight: usize) -> Arc<Facts> {
    let capabilities = if role == Role::Server { r#"{"tools":{},"logging":{}}"# } else { "{}" };
    Arc::new(Facts {
        role,
        info: RawJson::trusted(r#"{"name":"n","version":"1","title":"T","icons":[]}"#),
        capabilities: Capabilities::new(RawJson::trusted(capabilities)),
        instructions: Some("Be kind.".into()),
        revisions: Revision::ALL.to_vec(),
        max_in_flight,
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
    assert_eq!(again["error"]["code"], code::INVALID_REQUEST);
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

// ---- the client's side ------------------------------------------------------------------------------------------

const PROBE: Duration = Duration::from_secs(5);

fn opening(pinned: Option<&str>) -> (Connection, Value) {
    let mut c = connection(Role::Client);
    let pinned = pinned.map(|name| Revision::parse(name).expect("known"));
    let asked = one(&c.open(START, pinned, PROBE, None, false));
    (c, asked)
}

fn opened(actions: &[Action]) -> Option<Revision> {
    actions.iter().find_map(|a| if let Action::Opened(o) = a { Some(o.revision) } else { None })
}

fn closed(actions: &[Action]) -> Option<(ErrorKind, bool)> {
    actions
        .iter()
        .find_map(|a| if let Action::Close { reason, relaunch } = a { Some((reason.kind(), *relaunch)) } else { None })
}

fn discovered(id: &Value, versions: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "supportedVersions": versions,
        "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "public"}})
}

#[test]
fn a_client_probes_and_takes_the_modern_answer() {
    let (mut c, asked) = opening(None);
    assert_eq!(asked["method"], "server/discover");
    assert_eq!(asked["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    let actions = feed(&mut c, discovered(&asked["id"], json!(["2025-11-25", "2026-07-28"])));
    assert_eq!(opened(&actions), Some(Revision::NEWEST));
    let actions = c.handle(START, Input::Call(Invocation::new(CallId(1), "tools/list", None)));
    assert_eq!(one(&actions)["params"]["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "n");
}

#[test]
fn any_other_answer_and_silence_mean_initialize() {
    let errors = [code::METHOD_NOT_FOUND, code::INVALID_PARAMS, code::INVALID_REQUEST, -32000, 0];
    for code in errors {
        let (mut c, asked) = opening(None);
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": code, "message": "?"}});
        assert_eq!(one(&feed(&mut c, answer))["method"], "initialize", "{code}");
    }
    let (mut c, _) = opening(None);
    assert!(c.handle(PROBE / 2, Input::Tick).is_empty());
    assert_eq!(c.next_tick(), Some(PROBE));
    let asked = one(&c.handle(PROBE, Input::Tick));
    assert_eq!(asked["method"], "initialize");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2024-11-05",
        "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}});
    let actions = feed(&mut c, answer);
    assert_eq!(opened(&actions).map(Revision::as_str), Some("2024-11-05"));
    assert_eq!(one(&actions)["method"], "notifications/initialized");
}

#[test]
fn a_slow_modern_server_is_not_demoted() {
    let (mut c, asked) = opening(None);
    assert_eq!(one(&c.handle(PROBE, Input::Tick))["method"], "initialize");
    assert_eq!(opened(&feed(&mut c, discovered(&asked["id"], json!(["2026-07-28"])))), Some(Revision::NEWEST));
}

#[test]
fn a_modern_refusal_stays_modern() {
    let refuse = |id: &Value, supported: Value| {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": modern::UNSUPPORTED_VERSION, "message": "",
            "data": {"supported": supported, "requested": "2026-07-28"}}})
    };
    let (mut c, asked) = opening(None);
    let again = one(&feed(&mut c, refuse(&asked["id"], json!(["2026-07-28"]))));
    assert_eq!(again["method"], "server/discover");
    let (mut c, asked) = opening(None);
    assert_eq!(one(&feed(&mut c, refuse(&asked["id"], json!(["2025-06-18"]))))["method"], "initialize");
    let (mut c, asked) = opening(None);
    assert_eq!(
        closed(&feed(&mut c, refuse(&asked["id"], json!(["2031-01-01"])))),
        Some((ErrorKind::Unsupported, false))
    );
    for code in [modern::HEADER_MISMATCH, modern::MISSING_CLIENT_CAPABILITY] {
        let (mut c, asked) = opening(None);
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": code, "message": ""}});
        assert_eq!(closed(&feed(&mut c, answer)), Some((ErrorKind::Rpc, false)));
    }
}

#[test]
fn http_refusals_are_told_apart() {
    for (kind, falls_back) in [(ErrorKind::Unsupported, true), (ErrorKind::Auth, false), (ErrorKind::Transport, false)]
    {
        let (mut c, _) = opening(None);
        let actions = c.handle(START, Input::Undelivered(Id::Number(1), Error::new(kind, "HTTP")));
        assert_eq!(sent(&actions).first().is_some_and(|m| m["method"] == "initialize"), falls_back, "{kind:?}");
        assert_eq!(closed(&actions).is_none(), falls_back);
    }
}

#[test]
fn a_server_that_dies_of_the_probe_is_launched_again() {
    let (mut c, _) = opening(None);
    assert_eq!(closed(&c.handle(START, Input::Closed("exit".into()))), Some((ErrorKind::Closed, true)));
    let (mut c, _) = opening(Some("2026-07-28"));
    assert_eq!(closed(&c.handle(START, Input::Closed("exit".into()))), Some((ErrorKind::Closed, false)));
    let mut c = connection(Role::Client);
    assert_eq!(one(&c.open(START, None, PROBE, None, true))["method"], "initialize");
}

#[test]
fn a_pinned_revision_is_the_only_one() {
    let (mut c, asked) = opening(Some("2025-03-26"));
    assert_eq!(asked["params"]["protocolVersion"], "2025-03-26");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2024-11-05",
        "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}});
    assert_eq!(closed(&feed(&mut c, answer)), Some((ErrorKind::Unsupported, false)));
    let (mut c, asked) = opening(Some("2026-07-28"));
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": ""}});
    assert_eq!(closed(&feed(&mut c, answer)), Some((ErrorKind::Unsupported, false)));
}

fn client() -> Connection {
    let (mut c, asked) = opening(Some("2025-11-25"));
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}});
    assert!(opened(&feed(&mut c, answer)).is_some());
    c
}

fn invoke(c: &mut Connection, call: u64) -> Value {
    let mut invocation = Invocation::new(CallId(call), "tools/call", Some(RawJson::trusted(r#"{"name":"t"}"#)));
    invocation.timeout = Some(Duration::from_secs(60));
    invocation.progress = true;
    one(&c.handle(START, Input::Call(invocation)))
}

fn resolved(actions: &[Action]) -> Option<(u64, Result<&str, ErrorKind>)> {
    actions.iter().find_map(|a| match a {
        Action::Resolve(call, outcome) => Some((call.0, outcome.as_ref().map(RawJson::get).map_err(Error::kind))),
        _ => None,
    })
}

#[test]
fn a_timeout_is_restarted_by_progress_and_told_to_the_server() {
    let mut c = client();
    let request = invoke(&mut c, 1);
    let at = Duration::from_secs(50);
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": request["params"]["_meta"]["progressToken"], "progress": 1}});
    let actions = c.handle(at, Input::Received(message(&progress)));
    assert!(matches!(&actions[..], [Action::Progress(CallId(1), _)]), "{actions:?}");
    assert!(c.handle(Duration::from_secs(109), Input::Tick).is_empty());
    let actions = c.handle(Duration::from_secs(110), Input::Tick);
    assert_eq!(resolved(&actions), Some((1, Err(ErrorKind::Timeout))));
    assert_eq!(one(&actions)["params"]["requestId"], request["id"]);
    assert_eq!(c.awaited(), 0);
}

#[test]
fn a_local_cancel_reaches_the_server_and_a_late_answer_is_dropped() {
    let mut c = client();
    let request = invoke(&mut c, 1);
    let actions = c.handle(START, Input::Cancel(CallId(1), Some("why".into())));
    let note = one(&actions);
    assert_eq!(
        (note["method"].as_str(), note["params"]["reason"].as_str()),
        (Some("notifications/cancelled"), Some("why"))
    );
    assert!(feed(&mut c, json!({"jsonrpc": "2.0", "id": request["id"], "result": {}})).is_empty());
    assert!(c.handle(START, Input::Cancel(CallId(1), None)).is_empty());
}

#[test]
fn a_lost_session_is_opened_again_and_the_refused_request_repeated_once() {
    let mut c = client();
    let request = invoke(&mut c, 1);
    let id = |m: &Value| Id::Number(m["id"].as_i64().unwrap_or_default());
    let asked = one(&c.handle(START, Input::SessionLost(id(&request))));
    assert_eq!(
        (asked["method"].as_str(), asked["params"]["protocolVersion"].as_str()),
        (Some("initialize"), Some("2025-11-25"))
    );
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-11-25",
        "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}});
    let messages = sent(&feed(&mut c, answer));
    assert_eq!(messages[0]["method"], "notifications/initialized");
    assert_eq!(messages[1]["params"]["name"], "t");
    let actions = feed(&mut c, json!({"jsonrpc": "2.0", "id": messages[1]["id"], "result": {}}));
    assert_eq!(resolved(&actions), Some((1, Ok("{}"))));
}

#[test]
fn the_end_of_a_connection_settles_everything() {
    let mut c = client();
    invoke(&mut c, 1);
    let actions = c.handle(START, Input::Closed("gone".into()));
    assert_eq!(resolved(&actions), Some((1, Err(ErrorKind::Closed))));
    assert_eq!(closed(&actions), Some((ErrorKind::Closed, false)));
    assert!(c.handle(START, Input::Closed("again".into())).is_empty());
    let actions = c.handle(START, Input::Call(Invocation::new(CallId(2), "ping", None)));
    assert_eq!(resolved(&actions), Some((2, Err(ErrorKind::Closed))));
}

#[test]
fn an_unknown_result_type_is_the_servers_fault() {
    let (mut c, asked) = opening(None);
    feed(&mut c, discovered(&asked["id"], json!(["2026-07-28"])));
    for (result, outcome) in [
        (json!({"content": []}), None),
        (json!({"resultType": "complete"}), None),
        (json!({"resultType": "later"}), Some(ErrorKind::PeerMisbehaved)),
        (json!({"resultType": "input_required"}), Some(ErrorKind::Unsupported)),
    ] {
        let request = one(&c.handle(START, Input::Call(Invocation::new(CallId(1), "tools/list", None))));
        let actions = feed(&mut c, json!({"jsonrpc": "2.0", "id": request["id"], "result": result}));
        assert_eq!(resolved(&actions).and_then(|(_, o)| o.err()), outcome, "{result}");
    }
}

#[test]
fn what_a_revision_lacks_is_not_sent() {
    let mut c = client();
    let actions = c.handle(START, Input::Call(Invocation::new(CallId(3), "server/discover", None)));
    assert_eq!(resolved(&actions), Some((3, Err(ErrorKind::Unsupported))));
    assert!(sent(&actions).is_empty());
}

#[test]
fn a_client_says_nothing_to_what_is_no_message() {
    let mut c = client();
    let sent = c.handle(START, Input::Call(Invocation::new(CallId(9), "ping", None)));
    let id = one(&sent)["id"].clone();
    let limits = jsonrpc::Limits::default();
    let invalid = |text: String| Input::Invalid(jsonrpc::decode(&Bytes::from(text), &limits).expect_err("no message"));
    assert!(c.handle(START, invalid("Listening on port 80".into())).is_empty());
    // A request deserves its answer all the same.
    let refused = c.handle(START, invalid(r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#.into()));
    assert_eq!(one(&refused)["id"], 3);
    let failed = c.handle(START, invalid(json!({"jsonrpc": "2.0", "id": id, "result": 5}).to_string()));
    assert!(
        matches!(&failed[..], [Action::Resolve(CallId(9), Err(e))] if e.kind() == ErrorKind::PeerMisbehaved),
        "{failed:?}"
    );
}
