//! Every requirement is proved in every language, or says why not.

mod sources;

use crate::launch;
use crate::options::{LANGUAGES, Options};
use crate::report::Report;
use crate::script::REVISIONS;
use crate::{Failure, Outcome};
use serde::Deserialize;
use sources::Sources;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// One requirement, as `tests/requirements.yaml` explains it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    #[expect(dead_code, reason = "for readers; that it is one of three is checked")]
    side: Side,
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

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Side {
    Server,
    Client,
    Both,
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
    let page = format!("{HEAD}{}", table(&rows));
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

What is required, and how many tests prove it in each language. Made by `cargo run --release -p contract -- coverage write` from `tests/requirements.yaml`; the numbers count transcripts, API cases, scenarios of the official suite, and test functions. Tests of the engine count for every language, because all of them run on it.

";

struct Row {
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
    let since = &entry.since;
    Ok(Row {
        id: entry.id.clone(),
        behaviour: entry.behaviour.clone(),
        window: match &entry.until {
            None => format!("{since} –"),
            Some(until) if until == since => until.clone(),
            Some(until) => format!("{since} – {until}"),
        },
        cells,
    })
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
    let mut text =
        String::from("| requirement | revisions | rust | python | node | swift |\n|---|---|---|---|---|---|\n");
    for row in rows {
        let same = row.cells.iter().all(|cell| *cell == row.cells[0]);
        let cells = match row.cells.first() {
            Some(first) if same && first.starts_with("later") => format!("{first} | | |"),
            _ => row.cells.join(" | "),
        };
        let _ = writeln!(text, "| `{}`: {} | {} | {cells} |", row.id, row.behaviour, row.window);
    }
    text
}

/// What is wrong with a test's name.
fn missing(test: &str, what: &str) -> Failure {
    format!("the test `{test}` does not exist: {what}")
}
