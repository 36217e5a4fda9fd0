//! The ways out of a session: each message goes on exactly one stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::headers::Accepts;
use super::outlet::{Answer, End, MAX_WAITING, Outlet, Wake};
use crate::budget::{Charge, Owner};
use crate::driver::Sink;
use crate::jsonrpc::{self, Decoded, ErrorObject, Id, Limits, Message, code};
use crate::protocol::{Outbound, Route, Sent};
#[cfg(feature = "redis")]
use crate::store::Change;
use crate::store::{Event, EventId, EventStore, MemoryEvents, Room, Stream};
use crate::transport::sse;

/// The most standalone streams of one session.
pub(super) const MAX_STREAMS: usize = 16;

/// Options of a session's streams that can be resumed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resumption {
    pub(super) room: Room,
    /// Time after which a client is to ask for the rest.
    pub(super) retry: Duration,
}

/// Routes of a session's messages: those that belong to a request go to its response, the rest to a standalone stream.
///
/// A request's stream whose reader has gone lives on until the answer, in the store; a standalone one leaves its unsent
/// messages to the next stream.
pub(super) struct Lanes {
    state: Mutex<LaneState>,
    max_queued: usize,
    resumption: Option<Resumption>,
    /// The owner of the bytes that it keeps.
    owner: Owner,
    /// Other processes that serve the session, too.
    #[cfg(feature = "redis")]
    elsewhere: std::sync::OnceLock<Elsewhere>,
}

/// Other processes that serve the session, which may have its standalone stream.
#[cfg(feature = "redis")]
pub(super) struct Elsewhere {
    /// Place up to which clients here know all changes.
    pub(super) place: Arc<std::sync::atomic::AtomicU64>,
    /// Place of the change that is being told from the log. 0: none is.
    pub(super) hearing: Arc<std::sync::atomic::AtomicU64>,
    /// Count of the times that clients here were told of a change at once, and its state when this one began to be told.
    pub(super) at_once: Arc<std::sync::atomic::AtomicU64>,
    pub(super) began: std::sync::atomic::AtomicU64,
    /// Place of the change of which is being told out of turn. 0: none is.
    pub(super) told: std::sync::atomic::AtomicU64,
    /// Place up to which the client was told out of turn.
    pub(super) ahead: std::sync::atomic::AtomicU64,
    /// Number of the newest stream here among those of all processes.
    pub(super) generation: Arc<std::sync::atomic::AtomicU64>,
    /// A stream has not caught up with the changes yet.
    pub(super) is_behind: std::sync::atomic::AtomicBool,
    /// Place up to which its client knows them. 0: the present one.
    pub(super) since: std::sync::atomic::AtomicU64,
    /// Another process sends what tells of changes.
    pub(super) is_silent: std::sync::atomic::AtomicBool,
    /// Sends a message to the process that has the stream.
    pub(super) forward: Box<dyn Fn(Bytes, Forward) + Send + Sync>,
    /// Messages that found no stream go out with the answer to a request here, from now on.
    pub(super) takes_up: Box<dyn Fn() + Send + Sync>,
    /// The last standalone stream here has ended; `true`: everything for it was read.
    pub(super) closed: Box<dyn Fn(bool) + Send + Sync>,
}

#[cfg(feature = "redis")]
impl Elsewhere {
    /// Its client is told of changes from now on.
    fn begins(&self) {
        use std::sync::atomic::Ordering::{Acquire, Release};
        self.began.store(self.at_once.load(Acquire), Release);
    }
}

/// Fate of a message that is sent to another process.
#[cfg(feature = "redis")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forward {
    /// Without a stream it waits for the next.
    pub(super) waits: bool,
    /// Without a stream it goes out with the answer to a request that takes it up.
    pub(super) up: bool,
}

#[derive(Default)]
struct LaneState {
    posts: Vec<Post>,
    streams: Vec<(u64, Arc<Outlet>)>,
    /// Messages that no stream was there for.
    queue: VecDeque<Bytes>,
    /// Charge for the messages in the queue.
    charge: Option<Charge>,
    /// Made for the first event that can be resumed from.
    store: Option<Box<dyn EventStore>>,
    /// Numbers streams and events alike, so that an event has a greater number than its stream.
    last: u64,
    /// The number before the first one that was used here.
    first: u64,
    /// The revision lets streams be closed early.
    primes: bool,
    ended: bool,
}

/// A request that waits for its answer.
struct Post {
    route: Route,
    /// Gone when its reader is.
    outlet: Option<Arc<Outlet>>,
    /// Its client takes a stream.
    events: bool,
    /// Its response is one.
    streamed: bool,
    /// Messages that wait for a stream go out with it.
    takes_up: bool,
    /// Requests that it answers.
    asked: Asked,
}

/// The requests in a body.
#[derive(Debug)]
pub(super) enum Asked {
    One(Id),
    Batch(Box<[Id]>),
    /// Something that is no message: its refusal comes at once.
    Nothing,
}

impl Asked {
    /// Number of the requests.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Batch(ids) => ids.len(),
            Self::Nothing => 0,
        }
    }

    /// The id of the one request that there is.
    pub(super) fn one(&self) -> Option<&Id> {
        match self {
            Self::One(id) => Some(id),
            Self::Batch(_) | Self::Nothing => None,
        }
    }

    pub(super) fn of(decoded: &Decoded) -> Self {
        let id = |message: &Message| match message {
            Message::Request { id, .. } => Some(id.clone()),
            _ => None,
        };
        match decoded {
            Decoded::One(message) => id(message).map_or(Self::Nothing, Self::One),
            Decoded::Batch(parts) => Self::Batch(parts.iter().flatten().filter_map(id).collect()),
        }
    }

    /// The answer of requests that are answered no more. They were taken, so that it is none to a session that is not
    /// known: a client that reads 404 may send them again, and they have run.
    fn ended(&self, why: &str) -> Option<Answer> {
        let error = ErrorObject { code: code::INTERNAL_ERROR, message: why.to_owned(), data: None };
        let text = match self {
            Self::One(id) => jsonrpc::encode_error(Some(id), &error, false),
            Self::Batch(ids) if !ids.is_empty() => {
                let all: Vec<_> = ids.iter().map(|id| jsonrpc::encode_error(Some(id), &error, false)).collect();
                Bytes::from([&b"["[..], &all.join(&b","[..]), b"]"].concat())
            }
            Self::Batch(_) | Self::Nothing => return None,
        };
        Some(Answer { id: None, text, code: Some(error.code), early: false })
    }
}

/// A stream that its client asks for again.
pub(super) enum Resumed {
    /// A request's.
    Request(Route, Arc<Outlet>),
    /// A standalone one.
    Standalone(u64, Arc<Outlet>),
}

/// Reason why a stream cannot be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The session never had such an event.
    Unknown,
    /// It is over, and nothing of what followed is kept.
    Over,
    /// The session has enough streams.
    TooMany,
    /// The process that had it is gone.
    #[cfg(feature = "redis")]
    Gone,
}

impl LaneState {
    fn store(&mut self, room: Room, owner: Owner) -> &mut dyn EventStore {
        &mut **self.store.get_or_insert_with(|| Box::new(MemoryEvents::new(room, owner)))
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn post(&mut self, route: Route) -> Option<&mut Post> {
        self.posts.iter_mut().find(|post| post.route == route)
    }

    fn take_post(&mut self, route: Route) -> Option<Post> {
        let at = self.posts.iter().position(|post| post.route == route)?;
        let post = self.posts.swap_remove(at);
        if self.posts.is_empty() {
            // An idle session is to cost little.
            self.posts = Vec::new();
        }
        Some(post)
    }

    fn take_stream(&mut self, key: u64, outlet: &Arc<Outlet>) -> bool {
        let Some(at) = self.streams.iter().position(|(k, o)| *k == key && Arc::ptr_eq(o, outlet)) else {
            return false;
        };
        self.streams.swap_remove(at);
        if self.streams.is_empty() {
            self.streams = Vec::new();
        }
        true
    }

    /// Returns the events after one, and those that its stream's last reader left.
    fn after(&self, id: EventId, left: VecDeque<Event>) -> Vec<Event> {
        let mut events = self.store.as_ref().map_or_else(Vec::new, |store| store.after(id));
        let number = |event: &Event| event.id.map_or(0, |id| id.number);
        events.extend(left.into_iter().filter(|event| number(event) > id.number));
        events.sort_by_key(number);
        events.dedup_by_key(|event| number(event));
        events
    }
}

impl Lanes {
    pub(super) fn new(max_queued: usize, resumption: Option<Resumption>, owner: Owner) -> Self {
        Self {
            state: Mutex::default(),
            max_queued,
            resumption,
            owner,
            #[cfg(feature = "redis")]
            elsewhere: std::sync::OnceLock::new(),
        }
    }

    /// Several processes serve the session. Numbers here follow `last`, and those of no other process are the same.
    #[cfg(feature = "redis")]
    pub(super) fn share(&self, last: u64, elsewhere: Elsewhere) {
        let mut state = self.lock();
        state.last = state.last.max(last);
        state.first = state.last;
        drop(state);
        let _ = self.elsewhere.set(elsewhere);
    }

    /// A stream begins, whose client knows all changes up to a place (0: the present one): none is told before it has caught
    /// up.
    #[cfg(feature = "redis")]
    pub(super) fn falls_behind(&self, since: u64) {
        if let Some(elsewhere) = self.elsewhere.get() {
            elsewhere.since.store(since, std::sync::atomic::Ordering::Release);
            elsewhere.is_behind.store(true, std::sync::atomic::Ordering::Release);
        }
    }

    /// The newest stream here has this number.
    #[cfg(feature = "redis")]
    pub(super) fn is_numbered(&self, generation: u64) {
        if let Some(elsewhere) = self.elsewhere.get() {
            elsewhere.generation.store(generation, std::sync::atomic::Ordering::Release);
        }
    }

    /// A stream was not opened after all: those that there are go on.
    #[cfg(feature = "redis")]
    pub(super) fn stays(&self) {
        if let Some(elsewhere) = self.elsewhere.get() {
            elsewhere.begins();
            elsewhere.is_behind.store(false, std::sync::atomic::Ordering::Release);
        }
    }

    /// Its client is to be told once more of what was told at once up to now: it may want to hear of more than was known.
    #[cfg(feature = "redis")]
    pub(super) fn begins(&self) {
        if let Some(elsewhere) = self.elsewhere.get() {
            elsewhere.begins();
        }
    }

    /// The stream has nothing to catch up with.
    #[cfg(feature = "redis")]
    pub(super) fn catches_up(&self) {
        if let Some(elsewhere) = self.elsewhere.get() {
            elsewhere.begins();
            elsewhere.is_silent.store(false, std::sync::atomic::Ordering::Release);
            elsewhere.is_behind.store(false, std::sync::atomic::Ordering::Release);
        }
    }

    /// Another process sends what tells of changes, or this one does.
    #[cfg(feature = "redis")]
    pub(super) fn silence(&self, is_silent: bool) {
        if let Some(elsewhere) = self.elsewhere.get() {
            if !is_silent && elsewhere.is_silent.load(std::sync::atomic::Ordering::Acquire) {
                elsewhere.begins();
            }
            elsewhere.is_silent.store(is_silent, std::sync::atomic::Ordering::Release);
        }
    }

    /// Tells the client of changes out of turn, up to a place: of each that `tell` is called for with its place. The caller
    /// holds the node's turn.
    #[cfg(feature = "redis")]
    pub(super) fn tell_ahead(&self, changes: Vec<(u64, Change)>, until: u64, tell: impl Fn(Change)) {
        use std::sync::atomic::Ordering::Release;
        let Some(elsewhere) = self.elsewhere.get() else { return };
        elsewhere.begins();
        elsewhere.is_silent.store(false, Release);
        elsewhere.is_behind.store(false, Release);
        for (place, change) in changes {
            elsewhere.told.store(place, Release);
            tell(change);
        }
        elsewhere.told.store(0, Release);
        elsewhere.ahead.fetch_max(until, Release);
    }

    /// Returns true if another process sends what tells of changes.
    #[cfg(feature = "redis")]
    pub(super) fn is_silent(&self) -> bool {
        self.elsewhere.get().is_some_and(|it| it.is_silent.load(std::sync::atomic::Ordering::Acquire))
    }

    /// A change is told already, or by another process, or will be when the stream has caught up.
    #[cfg(feature = "redis")]
    fn is_told(&self, text: &Bytes) -> bool {
        use std::sync::atomic::Ordering::Acquire;
        let Some(elsewhere) = self.elsewhere.get() else { return false };
        let is_told = elsewhere.is_silent.load(Acquire)
            || elsewhere.is_behind.load(Acquire)
            || (elsewhere.told.load(Acquire) == 0
                && (1..=elsewhere.ahead.load(Acquire)).contains(&elsewhere.hearing.load(Acquire))
                && text.windows(RESOURCE.len()).any(|part| part == RESOURCE));
        is_told && tells_of_change(text)
    }

    /// Returns the number of the newest stream here that has caught up, if there is a stream and none that has not.
    #[cfg(feature = "redis")]
    pub(super) fn settled(&self) -> Option<u64> {
        use std::sync::atomic::Ordering::Acquire;
        let elsewhere = self.elsewhere.get().filter(|_| !self.lock().streams.is_empty())?;
        (!elsewhere.is_behind.load(Acquire)).then(|| elsewhere.generation.load(Acquire))
    }

    /// Returns true if there is a standalone stream here.
    #[cfg(feature = "redis")]
    pub(super) fn has_stream(&self) -> bool {
        !self.lock().streams.is_empty()
    }

    /// Returns the count of the times that clients here were told of a change at once, as it was when this one began to be
    /// told.
    #[cfg(feature = "redis")]
    pub(super) fn began(&self) -> u64 {
        self.elsewhere.get().map_or(0, |elsewhere| elsewhere.began.load(std::sync::atomic::Ordering::Acquire))
    }

    /// Returns the number of the newest stream here that the store knows.
    #[cfg(feature = "redis")]
    pub(super) fn generation(&self) -> u64 {
        self.elsewhere.get().map_or(0, |elsewhere| elsewhere.generation.load(std::sync::atomic::Ordering::Acquire))
    }

    /// Returns the place up to which the client knows all changes once it has read an event of this stream.
    fn place(&self, stream: Stream) -> u64 {
        #[cfg(feature = "redis")]
        if let (Some(elsewhere), Stream::Standalone(_)) = (self.elsewhere.get(), stream) {
            let place = |of: &std::sync::atomic::AtomicU64| of.load(std::sync::atomic::Ordering::Acquire);
            if elsewhere.is_behind.load(std::sync::atomic::Ordering::Acquire) && place(&elsewhere.since) > 0 {
                return place(&elsewhere.since).max(place(&elsewhere.told));
            }
            return match place(&elsewhere.told) {
                0 => place(&elsewhere.place).max(place(&elsewhere.ahead)),
                told => told,
            };
        }
        let _ = stream;
        0
    }

    /// Forgets the events that are kept for a client that loses a stream. Says how many bytes that gives back.
    pub(super) fn forget(&self) -> usize {
        self.lock().store.as_mut().map_or(0, |store| store.forget())
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The revision that was negotiated begins its streams with an event without data, and closes them as it likes.
    pub(super) fn primes(&self, primes: bool) {
        self.lock().primes = primes;
    }

    /// Returns true if the session has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Returns true if somebody reads.
    pub(super) fn is_open(&self) -> bool {
        let state = self.lock();
        state.posts.iter().any(|post| post.outlet.is_some()) || !state.streams.is_empty()
    }

    /// The name of a message, which is kept from now on.
    fn keep(&self, state: &mut LaneState, stream: Stream, text: &Bytes) -> Event {
        let id = self.resumption.map(|resumption| {
            let id = EventId { stream, number: state.next(), place: self.place(stream) };
            state.store(resumption.room, self.owner).keep(id, text);
            id
        });
        Event { id, text: text.clone() }
    }

    // ---- requests' streams ------------------------------------------------------------------------------------

    /// A way for the answer to a request.
    pub(super) fn open(&self, outlet: Arc<Outlet>, accepts: Accepts, asked: Asked) -> Route {
        let mut state = self.lock();
        let route = Route(state.next());
        if state.ended {
            drop(state);
            outlet.end(End::SessionEnded);
        } else {
            let streamed = accepts.events && !accepts.json;
            let (outlet, events) = (Some(outlet), accepts.events);
            state.posts.push(Post { route, outlet, events, streamed, takes_up: false, asked });
        }
        route
    }

    /// The response is a stream, whatever comes.
    pub(super) fn begin_stream(&self, route: Route) {
        if let Some(post) = self.lock().post(route) {
            post.streamed = true;
        }
    }

    /// Nobody reads the response any more. A response that its client knows to be a stream goes on in the store.
    pub(super) fn leave(&self, route: Route, outlet: &Arc<Outlet>) {
        let mut state = self.lock();
        let Some(post) = state.post(route) else { return };
        if !post.outlet.as_ref().is_some_and(|own| Arc::ptr_eq(own, outlet)) {
            return;
        }
        post.outlet = None;
        if !post.streamed || self.resumption.is_none() {
            state.take_post(route);
        }
    }

    /// Ends a request's response before the answer; its client comes back for the rest.
    fn pause_post(&self, route: Route) {
        let mut state = self.lock();
        if !state.primes || self.resumption.is_none() {
            return;
        }
        let Some(post) = state.post(route).filter(|post| post.events) else { return };
        post.streamed = true;
        let outlet = post.outlet.take();
        drop(state);
        if let Some(outlet) = outlet {
            outlet.end(End::Paused);
        }
    }

    fn answer(&self, route: Route, text: Bytes, code: Option<i64>, early: bool) {
        let mut state = self.lock();
        let Some(post) = state.take_post(route) else { return };
        // Nobody reads it now, and it cannot be kept: whoever comes back for it is told so.
        let room = self.resumption.map_or(usize::MAX, |resumption| resumption.room.bytes);
        let text = if post.outlet.is_none() && text.len() > room { too_long(&text, room) } else { text };
        let id = if post.streamed { self.keep(&mut state, Stream::Request(route.0), &text).id } else { None };
        drop(state);
        if let Some(outlet) = post.outlet {
            outlet.answer(Answer { id, text, code, early });
        }
    }

    /// Something before the answer. `false`: there is no stream for it, and never will be.
    fn related(&self, route: Route, text: &Bytes, droppable: bool) -> bool {
        let mut state = self.lock();
        let Some(post) = state.post(route).filter(|post| post.events) else { return false };
        let outlet = post.outlet.clone();
        if droppable && outlet.as_ref().is_some_and(|outlet| !outlet.has_room()) {
            return true;
        }
        post.streamed = true;
        let event = self.keep(&mut state, Stream::Request(route.0), text);
        // Under the lock, so that events go out in the order of their numbers.
        let wake = outlet.and_then(|outlet| outlet.put(event, false));
        drop(state);
        wake.into_iter().for_each(Wake::wake);
        true
    }

    // ---- standalone streams -----------------------------------------------------------------------------------

    /// A standalone stream: gets what has waited, and from now on its share of what belongs to no request. `None` when
    /// the session has enough of them.
    pub(super) fn open_stream(&self) -> Option<(u64, Arc<Outlet>)> {
        let mut state = self.lock();
        let key = state.next();
        self.add_stream(&mut state, key, Vec::new()).map(|outlet| (key, outlet))
    }

    fn add_stream(&self, state: &mut LaneState, key: u64, replayed: Vec<Event>) -> Option<Arc<Outlet>> {
        if state.streams.len() >= MAX_STREAMS {
            return None;
        }
        let outlet = Arc::new(Outlet::new(self.max_queued, self.owner));
        for event in replayed {
            outlet.message(event, false);
        }
        if state.ended {
            outlet.end(End::SessionEnded);
            return Some(outlet);
        }
        state.charge = None;
        for text in std::mem::take(&mut state.queue) {
            let event = self.keep(state, Stream::Standalone(key), &text);
            outlet.message(event, false);
        }
        state.streams.push((key, outlet.clone()));
        Some(outlet)
    }

    /// The stream's reader is gone; what was not sent waits for the next.
    pub(super) fn close_stream(&self, key: u64, outlet: &Arc<Outlet>) {
        let mut state = self.lock();
        #[cfg(feature = "redis")]
        let is_newest = state.streams.last().is_some_and(|(newest, _)| *newest == key);
        if !state.take_stream(key, outlet) {
            return;
        }
        let (unread, wake) = outlet.retire(End::Moved);
        #[cfg(feature = "redis")]
        let unread = match self.elsewhere.get() {
            // A newer stream has caught up, or the next one will: from the log of changes, or from what is kept here.
            Some(elsewhere) if state.streams.is_empty() || !is_newest => {
                let is_change = |event: &Event| tells_of_change(&event.text);
                let (changes, others): (VecDeque<_>, _) = unread.into_iter().partition(is_change);
                if state.streams.is_empty() {
                    (elsewhere.closed)(changes.is_empty());
                }
                others
            }
            _ => unread,
        };
        if let Some(store) = &mut state.store {
            unread.iter().filter_map(|event| event.id).for_each(|id| store.take_back(id));
        }
        drop(state);
        wake.into_iter().for_each(Wake::wake);
        for event in unread {
            self.unrelated(&event.text, true);
        }
    }

    /// A message that belongs to no request, of another process or from the store. Without a stream it goes out with the
    /// answer to a request that takes it up, else to the store once more.
    #[cfg(feature = "redis")]
    pub(super) fn pass(&self, text: &Bytes) {
        let state = self.lock();
        let is_read = |post: &&Post| post.takes_up && post.events && post.outlet.is_some();
        let route = match self.reader(&state) {
            Some(_) => None,
            None => state.posts.iter().rev().find(is_read).map(|post| post.route),
        };
        let has_ended = state.ended;
        let is_alone = self.reader(&state).is_none();
        drop(state);
        if has_ended || route.is_some_and(|route| self.related(route, text, false)) {
            return;
        }
        match self.elsewhere.get() {
            Some(elsewhere) if is_alone && !tells_of_change(text) => {
                (elsewhere.forward)(text.clone(), Forward { waits: waits(text), up: false });
            }
            _ => self.unrelated(text, false),
        }
    }

    /// Returns true for an event that the session had here, in this copy of it.
    #[cfg(feature = "redis")]
    pub(super) fn knows(&self, id: EventId) -> bool {
        let state = self.lock();
        let (Stream::Request(stream) | Stream::Standalone(stream)) = id.stream;
        state.first < stream && id.number <= state.last
    }

    /// Returns the stream that gets what belongs to no request: the first, which is read for as long as its client has it.
    /// If a client may go to another process and come back, it is the newest: older ones may not be known to be gone.
    fn reader(&self, state: &LaneState) -> Option<(u64, Arc<Outlet>)> {
        #[cfg(feature = "redis")]
        if self.elsewhere.get().is_some() {
            return state.streams.last().cloned();
        }
        state.streams.first().cloned()
    }

    /// A message waits for the next stream, at the cost of the oldest ones.
    fn wait(&self, state: &mut LaneState, text: &Bytes) {
        let mut waiting = text.len() + state.queue.iter().map(Bytes::len).sum::<usize>();
        let mut charge = state.charge.take().unwrap_or_else(|| Charge::new(self.owner));
        while state.queue.len() >= self.max_queued || waiting > MAX_WAITING || !charge.fit(waiting) {
            let Some(oldest) = state.queue.pop_front() else { break };
            waiting -= oldest.len();
        }
        if charge.fit(waiting) {
            state.queue.push_back(text.clone());
        }
        state.charge = Some(charge);
    }

    /// A message that belongs to no request: exactly one stream gets it. The same notification twice is sent once while
    /// it waits.
    fn unrelated(&self, text: &Bytes, droppable: bool) {
        #[cfg(feature = "redis")]
        if self.is_told(text) {
            return;
        }
        loop {
            let mut state = self.lock();
            if state.ended {
                return;
            }
            let Some((key, outlet)) = self.reader(&state) else {
                #[cfg(feature = "redis")]
                if let Some(elsewhere) = self.elsewhere.get() {
                    drop(state);
                    if !tells_of_change(text) {
                        (elsewhere.forward)(text.clone(), Forward { waits: waits(text), up: true });
                    }
                    return;
                }
                if droppable && state.queue.contains(text) {
                    return;
                }
                return self.wait(&mut state, text);
            };
            if droppable && outlet.contains(text) {
                return;
            }
            if outlet.has_room() {
                let event = self.keep(&mut state, Stream::Standalone(key), text);
                let wake = outlet.put(event, false);
                drop(state);
                return wake.into_iter().for_each(Wake::wake);
            }
            drop(state);
            // Its reader is too slow; what waits for it goes elsewhere.
            outlet.end(End::TooSlow);
            self.close_stream(key, &outlet);
        }
    }

    // ---- resumption -------------------------------------------------------------------------------------------

    /// Returns the beginning of a stream: the first event to resume from, before any that has a message.
    pub(super) fn priming(&self, stream: Stream) -> Option<Bytes> {
        let resumption = self.resumption.filter(|_| self.lock().primes)?;
        let (Stream::Request(number) | Stream::Standalone(number)) = stream;
        Some(sse::priming(EventId { stream, number, place: self.place(stream) }, resumption.retry))
    }

    /// Returns true if streams can be resumed at all.
    pub(super) fn is_resumable(&self) -> bool {
        self.resumption.is_some()
    }

    /// The rest of a stream after the event `id`: what is kept of it, then whatever comes. A reader that it still has
    /// gets no more. A standalone stream of which nothing is kept goes on with what comes.
    pub(super) fn resume(&self, id: EventId) -> Result<Resumed, Refused> {
        let mut state = self.lock();
        let (Stream::Request(stream) | Stream::Standalone(stream)) = id.stream;
        if stream <= state.first || stream > id.number || id.number > state.last {
            return Err(Refused::Unknown);
        }
        let (resumed, wake) = match id.stream {
            Stream::Request(stream) => {
                let (route, outlet) = (Route(stream), Arc::new(Outlet::new(self.max_queued, self.owner)));
                let post = state.post(route);
                let is_over = post.is_none();
                let before = post.and_then(|post| {
                    post.streamed = true;
                    post.outlet.replace(outlet.clone())
                });
                let (left, wake) = before.map_or_else(Default::default, |before| before.retire(End::Moved));
                let events = state.after(id, left);
                if is_over && events.is_empty() {
                    return Err(Refused::Over);
                }
                for event in events {
                    outlet.message(event, false);
                }
                if is_over {
                    outlet.end(End::Answered);
                }
                (Resumed::Request(route, outlet), wake)
            }
            Stream::Standalone(key) => {
                let at = state.streams.iter().position(|(k, _)| *k == key);
                if at.is_none() && state.streams.len() >= MAX_STREAMS {
                    return Err(Refused::TooMany);
                }
                let before = at.map(|at| state.streams.swap_remove(at).1);
                let (left, wake) = before.map_or_else(Default::default, |before| before.retire(End::Moved));
                let events = state.after(id, left);
                let outlet = self.add_stream(&mut state, key, events).ok_or(Refused::TooMany)?;
                (Resumed::Standalone(key, outlet), wake)
            }
        };
        drop(state);
        wake.into_iter().for_each(Wake::wake);
        if let Resumed::Request(route, _) = &resumed {
            self.drain(*route);
        }
        Ok(resumed)
    }

    /// Sends what waits for a stream with a request that takes it up, if somebody reads that.
    fn drain(&self, route: Route) {
        let mut state = self.lock();
        if state.post(route).is_none_or(|post| !post.takes_up || !post.events || post.outlet.is_none()) {
            return;
        }
        let waiting = std::mem::take(&mut state.queue);
        drop(state);
        for text in waiting {
            if !self.related(route, &text, false) {
                self.unrelated(&text, false);
            }
        }
    }

    // ---- the end ----------------------------------------------------------------------------------------------

    /// Another process may have the standalone stream from now on, if this one had one. Its reader gets what is on its way.
    #[cfg(feature = "redis")]
    fn gives_up(&self, had_stream: bool) {
        if let Some(elsewhere) = self.elsewhere.get().filter(|_| had_stream) {
            (elsewhere.closed)(true);
        }
    }

    /// Ends the standalone streams; what runs goes on.
    pub(super) fn end_streams(&self, end: End) {
        let streams = std::mem::take(&mut self.lock().streams);
        #[cfg(feature = "redis")]
        self.gives_up(!streams.is_empty());
        streams.iter().for_each(|(_, outlet)| outlet.end(end));
    }

    /// Nothing more goes out. Requests that wait for their answers get an error instead.
    pub(super) fn end(&self, end: End) {
        let mut state = self.lock();
        state.ended = true;
        state.queue = VecDeque::new();
        state.store = None;
        let (posts, streams) = (std::mem::take(&mut state.posts), std::mem::take(&mut state.streams));
        drop(state);
        #[cfg(feature = "redis")]
        self.gives_up(!streams.is_empty());
        for post in &posts {
            let Some(outlet) = &post.outlet else { continue };
            match post.asked.ended(end.reason()) {
                Some(answer) => outlet.answer(answer),
                None => outlet.end(end),
            }
        }
        streams.iter().for_each(|(_, outlet)| outlet.end(end));
    }
}

/// In the notification that a resource has changed. Those of lists are gathered, and come after their turn.
#[cfg(feature = "redis")]
const RESOURCE: &[u8] = b"notifications/resources/updated";

#[cfg(feature = "redis")]
fn method_of(text: &Bytes) -> Option<std::borrow::Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        method: Option<std::borrow::Cow<'a, str>>,
    }
    serde_json::from_slice::<Named<'_>>(text).ok().and_then(|named| named.method)
}

/// Returns true for a notification that every process sends by itself.
#[cfg(feature = "redis")]
fn tells_of_change(text: &Bytes) -> bool {
    let method = method_of(text);
    method.is_some_and(|method| method == "notifications/resources/updated" || method.ends_with("/list_changed"))
}

/// Returns true for a message that waits for a stream: the status of a task is asked for, where there is none.
#[cfg(feature = "redis")]
fn waits(text: &Bytes) -> bool {
    method_of(text).is_none_or(|method| method != "notifications/tasks/status")
}

/// The error instead of an answer that is too long to be kept for its client.
pub(super) fn too_long(answer: &Bytes, room: usize) -> Bytes {
    let unlimited = Limits {
        max_message_bytes: usize::MAX,
        max_nesting: usize::MAX,
        max_decoded_bytes: usize::MAX,
        max_batch: usize::MAX,
    };
    let id = match jsonrpc::decode(answer, &unlimited) {
        Ok(Decoded::One(Message::Response { id, .. })) => Some(id),
        Ok(Decoded::One(Message::Error { id, .. })) => id,
        _ => None,
    };
    let message = format!(
        "the answer has {} bytes, and no more than {room} are kept for a stream that is resumed (max_event_bytes)",
        answer.len()
    );
    let error = ErrorObject { code: code::INTERNAL_ERROR, message, data: None };
    jsonrpc::encode_error(id.as_ref(), &error, true)
}

impl Sink for Lanes {
    fn send(&self, batch: Vec<Outbound>) {
        for Outbound { frame, related, route, sent, .. } in batch {
            let is_notification = sent == Sent::Notification;
            match (sent, route) {
                (Sent::Response(code), Some(route)) => self.answer(route, frame, code, related.is_none()),
                (Sent::Response(_), None) => {}
                (_, Some(route)) => {
                    // A notification without a reader is lost with the answer; a request has to reach somebody.
                    if !self.related(route, &frame, is_notification) && !is_notification {
                        self.unrelated(&frame, false);
                    }
                }
                (_, None) => self.unrelated(&frame, is_notification),
            }
        }
    }

    fn unanswered(&self, route: Route) {
        let post = self.lock().take_post(route);
        if let Some(outlet) = post.and_then(|post| post.outlet) {
            outlet.end(End::Cancelled);
        }
    }

    fn pause(&self, route: Route) {
        self.pause_post(route);
    }

    fn is_reachable(&self) -> bool {
        !self.lock().streams.is_empty()
    }

    #[cfg(feature = "redis")]
    fn passes_on(&self) -> bool {
        self.elsewhere.get().is_some()
    }

    fn is_read(&self, route: Route) -> bool {
        self.lock().post(route).is_some_and(|post| post.outlet.is_some())
    }

    fn take_up(&self, route: Route) {
        if let Some(post) = self.lock().post(route) {
            post.takes_up = true;
        }
        self.drain(route);
        #[cfg(feature = "redis")]
        if let Some(elsewhere) = self.elsewhere.get() {
            (elsewhere.takes_up)();
        }
    }

    fn close(&self) {
        self.end(End::SessionEnded);
    }
}

#[cfg(test)]
mod tests;
