use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{self, Poll};
use std::time::Duration;

use super::request::Guard;
#[cfg(feature = "runtime")]
use super::rounds::{self, Input};
use super::{Context, Scope};
use crate::error::{Error, Result, shortened};
use crate::idiom;
use crate::jsonrpc::{RawJson, code};
use crate::protocol::revision::{Method, Revision};
use crate::protocol::{Payload, RequestContext, Room, Structured};
use crate::report;

/// Runs requests. Completion style: `call` must not block; the answer goes through `reply`, now or later, from any
/// thread. Async functions and closures are handlers through [`IntoHandler`](crate::server::IntoHandler).
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// # use serde_json::json;
/// use std::sync::Arc;
/// use tricorn::jsonrpc::RawJson;
/// use tricorn::prelude::*;
/// use tricorn::{Handler, Reply};
///
/// /// Answers for a tool of a plugin, which is known only when the program runs.
/// struct Named(String);
///
/// impl Handler for Named {
///     fn call(&self, _cx: Context, params: RawJson, reply: Reply) {
///         reply.text(format!("{} {}", self.0, params.get()));
///     }
/// }
///
/// let server = Server::new("plugins");
/// server.add_tool(Tool::new("hello", "Say hello"), Arc::new(Named("hello".into())))?;
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// # assert_eq!(client.call_tool("hello", json!({})).await?.text(), "hello {}");
/// # Ok(())
/// # }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Runs one request. The content of `params` depends on the kind of the handler: the arguments of a tool or a
    /// prompt, the variables of a resource template, else the request's parameters.
    fn call(&self, cx: Context, params: RawJson, reply: Reply);

    /// The peer has cancelled the request or is gone, or the handler has taken longer than it may. An answer is no longer
    /// wanted.
    fn cancel(&self, _cx: &Context, _reason: Option<&str>) {}
}

/// Makes the answer to a request out of that of its handler.
pub(crate) trait Shaper: Send + Sync {
    /// The result, in neutral form.
    ///
    /// # Errors
    /// The error that the peer gets instead.
    fn shape(&self, payload: Payload, revision: Revision) -> Result<Payload>;
    /// Names the handled thing, for a message: `tool "add"`.
    fn subject(&self) -> String;
    /// Its name alone.
    fn name(&self) -> &str;
    /// Returns the receiver of errors that are not for the peer.
    fn failures(&self) -> &Failures;
    /// Returns the longest time that the handler may take; zero is any.
    fn timeout(&self) -> Duration {
        Duration::ZERO
    }
}

/// The answer to one request, given once. Dropped without one, it answers with an error: no request is ever lost.
///
/// ```
/// use tricorn::jsonrpc::RawJson;
/// use tricorn::prelude::*;
/// use tricorn::{Handler, Reply};
///
/// /// Reads a sensor, which blocks, on a thread of its own.
/// struct Sensor;
///
/// impl Handler for Sensor {
///     fn call(&self, _cx: Context, _params: RawJson, reply: Reply) {
///         std::thread::spawn(move || match std::fs::read_to_string("sensor") {
///             Ok(degrees) => reply.text(degrees),
///             Err(_) => reply.failed("there is no sensor"), // the model reads this
///         });
///     }
/// }
/// Server::new("lab").tool("temperature", "Read the sensor", Sensor);
/// ```
#[must_use]
pub struct Reply {
    context: Option<Context>,
    shaper: Option<Arc<dyn Shaper>>,
    /// Parameters that the handler would get again.
    #[cfg(feature = "runtime")]
    again: Option<RawJson>,
    /// Runs until the handler has taken as long as it may.
    timer: Option<Guard>,
    /// Given back when the handler has ended.
    room: Option<Arc<dyn Room>>,
}

impl Reply {
    pub(crate) fn new(context: Context, shaper: Option<Arc<dyn Shaper>>) -> Self {
        let room = context.request().transport.room.clone();
        Self {
            context: Some(context),
            room,
            shaper,
            #[cfg(feature = "runtime")]
            again: None,
            timer: None,
        }
    }

    /// Answers in place of the handler, and cancels it, when it has taken as long as it may.
    pub(crate) fn in_time(mut self) -> Self {
        let (Some(context), Some(shaper)) = (&self.context, &self.shaper) else { return self };
        let time = shaper.timeout();
        if !time.is_zero() {
            let (clock, context, shaper) = (context.link().clock(), context.clone(), shaper.clone());
            self.timer = Some(clock.later(time, Box::new(move || overdue(&context, &*shaper, time))));
        }
        self
    }

    /// A whole result object, such as a `CallToolResult`.
    pub fn result(self, object: RawJson) {
        self.send(Ok(Payload::Object(object)));
    }

    /// A plain value. Of a tool: text, and structured content where there is an output schema or the value is an
    /// object; of a resource: its JSON text; of a completion: the array of values.
    pub fn value(self, value: RawJson) {
        self.send(Ok(Payload::Value { value, structured: Structured::Plain }));
    }

    /// Plain text: a tool's content, a resource's text, a prompt's one message of the user.
    pub fn text(self, text: impl Into<String>) {
        self.send(Ok(Payload::Text(text.into())));
    }

    /// A failure: of a tool for the model to read, else as a JSON-RPC error.
    pub fn failed(self, text: impl Into<String>) {
        self.send(Ok(Payload::Failed(text.into())));
    }

    /// A failure with the error of a question that was not sent, in these words or others. Where the protocol has an error
    /// for that, it is the answer.
    pub(crate) fn unsupported(self, error: &Error) {
        self.ended(Ok(Payload::Failed(error.message().to_owned())), Some(error.refusal()));
    }

    /// Its handler was removed while the request was on its way to it: answers as for what there is not.
    pub(crate) fn gone(self) {
        if let Some(error) = self.context.as_ref().map(|context| gone(context.request())) {
            self.send(Err(error));
        }
    }

    /// A JSON-RPC error.
    pub fn error(self, error: Error) {
        #[cfg(feature = "runtime")]
        if let Some(pages) = self.context.as_ref().and_then(|context| rounds::pages(context, &error)) {
            return self.input_required(pages);
        }
        self.send(Err(error));
    }

    /// Instead of an answer: what the client is to be asked. The handler runs again with the answers.
    #[cfg(feature = "runtime")]
    pub(crate) fn input_required(mut self, input: Input) {
        let Some(context) = &self.context else { return };
        match context.require_input(input) {
            Ok(None) => self.send(Err(Error::input_required())),
            Err(error) => self.error(error),
            Ok(Some(input)) => match self.again.take() {
                Some(params) => rounds::ask_by_requests(context.clone(), input, params, self),
                None => {
                    let error = rounds::no_rounds(context.request());
                    self.error(error);
                }
            },
        }
    }

    /// Keeps the parameters that the handler gets when it runs again.
    #[cfg(feature = "runtime")]
    pub(crate) fn for_again(mut self, context: &Context, params: &RawJson) -> Self {
        if rounds::may_ask(context.request()) {
            self.again = Some(params.clone());
        }
        self
    }

    /// Answers for a failure that is not for the peer, and reports it.
    pub(crate) fn hidden(self, kind: &str, error: &HiddenError) {
        // It may have failed because it was stopped at a question.
        #[cfg(feature = "runtime")]
        if self.context.as_ref().is_some_and(|context| context.has_asked()) {
            return self.send(Err(Error::input_required()));
        }
        let message = match &self.shaper {
            Some(shaper) => {
                shaper.failures().report(shaper.name(), &shaper.subject(), kind, error);
                format!("{} failed: {kind}", shaper.subject())
            }
            None => {
                Failures::default().report("", "the handler", kind, error);
                format!("the handler failed: {kind}")
            }
        };
        self.failed(message);
    }

    /// Answers for a failure whose text is for the peer, and reports what led to it, if anything did.
    pub(crate) fn told(self, error: &HiddenError) {
        if error.source().is_some()
            && let Some(shaper) = &self.shaper
        {
            shaper.failures().report(shaper.name(), &shaper.subject(), "for the model", error);
        }
        self.failed(error.to_string());
    }

    /// Hands the context and what would be sent to somebody else.
    fn send(self, outcome: Result<Payload>) {
        self.ended(outcome, None);
    }

    /// `refused`: as [`Context::instead`] has it.
    fn ended(mut self, outcome: Result<Payload>, refused: Option<Option<u64>>) {
        // Taken last: whatever happens before, dropping this answers.
        let Some(context) = &self.context else { return };
        let revision = context.request().revision;
        #[cfg(feature = "runtime")]
        let asked = context.instead(&outcome, refused);
        #[cfg(not(feature = "runtime"))]
        let (asked, _) = (None, refused);
        let outcome = match (&self.shaper, asked, outcome) {
            _ if context.is_cancelled() => Err(Error::cancelled("the request was cancelled")),
            // Whatever the handler made of it: there is no answer before its questions have theirs.
            (_, Some(asked), _) => asked,
            (Some(shaper), None, Ok(payload)) => report::guarded("making an answer", || {
                shaper.shape(payload, revision)
            })
            .unwrap_or_else(|| Err(Error::rpc(code::INTERNAL_ERROR, "the answer cannot be sent: internal error"))),
            (None, None, Ok(Payload::Failed(text))) => Err(Error::rpc(code::INTERNAL_ERROR, text)),
            (_, None, outcome) => outcome,
        };
        if let Some(context) = self.context.take() {
            context.link().clone().complete(context.call(), outcome);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(context) = self.context.take() {
            let error = Error::rpc(code::INTERNAL_ERROR, "the handler ended without an answer");
            context.link().clone().complete(context.call(), Err(error));
        }
        if let Some(room) = self.room.take() {
            room.give_back();
        }
    }
}

/// Ends a request whose handler has taken as long as it may. An answer that it still gives goes nowhere.
fn overdue(context: &Context, shaper: &dyn Shaper, time: Duration) {
    if context.is_cancelled() {
        return;
    }
    let text = format!("{} was cancelled: it took longer than {}", shaper.subject(), idiom::time(time));
    let shape = || shaper.shape(Payload::Failed(text), context.request().revision);
    let outcome =
        report::guarded("making an answer", shape).unwrap_or_else(|| Err(Error::cancelled("it took too long")));
    context.link().clone().complete(context.call(), outcome);
    context.cancel(Some("the handler took too long"));
}

/// Returns the answer to a request whose handler is not there any more.
fn gone(request: &RequestContext) -> Error {
    let name = request.name.as_ref().and_then(|name| crate::jsonrpc::unquoted(name.get())).unwrap_or_default();
    match request.method {
        "tools/call" => Error::invalid_params(format!("unknown tool {:?}", shortened(&name, 100))),
        "prompts/get" => Error::invalid_params(format!("unknown prompt {:?}", shortened(&name, 100))),
        "resources/read" => Error::resource_not_found(&*name),
        "completion/complete" => Error::invalid_params("\"ref\": there is nothing of that name any more"),
        method => match Method::find(method) {
            Some(row) if row.extension.is_none() => {
                Error::rpc(code::INTERNAL_ERROR, format!("{method:?}: its handler was removed"))
            }
            _ => Error::rpc(code::METHOD_NOT_FOUND, format!("method {method:?} is not served")),
        },
    }
}

/// Anything that may answer requests: a [`Handler`] that is shared, or a function such as a tool's
/// ([`IntoHandler`](crate::server::IntoHandler)).
#[diagnostic::on_unimplemented(
    message = "this is nothing that can answer a server's request",
    label = "no handler",
    note = "expected one of: `async |request: Params| …`, `async |request: Params, context: Context| …`, `async |context: Context| …`, or an `Arc` of a `Handler`; `Params` needs `#[derive(serde::Deserialize, schemars::JsonSchema)]`",
    note = "each returns `Result<T, HandlerError>`: end it with `Ok(value)`; `?` turns any error into a `HandlerError`",
    note = "its future is `Send`, and the function `Send + Sync + 'static`: share state by `Arc`, and hold no lock across an `.await`"
)]
pub trait RequestHandler<Marker: ?Sized> {
    #[doc(hidden)]
    fn shared(self) -> Arc<dyn Handler>;
}

impl RequestHandler<dyn Handler> for Arc<dyn Handler> {
    fn shared(self) -> Arc<dyn Handler> {
        self
    }
}

impl<H: Handler> RequestHandler<H> for Arc<H> {
    fn shared(self) -> Arc<dyn Handler> {
        self
    }
}

/// An error that was not meant for the peer.
pub(crate) type HiddenError = dyn std::error::Error + Send + Sync;

/// Gets the error, the name of what failed and what kind of error it is.
type OnError = dyn Fn(&HiddenError, &str, &str) + Send + Sync;

/// Receiver of the errors that the peer is not shown.
#[derive(Default)]
pub(crate) struct Failures(RwLock<Option<Arc<OnError>>>);

impl Failures {
    pub(crate) fn heard_by(&self, f: Arc<OnError>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(f);
    }

    pub(crate) fn report(&self, name: &str, subject: &str, kind: &str, error: &HiddenError) {
        let heard = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        match heard {
            Some(f) => drop(report::guarded("what hears of errors", || f(error, name, kind))),
            None => {
                let mut text = error.to_string();
                let mut next = error.source();
                while let Some(source) = next {
                    let more = source.to_string();
                    // Many an error has the words of its source.
                    if !text.contains(&more) {
                        text = format!("{text}: {more}");
                    }
                    next = source.source();
                }
                report::say(format_args!("{subject} failed: {kind}: {text}"));
            }
        }
    }
}

/// End of a future of user code.
pub(crate) enum Ran<T> {
    Done(T),
    Panicked(Box<dyn Any + Send>),
    /// The request was cancelled, and the future dropped.
    Cancelled,
}

/// Runs a future of user code for a request: polled here first, because most are ready at once, and moved to a task
/// when it waits; dropped when the request is cancelled.
pub(crate) fn run<T: 'static>(cx: Context, mut future: BoxFuture<T>, finish: impl FnOnce(Ran<T>) + Send + 'static) {
    let mut nobody = task::Context::from_waker(task::Waker::noop());
    let polled = {
        let _scope = Scope::enter(&cx);
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut nobody)))
    };
    match polled {
        Err(panic) => finish(Ran::Panicked(panic)),
        Ok(Poll::Ready(outcome)) => finish(Ran::Done(outcome)),
        Ok(Poll::Pending) => {
            let link = cx.link().clone();
            link.spawn(Box::pin(async move { finish(until_cancelled(cx, future).await) }));
        }
    }
}

async fn until_cancelled<T>(cx: Context, mut future: BoxFuture<T>) -> Ran<T> {
    let cancelled = cx.cancelled();
    let mut cancelled = std::pin::pin!(cancelled);
    std::future::poll_fn(|task| {
        if cancelled.as_mut().poll(task).is_ready() {
            return Poll::Ready(Ran::Cancelled);
        }
        let _scope = Scope::enter(&cx);
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task))) {
            Err(panic) => Poll::Ready(Ran::Panicked(panic)),
            Ok(Poll::Ready(outcome)) => Poll::Ready(Ran::Done(outcome)),
            Ok(Poll::Pending) => Poll::Pending,
        }
    })
    .await
}

/// A boxed future that may move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
