//! The core's error as a Python exception: one class per kind, most of them defined in `tricorn/errors`.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tricorn::Error;

/// The exception instance for `error`, built by `tricorn.bridge.errors.from_core`.
pub(crate) fn instance<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let data = error.data().map(|data| PyBytes::new(py, data.bytes()));
    let made = (error.kind().as_str(), error.message(), error.code(), data);
    let exception = py.import("tricorn.bridge.errors")?.call_method1("from_core", made)?;
    if let Some(number) = error.refusal() {
        exception.setattr("refusal", number)?;
    }
    if error.is_answer() {
        exception.setattr("is_answer", true)?;
    }
    Ok(exception)
}

/// `error`, ready to be raised.
pub(crate) fn raise(error: &Error) -> PyErr {
    Python::attach(|py| match instance(py, error) {
        Ok(exception) => PyErr::from_value(exception),
        // The package is being torn down: its module is gone, the message still counts.
        Err(_) => PyRuntimeError::new_err(error.message().to_owned()),
    })
}

/// Turns the core's result into Python's.
pub(crate) fn checked<T>(result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| raise(&error))
}
