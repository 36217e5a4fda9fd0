//! Cassettes: every fixture server of every language is recorded by clients and by the command, and each cassette is
//! played by the client of every language. Its results have to be those of the live server, and no secret of that
//! connection is in the file.

mod likeness;
mod plan;
mod secrets;

use crate::Outcome;
use crate::cases::file::{Case, Step};
use crate::cases::runner::Runner;
use crate::cases::{Play, compare};
use crate::launch::{self, Listening};
use crate::options::{LANGUAGES, Options};
use crate::pattern::{Captures, brief};
use crate::report::Report;
use crate::script::Transport;
use likeness::{canonical, difference};
use plan::{Plan, Script, Server};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Name of `tricorn record` here.
const COMMAND: &str = "the command";
/// The newest revision with sessions.
const SESSIONS: &str = "2025-11-25";

/// Run it.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let root = launch::root()?;
    let languages = among(options)?;
    let command = root.join("target/release/tricorn");
    if !command.exists() {
        return Err(format!("{} is not there: run cargo xtask setup", command.display()));
    }
    let folder = match options.get("keep") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::temp_dir().join(format!("contract-cassettes-{}", std::process::id())),
    };
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let plan = Plan::read(&root.join("tests/cassettes/plan.json"))?;
    let studio = Studio { root, command, folder: folder.clone(), plan };
    let servers = languages.iter().filter(|one| options.language.is_empty() || options.language == **one);
    // They wait for processes that start, most of the time.
    let outcomes: Vec<Outcome<Outcomes>> = std::thread::scope(|scope| {
        let studio = &studio;
        let threads: Vec<_> = servers.map(|one| scope.spawn(|| studio.of_language(options, one, &languages))).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?).collect()
    });
    if options.get("keep").is_none() {
        let _ = std::fs::remove_dir_all(folder);
    }
    for (name, outcome) in outcomes.into_iter().collect::<Outcome<Vec<_>>>()?.into_iter().flatten() {
        report.record(&name, outcome);
    }
    Ok(())
}

/// Outcomes and their names.
type Outcomes = Vec<(String, Outcome)>;

/// The languages of `--among`, a list with commas; all of them without it.
fn among(options: &Options) -> Outcome<Vec<&'static str>> {
    let Some(list) = options.get("among") else { return Ok(LANGUAGES.to_vec()) };
    let known = |name: &str| LANGUAGES.into_iter().find(|known| *known == name);
    list.split(',')
        .map(|name| known(name).ok_or_else(|| format!("--among: {name:?} is none of {}", LANGUAGES.join(", "))))
        .collect()
}

/// Things that all recordings share.
struct Studio {
    root: PathBuf,
    command: PathBuf,
    folder: PathBuf,
    plan: Plan,
}

/// A server of one language on one transport, and what is asked of it.
struct Scene<'a> {
    server: &'a Server,
    program: &'a str,
    transport: Transport,
    script: &'a Script,
    title: String,
}

/// Recorded by a client of a language, or by the command.
struct Take {
    by: String,
    file: PathBuf,
}

impl Studio {
    /// All scenes of the servers of a language, with clients of their own.
    fn of_language(&self, options: &Options, language: &str, languages: &[&'static str]) -> Outcome<Outcomes> {
        let mut clients: Vec<Client> = languages.iter().map(|one| Client::new(one, options.timeout)).collect();
        let mut outcomes = Vec::new();
        for server in &self.plan.servers {
            let program = server.program(&self.root, language)?;
            for script in &server.scripts {
                for transport in &script.case.transports {
                    let title = format!("{language} {} {} {}", server.name, transport.name(), script.case.name);
                    if options.transport.is_none_or(|only| only == *transport) && options.wants(&title) {
                        let scene = Scene { server, program: &program, transport: *transport, script, title };
                        self.stage(&scene, language, &mut clients, &mut outcomes);
                    }
                }
            }
        }
        for client in clients {
            let name = format!("{language} servers: the runner of {} ends by itself", client.language);
            outcomes.push((name, client.finish()));
        }
        Ok(outcomes)
    }

    /// Records the scene by the clients that are meant to, then plays each cassette by all clients.
    fn stage(&self, scene: &Scene<'_>, language: &str, clients: &mut [Client], outcomes: &mut Outcomes) {
        let live = together(clients, |client| {
            let is_meant = scene.script.by_all || client.language == language;
            is_meant.then(|| {
                let take = self.take(scene, client.language);
                let seen = self.record(scene, &take, client);
                (take, seen)
            })
        });
        let mut takes = Vec::new();
        let mut expected: Option<Vec<Value>> = None;
        for (take, seen) in live.into_iter().flatten() {
            let compared = seen.and_then(|results| match &expected {
                Some(expected) => all_same(expected, &results),
                None => {
                    expected = Some(results);
                    Ok(())
                }
            });
            let is_recorded = compared.is_ok();
            outcomes.push((format!("{}: recorded by {}", scene.title, take.by), compared));
            takes.extend(is_recorded.then_some(take));
        }
        let Some(expected) = expected else { return };
        let own = clients.iter_mut().find(|client| client.language == language);
        if let Some(client) = own.filter(|_| scene.script.by_command) {
            let take = self.take(scene, COMMAND);
            let outcome = self.record_by_command(scene, &take, client);
            outcomes.push((format!("{}: recorded by {COMMAND}", scene.title), outcome));
            takes.push(take);
        }
        for take in &takes {
            let outcome = secrets::absent(&take.file, &self.plan.secrets);
            outcomes.push((format!("{}: no secret in the cassette of {}", scene.title, take.by), outcome));
        }
        let played = together(clients, |client| self.play_all(scene, &takes, &expected, client));
        outcomes.extend(played.into_iter().flatten());
    }

    fn take(&self, scene: &Scene<'_>, by: &str) -> Take {
        let name = format!("{} {by}", scene.title).replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
        Take { by: by.to_owned(), file: self.folder.join(format!("{name}.jsonl")) }
    }

    /// The results of the live server, which a client records.
    fn record(&self, scene: &Scene<'_>, take: &Take, client: &mut Client) -> Outcome<Vec<Value>> {
        let mut options = scene.script.case.options.clone();
        options.insert("record".into(), take.file.to_string_lossy().into());
        let (given, sent) = (self.plan.secret("given")?, self.plan.secret("sent")?);
        if scene.transport == Transport::Http {
            let listening = self.listening(scene)?;
            options.insert("headers".into(), json!({"Authorization": format!("Bearer {given}"), "X-Api-Key": sent}));
            return self.perform(&scene.script.case, &options, &json!({"url": listening.url}), client, as_expected);
        }
        let mut environment: Map<String, Value> =
            scene.script.case.environment.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        environment.insert("FIXTURE_API_TOKEN".into(), given.into());
        // The fixture has no such argument: the shell takes it.
        let mut words = vec!["-c".to_owned(), format!("exec \"$0\" {}", scene.server.arguments.join(" "))];
        words.extend([scene.program, "--api-key", sent].map(str::to_owned));
        let target = json!({"command": "sh", "args": words, "env": environment, "stderr": "discard"});
        self.perform(&scene.script.case, &options, &target, client, as_expected)
    }

    /// The same by `tricorn record`, which stands between the client and the server.
    fn record_by_command(&self, scene: &Scene<'_>, take: &Take, client: &mut Client) -> Outcome {
        let (given, sent) = (self.plan.secret("given")?, self.plan.secret("sent")?);
        let mut words = vec!["record".to_owned(), "-o".to_owned(), take.file.to_string_lossy().into_owned()];
        let mut options = scene.script.case.options.clone();
        // It asks in this revision, and is asked in one that has sessions.
        let revision = options.insert("revision".into(), SESSIONS.into()).unwrap_or_default();
        words.extend(["--revision", revision.as_str().unwrap_or_default()].map(str::to_owned));
        let mut listening = None;
        if scene.transport == Transport::Http {
            let headers = [format!("Authorization: Bearer {given}"), format!("X-Api-Key: {sent}")];
            words.extend(headers.into_iter().flat_map(|header| ["-H".to_owned(), header]));
            words.push(listening.insert(self.listening(scene)?).url.clone());
        } else {
            let own = scene.script.case.environment.iter().map(|(name, value)| format!("{name}={value}"));
            let all = own.chain([format!("FIXTURE_API_TOKEN={given}")]);
            words.extend(all.flat_map(|variable| ["-e".to_owned(), variable]));
            let line = format!("exec \"$0\" {}", scene.server.arguments.join(" "));
            words.extend(["--", "sh", "-c", &line, scene.program, "--api-key", sent].map(str::to_owned));
        }
        let target = json!({"command": self.command, "args": words, "stderr": "discard"});
        let judge = |number: usize, step: &Step, answer: &Value, captures: &mut Captures| match step.repeat {
            true => as_expected(number, step, answer, captures),
            // The bridge has no extensions and refuses other methods in its own words.
            false => Ok(()),
        };
        self.perform(&scene.script.case, &options, &target, client, judge).map(drop)
    }

    fn listening(&self, scene: &Scene<'_>) -> Outcome<Listening> {
        Listening::start(&[scene.program.to_owned()], &scene.script.case.environment)
    }

    /// Plays all cassettes with one client: as targets, strict and not, and by `tricorn replay` those of its own.
    fn play_all(&self, scene: &Scene<'_>, takes: &[Take], expected: &[Value], client: &mut Client) -> Outcomes {
        let mut outcomes = Vec::new();
        for take in takes {
            let file = take.file.to_string_lossy();
            let mut targets = vec![("", json!(format!("replay:{file}")))];
            // The command asks for all log messages, and lists by itself: others do not ask for the same.
            if scene.script.is_strict && take.by != COMMAND {
                targets.push((", strict", json!(format!("replay:{file}?strict"))));
            }
            if take.by == client.language {
                let target = json!({"command": self.command, "args": ["replay", file], "stderr": "discard"});
                targets.push((", served", target));
            }
            for (how, target) in targets {
                let name = format!("{}: recorded by {}, played by {}{how}", scene.title, take.by, client.language);
                let equal = |number: usize, _: &Step, answer: &Value, _: &mut Captures| {
                    same(&expected[number], &canonical(answer, &self.plan.secrets))
                };
                let outcome = self.perform(&scene.script.case, &scene.script.case.options, &target, client, equal);
                outcomes.push((name, outcome.map(drop)));
            }
        }
        outcomes
    }

    /// Does the steps with a client that has a runner; their results without what differs between connections.
    fn perform(
        &self,
        case: &Case,
        options: &Map<String, Value>,
        target: &Value,
        client: &mut Client,
        judge: impl Fn(usize, &Step, &Value, &mut Captures) -> Outcome,
    ) -> Outcome<Vec<Value>> {
        let limit = client.limit;
        let mut captures = self.plan.values.clone();
        let mut play = client.play()?;
        let mut results = Vec::new();
        let mut outcome = Ok(());
        for (number, step) in case.steps.iter().enumerate() {
            let deadline = Instant::now() + limit;
            let mut once = || {
                let mut answer = play.answer(step, options, target, &captures)?.unwrap_or_default();
                // The number of the command is the runner's.
                answer.as_object_mut().map(|members| members.shift_remove("id"));
                judge(number, step, &answer, &mut captures).map(|()| answer)
            };
            let mut answer = once();
            while answer.is_err() && step.repeat && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
                answer = once();
            }
            match answer {
                Ok(answer) => results.push(canonical(&answer, &self.plan.secrets)),
                Err(reason) => {
                    outcome = Err(format!("step {} ({}): {reason}", number + 1, step.command));
                    break;
                }
            }
        }
        let closed = play.close();
        outcome.and(closed).map(|()| results)
    }
}

/// Holds an answer of a live server against the plan.
fn as_expected(_: usize, step: &Step, answer: &Value, captures: &mut Captures) -> Outcome {
    if step.start.is_some() {
        return Ok(());
    }
    compare(&step.expected, step.exact, answer, captures)
}

fn all_same(expected: &[Value], got: &[Value]) -> Outcome {
    let compared = expected.iter().zip(got).map(|(expected, got)| same(expected, got));
    let found = compared.enumerate().find_map(|(number, outcome)| outcome.err().map(|reason| (number, reason)));
    found.map_or(Ok(()), |(number, reason)| Err(format!("step {}: {reason}", number + 1)))
}

fn same(expected: &Value, got: &Value) -> Outcome {
    match got.get("error").filter(|_| expected.get("error").is_none()) {
        Some(error) => Err(format!("failed: {}", brief(error))),
        None => difference(expected, got).map_or(Ok(()), Err),
    }
}

/// The same with all clients at once; the results in their order.
fn together<T: Send>(clients: &mut [Client], act: impl Fn(&mut Client) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> = clients.iter_mut().map(|client| scope.spawn(move || act(client))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// The runner of a language, started when it is needed first, and again when it died.
struct Client {
    language: &'static str,
    limit: Duration,
    runner: Option<Runner>,
    plays: u64,
}

impl Client {
    const fn new(language: &'static str, limit: Duration) -> Self {
        Self { language, limit, runner: None, plays: 0 }
    }

    fn play(&mut self) -> Outcome<Play<'_>> {
        if self.runner.as_mut().is_none_or(|runner| !runner.alive()) {
            self.runner = Some(Runner::start(self.language, self.limit)?);
        }
        self.plays += 1;
        let runner = self.runner.as_mut().ok_or("no runner")?;
        Ok(Play::new(runner, self.plays, self.limit))
    }

    fn finish(self) -> Outcome {
        self.runner.map_or(Ok(()), Runner::finish)
    }
}
