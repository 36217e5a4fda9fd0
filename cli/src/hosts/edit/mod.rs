//! Entries put into a configuration and taken out again, with every other byte left as it was.
//!
//! No file is parsed and written anew: parsers say where things are, and text is put in or cut out there. What comes out
//! is read again and compared with what was to come out, so that a layout that was not thought of ends in a refusal.

mod json;
mod toml;
mod yaml;

use serde_json::{Map, Value};

/// The language of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, with comments and commas at the end.
    Json,
    Toml,
    Yaml,
}

/// The reason why a text is not edited.
#[derive(Debug, PartialEq)]
pub(super) enum Trouble {
    /// It cannot be read, for a fault at this line and column, counted from 1.
    Broken { line: usize, column: usize, message: String },
    /// It can be read, but not edited.
    Refused(String),
}

impl Format {
    /// The whole text as a value; null where there is nothing in it.
    pub(super) fn read(self, text: &str) -> Result<Value, Trouble> {
        match self {
            Self::Json => json::read(text),
            Self::Toml => toml::read(text),
            Self::Yaml => yaml::read(text),
        }
    }

    /// The entries below `root`, by name.
    pub(super) fn entries(self, text: &str, root: &str) -> Result<Map<String, Value>, Trouble> {
        match self.read(text)? {
            Value::Null => Ok(Map::new()),
            Value::Object(mut all) => match all.remove(root) {
                None | Some(Value::Null) => Ok(Map::new()),
                Some(Value::Object(entries)) => Ok(entries),
                Some(other) => Err(Trouble::Refused(format!("{root} is {}, not a table of servers", kind(&other)))),
            },
            other => Err(Trouble::Refused(format!("the file holds {}, not a table", kind(&other)))),
        }
    }

    /// The text with this entry in it: added at the end of the others, or in the place of the one of that name.
    pub(super) fn put(self, text: &str, root: &str, name: &str, value: &Value) -> Result<String, Trouble> {
        let mut wanted = self.entries(text, root)?;
        wanted.insert(name.to_owned(), value.clone());
        let after = match self {
            Self::Json => json::put(text, root, name, value),
            Self::Toml => toml::put(text, root, name, value),
            Self::Yaml => yaml::put(text, root, name, value),
        }?;
        self.proven(text, after, root, wanted)
    }

    /// The text without this entry, which is in it.
    pub(super) fn take(self, text: &str, root: &str, name: &str) -> Result<String, Trouble> {
        let mut wanted = self.entries(text, root)?;
        wanted.remove(name);
        let after = match self {
            Self::Json => json::take(text, root, name),
            Self::Toml => toml::take(text, root, name),
            Self::Yaml => yaml::take(text, root, name),
        }?;
        self.proven(text, after, root, wanted)
    }

    /// The new text, if it says what the old one said, but for the entries.
    fn proven(self, before: &str, after: String, root: &str, wanted: Map<String, Value>) -> Result<String, Trouble> {
        let without = |value: Value| match value {
            Value::Object(mut all) => {
                all.remove(root);
                all
            }
            _ => Map::new(),
        };
        let refused = || Trouble::Refused("its layout is one that this command cannot edit without a risk".to_owned());
        let others = without(self.read(before)?);
        let read = self.read(&after).map_err(|_| refused())?;
        let entries = self.entries(&after, root).map_err(|_| refused())?;
        if without(read) != others || entries != wanted {
            return Err(refused());
        }
        Ok(after)
    }

    /// The text of an entry, for a person to put in by hand.
    pub(super) fn example(self, root: &str, name: &str, value: &Value) -> String {
        self.put("", root, name, value).unwrap_or_default()
    }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

/// The line ending of a text: that of its first line.
fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The line and the column, counted from 1, of a byte.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let mut byte = byte.min(text.len());
    while !text.is_char_boundary(byte) {
        byte -= 1;
    }
    let before = &text[..byte];
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before[start..].chars().count() + 1)
}

/// A change of a text: the bytes that go, and what comes in their place.
type Change = (std::ops::Range<usize>, String);

fn changed(text: &str, mut changes: Vec<Change>) -> String {
    changes.sort_by_key(|(range, _)| (range.start, range.end));
    let mut result = text.to_owned();
    for (range, new) in changes.into_iter().rev() {
        result.replace_range(range, &new);
    }
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Puts an entry into a text and takes it out again: the text is what it was.
    fn round(format: Format, text: &str, root: &str) {
        let value = json!({"command": "a \"b\" C:\\d", "args": ["-y", "ä", "#", "a: b", "yes", "1.5", ""], "env": {"A_B": "\u{2028}"}});
        // Not all names with all texts: the tests are compiled without optimization.
        let names = ["weather", "a.b", "größe 1", "#"];
        for name in [names[0], names[text.len() % 4]] {
            let with = format.put(text, root, name, &value).unwrap_or_else(|error| panic!("{error:?} in {text}"));
            assert_eq!(format.entries(&with, root).expect("read")[name], value, "{with}");
            let without = format.take(&with, root, name).unwrap_or_else(|error| panic!("{error:?} in {with}"));
            assert_eq!(without, text, "by way of {with}");
            let other = json!({"command": "b", "args": []});
            let replaced = format.put(&with, root, name, &other).expect("replaced");
            assert_eq!(format.take(&replaced, root, name).expect("taken"), text, "by way of {replaced}");
        }
    }

    #[test]
    fn json_of_all_layouts_is_what_it_was() {
        let mut count = 0;
        for newline in ["\n", "\r\n"] {
            for indent in ["  ", "    ", "\t", ""] {
                for comma in ["", ","] {
                    for (above, behind, below) in [
                        ("", "", ""),
                        ("// above\n", "", ""),
                        ("", " // behind", ""),
                        ("", " /* , */", "// \"below\": {},\n"),
                        ("\n", "", "\n"),
                    ] {
                        for entries in
                            ["\"a\": {}", "\"a\": {\"command\": \"x\"},\nI\"b\": { }", "\"a\": {\n\"x\": [1, 2]\n}"]
                        {
                            for after in ["", ",\n\"z\": null", ",\n\"z\": {\"mcpServers\": {}}"] {
                                let text = format!(
                                    "{{\nU\"x\": 1,\nU\"mcpServers\": {{\n{above}I{entries}{comma}{behind}\n{below}U}}{after}\n}}\n"
                                );
                                let text =
                                    text.replace('I', &indent.repeat(2)).replace('U', indent).replace('\n', newline);
                                round(Format::Json, &text, "mcpServers");
                                count += 1;
                            }
                        }
                    }
                }
            }
        }
        for text in [
            "{\"mcpServers\":{\"a\":{}}}",
            "{ \"mcpServers\": { \"a\": 1, \"b\": 2, } }",
            "{\"mcpServers\": {}}",
            "\n\n{\"mcpServers\":{},\"b\":1}\n",
        ] {
            round(Format::Json, text, "mcpServers");
        }
        assert_eq!(count, 720);
    }

    #[test]
    fn toml_of_all_layouts_is_what_it_was() {
        for newline in ["\n", "\r\n"] {
            for end in ["", "\n", "\n\n"] {
                for text in [
                    "a = 1",
                    "a = 1\n\n[mcp_servers]\n\n[mcp_servers.a]\ncommand = \"a\" # a",
                    "[mcp_servers.a]\ncommand = \"a\"\n[mcp_servers.a.env]\nA = \"b\"\n\n# tui\n[tui]\nx = 1",
                    "[mcp_servers.a]\ncommand = \"a\"\n[[b]]\n[b.c]\n[[b]]",
                    "[mcp_servers.\"a.x\"]\ncommand = '''\n[mcp_servers.b]\n'''\n\n# end",
                    "mcp_servers.a.command = \"a\"",
                ] {
                    round(Format::Toml, &format!("{text}{end}").replace('\n', newline), "mcp_servers");
                }
            }
        }
    }

    #[test]
    fn yaml_of_all_layouts_is_what_it_was() {
        for newline in ["\n", "\r\n"] {
            for end in ["", "\n"] {
                for text in [
                    "extensions:\n  a: {}",
                    "# b\n---\nx: 1\nextensions:\n  a:\n    args: [1,\n      2]\n    b: >-\n      x\n\n      # y\nz: |\n  text",
                    "extensions: # these\n    'a': null\n    \"b\":\n        c: &x 1\n        d: *x\n\n# end",
                    "extensions:\n  a:\n  - 1\n  - 2\n# b\nb: 1",
                ] {
                    round(Format::Yaml, &format!("{text}{end}").replace('\n', newline), "extensions");
                }
            }
        }
    }
}
