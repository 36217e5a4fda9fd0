//! A lifespan that lives in the host.

use std::sync::Arc;

use super::nowhere::alone;
use super::{HostHandler, Server};
use crate::call::{BoxFuture, Handler, handled};
use crate::error::Result;
use crate::jsonrpc::RawJson;
use crate::server::{Lifespan, SharedState};

struct HostLifespan {
    start: Arc<dyn Handler>,
    stop: Arc<dyn Handler>,
}

impl Lifespan for HostLifespan {
    fn start(&self) -> BoxFuture<Result<SharedState>> {
        let starting = handled(&alone(&self.start), &self.start, RawJson::empty_object());
        Box::pin(async move {
            starting.await?;
            // The value that was started stays with the host.
            Ok(Arc::new(()) as SharedState)
        })
    }

    fn stop(&self, _: SharedState) -> BoxFuture<()> {
        let stopping = handled(&alone(&self.stop), &self.stop, RawJson::empty_object());
        Box::pin(async move {
            if let Err(error) = stopping.await {
                crate::report::say(format_args!("the server could not stop: {error}"));
            }
        })
    }
}

impl Server {
    /// Calls a host's `start` with `{}` when the server is first used by any transport, before anything is answered,
    /// and `stop` with `{}` when the last use has ended; both answer with `{}`. An error of `start` is that of the
    /// operation that would have served or connected, and the next use calls it again. The value that was started stays
    /// with the host. `start` must not connect to the server itself: it would wait for its own end.
    pub fn set_lifespan(&self, start: u32, stop: u32) {
        let handler = |handler| Arc::new(HostHandler { bridge: self.bridge.clone(), handler }) as Arc<dyn Handler>;
        self.server.set_lifespan(Arc::new(HostLifespan { start: handler(start), stop: handler(stop) }));
    }
}
