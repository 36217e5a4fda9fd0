//! The log as a cassette: JSON Lines, a message on each, without secrets.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tricorn::client::Target;

use super::hub::{Record, What};
use crate::targets::{Found, Reach};

/// Names of members, and of parameters of a URL, that hold secrets; without the marks between their words.
const NAMES: [&str; 22] = [
    "token",
    "accesstoken",
    "refreshtoken",
    "idtoken",
    "authtoken",
    "secret",
    "clientsecret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "authorization",
    "cookie",
    "setcookie",
    "assertion",
    "clientassertion",
    "code",
    "codeverifier",
    "privatekey",
    "sessionid",
    "sig",
    "signature",
];
/// Beginnings of words that are secrets, by whoever gave them out.
const BEGINNINGS: [&str; 17] = [
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "sk-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "AIza",
    "npm_",
    "pypi-",
];
/// The shortest such word, and the shortest value that is known to be secret and looked for everywhere.
const WORD: usize = 16;
const KNOWN: usize = 8;

/// Takes secrets out of texts. The same secret is the same mark everywhere.
pub(super) struct Redaction {
    /// Forms of values that are known, each with the value that it stands for.
    known: Vec<(String, String)>,
    marks: BTreeMap<String, usize>,
}

impl Redaction {
    /// Knows the values that were given for the connection: of headers, the environment, the URL.
    pub(super) fn of(found: &Found, headers: &BTreeMap<String, String>) -> Self {
        let mut values: Vec<String> = headers.values().cloned().collect();
        match &found.reach {
            Reach::One(Target::Command { env, .. }) => values.extend(env.values().flatten().cloned()),
            Reach::One(Target::Url { url, headers, .. }) => {
                values.extend(headers.values().cloned());
                values.extend(secrets_of(url));
            }
            _ => {}
        }
        let words: Vec<String> =
            values.iter().filter_map(|value| value.split_once(' ')).map(|(_, word)| word.to_owned()).collect();
        values.extend(words);
        Self::knowing(values)
    }

    fn knowing(values: Vec<String>) -> Self {
        let mut known: Vec<_> = values
            .into_iter()
            .filter(|value| value.len() >= KNOWN)
            .flat_map(|value| forms(&value).into_iter().map(move |form| (form, value.clone())))
            .collect();
        // The longest first: one may be a part of another.
        known.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
        known.dedup();
        Self { known, marks: BTreeMap::new() }
    }

    fn mark(&mut self, secret: &str) -> String {
        let next = self.marks.len() + 1;
        format!("<secret-{}>", self.marks.entry(secret.to_owned()).or_insert(next))
    }

    /// A text without secrets.
    pub(super) fn text(&mut self, text: &str) -> String {
        let mut out = text.to_owned();
        for at in 0..self.known.len() {
            if out.contains(&self.known[at].0) {
                let (form, value) = self.known[at].clone();
                let mark = self.mark(&value);
                out = out.replace(&form, &mark);
            }
        }
        self.words(&out)
    }

    /// Takes out words that look like secrets, and what follows `Bearer`, a name with `=`, or stands before a host's `@`.
    fn words(&mut self, text: &str) -> String {
        let is_part = |c: char| c.is_alphanumeric() || "_-.~+/%".contains(c);
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            if length == 0 {
                out.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let (word, after) = rest.split_at(length);
            let named =
                out.strip_suffix('=').map(|before| before.rsplit(|c: char| !is_part(c)).next().unwrap_or(before));
            let is_bearer = ["Bearer ", "bearer ", "Basic ", "DPoP "].iter().any(|scheme| out.ends_with(scheme))
                && word.len() >= KNOWN;
            let is_shaped = word.len() >= WORD && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning));
            if is_bearer || is_shaped || named.is_some_and(is_secret) {
                let mark = self.mark(word);
                out.push_str(&mark);
            } else {
                out.push_str(word);
            }
            rest = after;
        }
        self.users(&out)
    }

    /// Takes out `user:password` of URLs.
    fn users(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("://") {
            let (before, after) = rest.split_at(at + 3);
            out.push_str(before);
            let end = after.find(|c: char| c == '/' || c == '"' || c.is_whitespace()).unwrap_or(after.len());
            rest = match after[..end].rfind('@') {
                Some(user) => {
                    let mark = self.mark(&after[..user]);
                    out.push_str(&mark);
                    &after[user..]
                }
                None => after,
            };
        }
        out.push_str(rest);
        out
    }

    /// JSON text without secrets; all else in it stays as it is spelt. `None` for what is no JSON.
    fn json(&mut self, text: &str) -> Option<String> {
        serde_json::from_str::<&RawValue>(text).ok()?;
        let mut out = String::with_capacity(text.len());
        let (mut rest, mut name) = (text, None::<String>);
        while let Some(at) = rest.find('"') {
            let (before, begun) = rest.split_at(at);
            // Nothing but a colon comes between a name and its value.
            if before.contains(['{', '}', '[', ',']) {
                name = None;
            }
            out.push_str(before);
            let length = length_of(begun);
            let (quoted, after) = begun.split_at(length);
            let value: String = serde_json::from_str(quoted).unwrap_or_default();
            if after.trim_start().starts_with(':') {
                out.push_str(quoted);
                name = Some(value);
            } else {
                let clean = match name.take() {
                    Some(name) if is_secret(&name) && !value.is_empty() => self.mark(&value),
                    _ => self.text(&value),
                };
                out.push_str(if clean == value { quoted } else { "" });
                if clean != value {
                    out.push_str(&Value::String(clean).to_string());
                }
            }
            rest = after;
        }
        out.push_str(rest);
        // A line has no breaks; in JSON they stand between its parts only.
        Some(out.replace(['\n', '\r'], " "))
    }
}

/// Length of the quoted text at the beginning.
fn length_of(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).collect::<String>().to_ascii_lowercase();
    NAMES.contains(&plain.as_str())
}

/// The value itself, and how it may be written.
fn forms(value: &str) -> Vec<String> {
    let percent: String = value
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let engines = [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD];
    let mut forms: Vec<_> = engines.into_iter().map(|engine| engine.encode(value)).collect();
    forms.extend([value.to_owned(), percent]);
    forms.sort();
    forms.dedup();
    forms
}

/// User, password and the values of the query of a URL.
fn secrets_of(url: &str) -> Vec<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let user = host.rsplit_once('@').map(|(user, _)| user.to_owned());
    let query = rest.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let values = query.split(['&', '#']).filter_map(|pair| pair.split_once('=')).map(|(_, value)| value.to_owned());
    user.into_iter().chain(values).collect()
}

/// Writes the records of one connection. `head` describes it.
pub(super) fn cassette(
    head: Map<String, Value>,
    connection: u64,
    redaction: &mut Redaction,
    log: &[Arc<Record>],
) -> String {
    let mut out = format!("{}\n", Value::Object(head));
    for record in log.iter().filter(|record| record.connection == connection) {
        let time = record.time;
        let line = match &record.what {
            What::Message { by_client, on, text } => {
                let from = if *by_client { "client" } else { "server" };
                let what = match redaction.json(text) {
                    Some(message) => format!("\"msg\":{message}"),
                    None => format!("\"text\":{}", json!(redaction.text(text))),
                };
                format!("{{\"t\":{time},\"from\":\"{from}\",\"on\":{},{what}}}", json!(on))
            }
            What::Event { name, text } => json!({"t": time, "event": name, "text": redaction.text(text)}).to_string(),
        };
        let _ = writeln!(out, "{line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "canary/secret+value";

    fn redaction() -> Redaction {
        Redaction::knowing(vec![SECRET.to_owned(), "short".to_owned()])
    }

    #[test]
    fn a_secret_is_found_in_every_form_and_always_the_same_mark() {
        let mut redaction = redaction();
        let base64 = STANDARD.encode(SECRET);
        for form in [SECRET, "canary%2Fsecret%2Bvalue", base64.as_str(), base64.trim_end_matches('=')] {
            assert_eq!(redaction.text(&format!("a {form} b")), "a <secret-1> b", "{form}");
        }
        assert_eq!(redaction.text("short"), "short");
        let escaped = "{\"a\":\"canary\\/secret\\u002bvalue\"}";
        assert_eq!(redaction.json(escaped).as_deref(), Some("{\"a\":\"<secret-1>\"}"));
    }

    #[test]
    fn what_is_called_a_secret_or_looks_like_one_is_taken_out() {
        let mut redaction = redaction();
        for (text, clean) in [
            ("Authorization: Bearer abcdefgh.12", "Authorization: Bearer <secret-1>"),
            ("ghp_0123456789abcdef0123 x", "<secret-2> x"),
            (
                "https://ada:pass@example.com/a?page=2&api_key=xyz",
                "https://<secret-4>@example.com/a?page=2&api_key=<secret-3>",
            ),
            ("sk-short, page=2", "sk-short, page=2"),
        ] {
            assert_eq!(redaction.text(text), clean);
        }
    }

    #[test]
    fn messages_keep_their_spelling() {
        let mut redaction = redaction();
        let message = r#"{"id":1, "params":{"password":"x","n":1.50,"big":12345678901234567890,"code":-32600,"token":{"a":"b"},"list":["x","y"],"apiKey": "z"}}"#;
        let clean = r#"{"id":1, "params":{"password":"<secret-1>","n":1.50,"big":12345678901234567890,"code":-32600,"token":{"a":"b"},"list":["x","y"],"apiKey": "<secret-2>"}}"#;
        assert_eq!(redaction.json(message).as_deref(), Some(clean));
        assert_eq!(redaction.json("{\n\"a\": 1}").as_deref(), Some("{ \"a\": 1}"));
        assert!(redaction.json("no JSON").is_none());
    }

    #[test]
    fn a_cassette_has_the_records_of_one_connection() {
        let message = |connection, text: &str| {
            let what = What::Message { by_client: true, on: "stdio".to_owned(), text: text.to_owned() };
            Arc::new(Record { time: 1.5, connection, what })
        };
        let event =
            Record { time: 2.0, connection: 2, what: What::Event { name: "stderr", text: format!("x {SECRET}") } };
        let log = [message(1, "{}"), message(2, r#"{"method":"ping"}"#), message(2, "?"), Arc::new(event)];
        let Value::Object(head) = json!({"cassette": 1}) else { unreachable!() };
        let text = cassette(head, 2, &mut redaction(), &log);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                r#"{"cassette":1}"#,
                r#"{"t":1.5,"from":"client","on":"stdio","msg":{"method":"ping"}}"#,
                r#"{"t":1.5,"from":"client","on":"stdio","text":"?"}"#,
                r#"{"t":2.0,"event":"stderr","text":"x <secret-1>"}"#,
            ]
        );
    }
}
