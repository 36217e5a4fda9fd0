//! Definitions that are added again.

use super::*;

fn released(delivery: &Delivery) -> Option<Value> {
    match delivery {
        Delivery::Event { source: 0, name: "released", params } => Some(text(params)["handler"].clone()),
        _ => None,
    }
}

#[tokio::test]
async fn a_host_gets_a_handler_back_that_was_replaced() {
    let it = Fixture::new();
    let tool = |name: &str, text: &str| {
        json!({"name": name, "description": text, "inputSchema": {"type": "object"}}).to_string()
    };
    let options = ClientOptions::parse(r#"{"revision": "2025-11-25"}"#).expect("options");
    let client = crate::client::Client::in_memory(&it.server.server, &options).await.expect("connected");
    let done = Box::new(|_| {});
    let params = RawJson::from_value(&json!({"name": "t"}));
    let _guard = client.start("tools/call", Some(params), &CallOptions::default(), done);
    let key = it.next_call().await;
    let listed = async || {
        let tools = client.list_tools().await.expect("listed");
        tools.iter().map(|tool| tool["description"].as_str().expect("text").to_owned()).collect::<Vec<_>>()
    };
    it.server.add("tool", &tool("t", "new"), r#"{"replace": true}"#, 8).expect("replaced");
    assert_eq!(listed().await, ["new"]);
    // A call of it still runs.
    it.bridge.complete(key, Answer::Value(RawJson::empty_object()));
    assert_eq!(it.find(released).await, 7);
    it.server.add("tool", &tool("t", "hidden"), r#"{"replace": true, "enabled": false}"#, 9).expect("replaced");
    assert_eq!(it.find(released).await, 8);
    assert!(listed().await.is_empty());
    it.server.add("tool", &tool("t", "still"), r#"{"replace": true}"#, 10).expect("replaced");
    assert_eq!(it.find(released).await, 9);
    assert!(listed().await.is_empty(), "hidden as it was");
    it.server.add("tool", &tool("t", "shown"), r#"{"replace": true, "enabled": true}"#, 7).expect("replaced");
    assert_eq!(it.find(released).await, 10);
    assert_eq!(listed().await, ["shown"]);
    let params = RawJson::from_value(&json!({"name": "t"}));
    let _guard = client.start("tools/call", Some(params), &CallOptions::default(), Box::new(|_| {}));
    let key = it.next_call().await;
    for (number, text) in [(11, "mine"), (12, "mine, too")] {
        it.bridge.session_add(key, "tool", &tool("own", text), r#"{"replace": true}"#, number).expect("its own");
        assert_eq!(listed().await, ["shown", text]);
    }
    assert_eq!(it.find(released).await, 11);
}
