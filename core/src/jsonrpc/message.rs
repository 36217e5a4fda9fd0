use serde::{Deserialize, Serialize};

use super::{Id, RawJson};

/// JSON-RPC's own error codes.
pub mod code {
    /// The text is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// JSON, but no valid message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method here.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method's parameters are wrong.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The receiver has no room for the request now. From the range that JSON-RPC leaves to implementations.
    pub const BUSY: i64 = -32000;
    /// The receiver cannot reach what this request needs, and may a moment later. From the same range; `data` says in
    /// `retryAfter` in how many seconds, and over HTTP the status is 503.
    pub const UNAVAILABLE: i64 = -32010;
}

/// The `error` member of an error response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorObject {
    /// Code of the error.
    pub code: i64,
    /// Message for people.
    pub message: String,
    /// Anything more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<RawJson>,
}

/// One JSON-RPC message. `params` and `result` are objects, kept as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Wants an answer.
    Request {
        /// Names the request until it is answered.
        id: Id,
        /// Method to run.
        method: String,
        /// The parameters object, if there was one.
        params: Option<RawJson>,
    },
    /// Wants no answer.
    Notification {
        /// Name of the event.
        method: String,
        /// The parameters object, if there was one.
        params: Option<RawJson>,
    },
    /// The answer to a request.
    Response {
        /// The request's id.
        id: Id,
        /// The result object.
        result: RawJson,
    },
    /// The failure of a request, or of a message whose id could not be read.
    Error {
        /// The request's id, when it could be read.
        id: Option<Id>,
        /// The failure.
        error: ErrorObject,
    },
}
