//! Lifespan of a server: its options.

use std::any::Any;
use std::future::Future;
use std::sync::{Arc, PoisonError};

use crate::error::Result;
use crate::server::Server;
use crate::server::lifespan::{Functions, Lifespan};

impl Server {
    /// Starts something when the server is first used by any transport, before anything is answered, and stops it when
    /// the last use has ended: [`serve_stdio`](Self::serve_stdio), a port that is listened on, a client in memory, a
    /// mounted endpoint from its first request until it is dropped. The value of `start` is
    /// [`Context::state`](crate::Context::state) for every handler. When it fails, serving or connecting fails with
    /// that error, and the next use tries again.
    #[must_use]
    pub fn lifespan<S, E, T, Starting, Ending, Failure>(self, start: S, stop: E) -> Self
    where
        S: Fn() -> Starting + Send + Sync + 'static,
        Starting: Future<Output = Result<T, Failure>> + Send + 'static,
        Failure: std::fmt::Display + 'static,
        E: Fn(Arc<T>) -> Ending + Send + Sync + 'static,
        Ending: Future<Output = ()> + Send + 'static,
        T: Any + Send + Sync,
    {
        self.set_lifespan(Arc::new(Functions(start, stop)));
        self
    }

    pub(crate) fn set_lifespan(&self, lifespan: Arc<dyn Lifespan>) {
        *self.shared.lifespan.write().unwrap_or_else(PoisonError::into_inner) = Some(lifespan);
    }
}
