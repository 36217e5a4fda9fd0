//! The changes that one listener has not taken yet.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::stream::ACKNOWLEDGED;
use super::{Change, without_subscription};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::SubscriptionFilter;
use crate::signal::Signal;

/// With more changes than this waiting, everything that is listened to is said to have changed instead.
const MAX_WAITING: usize = 1024;

pub(super) struct Inbox {
    /// True for a stream: its opener sets its end.
    pub(super) streams: bool,
    state: Mutex<State>,
    /// Set when the server has answered for the first time.
    settled: Signal,
}

#[derive(Default)]
struct State {
    /// The wanted filter, and once the server has acknowledged one, that filter.
    filter: SubscriptionFilter,
    is_acknowledged: bool,
    waiting: VecDeque<Change>,
    /// Its end.
    end: Option<Result<()>>,
    wakers: Vec<Waker>,
}

impl State {
    fn add(&mut self, change: Change) {
        if let Change::Task { task, .. } = &change {
            // The state of the task now.
            let is_of = |other: &Change| matches!(other, Change::Task { task: of, .. } if of.task_id == task.task_id);
            self.waiting.retain(|other| !is_of(other));
        }
        // A notification of an extension is an event, not a state.
        if matches!(change, Change::Extension { .. }) || !self.waiting.contains(&change) {
            self.waiting.push_back(change);
        }
    }

    fn add_all(&mut self) {
        let all: Vec<_> = Change::all_of(&self.filter).collect();
        all.into_iter().for_each(|change| self.add(change));
    }
}

impl Inbox {
    pub(super) fn new(filter: SubscriptionFilter, streams: bool) -> Self {
        Self { streams, state: Mutex::new(State { filter, ..State::default() }), settled: Signal::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        if state.end.is_some() {
            return;
        }
        change(&mut state);
        let wakers = if state.waiting.is_empty() && state.end.is_none() {
            Vec::new()
        } else {
            std::mem::take(&mut state.wakers)
        };
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Something has changed. A change that is not listened to, or waits already, adds nothing.
    pub(super) fn push(&self, change: &Change) {
        self.change(|state| {
            if !change.is_in(&state.filter) {
                return;
            }
            if state.waiting.len()
                >= MAX_WAITING + state.filter.resource_subscriptions.len() + state.filter.task_ids.len()
            {
                if state.waiting.iter().chain([change]).any(|change| matches!(change, Change::Extension { .. })) {
                    let message = format!("{MAX_WAITING} changes wait to be taken: more would be lost");
                    state.end = Some(Err(Error::new(ErrorKind::Closed, message)));
                    return;
                }
                // Parts of what is listened to, then.
                state.waiting.retain(|change| matches!(change, Change::Task { .. }));
                state.add_all();
                if matches!(change, Change::Task { .. }) {
                    state.add(change.clone());
                }
            } else {
                state.add(change.clone());
            }
        });
    }

    /// Anything may have changed.
    pub(super) fn missed(&self) {
        self.change(State::add_all);
    }

    /// The server says what it tells of. `again`: it has before, and something may have been missed since.
    pub(super) fn acknowledged(&self, honoured: SubscriptionFilter, again: bool, params: Option<&RawJson>) {
        self.change(|state| {
            (state.filter, state.is_acknowledged) = (honoured, true);
            if again {
                state.add_all();
            }
            if again && !(state.filter.others.is_empty() && state.filter.task_ids.is_empty()) {
                let params = params.map_or_else(RawJson::empty_object, without_subscription);
                state.add(Change::Extension { method: ACKNOWLEDGED.into(), params });
            }
        });
        self.settled.set();
    }

    pub(super) fn end(&self, how: Result<()>) {
        self.change(|state| state.end = Some(how));
        self.settled.set();
    }

    /// Waits until the server has acknowledged the stream.
    ///
    /// # Errors
    /// The reason why it has not.
    pub(super) async fn settled(&self) -> Result<()> {
        self.settled.wait().await;
        self.lock().end.clone().unwrap_or(Ok(()))
    }

    /// Returns the filter that is listened to, or is to be.
    pub(super) fn wanted(&self) -> SubscriptionFilter {
        self.lock().filter.clone()
    }

    /// Returns the filter that the server has acknowledged: an empty one before it has done so. Subscriptions of older
    /// revisions have no acknowledgement.
    pub(super) fn honoured(&self) -> SubscriptionFilter {
        let state = self.lock();
        if self.streams && !state.is_acknowledged { SubscriptionFilter::new() } else { state.filter.clone() }
    }

    /// The resources that are asked for; they are listened to as they are added again.
    pub(super) fn take_uris(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().filter.resource_subscriptions)
    }

    /// Says whether it was not listened to before.
    pub(super) fn add_uri(&self, uri: &str) -> bool {
        self.lock().filter.add(uri)
    }

    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<Option<Result<Change>>> {
        let mut state = self.lock();
        if let Some(change) = state.waiting.pop_front() {
            return Poll::Ready(Some(Ok(change)));
        }
        match &mut state.end {
            Some(end) => Poll::Ready(std::mem::replace(end, Ok(())).err().map(Err)),
            None => {
                if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                    // Whoever gave up waiting is woken for nothing, once.
                    if state.wakers.len() >= 16 {
                        std::mem::take(&mut state.wakers).into_iter().for_each(Waker::wake);
                    }
                    state.wakers.push(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }
}
