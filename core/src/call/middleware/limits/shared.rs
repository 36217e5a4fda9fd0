//! Limits that several processes count together, in their store. While it does not answer, each counts for itself.

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, TryAcquireError};
use tokio::time::Instant;

use super::super::{Middleware, Next, Request};
use super::{Client, ConcurrencyLimit, RateLimit, too_many};
use crate::call::{BoxFuture, Commons, Context};
use crate::error::Result;
use crate::jsonrpc::RawJson;
use crate::store::redis::Trouble;
use crate::store::redis::limits::RENEWED;

/// Clients of which is remembered when they may come again.
const MAX_REFUSED: usize = 1024;
/// Time between two looks for room, at first and at most.
const LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(50));

/// A limit of a server that has a place among its middleware counts together with that of other processes from now on.
pub(in crate::call::middleware) fn join(middleware: &dyn Middleware, place: usize, commons: &Arc<Commons>) {
    let any: &dyn Any = middleware;
    if let Some(limit) = any.downcast_ref::<RateLimit>() {
        let (apart, burst) = (limit.quota.replenish_interval(), limit.quota.burst_size().get());
        let name = format!("{place}:{}:{burst}", apart.as_micros());
        *limit.shared.place.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::downgrade(commons), name));
    } else if let Some(limit) = any.downcast_ref::<ConcurrencyLimit>() {
        limit.shared.lock().place = Some((Arc::downgrade(commons), place.to_string()));
    } else if let Some(inner) = any.downcast_ref::<Arc<dyn Middleware>>() {
        join(&**inner, place, commons);
    }
}

/// The store does not answer.
struct Unanswered;

/// Asks the store, also on a thread that has no runtime.
async fn asked<T: Send + 'static>(
    commons: &Arc<Commons>,
    question: impl Future<Output = Result<T, Trouble>> + Send + 'static,
) -> Result<T, Unanswered> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return question.await.map_err(|_| Unanswered);
    }
    commons.runtime.spawn(question).await.map_err(|_| Unanswered)?.map_err(|_| Unanswered)
}

/// This process among others, and the name of a limit there.
type Place = (Weak<Commons>, String);

// ---- rates -----------------------------------------------------------------------------------------------------

/// A rate that several processes count.
#[derive(Clone, Default)]
pub(super) struct SharedRate {
    place: Arc<Mutex<Option<Place>>>,
    /// Times at which clients that were refused may come again: until then the store is not asked.
    refused: Arc<Mutex<HashMap<String, Instant>>>,
}

impl SharedRate {
    pub(super) fn place(&self) -> Option<(Arc<Commons>, String)> {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.as_ref().and_then(|(commons, name)| Some((commons.upgrade()?, name.clone())))
    }

    /// Returns the time that this client still has to wait.
    fn left(&self, client: &str) -> Option<Duration> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let left = refused.get(client)?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            refused.remove(client);
        }
        (!left.is_zero()).then_some(left)
    }

    fn refuses(&self, client: &str, wait: Duration) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() >= MAX_REFUSED {
            let now = Instant::now();
            refused.retain(|_, until| *until > now);
        }
        if refused.len() < MAX_REFUSED
            && let Some(until) = Instant::now().checked_add(wait)
        {
            refused.insert(client.to_owned(), until);
        }
    }
}

impl RateLimit {
    pub(super) fn handle_shared(
        self,
        (commons, name): (Arc<Commons>, String),
        client: Client,
        request: Request,
        context: Context,
        next: Next,
    ) -> BoxFuture<Result<RawJson>> {
        if let Some(left) = self.shared.left(client.name()) {
            return Box::pin(std::future::ready(Err(too_many(&context, left))));
        }
        Box::pin(async move {
            let (apart, burst) = (self.quota.replenish_interval(), self.quota.burst_size().get());
            let (store, of) = (commons.store.clone(), client.name().to_owned());
            let counted = asked(&commons, async move { store.rate(&name, &of, apart, burst).await }).await;
            drop(commons);
            let wait = match counted {
                Ok(wait) => {
                    wait.iter().for_each(|wait| self.shared.refuses(client.name(), *wait));
                    wait
                }
                Err(Unanswered) => self.check(client.name()).err(),
            };
            match wait {
                None => next.run(request, &context).await,
                Some(wait) => Err(too_many(&context, wait)),
            }
        })
    }
}

// ---- requests at once ------------------------------------------------------------------------------------------

/// Requests at once that several processes count.
#[derive(Default)]
pub(super) struct SharedRunning {
    state: Mutex<Running>,
    /// One after the other looks for room.
    door: tokio::sync::Mutex<()>,
    /// A request of this process runs no more.
    left: Notify,
    last: AtomicU64,
}

#[derive(Default)]
struct Running {
    place: Option<Place>,
    /// Those of this process, by their names in the store.
    requests: BTreeSet<String>,
    /// Somebody tells the store that they still run.
    is_renewed: bool,
}

impl std::fmt::Debug for SharedRunning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedRunning").field("requests", &self.lock().requests.len()).finish_non_exhaustive()
    }
}

/// A request that is counted until this is dropped; its turn in this process ends with that.
pub(super) struct Entered {
    shared: Arc<SharedRunning>,
    commons: Weak<Commons>,
    name: String,
    request: String,
    runtime: tokio::runtime::Handle,
    turn: Option<OwnedSemaphorePermit>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.shared.lock().requests.remove(&self.request);
        let (shared, commons, turn) = (self.shared.clone(), self.commons.clone(), self.turn.take());
        let (name, request) = (std::mem::take(&mut self.name), std::mem::take(&mut self.request));
        self.runtime.spawn(async move {
            if let Some(store) = commons.upgrade().map(|commons| commons.store.clone()) {
                // Otherwise it is counted for half a minute more.
                let _ = store.leave(&name, &request).await;
            }
            drop(turn);
            shared.left.notify_one();
        });
    }
}

impl SharedRunning {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that has its turn in this process, as soon as there is room for it. `None`: nobody else counts.
    ///
    /// # Errors
    /// It has to wait, and `place` has no room for that.
    pub(super) async fn enter(
        self: &Arc<Self>,
        most: usize,
        turn: &mut Option<OwnedSemaphorePermit>,
        place: impl FnOnce() -> Result<OwnedSemaphorePermit, TryAcquireError>,
    ) -> Result<Option<Entered>, TryAcquireError> {
        let shared = self.lock().place.clone();
        let Some((commons, name)) = shared.and_then(|(commons, name)| Some((commons.upgrade()?, name))) else {
            return Ok(None);
        };
        let entered = Entered {
            shared: self.clone(),
            commons: Arc::downgrade(&commons),
            name,
            request: format!("{}:{}", commons.node, self.last.fetch_add(1, Ordering::Relaxed)),
            runtime: commons.runtime.clone(),
            turn: turn.take(),
        };
        // While the store does not answer, those of this process have their turns.
        let is_in = async |waits: bool| {
            let (store, name, request) = (commons.store.clone(), entered.name.clone(), entered.request.clone());
            let entering = async move { store.enter(&name, most, &request, waits).await };
            asked(&commons, entering).await.unwrap_or(true)
        };
        if !is_in(false).await {
            let _place = place()?;
            let _door = self.door.lock().await;
            let mut pause = LOOKS.0;
            while !is_in(true).await {
                // On the engine's runtime, as this thread may have none.
                let mut over = commons.runtime.spawn(tokio::time::sleep(pause));
                tokio::select! {
                    () = self.left.notified() => over.abort(),
                    _ = &mut over => {}
                }
                pause = (pause * 2).min(LOOKS.1);
            }
        }
        self.runs(&entered);
        Ok(Some(entered))
    }

    /// A request runs, and the store is told so for as long as it does.
    fn runs(self: &Arc<Self>, entered: &Entered) {
        let mut state = self.lock();
        state.requests.insert(entered.request.clone());
        if std::mem::replace(&mut state.is_renewed, true) {
            return;
        }
        drop(state);
        let (shared, commons, name) = (Arc::downgrade(self), entered.commons.clone(), entered.name.clone());
        entered.runtime.spawn(async move {
            loop {
                tokio::time::sleep(RENEWED).await;
                let Some(shared) = shared.upgrade() else { return };
                let requests: Vec<_> = {
                    let mut state = shared.lock();
                    if state.requests.is_empty() || commons.strong_count() == 0 {
                        state.is_renewed = false;
                        return;
                    }
                    state.requests.iter().cloned().collect()
                };
                let Some(store) = commons.upgrade().map(|commons| commons.store.clone()) else { continue };
                let _ = store.renew(&name, &requests).await;
                // Those that have ended meanwhile may have been counted again.
                let ended: Vec<_> = {
                    let state = shared.lock();
                    requests.into_iter().filter(|request| !state.requests.contains(request)).collect()
                };
                for request in ended {
                    let _ = store.leave(&name, &request).await;
                }
            }
        });
    }
}
