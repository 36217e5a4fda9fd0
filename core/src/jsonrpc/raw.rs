use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Owned JSON text without raw line breaks. A clone is a reference count; a part of a message shares its buffer.
///
/// Unknown members, key order and number spelling survive because the text is never re-written.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(ByteString);

impl RawJson {
    /// Takes text that is known to be one JSON value on one line, such as another library's compact output.
    /// Bytes that are not UTF-8 become `null`.
    #[must_use]
    pub fn trusted(text: impl Into<Bytes>) -> Self {
        Self(ByteString::try_from(text.into()).unwrap_or_else(|_| ByteString::from_static("null")))
    }

    /// Takes text that this crate has just written.
    pub(crate) fn written(text: String) -> Self {
        Self(text.into())
    }

    /// Takes a part of a message that was decoded.
    pub(crate) fn part(text: ByteString) -> Self {
        Self(text)
    }

    /// Serializes `value`. Values that cannot be JSON (a map with keys that are no strings) become `null`.
    #[must_use]
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> Self {
        Self(serde_json::to_string(value).map_or_else(|_| ByteString::from_static("null"), ByteString::from))
    }

    /// `{}`
    #[must_use]
    pub const fn empty_object() -> Self {
        Self(ByteString::from_static("{}"))
    }

    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        &self.0
    }

    /// The JSON text as bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        self.0.as_bytes()
    }

    /// Takes the bytes out.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }

    /// Decodes into `T`.
    ///
    /// # Errors
    /// serde's error, with line and column.
    pub fn to<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }

    /// Decodes into a `T` that borrows from this text.
    ///
    /// # Errors
    /// serde's error, with line and column.
    pub fn borrow<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }

    /// The part of this text that `raw` was borrowed from, sharing the buffer.
    pub(crate) fn slice(&self, raw: &RawValue) -> Self {
        self.slice_text(raw.get())
    }

    /// The same of a part that is known to be a value.
    pub(crate) fn slice_text(&self, value: &str) -> Self {
        Self(self.0.slice_ref(value))
    }

    pub(crate) fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(String::from(Box::<str>::from(raw)).into()))
    }
}
