//! Resources: listed, read, templated, watched.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tricorn::Events;
use tricorn::jsonrpc::RawJson;
use tricorn::prelude::*;

#[derive(Deserialize, JsonSchema)]
struct Month {
    year: u32,
    month: u32,
}

type Notes = Arc<Mutex<&'static str>>;

fn server(notes: &Notes) -> Server {
    let today = notes.clone();
    Server::new("resources")
        .resource(
            Resource::new("notes://today", "today").description("What to do today").mime_type("text/plain"),
            move || {
                let today = today.clone();
                async move { Ok(*today.lock().unwrap_or_else(PoisonError::into_inner)) }
            },
        )
        .resource(Resource::new("logo://dot", "dot").mime_type("image/png"), || async {
            Ok(ResourceContents::blob(b"\x89PNG"))
        })
        .resource_template(
            ResourceTemplate::new("notes://{year}/{month}", "month")
                .description("The notes of a month")
                .mime_type("text/plain"),
            |Month { year, month }: Month| async move {
                if year < 2000 {
                    return Err(Error::resource_not_found(format!("notes://{year}/{month}")).into());
                }
                Ok(format!("Notes of {month}/{year}"))
            },
        )
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

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let notes: Notes = Arc::new(Mutex::new("Buy milk."));
    let app = server(&notes);
    let (sender, mut told) = unbounded_channel();
    let options = ClientOptions::new().revision("2025-11-25");
    let client = Client::in_memory_with(&app, &options, &Handlers::new().events(Heard(sender))).await?;

    for resource in client.list_resources().await? {
        println!("{} {}", text(&resource["uri"]), text(&resource["mimeType"]));
    }
    for template in client.list_resource_templates().await? {
        println!("{}", text(&template["uriTemplate"]));
    }

    println!("notes://today: {}", client.read_resource("notes://today").await?.text());
    // Bytes come as base64: four characters for three bytes, less the padding.
    let logo = client.read_resource("logo://dot").await?;
    let blob = logo.contents[0].as_blob().unwrap_or_default().trim_end_matches('=').len() * 3 / 4;
    println!("logo://dot: {blob} bytes");
    println!("notes://2026/11: {}", client.read_resource("notes://2026/11").await?.text());
    for uri in ["notes://2026/May", "notes://1999/1"] {
        if let Err(error) = client.read_resource(uri).await {
            println!("{uri}: error {}, {}", error.code().unwrap_or_default(), error.message());
        }
    }

    client.subscribe("notes://today").await?;
    *notes.lock().unwrap_or_else(PoisonError::into_inner) = "Buy milk and bread.";
    app.resource_updated("notes://today");
    println!("changed: {}", told.recv().await.unwrap_or_default());
    println!("notes://today: {}", client.read_resource("notes://today").await?.text());

    client.unsubscribe("notes://today").await?;
    app.resource_updated("notes://today");
    client.ping().await?; // whatever was sent before is here now
    println!("told {} time", 1 + told.len());
    client.close().await;
    Ok(())
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}
