use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::CacheStore;
use crate::call::BoxFuture;
use crate::error::{Error, ErrorKind, Result};
use crate::store::StoreOptions;
use crate::store::redis::{Redis, Sealed, Trouble};

/// Part of the keys that is the server's name elsewhere: all texts of clients are in one slot of a cluster.
const NAME: &str = "clients";

/// Keeps answers in a Redis or Valkey, which the clients of other processes share
/// ([`CacheOptions::store`](crate::client::CacheOptions::store)). With a `secret`, they are sealed with it.
///
/// Connects when it is first asked. Clones share the connection.
#[derive(Clone)]
pub struct RedisCache {
    store: Arc<Redis>,
    sealed: Option<Arc<Sealed>>,
}

impl RedisCache {
    /// The store at this URL, or with more of its options.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) that names the member that is wrong.
    pub fn new(options: impl Into<StoreOptions>) -> Result<Self> {
        let options = options.into();
        options.check_of_client("client option \"cache\": \"store\"", "CacheStore")?;
        let sealed = options.secret.as_deref().map(Sealed::new).map(Arc::new);
        Ok(Self { store: Arc::new(Redis::new(&options, NAME)?), sealed })
    }

    fn done(&self, outcome: Result<(), Trouble>) -> Result<()> {
        outcome.map_err(|trouble| self.failed(&trouble))
    }

    fn failed(&self, trouble: &Trouble) -> Error {
        Error::new(ErrorKind::Transport, self.store.said(trouble))
    }
}

impl fmt::Debug for RedisCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisCache")
    }
}

impl CacheStore for RedisCache {
    fn get(&self, keys: Vec<String>) -> BoxFuture<Result<Vec<Option<String>>>> {
        let this = self.clone();
        Box::pin(async move {
            let found = this.store.texts(&keys).await.map_err(|trouble| this.failed(&trouble))?;
            let read = |(key, bytes): (&String, Option<Vec<u8>>)| {
                let text = String::from_utf8(bytes?).ok()?;
                // One that is sealed with another secret is not there.
                match &this.sealed {
                    None => Some(text),
                    Some(sealed) => sealed.open(key, &text).and_then(|text| String::from_utf8(text).ok()),
                }
            };
            Ok(keys.iter().zip(found).map(read).collect())
        })
    }

    fn set(&self, key: String, text: String, ttl: Duration) -> BoxFuture<Result<()>> {
        let this = self.clone();
        Box::pin(async move {
            let text = match &this.sealed {
                None => text,
                Some(sealed) => sealed.seal(&key, text.as_bytes())?,
            };
            this.done(this.store.put_text(&key, &text, ttl).await)
        })
    }

    fn delete(&self, key: String) -> BoxFuture<Result<()>> {
        let this = self.clone();
        Box::pin(async move { this.done(this.store.drop_text(&key).await) })
    }
}
