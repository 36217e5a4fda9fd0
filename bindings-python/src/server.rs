//! The server object.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tricorn::bridge;

use crate::error::checked;
use crate::host::{Bridge, json};
use crate::http::HttpEndpoint;
use crate::local::{Local, guarded};

/// One server: what it offers and every connection it serves.
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

    /// Registers a tool, resource, resource template or prompt: its definition in the schema's words, what else the
    /// engine shall know, and its place in the handler table.
    fn add(&self, kind: &str, definition: &str, options: &str, handler: u32) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.add(kind, definition, options, handler)))
    }

    /// Adds a file, or the files of a directory, as resources.
    fn add_files(&self, options: &str) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.add_files(options)))
    }

    /// Removes one; False when there is none of that name, URI or template.
    fn remove(&self, kind: &str, name: &str) -> PyResult<bool> {
        guarded(|| checked(self.inner.get()?.remove(kind, name)))
    }

    /// Shows or hides one; False when that changed nothing.
    fn set_enabled(&self, kind: &str, name: &str, yes: bool) -> PyResult<bool> {
        guarded(|| checked(self.inner.get()?.set_enabled(kind, name, yes)))
    }

    /// Sets the handlers that list and get what is not registered.
    #[pyo3(signature = (kind, list=None, get=None))]
    fn set_source(&self, kind: &str, list: Option<u32>, get: Option<u32>) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.set_source(kind, list, get)))
    }

    /// Sets the handler that completes what nothing else does (`complete`), or hears of subscriptions (`subscribe`).
    fn set_hook(&self, name: &str, handler: u32) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.set_hook(name, handler)))
    }

    /// Puts a function around every request that a handler answers; its place in the handler table.
    fn add_middleware(&self, handler: u32) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.add_middleware(handler);
            Ok(())
        })
    }

    /// Puts a built-in middleware around every request.
    fn add_builtin(&self, options: &str) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.add_builtin(options)))
    }

    /// Sets the handlers that start the server before its first use, and stop it after the last.
    fn set_lifespan(&self, start: u32, stop: u32) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.set_lifespan(start, stop);
            Ok(())
        })
    }

    /// Offers an extension of the protocol.
    fn add_extension(&self, definition: &str) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.add_extension(definition)))
    }

    /// Sends a notification of an extension to those who asked for it.
    #[pyo3(signature = (method, params=None, key=None))]
    fn notify(&self, method: &str, params: Option<&Bound<'_, PyAny>>, key: Option<&str>) -> PyResult<()> {
        let params = params.map(json).transpose()?;
        guarded(|| checked(self.inner.get()?.notify(method, params, key)))
    }

    /// Tells the client that was asked to let its user visit a page that this is done.
    fn elicitation_complete(&self, elicitation_id: &str) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.elicitation_complete(elicitation_id);
            Ok(())
        })
    }

    /// Tells those who subscribed to a resource that it has changed.
    fn resource_updated(&self, uri: &str) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.resource_updated(uri);
            Ok(())
        })
    }

    /// Tells clients that the list of a source has changed.
    fn list_changed(&self, kind: &str) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.list_changed(kind)))
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

    /// Stops listening, and serving when everything is answered; `op` settles then.
    fn drain(&self, py: Python<'_>, op: u64) -> PyResult<()> {
        guarded(|| {
            let server = self.inner.get()?;
            py.detach(|| server.drain(op));
            Ok(())
        })
    }

    /// Tries the rules of the server's own store; `op` settles then.
    fn check_store(&self, py: Python<'_>, op: u64) -> PyResult<()> {
        guarded(|| {
            let server = self.inner.get()?;
            py.detach(|| server.check_store(op));
            Ok(())
        })
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
