//! The process's own standard streams, which belong to the protocol while a server speaks on them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

#[cfg(unix)]
pub(crate) use unix::Taken;
#[cfg(unix)]
pub(crate) use unix::take;
#[cfg(windows)]
pub(crate) use windows::Taken;
#[cfg(windows)]
pub(crate) use windows::take;

use crate::error::{Error, ErrorKind, Result};
use crate::report;

/// Printed text is passed on for so long after the streams were given back.
const DRAIN: Duration = Duration::from_millis(500);

/// Time that the reader of standard error may take, once, before printed text is dropped.
const PATIENCE: Duration = Duration::from_secs(1);

/// One server at a time.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// Streams that a host has not given back yet.
static KEPT: Mutex<Option<Taken>> = Mutex::new(None);

/// A server speaks on them.
pub(crate) struct InUse;

impl InUse {
    pub(crate) fn begin() -> Result<Self> {
        match IN_USE.swap(true, Ordering::AcqRel) {
            true => Err(Error::misuse("the standard streams are in use: a server speaks on them already")),
            false => Ok(Self),
        }
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        IN_USE.store(false, Ordering::Release);
    }
}

/// Leaves it to [`give_back`]: what a host has in its buffers still goes to standard error.
pub(crate) fn keep(taken: Taken) -> Option<Taken> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).replace(taken)
}

/// Puts the standard streams back to their places, when what was printed has been passed on.
pub(crate) fn give_back() {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
    drop(kept);
}

fn failed(error: impl Into<std::io::Error>) -> Error {
    Error::new(ErrorKind::Transport, format!("standard streams: {}", error.into()))
}

fn closed(name: &str) -> Error {
    Error::new(ErrorKind::Transport, format!("standard {name} is closed, and a client speaks over it"))
}

/// Passes on what the program has printed; the first time with a warning.
fn print(chunk: &[u8], warned: &mut bool, patience: Duration) {
    if !std::mem::replace(warned, true) {
        report::say("stdout belongs to the protocol; what this program prints there goes to stderr");
    }
    report::pass_on(chunk, patience);
}
