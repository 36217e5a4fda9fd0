//! Serves a target.

mod reload;
pub(super) mod serve;
mod signals;
mod start;

use tricorn::client::Target;

use crate::arguments::Run;
use crate::connection::options;
use crate::failure::Outcome;
use crate::launcher::Launcher;
use crate::output::Screen;
use crate::targets::{self, Kind, Reach, Way};

/// Serves it until it ends: a file by its own means, all else over the transport that it has or by a bridge to the other.
pub(super) fn run(run: &Run, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    if run.reload {
        return reload::serve(run, launcher, screen);
    }
    if let Some(address) = run.http.as_deref().filter(|address| !address.starts_with("unix:")) {
        serve::check(address)?;
    }
    let way = run.http.clone().map_or(Way::Streams, Way::Http);
    let found = targets::find(&run.target, &run.connection, &way, launcher, screen)?;
    if run.connection.record.is_some() {
        return serve::serve(found, run.http.as_deref(), options(&run.connection), 1, screen);
    }
    match (&found.reach, found.kind, &run.http) {
        (Reach::One(Target::Command { .. }), Kind::File, _) | (Reach::One(Target::Command { .. }), _, None) => {
            start::start(found, screen)
        }
        (_, _, http) => serve::serve(found, http.as_deref(), options(&run.connection), serve::SESSIONS, screen),
    }
}
