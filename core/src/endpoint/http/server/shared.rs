//! Sessions that several processes serve: each keeps a copy of those that it was asked in, and the store has what their
//! clients have told. A request asks the store once, before anything else.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, StatusCode};

use super::admit::Verb;
use super::endpoint::Inner;
use super::headers::{LAST_EVENT_ID, SESSION_ID, Single, Version};
use super::lanes::{Elsewhere, Forward, Lanes};
use super::legacy::lanes_of;
use super::outlet::End;
use super::reply::Refusal;
use super::sender::Sender;
use super::sessions::{Session, millis};
use crate::call::Link;
use crate::driver::{Mailbox, Node, Peer, Sink, now, runtime};
use crate::error::shortened;
use crate::jsonrpc::{self, DecodeError, Decoded, ErrorObject, Id, Message, RawJson, code};
use crate::model::Principal;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::{Connection, Input, Kind, LogLevel, Told};
use crate::store::redis::nodes::{BITS, Number, Posted};
use crate::store::redis::sessions::{Look, SharedSession, owner, session_key};
use crate::store::{Change, EventId, Stream};

/// Sessions that are looked at side by side.
const LOOKS: usize = 32;
/// Longest session id that is looked for.
const MAX_ID: usize = 256;
/// Attempts to read what others have changed.
const ATTEMPTS: usize = 8;
/// Time between two attempts after a failure, at least: a connection that was lost is made again by then.
const PAUSE: Duration = Duration::from_millis(120);
/// The longest one.
const LONGEST: Duration = Duration::from_secs(3);
/// Longest reason of a cancellation that is passed on, in characters.
const MAX_REASON: usize = 200;
/// Bits of the numbers of streams and events that are counted within one process.
const EVENT_BITS: u32 = 40;

/// Questions of other processes that one refused message fails, at most.
pub(super) const MAX_FAILED: usize = 64;

/// Facts of a session that this process knows all others to know.
pub(super) struct Sharing {
    pub(super) key: Arc<str>,
    known: Mutex<SharedSession>,
    version: AtomicU64,
    /// Count of what the client has told, as far as the store has it.
    told: AtomicU64,
    /// Parameters of another `initialize` that the store does not have yet.
    params: Mutex<Option<String>>,
    /// The store did not take what the client has told, and is asked again: resources that it has subscribed to meanwhile.
    late: Mutex<Option<BTreeSet<Box<str>>>>,
    /// The store is to learn later that the stream with this number, less one, is here. 0: it knows.
    holds: AtomicU64,
    node: Weak<Node>,
    /// Time that it lives in the store after its last use, in milliseconds.
    idle: u64,
}

impl Sharing {
    fn new(node: &Arc<Node>, idle: u64, key: &str, known: SharedSession, told: u64) -> Self {
        let (version, node) = (AtomicU64::new(known.version), Arc::downgrade(node));
        let (params, late, told) = (Mutex::default(), Mutex::default(), AtomicU64::new(told));
        let holds = AtomicU64::new(0);
        Self { key: key.into(), known: Mutex::new(known), version, told, params, late, holds, node, idle }
    }
}

pub(super) fn away() -> Refusal {
    let message = "the store that this server's processes share does not answer: try again later";
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).with_code(code::UNAVAILABLE)
}

pub(super) fn owner_of(principal: Option<&Arc<Principal>>) -> String {
    owner(principal.map(|principal| principal.key()))
}

fn parsed(text: &str) -> Result<RawJson, serde_json::Error> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map(|_| RawJson::written(text.to_owned()))
}

fn told_of(shared: &SharedSession) -> Told {
    let level = shared.level.as_deref().and_then(|level| level.parse::<LogLevel>().ok());
    Told { level, initialized: shared.initialized, subscriptions: shared.subscriptions.clone() }
}

/// The id of a session in the headers, if it may be one.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    Single::of(headers, &SESSION_ID).text().filter(|id| !id.is_empty() && id.len() <= MAX_ID)
}

/// The facts that a session which is about to begin will share, and the process that shares them.
type Begins = Option<(Arc<Node>, Sharing)>;

/// A request that names a session of several processes.
pub(super) struct Named {
    id: String,
    headers: HeaderMap,
    does: Does,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Post,
    Get,
    Delete,
}

impl Named {
    /// It has its answer: the other processes learn what they have to know, also when the client has gone by then.
    pub(super) async fn done(self, inner: &Arc<Inner>, status: StatusCode) {
        if self.does == Does::Post && !inner.has_more_to_tell(&self.id) {
            return;
        }
        let inner = inner.clone();
        let work = async move {
            match self.does {
                Does::Post => inner.tell(&self.id, None).await,
                Does::Get if status == StatusCode::OK => inner.catch_up(&self.id, &self.headers).await,
                Does::Delete if status == StatusCode::NO_CONTENT => inner.end_everywhere(&self.id).await,
                Does::Get | Does::Delete => {}
            }
        };
        // Fails only with the runtime.
        let _ = runtime::spawn(work).await;
    }
}

impl Inner {
    /// Has a copy of the session that a request names, if all processes know it.
    ///
    /// # Errors
    /// As [`look_up`](Self::look_up).
    pub(super) async fn found(self: &Arc<Self>, verb: &Verb, sender: &Sender) -> Result<Option<Named>, Refusal> {
        let does = match verb {
            Verb::Post(_) => Does::Post,
            Verb::Get => Does::Get,
            Verb::Delete => Does::Delete,
            _ => return Ok(None),
        };
        // Requests of revisions without sessions may carry the header all the same.
        if Version::of(&sender.headers).is_modern {
            return Ok(None);
        }
        let Some(id) = session_id(&sender.headers) else { return Ok(None) };
        if !self.look_up(id, sender).await? {
            return Ok(None);
        }
        let headers = if does == Does::Get { sender.headers.clone() } else { HeaderMap::new() };
        Ok(Some(Named { id: id.to_owned(), headers, does }))
    }

    /// The process among others that this endpoint belongs to, if sessions are shared.
    pub(super) fn node(self: &Arc<Self>) -> Option<Arc<Node>> {
        if self.options.stateless {
            return None;
        }
        let node = Node::of(&self.server)?;
        let mailbox: Arc<dyn Mailbox> = self.clone();
        node.attach(&mailbox);
        Some(node)
    }

    pub(super) fn idle_millis(&self) -> u64 {
        millis(self.sessions.idle()).max(1000)
    }

    /// Has a copy of the session as all processes know it, if there is such a session. `false`: nothing is shared.
    ///
    /// # Errors
    /// 503 when the store does not answer and this process has no copy.
    async fn look_up(self: &Arc<Self>, id: &str, sender: &Sender) -> Result<bool, Refusal> {
        let Some(node) = self.node() else { return Ok(false) };
        let copy = self.sessions.peek(id);
        let sharing = copy.as_ref().and_then(|copy| copy.shared.get());
        let key = sharing.map_or_else(|| session_key(id).into(), |sharing| sharing.key.clone());
        let known = sharing.map_or(0, |sharing| sharing.version.load(Ordering::Acquire));
        let Ok(look) = node.store.session(&key, known, self.idle_millis()).await else {
            // With a copy it goes on.
            return if copy.is_some() { Ok(true) } else { Err(away()) };
        };
        if let Some(sharing) = sharing.filter(|_| matches!(look, Look::Same | Look::Session(_)))
            && let Some(copy) = &copy
            && sharing.lock().owner == owner_of(sender.principal.as_ref())
        {
            // It was not idle, if others were asked.
            copy.left(now());
        }
        match (look, copy) {
            (Look::Same, _) | (Look::Unknown | Look::Ended, None) => {}
            (Look::Ended, Some(copy)) => {
                self.sessions.remove(&copy.id);
                copy.end(End::SessionEnded, "the client ended the session");
            }
            // The store has lost it, or it was idle for too long.
            (Look::Unknown, Some(copy)) => {
                let is_there = !self.sessions.has_expired(&copy, now());
                if is_there && put(&node, &copy).await && copy.lanes().settled().is_some() {
                    copy.lanes().falls_behind(0);
                    hold(&node, &copy, None).await;
                }
            }
            (Look::Session(shared), Some(copy)) => update(&copy, *shared),
            (Look::Session(shared), None) => self.adopt(&node, id, &key, *shared, sender)?,
        }
        Ok(true)
    }

    /// Makes a copy here of a session of another process.
    fn adopt(
        self: &Arc<Self>,
        node: &Arc<Node>,
        id: &str,
        key: &str,
        shared: SharedSession,
        sender: &Sender,
    ) -> Result<(), Refusal> {
        if shared.owner != owner_of(sender.principal.as_ref()) {
            // Another's is as good as none.
            return Ok(());
        }
        let revision = Revision::parse(&shared.revision).filter(|revision| revision.era() == Era::Legacy);
        let (Some(revision), Ok(params)) = (revision, parsed(&shared.params)) else {
            return Ok(());
        };
        if node.number.get() == 0 {
            return Err(away());
        }
        let id: Arc<str> = id.into();
        let (lanes, at_rest) = lanes_of(self, &id, sender);
        let Ok(connection) = Connection::adopted(self.server.facts(), Arc::new(at_rest), revision, &params) else {
            return Ok(());
        };
        let connection = self.share_out(node, key, &lanes, connection);
        let sink: Arc<dyn Sink> = lanes.clone();
        let peer = Peer::new(connection, self.limits, self.server.shared.router.clone(), |_| sink);
        let link: Arc<dyn Link> = peer.clone();
        self.server.shared.join(&link);
        lanes.primes(revision.rules().priming_event);
        peer.keeps(2 * shared.params.len());
        peer.learn(|connection| connection.retell(now(), &Told::default(), told_of(&shared)));
        let owner = (sender.principal.clone(), sender.holder());
        let session = Arc::new(Session::new(id.clone(), revision, peer.clone(), owner, lanes));
        let _ = session.shared.set(Sharing::new(node, self.idle_millis(), key, shared, peer.told_count()));
        let adopting = self.adopting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.sessions.peek(&id).is_some() {
            // Another request was quicker.
            return Ok(());
        }
        let is_in = self.room_for_session(&session) && self.sessions.insert(session, self.pairs.len(), now()).is_ok();
        drop(adopting);
        if !is_in {
            let message = "no session that could make room for this one is idle (max_sessions)";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        self.keep();
        Ok(())
    }

    /// A session is about to be opened here that all processes will serve, if there are several.
    ///
    /// # Errors
    /// 503 in a process that has not reached the store yet.
    pub(super) fn opens_shared(
        self: &Arc<Self>,
        id: &str,
        sender: &Sender,
        lanes: &Arc<Lanes>,
        connection: Connection,
        message: &Message,
    ) -> Result<(Connection, Begins), Refusal> {
        let Some(node) = self.node() else { return Ok((connection, None)) };
        if node.number.get() == 0 {
            return Err(away());
        }
        let Message::Request { params: Some(params), .. } = message else { return Ok((connection, None)) };
        let key = session_key(id);
        let connection = self.share_out(&node, &key, lanes, connection);
        let owner = owner_of(sender.principal.as_ref());
        let known = SharedSession { params: Connection::kept(params), owner, ..SharedSession::default() };
        let sharing = Sharing::new(&node, self.idle_millis(), &key, known, 0);
        Ok((connection, Some((node, sharing))))
    }

    /// Other processes have what this connection and its ways out have not.
    pub(super) fn share_out(
        self: &Arc<Self>,
        node: &Arc<Node>,
        key: &str,
        lanes: &Arc<Lanes>,
        mut connection: Connection,
    ) -> Connection {
        let number = node.number.get();
        // Not where an earlier copy of it has begun, so that a late answer is none to another question.
        let mut random = [0; 4];
        let start = crate::random::fill(&mut random).map_or(0, |()| u32::from_le_bytes(random) >> (33 - BITS));
        connection.number_from((i64::from(number) << BITS) + i64::from(start));
        let idle = self.idle_millis();
        let forward = {
            let (store, key, own) = (node.store.clone(), Arc::<str>::from(key), node.number.clone());
            let lanes = Arc::downgrade(lanes);
            move |text: Bytes, how: Forward| {
                let (store, key, own, lanes) = (store.clone(), key.clone(), own.get(), lanes.clone());
                runtime::spawn(async move {
                    // Trouble has been said; the message is lost with it.
                    let passed = store.to_client(&key, &text, own, idle, (how.waits, how.up)).await;
                    if let (Ok(false), Some(lanes)) = (passed, lanes.upgrade()) {
                        lanes.pass(&text);
                    }
                });
            }
        };
        let takes_up = {
            let (store, key, own) = (node.store.clone(), Arc::<str>::from(key), node.number.clone());
            let lanes = Arc::downgrade(lanes);
            move || {
                let (store, key, own, lanes) = (store.clone(), key.clone(), own.get(), lanes.clone());
                runtime::spawn(async move {
                    // Otherwise they wait for a stream.
                    let waiting = store.take_up(&key, own).await.unwrap_or_default();
                    let lanes = lanes.upgrade();
                    waiting.iter().for_each(|text| lanes.iter().for_each(|lanes| lanes.pass(text)));
                });
            }
        };
        let generation = Arc::new(AtomicU64::new(0));
        let closed = {
            let (store, id, key) = (node.store.clone(), node.id.clone(), Arc::<str>::from(key));
            let (place, generation) = (node.place.clone(), Arc::clone(&generation));
            move |is_read: bool| {
                let (store, id, key) = (store.clone(), id.clone(), key.clone());
                let place = is_read.then(|| place.load(Ordering::Acquire));
                let generation = generation.load(Ordering::Acquire);
                runtime::spawn(async move {
                    let _ = store.close_stream(&id, &key, generation, place).await;
                });
            }
        };
        let (place, hearing, is_silent) = (node.place.clone(), node.hearing.clone(), AtomicBool::new(false));
        let elsewhere = Elsewhere {
            place,
            hearing,
            began: AtomicU64::new(node.told.load(Ordering::Acquire)),
            at_once: node.told.clone(),
            told: AtomicU64::new(0),
            ahead: AtomicU64::new(0),
            generation: Arc::clone(&generation),
            is_behind: AtomicBool::new(false),
            since: AtomicU64::new(0),
            is_silent,
            forward: Box::new(forward),
            takes_up: Box::new(takes_up),
            closed: Box::new(closed),
        };
        // Later copies have greater numbers.
        let time = std::time::UNIX_EPOCH.elapsed().map_or(0, millis);
        #[cfg(test)]
        let time = crate::simulated::unix().map_or(time, millis);
        let time = time & ((1 << EVENT_BITS) - 1);
        lanes.share((u64::from(number) << EVENT_BITS) + time, elsewhere);
        connection
    }

    /// A session was opened here: puts it into the store, or ends it.
    ///
    /// # Errors
    /// 503 when the store does not answer.
    pub(super) async fn begin_shared(
        self: &Arc<Self>,
        node: &Arc<Node>,
        session: &Arc<Session>,
    ) -> Result<(), Refusal> {
        if put(node, session).await {
            return Ok(());
        }
        self.sessions.remove(&session.id);
        session.end(End::SessionEnded, "the store did not answer");
        Err(away())
    }

    /// Returns true if a session's client has told something here that the store does not know.
    fn has_more_to_tell(&self, id: &str) -> bool {
        let Some(session) = self.sessions.peek(id) else { return false };
        session.shared.get().is_some_and(|sharing| {
            let params = sharing.params.lock().unwrap_or_else(PoisonError::into_inner);
            params.is_some() || !sharing.is_told(&session)
        })
    }

    /// A request was answered: the store learns what its client has told with it. `params`: those of another `initialize`.
    pub(super) async fn tell(self: &Arc<Self>, id: &str, params: Option<String>) {
        if let Some(session) = self.sessions.peek(id) {
            share(&session, params).await;
        }
    }

    /// Sessions that are in use here live on everywhere.
    pub(super) async fn keep_busy(self: &Arc<Self>) {
        self.keep_pairs().await;
        let keys = self.sessions.busy_keys();
        if let Some(node) = self.node().filter(|_| !keys.is_empty()) {
            // Otherwise the next round does it.
            let _ = node.store.touch(&keys, self.idle_millis()).await;
        }
    }

    /// A session was ended here: it ends everywhere.
    pub(super) async fn end_everywhere(self: &Arc<Self>, id: &str) {
        if let Some(node) = self.node() {
            let key = session_key(id);
            if node.store.end_session(&node.id, &key).await.is_ok() {
                return;
            }
            // Its client does not wait for a store that does not answer.
            let (node, idle) = (Arc::downgrade(&node), Duration::from_millis(self.idle_millis()));
            runtime::spawn(async move {
                let begun = now();
                loop {
                    let Some(pause) = node.upgrade().map(|node| node.store.pause().unwrap_or(PAUSE).max(PAUSE)) else {
                        return;
                    };
                    tokio::time::sleep(pause).await;
                    let Some((store, own)) = node.upgrade().map(|node| (node.store.clone(), node.id.clone())) else {
                        return;
                    };
                    // Then it has been idle for long enough.
                    if store.end_session(&own, &key).await.is_ok() || now().saturating_sub(begun) > idle {
                        return;
                    }
                }
            });
        }
    }

    /// Passes messages on that are for another process: an answer to its question, or the cancellation of a request that
    /// it works on. Returns those that are for this one; `None`: there is nothing else in it.
    ///
    /// # Errors
    /// 503 when the store does not answer.
    pub(super) async fn passed_on(
        self: &Arc<Self>,
        session: &Arc<Session>,
        decoded: Decoded,
    ) -> Result<Option<Decoded>, Refusal> {
        let (Some(sharing), Some(node)) = (session.shared.get(), self.node()) else { return Ok(Some(decoded)) };
        match decoded {
            Decoded::One(message) => {
                let is_passed = pass_on(&node, sharing, session, &message).await?;
                Ok((!is_passed).then_some(Decoded::One(message)))
            }
            Decoded::Batch(parts) => {
                let mut own = Vec::with_capacity(parts.len());
                for part in parts {
                    match part {
                        Ok(message) if pass_on(&node, sharing, session, &message).await? => {}
                        part => {
                            if let Err(error) = &part {
                                self.fails_elsewhere(session, error).await?;
                            }
                            own.push(part);
                        }
                    }
                }
                Ok((!own.is_empty()).then_some(Decoded::Batch(own)))
            }
        }
    }

    /// Tells the processes whose questions it was meant to answer that an answer is no message: nothing else will come.
    ///
    /// # Errors
    /// 503 when the store does not answer.
    pub(super) async fn fails_elsewhere(
        self: &Arc<Self>,
        session: &Arc<Session>,
        error: &DecodeError,
    ) -> Result<(), Refusal> {
        let (Some(sharing), Some(node)) = (session.shared.get(), self.node()) else { return Ok(()) };
        for id in error.answers.iter().chain(&error.answers_too).take(MAX_FAILED) {
            let message = format!("the answer is no message: {}", error.message);
            let error = ErrorObject { code: code::INVALID_REQUEST, message, data: None };
            pass_on(&node, sharing, session, &Message::Error { id: Some(id.clone()), error }).await?;
        }
        Ok(())
    }

    /// A standalone stream of a session was opened here: sends what the client has missed since its last one.
    pub(super) async fn catch_up(self: &Arc<Self>, id: &str, headers: &HeaderMap) {
        let Some(session) = self.sessions.peek(id) else { return };
        let Some(node) = self.node().filter(|_| session.shared.get().is_some()) else { return };
        if takes_up_an_answer(&session, headers) {
            return;
        }
        // One that was here has what followed: only what happened since its end is missing.
        hold(&node, &session, Some(last_place(&session, headers)).filter(|place| *place > 0)).await;
    }
}

/// Puts a session into the store. `false`: the store did not answer, or the session has ended.
async fn put(node: &Arc<Node>, session: &Arc<Session>) -> bool {
    let Some(sharing) = session.shared.get() else { return true };
    let (_, shared, count) = sharing.compared(session);
    let (place, idle) = (node.place(), sharing.idle);
    let Ok(version) = node.store.begin_session(&node.id, &sharing.key, &shared, place, idle).await else {
        return false;
    };
    if version > 0 {
        sharing.remember(SharedSession { version, ..shared }, count);
    }
    version > 0
}

/// Other processes know more of the session than this one did.
fn update(copy: &Session, shared: SharedSession) {
    let Some(sharing) = copy.shared.get() else { return };
    let own = sharing.node.upgrade().map(|node| node.number.get());
    let mut primes = None;
    copy.peer.learn(|connection| {
        let mut known = sharing.lock();
        if shared.version <= known.version {
            return Vec::new();
        }
        if (&known.params, &known.revision) != (&shared.params, &shared.revision)
            && let (Some(revision), Ok(params)) = (Revision::parse(&shared.revision), parsed(&shared.params))
            && connection.begun_elsewhere(revision, &params).is_ok()
        {
            primes = Some(revision.rules().priming_event);
        }
        copy.lanes().silence(shared.holder.is_some() && shared.holder != own);
        if !shared.subscriptions.is_subset(&known.subscriptions) {
            copy.lanes().begins();
        }
        let actions = connection.retell(now(), &told_of(&known), told_of(&shared));
        sharing.learn(&mut known, shared);
        actions
    });
    if let Some(primes) = primes {
        copy.lanes().primes(primes);
    }
}

/// The store learns what a session's client has told here. `params`: those of another `initialize`.
async fn share(session: &Arc<Session>, params: Option<String>) {
    let Some(sharing) = session.shared.get() else { return };
    if params.is_some() {
        *sharing.params.lock().unwrap_or_else(PoisonError::into_inner) = params;
    }
    if write_told(session, sharing).await.is_err() {
        tokio::time::sleep(PAUSE).await;
        if let Err(subscribed) = write_told(session, sharing).await {
            share_later(session, sharing, subscribed);
        }
    }
}

/// The store learns what a client has told here as soon as it takes it, also when the client asks nothing here any more.
fn share_later(session: &Arc<Session>, sharing: &Sharing, subscribed: Vec<Box<str>>) {
    let mut late = sharing.late.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(late) = &mut *late {
        late.extend(subscribed);
        // Never more than the subscriptions, which have a limit.
        let (_, shared, _) = sharing.compared(session);
        return late.retain(|uri| shared.subscriptions.contains(uri));
    }
    *late = Some(subscribed.into_iter().collect());
    drop(late);
    let (session, node) = (Arc::downgrade(session), sharing.node.clone());
    runtime::spawn(async move {
        let mut least = PAUSE;
        loop {
            let Some(pause) = node.upgrade().map(|node| node.store.pause().unwrap_or(least).max(least)) else { return };
            tokio::time::sleep(pause).await;
            least = (least * 2).min(LONGEST);
            let Some(session) = session.upgrade().filter(|session| !session.lanes().has_ended()) else { return };
            let Some(sharing) = session.shared.get() else { return };
            let count = session.peer.told_count();
            if write_told(&session, sharing).await.is_ok() {
                let late = {
                    let mut late = sharing.late.lock().unwrap_or_else(PoisonError::into_inner);
                    // A request that told more meanwhile may rely on this task.
                    let is_more = sharing.params.lock().unwrap_or_else(PoisonError::into_inner).is_some();
                    if is_more || session.peer.told_count() != count {
                        continue;
                    }
                    late.take()
                };
                // They may have changed before the process that tells the client knew that it wants to hear of them.
                let Some(node) = node.upgrade() else { return };
                late.into_iter().flatten().for_each(|uri| node.may_have_changed(uri));
                return;
            }
        }
    });
}

/// Writes what a session's client has told here.
///
/// # Errors
/// The store did not take it, or did not say so: what the client has subscribed to.
async fn write_told(session: &Arc<Session>, sharing: &Sharing) -> Result<(), Vec<Box<str>>> {
    let params = sharing.params.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if sharing.is_told(session) && params.is_none() {
        return Ok(());
    }
    let Some((store, own)) = sharing.node.upgrade().map(|node| (node.store.clone(), node.id.clone())) else {
        return Ok(());
    };
    let (before, mut shared, count) = sharing.compared(session);
    if let Some(params) = &params {
        shared.params.clone_from(params);
    }
    let edits = before.edits(&shared);
    let mut version = before.version;
    if !edits.is_empty() {
        let Ok(edited) = store.edit_session(&own, &sharing.key, &edits, sharing.idle).await else {
            return Err(shared.subscriptions.difference(&before.subscriptions).cloned().collect());
        };
        version = edited;
    }
    sharing.params.lock().unwrap_or_else(PoisonError::into_inner).take_if(|own| Some(&*own) == params.as_ref());
    if edits.is_empty() {
        sharing.told.store(count, Ordering::Release);
    } else if version == before.version + 1 {
        sharing.remember(SharedSession { version, ..shared }, count);
    } else if version > 0 {
        // Another process has changed it meanwhile.
        sharing.told.store(count, Ordering::Release);
        if let Ok(Look::Session(shared)) = store.session(&sharing.key, 0, sharing.idle).await {
            update(session, *shared);
        }
    }
    Ok(())
}

/// A request of a session is over: its client may have told something with it after its response began.
pub(super) fn is_over(session: &Arc<Session>) {
    if session.shared.get().is_some_and(|sharing| !sharing.is_told(session)) {
        let session = session.clone();
        runtime::spawn(async move { share(&session, None).await });
    }
}

/// A session makes room for another here. It ends everywhere, if nobody has used it elsewhere since.
pub(super) fn makes_room(session: &Session, age: Duration) {
    let Some(sharing) = session.shared.get() else { return };
    let Some(node) = sharing.node.upgrade() else { return };
    let (key, idle) = (sharing.key.clone(), sharing.idle);
    runtime::spawn(async move {
        // Otherwise it ends when it has been idle for long enough.
        let _ = node.store.end_unused(&node.id, &key, millis(age), idle).await;
    });
}

/// This process sends a session's client what belongs to no request, from now on: what it has missed since this place, or
/// since the end of its last stream.
async fn hold(node: &Arc<Node>, session: &Arc<Session>, place: Option<u64>) {
    let Some(sharing) = session.shared.get() else { return };
    let number = node.number.get();
    let opened = node.store.open_stream(&node.id, &sharing.key, number, node.place()).await;
    let Ok((at, waiting, generation)) = opened else {
        // The store may have noted that the client knows all.
        let (_turn, place) = (node.turn(), node.place());
        let all = vec![(place, Change::All)];
        // For the store another process has the stream, or none: whoever hears of the session next would believe it.
        holds_later(node, session, sharing, session.lanes().generation());
        return session.lanes().tell_ahead(all, place, |change| tell(&session.peer, change));
    };
    session.lanes().is_numbered(generation);
    // Changes ahead of the log are told to those who want to hear of them: the log's word of that may not be read yet.
    let known = sharing.version.load(Ordering::Acquire);
    let mut is_moved = false;
    match node.store.session(&sharing.key, known, sharing.idle).await {
        Ok(Look::Session(shared)) => {
            is_moved = shared.holder.is_some_and(|holder| holder != number);
            update(session, *shared);
        }
        Ok(_) => {}
        Err(_) => holds_later(node, session, sharing, generation),
    }
    for text in waiting {
        session.lanes().pass(&text);
    }
    reads_up(node, session, place.or(at)).await;
    if is_moved {
        // The log says nothing of it that is not known already.
        let holder = sharing.known.lock().unwrap_or_else(PoisonError::into_inner).holder;
        session.lanes().silence(holder.is_some_and(|holder| holder != number));
    }
}

/// Tells a session's client what it has missed since this place. `None`: nothing.
async fn reads_up(node: &Arc<Node>, session: &Arc<Session>, place: Option<u64>) {
    let Some(mut place) = place else { return session.lanes().catches_up() };
    let mut all = Vec::new();
    for _ in 0..ATTEMPTS {
        let Ok((changes, last)) = node.store.changes_after(place).await else { break };
        all.extend(changes);
        place = last;
        let turn = node.turn();
        // Otherwise something was told here that is not among them.
        if node.place() <= place {
            session.lanes().tell_ahead(all, place, |change| tell(&session.peer, change));
            drop(turn);
            return;
        }
    }
    // The client hears of some twice rather than of none.
    let _turn = node.turn();
    all.push((place, Change::All));
    session.lanes().tell_ahead(all, place, |change| tell(&session.peer, change));
}

/// The store learns that this process has the stream as soon as it takes it, unless there is a newer one by then.
fn holds_later(node: &Arc<Node>, session: &Arc<Session>, sharing: &Sharing, generation: u64) {
    if sharing.holds.swap(generation + 1, Ordering::AcqRel) == 0 {
        runtime::spawn(hold_later(Arc::downgrade(node), Arc::downgrade(session)));
    }
}

fn hold_later(node: Weak<Node>, session: Weak<Session>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let mut least = PAUSE;
        loop {
            let Some(pause) = node.upgrade().map(|node| node.store.pause().unwrap_or(least).max(least)) else { return };
            tokio::time::sleep(pause).await;
            least = (least * 2).min(LONGEST);
            let store = node.upgrade().map(|node| node.store.clone());
            let Some((store, session)) = store.zip(session.upgrade()) else { return };
            let Some(sharing) = session.shared.get() else { return };
            // Until the store answers, the client hears of changes at once.
            let known = sharing.version.load(Ordering::Acquire);
            let is_away = store.session(&sharing.key, known, sharing.idle).await.is_err();
            if is_away && session.lanes().has_stream() {
                continue;
            }
            let wanted = sharing.holds.swap(0, Ordering::AcqRel);
            if let Some(node) = node.upgrade().filter(|_| session.lanes().has_stream())
                && wanted == session.lanes().generation() + 1
            {
                session.lanes().falls_behind(0);
                hold(&node, &session, None).await;
            }
            return;
        }
    })
}

fn tell(peer: &Arc<Peer>, change: Change) {
    match change {
        Change::List(kind) => {
            if let Some(kind) = Kind::parse(&kind) {
                peer.handle(Input::Changed(kind));
            }
        }
        Change::Resource(uri) => peer.handle(Input::Updated(uri)),
        Change::All => {
            Kind::ALL.into_iter().for_each(|kind| peer.handle(Input::Changed(kind)));
            peer.handle(Input::Missed);
        }
    }
}

impl Sharing {
    fn lock(&self) -> MutexGuard<'_, SharedSession> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what all processes know, what they are to know, and the count of what the client has told here.
    fn compared(&self, session: &Session) -> (SharedSession, SharedSession, u64) {
        session.peer.look(|connection| {
            let before = self.lock().clone();
            let mut shared = before.clone();
            if let Some(told) = connection.told() {
                shared.level = told.level.map(|level| level.as_str().to_owned());
                shared.initialized = told.initialized;
                shared.subscriptions = told.subscriptions;
            }
            if let Some(revision) = connection.revision() {
                shared.revision = revision.as_str().to_owned();
            }
            (before, shared, connection.told_count())
        })
    }

    /// Returns true if the store has all that the client has told here.
    fn is_told(&self, session: &Session) -> bool {
        session.peer.told_count() == self.told.load(Ordering::Acquire)
    }

    /// The store has what the client has told here, up to this count.
    fn remember(&self, shared: SharedSession, told: u64) {
        let mut known = self.lock();
        if shared.version >= known.version {
            self.learn(&mut known, shared);
        }
        drop(known);
        self.told.store(told, Ordering::Release);
    }

    /// All processes know this.
    fn learn(&self, known: &mut SharedSession, shared: SharedSession) {
        self.version.store(shared.version, Ordering::Release);
        *known = shared;
    }
}

/// The number of the process that made an event.
pub(super) fn number_of(id: EventId) -> u32 {
    let (Stream::Request(stream) | Stream::Standalone(stream)) = id.stream;
    u32::try_from(stream >> EVENT_BITS).unwrap_or(0)
}

/// Returns true if a GET takes up the stream of an answer, and no standalone one.
pub(super) fn takes_up_an_answer(session: &Session, headers: &HeaderMap) -> bool {
    let last = Single::of(headers, &LAST_EVENT_ID).text().and_then(EventId::parse);
    session.lanes().is_resumable() && last.is_some_and(|last| matches!(last.stream, Stream::Request(_)))
}

/// Returns true for an event of an answer that another process had, or this one in an earlier copy of the session.
pub(super) fn is_answered_elsewhere(session: &Session, id: EventId) -> bool {
    let is_named = number_of(id) > 0 && matches!(id.stream, Stream::Request(_));
    is_named && session.shared.get().is_some() && !session.lanes().knows(id)
}

/// Returns true for an event of a standalone stream that another process made, or this one in an earlier copy of the session.
pub(super) fn is_of_another(session: &Session, id: EventId) -> bool {
    let is_named = number_of(id) > 0 && matches!(id.stream, Stream::Standalone(_));
    is_named && session.shared.get().is_some() && !session.lanes().knows(id)
}

/// Returns the place up to which a client knows all changes that comes from another process. 0: it says nothing of that.
pub(super) fn last_place(session: &Session, headers: &HeaderMap) -> u64 {
    let last = Single::of(headers, &LAST_EVENT_ID).text().and_then(EventId::parse);
    last.filter(|last| is_of_another(session, *last)).map_or(0, |last| last.place)
}

/// Passes one message on, if it is for another process.
async fn pass_on(node: &Arc<Node>, sharing: &Sharing, session: &Session, message: &Message) -> Result<bool, Refusal> {
    let own = node.number.get();
    let text = || message.encode().into_bytes();
    match message {
        Message::Response { id, .. } | Message::Error { id: Some(id), .. } => {
            let Id::Number(id) = id.clone().counted() else { return Ok(false) };
            post(node, own, Number::of(id), &sharing.key, &text()).await
        }
        Message::Notification { method, params: Some(params) } if method == "notifications/progress" => {
            let Ok(Token { progress_token: Some(token) }) = params.to() else { return Ok(false) };
            let Id::Number(id) = token.counted() else { return Ok(false) };
            post(node, own, Number::of(id), &sharing.key, &text()).await
        }
        Message::Notification { method, params: Some(params) } if method == "notifications/cancelled" => {
            let Ok(Cancelled { request_id: Some(id), reason }) = params.to() else { return Ok(false) };
            if session.peer.works_on(&id) {
                return Ok(false);
            }
            // All processes read it, so it is short.
            let reason = reason.map(|reason| shortened(&reason, MAX_REASON).into_owned());
            let params = RawJson::from_value(&Cancelled { request_id: Some(id), reason });
            let text = jsonrpc::encode_notification(method, Some(&params));
            node.store.to_all(&node.id, &sharing.key, &text).await.map(|()| true).map_err(|_| away())
        }
        _ => Ok(false),
    }
}

async fn post(node: &Arc<Node>, own: u32, number: u32, key: &str, text: &Bytes) -> Result<bool, Refusal> {
    if number == 0 || number == own {
        return Ok(false);
    }
    match node.store.post(number, key, text).await {
        // The question of a process that is gone needs no answer.
        Ok(Posted::Sent | Posted::Nobody) => Ok(true),
        Ok(Posted::Full) => {
            let message = "too many messages wait for the process that asked: try again later";
            Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message))
        }
        Err(_) => Err(away()),
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Token {
    progress_token: Option<Id>,
}

#[derive(serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Cancelled {
    request_id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Inner {
    /// Another process knows something new of a session. `is_named`: the log says so.
    fn looks<'a>(&'a self, session: &'a str, is_named: bool) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async move {
            let Some(copy) = self.sessions.of_key(session) else { return };
            // Held by nothing that waits, so that the process can leave the others meanwhile.
            let store = Node::of(&self.server).map(|node| node.store.clone());
            let (Some(sharing), Some(store)) = (copy.shared.get(), store) else { return };
            let known = sharing.version.load(Ordering::Acquire);
            let (before, was_silent) = (copy.lanes().settled(), copy.lanes().is_silent());
            // Later entries of the log may depend on it, and the log came from the store a moment ago.
            let mut look = store.session(session, known, self.idle_millis()).await;
            for _ in 0..ATTEMPTS {
                if look.is_ok() {
                    break;
                }
                tokio::time::sleep(store.pause().unwrap_or(PAUSE).max(PAUSE)).await;
                look = store.session(session, known, self.idle_millis()).await;
            }
            let Some(node) = Node::of(&self.server) else { return };
            match look {
                Ok(Look::Session(shared)) => {
                    let is_free = shared.holder.is_none();
                    update(&copy, *shared);
                    if is_free && before.is_some() && copy.lanes().settled() == before {
                        // The other one has gone: this stream goes on where it ended. A newer one sees to that itself.
                        // Or the store had lost the session, whose client was told here all the time.
                        let place = {
                            let _turn = node.turn();
                            copy.lanes().falls_behind(0);
                            (!was_silent).then(|| node.place())
                        };
                        hold(&node, &copy, place).await;
                    }
                }
                Ok(Look::Ended) => {
                    self.sessions.remove(&copy.id);
                    copy.end(End::SessionEnded, "the client ended the session");
                }
                // It was there when the log named it, and this process hears of it late.
                Ok(Look::Unknown) if is_named => {
                    // A store that has lost the log, too, has lost everything: the next request puts the session back.
                    let after = node.store.changes_after(node.place()).await;
                    if after.is_ok_and(|(changes, _)| !matches!(&changes[..], [(_, Change::All)])) {
                        self.sessions.remove(&copy.id);
                        copy.end(End::SessionEnded, "the session has ended");
                    }
                }
                _ => {}
            }
        })
    }
}

impl Mailbox for Inner {
    fn changed<'a>(&'a self, session: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.looks(session, true)
    }

    fn missed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            self.keep_pairs().await;
            let keys = self.sessions.busy_keys();
            stream::iter(&keys).for_each_concurrent(LOOKS, |key| self.looks(key, false)).await;
        })
    }

    fn heard_from_client(&self, session: &str, text: &Bytes) {
        let Some(copy) = self.sessions.of_key(session) else { return self.heard_for_pair(session, text) };
        if let Ok(Decoded::One(message)) = jsonrpc::decode(text, &self.limits)
            && !matches!(message, Message::Request { .. })
        {
            copy.peer.handle(Input::Received(message));
        }
    }

    fn tell_late(&self, change: &Change, number: u64) {
        for copy in self.sessions.busy_keys().iter().filter_map(|key| self.sessions.of_key(key)) {
            // Others were told at once.
            if copy.lanes().began() >= number {
                tell(&copy.peer, change.clone());
            }
        }
    }

    fn pass_to_client(&self, session: &str, text: &Bytes) {
        if let Some(copy) = self.sessions.of_key(session) {
            copy.lanes().pass(text);
        }
    }

    fn noted(&self, session: &str, text: &Bytes, is_last: bool) -> bool {
        super::feeds::noted(self, session, text, is_last)
    }
}
