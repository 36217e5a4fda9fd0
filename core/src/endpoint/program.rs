//! A server that is a program: its process, and the next one when that has ended unasked.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::child::{self, Output, Process, Started, read_stderr};
use crate::client::{ClientOptions, Closer, Events, InheritEnv, Target};
use crate::driver::{Peer, Service, Sink, runtime};
use crate::error::{Result, shortened};
use crate::jsonrpc::Limits;
use crate::protocol::{Connection, Input, Outbound, Transport};
use crate::signal::Signal;
use crate::transport::sink::LineSink;

/// Most times that it is started again within [`WINDOW`].
const MAX_RESTARTS: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// The first start of a window comes at once. The pause before the second; twice as long each time.
const PAUSE: Duration = Duration::from_millis(200);

/// Longest parts of the last line of standard error, and of a command, that a message shows.
const MAX_SHOWN: usize = 300;
const MAX_COMMAND: usize = 80;
/// The last words of a process that has ended may come so much later than its end.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// As good as for ever.
const MAX_GRACE: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The way to the processes of one client, of which there is one at a time.
struct Program {
    target: Target,
    inherit: InheritEnv,
    /// True if another is started when one ends unasked.
    restart: bool,
    grace: Duration,
    limits: Limits,
    events: Arc<dyn Events>,
    peer: OnceLock<Weak<Peer>>,
    own: Weak<Self>,
    state: Mutex<State>,
    /// Set when none is started any more.
    over: Signal,
}

#[derive(Default)]
struct State {
    stdin: Option<Arc<LineSink>>,
    process: Option<Arc<Process>>,
    /// Times of the restarts within the last [`WINDOW`].
    restarts: VecDeque<Instant>,
    /// End of the last process, or the reason why it could not be started.
    reason: String,
    /// Last words of the process, where its standard error is heard here.
    last_words: Option<Arc<LastWords>>,
}

/// Hears standard error, and remembers the last line that says something.
struct LastWords {
    events: Arc<dyn Events>,
    line: Mutex<String>,
    /// Set when all is read.
    over: Signal,
}

impl LastWords {
    fn line(&self) -> Option<String> {
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (!line.is_empty()).then_some(line)
    }
}

impl Events for LastWords {
    fn stderr(&self, line: &str) {
        let said = line.trim();
        if !said.is_empty() {
            shortened(said, MAX_SHOWN)
                .as_ref()
                .clone_into(&mut *self.line.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.events.stderr(line);
    }
}

/// The command that a target is, as much as tells it from others: what follows may hold secrets.
fn shown(target: &Target) -> String {
    let Target::Command { command, args, .. } = target else { return String::new() };
    let what = args.iter().find(|arg| !arg.starts_with('-'));
    what.map_or_else(|| format!("{command:?}"), |what| format!("{command:?} {:?}", shortened(what, MAX_COMMAND)))
}

/// Launches the target and joins it to a peer.
pub(super) fn launch(
    target: &Target,
    options: &ClientOptions,
    service: Arc<dyn Service>,
    events: &Arc<dyn Events>,
) -> Result<(Arc<Peer>, Arc<dyn Closer>)> {
    let limits = options.limits();
    // A clock that is asked for more than it holds panics.
    let grace = crate::options::seconds("shutdown_grace", options.shutdown_grace)?.min(MAX_GRACE);
    let program = Arc::new_cyclic(|own| Program {
        target: target.clone(),
        inherit: options.inherit_env.clone(),
        restart: options.restart,
        grace,
        limits,
        events: events.clone(),
        peer: OnceLock::new(),
        own: own.clone(),
        state: Mutex::default(),
        over: Signal::default(),
    });
    let started = child::start(target, &options.inherit_env)?;
    let connection = Connection::new(Arc::new(options.facts()), Arc::new(Transport::new("stdio")));
    let peer = Peer::new(connection, limits, service, |peer| {
        let _ = program.peer.set(peer.clone());
        program.clone()
    });
    peer.tap_with(options.tapping(Some("stdio")));
    let (process, output) = program.begin(&mut program.lock(), started);
    runtime::spawn(program.clone().follow(process, output, peer.clone()));
    Ok((peer, program))
}

impl Program {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn peer(&self) -> Option<Arc<Peer>> {
        self.peer.get().and_then(Weak::upgrade)
    }

    /// Makes this process the one that messages go to from now on.
    fn begin(&self, state: &mut State, started: Started) -> (Arc<Process>, Output) {
        let Started { process, stdin, output, stderr } = started;
        state.last_words = stderr.map(|reader| {
            let last =
                Arc::new(LastWords { events: self.events.clone(), line: Mutex::default(), over: Signal::default() });
            let (heard, process) = (last.clone(), process.clone());
            runtime::spawn(async move {
                read_stderr(reader, heard.clone(), process).await;
                heard.over.set();
            });
            last
        });
        (state.stdin, state.process) = (Some(stdin), Some(process.clone()));
        (process, output)
    }

    /// Starts another process, unless none is wanted any more.
    fn begin_next(&self) -> Option<Result<(Arc<Process>, Output)>> {
        let mut state = self.lock();
        // Whoever closes sets it before he looks for the process, which he finds then.
        (!self.over.is_set()).then(|| Ok(self.begin(&mut state, child::start(&self.target, &self.inherit)?)))
    }

    /// Reads what a process says, and sees to its end.
    async fn follow(self: Arc<Self>, process: Arc<Process>, output: Output, peer: Arc<Peer>) {
        let Some(mut reason) = output.read(&peer, self.limits).await else { return };
        // A server that was open before is known by now.
        if peer.revision().is_none() && self.lock().restarts.is_empty() {
            let (stdin, last) = {
                let state = self.lock();
                (state.stdin.clone(), state.last_words.clone())
            };
            reason = self.told(&reason, last.as_deref()).await;
            if stdin.is_some_and(|stdin| stdin.is_untouched()) {
                peer.handle(Input::Unheard(reason.clone()));
            }
        }
        if !self.restart {
            peer.close(&reason);
            drop(peer);
            // Processes that it has left behind are ended while they can still be known.
            self.end_input();
            return process.end(self.grace).await;
        }
        self.lock().reason.clone_from(&reason);
        self.end_input();
        peer.handle(Input::Lost(reason));
        drop(peer);
        process.end(self.grace).await;
    }

    /// Words the reason why a server ended before it was open: with its command, and its last words, if they are heard
    /// here.
    async fn told(&self, reason: &str, last: Option<&LastWords>) -> String {
        let mut text = format!("{reason}; it is {}", shown(&self.target));
        if let Some(last) = last {
            // They are on their way still.
            let _ = tokio::time::timeout(LAST_WORDS, last.over.wait()).await;
            if let Some(line) = last.line() {
                text.push_str(&format!(", and the last line of its standard error is {line:?}"));
            }
        }
        text
    }

    /// Starts the next process, unless this is over before.
    async fn restart(self: Arc<Self>) {
        let (process, output) = loop {
            let Some(pause) = self.turn() else { return self.give_up() };
            let before = self.lock().process.clone();
            let wait = async {
                // It may hold what the next one needs.
                if let Some(before) = before {
                    before.ended.wait().await;
                }
                tokio::time::sleep(pause).await;
            };
            if self.over.unless(wait).await.is_none() {
                return;
            }
            match self.begin_next() {
                Some(Ok(begun)) => break begun,
                Some(Err(error)) => self.lock().reason = error.message().to_owned(),
                None => return,
            }
        };
        // Whoever drops the client closes it.
        let Some(peer) = self.peer() else { return };
        // Before its end can be read.
        peer.handle(Input::Restarted);
        self.follow(process, output, peer).await;
    }

    /// The pause before the next start; none when there were too many.
    fn turn(&self) -> Option<Duration> {
        let (mut state, now) = (self.lock(), Instant::now());
        while state.restarts.front().is_some_and(|start| now.duration_since(*start) >= WINDOW) {
            state.restarts.pop_front();
        }
        let before = state.restarts.len();
        if before >= MAX_RESTARTS {
            return None;
        }
        state.restarts.push_back(now);
        Some(if before == 0 { Duration::ZERO } else { PAUSE * (1 << (before - 1)) })
    }

    fn give_up(&self) {
        let reason = std::mem::take(&mut self.lock().reason);
        if let Some(peer) = self.peer() {
            let seconds = WINDOW.as_secs();
            peer.close(&format!("{reason}; starting it again did not help {MAX_RESTARTS} times within {seconds} s"));
        }
    }

    fn end_input(&self) {
        let stdin = self.lock().stdin.take();
        drop(stdin);
    }
}

impl Sink for Program {
    fn send(&self, batch: Vec<Outbound>) {
        let stdin = self.lock().stdin.clone();
        if let Some(stdin) = stdin {
            stdin.send(batch);
        }
    }

    fn start(&self) {
        if let Some(own) = self.own.upgrade() {
            runtime::spawn(own.restart());
        }
    }

    fn close(&self) {
        self.over.set();
        self.end_input();
    }
}

impl Closer for Program {
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.over.set();
        if let Some(peer) = self.peer() {
            peer.close("the client was closed");
        }
        self.end_input();
        let (process, grace) = (self.lock().process.clone(), self.grace);
        Box::pin(async move {
            if let Some(process) = process {
                process.end(grace).await;
            }
        })
    }
}
