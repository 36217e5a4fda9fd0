//! What a client keeps of its server's answers, because they say how long they keep (`ttlMs`, `cacheScope`; specification
//! 2026-07-28, "Caching").

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::cache_options::CacheOptions;
use crate::call::{CacheMode, CallOptions};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{RawJson, code};
use crate::model::{CacheScope, meta};
use crate::protocol::revision::{Method, Revision, shape};
use crate::store::{CacheEntry, CacheKey, CacheStore, MemoryCache};

/// The longest that anything is fresh, whatever its server says: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// The longest parameters of a request whose result is kept.
const MAX_PARAMS: usize = 16 << 10;
/// Members of `_meta` on which no result depends.
const INDIFFERENT: [&str; 8] = [
    meta::PROGRESS_TOKEN,
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
    "traceparent",
    "tracestate",
    "baggage",
];

/// What the clients of this process share that ask for it ([`CacheOptions::shared`]).
static SHARED: LazyLock<Arc<MemoryCache>> = LazyLock::new(|| {
    let CacheOptions { max_entries, max_bytes, .. } = CacheOptions::default();
    Arc::new(MemoryCache::new(max_entries, max_bytes))
});

/// What a client has kept, and what that was good for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheUsage {
    /// Results that are kept, in a store that is shared by all who share it.
    pub entries: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Requests that were answered with a fresh result.
    pub hits: u64,
    /// Requests for which there was none.
    pub misses: u64,
    /// Requests that were answered with a result that was no longer fresh, because the server could not be asked.
    pub stale: u64,
}

/// Whose results they are, and under which authorization they are asked for: digests.
pub(crate) struct Place {
    pub(crate) target: Arc<str>,
    pub(crate) scope: Arc<str>,
}

/// What one client keeps.
pub(crate) struct Cache {
    options: CacheOptions,
    store: Arc<dyn CacheStore>,
    /// Others keep results there, too.
    pub(super) is_shared: bool,
    place: Place,
    /// Its user has closed the client, and is given nothing any more.
    given_up: AtomicBool,
    hits: AtomicU64,
    misses: AtomicU64,
    stale: AtomicU64,
}

/// What is to be done for a request.
pub(super) enum Look {
    /// To be sent, and no more.
    Plain,
    /// Kept, and fresh.
    Hit(RawJson),
    /// To be sent; this is told of the answer.
    Ask(Asked),
}

/// A request that was sent because there was nothing fresh.
pub(super) struct Asked {
    cache: Arc<Cache>,
    key: CacheKey,
    /// The store's when it was sent: what was asked for before a change is not kept after it.
    generation: u64,
    /// What may be given when the server cannot be asked.
    kept: Option<CacheEntry>,
}

impl Cache {
    pub(crate) fn new(options: &CacheOptions, given: Option<Arc<dyn CacheStore>>, place: Place) -> Arc<Self> {
        let is_shared = given.is_some() || options.shared;
        let store = match given {
            Some(store) => store,
            None if options.shared => SHARED.clone(),
            None => Arc::new(MemoryCache::new(options.max_entries, options.max_bytes)),
        };
        Arc::new(Self {
            options: options.clone(),
            store,
            is_shared,
            place,
            given_up: AtomicBool::new(false),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            stale: AtomicU64::new(0),
        })
    }

    /// The client was closed by its user.
    pub(super) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    /// Whether what is kept is given although the connection has ended.
    pub(super) fn gives_without_server(&self) -> bool {
        self.options.stale_on_error && !self.given_up.load(Ordering::Relaxed)
    }

    pub(super) fn usage(&self) -> CacheUsage {
        let (entries, bytes) = self.store.size();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (hits, misses, stale) = (read(&self.hits), read(&self.misses), read(&self.stale));
        CacheUsage { entries, bytes, hits, misses, stale }
    }

    /// What there is for a request.
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
        let (target, scope) = (self.place.target.clone(), Some(self.place.scope.clone()));
        let key = CacheKey { target, scope, method: row.name.into(), params };
        let generation = self.store.generation(&key.target, &key.method);
        let mut kept = None;
        if options.cache == CacheMode::Default {
            // Of both the newer: a server may say another scope than it did before.
            let found = [self.store.get(&key), self.store.get(&key.public())];
            kept = found.into_iter().flatten().max_by_key(|entry| entry.received);
            if let Some(entry) = &kept
                && entry.is_fresh(now())
            {
                self.hits.fetch_add(1, Ordering::Relaxed);
                return Look::Hit(entry.result.clone());
            }
            self.misses.fetch_add(1, Ordering::Relaxed);
        }
        let kept = kept.filter(|_| self.options.stale_on_error);
        Look::Ask(Asked { cache: self.clone(), key, generation, kept })
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
                match params.map(RawJson::to::<Params>) {
                    Some(Ok(Params { uri })) => self.drop_if("resources/read", &|key| is_about(&key.params, &uri)),
                    _ => self.forget("resources/read"),
                }
            }
            _ => {}
        }
    }

    /// Drops what is kept of a method.
    pub(crate) fn forget(&self, method: &str) {
        self.drop_if(method, &|_| true);
    }

    fn drop_if(&self, method: &str, applies: &dyn Fn(&CacheKey) -> bool) {
        if self.options.enabled {
            self.store.invalidate(&self.place.target, method, applies);
        }
    }
}

impl Asked {
    /// The server has answered, or not: what the request is answered with.
    pub(super) fn settle(self, now: Duration, outcome: Result<RawJson>) -> Result<RawJson> {
        let cache = &self.cache;
        match outcome {
            Ok(result) => {
                self.keep(now, &result);
                Ok(result)
            }
            Err(error) => {
                if self.is_bad_cursor(&error) {
                    // The list is another one now, and so are its pages.
                    cache.forget(&self.key.method);
                }
                let unreachable = match error.kind() {
                    ErrorKind::Transport | ErrorKind::Timeout => true,
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
        }
    }

    /// Whether nobody heard of a change since it was sent.
    fn is_unchanged(&self) -> bool {
        self.cache.store.generation(&self.key.target, &self.key.method) == self.generation
    }

    fn is_bad_cursor(&self, error: &Error) -> bool {
        error.code() == Some(code::INVALID_PARAMS) && self.key.params.contains("\"cursor\":")
    }

    fn keep(&self, now: Duration, result: &RawJson) {
        let store = &self.cache.store;
        let Some((ttl, scope)) = hints(result) else { return };
        let public = self.key.public();
        let (key, other) = match scope {
            CacheScope::Public => (public, self.key.clone()),
            CacheScope::Private => (self.key.clone(), public),
        };
        // What was kept before is not what the server says now.
        store.remove(&other);
        if ttl.is_zero() {
            return store.remove(&key);
        }
        // Copied: a slice would keep the whole message.
        let copied = RawJson::trusted(bytes::Bytes::copy_from_slice(result.bytes()));
        let entry = CacheEntry { result: copied, received: now, expires: now.saturating_add(ttl) };
        store.put(key, entry, self.generation);
    }
}

/// How long a complete result keeps, and for whom.
fn hints(result: &RawJson) -> Option<(Duration, CacheScope)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        #[serde(borrow, default)]
        result_type: Option<&'a RawValue>,
        #[serde(borrow, default)]
        ttl_ms: Option<&'a RawValue>,
        #[serde(borrow, default)]
        cache_scope: Option<&'a RawValue>,
    }
    let head: Head<'_> = result.borrow().ok()?;
    if head.result_type.is_some_and(|kind| kind.get() != "\"complete\"") {
        return None;
    }
    let millis = head.ttl_ms.and_then(|ms| ms.get().parse::<f64>().ok()).filter(|ms| *ms > 0.0).unwrap_or(0.0);
    let ttl = Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(LONGEST).min(LONGEST);
    let scope = head.cache_scope.filter(|scope| scope.get() == "\"public\"");
    Some((ttl, scope.map_or(CacheScope::Private, |_| CacheScope::Public)))
}

/// The parameters in one way of writing, without what no result depends on; none when the result is not to be kept:
/// the request brings answers to what it was asked, or is too long.
fn canonical(params: Option<&RawJson>) -> Option<String> {
    let given = params.map_or("{}", RawJson::get);
    if given.len() > MAX_PARAMS {
        return None;
    }
    let mut sorted = BTreeMap::new();
    for (key, value) in shape::members(given) {
        match key.as_ref() {
            "inputResponses" | "requestState" => return None,
            "_meta" => {
                let inner = shape::members(value.get());
                let own = inner.into_iter().filter(|(key, _)| !INDIFFERENT.contains(&key.as_ref()));
                let own: BTreeMap<String, Value> =
                    own.filter_map(|(key, value)| Some((key.into_owned(), read(value)?))).collect();
                if !own.is_empty() {
                    // It may hold a secret.
                    let own = Value::Object(own.into_iter().collect()).to_string();
                    sorted.insert("_meta".to_owned(), Value::String(digest("_meta", [own.as_str()]).to_string()));
                }
            }
            // An absent cursor may be written so.
            "cursor" if value.get() == "null" => {}
            _ => drop(sorted.insert(key.into_owned(), read(value)?)),
        }
    }
    Some(Value::Object(sorted.into_iter().collect()).to_string())
}

fn read(value: &RawValue) -> Option<Value> {
    serde_json::from_str(value.get()).ok()
}

/// Whether the parameters are for reading this resource, what it is a part of, or a part of it.
fn is_about(params: &str, changed: &str) -> bool {
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    let Ok(Params { uri }) = serde_json::from_str(params) else { return true };
    let part_of = |part: &str, whole: &str| {
        part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || whole.ends_with('/'))
    };
    part_of(changed, &uri) || part_of(&uri, changed)
}

/// The result with the mark that it is no longer fresh.
fn stale(result: &RawJson, age: Duration) -> RawJson {
    let mut out = String::with_capacity(result.get().len() + 64);
    let mut marks = String::from("{");
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    out.push('{');
    for (key, value) in shape::members(result.get()) {
        if key == "_meta" {
            for (key, value) in shape::members(value.get()).into_iter().filter(|(key, _)| key != meta::STALE) {
                shape::push_member(&mut marks, &key, value.get());
            }
        } else {
            shape::push_member(&mut out, &key, value.get());
        }
    }
    shape::push_member(&mut marks, meta::STALE, &format!("{{\"ageMs\":{age}}}"));
    marks.push('}');
    shape::push_member(&mut out, "_meta", &marks);
    out.push('}');
    RawJson::written(out)
}

/// Parts that are long or secret as one digest, of which they cannot be guessed; unlike for other parts in another order.
#[cfg(feature = "runtime")]
pub(crate) fn digest<'a>(what: &str, parts: impl IntoIterator<Item = &'a str>) -> Arc<str> {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new().chain_update("tricorn cache\0").chain_update(what);
    for part in parts {
        hash = hash.chain_update(part.len().to_le_bytes()).chain_update(part);
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
