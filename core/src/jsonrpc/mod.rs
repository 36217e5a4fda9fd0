//! JSON-RPC 2.0: bytes to [`Message`] and back. The first hop of every request.
//!
//! **Invariant**: knows nothing of MCP: no method name, no revision, no `_meta`.

mod codec;
mod id;
mod message;
mod raw;

pub(crate) use codec::start_result;
pub use codec::{
    DecodeError, Decoded, Limits, decode, encode_error, encode_notification, encode_request, encode_result,
};
pub use id::Id;
pub use message::{ErrorObject, Message, code};
pub use raw::RawJson;
