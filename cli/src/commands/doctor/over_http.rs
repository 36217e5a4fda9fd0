//! The examination of a server over HTTP, one that is there or one that is started for it. What it may not survive comes
//! last.

use std::sync::Arc;
use std::time::Duration;

use tricorn::client::Target;
use tricorn::http::Exchanges;

use super::catalogue::Area;
use super::http::{self, Site};
use super::opening::{self, BEGINS, Opened, Probed};
use super::process::{Program, Reads};
use super::report::Report;
use super::wire::{Exchanged, LEGACY, NEWEST_LEGACY, Wire};
use super::{Plan, auth, calls, life, lists, schemas, unreachable};
use crate::failure::{Failure, LOGIN, Outcome};
use crate::logins;
use crate::output::one_line;
use crate::targets::{self, without_secrets};

/// The wait for an answer to the first question of newer clients: theirs.
const PROBE: Duration = Duration::from_secs(5);
/// Attempts to reach a server that was just started, with a pause in between.
const TRIES: u32 = 300;
const PAUSE: Duration = Duration::from_millis(100);

/// A server that was started, and the URL that it serves.
struct Server {
    program: Program,
    url: String,
}

/// Starts a server and examines it; then what its end and its next start show.
pub(super) async fn started(target: &Target, at: &str, plan: &Plan, report: &Report) -> Outcome<()> {
    let mut server = start(target, at, plan, report).await?;
    examine(&server.url, Some(&server.program), plan, report).await?;
    if !server.program.is_running() {
        let Ok(again) = start(target, at, plan, report).await else { return Ok(()) };
        server = again;
    }
    let session = session_of(&server, plan).await;
    life::signal(server.program, report).await;
    if let Some(session) = session
        && let Ok(mut again) = start(target, at, plan, report).await
    {
        if let Ok(exchanges) = exchanges(&again.url, plan) {
            let site = Site { exchanges: &exchanges, token: None, is_modern: false, is_loopback: true };
            if reached(&site, &again.program).await.is_some() {
                report.took(again.program.took());
                http::restarted(&site, report, &session).await;
            }
        }
        again.program.kill().await;
    }
    Ok(())
}

async fn start(target: &Target, at: &str, plan: &Plan, report: &Report) -> Outcome<Server> {
    let (program, mut lines) = match Program::start(target, Reads::All) {
        Ok(started) => started,
        Err(error) => {
            report.find("no-start", error.to_string());
            return Err(unreachable(error.to_string()));
        }
    };
    tokio::spawn(async move { while lines.recv().await.is_some() {} });
    let url = if at.is_empty() { program.url(BEGINS).await } else { Some(at.to_owned()) };
    match url {
        Some(url) if program.is_running() => {
            let url = if at.is_empty() { with_path(url, &program, plan).await } else { url };
            Ok(Server { program, url })
        }
        None if program.is_running() => Err(unreachable(
            "the server names no URL of this machine in its output: give the one that it serves, --http=URL",
        )),
        _ => Err(early(&program, report).await),
    }
}

/// A URL that a server has named; where there is nothing at it, as it is that of the whole program, the usual path below
/// it.
async fn with_path(url: String, program: &Program, plan: &Plan) -> String {
    let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    let usual = format!("{}/mcp", url.trim_end_matches('/'));
    let (Ok(here), Ok(below)) = (exchanges(&url, plan), exchanges(&usual, plan)) else { return url };
    let site = |exchanges| Site { exchanges, token: None, is_modern: !plan.legacy, is_loopback: true };
    let nothing = |answer: &Exchanged| matches!(answer.status, 404 | 405);
    if !path.is_empty() || !reached(&site(&here), program).await.is_some_and(|answer| nothing(&answer)) {
        return url;
    }
    let found = site(&below).first(&[("authorization", "")]).await.filter(|answer| !nothing(answer));
    let Some(answer) = found else { return url };
    if let Some(session) = answer.header("mcp-session-id") {
        site(&below).end(session).await;
    }
    usual
}

async fn early(program: &Program, report: &Report) -> Failure {
    life::early(program, report).await;
    unreachable("the server has ended before its first answer")
}

fn exchanges(url: &str, plan: &Plan) -> Outcome<Arc<Exchanges>> {
    let made = Exchanges::new(url, &plan.headers, &plan.options);
    made.map(Arc::new).map_err(|error| Failure::misuse(error.message()))
}

/// The first answer of a server that was just started.
async fn reached(site: &Site<'_>, program: &Program) -> Option<Exchanged> {
    for _ in 0..TRIES {
        if let Some(answer) = site.first(&[("authorization", "")]).await {
            return Some(answer);
        }
        if !program.is_running() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    None
}

/// A session that is left open.
async fn session_of(server: &Server, plan: &Plan) -> Option<String> {
    let exchanges = exchanges(&server.url, plan).ok()?;
    let site = Site { exchanges: &exchanges, token: None, is_modern: false, is_loopback: true };
    reached(&site, &server.program).await?.header("mcp-session-id").map(str::to_owned)
}

/// Examines what is at a URL.
pub(super) async fn examine(url: &str, program: Option<&Program>, plan: &Plan, report: &Report) -> Outcome<()> {
    let exchanges = exchanges(url, plan)?;
    let mut site =
        Site { exchanges: &exchanges, token: None, is_modern: !plan.legacy, is_loopback: targets::is_loopback(url) };
    // Without a token, even if there is one: what a stranger is told is examined, too.
    let first = match program {
        Some(program) => match reached(&site, program).await {
            Some(first) => first,
            None if program.is_running() => return Err(unreachable("the server does not answer at its URL")),
            None => return Err(early(program, report).await),
        },
        None => match site.first(&[("authorization", "")]).await {
            Some(first) => first,
            None => return Err(silent(&exchanges).await),
        },
    };
    report.reached();
    if let Some(program) = program {
        report.ran(&["no-start", "dies-early"]);
        report.took(program.took());
    }
    let mut token = None;
    if first.status == 401 {
        token = auth::all(&site, &without_secrets(url), &first, plan.client.as_ref(), report).await;
        let has_own = plan.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if token.is_none() && !has_own && plan.client.is_none() {
            token = tokio::time::timeout(BEGINS, logins::token(url)).await.ok().flatten();
        }
        if let Some(token) = &token {
            report.hide_also(token);
        }
        if token.is_none() && !has_own {
            report.skip(Area::Opening, "everything that needs a token");
            return Err(login("a login is needed for the rest"));
        }
    } else if let Some(session) = first.header("mcp-session-id") {
        site.end(session).await;
    }
    site.token = token.as_deref();
    let mut is_legacy = false;
    if plan.legacy {
        let mut wire = Wire::http(exchanges.clone(), site.token, report);
        match opening::open(&mut wire, plan.revision(NEWEST_LEGACY), BEGINS).await {
            Opened::Open => {
                is_legacy = true;
                content(&mut wire, plan).await;
                if report.has("dies") {
                    return ended(report);
                }
                http::origins(&site, report).await;
                http::sessions(&site, &mut wire, program.map(|program| program.pid)).await;
                close(&site, wire).await;
                revisions(&site, &exchanges, plan, report).await;
            }
            Opened::Ended(why) => return Err(unreachable(why)),
            Opened::Refused | Opened::Silent => {}
        }
    }
    let newer = if plan.modern { newer(&site, &exchanges, is_legacy, report).await } else { None };
    match newer {
        Some(mut wire) if !is_legacy => {
            site.is_modern = true;
            content(&mut wire, plan).await;
            if report.has("dies") {
                return ended(report);
            }
            http::origins(&site, report).await;
            opening::garbage(&mut wire).await;
        }
        None if !is_legacy && first.status == 401 => return Err(login("the server refuses the token")),
        None if !is_legacy => return Err(unreachable(not_spoken(&first))),
        _ => {
            let mut wire = Wire::http(exchanges.clone(), site.token, report);
            let opened = opening::open(&mut wire, plan.revision(NEWEST_LEGACY), PROBE).await;
            if matches!(opened, Opened::Open) {
                opening::garbage(&mut wire).await;
                close(&site, wire).await;
            }
        }
    }
    Ok(())
}

/// Leaves out the rest, which would say of a server that has ended that it does nothing right.
fn ended(report: &Report) -> Outcome<()> {
    report.skip(Area::Http, "the rest, as the server has ended");
    Ok(())
}

/// Says what is at a URL that speaks none of the protocol.
fn not_spoken(first: &Exchanged) -> String {
    let said = "the server answers neither initialize nor server/discover";
    let kind = first.header("content-type").map(|kind| format!(", {kind}")).unwrap_or_default();
    let shown = match (&first.message, first.body.as_str()) {
        (Some(message), _) => format!(": {}", one_line(&message.to_string())),
        (None, "") => String::new(),
        (None, body) => format!(": {}", one_line(body)),
    };
    let shown: String = shown.chars().take(200).collect();
    let hint = match (first.status, first.header("location")) {
        (300..400, Some(place)) => format!("; it redirects to {}: give that URL", without_secrets(place)),
        (404 | 405, _) => "; is it another path, such as /mcp?".to_owned(),
        (403 | 421, _) => "; does it take this host, and is a token needed?".to_owned(),
        (200..300, _) if first.message.is_none() => "; is it the URL of a web page?".to_owned(),
        _ => String::new(),
    };
    format!("{said}; a POST gets HTTP status {}{kind}{shown}{hint}", first.status)
}

fn login(why: &str) -> Failure {
    let hint = "log in with tricorn login, or give a token with --header \"Authorization: Bearer TOKEN\", or a client with --client";
    Failure::new(LOGIN, format!("{why}; {hint}"))
}

/// The reason why there is no answer.
async fn silent(exchanges: &Exchanges) -> Failure {
    match tokio::time::timeout(PROBE, exchanges.send("GET", &[], Vec::new().into())).await {
        Ok(Err(error)) if error.kind() == tricorn::ErrorKind::Transport => unreachable(error.message()),
        Ok(Err(error)) => Failure::connecting("the server", &error),
        _ => unreachable("the server does not answer a POST in 10 s"),
    }
}

/// Everything that one session shows.
async fn content(wire: &mut Wire, plan: &Plan) {
    if wire.is_modern {
        opening::unknown(wire).await;
    } else {
        opening::basics(wire).await;
    }
    let listing = lists::all(wire).await;
    schemas::all(wire, &listing, &plan.profiles);
    if wire.report.has("dies") {
        return;
    }
    lists::capabilities(wire, &listing).await;
    calls::all(wire, &listing, plan.calls).await;
    wire.listen(Duration::from_millis(50)).await;
}

async fn close(site: &Site<'_>, wire: Wire) {
    if let Some(session) = wire.session() {
        drop(wire);
        site.end(&session).await;
    }
}

/// The other older revisions, and one that never was.
async fn revisions(site: &Site<'_>, exchanges: &Arc<Exchanges>, plan: &Plan, report: &Report) {
    if plan.only.is_some() {
        return;
    }
    for revision in [LEGACY[0], LEGACY[1], LEGACY[2], opening::NONE] {
        let mut wire = Wire::http(exchanges.clone(), site.token, report);
        opening::open(&mut wire, revision, BEGINS).await;
        close(site, wire).await;
    }
}

/// Asks as newer clients do. Gives the open wire if the server speaks their revision.
async fn newer(site: &Site<'_>, exchanges: &Arc<Exchanges>, is_legacy: bool, report: &Report) -> Option<Wire> {
    report.ran(&["probe-hangs", "probe-kills"]);
    let mut wire = Wire::http(exchanges.clone(), site.token, report).modern();
    match opening::probe(&mut wire, PROBE).await {
        Probed::Modern => {
            opening::modern(&mut wire).await;
            http::headers(&mut wire).await;
            return Some(wire);
        }
        Probed::Silent if is_legacy => {
            let evidence = format!("server/discover: no answer in {} s; initialize is answered", PROBE.as_secs());
            report.find("probe-hangs", evidence);
        }
        Probed::Ended(how) if is_legacy => {
            report.find("probe-kills", format!("server/discover: {how}; initialize was answered"));
        }
        Probed::Legacy | Probed::Silent | Probed::Ended(_) => {}
    }
    None
}
