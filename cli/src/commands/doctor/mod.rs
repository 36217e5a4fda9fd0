//! `tricorn doctor`: what a maintainer would check by hand.

mod auth;
mod calls;
mod catalogue;
mod http;
mod life;
mod lists;
mod opening;
mod over_http;
mod over_stdio;
mod process;
mod reading;
mod report;
mod samples;
mod schemas;
mod system;
mod wire;

use std::time::Duration;

use tricorn::client::{ClientOptions, Target};

use crate::arguments::Doctor;
use crate::commands::inspect::redaction;
use crate::connection::{options, runtime};
use crate::failure::{FAILED, Failure, INTERRUPTED, LOGIN, MISUSE, Outcome, UNREACHABLE};
use crate::interrupts::Interrupts;
use crate::launcher::Launcher;
use crate::output::Screen;
use crate::targets::{self, Reach, Way};

use self::auth::Client;
use self::catalogue::Area;
use self::report::Report;
pub(crate) use self::schemas::Profile;
use self::wire::{LEGACY, MODERN};

/// Time for everything, where nobody says another one.
const ALTOGETHER: Duration = Duration::from_secs(180);
const SECRET: &str = "TRICORN_CLIENT_SECRET";

/// Scope and method of an examination.
struct Plan {
    profiles: Vec<Profile>,
    /// Calls tools that may change something.
    calls: bool,
    legacy: bool,
    modern: bool,
    /// The only older revision.
    only: Option<String>,
    client: Option<Client>,
    options: ClientOptions,
    headers: Vec<(String, String)>,
}

impl Plan {
    /// The older revision to speak, where this one would be spoken otherwise.
    fn revision<'a>(&'a self, usual: &'a str) -> &'a str {
        self.only.as_deref().unwrap_or(usual)
    }
}

/// Examines a server, and prints the report.
pub(super) fn doctor(given: &Doctor, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    if given.connection.record.is_some() {
        return Err(Failure::misuse("--record: doctor connects many times: record one of list, call or run"));
    }
    let mut plan = plan(given)?;
    let way = match (&given.http, crate::arguments::Connection::is_command(&given.target)) {
        (Some(_), false) => Way::Http("127.0.0.1:0".to_owned()),
        _ => Way::Streams,
    };
    let found = match targets::find(&given.target, &given.connection, &way, launcher, screen) {
        Ok(found) => found,
        Err(failure) if failure.status == UNREACHABLE => {
            // A program that is not there is a finding, too.
            let report = Report::default();
            report.find("no-start", failure.message.as_str());
            report.set_failure(&failure.message);
            // The target of a command line is its program.
            let name = given.connection.command.first().unwrap_or(&given.target);
            tell(given, &report, screen, name, "stdio")?;
            return Ok(UNREACHABLE);
        }
        Err(failure) => return Err(failure),
    };
    let Reach::One(target) = found.reach.clone() else {
        return Err(Failure::misuse(format!("{0}: doctor examines one server: say which, {0}#NAME", found.name)));
    };
    let transport = match (&target, &given.http) {
        (Target::Command { .. }, None) => "stdio",
        (Target::Command { .. }, Some(_)) | (Target::Url { .. }, None) => "HTTP",
        (_, Some(_)) => {
            return Err(Failure::misuse(format!("--http: {} is not started here", found.name)));
        }
        _ => return Err(Failure::misuse(format!("{}: doctor knows standard streams and HTTP alone", found.name))),
    };
    if let Target::Url { headers, .. } = &target {
        plan.headers = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        plan.headers.extend(given.connection.header.iter().cloned());
    }
    let limit = given.connection.timeout.filter(|limit| !limit.is_zero()).unwrap_or(ALTOGETHER);
    let report = Report::default();
    let mut redaction = redaction(&Reach::One(target.clone()), plan.options.get_headers());
    if let Some(client) = &plan.client {
        redaction.learn(&client.secret);
    }
    report.hide(redaction);
    let runtime = runtime()?;
    let reached = runtime.block_on(async {
        let known: Vec<_> = system::left(&[]).into_iter().flatten().map(|process| process.pid).collect();
        system::adopt(true);
        let examining = async {
            match (&target, &given.http) {
                (Target::Command { .. }, None) => over_stdio::examine(&found, &target, &plan, &report).await,
                (Target::Command { .. }, Some(at)) => over_http::started(&target, at, &plan, &report).await,
                (Target::Url { url, .. }, _) => over_http::examine(url, None, &plan, &report).await,
                _ => Ok(()),
            }
        };
        let interrupts = Interrupts::with_termination();
        let outcome = interrupts.first(tokio::time::timeout(limit, examining)).await;
        let outcome = match outcome {
            None => Err(Failure::silent(INTERRUPTED)),
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) if report.was_reached() => {
                let why = format!("the rest: {} s are over; --timeout SECONDS takes longer", limit.as_secs());
                report.skip(Area::Process, why);
                Ok(())
            }
            Some(Err(_)) => Err(Failure::new(UNREACHABLE, format!("no answer in {} s", limit.as_secs()))),
        };
        if matches!(target, Target::Command { .. }) {
            life::left(&report, &known).await;
        }
        system::adopt(false);
        outcome
    });
    runtime.shutdown_background();
    report.starts();
    report.sort();
    if let Err(failure) = &reached {
        report.set_failure(&failure.message);
    }
    match reached {
        // Findings up to this point are reported all the same.
        Err(mut failure) if failure.status == LOGIN || failure.status == UNREACHABLE => {
            // Nothing is known of a server that is not there; programs read that in a report, too.
            if given.json || given.junit.is_some() || failure.status == LOGIN || report.has_findings() {
                tell(given, &report, screen, &found.name, transport)?;
            }
            if failure.status == LOGIN && report.errors() > 0 {
                failure.status = FAILED;
            }
            return Err(failure);
        }
        Err(failure) => return Err(failure),
        Ok(()) => {}
    }
    tell(given, &report, screen, &found.name, transport)?;
    let passes = report.errors() == 0 && report.score() >= given.fail_under;
    Ok(if passes { 0 } else { FAILED })
}

fn plan(given: &Doctor) -> Outcome<Plan> {
    let all = [Profile::Openai, Profile::OpenaiStrict, Profile::Gemini, Profile::Vscode, Profile::Claude];
    let profiles = if given.profile.is_empty() { all.to_vec() } else { given.profile.clone() };
    let (legacy, modern, only) = match given.connection.revision.as_deref() {
        None => (true, true, None),
        Some("legacy") => (true, false, None),
        Some("modern" | MODERN) => (false, true, None),
        Some(revision) if LEGACY.contains(&revision) => (true, false, Some(revision.to_owned())),
        Some(other) => {
            let known = [&LEGACY[..], &[MODERN, "legacy", "modern"]].concat().join(", ");
            return Err(Failure::new(MISUSE, format!("--revision {other}: expected one of {known}")));
        }
    };
    let client = match &given.client {
        None => None,
        Some(id) => {
            let secret = std::env::var(SECRET).map_err(|_| {
                Failure::misuse(format!("--client {id}: the environment has no {SECRET}, the client's secret"))
            })?;
            Some(Client { id: id.clone(), secret })
        }
    };
    let options = options(&given.connection);
    Ok(Plan { profiles, calls: given.call, legacy, modern, only, client, options, headers: Vec::new() })
}

fn tell(given: &Doctor, report: &Report, screen: &Screen, name: &str, transport: &str) -> Outcome<()> {
    if let Some(file) = &given.junit {
        let text =
            report.junit(name, given.fail_under).map_err(|why| Failure::new(FAILED, format!("--junit: {why}")))?;
        let wrote = std::fs::write(file, text);
        wrote.map_err(|error| Failure::misuse(format!("--junit {}: {error}", file.display())))?;
    }
    if given.json {
        screen.json(&report.json(name, transport));
    } else {
        report.print(screen, name, transport);
    }
    Ok(())
}

/// The failure of a server that says nothing.
fn unreachable(why: impl Into<String>) -> Failure {
    Failure::new(UNREACHABLE, why)
}
