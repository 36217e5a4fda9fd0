//! Tasks that several processes can be asked for. A task runs in the process that took its request, and the store has a
//! copy of its state, which that process writes. Another process that is asked looks there.
//!
//! **Invariant**: the lock here is taken after that of the tasks, or alone.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::extension::{told_end, told_shared};
use super::serve::{ListTasksResult, MAX_UNREAD, id_of, text_of};
use super::{Tasks, answer, not_found, stamp};
use crate::call::{Context, Handler, Link, Reply};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
use crate::model::{Task, TaskStatus};
use crate::protocol::{Call, CallId, Payload, Transport};
use crate::store::redis::Redis;
use crate::store::redis::nodes::Number;
use crate::store::redis::tasks::{Answered, Failed, Looked, Put, Written, owner_of_session, task_name};
use crate::store::{Kept, MAX_OUTCOME, Outcome, Owner, SharedTask, outcome_text};

/// Tasks of other processes that are waited for or listened to here, at most; and requests that wait.
const MAX_WATCHED: usize = 10_000;
/// Attempts to write the end of a task that others may have ended: half a minute.
const AGAIN: u32 = 22;
/// Time between two writes of a task that goes on.
const PACE: Duration = Duration::from_millis(50);
/// Time for which a task may be missing before it is known to be gone: a store that was emptied gets it back.
const MISSING: Duration = Duration::from_secs(30);
/// Time for which an answer waits until the store knows that the questions are answered.
const TAKEN: Duration = Duration::from_secs(1);
/// Longest time between two looks for that.
const TAKEN_PACE: Duration = Duration::from_millis(50);
/// The reason of a task that has ended with its process.
const PROCESS_ENDED: &str = "the process that ran the task has ended";

/// This process among others, and the store of all.
pub(crate) struct Commons {
    pub(crate) store: Arc<Redis>,
    /// Name of this process.
    pub(crate) node: Arc<str>,
    pub(crate) number: Arc<Number>,
    /// Lives as long as the engine.
    pub(crate) runtime: tokio::runtime::Handle,
}

/// Tasks in the store, as this process knows them.
#[derive(Default)]
pub(super) struct Afar {
    commons: Mutex<Weak<Commons>>,
    state: Mutex<State>,
    changed: Arc<Notify>,
    news: Arc<Notify>,
}

#[derive(Default)]
struct State {
    /// Those that are kept here and known to all processes.
    own: HashMap<Arc<str>, Own>,
    /// Their ids, by the names that all processes know.
    by_name: HashMap<Arc<str>, Arc<str>>,
    /// Those that the store is to know anew, each once.
    queue: VecDeque<Arc<str>>,
    /// Counts them.
    last: u64,
    /// Tasks of other processes that somebody here waits for, by the same names.
    watched: HashMap<Arc<str>, Watched>,
    /// Those that have changed, each once.
    news: VecDeque<Arc<str>>,
    /// Requests that wait for results of those.
    waiters: usize,
}

/// A task of this process.
#[derive(Clone)]
struct Own {
    name: Arc<str>,
    owner: Owner,
    /// The session that it belongs to, by the name that all processes know.
    session: Option<Arc<str>>,
    expires: Duration,
    /// Place in order of creation.
    place: u64,
    /// Counts changes here, and those that the store knows.
    version: u64,
    written: u64,
    /// Number of times that this process had lost its number, when the store was known to have the task as it is here.
    confirmed: u32,
    is_queued: bool,
    is_over: bool,
    /// Time of the last write.
    at: Option<Instant>,
    /// The last state of a task that is not kept here any more.
    left: Option<Box<SharedTask>>,
    /// It is to be gone from the store, too.
    is_forgotten: bool,
}

/// A task of another process.
struct Watched {
    id: String,
    waiters: Vec<(CallId, Arc<dyn Link>, Reply)>,
    /// Clients here that listen to it.
    listeners: Vec<Weak<dyn Link>>,
    is_due: bool,
    /// State that they were told last.
    told: Option<(u64, RawJson)>,
    expires: Instant,
    missing: Option<Instant>,
}

/// Place of a task.
enum Standing {
    Here,
    /// Here, but another process may have ended it.
    Doubtful,
    Elsewhere,
}

/// The error of a request that needs the store.
fn away() -> Error {
    let message = "the store that this server's processes share does not answer: try again later";
    Error::rpc(code::UNAVAILABLE, message).with_data(RawJson::from_value(&json!({"retryAfter": 1})))
}

fn refused() -> Error {
    let message = "the process that runs the task takes no more answers now: try again later";
    Error::rpc(code::UNAVAILABLE, message).with_data(RawJson::from_value(&json!({"retryAfter": 1})))
}

/// The words for a task whose process has ended.
fn failed() -> Failed {
    let outcome = outcome_text(&Outcome::Error(Error::rpc(code::INTERNAL_ERROR, PROCESS_ENDED)));
    Failed { stamp: stamp(), message: PROCESS_ENDED, outcome }
}

impl Afar {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commons(&self) -> Option<Arc<Commons>> {
        self.commons.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

impl State {
    fn add(&mut self, id: &Arc<str>) {
        if let Some(own) = self.own.get_mut(id)
            && !std::mem::replace(&mut own.is_queued, true)
        {
            self.queue.push_back(id.clone());
        }
    }

    fn remove(&mut self, id: &str) {
        if let Some(own) = self.own.remove(id) {
            self.by_name.remove(&own.name);
        }
    }

    /// Takes the next task of another process that has changed.
    fn next_news(&mut self) -> Option<Arc<str>> {
        let name = self.news.pop_front()?;
        if let Some(watched) = self.watched.get_mut(&name) {
            watched.is_due = false;
        }
        Some(name)
    }

    /// Returns the tasks of other processes that somebody still waits for, and forgets the others.
    fn waited_for(&mut self) -> Vec<Arc<str>> {
        self.watched.retain(|_, watched| {
            watched.listeners.retain(|link| link.strong_count() > 0);
            !watched.is_idle()
        });
        self.watched.keys().cloned().collect()
    }

    fn unwatch(&mut self, name: &str) -> Option<Watched> {
        let watched = self.watched.remove(name)?;
        self.waiters -= watched.waiters.len();
        Some(watched)
    }
}

/// Tasks of this process, as others see them.
impl Tasks {
    /// The most bytes of a result.
    pub(super) const SHARED_BYTES: Option<usize> = Some(MAX_OUTCOME);

    /// Several processes are one server, for as long as this is there.
    pub(crate) fn join(&self, commons: &Arc<Commons>) {
        *self.afar.commons.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(commons);
    }

    /// Returns true if all processes know tasks.
    pub(super) fn is_shared(&self) -> bool {
        self.afar.commons().is_some()
    }

    /// The name of an owner that all processes know.
    fn shared_owner(&self, owner: &Owner, transport: &Transport, is_extension: bool) -> Option<String> {
        self.afar.commons()?;
        match is_extension {
            true => (transport.kind == "http").then(|| owner.0.to_string()),
            false => transport.shared_session.as_deref().map(owner_of_session),
        }
    }

    /// A task is kept here from now on, which all processes are to know, if there are several.
    pub(super) fn shares(
        &self,
        owner: &Owner,
        id: &Arc<str>,
        context: &Context,
        expires: Duration,
        is_extension: bool,
    ) {
        let transport = &context.request().transport;
        let Some(shared) = self.shared_owner(owner, transport, is_extension) else { return };
        let Some(commons) = self.afar.commons() else { return };
        let name = task_name(&shared, id);
        let session = if is_extension { None } else { transport.shared_session.clone() };
        let mut state = self.afar.lock();
        state.last += 1;
        let own = Own {
            name: name.clone(),
            owner: owner.clone(),
            session,
            expires,
            place: state.last,
            version: 1,
            written: 0,
            confirmed: commons.number.takes(),
            is_queued: false,
            is_over: false,
            at: None,
            left: None,
            is_forgotten: false,
        };
        state.own.insert(id.clone(), own);
        state.by_name.insert(name, id.clone());
    }

    /// Returns true if all processes are to know this task.
    pub(super) fn is_own(&self, id: &str) -> bool {
        self.afar.lock().own.contains_key(id)
    }

    /// A task is another now.
    pub(super) fn changed(&self, id: &str, is_over: bool) {
        let mut state = self.afar.lock();
        let Some((id, own)) = state.own.get_key_value(id).map(|(id, own)| (id.clone(), own.left.is_none())) else {
            return;
        };
        if own && let Some(own) = state.own.get_mut(&id) {
            own.version += 1;
            own.is_over |= is_over;
        }
        state.add(&id);
        drop(state);
        self.afar.changed.notify_one();
    }

    /// Tasks are gone here, and are to be gone everywhere.
    pub(super) fn drops<'a>(&self, ids: impl IntoIterator<Item = &'a str>) {
        let mut state = self.afar.lock();
        let mut any = false;
        for id in ids {
            let Some(id) = state.own.get_key_value(id).map(|(id, _)| id.clone()) else { continue };
            if let Some(own) = state.own.get_mut(&id) {
                own.is_forgotten = true;
            }
            state.add(&id);
            any = true;
        }
        drop(state);
        if any {
            self.afar.changed.notify_one();
        }
    }

    /// Tasks are over with their time: the store forgets them by itself.
    pub(super) fn lapsed<'a>(&self, ids: impl IntoIterator<Item = &'a str>) {
        let mut state = self.afar.lock();
        ids.into_iter().for_each(|id| state.remove(id));
    }

    /// Tasks that are about to be forgotten here keep their state in the store; those that still run have failed for this
    /// reason. `owners`: those of these; `None`: all.
    pub(super) fn leaves(&self, tasks: &super::State, owners: Option<&[Owner]>, reason: &str) {
        let mut state = self.afar.lock();
        let concerned = |own: &Own| {
            own.left.is_none() && !own.is_forgotten && owners.is_none_or(|owners| owners.contains(&own.owner))
        };
        let ids: Vec<_> = state.own.iter().filter(|(_, own)| concerned(own)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            let Some(own) = state.own.get_mut(&id) else { continue };
            let Some(mut shared) = shared(tasks, own, &id).filter(|_| own.written < own.version || !own.is_over) else {
                state.remove(&id);
                continue;
            };
            if !shared.task.status.is_terminal() {
                shared.task.status = TaskStatus::Failed;
                shared.task.status_message = Some(reason.to_owned());
                shared.task.last_updated_at = stamp();
                shared.outcome = Some(Outcome::Error(Error::rpc(code::INTERNAL_ERROR, reason)));
                shared.questions = None;
                own.version += 1;
            }
            shared.version = own.version;
            (own.left, own.is_over) = (Some(Box::new(shared)), true);
            state.add(&id);
        }
        drop(state);
        self.afar.changed.notify_one();
    }

    /// The store may not know the tasks of this process any more, or may know that others have ended them.
    pub(crate) fn tell_again(&self) {
        let mut state = self.afar.lock();
        let mut all: Vec<_> = state.own.iter().map(|(id, own)| (own.place, id.clone())).collect();
        all.sort_unstable();
        for (_, id) in all {
            if let Some(own) = state.own.get_mut(&id) {
                own.version += 1;
            }
            state.add(&id);
        }
        drop(state);
        self.afar.changed.notify_one();
    }

    /// Writes the last states of tasks that are not kept here any more.
    pub(crate) async fn write_last(self: &Arc<Self>) {
        // One that somebody else is writing is not among those that have changed.
        while self.afar.lock().own.values().any(|own| own.left.is_some()) {
            let _ = self.write_changed().await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns what says that there is something to write.
    pub(crate) fn changes(&self) -> Arc<Notify> {
        self.afar.changed.clone()
    }

    /// Writes what has changed. Returns the time after which there is more, if there is.
    ///
    /// # Errors
    /// The store did not take one. It stays among those that have changed.
    pub(crate) async fn write_changed(self: &Arc<Self>) -> Result<Option<Duration>> {
        let mut later = Vec::new();
        let mut next: Option<Duration> = None;
        let mut outcome = Ok(());
        while let Some(id) = self.next_changed(&mut later, &mut next) {
            if !self.write(&id).await {
                later.push(id);
                outcome = Err(away());
                if self.is_store_away() {
                    break;
                }
            }
        }
        let mut state = self.afar.lock();
        later.iter().for_each(|id| state.add(id));
        outcome.map(|()| next)
    }

    /// The numbers of tasks, running ones, names, tasks of others and requests that wait for those, for tests.
    #[cfg(test)]
    pub(crate) fn left(&self) -> [usize; 5] {
        let state = self.lock();
        let afar = self.afar.lock();
        [state.store.len(), state.running.len(), afar.own.len() + afar.by_name.len(), afar.watched.len(), afar.waiters]
    }

    fn is_store_away(&self) -> bool {
        self.afar.commons().is_none_or(|commons| commons.store.pause().is_some())
    }

    /// Takes the next one out whose turn has come; the others go into `later`.
    fn next_changed(&self, later: &mut Vec<Arc<str>>, next: &mut Option<Duration>) -> Option<Arc<str>> {
        let mut state = self.afar.lock();
        loop {
            let id = state.queue.pop_front()?;
            let Some(own) = state.own.get_mut(&id) else { continue };
            own.is_queued = false;
            let left = own.at.filter(|_| !own.is_over).and_then(|at| PACE.checked_sub(at.elapsed()));
            match left.filter(|left| !left.is_zero()) {
                None => return Some(id),
                Some(left) => {
                    *next = Some(next.map_or(left, |next| next.min(left)));
                    later.push(id);
                }
            }
        }
    }

    /// Writes a task of this process as it is. If another process has ended it, it ends here, too. `false`: the store did
    /// not take it.
    pub(super) async fn write(self: &Arc<Self>, id: &str) -> bool {
        let Some(commons) = self.afar.commons() else { return true };
        let Some(own) = self.afar.lock().own.get(id).cloned() else { return true };
        let session = own.session.as_deref();
        if own.is_forgotten {
            let is_done = commons.store.forget_task(&own.name, session, &commons.node).await.is_ok();
            if is_done {
                self.afar.lock().remove(id);
            }
            return is_done;
        }
        let task = match &own.left {
            Some(left) => Some((**left).clone()),
            None => shared(&self.lock(), &own, id),
        };
        let now = self.clock.get().map_or(Duration::ZERO, |clock| clock.now());
        let (Some(task), Some(left)) = (task, own.expires.checked_sub(now)) else {
            self.afar.lock().remove(id);
            return true;
        };
        let put = Put {
            name: &own.name,
            session,
            task: &task,
            ttl: super::options::millis(left),
            creates: own.left.is_none(),
            node: &commons.node,
            number: commons.number.get(),
        };
        // Without one nobody could see that it lives.
        if put.number == 0 {
            return false;
        }
        let takes = commons.number.takes();
        let Ok(written) = commons.store.put_task(&put).await else { return false };
        // Another write of this process may have ended it meanwhile.
        let is_so_here = |status: &str| {
            let kept = self.lock().store.get(&own.owner, id);
            kept.is_some_and(|kept| kept.task.status.as_str() == status)
        };
        match written {
            Written::Over(status) if status != task.task.status.as_str() && !is_so_here(status) => {
                return match own.left {
                    Some(_) => {
                        self.afar.lock().remove(id);
                        true
                    }
                    None => self.adopt(&commons, &own, id).await,
                };
            }
            Written::Done | Written::Over(_) => {
                let mut state = self.afar.lock();
                if own.left.is_some() {
                    state.remove(id);
                } else if let Some(known) = state.own.get_mut(id) {
                    known.written = known.written.max(own.version);
                    known.confirmed = takes;
                    known.at = Some(Instant::now());
                }
            }
            // Its session has ended.
            Written::Gone => self.afar.lock().remove(id),
        }
        true
    }

    /// Another process has ended a task of this one: its state is that in the store.
    async fn adopt(self: &Arc<Self>, commons: &Arc<Commons>, own: &Own, id: &str) -> bool {
        let Ok(looked) = commons.store.look_at_task(&own.name, id, 0, &failed()).await else { return false };
        let mut state = self.lock();
        let running = state.running.remove(id);
        state.store.remove(&own.owner, id);
        self.afar.lock().remove(id);
        drop(state);
        let Some(mut running) = running else { return true };
        let (task, outcome) = looked.map_or((None, None), |looked| (Some(looked.task.task), looked.task.outcome));
        let waiters = std::mem::take(&mut running.waiters);
        let cancelled = task.as_ref().is_none_or(|task| task.status == TaskStatus::Cancelled);
        // The process that ended it has told its session.
        if let Some(task) = task.filter(|_| running.questions.is_some()) {
            self.hear(id, u64::MAX, told_end(&task, outcome.as_ref()));
        }
        waiters.into_iter().for_each(|(_, reply)| answer(reply, id, outcome.as_ref()));
        let reason = if cancelled { "tasks/cancel" } else { "another process has ended the task" };
        running.stop(reason, &super::cancelled());
        true
    }

    /// Returns true if this process may answer for a task: no other can have ended it, and of its end the store knows.
    pub(super) fn is_sure(&self, id: &str) -> bool {
        let Some(commons) = self.afar.commons() else { return true };
        let (is_sure, takes) = (commons.number.is_sure(), commons.number.takes());
        self.afar.lock().own.get(id).is_none_or(|own| match own.is_over {
            true => own.written >= own.version,
            false => is_sure && own.confirmed == takes,
        })
    }

    /// Tells those that wait for it that a task is over, once the store knows that: another process may have ended it.
    pub(super) fn over_for_all(
        self: &Arc<Self>,
        link: &Arc<dyn Link>,
        id: &str,
        running: super::Running,
        here: (Task, Option<Outcome>),
    ) {
        let name = self.afar.lock().own.get(id).map(|own| own.name.clone());
        let Some(name) = name else { return self.over(link, id, running, &here.0, here.1.as_ref()) };
        let (tasks, to, id) = (self.clone(), link.clone(), id.to_owned());
        link.spawn(Box::pin(async move {
            // Others may have taken this process for gone: then nobody is told before the store says what they know.
            let mut pauses = (0..AGAIN).map(|n| Duration::from_millis(100 << n.min(4)));
            while !tasks.write(&id).await
                && !tasks.is_mine(&id)
                && let Some(pause) = pauses.next()
            {
                tokio::time::sleep(pause).await;
            }
            let is_here = tasks.lock().store.get(&running.owner, &id).is_some();
            let there = if is_here { None } else { tasks.look(&name, &id, false).await.ok().flatten() };
            let (task, outcome) = there.map_or(here, |looked| (looked.task.task, looked.task.outcome));
            tasks.over(&to, &id, running, &task, outcome.as_ref());
        }));
    }

    fn standing(&self, owner: &Owner, id: &str) -> Standing {
        if self.lock().store.get(owner, id).is_none() {
            return Standing::Elsewhere;
        }
        if self.is_sure(id) { Standing::Here } else { Standing::Doubtful }
    }

    /// Returns true if no process has taken this one for gone since it wrote this task: it cannot have failed there.
    fn is_mine(&self, id: &str) -> bool {
        let Some(commons) = self.afar.commons() else { return true };
        let (is_sure, takes) = (commons.number.is_sure(), commons.number.takes());
        is_sure && self.afar.lock().own.get(id).is_none_or(|own| own.confirmed == takes)
    }

    /// Writes a doubtful task, and says who answers for it.
    async fn settled(self: &Arc<Self>, owner: &Owner, id: &str) -> Standing {
        self.write(id).await;
        match self.standing(owner, id) {
            // The store does not answer.
            Standing::Doubtful if self.is_mine(id) => Standing::Here,
            standing => standing,
        }
    }

    /// The same for a request: one that goes on may have been cancelled at another process a moment ago, whose client
    /// knows that already.
    fn standing_for(&self, method: &str, owner: &Owner, id: &str) -> Standing {
        let standing = self.standing(owner, id);
        let asks = matches!(method, "tasks/get" | "tasks/cancel");
        let goes_on = || self.afar.lock().own.get(id).is_some_and(|own| !own.is_over);
        if asks && matches!(standing, Standing::Here) && goes_on() { Standing::Doubtful } else { standing }
    }

    /// News of a task came from another process. Those that write and look at tasks go on from there: news that come
    /// faster than that cost no more.
    pub(crate) fn heard_of(&self, name: &str, answers: Option<&Bytes>) {
        let mut state = self.afar.lock();
        let own = state.by_name.get(name).cloned();
        if let (Some(id), Some(answers)) = (&own, answers) {
            drop(state);
            let link = self.lock().running.get(id).map(|running| running.context.link().clone());
            let answers: Option<Map<String, Value>> = serde_json::from_slice(answers).ok();
            if let (Some(link), Some(answers)) = (link, answers) {
                self.answered(&link, id, &answers);
            }
            return;
        }
        if let Some(id) = own {
            // Written once more, the store says so if it is over.
            state.add(&id);
            self.afar.changed.notify_one();
        }
        let key = state.watched.get_key_value(name).map(|(key, _)| key.clone());
        if let Some(key) = key
            && let Some(watched) = state.watched.get_mut(&key)
            && !std::mem::replace(&mut watched.is_due, true)
        {
            state.news.push_back(key);
            self.afar.news.notify_one();
        }
    }

    /// Returns what says that tasks of other processes have changed.
    pub(crate) fn news(&self) -> Arc<Notify> {
        self.afar.news.clone()
    }

    /// Looks at those that have changed.
    pub(crate) async fn look_at_news(&self) {
        loop {
            let next = self.afar.lock().next_news();
            let Some(name) = next else { return };
            // One that fails now is looked at with the rest.
            let _ = self.refresh(&name).await;
        }
    }
}

/// The state of a task that is kept here.
fn shared(tasks: &super::State, own: &Own, id: &str) -> Option<SharedTask> {
    let Kept { task, outcome } = tasks.store.get(&own.owner, id)?;
    let questions = tasks.running.get(id).and_then(|running| running.questions.as_ref());
    let questions = questions.filter(|_| task.status == TaskStatus::InputRequired);
    let questions = questions.map(|questions| RawJson::from_value(&questions.requests()));
    Some(SharedTask { task, outcome, questions, version: own.version })
}

/// Tasks of other processes.
impl Tasks {
    /// Looks at a task in the store.
    async fn look(&self, name: &str, id: &str, watches: bool) -> Result<Option<Looked>> {
        let commons = self.afar.commons().ok_or_else(away)?;
        let watcher = if watches { commons.number.get() } else { 0 };
        commons.store.look_at_task(name, id, watcher, &failed()).await.map_err(|_| away())
    }

    /// Answers a request about tasks of a session that several processes serve, as far as it needs the store. Gives back
    /// what does not.
    pub(super) fn serve_shared(
        self: &Arc<Self>,
        link: &Arc<dyn Link>,
        call: Call,
        owner: &Owner,
        page_size: usize,
    ) -> Option<Call> {
        let session = call.context.transport.shared_session.clone();
        let Some(session) = session.filter(|_| self.is_shared()) else { return Some(call) };
        let lists = call.method.name == "tasks/list";
        let id = if lists { Ok(String::new()) } else { id_of(&call) };
        // It is refused there.
        let Ok(id) = id else { return Some(call) };
        let standing = if lists { Standing::Elsewhere } else { self.standing_for(call.method.name, owner, &id) };
        if matches!(standing, Standing::Here) {
            return Some(call);
        }
        let (tasks, to, owner) = (self.clone(), link.clone(), owner.clone());
        link.spawn(Box::pin(async move {
            if lists {
                let outcome = tasks.list_shared(&call, &session, page_size).await;
                return to.complete(call.id, outcome.map(Payload::Object));
            }
            if matches!(standing, Standing::Doubtful) {
                match tasks.settled(&owner, &id).await {
                    Standing::Here => return tasks.serve_here(&to, call, page_size),
                    Standing::Doubtful => return to.complete(call.id, Err(away())),
                    Standing::Elsewhere => {}
                }
            }
            tasks.serve_afar(&to, call, &task_name(&owner_of_session(&session), &id), id).await;
        }));
        None
    }

    async fn serve_afar(self: &Arc<Self>, link: &Arc<dyn Link>, call: Call, name: &Arc<str>, id: String) {
        let looked = match call.method.name {
            "tasks/get" => {
                let looked = self.look(name, &id, false).await;
                looked.map(|looked| looked.map(|looked| (looked.task, looked.has_failed)))
            }
            "tasks/cancel" => self.cancel_afar(name, &id).await.and_then(|(shared, is_new)| {
                if is_new { Ok(Some((shared, true))) } else { Err(super::serve::over(&shared.task)) }
            }),
            _ => return self.wait_afar(link, call, name, id).await,
        };
        let looked = looked.and_then(|looked| looked.ok_or_else(|| not_found(&id)));
        let (outcome, told) = match looked {
            Ok((shared, is_new)) => (Ok(RawJson::from_value(&shared.task)), is_new.then_some(shared.task)),
            Err(error) => (Err(error), None),
        };
        link.clone().complete(call.id, outcome.map(Payload::Object));
        if let Some(task) = told {
            self.tell(link, &task, None);
        }
    }

    /// Cancels a task of another process. `false`: it was over.
    async fn cancel_afar(&self, name: &str, id: &str) -> Result<(SharedTask, bool)> {
        let commons = self.afar.commons().ok_or_else(away)?;
        let cancelled =
            commons.store.cancel_task(name, id, super::serve::CANCELLED, stamp()).await.map_err(|_| away())?;
        cancelled.ok_or_else(|| not_found(id))
    }

    async fn list_shared(&self, call: &Call, session: &str, page_size: usize) -> Result<RawJson> {
        let commons = self.afar.commons().ok_or_else(away)?;
        let cursor = text_of(call, "cursor")?;
        let after = super::serve::place_of(cursor.as_deref(), u64::MAX >> 11)?;
        let most = page_size.max(1);
        let listed = commons.store.list_tasks(session, after, most.saturating_add(1), &failed()).await;
        let mut listed = listed.map_err(|_| away())?;
        let more = listed.len() > most;
        listed.truncate(most);
        let next_cursor = listed.last().filter(|_| more).map(|(place, _)| super::serve::cursor_of(*place));
        let tasks = listed.into_iter().map(|(_, shared)| shared.task).collect();
        Ok(RawJson::from_value(&ListTasksResult { tasks, next_cursor }))
    }

    /// A request waits for the result of another process's task.
    async fn wait_afar(self: &Arc<Self>, link: &Arc<dyn Link>, call: Call, name: &Arc<str>, id: String) {
        let handler = Arc::new(WaitsAfar { tasks: Arc::downgrade(self), name: name.clone() });
        let context = Context::new(call.id, call.context, link.clone(), handler.clone());
        if !link.started(&context) {
            return;
        }
        let reply = Reply::new(context.clone(), None);
        // Before the look, so that no news of it is missed.
        let refused = self.watch(name, &id, |watched| watched.waiters.push((context.call(), link.clone(), reply)));
        if let Err((keep, error)) = refused {
            let mut watched = Watched::new(&id);
            keep(&mut watched);
            return watched.waiters.into_iter().for_each(|(_, _, reply)| reply.error(error.clone()));
        }
        // A cancellation that came before found nothing.
        if context.is_cancelled() {
            return handler.cancel(&context, None);
        }
        self.give_up_unread_afar(link);
        if let Err(error) = self.refresh(name).await {
            let waiter = self.take_waiter(name, link.number(), call.id);
            return waiter.into_iter().for_each(|reply| reply.error(error.clone()));
        }
        // Messages of the task may go out with the answer.
        if self.afar.lock().watched.contains_key(name) {
            link.take_up(call.id);
        }
    }

    /// Notes that somebody here waits for a task.
    ///
    /// # Errors
    /// Gives the note back when too many are waited for.
    fn watch<F: FnOnce(&mut Watched)>(&self, name: &Arc<str>, id: &str, note: F) -> Result<(), (F, Error)> {
        let mut state = self.afar.lock();
        let is_full = state.watched.len() >= MAX_WATCHED && !state.watched.contains_key(name);
        if is_full || state.waiters >= MAX_WATCHED {
            let message = format!("{MAX_WATCHED} requests wait for tasks of other processes already: try again later");
            return Err((note, Error::rpc(code::UNAVAILABLE, message)));
        }
        let watched = state.watched.entry(name.clone()).or_insert_with(|| Watched::new(id));
        let before = watched.waiters.len();
        note(watched);
        let more = watched.waiters.len() - before;
        state.waiters += more;
        Ok(())
    }

    fn take_waiter(&self, name: &str, link: u64, call: CallId) -> Option<Reply> {
        let mut state = self.afar.lock();
        let watched = state.watched.get_mut(name)?;
        let place = watched.waiters.iter().position(|(own, of, _)| *own == call && of.number() == link)?;
        let (_, _, reply) = watched.waiters.remove(place);
        let is_idle = watched.is_idle();
        state.waiters -= 1;
        if is_idle {
            state.watched.remove(name);
        }
        Some(reply)
    }

    /// Answers the oldest requests of a session whose clients have gone without saying so.
    fn give_up_unread_afar(&self, link: &Arc<dyn Link>) {
        let state = self.afar.lock();
        let all =
            state.watched.iter().flat_map(|(name, watched)| watched.waiters.iter().map(move |waiter| (name, waiter)));
        let own = all.filter(|(_, (_, of, _))| of.number() == link.number());
        let mut own: Vec<_> = own.map(|(name, (call, ..))| (*call, name.clone())).collect();
        drop(state);
        if own.len() <= MAX_UNREAD {
            return;
        }
        own.sort_unstable();
        own.retain(|(call, _)| !link.is_read(*call));
        for (call, name) in &own[..own.len().saturating_sub(MAX_UNREAD)] {
            if let Some(reply) = self.take_waiter(name, link.number(), *call) {
                reply.error(super::serve::given_up());
            }
        }
    }

    /// Looks at a task that somebody here waits for, and tells them.
    ///
    /// # Errors
    /// The store does not answer.
    async fn refresh(&self, name: &Arc<str>) -> Result<()> {
        let Some(id) = self.afar.lock().watched.get(name).map(|watched| watched.id.clone()) else { return Ok(()) };
        let looked = self.look(name, &id, true).await?;
        let mut state = self.afar.lock();
        let Some(watched) = state.watched.get_mut(name) else { return Ok(()) };
        let Some(Looked { task: shared, has_failed, left }) = looked else {
            let missing = *watched.missing.get_or_insert_with(Instant::now);
            let was_there = watched.expires > Instant::now();
            if was_there && missing.elapsed() < MISSING {
                return Ok(());
            }
            let gone = state.unwatch(name);
            drop(state);
            for (_, _, reply) in gone.into_iter().flat_map(|gone| gone.waiters) {
                reply.error(not_found(&id));
            }
            return Ok(());
        };
        watched.missing = None;
        let is_over = shared.task.status.is_terminal();
        let version = if is_over { u64::MAX } else { shared.version };
        let is_news = !watched.listeners.is_empty() && watched.told.as_ref().is_none_or(|(told, _)| *told < version);
        let told = is_news.then(|| told_shared(&shared));
        if let Some(told) = &told {
            watched.told = Some((version, told.clone()));
        }
        watched.expires = Instant::now() + left;
        let gone = if is_over { state.unwatch(name) } else { None };
        drop(state);
        if let Some(told) = told {
            self.hear(&id, version, told);
        }
        let waiters = gone.map(|gone| gone.waiters).unwrap_or_default();
        if let Some((_, link, _)) = waiters.first().filter(|_| has_failed) {
            self.tell(link, &shared.task, None);
        }
        for (_, _, reply) in waiters {
            answer(reply, &id, shared.outcome.as_ref());
        }
        Ok(())
    }

    /// Looks at all tasks that somebody here waits for: the process that works on one may have ended without a word.
    pub(crate) async fn look_again(&self) {
        let names = self.afar.lock().waited_for();
        for name in names {
            // One that cannot be read says nothing of the others.
            if self.refresh(&name).await.is_err() && self.is_store_away() {
                return;
            }
            // Another request of the session may have taken what goes out with the answer.
            let last = |watched: &Watched| watched.waiters.last().map(|(call, link, _)| (*call, link.clone()));
            let waiter = self.afar.lock().watched.get(&name).and_then(last);
            if let Some((call, link)) = waiter.filter(|(call, link)| link.is_read(*call)) {
                link.take_up(call);
            }
        }
    }

    /// The server is closed: nobody waits any more.
    pub(super) fn end_watches(&self, error: &Error) {
        let mut state = self.afar.lock();
        state.waiters = 0;
        state.news = VecDeque::new();
        let gone = std::mem::take(&mut state.watched);
        drop(state);
        for (_, _, reply) in gone.into_values().flat_map(|gone| gone.waiters) {
            reply.error(error.clone());
        }
    }
}

/// Tasks of the extension that other processes run.
impl Tasks {
    /// Answers a request about a task of the extension, if that needs the store. `false`: it does not.
    pub(super) fn extension_afar(self: &Arc<Self>, link: &Arc<dyn Link>, call: &Call, owner: &Owner, id: &str) -> bool {
        let Some(shared) = self.shared_owner(owner, &call.context.transport, true) else { return false };
        let standing = self.standing_for(call.method.name, owner, id);
        let answers = call.method.name == "tasks/update";
        if matches!(standing, Standing::Here) && !answers {
            return false;
        }
        let (tasks, to, owner, id) = (self.clone(), link.clone(), owner.clone(), id.to_owned());
        let (request, method, params) = (call.id, call.method.name, call.params.clone());
        link.spawn(Box::pin(async move {
            let standing = match standing {
                Standing::Doubtful => tasks.settled(&owner, &id).await,
                standing => standing,
            };
            if matches!(standing, Standing::Doubtful) {
                return to.complete(request, Err(away()));
            }
            if matches!(standing, Standing::Here) {
                let outcome = tasks.extension_here(&to, method, &owner, &id, params.as_ref());
                if method != "tasks/get" {
                    // A client that looks next, at any process, sees neither these questions nor a task that runs.
                    tasks.write(&id).await;
                }
                return to.complete(request, outcome.map(Payload::Object));
            }
            let name = task_name(&shared, &id);
            let outcome = match method {
                "tasks/get" => match tasks.look(&name, &id, false).await {
                    Ok(Some(looked)) => Ok(told_shared(&looked.task)),
                    Ok(None) => Err(not_found(&id)),
                    Err(error) => Err(error),
                },
                // A finished task stays as it is.
                "tasks/cancel" => tasks.cancel_afar(&name, &id).await.map(|_| RawJson::empty_object()),
                _ => tasks.answer_afar(&name, &id, params.as_ref()).await,
            };
            to.complete(request, outcome.map(Payload::Object));
        }));
        true
    }

    /// Passes answers on to the process that asks.
    async fn answer_afar(&self, name: &str, id: &str, params: Option<&RawJson>) -> Result<RawJson> {
        let responses = super::extension::responses_of(params)?;
        let text = Bytes::from(serde_json::to_vec(&responses).unwrap_or_default());
        let commons = self.afar.commons().ok_or_else(away)?;
        match commons.store.answer_task(name, &text).await.map_err(|_| away())? {
            Answered::Sent => {
                self.until_taken(name, id, &responses).await;
                Ok(RawJson::empty_object())
            }
            Answered::Over => Ok(RawJson::empty_object()),
            Answered::Unknown => Err(not_found(id)),
            Answered::Refused => Err(refused()),
        }
    }

    /// Waits, for a moment at most, until the store knows the task without these questions: a client that has answered
    /// them and looks next does not see them.
    async fn until_taken(&self, name: &str, id: &str, responses: &Map<String, Value>) {
        let (until, mut pause) = (Instant::now() + TAKEN, Duration::from_millis(2));
        while Instant::now() < until {
            tokio::time::sleep(pause).await;
            let Ok(Some(looked)) = self.look(name, id, false).await else { return };
            let asked = looked.task.questions.and_then(|questions| questions.to::<Map<String, Value>>().ok());
            if !asked.unwrap_or_default().keys().any(|key| responses.contains_key(key)) {
                return;
            }
            pause = (pause * 2).min(TAKEN_PACE);
        }
    }

    /// Finds tasks of other processes that a client wants to listen to, which tell this one of their changes from now on.
    /// Each with what there is to tell now.
    ///
    /// # Errors
    /// The store does not answer; too many are listened to.
    pub(crate) async fn listens_to(
        &self,
        context: &Context,
        wanted: Vec<(Owner, String)>,
    ) -> Result<Vec<(Owner, String, Option<(u64, RawJson)>)>> {
        let mut found = Vec::with_capacity(wanted.len());
        for (owner, id) in wanted {
            let Some(shared) = self.shared_owner(&owner, &context.request().transport, true) else { continue };
            let name = task_name(&shared, &id);
            let Some(Looked { task: shared, left, .. }) = self.look(&name, &id, true).await? else { continue };
            let is_over = shared.task.status.is_terminal();
            let now = (if is_over { u64::MAX } else { shared.version }, told_shared(&shared));
            if !is_over {
                let note = |watched: &mut Watched| {
                    watched.listeners.retain(|link| link.strong_count() > 0);
                    watched.listeners.push(Arc::downgrade(context.link()));
                    watched.expires = Instant::now() + left;
                    if watched.told.as_ref().is_none_or(|(told, _)| *told < now.0) {
                        watched.told = Some(now.clone());
                    }
                };
                self.watch(&name, &id, note).map_err(|(_, error)| error)?;
            }
            found.push((owner, id, Some(now)));
        }
        Ok(found)
    }

    /// Returns the newest state that was heard of another process's task.
    pub(super) fn last_heard(&self, id: &str) -> Option<(u64, RawJson)> {
        let state = self.afar.lock();
        state.watched.values().find(|watched| watched.id == id).and_then(|watched| watched.told.clone())
    }
}

impl Watched {
    fn new(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            waiters: Vec::new(),
            listeners: Vec::new(),
            is_due: false,
            told: None,
            expires: Instant::now(),
            missing: None,
        }
    }

    /// Returns true if nobody waits for it.
    fn is_idle(&self) -> bool {
        self.waiters.is_empty() && self.listeners.is_empty()
    }
}

/// A request for the result of another process's task. That it is cancelled is nothing to the task.
struct WaitsAfar {
    tasks: Weak<Tasks>,
    name: Arc<str>,
}

impl Handler for WaitsAfar {
    fn call(&self, _: Context, _: RawJson, reply: Reply) {
        drop(reply);
    }

    fn cancel(&self, cx: &Context, _: Option<&str>) {
        let tasks = self.tasks.upgrade();
        drop(tasks.and_then(|tasks| tasks.take_waiter(&self.name, cx.link().number(), cx.call())));
    }
}
