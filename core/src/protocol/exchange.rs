//! Admitting one incoming request: which revision it speaks, whether that revision has the method, what its sender
//! may do. Shared by connections and by the stateless HTTP endpoint.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::action::{Facts, Role};
use super::context::{LogLevel, PeerFacts, Transport};
use super::envelope::Head;
use super::ids::Route;
use super::revision::{Era, Method, Revision, modern};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{Id, MAX_ID_BYTES, RawJson, code};
use crate::model::subscription::is_part;

/// State of a legacy connection's session.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) revision: Revision,
    pub(super) peer: Arc<PeerFacts>,
    pub(super) log_level: Option<LogLevel>,
    /// News that a server has to tell unasked.
    pub(super) news: News,
}

impl Session {
    pub(super) fn new(revision: Revision, peer: Arc<PeerFacts>) -> Self {
        Self { revision, peer, log_level: None, news: News::default() }
    }
}

/// News that a server tells a legacy client unasked: changes of its lists and of resources that the client subscribed
/// to.
#[derive(Debug, Clone, Default)]
pub(super) struct News {
    /// The client is ready to hear it.
    pub(super) ready: bool,
    /// The client has said that it is initialized, or was waited for long enough: it may be asked, too.
    pub(super) initialized: bool,
    /// Time until which questions wait for that.
    pub(super) patience: Option<Duration>,
    /// The lists that have changed since the client was told.
    pub(super) changed: Vec<&'static str>,
    /// Time at which they are to be told, so that many changes are told once.
    pub(super) due: Option<Duration>,
    /// The URIs subscribed to.
    pub(super) subscriptions: BTreeSet<Box<str>>,
    /// Those of them that began in another process.
    pub(super) theirs: BTreeSet<Box<str>>,
    /// The URL elicitations that the client was asked for and not told the end of, the oldest first.
    pub(super) visits: VecDeque<Box<str>>,
}

impl News {
    /// Returns true if somebody subscribed to this URI, or to one that it is a part of.
    pub(super) fn wants(&self, uri: &str) -> bool {
        self.subscriptions.contains(uri) || self.subscriptions.iter().any(|whole| is_part(uri, whole))
    }
}

/// Arrival of one message, where a connection's messages come in different ways.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Its answer's way out.
    pub(crate) route: Route,
    /// Facts of the transport, for its handler.
    pub(crate) transport: Arc<Transport>,
    /// Parameters that were read already.
    pub(crate) head: Option<Box<Head>>,
}

/// A request that may run, with the facts it runs under.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(super) revision: Revision,
    pub(super) method: &'static Method,
    pub(super) peer: Arc<PeerFacts>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress_token: Option<Id>,
    pub(super) meta: Option<RawJson>,
    pub(super) name: Option<RawJson>,
    pub(super) arguments: Option<RawJson>,
    /// It is to become a task, and this side does that.
    pub(super) task: Option<RawJson>,
    /// It goes on with questions that were answered.
    pub(super) goes_on: bool,
}

fn not_found(method: &str, revision: Revision) -> Error {
    Error::rpc(
        code::METHOD_NOT_FOUND,
        format!("method {:?} is not served (revision {revision})", shortened(method, 100)),
    )
}

/// Decides whether a request may run.
///
/// # Errors
/// The JSON-RPC error to answer with.
pub(super) fn admit(
    facts: &Facts,
    session: Option<&Session>,
    method: &str,
    params: Option<&RawJson>,
    head: Box<Head>,
) -> Result<Admission> {
    let progress_token = match &head.progress_token {
        None => None,
        Some(raw) => Some(raw.to().map_err(|_| match raw.get().len() {
            bytes if bytes > MAX_ID_BYTES => {
                Error::invalid_params(format!("params._meta.progressToken: {bytes} bytes, longer than {MAX_ID_BYTES}"))
            }
            _ => Error::invalid_params("params._meta.progressToken: expected a string or an integer"),
        })?),
    };
    let (revision, peer, log_level) = match (facts.role, head.is_modern(), session) {
        (Role::Server, true, _) | (Role::Server, false, None) => {
            let envelope = modern::envelope(&head)?;
            let revision = modern::revision(&envelope.version, &facts.revisions)?;
            (revision, envelope.peer.clone(), envelope.log_level)
        }
        (_, _, Some(session)) => (session.revision, session.peer.clone(), session.log_level),
        (Role::Client, _, None) => return Err(Error::rpc(code::INVALID_REQUEST, "the connection is not open yet")),
    };
    let found = head.method.filter(|row| row.name == method);
    let row = found
        .or_else(|| Method::find_in(revision, method))
        .or_else(|| facts.methods.iter().copied().find(|row| row.name == method))
        .or_else(|| if facts.passes_on && revision.era() == Era::Legacy { Method::foreign(method) } else { None })
        .filter(|m| !m.notification)
        .filter(|m| if facts.role == Role::Server { m.from_client() } else { m.from_server() })
        .filter(|m| m.capability.is_none_or(|c| facts.capabilities.declares(c)))
        .filter(|m| m.extension.is_none_or(|id| facts.capabilities.has_extension(id)))
        .ok_or_else(|| not_found(method, revision))?;
    if let Some(id) = row.extension
        && !peer.capabilities.has_extension(id)
    {
        return Err(match revision.era() {
            Era::Modern => modern::missing_extension(id),
            Era::Legacy => Error::rpc(
                code::METHOD_NOT_FOUND,
                format!("method {method:?} is not served: the client does not declare the extension {id:?}"),
            ),
        });
    }
    let head = *head;
    Ok(Admission {
        revision,
        method: row,
        peer,
        log_level: if revision.era() == Era::Legacy { Some(log_level.unwrap_or(LogLevel::Info)) } else { log_level },
        progress_token,
        meta: head.meta,
        name: row.name_of(head.name, head.uri, params),
        arguments: head.arguments,
        goes_on: head.goes_on,
        // A side that does not declare it runs the request as any other (specification, "Task Support and Handling").
        task: head.task.filter(|_| revision.rules().tasks && row.task.is_some_and(|path| facts.capabilities.has(path))),
    })
}
