use std::any::Any;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;

use super::handler::{BoxFuture, Handler};
use super::request::{Answer, CallOptions, Done, Guard, prepared};
#[cfg(feature = "runtime")]
use super::rounds::ByHand;
use super::tasks::{self, Requestor};
use super::trace::traced;
use super::unasked::unasked;
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::model::Principal;
use crate::options::check_object;
use crate::protocol::revision::{Era, Method, modern};
use crate::protocol::{CallId, Input, LogLevel, Payload, RequestContext, Role, States};
use crate::report;
use crate::signal::Signal;

/// Data of a layer above for one connection.
pub(crate) type SessionSlot = OnceLock<Arc<dyn Any + Send + Sync>>;

/// The way to the peer, whatever moves the bytes.
pub(crate) trait Link: Send + Sync {
    /// The request runs from now on, and can be cancelled through its context. `false`: it was cancelled already.
    fn started(&self, context: &Context) -> bool;
    /// The request is finished.
    fn complete(self: Arc<Self>, call: CallId, outcome: Result<Payload>);
    /// Anything else that a handler does.
    fn input(self: Arc<Self>, input: Input);
    /// Runs the rest of a handler that has to wait.
    fn spawn(&self, future: BoxFuture<()>);
    /// Runs what blocks on a thread for that.
    fn block(&self, work: Box<dyn FnOnce() + Send>);
    /// The level that a legacy session asked for.
    fn log_level(&self) -> Option<LogLevel>;
    /// Sends a request to the peer; `related` is the peer's own request that it belongs to. `done` is called once, from
    /// any thread; dropping what is returned cancels.
    fn request(
        self: Arc<Self>,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        related: Option<CallId>,
        done: Done,
    ) -> Guard;
    /// Requests to the peer that wait for an answer.
    fn awaited(&self) -> usize;
    /// Returns the role of this side.
    fn role(&self) -> Role;
    /// Returns true if it would change anything, should a legacy client's subscription to a resource begin or end.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    fn subscription(&self, uri: &str, begins: bool) -> Result<bool>;
    /// A legacy client's subscription to a resource begins or ends.
    ///
    /// # Errors
    /// The JSON-RPC error to answer with.
    fn subscribe(&self, uri: &str, begins: bool) -> Result<()>;
    /// Returns true if this side declared the capability to the peer.
    fn declares(&self, capability: &str) -> bool;
    /// Returns true if this side declared the extension to the peer.
    fn declares_extension(&self, _id: &str) -> bool {
        false
    }
    /// Returns the data of a layer above for this connection.
    fn session(&self) -> &SessionSlot;
    /// Ends the stream that the request's answer goes on; its client comes back for the rest.
    fn close_stream(&self, _call: CallId) {}
    /// Holds answers back until [`uncork`](Self::uncork), so that several go out at once.
    fn cork(&self) {}
    /// Sends what was held back.
    fn uncork(&self) {}
    /// Time and timers.
    fn clock(&self) -> Arc<dyn Clock>;
    /// Tells this connection from all others of the process.
    fn number(&self) -> u64;
    /// Returns true if what belongs to no request goes out at once, and does not wait for a stream.
    fn is_heard(&self) -> bool;
    /// Returns true if somebody reads what goes out before the answer to this request.
    fn is_read(&self, call: CallId) -> bool;
    /// Messages that wait for a stream may go out with the answer to this request.
    fn take_up(&self, call: CallId);
    /// The request is about to be answered with a task. `stop` ends that when the peer will not hear of it after all.
    fn created(&self, _task: &Arc<str>, _stop: Box<dyn FnOnce() + Send>) {}
    /// The handler waits for an answer of the peer until this is dropped.
    fn waiting(self: Arc<Self>) -> Guard {
        Box::new(())
    }
    /// Says what a task is doing.
    fn set_status(&self, _message: &str) {}
    /// The request goes on as a task, if its client can take one. Says whether it does.
    ///
    /// # Errors
    /// The reason why there can be no more tasks.
    fn detach(&self, _context: &Context) -> Result<bool> {
        Ok(false)
    }
    /// The task that it has become on its way.
    fn task_id(&self) -> Option<Arc<str>> {
        None
    }
    /// Returns true if it does already.
    fn is_detached(&self) -> bool {
        false
    }
}

/// Time and timers of the layers that move bytes.
pub(crate) trait Clock: Send + Sync {
    /// Monotonic time.
    fn now(&self) -> Duration;
    /// Does this after a while, unless what is returned is dropped before. Without a runtime, never.
    fn later(&self, delay: Duration, work: Box<dyn FnOnce() + Send>) -> Guard;
}

/// One running request, as its handler sees it. A clone is a reference count.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// # use serde_json::json;
/// use tricorn::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Print { pages: u32 }
/// #[derive(Deserialize, JsonSchema)]
/// struct Paper { size: String }
///
/// let print = async |Print { pages }: Print, cx: Context| {
///     let Some(Paper { size }) = cx.elicit_as("Paper?").await? else { return Err(HandlerError::new("no paper")) };
///     for page in 1..=pages {
///         cx.progress(page.into(), Some(pages.into()), None);
///     }
///     Ok(format!("{pages} pages of {size}"))
/// };
/// let server = Server::new("printer").tool("print", "Print some pages", print);
/// # let handlers = Handlers::new().elicitation(async || Ok(json!({"size": "A4"})));
/// # let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await?;
/// # assert_eq!(client.call_tool("print", json!({"pages": 3})).await?.text(), "3 pages of A4");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Context(Arc<Inner>, States);

struct Inner {
    call: CallId,
    request: RequestContext,
    link: Arc<dyn Link>,
    handler: Arc<dyn Handler>,
    cancelled: Signal,
    /// Questions that the handler asked by hand, where there are no rounds.
    #[cfg(feature = "runtime")]
    by_hand: OnceLock<Arc<ByHand>>,
    /// The number under which a bridge knows this request.
    tag: AtomicU64,
}

impl Context {
    pub(crate) fn new(call: CallId, request: RequestContext, link: Arc<dyn Link>, handler: Arc<dyn Handler>) -> Self {
        let states = request.states.clone();
        let inner = Inner {
            call,
            request,
            link,
            handler,
            cancelled: Signal::default(),
            #[cfg(feature = "runtime")]
            by_hand: OnceLock::new(),
            tag: AtomicU64::new(0),
        };
        Self(Arc::new(inner), states)
    }

    /// Returns the values that were put beside the request.
    pub(crate) fn states(&self) -> &States {
        &self.1
    }

    /// The value of this type that belongs to the request: what [`Server::lifespan`](crate::Server::lifespan) or
    /// [`Server::state`](crate::Server::state) gave the server, or middleware the request.
    #[must_use]
    pub fn state<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.1.find()
    }

    /// The same request with one more value, for [`state`](Self::state): what middleware hands on. Of several of a type
    /// the last one counts.
    #[must_use]
    pub fn with_state<T: Any + Send + Sync>(&self, value: T) -> Self {
        Self(self.0.clone(), self.1.and(Arc::new(value)))
    }

    pub(crate) fn call(&self) -> CallId {
        self.0.call
    }

    pub(crate) fn tag(&self) -> &AtomicU64 {
        &self.0.tag
    }

    pub(crate) fn link(&self) -> &Arc<dyn Link> {
        &self.0.link
    }

    /// Returns the facts of the request: revision, peer, `_meta`, progress token, transport.
    #[must_use]
    pub fn request(&self) -> &RequestContext {
        &self.0.request
    }

    /// Returns the sender of the request, where the server checks access tokens: over HTTP with `Auth`. `None`
    /// elsewhere.
    #[must_use]
    pub fn principal(&self) -> Option<&Principal> {
        self.0.request.transport.principal.as_deref()
    }

    /// The value of this type among the extensions of the HTTP request that a mounted [`Endpoint`](crate::http::Endpoint)
    /// was given: the user, the trace or the pool that a layer of `tower` or `axum` has put there. `None` where nobody has,
    /// and over other transports.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn host<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.request.transport.beside.as_ref()?.downcast_ref::<http::Extensions>()?.get()
    }

    /// Reports progress. Nothing is sent when the peer did not ask for it, `progress` did not grow or a number is
    /// infinite or none.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if !progress.is_finite() || total.is_some_and(|total| !total.is_finite()) {
            report::say(format_args!("progress {progress} of {total:?} is not reported: expected finite numbers"));
            return;
        }
        if self.0.request.progress_token.is_some() || self.0.link.is_detached() {
            let (call, message) = (self.0.call, message.map(str::to_owned));
            self.0.link.clone().input(Input::Progress { call, progress, total, message });
        }
    }

    /// Returns true if the peer wants log messages of this level: a server takes none.
    pub(crate) fn is_logged(&self, level: LogLevel) -> bool {
        if self.0.link.role() == Role::Client || self.0.link.is_detached() {
            return false;
        }
        let request = &self.0.request;
        let wanted = match request.revision.era() {
            Era::Legacy => self.0.link.log_level().or(request.log_level),
            Era::Modern => request.log_level,
        };
        wanted.is_some_and(|least| level >= least) && !self.is_cancelled()
    }

    /// Sends a log message, unless the peer wants only more severe ones or is a server, which takes none. Says whether it
    /// was sent.
    #[deprecated(note = "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry")]
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: &impl Serialize) -> bool {
        #[derive(Serialize)]
        struct Params<'a, T> {
            level: LogLevel,
            #[serde(skip_serializing_if = "Option::is_none")]
            logger: Option<&'a str>,
            data: &'a T,
        }
        if !self.is_logged(level) {
            return false;
        }
        self.tell("notifications/message", RawJson::from_value(&Params { level, logger, data }));
        true
    }

    /// Sends a notification as part of this request.
    fn tell(&self, method: &'static str, params: RawJson) {
        let (call, link) = (self.0.call, self.0.link.clone());
        // A connection may have requests of both eras.
        let by_answer = self.0.request.revision.era() == Era::Modern && link.role() == Role::Server;
        link.input(match by_answer {
            true => Input::Tell { call, method, params },
            false => Input::Notify { method, params, related: Some(call) },
        });
    }

    /// Sends any request to the peer, as part of this one: over the same stream, cancelled with it. Dropping the future
    /// cancels it, too.
    ///
    /// # Errors
    /// [`Unsupported`](crate::ErrorKind::Unsupported) when the revision has no such request or the peer does not
    /// declare the capability, and nothing was sent; [`Rpc`](crate::ErrorKind::Rpc) for the peer's error;
    /// [`Timeout`](crate::ErrorKind::Timeout), [`Closed`](crate::ErrorKind::Closed).
    pub fn ask(&self, method: &str, params: Option<RawJson>, options: &CallOptions) -> Answer {
        Answer::of(|done| self.start(method, params, options, done))
    }

    /// As [`ask`](Self::ask), with a function that hears of the outcome.
    pub(crate) fn start(&self, method: &str, params: Option<RawJson>, options: &CallOptions, done: Done) -> Guard {
        let checked = prepared(method, params, options).and_then(|params| {
            let request = &self.0.request;
            options.task.map_or(Ok(()), |_| tasks::check(request.revision, &request.peer.capabilities, method))?;
            #[cfg(feature = "runtime")]
            {
                if self.0.link.is_detached() {
                    self.can_ask(method, params.as_ref())?;
                }
                // All of them, so that each is named that cannot be.
                let refused = options.together.iter().map(|(method, params)| self.can_ask(method, Some(params)));
                refused.fold(Ok(()), Result::and)?;
            }
            Ok(params)
        });
        let trace = || options.trace_context.clone().or_else(|| self.trace_context());
        match checked {
            #[cfg(feature = "runtime")]
            Ok(params) if self.asks_by_rounds(method) => {
                self.ask_by_rounds(method, params, trace(), options.judged, done)
            }
            Ok(params) => {
                #[cfg(feature = "runtime")]
                let done = match self.known(method, params.as_ref(), options, done) {
                    Ok(done) => done,
                    Err((done, answer)) => {
                        done(Ok(answer));
                        return Box::new(());
                    }
                };
                let params = match trace() {
                    Some(trace) => Some(traced(params.as_ref(), &trace)),
                    None => params,
                };
                let waiting = self.0.link.clone().waiting();
                let done: Done = Box::new(move |outcome| {
                    drop(waiting);
                    done(outcome.map_err(Error::of_answer));
                });
                match options.task {
                    None => self.0.link.clone().request(method, params, options, Some(self.0.call), done),
                    Some(metadata) => {
                        let options = CallOptions { meta: None, ..options.clone() };
                        self.requestor().start(method, params, metadata, options, done)
                    }
                }
            }
            Err(error) => {
                done(Err(error));
                Box::new(())
            }
        }
    }

    /// Answers a question that was answered in an earlier run of the handler; else `done` remembers its answer.
    #[cfg(feature = "runtime")]
    fn known(
        &self,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> Result<Done, (Done, RawJson)> {
        let question = (!options.is_by_hand && options.task.is_none()).then(|| self.question(method, params)).flatten();
        let Some(question) = question else { return Ok(done) };
        if let Some(answer) = self.0.by_hand.get().and_then(|by_hand| by_hand.answer(&question)) {
            return Err((done, answer));
        }
        let by_hand = self.by_hand().clone();
        Ok(Box::new(move |outcome| {
            if let Ok(result) = &outcome {
                by_hand.answered(question, result);
            }
            done(outcome);
        }))
    }

    /// Returns the questions that the handler asked by hand in a revision without rounds.
    #[cfg(feature = "runtime")]
    pub(super) fn by_hand(&self) -> &Arc<ByHand> {
        self.0.by_hand.get_or_init(Arc::default)
    }

    #[cfg(feature = "runtime")]
    pub(super) fn asked_by_hand(&self) -> Option<&ByHand> {
        self.0.by_hand.get().map(|by_hand| &**by_hand).filter(|by_hand| by_hand.has_asked())
    }

    /// Runs the handler again.
    #[cfg(feature = "runtime")]
    pub(super) fn run_again(&self, params: RawJson, reply: super::Reply) {
        let _scope = super::Scope::enter(self);
        self.0.handler.call(self.clone(), params, reply);
    }

    /// Follows the peer's tasks.
    fn requestor(&self) -> Requestor {
        let (link, call) = (self.0.link.clone(), self.0.call);
        let ask = move |method: &str, params: Option<RawJson>, options: &CallOptions| {
            let params = match &options.trace_context {
                Some(trace) => Some(traced(params.as_ref(), trace)),
                None => params,
            };
            Answer::of(|done| link.clone().request(method, params, options, Some(call), done))
        };
        Requestor::new(Arc::new(ask), self.0.link.clone(), self.0.request.revision)
    }

    /// Sends a notification to the peer, as part of this request. In 2026-07-28 what the client has not asked for is not
    /// sent: log messages below its level, progress without its token, the end of a visit; changes go to its listen
    /// streams.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for what is no notification of this side in this revision, or not a handler's
    /// to send, and for parameters that are no object.
    pub fn notify(&self, method: &str, params: Option<RawJson>) -> Result<()> {
        params.as_ref().map_or(Ok(()), |params| check_object(format_args!("{method}: parameters"), params))?;
        let revision = self.0.request.revision;
        if revision.era() == Era::Modern
            && self.0.link.role() == Role::Server
            && let Some(instead) = unasked(&self.0.request, method, params.as_ref())?
        {
            instead.into_iter().for_each(|input| self.0.link.clone().input(input));
            return Ok(());
        }
        let role = self.0.link.role();
        let ours = |row: &&Method| match role {
            Role::Server => row.from_server(),
            Role::Client => row.from_client(),
        };
        let row = Method::find(method).filter(|row| row.notification && row.exists_in(revision)).filter(ours);
        let Some(row) = row else {
            let side = if role == Role::Client { "client" } else { "server" };
            return Err(Error::misuse(format!("{method:?} is no notification of a {side} in revision {revision}")));
        };
        self.tell(row.name, params.unwrap_or_else(RawJson::empty_object));
        Ok(())
    }

    /// Passes on a notification of somebody else outside the protocol, as part of this request, in a session that
    /// begins with a handshake. Any other is not sent.
    #[doc(hidden)]
    pub fn pass_on(&self, method: &str, params: Option<RawJson>) {
        if self.0.request.revision.era() == Era::Legacy
            && let Some(row) = Method::foreign(method)
        {
            self.tell(row.name, params.unwrap_or_else(RawJson::empty_object));
        }
    }

    /// Goes on as a task (revision 2026-07-28, extension `io.modelcontextprotocol/tasks`): the client is answered with the
    /// task at once, may go away, and comes back for the result; what is asked from now on waits in the task until then.
    /// `false`: the client does not declare the extension, or the server has no tasks (option `tasks`), and nothing has
    /// changed; so in middleware. A tool that is always to do so says [`task_support`](crate::model::Tool::task_support).
    ///
    /// # Errors
    /// Too many tasks are being worked on; [`Misuse`](crate::ErrorKind::Misuse) when questions of the request wait for
    /// their answers.
    pub fn run_as_task(&self) -> Result<bool> {
        #[cfg(feature = "runtime")]
        if self.has_asked() {
            return Err(Error::misuse("the request cannot go on as a task while its questions wait for their answers"));
        }
        self.0.link.detach(self)
    }

    /// The task that the request runs as, if it does.
    #[must_use]
    pub fn task_id(&self) -> Option<Arc<str>> {
        self.0.request.task_id.clone().or_else(|| self.0.link.task_id())
    }

    /// Says what the request is doing, for people who look at its task: the task's `statusMessage`. Nothing happens when
    /// it does not run as a task ([`RequestContext::task_id`]).
    pub fn set_status(&self, message: &str) {
        self.0.link.set_status(message);
    }

    /// Ends the event stream that the answer goes on, to free its connection while a long call runs. The client asks
    /// for the rest after `sse_retry` seconds; what is sent meanwhile is kept for it. Where a client would not come
    /// back, or there is no such stream, nothing happens.
    pub fn close_stream(&self) {
        self.0.link.close_stream(self.0.call);
    }

    /// The settings with which the peer declares an extension, `com.example/search`; `None` when either side does not
    /// declare it: then nothing of it may be used.
    #[must_use]
    pub fn extension(&self, id: &str) -> Option<RawJson> {
        let declared = self.0.request.peer.capabilities.extension(id).filter(|_| self.0.link.declares_extension(id))?;
        Some(RawJson::written(declared.get().to_owned()))
    }

    /// Fails when the client does not declare `capability`, a dotted path such as `sampling` or `elicitation.url`.
    ///
    /// # Errors
    /// The JSON-RPC error to answer with: −32021 in modern, −32602 in legacy.
    pub fn require(&self, capability: &str) -> Result<()> {
        let request = &self.0.request;
        if request.peer.capabilities.has(capability) {
            return Ok(());
        }
        Err(match request.revision.era() {
            Era::Modern => modern::missing_capability(capability),
            Era::Legacy => Error::invalid_params(format!("the client does not declare the capability {capability:?}")),
        })
    }

    /// Returns true if the peer has cancelled the request or is gone.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.is_set()
    }

    /// Waits until the peer cancels the request or is gone.
    pub async fn cancelled(&self) {
        self.0.cancelled.wait().await;
    }

    /// Resolves with the future, unless the request is cancelled before.
    #[cfg(feature = "runtime")]
    pub(super) async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.0.cancelled.unless(future).await
    }

    /// The peer no longer wants the answer.
    pub(crate) fn cancel(&self, reason: Option<&str>) {
        if self.0.cancelled.set() {
            self.0.handler.cancel(self, reason);
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("call", &self.0.call).field("request", &self.0.request).finish_non_exhaustive()
    }
}
