//! Middleware that refuses: so many requests in a time, so many at once.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use serde_json::json;

use super::{Middleware, Next, Request};
use crate::call::{BoxFuture, Context};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};

/// Sessions whose requests are counted apart; when more are active at once, the rest share one count.
const MAX_SESSIONS: usize = 10_000;

type Limiter =
    RateLimiter<String, HashMapStateStore<String>, MonotonicClock, NoOpMiddleware<<MonotonicClock as Clock>::Instant>>;

/// Lets so many requests through in a time, and answers the others with an error (−32000) that says when to come back
/// (`data.retryAfter`, in seconds).
#[derive(Clone)]
pub struct RateLimit {
    quota: Quota,
    limiter: Arc<Limiter>,
    per_session: bool,
}

impl RateLimit {
    /// So many requests each second, as many at once.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a rate that is not positive.
    pub fn per_second(requests: f64) -> Result<Self> {
        let bad = || Error::misuse(format!("rate limit: expected more than 0 requests each second, got {requests}"));
        let apart = Duration::try_from_secs_f64(1.0 / requests).map_err(|_| bad())?;
        let burst = NonZeroU32::new(requests.ceil() as u32).ok_or_else(bad)?;
        let quota = Quota::with_period(apart).ok_or_else(bad)?.allow_burst(burst);
        Ok(Self { quota, limiter: limiter(quota), per_session: false })
    }

    /// Lets so many through at once after a pause. Default: as many as in one second.
    #[must_use]
    pub fn burst(mut self, requests: NonZeroU32) -> Self {
        self.quota = self.quota.allow_burst(requests);
        self.limiter = limiter(self.quota);
        self
    }

    /// Counts each legacy HTTP session apart. Default: all requests together.
    #[must_use]
    pub fn per_session(mut self) -> Self {
        self.per_session = true;
        self
    }

    /// Whether a request may go on.
    ///
    /// # Errors
    /// What it is answered with otherwise.
    fn check(&self, context: &Context) -> Result<()> {
        let session = context.request().transport.session_id.as_deref().filter(|_| self.per_session);
        let mut key = session.unwrap_or_default().to_owned();
        if self.limiter.len() >= MAX_SESSIONS {
            // Forgets those that are as good as new.
            self.limiter.retain_recent();
            if self.limiter.len() >= MAX_SESSIONS {
                key.clear();
            }
        }
        self.limiter.check_key(&key).map_err(|refusal| {
            let wait = refusal.wait_time_from(MonotonicClock.now()).as_secs_f64();
            let message = format!("too many requests (rate limit): try again in {wait:.1} s");
            let wait = (wait * 1e3).ceil() / 1e3;
            Error::rpc(code::BUSY, message).with_data(RawJson::from_value(&json!({"retryAfter": wait})))
        })
    }
}

fn limiter(quota: Quota) -> Arc<Limiter> {
    Arc::new(RateLimiter::new(quota, HashMapStateStore::default(), MonotonicClock))
}

impl std::fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimit").field("quota", &self.quota).field("per_session", &self.per_session).finish()
    }
}

impl Middleware for RateLimit {
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        match self.check(&context) {
            Ok(()) => next.run(request, &context),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// Lets so many requests run at once; others wait their turn, and beyond a number of those are refused (−32000).
#[cfg(feature = "runtime")]
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit {
    most: usize,
    running: Arc<tokio::sync::Semaphore>,
    places: Arc<tokio::sync::Semaphore>,
}

#[cfg(feature = "runtime")]
impl ConcurrencyLimit {
    /// At most `most` requests at once, 256 waiting.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, running: semaphore(most), places: semaphore(256) }
    }

    /// At most so many wait; 0 refuses at once.
    #[must_use]
    pub fn max_waiting(mut self, requests: usize) -> Self {
        self.places = semaphore(requests);
        self
    }
}

#[cfg(feature = "runtime")]
fn semaphore(permits: usize) -> Arc<tokio::sync::Semaphore> {
    Arc::new(tokio::sync::Semaphore::new(permits.min(tokio::sync::Semaphore::MAX_PERMITS)))
}

#[cfg(feature = "runtime")]
impl Middleware for ConcurrencyLimit {
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        let busy = |most| {
            let message = format!("more than {most} requests at once (concurrency limit): try again later");
            Error::rpc(code::BUSY, message)
        };
        let (running, most) = (self.running.clone(), self.most);
        let place = match running.clone().try_acquire_owned() {
            Ok(permit) => Ok(permit),
            Err(_) => Err(self.places.clone().try_acquire_owned()),
        };
        Box::pin(async move {
            let permit = match place {
                Ok(permit) => permit,
                Err(Ok(place)) => {
                    let permit = running.acquire_owned().await.map_err(|_| busy(most))?;
                    drop(place);
                    permit
                }
                Err(Err(_)) => return Err(busy(most)),
            };
            let outcome = next.run(request, &context).await;
            drop(permit);
            outcome
        })
    }
}
