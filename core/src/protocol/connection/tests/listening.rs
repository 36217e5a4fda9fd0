use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::model::SubscriptionFilter;

const META: &str = "io.modelcontextprotocol/subscriptionId";
const TOOLS: &str = "notifications/tools/list_changed";
/// Changes of lists are gathered for less than this.
const SOON: Duration = Duration::from_millis(11);

/// A server with so much room, and the gauge of its listeners.
fn server(max_listeners: usize, max_queued: usize) -> (Connection, Arc<AtomicUsize>) {
    let mut facts = Arc::into_inner(facts(Role::Server, 4)).expect("one");
    facts.max_listeners = max_listeners;
    facts.max_queued_notifications = max_queued;
    let capabilities = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true}}"#;
    facts.capabilities = Capabilities::new(RawJson::trusted(capabilities));
    (Connection::new(Arc::new(facts), Arc::new(Transport::new("stdio"))), Arc::default())
}

fn request(id: Value) -> Value {
    let meta = envelope("2026-07-28");
    json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {"_meta": meta, "notifications": {}}})
}

fn listen(c: &mut Connection, gauge: &Arc<AtomicUsize>, id: Value, filter: SubscriptionFilter) -> Vec<Action> {
    let call = dispatched(feed(c, request(id)));
    let listen = Listen::new(call.id, filter, call.context, Counted::new(gauge));
    c.handle(START, Input::Listen(Box::new(listen)))
}

fn unsubscribed(actions: &[Action]) -> Vec<String> {
    let ended = actions.iter().filter_map(|a| if let Action::Unsubscribed(_, uris) = a { Some(uris) } else { None });
    ended.flatten().map(ToString::to_string).collect()
}

fn cancelled(id: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

#[test]
fn a_listener_is_acknowledged_first_and_told_only_of_what_it_asked_for() {
    let (mut c, gauge) = server(4, 4);
    let actions = listen(&mut c, &gauge, json!("L"), SubscriptionFilter::new().tools().resource("a:/b"));
    let expected = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
        "_meta": {META: "L"}, "notifications": {"toolsListChanged": true, "resourceSubscriptions": ["a:/b"]}}});
    assert_eq!(one(&actions), expected);
    assert_eq!((c.in_flight(), c.listeners(), gauge.load(Ordering::Relaxed)), (0, 1, 1));
    let actions = listen(&mut c, &gauge, json!(7), SubscriptionFilter::new().resources());
    assert_eq!(one(&actions)["params"]["_meta"][META], 7);
    for kind in [Kind::Tool, Kind::Tool, Kind::Prompt] {
        assert!(c.handle(START, Input::Changed(kind)).is_empty(), "gathered");
    }
    assert!(c.next_tick().is_some_and(|due| due <= SOON));
    let told = one(&c.handle(SOON, Input::Tick));
    assert_eq!(told, json!({"jsonrpc": "2.0", "method": TOOLS, "params": {"_meta": {META: "L"}}}));
    c.handle(START, Input::Changed(Kind::ResourceTemplate));
    assert_eq!(one(&c.handle(SOON, Input::Tick))["params"]["_meta"][META], 7);
    assert_eq!(c.next_tick(), None);
    for (uri, count) in [("a:/b", 1), ("a:/b/c", 1), ("a:/bc", 0), ("a:/", 0)] {
        let told = sent(&c.handle(START, Input::Updated(uri.into())));
        assert_eq!(told.len(), count, "{uri}");
        assert!(told.iter().all(|told| told["params"] == json!({"_meta": {META: "L"}, "uri": uri})));
    }
}

#[test]
fn a_listener_that_cancels_hears_nothing_more() {
    let (mut c, gauge) = server(4, 4);
    listen(&mut c, &gauge, json!("L"), SubscriptionFilter::new().tools().resource("a:"));
    c.handle(START, Input::Changed(Kind::Tool));
    let twice = feed(&mut c, request(json!("L")));
    assert_eq!(one(&twice)["error"]["code"], code::INVALID_REQUEST, "its id is in use");
    assert!(feed(&mut c, cancelled(json!("other"))).is_empty());
    let actions = feed(&mut c, cancelled(json!("L")));
    assert!(sent(&actions).is_empty());
    assert_eq!(unsubscribed(&actions), ["a:"]);
    assert!(matches!(actions[0], Action::Abort(..)));
    assert_eq!((c.listeners(), gauge.load(Ordering::Relaxed)), (0, 0));
    assert!(c.handle(SOON, Input::Tick).is_empty());
    assert!(c.handle(START, Input::Updated("a:".into())).is_empty());
    // One that is cancelled while it is still looked at.
    let call = dispatched(feed(&mut c, request(json!("M"))));
    feed(&mut c, cancelled(json!("M")));
    let filter = SubscriptionFilter::new().resource("a:");
    let late = Listen::new(call.id, filter, call.context, Counted::new(&gauge));
    let actions = c.handle(START, Input::Listen(Box::new(late)));
    assert!(sent(&actions).is_empty());
    assert_eq!((unsubscribed(&actions), c.listeners()), (vec!["a:".to_owned()], 0));
}

#[test]
fn there_are_so_many_listeners_besides_the_requests_in_flight() {
    let (mut c, gauge) = server(6, 4);
    for n in 0..6 {
        listen(&mut c, &gauge, json!(n), SubscriptionFilter::new().tools());
    }
    assert!(!c.is_full(), "a request still has a place");
    let refused = one(&feed(&mut c, request(json!(9))));
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(9), &json!(code::INVALID_REQUEST)));
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("max_listeners")), "{refused}");
    feed(&mut c, cancelled(json!(0)));
    assert_eq!(sent(&listen(&mut c, &gauge, json!(9), SubscriptionFilter::new())).len(), 1);
    let actions = c.handle(START, Input::Closed("gone".into()));
    assert!(sent(&actions).is_empty());
    assert_eq!(gauge.load(Ordering::Relaxed), 0);
}

#[test]
fn a_server_that_closes_answers_and_then_cancels() {
    let (mut c, gauge) = server(4, 4);
    listen(&mut c, &gauge, json!("L"), SubscriptionFilter::new().resource("a:"));
    let actions = c.handle(START, Input::Ending);
    let all = sent(&actions);
    assert_eq!(all[0]["id"], "L");
    assert_eq!(all[0]["result"]["resultType"], "complete");
    assert_eq!(all[0]["result"]["_meta"][META], "L");
    assert_eq!(all[0]["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "n");
    assert_eq!(all[1], cancelled(json!("L")));
    assert_eq!((all.len(), unsubscribed(&actions)), (2, vec!["a:".to_owned()]));
    assert!(c.handle(START, Input::Ending).is_empty());
}

#[test]
fn what_waits_for_a_slow_reader_is_said_once_and_bounded() {
    let (mut c, gauge) = server(4, 2);
    let filter = SubscriptionFilter::new().tools().resource("a:/");
    listen(&mut c, &gauge, json!("L"), filter);
    c.set_congested(true);
    for _ in 0..10 {
        assert!(c.handle(START, Input::Updated("a:/1".into())).is_empty());
    }
    c.handle(START, Input::Changed(Kind::Tool));
    let due = c.next_tick().expect("a look");
    assert!(c.handle(due, Input::Tick).is_empty(), "nobody reads");
    c.set_congested(false);
    let due = c.next_tick().expect("another look");
    let told: Vec<_> = sent(&c.handle(due + SOON * 10, Input::Tick)).iter().map(|m| m["method"].clone()).collect();
    assert_eq!(told, [TOOLS, "notifications/resources/updated"]);
    c.set_congested(true);
    for n in 1..=2 {
        assert!(c.handle(START, Input::Updated(format!("a:/{n}"))).is_empty());
    }
    let actions = c.handle(START, Input::Updated("a:/3".into()));
    let ended = one(&actions);
    assert_eq!(ended["id"], "L");
    assert!(ended["error"]["message"].as_str().is_some_and(|why| why.contains("max_queued")), "{ended}");
    assert_eq!((unsubscribed(&actions), c.listeners()), (vec!["a:/".to_owned()], 0));
}

#[test]
fn what_stands_around_a_listener_may_end_it() {
    let (mut c, gauge) = server(4, 4);
    for (id, outcome) in [("A", Ok(Payload::Object(RawJson::empty_object()))), ("B", Err(Error::rpc(-32000, "late")))] {
        let call = dispatched(feed(&mut c, request(json!(id))));
        let listen = Listen::new(call.id, SubscriptionFilter::new().tools(), call.context, Counted::new(&gauge));
        c.handle(START, Input::Listen(Box::new(listen)));
        let fails = outcome.is_err();
        let actions = c.handle(START, Input::Completed(call.id, outcome));
        let answer = &sent(&actions)[0];
        assert_eq!((&answer["id"], answer["error"].is_object()), (&json!(id), fails));
    }
    assert_eq!((c.listeners(), gauge.load(Ordering::Relaxed)), (0, 0));
}

// ---- the client's side ----------------------------------------------------------------------------------------

fn client() -> Connection {
    let mut c = connection(Role::Client);
    let asked = one(&c.open(START, None, Duration::from_secs(5), None, None));
    let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "ttlMs": 0, "cacheScope": "public"});
    feed(&mut c, json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    c
}

fn listens(c: &mut Connection, call: u64) -> Value {
    let mut invocation = Invocation::new(CallId(call), "subscriptions/listen", None);
    invocation.listens = true;
    invocation.timeout = Some(Duration::from_secs(60));
    one(&c.handle(START, Input::Call(invocation)))["id"].clone()
}

fn said(id: &Value, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": {META: id}, "notifications": {}}})
}

fn told(actions: &[Action]) -> Vec<(u64, String)> {
    let told = |a: &Action| if let Action::Told(call, method, _) = a { Some((call.0, method.clone())) } else { None };
    actions.iter().filter_map(told).collect()
}

const ACK: &str = "notifications/subscriptions/acknowledged";

#[test]
fn streams_are_told_apart_by_the_ids_of_their_requests() {
    let mut c = client();
    let (one, two) = (listens(&mut c, 1), listens(&mut c, 2));
    assert_eq!(c.awaited(), 2);
    assert_eq!(told(&feed(&mut c, said(&two, ACK))), [(2, ACK.to_owned())]);
    assert_eq!(told(&feed(&mut c, said(&one, ACK))), [(1, ACK.to_owned())]);
    assert_eq!(c.awaited(), 0, "nothing is awaited, and there is room for other requests");
    assert_eq!(c.next_tick(), None, "no timeout");
    assert_eq!(told(&feed(&mut c, said(&one, TOOLS))), [(1, TOOLS.to_owned())]);
    let unknown = feed(&mut c, said(&json!(99), TOOLS));
    assert!(unknown.is_empty(), "{unknown:?}");
    let general = feed(&mut c, json!({"jsonrpc": "2.0", "method": TOOLS}));
    assert!(matches!(general[0], Action::Notified(..)));
    // Given up.
    let actions = c.handle(START, Input::Cancel(CallId(1), None));
    assert_eq!(super::one(&actions), cancelled(one.clone()));
    assert!(feed(&mut c, said(&one, TOOLS)).is_empty());
    // Ended in order: by an answer and a cancellation, whichever comes first.
    let result = json!({"jsonrpc": "2.0", "id": two, "result": {"resultType": "complete"}});
    let actions = feed(&mut c, result);
    assert!(matches!(actions[0], Action::Resolve(CallId(2), Ok(_))));
    assert!(feed(&mut c, cancelled(two)).is_empty());
    let three = listens(&mut c, 3);
    feed(&mut c, said(&three, ACK));
    let actions = feed(&mut c, cancelled(three));
    assert!(matches!(actions[0], Action::Resolve(CallId(3), Ok(_))));
    let four = listens(&mut c, 4);
    feed(&mut c, said(&four, ACK));
    let actions = c.handle(START, Input::Closed("gone".into()));
    assert!(actions.iter().any(|a| matches!(a, Action::Resolve(CallId(4), Err(_)))), "{actions:?}");
}

#[test]
fn a_stream_that_is_not_acknowledged_is_late() {
    let mut c = client();
    listens(&mut c, 1);
    let actions = c.handle(Duration::from_secs(60), Input::Tick);
    let late = |a: &Action| matches!(a, Action::Resolve(CallId(1), Err(e)) if e.kind() == ErrorKind::Timeout);
    assert!(actions.iter().any(late), "{actions:?}");
    // Refused, and cancelled before it was acknowledged.
    let refused = listens(&mut c, 2);
    let answer = json!({"jsonrpc": "2.0", "id": refused, "error": {"code": -32601, "message": "no"}});
    assert!(matches!(feed(&mut c, answer)[0], Action::Resolve(CallId(2), Err(_))));
    let early = listens(&mut c, 3);
    assert!(matches!(feed(&mut c, cancelled(early))[0], Action::Resolve(CallId(3), Err(_))));
    // A cancellation of what is no stream means nothing.
    let asked = one(&c.handle(START, Input::Call(Invocation::new(CallId(5), "tools/list", None))));
    assert!(feed(&mut c, cancelled(asked["id"].clone())).is_empty());
    assert_eq!(c.awaited(), 1);
}
