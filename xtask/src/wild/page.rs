//! `docs/compatibility.md`, made of what a whole run came to.

use super::cell::Outcome;
use super::peers::{Kind, Peer};
use crate::place;
use anyhow::Result;
use std::collections::BTreeSet;
use std::fmt::Write;

const HEAD: &str = "# Programs of others

Made by `cargo xtask wild --all`, which runs our clients and servers against the programs below, as the registries have
them; [tests/wild](../tests/wild/README.md) says what each is asked. A cell has the revision that was negotiated and
the count of the checks: *ok 10* passed ten, *8 of 10* failed two; a dash is a cell that has not run.

Each cell that failed a check is under [What fails](#what-fails): the check, the cause and whose it is by the
specification, a control, the smallest reproduction and the way round. The control is the same cell with an official
SDK in the place of ours; over standard streams the bytes that its server writes within 50 ms arrive in one piece, as
pipes may have it. A count in bold has a failure that nobody has explained yet; that is ours until somebody has shown
otherwise. A control that passes makes a fault ours only if our bytes are wrong: else the cause says why it passes.
";

const SECTIONS: [(Kind, &str); 6] = [
    (Kind::Client, "Clients and frameworks, against our servers"),
    (Kind::Bridge, "Bridges in front of our servers"),
    (Kind::Server, "Servers, called by our clients"),
    (Kind::Web, "Web frameworks that our server is mounted in"),
    (Kind::Bundler, "Bundlers"),
    (Kind::Runtime, "Runtimes"),
];

/// Writes the page.
pub(super) fn write(peers: &[Peer], outcomes: &[Outcome]) -> Result<()> {
    let mut page = HEAD.to_owned();
    for (kind, title) in SECTIONS {
        let members: Vec<&Peer> = peers.iter().filter(|p| p.kind == kind).collect();
        let of = |peer: &Peer| outcomes.iter().filter(|o| o.peer == peer.name).collect::<Vec<_>>();
        if members.iter().all(|p| of(p).is_empty()) {
            continue;
        }
        // Columns: our languages, or the clients that call what is made of ours.
        let columns: BTreeSet<String> = members.iter().flat_map(|p| of(p)).map(column).collect();
        let _ = write!(page, "\n## {title}\n\n| | version | transport |");
        columns.iter().for_each(|c| page.push_str(&format!(" {c} |")));
        page.push_str("\n|---|---|---|");
        columns.iter().for_each(|_| page.push_str("---|"));
        page.push('\n');
        for peer in members {
            for transport in &peer.transports {
                let cells: Vec<&Outcome> = of(peer).into_iter().filter(|o| o.transport == *transport).collect();
                if cells.is_empty() {
                    continue;
                }
                let _ = write!(page, "| {} ({}) | {} | {transport} |", peer.name, peer.origin(), peer.version());
                for name in &columns {
                    let word = cells.iter().find(|o| column(o) == *name).map_or_else(|| "–".to_owned(), |o| verdict(o));
                    let _ = write!(page, " {word} |");
                }
                page.push('\n');
            }
        }
    }
    faults(&mut page, peers, outcomes);
    page.push_str(&std::fs::read_to_string(place::root().join("tests/wild/tolerated.md"))?);
    std::fs::write(place::root().join("docs/compatibility.md"), page)?;
    Ok(())
}

fn column(outcome: &Outcome) -> String {
    if outcome.lang.is_empty() {
        outcome.id.rsplit('.').nth(1).map(|_| client_of(outcome)).unwrap_or_default()
    } else {
        outcome.lang.clone()
    }
}

/// `name.client.transport`, of which names have dots, too.
fn client_of(outcome: &Outcome) -> String {
    let rest = outcome.id.get(outcome.peer.len() + 1..).unwrap_or_default();
    rest.trim_end_matches(&format!(".{}", outcome.transport)).replace('-', " ")
}

fn verdict(outcome: &Outcome) -> String {
    let asked = outcome.checks.iter().filter(|c| c.ok.is_some()).count();
    let passed = outcome.checks.iter().filter(|c| c.ok == Some(true)).count();
    let revision = outcome.revision.as_deref().unwrap_or("no revision");
    match (passed == asked, outcome.good()) {
        (true, true) => format!("ok {asked}, {revision}"),
        (_, true) => format!("{passed} of {asked}, {revision}"),
        (_, false) => format!("**{passed} of {asked}**, {revision}"),
    }
}

/// The outcome of the same checks with an official SDK in the place of ours, in cells that fail these.
fn control<'a>(cells: impl Iterator<Item = (&'a Outcome, Vec<String>)>) -> String {
    let (mut asked, mut same) = (0, 0);
    for (outcome, failed) in cells {
        if let Some(control) = &outcome.control {
            asked += 1;
            same += usize::from(failed.iter().all(|check| control.contains(check)));
        }
    }
    match (asked, same) {
        (0, _) => "none ran.".to_owned(),
        (_, 0) => "the official SDK in place of ours passes.".to_owned(),
        _ if asked == same => "the official SDK in place of ours fails the same.".to_owned(),
        _ => format!("the official SDK in place of ours fails the same in {same} of {asked} cells."),
    }
}

fn faults(page: &mut String, peers: &[Peer], outcomes: &[Outcome]) {
    page.push_str("\n## What fails\n\n");
    let before = page.len();
    for peer in peers {
        for known in &peer.known {
            let hit: Vec<&Outcome> = outcomes
                .iter()
                .filter(|o| {
                    o.peer == peer.name && o.known.iter().any(|(c, w)| known.checks.contains(c) && *w == known.why)
                })
                .collect();
            if hit.is_empty() {
                continue;
            }
            let failed = |o: &Outcome| -> Vec<String> {
                let names = o.known.iter().filter(|(c, w)| known.checks.contains(c) && *w == known.why);
                names.map(|(c, _)| c.clone()).collect()
            };
            let control = control(hit.iter().map(|&o| (o, failed(o))));
            let cells: Vec<String> = hit.iter().map(|o| format!("{} {}", column(o), o.transport)).collect();
            let (checks, cells) = (known.checks.join(", "), cells.join(", "));
            let _ = writeln!(page, "- **{}**, {checks} ({cells}): {}", peer.name, known.why);
            let _ = writeln!(page, "  - Control: {control}");
            let _ = writeln!(page, "  - Reproduction: {}", known.reproduction);
            let _ = writeln!(page, "  - Way round: {}", known.instead);
        }
    }
    for outcome in outcomes.iter().filter(|o| !o.good()) {
        let failed = outcome.failed.join(", ");
        let control = control(std::iter::once((outcome, outcome.failed.clone())));
        let _ = writeln!(page, "- **{}**: {failed}. Ours, or not yet looked at. Control: {control}", outcome.id);
    }
    if page.len() == before {
        page.push_str("Nothing.\n");
    }
}
