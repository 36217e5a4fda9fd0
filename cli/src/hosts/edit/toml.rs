//! TOML: toml_edit says where tables begin and end, and writes the new ones.

use std::ops::Range;

use serde_json::{Map, Value};
use toml_edit::{Array, Document, DocumentMut, Item, Table, TableLike};

use super::{Trouble, changed, newline, position};

fn parse(text: &str) -> Result<Document<&str>, Trouble> {
    Document::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        Trouble::Broken { line, column, message: error.message().trim().replace('\n', ", ") }
    })
}

pub(super) fn read(text: &str) -> Result<Value, Trouble> {
    let document = parse(text)?;
    if document.as_table().is_empty() {
        return Ok(Value::Null);
    }
    Ok(table(document.as_table()))
}

fn table(table: &dyn TableLike) -> Value {
    Value::Object(table.iter().map(|(name, item)| (name.to_owned(), item_value(item))).collect())
}

fn item_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => plain(value),
        Item::Table(inner) => table(inner),
        Item::ArrayOfTables(all) => all.iter().map(|inner| table(inner)).collect(),
    }
}

fn plain(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(is) => (*is.value()).into(),
        toml_edit::Value::Datetime(time) => time.value().to_string().into(),
        toml_edit::Value::Array(all) => all.iter().map(plain).collect(),
        toml_edit::Value::InlineTable(inner) => table(inner),
    }
}

/// A table with a header of its own: the path of names, the bytes of the header, and those before it up to the last line
/// that says something.
struct Section {
    path: Vec<String>,
    header: usize,
    /// The start of the blank lines and comments above the header.
    prefix: usize,
}

fn sections(document: &Document<&str>) -> Vec<Section> {
    fn walk(item: &Item, path: &mut Vec<String>, all: &mut Vec<Section>) {
        match item {
            Item::Table(table) => one(table, path, all),
            Item::ArrayOfTables(tables) => tables.iter().for_each(|table| one(table, path, all)),
            _ => {}
        }
    }
    fn one(table: &Table, path: &mut Vec<String>, all: &mut Vec<Section>) {
        if !table.is_implicit()
            && !table.is_dotted()
            && !path.is_empty()
            && let Some(span) = table.span()
        {
            let prefix = table.decor().prefix().and_then(|prefix| prefix.span()).map_or(span.start, |span| span.start);
            all.push(Section { path: path.clone(), header: span.start, prefix });
        }
        for (name, item) in table {
            path.push(name.to_owned());
            walk(item, path, all);
            path.pop();
        }
    }
    let mut all = Vec::new();
    one(document.as_table(), &mut Vec::new(), &mut all);
    all.sort_by_key(|section| section.header);
    all
}

/// The end of the lines of a section: where the comments and blank lines before the next one begin.
fn end(text: &str, document: &Document<&str>, all: &[Section], index: usize) -> usize {
    let end = match all.get(index + 1) {
        Some(next) => next.prefix,
        None => document.trailing().span().map_or(text.len(), |span| span.start),
    };
    // A prefix may begin with the end of the line before.
    let header = all.get(index).map_or(0, |section| section.header);
    if text[..end].ends_with('\n') || end == text.len() {
        return end;
    }
    text[end.max(header)..].find('\n').map_or(text.len(), |at| end + at + 1)
}

pub(super) fn put(text: &str, root: &str, name: &str, value: &Value) -> Result<String, Trouble> {
    let document = parse(text)?;
    let entries = document.as_table().get(root);
    if entries.is_some_and(|entries| entries.is_inline_table()) {
        return Err(Trouble::Refused(format!("{root} is written as an inline table")));
    }
    let newline = newline(text);
    let mut new = written(root, name, value)?.replace('\n', newline);
    if entries.and_then(Item::as_table_like).is_some_and(|entries| entries.contains_key(name)) {
        let (without, at) = cut(text, root, name)?;
        return Ok(insert(&without, at, new, newline));
    }
    let all = sections(&document);
    let last = all.iter().rposition(|section| section.path.first().is_some_and(|first| first == root));
    let at = last.map_or_else(|| said(text), |index| end(text, &document, &all, index));
    if text.trim().is_empty() {
        new.truncate(new.trim_end().len());
        return Ok(new + newline);
    }
    Ok(insert(text, at, new, newline))
}

/// The end of the last line that is not blank.
fn said(text: &str) -> usize {
    let end = text.trim_end_matches([' ', '\t', '\r', '\n']).len();
    text[end..].find('\n').map_or(text.len(), |at| end + at + 1)
}

/// Puts a table behind a line, with a blank line between them.
fn insert(text: &str, at: usize, mut new: String, newline: &str) -> String {
    let before = &text[..at];
    let mut gap = String::new();
    if !before.is_empty() {
        if before.ends_with('\n') {
            gap.push_str(newline);
        } else {
            // The last line has no end, and gets none.
            gap = newline.repeat(2);
            new.truncate(new.trim_end().len());
        }
    }
    changed(text, vec![(at..at, gap + &new)])
}

pub(super) fn take(text: &str, root: &str, name: &str) -> Result<String, Trouble> {
    cut(text, root, name).map(|(text, _)| text)
}

/// The text without an entry, and the place at which it began.
fn cut(text: &str, root: &str, name: &str) -> Result<(String, usize), Trouble> {
    let document = parse(text)?;
    let all = sections(&document);
    let belongs = |section: &Section| section.path.len() >= 2 && section.path[0] == root && section.path[1] == name;
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (index, section) in all.iter().enumerate().filter(|(_, section)| belongs(section)) {
        let end = end(text, &document, &all, index);
        // Comments above a header are the user's, the blank line between them and it is not.
        let above = &text[section.prefix..section.header];
        let own = above.len() - above.trim_end_matches([' ', '\t', '\r', '\n']).len();
        let mut start = section.header - own;
        if own < above.len() {
            start += text[start..section.header].find('\n').map_or(0, |at| at + 1);
        }
        match ranges.last_mut() {
            Some(last) if last.end >= start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    if ranges.is_empty() {
        // `name = { … }` below the header of all.
        let entries = document.as_table().get(root).and_then(Item::as_table);
        let found = entries.and_then(|entries| entries.get_key_value(name));
        let span = found.and_then(|(key, item)| Some(key.span()?.start..item.as_inline_table()?.span()?.end));
        let Some(span) = span else {
            return Err(Trouble::Refused(format!("\"{name}\" is written with dots or in an inline table")));
        };
        let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let end = text[span.end..].find('\n').map_or(text.len(), |at| span.end + at + 1);
        ranges.push(start..end);
    }
    if let Some(last) = ranges.last_mut().filter(|last| last.end == text.len() && !text.ends_with('\n')) {
        // The last line has no end, and the one that is the last now gets none.
        last.start = text[..last.start].trim_end_matches(['\r', '\n']).len();
    }
    let at = ranges.first().map_or(0, |range| range.start);
    Ok((changed(text, ranges.into_iter().map(|range| (range, String::new())).collect()), at))
}

/// The tables of an entry, one header for each.
fn written(root: &str, name: &str, value: &Value) -> Result<String, Trouble> {
    let Value::Object(members) = value else { return Ok(String::new()) };
    let mut document = DocumentMut::new();
    let mut outer = Table::new();
    outer.set_implicit(true);
    outer.insert(name, Item::Table(section(members)?));
    document.insert(root, Item::Table(outer));
    Ok(document.to_string())
}

fn section(members: &Map<String, Value>) -> Result<Table, Trouble> {
    let mut table = Table::new();
    for (name, value) in members {
        let item = match value {
            Value::Object(inner) => Item::Table(section(inner)?),
            Value::Array(all) => toml_edit::value(all.iter().filter_map(Value::as_str).collect::<Array>()),
            Value::String(text) => toml_edit::value(text.as_str()),
            Value::Bool(is) => toml_edit::value(*is),
            Value::Number(number) if number.is_i64() => toml_edit::value(number.as_i64().unwrap_or_default()),
            _ => return Err(Trouble::Refused(format!("{name} has no form in TOML"))),
        };
        table.insert(name, item);
    }
    Ok(table)
}
