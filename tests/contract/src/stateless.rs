//! Two processes of one server that know nothing of each other but a secret (`request_state_keys`): whatever a client
//! of the stateless revision asks, every request goes to the other process than the one before, the next round of a
//! question, too.

use crate::launch::{self, Listening};
use crate::leaks::http::Client;
use crate::options::Options;
use crate::pattern::brief;
use crate::report::Report;
use crate::{Failure, Outcome};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const WORKERS: usize = 4;

/// Run it.
pub fn run(options: &Options, report: &mut Report) -> Outcome {
    let command = launch::server(options)?;
    let requests = options.number("requests", 10_000)?;
    let language = if options.language.is_empty() { "server" } else { &options.language };
    let key =
        [("EVERYTHING_REQUEST_STATE_KEY".to_owned(), "a secret of two processes, of thirty-two bytes".to_owned())];
    let start = || Listening::start(&command, &key);
    report.record(&format!("{language} two processes share {requests} requests"), shared(&start, requests, options));
    report.record(&format!("{language} restarted between the rounds"), restarted(&start, options));
    Ok(())
}

/// A client whose requests go to each of the servers in turn.
struct Turns {
    clients: Vec<Client>,
    sent: usize,
    limit: Duration,
}

impl Turns {
    fn to(servers: &[&Listening], limit: Duration) -> Outcome<Self> {
        let clients =
            servers.iter().map(|server| Client::open(&server.endpoint, true, limit)).collect::<Outcome<_>>()?;
        Ok(Self { clients, sent: 0, limit })
    }

    /// One request and its result.
    fn ask(&mut self, method: &str, mut params: Value) -> Outcome<Value> {
        params["_meta"] = json!({"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}});
        let count = self.clients.len();
        let client = &mut self.clients[self.sent % count];
        self.sent += 1;
        let mut exchange = client.send(method, params, true)?;
        let answer = exchange.next(self.limit)?.ok_or_else(|| format!("{method} was not answered"))?;
        client.done(exchange)?;
        answer.get("result").cloned().ok_or_else(|| format!("{method}: {}", brief(&answer)))
    }

    /// A tool that asks: its questions are answered from `content`, each in a request of its own. The text it ends with.
    fn converse(&mut self, tool: &str, content: &Value) -> Outcome<String> {
        let mut params = json!({"name": tool, "arguments": {}});
        for _ in 0..8 {
            let result = self.ask("tools/call", params.clone())?;
            if result["resultType"] == "complete" {
                return text(&result);
            }
            params["requestState"] = result["requestState"].clone();
            let asked = result["inputRequests"].as_object().ok_or_else(|| format!("{tool}: {}", brief(&result)))?;
            let answers = asked.keys().map(|key| (key.clone(), json!({"action": "accept", "content": content})));
            params["inputResponses"] = Value::Object(answers.collect());
        }
        Err(format!("{tool} asks and asks"))
    }

    /// One of each kind of request.
    fn round(&mut self, number: usize) -> Outcome {
        let content = json!({"a": format!("a{number}"), "b": "b", "c": "c", "left": "l", "right": number.to_string(), "confirm": true});
        let sum = self.ask("tools/call", json!({"name": "add", "arguments": {"a": number, "b": 1}}))?;
        expect("add", &text(&sum)?, &(number + 1).to_string())?;
        expect("three_questions", &self.converse("three_questions", &content)?, &format!("a{number} b c"))?;
        expect("two_questions", &self.converse("two_questions", &content)?, &format!("l {number}"))?;
        let said = self.converse("step_once", &content)?;
        if !said.starts_with("reservation ") || !said.ends_with(": true") {
            return Err(format!("step_once: {said}"));
        }
        for (method, member) in [
            ("tools/list", "tools"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
            ("prompts/list", "prompts"),
        ] {
            let result = self.ask(method, json!({}))?;
            if result[member].as_array().is_none_or(Vec::is_empty) {
                return Err(format!("{method}: {}", brief(&result)));
            }
        }
        let uri = format!("test://template/{number}/data");
        let read = self.ask("resources/read", json!({"uri": uri}))?;
        if !read["contents"][0]["text"].as_str().is_some_and(|text| text.contains(&number.to_string())) {
            return Err(format!("resources/read: {}", brief(&read)));
        }
        let arguments = json!({"arg1": number.to_string(), "arg2": "y"});
        let prompt = self.ask("prompts/get", json!({"name": "test_prompt_with_arguments", "arguments": arguments}))?;
        if prompt["messages"].as_array().is_none_or(Vec::is_empty) {
            return Err(format!("prompts/get: {}", brief(&prompt)));
        }
        let reference = json!({"type": "ref/prompt", "name": "test_prompt_with_arguments"});
        let argument = json!({"name": "arg1", "value": "par"});
        let values = self.ask("completion/complete", json!({"ref": reference, "argument": argument}))?;
        expect("completion/complete", &values["completion"]["total"].to_string(), "3")?;
        self.ask("server/discover", json!({})).map(drop)
    }
}

fn text(result: &Value) -> Outcome<String> {
    let text = result["content"][0]["text"].as_str();
    text.map(str::to_owned).ok_or_else(|| format!("no text: {}", brief(result)))
}

fn expect(what: &str, got: &str, expected: &str) -> Outcome {
    if got == expected { Ok(()) } else { Err(format!("{what}: expected {expected:?}, got {got:?}")) }
}

fn shared(start: &impl Fn() -> Outcome<Listening>, requests: usize, options: &Options) -> Outcome {
    let servers = [start()?, start()?];
    let (sent, rounds) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut turns = Turns::to(&[&servers[0], &servers[1]], options.timeout)?;
        while sent.load(Ordering::Relaxed) < requests {
            let before = turns.sent;
            let number = rounds.fetch_add(1, Ordering::Relaxed);
            turns.round(number).map_err(|reason| format!("round {number}: {reason}"))?;
            sent.fetch_add(turns.sent - before, Ordering::Relaxed);
        }
        Ok::<_, Failure>(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })
}

/// The process that asked is gone when the answer comes.
fn restarted(start: &impl Fn() -> Outcome<Listening>, options: &Options) -> Outcome {
    let mut params = json!({"name": "three_questions", "arguments": {}});
    for (key, member) in [("elicitation-1", "a"), ("elicitation-2", "b"), ("elicitation-3", "c")] {
        let server = start()?;
        let result = Turns::to(&[&server], options.timeout)?.ask("tools/call", params.clone())?;
        if result["inputRequests"].get(key).is_none() {
            return Err(format!("expected the question {key:?}: {}", brief(&result)));
        }
        params["requestState"] = result["requestState"].clone();
        params["inputResponses"] = json!({key: {"action": "accept", "content": {member: member}}});
    }
    let server = start()?;
    let result = Turns::to(&[&server], options.timeout)?.ask("tools/call", params)?;
    expect("three_questions", &text(&result)?, "a b c")
}
