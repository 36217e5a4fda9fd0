//! Expected outcomes of the suite's scenarios, each exception with its reason, and the check that none of them is
//! stale.

use super::required::Required;
use super::{EXTENSIONS, Role, Run, Verdict};
use crate::place::{self, Lang};
use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// `tests/conformance/<server|client>.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    #[serde(default, rename = "expected")]
    entries: Vec<Entry>,
    #[serde(default)]
    unexercised: Vec<Unexercised>,
    #[serde(default)]
    pub(super) required: Required,
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

/// Scenarios of extensions that check nothing for one reason, in every language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unexercised {
    /// Names; one that ends in `*` means all that begin so.
    scenarios: Vec<String>,
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
        let expected = all.entries.iter().map(|e| (&e.scenarios, &e.reason));
        let unexercised = all.unexercised.iter().map(|e| (&e.scenarios, &e.reason));
        let empty = |(scenarios, reason): &(&Vec<String>, &String)| scenarios.is_empty() || reason.trim().is_empty();
        if let Some(entry) = expected.chain(unexercised).find(empty) {
            bail!("an entry without a reason or without scenarios: {entry:?}");
        }
        Ok(all)
    }

    fn find(&self, lang: Lang, leg: &str, scenario: &str) -> Option<&Entry> {
        let hit = |e: &&Entry| e.covers(lang, leg) && e.scenarios.iter().any(|s| names(s, scenario));
        self.entries.iter().find(hit)
    }

    /// Returns the reason why this scenario may fail; none when it has to pass.
    pub(super) fn reason(&self, lang: Lang, leg: &str, scenario: &str) -> Option<&str> {
        self.find(lang, leg, scenario).map(|e| e.reason.as_str())
    }

    /// Returns the reason why nothing need be checked by this scenario of an extension; none when it has to.
    pub(super) fn unexercised(&self, leg: &str, scenario: &str) -> Option<&str> {
        let hit = |e: &&Unexercised| e.scenarios.iter().any(|s| names(s, scenario));
        self.unexercised.iter().find(hit).filter(|_| leg == EXTENSIONS).map(|e| e.reason.as_str())
    }

    /// Any exception for this scenario.
    pub(super) fn exception(&self, lang: Lang, leg: &str, scenario: &str) -> Option<&str> {
        self.reason(lang, leg, scenario).or_else(|| self.unexercised(leg, scenario))
    }

    /// The exception that is about this outcome, which of one that passed is any: then it is stale.
    pub(super) fn excuse(&self, lang: Lang, run: &Run) -> Option<&str> {
        match run.judged.verdict {
            Verdict::Passed => self.exception(lang, &run.leg, &run.scenario),
            Verdict::Failed => self.reason(lang, &run.leg, &run.scenario),
            Verdict::NotExercised => self.unexercised(&run.leg, &run.scenario),
        }
    }

    /// [`Self::reason`], when it may fail in every language: then a run in one of them tells whether that is stale.
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

    /// Exceptions for extensions that name no scenario of those that `wanted` chose.
    pub(super) fn unknown_unexercised(&self, wanted: impl Fn(&str) -> bool, runs: &[Run]) -> Vec<String> {
        let all = self.unexercised.iter().flat_map(|e| &e.scenarios);
        let unknown = all.filter(|s| wanted(s.trim_end_matches('*')) && !runs.iter().any(|r| names(s, &r.scenario)));
        unknown.map(|s| format!("{s} is no scenario of an extension")).collect()
    }

    /// Scenarios that were excused and passed.
    pub(super) fn stale(&self, lang: Lang, runs: &[Run]) -> Vec<String> {
        let hit = |r: &&Run| r.judged.verdict == Verdict::Passed && self.excuse(lang, r).is_some();
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
    fn only_what_is_named_may_go_unexercised_and_only_as_an_extension() {
        let list = "[[unexercised]]\nscenarios = [\"tasks-status\", \"skills-*\"]\nreason = \"parked\"";
        let list = Expected::parse(list).expect("a good list");
        let excuse = |leg, scenario, verdict| list.excuse(Lang::Node, &run(leg, scenario, verdict));
        assert_eq!(excuse(EXTENSIONS, "tasks-status", Verdict::NotExercised), Some("parked"));
        assert_eq!(excuse(EXTENSIONS, "skills-list", Verdict::NotExercised), Some("parked"));
        assert_eq!(excuse(EXTENSIONS, "tasks-lifecycle", Verdict::NotExercised), None);
        assert_eq!(excuse(EXTENSIONS, "tasks-status", Verdict::Failed), None);
        assert_eq!(excuse("2026-07-28", "tasks-status", Verdict::NotExercised), None);
        let runs = [run(EXTENSIONS, "tasks-status", Verdict::Passed)];
        assert_eq!(list.stale(Lang::Node, &runs), ["ext tasks-status passes now"]);
        assert_eq!(list.unknown_unexercised(|_| true, &runs), ["skills-* is no scenario of an extension"]);
        assert!(list.unknown_unexercised(|s| s.contains("tasks-"), &runs).is_empty());
    }

    #[test]
    fn a_list_needs_reasons() {
        assert!(Expected::parse("[[unexercised]]\nscenarios = [\"a\"]\nreason = \" \"").is_err());
        assert!(Expected::parse("[[expected]]\nscenarios = [\"a\"]\nreason = \"\"").is_err());
        assert!(Expected::parse("[[expected]]\nscenarios = [\"a\"]").is_err());
    }
}
