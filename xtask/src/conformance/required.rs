//! Scenarios that have to run and pass, so that one which is no longer reached cannot go unnoticed.
//!
//! The suite freezes a set of scenarios for a revision. Their names are read from the suite, their number is in our own
//! list; extensions are in no set, so theirs are named there.

use super::{EXTENSIONS, Run};
use anyhow::{Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;

/// `[required]` of `tests/conformance/<server|client>.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Required {
    /// By revision, how many scenarios the suite's set for it has.
    pub(super) sets: BTreeMap<String, usize>,
    /// Scenarios of extensions.
    pub(super) extensions: Vec<String>,
}

impl Required {
    /// Returns the required scenarios of these legs, as leg and scenario; `set` returns the names of the suite's set
    /// for a revision.
    pub(super) fn of(
        &self,
        legs: &[String],
        mut set: impl FnMut(&str) -> Result<Vec<String>>,
    ) -> Result<Vec<(String, String)>> {
        let mut all = Vec::new();
        for leg in legs {
            let names = if leg == EXTENSIONS {
                self.extensions.clone()
            } else if let Some(&count) = self.sets.get(leg) {
                let names = set(leg)?;
                if names.len() != count {
                    bail!("the suite's set for {leg} has {} scenarios, not {count}", names.len());
                }
                names
            } else {
                Vec::new()
            };
            all.extend(names.into_iter().map(|name| (leg.clone(), name)));
        }
        Ok(all)
    }
}

/// Returns the required scenarios that did not run at all: those that ran and did not pass are reported as any other.
pub(super) fn missing(required: &[(String, String)], runs: &[Run]) -> Vec<String> {
    let ran = |(leg, scenario): &&(String, String)| runs.iter().any(|r| r.leg == *leg && r.scenario == *scenario);
    required.iter().filter(|one| !ran(one)).map(|(leg, scenario)| format!("{leg} {scenario}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::judge::{Judged, Verdict};
    use super::*;

    fn required() -> Required {
        Required {
            sets: BTreeMap::from([("2026-07-28".to_owned(), 2)]),
            extensions: vec!["tasks-lifecycle".to_owned()],
        }
    }

    fn owned(all: &[&str]) -> Vec<String> {
        all.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_leg_requires_its_set_and_that_of_extensions_what_is_named() {
        let two = |_: &str| Ok(owned(&["tools-list", "caching"]));
        let all = required().of(&owned(&["2025-06-18", "2026-07-28", EXTENSIONS]), two).expect("a good set");
        let names: Vec<String> = all.iter().map(|(leg, name)| format!("{leg} {name}")).collect();
        assert_eq!(names, ["2026-07-28 tools-list", "2026-07-28 caching", "ext tasks-lifecycle"]);
    }

    #[test]
    fn a_set_that_shrank_is_an_error() {
        let one = |_: &str| Ok(owned(&["tools-list"]));
        let error = required().of(&owned(&["2026-07-28"]), one).expect_err("one is missing").to_string();
        assert_eq!(error, "the suite's set for 2026-07-28 has 1 scenarios, not 2");
        assert!(required().of(&owned(&["2025-06-18"]), one).expect("no set").is_empty());
    }

    #[test]
    fn what_did_not_run_in_its_own_leg_is_missing() {
        let run = |leg: &str, verdict| Run {
            leg: leg.to_owned(),
            scenario: "ping".to_owned(),
            judged: Judged { verdict, reason: String::new() },
        };
        let both = [("2025-06-18".to_owned(), "ping".to_owned()), ("2025-11-25".to_owned(), "ping".to_owned())];
        assert_eq!(missing(&both, &[run("2025-06-18", Verdict::Passed)]), ["2025-11-25 ping"]);
        let all = [run("2025-06-18", Verdict::Passed), run("2025-11-25", Verdict::Failed)];
        assert!(missing(&both, &all).is_empty());
    }
}
