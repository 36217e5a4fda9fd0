//! The server object.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tricorn::bridge;

use crate::error::checked;
use crate::host::Bridge;
use crate::http::HttpEndpoint;
use crate::local::{Local, guarded};

/// One server: its tools and every connection it serves.
#[pyclass(frozen, module = "tricorn._core")]
pub(crate) struct Server {
    pub(crate) inner: Local<bridge::Server>,
}

#[pymethods]
impl Server {
    #[new]
    fn new(bridge: &Bridge, source: u32, options: &str) -> PyResult<Self> {
        guarded(|| {
            let server = checked(bridge::Server::new(bridge.inner.get()?, source, options))?;
            Ok(Self { inner: Local::new(server) })
        })
    }

    /// Registers a tool: the schema's Tool object as JSON text, and its place in the handler table.
    fn add_tool(&self, definition: &str, handler: u32) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.add_tool(definition, handler)))
    }

    /// Removes a tool; False when there is none of that name.
    fn remove_tool(&self, name: &str) -> PyResult<bool> {
        guarded(|| Ok(self.inner.get()?.remove_tool(name)))
    }

    /// Serves standard input and output; `op` settles after end of file.
    fn serve_stdio(&self, py: Python<'_>, op: u64) -> PyResult<()> {
        guarded(|| {
            let server = self.inner.get()?;
            py.detach(|| server.serve_stdio(op));
            Ok(())
        })
    }

    /// Serves HTTP; the event `listening` tells the URL, `op` settles after `close`.
    fn serve_http(&self, py: Python<'_>, options: &str, op: u64) -> PyResult<()> {
        guarded(|| {
            let server = self.inner.get()?;
            py.detach(|| server.serve_http(options, op));
            Ok(())
        })
    }

    /// The HTTP endpoint without a socket, to be mounted elsewhere.
    fn http(&self, options: &str) -> PyResult<HttpEndpoint> {
        guarded(|| Ok(HttpEndpoint { inner: Local::new(checked(self.inner.get()?.http(options))?) }))
    }

    /// Stops serving everywhere.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| {
            let server = self.inner.get()?;
            py.detach(|| server.close());
            Ok(())
        })
    }

    /// Gauges as a JSON object.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| Ok(PyBytes::new(py, self.inner.get()?.metrics().bytes())))
    }
}
