use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// The extension by which servers of 2026-07-28 answer with tasks.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Status of a task (specification, tasks, "Task Status Lifecycle"). The last three are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// It is being worked on.
    Working,
    /// It waits for an answer of whoever asked for it.
    InputRequired,
    /// It has a result.
    Completed,
    /// It has an error, or a tool's result that says `isError`.
    Failed,
    /// It was cancelled, and has no result.
    Cancelled,
}

impl TaskStatus {
    /// The status as it is on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns true if nothing will change any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// State of a task: the schema's `Task`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Task {
    /// Names it; whoever asked for it comes back to it with this.
    pub task_id: String,
    /// Its status.
    pub status: TaskStatus,
    /// For people, whatever the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// Time of its creation, as in RFC 3339.
    pub created_at: String,
    /// Time of the last change of its status, as in RFC 3339.
    #[serde(default)]
    pub last_updated_at: String,
    /// Milliseconds from its creation after which it and its result may be gone; `None`: never.
    #[serde(default, deserialize_with = "millis")]
    pub ttl: Option<u64>,
    /// Milliseconds to leave between two looks at it.
    #[serde(default, deserialize_with = "millis", skip_serializing_if = "Option::is_none")]
    pub poll_interval: Option<u64>,
    /// `_meta`.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Task {
    /// A task that begins at this time, as in RFC 3339.
    pub(crate) fn working(id: impl Into<String>, now: impl Into<String>) -> Self {
        let now = now.into();
        Self {
            task_id: id.into(),
            status: TaskStatus::Working,
            status_message: None,
            created_at: now.clone(),
            last_updated_at: now,
            ttl: None,
            poll_interval: None,
            meta: None,
            extra: Map::new(),
        }
    }
}

/// Milliseconds as other languages write them: `100.0` are 100. A negative number says nothing.
fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(deserializer)? else { return Ok(None) };
    let decimal = || number.as_f64().filter(|millis| *millis >= 0.0).map(|millis| millis as u64);
    Ok(number.as_u64().or_else(decimal))
}

/// Options of a request that is to become a task: the schema's `TaskMetadata`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TaskMetadata {
    /// Milliseconds from its creation for which the task and its result are wanted; the receiver may decide otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u64>,
}

impl TaskMetadata {
    /// For this time in milliseconds, or for as long as the receiver likes.
    #[must_use]
    pub fn new(ttl: Option<u64>) -> Self {
        Self { ttl }
    }
}

/// True if a tool may be called as a task: the schema's `ToolExecution.taskSupport`.
///
/// ```
/// use tricorn::prelude::*;
///
/// let days = Tool::new("cater", "Cook for a party, which takes days").task_support(TaskSupport::Required);
/// Server::new("kitchen").tasks(TaskOptions::new()).tool_with(days, async || Ok("a feast"));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the schema has these three")]
pub enum TaskSupport {
    /// It must not.
    #[default]
    Forbidden,
    /// It may.
    Optional,
    /// It must.
    Required,
}

impl TaskSupport {
    /// Reads `execution.taskSupport` of a definition; absent means forbidden.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for any other value.
    pub(crate) fn of(definition: &serde_json::Map<String, serde_json::Value>) -> Result<Self> {
        match definition.get("execution").and_then(|execution| execution.get("taskSupport")) {
            None => Ok(Self::default()),
            Some(value) => serde_json::from_value(value.clone()).map_err(|_| {
                Error::misuse(format!(
                    "execution.taskSupport: expected \"forbidden\", \"optional\" or \"required\", got {value}"
                ))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn milliseconds_may_be_written_as_in_other_languages() {
        let read = |ttl: Value, interval: Value| {
            let task =
                json!({"taskId": "t", "status": "working", "createdAt": "", "ttl": ttl, "pollInterval": interval});
            serde_json::from_value::<Task>(task).map(|task| (task.ttl, task.poll_interval))
        };
        for (ttl, interval, expected) in [
            (json!(1), json!(100), (Some(1), Some(100))),
            (json!(1.0), json!(100.0), (Some(1), Some(100))),
            (json!(null), json!(-5), (None, None)),
            (json!(-1.5), json!(1e300), (None, Some(u64::MAX))),
        ] {
            assert_eq!(read(ttl, interval).expect("a task"), expected);
        }
        assert!(read(json!("1"), json!(1)).is_err());
        let least = json!({"taskId": "t", "status": "working", "createdAt": ""});
        assert!(serde_json::from_value::<Task>(least).is_ok_and(|task| task.ttl.is_none()));
    }
}
