//! What caused a request, as whoever started that in this process knows it. It never goes over a wire.

use std::fmt;
use std::sync::Arc;

/// Something that was started in this process: a call of a client, an exchange that an endpoint was given.
pub(crate) trait Cause: Send + Sync {
    /// How its starter knows it; never 0.
    fn number(&self) -> u64;
    /// What runs for it goes on after its end.
    fn outlast(&self);
}

/// What caused a request. As long as there is a clone of it, something may still run for that.
#[derive(Clone)]
pub(crate) struct Origin(Arc<dyn Cause>);

impl Origin {
    pub(crate) fn new(cause: Arc<dyn Cause>) -> Self {
        Self(cause)
    }

    /// How its starter knows it.
    pub(crate) fn number(&self) -> u64 {
        self.0.number()
    }

    /// What runs for it goes on after its end.
    pub(crate) fn outlast(&self) {
        self.0.outlast();
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({})", self.number())
    }
}
