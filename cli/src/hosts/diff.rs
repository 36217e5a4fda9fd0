//! Differences for people, without the secrets that are in a configuration already.

use diffy::DiffOptions;
use serde_json::Value;

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
    let mut options = DiffOptions::new();
    options.set_original_filename(path.to_owned()).set_modified_filename(path.to_owned());
    let text = options.create_patch(old, new).to_string();
    let lines = text.split_inclusive('\n').map(|line| {
        let line = mask(line, &known);
        // A file may spell a value in another way; lines that are added are spelt by us.
        let line =
            if line.starts_with('+') { line } else { known.iter().fold(line, |line, (name, _)| member(line, name)) };
        shown(&line)
    });
    lines.collect()
}

fn mask(line: &str, known: &[(String, String)]) -> String {
    let mut line = line.to_owned();
    for (name, value) in known {
        let escaped = Value::from(value.as_str()).to_string();
        let escaped = &escaped[1..escaped.len() - 1];
        for form in [value.as_str(), escaped] {
            // Short values, words and paths are no secrets to be found anywhere, but beside their names.
            let is_secret = form.len() >= 8 && !is_plain(form);
            if line.contains(form) && (is_secret || line.contains(name.as_str())) {
                line = line.replace(form, MASK);
            }
        }
    }
    line
}

/// True for a path, or a word such as `production`: masked beside their names alone.
fn is_plain(value: &str) -> bool {
    let is_path = ["/", "./", "../", "~/"].iter().any(|begin| value.starts_with(begin))
        || value.as_bytes().get(1..3).is_some_and(|drive| drive == b":\\");
    let is_word = value.len() < 16 && value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    (is_path && !value.contains(['@', '='])) || is_word
}

/// A line with the text masked that a member of JSON with this name has.
fn member(line: String, name: &str) -> String {
    let quoted = format!("\"{name}\"");
    let Some(at) = line.find(&quoted).map(|at| at + quoted.len()) else { return line };
    let rest = &line[at..];
    let Some(open) = rest.find('"').filter(|open| rest[..*open].trim() == ":") else { return line };
    let text = &rest[open + 1..];
    let mut escaped = false;
    let end = text.char_indices().find(|(_, letter)| {
        let ends = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        ends
    });
    match end {
        Some((end, _)) if !is_placeholder(&text[..end]) && end > 0 => {
            format!("{}{}{MASK}{}", &line[..at], &rest[..=open], &text[end..])
        }
        _ => line,
    }
}

/// A value with its secrets masked, but those that the user gives now.
pub(super) fn masked(value: &Value, given: &Value) -> Value {
    let (mut known, mut own) = (Vec::new(), Vec::new());
    secrets(value, &mut known);
    secrets(given, &mut own);
    known.retain(|(_, value)| own.iter().all(|(_, own)| own != value));
    let mut masked = value.clone();
    hide(&mut masked, &known);
    masked
}

fn hide(value: &mut Value, known: &[(String, String)]) {
    match value {
        Value::String(text) if known.iter().any(|(_, known)| known == text) => MASK.clone_into(text),
        Value::Array(all) => all.iter_mut().for_each(|value| hide(value, known)),
        Value::Object(all) => all.values_mut().for_each(|value| hide(value, known)),
        _ => {}
    }
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
            (name, Value::String(text)) if is_secret(name) && !text.is_empty() && !is_placeholder(text) => {
                all.push((name.to_owned(), text.clone()));
            }
            (_, inner) => secrets(inner, all),
        }
    }
}

fn is_placeholder(value: &str) -> bool {
    value.starts_with('$') || (value.contains("${") && value.ends_with('}'))
}

/// True for the name of an option, a variable, a header or a member whose value is a secret.
fn is_secret(name: &str) -> bool {
    const PARTS: [&str; 8] = ["token", "key", "secret", "password", "passwd", "auth", "credential", "cookie"];
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
    PARTS.iter().any(|part| name.contains(part)) || words.any(|word| matches!(word, "pat" | "pwd" | "pass"))
}

/// Arguments with those masked that are said to be secret by the option before them or by themselves.
pub(super) fn arguments(words: &[String]) -> Vec<String> {
    let mut before = "";
    let mut all = Vec::new();
    for word in words {
        all.push(argument(std::mem::replace(&mut before, word), word));
    }
    all
}

/// One of them, after another.
fn argument(before: &str, word: &str) -> String {
    if let Some((option @ ("--header" | "--env"), value)) = word.split_once('=') {
        return format!("{option}={}", argument(option, value));
    }
    let masked = |name: &str, between: &str, value: &str| {
        (!value.is_empty() && !is_placeholder(value)).then(|| format!("{name}{between}{MASK}"))
    };
    let header = || {
        let (name, value) =
            word.split_once(':').filter(|(name, value)| !name.contains('/') && !value.starts_with("//"))?;
        let text = value.trim_start();
        Some((name, &word[name.len()..word.len() - text.len()], text))
    };
    let found = match before {
        "-H" | "--header" => header().and_then(|(name, between, value)| masked(name, between, value)),
        "-e" | "--env" => word.split_once('=').and_then(|(name, value)| masked(name, "=", value)),
        _ if before.starts_with('-') && !before.contains('=') && is_secret(before) && !word.starts_with('-') => {
            masked("", "", word)
        }
        _ => None,
    };
    let named = || {
        let (name, value) = word.split_once('=').filter(|(name, _)| is_secret(name) && !name.contains("://"))?;
        masked(name, "=", value)
    };
    let bearer = || {
        let at = word.to_ascii_lowercase().find("bearer ")? + "bearer ".len();
        masked(word.get(..at)?, "", word.get(at..)?)
    };
    let of_header = || {
        let (name, between, value) = header().filter(|(name, ..)| is_secret(name))?;
        masked(name, between, value)
    };
    let all = bearer().or(found).or_else(named).or_else(of_header);
    all.unwrap_or_else(|| if word.contains("://") { url(word) } else { word.to_owned() })
}

/// A URL without a password and without the values of its query.
pub(super) fn url(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:{MASK}@{host}"),
            None => format!("{MASK}@{host}"),
        },
        None => authority.to_owned(),
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

/// The same on one line.
pub(super) fn one_line(text: &str) -> String {
    crate::output::one_line(text)
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
        assert_eq!(masked("docker run -e GITHUB_PAT=abc x"), "docker run -e GITHUB_PAT=••• x");
        assert_eq!(masked("--header X-Thing:abc"), "--header X-Thing:•••");
        assert_eq!(masked("--header=X-Thing:abc"), "--header=X-Thing:•••");
        assert_eq!(masked("env API_KEY=abc node x.js"), "env API_KEY=••• node x.js");
        assert_eq!(masked("https://abc@example.com/a"), "https://•••@example.com/a");
        assert_eq!(masked("-y pkg --path /a/b key"), "-y pkg --path /a/b key");
        assert_eq!(masked("https://u:p@example.com/a?key=1&b"), "https://u:•••@example.com/a?key=•••&b");
    }

    #[test]
    fn secrets_in_lines_are_masked_however_they_are_spelt() {
        let line = r#"  "K": "se\/cr\"et", "L": "x""#;
        assert_eq!(member(line.to_owned(), "K"), r#"  "K": "•••", "L": "x""#);
        assert_eq!(member(line.to_owned(), "M"), line);
        let value = serde_json::json!({"env": {"A": "old", "B": "new"}, "args": ["--token=abc", "x"]});
        let given = serde_json::json!({"env": {"B": "new"}});
        assert_eq!(
            super::masked(&value, &given),
            serde_json::json!({"env": {"A": "•••", "B": "new"}, "args": ["•••", "x"]})
        );
    }

    #[test]
    fn words_and_paths_are_shown_where_they_are_no_values_of_variables() {
        let secrets = serde_json::json!({"env": {
            "NODE_ENV": "production", "N": "1", "VIRTUAL_ENV": "/srv/ada/.venv", "TOKEN": "abc123def456",
        }});
        let old = "\"NODE_ENV\": \"production\",\n\"TOKEN\": \"abc123def456\",\n";
        let new = format!(
            "{old}\"production\": {{\"command\": \"/srv/ada/.venv/bin/python\", \"args\": [\"abc123def456\"]}}\n"
        );
        let diff = unified("mcp.json", old, &new, &[secrets], &serde_json::json!({}));
        assert!(diff.contains("+\"production\": {\"command\": \"/srv/ada/.venv/bin/python\""), "{diff}");
        assert!(!diff.contains("abc123def456") && diff.contains("\"NODE_ENV\": \"•••\""), "{diff}");
    }

    #[test]
    fn nothing_of_a_terminal_passes() {
        assert_eq!(shown("a\u{1b}[2Jb\r\n"), "a\\u{1b}[2Jb\n");
    }
}
