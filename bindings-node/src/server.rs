//! The server object of the host: registration and serving.

use napi_derive::napi;

use crate::error::{Result, raise};
use crate::host::{Bridge, raw};
use crate::http::HttpEndpoint;

#[napi]
pub struct Server {
    pub(crate) inner: tricorn::bridge::Server,
}

#[napi]
impl Server {
    /// `options` is JSON with snake_case keys, as in every method here that takes options.
    #[napi(constructor, catch_unwind)]
    pub fn new(bridge: &Bridge, source: u32, options: String) -> Result<Self> {
        let inner = tricorn::bridge::Server::new(&bridge.inner, source, &options).map_err(raise)?;
        Ok(Self { inner })
    }

    /// `definition` and `options` are JSON; `handler` is the number of a function of the host.
    #[napi(catch_unwind)]
    pub fn add(&self, kind: String, definition: String, options: String, handler: u32) -> Result<()> {
        self.inner.add(&kind, &definition, &options, handler).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn remove(&self, kind: String, name: String) -> Result<bool> {
        self.inner.remove(&kind, &name).map_err(raise)
    }

    /// Adds a file, or the files of a directory, as resources.
    #[napi(catch_unwind)]
    pub fn add_files(&self, options: String) -> Result<()> {
        self.inner.add_files(&options).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn set_enabled(&self, kind: String, name: String, enabled: bool) -> Result<bool> {
        self.inner.set_enabled(&kind, &name, enabled).map_err(raise)
    }

    /// `list` and `get` are numbers of functions of the host.
    #[napi(catch_unwind)]
    pub fn set_source(&self, kind: String, list: Option<u32>, get: Option<u32>) -> Result<()> {
        self.inner.set_source(&kind, list, get).map_err(raise)
    }

    /// `name` is `complete` or `subscribe`.
    #[napi(catch_unwind)]
    pub fn set_hook(&self, name: String, handler: u32) -> Result<()> {
        self.inner.set_hook(&name, handler).map_err(raise)
    }

    /// `start` and `stop` are numbers of functions of the host.
    #[napi(catch_unwind)]
    pub fn set_lifespan(&self, start: u32, stop: u32) {
        self.inner.set_lifespan(start, stop);
    }

    /// `handler` stands around every request.
    #[napi(catch_unwind)]
    pub fn add_middleware(&self, handler: u32) {
        self.inner.add_middleware(handler);
    }

    /// Middleware of the engine itself.
    #[napi(catch_unwind)]
    pub fn add_builtin(&self, options: String) -> Result<()> {
        self.inner.add_builtin(&options).map_err(raise)
    }

    /// Offers an extension of the protocol. `definition` is JSON; it has the numbers of functions of the host.
    #[napi(catch_unwind)]
    pub fn add_extension(&self, definition: String) -> Result<()> {
        self.inner.add_extension(&definition).map_err(raise)
    }

    /// Sends a notification of an extension to those who asked for it; `params` is JSON.
    #[napi(catch_unwind)]
    pub fn notify(&self, method: String, params: Option<String>, key: Option<String>) -> Result<()> {
        self.inner.notify(&method, params.map(raw), key.as_deref()).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn elicitation_complete(&self, elicitation_id: String) {
        self.inner.elicitation_complete(&elicitation_id);
    }

    #[napi(catch_unwind)]
    pub fn resource_updated(&self, uri: String) {
        self.inner.resource_updated(&uri);
    }

    #[napi(catch_unwind)]
    pub fn list_changed(&self, kind: String) -> Result<()> {
        self.inner.list_changed(&kind).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn serve_stdio(&self, op: i64) {
        self.inner.serve_stdio(op as u64);
    }

    #[napi(catch_unwind)]
    pub fn serve_http(&self, options: String, op: i64) {
        self.inner.serve_http(&options, op as u64);
    }

    /// Ends the listening that began as `op`.
    #[napi(catch_unwind)]
    pub fn end_http(&self, op: i64) {
        self.inner.end_http(op as u64);
    }

    /// An endpoint without a socket, to be mounted in somebody else's server.
    #[napi(catch_unwind)]
    pub fn http(&self, options: String) -> Result<HttpEndpoint> {
        let inner = self.inner.http(&options).map_err(raise)?;
        Ok(HttpEndpoint { inner })
    }

    /// Stops listening, and serving when everything is answered; `op` settles then.
    #[napi(catch_unwind)]
    pub fn drain(&self, op: i64) {
        self.inner.drain(op as u64);
    }

    /// Tries the rules of the server's own store; `op` settles then.
    #[napi(catch_unwind)]
    pub fn check_store(&self, op: i64) {
        self.inner.check_store(op as u64);
    }

    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.inner.close();
    }

    /// Gauges, as JSON.
    #[napi(catch_unwind)]
    pub fn metrics(&self) -> String {
        self.inner.metrics().get().to_owned()
    }
}
