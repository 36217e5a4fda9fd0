//! Two processes of one server that know nothing of each other but a secret (`request_state_keys`), behind a
//! round-robin proxy without sticky routing, and clients of the stateless revision that ask them whatever there is to
//! ask. Tasks are left out: they live in the process that made them.

pub(crate) mod asker;
mod front;
pub(crate) mod nginx;
mod turns;

use crate::cases;
use crate::launch::{self, Listening};
use crate::options::Options;
use crate::pattern::brief;
use crate::report::Report;
use crate::script::Transport;
use crate::{Failure, Outcome};
use asker::{Asker, Seen, text};
use front::{Front, Kind};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Clients at once.
const CLIENTS: usize = 4;

/// Settings of both processes: the secret, and the name that clients call the proxy by.
const SETTINGS: [(&str, &str); 2] = [
    ("EVERYTHING_REQUEST_STATE_KEY", "a secret of two processes, of thirty-two bytes"),
    ("EVERYTHING_ALLOWED_HOSTS", "127.0.0.1"),
];

/// Starts one process of the server.
type Start<'a> = &'a dyn Fn() -> Outcome<Listening>;

/// Run it.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let command = launch::server(options)?;
    let requests = options.number("requests", 10_000)?;
    let language = if options.language.is_empty() { "server" } else { &options.language };
    let kind = Kind::find(options.get("front"))?;
    println!("the proxy: {kind}");
    if let Some(why) = kind.why_not_nginx() {
        report.skip(&format!("{language} behind nginx"), why);
    }
    let settings = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let start = || Listening::start(&command, &settings);

    let tell = |seen: &Seen| {
        if options.verbose {
            println!("    {seen}");
        }
    };
    let in_turn = || {
        let seen = share(&start, &kind, (CLIENTS, requests), options)?;
        tell(&seen);
        seen.all_elsewhere()
    };
    report.record(&format!("{language} {requests} requests, each client's in turn"), in_turn());
    let together = || {
        let seen = share(&start, &kind, (1, requests), options)?;
        tell(&seen);
        seen.evenly(CLIENTS)
    };
    report.record(&format!("{language} {requests} requests, all clients' in one row"), together());
    for (tool, said) in [("three_questions", "a b c"), ("two_questions", "l r"), ("step_once", "reservation 1: true")] {
        let outcome = restarted(&start, tool, said, options);
        report.record(&format!("{language} restarted between the rounds of {tool}"), outcome);
    }
    if options.server.is_none() {
        rounds(&command, &kind, &settings, options, report)?;
    }
    Ok(())
}

/// `CLIENTS` at once, over so many fronts of the same two processes, until so many requests are answered; each front
/// takes the processes in turn, for all that come to it.
fn share(start: Start<'_>, kind: &Kind, (fronts, requests): (usize, usize), options: &Options) -> Outcome<Seen> {
    let servers = [start()?, start()?];
    let front = Front::start(kind, &servers.each_ref().map(|server| &server.endpoint), fronts)?;
    let (sent, rounds) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = |number: usize| {
        let mut asker = Asker::to(&front.endpoints[number % fronts], options.timeout)?;
        while sent.load(Ordering::Relaxed) < requests {
            let before = asker.seen.requests();
            let number = rounds.fetch_add(1, Ordering::Relaxed);
            asker.round(number).map_err(|reason| format!("round {number}: {reason}"))?;
            sent.fetch_add(asker.seen.requests() - before, Ordering::Relaxed);
        }
        Ok::<_, Failure>(asker.seen)
    };
    let mut all = Seen::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || work(number))).collect();
        for worker in workers {
            all.add(worker.join().map_err(|_| "a client panicked".to_owned())??);
        }
        Ok::<_, Failure>(())
    })?;
    if all.requests() < requests {
        return Err(format!("only {} requests were answered", all.requests()));
    }
    all.once()?;
    Ok(all)
}

/// The process that asked is gone when the answer comes.
fn restarted(start: Start<'_>, tool: &str, said: &str, options: &Options) -> Outcome {
    let content = json!({"a": "a", "b": "b", "c": "c", "left": "l", "right": "r", "confirm": true});
    let mut params = json!({"name": tool, "arguments": {}});
    for round in 0.. {
        let server = start()?;
        let result = Asker::to(&server.endpoint, options.timeout)?.ask("tools/call", params.clone())?;
        if result["resultType"] == "complete" {
            let got = text(&result)?;
            return match got == said && round > 0 {
                true => Ok(()),
                false => Err(format!("expected {said:?} after some rounds, got {got:?} after {round}")),
            };
        }
        asker::answer(&mut params, &result, &content)?;
        if round == 8 {
            return Err(format!("it asks and asks: {}", brief(&result)));
        }
    }
    Ok(())
}

/// Two processes and what stands in front of them.
struct Pair {
    url: String,
    _servers: [Listening; 2],
    _front: Front,
}

impl cases::Site for Pair {
    fn url(&self) -> &str {
        &self.url
    }
}

/// The questions of `tests/cases/rounds.json`, once more: the language's own client, and two processes that answer it.
fn rounds(
    command: &[String],
    kind: &Kind,
    settings: &[(String, String)],
    options: &Options,
    report: &mut Report,
) -> Outcome {
    let site = |environment: &[(String, String)]| {
        let mut all = BTreeMap::from_iter(settings.iter().cloned());
        all.extend(environment.iter().cloned());
        let all: Vec<(String, String)> = all.into_iter().collect();
        let servers = [Listening::start(command, &all)?, Listening::start(command, &all)?];
        let front = Front::start(kind, &servers.each_ref().map(|server| &server.endpoint), 1)?;
        let url = format!("http://{}{}", front.endpoints[0].authority, front.endpoints[0].path);
        Ok(Box::new(Pair { url, _servers: servers, _front: front }) as Box<dyn cases::Site>)
    };
    let mut options = options.clone();
    options.transport = Some(Transport::Http);
    cases::run_rounds(&options, &site, report)
}
