//! `cargo xtask crowd`: many clients of our servers and one that floods them, as `tests/crowd/run.py` measures it.

use crate::place::{self, Lang};
use crate::{process, report, setup, tool};
use anyhow::Result;
use std::time::Duration;

/// Ten thousand sockets of each language, opened, called and flooded.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// Size of the crowd.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these languages of ours
    #[arg(long = "lang")]
    langs: Vec<String>,
    /// Clients, each with ten sockets; 1000 by default
    #[arg(long)]
    clients: Option<u32>,
    /// Seconds of quiet, and of the flood; 15 by default
    #[arg(long)]
    seconds: Option<f64>,
    /// Fail when the slowest hundredth of others' calls takes over three times as long under the flood
    #[arg(long)]
    strict: bool,
}

/// The task. False when a server could not be measured, and with `--strict` when a flood harms others.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let langs = Lang::list(&options.langs)?;
    tool::need(&langs)?;
    setup::languages(&langs).all_ready()?;
    std::fs::create_dir_all(place::target("crowd"))?;
    let mut good = true;
    for lang in langs {
        report::step(format!("{lang} and its crowd"));
        let mut command = tool::command(tool::venv("python"));
        command.arg(place::root().join("tests/crowd/run.py")).args(["--lang", lang.name(), "--out"]);
        command.arg(place::target("crowd").join(format!("{lang}.jsonl")));
        if let Some(clients) = options.clients {
            command.arg("--clients").arg(clients.to_string());
        }
        if let Some(seconds) = options.seconds {
            command.arg("--seconds").arg(seconds.to_string());
        }
        if options.strict {
            command.arg("--strict");
        }
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let log = place::log(&format!("crowd {lang}"));
        let done = process::run(command, LIMIT, Some(&log))?;
        report::clear();
        for line in done.stdout.lines() {
            report::line(line);
        }
        if !done.ok() {
            report::line(format!("failed: {lang}: {} (all of it: {})", done.why(), place::short(&log)));
        }
        good &= done.ok();
    }
    Ok(good)
}
