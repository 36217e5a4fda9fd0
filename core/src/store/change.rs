//! Changes that one process tells all others.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Changes that wait for the store, at most.
const MAX_WAITING: usize = 1024;
/// Bytes of their names, at most.
const MAX_BYTES: usize = 256 * 1024;

/// Something that has changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// The list of this kind.
    List(String),
    /// The resource with this URI.
    Resource(String),
    /// Anything: changes were lost.
    All,
}

impl Change {
    fn bytes(&self) -> usize {
        match self {
            Self::List(name) | Self::Resource(name) => name.len(),
            Self::All => 0,
        }
    }
}

/// Changes of this process that the others are to be told. Equal ones are one; of too many is said that anything may have
/// changed.
#[derive(Debug, Default)]
pub(crate) struct Outbox(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// Somebody takes them.
    is_open: bool,
    /// This process hears its own changes from the store, as all others do.
    loops: bool,
    /// The changes; 0 for one that this process hears of from the store, else the number under which clients here were told
    /// of it at once.
    changes: BTreeMap<Change, u64>,
    /// Count of those.
    #[cfg(feature = "redis")]
    told: std::sync::Arc<std::sync::atomic::AtomicU64>,
    bytes: usize,
    waker: Option<std::task::Waker>,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A change is to be told, if anybody is there to tell it. `true`: this process hears of it from the store, in its
    /// place among all changes; otherwise its own clients are to be told at once.
    pub(crate) fn add(&self, change: impl FnOnce() -> Change) -> bool {
        let mut waiting = self.lock();
        if !waiting.is_open || waiting.changes.contains_key(&Change::All) {
            return false;
        }
        let loops = waiting.loops;
        let number = if loops { 0 } else { waiting.next() };
        let loops = waiting.put(change(), number);
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
        loops
    }

    /// Somebody takes changes from now on, or nobody does any more.
    #[cfg(feature = "redis")]
    pub(crate) fn open(&self, is_open: bool) {
        let mut waiting = self.lock();
        waiting.is_open = is_open;
        if !is_open {
            (waiting.changes, waiting.bytes, waiting.loops) = (BTreeMap::new(), 0, false);
        }
    }

    /// The store takes changes, and tells them in order: changes from now on come from there.
    #[cfg(feature = "redis")]
    pub(crate) fn begin_loop(&self) {
        let mut waiting = self.lock();
        waiting.loops = waiting.is_open;
    }

    /// The store does not take them. Returns those that wait for it and that clients here have not been told.
    #[cfg(feature = "redis")]
    pub(crate) fn end_loop(&self) -> Vec<Change> {
        let mut waiting = self.lock();
        waiting.loops = false;
        let number = waiting.next();
        let untold = waiting.changes.iter_mut().filter(|(_, told)| **told == 0);
        untold
            .map(|(change, told)| {
                *told = number;
                change.clone()
            })
            .collect()
    }

    /// Returns the number under which clients here are told of a change from now on, for those who count them.
    #[cfg(feature = "redis")]
    pub(crate) fn next_told(&self) -> u64 {
        self.lock().next()
    }

    /// Returns the count of the times that clients here were told of a change at once, as it goes on.
    #[cfg(feature = "redis")]
    pub(crate) fn told(&self) -> std::sync::Arc<std::sync::atomic::AtomicU64> {
        self.lock().told.clone()
    }

    /// Takes up to `max` of them, each with 0 if this process is to hear of it from the store, else with the number under
    /// which clients here were told of it.
    #[cfg(feature = "redis")]
    pub(crate) fn take(&self, max: usize) -> Vec<(Change, u64)> {
        let mut waiting = self.lock();
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some((change, told)) = waiting.changes.pop_first()
        {
            waiting.bytes -= change.bytes();
            taken.push((change, told));
        }
        taken
    }

    /// Waits until there is something to tell.
    #[cfg(feature = "redis")]
    pub(crate) async fn wait(&self) {
        std::future::poll_fn(|cx| {
            let mut waiting = self.lock();
            if !waiting.changes.is_empty() {
                return std::task::Poll::Ready(());
            }
            waiting.waker = Some(cx.waker().clone());
            std::task::Poll::Pending
        })
        .await;
    }
}

impl Waiting {
    /// Returns the number under which clients here are told of a change.
    #[cfg_attr(not(feature = "redis"), expect(clippy::unused_self, reason = "nobody counts them"))]
    fn next(&self) -> u64 {
        #[cfg(feature = "redis")]
        return self.told.fetch_add(1, std::sync::atomic::Ordering::AcqRel) + 1;
        #[cfg(not(feature = "redis"))]
        1
    }

    /// Returns true if this process hears of it from the store. `told`: 0, or the number under which clients here are told.
    fn put(&mut self, change: Change, told: u64) -> bool {
        let bytes = change.bytes();
        if change == Change::All || self.changes.len() >= MAX_WAITING || self.bytes + bytes > MAX_BYTES {
            // Some of them may not have been told here.
            let told = if self.loops { 0 } else { self.next() };
            self.changes = BTreeMap::from([(Change::All, told)]);
            self.bytes = 0;
            return false;
        }
        if self.changes.contains_key(&Change::All) {
            return false;
        }
        // The same change again, which waits already.
        if let Some(before) = self.changes.get(&change) {
            return *before == 0 && told == 0;
        }
        self.bytes += bytes;
        self.changes.insert(change, told);
        told == 0
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use super::*;

    fn resource(n: usize) -> Change {
        Change::Resource(format!("a:/{n}"))
    }

    #[test]
    fn equal_changes_are_one_and_too_many_are_all() {
        let outbox = Outbox::default();
        outbox.add(|| unreachable!("nobody takes it"));
        outbox.open(true);
        for n in [1, 2, 1, 2, 1] {
            assert!(!outbox.add(|| resource(n)));
        }
        assert_eq!(outbox.take(1), [(resource(1), 1)]);
        assert_eq!(outbox.take(9), [(resource(2), 2)]);
        for n in 0..2 * MAX_WAITING {
            outbox.add(|| resource(n));
        }
        let all = |taken: Vec<(Change, u64)>| taken.len() == 1 && taken[0].0 == Change::All && taken[0].1 > 0;
        assert!(all(outbox.take(9)));
        outbox.add(|| Change::Resource("x".repeat(MAX_BYTES + 1)));
        assert!(all(outbox.take(9)));
        outbox.add(|| resource(1));
        outbox.open(false);
        assert_eq!((outbox.take(9).len(), outbox.lock().bytes), (0, 0));
    }

    #[test]
    fn what_comes_back_from_the_store_is_told_once() {
        let outbox = Outbox::default();
        outbox.open(true);
        assert!(!outbox.add(|| resource(1)), "told at once");
        outbox.begin_loop();
        assert!(outbox.add(|| resource(2)) && outbox.add(|| resource(2)));
        assert!(!outbox.add(|| resource(1)), "the one that waits does not come back");
        assert_eq!(outbox.end_loop(), [resource(2)]);
        assert!(outbox.end_loop().is_empty());
        assert_eq!(outbox.take(9), [(resource(1), 1), (resource(2), 2)]);
    }
}
