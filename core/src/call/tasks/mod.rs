//! Requests that go on after their answer: a request with `task` is answered with the task, its handler runs on, and
//! what it says is the task's result. One engine for whatever side receives such requests, of one server or of one
//! client's handlers, for all their connections.
//!
//! **Invariant**: a task is in the store as long as it can be asked for, and in `running` as long as its handler's
//! answer counts. Handlers, answers and notifications come after the lock.

#[cfg(feature = "redis")]
mod afar;
#[cfg(not(feature = "redis"))]
#[path = "alone.rs"]
mod afar;
mod extension;
mod judging;
mod link;
mod options;
mod requestor;
mod serve;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::json;

#[cfg(feature = "redis")]
pub(crate) use self::afar::Commons;
pub(crate) use self::extension::{Detachable, Listened, may_be_task};
use self::extension::{Heard, Questions};
use self::link::TaskLink;
pub use self::options::TaskOptions;
pub(crate) use self::requestor::{
    Followed, Requestor, augmented, check, created, detailed, first, following, neutral, task, within,
};
use super::context::Clock;
use super::request::Guard;
use super::{Context, Handler, Link, Reply, Shaper};
use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::model::meta::RELATED_TASK;
use crate::model::{Task, TaskStatus};
use crate::protocol::revision::shape::with_meta;
use crate::protocol::{Call, CallId, Input, Pace, Payload};
use crate::random::new_id;
use crate::store::{Full, Kept, MemoryTasks, Outcome, Owner, TaskStore};

/// The most characters of a failure that a status message repeats.
const MAX_MESSAGE: usize = 300;

/// The most characters of a status message that a handler sets.
const MAX_STATUS: usize = 4096;

/// The tasks that one side runs.
pub(crate) struct Tasks {
    options: TaskOptions,
    state: Mutex<State>,
    /// The first connection's; they all have the same.
    clock: OnceLock<Arc<dyn Clock>>,
    /// Hears of those of the extension.
    heard: OnceLock<Heard>,
    /// Those that other processes know or run.
    afar: afar::Afar,
}

struct State {
    store: Box<dyn TaskStore>,
    running: HashMap<Arc<str>, Running>,
    /// The connections that have had one.
    links: HashSet<u64>,
    /// The one timer that is set, and when it goes off.
    timer: Option<(Duration, Guard)>,
    /// There are no new ones.
    closed: bool,
}

impl State {
    /// The requests for results of one connection that wait, the oldest first.
    fn waiting(&self, owner: &Owner) -> Vec<CallId> {
        let running = self.running.values().filter(|running| running.owner == *owner);
        let mut waiting: Vec<_> = running.flat_map(Running::waiting).collect();
        waiting.sort();
        waiting
    }
}

/// A task whose handler has not answered yet.
struct Running {
    owner: Owner,
    context: Context,
    /// Questions to the peer that wait for their answers.
    asking: usize,
    /// Requests that wait for the result.
    waiters: Vec<(CallId, Reply)>,
    /// Pace of its status messages.
    pace: Pace,
    /// Questions to the client, of a task of the extension.
    questions: Option<Questions>,
    /// Counts what was told of it.
    version: u64,
}

impl Running {
    /// The requests for the result that wait, the oldest first.
    fn waiting(&self) -> Vec<CallId> {
        self.waiters.iter().map(|(call, _)| *call).collect()
    }

    /// Stops the handler and answers the requests that wait.
    fn stop(self, reason: &str, error: &Error) {
        self.context.cancel(Some(reason));
        let closed = error.kind() == ErrorKind::Closed;
        let asked = if closed { error.clone() } else { Error::cancelled(format!("the task ended: {reason}")) };
        self.questions.into_iter().for_each(|questions| questions.end(&asked));
        self.waiters.into_iter().for_each(|(_, reply)| reply.error(error.clone()));
    }
}

/// Returns the owner of the tasks of a connection.
fn owner_of(link: &dyn Link) -> Owner {
    Owner(format!("connection {}", link.number()).into())
}

/// Returns the newest of the waiting requests whose answer somebody reads. Not to be called under a lock.
fn newest_read(link: &dyn Link, waiting: &[CallId]) -> Option<CallId> {
    waiting.iter().rev().copied().find(|call| link.is_read(*call))
}

fn stamp() -> String {
    let now = SystemTime::now();
    #[cfg(all(test, feature = "redis"))]
    let now = crate::simulated::unix().map_or(now, |time| SystemTime::UNIX_EPOCH + time);
    humantime::format_rfc3339_millis(now).to_string()
}

/// `{"io.modelcontextprotocol/related-task": {"taskId"}}`
fn related(id: &str) -> RawJson {
    RawJson::from_value(&json!({RELATED_TASK: {"taskId": id}}))
}

fn not_found(id: &str) -> Error {
    Error::invalid_params(format!("task not found: {:?} has expired or never was", shortened(id, 100)))
}

impl Tasks {
    pub(crate) fn new(options: TaskOptions) -> Arc<Self> {
        let store = Box::new(MemoryTasks::new(options.room()));
        let state = State { store, running: HashMap::new(), links: HashSet::new(), timer: None, closed: false };
        let afar = afar::Afar::default();
        Arc::new(Self { options, state: Mutex::new(state), clock: OnceLock::new(), heard: OnceLock::new(), afar })
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().store.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clock(&self, link: &dyn Link) -> &Arc<dyn Clock> {
        self.clock.get_or_init(|| link.clock())
    }

    /// Runs a request as a task, and answers it with that.
    pub(crate) fn start(
        self: &Arc<Self>,
        link: &Arc<dyn Link>,
        mut call: Call,
        handler: Arc<dyn Handler>,
        shaper: Option<Arc<dyn Shaper>>,
        params: RawJson,
    ) {
        let begun = self.created(link, &call).and_then(|task| Ok((new_id()?, task)));
        let (id, mut task) = match begun {
            Ok(begun) => begun,
            Err(error) => return link.clone().complete(call.id, Err(error)),
        };
        task.task_id = id.as_ref().to_owned();
        call.context.task_id = Some(id.clone());
        let request = call.id;
        let own: Arc<dyn Link> = TaskLink::new(self, link, &id, &call);
        let context = Context::new(request, call.context, own, handler.clone());
        if !link.started(&context) {
            return;
        }
        let (owner, known) = (owner_of(&**link), id.clone());
        let answer = RawJson::from_value(&json!({"task": task}));
        if let Err(error) = self.admit(&owner, &id, task, &context, None) {
            return link.clone().complete(request, Err(error));
        }
        let (tasks, own) = (Arc::downgrade(self), (owner.clone(), id.clone()));
        let stop = move || {
            if let Some(tasks) = tasks.upgrade() {
                tasks.forget(&own.0, &own.1);
            }
        };
        link.created(&id, Box::new(stop));
        if let Some(origin) = &context.request().origin {
            origin.outlast();
        }
        let (tasks, to) = (self.clone(), link.clone());
        let begin = move || {
            to.complete(request, Ok(Payload::Object(answer)));
            if context.is_cancelled() {
                // Nobody was told of it: unless it was cancelled as a task, it never was.
                return tasks.forget(&owner, &id);
            }
            run(context, handler, shaper, params);
        };
        self.once_known(link, &known, begin);
    }

    /// Goes on when all processes know the task, if the store takes it: a client may ask for it anywhere at once.
    fn once_known(self: &Arc<Self>, link: &Arc<dyn Link>, id: &Arc<str>, next: impl FnOnce() + Send + 'static) {
        #[cfg(feature = "redis")]
        if self.is_own(id) {
            let (tasks, id) = (self.clone(), id.clone());
            return link.spawn(Box::pin(async move {
                if !tasks.write(&id).await {
                    tasks.changed(&id, false);
                }
                next();
            }));
        }
        let _ = (link, id);
        next();
    }

    /// The task that a request becomes, still without its id.
    fn created(&self, link: &Arc<dyn Link>, call: &Call) -> Result<Task> {
        #[derive(Deserialize)]
        struct Asked {
            #[serde(default)]
            ttl: Option<f64>,
        }
        self.expire(link.as_ref());
        let asked = call.task.as_ref().filter(|raw| raw.is_object()).and_then(|raw| raw.to::<Asked>().ok());
        let asked =
            asked.ok_or_else(|| Error::invalid_params("\"task\": expected an object, with \"ttl\" in milliseconds"))?;
        let ttl = match asked.ttl {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked, and saturating")]
            Some(ttl) if ttl.is_finite() && ttl >= 0.0 => Some(ttl as u64),
            Some(_) => return Err(Error::invalid_params("\"task.ttl\": expected milliseconds of at least 0")),
            None => None,
        };
        Ok(Task {
            ttl: Some(options::millis(self.options.ttl(ttl))),
            poll_interval: Some(self.options.poll_interval()),
            ..Task::working("", stamp())
        })
    }

    fn admit(
        self: &Arc<Self>,
        owner: &Owner,
        id: &Arc<str>,
        task: Task,
        context: &Context,
        questions: Option<Questions>,
    ) -> Result<()> {
        let clock = self.clock(&**context.link()).clone();
        let now = clock.now();
        let expires = now.saturating_add(Duration::from_millis(task.ttl.unwrap_or(u64::MAX)));
        let mut state = self.lock();
        if state.closed {
            return Err(Error::closed("the server was closed"));
        }
        let refused = |most: usize, option: &str| {
            let message = format!("{most} tasks are being worked on, and none makes room ({option})");
            Err(Error::rpc(code::INTERNAL_ERROR, message))
        };
        let added = state.store.add(owner, context.request().transport.share, task, expires);
        self.drops(state.store.dropped().iter().map(String::as_str));
        match added {
            Ok(()) => self.shares(owner, id, context, expires, questions.is_some()),
            Err(Full::All) => return refused(self.options.max_tasks, "max_tasks"),
            Err(Full::Holder) => {
                let message = "tasks of this client are being worked on, as many as are left for others (max_tasks)";
                return Err(Error::rpc(code::INTERNAL_ERROR, message));
            }
            Err(Full::Owner) => return refused(self.options.max_session_tasks, "max_session_tasks"),
        }
        let running = Running {
            owner: owner.clone(),
            context: context.clone(),
            asking: 0,
            waiters: Vec::new(),
            pace: Pace::new(),
            questions,
            version: 0,
        };
        state.running.insert(id.clone(), running);
        let link = &**context.link();
        if [owner_of(link), extension::owner_here(link)].contains(owner) {
            state.links.insert(context.link().number());
        }
        self.arm(&mut state, &clock);
        Ok(())
    }

    /// Sets the timer for what expires next.
    fn arm(self: &Arc<Self>, state: &mut State, clock: &Arc<dyn Clock>) {
        let Some(due) = state.store.next_expiry() else { return };
        if state.timer.as_ref().is_some_and(|(set, _)| *set <= due) {
            return;
        }
        let (tasks, own) = (Arc::downgrade(self), clock.clone());
        let tick = Box::new(move || {
            if let Some(tasks) = tasks.upgrade() {
                tasks.tick(&own, due);
            }
        });
        state.timer = Some((due, clock.later(due.saturating_sub(clock.now()), tick)));
    }

    fn tick(self: &Arc<Self>, clock: &Arc<dyn Clock>, due: Duration) {
        let mut state = self.lock();
        let spent = state.timer.take_if(|(set, _)| *set == due);
        let gone = self.expired(&mut state, clock.now());
        self.arm(&mut state, clock);
        drop(state);
        drop(spent);
        Self::end(gone);
    }

    /// Forgets what has expired, timer or not.
    fn expire(&self, link: &dyn Link) {
        let now = self.clock(link).now();
        let gone = self.expired(&mut self.lock(), now);
        Self::end(gone);
    }

    fn expired(&self, state: &mut State, now: Duration) -> Vec<(String, Running)> {
        let gone = state.store.expire(now);
        self.lapsed(gone.iter().map(|(_, id)| id.as_str()));
        gone.into_iter().filter_map(|(_, id)| state.running.remove(id.as_str()).map(|running| (id, running))).collect()
    }

    fn end(gone: Vec<(String, Running)>) {
        for (id, running) in gone {
            running.stop("the task's time is over (ttl)", &not_found(&id));
        }
    }

    /// Forgets a task of which nobody was told, as long as it is not finished.
    fn forget(&self, owner: &Owner, id: &str) {
        let mut state = self.lock();
        let running = state.running.remove(id);
        if running.is_some() {
            state.store.remove(owner, id);
            self.drops([id]);
        }
        drop(state);
        if let Some(running) = running {
            running.stop("nobody was told of the task", &not_found(id));
        }
    }

    /// Returns true if a handler works on one.
    #[cfg(feature = "http")]
    pub(crate) fn is_working(&self) -> bool {
        !self.lock().running.is_empty()
    }

    /// Returns true if the connection has tasks that it can still ask for.
    pub(crate) fn has_of(&self, link: &dyn Link) -> bool {
        let state = self.lock();
        state.links.contains(&link.number()) && !state.store.page(&owner_of(link), 0, 1).0.is_empty()
    }

    /// The connection, or the session that it had, is over, and so are its tasks.
    pub(crate) fn ended(&self, link: &dyn Link) {
        let mut state = self.lock();
        // Most never had one.
        if !state.links.remove(&link.number()) {
            return;
        }
        let owners = [owner_of(link), extension::owner_here(link)];
        self.leaves(&state, Some(&owners), "the process that ran the task has let go of its session");
        owners.iter().for_each(|owner| state.store.remove_all(owner));
        let gone = state.running.iter().filter(|(_, running)| owners.contains(&running.owner));
        let gone: Vec<_> = gone.map(|(id, _)| id.clone()).collect();
        let gone: Vec<_> = gone.iter().filter_map(|id| state.running.remove(id)).collect();
        drop(state);
        for running in gone {
            running.stop("the session has ended", &Error::closed("the session has ended"));
        }
    }

    /// The server is closed.
    pub(crate) fn end_all(&self) {
        let mut state = self.lock();
        state.closed = true;
        self.leaves(&state, None, "the process that ran the task has ended");
        let gone: Vec<_> = std::mem::take(&mut state.running).into_iter().collect();
        for (id, running) in &gone {
            state.store.remove(&running.owner, id);
        }
        drop(state);
        self.end_watches(&Error::closed("the server was closed"));
        for (_, running) in gone {
            running.stop("the server was closed", &Error::closed("the server was closed"));
        }
    }

    /// The request for the task's result that is waiting, the newest one that somebody reads: messages of the task go
    /// out before its answer.
    fn result_call(&self, link: &dyn Link, id: &str) -> Option<CallId> {
        let waiting = self.lock().running.get(id)?.waiting();
        newest_read(link, &waiting)
    }

    /// Tells whoever asked for the task how it is.
    fn tell(&self, link: &Arc<dyn Link>, task: &Task, related: Option<CallId>) {
        if related.is_some() || link.is_heard() {
            let params = RawJson::from_value(task);
            link.clone().input(Input::Notify { method: "notifications/tasks/status", params, related });
        }
    }

    /// Changes a task that is not finished.
    fn change(
        &self,
        link: &Arc<dyn Link>,
        id: &str,
        change: impl FnOnce(&mut Running, &mut Task, Duration) -> Option<bool>,
    ) {
        let now = self.clock(&**link).now();
        let mut state = self.lock();
        let State { store, running, .. } = &mut *state;
        let Some(running) = running.get_mut(id) else { return };
        let Some(Kept { mut task, .. }) = store.get(&running.owner, id) else { return };
        let Some(tells) = change(running, &mut task, now) else { return };
        task.last_updated_at = stamp();
        let waiting = if tells { running.waiting() } else { Vec::new() };
        running.version += 1;
        let version = running.version;
        let told = running.questions.as_ref().filter(|_| tells).map(|questions| extension::told(&task, questions));
        let is_extension = running.questions.is_some();
        let changed = store.update(&running.owner, task.clone());
        drop(state);
        self.changed(id, false);
        match told {
            Some(told) if changed => self.hear(id, version, told),
            None if changed && tells && !is_extension => self.tell(link, &task, newest_read(&**link, &waiting)),
            _ => {}
        }
    }

    /// Sets the status message of the task, for people.
    fn set_status(&self, link: &Arc<dyn Link>, id: &str, message: &str) {
        let message = shortened(message, MAX_STATUS);
        self.change(link, id, |running, task, now| {
            if task.status_message.as_deref() == Some(&*message) {
                return None;
            }
            task.status_message = Some(message.into_owned());
            // Not to be relied on, so what comes too soon is not told.
            Some(running.pace.offer(now, RawJson::empty_object()).is_some())
        });
    }

    /// A question of the task waits for the peer's answer, or no longer does.
    fn asking(&self, link: &Arc<dyn Link>, id: &str, begins: bool) {
        self.change(link, id, |running, task, _| {
            running.asking = if begins { running.asking + 1 } else { running.asking.saturating_sub(1) };
            let status = if running.asking > 0 { TaskStatus::InputRequired } else { TaskStatus::Working };
            let changed = task.status != status;
            task.status = status;
            changed.then_some(true)
        });
    }

    /// The handler has answered.
    fn finish(
        self: &Arc<Self>,
        link: &Arc<dyn Link>,
        id: &str,
        status: TaskStatus,
        message: Option<String>,
        outcome: Outcome,
    ) {
        let mut state = self.lock();
        let Some(running) = state.running.remove(id) else { return };
        let Some(Kept { mut task, .. }) = state.store.get(&running.owner, id) else {
            // Before what waits for it is dropped.
            return drop(state);
        };
        task.status = status;
        task.status_message = message.or(task.status_message);
        task.last_updated_at = stamp();
        state.store.finish(&running.owner, task.clone(), Some(outcome.clone()));
        self.drops(state.store.dropped().iter().map(String::as_str));
        drop(state);
        self.changed(id, true);
        #[cfg(feature = "redis")]
        if !self.is_sure(id) {
            return self.over_for_all(link, id, running, (task, Some(outcome)));
        }
        self.over(link, id, running, &task, Some(&outcome));
    }

    /// Tells those that wait for it that a task is over.
    fn over(&self, link: &Arc<dyn Link>, id: &str, running: Running, task: &Task, outcome: Option<&Outcome>) {
        if let Some(questions) = running.questions {
            self.hear(id, u64::MAX, extension::told_end(task, outcome));
            questions.end(&Error::closed("the task is over"));
            return drop(running.context);
        }
        self.tell(link, task, newest_read(&**link, &running.waiting()));
        for (_, reply) in running.waiters {
            answer(reply, id, outcome);
        }
        drop(running.context);
    }
}

/// Runs the handler of a task.
fn run(context: Context, handler: Arc<dyn Handler>, shaper: Option<Arc<dyn Shaper>>, params: RawJson) {
    let reply = Reply::new(context.clone(), shaper).in_time();
    #[cfg(feature = "runtime")]
    let reply = reply.for_again(&context, &params);
    // A panic that gets here has dropped the reply, which has answered.
    let _ = std::panic::catch_unwind(AssertUnwindSafe(|| handler.call(context, params, reply)));
}

/// Answers a request for a task's result.
fn answer(reply: Reply, id: &str, outcome: Option<&Outcome>) {
    match outcome {
        Some(Outcome::Result(result)) => reply.result(with_meta(Some(result), &related(id))),
        Some(Outcome::Error(error)) => reply.error(error.clone()),
        None => reply.error(cancelled()),
    }
}

/// There is no answer that the request would have had.
fn cancelled() -> Error {
    Error::rpc(code::INTERNAL_ERROR, "the task was cancelled, and has no result")
}
