use super::opening::{closed, discovered, opened, opening};
use super::*;

fn client() -> Connection {
    let (mut c, asked) = opening(Some("2025-11-25"));
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}});
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
    for what in [json!("1"), json!(null), json!({})] {
        let mut none = progress.clone();
        none["params"]["progress"] = what;
        assert!(c.handle(Duration::from_secs(59), Input::Received(message(&none))).is_empty());
    }
    let actions = c.handle(at, Input::Received(message(&progress)));
    assert!(matches!(&actions[..], [Action::Progress(CallId(1), _)]), "{actions:?}");
    assert!(c.handle(Duration::from_secs(109), Input::Tick).is_empty());
    let actions = c.handle(Duration::from_secs(110), Input::Tick);
    assert_eq!(resolved(&actions), Some((1, Err(ErrorKind::Timeout))));
    assert_eq!(one(&actions)["params"]["requestId"], request["id"]);
    assert_eq!(c.awaited(), 0);
}

#[test]
fn what_a_modern_caller_said_of_itself_is_not_handed_on_in_a_session() {
    let (mut c, meta) = (client(), envelope("2026-07-28"));
    for progress in [false, true] {
        let params = RawJson::from_value(&json!({"name": "t", "_meta": meta}));
        let mut invocation = Invocation::new(CallId(1), "tools/call", Some(params));
        invocation.progress = progress;
        let request = one(&c.handle(START, Input::Call(invocation)));
        let rest = if progress { json!({"progressToken": request["id"]}) } else { json!({}) };
        assert_eq!(request["params"], json!({"_meta": rest, "name": "t"}));
    }
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

#[cfg(feature = "http")]
#[test]
fn a_modern_request_whose_answer_is_lost_is_sent_once_more_when_it_may_be() {
    let (mut c, asked) = opening(None);
    feed(&mut c, discovered(&asked["id"], json!(["2026-07-28"])));
    let undelivered = |c: &mut Connection, request: &Value, error: Error| {
        c.handle(START, Input::Undelivered(Id::Number(request["id"].as_i64().expect("an id")), error))
    };
    let gone = || Error::new(ErrorKind::Transport, "gone");
    let ask = |c: &mut Connection, method: &str, idempotent| {
        let mut invocation = Invocation::new(CallId(1), method, None);
        (invocation.idempotent, invocation.progress) = (idempotent, true);
        one(&c.handle(START, Input::Call(invocation)))
    };
    for (method, idempotent, repeated) in
        [("tools/list", false, true), ("tools/call", true, true), ("tools/call", false, false)]
    {
        let request = ask(&mut c, method, idempotent);
        let mut actions = undelivered(&mut c, &request, gone().answer_lost());
        if repeated {
            let again = one(&actions);
            assert_ne!(again["id"], request["id"]);
            assert_eq!(again["params"]["_meta"]["progressToken"], again["id"]);
            actions = undelivered(&mut c, &again, gone().answer_lost());
        }
        assert!(sent(&actions).is_empty(), "{actions:?}");
        let Some(Action::Resolve(CallId(1), Err(error))) = actions.first() else { panic!("{actions:?}") };
        assert_eq!(
            (error.kind(), error.message().contains("idempotent")),
            (ErrorKind::Transport, !repeated),
            "{error}"
        );
    }
    // A request that never went out is not lost.
    let request = ask(&mut c, "tools/list", false);
    assert_eq!(resolved(&undelivered(&mut c, &request, gone())), Some((1, Err(ErrorKind::Transport))));
    assert_eq!(c.awaited(), 0);
}

#[test]
fn an_unknown_result_type_is_the_servers_fault() {
    let (mut c, asked) = opening(None);
    feed(&mut c, discovered(&asked["id"], json!(["2026-07-28"])));
    for (result, outcome) in [
        (json!({"content": []}), None),
        (json!({"resultType": "complete"}), None),
        (json!({"resultType": "later"}), Some(ErrorKind::PeerMisbehaved)),
        (json!({"resultType": "input_required"}), Some(ErrorKind::PeerMisbehaved)),
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

/// A client of a modern server with these capabilities.
fn modern_client(capabilities: Value) -> Connection {
    let (mut c, asked) = opening(None);
    let mut answer = discovered(&asked["id"], json!(["2026-07-28"]));
    answer["result"]["capabilities"] = capabilities;
    assert!(opened(&feed(&mut c, answer)).is_some());
    c
}

fn set_level(c: &mut Connection, params: &Value) -> Vec<Action> {
    let params = Some(RawJson::from_value(params));
    c.handle(START, Input::Call(Invocation::new(CallId(1), "logging/setLevel", params)))
}

#[test]
fn a_level_is_remembered_where_each_request_says_it() {
    const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    let mut c = modern_client(json!({"tools": {}, "logging": {}}));
    let said = |c: &mut Connection, method: &str, meta: Value| {
        let mut invocation = Invocation::new(CallId(2), method, Some(RawJson::from_value(&json!({"_meta": meta}))));
        invocation.listens = method == "subscriptions/listen";
        let request = one(&c.handle(START, Input::Call(invocation)));
        feed(c, json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}));
        request["params"]["_meta"][LOG_LEVEL].as_str().map(str::to_owned)
    };
    assert_eq!(said(&mut c, "tools/list", json!({})), None);
    for level in ["warning", "debug"] {
        let actions = set_level(&mut c, &json!({"level": level}));
        assert!(sent(&actions).is_empty(), "{actions:?}");
        assert_eq!(resolved(&actions), Some((1, Ok("{}"))));
        for method in ["tools/list", "tools/call", "ping"] {
            assert_eq!(said(&mut c, method, json!({})).as_deref(), Some(level), "{method}");
        }
    }
    assert_eq!(said(&mut c, "tools/call", json!({LOG_LEVEL: "alert"})).as_deref(), Some("alert"));
    assert_eq!(said(&mut c, "subscriptions/listen", json!({})), None);
    let actions = set_level(&mut c, &json!({"level": "loud"}));
    assert_eq!(resolved(&actions), Some((1, Err(ErrorKind::Rpc))));
    assert_eq!(said(&mut c, "tools/list", json!({})).as_deref(), Some("debug"));
}

#[test]
fn no_level_is_set_of_a_log_that_the_server_does_not_declare() {
    for mut c in [client(), modern_client(json!({"tools": {}}))] {
        let actions = set_level(&mut c, &json!({"level": "debug"}));
        assert!(sent(&actions).is_empty(), "{actions:?}");
        let [Action::Resolve(CallId(1), Err(error))] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("\"logging\""), "{error}");
    }
}

#[test]
fn changed_roots_are_told_where_there_are_sessions() {
    let params = RawJson::empty_object;
    let method = "notifications/roots/list_changed";
    for (mut c, told) in [(client(), 1), (modern_client(json!({})), 0)] {
        let actions = c.handle(START, Input::Notify { method, params: params(), related: None });
        assert_eq!(sent(&actions).len(), told);
    }
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

#[test]
fn ping_is_asked_as_discover_where_there_is_none() {
    let (mut c, asked) = opening(None);
    feed(&mut c, discovered(&asked["id"], json!(["2026-07-28"])));
    let request = one(&c.handle(START, Input::Call(Invocation::new(CallId(1), "ping", None))));
    assert_eq!(request["method"], "server/discover");
    let actions = feed(&mut c, discovered(&request["id"], json!(["2026-07-28"])));
    assert_eq!(resolved(&actions), Some((1, Ok("{}"))));
    let mut c = client();
    assert_eq!(one(&c.handle(START, Input::Call(Invocation::new(CallId(1), "ping", None))))["method"], "ping");
}

#[test]
fn requests_beyond_the_cap_wait_their_turn() {
    // At most 4 are awaited.
    let mut c = client();
    let first: Vec<Value> = (1..=4).map(|call| invoke(&mut c, call)).collect();
    let timed = |call: u64, seconds: u64| {
        let mut invocation = Invocation::new(CallId(call), "tools/call", None);
        invocation.timeout = Some(Duration::from_secs(seconds));
        Input::Call(invocation)
    };
    for call in 5..=7 {
        assert!(c.handle(START, timed(call, call)).is_empty());
    }
    assert_eq!((c.awaited(), c.next_tick()), (7, Some(Duration::from_secs(5))));
    // The call's own time runs while it waits, and the server hears nothing of it.
    let at = Duration::from_secs(5);
    let actions = c.handle(at, Input::Tick);
    assert_eq!((resolved(&actions), sent(&actions).len()), (Some((5, Err(ErrorKind::Timeout))), 0));
    assert!(c.handle(at, Input::Cancel(CallId(6), None)).is_empty());
    let actions =
        c.handle(at, Input::Received(message(&json!({"jsonrpc": "2.0", "id": first[0]["id"], "result": {}}))));
    assert_eq!((resolved(&actions), sent(&actions).len()), (Some((1, Ok("{}"))), 1), "the seventh is sent");
    assert_eq!((c.awaited(), c.next_tick()), (4, Some(Duration::from_secs(7))));
    // A cancelled one makes room, too.
    assert!(c.handle(at, timed(8, 60)).is_empty());
    assert_eq!(sent(&c.handle(at, Input::Cancel(CallId(2), None))).len(), 2);
}

#[test]
fn the_queue_has_an_end_and_ends_with_the_connection() {
    let mut c = client();
    let plain = |call: u64| Input::Call(Invocation::new(CallId(call), "tools/call", None));
    let mut actions = Vec::new();
    for call in 1..=4 * 17 {
        actions.extend(c.handle(START, plain(call)));
    }
    assert_eq!((sent(&actions).len(), resolved(&actions)), (4, None));
    let refused = c.handle(START, plain(100));
    assert!(
        matches!(&refused[..], [Action::Resolve(CallId(100), Err(e))]
            if e.kind() == ErrorKind::Transport && e.message().contains("max_in_flight")),
        "{refused:?}"
    );
    let actions = c.handle(START, Input::Closed("gone".into()));
    assert_eq!(actions.iter().filter(|a| matches!(a, Action::Resolve(_, Err(_)))).count(), 68);
}

#[test]
fn a_timeout_beyond_the_clocks_end_never_comes() {
    let mut c = connection(Role::Client);
    let at = Duration::from_secs(1);
    c.open(at, None, Duration::MAX, Some(Duration::MAX), None);
    assert_eq!(c.next_tick(), None);
    let mut c = client();
    let mut invocation = Invocation::new(CallId(1), "tools/call", None);
    (invocation.timeout, invocation.max_timeout) = (Some(Duration::MAX), Some(Duration::MAX));
    invocation.progress = true;
    let request = one(&c.handle(at, Input::Call(invocation)));
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": request["params"]["_meta"]["progressToken"], "progress": 1}});
    assert_eq!(c.handle(at, Input::Received(message(&progress))).len(), 1);
    assert_eq!(c.next_tick(), None);
}

#[test]
fn what_the_server_does_not_declare_is_not_asked_for() {
    let (mut c, asked) = opening(Some("2025-11-25"));
    feed(
        &mut c,
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-11-25",
            "capabilities": {"prompts": {}}, "serverInfo": {"name": "s", "version": "1"}}}),
    );
    for (method, sent_at_all) in [("resources/list", false), ("prompts/list", true), ("ping", true), ("x/own", true)] {
        let actions = c.handle(START, Input::Call(Invocation::new(CallId(1), method, None)));
        assert_eq!(sent(&actions).len(), usize::from(sent_at_all), "{method}: {actions:?}");
        for asked in sent(&actions) {
            feed(&mut c, json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}));
        }
        if !sent_at_all {
            let Some(Action::Resolve(CallId(1), Err(error))) = actions.first() else { panic!("{actions:?}") };
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains("\"resources\""), "{error}");
        }
    }
    // Many a server has tools without saying so; one that has none is what it does not declare.
    let asked = one(&c.handle(START, Input::Call(Invocation::new(CallId(2), "tools/list", None))));
    assert_eq!(asked["method"], "tools/list");
    feed(&mut c, json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"tools": []}}));
    for (code, kind) in [(code::METHOD_NOT_FOUND, ErrorKind::Unsupported), (-32000, ErrorKind::Rpc)] {
        let asked = one(&c.handle(START, Input::Call(Invocation::new(CallId(3), "tools/call", None))));
        let refused = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": code, "message": "no"}});
        let actions = feed(&mut c, refused);
        let [Action::Resolve(CallId(3), Err(error))] = &actions[..] else { panic!("{actions:?}") };
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[test]
fn a_request_that_became_a_task_makes_progress_until_it_is_let_go() {
    let (mut c, asked) = opening(Some("2025-11-25"));
    feed(
        &mut c,
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}),
    );
    let call = |number, lasting| {
        let mut invocation = Invocation::new(CallId(number), "tools/call", None);
        (invocation.progress, invocation.lasting) = (true, lasting);
        Input::Call(invocation)
    };
    let ids: Vec<Value> = [(1, true), (2, false)]
        .map(|(number, lasting)| one(&c.handle(START, call(number, lasting)))["id"].clone())
        .into();
    let progress = |c: &mut Connection, id: &Value, progress: f64| {
        let actions = feed(
            c,
            json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": id, "progress": progress}}),
        );
        actions.iter().any(|action| matches!(action, Action::Progress(..)))
    };
    for id in &ids {
        assert!(progress(&mut c, id, 1.0));
        assert!(!progress(&mut c, id, 1.0) && !progress(&mut c, id, 0.5), "it has to grow");
        feed(&mut c, json!({"jsonrpc": "2.0", "id": id, "result": {"task": {}}}));
    }
    assert!(!progress(&mut c, &ids[0], 1.0), "nor after the answer");
    assert_eq!((progress(&mut c, &ids[0], 2.0), progress(&mut c, &ids[1], 2.0)), (true, false));
    assert!(c.handle(START, Input::Cancel(CallId(1), None)).is_empty() && !progress(&mut c, &ids[0], 3.0));
}
