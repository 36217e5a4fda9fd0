//! Definitions that are added again.

use super::*;

fn released(delivery: &Delivery) -> Option<Value> {
    match delivery {
        Delivery::Event { source: 0, name: "released", params, .. } => Some(text(params)["handler"].clone()),
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

#[tokio::test]
async fn a_handler_that_is_gone_is_answered_as_what_there_is_not() {
    let it = Fixture::new();
    it.server.add("resource", r#"{"name": "r", "uri": "memo://r"}"#, "", 21).expect("added");
    it.server
        .add("prompt", r#"{"name": "p", "arguments": [{"name": "a"}]}"#, r#"{"completions": {"a": 23}}"#, 22)
        .expect("added");
    let own = json!({"id": "com.example/x", "methods": [{"name": "com.example/x/do", "handler": 24}]});
    it.server.add_extension(&own.to_string()).expect("added");
    let options = ClientOptions::parse(r#"{"revision": "2025-11-25", "extensions": {"com.example/x": {}}}"#);
    let client =
        crate::client::Client::in_memory(&it.server.server, &options.expect("options")).await.expect("connected");
    let argument = json!({"name": "a", "value": ""});
    for (method, params, code, words) in [
        ("tools/call", json!({"name": "t"}), -32602, "unknown tool \"t\""),
        ("resources/read", json!({"uri": "memo://r"}), -32002, "there is no resource \"memo://r\""),
        ("prompts/get", json!({"name": "p"}), -32602, "unknown prompt \"p\""),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": argument}),
            -32602,
            "ref",
        ),
        ("com.example/x/do", json!({}), -32601, "is not served"),
    ] {
        let (tell, told) = tokio::sync::oneshot::channel();
        let done = Box::new(move |outcome: Result<RawJson>| drop(tell.send(outcome)));
        let _guard = client.start(method, Some(RawJson::from_value(&params)), &CallOptions::default(), done);
        let key = it.next_call().await;
        assert!(it.bridge.complete(key, Answer::Gone), "{method}");
        let error = told.await.expect("told").expect_err(method);
        assert_eq!(error.code(), Some(code), "{method}: {error}");
        assert!(error.message().contains(words), "{method}: {error}");
    }
}
