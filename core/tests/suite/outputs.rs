//! What tools answer, checked by the client against the schema that it has listed.
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
    assert!(error.message().ends_with("results: expected object, got null"), "{error}");
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
    assert!(error.message().contains("5000000 steps"), "{error}");
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
