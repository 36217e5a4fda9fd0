//! Sessions: opened by `initialize`, named by a header on everything that follows, ended by DELETE.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::body::Events;
use super::endpoint::Inner;
use super::exchange::{Exchange, Owner};
use super::headers::{self, Accepts, LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID, Single};
use super::lanes::{Asked, Lanes, Refused, Resumed};
use super::outlet::{Answer, End, Next, Outlet};
use super::reply::{self, Refusal};
use super::sender::Sender;
use super::sessions::Session;
use super::tickets::Ticket;
#[cfg(feature = "redis")]
use super::{feeds, shared};
use super::{heavy, stateless};
use crate::call::Link;
use crate::driver::{Peer, Sink, now};
use crate::endpoint::http::Body;
use crate::error::Error;
use crate::jsonrpc::{DecodeError, Decoded, Id, Message, code};
use crate::model::Principal;
use crate::protocol::revision::{Era, Revision, modern};
use crate::protocol::{Arrival, Connection, Head, Input, Route, Transport};
use crate::random::new_id;
use crate::store::{EventId, Stream};

/// Takes a message, or answers a request.
pub(super) async fn post(
    inner: &Arc<Inner>,
    sender: Sender,
    decoded: Decoded,
    head: Option<Box<Head>>,
    accepts: Accepts,
) -> Response<Body> {
    if inner.options.stateless && inner.has_sessions() {
        return stateless::post(inner, sender, decoded, head, accepts).await;
    }
    let id = match &decoded {
        Decoded::One(Message::Request { id, .. }) => Some(id.clone()),
        _ => None,
    };
    // Another `initialize` in a session negotiates anew.
    let opens = matches!(&decoded, Decoded::One(message) if initializes(message));
    let session = match Single::of(&sender.headers, &SESSION_ID) {
        // Where there are no sessions the header is nothing, and only `initialize` comes here, to be refused.
        _ if !inner.has_sessions() => return open(inner, sender, decoded, head, accepts).await,
        Single::Absent => match &decoded {
            Decoded::One(Message::Request { method, .. }) if method == "initialize" => {
                return open(inner, sender, decoded, head, accepts).await;
            }
            Decoded::Batch(parts) if parts.iter().any(is_initialize) => {
                let error = Error::rpc(code::INVALID_REQUEST, "\"initialize\" must not be part of a batch");
                return Refusal::bad(None, &error).into();
            }
            _ => Err(missing()),
        },
        header => match session(inner, header, sender.principal.as_ref()) {
            // Some clients keep the header of a session that is gone.
            Err(_) if opens && header.text().is_some() => return open(inner, sender, decoded, head, accepts).await,
            found => found,
        },
    };
    let checked = session.and_then(|s| if opens { Ok(s) } else { check_version(inner, &sender.headers).map(|()| s) });
    let session = match checked {
        Ok(session) => session,
        Err(refusal) => return refusal.with_id(id.as_ref()).into(),
    };
    #[cfg(feature = "redis")]
    let decoded = match inner.passed_on(&session, decoded).await {
        Ok(Some(decoded)) => decoded,
        Ok(None) => return reply::empty(StatusCode::ACCEPTED),
        Err(refusal) => return refusal.into(),
    };
    let asks = match &decoded {
        Decoded::One(message) => matches!(message, Message::Request { .. }),
        Decoded::Batch(parts) => {
            !session.peer.takes_batches() || parts.iter().any(|p| matches!(p, Ok(Message::Request { .. }) | Err(_)))
        }
    };
    #[cfg(feature = "redis")]
    let again = opens.then(|| params_of(&decoded)).flatten();
    let asked = Asked::of(&decoded);
    let input = match decoded {
        Decoded::One(message) => Input::Received(message),
        Decoded::Batch(parts) => Input::Batch(parts),
    };
    if !asks {
        session.peer.handle(input);
        return reply::empty(StatusCode::ACCEPTED);
    }
    if session.peer.is_full() {
        let message = format!("more than {} requests in flight in this session (max_in_flight)", inner.max_in_flight);
        return Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).with_id(id.as_ref()).into();
    }
    #[cfg(feature = "redis")]
    if again.is_some() {
        let id = session.id.clone();
        let response = ask(inner, session, sender, (input, asked), head, accepts).await;
        inner.tell(&id, again).await;
        return response;
    }
    ask(inner, session, sender, (input, asked), head, accepts).await
}

/// The parameters of `initialize`, for other processes.
#[cfg(feature = "redis")]
fn params_of(decoded: &Decoded) -> Option<String> {
    match decoded {
        Decoded::One(Message::Request { params: Some(params), .. }) => Some(Connection::kept(params)),
        _ => None,
    }
}

/// Refuses an answer to a question of the session's that is no message: the question has failed.
pub(super) async fn garbled(
    inner: &Arc<Inner>,
    sender: Sender,
    error: DecodeError,
    accepts: Accepts,
) -> Response<Body> {
    let session = session(inner, Single::of(&sender.headers, &SESSION_ID), sender.principal.as_ref());
    match session.and_then(|s| check_version(inner, &sender.headers).map(|()| s)) {
        Ok(session) => {
            #[cfg(feature = "redis")]
            if let Err(refusal) = inner.fails_elsewhere(&session, &error).await {
                return refusal.into();
            }
            ask(inner, session, sender, (Input::Invalid(error), Asked::Nothing), None, accepts).await
        }
        Err(_) => Refusal::undecodable(&error, None).into(),
    }
}

fn is_initialize(part: &Result<Message, DecodeError>) -> bool {
    part.as_ref().is_ok_and(initializes)
}

fn initializes(message: &Message) -> bool {
    matches!(message, Message::Request { method, .. } if method == "initialize")
}

async fn ask(
    inner: &Arc<Inner>,
    session: Arc<Session>,
    sender: Sender,
    (input, asked): (Input, Asked),
    head: Option<Box<Head>>,
    accepts: Accepts,
) -> Response<Body> {
    let holder = sender.holder();
    let Some(room) = inner.rooms(holder.clone(), asked.count()) else {
        return inner.no_room().with_id(asked.one()).into();
    };
    let outlet = Arc::new(Outlet::new(if accepts.events { inner.max_queued } else { 0 }, holder.owner()));
    let route = session.lanes().open(outlet.clone(), accepts, asked);
    let mut transport = sender.into_transport_of(Some(&session.id), session.key());
    Arc::make_mut(&mut transport).room = Some(room);
    let exchange = Exchange::new(outlet, Owner::Request { session: session.clone(), route });
    let opens = matches!(&input, Input::Received(message) if initializes(message));
    let size = match &input {
        Input::Received(Message::Request { params: Some(params), .. }) => params.get().len(),
        _ => 0,
    };
    let turn = heavy::turn(size, || holder).await;
    heavy::at_length(size, || session.peer.arrived(Arrival { route, transport, head }, input));
    drop(turn);
    if opens {
        session.lanes().primes(session.revision().rules().priming_event);
    }
    drop(session);
    reply::answered(exchange, accepts, inner.keep_alive, status).await
}

/// A message that is none is a bad request; an error in a method's own terms is an ordinary answer.
pub(super) fn status(answer: &Answer) -> StatusCode {
    match answer.code {
        Some(code::PARSE_ERROR | code::INVALID_REQUEST) if answer.early => StatusCode::BAD_REQUEST,
        Some(modern::UNSUPPORTED_VERSION) => StatusCode::BAD_REQUEST,
        Some(code::UNAVAILABLE) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    }
}

/// The most that is kept of the parameters of `initialize`, in bytes.
const MAX_KEPT: usize = 64 << 10;

/// Answers `initialize`; when it succeeds there is a new session.
async fn open(
    inner: &Arc<Inner>,
    sender: Sender,
    decoded: Decoded,
    head: Option<Box<Head>>,
    accepts: Accepts,
) -> Response<Body> {
    let Decoded::One(message) = decoded else {
        return missing().into();
    };
    let (request_id, length): (Option<Id>, usize) = match &message {
        Message::Request { id, params, .. } => {
            (Some(id.clone()), params.as_ref().map_or(0, |params| params.get().len()))
        }
        _ => (None, 0),
    };
    #[cfg(feature = "redis")]
    let is_shared = crate::driver::Node::of(&inner.server).is_some();
    #[cfg(not(feature = "redis"))]
    let is_shared = false;
    // A session that goes on nowhere.
    if inner.is_draining() && !is_shared {
        return super::ending::refused(request_id.as_ref());
    }
    let id = match new_id() {
        Ok(id) => id,
        Err(error) => return Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.message()).into(),
    };
    let (lanes, at_rest) = lanes_of(inner, &id, &sender);
    let sink: Arc<dyn Sink> = lanes.clone();
    let connection = Connection::new(inner.server.facts(), Arc::new(at_rest));
    #[cfg(feature = "redis")]
    let (connection, sharing) = match inner.opens_shared(&id, &sender, &lanes, connection, &message) {
        Ok(shared) => shared,
        Err(refusal) => return refusal.with_id(request_id.as_ref()).into(),
    };
    let peer = Peer::new(connection, inner.limits, inner.server.shared.router.clone(), |_| sink);
    let link: Arc<dyn Link> = peer.clone();
    inner.server.shared.join(&link);
    let outlet = Arc::new(Outlet::new(0, sender.holder().owner()));
    let route: Route = lanes.open(outlet.clone(), Accepts { json: true, events: false }, Asked::Nothing);
    let owner = (sender.principal.clone(), sender.holder());
    let transport = sender.into_transport(Some(&id));
    peer.arrived(Arrival { route, transport, head }, Input::Received(message));
    let Some(Next::Answer(answer)) = outlet.next() else {
        return Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "\"initialize\" was not answered").into();
    };
    let opened = peer.revision();
    let mut response = if accepts.json { reply::json(status(&answer), answer.text) } else { reply::event(answer.text) };
    let Some(revision) = opened else { return response };
    lanes.primes(revision.rules().priming_event);
    peer.keeps(length.min(MAX_KEPT));
    let session = Arc::new(Session::new(id, revision, peer, owner, lanes));
    #[cfg(feature = "redis")]
    let node = sharing.map(|(node, sharing)| {
        let _ = session.shared.set(sharing);
        (node, session.clone())
    });
    let Ok(header) = HeaderValue::from_str(&session.id) else {
        return response;
    };
    if !inner.room_for_session(&session) || inner.sessions.insert(session, inner.pairs.len(), now()).is_err() {
        let message = format!(
            "no session of {} that could make room for another is idle (max_sessions)",
            inner.options.max_sessions
        );
        return Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).with_id(request_id.as_ref()).into();
    }
    inner.keep();
    // Last, so that a session without room here leaves nothing in the store.
    #[cfg(feature = "redis")]
    if let Some((node, session)) = node
        && let Err(refusal) = inner.begin_shared(&node, &session).await
    {
        return refusal.with_id(request_id.as_ref()).into();
    }
    response.headers_mut().insert(SESSION_ID, header);
    response
}

/// The ways out of a session, and the facts of the way in.
pub(super) fn lanes_of(inner: &Inner, id: &Arc<str>, sender: &Sender) -> (Arc<Lanes>, Transport) {
    let lanes = Arc::new(Lanes::new(inner.max_queued, inner.resumption, sender.holder().owner()));
    let mut at_rest = Transport::new("http");
    at_rest.session_id = Some(id.clone());
    at_rest.principal.clone_from(&sender.principal);
    at_rest.share = sender.holder().share();
    at_rest.origin.clone_from(&inner.origin);
    (lanes, at_rest)
}

fn missing() -> Refusal {
    let message = "header Mcp-Session-Id: missing; \"initialize\" starts a session and its answer names it";
    Refusal::new(StatusCode::BAD_REQUEST, message)
}

fn session(inner: &Inner, header: Single<'_>, who: Option<&Arc<Principal>>) -> Result<Arc<Session>, Refusal> {
    match header {
        Single::Absent => Err(missing()),
        Single::Unreadable => {
            Err(Refusal::new(StatusCode::BAD_REQUEST, "header Mcp-Session-Id: expected one value of visible ASCII"))
        }
        Single::Text(id) => inner.sessions.find(id, who, now()).ok_or_else(|| {
            Refusal::new(
                StatusCode::NOT_FOUND,
                "session not found: it has ended or never was; send \"initialize\" again",
            )
        }),
    }
}

/// The revision that the version header names, if there is one.
pub(super) fn named_version(headers: &HeaderMap) -> Result<Option<Revision>, Refusal> {
    let bad = |message: String| Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    match Single::of(headers, &PROTOCOL_VERSION) {
        Single::Absent | Single::Text("") => Ok(None),
        Single::Text(version) => Revision::parse(version).map(Some).map_or_else(
            || {
                let served: Vec<_> = Revision::of_era(Era::Legacy).map(Revision::as_str).collect();
                bad(format!(
                    "header MCP-Protocol-Version: {} is not supported, expected one of {}",
                    headers::quoted(version),
                    served.join(", ")
                ))
            },
            Ok,
        ),
        Single::Unreadable => bad("header MCP-Protocol-Version: expected one value of visible ASCII".into()),
    }
}

/// The version header of a session's request may be missing, and may name another revision that is served: gateways and
/// clients send one for all. The session knows its own.
fn check_version(inner: &Inner, headers: &HeaderMap) -> Result<(), Refusal> {
    match named_version(headers)? {
        Some(named) if !inner.server.facts().revisions.contains(&named) => {
            let why = format!("header MCP-Protocol-Version: {named} is not served here");
            Err(Refusal::new(StatusCode::BAD_REQUEST, why))
        }
        _ => Ok(()),
    }
}

/// Returns true if a GET asks for the rest of an answer, which is no new stream.
pub(super) fn resumes_an_answer(headers: &HeaderMap) -> bool {
    let last = Single::of(headers, &LAST_EVENT_ID);
    last.text().and_then(EventId::parse).is_some_and(|id| matches!(id.stream, Stream::Request(_)))
}

/// Opens a standalone stream of a session.
#[cfg_attr(not(feature = "redis"), expect(clippy::unused_async, reason = "of streams of other processes"))]
pub(super) async fn get(inner: &Arc<Inner>, sender: &Sender) -> Response<Body> {
    let headers = &sender.headers;
    if !Accepts::of(headers).events {
        let message = "header Accept: expected text/event-stream";
        return Refusal::new(StatusCode::NOT_ACCEPTABLE, message).into();
    }
    let session = session(inner, Single::of(headers, &SESSION_ID), sender.principal.as_ref())
        .and_then(|s| check_version(inner, headers).map(|()| s));
    let session = match session {
        Ok(session) => session,
        Err(refusal) => return refusal.into(),
    };
    #[cfg(feature = "redis")]
    let of = (!shared::takes_up_an_answer(&session, headers)).then(|| session.clone());
    #[cfg(feature = "redis")]
    if let Some(session) = &of {
        // Changes are told once the stream has caught up with them.
        session.lanes().falls_behind(shared::last_place(session, headers));
    }
    let exchange = match Single::of(headers, &LAST_EVENT_ID) {
        // An empty one is what a stream without ids leaves behind.
        Single::Absent | Single::Text("") => None,
        _ if !session.lanes().is_resumable() => None,
        #[cfg(feature = "redis")]
        header if header.text().and_then(EventId::parse).is_some_and(|id| shared::is_of_another(&session, id)) => None,
        #[cfg(feature = "redis")]
        header => {
            match header.text().and_then(EventId::parse).filter(|id| shared::is_answered_elsewhere(&session, *id)) {
                Some(id) => Some(feeds::take_up(inner, sender, &session, id).await),
                None => Some(resume(inner, sender, &session, header.text())),
            }
        }
        #[cfg(not(feature = "redis"))]
        header => Some(resume(inner, sender, &session, header.text())),
    };
    let exchange = exchange.unwrap_or_else(|| {
        let (key, outlet) = session.lanes().open_stream().ok_or_else(too_many)?;
        let ticket = ticket(inner, sender, &session, key, &outlet)?;
        Ok(Exchange::new(outlet, Owner::Stream { session, key, _ticket: ticket }))
    });
    match exchange {
        Ok(mut exchange) => {
            exchange.until = inner.patience(sender);
            reply::events(Events::new(exchange, None, inner.keep_alive))
        }
        Err(refusal) => {
            #[cfg(feature = "redis")]
            of.iter().for_each(|session| session.lanes().stays());
            refusal.into()
        }
    }
}

/// Room for a standalone stream. One that makes room for another leaves what it has not sent to the next.
fn ticket(
    inner: &Arc<Inner>,
    sender: &Sender,
    session: &Arc<Session>,
    key: u64,
    outlet: &Arc<Outlet>,
) -> Result<Ticket, Refusal> {
    let (of, stream) = (Arc::downgrade(session), outlet.clone());
    let end = move || {
        if let Some(session) = of.upgrade() {
            stream.end(End::MadeRoom);
            session.lanes().close_stream(key, &stream);
        }
    };
    inner.stream_ticket(sender.holder(), end).inspect_err(|_| session.lanes().close_stream(key, outlet))
}

pub(super) fn too_many() -> Refusal {
    Refusal::new(StatusCode::CONFLICT, "this session has too many streams open")
}

/// Takes up a stream after the event that its client has seen last. Not found would say that the session is gone.
fn resume(
    inner: &Arc<Inner>,
    sender: &Sender,
    session: &Arc<Session>,
    last: Option<&str>,
) -> Result<Exchange, Refusal> {
    let id = last.and_then(EventId::parse);
    let resumed = id.map_or(Err(Refused::Unknown), |id| session.lanes().resume(id));
    let session = session.clone();
    match resumed {
        Ok(Resumed::Request(route, outlet)) => Ok(Exchange::resumed(outlet, Owner::Request { session, route })),
        Ok(Resumed::Standalone(key, outlet)) => {
            let ticket = ticket(inner, sender, &session, key, &outlet)?;
            Ok(Exchange::resumed(outlet, Owner::Stream { session, key, _ticket: ticket }))
        }
        Err(why) => Err(not_resumed(why, last.unwrap_or_default())),
    }
}

/// The refusal of a stream that cannot be resumed after this event.
pub(super) fn not_resumed(why: Refused, last: &str) -> Refusal {
    let why = match why {
        Refused::TooMany => return too_many(),
        Refused::Over => "its stream is over and nothing that followed is kept (max_events, max_event_bytes)",
        Refused::Unknown => "this session has sent no such event",
        #[cfg(feature = "redis")]
        Refused::Gone => "the process that worked on its request is gone, and the answer is lost with it",
    };
    let shown = headers::quoted(last);
    Refusal::new(StatusCode::BAD_REQUEST, format!("header Last-Event-ID: {shown}: {why}"))
}

/// Ends a session.
pub(super) fn delete(inner: &Inner, sender: &Sender) -> Response<Body> {
    let headers = &sender.headers;
    let session = session(inner, Single::of(headers, &SESSION_ID), sender.principal.as_ref())
        .and_then(|s| check_version(inner, headers).map(|()| s));
    match session {
        Ok(session) => {
            inner.sessions.remove(&session.id);
            session.end(End::SessionEnded, "the client ended the session");
            reply::empty(StatusCode::NO_CONTENT)
        }
        Err(refusal) => refusal.into(),
    }
}
