//! Clients of many servers as one, for Swift.

use std::sync::Arc;

use tricorn::bridge::ClientGroup;

use crate::client::CoreClient;
use crate::error::CoreError;
use crate::host::{CoreBridge, CorePayload};
use crate::server::CoreServer;

#[derive(uniffi::Object)]
pub struct CoreGroup(ClientGroup);

#[uniffi::export]
impl CoreGroup {
    #[uniffi::constructor]
    pub fn new(bridge: Arc<CoreBridge>, servers: String, options: String) -> Result<Arc<Self>, CoreError> {
        Ok(Arc::new(Self(ClientGroup::new(&bridge.0, &servers, &options)?)))
    }

    pub fn names(&self) -> Result<Vec<String>, CoreError> {
        Ok(self.0.names())
    }

    pub fn client(&self, name: String, source: u32) -> Result<Option<Arc<CoreClient>>, CoreError> {
        Ok(self.0.client(&name, source).map(CoreClient::of))
    }

    pub fn add(&self, name: String, source: u32, target: String) -> Result<Arc<CoreClient>, CoreError> {
        Ok(CoreClient::of(self.0.add(&name, source, &target)?))
    }

    pub fn add_server(&self, name: String, source: u32, server: Arc<CoreServer>) -> Result<Arc<CoreClient>, CoreError> {
        Ok(CoreClient::of(self.0.add_server(&name, source, &server.0)?))
    }

    pub fn connect(&self, op: u64) -> Result<(), CoreError> {
        self.0.connect(op);
        Ok(())
    }

    pub fn reconnect(&self, op: u64, name: String) -> Result<(), CoreError> {
        self.0.reconnect(op, &name);
        Ok(())
    }

    pub fn remove(&self, op: u64, name: String) -> Result<(), CoreError> {
        self.0.remove(op, &name);
        Ok(())
    }

    pub fn failures(&self) -> Result<Arc<CorePayload>, CoreError> {
        Ok(CorePayload::new(self.0.failures()))
    }

    pub fn list(&self, op: u64, kind: String, options: String) -> Result<(), CoreError> {
        self.0.list(op, &kind, &options);
        Ok(())
    }

    pub fn route(&self, op: u64, kind: String, name: String) -> Result<(), CoreError> {
        self.0.route(op, &kind, &name);
        Ok(())
    }

    pub fn set_log_level(&self, op: u64, level: String) -> Result<(), CoreError> {
        self.0.set_log_level(op, &level);
        Ok(())
    }

    pub fn close(&self, op: u64) -> Result<(), CoreError> {
        self.0.close(op);
        Ok(())
    }
}
