//! The contract's transcripts against the protocol engine alone: no runtime, no transport, no clock.
//!
//! Tools are the router's business, so a handful of them is played here; transcripts that are about tools
//! themselves run against the servers only (`contract transcripts`).

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use contract::pattern::{self, Captures, MODERN, Strictness, brief};
use contract::replay::{match_group, outgoing};
use contract::script::{self, Action as Line, Payload as Sent, Script, Transport as Over};
use serde_json::{Value, json};
use tricorn::Error;
use tricorn::jsonrpc::{Decoded, Limits, RawJson, decode};
use tricorn::model::Capabilities;
use tricorn::protocol::revision::Revision;
use tricorn::protocol::{Action, Call, CallId, Connection, Facts, Input, Payload, Role, Structured, Transport};

/// About what is registered, how it is described and checked, and handlers that ask; or about what a program prints.
const NOT_THE_ENGINES: [&str; 60] = [
    "2026-07-28/caching",
    "2026-07-28/extension",
    "legacy/caching",
    "legacy/extension",
    "legacy/extension-undeclared",
    "legacy/mark",
    "legacy/odd-answers",
    "legacy/odd-clients",
    "2024-11-05/no-elicitation",
    "2025-06-18/elicitation",
    "2025-06-18/elicitation-forms",
    "2025-11-25/elicitation",
    "2025-11-25/elicitation-forms",
    "2025-11-25/elicitation-sessions",
    "2025-11-25/reconnection",
    "2026-07-28/listen",
    "2026-07-28/listen-ids",
    "2026-07-28/listen-wrong",
    "2026-07-28/log",
    "2026-07-28/logging",
    "2026-07-28/official-tools",
    "2026-07-28/own-stream",
    "2026-07-28/results-everywhere",
    "2026-07-28/rounds",
    "2026-07-28/rounds-by-hand",
    "2026-07-28/tasks",
    "2026-07-28/tasks-off",
    "all/completion",
    "all/context",
    "all/print",
    "all/prompts",
    "all/resources",
    "all/tools-arguments",
    "all/tools-call-content",
    "all/tools-call-errors",
    "all/tools-call-structured",
    "all/tools-list",
    "all/tools-list-pages",
    "all/tools-list-schema",
    "bad/answers-elicitation",
    "bad/answers-roots",
    "bad/answers-sampling",
    "bad/completion",
    "bad/cursors",
    "bad/log-level",
    "bad/numbers",
    "bad/params-wrong",
    "bad/prompts",
    "bad/resources",
    "bad/subscriptions",
    "bad/tasks",
    "legacy/capabilities",
    "legacy/log-level",
    "legacy/meta-keys",
    "legacy/resource-updates",
    "legacy/resources-params",
    "legacy/roots",
    "legacy/sampling",
    "legacy/subscriptions",
    "legacy/undeclared",
];

type Outcome<T = ()> = Result<T, String>;

struct Engine {
    connection: Connection,
    said: VecDeque<Value>,
    /// Slow calls under way and how long they are meant to take.
    slow: BTreeMap<CallId, u64>,
    cancelled: usize,
    captures: Captures,
}

fn raw(value: &Value) -> RawJson {
    RawJson::from_value(value)
}

impl Engine {
    fn new(revision: &str) -> Self {
        let facts = Facts {
            role: Role::Server,
            info: raw(&json!({
                "name": "everything", "version": "1.0.0", "title": "Everything",
                "description": "Every fixture of the contract suite", "websiteUrl": "https://example.com/everything",
                "icons": [{"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "light"}],
            })),
            capabilities: Capabilities::new(raw(&json!({"tools": {}}))),
            instructions: Some("Call any tool.".into()),
            discovery: tricorn::model::CacheHints::new(),
            revisions: Revision::ALL.to_vec(),
            max_in_flight: 256,
            methods: Vec::new(),
            passes_on: false,
            max_listeners: 64,
            max_queued_notifications: 256,
            keep_alive: None,
        };
        Self {
            connection: Connection::new(Arc::new(facts), Arc::new(Transport::new("stdio"))),
            said: VecDeque::new(),
            slow: BTreeMap::new(),
            cancelled: 0,
            captures: Captures::from([("revision".into(), revision.into())]),
        }
    }

    fn hear(&mut self, line: &[u8]) {
        // A blank line is no message; that is the transport's to know.
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let input = match decode(&Bytes::copy_from_slice(line), &Limits::default()) {
            Ok(Decoded::One(message)) => Input::Received(message),
            Ok(Decoded::Batch(parts)) => Input::Batch(parts),
            Err(error) => Input::Invalid(error),
        };
        self.handle(input);
    }

    fn handle(&mut self, input: Input) {
        for action in self.connection.handle(Duration::ZERO, input) {
            match action {
                Action::Send(message) => {
                    match serde_json::from_slice(&message.frame).expect("the engine speaks JSON") {
                        Value::Array(batch) => self.said.extend(batch),
                        one => self.said.push_back(one),
                    }
                }
                Action::Dispatch(call) => self.run(&call),
                Action::Abort(id, _) => {
                    self.slow.remove(&id);
                    self.cancelled += 1;
                }
                _ => {}
            }
        }
    }

    fn run(&mut self, call: &Call) {
        let text = |raw: &Option<RawJson>| raw.as_ref().and_then(|raw| raw.to::<Value>().ok()).unwrap_or_default();
        let (name, arguments) = (text(&call.name), text(&call.arguments));
        let number = |key: &str| arguments[key].as_i64().unwrap_or_default();
        let missing = || Payload::Failed("arguments are missing".into());
        let outcome = match name.as_str().unwrap_or_default() {
            "" => Ok(Payload::Object(raw(&json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})))),
            "test_simple_text" => Ok(Payload::Text("This is a simple text response for testing.".into())),
            "echo" => Ok(arguments["text"].as_str().map_or_else(missing, |text| Payload::Text(text.to_owned()))),
            "any_value" => Ok(Payload::Value { value: raw(&arguments["value"]), structured: Structured::Plain }),
            "add" => Ok(match (arguments["a"].as_i64(), arguments["b"].as_i64()) {
                (Some(a), Some(b)) => Payload::Value { value: raw(&json!(a + b)), structured: Structured::Plain },
                _ => missing(),
            }),
            "fail" => Ok(Payload::Failed("the tool says no".into())),
            "test_tool_with_progress" => {
                for progress in [0.0, 50.0, 100.0] {
                    self.handle(Input::Progress { call: call.id, progress, total: Some(100.0), message: None });
                }
                Ok(Payload::Text("done".into()))
            }
            "slow" => {
                let (progress, total) = (0.0, Some(number("ms") as f64));
                self.handle(Input::Progress { call: call.id, progress, total, message: Some("started".into()) });
                self.slow.insert(call.id, number("ms").unsigned_abs());
                return;
            }
            "test_metrics" => {
                let counts = json!({"started": self.cancelled, "cancelled": self.cancelled, "finished": 0, "running": self.slow.len()});
                Ok(Payload::Value { value: raw(&json!({"slow": counts})), structured: Structured::Plain })
            }
            other => Err(Error::rpc(-32602, format!("unknown tool {other:?}"))),
        };
        self.handle(Input::Completed(call.id, outcome));
    }

    /// The next message. When there is none, time passes: the shortest slow call ends.
    fn next(&mut self) -> Outcome<Value> {
        if self.said.is_empty()
            && let Some((&call, &ms)) = self.slow.iter().min_by_key(|(_, ms)| **ms)
        {
            self.slow.remove(&call);
            let (progress, total) = (ms as f64, Some(ms as f64));
            self.handle(Input::Progress { call, progress, total, message: Some("done".into()) });
            self.handle(Input::Completed(call, Ok(Payload::Text(format!("slept {ms} ms")))));
        }
        self.said.pop_front().ok_or_else(|| "the engine says nothing".into())
    }

    fn send(&mut self, value: &Value, envelope: bool) -> Outcome {
        let sent = Sent::Message { value: value.clone(), envelope };
        let outgoing = outgoing::compose(&sent, &self.captures)?;
        self.hear(&outgoing.bytes);
        Ok(())
    }

    fn expect(&mut self, pattern: &Value, how: Strictness) -> Outcome {
        let got = self.next()?;
        pattern::check(pattern, &got, how, &mut self.captures)
    }

    fn live(&mut self, modern: bool) -> Outcome {
        self.send(&json!({"id": "alive", "method": "tools/call", "params": {"name": "test_simple_text"}}), modern)?;
        self.expect(&json!({"id": "alive", "result": {"content": [{"type": "text"}]}}), Strictness::Subset)
    }

    fn line(&mut self, line: &Line) -> Outcome {
        match line {
            Line::Send { payload, .. } => {
                let outgoing = outgoing::compose(payload, &self.captures)?;
                self.hear(&outgoing.bytes);
                Ok(())
            }
            Line::Expect { pattern, how, label: None } => self.expect(pattern, *how),
            Line::Expect { pattern, how, label: Some(_) } => {
                let fits = |message: &Value| pattern::check(pattern, message, *how, &mut self.captures.clone()).is_ok();
                let got = match self.said.iter().position(fits) {
                    Some(place) => self.said.remove(place).unwrap_or_default(),
                    None => self.next()?,
                };
                pattern::check(pattern, &got, *how, &mut self.captures)
            }
            Line::Group { patterns, .. } => {
                let received = patterns.iter().map(|_| self.next()).collect::<Outcome<Vec<_>>>()?;
                match_group(patterns, received, &mut self.captures)
            }
            Line::Until { message, pattern, how } => {
                let modern = self.captures["revision"] == MODERN;
                let (mut message, mut pattern) = (message.clone(), pattern.clone());
                message["id"] = "until".into();
                pattern["id"] = "until".into();
                self.send(&message, modern)?;
                self.expect(&pattern, *how)
            }
            // What concerns a transport alone.
            _ => Ok(()),
        }
    }
}

fn play(script: &Script) -> Outcome {
    let mut engine = Engine::new(&script.revision);
    let modern = script.revision == MODERN;
    if script.open && !modern {
        let params = json!({"protocolVersion": script.revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
        engine.send(&json!({"id": "i", "method": "initialize", "params": params}), false)?;
        engine.expect(&json!({"id": "i", "result": {"protocolVersion": script.revision}}), Strictness::Subset)?;
        engine.send(&json!({"method": "notifications/initialized"}), false)?;
    }
    let mut sent = false;
    for step in script.steps.iter().filter(|step| step.on != Some(Over::Http)) {
        let named = |reason| format!("line {}: {reason}", step.line);
        let sends = matches!(step.action, Line::Send { label: None, .. });
        if script.alive && sends && std::mem::replace(&mut sent, true) {
            engine.live(modern).map_err(|reason| named(format!("the valid call before it: {reason}")))?;
        }
        engine.line(&step.action).map_err(named)?;
    }
    engine.handle(Input::Closed("the end".into()));
    match engine.said.pop_front() {
        None => Ok(()),
        Some(message) => Err(format!("nobody expected {}", brief(&message))),
    }
}

#[test]
fn the_engine_alone_says_what_the_transcripts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/transcripts");
    let scripts = script::read_all(&folder).expect("the transcripts can be read");
    let about_the_engine =
        scripts.iter().filter(|s| s.only != Some(Over::Http) && !NOT_THE_ENGINES.contains(&s.name.as_str()));
    let mut failures = Vec::new();
    let mut played = 0;
    for script in about_the_engine {
        played += 1;
        if let Err(reason) = play(script) {
            failures.push(format!("{} {}: {reason}", script.revision, script.name));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(played > 80, "only {played} transcripts were found");
}

#[test]
fn what_is_left_out_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/transcripts");
    for name in NOT_THE_ENGINES {
        assert!(folder.join(format!("{name}.txt")).is_file(), "{name}");
    }
}
