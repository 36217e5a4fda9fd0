//! `cargo xtask test`: every test of every language, and one line at the end.

mod gaps;
mod parse;
mod steps;

use crate::conformance::{self, Plan, Role};
use crate::place::{self, Lang};
use crate::report::{self, Counts};
use crate::setup::{self, State};
use crate::{demo, guides, hostile, interop, process, proxies, soak, tidy, tool, wild, workflows};
use anyhow::Result;
use parse::Read;
pub(crate) use parse::{Reader, read};
use std::collections::VecDeque;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use steps::Step;
pub(crate) use steps::node_tests;

/// Lines of a failed step that are shown; all of them are in its log.
const SHOWN: usize = 30;

/// Parts of the suite's extensions that are run: scenarios whose names contain this.
const EXTENDED: [(Role, &str); 2] = [(Role::Server, "tasks-"), (Role::Client, "auth/")];

/// Selection of the tests.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// rust, python, node, swift; all of them by default
    langs: Vec<String>,
    /// Only steps whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Check the code for all other platforms, and the packages' layers for Windows
    #[arg(long)]
    platforms: bool,
    /// Run everything, or what answers within minutes once all is built
    #[arg(long, value_enum, default_value_t)]
    lane: Lane,
}

/// Part of the tests.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lane {
    /// Every step
    #[default]
    All,
    /// All but the longest loads, of which a shorter one or another language has the same: what is run before a merge
    Merge,
    /// Formatters, tidy, the core, the packages' own tests, and the contract on Rust
    Fast,
}

/// Steps of the fast lane, by the beginning of their names.
const FAST: [&str; 25] = [
    "tree tidy",
    "tree checkers",
    "rust format",
    "rust clippy",
    "rust tests compiled",
    "rust cargo test",
    "rust contract attacks",
    "rust contract bad-input",
    "rust contract cases",
    "rust contract cuts",
    "rust contract transcripts",
    "contract coverage",
    "python format",
    "python mypy",
    "python package",
    "python pytest",
    "python ruff",
    "node biome",
    "node package",
    "node test",
    "node types",
    "swift format",
    "swift generated",
    "swift set-up",
    "swift test",
];

/// Steps that only the whole has. Leaks of the hosts are looked for by their soaks as well; many processes, the store of
/// documents below them and the command are the engine's, which Rust and one host show.
const LONG: [&str; 8] = [
    "node command",
    "node many processes",
    "swift many processes",
    "python contract leaks",
    "node contract leaks",
    "swift contract leaks",
    "python many processes: own store",
    "python many processes: PostgreSQL",
];

/// Steps for which nothing has to be built first.
const UNBUILT: [&str; 5] =
    ["tree tidy", "rust format", "rust clippy", "rust tests compiled", "rust no runtime without features"];

/// Results so far.
struct Session {
    only: Option<String>,
    lane: Lane,
    counts: Counts,
    skips: Vec<String>,
    failures: Vec<String>,
}

/// Runs the tests; true if none failed.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let langs = Lang::list(&options.langs)?;
    let mut session = Session {
        only: options.only.clone(),
        lane: options.lane,
        counts: Counts::default(),
        skips: Vec::new(),
        failures: Vec::new(),
    };

    session.call("tree tidy", || {
        let (counts, failures) = tidy::run()?;
        Ok(Read { counts, failures, skips: Vec::new() })
    });
    if session.is_unbuilt() {
        steps::compiled(Lang::Rust).into_iter().chain(steps::unbuilt()).for_each(|step| session.step(step));
        return Ok(session.end());
    }
    // An error is no end: the steps that need them try again, and say it.
    let official = options.lane != Lane::Fast;
    let suites = thread::spawn(move || {
        drop(setup::checkers());
        if official {
            drop(setup::conformance());
        }
    });
    let (mut made, rest) = setup::begin(&langs);
    drop(suites.join());
    // Swift's compiler uses one core most of the time, and others' packages come from a network.
    let with = Beside {
        swift_tests: session.wants("swift test"),
        peers: session.wants("tree interop peers"),
        wild: session.wants("all wild"),
    };
    let beside = thread::spawn(move || with.run(rest));
    for lang in &langs {
        if made.why_not(*lang).is_none() || *lang == Lang::Swift {
            steps::compiled(*lang).into_iter().for_each(|step| session.step(step));
        }
    }
    match beside.join() {
        Ok(swift) => swift.into_iter().for_each(|(lang, state)| made.add(lang, state)),
        Err(_) => made.add(Lang::Swift, State::Failed("its set-up panicked".into())),
    }
    let mut ready = Vec::new();
    for lang in &langs {
        match made.state(*lang) {
            Some(State::Ready) => ready.push(*lang),
            Some(State::Skipped(why)) => session.add(&format!("{lang} everything"), &Read::skipped(why), None),
            Some(State::Failed(why)) => session.add(&format!("{lang} set-up"), &Read::failed(why), None),
            None => {}
        }
    }
    if ready.contains(&Lang::Python) || ready.contains(&Lang::Node) {
        session
            .call("tree checkers", || setup::checkers().map(|()| Read { counts: Counts::of(true), ..Read::default() }));
    }
    let own = |lang: &Lang| steps::of(*lang, options.lane).into_iter().map(job);
    // Compiled with what all the others leave, so that nothing waits for it.
    let beside =
        ready.contains(&Lang::Rust).then(|| windows(options.platforms)).filter(|job| session.starts(&job.name));
    let beside = beside.map(|job| thread::spawn(job.what));
    // Each waits for one process most of the time.
    let part = |one: fn(&Lang) -> bool| ready.iter().filter(|lang| one(lang)).flat_map(own).collect::<Vec<Job>>();
    let shared = steps::shared().into_iter().map(job).chain([checked_workflows()]);
    let others = part(|lang| matches!(lang, Lang::Node | Lang::Swift));
    session.in_lanes(vec![
        part(|lang| *lang == Lang::Rust),
        part(|lang| *lang == Lang::Python),
        shared.chain(others).collect(),
    ]);
    let mut all = Vec::new();
    let proxied = |lang: &Lang| ["stateless", "guides"].map(|what| format!("{lang} contract {what}"));
    if ready.iter().flat_map(proxied).any(|name| session.wants(&name)) {
        setup::nginx();
    }
    if ready.iter().any(|lang| session.wants(&format!("{lang} contract guides"))) {
        setup::keyring();
    }
    if !ready.is_empty() {
        let mut missing = false;
        session.call("tree interop peers", || {
            let peers = setup::peers();
            missing = peers.is_err();
            peers.map(|_| Read { counts: Counts::of(true), ..Read::default() })
        });
        if !missing {
            all.push(interop(ready.clone()));
        }
        all.push(wild(ready.clone()));
        if ready.contains(&Lang::Rust) {
            // The command and the contract are Rust's.
            all.push(job(steps::cassettes(&ready)));
            // The others have the same network: `cargo xtask proxies` runs all of them.
            all.push(through_proxies(Lang::Rust));
        }
    }
    if ready.contains(&Lang::Rust) && options.platforms {
        all.push(platforms());
    }
    // They wait for stores, streams and leases most of the time.
    let parts = ["", ": own store", ": PostgreSQL", ": suites", ": chaos"];
    let names = |lang: &Lang| parts.map(|end| format!("{lang} many processes{end}"));
    let many = ready.iter().filter(|lang| names(lang).iter().any(|name| session.wants(name)));
    all.extend(many.flat_map(|lang| steps::many(*lang)).map(job));
    all.extend(ready.iter().enumerate().flat_map(|(n, lang)| jobs(*lang, n == 0)));
    session.side_by_side(all);
    if let Some(windows) = beside {
        session.finished(&windows.join().unwrap_or_else(|_| panicked("windows smoke")));
    }
    if ready.contains(&Lang::Rust) {
        // Its figures are of a machine that does nothing else.
        session.side_by_side(vec![hostile(Lang::Rust)]);
        // A heap that finds its size late on a busy machine has the same load once more.
        let (node, others): (Vec<Lang>, Vec<Lang>) = ready.iter().partition(|lang| **lang == Lang::Node);
        session.in_lanes([node, others].map(|langs| langs.into_iter().map(soak).collect()).into());
    }
    Ok(session.end())
}

/// Work beside the compilation of Rust's checks.
struct Beside {
    swift_tests: bool,
    peers: bool,
    wild: bool,
}

impl Beside {
    /// An error is no end: the steps that need it try again, and say it.
    fn run(self, rest: setup::Rest) -> Option<(Lang, State)> {
        let swift = rest.end();
        if self.swift_tests && matches!(swift, Some((_, State::Ready))) {
            drop(setup::swift_tests());
        }
        if self.peers {
            drop(setup::peers());
        }
        if self.wild {
            drop(wild::prepare());
        }
        swift
    }
}

/// The workflows of the repository, and what their steps do.
fn checked_workflows() -> Job {
    let name = "tree workflows".to_owned();
    let what = move || {
        let workflows::Outcome { counts, failures, skips } = workflows::run()?;
        Ok(Read { counts, failures, skips })
    };
    Job { name: name.clone(), what: Box::new(move || run_call(&name, what)) }
}

/// Ours against the official SDKs: the longest of all, so it starts first.
fn interop(langs: Vec<Lang>) -> Job {
    let name = "all interop".to_owned();
    let what = move || {
        let outcome = interop::run(&langs)?;
        Ok(Read { counts: outcome.counts, failures: outcome.failures, skips: outcome.skips })
    };
    Job { name: name.clone(), what: Box::new(move || run_call(&name, what)) }
}

/// Ours against the programs of others that tell most.
fn wild(langs: Vec<Lang>) -> Job {
    let name = "all wild".to_owned();
    let what = move || {
        let (counts, failures, skips) = wild::core(&langs)?;
        Ok(Read { counts, failures, skips })
    };
    Job { name: name.clone(), what: Box::new(move || run_call(&name, what)) }
}

/// Our client of a language through proxies that others wrote.
fn through_proxies(lang: Lang) -> Job {
    let name = format!("{lang} proxies");
    let what = move || {
        let (counts, failures, skips) = proxies::run(lang)?;
        Ok(Read { counts, failures, skips })
    };
    Job { name: name.clone(), what: Box::new(move || run_call(&name, what)) }
}

/// Hostile input that tells most, and what it costs.
fn hostile(lang: Lang) -> Job {
    let name = format!("{lang} hostile");
    let what = move || {
        let (counts, failures) = hostile::core(lang)?;
        Ok(Read { counts, failures, skips: Vec::new() })
    };
    Job { name: name.clone(), what: Box::new(move || run_call(&name, what)) }
}

/// A short load, and what is left of it.
fn soak(lang: Lang) -> Job {
    let name = format!("{lang} soak");
    let what = move || {
        let (counts, failures) = soak::core(lang)?;
        Ok(Read { counts, failures, skips: Vec::new() })
    };
    Job { name: name.clone(), what: Box::new(move || run_call(&name, what)) }
}

/// Checks for other platforms, each for some minutes.
fn platforms() -> Job {
    let name = "rust for other platforms".to_owned();
    let what = move || match setup::platforms()? {
        Some(why) => Ok(Read::skipped(why)),
        None => Ok(in_turn(steps::platforms(), false)),
    };
    Job { name: name.clone(), what: Box::new(move || run_call(&name, what)) }
}

/// Steps one after the other, all of them or until one fails.
fn in_turn(steps: impl IntoIterator<Item = Step>, needed: bool) -> Read {
    let mut all = Read::default();
    for step in steps {
        let one = run_step(step);
        all.counts += one.read.counts;
        all.skips.extend(one.read.skips);
        all.failures.extend(one.read.failures.into_iter().map(|line| format!("{}: {line}", one.name)));
        if needed && all.counts.failed > 0 {
            break;
        }
    }
    all
}

/// Windows programs, run by wine.
fn windows(check: bool) -> Job {
    let name = "windows smoke".to_owned();
    let what = move || {
        let made = match setup::windows()? {
            Ok(made) => made,
            Err(why) => return Ok(Read::skipped(why)),
        };
        let wine = match made.wine()? {
            Ok(wine) => wine,
            Err(why) => return Ok(Read::skipped(why)),
        };
        Ok(in_turn(steps::windows(&made, &wine, check)?, true))
    };
    Job { name: name.clone(), what: Box::new(move || run_call(&name, what)) }
}

/// Returns the jobs that test a language's programs from outside, and do not build anything. Only the first language
/// runs the scenarios that are expected to fail in all of them: that takes a minute, and shows which entries are stale.
fn jobs(lang: Lang, first: bool) -> Vec<Job> {
    let steps = steps::commands(lang).into_iter().chain(steps::contract(lang)).map(job);
    let name = format!("{lang} quickstart");
    let quickstart = Job { name: name.clone(), what: Box::new(move || run_call(&name, || Ok(quickstart(lang)))) };
    let name = format!("{lang} guides");
    let examples = Job { name: name.clone(), what: Box::new(move || run_call(&name, || guides_of(lang))) };
    let suites = [Role::Server, Role::Client].map(|role| {
        let name = format!("{lang} conformance {}", role.name());
        Job { name: name.clone(), what: Box::new(move || run_call(&name, || suite(lang, role, !first))) }
    });
    let extensions = EXTENDED.map(|(role, filter)| {
        let name = format!("{lang} conformance extensions {}", role.name());
        Job { name: name.clone(), what: Box::new(move || run_call(&name, || suite_of_extensions(lang, role, filter))) }
    });
    [quickstart, examples].into_iter().chain(steps).chain(suites).chain(extensions).collect()
}

/// A step that may run beside others.
struct Job {
    name: String,
    what: Box<dyn FnOnce() -> Finished + Send>,
}

fn job(step: Step) -> Job {
    Job { name: step.name.clone(), what: Box::new(move || run_step(step)) }
}

/// A step that ran.
struct Finished {
    name: String,
    read: Read,
    took: Duration,
    /// File with all of its output, if it has any.
    log: String,
}

fn run_step(step: Step) -> Finished {
    report::step(&step.name);
    let started = Instant::now();
    let log = place::log(&format!("test {}", step.name));
    let (read, log) = match step.what {
        Ok((command, limit, reader)) => match process::run(command, limit, Some(&log)) {
            Ok(done) => {
                let mut read = parse::read(reader, &done);
                if reader == parse::Reader::Status && !done.ok() {
                    let said = done.text();
                    let lines: Vec<&str> = said.lines().filter(|l| !l.trim().is_empty()).collect();
                    let tail = lines[lines.len().saturating_sub(SHOWN)..].iter().map(|l| (*l).to_owned());
                    read.failures = tail.chain(std::iter::once(done.why())).collect();
                }
                (read, place::short(&log))
            }
            Err(error) => (Read::failed(format!("{error:#}")), String::new()),
        },
        Err(why) => (Read::skipped(why), String::new()),
    };
    Finished { name: step.name, read, took: started.elapsed(), log }
}

fn run_call(name: &str, what: impl FnOnce() -> Result<Read>) -> Finished {
    report::step(name);
    let started = Instant::now();
    let read = what().unwrap_or_else(|error| Read::failed(format!("{error:#}")));
    Finished { name: name.to_owned(), read, took: started.elapsed(), log: String::new() }
}

fn panicked(name: &str) -> Finished {
    let read = Read::failed("it panicked".to_owned());
    Finished { name: name.to_owned(), read, took: Duration::ZERO, log: String::new() }
}

fn quickstart(lang: Lang) -> Read {
    let (calls, failures) = demo::quickstart(lang);
    let failed = failures.len();
    Read { counts: Counts::new(calls - failed, failed, 0), failures, skips: Vec::new() }
}

fn guides_of(lang: Lang) -> Result<Read> {
    let (counts, failures) = guides::run(lang)?;
    Ok(Read { counts, failures, skips: Vec::new() })
}

/// Runs the official suite's scenarios for the extensions.
fn suite_of_extensions(lang: Lang, role: Role, filter: &str) -> Result<Read> {
    let (legs, filter) = (vec![conformance::EXTENSIONS.to_owned()], Some(filter.to_owned()));
    read_suite(&Plan { lang, role, legs, filter, skip_expected: false })
}

/// The official suite on all its dated legs.
fn suite(lang: Lang, role: Role, skip_expected: bool) -> Result<Read> {
    let legs = conformance::REVISIONS.map(str::to_owned).to_vec();
    read_suite(&Plan { lang, role, legs, filter: None, skip_expected })
}

fn read_suite(plan: &Plan) -> Result<Read> {
    let outcome = conformance::run(plan, &mut |_| {})?;
    let (failures, skips) =
        outcome.remarks.into_iter().partition(|r| r.starts_with("failed:") || r.starts_with("stale"));
    Ok(Read { counts: outcome.counts, failures, skips })
}

impl Session {
    fn wants(&self, name: &str) -> bool {
        let in_lane = match self.lane {
            Lane::All => true,
            Lane::Merge => !LONG.contains(&name),
            Lane::Fast => FAST.iter().any(|step| name.starts_with(step)),
        };
        in_lane && self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// Returns true if the steps that were asked for work on sources alone.
    fn is_unbuilt(&self) -> bool {
        self.only.as_deref().is_some_and(|only| UNBUILT.contains(&only))
    }

    /// Returns true if a step is to run now; one that is left out is counted.
    fn starts(&mut self, name: &str) -> bool {
        if !self.wants(name) {
            return false;
        }
        let left_out = gaps::left_out(name);
        if let Some(why) = &left_out {
            self.add(name, &Read::skipped(why.clone()), None);
        }
        left_out.is_none()
    }

    fn step(&mut self, step: Step) {
        if self.starts(&step.name) {
            let finished = run_step(step);
            self.finished(&finished);
        }
    }

    fn call(&mut self, name: &str, what: impl FnOnce() -> Result<Read>) {
        if self.starts(name) {
            let finished = run_call(name, what);
            self.finished(&finished);
        }
    }

    /// Runs jobs one more at a time than there are cores, up to four: they wait for processes most of the time.
    fn side_by_side(&mut self, jobs: Vec<Job>) {
        let workers = thread::available_parallelism().map_or(1, |cores| cores.get() + 1).min(4);
        self.run(jobs.into_iter().map(|job| vec![job]).collect(), workers);
    }

    /// Runs lists of jobs beside each other, the jobs of a list one after the other.
    fn in_lanes(&mut self, lanes: Vec<Vec<Job>>) {
        let workers = lanes.len();
        self.run(lanes, workers);
    }

    fn run(&mut self, lanes: Vec<Vec<Job>>, workers: usize) {
        let mut wanted = VecDeque::new();
        for lane in lanes {
            wanted.push_back(lane.into_iter().filter(|job| self.starts(&job.name)).collect::<Vec<_>>());
        }
        let queue = Mutex::new(wanted);
        let (sender, results) = channel();
        thread::scope(|scope| {
            for sender in std::iter::repeat_n(sender, workers) {
                let queue = &queue;
                scope.spawn(move || {
                    loop {
                        let lane = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(lane) = lane else { return };
                        for job in lane {
                            if sender.send((job.what)()).is_err() {
                                return;
                            }
                        }
                    }
                });
            }
            results.iter().for_each(|finished| self.finished(&finished));
        });
    }

    fn finished(&mut self, finished: &Finished) {
        self.add(&finished.name, &finished.read, Some((finished.took, &finished.log)));
    }

    fn add(&mut self, name: &str, read: &Read, ran: Option<(Duration, &str)>) {
        if read.counts.failed > 0
            && let Some(reason) = gaps::reason(name)
        {
            return self.add_gap(name, read, &reason, ran);
        }
        self.counts += read.counts;
        self.skips.extend(read.skips.iter().map(|why| format!("{name}: {why}")));
        // A line may stand for several, but a runner that counts skips and names none still owes one.
        if read.counts.skipped > 0 && read.skips.is_empty() {
            self.skips.push(format!("{name}: {} skipped without a reason", read.counts.skipped));
        }
        let mark = if read.counts.failed > 0 { "FAIL" } else { "ok" };
        let took = ran.map_or(String::new(), |(took, _)| format!("  {:.0} s", took.as_secs_f64()));
        report::line(format!("{mark:<4} {name:<34} {}{took}", read.counts));
        if read.counts.failed > 0 {
            for line in read.failures.iter().take(SHOWN) {
                report::line(format!("       {line}"));
            }
            if let Some((_, log)) = ran.filter(|(_, log)| !log.is_empty()) {
                report::line(format!("       all of it: {log}"));
            }
            self.failures.push(format!("{name} ({})", read.counts.failed));
        }
    }

    /// A step that is known not to work yet: its failures are shown, and count as skipped.
    fn add_gap(&mut self, name: &str, read: &Read, reason: &str, ran: Option<(Duration, &str)>) {
        let mut counts = read.counts;
        counts.skipped += std::mem::take(&mut counts.failed);
        self.counts += counts;
        self.skips.extend(read.skips.iter().map(|why| format!("{name}: {why}")));
        self.skips.push(format!("{name}: {} not working yet: {reason}", read.counts.failed));
        let took = ran.map_or(String::new(), |(took, _)| format!("  {:.0} s", took.as_secs_f64()));
        report::line(format!("gap  {name:<34} {}{took}", read.counts));
        for line in read.failures.iter().take(SHOWN) {
            report::line(format!("       {line}"));
        }
    }

    fn end(self) -> bool {
        report::clear();
        report::line("");
        for why in &self.skips {
            report::line(format!("skipped: {why}"));
        }
        for name in &self.failures {
            report::line(format!("failed: {name}"));
        }
        report::line(self.counts.to_string());
        self.counts.failed == 0 && self.counts.passed > 0
    }
}

/// A command of the list that this machine has, or why the step is skipped.
fn present(program: &std::path::Path, why: &str) -> Result<(), String> {
    if program.is_file() { Ok(()) } else { Err(why.to_owned()) }
}

/// Returns true if `cargo` has this subcommand.
fn cargo_has(subcommand: &str) -> bool {
    process::which(&format!("cargo-{subcommand}")).is_some()
        || tool::ask(tool::cargo(&[subcommand, "--version"])).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_required_extension_is_run() {
        for (role, filter) in EXTENDED {
            let all = conformance::required_extensions(role).expect("a good list");
            assert!(!all.is_empty() && all.iter().all(|scenario| scenario.contains(filter)), "{role:?}: {all:?}");
        }
    }
}
