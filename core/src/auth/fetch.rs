//! One HTTP exchange that authorization needs, as data.

use std::fmt;

use bytes::Bytes;

/// What is to be fetched: a document, or the answer to a form.
pub(crate) struct Fetch {
    /// As it was given to us; never normalised.
    pub(crate) url: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(&'static str, String)>,
    /// What is posted, with its media type; `None` is a GET.
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

/// What came back.
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
