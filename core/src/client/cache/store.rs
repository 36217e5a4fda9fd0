use std::sync::Arc;
use std::time::Duration;

use crate::call::BoxFuture;
use crate::error::Result;

/// Store in which the clients of several processes keep answers together, such as a Redis: texts under keys. Clients of
/// one HTTP server get the answers of the others, private answers only under the same authorization
/// ([`CacheOptions::store`](crate::client::CacheOptions::store)).
///
/// A key is visible ASCII of at most 160 characters, `tricorn:1:SERVER:METHOD:…`: the format's version, a digest of the
/// server's address, the method, then digests of what else the answer depends on. It is the same in all processes,
/// languages and versions that have this format; others begin otherwise. A text is JSON, or a word of 24 characters under
/// the keys with `:mark:`, by which clients know what has changed since an answer was kept.
///
/// An entry may go at any time: it is asked for again then. It must not come back, and whoever can read the store can
/// read the answers, private ones too. The machines' clocks have to agree: by as much as they do not, answers are fresh
/// for longer.
///
/// Called from any thread and several times at once, never under a lock; must not block. An operation that takes longer
/// than 2 s counts as failed, its future is dropped, and for 5 s the store is not asked. Where it fails the server is
/// asked instead, and nothing is kept; [`Events::warning`](crate::client::Events::warning) hears of that, once in a
/// minute, and [`CacheUsage::failures`](crate::client::CacheUsage::failures) counts it.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
/// use tricorn::client::{CacheOptions, CacheStore, ClientOptions};
/// use tricorn::{BoxFuture, Result};
///
/// /// Stands for a database that other processes reach.
/// #[derive(Default)]
/// struct Shared(Mutex<BTreeMap<String, String>>);
///
/// impl CacheStore for Shared {
///     fn get(&self, keys: Vec<String>) -> BoxFuture<Result<Vec<Option<String>>>> {
///         let kept = self.0.lock().unwrap();
///         let found = keys.iter().map(|key| kept.get(key).cloned()).collect();
///         Box::pin(async { Ok(found) })
///     }
///     fn set(&self, key: String, text: String, _ttl: Duration) -> BoxFuture<Result<()>> {
///         self.0.lock().unwrap().insert(key, text);
///         Box::pin(async { Ok(()) })
///     }
///     fn delete(&self, key: String) -> BoxFuture<Result<()>> {
///         self.0.lock().unwrap().remove(&key);
///         Box::pin(async { Ok(()) })
///     }
/// }
///
/// let shared = Arc::new(Shared::default());
/// let options = ClientOptions::new().cache(CacheOptions::new().store(shared));
/// ```
pub trait CacheStore: Send + Sync + 'static {
    /// Returns the texts under these keys, in their order, at most 16: `None` for a key without one.
    fn get(&self, keys: Vec<String>) -> BoxFuture<Result<Vec<Option<String>>>>;
    /// Keeps this text instead of the one before. After `ttl`, whole seconds, nobody needs it any more.
    fn set(&self, key: String, text: String, ttl: Duration) -> BoxFuture<Result<()>>;
    /// Keeps nothing under this key any more; no error when there was nothing.
    fn delete(&self, key: String) -> BoxFuture<Result<()>>;
}

impl<S: CacheStore + ?Sized> CacheStore for Arc<S> {
    fn get(&self, keys: Vec<String>) -> BoxFuture<Result<Vec<Option<String>>>> {
        (**self).get(keys)
    }

    fn set(&self, key: String, text: String, ttl: Duration) -> BoxFuture<Result<()>> {
        (**self).set(key, text, ttl)
    }

    fn delete(&self, key: String) -> BoxFuture<Result<()>> {
        (**self).delete(key)
    }
}
