//! The log of changes, which every process of a server writes and follows: a stream of bounded length.

use std::sync::Arc;
use std::time::Duration;

use redis::streams::{StreamId, StreamRangeReply, StreamReadReply};
use redis::{Pipeline, RedisResult};

use super::health::Work;
use super::link::Link;
use super::{Redis, Trouble};
use crate::store::Change;

const VERSION: u8 = 1;
/// Entries that the log keeps, about: what a process missed beyond these is told as "anything".
const LENGTH: usize = 1024;
/// Time after the last change for which the log lives, in milliseconds.
const LIVES: u64 = 7 * 24 * 60 * 60 * 1000;
/// Changes that are written or read at once.
pub(crate) const AT_ONCE: usize = 128;
/// Time for which one question waits for a change.
const BLOCK: Duration = Duration::from_secs(5);
/// The place before all entries.
const BEGINNING: &str = "0-0";

/// One process's place in the log.
pub(crate) struct Follower {
    store: Arc<Redis>,
    /// The process, whose own changes it knows.
    node: Arc<str>,
    link: Option<Link>,
    /// The id of the entry that was read last.
    last: Option<String>,
}

impl Redis {
    /// Tells all processes what has changed in this one, in one round trip.
    ///
    /// # Errors
    /// As `Redis::ask`. Some may have been written.
    pub(crate) async fn publish(self: &Arc<Self>, node: &str, changes: &[Change]) -> Result<(), Trouble> {
        let key = self.key("changes", VERSION);
        let mut pipe = Pipeline::with_capacity(changes.len() + 1);
        for change in changes {
            let (kind, name) = match change {
                Change::List(kind) => ("list", kind.as_str()),
                Change::Resource(uri) => ("resource", uri.as_str()),
                Change::All => ("all", ""),
            };
            let add = pipe.cmd("XADD").arg(&key).arg("MAXLEN").arg("~").arg(LENGTH).arg("*");
            add.arg("n").arg(node).arg(kind).arg(name).ignore();
        }
        pipe.cmd("PEXPIRE").arg(&key).arg(LIVES).ignore();
        let outcome = self.ask(&pipe).await;
        self.done(Work::Publishing, outcome)
    }

    /// Follows the changes of other processes, from the first question on.
    pub(crate) fn follow(self: &Arc<Self>, node: Arc<str>) -> Follower {
        Follower { store: self.clone(), node, link: None, last: None }
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

    /// Waits up to 5 s for changes of other processes, and returns them in order.
    ///
    /// # Errors
    /// The store does not answer. The place in the log stays.
    pub(crate) async fn next(&mut self) -> Result<Vec<Change>, Trouble> {
        let outcome = match tokio::time::timeout(BLOCK + super::address::CONNECTING, self.read()).await {
            Ok(outcome) => outcome.map_err(Trouble::from),
            Err(_) => Err(Trouble::slow()),
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
            self.link = Some(self.store.connect(BLOCK + super::DEADLINE * 4).await?);
        }
        self.link.as_mut().ok_or_else(|| (redis::ErrorKind::Io, "no connection").into())
    }

    async fn place(&mut self) -> RedisResult<String> {
        if let Some(last) = &self.last {
            return Ok(last.clone());
        }
        let last = self.newest().await?;
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

    async fn read(&mut self) -> RedisResult<Vec<Change>> {
        let (last, key) = (self.place().await?, self.store.key("changes", VERSION));
        let mut pipe = Pipeline::with_capacity(2);
        let block = u64::try_from(BLOCK.as_millis()).unwrap_or(u64::MAX);
        pipe.cmd("XREAD").arg("COUNT").arg(AT_ONCE).arg("BLOCK").arg(block).arg("STREAMS").arg(&key).arg(&last);
        // Asked after the other: is the entry still there, then nothing behind it was dropped.
        pipe.cmd("XRANGE").arg(&key).arg(&last).arg(&last);
        let (read, there): (Option<StreamReadReply>, StreamRangeReply) = self.link().await?.ask(&pipe).await?;
        let entries: Vec<StreamId> = read.into_iter().flat_map(|read| read.keys).flat_map(|key| key.ids).collect();
        if last != BEGINNING && there.ids.is_empty() {
            // Trimmed, flushed, or another store than before.
            self.last = Some(self.newest().await?);
            return Ok(vec![Change::All]);
        }
        if let Some(entry) = entries.last() {
            self.last = Some(entry.id.clone());
        }
        Ok(entries.iter().filter_map(|entry| self.change(entry)).collect())
    }

    /// Returns the change of an entry of another process. What a later release writes is skipped.
    fn change(&self, entry: &StreamId) -> Option<Change> {
        if entry.get::<String>("n").is_some_and(|node| *node == *self.node) {
            return None;
        }
        if let Some(uri) = entry.get("resource") {
            return Some(Change::Resource(uri));
        }
        entry.get("list").map(Change::List).or_else(|| entry.contains_key("all").then_some(Change::All))
    }
}
