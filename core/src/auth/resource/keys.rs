//! The keys that an issuer signs with, as this server knows them: fetched when there are none, when a token is signed with one
//! that is not among them, and when they are old. The time is whatever clock the caller has, and never goes back.

use std::sync::Arc;
use std::time::Duration;

/// Keys that are older are fetched again; until that succeeds they are used.
const OLD: Duration = Duration::from_secs(60 * 60);
/// Keys that are older are not used: the issuer may have taken one back long ago.
const TOO_OLD: Duration = Duration::from_secs(24 * 60 * 60);
/// The least time between two fetches of others while there are keys, and between two for keys that are not there, so
/// that tokens with made-up names of keys cost nothing.
const PAUSE: Duration = Duration::from_secs(30);
/// The least time between two fetches while there are none.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The keys so far.
#[derive(Debug)]
pub(crate) struct Keys<K> {
    known: Option<(Arc<K>, Duration)>,
    /// Time of the end of the last fetch, whatever became of it.
    tried: Option<Duration>,
    /// Time of the end of the last fetch for a key that was not there.
    missed: Option<Duration>,
    failed: bool,
    /// Their address, once that is known.
    pub(crate) uri: Option<String>,
}

/// Keys for a token, or the step that gets them.
#[derive(Debug)]
pub(crate) enum Look<K> {
    /// These are good.
    Use(Arc<K>),
    /// These are old: they will do while others are fetched.
    Renew(Arc<K>),
    /// Nothing goes without a fetch.
    Fetch,
    /// There are none, and it is not long since that was found out.
    Down,
}

impl<K> Default for Keys<K> {
    fn default() -> Self {
        Self { known: None, tried: None, missed: None, failed: false, uri: None }
    }
}

impl<K> Keys<K> {
    /// Returns the keys to use. `lacking` are those that do not have what a token needs.
    pub(crate) fn look(&self, now: Duration, lacking: Option<&Arc<K>>) -> Look<K> {
        let since = |time: Duration| now.saturating_sub(time);
        let may = |last: Option<Duration>, pause: Duration| last.is_none_or(|last| since(last) >= pause);
        match &self.known {
            Some((keys, fetched)) if since(*fetched) < TOO_OLD => {
                let lacks = lacking.is_some_and(|lacking| Arc::ptr_eq(lacking, keys));
                if lacks && may(self.missed, PAUSE) {
                    Look::Fetch
                } else if since(*fetched) >= OLD && may(self.tried, PAUSE) {
                    Look::Renew(keys.clone())
                } else {
                    Look::Use(keys.clone())
                }
            }
            _ if may(self.tried, FIRST_PAUSE) => Look::Fetch,
            _ => Look::Down,
        }
    }

    /// Returns true if the last fetch brought nothing: there may be keys that nobody here knows.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// A fetch has ended; `missed`: it was for a key that was not there.
    pub(crate) fn fetched(&mut self, now: Duration, keys: Option<K>, missed: bool) {
        if missed {
            self.missed = Some(now);
        }
        (self.tried, self.failed) = (Some(now), keys.is_none());
        match keys {
            Some(keys) => self.known = Some((Arc::new(keys), now)),
            // They may have moved.
            None => self.uri = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn used(look: &Look<u8>) -> Option<u8> {
        match look {
            Look::Use(keys) => Some(**keys),
            _ => None,
        }
    }

    #[test]
    fn keys_are_fetched_when_there_are_none() {
        let mut keys = Keys::default();
        assert!(matches!(keys.look(at(0), None), Look::Fetch));
        keys.fetched(at(1), None, false);
        assert!(matches!(keys.look(at(5), None), Look::Down) && keys.has_failed());
        assert!(matches!(keys.look(at(6), None), Look::Fetch));
        keys.fetched(at(7), Some(1), false);
        assert_eq!(used(&keys.look(at(7), None)), Some(1));
    }

    #[test]
    fn an_unknown_key_is_looked_for_now_and_then() {
        let mut keys = Keys::default();
        keys.fetched(at(0), Some(1), false);
        let Look::Use(first) = keys.look(at(1), None) else { panic!("there are keys") };
        assert!(matches!(keys.look(at(1), Some(&first)), Look::Fetch));
        keys.fetched(at(1), Some(2), true);
        // Those who waited for the same fetch see other keys than those that lack theirs.
        assert_eq!(used(&keys.look(at(1), Some(&first))), Some(2));
        let Look::Use(second) = keys.look(at(1), None) else { panic!("there are keys") };
        assert_eq!(used(&keys.look(at(30), Some(&second))), Some(2));
        assert!(matches!(keys.look(at(31), Some(&second)), Look::Fetch));
        keys.fetched(at(32), None, true);
        assert_eq!(used(&keys.look(at(61), Some(&second))), Some(2));
    }

    #[test]
    fn old_keys_are_used_while_there_are_no_others() {
        let mut keys = Keys { uri: Some("https://as/jwks".into()), ..Keys::default() };
        keys.fetched(at(0), Some(1), false);
        assert!(keys.uri.is_some());
        assert_eq!(used(&keys.look(at(3599), None)), Some(1));
        assert!(matches!(keys.look(at(3600), None), Look::Renew(_)));
        keys.fetched(at(3600), None, false);
        assert!(keys.uri.is_none());
        assert_eq!(used(&keys.look(at(3629), None)), Some(1));
        assert!(matches!(keys.look(at(3630), None), Look::Renew(_)));
        assert!(matches!(keys.look(at(86_399), None), Look::Renew(_)));
        assert!(matches!(keys.look(at(86_400), None), Look::Fetch));
    }
}
