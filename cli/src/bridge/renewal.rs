//! Entries of a server before and after it was started anew.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tricorn::protocol::Kind;

use super::behind::Behind;
use crate::output::one_line;

/// Differences that are told; more are counted.
const TOLD: usize = 12;

/// Definitions by kind and name.
#[derive(Clone, Default)]
pub(super) struct Offers(BTreeMap<(&'static str, String), Map<String, Value>>);

impl Offers {
    /// Asks a server for its lists. One that it does not have, or that fails, is empty.
    pub(super) async fn of(behind: &Behind) -> Self {
        let mut offers = BTreeMap::new();
        for kind in Kind::ALL {
            for entry in behind.list(kind).await {
                let name = entry.get(key(kind)).and_then(Value::as_str).unwrap_or_default().to_owned();
                offers.insert((kind.as_str(), name), entry);
            }
        }
        Self(offers)
    }

    /// Returns the kinds whose lists differ in `after`, and what differs: `+` is new, `-` is gone, `~` is another.
    pub(super) fn differences(&self, after: &Self) -> (Vec<Kind>, Vec<String>) {
        let gone = self.0.keys().filter(|key| !after.0.contains_key(key)).map(|key| ('-', key));
        let others = after.0.iter().filter_map(|(key, entry)| match self.0.get(key) {
            None => Some(('+', key)),
            Some(before) => (before != entry).then_some(('~', key)),
        });
        let all: Vec<_> = gone.chain(others).collect();
        let kinds = Kind::ALL.into_iter().filter(|kind| all.iter().any(|(_, (of, _))| *of == kind.as_str()));
        let said = |(sign, (kind, name)): &(char, &(&str, String))| {
            format!("{sign} {} {}", kind.replace('_', " "), one_line(name))
        };
        let mut words: Vec<_> = all.iter().take(TOLD).map(said).collect();
        if all.len() > TOLD {
            words.push(format!("{} more", all.len() - TOLD));
        }
        (kinds.collect(), words)
    }
}

/// The member of a definition that names it.
const fn key(kind: Kind) -> &'static str {
    match kind {
        Kind::Resource => "uri",
        Kind::ResourceTemplate => "uriTemplate",
        _ => "name",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_the_kinds_whose_lists_have_changed() {
        let offers = |given: &[(&'static str, &str, &str)]| {
            let entry = |text: &str| Map::from_iter([("description".to_owned(), Value::from(text))]);
            Offers(given.iter().map(|(kind, name, text)| ((*kind, (*name).to_owned()), entry(text))).collect())
        };
        let before =
            offers(&[("tool", "add", "a"), ("tool", "sub", "s"), ("prompt", "hello", "h"), ("resource", "r", "")]);
        let after = offers(&[("tool", "add", "b"), ("tool", "mul", "m"), ("resource", "r", "")]);
        let (kinds, words) = before.differences(&after);
        assert_eq!(kinds, [Kind::Tool, Kind::Prompt]);
        assert_eq!(words, ["- prompt hello", "- tool sub", "~ tool add", "+ tool mul"]);
        assert_eq!(after.differences(&after).1, Vec::<String>::new());
        let many: Vec<_> = (0..20).map(|n| format!("t{n}")).collect();
        let many: Vec<_> = many.iter().map(|name| ("tool", name.as_str(), "")).collect();
        assert_eq!(Offers::default().differences(&offers(&many)).1.last().map(String::as_str), Some("8 more"));
    }
}
