//! Use of its server by a mounted endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use tokio::task::JoinHandle;

use super::ending;
use super::endpoint::Inner;
use super::reply::Refusal;
use crate::driver::{Use, runtime};
use crate::error::Result;
use crate::server::NOT_STARTED;
use crate::signal::Signal;

/// A mounted endpoint's use of its server, from its first request on.
#[derive(Default)]
pub(super) struct Begun {
    has: AtomicBool,
    life: tokio::sync::Mutex<Option<Life>>,
}

/// A use that goes on until it is told to end.
struct Life {
    over: Arc<Signal>,
    task: JoinHandle<()>,
}

impl Inner {
    /// The use of the server begins, unless it has. A start goes on when the request that was first is given up.
    pub(super) async fn begin(self: &Arc<Self>) -> Result<(), Refusal> {
        if !self.mounted || self.begun.has.load(Ordering::Acquire) {
            return Ok(());
        }
        // An endpoint that ends is not begun anew on the way.
        if self.is_ending() {
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, ending::WHY));
        }
        let inner = self.clone();
        let started = runtime::spawn(async move {
            let mut life = inner.begun.life.lock().await;
            if life.is_none() {
                *life = Some(inner.used().await?);
                inner.begun.has.store(true, Ordering::Release);
            }
            crate::error::Result::<()>::Ok(())
        });
        match started.await {
            Ok(Ok(())) => Ok(()),
            // Why is not for the client.
            _ => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server could not start")),
        }
    }

    /// The use ends, and with the last one of the server what its lifespan has started. A request that comes later begins
    /// another.
    pub(super) async fn end_use(&self) {
        let mut life = self.begun.life.lock().await;
        self.begun.has.store(false, Ordering::Release);
        if let Some(Life { over, task }) = life.take() {
            over.set();
            // Fails only with the runtime.
            let _ = task.await;
        }
    }

    /// Begins a use that ends with the server or the endpoint.
    async fn used(&self) -> Result<Life> {
        let uses = match Use::begin(&self.server).await {
            Ok(uses) => uses,
            Err(error) => {
                let failures = &self.server.shared.router.common.failures;
                failures.report("lifespan", "the lifespan", NOT_STARTED, &error);
                return Err(error);
            }
        };
        let (server, gone, over) = (self.server.clone(), self.gone.clone(), Arc::new(Signal::default()));
        let ends = over.clone();
        let task = runtime::spawn(async move {
            tokio::select! {
                biased;
                () = server.shared.stop.wait() => {}
                () = gone.wait() => {}
                () = ends.wait() => {}
            }
            uses.end().await;
        });
        Ok(Life { over, task })
    }
}
