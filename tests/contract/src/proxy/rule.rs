//! Rules: the bytes that they are for, and the act.

use crate::Outcome;
use serde_json::Value;

/// One rule of the sequence.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    /// As it was written.
    pub(super) text: Value,
    /// Only what follows a request with this text.
    pub(super) request: Option<String>,
    pub(super) place: Place,
    pub(super) act: Act,
    /// Number of times that it is still to be applied.
    pub(super) times: usize,
}

/// Place in the server's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Before anything.
    Start,
    /// After so many bytes.
    Bytes(usize),
    /// After the event with this text.
    Event(String),
    /// Right behind this text.
    Inside(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// The connection is closed in order.
    Cut,
    /// The connection is reset.
    Reset,
    /// The request does not get to the server: the connection is reset.
    Refuse,
    /// The server's bytes wait until this text has passed on another connection.
    Hold(String),
}

pub(super) fn read(rules: &Value) -> Outcome<Vec<Rule>> {
    rules.as_array().ok_or("the rules are an array")?.iter().map(one).collect()
}

fn one(rule: &Value) -> Outcome<Rule> {
    let wrong = |why: &str| format!("the rule {rule}: {why}");
    let members = rule.as_object().ok_or_else(|| wrong("not an object"))?;
    let known = ["request", "bytes", "event", "inside", "do", "until", "times"];
    if let Some(unknown) = members.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(wrong(&format!("unknown member {unknown:?}")));
    }
    let text = |name: &str| rule[name].as_str().map(str::to_owned);
    let bytes = rule["bytes"].as_u64().and_then(|n| usize::try_from(n).ok());
    let place = match (bytes, text("event"), text("inside")) {
        (None, None, None) => Place::Start,
        (Some(bytes), None, None) => Place::Bytes(bytes),
        (None, Some(event), None) => Place::Event(event),
        (None, None, Some(inside)) => Place::Inside(inside),
        _ => return Err(wrong("one of bytes, event and inside")),
    };
    let act = match (rule["do"].as_str(), text("until")) {
        (Some("cut"), None) => Act::Cut,
        (Some("reset"), None) => Act::Reset,
        (Some("refuse"), None) if place == Place::Start => Act::Refuse,
        (Some("hold"), Some(until)) => Act::Hold(until),
        _ => return Err(wrong("\"do\" is cut, reset, refuse, or hold with \"until\"")),
    };
    let times = rule["times"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
    Ok(Rule { text: rule.clone(), request: text("request"), place, act, times })
}

/// Finds the place where a text begins, in any case of letters: names of headers have none of their own.
pub(super) fn find(bytes: &[u8], text: &str) -> Option<usize> {
    bytes.windows(text.len().max(1)).position(|window| window.eq_ignore_ascii_case(text.as_bytes()))
}

impl Place {
    /// The bytes that still pass, when the place is in here.
    pub(super) fn end(&self, answer: &[u8]) -> Option<usize> {
        match self {
            Self::Start => Some(0),
            Self::Bytes(bytes) => (answer.len() >= *bytes).then_some(*bytes),
            Self::Inside(text) => find(answer, text).map(|at| at + text.len()),
            Self::Event(text) => {
                let at = find(answer, text)?;
                let rest = &answer[at..];
                let ends = ["\n\n", "\r\n\r\n"].map(|blank| find(rest, blank).map(|n| at + n + blank.len()));
                ends.into_iter().flatten().min()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn places_are_found_once_they_are_there() {
        let event = Place::Event("\"progress\":5".into());
        assert_eq!(event.end(b"data: {\"progress\":5}\n"), None);
        assert_eq!(event.end(b"data: {\"progress\":5}\n\ndata"), Some(22));
        assert_eq!(event.end(b"data: {\"progress\":5}\r\n\r\n"), Some(24));
        assert_eq!(Place::Inside("ID".into()).end(b"xx id: 7"), Some(5));
        assert_eq!(Place::Bytes(3).end(b"ab"), None);
        assert_eq!(Place::Bytes(3).end(b"abcd"), Some(3));
    }

    #[test]
    fn odd_rules_are_refused() {
        for odd in
            [json!([{"do": "hold"}]), json!([{"do": "cut", "after": "x"}]), json!([{"do": "refuse", "bytes": 1}])]
        {
            assert!(read(&odd).is_err(), "{odd}");
        }
        assert!(read(&json!([{"do": "cut", "bytes": 1, "event": "x"}])).is_err());
        assert!(read(&json!([{"do": "refuse", "times": 2}, {"request": "x", "event": "y", "do": "cut"}])).is_ok());
    }
}
