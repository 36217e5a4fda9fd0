//! Log messages: what a server tells its client besides answers.

use serde_json::{Value, json};
use tricorn::Events;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::protocol::LogLevel;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server() -> Server {
    Server::new("logging").tool("backup", "Copy everything", |_: Nothing, ctx: Context| async move {
        ctx.log(LogLevel::Debug, Some("backup"), &"looking for files");
        ctx.log(LogLevel::Info, Some("backup"), &"copying");
        ctx.log(LogLevel::Warning, Some("disk"), &json!({"free": 3}));
        Ok("backup done")
    })
}

/// Prints the server's log messages.
struct Heard;

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        let Some(Ok(message)) = params.map(RawJson::to::<Value>) else { return };
        if method == "notifications/message" {
            let word = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
            println!("{}: {}, {}", word("level"), word("logger"), message["data"]);
        }
    }
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let (app, handlers) = (server(), Handlers::new().events(Heard));
    let options = ClientOptions::new().revision("2025-11-25");
    let client = Client::in_memory_with(&app, &options, &handlers).await?;
    println!("no level: {}", client.call_tool("backup", json!({})).await?.text());
    client.set_log_level(LogLevel::Warning).await?;
    println!("level warning: {}", client.call_tool("backup", json!({})).await?.text());
    client.close().await;

    // Newer revisions ask with each call: for the level that was set, or one of its own.
    let client = Client::in_memory_with(&app, &ClientOptions::default(), &handlers).await?;
    client.set_log_level(LogLevel::Warning).await?;
    println!("newer, level warning: {}", client.call_tool("backup", json!({})).await?.text());
    let asking = CallOptions::new().meta(json!({"io.modelcontextprotocol/logLevel": "info"}));
    println!("one call: {}", client.call_tool_with("backup", json!({}), &asking).await?.text());
    client.close().await;
    Ok(())
}
