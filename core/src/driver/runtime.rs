//! One tokio runtime for programs that have none, such as other languages' interpreters.

use std::future::Future;
use std::sync::Mutex;

use tokio::runtime::{Builder, Handle, Runtime};

/// The process that built the runtime, and the runtime: after a fork its threads exist only in the parent.
static OWN: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

/// The caller's runtime, else the engine's own, which is built on first use and lives as long as the process.
///
/// # Panics
/// When the operating system refuses threads.
pub(crate) fn handle() -> Handle {
    Handle::try_current().unwrap_or_else(|_| own())
}

/// The engine's own runtime, also when the caller has one.
#[expect(clippy::expect_used, reason = "without threads there is nothing left to do")]
pub(crate) fn own() -> Handle {
    let pid = std::process::id();
    let mut slot = OWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match *slot {
        Some((owner, runtime)) if owner == pid => runtime.handle().clone(),
        _ => {
            #[cfg(unix)]
            crate::streams::occupy();
            let runtime = Builder::new_multi_thread()
                .worker_threads(1)
                .max_blocking_threads(64)
                .thread_name(THREAD)
                .enable_all()
                .build()
                .expect("the operating system gives a thread");
            // Never dropped: dropping would wait for blocking reads, and a forked child must not touch the parent's.
            let runtime: &'static Runtime = Box::leak(Box::new(runtime));
            *slot = Some((pid, runtime));
            runtime.handle().clone()
        }
    }
}

/// Runs `future` as a task of the caller's runtime or of the engine's own.
pub(crate) fn spawn<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[cfg(all(test, feature = "redis"))]
    let future = crate::simulated::task(future);
    handle().spawn(future)
}

/// The engine's own runtime, or that of a simulation.
#[cfg(feature = "redis")]
pub(crate) fn own_or_simulated() -> Handle {
    #[cfg(test)]
    if crate::simulated::is_on() {
        return handle();
    }
    own()
}

/// Runs `future` as a task of the engine's own runtime, also when the caller has one.
#[cfg(feature = "redis")]
pub(crate) fn spawn_own<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    #[cfg(test)]
    if crate::simulated::is_on() {
        return spawn(future);
    }
    own().spawn(future)
}

/// The threads of the engine's own runtime are called so.
const THREAD: &str = "tricorn";

/// Does something that takes a while. On the engine's own runtime another thread takes over what the one worker does; in a
/// caller's runtime nothing is known of its threads, and it is done as it is.
#[cfg(feature = "http")]
pub(crate) fn beside_others<T>(work: impl FnOnce() -> T) -> T {
    let is_own = std::thread::current().name() == Some(THREAD);
    if is_own { tokio::task::block_in_place(work) } else { work() }
}
