//! Ends of sessions.

use std::sync::Arc;

use crate::call::Link;
use crate::server::registry::Changes;

impl super::Router {
    /// Tells those that wait for it that a connection has ended, and its session.
    pub(crate) fn ended(link: &dyn Link) {
        if let Some(overlay) = link.session().get().and_then(|slot| slot.downcast_ref::<Overlay>()) {
            overlay.ended.set();
        }
    }
}

/// One session's changes, kept at its connection.
pub(crate) struct Overlay {
    pub(crate) router: Arc<super::Router>,
    pub(crate) changes: std::sync::OnceLock<std::sync::RwLock<Changes>>,
    pub(crate) roots: RootsNews,
    /// Set when the session has ended.
    pub(crate) ended: crate::signal::Signal,
}

impl Overlay {
    pub(crate) fn new(router: Arc<super::Router>) -> Self {
        let (changes, roots) = (std::sync::OnceLock::new(), RootsNews::default());
        Self { router, changes, roots, ended: crate::signal::Signal::default() }
    }
}

/// True if a session's hook is being told that roots have changed: one run at a time, and one more when they have
/// changed again meanwhile.
#[derive(Default)]
pub(crate) struct RootsNews(std::sync::Mutex<(bool, bool)>);

impl RootsNews {
    pub(super) fn lock(&self) -> std::sync::MutexGuard<'_, (bool, bool)> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Returns true if a run is to begin.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.lock();
        let begins = !state.0;
        *state = (true, !begins);
        begins
    }

    /// Ends a run. Returns true if another is to begin.
    pub(crate) fn end(&self) -> bool {
        let mut state = self.lock();
        let again = state.1;
        *state = (again, false);
        again
    }
}
