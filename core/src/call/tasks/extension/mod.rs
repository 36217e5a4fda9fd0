//! Tasks of the extension `io.modelcontextprotocol/tasks` (revision 2026-07-28). The server decides: a request of a
//! client that declares the extension is answered with a task when its tool says so, or when its handler does. The
//! handler's questions from then on wait in the task (`inputRequests`) until the client brings the answers
//! (`tasks/update`).
//!
//! Nothing of it belongs to a connection where requests come without: over HTTP a task belongs to its principal, or,
//! where there is none, to every client that knows its id.

mod link;
mod questions;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};

pub(crate) use self::link::Detachable;
pub(super) use self::questions::Questions;
use self::questions::{Answered, Group, Question};
use super::serve::id_of;
use super::{MAX_MESSAGE, Tasks, not_found, owner_of, stamp};
use crate::call::context::Link;
use crate::call::request::Guard;
use crate::call::{Context, Handler, Reply};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{ErrorObject, RawJson};
use crate::model::{SubscriptionFilter, TASKS_EXTENSION, Task, TaskStatus};
use crate::protocol::revision::{Rules, shape};
use crate::protocol::{Call, Payload, RequestContext};
use crate::store::{Kept, Outcome, Owner};

/// The longest that questions wait for the others that are asked with them.
const GATHERING: Duration = Duration::from_secs(2);

/// Hears how a task is: its id, the number of what is told, which grows, and the parameters of `notifications/tasks`.
pub(super) type Heard = Box<dyn Fn(&str, u64, RawJson) + Send + Sync>;

/// Returns true if the request may be answered with a task.
pub(crate) fn may_be_task(request: &RequestContext) -> bool {
    request.revision.rules().tasks_extension && request.peer.capabilities.has_extension(TASKS_EXTENSION)
}

/// Returns the owner of the task of this id that the sender of the request may have.
///
/// # Errors
/// −32603 when the function that names its principal fails.
fn owner(context: &Context, id: &str) -> Result<Owner> {
    if context.request().transport.kind != "http" {
        return Ok(owner_here(&**context.link()));
    }
    #[cfg(feature = "runtime")]
    if let Some(principal) = crate::call::rounds::principal_digest(context)? {
        return Ok(Owner(format!("principal {principal}").into()));
    }
    Ok(Owner(format!("task {id}").into()))
}

/// Returns the owner of tasks that end with a connection. Those of 2025-11-25 have another.
pub(super) fn owner_here(link: &dyn Link) -> Owner {
    Owner(format!("{}, extension", owner_of(link).0).into())
}

/// The sender of a request that no handler answers.
fn sender(link: &Arc<dyn Link>, call: &Call) -> Context {
    Context::new(call.id, call.context.clone(), link.clone(), Arc::new(Nobody))
}

struct Nobody;

impl Handler for Nobody {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        drop(reply);
    }
}

/// Tasks that somebody listens to, with their owners, and of those of other processes what there was to tell.
pub(crate) type Listened = Vec<(Owner, String, Option<(u64, RawJson)>)>;

/// A task as `tasks/get` and `notifications/tasks` tell it, or as the answer to the request that became it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DetailedTask<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    task_id: &'a str,
    status: TaskStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: &'a str,
    last_updated_at: &'a str,
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    poll_interval_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_requests: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

impl<'a> DetailedTask<'a> {
    fn of(task: &'a Task) -> Self {
        Self {
            result_type: None,
            task_id: &task.task_id,
            status: task.status,
            status_message: task.status_message.as_deref(),
            created_at: &task.created_at,
            last_updated_at: &task.last_updated_at,
            ttl_ms: task.ttl,
            poll_interval_ms: task.poll_interval,
            input_requests: None,
            result: None,
            error: None,
        }
    }

    fn ended(mut self, outcome: &'a Outcome) -> Self {
        match outcome {
            Outcome::Result(result) => self.result = Some(result),
            Outcome::Error(error) => self.error = Some(error.to_object()),
        }
        self
    }

    fn asking(mut self, questions: &Questions) -> Self {
        self.input_requests = (self.status == TaskStatus::InputRequired).then(|| questions.requests());
        self
    }

    fn text(&self) -> RawJson {
        RawJson::from_value(self)
    }
}

/// Returns the notification to those that listen to a task that is not finished.
pub(super) fn told(task: &Task, questions: &Questions) -> RawJson {
    DetailedTask::of(task).asking(questions).text()
}

/// As [`told`] and [`told_end`], for a task of another process.
#[cfg(feature = "redis")]
pub(super) fn told_shared(shared: &crate::store::SharedTask) -> RawJson {
    let task = &shared.task;
    if task.status.is_terminal() {
        return told_end(task, shared.outcome.as_ref());
    }
    let questions = shared.questions.as_ref().filter(|_| task.status == TaskStatus::InputRequired);
    let input_requests = questions.and_then(|questions| questions.to().ok());
    DetailedTask { input_requests, ..DetailedTask::of(task) }.text()
}

/// The answers that a request brings.
///
/// # Errors
/// −32602 for what is none.
pub(super) fn responses_of(params: Option<&RawJson>) -> Result<Map<String, Value>> {
    let mut members: Map<String, Value> = params.and_then(|params| params.to().ok()).unwrap_or_default();
    match members.remove("inputResponses") {
        Some(Value::Object(responses)) => Ok(responses),
        _ => {
            let wrong = "\"inputResponses\": expected an object of answers, by their questions' keys";
            Err(Error::invalid_params(wrong))
        }
    }
}

/// Returns the notification to those that listen to a task that is finished.
pub(super) fn told_end(task: &Task, outcome: Option<&Outcome>) -> RawJson {
    let told = DetailedTask::of(task);
    match outcome {
        Some(outcome) => told.ended(outcome).text(),
        None => told.text(),
    }
}

impl Tasks {
    /// Sets the receiver of the states of the extension's tasks.
    pub(crate) fn heard_by(&self, heard: impl Fn(&str, u64, RawJson) + Send + Sync + 'static) {
        let _ = self.heard.set(Box::new(heard));
    }

    pub(super) fn hear(&self, id: &str, version: u64, told: RawJson) {
        if let Some(heard) = self.heard.get() {
            heard(id, version, told);
        }
    }

    /// The request goes on as a task: it is kept, and the request answered with it.
    fn detach(self: &Arc<Self>, own: &Detachable, context: &Context) -> Result<()> {
        let link = own.inner();
        self.expire(&**link);
        let task = Task {
            ttl: Some(super::options::millis(self.options.ttl(None))),
            poll_interval: Some(self.options.poll_interval()),
            ..Task::working(&**own.id(), stamp())
        };
        let owner = owner(context, own.id())?;
        let created = DetailedTask { result_type: Some("task"), ..DetailedTask::of(&task) }.text();
        self.admit(&owner, own.id(), task, context, Some(Questions::default()))?;
        let (tasks, id, whose) = (Arc::downgrade(self), own.id().clone(), owner.clone());
        let stop = move || {
            if let Some(tasks) = tasks.upgrade() {
                tasks.forget(&whose, &id);
            }
        };
        link.created(own.id(), Box::new(stop));
        if let Some(origin) = &context.request().origin {
            origin.outlast();
        }
        let (tasks, to, of, id) = (self.clone(), link.clone(), context.clone(), own.id().clone());
        self.once_known(link, own.id(), move || {
            to.complete(of.call(), Ok(Payload::Object(created)));
            if of.is_cancelled() {
                // Nobody was told of it: unless it was cancelled as a task, it never was.
                tasks.forget(&owner, &id);
            }
        });
        if context.is_cancelled() { Err(Error::cancelled("the request was cancelled")) } else { Ok(()) }
    }

    /// A handler asks its client, and waits so long for the answer.
    fn ask(self: &Arc<Self>, own: &Detachable, question: Question, timeout: Option<Duration>) -> Guard {
        let (method, group) = (question.method, question.group);
        let mut waits = Some(question);
        let (mut refused, mut place, mut gathers) = (None, 0, false);
        self.change(own.inner(), own.id(), |running, task, _| {
            let questions = running.questions.as_mut()?;
            match questions.add(waits.take()?) {
                Ok(at) => place = at,
                Err((question, error)) => {
                    refused = Some((question, error));
                    questions.scatter(group).then_some(())?;
                }
            }
            gathers = questions.is_gathering(group);
            task.status = questions.status();
            Some(!gathers)
        });
        if let Some(question) = waits {
            (question.done)(Err(Error::closed("the task is over")));
        } else if let Some((question, error)) = refused {
            (question.done)(Err(error));
        }
        let (tasks, link, id) = (Arc::downgrade(self), own.inner().clone(), own.id().clone());
        let take_back = move || tasks.upgrade().and_then(|tasks| tasks.take_back(&link, &id, place));
        let late = take_back.clone();
        let timer = timeout.map(|time| {
            let over = move || {
                if let Some(question) = late() {
                    (question.done)(Err(Error::late(method, time, "timeout")));
                }
            };
            own.inner().clock().later(time, Box::new(over))
        });
        let given = Given(Some(move || drop(take_back())));
        let scattered = gathers.then(|| {
            let (tasks, link, id) = (Arc::downgrade(self), own.inner().clone(), own.id().clone());
            let over = move || {
                if let Some(tasks) = tasks.upgrade() {
                    tasks.scatter(&link, &id, group);
                }
            };
            own.inner().clock().later(GATHERING, Box::new(over))
        });
        Box::new((given, timer, scattered))
    }

    /// Questions that wait for others of their go are asked without them.
    fn scatter(&self, link: &Arc<dyn Link>, id: &str, group: Option<Group>) {
        self.change(link, id, |running, task, _| {
            let questions = running.questions.as_mut()?;
            questions.scatter(group).then_some(())?;
            task.status = questions.status();
            Some(true)
        });
    }

    /// Nobody waits for the answer any more.
    fn take_back(&self, link: &Arc<dyn Link>, id: &str, place: u64) -> Option<Question> {
        let mut taken = None;
        self.change(link, id, |running, task, _| {
            let questions = running.questions.as_mut()?;
            taken = Some(questions.remove(place)?);
            task.status = questions.status();
            Some(true)
        });
        taken
    }

    /// The client brings answers. A question whose answer is none is asked again, as another question: a client answers
    /// each once.
    pub(super) fn answered(&self, link: &Arc<dyn Link>, id: &str, responses: &Map<String, Value>) {
        let mut answered: Vec<Answered> = Vec::new();
        self.change(link, id, |running, task, _| {
            let questions = running.questions.as_mut()?;
            let changed = questions.answer(responses, &mut answered);
            task.status = questions.status();
            changed.then_some(true)
        });
        for (done, result) in answered {
            done(Ok(result));
        }
    }

    /// Returns the end of a task whose handler has answered.
    fn ended_with(&self, rules: &Rules, answer: Result<Payload>) -> (TaskStatus, Option<String>, Outcome) {
        let failed = |error: Error| {
            let error = self.fits(Outcome::Error(error.clone()).len()).err().unwrap_or(error);
            let message = shortened(error.message(), MAX_MESSAGE).into_owned();
            (TaskStatus::Failed, Some(message), Outcome::Error(rules.told(error.to_object(), false).into()))
        };
        let result = match answer {
            Ok(payload) => shape::call_result(rules, payload),
            Err(error) => return failed(error),
        };
        if let Err(error) = self.fits(result.get().len()) {
            return failed(error);
        }
        (TaskStatus::Completed, None, Outcome::Result(result))
    }

    /// Answers a request about tasks.
    pub(crate) fn serve_extension(self: &Arc<Self>, link: &Arc<dyn Link>, call: &Call) {
        self.expire(&**link);
        let owned = id_of(call).and_then(|id| Ok((owner(&sender(link, call), &id)?, id)));
        let outcome = match owned {
            Ok((owner, id)) if self.extension_afar(link, call, &owner, &id) => return,
            Ok((owner, id)) => self.extension_here(link, call.method.name, &owner, &id, call.params.as_ref()),
            Err(error) => Err(error),
        };
        link.clone().complete(call.id, outcome.map(Payload::Object));
    }

    pub(super) fn extension_here(
        &self,
        link: &Arc<dyn Link>,
        method: &str,
        owner: &Owner,
        id: &str,
        params: Option<&RawJson>,
    ) -> Result<RawJson> {
        match method {
            "tasks/get" => self.detailed(owner, id).map(|(_, text)| text),
            "tasks/cancel" => self.end_by_request(owner, id),
            _ => self.update(link, owner, id, params),
        }
    }

    fn detailed(&self, owner: &Owner, id: &str) -> Result<(u64, RawJson)> {
        let state = self.lock();
        let Kept { task, outcome } = state.store.get(owner, id).ok_or_else(|| not_found(id))?;
        let running = state.running.get(id);
        Ok(match running.and_then(|running| Some((running.version, running.questions.as_ref()?))) {
            Some((version, questions)) => (version, told(&task, questions)),
            None => (u64::MAX, told_end(&task, outcome.as_ref())),
        })
    }

    fn end_by_request(&self, owner: &Owner, id: &str) -> Result<RawJson> {
        self.find(owner, id)?;
        // A finished task stays as it is.
        if let Ok((running, task)) = self.cancelled(owner, id) {
            self.hear(id, u64::MAX, told_end(&task, None));
            if let Some(running) = running {
                running.stop("tasks/cancel", &super::cancelled());
            }
        }
        Ok(RawJson::empty_object())
    }

    fn update(&self, link: &Arc<dyn Link>, owner: &Owner, id: &str, params: Option<&RawJson>) -> Result<RawJson> {
        let responses = responses_of(params)?;
        self.find(owner, id)?;
        self.answered(link, id, &responses);
        Ok(RawJson::empty_object())
    }

    /// Returns those of the tasks that a client wants to listen to that are its own and kept here, and the others, which
    /// may be those of other processes.
    ///
    /// # Errors
    /// As [`owner`].
    pub(crate) fn listened_to(
        &self,
        link: &Arc<dyn Link>,
        call: &Call,
        filter: &mut SubscriptionFilter,
    ) -> Result<(Listened, Vec<(Owner, String)>)> {
        let sender = sender(link, call);
        let ids = std::mem::take(&mut filter.task_ids).into_iter();
        let all = ids.map(|id| owner(&sender, &id).map(|owner| (owner, id))).collect::<Result<Vec<_>>>()?;
        let state = self.lock();
        let (here, mut elsewhere): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(owner, id)| state.store.get(owner, id).is_some());
        if !self.is_shared() {
            elsewhere.clear();
        }
        Ok((here.into_iter().map(|(owner, id)| (owner, id, None)).collect(), elsewhere))
    }

    /// Finds those of other processes.
    ///
    /// # Errors
    /// The store does not answer.
    #[cfg(feature = "redis")]
    pub(crate) async fn listened_to_afar(
        &self,
        link: &Arc<dyn Link>,
        call: &Call,
        elsewhere: Vec<(Owner, String)>,
    ) -> Result<Listened> {
        self.listens_to(&sender(link, call), elsewhere).await
    }

    /// Returns the state of a task, for a client that begins to listen to it.
    pub(crate) fn tell_now(
        &self,
        (owner, id, then): &(Owner, String, Option<(u64, RawJson)>),
    ) -> Option<(u64, RawJson)> {
        self.detailed(owner, id).ok().or_else(|| {
            let heard = self.last_heard(id).filter(|_| then.is_some());
            heard.into_iter().chain(then.clone()).max_by_key(|(version, _)| *version)
        })
    }
}

/// Does something when it is dropped.
struct Given<F: FnOnce() + Send + Sync>(Option<F>);

impl<F: FnOnce() + Send + Sync> Drop for Given<F> {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}
