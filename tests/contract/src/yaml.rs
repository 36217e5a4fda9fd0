//! The part of YAML that `tests/requirements.yaml` uses: a list of entries, each with plain
//! values, lists of plain values and maps of plain values. Anything else is an error, so that
//! the file stays what every YAML reader agrees on.

use crate::Outcome;
use std::collections::BTreeMap;

/// A member of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// `key: text`
    Text(String),
    /// `key:` and lines `    - text`
    List(Vec<String>),
    /// `key:` and lines `    name: text`
    Map(BTreeMap<String, String>),
}

/// One `- key: …` entry.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// Where it starts, from 1.
    pub line: usize,
    members: BTreeMap<String, Member>,
}

impl Entry {
    /// A plain value; empty when it is missing.
    pub fn text(&self, key: &str) -> &str {
        match self.members.get(key) {
            Some(Member::Text(text)) => text,
            _ => "",
        }
    }

    /// A list; empty when it is missing.
    pub fn list(&self, key: &str) -> &[String] {
        match self.members.get(key) {
            Some(Member::List(items)) => items,
            _ => &[],
        }
    }

    /// A value of a map.
    pub fn inner(&self, key: &str, name: &str) -> Option<&str> {
        match self.members.get(key) {
            Some(Member::Map(map)) => map.get(name).map(String::as_str),
            _ => None,
        }
    }

    /// The first member that is not among `known`.
    pub fn unknown(&self, known: &[&str]) -> Option<&str> {
        self.members.keys().map(String::as_str).find(|key| !known.contains(key))
    }
}

/// Read a list of entries.
pub fn read(text: &str) -> Outcome<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut open = None;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let bad = || format!("line {number}: not in the form this file has: {line:?}");
        let bare = line.trim_start();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        let depth = line.len() - bare.len();
        match depth {
            0 => {
                let rest = bare.strip_prefix("- ").ok_or_else(bad)?;
                entries.push(Entry { line: number, ..Entry::default() });
                open = member(&mut entries, rest).ok_or_else(bad)?;
            }
            2 => open = member(&mut entries, bare).ok_or_else(bad)?,
            4 => {
                let key: &String = open.as_ref().ok_or_else(bad)?;
                let entry = entries.last_mut().ok_or_else(bad)?;
                match (entry.members.get_mut(key), bare.strip_prefix("- ")) {
                    (Some(Member::List(items)), Some(item)) => items.push(plain(item).ok_or_else(bad)?),
                    (Some(Member::Map(map)), None) => {
                        let (name, value) = pair(bare).ok_or_else(bad)?;
                        map.insert(name, value);
                    }
                    (None, Some(item)) => {
                        let items = vec![plain(item).ok_or_else(bad)?];
                        entry.members.insert(key.clone(), Member::List(items));
                    }
                    (None, None) => {
                        entry.members.insert(key.clone(), Member::Map(BTreeMap::from([pair(bare).ok_or_else(bad)?])));
                    }
                    _ => return Err(bad()),
                }
            }
            _ => return Err(bad()),
        }
    }
    Ok(entries)
}

/// `key: text` or `key:`; in the second case the key that now waits for its lines.
fn member(entries: &mut [Entry], text: &str) -> Option<Option<String>> {
    let members = &mut entries.last_mut()?.members;
    if let Some(key) = text.strip_suffix(':').filter(|key| !key.contains(": ")) {
        return (!members.contains_key(key)).then(|| Some(key.to_owned()));
    }
    let (key, value) = pair(text)?;
    members.insert(key, Member::Text(value)).is_none().then_some(None)
}

fn pair(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once(": ")?;
    Some((key.to_owned(), plain(value)?))
}

/// A value that needs no YAML rules: `"…"` without escapes, or a text that starts harmlessly.
fn plain(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some(inner) = text.strip_prefix('"') {
        return inner.strip_suffix('"').filter(|inner| !inner.contains(['"', '\\'])).map(str::to_owned);
    }
    let first = ['[', '{', '&', '*', '!', '|', '>', '\'', '%', '@', '`', '?', '"'];
    let harmless = !text.starts_with(first) && !text.starts_with("- ") && !text.contains(": ") && !text.contains(" #");
    harmless.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_with_lists_and_maps() {
        let text = "# note\n- id: a\n  behaviour: \"one: two\"\n  tests:\n    - x y\n    - z\n  gaps:\n    swift: not yet\n\n- id: b\n";
        let entries = read(text).expect("reads");
        assert_eq!((entries[0].text("id"), entries[0].text("behaviour")), ("a", "one: two"));
        assert_eq!(entries[0].list("tests"), ["x y", "z"]);
        assert_eq!(entries[0].inner("gaps", "swift"), Some("not yet"));
        assert_eq!((entries[1].line, entries[1].text("id")), (10, "b"));
        assert_eq!(entries[0].unknown(&["id", "tests", "gaps"]), Some("behaviour"));
    }

    #[test]
    fn what_yaml_would_read_otherwise_is_refused() {
        for text in [
            "id: a",
            "- id: [a]",
            "- id: a: b",
            "- id: 'a'",
            "- id: a\n   x: y",
            "- id: a\n    - b",
            "- id: a\n  id: b",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
