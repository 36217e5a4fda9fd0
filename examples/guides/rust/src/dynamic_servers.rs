//! Servers that change while they run: for everybody, for one client, and by themselves.

use serde_json::json;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tricorn::Events;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::server::{IntoHandler, Kind, Parameters};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Wanted {
    uri: String,
}

fn server() -> Server {
    let app = Server::new("dynamic")
        .tool("unlock", "Show the vault to this client, and give it a key", |_: Nothing, ctx: Context| async move {
            let session = ctx.session()?;
            session.set_enabled(Kind::Tool, "vault", true)?;
            let key = Tool::new("key", "What this client alone has");
            session.add_tool(key, (|| async { Ok("brass") }).into_handler())?;
            Ok("open")
        })
        .tool("vault", "What is in the vault", || async { Ok("gold") })
        .resource(Resource::new("note://first", "first"), || async { Ok("1") })
        .prompt(Prompt::new("first").description("The first prompt"), || async { Ok("1") });
    app.set_enabled(Kind::Tool, "vault", false);
    app
}

/// Hears which lists have changed.
struct Heard(UnboundedSender<String>);

impl Events for Heard {
    fn notification(&self, method: &str, _: Option<&RawJson>) {
        let list = method.strip_prefix("notifications/").and_then(|rest| rest.strip_suffix("s/list_changed"));
        if let Some(kind) = list {
            self.0.send(kind.to_owned()).ok();
        }
    }
}

async fn names(client: &Client, kind: Kind, key: &str) -> tricorn::Result<String> {
    let entries = client.pages(kind, &CallOptions::new()).all().await?;
    Ok(entries.iter().filter_map(|entry| entry[key].as_str()).collect::<Vec<_>>().join(", "))
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let (sender, mut changes) = unbounded_channel();
    let options = ClientOptions::new().revision("2025-11-25");
    let client = Client::in_memory_with(&app, &options, &Handlers::new().events(Heard(sender))).await?;
    let other = Client::in_memory(&app, &options).await?;
    println!("tools: {}", names(&client, Kind::Tool, "name").await?);

    app.add_tool(Tool::new("clock", "What time it is"), (|| async { Ok("noon") }).into_handler())?;
    println!("changed: {}", changes.recv().await.unwrap_or_default());
    println!("tools: {}", names(&client, Kind::Tool, "name").await?);

    app.replace_tool(Tool::new("clock", "What time it is"), (|| async { Ok("midnight") }).into_handler())?;
    println!("replaced: {}", changes.recv().await.unwrap_or_default());
    println!("clock: {}", client.call_tool("clock", json!({})).await?.text());

    app.add_resource(Resource::new("note://second", "second"), (|| async { Ok("2") }).into_handler())?;
    println!("changed: {}", changes.recv().await.unwrap_or_default());
    println!("resources: {}", names(&client, Kind::Resource, "uri").await?);

    let prompt = Prompt::new("second").description("The second prompt");
    app.add_prompt(prompt, Parameters::default(), (|| async { Ok("2") }).into_handler())?;
    println!("changed: {}", changes.recv().await.unwrap_or_default());
    println!("prompts: {}", names(&client, Kind::Prompt, "name").await?);

    app.set_enabled(Kind::Tool, "clock", false);
    println!("hidden: {}", changes.recv().await.unwrap_or_default());
    println!("tools: {}", names(&client, Kind::Tool, "name").await?);
    if let Err(error) = client.call_tool("clock", json!({})).await {
        println!("clock: error {}", error.code().unwrap_or_default());
    }

    client.call_tool("unlock", json!({})).await?;
    println!("for this client: {}", changes.recv().await.unwrap_or_default());
    println!("tools: {}", names(&client, Kind::Tool, "name").await?);
    println!("key: {}", client.call_tool("key", json!({})).await?.text());
    println!("other client: {}", names(&other, Kind::Tool, "name").await?);

    // What is registered nowhere comes from a source, such as a database.
    let rows = |Wanted { uri }: Wanted| async move { Ok(format!("row {}", uri.trim_start_matches("row://"))) };
    app.set_source(Kind::Resource, None, Some(rows.into_handler()));
    println!("from a source: {}", client.read_resource("row://7").await?.text());

    client.close().await;
    other.close().await;
    Ok(())
}
