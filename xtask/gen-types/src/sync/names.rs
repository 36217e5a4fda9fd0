//! Imports of the generated module: the names that its code uses, from where the asynchronous sources have them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Result, ensure};

use super::WIDTH;
use super::reader::{Module, code, is_of_name};

/// Modules of other packages than Python's own.
const OTHERS: [&str; 2] = ["msgspec", "typing_extensions"];

pub(super) struct Names<'a> {
    modules: &'a BTreeMap<String, Module>,
    /// File of the hand-written ground, whose names come first.
    ground: &'a str,
    /// Names with the files that use them.
    used: BTreeSet<(String, String)>,
}

/// Imported names by module; no name for a module itself.
type Imports = BTreeMap<String, BTreeSet<String>>;

impl<'a> Names<'a> {
    pub(super) fn new(modules: &'a BTreeMap<String, Module>, ground: &'a str) -> Self {
        Self { modules, ground, used: BTreeSet::new() }
    }

    /// Notes the names in a line of code of a twin; `known` are those that are something else there.
    pub(super) fn uses(&mut self, file: &str, line: &str, known: &[&str]) {
        let letters: Vec<(usize, char)> = code(line).collect();
        let mut at = 0;
        while at < letters.len() {
            let start = at;
            while at < letters.len() && is_of_name(letters[at].1) && letters[at].0 - letters[start].0 == at - start {
                at += 1;
            }
            if at == start {
                at += 1;
                continue;
            }
            let name: String = letters[start..at].iter().map(|(_, letter)| letter).collect();
            let is_member = start > 0 && letters[start - 1].1 == '.';
            let after: String = letters[at..].iter().take(2).map(|(_, letter)| letter).collect();
            let is_keyword = after.starts_with('=') && after != "==";
            if !is_member && !is_keyword && !known.contains(&name.as_str()) {
                self.used.insert((file.to_owned(), name));
            }
        }
    }

    /// The import statements and type variables. `own` are the classes of the generated module, `words` the table that
    /// its names are from.
    pub(super) fn imports(&self, own: &BTreeSet<String>, words: &BTreeMap<String, String>) -> Result<String> {
        let (mut always, mut for_types, mut variables) = (Imports::new(), Imports::new(), BTreeSet::new());
        let mut sources: BTreeMap<&str, String> = BTreeMap::new();
        for (file, name) in &self.used {
            if own.contains(name) {
                continue;
            }
            if let Some(definition) = self.modules.get(file).and_then(|module| module.variables.get(name)) {
                variables.insert(definition.as_str());
                always.entry("typing".to_owned()).or_default().insert("TypeVar".to_owned());
                continue;
            }
            let Some((from, is_for_types)) = self.source(file, name, words) else { continue };
            let known = sources.entry(name).or_insert_with(|| from.clone());
            ensure!(*known == from, "{name} is of two modules: {known:?} and {from:?}");
            let place = if is_for_types { &mut for_types } else { &mut always };
            if from.is_empty() {
                place.entry(name.clone()).or_default();
            } else {
                place.entry(from).or_default().insert(name.clone());
            }
        }
        if !for_types.is_empty() {
            always.entry("typing".to_owned()).or_default().insert("TYPE_CHECKING".to_owned());
        }
        for (module, names) in &mut for_types {
            names.retain(|name| !always.get(module).is_some_and(|always| always.contains(name)));
        }
        for_types.retain(|_, names| !names.is_empty());
        let mut out = "from __future__ import annotations\n\n".to_owned();
        print(&mut out, &always, "");
        if !for_types.is_empty() {
            out.push_str("\nif TYPE_CHECKING:\n");
            print(&mut out, &for_types, "    ");
        }
        if !variables.is_empty() {
            out.push('\n');
            variables.iter().for_each(|definition| {
                let _ = writeln!(out, "{definition}");
            });
        }
        Ok(out)
    }

    /// The module that a name is of, and true when it is known to type checkers only. None for what Python has anyway.
    fn source(&self, file: &str, name: &str, words: &BTreeMap<String, String>) -> Option<(String, bool)> {
        let of = |file: &str| format!(".{}", file.trim_end_matches(".py"));
        let module = self.modules.get(file)?;
        if self.modules.get(self.ground).is_some_and(|ground| ground.names.contains(name)) {
            return Some((of(self.ground), false));
        }
        if module.names.contains(name) {
            return Some((of(file), false));
        }
        if let Some(found) = module.imports.get(name) {
            return Some(found.clone());
        }
        // A twin's name: where that of the asynchronous source is from.
        let before = words.iter().find(|(_, twin)| *twin == name)?.0;
        module.imports.get(before).cloned()
    }
}

/// The statements as linters want them: Python's own modules, others, then the package's from the furthest on.
fn print(out: &mut String, imports: &Imports, indent: &str) {
    let mut sections: [Vec<(&str, &BTreeSet<String>)>; 3] = Default::default();
    for (module, names) in imports {
        let place = if module.starts_with('.') { 2 } else { usize::from(OTHERS.contains(&module.as_str())) };
        sections[place].push((module, names));
    }
    let dots = |module: &str| module.len() - module.trim_start_matches('.').len();
    let mut is_first = true;
    for section in &mut sections {
        section.sort_by_key(|(module, names)| (!names.is_empty(), std::cmp::Reverse(dots(module)), *module));
        if section.is_empty() {
            continue;
        }
        if !is_first {
            out.push('\n');
        }
        is_first = false;
        for (module, names) in section {
            let _ = if names.is_empty() {
                writeln!(out, "{indent}import {module}")
            } else {
                writeln!(out, "{}", from(module, names, indent))
            };
        }
    }
}

fn from(module: &str, names: &BTreeSet<String>, indent: &str) -> String {
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_by_key(|name| {
        let is_constant = name.len() > 1 && name.to_uppercase() == *name;
        let kind = if is_constant { 0 } else { 2 - u8::from(name.starts_with(char::is_uppercase)) };
        (kind, name.to_lowercase())
    });
    let line = format!("{indent}from {module} import {}", names.join(", "));
    if line.len() <= WIDTH {
        return line;
    }
    let mut out = format!("{indent}from {module} import (\n");
    for name in names {
        let _ = writeln!(out, "{indent}    {name},");
    }
    out + indent + ")"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_used_are_imported() {
        let mut module = Module::default();
        for (name, from) in [("sys", ""), ("Any", "typing"), ("Old", "..far"), ("LIST", "..far"), ("unused", ".a")] {
            module.imports.insert(name.to_owned(), (from.to_owned(), false));
        }
        module.imports.insert("Self".to_owned(), ("typing_extensions".to_owned(), true));
        module.names.insert("_own".to_owned());
        let modules = BTreeMap::from([("a.py".to_owned(), module)]);
        let mut names = Names::new(&modules, "b.py");
        names.uses(
            "a.py",
            "return sys.Any(_own, LIST, unused=\"LIST\", Twin=1, a=Any, b=new(New, self.sys))",
            &["LIST"],
        );
        names.uses("a.py", "Self", &[]);
        names.uses("a.py", "LIST", &[]);
        let words = BTreeMap::from([("Old".to_owned(), "New".to_owned())]);
        assert_eq!(
            names.imports(&BTreeSet::new(), &words).expect("one source each"),
            "from __future__ import annotations\n\nimport sys\nfrom typing import TYPE_CHECKING, Any\n\n\
             from ..far import LIST, New\nfrom .a import _own\n\nif TYPE_CHECKING:\n    from typing_extensions import Self\n"
        );
    }
}
