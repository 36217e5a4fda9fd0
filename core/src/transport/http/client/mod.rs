//! Streamable HTTP, the client's side.

use std::sync::Arc;

use crate::client::{ClientOptions, Closer};
use crate::driver::{Peer, Service};
use crate::error::{Error, ErrorKind, Result};

/// Joins an HTTP endpoint to a peer. Called by `transport/connect.rs`, which then calls `peer.open`.
pub(crate) fn connect(
    _url: &str,
    _headers: &[(String, String)],
    _options: &ClientOptions,
    _service: Arc<dyn Service>,
) -> Result<(Arc<Peer>, Arc<dyn Closer>)> {
    Err(Error::new(ErrorKind::Unsupported, "HTTP"))
}
