//! Frames of HTTP/2 that carry nothing: settings, pings, windows, priorities, and the heads of all frames. Each is cheap to
//! send and has to be worked on, and some of them are worked on once for each stream.
//!
//! A client has a mebibyte of them, and more with what it sends and takes, and with time. The connection of one that goes
//! over it ends.

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

/// Bytes of other frames that a client has without sending or taking anything.
const FREE: u64 = 1 << 20;
/// One byte of them for so many bytes that are written: a small window is opened anew every 4 KiB with two frames.
const TAKEN: u64 = 4;

/// Bytes of them for each second: a sign of life is some twenty.
const EACH_SECOND: u64 = 64;

/// The place in what a client sends, and the bytes so far.
struct Meter {
    /// Bytes that are left of the preface or of a frame.
    rest: usize,
    /// The head of the next frame, as far as it is there.
    head: [u8; HEAD],
    begun: usize,
    empty: u64,
    carried: u64,
    written: u64,
    since: Instant,
}

impl Meter {
    fn read(&mut self, mut bytes: &[u8]) {
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
                self.frame();
            }
        }
    }

    fn frame(&mut self) {
        let [a, b, c, kind, ..] = self.head;
        self.rest = u32::from_be_bytes([0, a, b, c]) as usize;
        self.empty += HEAD as u64;
        match kind {
            DATA | HEADERS | CONTINUATION => self.carried += self.rest as u64,
            _ => self.empty += self.rest as u64,
        }
    }

    fn is_over(&self) -> bool {
        let allowed = FREE + self.carried + self.written / TAKEN;
        self.empty > allowed && self.empty > allowed + self.since.elapsed().as_secs() * EACH_SECOND
    }
}

/// A socket over which a client speaks HTTP/2.
pub(super) struct Framed<S> {
    socket: S,
    meter: Meter,
}

impl<S> Framed<S> {
    pub(super) fn new(socket: S) -> Self {
        let meter =
            Meter { rest: PREFACE, head: [0; HEAD], begun: 0, empty: 0, carried: 0, written: 0, since: Instant::now() };
        Self { socket, meter }
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
            self.meter.written += written as u64;
        }
        outcome
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let outcome = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        if let Poll::Ready(Ok(written)) = outcome {
            self.meter.written += written as u64;
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
        let mut meter = Framed::new(()).meter;
        let sent = [&[0; PREFACE], bytes].concat();
        sent.chunks(piece).for_each(|piece| meter.read(piece));
        meter
    }

    #[test]
    fn settings_are_empty_and_data_are_not() {
        let bytes = [frame(4, 6), frame(1, 40), frame(0, 1000), frame(6, 8), frame(9, 0)].concat();
        for piece in [1, 2, 7, 9, 10, 5000] {
            let meter = metered(&bytes, piece);
            assert_eq!((meter.empty, meter.carried), (5 * 9 + 6 + 8, 1040), "in pieces of {piece}");
        }
    }

    #[test]
    fn more_than_a_mebibyte_of_settings_is_over() {
        let some = frame(4, 6).repeat(60_000);
        assert!(!metered(&some, 16 << 10).is_over());
        let mut many = metered(&some.repeat(2), 16 << 10);
        assert!(many.is_over());
        many.written = 4 << 20;
        assert!(!many.is_over(), "it takes what is written");
    }
}
