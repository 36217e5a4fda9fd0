//! Changes that one process tells all others.

use std::collections::BTreeSet;
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
    changes: BTreeSet<Change>,
    bytes: usize,
    waker: Option<std::task::Waker>,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A change is to be told, if anybody is there to tell it.
    pub(crate) fn add(&self, change: impl FnOnce() -> Change) {
        let mut waiting = self.lock();
        if !waiting.is_open || waiting.changes.contains(&Change::All) {
            return;
        }
        waiting.put(change());
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Somebody takes changes from now on, or nobody does any more.
    #[cfg(feature = "redis")]
    pub(crate) fn open(&self, is_open: bool) {
        let mut waiting = self.lock();
        waiting.is_open = is_open;
        if !is_open {
            (waiting.changes, waiting.bytes) = (BTreeSet::new(), 0);
        }
    }

    /// Takes up to `max` of them.
    #[cfg(feature = "redis")]
    pub(crate) fn take(&self, max: usize) -> Vec<Change> {
        let mut waiting = self.lock();
        let mut taken = Vec::new();
        while taken.len() < max
            && let Some(change) = waiting.changes.pop_first()
        {
            waiting.bytes -= change.bytes();
            taken.push(change);
        }
        taken
    }

    /// Gives back what could not be told.
    #[cfg(feature = "redis")]
    pub(crate) fn give_back(&self, changes: Vec<Change>) {
        let mut waiting = self.lock();
        changes.into_iter().for_each(|change| waiting.put(change));
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
    fn put(&mut self, change: Change) {
        let bytes = change.bytes();
        if change == Change::All || self.changes.len() >= MAX_WAITING || self.bytes + bytes > MAX_BYTES {
            self.changes = BTreeSet::from([Change::All]);
            self.bytes = 0;
        } else if !self.changes.contains(&Change::All) && self.changes.insert(change) {
            self.bytes += bytes;
        }
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
            outbox.add(|| resource(n));
        }
        let taken = outbox.take(1);
        assert_eq!(taken, [resource(1)]);
        outbox.give_back(taken);
        assert_eq!(outbox.take(9), [resource(1), resource(2)]);
        (0..2 * MAX_WAITING).for_each(|n| outbox.add(|| resource(n)));
        assert_eq!(outbox.take(9), [Change::All]);
        outbox.add(|| Change::Resource("x".repeat(MAX_BYTES + 1)));
        assert_eq!(outbox.take(9), [Change::All]);
        outbox.add(|| resource(1));
        outbox.open(false);
        assert_eq!((outbox.take(9).len(), outbox.lock().bytes), (0, 0));
    }
}
