//! A host that listens to changes.

use super::*;
use crate::server::Kind;

fn settled(delivery: &Delivery) -> Option<Value> {
    match delivery {
        Delivery::Settle { op, outcome: Ok(result) } => Some(json!([op, text(result)])),
        Delivery::Settle { op, outcome: Err(error) } => Some(json!([op, format!("{:?}", error.kind())])),
        _ => None,
    }
}

fn notified(delivery: &Delivery) -> Option<Value> {
    match delivery {
        Delivery::Event { source: 2, name: "notification", params, .. } => Some(text(params)["method"].clone()),
        _ => None,
    }
}

#[tokio::test]
async fn a_host_takes_one_change_after_the_other() {
    const TOOLS: &str = "notifications/tools/list_changed";
    for revision in ["2025-11-25", "2026-07-28"] {
        let it = Fixture::new();
        let options = json!({"revision": revision}).to_string();
        let client = Client::in_memory(&it.bridge, 2, &it.server, &options).expect("a client");
        client.listen(1, 7, r#"{"toolsListChanged": true}"#);
        assert_eq!(it.find(settled).await, json!([1, "Misuse"]), "not connected");
        client.connect(2);
        it.find(settled).await;
        client.listen(3, 7, r#"{"toolsListChanged": true, "resourceSubscriptions": ["a:"]}"#);
        assert_eq!(it.find(settled).await, json!([3, "Unsupported"]));
        client.listen(4, 7, r#"{"toolsListChanged": true}"#);
        assert_eq!(it.find(settled).await, json!([4, {"toolsListChanged": true}]));
        client.next_change(5, 7);
        it.server.server.list_changed(Kind::Tool);
        assert_eq!(it.find(settled).await, json!([5, {"method": TOOLS}]));
        assert_eq!(it.server.server.usage().listeners, usize::from(revision > "2026"));
        // A waiting call is told that it is over.
        client.next_change(9, 7);
        client.end_listening(7);
        assert_eq!(it.find(settled).await, json!([9, null]));
        client.next_change(6, 7);
        assert_eq!(it.find(settled).await, json!([6, null]), "nothing is listened to");
        it.settle().await;
        assert_eq!(it.server.server.usage().listeners, 0);
        // Notifications that its handlers hear.
        client.hear_changes();
        it.settle().await;
        it.server.server.list_changed(Kind::Tool);
        assert_eq!(it.find(notified).await, TOOLS);
        client.listen(8, 8, r#"{"toolsListChanged": true}"#);
        it.find(settled).await;
        client.close(9);
        it.find(settled).await;
        assert_eq!(it.server.server.usage().listeners, 0);
        client.next_change(10, 8);
        assert_eq!(it.find(settled).await, json!([10, "Closed"]), "and so it says to the listener");
    }
}

#[tokio::test]
async fn what_is_given_up_as_it_begins_leaves_nothing() {
    let it = Fixture::new();
    let client = Client::in_memory(&it.bridge, 2, &it.server, r#"{"revision": "2026-07-28"}"#).expect("a client");
    client.connect(1);
    it.find(settled).await;
    for n in 0..32 {
        client.listen(100 + n, n, r#"{"toolsListChanged": true}"#);
        for _ in 0..n {
            tokio::task::yield_now().await;
        }
        it.bridge.settle(100 + n);
        client.end_listening(n);
    }
    it.settle().await;
    assert_eq!(it.server.server.usage().listeners, 0);
}

#[tokio::test]
async fn changes_of_a_list_that_wait_are_one() {
    let it = Fixture::new();
    let tools = || super::super::message("notifications/tools/list_changed", None);
    let prompts = super::super::message("notifications/prompts/list_changed", None);
    for _ in 0..20_000 {
        it.bridge.offer_event(1, "notification", tools());
    }
    it.bridge.offer_event(1, "notification", prompts);
    it.bridge.offer_event(2, "notification", tools());
    assert_eq!(it.bridge.take().len(), 3);
    // A notification that was taken stands for none that comes after it.
    it.bridge.offer_event(1, "notification", tools());
    assert_eq!(it.bridge.take().len(), 1);
    assert_eq!(it.bridge.metrics().dropped, 0);
}
