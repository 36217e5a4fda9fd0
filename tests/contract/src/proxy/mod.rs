//! A TCP proxy between a client and a server that harms connections as its rules say. It knows bytes, not HTTP.
//!
//! The rules are a sequence: only the first that has not been applied yet is in force. `tests/cases/README.md` describes
//! them for authors.

mod pump;
mod rule;

use crate::Outcome;
use crate::pattern::brief;
use pump::Pump;
use rule::{Act, Rule};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections of one proxy; more are a client that runs wild.
const MAX_CONNECTIONS: usize = 1000;

/// Longest time that bytes are held for something that does not come.
const HOLD_LIMIT: Duration = Duration::from_secs(10);

/// A proxy that listens; it ends with all its connections when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    stopped: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// With how often each is still to be applied.
    rules: Vec<Rule>,
    sockets: Vec<TcpStream>,
    /// Texts that the holding rules wait for, from the start: one may pass before there is anything to hold.
    awaited: Vec<Awaited>,
    wrong: Option<String>,
}

#[derive(Debug)]
struct Awaited {
    text: String,
    /// The connections on which it has passed.
    on: BTreeSet<usize>,
}

impl Proxy {
    /// Listens on a free port for connections to `upstream`.
    pub fn start(upstream: SocketAddr, rules: &Value) -> Outcome<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let rules = rule::read(rules)?;
        let awaited = rules.iter().filter_map(|rule| match &rule.act {
            Act::Hold(text) => Some(Awaited { text: text.clone(), on: BTreeSet::new() }),
            _ => None,
        });
        let awaited = awaited.collect();
        let state = State { rules, sockets: Vec::new(), awaited, wrong: None };
        let shared = Arc::new(Shared {
            upstream,
            stopped: AtomicBool::new(false),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let accepting = shared.clone();
        std::thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, shared })
    }

    /// `url` with this proxy's address.
    pub fn in_front_of(url: &str, rules: &Value) -> Outcome<(Self, String)> {
        let (host, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).ok_or("an odd URL")?;
        let upstream = host.parse().map_err(|error| format!("{host}: {error}"))?;
        let proxy = Self::start(upstream, rules)?;
        let url = format!("http://{}/{path}", proxy.address);
        Ok((proxy, url))
    }

    /// Checks that every rule was applied as often as it says, and everything held was let go in time.
    pub fn finish(self) -> Outcome {
        let mut state = self.shared.lock();
        if let Some(wrong) = state.wrong.take() {
            return Err(wrong);
        }
        match state.rules.iter().find(|rule| rule.times > 0) {
            Some(rule) => Err(format!("the proxy's rule was not applied: {}", brief(&rule.text))),
            None => Ok(()),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        for socket in &self.shared.lock().sockets {
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
        // The listener looks at the flag when something comes.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for (connection, client) in listener.incoming().enumerate() {
            if self.stopped.load(Ordering::Relaxed) || connection >= MAX_CONNECTIONS {
                return;
            }
            let Ok(client) = client else { continue };
            let Ok(server) = TcpStream::connect(self.upstream) else { continue };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            if let Some(pump) = Pump::new(connection, client, server, self.clone()) {
                pump.start();
            }
        }
    }

    /// The rule in force.
    fn current(&self) -> Option<(usize, Rule)> {
        self.lock().rules.iter().cloned().enumerate().find(|(_, rule)| rule.times > 0)
    }

    /// Takes one application of a rule; false when another connection was faster.
    fn apply(&self, number: usize) -> bool {
        let mut state = self.lock();
        let rule = &mut state.rules[number];
        let free = rule.times > 0;
        rule.times -= usize::from(free);
        free
    }

    /// Something passed on a connection: those who wait for it elsewhere go on.
    fn passed(&self, connection: usize, text: &[u8]) {
        let mut state = self.lock();
        for awaited in state.awaited.iter_mut().filter(|awaited| rule::find(text, &awaited.text).is_some()) {
            awaited.on.insert(connection);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until a text has passed on another connection.
    fn hold(&self, connection: usize, text: &str) {
        let mut state = self.lock();
        let deadline = Instant::now() + HOLD_LIMIT;
        while !state.awaited.iter().any(|a| a.text == text && a.on.iter().any(|other| *other != connection)) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stopped.load(Ordering::Relaxed) {
                state.wrong.get_or_insert_with(|| format!("held in vain for {text:?}"));
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// `contract proxy RULES URL COMMAND...`: runs the command with `{proxy}` in its words replaced by the proxy's URL.
pub fn main(arguments: impl Iterator<Item = String>) -> Outcome<ExitCode> {
    let words: Vec<String> = arguments.collect();
    let [rules, url, command @ ..] = words.as_slice() else {
        return Err("contract proxy RULES URL COMMAND...".into());
    };
    let rules = serde_json::from_str(rules).map_err(|error| format!("the rules: {error}"))?;
    let (proxy, url) = Proxy::in_front_of(url, &rules)?;
    let command: Vec<String> = command.iter().map(|word| word.replace("{proxy}", &url)).collect();
    let program = command.first().ok_or("no command")?;
    let status = Command::new(program).args(&command[1..]).status().map_err(|error| format!("{program}: {error}"))?;
    if status.success() {
        proxy.finish()?;
    }
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
