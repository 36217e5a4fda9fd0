//! Long messages are decoded and checked one after the other, beside the requests of others.

use std::sync::LazyLock;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::driver::runtime;

/// A message that is longer takes a while to be decoded and checked, in bytes.
const HEAVY: usize = 128 << 10;

/// One core is left to short messages.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Semaphore::new(cores.saturating_sub(1).max(1))
});

/// The turn of a message with so many bytes to be worked on. A short one needs none.
pub(super) async fn turn(bytes: usize) -> Option<SemaphorePermit<'static>> {
    if bytes <= HEAVY {
        return None;
    }
    // It is never closed.
    TURNS.acquire().await.ok()
}

/// Works on a message with so many bytes. Where the engine's one thread would do it, others go on meanwhile.
pub(super) fn at_length<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes <= HEAVY { work() } else { runtime::beside_others(work) }
}
