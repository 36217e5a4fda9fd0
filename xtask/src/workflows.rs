//! `cargo xtask workflows`: the files of `.github/workflows`, read by actionlint, and their steps, of which those run here
//! that `tests/workflows/steps.toml` says so of.

mod cases;
mod lint;
mod steps;

use crate::place;
use crate::report::{self, Counts};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;
use steps::Workflow;

/// The folder that GitHub reads.
const FOLDER: &str = ".github/workflows";

/// Steps to run.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Run those that compile, too
    #[arg(long)]
    all: bool,
    /// Only cases whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Say what would be run, and run nothing
    #[arg(long)]
    list: bool,
}

/// The result: counts, failures, and parts that were left out.
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    pub(crate) failures: Vec<String>,
    pub(crate) skips: Vec<String>,
}

/// Checks and runs, and says what failed.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let (files, list) = (workflows(&place::root().join(FOLDER))?, cases::list()?);
    if options.list {
        list.describe().iter().for_each(report::line);
        return Ok(true);
    }
    let outcome = all(&files, &list, options);
    outcome.skips.iter().for_each(|why| report::line(format!("skip {why}")));
    outcome.failures.iter().for_each(|what| report::line(format!("not ok {what}")));
    report::line(outcome.counts.to_string());
    Ok(outcome.counts.failed == 0)
}

/// The part of it that belongs to `cargo xtask test`.
pub(crate) fn run() -> Result<Outcome> {
    let options = Options { all: false, only: None, list: false };
    Ok(all(&workflows(&place::root().join(FOLDER))?, &cases::list()?, &options))
}

fn all(files: &BTreeMap<String, Workflow>, list: &cases::List, options: &Options) -> Outcome {
    let mut outcome = Outcome { counts: Counts::default(), failures: Vec::new(), skips: Vec::new() };
    if options.only.is_none() {
        match lint::actionlint(files.keys()) {
            Ok(linted) => {
                linted.said.into_iter().for_each(|lines| outcome.add(lines));
                outcome.counts += Counts::new(0, 0, linted.skips.len());
                outcome.skips.extend(linted.skips);
            }
            Err(error) => outcome.add(vec![format!("{error:#}")]),
        }
        outcome.add(lint::rules(files));
        outcome.add(list.missing(files));
    }
    match cases::run(files, list, options.all, options.only.as_deref()) {
        Ok(results) => results.into_iter().for_each(|failures| outcome.add(failures)),
        Err(error) => outcome.add(vec![format!("{error:#}")]),
    }
    outcome
}

impl Outcome {
    /// One thing that was looked at, and what is wrong with it.
    fn add(&mut self, failures: Vec<String>) {
        self.counts += Counts::of(failures.is_empty());
        self.failures.extend(failures);
    }
}

/// The workflows of a folder by their file names.
fn workflows(folder: &Path) -> Result<BTreeMap<String, Workflow>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {FOLDER}"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {FOLDER}/{name}"))?;
        found.insert(name.clone(), Workflow::read(&text).with_context(|| format!("{FOLDER}/{name}"))?);
    }
    Ok(found)
}
