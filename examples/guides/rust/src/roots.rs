//! Roots: the folders that a client lets its server work on.

use serde_json::json;
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn server() -> Server {
    Server::new("roots").tool("folders", "Say where I may look", |_: Nothing, ctx: Context| async move {
        ctx.require("roots")?;
        let roots = ctx.list_roots().await?.roots;
        let shown = roots.into_iter().map(|root| match root.name {
            Some(name) => format!("{} ({name})", root.uri),
            None => root.uri,
        });
        Ok(shown.collect::<Vec<_>>().join(" "))
    })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let options = ClientOptions::new().revision("2025-11-25");

    let roots = Roots::new([json!("/srv/notes"), json!({"uri": "file:///srv/pictures", "name": "Pictures"})])?;
    let client = Client::in_memory_with(&app, &options, &Handlers::new().roots(&roots)).await?;
    println!("roots: {}", client.call_tool("folders", json!({})).await?.text());
    roots.set([json!("/srv/music")])?; // the server is told that they have changed
    println!("roots: {}", client.call_tool("folders", json!({})).await?.text());
    client.close().await;

    let client = Client::in_memory(&app, &options).await?;
    if let Err(error) = client.call_tool("folders", json!({})).await {
        println!("without roots: error {}, {}", error.code().unwrap_or_default(), error.message());
    }
    client.close().await;
    Ok(())
}
