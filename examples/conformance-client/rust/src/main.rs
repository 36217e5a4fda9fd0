//! The official suite's client: `run URL`, told by the environment what to do.

mod auth;

use serde_json::{Map, Value, json};
use tricorn::prelude::*;

fn context() -> Value {
    std::env::var("MCP_CONFORMANCE_CONTEXT").ok().and_then(|c| serde_json::from_str(&c).ok()).unwrap_or_default()
}

fn named(tools: &[Map<String, Value>], name: &str) -> Option<Map<String, Value>> {
    tools.iter().find(|t| t.get("name").and_then(Value::as_str) == Some(name)).cloned()
}

async fn play(scenario: &str, client: &Client) -> tricorn::Result<()> {
    // Some of the suite's servers have none.
    let tools = if client.capabilities().has("tools") { client.list_tools().await? } else { Vec::new() };
    match scenario {
        "initialize" | "json-schema-ref-no-deref" => {}
        "tools_call" => {
            client.call_tool("add_numbers", json!({"a": 5, "b": 3})).await?;
        }
        "request-metadata" | "http-standard-headers" => {
            for tool in &tools {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                client.call_tool(name, json!({})).await?;
            }
        }
        "http-custom-headers" => {
            let calls = context()["toolCalls"].as_array().cloned().unwrap_or_default();
            for call in calls {
                client.call_tool(call["name"].as_str().unwrap_or_default(), &call["arguments"]).await?;
            }
        }
        "http-invalid-tool-headers" => {
            for tool in &tools {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                client.call_tool(name, json!({"region": "eu"})).await?;
            }
        }
        "json-schema-2020-12-preservation" => {
            let tool = named(&tools, "json_schema_2020_12_tool").unwrap_or_default();
            let schema = tool.get("inputSchema").cloned().unwrap_or_default();
            client.call_tool("json_schema_echo", json!({"schema": schema})).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            for tool in &tools {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
                client.call_tool(name, json!({})).await?;
            }
        }
        "sse-retry" => {
            client.call_tool("test_reconnection", json!({})).await?;
        }
        "sep-2322-client-request-state" => {
            for name in ["echo_state", "unrelated", "no_state", "no_result_type"] {
                client.call_tool(&format!("test_mrtr_{name}"), json!({})).await?;
            }
        }
        auth if auth.starts_with("auth/") => {
            client.call_tool("test-tool", json!({})).await?;
        }
        other => return Err(Error::misuse(format!("scenario {other:?} is not played yet"))),
    }
    Ok(())
}

/// Accepts every form with this: defaults are filled in on the way.
struct Accepts(Value);

impl tricorn::Handler for Accepts {
    fn call(&self, _: Context, _: tricorn::jsonrpc::RawJson, reply: tricorn::Reply) {
        reply.result(tricorn::jsonrpc::RawJson::from_value(&json!({"action": "accept", "content": self.0})));
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> tricorn::Result<()> {
    let url = std::env::args().next_back().ok_or_else(|| Error::misuse("usage: run URL"))?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_else(|_| "initialize".into());
    let mut options = ClientOptions::new().name("tricorn-conformance");
    if scenario == "request-metadata" {
        let all = r#"{"roots":{},"sampling":{},"elicitation":{}}"#;
        options = options.capabilities(tricorn::jsonrpc::RawJson::trusted(all));
    }
    if let Some(revision) = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").ok().filter(|v| !v.is_empty()) {
        options = options.revision(revision);
    }
    if scenario.starts_with("auth/") {
        options = options.auth(auth::options(&scenario, &context()));
    }
    let mut handlers = Handlers::new();
    if scenario.starts_with("elicitation") {
        handlers = handlers.elicitation(std::sync::Arc::new(Accepts(json!({}))));
    } else if scenario.starts_with("sep-2322") {
        handlers = handlers.elicitation(std::sync::Arc::new(Accepts(json!({"confirmed": true}))));
    }
    let client = Client::connect_with(&url.parse()?, &options, &handlers).await?;
    let outcome = play(&scenario, &client).await;
    client.close().await;
    outcome
}
