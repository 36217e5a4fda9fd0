//! The log of changes, which every process of a server writes and follows: a stream of bounded length.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redis::streams::{StreamId, StreamRangeReply, StreamReadReply};
use redis::{Pipeline, RedisResult};

use super::health::Work;
use super::link::Link;
use super::nodes::Number;
use super::scripts::bus::PUBLISH;
use super::{Redis, Trouble};
use crate::store::Change;

pub(super) const VERSION: u8 = 1;
/// Entries that the log keeps, about: what a process missed beyond these is told as "anything".
pub(super) const LENGTH: usize = 1024;
/// Time after the last change for which the log lives, in milliseconds.
pub(super) const LIVES: u64 = 7 * 24 * 60 * 60 * 1000;
/// Changes that are written at once.
pub(crate) const AT_ONCE: usize = 128;
/// Entries of each stream that are read at once: in an inbox they may be as long as messages.
const READ: usize = 32;
/// Time for which one question waits for a change.
const BLOCK: Duration = Duration::from_secs(5);
/// Time for which is known what a process has written, in milliseconds.
const REMEMBERED: u64 = 60_000;
/// Changes of this process of which is known that its clients were told.
const TOLD: usize = 32 * AT_ONCE;

/// The place before all entries.
const BEGINNING: &str = "0-0";

/// News from another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Heard {
    /// News that this process knows, or that a later release has written.
    Nothing,
    Change(Change),
    /// A change of this process, which clients here were told of when the store did not answer: those that were there then.
    /// With the number of that.
    Again(Change, u64),
    /// Some of it was missed.
    Missed,
    /// The client of this session told another process something, or ended it there.
    Session(String),
    /// A message of a session's client for whoever works on what it names.
    FromClient {
        session: String,
        text: Bytes,
    },
    /// A task is another now, or, with a text, its client answers its questions.
    Task {
        name: String,
        answers: Option<Bytes>,
    },
    /// A message for a session's client, whose stream this process has.
    ToClient {
        session: String,
        text: Bytes,
    },
    /// A note of another process about the stream of an answer.
    Note {
        session: String,
        text: Bytes,
    },
}

/// Changes of this process that it publishes.
#[derive(Default)]
pub(super) struct Published {
    batch: AtomicU64,
    /// The last of which its clients have been told, by batch and place in it: 0 for those that came from the store, else
    /// the number of the time.
    told: Mutex<BTreeMap<(u64, usize), u64>>,
}

/// One process's place in the log of changes and in its inbox.
pub(crate) struct Follower {
    store: Arc<Redis>,
    /// The process, whose own changes it knows.
    node: Arc<str>,
    /// Its number, which names its inbox.
    number: Arc<Number>,
    link: Option<Link>,
    /// The id of the entry that was read last.
    last: Option<String>,
    /// The place from which it began, for others: see [`packed`].
    place: Arc<AtomicU64>,
    /// The inbox that was read last, and the last entry in it.
    inbox: (u32, String),
}

/// The id of an entry as one number, which is greater for later ones.
fn packed(id: &str) -> u64 {
    let (time, number) = id.split_once('-').unwrap_or((id, "0"));
    let (time, number): (u64, u64) = (time.parse().unwrap_or(0), number.parse().unwrap_or(0));
    (time << 16) | number.min(0xffff)
}

/// Reverses [`packed`].
fn unpacked(place: u64) -> String {
    format!("{}-{}", place >> 16, place & 0xffff)
}

impl Redis {
    /// Tells all processes what has changed in this one, in one round trip; this one, too, of a change with `true`. The same
    /// batch is written once, however often it is sent within a minute.
    ///
    /// # Errors
    /// As `Redis::ask`. They may have been written, or may be later.
    pub(crate) async fn publish(
        self: &Arc<Self>,
        node: &str,
        batch: u64,
        changes: &[(Change, bool)],
    ) -> Result<(), Trouble> {
        let (key, written) = (self.key("changes", VERSION), self.key(&format!("published:{node}"), VERSION));
        let mut pipe = Pipeline::with_capacity(1);
        let tell = pipe.cmd("EVAL").arg(PUBLISH).arg(2).arg(&key).arg(written);
        tell.arg(batch).arg(REMEMBERED).arg(LENGTH).arg(LIVES);
        for (at, (change, loops)) in changes.iter().enumerate() {
            let (kind, name) = match change {
                Change::List(kind) => ("list", kind.as_str()),
                Change::Resource(uri) => ("resource", uri.as_str()),
                Change::All => ("all", ""),
            };
            tell.arg(if *loops { "" } else { node }).arg(kind).arg(name).arg(format!("{node}:{batch}:{at}"));
        }
        let outcome = self.ask::<(u8,)>(&pipe).await.map(drop);
        self.done(Work::Publishing, outcome)
    }

    /// Returns the number of the next changes that are published at once.
    pub(crate) fn next_batch(&self) -> u64 {
        self.published.batch.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Clients here are about to be told of a change of this process: from the store with 0, else under this number. Returns
    /// what they know of it already, 0 from the store.
    pub(crate) fn tells(&self, batch: u64, at: usize, number: u64) -> Option<u64> {
        let mut told = self.published.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = told.get(&(batch, at)).copied();
        if before.is_none() {
            told.insert((batch, at), number);
            if told.len() > TOLD {
                told.pop_first();
            }
        }
        before
    }

    /// Follows the changes of other processes, from the first question on, and says in `place` how far it has come.
    pub(crate) fn follow(self: &Arc<Self>, node: Arc<str>, number: Arc<Number>, place: Arc<AtomicU64>) -> Follower {
        let inbox = (0, BEGINNING.to_owned());
        Follower { store: self.clone(), node, number, link: None, last: None, place, inbox }
    }

    /// Returns the changes of all processes after this place, in order and each once, with their places; and the place of
    /// the last entry. [`Change::All`], if the log does not hold all of them any more.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn changes_after(self: &Arc<Self>, place: u64) -> Result<(Vec<(u64, Change)>, u64), Trouble> {
        let (key, after) = (self.key("changes", VERSION), unpacked(place));
        let mut pipe = Pipeline::with_capacity(3);
        pipe.cmd("XRANGE").arg(&key).arg(&after).arg(&after);
        pipe.cmd("XRANGE").arg(&key).arg(format!("({after}")).arg("+").arg("COUNT").arg(2 * LENGTH);
        pipe.cmd("XREVRANGE").arg(&key).arg("+").arg("-").arg("COUNT").arg(1);
        let outcome = self.ask::<(StreamRangeReply, StreamRangeReply, StreamRangeReply)>(&pipe).await;
        let (there, read, newest) = self.done(Work::Following, outcome)?;
        let last = |reply: &StreamRangeReply| reply.ids.last().map(|entry| packed(&entry.id));
        if place != 0 && there.ids.is_empty() {
            let last = last(&newest).unwrap_or(place);
            return Ok((vec![(last, Change::All)], last));
        }
        let mut seen = BTreeSet::new();
        let changes = read.ids.iter().filter_map(|entry| match heard(entry) {
            Some(Heard::Change(change)) => seen.insert(change.clone()).then(|| (packed(&entry.id), change)),
            _ => None,
        });
        let changes = changes.collect();
        Ok((changes, last(&read).unwrap_or(place)))
    }

    /// Time for which nobody is to ask, because the store does not answer.
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.health.wait()
    }
}

impl Follower {
    /// Goes to the end of the log, if it has no place in it yet.
    ///
    /// # Errors
    /// The store does not answer.
    pub(crate) async fn begin(&mut self) -> Result<(), Trouble> {
        if self.last.is_some() {
            return Ok(());
        }
        let outcome = self.place().await.map(drop).map_err(Trouble::from);
        self.judged(outcome)
    }

    /// Time for which the store is not to be asked.
    pub(crate) fn pause(&self) -> Duration {
        self.store.pause().unwrap_or_default()
    }

    /// Waits up to 5 s for news, and returns them in order, each with its place in the log of changes (0: none).
    ///
    /// # Errors
    /// The store does not answer. The place in the log stays.
    pub(crate) async fn next(&mut self) -> Result<Vec<(u64, Heard)>, Trouble> {
        let most = BLOCK + super::address::CONNECTING.max(self.store.deadline() * 5);
        let outcome = match tokio::time::timeout(most, self.read()).await {
            Ok(outcome) => outcome.map_err(Trouble::from),
            Err(_) => Err(Trouble::slow(most)),
        };
        self.judged(outcome)
    }

    fn judged<T>(&mut self, outcome: Result<T, Trouble>) -> Result<T, Trouble> {
        if outcome.is_err() {
            self.link = None;
        }
        self.store.health.answered(&self.store.address, outcome.as_ref().err());
        self.store.done(Work::Following, outcome)
    }

    async fn link(&mut self) -> RedisResult<&mut Link> {
        if self.link.is_none() {
            // It waits by itself: nothing else goes through it.
            self.link = Some(self.store.connect(Some(BLOCK + self.store.deadline() * 4)).await?);
        }
        self.link.as_mut().ok_or_else(|| (redis::ErrorKind::Io, "no connection").into())
    }

    async fn place(&mut self) -> RedisResult<String> {
        if let Some(last) = &self.last {
            return Ok(last.clone());
        }
        let last = self.newest().await?;
        self.place.store(packed(&last), Ordering::Release);
        self.last = Some(last.clone());
        Ok(last)
    }

    /// Returns the id of the newest entry.
    async fn newest(&mut self) -> RedisResult<String> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("XREVRANGE").arg(self.store.key("changes", VERSION)).arg("+").arg("-").arg("COUNT").arg(1);
        let (newest,): (StreamRangeReply,) = self.link().await?.ask(&pipe).await?;
        Ok(newest.ids.into_iter().next().map_or_else(|| BEGINNING.to_owned(), |entry| entry.id))
    }

    async fn read(&mut self) -> RedisResult<Vec<(u64, Heard)>> {
        let (last, key) = (self.place().await?, self.store.key("changes", VERSION));
        let mut pipe = Pipeline::with_capacity(3);
        let number = self.number.get();
        if number != self.inbox.0 {
            self.inbox = (number, BEGINNING.to_owned());
        }
        let inbox = (number > 0).then(|| self.store.inbox(number));
        if let Some(inbox) = &inbox {
            // Those that were read need no room any more.
            pipe.cmd("XTRIM").arg(inbox).arg("MINID").arg("=").arg(&self.inbox.1).ignore();
        }
        let block = u64::try_from(BLOCK.as_millis()).unwrap_or(u64::MAX);
        let read = pipe.cmd("XREAD").arg("COUNT").arg(READ).arg("BLOCK").arg(block).arg("STREAMS").arg(&key);
        match &inbox {
            Some(inbox) => read.arg(inbox).arg(&last).arg(&self.inbox.1),
            None => read.arg(&last),
        };
        // Asked after the other: is the entry still there, then nothing behind it was dropped.
        pipe.cmd("XRANGE").arg(&key).arg(&last).arg(&last);
        let (read, there): (Option<StreamReadReply>, StreamRangeReply) = self.link().await?.ask(&pipe).await?;
        let (mut entries, mut messages) = (Vec::new(), Vec::new());
        for read in read.into_iter().flat_map(|read| read.keys) {
            if read.key == key { entries = read.ids } else { messages = read.ids }
        }
        if let Some(entry) = messages.last() {
            self.inbox.1.clone_from(&entry.id);
        }
        let mut all = Vec::with_capacity(entries.len() + messages.len());
        if last != BEGINNING && there.ids.is_empty() {
            // Trimmed, flushed, or another store than before.
            let newest = self.newest().await?;
            all.push((packed(&newest), Heard::Missed));
            self.last = Some(newest);
        } else if let Some(entry) = entries.last() {
            self.last = Some(entry.id.clone());
            for entry in &entries {
                let is_own = entry.get::<String>("n").is_some_and(|node| *node == *self.node);
                let news = match heard(entry).filter(|_| !is_own) {
                    Some(Heard::Change(change)) => match self.known(entry) {
                        None => Heard::Change(change),
                        Some(0) => Heard::Nothing,
                        Some(number) => Heard::Again(change, number),
                    },
                    news => news.unwrap_or(Heard::Nothing),
                };
                all.push((packed(&entry.id), news));
            }
        }
        all.extend(messages.iter().filter_map(heard).map(|news| (0, news)));
        Ok(all)
    }
}

impl Follower {
    /// Returns what clients here know of a change of this process, as `Redis::tells`.
    fn known(&self, entry: &StreamId) -> Option<u64> {
        let by = entry.get::<String>("by")?;
        let (batch, at) = by.strip_prefix(&*self.node)?.strip_prefix(':')?.split_once(':')?;
        self.store.tells(batch.parse().ok()?, at.parse().ok()?, 0)
    }
}

/// Returns the news in an entry. An entry that a later release writes has none.
fn heard(entry: &StreamId) -> Option<Heard> {
    if let Some(session) = entry.get::<String>("session") {
        let text = |name| entry.get::<Vec<u8>>(name).map(Bytes::from);
        if let Some(text) = text("from") {
            return Some(Heard::FromClient { session, text });
        }
        if let Some(text) = text("to") {
            return Some(Heard::ToClient { session, text });
        }
        if let Some(text) = text("note") {
            return Some(Heard::Note { session, text });
        }
        return Some(Heard::Session(session));
    }
    if let Some(name) = entry.get("task") {
        let answers = entry.get::<Vec<u8>>("answers").map(Bytes::from);
        return Some(Heard::Task { name, answers });
    }
    if let Some(uri) = entry.get("resource") {
        return Some(Heard::Change(Change::Resource(uri)));
    }
    let change = entry.get("list").map(Change::List).or_else(|| entry.contains_key("all").then_some(Change::All));
    change.map(Heard::Change)
}
