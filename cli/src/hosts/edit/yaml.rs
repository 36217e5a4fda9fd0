//! YAML: saphyr says where an entry stands, and text is put in or taken out by lines.

use std::ops::Range;

use saphyr::{LoadableYamlNode as _, MarkedYaml, Scalar, YamlData};
use serde_json::{Map, Value};

use super::{Trouble, newline};

fn parse(text: &str) -> Result<Option<MarkedYaml<'_>>, Trouble> {
    let mut all = MarkedYaml::load_from_str(text).map_err(|error| {
        let mark = error.marker();
        Trouble::Broken { line: mark.line(), column: mark.col() + 1, message: error.info().to_owned() }
    })?;
    if all.len() > 1 {
        return Err(Trouble::Refused(format!("it holds {} documents", all.len())));
    }
    Ok(all.pop())
}

pub(super) fn read(text: &str) -> Result<Value, Trouble> {
    parse(text)?.as_ref().map_or(Ok(Value::Null), value)
}

fn value(node: &MarkedYaml<'_>) -> Result<Value, Trouble> {
    Ok(match &node.data {
        YamlData::Value(Scalar::Null) => Value::Null,
        YamlData::Value(Scalar::Boolean(is)) => (*is).into(),
        YamlData::Value(Scalar::Integer(number)) => (*number).into(),
        YamlData::Value(Scalar::FloatingPoint(number)) => number.into_inner().into(),
        YamlData::Value(Scalar::String(text)) => text.as_ref().into(),
        YamlData::Sequence(all) => all.iter().map(value).collect::<Result<_, _>>()?,
        YamlData::Mapping(all) => {
            let all = all.iter().map(|(name, inner)| Ok((key(name)?, value(inner)?)));
            Value::Object(all.collect::<Result<Map<_, _>, Trouble>>()?)
        }
        YamlData::Tagged(_, inner) => value(inner)?,
        _ => return Err(Trouble::Refused(format!("line {} cannot be understood", node.span.start.line()))),
    })
}

fn key(node: &MarkedYaml<'_>) -> Result<String, Trouble> {
    match value(node)? {
        Value::String(text) => Ok(text),
        Value::Array(_) | Value::Object(_) => {
            Err(Trouble::Refused(format!("line {} has a table or a list as its name", node.span.start.line())))
        }
        other => Ok(other.to_string()),
    }
}

/// A text by lines, each with its end.
struct Lines<'a>(Vec<&'a str>);

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        Self(text.split_inclusive('\n').collect())
    }

    fn start_of(&self, line: usize) -> usize {
        self.0.iter().take(line).map(|line| line.len()).sum()
    }

    /// The end of a block whose lines are indented by `indent` at least: blank lines and less indented comments in front
    /// of what follows are not in it.
    fn end_of_block(&self, lines: Range<usize>, indent: usize) -> usize {
        let is_outside = |line: &str| {
            let content = line.trim_start_matches(' ');
            let is_less = line.len() - content.len() < indent;
            content.trim().is_empty() || (content.starts_with('#') && is_less)
        };
        let mut end = lines.end;
        while end > lines.start + 1 && self.0.get(end - 1).is_some_and(|line| is_outside(line)) {
            end -= 1;
        }
        end
    }
}

/// The entries below `root`: the line of their key, their own lines with their names, and how far they are indented.
struct Block {
    key_line: usize,
    entries: Vec<(String, Range<usize>)>,
    indent: usize,
}

enum Found {
    /// No key of this name.
    Missing,
    /// The key without entries, from its line to another, and the text in front of the value.
    Empty(usize, String),
    Entries(Block),
}

fn find(text: &str, root: &str) -> Result<Found, Trouble> {
    let lines = Lines::of(text);
    let Some(document) = parse(text)? else { return Ok(Found::Missing) };
    let refused = |what: &str| Trouble::Refused(format!("{root} is written as {what}"));
    let all = match &document.data {
        YamlData::Mapping(all) => all,
        YamlData::Value(Scalar::Null) => return Ok(Found::Missing),
        _ => return Err(Trouble::Refused("the file holds no table".to_owned())),
    };
    // Line numbers count from 1.
    let starts = |node: &MarkedYaml<'_>| node.span.start.line().saturating_sub(1);
    let is_block = all.iter().all(|(name, _)| name.span.start.col() == 0);
    if !is_block {
        return Err(Trouble::Refused("the file is written in one line, or indented".to_owned()));
    }
    let Some(index) = all.iter().position(|(name, _)| key(name).is_ok_and(|name| name == root)) else {
        return Ok(Found::Missing);
    };
    let Some((name, inner)) = all.iter().nth(index) else { return Ok(Found::Missing) };
    let key_line = starts(name);
    let last = all.iter().nth(index + 1).map_or(lines.0.len(), |(next, _)| starts(next));
    let entries = match &inner.data {
        YamlData::Mapping(entries) if !entries.is_empty() => entries,
        YamlData::Mapping(_) | YamlData::Value(Scalar::Null) => {
            let line = lines.0.get(key_line).copied().unwrap_or_default();
            let (before, after) = line.split_once(':').unwrap_or((line, ""));
            let rest = after.trim();
            if !matches!(rest.split('#').next().map(str::trim), Some("" | "{}" | "null" | "~")) {
                return Err(refused("something this command cannot add to"));
            }
            let comment = rest.find('#').map(|at| format!(" {}", &rest[at..])).unwrap_or_default();
            return Ok(Found::Empty(key_line, format!("{before}:{comment}")));
        }
        _ => return Err(refused("a list or a text, not as a table")),
    };
    let indents: Vec<_> = entries.keys().map(|name| name.span.start.col()).collect();
    let indent = indents.first().copied().unwrap_or(2);
    let first = entries.keys().next().map_or(key_line, starts);
    if first == key_line || indents.iter().any(|other| *other != indent) {
        return Err(refused("a table in one line"));
    }
    let mut found = Vec::new();
    let begins: Vec<_> = entries.keys().map(|name| Ok((key(name)?, starts(name)))).collect::<Result<_, Trouble>>()?;
    for (at, (name, start)) in begins.iter().enumerate() {
        let next = begins.get(at + 1).map_or(last, |(_, start)| *start);
        found.push((name.clone(), *start..lines.end_of_block(*start..next, indent + 1)));
    }
    Ok(Found::Entries(Block { key_line, entries: found, indent }))
}

pub(super) fn put(text: &str, root: &str, name: &str, entry: &Value) -> Result<String, Trouble> {
    let newline = newline(text);
    let lines = Lines::of(text);
    let (range, indent, head) = match find(text, root)? {
        Found::Missing => (lines.0.len()..lines.0.len(), 2, Some(format!("{root}:"))),
        Found::Empty(line, head) => (line..line + 1, 2, Some(head)),
        Found::Entries(block) => match block.entries.iter().find(|(other, _)| other == name) {
            Some((_, range)) => (range.clone(), block.indent, None),
            None => {
                let end = block.entries.last().map_or(block.key_line + 1, |(_, range)| range.end);
                (end..end, block.indent, None)
            }
        },
    };
    let mut new = String::new();
    for line in head.into_iter().chain(written(name, entry, indent)) {
        new.push_str(&line);
        new.push_str(newline);
    }
    let (before, after) = (lines.start_of(range.start), lines.start_of(range.end));
    let (kept, rest) = (&text[..before], &text[after..]);
    let kept = if kept.trim().is_empty() && rest.is_empty() { "" } else { kept };
    if !kept.is_empty() && !kept.ends_with('\n') {
        new.insert_str(0, newline);
    }
    if rest.is_empty() && !text.trim().is_empty() && !text.ends_with('\n') {
        // The last line has no end, and gets none.
        new.truncate(new.trim_end().len());
    }
    Ok(format!("{kept}{new}{rest}"))
}

pub(super) fn take(text: &str, root: &str, name: &str) -> Result<String, Trouble> {
    let missing = || Trouble::Refused(format!("\"{name}\" is not in it"));
    let Found::Entries(block) = find(text, root)? else { return Err(missing()) };
    let (_, range) = block.entries.iter().find(|(other, _)| other == name).ok_or_else(missing)?;
    let lines = Lines::of(text);
    let (before, after) = (lines.start_of(range.start), lines.start_of(range.end));
    let mut kept = text[..before].to_owned();
    if block.entries.len() == 1 {
        // A key without a value would be null, which is no table for every reader.
        let start = lines.start_of(block.key_line);
        let line = lines.0.get(block.key_line).copied().unwrap_or_default();
        let (key, rest) = line.split_once(':').unwrap_or((line, ""));
        kept = format!("{}{key}: {{}}{rest}{}", &text[..start], &text[start + line.len()..before]);
    }
    if after == text.len() && !text.ends_with('\n') {
        kept.truncate(kept.trim_end_matches(['\r', '\n']).len());
    }
    Ok(kept + &text[after..])
}

/// The lines of an entry.
fn written(name: &str, value: &Value, indent: usize) -> Vec<String> {
    let blanks = " ".repeat(indent);
    let name = scalar(name);
    match value {
        Value::Object(all) if !all.is_empty() => {
            let mut lines = vec![format!("{blanks}{name}:")];
            lines.extend(all.iter().flat_map(|(name, value)| written(name, value, indent + 2)));
            lines
        }
        Value::Array(all) if !all.is_empty() => {
            let mut lines = vec![format!("{blanks}{name}:")];
            lines.extend(all.iter().map(|value| format!("{blanks}  - {}", plain(value))));
            lines
        }
        Value::Object(_) => vec![format!("{blanks}{name}: {{}}")],
        Value::Array(_) => vec![format!("{blanks}{name}: []")],
        value => vec![format!("{blanks}{name}: {}", plain(value))],
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), scalar)
}

/// A text without quotes if every reader takes it for one, else as JSON has it, which is YAML, too.
fn scalar(text: &str) -> String {
    let begins = |letter: char| letter.is_ascii_alphabetic() || letter == '/' || letter == '_';
    let is_plain = text.starts_with(begins)
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '+'))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "null"
        );
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}
