//! The seam to other languages: deliver and complete. Rust holds integers only; the handler table, the running tasks
//! and the waiting futures live in the host. What happens becomes a [`Delivery`] in one queue with one wake-up per
//! batch; what the host decides is a plain call.
//!
//! **Invariant**: knows no language. A binding adds types and nothing else.

#[cfg(feature = "auth")]
mod auth;
mod cache;
mod client;
mod cork;
mod following;
mod functions;
mod group;
mod host_handler;
#[cfg(feature = "http")]
mod http;
mod input;
mod lifespan;
mod middleware;
mod principal;
mod running;
mod server;
#[cfg(all(test, feature = "runtime"))]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub use crate::model::is_safe_icon;
pub use client::Client;
pub use group::ClientGroup;
#[cfg(feature = "http")]
pub use http::HttpEndpoint;
pub use server::{Server, check_form, check_pages};

use cork::Cork;
use host_handler::HostHandler;

use crate::call::{Context, Next, Reply, Request};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};

/// The host's side of the queue.
pub trait Host: Send + Sync + 'static {
    /// Something is in the queue. Called from any thread, at most once until [`Bridge::take`] has returned nothing.
    fn wake(&self);
}

/// What the host is to be told.
#[derive(Debug)]
#[non_exhaustive]
pub enum Delivery {
    /// Run a handler.
    Call {
        /// Names the call in [`Bridge::complete`].
        key: u64,
        /// Which handler, as registered.
        handler: u32,
        /// Its parameters; for tools the arguments object, valid against the input schema.
        params: RawJson,
    },
    /// Cancel a running call; an answer afterwards is ignored.
    Cancel {
        /// The call.
        key: u64,
        /// The peer's reason.
        reason: Option<String>,
    },
    /// An operation that the host started is finished.
    Settle {
        /// The operation.
        op: u64,
        /// Its result.
        outcome: Result<RawJson>,
    },
    /// A request that the host started made progress: `{progress, total?, message?}`.
    Progress {
        /// The operation.
        op: u64,
        /// The notification's parameters.
        params: RawJson,
    },
    /// Something happened to an object of the host.
    Event {
        /// The object, by the number that the host gave it; 0 is the bridge.
        source: u32,
        /// `notification`, `stderr`, `closed`, `listening`, `warning`, `http_head`, `http_chunk`, `released`, `request`,
        /// `failed`.
        name: &'static str,
        /// What happened.
        params: RawJson,
    },
}

/// A handler's answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// A whole `CallToolResult` object.
    Result(RawJson),
    /// A plain value; content and structured content are made of it.
    Value(RawJson),
    /// Plain text.
    Text(String),
    /// The tool failed; text for the model.
    Failed(String),
    /// A JSON-RPC error.
    Error(Error),
    /// What the client has to answer first: `{"inputRequests"?: {key: {"method", "params"?}}, "state"?: any}`. The handler
    /// is called again with [`Bridge::input`] filled.
    InputRequired(RawJson),
}

impl Delivery {
    fn size(&self) -> usize {
        match self {
            Self::Call { params, .. } | Self::Progress { params, .. } | Self::Event { params, .. } => {
                params.get().len()
            }
            Self::Settle { outcome: Ok(result), .. } => result.get().len(),
            Self::Settle { .. } | Self::Cancel { .. } => 0,
        }
    }

    /// Whether a peer makes such deliveries as often as it likes, and a host can do without.
    fn is_offered(&self) -> bool {
        match self {
            Self::Progress { .. } => true,
            Self::Event { name, .. } => matches!(*name, "notification" | "stderr" | "warning" | "request" | "failed"),
            _ => false,
        }
    }
}

/// How much waits in a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BridgeMetrics {
    /// Deliveries the host has not taken.
    pub queued: usize,
    /// Calls the host has not answered.
    pub calls: usize,
    /// Operations that are not finished.
    pub ops: usize,
    /// Events that were dropped because the host did not take them.
    pub dropped: u64,
}

/// The most events that wait for a host, of those that the peer makes. Calls, operations and exchanges have bounds of
/// their own, and what a host waits for is never dropped.
const MAX_EVENTS: usize = 4096;
/// The bytes that they have together.
const MAX_EVENT_BYTES: usize = 64 << 20;
/// With more of them than this, the progress of a request that waits is replaced by newer.
const MANY_EVENTS: usize = 256;

/// The most bytes that a host is given at once, but for one delivery that is longer: some hosts make one string of it.
const MAX_BATCH: usize = 16 << 20;

/// One host loop's connection to the engine. A clone is the same bridge.
#[derive(Clone)]
pub struct Bridge(Arc<Shared>);

struct Shared {
    host: Box<dyn Host>,
    queue: Mutex<Queue>,
    calls: Mutex<HashMap<u64, Running>>,
    ops: Mutex<HashMap<u64, Option<Op>>>,
    cork: Mutex<Cork>,
    last_key: AtomicU64,
}

/// A call that the host has not answered.
struct Running {
    context: Context,
    reply: Reply,
    /// Of middleware, where the request goes on.
    next: Option<(Request, Next)>,
}

/// Dropped before the operation is finished, it cancels.
type Op = Box<dyn Send + Sync>;

#[derive(Default)]
struct Queue {
    deliveries: Vec<Delivery>,
    /// Of those that are offered.
    events: usize,
    event_bytes: usize,
    /// Where each operation's last progress is.
    progress: HashMap<u64, usize>,
    dropped: u64,
    /// The host was woken and has not yet found the queue empty.
    awake: bool,
    closed: bool,
}

impl Queue {
    /// Counts again what is in the queue, after some was taken or put back.
    fn recount(&mut self) {
        self.progress = HashMap::new();
        let offered = self.deliveries.iter().enumerate().filter(|(_, delivery)| delivery.is_offered());
        (self.events, self.event_bytes) = (0, 0);
        for (place, delivery) in offered {
            self.events += 1;
            self.event_bytes += delivery.size();
            if let Delivery::Progress { op, .. } = delivery {
                self.progress.insert(*op, place);
            }
        }
    }

    /// Makes room for a delivery that is offered: none when it replaced another or there is none.
    fn admit(&mut self, delivery: Delivery) -> Option<Delivery> {
        let size = delivery.size();
        if let Delivery::Progress { op, .. } = &delivery
            && self.events > MANY_EVENTS
            && let Some(place) = self.progress.get(op).copied()
            && let Some(older) = self.deliveries.get_mut(place)
        {
            self.event_bytes = self.event_bytes.saturating_sub(older.size()) + size;
            *older = delivery;
            return None;
        }
        if self.events >= MAX_EVENTS || self.event_bytes + size > MAX_EVENT_BYTES {
            self.dropped += 1;
            return None;
        }
        self.events += 1;
        self.event_bytes += size;
        if let Delivery::Progress { op, .. } = &delivery {
            self.progress.insert(*op, self.deliveries.len());
        }
        Some(delivery)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bridge {
    /// A bridge that wakes `host`.
    pub fn new(host: impl Host) -> Self {
        Self(Arc::new(Shared {
            host: Box::new(host),
            queue: Mutex::default(),
            calls: Mutex::default(),
            ops: Mutex::default(),
            cork: Mutex::default(),
            last_key: AtomicU64::new(0),
        }))
    }

    /// What is in the queue, at most about 16 MiB of it. Nothing means that the next delivery wakes the host again:
    /// take until nothing is left.
    #[must_use]
    pub fn take(&self) -> Vec<Delivery> {
        let mut queue = lock(&self.0.queue);
        queue.awake = !queue.deliveries.is_empty();
        let mut room = MAX_BATCH;
        let fits = queue.deliveries.iter().take_while(|delivery| {
            let before = room;
            room = room.saturating_sub(delivery.size());
            before > 0
        });
        let (fitting, all) = (fits.count(), queue.deliveries.len());
        if fitting == all {
            let all = std::mem::take(&mut queue.deliveries);
            queue.recount();
            return all;
        }
        let rest = queue.deliveries.split_off(fitting);
        let taken = std::mem::replace(&mut queue.deliveries, rest);
        queue.recount();
        taken
    }

    /// Puts deliveries back to the front that the host could not look at.
    pub fn put_back(&self, rest: Vec<Delivery>) {
        let mut queue = lock(&self.0.queue);
        queue.deliveries.splice(0..0, rest);
        queue.recount();
    }

    fn push(&self, delivery: Delivery) {
        let queue = lock(&self.0.queue);
        if !queue.closed {
            self.push_into(queue, delivery);
        }
    }

    fn push_into(&self, mut queue: MutexGuard<'_, Queue>, delivery: Delivery) {
        queue.deliveries.push(delivery);
        if !std::mem::replace(&mut queue.awake, true) {
            drop(queue);
            self.0.host.wake();
        }
    }

    /// As [`push_into`](Self::push_into). Where several calls run and more are being read from sockets, those that the
    /// runtime is about to read come in the same batch: waking a host costs more than looking.
    fn push_call(&self, mut queue: MutexGuard<'_, Queue>, delivery: Delivery, several: bool) {
        #[cfg(feature = "runtime")]
        if several
            && !queue.awake
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            queue.awake = true;
            queue.deliveries.push(delivery);
            drop(queue);
            let shared = self.0.clone();
            runtime.spawn(async move {
                tokio::task::yield_now().await;
                shared.host.wake();
            });
            return;
        }
        let _ = several;
        self.push_into(queue, delivery);
    }

    /// Pushes what the host can do without, unless too much of that waits already.
    fn offer(&self, delivery: Delivery) {
        let mut queue = lock(&self.0.queue);
        if queue.closed {
            return;
        }
        if let Some(delivery) = queue.admit(delivery) {
            self.push_into(queue, delivery);
        }
    }

    /// Something that happens once, or that the host asks for.
    fn event(&self, source: u32, name: &'static str, params: RawJson) {
        self.push(Delivery::Event { source, name, params });
    }

    /// Something that a peer can cause as often as it likes.
    fn offer_event(&self, source: u32, name: &'static str, params: RawJson) {
        self.offer(Delivery::Event { source, name, params });
    }

    /// The host no longer waits for an operation: what is unfinished is cancelled.
    pub fn settle(&self, op: u64) {
        let gone = lock(&self.0.ops).remove(&op);
        drop(gone);
    }

    /// Runs `start`, which gets a function to finish the operation with, and keeps what it returns until then.
    fn operation(&self, op: u64, start: impl FnOnce(Finish) -> Op) {
        // Under the queue's lock, or `close` could come between: what it does not see would never end.
        let queue = lock(&self.0.queue);
        if queue.closed {
            return;
        }
        let before = lock(&self.0.ops).insert(op, None);
        drop(queue);
        if before.is_some() {
            return self.finish(op, Err(Error::misuse(format!("operation {op} is already running"))));
        }
        let guard = start(Finish { bridge: Arc::downgrade(&self.0), op });
        // Finished or settled meanwhile?
        let mut ops = lock(&self.0.ops);
        let unneeded = match ops.get_mut(&op) {
            Some(slot) => slot.replace(guard),
            None => Some(guard),
        };
        drop(ops);
        drop(unneeded);
    }

    fn finish(&self, op: u64, outcome: Result<RawJson>) {
        let Some(guard) = lock(&self.0.ops).remove(&op) else {
            return;
        };
        self.push(Delivery::Settle { op, outcome });
        drop(guard);
    }

    #[cfg(feature = "runtime")]
    fn spawn(&self, op: u64, future: impl Future<Output = Result<RawJson>> + Send + 'static) {
        struct Abort(tokio::task::AbortHandle);
        impl Drop for Abort {
            fn drop(&mut self) {
                self.0.abort();
            }
        }
        self.operation(op, |finish| {
            let task = crate::driver::runtime::spawn(async move { finish.with(future.await) });
            Box::new(Abort(task.abort_handle()))
        });
    }

    /// The host's loop ends: running calls are answered with an error, operations are dropped, no more wake-ups.
    pub fn close(&self) {
        let mut queue = lock(&self.0.queue);
        queue.closed = true;
        let deliveries = std::mem::take(&mut queue.deliveries);
        queue.recount();
        drop(queue);
        let calls = std::mem::take(&mut *lock(&self.0.calls));
        let ops = std::mem::take(&mut *lock(&self.0.ops));
        drop((deliveries, ops, calls));
        self.uncork();
    }

    /// How much waits.
    #[must_use]
    pub fn metrics(&self) -> BridgeMetrics {
        let queue = lock(&self.0.queue);
        let (queued, dropped) = (queue.deliveries.len(), queue.dropped);
        drop(queue);
        BridgeMetrics { queued, calls: lock(&self.0.calls).len(), ops: lock(&self.0.ops).len(), dropped }
    }
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").field("metrics", &self.metrics()).finish()
    }
}

/// Finishes one operation, once.
struct Finish {
    bridge: Weak<Shared>,
    op: u64,
}

impl Finish {
    fn with(self, outcome: Result<RawJson>) {
        self.settle(outcome);
    }

    fn settle(&self, outcome: Result<RawJson>) {
        if let Some(shared) = self.bridge.upgrade() {
            Bridge(shared).finish(self.op, outcome);
        }
    }
}

impl Drop for Finish {
    // Finds something to settle only when the operation panicked, or was dropped unfinished.
    fn drop(&mut self) {
        self.settle(Err(Error::rpc(code::INTERNAL_ERROR, "internal error: the operation ended without an outcome")));
    }
}

/// A method with its parameters as they came: not all JSON is text that can be read.
fn message(method: &str, params: Option<&RawJson>) -> RawJson {
    #[derive(serde::Serialize)]
    struct Message<'a> {
        method: &'a str,
        params: Option<&'a RawJson>,
    }
    RawJson::from_value(&Message { method, params })
}

/// The engine's version, which is every language package's too.
#[must_use]
pub const fn version() -> &'static str {
    crate::VERSION
}
