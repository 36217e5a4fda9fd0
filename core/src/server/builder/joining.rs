//! Connections that are served from now on.

use std::sync::Arc;

use crate::call::Link;
use crate::server::router::session::Overlay;

impl super::Shared {
    /// A connection is served from now on.
    pub(crate) fn join(&self, link: &Arc<dyn Link>) {
        let overlay = Overlay::new(self.router.clone());
        let _ = link.session().set(Arc::new(overlay));
        self.links.add(link);
    }
}
