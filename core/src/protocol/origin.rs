//! Cause of a request, by the number that its starter in this process gave it. It never goes over a wire.

use std::fmt;
use std::sync::Arc;

/// Something that was started in this process: a call of a client, an exchange that an endpoint was given.
pub(crate) trait Cause: Send + Sync {
    /// Returns the number that its starter knows it by; never 0.
    fn number(&self) -> u64;
    /// Work for it goes on after its end.
    fn outlast(&self);
}

/// Cause of a request. As long as there is a clone of it, something may still run for that.
#[derive(Clone)]
pub(crate) struct Origin(Arc<dyn Cause>);

impl Origin {
    pub(crate) fn new(cause: Arc<dyn Cause>) -> Self {
        Self(cause)
    }

    /// Returns the number that its starter knows it by.
    pub(crate) fn number(&self) -> u64 {
        self.0.number()
    }

    /// Work for it goes on after its end.
    pub(crate) fn outlast(&self) {
        self.0.outlast();
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Origin({})", self.number())
    }
}
