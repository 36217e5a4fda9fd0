//! Connections that are told of changes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::call::Link;
use crate::protocol::Input;

/// The connections that are told of changes.
#[derive(Default)]
pub(crate) struct Links(Mutex<Vec<Weak<dyn Link>>>, AtomicUsize);

impl Links {
    pub(super) fn all(&self) -> Vec<Arc<dyn Link>> {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<_> = links.iter().filter_map(Weak::upgrade).collect();
        // Those that are gone still hold memory.
        if all.len() < links.len() {
            links.retain(|known| known.strong_count() > 0);
            links.shrink_to(all.len() * 2);
        }
        all
    }

    /// Tells all of them.
    pub(crate) fn tell(&self, what: impl Fn() -> Input) {
        for link in self.all() {
            link.input(what());
        }
    }

    /// One of them is gone. Those that are gone make room when they are half of all.
    #[cfg(feature = "http")]
    pub(crate) fn left(&self) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if self.1.fetch_add(1, Ordering::Relaxed) * 2 >= links.len() {
            self.1.store(0, Ordering::Relaxed);
            links.retain(|known| known.strong_count() > 0);
            let kept = links.len() * 2;
            links.shrink_to(kept);
        }
    }

    pub(crate) fn add(&self, link: &Arc<dyn Link>) {
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if links.len() == links.capacity() {
            // Those that are gone make room before more is taken.
            links.retain(|known| known.strong_count() > 0);
            let spare = links.len();
            links.reserve(spare);
        }
        links.push(Arc::downgrade(link));
    }
}
