//! A task change by change, of either kind.

use std::sync::Arc;

use super::TaskHandle;
use crate::call::tasks::{self, Requestor};
use crate::call::{Answer, CallOptions};
use crate::error::Result;
use crate::jsonrpc::RawJson;
use crate::model::{Task, TaskStatus};
use crate::signal::Signal;

/// A task that is looked at until it is finished. While it waits for an answer of this client, its result is asked for, too:
/// the question comes with that (specification of 2025-11-25, tasks, "Input Required Status").
pub(super) struct Plain {
    handle: TaskHandle,
    options: CallOptions,
    requestor: Requestor,
    /// Since before the last look, or a change right after it would be missed.
    news: Arc<Signal>,
    questions: Option<Answer>,
    answered: bool,
}

impl Plain {
    pub(super) fn new(handle: &TaskHandle, options: &CallOptions) -> Self {
        Self {
            handle: handle.clone(),
            options: options.clone(),
            requestor: handle.client.asking(options),
            news: Arc::default(),
            questions: None,
            answered: false,
        }
    }

    /// Returns the task as it is now, also in the server's words.
    pub(super) async fn look(&mut self) -> Result<(Task, RawJson)> {
        self.news = self.handle.client.connected.known.news(&self.handle.id);
        let said = self.requestor.said(&self.handle.id, &self.options).await?;
        Ok((tasks::task("tasks/get", &said)?, said))
    }

    /// Waits until it is time for the next look.
    pub(super) async fn pause(&mut self, task: &Task) {
        // Answered, and not finished: a server that is in two minds is not asked without a pause.
        if std::mem::take(&mut self.answered) {
            self.requestor.pause(task, &self.news, None).await;
            return;
        }
        if task.status == TaskStatus::InputRequired && self.questions.is_none() {
            self.questions = Some(self.requestor.hear(&self.handle.id));
        }
        match self.requestor.pause(task, &self.news, self.questions.as_mut()).await {
            None => {}
            // It is finished.
            Some(Ok(_)) => {
                self.questions = None;
                self.answered = true;
            }
            Some(Err(_)) => {
                self.questions = None;
                self.requestor.pause(task, &self.news, None).await;
            }
        }
    }
}

pub(super) enum Followed {
    Plain(Box<Plain>),
    #[cfg(feature = "runtime")]
    Extended(Box<crate::client::extended_tasks::Following>),
}

impl Followed {
    pub(super) fn new(handle: &TaskHandle, options: &CallOptions) -> Self {
        #[cfg(feature = "runtime")]
        if handle.client.has_extended_tasks() {
            let (client, id) = (&handle.client, &handle.id);
            let patience = Some(crate::client::extended_tasks::PATIENCE);
            let requestor = client.asking(options);
            let following = crate::client::extended_tasks::Following::new(client, id, requestor, options, patience);
            return Self::Extended(Box::new(following));
        }
        Self::Plain(Box::new(Plain::new(handle, options)))
    }

    pub(super) async fn look(&mut self) -> Result<(Task, RawJson)> {
        match self {
            Self::Plain(plain) => plain.look().await,
            #[cfg(feature = "runtime")]
            Self::Extended(following) => following.look().await.map(|(task, rest)| {
                let said = tasks::neutral(&task, rest);
                (task, said)
            }),
        }
    }

    pub(super) async fn pause(&mut self, task: &Task) -> Result<()> {
        match self {
            Self::Plain(plain) => {
                plain.pause(task).await;
                Ok(())
            }
            #[cfg(feature = "runtime")]
            Self::Extended(following) => following.pause(task).await,
        }
    }
}

/// The changes of a task.
pub struct TaskChanges {
    pub(super) followed: Followed,
    pub(super) last: Option<Task>,
}

impl TaskChanges {
    /// The next one: at first how the task is, last how it ended; then none.
    ///
    /// # Errors
    /// As [`TaskHandle::status`]; why a question of the task could not be answered (2026-07-28).
    pub async fn next(&mut self) -> Result<Option<Task>> {
        Ok(self.next_said().await?.map(|(task, _)| task))
    }

    /// As [`next`](Self::next), also in the server's words.
    pub(super) async fn next_said(&mut self) -> Result<Option<(Task, RawJson)>> {
        loop {
            if let Some(last) = &self.last {
                if last.status.is_terminal() {
                    return Ok(None);
                }
                self.followed.pause(last).await?;
            }
            let (task, said) = self.followed.look().await?;
            if self.last.as_ref() != Some(&task) {
                self.last = Some(task.clone());
                return Ok(Some((task, said)));
            }
        }
    }
}

impl std::fmt::Debug for TaskChanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskChanges").field("last", &self.last).finish_non_exhaustive()
    }
}
