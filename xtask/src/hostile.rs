//! `cargo xtask hostile`: hostile input to our programs, and what it costs them, as `tests/hostile/run.py` measures it.

use crate::place::{self, Lang};
use crate::report::{self, Counts};
use crate::{process, setup, tool};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// All inputs of a language.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Choice of inputs.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only inputs whose name contains one of these
    names: Vec<String>,
    /// Only these languages of ours
    #[arg(long = "lang")]
    langs: Vec<String>,
    /// The quick ones that tell most
    #[arg(long)]
    core: bool,
    /// Write the page anew of what ran before, and run nothing
    #[arg(long)]
    page: bool,
}

/// The cost of one input.
#[derive(Clone, Deserialize)]
struct Row {
    name: String,
    #[serde(default)]
    side: String,
    #[serde(default)]
    transport: String,
    #[serde(default)]
    source: String,
    /// Bytes.
    #[serde(default)]
    sent: u64,
    /// Seconds.
    #[serde(default)]
    cpu: f64,
    /// Bytes above the level before.
    #[serde(default)]
    peak: u64,
    /// The victim answers afterwards.
    #[serde(default)]
    alive: bool,
    ok: bool,
    #[serde(default)]
    why: String,
}

/// The task. False when an input costs more than it may.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let langs = Lang::list(&options.langs)?;
    if options.page {
        return page(&langs).map(|()| true);
    }
    tool::need(&langs)?;
    setup::languages(&langs).all_ready()?;
    let mut counts = Counts::default();
    for lang in &langs {
        report::step(format!("{lang} and its hostile peers"));
        for row in play(*lang, &options.names, options.core)? {
            counts += Counts::of(row.ok);
            if !row.ok {
                report::line(format!("failed: {lang}: {}", row.line()));
            }
        }
    }
    report::clear();
    if options.names.is_empty() && options.langs.is_empty() && !options.core {
        page(&langs)?;
    }
    report::line(counts.to_string());
    Ok(counts.failed == 0 && !counts.is_empty())
}

/// The quick inputs to a language, for `cargo xtask test`: the counts and failures.
pub(crate) fn core(lang: Lang) -> Result<(Counts, Vec<String>)> {
    let rows = play(lang, &[], true)?;
    let mut counts = Counts::default();
    rows.iter().for_each(|row| counts += Counts::of(row.is_bounded()));
    Ok((counts, rows.iter().filter(|row| !row.is_bounded()).map(Row::line).collect()))
}

/// The most that an input may cost on an unknown machine, in seconds of CPU and in bytes. Without a bound each of
/// them costs ten times that.
const BOUNDED: (f64, u64) = (1.5, 160 << 20);

impl Row {
    fn is_bounded(&self) -> bool {
        let (cpu, peak) = BOUNDED;
        if self.side.is_empty() { self.ok } else { self.alive && self.cpu <= cpu && self.peak <= peak }
    }

    fn line(&self) -> String {
        format!("{}: {}", self.name, self.why)
    }

    fn cell(&self) -> String {
        let figures = format!("{:.2} s, {} MiB", self.cpu, self.peak >> 20);
        if self.ok { figures } else { format!("**{figures}**") }
    }
}

fn results(lang: Lang) -> PathBuf {
    place::target("hostile").join(format!("{lang}.jsonl"))
}

fn play(lang: Lang, names: &[String], core: bool) -> Result<Vec<Row>> {
    std::fs::create_dir_all(place::target("hostile"))?;
    let whole = names.is_empty() && !core;
    let out = if whole { results(lang) } else { place::target("hostile").join(format!("{lang}-some.jsonl")) };
    let mut command = tool::command(tool::venv("python"));
    command.arg(place::root().join("tests/hostile/run.py")).args(["--lang", lang.name(), "--out"]).arg(&out);
    for name in names {
        command.args(["--only", name]);
    }
    if core {
        command.arg("--core");
    }
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let log = place::log(&format!("hostile {lang}"));
    let done = process::run(command, LIMIT, Some(&log))?;
    let rows = read(&out).with_context(|| format!("{} (all of it: {})", done.why(), place::short(&log)))?;
    anyhow::ensure!(done.ok() || rows.iter().any(|row| !row.ok), "{} (all of it: {})", done.why(), place::short(&log));
    Ok(rows)
}

fn read(path: &std::path::Path) -> Result<Vec<Row>> {
    let text = std::fs::read_to_string(path)?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Writes `docs/hostile.md` of what ran last.
fn page(langs: &[Lang]) -> Result<()> {
    let mut all = BTreeMap::<(String, String, String), BTreeMap<&'static str, Row>>::new();
    let before = place::root().join("tests/hostile/before.jsonl");
    let sources = langs.iter().map(|lang| (lang.name(), results(*lang))).chain([("before", before)]);
    for (column, path) in sources {
        for row in read(&path).unwrap_or_default() {
            if !row.side.is_empty() {
                all.entry((row.side.clone(), row.transport.clone(), row.name.clone())).or_default().insert(column, row);
            }
        }
    }
    let mut text = String::from(PREFACE);
    let columns: Vec<&str> = langs.iter().map(|lang| lang.name()).chain(["before"]).collect();
    let mut section = String::new();
    for ((side, transport, name), cells) in &all {
        let here = format!("## To a {side} over {transport}");
        if here != section {
            writeln!(text, "\n{here}\n\n| input | of | bytes | {} |", columns.join(" | "))?;
            writeln!(text, "|---|---|---|{}", "---|".repeat(columns.len()))?;
            section = here;
        }
        let some = cells.values().next().context("a row")?;
        write!(text, "| {name} | {} | {} |", some.source, some.sent)?;
        for column in &columns {
            write!(text, " {} |", cells.get(column).map_or_else(|| "–".to_owned(), Row::cell))?;
        }
        text.push('\n');
    }
    std::fs::write(place::root().join("docs/hostile.md"), text)?;
    Ok(())
}

const PREFACE: &str = "# Hostile peers

Made by `cargo xtask hostile`, which sends the inputs below to our programs and measures the one that gets them:
[tests/hostile](../tests/hostile/README.md). A cell has the CPU seconds that an input costs and the memory above the
level before, at its highest. *Before* is the Rust program as it was before these limits, at 44373049; it had no HTTP/2,
and cells are empty where it was not measured. A figure in bold is over a limit: 0.3 s of CPU, 64 MiB, memory and
descriptors back afterwards within 5 % or 4 MiB, a client of somebody else's answered within a second meanwhile, everybody
answered afterwards. The figures are of one machine with two cores; an input that was over a limit was played once more.

Most of the bold cells are memory that is free and not given back. glibc keeps the free end of each thread's heap, which
`malloc_trim` does not reach; it is used again by the next long message. With `MALLOC_TRIM_THRESHOLD_=1048576` and
`MALLOC_MMAP_THRESHOLD_=131072` in its environment a program gives it back at once, at the cost of time for long messages.
";
