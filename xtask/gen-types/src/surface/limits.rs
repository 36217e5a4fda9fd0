//! docs/limits.md: every bound, with the names and defaults of the options that set it.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use toml::Value;

use super::NOTICE;
use super::options::{Options, Row, joined, read};
use super::text;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    intro: String,
    section: Vec<Section>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    title: String,
    #[serde(default)]
    before: String,
    #[serde(default)]
    after: String,
    row: Vec<Limit>,
}

/// A row. A limit without an option is fixed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    /// Name of a command; empty for the one of the row before.
    command: Option<String>,
    limit: String,
    /// The options that set it, with their groups: `server.page_size`.
    #[serde(default)]
    options: Vec<String>,
    /// Words in place of the options' names.
    option: Option<String>,
    /// `{server.page_size}` is the default of that option. Without it: the defaults of all its options.
    default: Option<String>,
    per: String,
    side: Option<String>,
    beyond: String,
}

pub(super) fn emit(root: &Path, options: &Options) -> Result<String> {
    let limits: Limits = read(&root.join("surface/limits.toml"))?;
    let mut out = format!("# Limits\n\n<!-- {NOTICE} -->\n\n{}\n", joined(&limits.intro));
    for section in &limits.section {
        let _ = writeln!(out, "\n## {}\n", section.title);
        if !section.before.is_empty() {
            let _ = writeln!(out, "{}\n", joined(&section.before));
        }
        let has_command = section.row.iter().any(|row| row.command.is_some());
        let has_side = section.row.iter().any(|row| row.side.is_some());
        let mut columns = vec!["limit", "option", "default", "per", "beyond it"];
        if has_side {
            columns.insert(4, "side");
        }
        if has_command {
            columns.insert(0, "command");
        }
        let _ = writeln!(out, "| {} |\n{}|", columns.join(" | "), "|---".repeat(columns.len()));
        for row in &section.row {
            let mut cells = row.cells(options).with_context(|| format!("limits.toml: {}", row.limit))?;
            ensure!(row.side.is_some() == has_side, "limits.toml: {}: side", row.limit);
            if let Some(side) = &row.side {
                cells.insert(4, side.clone());
            }
            if has_command {
                cells.insert(0, row.command.clone().unwrap_or_default());
            }
            let _ = writeln!(out, "| {} |", cells.join(" | ").replace("|  |", "| |"));
        }
        if !section.after.is_empty() {
            let _ = writeln!(out, "\n{}", joined(&section.after));
        }
    }
    Ok(out.replace("\n|  |", "\n| |"))
}

impl Limit {
    fn cells(&self, options: &Options) -> Result<Vec<String>> {
        let rows = self.options.iter().map(|path| found(options, path)).collect::<Result<Vec<_>>>()?;
        let names = match &self.option {
            Some(words) => words.clone(),
            None if rows.is_empty() => "fixed".into(),
            None => {
                let mut names: Vec<String> = rows.iter().map(|row| format!("`{}`", row.name)).collect();
                names.dedup();
                names.join(", ")
            }
        };
        let default = match &self.default {
            Some(words) => filled(options, words)?,
            None => rows.iter().map(|row| default_of(row)).collect::<Result<Vec<_>>>()?.join("; "),
        };
        Ok(vec![self.limit.clone(), names, default, self.per.clone(), self.beyond.clone()])
    }
}

/// The option of a path, `server.page_size`.
fn found<'a>(options: &'a Options, path: &str) -> Result<&'a Row> {
    let (group, name) = path.split_once('.').with_context(|| format!("{path} names no group"))?;
    let rows = &options.groups.get(group).with_context(|| format!("no group {group}"))?.options;
    rows.iter().find(|row| row.name == name).with_context(|| format!("no option {path}"))
}

/// Puts the defaults of options in the place of `{group.name}`.
fn filled(options: &Options, words: &str) -> Result<String> {
    let mut out = String::new();
    let mut rest = words;
    while let Some((before, after)) = rest.split_once('{') {
        let (path, behind) = after.split_once('}').context("a brace is not closed")?;
        out.push_str(before);
        out.push_str(&default_of(found(options, path)?)?);
        rest = behind;
    }
    Ok(out + rest)
}

/// The default of an option as the engine has it: times in seconds.
fn default_of(row: &Row) -> Result<String> {
    let default = row.default.as_ref().with_context(|| format!("{} has no default", row.name))?;
    Ok(match default {
        Value::Integer(number) => text::grouped(*number),
        Value::String(words) => match text::seconds(words).filter(|_| row.kind == "duration") {
            Some(seconds) => format!("{} s", text::grouped(seconds)),
            None => {
                let words = words.replace("{zero}", "0");
                ensure!(!words.contains('{'), "{}: a name in braces has no value here: {words}", row.name);
                words
            }
        },
        other => other.to_string(),
    })
}
