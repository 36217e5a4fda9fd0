//! Interfaces, with a comment before each member.

use std::collections::BTreeSet;
use std::fmt::Write;

use anyhow::Result;

use super::NOTICE;
use super::options::{File, Language, Options, Row, Type};
use super::text::{self, WIDTH, named};

const NODE: Language = Language::Node;

pub(super) fn emit(options: &Options, file: &File) -> Result<String> {
    let mut out = format!("// {NOTICE}\n\n/** {} */\n", file.doc);
    if !file.imports.is_empty() {
        let _ = write!(out, "\n{}\n", file.imports.trim());
    }
    if !file.before.is_empty() {
        let _ = write!(out, "\n{}\n", file.before.trim());
    }
    for one in &file.types {
        interface(&mut out, options, file, one)?;
    }
    if file.durations {
        durations(&mut out, options);
    }
    if !file.after.is_empty() {
        let _ = write!(out, "\n{}\n", file.after.trim());
    }
    Ok(out)
}

fn interface(out: &mut String, options: &Options, file: &File, of: &Type) -> Result<()> {
    let members = options.members(of, NODE)?;
    out.push('\n');
    comment(out, "", &text::worded(options, of.doc.trim(), NODE), None);
    let bases = if of.bases.is_empty() { String::new() } else { format!(" extends {}", of.bases.join(", ")) };
    let _ = writeln!(out, "export interface {}{bases} {{", of.name);
    for row in &members {
        member(out, options, row)?;
    }
    out.push_str(&of.more);
    out.push_str("}\n");
    if let Some(table) = &of.table {
        let name = of.name.split('<').next().unwrap_or_default();
        let _ = write!(out, "\n/** The types of all members of {{@link {name}}}. */\nexport const {table} = {{\n");
        for row in &members {
            let _ = writeln!(out, "  {}: \"{}\",", named(&row.name, NODE), shape(row));
        }
        let _ = writeln!(out, "}} as const;");
    }
    if let Some(own) = &of.own {
        let bases = file.types.iter().filter(|one| of.bases.contains(&one.name));
        let mut names = Vec::new();
        for one in bases.chain([of]) {
            names.extend(
                options.members(one, NODE)?.into_iter().filter(|row| !row.wire).map(|row| named(&row.name, NODE)),
            );
        }
        out.push_str("\n/** The options that the engine does not see. */\n");
        let line = format!("export const {own} = [\"{}\"] as const;", names.join("\", \""));
        if line.len() <= WIDTH {
            let _ = writeln!(out, "{line}");
        } else {
            let _ = writeln!(out, "export const {own} = [\n  \"{}\",\n] as const;", names.join("\",\n  \""));
        }
    }
    Ok(())
}

/// The names of times. `ttl` is none of them: some are of the protocol, and in milliseconds as it is.
fn durations(out: &mut String, options: &Options) {
    let times = options.rows().filter(|(_, row)| row.kind == "duration" && row.name != "ttl");
    let names: BTreeSet<String> = times.map(|(_, row)| named(&row.name, NODE)).collect();
    out.push_str("\n/** Durations are milliseconds here, as everywhere in Node, and seconds in the engine. */\n");
    out.push_str("export const DURATIONS: ReadonlySet<string> = new Set([\n");
    names.iter().for_each(|name| {
        let _ = writeln!(out, "  \"{name}\",");
    });
    out.push_str("]);\n");
}

fn member(out: &mut String, options: &Options, row: &Row) -> Result<()> {
    comment(out, "  ", &text::of(options, row, NODE)?, text::note(options, row)?);
    let name = named(&row.name, NODE);
    let kind = match row.spelled(NODE) {
        Some(kind) => kind.trim_end().to_owned(),
        None => spelled(row)?,
    };
    if row.required {
        let _ = writeln!(out, "  readonly {name}: {kind};");
    } else if kind.starts_with('\n') || kind.starts_with("    |") {
        let _ = writeln!(out, "  readonly {name}?:\n{}\n    | undefined;", kind.trim_start_matches('\n'));
    } else {
        let _ = writeln!(out, "  readonly {name}?: {kind} | undefined;");
    }
    Ok(())
}

fn comment(out: &mut String, indent: &str, doc: &str, note: Option<&str>) {
    let mut lines = text::wrapped(doc, WIDTH - indent.len() - 3);
    if let Some(note) = note {
        lines.push(String::new());
        lines.push(format!("@deprecated {note}"));
    }
    match &lines[..] {
        [line] if indent.len() + line.chars().count() + 7 <= WIDTH => {
            let _ = writeln!(out, "{indent}/** {line} */");
        }
        _ => {
            let _ = writeln!(out, "{indent}/**");
            for line in lines {
                let _ = writeln!(out, "{}", format!("{indent} * {line}").trim_end());
            }
            let _ = writeln!(out, "{indent} */");
        }
    }
}

/// The type of what every language has under a name of its own.
fn spelled(row: &Row) -> Result<String> {
    Ok(match row.kind.as_str() {
        "duration" | "bytes" | "count" | "port" => "number".into(),
        "flag" => "boolean".into(),
        "text" => "string".into(),
        "texts" | "scopes" => "readonly string[]".into(),
        "table" => "Readonly<Record<string, string>>".into(),
        "group" => "CacheHints".into(),
        "choice" if !row.values.is_empty() => {
            row.values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(" | ")
        }
        other => anyhow::bail!("{}: node spells no {other}", row.name),
    })
}

/// The type of a member, for the check of what programs without types give.
fn shape(row: &Row) -> &'static str {
    match row.kind.as_str() {
        "duration" | "bytes" | "count" | "port" => "number",
        "flag" => "boolean",
        "text" | "choice" => "string",
        "texts" => "list of strings",
        "scopes" => "list of scopes",
        "group" | "table" | "table of texts" => "object",
        "function" => "function",
        _ => "any",
    }
}
