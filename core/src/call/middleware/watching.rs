//! Middleware that looks on: logging and timing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{Middleware, Next, Request};
use crate::call::{BoxFuture, Context};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, unquoted};
use crate::model::times;
use crate::protocol::Origin;
use crate::report;

/// Outcome of one request.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RequestRecord {
    /// Its method, such as `tools/call`.
    pub method: String,
    /// Its object: the tool's or prompt's name, or the resource's URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Time until its answer. JSON: `seconds`.
    #[serde(rename = "seconds", serialize_with = "times::seconds")]
    pub time: Duration,
    /// The error that it was answered with; a tool's own failure is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// It was cancelled, and not answered.
    pub cancelled: bool,
    /// Its cause.
    #[serde(skip)]
    pub(crate) origin: Option<Origin>,
}

/// Writes down every request with its time and outcome, when it is finished.
///
/// ```
/// use std::time::Duration;
///
/// use tricorn::middleware::Logging;
/// use tricorn::prelude::*;
///
/// let slow = Logging::new(|record| {
///     if record.time > Duration::from_secs(1) {
///         eprintln!("{} {:?} took {:.1?}", record.method, record.name, record.time);
///     }
/// });
/// let server = Server::new("shop").middleware(slow);
/// let handlers = Handlers::new().middleware(Logging::to_stderr()); // of a client: all that it sends
/// ```
#[derive(Clone)]
pub struct Logging(Arc<dyn Fn(&RequestRecord) + Send + Sync>);

impl Logging {
    /// One line of standard error for each request.
    #[must_use]
    pub fn to_stderr() -> Self {
        Self::new(|record| {
            let name = record.name.as_deref().map(|name| format!(" {name:?}")).unwrap_or_default();
            let outcome = match &record.error {
                Some(error) => format!("failed: {error}"),
                None if record.cancelled => "cancelled".to_owned(),
                None => "ok".to_owned(),
            };
            report::say(format_args!("{}{name} {:.1} ms {outcome}", record.method, record.time.as_secs_f64() * 1e3));
        })
    }

    /// Calls this for each request, from any thread.
    #[must_use]
    pub fn new(f: impl Fn(&RequestRecord) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }
}

impl std::fmt::Debug for Logging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logging").finish_non_exhaustive()
    }
}

impl Middleware for Logging {
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        let about = ["name", "uri"].iter().find_map(|key| member(&request, key));
        let (f, origin) = (self.0.clone(), context.request().origin.clone());
        watched(request, context, next, move |method, time, end| {
            let (error, cancelled) = match end {
                None => (None, true),
                Some(outcome) => (outcome.as_ref().err().map(Error::to_string), false),
            };
            f(&RequestRecord { method, name: about, time, error, cancelled, origin });
        })
    }
}

/// A text among the parameters.
fn member(request: &Request, key: &str) -> Option<String> {
    let params = request.params.as_ref()?;
    let members: BTreeMap<String, &serde_json::value::RawValue> = params.borrow().ok()?;
    unquoted(members.get(key)?.get()).map(std::borrow::Cow::into_owned)
}

/// Timings of the requests of one method.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MethodTiming {
    /// Finished requests.
    pub count: u64,
    /// Those of them that were answered with an error or cancelled.
    pub failed: u64,
    /// Time of all of them together. JSON: `seconds`.
    #[serde(rename = "seconds", serialize_with = "times::seconds")]
    pub time: Duration,
    /// Time of the longest one. JSON: seconds.
    #[serde(serialize_with = "times::seconds")]
    pub longest: Duration,
}

/// Adds up how long the requests of each method take. A clone counts in the same place.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// # use serde_json::json;
/// use tricorn::middleware::Timing;
/// use tricorn::prelude::*;
///
/// let timing = Timing::new();
/// let server = Server::new("shop").middleware(timing.clone()).tool("buy", "Buy fruit", async || Ok("bought"));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// # client.call_tool("buy", json!({})).await?;
/// for (method, all) in timing.summary() {
///     println!("{method}: {} requests, {} failed, {:.1?} at most", all.count, all.failed, all.longest);
/// }
/// # assert_eq!(timing.summary()["tools/call"].count, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Timing(Arc<Mutex<BTreeMap<String, MethodTiming>>>);

/// Methods that are counted apart; a client may send any.
const MAX_METHODS: usize = 256;

impl Timing {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the timings so far, by method.
    #[must_use]
    pub fn summary(&self) -> BTreeMap<String, MethodTiming> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, method: String, time: Duration, failed: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_METHODS && !all.contains_key(&method) {
            return;
        }
        let timing = all.entry(method).or_default();
        timing.count += 1;
        timing.failed += u64::from(failed);
        timing.time += time;
        timing.longest = timing.longest.max(time);
    }
}

impl Middleware for Timing {
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        let all = self.clone();
        watched(request, context, next, move |method, time, end| {
            all.count(method, time, !matches!(end, Some(Ok(_))));
        })
    }
}

/// Runs a request and tells `f` how it ended, `None` for cancelled.
fn watched(
    request: Request,
    context: Context,
    next: Next,
    f: impl FnOnce(String, Duration, Option<&Result<RawJson>>) + Send + 'static,
) -> BoxFuture<Result<RawJson>> {
    struct Watch<F: FnOnce(String, Duration, Option<&Result<RawJson>>)>(Option<(F, String)>, Instant);
    impl<F: FnOnce(String, Duration, Option<&Result<RawJson>>)> Watch<F> {
        fn end(&mut self, outcome: Option<&Result<RawJson>>) {
            if let Some((f, method)) = self.0.take() {
                f(method, self.1.elapsed(), outcome);
            }
        }
    }
    impl<F: FnOnce(String, Duration, Option<&Result<RawJson>>)> Drop for Watch<F> {
        fn drop(&mut self) {
            self.end(None);
        }
    }
    let mut watch = Watch(Some((f, request.method.clone())), Instant::now());
    Box::pin(async move {
        let outcome = next.run(request, &context).await;
        watch.end(Some(&outcome));
        outcome
    })
}
