//! A simulated machine for tests: time, randomness and processes that are the same for the same seed.
//!
//! All of it belongs to the thread: a simulation runs on one, on a tokio runtime whose time stands still. Tasks that are
//! spawned within a process belong to it, and run as long as it does.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// Wall time at which simulations begin, in milliseconds since 1970.
const BEGINNING: u64 = 1_800_000_000_000;

thread_local! {
    static MACHINE: Cell<Option<Instant>> = const { Cell::new(None) };
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    static CURRENT: RefCell<Option<Arc<Process>>> = const { RefCell::new(None) };
}

/// Simulates on this thread until it is dropped.
pub(crate) struct Machine;

impl Machine {
    /// Begins, on a runtime whose time stands still.
    pub(crate) fn begin(seed: u64) -> Self {
        sow(seed);
        MACHINE.set(Some(Instant::now()));
        Self
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        MACHINE.set(None);
    }
}

/// Returns true if this thread simulates.
pub(crate) fn is_on() -> bool {
    MACHINE.get().is_some()
}

/// Returns the time since the beginning, in a simulation.
pub(crate) fn now() -> Option<Duration> {
    MACHINE.get().map(|begun| Instant::now().saturating_duration_since(begun))
}

/// Returns the wall time, in a simulation.
pub(crate) fn unix() -> Option<Duration> {
    now().map(|now| Duration::from_millis(BEGINNING) + now)
}

/// Seeds all randomness of this thread.
pub(crate) fn sow(seed: u64) {
    RANDOM.set(seed ^ 0x9e37_79b9_7f4a_7c15);
}

/// A random number below this one.
pub(crate) fn random(below: u64) -> u64 {
    // SplitMix64.
    let state = RANDOM.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    RANDOM.set(state);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % below.max(1)
}

/// Happens so often in a hundred times.
pub(crate) fn chance(percent: u64) -> bool {
    random(100) < percent
}

/// Fills `bytes` from the seed. `false`: nothing is simulated.
pub(crate) fn fill(bytes: &mut [u8]) -> bool {
    if is_on() {
        bytes.iter_mut().for_each(|byte| *byte = u8::try_from(random(256)).unwrap_or(0));
    }
    is_on()
}

const RUNS: u8 = 0;
const STANDS: u8 = 1;
const GONE: u8 = 2;

/// A process: its tasks run, stand still, or are gone.
pub(crate) struct Process {
    pub(crate) name: String,
    state: AtomicU8,
    waiting: Mutex<Vec<Waker>>,
    /// Told when it is killed.
    pub(crate) killed: Notify,
}

impl Process {
    pub(crate) fn new(name: &str) -> Arc<Self> {
        let (state, waiting, killed) = (AtomicU8::new(RUNS), Mutex::default(), Notify::new());
        Arc::new(Self { name: name.to_owned(), state, waiting, killed })
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.state.load(Ordering::Relaxed) == GONE
    }

    pub(crate) fn stands(&self) -> bool {
        self.state.load(Ordering::Relaxed) == STANDS
    }

    /// Stops all of its tasks, as a signal does.
    pub(crate) fn stop(&self) {
        let _ = self.state.compare_exchange(RUNS, STANDS, Ordering::Relaxed, Ordering::Relaxed);
    }

    pub(crate) fn go_on(&self) {
        if self.state.compare_exchange(STANDS, RUNS, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Nothing of it runs any more.
    pub(crate) fn kill(&self) {
        self.state.store(GONE, Ordering::Relaxed);
        self.killed.notify_waiters();
    }

    /// Returns a future that runs in this process.
    pub(crate) fn run<F: Future>(self: &Arc<Self>, future: F) -> Task<F> {
        Task { process: Some(self.clone()), future: Some(Box::pin(future)) }
    }

    /// Does something as this process.
    pub(crate) fn enter<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        struct Leave(Option<Arc<Process>>);
        impl Drop for Leave {
            fn drop(&mut self) {
                let before = self.0.take();
                let _ = CURRENT.try_with(|current| current.replace(before));
            }
        }
        let _leave = Leave(CURRENT.with(|current| current.replace(Some(self.clone()))));
        work()
    }
}

/// A task of a process, or of none.
pub(crate) struct Task<F> {
    process: Option<Arc<Process>>,
    future: Option<Pin<Box<F>>>,
}

/// A future that is spawned: it belongs to the process that spawns it.
pub(crate) fn task<F: Future>(future: F) -> Task<F> {
    let process = CURRENT.try_with(|current| current.borrow().clone()).ok().flatten();
    Task { process, future: Some(Box::pin(future)) }
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let Some(future) = &mut this.future else { return Poll::Pending };
        let Some(process) = &this.process else { return future.as_mut().poll(cx) };
        match process.state.load(Ordering::Relaxed) {
            RUNS => process.enter(|| future.as_mut().poll(cx)),
            STANDS => {
                process.waiting.lock().unwrap_or_else(PoisonError::into_inner).push(cx.waker().clone());
                Poll::Pending
            }
            _ => {
                process.enter(|| this.future = None);
                Poll::Pending
            }
        }
    }
}

impl<F> Drop for Task<F> {
    fn drop(&mut self) {
        if let (Some(process), Some(future)) = (&self.process, self.future.take()) {
            process.enter(|| drop(future));
        }
    }
}
