//! From lines of standard output and bodies of HTTP to messages.

use serde_json::Value;

use super::catalogue::Area;
use super::process::Line;
use super::report::Report;

/// Lines and bytes that may be one message together.
const MOST_LINES: usize = 2000;
const MOST_BYTES: usize = 1 << 20;
/// Times that lines are read together.
const MOST_TRIES: usize = 200;

/// True for what may be a message, or several.
fn is_message(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.contains_key("jsonrpc")
                || members.contains_key("method")
                || (members.contains_key("id") && (members.contains_key("result") || members.contains_key("error")))
        }
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| item.is_object() && is_message(item)),
        _ => false,
    }
}

/// Text of bytes, and the finding if they are not UTF-8.
pub(super) fn text(report: &Report, bytes: &[u8]) -> String {
    let utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let bare = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bare) {
        Ok(text) if bare.len() == bytes.len() => return text.to_owned(),
        Ok(_) => report.find("not-utf8", "a byte order mark: ef bb bf"),
        Err(_) if utf16 => report.find("not-utf8", "UTF-16: ff fe"),
        Err(error) => {
            let at = error.valid_up_to();
            let bad: Vec<_> = bare[at..].iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            let from = at.saturating_sub(20);
            let before = String::from_utf8_lossy(&bare[from..at]);
            report.find("not-utf8", format!("{} after {before:?}", bad.join(" ")));
        }
    }
    String::from_utf8_lossy(bare).into_owned()
}

/// Puts lines together.
#[derive(Default)]
pub(super) struct Lines {
    /// Lines that may be the beginning of a message.
    open: Vec<String>,
    bytes: usize,
    tries: usize,
}

impl Lines {
    /// The message that a line is, or ends.
    pub(super) fn take(&mut self, report: &Report, line: Line) -> Option<Value> {
        let line = match line {
            Line::Whole(line) => text(report, &line),
            Line::Cut(line) => {
                let begin = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
                let evidence = format!("a line of more than {} bytes: {begin}", line.len());
                // One that may be a message is too much for doctor, and no fault.
                if begin.trim_start().starts_with(['{', '[']) {
                    report.skip(Area::Process, evidence);
                } else {
                    report.find("noise", evidence);
                }
                return None;
            }
        };
        if line.trim().is_empty() {
            return None;
        }
        if let Ok(value) = serde_json::from_str::<Value>(&line)
            && is_message(&value)
        {
            self.give_up(report);
            return Some(value);
        }
        let begins = line.starts_with(['{', '[']);
        if self.open.is_empty() && !begins {
            report.find("noise", line);
            return None;
        }
        let ends = line.starts_with(['}', ']']);
        self.bytes += line.len();
        self.open.push(line);
        if self.open.len() > 1 && ends {
            self.tries += 1;
            let whole = self.open.join("\n");
            if let Ok(value) = serde_json::from_str::<Value>(&whole)
                && is_message(&value)
            {
                report.find("multi-line", format!("{} … over {} lines", self.open[0], self.open.len()));
                *self = Self::default();
                return Some(value);
            }
        }
        if self.open.len() >= MOST_LINES || self.bytes >= MOST_BYTES || self.tries >= MOST_TRIES {
            self.give_up(report);
        }
        None
    }

    /// Gives up the open text, which is no message.
    pub(super) fn give_up(&mut self, report: &Report) {
        if let Some(first) = std::mem::take(self).open.into_iter().next() {
            report.find("noise", first);
        }
    }
}

/// Events of a stream, put together from pieces.
#[derive(Default)]
pub(super) struct Events {
    rest: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
}

/// The longest event.
const LONGEST: usize = 8 << 20;

impl Events {
    /// Takes a piece of the body, and gives the data of the events that it ends. `None`: an event is too long.
    pub(super) fn take(&mut self, piece: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        self.rest.extend_from_slice(piece);
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                if std::mem::take(&mut self.has_data) {
                    found.push(std::mem::take(&mut self.data));
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            }
        }
        (self.rest.len() + self.data.len() <= LONGEST).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together() {
        let mut events = Events::default();
        assert_eq!(events.take(b"event: message\r\ndata: {\"a\":").unwrap_or_default(), Vec::<Vec<u8>>::new());
        assert_eq!(
            events.take(b"1}\r\n\r\n: still here\n\ndata:x\ndata: y\n\n").unwrap_or_default(),
            [&b"{\"a\":1}"[..], b"x\ny"]
        );
    }

    #[test]
    fn lines_are_messages_or_noise() {
        let report = Report::default();
        let mut lines = Lines::default();
        let mut take = |text: &str| lines.take(&report, Line::Whole(text.as_bytes().to_vec()));
        for line in ["{", "  \"jsonrpc\": \"2.0\",", "  \"result\": {", "    \"a\": []", "  },", "  \"id\": 1"] {
            assert_eq!(take(line), None);
        }
        assert!(take("}").is_some_and(|message| message["id"] == 1));
        assert!(report.has("multi-line") && !report.has("noise"));
        assert_eq!(take("[info] started"), None);
        assert!(take(r#"{"jsonrpc":"2.0","method":"x"}"#).is_some());
        assert!(report.has("noise"));
    }
}
