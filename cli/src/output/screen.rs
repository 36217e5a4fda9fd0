//! The terminal, or what stands in its place.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::builder::StyledStr;
use indicatif::ProgressBar;

use super::content::pretty;
use super::text::{Style, escaped, one_line, shown};

/// Lines that are kept while a form is open.
const HELD: usize = 1000;
/// Columns where nothing says how many there are.
const COLUMNS: usize = 80;

/// Standard output and standard error, with their state. A clone is the same.
#[derive(Clone)]
pub(crate) struct Screen(Arc<Shared>);

struct Shared {
    /// Standard output, standard error and standard input are terminals.
    out: bool,
    err: bool,
    input: bool,
    colours: bool,
    state: Mutex<State>,
    #[cfg(unix)]
    modes: Option<rustix::termios::Termios>,
}

#[derive(Default)]
struct State {
    bar: Option<ProgressBar>,
    /// A form is open: lines wait.
    held: Option<Vec<String>>,
    dropped: usize,
    /// The answer could not be written.
    unwritten: Option<std::io::Error>,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let (out, err) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let input = std::io::stdin().is_terminal();
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let colours = named("NO_COLOR").is_none() && named("TERM").is_none_or(|term| term != "dumb");
        #[cfg(unix)]
        let modes = if input { rustix::termios::tcgetattr(std::io::stdin()).ok() } else { None };
        Self(Arc::new(Shared {
            out,
            err,
            input,
            colours,
            state: Mutex::default(),
            #[cfg(unix)]
            modes,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.0.out
    }

    /// True if somebody can be asked.
    pub(crate) fn can_ask(&self) -> bool {
        self.0.input && self.0.err
    }

    /// True if what moves may be shown on standard error.
    pub(crate) fn can_move(&self) -> bool {
        self.0.err
    }

    /// The style of standard output.
    pub(crate) fn style(&self) -> Style {
        Style { colours: self.0.out && self.0.colours }
    }

    /// The style of standard error.
    pub(crate) fn error_style(&self) -> Style {
        Style { colours: self.0.err && self.0.colours }
    }

    /// Columns of the terminal, else what `COLUMNS` says, else 80.
    pub(crate) fn columns(&self) -> usize {
        let said = || std::env::var("COLUMNS").ok()?.parse().ok();
        let found = if self.0.out { console::Term::stdout().size_checked() } else { None };
        let columns = found.map(|(_, columns)| usize::from(columns)).or_else(said).unwrap_or(COLUMNS);
        columns.clamp(20, 1000)
    }

    /// Text of a server as standard output takes it: harmless on a terminal, else as it is.
    pub(crate) fn for_output(&self, text: &str) -> String {
        if self.0.out { shown(text).into_owned() } else { text.to_owned() }
    }

    /// Prints a part of the answer, and a line break if there is none at its end. A reader that has gone is no error.
    pub(crate) fn print(&self, text: &str) {
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.without_bar(|| self.write(&[text.as_bytes(), end.as_bytes()]));
    }

    /// Prints a value. On a terminal, letters that it would obey are escapes of JSON.
    pub(crate) fn json(&self, value: &impl serde::Serialize) {
        let text = pretty(value);
        self.print(&if self.0.out { escaped(&text) } else { text });
    }

    /// Writes the answer's own bytes.
    pub(crate) fn bytes(&self, bytes: &[u8]) {
        self.write(&[bytes]);
    }

    fn write(&self, parts: &[&[u8]]) {
        let mut out = std::io::stdout().lock();
        let wrote = parts.iter().try_for_each(|part| out.write_all(part)).and_then(|()| out.flush());
        drop(out);
        // A reader that has gone has read enough.
        if let Err(error) = wrote
            && error.kind() != std::io::ErrorKind::BrokenPipe
        {
            self.state().unwritten.get_or_insert(error);
        }
    }

    /// The reason why the answer, or a part of it, could not be written.
    pub(crate) fn unwritten(&self) -> Option<std::io::Error> {
        self.state().unwritten.take()
    }

    /// Prints what clap has made.
    pub(crate) fn styled(&self, text: &StyledStr) {
        match self.style().colours {
            true => self.print(&text.ansi().to_string()),
            false => self.print(&text.to_string()),
        }
    }

    /// The same on standard error.
    pub(crate) fn styled_error(&self, text: &StyledStr) {
        match self.error_style().colours {
            true => self.line(text.ansi().to_string().trim_end()),
            false => self.line(text.to_string().trim_end()),
        }
    }

    /// Writes a line on standard error, above a progress bar, or after the form that is open.
    pub(crate) fn line(&self, text: &str) {
        let mut state = self.state();
        if let Some(held) = &mut state.held {
            if held.len() < HELD {
                held.push(text.to_owned());
            } else {
                state.dropped += 1;
            }
            return;
        }
        drop(state);
        self.without_bar(|| write_line(text));
    }

    /// Says what went wrong, in one line.
    pub(crate) fn error(&self, message: &str) {
        if !message.is_empty() {
            self.line(&format!("{} {}", self.error_style().error("error:"), one_line(message)));
        }
    }

    /// Says what is odd, in one line.
    pub(crate) fn warn(&self, message: &str) {
        self.line(&format!("{} {}", self.error_style().warning("warning:"), one_line(message)));
    }

    /// Puts a progress bar under what is written from now on; `None` takes it away.
    pub(super) fn set_bar(&self, bar: Option<ProgressBar>) {
        let before = std::mem::replace(&mut self.state().bar, bar);
        if let Some(before) = before {
            before.finish_and_clear();
        }
    }

    /// Takes a progress bar away.
    pub(crate) fn end_progress(&self) {
        self.set_bar(None);
    }

    /// Puts this bar there if it is not there already.
    pub(super) fn set_bar_once(&self, bar: &ProgressBar) {
        let mut state = self.state();
        if state.bar.is_none() && state.held.is_none() {
            state.bar = Some(bar.clone());
        }
    }

    /// True while a form is open.
    pub(super) fn is_held(&self) -> bool {
        self.state().held.is_some()
    }

    fn without_bar(&self, write: impl FnOnce()) {
        let bar = self.state().bar.clone();
        match bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Lets lines wait until what is returned is dropped: a form is open.
    pub(crate) fn hold(&self) -> Held {
        self.set_bar(None);
        let mut state = self.state();
        state.held.get_or_insert_with(Vec::new);
        Held(self.clone())
    }

    /// Gives the terminal back as it was.
    pub(crate) fn finish(&self) {
        self.set_bar(None);
        if self.is_held() {
            // The form's last line has no end, and a choice hides the cursor.
            write_line("");
            let _ = console::Term::stderr().show_cursor();
        }
        drop(Held(self.clone()));
        #[cfg(unix)]
        if let Some(modes) = &self.0.modes
            && is_in_foreground()
        {
            let _ = rustix::termios::tcsetattr(std::io::stdin(), rustix::termios::OptionalActions::Drain, modes);
        }
    }
}

/// Returns true if the terminal is this process's: one in the background is stopped when it sets modes.
#[cfg(unix)]
fn is_in_foreground() -> bool {
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}

fn write_line(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.write_all(b"\n"));
}

/// Lines wait while it lives.
pub(crate) struct Held(Screen);

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let (held, dropped) = (state.held.take(), std::mem::take(&mut state.dropped));
        drop(state);
        held.iter().flatten().for_each(|line| write_line(line));
        if dropped > 0 {
            write_line(&format!("({dropped} more lines)"));
        }
    }
}
