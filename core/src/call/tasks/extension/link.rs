use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::questions::Group;
use super::{Context, Question, Tasks};
use crate::call::context::Link;
use crate::call::forwards::forwards;
use crate::call::request::{CallOptions, Done, Guard};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::Capabilities;
use crate::protocol::revision::{Method, Rules, ask};
use crate::protocol::{Call, CallId, Input, Payload, PeerFacts};
use crate::random::new_id;

/// The way to the client for a handler whose request may be answered with a task. Until it is, all goes the usual way;
/// from then on what the handler says is about the task.
pub(crate) struct Detachable {
    tasks: Arc<Tasks>,
    inner: Arc<dyn Link>,
    id: Arc<str>,
    rules: &'static Rules,
    peer: Arc<PeerFacts>,
    /// The request becomes a task before its handler begins.
    at_once: bool,
    phase: Mutex<Phase>,
}

/// Owner of an answer.
enum Phase {
    /// The request's.
    Attached,
    /// It is being decided; what was answered meanwhile.
    Detaching(Option<Result<Payload>>),
    /// The task's.
    Detached,
}

impl Detachable {
    /// # Errors
    /// When the operating system has no randomness.
    pub(crate) fn new(tasks: &Arc<Tasks>, inner: &Arc<dyn Link>, call: &mut Call, at_once: bool) -> Result<Arc<Self>> {
        let id = new_id()?;
        if at_once {
            call.context.task_id = Some(id.clone());
        }
        Ok(Arc::new(Self {
            tasks: tasks.clone(),
            inner: inner.clone(),
            id,
            rules: call.context.revision.rules(),
            peer: call.context.peer.clone(),
            at_once,
            phase: Mutex::new(Phase::Attached),
        }))
    }

    pub(super) fn inner(&self) -> &Arc<dyn Link> {
        &self.inner
    }

    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, outcome: Result<Payload>) {
        let (status, message, outcome) = self.tasks.ended_with(self.rules, outcome);
        self.tasks.finish(&self.inner, &self.id, status, message, outcome);
    }

    fn declared(&self) -> &Capabilities {
        &self.peer.capabilities
    }

    /// Asks the client by the task.
    fn ask(&self, method: &str, params: Option<RawJson>, options: &CallOptions, done: Done) -> Guard {
        let checked = || {
            let row = Method::find(method).filter(|row| row.is_question());
            let row = row.ok_or_else(|| Error::misuse(format!("{method:?} is no question")))?;
            let params = params.unwrap_or_else(RawJson::empty_object);
            let (params, needed) = ask::prepared(self.rules, row.name, &params)?;
            let mut needed = row.capability.into_iter().chain(needed);
            match needed.find(|capability| !self.declared().has(capability)) {
                None => Ok((row.name, params)),
                Some(missing) => Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("{method:?} was not asked: the client does not declare the capability {missing:?}"),
                )),
            }
        };
        match checked() {
            Ok((method, params)) => {
                let timeout = options.timeout.filter(|time| !time.is_zero());
                let group = Group::of(&options.together);
                let question = Question {
                    method,
                    params,
                    rules: self.rules,
                    judged: options.judged,
                    group,
                    is_hidden: false,
                    done,
                };
                self.tasks.ask(self, question, timeout)
            }
            Err(error) => {
                done(Err(error));
                Box::new(())
            }
        }
    }
}

impl Link for Detachable {
    forwards!(inner);

    fn started(&self, context: &Context) -> bool {
        if !self.inner.started(context) {
            return false;
        }
        match self.at_once.then(|| self.detach(context)) {
            None | Some(Ok(_)) => true,
            Some(Err(error)) => {
                self.inner.clone().complete(context.call(), Err(error));
                false
            }
        }
    }

    fn complete(self: Arc<Self>, call: CallId, outcome: Result<Payload>) {
        let mut phase = self.phase();
        match &mut *phase {
            Phase::Attached => {
                drop(phase);
                self.inner.clone().complete(call, outcome);
            }
            Phase::Detaching(answered) => drop(answered.get_or_insert(outcome)),
            Phase::Detached => {
                drop(phase);
                self.finish(outcome);
            }
        }
    }

    fn input(self: Arc<Self>, input: Input) {
        match input {
            // A task has neither progress nor messages, but it says what it is doing.
            Input::Progress { message, .. } if self.is_detached() => {
                message.into_iter().for_each(|message| self.set_status(&message));
            }
            Input::Notify { .. } | Input::Tell { .. } if self.is_detached() => {}
            other => self.inner.clone().input(other),
        }
    }

    fn request(
        self: Arc<Self>,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        related: Option<CallId>,
        done: Done,
    ) -> Guard {
        match self.is_detached() {
            true => self.ask(method, params, options, done),
            false => self.inner.clone().request(method, params, options, related, done),
        }
    }

    fn detach(&self, context: &Context) -> Result<bool> {
        let mut phase = self.phase();
        if !matches!(*phase, Phase::Attached) {
            return Ok(true);
        }
        *phase = Phase::Detaching(None);
        drop(phase);
        let outcome = self.tasks.detach(self, context);
        let next = if outcome.is_ok() { Phase::Detached } else { Phase::Attached };
        let before = std::mem::replace(&mut *self.phase(), next);
        if let Phase::Detaching(Some(answered)) = before {
            match outcome {
                Ok(()) => self.finish(answered),
                Err(_) => self.inner.clone().complete(context.call(), answered),
            }
        }
        outcome.map(|()| true)
    }

    fn is_detached(&self) -> bool {
        !matches!(*self.phase(), Phase::Attached)
    }

    fn task_id(&self) -> Option<Arc<str>> {
        self.is_detached().then(|| self.id.clone())
    }

    fn set_status(&self, message: &str) {
        if self.is_detached() {
            self.tasks.set_status(&self.inner, &self.id, message);
        }
    }

    fn close_stream(&self, call: CallId) {
        if !self.is_detached() {
            self.inner.close_stream(call);
        }
    }

    fn created(&self, task: &Arc<str>, stop: Box<dyn FnOnce() + Send>) {
        self.inner.created(task, stop);
    }
}
