//! A client of one revision on one of the transports that it has over HTTP.

use super::questions::{Question, fits, opening};
use crate::Outcome;
use crate::leaks::http::Client;
use crate::pattern::{MODERN, brief};
use crate::replay::outgoing::complete;
use crate::wire::http::{Connection, Endpoint, Exchange, Request};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) trait Party {
    /// One request, and its answer.
    fn ask(&mut self, question: Question) -> Outcome;
    /// Start a call; it is under way when its first message is there.
    fn start(&mut self, params: Value, first: &Value) -> Outcome;
    /// The rest of what comes of it.
    fn finish(&mut self, rest: &[Value]) -> Outcome;
    /// End the session, if there is one.
    fn leave(self: Box<Self>) -> Outcome;
}

/// Streamable HTTP, in any revision.
pub(super) struct Streamable {
    client: Client,
    revision: &'static str,
    limit: Duration,
    under_way: Option<Exchange>,
}

impl Streamable {
    pub(super) fn open(endpoint: &Endpoint, revision: &'static str, limit: Duration) -> Outcome<Self> {
        let client = Client::of(endpoint, revision, limit)?;
        let mut it = Self { client, revision, limit, under_way: None };
        let opening = opening(revision);
        match it.client.opened() {
            Some(opened) => fits(opening.method, &opening.answer, opened)?,
            None => it.ask(opening)?,
        }
        Ok(it)
    }

    fn next(&self, exchange: &mut Exchange, what: &str, pattern: &Value) -> Outcome {
        let got = exchange.next(self.limit)?.ok_or_else(|| format!("{what}: the answer ended without this message"))?;
        fits(what, pattern, &got)
    }
}

impl Party for Streamable {
    fn ask(&mut self, question: Question) -> Outcome {
        let Question { method, params, answer } = question;
        let mut exchange = self.client.send(method, params, true)?;
        if self.revision == MODERN && exchange.head(self.limit)?.get("mcp-session-id").is_some() {
            return Err(format!("{method}: a session, in a revision that has none"));
        }
        self.next(&mut exchange, method, &answer)?;
        self.client.done(exchange)
    }

    fn start(&mut self, params: Value, first: &Value) -> Outcome {
        let mut exchange = self.client.send("tools/call", params, true)?;
        self.next(&mut exchange, "the slow call", first)?;
        self.under_way = Some(exchange);
        Ok(())
    }

    fn finish(&mut self, rest: &[Value]) -> Outcome {
        let mut exchange = self.under_way.take().ok_or("no call is under way")?;
        rest.iter().try_for_each(|awaited| self.next(&mut exchange, "the slow call", awaited))?;
        self.client.done(exchange)
    }

    fn leave(self: Box<Self>) -> Outcome {
        self.client.leave()
    }
}

/// HTTP+SSE: all that the server says comes on one stream, which is the session.
pub(super) struct Pair {
    stream: Exchange,
    endpoint: Endpoint,
    /// Address to post to.
    target: String,
    limit: Duration,
    last: u64,
    waiting: Vec<Value>,
}

impl Pair {
    pub(super) fn open(endpoint: &Endpoint, revision: &str, limit: Duration) -> Outcome<Self> {
        let headers = vec![("Accept".to_owned(), "text/event-stream".to_owned())];
        let request = Request { method: "GET".into(), path: "/sse".into(), headers, body: None };
        let mut stream = Exchange::start(Connection::open(endpoint)?, &request, &endpoint.authority)?;
        let target = stream.event("endpoint", limit)?.data;
        let target = if target.starts_with('?') { format!("/sse{target}") } else { target };
        let mut it = Self { stream, endpoint: endpoint.clone(), target, limit, last: 0, waiting: Vec::new() };
        it.ask(opening(revision))?;
        it.post(json!({"method": "notifications/initialized"}))?;
        Ok(it)
    }

    fn post(&self, mut message: Value) -> Outcome {
        complete(&mut message, false);
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        let body = Some(message.to_string().into_bytes());
        let request = Request { method: "POST".into(), path: self.target.clone(), headers, body };
        let connection = Connection::open(&self.endpoint)?;
        let mut exchange = Exchange::start(connection, &request, &self.endpoint.authority)?;
        match exchange.head(self.limit)?.status {
            202 => Ok(()),
            status => Err(format!("{}: status {status}", brief(&message))),
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Outcome<u64> {
        self.last += 1;
        self.post(json!({"id": self.last, "method": method, "params": params}))?;
        Ok(self.last)
    }

    /// The next message that is wanted; others wait.
    fn pick(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Outcome<Value> {
        loop {
            if let Some(place) = self.waiting.iter().position(&wanted) {
                return Ok(self.waiting.remove(place));
            }
            let message = self.stream.next(self.limit).map_err(|reason| format!("{what}: {reason}"))?;
            self.waiting.push(message.ok_or_else(|| format!("{what}: the stream ended"))?);
        }
    }
}

impl Party for Pair {
    fn ask(&mut self, question: Question) -> Outcome {
        let Question { method, params, answer } = question;
        let id = self.request(method, params)?;
        let got = self.pick(method, |message| message["id"] == id)?;
        fits(method, &answer, &got)
    }

    fn start(&mut self, params: Value, first: &Value) -> Outcome {
        self.request("tools/call", params)?;
        let got = self.pick("the slow call", |_| true)?;
        fits("the slow call", first, &got)
    }

    /// Nothing else is said any more, so what is left has to be this and no more.
    fn finish(&mut self, rest: &[Value]) -> Outcome {
        for awaited in rest {
            let got = self.pick("the slow call", |_| true)?;
            fits("the slow call", awaited, &got)?;
        }
        match self.waiting.first() {
            Some(message) => Err(format!("a message nobody expected: {}", brief(message))),
            None => Ok(()),
        }
    }

    fn leave(self: Box<Self>) -> Outcome {
        self.stream.close();
        Ok(())
    }
}
