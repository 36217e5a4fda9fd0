//! A program on the standard streams of this one.

use std::process::Stdio;

use tricorn::client::{Stderr, Target};

use crate::connection::runtime;
use crate::failure::{Failure, INTERRUPTED, Outcome, UNREACHABLE};
use crate::output::Screen;
use crate::targets::{self, Found, Reach};

use super::signals::{Signals, pass};

/// Starts the program with the standard streams of this one.
pub(super) fn start(found: Found, screen: &Screen) -> Outcome<u8> {
    let no_program = || Failure::misuse(format!("{} is no program", found.name));
    let Reach::One(target) = &found.reach else { return Err(no_program()) };
    let mut program = targets::command_of(target).ok_or_else(no_program)?;
    if matches!(target, Target::Command { stderr: Stderr::Discard, .. }) {
        program.stderr(Stdio::null());
    }
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let mut child = program.spawn().map_err(|error| {
            let command = program.as_std().get_program();
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
