//! Processes by number, and their inboxes: a question to a client carries the number of the process that asks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redis::Pipeline;
use tokio::time::Instant;

use super::health::Work;
use super::scripts::nodes::{IS_PAIR, LEAVE, SEND, TAKE};
use super::{Redis, Trouble};

const VERSION: u8 = 1;
/// Bits of a number that is counted within one process. Ids of requests stay below 2^31, which every client can read.
pub(crate) const BITS: u32 = 20;
/// The greatest number of a process.
const MAX: u32 = (1 << (31 - BITS)) - 1;
/// Time for which a process has its number after it was last heard of, in milliseconds.
const LIVES: u64 = 30_000;
/// Time between two signs of life, in milliseconds.
pub(crate) const BEAT: u64 = 8_000;
/// Messages in an inbox, at most.
const LENGTH: usize = 1024;
/// Bytes of them, about: long ones are fewer.
const BYTES: usize = 64 << 20;
/// Messages in an inbox, however long they are.
const LEAST: usize = 16;
/// Time after the last message for which an inbox lives, in milliseconds.
pub(super) const INBOX_LIVES: u64 = 60_000;

/// Bytes for processes that do not seem to be there, in all, in about a minute.
const ABSENT: usize = 8 << 20;

/// Numbers that are tried before it is done again later: one may be free.
const ATTEMPTS: usize = 64;

/// Number of this process. 0: it has none.
#[derive(Debug, Default)]
pub(crate) struct Number {
    number: AtomicU32,
    /// Time until which nobody else can have it.
    until: Mutex<Option<Instant>>,
    /// Number of times that it was taken anew.
    takes: AtomicU32,
}

impl Number {
    pub(crate) fn get(&self) -> u32 {
        self.number.load(Ordering::Acquire)
    }

    /// Returns true if nobody can take this process for one that has ended.
    pub(crate) fn is_sure(&self) -> bool {
        self.until.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| Instant::now() < until)
    }

    /// Returns the number of times that it was taken anew: in between others may have taken this process for gone.
    pub(crate) fn takes(&self) -> u32 {
        self.takes.load(Ordering::Acquire)
    }

    /// Returns the number of the process that gave a request this id. 0: none.
    pub(crate) fn of(id: i64) -> u32 {
        u32::try_from(id >> BITS).unwrap_or(0)
    }
}

impl Redis {
    pub(super) fn inbox(&self, number: u32) -> String {
        self.key(&format!("inbox:{number}"), VERSION)
    }

    pub(super) fn node(&self, number: u32) -> String {
        self.key(&format!("node:{number}"), VERSION)
    }

    /// Keeps the number of the process `id`, or finds it another that nobody has. `true`: it did not have it a moment
    /// before.
    ///
    /// # Errors
    /// As `Redis::ask`; no randomness.
    pub(crate) async fn keep_number(self: &Arc<Self>, id: &str, number: &Number) -> Result<bool, Trouble> {
        let outcome = self.numbered(id, number).await;
        self.done(Work::Sessions, outcome)
    }

    async fn numbered(self: &Arc<Self>, id: &str, number: &Number) -> Result<bool, Trouble> {
        let mut wanted = number.get();
        for _ in 0..ATTEMPTS {
            if wanted == 0 {
                let mut bytes = [0; 4];
                crate::random::fill(&mut bytes).map_err(|e| Trouble::garbled(e.message()))?;
                wanted = 1 + u32::from_le_bytes(bytes) % MAX;
            }
            let mut pipe = Pipeline::with_capacity(1);
            pipe.cmd("EVAL").arg(TAKE).arg(1).arg(self.node(wanted)).arg(id).arg(LIVES);
            let begun = Instant::now();
            let (taken,): (u8,) = self.ask(&pipe).await?;
            if taken > 0 {
                number.number.store(wanted, Ordering::Release);
                if taken == 2 {
                    number.takes.fetch_add(1, Ordering::AcqRel);
                }
                let until = begun + Duration::from_millis(LIVES);
                *number.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
                return Ok(taken == 2);
            }
            wanted = 0;
        }
        Err(Trouble::garbled("other processes have all the numbers that were tried"))
    }

    /// The process ends: its number is free.
    pub(crate) async fn leave_number(self: &Arc<Self>, id: &str, number: &Number) {
        let number = number.number.swap(0, Ordering::AcqRel);
        if number > 0 {
            let mut pipe = Pipeline::with_capacity(1);
            pipe.cmd("EVAL").arg(LEAVE).arg(2).arg(self.node(number)).arg(self.inbox(number)).arg(id).ignore();
            // It is free after half a minute anyway.
            let _: Result<(), Trouble> = self.ask(&pipe).await;
        }
    }

    /// Sends a message of a session's client to the process with this number, also if it does not seem to be there: a store
    /// that was emptied does not know it for a while, and the message cannot be sent again.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn post(self: &Arc<Self>, number: u32, session: &str, text: &Bytes) -> Result<Posted, Trouble> {
        self.send(number, session, ("from", text), room(text), false).await
    }

    /// Sends a note about the stream of an answer to the process with this number. The other half of its inbox is left to
    /// what cannot be sent again.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn note(self: &Arc<Self>, number: u32, session: &str, text: &Bytes) -> Result<Posted, Trouble> {
        self.send(number, session, ("note", text), room(text) / 2, true).await
    }

    async fn send(
        self: &Arc<Self>,
        number: u32,
        session: &str,
        (kind, text): (&str, &Bytes),
        room: usize,
        is_there: bool,
    ) -> Result<Posted, Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let send = pipe.cmd("EVAL").arg(SEND).arg(3).arg(self.node(number)).arg(self.inbox(number));
        send.arg(self.key("absent", VERSION)).arg(room).arg(INBOX_LIVES).arg(session).arg(&text[..]).arg(kind);
        send.arg(u8::from(is_there)).arg(ABSENT);
        let outcome = self.ask::<(u8,)>(&pipe).await;
        let (sent,) = self.done(Work::Sessions, outcome)?;
        Ok(match sent {
            0 => Posted::Nobody,
            1 => Posted::Sent,
            _ => Posted::Full,
        })
    }
}

/// Clients of HTTP+SSE: their streams, which other processes pass messages on to.
impl Redis {
    /// These streams, each with its owner, are here, for as long as `idle` milliseconds.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn keep_pairs(self: &Arc<Self>, pairs: &[(Arc<str>, String)], idle: u64) -> Result<(), Trouble> {
        for some in pairs.chunks(256) {
            let mut pipe = Pipeline::with_capacity(2 * some.len());
            for (pair, owner) in some {
                let key = self.session_of(pair);
                pipe.cmd("HSET").arg(&key).arg("o").arg(owner).ignore().cmd("PEXPIRE").arg(&key).arg(idle).ignore();
            }
            let outcome = self.ask::<()>(&pipe).await;
            self.done(Work::Sessions, outcome)?;
        }
        Ok(())
    }

    /// A stream has ended.
    ///
    /// # Errors
    /// As `Redis::ask`. It is forgotten later.
    pub(crate) async fn drop_pair(self: &Arc<Self>, pair: &str) -> Result<(), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("DEL").arg(self.session_of(pair)).ignore();
        let outcome = self.ask::<()>(&pipe).await;
        self.done(Work::Sessions, outcome)
    }

    /// Passes a message of this owner on to the process with this number, which has the stream.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn post_to_pair(
        self: &Arc<Self>,
        number: u32,
        pair: &str,
        owner: &str,
        text: &Bytes,
    ) -> Result<Posted, Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let send = pipe.cmd("EVAL").arg(format!("{IS_PAIR}{SEND}")).arg(4).arg(self.node(number));
        send.arg(self.inbox(number)).arg(self.key("absent", VERSION)).arg(self.session_of(pair)).arg(room(text));
        send.arg(INBOX_LIVES).arg(pair).arg(&text[..]).arg("from").arg(1).arg(ABSENT).arg(owner);
        let outcome = self.ask::<(u8,)>(&pipe).await;
        let (sent,) = self.done(Work::Sessions, outcome)?;
        Ok(match sent {
            0 | 3 => Posted::Nobody,
            1 => Posted::Sent,
            _ => Posted::Full,
        })
    }
}

/// Fate of a message to another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Posted {
    Sent,
    /// The process is not there.
    Nobody,
    /// It does not read what it has.
    Full,
}

/// The most messages that may be in an inbox when this one comes.
pub(super) fn room(text: &Bytes) -> usize {
    room_for(text.len())
}

/// As [`room`], for one of this length.
pub(super) fn room_for(length: usize) -> usize {
    (BYTES / length.max(1)).clamp(LEAST, LENGTH)
}

/// The end of the keys of processes and their inboxes.
pub(super) fn suffix() -> String {
    format!(":{VERSION}")
}
