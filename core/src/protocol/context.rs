use std::any::Any;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use serde::Serialize;

use super::origin::Origin;
use super::revision::Revision;
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{Id, RawJson};
use crate::model::{Capabilities, Principal, TraceContext};

/// Severity of a log message, as in RFC 5424.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are RFC 5424's")]
#[expect(clippy::exhaustive_enums, reason = "the eight levels of RFC 5424")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl LogLevel {
    const NAMES: [(&'static str, Self); 8] = [
        ("debug", Self::Debug),
        ("info", Self::Info),
        ("notice", Self::Notice),
        ("warning", Self::Warning),
        ("error", Self::Error),
        ("critical", Self::Critical),
        ("alert", Self::Alert),
        ("emergency", Self::Emergency),
    ];

    /// The level's name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

impl FromStr for LogLevel {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, level)| *level).ok_or_else(|| {
            let known: Vec<_> = Self::NAMES.iter().map(|(n, _)| *n).collect();
            Error::invalid_params(format!(
                "\"level\": expected one of {}, got {:?}",
                known.join(", "),
                shortened(name, 100)
            ))
        })
    }
}

/// Facts of a peer, by its own word.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerFacts {
    /// Its `Implementation` object.
    pub info: Option<RawJson>,
    /// Its capabilities.
    pub capabilities: Capabilities,
}

/// The headers of an HTTP request, as a transport keeps them: most handlers never ask.
pub(crate) trait HeaderList: Send + Sync {
    /// Names in lower case, and values; those that are no text are left out.
    fn list(&self) -> Vec<(String, String)>;
}

/// Room of a server that a call takes until its handler ends, whoever still waits for the answer.
pub(crate) trait Room: Send + Sync {
    /// One handler has ended.
    fn give_back(&self);
}

/// Way in which a request came in.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Transport {
    /// `stdio`, `http` or `memory`.
    pub kind: &'static str,
    /// The legacy HTTP session's id.
    pub session_id: Option<Arc<str>>,
    /// Sender of the request, where access tokens are checked.
    pub principal: Option<Arc<Principal>>,
    pub(crate) header_list: Option<Arc<dyn HeaderList>>,
    /// Data about the request from the layers before a mounted endpoint.
    pub(crate) beside: Option<Arc<dyn Any + Send + Sync>>,
    /// Room that the calls take which came in this way.
    pub(crate) room: Option<Arc<dyn Room>>,
    /// Cause of everything that comes in this way.
    pub(crate) origin: Option<Origin>,
    /// The number by which requests count together, where somebody could have many connections: a principal, or an address.
    pub(crate) share: Option<u64>,
    /// The session, by the name that all processes that serve it know.
    #[cfg(feature = "redis")]
    pub(crate) shared_session: Option<Arc<str>>,
    /// Cancelling means closing the response stream and not a notification (modern HTTP).
    pub(crate) cancel_by_closing: bool,
}

impl Transport {
    /// A transport of this kind, without session and headers.
    #[must_use]
    pub fn new(kind: &'static str) -> Self {
        Self { kind, ..Self::default() }
    }

    /// The HTTP request's headers, names in lower case, values that are text. Empty where there are none.
    #[must_use]
    pub fn headers(&self) -> Vec<(String, String)> {
        self.header_list.as_ref().map_or_else(Vec::new, |list| list.list())
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers hold secrets.
        f.debug_struct("Transport")
            .field("kind", &self.kind)
            .field("session_id", &self.session_id)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

/// Values that were put beside a request on its way, the last one first: what a server started with, what middleware
/// found out. A clone is a reference count.
#[derive(Clone, Default)]
pub(crate) struct States(Option<Arc<Stated>>);

struct Stated {
    value: Arc<dyn Any + Send + Sync>,
    before: States,
}

impl States {
    /// These and one more.
    #[must_use]
    pub(crate) fn and(&self, value: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(Arc::new(Stated { value, before: self.clone() })))
    }

    /// The last one of this type.
    pub(crate) fn find<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let mut next = self;
        while let Some(stated) = &next.0 {
            if stated.value.is::<T>() {
                return stated.value.clone().downcast().ok();
            }
            next = &stated.before;
        }
        None
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "States(..)" } else { "States()" })
    }
}

/// A request that may come again, with the answers to what it asked.
pub(crate) struct Resumable {
    /// Its parameters as they came.
    pub(crate) params: RawJson,
    /// It has come before.
    pub(crate) goes_on: bool,
    /// Data of a layer above for it, whatever runs for the request.
    pub(crate) kept: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// Its handler runs, or has run.
    pub(crate) has_run: AtomicBool,
}

impl Resumable {
    pub(crate) fn new(params: RawJson, goes_on: bool) -> Arc<Self> {
        Arc::new(Self { params, goes_on, kept: OnceLock::new(), has_run: AtomicBool::new(false) })
    }
}

impl fmt::Debug for Resumable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resumable").field("params", &self.params).finish_non_exhaustive()
    }
}

/// Everything a handler may know about its request. Legacy fills it from the session, modern from `_meta`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestContext {
    /// The request's id.
    pub id: Id,
    /// The method's name.
    pub method: &'static str,
    /// The revision that the request speaks.
    pub revision: Revision,
    /// Facts of the peer, by its own word.
    pub peer: Arc<PeerFacts>,
    /// Log messages below this level are not wanted; `None` in modern: none at all.
    pub log_level: Option<LogLevel>,
    /// Progress is reported under this token; without one nobody listens.
    pub progress_token: Option<Id>,
    /// Object of the request: the JSON text of the tool's or prompt's name, or of the resource's URI.
    pub name: Option<RawJson>,
    /// The request's `_meta`.
    pub meta: Option<RawJson>,
    /// The task that it runs as.
    pub task_id: Option<Arc<str>>,
    /// Way in which it came in.
    pub transport: Arc<Transport>,
    /// Values that were put beside it on its way.
    pub(crate) states: States,
    /// Parameters and data of a request that may ask its client in rounds.
    pub(crate) rounds: Option<Arc<Resumable>>,
    /// Its cause, where that was started in this process.
    pub(crate) origin: Option<Origin>,
}

impl RequestContext {
    /// The facts of a request that this side sends.
    pub(crate) fn of_own(revision: Revision, method: &'static str, peer: Arc<PeerFacts>, kind: &'static str) -> Self {
        Self {
            id: Id::Number(0),
            method,
            revision,
            peer,
            log_level: None,
            progress_token: None,
            name: None,
            meta: None,
            task_id: None,
            transport: Arc::new(Transport::new(kind)),
            states: States::default(),
            rounds: None,
            origin: None,
        }
    }

    /// Returns the trace that was put beside the request on its way, else that of its `_meta`.
    pub(crate) fn trace_context_beside(&self, states: &States) -> Option<TraceContext> {
        let stated = states.find::<TraceContext>().map(|trace| (*trace).clone());
        stated.or_else(|| self.meta.as_ref().and_then(TraceContext::of_meta))
    }

    /// As JSON, for other languages: see the bridge's `context`.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            request_id: &'a Id,
            method: &'a str,
            protocol_version: Revision,
            era: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            client_info: Option<&'a RawJson>,
            client_capabilities: &'a RawJson,
            #[serde(skip_serializing_if = "Option::is_none")]
            progress_token: Option<&'a Id>,
            #[serde(skip_serializing_if = "Option::is_none")]
            log_level: Option<LogLevel>,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<&'a RawJson>,
            #[serde(skip_serializing_if = "Option::is_none")]
            meta: Option<&'a RawJson>,
            #[serde(skip_serializing_if = "Option::is_none")]
            trace_context: Option<TraceContext>,
            #[serde(skip_serializing_if = "Option::is_none")]
            task_id: Option<&'a str>,
            transport: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            principal: Option<serde_json::Value>,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            headers: &'a [(String, String)],
        }
        RawJson::from_value(&Wire {
            request_id: &self.id,
            method: self.method,
            protocol_version: self.revision,
            era: self.revision.era().as_str(),
            client_info: self.peer.info.as_ref(),
            client_capabilities: self.peer.capabilities.raw(),
            progress_token: self.progress_token.as_ref(),
            log_level: self.log_level,
            name: self.name.as_ref(),
            meta: self.meta.as_ref(),
            trace_context: self.trace_context_beside(&self.states),
            task_id: self.task_id.as_deref(),
            transport: self.transport.kind,
            session_id: self.transport.session_id.as_deref(),
            principal: self.transport.principal.as_deref().map(Principal::to_value),
            headers: &self.transport.headers(),
        })
    }
}
