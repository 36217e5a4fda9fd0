//! TypedDicts, with a docstring under each member.

use std::fmt::Write;

use anyhow::Result;

use super::NOTICE;
use super::options::{File, Language, Options, Row, Type};
use super::text::{self, WIDTH};

const PYTHON: Language = Language::Python;

pub(super) fn emit(options: &Options, file: &File) -> Result<String> {
    let mut out = format!("\"\"\"{}\"\"\"\n\n# {NOTICE}\n\nfrom __future__ import annotations\n", file.doc);
    let _ = write!(out, "\n{}\n", file.imports.trim());
    if !file.before.is_empty() {
        let _ = write!(out, "\n{}\n", file.before.trim());
    }
    for one in &file.types {
        class(&mut out, options, one)?;
    }
    Ok(out)
}

fn class(out: &mut String, options: &Options, of: &Type) -> Result<()> {
    let (required, optional): (Vec<&Row>, Vec<&Row>) =
        options.members(of, PYTHON)?.into_iter().partition(|row| row.required);
    let mut bases = of.bases.clone();
    if let Some(base) = &of.required {
        let _ = write!(out, "\n\nclass {base}(TypedDict):\n");
        for row in &required {
            member(out, options, of, row)?;
        }
        bases.insert(0, base.clone());
    }
    if bases.is_empty() {
        bases.push("TypedDict".into());
    }
    let _ = write!(out, "\n\nclass {}({}, total=False):\n", of.name, bases.join(", "));
    docstring(out, &text::worded(options, of.doc.trim(), PYTHON));
    out.push('\n');
    for row in &optional {
        member(out, options, of, row)?;
    }
    Ok(())
}

fn member(out: &mut String, options: &Options, of: &Type, row: &Row) -> Result<()> {
    let mut kind = match row.spelled(PYTHON) {
        Some(kind) => text::worded(options, kind, PYTHON),
        None => spelled(row)?,
    };
    let exact = row.own(PYTHON).is_some_and(|own| own.exact);
    if of.nullable && !exact && !row.required {
        kind.push_str(" | None");
    }
    let _ = writeln!(out, "    {}: {kind}", row.name);
    let mut doc = text::of(options, row, PYTHON)?;
    if let Some(note) = text::note(options, row)? {
        let _ = write!(doc, "\n\nDeprecated: {note}.");
    }
    docstring(out, &doc);
    Ok(())
}

fn docstring(out: &mut String, doc: &str) {
    // Quotes before the first line, and behind the last one of a single paragraph.
    let doc = format!("\"\"\"{doc}");
    let is_long = doc.contains("\n\n");
    let mut lines = text::wrapped(&doc, WIDTH - 4);
    if is_long {
        lines.push("\"\"\"".into());
    } else if let Some(last) = lines.last_mut() {
        if last.chars().count() + 3 > WIDTH - 4
            && let Some((before, word)) = last.rsplit_once(' ')
        {
            let (before, word) = (before.to_owned(), format!("{word}\"\"\""));
            *last = before;
            lines.push(word);
        } else {
            last.push_str("\"\"\"");
        }
    }
    for line in lines {
        let _ = writeln!(out, "{}", format!("    {line}").trim_end());
    }
}

/// The type of what every language has under a name of its own.
fn spelled(row: &Row) -> Result<String> {
    Ok(match row.kind.as_str() {
        "duration" => "float".into(),
        "bytes" | "count" | "port" => "int".into(),
        "flag" => "bool".into(),
        "text" => "str".into(),
        "texts" | "scopes" => "Sequence[str]".into(),
        "table" => "Mapping[str, str]".into(),
        "group" => "CacheHints".into(),
        "choice" if !row.values.is_empty() => {
            let values: Vec<String> = row.values.iter().map(|value| format!("{value:?}")).collect();
            format!("Literal[{}]", values.join(", "))
        }
        other => anyhow::bail!("{}: python spells no {other}", row.name),
    })
}
