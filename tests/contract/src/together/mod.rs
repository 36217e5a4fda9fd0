//! One server process and clients of all revisions at once: on one port, where the oldest has both of its transports, and
//! on one pipe, where a session of each older revision is beside requests of the stateless one. Each is answered in the
//! words of its own revision, whatever the others say meanwhile, and goes on when they leave.

mod party;
mod questions;

use crate::launch::{self, Listening};
use crate::options::Options;
use crate::pattern::{self, MODERN};
use crate::replay::outgoing::complete;
use crate::report::Report;
use crate::script::{REVISIONS, Transport};
use crate::wire::http::Endpoint;
use crate::wire::stdio::{Ended, Pipe};
use crate::{Failure, Outcome};
use party::{Pair, Party, Streamable};
use questions::{Question, fits, opening, questions, slow};
use serde_json::json;
use std::sync::Barrier;
use std::time::Duration;

/// Number of times that each of them asks everything.
const ROUNDS: usize = 10;

/// Run it.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let command = launch::server(options)?;
    let language = if options.language.is_empty() { "server" } else { &options.language };
    let wants = |transport| options.transport.is_none_or(|only| only == transport);
    if wants(Transport::Http) {
        let name = format!("{language} http: all revisions at once on one port");
        report.record(&name, on_one_port(&command, options.timeout));
    }
    for revision in REVISIONS.into_iter().filter(|revision| wants(Transport::Stdio) && *revision != MODERN) {
        let name = format!("{language} stdio: {revision} and {MODERN} at once on one pipe");
        report.record(&name, on_one_pipe(&command, revision, options.timeout));
    }
    Ok(())
}

// ---- one port

/// Visitors, in the order in which they leave: a revision, and true if it is on HTTP+SSE.
const VISITORS: [(&str, bool); 6] = [
    (REVISIONS[0], true),
    (REVISIONS[0], false),
    (REVISIONS[1], false),
    (REVISIONS[2], false),
    (REVISIONS[3], false),
    (MODERN, false),
];

fn on_one_port(command: &[String], limit: Duration) -> Outcome {
    let server = Listening::start(command, &[("EVERYTHING_SSE".to_owned(), "yes".to_owned())])?;
    let all_there = Barrier::new(VISITORS.len());
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let visitors: [usize; VISITORS.len()] = std::array::from_fn(|number| number);
        let visitors = visitors.map(|number| {
            let (endpoint, all_there) = (&server.endpoint, &all_there);
            scope.spawn(move || Visitor { number, limit, all_there }.visit(endpoint))
        });
        visitors.into_iter().map(|visitor| visitor.join().map_err(|_| "a client panicked".to_owned())?).collect()
    });
    let failures: Vec<Failure> = outcomes.into_iter().filter_map(Result::err).collect();
    if !failures.is_empty() {
        return Err(failures.join("\n"));
    }
    server.terminate(limit).map(drop)
}

/// One of [`VISITORS`].
struct Visitor<'a> {
    number: usize,
    limit: Duration,
    all_there: &'a Barrier,
}

impl Visitor<'_> {
    /// All clients are connected before the first calls, and each has a call under way while all ask the rest. Ids and
    /// progress tokens are the same in all of them. Then they leave, one after the other, and those who stay ask again.
    fn visit(&self, endpoint: &Endpoint) -> Outcome {
        let (revision, on_sse) = VISITORS[self.number];
        let mut party: Outcome<Box<dyn Party>> = match on_sse {
            true => Pair::open(endpoint, revision, self.limit).map(|pair| Box::new(pair) as _),
            false => Streamable::open(endpoint, revision, self.limit).map(|client| Box::new(client) as _),
        };
        for number in 0..ROUNDS {
            let (params, awaited) = slow(revision, &json!("t"));
            self.step(&mut party, |party| party.start(params, &awaited[0]));
            self.step(&mut party, |party| {
                questions(revision, number).into_iter().try_for_each(|question| party.ask(question))?;
                party.finish(&awaited[1..])
            });
        }
        let mut outcome = None;
        for leaving in 0..VISITORS.len() {
            if leaving == self.number {
                self.all_there.wait();
                outcome = Some(party.and_then(|party| party.leave()));
                party = Err("it has left".into());
            } else {
                self.step(&mut party, |_| Ok(()));
            }
            self.step(&mut party, |party| {
                questions(revision, ROUNDS).into_iter().try_for_each(|question| party.ask(question))
            });
        }
        let transport = if on_sse { "HTTP+SSE" } else { "Streamable HTTP" };
        outcome.unwrap_or(Ok(())).map_err(|reason| format!("{revision} on {transport}: {reason}"))
    }

    /// Does a step when all are there. A party that has failed, or left, comes, too: else the others would wait
    /// forever.
    fn step(&self, party: &mut Outcome<Box<dyn Party>>, act: impl FnOnce(&mut dyn Party) -> Outcome) {
        self.all_there.wait();
        if let Ok(there) = party
            && let Err(reason) = act(&mut **there)
        {
            *party = Err(reason);
        }
    }
}

// ---- one pipe

/// Requests of both eras go out in turn, and all of them before the first answer is read.
fn on_one_pipe(command: &[String], revision: &'static str, limit: Duration) -> Outcome {
    let mut pipe = Pipe::open(&launch::stdio(command, &[]))?;
    ask_on(&mut pipe, MODERN, "before", &opening(MODERN))?;
    answered_on(&mut pipe, "before", &opening(MODERN), limit)?;
    ask_on(&mut pipe, revision, "open", &opening(revision))?;
    answered_on(&mut pipe, "open", &opening(revision), limit)?;
    pipe.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
    for number in 0..ROUNDS {
        let mut asked = Vec::new();
        for speaker in [revision, MODERN] {
            let token = json!(format!("{speaker} {number}"));
            let (params, [started, done, answer]) = slow(speaker, &token);
            let question = Question { method: "tools/call", params, answer };
            ask_on(&mut pipe, speaker, &format!("{speaker} {number} slow"), &question)?;
            asked.push((speaker, token, [started, done], question));
        }
        let (older, newer) = (questions(revision, number), questions(MODERN, number));
        for (index, (older, newer)) in older.iter().zip(&newer).enumerate() {
            ask_on(&mut pipe, revision, &format!("{revision} {number} {index}"), older)?;
            ask_on(&mut pipe, MODERN, &format!("{MODERN} {number} {index}"), newer)?;
        }
        for (speaker, token, progress, question) in &asked {
            for progress in progress {
                let got = pipe.pick(limit, |message| message["params"]["progressToken"] == *token)?;
                fits(speaker, progress, &got)?;
            }
            answered_on(&mut pipe, &format!("{speaker} {number} slow"), question, limit)?;
        }
        for (speaker, questions) in [(revision, older), (MODERN, newer)] {
            for (index, question) in questions.iter().enumerate() {
                answered_on(&mut pipe, &format!("{speaker} {number} {index}"), question, limit)?;
            }
        }
    }
    let Ended { unread, status } = pipe.finish(limit)?;
    match unread.first() {
        Some(message) => Err(format!("a message nobody expected: {}", pattern::brief(message))),
        None if status.success() => Ok(()),
        None => Err(format!("after the end of its input the server ended with {status}")),
    }
}

fn ask_on(pipe: &mut Pipe, revision: &str, id: &str, question: &Question) -> Outcome {
    let mut message = json!({"id": id, "method": question.method, "params": question.params});
    complete(&mut message, revision == MODERN);
    pipe.send(message.to_string().as_bytes())
}

fn answered_on(pipe: &mut Pipe, id: &str, question: &Question, limit: Duration) -> Outcome {
    let what = format!("{id}, {}", question.method);
    let got = pipe.pick(limit, |message| message["id"] == id).map_err(|reason| format!("{what}: {reason}"))?;
    fits(&what, &question.answer, &got)
}
