//! Requests about tasks: `tasks/get`, `tasks/result`, `tasks/list`, `tasks/cancel`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Tasks, answer, cancelled, newest_read, not_found, owner_of, stamp};
use crate::call::{Context, Handler, Link, Reply};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
use crate::model::{Task, TaskStatus};
use crate::protocol::{Call, CallId, Payload};
use crate::store::{Kept, Owner};

/// The most requests for results of one session that wait although nobody reads their answers: their clients may come
/// back for them.
pub(super) const MAX_UNREAD: usize = 16;

/// The status message of a task that was cancelled.
pub(super) const CANCELLED: &str = "cancelled by request";

/// Beginning of the list's cursors.
const CURSOR: &str = "k-";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListTasksResult {
    pub(super) tasks: Vec<Task>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_cursor: Option<String>,
}

/// The cursor that goes on after this place.
pub(super) fn cursor_of(place: u64) -> String {
    format!("{CURSOR}{place:x}")
}

/// Reverses [`cursor_of`]; `last`: the greatest place.
///
/// # Errors
/// −32602 for a cursor that is none.
pub(super) fn place_of(cursor: Option<&str>, last: u64) -> Result<u64> {
    let Some(cursor) = cursor.filter(|cursor| !cursor.is_empty()) else { return Ok(0) };
    let place = cursor.strip_prefix(CURSOR).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let place = place.filter(|place| *place > 0 && *place <= last);
    place.ok_or_else(|| Error::invalid_params("\"cursor\": not one that was given out here"))
}

/// The error of a cancellation that comes too late.
pub(super) fn over(task: &Task) -> Error {
    Error::invalid_params(format!("the task cannot be cancelled: it is {} already", task.status.as_str()))
}

/// The error of a request that nobody reads.
pub(super) fn given_up() -> Error {
    let message = "given up: nobody has read this answer for long, and newer requests wait for results";
    Error::rpc(code::INTERNAL_ERROR, message)
}

/// The text of this member of a request's parameters.
pub(super) fn text_of(call: &Call, member: &str) -> Result<Option<String>> {
    let wrong = |_| Error::invalid_params(format!("{member:?}: expected a string"));
    let members = call.params.as_ref().and_then(|params| params.to().ok());
    let mut members: Map<String, Value> = members.unwrap_or_default();
    members.remove(member).map_or(Ok(None), |value| serde_json::from_value(value).map_err(wrong))
}

pub(super) fn id_of(call: &Call) -> Result<String> {
    text_of(call, "taskId")?.ok_or_else(|| Error::invalid_params("\"taskId\": missing, expected a task's id"))
}

impl Tasks {
    /// Answers a request about tasks.
    pub(crate) fn serve(self: &Arc<Self>, link: &Arc<dyn Link>, call: Call, page_size: usize) {
        self.expire(&**link);
        let owner = owner_of(&**link);
        if let Some(call) = self.serve_shared(link, call, &owner, page_size) {
            self.serve_here(link, call, page_size);
        }
    }

    /// Answers a request about tasks that are kept here.
    pub(super) fn serve_here(self: &Arc<Self>, link: &Arc<dyn Link>, call: Call, page_size: usize) {
        let owner = owner_of(&**link);
        let outcome = match call.method.name {
            "tasks/list" => text_of(&call, "cursor").and_then(|c| self.list(&owner, c.as_deref(), page_size)),
            name => match (name, id_of(&call)) {
                (_, Err(error)) => Err(error),
                ("tasks/get", Ok(id)) => self.find(&owner, &id).map(|kept| RawJson::from_value(&kept.task)),
                ("tasks/cancel", Ok(id)) => return self.cancel(link, &call, &owner, &id),
                (_, Ok(id)) => return self.result(link, call, owner, id),
            },
        };
        link.clone().complete(call.id, outcome.map(Payload::Object));
    }

    pub(super) fn find(&self, owner: &Owner, id: &str) -> Result<Kept> {
        self.lock().store.get(owner, id).ok_or_else(|| not_found(id))
    }

    fn list(&self, owner: &Owner, cursor: Option<&str>, page_size: usize) -> Result<RawJson> {
        let state = self.lock();
        let after = place_of(cursor, state.store.last())?;
        let (tasks, next) = state.store.page(owner, after, page_size.max(1));
        let next_cursor = next.map(cursor_of);
        Ok(RawJson::from_value(&ListTasksResult { tasks, next_cursor }))
    }

    fn cancel(self: &Arc<Self>, link: &Arc<dyn Link>, call: &Call, owner: &Owner, id: &str) {
        let outcome = self.cancelled(owner, id);
        let (running, task) = match outcome {
            Ok(cancelled) => cancelled,
            Err(error) => return link.clone().complete(call.id, Err(error)),
        };
        let (tasks, to, request) = (self.clone(), link.clone(), call.id);
        self.once_known(link, &id.into(), move || {
            let waiting = running.as_ref().map_or_else(Vec::new, super::Running::waiting);
            let related = newest_read(&*to, &waiting);
            to.clone().complete(request, Ok(Payload::Object(RawJson::from_value(&task))));
            tasks.tell(&to, &task, related);
            if let Some(running) = running {
                running.stop("tasks/cancel", &cancelled());
            }
        });
    }

    /// A task that is cancelled from now on, and what is to be stopped for it.
    pub(super) fn cancelled(&self, owner: &Owner, id: &str) -> Result<(Option<super::Running>, Task)> {
        let mut state = self.lock();
        let Kept { mut task, .. } = state.store.get(owner, id).ok_or_else(|| not_found(id))?;
        if task.status.is_terminal() {
            return Err(over(&task));
        }
        task.status = TaskStatus::Cancelled;
        task.status_message = Some(CANCELLED.to_owned());
        task.last_updated_at = stamp();
        state.store.finish(owner, task.clone(), None);
        self.changed(id, true);
        Ok((state.running.remove(id), task))
    }

    /// Answers the oldest requests for results whose clients have gone without saying so: they would be in flight until
    /// their tasks end.
    fn give_up_unread(&self, link: &dyn Link, owner: &Owner, waiting: &[CallId]) {
        if waiting.len() <= MAX_UNREAD {
            return;
        }
        let unread: Vec<_> = waiting.iter().filter(|call| !link.is_read(**call)).collect();
        let spent = &unread[..unread.len().saturating_sub(MAX_UNREAD)];
        let mut state = self.lock();
        let running = state.running.values_mut().filter(|running| running.owner == *owner);
        let waiters = running.flat_map(|running| running.waiters.extract_if(.., |(call, _)| spent.contains(&&*call)));
        let gone: Vec<_> = waiters.collect();
        drop(state);
        gone.into_iter().for_each(|(_, reply)| reply.error(given_up()));
    }

    fn result(self: &Arc<Self>, link: &Arc<dyn Link>, call: Call, owner: Owner, id: String) {
        let handler = Arc::new(Waits { tasks: self.clone(), owner, id });
        let context = Context::new(call.id, call.context, link.clone(), handler.clone());
        if link.started(&context) {
            let reply = Reply::new(context.clone(), None);
            handler.call(context, RawJson::empty_object(), reply);
        }
    }
}

/// A request for a task's result, which waits until there is one. That it is cancelled is nothing to the task.
pub(super) struct Waits {
    pub(super) tasks: Arc<Tasks>,
    pub(super) owner: Owner,
    pub(super) id: String,
}

impl Handler for Waits {
    fn call(&self, cx: Context, _: RawJson, reply: Reply) {
        let mut state = self.tasks.lock();
        let Some(kept) = state.store.get(&self.owner, &self.id) else {
            drop(state);
            return reply.error(not_found(&self.id));
        };
        match state.running.get_mut(self.id.as_str()).filter(|_| !kept.task.status.is_terminal()) {
            None => {
                drop(state);
                answer(reply, &self.id, kept.outcome.as_ref());
            }
            Some(running) => {
                running.waiters.push((cx.call(), reply));
                let waiting = state.waiting(&self.owner);
                drop(state);
                self.tasks.give_up_unread(&**cx.link(), &self.owner, &waiting);
                // Messages of the task may go out with the answer.
                cx.link().take_up(cx.call());
                // A cancellation that came before the push found nothing.
                if cx.is_cancelled() {
                    self.cancel(&cx, None);
                }
            }
        }
    }

    fn cancel(&self, cx: &Context, _: Option<&str>) {
        let mut state = self.tasks.lock();
        let waiters = state.running.get_mut(self.id.as_str()).map(|running| &mut running.waiters);
        let gone = waiters.and_then(|waiters| {
            let place = waiters.iter().position(|(call, _)| *call == cx.call())?;
            Some(waiters.remove(place))
        });
        drop(state);
        drop(gone);
    }
}
