//! The handshake of the legacy revisions: `initialize`, its answer, `notifications/initialized`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Era, Revision};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::Capabilities;
use crate::protocol::revision::object;
use crate::protocol::{Facts, PeerFacts};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams {
    protocol_version: String,
    #[serde(default)]
    capabilities: Option<RawJson>,
    #[serde(default)]
    client_info: Option<RawJson>,
}

/// The most bytes that a client may say of itself: a session keeps them for as long as it lives.
const MAX_PEER_FACTS: usize = 64 << 10;

/// The most bytes that a server may say of itself besides its instructions. Icons may be in it.
pub(super) const MAX_SERVER_FACTS: usize = 256 << 10;

/// Answers `initialize`: the revision asked for when it is served, else the newest legacy one that is.
///
/// # Errors
/// −32602 naming the member that is missing or of the wrong type; −32022 when no legacy revision is served.
pub(crate) fn answer(facts: &Facts, params: Option<&RawJson>) -> Result<(Revision, PeerFacts, RawJson)> {
    let params = params.ok_or_else(|| Error::invalid_params("\"params\": missing"))?;
    let mut asked: InitializeParams = params.to().map_err(|e| Error::invalid_params(format!("initialize: {e}")))?;
    // The empty object as PHP writes it.
    for member in [&mut asked.capabilities, &mut asked.client_info] {
        member.take_if(|raw| raw.get() == "[]");
    }
    for (name, value) in [("capabilities", &asked.capabilities), ("clientInfo", &asked.client_info)] {
        if value.as_ref().is_some_and(|v| !v.is_object()) {
            return Err(Error::invalid_params(format!("{name:?}: expected an object")));
        }
    }
    let kept =
        [&asked.capabilities, &asked.client_info].into_iter().flatten().map(|raw| raw.get().len()).sum::<usize>();
    if kept > MAX_PEER_FACTS {
        let message = format!("\"capabilities\" and \"clientInfo\": {kept} bytes, at most {MAX_PEER_FACTS}");
        return Err(Error::invalid_params(message));
    }
    let mut served = facts.revisions.iter().copied().filter(|r| r.era() == Era::Legacy);
    let revision = match Revision::parse(&asked.protocol_version) {
        Some(r) if r.era() == Era::Legacy && facts.revisions.contains(&r) => r,
        _ => served.next_back().ok_or_else(|| super::modern::unsupported(&asked.protocol_version, &facts.revisions))?,
    };
    let rules = revision.rules();
    let info = super::shape::implementation(rules, &facts.info);
    let mut out = String::from("{");
    object::push_member(&mut out, "protocolVersion", &format!("\"{revision}\""));
    let capabilities = super::shape::capabilities(rules, facts.capabilities.raw());
    object::push_member(&mut out, "capabilities", &capabilities);
    object::push_member(&mut out, "serverInfo", &info);
    if let Some(instructions) = &facts.instructions {
        object::push_member(&mut out, "instructions", RawJson::from_value(instructions).get());
    }
    out.push('}');
    let peer = PeerFacts {
        info: asked.client_info,
        capabilities: asked.capabilities.map(Capabilities::new).unwrap_or_default(),
    };
    Ok((revision, peer, RawJson::written(out)))
}

/// The parameters of our own `initialize`.
pub(crate) fn question(facts: &Facts, revision: Revision) -> RawJson {
    let mut out = String::from("{");
    object::push_member(&mut out, "protocolVersion", &format!("\"{revision}\""));
    let capabilities = super::shape::capabilities(revision.rules(), facts.capabilities.raw());
    object::push_member(&mut out, "capabilities", &capabilities);
    let info = super::shape::implementation(revision.rules(), &facts.info);
    object::push_member(&mut out, "clientInfo", &info);
    out.push('}');
    RawJson::written(out)
}

/// A page of a list without an empty cursor, which some servers write on the last page. A revision without handshakes says
/// that it is one like any other.
pub(crate) fn page(result: RawJson) -> RawJson {
    if !object::has(result.get(), "nextCursor") {
        return result;
    }
    let mut out = String::from("{");
    let mut is_odd = false;
    for (name, value) in object::members(result.get()) {
        if &*name == "nextCursor" && value.get() == "\"\"" {
            is_odd = true;
        } else {
            object::push_member(&mut out, &name, value.get());
        }
    }
    if !is_odd {
        return result;
    }
    out.push('}');
    RawJson::written(out)
}

/// Server's answer to the opening of the connection.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) revision: Revision,
    pub(crate) peer: Arc<PeerFacts>,
    pub(crate) instructions: Option<String>,
    /// All of it, as it came.
    pub(crate) result: RawJson,
}

/// Reads a server's answer to `initialize`.
///
/// # Errors
/// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) for an answer that is none, [`Unsupported`](ErrorKind::Unsupported)
/// for a revision that is not among ours.
pub(crate) fn read_answer(facts: &Facts, result: &RawJson) -> Result<Answer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeResult<'a> {
        protocol_version: String,
        #[serde(borrow, default)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow, default)]
        server_info: Option<&'a RawValue>,
        #[serde(default)]
        instructions: Option<String>,
    }
    let read: InitializeResult<'_> =
        result.borrow().map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("answer to initialize: {e}")))?;
    let kept = [read.capabilities, read.server_info].into_iter().flatten().map(|raw| raw.get().len()).sum::<usize>();
    if kept > MAX_SERVER_FACTS {
        let message = format!(
            "answer to initialize: \"capabilities\" and \"serverInfo\": {kept} bytes, at most {MAX_SERVER_FACTS}"
        );
        return Err(Error::new(ErrorKind::PeerMisbehaved, message));
    }
    let revision = Revision::parse(&read.protocol_version)
        .filter(|r| r.era() == Era::Legacy && facts.revisions.contains(r))
        .ok_or_else(|| {
            let ours: Vec<_> = facts.revisions.iter().map(|r| r.as_str()).collect();
            Error::new(
                ErrorKind::Unsupported,
                format!(
                    "the server speaks revision {:?}; this client speaks {}",
                    read.protocol_version,
                    ours.join(", ")
                ),
            )
        })?;
    let capabilities = read.capabilities.map_or_else(Capabilities::default, |raw| Capabilities::new(result.slice(raw)));
    let peer = Arc::new(PeerFacts { info: read.server_info.map(|raw| result.slice(raw)), capabilities });
    let instructions = read.instructions;
    Ok(Answer { revision, peer, instructions, result: result.clone() })
}
