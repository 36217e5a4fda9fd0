//! HTTP/2: one connection that carries all exchanges with an origin, where the server speaks it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::header::HOST;
use http::{Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::client::legacy::connect::Connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::link::{Io, MAX_BUFFER, Outgoing};
use super::pool::REST;
use crate::driver::runtime;

/// A server that says nothing for so long while it is waited for is asked for a sign of life, and has as long again.
const PING: Duration = Duration::from_secs(20);

/// The way to send requests on one connection. The connection is driven by a task of its own, which ends with the last of
/// these and the last answer.
#[derive(Clone)]
pub(super) struct Multiplexed {
    sender: SendRequest<Full<bytes::Bytes>>,
    /// One for each exchange that is not over, and one of the pool's.
    open: Arc<()>,
}

/// An exchange that is not over.
pub(super) struct Stream(#[expect(dead_code, reason = "counted")] Arc<()>);

impl Multiplexed {
    /// True if the server has chosen HTTP/2 in the TLS handshake.
    pub(super) fn is_spoken(io: &Io) -> bool {
        match io {
            Io::Tcp(io) => io.connected().is_negotiated_h2(),
            #[cfg(unix)]
            Io::Unix(_) => false,
        }
    }

    pub(super) async fn new(io: Io) -> hyper::Result<Self> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PING);
        #[expect(clippy::cast_possible_truncation, reason = "64 KiB")]
        builder.max_header_list_size(MAX_BUFFER as u32);
        let (sender, connection) = builder.handshake(io).await?;
        // Why it ended, whoever waits for an answer hears from hyper.
        runtime::spawn(async move { drop(connection.await) });
        Ok(Self { sender, open: Arc::default() })
    }

    /// True if it takes requests.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a request and waits for the head of its answer. It is given back when the connection has ended before.
    pub(super) async fn send(
        &mut self,
        mut request: Outgoing,
        origin: &Uri,
    ) -> Result<(Response<Incoming>, Stream), TrySendError<Outgoing>> {
        let mut whole = origin.clone().into_parts();
        whole.path_and_query = request.uri().path_and_query().cloned();
        // Of the same parts as before.
        if let Ok(whole) = Uri::from_parts(whole) {
            *request.uri_mut() = whole;
        }
        // The URL says it.
        request.headers_mut().remove(HOST);
        let stream = Stream(self.open.clone());
        Ok((self.sender.try_send_request(request).await?, stream))
    }
}

/// The connection of a pool, if it has one.
#[derive(Default)]
pub(super) struct Slot(Mutex<Option<(Multiplexed, Instant)>>);

impl Slot {
    /// The connection, unless it has ended or nobody has used it for long.
    pub(super) fn get(&self) -> Option<Multiplexed> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (connection, used) = slot.as_mut()?;
        if connection.sender.is_closed() || is_rested(connection, *used) {
            *slot = None;
            return None;
        }
        *used = Instant::now();
        Some(connection.clone())
    }

    /// From now on others use it, too.
    pub(super) fn put(&self, connection: &Multiplexed) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_none_or(|(before, _)| before.sender.is_closed()) {
            *slot = Some((connection.clone(), Instant::now()));
        }
    }

    /// Nobody else is to use this one.
    pub(super) fn remove(&self, connection: &Multiplexed) {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_some_and(|(own, _)| Arc::ptr_eq(&own.open, &connection.open)) {
            *slot = None;
        }
    }

    /// Lets go of one that nobody has used for long. True if there is none.
    pub(super) fn sweep(&self) -> bool {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_some_and(|(connection, used)| is_rested(connection, *used)) {
            *slot = None;
        }
        slot.is_none()
    }

    pub(super) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn is_rested(connection: &Multiplexed, used: Instant) -> bool {
    Arc::strong_count(&connection.open) == 1 && used.elapsed() >= REST
}
