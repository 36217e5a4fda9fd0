//! Differences between two recordings.

use std::fmt;

use serde_json::{Value, json};

use super::Cassette;
use super::likeness::{compare, is_same};
use super::tracks::{LISTEN, Track, tracks};
use crate::error::shortened;
use crate::jsonrpc::Message;

/// The most differences of one answer, and of all.
const MAX_EACH: usize = 20;
const MAX_ALL: usize = 1000;
/// The longest value in words.
const MAX_SHOWN: usize = 100;

/// A difference between two recordings.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Difference {
    /// The request: its method, and the name or URI of what it is about: `tools/call add`.
    pub request: String,
    /// Its line in each of the cassettes; `None`: it is not in that one.
    pub lines: (Option<usize>, Option<usize>),
    /// The place in the answer, `result.content[0].text`; empty where a whole request is missing.
    pub path: String,
    /// The value there in each of them, `None` for none.
    pub values: (Option<Value>, Option<Value>),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let request = &self.request;
        match self.lines {
            (Some(line), None) => write!(f, "{request}: only in the first, line {line}"),
            (None, Some(line)) => write!(f, "{request}: only in the second, line {line}"),
            _ => {
                let shown = |value: &Option<Value>| match value {
                    Some(value) => shortened(&value.to_string(), MAX_SHOWN).into_owned(),
                    None => "nothing".to_owned(),
                };
                let (first, second) = (shown(&self.values.0), shown(&self.values.1));
                write!(f, "{request}: {}: {first} -> {second}", self.path)
            }
        }
    }
}

/// Compares the answers to the client's requests: the first answer to a request with the first to the same one, and so on.
/// Ids, times, `_meta`, the order of different requests and the words of the client are not compared, and neither is text
/// that was taken out as a secret. At most 20 differences of one answer are given, 1,000 in all.
#[must_use]
pub fn differences(first: &Cassette, second: &Cassette) -> Vec<Difference> {
    let asked = |cassette: &Cassette| -> Vec<Track> {
        let all = tracks(cassette).into_iter();
        // The way in which a connection begins differs with what is known of the server.
        all.filter(|track| track.id.is_some() && !track.is_cancelled)
            .filter(|track| !track.is_opening() || has_result(track))
            .filter(|track| !["ping", LISTEN].contains(&track.method.as_str()))
            .map(|mut track| {
                // Sealed anew each time.
                if let Value::Object(params) = &mut track.params {
                    params.shift_remove("requestState");
                }
                track
            })
            .collect()
    };
    let (first, second) = (asked(first), asked(second));
    let mut is_paired = vec![false; second.len()];
    let mut found = Vec::new();
    for track in &first {
        let same = |other: &Track| {
            track.method == other.method && (track.is_opening() || is_same(&track.params, &other.params))
        };
        let pair = (0..second.len()).find(|at| !is_paired[*at] && same(&second[*at]));
        match pair {
            Some(at) => {
                is_paired[at] = true;
                compare_answers(track, &second[at], &mut found);
            }
            None => found.push(missing(track, true)),
        }
    }
    let others = second.iter().zip(&is_paired).filter(|(_, is_paired)| !**is_paired);
    found.extend(others.map(|(track, _)| missing(track, false)));
    found.truncate(MAX_ALL);
    found
}

fn has_result(track: &Track) -> bool {
    matches!(track.answer(), Some(Message::Response { .. }))
}

fn missing(track: &Track, is_first: bool) -> Difference {
    let lines = if is_first { (Some(track.line), None) } else { (None, Some(track.line)) };
    Difference { request: track.title(), lines, path: String::new(), values: (None, None) }
}

fn compare_answers(first: &Track, second: &Track, found: &mut Vec<Difference>) {
    let (a, b) = (answer(first), answer(second));
    let mut places = Vec::new();
    compare(&mut String::new(), Some(&a), Some(&b), MAX_EACH, &mut places);
    found.extend(places.into_iter().map(|(path, a, b)| Difference {
        request: first.title(),
        lines: (Some(first.line), Some(second.line)),
        path,
        values: (a.cloned(), b.cloned()),
    }));
}

/// An answer as it is compared.
fn answer(track: &Track) -> Value {
    match track.answer() {
        Some(Message::Response { result, .. }) => {
            let mut result: Value = result.to().unwrap_or_default();
            if let Value::Object(members) = &mut result {
                members.shift_remove("_meta");
                members.shift_remove("requestState");
            }
            json!({"result": result})
        }
        Some(Message::Error { error, .. }) => json!({"error": error}),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cassette(answers: &[(&str, &str)]) -> Cassette {
        let mut text = "{\"cassette\":1}\n".to_owned();
        for (at, (name, answer)) in answers.iter().enumerate() {
            let call = format!(r#"{{"jsonrpc":"2.0","id":{at},"method":"tools/call","params":{{"name":"{name}"}}}}"#);
            text.push_str(&format!("{{\"t\":1,\"from\":\"client\",\"on\":\"stdio\",\"msg\":{call}}}\n"));
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{at},{answer}}}"#);
            text.push_str(&format!("{{\"t\":2,\"from\":\"server\",\"on\":\"stdio\",\"msg\":{answer}}}\n"));
        }
        Cassette::parse("a.jsonl", &text).expect("a cassette")
    }

    #[test]
    fn answers_are_compared_request_by_request() {
        let a = cassette(&[
            ("add", r#""result":{"n":1,"_meta":{"x":1}}"#),
            ("old", r#""result":{}"#),
            ("key", r#""result":{"s":"a <secret-1>"}"#),
        ]);
        let b = cassette(&[
            ("key", r#""result":{"s":"a hunter2"}"#),
            ("add", r#""result":{"n":2,"_meta":{"x":2}}"#),
            ("new", r#""error":{"code":1,"message":"no"}"#),
        ]);
        let said: Vec<_> = differences(&a, &b).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "tools/call add: result.n: 1 -> 2",
                "tools/call old: only in the first, line 4",
                "tools/call new: only in the second, line 6",
            ]
        );
        assert!(differences(&a, &a).is_empty());
    }
}
