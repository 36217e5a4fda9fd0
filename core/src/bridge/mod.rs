//! The seam to other languages: deliver and complete. Rust holds integers only; the handler table, the running tasks
//! and the waiting futures live in the host. Every event becomes a [`Delivery`] in one queue with one wake-up per
//! batch; what the host decides is a plain call.
//!
//! It is for the packages of this repository, and changes with any version: no promise is made about it.
//!
//! **Invariant**: knows no language. A binding adds types and nothing else.

#[cfg(feature = "auth")]
mod auth;
mod cache;
mod client;
mod cork;
#[cfg(all(unix, feature = "stdio"))]
mod ending;
mod following;
mod functions;
mod group;
mod host_handler;
#[cfg(feature = "http")]
mod http;
mod http_transport;
mod input;
mod lifespan;
mod middleware;
mod nowhere;
mod origin;
mod principal;
mod running;
mod server;
mod store;
#[cfg(all(test, feature = "runtime"))]
mod tests;
mod timing;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub use crate::error::Reason;
pub use crate::idiom::Casing;
pub use crate::model::is_safe_icon;
pub use client::Client;
#[cfg(all(unix, feature = "stdio"))]
pub use ending::{expect_end, heard, watch_signals};
pub use group::ClientGroup;
#[cfg(feature = "http")]
pub use http::HttpEndpoint;
pub use server::{Server, check_form, check_pages, meant, unknown_option};

use cork::Cork;
use host_handler::HostHandler;
use origin::Started;
use serde_json::json;

use crate::call::{Context, Next, Reply, Request};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
#[cfg(feature = "runtime")]
use crate::protocol::Origin;

/// Puts the standard streams back to where they were before a server spoke on them. First the host writes what it has in
/// its buffers: that still goes to standard error, and is waited for.
#[cfg(feature = "stdio")]
pub fn give_back_streams() {
    crate::transport::own::give_back();
}

/// Puts `/dev/null` where one of the standard streams is closed, before anything else is opened in its place.
#[cfg(unix)]
pub fn occupy_streams() {
    crate::streams::occupy();
}

/// The words of a command line as [`Target`](crate::client::Target) finds them.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for a quote that is not closed.
#[cfg(feature = "stdio")]
pub fn split_command(line: &str) -> Result<Vec<String>> {
    crate::client::split(line)
}

/// Writes text to standard error without waiting for its reader: text that it does not take is dropped, and counted.
pub fn write_stderr(text: &str) {
    crate::report::text(text);
}

/// The host's side of the queue.
pub trait Host: Send + Sync + 'static {
    /// Something is in the queue. Called from any thread, at most once until [`Bridge::take`] has returned nothing.
    fn wake(&self);
}

/// Message to the host.
#[derive(Debug)]
#[non_exhaustive]
pub enum Delivery {
    /// Run a handler.
    Call {
        /// Names the call in [`Bridge::complete`].
        key: u64,
        /// The handler, by its number from the registration.
        handler: u32,
        /// Its parameters; for tools the arguments object, valid against the input schema.
        params: RawJson,
        /// The operation that caused it: a client's request or connection, also of another bridge of this process, an
        /// exchange of a mounted endpoint, serving. 0: none that is known. A host runs the handler in the context that
        /// it started the operation in, which it keeps until the operation is settled, or the event `freed`.
        origin: u64,
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
        /// `failed`. Of the bridge: `held` `{"op"}`, something goes on for an operation that is settled next, and
        /// `freed` `{"op"}`, nothing goes on for one that was, or was given up.
        name: &'static str,
        /// Parameters of the event.
        params: RawJson,
        /// The operation that caused it, as of a call.
        origin: u64,
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
    /// Questions that the client has to answer first: `{"inputRequests"?: {key: {"method", "params"?}}, "state"?:
    /// any}`. The handler is called again with [`Bridge::input`] filled.
    InputRequired(RawJson),
    /// The handler was removed while the call was on its way.
    Gone,
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

    /// Returns true if a peer makes such deliveries as often as it likes, and a host can do without.
    fn is_offered(&self) -> bool {
        match self {
            Self::Progress { .. } => true,
            Self::Event { name, .. } => matches!(*name, "notification" | "stderr" | "warning" | "request" | "failed"),
            _ => false,
        }
    }
}

/// Load of a bridge.
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

/// End of the text of a notification that a list has changed, and that says nothing more.
const LIST_CHANGED: &str = "/list_changed\",\"params\":null}";

/// The most bytes that a host is given at once, but for one delivery that is longer: some hosts make one string of it.
const MAX_BATCH: usize = 16 << 20;

/// One host loop's connection to the engine. A clone is the same bridge.
#[derive(Clone)]
pub struct Bridge(Arc<Shared>);

struct Shared {
    host: Box<dyn Host>,
    queue: Mutex<Queue>,
    calls: Mutex<HashMap<u64, Running>>,
    ops: Mutex<HashMap<u64, Operation>>,
    cork: Mutex<Cork>,
    last_key: AtomicU64,
}

/// A call that the host has not answered.
struct Running {
    context: Context,
    reply: Reply,
    /// For middleware, the request and the way on for it.
    next: Option<(Request, Next)>,
}

/// Dropped before the operation is finished, it cancels.
type Op = Box<dyn Send + Sync>;

/// An operation that is not finished.
struct Operation {
    guard: Option<Op>,
    /// The name of the operation for everything that it causes.
    started: Weak<Started>,
}

#[derive(Default)]
struct Queue {
    deliveries: Vec<Delivery>,
    /// Number of events among the deliveries.
    events: usize,
    event_bytes: usize,
    /// Place of each operation's last progress in the queue.
    progress: HashMap<u64, usize>,
    /// Changes of lists that wait: the listening object, the cause, and the notification.
    changes: HashSet<(u32, u64, String)>,
    dropped: u64,
    /// The host was woken and has not yet found the queue empty.
    awake: bool,
    closed: bool,
}

impl Queue {
    /// Counts again what is in the queue, after some was taken or put back.
    fn recount(&mut self) {
        self.progress = HashMap::new();
        self.changes = HashSet::new();
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
        // One that waits stands for those that come meanwhile: they say nothing else.
        if let Delivery::Event { source, name: "notification", params, origin } = &delivery
            && params.get().ends_with(LIST_CHANGED)
            && !self.changes.insert((*source, *origin, params.get().to_owned()))
        {
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

/// Sets the way in which error messages name options, and count times: in seconds or milliseconds. For all bridges of this
/// process, which has one host language. Default: [`Casing::Snake`] and seconds.
pub fn set_idiom(casing: Casing, milliseconds: bool) {
    crate::idiom::set(casing, milliseconds);
}

impl Bridge {
    /// A bridge that wakes `host`.
    pub fn new(host: impl Host) -> Self {
        #[cfg(unix)]
        occupy_streams();
        Self(Arc::new(Shared {
            host: Box::new(host),
            queue: Mutex::default(),
            calls: Mutex::default(),
            ops: Mutex::default(),
            cork: Mutex::default(),
            last_key: AtomicU64::new(0),
        }))
    }

    /// Takes the queue, at most about 16 MiB of it. Nothing means that the next delivery wakes the host again: take
    /// until nothing is left.
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
        self.push(Delivery::Event { source, name, params, origin: 0 });
    }

    /// Something that a peer can cause as often as it likes.
    fn offer_event(&self, source: u32, name: &'static str, params: RawJson) {
        self.offer_event_of(0, source, name, params);
    }

    /// The same, with the operation that caused it.
    fn offer_event_of(&self, origin: u64, source: u32, name: &'static str, params: RawJson) {
        self.offer(Delivery::Event { source, name, params, origin });
    }

    /// The host no longer waits for an operation: what is unfinished is cancelled. `true`: something still runs for it,
    /// and the event `freed` says when that is over.
    pub fn settle(&self, op: u64) -> bool {
        let gone = lock(&self.0.ops).remove(&op);
        let Some(Operation { guard, started }) = gone else { return false };
        drop(guard);
        started.upgrade().is_some_and(|started| {
            started.hold();
            true
        })
    }

    /// Runs `start`, which gets a function to finish the operation with, and keeps what it returns until then.
    fn operation(&self, op: u64, start: impl FnOnce(Finish) -> Op) {
        self.operation_as(Weak::new(), op, start);
    }

    /// The same of one that causes something.
    fn operation_as(&self, started: Weak<Started>, op: u64, start: impl FnOnce(Finish) -> Op) {
        // Under the queue's lock, or `close` could come between: what it does not see would never end.
        let queue = lock(&self.0.queue);
        if queue.closed {
            return;
        }
        let before = lock(&self.0.ops).insert(op, Operation { guard: None, started });
        drop(queue);
        if before.is_some() {
            return self.finish(op, Err(Error::misuse(format!("operation {op} is already running"))));
        }
        let guard = start(Finish { bridge: Arc::downgrade(&self.0), op });
        // Finished or settled meanwhile?
        let mut ops = lock(&self.0.ops);
        let unneeded = match ops.get_mut(&op) {
            Some(slot) => slot.guard.replace(guard),
            None => Some(guard),
        };
        drop(ops);
        drop(unneeded);
    }

    fn finish(&self, op: u64, outcome: Result<RawJson>) {
        let Some(Operation { guard, started }) = lock(&self.0.ops).remove(&op) else {
            return;
        };
        if started.upgrade().is_some_and(|started| started.finished()) {
            self.event(0, "held", RawJson::from_value(&json!({"op": op})));
        }
        self.push(Delivery::Settle { op, outcome });
        drop(guard);
    }

    #[cfg(feature = "runtime")]
    fn spawn(&self, op: u64, future: impl Future<Output = Result<RawJson>> + Send + 'static) {
        self.spawn_as(Weak::new(), op, future);
    }

    /// The same of one that causes something: the future is given what it is caused by.
    #[cfg(feature = "runtime")]
    fn spawn_causing<F>(&self, op: u64, make: impl FnOnce(Origin) -> F)
    where
        F: Future<Output = Result<RawJson>> + Send + 'static,
    {
        let (started, origin) = Started::new(self, op);
        let future = make(origin.clone());
        self.spawn_as(started, op, origin::within(origin, future));
    }

    #[cfg(feature = "runtime")]
    fn spawn_as(
        &self,
        started: Weak<Started>,
        op: u64,
        future: impl Future<Output = Result<RawJson>> + Send + 'static,
    ) {
        struct Abort(tokio::task::AbortHandle);
        impl Drop for Abort {
            fn drop(&mut self) {
                self.0.abort();
            }
        }
        self.operation_as(started, op, |finish| {
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

    /// Returns the load of the bridge.
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
