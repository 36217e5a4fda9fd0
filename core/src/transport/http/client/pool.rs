//! Connections to one origin, kept open between exchanges.
//!
//! An exchange drives its connection itself: the task that waits for an answer is the one that writes the request and
//! reads the socket, so that a call costs no hop between tasks. A connection at rest is not driven by anybody; it is
//! looked at before it is used again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tower_service::Service;

use super::wire::{Head, Io, Link};
use crate::error::{Error, ErrorKind, Result};

/// Time for name resolution, TCP and TLS together.
const CONNECT: Duration = Duration::from_secs(10);
/// A connection at rest for longer is closed. Servers give up theirs after five seconds or more.
const REST: Duration = Duration::from_secs(15);
/// A connection at rest for longer may have been closed by the server without the reactor having seen it.
const STALE: Duration = Duration::from_millis(500);
/// The most connections at rest.
const MAX_RESTING: usize = 64;

#[derive(Clone)]
enum Connector {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

impl Connector {
    fn new(tls: bool) -> Result<Self> {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.set_connect_timeout(Some(CONNECT));
        http.enforce_http(false);
        if !tls {
            return Ok(Self::Plain(http));
        }
        let tls = HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(rustls::crypto::ring::default_provider())
            .map_err(|e| Error::new(ErrorKind::Transport, format!("TLS: {e}")))?;
        Ok(Self::Tls(tls.https_only().enable_http1().wrap_connector(http)))
    }

    async fn connect(mut self, to: Uri) -> Result<Io, String> {
        match &mut self {
            Self::Plain(http) => match std::future::poll_fn(|cx| http.poll_ready(cx)).await {
                Ok(()) => http.call(to).await.map(|io| Io::Plain(io.into_inner())).map_err(|e| causes(&e)),
                Err(e) => Err(causes(&e)),
            },
            Self::Tls(tls) => match std::future::poll_fn(|cx| tls.poll_ready(cx)).await {
                Ok(()) => tls.call(to).await.map(|io| Io::Tls(Box::new(TokioIo::new(io)))).map_err(|e| causes(&*e)),
                Err(e) => Err(causes(&*e)),
            },
        }
    }
}

/// An error and what caused it, as one text.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

struct Resting {
    link: Box<Link>,
    since: Instant,
}

/// The connections to one origin.
pub(super) struct Pool {
    origin: Uri,
    connector: Connector,
    resting: Mutex<Vec<Resting>>,
    sweeping: AtomicBool,
    closed: AtomicBool,
}

impl Pool {
    pub(super) fn new(origin: Uri) -> Result<Arc<Self>> {
        let connector = Connector::new(origin.scheme_str() == Some("https"))?;
        Ok(Self::over(connector, origin))
    }

    fn over(connector: Connector, origin: Uri) -> Arc<Self> {
        let (sweeping, closed) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Self { origin, connector, resting: Mutex::default(), sweeping, closed })
    }

    /// Sends a request and waits for the head of its answer. `repeatable`: it may be sent again when a connection
    /// that was used before ends without a word.
    pub(super) async fn send(self: &Arc<Self>, first: &[u8], second: &[u8], repeatable: bool) -> Result<Answer> {
        loop {
            let mut link = match self.take().await {
                Some(link) => link,
                // Boxed, as everything that is rare, so that the tasks of ordinary exchanges are small.
                None => Box::pin(self.connect()).await?,
            };
            let used = link.used;
            match link.send(first, second).await {
                Ok(head) => return Ok(Answer { head, link: Some(link), pool: self.clone() }),
                Err(failed) if used && (failed.unsent || (repeatable && failed.silent)) => {}
                Err(failed) => return Err(self.failed(&format!("no answer: {}", failed.why))),
            }
        }
    }

    /// Opens a connection that will be needed soon.
    pub(super) async fn warm(self: &Arc<Self>) {
        if let Ok(mut link) = self.connect().await {
            link.used = true;
            self.put(link);
        }
    }

    pub(super) fn failed(&self, why: &str) -> Error {
        Error::new(ErrorKind::Transport, format!("{}: {why}", self.origin.to_string().trim_end_matches('/')))
    }

    async fn take(&self) -> Option<Box<Link>> {
        loop {
            let Resting { mut link, since } = self.lock().pop()?;
            if since.elapsed() > STALE {
                // Lets the reactor look at the socket first.
                tokio::task::yield_now().await;
            }
            if link.is_quiet().await {
                return Some(link);
            }
        }
    }

    async fn connect(&self) -> Result<Box<Link>> {
        let connecting = self.connector.clone().connect(self.origin.clone());
        let io = match tokio::time::timeout(CONNECT, connecting).await {
            Ok(Ok(io)) => io,
            Ok(Err(why)) => return Err(self.failed(&format!("cannot connect: {why}"))),
            Err(_) => return Err(self.failed(&format!("no connection within {} s", CONNECT.as_secs()))),
        };
        Ok(Box::new(Link::new(io)))
    }

    fn put(self: &Arc<Self>, mut link: Box<Link>) {
        link.rest();
        let mut resting = self.lock();
        if self.closed.load(Ordering::Relaxed) || resting.len() >= MAX_RESTING {
            return;
        }
        resting.push(Resting { link, since: Instant::now() });
        drop(resting);
        if !self.sweeping.swap(true, Ordering::Relaxed) {
            let pool = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(REST).await;
                    let Some(pool) = pool.upgrade() else { return };
                    let mut resting = pool.lock();
                    let old: Vec<_> = resting.extract_if(.., |r| r.since.elapsed() >= REST).collect();
                    let empty = resting.is_empty();
                    if empty {
                        pool.sweeping.store(false, Ordering::Relaxed);
                    }
                    drop(resting);
                    drop(old);
                    if empty {
                        return;
                    }
                }
            });
        }
    }

    /// Closes what rests, and from now on what comes to rest.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let resting = std::mem::take(&mut *self.lock());
        drop(resting);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Resting>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer whose body is still to be read. Read to its end, its connection is used again; dropped before, it is
/// closed.
pub(super) struct Answer {
    pub(super) head: Head,
    link: Option<Box<Link>>,
    pool: Arc<Pool>,
}

impl Answer {
    /// The next piece of the body.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let Some(link) = &mut self.link else { return Poll::Ready(None) };
        match ready!(link.poll_piece(cx, &mut self.head)) {
            Ok(piece) => {
                if self.head.is_done() {
                    self.release();
                }
                Poll::Ready(piece.map(Ok))
            }
            Err(why) => Poll::Ready(Some(Err(self.broke_off(&why)))),
        }
    }

    /// The body is complete: lets others use the connection, unless the server ends it.
    fn release(&mut self) {
        if let Some(link) = self.link.take().filter(|link| link.is_reusable(&self.head)) {
            self.pool.put(link);
        }
    }

    fn broke_off(&mut self, why: &str) -> Error {
        self.link = None;
        self.pool.failed(&format!("the answer broke off: {why}"))
    }

    /// The whole body.
    pub(super) async fn collect(mut self, limit: usize) -> Result<Bytes> {
        let too_long = || {
            let message = format!("the answer is longer than the limit of {limit} bytes (max_message_bytes)");
            Error::new(ErrorKind::PeerMisbehaved, message)
        };
        if self.head.length().is_some_and(|length| length > limit as u64) {
            return Err(too_long());
        }
        if let Some(link) = &mut self.link
            && let Err(why) = std::future::poll_fn(|cx| link.poll_whole(cx, &self.head)).await
        {
            return Err(self.broke_off(&why));
        }
        let (mut first, mut all) = (Bytes::new(), BytesMut::new());
        while let Some(piece) = std::future::poll_fn(|cx| self.poll_piece(cx)).await.transpose()? {
            if first.len() + all.len() + piece.len() > limit {
                return Err(too_long());
            }
            if first.is_empty() && all.is_empty() {
                first = piece;
            } else {
                all.extend_from_slice(&std::mem::take(&mut first));
                all.extend_from_slice(&piece);
            }
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }
}

#[cfg(test)]
mod tests;
