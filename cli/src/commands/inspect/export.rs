//! The log as a cassette: JSON Lines, a message on each, without secrets.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tricorn::client::Target;

use super::hub::{Record, What};

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
/// Ends of longer names, such as `OPENAI_API_KEY`, and of those that say where somebody is rather than who.
const ENDS: [&str; 10] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authorization",
];
const PLACES: [&str; 5] = ["progresstoken", "pagetoken", "continuationtoken", "resumetoken", "synctoken"];
/// Names that mean something else in a sentence.
const COMMON: [&str; 4] = ["code", "sig", "signature", "assertion"];
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
pub(crate) struct Redaction {
    /// Forms of values that are known, each with the value that it stands for.
    known: Vec<(String, String)>,
    marks: BTreeMap<String, usize>,
}

impl Redaction {
    /// Knows the values that were given for the connection: of headers, the environment, arguments, the URL.
    pub(crate) fn of(target: &Target, headers: &BTreeMap<String, String>) -> Self {
        let mut values: Vec<String> = headers.values().cloned().collect();
        match target {
            Target::Command { args, env, .. } => {
                values.extend(env.values().flatten().cloned());
                values.extend(secrets_among(args));
            }
            Target::Url { url, headers, .. } => {
                values.extend(headers.values().cloned());
                values.extend(secrets_of(url));
            }
            _ => {}
        }
        Self::with_words(values)
    }

    /// Knows the values that a configuration file has for its servers.
    pub(crate) fn of_file(file: &Path, headers: &BTreeMap<String, String>) -> Self {
        let mut values: Vec<String> = headers.values().cloned().collect();
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let read: Value = serde_json::from_str(&text).unwrap_or_default();
        for server in ["mcpServers", "servers"].iter().filter_map(|name| read[*name].as_object()).flat_map(Map::values)
        {
            for name in ["env", "headers"] {
                let own = server[name].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_str);
                values.extend(own.flat_map(with_variables));
            }
            let args: Vec<_> = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            values.extend(secrets_among(&args).iter().flat_map(|value| with_variables(value)));
            values.extend(server["url"].as_str().map(secrets_of).unwrap_or_default());
        }
        Self::with_words(values)
    }

    fn with_words(mut values: Vec<String>) -> Self {
        let words: Vec<String> =
            values.iter().filter_map(|value| value.split_once(' ')).map(|(_, word)| word.to_owned()).collect();
        values.extend(words);
        Self::knowing(values)
    }

    fn knowing(values: Vec<String>) -> Self {
        let mut redaction = Self { known: Vec::new(), marks: BTreeMap::new() };
        values.iter().for_each(|value| redaction.know(value));
        redaction
    }

    /// Takes this value out, too.
    pub(crate) fn know(&mut self, value: &str) {
        if value.len() < KNOWN {
            return;
        }
        self.known.extend(forms(value).into_iter().map(|form| (form, value.to_owned())));
        // The longest first: one may be a part of another.
        self.known.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
        self.known.dedup();
    }

    fn mark(&mut self, secret: &str) -> String {
        let next = self.marks.len() + 1;
        format!("<secret-{}>", self.marks.entry(secret.to_owned()).or_insert(next))
    }

    /// A text without secrets.
    pub(crate) fn text(&mut self, text: &str) -> String {
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
            // A scheme is followed by its word, or by parameters: `Bearer realm="x"`.
            let is_parameter =
                after.strip_prefix('=').is_some_and(|value| value.starts_with(|c| c == '"' || is_part(c)));
            let is_bearer = ["Bearer ", "bearer ", "Basic ", "DPoP "].iter().any(|scheme| out.ends_with(scheme))
                && word.len() >= KNOWN
                && !is_parameter;
            let is_shaped = word.len() >= WORD && BEGINNINGS.iter().any(|beginning| word.starts_with(beginning));
            if is_bearer || is_shaped || is_value(&out, word) {
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

    /// JSON text without secrets, on one line; all else in it stays as it is spelt. `None` for what is no JSON.
    fn json(&mut self, text: &str) -> Option<String> {
        // A line has no breaks; in JSON they stand between its parts only.
        Some(self.parts(text)?.replace(['\n', '\r'], " "))
    }

    /// The same with its breaks.
    fn parts(&mut self, text: &str) -> Option<String> {
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
            let is_name = after.trim_start().starts_with(':');
            let clean = match name.take() {
                Some(name) if !is_name && is_secret(&name) && !value.is_empty() => self.mark(&value),
                // Results are JSON in a text as a rule.
                _ if value.starts_with(['{', '[']) => self.parts(&value).unwrap_or_else(|| self.text(&value)),
                _ => self.text(&value),
            };
            if clean == value {
                out.push_str(quoted);
            } else {
                out.push_str(&Value::String(clean).to_string());
            }
            name = is_name.then_some(value);
            rest = after;
        }
        out.push_str(rest);
        Some(out)
    }
}

/// A letter of a word.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || "_-.~+/%".contains(c)
}

/// True for a word that stands after the name of a secret: `name=word`, `name: word`, `"name": "word"`.
fn is_value(before: &str, word: &str) -> bool {
    let name = |before: &str| before.rsplit(|c| !is_part(c)).next().unwrap_or_default().to_owned();
    let is_common = |name: &str| COMMON.iter().any(|common| name.eq_ignore_ascii_case(common));
    if let Some(before) = before.strip_suffix('=') {
        let name = name(before);
        let is_of_query = before[..before.len() - name.len()].ends_with(['?', '&']);
        return is_secret(&name) && (is_of_query || !is_common(&name));
    }
    // A sentence may go on after a colon: a secret is longer than its words are.
    let is_long = word.len() >= KNOWN && (word.len() >= 20 || word.bytes().any(|byte| byte.is_ascii_digit()));
    let quotes = ['"', '\'', '\\'];
    let Some(before) = before.trim_end_matches(quotes).trim_end().strip_suffix(':') else { return false };
    let name = name(before.trim_end_matches(quotes));
    is_long && is_secret(&name) && !is_common(&name)
}

/// A value of a configuration: as it stands, and with its variables in their places.
fn with_variables(value: &str) -> Vec<String> {
    let mut out = value.to_owned();
    while let Some(at) = out.find("${") {
        let Some(length) = out[at..].find('}') else { break };
        let name = out[at + 2..at + length].trim_start_matches("env:");
        let (name, default) = name.split_once(":-").unwrap_or((name, ""));
        let of = std::env::var(name).unwrap_or_else(|_| default.to_owned());
        out.replace_range(at..=at + length, &of.replace("${", ""));
    }
    vec![value.to_owned(), out]
}

/// Values of arguments that are called secrets: `--token x`, `--api-key=x`, `-e NAME=x`, `-H "Name: x"`, and those of URLs.
fn secrets_among(args: &[impl AsRef<str>]) -> Vec<String> {
    let mut found = Vec::new();
    let mut named = false;
    for arg in args.iter().map(AsRef::as_ref) {
        if std::mem::take(&mut named) && !arg.starts_with('-') {
            found.push(arg.to_owned());
        }
        let pair = arg.split_once('=').or_else(|| arg.split_once(": "));
        match pair {
            Some((name, value)) if is_secret(name) => found.push(value.to_owned()),
            _ => named = arg.starts_with('-') && is_secret(arg),
        }
        if arg.contains("://") {
            found.extend(secrets_of(arg));
        }
    }
    found
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
    let is_longer = ENDS.iter().any(|end| plain.ends_with(end)) && !PLACES.iter().any(|place| plain.ends_with(place));
    NAMES.contains(&plain.as_str()) || is_longer
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
    fn secrets_are_found_in_what_a_tool_tells() {
        let mut redaction = redaction();
        for (text, clean) in [
            (r#"{"text":"{\n \"OPENAI_API_KEY\": \"k1\"}"}"#, r#"{"text":"{\n \"OPENAI_API_KEY\": \"<secret-1>\"}"}"#),
            (r#"{"text":"X-Api-Key: abcdefgh12\n"}"#, r#"{"text":"X-Api-Key: <secret-2>\n"}"#),
            (r#"{"text":"env 'GITHUB_TOKEN': 'abcdefgh34'"}"#, r#"{"text":"env 'GITHUB_TOKEN': '<secret-3>'"}"#),
            (r#"{"canary/secret+value":1}"#, r#"{"<secret-4>":1}"#),
        ] {
            assert_eq!(redaction.json(text).as_deref(), Some(clean));
        }
        for same in [
            r#"{"_meta":{"progressToken":"abcdefgh56"},"nextPageToken":"abcdefgh78"}"#,
            r#"{"text":"Bearer resource_metadata=\"https://h/x\", the password: required; code=E1234567"}"#,
        ] {
            assert_eq!(redaction.json(same).as_deref(), Some(same));
        }
    }

    #[test]
    fn secrets_of_arguments_and_files_are_known() {
        let args =
            ["--port", "8000", "--api-key", "one-secret-1", "--token=two-secret-2", "-e", "DB_PASSWORD=three-secret"];
        assert_eq!(secrets_among(&args), ["one-secret-1", "two-secret-2", "three-secret"]);
        assert_eq!(secrets_among(&["-H", "X-Api-Key: four-secret", "https://h/?a=five"]), ["four-secret", "five"]);
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("mcp.json");
        let servers = json!({"mcpServers": {"a": {"command": "x", "env": {"A": "six-secret-6"}},
            "b": {"url": "https://h/?key=seven-secret", "headers": {"X": "Bearer eight-secret"}}}});
        std::fs::write(&file, servers.to_string()).expect("written");
        let mut redaction = Redaction::of_file(&file, &BTreeMap::new());
        assert_eq!(redaction.text("six-secret-6 seven-secret eight-secret"), "<secret-1> <secret-2> <secret-3>");
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
