use std::time::Duration;

use serde_json::Value;

use super::action::Invocation;
use super::ids::{CallId, Route};
use super::lazy_map::LazyMap;
use super::origin::Origin;
use super::revision::{Method, Revision};
use crate::jsonrpc::{Id, RawJson};

/// A request of the peer that is being worked on.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) id: Id,
    pub(super) method: &'static Method,
    pub(super) revision: Revision,
    pub(super) batch: Option<u64>,
    pub(super) route: Option<Route>,
    pub(super) progress_token: Option<Id>,
    pub(super) progress: f64,
    pub(super) pace: Pace,
    /// Its cause.
    pub(super) origin: Option<Origin>,
}

/// Pace of one request's progress: 64 notifications at once, then 100 a second. A notification that comes too soon
/// waits, and only the newest of them.
#[derive(Debug)]
pub(crate) struct Pace {
    spare: f64,
    since: Duration,
    held: Option<RawJson>,
}

/// Notifications at once.
const BURST: f64 = 64.0;
/// Notifications in a second.
const RATE: f64 = 100.0;

impl Pace {
    pub(crate) fn new() -> Self {
        Self { spare: BURST, since: Duration::ZERO, held: None }
    }

    /// Returns the notification to send now, if any.
    pub(crate) fn offer(&mut self, now: Duration, params: RawJson) -> Option<RawJson> {
        self.earn(now);
        if self.spare < 1.0 {
            self.held = Some(params);
            return None;
        }
        self.spare -= 1.0;
        self.held = None;
        Some(params)
    }

    fn earn(&mut self, now: Duration) {
        self.spare = (self.spare + now.saturating_sub(self.since).as_secs_f64() * RATE).min(BURST);
        self.since = now;
    }

    /// Returns the time at which the waiting notification may be sent.
    pub(crate) fn due(&self) -> Option<Duration> {
        let missing = (1.0 - self.spare).max(0.0);
        self.held.as_ref().map(|_| self.since + Duration::from_secs_f64(missing / RATE) + Duration::from_millis(1))
    }

    /// Returns the notification that has waited, if its time has come.
    pub(crate) fn ripe(&mut self, now: Duration) -> Option<RawJson> {
        self.due().filter(|due| *due <= now)?;
        self.earn(now);
        self.spare -= 1.0;
        self.held.take()
    }

    /// Returns the notification that has waited, because nothing comes after it.
    pub(crate) fn rest(&mut self) -> Option<RawJson> {
        self.held.take()
    }
}

/// The peer's requests in flight: each is answered once. A list, because it is short and lives long.
#[derive(Debug, Default)]
pub(super) struct IncomingTable {
    calls: Vec<(CallId, Incoming)>,
}

impl IncomingTable {
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn has(&self, id: &Id) -> bool {
        self.calls.iter().any(|(_, incoming)| incoming.id == *id)
    }

    pub(super) fn has_call(&self, call: CallId) -> bool {
        self.calls.iter().any(|(c, _)| *c == call)
    }

    pub(super) fn insert(&mut self, call: CallId, incoming: Incoming) {
        self.calls.push((call, incoming));
    }

    pub(super) fn get(&self, call: CallId) -> Option<&Incoming> {
        self.calls.iter().find(|(c, _)| *c == call).map(|(_, incoming)| incoming)
    }

    pub(super) fn get_mut(&mut self, call: CallId) -> Option<&mut Incoming> {
        self.calls.iter_mut().find(|(c, _)| *c == call).map(|(_, incoming)| incoming)
    }

    /// Returns the time at which progress that has to wait may be sent.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.calls.iter().filter_map(|(_, incoming)| incoming.pace.due()).min()
    }

    /// Progress that has waited and may be sent now.
    pub(super) fn ripe(&mut self, now: Duration) -> Vec<(CallId, RawJson)> {
        self.calls.iter_mut().filter_map(|(call, incoming)| Some((*call, incoming.pace.ripe(now)?))).collect()
    }

    pub(super) fn remove(&mut self, call: CallId) -> Option<Incoming> {
        let place = self.calls.iter().position(|(c, _)| *c == call)?;
        Some(self.take(place).1)
    }

    pub(super) fn remove_id(&mut self, id: &Id) -> Option<(CallId, Incoming)> {
        let place = self.calls.iter().position(|(_, incoming)| incoming.id == *id)?;
        Some(self.take(place))
    }

    fn take(&mut self, place: usize) -> (CallId, Incoming) {
        let taken = self.calls.swap_remove(place);
        // An idle connection should not keep what a burst needed.
        if self.calls.is_empty() && self.calls.capacity() > 16 {
            self.calls = Vec::new();
        }
        taken
    }

    pub(super) fn drain(&mut self) -> Vec<CallId> {
        std::mem::take(&mut self.calls).into_iter().map(|(call, _)| call).collect()
    }
}

/// The progress that was heard last.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heard(Option<f64>);

impl Heard {
    /// Returns true if this is more: a peer must not say less, nor the same again (specification, progress).
    pub(super) fn grows(&mut self, progress: &Value) -> bool {
        let Some(progress) = progress.as_f64() else { return true };
        let grows = self.0.is_none_or(|before| progress > before);
        if grows {
            self.0 = Some(progress);
        }
        grows
    }
}

/// A request of ours that waits for its answer.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) call: CallId,
    pub(super) method: String,
    pub(super) params: Option<RawJson>,
    /// Restarted by progress.
    pub(super) timeout: Option<Duration>,
    pub(super) timeout_option: &'static str,
    pub(super) max_timeout: Option<Duration>,
    pub(super) deadline: Option<Duration>,
    /// Not restarted by anything.
    pub(super) hard_deadline: Option<Duration>,
    pub(super) wants_progress: bool,
    /// Progress that the peer has reported.
    pub(super) progress: Heard,
    /// Its progress is heard after its answer, too.
    pub(super) lasting: bool,
    /// It opens a listen stream.
    pub(super) listens: bool,
    /// A result of any type is what the caller wants.
    pub(super) any_result: bool,
    /// Somebody else judges a form's answer.
    pub(super) judged: bool,
    /// The peer's request it belongs to.
    pub(super) related: Option<CallId>,
    pub(super) resent: bool,
    /// It may be sent again although nobody knows whether it was done.
    pub(super) idempotent: bool,
    /// The session it went out in, counted.
    pub(super) session: u64,
    /// The caller has asked for another method; this one's result means nothing to the caller.
    pub(super) stands_in: bool,
    /// Its cause.
    pub(super) origin: Option<Origin>,
    /// Its session was lost: so long it is waited for.
    pub(super) orphaned: Option<Duration>,
}

impl Outgoing {
    /// From now on its time is running.
    pub(super) fn new(of: Invocation, now: Duration) -> Self {
        let idempotent = of.idempotent || Method::find(&of.method).is_some_and(|row| row.idempotent);
        Self {
            deadline: after(now, of.timeout),
            hard_deadline: after(now, of.max_timeout),
            call: of.call,
            method: of.method,
            params: of.params,
            timeout: of.timeout,
            timeout_option: of.timeout_option,
            max_timeout: of.max_timeout,
            wants_progress: of.progress,
            progress: Heard::default(),
            lasting: of.lasting && of.progress,
            listens: of.listens,
            any_result: of.any_result,
            judged: of.judged,
            related: of.related,
            resent: false,
            idempotent,
            session: 0,
            stands_in: false,
            origin: of.origin,
            orphaned: None,
        }
    }

    /// Returns the end of its time; `patient`: only times that nothing restarts count.
    pub(super) fn due(&self, patient: bool) -> Option<Duration> {
        let deadline = self.deadline.filter(|_| !patient);
        deadline.into_iter().chain(self.hard_deadline).chain(self.orphaned).min()
    }

    pub(super) fn restart(&mut self, now: Duration) {
        self.deadline = after(now, self.timeout);
    }
}

/// A time beyond the clock's end never comes.
fn after(now: Duration, timeout: Option<Duration>) -> Option<Duration> {
    timeout.and_then(|t| now.checked_add(t))
}

/// Our requests in flight. Ids are a counter that is never reused on a connection.
#[derive(Debug, Default)]
pub(super) struct OutgoingTable {
    calls: LazyMap<i64, Outgoing>,
    by_call: LazyMap<CallId, i64>,
    last: i64,
}

impl OutgoingTable {
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn insert(&mut self, outgoing: Outgoing) -> i64 {
        self.last += 1;
        self.by_call.insert(outgoing.call, self.last);
        self.calls.insert(self.last, outgoing);
        self.last
    }

    /// The ids of the next requests follow this number.
    #[cfg(feature = "redis")]
    pub(super) fn number_from(&mut self, last: i64) {
        self.last = last;
    }

    /// Returns true if a request has had this id, waiting or not.
    pub(super) fn has_given(&self, id: &Id) -> bool {
        matches!(id, Id::Number(n) if (1..=self.last).contains(n))
    }

    pub(super) fn has(&self, id: &Id) -> bool {
        matches!(id, Id::Number(n) if self.calls.contains_key(n))
    }

    pub(super) fn get_mut(&mut self, id: &Id) -> Option<&mut Outgoing> {
        match id {
            Id::Number(n) => self.calls.get_mut(n),
            Id::String(_) => None,
        }
    }

    /// Returns the cause of this request.
    pub(super) fn origin_of(&self, id: &Id) -> Option<Origin> {
        let Id::Number(n) = id else { return None };
        self.calls.get(n)?.origin.clone()
    }

    /// Returns the cause of the only request that somebody waits for.
    pub(super) fn only_origin(&self, nobodys: &[CallId]) -> Option<Origin> {
        let mut waited = self.calls.values().filter(|outgoing| !nobodys.contains(&outgoing.call));
        let first = waited.next()?;
        if waited.next().is_some() { None } else { first.origin.clone() }
    }

    pub(super) fn remove(&mut self, id: &Id) -> Option<Outgoing> {
        let Id::Number(n) = id else { return None };
        let outgoing = self.calls.remove(n)?;
        self.by_call.remove(&outgoing.call);
        Some(outgoing)
    }

    pub(super) fn remove_call(&mut self, call: CallId) -> Option<(i64, Outgoing)> {
        let id = self.by_call.remove(&call)?;
        self.calls.remove(&id).map(|outgoing| (id, outgoing))
    }

    pub(super) fn drain(&mut self) -> Vec<Outgoing> {
        self.by_call.clear();
        std::mem::take(&mut self.calls).into_iter().map(|(_, outgoing)| outgoing).collect()
    }

    /// Everything has as much time as if it had just been sent.
    pub(super) fn restart_all(&mut self, now: Duration) {
        self.calls.values_mut().for_each(|outgoing| outgoing.restart(now));
    }

    /// Their session is over.
    pub(super) fn orphan_all(&mut self, until: Duration) {
        self.calls.values_mut().for_each(|outgoing| outgoing.orphaned = Some(until));
    }

    /// The ids whose time is up.
    pub(super) fn overdue(&self, now: Duration, patient: bool) -> Vec<i64> {
        self.calls.iter().filter(|(_, o)| o.due(patient).is_some_and(|due| due <= now)).map(|(id, _)| *id).collect()
    }

    pub(super) fn next_due(&self, patient: bool) -> Option<Duration> {
        self.calls.values().filter_map(|outgoing| outgoing.due(patient)).min()
    }
}
