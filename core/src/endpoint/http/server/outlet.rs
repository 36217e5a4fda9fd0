use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::budget::{Charge, Owner, STEP};
use crate::driver::Sink;
use crate::protocol::{Outbound, Route, Sent};
use crate::store::{Event, EventId};

/// With so many messages waiting, a reader is slow.
const FEW: usize = 16;

/// With more bytes than this waiting, notifications are dropped; one alone may be longer.
pub(super) const MAX_WAITING: usize = 1 << 20;

/// Messages that go out on one HTTP response, then the answer to the request. Written from any thread, read by the
/// response.
pub(super) struct Outlet {
    state: Mutex<State>,
    /// The most notifications that wait for a slow reader.
    limit: usize,
    /// The owner of the bytes that wait.
    owner: Owner,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Event>,
    /// The bytes in them.
    waiting: usize,
    /// For more than a step of them.
    charge: Option<Charge>,
    answer: Option<Answer>,
    end: Option<End>,
    waker: Option<Waker>,
}

impl State {
    fn has_room(&self, limit: usize) -> bool {
        self.messages.len() < limit && self.waiting < MAX_WAITING
    }

    /// Returns true if the budget has room for so many bytes more.
    fn is_paid(&mut self, more: usize, owner: Owner) -> bool {
        let waiting = self.waiting + more;
        waiting <= STEP || self.charge.get_or_insert_with(|| Charge::new(owner)).fit(waiting)
    }

    /// Charges for more bytes that wait, in any case.
    fn pays_anyway(&mut self, more: usize, owner: Owner) {
        let waiting = self.waiting + more;
        if waiting > STEP {
            let charge = self.charge.get_or_insert_with(|| Charge::new(owner));
            charge.force(waiting.saturating_sub(charge.bytes()));
        }
    }

    /// Counts bytes that do not wait any more.
    fn read(&mut self, less: usize) {
        self.waiting -= less;
        if self.waiting <= STEP {
            self.charge = None;
        } else if let Some(charge) = self.charge.as_mut().filter(|charge| charge.bytes() > self.waiting) {
            charge.fit(self.waiting);
        }
    }
}

/// The answer to what came in.
#[derive(Debug)]
pub(super) struct Answer {
    /// Its id on a stream that can be resumed.
    pub(super) id: Option<EventId>,
    pub(super) text: Bytes,
    /// The JSON-RPC error's code.
    pub(super) code: Option<i64>,
    /// Refused before anything was run.
    pub(super) early: bool,
}

/// Reason why nothing more comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The answer was taken.
    Answered,
    /// The client has cancelled.
    Cancelled,
    /// The session has ended.
    SessionEnded,
    /// The server was closed.
    ServerClosed,
    /// The reader is too slow.
    TooSlow,
    /// The client is to ask for the rest later.
    Paused,
    /// The rest goes out elsewhere.
    Moved,
    /// Somebody else has come, and its holder has the most.
    MadeRoom,
    /// The process that answers was not heard of any more, or something was lost on the way.
    #[cfg(feature = "redis")]
    Unheard,
}

impl End {
    /// For those who wait for an answer.
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::ServerClosed => "the server was closed",
            _ => "the session has ended",
        }
    }
}

/// Result of [`Outlet::poll`].
#[derive(Debug)]
pub(super) enum Next {
    Message(Event),
    Answer(Answer),
    End(End),
}

/// A reader that is to be woken, once no lock is held.
#[must_use]
pub(super) struct Wake(Option<Waker>);

impl Wake {
    pub(super) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

impl Outlet {
    /// `limit` notifications may wait for the reader.
    pub(super) fn new(limit: usize, owner: Owner) -> Self {
        Self { state: Mutex::default(), limit, owner }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state; the reader is still to be woken.
    fn change(&self, change: impl FnOnce(&mut State) -> bool) -> Option<Wake> {
        let mut state = self.lock();
        if state.answer.is_some() || state.end.is_some() || !change(&mut state) {
            return None;
        }
        Some(Wake(state.waker.take()))
    }

    /// A message before the answer, for somebody who holds a lock. `None`: it has no place any more, or too many wait.
    pub(super) fn put(&self, message: Event, droppable: bool) -> Option<Wake> {
        self.change(|state| {
            if !droppable {
                state.pays_anyway(message.text.len(), self.owner);
            }
            let fits = !droppable || (state.has_room(self.limit) && state.is_paid(message.text.len(), self.owner));
            if fits {
                state.waiting += message.text.len();
                state.messages.push_back(message);
            }
            fits
        })
    }

    /// A message before the answer. `false`: it has no place any more, or too many wait.
    pub(super) fn message(&self, message: Event, droppable: bool) -> bool {
        self.put(message, droppable).map(Wake::wake).is_some()
    }

    /// The answer; nothing comes after it.
    pub(super) fn answer(&self, mut answer: Answer) {
        if answer.text.len() > STEP {
            // Until its reader has taken it.
            let mut charge = Charge::new(self.owner);
            charge.force(answer.text.len());
            answer.text = charge.of(answer.text);
        }
        let changed = self.change(|state| {
            state.answer = Some(answer);
            true
        });
        changed.into_iter().for_each(Wake::wake);
    }

    /// Nothing more comes, and there will be no answer.
    pub(super) fn end(&self, end: End) {
        let changed = self.change(|state| {
            state.end = Some(end);
            true
        });
        changed.into_iter().for_each(Wake::wake);
    }

    /// Nothing more comes, and what was not read goes elsewhere. For somebody who holds a lock.
    pub(super) fn retire(&self, end: End) -> (VecDeque<Event>, Option<Wake>) {
        let wake = self.change(|state| {
            state.end = Some(end);
            true
        });
        let mut state = self.lock();
        let all = state.waiting;
        state.read(all);
        (std::mem::take(&mut state.messages), wake)
    }

    /// Returns true if the answer is there.
    pub(super) fn is_answered(&self) -> bool {
        self.lock().answer.is_some()
    }

    /// Returns true if nothing more can come in.
    #[cfg(feature = "redis")]
    pub(super) fn is_over(&self) -> bool {
        let state = self.lock();
        state.answer.is_some() || state.end.is_some()
    }

    /// Returns true if the rest goes out elsewhere.
    #[cfg(feature = "redis")]
    pub(super) fn has_moved(&self) -> bool {
        self.lock().end == Some(End::Moved)
    }

    /// Returns true if this message waits for the reader already.
    pub(super) fn contains(&self, text: &[u8]) -> bool {
        self.lock().messages.iter().any(|m| m.text == text)
    }

    /// Returns true if one more notification fits.
    pub(super) fn has_room(&self) -> bool {
        self.lock().has_room(self.limit)
    }

    /// Returns the number of messages that wait for the reader.
    pub(super) fn len(&self) -> usize {
        self.lock().messages.len()
    }

    /// The next thing to send, if there is one already.
    pub(super) fn next(&self) -> Option<Next> {
        Self::take(&mut self.lock())
    }

    fn take(state: &mut State) -> Option<Next> {
        if let Some(message) = state.messages.pop_front() {
            state.read(message.text.len());
            return Some(Next::Message(message));
        }
        if let Some(answer) = state.answer.take() {
            state.end = Some(End::Answered);
            return Some(Next::Answer(answer));
        }
        state.end.map(Next::End)
    }

    /// The next thing to send.
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Next> {
        let mut state = self.lock();
        if let Some(next) = Self::take(&mut state) {
            return Poll::Ready(next);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => state.waker = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

/// The connection of one stateless request sends all that it has to say here.
impl Sink for Outlet {
    fn send(&self, batch: Vec<Outbound>) {
        for outbound in batch {
            let Outbound { frame, related, sent, .. } = outbound;
            match sent {
                Sent::Response(code) => {
                    self.answer(Answer { id: None, text: frame, code, early: related.is_none() });
                }
                Sent::Notification | Sent::Announcement => {
                    // A message that belongs to no request is a listen stream's, and bounded where it comes from.
                    self.message(Event { id: None, text: frame }, related.is_some());
                }
                // A stateless revision has no requests of the server.
                Sent::Request { .. } => {}
            }
        }
    }

    fn has_room(&self) -> bool {
        self.lock().has_room(FEW)
    }

    fn unanswered(&self, _route: Route) {
        self.end(End::Cancelled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(next: Option<Next>) -> String {
        match next {
            Some(Next::Message(Event { text, .. }) | Next::Answer(Answer { text, .. })) => {
                String::from_utf8_lossy(&text).into_owned()
            }
            Some(Next::End(end)) => format!("{end:?}"),
            None => "nothing".into(),
        }
    }

    fn answer(text: &'static str) -> Answer {
        Answer { id: None, text: Bytes::from_static(text.as_bytes()), code: None, early: false }
    }

    fn message(text: &'static str) -> Event {
        Event { id: None, text: Bytes::from_static(text.as_bytes()) }
    }

    #[test]
    fn long_notifications_wait_in_small_numbers() {
        let outlet = Outlet::new(1000, Owner::UNKNOWN);
        let long = || Event { id: None, text: Bytes::from(vec![b'x'; MAX_WAITING / 4]) };
        let taken = (0..10).filter(|_| outlet.message(long(), true)).count();
        assert_eq!(taken, 4);
        assert!(!outlet.has_room() && !Sink::has_room(&outlet));
        assert!(outlet.message(long(), false), "must not be lost");
        for _ in 0..2 {
            assert!(matches!(outlet.next(), Some(Next::Message(_))));
        }
        assert!(outlet.message(long(), true));
        assert_eq!(outlet.retire(End::Moved).0.len(), 4);
        let alone = Outlet::new(1000, Owner::UNKNOWN);
        assert!(alone.message(Event { id: None, text: Bytes::from(vec![b'x'; 2 * MAX_WAITING]) }, true));
    }

    #[test]
    fn messages_come_before_the_answer_and_nothing_after_it() {
        let outlet = Outlet::new(2, Owner::UNKNOWN);
        assert!(outlet.message(message("1"), true));
        assert!(outlet.message(message("2"), true));
        assert!(!outlet.message(message("3"), true), "two wait already");
        assert!(outlet.message(message("request"), false), "must not be lost");
        outlet.answer(answer("answer"));
        assert!(!outlet.message(message("late"), false));
        outlet.end(End::Cancelled);
        let read: Vec<_> = (0..5).map(|_| text(outlet.next())).collect();
        assert_eq!(read, ["1", "2", "request", "answer", "Answered"]);
    }

    #[test]
    fn the_reader_is_woken_once_there_is_something() {
        let outlet = Outlet::new(2, Owner::UNKNOWN);
        let cx = Context::from_waker(Waker::noop());
        assert!(outlet.poll(&cx).is_pending());
        outlet.end(End::Cancelled);
        outlet.answer(answer("too late"));
        assert!(matches!(outlet.poll(&cx), Poll::Ready(Next::End(End::Cancelled))));
    }
}
