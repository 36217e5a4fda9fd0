//! Standard output of a server's program as messages: one to a line, and other lines told apart.
//!
//! Many a program writes other text there, too, or messages in another form than a line each. Whatever ends a request does
//! so at once: with its result where that is beyond doubt, else with an error. The first of all the rest is said.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::driver::Peer;
use crate::error::{Error, ErrorKind, shortened};
use crate::jsonrpc::{DecodeError, Limits, Outline, decode_leniently, mend, within};
use crate::protocol::Input;
use crate::transport::lines::{Line, Lines, Oversized};

/// Longest part of a line that is no message in a report of it.
const MAX_SHOWN: usize = 200;

/// Reads the lines of one process.
pub(super) struct Hearing {
    limits: Limits,
    /// An object that goes over several lines.
    held: Option<Held>,
    /// A header has announced a message of so many bytes.
    announced: Option<usize>,
}

/// An object that the line it begins on does not end.
struct Held {
    text: BytesMut,
    outline: Outline,
}

impl Hearing {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, held: None, announced: None }
    }

    /// Gives the peer all that is there.
    pub(super) fn hear(&mut self, lines: &mut Lines, peer: &Arc<Peer>) {
        loop {
            while let Some(line) = lines.next() {
                self.one(line, peer);
            }
            // Behind a header a message need not end with a line.
            let Some(length) = self.announced else { return };
            let Some(frame) = lines.begun(length) else { return };
            self.announced = None;
            // Some line of a log announced a message that is none.
            match decode_leniently(&frame, &self.limits) {
                Ok(decoded) => {
                    lines.skip(length);
                    if let Some(tap) = peer.tap() {
                        tap.passes(false, &frame);
                    }
                    peer.take(decoded);
                }
                Err(_) => return,
            }
        }
    }

    /// Gives the peer what is left at the end.
    pub(super) fn hear_rest(&mut self, lines: &mut Lines, peer: &Arc<Peer>) {
        if let Some(line) = lines.rest() {
            self.one(line, peer);
        }
        if let Some(held) = self.held.take() {
            held.give_up(peer);
        }
    }

    fn one(&mut self, line: Line, peer: &Arc<Peer>) {
        match line {
            Line::Frame(frame) => self.line(peer, frame),
            Line::TooLong(line) => self.too_long(peer, &line),
        }
    }

    fn line(&mut self, peer: &Arc<Peer>, frame: Bytes) {
        if let Some(tap) = peer.tap() {
            tap.passes(false, &frame);
        }
        match peer.try_receive(&frame) {
            Ok(()) if self.held.is_none() => {}
            // Messages do not hold messages.
            Ok(()) => self.held.take().into_iter().for_each(|held| held.give_up(peer)),
            Err(error) => self.unread(peer, &frame, error),
        }
    }

    #[cold]
    fn unread(&mut self, peer: &Arc<Peer>, frame: &Bytes, error: DecodeError) {
        if let Some(held) = self.held.take() {
            // Whoever writes an object over several lines indents what is in it.
            if frame.first() == Some(&b'{') {
                held.give_up(peer);
            } else {
                self.held = held.goes_on(frame, &self.limits, peer);
                return;
            }
        }
        // An array that is refused as a whole.
        if !error.answers_too.is_empty() {
            return peer.handle(Input::Invalid(error));
        }
        let error = match mend(frame, &self.limits, error) {
            Ok(decoded) => return peer.take(decoded),
            Err(error) => error,
        };
        // A header may follow a message on its line.
        let behind = frame.rsplit(|byte| *byte == b'}').next().unwrap_or_default();
        if let Some(length) = announced(behind) {
            self.announced = Some(length).filter(|length| *length <= self.limits.max_message_bytes);
            peer.unreadable(
                "the server writes headers to its standard output (Content-Length), as language servers do: a message of MCP \
                 is a line",
            );
        }
        let outline = Outline::of(frame);
        if outline.is_open() && frame.first() == Some(&b'{') && (error.answers.is_none() || !outline.is_in_text()) {
            peer.unreadable(&format!("{}, which ends within an object", shown(frame)));
            self.held = Some(Held { text: frame[..].into(), outline });
            return;
        }
        let error = DecodeError { id: error.id.filter(|_| outline.has_method()), ..error };
        let found = within(frame, &self.limits);
        peer.unreadable(&shown(frame));
        let is_read = !found.is_empty();
        found.into_iter().for_each(|message| peer.handle(Input::Received(message)));
        // The other requests that an array was to answer.
        let answers_too = outline.answered().collect();
        if !is_read || outline.is_many() {
            peer.handle(Input::Invalid(DecodeError { answers_too, ..error }));
        }
    }

    /// The server's message is left out; whoever waits for it is told.
    #[cold]
    fn too_long(&mut self, peer: &Arc<Peer>, line: &Oversized) {
        let (bytes, limit) = (line.bytes, self.limits.max_message_bytes);
        let message = if line.is_over_budget {
            let option = crate::idiom::named("max_memory");
            format!("the server sent a message of {bytes} bytes, more than this process may still keep ({option})")
        } else {
            let option = crate::idiom::named("max_message_bytes");
            format!("the server sent a message of {bytes} bytes, longer than the limit of {limit} ({option})")
        };
        let mut told = false;
        for id in line.outline.answered() {
            told = true;
            peer.handle(Input::Undelivered(id, Error::new(ErrorKind::PeerMisbehaved, message.clone())));
        }
        if !told {
            peer.warn(&message);
        }
    }
}

impl Held {
    /// Takes the next line. Gives itself back while the object does not end.
    fn goes_on(mut self, frame: &Bytes, limits: &Limits, peer: &Arc<Peer>) -> Option<Self> {
        if self.text.len() + frame.len() >= limits.max_message_bytes {
            self.give_up(peer);
            return None;
        }
        for part in [&b"\n"[..], &frame[..]] {
            self.text.extend_from_slice(part);
            self.outline.feed(part);
        }
        if self.outline.is_open() {
            return Some(self);
        }
        match decode_leniently(&self.text.split().freeze(), limits) {
            Ok(decoded) => peer.take(decoded),
            Err(error) if error.answers.is_some() || error.id.is_some() => peer.handle(Input::Invalid(error)),
            Err(_) => {}
        }
        None
    }

    /// It does not end, or what it was to be is over.
    fn give_up(self, peer: &Arc<Peer>) {
        let error = DecodeError::of(&self.outline, "message is not JSON: its line ends within an object");
        if error.answers.is_some() || error.id.is_some() {
            peer.handle(Input::Invalid(error));
        }
    }
}

/// A line for people, on one line.
fn shown(frame: &[u8]) -> String {
    let beginning = String::from_utf8_lossy(&frame[..frame.len().min(MAX_SHOWN * 4)]);
    format!("the server's standard output has a line that is no message: {:?}", shortened(&beginning, MAX_SHOWN))
}

/// The length that a header announces.
fn announced(frame: &[u8]) -> Option<usize> {
    let (name, value) = std::str::from_utf8(frame).ok()?.split_once(':')?;
    name.trim().eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
}
