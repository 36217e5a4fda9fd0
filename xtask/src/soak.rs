//! `cargo xtask soak`: a long mixed load for our programs, and what is left of it, as `tests/soak/run.py` measures it.

use crate::place::{self, Lang};
use crate::report::{self, Counts};
use crate::{process, setup, tool};
use anyhow::Result;
use serde::Deserialize;
use std::time::Duration;

/// A million calls to the slowest of our programs, and all waits.
const LIMIT: Duration = Duration::from_secs(4 * 60 * 60);
/// The quick load: three programs, each with a warm-up and two waits of a minute at most.
const QUICK: Duration = Duration::from_secs(10 * 60);

/// Length of the load.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these languages of ours
    #[arg(long = "lang")]
    langs: Vec<String>,
    /// Seconds of load for each language; 45 by default
    #[arg(long)]
    seconds: Option<f64>,
    /// Calls for each language: the load ends with the last of them
    #[arg(long)]
    calls: Option<u64>,
    /// A million calls for each language, for an hour at most
    #[arg(long)]
    hour: bool,
    /// The same one makes the same calls; 1 by default
    #[arg(long)]
    seed: Option<u64>,
}

/// A program that was under load.
#[derive(Deserialize)]
struct Program {
    side: String,
    transport: String,
    ok: bool,
    why: String,
    /// Calls that had no answer, or not the right one.
    #[serde(default)]
    failures: Vec<String>,
}

/// The task. False when something is left of a load.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let langs = Lang::list(&options.langs)?;
    // The clients call Rust's server.
    let mut needed = langs.clone();
    if !needed.contains(&Lang::Rust) {
        needed.insert(0, Lang::Rust);
    }
    tool::need(&needed)?;
    setup::languages(&needed).all_ready()?;
    let mut good = true;
    for lang in langs {
        report::step(format!("{lang} under load"));
        let (done, programs) = play(lang, &options.words(), LIMIT)?;
        report::clear();
        for line in done.stdout.lines() {
            report::line(line);
        }
        for failure in programs.iter().flat_map(|program| &program.failures) {
            report::line(format!("failed: {lang}: {failure}"));
        }
        good &= done.ok();
    }
    Ok(good)
}

/// Seconds of a short load: three minutes for all languages. V8 needs a longer one before its heap stays as it is.
fn short(lang: Lang) -> u32 {
    if lang == Lang::Node { 90 } else { 30 }
}

/// A short load for a language, for `cargo xtask test`: the counts and failures.
pub(crate) fn core(lang: Lang) -> Result<(Counts, Vec<String>)> {
    let (_, programs) = play(lang, &["--seconds".to_owned(), short(lang).to_string()], QUICK)?;
    let mut counts = Counts::default();
    programs.iter().for_each(|program| counts += Counts::of(program.ok));
    Ok((counts, programs.iter().filter(|program| !program.ok).map(Program::line).collect()))
}

impl Options {
    /// The same for the script.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [format!("--{name}"), value]));
        };
        add("seconds", self.seconds.map(|seconds| seconds.to_string()));
        add("calls", self.calls.map(|calls| calls.to_string()));
        add("seed", self.seed.map(|seed| seed.to_string()));
        if self.hour {
            words.push("--hour".to_owned());
        }
        words
    }
}

impl Program {
    fn line(&self) -> String {
        let first = self.failures.first().map(|failure| format!(" ({failure})")).unwrap_or_default();
        format!("{} {}: {}{first}", self.side, self.transport, self.why)
    }
}

fn play(lang: Lang, words: &[String], limit: Duration) -> Result<(process::Done, Vec<Program>)> {
    std::fs::create_dir_all(place::target("soak"))?;
    let out = place::target("soak").join(format!("{lang}.jsonl"));
    let mut command = tool::command(tool::venv("python"));
    command.arg(place::root().join("tests/soak/run.py")).args(["--lang", lang.name(), "--out"]).arg(&out).args(words);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let log = place::log(&format!("soak {lang}"));
    let done = process::run(command, limit, Some(&log))?;
    let text = std::fs::read_to_string(&out).unwrap_or_default();
    let programs: Vec<Program> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let told = done.ok() || programs.iter().any(|program| !program.ok);
    anyhow::ensure!(told && !programs.is_empty(), "{} (all of it: {})", done.why(), place::short(&log));
    Ok((done, programs))
}
