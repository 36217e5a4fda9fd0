//! The command in a pseudo-terminal: forms, progress, Ctrl-C, colours.
#![cfg(unix)]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::http::Http;
use crate::place::{command, everything};

/// The longest that anything takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal in which the command runs.
pub(crate) struct Terminal {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    /// Read, and not on the screen yet.
    ahead: VecDeque<u8>,
    output: Receiver<Vec<u8>>,
    input: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
}

fn cells(count: u16) -> std::num::NonZero<u16> {
    std::num::NonZero::new(count).unwrap()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

impl Terminal {
    /// Starts it with the fixture server.
    fn start(columns: u16, env: &[(&str, &str)], args: &[&str]) -> Self {
        let everything = everything();
        Self::start_with(columns, env, &[args, &["--", &everything, "--stdio"]].concat())
    }

    pub(crate) fn start_with(columns: u16, env: &[(&str, &str)], args: &[&str]) -> Self {
        let size = PtySize { rows: 24, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let words = command();
        let mut program = CommandBuilder::new(&words[0]);
        program.args(&words[1..]);
        program.args(args);
        program.env("TERM", "xterm-256color");
        program.env_remove("NO_COLOR");
        program.env_remove("KITTY_WINDOW_ID");
        program.env_remove("TERM_PROGRAM");
        env.iter().for_each(|(name, value)| program.env(name, value));
        let child = pair.slave.spawn_command(program).unwrap();
        drop(pair.slave);
        let (mut reader, input) = (pair.master.try_clone_reader().unwrap(), pair.master.take_writer().unwrap());
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    break;
                }
            }
        });
        let screen = vt100::Parser::new(cells(24), cells(columns), 200);
        Self { screen, bytes: Vec::new(), ahead: VecDeque::new(), output, input, child, master: pair.master }
    }

    pub(crate) fn text(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until this is on the screen. Goes byte by byte: nothing passes unseen, and the rest stays for later.
    pub(crate) fn until(&mut self, part: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.text().contains(part) {
            if let Some(byte) = self.ahead.pop_front() {
                self.take(&[byte]);
                continue;
            }
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.ahead.extend(bytes),
                Err(why) => panic!("no {part:?} ({why}):\n{}", self.text()),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Waits until these bytes have come, which are not to be seen.
    fn until_sent(&mut self, sequence: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.bytes.ends_with(sequence.as_bytes()) {
            if let Some(byte) = self.ahead.pop_front() {
                self.take(&[byte]);
                continue;
            }
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.ahead.extend(bytes),
                Err(why) => panic!("no {sequence:?} ({why}):\n{}", self.text()),
            }
        }
    }

    fn has_sent(&self, sequence: &str) -> bool {
        String::from_utf8_lossy(&self.bytes).contains(sequence)
    }

    /// The modes of the terminal, where the system tells.
    fn modes(&self) -> Option<String> {
        self.master.get_termios().map(|modes| format!("{modes:?}"))
    }

    /// Waits for its end, and gives its status.
    pub(crate) fn end(&mut self) -> u32 {
        let ahead: Vec<u8> = self.ahead.drain(..).collect();
        self.take(&ahead);
        let end = Instant::now() + PATIENCE;
        loop {
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap().exit_code(),
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill();
                    panic!("it does not end:\n{}", self.text());
                }
            }
        }
    }

    fn has_colours(&self) -> bool {
        let colour = regex::Regex::new("\x1b\\[[0-9;]*m").unwrap();
        colour.is_match(&String::from_utf8_lossy(&self.bytes))
    }
}

#[test]
fn a_form_is_filled_in_and_each_field_is_checked() {
    for columns in [40, 80, 200] {
        let mut terminal = Terminal::start(columns, &[], &["call", "test_elicitation", "message=Who are you?"]);
        terminal.until("Who are you?");
        terminal.until("Decline");
        terminal.types("\r");
        terminal.until("username ›");
        terminal.types("ada\r");
        terminal.until("email (email) ›");
        terminal.types("nobody\r");
        terminal.until("expected email");
        terminal.types("\u{15}ada@example.com\r");
        assert_eq!(terminal.end(), 0);
        let text = terminal.text().replace('\n', "");
        assert!(text.contains("action=accept"), "{text}");
        assert!(terminal.has_colours());
    }
}

#[test]
fn a_form_and_progress_come_through_a_bridge() {
    let http = Http::start(&[]);
    let behind: Vec<_> = command().into_iter().chain(["run".to_owned(), http.url.clone()]).collect();
    let behind: Vec<_> = behind.iter().map(String::as_str).collect();
    let mut terminal = Terminal::start_with(80, &[], &[&["call", "two_questions", "--"], &behind[..]].concat());
    for (field, answer) in [("left", "one"), ("right", "two")] {
        terminal.until("Decline");
        terminal.types("\r");
        terminal.until(&format!("{field} ›"));
        terminal.types(&format!("{answer}\r"));
        terminal.until(&format!("{field} · {answer}"));
        if field == "left" {
            // The next question has a screen of its own.
            terminal.screen = vt100::Parser::new(cells(24), cells(80), 200);
        }
    }
    assert_eq!(terminal.end(), 0);
    assert!(terminal.text().contains("one two"), "{}", terminal.text());
    let mut terminal = Terminal::start_with(80, &[], &[&["call", "slow", "ms=4000", "--"], &behind[..]].concat());
    terminal.until("0/4000 started");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn a_form_can_be_declined() {
    let mut terminal = Terminal::start(80, &[("NO_COLOR", "1")], &["call", "test_elicitation", "message=Who are you?"]);
    terminal.until("Decline");
    // Down.
    terminal.types("\u{1b}[B\r");
    assert_eq!(terminal.end(), 0);
    assert!(terminal.text().contains("action=decline"), "{}", terminal.text());
    assert!(!terminal.has_colours(), "{:?}", String::from_utf8_lossy(&terminal.bytes));
}

#[test]
fn ctrl_c_in_a_form_cancels_the_call_and_leaves_the_terminal_as_it_was() {
    let mut terminal = Terminal::start(80, &[], &["call", "test_elicitation", "message=Who are you?"]);
    terminal.until("Decline");
    terminal.types("\r");
    terminal.until("username");
    terminal.types("\u{3}");
    assert_eq!(terminal.end(), 130);
    assert!(terminal.text().contains("cancelled"), "{}", terminal.text());
}

#[test]
fn progress_is_a_bar_that_goes_away() {
    let mut terminal = Terminal::start(80, &[], &["call", "slow", "ms=1000"]);
    terminal.until("0/1000 started");
    assert_eq!(terminal.end(), 0);
    assert_eq!(terminal.text().trim(), "slept 1000 ms");
    assert!(String::from_utf8_lossy(&terminal.bytes).contains("1000/1000 done"));
}

#[test]
fn a_narrower_window_keeps_the_bar_on_one_line() {
    let mut terminal = Terminal::start(80, &[], &["call", "slow", "ms=1500"]);
    terminal.until("0/1500 started");
    let size = PtySize { rows: 24, cols: 40, pixel_width: 0, pixel_height: 0 };
    terminal.master.resize(size).unwrap();
    terminal.screen.screen_mut().set_size(cells(24), cells(40));
    assert_eq!(terminal.end(), 0);
    assert!(terminal.text().contains("slept 1500 ms"), "{}", terminal.text());
}

#[test]
fn ctrl_c_cancels_the_call() {
    let mut terminal = Terminal::start(80, &[("NO_COLOR", "1")], &["call", "slow", "ms=60000"]);
    terminal.until("0/60000 started");
    assert!(!terminal.has_colours(), "{:?}", String::from_utf8_lossy(&terminal.bytes));
    terminal.types("\u{3}");
    assert_eq!(terminal.end(), 130);
    assert!(terminal.text().contains("cancelled (Ctrl-C again quits at once)"), "{}", terminal.text());
}

#[test]
fn lists_are_as_wide_as_the_terminal() {
    for columns in [40, 80, 200] {
        let mut terminal = Terminal::start(columns, &[("NO_COLOR", "1")], &["call", "structured", "--help"]);
        assert_eq!(terminal.end(), 0);
        assert!(terminal.text().contains("structured"), "{}", terminal.text());
        assert!(!String::from_utf8_lossy(&terminal.bytes).contains('\u{1b}'));
    }
}

#[test]
fn control_characters_of_a_server_do_not_reach_the_terminal() {
    let mut terminal = Terminal::start(80, &[("NO_COLOR", "1")], &["call", "echo", "text:=\"a\\u001b[31mb\""]);
    assert_eq!(terminal.end(), 0);
    assert!(terminal.text().contains("a\\u{1b}[31mb"), "{}", terminal.text());
}

#[test]
fn images_are_shown_where_the_terminal_can() {
    for (name, value, sequence) in
        [("KITTY_WINDOW_ID", "1", "\u{1b}_Ga=T,f=100,"), ("TERM_PROGRAM", "iTerm.app", "\u{1b}]1337;File=inline=1;")]
    {
        let mut terminal = Terminal::start(80, &[(name, value), ("TMUX", "")], &["call", "test_image_content"]);
        assert_eq!(terminal.end(), 0);
        assert!(String::from_utf8_lossy(&terminal.bytes).contains(sequence), "{name}");
        assert!(terminal.text().contains("image/png (70 bytes): "), "{}", terminal.text());
    }
    for env in [("TMUX", "1"), ("TERM", "dumb"), ("TERM", "screen-256color")] {
        let mut terminal = Terminal::start(80, &[env], &["call", "test_image_content"]);
        assert_eq!(terminal.end(), 0);
        assert!(!terminal.has_sent("1337") && !terminal.has_sent(QUESTION) && !terminal.has_sent("\u{1b}P"), "{env:?}");
    }
}

/// Asks a terminal for its attributes.
const QUESTION: &str = "\u{1b}[c";

#[test]
fn a_terminal_is_asked_for_sixel_and_left_as_it_was() {
    let sixel = regex::Regex::new("\x1bP[0-9;]*q\"1;1;1;1[^\x1b]*\x1b\\\\").unwrap();
    for (answer, shows) in [("\u{1b}[?62;4c", true), ("\u{1b}[?62;22c", false)] {
        let mut terminal = Terminal::start(80, &[("TMUX", "")], &["call", "test_image_content"]);
        let before = terminal.modes();
        terminal.until_sent(QUESTION);
        terminal.types(answer);
        terminal.until("image/png (70 bytes): ");
        let after = terminal.modes();
        assert!(after.is_none() || after == before, "{before:?} {after:?}");
        assert_eq!(terminal.end(), 0);
        assert_eq!(sixel.is_match(&String::from_utf8_lossy(&terminal.bytes)), shows);
        // It is not to be seen.
        assert!(!terminal.has_sent("62;"), "{:?}", String::from_utf8_lossy(&terminal.bytes));
    }
}

#[test]
fn a_terminal_that_does_not_answer_is_not_waited_for_long() {
    let mut terminal = Terminal::start(80, &[("TMUX", "")], &["call", "test_image_content"]);
    let before = terminal.modes();
    terminal.until_sent(QUESTION);
    let asked = Instant::now();
    terminal.until("image/png (70 bytes): ");
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    let after = terminal.modes();
    assert!(after.is_none() || after == before, "{before:?} {after:?}");
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.has_sent("\u{1b}P"));
}

#[test]
fn a_terminal_is_asked_only_if_there_is_something_to_show() {
    let mut terminal = Terminal::start(80, &[("TMUX", "")], &["call", "echo", "text=hi"]);
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.has_sent(QUESTION));
    // What was typed already is for the next reader, and the terminal is not asked.
    let mut terminal = Terminal::start(80, &[("TMUX", "")], &["call", "test_image_content"]);
    terminal.types("ls\r");
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.has_sent(QUESTION) && terminal.text().contains("image/png (70 bytes): "));
}

#[test]
fn the_second_ctrl_c_quits_at_once() {
    // A program that does not end by itself when it is let go.
    let script = format!("trap '' INT TERM; {} --stdio; sleep 600", everything());
    let args = ["call", "slow", "ms=60000", "--", "sh", "-c", &script];
    let mut terminal = Terminal::start_with(80, &[], &args);
    terminal.until("0/60000 started");
    terminal.types("\u{3}");
    terminal.until("cancelled");
    terminal.types("\u{3}");
    assert_eq!(terminal.end(), 130);
}
