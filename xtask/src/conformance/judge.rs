//! The strict rule: what one run of one scenario of the official suite is worth.
//!
//! The suite's own rule lets warnings, crashes, timeouts and scenarios that checked nothing pass; this one does not.

use super::Role;
use crate::process::Done;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The leg of the scenarios that belong to no revision.
pub(crate) const EXTENSIONS: &str = "ext";
/// Says only that some message was well-formed, not that the scenario's own requirement was reached.
const ENVELOPE: &str = "wire-schema-valid";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Passed,
    Failed,
    /// An extension that the program under test does not declare.
    NotExercised,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    /// Reason why it did not pass.
    pub(super) reason: String,
}

#[derive(Deserialize)]
struct Check {
    id: String,
    status: String,
}

impl Judged {
    pub(super) fn passed() -> Self {
        Self { verdict: Verdict::Passed, reason: String::new() }
    }

    fn failed(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, reason: reason.into() }
    }
}

/// Judges the results in `dir` of a run that ended as `done`.
pub(super) fn judge(dir: &Path, done: &Done, role: Role, leg: &str) -> Judged {
    if done.timed_out {
        return Judged::failed("hard timeout, the suite was killed");
    }
    let text = done.text();
    let files = results(dir);
    let [file] = files.as_slice() else {
        if text.lines().any(|l| l.starts_with("SKIPPED:")) {
            return Judged::failed("the suite skipped it (not applicable at this revision)");
        }
        return Judged::failed(format!("{} result files; {}", files.len(), done.why()));
    };
    let checks = std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<Vec<Check>>(&bytes).ok());
    match checks {
        Some(checks) => weigh(&checks, &text, done.code, role, leg),
        None => Judged::failed("unreadable checks.json"),
    }
}

fn weigh(checks: &[Check], text: &str, code: Option<i32>, role: Role, leg: &str) -> Judged {
    let ids = |status: &str| {
        let mut ids: Vec<&str> = Vec::new();
        for check in checks.iter().filter(|c| c.status == status) {
            if !ids.contains(&check.id.as_str()) {
                ids.push(&check.id);
            }
        }
        ids.join(", ")
    };
    let failures = ids("FAILURE");
    if !failures.is_empty() {
        return Judged::failed(failures);
    }
    if role == Role::Client {
        for (mark, reason) in
            [("CLIENT TIMED OUT", "the client timed out"), ("CLIENT EXITED WITH ERROR", "the client exited non-zero")]
        {
            if text.contains(mark) {
                return Judged::failed(reason);
            }
        }
    }
    let warnings = ids("WARNING");
    if !warnings.is_empty() {
        return Judged::failed(format!("warnings: {warnings}"));
    }
    if !checks.iter().any(|c| c.status == "SUCCESS" && c.id != ENVELOPE) {
        let verdict = if leg == EXTENSIONS { Verdict::NotExercised } else { Verdict::Failed };
        return Judged { verdict, reason: "no check was exercised".to_owned() };
    }
    if code != Some(0) {
        return Judged::failed(format!("the suite exited with {code:?} and no failing check"));
    }
    Judged::passed()
}

/// Length of the time at the end of a result's folder: `-2026-11-30T13-32-47-493Z`.
const STAMP: usize = 25;

/// The scenarios that passed in a run of several, by the folders of their results. Clients have noted their exit status
/// (`noted.sh`): one that ended badly, or late, has not passed, though that may be how its scenario has to end.
pub(super) fn passed(dir: &Path, done: &Done, role: Role, leg: &str) -> Vec<String> {
    if done.timed_out {
        return Vec::new();
    }
    let ended_well = |scenario: &String| {
        let notes = std::fs::read_to_string(dir.join("notes").join(scenario.replace('/', "_"))).unwrap_or_default();
        role == Role::Server || (!notes.is_empty() && notes.lines().all(|status| status == "0"))
    };
    let scenario = |file: &Path| {
        let folder = file.parent()?.strip_prefix(dir).ok()?.to_str()?;
        let name = folder.get(..folder.len().checked_sub(STAMP)?)?;
        Some(if role == Role::Server { name.strip_prefix("server-")? } else { name }.to_owned())
    };
    let good = |file: &PathBuf| {
        let checks = std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<Vec<Check>>(&bytes).ok());
        checks.is_some_and(|checks| weigh(&checks, "", Some(0), role, leg).verdict == Verdict::Passed)
    };
    results(dir).iter().filter(|file| good(file)).filter_map(|file| scenario(file)).filter(ended_well).collect()
}

fn results(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for path in std::fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.ends_with("checks.json") {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks(all: &[(&str, &str)]) -> Vec<Check> {
        all.iter().map(|(id, status)| Check { id: (*id).to_owned(), status: (*status).to_owned() }).collect()
    }

    fn verdict(all: &[(&str, &str)], text: &str, code: i32, role: Role, leg: &str) -> (Verdict, String) {
        let judged = weigh(&checks(all), text, Some(code), role, leg);
        (judged.verdict, judged.reason)
    }

    #[test]
    fn a_failure_fails_and_a_success_passes() {
        let good = [("tools-list", "SUCCESS"), (ENVELOPE, "SUCCESS")];
        assert_eq!(verdict(&good, "", 0, Role::Server, "2025-11-25"), (Verdict::Passed, String::new()));
        let bad = [("tools-list", "FAILURE"), ("tools-list", "FAILURE"), ("x", "FAILURE"), ("y", "SUCCESS")];
        assert_eq!(verdict(&bad, "", 1, Role::Server, "2025-11-25"), (Verdict::Failed, "tools-list, x".to_owned()));
    }

    #[test]
    fn a_dead_server_does_not_pass_by_the_envelope_alone() {
        let only = [(ENVELOPE, "SUCCESS"), ("tools-list", "SKIPPED")];
        assert_eq!(verdict(&only, "", 0, Role::Server, "2026-07-28").0, Verdict::Failed);
        assert_eq!(verdict(&only, "", 0, Role::Server, EXTENSIONS).0, Verdict::NotExercised);
        assert_eq!(verdict(&[], "", 0, Role::Client, "2026-07-28").0, Verdict::Failed);
    }

    #[test]
    fn a_client_that_crashed_or_hung_fails_with_good_checks() {
        let good = [("tools_call", "SUCCESS")];
        let crashed = "CLIENT EXITED WITH ERROR (code 1)";
        assert_eq!(verdict(&good, crashed, 0, Role::Client, "2025-11-25").0, Verdict::Failed);
        assert_eq!(verdict(&good, "CLIENT TIMED OUT", 0, Role::Client, "2025-11-25").0, Verdict::Failed);
        assert_eq!(verdict(&good, crashed, 0, Role::Server, "2025-11-25").0, Verdict::Passed);
    }

    #[test]
    fn a_warning_fails_and_is_named() {
        let warned = [("tools-list", "SUCCESS"), ("order", "WARNING"), ("order", "WARNING"), ("names", "WARNING")];
        let failed = (Verdict::Failed, "warnings: order, names".to_owned());
        assert_eq!(verdict(&warned, "", 0, Role::Server, "2025-11-25"), failed);
        assert_eq!(verdict(&warned, "", 1, Role::Client, "2026-07-28"), failed);
        assert_eq!(verdict(&warned[1..], "", 0, Role::Server, EXTENSIONS), failed);
    }

    #[test]
    fn a_run_of_several_names_those_that_passed() {
        let dir = std::env::temp_dir().join(format!("tricorn-judge-{}", std::process::id()));
        let file = |folder: &str, status: &str| {
            let folder = dir.join(folder);
            std::fs::create_dir_all(&folder).expect("a folder");
            let text = format!(r#"[{{"id":"x","status":"{status}"}}]"#);
            std::fs::write(folder.join("checks.json"), text).expect("a file");
        };
        file("auth/good-2026-11-30T13-32-47-493Z", "SUCCESS");
        file("bad-2026-11-30T13-32-47-493Z", "FAILURE");
        file("server-ping-2026-11-30T13-32-47-493Z", "SUCCESS");
        file("crashed-2026-11-30T13-32-47-493Z", "SUCCESS");
        file("killed-2026-11-30T13-32-47-493Z", "SUCCESS");
        file("late-2026-11-30T13-32-47-493Z", "SUCCESS");
        std::fs::create_dir_all(dir.join("notes")).expect("a folder");
        for (scenario, notes) in [("auth_good", "0\n0\n"), ("bad", "0\n"), ("crashed", "0\n1\n"), ("late", "late\n")] {
            std::fs::write(dir.join("notes").join(scenario), notes).expect("a file");
        }
        let done = |timed_out| Done { code: Some(1), timed_out, ..Done::default() };
        assert_eq!(passed(&dir, &done(false), Role::Client, "2025-11-25"), ["auth/good"]);
        assert_eq!(passed(&dir, &done(false), Role::Server, "2025-11-25"), ["ping"]);
        assert!(passed(&dir, &done(true), Role::Server, "2025-11-25").is_empty());
        std::fs::remove_dir_all(&dir).expect("gone");
    }

    #[test]
    fn an_exit_status_needs_an_explanation() {
        let good = [("tools-list", "SUCCESS")];
        assert_eq!(verdict(&good, "", 1, Role::Client, "2026-07-28").0, Verdict::Failed);
    }
}
