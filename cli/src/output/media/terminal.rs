//! The terminal: the pictures that it shows, and its width in pixels.

#[cfg(unix)]
use std::fs::File;
#[cfg(unix)]
use std::io::{self, Read as _, Write as _};
#[cfg(unix)]
use std::sync::OnceLock;
#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::termios::{self, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios};

/// The longest wait for an answer. Nearly every terminal answers, and one far away takes a while: an answer that comes
/// later would reach the next reader.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest answer.
#[cfg(unix)]
const MAX_ANSWER: usize = 256;
/// Asks for the device's attributes.
#[cfg(unix)]
const QUESTION: &[u8] = b"\x1b[c";
/// Pixels of a column where the terminal does not tell.
const COLUMN: usize = 8;
/// Bounds of the width in pixels.
const WIDTHS: (usize, usize) = (64, 4096);

/// Sequences for pictures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Protocol {
    Kitty,
    Iterm,
    Sixel,
}

/// Knowledge that the environment gives.
#[derive(Debug, PartialEq)]
pub(super) enum Hint {
    Shows(Protocol),
    Nothing,
    /// The terminal knows.
    Ask,
}

/// Reads the environment.
pub(super) fn hint(named: impl Fn(&str) -> String) -> Hint {
    let (term, program) = (named("TERM"), named("TERM_PROGRAM"));
    let begins = |names: &[&str]| names.iter().any(|name| term.starts_with(name));
    // Within these the sequences go astray.
    if !named("TMUX").is_empty() || begins(&["screen", "tmux"]) {
        return Hint::Nothing;
    }
    if !named("KITTY_WINDOW_ID").is_empty() || term == "xterm-kitty" || program == "ghostty" {
        return Hint::Shows(Protocol::Kitty);
    }
    match program.as_str() {
        "iTerm.app" | "WezTerm" => return Hint::Shows(Protocol::Iterm),
        "contour" | "mintty" | "mlterm" => return Hint::Shows(Protocol::Sixel),
        _ => {}
    }
    if begins(&["foot", "mlterm", "contour"]) {
        return Hint::Shows(Protocol::Sixel);
    }
    if term.is_empty() || begins(&["dumb"]) { Hint::Nothing } else { Hint::Ask }
}

/// The width in pixels.
pub(super) fn width(columns: usize) -> usize {
    #[cfg(unix)]
    let told = termios::tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_xpixel));
    #[cfg(not(unix))]
    let told = 0;
    let width = if told > 0 { told } else { columns * COLUMN };
    width.clamp(WIDTHS.0, WIDTHS.1)
}

/// Asks the terminal once for sixel, and waits for a bounded time.
#[cfg(unix)]
pub(super) fn answers_sixel() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| ask().unwrap_or_default())
}

#[cfg(not(unix))]
pub(super) fn answers_sixel() -> bool {
    false
}

#[cfg(unix)]
fn ask() -> Option<bool> {
    // Fails for another terminal than the one that this process belongs to. In the background, a change of its modes
    // would stop the process.
    if termios::tcgetpgrp(io::stdout()).ok()? != rustix::process::getpgrp() {
        return None;
    }
    let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
    let _modes = Modes::change(&terminal)?;
    // Letters that somebody has typed already are for the next reader, and the answer comes after them.
    if rustix::io::ioctl_fionread(&terminal).ok()? > 0 {
        return None;
    }
    (&terminal).write_all(QUESTION).ok()?;
    let (begun, mut read) = (Instant::now(), Vec::new());
    while begun.elapsed() < PATIENCE && read.len() < MAX_ANSWER {
        // One byte at a time: the rest is for the next reader.
        let mut byte = [0];
        match (&terminal).read(&mut byte) {
            Ok(count) => read.extend_from_slice(&byte[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
        if let Some(answer) = has_sixel(&read) {
            return Some(answer);
        }
    }
    // Half an answer is for nobody.
    let _ = termios::tcflush(&terminal, QueueSelector::IFlush);
    None
}

/// True if the answer has the attribute 4. `None`: it is not whole yet.
#[cfg(unix)]
fn has_sixel(read: &[u8]) -> Option<bool> {
    let text = String::from_utf8_lossy(read);
    let attributes = text.split("\u{1b}[?").skip(1).find_map(|part| {
        let (attributes, _) = part.split_once('c')?;
        attributes.chars().all(|letter| letter.is_ascii_digit() || letter == ';').then_some(attributes)
    })?;
    // The first number is the terminal's model.
    Some(attributes.split(';').skip(1).any(|attribute| attribute == "4"))
}

/// Changed modes of a terminal, given back when this is dropped.
#[cfg(unix)]
struct Modes<'a> {
    terminal: &'a File,
    before: Termios,
}

#[cfg(unix)]
impl<'a> Modes<'a> {
    /// Shows no letters, waits for no end of a line, and reads for a tenth of a second. Ctrl-C stays what it is.
    fn change(terminal: &'a File) -> Option<Self> {
        let before = termios::tcgetattr(terminal).ok()?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 1;
        let changed = Self { terminal, before };
        termios::tcsetattr(terminal, OptionalActions::Now, &modes).ok().map(|()| changed)
    }
}

#[cfg(unix)]
impl Drop for Modes<'_> {
    fn drop(&mut self) {
        let _ = termios::tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_tells_of_the_terminal() {
        let of = |values: &[(&str, &str)]| {
            hint(|name| {
                values.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned()).unwrap_or_default()
            })
        };
        assert_eq!(of(&[("TERM", "xterm-kitty")]), Hint::Shows(Protocol::Kitty));
        assert_eq!(of(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")]), Hint::Shows(Protocol::Iterm));
        assert_eq!(of(&[("TERM", "foot-extra")]), Hint::Shows(Protocol::Sixel));
        assert_eq!(of(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "contour")]), Hint::Shows(Protocol::Sixel));
        assert_eq!(of(&[("TERM", "xterm-256color")]), Hint::Ask);
        assert_eq!(of(&[("TERM", "foot"), ("TMUX", "/tmp/tmux-0/default,1,0")]), Hint::Nothing);
        assert_eq!(of(&[("TERM", "screen.xterm-256color"), ("KITTY_WINDOW_ID", "1")]), Hint::Nothing);
        assert_eq!(of(&[("TERM", "tmux-256color")]), Hint::Nothing);
        assert_eq!(of(&[("TERM", "dumb")]), Hint::Nothing);
        assert_eq!(of(&[]), Hint::Nothing);
    }

    #[cfg(unix)]
    #[test]
    fn answers_are_read() {
        for (read, has) in [
            (&b"\x1b[?62;4c"[..], Some(true)),
            (b"\x1b[?63;1;2;4;6;9;15;22c", Some(true)),
            (b"\x1b[?62;22c", Some(false)),
            (b"\x1b[?6c", Some(false)),
            // A model, and an attribute that begins so.
            (b"\x1b[?4;6c", Some(false)),
            (b"\x1b[?62;42;14c", Some(false)),
            // Other letters and other answers before it.
            (b"ab\xffc\x1b[?1;2R\x1b[?62;4c", Some(true)),
            (b"\x1b[?1u\x1b[?62;4c", Some(true)),
            (b"\x1b[?62;4", None),
            (b"\x1b[62;4c", None),
            (b"c", None),
            (b"", None),
        ] {
            assert_eq!(has_sixel(read), has, "{:?}", String::from_utf8_lossy(read));
        }
    }
}
