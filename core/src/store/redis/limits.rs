//! Limits that all processes of a server count together.

use std::sync::Arc;
use std::time::Duration;

use redis::Pipeline;

use super::health::Work;
use super::scripts::limits::{ENTER, LEAVE, RATE, RENEW};
use super::sessions::hashed;
use super::{Redis, Trouble};

const VERSION: u8 = 1;
/// Time for which a request that runs is counted after its process was last heard of, in milliseconds.
const LIVES: u64 = 30_000;
/// Time between two words that requests still run.
pub(crate) const RENEWED: Duration = Duration::from_secs(8);

/// Clients that a rate counts apart; when more are active at once, the rest share one count.
const CLIENTS: usize = 10_000;

/// Time for which one that waits keeps its place after it has looked, in milliseconds.
const WAITS: u64 = 1000;

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
