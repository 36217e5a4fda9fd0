//! Cache in a store of the program's own, which other processes may share.
//!
//! **Invariant**: whatever the store does, a request goes on: it is asked for so long, and then the server is.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::making::Making;
use super::names::Names;
use super::{CacheOptions, CacheStore, digest, text};
use crate::call::{BoxFuture, Clock, Guard};
use crate::client::Events;
use crate::error::Result;
use crate::protocol::revision::Method;
use crate::report;
use crate::signal::Signal;

/// The longest that a store may take over one thing.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for which it is not asked after it took longer.
const REST: Duration = Duration::from_secs(5);
/// Lifetime of a mark, and so of everything that belongs to it. Without it nothing is given of that.
const MARK: Duration = Duration::from_secs(24 * 3600);
/// Additional lifetime of an answer that may be given although it is no longer fresh.
const STALE: Duration = Duration::from_secs(24 * 3600);
/// Shortest time between two warnings about the store.
const SAYING: Duration = Duration::from_secs(60);
/// Before the store is told again of changes that it would not take.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// The most marks that the store is to be told of. With more, everything counts as changed.
const MAX_UNTOLD: usize = 1000;
/// The most of them at once.
const AT_ONCE: usize = 32;

/// The time that all processes agree on, since 1970.
pub(super) fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Environment of the store.
pub(crate) struct Outside {
    /// Receiver of warnings about it.
    pub(crate) events: Arc<dyn Events>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Runs what has to wait.
    pub(crate) spawn: fn(BoxFuture<()>),
}

/// A store as one client sees it.
pub(crate) struct Elsewhere {
    store: Arc<dyn CacheStore>,
    pub(super) names: Names,
    pub(super) max_bytes: usize,
    /// Time for which an answer is kept after it is no longer fresh.
    pub(super) beyond: Duration,
    events: Arc<dyn Events>,
    clock: Arc<dyn Clock>,
    spawn: fn(BoxFuture<()>),
    /// Set when the client's user has closed it.
    pub(super) given_up: Arc<Signal>,
    failures: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of changes that this client has heard of, in all and of each method.
    changes: u64,
    of_method: BTreeMap<String, u64>,
    /// The marks that have changed and that the store does not know of yet, with the number of the change. Answers that
    /// depend on them are asked for at the server.
    untold: BTreeMap<String, u64>,
    telling: Telling,
    making: Making,
    /// True for the methods whose answers ever allow caching, false for those whose answers never did. For the latter
    /// no marks are made.
    keeps: BTreeMap<&'static str, bool>,
    /// It took too long, and is not asked until then.
    rests_until: Option<Duration>,
    said: Option<Duration>,
}

/// True if the store is being told. One task does that: two would write different marks.
#[derive(Default)]
enum Telling {
    #[default]
    No,
    /// Set when this round is over.
    Now(Arc<Signal>),
    /// It would not take it, and is tried again after a while.
    Later,
}

impl Telling {
    fn end(self) {
        if let Self::Now(round) = self {
            round.set();
        }
    }
}

/// The task that tells the store. Should its runtime end before it does, nobody waits for it.
struct Teller<'a>(Option<&'a Elsewhere>);

impl Drop for Teller<'_> {
    fn drop(&mut self) {
        if let Some(elsewhere) = self.0 {
            let before = std::mem::take(&mut elsewhere.lock().telling);
            before.end();
        }
    }
}

/// Marks that a request has made. Whether the store has taken them, refused them, or will never be asked as nobody waits for
/// the request: others do not wait for longer.
struct Made<'a> {
    elsewhere: &'a Elsewhere,
    marks: Vec<String>,
    /// The store has taken all.
    is_made: bool,
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        let mut state = self.elsewhere.lock();
        let waiting: Vec<_> = self.marks.iter().filter_map(|mark| state.making.end(mark, self.is_made)).collect();
        drop(state);
        for over in waiting {
            over.set();
        }
    }
}

impl Elsewhere {
    pub(super) fn new(
        store: Arc<dyn CacheStore>,
        target: &str,
        options: &CacheOptions,
        outside: &Outside,
        given_up: Arc<Signal>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            names: Names::new(target),
            max_bytes: options.max_bytes,
            beyond: if options.stale_on_error { STALE } else { Duration::ZERO },
            events: outside.events.clone(),
            clock: outside.clock.clone(),
            spawn: outside.spawn,
            given_up,
            failures: AtomicU64::new(0),
            state: Mutex::default(),
        })
    }

    /// From now on.
    pub(super) fn moment(&self) -> u64 {
        self.lock().making.moment()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// A number that every change of this method makes another.
    pub(super) fn generation(&self, method: &str) -> u64 {
        self.lock().of_method.get(method).copied().unwrap_or_default()
    }

    /// The server has said whether an answer keeps.
    pub(super) fn learn(&self, method: &str, keeps: bool) {
        if let Some(row) = Method::find(method) {
            *self.lock().keeps.entry(row.name).or_default() |= keeps;
        }
    }

    /// Waits for the store, unless it takes too long: then it rests.
    pub(super) async fn within<T>(&self, what: &str, asked: impl Future<Output = T>) -> Option<T> {
        let (late, timer) = self.timer(PATIENCE);
        let outcome = late.unless(asked).await;
        drop(timer);
        if outcome.is_none() && !self.is_resting() {
            self.lock().rests_until = Some(self.clock.now() + REST);
            self.failed(&format!("{what}: it has not answered within {} s", PATIENCE.as_secs()));
        }
        outcome
    }

    /// Asks the store, unless it rests; none when it fails.
    pub(super) async fn ask<T>(
        &self,
        what: &str,
        asked: impl FnOnce(&dyn CacheStore) -> BoxFuture<Result<T>>,
    ) -> Option<T> {
        if self.is_resting() {
            return None;
        }
        match guarded(|| asked(&*self.store)).await {
            Some(Ok(value)) => return Some(value),
            Some(Err(error)) => self.failed(&format!("{what}: {}", error.message())),
            None => self.failed(&format!("{what}: it panicked")),
        }
        None
    }

    fn timer(&self, delay: Duration) -> (Arc<Signal>, Guard) {
        let over = Arc::<Signal>::default();
        let ring = over.clone();
        let timer = self.clock.later(
            delay,
            Box::new(move || {
                ring.set();
            }),
        );
        (over, timer)
    }

    fn is_resting(&self) -> bool {
        let now = self.clock.now();
        self.lock().rests_until.is_some_and(|until| now < until)
    }

    pub(super) fn failed(&self, why: &str) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let now = self.clock.now();
        let mut state = self.lock();
        if state.said.is_some_and(|said| now < said + SAYING) {
            return;
        }
        state.said = Some(now);
        drop(state);
        let message = format!("the cache's store: {why}; what it does not give is asked for at the server");
        report::guarded("what hears of warnings", || self.events.warning(&message));
    }

    /// The marks' values as one text, of which the store was asked at this moment. Those that are not there are made: an
    /// answer is kept under nothing else, so that one that went and is made again is no sign that nothing has changed.
    pub(super) async fn marked(
        &self,
        method: &str,
        marks: Vec<String>,
        values: Vec<Option<String>>,
        since: u64,
    ) -> Option<String> {
        let may_make = self.lock().keeps.get(method).is_none_or(|keeps| *keeps);
        let mut own = Made { elsewhere: self, marks: Vec::new(), is_made: false };
        let (mut all, mut made, mut others) = (Vec::with_capacity(marks.len()), Vec::new(), Vec::new());
        for (mark, value) in marks.into_iter().zip(values) {
            if let Some(value) = value.filter(|value| text::is_mark(value)) {
                all.push(value);
                continue;
            }
            if !may_make {
                return None;
            }
            let mut state = self.lock();
            if let Some((value, over)) = state.making.find(&mark, since) {
                all.push(value.clone());
                others.push((mark, value, over));
                continue;
            }
            let value = text::new_mark()?;
            state.making.begin(mark.clone(), value.clone());
            drop(state);
            own.marks.push(mark.clone());
            all.push(value.clone());
            made.push((mark, value));
        }
        // Before the server is asked: what changes after that makes them others.
        let mut is_made = self.write(made).await;
        own.is_made = is_made;
        drop(own);
        for (mark, value, over) in others {
            over.wait().await;
            is_made &= self.lock().making.is_made(&mark, &value);
        }
        is_made.then(|| digest("marks", all.iter().map(String::as_str)).to_string())
    }

    /// Writes marks; whether the store has taken all.
    async fn write(&self, marks: Vec<(String, String)>) -> bool {
        let writes = marks.into_iter().map(|(mark, value)| self.ask("set", |store| store.set(mark, value, MARK)));
        all(writes.collect()).await.iter().all(Option::is_some)
    }

    /// Something has changed: from now on this client knows of nothing else, and the store is told.
    pub(super) fn changed(self: &Arc<Self>, method: &str, uri: Option<&str>) {
        let mut state = self.lock();
        state.changes += 1;
        let number = state.changes;
        state.of_method.insert(method.to_owned(), number);
        state.untold.extend(self.names.touched(method, uri).into_iter().map(|mark| (mark, number)));
        if state.untold.len() > MAX_UNTOLD {
            let all =
                Method::all().iter().filter(|row| row.cacheable).flat_map(|row| self.names.touched(row.name, None));
            state.untold = all.map(|mark| (mark, number)).collect();
        }
        self.tell(&mut state);
    }

    /// Sees to it that the store is told.
    fn tell(self: &Arc<Self>, state: &mut State) {
        if matches!(state.telling, Telling::No) {
            state.telling = Telling::Now(Arc::default());
            (self.spawn)(Box::pin(self.clone().tell_all()));
        }
    }

    /// Waits until the store knows what it is to be told of these marks, of all when there are none; whether it does.
    pub(super) async fn told(self: &Arc<Self>, marks: &[String]) -> bool {
        let is_told = |state: &State| match marks {
            [] => state.untold.is_empty(),
            marks => marks.iter().all(|mark| !state.untold.contains_key(mark)),
        };
        let round = {
            let mut state = self.lock();
            if is_told(&state) {
                return true;
            }
            self.tell(&mut state);
            match &state.telling {
                Telling::Now(round) => round.clone(),
                Telling::No | Telling::Later => return false,
            }
        };
        round.wait().await;
        is_told(&self.lock())
    }

    /// Tells the store of what has changed before the client is gone.
    pub(super) async fn part(self: &Arc<Self>) {
        let (late, timer) = self.timer(PATIENCE);
        late.unless(self.told(&[])).await;
        drop(timer);
    }

    /// Tells the store of all that has changed, until it knows, or will not take it for half a minute. The rest is
    /// tried again when it is asked for.
    async fn tell_all(self: Arc<Self>) {
        let mut teller = Teller(Some(&self));
        let mut pauses = PAUSES.into_iter();
        loop {
            let all_told = self.tell_round().await;
            let pause = if all_told { None } else { pauses.next() };
            if self.end_round(all_told, pause) {
                teller.0 = None;
                return;
            }
            let Some(pause) = pause else { continue };
            let (over, timer) = self.timer(pause);
            let goes_on = self.given_up.unless(over.wait()).await.is_some();
            drop(timer);
            if !goes_on {
                return;
            }
            self.lock().telling = Telling::Now(Arc::default());
        }
    }

    /// Ends a round, so that everything that waits for it goes on. Returns true if it was the last one.
    fn end_round(&self, all_told: bool, pause: Option<Duration>) -> bool {
        let mut state = self.lock();
        let is_last = if all_told { state.untold.is_empty() } else { pause.is_none() };
        let next = match pause {
            _ if is_last => Telling::No,
            Some(_) => Telling::Later,
            None => Telling::Now(Arc::default()),
        };
        let before = std::mem::replace(&mut state.telling, next);
        drop(state);
        before.end();
        is_last
    }

    /// Tells it what there is now; whether it has taken all of it.
    async fn tell_round(&self) -> bool {
        let untold: Vec<_> = self.lock().untold.iter().map(|(mark, number)| (mark.clone(), *number)).collect();
        let mut all_told = true;
        for some in untold.chunks(AT_ONCE) {
            let writes = some.iter().map(|(mark, _)| {
                let mark = mark.clone();
                async move { self.write(text::new_mark().map(|value| (mark, value)).into_iter().collect()).await }
            });
            let Some(outcomes) = self.within("set", all(writes.collect())).await else { return false };
            let mut state = self.lock();
            for ((mark, number), is_told) in some.iter().zip(outcomes) {
                // Changed again meanwhile, it is to be told again.
                if is_told && state.untold.get(mark) == Some(number) {
                    state.untold.remove(mark);
                }
                all_told &= is_told;
            }
        }
        all_told
    }
}

/// The outcome of user code; none when it panics.
async fn guarded<T>(start: impl FnOnce() -> BoxFuture<T>) -> Option<T> {
    let mut future = catch_unwind(AssertUnwindSafe(start)).ok()?;
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Some),
        Err(_) => std::task::Poll::Ready(None),
    })
    .await
}

/// All outcomes, in their order.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|cx| {
        for (future, outcome) in futures.iter_mut().filter(|(_, outcome)| outcome.is_none()) {
            if let std::task::Poll::Ready(value) = future.as_mut().poll(cx) {
                *outcome = Some(value);
            }
        }
        match futures.iter().all(|(_, outcome)| outcome.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    futures.into_iter().filter_map(|(_, outcome)| outcome).collect()
}

#[cfg(test)]
mod tests;
