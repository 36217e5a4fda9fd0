//! The group object of the host: clients of many servers.

use napi_derive::napi;

use crate::client::Client;
use crate::error::{Result, raise};
use crate::host::Bridge;
use crate::server::Server;

#[napi]
pub struct ClientGroup {
    inner: tricorn::bridge::ClientGroup,
}

#[napi]
impl ClientGroup {
    /// `servers` and `options` are JSON.
    #[napi(constructor, catch_unwind)]
    pub fn new(bridge: &Bridge, servers: String, options: String) -> Result<Self> {
        let inner = tricorn::bridge::ClientGroup::new(&bridge.inner, &servers, &options).map_err(raise)?;
        Ok(Self { inner })
    }

    #[napi(catch_unwind)]
    pub fn names(&self) -> Vec<String> {
        self.inner.names()
    }

    /// The client object of one server: to be asked for once.
    #[napi(catch_unwind)]
    pub fn client(&self, name: String, source: u32) -> Option<Client> {
        self.inner.client(&name, source).map(Client::from)
    }

    /// `target` is JSON.
    #[napi(catch_unwind)]
    pub fn add(&self, name: String, source: u32, target: String) -> Result<Client> {
        self.inner.add(&name, source, &target).map(Client::from).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn add_server(&self, name: String, source: u32, server: &Server) -> Result<Client> {
        self.inner.add_server(&name, source, &server.inner).map(Client::from).map_err(raise)
    }

    #[napi(catch_unwind)]
    pub fn connect(&self, op: i64) {
        self.inner.connect(op as u64);
    }

    #[napi(catch_unwind)]
    pub fn reconnect(&self, op: i64, name: String) {
        self.inner.reconnect(op as u64, &name);
    }

    #[napi(catch_unwind)]
    pub fn remove(&self, op: i64, name: String) {
        self.inner.remove(op as u64, &name);
    }

    /// Errors of the servers that are not connected, as JSON.
    #[napi(catch_unwind)]
    pub fn failures(&self) -> String {
        self.inner.failures().get().to_owned()
    }

    #[napi(catch_unwind)]
    pub fn list(&self, op: i64, kind: String, options: String) {
        self.inner.list(op as u64, &kind, &options);
    }

    #[napi(catch_unwind)]
    pub fn route(&self, op: i64, kind: String, name: String) {
        self.inner.route(op as u64, &kind, &name);
    }

    #[napi(catch_unwind)]
    pub fn set_log_level(&self, op: i64, level: String) {
        self.inner.set_log_level(op as u64, &level);
    }

    #[napi(catch_unwind)]
    pub fn close(&self, op: i64) {
        self.inner.close(op as u64);
    }
}
