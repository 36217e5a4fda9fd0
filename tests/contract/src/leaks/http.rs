//! The loads over Streamable HTTP, half of each in either era.

use super::mix::{self, Line, Mix};
use super::{Load, SETTLE, nothing_left, victim};
use crate::Outcome;
use crate::launch::Listening;
use crate::pattern::MODERN;
use crate::replay::outgoing::{Outgoing, complete, headers};
use crate::wire::http::{Connection, Endpoint, Exchange, Request};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const WORKERS: usize = 4;

/// The newest revision with sessions.
pub(super) const LEGACY: &str = "2025-11-25";

/// Connections that a client keeps: one for its call, one for what it says meanwhile.
const KEPT: usize = 2;

/// One client: connections that are kept, and a session in the legacy era.
pub(crate) struct Client {
    endpoint: Endpoint,
    connections: Vec<Connection>,
    session: Option<String>,
    stream: Option<Exchange>,
    revision: &'static str,
    /// Answer to `initialize`.
    opened: Option<Value>,
    limit: Duration,
    last: u64,
}

impl Client {
    /// Connect and, in the legacy era, open a session.
    pub(crate) fn open(endpoint: &Endpoint, modern: bool, limit: Duration) -> Outcome<Self> {
        Self::of(endpoint, if modern { MODERN } else { LEGACY }, limit)
    }

    /// The same in any revision.
    pub(crate) fn of(endpoint: &Endpoint, revision: &'static str, limit: Duration) -> Outcome<Self> {
        Self::with(endpoint, revision, json!({}), limit)
    }

    /// A legacy session that can be asked everything.
    pub(crate) fn able(endpoint: &Endpoint, limit: Duration) -> Outcome<Self> {
        Self::with(endpoint, LEGACY, mix::capabilities(), limit)
    }

    fn with(endpoint: &Endpoint, revision: &'static str, capabilities: Value, limit: Duration) -> Outcome<Self> {
        let mut client = Self {
            endpoint: endpoint.clone(),
            connections: Vec::new(),
            session: None,
            stream: None,
            revision,
            opened: None,
            limit,
            last: 0,
        };
        if revision != MODERN {
            let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": "contract", "version": "1"}});
            let mut exchange = client.send("initialize", params, true)?;
            let session = exchange.head(limit)?.get("mcp-session-id").map(str::to_owned);
            client.opened = Some(exchange.next(limit)?.ok_or("no answer to initialize")?);
            client.done(exchange)?;
            client.session = session;
            let exchange = client.send("notifications/initialized", json!({}), false)?;
            client.done(exchange)?;
        }
        Ok(client)
    }

    pub(crate) fn send(&mut self, method: &str, params: Value, asks: bool) -> Outcome<Exchange> {
        let mut message = json!({"method": method, "params": params});
        if asks {
            self.last += 1;
            message["id"] = self.last.into();
        }
        complete(&mut message, self.revision == MODERN);
        self.post(&Outgoing { bytes: message.to_string().into_bytes(), value: Some(message) })
    }

    fn post(&mut self, outgoing: &Outgoing) -> Outcome<Exchange> {
        let request = Request {
            method: "POST".into(),
            path: self.endpoint.path.clone(),
            headers: headers(outgoing, self.revision, self.session.as_deref(), self.version()),
            body: Some(outgoing.bytes.clone()),
        };
        let connection = match self.connections.pop() {
            Some(connection) => connection,
            None => Connection::open(&self.endpoint)?,
        };
        Exchange::start(connection, &request, &self.endpoint.authority)
    }

    /// Returns the revision that each request of the session names: none in the oldest.
    fn version(&self) -> Option<&'static str> {
        (self.session.is_some() && self.revision >= "2025-06-18").then_some(self.revision)
    }

    /// Returns the server's answer from the opening of the session.
    pub(crate) fn opened(&self) -> Option<&Value> {
        self.opened.as_ref()
    }

    /// End the session, if there is one.
    pub(crate) fn leave(self) -> Outcome {
        if self.session.is_some() { self.request("DELETE").map(drop) } else { Ok(()) }
    }

    pub(crate) fn done(&mut self, mut exchange: Exchange) -> Outcome {
        if let Some(message) = exchange.next(self.limit)? {
            return Err(format!("a message nobody expected: {}", crate::pattern::brief(&message)));
        }
        self.keep(exchange);
        Ok(())
    }

    fn keep(&mut self, exchange: Exchange) {
        self.connections.extend(exchange.recycle().filter(Connection::usable));
        self.connections.truncate(KEPT);
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
        self.start_slow_for(600_000)
    }

    /// The same of one that takes so many milliseconds.
    pub(crate) fn start_slow_for(&mut self, ms: u64) -> Outcome<Exchange> {
        let token = self.last + 1;
        let params = json!({"name": "slow", "arguments": {"ms": ms}, "_meta": {"progressToken": token}});
        let mut exchange = self.send("tools/call", params, true)?;
        let first = exchange.next(self.limit)?.ok_or("the slow call ended")?;
        if first.get("method").is_none() {
            return Err(format!("the slow call did not start: {}", crate::pattern::brief(&first)));
        }
        Ok(exchange)
    }

    /// Start a call in which the server asks; it waits for the answer when this returns.
    pub(crate) fn start_question(&mut self, number: usize) -> Outcome<Exchange> {
        let mix = Mix::read()?;
        mix.unanswered[number % mix.unanswered.len()].until_asked(self)
    }

    fn cancel_slow(&mut self) -> Outcome {
        let mut exchange = self.start_slow()?;
        if self.revision == MODERN {
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
        if with_stream && self.session.is_some() { self.request("GET").map(drop) } else { Ok(()) }
    }

    /// GET: the standalone stream. DELETE: the end of the session.
    fn request(&self, method: &str) -> Outcome<Exchange> {
        let mut headers = vec![
            ("Accept".into(), "text/event-stream".into()),
            ("Mcp-Session-Id".into(), self.session.clone().unwrap_or_default()),
        ];
        headers.extend(self.version().map(|version| ("MCP-Protocol-Version".into(), version.into())));
        let request = Request { method: method.into(), path: self.endpoint.path.clone(), headers, body: None };
        let mut exchange = Exchange::start(Connection::open(&self.endpoint)?, &request, &self.endpoint.authority)?;
        let status = exchange.head(self.limit)?.status;
        if matches!(status, 200 | 202 | 204) { Ok(exchange) } else { Err(format!("{method}: status {status}")) }
    }
}

impl Line for Client {
    type Asked = Exchange;

    fn ask(&mut self, method: &str, params: &str) -> Outcome<(u64, Exchange)> {
        self.last += 1;
        let id = self.last;
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        Ok((id, self.post(&Outgoing { bytes: text.into_bytes(), value: None })?))
    }

    fn tell(&mut self, message: Value) -> Outcome {
        let exchange = self.post(&Outgoing { bytes: message.to_string().into_bytes(), value: None })?;
        self.done(exchange)
    }

    fn hear(&mut self, asked: &mut Exchange) -> Outcome<Option<Value>> {
        asked.next(self.limit)
    }

    fn overhear(&mut self) -> Outcome<Value> {
        let stream = self.stream.as_mut().ok_or("there is no standalone stream")?;
        stream.next(self.limit)?.ok_or_else(|| "the standalone stream ended".into())
    }

    fn done(&mut self, asked: Exchange) -> Outcome {
        Self::done(self, asked)
    }

    fn cancelled(&mut self, id: u64, mut asked: Exchange) -> Outcome {
        while let Some(message) = asked.next(self.limit)? {
            if message.get("id").is_some_and(|answered| *answered == id) {
                return Err(format!("a cancelled call was answered: {}", crate::pattern::brief(&message)));
            }
        }
        self.keep(asked);
        Ok(())
    }
}

/// Rounds of the mix, in sessions that are left in every way there is.
fn rounds(endpoint: &Endpoint, mix: &Mix, count: usize, limit: Duration) -> Outcome {
    let mut done = 0;
    for session in 0.. {
        if done == count {
            break;
        }
        let mut client = Client::able(endpoint, limit)?;
        client.stream = Some(client.request("GET")?);
        let last = count.min(done + mix::SESSION);
        for number in done..last {
            mix.round(&mut client, number)?;
        }
        done = last;
        mix.leave(&mut client)?;
        // Ended, or not a word; or in the middle of a question.
        match session % (mix.unanswered.len() + 2) {
            0 => drop(client.request("DELETE")?),
            1 => {}
            other => drop(mix.unanswered[other - 2].until_asked(&mut client)?),
        }
    }
    Ok(())
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
    let mix = Mix::read()?;
    spread(load.rounds, |_, _, count| rounds(&server.endpoint, &mix, count, limit))
        .map_err(|reason| format!("the mix: {reason}"))?;
    tell("rounds of the mix");
    spread(load.kills, |_, modern, count| victim::kill(&server.url, modern, count))
        .map_err(|reason| format!("killed clients: {reason}"))?;
    tell("killed clients");
    let opened = AtomicUsize::new(0);
    spread(load.streams, |_, _, count| streams(&server.endpoint, count, limit, &opened))
        .and_then(|()| all("acknowledged", &opened, load.streams))
        .map_err(|reason| format!("listen streams: {reason}"))?;
    tell(&format!("{} abandoned listen streams", load.streams));
    let made = AtomicUsize::new(0);
    spread(load.tasks, |_, _, count| tasks(&server.endpoint, count, limit, &made))
        .and_then(|()| all("made", &made, load.tasks))
        .map_err(|reason| format!("forgotten tasks: {reason}"))?;
    tell(&format!("{} forgotten tasks", load.tasks));
    Ok(())
}

/// Checks that the count is the wanted one.
fn all(what: &str, counted: &AtomicUsize, wanted: usize) -> Outcome {
    match counted.load(Ordering::Relaxed) {
        counted if counted == wanted => Ok(()),
        counted => Err(format!("{counted} of {wanted} were {what}")),
    }
}

/// Listen streams that are left without a word, so many at a time.
fn streams(endpoint: &Endpoint, count: usize, limit: Duration, acknowledged: &AtomicUsize) -> Outcome {
    const AT_A_TIME: usize = 20;
    let mut open = Vec::with_capacity(AT_A_TIME);
    let mut client = Client::open(endpoint, true, limit)?;
    for _ in 0..count {
        let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://watched-resource"]});
        let mut stream = client.send("subscriptions/listen", json!({"notifications": filter}), true)?;
        let first = stream.next(limit)?.ok_or("the stream ended")?;
        if first["method"] != "notifications/subscriptions/acknowledged" {
            return Err(format!("not acknowledged: {}", crate::pattern::brief(&first)));
        }
        acknowledged.fetch_add(1, Ordering::Relaxed);
        open.push(stream);
        if open.len() == AT_A_TIME {
            open.drain(..).for_each(Exchange::close);
        }
    }
    open.into_iter().for_each(Exchange::close);
    Ok(())
}

/// Tasks that nobody looks at: one half works for ten minutes, the other waits for an answer. Where as many as there may
/// be are there already, they go in their time, and the next is made then.
fn tasks(endpoint: &Endpoint, count: usize, limit: Duration, made: &AtomicUsize) -> Outcome {
    let mut client = Client::open(endpoint, true, limit)?;
    let mut number = 0;
    let mut deadline = Instant::now() + SETTLE;
    while number < count {
        let (name, arguments) = match number % 2 {
            0 => ("slow", json!({"ms": 600_000})),
            _ => ("confirm_delete", json!({"filename": "x"})),
        };
        let capabilities = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
        let meta = json!({"io.modelcontextprotocol/clientCapabilities": capabilities});
        let params = json!({"name": name, "arguments": arguments, "_meta": meta});
        let mut exchange = client.send("tools/call", params, true)?;
        let answer = exchange.next(limit)?.ok_or("the call was not answered")?;
        client.done(exchange)?;
        if answer["result"]["resultType"] == "task" {
            made.fetch_add(1, Ordering::Relaxed);
            number += 1;
            deadline = Instant::now() + SETTLE;
            continue;
        }
        let full = answer["error"]["message"].as_str().is_some_and(|message| message.contains("max_tasks"));
        if !full || Instant::now() > deadline {
            return Err(format!("no task: {}", crate::pattern::brief(&answer)));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
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

/// Returns true if the server holds nothing of ours any more.
pub(super) fn settled(server: &Listening, limit: Duration) -> Outcome<bool> {
    let answer = Client::open(&server.endpoint, true, limit)?.call("test_metrics", json!({}))?;
    nothing_left(&answer)
}
