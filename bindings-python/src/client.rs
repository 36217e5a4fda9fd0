//! The client object.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tricorn::bridge;

use crate::error::checked;
use crate::host::{Bridge, json};
use crate::local::{Local, guarded};
use crate::server::Server;

/// One client: a connection to one server.
#[pyclass(frozen, module = "tricorn._core")]
pub(crate) struct Client {
    inner: Local<bridge::Client>,
}

impl Client {
    pub(crate) fn of(client: bridge::Client) -> Self {
        Self { inner: Local::new(client) }
    }
}

#[pymethods]
impl Client {
    #[new]
    fn new(bridge: &Bridge, source: u32, target: &str, options: &str) -> PyResult<Self> {
        guarded(|| {
            let client = checked(bridge::Client::new(bridge.inner.get()?, source, target, options))?;
            Ok(Self { inner: Local::new(client) })
        })
    }

    /// A client of a server in this process.
    #[staticmethod]
    fn in_memory(bridge: &Bridge, source: u32, server: &Server, options: &str) -> PyResult<Self> {
        guarded(|| {
            let server = server.inner.get()?;
            let client = checked(bridge::Client::in_memory(bridge.inner.get()?, source, server, options))?;
            Ok(Self { inner: Local::new(client) })
        })
    }

    /// Answers a request of the server, and declares a capability (JSON) for it. Before connecting.
    fn set_handler(&self, method: &str, capability: &str, handler: u32) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.set_handler(method, capability, handler)))
    }

    /// Answers `roots/list` with a JSON array; a connected server is told of the change.
    fn set_roots(&self, roots: &str) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.set_roots(roots)))
    }

    /// Puts a function around every request that is sent, before connecting; its place in the handler table.
    fn add_middleware(&self, handler: u32) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.add_middleware(handler);
            Ok(())
        })
    }

    /// Puts a built-in middleware around every request. Before connecting.
    fn add_builtin(&self, options: &str) -> PyResult<()> {
        guarded(|| checked(self.inner.get()?.add_builtin(options)))
    }

    /// Connects and negotiates; `op` settles with what was agreed.
    fn connect(&self, py: Python<'_>, op: u64) -> PyResult<()> {
        guarded(|| {
            let client = self.inner.get()?;
            py.detach(|| client.connect(op));
            Ok(())
        })
    }

    /// Sends a request; `op` settles with the result object.
    #[pyo3(signature = (op, method, params=None, options=""))]
    fn request(&self, op: u64, method: &str, params: Option<&Bound<'_, PyAny>>, options: &str) -> PyResult<()> {
        let params = params.map(json).transpose()?;
        guarded(|| {
            self.inner.get()?.request(op, method, params, options);
            Ok(())
        })
    }

    /// Somebody hears of notifications: they bring the changes of lists in every revision.
    fn hear_changes(&self) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.hear_changes();
            Ok(())
        })
    }

    /// Listens to what a `SubscriptionFilter` (JSON) asks for, under a number; `op` settles with what is told of.
    fn listen(&self, op: u64, listener: u64, filter: &str) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.listen(op, listener, filter);
            Ok(())
        })
    }

    /// Takes the next change; `op` settles with it, or with `null` after the last one.
    fn next_change(&self, op: u64, listener: u64) -> PyResult<()> {
        guarded(|| {
            self.inner.get()?.next_change(op, listener);
            Ok(())
        })
    }

    /// No longer listens.
    fn end_listening(&self, py: Python<'_>, listener: u64) -> PyResult<()> {
        guarded(|| {
            let client = self.inner.get()?;
            py.detach(|| client.end_listening(listener));
            Ok(())
        })
    }

    /// Sends a notification.
    #[pyo3(signature = (method, params=None))]
    fn notify(&self, method: &str, params: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let params = params.map(json).transpose()?;
        guarded(|| checked(self.inner.get()?.notify(method, params)))
    }

    /// The id of the legacy HTTP session as it is now.
    fn session_id(&self) -> PyResult<Option<String>> {
        guarded(|| Ok(self.inner.get()?.session_id()))
    }

    /// Closes gracefully; `op` settles when the peer is gone.
    fn close(&self, py: Python<'_>, op: u64) -> PyResult<()> {
        guarded(|| {
            let client = self.inner.get()?;
            py.detach(|| client.close(op));
            Ok(())
        })
    }

    /// The steps of the last logins as a JSON array.
    fn auth_trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| Ok(PyBytes::new(py, self.inner.get()?.auth_trace().bytes())))
    }

    /// Gauges as a JSON object.
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| Ok(PyBytes::new(py, self.inner.get()?.metrics().bytes())))
    }
}
