//! A client of the core for Swift.

use std::sync::Arc;

use tricorn::bridge::Client;
use tricorn::jsonrpc::RawJson;

use crate::error::CoreError;
use crate::host::{CoreBridge, CorePayload, written};
use crate::server::CoreServer;

#[derive(uniffi::Object)]
pub struct CoreClient(Client);

impl CoreClient {
    pub(crate) fn of(client: Client) -> Arc<Self> {
        Arc::new(Self(client))
    }
}

/// No parameters at all cross as no bytes.
pub(crate) fn params(json: &[u8]) -> Option<RawJson> {
    (!json.is_empty()).then(|| written(json))
}

#[uniffi::export]
impl CoreClient {
    #[uniffi::constructor]
    pub fn new(bridge: Arc<CoreBridge>, source: u32, target: String, options: String) -> Result<Arc<Self>, CoreError> {
        Ok(Arc::new(Self(Client::new(&bridge.0, source, &target, &options)?)))
    }

    #[uniffi::constructor]
    pub fn in_memory(
        bridge: Arc<CoreBridge>,
        source: u32,
        server: Arc<CoreServer>,
        options: String,
    ) -> Result<Arc<Self>, CoreError> {
        Ok(Arc::new(Self(Client::in_memory(&bridge.0, source, &server.0, &options)?)))
    }

    pub fn set_handler(&self, method: String, capability: String, handler: u32) -> Result<(), CoreError> {
        Ok(self.0.set_handler(&method, &capability, handler)?)
    }

    pub fn set_roots(&self, roots: String) -> Result<(), CoreError> {
        Ok(self.0.set_roots(&roots)?)
    }

    pub fn add_middleware(&self, handler: u32) -> Result<(), CoreError> {
        self.0.add_middleware(handler);
        Ok(())
    }

    pub fn add_builtin(&self, options: String) -> Result<(), CoreError> {
        Ok(self.0.add_builtin(&options)?)
    }

    pub fn connect(&self, op: u64) -> Result<(), CoreError> {
        self.0.connect(op);
        Ok(())
    }

    pub fn request(&self, op: u64, method: String, json: &[u8], options: String) -> Result<(), CoreError> {
        self.0.request(op, &method, params(json), &options);
        Ok(())
    }

    pub fn hear_changes(&self) -> Result<(), CoreError> {
        self.0.hear_changes();
        Ok(())
    }

    pub fn listen(&self, op: u64, listener: u64, filter: String) -> Result<(), CoreError> {
        self.0.listen(op, listener, &filter);
        Ok(())
    }

    pub fn next_change(&self, op: u64, listener: u64) -> Result<(), CoreError> {
        self.0.next_change(op, listener);
        Ok(())
    }

    pub fn end_listening(&self, listener: u64) -> Result<(), CoreError> {
        self.0.end_listening(listener);
        Ok(())
    }

    pub fn notify(&self, method: String, json: &[u8]) -> Result<(), CoreError> {
        Ok(self.0.notify(&method, params(json))?)
    }

    pub fn session_id(&self) -> Result<Option<String>, CoreError> {
        Ok(self.0.session_id())
    }

    pub fn close(&self, op: u64) -> Result<(), CoreError> {
        self.0.close(op);
        Ok(())
    }

    /// The steps of the last logins, an array.
    pub fn auth_trace(&self) -> Result<Arc<CorePayload>, CoreError> {
        Ok(CorePayload::new(self.0.auth_trace()))
    }

    pub fn metrics(&self) -> Result<Arc<CorePayload>, CoreError> {
        Ok(CorePayload::new(self.0.metrics()))
    }
}
