//! Sampling: a tool has the client's model write something.

use serde_json::{Value, json};
use tricorn::prelude::*;
use tricorn::server::CreateMessageRequestParams;

#[derive(Deserialize, JsonSchema)]
struct Input {
    text: String,
}

fn server() -> Server {
    Server::new("sampling")
        .tool("summarize", "Sum up a text", |Input { text }: Input, ctx: Context| async move {
            ctx.require("sampling")?;
            let question = CreateMessageRequestParams::new(50)
                .system_prompt("Be brief.")
                .user(&Content::text(format!("Sum up: {text}")));
            let result = ctx.sample(&question).await?;
            Ok(format!("{} ({}, {})", result.text(), result.model, result.stop_reason.unwrap_or_default()))
        })
        .tool("translate", "Sum up a text in French", |Input { text }: Input, ctx: Context| async move {
            let conversation = CreateMessageRequestParams::new(20)
                .user(&Content::text(format!("Sum up: {text}")))
                .assistant(&Content::text("A fox jumps."))
                .user(&Content::text("And in French?"));
            Ok(ctx.sample(&conversation).await?.text())
        })
}

/// Stands for a real model, which the user lets answer.
async fn model(params: Value) -> Result<Value, HandlerError> {
    let last = params["messages"].as_array().and_then(|messages| messages.last());
    let asked = last.and_then(|message| message["content"]["text"].as_str()).unwrap_or_default();
    println!("model: {asked} (at most {} tokens)", params["maxTokens"]);
    if asked.contains("secret") {
        return Err(Error::rpc(-1, "the user said no").into());
    }
    let text = if asked.contains("French") { "Un renard saute." } else { "A fox jumps." };
    Ok(json!({"content": text, "model": "tiny-1", "stopReason": "endTurn"}))
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let options = ClientOptions::new().revision("2025-11-25");

    let handlers = Handlers::new().sampling(model);
    let client = Client::in_memory_with(&app, &options, &handlers).await?;
    let text = "The quick brown fox jumps.";
    println!("summary: {}", client.call_tool("summarize", json!({"text": text})).await?.text());
    println!("translation: {}", client.call_tool("translate", json!({"text": text})).await?.text());
    println!("refused: {}", client.call_tool("summarize", json!({"text": "secret"})).await?.text());
    client.close().await;

    let client = Client::in_memory(&app, &options).await?;
    if let Err(error) = client.call_tool("summarize", json!({"text": "x"})).await {
        println!("no model: error {}, {}", error.code().unwrap_or_default(), error.message());
    }
    client.close().await;
    Ok(())
}
