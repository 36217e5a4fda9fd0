use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::idiom;
use crate::jsonrpc::RawJson;
use crate::model::{TaskMetadata, TraceContext};
use crate::options::check_object;
use crate::protocol::Origin;
use crate::protocol::revision::object;
use crate::protocol::revision::shape::with_meta;

/// Keeps a request alive; dropped before the answer it cancels the request at the peer.
pub(crate) type Guard = Box<dyn Send + Sync>;

/// Hears of a request's outcome, once.
pub(crate) type Done = Box<dyn FnOnce(Result<RawJson>) + Send>;

/// Use of the answers that a client keeps, for one request (revision 2026-07-28).
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::CacheMode;
/// use tricorn::prelude::*;
///
/// # let server = Server::new("shop").resource(Resource::new("shop://prices", "prices"), async || Ok("1 euro"));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// // The user has pressed "reload".
/// let anew = CallOptions::new().cache(CacheMode::Refresh);
/// let prices = client.read_resource_with("shop://prices", &anew).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheMode {
    /// A kept answer that is fresh is given; else the server's is, and kept.
    #[default]
    Default,
    /// The server is asked, and its answer kept instead of the one before.
    Refresh,
    /// The server is asked; what is kept stays as it is.
    Bypass,
}

/// Hears what is told on a listen stream: the method and the parameters of each notification.
pub(crate) type Told = Arc<dyn Fn(&str, Option<RawJson>) + Send + Sync>;

/// Options of one request.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use std::time::Duration;
/// use tricorn::prelude::*;
///
/// # let server = Server::new("printer").tool("print", "Print", async || Ok("printed"));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let options = CallOptions::new()
///     .timeout(Duration::from_secs(10)) // of silence: each report of progress begins it anew
///     .max_timeout(Duration::from_secs(300))
///     .on_progress(|progress| println!("{}", progress.get()))
///     .idempotent(true);
/// let printed = client.call_tool_with("print", json!({}), &options).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Time without an answer or progress after which the request is given up; `None` is the client's default, and no
    /// limit for what a handler asks: its call has one. Zero is no limit.
    pub timeout: Option<Duration>,
    /// The time is the client's own (`request_timeout`), not this request's.
    pub(crate) by_default: bool,
    /// Time after which the request is given up, progress or not; `None` and zero are no limit.
    pub max_timeout: Option<Duration>,
    /// Asks for progress: called with `{progress, total?, message?}`, from any thread.
    pub progress: Option<Arc<dyn Fn(RawJson) + Send + Sync>>,
    /// The request's `_meta`, an object; of members that the parameters' own `_meta` has too, these count.
    pub meta: Option<RawJson>,
    /// The request may be sent again although nobody knows whether it was carried out. Listing, reading and the like
    /// always may; a tool's call only when this says so.
    pub idempotent: bool,
    /// Has the request run as a task of the peer (revision 2025-11-25), and finishes with the task's result. Given up, it
    /// cancels the task. [`Unsupported`](crate::ErrorKind::Unsupported) when the peer does not declare that.
    pub task: Option<TaskMetadata>,
    /// The use of answers that the client has kept, and the keeping of the new one. For requests of clients.
    pub cache: CacheMode,
    /// A result of another type than this library knows (`resultType`, revision 2026-07-28) is given as it is: those of
    /// extensions. Default: no, it is [`PeerMisbehaved`](crate::ErrorKind::PeerMisbehaved).
    pub any_result: bool,
    /// The trace that the request belongs to; of members that `_meta` has too, those count. `None` is what
    /// [`ClientOptions::trace_context`](crate::client::ClientOptions::trace_context) says, and of what a handler asks the
    /// trace of its request.
    pub trace_context: Option<TraceContext>,
    /// Progress is heard after the answer, too, until what guards the request is dropped.
    pub(crate) lasting: bool,
    /// It opens a listen stream, of which this hears.
    pub(crate) told: Option<Told>,
    /// For `tasks/get`: asks again and again until the task is finished, and lets its questions come.
    pub(crate) wait: bool,
    /// For a question: all that are asked at the same time. None is sent when one of them cannot be.
    pub(crate) together: Vec<(String, RawJson)>,
    /// For a form: the library that made it judges the answer, so it is not checked here.
    pub(crate) judged: bool,
    /// For a question: the handler asks it by hand, under a key of its own.
    pub(crate) is_by_hand: bool,
    /// For `tasks/get`: finishes with the next change of the task; those with the same number follow each other.
    pub(crate) follow: Option<u64>,
    /// Its cause.
    pub(crate) origin: Option<Origin>,
}

impl CallOptions {
    /// The client's defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up after this time without an answer or progress; never, when it is zero.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gives up after this time, progress or not.
    #[must_use]
    pub fn max_timeout(mut self, timeout: Duration) -> Self {
        self.max_timeout = Some(timeout);
        self
    }

    /// Asks for progress: called with `{progress, total?, message?}`.
    #[must_use]
    pub fn on_progress(mut self, f: impl Fn(RawJson) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(f));
        self
    }

    /// Sends this object as the request's `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: impl Serialize) -> Self {
        self.meta = Some(RawJson::from_value(&meta));
        self
    }

    /// Says that the request may be sent again although nobody knows whether it was carried out.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Says whether an answer that the client has kept will do, and whether the new one is kept.
    #[must_use]
    pub fn cache(mut self, mode: CacheMode) -> Self {
        self.cache = mode;
        self
    }

    /// Takes results of any type, such as those of extensions, as they are.
    #[must_use]
    pub fn any_result(mut self, any: bool) -> Self {
        self.any_result = any;
        self
    }

    /// Says which trace the request belongs to.
    #[must_use]
    pub fn trace_context(mut self, trace: TraceContext) -> Self {
        self.trace_context = Some(trace);
        self
    }

    /// Has the request run as a task, which lives for this time or for as long as the peer likes.
    #[must_use]
    pub fn task(mut self, ttl: Option<Duration>) -> Self {
        let millis = |ttl: Duration| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self.task = Some(TaskMetadata::new(ttl.map(millis)));
        self
    }

    /// Reads `{"timeout": seconds|null, "max_timeout": seconds, "progress": bool, "idempotent": bool, "task": {"ttl"?:
    /// milliseconds}, "cache": "default"|"refresh"|"bypass", "any_result": bool, "trace_context": {"traceparent"?,
    /// "tracestate"?, "baggage"?}, "wait": bool, "follow": number, "together": [[method, params]],
    /// "judged": bool}`. The `bool` says whether progress is wanted; whoever reads this has the
    /// function to call.
    pub(crate) fn parse(text: &str) -> Result<(Self, bool)> {
        let mut options = Self::default();
        if text.is_empty() {
            return Ok((options, false));
        }
        let value: Value = serde_json::from_str(text).map_err(|e| Error::misuse(format!("request options: {e}")))?;
        let Value::Object(members) = value else {
            return Err(Error::misuse(format!("request options: expected an object, got {value}")));
        };
        let mut wants_progress = false;
        for (name, value) in members {
            let time = || {
                let Some(number) = value.as_f64() else {
                    return Err(Error::misuse(format!(
                        "request option {:?}: expected {}, got {value}",
                        idiom::named(&name),
                        idiom::unit()
                    )));
                };
                crate::options::seconds(&name, number)
            };
            match name.as_str() {
                "timeout" if value.is_null() => options.timeout = Some(Duration::ZERO),
                "timeout" => options.timeout = Some(time()?),
                "max_timeout" if value.is_null() => {}
                "max_timeout" => options.max_timeout = Some(time()?),
                "progress" => wants_progress = value.as_bool().unwrap_or(false),
                "task" if value.is_null() => {}
                "task" if value.is_object() => {
                    let metadata = serde_json::from_value(value).map_err(|e| {
                        Error::misuse(format!("request option \"task\": expected \"ttl\" in milliseconds: {e}"))
                    })?;
                    options.task = Some(metadata);
                }
                "task" => {
                    return Err(Error::misuse(format!("request option \"task\": expected an object, got {value}")));
                }
                "cache" if value.is_null() => {}
                "cache" => {
                    options.cache = match value.as_str() {
                        Some("default") => CacheMode::Default,
                        Some("refresh") => CacheMode::Refresh,
                        Some("bypass") => CacheMode::Bypass,
                        _ => {
                            let expected = "\"default\", \"refresh\" or \"bypass\"";
                            let why = format!("request option \"cache\": expected {expected}, got {value}");
                            return Err(Error::misuse(why));
                        }
                    };
                }
                "trace_context" if value.is_null() => {}
                "trace_context" => options.trace_context = Some(TraceContext::of_value(&value)?),
                "idempotent" => options.idempotent = value.as_bool().unwrap_or(false),
                "any_result" => options.any_result = value.as_bool().unwrap_or(false),
                "wait" => options.wait = value.as_bool().unwrap_or(false),
                "judged" => options.judged = value.as_bool().unwrap_or(false),
                "follow" => options.follow = value.as_u64(),
                "together" => {
                    let several: Vec<(String, Value)> = serde_json::from_value(value)
                        .map_err(|e| Error::misuse(format!("request option \"together\": {e}")))?;
                    options.together.extend(several.into_iter().map(|(name, p)| (name, RawJson::from_value(&p))));
                }
                _ => {
                    return Err(Error::misuse(format!(
                        "request option {name:?}: unknown, expected \"timeout\", \"max_timeout\", \"progress\", \
                         \"idempotent\", \"task\", \"cache\", \"any_result\", \"trace_context\", \"wait\", \"follow\", \"judged\" or \"together\""
                    )));
                }
            }
        }
        Ok((options, wants_progress))
    }
}

impl std::fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallOptions")
            .field("timeout", &self.timeout)
            .field("max_timeout", &self.max_timeout)
            .field("progress", &self.progress.is_some())
            .field("meta", &self.meta)
            .field("idempotent", &self.idempotent)
            .field("task", &self.task)
            .field("cache", &self.cache)
            .field("trace_context", &self.trace_context)
            .finish_non_exhaustive()
    }
}

/// The parameters of a request as they go out under these options.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) when they or the options' `meta` are no object, or the arguments of a tool are
/// none.
pub(crate) fn prepared(method: &str, params: Option<RawJson>, options: &CallOptions) -> Result<Option<RawJson>> {
    let is_call = method == "tools/call";
    let called = if is_call { idiom::named("call_tool") } else { method.into() };
    if let Some(params) = &params {
        check_object(format_args!("{method}: parameters"), params)?;
        let members = if is_call { object::members(params.get()) } else { Vec::new() };
        for (name, value) in members {
            match &*name {
                // Servers take both for none: a bridge passes on what a client wrote.
                "arguments" if matches!(value.get(), "null" | "[]") => {}
                "arguments" => {
                    check_object(format_args!("{called}: arguments"), &params.slice(value))?;
                }
                "_meta" => check_object(format_args!("{called}: meta"), &params.slice(value))?,
                _ => {}
            }
        }
    }
    let Some(meta) = &options.meta else { return Ok(params) };
    check_object(format_args!("{called}: meta"), meta)?;
    Ok(Some(with_meta(params.as_ref(), meta)))
}

#[derive(Default)]
struct Slot {
    outcome: Option<Result<RawJson>>,
    waker: Option<Waker>,
}

/// The answer to a request, as a future. Dropping it cancels the request at the peer.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use std::time::Duration;
/// use tricorn::jsonrpc::RawJson;
/// use tricorn::prelude::*;
///
/// # let server = Server::new("demo").tool("add", "Add", async || Ok(3));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let params = RawJson::from_value(&json!({"name": "add"}));
/// let answer = client.request("tools/call", Some(params), &CallOptions::new());
/// // Dropped by the time that is over, it cancels the request.
/// if let Ok(result) = tokio::time::timeout(Duration::from_secs(5), answer).await {
///     println!("{}", result?.get());
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct Answer {
    slot: Arc<Mutex<Slot>>,
    guard: Option<Guard>,
}

impl Answer {
    /// Starts a request with what hears of its outcome.
    pub(crate) fn of(start: impl FnOnce(Done) -> Guard) -> Self {
        let slot: Arc<Mutex<Slot>> = Arc::default();
        let filled = slot.clone();
        let done = Box::new(move |outcome| {
            let mut slot = filled.lock().unwrap_or_else(PoisonError::into_inner);
            slot.outcome = Some(outcome);
            let waker = slot.waker.take();
            drop(slot);
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        let guard = start(done);
        Self { slot, guard: Some(guard) }
    }

    fn poll_outcome(&self, cx: &Context<'_>) -> Poll<Result<RawJson>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// The answer with what guards the request.
    pub(super) async fn kept(&mut self) -> (Result<RawJson>, Option<Guard>) {
        let outcome = std::future::poll_fn(|cx| self.poll_outcome(cx)).await;
        (outcome, self.guard.take())
    }
}

impl Future for Answer {
    type Output = Result<RawJson>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outcome = self.poll_outcome(cx);
        if outcome.is_ready() {
            self.guard = None;
        }
        outcome
    }
}
