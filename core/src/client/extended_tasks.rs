//! Tasks of servers of 2026-07-28 (extension `io.modelcontextprotocol/tasks`), in the words that tasks have in 2025-11-25:
//! whoever calls tools and follows tasks need not know which of the two the server has.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::Client;
use crate::call::tasks::{self, Followed, Requestor, created, detailed};
use crate::call::{CallOptions, Done, Guard, trace_of};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{ErrorObject, RawJson};
use crate::model::{TASKS_EXTENSION, Task, TaskStatus};
use crate::protocol::revision::shape;
use crate::signal::Signal;

/// The most tasks of which it is remembered what was answered.
const MAX_TASKS: usize = 1000;
/// The most questions that one task asks at once, and that it asks at all.
const MAX_QUESTIONS: usize = 64;
const MAX_ANSWERS: usize = 1024;
/// The most results of calls that were wanted as tasks and answered at once, and their bytes together.
const MAX_KEPT: usize = 100;
const MAX_KEPT_BYTES: usize = 4 << 20;
/// How often in a row a task cannot be looked at before that is an error.
const MAX_BROKEN: u32 = 5;

/// What a client knows of tasks of the extension.
#[derive(Default)]
pub(super) struct Extended {
    /// The questions that are answered or about to be, by their tasks: a question stays until the server has seen its
    /// answer.
    answered: Mutex<VecDeque<(String, BTreeSet<String>)>>,
    /// Results of calls that were answered at once, by the names that they have here.
    finished: Mutex<VecDeque<(String, RawJson)>>,
    /// Counts those, for their names.
    last: AtomicU64,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Extended {
    /// Whether this question is to be answered now.
    ///
    /// # Errors
    /// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) for a task that asks without end.
    fn claim(&self, id: &str, key: &str) -> Result<bool> {
        let mut answered = locked(&self.answered);
        let place = match answered.iter().position(|(own, _)| own == id) {
            Some(place) => place,
            None => {
                if answered.len() >= MAX_TASKS {
                    answered.pop_front();
                }
                answered.push_back((id.to_owned(), BTreeSet::new()));
                answered.len() - 1
            }
        };
        let keys = &mut answered[place].1;
        if keys.len() >= MAX_ANSWERS && !keys.contains(key) {
            let message = format!("result of tasks/get: the task asks for more after {MAX_ANSWERS} answers");
            return Err(Error::new(ErrorKind::PeerMisbehaved, message));
        }
        Ok(keys.insert(key.to_owned()))
    }

    fn give_back(&self, id: &str, key: &str) {
        let mut answered = locked(&self.answered);
        for (_, keys) in answered.iter_mut().filter(|(own, _)| own == id) {
            keys.remove(key);
        }
        answered.retain(|(_, keys)| !keys.is_empty());
    }

    fn over(&self, id: &str) {
        locked(&self.answered).retain(|(own, _)| own != id);
    }

    /// Gives the name under which the result is kept, which is no server's.
    fn keep(&self, result: RawJson) -> String {
        let id = format!("tricorn/answered-{}", self.last.fetch_add(1, Ordering::Relaxed));
        let mut finished = locked(&self.finished);
        finished.push_back((id.clone(), result));
        let bytes = |all: &VecDeque<(String, RawJson)>| all.iter().map(|(_, result)| result.get().len()).sum::<usize>();
        while finished.len() > MAX_KEPT || (finished.len() > 1 && bytes(&finished) > MAX_KEPT_BYTES) {
            finished.pop_front();
        }
        id
    }

    fn kept(&self, id: &str) -> Option<RawJson> {
        locked(&self.finished).iter().find(|(own, _)| own == id).map(|(_, result)| result.clone())
    }
}

/// An answer that is being made. Given up, another may make it.
struct Claim {
    client: Client,
    id: String,
    key: String,
    sent: bool,
}

impl Claim {
    fn task(&self) -> &str {
        &self.id
    }

    fn is_sent(&mut self) {
        self.sent = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.sent {
            self.client.connected.known.extended.give_back(&self.id, &self.key);
        }
    }
}

/// What has become of the answers that are being made, and what to wake when one is.
#[derive(Default)]
struct Answering {
    failed: Mutex<Option<Error>>,
    wake: Mutex<Arc<Signal>>,
}

/// A task as it would be told in 2025-11-25, with what else the extension tells.
pub(super) fn neutral(task: &Task, rest: Map<String, Value>) -> RawJson {
    let mut members: Map<String, Value> = RawJson::from_value(task).to().unwrap_or_default();
    members.extend(rest);
    RawJson::from_value(&members)
}

/// What the call of a finished task would have been answered with.
pub(super) fn outcome(task: &Task, rest: &Map<String, Value>) -> Result<RawJson> {
    let wrong = |why: &str| Error::new(ErrorKind::PeerMisbehaved, format!("result of tasks/get: {why}"));
    match task.status {
        TaskStatus::Cancelled => Err(Error::cancelled("the task was cancelled")),
        TaskStatus::Failed => {
            let error = rest.get("error").cloned().unwrap_or_default();
            let error: ErrorObject = serde_json::from_value(error).map_err(|e| wrong(&format!("\"error\": {e}")))?;
            Err(Error::from(error))
        }
        _ => match rest.get("result") {
            Some(result) if result.is_object() => Ok(RawJson::from_value(result)),
            _ => Err(wrong("\"result\": expected an object, as the task is completed")),
        },
    }
}

fn id_of(method: &str, params: Option<&RawJson>) -> Result<String> {
    let members: Map<String, Value> = params.and_then(|params| params.to().ok()).unwrap_or_default();
    let id = members.get("taskId").and_then(Value::as_str);
    id.map(str::to_owned).ok_or_else(|| Error::misuse(format!("{method}: \"taskId\": expected a string")))
}

/// A call that was answered at once, as a task that is over.
fn at_once(id: &str) -> Task {
    let now = humantime::format_rfc3339_millis(std::time::SystemTime::now()).to_string();
    Task {
        task_id: id.to_owned(),
        status: TaskStatus::Completed,
        status_message: None,
        created_at: now.clone(),
        last_updated_at: now,
        ttl: None,
        poll_interval: None,
        meta: None,
        extra: Map::new(),
    }
}

impl Client {
    /// Whether both sides declare the extension.
    pub(super) fn has_extended_tasks(&self) -> bool {
        self.revision().rules().tasks_extension
            && self.connected.link.declares_extension(TASKS_EXTENSION)
            && self.capabilities().has_extension(TASKS_EXTENSION)
    }

    /// Why there are no tasks in this connection.
    pub(super) fn no_extended_tasks(&self, method: &str) -> Error {
        let who = match self.connected.link.declares_extension(TASKS_EXTENSION) {
            true => "the server does not declare the extension",
            false => "the client does not declare the extension (option \"tasks\")",
        };
        Error::new(ErrorKind::Unsupported, format!("{method:?} as a task: {who} {TASKS_EXTENSION:?}"))
    }

    /// Does what has to do with tasks. Gives `done` back for anything else.
    pub(super) fn extended(
        &self,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> Result<Guard, Done> {
        if !self.has_extended_tasks() {
            return Err(done);
        }
        let (client, mut options) = (self.clone(), options.clone());
        if method.starts_with("tasks/") {
            // Of what is sent instead.
            options.trace_context = trace_of(params, options.trace_context.as_ref());
        }
        let requestor = self.requestor(options.trace_context.clone());
        let link = self.connected.link.clone();
        let id = id_of(method, params);
        Ok(match (method, id) {
            ("tools/call", _) => self.call_extended(params, &options, done),
            ("tasks/get" | "tasks/result" | "tasks/cancel", Err(error)) => {
                done(Err(error));
                Box::new(())
            }
            ("tasks/get", Ok(id)) => {
                let work = async move {
                    client.look(&id, &requestor, &options).await.map(|(task, rest)| neutral(&task, rest))
                };
                tasks::following(&link, work, done)
            }
            ("tasks/result", Ok(id)) => {
                let work = async move {
                    let (task, rest) = client.finished(&id, requestor, &options).await?;
                    outcome(&task, &rest)
                };
                tasks::following(&link, work, done)
            }
            ("tasks/cancel", Ok(id)) => {
                let work = async move {
                    if client.connected.known.extended.kept(&id).is_none() {
                        let params = RawJson::from_value(&json!({"taskId": id}));
                        requestor.ask("tasks/cancel", Some(params), &options).await?;
                    }
                    client.look(&id, &requestor, &options).await.map(|(task, _)| RawJson::from_value(&task))
                };
                tasks::following(&link, work, done)
            }
            _ => return Err(done),
        })
    }

    /// Calls a tool. Becomes it a task, that is followed to its end; who has written `task` into the parameters gets the
    /// task itself, also when the server has answered at once.
    fn call_extended(&self, params: Option<&RawJson>, options: &CallOptions, done: Done) -> Guard {
        let mut text = String::from("{");
        let mut wants_task = false;
        for (key, value) in shape::members(params.map_or("{}", RawJson::get)) {
            match key.as_ref() {
                "task" => wants_task = true,
                _ => shape::push_member(&mut text, &key, value.get()),
            }
        }
        text.push('}');
        // What follows a task outlives the request that began it.
        let follow: Arc<Mutex<Option<Guard>>> = Arc::default();
        let begun = self.connected.link.clock().now();
        let (client, mut given, following) = (self.clone(), options.clone(), Arc::downgrade(&follow));
        let asked = params.cloned();
        let heard: Done = Box::new(move |result| {
            let task = result.and_then(|result| Ok((created("tools/call", &result)?, result)));
            let (task, result) = match task {
                Ok((Some(task), _)) if !wants_task => {
                    let link = client.connected.link.clone();
                    let passed = link.clock().now().saturating_sub(begun);
                    let most = given.max_timeout.filter(|most| !most.is_zero());
                    given.max_timeout = most.map(|most| most.saturating_sub(passed));
                    // Whenever it is given up from now on, the task is cancelled.
                    given.trace_context = trace_of(asked.as_ref(), given.trace_context.as_ref());
                    let followed = Followed::new(client.requestor(given.trace_context.clone()), &task.task_id);
                    let work = async move { client.followed(followed, task, &given).await };
                    let guard = tasks::following(&link, work, done);
                    if let Some(slot) = following.upgrade() {
                        *locked(&slot) = Some(guard);
                    }
                    return;
                }
                Ok((task, result)) => (task, result),
                Err(error) => return done(Err(error)),
            };
            if !wants_task {
                return done(Ok(result));
            }
            done(Ok(client.as_created(task, result)));
        });
        let first = self.send_rounds("tools/call", Some(RawJson::written(text)), options, heard);
        Box::new((first, follow))
    }

    /// The answer to a call that was wanted as a task.
    fn as_created(&self, task: Option<Task>, result: RawJson) -> RawJson {
        let Some(task) = task else {
            let id = self.connected.known.extended.keep(result);
            return RawJson::from_value(&json!({"task": at_once(&id)}));
        };
        let mut members: Map<String, Value> = result.to().unwrap_or_default();
        let mut created = json!({"task": task});
        if let Some(meta) = members.remove("_meta") {
            created["_meta"] = meta;
        }
        RawJson::from_value(&created)
    }

    /// How a task is, with what is not the task's own.
    async fn look(&self, id: &str, requestor: &Requestor, options: &CallOptions) -> Result<(Task, Map<String, Value>)> {
        if let Some(result) = self.connected.known.extended.kept(id) {
            let mut rest = Map::new();
            rest.insert("result".into(), result.to().unwrap_or_default());
            return Ok((at_once(id), rest));
        }
        let params = RawJson::from_value(&json!({"taskId": id}));
        let said = requestor.ask("tasks/get", Some(params), options).await?;
        detailed("tasks/get", &said)
    }

    /// The result of a call that has become a task. Given up, the task is cancelled.
    async fn followed(&self, mut followed: Followed, task: Task, options: &CallOptions) -> Result<RawJson> {
        let (timeout, trace_context) = (options.timeout, options.trace_context.clone());
        let each = CallOptions { timeout, trace_context, ..CallOptions::default() };
        let requestor = self.requestor(each.trace_context.clone());
        let ended = self.finished(&task.task_id, requestor.clone(), &each);
        let ended = match options.max_timeout {
            None => ended.await,
            Some(most) => tasks::within(&requestor, most, ended).await.unwrap_or_else(|| {
                let message = format!("no answer to \"tools/call\" within {} s (max_timeout)", most.as_secs_f64());
                Err(Error::new(ErrorKind::Timeout, message))
            }),
        };
        let (task, rest) = ended?;
        followed.is_over();
        outcome(&task, &rest)
    }

    /// Waits until a task is finished, and answers its questions meanwhile.
    pub(super) async fn finished(
        &self,
        id: &str,
        requestor: Requestor,
        options: &CallOptions,
    ) -> Result<(Task, Map<String, Value>)> {
        let mut following = Following::new(self, id, requestor, options);
        loop {
            let (task, rest) = following.look().await?;
            if task.status.is_terminal() {
                return Ok((task, rest));
            }
            following.pause(&task).await?;
        }
    }
}

/// A task that is looked at until it is finished. Its questions are answered until this is dropped.
pub(super) struct Following {
    client: Client,
    id: String,
    options: CallOptions,
    requestor: Requestor,
    /// Since before the last look, or a change right after it would be missed.
    news: Arc<Signal>,
    answering: Arc<Answering>,
    making: Vec<Guard>,
    broken: u32,
}

impl Following {
    pub(super) fn new(client: &Client, id: &str, requestor: Requestor, options: &CallOptions) -> Self {
        Self {
            client: client.clone(),
            id: id.to_owned(),
            requestor,
            options: options.clone(),
            news: Arc::default(),
            answering: Arc::default(),
            making: Vec::new(),
            broken: 0,
        }
    }

    /// How the task is. What it asks is on its way to who answers it.
    ///
    /// # Errors
    /// As a look; what went wrong with an answer.
    pub(super) async fn look(&mut self) -> Result<(Task, Map<String, Value>)> {
        let extended = &self.client.connected.known.extended;
        let (task, rest) = loop {
            self.news = self.client.connected.known.news(&self.id);
            *locked(&self.answering.wake) = self.news.clone();
            if let Some(error) = locked(&self.answering.failed).take() {
                return Err(error);
            }
            match self.client.look(&self.id, &self.requestor, &self.options).await {
                Ok(seen) => break seen,
                // A connection that broke off is nothing to the task.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Transport | ErrorKind::Timeout)
                        && self.broken < MAX_BROKEN =>
                {
                    self.broken += 1;
                    self.requestor.rest().await;
                }
                Err(error) => return Err(error),
            }
        };
        self.broken = 0;
        if task.status.is_terminal() {
            extended.over(&self.id);
            return Ok((task, rest));
        }
        if let Some(Value::Object(questions)) = rest.get("inputRequests").cloned() {
            if questions.len() > MAX_QUESTIONS {
                let message = format!("result of tasks/get: more than {MAX_QUESTIONS} questions at once");
                return Err(Error::new(ErrorKind::PeerMisbehaved, message));
            }
            for (key, question) in questions {
                if extended.claim(&self.id, &key)? {
                    let guard = self.answer(key, question);
                    self.making.push(guard);
                }
            }
        }
        Ok((task, rest))
    }

    /// Waits until it is time for the next look.
    ///
    /// # Errors
    /// [`Closed`](ErrorKind::Closed).
    pub(super) async fn pause(&self, task: &Task) -> Result<()> {
        let over = &self.client.connected.hub.over;
        let paused = over.unless(self.requestor.pause(task, &self.news, None)).await;
        paused.map(drop).ok_or_else(|| Error::closed("the connection ended while a task was followed"))
    }

    /// Has a task's question answered, and brings the answer to the server.
    fn answer(&self, key: String, question: Value) -> Guard {
        let (client, heard, link) = (self.client.clone(), self.answering.clone(), self.client.connected.link.clone());
        let mut claim = Claim { client: client.clone(), id: self.id.clone(), key: key.clone(), sent: false };
        let requestor = self.requestor.clone();
        let work = async move {
            let questions = Map::from_iter([(key, question)]);
            let responses = client.responses("tasks/get", &questions, requestor.trace()).await?;
            let responses: Value = serde_json::from_str(&responses).unwrap_or_default();
            let params = RawJson::from_value(&json!({"taskId": claim.task(), "inputResponses": responses}));
            let answer = requestor.ask("tasks/update", Some(params), &CallOptions::default()).await?;
            claim.is_sent();
            Ok(answer)
        };
        let done: Done = Box::new(move |outcome| {
            if let Err(error) = outcome {
                *locked(&heard.failed) = Some(error);
            }
            let wake = locked(&heard.wake).clone();
            wake.set();
        });
        tasks::following(&link, work, done)
    }
}
