//! The private module `tricorn._core`: the bridge of the core crate as Python objects.
//!
//! Rust holds no Python object and never attaches to the interpreter from a thread of its own: the handler table,
//! running tasks and waiting futures live in `tricorn/bridge/host.py`. Payloads cross as JSON text in `bytes`.

mod client;
mod error;
mod group;
mod host;
mod http;
mod local;
mod server;
mod wake;

use pyo3::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;
use tricorn_cli::Launcher;

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

/// Raises the refusal of an option of this package's own, in the engine's words.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what Python gives is owned")]
fn unknown_option(what: &str, name: &str, known: Vec<String>) -> PyResult<()> {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(error::raise(&tricorn::bridge::unknown_option(what, name, &known)))
}

/// Returns true when a client may load an icon's `src`: an `https:` URL with a host, or `data:image/...`.
///
/// It says nothing of the rest of a client's duties: no credentials, no redirects elsewhere, a limit of size, no
/// scripts in an SVG.
#[pyfunction]
fn is_safe_icon(src: &str) -> bool {
    tricorn::bridge::is_safe_icon(src)
}

/// Puts the standard streams back to where they were before a server spoke on them. Flush before that: what was printed
/// still goes to standard error.
#[pyfunction]
fn give_back_streams(py: Python<'_>) -> PyResult<()> {
    local::guarded(|| {
        py.detach(tricorn::bridge::give_back_streams);
        Ok(())
    })
}

/// The words of a command line, by the rules of the platform.
#[pyfunction]
fn split_command(line: &str) -> PyResult<Vec<String>> {
    error::checked(tricorn::bridge::split_command(line))
}

/// Writes to standard error without waiting for who reads it.
#[pyfunction]
fn write_stderr(text: &str) -> PyResult<()> {
    local::guarded(|| {
        tricorn::bridge::write_stderr(text);
        Ok(())
    })
}

/// Runs the command `tricorn`, and returns the status to end the process with.
///
/// Ctrl-C is its own from then on.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>, interpreter: Option<PathBuf>) -> PyResult<u8> {
    local::guarded(|| {
        let mut launcher = Launcher::new();
        launcher.package = Some("python".to_owned());
        let path = interpreter.as_ref().and_then(|path| path.to_str());
        launcher.command = path.map(|path| [path, "-m", "tricorn"].map(str::to_owned).into()).unwrap_or_default();
        launcher.python = interpreter;
        Ok(py.detach(|| tricorn_cli::main(arguments, launcher)))
    })
}

// Builds without the GIL are tested by nobody: there the interpreter switches it on for this module, and says so.
#[pymodule(gil_used = true)]
mod _core {
    use pyo3::prelude::*;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use super::{
        check_form, check_pages, client::Client, command, give_back_streams, group::ClientGroup, host::Bridge,
        http::HttpEndpoint, is_safe_icon, local::forks, server::Server, split_command, unknown_option, version,
        write_stderr,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // A child made by fork() has this memory but none of the engine's threads.
        let hooks = PyDict::new(module.py());
        hooks.set_item("after_in_child", wrap_pyfunction!(super::local::forked, module)?)?;
        // On Windows there is no fork().
        if let Some(register) = module.py().import("os")?.getattr_opt("register_at_fork")? {
            register.call((), Some(&hooks))?;
        }
        Ok(())
    }
}
