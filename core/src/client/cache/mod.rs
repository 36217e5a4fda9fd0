//! Cache of the server's answers that allow it (`ttlMs`, `cacheScope`; specification 2026-07-28, "Caching").

mod answers;
#[cfg(feature = "runtime")]
mod elsewhere;
#[cfg(feature = "runtime")]
mod making;
#[cfg(feature = "runtime")]
mod names;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "runtime")]
mod search;
mod store;
#[cfg(feature = "runtime")]
mod text;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;

use self::answers::{canonical, hints, is_about, stale};
#[cfg(feature = "runtime")]
pub(crate) use self::elsewhere::{Elsewhere, Outside};
#[cfg(feature = "redis")]
pub use self::redis::RedisCache;
#[cfg(feature = "runtime")]
pub(super) use self::search::{Search, Searched};
pub use self::store::CacheStore;
use super::cache_options::{CacheOptions, Where};
use crate::call::{CacheMode, CallOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{RawJson, code};
use crate::model::CacheScope;
use crate::protocol::revision::{Method, Revision};
use crate::signal::Signal;
use crate::store::{CacheEntry, CacheKey, MemoryCache};

/// Memory that the clients of this process share if they ask for it ([`CacheOptions::shared`]).
static SHARED: LazyLock<Arc<MemoryCache>> = LazyLock::new(|| {
    let CacheOptions { max_entries, max_bytes, .. } = CacheOptions::default();
    Arc::new(MemoryCache::new(max_entries, max_bytes))
});

/// Contents of a client's cache, and its use so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheUsage {
    /// Results that are kept in memory, in one that is shared by all who share it; 0 with a [`CacheStore`], of which that is
    /// not known.
    pub entries: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Requests that were answered with a fresh result.
    pub hits: u64,
    /// Requests for which there was none.
    pub misses: u64,
    /// Requests that were answered with a result that was no longer fresh, because the server could not be asked.
    pub stale: u64,
    /// Number of times that a [`CacheStore`] has failed, did not answer in time, or gave something that nobody has put
    /// there.
    pub failures: u64,
}

/// Owner of results, and the authorization that they are asked for with: digests.
pub(crate) struct Place {
    pub(crate) target: Arc<str>,
    pub(crate) scope: Arc<str>,
    /// The server has an address, under which others know it, too.
    pub(crate) has_address: bool,
    /// Makes another scope once somebody else is logged in, where no other client has this one.
    pub(crate) renew: Option<fn() -> Arc<str>>,
}

/// Place of the cached results.
enum Kept {
    Memory(Arc<MemoryCache>),
    #[cfg(feature = "runtime")]
    Elsewhere(Arc<Elsewhere>),
}

/// Cache of one client.
pub(crate) struct Cache {
    options: CacheOptions,
    kept: Kept,
    /// Others keep results there, too.
    pub(super) is_shared: bool,
    place: Place,
    /// The scope of those who are logged in now.
    scope: Mutex<Arc<str>>,
    /// Its user has closed the client, and is given nothing any more.
    given_up: Arc<Signal>,
    hits: AtomicU64,
    misses: AtomicU64,
    stale: AtomicU64,
}

/// Next step for a request.
pub(super) enum Look {
    /// To be sent, and no more.
    Plain,
    /// Kept, and fresh.
    Hit(RawJson),
    /// To be sent; this is told of the answer.
    Ask(Asked),
    /// A store has to be asked first.
    #[cfg(feature = "runtime")]
    Search(Search),
}

/// A request that was sent because there was nothing fresh.
pub(super) struct Asked {
    cache: Arc<Cache>,
    key: CacheKey,
    /// Generation at the time of sending: an answer that was asked for before a change is not cached after it.
    generation: u64,
    /// The answer to give when the server cannot be asked.
    kept: Option<CacheEntry>,
}

impl Cache {
    /// Keeps results in the memory of this process.
    pub(crate) fn new(options: &CacheOptions, place: Place) -> Arc<Self> {
        let (memory, is_shared) = match &options.place {
            Where::Memory(memory) => (memory.clone(), true),
            _ if options.shared => (SHARED.clone(), true),
            _ => (Arc::new(MemoryCache::new(options.max_entries, options.max_bytes)), false),
        };
        Self::of(options, Kept::Memory(memory), is_shared, place, Arc::default())
    }

    /// Keeps results where the options say.
    #[cfg(feature = "runtime")]
    pub(crate) fn anywhere(options: &CacheOptions, place: Place, outside: &Outside) -> Arc<Self> {
        match &options.place {
            // A server that nobody else can reach is nobody else's business, and its name is used again by others.
            Where::Store(store) if place.has_address => {
                let given_up = Arc::<Signal>::default();
                let elsewhere = Elsewhere::new(store.clone(), &place.target, options, outside, given_up.clone());
                Self::of(options, Kept::Elsewhere(elsewhere), true, place, given_up)
            }
            _ => Self::new(options, place),
        }
    }

    fn of(options: &CacheOptions, kept: Kept, is_shared: bool, place: Place, given_up: Arc<Signal>) -> Arc<Self> {
        Arc::new(Self {
            options: options.clone(),
            kept,
            is_shared,
            scope: Mutex::new(place.scope.clone()),
            place,
            given_up,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            stale: AtomicU64::new(0),
        })
    }

    /// The client was closed by its user.
    pub(super) fn give_up(&self) {
        self.given_up.set();
    }

    /// Tells others what has changed, before the client is gone.
    pub(super) async fn part(&self) {
        #[cfg(feature = "runtime")]
        if let Kept::Elsewhere(elsewhere) = &self.kept {
            elsewhere.part().await;
        }
    }

    /// Returns true if what is kept is given although the connection has ended.
    pub(super) fn gives_without_server(&self) -> bool {
        self.options.stale_on_error && !self.given_up.is_set()
    }

    pub(super) fn usage(&self) -> CacheUsage {
        let (entries, bytes, failures) = match &self.kept {
            Kept::Memory(memory) => {
                let (entries, bytes) = memory.size();
                (entries, bytes, 0)
            }
            #[cfg(feature = "runtime")]
            Kept::Elsewhere(elsewhere) => (0, 0, elsewhere.failures()),
        };
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (hits, misses, stale) = (read(&self.hits), read(&self.misses), read(&self.stale));
        CacheUsage { entries, bytes, hits, misses, stale, failures }
    }

    /// Looks a request up.
    pub(super) fn look(
        self: &Arc<Self>,
        now: impl FnOnce() -> Duration,
        revision: Revision,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Look {
        let row = Method::find(method).filter(|row| row.cacheable && revision.rules().result_type);
        let (true, Some(row)) = (self.options.enabled && options.cache != CacheMode::Bypass, row) else {
            return Look::Plain;
        };
        let Some(params) = canonical(params) else { return Look::Plain };
        let (target, scope) = (self.place.target.clone(), Some(self.lock_scope().clone()));
        let key = CacheKey { target, scope, method: row.name.into(), params };
        #[cfg(feature = "runtime")]
        if let Kept::Elsewhere(elsewhere) = &self.kept {
            return Look::Search(Search::new(self, elsewhere, key, options.cache));
        }
        let Some(memory) = self.memory() else { return Look::Plain };
        let generation = memory.generation(&key.target, &key.method);
        let mut kept = None;
        if options.cache == CacheMode::Default {
            // The newer of both: a server may say another scope than it did before.
            let found = [memory.get(&key), memory.get(&key.public())];
            kept = found.into_iter().flatten().max_by_key(|entry| entry.received);
            if let Some(result) = self.fresh(kept.as_ref(), now()) {
                return Look::Hit(result);
            }
        }
        Look::Ask(self.asked(key, generation, kept))
    }

    /// Returns a result that is fresh; counts a hit or a miss.
    fn fresh(&self, kept: Option<&CacheEntry>, now: Duration) -> Option<RawJson> {
        let fresh = kept.filter(|entry| entry.is_fresh(now));
        let count = if fresh.is_some() { &self.hits } else { &self.misses };
        count.fetch_add(1, Ordering::Relaxed);
        fresh.map(|entry| entry.result.clone())
    }

    fn asked(self: &Arc<Self>, key: CacheKey, generation: u64, kept: Option<CacheEntry>) -> Asked {
        Asked { cache: self.clone(), key, generation, kept: kept.filter(|_| self.options.stale_on_error) }
    }

    /// Drops what a notification of the server says has changed.
    pub(crate) fn heard(&self, method: &str, params: Option<&RawJson>) {
        match method {
            "notifications/tools/list_changed" => self.forget("tools/list"),
            "notifications/prompts/list_changed" => self.forget("prompts/list"),
            "notifications/resources/list_changed" => {
                self.forget("resources/list");
                self.forget("resources/templates/list");
            }
            "notifications/resources/updated" => {
                #[derive(Deserialize)]
                struct Params {
                    uri: String,
                }
                let uri = params.and_then(|params| params.to().ok()).map(|Params { uri }| uri);
                self.drop_of("resources/read", uri.as_deref());
            }
            _ => {}
        }
    }

    fn lock_scope(&self) -> MutexGuard<'_, Arc<str>> {
        self.scope.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes another scope, or drops the cached answers, because somebody else is logged in and may see other things.
    /// To others who share the cache that is no change, unless they have said that they log in as one.
    pub(crate) fn logged_in(&self) {
        if let Some(renew) = self.place.renew {
            *self.lock_scope() = renew();
        }
        if self.place.renew.is_none() || !self.is_shared {
            Method::all().iter().filter(|row| row.cacheable).for_each(|row| self.forget(row.name));
        }
    }

    /// Drops what is kept of a method.
    pub(crate) fn forget(&self, method: &str) {
        self.drop_of(method, None);
    }

    /// Drops what is kept of a method, or of one of its resources.
    fn drop_of(&self, method: &str, uri: Option<&str>) {
        if !self.options.enabled {
            return;
        }
        match &self.kept {
            Kept::Memory(memory) => {
                let applies = |key: &CacheKey| uri.is_none_or(|uri| is_about(&key.params, uri));
                memory.invalidate(&self.place.target, method, &applies);
            }
            #[cfg(feature = "runtime")]
            Kept::Elsewhere(elsewhere) => elsewhere.changed(method, uri),
        }
    }

    /// The memory of this process, if that is where results are kept.
    fn memory(&self) -> Option<&MemoryCache> {
        match &self.kept {
            Kept::Memory(memory) => Some(memory),
            #[cfg(feature = "runtime")]
            Kept::Elsewhere(_) => None,
        }
    }

    fn generation(&self, key: &CacheKey) -> u64 {
        match &self.kept {
            Kept::Memory(memory) => memory.generation(&key.target, &key.method),
            #[cfg(feature = "runtime")]
            Kept::Elsewhere(elsewhere) => elsewhere.generation(&key.method),
        }
    }
}

impl Asked {
    /// The server has answered, or not: what the request is answered with.
    pub(super) fn settle(self, now: Duration, outcome: Result<RawJson>) -> Result<RawJson> {
        match outcome {
            Ok(result) => {
                self.keep(now, &result);
                Ok(result)
            }
            Err(error) => self.instead(now, error),
        }
    }

    /// The server has not answered, or with an error.
    fn instead(self, now: Duration, error: Error) -> Result<RawJson> {
        let cache = &self.cache;
        if self.is_bad_cursor(&error) {
            // The list is another one now, and so are its pages.
            cache.forget(&self.key.method);
        }
        let unreachable = match error.kind() {
            ErrorKind::Transport | ErrorKind::Timeout => !error.is_refused(),
            // The server has gone, as one does whose process died.
            ErrorKind::Closed => cache.gives_without_server(),
            _ => false,
        };
        match self.kept.as_ref().filter(|_| unreachable && self.is_unchanged()) {
            Some(entry) => {
                cache.stale.fetch_add(1, Ordering::Relaxed);
                Ok(stale(&entry.result, now.saturating_sub(entry.received)))
            }
            None => Err(error),
        }
    }

    /// Returns true if nobody heard of a change since it was sent.
    fn is_unchanged(&self) -> bool {
        self.cache.generation(&self.key) == self.generation
    }

    fn is_bad_cursor(&self, error: &Error) -> bool {
        error.code() == Some(code::INVALID_PARAMS) && self.key.params.contains("\"cursor\":")
    }

    /// Returns the key that this is cached under, and the one that it was, should the server name another scope by now.
    fn keys(&self, scope: CacheScope) -> (CacheKey, CacheKey) {
        let public = self.key.public();
        match scope {
            CacheScope::Public => (public, self.key.clone()),
            CacheScope::Private => (self.key.clone(), public),
        }
    }

    fn keep(&self, now: Duration, result: &RawJson) {
        let Some(memory) = self.cache.memory() else { return };
        let Some((ttl, scope)) = hints(result) else { return };
        let (key, other) = self.keys(scope);
        // The entry that was kept before is not what the server says now.
        memory.remove(&other);
        if ttl.is_zero() {
            return memory.remove(&key);
        }
        // Copied: a slice would keep the whole message.
        let copied = RawJson::trusted(bytes::Bytes::copy_from_slice(result.bytes()));
        let entry = CacheEntry { result: copied, received: now, expires: now.saturating_add(ttl) };
        memory.put(key, entry, self.generation);
    }
}

/// Parts that are long or secret as one digest, of which they cannot be guessed; unlike for other parts in another order.
#[cfg(feature = "runtime")]
pub(crate) fn digest<'a>(what: &str, parts: impl IntoIterator<Item = &'a str>) -> Arc<str> {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new().chain_update("tricorn cache\0").chain_update(what);
    for part in parts {
        hash = hash.chain_update((part.len() as u64).to_le_bytes()).chain_update(part);
    }
    let mut text = String::with_capacity(64);
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}

/// Without a runtime nothing is connected, and nothing kept.
#[cfg(not(feature = "runtime"))]
fn digest<'a>(_: &str, _: impl IntoIterator<Item = &'a str>) -> Arc<str> {
    "".into()
}

#[cfg(test)]
mod tests;
