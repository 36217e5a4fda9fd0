//! Tests of a client's first requests, and of its reading of the answers.

use super::*;

const PROBE: Duration = Duration::from_secs(5);

pub(super) fn opening(pinned: Option<&str>) -> (Connection, Value) {
    let mut c = connection(Role::Client);
    let pinned = pinned.map(|name| Revision::parse(name).expect("known"));
    let asked = one(&c.open(START, pinned, PROBE, None, None));
    (c, asked)
}

pub(super) fn opened(actions: &[Action]) -> Option<Revision> {
    actions.iter().find_map(|a| if let Action::Opened(o) = a { Some(o.revision) } else { None })
}

pub(super) fn closed(actions: &[Action]) -> Option<(ErrorKind, bool)> {
    actions
        .iter()
        .find_map(|a| if let Action::Close { reason, relaunch } = a { Some((reason.kind(), *relaunch)) } else { None })
}

pub(super) fn discovered(id: &Value, versions: Value) -> Value {
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
fn a_discovery_of_another_type_is_none() {
    for kind in ["bogus", "task", "input_required"] {
        let (mut c, asked) = opening(None);
        let mut answer = discovered(&asked["id"], json!(["2026-07-28"]));
        answer["result"]["resultType"] = json!(kind);
        assert_eq!(closed(&feed(&mut c, answer)), Some((ErrorKind::PeerMisbehaved, false)), "{kind}");
    }
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
fn a_server_that_offers_nothing_is_told_so() {
    let (mut c, asked) = opening(None);
    let actions = feed(&mut c, discovered(&asked["id"], json!([])));
    let reason = actions.iter().find_map(|a| if let Action::Close { reason, .. } = a { Some(reason) } else { None });
    assert_eq!(reason.expect("closed").message(), "the server names no revision that it speaks");
}

#[test]
fn what_may_pass_is_no_certain_sign_of_an_old_server() {
    let certain = |actions: &[Action]| {
        actions.iter().find_map(|a| if let Action::Opened(o) = a { Some(o.certain) } else { None }).expect("open")
    };
    let old = |asked: &Value| {
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {},
            "serverInfo": {"name": "s", "version": "1"}}})
    };
    let refusal = |asked: &Value, code: i64| json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": code, "message": "?"}});
    for (code, expected) in [(code::INTERNAL_ERROR, false), (code::METHOD_NOT_FOUND, true), (-32000, true)] {
        let (mut c, asked) = opening(None);
        let asked = one(&feed(&mut c, refusal(&asked, code)));
        assert_eq!(certain(&feed(&mut c, old(&asked))), expected, "{code}");
    }
    // Silence is none, unless a late word explains it.
    for (late, expected) in [(None, false), (Some(code::METHOD_NOT_FOUND), true), (Some(-32022), false)] {
        let (mut c, probe) = opening(None);
        let asked = one(&c.handle(PROBE, Input::Tick));
        if let Some(code) = late {
            assert!(feed(&mut c, refusal(&probe, code)).is_empty(), "{code}");
        }
        assert_eq!(certain(&feed(&mut c, old(&asked))), expected, "{late:?}");
    }
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
        // A fault of the answer to `initialize` is a fault.
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
