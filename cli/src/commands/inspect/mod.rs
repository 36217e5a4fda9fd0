//! A page in the browser to look at a server: what it offers, and every message.

mod apps;
mod assets;
mod export;
mod gate;
mod hub;
mod questions;
mod session;
mod web;

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::arguments::Inspect;
use crate::connection::{options, runtime};
use crate::failure::{Failure, INTERRUPTED, Outcome, UNREACHABLE};
use crate::interrupts::Interrupts;
use crate::launcher::Launcher;
use crate::output::Screen;
use crate::targets::{self, Way};

use self::apps::Apps;
pub(crate) use self::export::redaction;
use self::gate::Gate;
use self::hub::Hub;
use self::questions::Questions;
use self::session::Session;
use self::web::Site;

/// Serves the page until Ctrl-C.
pub(super) fn inspect(inspect: &Inspect, launcher: &Launcher, screen: &Screen) -> Outcome<u8> {
    let found = targets::find(&inspect.target, &inspect.connection, &Way::Streams, launcher, screen)?;
    let options = options(&inspect.connection)
        .extension(tricorn::apps::EXTENSION, tricorn::apps::client_settings(&[tricorn::apps::MIME_TYPE]));
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let interrupts = Interrupts::with_termination();
        let port = inspect.port.unwrap_or(0);
        let listening = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let no_port = |error: std::io::Error| {
            Failure::new(UNREACHABLE, format!("cannot listen on 127.0.0.1:{port}: {error}; --port takes another one"))
        };
        let listener = listening.map_err(no_port)?;
        let gate = Gate::new(listener.local_addr().map_err(no_port)?.port());
        let gate =
            gate.map_err(|error| Failure::new(UNREACHABLE, format!("the system has no random bytes: {error}")))?;
        let (link, hub, apps) = (gate.link(), Arc::new(Hub::new()), Arc::<Apps>::default());
        let questions = Questions::new(&hub);
        let waits = inspect.connection.timeout.is_none();
        let session = Session::new(found, options, waits, screen, &hub, &questions, &apps);
        session.clone().reconnect();
        screen.print(&link);
        if !inspect.no_open && screen.can_ask() {
            let (screen, link) = (screen.clone(), link.clone());
            tokio::task::spawn_blocking(move || {
                if let Err(error) = crate::browser::open(&link) {
                    screen.line(&format!("no browser was opened ({error}): open the link yourself"));
                }
            });
        }
        let site = Arc::new(Site::new(gate, hub, session.clone(), questions, apps, screen.clone()));
        let _ = interrupts.first(site.serve(listener)).await;
        screen.line("ending the server (Ctrl-C again quits at once)");
        let _ = interrupts.second(session.close()).await;
        Err(Failure::silent(INTERRUPTED))
    });
    runtime.shutdown_background();
    outcome
}
