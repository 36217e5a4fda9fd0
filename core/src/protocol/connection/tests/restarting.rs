//! A server whose process ends: what becomes of its requests, and how the next process is met.

use super::opening::{closed, discovered, opened, opening};
use super::*;

fn client() -> Connection {
    let (mut c, asked) = opening(None);
    assert_eq!(opened(&feed(&mut c, discovered(&asked["id"], json!(["2026-07-28"])))), Some(Revision::NEWEST));
    c
}

fn call(c: &mut Connection, call: u64, method: &str, change: impl FnOnce(&mut Invocation)) -> Vec<Action> {
    let mut invocation = Invocation::new(CallId(call), method, None);
    change(&mut invocation);
    c.handle(START, Input::Call(invocation))
}

fn lost(c: &mut Connection) -> Vec<Action> {
    c.handle(START, Input::Lost("the server ended".into()))
}

fn is_restart(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Restart))
}

fn errors(actions: &[Action]) -> Vec<(u64, ErrorKind, &str)> {
    let failed = |action| match action {
        &Action::Resolve(call, Err(ref error)) => Some((call.0, error.kind(), error.message())),
        _ => None,
    };
    actions.iter().filter_map(failed).collect()
}

/// Meets the next process; what is sent to it then.
fn met(c: &mut Connection) -> Vec<Value> {
    let asked = one(&c.handle(START, Input::Restarted));
    assert_eq!(asked["method"], "server/discover");
    let actions = feed(c, discovered(&asked["id"], json!(["2026-07-28"])));
    assert_eq!(opened(&actions), Some(Revision::NEWEST));
    sent(&actions)
}

#[test]
fn a_server_that_nobody_needs_is_not_started_again() {
    let mut c = client();
    let actions = lost(&mut c);
    assert!(matches!(&actions[..], [Action::Warn(why)] if why.starts_with("the server ended; ")), "{actions:?}");
    assert!(c.handle(START, Input::Tick).is_empty() && c.next_tick().is_none());
    assert!(lost(&mut c).is_empty(), "once");
    let actions = call(&mut c, 1, "tools/call", |_| {});
    assert!(matches!(&actions[..], [Action::Restart]), "{actions:?}");
    assert!(call(&mut c, 2, "tools/list", |_| {}).is_empty(), "it is being started");
    let methods: Vec<Value> = met(&mut c).iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, ["tools/call", "tools/list"], "nothing has happened to either");
    assert_eq!(c.awaited(), 2);
}

#[test]
fn what_was_under_way_is_dealt_with_as_an_answer_that_is_lost() {
    let mut c = client();
    for (number, method, idempotent) in
        [(1, "tools/call", false), (2, "tools/list", false), (3, "tools/call", true), (4, "tools/list", false)]
    {
        call(&mut c, number, method, |invocation| invocation.idempotent = idempotent);
    }
    let actions = lost(&mut c);
    let why = "the server ended; \"tools/call\" was not repeated, because it may have been carried out (idempotent)";
    assert_eq!(errors(&actions), [(1, ErrorKind::Transport, why)]);
    assert!(is_restart(&actions) && sent(&actions).is_empty(), "{actions:?}");
    let again = met(&mut c);
    let asked: Vec<_> = again.iter().map(|message| (&message["method"], message["id"].as_i64())).collect();
    // Ids go on: no late answer can be taken for another.
    assert_eq!(
        asked,
        [(&json!("tools/list"), Some(7)), (&json!("tools/call"), Some(8)), (&json!("tools/list"), Some(9))]
    );
    let actions = lost(&mut c);
    let failed: Vec<_> = errors(&actions).iter().map(|(call, kind, _)| (*call, *kind)).collect();
    assert_eq!(failed, [4, 3, 2].map(|call| (call, ErrorKind::Transport)), "once more, and not for ever");
    assert!(!is_restart(&actions));
}

#[test]
fn who_listens_is_told_and_may_listen_again() {
    let mut c = client();
    let listen =
        |c: &mut Connection, number| call(c, number, "subscriptions/listen", |invocation| invocation.listens = true);
    let request = one(&listen(&mut c, 1));
    let meta = json!({"io.modelcontextprotocol/subscriptionId": request["id"]});
    feed(
        &mut c,
        json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": meta, "notifications": {}}}),
    );
    // One that is not acknowledged yet.
    listen(&mut c, 2);
    let actions = lost(&mut c);
    assert_eq!(errors(&actions), [1, 2].map(|call| (call, ErrorKind::Transport, "the server ended")));
    assert!(!is_restart(&actions));
    assert!(is_restart(&listen(&mut c, 3)));
    assert_eq!(met(&mut c)[0]["method"], "subscriptions/listen");
}

#[test]
fn a_process_that_ends_before_it_was_met_takes_nothing_with_it() {
    let mut c = client();
    lost(&mut c);
    assert!(is_restart(&call(&mut c, 1, "tools/call", |_| {})));
    for _ in 0..3 {
        c.handle(START, Input::Restarted);
        let actions = lost(&mut c);
        assert!(errors(&actions).is_empty() && is_restart(&actions), "{actions:?}");
    }
    let actions = c.handle(START, Input::Closed("it does not help".into()));
    assert_eq!(errors(&actions), [(1, ErrorKind::Closed, "it does not help")]);
    assert_eq!(closed(&actions), Some((ErrorKind::Closed, false)), "no other client is launched in its place");
}

#[test]
fn waiting_for_a_process_has_an_end() {
    let mut c = client();
    lost(&mut c);
    call(&mut c, 1, "tools/call", |invocation| invocation.timeout = Some(Duration::from_secs(5)));
    call(&mut c, 2, "tools/call", |_| {});
    assert_eq!(c.next_tick(), Some(Duration::from_secs(5)));
    let actions = c.handle(Duration::from_secs(5), Input::Tick);
    assert!(matches!(errors(&actions)[..], [(1, ErrorKind::Timeout, _)]), "{actions:?}");
    // A request that was given up is not sent, and the server hears nothing of it.
    assert!(c.handle(START, Input::Cancel(CallId(2), None)).is_empty());
    assert!(met(&mut c).is_empty());
}

#[test]
fn a_process_that_speaks_something_else_ends_the_client() {
    let refused = json!({"code": code::METHOD_NOT_FOUND, "message": "?"});
    for (answer, why) in [
        (json!({"error": refused}), "the server does not speak revision 2026-07-28"),
        (discovered(&json!(0), json!(["2025-11-25"])), "the server speaks 2025-11-25, not 2026-07-28"),
    ] {
        let mut c = client();
        lost(&mut c);
        call(&mut c, 1, "tools/call", |_| {});
        let asked = one(&c.handle(START, Input::Restarted));
        let mut answer = answer;
        (answer["jsonrpc"], answer["id"]) = (json!("2.0"), asked["id"].clone());
        let actions = feed(&mut c, answer);
        let expected = format!("the server was started again: {why}");
        let [(1, ErrorKind::Unsupported, said)] = errors(&actions)[..] else { panic!("{actions:?}") };
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!(closed(&actions), Some((ErrorKind::Unsupported, false)));
    }
}

#[test]
fn a_session_ends_with_its_process() {
    for pinned in ["2024-11-05", "2025-11-25"] {
        let (mut c, asked) = opening(Some(pinned));
        feed(
            &mut c,
            json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": pinned,
            "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}),
        );
        call(&mut c, 1, "tools/list", |_| {});
        let actions = lost(&mut c);
        assert_eq!(errors(&actions), [(1, ErrorKind::Closed, "the server ended")]);
        assert_eq!(closed(&actions), Some((ErrorKind::Closed, false)));
    }
}

#[test]
fn a_process_that_dies_of_the_first_question_is_another_matter() {
    let (mut c, _) = opening(None);
    assert_eq!(closed(&lost(&mut c)), Some((ErrorKind::Closed, true)));
}

#[test]
fn a_sign_of_life_is_not_asked_of_the_next_process() {
    let mut facts = Arc::into_inner(facts(Role::Client, 4)).expect("the only one");
    let seconds = Duration::from_secs;
    facts.keep_alive = Some(KeepAlive { interval: seconds(10), timeout: seconds(20) });
    let mut c = Connection::new(Arc::new(facts), Arc::new(Transport::new("stdio")));
    let asked = one(&c.open(START, None, seconds(5), None, None));
    feed(&mut c, discovered(&asked["id"], json!(["2026-07-28"])));
    assert_eq!(one(&c.handle(seconds(10), Input::Tick))["method"], "server/discover");
    let actions = lost(&mut c);
    assert!(!is_restart(&actions) && closed(&actions).is_none() && c.next_tick().is_none(), "{actions:?}");
    call(&mut c, 1, "tools/call", |_| {});
    assert_eq!(met(&mut c).len(), 1);
    assert_eq!(c.next_tick(), Some(seconds(10)), "and then as before");
}
