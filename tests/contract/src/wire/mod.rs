//! Bytes to messages and back, with every wait bounded.

pub mod http;
pub mod sse;
pub mod stdio;

use crate::Outcome;
use serde_json::Value;

/// A JSON text as its messages: an array is a batch, anything else one message.
pub fn messages(text: &[u8]) -> Outcome<Vec<Value>> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| format!("not JSON ({error}): {}", crate::pattern::shorten(&String::from_utf8_lossy(text))))?;
    Ok(match value {
        Value::Array(batch) => batch,
        message => vec![message],
    })
}
