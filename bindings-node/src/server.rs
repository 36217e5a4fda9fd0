//! The server object of the host: registration and serving.

use napi_derive::napi;

use crate::error::{Result, raise};
use crate::host::Bridge;
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

    /// `definition` is the `Tool` object of the schema as JSON.
    #[napi(catch_unwind)]
    pub fn add_tool(&self, definition: String, handler: u32) -> Result<()> {
        self.inner.add_tool(&definition, handler).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn remove_tool(&self, name: String) -> bool {
        self.inner.remove_tool(&name)
    }

    #[napi(catch_unwind)]
    pub fn serve_stdio(&self, op: i64) {
        self.inner.serve_stdio(op as u64);
    }

    #[napi(catch_unwind)]
    pub fn serve_http(&self, options: String, op: i64) {
        self.inner.serve_http(&options, op as u64);
    }

    /// An endpoint without a socket, to be mounted in somebody else's server.
    #[napi(catch_unwind)]
    pub fn http(&self, options: String) -> Result<HttpEndpoint> {
        let inner = self.inner.http(&options).map_err(raise)?;
        Ok(HttpEndpoint { inner })
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
