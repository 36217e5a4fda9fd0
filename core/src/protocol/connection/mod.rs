mod answering;
mod incoming;
mod keep_alive;
mod listening;
mod news;
mod opening;
mod outgoing;
mod restarting;
mod restoring;
#[cfg(feature = "redis")]
pub(crate) mod sharing;
#[cfg(test)]
mod tests;

use super::LogLevel;
use super::action::*;
use super::context::{PeerFacts, RequestContext, Resumable, States, Transport};
use super::envelope::Head;
use super::exchange;
use super::exchange::{Arrival, News, Session};
use super::ids::{CallId, Route};
use super::kind::Kind;
use super::lazy_map::LazyMap;
use super::origin::Origin;
use super::payload::Payload;
use super::pending::{Heard, Incoming, IncomingTable, Outgoing, OutgoingTable, Pace};
use super::revision::negotiate::{Negotiation, Step};
use super::revision::{Era, Method, Revision, ask, legacy, modern, object, shape, visits};
use crate::error::{Error, ErrorKind, Reason, Result, URL_ELICITATION_REQUIRED, shortened};
use crate::idiom::named;
use crate::jsonrpc::{self, DecodeError, ErrorObject, Id, Message, RawJson, code};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
enum Phase {
    /// A server that has not seen `initialize`; a client that has not started.
    Unopened,
    /// A client that negotiates. Calls wait.
    Opening(Box<Negotiation>),
    Legacy(Box<Session>),
    /// A client whose server is modern.
    Modern(Revision),
    /// A client whose modern server's process has ended. Calls wait, and have it started again.
    Lost {
        revision: Revision,
        starting: bool,
    },
    Closed,
}

#[derive(Debug)]
struct Batch {
    open: usize,
    parts: Vec<Bytes>,
    route: Option<Route>,
}

/// Destination of an answer.
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
    /// Arrival of the message that is being handled, where messages come in different ways.
    arrival: Option<Arrival>,
    /// Cause of the message that is being handled, as far as the way that it came tells.
    cause: Option<Origin>,
    phase: Phase,
    incoming: IncomingTable,
    outgoing: OutgoingTable,
    /// Nothing is remembered from one request to the next, nor can the peer be asked.
    sessionless: bool,
    /// Requests of ours that were answered and still make progress, by id.
    lasting: LazyMap<i64, (CallId, Heard)>,
    batches: LazyMap<u64, Batch>,
    /// Requests of ours that cannot be sent yet: the connection is opening, or too many wait for their answers.
    waiting: VecDeque<Outgoing>,
    /// Parameters that were read beside the message that is being handled.
    head: Option<Box<Head>>,
    last_call: u64,
    /// True if a request that came in was of a revision without sessions.
    heard_modern: bool,
    /// The inside of our modern envelope.
    envelope: String,
    /// The level of log messages that each of our modern requests asks for.
    wanted_level: Option<LogLevel>,
    /// The peer's own facts from the opening of the connection.
    opened: Option<Arc<PeerFacts>>,
    /// Longest time that `initialize` may take.
    opening_timeout: Option<Duration>,
    /// Something new may be due before what was.
    sooner: bool,
    restorable: restoring::Restorable,
    /// Revision of the server whose process has ended, until the next one has named its own.
    restarted: Option<Revision>,
    /// End of the server's process.
    exited: Option<Reason>,
    silence: keep_alive::Silence,
    listening: listening::Listening,
    /// The newest calls of tools that were given up and may have become tasks by then.
    given_up: VecDeque<i64>,
    /// Logins that requests of ours wait for.
    logins: usize,
    said: Said,
    /// Counts the changes of what a client has told its session.
    told: u64,
}

/// Faults of the server that are reported once.
#[derive(Debug, Default)]
struct Said {
    /// Text that is no message.
    unreadable: bool,
    /// An error that names no request.
    unnamed: bool,
    /// An answer to a request that there never was.
    unknown: bool,
    /// The last of it: it may be why there is no answer.
    hint: Option<Box<str>>,
}

/// Caller of requests that a connection sends on its own: nobody.
const NOBODY: CallId = CallId(u64::MAX - 1);
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
            cause: None,
            phase: Phase::Unopened,
            incoming: IncomingTable::default(),
            outgoing: OutgoingTable::default(),
            sessionless: false,
            lasting: LazyMap::new(),
            batches: LazyMap::new(),
            waiting: VecDeque::new(),
            head: None,
            last_call: 0,
            heard_modern: false,
            envelope: String::new(),
            wanted_level: None,
            opened: None,
            opening_timeout: None,
            sooner: false,
            restorable: restoring::Restorable::default(),
            restarted: None,
            exited: None,
            silence: keep_alive::Silence::default(),
            listening: listening::Listening::default(),
            given_up: VecDeque::new(),
            logins: 0,
            said: Said::default(),
            told: 0,
        }
    }

    /// A server's connection for one request of a client that was initialized elsewhere, or is taken for one.
    #[cfg(feature = "http")]
    pub(crate) fn sessionless(facts: Arc<Facts>, transport: Arc<Transport>, revision: Revision) -> Self {
        let mut session = Session::new(revision, Arc::default());
        session.news = News { ready: true, initialized: true, ..News::default() };
        let phase = Phase::Legacy(Box::new(session));
        Self { phase, sessionless: true, ..Self::new(facts, transport) }
    }

    /// The facts of this side.
    #[must_use]
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// The number by which what is kept for the peer counts with that of its other connections.
    pub(crate) fn share(&self) -> Option<u64> {
        self.transport.share
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

    /// Returns true if this request of the peer still waits for its answer.
    pub(crate) fn is_awaiting(&self, call: CallId) -> bool {
        self.incoming.has_call(call)
    }

    /// The way in of a request of the peer that still waits for its answer.
    pub(crate) fn route(&self, call: CallId) -> Option<Route> {
        self.incoming.get(call)?.route
    }

    /// Returns true if no further request should be read until one is finished.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.incoming.len() >= self.facts.max_in_flight
    }

    /// The requests of ours that wait for an answer.
    #[must_use]
    pub fn awaited(&self) -> usize {
        self.outgoing.len() + self.waiting.len()
    }

    /// Returns the time at which [`Input::Tick`] is due, if ever.
    #[must_use]
    pub fn next_tick(&self) -> Option<Duration> {
        let unopened = matches!(self.phase, Phase::Unopened) && self.facts.role == Role::Server;
        if unopened && self.waiting.is_empty() {
            // For stateless requests, mostly for one: the rest belongs to sessions, and to requests of our own.
            return self.incoming.next_due().into_iter().chain(self.listeners_due()).min();
        }
        // A server may take its time while it waits for an answer of ours.
        let patient = self.is_patient();
        let answers = self.outgoing.next_due(patient);
        let news = self.news_due();
        self.waiting
            .iter()
            .filter_map(|waiting| waiting.due(patient))
            .chain(answers)
            .chain(self.incoming.next_due())
            .chain(news)
            .chain(self.patience())
            .chain(self.ping_due())
            .chain(self.listeners_due())
            .min()
    }

    /// Returns true if something may be due sooner than [`next_tick`](Self::next_tick) was when this was last asked.
    pub(crate) fn is_due_sooner(&mut self) -> bool {
        std::mem::take(&mut self.sooner)
    }

    /// Starts a client's negotiation. `known`: what an earlier connection has shown the server to be.
    pub fn open(
        &mut self,
        now: Duration,
        pinned: Option<Revision>,
        probe_timeout: Duration,
        timeout: Option<Duration>,
        known: Option<Era>,
    ) -> Vec<Action> {
        let mut negotiation = Negotiation::new(pinned, probe_timeout);
        let step = negotiation.start(&self.facts, known);
        self.phase = Phase::Opening(Box::new(negotiation));
        // A server that is being started answers nothing yet: never less than for the first question.
        self.opening_timeout = timeout.map(|timeout| timeout.max(probe_timeout));
        let mut out = Vec::new();
        self.step(now, step, &mut out);
        out
    }

    /// The one way in: what happened becomes what is to be done.
    pub fn handle(&mut self, now: Duration, input: Input) -> Vec<Action> {
        let mut out = Vec::with_capacity(2);
        if matches!(input, Input::Received(_) | Input::Batch(_) | Input::Invalid(_) | Input::Unreadable(_)) {
            // A request that was read before the end was known runs no handler any more.
            if matches!(self.phase, Phase::Closed) {
                return out;
            }
            self.heard(now);
        }
        match input {
            Input::Received(message) => self.received(now, message, None, &mut out),
            Input::Batch(parts) => self.batch(now, parts, &mut out),
            Input::Invalid(error) => self.invalid(now, &error, None, &mut out),
            Input::Unreadable(text) => self.unreadable(&text, &mut out),
            Input::Call(invocation) => self.call(now, invocation, &mut out),
            Input::Notify { method, params, related } => {
                // A notification to many connections is not in every revision.
                let known = |revision| Method::find(method).is_none_or(|row| row.exists_in(revision));
                if self.revision().is_none_or(known) {
                    self.notify(method, &params, related, &mut out);
                }
            }
            Input::Tell { call, method, params } => {
                if self.incoming.get(call).is_some() {
                    self.notify(method, &params, Some(call), &mut out);
                }
            }
            Input::Progress { call, progress, total, message } => {
                self.report(now, call, progress, total, message.as_deref(), &mut out);
            }
            Input::Changed(kind) => self.list_changed(now, kind),
            Input::Updated(uri) => self.updated(now, &uri, &mut out),
            Input::Missed => self.missed(now, &mut out),
            Input::Task { id, version, params } => self.task_changed_for_listeners(now, &id, version, params, &mut out),
            Input::Announce(announcement) => self.announce(now, &announcement, &mut out),
            Input::Listen(listen) => self.listen(now, *listen, &mut out),
            Input::Ending => self.end_listeners(&mut out),
            Input::Completed(call, outcome) => self.completed(now, call, outcome, &mut out),
            Input::Cancel(call, reason) => self.cancel(call, reason.as_deref(), &mut out),
            Input::Undelivered(id, error) => self.failed(now, &id.counted(), error, &mut out),
            Input::SessionLost { id, taken } => self.session_lost(now, &id, taken, &mut out),
            Input::SessionExpired => self.session_expired(now, &mut out),
            Input::Visited(id) => self.visited(&id, &mut out),
            Input::Authorizing(begins) => self.authorizing(now, begins),
            Input::Tick => self.tick(now, &mut out),
            Input::Lost(reason) => self.lost(now, &reason, &mut out),
            Input::Exited(code) => self.exited = Some(Reason::Ended(code)),
            Input::Unheard(reason) => self.unheard(now, &reason, &mut out),
            Input::Restarted => self.begun_again(now, &mut out),
            Input::Closed(reason) => self.closed(&reason, &mut out),
        }
        self.send_waiting(&mut out);
        self.restart_if_needed(&mut out);
        out
    }

    /// As [`handle`](Self::handle), for a message of which more was read than it says itself.
    pub(crate) fn read(&mut self, now: Duration, head: Option<Box<Head>>, input: Input) -> Vec<Action> {
        self.head = head;
        let out = self.handle(now, input);
        self.head = None;
        out
    }

    /// As [`read`](Self::read), for a message of a peer in this process, with what caused it.
    pub(crate) fn read_of(
        &mut self,
        now: Duration,
        cause: Option<Origin>,
        head: Option<Box<Head>>,
        input: Input,
    ) -> Vec<Action> {
        self.cause = cause;
        let out = self.read(now, head, input);
        self.cause = None;
        out
    }

    /// As [`handle`](Self::handle), for what came with the answer to this request of ours.
    #[cfg(feature = "http")]
    pub(crate) fn handle_with(&mut self, now: Duration, id: &Id, input: Input) -> Vec<Action> {
        let cause = self.outgoing.origin_of(id);
        self.read_of(now, cause, None, input)
    }

    /// Returns the cause of the message that is being handled.
    fn origin(&self) -> Option<Origin> {
        let arrived = self.arrival.as_ref().and_then(|arrival| arrival.transport.origin.clone());
        let known = arrived.or_else(|| self.cause.clone()).or_else(|| self.transport.origin.clone());
        // A pipe does not say what a message belongs to. Where one request of ours is on its way, it is that.
        let guessed = || self.outgoing.only_origin(&[NOBODY, OPENING]);
        known.or_else(|| (self.facts.role == Role::Client && self.transport.kind == "stdio").then(guessed).flatten())
    }

    /// As [`read`](Self::read), where the way a message came in matters: it is one of many HTTP exchanges.
    pub(crate) fn arrived(&mut self, now: Duration, mut arrival: Arrival, input: Input) -> Vec<Action> {
        let head = arrival.head.take();
        self.arrival = Some(arrival);
        let out = self.read(now, head, input);
        self.arrival = None;
        out
    }
}
