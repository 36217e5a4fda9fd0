//! Tool calls that run as tasks of the server, and coming back to them: of 2025-11-25 (experimental), and in the same words
//! of the extension of 2026-07-28 ([`extended_tasks`](super::extended_tasks)).

mod changes;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::known::MAX_KNOWN;

pub use changes::TaskChanges;
use changes::{Followed, Plain};

use super::Client;
use crate::call::tasks::{self, Requestor, augmented, created};
use crate::call::{Answer, CallOptions, Done, Guard, trace_of};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::{CallToolResult, Task, TaskMetadata, TaskSupport, TraceContext};
use crate::protocol::Origin;

impl Client {
    /// Follows the server's tasks, of a request that is on its way through middleware already.
    pub(super) fn requestor(&self, trace: Option<TraceContext>, origin: Option<Origin>) -> Requestor {
        let client = self.clone();
        let ask = move |method: &str, params: Option<RawJson>, options: &CallOptions| {
            Answer::of(|done| client.send(method, params, options, done))
        };
        Requestor::new(Arc::new(ask), self.connected.link.clone(), self.revision()).of_trace(trace).of_origin(origin)
    }

    /// Asks about the server's tasks, each time a request of its own; all of them of one trace.
    fn asking(&self, options: &CallOptions) -> Requestor {
        let client = self.clone();
        let ask =
            move |method: &str, params: Option<RawJson>, options: &CallOptions| client.request(method, params, options);
        let trace = trace_of(None, options.trace_context.as_ref()).or_else(|| self.connected.trace.current());
        Requestor::new(Arc::new(ask), self.connected.link.clone(), self.revision())
            .of_trace(trace)
            .of_origin(options.origin.clone())
    }

    /// Remembers what a list says of tools and tasks.
    pub(super) fn learning(&self, method: &str, done: Done) -> Done {
        if method != "tools/list" || tasks::check(self.revision(), &self.capabilities(), "tools/call").is_err() {
            return done;
        }
        let known = Arc::downgrade(&self.connected);
        Box::new(move |outcome| {
            if let (Ok(result), Some(connected)) = (&outcome, known.upgrade()) {
                connected.known.learn(result);
            }
            done(outcome);
        })
    }

    /// As which task a request is to be sent: as asked for, or because its tool can be called in no other way.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) when server or tool do not want that.
    pub(super) fn as_task(
        &self,
        method: &str,
        params: Option<&RawJson>,
        options: &CallOptions,
    ) -> Result<Option<TaskMetadata>> {
        #[cfg(feature = "runtime")]
        if self.revision().rules().tasks_extension && method == "tools/call" {
            return match (options.task, self.has_extended_tasks()) {
                (Some(_), false) => Err(self.no_extended_tasks(method)),
                (task, _) => Ok(task),
            };
        }
        let support = if method == "tools/call" { self.connected.known.support(params) } else { None };
        let check = || tasks::check(self.revision(), &self.capabilities(), method);
        match (options.task, support) {
            // Whoever writes `task` into the parameters wants to see the task itself.
            (None, Some((TaskSupport::Required, false))) => Ok(check().is_ok().then(TaskMetadata::default)),
            (None, None | Some((_, false)) | Some((TaskSupport::Required | TaskSupport::Optional, true))) => Ok(None),
            (_, Some((TaskSupport::Forbidden, _))) => {
                let message = "the tool was not called as a task: its execution.taskSupport does not let it";
                Err(Error::new(ErrorKind::Unsupported, message))
            }
            (Some(metadata), _) => check().map(|()| Some(metadata)),
        }
    }

    /// Calls a tool as a task, which is there when this returns: its result can be had later. `ttl` is how long the
    /// task and its result are wanted, from now on; the server may decide otherwise. Progress of `options` is heard
    /// until the server has answered; dropping the handle does not cancel the task.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) when server or tool, as it was listed last, have no tasks, and nothing
    /// was sent; as [`request`](Self::request).
    pub async fn call_tool_task(
        &self,
        name: &str,
        arguments: impl Serialize,
        ttl: Option<Duration>,
        options: &CallOptions,
    ) -> Result<TaskHandle> {
        #[derive(Serialize)]
        struct Params<'a, A> {
            name: &'a str,
            arguments: &'a A,
        }
        let params = RawJson::from_value(&Params { name, arguments: &arguments });
        let wanted = options.clone().task(ttl);
        let metadata = self.as_task("tools/call", Some(&params), &wanted)?.unwrap_or_default();
        let options = CallOptions { task: None, ..wanted };
        let result = self.request("tools/call", Some(augmented(Some(&params), metadata)), &options).await?;
        match created("tools/call", &result)? {
            Some(task) => Ok(TaskHandle { created: Some(result), ..self.task(&task.task_id) }),
            None => {
                let message = "the server declares tasks, and answered the call without one";
                Err(Error::new(ErrorKind::PeerMisbehaved, message))
            }
        }
    }

    /// A task by its id, to come back to it. Nothing is sent.
    #[must_use]
    pub fn task(&self, id: &str) -> TaskHandle {
        TaskHandle { client: self.clone(), id: id.into(), created: None }
    }

    /// Waits until the task of these parameters of `tasks/get` is finished, as [`TaskHandle::wait`], and finishes with
    /// how it ended in the server's words. `options` are for each look. Dropping what is returned gives up.
    pub(crate) fn wait_for_task(&self, params: Option<&RawJson>, options: CallOptions, done: Done) -> Guard {
        let done: Done = Box::new(move |outcome| done(outcome.map_err(Error::received)));
        let (handle, options) = match self.followed_of(params, options) {
            Ok(followed) => followed,
            Err(error) => {
                done(Err(error));
                return Box::new(());
            }
        };
        let link = self.connected.link.clone();
        let work = async move { handle.waited(&options).await.map(|(_, said)| said) };
        tasks::following(&link, work, done)
    }

    /// Waits for the result of the task of these parameters of `tasks/result`, as [`TaskHandle::result`], and finishes with
    /// it as it came. `timeout` and `max_timeout` of `options` are for all of it, none unless they are given; the rest is for
    /// each look. Dropping what is returned gives up.
    pub(crate) fn wait_for_result(&self, params: Option<&RawJson>, mut options: CallOptions, done: Done) -> Guard {
        let done: Done = Box::new(move |outcome| done(outcome.map_err(Error::received)));
        let named =
            |name: &'static str, time: Option<Duration>| time.filter(|time| !time.is_zero()).map(|time| (time, name));
        let limits = [named("timeout", options.timeout.take()), named("max_timeout", options.max_timeout.take())];
        let limit = limits.into_iter().flatten().min();
        let (handle, options) = match self.followed_of(params, options) {
            Ok(followed) => followed,
            Err(error) => {
                done(Err(error));
                return Box::new(());
            }
        };
        let link = self.connected.link.clone();
        let work = async move {
            let Some((time, name)) = limit else { return handle.outcome(&options, false).await };
            let requestor = handle.client.asking(&options);
            tasks::within(&requestor, time, handle.outcome(&options, true))
                .await
                .unwrap_or_else(|| Err(Error::late("tasks/result", time, name)))
        };
        tasks::following(&link, work, done)
    }

    /// Waits for the next change of the task of these parameters of `tasks/get`, as [`TaskChanges::next`]: of what was
    /// begun before, else the first. `kept` gets the changes back, unless that was the last one or an error. `options` are
    /// for each look, from the first time on. Dropping what is returned gives up.
    pub(crate) fn follow_task(
        &self,
        begun: Option<TaskChanges>,
        params: Option<&RawJson>,
        options: CallOptions,
        kept: impl FnOnce(Option<TaskChanges>) + Send + 'static,
        done: Done,
    ) -> Guard {
        let done: Done = Box::new(move |outcome| done(outcome.map_err(Error::received)));
        let begun = match begun {
            Some(begun) => Ok(begun),
            None => self.followed_of(params, options).map(|(handle, options)| handle.changes_with(&options)),
        };
        let mut changes = match begun {
            Ok(changes) => changes,
            Err(error) => {
                kept(None);
                done(Err(error));
                return Box::new(());
            }
        };
        let link = self.connected.link.clone();
        let work = async move {
            let next = changes.next_said().await;
            let goes_on = matches!(&next, Ok(Some((task, _))) if !task.status.is_terminal());
            kept(goes_on.then_some(changes));
            next?.map(|(_, said)| said).ok_or_else(|| Error::misuse("tasks/get: the task was over before"))
        };
        tasks::following(&link, work, done)
    }

    /// The task of these parameters of `tasks/get`, and the options for each look, which are of one trace.
    fn followed_of(&self, params: Option<&RawJson>, options: CallOptions) -> Result<(TaskHandle, CallOptions)> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(rename = "taskId")]
            task_id: String,
            #[serde(rename = "_meta", default)]
            meta: Option<RawJson>,
        }
        let Some(Ok(Params { task_id, meta })) = params.map(RawJson::to) else {
            return Err(Error::misuse("tasks/get: \"taskId\": expected a string"));
        };
        let trace = options.trace_context.or_else(|| self.connected.trace.current());
        let trace_context = trace_of(params, trace.as_ref());
        Ok((self.task(&task_id), CallOptions { meta, trace_context, ..options }))
    }

    /// All tasks that the server keeps of this session.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) when the server does not declare `tasks.list`; as
    /// [`request`](Self::request); [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) when the pages do not end.
    pub async fn tasks(&self) -> Result<Vec<Task>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct ListTasksResult {
            tasks: Vec<Task>,
            #[serde(default)]
            next_cursor: Option<String>,
        }
        let (mut all, mut seen) = (Vec::new(), super::features::Seen::default());
        let mut params = None;
        loop {
            let result = self.request("tasks/list", params.take(), &CallOptions::default()).await?;
            let page: ListTasksResult = super::results::typed("tasks/list", &result)?;
            all.extend(page.tasks);
            let Some(cursor) = page.next_cursor else { return Ok(all) };
            let Some(cursor) = seen.next("tasks/list", cursor)? else { return Ok(all) };
            if all.len() > MAX_KNOWN {
                return Err(Error::new(ErrorKind::PeerMisbehaved, format!("more than {MAX_KNOWN} tasks")));
            }
            params = Some(RawJson::from_value(&json!({"cursor": cursor})));
        }
    }
}

/// A task of the server. Dropping it does nothing to the task.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
///
/// # let cake = Tool::new("bake", "Bake a cake").task_support(TaskSupport::Optional);
/// # let server = Server::new("bakery").tasks(TaskOptions::new()).tool_with(cake, async || Ok("a cake"));
/// # let options = ClientOptions::new().revision("2025-11-25");
/// # let client = Client::in_memory(&server, &options).await?;
/// let task = client.call_tool_task("bake", json!({}), None, &CallOptions::new()).await?;
/// let id = task.id().to_owned(); // it is all that is needed to come back
///
/// let mut changes = client.task(&id).changes();
/// while let Some(now) = changes.next().await? {
///     println!("{} {}", now.status.as_str(), now.status_message.unwrap_or_default());
/// }
/// assert_eq!(task.result().await?.text(), "a cake");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TaskHandle {
    client: Client,
    id: Arc<str>,
    created: Option<RawJson>,
}

impl TaskHandle {
    /// Its id: [`Client::task`] comes back to it with this, for as long as the session lives.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the server's answer to the call, as it came: a `CreateTaskResult`, whose `_meta` may have something for
    /// the model meanwhile (`io.modelcontextprotocol/model-immediate-response`). `None` of a task that was come back
    /// to.
    #[must_use]
    pub fn created(&self) -> Option<&RawJson> {
        self.created.as_ref()
    }

    /// Returns the task as it is now.
    ///
    /// # Errors
    /// [`Rpc`](ErrorKind::Rpc) with −32602 when it has expired, here and below; as [`Client::request`].
    pub async fn status(&self) -> Result<Task> {
        let options = CallOptions::default();
        self.client.asking(&options).status(&self.id, &options).await
    }

    /// Waits until it is finished, however it ends. Looks as often as the server says, and at once when the server tells
    /// of a change; where it tells of all (2026-07-28, `subscriptions/listen`) seldom besides. While the task waits for an answer of this client, its result is asked for, too: the question comes
    /// with that (specification, tasks, "Input Required Status").
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub async fn wait(&self) -> Result<Task> {
        self.waited(&CallOptions::default()).await.map(|(task, _)| task)
    }

    /// As [`wait`](Self::wait), with options for each look; with the task in the server's words.
    async fn waited(&self, options: &CallOptions) -> Result<(Task, RawJson)> {
        #[cfg(feature = "runtime")]
        if self.client.has_extended_tasks() {
            let requestor = self.client.asking(options);
            let patience = Some(super::extended_tasks::PATIENCE);
            return self.client.finished(&self.id, requestor, options, patience).await.map(|(task, rest)| {
                let said = tasks::neutral(&task, rest);
                (task, said)
            });
        }
        let mut followed = Plain::new(self, options);
        loop {
            let (task, said) = followed.look().await?;
            if task.status.is_terminal() {
                return Ok((task, said));
            }
            followed.pause(&task).await;
        }
    }

    /// Returns the task as it is now, and each change that is noticed until it is finished. Looks as often as the
    /// server says, and at once when the server tells of a change; questions of the task are answered meanwhile, until
    /// this is dropped.
    #[must_use]
    pub fn changes(&self) -> TaskChanges {
        self.changes_with(&CallOptions::default())
    }

    /// As [`changes`](Self::changes), with options for each look.
    pub(crate) fn changes_with(&self, options: &CallOptions) -> TaskChanges {
        TaskChanges { followed: Followed::new(self, options), last: None }
    }

    /// Its result, when it is there, checked against the output schema of its tool as far as that is known. A connection that
    /// breaks off meanwhile is nothing to the task: it is asked for again, with growing pauses, for two minutes in
    /// 2026-07-28. Giving up does not cancel the task.
    ///
    /// # Errors
    /// The error that the call would have had; [`Cancelled`](ErrorKind::Cancelled) when the task was;
    /// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) when it does not fit the schema; as [`status`](Self::status).
    pub async fn result(&self) -> Result<CallToolResult> {
        super::results::typed("tasks/result", &self.outcome(&CallOptions::default(), false).await?)
    }

    /// Its result, as it came. `options` are for each look. `ends`: somebody else knows when it takes too long.
    #[cfg_attr(not(feature = "runtime"), expect(unused_variables, reason = "there is nothing to wait for"))]
    async fn outcome(&self, options: &CallOptions, ends: bool) -> Result<RawJson> {
        let asking = self.client.asking(options);
        #[cfg(feature = "runtime")]
        if self.client.has_extended_tasks() {
            let patience = (!ends).then_some(super::extended_tasks::PATIENCE);
            let (task, rest) = self.client.finished(&self.id, asking, options, patience).await?;
            let result = super::extended_tasks::outcome(&task, &rest)?;
            return self.client.checked_of_task(&self.id, result, options).await;
        }
        let task = asking.status(&self.id, options).await?;
        asking.result(&task, options).await
    }

    /// Cancels it.
    ///
    /// # Errors
    /// [`Rpc`](ErrorKind::Rpc) with −32602 when it is finished, too, but not in 2026-07-28, where it stays as it is; as
    /// [`status`](Self::status).
    pub async fn cancel(&self) -> Result<Task> {
        let params = RawJson::from_value(&json!({"taskId": &*self.id}));
        let result = self.client.request("tasks/cancel", Some(params), &CallOptions::default()).await?;
        tasks::task("tasks/cancel", &result)
    }
}

impl std::fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskHandle").field("id", &self.id).finish_non_exhaustive()
    }
}
