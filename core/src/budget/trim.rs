//! Memory that was freed goes back to the system. The allocator of glibc keeps what lies below something that is still in
//! use: after one long message a process would be as large as that for ever.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// A message that is shorter leaves nothing worth giving back, in bytes.
const SHORT: usize = 16 << 10;

/// Number of bytes that have to be worked on before anything is given back. Its values take several times that.
const MUCH: usize = 512 << 10;

/// The quiet that has to pass before that, and how often it is waited for: a minute. Giving back holds up whoever needs
/// memory meanwhile, and under load it is needed again at once.
const QUIET: (Duration, usize) = (Duration::from_millis(400), 150);

/// Bytes worked on since something was given back.
static WORKED: AtomicUsize = AtomicUsize::new(0);
/// The process in which a thread waits to give back, or 0: a fork takes the number with it, and not the thread.
static WAITS: AtomicU32 = AtomicU32::new(0);

/// Counts bytes of a message that is gone, or as much memory that was used for something else.
pub(crate) fn worked(bytes: usize) {
    // Others give back by themselves, or keep little.
    if bytes < SHORT || !cfg!(all(feature = "runtime", target_os = "linux", target_env = "gnu")) {
        return;
    }
    let all = WORKED.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
    if all < MUCH {
        return;
    }
    let own = std::process::id();
    if WAITS.swap(own, Ordering::AcqRel) == own {
        return;
    }
    // A thread of its own: a task would end with the runtime of whoever calls, and wait for it.
    let waiting = std::thread::Builder::new().name("tricorn-trim".into()).stack_size(128 << 10).spawn(|| {
        for _ in 0..QUIET.1 {
            let before = WORKED.load(Ordering::Relaxed);
            std::thread::sleep(QUIET.0);
            if WORKED.load(Ordering::Relaxed) == before {
                break;
            }
        }
        WORKED.store(0, Ordering::Relaxed);
        WAITS.store(0, Ordering::Release);
        // It walks through all that is free.
        give_back();
    });
    if waiting.is_err() {
        WAITS.store(0, Ordering::Release);
    }
}

#[cfg(all(feature = "runtime", target_os = "linux", target_env = "gnu"))]
fn give_back() {
    #[expect(unsafe_code, reason = "nothing safe tells glibc to; see ADR 0017")]
    // SAFETY: it takes a number, touches memory that is free alone, and may be called from any thread.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(feature = "runtime", target_os = "linux", target_env = "gnu")))]
fn give_back() {}
