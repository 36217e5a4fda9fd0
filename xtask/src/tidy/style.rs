//! The rules of the whole tree: names, leftovers.

use super::Tree;
use super::source::{Source, words};
use crate::place;
use std::os::unix::fs::PermissionsExt;

const CODE: [&str; 10] = ["rs", "py", "pyi", "ts", "mts", "mjs", "cjs", "swift", "sh", "js"];

fn is_code(file: &Source) -> bool {
    CODE.contains(&file.extension())
}

/// Checks that a server in the README is the one that is tested.
pub(super) fn readme(tree: &Tree) -> Vec<String> {
    let text = |path: &str| tree.files.iter().find(|f| f.path == path).map(|f| f.text.as_str());
    let Some(page) = text("README.md") else { return vec!["there is no README.md".into()] };
    let shown: Vec<String> =
        page.split("```").skip(1).step_by(2).map(|b| essence(b.split_once('\n').unwrap_or_default().1)).collect();
    let is_shown = |path: &str| text(path).is_some_and(|code| shown.contains(&essence(code)));
    let missing = SERVERS.iter().filter(|path| !is_shown(path));
    missing.map(|path| format!("{path}: README.md shows another program")).collect()
}

const SERVERS: [&str; 4] = [
    "examples/quickstart/python/server.py",
    "examples/quickstart/node/server.mjs",
    "examples/quickstart/rust/src/bin/server.rs",
    "examples/quickstart/swift/server/Server.swift",
];

/// A program without its comments and without what formatters decide.
fn essence(code: &str) -> String {
    let bare = code.lines().map(|line| {
        let line = if line.starts_with('#') && !line.starts_with("#[") { "" } else { line };
        let line = if line.trim_start().starts_with("//") { "" } else { line };
        let end = [" // ", "  # "].iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
        &line[..end]
    });
    let text: String = bare.collect::<String>().chars().filter(|c| !c.is_whitespace() && *c != ';').collect();
    text.replace(",}", "}").replace(",)", ")")
}

/// No prefix that the package already is, no name that says nothing.
pub(super) fn names(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.written().filter(|f| is_code(f) && !f.path.starts_with("tests/interop/")) {
        if ["util", "utils", "helper", "helpers", "misc", "common"].contains(&file.stem().to_lowercase().as_str()) {
            found.push(format!("{}: the file name says nothing", file.path));
        }
        for keyword in ["struct", "enum", "trait", "class", "interface", "protocol", "actor"] {
            for at in words(&file.text, keyword) {
                let rest = &file.text[at + keyword.len()..];
                let Some(rest) = rest.strip_prefix(' ') else { continue };
                let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                let name = &rest[..end];
                let starts = name.strip_prefix("Mcp").or_else(|| name.strip_prefix("MCP"));
                let prefixed = starts.is_some_and(|r| r.is_empty() || r.starts_with(char::is_uppercase));
                let empty = ["Manager", "Helper", "Helpers", "Utils", "Impl"].iter().any(|e| name.ends_with(e));
                if prefixed || empty {
                    found.push(format!("{}: {name}", file.at(at)));
                }
            }
        }
    }
    found
}

/// Something left to do has an issue that says so.
pub(super) fn left_over(tree: &Tree) -> Vec<String> {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("todo", "!"),
        concat!("unimplemented", "!"),
    ];
    let mut found = Vec::new();
    for file in tree.written().filter(|f| is_code(f) && f.extension() != "sh") {
        for mark in marks {
            let hits = file.text.match_indices(mark).filter(|(at, m)| {
                let alone = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                alone(file.text[..*at].chars().next_back())
                    && alone(file.text[at + m.len()..].chars().next())
                    && !file.text[at + m.len()..].starts_with("(#")
            });
            found.extend(hits.map(|(at, m)| format!("{}: {m} without an issue number", file.at(at))));
        }
    }
    found
}

/// The tree works anywhere.
pub(super) fn machines(tree: &Tree) -> Vec<String> {
    let marks = [
        concat!("/ro", "ot/"),
        concat!("/wo", "rk/"),
        concat!("/ho", "me/"),
        concat!("/Us", "ers/"),
        concat!("artif", "actory"),
        concat!("registry.npm", "js.org"),
    ];
    let mut found = Vec::new();
    for file in tree.written() {
        for mark in marks {
            let hits = file.text.match_indices(mark).filter(|(at, _)| {
                // A path of a page or of a folder that merely ends so is none of a machine.
                !file.text[..*at].ends_with(|c: char| c.is_alphanumeric() || "._-}$*".contains(c)) || mark.len() > 8
            });
            found.extend(hits.map(|(at, m)| format!("{}: {m}", file.at(at))));
        }
    }
    found
}

/// A launcher has its executable bit and leaves nothing running between it and its program.
pub(super) fn launchers(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.written().filter(|f| f.text.starts_with("#!")) {
        let mode = std::fs::metadata(place::root().join(&file.path)).map_or(0, |m| m.permissions().mode());
        if mode & 0o111 == 0 {
            found.push(format!("{}: not executable", file.path));
        }
        let launcher =
            file.path.starts_with("examples/") && file.path.rsplit('/').next().is_some_and(|n| n.starts_with("run"));
        let hands_over = |l: &str| l.trim_start().starts_with("exec ") || l.starts_with(". ");
        if launcher && !file.text.lines().any(hands_over) {
            found.push(format!("{}: does not exec its program", file.path));
        }
    }
    found
}
