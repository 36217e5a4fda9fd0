//! One server process and clients of all revisions at once: five on one port, and on one pipe a session of each older
//! revision beside requests of the stateless one. Each is answered in the words of its own revision, whatever the others
//! say meanwhile, and goes on when they leave.

use crate::launch::{self, Listening};
use crate::leaks::http::Client;
use crate::options::Options;
use crate::pattern::{self, Captures, MODERN, Strictness};
use crate::replay::outgoing::complete;
use crate::report::Report;
use crate::script::{REVISIONS, Transport};
use crate::wire::http::{Endpoint, Exchange};
use crate::wire::stdio::{Ended, Pipe};
use crate::{Failure, Outcome};
use serde_json::{Value, json};
use std::sync::Barrier;
use std::time::Duration;

/// How often each of them asks everything.
const ROUNDS: usize = 10;

/// How long the call takes that is under way while everything else is asked, in milliseconds.
const SLOW: u64 = 100;

/// Run it.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let command = launch::server(options)?;
    let language = if options.language.is_empty() { "server" } else { &options.language };
    let wants = |transport| options.transport.is_none_or(|only| only == transport);
    if wants(Transport::Http) {
        let name = format!("{language} http: five revisions at once on one port");
        report.record(&name, on_one_port(&command, options.timeout));
    }
    for revision in REVISIONS.into_iter().filter(|revision| wants(Transport::Stdio) && *revision != MODERN) {
        let name = format!("{language} stdio: {revision} and {MODERN} at once on one pipe");
        report.record(&name, on_one_pipe(&command, revision, options.timeout));
    }
    Ok(())
}

/// A request, and what its answer has to be like.
struct Question {
    method: &'static str,
    params: Value,
    answer: Value,
}

fn when(there: bool, what: Value) -> Value {
    if there { what } else { "$absent".into() }
}

/// A result, with what this revision has of every result.
fn result(revision: &str, mut members: Value) -> Value {
    let modern = revision == MODERN;
    members["resultType"] = when(modern, "complete".into());
    members["_meta"] = when(modern, json!({"io.modelcontextprotocol/serverInfo": {"name": "everything"}}));
    json!({"result": members})
}

/// What a session is opened with, or, where there is none, asked for instead.
fn opening(revision: &str) -> Question {
    let since = |first: &str| revision >= first;
    if revision == MODERN {
        let members = json!({"supportedVersions": [MODERN], "capabilities": {"tools": "$object"}});
        return Question { method: "server/discover", params: json!({}), answer: result(revision, members) };
    }
    let members = json!({
        "protocolVersion": revision,
        "capabilities": {"tools": "$object", "completions": when(since("2025-03-26"), "$object".into())},
        "serverInfo": {
            "name": "everything",
            "title": when(since("2025-06-18"), "Everything".into()),
            "description": when(since("2025-11-25"), "$string".into()),
        },
    });
    let client = json!({"name": "contract", "version": "1"});
    let params = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": client});
    Question { method: "initialize", params, answer: result(revision, members) }
}

/// What tells revisions from each other.
fn questions(revision: &str, number: usize) -> Vec<Question> {
    let since = |first: &str| revision >= first;
    let (modern, wrapped) = (revision == MODERN, since("2025-06-18") && revision != MODERN);
    let sum = number + 1;
    let add = json!({
        "content": [{"type": "text", "text": sum.to_string()}],
        "structuredContent": when(since("2025-06-18"), if wrapped { json!({"result": sum}) } else { json!(sum) }),
        "isError": "$unset",
    });
    let own = [("protocolVersion", revision), ("era", if modern { "modern" } else { "legacy" })];
    let context = match since("2025-06-18") {
        true => json!({"structuredContent": own.into_iter().collect::<std::collections::BTreeMap<_, _>>()}),
        false => {
            let words = own.map(|(name, value)| format!("$like:*\"{name}\":\"{value}\"*"));
            json!({"structuredContent": "$absent", "content": [{"text": {"$all": words}}]})
        }
    };
    let schema = if wrapped { json!({"type": "object", "required": ["result"]}) } else { json!({"type": "integer"}) };
    let tools = json!({
        "tools": {"$contains": [
            {"name": "add", "outputSchema": when(since("2025-06-18"), schema)},
            {
                "name": "echo",
                "annotations": when(since("2025-03-26"), "$object".into()),
                "title": when(since("2025-06-18"), "Echo".into()),
                "_meta": when(since("2025-06-18"), "$object".into()),
                "icons": when(since("2025-11-25"), "$array".into()),
            },
        ]},
        "ttlMs": when(modern, "$int".into()),
    });
    let refused = |code: i64| json!({"result": "$absent", "error": {"code": code}});
    let ping = if modern { refused(-32601) } else { result(revision, json!({})) };
    let discover = if modern { opening(revision).answer } else { refused(-32601) };
    let nothing = refused(if modern { -32602 } else { -32002 });
    let question = |method, params, answer| Question { method, params, answer };
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    vec![
        question("tools/call", call("add", json!({"a": number, "b": 1})), result(revision, add)),
        question("tools/call", call("context", json!({})), result(revision, context)),
        question("tools/list", json!({}), result(revision, tools)),
        question("resources/read", json!({"uri": "test://nothing"}), nothing),
        question("ping", json!({}), ping),
        question("server/discover", json!({}), discover),
    ]
}

/// The call that is under way meanwhile, and what comes of it: its progress under `token`, and the answer.
fn slow(revision: &str, token: &Value) -> (Value, [Value; 3]) {
    let progress = |progress: u64, said: &str| {
        let message = when(revision >= "2025-03-26", said.into());
        json!({"method": "notifications/progress", "params": {"progressToken": token, "progress": progress, "message": message}})
    };
    let params = json!({"name": "slow", "arguments": {"ms": SLOW}, "_meta": {"progressToken": token}});
    let answer = result(revision, json!({"content": [{"text": format!("slept {SLOW} ms")}]}));
    (params, [progress(0, "started"), progress(SLOW, "done"), answer])
}

fn fits(what: &str, pattern: &Value, got: &Value) -> Outcome {
    pattern::check(pattern, got, Strictness::Subset, &mut Captures::new()).map_err(|reason| format!("{what}: {reason}"))
}

// ---- one port

fn on_one_port(command: &[String], limit: Duration) -> Outcome {
    let server = Listening::start(command, &[])?;
    let all_there = Barrier::new(REVISIONS.len());
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let clients = REVISIONS.map(|revision| {
            let (endpoint, all_there) = (&server.endpoint, &all_there);
            scope.spawn(move || Visitor { revision, limit, all_there }.visit(endpoint))
        });
        clients.into_iter().map(|client| client.join().map_err(|_| "a client panicked".to_owned())?).collect()
    });
    let failures: Vec<Failure> = outcomes.into_iter().filter_map(Result::err).collect();
    if !failures.is_empty() {
        return Err(failures.join("\n"));
    }
    server.terminate(limit).map(drop)
}

/// A client of one revision.
struct Visitor<'a> {
    revision: &'static str,
    limit: Duration,
    all_there: &'a Barrier,
}

impl Visitor<'_> {
    /// All clients are connected before the first calls, and each has a call under way while all ask the rest. Ids and
    /// progress tokens are the same in all of them. Then they leave, the oldest revision first.
    fn visit(&self, endpoint: &Endpoint) -> Outcome {
        let mut client = Client::of(endpoint, self.revision, self.limit);
        self.step(&mut client, |client| {
            let opening = opening(self.revision);
            match client.opened() {
                Some(opened) => fits(opening.method, &opening.answer, opened),
                None => self.ask(client, opening),
            }
        });
        for number in 0..ROUNDS {
            let (params, awaited) = slow(self.revision, &json!("t"));
            let mut under_way = None;
            self.step(&mut client, |client| {
                let mut exchange = client.send("tools/call", params, true)?;
                self.next(&mut exchange, &awaited[0])?;
                under_way = Some(exchange);
                Ok(())
            });
            self.step(&mut client, |client| {
                questions(self.revision, number).into_iter().try_for_each(|question| self.ask(client, question))?;
                let mut exchange = under_way.take().ok_or("no call is under way")?;
                awaited[1..].iter().try_for_each(|awaited| self.next(&mut exchange, awaited))?;
                client.done(exchange)
            });
        }
        for leaving in REVISIONS {
            if leaving == self.revision {
                self.all_there.wait();
                client = client.and_then(Client::leave).and_then(|()| Err(String::new()));
            } else {
                self.step(&mut client, |_| Ok(()));
            }
            self.step(&mut client, |client| {
                questions(self.revision, ROUNDS).into_iter().try_for_each(|question| self.ask(client, question))
            });
        }
        match client {
            Err(reason) if reason.is_empty() => Ok(()),
            Err(reason) => Err(format!("{}: {reason}", self.revision)),
            Ok(_) => Err(format!("{}: it has not left", self.revision)),
        }
    }

    /// What is done when all are there. Who has failed, or left, comes, too: else the others would wait forever.
    fn step(&self, client: &mut Outcome<Client>, act: impl FnOnce(&mut Client) -> Outcome) {
        self.all_there.wait();
        if let Ok(connected) = client
            && let Err(reason) = act(connected)
        {
            *client = Err(reason);
        }
    }

    fn ask(&self, client: &mut Client, question: Question) -> Outcome {
        let Question { method, params, answer } = question;
        let mut exchange = client.send(method, params, true)?;
        if self.revision == MODERN && exchange.head(self.limit)?.get("mcp-session-id").is_some() {
            return Err(format!("{method}: a session, in a revision that has none"));
        }
        self.next(&mut exchange, &answer).map_err(|reason| format!("{method}: {reason}"))?;
        client.done(exchange)
    }

    fn next(&self, exchange: &mut Exchange, pattern: &Value) -> Outcome {
        let got = exchange.next(self.limit)?.ok_or("the answer ended without this message")?;
        fits("the answer", pattern, &got)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_revision_is_told_from_the_others() {
        let sum = |structured: Value| json!({"result": {"content": [{"type": "text", "text": "8"}], "structuredContent": structured}});
        let bare = json!({"result": {"content": [{"type": "text", "text": "8"}]}});
        let mut newest = sum(json!(8));
        newest["result"]["resultType"] = "complete".into();
        newest["result"]["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "everything"}});
        let answers = [&bare, &bare, &sum(json!({"result": 8})), &sum(json!({"result": 8})), &newest];
        for (revision, own) in REVISIONS.into_iter().zip(answers) {
            let pattern = &questions(revision, 7)[0].answer;
            for answer in answers {
                assert_eq!(fits("add", pattern, answer).is_ok(), answer == own, "{revision}: {answer}");
            }
        }
    }
}
