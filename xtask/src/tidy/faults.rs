//! `tests/faults.yaml`: each fault that was found in use has tests, and each of these exists.

use super::Tree;
use serde::Deserialize;
use std::collections::BTreeMap;

const LIST: &str = "tests/faults.yaml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fault {
    kind: String,
    /// `file::name`; the name is text of the file.
    #[serde(default)]
    tests: Option<Vec<String>>,
    /// The reason why there is no test yet.
    #[serde(default)]
    later: Option<String>,
}

/// No fault without a test or a reason, no test that is not there, no number left out.
pub(super) fn listed(tree: &Tree) -> Vec<String> {
    let Some(list) = tree.files.iter().find(|f| f.path == LIST) else { return vec![format!("there is no {LIST}")] };
    let faults: BTreeMap<String, Fault> = match serde_yaml_ng::from_str(&list.text) {
        Ok(faults) => faults,
        Err(error) => return vec![format!("{LIST}: {error}")],
    };
    let mut found = missing(tree, &faults);
    for (id, fault) in &faults {
        let tests = fault.tests.as_deref().unwrap_or_default();
        if fault.kind.trim().is_empty() {
            found.push(format!("{LIST}: {id} has no kind"));
        }
        if tests.is_empty() && fault.later.as_deref().is_none_or(|why| why.trim().is_empty()) {
            found.push(format!("{LIST}: {id} has neither tests nor a reason (later)"));
        }
        found.extend(tests.iter().filter_map(|test| Some(format!("{LIST}: {id}: {}", absent(tree, test)?))));
    }
    found
}

/// Ids that the rules count and the list does not have, and the other way round.
fn missing(tree: &Tree, faults: &BTreeMap<String, Fault>) -> Vec<String> {
    let counted = |(family, most): (&String, &usize)| (1..=*most).map(|n| format!("{family}-{n}")).collect::<Vec<_>>();
    let wanted: Vec<String> = tree.rules.faults.iter().flat_map(counted).collect();
    let left_out = wanted.iter().filter(|id| !faults.contains_key(*id)).map(|id| format!("{LIST}: there is no {id}"));
    let unknown = faults.keys().filter(|id| !wanted.contains(id));
    left_out.chain(unknown.map(|id| format!("xtask/tidy.toml: [faults] does not count {id}"))).collect()
}

/// The reason why this is no test of the tree.
fn absent(tree: &Tree, test: &str) -> Option<String> {
    let Some((path, name)) = test.split_once("::").filter(|(_, name)| !name.trim().is_empty()) else {
        return Some(format!("{test:?} is not of the form file::name"));
    };
    match tree.files.iter().find(|f| f.path == path) {
        None => Some(format!("there is no file {path}")),
        Some(file) if !file.text.contains(name) => Some(format!("{path} has no {name:?}")),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::super::source::Source;
    use super::*;

    fn said(list: &str) -> Vec<String> {
        let file = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
        let rules = Rules { faults: BTreeMap::from([("AB".to_owned(), 2)]), ..Rules::default() };
        listed(&Tree { rules, files: vec![file(LIST, list), file("a.rs", "fn it_works() {}")] })
    }

    #[test]
    fn each_fault_has_a_test_that_is_there() {
        let good = "AB-1:\n  kind: x\n  tests:\n    - a.rs::it_works\nAB-2:\n  kind: y\n  tests:\n  later: \"next\"\n";
        assert_eq!(said(good), Vec::<String>::new());
        assert_eq!(said(&good.replace("it_works", "it_fails")), ["tests/faults.yaml: AB-1: a.rs has no \"it_fails\""]);
        assert_eq!(said(&good.replace("a.rs", "b.rs")), ["tests/faults.yaml: AB-1: there is no file b.rs"]);
        assert_eq!(said(&good.replace("\n  later: \"next\"", "")).len(), 1, "neither tests nor a reason");
        assert_eq!(said(&good.replace("AB-2", "AB-3")).len(), 2, "one is missing, one is not counted");
        assert_eq!(said(&good.replace("a.rs::it_works", "it_works")).len(), 1, "no file is named");
    }
}
