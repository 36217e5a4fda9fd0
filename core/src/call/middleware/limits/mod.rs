//! Middleware that refuses: so many requests in a time, so many at once. Processes that share a store count together.

#[cfg(feature = "redis")]
mod shared;

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::{HashMapStateStore, ShrinkableKeyedStateStore};
use governor::{Quota, RateLimiter};
use serde_json::json;

#[cfg(feature = "redis")]
pub(super) use self::shared::join;
use super::{Middleware, Next, Request};
use crate::call::{BoxFuture, Context};
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::protocol::Role;
use crate::protocol::revision::Revision;

/// Clients whose requests are counted apart; when more are active at once, the rest share one count.
const MAX_SESSIONS: usize = 10_000;
/// Between two looks for sessions whose counts can be forgotten.
const SWEEP: Duration = Duration::from_secs(1);

/// That of the platform, which is not everywhere the one of `std`.
type Instant = <MonotonicClock as Clock>::Instant;

type Limiter = RateLimiter<String, Sessions, MonotonicClock, NoOpMiddleware<Instant>>;

/// The counts of sessions, and under "" that of all others.
#[derive(Clone, Default)]
struct Sessions(Arc<HashMapStateStore<String>>);

impl Sessions {
    /// Returns true if there is no room for this one, which has no count yet.
    fn is_full_for(&self, session: &String) -> bool {
        let counts = self.0.lock();
        counts.len() >= MAX_SESSIONS && !counts.contains_key(session)
    }
}

impl StateStore for Sessions {
    type Key = String;

    fn measure_and_replace<T, F, E>(&self, session: &String, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        match self.is_full_for(session) {
            true => self.0.measure_and_replace(&String::new(), f),
            false => self.0.measure_and_replace(session, f),
        }
    }
}

impl ShrinkableKeyedStateStore<String> for Sessions {
    fn retain_recent(&self, drop_below: Nanos) {
        self.0.retain_recent(drop_below);
    }

    fn len(&self) -> usize {
        ShrinkableKeyedStateStore::len(&*self.0)
    }

    fn is_empty(&self) -> bool {
        ShrinkableKeyedStateStore::is_empty(&*self.0)
    }
}

/// Lets so many requests through in a time, and answers the others with an error (−32603, in older revisions −32000) that
/// says when to come back (`data.retryAfter`, in seconds).
///
/// ```
/// use std::num::NonZeroU32;
/// use tricorn::middleware::RateLimit;
/// use tricorn::prelude::*;
///
/// let burst = NonZeroU32::new(20).unwrap();
/// let limit = RateLimit::per_second(5.0)?.burst(burst).per_session();
/// let server = Server::new("shop").middleware(limit).tool("buy", "Buy fruit", async || Ok("bought"));
/// # Ok::<(), tricorn::Error>(())
/// ```
#[derive(Clone)]
pub struct RateLimit {
    quota: Quota,
    limiter: Arc<Limiter>,
    sessions: Sessions,
    /// Time of the last look for counts that can be forgotten.
    swept: Arc<Mutex<Option<Instant>>>,
    per_session: bool,
    #[cfg(feature = "redis")]
    shared: shared::SharedRate,
}

impl RateLimit {
    /// Allows this many requests each second, and as many at once.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a rate that is not positive.
    pub fn per_second(requests: f64) -> Result<Self> {
        let bad = || Error::misuse(format!("rate limit: expected more than 0 requests each second, got {requests}"));
        let apart = Duration::try_from_secs_f64(1.0 / requests).map_err(|_| bad())?;
        let burst = NonZeroU32::new(requests.ceil() as u32).ok_or_else(bad)?;
        let quota = Quota::with_period(apart).ok_or_else(bad)?.allow_burst(burst);
        let (limiter, sessions) = limiter(quota);
        Ok(Self {
            quota,
            limiter,
            sessions,
            swept: Arc::default(),
            per_session: false,
            #[cfg(feature = "redis")]
            shared: shared::SharedRate::default(),
        })
    }

    /// Lets so many through at once after a pause. Default: as many as in one second.
    #[must_use]
    pub fn burst(mut self, requests: NonZeroU32) -> Self {
        self.quota = self.quota.allow_burst(requests);
        (self.limiter, self.sessions) = limiter(self.quota);
        self
    }

    /// Counts each client apart: each legacy HTTP session, else, where access tokens are checked, each principal, and over
    /// standard streams and in memory each connection. Requests over HTTP that have neither session nor principal, those
    /// of revision 2026-07-28 without authorization, are counted together. Default: all requests together.
    ///
    /// Processes that share a store count together, but for standard streams and connections in memory.
    #[must_use]
    pub fn per_session(mut self) -> Self {
        self.per_session = true;
        self
    }

    /// Lets a request go on, if there is room for it.
    ///
    /// # Errors
    /// In which time it may come again.
    fn check(&self, session: &str) -> Result<(), Duration> {
        let session = session.to_owned();
        if self.sessions.is_full_for(&session) && self.sweeps(MonotonicClock.now()) {
            // Forgets those that are as good as new.
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&session).map_err(|refusal| refusal.wait_time_from(MonotonicClock.now()))
    }

    /// Returns true if it is time to look for what can be forgotten.
    fn sweeps(&self, now: Instant) -> bool {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let due = swept.is_none_or(|last| now.duration_since(last) >= SWEEP);
        if due {
            *swept = Some(now);
        }
        due
    }
}

/// Returns the answer to a request that there is no room for.
fn busy(revision: Revision, message: String) -> Error {
    Error::rpc(revision.rules().busy, message)
}

/// The client that a request is from.
enum Client {
    /// Nothing tells it from others.
    Any,
    /// A session or a principal.
    Known(String),
    /// A connection of this process.
    Own(String),
}

impl Client {
    fn of(context: &Context) -> Self {
        let (transport, link) = (&context.request().transport, context.link());
        let session = transport.session_id.as_deref().map(str::to_owned);
        let principal = || transport.principal.as_ref().map(|principal| principal.identity().to_string());
        if let Some(client) = session.or_else(principal) {
            return Self::Known(client);
        }
        // A server has one connection for all clients that are of no session over HTTP.
        let is_own = transport.kind != "http" || link.role() == Role::Client;
        if is_own { Self::Own(link.number().to_string()) } else { Self::Any }
    }

    fn name(&self) -> &str {
        match self {
            Self::Any => "",
            Self::Known(name) | Self::Own(name) => name,
        }
    }
}

fn limiter(quota: Quota) -> (Arc<Limiter>, Sessions) {
    let sessions = Sessions::default();
    (Arc::new(RateLimiter::new(quota, sessions.clone(), MonotonicClock)), sessions)
}

impl std::fmt::Debug for RateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RateLimit").field("quota", &self.quota).field("per_session", &self.per_session).finish()
    }
}

impl Middleware for RateLimit {
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        let client = if self.per_session { Client::of(&context) } else { Client::Any };
        #[cfg(feature = "redis")]
        if !matches!(client, Client::Own(_))
            && let Some(place) = self.shared.place()
        {
            return self.clone().handle_shared(place, client, request, context, next);
        }
        match self.check(client.name()) {
            Ok(()) => next.run(request, &context),
            Err(wait) => Box::pin(std::future::ready(Err(too_many(&context, wait)))),
        }
    }
}

/// Returns the answer to a request that comes too soon.
fn too_many(context: &Context, wait: Duration) -> Error {
    let wait = wait.as_secs_f64();
    let error = busy(context.request().revision, format!("too many requests (rate limit): try again in {wait:.1} s"));
    error.with_data(RawJson::from_value(&json!({"retryAfter": (wait * 1e3).ceil() / 1e3})))
}

/// Lets so many requests run at once; others wait their turn, and beyond a number of those are refused (−32603, in older
/// revisions −32000). Requests about tasks are not counted: they wait for what runs.
///
/// Processes that share a store count those that run together, and those that wait each for itself.
///
/// ```
/// use tricorn::middleware::ConcurrencyLimit;
/// use tricorn::prelude::*;
///
/// // Two printers, and a short queue.
/// let limit = ConcurrencyLimit::new(2)?.max_waiting(8);
/// let server = Server::new("office").middleware(limit).tool("print", "Print", async || Ok("printed"));
/// # Ok::<(), tricorn::Error>(())
/// ```
#[cfg(feature = "runtime")]
#[derive(Debug, Clone)]
pub struct ConcurrencyLimit {
    most: usize,
    running: Arc<tokio::sync::Semaphore>,
    places: Arc<tokio::sync::Semaphore>,
    #[cfg(feature = "redis")]
    shared: Arc<shared::SharedRunning>,
}

#[cfg(feature = "runtime")]
impl ConcurrencyLimit {
    /// At most `most` requests at once, 256 waiting.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for 0: no request would ever run.
    pub fn new(most: usize) -> Result<Self> {
        if most == 0 {
            return Err(Error::misuse("middleware: option \"max\": expected a number of at least 1, got 0"));
        }
        Ok(Self {
            most,
            running: semaphore(most),
            places: semaphore(256),
            #[cfg(feature = "redis")]
            shared: Arc::default(),
        })
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
        // Streams stay open, and cost nothing meanwhile.
        if request.method.starts_with("tasks/") || request.method == "subscriptions/listen" {
            return next.run(request, &context);
        }
        let (running, most, revision) = (self.running.clone(), self.most, context.request().revision);
        let refused = move || {
            let message = format!("more than {most} requests at once (concurrency limit): try again later");
            busy(revision, message)
        };
        let place = match running.clone().try_acquire_owned() {
            Ok(permit) => Ok(permit),
            Err(_) => Err(self.places.clone().try_acquire_owned()),
        };
        #[cfg(feature = "redis")]
        let (shared, places) = (self.shared.clone(), self.places.clone());
        Box::pin(async move {
            let (permit, place) = match place {
                Ok(permit) => (permit, None),
                Err(Ok(place)) => (running.acquire_owned().await.map_err(|_| refused())?, Some(place)),
                Err(Err(_)) => return Err(refused()),
            };
            let mut turn = Some(permit);
            // Those that run in other processes count, too.
            #[cfg(feature = "redis")]
            let entered = shared.enter(most, &mut turn, || place.map_or_else(|| places.try_acquire_owned(), Ok)).await;
            #[cfg(feature = "redis")]
            let entered = entered.map_err(|_| refused())?;
            #[cfg(not(feature = "redis"))]
            drop(place);
            let outcome = next.run(request, &context).await;
            #[cfg(feature = "redis")]
            drop(entered);
            drop(turn.take());
            outcome
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_that_are_known_keep_their_counts_when_there_are_many() {
        let limit = RateLimit::per_second(0.001).expect("a rate").burst(NonZeroU32::new(2).expect("2")).per_session();
        for session in 0..MAX_SESSIONS {
            assert!(limit.check(&session.to_string()).is_ok());
        }
        let allowed = |session: &str| (0..3).filter(|_| limit.check(session).is_ok()).count();
        assert_eq!((allowed("new"), allowed("newer")), (2, 0), "they share one count");
        assert_eq!((allowed("0"), allowed("9999")), (1, 1), "they had one already");
        assert_eq!(limit.limiter.len(), MAX_SESSIONS + 1);
    }

    #[test]
    fn it_does_not_look_for_what_can_be_forgotten_at_every_request() {
        let limit = RateLimit::per_second(1.0).expect("a rate").per_session();
        let now = Instant::now();
        let swept = [0, 500, 999, 1000, 1500].map(|millis| limit.sweeps(now + Duration::from_millis(millis)));
        assert_eq!(swept, [true, false, false, true, false]);
    }
}
