//! Results that clients cache for as long as the results themselves allow.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::jsonrpc::RawJson;

/// Names a kept result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    /// Owner of the result: a digest of the server's address.
    pub(crate) target: Arc<str>,
    /// User of the result: a digest of the authorization that it was asked with; `None` of a public one.
    pub(crate) scope: Option<Arc<str>>,
    /// The request's method.
    pub(crate) method: Cow<'static, str>,
    /// The request's parameters that the result depends on, in one way of writing.
    pub(crate) params: String,
}

impl CacheKey {
    /// The same result for everybody.
    pub(crate) fn public(&self) -> Self {
        Self { scope: None, ..self.clone() }
    }
}

/// A kept result. Times are monotonic ones of this process, or everybody's where others keep results, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheEntry {
    /// The result, as it came.
    pub(crate) result: RawJson,
    /// Time of its arrival.
    pub(crate) received: Duration,
    /// Time until which it is fresh.
    pub(crate) expires: Duration,
}

impl CacheEntry {
    /// Returns true if it need not be asked for.
    pub(crate) fn is_fresh(&self, now: Duration) -> bool {
        now < self.expires
    }
}

/// Keeps results in memory: those that were used last, as many as there is room for. Clients that are given the same one
/// ([`CacheOptions::memory`](crate::client::CacheOptions::memory)) share it.
///
/// ```
/// use std::sync::Arc;
/// use tricorn::client::{CacheOptions, MemoryCache};
/// use tricorn::prelude::*;
///
/// // Clients of one user share what they have read, and those of other users do not see it.
/// let of_ada = Arc::new(MemoryCache::new(1000, 16 << 20));
/// let options = || ClientOptions::new().cache(CacheOptions::new().memory(of_ada.clone()));
/// let (mail, notes) = (options(), options());
/// ```
#[derive(Debug)]
pub struct MemoryCache {
    max_entries: usize,
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Arc<CacheKey>, Kept>,
    /// The keys by when they were used last.
    by_use: BTreeMap<u64, Arc<CacheKey>>,
    bytes: usize,
    uses: u64,
    /// By a hash of server and method, how often something of that has changed: those that share a place lose a result
    /// that could have been kept, now and then.
    generations: [u64; GENERATIONS],
}

const GENERATIONS: usize = 32;

/// The place of their generation.
fn place_of(target: &str, method: &str) -> usize {
    let mut hash = DefaultHasher::new();
    (target, method).hash(&mut hash);
    hash.finish() as usize % GENERATIONS
}

#[derive(Debug)]
struct Kept {
    entry: CacheEntry,
    bytes: usize,
    used: u64,
}

/// Approximate cost of an entry besides its texts.
const OVERHEAD: usize = 256;

impl MemoryCache {
    /// Room for so many results, and so many bytes of them.
    #[must_use]
    pub fn new(max_entries: usize, max_bytes: usize) -> Self {
        Self { max_entries, max_bytes, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn drop_entry(&mut self, key: &CacheKey) {
        if let Some(kept) = self.entries.remove(key) {
            self.by_use.remove(&kept.used);
            self.bytes -= kept.bytes;
        }
    }
}

impl MemoryCache {
    /// Returns the entry under this key, fresh or not.
    pub(crate) fn get(&self, key: &CacheKey) -> Option<CacheEntry> {
        let mut state = self.lock();
        let state = &mut *state;
        state.uses += 1;
        let kept = state.entries.get_mut(key)?;
        let before = std::mem::replace(&mut kept.used, state.uses);
        if let Some(key) = state.by_use.remove(&before) {
            state.by_use.insert(state.uses, key);
        }
        Some(kept.entry.clone())
    }

    /// A number that every [`invalidate`](Self::invalidate) of this method of this server makes another. That of others
    /// may change it, too.
    pub(crate) fn generation(&self, target: &str, method: &str) -> u64 {
        self.lock().generations[place_of(target, method)]
    }

    /// Keeps a result instead of the one before, which was asked for in this generation; drops both when it is another
    /// by now, as somebody heard of a change meanwhile. A result without room is not kept.
    pub(crate) fn put(&self, key: CacheKey, entry: CacheEntry, generation: u64) {
        let bytes = entry.result.get().len() + key.params.len() + OVERHEAD;
        let mut state = self.lock();
        let state = &mut *state;
        state.drop_entry(&key);
        let is_old = state.generations[place_of(&key.target, &key.method)] != generation;
        if is_old || bytes > self.max_bytes || self.max_entries == 0 {
            return;
        }
        while state.entries.len() >= self.max_entries || state.bytes + bytes > self.max_bytes {
            let Some((_, oldest)) = state.by_use.pop_first() else { break };
            state.drop_entry(&oldest);
        }
        state.uses += 1;
        let key = Arc::new(key);
        state.by_use.insert(state.uses, key.clone());
        state.bytes += bytes;
        state.entries.insert(key, Kept { entry, bytes, used: state.uses });
    }

    /// Drops one result.
    pub(crate) fn remove(&self, key: &CacheKey) {
        self.lock().drop_entry(key);
    }

    /// Something has changed: drops those results of a method of a server to whose keys this applies, and what is asked
    /// for already is not kept.
    pub(crate) fn invalidate(&self, target: &str, method: &str, applies: &dyn Fn(&CacheKey) -> bool) {
        let keys: Vec<Arc<CacheKey>> = {
            let mut state = self.lock();
            // First: what is answered meanwhile is not kept.
            state.generations[place_of(target, method)] += 1;
            state.entries.keys().filter(|key| *key.target == *target && key.method == method).cloned().collect()
        };
        // Asked outside of the lock.
        let gone: Vec<_> = keys.into_iter().filter(|key| applies(key)).collect();
        let mut state = self.lock();
        gone.iter().for_each(|key| state.drop_entry(key));
    }

    /// Returns the number of cached results, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.lock();
        (state.entries.len(), state.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(target: &str, method: &'static str, params: &str) -> CacheKey {
        CacheKey { target: target.into(), scope: None, method: method.into(), params: params.into() }
    }

    fn entry(length: usize) -> CacheEntry {
        let result = RawJson::from_value(&"x".repeat(length - 2));
        CacheEntry { result, received: Duration::ZERO, expires: Duration::from_secs(1) }
    }

    #[test]
    fn the_one_that_was_used_longest_ago_makes_room() {
        let store = MemoryCache::new(3, 100_000);
        for n in ["1", "2", "3"] {
            store.put(key("a", "m", n), entry(10), 0);
        }
        assert!(store.get(&key("a", "m", "1")).is_some());
        store.put(key("a", "m", "4"), entry(10), 0);
        let kept: Vec<_> = ["1", "2", "3", "4"].map(|n| store.get(&key("a", "m", n)).is_some()).into();
        assert_eq!((kept, store.size()), (vec![true, false, true, true], (3, 3 * (10 + 1 + OVERHEAD))));
    }

    #[test]
    fn bytes_have_a_limit_too() {
        let store = MemoryCache::new(100, 2 * (500 + 1 + OVERHEAD));
        store.put(key("a", "m", "1"), entry(500), 0);
        store.put(key("a", "m", "2"), entry(500), 0);
        store.put(key("a", "m", "2"), entry(400), 0);
        assert_eq!(store.size(), (2, 900 + 2 * (1 + OVERHEAD)));
        store.put(key("a", "m", "3"), entry(500), 0);
        assert!(store.get(&key("a", "m", "1")).is_none() && store.get(&key("a", "m", "2")).is_some());
        // An entry without any room costs no other its place, and is not there as it was before either.
        store.put(key("a", "m", "3"), entry(5000), 0);
        assert!(store.get(&key("a", "m", "3")).is_none() && store.get(&key("a", "m", "2")).is_some());
        store.put(key("a", "m", "2"), entry(5000), 0);
        assert_eq!(store.size(), (0, 0));
        let none = MemoryCache::new(0, 1000);
        none.put(key("a", "m", "1"), entry(10), 0);
        assert_eq!(none.size(), (0, 0));
    }

    #[test]
    fn what_is_dropped_is_of_one_method_of_one_server() {
        let store = MemoryCache::new(100, 100_000);
        for (target, method, params) in [("a", "m", "1"), ("a", "m", "2"), ("a", "n", "1"), ("b", "m", "1")] {
            store.put(key(target, method, params), entry(10), 0);
        }
        store.invalidate("a", "m", &|key| key.params == "1");
        assert_eq!(store.size().0, 3);
        store.invalidate("a", "m", &|_| true);
        assert!(store.get(&key("a", "n", "1")).is_some() && store.get(&key("b", "m", "1")).is_some());
        assert_eq!(store.size(), (2, 2 * (10 + 1 + OVERHEAD)));
    }

    #[test]
    fn what_was_asked_for_before_a_change_is_not_kept() {
        let store = MemoryCache::new(100, 100_000);
        let asked = store.generation("a", "m");
        store.put(key("a", "m", "1"), entry(10), asked);
        store.invalidate("a", "m", &|key| key.params == "2");
        assert!(store.get(&key("a", "m", "1")).is_some());
        store.put(key("a", "m", "1"), entry(20), asked);
        store.put(key("a", "m", "2"), entry(20), asked);
        assert_eq!(store.size(), (0, 0));
        store.put(key("a", "m", "2"), entry(10), store.generation("a", "m"));
        // One that is dropped for itself is no change.
        store.remove(&key("a", "m", "1"));
        store.put(key("a", "m", "1"), entry(10), store.generation("a", "m"));
        assert_eq!(store.size().0, 2);
        store.remove(&key("a", "m", "1"));
        assert!(store.get(&key("a", "m", "1")).is_none() && store.get(&key("a", "m", "2")).is_some());
    }
}
