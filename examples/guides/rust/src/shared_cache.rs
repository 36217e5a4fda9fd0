//! A shared cache: clients of several programs keep answers in one store, and what has changed is dropped for all.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tricorn::BoxFuture;
use tricorn::client::{self, CacheStore};
use tricorn::http::HttpOptions;
use tricorn::model::{CacheHints, CacheScope, SubscriptionFilter};
use tricorn::prelude::*;

fn server() -> Server {
    let looked_up = Arc::new(AtomicUsize::new(0));
    let for_all = CacheHints::new().ttl(Duration::from_secs(3600)).scope(CacheScope::Public);
    let apple = Resource::new("price://apple", "apple").description("What an apple costs").cache(for_all);
    Server::new("prices").resource(apple, move || {
        let number = looked_up.fetch_add(1, Ordering::Relaxed) + 1;
        async move { Ok(format!("look-up {number}")) }
    })
}

/// A store; with the crate `redis` its functions are `mget(keys)`, `set_ex(key, text, ttl.as_secs())` and `del(key)`.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<BTreeMap<String, String>>>);

impl Store {
    fn with<T: Send + 'static>(
        &self,
        body: impl FnOnce(&mut BTreeMap<String, String>) -> T,
    ) -> BoxFuture<tricorn::Result<T>> {
        let value = body(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(async move { Ok(value) })
    }
}

impl CacheStore for Store {
    fn get(&self, keys: Vec<String>) -> BoxFuture<tricorn::Result<Vec<Option<String>>>> {
        self.with(|kept| keys.iter().map(|key| kept.get(key).cloned()).collect())
    }

    fn set(&self, key: String, text: String, _ttl: Duration) -> BoxFuture<tricorn::Result<()>> {
        self.with(|kept| drop(kept.insert(key, text)))
    }

    fn delete(&self, key: String) -> BoxFuture<tricorn::Result<()>> {
        self.with(|kept| drop(kept.remove(&key)))
    }
}

async fn price(client: &Client) -> tricorn::Result<String> {
    Ok(client.read_resource("price://apple").await?.text())
}

#[tokio::main]
pub(crate) async fn main() -> tricorn::Result<()> {
    let app = server();
    let serving = app.serve_http(HttpOptions::new().port(0)).await?;
    let (target, store): (Target, _) = (serving.url().parse()?, Store::default());

    // Each would be in a program of its own, with a store that both reach.
    let options = ClientOptions::new().cache(client::CacheOptions::new().store(store.clone()));
    let (one, another) = (Client::connect(&target, &options).await?, Client::connect(&target, &options).await?);
    println!("one program: {}", price(&one).await?);
    println!("another: {}", price(&another).await?);
    let usage = another.cache_usage();
    println!("hits {}, failures {}", usage.hits, usage.failures);

    // What one of them hears of is dropped for all.
    let mut changes = one.listen(SubscriptionFilter::new().resource("price://apple")).await?;
    app.resource_updated("price://apple");
    if let Some(change) = changes.next().await.transpose()? {
        println!("changed: {}", change.uri().unwrap_or_default());
    }
    drop(changes);
    println!("one program: {}", price(&one).await?);
    println!("another: {}", price(&another).await?);
    one.close().await;
    another.close().await;

    let kept = store.with(|kept| kept.clone()).await?;
    let marks = kept.keys().filter(|key| key.contains(":resources/read:mark:")).count();
    let answers = kept.values().filter(|text| text.contains("look-up 2")).count();
    println!("the store has marks and one answer: {}", marks > 0 && answers == 1);
    serving.close();
    serving.join().await;
    Ok(())
}
