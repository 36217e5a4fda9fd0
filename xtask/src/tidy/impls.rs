//! Places of the methods of the core's types, and names that come from nowhere in particular.

use super::Tree;
use super::circles::{CORE, Modules, module_of, modules, uses};
use super::source::{Source, words};
use std::collections::BTreeSet;

/// No `use super::*` outside of tests but those of the list: a reader sees where each name comes from.
pub(super) fn globs(tree: &Tree) -> Vec<String> {
    let listed = &tree.rules.globs;
    let mut found = Vec::new();
    let mut with = BTreeSet::new();
    for file in tree.written().filter(|file| file.is_rust_code()) {
        let own = uses(&file.bare()).into_iter().filter(|(is_public, _)| !is_public).flat_map(|(_, all)| all);
        for path in own.filter(|path| is_glob(path)) {
            with.insert(&file.path);
            if !listed.contains_key(&file.path) {
                found.push(format!("{}: use {}", file.path, path.join("::")));
            }
        }
    }
    for (path, why) in listed {
        if why.trim().is_empty() {
            found.push(format!("xtask/tidy.toml: {path}: has no reason"));
        }
        if !with.contains(path) {
            found.push(format!("xtask/tidy.toml: {path}: has no `use super::*` any more"));
        }
    }
    found
}

/// `super::*` and the like, one that leads further up included.
fn is_glob(path: &[String]) -> bool {
    matches!(path, [up @ .., last] if last == "*" && !up.is_empty() && up.iter().all(|name| name == "super"))
}

/// Inherent methods of a type stand in the folder of the file that declares it, but for those of the list.
pub(super) fn inherent(tree: &Tree) -> Vec<String> {
    let modules = modules(tree);
    let listed = &tree.rules.inherent;
    let mut found = Vec::new();
    let mut apart = BTreeSet::new();
    for file in tree.under(CORE).filter(|file| file.is_rust_code() && file.path != "core/src/lib.rs") {
        let bare = file.bare();
        for (at, names) in blocks(&bare) {
            let Some(home) = home(&modules, file, &bare, &names) else { continue };
            if is_inside(&file.path, &home.path) {
                continue;
            }
            let key = format!("{} {}", file.path, names.last().map_or("", String::as_str));
            if !listed.contains_key(&key) {
                found.push(format!("{}: {} is declared in {}", file.at(at), names.join("::"), home.path));
            }
            apart.insert(key);
        }
    }
    for (key, why) in listed {
        if why.trim().is_empty() {
            found.push(format!("xtask/tidy.toml: {key}: has no reason"));
        }
        if !apart.contains(key) {
            found.push(format!("xtask/tidy.toml: {key}: no longer apart from its type"));
        }
    }
    found
}

/// The type of each inherent `impl`, and its place.
fn blocks(code: &str) -> Vec<(usize, Vec<String>)> {
    let mut all = Vec::new();
    for at in words(code, "impl") {
        let line = &code[code[..at].rfind('\n').map_or(0, |end| end + 1)..at];
        let Some(end) = code[at..].find('{').filter(|_| ["", "unsafe"].contains(&line.trim())) else { continue };
        let header = &code[at + "impl".len()..at + end];
        let header = header.strip_prefix('<').map_or(header, |rest| &rest[closing(rest)..]);
        let is_of_trait = words(header, "for").any(|at| !header[at + "for".len()..].trim_start().starts_with('<'));
        if is_of_trait {
            continue;
        }
        let header = header.trim().trim_start_matches("dyn ");
        let end = header.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(header.len());
        all.push((at, header[..end].split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()));
    }
    all
}

/// The end of generic parameters whose opening is behind.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '<') - i32::from(c == '>' && before != '-');
        if depth == 0 {
            return at + 1;
        }
        before = c;
    }
    text.len()
}

/// The file that declares a type; None for a type of nowhere in the crate.
fn home<'a>(modules: &Modules<'a>, file: &Source, code: &str, names: &[String]) -> Option<&'a Source> {
    let module = module_of(&file.path);
    let name = names.first()?;
    let declares = |word: &str| {
        words(code, word).any(|at| {
            let rest = &code[at + word.len()..];
            rest.trim_start()
                .strip_prefix(name.as_str())
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    };
    if names.len() == 1 && ["struct", "enum", "union", "trait"].iter().any(|word| declares(word)) {
        return modules.files.get(&module).copied();
    }
    let imported = uses(code).into_iter().flat_map(|(_, all)| all).find(|path| path.last() == Some(name));
    let path = match imported {
        Some(path) => [path.as_slice(), &names[1..]].concat(),
        None => names.to_vec(),
    };
    let path = modules.absolute(&module, &path)?;
    modules.files.get(&modules.home(&path)).copied()
}

/// `core/src/a/b.rs` and `core/src/a/b/c.rs` are inside the folder of `core/src/a/mod.rs`; a file of the crate's own folder
/// has a folder of its name alone.
fn is_inside(path: &str, home: &str) -> bool {
    let folder = home.rsplit_once('/').map_or("", |(folder, _)| folder);
    if format!("{folder}/") == CORE {
        return path == home || path.starts_with(&format!("{}/", home.trim_end_matches(".rs")));
    }
    path.starts_with(&format!("{folder}/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let rules = toml::from_str("layers = {}\ngenerated = { paths = [] }\nfaults = {}").expect("rules");
        Tree {
            rules,
            files: files.iter().map(|(p, t)| Source { path: (*p).to_owned(), text: (*t).to_owned() }).collect(),
        }
    }

    #[test]
    fn names_come_from_somewhere() {
        let tests = "use super::A;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
        let found = globs(&tree(&[
            ("core/src/a/mod.rs", "pub use b::*;\nuse super::super::*;"),
            ("core/src/a/b.rs", tests),
            ("core/src/a/tests.rs", "use super::*;"),
            ("cli/src/c.rs", "use super::{A, *};"),
        ]));
        assert_eq!(found, ["core/src/a/mod.rs: use super::super::*", "cli/src/c.rs: use super::*"]);
    }

    #[test]
    fn the_list_of_globs_is_exact() {
        let mut tree = tree(&[("core/src/a/b.rs", "use super::*;"), ("core/src/a/c.rs", "use super::C;")]);
        tree.rules.globs = [("core/src/a/b.rs", "one type"), ("core/src/a/c.rs", "")]
            .map(|(path, why)| (path.to_owned(), why.to_owned()))
            .into();
        let found = ["has no reason", "has no `use super::*` any more"];
        assert_eq!(globs(&tree), found.map(|found| format!("xtask/tidy.toml: core/src/a/c.rs: {found}")));
    }

    #[test]
    fn methods_stand_in_the_folder_of_their_type() {
        let found = inherent(&tree(&[
            ("core/src/lib.rs", "pub use a::A;"),
            ("core/src/error.rs", "pub struct Error;\nimpl Error {}"),
            ("core/src/a/mod.rs", "mod b;\npub use b::B;\npub struct A<T>(T);"),
            ("core/src/a/b.rs", "use super::A;\npub struct B;\nimpl<T: Fn() -> A<T>> A<T> {}\nimpl B {}"),
            ("core/src/a/d/mod.rs", "use crate::a::B;\nimpl B {}\nimpl Clone for B {}\nimpl dyn Other {}"),
            (
                "core/src/c.rs",
                "use crate::a::{self, B};\nuse crate::error::Error;\nimpl B {}\nimpl a::A<u8> where u8: Copy {}\nimpl Error {}",
            ),
        ]));
        assert_eq!(
            found,
            [
                "core/src/c.rs:3: B is declared in core/src/a/b.rs",
                "core/src/c.rs:4: a::A is declared in core/src/a/mod.rs",
                "core/src/c.rs:5: Error is declared in core/src/error.rs",
            ]
        );
    }

    #[test]
    fn the_list_of_methods_is_exact() {
        let mut tree = tree(&[
            ("core/src/a/mod.rs", "pub struct A;\nimpl A {}"),
            ("core/src/b/mod.rs", "use crate::a::A;\nimpl A {}"),
        ]);
        let listed = [("core/src/a/mod.rs A", "gone"), ("core/src/b/mod.rs A", " ")];
        tree.rules.inherent = listed.map(|(key, why)| (key.to_owned(), why.to_owned())).into();
        assert_eq!(
            inherent(&tree),
            [
                "xtask/tidy.toml: core/src/a/mod.rs A: no longer apart from its type",
                "xtask/tidy.toml: core/src/b/mod.rs A: has no reason",
            ]
        );
    }
}
