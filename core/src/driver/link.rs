use std::sync::{Arc, PoisonError};

use super::clock::Time;
use super::{Peer, Waiter, now};
use crate::call::{BoxFuture, CallOptions, Clock, Context, Done, Guard, Link, SessionSlot};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
use crate::protocol::{CallId, Input, Invocation, LogLevel, Payload, Role};

/// Approximate memory of a subscription besides its URI, in bytes.
const SUBSCRIPTION: usize = 64;

impl Link for Peer {
    fn started(&self, context: &Context) -> bool {
        let mut state = self.lock();
        // A cancellation that came before this found nothing to cancel.
        let wanted = state.connection.is_awaiting(context.call());
        if wanted {
            state.running.push(context.clone());
        }
        wanted
    }

    fn complete(self: Arc<Self>, call: CallId, outcome: Result<Payload>) {
        let mut state = self.lock();
        // Kept until the lock is released: dropping the last reference may run user code.
        let finished = state.stop_running(call);
        let actions = state.connection.handle(now(), Input::Completed(call, outcome));
        self.act(state, actions);
        drop(finished);
    }

    fn input(self: Arc<Self>, input: Input) {
        self.handle(input);
    }

    #[cfg(feature = "runtime")]
    fn spawn(&self, future: BoxFuture<()>) {
        super::runtime::spawn(future);
    }

    /// Without a runtime nothing can wait: the handler is dropped, and its reply answers with an error.
    #[cfg(not(feature = "runtime"))]
    fn spawn(&self, future: BoxFuture<()>) {
        drop(future);
    }

    #[cfg(feature = "runtime")]
    fn block(&self, work: Box<dyn FnOnce() + Send>) {
        super::runtime::handle().spawn_blocking(work);
    }

    #[cfg(not(feature = "runtime"))]
    fn block(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn log_level(&self) -> Option<LogLevel> {
        self.lock().connection.log_level()
    }

    fn request(
        self: Arc<Self>,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        related: Option<CallId>,
        done: Done,
    ) -> Guard {
        let waiter =
            Waiter { done, progress: options.progress.clone(), lasting: options.lasting, told: options.told.clone() };
        let pending = self.call(
            |call| {
                let mut invocation = Invocation::new(call, method, params);
                invocation.timeout = options.timeout.filter(|timeout| !timeout.is_zero());
                if options.by_default {
                    invocation.timeout_option = "request_timeout";
                }
                invocation.max_timeout = options.max_timeout.filter(|timeout| !timeout.is_zero());
                invocation.idempotent = options.idempotent;
                invocation.progress = options.progress.is_some();
                invocation.lasting = options.lasting;
                invocation.listens = options.told.is_some();
                invocation.any_result = options.any_result;
                invocation.judged = options.judged;
                invocation.related = related;
                invocation.origin.clone_from(&options.origin);
                invocation
            },
            waiter,
        );
        Box::new(pending)
    }

    fn awaited(&self) -> usize {
        Self::awaited(self)
    }

    fn role(&self) -> Role {
        self.lock().connection.facts().role
    }

    fn subscription(&self, uri: &str, begins: bool) -> Result<bool> {
        self.lock().connection.subscription(uri, begins)
    }

    fn subscribe(&self, uri: &str, begins: bool) -> Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = uri.len() + SUBSCRIPTION;
        if !self.subscription(uri, begins)? {
            return self.lock().connection.subscribe(uri, begins);
        }
        let all = kept.bytes();
        if begins && !kept.fit(all + bytes) {
            let message =
                "too much is kept for clients already, or too much for this one (max_memory): try again later";
            return Err(Error::rpc(code::INTERNAL_ERROR, message));
        }
        let outcome = self.lock().connection.subscribe(uri, begins);
        if !begins || outcome.is_err() {
            let all = kept.bytes();
            kept.fit(all.saturating_sub(bytes));
        }
        outcome
    }

    fn declares(&self, capability: &str) -> bool {
        self.lock().connection.facts().capabilities.declares(capability)
    }

    fn declares_extension(&self, id: &str) -> bool {
        self.lock().connection.facts().capabilities.has_extension(id)
    }

    fn session(&self) -> &SessionSlot {
        &self.session
    }

    fn close_stream(&self, call: CallId) {
        let route = self.lock().connection.route(call);
        route.into_iter().for_each(|route| self.sink.pause(route));
    }

    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(Time)
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn is_heard(&self) -> bool {
        self.sink.is_reachable() || self.sink.passes_on()
    }

    fn is_read(&self, call: CallId) -> bool {
        let route = self.lock().connection.route(call);
        route.is_none_or(|route| self.sink.is_read(route))
    }

    fn take_up(&self, call: CallId) {
        let route = self.lock().connection.route(call);
        route.into_iter().for_each(|route| self.sink.take_up(route));
    }

    fn cork(&self) {
        Self::cork(self);
    }

    fn uncork(&self) {
        Self::uncork(self);
    }
}
