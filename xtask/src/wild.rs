//! `cargo xtask wild`: our servers and clients against programs that others wrote, as `tests/wild/peers.toml` lists them.
//!
//! A cell is one client and one server. `tests/wild/cell.py` plays it and writes down the wire; this part installs the
//! peers, decides which cells there are, judges them, and writes `docs/compatibility.md`.

mod cell;
mod page;
mod peers;

use crate::place::{self, Lang};
use crate::report::{self, Counts};
use crate::{setup, tool};
use anyhow::{Context, Result, bail};
use cell::{Cell, Outcome};
use peers::Peer;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Cells that run side by side: most of their time is the start of an interpreter.
const LANES: usize = 2;

/// Selection of the cells.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only peers whose name contains one of these
    names: Vec<String>,
    /// All peers, not the core alone; cells that passed before are kept
    #[arg(long)]
    all: bool,
    /// Run cells anew that passed before
    #[arg(long)]
    fresh: bool,
    /// Only these languages of ours
    #[arg(long = "lang")]
    langs: Vec<String>,
    /// The newest versions of the peers, and what changes with them
    #[arg(long)]
    update: bool,
    /// Write the page anew of what ran before, and run nothing
    #[arg(long)]
    page: bool,
    /// Install, and run nothing
    #[arg(long)]
    install: bool,
}

/// The task. False when a cell fails that is not known to be the peer's own fault.
pub(crate) fn main(options: &Options) -> Result<bool> {
    if options.page {
        return page::write(&peers::read()?, &cell::kept()).map(|()| true);
    }
    let langs = languages(&options.langs)?;
    tool::need(&langs)?;
    setup::languages(&langs).all_ready()?;
    let file = peers::read()?;
    let wanted = |p: &&Peer| {
        let named = options.names.iter().any(|n| p.name.contains(n.as_str()));
        let wanted = if options.names.is_empty() { options.all || options.update || p.core } else { named };
        wanted && (!options.update || p.can_loosen())
    };
    let chosen: Vec<Peer> = file.iter().filter(wanted).cloned().collect();
    if chosen.is_empty() {
        bail!("no peer of tests/wild/peers.toml has such a name");
    }
    let Installed { ready, failures, skips } = install(&file, chosen, options.update)?;
    skips.iter().for_each(|why| report::line(format!("skipped: {why}")));
    failures.iter().for_each(|why| report::line(format!("failed: {why}")));
    let mut counts = Counts::new(0, failures.len(), skips.len());
    if options.install {
        report::clear();
        report::line(format!("{} peers are installed, {} are not", ready.len(), failures.len()));
        return Ok(counts.failed == 0);
    }
    let core = !options.all && !options.update && options.names.is_empty();
    let cells: Vec<Cell<'_>> = ready.iter().flat_map(|p| cell::of(p, &file, &langs, core)).collect();
    report::step(format!("{} cells of {} peers", cells.len(), ready.len()));
    let outcomes = play(&cells, options.all && !options.fresh && !options.update)?;
    report::clear();
    let mut checks = 0;
    for outcome in &outcomes {
        counts += Counts::of(outcome.good());
        checks += outcome.checks.len();
        for line in outcome.complaints() {
            report::line(format!("failed: {line}"));
        }
    }
    if options.update {
        changes(&ready, &outcomes);
    } else if options.all && options.names.is_empty() && options.langs.is_empty() {
        page::write(&file, &outcomes)?;
    }
    report::line(format!("{} peers, {} cells, {checks} checks", ready.len(), outcomes.len()));
    report::line(format!("{} passed, {} failed", counts.passed, counts.failed));
    Ok(counts.failed == 0)
}

/// Prints the versions that are newer, and the cells that change with them.
fn changes(ready: &[Peer], outcomes: &[Outcome]) {
    let versions: Vec<String> = ready.iter().filter_map(Peer::changes).collect();
    let verdicts: Vec<String> = outcomes.iter().filter_map(Outcome::changes).collect();
    let alone = outcomes.iter().filter(|o| o.pinned().is_none()).count();
    report::line(format!("{} peers have a newer version", versions.len()));
    versions.iter().for_each(report::line);
    report::line(format!("{} cells come to something else with it", verdicts.len()));
    verdicts.iter().for_each(report::line);
    if alone > 0 {
        report::line(format!("{alone} cells never ran with the pinned version: `cargo xtask wild --all` first"));
    }
}

/// Peers of which the programs are there, and why the others are not.
#[derive(Default)]
struct Installed {
    ready: Vec<Peer>,
    failures: Vec<String>,
    skips: Vec<String>,
}

fn install(file: &[Peer], chosen: Vec<Peer>, newest: bool) -> Result<Installed> {
    let mut all = Installed::default();
    // The environments that drivers and controls live in come with the peers that need them.
    for base in file.iter().filter(|p| p.is_base()) {
        base.install().with_context(|| base.name.clone())?;
    }
    for mut peer in chosen {
        if let Some(program) = peer.missing() {
            all.skips.push(format!("{}: there is no {program}", peer.name));
            continue;
        }
        if newest {
            peer.loosen();
        }
        match peer.install() {
            Ok(()) => all.ready.push(peer),
            Err(error) => all.failures.push(format!("{}: not installed: {error:#}", peer.name)),
        }
    }
    Ok(all)
}

fn core_of(file: &[Peer]) -> Vec<Peer> {
    file.iter().filter(|p| p.core).cloned().collect()
}

/// Installs the core's peers.
pub(crate) fn prepare() -> Result<()> {
    let file = peers::read()?;
    install(&file, core_of(&file), false).map(drop)
}

/// The core, for `cargo xtask test`: the counts, failures and skips. A check is a test.
pub(crate) fn core(langs: &[Lang]) -> Result<(Counts, Vec<String>, Vec<String>)> {
    let file = peers::read()?;
    let Installed { ready, mut failures, mut skips } = install(&file, core_of(&file), false)?;
    let mut counts = Counts::new(0, failures.len(), skips.len());
    let cells: Vec<Cell<'_>> = ready.iter().flat_map(|p| cell::of(p, &file, langs, true)).collect();
    for outcome in play(&cells, false)? {
        let complaints = outcome.complaints();
        counts += Counts::new(outcome.passed(), complaints.len(), outcome.known().len());
        failures.extend(complaints);
        skips.extend(outcome.known());
    }
    Ok((counts, failures, skips))
}

/// The languages asked for; of all of them those whose programs are there.
fn languages(names: &[String]) -> Result<Vec<Lang>> {
    let mut langs = Lang::list(names)?;
    if names.is_empty() && !place::built("libtricorn_swift.a").exists() {
        langs.retain(|l| *l != Lang::Swift);
    }
    Ok(langs)
}

/// Every cell, in the order of the list.
fn play(cells: &[Cell<'_>], keep: bool) -> Result<Vec<Outcome>> {
    let queue: Mutex<VecDeque<(usize, &Cell<'_>)>> = Mutex::new(cells.iter().enumerate().collect());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let lane = || {
        let mut done = Vec::new();
        while let Some((n, cell)) = next() {
            report::step(format!("{}/{} {} against others", n + 1, cells.len(), cell.id));
            done.push((n, cell.play(keep)));
        }
        done
    };
    let mut done: Vec<_> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap_or_default()).collect()
    });
    done.sort_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}
