//! How an error of the core crosses to Swift.

use tricorn::Error;

/// An error of the core; `Errors.swift` makes the public error of it.
#[derive(Debug, Clone, thiserror::Error, uniffi::Error)]
pub enum CoreError {
    /// `kind` is `ErrorKind::as_str`, `data` JSON text.
    #[error("{message}")]
    Failed { kind: String, message: String, code: Option<i64>, data: Option<String> },
}

impl From<Error> for CoreError {
    fn from(error: Error) -> Self {
        Self::Failed {
            kind: error.kind().as_str().to_owned(),
            message: error.message().to_owned(),
            code: error.code(),
            data: error.data().map(|data| data.get().to_owned()),
        }
    }
}
