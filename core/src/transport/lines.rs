//! A stream of bytes as lines.

use std::io::Read;

use bytes::{Buf, Bytes, BytesMut};

use crate::budget::{Charge, Owner};
use crate::jsonrpc::Outline;

/// Splits a stream of bytes into lines, and refuses a line that is too long without losing its place.
pub(crate) struct Lines {
    /// Buffer of one read; copied on, so that no buffer has to be cleared for every read.
    chunk: Box<[u8]>,
    buffer: BytesMut,
    scanned: usize,
    limit: usize,
    owner: Owner,
    /// The part of the budget that a line takes which is longer than one read.
    charge: Charge,
    /// The line that is too long, of which the rest is thrown away.
    skipping: Option<Oversized>,
}

/// The most that one read brings.
const CHUNK: usize = 64 << 10;

/// Result of [`Lines::next`].
pub(crate) enum Line {
    Frame(Bytes),
    TooLong(Oversized),
}

/// A line that was too long, and was not kept.
#[derive(Debug, Default)]
pub(crate) struct Oversized {
    /// Its length so far.
    pub(crate) bytes: usize,
    /// Outline of the message, if it is one.
    pub(crate) outline: Outline,
    /// Shorter than the limit, but the process keeps too much for its peers.
    pub(crate) is_over_budget: bool,
    /// Told before its end, as that does not come.
    told: bool,
}

impl Oversized {
    fn more(&mut self, text: &[u8]) {
        self.bytes += text.len();
        if !self.told {
            self.outline.feed(text);
        }
    }
}

/// A line that is so many times as long as it may be is told before it ends.
const ENDLESS: usize = 16;

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        let (chunk, owner) = (vec![0; CHUNK].into(), Owner::unlike_others());
        let charge = Charge::new(owner);
        Self { chunk, buffer: BytesMut::new(), scanned: 0, limit, owner, charge, skipping: None }
    }

    /// Reads once. `Ok(0)` is the end of the stream.
    pub(crate) fn fill(&mut self, mut from: impl Read) -> std::io::Result<usize> {
        loop {
            match from.read(&mut self.chunk) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
                Ok(n) => {
                    self.buffer.extend_from_slice(&self.chunk[..n]);
                    self.pay();
                    return Ok(n);
                }
            }
        }
    }

    /// Takes part of the budget for a line that is longer than one read; without it the line is thrown away.
    fn pay(&mut self) {
        let found = memchr::memchr(b'\n', &self.buffer[self.scanned..]);
        let end = found.map_or(self.buffer.len(), |found| self.scanned + found);
        // One that is too long is thrown away in any case.
        let wanted = if self.skipping.is_none() && (CHUNK + 1..=self.limit).contains(&end) { end } else { 0 };
        if !self.charge.fit(wanted) && !self.charge.grow(wanted - self.charge.bytes()) {
            let mut long = Oversized { is_over_budget: true, ..Oversized::default() };
            long.more(&self.buffer[..end]);
            self.buffer.advance(end);
            self.scanned = 0;
            self.skipping = Some(long);
            self.charge.fit(0);
        }
    }

    /// A line that was read. A long one takes its part of the budget until its last part is gone.
    fn frame(&mut self, line: BytesMut) -> Bytes {
        let line = line.freeze();
        if line.len() <= CHUNK {
            return line;
        }
        // Charged as it was read; counted as given back once, with its last part.
        let mut charge = std::mem::replace(&mut self.charge, Charge::new(self.owner));
        match line.len().checked_sub(charge.bytes()) {
            Some(more) => charge.force(more),
            None => charge.shrink(charge.bytes() - line.len()),
        }
        charge.of(line)
    }

    /// The next whole line, without its line break. Empty lines are skipped.
    pub(crate) fn next(&mut self) -> Option<Line> {
        let line = self.line();
        if self.buffer.len() <= CHUNK {
            self.charge.fit(0);
        }
        line
    }

    fn line(&mut self) -> Option<Line> {
        while let Some(found) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
            let mut line = self.buffer.split_to(self.scanned + found + 1);
            self.scanned = 0;
            line.truncate(line.len() - 1);
            if line.last() == Some(&b'\r') {
                line.truncate(line.len() - 1);
            }
            if let Some(mut long) = self.skipping.take() {
                long.more(&line);
                if !long.told {
                    return Some(Line::TooLong(long));
                }
            } else if line.len() > self.limit {
                let mut long = Oversized::default();
                long.more(&line);
                return Some(Line::TooLong(long));
            } else if !line.is_empty() {
                return Some(Line::Frame(self.frame(line)));
            }
        }
        self.scanned = self.buffer.len();
        if self.skipping.is_none() && self.buffer.len() <= self.limit {
            return None;
        }
        let long = self.skipping.get_or_insert_default();
        long.more(&self.buffer);
        self.buffer.clear();
        self.scanned = 0;
        if long.told || long.bytes / ENDLESS <= self.limit {
            return None;
        }
        long.told = true;
        let (bytes, outline) = (long.bytes, std::mem::take(&mut long.outline));
        Some(Line::TooLong(Oversized { bytes, outline, told: true, is_over_budget: long.is_over_budget }))
    }

    /// Returns the first bytes of a line that has begun and does not end yet, once that many are there.
    pub(crate) fn begun(&mut self, bytes: usize) -> Option<Bytes> {
        if self.skipping.is_some() {
            return None;
        }
        let blanks = self.buffer.len() - self.buffer.trim_ascii_start().len();
        self.buffer.advance(blanks);
        self.scanned = self.scanned.saturating_sub(blanks);
        self.buffer.get(..bytes).map(Bytes::copy_from_slice)
    }

    /// Goes on behind them.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.buffer.advance(bytes.min(self.buffer.len()));
        self.scanned = 0;
        if self.buffer.len() <= CHUNK {
            self.charge.fit(0);
        }
    }

    /// Returns the rest at the end of the stream: a last line without line break.
    pub(crate) fn rest(&mut self) -> Option<Line> {
        let line = self.buffer.split().freeze();
        self.scanned = 0;
        if let Some(mut long) = self.skipping.take() {
            long.more(&line);
            return (!long.told).then_some(Line::TooLong(long));
        }
        let line = if line.last() == Some(&b'\r') { line.slice(..line.len() - 1) } else { line };
        (!line.is_empty()).then_some(Line::Frame(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::Id;

    fn shown(line: Line) -> String {
        match line {
            Line::Frame(text) => String::from_utf8_lossy(&text).into_owned(),
            Line::TooLong(long) => format!("{} bytes of {:?}", long.bytes, long.outline.id()),
        }
    }

    fn all(text: &str, limit: usize) -> Vec<String> {
        let (mut from, mut lines, mut found) = (text.as_bytes(), Lines::new(limit), Vec::new());
        while lines.fill(&mut from).expect("memory") > 0 {
            while let Some(line) = lines.next() {
                assert!(lines.buffer.len() <= 64 << 10);
                found.push(shown(line));
            }
        }
        found.extend(lines.rest().map(shown));
        assert!(lines.skipping.is_none() && lines.buffer.is_empty());
        found
    }

    #[test]
    fn a_line_that_is_too_long_costs_only_itself() {
        let text = format!("{{\"id\":1}}\n\"{}\"\n{{\"id\":2}}\r\n\nlast", "x".repeat(1000));
        assert_eq!(all(&text, 100), [r#"{"id":1}"#, "1002 bytes of None", r#"{"id":2}"#, "last"]);
    }

    #[test]
    fn a_line_that_is_too_long_says_whose_it_is() {
        let long = "x".repeat(300_000);
        for text in [
            format!(r#"{{"id":7,"result":"{long}"}}"#),
            format!(r#"{{"result":"{long}","id":7}}"#),
            format!(r#"{{"result":{{"id":1,"x":"{long}"}},"jsonrpc":"2.0","id":7}}"#),
        ] {
            let told = format!("{} bytes of Some({})", text.len(), Id::from(7));
            assert_eq!(all(&format!("{text}\nlast\n"), 200_000), [&*told, "last"]);
            assert_eq!(all(&text, 200_000), [&*told], "the stream ends with it");
        }
    }

    #[test]
    fn a_line_without_an_end_is_told_once() {
        let text = format!(r#"{{"id":7,"result":"{}"#, "x".repeat(500_000));
        let found = all(&format!("{text}\nlast"), 100);
        assert_eq!((found.len(), found.last().map(String::as_str)), (2, Some("last")));
        assert!(found[0].ends_with("bytes of Some(7)"), "{found:?}");
    }
}
