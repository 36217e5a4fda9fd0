//! Keys in a store of one's own: those of answers, and those of the marks that show changes.
//!
//! An answer names the marks' values that it was asked for under; a change writes other values. So nothing has to be
//! listed to be dropped, and an answer that was asked for before a change is not given after it, whichever process
//! asked and whichever heard of the change.

use super::answers::uri_of;
use super::digest;
use crate::store::CacheKey;

/// The version of names and texts. Entries of another one are not seen.
const FORMAT: &str = "tricorn:1";
/// Levels of a URI that are told apart: what is deeper changes together.
const MAX_LEVELS: usize = 8;
const READ: &str = "resources/read";

/// A server's names.
pub(super) struct Names {
    server: String,
}

impl Names {
    pub(super) fn new(target: &str) -> Self {
        Self { server: digest("server", [target]).chars().take(32).collect() }
    }

    /// Returns the key of an answer.
    pub(super) fn answer(&self, key: &CacheKey) -> String {
        let what = match &key.scope {
            Some(scope) => digest("private", [&**scope, key.params.as_str()]),
            None => digest("public", [key.params.as_str()]),
        };
        format!("{FORMAT}:{}:{}:{what}", self.server, key.method)
    }

    fn mark(&self, method: &str, kind: &str, of: &str) -> String {
        format!("{FORMAT}:{}:{method}:mark:{}", self.server, digest(kind, [of]))
    }

    /// The marks of which one is another as soon as what is asked for may have changed.
    pub(super) fn marks(&self, key: &CacheKey) -> Vec<String> {
        let method = key.method.as_ref();
        let uri = if method == READ { uri_of(&key.params).unwrap_or_default() } else { String::new() };
        let levels = levels(&uri);
        let mut marks = vec![self.mark(method, "itself", levels.last().copied().unwrap_or_default())];
        // Resources that it is a part of.
        let above = [""].into_iter().chain(levels.iter().copied()).take(levels.len());
        marks.extend(above.map(|level| self.mark(method, "above", level)));
        marks
    }

    /// The marks that a change of this resource makes others; without one, everything of the method has changed.
    pub(super) fn touched(&self, method: &str, uri: Option<&str>) -> Vec<String> {
        let levels = levels(uri.unwrap_or_default());
        let mut marks = vec![self.mark(method, "itself", "")];
        marks.extend(levels.iter().map(|level| self.mark(method, "itself", level)));
        if method == READ {
            marks.push(self.mark(method, "above", levels.last().copied().unwrap_or_default()));
        }
        marks
    }
}

/// A URI and what it is a part of, shortest first, without the slashes at the end.
fn levels(uri: &str) -> Vec<&str> {
    let ends = uri.match_indices('/').map(|(at, _)| &uri[..at]).chain([uri]);
    let mut levels: Vec<&str> =
        ends.map(|level| level.trim_end_matches('/')).filter(|level| !level.is_empty()).collect();
    levels.dedup();
    levels.truncate(MAX_LEVELS);
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn key(scope: Option<&str>, method: &'static str, params: &str) -> CacheKey {
        CacheKey { target: "t".into(), scope: scope.map(Into::into), method: method.into(), params: params.into() }
    }

    fn read(uri: &str) -> CacheKey {
        key(None, READ, &serde_json::json!({"uri": uri}).to_string())
    }

    #[test]
    fn levels_of_uris() {
        assert_eq!(levels("price://apple"), ["price:", "price://apple"]);
        assert_eq!(levels("file:///srv/shop/"), ["file:", "file:///srv", "file:///srv/shop"]);
        assert_eq!((levels("b://"), levels("/x"), levels("")), (vec!["b:"], vec!["/x"], vec![]));
        assert_eq!(levels("a:/1/2/3/4/5/6/7/8/9").last(), Some(&"a:/1/2/3/4/5/6/7"));
    }

    #[test]
    fn a_change_touches_what_it_is_about() {
        let names = Names::new("t");
        let uris = ["a://dir", "a://dir/1", "a://dir/1/x", "a://dir2", "b://", "b://thing", "a:", "urn:x", ""];
        for changed in uris {
            let touched: BTreeSet<_> = names.touched(READ, Some(changed)).into_iter().collect();
            for uri in uris {
                let is_dropped = names.marks(&read(uri)).iter().any(|mark| touched.contains(mark));
                let read = serde_json::json!({"uri": uri}).to_string();
                // More than there has to be: slashes at the end make no difference, and nothing is a part of "".
                let expected = super::super::answers::is_about(&read, changed)
                    || levels(uri).is_empty()
                    || levels(changed).is_empty()
                    || (uri, changed) == ("a:", "a://dir")
                    || levels(uri).contains(&levels(changed).last().copied().unwrap_or_default())
                    || levels(changed).contains(&levels(uri).last().copied().unwrap_or_default());
                assert_eq!(is_dropped, expected, "{changed}: {uri}");
            }
            assert!(names.marks(&key(None, "tools/list", "{}")).iter().all(|mark| !touched.contains(mark)));
        }
        let everything: BTreeSet<_> = names.touched(READ, None).into_iter().collect();
        assert!(uris.iter().all(|uri| names.marks(&read(uri)).iter().any(|mark| everything.contains(mark))));
        assert_eq!(names.touched("tools/list", None), names.marks(&key(Some("a"), "tools/list", "{\"cursor\":\"2\"}")));
    }

    #[test]
    fn names_are_the_same_in_every_process_and_version() {
        let names = Names::new("t");
        let answer = names.answer(&key(Some("ada"), "tools/list", "{}"));
        assert_eq!(
            answer,
            concat!(
                "tricorn:1:9022928e2a349f3a63042f3bb082a0fb:tools/list:",
                "21db087d742cba42d1ea00fa9550fdb2b8244367e91dc04c3cd2f3e7ce702725"
            )
        );
        let others = [key(None, "tools/list", "{}"), key(Some("bob"), "tools/list", "{}"), read("a://1")];
        let all: BTreeSet<_> = others.iter().map(|key| names.answer(key)).chain([answer]).collect();
        assert_eq!(all.len(), 4);
        let longest = names.marks(&key(None, "resources/templates/list", "{}"));
        assert!(longest.iter().all(|name| name.len() <= 160 && name.bytes().all(|b| (0x21..0x7f).contains(&b))));
    }
}
