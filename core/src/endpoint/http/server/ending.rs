//! An endpoint ends: because its host does, where it is mounted, or because its server drains.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use http::{Response, StatusCode};

use super::endpoint::{Endpoint, Inner};
use super::outlet::End;
use super::reply::Refusal;
use crate::driver::runtime;
use crate::endpoint::http::Body;
use crate::jsonrpc::Id;
use crate::server::{Drains, Server};

/// Interval of the checks that everything has been answered.
const LOOK: Duration = Duration::from_millis(10);
pub(super) const WHY: &str = "the server is shutting down";

impl Endpoint {
    /// Tells a mounted endpoint that its host is about to end, such as a web server that was asked to stop and waits for
    /// its connections. At once, before the future is polled, event streams that wait for news end in order and further
    /// requests are refused; those that run have `grace` to be answered. Then whatever is left ends, and the use of the
    /// server with it, which stops its lifespan where it was the last. Resolves after that.
    ///
    /// A request that comes later begins anew: the endpoint can be served again.
    pub fn shutdown(&self, grace: Duration) -> impl Future<Output = ()> + Send + 'static {
        let ending = Ending::begin(&self.inner);
        self.inner.end_waiting();
        async move {
            let inner = ending.0.clone();
            let work = async move {
                // Streams that were opened meanwhile end with the rest.
                let _ = tokio::time::timeout(grace, inner.answered(|| false)).await;
                inner.end_all(WHY);
                inner.end_use().await;
                drop(ending);
            };
            // The host's own executor may not be tokio.
            let _ = runtime::spawn(work).await;
        }
    }
}

impl Server {
    /// Ends gently: at once, before the future is polled, it takes no further connections, and event streams that wait for
    /// news end in order; their clients go elsewhere, and `/readyz` says 503. Requests that run over HTTP, and those that
    /// come in on connections that there are, have [`drain_timeout`](crate::endpoint::http::HttpOptions::drain_timeout) to be answered. Then
    /// it [closes](Self::close), which ends whatever is left, tasks and all other transports. Resolves after that, also where
    /// nothing is served: a handler that waits for it is one of those that are waited for. Mounted endpoints refuse what
    /// comes in, as after [`Endpoint::shutdown`].
    pub fn drain(&self) -> impl Future<Output = ()> + Send + 'static {
        let mounted: Vec<_> = {
            let mut all = self.shared.mounted.lock().unwrap_or_else(PoisonError::into_inner);
            // Under the lock: another drain waits for what is counted here.
            self.shared.draining.set();
            let all = std::mem::take(&mut *all);
            all.into_iter().filter_map(|one| one.upgrade()).map(|one| (Undrained::begin(self), one)).collect()
        };
        for (counted, one) in mounted {
            let drained = one.drained();
            runtime::spawn(async move {
                drained.await;
                drop(counted);
            });
        }
        let server = self.clone();
        // Goes on if nobody waits.
        let work = runtime::spawn(async move {
            let drained = async {
                while server.shared.undrained.load(Ordering::Acquire) > 0 {
                    tokio::time::sleep(LOOK).await;
                }
            };
            server.shared.stop.unless(drained).await;
            server.close();
        });
        // Fails only with the runtime.
        async move { drop(work.await) }
    }
}

/// A listener that has requests, or may have.
pub(super) struct Undrained(Arc<AtomicUsize>);

impl Undrained {
    pub(super) fn begin(server: &Server) -> Self {
        let count = server.shared.undrained.clone();
        count.fetch_add(1, Ordering::AcqRel);
        Self(count)
    }

    /// Waits until everything has been answered, or until `drain_timeout` is over. `is_busy`: some socket has a request.
    pub(super) async fn drain(self, endpoint: &Endpoint, patience: Duration, is_busy: impl Fn() -> bool) {
        let inner = &endpoint.inner;
        let _ = tokio::time::timeout(patience, inner.answered(is_busy)).await;
    }
}

impl Drop for Undrained {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Endpoint {
    /// The server drains from now on: streams that wait for news end. Returns the time that requests have to be answered.
    pub(super) fn begin_drain(&self) -> Duration {
        self.inner.drains.store(true, Ordering::Release);
        let patience = self.inner.options.drain().unwrap_or_default();
        if !patience.is_zero() {
            self.inner.end_streams();
        }
        patience
    }
}

impl Drains for Inner {
    fn drained(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let patience = self.options.drain().unwrap_or_default();
        // For good: its server closes then, which ends what is left, and the use.
        self.ending.fetch_add(1, Ordering::AcqRel);
        self.end_waiting();
        Box::pin(async move {
            let _ = tokio::time::timeout(patience, self.answered(|| false)).await;
        })
    }
}

/// The time in which an endpoint ends.
struct Ending(Arc<Inner>);

impl Ending {
    fn begin(inner: &Arc<Inner>) -> Self {
        inner.ending.fetch_add(1, Ordering::AcqRel);
        Self(inner.clone())
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ending.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Inner {
    /// Returns true if the host is about to end. Answers to what runs are still taken.
    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire) > 0
    }

    /// Waits until nothing is being answered. Seen twice, for what is between two states.
    async fn answered(&self, is_busy: impl Fn() -> bool) {
        let mut quiet = 0;
        while quiet < 2 {
            quiet = if self.is_answering() || is_busy() { 0 } else { quiet + 1 };
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns true if the server drains: what comes in is still answered, but opens no stream.
    pub(super) fn is_draining(&self) -> bool {
        self.drains.load(Ordering::Acquire)
    }

    /// Ends the streams that answer nothing. Sessions go on: those of the oldest transport, which live in theirs, until
    /// nothing is being answered in them.
    fn end_streams(&self) {
        self.end_listening();
        self.sessions.end_streams(End::ServerClosed);
        self.pairs.end_waiting(End::ServerClosed, WHY);
    }

    fn end_listening(&self) {
        let open: Vec<_> = self.lock().values().filter_map(|(_, peer)| peer.upgrade()).collect();
        open.iter().for_each(|peer| peer.end_streams());
    }

    /// Ends the streams that answer nothing, and the sessions in which nothing is being answered.
    fn end_waiting(&self) {
        self.end_listening();
        self.sessions.end_waiting(End::ServerClosed, WHY);
        self.pairs.end_waiting(End::ServerClosed, WHY);
    }

    /// Waits until clients at other processes are told of the end of their streams.
    #[cfg(feature = "redis")]
    pub(super) async fn notes_are_sent(&self, patience: Duration) {
        let sent = async {
            while self.writers.load(Ordering::Acquire) > 0 {
                tokio::time::sleep(LOOK).await;
            }
        };
        let _ = tokio::time::timeout(patience, sent).await;
    }

    /// Returns true if a session has a call, in which its client may be asked something.
    pub(super) fn asks_may_come(&self) -> bool {
        self.sessions.in_flight() + self.pairs.in_flight() > 0
    }

    /// Returns true if a request is being answered, listen streams aside, or a task is worked on.
    fn is_answering(&self) -> bool {
        let is_working = || self.server.shared.router.tasks().is_some_and(|tasks| tasks.is_working());
        self.stateless.len() > 0 || self.asks_may_come() || is_working()
    }
}

/// The answer to what would begin while the endpoint ends.
pub(super) fn refused(id: Option<&Id>) -> Response<Body> {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, WHY).with_id(id).into()
}
