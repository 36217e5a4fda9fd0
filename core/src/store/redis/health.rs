//! Health of a store: the breaker, and the line that says once that something is wrong.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use tokio::time::Instant;

use super::Address;
use super::documents::{OWN, REFUSED};
use crate::report;

/// Time after the first failure in which nobody asks again; it doubles with each one after.
const FIRST: Duration = Duration::from_millis(100);
/// The longest such time.
const LONGEST: Duration = Duration::from_secs(3);
/// Reasons of refusals that are remembered.
const REFUSALS: usize = 16;
/// Characters of each.
const REASON: usize = 500;

/// Kind of an illness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ill {
    /// It does not answer, or not for us: the breaker opens.
    Down,
    /// It has no room, or may not write.
    Full,
    /// It answers what it should not.
    Garbled,
}

/// Reason why the store gave no answer. Its text names the store, and is fit for an operator, not for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(super) ill: Ill,
    pub(super) why: String,
    /// A program's store has refused this question, and may answer the next.
    is_refusal: bool,
}

impl Trouble {
    pub(super) fn new(ill: Ill, why: impl Into<String>) -> Self {
        Self { ill, why: why.into(), is_refusal: false }
    }

    pub(super) fn garbled(why: impl Into<String>) -> Self {
        Self::new(Ill::Garbled, why)
    }

    pub(super) fn slow(deadline: Duration) -> Self {
        let why = format!("no answer within {} ms", deadline.as_millis());
        Self::new(Ill::Down, why)
    }
}

impl From<RedisError> for Trouble {
    fn from(error: RedisError) -> Self {
        let down = |why: &str| Self::new(Ill::Down, why);
        if error.is_timeout() {
            return Self::slow(super::DEADLINE);
        }
        // The first error of several commands that were sent at once.
        let first = error.clone().into_server_errors().and_then(|all| all.first().map(|(_, first)| first.clone()));
        let error = first.map_or(error, RedisError::from);
        match (error.kind(), error.code().unwrap_or_default()) {
            (_, "OOM" | "MISCONF" | "NOREPLICAS") => {
                let why = format!("it takes no more ({error}): give it memory or disk, or another maxmemory-policy");
                Self::new(Ill::Full, why)
            }
            (ErrorKind::AuthenticationFailed, _) | (_, "NOAUTH" | "WRONGPASS") => {
                down("it refuses the login: check the user and the password in the store's URL")
            }
            (ErrorKind::Server(ServerErrorKind::NoPerm), _) => {
                let why = format!("{error}: its ACL has to allow that command and the keys of the prefix");
                Self::new(Ill::Full, why)
            }
            (ErrorKind::Server(kind), _) => match kind {
                ServerErrorKind::BusyLoading
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::Moved
                | ServerErrorKind::Ask
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ReadOnly => Self::new(Ill::Down, error.to_string()),
                _ => Self::new(Ill::Garbled, error.to_string()),
            },
            (ErrorKind::UnexpectedReturnType, _) => {
                let text = error.to_string();
                // The description is a part of the text alone.
                let begins = |with| text.strip_prefix(with).is_some_and(|rest| rest.starts_with(" - "));
                match error.detail() {
                    Some(why) if begins(REFUSED) => {
                        Self { is_refusal: true, ..Self::garbled(format!("one question failed: {why}")) }
                    }
                    Some(why) if begins(OWN) => Self::garbled(why),
                    _ => Self::garbled(text),
                }
            }
            (ErrorKind::Parse, _) => down("what answers is no Redis or Valkey: check the store's URL"),
            // An extension's code, such as WRONGTYPE.
            (ErrorKind::Extension, _) => Self::new(Ill::Garbled, error.to_string()),
            _ => Self::new(Ill::Down, error.to_string()),
        }
    }
}

/// Something that is done with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Keys,
    Publishing,
    Following,
    Sessions,
    Tasks,
    Limits,
    Texts,
}

/// See the module.
#[derive(Default)]
pub(super) struct Health(Mutex<State>);

#[derive(Default)]
struct State {
    failures: u32,
    until: Option<Instant>,
    /// It was said that it does not answer.
    is_down: bool,
    /// The last line about each work that cannot be done, though it answers.
    said: [Option<Ill>; 7],
    /// The last reasons of refusals that were said, oldest first, and the time of the last line.
    refusals: VecDeque<String>,
    refused: Option<Instant>,
}

impl State {
    /// Says whether a refusal with this reason is to be said: each is once, and a reason may have a number in it that is
    /// always another.
    fn is_new(&mut self, why: &str) -> bool {
        let (now, why) = (Instant::now(), why.chars().take(REASON).collect::<String>());
        let is_soon = self.refused.is_some_and(|last| now.saturating_duration_since(last) < LONGEST);
        if is_soon || self.refusals.iter().any(|said| *said == why) {
            return false;
        }
        if self.refusals.len() == REFUSALS {
            self.refusals.pop_front();
        }
        self.refusals.push_back(why);
        self.refused = Some(now);
        true
    }
}

impl Health {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time for which nobody is to ask.
    pub(super) fn wait(&self) -> Option<Duration> {
        let until = self.lock().until?;
        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Says whether the store may be asked. Once its time is over, one that asks goes ahead of all others.
    ///
    /// # Errors
    /// While the breaker is open.
    pub(super) fn enter(&self) -> Result<(), Trouble> {
        let mut state = self.lock();
        let Some(until) = state.until else { return Ok(()) };
        if Instant::now() < until {
            return Err(Trouble::new(Ill::Down, "it did not answer a moment ago"));
        }
        // Those that come while this one asks are turned away.
        state.until = Some(Instant::now() + super::DEADLINE);
        Ok(())
    }

    /// It answered, or did not.
    pub(super) fn answered(&self, address: &Address, trouble: Option<&Trouble>) {
        let mut state = self.lock();
        let Some(trouble) = trouble.filter(|trouble| trouble.ill == Ill::Down) else {
            (state.failures, state.until) = (0, None);
            let was_down = std::mem::take(&mut state.is_down);
            drop(state);
            if was_down {
                report::say(format_args!("the store {address} answers again"));
            }
            return;
        };
        let pause = FIRST.saturating_mul(1 << state.failures.min(8)).min(LONGEST);
        state.failures = state.failures.saturating_add(1);
        state.until = Some(Instant::now() + pause);
        let is_new = !std::mem::replace(&mut state.is_down, true);
        drop(state);
        if is_new {
            report::say(format_args!(
                "the store {address}: {}; what needs no store goes on, and the store is tried again",
                trouble.why
            ));
        }
    }

    /// A work was done, or could not be though the store answered.
    pub(super) fn done(&self, address: &Address, work: Work, trouble: Option<&Trouble>) {
        if let Some(trouble) = trouble.filter(|trouble| trouble.is_refusal) {
            let is_new = self.lock().is_new(&trouble.why);
            if is_new {
                report::say(format_args!("the store {address}: {}; others are asked as before", trouble.why));
            }
            return;
        }
        let ill = match trouble {
            Some(trouble) if trouble.ill == Ill::Down => return,
            Some(trouble) => Some(trouble.ill),
            None => None,
        };
        let before = std::mem::replace(&mut self.lock().said[work as usize], ill);
        match trouble.filter(|_| ill != before) {
            Some(trouble) => report::say(format_args!(
                "the store {address}: {}; what needs no store goes on, and the store is tried again",
                trouble.why
            )),
            None if before.is_some() && ill.is_none() => {
                report::say(format_args!("the store {address} does its work again"));
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_breaker_opens_longer_each_time_and_lets_one_try() {
        let (health, address) = (Health::default(), Address::parse("redis://h").expect("a URL"));
        assert!(health.enter().is_ok() && health.wait().is_none());
        for _ in 0..20 {
            health.answered(&address, Some(&Trouble::slow(super::super::DEADLINE)));
            assert!(health.wait().is_some_and(|left| left <= LONGEST));
        }
        assert!(health.enter().is_err());
        health.lock().until = Some(Instant::now());
        assert!(health.enter().is_ok(), "one tries");
        assert!(health.enter().is_err(), "and no other meanwhile");
        health.answered(&address, None);
        assert!(health.enter().is_ok() && health.enter().is_ok());
        health.answered(&address, Some(&Trouble::new(Ill::Full, "full")));
        assert!(health.enter().is_ok(), "one that is full can be read");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_said_once_for_each_reason_and_not_all_the_time() {
        let refusal =
            |why: &str| Trouble::from(RedisError::from((ErrorKind::UnexpectedReturnType, REFUSED, why.into())));
        assert_eq!((refusal("long").ill, &*refusal("long").why), (Ill::Garbled, "one question failed: long"));
        let (health, address) = (Health::default(), Address::parse("redis://h").expect("a URL"));
        let said = |why: &str| {
            let (trouble, before) = (refusal(why), health.lock().refused);
            health.answered(&address, Some(&trouble));
            health.done(&address, Work::Sessions, Some(&trouble));
            health.done(&address, Work::Sessions, None);
            assert!(health.enter().is_ok() && health.lock().said == [None; 7]);
            health.lock().refused != before
        };
        assert!(said("long"));
        assert!(!said("long") && !said("odd"), "too soon");
        tokio::time::advance(LONGEST).await;
        assert!(!said("long") && said("odd"));
        for at in 0..REFUSALS {
            tokio::time::advance(LONGEST).await;
            assert!(said(&format!("{at}")));
        }
        assert_eq!(health.lock().refusals.len(), REFUSALS);
    }
}
