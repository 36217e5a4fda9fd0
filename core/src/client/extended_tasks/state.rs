//! State of a client about tasks of the extension.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;

/// The most tasks of which it is remembered what was answered.
const MAX_TASKS: usize = 1000;
/// The most questions that one task asks at all.
const MAX_ANSWERS: usize = 1024;
/// The most results of calls that were wanted as tasks and answered at once, and their bytes together.
const MAX_KEPT: usize = 100;
const MAX_KEPT_BYTES: usize = 4 << 20;

/// State of a client about tasks of the extension.
#[derive(Default)]
pub(in crate::client) struct Extended {
    /// The questions that are answered or about to be, by their tasks: a question stays until the server has seen its
    /// answer.
    answered: Mutex<VecDeque<(String, BTreeSet<String>)>>,
    /// Results of calls that were answered at once, by the names that they have here.
    finished: Mutex<VecDeque<(String, RawJson)>>,
    /// Counts those, for their names.
    last: AtomicU64,
    /// Number of tasks that are listened to.
    pub(super) heard: Arc<AtomicUsize>,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Extended {
    /// Returns true if this question is to be answered now.
    ///
    /// # Errors
    /// [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) for a task that asks without end.
    pub(super) fn claim(&self, id: &str, key: &str) -> Result<bool> {
        let mut answered = locked(&self.answered);
        let place = match answered.iter().position(|(own, _)| own == id) {
            Some(place) => place,
            None => {
                if answered.len() >= MAX_TASKS {
                    answered.pop_front();
                }
                answered.push_back((id.to_owned(), BTreeSet::new()));
                answered.len() - 1
            }
        };
        let keys = &mut answered[place].1;
        if keys.len() >= MAX_ANSWERS && !keys.contains(key) {
            let message = format!("result of tasks/get: the task asks for more after {MAX_ANSWERS} answers");
            return Err(Error::new(ErrorKind::PeerMisbehaved, message));
        }
        Ok(keys.insert(key.to_owned()))
    }

    pub(super) fn give_back(&self, id: &str, key: &str) {
        let mut answered = locked(&self.answered);
        for (_, keys) in answered.iter_mut().filter(|(own, _)| own == id) {
            keys.remove(key);
        }
        answered.retain(|(_, keys)| !keys.is_empty());
    }

    pub(super) fn over(&self, id: &str) {
        locked(&self.answered).retain(|(own, _)| own != id);
    }

    /// Gives the name under which the result is kept, which is no server's.
    pub(super) fn keep(&self, result: RawJson) -> String {
        let id = format!("tricorn/answered-{}", self.last.fetch_add(1, Ordering::Relaxed));
        let mut finished = locked(&self.finished);
        finished.push_back((id.clone(), result));
        let bytes = |all: &VecDeque<(String, RawJson)>| all.iter().map(|(_, result)| result.get().len()).sum::<usize>();
        while finished.len() > MAX_KEPT || (finished.len() > 1 && bytes(&finished) > MAX_KEPT_BYTES) {
            finished.pop_front();
        }
        id
    }

    pub(super) fn kept(&self, id: &str) -> Option<RawJson> {
        locked(&self.finished).iter().find(|(own, _)| own == id).map(|(_, result)| result.clone())
    }
}
