//! Tasks of servers of 2026-07-28 (extension `io.modelcontextprotocol/tasks`), in the words that tasks have in 2025-11-25:
//! whoever calls tools and follows tasks need not know which of the two the server has.

mod ears;
mod following;
mod patience;
mod state;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::protocol::revision::object;

pub(super) use self::following::Following;
pub(super) use self::patience::PATIENCE;
use self::patience::patience_of;
pub(super) use self::state::Extended;
use self::state::locked;
use super::Client;
use crate::call::tasks::{self, Followed, Requestor, created, detailed};
use crate::call::{CallOptions, Done, Guard, trace_of};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{ErrorObject, RawJson};
use crate::model::{TASKS_EXTENSION, Task, TaskStatus};

/// Returns the answer that the call of a finished task would have got.
pub(super) fn outcome(task: &Task, rest: &Map<String, Value>) -> Result<RawJson> {
    let wrong = |why: &str| Error::new(ErrorKind::PeerMisbehaved, format!("result of tasks/get: {why}"));
    match task.status {
        TaskStatus::Cancelled => Err(Error::cancelled("the task was cancelled")),
        TaskStatus::Failed => {
            let Some(error) = rest.get("error").cloned() else {
                let why = task.status_message.as_deref().map_or_else(String::new, |why| format!(": {why}"));
                return Err(wrong(&format!("\"error\": missing, and the task has failed{why}")));
            };
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
    let now = humantime::format_rfc3339_millis(std::time::SystemTime::now());
    Task { status: TaskStatus::Completed, ..Task::working(id, now.to_string()) }
}

impl Client {
    /// Returns true if both sides declare the extension.
    pub(super) fn has_extended_tasks(&self) -> bool {
        self.revision().rules().tasks_extension
            && self.connected.link.declares_extension(TASKS_EXTENSION)
            && self.capabilities().has_extension(TASKS_EXTENSION)
    }

    /// Returns the error for tasks in a connection that has none.
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
            // The trace of the request that is sent instead.
            options.trace_context = trace_of(params, options.trace_context.as_ref());
        }
        let requestor = self.requestor(options.trace_context.clone(), options.origin.clone());
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
                    client.look(&id, &requestor, &options).await.map(|(task, rest)| tasks::neutral(&task, rest))
                };
                tasks::following(&link, work, done)
            }
            ("tasks/result", Ok(id)) => {
                let work = async move {
                    let (task, rest) = client.finished(&id, requestor, &options, patience_of(&options)).await?;
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

    /// Calls a tool. If the call becomes a task, that is followed to its end; a caller that has written `task` into the
    /// parameters gets the task itself, also when the server has answered at once.
    fn call_extended(&self, params: Option<&RawJson>, options: &CallOptions, done: Done) -> Guard {
        let mut text = String::from("{");
        let mut wants_task = false;
        for (key, value) in object::members(params.map_or("{}", RawJson::get)) {
            match key.as_ref() {
                "task" => wants_task = true,
                _ => object::push_member(&mut text, &key, value.get()),
            }
        }
        text.push('}');
        // The guard that follows a task outlives the request that began it.
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
                    let rest = most.map(|most| (most, most.saturating_sub(passed)));
                    // Whenever it is given up from now on, the task is cancelled.
                    given.trace_context = trace_of(asked.as_ref(), given.trace_context.as_ref());
                    let followed = Followed::new(
                        client.requestor(given.trace_context.clone(), given.origin.clone()),
                        &task.task_id,
                    );
                    let work = async move { client.followed(followed, task, &given, rest).await };
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

    /// Returns the state of a task, and the members that are not the task's own.
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

    /// The result of a call that has become a task. Given up, the task is cancelled, but not because its server cannot be
    /// reached: it may be finished when that is back. `within` is what the caller has said, and what is left of that.
    async fn followed(
        &self,
        mut followed: Followed,
        task: Task,
        options: &CallOptions,
        within: Option<(Duration, Duration)>,
    ) -> Result<RawJson> {
        let (timeout, trace_context) = (options.timeout, options.trace_context.clone());
        let each = CallOptions { timeout, trace_context, origin: options.origin.clone(), ..CallOptions::default() };
        let requestor = self.requestor(each.trace_context.clone(), each.origin.clone());
        // The rest of the whole time ends it, where there is one.
        let patience = patience_of(options).filter(|_| within.is_none());
        let ended = self.finished(&task.task_id, requestor.clone(), &each, patience);
        let ended = match within {
            None => ended.await,
            Some((most, rest)) => tasks::within(&requestor, rest, ended)
                .await
                .unwrap_or_else(|| Err(Error::late("tools/call", most, "max_timeout"))),
        };
        let id = &task.task_id;
        let ended = ended.map_err(|error| match error.kind() {
            ErrorKind::Transport => {
                followed.is_over();
                let message = format!("{}; the call runs as task {id:?}, which was not cancelled", error.message());
                Error::new(ErrorKind::Transport, message)
            }
            _ => error,
        });
        let (task, rest) = ended?;
        followed.is_over();
        outcome(&task, &rest)
    }

    /// Waits until a task is finished, and answers its questions meanwhile. `options` are for each look, `patience` is for
    /// how long its server may be away.
    pub(super) async fn finished(
        &self,
        id: &str,
        requestor: Requestor,
        options: &CallOptions,
        patience: Option<Duration>,
    ) -> Result<(Task, Map<String, Value>)> {
        let mut following = Following::new(self, id, requestor, options, patience);
        loop {
            let (task, rest) = following.look().await?;
            if task.status.is_terminal() {
                return Ok((task, rest));
            }
            following.pause(&task).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_without_an_error_says_what_the_task_said() {
        let mut failed = at_once("t");
        failed.status = TaskStatus::Failed;
        let told = |task: &Task| outcome(task, &Map::new()).expect_err("failed");
        assert_eq!(told(&failed).message(), "result of tasks/get: \"error\": missing, and the task has failed");
        failed.status_message = Some("out of paper".into());
        assert_eq!(told(&failed).kind(), ErrorKind::PeerMisbehaved);
        assert!(told(&failed).message().ends_with("has failed: out of paper"), "{}", told(&failed));
    }
}
