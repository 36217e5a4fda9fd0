use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Tasks, related};
use crate::call::Context;
use crate::call::context::Link;
use crate::call::forwards::forwards;
use crate::call::request::{CallOptions, Done, Guard};
use crate::error::Result;
use crate::jsonrpc::{Id, RawJson};
use crate::protocol::revision::shape::with_meta;
use crate::protocol::revision::{Method, Revision, shape};
use crate::protocol::{Call, CallId, Input, Pace, Payload};

/// The way to the peer for a handler that runs as a task: its request is answered, so what it has to say belongs to
/// no request, or to the one that waits for its result.
pub(super) struct TaskLink {
    tasks: Arc<Tasks>,
    inner: Arc<dyn Link>,
    id: Arc<str>,
    method: &'static Method,
    revision: Revision,
    /// Holds until the task is finished.
    token: Option<Id>,
    reported: Mutex<Reported>,
}

struct Reported {
    last: f64,
    pace: Pace,
    /// Set while progress waits to be sent.
    timer: Option<Guard>,
    over: bool,
}

impl TaskLink {
    pub(super) fn new(tasks: &Arc<Tasks>, inner: &Arc<dyn Link>, id: &Arc<str>, call: &Call) -> Arc<Self> {
        Arc::new(Self {
            tasks: tasks.clone(),
            inner: inner.clone(),
            id: id.clone(),
            method: call.method,
            revision: call.context.revision,
            token: call.context.progress_token.clone(),
            reported: Mutex::new(Reported { last: f64::NEG_INFINITY, pace: Pace::new(), timer: None, over: false }),
        })
    }

    fn reported(&self) -> MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self, method: &'static str, params: &RawJson) {
        let params = with_meta(Some(params), &related(&self.id));
        self.inner.clone().input(Input::Notify {
            method,
            params,
            related: self.tasks.result_call(&*self.inner, &self.id),
        });
    }

    fn progress(self: &Arc<Self>, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(token) = &self.token else { return };
        let now = self.inner.clock().now();
        let mut reported = self.reported();
        if reported.over || progress <= reported.last {
            return;
        }
        reported.last = progress;
        let message = message.filter(|_| self.revision.rules().progress_message);
        match reported.pace.offer(now, shape::progress(token, progress, total, message)) {
            Some(params) => {
                drop(reported);
                self.notify("notifications/progress", &params);
            }
            None => self.wait(&mut reported),
        }
    }

    /// Sends what came too soon when it is time.
    fn wait(self: &Arc<Self>, reported: &mut Reported) {
        let Some(due) = reported.pace.due().filter(|_| reported.timer.is_none()) else { return };
        let (own, clock) = (Arc::downgrade(self), self.inner.clock());
        let send = Box::new(move || {
            let Some(own) = own.upgrade() else { return };
            let mut reported = own.reported();
            let spent = reported.timer.take();
            let ripe = reported.pace.ripe(own.inner.clock().now());
            own.wait(&mut reported);
            drop(reported);
            drop(spent);
            if let Some(params) = ripe {
                own.notify("notifications/progress", &params);
            }
        });
        reported.timer = Some(clock.later(due.saturating_sub(clock.now()), send));
    }
}

impl Link for TaskLink {
    forwards!(inner);

    fn started(&self, context: &Context) -> bool {
        !context.is_cancelled()
    }

    fn complete(self: Arc<Self>, _: CallId, outcome: Result<Payload>) {
        let mut reported = self.reported();
        reported.over = true;
        let (rest, timer) = (reported.pace.rest(), reported.timer.take());
        drop(reported);
        drop(timer);
        if let Some(params) = rest {
            self.notify("notifications/progress", &params);
        }
        let (status, message, outcome) = self.tasks.judged(self.method, self.revision, outcome);
        self.tasks.finish(&self.inner, &self.id, status, message, outcome);
    }

    fn input(self: Arc<Self>, input: Input) {
        match input {
            Input::Progress { progress, total, message, .. } => self.progress(progress, total, message.as_deref()),
            Input::Notify { method, params, .. } => self.notify(method, &params),
            other => self.inner.clone().input(other),
        }
    }

    fn request(
        self: Arc<Self>,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        _: Option<CallId>,
        done: Done,
    ) -> Guard {
        // Questions about tasks say themselves which one is meant.
        let params =
            if method.starts_with("tasks/") { params } else { Some(with_meta(params.as_ref(), &related(&self.id))) };
        let related = self.tasks.result_call(&*self.inner, &self.id);
        self.inner.clone().request(method, params, options, related, done)
    }

    fn waiting(self: Arc<Self>) -> Guard {
        struct Waiting(Arc<TaskLink>);
        impl Drop for Waiting {
            fn drop(&mut self) {
                self.0.tasks.asking(&self.0.inner, &self.0.id, false);
            }
        }
        self.tasks.asking(&self.inner, &self.id, true);
        Box::new(Waiting(self))
    }

    fn set_status(&self, message: &str) {
        self.tasks.set_status(&self.inner, &self.id, message);
    }

    fn close_stream(&self, _: CallId) {
        if let Some(call) = self.tasks.result_call(&*self.inner, &self.id) {
            self.inner.close_stream(call);
        }
    }
}
