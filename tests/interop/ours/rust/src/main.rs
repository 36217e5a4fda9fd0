//! Our client in Rust: `interop-client TARGET [--revision R] [NAME JSON]...`.
#![expect(clippy::print_stdout, reason = "the report is the standard output")]

use serde_json::{Value, json};
use tricorn::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> tricorn::Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() {
        return Err(Error::misuse("usage: interop-client TARGET [--revision R] [NAME JSON]..."));
    }
    let target = words.remove(0);
    let mut options = ClientOptions::default();
    if words.first().is_some_and(|w| w == "--revision") {
        options.revision = words.get(1).cloned();
        words.drain(..2);
    }
    let client = Client::connect(&target.parse()?, &options).await?;
    let tools: Vec<Value> = client.list_tools().await?.into_iter().map(|mut t| t["name"].take()).collect();
    let mut calls = Vec::new();
    for call in words.chunks(2) {
        let [name, arguments] = call else { return Err(Error::misuse("a call is a name and its arguments")) };
        let arguments: Value = serde_json::from_str(arguments).map_err(|e| Error::misuse(e.to_string()))?;
        let result = client.call_tool(name, arguments).await?;
        let blocks = json!(result.content);
        let blocks = blocks.as_array().map_or(&[][..], Vec::as_slice);
        calls.push(json!({
            "error": result.is_error,
            "text": blocks.first().and_then(|b| b["text"].as_str()).unwrap_or(""),
            "types": blocks.iter().map(|b| &b["type"]).collect::<Vec<_>>(),
            "structured": result.structured_content,
        }));
    }
    println!("{}", json!({ "protocolVersion": client.revision().to_string(), "tools": tools, "calls": calls }));
    client.close().await;
    Ok(())
}
