//! Inputs and outputs of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::PeerFacts;
use super::context::RequestContext;
use super::envelope::Head;
use super::ids::{CallId, Route};
use super::kind::Kind;
use super::origin::Origin;
use super::payload::Payload;
use super::revision::{Method, Revision};
use crate::error::{Error, Result};
use crate::idiom::{named, unit};
use crate::jsonrpc::{DecodeError, Id, Message, RawJson};
use crate::model::{CacheHints, Capabilities, SubscriptionFilter};
use crate::options::seconds;

/// Side of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has two sides")]
pub enum Role {
    /// Offers tools, resources and prompts.
    Server,
    /// Uses them.
    Client,
}

/// Identity and limits of this side; shared by all its connections.
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
    /// Lifetime and scope of the answer to `server/discover`.
    pub discovery: CacheHints,
    /// The revisions spoken, oldest first.
    pub revisions: Vec<Revision>,
    /// The requests of extensions that are served besides.
    pub methods: Vec<&'static Method>,
    /// Methods outside the protocol are heard of, too, in sessions that begin with a handshake.
    pub passes_on: bool,
    /// The most requests of the peer worked on at once, and of ours awaited at once; further ones of ours wait.
    pub max_in_flight: usize,
    /// The most listen streams that a server keeps for one connection.
    pub max_listeners: usize,
    /// The most changes that wait for a client that listens and is slow to read.
    pub max_queued_notifications: usize,
    /// Times for asking a silent peer for a sign of life; `None`: never.
    pub keep_alive: Option<KeepAlive>,
}

impl Facts {
    /// The same with other capabilities.
    #[cfg(feature = "http")]
    pub(crate) fn with_capabilities(&self, capabilities: Capabilities) -> Self {
        Self {
            role: self.role,
            info: self.info.clone(),
            capabilities,
            instructions: self.instructions.clone(),
            discovery: self.discovery,
            revisions: self.revisions.clone(),
            methods: self.methods.clone(),
            passes_on: self.passes_on,
            max_in_flight: self.max_in_flight,
            max_listeners: self.max_listeners,
            max_queued_notifications: self.max_queued_notifications,
            keep_alive: None,
        }
    }
}

/// Times for asking a peer that sends nothing for a sign of life (`ping`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "two times, and no more")]
pub struct KeepAlive {
    /// The time without a message of the peer.
    pub interval: Duration,
    /// The time without an answer, and without any message, after which the connection ends.
    pub timeout: Duration,
}

impl KeepAlive {
    /// Reads the options `ping_interval`, where 0 is never, and `ping_timeout`, in seconds.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for a value that is no time.
    pub(crate) fn of(interval: f64, timeout: f64) -> Result<Option<Self>> {
        let (interval, timeout) = (seconds("ping_interval", interval)?, seconds("ping_timeout", timeout)?);
        if interval.is_zero() {
            return Ok(None);
        }
        if timeout.is_zero() {
            return Err(Error::misuse(format!("option {:?}: expected more than 0 {}", named("ping_timeout"), unit())));
        }
        Ok(Some(Self { interval, timeout }))
    }
}

/// Event that a connection takes in.
#[derive(Debug)]
#[non_exhaustive]
pub enum Input {
    /// A message came in.
    Received(Message),
    /// A batch came in.
    Batch(Vec<Result<Message, DecodeError>>),
    /// Something came in that is no message.
    Invalid(DecodeError),
    /// The server wrote text that is no message and ends no request; what is to be said of it.
    Unreadable(String),
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
    /// A handler of a request without session tells its client something, on the stream of the answer: nothing when that
    /// is given.
    Tell {
        /// The client's request.
        call: CallId,
        /// The notification's method.
        method: &'static str,
        /// Its parameters.
        params: RawJson,
    },
    /// A handler reports progress on the peer's request.
    Progress {
        /// The peer's request.
        call: CallId,
        /// The progress so far; must grow.
        progress: f64,
        /// Out of how much.
        total: Option<f64>,
        /// For people.
        message: Option<String>,
    },
    /// This server's list of this kind has changed.
    Changed(Kind),
    /// The resource with this URI has changed.
    Updated(String),
    /// Any resource may have changed.
    Missed,
    /// A task is as these parameters of `notifications/tasks` say.
    Task {
        /// Its id.
        id: Arc<str>,
        /// Grows with whatever is said of it: what comes late is old.
        version: u64,
        /// Its state.
        params: RawJson,
    },
    /// A notification of an extension, for those who asked for it.
    Announce(Box<Announcement>),
    /// A request of the peer is a listen stream from now on.
    Listen(Box<Listen>),
    /// This side is about to close: listen streams end in order.
    Ending,
    /// A handler has finished the peer's request.
    Completed(CallId, Result<Payload>),
    /// The caller no longer wants the answer to our request.
    Cancel(CallId, Option<String>),
    /// Our request could not be delivered, or its answer could not.
    Undelivered(Id, Error),
    /// The server does not know the session of our request any more (HTTP 404).
    SessionLost {
        /// The request's id.
        id: Id,
        /// It was taken before, so that it may have been carried out.
        taken: bool,
    },
    /// The server does not know the session any more: its standalone stream found out, and no request.
    SessionExpired,
    /// The user has finished what this URL elicitation was for.
    Visited(String),
    /// Requests of ours wait for a login (`true`), or do not any more. Their time does not run meanwhile.
    Authorizing(bool),
    /// Time has passed.
    Tick,
    /// The server's process has ended unasked; another can be started (`Action::Restart`).
    Lost(String),
    /// The server's process has ended, with this exit code if it has one; what comes of that is said by the next input.
    #[doc(hidden)]
    Exited(Option<i32>),
    /// The server's process has ended, and has read nothing of what it was sent: no question of ours is to blame.
    Unheard(String),
    /// That has been done: whatever is sent now goes to the new one.
    Restarted,
    /// The peer is gone.
    Closed(String),
}

/// A notification of an extension.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Announcement {
    /// The extension's identifier.
    pub extension: Arc<str>,
    /// The member of a filter that asks for it.
    pub member: Arc<str>,
    /// The notification's method.
    pub method: Arc<str>,
    /// Its key, for those who asked for some keys only.
    pub key: Option<Arc<str>>,
    /// Its parameters, an object.
    pub params: RawJson,
}

/// A request of the peer that becomes a listen stream.
#[derive(Debug)]
#[non_exhaustive]
pub struct Listen {
    /// The request.
    pub call: CallId,
    /// Changes that its client is told of.
    pub filter: SubscriptionFilter,
    /// The facts of the request, for the hook that is told of the end of its subscriptions to resources.
    pub context: RequestContext,
    pub(crate) counted: Counted,
}

impl Listen {
    /// As counted.
    pub(crate) fn new(call: CallId, filter: SubscriptionFilter, context: RequestContext, counted: Counted) -> Self {
        Self { call, filter, context, counted }
    }
}

/// Counts one thing for as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Counted {
    pub(crate) fn new(gauge: &Arc<AtomicUsize>) -> Self {
        gauge.fetch_add(1, Ordering::Relaxed);
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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
    /// The option that `timeout` was given as, which an error names.
    pub timeout_option: &'static str,
    /// Time after which it is given up, progress or not.
    pub max_timeout: Option<Duration>,
    /// Ask for progress notifications.
    pub progress: bool,
    /// The peer's request this one belongs to.
    pub related: Option<CallId>,
    /// It may be repeated although nobody knows whether it was done, whatever its method says.
    pub idempotent: bool,
    /// Its progress is heard after its answer, too, until it is cancelled: a task goes on.
    pub lasting: bool,
    /// It opens a listen stream: what is told on that is for the caller, and after the acknowledgement there is no
    /// timeout.
    pub listens: bool,
    /// A result of any type is what the caller wants.
    pub any_result: bool,
    /// Somebody else judges a form's answer.
    pub judged: bool,
    /// Its cause.
    pub(crate) origin: Option<Origin>,
}

impl Invocation {
    /// A request without timeout and without progress.
    pub fn new(call: CallId, method: impl Into<String>, params: Option<RawJson>) -> Self {
        let (timeout, max_timeout, related) = (None, None, None);
        let (progress, idempotent, lasting, listens, any_result) = (false, false, false, false, false);
        let (method, timeout_option) = (method.into(), "timeout");
        Self {
            call,
            method,
            params,
            timeout,
            timeout_option,
            max_timeout,
            progress,
            related,
            idempotent,
            lasting,
            listens,
            any_result,
            judged: false,
            origin: None,
        }
    }
}

/// A request of the peer that is to be run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// Names it until it is completed.
    pub id: CallId,
    /// Its row.
    pub method: &'static Method,
    /// The parameters object.
    pub params: Option<RawJson>,
    /// The member of `params` that names what the request is about: see [`Method::name_member`].
    pub name: Option<RawJson>,
    /// `params.arguments`.
    pub arguments: Option<RawJson>,
    /// `params.task`, where this side runs such requests as tasks.
    pub task: Option<RawJson>,
    /// The facts it runs under.
    pub context: RequestContext,
}

impl Call {
    /// The same with other parameters.
    ///
    /// # Errors
    /// −32602 when they are no parameters of a request.
    pub(crate) fn with_params(&self, params: Option<RawJson>) -> Result<Self> {
        let head = Head::read(params.as_ref())?;
        let name = self.method.name_of(head.name, head.uri, params.as_ref());
        let mut context = self.context.clone();
        (context.name, context.meta) = (name.clone(), head.meta);
        // A request that was not asked for as a task does not become one on its way.
        let task = head.task.filter(|_| self.task.is_some());
        Ok(Self { id: self.id, method: self.method, params, name, arguments: head.arguments, task, context })
    }
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
    /// Kind of the message.
    pub sent: Sent,
    /// Its cause, for a peer in this process.
    pub(crate) origin: Option<Origin>,
}

/// Kind of a message that goes out, with the facts that a transport needs to know of it.
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
        /// It may be sent again although nobody knows whether it was carried out.
        idempotent: bool,
    },
    /// A notification of ours: what is so. The same one again adds nothing.
    Notification,
    /// One of what has happened: the same one again is another.
    Announcement,
    /// The answer to a request; its error code, when it is one.
    Response(Option<i64>),
}

/// A client connection's result of negotiation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Opening {
    /// The negotiated revision.
    pub revision: Revision,
    /// The server's own facts.
    pub peer: Arc<PeerFacts>,
    /// The server's hint for the model.
    pub instructions: Option<String>,
    /// The server's answer to `initialize` or `server/discover`, as it came.
    pub result: RawJson,
    /// Its era is known, and not just guessed from silence or a failure inside the server.
    pub certain: bool,
}

/// Cause of a notification, where that is known.
#[derive(Debug, Clone, Default)]
pub struct NotificationCause(pub(crate) Option<Origin>);

/// Step that a connection asks its driver for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action {
    /// Send a message.
    Send(Outbound),
    /// Run a request of the peer.
    Dispatch(Box<Call>),
    /// Stop running a request of the peer; its answer is no longer wanted.
    Abort(CallId, Option<String>),
    /// A notification for this side's user, with what caused it.
    Notified(String, Option<RawJson>, NotificationCause),
    /// A notification on a listen stream of ours.
    Told(CallId, String, Option<RawJson>),
    /// Our request is finished.
    Resolve(CallId, Result<RawJson>),
    /// Our request made progress: `{progress, total?, message?}`.
    Progress(CallId, RawJson),
    /// Nobody waits for this request of ours any more; a transport may drop its stream.
    Abandon(Id),
    /// The request that came this way is cancelled: nothing more will go out on it.
    Unanswered(Route),
    /// The client is gone, and with it its subscriptions to these resources. The context is what a request of its
    /// session would have had.
    Unsubscribed(Box<RequestContext>, Vec<Box<str>>),
    /// The client of a legacy session says that its roots have changed.
    RootsChanged(Box<RequestContext>),
    /// The client of a legacy session sends a notification outside the protocol.
    PassedOn(Box<RequestContext>, Option<RawJson>),
    /// The client's negotiation succeeded.
    Opened(Opening),
    /// The server has lost the session; what belonged to it is over, and a new one begins.
    SessionLost,
    /// Something about the peer is wrong that is no reason to fail.
    Warn(String),
    /// The process that has ended is needed: start another.
    Restart,
    /// The connection ends. `relaunch`: the server died of the probe; connect again and start with `initialize`.
    Close {
        /// The reason.
        reason: Error,
        /// Try again without probing.
        relaunch: bool,
    },
}
