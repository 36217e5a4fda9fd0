//! Requests of a legacy client about one resource, one after the other: a listener that leaves must not take from one
//! that comes, and requests over HTTP have no order of their own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Hub, UNSUBSCRIBE};
use crate::call::{Answer, CallOptions, Done, Guard};
use crate::client::Client;
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::signal::Signal;

/// Queue of each resource's requests; the first one is sent.
#[derive(Default)]
pub(super) struct Turns(Mutex<BTreeMap<String, VecDeque<Arc<Signal>>>>);

/// A place among them, until it is dropped.
pub(super) struct Turn {
    hub: Arc<Hub>,
    uri: String,
    here: Arc<Signal>,
}

impl Turn {
    pub(super) fn of(hub: &Arc<Hub>, uri: &str) -> Self {
        let here = Arc::<Signal>::default();
        let mut turns = hub.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        let queue = turns.entry(uri.to_owned()).or_default();
        queue.push_back(here.clone());
        if queue.len() == 1 {
            here.set();
        }
        drop(turns);
        Self { hub: hub.clone(), uri: uri.to_owned(), here }
    }

    /// Waits until those before have their answers.
    pub(super) async fn comes(&self) {
        self.here.wait().await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns = self.hub.turns.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = turns.get_mut(&self.uri) else { return };
        queue.retain(|other| !Arc::ptr_eq(other, &self.here));
        let next = queue.front().cloned();
        if next.is_none() {
            turns.remove(&self.uri);
        }
        drop(turns);
        if let Some(next) = next {
            next.set();
        }
    }
}

/// Sets it when it is dropped.
struct Ends(Arc<Signal>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl Client {
    /// Sends the request when it is its turn.
    pub(super) fn in_turn(
        &self,
        uri: &str,
        method: &'static str,
        params: Option<RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> Guard {
        let turn = Turn::of(&self.connected.hub, uri);
        if turn.here.is_set() {
            let done = Box::new(move |outcome| {
                done(outcome);
                drop(turn);
            });
            return self.send(method, params, options, done);
        }
        let over = Arc::<Signal>::default();
        let (guard, options, connected) = (Ends(over.clone()), options.clone(), Arc::downgrade(&self.connected));
        self.connected.link.spawn(Box::pin(async move {
            let answer = async {
                turn.comes().await;
                if method == UNSUBSCRIBE && turn.hub.wants(&turn.uri) {
                    return Ok(RawJson::empty_object());
                }
                let Some(connected) = connected.upgrade() else { return Err(Error::closed("the client is closed")) };
                let answer = Answer::of(|done| Self { connected }.send(method, params, &options, done));
                answer.await
            };
            let outcome: Option<Result<RawJson>> = over.unless(answer).await;
            if let Some(outcome) = outcome {
                done(outcome);
            }
            drop(turn);
        }));
        Box::new(guard)
    }

    /// Unsubscribes when it is the turn of that, unless somebody listens again by then.
    pub(super) fn leave(&self, uri: &str) {
        let turn = Turn::of(&self.connected.hub, uri);
        let connected = Arc::downgrade(&self.connected);
        self.connected.link.spawn(Box::pin(async move {
            turn.comes().await;
            let Some(connected) = connected.upgrade().filter(|_| !turn.hub.wants(&turn.uri)) else { return };
            let answer = Self { connected }.ask_for(UNSUBSCRIBE, &turn.uri);
            // Nobody is left to hear that it failed.
            drop(answer.await);
        }));
    }
}
