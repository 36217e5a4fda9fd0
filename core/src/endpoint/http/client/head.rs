//! The head of an answer: what this transport acts on.

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, WWW_AUTHENTICATE};

use super::headers::SESSION;

/// Media type of a body, as an answer announces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Media {
    Unsaid,
    Json,
    Stream,
    Other(String),
}

impl Media {
    fn new(value: &[u8]) -> Self {
        let kind = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
        if kind.eq_ignore_ascii_case(b"application/json") {
            return Self::Json;
        }
        if kind.eq_ignore_ascii_case(b"text/event-stream") {
            return Self::Stream;
        }
        let kind = String::from_utf8_lossy(kind).to_ascii_lowercase();
        if kind.ends_with("json") { Self::Json } else { Self::Other(kind) }
    }
}

#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

impl Head {
    pub(super) fn media(&self) -> Media {
        self.headers.get(CONTENT_TYPE).map_or(Media::Unsaid, |value| Media::new(value.as_bytes()))
    }

    /// The session that the server names. A copy: what was read shares its buffer with the connection.
    pub(super) fn session(&self) -> Option<HeaderValue> {
        self.headers.get(&SESSION).and_then(|value| HeaderValue::from_bytes(value.as_bytes()).ok())
    }

    pub(super) fn location(&self) -> Option<&HeaderValue> {
        self.headers.get(LOCATION)
    }

    pub(super) fn challenge(&self) -> Option<&HeaderValue> {
        self.headers.get(WWW_AUTHENTICATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_body_is_known_by_its_content_type() {
        for (value, media) in [
            ("application/json", Media::Json),
            ("Application/JSON ; charset=utf-8", Media::Json),
            ("application/problem+json", Media::Json),
            ("text/event-stream;charset=UTF-8", Media::Stream),
            ("text/HTML; charset=utf-8", Media::Other("text/html".into())),
            ("", Media::Other(String::new())),
        ] {
            assert_eq!(Media::new(value.as_bytes()), media, "{value:?}");
        }
    }
}
