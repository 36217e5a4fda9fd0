//! Middleware: functions around every request, on either side.

mod limits;
mod links;
mod watching;

use std::any::Any;
use std::future::Future;
#[cfg(feature = "redis")]
use std::sync::Weak;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::protocol::revision::object;

#[cfg(feature = "runtime")]
pub use limits::ConcurrencyLimit;
pub use limits::RateLimit;
pub use watching::{Logging, MethodTiming, RequestRecord, Timing};

use self::links::{Caught, Outward};
#[cfg(feature = "redis")]
use super::Commons;
use super::handler::{BoxFuture, Ran, run};
use super::request::{Done, Guard};
use super::{Answer, Context, Handler, Link, Reply, tasks, traced};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
use crate::model::{CallToolResult, TraceContext};
use crate::protocol::{Call, CallId, RequestContext};

/// A request on its way to what answers it.
///
/// ```
/// use serde_json::Value;
/// use tricorn::jsonrpc::RawJson;
/// use tricorn::middleware::{Next, Request};
/// use tricorn::prelude::*;
///
/// /// Writes something into the `_meta` of every request of a client.
/// async fn sign(mut request: Request, context: Context, next: Next) -> tricorn::Result<RawJson> {
///     let mut params: Value = request.params.and_then(|params| params.to().ok()).unwrap_or_default();
///     params["_meta"]["com.example/user"] = "ada".into();
///     request.params = Some(RawJson::from_value(&params));
///     next.run(request, &context).await
/// }
/// let handlers = Handlers::new().middleware(sign);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// Its method, such as `tools/call`. The name that stands here when it runs makes no difference: the admitted
    /// request runs.
    pub method: String,
    /// Its parameters, an object.
    pub params: Option<RawJson>,
}

/// Stands around every request: of a server, those that its handlers answer; of a client, those that it sends. Sees the
/// request, decides whether, when and how it goes on, and sees what comes of it. `async |request, context, next| …` is
/// middleware.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// # use serde_json::json;
/// use tricorn::jsonrpc::RawJson;
/// use tricorn::middleware::{Next, Request};
/// use tricorn::prelude::*;
///
/// /// Refuses calls while the shop is closed.
/// async fn opening_hours(request: Request, context: Context, next: Next) -> tricorn::Result<RawJson> {
///     if request.method == "tools/call" {
///         return Err(Error::rpc(-32001, "closed until 9 o'clock"));
///     }
///     next.run(request, &context).await
/// }
///
/// let server = Server::new("shop").middleware(opening_hours).tool("buy", "Buy fruit", async || Ok("bought"));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// # assert_eq!(client.call_tool("buy", json!({})).await.unwrap_err().code(), Some(-32001));
/// # assert_eq!(client.list_tools().await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "this is no middleware",
    label = "no middleware",
    note = "expected `async |request: Request, context: Context, next: Next| …`, all three, or a type with `impl Middleware`",
    note = "it returns `tricorn::Result<RawJson>`: end it with `next.run(request, &context).await`, or with the result object to answer with",
    note = "its future is `Send`, and the function `Send + Sync + 'static`: share state by `Arc`, and hold no lock across an `.await`"
)]
pub trait Middleware: Any + Send + Sync {
    /// Handles one request; `next.run(request, &context)` goes on. The result is a result object of the protocol, such
    /// as a `CallToolResult`. The future is dropped when the request is cancelled.
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>>;
}

impl<F, Fut> Middleware for F
where
    F: Fn(Request, Context, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<RawJson>> + Send + 'static,
{
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        Box::pin(self(request, context, next))
    }
}

impl Middleware for Arc<dyn Middleware> {
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        (**self).handle(request, context, next)
    }
}

type Innermost = Arc<dyn Fn(Request, &Context) -> Answer + Send + Sync>;

/// The rest of the way.
///
/// ```
/// use tricorn::jsonrpc::RawJson;
/// use tricorn::middleware::{Next, Request};
/// use tricorn::prelude::*;
///
/// /// Tells the handlers of the user, and tries once more what did not come in time.
/// async fn of_user(request: Request, context: Context, next: Next) -> tricorn::Result<RawJson> {
///     let context = context.with_state(String::from("ada"));
///     match next.run(request.clone(), &context).await {
///         Err(error) if error.kind() == ErrorKind::Timeout => next.run(request, &context).await,
///         outcome => outcome,
///     }
/// }
/// Server::new("shop").middleware(of_user);
/// ```
#[derive(Clone)]
pub struct Next {
    rest: Links,
    at: usize,
    innermost: Innermost,
}

impl Next {
    /// Lets the request go on, with these parameters and what the context was given by
    /// [`with_state`](Context::with_state). Dropped before it is ready, what runs is cancelled. It may be run again, to
    /// try once more.
    pub fn run(&self, request: Request, context: &Context) -> BoxFuture<Result<RawJson>> {
        match self.rest.get(self.at) {
            Some(middleware) => {
                let next = Self { at: self.at + 1, ..self.clone() };
                middleware.handle(request, context.clone(), next)
            }
            None => Box::pin((self.innermost)(request, context)),
        }
    }
}

impl std::fmt::Debug for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Next").field("middleware", &(self.rest.len() - self.at)).finish_non_exhaustive()
    }
}

/// The middleware of one side, in order. A clone is a copy.
#[derive(Default)]
pub(crate) struct Chain(RwLock<Order>);

#[derive(Clone, Default)]
struct Order {
    links: Option<Links>,
    /// The last one stays the innermost, whatever is added.
    #[cfg_attr(not(feature = "runtime"), expect(dead_code, reason = "hosts have it"))]
    has_innermost: bool,
    /// This process among others that count their limits together.
    #[cfg(feature = "redis")]
    commons: Weak<Commons>,
}

type Links = Arc<[Arc<dyn Middleware>]>;

impl Clone for Chain {
    fn clone(&self) -> Self {
        Self(RwLock::new(self.0.read().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl Chain {
    pub(crate) fn add(&self, middleware: Arc<dyn Middleware>) {
        let mut order = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut links: Vec<_> = order.links.iter().flat_map(|all| all.iter().cloned()).collect();
        let place = links.len() - usize::from(order.has_innermost);
        #[cfg(feature = "redis")]
        if let Some(commons) = order.commons.upgrade() {
            limits::join(&*middleware, place, &commons);
        }
        links.insert(place, middleware);
        order.links = Some(links.into());
    }

    /// This one is inside of all others, in place of the one that was.
    #[cfg(feature = "runtime")]
    pub(crate) fn set_innermost(&self, middleware: Arc<dyn Middleware>) {
        let mut order = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut links: Vec<_> = order.links.iter().flat_map(|all| all.iter().cloned()).collect();
        links.truncate(links.len() - usize::from(order.has_innermost));
        links.push(middleware);
        (order.links, order.has_innermost) = (Some(links.into()), true);
    }

    /// This process is one of several: they count their limits together.
    #[cfg(feature = "redis")]
    pub(crate) fn join(&self, commons: &Arc<Commons>) {
        let mut order = self.0.write().unwrap_or_else(PoisonError::into_inner);
        order.commons = Arc::downgrade(commons);
        for (place, middleware) in order.links.iter().flat_map(|all| all.iter().enumerate()) {
            limits::join(&**middleware, place, commons);
        }
    }

    /// `None`: there is nothing to go through.
    pub(crate) fn all(&self) -> Option<Around> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).links.clone().map(Around)
    }
}

/// The middleware that one request goes through.
pub(crate) struct Around(Links);

/// State that a request is registered under while it goes through middleware; the middleware's future hears of its end.
#[derive(Default)]
struct Passing(Mutex<Ties>);

/// Effects of a request inside of the middleware.
#[derive(Default)]
struct Ties {
    /// The tasks that were made of it. Those of which the peer does not hear by its answer are nobody's.
    tasks: Vec<(Arc<str>, Stop)>,
    /// The last answer to the middleware.
    given: Option<RawJson>,
    over: bool,
}

type Stop = Box<dyn FnOnce() + Send>;

impl Passing {
    /// The answer that is on its way to the middleware names a task.
    fn tie(&self, outer: &Context, task: &Arc<str>, stop: Stop) {
        let mut ties = self.lock();
        if ties.over {
            drop(ties);
            return stop();
        }
        ties.tasks.push((task.clone(), stop));
        drop(ties);
        // A cancellation that came before the push found nothing.
        if outer.is_cancelled() {
            self.end(None);
        }
    }

    /// This is on its way to the middleware.
    fn give(&self, answer: &RawJson) {
        let mut ties = self.lock();
        if !ties.over {
            ties.given = Some(answer.clone());
        }
    }

    /// The request is answered with this, or not at all. Gives back what the middleware was answered.
    fn end(&self, answer: Option<&RawJson>) -> Option<RawJson> {
        let mut ties = self.lock();
        ties.over = true;
        let given = ties.given.take();
        if ties.tasks.is_empty() {
            return given;
        }
        let named = answer.and_then(|answer| tasks::created("", answer).ok().flatten());
        // Those that are kept wait for a cancellation that was before the answer.
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut ties.tasks)
            .into_iter()
            .partition(|(id, _)| named.as_ref().is_some_and(|task| task.task_id == **id));
        ties.tasks = kept;
        drop(ties);
        gone.into_iter().for_each(|(_, stop)| stop());
        given
    }

    fn lock(&self) -> MutexGuard<'_, Ties> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for Passing {
    fn call(&self, _: Context, _: RawJson, _: Reply) {}

    fn cancel(&self, _: &Context, _: Option<&str>) {
        self.end(None);
    }
}

impl Around {
    /// Takes a request of the peer through the middleware, to `route`, and back.
    pub(crate) fn incoming(
        self,
        link: &Arc<dyn Link>,
        call: Call,
        route: impl Fn(&Arc<dyn Link>, Call) + Send + Sync + 'static,
    ) {
        let passing = Arc::<Passing>::default();
        let context = Context::new(call.id, call.context.clone(), link.clone(), passing.clone());
        if !link.started(&context) {
            return;
        }
        let method = call.method.name;
        let request = Request { method: method.to_owned(), params: call.params.clone() };
        let (outer, ties) = (context.clone(), passing.clone());
        let innermost: Innermost = Arc::new(move |request, context| {
            Answer::of(|done| {
                let changed = match call.params == request.params {
                    true => Ok(call.clone()),
                    false => call.with_params(request.params),
                };
                let mut call = match changed {
                    Ok(call) => call,
                    Err(error) => {
                        done(Err(error));
                        return Box::new(());
                    }
                };
                call.context.states = context.states().clone();
                let (caught, guard) = Caught::of(&outer, &ties, &call, done);
                route(&caught, call);
                guard
            })
        });
        let reply = Reply::new(context.clone(), None);
        let future = Next { rest: self.0, at: 0, innermost }.run(request, &context);
        run(context, future, move |ran| {
            let given = passing.end(if let Ran::Done(Ok(result)) = &ran { Some(result) } else { None });
            match ran {
                Ran::Done(Ok(result)) => match check_given(method, &result, given) {
                    Ok(()) => reply.result(result),
                    Err(error) => reply.error(error),
                },
                Ran::Done(Err(error)) => match error.as_answer() {
                    Some(text) if method == "tools/call" => {
                        reply.result(RawJson::from_value(&CallToolResult::failed(text)));
                    }
                    Some(text) => reply.failed(text),
                    None => reply.error(error),
                },
                Ran::Panicked(_) => reply.error(panicked()),
                Ran::Cancelled => drop(reply),
            }
        });
    }

    /// Takes a request of ours through the middleware, to `send`, and back to `done`. Dropping what is returned cancels.
    pub(crate) fn outgoing(
        self,
        link: &Arc<dyn Link>,
        facts: RequestContext,
        request: Request,
        done: Done,
        send: impl Fn(Request, Done) -> Guard + Send + Sync + 'static,
    ) -> Guard {
        let outward: Arc<dyn Link> = Arc::new(Outward(link.clone()));
        let context = Context::new(CallId::new(0), facts, outward, Arc::<Passing>::default());
        let innermost: Innermost = Arc::new(move |mut request, context| {
            if let Some(trace) = context.state::<TraceContext>() {
                request.params = Some(traced(request.params.as_ref(), &trace));
            }
            Answer::of(|done| send(request, done))
        });
        let future = Next { rest: self.0, at: 0, innermost }.run(request, &context);
        run(context.clone(), future, |ran| match ran {
            Ran::Done(outcome) => done(outcome),
            Ran::Panicked(_) => done(Err(panicked())),
            // Nobody waits for it any more.
            Ran::Cancelled => drop(done),
        });
        Box::new(CancelOnDrop(context))
    }
}

/// Checks the answer of middleware that was given one itself: that, as it would go on without it, and as [`check`].
///
/// # Errors
/// As [`check`].
fn check_given(method: &str, result: &RawJson, given: Option<RawJson>) -> Result<()> {
    if given.as_ref() == Some(result) {
        return Ok(());
    }
    // A result that was none before is no fault of the middleware either.
    check(method, result).or_else(|error| match given {
        Some(given) if check(method, &given).is_err() => Ok(()),
        _ => Err(error),
    })
}

/// Checks an answer that middleware gives by itself.
///
/// # Errors
/// Something that is no `CallToolResult`, naming what is missing.
fn check(method: &str, result: &RawJson) -> Result<()> {
    let members = object::members(result.get());
    let has = |name: &str| members.iter().any(|(key, _)| key == name);
    // A task, and what an extension answers with, are results of other types.
    if method != "tools/call" || has("task") || has("resultType") {
        return Ok(());
    }
    let content = members.iter().find(|(key, _)| key == "content").map(|(_, value)| value.get());
    let why = match content {
        Some(value) if value.starts_with('[') => return Ok(()),
        Some(_) => "\"content\": expected an array",
        None => "\"content\": missing (required)",
    };
    Err(Error::rpc(code::INTERNAL_ERROR, format!("middleware's answer to \"tools/call\" is no CallToolResult: {why}")))
}

fn panicked() -> Error {
    Error::rpc(code::INTERNAL_ERROR, "middleware failed: panic")
}

struct CancelOnDrop(Context);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel(None);
    }
}

/// Has somebody answer a request that did not come by itself, but inside of something else. Dropping what is returned
/// cancels.
pub(crate) fn inside(
    link: &Arc<dyn Link>,
    facts: RequestContext,
    done: Done,
    answer: impl FnOnce(&Arc<dyn Link>),
) -> Guard {
    let outward: Arc<dyn Link> = Arc::new(Outward(link.clone()));
    let context = Context::new(CallId::new(0), facts, outward, Arc::<Passing>::default());
    let (caught, guard) = Caught::within(&context, done);
    answer(&caught);
    guard
}

/// Runs a handler within a request that is running already, such as a host's middleware. Dropping the answer cancels it.
#[cfg(feature = "runtime")]
pub(crate) fn handled(context: &Context, handler: &Arc<dyn Handler>, params: RawJson) -> Answer {
    Answer::of(|done| {
        let (caught, guard) = Caught::within(context, done);
        let mut request = context.request().clone();
        request.states = context.states().clone();
        let own = Context::new(context.call(), request, caught.clone(), handler.clone());
        if caught.started(&own) {
            let reply = Reply::new(own.clone(), None);
            let run = || handler.call(own, params, reply);
            // A panic that gets here has dropped the reply, which has answered.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
        }
        guard
    })
}
