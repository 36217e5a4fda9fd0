//! Redis or Valkey as the store that several processes share.
//!
//! **Invariant**: every question has a deadline, and nothing of the URL's login is in a message.

mod address;
mod bus;
pub(crate) mod documents;
mod health;
mod keys;
pub(crate) mod limits;
mod link;
pub(crate) mod nodes;
mod scripts;
pub(crate) mod sessions;
#[cfg(test)]
pub(crate) mod simulated;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod texts;

use std::sync::Arc;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use redis::{FromRedisValue, Pipeline, RedisResult};
use tokio::sync::{Mutex, OwnedMutexGuard};

pub(crate) use address::Address;
pub(crate) use bus::{AT_ONCE, Follower, Heard};
pub(crate) use health::Trouble;
use health::{Health, Ill, Work};
pub(crate) use keys::Sealed;
use link::Link;

use super::StoreOptions;
use crate::error::{Error, Result};

/// Time in which a question is answered, or fails.
pub(crate) const DEADLINE: Duration = Duration::from_millis(250);

/// Characters that stay in the name of a server that is a part of keys; braces would move the key's slot.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The longest name of a server in keys, in bytes.
const MAX_NAME: usize = 128;
/// Bytes of the beginning of a longer one, before its hash.
const BEGINNING: usize = 95;

/// The name of a server as keys have it. A long one is its beginning and a hash: `~` is in no other.
fn in_keys(server: &str) -> String {
    let mut name = utf8_percent_encode(server, KEPT).to_string();
    if name.len() > MAX_NAME {
        let whole = (BEGINNING - 2..BEGINNING).find(|at| name.as_bytes()[*at] == b'%').unwrap_or(BEGINNING);
        name.truncate(whole);
        name = format!("{name}~{}", sessions::hashed(server));
    }
    name
}

/// A store at an address, for one server.
pub(crate) struct Redis {
    address: Address,
    /// Begins every key: the prefix, and in braces the server's name, so that all of its keys are in one slot.
    prefix: String,
    /// The connection, made when it is needed.
    link: Arc<Mutex<Option<Link>>>,
    health: Health,
    published: bus::Published,
    /// Seals the keys of request states.
    secret: Option<Sealed>,
}

impl Redis {
    /// The store of the server called `server`. Connects when it is first asked.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a URL that is none.
    pub(crate) fn new(options: &StoreOptions, server: &str) -> Result<Self> {
        let address =
            options.address().map_err(|why| Error::misuse(format!("{}: \"url\": {why}", StoreOptions::option())))?;
        let prefix = format!("{}:{{{}}}", options.prefix, in_keys(server));
        let secret = options.secret.as_deref().map(Sealed::new);
        let (link, health, published) = (Arc::default(), Health::default(), bus::Published::default());
        Ok(Self { address, prefix, link, health, published, secret })
    }

    /// The key of this name. The number is the version of what is kept there, so that two releases can share a store.
    fn key(&self, name: &str, version: u8) -> String {
        format!("{}:{name}:{version}", self.prefix)
    }

    /// Asks the store, all commands at once.
    ///
    /// # Errors
    /// An error if there is no answer within [`DEADLINE`], or longer from a program's own store, or none that can be used; at once while it is known to be down.
    async fn ask<T: FromRedisValue>(self: &Arc<Self>, pipe: &Pipeline) -> Result<T, Trouble> {
        self.health.enter()?;
        let deadline = self.address.deadline();
        let asked = tokio::time::timeout(deadline, async { self.link().await?.ask(pipe).await });
        let outcome =
            asked.await.map_or_else(|_| Err(Trouble::slow(deadline)), |outcome| outcome.map_err(Trouble::from));
        self.health.answered(&self.address, outcome.as_ref().err());
        if outcome.as_ref().is_err_and(|trouble| trouble.ill == Ill::Down)
            && let Ok(mut link) = self.link.try_lock()
        {
            *link = None;
        }
        outcome
    }

    /// Time in which a question is answered, or fails.
    pub(crate) fn deadline(&self) -> Duration {
        self.address.deadline()
    }

    /// Returns the words for an operator about a question that was not answered.
    pub(crate) fn said(&self, trouble: &Trouble) -> String {
        format!("the store {}: {}", self.address, trouble.why)
    }

    /// A work ends, well or not.
    fn done<T>(&self, work: Work, outcome: Result<T, Trouble>) -> Result<T, Trouble> {
        self.health.done(&self.address, work, outcome.as_ref().err());
        outcome
    }

    /// Returns the connection. One that is made is made to its end, also when whoever wanted it has gone.
    async fn link(self: &Arc<Self>) -> RedisResult<Link> {
        let mut slot: OwnedMutexGuard<Option<Link>> = self.link.clone().lock_owned().await;
        if let Some(link) = &*slot {
            return Ok(link.clone());
        }
        let this = self.clone();
        let connecting = tokio::spawn(async move {
            // Each question has its deadline.
            let link = this.connect(None).await?;
            *slot = Some(link.clone());
            Ok(link)
        });
        connecting.await.unwrap_or_else(|_| Err((redis::ErrorKind::Io, "the runtime is gone").into()))
    }

    /// Makes a connection whose answers come in this time, if one is given.
    async fn connect(&self, answers: Option<Duration>) -> RedisResult<Link> {
        let limit = address::CONNECTING * 2;
        match tokio::time::timeout(limit, self.address.connect(answers)).await {
            Ok(outcome) => outcome,
            Err(_) => Err((redis::ErrorKind::Io, "it takes too long to connect").into()),
        }
    }
}
