//! A server's HTTP endpoint, for mounting in a host's own web framework.

use tricorn::bridge::HttpEndpoint;

use crate::error::CoreError;

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
}
