//! `cargo xtask test`: every test of every language, and one line at the end.

mod gaps;
mod parse;
mod steps;

use crate::conformance::{self, Plan, Role};
use crate::place::{self, Lang};
use crate::report::{self, Counts};
use crate::setup::{self, State};
use crate::{interop, process, tidy, tool};
use anyhow::Result;
use parse::Read;
use std::time::{Duration, Instant};
use steps::Step;

/// Lines of a failed step that are shown; all of them are in its log.
const SHOWN: usize = 30;

/// What to test.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// rust, python, node, swift; all of them by default
    langs: Vec<String>,
    /// Only steps whose name contains this
    #[arg(long)]
    only: Option<String>,
}

/// What happened so far.
struct Session {
    only: Option<String>,
    counts: Counts,
    skips: Vec<String>,
    failures: Vec<String>,
}

/// Whether nothing failed.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let langs = Lang::list(&options.langs)?;
    let whole = langs.len() == Lang::ALL.len();
    let mut session =
        Session { only: options.only.clone(), counts: Counts::default(), skips: Vec::new(), failures: Vec::new() };

    session.call("tree tidy", || {
        let (counts, failures) = tidy::run()?;
        Ok(Read { counts, failures, skips: Vec::new() })
    });
    let made = setup::languages(&langs);
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
    for lang in &ready {
        for step in steps::of(*lang) {
            session.step(step);
        }
    }
    for step in steps::shared() {
        session.step(step);
    }
    for lang in &ready {
        for step in steps::contract(*lang) {
            session.step(step);
        }
        for role in [Role::Server, Role::Client] {
            session.call(&format!("{lang} conformance {}", role.name()), || suite(*lang, role));
        }
    }
    if whole || !ready.is_empty() {
        session.call("all interop", || {
            let outcome = interop::run(&ready)?;
            Ok(Read { counts: outcome.counts, failures: outcome.failures, skips: Vec::new() })
        });
    }
    Ok(session.end())
}

/// The official suite on the newest legacy and the modern revision, without what is expected to fail.
fn suite(lang: Lang, role: Role) -> Result<Read> {
    let legs = ["2025-11-25", "2026-07-28"].map(str::to_owned).to_vec();
    let plan = Plan { lang, role, legs, filter: None, skip_expected: true };
    let outcome = conformance::run(&plan, &mut |_| {})?;
    let (failures, skips) =
        outcome.remarks.into_iter().partition(|r| r.starts_with("failed:") || r.starts_with("stale"));
    Ok(Read { counts: outcome.counts, failures, skips })
}

impl Session {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    fn step(&mut self, step: Step) {
        if !self.wants(&step.name) {
            return;
        }
        if let Some(why) = gaps::left_out(&step.name) {
            return self.add(&step.name, &Read::skipped(why), None);
        }
        report::step(&step.name);
        let started = Instant::now();
        let log = place::log(&format!("test {}", step.name));
        let read = match step.what {
            Ok((command, limit, reader)) => match process::run(command, limit, Some(&log)) {
                Ok(done) => {
                    let mut read = parse::read(reader, &done);
                    if reader == parse::Reader::Status && !done.ok() {
                        let said = done.text();
                        let lines: Vec<&str> = said.lines().filter(|l| !l.trim().is_empty()).collect();
                        let tail = lines[lines.len().saturating_sub(SHOWN)..].iter().map(|l| (*l).to_owned());
                        read.failures = tail.chain(std::iter::once(done.why())).collect();
                    }
                    read
                }
                Err(error) => Read::failed(format!("{error:#}")),
            },
            Err(why) => Read::skipped(why),
        };
        self.add(&step.name, &read, Some((started.elapsed(), &place::short(&log))));
    }

    fn call(&mut self, name: &str, what: impl FnOnce() -> Result<Read>) {
        if !self.wants(name) {
            return;
        }
        if let Some(why) = gaps::left_out(name) {
            return self.add(name, &Read::skipped(why), None);
        }
        report::step(name);
        let started = Instant::now();
        let read = what().unwrap_or_else(|error| Read::failed(format!("{error:#}")));
        self.add(name, &read, Some((started.elapsed(), "")));
    }

    fn add(&mut self, name: &str, read: &Read, ran: Option<(Duration, &str)>) {
        if read.counts.failed > 0
            && let Some(reason) = gaps::reason(name)
        {
            return self.add_gap(name, read, &reason, ran);
        }
        self.counts += read.counts;
        self.skips.extend(read.skips.iter().map(|why| format!("{name}: {why}")));
        // A runner that counts skips but names none still owes a line.
        for _ in read.skips.len()..read.counts.skipped.min(read.skips.len() + 1) {
            self.skips.push(format!("{name}: {} skipped without a reason", read.counts.skipped - read.skips.len()));
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

/// Whether `cargo` has this subcommand.
fn cargo_has(subcommand: &str) -> bool {
    process::which(&format!("cargo-{subcommand}")).is_some()
        || tool::ask(tool::cargo(&[subcommand, "--version"])).is_some()
}
