//! JSON of a program, checked.

use bytes::Bytes;
use bytestring::ByteString;
use serde_json::value::RawValue;

use super::RawJson;
use crate::error::{Error, Result};

impl RawJson {
    /// Checks that `text` is one JSON value and takes it, on one line.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when it is not JSON.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self> {
        let text = ByteString::try_from(text.into()).map_err(|e| Error::misuse(format!("not JSON: {e}")))?;
        let raw: &RawValue = serde_json::from_str(&text).map_err(|e| Error::misuse(format!("not JSON: {e}")))?;
        let inner = raw.get();
        if memchr::memchr2(b'\n', b'\r', inner.as_bytes()).is_some() {
            // A raw line break can only be white space between tokens: inside strings JSON forbids it.
            return Ok(Self::written(inner.replace(['\n', '\r'], " ")));
        }
        Ok(Self::part(text.slice_ref(inner)))
    }
}
