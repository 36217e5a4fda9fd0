use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::holder::Holder;
use super::lanes::Lanes;
use super::outlet::End;
use super::sender::is_same;
use crate::driver::Peer;
use crate::idiom::named;
use crate::model::Principal;
use crate::protocol::revision::Revision;

/// A legacy client's session.
pub(super) struct Session {
    pub(super) id: Arc<str>,
    /// The one that opened it.
    revision: Revision,
    pub(super) peer: Arc<Peer>,
    /// Its owner.
    principal: Option<Arc<Principal>>,
    /// The holder that it counts for.
    holder: Holder,
    lanes: Arc<Lanes>,
    /// Its place in the order of last use, written under the table's lock.
    place: AtomicU64,
    /// Time of its last use.
    used: AtomicU64,
    /// Facts of it that all processes know, if there are several.
    #[cfg(feature = "redis")]
    pub(super) shared: std::sync::OnceLock<super::shared::Sharing>,
    /// Streams of its answers that go out at another process than the one that answers.
    #[cfg(feature = "redis")]
    pub(super) feeds: super::feeds::Feeds,
}

impl Session {
    pub(super) fn new(
        id: Arc<str>,
        revision: Revision,
        peer: Arc<Peer>,
        (principal, holder): (Option<Arc<Principal>>, Holder),
        lanes: Arc<Lanes>,
    ) -> Self {
        Self {
            id,
            revision,
            peer,
            principal,
            holder,
            lanes,
            place: AtomicU64::new(0),
            used: AtomicU64::new(0),
            #[cfg(feature = "redis")]
            shared: std::sync::OnceLock::new(),
            #[cfg(feature = "redis")]
            feeds: super::feeds::Feeds::default(),
        }
    }

    /// Returns the revision that is spoken in it since its last `initialize`.
    pub(super) fn revision(&self) -> Revision {
        self.peer.revision().unwrap_or(self.revision)
    }

    pub(super) fn holder(&self) -> &Holder {
        &self.holder
    }

    pub(super) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Returns the name of it that all processes know.
    pub(super) fn key(&self) -> Option<&Arc<str>> {
        #[cfg(feature = "redis")]
        return self.shared.get().map(|shared| &shared.key);
        #[cfg(not(feature = "redis"))]
        None
    }

    /// Returns true if somebody waits for something of it. A call whose client has hung up goes on, because a broken
    /// connection is no cancellation, but it does not keep the session.
    fn is_busy(&self) -> bool {
        #[cfg(feature = "redis")]
        if self.feeds.is_open() {
            return true;
        }
        self.lanes.is_open()
    }

    /// Returns the number of requests that run, or whose answers are on their way to another process.
    fn in_flight(&self) -> usize {
        #[cfg(feature = "redis")]
        return self.peer.in_flight() + self.feeds.delivering();
        #[cfg(not(feature = "redis"))]
        self.peer.in_flight()
    }

    /// Ends the streams that do not answer what runs here.
    fn end_streams(&self, end: End) {
        self.lanes.end_streams(end);
        #[cfg(feature = "redis")]
        self.feeds.end(end);
    }

    /// Returns true if there is nothing that its client could come back for: a task can be asked for until it expires.
    fn is_idle(&self) -> bool {
        !self.is_busy() && !self.peer.is_kept()
    }

    /// A request or a stream of it has just ended: from now on it may be idle.
    pub(super) fn left(&self, now: Duration) {
        self.used.store(millis(now), Ordering::Relaxed);
    }

    /// It ends for the sake of another.
    #[cfg_attr(not(feature = "redis"), expect(unused_variables, reason = "of sessions that several processes serve"))]
    fn makes_room(&self, now: Duration) {
        self.end(End::SessionEnded, &format!("the session made room for another ({})", named("max_sessions")));
        #[cfg(feature = "redis")]
        super::shared::makes_room(self, now.saturating_sub(Duration::from_millis(self.used.load(Ordering::Relaxed))));
    }

    /// Ends it: its streams end, its running calls are cancelled.
    pub(super) fn end(&self, end: End, reason: &str) {
        self.lanes.end(end);
        #[cfg(feature = "redis")]
        self.feeds.end(end);
        self.peer.close(reason);
    }
}

/// The reason for the end of a session that nobody has used.
fn idle() -> String {
    format!("the session was idle for too long ({})", named("session_idle_timeout"))
}

/// One principal leaves this part of all sessions to others.
const LEFT: usize = 8;

/// The live sessions, bounded in number and in idleness.
pub(super) struct Sessions {
    table: Mutex<Table>,
    max: usize,
    idle: Duration,
}

#[derive(Default)]
struct Table {
    by_id: HashMap<Arc<str>, Arc<Session>>,
    /// The ids of those that several processes serve, by the names that these know them by.
    by_key: HashMap<Arc<str>, Arc<str>>,
    /// The one unused for longest comes first.
    by_use: BTreeMap<u64, Arc<Session>>,
    /// Number of sessions of each holder.
    held: HashMap<Holder, usize>,
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
        *self.held.entry(session.holder.clone()).or_default() += 1;
        if let Some(key) = session.key() {
            self.by_key.insert(key.clone(), session.id.clone());
        }
        self.by_id.insert(session.id.clone(), session);
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.by_id.remove(id)?;
        if let Some(key) = session.key() {
            self.by_key.remove(key);
        }
        self.by_use.remove(&session.place.load(Ordering::Relaxed));
        if let Some(count) = self.held.get_mut(&session.holder) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(&session.holder);
            }
        }
        if self.by_id.len() * 8 < self.by_id.capacity() {
            // Room for a crowd that has left.
            self.by_id.shrink_to(self.by_id.len() * 2);
            self.held.shrink_to(self.held.len() * 2);
            self.by_key.shrink_to(self.by_key.len() * 2);
        }
        Some(session)
    }

    fn held(&self, holder: &Holder) -> usize {
        self.held.get(holder).copied().unwrap_or_default()
    }

    /// Returns the session that makes room for one more of this holder's. It is one of the holder with the most, if
    /// that has more than the newcomer, else one of the newcomer's own: a holder that opens many pushes out nobody who
    /// has few. The one unused for longest, and none that is busy; one with tasks that can be asked for only where all
    /// others are.
    fn yields(&self, holder: &Holder) -> Option<Arc<str>> {
        self.yields_if(holder, Session::is_idle).or_else(|| self.yields_if(holder, |session| !session.is_busy()))
    }

    fn yields_if(&self, holder: &Holder, fits: impl Fn(&Session) -> bool) -> Option<Arc<str>> {
        let own = self.held(holder);
        let most = self.held.values().max().copied().unwrap_or_default();
        let mut found: Option<(usize, &Arc<Session>)> = None;
        for session in self.by_use.values() {
            let held = self.held(&session.holder);
            let may = held > own || session.holder == *holder;
            if may && found.is_none_or(|(others, _)| held > others) && fits(session) {
                found = Some((held, session));
                if held == most {
                    break;
                }
            }
        }
        found.map(|(_, session)| session.id.clone())
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
        all.iter().map(|s| s.in_flight()).sum()
    }

    /// Returns the longest time that sessions may be idle.
    pub(super) fn idle(&self) -> Duration {
        self.idle
    }

    /// The session that all processes know by this name.
    #[cfg(feature = "redis")]
    pub(super) fn of_key(&self, key: &str) -> Option<Arc<Session>> {
        let table = self.lock();
        table.by_id.get(table.by_key.get(key)?).cloned()
    }

    /// The sessions that somebody waits for something of or may come back to, by the names that all processes know.
    #[cfg(feature = "redis")]
    pub(super) fn busy_keys(&self) -> Vec<Arc<str>> {
        let table = self.lock();
        let all: Vec<_> = table.by_key.values().filter_map(|id| table.by_id.get(id)).cloned().collect();
        drop(table);
        let busy = all.iter().filter(|session| !session.is_idle()).filter_map(|session| session.key().cloned());
        // A seed of a simulation goes the same way each time.
        #[cfg(test)]
        let busy = busy.collect::<std::collections::BTreeSet<_>>().into_iter();
        busy.collect()
    }

    /// The session called `id`, whoever asks.
    #[cfg(feature = "redis")]
    pub(super) fn peek(&self, id: &str) -> Option<Arc<Session>> {
        self.lock().by_id.get(id).filter(|session| !session.lanes.has_ended()).cloned()
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
        session.end(End::SessionEnded, &idle());
        None
    }

    fn is_expired(&self, session: &Session, now: Duration) -> bool {
        session.used.load(Ordering::Relaxed).saturating_add(millis(self.idle)) <= millis(now) && session.is_idle()
    }

    /// Returns true if it was idle for too long.
    #[cfg(feature = "redis")]
    pub(super) fn has_expired(&self, session: &Session, now: Duration) -> bool {
        self.is_expired(session, now)
    }

    /// Adds a session. When there are too many, with so many `others`, another makes room: see [`Table::yields`].
    ///
    /// # Errors
    /// Gives the session back when every one that might end is busy.
    pub(super) fn insert(&self, session: Arc<Session>, others: usize, now: Duration) -> Result<(), Arc<Session>> {
        let mut table = self.lock();
        let mut evicted = None;
        let most = if session.holder.is_principal() { self.max - self.max / LEFT } else { self.max };
        if table.by_id.len() + others >= self.max || table.held(&session.holder) >= most {
            let Some(id) = table.yields(&session.holder) else { return Err(session) };
            evicted = table.remove(&id);
        }
        table.insert(session, now);
        drop(table);
        if let Some(evicted) = evicted {
            evicted.makes_room(now);
        }
        Ok(())
    }

    /// A session that nobody uses makes room for another of this holder's: see [`Table::yields`]. `false`: there is none.
    pub(super) fn make_room(&self, holder: &Holder, now: Duration) -> bool {
        let mut table = self.lock();
        let evicted = table.yields(holder).and_then(|id| table.remove(&id));
        drop(table);
        if let Some(evicted) = &evicted {
            evicted.makes_room(now);
        }
        evicted.is_some()
    }

    /// Returns true if a session that nobody uses would make room for another of this holder's.
    pub(super) fn can_make_room(&self, holder: &Holder) -> bool {
        self.lock().yields(holder).is_some()
    }

    /// Returns the number of this holder's sessions.
    pub(super) fn held(&self, holder: &Holder) -> usize {
        self.lock().held(holder)
    }

    /// Forgets the events of idle sessions, of the holders that have most first, then of those that are idle for longest.
    /// Says how many bytes that gives back.
    pub(super) fn forget(&self, bytes: usize) -> usize {
        let table = self.lock();
        let mut idle: Vec<_> = table.by_use.values().filter(|session| !session.is_busy()).cloned().collect();
        // Stable: within a holder the order of use stays.
        idle.sort_by_cached_key(|session| (Reverse(table.held(&session.holder)), session.holder.owner()));
        drop(table);
        let mut freed = 0;
        for session in idle {
            if freed >= bytes {
                break;
            }
            freed += session.lanes.forget();
        }
        freed
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
        expired.iter().for_each(|session| session.end(End::SessionEnded, &idle()));
    }

    /// Ends the streams that answer nothing.
    pub(super) fn end_streams(&self, end: End) {
        let all: Vec<_> = self.lock().by_id.values().cloned().collect();
        all.iter().for_each(|session| session.end_streams(end));
    }

    /// Ends the streams that answer nothing, and the sessions in which nothing is being answered.
    pub(super) fn end_waiting(&self, end: End, reason: &str) {
        let all: Vec<_> = self.lock().by_id.values().cloned().collect();
        for session in all {
            if session.in_flight() == 0 && !session.peer.is_kept() {
                self.remove(&session.id);
                session.end(end, reason);
            } else {
                session.end_streams(end);
            }
        }
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

    fn session(id: &str, holder: Holder) -> Arc<Session> {
        let server = crate::server::Server::new("s");
        let lanes = Arc::new(Lanes::new(2, None, holder.owner()));
        let connection = Connection::new(server.facts(), Arc::new(Transport::new("http")));
        let sink: Arc<dyn Sink> = lanes.clone();
        let peer = Peer::new(connection, server.limits(), server.shared.router.clone(), |_| sink);
        Arc::new(Session::new(id.into(), Revision::NEWEST_LEGACY, peer, (None, holder), lanes))
    }

    fn user(name: &str) -> Holder {
        Holder::of(Some(&Principal::new(name)), None)
    }

    fn there(sessions: &Sessions) -> Vec<String> {
        let table = sessions.lock();
        assert_eq!(table.held.values().sum::<usize>(), table.by_id.len());
        table.by_use.values().map(|session| session.id.to_string()).collect()
    }

    const NOW: Duration = Duration::from_secs(1);

    #[test]
    fn whoever_opens_many_sessions_pushes_out_nobody_who_has_few() {
        let eve = Holder::of(None, Some([203, 0, 113, 9].into()));
        let sessions = Sessions::new(4, Duration::from_secs(1000));
        let add = |id: &str, holder: &Holder| sessions.insert(session(id, holder.clone()), 0, NOW).is_ok();
        assert!(add("ada", &Holder::of(None, Some([203, 0, 113, 1].into()))));
        for n in 0..20 {
            assert!(add(&format!("eve-{n}"), &eve));
        }
        assert_eq!(there(&sessions), ["ada", "eve-17", "eve-18", "eve-19"]);
        // Others find room at the cost of who has the most, although somebody else was idle for longer.
        let bob = Holder::of(None, Some([203, 0, 113, 2].into()));
        assert!(add("bob", &bob) && add("bob-2", &bob));
        assert_eq!(there(&sessions), ["ada", "eve-19", "bob", "bob-2"]);
        // A holder with as many as anybody else pays himself.
        assert!(add("bob-3", &bob));
        assert_eq!(there(&sessions), ["ada", "eve-19", "bob-2", "bob-3"]);
        // Where all have one, the one idle for longest goes.
        assert!(add("carl", &user("carl")) && add("dora", &user("dora")));
        assert_eq!(there(&sessions), ["eve-19", "bob-3", "carl", "dora"]);
    }

    #[test]
    fn nobody_makes_room_who_is_busy() {
        let sessions = Sessions::new(3, Duration::from_secs(1000));
        let add = |id: &str, name: &str, busy: bool| {
            let session = session(id, user(name));
            let stream = busy.then(|| session.lanes().open_stream());
            assert!(stream.is_none_or(|stream| stream.is_some()));
            sessions.insert(session, 0, NOW).is_ok()
        };
        assert!(add("ada", "ada", false) && add("eve-1", "eve", true) && add("eve-2", "eve", true));
        // Her own are busy, and she has more than others.
        assert!(!add("eve-3", "eve", false));
        // The next one of those who have more than he has makes room.
        assert!(add("bob", "bob", true));
        assert_eq!(there(&sessions), ["eve-1", "eve-2", "bob"]);
        assert!(!add("carl", "carl", false), "all of them are busy");
    }

    #[test]
    fn a_principal_leaves_some_to_others_though_all_its_own_are_busy() {
        let sessions = Sessions::new(8, Duration::from_secs(1000));
        let add = |id: String, name: &str| {
            let session = session(&id, user(name));
            assert!(session.lanes().open_stream().is_some());
            sessions.insert(session, 0, NOW).is_ok()
        };
        let taken = (0..20).filter(|n| add(format!("eve-{n}"), "eve")).count();
        assert_eq!(taken, 7);
        assert!(add("ada".into(), "ada"));
        assert_eq!(sessions.len(), 8);
    }

    #[test]
    fn what_another_transport_has_counts_as_well() {
        let sessions = Sessions::new(3, Duration::from_secs(1000));
        assert!(sessions.insert(session("ada", user("ada")), 2, NOW).is_ok());
        assert!(sessions.insert(session("bob", user("bob")), 2, NOW).is_ok());
        assert_eq!(there(&sessions), ["bob"]);
        assert!(sessions.make_room(&user("ada"), NOW) && !sessions.make_room(&user("ada"), NOW));
        assert_eq!(sessions.len(), 0);
    }

    #[test]
    fn a_session_is_idle_from_the_end_of_its_last_request() {
        let at = Duration::from_secs;
        let session = session("id", user("ada"));
        let sessions = Sessions::new(8, at(10));
        assert!(sessions.insert(session.clone(), 0, at(0)).is_ok());
        session.left(at(9));
        sessions.sweep(at(18));
        assert!(sessions.find("id", None, at(18)).is_some());
        sessions.sweep(at(28));
        assert!(sessions.find("id", None, at(28)).is_none());
    }
}
