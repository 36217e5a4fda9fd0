//! Text in headers.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A text as a header's value. Text that is not plain printable ASCII, or could be taken for the encoded form, is
/// encoded: `=?base64?…?=`.
pub(crate) fn encode(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let plain = bytes.iter().all(|b| matches!(b, b' '..=b'~'))
        && bytes.first() != Some(&b' ')
        && bytes.last() != Some(&b' ')
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain { Cow::Borrowed(text) } else { Cow::Owned(wrap(text)) }
}

pub(super) fn wrap(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 4 / 3 + 16);
    out.push_str("=?base64?");
    STANDARD.encode_string(text, &mut out);
    out.push_str("?=");
    out
}
