use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Something that happens once and can be waited for, without a runtime.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    set: AtomicBool,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    wakers: BTreeMap<u64, Waker>,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets it. Says whether it was this call that did.
    pub(crate) fn set(&self) -> bool {
        if self.set.swap(true, Ordering::AcqRel) {
            return false;
        }
        let wakers = std::mem::take(&mut self.lock().wakers);
        wakers.into_values().for_each(Waker::wake);
        true
    }

    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Resolves with the future, unless this is set before: the future is dropped then.
    pub(crate) async fn unless<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let (mut set, mut future) = (std::pin::pin!(self.wait()), std::pin::pin!(future));
        std::future::poll_fn(|cx| {
            if set.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            future.as_mut().poll(cx).map(Some)
        })
        .await
    }

    /// Resolves when it is set. Dropped before, it leaves nothing behind.
    pub(crate) fn wait(&self) -> Wait<'_> {
        Wait { signal: self, registered: None }
    }
}

/// See [`Signal::wait`].
pub(crate) struct Wait<'a> {
    signal: &'a Signal,
    /// Key under which the signal knows of this wait, and its waker.
    registered: Option<(u64, Waker)>,
}

impl Future for Wait<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.signal.is_set() {
            return Poll::Ready(());
        }
        let key = match &self.registered {
            // Polled again for another reason.
            Some((_, waker)) if waker.will_wake(cx.waker()) => return Poll::Pending,
            Some((key, _)) => Some(*key),
            None => None,
        };
        let mut waiting = self.signal.lock();
        let key = key.unwrap_or_else(|| {
            waiting.last += 1;
            waiting.last
        });
        waiting.wakers.insert(key, cx.waker().clone());
        drop(waiting);
        self.registered = Some((key, cx.waker().clone()));
        // Set between the first look and the registration?
        if self.signal.is_set() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some((key, _)) = self.registered {
            self.signal.lock().wakers.remove(&key);
        }
    }
}
