//! Reader of the Python sources: imports, names, and the classes with their methods, as `ruff format` lays them out.
//!
//! A reader of lines. A form that it does not know is an error, with its place.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};

/// A module of the client.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Imported names: the module that each is from, and true when it is imported for type checkers only.
    pub(super) imports: BTreeMap<String, (String, bool)>,
    /// Names of the module's own.
    pub(super) names: BTreeSet<String>,
    /// Definitions of type variables.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) classes: BTreeMap<String, Class>,
}

#[derive(Debug, Default)]
pub(super) struct Class {
    pub(super) bases: String,
    pub(super) doc: Option<Doc>,
    pub(super) attributes: Vec<String>,
    pub(super) methods: Vec<Method>,
}

/// A method as it stands in a class, its lines without the indentation that they have there.
#[derive(Clone, Debug, Default)]
pub(super) struct Method {
    pub(super) decorators: Vec<String>,
    pub(super) is_async: bool,
    pub(super) name: String,
    pub(super) parameters: Vec<String>,
    /// A comma after the last parameter: each has a line of its own.
    pub(super) is_exploded: bool,
    pub(super) returns: String,
    pub(super) comment: String,
    pub(super) doc: Option<Doc>,
    /// Statements, each with its lines.
    pub(super) body: Vec<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Doc {
    pub(super) lines: Vec<String>,
    /// The closing quotes are on a line of their own.
    pub(super) is_open: bool,
}

/// Reads a module. `path` is for errors.
pub(super) fn read(path: &str, text: &str) -> Result<Module> {
    let lines: Vec<&str> = text.lines().collect();
    let mut reader = Reader { path, lines, at: 0 };
    let mut module = Module::default();
    reader.top(&mut module)?;
    Ok(module)
}

struct Reader<'a> {
    path: &'a str,
    lines: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn top(&mut self, module: &mut Module) -> Result<()> {
        while let Some(line) = self.line() {
            if line.is_empty() || line.starts_with('#') || line.starts_with('@') {
                self.at += 1;
            } else if line.starts_with("\"\"\"") {
                self.doc(0)?;
            } else if line.starts_with("from ") || line.starts_with("import ") {
                self.import(module, false)?;
            } else if line == "if TYPE_CHECKING:" {
                self.at += 1;
                while self.line().is_some_and(|line| line.is_empty() || line.starts_with(' ')) {
                    if self.line() == Some("") { self.at += 1 } else { self.import(module, true)? }
                }
            } else if let Some(head) = line.strip_prefix("class ") {
                let Some(head) = head.strip_suffix(':') else { bail!(self.unknown("the head of a class")) };
                let (name, bases) = head.split_once('(').unwrap_or((head, ")"));
                let bases = bases.trim_end_matches(')').to_owned();
                self.at += 1;
                let class = self.class(bases)?;
                module.names.insert(name.to_owned());
                module.classes.insert(name.to_owned(), class);
            } else if line.starts_with("def ") || line.starts_with("async def ") || line.starts_with("if ") {
                if let Some((_, name)) = line.split_once("def ") {
                    module.names.insert(name.split('(').next().unwrap_or(name).to_owned());
                }
                self.statement()?;
                self.skip(4);
            } else if let Some(name) = assigned(line) {
                let text = self.statement()?.join(" ");
                if text.contains("= TypeVar(") {
                    module.variables.insert(name.to_owned(), text.clone());
                }
                module.names.insert(name.to_owned());
            } else {
                bail!(self.unknown("a statement of a module"));
            }
        }
        Ok(())
    }

    fn import(&mut self, module: &mut Module, for_types: bool) -> Result<()> {
        let start = self.at;
        let text = self.statement()?.join(" ");
        let unknown = |reader: &mut Self| {
            reader.at = start;
            reader.unknown("an import")
        };
        let Some((from, names)) = text.trim().strip_prefix("from ").and_then(|text| text.split_once(" import ")) else {
            let Some(name) = text.trim().strip_prefix("import ").filter(|name| is_identifier(name)) else {
                bail!(unknown(self));
            };
            module.imports.insert(name.to_owned(), (String::new(), for_types));
            return Ok(());
        };
        let names = names.split('#').next().unwrap_or(names).trim_matches(['(', ')', ' ']);
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            ensure!(is_identifier(name), unknown(self));
            module.imports.insert(name.to_owned(), (from.to_owned(), for_types));
        }
        Ok(())
    }

    fn class(&mut self, bases: String) -> Result<Class> {
        let mut class = Class { bases, ..Class::default() };
        let mut decorators = Vec::new();
        while let Some(line) = self.line() {
            let Some(inner) = line.strip_prefix("    ").or_else(|| line.is_empty().then_some("")) else { break };
            if inner.is_empty() || inner.starts_with('#') {
                self.at += 1;
            } else if inner.starts_with("\"\"\"") {
                let doc = self.doc(4)?;
                if class.attributes.is_empty() && class.methods.is_empty() {
                    class.doc = Some(doc);
                }
            } else if inner.starts_with('@') {
                decorators.push(self.statement()?.join("\n").trim().to_owned());
            } else if inner.starts_with("def ") || inner.starts_with("async def ") {
                let mut method = self.method()?;
                method.decorators = std::mem::take(&mut decorators);
                class.methods.push(method);
            } else if assigned(inner).is_some() {
                class.attributes.push(self.statement()?.join("\n").trim().to_owned());
            } else {
                bail!(self.unknown("a statement of a class"));
            }
        }
        Ok(class)
    }

    fn method(&mut self) -> Result<Method> {
        let start = self.at;
        let head = self.statement()?;
        let mut text: String = head.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        let mut method = Method::default();
        if let Some((code, comment)) = text.clone().split_once("  # ") {
            text = code.to_owned();
            method.comment = format!("  # {comment}");
        }
        let Some(rest) = text.strip_prefix("async def ").or_else(|| text.strip_prefix("def ")) else {
            bail!(self.unknown("the head of a method"));
        };
        method.is_async = text.starts_with("async ");
        let end = closing(rest).filter(|end| rest[*end..].starts_with(')'));
        let (Some(open), Some(end)) = (rest.find('('), end) else { bail!(self.unknown("the head of a method")) };
        method.name = rest[..open].to_owned();
        let parameters = rest[open + 1..end].trim();
        method.is_exploded = parameters.ends_with(',');
        method.parameters = parts(parameters);
        let tail = &rest[end + 1..];
        let Some(returns) = tail.strip_suffix(':').or_else(|| tail.strip_suffix(": ...")) else {
            self.at = start;
            bail!(self.unknown("the head of a method"));
        };
        method.returns = returns.trim().trim_start_matches("-> ").to_owned();
        if tail.ends_with("...") {
            method.body.push(vec!["...".to_owned()]);
            return Ok(method);
        }
        if self.line().is_some_and(|line| line.starts_with("        \"\"\"")) {
            method.doc = Some(self.doc(8)?);
        }
        while let Some(line) = self.line() {
            if line.is_empty() {
                // A blank line inside of a body, or the end of it.
                let next = self.lines[self.at..].iter().find(|line| !line.is_empty());
                if next.is_some_and(|line| line.starts_with("        ")) {
                    method.body.push(vec![String::new()]);
                }
                self.at += 1;
            } else if line.starts_with("        ") {
                let start = self.at;
                let is_text = line.trim_start().starts_with("\"\"\"");
                let statement = if is_text {
                    self.doc(0)?; // of an attribute
                    self.lines[start..self.at].to_vec()
                } else {
                    self.statement()?
                };
                method.body.push(statement.iter().map(|line| line[8.min(line.len())..].to_owned()).collect());
            } else {
                break;
            }
        }
        Ok(method)
    }

    /// The documentation that begins in this line, without its indentation.
    fn doc(&mut self, indent: usize) -> Result<Doc> {
        let mut doc = Doc::default();
        let start = self.at;
        while let Some(line) = self.line() {
            self.at += 1;
            let mut line = line.get(indent..).unwrap_or("");
            if self.at == start + 1 {
                line = line.trim_start().trim_start_matches("\"\"\"");
            }
            if let Some(last) = line.trim_end().strip_suffix("\"\"\"") {
                doc.is_open = last.is_empty();
                if !last.is_empty() {
                    doc.lines.push(last.to_owned());
                }
                return Ok(doc);
            }
            doc.lines.push(line.to_owned());
        }
        self.at = start;
        bail!(self.unknown("documentation without an end"))
    }

    /// The lines of one statement: to where every bracket is closed.
    fn statement(&mut self) -> Result<Vec<&'a str>> {
        let start = self.at;
        let mut found = Vec::new();
        let mut depth = 0;
        while let Some(line) = self.line() {
            if line.contains("\"\"\"") {
                bail!(self.unknown("text in code"));
            }
            found.push(line);
            self.at += 1;
            depth += code(line).filter_map(|(_, letter)| bracket(letter)).sum::<i32>();
            if depth == 0 {
                return Ok(found);
            }
        }
        self.at = start;
        bail!(self.unknown("brackets that are not closed"))
    }

    fn skip(&mut self, indent: usize) {
        let before = " ".repeat(indent);
        while self.line().is_some_and(|line| line.is_empty() || line.starts_with(&before)) {
            self.at += 1;
        }
    }

    fn line(&self) -> Option<&'a str> {
        self.lines.get(self.at).map(|line| line.trim_end())
    }

    fn unknown(&self, what: &str) -> String {
        let line = self.line().unwrap_or("");
        format!("{}:{}: {what} of a form that gen-types does not know: {}", self.path, self.at + 1, line.trim())
    }
}

/// The name that a statement defines: `a = 1`, `a: int`.
fn assigned(line: &str) -> Option<&str> {
    let end = line.find(|letter| !is_of_name(letter))?;
    let rest = &line[end..];
    Some(&line[..end]).filter(|name| is_identifier(name) && (rest.starts_with(" = ") || rest.starts_with(": ")))
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_of_name)
}

pub(super) fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

fn bracket(letter: char) -> Option<i32> {
    match letter {
        '(' | '[' | '{' => Some(1),
        ')' | ']' | '}' => Some(-1),
        _ => None,
    }
}

/// The letters of a line with their places that are in no string and no comment.
pub(super) fn code(line: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut quote, mut is_escaped, mut is_comment) = (None, false, false);
    line.char_indices().filter(move |(_, letter)| {
        let letter = *letter;
        if let Some(open) = quote {
            if is_escaped {
                is_escaped = false;
            } else if letter == '\\' {
                is_escaped = true;
            } else if letter == open {
                quote = None;
            }
            return false;
        }
        is_comment |= letter == '#';
        if !is_comment && (letter == '"' || letter == '\'') {
            quote = Some(letter);
            return false;
        }
        !is_comment
    })
}

/// The place of the bracket that closes the first one.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, letter) in code(text) {
        if let Some(change) = bracket(letter) {
            depth += change;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// The parts between the commas that are in no bracket.
pub(super) fn parts(text: &str) -> Vec<String> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, letter) in code(text) {
        depth += bracket(letter).unwrap_or(0);
        if letter == ',' && depth == 0 {
            found.push(text[start..at].trim().to_owned());
            start = at + 1;
        }
    }
    found.push(text[start..].trim().to_owned());
    found.retain(|part| !part.is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#""""Module.

More.
"""

from __future__ import annotations

import sys
from typing import (
    Any,
    cast,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")
X = str | int
"""A union."""


class A(B[T]):
    """One."""

    __slots__ = ("x",)

    # -- part

    @deprecated("a (b")
    async def do(
        self, what: Mapping[str, Any], *, more: int = 0, **options: Unpack[O]
    ) -> dict[str, T]:  # noqa: A002 - why
        """Text.

            code
        """
        x = await self.f(
            what,
        )

        self.x = x
        """Text
        of an attribute."""
        return x

    @property
    def p(self) -> int: ...


def f(a: int) -> None:
    return a
"#;

    #[test]
    fn a_module_is_read() {
        let module = read("a.py", SOURCE).expect("known forms");
        assert_eq!(module.imports["Any"], ("typing".to_owned(), false));
        assert_eq!(module.imports["Unpack"], ("typing_extensions".to_owned(), true));
        assert_eq!(module.imports["sys"], (String::new(), false));
        assert_eq!(module.variables["T"], "T = TypeVar(\"T\")");
        assert_eq!(module.names.iter().map(String::as_str).collect::<Vec<_>>(), ["A", "T", "X", "f"]);
        let class = &module.classes["A"];
        assert_eq!(
            (class.bases.as_str(), class.attributes.as_slice()),
            ("B[T]", &["__slots__ = (\"x\",)".to_owned()][..])
        );
        let method = &class.methods[0];
        assert_eq!(method.decorators, ["@deprecated(\"a (b\")"]);
        assert_eq!(
            method.parameters,
            ["self", "what: Mapping[str, Any]", "*", "more: int = 0", "**options: Unpack[O]"]
        );
        assert_eq!((method.returns.as_str(), method.comment.as_str()), ("dict[str, T]", "  # noqa: A002 - why"));
        let lines = ["Text.", "", "    code"].map(str::to_owned).to_vec();
        assert_eq!(method.doc, Some(Doc { lines, is_open: true }));
        let text = vec!["\"\"\"Text", "of an attribute.\"\"\""];
        let call = vec!["x = await self.f(", "    what,", ")"];
        assert_eq!(method.body, [call, vec![""], vec!["self.x = x"], text, vec!["return x"]]);
        assert!(method.is_async && !method.is_exploded && !class.methods[1].is_async);
    }

    #[test]
    fn unknown_forms_have_their_place() {
        for (text, place) in [
            ("with a:\n    pass", "a.py:1: a statement of a module"),
            ("class A:\n    if b:\n        c = 1", "a.py:2: a statement of a class"),
            ("import a as b", "an import"),
            ("from a import b as c", "a.py:1: an import"),
            ("class A:\n    def f(self):\n        return \"\"\"a\"\"\"", "a.py:3: text in code"),
            ("a = (1,", "a.py:1: brackets that are not closed"),
        ] {
            let error = read("a.py", text).expect_err(text).to_string();
            assert!(error.contains(place), "{error}");
        }
    }
}
