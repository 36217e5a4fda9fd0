use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::lanes::Lanes;
use super::outlet::End;
use super::sender::is_same;
use crate::driver::Peer;
use crate::model::Principal;
use crate::protocol::revision::Revision;

/// A legacy client's session.
pub(super) struct Session {
    pub(super) id: Arc<str>,
    pub(super) revision: Revision,
    pub(super) peer: Arc<Peer>,
    /// Whose it is.
    principal: Option<Arc<Principal>>,
    lanes: Arc<Lanes>,
    /// Its place in the order of last use, written under the table's lock.
    place: AtomicU64,
    /// When it was last in use.
    used: AtomicU64,
}

impl Session {
    pub(super) fn new(
        id: Arc<str>,
        revision: Revision,
        peer: Arc<Peer>,
        principal: Option<Arc<Principal>>,
        lanes: Arc<Lanes>,
    ) -> Self {
        Self { id, revision, peer, principal, lanes, place: AtomicU64::new(0), used: AtomicU64::new(0) }
    }

    pub(super) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Whether somebody waits for something of it. A call whose client has hung up goes on, because a broken
    /// connection is no cancellation, but it does not keep the session.
    fn is_busy(&self) -> bool {
        self.lanes.is_open()
    }

    /// Whether there is nothing that its client could come back for: a task can be asked for until it expires.
    fn is_idle(&self) -> bool {
        !self.is_busy() && !self.peer.is_kept()
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

/// Who has more than this part of all sessions makes room for its own.
const GOOD_PART: usize = 8;

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

pub(super) fn millis(time: Duration) -> u64 {
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

    /// The session called `id`, which is in use from now on. Another's is as good as none.
    pub(super) fn find(&self, id: &str, who: Option<&Arc<Principal>>, now: Duration) -> Option<Arc<Session>> {
        let mut table = self.lock();
        let session = table.by_id.get(id).filter(|session| is_same(session.principal.as_ref(), who))?.clone();
        if !self.is_expired(&session, now) && !session.lanes.has_ended() {
            table.touch(&session, now);
            return Some(session);
        }
        table.remove(id);
        drop(table);
        session.end(End::SessionEnded, IDLE);
        None
    }

    fn is_expired(&self, session: &Session, now: Duration) -> bool {
        session.used.load(Ordering::Relaxed).saturating_add(millis(self.idle)) <= millis(now) && session.is_idle()
    }

    /// Adds a session. When there are too many, the one idle for longest ends; of who has a good part of them, one of its
    /// own.
    ///
    /// # Errors
    /// Gives the session back when every one that might end is busy.
    pub(super) fn insert(&self, session: Arc<Session>, now: Duration) -> Result<(), Arc<Session>> {
        let mut table = self.lock();
        let mut evicted = None;
        if table.by_id.len() >= self.max {
            let who = session.principal.as_ref();
            let is_own = |other: &&Arc<Session>| who.is_some() && is_same(other.principal.as_ref(), who);
            let has_many = table.by_use.values().filter(is_own).count() > self.max / GOOD_PART;
            let mut victims = table.by_use.values().filter(|other| !has_many || is_own(other));
            let Some(id) = victims.find(|s| !s.is_busy()).map(|s| s.id.clone()) else {
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
        let (expired, busy): (Vec<_>, Vec<_>) = old.into_iter().partition(|s| s.is_idle());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::Sink;
    use crate::protocol::{Connection, Transport};

    fn session(id: &str, who: Option<&str>) -> Arc<Session> {
        let server = crate::server::Server::new("s");
        let lanes = Arc::new(Lanes::new(2, None));
        let connection = Connection::new(server.facts(), Arc::new(Transport::new("http")));
        let sink: Arc<dyn Sink> = lanes.clone();
        let peer = Peer::new(connection, server.limits(), server.shared.router.clone(), |_| sink);
        let who = who.map(|who| Arc::new(Principal::new(who)));
        Arc::new(Session::new(id.into(), Revision::NEWEST_LEGACY, peer, who, lanes))
    }

    #[test]
    fn who_has_many_sessions_makes_room_for_its_own() {
        let at = Duration::from_secs;
        let sessions = Sessions::new(16, at(1000));
        let add = |id: &str, who| sessions.insert(session(id, who), at(1)).is_ok();
        assert!(add("ada", Some("ada")) && add("nobody", None));
        for n in 0..20 {
            assert!(add(&format!("eve-{n}"), Some("eve")));
        }
        let is_there = |id: &str| sessions.lock().by_id.contains_key(id);
        assert!(is_there("ada") && is_there("nobody") && !is_there("eve-5") && is_there("eve-6"));
        assert_eq!(sessions.len(), 16);
        // Others find room at the cost of who has been idle for longest.
        assert!(add("bob", Some("bob")) && !is_there("ada") && is_there("eve-6"));
        assert!(add("more", None) && !is_there("nobody"));
    }

    #[test]
    fn a_session_is_idle_from_the_end_of_its_last_request() {
        let at = Duration::from_secs;
        let session = session("id", None);
        let sessions = Sessions::new(8, at(10));
        assert!(sessions.insert(session.clone(), at(0)).is_ok());
        session.left(at(9));
        sessions.sweep(at(18));
        assert!(sessions.find("id", None, at(18)).is_some());
        sessions.sweep(at(28));
        assert!(sessions.find("id", None, at(28)).is_none());
    }
}
