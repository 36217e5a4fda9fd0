use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::driver::Sink;
use crate::protocol::{Outbound, Route, Sent};

/// What goes out on one HTTP response: messages, then the answer to what came in. Written from any thread, read by the
/// response.
pub(super) struct Outlet {
    state: Mutex<State>,
    /// The most notifications that wait for a slow reader.
    limit: usize,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Bytes>,
    answer: Option<Answer>,
    end: Option<End>,
    waker: Option<Waker>,
}

/// The answer to what came in.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: Bytes,
    /// The JSON-RPC error's code.
    pub(super) code: Option<i64>,
    /// Refused before anything was run.
    pub(super) early: bool,
}

/// Why nothing more comes.
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
}

/// What [`Outlet::poll`] found.
#[derive(Debug)]
pub(super) enum Next {
    Message(Bytes),
    Answer(Answer),
    End(End),
}

impl Outlet {
    /// `limit` notifications may wait for the reader.
    pub(super) fn new(limit: usize) -> Self {
        Self { state: Mutex::default(), limit }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the reader, outside the lock.
    fn change(&self, change: impl FnOnce(&mut State) -> bool) -> bool {
        let mut state = self.lock();
        if state.answer.is_some() || state.end.is_some() || !change(&mut state) {
            return false;
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// A message before the answer. `false`: it has no place any more, or too many wait.
    pub(super) fn message(&self, text: Bytes, droppable: bool) -> bool {
        self.change(|state| {
            let fits = !droppable || state.messages.len() < self.limit;
            if fits {
                state.messages.push_back(text);
            }
            fits
        })
    }

    /// The answer; nothing comes after it.
    pub(super) fn answer(&self, answer: Answer) {
        self.change(|state| {
            state.answer = Some(answer);
            true
        });
    }

    /// Nothing more comes, and there will be no answer.
    pub(super) fn end(&self, end: End) {
        self.change(|state| {
            state.end = Some(end);
            true
        });
    }

    /// Whether the answer is there.
    pub(super) fn is_answered(&self) -> bool {
        self.lock().answer.is_some()
    }

    /// Whether this message waits for the reader already.
    pub(super) fn contains(&self, text: &[u8]) -> bool {
        self.lock().messages.iter().any(|m| *m == text)
    }

    /// What was not read.
    pub(super) fn take_unread(&self) -> VecDeque<Bytes> {
        std::mem::take(&mut self.lock().messages)
    }

    /// The next thing to send, if there is one already.
    pub(super) fn next(&self) -> Option<Next> {
        Self::take(&mut self.lock())
    }

    fn take(state: &mut State) -> Option<Next> {
        if let Some(text) = state.messages.pop_front() {
            return Some(Next::Message(text));
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
                Sent::Response(code) => self.answer(Answer { text: frame, code, early: related.is_none() }),
                Sent::Notification => {
                    self.message(frame, true);
                }
                // A stateless revision has no requests of the server.
                Sent::Request { .. } => {}
            }
        }
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
            Some(Next::Message(text) | Next::Answer(Answer { text, .. })) => {
                String::from_utf8_lossy(&text).into_owned()
            }
            Some(Next::End(end)) => format!("{end:?}"),
            None => "nothing".into(),
        }
    }

    fn answer(text: &'static str) -> Answer {
        Answer { text: Bytes::from_static(text.as_bytes()), code: None, early: false }
    }

    #[test]
    fn messages_come_before_the_answer_and_nothing_after_it() {
        let outlet = Outlet::new(2);
        assert!(outlet.message(Bytes::from_static(b"1"), true));
        assert!(outlet.message(Bytes::from_static(b"2"), true));
        assert!(!outlet.message(Bytes::from_static(b"3"), true), "two wait already");
        assert!(outlet.message(Bytes::from_static(b"request"), false), "must not be lost");
        outlet.answer(answer("answer"));
        assert!(!outlet.message(Bytes::from_static(b"late"), false));
        outlet.end(End::Cancelled);
        let read: Vec<_> = (0..5).map(|_| text(outlet.next())).collect();
        assert_eq!(read, ["1", "2", "request", "answer", "Answered"]);
    }

    #[test]
    fn the_reader_is_woken_once_there_is_something() {
        let outlet = Outlet::new(2);
        let cx = Context::from_waker(Waker::noop());
        assert!(outlet.poll(&cx).is_pending());
        outlet.end(End::Cancelled);
        outlet.answer(answer("too late"));
        assert!(matches!(outlet.poll(&cx), Poll::Ready(Next::End(End::Cancelled))));
    }
}
