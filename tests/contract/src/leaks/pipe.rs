//! The loads on one pipe. There are no sessions here, and a killed client is a closed pipe.

use super::{Load, nothing_left};
use crate::Outcome;
use crate::pattern::brief;
use crate::replay::outgoing::complete;
use crate::wire::stdio::Pipe;
use serde_json::{Value, json};
use std::time::Duration;

/// Requests under way at once.
const WINDOW: usize = 32;

fn request(id: &str, name: &str, arguments: Value, token: bool) -> Vec<u8> {
    let mut params = json!({"name": name, "arguments": arguments});
    if token {
        params["_meta"] = json!({"progressToken": id});
    }
    let mut message = json!({"id": id, "method": "tools/call", "params": params});
    complete(&mut message, true);
    message.to_string().into_bytes()
}

fn next(server: &mut Pipe, limit: Duration) -> Outcome<Value> {
    server.next(limit)?.ok_or_else(|| "the server closed its output".into())
}

/// Calls with several under way, then calls that are cancelled while they run; `tell` hears of each part that is done.
pub(super) fn apply(server: &mut Pipe, load: Load, limit: Duration, tell: impl Fn(&str)) -> Outcome {
    let (mut sent, mut answered) = (0, 0);
    while answered < load.calls {
        while sent < load.calls && sent - answered < WINDOW {
            server.send(&request(&format!("call-{sent}"), "add", json!({"a": sent, "b": 1}), false))?;
            sent += 1;
        }
        let answer = next(server, limit)?;
        if answer.get("result").is_none() {
            return Err(format!("calls: {}", brief(&answer)));
        }
        answered += 1;
    }
    tell("calls");
    for number in 0..load.cancels {
        let id = format!("slow-{number}");
        server.send(&request(&id, "slow", json!({"ms": 600_000}), true))?;
        let progress = next(server, limit)?;
        if progress.pointer("/params/progressToken").and_then(Value::as_str) != Some(&id) {
            return Err(format!("cancelled calls: expected the progress of {id}, got {}", brief(&progress)));
        }
        let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        server.send(cancelled.to_string().as_bytes())?;
    }
    Ok(())
}

/// Whether the server holds nothing of ours any more.
pub(super) fn settled(server: &mut Pipe, limit: Duration) -> Outcome<bool> {
    server.send(&request("metrics", "test_metrics", json!({}), false))?;
    nothing_left(&next(server, limit)?)
}
