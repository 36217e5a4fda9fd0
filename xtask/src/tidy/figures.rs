//! Figures of the tree: lines that people wrote, and openings of doc comments.

use super::Tree;
use super::source::Source;

/// Folders that are counted, with the name of each.
const PARTS: [(&str, &str); 8] = [
    ("core", "core/src/"),
    ("command", "cli/src/"),
    ("Python, package", "bindings-python/python/tricorn/"),
    ("Node, package", "bindings-node/lib/"),
    ("Swift, package", "bindings-swift/Sources/Tricorn/"),
    ("Python, native", "bindings-python/src/"),
    ("Node, native", "bindings-node/src/"),
    ("Swift, native", "bindings-swift/src/"),
];

/// Words that no doc comment should begin with.
const OPENINGS: [&str; 8] = ["What", "Whether", "Whose", "Who", "How", "Where", "Of", "Which"];

/// One line for each part: files, lines (of Rust up to the unit tests), files over 800 lines, and doc comments that begin
/// with a word of a relative clause.
pub(super) fn table(tree: &Tree) -> Vec<String> {
    let mut lines = vec![format!("{:<18}{:>6}{:>9}{:>12}{:>18}", "", "files", "lines", "over 800", "openings")];
    let mut hosts = 0;
    for (name, folder) in PARTS {
        let files: Vec<&Source> = tree.under(folder).filter(|file| is_code(file)).collect();
        let each: Vec<usize> = files.iter().map(|file| length(file)).collect();
        let all: usize = each.iter().sum();
        let long = each.iter().filter(|lines| **lines > 800).count();
        let (odd, docs) = files.iter().map(|file| openings(&file.text)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let share = format!("{odd} of {docs}, {:.1} %", 100.0 * odd as f64 / docs.max(1) as f64);
        lines.push(format!("{name:<18}{:>6}{all:>9}{long:>12}{share:>18}", files.len()));
        if name.ends_with("package") {
            hosts += all;
        }
    }
    lines.push(format!("{:<18}{:>6}{hosts:>9}", "host packages", ""));
    lines
}

fn is_code(file: &Source) -> bool {
    let is_ours = ["rs", "py", "pyi", "ts", "swift"].contains(&file.extension());
    is_ours && (file.extension() != "rs" || file.is_rust_code())
}

fn length(file: &Source) -> usize {
    if file.extension() == "rs" { file.code().lines().count() } else { file.text.lines().count() }
}

/// Doc comments that begin with one of [`OPENINGS`], and all.
fn openings(text: &str) -> (usize, usize) {
    let (mut odd, mut all) = (0, 0);
    let mut before = "";
    for line in text.lines().map(str::trim) {
        let is_first = !before.starts_with("///") && !before.starts_with("//!");
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).filter(|_| is_first);
        let doc = doc
            .or_else(|| line.strip_prefix("/**"))
            .or_else(|| line.strip_prefix("\"\"\"").filter(|text| !text.is_empty()));
        if let Some(word) = doc.and_then(|text| text.split_whitespace().next()) {
            all += 1;
            odd += usize::from(OPENINGS.contains(&word));
        }
        before = line;
    }
    (odd, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_doc_comment_counts() {
        let text = "/// What it is.\n/// Whose it is.\nfn a() {}\n\n/// A thing.\nfn b() {}\n    \"\"\"How it works.\"\"\"\n/** Returns. */";
        assert_eq!(openings(text), (2, 4));
    }
}
