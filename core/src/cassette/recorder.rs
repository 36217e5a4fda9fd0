//! Cassettes as they are written.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value, json};

use super::{FORMAT, MAX_BYTES, MAX_LINE, MAX_LINES, Redaction};
use crate::error::{Error, Result};

/// Writes a cassette, line by line, so that a program that ends at once leaves a whole one.
pub struct Recorder(Mutex<State>);

struct State {
    out: Box<dyn Write + Send>,
    redaction: Redaction,
    started: Instant,
    lines: usize,
    bytes: usize,
    /// Nothing more is written.
    is_over: bool,
}

impl Recorder {
    /// Writes to this file, which is replaced if there is one. `head` describes the connection: `transport`, `target`.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the file cannot be written.
    pub fn create(path: impl AsRef<Path>, head: Map<String, Value>, redaction: Redaction) -> Result<Self> {
        let path = path.as_ref();
        let wrong = |error: std::io::Error| {
            Error::misuse(format!("cassette {:?}: cannot be written: {error}", path.display().to_string()))
        };
        let file = File::create(path).map_err(wrong)?;
        Self::new(file, head, redaction).map_err(wrong)
    }

    /// Writes there, beginning with the first line.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(
        mut out: impl Write + Send + 'static,
        head: Map<String, Value>,
        mut redaction: Redaction,
    ) -> std::io::Result<Self> {
        let at = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let mut first = Map::new();
        first.insert("cassette".into(), FORMAT.into());
        first.insert("by".into(), format!("tricorn {}", crate::VERSION).into());
        first.insert("at".into(), at.into());
        for (name, value) in head {
            let value = match value {
                Value::String(text) => redaction.text(&text).into(),
                other => other,
            };
            first.insert(name, value);
        }
        let line = format!("{}\n", Value::Object(first));
        out.write_all(line.as_bytes())?;
        let (out, started) = (Box::new(out), Instant::now());
        Ok(Self(Mutex::new(State { out, redaction, started, lines: 1, bytes: line.len(), is_over: false })))
    }

    /// Writes a message, or what stands in the place of one. Beyond the bounds of a cassette nothing is written any more.
    ///
    /// # Errors
    /// [`Transport`](crate::ErrorKind::Transport), once, when the cassette ends here: the file cannot be written, or a bound
    /// is reached.
    pub fn message(&self, by_client: bool, on: &str, frame: &[u8]) -> Result<()> {
        let text = String::from_utf8_lossy(frame);
        self.line(|time, redaction| message_line(time, by_client, on, &text, redaction))
    }

    /// Writes something that happened: `stderr`, `warning`, `http`, `closed`.
    ///
    /// # Errors
    /// As [`message`](Self::message).
    pub fn event(&self, name: &str, text: &str) -> Result<()> {
        self.line(|time, redaction| event_line(time, name, text, redaction))
    }

    /// Looks for this secret, too, from now on.
    pub fn learn(&self, secret: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).redaction.learn(secret);
    }

    fn line(&self, line: impl FnOnce(Duration, &mut Redaction) -> String) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return Ok(());
        }
        let time = state.started.elapsed();
        let mut line = line(time, &mut state.redaction);
        line.push('\n');
        let ends = |why: String| Err(Error::new(crate::ErrorKind::Transport, format!("the cassette ends here: {why}")));
        if line.len() > MAX_LINE || state.bytes + line.len() > MAX_BYTES || state.lines >= MAX_LINES {
            state.is_over = true;
            let (line, all) = (MAX_LINE >> 20, MAX_BYTES >> 20);
            return ends(format!("it holds {MAX_LINES} lines, {all} MiB, and {line} MiB on a line at most"));
        }
        state.lines += 1;
        state.bytes += line.len();
        if let Err(error) = state.out.write_all(line.as_bytes()) {
            state.is_over = true;
            return ends(format!("it cannot be written: {error}"));
        }
        Ok(())
    }
}

/// Milliseconds, of which three digits behind the point are written.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// A line for a message that passed this time after the beginning, without the break at its end.
#[must_use]
pub fn message_line(time: Duration, by_client: bool, on: &str, text: &str, redaction: &mut Redaction) -> String {
    let from = if by_client { "client" } else { "server" };
    let what = match redaction.json(text) {
        Some(message) => format!("\"msg\":{message}"),
        None => format!("\"text\":{}", json!(redaction.text(text))),
    };
    let time = millis(time);
    format!("{{\"t\":{time},\"from\":\"{from}\",\"on\":{},{what}}}", json!(on))
}

/// A line for something that happened this time after the beginning, without the break at its end.
#[must_use]
pub fn event_line(time: Duration, name: &str, text: &str, redaction: &mut Redaction) -> String {
    json!({"t": millis(time), "event": name, "text": redaction.text(text)}).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::Cassette;
    use super::*;

    #[test]
    fn a_cassette_is_read_as_it_was_written_without_the_token() {
        let folder = std::env::temp_dir().join(format!("tricorn-recorder-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("a.jsonl");
        let redaction = Redaction::new(["Bearer hush-hush-hush".to_owned()]);
        let head = Map::from_iter([("target".to_owned(), Value::from("https://h/?x=hush-hush-hush"))]);
        let recorder = Recorder::create(&file, head, redaction).expect("a file");
        recorder
            .message(true, "stdio", br#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":"hush-hush-hush"}}"#)
            .expect("room");
        recorder.message(false, "stdio", b"no JSON: hush-hush-hush").expect("room");
        recorder.event("stderr", "hush-hush-hush").expect("room");
        let text = std::fs::read_to_string(&file).expect("a text");
        assert!(!text.contains("hush"), "{text}");
        assert_eq!(text.matches("<secret-1>").count(), 4, "{text}");
        let cassette = Cassette::read(&file).expect("a cassette");
        assert_eq!(cassette.entries().len(), 3);
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
