//! JSON-RPC 2.0: bytes to [`Message`] and back. The first hop of every request.
//!
//! **Invariant**: knows nothing of MCP: no method name, no revision, no `_meta`.

use std::borrow::Cow;

mod codec;
mod id;
mod mend;
mod message;
mod outline;
mod parse;
mod raw;
mod request;
mod scan;

pub use codec::{
    DecodeError, Decoded, Limits, decode, encode_error, encode_notification, encode_request, encode_result,
};
pub(crate) use codec::{is_deeper_than, nesting, start_result};
pub use id::Id;
pub(crate) use id::MAX_ID_BYTES;
pub(crate) use mend::decode_leniently;
#[cfg(feature = "stdio")]
pub(crate) use mend::{mend, within};
pub use message::{ErrorObject, Message, code};
pub(crate) use outline::Outline;
pub use raw::RawJson;
pub(crate) use request::{place, request};
pub(crate) use scan::heavier_than;

/// The byte order mark that some writers begin a stream or a body with.
#[cfg(feature = "runtime")]
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// The text of a JSON string, if `json` is one.
pub(crate) fn unquoted(json: &str) -> Option<Cow<'_, str>> {
    // Strings without escapes are the common case.
    if let Some(inner) = json.strip_prefix('"').and_then(|t| t.strip_suffix('"'))
        && memchr::memchr(b'\\', inner.as_bytes()).is_none()
    {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(json).ok().map(Cow::Owned)
}
