//! Findings, and their forms as text, JSON and JUnit.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tricorn::cassette::Redaction;

use super::catalogue::{Area, CHECKS, Check, check};
use crate::output::{Screen, one_line, wrapped};

/// Pieces of evidence that are kept of one finding.
const KEPT: usize = 5;
/// The longest piece, in characters.
const LONGEST: usize = 300;
const PER_ERROR: u32 = 20;
const PER_WARNING: u32 = 5;
/// A start that takes longer is slow.
const SLOW: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    Error,
    Warning,
}

impl Severity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// One thing that is wrong with the server.
pub(super) struct Finding {
    pub(super) check: &'static Check,
    pub(super) severity: Severity,
    /// Evidence, verbatim or in words; not yet made harmless for a terminal.
    pub(super) evidence: Vec<String>,
    /// Pieces of evidence that were left out.
    pub(super) more: usize,
}

/// Everything that is known of a server. A clone is the same.
#[derive(Clone, Default)]
pub(super) struct Report(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    findings: Vec<Finding>,
    ran: BTreeSet<&'static str>,
    /// Areas that were not examined, and why.
    skipped: Vec<(Area, String)>,
    name: String,
    version: String,
    revisions: Vec<String>,
    started: bool,
    /// Times from a start to the first answer.
    starts: Vec<Duration>,
    /// The reason why the examination ended early.
    failure: Option<String>,
    /// Secrets that no text of a server may show again.
    redaction: Option<Redaction>,
}

impl Report {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a finding, or more evidence to one that is there.
    pub(super) fn find(&self, name: &'static str, evidence: impl Into<String>) {
        let Some(kind) = check(name) else { return };
        self.find_as(name, kind.severity, evidence);
    }

    /// The same with another severity than the usual one.
    pub(super) fn find_as(&self, name: &'static str, severity: Severity, evidence: impl Into<String>) {
        let Some(kind) = check(name) else { return };
        let evidence = self.clean(&evidence.into());
        let cut: String = evidence.chars().take(LONGEST).collect();
        let evidence = if cut.len() < evidence.len() { format!("{cut}…") } else { cut };
        let mut state = self.lock();
        state.ran.insert(name);
        match state.findings.iter_mut().find(|finding| finding.check.name == name) {
            Some(finding) => {
                finding.severity = finding.severity.min(severity);
                if finding.evidence.contains(&evidence) {
                } else if finding.evidence.len() < KEPT {
                    finding.evidence.push(evidence);
                } else {
                    finding.more += 1;
                }
            }
            None => state.findings.push(Finding { check: kind, severity, evidence: vec![evidence], more: 0 }),
        }
    }

    /// Takes these secrets out of everything from now on.
    pub(super) fn hide(&self, redaction: Redaction) {
        self.lock().redaction = Some(redaction);
    }

    /// Takes out this secret, too.
    pub(super) fn hide_also(&self, secret: &str) {
        if let Some(redaction) = &mut self.lock().redaction {
            redaction.learn(secret);
        }
    }

    /// A text without secrets that the command was given.
    pub(super) fn clean(&self, text: &str) -> String {
        // No more than is shown, and some for what is put together.
        let cut: String = text.chars().take(LONGEST * 8).collect();
        self.lock().redaction.as_mut().map_or_else(|| cut.clone(), |redaction| redaction.text(&cut))
    }

    /// Remembers how long a start took.
    pub(super) fn took(&self, start: Duration) {
        self.lock().starts.push(start);
    }

    /// Reports a server all of whose starts are slow: a single one may be the machine's affair.
    pub(super) fn starts(&self) {
        let starts = self.lock().starts.clone();
        let Some(fastest) = starts.iter().min() else { return };
        self.ran(&["slow-start"]);
        if *fastest > SLOW {
            let of = if starts.len() > 1 { format!(", the fastest of {} starts", starts.len()) } else { String::new() };
            self.find("slow-start", format!("{:.1} s until the first answer{of}", fastest.as_secs_f64()));
        }
    }

    /// Remembers why the examination has ended early.
    pub(super) fn set_failure(&self, why: &str) {
        let why = self.clean(why);
        self.lock().failure = Some(why);
    }

    /// True if this was found.
    pub(super) fn has(&self, name: &str) -> bool {
        self.lock().findings.iter().any(|finding| finding.check.name == name)
    }

    pub(super) fn has_findings(&self) -> bool {
        !self.lock().findings.is_empty()
    }

    /// Remembers that this was looked for.
    pub(super) fn ran(&self, names: &[&'static str]) {
        self.lock().ran.extend(names);
    }

    /// Remembers that an area, or a part of it, was left out.
    pub(super) fn skip(&self, area: Area, why: impl Into<String>) {
        let why = self.clean(&why.into());
        let mut state = self.lock();
        if !state.skipped.iter().any(|(known, text)| *known == area && *text == why) {
            state.skipped.push((area, why));
        }
    }

    pub(super) fn set_server(&self, name: &str, version: &str) {
        let mut state = self.lock();
        state.name = one_line(name);
        state.version = one_line(version);
        state.started = true;
    }

    pub(super) fn speaks(&self, revision: &str) {
        let mut state = self.lock();
        state.started = true;
        if !state.revisions.iter().any(|known| known == revision) {
            state.revisions.push(one_line(revision));
            state.revisions.sort();
        }
    }

    /// True once the server has answered anything.
    pub(super) fn was_reached(&self) -> bool {
        self.lock().started
    }

    pub(super) fn reached(&self) {
        self.lock().started = true;
    }

    fn counts(state: &State) -> (u32, u32) {
        let count = |severity| state.findings.iter().filter(|finding| finding.severity == severity).count();
        let number = |severity| u32::try_from(count(severity)).unwrap_or(u32::MAX);
        (number(Severity::Error), number(Severity::Warning))
    }

    pub(super) fn errors(&self) -> u32 {
        Self::counts(&self.lock()).0
    }

    pub(super) fn score(&self) -> u32 {
        Self::score_of(&self.lock())
    }

    fn score_of(state: &State) -> u32 {
        // Nothing was examined: the server is not there, or wants a login first.
        if state.failure.is_some() {
            return 0;
        }
        let (errors, warnings) = Self::counts(state);
        100_u32.saturating_sub(errors * PER_ERROR + warnings * PER_WARNING)
    }

    /// Puts the findings in the order of the catalogue.
    pub(super) fn sort(&self) {
        let place = |finding: &Finding| CHECKS.iter().position(|check| check.name == finding.check.name);
        self.lock().findings.sort_by_key(|finding| (finding.severity, place(finding)));
    }

    pub(super) fn print(&self, screen: &Screen, target: &str, transport: &str) {
        let state = self.lock();
        let ((errors, warnings), score) = (Self::counts(&state), Self::score_of(&state));
        let style = screen.style();
        let name = if state.name.is_empty() { target } else { &state.name };
        let head = format!("{name} {}", state.version);
        let mut page = format!("{}  {transport}", style.bold(head.trim()));
        if !state.revisions.is_empty() {
            page.push_str(&format!(", {}", state.revisions.join(" ")));
        }
        page.push('\n');
        for finding in &state.findings {
            let Finding { check, severity, evidence, more } = finding;
            let word = match severity {
                Severity::Error => style.error(severity.name()),
                Severity::Warning => style.warning(severity.name()),
            };
            page.push_str(&format!("\n{word} {}\n{}\n", style.bold(check.name), wrapped(screen, check.wrong, "  ")));
            for evidence in evidence {
                page.push_str(&format!("{}\n", wrapped(screen, &format!("- {}", one_line(evidence)), "  ")));
            }
            if *more > 0 {
                page.push_str(&format!("  - and {more} more\n"));
            }
            page.push_str(&format!("{}\n", style.dim(&wrapped(screen, &format!("Fix: {}", check.fix), "  "))));
        }
        if !state.skipped.is_empty() {
            page.push_str("\nNot examined\n");
            for (area, why) in &state.skipped {
                page.push_str(&format!("{}\n", wrapped(screen, &format!("{}: {why}", area.name()), "  ")));
            }
        }
        let plural = |count: u32, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        let why = if state.failure.is_some() { ", as it was not examined" } else { "" };
        page.push_str(&format!(
            "\n{}  {}, {}, {} looked for\n",
            style.bold(&format!("Score {score} of 100{why}")),
            plural(errors, "error"),
            plural(warnings, "warning"),
            state.ran.len()
        ));
        screen.print(&page);
    }

    pub(super) fn json(&self, target: &str, transport: &str) -> Value {
        let state = self.lock();
        let ((errors, warnings), score) = (Self::counts(&state), Self::score_of(&state));
        let finding = |finding: &Finding| {
            json!({
                "name": finding.check.name,
                "area": finding.check.area.name(),
                "severity": finding.severity.name(),
                "profile": finding.check.profile,
                "wrong": finding.check.wrong,
                "evidence": finding.evidence,
                "more": finding.more,
                "fix": finding.check.fix,
            })
        };
        let skipped = |(area, why): &(Area, String)| json!({"area": area.name(), "why": why});
        json!({
            "target": target,
            "transport": transport,
            "server": {"name": state.name, "version": state.version},
            "revisions": state.revisions,
            "score": score,
            "errors": errors,
            "warnings": warnings,
            "findings": state.findings.iter().map(finding).collect::<Vec<_>>(),
            "examined": state.ran.iter().collect::<Vec<_>>(),
            "skipped": state.skipped.iter().map(skipped).collect::<Vec<_>>(),
            "failure": state.failure,
        })
    }

    /// The same for programs that show tests: each thing that was looked for is one, and so is the score where it has to
    /// be `least`. Warnings are no failures.
    pub(super) fn junit(&self, target: &str, least: u32) -> Result<String, String> {
        use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
        let state = self.lock();
        let mut suite = TestSuite::new(target);
        for check in CHECKS.iter().filter(|check| state.ran.contains(check.name)) {
            let found = state.findings.iter().find(|finding| finding.check.name == check.name);
            let text = |finding: &Finding| {
                let evidence: Vec<_> = finding.evidence.iter().map(|evidence| one_line(evidence)).collect();
                format!("{}\n{}", evidence.join("\n"), check.fix)
            };
            let mut case = match found {
                Some(finding) if finding.severity == Severity::Error => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_message(check.wrong).set_type(check.name).set_description(text(finding));
                    TestCase::new(check.name, status)
                }
                _ => TestCase::new(check.name, TestCaseStatus::success()),
            };
            case.set_classname(format!("doctor.{}", check.area.name()));
            if let Some(finding) = found.filter(|finding| finding.severity == Severity::Warning) {
                case.set_system_out(format!("warning: {}\n{}", check.wrong, text(finding)));
            }
            suite.add_test_case(case);
        }
        if let Some(why) = &state.failure {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message("The examination ended early.").set_type("failure").set_description(why);
            let mut case = TestCase::new("examination", status);
            case.set_classname("doctor");
            suite.add_test_case(case);
        }
        if least > 0 && state.failure.is_none() {
            let score = Self::score_of(&state);
            let status = if score >= least {
                TestCaseStatus::success()
            } else {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(format!("The score is {score}, less than {least}.")).set_type("score");
                status
            };
            let mut case = TestCase::new("score", status);
            case.set_classname("doctor");
            suite.add_test_case(case);
        }
        let mut report = Report::new("tricorn doctor");
        report.add_test_suite(suite);
        report.to_string().map_err(|error| error.to_string())
    }
}
