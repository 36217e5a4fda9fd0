//! The rules of `core/src`: who may know whom, and what stays where.

use super::Tree;
use super::source::words;
use std::collections::BTreeMap;

const CORE: &str = "core/src/";
const DATES: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const REVISIONS: &str = "core/src/protocol/revision/";

/// Imports follow the arrows of the design.
pub(super) fn imports(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.under(CORE).filter(|f| f.is_rust_code()) {
        let module = module(&file.path);
        let Some(layer) = layer_of(&module, &tree.rules.layers) else {
            found.push(format!("{}: no layer of xtask/tidy.toml has this file", file.path));
            continue;
        };
        let allowed = &tree.rules.layers[layer];
        for (at, path) in paths(&file.bare(), &module) {
            let own = path.first().is_some_and(|first| Some(first.as_str()) == module.first().map(String::as_str));
            let inside = layer.split('/').zip(&path).all(|(a, b)| a == b) && own;
            let fits = |entry: &String| {
                entry == "*" || entry.split('/').zip(&path).filter(|(a, b)| a == b).count() == entry.split('/').count()
            };
            let known = path.first().is_some_and(|p| is_layer(p, &tree.rules.layers));
            // A nested layer is bound by its own list even towards its parent.
            if known && !(inside || own && !layer.contains('/')) && !allowed.iter().any(fits) {
                found.push(format!("{}: {layer} must not know {}", file.at(at), path.join("::")));
            }
        }
    }
    found
}

fn is_layer(name: &str, layers: &BTreeMap<String, Vec<String>>) -> bool {
    layers.keys().any(|l| l.split('/').next() == Some(name))
}

/// `core/src/a/b/mod.rs` and `core/src/a/b.rs` are `[a, b]`, `core/src/lib.rs` is `[]`.
fn module(path: &str) -> Vec<String> {
    let inner = path.trim_start_matches(CORE).trim_end_matches(".rs");
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|l| l == "mod" || l == "lib") {
        parts.pop();
    }
    parts
}

/// The longest layer that has this module.
fn layer_of<'a>(module: &[String], layers: &'a BTreeMap<String, Vec<String>>) -> Option<&'a str> {
    if module.is_empty() {
        return layers.get_key_value("lib").map(|(k, _)| k.as_str());
    }
    let has = |layer: &&String| {
        let parts: Vec<&str> = layer.split('/').collect();
        parts.len() <= module.len() && parts.iter().zip(module).all(|(a, b)| a == b)
    };
    layers.keys().filter(has).max_by_key(|l| l.len()).map(String::as_str)
}

/// Every path that starts at the crate, or climbs to it, as module names; one per name of a group.
fn paths(code: &str, module: &[String]) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for at in words(code, "crate") {
        if let Some(rest) = code[at + 5..].strip_prefix("::") {
            found.extend(expand(rest).into_iter().map(|p| (at, p)));
        }
    }
    for at in words(code, "super") {
        if code[..at].ends_with("super::") {
            continue;
        }
        let mut rest = &code[at..];
        let mut up = 0;
        while let Some(more) = rest.strip_prefix("super::") {
            up += 1;
            rest = more;
        }
        // Inline modules would make this wrong by one; the core has none outside its tests.
        if up > 0 && up <= module.len() {
            let base = &module[..module.len() - up];
            found.extend(expand(rest).into_iter().map(|p| (at, [base, p.as_slice()].concat())));
        }
    }
    found
}

/// `a::b::C` is `[a, b]` (two names are enough); `{a::b, c}` is both.
fn expand(rest: &str) -> Vec<Vec<String>> {
    let Some(group) = rest.strip_prefix('{') else {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
        let mut names: Vec<String> = rest[..end].split("::").map(str::to_owned).collect();
        names.retain(|n| !n.is_empty());
        names.truncate(2);
        return vec![names];
    };
    let mut depth = 0;
    let mut all = Vec::new();
    let mut start = 0;
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                all.push(group[start..i].trim());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                all.push(group[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    all.into_iter().filter(|p| !p.is_empty()).flat_map(expand).collect()
}

/// Only one folder knows the dates; everything else asks a property.
pub(super) fn dates(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    let bindings = ["bindings-python/src/", "bindings-node/src/", "bindings-swift/src/"];
    let places = [CORE].into_iter().chain(bindings);
    let files = places.flat_map(|p| tree.under(p)).filter(|f| f.is_rust_code() && !f.path.starts_with(REVISIONS));
    for file in files {
        let code = file.code();
        for date in DATES {
            // What a deprecation says is text for people.
            let is_note = |at: usize| code[..at].trim_end().ends_with("note = \"MCP");
            let places = code.match_indices(date).filter(|(at, _)| !is_note(*at));
            found.extend(places.map(|(at, _)| format!("{}: {date}", file.at(at))));
        }
        let bare = file.bare();
        let variants = bare
            .match_indices("Revision::V")
            .filter(|(at, m)| bare[at + m.len()..].starts_with(|c: char| c.is_ascii_digit() || c == '_'));
        found.extend(variants.map(|(at, _)| format!("{}: a revision by name", file.at(at))));
    }
    found
}

/// Raw values fail under both, and only at run time.
pub(super) fn raw_values(tree: &Tree) -> Vec<String> {
    let files = ["core/src/jsonrpc/", "core/src/protocol/"].into_iter().flat_map(|p| tree.under(p));
    let mut found = Vec::new();
    for file in files.filter(|f| f.extension() == "rs") {
        let bare = file.bare();
        for (at, _) in bare.match_indices("serde(") {
            let inside = &bare[at..bare[at..].find(")]").map_or(bare.len(), |end| at + end)];
            for word in ["flatten", "untagged"] {
                if words(inside, word).next().is_some() {
                    found.push(format!("{}: serde({word})", file.at(at)));
                }
            }
        }
    }
    found
}

/// Standard output is the protocol: one folder takes it.
pub(super) fn stdout(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.under(CORE).filter(|f| f.is_rust_code()) {
        let bare = file.bare();
        for word in ["println!", "print!", "dbg!"] {
            let at = bare.match_indices(word).map(|(at, _)| at);
            let whole = at.filter(|at| !bare[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
            found.extend(whole.map(|at| format!("{}: {word}", file.at(at))));
        }
        if !file.path.starts_with("core/src/transport/own/") {
            found.extend(
                words(&bare, "stdout").filter(|at| is_handle(&bare, *at)).map(|at| format!("{}: stdout", file.at(at))),
            );
        }
    }
    found
}

/// `io::stdout` and `stdout()`, not a child's pipe of that name.
fn is_handle(code: &str, at: usize) -> bool {
    let before = &code[..at];
    before.ends_with("io::") || (!before.ends_with('.') && code[at + "stdout".len()..].starts_with("()"))
}

/// `allow` and `expect` say why.
pub(super) fn reasons(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.written().filter(|f| f.extension() == "rs" && !f.path.starts_with("benches/")) {
        let bare = file.bare();
        for start in ["#[allow(", "#![allow(", "#[expect(", "#![expect("] {
            for (at, _) in bare.match_indices(start) {
                let inside = &bare[at..bare[at..].find(")]").map_or(bare.len(), |end| at + end)];
                if words(inside, "reason").next().is_none() {
                    found.push(format!("{}: {}", file.at(at), inside.split_whitespace().collect::<String>()));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Rules;
    use super::super::source::Source;
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let list = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let layers = [
            ("lib", list(&["*"])),
            ("error", list(&["jsonrpc"])),
            ("jsonrpc", list(&["error"])),
            ("protocol", list(&["error", "jsonrpc"])),
            ("transport", list(&["jsonrpc"])),
            ("transport/http", list(&["jsonrpc", "protocol/revision", "transport"])),
            ("server", list(&["protocol"])),
            ("client", list(&["protocol"])),
        ];
        Tree {
            rules: Rules { layers: layers.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(), ..Rules::default() },
            files: files.iter().map(|(p, t)| Source { path: (*p).to_owned(), text: (*t).to_owned() }).collect(),
        }
    }

    #[test]
    fn imports_follow_the_arrows() {
        let good = tree(&[
            ("core/src/lib.rs", "pub use crate::server::Server;"),
            ("core/src/server/mod.rs", "use crate::protocol::{self, Connection};\nuse super::protocol::Rules;"),
            ("core/src/server/router.rs", "use super::registry::Entry; use crate::server::x; // use crate::client::y"),
            ("core/src/transport/http/mod.rs", "use crate::protocol::revision::Rules; use crate::transport::Frame;"),
            ("core/src/protocol/connection/tests.rs", "use crate::client::Client;"),
        ]);
        assert_eq!(imports(&good), Vec::<String>::new());
        let bad = tree(&[
            ("core/src/server/mod.rs", "use crate::{client::Client, protocol::x};"),
            ("core/src/client/calls.rs", "\nuse super::super::server::Server;"),
            ("core/src/transport/http/mod.rs", "use crate::protocol::Connection;"),
            ("core/src/transport/stdio.rs", "fn f(x: crate::protocol::revision::Rules) {}"),
            ("core/src/novel.rs", ""),
        ]);
        assert_eq!(
            imports(&bad),
            [
                "core/src/server/mod.rs:1: server must not know client::Client",
                "core/src/client/calls.rs:2: client must not know server::Server",
                "core/src/transport/http/mod.rs:1: transport/http must not know protocol::Connection",
                "core/src/transport/stdio.rs:1: transport must not know protocol::revision",
                "core/src/novel.rs: no layer of xtask/tidy.toml has this file",
            ]
        );
    }

    #[test]
    fn dates_are_known_in_one_folder() {
        let both = "const NEWEST: &str = \"2026-07-28\"; // since 2025-11-25\nlet r = Revision::V2026_07_28;";
        let found = tree(&[
            ("core/src/protocol/revision/rules.rs", both),
            ("core/src/server/mod.rs", both),
            ("core/src/client/old.rs", "#[deprecated(note = \"MCP 2026-07-28 deprecates it\")]\nfn f() {}"),
            ("core/src/client/mod.rs", "#[cfg(test)]\nmod tests { const X: &str = \"2026-07-28\"; }"),
        ]);
        assert_eq!(
            dates(&found),
            ["core/src/server/mod.rs:1: 2026-07-28", "core/src/server/mod.rs:2: a revision by name"]
        );
    }

    #[test]
    fn raw_values_are_not_flattened() {
        let found = tree(&[
            ("core/src/protocol/a.rs", "#[serde(flatten)]\nfn f() { x.flatten() }\n#[serde(rename = \"untagged\")]"),
            ("core/src/model/b.rs", "#[serde(untagged)]"),
        ]);
        assert_eq!(raw_values(&found), ["core/src/protocol/a.rs:1: serde(flatten)"]);
    }

    #[test]
    fn standard_output_is_left_alone() {
        let text =
            "eprintln!(\"println!\"); command.stdout(Stdio::piped()); child.stdout.take(); let o = std::io::stdout();";
        let found = tree(&[("core/src/driver/a.rs", text), ("core/src/transport/own/unix.rs", "tokio::io::stdout()")]);
        assert_eq!(stdout(&found), ["core/src/driver/a.rs:1: stdout"]);
        assert_eq!(stdout(&tree(&[("core/src/server/a.rs", "println!(\"x\")")])), ["core/src/server/a.rs:1: println!"]);
    }

    #[test]
    fn exemptions_need_reasons() {
        let text = "#[allow(dead_code)]\n#[expect(\n    unused,\n    reason = \"later\"\n)]\n";
        assert_eq!(reasons(&tree(&[("core/src/server/a.rs", text)])), ["core/src/server/a.rs:1: #[allow(dead_code"]);
    }
}
