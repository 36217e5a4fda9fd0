//! How an error of the core crosses to Swift.

use tricorn::jsonrpc::RawJson;
use tricorn::{Error, ErrorKind};

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

/// The other way, for what passes through Swift.
impl TryFrom<CoreError> for Error {
    type Error = Self;

    fn try_from(error: CoreError) -> Result<Self, Self> {
        let CoreError::Failed { kind, message, code, data } = error;
        let error = match (code, kind.as_str()) {
            (Some(code), _) => Self::rpc(code, message),
            (None, "peer_misbehaved") => Self::new(ErrorKind::PeerMisbehaved, message),
            (None, "unsupported") => Self::new(ErrorKind::Unsupported, message),
            (None, "timeout") => Self::new(ErrorKind::Timeout, message),
            (None, "cancelled") => Self::new(ErrorKind::Cancelled, message),
            (None, "closed") => Self::new(ErrorKind::Closed, message),
            (None, "transport") => Self::new(ErrorKind::Transport, message),
            (None, "auth") => Self::new(ErrorKind::Auth, message),
            (None, "input_required") => Self::new(ErrorKind::InputRequired, message),
            (None, _) => Self::new(ErrorKind::Misuse, message),
        };
        Ok(match data {
            Some(data) => error.with_data(RawJson::parse(data)?),
            None => error,
        })
    }
}
