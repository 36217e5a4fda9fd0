//! Every requirement is proved in every language, or says why not.

mod matrix;
mod sources;

use crate::launch;
use crate::options::{LANGUAGES, Options};
use crate::report::Report;
use crate::script::REVISIONS;
use crate::{Failure, Outcome};
use matrix::Matrix;
use serde::Deserialize;
use sources::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// One requirement, as `tests/requirements.yaml` explains it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    side: Side,
    /// The rows of the feature matrix that it is about.
    #[serde(default)]
    rows: Vec<String>,
    source: String,
    behaviour: String,
    since: String,
    until: Option<String>,
    #[serde(default)]
    tests: Vec<String>,
    deferred: Option<String>,
    #[serde(default)]
    gaps: BTreeMap<String, String>,
}

impl Entry {
    fn is_in_force(&self, revision: &str) -> bool {
        self.since.as_str() <= revision && self.until.as_deref().is_none_or(|until| revision <= until)
    }

    /// Returns the reasons that stand instead of tests.
    fn reasons(&self) -> impl Iterator<Item = &str> {
        self.deferred.iter().chain(self.gaps.values()).map(String::as_str)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Server,
    Client,
    Both,
}

impl Side {
    fn each(self) -> &'static [Self] {
        match self {
            Self::Server => &[Self::Server],
            Self::Client => &[Self::Client],
            Self::Both => &[Self::Server, Self::Client],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Both => "both",
        }
    }
}

/// Check `tests/requirements.yaml` and that the table of the documentation says the same; `write` writes that.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let root = launch::root()?;
    let path = root.join("tests/requirements.yaml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let entries: Vec<Entry> =
        serde_yaml_ng::from_str(&text).map_err(|reason| format!("tests/requirements.yaml: {reason}"))?;
    let sources = Sources::read(&root)?;
    let mut seen = BTreeSet::new();
    let mut rows = Vec::new();
    for entry in &entries {
        let id = &entry.id;
        let outcome = check(entry, &sources).and_then(|row| {
            if !seen.insert(id) {
                return Err("the id is used twice".into());
            }
            rows.push(row);
            Ok(())
        });
        report.record(&format!("requirement {id}"), outcome);
    }
    let matrix = Matrix::read(&root)?;
    for (name, outcome) in matrix.check(&entries) {
        report.record(&name, outcome);
    }
    // By row; what the specification has no row for comes last.
    rows.sort_by_key(|row| row.at);
    let page = format!("{HEAD}{}{MIDDLE}{}", matrix.table(&entries, &sources), table(&rows));
    let file = root.join(PARITY);
    if options.words.iter().any(|word| word == "write") {
        std::fs::write(&file, &page).map_err(|error| format!("{PARITY}: {error}"))?;
    }
    let same = std::fs::read_to_string(&file).is_ok_and(|written| written == page);
    report.record(PARITY, if same { Ok(()) } else { Err(format!("out of date: {WRITE}")) });
    Ok(())
}

/// The published table.
const PARITY: &str = "docs/parity.md";
const WRITE: &str = "cargo run --release -p contract -- coverage write";
const HEAD: &str = "# Parity

What is required, and how many tests prove it in each language. Made by `cargo run --release -p contract -- coverage write` from `tests/matrix.yaml` and `tests/requirements.yaml`; the numbers count transcripts, API cases, logins, attacks, scenarios of the official suite, and test functions. Tests of the engine count for every language, because all of them run on it.

## Row by row

Tests for the server / for the client; – where that side has no part in it. F is authorization.

";
const MIDDLE: &str = "
## Requirements

By row; what has no row comes last.

";

struct Row {
    /// Its place in the table: that of its first row.
    at: (u8, u32),
    rows: String,
    side: &'static str,
    id: String,
    behaviour: String,
    window: String,
    cells: Vec<String>,
}

fn check(entry: &Entry, sources: &Sources) -> Outcome<Row> {
    let texts = [("id", &entry.id), ("source", &entry.source), ("behaviour", &entry.behaviour)];
    if let Some((name, _)) = texts.iter().find(|(_, text)| text.is_empty()) {
        return Err(format!("{name:?} is empty"));
    }
    for (edge, revision) in [("since", Some(&entry.since)), ("until", entry.until.as_ref())] {
        if let Some(unknown) = revision.filter(|r| !REVISIONS.contains(&r.as_str())) {
            return Err(format!("{edge}: unknown revision {unknown:?}"));
        }
    }
    let places = entry.rows.iter().map(|row| place(row)).collect::<Outcome<Vec<_>>>()?;
    if let Some(unknown) = entry.gaps.keys().find(|l| !LANGUAGES.contains(&l.as_str())) {
        return Err(format!("gaps: unknown language {unknown:?}"));
    }
    let mut counts = [0; LANGUAGES.len()];
    for test in &entry.tests {
        for (count, proved) in counts.iter_mut().zip(sources.languages(test)?) {
            *count += usize::from(proved);
        }
    }
    let deferred = entry.deferred.as_deref().unwrap_or_default();
    let cells = LANGUAGES
        .iter()
        .zip(counts)
        .map(|(language, count)| cell(language, count, deferred, entry.gaps.get(*language).map(String::as_str)))
        .collect::<Outcome<Vec<_>>>()?;
    if !deferred.is_empty() && !entry.tests.is_empty() {
        return Err("deferred, but there are tests".into());
    }
    Ok(Row {
        at: places.first().copied().unwrap_or((u8::MAX, 0)),
        rows: entry.rows.join(" "),
        side: entry.side.name(),
        id: entry.id.clone(),
        behaviour: entry.behaviour.clone(),
        window: window(&entry.since, entry.until.as_deref()),
        cells,
    })
}

/// Describes a range of revisions.
fn window(since: &str, until: Option<&str>) -> String {
    match until {
        None => format!("{since} –"),
        Some(until) if until == since => until.to_owned(),
        Some(until) => format!("{since} – {until}"),
    }
}

/// The place of a row such as `B12` in the matrix.
fn place(row: &str) -> Outcome<(u8, u32)> {
    let (letter, number) = (row.bytes().next().unwrap_or_default(), row.get(1..).and_then(|n| n.parse().ok()));
    match number {
        Some(number) if letter.is_ascii_uppercase() => Ok((letter, number)),
        _ => Err(format!("rows: {row:?} is no row such as A1")),
    }
}

fn cell(language: &str, count: usize, deferred: &str, gap: Option<&str>) -> Outcome<String> {
    match (count, deferred, gap) {
        (0, "", None) => Err(format!("no test in {language}, and no reason")),
        (0, "", Some(reason)) => Ok(format!("– ({reason})")),
        (0, reason, None) => Ok(format!("later ({reason})")),
        (0, _, Some(_)) => Err(format!("deferred altogether: the gap of {language} says nothing more")),
        (_, _, Some(_)) => Err(format!("a gap is named for {language}, but there are tests")),
        (count, _, None) => Ok(count.to_string()),
    }
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| row | side | requirement | revisions | rust | python | node | swift |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let same = row.cells.iter().all(|cell| *cell == row.cells[0]);
        let cells = match row.cells.first() {
            Some(first) if same && first.starts_with("later") => format!("{first} | | |"),
            _ => row.cells.join(" | "),
        };
        let _ = writeln!(
            text,
            "| {} | {} | `{}`: {} | {} | {cells} |",
            row.rows, row.side, row.id, row.behaviour, row.window
        );
    }
    text
}

/// Describes the fault of a test's name.
fn missing(test: &str, what: &str) -> Failure {
    format!("the test `{test}` does not exist: {what}")
}
