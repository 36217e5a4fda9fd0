//! Serves a target.

use std::process::Stdio;

use tokio::process::Command;
use tricorn::client::{Stderr, Target};

use crate::arguments::Run;
use crate::connection::runtime;
use crate::failure::{Failure, INTERRUPTED, Outcome, UNREACHABLE};
use crate::launcher::Launcher;
use crate::output::Screen;
use crate::target::{self, Found, Kind, Way};

/// Serves it until it ends.
pub(super) fn run(run: &Run, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    let way = run.http.clone().map_or(Way::Streams, Way::Http);
    let found = target::find(&run.target, &run.connection, &way, launcher, screen)?;
    let name = &found.name;
    match (&found.target, found.kind) {
        (Target::Command { .. }, Kind::File) => start(found, screen),
        (Target::Command { .. }, _) if run.http.is_none() => start(found, screen),
        (Target::Command { .. }, _) => {
            let hint = "--http is for files, whose server listens itself: give this program's own option for HTTP";
            Err(Failure::misuse(format!("{name} speaks over its standard streams; {hint}")))
        }
        _ => Err(Failure::misuse(format!("{name} is served already: run starts files, command lines and programs of mcp.json"))),
    }
}

/// Starts the program with the standard streams of this one.
fn start(found: Found, screen: &Screen) -> Outcome<u8> {
    let Target::Command { command, args, env, cwd, stderr } = found.target else {
        return Err(Failure::misuse(format!("{} is no program", found.name)));
    };
    let mut program = Command::new(&command);
    program.args(args);
    for (name, value) in env {
        match value {
            Some(value) => program.env(name, value),
            None => program.env_remove(name),
        };
    }
    if let Some(cwd) = cwd {
        program.current_dir(cwd);
    }
    if stderr == Stderr::Discard {
        program.stderr(Stdio::null());
    }
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let mut child = program.spawn().map_err(|error| {
            Failure::new(UNREACHABLE, format!("{}: cannot start {command:?}: {error}", found.name))
        })?;
        // The terminal's Ctrl-C reaches it, too; SIGTERM is passed on.
        let mut signals = Signals::new();
        loop {
            tokio::select! {
                status = child.wait() => {
                    let status = status.map_err(|error| Failure::new(UNREACHABLE, format!("{}: {error}", found.name)))?;
                    return Ok(code(status));
                }
                signal = signals.next() => pass(&child, signal),
            }
        }
    });
    runtime.shutdown_background();
    if let Ok(status) = &outcome
        && *status != 0
        && *status != INTERRUPTED
    {
        screen.line(&screen.error_style().dim(&format!("{} ended with status {status}", found.name)));
    }
    outcome
}

#[cfg(unix)]
fn code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| signal + 128)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

#[cfg(not(unix))]
fn code(status: std::process::ExitStatus) -> u8 {
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// What ends a program.
#[cfg(unix)]
struct Signals([Option<tokio::signal::unix::Signal>; 3]);

#[cfg(unix)]
impl Signals {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self([SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(|kind| signal(kind).ok()))
    }

    /// The next one that the child has not got by itself.
    async fn next(&mut self) -> rustix::process::Signal {
        let [interrupt, terminate, hangup] = &mut self.0;
        loop {
            tokio::select! {
                _ = told(interrupt) => {}
                _ = told(terminate) => return rustix::process::Signal::TERM,
                _ = told(hangup) => return rustix::process::Signal::HUP,
            }
        }
    }
}

#[cfg(unix)]
async fn told(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

#[cfg(unix)]
fn pass(child: &tokio::process::Child, signal: rustix::process::Signal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        let _ = rustix::process::kill_process(id, signal);
    }
}

/// What ends a program: consoles tell all that belong to them.
#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

#[cfg(not(unix))]
fn pass(_child: &tokio::process::Child, _signal: ()) {}
