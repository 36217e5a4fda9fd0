//! Every requirement is proved in every language, or says why not.

mod sources;

use crate::launch;
use crate::options::{LANGUAGES, Options};
use crate::report::Report;
use crate::script::REVISIONS;
use crate::yaml::{self, Entry};
use crate::{Failure, Outcome};
use sources::Sources;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const MEMBERS: [&str; 9] = ["id", "side", "source", "behaviour", "since", "until", "tests", "deferred", "gaps"];

/// Check `tests/requirements.yaml` and that the table of the documentation says the same; `write` writes that.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let root = launch::root()?;
    let path = root.join("tests/requirements.yaml");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let entries = yaml::read(&text).map_err(|reason| format!("tests/requirements.yaml: {reason}"))?;
    let sources = Sources::read(&root)?;
    let mut seen = BTreeSet::new();
    let mut rows = Vec::new();
    for entry in &entries {
        let id = entry.text("id");
        let outcome = check(entry, &sources).and_then(|row| {
            if !seen.insert(id.to_owned()) {
                return Err("the id is used twice".into());
            }
            rows.push(row);
            Ok(())
        });
        report.record(&format!("requirement {id}"), outcome.map_err(|reason| format!("line {}: {reason}", entry.line)));
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
    if let Some(unknown) = entry.unknown(&MEMBERS) {
        return Err(format!("unknown member {unknown:?}"));
    }
    for needed in ["id", "side", "source", "behaviour", "since"] {
        if entry.text(needed).is_empty() {
            return Err(format!("{needed:?} is missing"));
        }
    }
    if !["server", "client", "both"].contains(&entry.text("side")) {
        return Err("side is server, client or both".into());
    }
    for edge in ["since", "until"] {
        let revision = entry.text(edge);
        if !revision.is_empty() && !REVISIONS.contains(&revision) {
            return Err(format!("{edge}: unknown revision {revision:?}"));
        }
    }
    let mut counts = [0; LANGUAGES.len()];
    for test in entry.list("tests") {
        for (count, proved) in counts.iter_mut().zip(sources.languages(test)?) {
            *count += usize::from(proved);
        }
    }
    let deferred = entry.text("deferred");
    let cells = LANGUAGES
        .iter()
        .zip(counts)
        .map(|(language, count)| cell(language, count, deferred, entry.inner("gaps", language)))
        .collect::<Outcome<Vec<_>>>()?;
    if !deferred.is_empty() && !entry.list("tests").is_empty() {
        return Err("deferred, but there are tests".into());
    }
    Ok(Row {
        id: entry.text("id").to_owned(),
        behaviour: entry.text("behaviour").to_owned(),
        window: match entry.text("until") {
            "" => format!("{} –", entry.text("since")),
            until if until == entry.text("since") => until.to_owned(),
            until => format!("{} – {until}", entry.text("since")),
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
