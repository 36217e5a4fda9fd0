//! Stores of programs: the commands of this crate, carried out on documents in place of Redis.
//!
//! A pipeline is one transaction: what it needs is read, the [`Model`] does it, and what has changed is written, if nobody
//! has written any of it meanwhile. Otherwise all of it is done again.

mod check;
#[cfg(test)]
pub(super) mod memory;
pub(crate) mod model;
#[cfg(all(test, unix))]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::FutureExt;
use redis::{Arg, Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, RedisResult, Value};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::error::{Error, ErrorKind as Kind};
use crate::store::{Document, DocumentStore, DocumentWrite};
pub use check::check_document_store;
use model::{Entry, Kept, Model, Said};

/// Documents that are read at once.
const AT_ONCE: usize = 64;
/// Time between two looks at a store that does not tell when something changes.
const POLL: Duration = Duration::from_millis(100);
/// Least time between two looks at one that does.
const LEAST: Duration = Duration::from_millis(10);
/// Times that something is done again that others have changed meanwhile.
const ATTEMPTS: u32 = 64;
/// Time for which it is.
const RETRIED: Duration = Duration::from_millis(1500);
/// The longest pause before that, in milliseconds.
const PAUSE: u64 = 64;
/// Part of its time by which a document may live shorter, so that not each request writes one.
const PART: u64 = 16;
/// Time for which a document is kept after its end, for clocks that do not agree.
const AFTER: Duration = Duration::from_secs(60);
/// Time for which one without an end is kept: there is none.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Time for which the store's time is known.
const TIMED: Duration = Duration::from_secs(60);
/// The most that it may be away from this machine's, in milliseconds.
const AWAY: i128 = 24 * 60 * 60 * 1000;
/// The longest text that is written, in bytes.
const LONGEST_TEXT: usize = 16 << 20;
/// Begins errors that are about one question.
pub(super) const OWN: &str = "a DocumentStore";
/// Begins errors of a program's store that refuses one question.
pub(super) const REFUSED: &str = "a DocumentStore refused";

/// Commands of a pipeline, as their words.
type Commands = Vec<Vec<Vec<u8>>>;

/// A text in a store.
#[derive(Serialize, Deserialize)]
struct Text {
    #[serde(flatten)]
    kept: Kept,
    /// Time at which it ends, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
}

/// A document as it was read.
struct Read {
    version: Option<String>,
    entry: Option<Entry>,
}

/// A program's store, and the difference between its clock and this machine's.
pub(crate) struct Documents {
    store: Arc<dyn DocumentStore>,
    clock: Mutex<Option<(Instant, i128)>>,
    /// Held by those who do something again, so that this process does not hinder itself.
    again: tokio::sync::Mutex<()>,
}

/// A way to a program's store; a clone is the same one.
#[derive(Clone)]
pub(crate) struct Wire {
    documents: Arc<Documents>,
    /// Time in which an answer comes.
    patience: Duration,
}

fn failed(error: &Error) -> RedisError {
    std::io::Error::other(format!("it failed: {}", error.message())).into()
}

/// An error of `get` or `commit`, which may be a refusal of that question alone.
fn refused_or_failed(error: &Error) -> RedisError {
    match error.kind() {
        Kind::Misuse => (ErrorKind::UnexpectedReturnType, REFUSED, error.message().to_owned()).into(),
        _ => failed(error),
    }
}

/// A fault of one question, after which others may be asked.
fn wrong(why: &'static str) -> RedisError {
    (ErrorKind::UnexpectedReturnType, OWN, why.to_owned()).into()
}

/// Calls a function of the program. One that panics has failed; `said` is told of an error.
async fn guarded<T>(call: impl Future<Output = crate::Result<T>>, said: fn(&Error) -> RedisError) -> RedisResult<T> {
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(outcome) => outcome.map_err(|error| said(&error)),
        Err(_) => Err(std::io::Error::other("it panicked").into()),
    }
}

/// Wall time, in milliseconds since 1970.
fn unix() -> i128 {
    #[cfg(test)]
    if let Some(time) = crate::simulated::unix() {
        return time.as_millis().cast_signed();
    }
    since_1970(SystemTime::now())
}

fn since_1970(time: SystemTime) -> i128 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis().cast_signed())
}

/// A random number below this one.
fn random(below: u64) -> u64 {
    let mut bytes = [0; 8];
    // Without randomness the pauses are equal.
    let _ = crate::random::fill(&mut bytes);
    u64::from_le_bytes(bytes) % below.max(1)
}

impl Documents {
    pub(crate) fn new(store: Arc<dyn DocumentStore>) -> Self {
        Self { store, clock: Mutex::new(None), again: tokio::sync::Mutex::new(()) }
    }

    /// The store's time, in milliseconds since 1970.
    async fn now(&self) -> RedisResult<u64> {
        let known = *self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead = match known.filter(|(at, _)| at.elapsed() < TIMED) {
            Some((_, ahead)) => ahead,
            None => {
                let ahead = match self.store.now() {
                    Some(now) => {
                        let asked = unix();
                        let now = since_1970(guarded(now, failed).await?);
                        let ahead = now - i128::midpoint(asked, unix());
                        if ahead.abs() > AWAY {
                            return Err(wrong("\"now\" is more than a day from this machine's time"));
                        }
                        ahead
                    }
                    None => 0,
                };
                *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), ahead));
                ahead
            }
        };
        Ok(u64::try_from(unix() + ahead).unwrap_or(0))
    }

    /// Reads documents, in the order of the keys.
    async fn read(&self, keys: &[String]) -> RedisResult<Vec<Read>> {
        let mut all = Vec::with_capacity(keys.len());
        for some in keys.chunks(AT_ONCE) {
            let found = guarded(self.store.get(some.to_vec()), refused_or_failed).await?;
            if found.len() != some.len() {
                return Err(wrong(
                    "\"get\" has to return as many documents as there are keys, with nothing for those without",
                ));
            }
            for document in found {
                all.push(match document {
                    None => Read { version: None, entry: None },
                    Some(Document { version, text }) => {
                        let text: Text = serde_json::from_str(&text)
                            .map_err(|_| wrong("\"get\" returned a text that nobody has written with \"commit\""))?;
                        Read { version: Some(version), entry: Some((text.kept, text.until)) }
                    }
                });
            }
        }
        Ok(all)
    }

    /// Does what a pipeline says.
    async fn answer(&self, commands: &Commands) -> RedisResult<Vec<Value>> {
        let mut answers = Vec::with_capacity(commands.len());
        let (mut attempts, mut until) = (0, None);
        let (begun, mut turn) = (Instant::now(), None);
        while answers.len() < commands.len() {
            let mut seen = BTreeMap::new();
            let Some((values, waits)) = self.transact(&commands[answers.len()..], &mut seen).await? else {
                attempts += 1;
                if attempts > ATTEMPTS || (until.is_none() && begun.elapsed() > RETRIED) {
                    return Err(wrong("others write the same documents all the time"));
                }
                if turn.is_none() {
                    turn = Some(self.again.lock().await);
                }
                tokio::time::sleep(Duration::from_millis(1 + random((1 << attempts.min(6)).min(PAUSE)))).await;
                continue;
            };
            turn = None;
            answers.extend(values);
            let Some((time, keys)) = waits else { continue };
            let until = *until.get_or_insert_with(|| Instant::now() + Duration::from_millis(time));
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Nothing has come, and what follows is asked anyway.
                answers.push(Value::Nil);
                continue;
            }
            let seen = seen.into_iter().filter(|(key, _)| keys.contains(key));
            self.wait(seen.map(|(key, read)| (key, read.version)).collect(), left).await?;
        }
        Ok(answers)
    }

    /// Does as many commands as there are until one waits. Gives their answers, and for how long it waits for which
    /// streams. `None`: others have written something of that meanwhile.
    async fn transact(
        &self,
        commands: &[Vec<Vec<u8>>],
        seen: &mut BTreeMap<String, Read>,
    ) -> RedisResult<Option<(Vec<Value>, Option<(u64, BTreeSet<String>)>)>> {
        let (mut now, mut rounds) = (self.now().await?, 0);
        let (model, values, waits) = loop {
            let known = seen.keys().cloned().collect();
            let there = seen.iter().filter_map(|(key, read)| Some((key.clone(), read.entry.clone()?)));
            let mut model = Model::of(now, known, there.collect());
            let (mut values, mut waits) = (Vec::with_capacity(commands.len()), None);
            for command in commands {
                match model.ask(command).ok_or_else(|| wrong("this version does not know what it wants"))? {
                    Said::Value(value) => values.push(value),
                    Said::Waits(time) => {
                        waits = Some((time, streams(command)));
                        break;
                    }
                }
            }
            let missing = model.missing();
            if missing.is_empty() {
                break (model, values, waits);
            }
            let read = self.read(&missing).await?;
            seen.extend(missing.into_iter().zip(read));
            (now, rounds) = (self.now().await?, rounds + 1);
        };
        let writes = writes(now, seen, model.into_keys())?;
        // What was read at once is as it was at one time.
        let is_whole = rounds < 2 && seen.len() <= AT_ONCE;
        if writes.is_empty() && is_whole {
            return Ok(Some((values, waits)));
        }
        let expected = seen.iter().map(|(key, read)| (key.clone(), read.version.clone())).collect();
        let is_done = guarded(self.store.commit(expected, writes), refused_or_failed).await?;
        Ok(is_done.then_some((values, waits)))
    }

    /// Waits until one of these documents may be another.
    async fn wait(&self, seen: Vec<(String, Option<String>)>, left: Duration) -> RedisResult<()> {
        match self.store.wait(seen, left) {
            None => tokio::time::sleep(POLL.min(left)).await,
            Some(wait) => {
                let begun = Instant::now();
                if let Ok(outcome) = tokio::time::timeout(left, guarded(wait, failed)).await {
                    outcome?;
                    // One that does not wait would be asked all the time.
                    tokio::time::sleep(LEAST.saturating_sub(begun.elapsed()).min(left)).await;
                }
            }
        }
        Ok(())
    }
}

/// The keys of the streams that a command reads.
fn streams(command: &[Vec<u8>]) -> BTreeSet<String> {
    let rest = command.iter().skip_while(|word| *word != b"STREAMS").skip(1);
    let all: Vec<_> = rest.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    all[..all.len() / 2].iter().cloned().collect()
}

/// The writes that make these keys of what was read.
fn writes(
    now: u64,
    seen: &BTreeMap<String, Read>,
    mut keys: BTreeMap<String, Entry>,
) -> RedisResult<Vec<DocumentWrite>> {
    let mut writes = Vec::new();
    for (key, read) in seen {
        let before = read.entry.as_ref().filter(|(_, until)| until.is_none_or(|until| until > now));
        let document = match (before, keys.remove(key)) {
            (None, None) => continue,
            (Some(_), None) => None,
            (before, Some((kept, until))) => {
                if before.is_some_and(|before| before.0 == kept && lives_as_long(now, before.1, until)) {
                    continue;
                }
                Some((Text { kept, until }, until))
            }
        };
        let write = |document, ttl| DocumentWrite { key: key.clone(), document, ttl };
        writes.push(match document {
            None => write(None, Duration::from_secs(1)),
            Some((text, until)) => {
                let ttl = until.map_or(LONGEST, |until| Duration::from_millis(until.saturating_sub(now)));
                let unwritten = |_| RedisError::from((ErrorKind::Client, "a document cannot be written"));
                let text = serde_json::to_string(&text).map_err(unwritten)?;
                if text.len() > LONGEST_TEXT {
                    return Err(wrong("a document would be longer than 16 MiB"));
                }
                let version = crate::random::new_id().map_err(|error| failed(&error))?.to_string();
                write(Some(Document { version, text }), ttl.max(Duration::from_secs(1)) + AFTER)
            }
        });
    }
    Ok(writes)
}

/// Says whether a document that ends at the first time need not be written to end at the second.
fn lives_as_long(now: u64, before: Option<u64>, after: Option<u64>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before <= after && (after - before) * PART <= after.saturating_sub(now),
        (before, after) => before == after,
    }
}

/// The time at which a text ends.
#[cfg(test)]
pub(super) fn until_of(text: &str) -> Option<u64> {
    serde_json::from_str::<Text>(text).ok()?.until
}

/// The entries of a stream, each with its time.
#[cfg(test)]
pub(super) fn entries_of(text: &str) -> Vec<(u64, Vec<String>)> {
    match serde_json::from_str(text) {
        Ok(Text { kept: Kept::Stream { entries, .. }, .. }) => {
            entries.into_iter().map(|((time, _), fields)| (time, fields)).collect()
        }
        _ => Vec::new(),
    }
}

impl Wire {
    pub(super) fn new(documents: &Arc<Documents>, patience: Duration) -> Self {
        Self { documents: documents.clone(), patience }
    }

    async fn ask(&self, commands: Commands) -> RedisResult<Vec<Value>> {
        let answered = tokio::time::timeout(self.patience, self.documents.answer(&commands));
        answered.await.unwrap_or_else(|_| Err(std::io::Error::other("no answer in time").into()))
    }
}

/// The words of a command.
pub(super) fn words(command: &Cmd) -> Vec<Vec<u8>> {
    command.args_iter().map(|word| if let Arg::Simple(word) = word { word.to_vec() } else { Vec::new() }).collect()
}

impl redis::aio::ConnectionLike for Wire {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        let commands = vec![words(command)];
        Box::pin(async move { Ok(self.ask(commands).await?.into_iter().next().unwrap_or(Value::Nil)) })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        _: usize,
        _: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let commands = pipeline.cmd_iter().map(words).collect();
        Box::pin(async move { self.ask(commands).await })
    }

    fn get_db(&self) -> i64 {
        0
    }
}
