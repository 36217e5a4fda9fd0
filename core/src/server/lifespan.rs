//! Lifespan of a server, from its start to its end, and the things that it holds: a pool of connections, a cache.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

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

pub(super) struct Functions<S, E>(pub(super) S, pub(super) E);

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
