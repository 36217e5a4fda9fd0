//! Frames of HTTP/2 that carry nothing: settings, pings, windows, priorities, empty data. Each is cheap to send and has to be
//! worked on, and some of them are worked on once for each stream.
//!
//! A client has a mebibyte of them. It is given back with time, and with what it is sent: most of these frames answer that.
//! The connection of one that has none left ends.

use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// RFC 9113, section 3.4.
const PREFACE: usize = 24;
/// RFC 9113, section 4.1.
const HEAD: usize = 9;
/// Types of frames that carry something.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;

/// The most bytes of other frames that a client has without being sent anything.
const FREE: u64 = 1 << 20;
/// Bytes that are given back for each frame that carries something to it, which opens two windows with two frames of 13
/// bytes; and one byte for so many in the frame: a small window is opened anew every 4 KiB.
const EACH_FRAME: u64 = 26;
const TAKEN: u64 = 4;
/// Bytes that are given back each second: a sign of life is some twenty.
const EACH_SECOND: u64 = 64;

/// The place in what goes one way.
struct Place {
    /// Bytes that are left of the preface or of a frame.
    rest: usize,
    /// The head of the next frame, as far as it is there.
    head: [u8; HEAD],
    begun: usize,
}

impl Place {
    fn behind(rest: usize) -> Self {
        Self { rest, head: [0; HEAD], begun: 0 }
    }

    /// Tells of each frame whose head ends in these bytes: its length, and true if its type carries something.
    fn pass(&mut self, mut bytes: &[u8], mut tell: impl FnMut(u64, bool)) {
        while !bytes.is_empty() {
            let skipped = self.rest.min(bytes.len());
            self.rest -= skipped;
            bytes = &bytes[skipped..];
            let more = (HEAD - self.begun).min(bytes.len());
            self.head[self.begun..self.begun + more].copy_from_slice(&bytes[..more]);
            self.begun += more;
            bytes = &bytes[more..];
            if self.begun == HEAD {
                self.begun = 0;
                let [a, b, c, kind, ..] = self.head;
                let length = u32::from_be_bytes([0, a, b, c]);
                self.rest = length as usize;
                tell(u64::from(length), matches!(kind, DATA | HEADERS | CONTINUATION));
            }
        }
    }
}

/// Frames of both directions, and the bytes that the client has left.
struct Meter {
    read: Place,
    written: Place,
    left: u64,
    spent: u64,
    since: Instant,
}

impl Meter {
    fn new() -> Self {
        let (read, written) = (Place::behind(PREFACE), Place::behind(0));
        Self { read, written, left: FREE, spent: 0, since: Instant::now() }
    }

    fn read(&mut self, bytes: &[u8]) {
        let head = HEAD as u64;
        let spent = &mut self.spent;
        self.read.pass(bytes, |length, carries| {
            *spent += if carries { head.saturating_sub(length) } else { head + length };
        });
    }

    fn written(&mut self, bytes: &[u8]) {
        let mut more = 0;
        self.written.pass(bytes, |length, carries| more += if carries { EACH_FRAME + length / TAKEN } else { 0 });
        self.give(more);
    }

    fn give(&mut self, more: u64) {
        let spent = std::mem::take(&mut self.spent);
        self.left = (self.left + more).min(FREE + spent).saturating_sub(spent);
    }

    /// Returns true if it has nothing left.
    fn is_over(&mut self) -> bool {
        if self.spent < self.left {
            return false;
        }
        let seconds = self.since.elapsed().as_secs();
        if seconds > 0 {
            self.since = Instant::now();
        }
        self.give(seconds.saturating_mul(EACH_SECOND));
        self.left == 0
    }
}

/// A socket over which a client speaks HTTP/2.
pub(super) struct Framed<S> {
    socket: S,
    meter: Meter,
}

impl<S> Framed<S> {
    pub(super) fn new(socket: S) -> Self {
        Self { socket, meter: Meter::new() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Framed<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let Self { socket, meter } = &mut *self;
        let before = buf.filled().len();
        let outcome = Pin::new(socket).poll_read(cx, buf);
        meter.read(&buf.filled()[before..]);
        if meter.is_over() {
            return Poll::Ready(Err(Error::new(ErrorKind::InvalidData, "too many HTTP/2 frames that carry nothing")));
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Framed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write(cx, buf);
        if let Poll::Ready(Ok(written)) = outcome {
            self.meter.written(&buf[..written]);
        }
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        if let Poll::Ready(Ok(mut written)) = outcome {
            for buf in bufs {
                let part = buf.len().min(written);
                self.meter.written(&buf[..part]);
                written -= part;
            }
        }
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: usize) -> Vec<u8> {
        let length = u32::try_from(payload).unwrap_or_default().to_be_bytes();
        let mut bytes = vec![length[1], length[2], length[3], kind, 0, 0, 0, 0, 1];
        bytes.resize(HEAD + payload, 0);
        bytes
    }

    /// The meter of a socket that brought these bytes, however they were cut.
    fn metered(bytes: &[u8], piece: usize) -> Meter {
        let mut meter = Meter::new();
        let sent = [&[0; PREFACE], bytes].concat();
        sent.chunks(piece).for_each(|piece| meter.read(piece));
        meter
    }

    #[test]
    fn settings_are_empty_and_data_are_not() {
        let bytes = [frame(4, 6), frame(1, 40), frame(0, 1000), frame(6, 8), frame(9, 0), frame(0, 1)].concat();
        for piece in [1, 2, 7, 9, 10, 5000] {
            assert_eq!(metered(&bytes, piece).spent, 9 + 6 + 9 + 8 + 9 + 8, "in pieces of {piece}");
        }
    }

    #[test]
    fn more_than_a_mebibyte_of_settings_is_over() {
        let some = frame(4, 6).repeat(60_000);
        assert!(!metered(&some, 16 << 10).is_over());
        let mut many = metered(&some.repeat(2), 16 << 10);
        // A large head pays for nothing.
        many.read(&frame(1, 16_000).repeat(100));
        assert!(many.is_over());
        // Nor does what answers its settings.
        many.written(&frame(4, 0).repeat(120_000));
        assert!(many.is_over());
    }

    #[test]
    fn who_opens_windows_for_what_is_sent_goes_on() {
        let mut meter = metered(&[], 1);
        for _ in 0..200_000 {
            // A comment in a stream of events, as one that is kept alive gets it.
            meter.written(&frame(0, 3));
            meter.read(&[frame(8, 4), frame(8, 4)].concat());
            assert!(!meter.is_over());
        }
        // All that it was sent in its life counts for no more than a mebibyte afterwards.
        meter.read(&frame(4, 6).repeat(120_000));
        assert!(meter.is_over());
    }
}
