//! Values of one process: an engine object is useless, and dangerous to drop, in a child made by `fork()`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use tricorn::Error;

use crate::error;

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Called by Python in every child process right after `fork()`.
#[pyfunction]
#[pyo3(name = "_forked")]
pub(crate) fn forked() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Number of forks between this process and the first one.
#[pyfunction]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// A value of the engine that only the process that made it may touch; a forked child may put its own in the place.
pub(crate) struct Local<T> {
    value: Option<T>,
    born: u32,
    /// The one of a child, which may have children of its own.
    renewed: OnceLock<Box<Self>>,
}

impl<T> Local<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), born: forks(), renewed: OnceLock::new() }
    }

    /// Puts the value of this process in the place of its parent's.
    pub(crate) fn renew(&self, value: T) {
        let mut last = self;
        while let Some(next) = last.renewed.get() {
            last = next;
        }
        // Who was faster has made one, too, and is as good.
        let _ = last.renewed.set(Box::new(Self::new(value)));
    }

    /// The value, or a clear error in a forked child, where waiting for the engine would last for ever.
    pub(crate) fn get(&self) -> PyResult<&T> {
        let mut local = self;
        while local.born != forks() {
            local = match local.renewed.get() {
                Some(next) => next,
                None => return Err(belongs_to_parent()),
            };
        }
        local.value.as_ref().ok_or_else(belongs_to_parent)
    }
}

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        if self.born != forks() {
            // Dropping could wait for threads that exist only in the parent.
            std::mem::forget(self.value.take());
        }
    }
}

fn belongs_to_parent() -> PyErr {
    error::raise(&Error::misuse(
        "this object belongs to the parent process: the engine's threads did not survive fork(); \
         create a new client in the child process",
    ))
}

/// Runs `body`; a panic in it becomes an ordinary Python exception instead of a `BaseException`.
pub(crate) fn guarded<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        Err(error::raise(&Error::misuse(format!("the engine panicked: {text}"))))
    })
}
