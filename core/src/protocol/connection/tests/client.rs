use super::*;

const PROBE: Duration = Duration::from_secs(5);

fn opening(pinned: Option<&str>) -> (Connection, Value) {
    let mut c = connection(Role::Client);
    let pinned = pinned.map(|name| Revision::parse(name).expect("known"));
    let asked = one(&c.open(START, pinned, PROBE, None, None));
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
        "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}});
    let actions = feed(&mut c, answer);
    assert_eq!(opened(&actions).map(Revision::as_str), Some("2024-11-05"));
    assert_eq!(one(&actions)["method"], "notifications/initialized");
}

#[test]
fn a_login_does_not_count_as_silence() {
    let (mut c, _) = opening(None);
    for begins in [true, true, false] {
        assert!(c.handle(START, Input::Authorizing(begins)).is_empty());
    }
    assert_eq!(c.next_tick(), None);
    assert!(c.handle(PROBE * 100, Input::Tick).is_empty());
    // The second one is over, too: the question has all its time again.
    assert!(c.handle(PROBE * 100, Input::Authorizing(false)).is_empty());
    assert!(c.is_due_sooner());
    assert_eq!(c.next_tick(), Some(PROBE * 101));
    assert_eq!(one(&c.handle(PROBE * 101, Input::Tick))["method"], "initialize");
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
    assert_eq!(one(&c.open(START, None, PROBE, None, Some(Era::Legacy)))["method"], "initialize");
}

#[test]
fn a_server_that_was_modern_is_not_demoted() {
    let known_modern = || {
        let mut c = connection(Role::Client);
        let asked = one(&c.open(START, None, PROBE, Some(Duration::from_secs(60)), Some(Era::Modern)));
        assert_eq!(asked["method"], "server/discover");
        (c, Id::Number(asked["id"].as_i64().expect("a number")))
    };
    for kind in [ErrorKind::Unsupported, ErrorKind::PeerMisbehaved] {
        let (mut c, id) = known_modern();
        let actions = c.handle(START, Input::Undelivered(id, Error::new(kind, "HTTP 400")));
        assert_eq!(closed(&actions), Some((ErrorKind::Unsupported, false)));
    }
    let (mut c, _) = known_modern();
    assert_eq!(closed(&c.handle(START, Input::Closed("exit".into()))), Some((ErrorKind::Closed, false)));
    let (mut c, _) = known_modern();
    assert!(c.handle(START + PROBE, Input::Tick).is_empty(), "it is waited for like any answer");
    let actions = c.handle(START + Duration::from_secs(60), Input::Tick);
    assert_eq!(closed(&actions), Some((ErrorKind::Timeout, false)));
}

#[test]
fn a_pinned_revision_is_the_only_one() {
    let (mut c, asked) = opening(Some("2025-03-26"));
    assert_eq!(asked["params"]["protocolVersion"], "2025-03-26");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2024-11-05",
        "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}});
    assert_eq!(closed(&feed(&mut c, answer)), Some((ErrorKind::Unsupported, false)));
    let (mut c, asked) = opening(Some("2026-07-28"));
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": ""}});
    assert_eq!(closed(&feed(&mut c, answer)), Some((ErrorKind::Unsupported, false)));
}

#[test]
fn a_handshake_that_is_refused_by_its_revision() {
    let refuse = |id: &Value, supported: Value| {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": modern::UNSUPPORTED_VERSION, "message": "",
            "data": {"supported": supported, "requested": "2025-11-25"}}})
    };
    for supported in [json!(["2026-07-28"]), json!(["2025-11-25"]), json!([])] {
        let (mut c, asked) = opening(Some("2025-11-25"));
        let actions = feed(&mut c, refuse(&asked["id"], supported));
        assert_eq!(closed(&actions), Some((ErrorKind::Unsupported, false)));
    }
    // It was a legacy server when it was met last.
    let mut c = connection(Role::Client);
    let asked = one(&c.open(START, None, PROBE, None, Some(Era::Legacy)));
    assert_eq!(asked["method"], "initialize");
    let again = one(&feed(&mut c, refuse(&asked["id"], json!(["2026-07-28"]))));
    assert_eq!(again["method"], "server/discover");
    // And says nothing of use then, either.
    let answer = json!({"jsonrpc": "2.0", "id": again["id"], "error": {"code": -32601, "message": ""}});
    assert_eq!(closed(&feed(&mut c, answer)), Some((ErrorKind::Unsupported, false)));
}

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
fn a_discover_result_that_comes_late_is_used_whole() {
    let (mut c, probe) = opening(None);
    let asked = one(&c.handle(PROBE, Input::Tick));
    assert_eq!(asked["method"], "initialize");
    let mut answer = discovered(&probe["id"], json!(["2026-07-28"]));
    answer["result"]["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "slow", "version": "1"}});
    answer["result"]["instructions"] = json!("Patience.");
    let actions = feed(&mut c, answer);
    let opened = actions.iter().find_map(|a| if let Action::Opened(o) = a { Some(o) } else { None }).expect("open");
    assert!(opened.peer.capabilities.has("tools"));
    assert!(opened.peer.info.as_ref().is_some_and(|info| info.get().contains("slow")));
    assert_eq!(opened.instructions.as_deref(), Some("Patience."));
    let abandoned = Id::Number(asked["id"].as_i64().unwrap_or_default());
    assert!(actions.iter().any(|a| matches!(a, Action::Abandon(id) if *id == abandoned)), "{actions:?}");
    // `initialize` is neither cancelled nor answered for.
    assert_eq!((c.awaited(), c.next_tick()), (0, None));
    assert!(c.handle(PROBE * 100, Input::Tick).is_empty());
    let late = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": ""}});
    assert!(feed(&mut c, late).is_empty());
}

#[test]
fn a_late_discover_result_of_a_legacy_server_changes_nothing() {
    for versions in [json!(["2025-11-25"]), json!(5)] {
        let (mut c, probe) = opening(None);
        let asked = one(&c.handle(PROBE, Input::Tick));
        assert!(feed(&mut c, discovered(&probe["id"], versions)).is_empty(), "initialize is asked once");
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}});
        assert_eq!(opened(&feed(&mut c, answer)), Some(Revision::NEWEST_LEGACY));
    }
}

#[test]
fn a_malformed_answer_to_the_probe_means_initialize() {
    for member in [
        json!({"error": "unknown method"}),
        json!({"error": {"code": -32601}}),
        json!({"error": {}}),
        json!({"result": null}),
        json!({"result": null, "error": {"code": -32601, "message": ""}}),
        json!({"result": []}),
    ] {
        let (mut c, asked) = opening(None);
        let mut text = json!({"jsonrpc": "2.0", "id": asked["id"]});
        for (key, value) in member.as_object().into_iter().flatten() {
            text[key] = value.clone();
        }
        let error = jsonrpc::decode(&Bytes::from(text.to_string()), &jsonrpc::Limits::default()).expect_err("bad");
        let actions = c.handle(START, Input::Invalid(error));
        let asked = one(&actions);
        assert_eq!(asked["method"], "initialize", "{member}");
        // What is wrong with the answer to `initialize` is wrong.
        let text = json!({"jsonrpc": "2.0", "id": asked["id"], "result": null}).to_string();
        let error = jsonrpc::decode(&Bytes::from(text), &jsonrpc::Limits::default()).expect_err("bad");
        assert_eq!(closed(&c.handle(START, Input::Invalid(error))), Some((ErrorKind::PeerMisbehaved, false)));
    }
}

#[test]
fn ping_is_answered_while_opening_and_nothing_once_the_server_is_modern() {
    let ping = || json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
    let (mut c, asked) = opening(None);
    assert_eq!(one(&feed(&mut c, ping())), json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    assert!(opened(&feed(&mut c, discovered(&asked["id"], json!(["2026-07-28"])))).is_some());
    for method in ["ping", "roots/list", "made/up"] {
        let actions = feed(&mut c, json!({"jsonrpc": "2.0", "id": 1, "method": method}));
        assert!(matches!(&actions[..], [Action::Warn(why)] if why.contains(method)), "{actions:?}");
    }
    let broken = r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#;
    let error = jsonrpc::decode(&Bytes::from(broken), &jsonrpc::Limits::default()).expect_err("no message");
    assert!(matches!(&c.handle(START, Input::Invalid(error))[..], [Action::Warn(_)]));
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
    for (method, sent_at_all) in [("tools/list", false), ("prompts/list", true), ("ping", true), ("x/own", true)] {
        let actions = c.handle(START, Input::Call(Invocation::new(CallId(1), method, None)));
        assert_eq!(sent(&actions).len(), usize::from(sent_at_all), "{method}: {actions:?}");
        if !sent_at_all {
            let Some(Action::Resolve(CallId(1), Err(error))) = actions.first() else { panic!("{actions:?}") };
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains("\"tools\""), "{error}");
        }
    }
}

#[test]
fn initialize_after_a_probe_has_the_callers_time() {
    let seconds = Duration::from_secs;
    for (timeout, due) in
        [(Some(seconds(7)), Some(PROBE + seconds(7))), (Some(seconds(2)), Some(PROBE * 2)), (None, None)]
    {
        let mut c = connection(Role::Client);
        c.open(START, None, PROBE, timeout, None);
        assert_eq!(one(&c.handle(PROBE, Input::Tick))["method"], "initialize");
        assert_eq!(c.next_tick(), due);
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
