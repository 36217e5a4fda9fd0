//! The HTTP endpoint without a socket: requests in, `http_head` and `http_chunk` events out.

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tricorn::bridge;

use crate::local::{Local, guarded};

/// A server's endpoint for a web framework that owns the sockets.
#[pyclass(frozen, module = "tricorn._core")]
pub(crate) struct HttpEndpoint {
    pub(crate) inner: Local<bridge::HttpEndpoint>,
}

#[pymethods]
impl HttpEndpoint {
    /// One HTTP exchange; `op` settles after its last chunk, settling it early means that the client went away.
    fn exchange(&self, op: u64, head: &str, body: &[u8]) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.exchange(op, head, Bytes::copy_from_slice(body));
            Ok(())
        })
    }

    /// The last chunk of `op` is written; the next one comes only after this.
    fn written(&self, op: u64) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.written(op);
            Ok(())
        })
    }

    /// The host ends: streams end, what runs has `grace` seconds, then `op` settles.
    fn shutdown(&self, op: u64, grace: f64) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.shutdown(op, grace);
            Ok(())
        })
    }

    /// `{"path", "text"}` of the protected-resource metadata as JSON, or `None`.
    fn resource_metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        guarded(|| Ok(self.inner.get()?.resource_metadata().map(|document| PyBytes::new(py, document.bytes()))))
    }
}
