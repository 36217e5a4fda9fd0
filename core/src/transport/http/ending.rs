//! The host of a mounted endpoint ends.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Response, StatusCode};

use super::Body;
use super::endpoint::{Endpoint, Inner};
use super::outlet::End;
use super::reply::Refusal;
use crate::driver::runtime;
use crate::jsonrpc::Id;

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
                let answered = async {
                    while inner.is_answering() {
                        tokio::time::sleep(LOOK).await;
                    }
                };
                // Streams that were opened meanwhile end with the rest.
                let _ = tokio::time::timeout(grace, answered).await;
                inner.end_all(WHY);
                inner.end_use().await;
                drop(ending);
            };
            // The host's own executor may not be tokio.
            let _ = runtime::spawn(work).await;
        }
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

    /// Ends the streams that answer nothing, and the sessions in which nothing is being answered.
    fn end_waiting(&self) {
        let open: Vec<_> = self.lock().values().filter_map(|(_, peer)| peer.upgrade()).collect();
        open.iter().for_each(|peer| peer.end_streams());
        self.sessions.end_waiting(End::ServerClosed, WHY);
        self.pairs.end_waiting(End::ServerClosed, WHY);
    }

    /// Returns true if a request is being answered, listen streams aside.
    fn is_answering(&self) -> bool {
        self.stateless.len() > 0 || self.sessions.in_flight() + self.pairs.in_flight() > 0
    }
}

/// The answer to what would begin while the endpoint ends.
pub(super) fn refused(id: Option<&Id>) -> Response<Body> {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, WHY).with_id(id).into()
}
