//! One HTTP exchange at a time, for servers that own the socket themselves.

use bytes::Bytes;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;

#[napi]
pub struct HttpEndpoint {
    pub(crate) inner: tricorn::bridge::HttpEndpoint,
}

#[napi]
impl HttpEndpoint {
    /// Starts exchange `op`. `head` is JSON: `{"method","path","headers":[[name,value]]}`.
    /// The answer comes as the events `http_head` and `http_chunk` and ends with the settled `op`.
    #[napi(catch_unwind)]
    pub fn exchange(&self, op: i64, head: String, body: Uint8Array) {
        // The engine outlives this call, the array may not: one copy, at most one request long.
        self.inner.exchange(op as u64, &head, Bytes::copy_from_slice(&body));
    }

    /// The last `http_chunk` of exchange `op` is written; the next one comes only after this.
    #[napi(catch_unwind)]
    pub fn written(&self, op: i64) {
        self.inner.written(op as u64);
    }

    /// `{"path", "text"}` of the protected-resource metadata, or null.
    #[napi(catch_unwind)]
    pub fn resource_metadata(&self) -> Option<String> {
        self.inner.resource_metadata().map(|document| document.get().to_owned())
    }
}
