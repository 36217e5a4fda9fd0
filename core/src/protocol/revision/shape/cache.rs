//! Lifetime and scope of a result: `ttlMs` and `cacheScope`, which only complete results have.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::protocol::revision::object::{has, push_member};

/// Returns true if these members may be in a result, somewhere.
pub(super) fn is_in(text: &str) -> bool {
    has(text, "\"ttlMs\"") || has(text, "\"cacheScope\"")
}

/// Returns true if a result ends with both, as this side writes them. Text that looks like that inside of a string has
/// its quotes escaped, so these are members of the result itself.
pub(super) fn is_at_end(text: &str) -> bool {
    let rest = ["\"public\"}", "\"private\"}"].iter().find_map(|end| text.strip_suffix(end));
    let rest = rest.and_then(|text| text.strip_suffix(",\"cacheScope\":"));
    let head = rest.map(|text| text.trim_end_matches(|c: char| c.is_ascii_digit()));
    head.is_some_and(|head| {
        let digits = rest.map_or(0, str::len) - head.len();
        let before = head.strip_suffix(",\"ttlMs\":");
        (1..=16).contains(&digits) && before.is_some_and(|before| !is_in(before))
    })
}

/// Writes both: as they are given, and otherwise that the result is not to be kept.
pub(super) fn write(out: &mut String, members: &[(Cow<'_, str>, &RawValue)]) {
    let given = |name: &str| members.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.get());
    push_member(out, "ttlMs", &given("ttlMs").and_then(millis).unwrap_or_default().to_string());
    let scope = given("cacheScope").filter(|scope| *scope == "\"public\"");
    push_member(out, "cacheScope", scope.unwrap_or("\"private\""));
}

/// A time in milliseconds, however the number is written; none when it is no time.
fn millis(text: &str) -> Option<u64> {
    const MAX: u64 = (1 << 53) - 1;
    let whole = text.parse::<u64>().ok();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
    let whole = whole.or_else(|| text.parse::<f64>().ok().filter(|ms| *ms >= 0.0).map(|ms| ms.min(MAX as f64) as u64));
    whole.map(|ms| ms.min(MAX))
}
