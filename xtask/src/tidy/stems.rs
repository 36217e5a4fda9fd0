//! The table of stems: a concept has one room and one stem in the core and in the three packages.
//!
//! Each hand-written file of a package is in the table, so a new file with a name of its own fails until it has a reason.

use super::Tree;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

const CORE: &str = "core/src/";
const PACKAGES: [Package; 3] = [
    Package {
        name: "python",
        folder: "bindings-python/python/tricorn/",
        native: "bindings-python/src/",
        file: snake,
        endings: &["py", "pyi"],
    },
    Package {
        name: "node",
        folder: "bindings-node/lib/",
        native: "bindings-node/src/",
        file: kebab,
        endings: &["ts", "d.ts"],
    },
    Package {
        name: "swift",
        folder: "bindings-swift/Sources/Tricorn/",
        native: "bindings-swift/src/",
        file: upper_camel,
        endings: &["swift"],
    },
];

/// Words that Swift writes in capitals.
const ACRONYMS: [&str; 4] = ["cli", "http", "json", "url"];

/// A package of one language.
struct Package {
    name: &'static str,
    folder: &'static str,
    native: &'static str,
    /// The language's casing of a concept, such as `client/token_store`.
    file: fn(&str) -> String,
    endings: &'static [&'static str],
}

/// `[stems]` of `xtask/tidy.toml`. A concept is its room and its stem in snake case, such as `client/token_store`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Stems {
    /// Concepts with the same room and stem in the core and the packages.
    all: BTreeSet<String>,
    /// Concepts of the three packages; the core has no file of its own.
    packages: BTreeSet<String>,
    /// Concepts with the same room and stem in the packages, and their places in the core.
    core: BTreeMap<String, String>,
    /// Concepts that have another place in one language.
    differ: BTreeMap<String, Row>,
    /// Files of the native halves, the same in each.
    native: BTreeSet<String>,
    /// Files of one language, with the reason.
    python: BTreeMap<String, String>,
    node: BTreeMap<String, String>,
    swift: BTreeMap<String, String>,
}

/// The places of a concept. A language that is left out has it under the concept's own name, the core has no file for it.
/// `-` stands for none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    core: Option<String>,
    python: Option<String>,
    node: Option<String>,
    swift: Option<String>,
    why: String,
}

impl Row {
    fn place(&self, package: &str) -> Option<&str> {
        let place = match package {
            "python" => &self.python,
            "node" => &self.node,
            _ => &self.swift,
        };
        place.as_deref()
    }
}

impl Stems {
    fn only(&self, package: &str) -> &BTreeMap<String, String> {
        match package {
            "python" => &self.python,
            "node" => &self.node,
            _ => &self.swift,
        }
    }

    /// Each concept that the packages share, with its place in one of them.
    fn places<'a>(&'a self, package: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let same = self.all.iter().chain(&self.packages).chain(self.core.keys()).map(|c| (c.as_str(), c.as_str()));
        let differ = self.differ.iter().map(move |(c, row)| (c.as_str(), row.place(package).unwrap_or(c)));
        same.chain(differ).filter(|(_, place)| *place != "-")
    }

    /// Each concept with its place in the core.
    fn core(&self) -> impl Iterator<Item = (&str, &str)> {
        let same = self.all.iter().map(|c| (c.as_str(), c.as_str()));
        let moved = self.core.iter().map(|(c, place)| (c.as_str(), place.as_str()));
        let differ = self.differ.iter().filter_map(|(c, row)| Some((c.as_str(), row.core.as_deref()?)));
        same.chain(moved).chain(differ)
    }
}

/// Checks the table against the files, in both directions.
pub(super) fn table(tree: &Tree) -> Vec<String> {
    let stems = &tree.rules.stems;
    let mut found = rows(stems);
    let paths: BTreeSet<&str> = tree.files.iter().map(|file| file.path.as_str()).collect();
    for (concept, place) in stems.core() {
        if !["", "/mod"].iter().any(|end| paths.contains(format!("{CORE}{place}{end}.rs").as_str())) {
            found.push(format!("xtask/tidy.toml: {concept}: there is no {CORE}{place}.rs"));
        }
    }
    for package in &PACKAGES {
        let only = stems.only(package.name).keys().map(|c| (c.as_str(), c.as_str()));
        let (native, only): (Vec<_>, Vec<_>) = only.partition(|(concept, _)| concept.starts_with("src/"));
        let mut known = BTreeSet::new();
        for (concept, place) in stems.places(package.name).chain(only) {
            let file = format!("{}{}", package.folder, (package.file)(place));
            let forms = package.endings.iter().map(|ending| format!("{file}.{ending}"));
            let there: Vec<String> = forms.filter(|path| paths.contains(path.as_str())).collect();
            if there.is_empty() {
                found.push(format!("xtask/tidy.toml: {concept}: there is no {file}.{}", package.endings[0]));
            }
            known.extend(there);
        }
        let own = native.iter().filter_map(|(concept, _)| concept.strip_prefix("src/"));
        for stem in stems.native.iter().map(String::as_str).chain(own) {
            let path = format!("{}{stem}.rs", package.native);
            if !paths.contains(path.as_str()) {
                found.push(format!("xtask/tidy.toml: src/{stem}: there is no {path}"));
            }
            known.insert(path);
        }
        for file in tree.under(package.folder).chain(tree.under(package.native)) {
            let is_code = file.path.ends_with(".rs") || package.endings.iter().any(|e| file.extension() == *e);
            // `__init__.py` is the name of a folder.
            if is_code && file.stem() != "__init__" && !known.contains(&file.path) {
                found.push(format!("{}: no row in [stems] of xtask/tidy.toml", file.path));
            }
        }
    }
    found
}

/// Checks that a concept has one row, a row that differs says so with a reason, and a reason is given.
fn rows(stems: &Stems) -> Vec<String> {
    let mut found = Vec::new();
    let shared = stems.all.iter().chain(&stems.packages).chain(stems.core.keys()).chain(stems.differ.keys());
    let only = PACKAGES.iter().flat_map(|package| stems.only(package.name));
    let mut seen = BTreeSet::new();
    for concept in shared.chain(only.clone().map(|(concept, _)| concept)) {
        if !seen.insert(concept) {
            found.push(format!("xtask/tidy.toml: {concept}: has more than one row"));
        }
    }
    for (concept, row) in &stems.differ {
        let places: Vec<&str> = PACKAGES.iter().filter_map(|package| row.place(package.name)).collect();
        if places.is_empty() || places.iter().any(|place| place == concept) {
            found.push(format!("xtask/tidy.toml: {concept}: names a place that does not differ"));
        }
        let left_out = PACKAGES.iter().filter(|package| row.place(package.name) == Some("-")).count();
        if left_out > 1 {
            found.push(format!("xtask/tidy.toml: {concept}: belongs in the list of one language"));
        }
    }
    for (concept, place) in &stems.core {
        if concept == place {
            found.push(format!("xtask/tidy.toml: {concept}: belongs in the list `all`"));
        }
    }
    let reasons = stems.differ.iter().map(|(concept, row)| (concept, &row.why)).chain(only);
    let without = reasons.filter(|(_, why)| why.trim().is_empty());
    found.extend(without.map(|(concept, _)| format!("xtask/tidy.toml: {concept}: has no reason")));
    found
}

fn snake(concept: &str) -> String {
    concept.to_owned()
}

fn kebab(concept: &str) -> String {
    concept.replace('_', "-")
}

fn upper_camel(concept: &str) -> String {
    let word = |word: &str| {
        if ACRONYMS.contains(&word) {
            return word.to_uppercase();
        }
        let mut letters = word.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
    };
    let part = |part: &str| part.split('_').map(word).collect::<String>();
    concept.split('/').map(part).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::super::source::Source;
    use super::*;

    const TABLE: &str = r#"
        all = ["client/http_transport"]
        packages = ["call/steps"]
        core = { "client/token_store" = "auth/store" }
        native = ["client"]

        [differ]
        "server/http" = { core = "endpoint/http", python = "server/asgi", why = "Python has ASGI" }
        "json/checks" = { swift = "-", why = "Swift's types check" }

        [python]
        "server/crt" = "the C runtime of Windows"
        "src/wake" = "descriptors of event loops"

        [node]

        [swift]
        "json/json_value" = "JSON as a value"
    "#;

    const FILES: [&str; 25] = [
        "core/src/client/http_transport.rs",
        "core/src/auth/store/mod.rs",
        "core/src/endpoint/http/mod.rs",
        "bindings-python/src/client.rs",
        "bindings-python/src/wake.rs",
        "bindings-python/python/tricorn/__init__.py",
        "bindings-python/python/tricorn/call/steps.py",
        "bindings-python/python/tricorn/client/__init__.py",
        "bindings-python/python/tricorn/client/http_transport.py",
        "bindings-python/python/tricorn/client/token_store.py",
        "bindings-python/python/tricorn/json/checks.py",
        "bindings-python/python/tricorn/server/asgi.py",
        "bindings-python/python/tricorn/server/crt.pyi",
        "bindings-node/src/client.rs",
        "bindings-node/lib/call/steps.ts",
        "bindings-node/lib/client/http-transport.ts",
        "bindings-node/lib/client/token-store.d.ts",
        "bindings-node/lib/json/checks.ts",
        "bindings-node/lib/server/http.ts",
        "bindings-swift/src/client.rs",
        "bindings-swift/Sources/Tricorn/Call/Steps.swift",
        "bindings-swift/Sources/Tricorn/Client/HTTPTransport.swift",
        "bindings-swift/Sources/Tricorn/Client/TokenStore.swift",
        "bindings-swift/Sources/Tricorn/JSON/JSONValue.swift",
        "bindings-swift/Sources/Tricorn/Server/HTTP.swift",
    ];

    fn tree(stems: &str, files: &[&str]) -> Tree {
        let rules = "layers = {}\ngenerated = { paths = [] }\nfaults = {}";
        let mut rules: super::super::Rules = toml::from_str(rules).expect("rules");
        rules.stems = toml::from_str(stems).expect("stems");
        Tree { rules, files: files.iter().map(|p| Source { path: (*p).to_owned(), text: String::new() }).collect() }
    }

    #[test]
    fn the_table_has_every_file() {
        assert_eq!(table(&tree(TABLE, &FILES)), Vec::<String>::new());
    }

    #[test]
    fn a_file_with_a_name_of_its_own_fails() {
        let more = [
            "bindings-python/python/tricorn/client/store.py",
            "bindings-node/lib/client/token_store.ts",
            "bindings-swift/Sources/Tricorn/Client/HttpTransport.swift",
            "bindings-swift/src/wake.rs",
            "bindings-node/lib/readme.md",
        ];
        let found = table(&tree(TABLE, &[FILES.as_slice(), &more].concat()));
        let row = |path: &&str| format!("{path}: no row in [stems] of xtask/tidy.toml");
        assert_eq!(found, more[..4].iter().map(row).collect::<Vec<_>>());
    }

    #[test]
    fn rows_without_files_are_stale() {
        let gone = ["core/src/auth/store/mod.rs", "bindings-node/lib/call/steps.ts", "bindings-python/src/wake.rs"];
        let files: Vec<&str> = FILES.into_iter().filter(|path| !gone.contains(path)).collect();
        assert_eq!(
            table(&tree(TABLE, &files)),
            [
                "xtask/tidy.toml: client/token_store: there is no core/src/auth/store.rs",
                "xtask/tidy.toml: src/wake: there is no bindings-python/src/wake.rs",
                "xtask/tidy.toml: call/steps: there is no bindings-node/lib/call/steps.ts",
            ]
        );
    }

    #[test]
    fn rows_agree_with_each_other() {
        let stems: Stems = toml::from_str(
            r#"
            all = ["call/context"]
            packages = ["call/context"]
            core = { "call/steps" = "call/steps" }
            [differ]
            "server/http" = { python = "server/http", why = " " }
            "json/checks" = { node = "-", swift = "-", why = "types check" }
            "#,
        )
        .expect("stems");
        assert_eq!(
            rows(&stems),
            [
                "xtask/tidy.toml: call/context: has more than one row",
                "xtask/tidy.toml: json/checks: belongs in the list of one language",
                "xtask/tidy.toml: server/http: names a place that does not differ",
                "xtask/tidy.toml: call/steps: belongs in the list `all`",
                "xtask/tidy.toml: server/http: has no reason",
            ]
        );
    }

    #[test]
    fn casing_is_the_language_s() {
        assert_eq!(kebab("client/http_transport"), "client/http-transport");
        assert_eq!(upper_camel("json/json_value"), "JSON/JSONValue");
        assert_eq!(upper_camel("client/client_auth"), "Client/ClientAuth");
    }
}
