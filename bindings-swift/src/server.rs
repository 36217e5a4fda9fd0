//! A server of the core for Swift.

use std::sync::Arc;

use tricorn::bridge::Server;

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

    pub fn add_tool(&self, definition: String, handler: u32) -> Result<(), CoreError> {
        Ok(self.0.add_tool(&definition, handler)?)
    }

    pub fn remove_tool(&self, name: String) -> Result<bool, CoreError> {
        Ok(self.0.remove_tool(&name))
    }

    pub fn serve_stdio(&self, op: u64) -> Result<(), CoreError> {
        self.0.serve_stdio(op);
        Ok(())
    }

    pub fn serve_http(&self, options: String, op: u64) -> Result<(), CoreError> {
        self.0.serve_http(&options, op);
        Ok(())
    }

    pub fn http(&self, options: String) -> Result<Arc<CoreEndpoint>, CoreError> {
        Ok(Arc::new(CoreEndpoint(self.0.http(&options)?)))
    }

    pub fn close(&self) -> Result<(), CoreError> {
        self.0.close();
        Ok(())
    }

    pub fn metrics(&self) -> Result<Arc<CorePayload>, CoreError> {
        Ok(CorePayload::new(self.0.metrics()))
    }
}
