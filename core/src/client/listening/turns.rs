//! Requests of a legacy client about one resource, one after the other: a listener that leaves must not take from one
//! that comes, and requests over HTTP have no order of their own.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::Hub;
use crate::signal::Signal;

/// Queue of each resource's requests; the first one is sent.
#[derive(Default)]
pub(super) struct Turns(Mutex<BTreeMap<String, VecDeque<Arc<Signal>>>>);

/// A place among them, until it is dropped.
pub(super) struct Turn {
    pub(super) hub: Arc<Hub>,
    pub(super) uri: String,
    pub(super) here: Arc<Signal>,
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
