//! The private module `tricorn._core`: the bridge of the core crate as Python objects.
//!
//! Rust holds no Python object and never attaches to the interpreter from a thread of its own: the handler table,
//! running tasks and waiting futures live in `tricorn/host.py`. Payloads cross as JSON text in `bytes`.

mod client;
mod error;
mod group;
mod host;
mod http;
mod local;
mod server;

use pyo3::prelude::*;

/// The version of the engine, which is the version of this package.
#[pyfunction]
fn version() -> &'static str {
    tricorn::bridge::version()
}

/// Raises what is wrong with the schema of a form.
#[pyfunction]
fn check_form(schema: &Bound<'_, PyAny>) -> PyResult<()> {
    error::checked(tricorn::bridge::check_form(&host::json(schema)?))
}

/// Raises what is wrong with the pages that a user is to visit.
#[pyfunction]
fn check_pages(pages: &Bound<'_, PyAny>) -> PyResult<()> {
    error::checked(tricorn::bridge::check_pages(&host::json(pages)?))
}

/// Whether a client may load an icon's `src`: an `https:` URL with a host, or `data:image/...`.
///
/// It says nothing of the rest of a client's duties: no credentials, no redirects elsewhere, a limit of size, no
/// scripts in an SVG.
#[pyfunction]
fn is_safe_icon(src: &str) -> bool {
    tricorn::bridge::is_safe_icon(src)
}

#[pymodule]
mod _core {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use super::{
        check_form, check_pages, client::Client, group::ClientGroup, host::Bridge, http::HttpEndpoint, is_safe_icon,
        server::Server, version,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // A child made by fork() has this memory but none of the engine's threads.
        let hooks = PyDict::new(module.py());
        hooks.set_item("after_in_child", wrap_pyfunction!(super::local::forked, module)?)?;
        module.py().import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
        Ok(())
    }
}
