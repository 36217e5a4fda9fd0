//! The lists of failures that are expected, each with its reason, and the check that none of them is stale.

use super::{Role, Run, Verdict};
use crate::place::{self, Lang};
use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// `tests/conformance/<server|client>.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    #[serde(default, rename = "expected")]
    entries: Vec<Entry>,
}

/// Scenarios that fail for one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Names; one that ends in `*` means all that begin so.
    scenarios: Vec<String>,
    /// None: every revision that has the scenario.
    revisions: Option<Vec<String>>,
    /// None: every language.
    languages: Option<Vec<String>>,
    reason: String,
}

impl Entry {
    fn covers(&self, lang: Lang, leg: &str) -> bool {
        self.revisions.as_ref().is_none_or(|all| all.iter().any(|r| r == leg))
            && self.languages.as_ref().is_none_or(|all| all.iter().any(|l| l == lang.name()))
    }
}

fn names(pattern: &str, scenario: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == scenario, |start| scenario.starts_with(start))
}

impl Expected {
    pub(super) fn read(role: Role) -> Result<Self> {
        let path = place::root().join(format!("tests/conformance/{}.toml", role.name()));
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| place::short(&path))
    }

    fn parse(text: &str) -> Result<Self> {
        let all: Self = toml::from_str(text)?;
        if let Some(entry) = all.entries.iter().find(|e| e.reason.trim().is_empty() || e.scenarios.is_empty()) {
            bail!("an entry without a reason or without scenarios: {entry:?}");
        }
        Ok(all)
    }

    fn find(&self, lang: Lang, leg: &str, scenario: &str) -> Option<&Entry> {
        let hit = |e: &&Entry| e.covers(lang, leg) && e.scenarios.iter().any(|s| names(s, scenario));
        self.entries.iter().find(hit)
    }

    /// Why this scenario may fail; none when it has to pass.
    pub(super) fn reason(&self, lang: Lang, leg: &str, scenario: &str) -> Option<&str> {
        self.find(lang, leg, scenario).map(|e| e.reason.as_str())
    }

    /// The same, when it may fail in every language: then a run in one of them tells whether that is stale.
    pub(super) fn everywhere(&self, lang: Lang, leg: &str, scenario: &str) -> Option<&str> {
        self.find(lang, leg, scenario).filter(|e| e.languages.is_none()).map(|e| e.reason.as_str())
    }

    /// Entries of these legs that name a scenario the suite does not have there.
    pub(super) fn unknown(&self, lang: Lang, legs: &[String], runs: &[Run]) -> Vec<String> {
        let mut unknown = Vec::new();
        for entry in &self.entries {
            let covered: Vec<&String> = legs.iter().filter(|leg| entry.covers(lang, leg)).collect();
            // Without a revision of its own an entry may speak of another leg than those that were run.
            let whole = entry.revisions.is_some() || legs.len() >= super::REVISIONS.len();
            for scenario in entry.scenarios.iter().filter(|_| whole && !covered.is_empty()) {
                if !runs.iter().any(|r| names(scenario, &r.scenario) && covered.contains(&&r.leg)) {
                    unknown.push(format!("{scenario} is in no leg that its entry names"));
                }
            }
        }
        unknown
    }

    /// Scenarios that were expected to fail and passed.
    pub(super) fn stale(&self, lang: Lang, runs: &[Run]) -> Vec<String> {
        let hit = |r: &&Run| r.judged.verdict == Verdict::Passed && self.reason(lang, &r.leg, &r.scenario).is_some();
        runs.iter().filter(hit).map(|r| format!("{} {} passes now", r.leg, r.scenario)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::judge::Judged;
    use super::*;

    const LIST: &str = r#"
        [[expected]]
        scenarios = ["resources-list", "prompts-*"]
        reason = "resources come later"

        [[expected]]
        scenarios = ["tools-list"]
        revisions = ["2026-07-28"]
        languages = ["swift"]
        reason = "one language, one revision"
    "#;

    fn run(leg: &str, scenario: &str, verdict: Verdict) -> Run {
        Run { leg: leg.to_owned(), scenario: scenario.to_owned(), judged: Judged { verdict, reason: String::new() } }
    }

    #[test]
    fn an_entry_covers_what_it_names() {
        let list = Expected::parse(LIST).expect("a good list");
        assert!(list.reason(Lang::Node, "2025-11-25", "resources-list").is_some());
        assert!(list.reason(Lang::Node, "2025-11-25", "prompts-get-simple").is_some());
        assert!(list.reason(Lang::Swift, "2026-07-28", "tools-list").is_some());
        assert!(list.reason(Lang::Swift, "2025-11-25", "tools-list").is_none());
        assert!(list.reason(Lang::Rust, "2026-07-28", "tools-list").is_none());
        assert!(list.everywhere(Lang::Node, "2025-11-25", "resources-list").is_some());
        assert!(list.everywhere(Lang::Swift, "2026-07-28", "tools-list").is_none());
    }

    #[test]
    fn an_entry_that_passes_or_names_nothing_is_stale() {
        let list = Expected::parse(LIST).expect("a good list");
        let runs = [run("2025-11-25", "resources-list", Verdict::Passed), run("2026-07-28", "ping", Verdict::Passed)];
        assert_eq!(list.stale(Lang::Rust, &runs), ["2025-11-25 resources-list passes now"]);
        let legs = vec!["2026-07-28".to_owned()];
        assert_eq!(list.unknown(Lang::Swift, &legs, &runs), ["tools-list is in no leg that its entry names"]);
        assert!(list.unknown(Lang::Rust, &legs, &runs).is_empty());
    }

    #[test]
    fn a_list_needs_reasons() {
        assert!(Expected::parse("[[expected]]\nscenarios = [\"a\"]\nreason = \"\"").is_err());
        assert!(Expected::parse("[[expected]]\nscenarios = [\"a\"]").is_err());
    }
}
