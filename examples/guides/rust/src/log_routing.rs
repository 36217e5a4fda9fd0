//! Routes the events that a program logs with `tracing` anyway to the client of the call that they happen in.

use serde_json::{Value, json};
use tracing::Instrument;
use tracing_subscriber::prelude::*;
use tricorn::Events;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::protocol::LogLevel;

fn server() -> Server {
    // No word about the protocol here or in what this calls.
    Server::new("logging").tool("backup", "Copy everything", async || {
        tracing::debug!(target: "backup", "looking for files");
        tracing::info!(target: "backup", "copying");
        tracing::warn!(target: "disk", free = 3);
        // A task of its own belongs to the call by its span.
        let check = async { tracing::info!(target: "check", "all there") };
        tokio::spawn(check.instrument(tracing::info_span!("check"))).await?;
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
    // Beside the layers there are: standard error, a file.
    tracing_subscriber::registry().with(tricorn::tracing::layer()).init();
    tracing::info!("in no call, so for no client");

    let (app, handlers) = (server(), Handlers::new().events(Heard));
    let options = ClientOptions::new().revision("2025-11-25");
    let client = Client::in_memory_with(&app, &options, &handlers).await?;
    println!("no level: {}", client.call_tool("backup", json!({})).await?.text());
    client.set_log_level(LogLevel::Warning).await?;
    println!("level warning: {}", client.call_tool("backup", json!({})).await?.text());
    client.close().await;
    Ok(())
}
