//! A stream of bytes as lines.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;

use bytes::{Bytes, BytesMut};
use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use crate::jsonrpc::Id;

/// Splits a stream of bytes into lines, and refuses a line that is too long without losing its place.
pub(crate) struct Lines {
    /// What one read brings; copied on, so that no buffer has to be cleared for every read.
    chunk: Box<[u8]>,
    buffer: BytesMut,
    scanned: usize,
    limit: usize,
    /// Within a line that is too long: its rest is thrown away.
    skipping: bool,
}

/// What [`Lines::next`] found.
pub(crate) enum Line {
    Frame(Bytes),
    /// How a line begins that is too long. The rest of it is skipped.
    TooLong(Bytes),
}

/// How much of a line that is too long is kept.
const BEGINNING: usize = 4096;

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { chunk: vec![0; 64 << 10].into(), buffer: BytesMut::new(), scanned: 0, limit, skipping: false }
    }

    /// Reads once. `Ok(0)` is the end of the stream.
    pub(crate) fn fill(&mut self, mut from: impl Read) -> std::io::Result<usize> {
        loop {
            match from.read(&mut self.chunk) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(n) => {
                    self.buffer.extend_from_slice(&self.chunk[..n]);
                    return Ok(n);
                }
            }
        }
    }

    /// The next whole line, without its line break. Empty lines are skipped.
    pub(crate) fn next(&mut self) -> Option<Line> {
        loop {
            match memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                Some(found) => {
                    let mut line = self.buffer.split_to(self.scanned + found + 1);
                    self.scanned = 0;
                    line.truncate(line.len() - 1);
                    if line.last() == Some(&b'\r') {
                        line.truncate(line.len() - 1);
                    }
                    if std::mem::take(&mut self.skipping) {
                        continue;
                    }
                    if line.len() > self.limit {
                        return Some(Line::TooLong(beginning(&line)));
                    }
                    if !line.is_empty() {
                        return Some(Line::Frame(line.freeze()));
                    }
                }
                None if self.skipping => {
                    self.buffer.clear();
                    self.scanned = 0;
                    return None;
                }
                None if self.buffer.len() > self.limit => {
                    let line = beginning(&self.buffer);
                    self.buffer.clear();
                    self.scanned = 0;
                    self.skipping = true;
                    return Some(Line::TooLong(line));
                }
                None => {
                    self.scanned = self.buffer.len();
                    return None;
                }
            }
        }
    }

    /// What is left at the end of the stream: a last line without line break.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let line = self.buffer.split().freeze();
        self.scanned = 0;
        let line = if line.last() == Some(&b'\r') { line.slice(..line.len() - 1) } else { line };
        (!self.skipping && !line.is_empty()).then_some(line)
    }
}

/// A copy, so that the rest need not be kept.
fn beginning(line: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&line[..line.len().min(BEGINNING)])
}

/// Which request the message answers that begins like this, if that much can be seen.
pub(crate) fn answered(beginning: &[u8]) -> Option<Id> {
    /// The members of the envelope that came so far.
    #[derive(Default)]
    struct Seen {
        id: Option<Id>,
        answers: bool,
    }

    impl<'de> Visitor<'de> for &mut Seen {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
            while let Some(name) = members.next_key::<Cow<'_, str>>()? {
                match &*name {
                    "id" => self.id = Some(members.next_value()?),
                    "method" => return Ok(()),
                    name => {
                        self.answers |= matches!(name, "result" | "error");
                        members.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(())
        }
    }

    let mut seen = Seen::default();
    // It ends in the middle, which is an error; what came before that counts.
    let _ = serde_json::Deserializer::from_slice(beginning).deserialize_map(&mut seen);
    seen.id.filter(|_| seen.answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_costs_only_itself() {
        let text = format!("{{\"id\":1}}\n\"{}\"\n{{\"id\":2}}\r\n\nlast", "x".repeat(300_000));
        let (mut from, mut lines, mut found) = (text.as_bytes(), Lines::new(100), Vec::new());
        while lines.fill(&mut from).expect("memory") > 0 {
            while let Some(line) = lines.next() {
                assert!(lines.buffer.len() <= 64 << 10);
                found.push(match line {
                    Line::Frame(text) => String::from_utf8_lossy(&text).into_owned(),
                    Line::TooLong(beginning) => format!("too long, of which {} are kept", beginning.len()),
                });
            }
        }
        assert_eq!(found, [r#"{"id":1}"#, "too long, of which 4096 are kept", r#"{"id":2}"#]);
        assert_eq!(lines.rest().as_deref(), Some(&b"last"[..]));
    }

    #[test]
    fn the_beginning_shows_what_is_answered() {
        for (beginning, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#, Some(Id::from(7))),
            (r#"{"error":{"code":1},"id":"a","jsonrp"#, Some(Id::from("a"))),
            (r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"result"#, None),
            (r#"{"jsonrpc":"2.0","id":7,"meth"#, None),
            (r#"{"result":{"id":7,"text":""#, None),
            (r#"{"id":7"#, None),
            (r#"[{"id":7,"result":{"#, None),
            ("no JSON", None),
        ] {
            assert_eq!(answered(beginning.as_bytes()), id, "{beginning}");
        }
    }
}
