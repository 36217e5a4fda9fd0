//! A client's cache in a store of the host's: options as JSON, in which a number names the function that is asked.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Bridge;
use super::functions::{Function, Nothing};
use crate::call::BoxFuture;
#[cfg(feature = "redis")]
use crate::client::RedisCache;
use crate::client::{CacheStore, ClientOptions, StoreOptions};
use crate::error::{Error, Result};

/// The engine gives a store up long before.
const STORE: Duration = Duration::from_secs(60);

/// A client's options, in which `cache` is [`CacheOptions`](crate::client::CacheOptions) as JSON and besides
/// `"store"?: {"handler"} | URL | {"url", "prefix"?, "secret"?}`. The handler gets `{"op": "get", "keys"}` and gives `{"texts": [text or null for each]}`, or
/// `{"op": "set", "key", "text", "ttl": seconds}` or `{"op": "delete", "key"}` and gives `{}`. `parse` reads what is left.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
pub(super) fn client_options<T>(
    bridge: &Bridge,
    options: &str,
    parse: impl FnOnce(&str) -> Result<T>,
    of: fn(&mut T) -> &mut ClientOptions,
) -> Result<T> {
    let Some((rest, store)) = apart(options)? else { return parse(options) };
    let mut options = parse(&rest)?;
    let own = of(&mut options);
    own.cache = match store {
        Store::Host { handler } => own.cache.clone().store(HostStore(Function::new(bridge, handler, ""))),
        #[cfg(feature = "redis")]
        Store::Shared(store) => own.cache.clone().store(RedisCache::new(store)?),
        #[cfg(not(feature = "redis"))]
        Store::Shared(store) => {
            store.check("client option \"cache\": \"store\"")?;
            own.cache.clone()
        }
    };
    own.check()?;
    Ok(options)
}

/// Options without their store, and that.
fn apart(options: &str) -> Result<Option<(String, Store)>> {
    if !options.contains("\"store\"") {
        return Ok(None);
    }
    let wrong = |why: String| Error::misuse(format!("client options: {why}"));
    let mut members: Map<String, Value> = serde_json::from_str(options).map_err(|e| wrong(e.to_string()))?;
    let store = members.get_mut("cache").and_then(Value::as_object_mut).and_then(|cache| cache.remove("store"));
    let Some(store) = store.filter(|store| !store.is_null()) else { return Ok(None) };
    let expected =
        |_| wrong("option \"cache\": \"store\": expected a CacheStore, a URL or an object of \"url\"".into());
    let store = serde_json::from_value(store).map_err(expected)?;
    Ok(Some((Value::Object(members).to_string(), store)))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Store {
    Host { handler: u32 },
    Shared(StoreOptions),
}

struct HostStore(Function);

impl HostStore {
    fn done(&self, params: &Value) -> BoxFuture<Result<()>> {
        let asked = self.0.ask::<Nothing>(params, STORE);
        Box::pin(async move { asked.await.map(drop) })
    }
}

impl CacheStore for HostStore {
    fn get(&self, keys: Vec<String>) -> BoxFuture<Result<Vec<Option<String>>>> {
        #[derive(Deserialize)]
        struct Found {
            texts: Vec<Option<String>>,
        }
        let asked = self.0.ask::<Found>(&json!({"op": "get", "keys": keys}), STORE);
        Box::pin(async move { Ok(asked.await?.texts) })
    }

    fn set(&self, key: String, text: String, ttl: Duration) -> BoxFuture<Result<()>> {
        self.done(&json!({"op": "set", "key": key, "text": text, "ttl": ttl.as_secs()}))
    }

    fn delete(&self, key: String) -> BoxFuture<Result<()>> {
        self.done(&json!({"op": "delete", "key": key}))
    }
}
