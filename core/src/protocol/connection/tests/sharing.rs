use super::*;
use crate::protocol::Told;

fn adopted() -> Connection {
    let params = RawJson::from_value(&json!({
        "protocolVersion": "2025-06-18", "capabilities": {"sampling": {}}, "clientInfo": {"name": "c", "version": "1"},
    }));
    let (facts, transport) = (facts(Role::Server, 8), Arc::new(Transport::new("http")));
    Connection::adopted(facts, transport, Revision::NEWEST_LEGACY, &params).expect("parameters of initialize")
}

fn told(uris: &[&str]) -> Told {
    let subscriptions = uris.iter().map(|uri| (*uri).into()).collect();
    Told { level: Some(LogLevel::Error), initialized: true, subscriptions }
}

fn ended(actions: &[Action]) -> Vec<&str> {
    let mut all = Vec::new();
    for action in actions {
        if let Action::Unsubscribed(_, uris) = action {
            all.extend(uris.iter().map(|uri| &**uri));
        }
    }
    all
}

#[test]
fn a_subscription_ends_where_it_began() {
    let mut connection = adopted();
    let first = told(&["a:/1", "a:/2"]);
    assert!(ended(&connection.retell(Duration::ZERO, &Told::default(), first.clone())).is_empty());
    connection.subscribe("a:/3", true).expect("room");
    assert_eq!(connection.told().map(|told| told.subscriptions.len()), Some(3));
    assert_eq!(connection.log_level(), Some(LogLevel::Error));
    // One that began here and that nobody else knows of stays.
    assert!(ended(&connection.retell(Duration::ZERO, &first, first.clone())).is_empty());
    let all = connection.told().expect("a session");
    assert_eq!(all.subscriptions.len(), 3);
    // One that began elsewhere ends there, and one that began here was ended elsewhere.
    assert_eq!(ended(&connection.retell(Duration::ZERO, &all, told(&["a:/1"]))), ["a:/3"]);
    // The session is over: nothing that began here is left.
    assert!(ended(&connection.handle(Duration::ZERO, Input::Closed("over".into()))).is_empty());
}

#[test]
fn what_a_client_tells_is_counted() {
    let mut connection = adopted();
    let before = connection.told_count();
    connection.subscribe("a:/1", true).expect("room");
    connection.subscribe("a:/1", true).expect("room");
    assert_eq!(connection.told_count(), before + 1);
    let params = Some(RawJson::from_value(&json!({"level": "error"})));
    let message = Message::Request { id: Id::Number(1), method: "logging/setLevel".into(), params };
    connection.handle(Duration::ZERO, Input::Received(message));
    assert_eq!(connection.told_count(), before + 2);
}

#[test]
fn a_client_that_tells_two_processes_at_once_has_told_both() {
    let mut connection = adopted();
    let known = told(&["a:/1", "a:/2"]);
    connection.retell(Duration::ZERO, &Told::default(), known.clone());
    // Here it ends one and begins another, and changes the level; elsewhere it begins one and ends another.
    connection.subscribe("a:/1", false).expect("no limit");
    connection.subscribe("a:/here", true).expect("room");
    connection.retell(Duration::ZERO, &known, told(&["a:/1", "a:/there"]));
    let subscriptions = connection.told().expect("a session").subscriptions;
    assert_eq!(subscriptions.iter().map(|uri| &**uri).collect::<Vec<_>>(), ["a:/here", "a:/there"]);
}

#[test]
fn what_is_kept_of_a_client_is_what_others_need() {
    let params = RawJson::from_value(&json!({
        "protocolVersion": "2025-06-18", "capabilities": {"sampling": {}}, "clientInfo": {"name": "c", "version": "1"},
        "_meta": {"x": "long".repeat(100_000)}, "more": [1, 2, 3],
    }));
    let kept = Connection::kept(&params);
    assert!(kept.len() < 200, "{kept}");
    let (facts, transport) = (facts(Role::Server, 8), Arc::new(Transport::new("http")));
    let connection = Connection::adopted(facts, transport, Revision::NEWEST_LEGACY, &RawJson::trusted(kept));
    assert!(connection.is_ok_and(|connection| connection.told().is_some()));
}
