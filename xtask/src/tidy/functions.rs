//! Lengths of functions: one over [`MOST`] lines is in the list, with the reason.
//!
//! Formatters decide the indentation, so a function ends at the first closing brace that stands as deep as its own line, and
//! one of Python before the next line that stands no deeper.

use super::Tree;
use super::source::Source;
use std::collections::BTreeMap;

/// Lines of a function, signature and closing brace included; a docstring does not count.
const MOST: usize = 80;

const FOLDERS: [&str; 9] = [
    "core/src/",
    "cli/src/",
    "xtask/src/",
    "bindings-python/src/",
    "bindings-python/python/tricorn/",
    "bindings-node/src/",
    "bindings-node/lib/",
    "bindings-swift/src/",
    "bindings-swift/Sources/Tricorn/",
];

/// A function, by the number of its first line from 0.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

/// No function over the limit but those of the list, and none in the list that is short or gone.
pub(super) fn lengths(tree: &Tree) -> Vec<String> {
    let listed = &tree.rules.functions;
    let mut found = Vec::new();
    let mut long = BTreeMap::new();
    for file in FOLDERS.into_iter().flat_map(|folder| tree.under(folder)) {
        for function in functions(file).into_iter().filter(|function| function.lines > MOST) {
            let key = format!("{} {}", file.path, function.name);
            if !listed.contains_key(&key) {
                let at = function.line + 1;
                found.push(format!("{}:{at}: {} has {} lines", file.path, function.name, function.lines));
            }
            *long.entry(key).or_insert(0) += 1;
        }
    }
    for (key, why) in listed {
        if why.trim().is_empty() {
            found.push(format!("xtask/tidy.toml: {key}: has no reason"));
        }
        match long.get(key) {
            None => found.push(format!("xtask/tidy.toml: {key}: no longer over {MOST} lines")),
            Some(1) => {}
            Some(_) => found.push(format!("xtask/tidy.toml: {key}: names more than one function over {MOST} lines")),
        }
    }
    found
}

fn functions(file: &Source) -> Vec<Function> {
    let code = match file.extension() {
        "rs" if file.is_rust_code() => file.bare(),
        "py" | "ts" | "swift" => file.text.clone(),
        _ => return Vec::new(),
    };
    let lines: Vec<&str> = code.lines().collect();
    let named = (0..lines.len()).filter_map(|line| Some((line, name(file.extension(), lines[line])?)));
    let length = |line| if file.extension() == "py" { block(&lines, line) } else { braced(&lines, line) };
    named.filter_map(|(line, name)| Some(Function { name: name.to_owned(), line, lines: length(line)? })).collect()
}

/// The name of the function that this line begins.
fn name<'a>(extension: &str, line: &'a str) -> Option<&'a str> {
    let line = line.trim_start();
    match extension {
        "rs" => after(line, &["fn"]),
        "py" => after(line, &["def"]),
        "swift" => after(line, &["func"]).or_else(|| {
            let line = modifiers(line);
            ["init", "deinit", "subscript"].into_iter().find(|word| {
                line.strip_prefix(word).is_some_and(|rest| rest.trim_start().starts_with(['(', '<', '?', '{']))
            })
        }),
        _ if line.split(' ').any(|word| word == "class" || word == "interface") => None,
        _ => after(line, &["function", "function*"]).or_else(|| arrow(line)).or_else(|| method(modifiers(line))),
    }
}

/// Words that may stand before the one that declares a function.
const MODIFIERS: &str = "pub const async unsafe extern default export static private public protected override \
    abstract get set fileprivate internal final class mutating nonmutating convenience required package open \
    nonisolated indirect declare readonly consuming";

/// A line without its modifiers and attributes.
fn modifiers(line: &str) -> &str {
    let mut rest = line;
    loop {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '@')).unwrap_or(rest.len());
        let word = &rest[..end];
        if !(MODIFIERS.split(' ').any(|known| known == word) || word.len() > 1 && word.starts_with('@')) {
            return rest;
        }
        let mut more = &rest[end..];
        // `pub(crate)`, `@inline(__always)`, `extern "C"`.
        if more.starts_with('(') {
            more = more.split_once(')').map_or("", |(_, more)| more);
        }
        let more = more.trim_start();
        let more = more.strip_prefix('"').and_then(|m| m.split_once('"')).map_or(more, |(_, more)| more.trim_start());
        if more.starts_with(['(', '<', '=', ':', '.', '?', '{']) || more.is_empty() {
            return rest;
        }
        rest = more;
    }
}

/// The name behind one of these words, which may have modifiers before it.
fn after<'a>(line: &'a str, words: &[&str]) -> Option<&'a str> {
    let line = modifiers(line);
    let rest = words.iter().find_map(|word| line.strip_prefix(word)?.strip_prefix(' '))?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    (end > 0).then_some(&rest[..end])
}

/// The name of a constant of TypeScript that is an arrow function.
fn arrow(line: &str) -> Option<&str> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let rest = line.strip_prefix("const ")?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
    (rest.ends_with("=> {") && end > 0).then_some(&rest[..end])
}

/// The name of a method of TypeScript.
fn method(line: &str) -> Option<&str> {
    const OTHERS: &str = "if for while switch catch return do else try throw await yield new typeof super this void \
        function";
    let line = line.trim_start_matches('*');
    let end = line.find(|c: char| !(c.is_alphanumeric() || "_#".contains(c)))?;
    let (name, rest) = line.split_at(end);
    let is_method = end > 0 && rest.starts_with(['(', '<']) && OTHERS.split(' ').all(|other| other != name);
    is_method.then_some(name)
}

fn depth(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Lines of a function with braces that begins here; None for one without a body.
fn braced(lines: &[&str], first: usize) -> Option<usize> {
    let own = depth(lines[first]);
    // The signature ends with a brace on its first line, or on one that stands as deep.
    let mut open = first;
    loop {
        let line = lines[open].trim_end();
        if depth(line) == own && line.ends_with('{') {
            break;
        }
        let next = lines.get(open + 1)?;
        let goes_on = depth(next) > own
            || [")", "where", "->", "{", "]", ">", "}"].iter().any(|start| next.trim_start().starts_with(start));
        if depth(line) == own && line.ends_with([';', '}']) || !goes_on {
            return None;
        }
        open += 1;
    }
    let closes = |line: &&str| depth(line) == own && ["}", "},", "};"].contains(&line.trim());
    let length = lines[open + 1..].iter().position(closes)?;
    Some(open + 1 + length - first + 1)
}

/// Lines of a function of Python that begins here.
fn block(lines: &[&str], first: usize) -> Option<usize> {
    let own = depth(lines[first]);
    // The signature ends on its first line, or on one that stands as deep; a short body may stand on the same line.
    let code = |line: &str| line.split("  #").next().unwrap_or_default().trim_end().to_owned();
    let is_end = |line: &&str| depth(line) == own && !line.trim().is_empty() && !code(line).ends_with(['(', '[']);
    let colon = lines[first..].iter().position(is_end)? + first;
    if !code(lines[colon]).ends_with(':') {
        return Some(colon + 1 - first);
    }
    let mut last = colon;
    for (at, line) in lines.iter().enumerate().skip(colon + 1).filter(|(_, line)| !line.trim().is_empty()) {
        if depth(line) <= own {
            break;
        }
        last = at;
    }
    Some(last + 1 - first - docstring(&lines[colon + 1..=last]))
}

/// Lines of the docstring that begins a body.
fn docstring(body: &[&str]) -> usize {
    let Some(rest) = body.first().and_then(|line| line.trim_start().strip_prefix("\"\"\"")) else { return 0 };
    if rest.contains("\"\"\"") {
        return 1;
    }
    body[1..].iter().position(|line| line.contains("\"\"\"")).map_or(0, |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(String, usize)> {
        let file = Source { path: path.to_owned(), text: text.to_owned() };
        functions(&file).into_iter().map(|function| (function.name, function.lines)).collect()
    }

    fn expected(all: &[(&str, usize)]) -> Vec<(String, usize)> {
        all.iter().map(|(name, lines)| ((*name).to_owned(), *lines)).collect()
    }

    #[test]
    fn functions_of_rust_are_measured() {
        let text = "pub(crate) async fn a<T>(\n    x: T,\n) -> u8\nwhere\n    T: B,\n{\n    \"}\";\n    if x {\n    }\n}\n\n\
                    trait B {\n    fn b(&self);\n    fn c(&self) -> u8 { 1 }\n    fn d() {\n    }\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn e() {\n    }\n}\n";
        assert_eq!(found("core/src/a.rs", text), expected(&[("a", 10), ("d", 2)]));
        assert_eq!(found("core/src/tests.rs", text), expected(&[]));
    }

    #[test]
    fn functions_of_python_are_measured() {
        let text = "class A:\n    async def a(\n        self,\n    ) -> int:\n        \"\"\"One.\n\n        Two.\n        \"\"\"\n\
                    \n        def b():\n            return 1\n\n        return b()\n\n    def c(self): ...\n\n    \
                    def d(\n        self,\n    ) -> None: ...\n\n    def e(self):  # noqa\n        pass\n";
        assert_eq!(
            found("bindings-python/python/tricorn/a.py", text),
            expected(&[("a", 8), ("b", 2), ("c", 1), ("d", 3), ("e", 2)])
        );
    }

    #[test]
    fn functions_of_typescript_are_measured() {
        let text = "export function a(parts: {\n  b: string;\n}): void {\n  if (c) {\n  }\n  d(\n    e,\n  );\n}\n\
                    export class F {\n  async #g<T>(x: T): Promise<void> {\n  }\n\n  get h() {\n    return 1;\n  }\n}\n\
                    export class M {\n  n() {\n    return wait(\n      (o) => {\n      },\n    ).finally(p);\n  }\n}\n\
                    interface I {\n  j(x: number): void;\n  k(\n    x: number,\n  ): void;\n}\nconst l = () => {\n};\n";
        assert_eq!(
            found("bindings-node/lib/a.ts", text),
            expected(&[("a", 9), ("#g", 2), ("h", 3), ("n", 6), ("l", 2)])
        );
    }

    #[test]
    fn functions_of_swift_are_measured() {
        let text = "extension A {\n    @discardableResult public static func b<T>(\n        _ c: T\n    ) async throws -> T {\n        c\n    }\n\n\
                    \n    public init?(d: Int) {\n    }\n\n    var e: Int { 1 }\n}\nprotocol F {\n    func g()\n    func h(\n        i: Int\n    ) -> Int\n}\n";
        assert_eq!(found("bindings-swift/Sources/Tricorn/A.swift", text), expected(&[("b", 5), ("init", 2)]));
    }

    #[test]
    fn the_list_is_exact() {
        let rules = "layers = {}\ngenerated = { paths = [] }\nfaults = {}\n[functions]\n\
                     \"core/src/a.rs long\" = \"a table\"\n\"core/src/a.rs short\" = \" \"";
        let body = "    x();\n".repeat(79);
        let text = format!("fn long() {{\n{body}}}\n\nfn other() {{\n{body}}}\n\nfn short() {{\n}}\n");
        let rules = toml::from_str(rules).expect("rules");
        let tree = Tree { rules, files: vec![Source { path: "core/src/a.rs".into(), text }] };
        assert_eq!(
            lengths(&tree),
            [
                "core/src/a.rs:83: other has 81 lines",
                "xtask/tidy.toml: core/src/a.rs short: has no reason",
                "xtask/tidy.toml: core/src/a.rs short: no longer over 80 lines",
            ]
        );
    }
}
