use super::*;

/// An open client whose server offers everything.
fn client() -> Connection {
    let mut c = connection(Role::Client);
    let asked = one(&c.open(START, Revision::parse("2025-11-25"), Duration::ZERO, None, None));
    reopened(&mut c, &asked);
    c
}

/// Answers `initialize`; what is sent then.
fn reopened(c: &mut Connection, asked: &Value) -> Vec<Value> {
    assert_eq!((&asked["method"], &asked["params"]["protocolVersion"]), (&json!("initialize"), &json!("2025-11-25")));
    let capabilities = json!({"tools": {}, "resources": {"subscribe": true}, "logging": {}});
    let messages = sent(&feed(
        c,
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-11-25",
            "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}}}),
    ));
    assert_eq!(messages[0]["method"], "notifications/initialized");
    messages[1..].to_vec()
}

fn invoke(c: &mut Connection, call: u64, method: &str, params: &'static str, idempotent: bool) -> Value {
    let mut invocation = Invocation::new(CallId(call), method, Some(RawJson::trusted(params)));
    invocation.idempotent = idempotent;
    one(&c.handle(START, Input::Call(invocation)))
}

fn lost(c: &mut Connection, request: &Value) -> Vec<Action> {
    let id = Id::Number(request["id"].as_i64().expect("an id"));
    c.handle(START, Input::SessionLost { id, taken: false })
}

fn answer(c: &mut Connection, request: &Value) -> Vec<Action> {
    feed(c, json!({"jsonrpc": "2.0", "id": request["id"], "result": {}}))
}

fn resolved(actions: &[Action]) -> Vec<(u64, Result<&str, &str>)> {
    let resolve = |a| match a {
        &Action::Resolve(call, ref outcome) => {
            Some((call.0, outcome.as_ref().map(RawJson::get).map_err(Error::message)))
        }
        _ => None,
    };
    actions.iter().filter_map(resolve).collect()
}

#[test]
fn what_was_refused_before_it_ran_is_repeated_and_the_rest_is_the_callers_to_decide() {
    for (method, params, idempotent, taken, repeated) in [
        ("tools/list", "{}", false, true, true),
        ("resources/read", r#"{"uri":"a:"}"#, false, true, true),
        ("tools/call", r#"{"name":"t"}"#, true, true, true),
        ("tools/call", r#"{"name":"t"}"#, false, true, false),
        ("tools/call", r#"{"name":"t"}"#, false, false, true),
        ("own/method", "{}", false, false, true),
    ] {
        let mut c = client();
        let request = invoke(&mut c, 1, method, params, idempotent);
        let id = Id::Number(request["id"].as_i64().expect("an id"));
        let actions = c.handle(START, Input::SessionLost { id, taken });
        let asked = one(&actions);
        if !repeated {
            let [(1, Err(why))] = resolved(&actions)[..] else { panic!("{actions:?}") };
            assert!(why.contains("lost the session") && why.contains("not repeated"), "{why}");
            assert_eq!(reopened(&mut c, &asked), [Value::Null; 0], "the next call finds a session");
            continue;
        }
        let again = reopened(&mut c, &asked);
        assert_eq!((again.len(), &again[0]["method"]), (1, &json!(method)));
        assert_ne!(again[0]["id"], request["id"]);
        assert_eq!(resolved(&answer(&mut c, &again[0])), [(1, Ok("{}"))]);
    }
}

#[test]
fn many_that_find_the_session_lost_begin_one_anew() {
    let mut c = client();
    let requests: Vec<_> = (1..=4).map(|n| invoke(&mut c, n, "tools/list", "{}", false)).collect();
    let asked = one(&lost(&mut c, &requests[0]));
    assert!(sent(&lost(&mut c, &requests[1])).is_empty());
    assert_eq!(reopened(&mut c, &asked).len(), 2);
    // Late ones, when the new session is open already.
    for request in &requests[2..] {
        assert_eq!(one(&lost(&mut c, request))["method"], "tools/list");
    }
    assert_eq!(c.awaited(), 4);
}

#[test]
fn a_session_that_is_lost_at_once_is_not_begun_for_ever() {
    let mut c = client();
    let request = invoke(&mut c, 1, "tools/list", "{}", false);
    let asked = one(&lost(&mut c, &request));
    let again = reopened(&mut c, &asked);
    let actions = lost(&mut c, &again[0]);
    assert!(sent(&actions).is_empty());
    assert_eq!(resolved(&actions), [(1, Err("the server lost the session twice in a row"))]);
}

#[test]
fn a_new_session_is_told_what_the_old_one_knew() {
    let mut c = client();
    for (method, params, succeeds) in [
        ("resources/subscribe", r#"{"uri":"a:1"}"#, true),
        ("resources/subscribe", r#"{"uri":"a:2"}"#, true),
        ("resources/subscribe", r#"{"uri":"a:1"}"#, true),
        ("resources/subscribe", r#"{"uri":"refused:"}"#, false),
        ("resources/subscribe", r#"{"uri":"gone:"}"#, true),
        ("resources/unsubscribe", r#"{"uri":"gone:"}"#, true),
        ("logging/setLevel", r#"{"level":"debug"}"#, true),
        ("logging/setLevel", r#"{"level":"error"}"#, true),
    ] {
        let request = invoke(&mut c, 1, method, params, false);
        let outcome = if succeeds { ("result", json!({})) } else { ("error", json!({"code": 1, "message": "no"})) };
        feed(&mut c, json!({"jsonrpc": "2.0", "id": request["id"], outcome.0: outcome.1}));
    }
    let request = invoke(&mut c, 2, "tools/list", "{}", false);
    let asked = one(&lost(&mut c, &request));
    let told = reopened(&mut c, &asked);
    let told: Vec<_> =
        told.iter().map(|m| (m["method"].as_str().unwrap_or_default(), m["params"].to_string())).collect();
    assert_eq!(
        told,
        [
            ("logging/setLevel", r#"{"level":"error"}"#.to_owned()),
            ("resources/subscribe", r#"{"uri":"a:2"}"#.into()),
            ("resources/subscribe", r#"{"uri":"a:1"}"#.into()),
            ("tools/list", "{}".into()),
        ]
    );
}

#[test]
fn what_the_new_session_refuses_is_said() {
    let mut c = client();
    let request = invoke(&mut c, 1, "resources/subscribe", r#"{"uri":"a:1"}"#, false);
    answer(&mut c, &request);
    let request = invoke(&mut c, 2, "tools/call", r#"{"name":"t"}"#, false);
    let asked = one(&lost(&mut c, &request));
    let told = reopened(&mut c, &asked);
    let refused = json!({"jsonrpc": "2.0", "id": told[0]["id"], "error": {"code": 1, "message": "unknown"}});
    let actions = feed(&mut c, refused);
    let [Action::Warn(warning)] = &actions[..] else { panic!("{actions:?}") };
    assert!(warning.contains("resources/subscribe") && warning.contains("unknown"), "{warning}");
}

#[test]
fn a_session_that_is_lost_over_what_it_is_told_is_not_begun_anew() {
    let mut c = client();
    for n in 0..3 {
        let params = [r#"{"uri":"a:1"}"#, r#"{"uri":"a:2"}"#, r#"{"uri":"a:3"}"#][n];
        let request = invoke(&mut c, 1, "resources/subscribe", params, false);
        answer(&mut c, &request);
    }
    let request = invoke(&mut c, 2, "tools/list", "{}", false);
    let asked = one(&lost(&mut c, &request));
    let told = reopened(&mut c, &asked);
    for request in &told[..3] {
        let actions = lost(&mut c, request);
        assert!(sent(&actions).is_empty(), "{actions:?}");
        assert!(matches!(&actions[..], [Action::Warn(why)] if why.contains("lost the session again")), "{actions:?}");
    }
    assert_eq!(resolved(&answer(&mut c, &told[3])), [(2, Ok("{}"))]);
    assert_eq!(c.awaited(), 0);
    // The next request of the user finds it lost, and it is begun anew once more, with each subscription once.
    let request = invoke(&mut c, 3, "tools/list", "{}", false);
    let asked = one(&lost(&mut c, &request));
    assert_eq!(reopened(&mut c, &asked).len(), 4);
}

#[test]
fn what_ran_in_a_session_that_was_lost_is_not_waited_for() {
    let mut c = client();
    let runs = invoke(&mut c, 1, "tools/call", r#"{"name":"t"}"#, false);
    let reads = invoke(&mut c, 2, "tools/list", "{}", false);
    let finds = invoke(&mut c, 3, "tools/call", r#"{"name":"t"}"#, false);
    let answered = invoke(&mut c, 4, "tools/list", "{}", false);
    let asked = one(&lost(&mut c, &finds));
    assert_eq!(reopened(&mut c, &asked)[0]["method"], "tools/call");
    assert_eq!(resolved(&answer(&mut c, &answered)), [(4, Ok("{}"))]);
    let due = c.next_tick().expect("a limit");
    assert!(due <= Duration::from_secs(2), "{due:?}");
    let actions = c.handle(due, Input::Tick);
    let [(1, Err(why))] = resolved(&actions)[..] else { panic!("{actions:?}") };
    assert!(why.contains("lost the session") && why.contains("not repeated"), "{why}");
    let abandoned: Vec<_> = actions.iter().filter(|a| matches!(a, Action::Abandon(_))).collect();
    assert_eq!(abandoned.len(), 2, "{actions:?}");
    let again = one(&actions);
    assert_eq!(again["method"], "tools/list");
    assert_ne!(again["id"], reads["id"]);
    assert_eq!(resolved(&answer(&mut c, &runs)), []);
}
