//! Limits that all processes of a server count together.

use std::sync::Arc;
use std::time::Duration;

use redis::Pipeline;

use super::health::Work;
use super::sessions::hashed;
use super::{Redis, Trouble};

const VERSION: u8 = 1;
/// Time for which a request that runs is counted after its process was last heard of, in milliseconds.
const LIVES: u64 = 30_000;
/// Time between two words that requests still run.
pub(crate) const RENEWED: Duration = Duration::from_secs(8);

/// Clients that a rate counts apart; when more are active at once, the rest share one count.
const CLIENTS: usize = 10_000;

/// Lets a request through, or gives the time to wait, in microseconds: the generic cell rate algorithm, by the store's
/// clock. A time further away than the rate allows was written by a clock that was ahead.
pub(super) const RATE: &str = "local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local apart, room, client = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEYS[1], client) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then client = '' end
local due = math.max(tonumber(redis.call('ZSCORE', KEYS[1], client) or '0'), now)
due = math.min(due, now + room + apart)
if due - now > room then return due - now - room end
redis.call('ZADD', KEYS[1], string.format('%.0f', due + apart), client)
redis.call('PEXPIRE', KEYS[1], math.ceil((room + apart) / 1000))
return 0";

/// Time for which one that waits keeps its place after it has looked, in milliseconds.
const WAITS: u64 = 1000;

/// Counts a request that runs, if there is room for it and for those that have waited for longer in other processes. With a
/// `1` it waits from now on.
pub(super) const ENTER: &str = "local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
for _, gone in ipairs(redis.call('ZRANGE', KEYS[3], '-inf', now, 'BYSCORE')) do
  redis.call('ZREM', KEYS[2], gone)
  redis.call('ZREM', KEYS[3], gone)
end
local before = redis.call('ZRANK', KEYS[2], ARGV[3]) or redis.call('ZCARD', KEYS[2])
if tonumber(ARGV[1]) - redis.call('ZCARD', KEYS[1]) > before then
  redis.call('ZREM', KEYS[2], ARGV[3])
  redis.call('ZREM', KEYS[3], ARGV[3])
  redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
if ARGV[4] == '1' then
  redis.call('ZADD', KEYS[2], 'NX', now, ARGV[3])
  redis.call('ZADD', KEYS[3], now + ARGV[5], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
  redis.call('PEXPIRE', KEYS[3], ARGV[5])
end
return 0";

/// Counts a request no more, nor that it waits.
pub(super) const LEAVE: &str = "for i = 1, 3 do redis.call('ZREM', KEYS[i], ARGV[1]) end
return 1";

/// Counts requests that run for longer, also those that the store has lost.
pub(super) const RENEW: &str = "local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1";

impl Redis {
    /// Counts a request of this client. Returns the time after which it may come again, if it is one too many.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn rate(
        self: &Arc<Self>,
        limit: &str,
        client: &str,
        apart: Duration,
        burst: u32,
    ) -> Result<Option<Duration>, Trouble> {
        let client = if client.is_empty() { String::new() } else { hashed(client) };
        let apart = u64::try_from(apart.as_micros()).unwrap_or(u64::MAX).clamp(1, 1 << 48);
        let room = apart.saturating_mul(u64::from(burst.saturating_sub(1))).min(1 << 50);
        let mut pipe = Pipeline::with_capacity(1);
        let key = self.key(&format!("rate:{limit}"), VERSION);
        pipe.cmd("EVAL").arg(RATE).arg(1).arg(key).arg(apart).arg(room).arg(client).arg(CLIENTS);
        let outcome = self.ask::<(u64,)>(&pipe).await;
        let (wait,) = self.done(Work::Limits, outcome)?;
        Ok((wait > 0).then(|| Duration::from_micros(wait)))
    }

    /// Counts a request that is about to run, if fewer than `most` do. `waits`: it takes its turn among those of other
    /// processes that wait.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        limit: &str,
        most: usize,
        request: &str,
        waits: bool,
    ) -> Result<bool, Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let enter = pipe.cmd("EVAL").arg(ENTER).arg(3).arg(&self.running(limit)[..]);
        enter.arg(most).arg(LIVES).arg(request).arg(u8::from(waits)).arg(WAITS);
        let outcome = self.ask::<(bool,)>(&pipe).await;
        self.done(Work::Limits, outcome).map(|(is_in,)| is_in)
    }

    /// These requests still run.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn renew(self: &Arc<Self>, limit: &str, requests: &[String]) -> Result<(), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("EVAL").arg(RENEW).arg(1).arg(&self.running(limit)[0]).arg(LIVES).arg(requests).ignore();
        let outcome = self.ask::<()>(&pipe).await;
        self.done(Work::Limits, outcome)
    }

    /// A request runs no more.
    ///
    /// # Errors
    /// As `Redis::ask`. It is counted for half a minute more.
    pub(crate) async fn leave(self: &Arc<Self>, limit: &str, request: &str) -> Result<(), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("EVAL").arg(LEAVE).arg(3).arg(&self.running(limit)[..]).arg(request).ignore();
        let outcome = self.ask::<()>(&pipe).await;
        self.done(Work::Limits, outcome)
    }

    /// The keys of those that run, of those that wait, and of the times at which they have looked.
    fn running(&self, limit: &str) -> [String; 3] {
        ["running", "waiting", "looked"].map(|kind| self.key(&format!("{kind}:{limit}"), VERSION))
    }
}
