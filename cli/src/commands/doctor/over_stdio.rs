//! The examination of a program over its standard streams. Each thing that a server may not survive has a process of its
//! own.

use std::future::Future;
use std::time::Duration;

use tricorn::client::Target;

use super::catalogue::Area;
use super::opening::{self, BEGINS, Opened, Probed};
use super::process::{Program, Reads};
use super::report::Report;
use super::wire::{LEGACY, NEWEST_LEGACY, Wire};
use super::{Plan, calls, life, lists, schemas, unreachable};
use crate::failure::{Failure, Outcome};
use crate::targets::Found;

/// The shortest wait for an answer to the first question of newer clients: theirs.
const PROBE: Duration = Duration::from_secs(5);

fn start(target: &Target, reads: Reads, report: &Report) -> Result<Wire, String> {
    let (program, lines) = Program::start(target, reads).map_err(|error| error.to_string())?;
    Ok(Wire::stdio(program, lines, report))
}

pub(super) async fn examine(found: &Found, target: &Target, plan: &Plan, report: &Report) -> Outcome<()> {
    let began = tokio::time::Instant::now();
    let main = if plan.legacy { first(found, target, plan, report).await? } else { None };
    let took = began.elapsed();
    match main {
        Some(wire) => {
            let (modern, rest) = (modern(found, target, plan, report, Some(took)), others(target, plan, report, false));
            tokio::join!(content(wire, plan), async { matches!(modern.await, Ok(Some(_))) }, rest);
        }
        None if plan.modern => {
            let Some(wire) = modern(found, target, plan, report, None).await? else {
                return Err(not_spoken(report));
            };
            tokio::join!(content(wire, plan), others(target, plan, report, true));
        }
        None => return Err(not_spoken(report)),
    }
    Ok(())
}

fn not_spoken(report: &Report) -> Failure {
    if report.has("no-start") || report.has("dies-early") {
        return unreachable("the server has ended before its first answer");
    }
    let hint = "does it serve HTTP? --http=URL starts it and examines what it serves there";
    unreachable(format!("the server answers neither initialize nor server/discover; {hint}"))
}

/// Opens the first session, and learns how long a start takes. `None`: no older revision is spoken.
async fn first(found: &Found, target: &Target, plan: &Plan, report: &Report) -> Outcome<Option<Wire>> {
    let mut wire = match start(target, Reads::All, report) {
        Ok(wire) => wire,
        Err(why) => {
            report.find("no-start", why.as_str());
            return Err(unreachable(why));
        }
    };
    let elsewhere = elsewhere(&mut wire, found);
    let opened = tokio::select! {
        opened = opening::open(&mut wire, plan.revision(NEWEST_LEGACY), BEGINS) => opened,
        failure = elsewhere => return Err(failure),
    };
    match opened {
        Opened::Open => {
            report.ran(&["no-start", "dies-early", "noise", "multi-line"]);
            began(&mut wire);
            Ok(Some(wire))
        }
        Opened::Ended(how) => {
            if let Some(program) = wire.program() {
                life::early(program, report).await;
            }
            Err(unreachable(format!("the server has ended before its first answer: {how}")))
        }
        Opened::Refused => Ok(None),
        Opened::Silent => Ok(None),
    }
}

/// Waits until the program has shown that it serves HTTP.
fn elsewhere<'a>(wire: &mut Wire, found: &'a Found) -> impl Future<Output = Failure> + use<'a> {
    let said = wire.program().map(|program| program.said());
    async move {
        let Some(said) = said else { return std::future::pending().await };
        let mut failure = said.elsewhere.serves(found).await;
        failure.message.push_str("; --http starts it and examines what it serves there");
        failure
    }
}

/// Remembers the time from the start of a process to this first answer.
fn began(wire: &mut Wire) {
    let report = wire.report.clone();
    if let Some(program) = wire.program() {
        report.took(program.took());
    }
}

/// Everything that one session shows.
async fn content(mut wire: Wire, plan: &Plan) {
    if !wire.is_modern {
        opening::basics(&mut wire).await;
    } else {
        opening::unknown(&mut wire).await;
    }
    let listing = lists::all(&mut wire).await;
    schemas::all(&wire, &listing, &plan.profiles);
    if !wire.report.has("dies") {
        lists::capabilities(&mut wire, &listing).await;
        calls::all(&mut wire, &listing, plan.calls).await;
        wire.listen(Duration::from_millis(50)).await;
    }
    end(wire).await;
}

/// Asks as newer clients do. Gives the open wire if the server speaks their revision. `took`: the time in which it has
/// answered initialize, if it has.
async fn modern(
    found: &Found,
    target: &Target,
    plan: &Plan,
    report: &Report,
    took: Option<Duration>,
) -> Outcome<Option<Wire>> {
    if !plan.modern {
        return Ok(None);
    }
    report.ran(&["probe-hangs", "probe-kills"]);
    let Ok(wire) = start(target, Reads::All, report) else { return Ok(None) };
    let mut wire = wire.modern();
    let limit = PROBE.max(took.unwrap_or(PROBE) * 3);
    let elsewhere = elsewhere(&mut wire, found);
    let probed = tokio::select! {
        probed = opening::probe(&mut wire, limit) => probed,
        failure = elsewhere, if took.is_none() => return Err(failure),
    };
    match probed {
        Probed::Modern => {
            began(&mut wire);
            opening::modern(&mut wire).await;
            return Ok(Some(wire));
        }
        Probed::Legacy => {}
        Probed::Silent if took.is_some() => {
            report.find(
                "probe-hangs",
                format!("server/discover: no answer in {} s; initialize is answered", limit.as_secs()),
            );
        }
        Probed::Ended(how) if took.is_some() => {
            report.find("probe-kills", format!("server/discover: {how}; initialize is answered"));
        }
        Probed::Silent | Probed::Ended(_) => {}
    }
    if let Some(mut program) = wire.into_program() {
        program.kill().await;
    }
    Ok(None)
}

/// The other revisions, one after the other, and what may end a process.
async fn others(target: &Target, plan: &Plan, report: &Report, is_modern: bool) {
    if let Some(wire) = opened(target, plan, report, LEGACY[0], Reads::All, is_modern).await
        && let Some(program) = wire.into_program()
    {
        life::signal(program, report).await;
    }
    if let Some(mut wire) = opened(target, plan, report, LEGACY[1], Reads::All, is_modern).await {
        opening::garbage(&mut wire).await;
        end(wire).await;
    }
    if let Some(mut wire) = opened(target, plan, report, LEGACY[2], Reads::Nothing, is_modern).await {
        life::unread(&mut wire).await;
        end(wire).await;
    }
    // Calls may have left something that keeps a process busy: the end of the input is for one that has done nothing.
    let Ok(mut wire) = start(target, Reads::All, report) else { return };
    if is_modern {
        wire = wire.modern();
        opening::probe(&mut wire, BEGINS).await;
    } else {
        opening::open(&mut wire, plan.revision(opening::NONE), BEGINS).await;
    }
    if let Some(program) = wire.into_program() {
        life::end_of_input(program, report).await;
    }
}

async fn opened(
    target: &Target,
    plan: &Plan,
    report: &Report,
    revision: &str,
    reads: Reads,
    is_modern: bool,
) -> Option<Wire> {
    let mut wire = match start(target, reads, report) {
        Ok(wire) => wire,
        Err(why) => {
            report.skip(Area::Process, format!("another process of the server: {why}"));
            return None;
        }
    };
    if is_modern {
        let mut wire = wire.modern();
        if matches!(opening::probe(&mut wire, BEGINS).await, Probed::Modern) {
            began(&mut wire);
        }
        return Some(wire);
    }
    match opening::open(&mut wire, plan.revision(revision), BEGINS).await {
        Opened::Open => {
            began(&mut wire);
            Some(wire)
        }
        // A revision that is refused says nothing of the rest.
        Opened::Refused => {
            end(wire).await;
            let mut wire = start(target, reads, report).ok()?;
            matches!(opening::open(&mut wire, NEWEST_LEGACY, BEGINS).await, Opened::Open).then_some(wire)
        }
        Opened::Silent | Opened::Ended(_) => None,
    }
}

/// Ends a process whose end says nothing.
async fn end(wire: Wire) {
    if let Some(mut program) = wire.into_program() {
        program.close();
        if program.ended(Duration::from_millis(500)).await.is_none() {
            program.kill().await;
        }
    }
}
