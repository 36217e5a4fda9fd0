//! Many servers: used as if they were one.

use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tricorn::Events;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;
use tricorn::server::IntoHandler;

#[derive(Deserialize, JsonSchema)]
struct Find {
    name: String,
}

fn maps() -> Server {
    Server::new("maps")
        .tool("find", "Find a city", |Find { name }: Find| async move { Ok(format!("the map of {name}")) })
        .tool("zoom", "Look closer", || async { Ok("closer") })
}

fn files() -> Server {
    Server::new("files")
        .tool("find", "Find a file", |Find { name }: Find| async move { Ok(format!("file:///{name}.txt")) })
        .resource(Resource::new("file:///Rome.txt", "Rome.txt"), || async { Ok("Not built in a day.") })
}

/// Hears which lists of a server have changed.
struct Heard(String, UnboundedSender<String>);

impl Events for Heard {
    fn notification(&self, method: &str, _: Option<&RawJson>) {
        let list = method.strip_prefix("notifications/").and_then(|rest| rest.strip_suffix("s/list_changed"));
        if let Some(kind) = list {
            self.1.send(format!("{} {kind}", self.0)).ok();
        }
    }
}

async fn find(group: &ClientGroup, tool: &str) -> tricorn::Result<()> {
    println!("{tool}: {}", group.call_tool(tool, json!({"name": "Rome"})).await?.text());
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let maps = maps();
    let servers = Servers::parse(r#"{"mcpServers": {"broken": {"command": "/no/such/program"}}}"#)?
        .server("maps", maps.clone())
        .server("files", files());
    let (sender, mut news) = unbounded_channel();
    let options = ClientOptions::new().revision("2025-11-25");
    let for_server = move |name: &str| Handlers::new().events(Heard(name.to_owned(), sender.clone()));
    let group = ClientGroup::connect_with(servers, options, for_server).await?;
    println!("servers: {}", group.names().join(", "));
    for (name, failure) in group.failures() {
        println!("failed: {name}, {}", kind(&failure));
    }

    for tool in group.tools().await.entries {
        println!("{} of {}", tool.name, tool.server);
    }
    find(&group, "maps_find").await?;
    find(&group, "files_find").await?;
    println!("zoom: {}", group.call_tool("zoom", json!({})).await?.text());
    println!("file:///Rome.txt: {}", group.read_resource("file:///Rome.txt").await?.text());
    if let Err(error) = group.call_tool("zooom", json!({})).await {
        println!("zooom: {}", kind(&error));
    }

    // One of them, with its own names.
    if let Some(client) = group.get("maps") {
        let tools = client.list_tools().await?;
        println!("maps alone: {}", tools.iter().map(|tool| text(tool, "name")).collect::<Vec<_>>().join(", "));
    }

    maps.add_tool(Tool::new("turn", ""), (|| async { Ok("north") }).into_handler())?;
    println!("changed: {}", news.recv().await.unwrap_or_default());
    println!("turn: {}", group.call_tool("turn", json!({})).await?.text());

    group.remove("files").await;
    let left: Vec<_> = group.tools().await.entries.into_iter().map(|tool| tool.name).collect();
    println!("without files: {}", left.join(", "));
    group.close().await;
    Ok(())
}

fn kind(error: &Error) -> String {
    format!("{:?}", error.kind()).to_lowercase()
}

fn text<'a>(entry: &'a Map<String, Value>, member: &str) -> &'a str {
    entry.get(member).and_then(Value::as_str).unwrap_or_default()
}
