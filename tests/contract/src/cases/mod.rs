//! API cases: a client of one language, told step by step what to do, against a fixture server, one behind a proxy that
//! breaks connections, or a scripted one. What it reports is compared here, so that the runners stay tiny and all
//! languages are held to the same words.

pub(crate) mod file;
pub(crate) mod runner;

use crate::launch::{self, Listening};
use crate::options::Options;
use crate::pattern::{self, Captures, MODERN, Strictness, brief};
use crate::peer::{self, over_http::Serving};
use crate::proxy::Proxy;
use crate::report::Report;
use crate::script::Transport;
use crate::wire::http::Endpoint;
use crate::{Failure, Outcome};
use file::{Case, Expected, Step};
use runner::Runner;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Run every case that has no proxy, on every transport it is for.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let command = match &options.server {
        Some(line) => words(line),
        None => launch::fixture(options.get("against").unwrap_or(&options.language))?,
    };
    meet(options, &options.language, (&options.language, command), |case| case.proxy.is_none(), report)
}

/// Run every case that has a proxy: the language's client against the fixture server in Rust, then a client in Rust
/// against the language's fixture server.
pub fn run_cuts(options: &Options, report: &mut Report) -> Outcome {
    let language = options.language.as_str();
    let is_cut = |case: &Case| case.proxy.is_some();
    if let Some(line) = &options.server {
        return meet(options, language, (language, words(line)), is_cut, report);
    }
    meet(options, &format!("{language} client"), (language, launch::fixture("rust")?), is_cut, report)?;
    if language == "rust" {
        return Ok(());
    }
    meet(options, &format!("{language} server"), ("rust", launch::fixture(language)?), is_cut, report)
}

/// Server at a URL for as long as this is kept.
pub(crate) trait Site {
    fn url(&self) -> &str;
}

impl Site for Listening {
    fn url(&self) -> &str {
        &self.url
    }
}

/// Builds the site of an environment.
type Build<'a> = &'a dyn Fn(&[(String, String)]) -> Outcome<Box<dyn Site>>;

/// Run the cases of `rounds.json` in the stateless revision against sites of the caller's.
pub(crate) fn run_rounds(options: &Options, build: Build<'_>, report: &mut Report) -> Outcome {
    let language = options.language.as_str();
    let is_meant = |case: &Case| {
        case.file == "rounds" && case.peer.is_none() && case.options.get("revision").is_some_and(|name| name == MODERN)
    };
    meet_at(options, &format!("{language} two processes"), (language, Vec::new()), build, is_meant, report)
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Run the cases that are wanted with one language's runner against one server; their names begin with `title`.
fn meet(
    options: &Options,
    title: &str,
    (client, command): (&str, Vec<String>),
    is_meant: impl Fn(&Case) -> bool,
    report: &mut Report,
) -> Outcome {
    let start =
        |environment: &[(String, String)]| Ok(Box::new(Listening::start(&command, environment)?) as Box<dyn Site>);
    meet_at(options, title, (client, command.clone()), &start, is_meant, report)
}

/// The same, with other servers over HTTP.
fn meet_at(
    options: &Options,
    title: &str,
    (client, command): (&str, Vec<String>),
    build: Build<'_>,
    is_meant: impl Fn(&Case) -> bool,
    report: &mut Report,
) -> Outcome {
    let folder = launch::root()?.join("tests/cases");
    let mut world = World {
        runner: None,
        client,
        title,
        command,
        build,
        servers: BTreeMap::new(),
        folder: folder.clone(),
        scratch: std::env::temp_dir().join(format!("contract-cases-{}", std::process::id())),
        clients: 0,
        options,
    };
    std::fs::create_dir_all(&world.scratch).map_err(|error| error.to_string())?;
    let outcome = file::read_all(&folder).and_then(|cases| {
        for case in cases.iter().filter(|case| is_meant(case)) {
            world.run(case, report)?;
        }
        Ok(())
    });
    let _ = std::fs::remove_dir_all(&world.scratch);
    if let Some(runner) = world.runner.take() {
        report.record(&format!("{title} runner ends by itself"), runner.finish());
    }
    outcome
}

/// A case as `file/name`, with the languages it is skipped in and why.
pub type Named = (String, Vec<(String, String)>);

/// Every case.
pub fn names(folder: &Path) -> Outcome<Vec<Named>> {
    Ok(file::read_all(folder)?.into_iter().map(|case| (format!("{}/{}", case.file, case.name), case.skips)).collect())
}

struct World<'a> {
    runner: Option<Runner>,
    /// The runner's language.
    client: &'a str,
    /// Beginning of the names in the report.
    title: &'a str,
    /// The fixture server, over stdio.
    command: Vec<String>,
    /// The fixture server, over HTTP.
    build: Build<'a>,
    servers: BTreeMap<Vec<(String, String)>, Box<dyn Site>>,
    folder: PathBuf,
    scratch: PathBuf,
    clients: u64,
    options: &'a Options,
}

/// The server's side of one case.
enum Peer {
    Fixture,
    Proxy(Proxy),
    Http(Serving),
    Stdio(PathBuf),
}

impl World<'_> {
    fn run(&mut self, case: &Case, report: &mut Report) -> Outcome {
        for transport in &case.transports {
            if self.options.transport.is_some_and(|only| only != *transport) {
                continue;
            }
            let name = format!("{} {} {} {}", self.title, transport.name(), case.file, case.name);
            if !self.options.wants(&name) {
                continue;
            }
            if let Some((_, reason)) = case.skips.iter().find(|(gap, _)| *gap == self.options.language || gap == "all")
            {
                report.skip(&name, reason);
                continue;
            }
            // A runner that died fails one case, not all that follow.
            if self.runner.as_mut().is_none_or(|runner| !runner.alive()) {
                self.runner = Some(Runner::start(self.client, self.options.timeout)?);
            }
            let outcome = self.attempt(case, *transport);
            if outcome.is_err()
                && self.options.verbose
                && let Some(runner) = &self.runner
            {
                runner.log().iter().for_each(|line| println!("    | {line}"));
            }
            report.record(&name, outcome);
        }
        Ok(())
    }

    fn attempt(&mut self, case: &Case, transport: Transport) -> Outcome {
        self.clients += 1;
        let (target, peer) = self.target(case, transport)?;
        let mut captures = Captures::from([("target".to_owned(), target.clone())]);
        let runner = self.runner.as_mut().ok_or("no runner")?;
        let mut play = Play::new(runner, self.clients, self.options.timeout);
        let outcome = play.all(case, &target, &mut captures);
        let closed = play.close();
        // What the peer saw explains what the client reports: it comes first.
        match peer {
            Peer::Fixture => outcome.and(closed),
            Peer::Proxy(proxy) => both(proxy.finish(), outcome.and(closed)),
            Peer::Http(serving) => both(serving.finish(), outcome.and(closed)),
            Peer::Stdio(path) => {
                let seen = wait_for_report(
                    &path,
                    if outcome.is_ok() { self.options.timeout } else { Duration::from_millis(500) },
                );
                both(seen, outcome.and(closed))
            }
        }
    }

    fn target(&mut self, case: &Case, transport: Transport) -> Outcome<(Value, Peer)> {
        let Some(script) = &case.peer else {
            if transport == Transport::Stdio {
                let environment: Map<String, Value> =
                    case.environment.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
                let mut words = self.command.clone();
                words.push("--stdio".into());
                let target = json!({"command": words[0], "args": words[1..], "env": environment, "stderr": "discard"});
                return Ok((target, Peer::Fixture));
            }
            if !self.servers.contains_key(&case.environment) {
                let server = (self.build)(&case.environment)?;
                self.servers.insert(case.environment.clone(), server);
            }
            let url = self.servers[&case.environment].url();
            let url = match &case.path {
                Some(path) => format!("http://{}{path}", Endpoint::parse(url)?.authority),
                None => url.to_owned(),
            };
            let Some(rules) = &case.proxy else {
                return Ok((json!({"url": url}), Peer::Fixture));
            };
            let (proxy, url) = Proxy::in_front_of(&url, rules)?;
            return Ok((json!({"url": url}), Peer::Proxy(proxy)));
        };
        let path = self.folder.join(script);
        if transport == Transport::Http {
            let serving = Serving::start(peer::read(&path)?, "127.0.0.1:0")?;
            return Ok((json!({"url": serving.url()}), Peer::Http(serving)));
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let state = self.scratch.join(format!("{}.state", self.clients));
        let seen = self.scratch.join(format!("{}.report", self.clients));
        let words: [&Path; 6] =
            [&path, Path::new("--stdio"), Path::new("--state"), &state, Path::new("--report"), &seen];
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let arguments: Vec<String> = std::iter::once("peer".to_owned()).chain(words).collect();
        Ok((json!({"command": program, "args": arguments, "stderr": "discard"}), Peer::Stdio(seen)))
    }
}

fn both(peer: Outcome, client: Outcome) -> Outcome {
    match (peer, client) {
        (Ok(()), client) => client,
        (Err(seen), Ok(())) => Err(seen),
        (Err(seen), Err(reported)) => Err(format!("{seen}; the client: {reported}")),
    }
}

fn wait_for_report(path: &Path, limit: Duration) -> Outcome {
    let deadline = Instant::now() + limit;
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text == "ok" => return Ok(()),
            Ok(text) if !text.is_empty() => return Err(text),
            _ if Instant::now() > deadline => return Err("the peer did not end".into()),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// One case under way.
pub(crate) struct Play<'a> {
    runner: &'a mut Runner,
    client: u64,
    limit: Duration,
    /// Calls that run in the background, by name.
    started: BTreeMap<String, u64>,
}

impl<'a> Play<'a> {
    pub(crate) fn new(runner: &'a mut Runner, client: u64, limit: Duration) -> Self {
        Self { runner, client, limit, started: BTreeMap::new() }
    }

    fn all(&mut self, case: &Case, target: &Value, captures: &mut Captures) -> Outcome {
        if case.steps.first().is_none_or(|step| step.command != "connect") {
            let connect = Step::connect();
            self.step(&connect, case, target, captures).map_err(|reason| format!("connect: {reason}"))?;
        }
        for (number, step) in case.steps.iter().enumerate() {
            self.step(step, case, target, captures)
                .map_err(|reason| format!("step {} ({}): {reason}", number + 1, step.command))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, case: &Case, target: &Value, captures: &mut Captures) -> Outcome {
        let deadline = Instant::now() + self.limit;
        loop {
            let outcome = self.once(step, case, target, captures);
            if outcome.is_ok() || !step.repeat || Instant::now() > deadline {
                return outcome;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn once(&mut self, step: &Step, case: &Case, target: &Value, captures: &mut Captures) -> Outcome {
        let answer = self.answer(step, &case.options, target, captures)?;
        answer.map_or(Ok(()), |answer| compare(&step.expected, step.exact, &answer, captures))
    }

    /// Do a step; what the runner says, unless the step only starts a call.
    pub(crate) fn answer(
        &mut self,
        step: &Step,
        options: &Map<String, Value>,
        target: &Value,
        captures: &Captures,
    ) -> Outcome<Option<Value>> {
        let named = |name: &Option<String>| name.clone().ok_or_else(|| "\"call\" is missing".to_owned());
        Ok(Some(match step.command.as_str() {
            "wait" => {
                let name = named(&step.call)?;
                let id = self.started.remove(&name).ok_or_else(|| format!("no call {name:?} was started"))?;
                self.runner.answer(id)?
            }
            "progress" => {
                let name = named(&step.call)?;
                let id = self.started.get(&name).ok_or_else(|| format!("no call {name:?} was started"))?;
                json!({"result": self.runner.progress(*id)?})
            }
            _ => {
                let mut command = pattern::fill(&step.arguments, captures)?;
                command["do"] = step.command.clone().into();
                command["client"] = self.client.into();
                if step.command == "connect" {
                    command["target"] = target.clone();
                    let mut options = options.clone();
                    options
                        .extend(step.arguments.get("options").and_then(Value::as_object).cloned().unwrap_or_default());
                    command["options"] = options.into();
                }
                if step.command == "cancel" {
                    let name = named(&step.call)?;
                    let id = self.started.get(&name).ok_or_else(|| format!("no call {name:?} was started"))?;
                    command["call"] = (*id).into();
                }
                let id = self.runner.send(command)?;
                if let Some(name) = &step.start {
                    self.started.insert(name.clone(), id);
                    return Ok(None);
                }
                let mut answer = self.runner.answer(id)?;
                if let Some(result) = answer.get_mut("result").and_then(Value::as_object_mut)
                    && step.arguments.get("progress").is_some()
                {
                    result.insert("progress".into(), self.runner.take_progress(id).into());
                }
                answer
            }
        }))
    }

    pub(crate) fn close(&mut self) -> Outcome {
        let id = self.runner.send(json!({"do": "close", "client": self.client}))?;
        self.runner.answer(id).map(|_| ())
    }
}

pub(crate) fn compare(expected: &Expected, exact: bool, answer: &Value, captures: &mut Captures) -> Outcome {
    let how = if exact { Strictness::Exact } else { Strictness::Subset };
    match (expected, answer.get("result"), answer.get("error")) {
        (Expected::Nothing, Some(_), _) => Ok(()),
        (Expected::Result(pattern), Some(result), _) => pattern::check(pattern, result, how, captures),
        (Expected::Error(pattern), _, Some(error)) => pattern::check(pattern, error, how, captures),
        (Expected::Error(_), Some(result), _) => Err(format!("expected an error, got {}", brief(result))),
        (_, _, Some(error)) => Err(failure(error)),
        _ => Err(format!("the runner says {}", brief(answer))),
    }
}

fn failure(error: &Value) -> Failure {
    format!("failed: {}", brief(error))
}
