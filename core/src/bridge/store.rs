//! A server's store of the host's: options as JSON, in which a number names the function that is asked.

#[cfg(feature = "redis")]
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
#[cfg(feature = "redis")]
use serde_json::json;
use serde_json::{Map, Value};

use super::Bridge;
#[cfg(feature = "redis")]
use super::functions::{Function, Nothing};
#[cfg(feature = "redis")]
use crate::call::BoxFuture;
use crate::error::{Error, Result};
use crate::server::StoreOptions;
#[cfg(feature = "redis")]
use crate::server::{Document, DocumentStore, DocumentWrite};

/// The engine gives a store up long before.
#[cfg(feature = "redis")]
const STORE: Duration = Duration::from_secs(60);

/// A server's options without their store, and that, if it is one of the host's: `"store": {"documents": handler, "waits"?:
/// bool, "tells_time"?: bool, "prefix"?, "secret"?}`. The handler gets `{"op": "get", "keys"}` and gives `{"documents":
/// [{"version", "text"} or null for each]}`; `{"op": "commit", "expected": {key: version or null}, "writes": [{"key",
/// "document": {"version", "text"} or null, "ttl": seconds}]}` and gives `{"done": bool}`; with `waits` `{"op": "wait", "seen":
/// {key: version or null}, "timeout": seconds}` and gives `{}`; with `tells_time` `{"op": "now"}` and gives `{"now":
/// seconds since 1970}`.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) naming what is wrong.
pub(super) fn server_options(bridge: &Bridge, options: &str) -> Result<(String, Option<StoreOptions>)> {
    if !options.contains("\"documents\"") {
        return Ok((options.to_owned(), None));
    }
    let mut members: Map<String, Value> = match serde_json::from_str(options) {
        Ok(members) => members,
        // It is refused with all other options, in their words.
        Err(_) => return Ok((options.to_owned(), None)),
    };
    let is_own = |store: &Value| store.get("documents").is_some();
    let Some(store) = members.get("store").filter(|store| is_own(store)).cloned() else {
        return Ok((options.to_owned(), None));
    };
    members.remove("store");
    let wrong = |why: String| Error::misuse(format!("{}: {why}", StoreOptions::option()));
    // Serde's message would quote the secret.
    let expected = "expected a URL, or an object of \"url\" or \"documents\", \"prefix\" and \"secret\"";
    let given: Given = serde_json::from_value(store).map_err(|_| wrong(expected.into()))?;
    let store = given.options(bridge);
    store.check(&StoreOptions::option())?;
    Ok((Value::Object(members).to_string(), Some(store)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "read only to be refused in the same words"))]
struct Given {
    documents: u32,
    #[serde(default)]
    waits: bool,
    #[serde(default)]
    tells_time: bool,
    #[serde(default)]
    prefix: Option<String>,
    #[serde(default)]
    secret: Option<String>,
}

impl Given {
    #[cfg(feature = "redis")]
    fn options(self, bridge: &Bridge) -> StoreOptions {
        let Self { documents, waits, tells_time, prefix, secret } = self;
        let host = HostStore { function: Function::new(bridge, documents, ""), waits, tells_time };
        let mut options = StoreOptions::documents(host);
        options.prefix = prefix.unwrap_or(options.prefix);
        options.secret = secret;
        options
    }

    #[cfg(not(feature = "redis"))]
    fn options(self, _: &Bridge) -> StoreOptions {
        StoreOptions::new("")
    }
}

#[cfg(feature = "redis")]
struct HostStore {
    function: Function,
    waits: bool,
    tells_time: bool,
}

/// Versions by keys.
#[cfg(feature = "redis")]
fn versions(all: Vec<(String, Option<String>)>) -> Value {
    all.into_iter().map(|(key, version)| (key, version.into())).collect::<Map<_, Value>>().into()
}

#[cfg(feature = "redis")]
impl DocumentStore for HostStore {
    fn get(&self, keys: Vec<String>) -> BoxFuture<Result<Vec<Option<Document>>>> {
        #[derive(Deserialize)]
        struct Found {
            documents: Vec<Option<Kept>>,
        }
        #[derive(Deserialize)]
        struct Kept {
            version: String,
            text: String,
        }
        let asked = self.function.ask::<Found>(&json!({"op": "get", "keys": keys}), STORE);
        let read = |Kept { version, text }| Document { version, text };
        Box::pin(async move { Ok(asked.await?.documents.into_iter().map(|it| it.map(read)).collect()) })
    }

    fn commit(&self, expected: Vec<(String, Option<String>)>, writes: Vec<DocumentWrite>) -> BoxFuture<Result<bool>> {
        #[derive(Deserialize)]
        struct Done {
            done: bool,
        }
        let document = |Document { version, text }| json!({"version": version, "text": text});
        let write = |DocumentWrite { key, document: it, ttl }| {
            let ttl = ttl.as_secs();
            json!({"key": key, "document": it.map(document), "ttl": ttl})
        };
        let writes: Vec<_> = writes.into_iter().map(write).collect();
        let params = json!({"op": "commit", "expected": versions(expected), "writes": writes});
        let asked = self.function.ask::<Done>(&params, STORE);
        Box::pin(async move { Ok(asked.await?.done) })
    }

    fn wait(&self, seen: Vec<(String, Option<String>)>, timeout: Duration) -> Option<BoxFuture<Result<()>>> {
        let params = json!({"op": "wait", "seen": versions(seen), "timeout": timeout.as_secs_f64()});
        let asked = self.waits.then(|| self.function.ask::<Nothing>(&params, timeout + STORE))?;
        Some(Box::pin(async move { asked.await.map(drop) }))
    }

    fn now(&self) -> Option<BoxFuture<Result<SystemTime>>> {
        #[derive(Deserialize)]
        struct Time {
            now: f64,
        }
        let asked = self.tells_time.then(|| self.function.ask::<Time>(&json!({"op": "now"}), STORE))?;
        Some(Box::pin(async move {
            let since = Duration::try_from_secs_f64(asked.await?.now).ok();
            let time = since.and_then(|since| UNIX_EPOCH.checked_add(since));
            time.ok_or_else(|| Error::misuse("its time is none: expected seconds since 1970"))
        }))
    }
}
