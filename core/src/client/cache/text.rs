//! Texts of answers and marks in a store of the program's own.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::answers::hints;
use crate::jsonrpc::{Limits, RawJson, is_deeper_than};
use crate::model::CacheScope;
use crate::store::CacheEntry;

/// By how much another machine's clock may be ahead.
const AHEAD: Duration = Duration::from_secs(60);

/// A value that no mark ever had.
pub(super) fn new_mark() -> Option<String> {
    crate::random::new_id().ok().map(|id| id.to_string())
}

/// Returns true if this may be what [`new_mark`] makes.
pub(super) fn is_mark(value: &str) -> bool {
    value.len() == 24 && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// An answer as it is kept. Its lifetime is in the result.
#[derive(Serialize, Deserialize)]
struct Kept<'a> {
    /// So that nothing is taken for something else.
    #[serde(borrow)]
    key: Cow<'a, str>,
    /// The marks that it was asked for under.
    #[serde(borrow)]
    under: Cow<'a, str>,
    /// Milliseconds since 1970.
    received: u64,
    #[serde(borrow)]
    result: &'a RawValue,
}

/// Members of an answer's text besides the answer.
pub(super) struct Text<'a> {
    pub(super) key: &'a str,
    pub(super) under: &'a str,
    pub(super) is_public: bool,
}

impl Text<'_> {
    pub(super) fn write(&self, result: &RawJson, now: Duration) -> String {
        let received = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let json = |text: &str| RawJson::from_value(text);
        let (key, under) = (json(self.key), json(self.under));
        format!(r#"{{"key":{key},"under":{under},"received":{received},"result":{}}}"#, result.get())
    }

    /// The answer; none when something has changed since.
    ///
    /// # Errors
    /// The reason why nobody can have kept this under this key.
    pub(super) fn read(&self, text: &str, now: Duration) -> Result<Option<CacheEntry>, &'static str> {
        if is_deeper_than(text, Limits::default().max_nesting + 1) {
            return Err("a value is nested too deeply");
        }
        let kept: Kept<'_> = serde_json::from_str(text).map_err(|_| "a value is no answer that was kept")?;
        if kept.key != self.key {
            return Err("a value belongs to another key");
        }
        let result = RawJson::parse(kept.result.get().to_owned()).map_err(|_| "a value is no answer that was kept")?;
        let scope = if self.is_public { CacheScope::Public } else { CacheScope::Private };
        let ttl = match hints(&result) {
            Some((ttl, said)) if result.is_object() && said == scope && !ttl.is_zero() => ttl,
            _ => return Err("a value is no answer that was kept"),
        };
        let received = Duration::from_millis(kept.received);
        if received > now + AHEAD {
            return Err("a value is from the future");
        }
        if kept.under != self.under {
            return Ok(None);
        }
        Ok(Some(CacheEntry { result, received, expires: received.saturating_add(ttl) }))
    }
}
