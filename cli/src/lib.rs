//! The command `tricorn`: lists, calls and runs servers of the Model Context Protocol.
//!
//! One function does it all, [`main`], so that the Python wheel's script, the npm package's `bin` and the binary are the
//! same command. It reads neither the process's arguments nor its name, and ends no process: that is its caller's.

mod arguments;
mod bridge;
mod browser;
mod commands;
mod connection;
mod failure;
pub mod hosts;
mod interrupts;
mod launcher;
mod logins;
mod opening;
mod output;
mod questions;
mod schema;
mod targets;

use std::ffi::OsString;

pub use launcher::Launcher;

use failure::{FAILED, Failure, Outcome};
use output::Screen;

/// Runs the command with these arguments, without the program's name, and gives the status to end the process with:
/// 0, 1 the tool or the server said no, 2 misuse, 3 no connection, 4 a login is needed, 130 ended by Ctrl-C.
///
/// Threads may be left that wait for the terminal: the caller ends the process.
#[must_use]
pub fn main(arguments: Vec<OsString>, launcher: Launcher) -> u8 {
    hand_down_streams();
    let screen = Screen::new();
    let outcome = run(arguments, launcher, &screen);
    screen.finish();
    let outcome = match screen.unwritten() {
        Some(error) if outcome.is_ok() => Err(Failure::new(FAILED, format!("cannot write the answer: {error}"))),
        _ => outcome,
    };
    match outcome {
        Ok(status) => status,
        Err(failure) => {
            screen.error(&failure.message);
            failure.status
        }
    }
}

/// Lets the programs that are started have the standard streams: Node.js keeps them to itself.
fn hand_down_streams() {
    #[cfg(unix)]
    for stream in [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()] {
        // One that is closed cannot be handed down.
        if let Ok(flags) = rustix::io::fcntl_getfd(stream) {
            let _ = rustix::io::fcntl_setfd(stream, flags - rustix::io::FdFlags::CLOEXEC);
        }
    }
}

fn run(arguments: Vec<OsString>, launcher: Launcher, screen: &Screen) -> Outcome<u8> {
    let Some(command) = arguments::read(arguments, &launcher, screen)? else { return Ok(0) };
    commands::run(command, launcher, screen)
}
