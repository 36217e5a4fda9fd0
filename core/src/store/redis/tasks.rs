//! Tasks that every process can be asked for: one hash for each, written by the process that works on it, and a set of
//! those of a session. A task whose process has lost its number for a while has failed, for whoever looks at it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use redis::{FromRedisValue, Pipeline, Value};
use sha2::{Digest, Sha256};

use super::health::Work;
use super::nodes;
use super::{Redis, Trouble};
use crate::store::SharedTask;

const VERSION: u8 = 1;
/// Tasks of one session that are listed, at most.
const LISTED: usize = 1000;
/// Time for which a process may be without its number before its tasks have failed, in milliseconds: a store that was
/// away for longer than numbers live has none when it is back, until all processes have put theirs back.
const GRACE: u64 = nodes::BEAT + 4_000;
/// Longest life of a task in the store, in milliseconds.
const LONGEST: u64 = 1 << 45;

/// Functions of the scripts about tasks. Arguments: the beginning and the end of keys that name processes, the room in an
/// inbox, its life, the grace, the time as text, and the message and the outcome of a task that failed with its process.
pub(super) const COMMON: &str =
    "local function place(kind, number) return ARGV[1] .. kind .. ':' .. number .. ARGV[2] end
local function over(status) return status == 'completed' or status == 'failed' or status == 'cancelled' end
local function send(number, room, name, ...)
  if redis.call('EXISTS', place('node', number)) == 0 then return 0 end
  local inbox = place('inbox', number)
  if redis.call('XLEN', inbox) >= room then return 2 end
  redis.call('XADD', inbox, '*', 'task', name, ...)
  redis.call('PEXPIRE', inbox, ARGV[4])
  return 1
end
-- Half of an inbox is left to what nobody looks for later.
local function tell(key, name)
  local room = math.floor(tonumber(ARGV[3]) / 2)
  for number in string.gmatch(redis.call('HGET', key, 'w') or '', '%d+') do send(number, room, name) end
end
local function lives(key)
  local of = redis.call('HMGET', key, 'n', 'p')
  return redis.call('GET', place('node', of[1])) == of[2]
end
-- 0: it goes on. 1: it has failed now.
local function judge(key, name)
  if over(redis.call('HGET', key, 's')) then return 0 end
  local missed = redis.call('HGET', key, 'f')
  if lives(key) then
    if missed then redis.call('HDEL', key, 'f') end
    return 0
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  if not missed then redis.pcall('HSET', key, 'f', string.format('%.0f', now)) return 0 end
  if now - tonumber(missed) < tonumber(ARGV[5]) then return 0 end
  local done = redis.pcall('HSET', key, 's', 'failed', 'u', ARGV[6], 'm', ARGV[7], 'x', ARGV[8])
  if type(done) == 'table' then return 0 end
  redis.call('HDEL', key, 'q')
  tell(key, name)
  return 1
end
";

/// Number of the arguments that [`COMMON`] needs. Those of a script follow.
const FIRST: usize = 8;

/// Writes a task. An end stays, only the process that works on it writes, and what is older changes nothing. 0: it is
/// known. 1: it is written. 2: it is over, as what follows says. 3: it is not there, and is not to be. 4: it is another's.
pub(super) const PUT: &str =
    "local name, ttl, process, number, version = ARGV[9], ARGV[10], ARGV[11], ARGV[12], ARGV[13]
local was = redis.call('HMGET', KEYS[1], 's', 'p', 'v')
if was[1] then
  if over(was[1]) then return {2, was[1]} end
  if was[2] ~= process then return {4, was[1]} end
  if tonumber(was[3]) >= tonumber(version) then return {0, was[1]} end
else
  if ARGV[14] ~= '1' then return {3, ''} end
  if KEYS[2] ~= KEYS[1] and redis.call('HGET', KEYS[3], 'v') == '0' then return {3, ''} end
end
local set, gone = {'p', process, 'n', number, 'v', version}, {'f'}
for i = 18, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    gone[#gone + 1] = ARGV[i]
  else
    set[#set + 1] = ARGV[i]
    set[#set + 1] = ARGV[i + 1]
  end
end
redis.call('HSET', KEYS[1], unpack(set))
redis.call('PEXPIRE', KEYS[1], ttl)
if was[1] then
  redis.call('HDEL', KEYS[1], unpack(gone))
  tell(KEYS[1], name)
elseif KEYS[2] ~= KEYS[1] then
  local time = redis.call('TIME')
  local at = time[1] * 1000000 + time[2]
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
  if last[2] and tonumber(last[2]) >= at then at = tonumber(last[2]) + 1 end
  redis.call('ZADD', KEYS[2], string.format('%.0f', at), name)
  if redis.call('PTTL', KEYS[2]) < tonumber(ttl) then redis.call('PEXPIRE', KEYS[2], ttl) end
  while redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[15]) do
    local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
    redis.call('ZREM', KEYS[2], oldest)
    local key = ARGV[16] .. oldest .. ARGV[17]
    if over(redis.call('HGET', key, 's')) then redis.call('DEL', key) end
  end
end
return {1, ARGV[19]}";

/// Gives a task, which tells a process of its changes from now on.
pub(super) const LOOK: &str = "if redis.call('EXISTS', KEYS[1]) == 0 then return false end
local failed = judge(KEYS[1], ARGV[9])
if ARGV[10] ~= '0' and not over(redis.call('HGET', KEYS[1], 's')) then
  local known = redis.call('HGET', KEYS[1], 'w') or ','
  -- A full store takes no more: the process looks by itself.
  if #known < 512 and not string.find(known, ',' .. ARGV[10] .. ',', 1, true) then
    redis.pcall('HSET', KEYS[1], 'w', known .. ARGV[10] .. ',')
  end
end
return {failed, redis.call('HGETALL', KEYS[1]), redis.call('PTTL', KEYS[1])}";

/// Cancels a task that is not over, and tells the process that works on it. 0: it was over.
pub(super) const CANCEL: &str = "local status = redis.call('HGET', KEYS[1], 's')
if not status then return false end
if over(status) then return {0, redis.call('HGETALL', KEYS[1])} end
redis.call('HSET', KEYS[1], 's', 'cancelled', 'u', ARGV[6], 'm', ARGV[10])
redis.call('HDEL', KEYS[1], 'q')
tell(KEYS[1], ARGV[9])
-- One for each task at most, and always with room: its handler is to stop.
if lives(KEYS[1]) then send(redis.call('HGET', KEYS[1], 'n'), math.huge, ARGV[9]) end
return {1, redis.call('HGETALL', KEYS[1])}";

/// Sends answers to the process that asks. 0: it is not there. 1: they are sent. 2: there is no room. 3: there is no such
/// task. 4: it is over.
pub(super) const ANSWER: &str = "local status = redis.call('HGET', KEYS[1], 's')
if not status then return 3 end
if over(status) then return 4 end
if not lives(KEYS[1]) then return 0 end
return send(redis.call('HGET', KEYS[1], 'n'), tonumber(ARGV[3]), ARGV[9], 'answers', ARGV[10])";

/// Lists tasks of a session after a place, with their places. Those that have expired are listed no more.
pub(super) const LIST: &str = "local out, after, most = {}, ARGV[9], tonumber(ARGV[10])
repeat
  local some = redis.call('ZRANGE', KEYS[1], '(' .. after, '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
  for i = 1, #some, 2 do
    local key = ARGV[11] .. some[i] .. ARGV[12]
    after = some[i + 1]
    if redis.call('EXISTS', key) == 0 then
      redis.call('ZREM', KEYS[1], some[i])
    elseif #out < most then
      judge(key, some[i])
      out[#out + 1] = {after, redis.call('HMGET', key, 'd', 's', 'm', 'c', 'u', 't', 'i')}
    end
  end
until #some == 0 or #out >= most
return out";

/// Forgets a task of this process.
pub(super) const FORGET: &str = "if redis.call('HGET', KEYS[1], 'p') ~= ARGV[1] then return 0 end
if KEYS[2] ~= KEYS[1] then redis.call('ZREM', KEYS[2], ARGV[2]) end
return redis.call('DEL', KEYS[1])";

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
