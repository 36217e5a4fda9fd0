//! What the engine says on standard error, which may be closed, and what it does with user code that panics.

use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Writes a line to standard error, if there is one.
pub(crate) fn say(message: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "tricorn: {message}");
}

/// Runs user code that nobody hears the panic of: it is said, and whoever called goes on.
pub(crate) fn guarded<T>(what: &str, f: impl FnOnce() -> T) -> Option<T> {
    let outcome = catch_unwind(AssertUnwindSafe(f));
    if outcome.is_err() {
        say(format_args!("{what} panicked"));
    }
    outcome.ok()
}
