//! `cargo xtask bench`: our servers and clients beside a bare floor, interleaved, as ratios.
//!
//! Each measurement is one run of `benches/loadgen` against a fresh process. The targets of a point take turns,
//! in reversed order every other round, so that a busy machine hits all of them alike.

mod figures;
mod plan;

use crate::place::{self, Lang};
use crate::{process, report, setup, tool};
use anyhow::Result;
use figures::{Run, Targets};
use plan::{Kind, Point};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const BUILD: Duration = Duration::from_secs(20 * 60);
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Selection of the measurements.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// call-add, echo-1k, echo-64k, echo-1m, list, async, features (read, read-template, prompt, sample, elicit), cold,
    /// memory, soak, sessions, clients, clients-payload; by default call-add, cold, memory, sessions and clients
    scenarios: Vec<String>,
    /// Only this language; may be given several times
    #[arg(long = "lang", value_name = "LANG")]
    langs: Vec<String>,
    /// Only this transport: stdio or http
    #[arg(long)]
    transport: Option<String>,
    /// Only this revision
    #[arg(long)]
    revision: Option<String>,
    /// Number of measurements of each target
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 3.0)]
    secs: f64,
    /// Server and load generator on this CPU alone: no wake-ups across CPUs, the steadiest figures
    #[arg(long)]
    one_core: Option<usize>,
    /// Also write everything measured here, as JSON
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Returns true if every measurement was valid. A missed target is reported, it does not fail the task.
pub(crate) fn main(options: &Options) -> Result<bool> {
    let points = plan::points(&options.scenarios)?;
    let langs = Lang::list(&options.langs)?;
    tool::need(&langs)?;
    let made = setup::languages(&langs);
    let ready: Vec<Lang> = langs.iter().copied().filter(|l| made.why_not(*l).is_none()).collect();
    let tools = Tools::build()?;
    let targets = Targets::read()?;
    let mut all = Vec::new();
    let mut missed = Vec::new();
    for point in points.iter().filter(|p| options.transport.as_ref().is_none_or(|t| *t == p.transport)) {
        let runs = measure(&tools, point, &ready, options)?;
        report::clear();
        report::line(format!("{point}"));
        report::line(figures::table(point, &runs, &targets, &mut missed).to_string());
        all.extend(runs);
    }
    let out = options.out.clone().unwrap_or_else(|| place::target("bench/results.json"));
    let values: Vec<&Value> = all.iter().map(|r| &r.figures).collect();
    std::fs::write(&out, serde_json::to_string_pretty(&json!({ "runs": values }))?)?;
    report::line(format!("figures: {}", place::short(&out)));
    for line in &missed {
        report::line(format!("over its target: {line}"));
    }
    let void: Vec<&Run> = all.iter().filter(|r| !r.valid()).collect();
    for run in &void {
        report::line(format!("void: {} {}: {}", run.target, run.revision, run.error()));
    }
    report::line(format!("{} measurements, {} void, {} cells over their target", all.len(), void.len(), missed.len()));
    Ok(void.is_empty() && ready.len() == langs.len())
}

/// The load generator and the floor.
struct Tools {
    loadgen: PathBuf,
    floor: PathBuf,
}

impl Tools {
    fn build() -> Result<Self> {
        report::step("building the load generator and the floor");
        let mut command = tool::cargo(&["build", "--release", "--locked", "--manifest-path", "benches/Cargo.toml"]);
        command.arg("--target-dir").arg(place::target("bench"));
        process::must("cargo build", command, BUILD, &place::log("bench build"))?;
        let at = |name: &str| place::target("bench/release").join(name);
        Ok(Self { loadgen: at("loadgen"), floor: at("floor") })
    }

    fn floor(&self, kind: Kind, transport: &str) -> String {
        let floor = self.floor.display();
        match (kind, transport) {
            (Kind::Client, _) => format!("{floor} client"),
            (Kind::Server, "stdio") => format!("{floor} --transport stdio --impl tokio"),
            (Kind::Server, _) => format!("{floor} --transport http --impl tokio --port {{port}}"),
        }
    }

    /// Returns the command of the server that clients are measured against.
    fn peer(&self, transport: &str) -> String {
        let port = if transport == "http" { " --port {port}" } else { "" };
        format!("{} --transport {transport} --impl raw{port}", self.floor.display())
    }
}

fn ours(lang: Lang, kind: Kind, transport: &str) -> String {
    let at = |folder: &str| place::root().join(format!("examples/{folder}/{lang}/run")).display().to_string();
    match (kind, transport) {
        (Kind::Client, _) => at("bench-client"),
        (Kind::Server, "stdio") => format!("{} --stdio", at("bench")),
        (Kind::Server, _) => format!("{} --http 127.0.0.1:{{port}}", at("bench")),
    }
}

fn measure(tools: &Tools, point: &Point, langs: &[Lang], options: &Options) -> Result<Vec<Run>> {
    let mut targets = vec![(figures::FLOOR.to_owned(), tools.floor(point.kind, point.transport))];
    targets.extend(langs.iter().map(|l| (l.to_string(), ours(*l, point.kind, point.transport))));
    if point.kind == Kind::Server && langs.contains(&Lang::Node) {
        // The same tools with the schema library that most people use.
        let command = format!("env BENCH_SCHEMAS=zod {}", ours(Lang::Node, point.kind, point.transport));
        targets.push(("node+zod".to_owned(), command));
    }
    let asked = |r: &&str| options.revision.as_ref().is_none_or(|wanted| wanted == *r) && point.has(r);
    let revisions: Vec<&str> = REVISIONS.iter().copied().filter(|r| asked(r)).collect();
    let mut turns: Vec<(&str, &str, &str)> = Vec::new();
    for (name, command) in &targets {
        turns.extend(revisions.iter().map(|r| (name.as_str(), command.as_str(), *r)));
    }
    let mut runs = Vec::new();
    for round in 0..options.rounds {
        for (name, command, revision) in &turns {
            report::step(format!("{point}: round {} of {}", round + 1, options.rounds));
            report::detail(&format!("{name} {revision}"));
            let scenario = if *name == figures::FLOOR { point.floor } else { point.loadgen };
            let figures = one(tools, point, (command, scenario), revision, options)?;
            runs.push(Run::new(name, revision, round, figures, point));
        }
        turns.reverse();
    }
    Ok(runs)
}

/// One measurement: the load generator's figures, or an object that says why there are none.
fn one(
    tools: &Tools,
    point: &Point,
    (server, scenario): (&str, &str),
    revision: &str,
    options: &Options,
) -> Result<Value> {
    let file = place::target("bench/one.json");
    remove(&file);
    let secs = if point.scenario == "soak" { 900.0 } else { options.secs };
    let mut command = tool::command(&tools.loadgen);
    command.args(["--target", "it", "--cmd", server, "--transport", point.transport, "--proto", revision]);
    command.args(["--scenario", scenario, "--boot-secs", "60", "--tools", "100"]);
    command.arg("--concurrency").arg(point.concurrency.to_string()).arg("--n").arg(point.n.to_string());
    command.arg("--max-secs").arg(secs.to_string()).arg("--warmup").arg(point.warmup().to_string());
    command.arg("--json").arg(&file);
    if point.kind == Kind::Client {
        command.args(["--mode", "client", "--server-cmd", &tools.peer(point.transport)]);
    }
    if let Some(core) = options.one_core {
        command.args(["--pin-server", &core.to_string(), "--pin-client", &core.to_string()]);
    }
    let limit = Duration::from_secs_f64(secs * 4.0 + 400.0);
    let done = process::run_with(command, limit, None, |_| {})?;
    let figures = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    Ok(figures.unwrap_or_else(|| json!({ "valid": false, "error": done.why() })))
}

fn remove(file: &Path) {
    let _ = std::fs::remove_file(file);
}
