//! A server's HTTP endpoint, for mounting in a host's own web framework.

use std::sync::Arc;

use tricorn::bridge::HttpEndpoint;

use crate::error::CoreError;
use crate::host::CorePayload;

#[derive(uniffi::Object)]
pub struct CoreEndpoint(pub(crate) HttpEndpoint);

#[uniffi::export]
impl CoreEndpoint {
    /// Starts one exchange; the answer arrives as events of the server that carry `op`, then a settle.
    pub fn exchange(&self, op: u64, head: String, body: &[u8]) -> Result<(), CoreError> {
        self.0.exchange(op, &head, body.to_vec().into());
        Ok(())
    }

    /// The last chunk of `op` is taken; the next one comes only after this.
    pub fn written(&self, op: u64) -> Result<(), CoreError> {
        self.0.written(op);
        Ok(())
    }

    /// Ends in order; settles `op` when everything has ended.
    pub fn shutdown(&self, op: u64, grace: f64) -> Result<(), CoreError> {
        self.0.shutdown(op, grace);
        Ok(())
    }

    /// `{"path", "text"}` of the protected-resource metadata, if there is any.
    pub fn resource_metadata(&self) -> Result<Option<Arc<CorePayload>>, CoreError> {
        Ok(self.0.resource_metadata().map(CorePayload::new))
    }
}
