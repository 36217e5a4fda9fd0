//! The side that asks for tasks: a request becomes a task of the peer, and its result is had as if it were none.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::call::context::{Clock, Link};
use crate::call::handler::BoxFuture;
use crate::call::request::{Answer, CallOptions, Done, Guard};
use crate::call::trace_of;
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::{Task, TaskMetadata, TaskStatus, TraceContext};
use crate::protocol::Origin;
use crate::protocol::revision::{Revision, ask, object};
use crate::signal::Signal;

/// Between two looks at a task whose result is waited for anyway: they only show that the peer is alive.
const ALIVE: Duration = Duration::from_secs(10);
/// Between two looks when the peer does not say.
const POLL: Duration = Duration::from_secs(1);
/// The shortest and the longest that a receiver may want.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(60);
/// For the result of a task that is over, when nobody says otherwise.
const FETCH: Duration = Duration::from_secs(60);
/// For telling the peer that nobody wants the task any more.
const CANCEL: Duration = Duration::from_secs(10);

/// Hears of progress.
type Progress = Arc<dyn Fn(RawJson) + Send + Sync>;

/// Sends a request as it stands, never as a task.
pub(crate) type Ask = Arc<dyn Fn(&str, Option<RawJson>, &CallOptions) -> Answer + Send + Sync>;

/// Handle that follows a peer's tasks.
#[derive(Clone)]
pub(crate) struct Requestor {
    send: Ask,
    pub(crate) link: Arc<dyn Link>,
    revision: Revision,
    /// Trace of all requests about a task.
    trace: Option<TraceContext>,
    /// Cause of those requests.
    origin: Option<Origin>,
}

/// Output of the future that was ready first of two.
pub(crate) enum First<A, B> {
    A(A),
    B(B),
}

pub(crate) async fn first<A: Future, B: Future>(mut a: Pin<&mut A>, mut b: Pin<&mut B>) -> First<A::Output, B::Output> {
    poll_fn(|cx| match a.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(First::A(output)),
        Poll::Pending => b.as_mut().poll(cx).map(First::B),
    })
    .await
}

async fn sleep(clock: &dyn Clock, time: Duration) {
    let signal = Arc::<Signal>::default();
    let set = signal.clone();
    let _timer = clock.later(
        time,
        Box::new(move || {
            set.set();
        }),
    );
    signal.wait().await;
}

fn named(id: &str) -> Option<RawJson> {
    Some(RawJson::from_value(&json!({"taskId": id})))
}

/// Reads what is known of a task.
///
/// # Errors
/// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved).
pub(crate) fn task(method: &str, result: &RawJson) -> Result<Task> {
    result.to().map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("result of {method}: {e}")))
}

/// A task as the extension tells it, and the members that are not the task's own: `result`, `error`, `inputRequests`.
///
/// # Errors
/// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved).
pub(crate) fn detailed(method: &str, result: &RawJson) -> Result<(Task, Map<String, Value>)> {
    let wrong = |e: serde_json::Error| Error::new(ErrorKind::PeerMisbehaved, format!("result of {method}: {e}"));
    let mut members: Map<String, Value> =
        result.to().map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("result of {method}: {e}")))?;
    for (name, own) in [("ttlMs", "ttl"), ("pollIntervalMs", "pollInterval")] {
        if let Some(value) = members.remove(name) {
            members.insert(own.into(), value);
        }
    }
    members.remove("resultType");
    let rest = ["result", "error", "inputRequests"];
    let rest = rest.into_iter().filter_map(|name| members.remove(name).map(|value| (name.to_owned(), value))).collect();
    let task = serde_json::from_value(members.into()).map_err(wrong)?;
    Ok((task, rest))
}

/// A task as it would be told in 2025-11-25, with what else the extension tells.
pub(crate) fn neutral(task: &Task, rest: Map<String, Value>) -> RawJson {
    let mut members: Map<String, Value> = RawJson::from_value(task).to().unwrap_or_default();
    members.extend(rest);
    RawJson::from_value(&members)
}

/// The task that a request became; none, when it was answered as any other.
///
/// # Errors
/// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved).
pub(crate) fn created(method: &str, result: &RawJson) -> Result<Option<Task>> {
    #[derive(Deserialize)]
    struct CreateTaskResult {
        task: RawJson,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        result_type: String,
    }
    // In 2026-07-28 the task's members are the result's.
    if let Ok(Head { result_type }) = result.to() {
        return match result_type.as_str() {
            "task" => detailed(method, result).map(|(task, _)| Some(task)),
            _ => Ok(None),
        };
    }
    match result.to::<CreateTaskResult>() {
        Ok(created) => task(method, &created.task).map(Some),
        Err(_) => Ok(None),
    }
}

/// The parameters of a request that is to become a task.
pub(crate) fn augmented(params: Option<&RawJson>, metadata: TaskMetadata) -> RawJson {
    let mut text = String::from("{");
    for (key, value) in object::members(params.map_or("{}", RawJson::get)) {
        if key != "task" {
            object::push_member(&mut text, &key, value.get());
        }
    }
    object::push_member(&mut text, "task", RawJson::from_value(&metadata).get());
    text.push('}');
    RawJson::written(text)
}

/// Says whether a peer with these capabilities runs requests of this method as tasks.
///
/// # Errors
/// [`Unsupported`](ErrorKind::Unsupported) naming what is missing.
pub(crate) fn check(revision: Revision, capabilities: &crate::model::Capabilities, method: &str) -> Result<()> {
    let unsupported = |why: String| Err(Error::new(ErrorKind::Unsupported, format!("{method:?} as a task: {why}")));
    let row = crate::protocol::revision::Method::find(method);
    let Some(path) = row.and_then(|row| row.task).filter(|_| revision.rules().tasks) else {
        return unsupported(format!("there is no such thing in revision {revision}"));
    };
    if !capabilities.has(path) {
        return unsupported(format!("the peer does not declare the capability {path:?}"));
    }
    Ok(())
}

/// Runs what follows a task on the link's threads; dropping what is returned ends it.
pub(crate) fn following(
    link: &Arc<dyn Link>,
    work: impl Future<Output = Result<RawJson>> + Send + 'static,
    done: Done,
) -> Guard {
    struct Stop(Arc<Signal>);
    impl Drop for Stop {
        fn drop(&mut self) {
            self.0.set();
        }
    }
    let stop = Arc::<Signal>::default();
    let stopped = stop.clone();
    link.spawn(Box::pin(async move {
        let outcome = match first(pin!(stopped.wait()), pin!(work)).await {
            First::A(()) => return,
            First::B(outcome) => outcome,
        };
        done(outcome);
    }));
    Box::new(Stop(stop))
}

/// Returns the pause between two looks at a task: the one that its receiver names, within reason.
fn interval_of(task: &Task) -> Duration {
    task.poll_interval.map_or(POLL, Duration::from_millis).clamp(SHORTEST, LONGEST)
}

impl Requestor {
    pub(crate) fn new(send: Ask, link: Arc<dyn Link>, revision: Revision) -> Self {
        Self { send, link, revision, trace: None, origin: None }
    }

    /// Sets the trace of the requests from now on, unless one has another.
    pub(crate) fn of_trace(self, trace: Option<TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// Sets the cause of the requests from now on.
    pub(crate) fn of_origin(self, origin: Option<Origin>) -> Self {
        Self { origin, ..self }
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    /// Sends a request as it stands, never as a task.
    pub(crate) fn ask(&self, method: &str, params: Option<RawJson>, options: &CallOptions) -> Answer {
        let (trace, origin) = (options.trace_context.is_none(), options.origin.is_none());
        if (self.trace.is_none() || !trace) && (self.origin.is_none() || !origin) {
            return (self.send)(method, params, options);
        }
        let mut options = options.clone();
        options.trace_context = options.trace_context.or_else(|| self.trace.clone());
        options.origin = options.origin.or_else(|| self.origin.clone());
        (self.send)(method, params, &options)
    }

    /// Sends a request as a task, and finishes with its result. Dropping what is returned cancels the task, also one of
    /// which the peer has not told yet.
    pub(crate) fn start(
        self,
        method: &str,
        params: Option<RawJson>,
        metadata: TaskMetadata,
        options: CallOptions,
        done: Done,
    ) -> Guard {
        let (link, method) = (self.link.clone(), method.to_owned());
        let trace = trace_of(params.as_ref(), options.trace_context.as_ref());
        let this = self.of_trace(trace).of_origin(options.origin.clone());
        following(&link, async move { this.outcome(&method, params, metadata, options).await }, done)
    }

    async fn outcome(
        &self,
        method: &str,
        params: Option<RawJson>,
        metadata: TaskMetadata,
        mut options: CallOptions,
    ) -> Result<RawJson> {
        let Some(most) = options.max_timeout.take().filter(|most| !most.is_zero()) else {
            return self.unbounded(method, params, metadata, options).await;
        };
        let clock = self.link.clock();
        match first(pin!(self.unbounded(method, params, metadata, options)), pin!(sleep(&*clock, most))).await {
            First::A(outcome) => outcome,
            First::B(()) => Err(Error::late(method, most, "max_timeout")),
        }
    }

    async fn unbounded(
        &self,
        method: &str,
        params: Option<RawJson>,
        metadata: TaskMetadata,
        options: CallOptions,
    ) -> Result<RawJson> {
        let asked = augmented(params.as_ref(), metadata);
        let each = CallOptions { timeout: options.timeout, ..CallOptions::default() };
        let wanted = Arc::new(());
        let progress = options.progress.map(|tell| while_wanted(&wanted, tell));
        let judged = options.judged;
        let options = CallOptions { lasting: true, task: None, progress, ..options };
        let answer = Some(self.ask(method, Some(asked), &options));
        let mut creating = Creating { requestor: self.clone(), method: method.to_owned(), answer };
        // The guard that is kept hears of progress.
        let (answer, _progress) = creating.answer().await;
        let answer = answer?;
        let Some(task) = created(method, &answer)? else { return Ok(answer) };
        let mut followed = Followed::new(self.clone(), &task.task_id);
        let result = self.result(&task, &each).await;
        // Failed, expired or cancelled, it is over, too; one whose peer cannot be reached may be finished yet.
        let is_over =
            |error: &Error| matches!(error.kind(), ErrorKind::Rpc | ErrorKind::Cancelled | ErrorKind::Transport);
        followed.over = result.as_ref().map_or_else(is_over, |_| true);
        ask::received(self.revision.rules(), method, params.as_ref(), result?, judged)
    }

    /// Returns the task as it is now.
    pub(crate) async fn status(&self, id: &str, options: &CallOptions) -> Result<Task> {
        task("tasks/get", &self.said(id, options).await?)
    }

    /// As [`status`](Self::status), in the peer's words.
    pub(crate) async fn said(&self, id: &str, options: &CallOptions) -> Result<RawJson> {
        self.ask("tasks/get", named(id), options).await
    }

    /// The result of a task, when it is there; that of one that is over comes at once, or within a minute. `options` are
    /// for that, and for what is asked meanwhile.
    pub(crate) async fn result(&self, task: &Task, options: &CallOptions) -> Result<RawJson> {
        let timed = |timeout| CallOptions { timeout: Some(timeout), ..CallOptions::default() };
        let (id, clock) = (&task.task_id, self.link.clock());
        let interval = interval_of(task);
        let (mut last, mut broken) = (task.status, false);
        loop {
            let over = last.is_terminal();
            let time = if over { options.timeout.unwrap_or(FETCH) } else { Duration::ZERO };
            let mut answer = pin!(self.ask("tasks/result", named(id), &timed(time)));
            let ended = loop {
                match first(answer.as_mut(), pin!(sleep(&*clock, interval.max(ALIVE)))).await {
                    First::A(Ok(result)) => return Ok(result),
                    First::A(Err(error)) => break Some(error),
                    First::B(()) if over => {}
                    // It is over for so long, and there is no answer: that was lost.
                    First::B(()) if last.is_terminal() => break None,
                    First::B(()) => last = self.status(id, options).await?.status,
                }
            };
            let Some(error) = ended else { continue };
            match error.kind() {
                // A stream that broke off is nothing to the task.
                ErrorKind::Transport | ErrorKind::Timeout if !over => {
                    sleep(&*clock, interval).await;
                    last = self.status(id, options).await?.status;
                }
                ErrorKind::Transport if !std::mem::replace(&mut broken, true) => {}
                ErrorKind::Rpc => {
                    let cancelled = self.status(id, options).await.is_ok_and(|t| t.status == TaskStatus::Cancelled);
                    return Err(if cancelled { Error::cancelled("the task was cancelled") } else { error });
                }
                _ => return Err(error),
            }
        }
    }

    /// Waits for a task's result for what comes with it, the task's questions; that this ends says nothing.
    pub(crate) fn hear(&self, id: &str) -> Answer {
        let patient = CallOptions { timeout: Some(Duration::ZERO), ..CallOptions::default() };
        self.ask("tasks/result", named(id), &patient)
    }

    /// Tells the peer that nobody wants the task. It may be over already.
    fn cancel(self, id: &str) -> BoxFuture<()> {
        let options = CallOptions { timeout: Some(CANCEL), ..CallOptions::default() };
        let answer = self.ask("tasks/cancel", named(id), &options);
        Box::pin(async move {
            drop(answer.await);
            // With the client that it may be.
            drop(self);
        })
    }

    #[cfg(feature = "runtime")]
    pub(crate) fn now(&self) -> Duration {
        self.link.clock().now()
    }

    /// Waits for so long.
    #[cfg(feature = "runtime")]
    pub(crate) async fn rest(&self, time: Duration) {
        sleep(&*self.link.clock(), time).await;
    }

    /// Waits until something was heard of a task, or it is time to look at one again of which the peer tells anyway.
    #[cfg(feature = "runtime")]
    pub(crate) async fn pause_told(&self, task: &Task, news: &Signal) {
        let clock = self.link.clock();
        first(pin!(news.wait()), pin!(sleep(&*clock, interval_of(task).max(ALIVE)))).await;
    }

    /// Waits until it is time to look at a task again, something was heard of it, or this is answered.
    pub(crate) async fn pause(
        &self,
        task: &Task,
        news: &Signal,
        answer: Option<&mut Answer>,
    ) -> Option<Result<RawJson>> {
        let clock = self.link.clock();
        let (heard, asleep) = (pin!(news.wait()), pin!(sleep(&*clock, interval_of(task))));
        let pause = pin!(first(heard, asleep));
        let Some(answer) = answer else {
            pause.await;
            return None;
        };
        match first(Pin::new(answer), pause).await {
            First::A(outcome) => Some(outcome),
            First::B(_) => None,
        }
    }
}

/// Tells of progress as long as somebody has this.
fn while_wanted(wanted: &Arc<()>, tell: Progress) -> Progress {
    let wanted = Arc::downgrade(wanted);
    Arc::new(move |params| {
        if wanted.strong_count() > 0 {
            tell(params);
        }
    })
}

/// A request that is to become a task. Dropped before its answer, it waits for that and cancels the task: nothing else
/// would (specification, cancellation: a task is cancelled by `tasks/cancel` alone).
struct Creating {
    requestor: Requestor,
    method: String,
    answer: Option<Answer>,
}

impl Creating {
    async fn answer(&mut self) -> (Result<RawJson>, Option<Guard>) {
        let Some(answer) = &mut self.answer else { return (Err(Error::cancelled("given up")), None) };
        let answered = answer.kept().await;
        self.answer = None;
        answered
    }
}

impl Drop for Creating {
    fn drop(&mut self) {
        let Some(answer) = self.answer.take() else { return };
        let (requestor, method) = (self.requestor.clone(), std::mem::take(&mut self.method));
        self.requestor.link.spawn(Box::pin(async move {
            let clock = requestor.link.clock();
            if let First::A(Ok(result)) = first(pin!(answer), pin!(sleep(&*clock, CANCEL))).await
                && let Ok(Some(task)) = created(&method, &result)
            {
                requestor.cancel(&task.task_id).await;
            }
        }));
    }
}

/// A task of the peer whose result somebody waits for. Dropped before it is there, it cancels the task.
pub(crate) struct Followed {
    requestor: Requestor,
    id: String,
    over: bool,
}

impl Followed {
    pub(crate) fn new(requestor: Requestor, id: &str) -> Self {
        Self { requestor, id: id.to_owned(), over: false }
    }

    /// There is nothing to cancel any more.
    pub(crate) fn is_over(&mut self) {
        self.over = true;
    }
}

/// Returns the output of this, unless it takes longer.
pub(crate) async fn within<T>(requestor: &Requestor, time: Duration, work: impl Future<Output = T>) -> Option<T> {
    let clock = requestor.link.clock();
    match first(pin!(work), pin!(sleep(&*clock, time))).await {
        First::A(output) => Some(output),
        First::B(()) => None,
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        if !self.over {
            self.requestor.link.spawn(self.requestor.clone().cancel(&self.id));
        }
    }
}
