//! A request for which a store is asked first, and which then brings it the answer.

use std::sync::Arc;
use std::time::Duration;

use super::answers::hints;
use super::elsewhere::{Elsewhere, unix_time};
use super::text::Text;
use super::{Asked, Cache};
use crate::call::CacheMode;
use crate::error::Result;
use crate::jsonrpc::RawJson;
use crate::store::{CacheEntry, CacheKey};

/// Result of a search.
#[derive(Default)]
struct Found {
    entry: Option<CacheEntry>,
    /// The marks that an answer is asked for under; none when it cannot be kept.
    under: Option<String>,
    /// Something may be there that is to be overwritten or removed.
    may_be: [bool; 2],
}

/// A request for which the store is asked.
pub(in crate::client) struct Search {
    cache: Arc<Cache>,
    elsewhere: Arc<Elsewhere>,
    key: CacheKey,
    mode: CacheMode,
}

/// Outcome of asking the store.
pub(in crate::client) enum Searched {
    /// Kept, and fresh.
    Hit(RawJson),
    /// To be sent; this is told of the answer.
    Ask(Box<Sent>),
}

/// A request that was sent because the store had nothing fresh.
pub(in crate::client) struct Sent {
    asked: Asked,
    elsewhere: Arc<Elsewhere>,
    found: Found,
}

impl Search {
    pub(super) fn new(cache: &Arc<Cache>, elsewhere: &Arc<Elsewhere>, key: CacheKey, mode: CacheMode) -> Self {
        Self { cache: cache.clone(), elsewhere: elsewhere.clone(), key, mode }
    }

    /// Asks the store.
    pub(in crate::client) async fn done(self) -> Searched {
        let elsewhere = &self.elsewhere;
        let before = elsewhere.generation(&self.key.method);
        // Whoever has closed the client waits for nothing.
        let found = elsewhere.given_up.unless(elsewhere.within("get", self.find())).await;
        let mut found = found.flatten().unwrap_or_default();
        let entry = found.entry.take().filter(|_| elsewhere.generation(&self.key.method) == before);
        if self.mode == CacheMode::Default
            && let Some(result) = self.cache.fresh(entry.as_ref(), unix_time())
        {
            return Searched::Hit(result);
        }
        let asked = self.cache.asked(self.key, before, entry);
        Searched::Ask(Box::new(Sent { asked, elsewhere: self.elsewhere, found }))
    }

    async fn find(&self) -> Found {
        let Self { elsewhere, key, mode, .. } = self;
        let names = &elsewhere.names;
        let marks = names.marks(key);
        if !elsewhere.told(&marks).await {
            return Found::default();
        }
        let answers = [names.answer(key), names.answer(&key.public())];
        let is_wanted = *mode == CacheMode::Default;
        let mut keys = marks.clone();
        keys.extend(answers.iter().filter(|_| is_wanted).cloned());
        let (count, since) = (keys.len(), elsewhere.moment());
        let Some(mut texts) = elsewhere.ask("get", |store| store.get(keys)).await else { return Found::default() };
        if texts.len() != count {
            elsewhere.failed(&format!("get: expected {count} values, got {}", texts.len()));
            return Found::default();
        }
        let kept = texts.split_off(marks.len());
        let Some(under) = elsewhere.marked(&key.method, marks, texts, since).await else { return Found::default() };
        let mut found = Found { entry: None, may_be: [!is_wanted; 2], under: None };
        for ((at, kept), name) in kept.into_iter().enumerate().zip(&answers) {
            // Others may keep longer ones.
            let Some(kept) = kept.filter(|kept| kept.len() <= elsewhere.max_bytes) else { continue };
            found.may_be[at] = true;
            let wanted = Text { key: name, under: &under, is_public: at == 1 };
            match wanted.read(&kept, unix_time()) {
                // The newer of both: a server may say another scope than it did before.
                Ok(Some(entry)) if found.entry.as_ref().is_none_or(|other| other.received < entry.received) => {
                    found.entry = Some(entry);
                }
                Ok(_) => {}
                Err(why) => elsewhere.failed(&format!("get: {why}")),
            }
        }
        found.under = Some(under);
        found
    }
}

impl Sent {
    /// The server has answered, or not: what the request is answered with.
    pub(in crate::client) async fn settle(self, outcome: Result<RawJson>) -> Result<RawJson> {
        match outcome {
            Ok(result) => {
                let kept = self.elsewhere.within("set", self.keep(&result));
                self.elsewhere.given_up.unless(kept).await;
                Ok(result)
            }
            Err(error) => self.asked.instead(unix_time(), error),
        }
    }

    async fn keep(&self, result: &RawJson) {
        let Self { asked, elsewhere, found } = self;
        let Some((ttl, scope)) = hints(result) else { return };
        elsewhere.learn(&asked.key.method, !ttl.is_zero());
        let Some(under) = &found.under else { return };
        if !asked.is_unchanged() {
            return;
        }
        let names = &elsewhere.names;
        let (key, other) = asked.keys(scope);
        let (name, is_public) = (names.answer(&key), key.scope.is_none());
        let [private, public] = found.may_be;
        let (may_be, may_be_other) = if is_public { (public, private) } else { (private, public) };
        // The entry that was kept before is not what the server says now.
        if may_be_other {
            let other = names.answer(&other);
            elsewhere.ask("delete", |store| store.delete(other)).await;
        }
        let text = Text { key: &name, under, is_public }.write(result, unix_time());
        if ttl.is_zero() || text.len() > elsewhere.max_bytes {
            if may_be {
                elsewhere.ask("delete", |store| store.delete(name)).await;
            }
            return;
        }
        let whole = Duration::from_secs((ttl + elsewhere.beyond).as_secs_f64().ceil().max(1.0) as u64);
        elsewhere.ask("set", |store| store.set(name, text, whole)).await;
    }
}
