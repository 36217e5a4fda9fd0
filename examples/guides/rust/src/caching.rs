//! Caching: a server says how long its answers keep, and its client asks no sooner than that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tricorn::CacheMode;
use tricorn::client;
use tricorn::model::{CacheHints, CacheScope, SubscriptionFilter};
use tricorn::prelude::*;
use tricorn::server::{CacheOptions, Kind};

#[derive(Deserialize, JsonSchema)]
struct Fruit {
    fruit: String,
}

fn server() -> Server {
    let looked_up = Arc::new(AtomicUsize::new(0));
    let for_all = CacheHints::new().ttl(Duration::from_secs(60)).scope(CacheScope::Public);
    // Private, as it may depend on who asks.
    let apple = Resource::new("price://apple", "apple").description("What an apple costs");
    let apple = apple.cache(CacheHints::new().ttl(Duration::from_secs(3600)));
    Server::new("prices")
        .cache(CacheOptions::default().list(Kind::Tool, for_all))
        .resource(apple, move || {
            let number = looked_up.fetch_add(1, Ordering::Relaxed) + 1;
            async move { Ok(format!("look-up {number}")) }
        })
        // Calls of tools are never kept.
        .tool("buy", "Buy fruit", |Fruit { fruit }: Fruit| async move { Ok(fruit) })
}

async fn read(client: &Client, how: &str, mode: CacheMode) -> tricorn::Result<()> {
    let price = client.read_resource_with("price://apple", &CallOptions::new().cache(mode)).await?;
    println!("{how}: {}", price.text());
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let client = Client::in_memory(&app, &ClientOptions::new().revision("2026-07-28")).await?;
    let tools = client.page(Kind::Tool, None, &CallOptions::new()).await?;
    println!("tools: {} ms, {}", tools.extra["ttlMs"], tools.extra["cacheScope"].as_str().unwrap_or_default());

    read(&client, "first", CacheMode::Default).await?;
    read(&client, "again", CacheMode::Default).await?;
    read(&client, "past it", CacheMode::Bypass).await?; // neither looks at what is kept nor changes it
    read(&client, "again", CacheMode::Default).await?;
    read(&client, "anew", CacheMode::Refresh).await?; // asks, and keeps the answer
    read(&client, "again", CacheMode::Default).await?;
    let usage = client.cache_usage();
    println!("hits {}, misses {}", usage.hits, usage.misses);

    // What is listened to is dropped as soon as it changes.
    let mut changes = client.listen(SubscriptionFilter::new().resource("price://apple")).await?;
    app.resource_updated("price://apple");
    if let Some(change) = changes.next().await.transpose()? {
        println!("changed: {}", change.uri().unwrap_or_default());
    }
    drop(changes);
    read(&client, "again", CacheMode::Default).await?;
    client.close().await;

    let without = ClientOptions::new().cache(client::CacheOptions::off());
    for (how, options) in [("no cache", without), ("2025-11-25", ClientOptions::new().revision("2025-11-25"))] {
        let client = Client::in_memory(&app, &options).await?;
        let first = client.read_resource("price://apple").await?;
        let second = client.read_resource("price://apple").await?;
        println!("{how}: {}, {}", first.text(), second.text());
        client.close().await;
    }
    Ok(())
}
