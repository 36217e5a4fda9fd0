use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::context::{RequestContext, Transport};
use super::exchange::{self, Arrival, Head, Seen, Session};
use super::pending::{CallId, Incoming, IncomingTable, Outgoing, OutgoingTable, Route};
use super::revision::negotiate::{Negotiation, Step};
use super::revision::{Era, Method, Revision, legacy, modern, shape};
use super::{LogLevel, PeerFacts};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{self, DecodeError, ErrorObject, Id, Message, RawJson, code};
use crate::model::Capabilities;

/// Which side of the protocol this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has two sides")]
pub enum Role {
    /// Offers tools, resources and prompts.
    Server,
    /// Uses them.
    Client,
}

/// What this side says of itself and what it will bear; shared by all its connections.
#[derive(Debug)]
pub struct Facts {
    /// Server or client.
    pub role: Role,
    /// This side's `Implementation` object.
    pub info: RawJson,
    /// This side's capabilities.
    pub capabilities: Capabilities,
    /// A server's hint for the model.
    pub instructions: Option<String>,
    /// The revisions spoken, oldest first.
    pub revisions: Vec<Revision>,
    /// The most requests of the peer worked on at once, and of ours awaited at once.
    pub max_in_flight: usize,
}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input {
    /// A message came in.
    Received(Message),
    /// A batch came in.
    Batch(Vec<Result<Message, DecodeError>>),
    /// Something came in that is no message.
    Invalid(DecodeError),
    /// This side wants to send a request.
    Call(Invocation),
    /// This side wants to send a notification; `related` is the peer's request that it belongs to.
    Notify {
        /// The notification's method.
        method: &'static str,
        /// Its parameters.
        params: RawJson,
        /// The peer's request that it belongs to.
        related: Option<CallId>,
    },
    /// A handler reports progress on the peer's request.
    Progress {
        /// The peer's request.
        call: CallId,
        /// How far; must grow.
        progress: f64,
        /// Out of how much.
        total: Option<f64>,
        /// For people.
        message: Option<String>,
    },
    /// A handler has finished the peer's request.
    Completed(CallId, Result<Payload>),
    /// The caller no longer wants the answer to our request.
    Cancel(CallId, Option<String>),
    /// Our request could not be delivered, or its answer could not.
    Undelivered(Id, Error),
    /// The server does not know the session of our request any more (HTTP 404).
    SessionLost(Id),
    /// Time has passed.
    Tick,
    /// The peer is gone.
    Closed(String),
}

/// A request of ours.
#[derive(Debug)]
#[non_exhaustive]
pub struct Invocation {
    /// Chosen by the caller, unique among its calls.
    pub call: CallId,
    /// The method's name.
    pub method: String,
    /// The parameters object.
    pub params: Option<RawJson>,
    /// Time without progress after which the answer is given up.
    pub timeout: Option<Duration>,
    /// Time after which it is given up, progress or not.
    pub max_timeout: Option<Duration>,
    /// Ask for progress notifications.
    pub progress: bool,
    /// The peer's request this one belongs to.
    pub related: Option<CallId>,
    /// It was sent before, in a session that the server no longer knew.
    pub(crate) resent: bool,
}

impl Invocation {
    /// A request without timeout and without progress.
    pub fn new(call: CallId, method: impl Into<String>, params: Option<RawJson>) -> Self {
        Self {
            call,
            method: method.into(),
            params,
            timeout: None,
            max_timeout: None,
            progress: false,
            related: None,
            resent: false,
        }
    }
}

/// What a handler's answer is made of. Its text is written once, for the request's revision.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload {
    /// A whole result object in neutral form.
    Object(RawJson),
    /// A tool's plain text.
    Text(String),
    /// A tool's plain value.
    Value {
        /// The value.
        value: RawJson,
        /// Also as `structuredContent`.
        structured: bool,
    },
    /// A tool's failure, for the model.
    Failed(String),
}

/// A request of the peer that is to be run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call {
    /// Names it until it is completed.
    pub id: CallId,
    /// Its row.
    pub method: &'static Method,
    /// The parameters object.
    pub params: Option<RawJson>,
    /// `params.name` or `params.uri`.
    pub name: Option<RawJson>,
    /// `params.arguments`.
    pub arguments: Option<RawJson>,
    /// The facts it runs under.
    pub context: RequestContext,
}

/// A message on its way out.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outbound {
    /// The message's text.
    pub frame: Bytes,
    /// The peer's request that the message belongs to.
    pub related: Option<CallId>,
    /// The way that request came in, which is the message's way out.
    pub route: Option<Route>,
    /// What it is.
    pub sent: Sent,
}

/// What kind of message goes out, with what a transport needs to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sent {
    /// A request of ours.
    Request {
        /// Its id.
        id: Id,
        /// Its method.
        method: String,
        /// The revision it speaks.
        revision: Revision,
        /// Its parameters, for headers that mirror them.
        params: Option<RawJson>,
    },
    /// A notification of ours.
    Notification,
    /// The answer to a request; its error code, when it is one.
    Response(Option<i64>),
}

/// A client connection's result of negotiation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Opening {
    /// The negotiated revision.
    pub revision: Revision,
    /// What the server said of itself.
    pub peer: Arc<PeerFacts>,
    /// The server's hint for the model.
    pub instructions: Option<String>,
}

/// What is to be done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action {
    /// Send a message.
    Send(Outbound),
    /// Run a request of the peer.
    Dispatch(Box<Call>),
    /// Stop running a request of the peer; its answer is no longer wanted.
    Abort(CallId, Option<String>),
    /// A notification for this side's user.
    Notified(String, Option<RawJson>),
    /// Our request is finished.
    Resolve(CallId, Result<RawJson>),
    /// Our request made progress: `{progress, total?, message?}`.
    Progress(CallId, RawJson),
    /// Nobody waits for this request of ours any more; a transport may drop its stream.
    Abandon(Id),
    /// What came in this way is cancelled: nothing more will go out on it.
    Unanswered(Route),
    /// The client's negotiation succeeded.
    Opened(Opening),
    /// The connection ends. `relaunch`: the server died of the probe; connect again and start with `initialize`.
    Close {
        /// Why.
        reason: Error,
        /// Try again without probing.
        relaunch: bool,
    },
}

#[derive(Debug)]
enum Phase {
    /// A server that has not seen `initialize`; a client that has not started.
    Unopened,
    /// A client that negotiates. Calls wait.
    Opening(Negotiation),
    Legacy(Session),
    /// A client whose server is modern.
    Modern(Revision),
    Closed,
}

#[derive(Debug)]
struct Batch {
    open: usize,
    parts: Vec<Bytes>,
    route: Option<Route>,
}

/// Where the answer to something goes.
#[derive(Debug, Clone, Copy)]
struct Way {
    related: Option<CallId>,
    batch: Option<u64>,
    route: Option<Route>,
}

/// One live peer link, either side, either era.
#[derive(Debug)]
pub struct Connection {
    facts: Arc<Facts>,
    transport: Arc<Transport>,
    /// How the message that is being handled came in, where messages come in different ways.
    arrival: Option<Arrival>,
    phase: Phase,
    incoming: IncomingTable,
    outgoing: OutgoingTable,
    batches: BTreeMap<u64, Batch>,
    waiting: VecDeque<Invocation>,
    seen: Seen,
    last_call: u64,
    /// The inside of our modern envelope.
    envelope: String,
    opening: Option<Opening>,
}

/// The client's own calls for opening are not the user's.
const OPENING: CallId = CallId(u64::MAX);

impl Connection {
    /// A connection that is not open yet. A server waits for its peer; a client needs [`open`](Self::open).
    #[must_use]
    pub fn new(facts: Arc<Facts>, transport: Arc<Transport>) -> Self {
        Self {
            facts,
            transport,
            arrival: None,
            phase: Phase::Unopened,
            incoming: IncomingTable::default(),
            outgoing: OutgoingTable::default(),
            batches: BTreeMap::new(),
            waiting: VecDeque::new(),
            seen: Seen::default(),
            last_call: 0,
            envelope: String::new(),
            opening: None,
        }
    }

    /// The facts of this side.
    #[must_use]
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// The revision of a legacy connection, or of a client's modern one.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        match &self.phase {
            Phase::Legacy(session) => Some(session.revision),
            Phase::Modern(revision) => Some(*revision),
            _ => None,
        }
    }

    /// The peer's requests that are being worked on.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.incoming.len()
    }

    /// Whether no further request should be read until one is finished.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.incoming.len() >= self.facts.max_in_flight
    }

    /// The requests of ours that wait for an answer.
    #[must_use]
    pub fn awaited(&self) -> usize {
        self.outgoing.len() + self.waiting.len()
    }

    /// When [`Input::Tick`] is due, if ever.
    #[must_use]
    pub fn next_tick(&self) -> Option<Duration> {
        self.outgoing.next_due()
    }

    /// Starts a client's negotiation.
    pub fn open(
        &mut self,
        now: Duration,
        pinned: Option<Revision>,
        probe_timeout: Duration,
        timeout: Option<Duration>,
        known_legacy: bool,
    ) -> Vec<Action> {
        let mut negotiation = Negotiation::new(pinned, probe_timeout);
        let step = negotiation.start(&self.facts, known_legacy);
        self.phase = Phase::Opening(negotiation);
        let mut out = Vec::new();
        self.step(now, step, timeout, &mut out);
        out
    }

    /// The one way in: what happened becomes what is to be done.
    pub fn handle(&mut self, now: Duration, input: Input) -> Vec<Action> {
        let mut out = Vec::with_capacity(2);
        match input {
            Input::Received(message) => self.received(now, message, None, &mut out),
            Input::Batch(parts) => self.batch(now, parts, &mut out),
            Input::Invalid(error) => self.invalid(&error, None, &mut out),
            Input::Call(invocation) => self.call(now, invocation, &mut out),
            Input::Notify { method, params, related } => self.notify(method, &params, related, &mut out),
            Input::Progress { call, progress, total, message } => {
                self.report(call, progress, total, message.as_deref(), &mut out);
            }
            Input::Completed(call, outcome) => self.completed(call, outcome, &mut out),
            Input::Cancel(call, reason) => self.cancel(call, reason.as_deref(), &mut out),
            Input::Undelivered(id, error) => self.failed(now, &id, error, &mut out),
            Input::SessionLost(id) => self.session_lost(now, &id, &mut out),
            Input::Tick => self.tick(now, &mut out),
            Input::Closed(reason) => self.closed(&reason, &mut out),
        }
        out
    }

    /// As [`handle`](Self::handle), for a message of which the way it came in matters: one of many HTTP exchanges.
    pub(crate) fn arrived(&mut self, now: Duration, arrival: Arrival, input: Input) -> Vec<Action> {
        self.arrival = Some(arrival);
        let out = self.handle(now, input);
        self.arrival = None;
        out
    }

    // ---- incoming ---------------------------------------------------------------------------------------------

    fn way(&self, batch: Option<u64>) -> Way {
        Way { related: None, batch, route: self.arrival.as_ref().map(|a| a.route) }
    }

    fn received(&mut self, now: Duration, message: Message, batch: Option<u64>, out: &mut Vec<Action>) {
        match message {
            Message::Request { id, method, params } => self.request(id, &method, params, batch, out),
            Message::Notification { method, params } => self.notification(now, method, params, out),
            Message::Response { id, result } => self.answered(now, &id, result, out),
            Message::Error { id: Some(id), error } => self.failed(now, &id, error.into(), out),
            // An error without an id answers nothing that we could name.
            Message::Error { id: None, .. } => {}
        }
    }

    fn batch(&mut self, now: Duration, parts: Vec<Result<Message, DecodeError>>, out: &mut Vec<Action>) {
        let allowed = matches!(&self.phase, Phase::Legacy(s) if s.revision.rules().batches);
        if !allowed {
            let message = "batches are not part of this revision: send one message at a time";
            let error = DecodeError { id: None, code: code::INVALID_REQUEST, message: message.into() };
            return self.invalid(&error, None, out);
        }
        if parts.len() > self.facts.max_in_flight {
            let max = self.facts.max_in_flight;
            let message =
                format!("batch of {} messages is longer than the limit of {max} (max_in_flight)", parts.len());
            let error = DecodeError { id: None, code: code::INVALID_REQUEST, message };
            return self.invalid(&error, None, out);
        }
        let open = parts.iter().filter(|p| matches!(p, Ok(Message::Request { .. }) | Err(_))).count();
        self.last_call += 1;
        let number = self.last_call;
        let route = self.way(None).route;
        self.batches.insert(number, Batch { open, parts: Vec::new(), route });
        for part in parts {
            match part {
                Ok(message) => self.received(now, message, Some(number), out),
                Err(error) => self.invalid(&error, Some(number), out),
            }
        }
        if open == 0 {
            self.batches.remove(&number);
        }
    }

    fn invalid(&mut self, error: &DecodeError, batch: Option<u64>, out: &mut Vec<Action>) {
        self.respond_error(error.id.as_ref(), &error.to_object(), self.way(batch), out);
    }

    fn request(&mut self, id: Id, method: &str, params: Option<RawJson>, batch: Option<u64>, out: &mut Vec<Action>) {
        if self.incoming.has(&id) {
            let message = format!("\"id\": {id:?} is already in use by a request in flight");
            let error = Error::rpc(code::INVALID_REQUEST, message);
            return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out);
        }
        if self.is_full() {
            let max = self.facts.max_in_flight;
            let error = Error::rpc(code::INTERNAL_ERROR, format!("more than {max} requests in flight (max_in_flight)"));
            return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out);
        }
        let head = match self.arrival.as_mut().and_then(|a| a.head.take()) {
            Some(head) => Ok(head),
            None => Head::read(params.as_ref()),
        };
        let head = match head {
            Ok(head) => head,
            Err(error) => return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out),
        };
        if self.facts.role == Role::Server && matches!(self.phase, Phase::Unopened) && head.version.is_none() {
            match self.first_request(&id, method, params.as_ref(), batch, out) {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out),
            }
        }
        let session = match &self.phase {
            Phase::Legacy(session) => Some(session),
            _ => None,
        };
        let admitted = match exchange::admit(&self.facts, session, &mut self.seen, method, head) {
            Ok(admitted) => admitted,
            Err(error) => return self.respond_error(Some(&id), &error.to_object(), self.way(batch), out),
        };
        self.last_call += 1;
        let call = CallId(self.last_call);
        let row = admitted.method;
        self.incoming.insert(
            call,
            Incoming {
                id: id.clone(),
                method: row,
                revision: admitted.revision,
                batch,
                route: self.way(None).route,
                progress_token: admitted.progress_token.clone(),
                progress: f64::NEG_INFINITY,
            },
        );
        match row.name {
            "ping" => return self.completed(call, Ok(Payload::Object(RawJson::empty_object())), out),
            "initialize" => {
                let error = Error::rpc(code::INVALID_REQUEST, "\"initialize\" was already answered on this connection");
                return self.completed(call, Err(error), out);
            }
            "server/discover" => return self.completed(call, Ok(Payload::Object(self.discovery())), out),
            "logging/setLevel" => {
                let outcome = self.set_level(params.as_ref());
                return self.completed(call, outcome, out);
            }
            _ => {}
        }
        let context = RequestContext {
            id,
            method: row.name,
            revision: admitted.revision,
            peer: admitted.peer,
            log_level: admitted.log_level,
            progress_token: admitted.progress_token,
            meta: admitted.meta,
            transport: self.arrival.as_ref().map_or(&self.transport, |a| &a.transport).clone(),
        };
        let (name, arguments) = (admitted.name, admitted.arguments);
        out.push(Action::Dispatch(Box::new(Call { id: call, method: row, params, name, arguments, context })));
    }

    /// A server's first requests. `Ok(true)`: answered.
    fn first_request(
        &mut self,
        id: &Id,
        method: &str,
        params: Option<&RawJson>,
        batch: Option<u64>,
        out: &mut Vec<Action>,
    ) -> Result<bool> {
        match method {
            "initialize" if batch.is_some() => {
                Err(Error::rpc(code::INVALID_REQUEST, "\"initialize\" must not be part of a batch"))
            }
            "initialize" => {
                let (revision, peer, result) = legacy::answer(&self.facts, params)?;
                self.phase = Phase::Legacy(Session { revision, peer: Arc::new(peer), log_level: None });
                self.respond(id, &result, self.way(None), out);
                Ok(true)
            }
            "ping" => {
                self.respond(id, &RawJson::empty_object(), self.way(batch), out);
                Ok(true)
            }
            "server/discover" => Ok(false),
            _ if Method::find(method).is_none_or(|m| m.notification) => {
                Err(Error::rpc(code::METHOD_NOT_FOUND, format!("method {method:?} is not served")))
            }
            _ => {
                let key = crate::model::meta::PROTOCOL_VERSION;
                Err(Error::rpc(
                    code::INVALID_REQUEST,
                    format!(
                        "{method:?} before \"initialize\": open the connection first, or send params._meta[\"{key}\"]"
                    ),
                ))
            }
        }
    }

    fn discovery(&self) -> RawJson {
        let modern: Vec<_> = self.facts.revisions.iter().rev().filter(|r| r.era() == Era::Modern).collect();
        let mut out = String::from("{");
        shape::push_member(&mut out, "supportedVersions", RawJson::from_value(&modern).get());
        shape::push_member(&mut out, "capabilities", self.facts.capabilities.raw().get());
        if let Some(instructions) = &self.facts.instructions {
            shape::push_member(&mut out, "instructions", RawJson::from_value(instructions).get());
        }
        out.push('}');
        RawJson::written(out)
    }

    fn set_level(&mut self, params: Option<&RawJson>) -> Result<Payload> {
        #[derive(serde::Deserialize)]
        struct Params {
            level: String,
        }
        let params = params.ok_or_else(|| Error::invalid_params("\"level\": missing"))?;
        let params: Params = params.to().map_err(|e| Error::invalid_params(format!("logging/setLevel: {e}")))?;
        let level: LogLevel = params.level.parse()?;
        if let Phase::Legacy(session) = &mut self.phase {
            session.log_level = Some(level);
        }
        Ok(Payload::Object(RawJson::empty_object()))
    }

    /// The level below which log messages of a running legacy call are not wanted right now.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        match &self.phase {
            Phase::Legacy(session) => session.log_level,
            _ => None,
        }
    }

    fn notification(&mut self, now: Duration, method: String, params: Option<RawJson>, out: &mut Vec<Action>) {
        match method.as_str() {
            "notifications/cancelled" => {
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Params {
                    request_id: Option<Id>,
                    #[serde(default)]
                    reason: Option<String>,
                }
                let Some(Ok(params)) = params.map(|p| p.to::<Params>()) else {
                    return;
                };
                let found = params.request_id.and_then(|id| self.incoming.remove_id(&id));
                if let Some((call, incoming)) = found {
                    out.push(Action::Abort(call, params.reason));
                    match (incoming.batch, incoming.route) {
                        (Some(batch), _) => self.batch_part(batch, None, out),
                        (None, Some(route)) => out.push(Action::Unanswered(route)),
                        (None, None) => {}
                    }
                }
            }
            "notifications/progress" => {
                #[derive(serde::Deserialize)]
                #[serde(rename_all = "camelCase")]
                struct Params {
                    progress_token: Id,
                }
                let Some(params) = params else { return };
                let Ok(read) = params.to::<Params>() else { return };
                if let Some(outgoing) = self.outgoing.get_mut(&read.progress_token)
                    && outgoing.wants_progress
                {
                    outgoing.restart(now);
                    out.push(Action::Progress(outgoing.call, params));
                }
            }
            "notifications/initialized" => {}
            _ => out.push(Action::Notified(method, params)),
        }
    }

    // ---- answers of ours --------------------------------------------------------------------------------------

    fn completed(&mut self, call: CallId, outcome: Result<Payload>, out: &mut Vec<Action>) {
        // Gone means cancelled: nothing more is sent for it.
        let Some(incoming) = self.incoming.remove(call) else {
            return;
        };
        let way = Way { related: Some(call), batch: incoming.batch, route: incoming.route };
        match outcome {
            Ok(payload) => {
                let rules = incoming.revision.rules();
                // Written once, straight into the frame: results may be large.
                let mut frame = jsonrpc::start_result(&incoming.id, shape::size_hint(&payload));
                shape::write_result(&mut frame, rules, self.facts.info.get(), incoming.method, payload);
                frame.push('}');
                self.answer(frame.into(), None, way, out);
            }
            Err(error) => {
                self.respond_error(Some(&incoming.id), &error.to_object(), way, out);
            }
        }
    }

    fn respond(&mut self, id: &Id, result: &RawJson, way: Way, out: &mut Vec<Action>) {
        self.answer(jsonrpc::encode_result(id, result), None, way, out);
    }

    fn answer(&mut self, frame: Bytes, code: Option<i64>, way: Way, out: &mut Vec<Action>) {
        let Way { related, batch, route } = way;
        match batch {
            None => out.push(Action::Send(Outbound { frame, related, route, sent: Sent::Response(code) })),
            Some(batch) => self.batch_part(batch, Some(frame), out),
        }
    }

    fn respond_error(&mut self, id: Option<&Id>, error: &ErrorObject, way: Way, out: &mut Vec<Action>) {
        // JSON-RPC says `"id": null` when it could not be read; newer revisions leave it out.
        let without = self.revision().is_some_and(|r| r.rules().error_without_id);
        self.answer(jsonrpc::encode_error(id, error, !without), Some(error.code), way, out);
    }

    /// One request of a batch is finished; the last one sends the answers as one array.
    fn batch_part(&mut self, number: u64, frame: Option<Bytes>, out: &mut Vec<Action>) {
        let Some(batch) = self.batches.get_mut(&number) else {
            return;
        };
        batch.parts.extend(frame);
        batch.open = batch.open.saturating_sub(1);
        if batch.open > 0 {
            return;
        }
        let Some(batch) = self.batches.remove(&number) else {
            return;
        };
        let route = batch.route;
        if batch.parts.is_empty() {
            return out.extend(route.map(Action::Unanswered));
        }
        let mut frame = Vec::with_capacity(batch.parts.iter().map(|p| p.len() + 1).sum::<usize>() + 2);
        frame.push(b'[');
        for (n, part) in batch.parts.iter().enumerate() {
            if n > 0 {
                frame.push(b',');
            }
            frame.extend_from_slice(part);
        }
        frame.push(b']');
        out.push(Action::Send(Outbound { frame: frame.into(), related: None, route, sent: Sent::Response(None) }));
    }

    fn report(
        &mut self,
        call: CallId,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
        out: &mut Vec<Action>,
    ) {
        let Some(incoming) = self.incoming.get_mut(call) else {
            return;
        };
        let Some(token) = &incoming.progress_token else { return };
        // The specification wants it to grow; a handler that repeats itself is not worth an error.
        if progress.is_nan() || progress <= incoming.progress {
            return;
        }
        incoming.progress = progress;
        let mut params = String::from("{");
        shape::push_member(&mut params, "progressToken", &serde_json::to_string(token).unwrap_or_default());
        shape::push_member(&mut params, "progress", &number(progress));
        if let Some(total) = total {
            shape::push_member(&mut params, "total", &number(total));
        }
        if let Some(message) = message.filter(|_| incoming.revision.rules().progress_message) {
            shape::push_member(&mut params, "message", &serde_json::to_string(message).unwrap_or_default());
        }
        params.push('}');
        self.notify("notifications/progress", &RawJson::written(params), Some(call), out);
    }

    fn notify(&mut self, method: &'static str, params: &RawJson, related: Option<CallId>, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        let incoming = related.and_then(|call| self.incoming.get_mut(call));
        if related.is_some() && incoming.is_none() && !matches!(self.phase, Phase::Legacy(_)) {
            // It belongs to an answer that is already given, and modern knows no other place for it.
            return;
        }
        let route = incoming.and_then(|i| i.route);
        let frame = jsonrpc::encode_notification(method, Some(params));
        out.push(Action::Send(Outbound { frame, related, route, sent: Sent::Notification }));
    }

    // ---- requests of ours -------------------------------------------------------------------------------------

    fn call(&mut self, now: Duration, invocation: Invocation, out: &mut Vec<Action>) {
        if self.awaited() >= self.facts.max_in_flight {
            let message = format!("more than {} requests wait for an answer (max_in_flight)", self.facts.max_in_flight);
            return out.push(Action::Resolve(invocation.call, Err(Error::misuse(message))));
        }
        match &self.phase {
            Phase::Opening(_) => self.waiting.push_back(invocation),
            Phase::Legacy(_) | Phase::Modern(_) => self.send_request(now, invocation, out),
            Phase::Unopened => {
                out.push(Action::Resolve(invocation.call, Err(Error::misuse("the connection is not open yet"))));
            }
            Phase::Closed => out.push(Action::Resolve(invocation.call, Err(Error::closed("the connection is closed")))),
        }
    }

    fn send_request(&mut self, now: Duration, invocation: Invocation, out: &mut Vec<Action>) {
        let revision = self.revision().unwrap_or(Revision::NEWEST_LEGACY);
        if let Some(row) = Method::find(&invocation.method)
            && !row.exists_in(revision)
        {
            let message = format!("{:?} does not exist in revision {revision}", invocation.method);
            return out.push(Action::Resolve(invocation.call, Err(Error::new(ErrorKind::Unsupported, message))));
        }
        let outgoing = Outgoing {
            call: invocation.call,
            method: invocation.method,
            params: invocation.params,
            timeout: invocation.timeout,
            deadline: invocation.timeout.map(|t| now + t),
            hard_deadline: invocation.max_timeout.map(|t| now + t),
            wants_progress: invocation.progress,
            resent: invocation.resent,
        };
        self.transmit(outgoing, revision, invocation.related, out);
    }

    fn transmit(&mut self, outgoing: Outgoing, revision: Revision, related: Option<CallId>, out: &mut Vec<Action>) {
        let (method, params, progress) = (outgoing.method.clone(), outgoing.params.clone(), outgoing.wants_progress);
        let id = Id::Number(self.outgoing.insert(outgoing));
        let token = progress.then_some(&id);
        let params = match (revision.era(), token) {
            (Era::Modern, token) => {
                self.write_envelope(revision);
                Some(modern::with_envelope(params.as_ref(), &self.envelope, token))
            }
            (Era::Legacy, Some(token)) => Some(modern::with_progress_token(params.as_ref(), token)),
            (Era::Legacy, None) => params,
        };
        let frame = jsonrpc::encode_request(&id, &method, params.as_ref());
        let route = related.and_then(|call| self.incoming.get_mut(call)).and_then(|i| i.route);
        out.push(Action::Send(Outbound {
            frame,
            related,
            route,
            sent: Sent::Request { id, method, revision, params },
        }));
    }

    fn write_envelope(&mut self, revision: Revision) {
        use crate::model::meta::{CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION};
        if !self.envelope.is_empty() {
            return;
        }
        let (info, capabilities) = (self.facts.info.get(), self.facts.capabilities.raw().get());
        self.envelope = format!(
            "\"{PROTOCOL_VERSION}\":\"{revision}\",\"{CLIENT_INFO}\":{info},\"{CLIENT_CAPABILITIES}\":{capabilities}"
        );
    }

    fn answered(&mut self, now: Duration, id: &Id, result: RawJson, out: &mut Vec<Action>) {
        if let Phase::Opening(negotiation) = &mut self.phase
            && negotiation.owns(id)
        {
            self.outgoing.remove(id);
            let step = negotiation.answered(&self.facts, id, &result);
            return self.step(now, step, None, out);
        }
        // Nobody asked, or nobody waits any more.
        let Some(outgoing) = self.outgoing.remove(id) else {
            return;
        };
        let outcome = match &self.phase {
            Phase::Modern(_) => complete(result),
            _ => Ok(result),
        };
        out.push(Action::Resolve(outgoing.call, outcome));
    }

    fn failed(&mut self, now: Duration, id: &Id, error: Error, out: &mut Vec<Action>) {
        if let Phase::Opening(negotiation) = &mut self.phase
            && negotiation.owns(id)
        {
            self.outgoing.remove(id);
            let step = negotiation.refused(&self.facts, id, error);
            return self.step(now, step, None, out);
        }
        let Some(outgoing) = self.outgoing.remove(id) else {
            return;
        };
        out.push(Action::Resolve(outgoing.call, Err(error)));
    }

    fn session_lost(&mut self, now: Duration, id: &Id, out: &mut Vec<Action>) {
        let Some(outgoing) = self.outgoing.remove(id) else {
            return;
        };
        if outgoing.resent {
            let message = "the server lost the session twice in a row";
            return out.push(Action::Resolve(outgoing.call, Err(Error::new(ErrorKind::Transport, message))));
        }
        // A 404 says that the request did not run, so it is safe to send again.
        let (call, timeout, progress) = (outgoing.call, outgoing.timeout, outgoing.wants_progress);
        let max_timeout = outgoing.hard_deadline.map(|due| due.saturating_sub(now));
        let (method, params) = (outgoing.method, outgoing.params);
        let again = Invocation { call, method, params, timeout, max_timeout, progress, related: None, resent: true };
        self.waiting.push_back(again);
        if let Phase::Legacy(session) = &self.phase {
            let pinned = Some(session.revision);
            let mut negotiation = Negotiation::new(pinned, Duration::ZERO);
            let step = negotiation.start(&self.facts, true);
            self.phase = Phase::Opening(negotiation);
            self.step(now, step, timeout, out);
        }
    }

    fn cancel(&mut self, call: CallId, reason: Option<&str>, out: &mut Vec<Action>) {
        self.waiting.retain(|w| w.call != call);
        if let Some((id, _)) = self.outgoing.remove_call(call) {
            self.tell_cancelled(id, reason, out);
        }
    }

    fn tell_cancelled(&mut self, id: i64, reason: Option<&str>, out: &mut Vec<Action>) {
        let id = Id::Number(id);
        if !(self.transport.cancel_by_closing && matches!(self.phase, Phase::Modern(_))) {
            let mut params = String::from("{");
            shape::push_member(&mut params, "requestId", &serde_json::to_string(&id).unwrap_or_default());
            if let Some(reason) = reason {
                shape::push_member(&mut params, "reason", &serde_json::to_string(reason).unwrap_or_default());
            }
            params.push('}');
            self.notify("notifications/cancelled", &RawJson::written(params), None, out);
        }
        out.push(Action::Abandon(id));
    }

    fn tick(&mut self, now: Duration, out: &mut Vec<Action>) {
        for id in self.outgoing.overdue(now) {
            let name = Id::Number(id);
            if let Phase::Opening(negotiation) = &mut self.phase
                && negotiation.owns(&name)
            {
                self.outgoing.remove(&name);
                let step = negotiation.timed_out(&self.facts, &name);
                self.step(now, step, None, out);
                continue;
            }
            let Some(outgoing) = self.outgoing.remove(&name) else {
                continue;
            };
            self.tell_cancelled(id, Some("timeout"), out);
            let seconds = outgoing.timeout.unwrap_or_default().as_secs_f64();
            let message = format!("no answer to {:?} within {seconds} s (request_timeout)", outgoing.method);
            out.push(Action::Resolve(outgoing.call, Err(Error::new(ErrorKind::Timeout, message))));
        }
    }

    // ---- opening and closing ----------------------------------------------------------------------------------

    fn step(&mut self, now: Duration, step: Step, timeout: Option<Duration>, out: &mut Vec<Action>) {
        match step {
            Step::Wait => {}
            Step::Ask { method, revision, timeout: own } => {
                let params = (method == "initialize").then(|| legacy::question(&self.facts, revision));
                // A probe without an answer costs its own time, `initialize` the caller's.
                let timeout = own.or(timeout).or(Some(Duration::from_secs(60)));
                let deadline = timeout.map(|t| now + t);
                let outgoing = Outgoing {
                    call: OPENING,
                    method: method.into(),
                    params,
                    timeout,
                    deadline,
                    hard_deadline: None,
                    wants_progress: false,
                    resent: false,
                };
                let era = if method == "initialize" { revision } else { Revision::NEWEST.max(revision) };
                self.envelope.clear();
                self.transmit(outgoing, era, None, out);
                self.envelope.clear();
                let asked = out.iter().rev().find_map(|action| match action {
                    Action::Send(Outbound { sent: Sent::Request { id, .. }, .. }) => Some(id.clone()),
                    _ => None,
                });
                if let (Phase::Opening(negotiation), Some(id)) = (&mut self.phase, asked) {
                    negotiation.asked(id);
                }
            }
            Step::Opened(answer) => {
                let modern = answer.revision.era() == Era::Modern;
                self.phase = if modern {
                    Phase::Modern(answer.revision)
                } else {
                    let peer = answer.peer.clone();
                    Phase::Legacy(Session { revision: answer.revision, peer, log_level: None })
                };
                if !modern {
                    let frame = jsonrpc::encode_notification("notifications/initialized", None);
                    out.push(Action::Send(Outbound { frame, related: None, route: None, sent: Sent::Notification }));
                }
                let opening =
                    Opening { revision: answer.revision, peer: answer.peer, instructions: answer.instructions };
                self.opening = Some(opening.clone());
                out.push(Action::Opened(opening));
                for waiting in std::mem::take(&mut self.waiting) {
                    self.send_request(now, waiting, out);
                }
            }
            Step::Failed(error) => self.end(&error, false, out),
        }
    }

    fn closed(&mut self, reason: &str, out: &mut Vec<Action>) {
        let relaunch = matches!(&self.phase, Phase::Opening(n) if n.is_probing());
        self.end(&Error::closed(reason), relaunch, out);
    }

    fn end(&mut self, error: &Error, relaunch: bool, out: &mut Vec<Action>) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        self.phase = Phase::Closed;
        for call in self.incoming.drain() {
            out.push(Action::Abort(call, Some(error.message().to_owned())));
        }
        let mut awaited: Vec<CallId> = self.outgoing.drain().into_iter().map(|o| o.call).collect();
        awaited.extend(std::mem::take(&mut self.waiting).into_iter().map(|w| w.call));
        for call in awaited.into_iter().filter(|call| *call != OPENING) {
            out.push(Action::Resolve(call, Err(error.clone())));
        }
        self.batches.clear();
        out.push(Action::Close { reason: error.clone(), relaunch });
    }
}

/// A whole number without a fraction, as JSON would have it from an integer.
fn number(value: f64) -> String {
    serde_json::to_string(&value).map_or_else(|_| "null".into(), |s| s.strip_suffix(".0").map(Into::into).unwrap_or(s))
}

/// A modern result that is complete; one of another type is nothing this client asked for.
fn complete(result: RawJson) -> Result<RawJson> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        #[serde(borrow, default)]
        result_type: Option<&'a serde_json::value::RawValue>,
    }
    let head: Head<'_> = result.borrow().map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("result: {e}")))?;
    match head.result_type.map(serde_json::value::RawValue::get) {
        None | Some("\"complete\"") => Ok(result),
        Some("\"input_required\"") => Err(Error::new(
            ErrorKind::Unsupported,
            "the server asks for input that this client declared no capability for",
        )),
        Some(other) => {
            Err(Error::new(ErrorKind::PeerMisbehaved, format!("resultType: expected \"complete\", got {other}")))
        }
    }
}

#[cfg(test)]
mod tests;
