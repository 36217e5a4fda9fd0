//! Serves a target.

mod bridge;
mod front;
mod signals;
mod start;
mod upstream;

use tricorn::client::Target;

use crate::arguments::Run;
use crate::failure::Outcome;
use crate::launcher::Launcher;
use crate::output::Screen;
use crate::target::{self, Kind, Way};

/// Serves it until it ends: a file by its own means, all else over the transport that it has or by a bridge to the other.
pub(super) fn run(run: &Run, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    let way = run.http.clone().map_or(Way::Streams, Way::Http);
    let found = target::find(&run.target, &run.connection, &way, launcher, screen)?;
    match (&found.target, found.kind, &run.http) {
        (Target::Command { .. }, Kind::File, _) | (Target::Command { .. }, _, None) => start::start(found, screen),
        (_, _, http) => bridge::bridge(found, http.as_deref(), run, screen),
    }
}
