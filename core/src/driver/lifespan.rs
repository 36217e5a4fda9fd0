use std::sync::{Arc, PoisonError};

use super::runtime;
use crate::error::Result;
use crate::server::{Lifespan, Server};

/// One use of a server. It ends with [`end`](Self::end), or in the background when it is dropped.
pub(crate) struct Use(Option<(Server, Arc<dyn Lifespan>)>);

impl Use {
    /// Begins a use; the first one starts the value that the server's handlers share.
    ///
    /// # Errors
    /// The error of its start.
    pub(crate) async fn begin(server: &Server) -> Result<Self> {
        let lifespan = server.shared.lifespan.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(lifespan) = lifespan else { return Ok(Self(None)) };
        let mut life = server.shared.life.lock().await;
        if life.users == 0 {
            let shared = lifespan.start().await?;
            life.shared = Some(shared.clone());
            let router = &server.shared.router;
            *router.lifespan_state.write().unwrap_or_else(PoisonError::into_inner) = Some(shared);
        }
        life.users += 1;
        drop(life);
        Ok(Self(Some((server.clone(), lifespan))))
    }

    /// The use ends; with the last one stops what was started, also when nobody waits for it.
    pub(crate) async fn end(mut self) {
        if let Some((server, lifespan)) = self.0.take() {
            // Fails only when the stop panics, or with the runtime.
            let _ = runtime::spawn(end(server, lifespan)).await;
        }
    }
}

async fn end(server: Server, lifespan: Arc<dyn Lifespan>) {
    let mut life = server.shared.life.lock().await;
    life.users = life.users.saturating_sub(1);
    if life.users > 0 {
        return;
    }
    *server.shared.router.lifespan_state.write().unwrap_or_else(PoisonError::into_inner) = None;
    if let Some(shared) = life.shared.take() {
        // Under the lock: the next use starts after this.
        lifespan.stop(shared).await;
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if let Some((server, lifespan)) = self.0.take() {
            runtime::spawn(end(server, lifespan));
        }
    }
}
