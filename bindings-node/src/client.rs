//! The client object of the host: one connection to one server.

use std::sync::Arc;

use napi::bindgen_prelude::External;
use napi_derive::napi;

use crate::error::{Result, raise};
use crate::host::{Bridge, raw};
use crate::server::Server;

#[napi]
pub struct Client {
    inner: Arc<tricorn::bridge::Client>,
}

impl From<tricorn::bridge::Client> for Client {
    fn from(inner: tricorn::bridge::Client) -> Self {
        Self { inner: Arc::new(inner) }
    }
}

#[napi]
impl Client {
    /// `target` and `options` are JSON.
    #[napi(constructor, catch_unwind)]
    pub fn new(bridge: &Bridge, source: u32, target: String, options: String) -> Result<Self> {
        let inner = tricorn::bridge::Client::new(&bridge.inner, source, &target, &options).map_err(raise)?;
        Ok(inner.into())
    }

    /// A client of a server in this very process, without a socket or a pipe between them.
    #[napi(factory, catch_unwind)]
    pub fn in_memory(bridge: &Bridge, source: u32, server: &Server, options: String) -> Result<Self> {
        let inner =
            tricorn::bridge::Client::in_memory(&bridge.inner, source, &server.inner, &options).map_err(raise)?;
        Ok(inner.into())
    }

    /// Before connecting. `capability` is what is declared for it, as JSON.
    #[napi(catch_unwind)]
    pub fn set_handler(&self, method: String, capability: String, handler: u32) -> Result<()> {
        self.inner.set_handler(&method, &capability, handler).map_err(raise)
    }

    /// Before connecting. `handler` stands around every request that is sent.
    #[napi(catch_unwind)]
    pub fn add_middleware(&self, handler: u32) {
        self.inner.add_middleware(handler);
    }

    /// Before connecting. Middleware of the engine itself.
    #[napi(catch_unwind)]
    pub fn add_builtin(&self, options: String) -> Result<()> {
        self.inner.add_builtin(&options).map_err(raise)
    }

    /// `roots` is a JSON array.
    #[napi(catch_unwind)]
    pub fn set_roots(&self, roots: String) -> Result<()> {
        self.inner.set_roots(&roots).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn connect(&self, op: i64) {
        self.inner.connect(op as u64);
    }

    /// Makes the handle that [`request`] wants; [`Bridge::handle`] says why.
    #[napi(catch_unwind)]
    pub fn handle(&self) -> ClientHandle {
        External::new(self.inner.clone())
    }

    /// From now on the events `notification` bring the changes of lists in every revision.
    #[napi(catch_unwind)]
    pub fn hear_changes(&self) {
        self.inner.hear_changes();
    }

    /// `listener` is a number of the caller's, used once; `filter` is a `SubscriptionFilter` as JSON.
    #[napi(catch_unwind)]
    pub fn listen(&self, op: i64, listener: i64, filter: String) {
        self.inner.listen(op as u64, listener as u64, &filter);
    }

    #[napi(catch_unwind)]
    pub fn next_change(&self, op: i64, listener: i64) {
        self.inner.next_change(op as u64, listener as u64);
    }

    #[napi(catch_unwind)]
    pub fn end_listening(&self, listener: i64) {
        self.inner.end_listening(listener as u64);
    }

    #[napi(catch_unwind)]
    pub fn notify(&self, method: String, params: Option<String>) -> Result<()> {
        self.inner.notify(&method, params.map(raw)).map_err(raise)
    }

    /// The id of the legacy HTTP session as it is now.
    #[napi(catch_unwind)]
    pub fn session_id(&self) -> Option<String> {
        self.inner.session_id()
    }

    #[napi(catch_unwind)]
    pub fn close(&self, op: i64) {
        self.inner.close(op as u64);
    }

    /// The steps of the last logins, as a JSON array.
    #[napi(catch_unwind)]
    pub fn auth_trace(&self) -> String {
        self.inner.auth_trace().get().to_owned()
    }

    /// Gauges, as JSON.
    #[napi(catch_unwind)]
    pub fn metrics(&self) -> String {
        self.inner.metrics().get().to_owned()
    }
}

/// See [`Bridge::handle`].
type ClientHandle = External<Arc<tricorn::bridge::Client>>;

/// Sends a request. `params` and `options` are JSON; empty options are the defaults.
#[napi(catch_unwind)]
pub(crate) fn request(client: &ClientHandle, op: i64, method: String, params: Option<String>, options: String) {
    client.request(op as u64, &method, params.map(raw), &options);
}
