//! One HTTP exchange that authorization needs, as data.

use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::error::shortened;

/// Request for a document, or for the answer to a form.
pub(crate) struct Fetch {
    /// As it was given to us; never normalised.
    pub(crate) url: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The posted body, with its media type; `None` is a GET.
    pub(crate) body: Option<(&'static str, String)>,
}

impl Fetch {
    /// A document.
    pub(crate) fn get(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: vec![("accept", "application/json".into())], body: None }
    }

    /// The answer to what is posted.
    pub(crate) fn post(url: impl Into<String>, media: &'static str, body: String) -> Self {
        Self { body: Some((media, body)), ..Self::get(url) }
    }

    pub(crate) fn method(&self) -> &'static str {
        if self.body.is_some() { "POST" } else { "GET" }
    }
}

impl fmt::Debug for Fetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and bodies hold secrets.
        write!(f, "Fetch({} {})", self.method(), self.url)
    }
}

/// Reason for a missing answer, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfetched {
    pub(crate) why: String,
    /// Somebody has answered, and nothing of use: what is looked for is not there, as with a 404. Otherwise there is no
    /// telling, and it may be there the next time.
    pub(crate) answered: bool,
}

impl Unfetched {
    /// An answer that is none.
    pub(crate) fn answered(why: String) -> Self {
        Self { why, answered: true }
    }
}

impl From<String> for Unfetched {
    fn from(why: String) -> Self {
        Self { why, answered: false }
    }
}

impl fmt::Display for Unfetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// Reads what has to be a JSON object.
///
/// # Errors
/// A description of the text that it is instead, for people.
pub(crate) fn object<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    // Members by their order would do for serde.
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'[') => Err("a JSON array, expected an object".to_owned()),
        _ => {
            // RFC 8259, section 8.1: a byte order mark may be passed over.
            let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
            serde_json::from_slice(body).map_err(|e| shortened(&e.to_string(), 200).into_owned())
        }
    }
}

/// An optional member that is of another type than it should be counts as absent, so that a document is not useless for it.
/// Of a list what is no text is left out.
pub(crate) fn odd<'de, D: serde::Deserializer<'de>, T: Lenient>(deserializer: D) -> Result<Option<T>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(T::of)
}

/// Lenient reading of a member that may be anything.
pub(crate) trait Lenient: Sized {
    /// The value, if it is one.
    fn of(value: serde_json::Value) -> Option<Self>;
}

impl Lenient for String {
    fn of(value: serde_json::Value) -> Option<Self> {
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    }
}

impl Lenient for bool {
    fn of(value: serde_json::Value) -> Option<Self> {
        value.as_bool()
    }
}

impl Lenient for Vec<String> {
    fn of(value: serde_json::Value) -> Option<Self> {
        let list = value.as_array()?;
        Some(list.iter().filter_map(|entry| entry.as_str().map(str::to_owned)).collect())
    }
}

/// Answer to a [`Fetch`].
pub(crate) struct Fetched {
    pub(crate) status: u16,
    /// Names in lower case; those that are no text are left out.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl Fetched {
    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for Fetched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fetched({}, {} bytes)", self.status, self.body.len())
    }
}
