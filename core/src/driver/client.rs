use std::sync::Arc;

use super::{Peer, Waiter};
use crate::client::{CallOptions, Guard, Link};
use crate::error::Result;
use crate::jsonrpc::RawJson;
use crate::protocol::{Input, Invocation};

impl Link for Peer {
    fn request(
        self: Arc<Self>,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        done: Box<dyn FnOnce(Result<RawJson>) + Send>,
    ) -> Guard {
        let waiter = Waiter { done, progress: options.progress.clone() };
        let pending = self.call(
            |call| {
                let mut invocation = Invocation::new(call, method, params);
                invocation.timeout = options.timeout;
                invocation.max_timeout = options.max_timeout;
                invocation.idempotent = options.idempotent;
                invocation.progress = options.progress.is_some();
                invocation
            },
            waiter,
        );
        Box::new(pending)
    }

    fn notify(self: Arc<Self>, method: &'static str, params: RawJson) {
        self.handle(Input::Notify { method, params, related: None });
    }

    fn awaited(&self) -> usize {
        Self::awaited(self)
    }
}
