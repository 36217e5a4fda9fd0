//! Begin and end of servers: they say `ready <url>` on standard error, write nothing but the protocol on standard
//! output, and are gone soon after the end of their input or SIGTERM, idle or in the middle of a call.

use crate::Outcome;
use crate::launch::{Listening, root};
use crate::leaks::http::Client;
use crate::options::Options;
use crate::pattern::{MODERN, brief, shorten};
use crate::replay::outgoing::{Outgoing, complete, headers};
use crate::report::Report;
use crate::script::Transport;
use crate::wire::http::{Connection, Exchange, Request};
use crate::wire::stdio::{Ended, Launch, Pipe};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A launcher ends within a second. On a machine that is busy with other tests it may be given its turn later than
/// that, so only this is a failure; what it took is printed.
const LIMIT: Duration = Duration::from_secs(5);

/// A launcher below `examples/`, what selects stdio there, and whether it has the fixture tools.
const SERVERS: [(&str, &str, Option<&str>, bool); 3] = [
    ("everything", "run", Some("--stdio"), true),
    ("bench", "run", Some("--stdio"), false),
    ("quickstart", "run-server", None, false),
];

/// Sign for a server to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signal {
    Eof,
    Terminate,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Eof => "the end of its input",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// Start and end every server of a language.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let language = options.language.as_str();
    if language.is_empty() {
        return Err("say --lang rust|python|node|swift".into());
    }
    let wants = |transport| options.transport.is_none_or(|only| only == transport);
    for (folder, program, mode, fixtures) in SERVERS {
        let program = root()?.join("examples").join(folder).join(language).join(program);
        let command = vec![program.to_string_lossy().into_owned()];
        for busy in [false, true].into_iter().filter(|busy| fixtures || !busy) {
            let state = if busy { "in the middle of a call" } else { "idle" };
            for signal in [Signal::Eof, Signal::Terminate].into_iter().filter(|_| wants(Transport::Stdio)) {
                let name = format!("{language} {folder} stdio, {state}, ends on {}", signal.name());
                let mut words = command.clone();
                words.extend(mode.map(str::to_owned));
                let launch = Launch { words, environment: Vec::new() };
                record(report, options, &name, || over_stdio(&launch, signal, busy, options.timeout));
            }
            if wants(Transport::Http) {
                let name = format!("{language} {folder} http, {state}, ends on {}", Signal::Terminate.name());
                record(report, options, &name, || over_http(&command, busy, options.timeout));
                for modern in [true, false].into_iter().filter(|_| busy) {
                    let revision = if modern { MODERN } else { "a session" };
                    let name = format!("{language} {folder} http, {revision}, answers before it ends");
                    record(report, options, &name, || drained(&command, modern, options.timeout));
                }
            }
        }
    }
    Ok(())
}

fn record(report: &mut Report, options: &Options, name: &str, attempt: impl FnOnce() -> Outcome<Duration>) {
    if options.wants(name) {
        let outcome = attempt().map(|took| println!("# {name}: after {:.3} s", took.as_secs_f64()));
        report.record(name, outcome);
    }
}

fn over_stdio(launch: &Launch, signal: Signal, busy: bool, limit: Duration) -> Outcome<Duration> {
    let mut pipe = Pipe::open(launch)?;
    pipe.send(&list().bytes)?;
    answered(pipe.next(limit)?)?;
    if busy {
        let mut call = json!({"id": 2, "method": "tools/call", "params": {
            "name": "slow", "arguments": {"ms": 600_000}, "_meta": {"progressToken": 2}}});
        complete(&mut call, true);
        pipe.send(call.to_string().as_bytes())?;
        pipe.next(limit)?.ok_or("the server ended")?;
    }
    let started = Instant::now();
    let Ended { unread, status } = match signal {
        Signal::Eof => pipe.finish(LIMIT)?,
        Signal::Terminate => pipe.terminate(LIMIT)?,
    };
    let took = started.elapsed();
    if let Some(message) = unread.iter().find(|message| !busy || message.get("result").is_some()) {
        return Err(format!("a message nobody expected: {}", brief(message)));
    }
    if signal == Signal::Eof && !status.success() {
        return Err(format!("it ended with {status}"));
    }
    Ok(took)
}

fn over_http(command: &[String], busy: bool, limit: Duration) -> Outcome<Duration> {
    // A call that does not end is not waited for.
    let patience = busy.then(|| ("EVERYTHING_DRAIN_TIMEOUT".to_owned(), "0.2".to_owned()));
    let server = Listening::start(command, patience.as_slice())?;
    let outgoing = list();
    let request = Request {
        method: "POST".into(),
        path: server.endpoint.path.clone(),
        headers: headers(&outgoing, MODERN, None, None),
        body: Some(outgoing.bytes),
    };
    let mut exchange = Exchange::start(Connection::open(&server.endpoint)?, &request, &server.endpoint.authority)?;
    answered(exchange.next(limit)?)?;
    // Connections stay open: an end that waits for its peers would never come.
    let (_kept, _running) = match busy {
        false => (exchange.recycle(), None),
        true => (None, Some(Client::open(&server.endpoint, true, limit)?.start_slow()?)),
    };
    let started = Instant::now();
    let said = server.terminate(LIMIT)?;
    let took = started.elapsed();
    if said.is_empty() { Ok(took) } else { Err(format!("on standard output: {}", shorten(&said))) }
}

/// A call that runs at SIGTERM is answered, and nobody else is taken meanwhile.
fn drained(command: &[String], modern: bool, limit: Duration) -> Outcome<Duration> {
    let mut server = Listening::start(command, &[])?;
    let mut client = Client::open(&server.endpoint, modern, limit)?;
    let mut call = client.start_slow_for(RUNS)?;
    let started = Instant::now();
    server.ask_to_end()?;
    while let Ok(connection) = Connection::open(&server.endpoint) {
        if started.elapsed() > limit || !server.alive() {
            return Err("connections are taken for as long as the server is there".into());
        }
        drop(connection);
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut last = None;
    while let Some(message) = call.next(limit)? {
        last = Some(message);
    }
    let last = last.ok_or("the call was cut")?;
    if last.pointer("/result/content/0/text") != Some(&json!(format!("slept {RUNS} ms"))) {
        return Err(format!("the call was not answered: {}", brief(&last)));
    }
    let said = server.ended(LIMIT)?;
    let took = started.elapsed();
    if said.is_empty() { Ok(took) } else { Err(format!("on standard output: {}", shorten(&said))) }
}

/// Milliseconds that a call takes which is waited for.
const RUNS: u64 = 1500;

fn list() -> Outgoing {
    let mut message = json!({"id": 1, "method": "tools/list"});
    complete(&mut message, true);
    Outgoing { bytes: message.to_string().into_bytes(), value: Some(message) }
}

fn answered(answer: Option<Value>) -> Outcome {
    let answer = answer.ok_or("no answer")?;
    if answer.pointer("/result/tools").is_some() { Ok(()) } else { Err(format!("no tools: {}", brief(&answer))) }
}
