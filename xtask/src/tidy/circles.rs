//! Imports between files, type-only ones included: no circle anywhere, and each room of a package knows only those below.
//!
//! A module of Rust and its own submodules count as one in that direction: a submodule may name its parent's items.

use super::Tree;
use super::source::Source;
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CORE: &str = "core/src/";
const PYTHON: &str = "bindings-python/python/tricorn/";
const NODE: &str = "bindings-node/lib/";

/// Imports of a group of files: who imports whom, by path.
type Imports = BTreeSet<(String, String)>;

/// No circle but those of the list, and none in the list that is gone.
pub(super) fn none(tree: &Tree) -> Vec<String> {
    let mut left: Vec<&BTreeSet<String>> = tree.rules.circles.known.iter().collect();
    let mut found = Vec::new();
    for imports in [rust(tree), python(tree), node(tree)] {
        for circle in circles(&imports) {
            if let Some(at) = left.iter().position(|known| circle.is_subset(known)) {
                if left[at].len() > circle.len() {
                    let out: Vec<_> = left[at].difference(&circle).cloned().collect();
                    found.push(format!("xtask/tidy.toml: no longer in a circle: {}", out.join(", ")));
                }
                left.remove(at);
                continue;
            }
            let inside = |(a, b): &&(String, String)| circle.contains(a) && circle.contains(b);
            let ties: Vec<_> = imports.iter().filter(inside).map(|(a, b)| format!("{a} -> {b}")).collect();
            found.push(format!("{} files import each other: {}", circle.len(), ties.join("; ")));
        }
    }
    let gone = left.iter().map(|circle| circle.iter().cloned().collect::<Vec<_>>().join(", "));
    found.extend(gone.map(|files| format!("xtask/tidy.toml: no longer a circle: {files}")));
    found
}

/// Each room imports only those before it; server and client do not import each other.
pub(super) fn rooms(tree: &Tree) -> Vec<String> {
    let order = &tree.rules.circles.rooms;
    let mut found = Vec::new();
    for (folder, imports) in [(PYTHON, python(tree)), (NODE, node(tree))] {
        let room = |path: &str| {
            let name = path[folder.len()..].split(['/', '.']).next().unwrap_or_default().to_owned();
            order.iter().position(|room| room.contains(&name)).map(|at| (at, name))
        };
        for (from, to) in &imports {
            if let (Some((a, from_room)), Some((b, to_room))) = (room(from), room(to))
                && (b > a || (a == b && from_room != to_room))
            {
                found.push(format!("{from} imports {to}: {from_room} must not know {to_room}"));
            }
        }
    }
    found
}

fn circles(imports: &Imports) -> Vec<BTreeSet<String>> {
    let graph: DiGraphMap<&str, ()> = imports.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let parts = tarjan_scc(&graph).into_iter().filter(|part| part.len() > 1);
    parts.map(|part| part.into_iter().map(str::to_owned).collect()).collect()
}

/// A Rust path with its names, such as `[super, a, B]`.
pub(super) type Names = Vec<String>;

/// Modules of the core by their names, and what each makes public under a name of its own.
pub(super) struct Modules<'a> {
    pub(super) files: BTreeMap<Names, &'a Source>,
    /// `pub use`: module and name, and the place where it is declared.
    passed_on: BTreeMap<(Names, String), Names>,
}

impl Modules<'_> {
    /// Names from the crate on; None for what belongs to another crate.
    pub(super) fn absolute(&self, module: &[String], path: &[String]) -> Option<Names> {
        let first = path.first()?.as_str();
        let up = path.iter().take_while(|name| *name == "super").count();
        if first == "crate" {
            Some(path[1..].to_vec())
        } else if first == "self" {
            Some([module, &path[1..]].concat())
        } else if up > 0 {
            Some([module.get(..module.len().checked_sub(up)?)?, &path[up..]].concat())
        } else {
            let child = [module, &path[..1]].concat();
            self.files.contains_key(&child).then(|| [module, path].concat())
        }
    }

    /// The module that declares what a path names.
    pub(super) fn home(&self, path: &[String]) -> Names {
        let mut path = path.to_vec();
        // A chain of `pub use` is short.
        for _ in 0..8 {
            let length = (0..=path.len()).rev().find(|n| self.files.contains_key(&path[..*n])).unwrap_or(0);
            let (module, rest) = path.split_at(length);
            let next = rest.first().and_then(|name| self.passed_on.get(&(module.to_vec(), name.clone())));
            match next {
                Some(next) if *next != path => path = [next.as_slice(), &rest[1..]].concat(),
                _ => return module.to_vec(),
            }
        }
        path
    }
}

/// The code of each module of the core, and the names that it passes on.
pub(super) fn modules(tree: &Tree) -> Modules<'_> {
    let code = |file: &&Source| file.is_rust_code() && !file.path.contains("simulat");
    let files: BTreeMap<Names, &Source> = tree.under(CORE).filter(code).map(|f| (module_of(&f.path), f)).collect();
    let texts: Vec<(Names, String)> = files.iter().map(|(module, file)| (module.clone(), file.bare())).collect();
    let mut modules = Modules { files, passed_on: BTreeMap::new() };
    for (module, text) in texts {
        let all = uses(&text).into_iter().filter(|(is_public, _)| *is_public).flat_map(|(_, all)| all);
        for path in all {
            if let (Some(place), Some(name)) = (modules.absolute(&module, &path), path.last()) {
                modules.passed_on.insert((module.clone(), name.clone()), place);
            }
        }
    }
    modules
}

fn rust(tree: &Tree) -> Imports {
    let modules = modules(tree);
    let texts: BTreeMap<&Names, String> = modules.files.iter().map(|(module, file)| (module, file.bare())).collect();
    let mut imports = Imports::new();
    for (module, text) in &texts {
        let own = uses(text).into_iter().filter(|(is_public, _)| !is_public).flat_map(|(_, all)| all);
        for path in own
            .chain(inline(text, |name| modules.files.contains_key(&[module.as_slice(), &[name.to_owned()]].concat())))
        {
            let Some(path) = modules.absolute(module, &path) else { continue };
            let home = modules.home(&path);
            if !module.starts_with(&home)
                && let Some(file) = modules.files.get(&home)
            {
                imports.insert((modules.files[*module].path.clone(), file.path.clone()));
            }
        }
    }
    imports
}

/// `core/src/a/b/mod.rs` and `core/src/a/b.rs` are `[a, b]`, `core/src/lib.rs` is `[]`.
pub(super) fn module_of(path: &str) -> Names {
    let mut names: Names = path[CORE.len()..].trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|last| last == "mod" || last == "lib") {
        names.pop();
    }
    names
}

/// The statements `use` of a file: true for those that pass on what they name, and one path for each name.
pub(super) fn uses(code: &str) -> Vec<(bool, Vec<Names>)> {
    let mut all = Vec::new();
    for at in super::source::words(code, "use") {
        let line = &code[code[..at].rfind('\n').map_or(0, |end| end + 1)..at];
        let before = line.trim();
        let (Some(end), true) = (code[at..].find(';'), before.is_empty() || before.starts_with("pub")) else {
            continue;
        };
        all.push((!before.is_empty(), leaves(code[at + 3..at + end].trim())));
    }
    all
}

/// `a::{b, c::d}` is `[a, b]` and `[a, c, d]`.
fn leaves(text: &str) -> Vec<Names> {
    let names = |text: &str| -> Names {
        text.split("::").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    };
    let Some((head, rest)) = text.split_once('{') else {
        return vec![names(text.split(" as ").next().unwrap_or_default())];
    };
    let head = names(head);
    let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
    let mut depth = 0;
    let parts = inside.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim).filter(|part| !part.is_empty());
    parts
        .flat_map(|part| if part == "self" { vec![Vec::new()] } else { leaves(part) })
        .map(|leaf| [head.as_slice(), &leaf].concat())
        .collect()
}

/// Paths in the code itself that start at the crate, at a parent or at a submodule.
fn inline(code: &str, is_child: impl Fn(&str) -> bool) -> Vec<Names> {
    let mut all = Vec::new();
    let word = |c: char| c.is_alphanumeric() || c == '_';
    for line in code.lines().filter(|line| !line.trim_start().trim_start_matches("pub ").starts_with("use ")) {
        for (at, _) in line.match_indices("::") {
            let start = line[..at].rfind(|c| !word(c)).map_or(0, |before| before + 1);
            let first = &line[start..at];
            let is_inner =
                line[..start].ends_with("::") || line[..start].ends_with("in ") || line[..start].ends_with('.');
            if is_inner || !(first == "crate" || first == "super" || is_child(first)) {
                continue;
            }
            let end = line[start..].find(|c| !word(c) && c != ':').map_or(line.len(), |end| start + end);
            all.push(line[start..end].split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect());
        }
    }
    all
}

fn python(tree: &Tree) -> Imports {
    let files: BTreeSet<&str> =
        tree.files.iter().map(|file| file.path.as_str()).filter(|p| p.starts_with(PYTHON)).collect();
    let at = |path: String| {
        ["{}.py", "{}/__init__.py", "{}.pyi"]
            .map(|form| form.replace("{}", &path))
            .into_iter()
            .find(|p| files.contains(p.as_str()))
    };
    let mut imports = Imports::new();
    for file in tree.files.iter().filter(|file| file.path.starts_with(PYTHON) && file.path.ends_with(".py")) {
        // The package's own face passes names on.
        if file.path[PYTHON.len()..] == *"__init__.py" {
            continue;
        }
        let folder: Vec<&str> = file.path.split('/').collect();
        for (begin, _) in file.text.match_indices("from .") {
            if !file.text[..begin].rsplit('\n').next().unwrap_or_default().trim().is_empty() {
                continue;
            }
            let rest = &file.text[begin + "from ".len()..];
            let dots = rest.chars().take_while(|c| *c == '.').count();
            let Some((module, names)) = rest[dots..].split_once(" import ") else { continue };
            let base = folder[..folder.len().saturating_sub(dots)].join("/");
            let module = module.trim().replace('.', "/");
            let place = if module.is_empty() { base } else { format!("{base}/{module}") };
            let names = match names.trim_start().strip_prefix('(') {
                Some(list) => list.split(')').next().unwrap_or_default(),
                None => names.lines().next().unwrap_or_default(),
            };
            for name in names.split([',', '\n']).map(|name| name.split('#').next().unwrap_or_default().trim()) {
                let name = name.split(" as ").next().unwrap_or_default().trim();
                let to =
                    (!name.is_empty()).then(|| at(format!("{place}/{name}")).or_else(|| at(place.clone()))).flatten();
                if let Some(to) = to.filter(|to| *to != file.path) {
                    imports.insert((file.path.clone(), to));
                }
            }
        }
    }
    imports
}

fn node(tree: &Tree) -> Imports {
    let files: BTreeSet<&str> =
        tree.files.iter().map(|file| file.path.as_str()).filter(|p| p.starts_with(NODE)).collect();
    let mut imports = Imports::new();
    for file in tree.files.iter().filter(|file| file.path.starts_with(NODE) && file.path.ends_with(".ts")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for word in ["from \"", "import(\"", "import \""] {
            for (at, _) in file.text.match_indices(word) {
                let target = file.text[at + word.len()..].split('"').next().unwrap_or_default();
                if !target.starts_with('.') {
                    continue;
                }
                let mut place: Vec<&str> = folder.split('/').collect();
                for part in target.split('/') {
                    match part {
                        "." => {}
                        ".." => drop(place.pop()),
                        part => place.push(part),
                    }
                }
                let stem = place.join("/");
                let stem = stem.trim_end_matches(".js");
                let to = ["{}.ts", "{}.d.ts"].map(|form| form.replace("{}", stem));
                if let Some(to) = to.into_iter().find(|to| files.contains(to.as_str()) && *to != file.path) {
                    imports.insert((file.path.clone(), to));
                }
            }
        }
    }
    imports
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let files = files.iter().map(|(p, t)| Source { path: (*p).to_owned(), text: (*t).to_owned() }).collect();
        let rules = "layers = {}\ngenerated = { paths = [] }\nfaults = {}\n[circles]\nrooms = [[\"errors\"], [\"server\", \"client\"]]\nknown = []";
        Tree { rules: toml::from_str(rules).expect("rules"), files }
    }

    #[test]
    fn a_circle_is_named_with_its_ties() {
        let found = none(&tree(&[
            ("core/src/a/mod.rs", "mod b;\nmod c;\npub use b::B;\nfn f() { b::g() }"),
            ("core/src/a/b.rs", "use super::c::C;\nuse super::Own;"),
            ("core/src/a/c.rs", "fn f(b: crate::a::B) {}"),
            ("core/src/d.rs", "use crate::a::{self, B};"),
        ]));
        let ties = "core/src/a/b.rs -> core/src/a/c.rs; core/src/a/c.rs -> core/src/a/b.rs";
        assert_eq!(found, [format!("2 files import each other: {ties}")]);
    }

    #[test]
    fn imports_of_types_count() {
        let found = none(&tree(&[
            ("bindings-node/lib/server/a.ts", "import type { B } from \"../errors/b.js\";"),
            ("bindings-node/lib/errors/b.ts", "export type { A } from \"../server/a.js\";"),
            (
                "bindings-python/python/tricorn/client/a.py",
                "if TYPE_CHECKING:\n    from .b import (\n        B,\n        C as D,\n    )\n",
            ),
            ("bindings-python/python/tricorn/client/b.py", "def f() -> None:\n    from . import a\n"),
        ]));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn rooms_know_only_those_below() {
        let found = rooms(&tree(&[
            ("bindings-node/lib/server/a.ts", "import { B } from \"../errors/b.js\";"),
            ("bindings-node/lib/errors/b.ts", "import { C } from \"../client/c.js\";"),
            ("bindings-node/lib/client/c.ts", "import { A } from \"../server/a.js\";"),
        ]));
        assert_eq!(
            found,
            [
                "bindings-node/lib/client/c.ts imports bindings-node/lib/server/a.ts: client must not know server",
                "bindings-node/lib/errors/b.ts imports bindings-node/lib/client/c.ts: errors must not know client",
            ]
        );
    }
}
