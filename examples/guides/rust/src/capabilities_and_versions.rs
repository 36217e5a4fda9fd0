//! Capabilities of both sides, and the revision of the protocol that they speak.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tricorn::prelude::*;
use tricorn::protocol::revision::Revision;

#[derive(Deserialize, JsonSchema)]
struct Borrow {
    title: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// The schema's `Implementation`, as far as it matters here.
#[derive(Deserialize, Default)]
struct Name {
    name: String,
    version: String,
}

fn server() -> Server {
    Server::new("library")
        .version("1.2.0")
        .title("The library")
        .instructions("Ask for a book by its title.")
        .prompt(Prompt::new("borrow").description("Borrow a book"), |Borrow { title }: Borrow| async move {
            Ok(format!("I would like to read {title}."))
        })
        .tool("caller", "Say who calls", |_: Nothing, ctx: Context| async move {
            let request = ctx.request();
            let who: Name = request.peer.info.as_ref().and_then(|info| info.to().ok()).unwrap_or_default();
            let sampling = request.peer.capabilities.has("sampling");
            Ok(format!("{} {}, {}, sampling: {sampling}", who.name, who.version, request.revision))
        })
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    for revision in Revision::ALL {
        let options = ClientOptions::new().revision(revision.to_string());
        let client = Client::in_memory(&app, &options).await?;
        let capabilities: BTreeMap<String, Value> = client.capabilities().raw().to().unwrap_or_default();
        let names = capabilities.into_keys().collect::<Vec<_>>().join(", ");
        println!("{} {}: {names}", client.revision(), client.revision().era().as_str());
        client.close().await;
    }

    let options = ClientOptions::new().name("reader").version("0.3.0");
    let client = Client::in_memory(&app, &options).await?; // the newest that both speak
    println!("negotiated: {}", client.revision());
    let server: Name = client.server_info().and_then(|info| info.to().ok()).unwrap_or_default();
    println!("server: {} {}, {}", server.name, server.version, client.instructions().unwrap_or_default());
    println!("client: {}", client.call_tool("caller", json!({})).await?.text());
    if let Err(error) = client.list_resources().await {
        println!("not offered: {}", error.kind().as_str());
    }
    client.close().await;

    let options = options.revision("2025-11-25");
    let handlers = Handlers::new().sampling(|| async { Ok("hello") });
    let client = Client::in_memory_with(&app, &options, &handlers).await?;
    println!("client: {}", client.call_tool("caller", json!({})).await?.text());
    client.close().await;

    let options = options.revision("2020-01-01");
    if let Err(error) = Client::in_memory(&app, &options).await {
        println!("unknown revision: {}", error.kind().as_str());
    }
    Ok(())
}
