//! When a mounted endpoint uses its server.

use std::sync::Arc;

use http::StatusCode;

use super::endpoint::Inner;
use super::reply::Refusal;
use crate::driver::{Use, runtime};
use crate::error::Result;
use crate::server::NOT_STARTED;

impl Inner {
    /// The use of the server begins, unless it has. A start goes on when the request that was first is given up.
    pub(super) async fn begin(self: &Arc<Self>) -> Result<(), Refusal> {
        if !self.mounted || self.begun.initialized() {
            return Ok(());
        }
        let inner = self.clone();
        let started = runtime::spawn(async move { inner.begun.get_or_try_init(|| inner.used()).await.is_ok() });
        match started.await {
            Ok(true) => Ok(()),
            // Why is not for the client.
            _ => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the server could not start")),
        }
    }

    /// Begins a use that ends with the server or the endpoint.
    async fn used(&self) -> Result<()> {
        let uses = match Use::begin(&self.server).await {
            Ok(uses) => uses,
            Err(error) => {
                let failures = &self.server.shared.router.common.failures;
                failures.report("lifespan", "the lifespan", NOT_STARTED, &error);
                return Err(error);
            }
        };
        let (server, gone) = (self.server.clone(), self.gone.clone());
        runtime::spawn(async move {
            tokio::select! {
                () = server.shared.stop.wait() => {}
                () = gone.wait() => {}
            }
            uses.end().await;
        });
        Ok(())
    }
}
