//! A client for as long as a command takes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{Notify, watch};
use tricorn::bridge::Reason;
use tricorn::cassette::Cassette;
use tricorn::client::{Client, ClientOptions, Events, Handlers, Target};
use tricorn::jsonrpc::RawJson;
use tricorn::protocol::LogLevel;
use tricorn::protocol::revision::Revision;
use tricorn::{CallOptions, Error, TaskOptions};

use crate::arguments::Connection;
use crate::bridge::Bridge;
use crate::failure::{Failure, INTERRUPTED, Outcome, UNREACHABLE};
use crate::interrupts::Interrupts;
use crate::launcher::Launcher;
use crate::logins::with_login;
use crate::output::{Screen, one_line, shown};
use crate::questions;
use crate::targets::{self, Elsewhere, Found, Kind, Reach, Way};

/// Lines that are kept of a server until it is connected.
const OPENING: usize = 200;
/// Time that a server that failed is listened to after its last line.
const QUIET: Duration = Duration::from_millis(50);
/// The time that a program has to answer after it has written a line that is no message.
const BABBLE: Duration = Duration::from_secs(60);
/// The longest wait for a server that has not shown yet which era it speaks.
const PROBE: Duration = Duration::from_secs(5);

/// Reason to believe that a program is no server.
const OTHER: &str = "it writes other lines than messages, and answers nothing";
/// Words of an answer to a question that should not have come.
const ECHOED: &str = "the connection is not open yet";

/// A connected client and what is known of its server.
pub(crate) struct Session {
    pub(crate) client: Client,
    /// The target's name for people.
    pub(crate) name: String,
    pub(crate) screen: Screen,
    /// True if whoever calls can be asked: then requests take as long as they take.
    waits: bool,
    /// Bridge between, when the target is many servers.
    bridge: Option<Bridge>,
}

/// Messages of the server that are heard while the command runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hears {
    /// Nothing: a request or two, and no calls.
    Nothing,
    /// Its log, and its questions.
    All,
}

/// The runtime of one command: one thread, as there is one user.
pub(crate) fn runtime() -> Outcome<tokio::runtime::Runtime> {
    let made = Builder::new_current_thread().enable_all().build();
    made.map_err(|error| Failure::new(UNREACHABLE, format!("the system gives no more threads or files: {error}")))
}

/// Connects, does the work and closes. The first Ctrl-C drops the work, which cancels what it has asked for.
pub(crate) fn run(
    text: &str,
    connection: &Connection,
    hears: Hears,
    launcher: &Launcher,
    screen: &Screen,
    work: impl AsyncFnOnce(&Session) -> Outcome<u8>,
) -> Outcome<u8> {
    log_level(&connection.log_level)?;
    let found = targets::find(text, connection, &Way::Streams, launcher, screen)?;
    run_found(found, connection, hears, screen, work)
}

/// The same with a target that was found.
pub(crate) fn run_found(
    found: Found,
    connection: &Connection,
    hears: Hears,
    screen: &Screen,
    work: impl AsyncFnOnce(&Session) -> Outcome<u8>,
) -> Outcome<u8> {
    let level = log_level(&connection.log_level)?;
    let runtime = runtime()?;
    let outcome = runtime.block_on(async {
        let interrupts = Interrupts::with_termination();
        let connecting = connect(found, connection, hears, screen);
        let Some(session) = interrupts.first(connecting).await else {
            screen.line("interrupted: there was no connection yet");
            return Err(Failure::silent(INTERRUPTED));
        };
        let session = session?;
        let working = async {
            if let (Hears::All, Some(level)) = (hears, level) {
                session.ask_for_log(level).await;
            }
            work(&session).await
        };
        let outcome = interrupts.first(working).await;
        screen.end_progress();
        if outcome.is_none() {
            screen.line("cancelled (Ctrl-C again quits at once)");
        }
        if interrupts.second(session.close()).await.is_none() {
            return Err(Failure::silent(INTERRUPTED));
        }
        outcome.unwrap_or_else(|| Err(Failure::silent(INTERRUPTED)))
    });
    // A thread may wait for the terminal.
    runtime.shutdown_background();
    outcome
}

async fn connect(found: Found, connection: &Connection, hears: Hears, screen: &Screen) -> Outcome<Session> {
    let options = options(connection);
    let heard = Arc::new(Heard::new(screen, connection.log_level == "debug"));
    let handlers = match hears {
        Hears::All => {
            questions::handlers(connection.sampler.as_deref(), connection.timeout, screen, &Handle::current())?
        }
        Hears::Nothing => Handlers::new(),
    };
    // Hearing of changes costs a request.
    let is_program = matches!(found.reach, Reach::One(Target::Command { .. }));
    let is_heard = hears == Hears::All || is_program;
    let handlers = if is_heard { handlers.events(heard.clone()) } else { handlers };
    let (name, is_file) = (found.name.clone(), found.kind == Kind::File);
    let runner = match &found.reach {
        Reach::One(Target::Command { command, .. }) if is_file => Some(command.clone()),
        _ => None,
    };
    let address = match &found.reach {
        Reach::One(Target::Url { url, .. }) => url.clone(),
        _ => name.clone(),
    };
    let (connected, bridge) = match &found.reach {
        Reach::One(target) if !is_adapted(target, &options)? => {
            let mut options = with_login(options, target, screen).await;
            if let (Some(limit), Target::Command { .. }) = (given_limit(connection), target) {
                // It has to answer within the limit, also one that knows nothing of the first question.
                options = options.probe_timeout((limit / 2).min(PROBE));
            }
            tokio::select! {
                connected = Client::connect_with(target, &options, &handlers) => (connected, None),
                failure = heard.elsewhere.serves(&found) => return Err(failure),
                failure = given_up(&heard, target, connection, &name) => return Err(failure),
            }
        }
        _ => {
            let own = options.clone();
            // Messages are seen on this side of the bridge.
            let options = options.unrecorded();
            let options = if matches!(found.reach, Reach::Many(_)) { options } else { options.any_revision() };
            let bridge = Bridge::for_client(found, options, screen, &handlers).await?;
            (Client::in_memory_with(&bridge.server, &own, &handlers).await, Some(bridge))
        }
    };
    let client = match connected {
        Ok(client) => client,
        Err(error) => {
            if is_heard {
                let mut lines = heard.failed().await;
                // The runner of Python files has said why the target does not start.
                let said = lines.back().and_then(|line| line.strip_prefix(&file_name(&name)?)).map(str::to_owned);
                if let Some(said) = said.filter(|_| is_file && error.reason() == Some(Reason::Ended(Some(2)))) {
                    lines.pop_back();
                    lines.iter().for_each(|line| screen.line(line));
                    return Err(Failure::misuse(format!("{name}: {said}")));
                }
                lines.iter().for_each(|line| screen.line(line));
            }
            // A question of ours that comes back is refused, as a server's would be.
            if is_program && error.message().contains(ECHOED) {
                return Err(Failure::no_server(&name, "it sends back what it gets"));
            }
            // The address may have a secret in it, which its name has not.
            let mut failure = Failure::connecting(&name, &error);
            failure.message = failure.message.replace(&address, &name);
            if let (Some(runner), Some(Reason::Ended(code))) = (runner, error.reason()) {
                failure.message.push_str(&format!("; it was run by {runner}"));
                if code == Some(0) {
                    failure.message.push_str(", and ended without serving anything: a server calls its run()");
                }
            }
            return Err(failure);
        }
    };
    heard.connected();
    let waits = screen.can_ask() && connection.timeout.is_none();
    Ok(Session { client, name, screen: screen.clone(), waits, bridge })
}

/// Says if a bridge has to stand before a cassette, which was recorded in another revision than the one that is asked for.
fn is_adapted(target: &Target, options: &ClientOptions) -> Outcome<bool> {
    let (Target::Replay { file, .. }, Some(asked)) = (target, options.get_revision()) else { return Ok(false) };
    let cassette = Cassette::read(file).map_err(|error| Failure::misuse(error.message()))?;
    let recorded = cassette.revision().and_then(|name| Revision::parse(&name));
    Ok(recorded.is_some_and(|recorded| asked != recorded.as_str() && asked != recorded.era().as_str()))
}

fn given_limit(connection: &Connection) -> Option<Duration> {
    connection.timeout.filter(|limit| !limit.is_zero())
}

/// Waits until a program had this time to answer: one that is silent is asked more than once. A person may log in at a
/// URL meanwhile.
async fn late(target: &Target, limit: Option<Duration>) {
    match limit.filter(|_| matches!(target, Target::Command { .. })) {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Waits until a program had its time, and says what it did instead of answering.
async fn given_up(heard: &Heard, target: &Target, connection: &Connection, name: &str) -> Failure {
    tokio::select! {
        () = late(target, given_limit(connection)) => {}
        () = heard.babbled(), if connection.timeout.is_none() => {}
    }
    heard.failed().await.iter().for_each(|line| heard.screen.line(line));
    if heard.babbles() { Failure::no_server(name, OTHER) } else { Failure::late(name) }
}

/// The beginning of a line that is about this file.
fn file_name(target: &str) -> Option<String> {
    let name = targets::parts(target).0.file_name()?;
    Some(format!("{}: ", name.to_string_lossy()))
}

/// The client's options as the command line has them.
pub(crate) fn options(connection: &Connection) -> ClientOptions {
    let mut options = ClientOptions::new().tasks(TaskOptions::new()).restart(false);
    if let Some(timeout) = connection.timeout {
        options = options.request_timeout(timeout);
        if !timeout.is_zero() {
            options = options.probe_timeout(timeout.min(PROBE));
        }
    }
    if let Some(revision) = &connection.revision {
        options = options.revision(revision);
    }
    if let Some(file) = &connection.record {
        options = options.record(file);
    }
    options = options.redact(!connection.no_redact);
    connection.header.iter().fold(options, |options, (name, value)| options.header(name, value))
}

fn log_level(name: &str) -> Outcome<Option<LogLevel>> {
    if name == "none" {
        return Ok(None);
    }
    name.parse().map(Some).map_err(|_| {
        Failure::misuse(format!(
            "--log-level {name}: expected debug, info, notice, warning, error, critical, alert, emergency or none"
        ))
    })
}

impl Session {
    async fn close(&self) {
        self.client.close().await;
        if let Some(bridge) = &self.bridge {
            bridge.close().await;
        }
    }

    /// The options of a request that may take long.
    pub(crate) fn patient(&self) -> CallOptions {
        let options = CallOptions::new();
        if self.waits { options.timeout(Duration::ZERO) } else { options }
    }

    /// Sends a request and gives its result as it came.
    pub(crate) async fn request(
        &self,
        what: &str,
        method: &str,
        params: &Value,
        options: &CallOptions,
    ) -> Outcome<RawJson> {
        let outcome = self.client.request(method, Some(RawJson::from_value(params)), options).await;
        match outcome {
            Ok(result) => Ok(result),
            Err(error) => Err(self.failed(what, &error).await),
        }
    }

    /// Makes the failure of a request's error, after offering the pages that it wants visited.
    pub(crate) async fn failed(&self, what: &str, error: &Error) -> Failure {
        questions::visit(&self.screen, error).await;
        Failure::requesting(what, error)
    }

    async fn ask_for_log(&self, level: LogLevel) {
        if self.client.capabilities().has("logging") {
            #[expect(deprecated, reason = "servers that log in this way are there")]
            let outcome = self.client.set_log_level(level).await;
            if let Err(error) = outcome {
                let why = error.message();
                self.screen.warn(&format!("the server refuses logging/setLevel, so its log may be incomplete: {why}"));
            }
        }
    }
}

/// Writes on standard error what is heard of a server.
struct Heard {
    screen: Screen,
    /// The last lines that it wrote before it was connected: they are about the question for its era, which older servers
    /// do not know, or say why it could not start.
    opening: Mutex<Option<VecDeque<String>>>,
    told: Notify,
    elsewhere: Elsewhere,
    /// It has written a line that is no message.
    babbles: watch::Sender<bool>,
}

impl Heard {
    fn new(screen: &Screen, all: bool) -> Self {
        let opening = if all { None } else { Some(VecDeque::new()) };
        Self {
            screen: screen.clone(),
            opening: Mutex::new(opening),
            told: Notify::new(),
            elsewhere: Elsewhere::default(),
            babbles: watch::Sender::new(false),
        }
    }

    fn babbles(&self) -> bool {
        *self.babbles.borrow()
    }

    /// Waits until a program has written something else than messages, and had time to answer after that.
    async fn babbled(&self) {
        if self.babbles.subscribe().wait_for(|babbles| *babbles).await.is_err() {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(BABBLE).await;
    }

    fn take(&self) -> Option<VecDeque<String>> {
        self.opening.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn connected(&self) {
        drop(self.take());
    }

    /// The lines, when no more come.
    async fn failed(&self) -> VecDeque<String> {
        while tokio::time::timeout(QUIET, self.told.notified()).await.is_ok() {}
        self.take().unwrap_or_default()
    }
}

impl Events for Heard {
    fn notification(&self, method: &str, params: Option<&RawJson>) {
        if method != "notifications/message" {
            return;
        }
        let Some(Ok(told)) = params.map(RawJson::to::<Value>) else { return };
        let level = told["level"].as_str().unwrap_or("info");
        let logger = told["logger"].as_str().map(|name| format!(" {}", one_line(name))).unwrap_or_default();
        let text = match &told["data"] {
            Value::String(text) => one_line(text),
            data => one_line(&data.to_string()),
        };
        let style = self.screen.error_style();
        let head = format!("[{}{logger}]", one_line(level));
        let head = match level {
            "debug" | "info" | "notice" => style.dim(&head),
            "warning" => style.warning(&head),
            _ => style.error(&head),
        };
        self.screen.line(&format!("{head} {text}"));
    }

    fn stderr(&self, line: &str) {
        self.elsewhere.look(line);
        let line = shown(line);
        let mut opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lines) = opening.as_mut() else {
            drop(opening);
            return self.screen.line(&line);
        };
        if lines.len() >= OPENING {
            lines.pop_front();
        }
        lines.push_back(line.into_owned());
        drop(opening);
        self.told.notify_one();
    }

    fn warning(&self, message: &str) {
        // Lines of its output that are no messages.
        self.elsewhere.look(message);
        if message.contains("has a line that is no message") {
            self.babbles.send_replace(true);
        }
        self.screen.warn(message);
    }
}
