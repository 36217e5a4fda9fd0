//! HTTP+SSE, the oldest transport: one stream to read from, one path to post to. The session lives as long as the stream.

#[cfg(feature = "redis")]
mod shared;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Response, StatusCode, Uri};

use super::body::Events;
use super::endpoint::{Inner, asks};
use super::exchange::{Exchange, Owner};
use super::headers::Accepts;
use super::holder::Holder;
use super::lanes::Asked;
use super::outlet::{End, Outlet};
use super::reply::{self, Refusal};
use super::sender::{Sender, is_same};
use super::sessions::{Session, millis};
use crate::call::Link;
use crate::driver::{Peer, Sink, now};
use crate::endpoint::http::Body;
use crate::error::{Error, ErrorKind};
use crate::idiom;
use crate::jsonrpc::{DecodeError, Decoded, Message};
use crate::model::Principal;
use crate::protocol::{Arrival, Connection, Input, Outbound, Route, Sent};
use crate::random::new_id;
use crate::store::Event;
use crate::transport::sse;

/// The member of the query that names the session.
const SESSION: &str = "session_id";

/// One client: its stream, and what runs on it.
pub(super) struct Pair {
    id: Arc<str>,
    pub(super) peer: Arc<Peer>,
    /// Its owner.
    principal: Option<Arc<Principal>>,
    /// The holder that it counts for.
    holder: Holder,
    outlet: Arc<Outlet>,
    /// Time until which its access token is good, the newest that came: milliseconds, or `u64::MAX` where nobody says
    /// so.
    until: AtomicU64,
    /// Its name among several processes, and what they have passed on.
    #[cfg(feature = "redis")]
    shared: Option<shared::Known>,
}

impl Pair {
    /// A message came with a token that is good for so long.
    fn goes_on(&self, patience: Option<Duration>) {
        let until = patience.map(|patience| millis(now().saturating_add(patience)));
        self.until.fetch_max(until.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the time that its token is still good.
    fn left(&self) -> Duration {
        Duration::from_millis(self.until.load(Ordering::Relaxed).saturating_sub(millis(now())))
    }
}

/// Everything that a session has to say goes out on its one stream.
struct OneWay(Arc<Outlet>);

impl Sink for OneWay {
    fn send(&self, batch: Vec<Outbound>) {
        for Outbound { frame, sent, .. } in batch {
            self.0.message(Event { id: None, text: frame }, sent == Sent::Notification);
        }
    }

    fn close(&self) {
        self.0.end(End::SessionEnded);
    }
}

/// The live sessions.
#[derive(Default)]
pub(super) struct Pairs {
    all: Mutex<HashMap<Arc<str>, Arc<Pair>>>,
    /// Those that other processes pass messages on to, by their names there.
    #[cfg(feature = "redis")]
    shared: shared::Shared,
}

impl Pairs {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Pair>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session called so. Another's is as good as none.
    pub(super) fn find(&self, id: &str, who: Option<&Arc<Principal>>) -> Option<Arc<Pair>> {
        self.lock().get(id).filter(|pair| is_same(pair.principal.as_ref(), who)).cloned()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// One of whoever has the most makes room, if that are more than `own` and it answers nothing. `false`: there is none.
    fn make_room(&self, own: usize) -> bool {
        let pairs = self.lock();
        let mut held = HashMap::<&Holder, usize>::new();
        pairs.values().for_each(|pair| *held.entry(&pair.holder).or_default() += 1);
        let idle = pairs.values().filter(|pair| pair.peer.in_flight() == 0);
        let most = idle.max_by_key(|pair| held[&pair.holder]).filter(|pair| held[&pair.holder] > own).cloned();
        drop(held);
        drop(pairs);
        if let Some(pair) = &most {
            self.lock().remove(&pair.id);
            pair.outlet.end(End::MadeRoom);
            pair.peer.close(&format!("its stream made room for another ({})", idiom::named("max_sessions")));
        }
        most.is_some()
    }

    fn held(&self, holder: &Holder) -> usize {
        self.lock().values().filter(|pair| pair.holder == *holder).count()
    }

    /// The requests that run in all sessions.
    pub(super) fn in_flight(&self) -> usize {
        let all: Vec<_> = self.lock().values().cloned().collect();
        all.iter().map(|pair| pair.peer.in_flight()).sum()
    }

    /// Ends those in which nothing is being answered.
    pub(super) fn end_waiting(&self, end: End, reason: &str) {
        let pairs: Vec<_> = self.lock().values().filter(|pair| pair.peer.in_flight() == 0).cloned().collect();
        for pair in pairs {
            pair.outlet.end(end);
            pair.peer.close(reason);
        }
    }

    /// Ends all of them.
    pub(super) fn end_all(&self, end: End, reason: &str) {
        let pairs = std::mem::take(&mut *self.lock());
        for pair in pairs.into_values() {
            pair.outlet.end(end);
            pair.peer.close(reason);
        }
    }
}

/// A stream of the oldest transport that is being read.
pub(super) struct Reading {
    pair: Arc<Pair>,
    inner: Arc<Inner>,
}

impl Reading {
    /// Its reader is gone, and the session with it.
    pub(super) fn end(&self) {
        let mut pairs = self.inner.pairs.lock();
        pairs.remove(&self.pair.id);
        if pairs.len() * 8 < pairs.capacity() {
            let room = pairs.len() * 2;
            pairs.shrink_to(room);
        }
        drop(pairs);
        #[cfg(feature = "redis")]
        self.inner.leave_pair(&self.pair);
        self.pair.peer.close("the client closed its stream");
    }

    /// Returns the time that its stream may still last.
    pub(super) fn left(&self) -> Duration {
        self.pair.left()
    }

    /// Returns the event that names the address to post to, which comes before anything else.
    pub(super) fn first(&self) -> bytes::Bytes {
        sse::endpoint(&format!("{}?{SESSION}={}", self.inner.message_path(), self.pair.id))
    }
}

impl Inner {
    /// Room for one more session of the newer transport: sessions of both count together.
    pub(super) fn room_for_session(&self, session: &Session) -> bool {
        let is_full = self.sessions.len() + self.pairs.len() >= self.options.max_sessions;
        let holder = session.holder();
        // Its own kind makes room first; that is the table's.
        !is_full || self.sessions.can_make_room(holder) || self.pairs.make_room(self.sessions.held(holder))
    }

    /// Room for one more session of this one.
    fn room_for_pair(&self, holder: &Holder) -> bool {
        let is_full = self.sessions.len() + self.pairs.len() >= self.options.max_sessions;
        !is_full || self.sessions.make_room(holder, now()) || self.pairs.make_room(self.pairs.held(holder) + 1)
    }
}

/// The session that a URI names.
pub(super) fn named(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|member| member.strip_prefix(SESSION)?.strip_prefix('='))
}

/// Opens a stream, and a session with it.
pub(super) async fn get(inner: &Arc<Inner>, sender: Sender) -> Response<Body> {
    if !Accepts::of(&sender.headers).events {
        return Refusal::new(StatusCode::NOT_ACCEPTABLE, "header Accept: expected text/event-stream").into();
    }
    let id = match new_id() {
        Ok(id) => id,
        Err(error) => return Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.message()).into(),
    };
    #[cfg(feature = "redis")]
    let (id, shared) = match inner.shares_pair(id, sender.principal.as_ref()).await {
        Ok(named) => named,
        Err(refusal) => return refusal.into(),
    };
    let holder = sender.holder();
    let outlet = Arc::new(Outlet::new(inner.max_queued, holder.owner()));
    let sink: Arc<dyn Sink> = Arc::new(OneWay(outlet.clone()));
    let (principal, patience) = (sender.principal.clone(), inner.patience(&sender));
    // The message belongs to the POST that brings it.
    let sender = Sender { extensions: None, origin: inner.origin.clone(), ..sender };
    let transport = sender.into_transport(Some(&id));
    #[cfg(feature = "redis")]
    let (shared, coming) = shared.map(|shared| shared.at(transport.clone(), inner)).unzip();
    let connection = Connection::new(inner.server.facts(), transport);
    let peer = Peer::new(connection, inner.limits, inner.server.shared.router.clone(), |_| sink);
    let link: Arc<dyn Link> = peer.clone();
    inner.server.shared.join(&link);
    let until = AtomicU64::new(0);
    let pair = Arc::new(Pair {
        id: id.clone(),
        peer,
        principal,
        holder: holder.clone(),
        outlet: outlet.clone(),
        until,
        #[cfg(feature = "redis")]
        shared,
    });
    pair.goes_on(patience);
    if !inner.room_for_pair(&holder) {
        let message = format!("there are {} sessions already (max_sessions)", inner.options.max_sessions);
        return Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).into();
    }
    inner.pairs.lock().insert(id, pair.clone());
    #[cfg(feature = "redis")]
    inner.pairs.shared.add(&pair, coming);
    inner.keep();
    let gone = Arc::downgrade(&pair);
    let reading = Reading { pair, inner: inner.clone() };
    let end = move || {
        if let Some(pair) = gone.upgrade() {
            pair.outlet.end(End::MadeRoom);
            pair.peer.close(&format!("its stream made room for another ({})", idiom::named("max_connections")));
        }
    };
    let ticket = match inner.stream_ticket(holder, end) {
        Ok(ticket) => ticket,
        Err(refusal) => {
            reading.end();
            return refusal.into();
        }
    };
    let owner = Owner::Pair { reading, _ticket: ticket };
    let mut exchange = Exchange::new(outlet, owner);
    exchange.until = patience;
    if inner.is_closed() {
        exchange.outlet().end(End::ServerClosed);
    }
    reply::events(Events::new(exchange, None, inner.keep_alive))
}

/// Takes a message; what it is answered with goes out on the stream.
pub(super) fn post(inner: &Inner, session: &str, sender: Sender, decoded: Decoded) -> Response<Body> {
    let id = match &decoded {
        Decoded::One(Message::Request { id, .. }) => Some(id.clone()),
        _ => None,
    };
    let Some(pair) = inner.pairs.find(session, sender.principal.as_ref()) else {
        return unknown().with_id(id.as_ref()).into();
    };
    if asks(&decoded) && (pair.peer.is_full() || pair.outlet.len() >= inner.max_in_flight) {
        let max = inner.max_in_flight;
        let message = format!("more than {max} requests in flight, or answers unread, in this session (max_in_flight)");
        return Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).with_id(id.as_ref()).into();
    }
    let Some(room) = inner.rooms(sender.holder(), Asked::of(&decoded).count()) else {
        return inner.no_room().with_id(id.as_ref()).into();
    };
    let input = match decoded {
        Decoded::One(message) => Input::Received(message),
        Decoded::Batch(parts) => Input::Batch(parts),
    };
    pair.goes_on(inner.patience(&sender));
    let mut transport = sender.into_transport(Some(&pair.id));
    Arc::make_mut(&mut transport).room = Some(room);
    if let Some(origin) = &transport.origin {
        origin.outlast();
    }
    pair.peer.arrived(Arrival { route: Route(0), transport, head: None }, input);
    reply::empty(StatusCode::ACCEPTED)
}

/// Refuses what is no message. Was it meant to answer a question of the session's, nothing else will come for that.
pub(super) fn garbled(inner: &Inner, session: &str, sender: &Sender, error: &DecodeError) -> Refusal {
    let Some(pair) = inner.pairs.find(session, sender.principal.as_ref()) else { return unknown() };
    for question in error.answers.iter().chain(&error.answers_too) {
        let why = format!("the answer is no message: {}", error.told());
        pair.peer.handle(Input::Undelivered(question.clone(), Error::new(ErrorKind::PeerMisbehaved, why)));
    }
    Refusal::undecodable(error, None)
}

fn unknown() -> Refusal {
    let message = "session not found: it ended with its stream, or never was; open the stream again";
    Refusal::new(StatusCode::NOT_FOUND, message)
}
