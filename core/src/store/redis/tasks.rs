//! Tasks that every process can be asked for: one hash for each, written by the process that works on it, and a set of
//! those of a session. A task whose process has lost its number for a while has failed, for whoever looks at it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::{FromRedisValue, Pipeline, Value};
use sha2::{Digest, Sha256};

use super::health::Work;
use super::scripts::tasks::{ANSWER, CANCEL, COMMON, FORGET, LIST, LOOK, PUT};
use super::{Redis, Trouble, nodes};
use crate::store::SharedTask;

const VERSION: u8 = 1;
/// Tasks of one session that are listed, at most.
const LISTED: usize = 1000;
/// Time for which a process may be without its number before its tasks have failed, in milliseconds: a store that was
/// away for longer than numbers live has none when it is back, until all processes have put theirs back.
const GRACE: u64 = nodes::BEAT + 4_000;
/// Longest life of a task in the store, in milliseconds.
const LONGEST: u64 = 1 << 45;

/// Number of the arguments that [`COMMON`] needs. Those of a script follow.
const FIRST: usize = 8;

/// The task that a process works on, as the store is to know it.
pub(crate) struct Put<'a> {
    pub(crate) name: &'a str,
    /// The session that it belongs to, by the name that all processes know.
    pub(crate) session: Option<&'a str>,
    pub(crate) task: &'a SharedTask,
    /// Time that it has left, in milliseconds.
    pub(crate) ttl: u64,
    /// It may be new.
    pub(crate) creates: bool,
    pub(crate) node: &'a str,
    pub(crate) number: u32,
}

/// Fate of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Done,
    /// The task is over, with this status.
    Over(&'static str),
    /// It is not there, or another's.
    Gone,
}

/// A task as the store knows it.
#[derive(Debug)]
pub(crate) struct Looked {
    pub(crate) task: SharedTask,
    /// It was found now that it has failed with its process.
    pub(crate) has_failed: bool,
    /// Time for which it is still there.
    pub(crate) left: Duration,
}

/// Fate of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answered {
    Sent,
    /// Nothing waits for them: the task is over.
    Over,
    Unknown,
    /// The process that works on it does not read them, or is not there.
    Refused,
}

/// The words of a task that has failed with its process: the time, the message and the outcome.
pub(crate) struct Failed {
    pub(crate) stamp: String,
    pub(crate) message: &'static str,
    pub(crate) outcome: String,
}

/// The name of an owner's task in the store. Whoever reads it there learns no id.
pub(crate) fn task_name(owner: &str, id: &str) -> Arc<str> {
    use base64::Engine;
    let hash = Sha256::new().chain_update("tricorn task\0").chain_update(owner).chain_update("\0").chain_update(id);
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&hash.finalize()[..24]).into()
}

fn read(id: &str, fields: Value) -> Result<SharedTask, Trouble> {
    let fields = Vec::<(String, String)>::from_redis_value(fields);
    let task = fields.ok().and_then(|fields| SharedTask::read(id, fields));
    task.ok_or_else(|| Trouble::garbled("a task cannot be read"))
}

impl Redis {
    fn task(&self, name: &str) -> String {
        self.key(&format!("task:{name}"), VERSION)
    }

    /// The key of the set of a session's tasks.
    pub(super) fn tasks_of(&self, session: &str) -> String {
        self.key(&format!("tasks:{session}"), VERSION)
    }

    /// The beginning and the end of the keys of tasks.
    pub(super) fn around_tasks(&self) -> (String, String) {
        (format!("{}:task:", self.prefix), format!(":{VERSION}"))
    }

    /// Asks a script about tasks. `length`: that of the message that it may send.
    fn about(&self, script: &str, keys: &[String], length: usize, failed: &Failed) -> redis::Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(format!("{COMMON}{script}")).arg(keys.len()).arg(keys);
        command.arg(format!("{}:", self.prefix)).arg(nodes::suffix()).arg(nodes::room_for(length));
        command.arg(nodes::INBOX_LIVES).arg(GRACE).arg(&failed.stamp).arg(failed.message).arg(&failed.outcome);
        debug_assert_eq!(command.args_iter().count(), 3 + keys.len() + FIRST);
        command
    }

    async fn told<T: FromRedisValue>(self: &Arc<Self>, command: redis::Cmd) -> Result<T, Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.add_command(command);
        let outcome = self.ask::<(T,)>(&pipe).await;
        self.done(Work::Tasks, outcome).map(|(answer,)| answer)
    }

    /// Writes a task, in one round trip.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn put_task(self: &Arc<Self>, put: &Put<'_>) -> Result<Written, Trouble> {
        let key = self.task(put.name);
        let of = put.session.map_or_else(|| key.clone(), |session| self.tasks_of(session));
        let session = put.session.map_or_else(|| key.clone(), |session| self.session_of(session));
        let failed = Failed { stamp: String::new(), message: "", outcome: String::new() };
        let mut command = self.about(PUT, &[key, of, session], 0, &failed);
        let (begins, ends) = self.around_tasks();
        command.arg(put.name).arg(put.ttl.clamp(1, LONGEST)).arg(put.node).arg(put.number).arg(put.task.version);
        command.arg(u8::from(put.creates)).arg(LISTED).arg(begins).arg(ends);
        // The status comes first.
        for (name, value) in put.task.fields(put.session.is_some()) {
            command.arg(name).arg(value);
        }
        let (fate, status): (u8, String) = self.told(command).await?;
        Ok(match fate {
            0 | 1 => Written::Done,
            2 => match status.as_str() {
                "completed" => Written::Over("completed"),
                "failed" => Written::Over("failed"),
                _ => Written::Over("cancelled"),
            },
            _ => Written::Gone,
        })
    }

    /// Looks at a task. `watcher`: the number of a process that is told of its changes from now on, or 0.
    ///
    /// # Errors
    /// As `Redis::ask`; what is there cannot be read.
    pub(crate) async fn look_at_task(
        self: &Arc<Self>,
        name: &str,
        id: &str,
        watcher: u32,
        failed: &Failed,
    ) -> Result<Option<Looked>, Trouble> {
        let mut command = self.about(LOOK, &[self.task(name)], 0, failed);
        command.arg(name).arg(watcher);
        let Some((has_failed, fields, left)) = self.told::<Option<(u8, Value, i64)>>(command).await? else {
            return Ok(None);
        };
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        read(id, fields).map(|task| Some(Looked { task, has_failed: has_failed == 1, left }))
    }

    /// Cancels a task, and returns it as it is now: with `false`, if it was over before.
    ///
    /// # Errors
    /// As `Redis::ask`; what is there cannot be read.
    pub(crate) async fn cancel_task(
        self: &Arc<Self>,
        name: &str,
        id: &str,
        message: &str,
        stamp: String,
    ) -> Result<Option<(SharedTask, bool)>, Trouble> {
        let failed = Failed { stamp, message: "", outcome: String::new() };
        let mut command = self.about(CANCEL, &[self.task(name)], 0, &failed);
        command.arg(name).arg(message);
        match self.told::<Option<(u8, Value)>>(command).await? {
            None => Ok(None),
            Some((is_done, fields)) => read(id, fields).map(|task| Some((task, is_done == 1))),
        }
    }

    /// Sends answers to questions of a task to the process that works on it.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn answer_task(self: &Arc<Self>, name: &str, answers: &Bytes) -> Result<Answered, Trouble> {
        let failed = Failed { stamp: String::new(), message: "", outcome: String::new() };
        let mut command = self.about(ANSWER, &[self.task(name)], answers.len(), &failed);
        command.arg(name).arg(&answers[..]);
        Ok(match self.told::<u8>(command).await? {
            1 => Answered::Sent,
            3 => Answered::Unknown,
            4 => Answered::Over,
            _ => Answered::Refused,
        })
    }

    /// Returns up to `most` tasks of a session in order of their creation, after a place, each with its place.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn list_tasks(
        self: &Arc<Self>,
        session: &str,
        after: u64,
        most: usize,
        failed: &Failed,
    ) -> Result<Vec<(u64, SharedTask)>, Trouble> {
        let mut command = self.about(LIST, &[self.tasks_of(session)], 0, failed);
        let (begins, ends) = self.around_tasks();
        command.arg(after).arg(most).arg(begins).arg(ends);
        let all: Vec<(u64, Vec<Option<String>>)> = self.told(command).await?;
        let names = ["d", "s", "m", "c", "u", "t", "i"];
        let read = |fields: Vec<Option<String>>| {
            let fields = names.iter().zip(fields).filter_map(|(name, value)| Some(((*name).to_owned(), value?)));
            SharedTask::read("", fields)
        };
        Ok(all.into_iter().filter_map(|(place, fields)| Some((place, read(fields)?))).collect())
    }

    /// Forgets a task of this process.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn forget_task(
        self: &Arc<Self>,
        name: &str,
        session: Option<&str>,
        node: &str,
    ) -> Result<(), Trouble> {
        let key = self.task(name);
        let of = session.map_or_else(|| key.clone(), |session| self.tasks_of(session));
        let mut command = redis::cmd("EVAL");
        command.arg(FORGET).arg(2).arg(key).arg(of).arg(node).arg(name);
        self.told::<u8>(command).await.map(drop)
    }
}

/// The name of a session's owner of tasks.
pub(crate) fn owner_of_session(session: &str) -> String {
    format!("session {session}")
}
