//! Ping: whether the other side is still there.

use std::time::Duration;

use serde_json::json;
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server() -> Server {
    Server::new("ping").tool("ask_back", "Ping the client", |_: Nothing, ctx: Context| async move {
        ctx.ask("ping", None, &CallOptions::new().timeout(Duration::from_secs(5))).await?;
        Ok("the client is there")
    })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let patience = CallOptions::new().timeout(Duration::from_secs(5));

    let options = ClientOptions::new().revision("2025-11-25");
    let client = Client::in_memory(&app, &options).await?;
    client.ping_with(&patience).await?;
    println!("{}: the server is there", client.revision());
    println!("{}: {}", client.revision(), client.call_tool("ask_back", json!({})).await?.text());
    client.close().await;

    let client = Client::in_memory(&app, &ClientOptions::default()).await?;
    client.ping_with(&patience).await?;
    println!("{}: the server is there", client.revision());
    client.close().await;
    Ok(())
}
