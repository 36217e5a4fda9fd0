//! The ways to the peer that a request inside of middleware has.

use std::sync::{Arc, Mutex, PoisonError};

use super::Passing;
use crate::call::forwards::forwards;
use crate::call::{CallOptions, Context, Done, Guard, Link};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
use crate::protocol::revision::{Revision, shape};
use crate::protocol::{Call, CallId, Input, LogLevel, Payload, Role};

/// Link of one request that takes its answer; the rest goes on to the peer.
pub(super) struct Caught {
    link: Arc<dyn Link>,
    /// The request that it is inside of.
    outer: Context,
    /// Receiver of the tasks that are created.
    passing: Option<Arc<Passing>>,
    revision: Revision,
    /// True if plain answers are a tool's.
    tool: bool,
    state: Mutex<State>,
}

struct State {
    done: Option<Done>,
    /// The running request, to be cancelled.
    running: Option<Context>,
}

impl Caught {
    /// Hears of the answer to `call`, which is on its way through middleware as `outer`. Dropping the guard cancels.
    pub(super) fn of(outer: &Context, passing: &Arc<Passing>, call: &Call, done: Done) -> (Arc<dyn Link>, Guard) {
        let tool = call.method.name == "tools/call";
        Self::start(outer, Some(passing.clone()), call.context.revision, tool, done)
    }

    /// Hears of the answer of a handler inside of a running request.
    pub(super) fn within(context: &Context, done: Done) -> (Arc<dyn Link>, Guard) {
        let request = context.request();
        Self::start(context, None, request.revision, request.method == "tools/call", done)
    }

    fn start(
        outer: &Context,
        passing: Option<Arc<Passing>>,
        revision: Revision,
        tool: bool,
        done: Done,
    ) -> (Arc<dyn Link>, Guard) {
        let state = Mutex::new(State { done: Some(done), running: None });
        let (link, outer) = (outer.link().clone(), outer.clone());
        let caught = Arc::new(Self { link, outer, passing, revision, tool, state });
        (caught.clone(), Box::new(Abandons(caught)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Dropped, what runs is cancelled.
struct Abandons(Arc<Caught>);

impl Drop for Abandons {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let (done, running) = (state.done.take(), state.running.take());
        drop(state);
        if let Some(context) = running {
            context.cancel(None);
        }
        drop(done);
    }
}

impl Link for Caught {
    forwards!(link);

    fn started(&self, context: &Context) -> bool {
        let mut state = self.lock();
        if self.outer.is_cancelled() {
            let done = state.done.take();
            drop(state);
            if let Some(done) = done {
                done(Err(Error::cancelled("the request was cancelled")));
            }
            return false;
        }
        // Given up before it began.
        let wanted = state.done.is_some();
        if wanted {
            state.running = Some(context.clone());
        }
        wanted
    }

    fn complete(self: Arc<Self>, _: CallId, outcome: Result<Payload>) {
        let mut state = self.lock();
        let (done, running) = (state.done.take(), state.running.take());
        drop(state);
        drop(running);
        let Some(done) = done else { return };
        let outcome = match outcome {
            Ok(Payload::Object(object)) => Ok(object),
            Ok(plain) if self.tool => Ok(shape::call_result(self.revision.rules(), plain)),
            Ok(Payload::Failed(text)) => Err(Error::rpc(code::INTERNAL_ERROR, text)),
            Ok(_) => Err(Error::rpc(code::INTERNAL_ERROR, "middleware failed: its answer is no result object")),
            Err(error) => Err(error),
        };
        if let (true, Some(passing), Ok(answer)) = (self.tool, &self.passing, &outcome) {
            passing.give(answer);
        }
        done(outcome);
    }

    fn input(self: Arc<Self>, input: Input) {
        self.link.clone().input(input);
    }

    fn request(
        self: Arc<Self>,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        related: Option<CallId>,
        done: Done,
    ) -> Guard {
        self.link.clone().request(method, params, options, related, done)
    }

    fn close_stream(&self, call: CallId) {
        self.link.close_stream(call);
    }

    fn created(&self, task: &Arc<str>, stop: Box<dyn FnOnce() + Send>) {
        match &self.passing {
            Some(passing) => passing.tie(&self.outer, task, stop),
            None => self.link.created(task, stop),
        }
    }

    fn waiting(self: Arc<Self>) -> Guard {
        self.link.clone().waiting()
    }

    fn set_status(&self, message: &str) {
        self.link.set_status(message);
    }
}

/// The way to the server of a request that this side sends: there is nobody to log or report progress to.
pub(super) struct Outward(pub(super) Arc<dyn Link>);

impl Link for Outward {
    forwards!(0, for a client);

    fn started(&self, _: &Context) -> bool {
        true
    }

    fn complete(self: Arc<Self>, _: CallId, _: Result<Payload>) {}

    fn input(self: Arc<Self>, input: Input) {
        if let Input::Notify { method, params, .. } = input {
            self.0.clone().input(Input::Notify { method, params, related: None });
        }
    }

    fn log_level(&self) -> Option<LogLevel> {
        None
    }

    fn request(
        self: Arc<Self>,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        _: Option<CallId>,
        done: Done,
    ) -> Guard {
        self.0.clone().request(method, params, options, None, done)
    }

    fn role(&self) -> Role {
        Role::Client
    }
}
