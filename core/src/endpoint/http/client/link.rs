//! One connection, driven by whoever waits for an answer on it.

use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The longest head of an answer, and the most that is read at once: a connection at rest keeps this much memory.
pub(super) const MAX_BUFFER: usize = 64 << 10;

/// A TCP connection, with or without TLS.
pub(in crate::endpoint::http) type Tcp = MaybeHttpsStream<TokioIo<TcpStream>>;
pub(super) type Outgoing = Request<Full<Bytes>>;

/// The stream that a connection is made of.
pub(super) enum Io {
    Tcp(Box<Tcp>),
    #[cfg(unix)]
    Unix(TokioIo<tokio::net::UnixStream>),
}

macro_rules! each {
    ($io:expr, $method:ident($($arg:expr),*)) => {
        match $io.get_mut() {
            Io::Tcp(io) => Pin::new(&mut **io).$method($($arg),*),
            #[cfg(unix)]
            Io::Unix(io) => Pin::new(io).$method($($arg),*),
        }
    };
}

impl Read for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_read(cx, buf))
    }
}

impl Write for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_shutdown(cx))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(io) => io.is_write_vectored(),
            #[cfg(unix)]
            Self::Unix(io) => io.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, poll_write_vectored(cx, bufs))
    }
}

pub(super) struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// Gone when the connection has ended.
    connection: Option<Connection<Io, Full<Bytes>>>,
    /// It has carried a request before, so that the server may have closed it.
    pub(super) used: bool,
}

impl Link {
    pub(super) async fn new(io: Io) -> hyper::Result<Self> {
        let (sender, connection) = Builder::new().max_buf_size(MAX_BUFFER).handshake(io).await?;
        Ok(Self { sender, connection: Some(connection), used: false })
    }

    /// Sends a request and waits for the head of its answer. A server may answer before it has read everything.
    ///
    /// The end of a connection at rest is seen here: it reads before it takes the request, which is given back when the
    /// connection has ended.
    pub(super) async fn send(&mut self, request: Outgoing) -> Result<Response<Incoming>, TrySendError<Outgoing>> {
        let mut response = pin!(self.sender.try_send_request(request));
        let response = std::future::poll_fn(|cx| {
            drive(&mut self.connection, cx);
            response.as_mut().poll(cx)
        });
        let response = response.await?;
        self.used = true;
        Ok(response)
    }

    /// The next piece of the answer's body; `None` is its end.
    pub(super) fn poll_piece(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Bytes>>> {
        let mut driven = false;
        loop {
            match poll_data(body, cx) {
                Poll::Ready(piece) => return Poll::Ready(piece),
                Poll::Pending if driven => return Poll::Pending,
                Poll::Pending => {
                    drive(&mut self.connection, cx);
                    driven = true;
                }
            }
        }
    }

    /// Returns true if the next request may use it, now that the answer is read: the server keeps it open, and has
    /// taken all of the request.
    pub(super) fn is_reusable(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.sender.is_ready() {
            drive(&mut self.connection, cx);
        }
        self.connection.is_some() && self.sender.is_ready()
    }
}

/// The next piece of a body that comes by itself; trailers are passed over.
pub(super) fn poll_data(body: &mut Incoming, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Bytes>>> {
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Ok(piece) = frame.into_data() {
                    return Poll::Ready(Some(Ok(piece)));
                }
            }
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            None => return Poll::Ready(None),
        }
    }
}

/// Lets the connection read and write what it can. Whoever waits on it hears the reason for its end from hyper.
fn drive(connection: &mut Option<Connection<Io, Full<Bytes>>>, cx: &mut Context<'_>) {
    if connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(cx).is_ready()) {
        *connection = None;
    }
}
