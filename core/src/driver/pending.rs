use std::sync::{Arc, Weak};

use super::{Peer, now};
use crate::call::{Done, Told};
use crate::jsonrpc::RawJson;
use crate::protocol::{CallId, Input};

/// Receiver of the answer to a request of ours.
pub(crate) struct Waiter {
    pub(crate) done: Done,
    pub(crate) progress: Option<Progress>,
    /// Progress is heard after the answer, too.
    pub(crate) lasting: bool,
    /// Hears what is told on the listen stream that it is.
    pub(crate) told: Option<Told>,
}

pub(super) type Progress = Arc<dyn Fn(RawJson) + Send + Sync>;

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
