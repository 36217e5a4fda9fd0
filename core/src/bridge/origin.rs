//! Operations of a host as the cause of later deliveries, by their numbers.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use serde_json::json;

use super::{Bridge, Shared};
use crate::jsonrpc::RawJson;
use crate::protocol::{Cause, Origin};

/// An operation that causes something. It is kept by whatever runs for it, which may be longer than the operation lasts.
pub(super) struct Started {
    op: u64,
    bridge: Weak<Shared>,
    /// Work for it goes on after its end.
    outlasts: AtomicBool,
    /// The host keeps what it knows of the operation until it hears that nothing runs for it any more.
    held: AtomicBool,
}

impl Started {
    pub(super) fn new(bridge: &Bridge, op: u64) -> (Weak<Self>, Origin) {
        let bridge = Arc::downgrade(&bridge.0);
        let (outlasts, held) = (AtomicBool::new(false), AtomicBool::new(false));
        let started = Arc::new(Self { op, bridge, outlasts, held });
        (Arc::downgrade(&started), Origin::new(started))
    }

    /// The operation ends in order. Says whether something goes on for it.
    pub(super) fn finished(&self) -> bool {
        let outlasts = self.outlasts.load(Ordering::Acquire);
        if outlasts {
            self.hold();
        }
        outlasts
    }

    /// The host is told when nothing runs for it any more.
    pub(super) fn hold(&self) {
        self.held.store(true, Ordering::Release);
    }
}

impl Cause for Started {
    fn number(&self) -> u64 {
        self.op
    }

    fn outlast(&self) {
        self.outlasts.store(true, Ordering::Release);
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.held.load(Ordering::Acquire)
            && let Some(shared) = self.bridge.upgrade()
        {
            Bridge(shared).event(0, "freed", RawJson::from_value(&json!({"op": self.op})));
        }
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Origin>> = const { RefCell::new(None) };
}

/// As long as this lives, what is begun on this thread is caused by that.
#[must_use]
pub(super) struct Entered(Option<Origin>);

impl Entered {
    pub(super) fn new(origin: Option<Origin>) -> Self {
        Self(CURRENT.replace(origin))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let over = CURRENT.replace(self.0.take());
        drop(over);
    }
}

/// Returns the origin of everything that is begun on this thread now.
pub(super) fn current() -> Option<Origin> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// A future that begins things for this.
#[cfg(feature = "runtime")]
pub(super) async fn within<F: Future>(origin: Origin, future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(move |cx| {
        let _entered = Entered::new(Some(origin.clone()));
        future.as_mut().poll(cx)
    })
    .await
}
