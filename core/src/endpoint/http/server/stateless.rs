//! Handshake revisions without sessions (`stateless`): each POST is a connection of its own, whose client is taken for
//! one that has been initialized. Requests that need a session are refused with an error that says so.

use std::sync::{Arc, PoisonError};

use http::{HeaderMap, Response, StatusCode};
use serde_json::{Map, Value};

use super::endpoint::Inner;
use super::exchange::{Exchange, Owner};
use super::headers::Accepts;
use super::legacy;
use super::outlet::Outlet;
use super::reply::{self, Refusal};
use super::sender::Sender;
use crate::driver::{Peer, Sink};
use crate::endpoint::http::Body;
use crate::error::{Error, shortened};
use crate::jsonrpc::{self, DecodeError, Decoded, Id, Message, RawJson, code};
use crate::model::Capabilities;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::{Arrival, Connection, Facts, Head, Input, Route};

/// Takes a message, or answers a request.
pub(super) async fn post(
    inner: &Arc<Inner>,
    sender: Sender,
    decoded: Decoded,
    head: Option<Box<Head>>,
    accepts: Accepts,
) -> Response<Body> {
    let facts = inner.sessionless_facts();
    let (id, opens) = match &decoded {
        Decoded::One(Message::Request { id, method, .. }) => {
            if needs_session(method) {
                return refused(id, method);
            }
            (Some(id.clone()), method == "initialize")
        }
        Decoded::One(Message::Notification { .. }) => return reply::empty(StatusCode::ACCEPTED),
        Decoded::One(_) => {
            let why = "responses need a session in which something was asked, and this server keeps none (stateless)";
            return Refusal::new(StatusCode::BAD_REQUEST, why).into();
        }
        Decoded::Batch(_) => (None, false),
    };
    // The header is of requests that follow; `initialize` negotiates by its body.
    let none = HeaderMap::new();
    let revision = match revision(if opens { &none } else { &sender.headers }, &facts) {
        Ok(revision) => revision,
        Err(refusal) => return refusal.with_id(id.as_ref()).into(),
    };
    let Some(mut ticket) = inner.ticket(sender.holder()) else {
        return inner.no_room().with_id(id.as_ref()).into();
    };
    let outlet = Arc::new(Outlet::new(if accepts.events { inner.max_queued } else { 0 }, sender.holder().owner()));
    let transport = sender.into_transport(None);
    let connection = match opens {
        true => Connection::new(facts, transport.clone()),
        false => Connection::sessionless(facts, transport.clone(), revision),
    };
    let sink: Arc<dyn Sink> = outlet.clone();
    let peer = Peer::new(connection, inner.limits, inner.server.shared.router.clone(), |_| sink);
    let (input, asks) = match decoded {
        Decoded::One(message) => (Input::Received(message), true),
        Decoded::Batch(parts) => {
            let parts: Vec<_> = parts.into_iter().map(without_session).collect();
            let asks = parts.iter().any(|part| matches!(part, Ok(Message::Request { .. }) | Err(_)));
            (Input::Batch(parts), asks || !revision.rules().batches)
        }
    };
    peer.arrived(Arrival { route: Route(0), transport, head }, input);
    if !asks {
        return reply::empty(StatusCode::ACCEPTED);
    }
    if !outlet.is_answered() {
        // Closing the server finds it.
        ticket.list(&outlet, &peer);
    }
    let exchange = Exchange::new(outlet, Owner::Stateless { peer, ticket });
    reply::answered(exchange, accepts, inner.keep_alive, legacy::status).await
}

/// Returns true for a method that has an effect on later requests.
fn needs_session(method: &str) -> bool {
    matches!(method, "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel")
        || method.starts_with("tasks/")
}

fn why_refused(method: &str) -> String {
    format!("{:?} needs a session, and this server keeps none (stateless)", shortened(method, 100))
}

fn refused(id: &Id, method: &str) -> Response<Body> {
    let error = Error::rpc(code::METHOD_NOT_FOUND, why_refused(method)).to_object();
    reply::json(StatusCode::OK, jsonrpc::encode_error(Some(id), &error, false))
}

/// A part of a batch, or why it is not answered here.
fn without_session(part: Result<Message, DecodeError>) -> Result<Message, DecodeError> {
    match part {
        Ok(Message::Request { id, method, .. }) if needs_session(&method) => {
            let refusal = DecodeError::invalid(Some(id), why_refused(&method));
            Err(DecodeError { code: code::METHOD_NOT_FOUND, ..refusal })
        }
        part => part,
    }
}

/// The revision that is spoken: the one that the header names, else the one that has no header.
fn revision(headers: &HeaderMap, facts: &Facts) -> Result<Revision, Refusal> {
    let mut served = facts.revisions.iter().copied().filter(|revision| revision.era() == Era::Legacy);
    match legacy::named_version(headers)? {
        Some(named) if served.clone().any(|revision| revision == named) => Ok(named),
        Some(named) => {
            let why = format!("header MCP-Protocol-Version: {named} is not served here");
            Err(Refusal::new(StatusCode::BAD_REQUEST, why))
        }
        None => {
            let newest = served.clone().next_back().unwrap_or(Revision::NEWEST_LEGACY);
            Ok(served.find(|revision| *revision == Revision::UNNAMED).unwrap_or(newest))
        }
    }
}

impl Inner {
    /// Returns the server's own facts where there are no sessions.
    fn sessionless_facts(&self) -> Arc<Facts> {
        let facts = self.server.facts();
        let mut kept = self.sessionless.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, own)) = kept.as_ref().filter(|(of, _)| Arc::ptr_eq(of, &facts)) {
            return own.clone();
        }
        let capabilities: Map<String, Value> = facts.capabilities.raw().to().unwrap_or_default();
        let capabilities = RawJson::from_value(&without_sessions(capabilities));
        let own = Arc::new(facts.with_capabilities(Capabilities::new(capabilities)));
        *kept = Some((facts, own.clone()));
        own
    }
}

/// The capabilities that hold within one request.
fn without_sessions(mut capabilities: Map<String, Value>) -> Map<String, Value> {
    capabilities.retain(|name, _| name != "logging" && name != "tasks");
    for members in capabilities.values_mut().filter_map(Value::as_object_mut) {
        members.retain(|name, _| name != "listChanged" && name != "subscribe");
    }
    capabilities
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_needs_a_session_is_not_declared() {
        let all = json!({
            "logging": {}, "tasks": {"list": {}}, "tools": {"listChanged": true}, "completions": {},
            "resources": {"subscribe": true, "listChanged": true}, "experimental": {"x": {"y": 1}},
        });
        let Value::Object(all) = all else { panic!("an object") };
        let left = json!({"tools": {}, "completions": {}, "resources": {}, "experimental": {"x": {"y": 1}}});
        assert_eq!(Value::Object(without_sessions(all)), left);
        for (method, needs) in [("logging/setLevel", true), ("tasks/get", true), ("tools/call", false), ("ping", false)]
        {
            assert_eq!(needs_session(method), needs, "{method}");
        }
    }
}
