//! Rows of the feature matrix, and their demands on the requirements.

use super::sources::Sources;
use super::{Entry, Side, window};
use crate::Outcome;
use crate::options::LANGUAGES;
use crate::script::REVISIONS;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// One row, as `tests/matrix.yaml` explains it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    feature: String,
    side: Side,
    level: Level,
    since: String,
    until: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Must,
    Should,
    May,
}

/// Most reasons that may stand instead of tests, all rows together.
const MOST_REASONS: usize = 5;

/// The rows.
pub(super) struct Matrix(Vec<Row>);

impl Matrix {
    pub(super) fn read(root: &Path) -> Outcome<Self> {
        let path = root.join("tests/matrix.yaml");
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let rows = serde_yaml_ng::from_str(&text).map_err(|reason| format!("tests/matrix.yaml: {reason}"))?;
        Ok(Self(rows))
    }

    /// Checks the demands of each row on the requirements, by its name.
    pub(super) fn check(&self, entries: &[Entry]) -> Vec<(String, Outcome)> {
        let mut seen = BTreeSet::new();
        let mut outcomes: Vec<_> = self
            .0
            .iter()
            .map(|row| {
                let again = if seen.insert(&row.id) { Ok(()) } else { Err("the row is there twice".to_owned()) };
                (format!("matrix {}: {}", row.id, row.feature), again.and_then(|()| row.check(entries)))
            })
            .collect();
        outcomes.push(("matrix: reasons instead of tests".to_owned(), self.reasons(entries)));
        outcomes
    }

    /// Returns a table of the numbers of tests that prove each row in each language: for the server, for the client.
    pub(super) fn table(&self, entries: &[Entry], sources: &Sources) -> String {
        let mut text = String::from(
            "| row | feature | level | revisions | rust | python | node | swift |\n|---|---|---|---|---|---|---|---|\n",
        );
        for row in &self.0 {
            let sides = [Side::Server, Side::Client].map(|side| row.counts(side, entries, sources));
            let cells: Vec<_> = (0..LANGUAGES.len())
                .map(|at| sides.each_ref().map(|side| side.as_ref().map_or_else(|| "–".into(), |n| n[at].to_string())))
                .map(|cells| cells.join(" / "))
                .collect();
            let (feature, level) = (&row.feature, row.level.name());
            let window = window(&row.since, Some(&row.until));
            let _ = writeln!(text, "| {} | {feature} | {level} | {window} | {} |", row.id, cells.join(" | "));
        }
        text
    }

    fn reasons(&self, entries: &[Entry]) -> Outcome {
        let reasons: BTreeSet<&str> = entries
            .iter()
            .filter(|entry| self.0.iter().any(|row| row.is_about(entry)))
            .flat_map(Entry::reasons)
            .collect();
        match reasons.len() {
            0..=MOST_REASONS => Ok(()),
            many => Err(format!("{many} different ones, at most {MOST_REASONS}: {reasons:?}")),
        }
    }
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::May => "may",
        }
    }
}

impl Row {
    /// Tests for a side in each language; none when the side has no part in it.
    fn counts(&self, side: Side, entries: &[Entry], sources: &Sources) -> Option<[usize; LANGUAGES.len()]> {
        if !self.side.each().contains(&side) {
            return None;
        }
        let ours = entries.iter().filter(|entry| self.is_about(entry) && entry.side.each().contains(&side));
        let tests: BTreeSet<&String> = ours.flat_map(|entry| &entry.tests).collect();
        let mut counts = [0; LANGUAGES.len()];
        for proved in tests.into_iter().filter_map(|test| sources.languages(test).ok()) {
            counts.iter_mut().zip(proved).for_each(|(count, proved)| *count += usize::from(proved));
        }
        Some(counts)
    }

    fn is_about(&self, entry: &Entry) -> bool {
        let begins_in_time = entry.since <= self.until;
        let lasts = entry.until.as_ref().is_none_or(|until| self.since <= *until);
        entry.rows.contains(&self.id) && begins_in_time && lasts
    }

    fn check(&self, entries: &[Entry]) -> Outcome {
        let ours: Vec<&Entry> = entries.iter().filter(|entry| self.is_about(entry)).collect();
        let window = REVISIONS.into_iter().filter(|r| (self.since.as_str()..=self.until.as_str()).contains(r));
        for revision in window {
            for side in self.side.each() {
                if !ours.iter().any(|entry| entry.is_in_force(revision) && entry.side.each().contains(side)) {
                    return Err(format!("no requirement for the {} in {revision}", side.name()));
                }
            }
        }
        match ours.iter().find(|entry| self.level == Level::Must && entry.reasons().next().is_some()) {
            Some(entry) => Err(format!("a must, but {} has a reason instead of tests", entry.id)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    const MUST: &str = "[{id: X1, feature: f, side: both, level: must, since: 2024-11-05, until: 2025-03-26}]";
    const MAY: &str = "[{id: X1, feature: f, side: server, level: may, since: 2025-11-25, until: 2025-11-25}]";

    /// Returns all faults.
    fn wrong(rows: &str, entries: &[String]) -> String {
        let matrix = Matrix(serde_yaml_ng::from_str(rows).unwrap());
        let entries: Vec<Entry> = entries.iter().map(|entry| serde_yaml_ng::from_str(entry).unwrap()).collect();
        let outcomes = matrix.check(&entries).into_iter();
        outcomes.filter_map(|(_, outcome)| outcome.err()).collect::<Vec<_>>().join("; ")
    }

    fn entry(side: &str, since: &str, more: &str) -> String {
        format!("{{id: e, side: {side}, rows: [X1], source: s, behaviour: b, since: {since}{more}}}")
    }

    #[test]
    fn every_side_and_revision_has_a_requirement() {
        assert_eq!(wrong(MUST, &[entry("both", "2024-11-05", "")]), "");
        assert_eq!(wrong(MUST, &[entry("server", "2024-11-05", ""), entry("client", "2024-11-05", "")]), "");
        assert_eq!(wrong(MUST, &[entry("server", "2024-11-05", "")]), "no requirement for the client in 2024-11-05");
        assert_eq!(wrong(MUST, &[entry("both", "2025-03-26", "")]), "no requirement for the server in 2024-11-05");
        let ends = entry("both", "2024-11-05", ", until: 2024-11-05");
        assert_eq!(wrong(MUST, &[ends]), "no requirement for the server in 2025-03-26");
        assert_eq!(wrong(MAY, &[entry("server", "2026-07-28", "")]), "no requirement for the server in 2025-11-25");
        let over = entry("server", "2024-11-05", ", until: 2025-06-18");
        assert_eq!(wrong(MAY, &[over]), "no requirement for the server in 2025-11-25");
    }

    #[test]
    fn reasons_are_few_and_none_for_a_must() {
        let deferred = |reason: usize| entry("both", "2024-11-05", &format!(", deferred: r{reason}"));
        assert_eq!(wrong(MUST, &[deferred(0)]), "a must, but e has a reason instead of tests");
        let gap = entry("both", "2024-11-05", ", gaps: {swift: r}");
        assert_eq!(wrong(MUST, &[gap]), "a must, but e has a reason instead of tests");
        assert_eq!(wrong(MAY, &(0..5).map(deferred).collect::<Vec<_>>()), "");
        assert!(wrong(MAY, &(0..6).map(deferred).collect::<Vec<_>>()).starts_with("6 different ones, at most 5"));
        assert_eq!(wrong(MAY, &(0..6).map(|_| deferred(1)).collect::<Vec<_>>()), "", "the same reason again");
        // What ended before the row begins is not about it.
        let over = |reason: usize| entry("both", "2024-11-05", &format!(", until: 2025-06-18, deferred: r{reason}"));
        let all: Vec<_> = (0..6).map(over).chain([entry("server", "2025-11-25", "")]).collect();
        assert_eq!(wrong(MAY, &all), "");
    }
}
