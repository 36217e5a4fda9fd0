//! Subscriptions: what has changed, heard one change after the other or by a handler, the same in every revision.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tricorn::Events;
use tricorn::client::Change;
use tricorn::jsonrpc::RawJson;
use tricorn::model::SubscriptionFilter;
use tricorn::prelude::*;
use tricorn::server::Kind;

#[derive(Deserialize, JsonSchema)]
struct Word {
    word: String,
}

#[derive(Deserialize, JsonSchema)]
struct Subscription {
    uri: String,
    subscribed: bool,
}

type Score = Arc<Mutex<&'static str>>;

fn server(score: &Score, hooked: UnboundedSender<String>) -> Server {
    let score = score.clone();
    let app = Server::new("news")
        .resource(Resource::new("news://sport", "sport").description("How it stands"), move || {
            let score = score.clone();
            async move { Ok(*score.lock().unwrap_or_else(PoisonError::into_inner)) }
        })
        .tool("headlines", "What is new", || async { Ok("It rains.") })
        .tool("search", "What was new", |Word { word }: Word| async move { Ok(word) })
        .on_subscribe(move |Subscription { uri, subscribed }: Subscription| {
            // Else somebody has left.
            if subscribed {
                hooked.send(format!("server: {uri} is listened to")).ok();
            }
            async { Ok(()) }
        });
    app.set_enabled(Kind::Tool, "search", false);
    app
}

/// Hears which resources have changed.
struct Heard(UnboundedSender<String>);

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        #[derive(Deserialize)]
        struct Updated {
            uri: String,
        }
        if method == "notifications/resources/updated"
            && let Some(Ok(updated)) = params.map(RawJson::to::<Updated>)
        {
            self.0.send(updated.uri).ok();
        }
    }
}

async fn next(queue: &mut UnboundedReceiver<String>) -> String {
    queue.recv().await.unwrap_or_default()
}

async fn one_after_the_other(
    app: &Server,
    client: &Client,
    score: &Score,
    hooked: &mut UnboundedReceiver<String>,
) -> tricorn::Result<()> {
    let mut changes = client.listen(SubscriptionFilter::new().tools().resource("news://sport")).await?;
    println!("{}", next(hooked).await);
    let honoured = changes.honoured();
    let tools = if honoured.tools_list_changed { "tools, " } else { "" };
    println!("listening to {tools}{}", honoured.resource_subscriptions.join(" "));
    *score.lock().unwrap_or_else(PoisonError::into_inner) = "1:0";
    app.resource_updated("news://sport");
    while let Some(change) = changes.next().await {
        match change? {
            Change::ResourceUpdated(uri) => {
                println!("changed: {uri}: {}", client.read_resource(&uri).await?.text());
                app.set_enabled(Kind::Tool, "search", true);
            }
            Change::ToolsListChanged => {
                let tools = client.list_tools().await?;
                let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
                println!("changed: tools: {}", names.join(", "));
                break;
            }
            _ => {}
        }
    }
    drop(changes);
    app.set_enabled(Kind::Tool, "search", false);
    Ok(())
}

async fn by_a_handler(
    app: &Server,
    client: &Client,
    told: &mut UnboundedReceiver<String>,
    hooked: &mut UnboundedReceiver<String>,
) -> tricorn::Result<()> {
    client.subscribe("news://sport").await?;
    println!("{}", next(hooked).await);
    app.resource_updated("news://sport");
    println!("told: {}", next(told).await);
    client.unsubscribe("news://sport").await?;
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let score: Score = Arc::new(Mutex::new("0:0"));
    let (sender, mut hooked) = unbounded_channel();
    let app = server(&score, sender);
    let mut clients = Vec::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        println!("{revision}");
        let options = ClientOptions::new().revision(revision);
        let client = Client::in_memory(&app, &options).await?;
        one_after_the_other(&app, &client, &score, &mut hooked).await?;
        let (sender, mut told) = unbounded_channel();
        let hearing = Client::in_memory_with(&app, &options, &Handlers::new().events(Heard(sender))).await?;
        by_a_handler(&app, &hearing, &mut told, &mut hooked).await?;
        clients.extend([client, hearing]);
    }
    for client in clients {
        client.close().await;
    }
    Ok(())
}
