//! Tasks as all processes of a server know them: the fields of one in the store.

use serde::{Deserialize, Serialize};

use super::tasks::Outcome;
use crate::error::Error;
use crate::jsonrpc::{ErrorObject, RawJson};
use crate::model::{Task, TaskStatus};

/// The most bytes of an outcome that all processes know.
pub(crate) const MAX_OUTCOME: usize = 4 << 20;

/// A task as all processes know it.
#[derive(Debug, Clone)]
pub(crate) struct SharedTask {
    pub(crate) task: Task,
    /// There from the moment on that the task is finished, unless it was cancelled.
    pub(crate) outcome: Option<Outcome>,
    /// Questions to the client, as `inputRequests`.
    pub(crate) questions: Option<RawJson>,
    /// Grows with every change.
    pub(crate) version: u64,
}

/// An outcome in the store: one of the two.
#[derive(Serialize, Deserialize)]
struct Said {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<RawJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorObject>,
}

/// The text of an outcome in the store.
pub(crate) fn outcome_text(outcome: &Outcome) -> String {
    let said = match outcome {
        Outcome::Result(result) => Said { result: Some(result.clone()), error: None },
        Outcome::Error(error) => Said { result: None, error: Some(error.to_object()) },
    };
    RawJson::from_value(&said).get().to_owned()
}

fn outcome(text: String) -> Option<Outcome> {
    let said: Said = RawJson::parse(text).ok()?.to().ok()?;
    said.result.map(Outcome::Result).or_else(|| said.error.map(|error| Outcome::Error(Error::from(error))))
}

fn status(name: &str) -> Option<TaskStatus> {
    serde_json::from_value(name.into()).ok()
}

impl SharedTask {
    /// Its fields in the store. `is_listed`: with its id, which others need to list it; else whoever reads the store does
    /// not learn that.
    pub(crate) fn fields(&self, is_listed: bool) -> Vec<(&'static str, String)> {
        let Self { task, outcome, questions, .. } = self;
        let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
        let mut fields = vec![
            ("s", task.status.as_str().to_owned()),
            ("m", task.status_message.clone().unwrap_or_default()),
            ("c", task.created_at.clone()),
            ("u", task.last_updated_at.clone()),
            ("t", number(task.ttl)),
            ("i", number(task.poll_interval)),
            ("x", outcome.as_ref().map_or_else(String::new, outcome_text)),
            ("q", questions.as_ref().map_or_else(String::new, |questions| questions.get().to_owned())),
        ];
        if is_listed {
            fields.push(("d", task.task_id.clone()));
        }
        fields
    }

    /// Reads the fields of the task with this id, or of one that is listed. `None`: they are of a later release, or not ours.
    pub(crate) fn read(id: &str, fields: impl IntoIterator<Item = (String, String)>) -> Option<Self> {
        let mut task = Task::working(id, "");
        let (mut said, mut questions, mut version, mut is_there) = (None, None, 0, false);
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            match name.as_str() {
                "s" => {
                    task.status = status(&value)?;
                    is_there = true;
                }
                "m" => task.status_message = Some(value),
                "c" => task.created_at = value,
                "u" => task.last_updated_at = value,
                "t" => task.ttl = value.parse().ok(),
                "i" => task.poll_interval = value.parse().ok(),
                "x" => said = Some(outcome(value)?),
                "q" => questions = Some(RawJson::parse(value).ok()?),
                "d" => task.task_id = value,
                "v" => version = value.parse().unwrap_or(0),
                _ => {}
            }
        }
        is_there.then_some(Self { task, outcome: said, questions, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_read_as_it_was_written() {
        let task = Task {
            task_id: "t".into(),
            status: TaskStatus::Failed,
            status_message: Some("no".into()),
            created_at: "2025-11-25T00:00:00Z".into(),
            last_updated_at: "2025-11-25T00:00:01Z".into(),
            ttl: Some(60_000),
            poll_interval: Some(1000),
            meta: None,
            extra: serde_json::Map::new(),
        };
        let outcome = Outcome::Error(Error::rpc(-32603, "no").with_data(RawJson::written("{\"a\":1.50}".into())));
        let questions = Some(RawJson::written("{\"elicitation-1\":{\"method\":\"elicitation/create\"}}".into()));
        let shared = SharedTask { task, outcome: Some(outcome), questions, version: 3 };
        let mut fields: Vec<_> =
            shared.fields(false).into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert!(fields.iter().all(|(_, value)| value != "t"), "its id is not readable");
        fields.extend([("v".to_owned(), "3".to_owned()), ("later".to_owned(), "x".to_owned())]);
        let read = SharedTask::read("t", fields).expect("a task");
        assert_eq!((&read.task, read.version), (&shared.task, 3));
        assert_eq!(read.questions.map(|q| q.get().to_owned()), shared.questions.map(|q| q.get().to_owned()));
        match read.outcome {
            Some(Outcome::Error(error)) => {
                assert_eq!(
                    (error.code(), error.message(), error.data().map(RawJson::get)),
                    (Some(-32603), "no", Some("{\"a\":1.50}"))
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(SharedTask::read("t", []).is_none());
        assert!(SharedTask::read("t", [("s".into(), "unheard of".into())]).is_none());
    }
}
