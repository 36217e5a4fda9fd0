//! The end of a program whose event loop hears of no signal and no end of its input, because something blocks it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::driver::runtime;
use crate::error::Result;

/// A signal is to be heard by the host.
static IS_WATCHED: AtomicBool = AtomicBool::new(false);
/// Number of calls of [`watch_signals`].
static ROUND: AtomicU64 = AtomicU64::new(0);
/// Patience after SIGINT or the end of the input, and after SIGTERM.
static PATIENCE: Mutex<Duration> = Mutex::new(Duration::ZERO);
static POLITE: Mutex<Duration> = Mutex::new(Duration::ZERO);
/// The end of the standard streams is that of the program, too.
static STREAMS: AtomicBool = AtomicBool::new(false);
/// There is a task that hears the signals.
static HEARS: AtomicBool = AtomicBool::new(false);

/// From now on the process is killed when the host does not say, by [`heard`], within `patience` of SIGINT or SIGTERM that
/// it has heard of it, within `polite` for SIGTERM: what blocks the host then may be what is to be answered. To be called
/// after the host has set its own handlers of these signals, which go on being called. `streams`: the same `patience` after
/// the end of the standard streams that a server serves.
///
/// # Errors
/// The signals cannot be listened to.
pub fn watch_signals(patience: Duration, polite: Duration, streams: bool) -> Result<()> {
    STREAMS.store(streams, Ordering::SeqCst);
    *PATIENCE.lock().unwrap_or_else(PoisonError::into_inner) = patience;
    *POLITE.lock().unwrap_or_else(PoisonError::into_inner) = polite;
    ROUND.fetch_add(1, Ordering::SeqCst);
    IS_WATCHED.store(true, Ordering::SeqCst);
    if HEARS.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    let listen = || -> std::io::Result<_> {
        let handle = runtime::handle();
        let _guard = handle.enter();
        Ok((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    };
    let (mut interrupt, mut terminate) = listen().inspect_err(|_| HEARS.store(false, Ordering::SeqCst))?;
    runtime::spawn(async move {
        loop {
            let patience = tokio::select! {
                _ = interrupt.recv() => *PATIENCE.lock().unwrap_or_else(PoisonError::into_inner),
                _ = terminate.recv() => *POLITE.lock().unwrap_or_else(PoisonError::into_inner),
            };
            wait_for_the_host(patience, ROUND.load(Ordering::SeqCst)).await;
        }
    });
    Ok(())
}

/// Kills the process when the host does not say, by [`heard`], within `patience` that it has come to its end.
pub fn expect_end(patience: Duration) {
    let round = ROUND.fetch_add(1, Ordering::SeqCst) + 1;
    IS_WATCHED.store(true, Ordering::SeqCst);
    runtime::spawn(wait_for_the_host(patience, round));
}

/// The standard streams have come to their end, which is that of a program that watches its signals.
pub(super) fn streams_ended() {
    if STREAMS.load(Ordering::SeqCst) && IS_WATCHED.load(Ordering::SeqCst) {
        let patience = *PATIENCE.lock().unwrap_or_else(PoisonError::into_inner);
        runtime::spawn(wait_for_the_host(patience, ROUND.load(Ordering::SeqCst)));
    }
}

async fn wait_for_the_host(patience: Duration, round: u64) {
    let is_waited_for = || IS_WATCHED.load(Ordering::SeqCst) && ROUND.load(Ordering::SeqCst) == round;
    if !is_waited_for() {
        return;
    }
    tokio::time::sleep(patience).await;
    // A host that watches since then has missed nothing.
    if is_waited_for() {
        crate::report::line("a handler blocks the event loop, so that the program does not hear of its end: killed");
        // Nothing milder is safe while another thread runs the host's code.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// The host has heard of a signal, or listens no more.
pub fn heard() {
    IS_WATCHED.store(false, Ordering::SeqCst);
}
