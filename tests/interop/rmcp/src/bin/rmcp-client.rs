//! A client on the official Rust SDK: `rmcp-client TARGET [--revision R] [NAME JSON]...`.

use anyhow::Context;
use rmcp::model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::json;

async fn run() -> anyhow::Result<()> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let target = if words.is_empty() { anyhow::bail!("no target") } else { words.remove(0) };
    let modern = vec![ProtocolVersion::V_2026_07_28];
    let mut mode = ClientLifecycleMode::Auto { preferred_versions: modern.clone(), legacy_version: None };
    if words.first().is_some_and(|w| w == "--revision") {
        let revision = words.get(1).context("--revision needs a value")?;
        mode = match revision.as_str() {
            "2026-07-28" => ClientLifecycleMode::Discover { preferred_versions: modern },
            _ => ClientLifecycleMode::Initialize,
        };
        words.drain(..2);
    }
    let config = ClientConfig::new(ClientCapabilities::default(), Implementation::new("interop", "1.0.0"));
    let service = if target.starts_with("http") {
        config.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(target), mode).await?
    } else {
        let line: Vec<String> = match target.starts_with('[') {
            true => serde_json::from_str(&target)?,
            false => target.split_whitespace().map(str::to_owned).collect(),
        };
        let mut command = tokio::process::Command::new(line.first().context("an empty command")?);
        command.args(&line[1..]);
        config.serve_with_lifecycle(TokioChildProcess::new(command)?, mode).await?
    };
    let tools: Vec<String> = service.list_all_tools().await?.into_iter().map(|t| t.name.to_string()).collect();
    let mut calls = Vec::new();
    for call in words.chunks(2) {
        let [name, arguments] = call else { anyhow::bail!("a call is a name and its arguments") };
        let arguments = serde_json::from_str(arguments)?;
        let result = service.call_tool(CallToolRequestParams::new(name.clone()).with_arguments(arguments)).await?;
        let blocks = serde_json::to_value(&result.content)?;
        let blocks = blocks.as_array().cloned().unwrap_or_default();
        calls.push(json!({
            "error": result.is_error.unwrap_or(false),
            "text": blocks.first().and_then(|b| b["text"].as_str()).unwrap_or(""),
            "types": blocks.iter().map(|b| b["type"].clone()).collect::<Vec<_>>(),
            "structured": result.structured_content,
        }));
    }
    let version = service.peer_info().map(|info| info.protocol_version.to_string());
    println!("{}", json!({ "protocolVersion": version, "tools": tools, "calls": calls }));
    service.cancel().await?;
    Ok(())
}

fn main() -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}
