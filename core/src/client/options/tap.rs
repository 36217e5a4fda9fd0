//! A tap, as an option.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::client::ClientOptions;
use crate::client::tap::{Tap, Tapped, Tapping};

impl ClientOptions {
    /// Shows this everything that passes, from the first message on. Default: nothing.
    #[must_use]
    pub fn tap(mut self, tap: impl Tap) -> Self {
        self.tap = Tapped(Some(Arc::new(tap)));
        self
    }

    /// The tap of one server of a group, where it has one of its own.
    pub(crate) fn tap_of_server(&mut self, name: &str) {
        if let Some(own) = self.tap.0.as_ref().and_then(|tap| tap.of_server(name)) {
            self.tap = Tapped(Some(own));
        }
    }

    /// The tap that there is.
    pub(crate) fn taps(&self) -> Option<Arc<dyn Tap>> {
        self.tap.0.clone()
    }

    /// The tap of a connection whose messages all pass on one stream, `stdio`; `None`: the transport names its streams.
    pub(crate) fn tapping(&self, on: Option<&'static str>) -> Option<Tapping> {
        self.tap.0.clone().map(|tap| Tapping { tap, on, last: AtomicU64::new(0) })
    }
}
