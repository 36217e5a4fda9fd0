//! Lifespan of a server, from its start to its end, and the things that it holds: a pool of connections, a cache.

use std::any::Any;
use std::future::Future;
use std::sync::{Arc, PoisonError};

use super::Server;
use crate::call::BoxFuture;
use crate::error::{Error, Result};

/// Kind of the failure that is reported when the start fails and nobody waits for it.
pub(crate) const NOT_STARTED: &str = "the server did not start";

/// Value that all handlers share while a server is in use.
pub(crate) type Shared = Arc<dyn Any + Send + Sync>;

/// Starts and stops what the handlers of a server share.
pub(crate) trait Lifespan: Send + Sync {
    /// Before the first request.
    fn start(&self) -> BoxFuture<Result<Shared>>;
    /// After the last one.
    fn stop(&self, shared: Shared) -> BoxFuture<()>;
}

struct Functions<S, E>(S, E);

impl<S, E, T, Starting, Ending, Failure> Lifespan for Functions<S, E>
where
    S: Fn() -> Starting + Send + Sync,
    Starting: Future<Output = Result<T, Failure>> + Send + 'static,
    Failure: std::fmt::Display,
    E: Fn(Arc<T>) -> Ending + Send + Sync,
    Ending: Future<Output = ()> + Send + 'static,
    T: Any + Send + Sync,
{
    fn start(&self) -> BoxFuture<Result<Shared>> {
        let starting = (self.0)();
        Box::pin(async move {
            let shared = starting.await.map_err(|e| Error::misuse(format!("the server could not start: {e}")))?;
            Ok(Arc::new(shared) as Shared)
        })
    }

    fn stop(&self, shared: Shared) -> BoxFuture<()> {
        match shared.downcast() {
            Ok(shared) => Box::pin((self.1)(shared)),
            Err(_) => Box::pin(std::future::ready(())),
        }
    }
}

/// Number of users of the server, and the value that was started for them.
#[derive(Default)]
pub(crate) struct Life {
    pub(crate) users: usize,
    pub(crate) shared: Option<Shared>,
}

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
