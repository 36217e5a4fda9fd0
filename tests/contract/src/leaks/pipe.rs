//! The loads on one pipe, which speaks both eras. There are no sessions to leave here, and a killed client is a closed
//! pipe.

use super::http::LEGACY;
use super::mix::{self, Line, Mix};
use super::{Load, nothing_left};
use crate::Outcome;
use crate::pattern::brief;
use crate::replay::outgoing::complete;
use crate::wire::stdio::{Pipe, Tail};
use serde_json::{Value, json};
use std::time::Duration;

/// Requests under way at once.
const WINDOW: usize = 32;

/// A client at its pipe.
pub(super) struct Client {
    pipe: Pipe,
    limit: Duration,
    last: u64,
}

impl Client {
    /// Open the legacy session that the mix needs.
    pub(super) fn open(mut pipe: Pipe, limit: Duration) -> Outcome<Self> {
        let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": LEGACY,
            "capabilities": mix::capabilities(),
            "clientInfo": {"name": "contract", "version": "1"},
        }});
        pipe.send(initialize.to_string().as_bytes())?;
        let mut client = Self { pipe, limit, last: 0 };
        let answer = client.next()?;
        if answer.get("result").is_none() {
            return Err(format!("initialize: {}", brief(&answer)));
        }
        client.tell(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(client)
    }

    /// The server's process id.
    pub(super) fn id(&self) -> u32 {
        self.pipe.id()
    }

    /// Its standard error.
    pub(super) fn log(&self) -> Tail {
        self.pipe.log.clone()
    }

    fn next(&mut self) -> Outcome<Value> {
        self.pipe.next(self.limit)?.ok_or_else(|| "the server closed its output".into())
    }

    /// Start a call in which the server asks; it waits for the answer when this returns.
    pub(super) fn start_question(&mut self, number: usize) -> Outcome {
        let mix = Mix::read()?;
        mix.unanswered[number % mix.unanswered.len()].until_asked(self)
    }

    /// A call of the modern era.
    fn call(&mut self, id: &str, name: &str, arguments: Value, token: bool) -> Outcome {
        let mut params = json!({"name": name, "arguments": arguments});
        if token {
            params["_meta"] = json!({"progressToken": id});
        }
        let mut message = json!({"id": id, "method": "tools/call", "params": params});
        complete(&mut message, true);
        self.pipe.send(message.to_string().as_bytes())
    }
}

impl Line for Client {
    type Asked = ();

    fn ask(&mut self, method: &str, params: &str) -> Outcome<(u64, ())> {
        self.last += 1;
        let id = self.last;
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.pipe.send(text.as_bytes())?;
        Ok((id, ()))
    }

    fn tell(&mut self, message: Value) -> Outcome {
        self.pipe.send(message.to_string().as_bytes())
    }

    fn hear(&mut self, (): &mut ()) -> Outcome<Option<Value>> {
        self.next().map(Some)
    }

    fn overhear(&mut self) -> Outcome<Value> {
        self.next()
    }

    fn done(&mut self, (): ()) -> Outcome {
        Ok(())
    }

    /// An answer that comes all the same is found while the next one is waited for.
    fn cancelled(&mut self, _: u64, (): ()) -> Outcome {
        Ok(())
    }
}

/// Calls with several under way, calls that are cancelled while they run, the mix; `tell` hears of each part that is
/// done.
pub(super) fn apply(client: &mut Client, load: Load, tell: impl Fn(&str)) -> Outcome {
    let (mut sent, mut answered) = (0, 0);
    while answered < load.calls {
        while sent < load.calls && sent - answered < WINDOW {
            client.call(&format!("call-{sent}"), "add", json!({"a": sent, "b": 1}), false)?;
            sent += 1;
        }
        let answer = client.next()?;
        if answer.get("result").is_none() {
            return Err(format!("calls: {}", brief(&answer)));
        }
        answered += 1;
    }
    tell("calls");
    for number in 0..load.cancels {
        let id = format!("slow-{number}");
        client.call(&id, "slow", json!({"ms": 600_000}), true)?;
        let progress = client.next()?;
        if progress.pointer("/params/progressToken").and_then(Value::as_str) != Some(&id) {
            return Err(format!("cancelled calls: expected the progress of {id}, got {}", brief(&progress)));
        }
        client.tell(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))?;
    }
    tell("cancelled calls");
    let mix = Mix::read()?;
    for number in 0..load.rounds {
        mix.round(client, number).map_err(|reason| format!("the mix: {reason}"))?;
        if number % mix::SESSION == 0 {
            mix.leave(client).map_err(|reason| format!("the mix: {reason}"))?;
        }
    }
    // Tasks that were left tell how they end: not in the middle of the next calls.
    super::wait_until(&mut || settled(client))
}

/// Returns true if the server holds nothing of ours any more.
pub(super) fn settled(client: &mut Client) -> Outcome<bool> {
    client.call("metrics", "test_metrics", json!({}), false)?;
    loop {
        let message = client.next()?;
        if message.get("method").is_none() {
            return nothing_left(&message);
        }
    }
}
