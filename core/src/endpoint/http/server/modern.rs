//! Stateless requests: each POST is a connection of its own, and everything about it is checked before it runs.

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};

use super::endpoint::Inner;
use super::exchange::{Exchange, Owner};
use super::headers::{self, Accepts, METHOD, NAME, Single, Version};
use super::outlet::{Answer, End, Outlet};
use super::reply::{self, Refusal};
use super::sender::Sender;
use super::{ending, heavy};
use crate::call::Link;
use crate::driver::{Peer, Sink};
use crate::endpoint::http::Body;
use crate::error::{Error, Result};
use crate::jsonrpc::{Id, Message, RawJson, code};
use crate::protocol::revision::{Method, modern};
use crate::protocol::{Arrival, Connection, Facts, Head, Input, Route};

/// A request with its parameters' head.
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<RawJson>,
    pub(super) head: Box<Head>,
}

/// Runs a request that was [checked](check), whose method is this `row`, and answers it.
pub(super) async fn post(
    inner: &Arc<Inner>,
    sender: Sender,
    request: Request,
    facts: Arc<Facts>,
    row: Option<&'static Method>,
    accepts: Accepts,
) -> Response<Body> {
    let listens = request.method == "subscriptions/listen";
    if listens && inner.is_draining() {
        return ending::refused(Some(&request.id));
    }
    if listens && !accepts.events {
        let message = "header Accept: expected text/event-stream: what is listened to comes as a stream";
        return Refusal::new(StatusCode::NOT_ACCEPTABLE, message).with_id(Some(&request.id)).into();
    }
    let holder = sender.holder();
    let Request { id, method, params, mut head } = request;
    head.method = row;
    // A method that nobody's code answers is refused by HTTP too when it is unknown.
    let engine = row.is_none_or(|row| row.header_member().is_none());
    let outlet = Arc::new(Outlet::new(if accepts.events { inner.max_queued } else { 0 }, holder.owner()));
    let until = if listens { inner.patience(&sender) } else { None };
    let transport = sender.into_transport(None);
    let connection = Connection::new(facts, transport.clone());
    let sink: Arc<dyn Sink> = outlet.clone();
    let peer = Peer::new(connection, inner.limits, inner.server.shared.router.clone(), |_| sink);
    let of = holder.clone();
    let ticket = if listens { inner.listener_ticket(holder, &outlet, &peer) } else { inner.ticket(holder) };
    let Some(mut ticket) = ticket else {
        let refusal = if listens {
            let message = format!("more than {} listen streams (half of max_connections)", inner.listening.most());
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
        } else {
            inner.no_room()
        };
        return refusal.with_id(Some(&id)).into();
    };
    if listens {
        let link: Arc<dyn Link> = peer.clone();
        ticket.join(&link);
    }
    let arrival = Arrival { route: Route(0), transport, head: Some(head) };
    let size = params.as_ref().map_or(0, |params| params.get().len());
    let turn = heavy::turn(size, || of).await;
    heavy::at_length(size, || {
        peer.arrived(arrival, Input::Received(Message::Request { id: id.clone(), method, params }));
    });
    drop(turn);
    if !outlet.is_answered() {
        // Closing the server finds it.
        ticket.list(&outlet, &peer);
    }
    let mut exchange = Exchange::new(outlet, Owner::Stateless { peer, ticket });
    exchange.until = until;
    reply::answered(exchange, accepts, inner.keep_alive, |answer| status(answer, engine)).await
}

fn status(answer: &Answer, engine: bool) -> StatusCode {
    match answer.code {
        None => StatusCode::OK,
        Some(code::METHOD_NOT_FOUND) if answer.early || engine => StatusCode::NOT_FOUND,
        Some(modern::HEADER_MISMATCH | modern::MISSING_CLIENT_CAPABILITY | modern::UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        Some(code::UNAVAILABLE) => StatusCode::SERVICE_UNAVAILABLE,
        Some(_) if answer.early => StatusCode::BAD_REQUEST,
        Some(_) => StatusCode::OK,
    }
}

fn mismatch(message: impl Into<String>) -> Error {
    Error::rpc(modern::HEADER_MISMATCH, message)
}

/// The checks before a request is admitted, in the order that clients rely on: envelope, version, mirrored headers. Gives
/// the row of its method, if the revision has one. `header` is that of the version.
pub(super) fn check(
    inner: &Inner,
    facts: &Facts,
    headers: &HeaderMap,
    header: Version<'_>,
    request: &Request,
) -> Result<Option<&'static Method>> {
    let Request { method, head, .. } = request;
    let version = modern::version(head)?;
    if header.is_modern {
        modern::envelope(head)?;
    }
    if header.text != Single::Text(&version) {
        let said = match header.text {
            Single::Absent => "is missing".to_owned(),
            Single::Text(text) => format!("is {}", headers::quoted(text)),
            Single::Unreadable => "is not one readable value".to_owned(),
        };
        return Err(mismatch(format!(
            "header MCP-Protocol-Version {said}, the body says {}",
            headers::quoted(&version)
        )));
    }
    let revision = modern::revision(&version, &facts.revisions)?;
    let named = Single::of(headers, &METHOD);
    if named != Single::Text(method) {
        // Never encoded: who routes by it reads it as it is.
        let said = match named {
            Single::Absent => "missing".to_owned(),
            Single::Text(text) => format!("is {}", headers::quoted(text)),
            Single::Unreadable => "expected one value of visible ASCII".to_owned(),
        };
        return Err(mismatch(format!("header Mcp-Method: {said}, the body says {}", headers::quoted(method))));
    }
    let found = Method::find_in(revision, method);
    let Some(row) = found.filter(|row| row.header_member().is_some()) else { return Ok(found) };
    let named = row.named_in(head.name.as_ref(), head.uri.as_ref(), request.params.as_ref());
    let name = headers::name_of(named.as_deref());
    headers::mirrors(headers, &NAME, "Mcp-Name", name.as_deref()).map_err(mismatch)?;
    if method == "tools/call"
        && let Some(mirrored) = name.and_then(|name| inner.server.shared.router.mirrors(&name))
    {
        headers::mirrors_arguments(headers, &mirrored, head.arguments.as_ref()).map_err(mismatch)?;
    }
    Ok(found)
}

/// Ends a request because the server is closed.
pub(super) fn end(outlet: &Outlet, peer: &Arc<Peer>) {
    // A listen stream has an answer, nothing else has.
    peer.end_streams();
    outlet.end(End::ServerClosed);
    peer.close("the server was closed");
}
