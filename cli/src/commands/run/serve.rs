//! A server of one transport, served over the other.

use serde_json::{Value, json};
use tricorn::Server;
use tricorn::client::ClientOptions;
use tricorn::http::HttpOptions;

use crate::bridge::Bridge;
use crate::connection::runtime;
use crate::failure::{Failure, INTERRUPTED, MISUSE, Outcome, UNREACHABLE};
use crate::logins::with_login;
use crate::opening::Opening;
use crate::output::Screen;
use crate::targets::{Found, Reach};

/// Sessions over HTTP, each of which has a connection of its own to the server.
pub(crate) const SESSIONS: usize = 256;

/// Serves `found` over HTTP at this address, over standard streams without one, for so many sessions.
pub(crate) fn serve(
    found: Found,
    http: Option<&str>,
    options: ClientOptions,
    sessions: usize,
    screen: &Screen,
) -> Outcome<u8> {
    let address = http.map(address).transpose()?;
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let waits = address.is_none() && matches!(found.reach, Reach::Many(_));
        let mut ending = Ending::new();
        let making = make(found, options, waits, sessions, screen);
        let made = tokio::select! {
            made = making => made?,
            status = ending.next() => return Ok(status),
        };
        let Some(bridge) = made else { return Ok(0) };
        let status = tokio::select! {
            status = serve_bridge(&bridge.server, address, sessions, &mut ending, screen) => status,
            failure = bridge.failed(), if waits => Err(failure),
        };
        close(&bridge, &mut ending).await;
        status
    });
    runtime.shutdown_background();
    outcome
}

/// Makes the bridge. `waits`: it is of a group, and waits for its one client. `None`: that has gone.
async fn make(
    found: Found,
    mut options: ClientOptions,
    waits: bool,
    sessions: usize,
    screen: &Screen,
) -> Outcome<Option<Bridge>> {
    if let Reach::One(target) = &found.reach {
        options = with_login(options, target, screen).await;
    }
    if !waits {
        return Bridge::new(found, options, screen, sessions).await.map(Some);
    }
    // Programs of a group start once, for the one client that there is: with what it can do, which it says first.
    let Some((declared, opening)) = opening().await? else { return Ok(None) };
    let mut bridge = Bridge::for_group(found, options, screen, declared).await?;
    let missing = bridge.missing();
    if let Some(opening) = opening {
        opening.put_back(move |line| missing.changed(line)).map_err(|error| no_streams(&error))?;
    }
    Ok(Some(bridge))
}

/// The capabilities of the client on the standard streams, and what it has said so far. `None`: it has gone.
async fn opening() -> Outcome<Option<(Value, Option<Opening>)>> {
    if cfg!(not(unix)) {
        return Ok(Some((json!({}), None)));
    }
    let read = tokio::task::spawn_blocking(Opening::read).await;
    let read = read.map_err(std::io::Error::other).and_then(|read| read).map_err(|error| no_streams(&error))?;
    Ok(read.map(|opening| (opening.capabilities(), Some(opening))))
}

pub(crate) fn no_streams(error: &std::io::Error) -> Failure {
    Failure::new(UNREACHABLE, format!("the standard streams: {error}"))
}

/// Serves the front of a bridge until it ends or is told to.
pub(super) async fn serve_bridge(
    server: &Server,
    address: Option<(String, u16)>,
    sessions: usize,
    ending: &mut Ending,
    screen: &Screen,
) -> Outcome<u8> {
    let Some((host, port)) = address else {
        return tokio::select! {
            served = server.serve_stdio() => served.map(|()| 0).map_err(|error| failed(&error)),
            status = ending.next() => Ok(status),
        };
    };
    let http = HttpOptions::new().host(host).port(port).max_sessions(sessions.max(2));
    let serving = server.serve_http(http).await.map_err(|error| failed(&error))?;
    screen.line(&format!("ready {}", serving.url()));
    let status = ending.next().await;
    server.close();
    tokio::select! {
        () = serving.join() => {}
        _ = ending.next() => {}
    }
    Ok(status)
}

/// Ends all connections of a bridge; a signal does not wait for that.
pub(super) async fn close(bridge: &Bridge, ending: &mut Ending) {
    tokio::select! {
        () = bridge.close() => {}
        _ = ending.next() => {}
    }
}

fn failed(error: &tricorn::Error) -> Failure {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<std::io::Error>());
    let hint = source.map_or("", other_port);
    match error.kind() {
        tricorn::ErrorKind::Misuse => Failure::new(MISUSE, error.message()),
        _ => Failure::new(UNREACHABLE, format!("{}{hint}", error.message())),
    }
}

/// Says which address can be had instead of one that cannot.
fn other_port(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "; name another port, or --http 127.0.0.1:0 for any free one",
        std::io::ErrorKind::PermissionDenied => "; name a port above 1023, or --http 127.0.0.1:0 for any free one",
        _ => "",
    }
}

/// `HOST:PORT`, `PORT` or `:PORT`.
pub(super) fn address(given: &str) -> Outcome<(String, u16)> {
    let (host, port) = given.rsplit_once(':').unwrap_or(("", given));
    let host = if host.is_empty() { "127.0.0.1" } else { host.trim_matches(['[', ']']) };
    let port = port
        .parse()
        .map_err(|_| Failure::misuse(format!("--http {given}: expected HOST:PORT or PORT, such as localhost:8000")))?;
    Ok((host.to_owned(), port))
}

/// Says that an address cannot be had, before a program that is going to serve there says it at length.
pub(super) fn check(given: &str) -> Outcome<()> {
    let (host, port) = address(given)?;
    match std::net::TcpListener::bind((host.as_str(), port)) {
        Ok(_) => Ok(()),
        Err(error) => {
            let hint = other_port(&error);
            Err(Failure::new(UNREACHABLE, format!("--http {given}: cannot listen there: {error}{hint}")))
        }
    }
}

/// Signals that end the bridge.
#[cfg(unix)]
pub(super) struct Ending([Option<tokio::signal::unix::Signal>; 2]);

#[cfg(unix)]
impl Ending {
    pub(super) fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        Self([SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).ok()))
    }

    /// The status to end with.
    pub(super) async fn next(&mut self) -> u8 {
        let [interrupt, terminate] = &mut self.0;
        tokio::select! {
            () = super::signals::told(interrupt) => INTERRUPTED,
            () = super::signals::told(terminate) => 0,
        }
    }
}

/// Ctrl-C, which ends the bridge.
#[cfg(not(unix))]
pub(super) struct Ending;

#[cfg(not(unix))]
impl Ending {
    pub(super) fn new() -> Self {
        Self
    }

    pub(super) async fn next(&mut self) -> u8 {
        let _ = tokio::signal::ctrl_c().await;
        INTERRUPTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_has_a_remedy() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = taken.local_addr().expect("its address").port();
        let failure = check(&port.to_string()).expect_err("taken");
        assert!(failure.message.contains("name another port"), "{}", failure.message);
    }
}
