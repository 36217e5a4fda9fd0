//! A script over Streamable HTTP: each `>` is a POST, the `<` lines after it its answer.

use super::outgoing::{Outgoing, compose, headers};
use super::over_stdio::renumbered;
use super::{at_line, initial_captures, initialize, initialized, match_group, sign_of_life};
use crate::Outcome;
use crate::launch::Listening;
use crate::options::Options;
use crate::pattern::{self, Captures, MODERN, Strictness, brief};
use crate::script::{Action, Payload, Script, Transport};
use crate::wire::http::{Connection, Endpoint, Exchange, Request};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Play against a running server.
pub(super) fn play(script: &Script, server: &Listening, options: &Options) -> Outcome {
    let mut player = Player {
        endpoint: server.endpoint.clone(),
        revision: script.revision.clone(),
        limit: options.timeout,
        captures: initial_captures(script),
        session: None,
        version: None,
        changes: Vec::new(),
        idle: None,
        current: None,
        labelled: BTreeMap::new(),
    };
    let outcome = player.play(script);
    player.hang_up();
    outcome.map_err(
        |reason| {
            if options.verbose { format!("{reason}\n{}", server.log.lines().join("\n")) } else { reason }
        },
    )
}

/// The latest exchange, and what its answer must look like when the script does not say.
struct Current {
    exchange: Exchange,
    usual: &'static [u16],
    checked: bool,
    opening: bool,
}

struct Player {
    endpoint: Endpoint,
    revision: String,
    limit: Duration,
    captures: Captures,
    session: Option<String>,
    version: Option<String>,
    changes: Vec<(String, Option<String>)>,
    idle: Option<Connection>,
    current: Option<Current>,
    labelled: BTreeMap<String, Exchange>,
}

impl Player {
    fn play(&mut self, script: &Script) -> Outcome {
        if script.open && script.revision != MODERN {
            self.open().map_err(|reason| format!("handshake: {reason}"))?;
        }
        let mut sent = false;
        for step in &script.steps {
            if step.on.is_none_or(|on| on == Transport::Http) {
                let sends =
                    matches!(step.action, Action::Send { label: None, .. } | Action::Request { label: None, .. });
                if script.alive && sends && std::mem::replace(&mut sent, true) {
                    self.live(&script.revision).map_err(|reason| at_line(step.line, reason))?;
                }
                self.step(&step.action).map_err(|reason| at_line(step.line, reason))?;
            }
        }
        if script.alive {
            self.live(&script.revision)?;
        }
        self.settle()
    }

    fn open(&mut self) -> Outcome {
        let revision = self.revision.clone();
        let send = |value: Value| Action::Send { payload: Payload::Message { value, envelope: false }, label: None };
        self.step(&send(initialize(&revision)))?;
        self.step(&Action::Expect { pattern: initialized(&revision), how: Strictness::Subset, label: None })?;
        self.step(&send(serde_json::json!({"method": "notifications/initialized"})))?;
        self.settle()
    }

    /// Read the latest answer to its end and hold it against what is usual.
    fn settle(&mut self) -> Outcome {
        let Some(mut current) = self.current.take() else {
            return Ok(());
        };
        if !current.checked {
            let status = current.exchange.head(self.limit)?.status;
            if !current.usual.contains(&status) {
                let body = current.exchange.body(self.limit).unwrap_or_default();
                return Err(format!("status {status}: {}", pattern::shorten(&String::from_utf8_lossy(&body))));
            }
        }
        // An error status that the script expects says it all; its body may be anything.
        if current.checked && current.exchange.head(self.limit)?.status >= 400 {
            current.exchange.body(self.limit)?;
        } else if let Some(message) = current.exchange.next(self.limit)? {
            return Err(format!("a message nobody expected: {}", brief(&message)));
        }
        self.idle = current.exchange.recycle();
        Ok(())
    }

    fn connection(&mut self) -> Outcome<Connection> {
        match self.idle.take().filter(Connection::usable) {
            Some(connection) => Ok(connection),
            None => Connection::open(&self.endpoint),
        }
    }

    fn request(
        &mut self,
        method: &str,
        path: Option<&str>,
        mut headers: Vec<(String, String)>,
        body: Option<Vec<u8>>,
    ) -> Outcome<Request> {
        for (name, value) in std::mem::take(&mut self.changes) {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
            if let Some(value) = value {
                headers.push((name, pattern::fill_text(&value, &self.captures)?));
            }
        }
        Ok(Request { method: method.into(), path: path.unwrap_or(&self.endpoint.path).into(), headers, body })
    }

    fn post(&mut self, outgoing: &Outgoing, label: Option<&String>) -> Outcome {
        let headers = headers(outgoing, &self.revision, self.session.as_deref(), self.version.as_deref());
        let request = self.request("POST", None, headers, Some(outgoing.bytes.clone()))?;
        let usual: &[u16] = if outgoing.asks() { &[200] } else { &[202] };
        let opening =
            outgoing.value.as_ref().and_then(|value| value.get("method")).is_some_and(|method| method == "initialize");
        self.start(&request, usual, opening, label)
    }

    fn start(&mut self, request: &Request, usual: &'static [u16], opening: bool, label: Option<&String>) -> Outcome {
        if let Some(label) = label {
            let connection = Connection::open(&self.endpoint)?;
            let exchange = Exchange::start(connection, request, &self.endpoint.authority)?;
            self.labelled.insert(label.clone(), exchange);
            return Ok(());
        }
        self.settle()?;
        let connection = self.connection()?;
        let exchange = Exchange::start(connection, request, &self.endpoint.authority)?;
        self.current = Some(Current { exchange, usual, checked: false, opening });
        Ok(())
    }

    fn exchange(&mut self, label: Option<&String>) -> Outcome<&mut Exchange> {
        match label {
            Some(label) => self.labelled.get_mut(label).ok_or_else(|| format!("no exchange is called {label:?}")),
            None => self.current.as_mut().map(|current| &mut current.exchange).ok_or_else(|| "nothing was sent".into()),
        }
    }

    fn next(&mut self, label: Option<&String>) -> Outcome<Value> {
        let limit = self.limit;
        let exchange = self.exchange(label)?;
        let status = exchange.head(limit)?.status;
        let message = exchange
            .next(limit)
            .map_err(|reason| format!("status {status}: {reason}"))?
            .ok_or_else(|| format!("status {status}: the answer ended without this message"))?;
        if let Some(Current { exchange, opening: true, .. }) = &mut self.current
            && label.is_none()
            && let Some(version) = message.pointer("/result/protocolVersion").and_then(Value::as_str)
        {
            self.session = exchange.head(limit)?.get("mcp-session-id").map(str::to_owned);
            if let Some(session) = &self.session {
                self.captures.insert("session".into(), session.clone().into());
            }
            self.version = (version >= "2025-06-18").then(|| version.to_owned());
        }
        Ok(message)
    }

    fn live(&mut self, revision: &str) -> Outcome {
        let kept = std::mem::take(&mut self.changes);
        for action in sign_of_life(revision) {
            self.step(&action).map_err(|reason| format!("the valid call before this line: {reason}"))?;
        }
        self.changes = kept;
        Ok(())
    }

    fn step(&mut self, action: &Action) -> Outcome {
        let limit = self.limit;
        match action {
            Action::Header { name, value } => self.changes.push((name.clone(), value.clone())),
            Action::Send { payload, label } => {
                let outgoing = compose(payload, &self.captures)?;
                self.post(&outgoing, label.as_ref())?;
            }
            Action::Request { method, path, label } => {
                let mut headers = Vec::new();
                if method == "GET" {
                    headers.push(("Accept".to_owned(), "text/event-stream".to_owned()));
                }
                for (name, value) in [("Mcp-Session-Id", &self.session), ("MCP-Protocol-Version", &self.version)] {
                    if let Some(value) = value {
                        headers.push((name.to_owned(), value.clone()));
                    }
                }
                let request = self.request(method, path.as_deref(), headers, None)?;
                self.start(&request, &[200, 202, 204], false, label.as_ref())?;
            }
            Action::Expect { pattern, how, label } => {
                let got = self.next(label.as_ref())?;
                pattern::check(pattern, &got, *how, &mut self.captures)?;
            }
            Action::Group { patterns, label } => {
                let received = patterns.iter().map(|_| self.next(label.as_ref())).collect::<Outcome<Vec<_>>>()?;
                match_group(patterns, received, &mut self.captures)?;
            }
            Action::Nothing { label } => {
                if let Some(message) = self.exchange(label.as_ref())?.next(limit)? {
                    return Err(format!("a message nobody expected: {}", brief(&message)));
                }
            }
            Action::Until { message, pattern, how } => self.until(message, pattern, *how)?,
            Action::Status { codes, label } => {
                let status = self.exchange(label.as_ref())?.head(limit)?.status;
                if label.is_none()
                    && let Some(current) = &mut self.current
                {
                    current.checked = true;
                }
                if !codes.contains(&status) {
                    let body = self.exchange(label.as_ref())?.body(limit).unwrap_or_default();
                    return Err(format!(
                        "status {status}, not {codes:?}: {}",
                        pattern::shorten(&String::from_utf8_lossy(&body))
                    ));
                }
            }
            Action::ResponseHeader { name, pattern, label } => {
                let got = self.exchange(label.as_ref())?.head(limit)?.get(name).map(str::to_owned);
                match (got, pattern.as_str()) {
                    (None, Some("$absent")) => {}
                    (None, _) => return Err(format!("header {name}: missing")),
                    (Some(value), _) => pattern::check(pattern, &value.into(), Strictness::Exact, &mut self.captures)
                        .map_err(|reason| format!("header {name}: {reason}"))?,
                }
            }
            Action::Close { label } => {
                self.labelled.remove(label).ok_or_else(|| format!("no exchange is called {label:?}"))?.close();
            }
            Action::End { label } => {
                let mut exchange =
                    self.labelled.remove(label).ok_or_else(|| format!("no exchange is called {label:?}"))?;
                if let Some(message) = exchange.next(limit)? {
                    return Err(format!("{label} should have ended, got {}", brief(&message)));
                }
                if let Some(id) = exchange.events.iter().rev().find_map(|event| event.id.clone()) {
                    self.captures.insert(label.clone(), id.into());
                }
            }
            Action::Await { .. } | Action::Stream(_) | Action::NextProcess | Action::Exit => {
                return Err("this line is for peers".into());
            }
            Action::Eof => return self.settle(),
        }
        Ok(())
    }

    fn until(&mut self, message: &Value, pattern: &Value, how: Strictness) -> Outcome {
        let deadline = Instant::now() + self.limit;
        for round in 0.. {
            let (message, pattern) = renumbered(message, pattern, round);
            let payload = Payload::Message { value: message, envelope: self.revision == MODERN };
            let outgoing = compose(&payload, &self.captures)?;
            self.post(&outgoing, None)?;
            let got = self.next(None)?;
            match pattern::check(&pattern, &got, how, &mut self.captures) {
                Ok(()) => return Ok(()),
                Err(reason) if Instant::now() > deadline => return Err(reason),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        Ok(())
    }

    /// Close what is open and the session with it, so that scripts do not disturb each other.
    fn hang_up(&mut self) {
        self.labelled.clear();
        self.current = None;
        self.changes.clear();
        if let Some(session) = self.session.take()
            && let Ok(connection) = Connection::open(&self.endpoint)
        {
            let request = Request {
                method: "DELETE".into(),
                path: self.endpoint.path.clone(),
                headers: vec![("Mcp-Session-Id".into(), session)],
                body: None,
            };
            if let Ok(mut exchange) = Exchange::start(connection, &request, &self.endpoint.authority) {
                let _ = exchange.body(self.limit);
            }
        }
    }
}
