//! A server of the core for Swift.

use std::sync::Arc;

use tricorn::bridge::Server;

use crate::client::params;
use crate::error::CoreError;
use crate::host::{CoreBridge, CorePayload};
use crate::http::CoreEndpoint;

#[derive(uniffi::Object)]
pub struct CoreServer(pub(crate) Server);

#[uniffi::export]
impl CoreServer {
    #[uniffi::constructor]
    pub fn new(bridge: Arc<CoreBridge>, source: u32, options: String) -> Result<Arc<Self>, CoreError> {
        Ok(Arc::new(Self(Server::new(&bridge.0, source, &options)?)))
    }

    pub fn add(&self, kind: String, definition: String, options: String, handler: u32) -> Result<(), CoreError> {
        Ok(self.0.add(&kind, &definition, &options, handler)?)
    }

    pub fn remove(&self, kind: String, name: String) -> Result<bool, CoreError> {
        Ok(self.0.remove(&kind, &name)?)
    }

    pub fn add_files(&self, options: String) -> Result<(), CoreError> {
        Ok(self.0.add_files(&options)?)
    }

    pub fn set_enabled(&self, kind: String, name: String, yes: bool) -> Result<bool, CoreError> {
        Ok(self.0.set_enabled(&kind, &name, yes)?)
    }

    pub fn set_source(&self, kind: String, list: Option<u32>, get: Option<u32>) -> Result<(), CoreError> {
        Ok(self.0.set_source(&kind, list, get)?)
    }

    pub fn set_hook(&self, name: String, handler: u32) -> Result<(), CoreError> {
        Ok(self.0.set_hook(&name, handler)?)
    }

    pub fn add_middleware(&self, handler: u32) -> Result<(), CoreError> {
        self.0.add_middleware(handler);
        Ok(())
    }

    pub fn add_builtin(&self, options: String) -> Result<(), CoreError> {
        Ok(self.0.add_builtin(&options)?)
    }

    pub fn set_lifespan(&self, start: u32, stop: u32) -> Result<(), CoreError> {
        self.0.set_lifespan(start, stop);
        Ok(())
    }

    pub fn add_extension(&self, definition: String) -> Result<(), CoreError> {
        Ok(self.0.add_extension(&definition)?)
    }

    pub fn notify(&self, method: String, json: &[u8], key: Option<String>) -> Result<(), CoreError> {
        Ok(self.0.notify(&method, params(json), key.as_deref())?)
    }

    pub fn elicitation_complete(&self, elicitation_id: String) -> Result<(), CoreError> {
        self.0.elicitation_complete(&elicitation_id);
        Ok(())
    }

    pub fn resource_updated(&self, uri: String) -> Result<(), CoreError> {
        self.0.resource_updated(&uri);
        Ok(())
    }

    pub fn list_changed(&self, kind: String) -> Result<(), CoreError> {
        Ok(self.0.list_changed(&kind)?)
    }

    pub fn serve_stdio(&self, op: u64) -> Result<(), CoreError> {
        self.0.serve_stdio(op);
        Ok(())
    }

    pub fn serve_http(&self, options: String, op: u64) -> Result<(), CoreError> {
        self.0.serve_http(&options, op);
        Ok(())
    }

    pub fn end_http(&self, op: u64) -> Result<(), CoreError> {
        self.0.end_http(op);
        Ok(())
    }

    pub fn http(&self, options: String) -> Result<Arc<CoreEndpoint>, CoreError> {
        Ok(Arc::new(CoreEndpoint(self.0.http(&options)?)))
    }

    pub fn drain(&self, op: u64) -> Result<(), CoreError> {
        self.0.drain(op);
        Ok(())
    }

    pub fn check_store(&self, op: u64) -> Result<(), CoreError> {
        self.0.check_store(op);
        Ok(())
    }

    pub fn close(&self) -> Result<(), CoreError> {
        self.0.close();
        Ok(())
    }

    pub fn metrics(&self) -> Result<Arc<CorePayload>, CoreError> {
        Ok(CorePayload::new(self.0.metrics()))
    }
}
