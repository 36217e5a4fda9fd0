//! A file, and its code without comments, strings and tests.

use crate::place;
use std::path::Path;

/// A tracked text file.
pub(super) struct Source {
    /// From the repository, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    /// None for what is gone or no text.
    pub(super) fn read(path: String) -> Option<Self> {
        let text = std::fs::read_to_string(place::root().join(&path)).ok()?;
        Some(Self { path, text })
    }

    pub(super) fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|e| e.to_str()).unwrap_or_default()
    }

    pub(super) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.split('.').next().unwrap_or_default()
    }

    /// Rust code that is no test.
    pub(super) fn is_rust_code(&self) -> bool {
        let tests = self.path.ends_with("/tests.rs") || self.path.contains("/tests/") || self.path.contains("/fuzz/");
        self.extension() == "rs" && !tests
    }

    /// The code, comments blanked, up to the unit tests; strings stay.
    pub(super) fn code(&self) -> String {
        until_tests(&blank(&self.text, false))
    }

    /// The code, comments and the insides of strings blanked, up to the unit tests.
    pub(super) fn bare(&self) -> String {
        until_tests(&blank(&self.text, true))
    }

    /// `path:line`.
    pub(super) fn at(&self, offset: usize) -> String {
        let line = self.text.get(..offset).map_or(0, |before| before.matches('\n').count()) + 1;
        format!("{}:{line}", self.path)
    }
}

/// The code before its module of unit tests, which stands at the end; one in a file of its own leaves no mark.
fn until_tests(code: &str) -> String {
    let starts = ["#[cfg(test)]", "#[cfg(all(test"].into_iter().flat_map(|start| code.match_indices(start));
    let end = starts.map(|(at, _)| at).filter(|at| is_module(&code[*at..])).min().unwrap_or(code.len());
    code[..end].to_owned()
}

/// True for attributes of an inline module.
fn is_module(code: &str) -> bool {
    let mut lines = code.lines().skip_while(|line| line.starts_with("#["));
    lines.next().is_some_and(|line| line.starts_with("mod ") && line.contains('{'))
}

/// Replaces comments, and if asked strings, by spaces; offsets and line breaks stay.
fn blank(text: &str, strings: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut wipe = |from: usize, to: usize| {
        for byte in &mut out[from..to] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let mut i = 0;
    while i < bytes.len() {
        let rest = &bytes[i..];
        if rest.starts_with(b"//") {
            let end = find(bytes, i, b"\n");
            wipe(i, end);
            i = end;
        } else if rest.starts_with(b"/*") {
            let end = (find(bytes, i + 2, b"*/") + 2).min(bytes.len());
            wipe(i, end);
            i = end;
        } else if let Some(length) = raw_string(bytes, i) {
            if strings {
                wipe(i, i + length);
            }
            i += length;
        } else if rest[0] == b'"' {
            let end = string_end(bytes, i + 1);
            if strings {
                wipe(i + 1, end.min(bytes.len()));
            }
            i = end + 1;
        } else if rest[0] == b'\'' {
            // A character, or a lifetime, which has no closing quote nearby.
            let end = match rest.get(1) {
                Some(b'\\') => find(bytes, i + 3, b"'"),
                _ => (i + 2..(i + 6).min(bytes.len())).find(|j| bytes[*j] == b'\'').unwrap_or(i),
            };
            i = end + 1;
        } else {
            i += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> usize {
    let tail = bytes.get(from..).unwrap_or_default();
    tail.windows(what.len()).position(|w| w == what).map_or(bytes.len(), |at| from + at)
}

fn string_end(bytes: &[u8], mut i: usize) -> usize {
    while i < bytes.len() && bytes[i] != b'"' {
        i += if bytes[i] == b'\\' { 2 } else { 1 };
    }
    i
}

/// The length of a raw string that starts here.
fn raw_string(bytes: &[u8], start: usize) -> Option<usize> {
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    if start > 0 && bytes.get(start - 1).is_some_and(word) {
        return None;
    }
    let mut i = start + usize::from(bytes.get(start) == Some(&b'b'));
    if bytes.get(i) != Some(&b'r') {
        return None;
    }
    i += 1;
    let hashes = bytes[i..].iter().take_while(|b| **b == b'#').count();
    i += hashes;
    if bytes.get(i) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let end = find(bytes, i + 1, &close) + close.len();
    Some(end.min(bytes.len()) - start)
}

/// Returns the places of a word, with no word character around it.
pub(super) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| !part(text[..*at].chars().next_back()) && !part(text[at + word.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blanked_in_place() {
        let code = "a // \"x\"\n/* crate::b */ c \"crate::d // no\" 'e' '\"' r#\"f \" g\"# &'h i \"\\\"j\" k";
        let bare = blank(code, true);
        assert_eq!(bare.len(), code.len());
        assert_eq!(
            bare.split_whitespace().collect::<Vec<_>>(),
            ["a", "c", "\"", "\"", "'e'", "'\"'", "&'h", "i", "\"", "\"", "k"]
        );
        assert!(blank(code, false).contains("crate::d // no"));
        assert!(!blank(code, false).contains("crate::b"));
    }

    #[test]
    fn unit_tests_are_no_code() {
        for attributes in ["#[cfg(test)]", "#[cfg(all(test, unix))]", "#[cfg(test)]\n#[allow(unused)]"] {
            assert_eq!(until_tests(&format!("fn a() {{}}\n{attributes}\nmod tests {{\n}}\n")), "fn a() {}\n");
        }
        let file = "#[cfg(test)]\nmod tests;\n\nfn a() {}\n#[cfg(test)]\nfn b() {}\n";
        assert_eq!(until_tests(file), file);
    }

    #[test]
    fn a_word_stands_alone() {
        assert_eq!(words("flatten flattened .flatten() a_flatten", "flatten").collect::<Vec<_>>(), [0, 19]);
    }
}
