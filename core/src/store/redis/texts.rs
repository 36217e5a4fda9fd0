//! Texts of clients: answers that they share, and logins.

use std::sync::Arc;
use std::time::Duration;

use redis::Pipeline;

use super::health::Work;
use super::{Redis, Trouble};

const VERSION: u8 = 1;
/// Time for which a login is kept after it was last used, in milliseconds: half a year.
const LOGIN_LIVES: u64 = 180 * 24 * 60 * 60 * 1000;
/// Time for which a turn lasts after its owner was last heard of, in milliseconds.
const TURN_LIVES: u64 = 30_000;
/// Time between two words of the owner of a turn.
pub(crate) const TURN_KEPT: Duration = Duration::from_secs(8);

/// Gives a turn to whoever is the first.
const TAKE: &str = "local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1";

/// Keeps a turn that was not lost. Writes, so that a store without room says so.
const KEEP: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1";

/// Changes a login, if that is the turn of whoever does.
const CHANGE: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[3] then
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
else
  redis.call('HDEL', KEYS[2], ARGV[2])
end
return 1";

const GIVE_BACK: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0";

/// Answers.
impl Redis {
    fn answer(&self, key: &str) -> String {
        self.key(&format!("answer:{key}"), VERSION)
    }

    /// Returns the texts under these keys.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn texts(self: &Arc<Self>, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, Trouble> {
        let keys: Vec<_> = keys.iter().map(|key| self.answer(key)).collect();
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("MGET").arg(keys);
        let outcome = self.ask::<(Vec<Option<Vec<u8>>>,)>(&pipe).await;
        self.done(Work::Texts, outcome).map(|(texts,)| texts)
    }

    /// Keeps a text for this time.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn put_text(self: &Arc<Self>, key: &str, text: &str, ttl: Duration) -> Result<(), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).clamp(1, 1 << 45);
        pipe.cmd("SET").arg(self.answer(key)).arg(text).arg("PX").arg(ttl).ignore();
        let outcome = self.ask::<()>(&pipe).await;
        self.done(Work::Texts, outcome)
    }

    /// Keeps nothing under this key.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn drop_text(self: &Arc<Self>, key: &str) -> Result<(), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("DEL").arg(self.answer(key)).ignore();
        let outcome = self.ask::<()>(&pipe).await;
        self.done(Work::Texts, outcome)
    }
}

/// Logins: a hash for each server, with a field for each issuer.
impl Redis {
    fn logins(&self, server: &str) -> String {
        self.key(&format!("logins:{server}"), VERSION)
    }

    fn turn(&self, login: &str) -> String {
        self.key(&format!("turn:{login}"), VERSION)
    }

    /// Returns all logins at a server.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn find_logins(self: &Arc<Self>, server: &str) -> Result<Vec<Vec<u8>>, Trouble> {
        let key = self.logins(server);
        let mut pipe = Pipeline::with_capacity(2);
        pipe.cmd("HVALS").arg(&key).cmd("PEXPIRE").arg(&key).arg(LOGIN_LIVES).ignore();
        let outcome = self.ask::<(Vec<Vec<u8>>,)>(&pipe).await;
        self.done(Work::Texts, outcome).map(|(found,)| found)
    }

    /// Returns the login at a server that this issuer gave.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn load_login(self: &Arc<Self>, server: &str, issuer: &str) -> Result<Option<Vec<u8>>, Trouble> {
        let key = self.logins(server);
        let mut pipe = Pipeline::with_capacity(2);
        pipe.cmd("HGET").arg(&key).arg(issuer).cmd("PEXPIRE").arg(&key).arg(LOGIN_LIVES).ignore();
        let outcome = self.ask::<(Option<Vec<u8>>,)>(&pipe).await;
        self.done(Work::Texts, outcome).map(|(found,)| found)
    }

    /// Changes or, without a text, removes a login. `false`: it is somebody else's turn.
    ///
    /// # Errors
    /// As `Redis::ask`. It may have been changed.
    pub(crate) async fn change_login(
        self: &Arc<Self>,
        (server, issuer): (&str, &str),
        (login, owner): (&str, &str),
        text: Option<&str>,
    ) -> Result<bool, Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        let change = pipe.cmd("EVAL").arg(CHANGE).arg(2).arg(self.turn(login)).arg(self.logins(server));
        change.arg(owner).arg(issuer);
        if let Some(text) = text {
            change.arg(text).arg(LOGIN_LIVES);
        }
        let outcome = self.ask::<(bool,)>(&pipe).await;
        self.done(Work::Texts, outcome).map(|(is_done,)| is_done)
    }

    /// Takes the turn to change a login. `false`: it is somebody else's.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn take_turn(self: &Arc<Self>, login: &str, owner: &str) -> Result<bool, Trouble> {
        self.turns(TAKE, login, owner).await
    }

    /// Keeps the turn. `false`: it was lost.
    ///
    /// # Errors
    /// As `Redis::ask`.
    pub(crate) async fn keep_turn(self: &Arc<Self>, login: &str, owner: &str) -> Result<bool, Trouble> {
        self.turns(KEEP, login, owner).await
    }

    async fn turns(self: &Arc<Self>, script: &str, login: &str, owner: &str) -> Result<bool, Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("EVAL").arg(script).arg(1).arg(self.turn(login)).arg(owner).arg(TURN_LIVES);
        let outcome = self.ask::<(bool,)>(&pipe).await;
        self.done(Work::Texts, outcome).map(|(is_taken,)| is_taken)
    }

    /// Ends a turn.
    ///
    /// # Errors
    /// As `Redis::ask`. It ends half a minute later.
    pub(crate) async fn end_turn(self: &Arc<Self>, login: &str, owner: &str) -> Result<(), Trouble> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.cmd("EVAL").arg(GIVE_BACK).arg(1).arg(self.turn(login)).arg(owner).ignore();
        let outcome = self.ask::<()>(&pipe).await;
        self.done(Work::Texts, outcome)
    }
}
