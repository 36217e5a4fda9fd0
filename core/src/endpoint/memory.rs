//! Two peers in one process. Frames wait in a queue, so that neither side runs inside the other's call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;

use crate::driver::{Peer, Sink};
use crate::protocol::{Origin, Outbound};
#[cfg(feature = "runtime")]
use crate::server::{Meter, Usage};

/// Frames that one direction of the pair has not delivered yet.
#[derive(Default)]
struct Queue {
    /// Each with what caused it.
    frames: VecDeque<(Bytes, Option<Origin>)>,
    delivering: bool,
    closed: bool,
}

/// One direction of a pair.
#[derive(Default)]
pub(crate) struct Pipe {
    queue: Mutex<Queue>,
    to: Mutex<Weak<Peer>>,
}

impl Pipe {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Says where the frames go.
    pub(crate) fn connect(&self, to: &Arc<Peer>) {
        *self.to.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(to);
    }

    /// Adds frames of a side that is no peer.
    #[cfg(feature = "runtime")]
    pub(crate) fn push(&self, frames: Vec<Bytes>) {
        self.start(|queue| queue.frames.extend(frames.into_iter().map(|frame| (frame, None))));
    }

    fn peer(&self) -> Option<Arc<Peer>> {
        self.to.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Delivers until the queue is empty; one caller at a time, the others leave their frames to it.
    fn deliver(&self) {
        loop {
            let next = {
                let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                match queue.frames.pop_front() {
                    Some(frame) => Some(frame),
                    None if queue.closed => None,
                    None => {
                        queue.delivering = false;
                        return;
                    }
                }
            };
            let Some(peer) = self.peer() else { return };
            match next {
                Some((frame, origin)) => peer.receive_of(&frame, origin),
                None => return peer.close("the other side closed the connection"),
            }
        }
    }

    fn start(&self, change: impl FnOnce(&mut Queue)) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.closed {
            return;
        }
        change(&mut queue);
        let busy = std::mem::replace(&mut queue.delivering, true);
        drop(queue);
        if !busy {
            self.deliver();
        }
    }
}

/// The sending end of a [`Pipe`].
pub(crate) struct PipeSink(pub(crate) Arc<Pipe>);

impl Sink for PipeSink {
    fn send(&self, batch: Vec<Outbound>) {
        self.0.start(|queue| queue.frames.extend(batch.into_iter().map(|o| (o.frame, o.origin))));
    }

    fn close(&self) {
        self.0.start(|queue| queue.closed = true);
    }
}

/// A connection of its own, through memory or pipes, counts what it works on.
#[cfg(feature = "runtime")]
impl Meter for Peer {
    fn read(&self, usage: &mut Usage) {
        usage.in_flight += self.in_flight();
    }
}
