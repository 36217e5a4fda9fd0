use std::sync::Arc;

use crate::call::{Done, Told};
use crate::jsonrpc::RawJson;

/// Receiver of the answer to a request of ours.
pub(crate) struct Waiter {
    pub(crate) done: Done,
    pub(crate) progress: Option<Progress>,
    /// Progress is heard after the answer, too.
    pub(crate) lasting: bool,
    /// Hears what is told on the listen stream that it is.
    pub(crate) told: Option<Told>,
}

pub(super) type Progress = Arc<dyn Fn(RawJson) + Send + Sync>;
