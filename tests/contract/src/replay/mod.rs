//! Transcripts against a running server: every script, on every transport it is for.

pub mod outgoing;

mod over_http;
mod over_stdio;

use crate::launch::{self, Listening};
use crate::options::Options;
use crate::pattern::{self, Captures, MODERN, Strictness};
use crate::report::Report;
use crate::script::{self, Action, Payload, Script, Transport};
use crate::{Failure, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Folder names below `tests/transcripts` that belong to `contract bad-input`.
pub const BAD: &str = "bad/";

/// Replay every transcript whose name passes `select`.
pub fn run(options: &Options, select: impl Fn(&str) -> bool, report: &mut Report) -> Outcome {
    let folder = launch::root()?.join("tests/transcripts");
    let command = launch::server(options)?;
    replay(&folder, &command, options, select, report)
}

/// Replay the scripts of `folder` against the server that `command` starts.
pub fn replay(
    folder: &Path,
    command: &[String],
    options: &Options,
    select: impl Fn(&str) -> bool,
    report: &mut Report,
) -> Outcome {
    let mut servers: BTreeMap<Vec<(String, String)>, Listening> = BTreeMap::new();
    for script in script::read_all(folder)? {
        if !select(&script.name) || !options.wants(&format!("{} {}", script.revision, script.name)) {
            continue;
        }
        for transport in [Transport::Stdio, Transport::Http] {
            if script.only.is_some_and(|only| only != transport)
                || options.transport.is_some_and(|only| only != transport)
            {
                continue;
            }
            let language = if options.language.is_empty() { "server" } else { &options.language };
            let name = format!("{language} {} {} {}", transport.name(), script.revision, script.name);
            if let Some((_, reason)) = script.skips.iter().find(|(gap, _)| gap == language || gap == "all") {
                report.skip(&name, reason);
                continue;
            }
            let outcome = match transport {
                Transport::Stdio => over_stdio::play(&script, command, options),
                Transport::Http => {
                    if servers.get_mut(&script.environment).is_some_and(|server| !server.alive()) {
                        servers.remove(&script.environment);
                        report.fail(&name, "the server died during the script before this one");
                    }
                    if !servers.contains_key(&script.environment) {
                        let server = Listening::start(command, &script.environment)?;
                        servers.insert(script.environment.clone(), server);
                    }
                    let server = &servers[&script.environment];
                    over_http::play(&script, server, options)
                }
            };
            report.record(&name, outcome);
        }
    }
    for (environment, server) in servers {
        let name = format!("{} http ends on SIGTERM {environment:?}", options.language);
        report.record(&name, server.terminate(Duration::from_secs(5)).map(drop));
    }
    Ok(())
}

/// Returns the captures before the first step.
fn initial_captures(script: &Script) -> Captures {
    Captures::from([("revision".to_owned(), Value::from(script.revision.clone()))])
}

/// The handshake of a legacy script: what is sent.
fn initialize(revision: &str) -> Value {
    serde_json::json!({
        "jsonrpc": "2.0",
        "id": "initialize",
        "method": "initialize",
        "params": {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "contract", "version": "1.0.0"},
        },
    })
}

/// The handshake of a legacy script: what must come back.
fn initialized(revision: &str) -> Value {
    serde_json::json!({
        "jsonrpc": "2.0",
        "id": "initialize",
        "result": {"protocolVersion": revision},
    })
}

/// The valid call that shows that the connection lives, and its answer.
fn sign_of_life(revision: &str) -> [Action; 2] {
    let value = serde_json::json!({"id": "alive", "method": "tools/call", "params": {"name": "test_simple_text", "arguments": {}}});
    let pattern = serde_json::json!({
        "jsonrpc": "2.0",
        "id": "alive",
        "result": {"content": [{"type": "text", "text": "This is a simple text response for testing."}]},
    });
    [
        Action::Send { payload: Payload::Message { value, envelope: revision == MODERN }, label: None },
        Action::Expect { pattern, how: Strictness::Subset, label: None },
    ]
}

/// Match received messages with patterns in any order.
pub fn match_group(patterns: &[(Value, Strictness)], received: Vec<Value>, captures: &mut Captures) -> Outcome {
    let mut open: Vec<&(Value, Strictness)> = patterns.iter().collect();
    for message in received {
        let mut reasons = Vec::new();
        let place = open.iter().position(|(pattern, how)| {
            let mut attempt = captures.clone();
            match pattern::check(pattern, &message, *how, &mut attempt) {
                Ok(()) => {
                    *captures = attempt;
                    true
                }
                Err(reason) => {
                    reasons.push(reason);
                    false
                }
            }
        });
        match place {
            Some(place) => {
                open.remove(place);
            }
            None => {
                return Err(format!("{} fits nothing in the group: {}", pattern::brief(&message), reasons.join(" | ")));
            }
        }
    }
    Ok(())
}

/// `reason`, with the line of the script it belongs to.
fn at_line(line: usize, reason: Failure) -> Failure {
    format!("line {line}: {reason}")
}
