//! Lifetimes of answers, and the keys of requests under which answers are found.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::digest;
use crate::jsonrpc::RawJson;
use crate::model::{CacheScope, meta};
use crate::protocol::revision::object;

/// The longest that anything is fresh, whatever its server says: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// The longest parameters of a request whose result is kept.
const MAX_PARAMS: usize = 16 << 10;
/// Members of `_meta` on which no result depends.
const INDIFFERENT: [&str; 8] = [
    meta::PROGRESS_TOKEN,
    meta::PROTOCOL_VERSION,
    meta::CLIENT_INFO,
    meta::CLIENT_CAPABILITIES,
    meta::LOG_LEVEL,
    "traceparent",
    "tracestate",
    "baggage",
];

/// Returns the lifetime of a complete result, and its scope.
pub(super) fn hints(result: &RawJson) -> Option<(Duration, CacheScope)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        #[serde(borrow, default)]
        result_type: Option<&'a RawValue>,
        #[serde(borrow, default)]
        ttl_ms: Option<&'a RawValue>,
        #[serde(borrow, default)]
        cache_scope: Option<&'a RawValue>,
    }
    let head: Head<'_> = result.borrow().ok()?;
    if head.result_type.is_some_and(|kind| kind.get() != "\"complete\"") {
        return None;
    }
    let millis = head.ttl_ms.and_then(|ms| ms.get().parse::<f64>().ok()).filter(|ms| *ms > 0.0).unwrap_or(0.0);
    let ttl = Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(LONGEST).min(LONGEST);
    let scope = head.cache_scope.filter(|scope| scope.get() == "\"public\"");
    Some((ttl, scope.map_or(CacheScope::Private, |_| CacheScope::Public)))
}

/// The parameters in one way of writing, without what no result depends on; none when the result is not to be kept:
/// the request brings answers to what it was asked, or is too long.
pub(super) fn canonical(params: Option<&RawJson>) -> Option<String> {
    let given = params.map_or("{}", RawJson::get);
    if given.len() > MAX_PARAMS {
        return None;
    }
    let mut sorted = BTreeMap::new();
    for (key, value) in object::members(given) {
        match key.as_ref() {
            "inputResponses" | "requestState" => return None,
            "_meta" => {
                let inner = object::members(value.get());
                let own = inner.into_iter().filter(|(key, _)| !INDIFFERENT.contains(&key.as_ref()));
                let own: BTreeMap<String, Value> =
                    own.filter_map(|(key, value)| Some((key.into_owned(), read(value)?))).collect();
                if !own.is_empty() {
                    // It may hold a secret.
                    let own = Value::Object(own.into_iter().collect()).to_string();
                    sorted.insert("_meta".to_owned(), Value::String(digest("_meta", [own.as_str()]).to_string()));
                }
            }
            // An absent cursor may be written so.
            "cursor" if value.get() == "null" => {}
            _ => drop(sorted.insert(key.into_owned(), read(value)?)),
        }
    }
    Some(Value::Object(sorted.into_iter().collect()).to_string())
}

fn read(value: &RawValue) -> Option<Value> {
    serde_json::from_str(value.get()).ok()
}

/// The resource that these parameters are about.
pub(super) fn uri_of(params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Params {
        uri: String,
    }
    serde_json::from_str(params).ok().map(|Params { uri }| uri)
}

/// Returns true if the parameters are for reading this resource, what it is a part of, or a part of it.
pub(super) fn is_about(params: &str, changed: &str) -> bool {
    let Some(uri) = uri_of(params) else { return true };
    let part_of = |part: &str, whole: &str| {
        part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || whole.ends_with('/'))
    };
    part_of(changed, &uri) || part_of(&uri, changed)
}

/// The result with the mark that it is no longer fresh.
pub(super) fn stale(result: &RawJson, age: Duration) -> RawJson {
    let mut out = String::with_capacity(result.get().len() + 64);
    let mut marks = String::from("{");
    let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    out.push('{');
    for (key, value) in object::members(result.get()) {
        if key == "_meta" {
            for (key, value) in object::members(value.get()).into_iter().filter(|(key, _)| key != meta::STALE) {
                object::push_member(&mut marks, &key, value.get());
            }
        } else {
            object::push_member(&mut out, &key, value.get());
        }
    }
    object::push_member(&mut marks, meta::STALE, &format!("{{\"ageMs\":{age}}}"));
    marks.push('}');
    object::push_member(&mut out, "_meta", &marks);
    out.push('}');
    RawJson::written(out)
}
