//! Results of a live server and of its cassette, in a form in which they are the same.

use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

/// Members that belong to a connection: a session over HTTP, and what the progress of a call is known by.
const OWN: [&str; 2] = ["sessionId", "progressToken"];
/// Lists that have no order: what arrives on several streams, and questions that are asked at once.
const UNORDERED: [&str; 2] = ["notifications", "asked"];

/// A result without secrets and marks of them, which are the same text here, and without what belongs to a connection.
/// Numbers have one spelling, members one order, and one that is null is none.
pub(super) fn canonical(value: &Value, secrets: &BTreeMap<String, String>) -> Value {
    match value {
        Value::String(text) => plain(text, secrets).into(),
        Value::Number(number) => integral(number).map_or_else(|| value.clone(), Value::from),
        Value::Array(elements) => elements.iter().map(|element| canonical(element, secrets)).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter(|(name, value)| !value.is_null() && !OWN.contains(&name.as_str()));
            let sorted: BTreeMap<String, Value> =
                kept.map(|(name, value)| (plain(name, secrets), canonical(value, secrets))).collect();
            let mut members = Map::from_iter(sorted);
            // A language says in its own words that it has cancelled a call.
            if members.get("kind").is_some_and(|kind| kind == "cancelled_here") {
                members.shift_remove("message");
            }
            for name in UNORDERED {
                if let Some(list) = members.get_mut(name).and_then(Value::as_array_mut) {
                    list.sort_by_cached_key(Value::to_string);
                }
            }
            members.into()
        }
        _ => value.clone(),
    }
}

fn integral(number: &Number) -> Option<i64> {
    let value = number.as_f64().filter(|_| number.is_f64())?;
    (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
}

/// A text with `<secret>` for each secret and each mark of one. In JSON secrets are spelt otherwise.
fn plain(text: &str, secrets: &BTreeMap<String, String>) -> String {
    let mut text = text.to_owned();
    for secret in secrets.values() {
        for spelt in spellings(secret) {
            text = text.replace(&spelt, "<secret>");
        }
    }
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("<secret-") {
        out.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let is_mark = digits > 0 && after[digits..].starts_with('>');
        out.push_str(if is_mark { "<secret>" } else { "<secret-" });
        rest = if is_mark { &after[digits + 1..] } else { after };
    }
    out + rest
}

/// The secret as it is, in JSON, and in JSON in a text of JSON.
pub(super) fn spellings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned()];
    for _ in 0..2 {
        let quoted = Value::from(all[all.len() - 1].as_str()).to_string();
        all.push(quoted[1..quoted.len() - 1].to_owned());
    }
    // The longest first: a shorter one may be a part of it.
    all.reverse();
    all.dedup();
    all
}

/// The first difference of two results, by its path.
pub(super) fn difference(expected: &Value, got: &Value) -> Option<String> {
    at("", expected, got)
}

fn at(path: &str, expected: &Value, got: &Value) -> Option<String> {
    match (expected, got) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            names.into_iter().find_map(|name| match (a.get(name), b.get(name)) {
                (Some(one), Some(other)) => at(&format!("{path}/{name}"), one, other),
                (one, other) => Some(differs(&format!("{path}/{name}"), one, other)),
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(index, (one, other))| at(&format!("{path}/{index}"), one, other))
        }
        _ if expected == got => None,
        _ => Some(differs(path, Some(expected), Some(got))),
    }
}

fn differs(path: &str, expected: Option<&Value>, got: Option<&Value>) -> String {
    let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), crate::pattern::brief);
    let path = if path.is_empty() { "/" } else { path };
    format!("{path}: expected {}, got {}", shown(expected), shown(got))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn secrets() -> BTreeMap<String, String> {
        BTreeMap::from([("a".to_owned(), "hush\"hush".to_owned())])
    }

    #[test]
    fn secrets_and_their_marks_are_the_same() {
        let live = json!({"text": "{\"a\":\"hush\\\"hush\"}", "of": ["hush\"hush", 1.0], "sessionId": "x", "n": null});
        let played = json!({"of": ["<secret-12>", 1], "text": "{\"a\":\"<secret-1>\"}"});
        assert_eq!(canonical(&live, &secrets()), canonical(&played, &secrets()));
        assert_eq!(canonical(&json!("<secret-x>, <secret-"), &secrets()), json!("<secret-x>, <secret-"));
    }

    #[test]
    fn lists_of_what_was_heard_have_no_order() {
        let (one, other) = (json!({"asked": [1, 2], "content": [1, 2]}), json!({"asked": [2, 1], "content": [2, 1]}));
        let found = difference(&canonical(&one, &secrets()), &canonical(&other, &secrets()));
        assert_eq!(found.as_deref(), Some("/content/0: expected 1, got 2"));
    }

    #[test]
    fn a_member_too_many_is_a_difference() {
        assert_eq!(
            difference(&json!({"a": 1}), &json!({"a": 1, "b": 2})).as_deref(),
            Some("/b: expected nothing, got 2")
        );
        assert_eq!(difference(&json!([1]), &json!([1])), None);
    }
}
