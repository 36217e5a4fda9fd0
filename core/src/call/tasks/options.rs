use std::time::Duration;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::idiom::named;
use crate::options::seconds;
use crate::store::TaskRoom;

/// Limits of a side that runs requests as tasks. The same names in every language; times in seconds.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// # use serde_json::json;
/// use tricorn::prelude::*;
///
/// let cake = Tool::new("bake", "Bake a cake").task_support(TaskSupport::Optional);
/// let server = Server::new("bakery")
///     .tasks(TaskOptions::new().max_tasks(1000).max_session_tasks(10))
///     .tool_with(cake, async |cx: Context| {
///         cx.set_status("in the oven");
///         Ok("a cake")
///     });
/// # let options = ClientOptions::new().revision("2025-11-25");
/// # let client = Client::in_memory(&server, &options).await?;
/// # let task = client.call_tool_task("bake", json!({}), None, &CallOptions::new()).await?;
/// # assert_eq!(task.result().await?.text(), "a cake");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TaskOptions {
    /// Tasks kept, of all sessions. The longest finished make room; when all are being worked on, a request that is to
    /// become one is refused. Default 1,000.
    pub max_tasks: usize,
    /// Tasks kept of one session. Default 250.
    pub max_session_tasks: usize,
    /// The bytes of all results kept; the longest finished tasks make room. Default 16 MiB.
    pub max_task_bytes: usize,
    /// Lifetime of a task, from its creation, when its request names none. Default 3600.
    pub task_ttl: f64,
    /// The longest that a task lives, whatever its request says; after that it is stopped, and gone with its result.
    /// Default 86400.
    pub max_task_ttl: f64,
    /// Interval at which waiting peers should look. Default 1.
    pub task_poll_interval: f64,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            max_tasks: 1000,
            max_session_tasks: 250,
            max_task_bytes: 16 << 20,
            task_ttl: 3600.0,
            max_task_ttl: 86_400.0,
            task_poll_interval: 1.0,
        }
    }
}

impl TaskOptions {
    /// Every option at its default.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tasks kept, of all sessions.
    #[must_use]
    pub fn max_tasks(mut self, tasks: usize) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// Tasks kept of one session.
    #[must_use]
    pub fn max_session_tasks(mut self, tasks: usize) -> Self {
        self.max_session_tasks = tasks;
        self
    }

    /// The bytes of all results kept.
    #[must_use]
    pub fn max_task_bytes(mut self, bytes: usize) -> Self {
        self.max_task_bytes = bytes;
        self
    }

    /// Sets the lifetime of a task when its request names none, in seconds.
    #[must_use]
    pub fn task_ttl(mut self, seconds: f64) -> Self {
        self.task_ttl = seconds;
        self
    }

    /// The longest that a task lives, in seconds.
    #[must_use]
    pub fn max_task_ttl(mut self, seconds: f64) -> Self {
        self.max_task_ttl = seconds;
        self
    }

    /// Sets the interval at which waiting peers should look, in seconds.
    #[must_use]
    pub fn task_poll_interval(mut self, seconds: f64) -> Self {
        self.task_poll_interval = seconds;
        self
    }

    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is wrong.
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in [
            ("max_tasks", self.max_tasks),
            ("max_session_tasks", self.max_session_tasks),
            ("max_task_bytes", self.max_task_bytes),
        ] {
            if value == 0 {
                return Err(Error::misuse(format!("task option {:?}: expected at least 1, got 0", named(name))));
            }
        }
        for (name, value) in [
            ("task_ttl", self.task_ttl),
            ("max_task_ttl", self.max_task_ttl),
            ("task_poll_interval", self.task_poll_interval),
        ] {
            seconds(name, value)?;
        }
        Ok(())
    }

    pub(super) fn room(&self) -> TaskRoom {
        TaskRoom { tasks: self.max_tasks, tasks_per_owner: self.max_session_tasks, bytes: self.max_task_bytes }
    }

    /// Returns the lifetime of a task that asks for so many milliseconds.
    pub(super) fn ttl(&self, asked: Option<u64>) -> Duration {
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        asked.map_or_else(|| time(self.task_ttl), Duration::from_millis).min(time(self.max_task_ttl))
    }

    pub(super) fn poll_interval(&self) -> u64 {
        millis(Duration::try_from_secs_f64(self.task_poll_interval).unwrap_or_default())
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
