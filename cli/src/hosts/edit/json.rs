//! JSON with comments.
//!
//! jsonc-parser's own tree (`cst`) would edit it, too, but breaks objects of one line into several and takes blank lines
//! away, so its tokens and positions are used alone.

use std::ops::Range;

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::{Change, Trouble, changed, kind, newline, position};

struct Document<'a> {
    text: &'a str,
    tokens: Vec<TokenAndRange<'a>>,
    root: Option<Node<'a>>,
}

impl<'a> Document<'a> {
    /// Parses what hosts call JSON with comments: nothing else of what the parser would let pass.
    fn parse(text: &'a str) -> Result<Self, Trouble> {
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let parsed = parse_to_ast(text, &collect, &options).map_err(|error| {
            let (line, column) = position(text, error.range().start);
            Trouble::Broken { line, column, message: error.kind().to_string() }
        })?;
        Ok(Self { text, tokens: parsed.tokens.unwrap_or_default(), root: parsed.value })
    }

    /// The property of this name; two of them are a riddle, as readers differ in which one counts.
    fn property<'b>(&self, object: &'b Object<'a>, name: &str) -> Result<Option<&'b ObjectProp<'a>>, Trouble> {
        let mut found = object.properties.iter().filter(|property| property.name.as_str() == name);
        let first = found.next();
        if let (Some(first), Some(second)) = (first, found.next()) {
            let lines = [first, second].map(|property| position(self.text, property.range.start).0);
            return Err(Trouble::Refused(format!(
                "\"{name}\" stands in it twice, in lines {} and {}",
                lines[0], lines[1]
            )));
        }
        Ok(first)
    }

    /// The tokens from one byte to another.
    fn between(&self, range: Range<usize>) -> impl DoubleEndedIterator<Item = &TokenAndRange<'a>> {
        self.tokens.iter().filter(move |token| token.range.start >= range.start && token.range.end <= range.end)
    }

    /// The comma after this byte, before anything but comments.
    fn comma_after(&self, byte: usize) -> Option<Range<usize>> {
        let mut tokens = self.between(byte..self.text.len());
        let next = tokens.find(|token| !is_comment(&token.token))?;
        (next.token == Token::Comma).then_some(next.range.start..next.range.end)
    }

    /// The comma before this byte, after anything but comments.
    fn comma_before(&self, byte: usize) -> Option<Range<usize>> {
        let mut tokens = self.between(0..byte);
        let next = tokens.rfind(|token| !is_comment(&token.token))?;
        (next.token == Token::Comma).then_some(next.range.start..next.range.end)
    }

    /// The end of the comments that follow in the same line.
    fn after_comments(&self, mut byte: usize) -> usize {
        for token in self.between(byte..self.text.len()) {
            if !is_comment(&token.token) || self.text[byte..token.range.end].trim_end_matches('\r').contains('\n') {
                break;
            }
            byte = token.range.end;
        }
        self.text[..byte].trim_end_matches('\r').len()
    }

    fn has_line_break(&self, range: Range<usize>) -> bool {
        self.text[range].contains('\n')
    }

    /// The blanks at the start of the line of this byte, if nothing else is before it.
    fn indent_of(&self, byte: usize) -> Option<&'a str> {
        let line = &self.text[line_start(self.text, byte)..byte];
        line.trim_matches([' ', '\t']).is_empty().then_some(line)
    }

    /// The blanks at the start of the line of this byte.
    fn line_indent(&self, byte: usize) -> &'a str {
        let line = &self.text[line_start(self.text, byte)..byte];
        &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
    }

    fn style(&self) -> Style<'a> {
        let object = self.root.as_ref().and_then(Node::as_object);
        let first = object.and_then(|object| object.properties.first());
        let unit = first.and_then(|first| self.indent_of(first.range.start)).filter(|indent| !indent.is_empty());
        let tight =
            first.is_some_and(|first| !self.text[first.name.end()..first.value.start()].contains([' ', '\t', '\n']));
        Style { newline: newline(self.text), unit: unit.unwrap_or("  "), tight }
    }
}

fn is_comment(token: &Token<'_>) -> bool {
    matches!(token, Token::CommentLine(_) | Token::CommentBlock(_))
}

fn line_start(text: &str, byte: usize) -> usize {
    text[..byte].rfind('\n').map_or(0, |at| at + 1)
}

pub(super) fn read(text: &str) -> Result<Value, Trouble> {
    Ok(Document::parse(text)?.root.as_ref().map_or(Value::Null, value))
}

fn value(node: &Node<'_>) -> Value {
    match node {
        Node::StringLit(text) => Value::String(text.value.to_string()),
        Node::NumberLit(number) => serde_json::from_str(number.value).unwrap_or_else(|_| number.value.into()),
        Node::BooleanLit(is) => Value::Bool(is.value),
        Node::NullKeyword(_) => Value::Null,
        Node::Array(array) => array.elements.iter().map(value).collect(),
        Node::Object(object) => {
            let all =
                object.properties.iter().map(|property| (property.name.as_str().to_owned(), value(&property.value)));
            Value::Object(all.collect::<Map<_, _>>())
        }
    }
}

pub(super) fn put(text: &str, root: &str, name: &str, entry: &Value) -> Result<String, Trouble> {
    let document = Document::parse(text)?;
    let style = document.style();
    let whole = Value::Object(Map::from_iter([(root.to_owned(), table(name, entry))]));
    let change = match &document.root {
        None => {
            let mut new = style.written(&whole, "") + style.newline;
            if !text.trim().is_empty() && !text.ends_with('\n') {
                new.insert_str(0, style.newline);
            }
            let start = if text.trim().is_empty() { 0 } else { text.len() };
            vec![(start..text.len(), new)]
        }
        Some(Node::NullKeyword(null)) => vec![(null.start()..null.end(), style.written(&whole, ""))],
        Some(Node::Object(object)) => match document.property(object, root)? {
            None => add(&document, object, root, &table(name, entry), &style),
            Some(property) => match &property.value {
                Node::Object(entries) => match document.property(entries, name)? {
                    None => add(&document, entries, name, entry, &style),
                    Some(old) => {
                        let new = if document.has_line_break(object.start()..object.end()) {
                            style.written(entry, document.line_indent(old.range.start))
                        } else {
                            style.in_one_line(entry)
                        };
                        vec![(old.value.start()..old.value.end(), new)]
                    }
                },
                Node::NullKeyword(null) => {
                    let indent = document.line_indent(property.range.start);
                    vec![(null.start()..null.end(), style.written(&table(name, entry), indent))]
                }
                other => {
                    return Err(Trouble::Refused(format!("{root} is {}, not a table of servers", kind(&value(other)))));
                }
            },
        },
        Some(other) => return Err(Trouble::Refused(format!("the file holds {}, not a table", kind(&value(other))))),
    };
    Ok(changed(text, change))
}

fn table(name: &str, entry: &Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), entry.clone())]))
}

/// Adds a property behind the last one, in the way that the others stand there.
fn add(document: &Document<'_>, object: &Object<'_>, name: &str, entry: &Value, style: &Style<'_>) -> Vec<Change> {
    let text = document.text;
    let colon = if style.tight { ":" } else { ": " };
    let key = quoted(name);
    let outer = document.line_indent(object.start());
    let Some(last) = object.properties.last() else {
        return add_first(document, object, &key, entry, style, outer);
    };
    let comma = document.comma_after(last.range.end).filter(|comma| comma.end < object.end());
    let first = object.properties.first().unwrap_or(last);
    if !document.has_line_break(object.start()..first.range.start) {
        let entry = style.in_one_line(entry);
        let gap = if style.tight { "" } else { " " };
        return match comma {
            Some(comma) => vec![(comma.end..comma.end, format!("{gap}{key}{colon}{entry},"))],
            None => vec![(last.range.end..last.range.end, format!(",{gap}{key}{colon}{entry}"))],
        };
    }
    let lines = object.properties.iter().rev();
    let indent = lines.filter_map(|property| document.indent_of(property.range.start)).next();
    let own;
    let indent = match indent {
        Some(indent) => indent,
        None => {
            own = format!("{outer}{}", style.unit);
            &own
        }
    };
    let entry = style.written(entry, indent);
    let (anchor, end, mut changes) = match comma {
        Some(comma) => (comma.end, ",", Vec::new()),
        None => (last.range.end, "", vec![(last.range.end..last.range.end, ",".to_owned())]),
    };
    // Comments behind the last one in its line are its own.
    let anchor = document.after_comments(anchor);
    let mut new = format!("{}{indent}{key}{colon}{entry}{end}", style.newline);
    if !document.has_line_break(anchor..object.end()) {
        new.push_str(style.newline);
        new.push_str(outer);
    }
    match changes.first_mut() {
        Some((range, comma)) if range.start == anchor => comma.push_str(&new),
        _ => changes.push((anchor..anchor, new)),
    }
    debug_assert!(anchor <= text.len());
    changes
}

/// Adds a property to an object that has none.
fn add_first(
    document: &Document<'_>,
    object: &Object<'_>,
    key: &str,
    entry: &Value,
    style: &Style<'_>,
    outer: &str,
) -> Vec<Change> {
    let inside = object.start() + 1..object.end() - 1;
    let colon = if style.tight { ":" } else { ": " };
    let is_whole = document.root.as_ref().is_some_and(|root| root.start() == object.start());
    let in_lines =
        is_whole || document.root.as_ref().is_some_and(|root| document.has_line_break(root.start()..root.end()));
    if !in_lines {
        let new = format!("{key}{colon}{}", style.in_one_line(entry));
        let at = document.between(inside.clone()).last().map_or(inside.start, |comment| comment.range.end);
        return vec![(at..inside.end, if at == inside.start { new } else { format!(" {new}") })];
    }
    let indent = format!("{outer}{}", style.unit);
    let mut new = format!("{}{indent}{key}{colon}{}", style.newline, style.written(entry, &indent));
    let comment = document.between(inside.clone()).last().map(|comment| {
        let end = comment.range.end;
        document.text[..end].trim_end_matches('\r').len()
    });
    let at = comment.unwrap_or(inside.start);
    let rest = &document.text[at..inside.end];
    if comment.is_some() && rest.contains('\n') {
        return vec![(at..at, new)];
    }
    new.push_str(style.newline);
    new.push_str(outer);
    vec![(at..inside.end, new)]
}

pub(super) fn take(text: &str, root: &str, name: &str) -> Result<String, Trouble> {
    let document = Document::parse(text)?;
    let missing = || Trouble::Refused(format!("\"{name}\" is not in it"));
    let object = document.root.as_ref().and_then(Node::as_object).ok_or_else(missing)?;
    let property = document.property(object, root)?.ok_or_else(missing)?;
    let entries = property.value.as_object().ok_or_else(missing)?;
    let old = document.property(entries, name)?.ok_or_else(missing)?;
    let after = document.comma_after(old.range.end).filter(|comma| comma.end < entries.end());
    let before = document.comma_before(old.range.start).filter(|comma| comma.start > entries.start());
    let mut changes = Vec::new();
    let mut end = after.as_ref().map_or(old.range.end, |comma| comma.end);
    let start = match document.indent_of(old.range.start) {
        // Lines of its own: they go with their line break and what is said behind it.
        Some(indent) => {
            let commented = document.after_comments(end);
            if text[commented..].trim_start_matches([' ', '\t', '\r']).starts_with('\n') {
                end = commented;
            }
            let line = old.range.start - indent.len();
            let line =
                text[..line].strip_suffix('\n').map_or(line, |text| text.strip_suffix('\r').unwrap_or(text).len());
            line.max(entries.start() + 1)
        }
        None => match (&before, &after) {
            (Some(before), None) => before.start,
            (Some(before), Some(_)) => before.end,
            _ => {
                let gap = &text[end..];
                end += gap.len() - gap.trim_start_matches([' ', '\t']).len();
                old.range.start
            }
        },
    };
    changes.push((start..end, String::new()));
    if let (Some(before), None) = (&before, &after)
        && before.end <= start
    {
        changes.push((before.clone(), String::new()));
    }
    let is_only = entries.properties.len() == 1;
    let left = [&text[entries.start() + 1..start.max(entries.start() + 1)], &text[end..entries.end() - 1]];
    if is_only && left.iter().all(|text| text.trim().is_empty()) {
        return Ok(changed(text, vec![(entries.start()..entries.end(), "{}".to_owned())]));
    }
    Ok(changed(text, changes))
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The looks of a file.
struct Style<'a> {
    newline: &'static str,
    unit: &'a str,
    /// True where no blank follows a colon.
    tight: bool,
}

impl Style<'_> {
    /// A value over lines, the first of which has its indent already.
    fn written(&self, value: &Value, indent: &str) -> String {
        let inner = format!("{indent}{}", self.unit);
        let colon = if self.tight { ":" } else { ": " };
        let (open, close, parts): (_, _, Vec<String>) = match value {
            Value::Object(all) if !all.is_empty() => {
                let parts =
                    all.iter().map(|(name, value)| format!("{}{colon}{}", quoted(name), self.written(value, &inner)));
                ('{', '}', parts.collect())
            }
            // Arguments stand in one line, as most people write them, while they are short.
            Value::Array(all) if self.in_one_line(value).chars().count() > 100 => {
                ('[', ']', all.iter().map(|value| self.written(value, &inner)).collect())
            }
            value => return self.in_one_line(value),
        };
        let between = format!(",{}{inner}", self.newline);
        format!("{open}{0}{inner}{1}{0}{indent}{close}", self.newline, parts.join(&between))
    }

    fn in_one_line(&self, value: &Value) -> String {
        let (comma, colon) = if self.tight { (",", ":") } else { (", ", ": ") };
        match value {
            Value::Object(all) => {
                let parts =
                    all.iter().map(|(name, value)| format!("{}{colon}{}", quoted(name), self.in_one_line(value)));
                format!("{{{}}}", parts.collect::<Vec<_>>().join(comma))
            }
            Value::Array(all) => {
                format!("[{}]", all.iter().map(|value| self.in_one_line(value)).collect::<Vec<_>>().join(comma))
            }
            value => value.to_string(),
        }
    }
}
