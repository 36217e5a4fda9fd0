//! Admitting one incoming request: which revision it speaks, whether that revision has the method, what its sender
//! may do. Shared by connections and by the stateless HTTP endpoint.

use std::sync::Arc;

use super::connection::{Facts, Role};
use super::context::{LogLevel, PeerFacts};
use super::revision::{Era, Method, Revision, modern};
use crate::error::{Error, Result};
use crate::jsonrpc::{Id, RawJson, code};
use crate::model::Capabilities;
use crate::model::meta::{ParamsHead, RequestMeta};
use serde_json::value::RawValue;

/// What the session of a legacy connection knows.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub(super) revision: Revision,
    pub(super) peer: Arc<PeerFacts>,
    pub(super) log_level: Option<LogLevel>,
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
}

/// The last modern sender's facts, kept because most requests of a connection carry the same text.
#[derive(Debug, Default)]
pub(super) struct Seen {
    peer: Option<Arc<PeerFacts>>,
}

impl Seen {
    fn peer(&mut self, capabilities: RawJson, info: Option<RawJson>) -> Arc<PeerFacts> {
        match &self.peer {
            Some(peer) if *peer.capabilities.raw() == capabilities && peer.info == info => peer.clone(),
            _ => {
                // Copied out: a slice would keep the whole message alive for as long as the connection.
                let own = |raw: RawJson| RawJson::trusted(bytes::Bytes::copy_from_slice(raw.bytes()));
                let peer = Arc::new(PeerFacts { info: info.map(own), capabilities: Capabilities::new(own(capabilities)) });
                self.peer = Some(peer.clone());
                peer
            }
        }
    }
}

fn not_found(method: &str, revision: Revision) -> Error {
    Error::rpc(code::METHOD_NOT_FOUND, format!("method {method:?} is not served (revision {revision})"))
}

/// Decides whether a request may run.
///
/// # Errors
/// The JSON-RPC error to answer with.
pub(super) fn admit(
    facts: &Facts,
    session: Option<&Session>,
    seen: &mut Seen,
    method: &str,
    params: Option<&RawJson>,
) -> Result<Admission> {
    let head: ParamsHead<'_> = match params {
        Some(params) => params.borrow().map_err(|e| Error::invalid_params(format!("\"params\": {e}")))?,
        None => ParamsHead::default(),
    };
    let meta = match head.meta {
        Some(raw) if !raw.get().starts_with('{') => {
            return Err(Error::invalid_params("params._meta: expected an object"));
        }
        Some(raw) => serde_json::from_str::<RequestMeta<'_>>(raw.get())
            .map_err(|e| Error::invalid_params(format!("params._meta: {e}")))?,
        None => RequestMeta::default(),
    };
    let progress_token = match meta.progress_token {
        None => None,
        Some(raw) => Some(serde_json::from_str(raw.get()).map_err(|_| {
            Error::invalid_params("params._meta.progressToken: expected a string or an integer")
        })?),
    };
    let slice = |raw: &RawValue| params.map(|p| p.slice(raw));
    let (revision, peer, log_level) = match (facts.role, meta.protocol_version.is_some(), session) {
        (Role::Server, true, _) | (Role::Server, false, None) => {
            let envelope = modern::envelope(&meta)?;
            let revision = modern::revision(&envelope.version, &facts.revisions)?;
            let capabilities = slice(envelope.capabilities).unwrap_or_else(RawJson::empty_object);
            (revision, seen.peer(capabilities, envelope.info.and_then(slice)), envelope.log_level)
        }
        (_, _, Some(session)) => (session.revision, session.peer.clone(), session.log_level),
        (Role::Client, _, None) => return Err(Error::rpc(code::INVALID_REQUEST, "the connection is not open yet")),
    };
    let row = Method::find(method)
        .filter(|m| m.exists_in(revision) && !m.notification)
        .filter(|m| if facts.role == Role::Server { m.from_client() } else { m.from_server() })
        .filter(|m| m.capability.is_none_or(|c| facts.capabilities.has(c)))
        .ok_or_else(|| not_found(method, revision))?;
    Ok(Admission {
        revision,
        method: row,
        peer,
        log_level: if revision.era() == Era::Legacy { Some(log_level.unwrap_or(LogLevel::Info)) } else { log_level },
        progress_token,
        meta: head.meta.and_then(slice),
        name: head.name.or(head.uri).and_then(slice),
        arguments: head.arguments.and_then(slice),
    })
}
