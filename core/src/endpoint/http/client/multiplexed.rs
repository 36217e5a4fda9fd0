//! HTTP/2: one connection that carries all exchanges with an origin, where the server speaks it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::HOST;
use http::uri::Authority;
use http::{Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::client::legacy::connect::Connection;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::link::{Io, MAX_BUFFER, Outgoing};
use crate::driver::runtime;
use crate::error::Result;

/// A server that says nothing for so long while it is waited for is asked for a sign of life, and has as long again.
const PING: Duration = Duration::from_secs(20);

/// Most exchanges that share a connection. Servers allow a hundred and more; any above that would wait without a word.
const MOST: usize = 50;

/// The way to send requests on one connection. The connection is driven by a task of its own, which ends with the last of
/// these and the last answer.
pub(super) struct Multiplexed {
    sender: Sender,
    stream: Stream,
}

/// An exchange that is not over.
#[derive(Clone)]
pub(super) struct Stream(Arc<Open>);

/// One for each exchange of a connection, and one of the pool's.
struct Open {
    /// Time at which one of them has last begun or ended.
    used: Mutex<Instant>,
}

impl Open {
    fn is_used(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.is_used();
    }
}

impl Multiplexed {
    /// Returns true if the server has chosen HTTP/2 in the TLS handshake.
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
        Ok(Self { sender, stream: Stream(Arc::new(Open { used: Mutex::new(Instant::now()) })) })
    }

    /// Sends a request and waits for the head of its answer. It is given back when the connection has ended before.
    pub(super) async fn send(
        &mut self,
        mut request: Outgoing,
        origin: &Uri,
    ) -> Result<Response<Incoming>, TrySendError<Outgoing>> {
        let mut whole = origin.clone().into_parts();
        whole.path_and_query = request.uri().path_and_query().cloned();
        // The URL says it.
        let host = request.headers_mut().remove(HOST);
        if let Some(host) = host.and_then(|host| Authority::try_from(host.as_bytes()).ok()) {
            whole.authority = Some(host);
        }
        // It has the same parts as before.
        if let Ok(whole) = Uri::from_parts(whole) {
            *request.uri_mut() = whole;
        }
        self.sender.try_send_request(request).await
    }

    pub(super) fn stream(&self) -> Stream {
        self.stream.clone()
    }
}

/// Returns true if the server says that it has not begun to work on a request.
pub(super) fn is_refused(error: &hyper::Error) -> bool {
    let Some(error) = std::error::Error::source(error).and_then(|source| source.downcast_ref::<h2::Error>()) else {
        return false;
    };
    let goes_away = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
    error.is_remote() && (goes_away || error.reason() == Some(h2::Reason::REFUSED_STREAM))
}

type Sender = SendRequest<Full<bytes::Bytes>>;

/// The connections of a pool.
#[derive(Default)]
pub(super) struct Slot(Mutex<Vec<(Sender, Arc<Open>)>>);

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Vec<(Sender, Arc<Open>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that takes one more request, unless it has ended or nobody has used it for long.
    pub(super) fn get(&self) -> Option<Multiplexed> {
        let mut slot = self.lock();
        slot.retain(|(sender, open)| !sender.is_closed() && !is_rested(open));
        let (sender, open) = slot.iter().find(|(_, open)| Arc::strong_count(open) <= MOST)?;
        Some(Multiplexed { sender: sender.clone(), stream: Stream(open.clone()) })
    }

    /// From now on others use it, too.
    pub(super) fn put(&self, connection: &Multiplexed) {
        self.lock().push((connection.sender.clone(), connection.stream.0.clone()));
    }

    /// Nobody else is to use this one.
    pub(super) fn remove(&self, connection: &Multiplexed) {
        self.lock().retain(|(_, open)| !Arc::ptr_eq(open, &connection.stream.0));
    }

    /// Lets go of those that nobody has used for long. True if there is none.
    pub(super) fn sweep(&self) -> bool {
        let mut slot = self.lock();
        slot.retain(|(sender, open)| !sender.is_closed() && !is_rested(open));
        slot.is_empty()
    }

    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.lock());
        drop(all);
    }
}

fn is_rested(open: &Arc<Open>) -> bool {
    let used = || *open.used.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::strong_count(open) == 1 && used().elapsed() >= REST
}

/// A connection at rest for longer is closed. Servers give up theirs after five seconds or more.
pub(super) const REST: Duration = Duration::from_secs(15);
