//! JSON Schema: given as it is, and checked as it says.

use serde_json::{Value, json};
use tricorn::prelude::*;
use tricorn::server::IntoHandler;

fn server() -> Server {
    let contact = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"number": {"type": "string", "minLength": 3}},
        "properties": {
            "by": {"enum": ["phone", "mail"]}, "phone": {"$ref": "#/$defs/number"}, "mail": {"type": "string"},
        },
        "required": ["by"],
        "if": {"properties": {"by": {"const": "phone"}}},
        "then": {"required": ["phone"]},
        "else": {"required": ["mail"]},
    });
    let pair = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"pair": {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}},
    });
    let number = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    Server::new("schemas")
        .on_error(|_, _| {})
        .tool_with(Tool::new("contact", "Call or write").input_schema(contact), |given: Value| async move {
            Ok(match given["phone"].as_str() {
                Some(phone) if given["by"] == "phone" => format!("called {phone}"),
                _ => format!("wrote to {}", given["mail"].as_str().unwrap_or_default()),
            })
        })
        .tool_with(
            Tool::new("pair", "Take a pair, as draft-07 describes it").input_schema(pair),
            |_: Value| async move { Ok("ok") },
        )
        .tool_with(Tool::new("broken", "Break a promise").output_schema(number), || async {
            Ok(json!({"n": "not a number"}))
        })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let client = Client::in_memory(&app, &ClientOptions::default()).await?;
    let schema = client.list_tools().await?[0]["inputSchema"].clone();
    let kept: Vec<_> = ["$defs", "if"].into_iter().filter(|key| schema.get(key).is_some()).collect();
    println!("listed: {}, {}", schema["$schema"].as_str().unwrap_or_default(), kept.join(", "));

    let called = client.call_tool("contact", json!({"by": "phone", "phone": "555-0100"})).await?;
    println!("contact: {}", called.text());
    let calls = [("contact", json!({"by": "phone"})), ("pair", json!({"pair": ["a", "b"]})), ("broken", json!({}))];
    for (name, arguments) in calls {
        let result = client.call_tool(name, arguments).await?;
        println!("{name}: is_error={}, {}", result.is_error, result.text());
    }
    client.close().await;

    let outside = json!({"type": "object", "properties": {"home": {"$ref": "https://example.com/address.json"}}});
    let tool = Tool::new("outside", "").input_schema(outside);
    if let Err(error) = app.add_tool(tool, (|| async { Ok("") }).into_handler()) {
        println!("refused: {}", error.message());
    }
    Ok(())
}
