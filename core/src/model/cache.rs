//! Lifetime and scope of a result: `ttlMs` and `cacheScope` (specification 2026-07-28, "Caching").

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result, shortened};
use crate::idiom;
use crate::options::unknown_in_words;

/// The longest time that a hint says: what every JSON reader can hold.
const MAX_MS: u64 = (1 << 53) - 1;

/// Scope of a cached result: the schema's `cacheScope`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the protocol has these two")]
pub enum CacheScope {
    /// For requests under the same authorization.
    #[default]
    Private,
    /// For everybody, also by shared gateways and under other authorization.
    Public,
}

impl CacheScope {
    /// As it is on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Private, Self::Public].into_iter().find(|scope| scope.as_str() == name)
    }
}

/// Hints of a server about the lifetime and the scope of a result. A hint that is left out comes from the less special
/// place: a resource's from the server's option `cache`. JSON: `{"ttl"?: seconds, "scope"?: "public"|"private"}`.
///
/// ```
/// use std::time::Duration;
/// use tricorn::model::{CacheHints, CacheScope, Resource};
///
/// let hints = CacheHints::new().ttl(Duration::from_secs(60)).scope(CacheScope::Public);
/// let about = Resource::new("docs://about", "about").cache(hints);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheHints {
    pub(crate) ttl: Option<Duration>,
    pub(crate) scope: Option<CacheScope>,
}

impl CacheHints {
    /// Returns hints that leave both open.
    #[must_use]
    pub const fn new() -> Self {
        Self { ttl: None, scope: None }
    }

    /// Lifetime after the result was received; with zero it is not cached. Default: what the less special place says.
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Scope in which it may be cached. Default: what the less special place says.
    #[must_use]
    pub const fn scope(mut self, scope: CacheScope) -> Self {
        self.scope = Some(scope);
        self
    }

    /// These, and what they leave open as `others` say.
    #[must_use]
    pub(crate) fn or(self, others: Self) -> Self {
        Self { ttl: self.ttl.or(others.ttl), scope: self.scope.or(others.scope) }
    }

    /// The members of a result: `ttlMs`, and `cacheScope`. The defaults are 0 and private.
    pub(crate) fn members(self) -> (u64, CacheScope) {
        let millis = self.ttl.map_or(0, |ttl| u64::try_from(ttl.as_millis()).unwrap_or(MAX_MS).min(MAX_MS));
        (millis, self.scope.unwrap_or_default())
    }

    /// The two as they stand at the end of a result.
    pub(crate) fn written(self) -> String {
        let (millis, scope) = self.members();
        format!(",\"ttlMs\":{millis},\"cacheScope\":\"{}\"", scope.as_str())
    }

    /// Takes `ttl` and `scope` out of the members of options.
    ///
    /// # Errors
    /// The fault, naming the member.
    pub(crate) fn take(members: &mut Map<String, Value>) -> Result<Self> {
        let mut hints = Self::new();
        match members.shift_remove("ttl") {
            None | Some(Value::Null) => {}
            Some(value) => {
                let time = value.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                let wrong = || {
                    let got = value.as_f64().map(|seconds| idiom::number(seconds).to_string());
                    let got = got.unwrap_or_else(|| shortened(&value.to_string(), 60).into_owned());
                    Error::misuse(format!("\"ttl\": expected {} of at least 0, got {got}", idiom::unit()))
                };
                hints.ttl = Some(time.ok_or_else(wrong)?);
            }
        }
        match members.shift_remove("scope") {
            None | Some(Value::Null) => {}
            Some(value) => {
                let got = shortened(&value.to_string(), 60).into_owned();
                let wrong = || Error::misuse(format!("\"scope\": expected \"public\" or \"private\", got {got}"));
                hints.scope = Some(value.as_str().and_then(CacheScope::parse).ok_or_else(wrong)?);
            }
        }
        Ok(hints)
    }

    /// Reads the hints of one kind of result.
    ///
    /// # Errors
    /// The fault, naming the member.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        let Some(members) = value.as_object() else {
            let got = shortened(&value.to_string(), 60).into_owned();
            return Err(Error::misuse(format!("expected an object with \"ttl\" and \"scope\", got {got}")));
        };
        let mut members = members.clone();
        let hints = Self::take(&mut members)?;
        match members.keys().next() {
            None => Ok(hints),
            Some(other) => Err(Error::misuse(unknown_in_words(other, &["ttl", "scope"]))),
        }
    }
}

impl<'de> Deserialize<'de> for CacheHints {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value).map_err(|error| serde::de::Error::custom(error.message()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hints_are_read_and_what_is_wrong_is_named() {
        let hints = CacheHints::read(&json!({"ttl": 1.5, "scope": "public"})).expect("hints");
        assert_eq!(hints.members(), (1500, CacheScope::Public));
        assert_eq!(CacheHints::read(&json!({"ttl": null})).expect("hints"), CacheHints::new());
        for (wrong, said) in [
            (json!({"ttl": -1}), "\"ttl\": expected seconds of at least 0, got -1"),
            (json!({"ttl": "1"}), "\"ttl\": expected seconds of at least 0, got \"1\""),
            (json!({"scope": "all"}), "\"scope\": expected \"public\" or \"private\", got \"all\""),
            (json!({"tll": 1}), "unknown option \"tll\", did you mean \"ttl\"?"),
            (json!(5), "expected an object with \"ttl\" and \"scope\", got 5"),
        ] {
            assert_eq!(CacheHints::read(&wrong).expect_err("wrong").message(), said);
        }
    }

    #[test]
    fn what_is_not_said_is_left_to_others() {
        let special = CacheHints::new().ttl(Duration::from_millis(7));
        let general = CacheHints::new().ttl(Duration::from_secs(9)).scope(CacheScope::Public);
        assert_eq!(special.or(general).members(), (7, CacheScope::Public));
        assert_eq!(CacheHints::new().members(), (0, CacheScope::Private));
        assert_eq!(CacheHints::new().ttl(Duration::MAX).members().0, MAX_MS);
    }
}
