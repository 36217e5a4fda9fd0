//! Logins in memory: they end with the process.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

use super::{MAX_BYTES, Reservation, TokenKey, TokenStore, of_login, too_long};
use crate::auth::secret::Secret;
use crate::call::BoxFuture;
use crate::error::{Error, ErrorKind, Result, shown_url};

/// The most logins that are kept. Nothing is thrown away to make room: a further one is refused.
const MAX_LOGINS: usize = 10_000;

/// Keeps logins in memory. Clones share them.
///
/// ```
/// use tricorn::auth::MemoryStore;
/// use tricorn::client::Auth;
/// use tricorn::prelude::*;
///
/// // Users of a web program: each has logins of their own, and nothing is written to the disk.
/// let logins = MemoryStore::new();
/// let of_user = |user: &str| ClientOptions::new().auth(Auth::new().user(user).store(logins.clone()));
/// let (ada, bob) = (of_user("ada"), of_user("bob"));
/// ```
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    kept: HashMap<TokenKey, Secret>,
    /// Only of those that somebody has reserved or waits for.
    turns: HashMap<TokenKey, Arc<Turn<()>>>,
}

impl MemoryStore {
    /// With nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget_turn(&self, key: &TokenKey) {
        let mut state = self.lock();
        if state.turns.get(key).is_some_and(|turn| Arc::strong_count(turn) == 1) {
            state.turns.remove(key);
        }
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({} logins)", self.lock().kept.len())
    }
}

impl TokenStore for MemoryStore {
    fn load(&self, key: &TokenKey) -> BoxFuture<Result<Option<Secret>>> {
        let found = self.lock().kept.get(key).cloned();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn find(&self, server: &str) -> BoxFuture<Result<Vec<(TokenKey, Secret)>>> {
        let state = self.lock();
        let of = state.kept.iter().filter(|(key, _)| key.server == server);
        let mut found: Vec<_> = of.map(|(key, kept)| (key.clone(), kept.clone())).collect();
        found.sort_by(|(one, _), (other, _)| one.issuer.cmp(&other.issuer));
        Box::pin(std::future::ready(Ok(found)))
    }

    fn reserve(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Box<dyn Reservation>>> {
        let (store, key) = (self.clone(), key.clone());
        Box::pin(async move {
            let turn = store.lock().turns.entry(key.clone()).or_default().clone();
            // Drops the turn too when the caller goes away while it waits.
            let mut reserved = Reserved { store, key, turn: None };
            let Ok(turn) = tokio::time::timeout(wait, turn.lock_owned()).await else {
                let server = shown_url(&reserved.key.server);
                let message = format!("the login at {server} is being changed elsewhere for more than {wait:?}");
                return Err(Error::new(ErrorKind::Timeout, message));
            };
            reserved.turn = Some(turn);
            Ok(Box::new(reserved) as Box<dyn Reservation>)
        })
    }

    fn reserve_login(&self, key: &TokenKey, wait: Duration) -> BoxFuture<Result<Option<Box<dyn Reservation>>>> {
        let reserved = self.reserve(&of_login(key), wait);
        Box::pin(async move { reserved.await.map(Some) })
    }
}

struct Reserved {
    store: MemoryStore,
    key: TokenKey,
    turn: Option<OwnedMutexGuard<()>>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        drop(self.turn.take());
        self.store.forget_turn(&self.key);
    }
}

impl Reservation for Reserved {
    fn load(&mut self) -> BoxFuture<Result<Option<Secret>>> {
        self.store.load(&self.key)
    }

    fn save(&mut self, login: &Secret) -> BoxFuture<Result<()>> {
        let mut state = self.store.lock();
        let full = state.kept.len() >= MAX_LOGINS && !state.kept.contains_key(&self.key);
        let outcome = if login.expose().len() > MAX_BYTES {
            Err(too_long(&self.key))
        } else if full {
            let message = format!("the token store in memory has {MAX_LOGINS} logins, and room for no more");
            Err(Error::new(ErrorKind::Auth, message))
        } else {
            state.kept.insert(self.key.clone(), login.clone());
            Ok(())
        };
        Box::pin(std::future::ready(outcome))
    }

    fn remove(&mut self) -> BoxFuture<Result<()>> {
        self.store.lock().kept.remove(&self.key);
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn logins_are_apart_by_issuer_and_server() {
        let store = MemoryStore::new();
        let keys = [("a", "s"), ("b", "s"), ("a", "t"), ("a", "s/")].map(|(i, s)| TokenKey::new(i, s));
        for (n, key) in keys.iter().enumerate() {
            assert_eq!(store.load(key).await.expect("loaded"), None);
            let mut reserved = store.reserve(key, LONG).await.expect("reserved");
            reserved.save(&n.to_string().into()).await.expect("saved");
        }
        for (n, key) in keys.iter().enumerate() {
            assert_eq!(store.load(key).await.expect("loaded"), Some(n.to_string().into()));
        }
        let found = store.find("s").await.expect("found");
        assert_eq!(found.iter().map(|(key, _)| key.issuer.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let mut reserved = store.reserve(&keys[0], LONG).await.expect("reserved");
        reserved.remove().await.expect("removed");
        assert_eq!(reserved.load().await.expect("loaded"), None);
        assert_eq!(format!("{store:?}"), "MemoryStore(3 logins)");
    }

    #[tokio::test]
    async fn one_at_a_time_changes_a_login_and_nothing_is_left_of_the_turns() {
        let store = MemoryStore::new();
        let key = TokenKey::new("i", "s");
        let first = store.reserve(&key, LONG).await.expect("reserved");
        let error = store.reserve(&key, Duration::ZERO).await.err().expect("taken");
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(store.reserve(&TokenKey::new("i", "t"), Duration::ZERO).await.is_ok());
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let (store, key) = (store.clone(), key.clone());
                tokio::spawn(async move {
                    let mut reserved = store.reserve(&key, LONG).await.expect("reserved");
                    let before = reserved.load().await.expect("loaded");
                    let before: u32 = before.map_or(0, |kept| kept.expose().parse().expect("a number"));
                    tokio::task::yield_now().await;
                    reserved.save(&(before + 1).to_string().into()).await.expect("saved");
                })
            })
            .collect();
        drop(first);
        for task in tasks {
            task.await.expect("done");
        }
        assert_eq!(store.load(&key).await.expect("loaded"), Some("20".into()));
        assert!(store.lock().turns.is_empty());
    }
}
