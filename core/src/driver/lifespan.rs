use std::sync::{Arc, PoisonError};

#[cfg(feature = "redis")]
use super::node::Node;
use super::runtime;
use crate::error::Result;
use crate::server::{Lifespan, Server};

/// One use of a server. It ends with [`end`](Self::end), or in the background when it is dropped.
pub(crate) struct Use {
    lifespan: Option<(Server, Arc<dyn Lifespan>)>,
    /// It is one of several processes.
    #[cfg(feature = "redis")]
    node: Option<Arc<Node>>,
}

impl Use {
    /// Begins a use; the first one starts the value that the server's handlers share.
    ///
    /// # Errors
    /// The error of its start; a store in the environment that this build has not, or whose address is none.
    pub(crate) async fn begin(server: &Server) -> Result<Self> {
        #[cfg(feature = "redis")]
        let node = Node::join(server).await?;
        #[cfg(not(feature = "redis"))]
        if let Some(store) = crate::store::StoreOptions::from_environment()? {
            store.check(&format!("environment variable {}", crate::store::VARIABLE))?;
        }
        let lifespan = Self::started(server).await?;
        Ok(Self {
            lifespan,
            #[cfg(feature = "redis")]
            node,
        })
    }

    async fn started(server: &Server) -> Result<Option<(Server, Arc<dyn Lifespan>)>> {
        let lifespan = server.shared.lifespan.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(lifespan) = lifespan else { return Ok(None) };
        let mut life = server.shared.life.lock().await;
        if life.users == 0 {
            let shared = lifespan.start().await?;
            life.shared = Some(shared.clone());
            let router = &server.shared.router;
            *router.lifespan_state.write().unwrap_or_else(PoisonError::into_inner) = Some(shared);
        }
        life.users += 1;
        drop(life);
        Ok(Some((server.clone(), lifespan)))
    }

    /// The use ends; with the last one stops what was started, also when nobody waits for it.
    pub(crate) async fn end(mut self) {
        if let Some((server, lifespan)) = self.lifespan.take() {
            // Fails only when the stop panics, or with the runtime.
            let _ = runtime::spawn(end(server, lifespan)).await;
        }
        #[cfg(feature = "redis")]
        if let Some(node) = self.node.take() {
            node.leave().await;
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
        if let Some((server, lifespan)) = self.lifespan.take() {
            runtime::spawn(end(server, lifespan));
        }
    }
}
