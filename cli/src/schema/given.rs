//! Arguments as they are given on the command line.

use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome};

/// The longest file or standard input that arguments are read from, in bytes.
const MAX_BYTES: u64 = 32 << 20;

/// Arguments as they were given: texts for the schema to make values of, values as JSON, and whole objects.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(super) texts: Vec<(String, Vec<String>)>,
    pub(super) values: Vec<(String, Value)>,
    pub(super) whole: Map<String, Value>,
}

impl Given {
    /// Reads `KEY=VALUE`, `KEY:=JSON`, `KEY=@FILE`, `KEY:=@FILE`, `@FILE` and a JSON object; `@-` is standard input.
    pub(crate) fn read(words: &[String]) -> Outcome<Self> {
        let mut given = Self::default();
        for word in words {
            if let Some(path) = word.strip_prefix('@') {
                given.whole.extend(object(path)?);
                continue;
            }
            if word.trim_start().starts_with('{') {
                given.whole.extend(members(word, "argument")?);
                continue;
            }
            let Some((name, value)) = word.split_once('=') else {
                let hint = "expected KEY=VALUE, KEY:=JSON or @FILE.json";
                return Err(Failure::misuse(format!("argument {word:?}: {hint}")));
            };
            match name.strip_suffix(':') {
                Some(name) => {
                    let text = match value.strip_prefix('@') {
                        Some(path) => file(path)?,
                        None => value.to_owned(),
                    };
                    let value = serde_json::from_str(&text)
                        .map_err(|error| Failure::misuse(format!("argument {name:?}: not JSON: {error}")))?;
                    given.values.push((named(name, word)?, value));
                }
                None => {
                    let text = match value.strip_prefix('@').filter(|path| *path == "-" || is_read(path)) {
                        Some(path) => file(path)?,
                        None if names_file(value) => {
                            let hint = format!("there is no such file; for the text itself: {name}:='\"{value}\"'");
                            return Err(Failure::misuse(format!("{value}: {hint}")));
                        }
                        None => value.to_owned(),
                    };
                    let name = named(name, word)?;
                    match given.texts.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, texts)) => texts.push(text),
                        None => given.texts.push((name, vec![text])),
                    }
                }
            }
        }
        Ok(given)
    }

    /// The texts alone, for what takes nothing else; `what` names it.
    pub(crate) fn into_texts(self, what: &str) -> Outcome<Map<String, Value>> {
        let mut all = Map::new();
        let whole = self.whole.into_iter().chain(self.values);
        for (name, value) in whole {
            let text = match value {
                Value::Null => return Err(Failure::misuse(format!("{what}: {name}: expected a text, got null"))),
                Value::String(text) => text,
                // As the server reads it: 4, true, [1,2].
                other => other.to_string(),
            };
            all.insert(name, text.into());
        }
        for (name, texts) in self.texts {
            let [text] = <[String; 1]>::try_from(texts)
                .map_err(|_| Failure::misuse(format!("{what}: {name}: it is given more than once")))?;
            all.insert(name, text.into());
        }
        Ok(all)
    }
}

/// Splits `KEY=VALUE`.
pub(crate) fn pair(word: &str) -> Outcome<(&str, &str)> {
    let found = word.split_once('=').filter(|(name, _)| !name.is_empty());
    found.ok_or_else(|| Failure::misuse(format!("argument {word:?}: expected KEY=VALUE")))
}

fn named(name: &str, word: &str) -> Outcome<String> {
    match name.is_empty() {
        true => Err(Failure::misuse(format!("argument {word:?}: expected a name before \"=\""))),
        false => Ok(name.to_owned()),
    }
}

fn object(path: &str) -> Outcome<Map<String, Value>> {
    members(&file(path)?, &format!("@{path}"))
}

/// The members of an object as JSON; `what` names it.
fn members(text: &str, what: &str) -> Outcome<Map<String, Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(Failure::misuse(format!("{what}: expected a JSON object"))),
        Err(error) => Err(Failure::misuse(format!("{what}: not JSON: {error}"))),
    }
}

/// The text of a file, of standard input for `-`.
fn file(path: &str) -> Outcome<String> {
    let wrong = |why: &dyn std::fmt::Display| Failure::misuse(format!("@{path}: {why}"));
    let mut text = String::new();
    let read = match path {
        "-" => std::io::stdin().lock().take(MAX_BYTES + 1).read_to_string(&mut text),
        _ => std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text)),
    };
    match read {
        Ok(bytes) if bytes as u64 > MAX_BYTES => Err(wrong(&"longer than 32 MiB")),
        // As some editors write it.
        Ok(_) if text.starts_with('\u{feff}') => Ok(text.split_off('\u{feff}'.len_utf8())),
        Ok(_) => Ok(text),
        Err(error) => Err(wrong(&error)),
    }
}

/// Returns true for whatever there is to read: a file, a pipe of the shell's `<(…)`, a device.
fn is_read(path: &str) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_dir())
}

/// Returns true for `@notes/today.txt` and `@data.json`, which were hardly meant as texts; `@ada` and `@example.com` may be.
fn names_file(value: &str) -> bool {
    const ENDS: [&str; 16] = [
        "csv", "gif", "htm", "html", "jpeg", "jpg", "json", "md", "pdf", "png", "svg", "toml", "txt", "xml", "yaml",
        "yml",
    ];
    let Some(path) = value.strip_prefix('@').filter(|path| !path.contains(char::is_whitespace)) else { return false };
    let ends = |end: &std::ffi::OsStr| ENDS.iter().any(|known| end.eq_ignore_ascii_case(known));
    path.starts_with(['/', '.']) || Path::new(path).extension().is_some_and(ends)
}
