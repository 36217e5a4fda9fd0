use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use smallvec::SmallVec;

use super::waiter::{Progress, Waiter};
use super::{clock, now};
use crate::budget::{Kept, Owner};
use crate::call::{Context, SessionSlot, Told};
use crate::client::Tapping;
use crate::error::{Error, Result};
#[cfg(feature = "stdio")]
use crate::jsonrpc::DecodeError;
use crate::jsonrpc::{Decoded, Id, Limits, RawJson};
#[cfg(feature = "http")]
use crate::protocol::Arrival;
use crate::protocol::revision::{Era, Revision};
use crate::protocol::{
    self, Action, Call, CallId, Connection, Input, Invocation, LazyMap, NotificationCause, Opening, Origin, Outbound,
    RequestContext, Route,
};
use crate::report;

/// Destination of messages. Called outside every lock, one batch at a time, in order.
pub(crate) trait Sink: Send + Sync {
    /// Sends these messages. Must not wait for the peer.
    fn send(&self, batch: Vec<Outbound>);
    /// Nobody waits for this request of ours any more.
    fn abandon(&self, _id: &Id) {}
    /// The request that came this way is cancelled: nothing more will be sent on it.
    fn unanswered(&self, _route: Route) {}
    /// The answer to the request that came this way may wait for its reader to come back.
    fn pause(&self, _route: Route) {}
    /// Returns true if the peer reads what it is sent, so that little of it waits.
    fn has_room(&self) -> bool {
        true
    }
    /// Returns true if what belongs to no request reaches the peer at once, and does not wait for a stream.
    fn is_reachable(&self) -> bool {
        true
    }
    /// Returns true if another process may have the stream of what belongs to no request: it is told to its peer, if that is
    /// so.
    fn passes_on(&self) -> bool {
        false
    }
    /// Returns true if somebody reads what goes out before the answer to the request that came this way.
    fn is_read(&self, _route: Route) -> bool {
        true
    }
    /// Messages that wait for a stream may go out before the answer to the request that came this way.
    fn take_up(&self, _route: Route) {}
    /// The peer's process has ended, and is needed: starts another, and says when it is there (`Input::Restarted`).
    fn start(&self) {}
    /// The connection has ended; nothing more will be sent.
    fn close(&self) {}
}

/// Service that runs the peer's requests: a server's router, or a client's answers.
pub(crate) trait Service: Send + Sync {
    /// Runs a request; its answer comes through [`Peer::complete`].
    fn dispatch(&self, peer: &Arc<Peer>, call: Box<Call>);
    /// A notification for the user.
    fn notified(&self, _method: &str, _params: Option<RawJson>, _cause: &NotificationCause) {}
    /// A client is gone that was subscribed to these; the context is that of its session.
    fn unsubscribed(&self, _peer: &Arc<Peer>, _context: RequestContext, _uris: Vec<Box<str>>) {}
    /// Something is wrong that is no reason to fail.
    fn warning(&self, _message: &str) {}
    /// The cached answers to this method are out of date.
    fn outdated(&self, _method: &str) {}
    /// Somebody else is logged in at the server, or may do more there.
    fn logged_in(&self) {}
    /// The client's roots are others now.
    fn roots_changed(&self, _peer: &Arc<Peer>, _context: RequestContext) {}
    /// A notification outside the protocol.
    fn passed_on(&self, _peer: &Arc<Peer>, _context: RequestContext, _params: Option<RawJson>) {}
    /// The negotiation of a client succeeded.
    fn opened(&self, _peer: &Arc<Peer>, _opening: Opening) {}
    /// The connection ended.
    fn closed(&self, _peer: &Arc<Peer>, _reason: &Error, _relaunch: bool) {}
    /// The connection goes on with a new session.
    fn session_lost(&self, _peer: &Arc<Peer>) {}
    /// Returns true if the peer has something here that it can come back for although no connection is open.
    fn keeps(&self, _peer: &Peer) -> bool {
        false
    }
}

pub(super) struct State {
    pub(super) connection: Connection,
    outbox: Vec<Outbound>,
    /// The bytes in it.
    held: usize,
    /// Somebody is sending; whoever finds this set leaves its messages in the outbox.
    flushing: bool,
    corked: bool,
    end: End,
    /// The peer is to be started again, as soon as the outbox is empty: what is in it was for the one before.
    starts: bool,
    pub(super) waiters: LazyMap<CallId, Waiter>,
    /// Receivers of progress that still comes for answered requests.
    pub(super) lasting: LazyMap<CallId, Progress>,
    /// A list, because it is short and lives long.
    pub(super) running: SmallVec<[Context; 1]>,
    last_call: u64,
    /// The one timer that is set, and when it goes off.
    #[cfg(feature = "runtime")]
    timer: Option<(Duration, tokio::task::AbortHandle)>,
    /// A request of ours began, which may be due before that.
    began: bool,
    /// A thread waits for `changed`.
    watched: bool,
    /// A full connection stayed full for so long that its reader no longer waits.
    stuck: bool,
}

/// State of the sink's end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    No,
    /// As soon as the outbox is empty.
    Due,
    Done,
}

/// With more bytes than this, messages are no longer held back.
const MAX_HELD: usize = 256 << 10;

impl State {
    fn must_wait(&self) -> bool {
        self.corked && self.held < MAX_HELD && self.end == End::No
    }

    pub(super) fn stop_running(&mut self, call: CallId) -> Option<Context> {
        let place = self.running.iter().position(|context| context.call() == call)?;
        let context = self.running.swap_remove(place);
        if self.running.is_empty() && self.running.capacity() > 16 {
            self.running = SmallVec::new();
        }
        Some(context)
    }
}

/// One live link with everything that runs on it.
pub(crate) struct Peer {
    state: Mutex<State>,
    changed: Condvar,
    service: Arc<dyn Service>,
    pub(super) sink: Arc<dyn Sink>,
    limits: Limits,
    pub(super) session: SessionSlot,
    /// A charge for the facts of the peer's session, and its subscriptions.
    pub(super) kept: Mutex<Kept>,
    /// Unlike any other's of the process.
    pub(super) number: u64,
    /// Sees what passes, if somebody wants to.
    tap: OnceLock<Tapping>,
}

static LAST: AtomicU64 = AtomicU64::new(0);

impl Peer {
    pub(crate) fn new(
        connection: Connection,
        limits: Limits,
        service: Arc<dyn Service>,
        sink: impl FnOnce(&Weak<Self>) -> Arc<dyn Sink>,
    ) -> Arc<Self> {
        let kept = Mutex::new(Kept::new(Owner::numbered(connection.share())));
        Arc::new_cyclic(|weak| Self {
            state: Mutex::new(State {
                connection,
                outbox: Vec::new(),
                held: 0,
                flushing: false,
                corked: false,
                end: End::No,
                starts: false,
                waiters: LazyMap::new(),
                lasting: LazyMap::new(),
                running: SmallVec::new(),
                last_call: 0,
                #[cfg(feature = "runtime")]
                timer: None,
                began: false,
                watched: false,
                stuck: false,
            }),
            changed: Condvar::new(),
            service,
            sink: sink(weak),
            limits,
            session: SessionSlot::new(),
            kept,
            number: LAST.fetch_add(1, Ordering::Relaxed),
            tap: OnceLock::new(),
        })
    }

    /// Shows everything that passes to this, before anything does.
    #[cfg_attr(not(feature = "runtime"), expect(dead_code, reason = "only connecting asks"))]
    pub(crate) fn tap_with(&self, tap: Option<Tapping>) {
        if let Some(tap) = tap {
            let _ = self.tap.set(tap);
        }
    }

    /// Returns what sees everything that passes.
    pub(crate) fn tap(&self) -> Option<&Tapping> {
        self.tap.get()
    }

    /// Keeps more bytes for the peer, for as long as it is there.
    #[cfg(feature = "http")]
    pub(crate) fn keeps(&self, bytes: usize) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).force(bytes);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- in ---------------------------------------------------------------------------------------------------

    /// One frame came in: a line, a body, an event's data.
    pub(crate) fn receive(self: &Arc<Self>, frame: &Bytes) {
        self.receive_of(frame, None);
    }

    /// As [`receive`](Self::receive), from a peer in this process, with what caused it.
    pub(crate) fn receive_of(self: &Arc<Self>, frame: &Bytes, cause: Option<Origin>) {
        if let Some(tap) = self.tap() {
            tap.passes(false, frame);
        }
        let (input, head) = match protocol::decode(frame, &self.limits_of(frame)) {
            Ok((Decoded::One(message), head)) => (Input::Received(message), head),
            Ok((Decoded::Batch(parts), _)) => (Input::Batch(parts), None),
            Err(error) => (Input::Invalid(error), None),
        };
        let mut state = self.lock();
        state.connection.set_congested(false);
        let actions = state.connection.read_of(now(), cause, head, input);
        self.act(state, actions);
    }

    /// As [`receive`](Self::receive), for a frame that may be no message.
    ///
    /// # Errors
    /// The reason why it is none, of which the connection is told nothing.
    #[cfg(feature = "stdio")]
    pub(crate) fn try_receive(self: &Arc<Self>, frame: &Bytes) -> Result<(), DecodeError> {
        let (decoded, head) = protocol::decode(frame, &self.limits_of(frame))?;
        self.take_with(decoded, head);
        Ok(())
    }

    /// Returns the limits of a message that begins like this.
    fn limits_of(&self, frame: &Bytes) -> Limits {
        let mut limits = self.limits;
        if frame.trim_ascii_start().first() == Some(&b'[') && !self.takes_batches() {
            limits.max_batch = 0;
        }
        limits
    }

    /// Messages came in.
    #[cfg(feature = "stdio")]
    pub(crate) fn take(self: &Arc<Self>, decoded: Decoded) {
        self.take_with(decoded, None);
    }

    #[cfg(feature = "stdio")]
    fn take_with(self: &Arc<Self>, decoded: Decoded, head: Option<Box<protocol::Head>>) {
        let input = match decoded {
            Decoded::One(message) => Input::Received(message),
            Decoded::Batch(parts) => Input::Batch(parts),
        };
        let mut state = self.lock();
        state.connection.set_congested(false);
        let actions = state.connection.read(now(), head, input);
        self.act(state, actions);
    }

    /// The server wrote what is no message.
    #[cfg(feature = "stdio")]
    pub(crate) fn unreadable(self: &Arc<Self>, text: &str) {
        self.handle(Input::Unreadable(text.to_owned()));
    }

    /// Feeds the connection and does what it says.
    pub(crate) fn handle(self: &Arc<Self>, input: Input) {
        let congested =
            matches!(input, Input::Updated(_) | Input::Missed | Input::Task { .. } | Input::Announce(_) | Input::Tick)
                && !self.sink.has_room();
        let mut state = self.lock();
        state.connection.set_congested(congested);
        let actions = state.connection.handle(now(), input);
        self.act(state, actions);
    }

    /// As [`handle`](Self::handle), for what came with the answer to this request of ours.
    #[cfg(feature = "http")]
    pub(crate) fn handle_with(self: &Arc<Self>, id: &Id, input: Input) {
        let mut state = self.lock();
        let actions = state.connection.handle_with(now(), id, input);
        self.act(state, actions);
    }

    /// As [`handle`](Self::handle), for a message of which the way it came in matters.
    #[cfg(feature = "http")]
    pub(crate) fn arrived(self: &Arc<Self>, arrival: Arrival, input: Input) {
        let mut state = self.lock();
        let actions = state.connection.arrived(now(), arrival, input);
        self.act(state, actions);
    }

    /// Starts a client's negotiation.
    pub(crate) fn open(
        self: &Arc<Self>,
        pinned: Option<Revision>,
        probe_timeout: Duration,
        timeout: Option<Duration>,
        known: Option<Era>,
    ) {
        let mut state = self.lock();
        state.began = true;
        let actions = state.connection.open(now(), pinned, probe_timeout, timeout, known);
        self.act(state, actions);
    }

    /// Ends what lasts in order: this side is about to close.
    #[cfg(feature = "runtime")]
    pub(crate) fn end_streams(self: &Arc<Self>) {
        self.handle(Input::Ending);
    }

    /// The peer is gone.
    pub(crate) fn close(self: &Arc<Self>, reason: &str) {
        self.handle(Input::Closed(reason.to_owned()));
    }

    /// Tells the user of something that is wrong but no reason to fail.
    #[cfg(any(feature = "http", feature = "stdio"))]
    pub(crate) fn warn(&self, message: &str) {
        report::guarded("what hears of warnings", || self.service.warning(message));
    }

    /// Tells the service that the cached answers to this method are out of date.
    #[cfg(feature = "http")]
    pub(crate) fn outdated(&self, method: &str) {
        self.service.outdated(method);
    }

    /// Somebody else is logged in at the server, or may do more there.
    #[cfg(feature = "auth")]
    pub(crate) fn logged_in(&self) {
        self.service.logged_in();
    }

    /// Holds messages back until [`uncork`](Self::uncork), so that the answers to several requests go out at once.
    pub(crate) fn cork(&self) {
        self.lock().corked = true;
    }

    pub(crate) fn uncork(&self) {
        let mut state = self.lock();
        state.corked = false;
        self.flush(state);
    }

    // ---- requests of ours -------------------------------------------------------------------------------------

    /// Sends a request. Dropping the [`Pending`] cancels it.
    pub(crate) fn call(self: &Arc<Self>, make: impl FnOnce(CallId) -> Invocation, waiter: Waiter) -> Pending {
        let mut state = self.lock();
        state.last_call += 1;
        let call = CallId(state.last_call);
        state.waiters.insert(call, waiter);
        state.began = true;
        let actions = state.connection.handle(now(), Input::Call(make(call)));
        self.act(state, actions);
        Pending::new(self, call)
    }

    // ---- requests of the peer ---------------------------------------------------------------------------------

    /// Blocks while the connection is full, at most a second: then the peer's requests are refused instead, so that
    /// its cancellations and answers are still read.
    pub(crate) fn wait_for_room(&self) {
        let state = self.lock();
        if state.stuck || state.connection.awaited() > 0 {
            return;
        }
        let (mut state, full) = self.wait(state, Duration::from_secs(1), |s| s.connection.is_full());
        state.stuck = full;
    }

    /// Blocks until no request of the peer is being worked on and every answer has been given to the sink, at most
    /// `patience`.
    pub(crate) fn wait_until_idle(&self, patience: Duration) {
        let busy = |s: &State| s.connection.in_flight() > 0 || s.flushing || !s.outbox.is_empty();
        drop(self.wait(self.lock(), patience, busy));
    }

    fn wait<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        patience: Duration,
        busy: impl Fn(&State) -> bool,
    ) -> (MutexGuard<'a, State>, bool) {
        state.watched = true;
        let (mut state, outcome) =
            self.changed.wait_timeout_while(state, patience, |s| busy(s)).unwrap_or_else(PoisonError::into_inner);
        state.watched = false;
        (state, outcome.timed_out())
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.lock().connection.in_flight()
    }

    /// Returns true if there is something here that the peer can come back for.
    #[cfg(feature = "http")]
    pub(crate) fn is_kept(&self) -> bool {
        self.service.keeps(self)
    }

    pub(crate) fn awaited(&self) -> usize {
        self.lock().connection.awaited()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().connection.is_full()
    }

    /// Returns true if the connection has ended because the peer was silent for too long.
    #[cfg(feature = "stdio")]
    pub(crate) fn is_lost(&self) -> bool {
        self.lock().connection.is_lost()
    }

    /// Returns true if the revision spoken has batches.
    pub(crate) fn takes_batches(&self) -> bool {
        self.lock().connection.takes_batches()
    }

    pub(crate) fn revision(&self) -> Option<Revision> {
        self.lock().connection.revision()
    }

    /// Returns the number of changes of what the client has told its session.
    #[cfg(feature = "redis")]
    pub(crate) fn told_count(&self) -> u64 {
        self.lock().connection.told_count()
    }

    /// Looks at the connection, which does not change meanwhile.
    #[cfg(feature = "redis")]
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Connection) -> T) -> T {
        look(&self.lock().connection)
    }

    /// Other processes know something else of the connection. Does what it says.
    #[cfg(feature = "redis")]
    pub(crate) fn learn(self: &Arc<Self>, learn: impl FnOnce(&mut Connection) -> Vec<Action>) {
        let mut state = self.lock();
        let actions = learn(&mut state.connection);
        self.act(state, actions);
    }

    /// Returns true if a request of the client with this id is being worked on.
    #[cfg(feature = "redis")]
    pub(crate) fn works_on(&self, id: &Id) -> bool {
        self.lock().connection.works_on(id)
    }

    // ---- doing it ---------------------------------------------------------------------------------------------

    pub(super) fn act<'a>(self: &'a Arc<Self>, mut state: MutexGuard<'a, State>, actions: Vec<Action>) {
        let mut rest: Vec<Work> = Vec::new();
        for action in actions {
            match action {
                Action::Send(outbound) => {
                    state.held += outbound.frame.len();
                    state.outbox.push(outbound);
                }
                Action::Dispatch(call) => rest.push(Work::Dispatch(call)),
                Action::Abort(call, reason) => {
                    if let Some(context) = state.stop_running(call) {
                        rest.push(Work::Abort(context, reason));
                    }
                }
                Action::Resolve(call, outcome) => {
                    if let Some(waiter) = state.waiters.remove(&call) {
                        if let (Some(progress), true) = (&waiter.progress, waiter.lasting && outcome.is_ok()) {
                            state.lasting.insert(call, progress.clone());
                        }
                        rest.push(Work::Resolve(waiter, outcome));
                    }
                }
                Action::Progress(call, params) => {
                    let waiter = state.waiters.get(&call).and_then(|waiter| waiter.progress.clone());
                    if let Some(progress) = waiter.or_else(|| state.lasting.get(&call).cloned()) {
                        rest.push(Work::Progress(progress, params));
                    }
                }
                Action::Told(call, method, params) => {
                    let told = state.waiters.get(&call).and_then(|waiter| waiter.told.clone());
                    rest.extend(told.map(|told| Work::Told(told, method, params)));
                }
                Action::Notified(method, params, cause) => rest.push(Work::Notified(method, params, cause)),
                Action::Abandon(id) => rest.push(Work::Abandon(id)),
                Action::Unanswered(route) => rest.push(Work::Unanswered(route)),
                Action::Unsubscribed(context, uris) => rest.push(Work::Unsubscribed(context, uris)),
                Action::PassedOn(context, params) => rest.push(Work::PassedOn(context, params)),
                Action::RootsChanged(context) => rest.push(Work::RootsChanged(context)),
                Action::Opened(opening) => rest.push(Work::Opened(opening)),
                Action::SessionLost => rest.push(Work::SessionLost),
                Action::Warn(message) => rest.push(Work::Warn(message)),
                Action::Restart => state.starts = true,
                Action::Close { reason, relaunch } => {
                    if state.end == End::No {
                        state.end = End::Due;
                    }
                    rest.push(Work::Close(reason, relaunch));
                }
            }
        }
        if state.watched {
            self.changed.notify_all();
        }
        state.stuck &= state.connection.is_full();
        self.arm(&mut state);
        self.flush(state);
        for work in rest {
            // Whoever reads goes on, and so does the rest: what panics here is the user's.
            report::guarded("a callback", || self.work(work));
        }
    }

    fn work(self: &Arc<Self>, work: Work) {
        match work {
            Work::Dispatch(call) => self.service.dispatch(self, call),
            Work::Abort(context, reason) => context.cancel(reason.as_deref()),
            Work::Resolve(waiter, outcome) => (waiter.done)(outcome),
            Work::Progress(progress, params) => progress(params),
            Work::Told(told, method, params) => told(&method, params),
            Work::Notified(method, params, cause) => self.service.notified(&method, params, &cause),
            Work::Abandon(id) => self.sink.abandon(&id),
            Work::Unanswered(route) => self.sink.unanswered(route),
            Work::Unsubscribed(context, uris) => self.service.unsubscribed(self, *context, uris),
            Work::PassedOn(context, params) => self.service.passed_on(self, *context, params),
            Work::RootsChanged(context) => self.service.roots_changed(self, *context),
            Work::Opened(opening) => self.service.opened(self, opening),
            Work::SessionLost => self.service.session_lost(self),
            Work::Warn(message) => self.service.warning(&message),
            Work::Close(reason, relaunch) => self.service.closed(self, &reason, relaunch),
        }
    }

    /// Sends what is in the outbox and closes the sink when that is due, unless somebody else is at it already.
    fn flush<'a>(&'a self, mut state: MutexGuard<'a, State>) {
        if state.flushing {
            return;
        }
        state.flushing = true;
        while !state.outbox.is_empty() && !state.must_wait() {
            state.held = 0;
            let batch = std::mem::take(&mut state.outbox);
            drop(state);
            if let Some(tap) = self.tap() {
                batch.iter().for_each(|message| tap.passes(true, &message.frame));
            }
            self.sink.send(batch);
            state = self.lock();
        }
        state.flushing = false;
        // Only now: what was answered before the end is not lost to it.
        let ends = state.end == End::Due;
        if ends {
            state.end = End::Done;
        }
        let starts = state.outbox.is_empty() && std::mem::take(&mut state.starts);
        if state.watched {
            self.changed.notify_all();
        }
        drop(state);
        if ends {
            self.sink.close();
        } else if starts {
            self.sink.start();
        }
    }

    #[cfg(feature = "runtime")]
    fn arm(self: &Arc<Self>, state: &mut State) {
        let sooner = state.connection.is_due_sooner() | std::mem::take(&mut state.began);
        if !sooner && state.timer.is_some() {
            return;
        }
        let Some(due) = state.connection.next_tick() else {
            return;
        };
        match &state.timer {
            Some((set, _)) if *set <= due => return,
            Some((_, later)) => later.abort(),
            None => {}
        }
        let peer = Arc::downgrade(self);
        let timer = super::runtime::spawn(async move {
            clock::until(due).await;
            if let Some(peer) = peer.upgrade() {
                let reachable = peer.sink.is_reachable();
                let mut state = peer.lock();
                state.connection.set_reachable(reachable);
                // Another may have been set while this one went off.
                if state.timer.as_ref().is_some_and(|(set, _)| *set == due) {
                    state.timer = None;
                }
                drop(state);
                peer.handle(Input::Tick);
            }
        });
        state.timer = Some((due, timer.abort_handle()));
    }

    #[cfg(not(feature = "runtime"))]
    fn arm(self: &Arc<Self>, _state: &mut State) {}
}

/// A request of ours in flight. Dropped before its answer: the peer is told `cancelled`.
#[must_use]
pub(crate) struct Pending {
    peer: Weak<Peer>,
    call: Option<CallId>,
}

impl Pending {
    pub(super) fn new(peer: &Arc<Peer>, call: CallId) -> Self {
        Self { peer: Arc::downgrade(peer), call: Some(call) }
    }

    fn end(&mut self) {
        let Some(call) = self.call.take() else { return };
        let Some(peer) = self.peer.upgrade() else { return };
        let mut state = peer.lock();
        let (waiter, lasting) = (state.waiters.remove(&call), state.lasting.remove(&call));
        if waiter.is_none() && lasting.is_none() {
            return;
        }
        let actions = state.connection.handle(now(), Input::Cancel(call, None));
        peer.act(state, actions);
        drop((waiter, lasting));
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.end();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Taken only where there are some: a stateless request's connection has none, and ends soon.
        if state.waiters.is_empty() {
            return;
        }
        for (_, waiter) in std::mem::take(&mut state.waiters) {
            (waiter.done)(Err(Error::closed("the connection was dropped")));
        }
    }
}

enum Work {
    Dispatch(Box<Call>),
    Abort(Context, Option<String>),
    Resolve(Waiter, Result<RawJson>),
    Progress(Progress, RawJson),
    Told(Told, String, Option<RawJson>),
    Notified(String, Option<RawJson>, NotificationCause),
    Abandon(Id),
    Unanswered(Route),
    Unsubscribed(Box<RequestContext>, Vec<Box<str>>),
    RootsChanged(Box<RequestContext>),
    PassedOn(Box<RequestContext>, Option<RawJson>),
    Opened(Opening),
    SessionLost,
    Warn(String),
    Close(Error, bool),
}
