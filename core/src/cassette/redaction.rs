//! Removal of secrets from what is written.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::Value;
use serde_json::value::RawValue;

/// Last words of names of members, variables, headers and parameters of a URL that hold secrets.
const WORDS: [&str; 14] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "key",
    "apikey",
    "authorization",
    "cookie",
    "assertion",
    "credential",
    "credentials",
    "signature",
];
/// Whole names, without the marks between their words.
const NAMES: [&str; 5] = ["code", "codeverifier", "sessionid", "sig", "jwt"];
/// Names that end like those of secrets, and belong to the protocol.
const PLAIN: [&str; 2] = ["progresstoken", "idempotencykey"];
/// Ends of names that say where somebody is rather than who.
const PLACES: [&str; 4] = ["pagetoken", "continuationtoken", "resumetoken", "synctoken"];
/// Names that mean something else in a sentence.
const COMMON: [&str; 5] = ["code", "sig", "signature", "assertion", "key"];
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
/// The most values that are known, and the deepest nesting of JSON in texts of JSON.
const MAX_KNOWN: usize = 1000;
const MAX_DEPTH: usize = 4;

/// Takes secrets out of texts. The same secret is the same mark everywhere, `<secret-1>`.
#[derive(Debug)]
pub struct Redaction {
    is_off: bool,
    /// Forms of values that are known, each with the value that it stands for; the longest first.
    known: Vec<(String, String)>,
    values: BTreeSet<String>,
    marks: BTreeMap<String, usize>,
}

impl Redaction {
    /// Knows these values, of at least 8 bytes, and those of this program's environment whose names are those of secrets.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let own = std::env::vars_os().filter_map(|(name, value)| {
            let is_named = name.to_str().is_some_and(Self::is_secret);
            is_named.then(|| value.into_string().ok()).flatten()
        });
        Self::knowing(values.into_iter().chain(own))
    }

    /// Takes nothing out.
    #[must_use]
    pub const fn off() -> Self {
        Self { is_off: true, known: Vec::new(), values: BTreeSet::new(), marks: BTreeMap::new() }
    }

    fn knowing(values: impl Iterator<Item = String>) -> Self {
        let mut made = Self { is_off: false, ..Self::off() };
        for value in values {
            // The scheme before a token is none.
            if let Some((_, word)) = value.split_once(' ') {
                made.learn(word);
            }
            made.learn(&value);
        }
        made
    }

    /// Looks for this value, too, from now on.
    pub fn learn(&mut self, value: &str) {
        if value.len() < KNOWN || self.values.len() >= MAX_KNOWN || !self.values.insert(value.to_owned()) {
            return;
        }
        self.known.extend(forms(value).into_iter().map(|form| (form, value.to_owned())));
        // One may be a part of another.
        self.known.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
    }

    /// True for the name of a member, a variable, a header or a parameter that holds a secret: its last word is token,
    /// secret, password, key or the like, as in `API_KEY`, `accessToken`, `X-Auth-Token`.
    #[must_use]
    pub fn is_secret(name: &str) -> bool {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        if PLAIN.contains(&plain.as_str()) || PLACES.iter().any(|place| plain.ends_with(place)) {
            return false;
        }
        NAMES.contains(&plain.as_str()) || WORDS.iter().any(|word| ends_with_word(name, &plain, word))
    }

    /// User, password and the values of the query of a URL.
    #[must_use]
    pub fn secrets_of(url: &str) -> Vec<String> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = host.rsplit_once('@').map(|(user, _)| user.to_owned());
        let query = rest.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let values = query.split(['&', '#']).filter_map(|pair| pair.split_once('=')).map(|(_, value)| value.to_owned());
        user.into_iter().chain(values).collect()
    }

    /// Values of arguments that are called secrets: `--token x`, `--api-key=x`, `-e NAME=x`, `-H "Name: x"`, and those of
    /// URLs.
    #[must_use]
    pub fn secrets_among(args: &[impl AsRef<str>]) -> Vec<String> {
        let mut found = Vec::new();
        let mut named = false;
        for arg in args.iter().map(AsRef::as_ref) {
            if std::mem::take(&mut named) && !arg.starts_with('-') {
                found.push(arg.to_owned());
            }
            let pair = arg.split_once('=').or_else(|| arg.split_once(": "));
            match pair {
                Some((name, value)) if Self::is_secret(name) => found.push(value.to_owned()),
                _ => named = arg.starts_with('-') && Self::is_secret(arg),
            }
            if arg.contains("://") {
                found.extend(Self::secrets_of(arg));
            }
        }
        found
    }

    fn mark(&mut self, secret: &str) -> String {
        let next = self.marks.len() + 1;
        format!("<secret-{}>", self.marks.entry(secret.to_owned()).or_insert(next))
    }

    /// A value that is secret by its name; elsewhere it is one, too, unless it may be a plain word.
    fn named(&mut self, secret: &str) -> String {
        if secret.len() >= WORD || secret.bytes().any(|byte| byte.is_ascii_digit()) {
            self.learn(secret);
        }
        self.mark(secret)
    }

    /// A text without secrets.
    pub fn text(&mut self, text: &str) -> String {
        self.text_within(text, 0)
    }

    fn text_within(&mut self, text: &str, depth: usize) -> String {
        if self.is_off {
            return text.to_owned();
        }
        // Servers say their data twice: as it is, and as text.
        if depth < MAX_DEPTH
            && text.trim_start().starts_with(['{', '['])
            && let Some(clean) = self.json_within(text, depth + 1)
        {
            return clean;
        }
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

    /// JSON text on one line without secrets; all else in it stays as it is spelt. `None` for what is no JSON.
    pub fn json(&mut self, text: &str) -> Option<String> {
        let clean = if self.is_off {
            serde_json::from_str::<&RawValue>(text).ok()?;
            text.to_owned()
        } else {
            self.json_within(text, 0)?
        };
        // In JSON breaks stand between its parts only.
        Some(clean.replace(['\n', '\r'], " "))
    }

    fn json_within(&mut self, text: &str, depth: usize) -> Option<String> {
        serde_json::from_str::<&RawValue>(text).ok()?;
        let mut out = String::with_capacity(text.len());
        // Of each open array and object: its texts are secret, as the name of the array says.
        let (mut rest, mut name, mut open) = (text, None::<String>, Vec::<bool>::new());
        while let Some(at) = rest.find('"') {
            let (before, begun) = rest.split_at(at);
            for byte in before.bytes() {
                match byte {
                    b'[' => {
                        let is_secret =
                            name.take().map_or_else(|| open.last() == Some(&true), |name| Self::is_secret(&name));
                        open.push(is_secret);
                    }
                    b'{' => {
                        name = None;
                        open.push(false);
                    }
                    b'}' | b']' => drop(open.pop()),
                    // Nothing but a colon comes between a name and its value.
                    b',' => name = None,
                    _ => {}
                }
            }
            out.push_str(before);
            let (quoted, after) = begun.split_at(length_of(begun));
            let value: String = serde_json::from_str(quoted).unwrap_or_default();
            if after.trim_start().starts_with(':') {
                // A name is no JSON, but it may be a secret that is known.
                let clean = self.text_within(&value, MAX_DEPTH);
                match clean == value {
                    true => out.push_str(quoted),
                    false => out.push_str(&Value::String(clean).to_string()),
                }
                name = Some(value);
            } else {
                let is_named = name.take().map_or_else(|| open.last() == Some(&true), |name| Self::is_secret(&name));
                let clean = match is_named && !value.is_empty() {
                    true => self.named(&value),
                    false => self.text_within(&value, depth),
                };
                if clean == value {
                    out.push_str(quoted);
                } else {
                    out.push_str(&Value::String(clean).to_string());
                }
            }
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
        return Redaction::is_secret(&name) && (is_of_query || !is_common(&name));
    }
    // A sentence may go on after a colon: a secret is longer than its words are.
    let is_long = word.len() >= KNOWN && (word.len() >= 20 || word.bytes().any(|byte| byte.is_ascii_digit()));
    let quotes = ['"', '\'', '\\'];
    let Some(before) = before.trim_end_matches(quotes).trim_end().strip_suffix(':') else { return false };
    let name = name(before.trim_end_matches(quotes));
    is_long && Redaction::is_secret(&name) && !is_common(&name)
}

/// Returns true if the last word of a name is this one: `api_key` and `apiKey`, but not `monkey`.
fn ends_with_word(name: &str, plain: &str, word: &str) -> bool {
    if !plain.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with(word) {
        return false;
    }
    if word.len() > 3 || plain == word {
        return true;
    }
    let name = name.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    let Some(begin) = name.len().checked_sub(word.len()).filter(|at| name.is_char_boundary(*at)) else { return false };
    let (before, last) = name.split_at(begin);
    before.ends_with(|c: char| !c.is_ascii_alphanumeric())
        || last.starts_with(|c: char| c.is_ascii_uppercase()) && before.ends_with(|c: char| !c.is_ascii_uppercase())
        || ["api", "secret", "private", "access", "auth"].iter().any(|kind| before.to_ascii_lowercase().ends_with(kind))
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "canary/secret+value";

    fn redaction() -> Redaction {
        Redaction::knowing([SECRET.to_owned(), "short".to_owned()].into_iter())
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
    fn names_and_shapes_of_secrets_are_taken_out() {
        let mut redaction = redaction();
        for (text, clean) in [
            ("Authorization: Bearer abcdefgh.12", "Authorization: Bearer <secret-1>"),
            ("ghp_0123456789abcdef0123 x", "<secret-2> x"),
            (
                "https://ada:pass@example.com/a?page=2&api_key=xyz",
                "https://<secret-4>@example.com/a?page=2&api_key=<secret-3>",
            ),
            ("sk-short, page=2", "sk-short, page=2"),
            ("password: of the user", "password: of the user"),
            ("password: hunter2x", "password: <secret-5>"),
        ] {
            assert_eq!(redaction.text(text), clean);
        }
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
    fn secrets_of_arguments_are_known() {
        let args =
            ["--port", "8000", "--api-key", "one-secret-1", "--token=two-secret-2", "-e", "DB_PASSWORD=three-secret"];
        assert_eq!(Redaction::secrets_among(&args), ["one-secret-1", "two-secret-2", "three-secret"]);
        assert_eq!(
            Redaction::secrets_among(&["-H", "X-Api-Key: four-secret", "https://h/?a=five"]),
            ["four-secret", "five"]
        );
    }

    #[test]
    fn names_are_read_by_their_last_word() {
        for name in [
            "token",
            "API_KEY",
            "apiKey",
            "apikey",
            "X-Auth-Token",
            "accessToken",
            "client_secret",
            "key",
            "Cookie",
            "KEY",
        ] {
            assert!(Redaction::is_secret(name), "{name}");
        }
        for name in ["progressToken", "monkey", "tokens_used", "name", "keyword", "turkey", "secretary"] {
            assert!(!Redaction::is_secret(name), "{name}");
        }
    }

    #[test]
    fn messages_keep_their_spelling() {
        let mut redaction = redaction();
        let message = r#"{"id":1, "params":{"password":"x","n":1.50,"big":12345678901234567890,"code":-32600,"token":{"a":"b"},"list":["x","y"],"apiKey": "z","tokens":["t"],"token":["u","v"]}}"#;
        let clean = r#"{"id":1, "params":{"password":"<secret-1>","n":1.50,"big":12345678901234567890,"code":-32600,"token":{"a":"b"},"list":["x","y"],"apiKey": "<secret-2>","tokens":["t"],"token":["<secret-3>","<secret-4>"]}}"#;
        assert_eq!(redaction.json(message).as_deref(), Some(clean));
        assert_eq!(redaction.json("{\n\"a\": 1}").as_deref(), Some("{ \"a\": 1}"));
        assert!(redaction.json("no JSON").is_none());
    }

    #[test]
    fn a_secret_by_name_is_one_everywhere_and_in_texts_of_json() {
        let mut redaction = redaction();
        let result = r#"{"content":[{"type":"text","text":"{\"token\": \"abcdefgh12\"}"}],"structuredContent":{"said":"abcdefgh12!"}}"#;
        let clean = r#"{"content":[{"type":"text","text":"{\"token\": \"<secret-1>\"}"}],"structuredContent":{"said":"<secret-1>!"}}"#;
        assert_eq!(redaction.json(result).as_deref(), Some(clean));
        assert_eq!(Redaction::off().json(result).as_deref(), Some(result));
    }
}
