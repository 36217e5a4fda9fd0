//! Check that everything in `tests/deprecated.toml` is marked in the sources, and nothing else is.

use super::Tree;
use super::source::Source;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Path of the list.
const LIST: &str = "tests/deprecated.toml";
/// Folders that offer features which the specification has deprecated.
const OFFERED: [&str; 4] =
    ["core/src/", "bindings-python/python/", "bindings-node/lib/", "bindings-swift/Sources/Tricorn/"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Feature {
    since: String,
    removal: String,
    note: String,
    /// Beginnings of the declarations, by file.
    marked: BTreeMap<String, Vec<String>>,
}

pub(super) fn marks(tree: &Tree) -> Vec<String> {
    let Some(list) = tree.files.iter().find(|file| file.path == LIST) else {
        return vec![format!("{LIST}: missing")];
    };
    let features: BTreeMap<String, Feature> = match toml::from_str(&list.text) {
        Ok(features) => features,
        Err(error) => return vec![format!("{LIST}: {error}")],
    };
    let mut found = Vec::new();
    for (name, feature) in &features {
        if !feature.note.contains(&format!("MCP {} deprecates", feature.since)) || feature.removal.is_empty() {
            found.push(format!("{LIST}: [{name}]: the note begins with the revision, and there is a removal"));
        }
        for path in feature.marked.keys().filter(|path| !tree.files.iter().any(|file| file.path == **path)) {
            found.push(format!("{LIST}: [{name}]: there is no file {path}"));
        }
        for file in OFFERED.iter().flat_map(|folder| tree.under(folder)) {
            let listed = feature.marked.get(&file.path).map_or(&[][..], Vec::as_slice);
            found.extend(unmarked(name, feature, file, listed));
        }
    }
    found
}

fn unmarked(name: &str, feature: &Feature, file: &Source, listed: &[String]) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    let mut declared = 0;
    for item in listed {
        let places: Vec<usize> = (0..lines.len()).filter(|at| declares(lines[*at], item, file.extension())).collect();
        if places.is_empty() {
            found.push(format!("{}: {item:?} of {LIST} is not there", file.path));
        }
        declared += places.len();
        for at in places {
            let text = around(&lines, at, file.extension());
            let mark = match file.extension() {
                "rs" => "#[deprecated(",
                "swift" => "@available(",
                "ts" => "* @deprecated ",
                // A constant is what a mark says.
                _ if item.chars().all(|c| c.is_ascii_uppercase() || c == '_') => " = ",
                _ if item.ends_with(": ") => "Deprecated: ",
                _ => "@deprecated(",
            };
            if !text.contains(mark) || !text.contains(&feature.note) {
                found.push(format!("{}:{}: {item:?} is not marked as {LIST} has [{name}]", file.path, at + 1));
            }
        }
    }
    let noted = file.text.matches(&feature.note).count();
    if noted > declared {
        found.push(format!("{}: more is marked than {LIST} has in [{name}]", file.path));
    }
    found
}

/// Returns true if a line begins that declaration.
fn declares(line: &str, item: &str, extension: &str) -> bool {
    let Some(rest) = line.trim_start().strip_prefix(item) else { return false };
    if extension == "py" && item.ends_with(": ") {
        // An option, and no parameter of a function.
        return line.starts_with(&format!("    {item}"));
    }
    let is_whole = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    match extension {
        // A call looks like a method, but for its end.
        "ts" if !item.starts_with("readonly ") => rest.starts_with('(') && (rest.ends_with('{') || rest.ends_with('(')),
        _ => is_whole,
    }
}

/// A declaration with what belongs to it: attributes and decorators, its comment in TypeScript, its docstring in Python.
fn around(lines: &[&str], at: usize, extension: &str) -> String {
    let begins = |line: &str, words: &[&str]| words.iter().any(|word| line.trim_start().starts_with(word));
    let mut from = at;
    if extension == "ts" {
        while from > 0 && !begins(lines[from], &["/**"]) && (from == at || begins(lines[from], &["*"])) {
            from -= 1;
        }
    } else {
        while from > 0 && begins(lines[from - 1], &["#[", "///", "@", "note =", "*, deprecated", "message:", ")"]) {
            from -= 1;
        }
    }
    let mut to = at;
    if extension == "py" && lines.get(at + 1).is_some_and(|line| begins(line, &["\"\"\""])) {
        let mut quotes = 0;
        while quotes < 2 && to + 1 < lines.len() {
            to += 1;
            quotes += lines[to].matches("\"\"\"").count();
        }
    }
    lines[from..=to].join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::*;

    const NOTE: &str = "MCP 2026-07-28 deprecates roots: do without";

    fn found(files: &[(&str, &str)], marked: &str) -> Vec<String> {
        let list = format!(
            "[roots]\nsince = \"2026-07-28\"\nremoval = \"later\"\nnote = \"{NOTE}\"\n[roots.marked]\n{marked}\n"
        );
        let mut all = vec![(LIST, &*list)];
        all.extend(files);
        let files = all.iter().map(|(path, text)| Source { path: (*path).into(), text: (*text).into() }).collect();
        marks(&Tree { rules: Rules::default(), files })
    }

    #[test]
    fn what_is_listed_is_marked_natively() {
        let rust = format!("#[deprecated(\n    note = \"{NOTE}\"\n)]\npub fn roots() {{}}\n");
        let python = format!("class A:\n    roots: int\n    \"\"\"Some.\n\n    Deprecated: {NOTE}.\n    \"\"\"\n");
        let node =
            format!("/**\n * Some {{@link x}}.\n *\n * @deprecated {NOTE}\n */\nroots(): void {{\n  roots(1);\n}}\n");
        let swift = format!("@available(*, deprecated, message: \"{NOTE}\")\npublic var roots: Int\n");
        let files = [
            ("core/src/a.rs", &*rust),
            ("bindings-python/python/tricorn/a.py", &*python),
            ("bindings-node/lib/a.ts", &*node),
            ("bindings-swift/Sources/Tricorn/A.swift", &*swift),
        ];
        let marked = "\"core/src/a.rs\" = [\"pub fn roots\"]\n\"bindings-python/python/tricorn/a.py\" = [\"roots: \"]\n\
            \"bindings-node/lib/a.ts\" = [\"roots\"]\n\"bindings-swift/Sources/Tricorn/A.swift\" = [\"public var roots\"]";
        assert_eq!(found(&files, marked), [""; 0]);
        assert_eq!(found(&files, "").len(), 4, "marked and not listed");
        let bare = [
            "pub fn roots() {}",
            "    roots: int\n    \"\"\"Some.\"\"\"\n",
            "/** Some. */\nroots(): void {",
            "public var roots: Int",
        ];
        let bare: Vec<_> = files.iter().zip(bare).map(|((path, _), text)| (*path, text)).collect();
        assert_eq!(found(&bare, marked).len(), 4, "listed and not marked");
    }

    #[test]
    fn what_is_listed_is_there() {
        let gone = found(
            &[("core/src/a.rs", "fn other() {}")],
            "\"core/src/a.rs\" = [\"pub fn roots\"]\n\"core/src/b.rs\" = []",
        );
        assert_eq!(gone.len(), 2, "{gone:?}");
    }
}
