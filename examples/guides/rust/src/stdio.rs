//! Standard streams: a client launches its server, here this program with the argument `serve`.

use std::collections::BTreeMap;

use serde_json::json;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tricorn::Events;
use tricorn::client::Stderr;
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn server() -> Server {
    Server::new("stdio").tool("add", "Add two numbers", |Add { a, b }: Add| async move { Ok(a + b) })
}

/// Hears what the server writes to standard error, which is for people.
struct Heard(UnboundedSender<String>);

impl Events for Heard {
    fn stderr(&self, line: &str) {
        self.0.send(line.to_owned()).ok();
    }
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "serve") {
        eprintln!("server started");
        return server().run().await.map(drop);
    }

    let target = Target::Command {
        command: std::env::current_exe()?.to_string_lossy().into_owned(),
        args: args.into_iter().chain(["serve".to_owned()]).collect(),
        env: BTreeMap::new(),
        cwd: None,
        stderr: Stderr::Event,
    };
    let (sender, mut lines) = unbounded_channel();
    let handlers = Handlers::new().events(Heard(sender));
    let client = Client::connect_with(&target, &ClientOptions::default(), &handlers).await?;
    println!("transport: {}", client.transport());
    println!("heard: {}", lines.recv().await.unwrap_or_default());
    println!("add: {}", client.call_tool("add", json!({"a": 1, "b": 2})).await?.text());
    client.close().await; // ends the server: its standard input is closed
    Ok(())
}
