//! `cargo xtask proxies`: our clients through proxies that others wrote, as `tests/proxies/run.py` plays it.

use crate::place::{self, Lang};
use crate::report::{self, Counts};
use crate::{process, setup, tool};
use anyhow::Result;
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// All cases of a language.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// Choice of cases.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only cases whose name contains one of these
    names: Vec<String>,
    /// Only these languages of ours
    #[arg(long = "lang")]
    langs: Vec<String>,
}

/// One thing that was tried; `ok` is none where the machine lacks what it needs.
#[derive(Deserialize)]
struct Case {
    case: String,
    ok: Option<bool>,
    note: String,
}

/// The task. False when a case fails.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let mut langs = Lang::list(&options.langs)?;
    if options.langs.is_empty() && !place::built("libtricorn_swift.a").exists() {
        langs.retain(|lang| *lang != Lang::Swift);
    }
    // The servers are Rust's.
    let mut needed = langs.clone();
    if !needed.contains(&Lang::Rust) {
        needed.insert(0, Lang::Rust);
    }
    tool::need(&needed)?;
    setup::languages(&needed).all_ready()?;
    // The authorization server is among them.
    if let Err(error) = setup::peers() {
        report::note(format!("nobody logs in: {error:#}"));
    }
    let there = setup::proxies()?;
    let mut counts = Counts::default();
    for lang in langs {
        report::step(format!("{lang} through proxies"));
        for case in play(&there, lang, &options.names)? {
            let (word, one) = case.judged();
            counts += one;
            report::line(format!("{word:<7} {lang:<6} {}", case.line()));
        }
    }
    report::clear();
    report::line(counts.to_string());
    Ok(counts.failed == 0 && !counts.is_empty())
}

/// All cases of a language, for `cargo xtask test`: the counts, failures and skips.
pub(crate) fn run(lang: Lang) -> Result<(Counts, Vec<String>, Vec<String>)> {
    let (mut counts, mut failures, mut skips) = (Counts::default(), Vec::new(), Vec::new());
    for case in play(&setup::proxies()?, lang, &[])? {
        counts += case.judged().1;
        match case.ok {
            Some(true) => {}
            Some(false) => failures.push(case.line()),
            None => skips.push(case.line()),
        }
    }
    Ok((counts, failures, skips))
}

impl Case {
    fn judged(&self) -> (&'static str, Counts) {
        match self.ok {
            Some(true) => ("ok", Counts::of(true)),
            Some(false) => ("FAIL", Counts::of(false)),
            None => ("skipped", Counts::new(0, 0, 1)),
        }
    }

    fn line(&self) -> String {
        if self.note.is_empty() { self.case.clone() } else { format!("{}: {}", self.case, self.note) }
    }
}

fn play(there: &setup::Proxies, lang: Lang, names: &[String]) -> Result<Vec<Case>> {
    let mut command = tool::command(&there.python);
    command.arg(place::root().join("tests/proxies/run.py")).arg(lang.name()).args(names);
    command.env("PROXIES", &there.debian).env("PYTHONDONTWRITEBYTECODE", "1");
    let log = place::log(&format!("proxies {lang}"));
    let done = process::run(command, LIMIT, Some(&log))?;
    read(&done, &log)
}

fn read(done: &process::Done, log: &Path) -> Result<Vec<Case>> {
    let lines = done.stdout.lines().filter(|line| line.starts_with('{'));
    let mut cases: Vec<Case> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
    if !done.ok() && cases.iter().all(|case| case.ok != Some(false)) {
        let note = format!("{} (all of it: {})", done.why(), place::short(log));
        cases.push(Case { case: "end".to_owned(), ok: Some(false), note });
    }
    Ok(cases)
}
