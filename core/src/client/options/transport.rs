//! The HTTP transport of a program, as an option.

use std::sync::Arc;

use crate::client::ClientOptions;
use crate::client::http_transport::{Carried, HttpTransport};

impl ClientOptions {
    /// Carries the HTTP of this client, authorization included, instead of its own connections. `proxy`, `ca`, `cert` and
    /// `key` are about those, and are refused beside it. Default: none.
    #[must_use]
    pub fn http_transport(mut self, transport: impl HttpTransport) -> Self {
        self.http_transport = Carried(Some(Arc::new(transport)));
        self
    }
}
