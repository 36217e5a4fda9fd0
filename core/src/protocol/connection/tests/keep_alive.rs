use super::*;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A legacy connection that pings after 10 s and waits 20 s; the peer was heard last at 0 s.
fn pinging(role: Role) -> Connection {
    let mut facts = Arc::into_inner(facts(role, 4)).expect("the only one");
    facts.keep_alive = Some(KeepAlive { interval: at(10), timeout: at(20) });
    facts.capabilities = Capabilities::new(RawJson::trusted(r#"{"roots":{}}"#));
    let mut c = Connection::new(Arc::new(facts), Arc::new(Transport::new("stdio")));
    if role == Role::Server {
        feed(&mut c, initialize("2025-11-25"));
        return c;
    }
    let asked = one(&c.open(START, Revision::parse("2025-11-25"), at(5), None, None));
    feed(
        &mut c,
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}),
    );
    c
}

fn reason(actions: &[Action]) -> Option<String> {
    actions.iter().find_map(|a| match a {
        Action::Close { reason, .. } => Some(format!("{:?}: {}", reason.kind(), reason.message())),
        _ => None,
    })
}

fn tick(c: &mut Connection, seconds: u64) -> Vec<Action> {
    c.handle(at(seconds), Input::Tick)
}

fn hear(c: &mut Connection, seconds: u64, value: Value) -> Vec<Action> {
    c.handle(at(seconds), Input::Received(message(&value)))
}

#[test]
fn a_silent_peer_is_asked_and_given_up() {
    for (role, peer) in [(Role::Server, "client"), (Role::Client, "server")] {
        let mut c = pinging(role);
        assert_eq!(c.next_tick(), Some(at(10)));
        assert!(tick(&mut c, 9).is_empty());
        let ping = one(&tick(&mut c, 10));
        assert_eq!(ping["method"], "ping");
        assert_eq!(c.next_tick(), Some(at(30)), "one at a time");
        assert!(tick(&mut c, 29).is_empty());
        let ended = reason(&tick(&mut c, 30)).expect("the end");
        assert_eq!(ended, format!("Closed: the {peer} did not answer a ping for 20 s (ping_timeout)"));
        assert!(c.is_lost() && c.next_tick().is_none());
    }
}

#[test]
fn any_message_is_a_sign_of_life() {
    let mut c = pinging(Role::Server);
    hear(&mut c, 7, json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    assert!(sent(&tick(&mut c, 10)).is_empty());
    assert_eq!(c.next_tick(), Some(at(17)));
    let ping = one(&tick(&mut c, 17));
    assert!(sent(&hear(&mut c, 20, json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}}))).is_empty());
    assert_eq!(c.next_tick(), Some(at(30)));
    // One that does not know `ping` is there.
    let ping = one(&tick(&mut c, 30));
    let error = json!({"code": code::METHOD_NOT_FOUND, "message": "?"});
    hear(&mut c, 31, json!({"jsonrpc": "2.0", "id": ping["id"], "error": error}));
    assert_eq!(c.next_tick(), Some(at(41)));
    // So is one that says something else.
    one(&tick(&mut c, 41));
    hear(&mut c, 50, json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}));
    assert_eq!(reason(&tick(&mut c, 61)), None);
    assert_eq!(c.next_tick(), Some(at(60)), "due at once");
    assert_eq!(one(&tick(&mut c, 62))["method"], "ping");
}

#[test]
fn a_peer_that_cannot_be_reached_or_waits_for_us_is_let_be() {
    let mut c = pinging(Role::Server);
    c.set_reachable(false);
    assert!(tick(&mut c, 10).is_empty());
    assert_eq!(c.next_tick(), Some(at(20)));
    c.set_reachable(true);
    one(&tick(&mut c, 20));
    c.set_reachable(false);
    assert_eq!(reason(&tick(&mut c, 40)), None, "its stream broke");

    let mut c = pinging(Role::Client);
    let run = dispatched(hear(&mut c, 1, json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})));
    assert!(tick(&mut c, 11).is_empty());
    c.handle(at(12), Input::Completed(run.id, Err(Error::rpc(code::METHOD_NOT_FOUND, "?"))));
    assert_eq!(one(&tick(&mut c, 21))["method"], "ping");
}

fn id_of(ping: &Value) -> Id {
    let Some(id) = ping["id"].as_i64() else { panic!("{ping}") };
    Id::Number(id)
}

fn refused(c: &mut Connection, seconds: u64, ping: &Value) -> Option<String> {
    let refused = Error::new(ErrorKind::Transport, "connection refused");
    reason(&c.handle(at(seconds), Input::Undelivered(id_of(ping), refused)))
}

#[test]
fn a_ping_that_is_not_delivered_is_sent_again_for_as_long_as_an_answer_would_be_waited_for() {
    let mut c = pinging(Role::Client);
    let mut ping = one(&tick(&mut c, 10));
    for second in 10..29 {
        assert_eq!(refused(&mut c, second, &ping), None);
        assert!(c.is_due_sooner() && c.next_tick() == Some(at(second + 1)));
        ping = one(&tick(&mut c, second + 1));
        assert_eq!(ping["method"], "ping");
    }
    let ended = refused(&mut c, 29, &ping);
    assert_eq!(ended.as_deref(), Some("Transport: the server did not answer a ping: connection refused"));
    assert!(c.is_lost() && c.next_tick().is_none());

    // The next try is given the rest of the time.
    let mut c = pinging(Role::Client);
    let ping = one(&tick(&mut c, 10));
    assert_eq!(refused(&mut c, 22, &ping), None);
    one(&tick(&mut c, 22));
    assert_eq!(c.next_tick(), Some(at(30)));
    let ended = reason(&tick(&mut c, 30)).expect("the end");
    assert_eq!(ended, "Closed: the server did not answer a ping for 20 s (ping_timeout)");

    // A sign of life ends that.
    let mut c = pinging(Role::Client);
    let ping = one(&tick(&mut c, 10));
    assert_eq!(refused(&mut c, 10, &ping), None);
    hear(&mut c, 11, json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    assert_eq!(c.next_tick(), Some(at(21)));
}

#[test]
fn a_modern_client_discovers_instead_and_a_modern_server_is_silent() {
    let mut facts = Arc::into_inner(facts(Role::Client, 4)).expect("the only one");
    facts.keep_alive = Some(KeepAlive { interval: at(10), timeout: at(20) });
    let mut c = Connection::new(Arc::new(facts), Arc::new(Transport::new("stdio")));
    let asked = one(&c.open(START, None, at(5), None, None));
    feed(
        &mut c,
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"resultType": "complete",
        "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "public"}}),
    );
    assert!(c.is_due_sooner(), "sooner than the end of opening");
    let ping = one(&tick(&mut c, 10));
    assert_eq!(ping["method"], "server/discover");
    let lost = Error::closed("the stream has ended");
    let ended = reason(&c.handle(at(11), Input::Undelivered(id_of(&ping), lost)));
    assert_eq!(ended.as_deref(), Some("Closed: the server did not answer a ping: the stream has ended"));

    let mut facts = Arc::into_inner(self::facts(Role::Server, 4)).expect("the only one");
    facts.keep_alive = Some(KeepAlive { interval: at(10), timeout: at(20) });
    assert_eq!(Connection::new(Arc::new(facts), Arc::new(Transport::new("http"))).next_tick(), None);
}
