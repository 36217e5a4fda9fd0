//! Tests of tools' answers, which the client checks against the schema that it has listed.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tricorn::client::{Client, ClientOptions, Handlers};
use tricorn::jsonrpc::RawJson;
use tricorn::middleware::{Next, Request};
use tricorn::prelude::*;
use tricorn::{CallOptions, ErrorKind, Handler, Reply};

/// The tool `t`, listed with this output schema, answers with the members that its arguments have.
fn server(schema: &Value) -> Server {
    let listed = schema.clone();
    Server::new("s").tool("t", "", |_: Map<String, Value>| async { Ok("") }).middleware(
        move |request: Request, context: Context, next: Next| {
            let listed = listed.clone();
            async move {
                let arguments = request.params.as_ref().and_then(|params| params.to::<Value>().ok());
                let arguments = arguments.map(|params| params["arguments"].clone()).unwrap_or_default();
                let method = request.method.clone();
                let mut result: Value = next.run(request, &context).await?.to().unwrap();
                match (method.as_str(), arguments) {
                    ("tools/list", _) => result["tools"][0]["outputSchema"] = listed,
                    ("tools/call", Value::Object(members)) => {
                        result.as_object_mut().unwrap().extend(members);
                    }
                    _ => {}
                }
                Ok(RawJson::from_value(&result))
            }
        },
    )
}

/// Is there and never called.
struct Idle;

impl Handler for Idle {
    fn call(&self, _: Context, _: RawJson, _: Reply) {}
}

async fn connected(server: &Server, options: Value) -> Client {
    let options = ClientOptions::parse(&options.to_string()).unwrap();
    Client::in_memory_with(server, &options, &Handlers::new()).await.unwrap()
}

fn point() -> Value {
    json!({"type": "object", "properties": {"at": {"type": "array", "items": {"type": "integer"}}}, "required": ["at"]})
}

#[tokio::test]
async fn what_does_not_fit_is_an_error_that_says_where() {
    for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        let client = connected(&server(&point()), json!({"revision": revision})).await;
        let bad = json!({"structuredContent": {"at": [1, "x"]}});
        let given = client.call_tool("t", &bad).await.unwrap();
        assert!(given.structured_content.is_some(), "{revision}: what is not listed is not checked");
        client.list_tools().await.unwrap();
        client.call_tool("t", json!({"structuredContent": {"at": [1, 2]}})).await.unwrap();
        let error = client.call_tool("t", &bad).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerMisbehaved, "{revision}");
        let expected = r#"result of tools/call: tool "t": structuredContent does not fit its outputSchema at "/at/1": result "at[1]": expected integer, got "x""#;
        assert_eq!(error.message(), expected, "{revision}");
        let none = client.call_tool("t", json!({})).await.unwrap_err();
        assert!(none.message().contains("tool \"t\": structuredContent is missing"), "{revision}: {none}");
        // A tool that failed owes nothing.
        let failed = json!({"isError": true});
        assert!(client.call_tool("t", &failed).await.unwrap().is_error, "{revision}");
        // Any request is checked alike.
        let params = RawJson::from_value(&json!({"name": "t", "arguments": bad}));
        assert!(client.request("tools/call", Some(params), &CallOptions::default()).await.is_err(), "{revision}");
    }
}

#[tokio::test]
async fn it_can_be_switched_off() {
    let client = connected(&server(&point()), json!({"validate_output": false})).await;
    client.list_tools().await.unwrap();
    let given = client.call_tool("t", json!({"structuredContent": 1})).await.unwrap();
    assert_eq!(given.structured_content.unwrap().get(), "1");
}

#[tokio::test]
async fn null_is_a_value_where_any_is() {
    let null = json!({"structuredContent": null});
    let client = connected(&server(&json!({"type": ["object", "null"]})), json!({"revision": "2026-07-28"})).await;
    client.list_tools().await.unwrap();
    let given = client.call_tool("t", &null).await.unwrap();
    assert_eq!(given.structured_content.as_ref().map(RawJson::get), Some("null"));
    assert_eq!(given.structured_as::<Option<i64>>().unwrap(), None);
    assert!(client.call_tool("t", json!({})).await.unwrap_err().message().contains("is missing"));
    let objects = connected(&server(&point()), json!({"revision": "2026-07-28"})).await;
    objects.list_tools().await.unwrap();
    let error = objects.call_tool("t", &null).await.unwrap_err();
    assert!(error.message().ends_with("result: expected object, got null"), "{error}");
    // Where it has to be an object, our servers wrap it.
    let client = connected(&server(&point()), json!({"revision": "2025-11-25"})).await;
    let wrapped = client.call_tool("t", &null).await.unwrap().structured_content.unwrap();
    assert_eq!(wrapped.get(), r#"{"result":null}"#);
}

#[tokio::test]
async fn what_cannot_be_checked_is_not_called() {
    for (schema, why) in [
        (json!({"$ref": "https://example.com/s.json"}), "not followed"),
        (json!({"$schema": "urn:mine"}), "dialect \"urn:mine\" is not supported"),
        (json!({"type": "strng"}), "not a valid JSON Schema"),
        ((0..70).fold(json!({}), |inner, _| json!({"items": inner})), "64 levels"),
    ] {
        let client = connected(&server(&schema), json!({"revision": "2026-07-28"})).await;
        client.list_tools().await.unwrap();
        let error = client.call_tool("t", json!({"structuredContent": {}})).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PeerMisbehaved);
        assert!(error.message().starts_with("tool \"t\" was not called: outputSchema: "), "{error}");
        assert!(error.message().contains(why) && error.message().contains("validate_output"), "{error}");
    }
}

#[tokio::test]
async fn a_check_that_would_not_end_is_not_begun() {
    let doubling = json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]});
    let client = connected(&server(&doubling), json!({"revision": "2026-07-28"})).await;
    client.list_tools().await.unwrap();
    let nested = (0..60).fold(json!([]), |inner, _| json!([inner]));
    let error = client.call_tool("t", json!({"structuredContent": nested})).await.unwrap_err();
    assert!(error.message().contains("3000000 steps"), "{error}");
}

/// Sixteen definitions of 1.8 KB, each of which leads to the next one twice, and more of them.
fn doubling(levels: usize) -> Value {
    let each = |n: usize| {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        (format!("d{n}"), json!({"anyOf": [next, next], "unevaluatedProperties": false}))
    };
    let mut defs: serde_json::Map<String, Value> = (0..levels).map(each).collect();
    defs.insert(format!("d{levels}"), json!({"properties": {"a": {}}}));
    json!({"type": "object", "$defs": defs, "$ref": "#/$defs/d0"})
}

#[tokio::test]
async fn a_check_that_takes_long_holds_up_nobody() {
    let modern = || json!({"revision": "2026-07-28"});
    let (slow, good) =
        (connected(&server(&doubling(40)), modern()).await, connected(&server(&point()), modern()).await);
    slow.list_tools().await.unwrap();
    good.list_tools().await.unwrap();
    let value = json!({"structuredContent": {"a": 1}});
    let short = CallOptions::new().timeout(std::time::Duration::from_millis(200));
    let right = json!({"structuredContent": {"at": [1]}});
    let (late, right) = tokio::join!(slow.call_tool_with("t", &value, &short), good.call_tool("t", right));
    let late = late.unwrap_err();
    assert!(matches!(late.kind(), ErrorKind::Timeout | ErrorKind::PeerMisbehaved), "{late}");
    assert!(right.is_ok());
    let named = slow.call_tool("t", &value).await.unwrap_err();
    assert_eq!(named.kind(), ErrorKind::PeerMisbehaved);
    assert!(named.message().contains("3000000 steps, most of them at \"/$defs/d"), "{named}");
    slow.close().await;
    // What ends is right.
    let client = connected(&server(&doubling(14)), modern()).await;
    client.list_tools().await.unwrap();
    assert!(client.call_tool("t", &value).await.is_ok());
}

#[tokio::test]
async fn a_reference_is_read_in_either_spelling() {
    for reference in ["#/$defs/Line%20Item", "#/$defs/Line Item"] {
        // A property may be called as a keyword is.
        for name in ["p", "default"] {
            let schema = json!({"type": "object", "properties": {name: {"$ref": reference}},
                "$defs": {"Line Item": {"type": "integer"}}});
            let client = connected(&server(&schema), json!({})).await;
            client.list_tools().await.unwrap();
            assert!(client.call_tool("t", json!({"structuredContent": {name: 1}})).await.is_ok(), "{reference}");
            let bad = client.call_tool("t", json!({"structuredContent": {name: "x"}})).await.unwrap_err();
            let expected = format!("result {name:?}: expected integer, got \"x\"");
            assert!(bad.message().ends_with(&expected), "{bad}");
        }
    }
}

#[tokio::test]
async fn patterns_that_are_too_large_are_named_before_the_call() {
    let all: serde_json::Map<String, Value> = (0..300)
        .map(|n| (n.to_string(), json!({"pattern": format!(r"^[\p{{L}}\p{{N}}\p{{S}}]{{90}}x{n}$")})))
        .collect();
    let client = connected(&server(&json!({"type": "object", "properties": all})), json!({})).await;
    client.list_tools().await.unwrap();
    let error = client.call_tool("t", json!({"structuredContent": {}})).await.unwrap_err();
    assert!(
        error.message().starts_with("tool \"t\" was not called") && error.message().contains("/properties/"),
        "{error}"
    );
}

#[tokio::test]
async fn a_list_that_has_changed_is_no_longer_believed() {
    let server = server(&point());
    let client = connected(&server, json!({"revision": "2025-11-25"})).await;
    client.list_tools().await.unwrap();
    let bad = json!({"structuredContent": {"at": "x"}});
    assert!(client.call_tool("t", &bad).await.is_err());
    server.add_tool(Tool::new("u", ""), Arc::new(Idle)).unwrap();
    // The change is told before what is asked for after it is answered, sooner or later.
    while client.call_tool("t", &bad).await.is_err() {
        tokio::task::yield_now().await;
    }
}
