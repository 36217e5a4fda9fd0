//! Messages of the engine on standard error, which may be closed, full or unread, and its handling of user code that
//! panics.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Writes a line to standard error, if there is one that takes it. A text of several lines is indented from the second on,
/// so that none of a peer's looks as if it were the engine's.
pub(crate) fn say(message: impl fmt::Display) {
    // There is something to say of thousands of seeds.
    #[cfg(all(test, feature = "redis"))]
    if crate::simulated::is_on() {
        return;
    }
    let text = Printable(message.to_string().trim_end()).to_string();
    let mut out = String::with_capacity(text.len());
    for (at, line) in text.split('\n').enumerate() {
        let is_flush = at > 0 && !line.starts_with(' ');
        out.push_str(match (at, is_flush) {
            (0, _) => "",
            (_, true) => "\n    ",
            (_, false) => "\n",
        });
        out.push_str(line);
    }
    line(format_args!("tricorn: {out}"));
}

/// The most characters of a text that are shown.
const SHOWN: usize = 8192;

/// A text that may be a peer's, as a terminal or a log can show it: line breaks and tabs are its only control characters,
/// and it has an end.
pub(crate) struct Printable<'a>(pub(crate) &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        let cut = self.0.char_indices().nth(SHOWN).map_or(self.0.len(), |(at, _)| at);
        for c in self.0[..cut].chars() {
            if c.is_control() && c != '\n' && c != '\t' {
                write!(f, "\\x{:02x}", u32::from(c))?;
            } else {
                f.write_char(c)?;
            }
        }
        if cut < self.0.len() { write!(f, "… ({} bytes)", self.0.len()) } else { Ok(()) }
    }
}

/// As [`say`], without the program's name.
pub(crate) fn line(message: impl fmt::Display) {
    text(&format!("{message}\n"));
}

/// Writes text as it is.
pub(crate) fn text(text: &str) {
    place::write(text.as_bytes());
}

#[cfg(all(any(unix, windows), feature = "runtime"))]
pub(crate) use place::pass_on;

/// Standard error with other programs at its end.
#[cfg(all(any(unix, windows), feature = "runtime"))]
mod place {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    use crate::streams::Out;

    /// Time that the reader of standard error may take, once, before messages are dropped.
    const PATIENCE: Duration = Duration::from_millis(50);

    /// Set while nobody reads it.
    static STUCK: AtomicBool = AtomicBool::new(false);
    /// Number of bytes that were dropped meanwhile.
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    /// A line has lost its end.
    static CUT: AtomicBool = AtomicBool::new(false);

    pub(super) fn write(bytes: &[u8]) {
        pass_on(bytes, PATIENCE);
    }

    /// Writes to standard error, for which nobody ever waits longer than `patience`. The rest is dropped and counted;
    /// when it takes something again it is told how much that was.
    pub(crate) fn pass_on(bytes: &[u8], patience: Duration) {
        let Some(out) = Out::standard_error() else { return };
        if STUCK.load(Ordering::Relaxed) {
            // A few bytes may fit in although nobody reads.
            if !out.is_ready(Some(Duration::ZERO)).unwrap_or(true) || !out.settle(Duration::ZERO) {
                DROPPED.fetch_add(bytes.len(), Ordering::Relaxed);
                return;
            }
            STUCK.store(false, Ordering::Relaxed);
        }
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let cut = if CUT.load(Ordering::Relaxed) { "\n" } else { "" };
            let note = format!("{cut}tricorn: nobody read standard error; {dropped} bytes of it were dropped\n");
            if put(&out, note.as_bytes(), patience) < note.len() {
                DROPPED.fetch_add(dropped + bytes.len(), Ordering::Relaxed);
                return;
            }
            CUT.store(false, Ordering::Relaxed);
        }
        let written = put(&out, bytes, patience);
        if written < bytes.len() {
            DROPPED.fetch_add(bytes.len() - written, Ordering::Relaxed);
            CUT.store(written > 0, Ordering::Relaxed);
        }
    }

    /// Says how much was written; all of it when nobody can ever read it.
    fn put(out: &Out, bytes: &[u8], patience: Duration) -> usize {
        let mut done = 0;
        while done < bytes.len() {
            match out.write_now(&bytes[done..]) {
                Ok(0) => return bytes.len(),
                Ok(count) => done += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if !out.is_ready(Some(patience)).unwrap_or_default() {
                        STUCK.store(true, Ordering::Relaxed);
                        return done;
                    }
                }
                Err(_) => return bytes.len(),
            }
        }
        // The process may end with this, and another thread has it still.
        if !out.settle(patience.max(PATIENCE)) {
            STUCK.store(true, Ordering::Relaxed);
        }
        done
    }
}

#[cfg(not(all(any(unix, windows), feature = "runtime")))]
mod place {
    use std::io::Write;

    pub(super) fn write(bytes: &[u8]) {
        let _ = std::io::stderr().lock().write_all(bytes);
    }
}

/// Runs user code that nobody hears the panic of: it is said, and whoever called goes on.
pub(crate) fn guarded<T>(what: &str, f: impl FnOnce() -> T) -> Option<T> {
    let outcome = catch_unwind(AssertUnwindSafe(f));
    if outcome.is_err() {
        say(format_args!("{what} panicked"));
    }
    outcome.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peers_text_can_be_shown() {
        let shown = |text: &str| Printable(text).to_string();
        assert_eq!(shown("a\u{1b}]0;x\u{7}\r\n\tb\u{9b}é"), "a\\x1b]0;x\\x07\\x0d\n\tb\\x9bé");
        let long = "é".repeat(SHOWN + 1);
        assert!(shown(&long).ends_with("é… (16386 bytes)") && shown(&long).chars().count() < SHOWN + 20);
        assert_eq!(shown(&long[2..]), long[2..]);
    }
}
