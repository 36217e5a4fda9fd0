//! The loads over Streamable HTTP, half of each in either era.

use super::{Load, nothing_left, victim};
use crate::Outcome;
use crate::launch::Listening;
use crate::pattern::MODERN;
use crate::replay::outgoing::{Outgoing, complete, headers};
use crate::wire::http::{Connection, Endpoint, Exchange, Request};
use serde_json::{Value, json};
use std::time::Duration;

const WORKERS: usize = 4;

/// The newest revision with sessions.
pub(super) const LEGACY: &str = "2025-11-25";

/// One client: a connection that is kept, and a session in the legacy era.
pub(crate) struct Client {
    endpoint: Endpoint,
    connection: Option<Connection>,
    session: Option<String>,
    modern: bool,
    limit: Duration,
    last: u64,
}

impl Client {
    /// Connect and, in the legacy era, open a session.
    pub(crate) fn open(endpoint: &Endpoint, modern: bool, limit: Duration) -> Outcome<Self> {
        let mut client = Self { endpoint: endpoint.clone(), connection: None, session: None, modern, limit, last: 0 };
        if !modern {
            let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "contract", "version": "1"}});
            let mut exchange = client.send("initialize", params, true)?;
            let session = exchange.head(limit)?.get("mcp-session-id").map(str::to_owned);
            exchange.next(limit)?.ok_or("no answer to initialize")?;
            client.done(exchange)?;
            client.session = session;
            let exchange = client.send("notifications/initialized", json!({}), false)?;
            client.done(exchange)?;
        }
        Ok(client)
    }

    fn send(&mut self, method: &str, params: Value, asks: bool) -> Outcome<Exchange> {
        let mut message = json!({"method": method, "params": params});
        if asks {
            self.last += 1;
            message["id"] = self.last.into();
        }
        complete(&mut message, self.modern);
        let outgoing = Outgoing { bytes: message.to_string().into_bytes(), value: Some(message) };
        let revision = if self.modern { MODERN } else { LEGACY };
        let request = Request {
            method: "POST".into(),
            path: self.endpoint.path.clone(),
            headers: headers(&outgoing, revision, self.session.as_deref(), self.session.as_ref().map(|_| LEGACY)),
            body: Some(outgoing.bytes),
        };
        let connection = match self.connection.take().filter(Connection::usable) {
            Some(connection) => connection,
            None => Connection::open(&self.endpoint)?,
        };
        Exchange::start(connection, &request, &self.endpoint.authority)
    }

    fn done(&mut self, mut exchange: Exchange) -> Outcome {
        if let Some(message) = exchange.next(self.limit)? {
            return Err(format!("a message nobody expected: {}", crate::pattern::brief(&message)));
        }
        self.connection = exchange.recycle();
        Ok(())
    }

    /// Call a tool and read its answer.
    pub(super) fn call(&mut self, name: &str, arguments: Value) -> Outcome<Value> {
        let mut exchange = self.send("tools/call", json!({"name": name, "arguments": arguments}), true)?;
        let answer = exchange.next(self.limit)?.ok_or("the call was not answered")?;
        self.done(exchange)?;
        Ok(answer)
    }

    /// Start a call that takes ten minutes; it is running when this returns.
    pub(crate) fn start_slow(&mut self) -> Outcome<Exchange> {
        let token = self.last + 1;
        let params = json!({"name": "slow", "arguments": {"ms": 600_000}, "_meta": {"progressToken": token}});
        let mut exchange = self.send("tools/call", params, true)?;
        let first = exchange.next(self.limit)?.ok_or("the slow call ended")?;
        if first.get("method").is_none() {
            return Err(format!("the slow call did not start: {}", crate::pattern::brief(&first)));
        }
        Ok(exchange)
    }

    fn cancel_slow(&mut self) -> Outcome {
        let mut exchange = self.start_slow()?;
        if self.modern {
            exchange.close();
            return Ok(());
        }
        let id = self.last;
        let notification = self.send("notifications/cancelled", json!({"requestId": id}), false)?;
        self.done(notification)?;
        match exchange.next(self.limit)? {
            None => Ok(()),
            Some(answer) => Err(format!("a cancelled call was answered: {}", crate::pattern::brief(&answer))),
        }
    }

    /// Leave without a word, half of the time with an open stream.
    fn abandon(self, with_stream: bool) -> Outcome {
        let Some(session) = self.session.filter(|_| with_stream) else {
            return Ok(());
        };
        let request = Request {
            method: "GET".into(),
            path: self.endpoint.path.clone(),
            headers: vec![
                ("Accept".into(), "text/event-stream".into()),
                ("Mcp-Session-Id".into(), session),
                ("MCP-Protocol-Version".into(), LEGACY.into()),
            ],
            body: None,
        };
        let mut exchange = Exchange::start(Connection::open(&self.endpoint)?, &request, &self.endpoint.authority)?;
        exchange.head(self.limit)?;
        Ok(())
    }
}

/// The whole mix; `tell` hears of each part that is done.
pub(super) fn apply(server: &Listening, load: Load, limit: Duration, tell: impl Fn(&str)) -> Outcome {
    spread(load.calls, |_, modern, count| {
        let mut client = Client::open(&server.endpoint, modern, limit)?;
        for number in 0..count {
            let answer = client.call("add", json!({"a": number, "b": 1}))?;
            let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
            if text != Some((number + 1).to_string().as_str()) {
                return Err(format!("{number} + 1 is {}", crate::pattern::brief(&answer)));
            }
        }
        Ok(())
    })
    .map_err(|reason| format!("calls: {reason}"))?;
    tell("calls");
    spread(load.cancels, |_, modern, count| {
        let mut client = Client::open(&server.endpoint, modern, limit)?;
        (0..count).try_for_each(|_| client.cancel_slow())
    })
    .map_err(|reason| format!("cancelled calls: {reason}"))?;
    tell("cancelled calls");
    spread(load.sessions, |worker, _, count| {
        (0..count).try_for_each(|number| {
            Client::open(&server.endpoint, false, limit)?.abandon((worker + number).is_multiple_of(2))
        })
    })
    .map_err(|reason| format!("abandoned sessions: {reason}"))?;
    tell("abandoned sessions");
    spread(load.kills, |_, modern, count| victim::kill(&server.url, modern, count))
        .map_err(|reason| format!("killed clients: {reason}"))
}

/// Share `total` among the workers: worker number, era, count.
fn spread(total: usize, work: impl Fn(usize, bool, usize) -> Outcome + Sync) -> Outcome {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let count = total / WORKERS + usize::from(worker < total % WORKERS);
                let work = &work;
                scope.spawn(move || if count == 0 { Ok(()) } else { work(worker, worker % 2 == 1, count) })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })
}

/// Whether the server holds nothing of ours any more.
pub(super) fn settled(server: &Listening, limit: Duration) -> Outcome<bool> {
    let answer = Client::open(&server.endpoint, true, limit)?.call("test_metrics", json!({}))?;
    nothing_left(&answer)
}
