//! HTTP/1.1 on one connection: writes a request, reads its answer. `httparse` reads the head; what is here is the
//! framing around it, in one buffer, because a call's cost is mostly what happens per request.

use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::StatusCode;
use http::header::HeaderValue;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Room for a read whose length is not known.
const ROOM: usize = 8 << 10;
/// Room for a read into a body whose length is known.
const MAX_ROOM: usize = 1 << 20;
const MAX_HEAD: usize = 64 << 10;
const MAX_FIELDS: usize = 100;
/// A chunk's size with its extensions, or one trailer.
const MAX_LINE: usize = 8 << 10;

/// A TCP connection, with or without TLS.
pub(super) enum Io {
    Plain(TcpStream),
    Tls(Box<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>),
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(cx, into),
            Self::Tls(io) => Pin::new(io).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(cx, from),
            Self::Tls(io) => Pin::new(io).poll_write(cx, from),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(_) => Poll::Ready(Ok(())),
            Self::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Self::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}

/// What kind of body the answer says that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Media {
    Unsaid,
    Json,
    Stream,
    Other(String),
}

impl Media {
    fn new(value: &[u8]) -> Self {
        let kind = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        if kind.eq_ignore_ascii_case(b"application/json") {
            return Self::Json;
        }
        if kind.eq_ignore_ascii_case(b"text/event-stream") {
            return Self::Stream;
        }
        let kind = String::from_utf8_lossy(kind).to_ascii_lowercase();
        if kind.ends_with("json") { Self::Json } else { Self::Other(kind) }
    }
}

/// The head of an answer: the fields that this transport acts on.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) media: Media,
    pub(super) session: Option<HeaderValue>,
    pub(super) location: Option<HeaderValue>,
    pub(super) challenge: Option<HeaderValue>,
    framing: Framing,
    /// The connection outlives the answer.
    lasting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// Bytes to come.
    Length(u64),
    Chunked(Chunk),
    UntilEnd,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    Size,
    Data(u64),
    /// The line break after a chunk.
    Break,
    Trailer,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) why: String,
    /// Nothing of an answer has come, so that the server may not have seen the request.
    pub(super) silent: bool,
    /// Nothing of the request was taken.
    pub(super) unsent: bool,
}

/// One connection.
pub(super) struct Link {
    io: Io,
    buffer: BytesMut,
    /// The buffer has become larger than a connection at rest may keep.
    grown: bool,
    /// It has carried a request before, so that the server may have closed it.
    pub(super) used: bool,
}

impl Link {
    pub(super) fn new(io: Io) -> Self {
        Self { io, buffer: BytesMut::new(), grown: false, used: false }
    }

    /// Whether it can take a request: it is open, and nothing has come that nobody asked for.
    pub(super) async fn is_quiet(&mut self) -> bool {
        match &self.io {
            Io::Plain(io) => io.try_read(&mut [0]).is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock),
            Io::Tls(_) => std::future::poll_fn(|cx| Poll::Ready(self.poll_fill(cx, ROOM).is_pending())).await,
        }
    }

    /// Sends a request, in up to two parts, and waits for the head of its answer. A server may answer before it has
    /// read everything.
    pub(super) async fn send(&mut self, first: &[u8], second: &[u8]) -> Result<Head, Failed> {
        let (mut sent, total) = (0, first.len() + second.len());
        let mut broken = None;
        let outcome = std::future::poll_fn(|cx| {
            while sent < total && broken.is_none() {
                let part = if sent < first.len() { &first[sent..] } else { &second[sent - first.len()..] };
                match Pin::new(&mut self.io).poll_write(cx, part) {
                    Poll::Ready(Ok(0)) => broken = Some(io::Error::from(io::ErrorKind::WriteZero)),
                    Poll::Ready(Ok(n)) => sent += n,
                    // It may have said why before it stopped reading.
                    Poll::Ready(Err(e)) => broken = Some(e),
                    Poll::Pending => break,
                }
            }
            if sent == total
                && let Poll::Ready(Err(e)) = Pin::new(&mut self.io).poll_flush(cx)
            {
                broken = Some(e);
            }
            loop {
                if let Some(head) = self.head()? {
                    return Poll::Ready(Ok(head));
                }
                if self.buffer.len() > MAX_HEAD {
                    return Poll::Ready(Err("the head of the answer is too long".to_owned()));
                }
                match ready!(self.poll_fill(cx, ROOM)) {
                    Ok(0) => {
                        let why = broken
                            .as_ref()
                            .map_or_else(|| "the connection was closed".to_owned(), io::Error::to_string);
                        return Poll::Ready(Err(why));
                    }
                    Ok(_) => {}
                    Err(e) => return Poll::Ready(Err(e.to_string())),
                }
            }
        });
        match outcome.await {
            Ok(mut head) => {
                head.lasting &= sent == total;
                self.used = true;
                Ok(head)
            }
            Err(why) => Err(Failed { why, silent: self.buffer.is_empty(), unsent: sent == 0 }),
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>, room: usize) -> Poll<io::Result<usize>> {
        self.grown |= room > ROOM || self.buffer.len() > ROOM;
        self.buffer.reserve(room);
        pin!(self.io.read_buf(&mut self.buffer)).poll(cx)
    }

    /// The head, when all of it is in the buffer.
    fn head(&mut self) -> Result<Option<Head>, String> {
        while !self.buffer.is_empty() {
            let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
            let mut response = httparse::Response::new(&mut []);
            let parsed = httparse::ParserConfig::default()
                .parse_response_with_uninit_headers(&mut response, &self.buffer, &mut fields)
                .map_err(|e| format!("the answer is not HTTP: {e}"))?;
            let httparse::Status::Complete(length) = parsed else { return Ok(None) };
            let head = Head::new(&response)?;
            self.buffer.advance(length);
            if !head.status.is_informational() {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    /// The next piece of the body; `None` is its end.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>, head: &mut Head) -> Poll<Result<Option<Bytes>, String>> {
        loop {
            if let Some(piece) = head.framing.take(&mut self.buffer)? {
                return Poll::Ready(Ok(Some(piece)));
            }
            if head.framing == Framing::Done {
                return Poll::Ready(Ok(None));
            }
            match ready!(self.poll_fill(cx, ROOM)) {
                Ok(0) if head.framing == Framing::UntilEnd => {
                    (head.framing, head.lasting) = (Framing::Done, false);
                }
                Ok(0) => return Poll::Ready(Err("the connection was closed".into())),
                Ok(_) => {}
                Err(e) => return Poll::Ready(Err(e.to_string())),
            }
        }
    }

    /// Reads on until a body of known length is in the buffer as a whole, so that it need not be put together.
    pub(super) fn poll_whole(&mut self, cx: &mut Context<'_>, head: &Head) -> Poll<Result<(), String>> {
        if let Framing::Length(length) = head.framing {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            while self.buffer.len() < length {
                match ready!(self.poll_fill(cx, (length - self.buffer.len()).min(MAX_ROOM))) {
                    Ok(0) => return Poll::Ready(Err("the connection was closed".into())),
                    Ok(_) => {}
                    Err(e) => return Poll::Ready(Err(e.to_string())),
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Whether the next request may use it, now that the body is read.
    pub(super) fn is_reusable(&self, head: &Head) -> bool {
        head.lasting && head.framing == Framing::Done && self.buffer.is_empty()
    }

    /// Gives up what a connection at rest does not need.
    pub(super) fn rest(&mut self) {
        if std::mem::take(&mut self.grown) {
            self.buffer = BytesMut::new();
        }
    }
}

impl Head {
    fn new(response: &httparse::Response<'_, '_>) -> Result<Self, String> {
        let status =
            response.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or("the answer has no status")?;
        let (mut length, mut chunked, mut lasting) = (None, false, response.version == Some(1));
        let (mut media, mut session, mut location, mut challenge) = (Media::Unsaid, None, None, None);
        for field in response.headers.iter() {
            let (name, value) = (field.name, field.value);
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            if is("content-length") {
                let number = std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
                let number = number.and_then(|text| text.parse::<u64>().ok());
                let number = number.ok_or("the answer's content-length is no number")?;
                if length.is_some_and(|other| other != number) {
                    return Err("the answer has two lengths".into());
                }
                length = Some(number);
            } else if is("transfer-encoding") {
                chunked = value.eq_ignore_ascii_case(b"chunked");
                if !chunked {
                    return Err("the answer's transfer-encoding is not chunked".into());
                }
            } else if is("connection") {
                for token in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                    lasting &= !token.eq_ignore_ascii_case(b"close");
                    lasting |= response.version == Some(0) && token.eq_ignore_ascii_case(b"keep-alive");
                }
            } else if is("content-type") {
                media = Media::new(value);
            } else if is("mcp-session-id") {
                session = HeaderValue::from_bytes(value).ok();
            } else if is("location") {
                location = HeaderValue::from_bytes(value).ok();
            } else if is("www-authenticate") {
                challenge = HeaderValue::from_bytes(value).ok();
            }
        }
        let bodiless = status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED;
        let framing = match length {
            _ if bodiless || (length == Some(0) && !chunked) => Framing::Done,
            _ if chunked => Framing::Chunked(Chunk::Size),
            Some(length) => Framing::Length(length),
            None => Framing::UntilEnd,
        };
        // Two framings in one answer are an old trick; the connection is not used again.
        lasting &= !(chunked && length.is_some()) && framing != Framing::UntilEnd;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err("the answer switches protocols".into());
        }
        Ok(Self { status, media, session, location, challenge, framing, lasting })
    }

    /// How long the body is, when the head says so.
    pub(super) fn length(&self) -> Option<u64> {
        match self.framing {
            Framing::Length(length) => Some(length),
            Framing::Done => Some(0),
            _ => None,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.framing == Framing::Done
    }
}

impl Framing {
    /// Takes what the buffer has of the body. `None`: it ends here, or more must be read.
    fn take(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, String> {
        loop {
            match self {
                Self::Done => return Ok(None),
                _ if buffer.is_empty() => return Ok(None),
                Self::UntilEnd => return Ok(Some(buffer.split().freeze())),
                Self::Length(left) => {
                    let piece = split(buffer, left);
                    if *left == 0 {
                        *self = Self::Done;
                    }
                    return Ok(Some(piece));
                }
                Self::Chunked(Chunk::Data(left)) => {
                    let piece = split(buffer, left);
                    if *left == 0 {
                        *self = Self::Chunked(Chunk::Break);
                    }
                    return Ok(Some(piece));
                }
                Self::Chunked(state) => {
                    let Some(found) = memchr::memchr(b'\n', buffer) else {
                        if buffer.len() > MAX_LINE {
                            return Err("a chunk's head is too long".into());
                        }
                        return Ok(None);
                    };
                    let line = buffer.split_to(found + 1);
                    let line = line[..found].strip_suffix(b"\r").unwrap_or(&line[..found]);
                    *self = match state {
                        Chunk::Size => match chunk_size(line).ok_or("a chunk has no size")? {
                            0 => Self::Chunked(Chunk::Trailer),
                            size => Self::Chunked(Chunk::Data(size)),
                        },
                        Chunk::Break if !line.is_empty() => return Err("a chunk is longer than its size".into()),
                        Chunk::Break => Self::Chunked(Chunk::Size),
                        Chunk::Trailer if line.is_empty() => Self::Done,
                        Chunk::Trailer | Chunk::Data(_) => *self,
                    };
                }
            }
        }
    }
}

fn split(buffer: &mut BytesMut, left: &mut u64) -> Bytes {
    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
    *left -= length as u64;
    buffer.split_to(length).freeze()
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|b| *b == b';').next()?.trim_ascii();
    let digits = std::str::from_utf8(digits).ok().filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    /// The answer as the client sees it when these pieces come in, one read after the other.
    async fn read(pieces: &[&str]) -> Result<(u16, String, bool), String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("connected");
        let (mut server, _) = listener.accept().await.expect("accepted");
        let mut link = Link::new(Io::Plain(socket));
        let client = async {
            let mut head = link.send(b"GET / HTTP/1.1\r\n", b"\r\n").await.map_err(|failed| failed.why)?;
            let mut body = Vec::new();
            while let Some(piece) = std::future::poll_fn(|cx| link.poll_piece(cx, &mut head)).await? {
                body.extend_from_slice(&piece);
            }
            Ok((head.status.as_u16(), String::from_utf8(body).expect("text"), link.is_reusable(&head)))
        };
        let serve = async {
            let mut request = [0; 18];
            server.read_exact(&mut request).await.expect("the request");
            for piece in pieces {
                server.write_all(piece.as_bytes()).await.expect("written");
                // A read of its own for most pieces.
                tokio::task::yield_now().await;
            }
            drop(server);
        };
        tokio::join!(client, serve).0
    }

    #[tokio::test]
    async fn every_framing_is_read() {
        let ok = |status, body: &str, reusable| Ok((status, body.to_owned(), reusable));
        for (pieces, answer) in [
            (&["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"][..], ok(200, "hi", true)),
            (&["HTTP/1.1 202 \r\ncontent-length:0\r\n\r\n"], ok(202, "", true)),
            (&["HTTP/1.1 204 No Content\r\n\r\n"], ok(204, "", true)),
            (&["HTT", "P/1.1 200 OK\r\nContent-", "Length: 2\r\n\r", "\nh", "i"], ok(200, "hi", true)),
            (&["HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1"], ok(200, "1", true)),
            (&["HTTP/1.1 200 OK\r\nconnection: x, Close\r\ncontent-length: 1\r\n\r\n1"], ok(200, "1", false)),
            (&["HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n1"], ok(200, "1", false)),
            (&["HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\n1"], ok(200, "1", true)),
            (&["HTTP/1.1 200 OK\r\n\r\nto the", " end"], ok(200, "to the end", false)),
            (
                &[
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n00A\r",
                    "\n0123456789\r\n0\r\nt: 1\r\n\r\n",
                ],
                ok(200, "abc0123456789", true),
            ),
            (
                &["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na", "\r", "\n0\r\n\r", "\n"],
                ok(200, "a", true),
            ),
            (
                &["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n0\r\n\r\n"],
                ok(200, "", false),
            ),
            // What follows an answer belongs to no request.
            (&["HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1HTTP/1.1 200 OK\r\n\r\n"], ok(200, "1", false)),
        ] {
            assert_eq!(read(pieces).await, answer, "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_answer_is_an_error() {
        let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n", "x".repeat(MAX_HEAD));
        let line = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;{}", "x".repeat(MAX_LINE + 1));
        for (pieces, why) in [
            (&[][..], "closed"),
            (&["HTTP/1.1 200 OK\r\n"], "closed"),
            (&["SSH-2.0-x\r\n"], "not HTTP"),
            (&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nh"], "closed"),
            (&["HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nhi"], "no number"),
            (&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi!"], "two lengths"),
            (&["HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"], "not chunked"),
            (&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n"], "no size"),
            (&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n"], "no size"),
            (&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n"], "longer than its size"),
            (&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11111111111111111\r\n"], "no size"),
            (&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n"], "closed"),
            (&[long.as_str()], "too long"),
            (&[line.as_str()], "too long"),
            (&["HTTP/1.1 101 Switching Protocols\r\n\r\n"], "switches"),
        ] {
            let failed = read(pieces).await.expect_err(pieces.first().unwrap_or(&""));
            assert!(failed.contains(why), "{failed}: {:?}", pieces.first().map(|p| p.len()));
        }
    }

    #[tokio::test]
    async fn a_server_may_answer_before_it_has_read_everything() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("connected");
        let (mut server, _) = listener.accept().await.expect("accepted");
        server.write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n").await.expect("written");
        let mut link = Link::new(Io::Plain(socket));
        let head = link.send(b"POST / HTTP/1.1\r\n", &vec![b'x'; 64 << 20]).await.expect("an answer");
        assert_eq!((head.status.as_u16(), link.is_reusable(&head)), (413, false));
    }
}
