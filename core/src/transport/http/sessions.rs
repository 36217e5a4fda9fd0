use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;

use super::outlet::{Answer, End, Outlet};
use crate::driver::{Peer, Sink};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::revision::Revision;
use crate::protocol::{Outbound, Route, Sent};

/// A legacy client's session.
pub(super) struct Session {
    pub(super) id: Arc<str>,
    pub(super) revision: Revision,
    pub(super) peer: Arc<Peer>,
    lanes: Arc<Lanes>,
    /// Its place in the order of last use, written under the table's lock.
    place: AtomicU64,
    /// When it was last in use.
    used: AtomicU64,
}

impl Session {
    pub(super) fn new(id: Arc<str>, revision: Revision, peer: Arc<Peer>, lanes: Arc<Lanes>) -> Self {
        Self { id, revision, peer, lanes, place: AtomicU64::new(0), used: AtomicU64::new(0) }
    }

    pub(super) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Whether somebody waits for something of it. A call whose client has hung up goes on, because a broken
    /// connection is no cancellation, but it does not keep the session.
    fn is_busy(&self) -> bool {
        self.lanes.is_open()
    }

    /// A request or a stream of it has just ended: from now on it may be idle.
    pub(super) fn left(&self, now: Duration) {
        self.used.store(millis(now), Ordering::Relaxed);
    }

    /// Ends it: its streams end, its running calls are cancelled.
    pub(super) fn end(&self, end: End, reason: &str) {
        self.lanes.end(end);
        self.peer.close(reason);
    }
}

const IDLE: &str = "the session was idle for too long (session_idle_timeout)";

/// An id that cannot be guessed: 144 random bits as visible ASCII.
///
/// # Errors
/// When the operating system has no randomness.
pub(super) fn new_id() -> Result<Arc<str>> {
    let mut random = [0u8; 18];
    getrandom::fill(&mut random).map_err(|e| Error::new(ErrorKind::Transport, format!("random numbers: {e}")))?;
    Ok(URL_SAFE_NO_PAD.encode(random).into())
}

/// The live sessions, bounded in number and in idleness.
pub(super) struct Sessions {
    table: Mutex<Table>,
    max: usize,
    idle: Duration,
}

#[derive(Default)]
struct Table {
    by_id: HashMap<Arc<str>, Arc<Session>>,
    /// The one unused for longest comes first.
    by_use: BTreeMap<u64, Arc<Session>>,
    last: u64,
}

impl Table {
    fn touch(&mut self, session: &Arc<Session>, now: Duration) {
        session.used.store(millis(now), Ordering::Relaxed);
        let place = session.place.load(Ordering::Relaxed);
        if place == self.last {
            return;
        }
        if let Some(entry) = self.by_use.remove(&place) {
            self.last += 1;
            session.place.store(self.last, Ordering::Relaxed);
            self.by_use.insert(self.last, entry);
        }
    }

    fn insert(&mut self, session: Arc<Session>, now: Duration) {
        self.last += 1;
        session.place.store(self.last, Ordering::Relaxed);
        session.used.store(millis(now), Ordering::Relaxed);
        self.by_use.insert(self.last, session.clone());
        self.by_id.insert(session.id.clone(), session);
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.by_id.remove(id)?;
        self.by_use.remove(&session.place.load(Ordering::Relaxed));
        if self.by_id.len() * 8 < self.by_id.capacity() {
            // Room for a crowd that has left.
            self.by_id.shrink_to(self.by_id.len() * 2);
        }
        Some(session)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Sessions {
    pub(super) fn new(max: usize, idle: Duration) -> Self {
        Self { table: Mutex::default(), max, idle }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.lock().by_id.len()
    }

    /// The requests that run in all sessions.
    pub(super) fn in_flight(&self) -> usize {
        let all: Vec<_> = self.lock().by_id.values().cloned().collect();
        all.iter().map(|s| s.peer.in_flight()).sum()
    }

    /// How long sessions may be idle.
    pub(super) fn idle(&self) -> Duration {
        self.idle
    }

    /// The session called `id`, which is in use from now on.
    pub(super) fn find(&self, id: &str, now: Duration) -> Option<Arc<Session>> {
        let mut table = self.lock();
        let session = table.by_id.get(id)?.clone();
        if !self.is_expired(&session, now) {
            table.touch(&session, now);
            return Some(session);
        }
        table.remove(id);
        drop(table);
        session.end(End::SessionEnded, IDLE);
        None
    }

    fn is_expired(&self, session: &Session, now: Duration) -> bool {
        session.used.load(Ordering::Relaxed).saturating_add(millis(self.idle)) <= millis(now) && !session.is_busy()
    }

    /// Adds a session. When there are too many, the one idle for longest ends.
    ///
    /// # Errors
    /// Gives the session back when every other is busy.
    pub(super) fn insert(&self, session: Arc<Session>, now: Duration) -> Result<(), Arc<Session>> {
        let mut table = self.lock();
        let mut evicted = None;
        if table.by_id.len() >= self.max {
            let Some(id) = table.by_use.values().find(|s| !s.is_busy()).map(|s| s.id.clone()) else {
                return Err(session);
            };
            evicted = table.remove(&id);
        }
        table.insert(session, now);
        drop(table);
        if let Some(evicted) = evicted {
            evicted.end(End::SessionEnded, "the session made room for another (max_sessions)");
        }
        Ok(())
    }

    /// Takes a session out of the table. The caller ends it.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().remove(id)
    }

    /// Ends what was idle for too long.
    pub(super) fn sweep(&self, now: Duration) {
        let mut table = self.lock();
        let old = |s: &&Arc<Session>| s.used.load(Ordering::Relaxed).saturating_add(millis(self.idle)) <= millis(now);
        let old: Vec<_> = table.by_use.values().filter(old).cloned().collect();
        let (busy, expired): (Vec<_>, Vec<_>) = old.into_iter().partition(|s| s.is_busy());
        busy.iter().for_each(|session| table.touch(session, now));
        expired.iter().for_each(|session| drop(table.remove(&session.id)));
        drop(table);
        expired.iter().for_each(|session| session.end(End::SessionEnded, IDLE));
    }

    /// Ends all of them.
    pub(super) fn end_all(&self, end: End, reason: &str) {
        let table = std::mem::take(&mut *self.lock());
        for session in table.by_id.into_values() {
            session.end(end, reason);
        }
    }
}

/// The most standalone streams of one session.
const MAX_STREAMS: usize = 16;

/// Where a session's messages go: each answer to its request's response, the rest to a standalone stream.
pub(super) struct Lanes {
    state: Mutex<LaneState>,
    max_queued: usize,
}

#[derive(Default)]
struct LaneState {
    posts: Vec<(Route, Arc<Outlet>)>,
    streams: Vec<(u64, Arc<Outlet>)>,
    /// What no stream was there for.
    queue: VecDeque<Bytes>,
    last: u64,
    ended: bool,
}

impl Lanes {
    pub(super) fn new(max_queued: usize) -> Self {
        Self { state: Mutex::default(), max_queued }
    }

    fn lock(&self) -> MutexGuard<'_, LaneState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_open(&self) -> bool {
        let state = self.lock();
        !state.posts.is_empty() || !state.streams.is_empty()
    }

    /// A way for the answer to a request.
    pub(super) fn open(&self, outlet: Arc<Outlet>) -> Route {
        let mut state = self.lock();
        state.last += 1;
        let route = Route(state.last);
        if state.ended {
            outlet.end(End::SessionEnded);
        } else {
            state.posts.push((route, outlet));
        }
        route
    }

    /// Nobody reads the answer any more.
    pub(super) fn forget(&self, route: Route) {
        self.take_post(route);
    }

    fn take_post(&self, route: Route) -> Option<Arc<Outlet>> {
        let mut state = self.lock();
        let at = state.posts.iter().position(|(r, _)| *r == route)?;
        let (_, outlet) = state.posts.swap_remove(at);
        if state.posts.is_empty() {
            // An idle session is to cost little.
            state.posts = Vec::new();
        }
        Some(outlet)
    }

    fn post(&self, route: Route) -> Option<Arc<Outlet>> {
        self.lock().posts.iter().find(|(r, _)| *r == route).map(|(_, outlet)| outlet.clone())
    }

    /// A standalone stream: gets what has waited, and from now on its share of what belongs to no request. `None` when
    /// the session has enough of them.
    pub(super) fn open_stream(&self) -> Option<(u64, Arc<Outlet>)> {
        let outlet = Arc::new(Outlet::new(self.max_queued));
        let mut state = self.lock();
        if state.streams.len() >= MAX_STREAMS {
            return None;
        }
        state.last += 1;
        let key = state.last;
        if state.ended {
            outlet.end(End::SessionEnded);
        } else {
            for text in std::mem::take(&mut state.queue) {
                outlet.message(text, false);
            }
            state.streams.push((key, outlet.clone()));
        }
        Some((key, outlet))
    }

    /// The stream's reader is gone; what it has not read waits for the next.
    pub(super) fn close_stream(&self, key: u64) {
        let mut state = self.lock();
        let Some(at) = state.streams.iter().position(|(k, _)| *k == key) else {
            return;
        };
        let (_, outlet) = state.streams.swap_remove(at);
        if state.streams.is_empty() {
            state.streams = Vec::new();
        }
        drop(state);
        for text in outlet.take_unread() {
            self.unrelated(&text, true);
        }
    }

    /// A message that belongs to no request: exactly one stream gets it. The same notification twice is sent once while
    /// it waits.
    fn unrelated(&self, text: &Bytes, droppable: bool) {
        loop {
            let stream = {
                let mut state = self.lock();
                if state.ended {
                    return;
                }
                match state.streams.first() {
                    Some((key, outlet)) => (*key, outlet.clone()),
                    None => {
                        if droppable && state.queue.contains(text) {
                            return;
                        }
                        if state.queue.len() >= self.max_queued {
                            state.queue.pop_front();
                        }
                        return state.queue.push_back(text.clone());
                    }
                }
            };
            let (key, outlet) = stream;
            if droppable && outlet.contains(text) || outlet.message(text.clone(), true) {
                return;
            }
            // Its reader is too slow; what waits for it goes elsewhere.
            outlet.end(End::TooSlow);
            self.close_stream(key);
        }
    }

    fn end(&self, end: End) {
        let (posts, streams) = {
            let mut state = self.lock();
            state.ended = true;
            state.queue = VecDeque::new();
            (std::mem::take(&mut state.posts), std::mem::take(&mut state.streams))
        };
        posts.iter().map(|(_, o)| o).chain(streams.iter().map(|(_, o)| o)).for_each(|outlet| outlet.end(end));
    }
}

impl Sink for Lanes {
    fn send(&self, batch: Vec<Outbound>) {
        for outbound in batch {
            let Outbound { frame, related, route, sent, .. } = outbound;
            match (sent, route) {
                (Sent::Response(code), Some(route)) => {
                    if let Some(outlet) = self.take_post(route) {
                        outlet.answer(Answer { text: frame, code, early: related.is_none() });
                    }
                }
                (Sent::Response(_), None) => {}
                (sent, Some(route)) => {
                    // Without a reader it is lost with the answer.
                    if let Some(outlet) = self.post(route) {
                        outlet.message(frame, sent == Sent::Notification);
                    }
                }
                (sent, None) => self.unrelated(&frame, sent == Sent::Notification),
            }
        }
    }

    fn unanswered(&self, route: Route) {
        if let Some(outlet) = self.take_post(route) {
            outlet.end(End::Cancelled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::outlet::Next;
    use super::*;
    use crate::protocol::{Connection, Transport};

    fn notification(text: &'static str) -> Outbound {
        outbound(text, None, Sent::Notification)
    }

    fn outbound(text: &'static str, route: Option<Route>, sent: Sent) -> Outbound {
        Outbound { frame: Bytes::from_static(text.as_bytes()), related: None, route, sent }
    }

    fn read(outlet: &Outlet) -> Vec<String> {
        let text = |next| match next {
            Next::Message(text) => Some(String::from_utf8_lossy(&text).into_owned()),
            Next::Answer(answer) => Some(String::from_utf8_lossy(&answer.text).into_owned()),
            Next::End(_) => None,
        };
        std::iter::from_fn(|| outlet.next().and_then(text)).collect()
    }

    #[test]
    fn messages_without_a_stream_wait_for_one_and_are_not_repeated() {
        let lanes = Lanes::new(2);
        lanes.send(vec![notification("changed"), notification("a"), notification("changed"), notification("b")]);
        let (key, stream) = lanes.open_stream().expect("room");
        assert_eq!(read(&stream), ["a", "b"], "the oldest had to go");
        lanes.send(vec![notification("changed"), notification("changed")]);
        let (_, other) = lanes.open_stream().expect("room");
        assert_eq!((read(&stream), read(&other)), (vec!["changed".to_owned()], vec![]), "one stream, once");
        // What a stream's reader left behind is the next one's.
        lanes.send(vec![notification("left")]);
        lanes.close_stream(key);
        assert_eq!(read(&other), ["left"]);
    }

    #[test]
    fn a_reader_that_is_too_slow_loses_its_stream() {
        let lanes = Lanes::new(2);
        let (_, slow) = lanes.open_stream().expect("room");
        lanes.send(vec![notification("1"), notification("2"), notification("3")]);
        assert!(matches!(slow.next(), Some(Next::End(End::TooSlow))));
        let (_, next) = lanes.open_stream().expect("room");
        assert_eq!(read(&next), ["2", "3"]);
    }

    #[test]
    fn each_answer_goes_its_own_way_and_is_lost_with_it() {
        let lanes = Lanes::new(2);
        let (one, two) = (Arc::new(Outlet::new(2)), Arc::new(Outlet::new(2)));
        let (first, second) = (lanes.open(one.clone()), lanes.open(two.clone()));
        let (_, stream) = lanes.open_stream().expect("room");
        lanes.send(vec![
            outbound("progress", Some(second), Sent::Notification),
            outbound("two", Some(second), Sent::Response(None)),
            outbound("late", Some(second), Sent::Notification),
        ]);
        lanes.forget(first);
        lanes.send(vec![outbound("one", Some(first), Sent::Response(None))]);
        assert_eq!((read(&one), read(&two), read(&stream)), (vec![], vec!["progress".into(), "two".into()], vec![]));
        assert!(lanes.is_open());
        lanes.end(End::SessionEnded);
        assert!(matches!(stream.next(), Some(Next::End(End::SessionEnded))));
        assert!(!lanes.is_open());
    }

    #[test]
    fn a_session_is_idle_from_the_end_of_its_last_request() {
        let at = Duration::from_secs;
        let server = crate::server::Server::new("s");
        let lanes = Arc::new(Lanes::new(2));
        let connection = Connection::new(server.facts(), Arc::new(Transport::new("http")));
        let sink: Arc<dyn Sink> = lanes.clone();
        let peer = Peer::new(connection, server.limits(), server.shared.router.clone(), |_| sink);
        let session = Arc::new(Session::new("id".into(), Revision::NEWEST_LEGACY, peer, lanes));
        let sessions = Sessions::new(8, at(10));
        assert!(sessions.insert(session.clone(), at(0)).is_ok());
        session.left(at(9));
        sessions.sweep(at(18));
        assert!(sessions.find("id", at(18)).is_some());
        sessions.sweep(at(28));
        assert!(sessions.find("id", at(28)).is_none());
    }

    #[test]
    fn ids_are_long_visible_and_different() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| new_id().expect("randomness")).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| id.len() == 24 && id.bytes().all(|b| (0x21..0x7f).contains(&b))));
    }
}
