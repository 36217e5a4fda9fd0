//! Server-sent events, read as the WHATWG text says.

use std::collections::VecDeque;

/// One event, as far as anybody here looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The `event` field; empty means `message`.
    pub name: String,
    /// The `data` lines joined by newlines.
    pub data: String,
    /// The `id` field, when the event had one.
    pub id: Option<String>,
    /// The `retry` field in milliseconds, when the event had one.
    pub retry: Option<u64>,
}

/// An incremental parser: bytes in, events out.
#[derive(Debug, Default)]
pub struct Parser {
    pending: Vec<u8>,
    current: Event,
    started: bool,
    data_lines: usize,
    /// Comment lines seen so far.
    pub comments: usize,
    /// Events not taken yet.
    pub events: VecDeque<Event>,
}

impl Parser {
    /// Take in more bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        while let Some(place) = self.pending.iter().position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = self.pending.drain(..=place).collect();
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            self.line(&String::from_utf8_lossy(&line));
        }
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            if self.started {
                self.events.push_back(std::mem::take(&mut self.current));
            }
            self.started = false;
            self.data_lines = 0;
            return;
        }
        if line.starts_with(':') {
            self.comments += 1;
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        self.started = true;
        match field {
            "event" => value.clone_into(&mut self.current.name),
            "data" => {
                if self.data_lines > 0 {
                    self.current.data.push('\n');
                }
                self.data_lines += 1;
                self.current.data.push_str(value);
            }
            "id" => self.current.id = Some(value.to_owned()),
            "retry" => self.current.retry = value.parse().ok(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_split_anywhere() {
        let text = b": hello\r\nid: 1\ndata:\n\nevent: message\ndata: {\"a\":\ndata: 1}\nretry: 50\n\n\n";
        let mut parser = Parser::default();
        for byte in text {
            parser.feed(&[*byte]);
        }
        assert_eq!(parser.comments, 1);
        let priming = parser.events.pop_front().expect("priming event");
        assert_eq!((priming.id.as_deref(), priming.data.as_str()), (Some("1"), ""));
        let event = parser.events.pop_front().expect("event");
        assert_eq!((event.data.as_str(), event.retry), ("{\"a\":\n1}", Some(50)));
        assert!(parser.events.is_empty());
    }
}
