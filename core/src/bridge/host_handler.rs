//! A handler that lives in the host: each call is a delivery, and the answer comes by its key.

use std::sync::atomic::Ordering;

use super::{Bridge, Delivery, Running, lock};
use crate::call::{Context, Handler, Next, Reply, Request};
use crate::jsonrpc::RawJson;
use crate::protocol::Origin;

/// A handler that lives in the host.
pub(super) struct HostHandler {
    pub(super) bridge: Bridge,
    pub(super) handler: u32,
}

impl HostHandler {
    pub(super) fn deliver(&self, cx: Context, params: RawJson, reply: Reply, next: Option<(Request, Next)>) {
        let shared = &self.bridge.0;
        let key = shared.last_key.fetch_add(1, Ordering::Relaxed) + 1;
        cx.tag().store(key, Ordering::Release);
        let origin = cx.request().origin.as_ref().map_or(0, Origin::number);
        let queue = lock(&shared.queue);
        if queue.closed {
            drop(queue);
            // The reply answers as it is dropped.
            return;
        }
        // Under the queue's lock: `close` comes before this or sees it, and `Cancel` comes after `Call`.
        let mut calls = lock(&shared.calls);
        calls.insert(key, Running { context: cx.clone(), reply, next });
        let several = calls.len() > 1;
        drop(calls);
        self.bridge.push_call(queue, Delivery::Call { key, handler: self.handler, params, origin }, several);
        // A cancellation that came before the insert found nothing.
        if cx.is_cancelled() {
            self.cancel(&cx, None);
        }
    }
}

impl Handler for HostHandler {
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        self.deliver(cx, params, reply, None);
    }

    fn cancel(&self, cx: &Context, reason: Option<&str>) {
        let mut calls = lock(&self.bridge.0.calls);
        // Looked up under the lock that the insert takes, or both could miss each other.
        let key = cx.tag().load(Ordering::Acquire);
        let cancelled = calls.remove(&key);
        drop(calls);
        if cancelled.is_some() {
            self.bridge.push(Delivery::Cancel { key, reason: reason.map(str::to_owned) });
        }
        drop(cancelled);
    }
}
