//! The keys that seal request states, one after the other in time.
//!
//! A key is made some time before it seals, so that all processes know it by then, and stays for as long as something
//! that it sealed may come back. Times are those of the store's clock, in milliseconds since 1970.

use serde::{Deserialize, Serialize};

use crate::error::Result;

/// Time between two looks at the store.
pub(crate) const REFRESH: u64 = 60 * 1000;
/// Time for which a key is known before it seals: several looks.
const AHEAD: u64 = 5 * REFRESH;
/// The least time for which a key seals.
const ROTATION: u64 = 24 * 60 * 60 * 1000;
/// The most keys of a ring.
const MAX_KEYS: usize = 8;

/// One key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RingKey {
    /// Time from which it seals.
    at: u64,
    /// The secret, 32 bytes in Base64.
    #[serde(rename = "k")]
    secret: String,
}

/// The keys of a server, the oldest first.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ring(Vec<RingKey>);

impl Ring {
    /// Returns the keys of both.
    pub(crate) fn with(&self, other: &Self) -> Self {
        let mut all = self.0.clone();
        all.extend(other.0.iter().filter(|key| self.0.iter().all(|own| own.secret != key.secret)).cloned());
        all.sort_by(|a, b| (a.at, &a.secret).cmp(&(b.at, &b.secret)));
        let spare = all.len().saturating_sub(MAX_KEYS);
        Self(all.split_off(spare))
    }

    /// Returns the ring as it has to be now. What a key has sealed lives for `ttl` milliseconds at most.
    ///
    /// # Errors
    /// An error if `fresh` makes no key.
    pub(crate) fn at(&self, now: u64, ttl: u64, fresh: impl FnOnce() -> Result<String>) -> Result<Self> {
        let mut keys = self.0.clone();
        let rotation = ROTATION.max(ttl.saturating_mul(2));
        // A key that seals in a time that is far away was made by a clock that was wrong.
        keys.retain(|key| key.at <= now.saturating_add(AHEAD + rotation));
        // A clock that was set back: what seals is always there.
        match keys.last() {
            Some(newest) if newest.at.saturating_add(rotation) > now.saturating_add(AHEAD) => {}
            Some(_) => keys.push(RingKey { at: now.saturating_add(AHEAD), secret: fresh()? }),
            None => keys.push(RingKey { at: now, secret: fresh()? }),
        }
        // A state that was sealed at its last moment, by a clock that was a look behind, has expired.
        let gone = |next: &RingKey| next.at.saturating_add(ttl).saturating_add(AHEAD) <= now;
        let from = keys.windows(2).take_while(|pair| gone(&pair[1])).count();
        let from = from.max(keys.len().saturating_sub(MAX_KEYS));
        Ok(Self(keys.split_off(from)))
    }

    /// Returns the secrets: the one that seals now first, then all others.
    pub(crate) fn secrets(&self, now: u64) -> impl Iterator<Item = &str> {
        let seals = self.0.iter().rposition(|key| key.at <= now).unwrap_or(0);
        let others = self.0.iter().enumerate().filter(move |(at, _)| *at != seals).map(|(_, key)| key);
        self.0.get(seals).into_iter().chain(others).map(|key| &*key.secret)
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = ROTATION;
    const TTL: u64 = 600 * 1000;

    fn secrets(ring: &Ring, now: u64) -> Vec<&str> {
        ring.secrets(now).collect()
    }

    fn at(ring: &Ring, now: u64, fresh: &str) -> Ring {
        ring.at(now, TTL, || Ok(fresh.to_owned())).expect("a key")
    }

    #[test]
    fn a_key_is_known_before_it_seals_and_after() {
        let start = 1_000_000;
        let first = at(&Ring::default(), start, "a");
        assert_eq!(secrets(&first, start), ["a"]);
        assert_eq!(at(&first, start + DAY - AHEAD - 1, "b"), first, "nothing to do");
        let two = at(&first, start + DAY - AHEAD, "b");
        assert_eq!(secrets(&two, start + DAY - 1), ["a", "b"], "known, and does not seal yet");
        assert_eq!(secrets(&two, start + DAY), ["b", "a"]);
        assert_eq!(at(&two, start + DAY + TTL + AHEAD - 1, "c"), two);
        let one = at(&two, start + DAY + TTL + AHEAD, "c");
        assert_eq!(secrets(&one, start + DAY + TTL + AHEAD), ["b"]);
    }

    #[test]
    fn rings_that_went_apart_become_one() {
        let (a, b) = (at(&Ring::default(), 5, "a"), at(&Ring::default(), 4, "b"));
        assert_eq!((a.with(&b), a.with(&a)), (b.with(&a), a.clone()));
        assert_eq!(secrets(&a.with(&b), 10), ["a", "b"]);
        let many = (0..20).fold(Ring::default(), |all, n| all.with(&at(&Ring::default(), n, &n.to_string())));
        assert_eq!((many.0.len(), secrets(&many, 99)[0]), (MAX_KEYS, "19"));
    }

    #[test]
    fn a_year_of_looks_keeps_the_keys_few_and_one_that_seals() {
        let mut ring = Ring::default();
        let mut number = 0;
        for look in 0..365 * 24 {
            let now = look * 60 * REFRESH;
            let next = ring.at(now, TTL, || {
                number += 1;
                Ok(number.to_string())
            });
            ring = next.expect("a key");
            assert!((1..=2).contains(&ring.0.len()) && ring.secrets(now).count() == ring.0.len());
        }
        assert!((360..=370).contains(&number), "{number}");
        // A clock that was set back by a year.
        assert_eq!(secrets(&at(&ring, 0, "new"), 0), ["new"]);
    }
}
