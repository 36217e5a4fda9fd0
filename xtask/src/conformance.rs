//! `cargo xtask conformance`: the official suite against one of our programs, by the strict rule of [`judge`].
//!
//! A leg runs in one process of the suite, which takes a tenth of the time. Each scenario that has not passed there runs
//! again in a process of its own: one that hangs or crashes costs only itself.

mod expected;
mod judge;
mod required;

use crate::place::{self, Lang};
use crate::process::{self, Background};
use crate::report::{self, Counts};
use crate::{setup, tool};
use anyhow::{Context, Result, bail};
use expected::Expected;
pub(crate) use judge::EXTENSIONS;
use judge::{Judged, Verdict, judge};
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// The dated legs of the suite.
pub(crate) const REVISIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// Time that the suite itself allows a scenario, and the time after which it is killed.
const SOFT: Duration = Duration::from_secs(30);
const HARD: Duration = Duration::from_secs(90);

/// The same of a whole leg. The suite starts all its clients at once.
const SOFT_TOGETHER: Duration = Duration::from_secs(60);
const HARD_TOGETHER: Duration = Duration::from_secs(4 * 60);

/// Side of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Role {
    Server,
    Client,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }

    /// The suite's option for the program under test.
    fn target(self) -> &'static str {
        match self {
            Self::Server => "--url",
            Self::Client => "--command",
        }
    }
}

/// Selection of scenarios to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) lang: Lang,
    pub(crate) role: Role,
    /// Revisions, or `ext` for the extensions.
    pub(crate) legs: Vec<String>,
    /// Only scenarios whose name contains this.
    pub(crate) filter: Option<String>,
    /// Only count what is expected to fail in every language: less time, and nothing proved stale.
    pub(crate) skip_expected: bool,
}

/// One scenario at one revision.
#[derive(Debug)]
struct Run {
    leg: String,
    scenario: String,
    judged: Judged,
}

impl Plan {
    /// Returns true if the filter leaves this scenario in.
    fn wants(&self, scenario: &str) -> bool {
        self.filter.as_ref().is_none_or(|f| scenario.contains(f.as_str()))
    }

    /// The list of what is expected.
    fn list(&self) -> String {
        format!("tests/conformance/{}.toml", self.role.name())
    }
}

/// Result of a plan.
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    /// Lines about what did not simply pass.
    pub(crate) remarks: Vec<String>,
}

/// The scenarios of extensions that have to pass.
#[cfg(test)]
pub(crate) fn required_extensions(role: Role) -> Result<Vec<String>> {
    Ok(Expected::read(role)?.required.extensions)
}

/// `cargo xtask conformance <lang> <role> [revision]`.
pub(crate) fn main(plan: &Plan) -> Result<bool> {
    tool::need(&[plan.lang])?;
    setup::languages(&[plan.lang]).all_ready()?;
    let outcome = run(plan, &mut |text| report::line(text))?;
    report::clear();
    let Counts { passed, failed, skipped } = outcome.counts;
    let excused = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    report::line("");
    outcome.remarks.iter().for_each(report::line);
    report::line(format!("{passed} passed, {failed} failed{excused}"));
    Ok(failed == 0)
}

/// Runs a plan; `say` gets one line per scenario.
pub(crate) fn run(plan: &Plan, say: &mut dyn FnMut(String)) -> Result<Outcome> {
    let suite = Suite { node: setup::newest_node()?, entry: setup::conformance()?, loopback: loopback()? };
    let expected = Expected::read(plan.role)?;
    let all = suite.list(plan.role)?;
    let mut todo = Vec::new();
    for leg in &plan.legs {
        todo.extend(all.iter().filter(|(s, legs)| legs.contains(leg) && plan.wants(s)).map(|(s, _)| (leg, s)));
    }
    let mut required = expected.required.of(&plan.legs, |leg| suite.set(plan.role, leg)).context(plan.list())?;
    required.retain(|(_, scenario)| plan.wants(scenario));
    let excused = |(leg, scenario): &&(String, String)| expected.exception(plan.lang, leg, scenario).is_some();
    if let Some((leg, scenario)) = required.iter().find(excused) {
        bail!("{} excuses {scenario}, which is required at {leg}", plan.list());
    }
    let mut left_out = Vec::new();
    if plan.skip_expected {
        todo.retain(|(leg, scenario)| {
            let reason = expected.everywhere(plan.lang, leg, scenario);
            left_out.extend(reason);
            reason.is_none()
        });
    }
    if todo.is_empty() {
        bail!("no scenario of the suite fits (legs {})", plan.legs.join(", "));
    }
    let program = place::root().join(match plan.role {
        Role::Server => format!("examples/everything/{}/run", plan.lang),
        Role::Client => format!("examples/conformance-client/{}/run", plan.lang),
    });
    if !program.is_file() {
        bail!("there is no {}", place::short(&program));
    }
    let (server, target) = match plan.role {
        Role::Server => {
            report::step(format!("starting the {} fixture server", plan.lang));
            let extended = plan.legs.iter().any(|leg| leg == EXTENSIONS);
            let (server, url) = serve(&program, extended)?;
            (Some(server), url)
        }
        Role::Client => (None, program.to_string_lossy().into_owned()),
    };
    report::step(format!("conformance of the {} {}", plan.lang, plan.role.name()));
    let mut passed = HashSet::new();
    if plan.filter.is_none() {
        for leg in plan.legs.iter().filter(|leg| *leg != EXTENSIONS) {
            passed.extend(suite.together(plan, leg, &target)?.into_iter().map(|scenario| (leg.clone(), scenario)));
        }
    }
    let mut runs = Vec::new();
    for (i, (leg, scenario)) in todo.iter().enumerate() {
        report::detail(&format!("{}/{} {leg} {scenario}", i + 1, todo.len()));
        let judged = match passed.contains(&((*leg).clone(), (*scenario).clone())) {
            true => Judged::passed(),
            false => suite.one(plan, leg, scenario, &target)?,
        };
        let run = Run { leg: (*leg).clone(), scenario: (*scenario).clone(), judged };
        let word = match (run.judged.verdict, expected.excuse(plan.lang, &run)) {
            (Verdict::Passed, None) => "pass",
            (Verdict::Passed, Some(_)) => "STALE",
            (Verdict::NotExercised, Some(_)) => "none",
            (Verdict::Failed, Some(_)) => "xfail",
            (Verdict::NotExercised | Verdict::Failed, None) => "FAIL",
        };
        say(format!("{word:<5} {leg:<10} {scenario:<46} {}", run.judged.reason).trim_end().to_owned());
        runs.push(run);
    }
    drop(server);
    Ok(sum_up(plan, &expected, &required, &runs, &left_out))
}

fn sum_up(plan: &Plan, expected: &Expected, required: &[(String, String)], runs: &[Run], left_out: &[&str]) -> Outcome {
    let mut counts = Counts::default();
    let mut remarks = Vec::new();
    let (mut failing, mut parked) = (Vec::new(), Vec::new());
    for run in runs {
        match (run.judged.verdict, expected.excuse(plan.lang, run)) {
            (Verdict::Passed, None) => counts.passed += 1,
            (Verdict::Passed, Some(_)) => {}
            (Verdict::NotExercised, Some(reason)) => parked.push(reason),
            (Verdict::Failed, Some(reason)) => failing.push(reason),
            (Verdict::NotExercised | Verdict::Failed, None) => {
                counts.failed += 1;
                remarks.push(format!("failed: {} {}: {}", run.leg, run.scenario, run.judged.reason));
            }
        }
    }
    counts.skipped += parked.len() + failing.len() + left_out.len();
    remarks.extend(grouped("not exercised by the suite", &parked));
    remarks.extend(grouped("expected to fail", &failing));
    remarks.extend(grouped("expected to fail, not run", left_out));
    let missing = required::missing(required, runs);
    counts.failed += missing.len();
    remarks.extend(missing.iter().map(|one| format!("failed: {one}: required, but it did not run")));
    let mut stale = expected.stale(plan.lang, runs);
    if plan.filter.is_none() && !plan.skip_expected {
        stale.extend(expected.unknown(plan.lang, &plan.legs, runs));
    }
    if plan.legs.iter().any(|leg| leg == EXTENSIONS) {
        stale.extend(expected.unknown_unexercised(|scenario| plan.wants(scenario), runs));
    }
    counts.failed += stale.len();
    remarks.extend(stale.iter().map(|s| format!("stale entry in {}: {s}", plan.list())));
    Outcome { counts, remarks }
}

/// One line per reason.
fn grouped(what: &str, reasons: &[&str]) -> Vec<String> {
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for reason in reasons {
        match groups.iter_mut().find(|(r, _)| r == reason) {
            Some((_, n)) => *n += 1,
            None => groups.push((reason, 1)),
        }
    }
    groups.iter().map(|(reason, n)| format!("{what} ({n}): {reason}")).collect()
}

/// Starts a launcher of the fixed contract on a free port.
pub(crate) fn serve(program: &std::path::Path, extended: bool) -> Result<(Background, String)> {
    let mut command = tool::command(program);
    command.args(["--http", "127.0.0.1:0"]);
    if extended {
        // Extensions are off by default.
        command.env("EVERYTHING_TASKS", "600");
    }
    Background::start(command, Duration::from_secs(60), |line| line.strip_prefix("ready ").map(str::to_owned))
}

fn loopback() -> Result<PathBuf> {
    let path = place::target("conformance/loopback.cjs");
    std::fs::create_dir_all(place::target("conformance"))?;
    std::fs::write(&path, include_str!("conformance/loopback.cjs"))?;
    Ok(path)
}

struct Suite {
    node: PathBuf,
    entry: PathBuf,
    loopback: PathBuf,
}

impl Suite {
    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = tool::command(&self.node);
        command.arg("--require").arg(&self.loopback).arg(&self.entry).args(args);
        command
    }

    fn list(&self, role: Role) -> Result<Vec<(String, Vec<String>)>> {
        let side = format!("--{}", role.name());
        let text = tool::ask(self.command(&["list", &side])).context("the suite does not list its scenarios")?;
        let all = parse_list(&text, role);
        if all.is_empty() {
            bail!("the suite lists no {} scenario", role.name());
        }
        Ok(all)
    }

    /// The scenarios that the suite requires at this revision: a set that it does not change any more.
    fn set(&self, role: Role, leg: &str) -> Result<Vec<String>> {
        let text = tool::ask(self.command(&["list", "--requirements", leg]));
        let text = text.with_context(|| format!("the suite does not list what it requires at {leg}"))?;
        Ok(section(&text, role).map(str::to_owned).collect())
    }

    /// Runs the scenarios of a leg in one process; those that passed.
    fn together(&self, plan: &Plan, leg: &str, target: &str) -> Result<Vec<String>> {
        let dir = place::target("conformance/results").join(format!("{}-{}/{leg}/all", plan.lang, plan.role.name()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)?;
        let notes = dir.join("notes");
        std::fs::create_dir_all(&notes)?;
        let target = match plan.role {
            Role::Server => target.to_owned(),
            // The suite's own output does not say which client ended badly.
            Role::Client => {
                let script = place::target("conformance/noted.sh");
                std::fs::write(&script, include_str!("conformance/noted.sh"))?;
                format!("sh {} {} {target} {}", script.display(), notes.display(), SOFT.as_secs())
            }
        };
        let mut command = self.command(&[plan.role.name(), "--suite", "all", "--spec-version", leg]);
        command.arg("-o").arg(&dir).arg("--timeout").arg(SOFT_TOGETHER.as_millis().to_string());
        command.args([plan.role.target(), &target]);
        let done = process::run_with(command, HARD_TOGETHER, Some(&dir.join("output.log")), |_| {})?;
        Ok(judge::passed(&dir, &done, plan.role, leg))
    }

    fn one(&self, plan: &Plan, leg: &str, scenario: &str, target: &str) -> Result<Judged> {
        let name = format!("{}-{}/{leg}/{}", plan.lang, plan.role.name(), scenario.replace('/', "_"));
        let dir = place::target("conformance/results").join(&name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)?;
        let mut command = self.command(&[plan.role.name(), "--scenario", scenario]);
        command.arg("-o").arg(&dir).arg("--timeout").arg(SOFT.as_millis().to_string());
        command.args([plan.role.target(), target]);
        if leg != EXTENSIONS {
            command.args(["--spec-version", leg, "--force"]);
        }
        let done = process::run_with(command, HARD, Some(&dir.join("output.log")), |_| {})?;
        Ok(judge(&dir, &done, plan.role, leg))
    }
}

/// Returns the lines `  - …` below the heading of the wanted side.
fn section(text: &str, role: Role) -> impl Iterator<Item = &str> {
    let mut on = false;
    text.lines().filter_map(move |line| {
        if line.contains(" scenarios (") {
            on = line.to_lowercase().starts_with(role.name());
        } else if !line.starts_with(' ') && !line.is_empty() {
            on = false;
        }
        line.strip_prefix("  - ").filter(|_| on)
    })
}

/// `name [revision,revision]` in each line.
fn parse_list(text: &str, role: Role) -> Vec<(String, Vec<String>)> {
    let named = section(text, role).filter_map(|line| line.split_once(" ["));
    named
        .map(|(name, rest)| {
            let tags = rest.trim_end().trim_end_matches(']').split(',');
            let legs = tags.map(|t| if t == "extension" { EXTENSIONS.to_owned() } else { t.to_owned() });
            (name.to_owned(), legs.collect())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listing_is_read_by_side() {
        let text = "Server scenarios (test against a server):\n  - ping [2025-06-18,2025-11-25]\n  - tasks-lifecycle \
                    [extension]\n\nClient scenarios (test against a client):\n  - initialize [2025-11-25]\n";
        let server = parse_list(text, Role::Server);
        assert_eq!(server[0], ("ping".to_owned(), vec!["2025-06-18".to_owned(), "2025-11-25".to_owned()]));
        assert_eq!(server[1].1, [EXTENSIONS]);
        assert_eq!(parse_list(text, Role::Client), [("initialize".to_owned(), vec!["2025-11-25".to_owned()])]);
    }

    #[test]
    fn what_is_left_out_counts_as_skipped_with_its_reason() {
        let legs = vec!["2025-11-25".to_owned()];
        let plan = Plan { lang: Lang::Node, role: Role::Client, legs, filter: None, skip_expected: true };
        let outcome = sum_up(&plan, &Expected::default(), &[], &[], &["later", "never", "later"]);
        assert_eq!(outcome.counts, Counts::new(0, 0, 3));
        assert_eq!(outcome.remarks, ["expected to fail, not run (2): later", "expected to fail, not run (1): never"]);
    }

    #[test]
    fn a_required_set_ends_where_what_is_not_scored_begins() {
        let text = "Required for 2026-07-28 (69 scenarios, frozen; run at the 2026-07-28 wire):\n\nServer scenarios \
                    (test against a server):\n  - caching\n\nClient scenarios (test against a client):\n  - \
                    tools_call\n  - request-metadata\n\nRun and reported, but never scored:\n  extension (1):\n    - \
                    auth/dpop [client]\n  - another\n";
        assert_eq!(section(text, Role::Server).collect::<Vec<_>>(), ["caching"]);
        assert_eq!(section(text, Role::Client).collect::<Vec<_>>(), ["tools_call", "request-metadata"]);
    }

    #[test]
    fn what_is_not_exercised_or_does_not_run_fails() {
        let legs = vec![EXTENSIONS.to_owned()];
        let plan = Plan { lang: Lang::Rust, role: Role::Server, legs, filter: None, skip_expected: false };
        let run = |scenario: &str, verdict| Run {
            leg: EXTENSIONS.to_owned(),
            scenario: scenario.to_owned(),
            judged: Judged { verdict, reason: "no check was exercised".to_owned() },
        };
        let runs = [run("tasks-lifecycle", Verdict::NotExercised), run("tasks-wire-fields", Verdict::Passed)];
        let required = ["tasks-lifecycle", "tasks-mrtr-input"].map(|name| (EXTENSIONS.to_owned(), name.to_owned()));
        let outcome = sum_up(&plan, &Expected::default(), &required, &runs, &[]);
        assert_eq!(outcome.counts, Counts::new(1, 2, 0));
        assert_eq!(
            outcome.remarks,
            [
                "failed: ext tasks-lifecycle: no check was exercised",
                "failed: ext tasks-mrtr-input: required, but it did not run"
            ]
        );
    }

    #[test]
    fn the_lists_require_the_sets_of_the_suite_and_the_extensions_there_are() {
        let all = [Role::Server, Role::Client].map(|role| Expected::read(role).expect("a good list").required);
        let sums = all.each_ref().map(|r| (r.sets.values().sum::<usize>(), r.extensions.len()));
        assert_eq!(sums, [(30 + 37, 9), (18 + 32, 6)]);
        assert!(all.iter().flat_map(|r| r.sets.keys()).all(|leg| REVISIONS.contains(&leg.as_str())));
    }
}
