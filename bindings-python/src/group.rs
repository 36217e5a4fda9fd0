//! The group of clients.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tricorn::bridge;

use crate::client::Client;
use crate::error::checked;
use crate::host::Bridge;
use crate::local::{Local, guarded};
use crate::server::Server;

/// Several clients that are used as one.
#[pyclass(frozen, module = "tricorn._core")]
pub(crate) struct ClientGroup {
    inner: Local<bridge::ClientGroup>,
}

impl ClientGroup {
    fn operation(&self, py: Python<'_>, start: impl FnOnce(&bridge::ClientGroup) + Send) -> PyResult<()> {
        guarded(|| {
            let group = self.inner.get()?;
            py.detach(|| start(group));
            Ok(())
        })
    }
}

#[pymethods]
impl ClientGroup {
    #[new]
    fn new(bridge: &Bridge, servers: &str, options: &str) -> PyResult<Self> {
        guarded(|| {
            let group = checked(bridge::ClientGroup::new(bridge.inner.get()?, servers, options))?;
            Ok(Self { inner: Local::new(group) })
        })
    }

    /// The servers' names in their order.
    fn names(&self) -> PyResult<Vec<String>> {
        guarded(|| Ok(self.inner.get()?.names()))
    }

    /// The client of a server, made once.
    fn client(&self, name: &str, source: u32) -> PyResult<Option<Client>> {
        guarded(|| Ok(self.inner.get()?.client(name, source).map(Client::of)))
    }

    /// Adds a server; `reconnect` connects it.
    fn add(&self, name: &str, source: u32, target: &str) -> PyResult<Client> {
        guarded(|| Ok(Client::of(checked(self.inner.get()?.add(name, source, target))?)))
    }

    /// Adds a server of this process.
    fn add_server(&self, name: &str, source: u32, server: &Server) -> PyResult<Client> {
        guarded(|| Ok(Client::of(checked(self.inner.get()?.add_server(name, source, server.inner.get()?))?)))
    }

    /// Connects what never was; `op` settles with what was agreed, and what failed.
    fn connect(&self, py: Python<'_>, op: u64) -> PyResult<()> {
        self.operation(py, |group| group.connect(op))
    }

    /// Connects one server anew.
    fn reconnect(&self, py: Python<'_>, op: u64, name: &str) -> PyResult<()> {
        self.operation(py, |group| group.reconnect(op, name))
    }

    /// Takes one server out.
    fn remove(&self, py: Python<'_>, op: u64, name: &str) -> PyResult<()> {
        self.operation(py, |group| group.remove(op, name))
    }

    /// Errors of the servers that are not connected, as a JSON object.
    fn failures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| Ok(PyBytes::new(py, self.inner.get()?.failures().bytes())))
    }

    /// Lists what all servers have of a kind.
    fn listing(&self, py: Python<'_>, op: u64, kind: &str, options: &str) -> PyResult<()> {
        self.operation(py, |group| group.list(op, kind, options))
    }

    /// Finds whose client has what is called so.
    fn route(&self, py: Python<'_>, op: u64, kind: &str, name: &str) -> PyResult<()> {
        self.operation(py, |group| group.route(op, kind, name))
    }

    /// Says to all servers which log messages are wanted.
    fn set_log_level(&self, py: Python<'_>, op: u64, level: &str) -> PyResult<()> {
        self.operation(py, |group| group.set_log_level(op, level))
    }

    /// Ends all connections.
    fn close(&self, py: Python<'_>, op: u64) -> PyResult<()> {
        self.operation(py, |group| group.close(op))
    }
}
