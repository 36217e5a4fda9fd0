//! Differences for people, without the secrets that are in a configuration already.

use serde_json::Value;
use similar::TextDiff;

const MASK: &str = "•••";

/// A unified diff. Values of variables and headers that the file had are masked; those that the user gives now are not.
pub(super) fn unified(path: &str, old: &str, new: &str, values: &[Value], given: &Value) -> String {
    let mut known = Vec::new();
    let mut own = Vec::new();
    values.iter().for_each(|value| secrets(value, &mut known));
    secrets(given, &mut own);
    known.retain(|(_, value)| own.iter().all(|(_, own)| own != value));
    // Longer ones first, of which shorter ones may be a part.
    known.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    let diff = TextDiff::from_lines(old, new);
    let text = diff.unified_diff().context_radius(3).header(path, path).to_string();
    let lines = text.split_inclusive('\n').map(|line| shown(&mask(line, &known)));
    lines.collect()
}

fn mask(line: &str, known: &[(String, String)]) -> String {
    let mut line = line.to_owned();
    for (name, value) in known {
        let escaped = Value::from(value.as_str()).to_string();
        let escaped = &escaped[1..escaped.len() - 1];
        for form in [value.as_str(), escaped] {
            // Short values are no secrets to be found anywhere, but beside their names.
            if line.contains(form) && (form.len() >= 8 || line.contains(name.as_str())) {
                line = line.replace(form, MASK);
            }
        }
    }
    line
}

/// Values that are secret in an entry: those of variables and headers, and some of arguments and URLs.
fn secrets(value: &Value, all: &mut Vec<(String, String)>) {
    let Value::Object(members) = value else { return };
    for (name, member) in members {
        match (name.as_str(), member) {
            ("env" | "envs" | "headers" | "http_headers", Value::Object(values)) => {
                let texts = values.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
                all.extend(texts.filter(|(_, value)| !value.is_empty() && !is_placeholder(value)));
            }
            ("args", Value::Array(words)) => {
                let words: Vec<String> = words.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect();
                let masked = arguments(&words);
                all.extend(
                    words
                        .into_iter()
                        .zip(masked)
                        .filter(|(word, masked)| word != masked)
                        .map(|(word, _)| (word.clone(), word)),
                );
            }
            ("url" | "serverUrl" | "httpUrl" | "uri", Value::String(text)) if url(text) != *text => {
                all.push((name.clone(), text.clone()));
            }
            (_, inner) => secrets(inner, all),
        }
    }
}

fn is_placeholder(value: &str) -> bool {
    value.starts_with('$') || (value.contains("${") && value.ends_with('}'))
}

/// Arguments with those masked that are said to be secret by the option before them or by themselves.
pub(super) fn arguments(words: &[String]) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with('-') && ["token", "key", "secret", "password", "auth"].iter().any(|part| name.contains(part))
    };
    let mut hidden = false;
    let mut all = Vec::new();
    for word in words {
        let lower = word.to_ascii_lowercase();
        all.push(if std::mem::take(&mut hidden) && !word.starts_with('-') && !is_placeholder(word) {
            MASK.to_owned()
        } else if let Some((name, _)) =
            word.split_once('=').filter(|(name, value)| is_secret(name) && !is_placeholder(value))
        {
            format!("{name}={MASK}")
        } else if let Some(at) = lower.find("bearer ").filter(|at| !is_placeholder(&word[at + 7..])) {
            format!("{}{MASK}", word.get(..at + 7).unwrap_or_default())
        } else if let Some((name, _)) =
            word.split_once(": ").filter(|(name, value)| is_secret(&format!("-{name}")) && !is_placeholder(value))
        {
            format!("{name}: {MASK}")
        } else if word.contains("://") {
            url(word)
        } else {
            hidden = is_secret(word);
            word.clone()
        });
    }
    all
}

/// A URL without a password and without the values of its query.
pub(super) fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) if user.contains(':') => {
            format!("{}:{MASK}@{host}", user.split(':').next().unwrap_or_default())
        }
        _ => authority.to_owned(),
    };
    let query = query.map(|query| {
        let parts = query.split('&').map(|part| match part.split_once('=') {
            Some((name, value)) if !value.is_empty() && !is_placeholder(value) => format!("{name}={MASK}"),
            _ => part.to_owned(),
        });
        format!("?{}", parts.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}://{authority}{path}{}", query.unwrap_or_default())
}

/// A text without what a terminal would obey.
pub(super) fn shown(text: &str) -> String {
    let is_harmless = |letter: char| matches!(letter, '\n' | '\t') || !letter.is_control();
    // The end of a line of Windows is none of it.
    let text = text.strip_suffix("\r\n").map_or_else(|| text.to_owned(), |line| format!("{line}\n"));
    if text.chars().all(is_harmless) {
        return text;
    }
    let letters = text
        .chars()
        .map(|letter| if is_harmless(letter) { letter.to_string() } else { letter.escape_default().to_string() });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_words_are_masked() {
        let words = |line: &str| shlex::split(line).expect("words");
        let masked = |line: &str| arguments(&words(line)).join(" ");
        assert_eq!(masked("--api-key abcdef -v"), "--api-key ••• -v");
        assert_eq!(masked("--token=abcdef x"), "--token=••• x");
        assert_eq!(masked("--header 'Authorization: Bearer abc'"), "--header Authorization: Bearer •••");
        assert_eq!(masked("--header 'X-Api-Key: abc'"), "--header X-Api-Key: •••");
        assert_eq!(masked("--api-key ${input:key}"), "--api-key ${input:key}");
        assert_eq!(masked("https://u:p@example.com/a?key=1&b"), "https://u:•••@example.com/a?key=•••&b");
    }

    #[test]
    fn nothing_of_a_terminal_passes() {
        assert_eq!(shown("a\u{1b}[2Jb\r\n"), "a\\u{1b}[2Jb\n");
    }
}
