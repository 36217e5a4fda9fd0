//! Headers of a request, and the check that they agree with its body.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use super::reply::Refusal;
use crate::error::shortened;
use crate::jsonrpc::RawJson;
use crate::model::meta;
use crate::model::mirror::Mirror;
use crate::protocol::HeaderList;
use crate::protocol::revision::object::members;
use crate::protocol::revision::{Era, Revision};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
pub(super) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
pub(super) const NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A header that may stand there once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Single<'a> {
    Absent,
    Text(&'a str),
    /// Not text, or there twice.
    Unreadable,
}

impl<'a> Single<'a> {
    pub(super) fn of(headers: &'a HeaderMap, name: &HeaderName) -> Self {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => value.to_str().map_or(Self::Unreadable, |text| Self::Text(text.trim_ascii())),
            (Some(_), Some(_)) => Self::Unreadable,
        }
    }

    pub(super) fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

/// Checks that a body comes as it is. Only chunks may frame it, once (RFC 9112, 6.1), and nothing is unpacked here.
///
/// # Errors
/// 400 or 501 for another framing, 415 for what is packed.
pub(super) fn check_codings(headers: &HeaderMap) -> Result<(), Refusal> {
    if !headers.contains_key(TRANSFER_ENCODING) && !headers.contains_key(CONTENT_ENCODING) {
        return Ok(());
    }
    let codings = |name: HeaderName| {
        let values = headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("?"));
        values.flat_map(|value| value.split(',')).map(str::trim).filter(|coding| !coding.is_empty())
    };
    let (mut chunked, mut other) = (0, None);
    for coding in codings(TRANSFER_ENCODING) {
        if coding.eq_ignore_ascii_case("chunked") {
            chunked += 1;
        } else {
            other = Some(coding);
        }
    }
    if let Some(other) = other {
        let why = format!("header Transfer-Encoding: {} is not served here, expected chunked", quoted(other));
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, why));
    }
    if chunked > 1 {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "header Transfer-Encoding: chunked more than once"));
    }
    match codings(CONTENT_ENCODING).find(|coding| !coding.eq_ignore_ascii_case("identity")) {
        None => Ok(()),
        Some(coding) => Err(Refusal::packed(format!(
            "header Content-Encoding: {} is not taken here, send the body as it is",
            quoted(coding)
        ))),
    }
}

/// The revision that a request's header names.
#[derive(Clone, Copy)]
pub(super) struct Version<'a> {
    pub(super) text: Single<'a>,
    /// It is one without sessions.
    pub(super) is_modern: bool,
}

impl<'a> Version<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let text = Single::of(headers, &PROTOCOL_VERSION);
        let is_modern = text.text().and_then(Revision::parse).is_some_and(|r| r.era() == Era::Modern);
        Self { text, is_modern }
    }
}

/// The answers that a client can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepts {
    pub(crate) json: bool,
    pub(crate) events: bool,
}

impl Accepts {
    /// Reads `Accept`. Without it, anything goes.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut accepts = Self { json: false, events: false };
        const BOTH: Accepts = Accepts { json: true, events: true };
        let mut values = headers.get_all(ACCEPT).iter().peekable();
        match values.peek() {
            None => return BOTH,
            Some(value) if value.as_bytes() == b"application/json, text/event-stream" => return BOTH,
            // A header without a value says as much as none.
            Some(value) if value.as_bytes().trim_ascii().is_empty() && headers.get_all(ACCEPT).iter().count() == 1 => {
                return BOTH;
            }
            Some(_) => {}
        }
        for range in values.filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let refused = parts.any(|p| {
                p.split_once('=').is_some_and(|(k, v)| {
                    k.trim().eq_ignore_ascii_case("q") && v.trim().parse::<f32>().is_ok_and(|q| q <= 0.0)
                })
            });
            let is = |other: &str| kind.eq_ignore_ascii_case(other);
            accepts.json |= !refused && (is("application/json") || is("application/*") || is("*/*"));
            accepts.events |= !refused && (is("text/event-stream") || is("text/*") || is("*/*"));
        }
        accepts
    }
}

/// Returns true if a body is JSON, as its sender says.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let is = |one: &str| one.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
    // `fetch` joins a header that its caller has set once more.
    kind == "application/json" || kind.split(',').all(is)
}

/// Returns a mirrored value as it was before it was encoded for a header.
///
/// # Errors
/// The fault of the encoding.
fn decode(value: &str) -> Result<Cow<'_, str>, &'static str> {
    match value.strip_prefix("=?base64?").and_then(|v| v.strip_suffix("?=")) {
        None => Ok(Cow::Borrowed(value)),
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).map_err(|_| "is not valid Base64")?;
            String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "is not UTF-8 after decoding")
        }
    }
}

/// Checks that `header` says the same as `expected`, a value of the body; `None` when the body has none.
///
/// # Errors
/// The fault, naming the header.
pub(crate) fn mirrors(
    headers: &HeaderMap,
    header: &HeaderName,
    shown: &str,
    expected: Option<&str>,
) -> Result<(), String> {
    compare(Single::of(headers, header), shown, expected, |text, expected| text == expected)
}

fn compare(
    header: Single<'_>,
    shown: &str,
    expected: Option<&str>,
    same: impl FnOnce(&str, &str) -> bool,
) -> Result<(), String> {
    match (header, expected) {
        (Single::Absent, None) => Ok(()),
        (Single::Absent, Some(expected)) => Err(format!("header {shown}: missing, the body says {}", quoted(expected))),
        (Single::Unreadable, _) => Err(format!("header {shown}: expected one value of visible ASCII")),
        (Single::Text(text), None) => Err(format!("header {shown}: is {}, the body says nothing", quoted(text))),
        (Single::Text(text), Some(expected)) => match decode(text) {
            Err(why) => Err(format!("header {shown}: {} {why}", quoted(text))),
            Ok(decoded) if same(&decoded, expected) => Ok(()),
            Ok(decoded) => Err(format!("header {shown}: is {}, the body says {}", quoted(&decoded), quoted(expected))),
        },
    }
}

/// Quotes the beginning of a peer's text for an error.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text, 100))
}

/// Checks the headers that mirror arguments of a tool.
///
/// # Errors
/// The fault, naming the header.
pub(crate) fn mirrors_arguments(
    headers: &HeaderMap,
    mirrored: &[Mirror],
    arguments: Option<&RawJson>,
) -> Result<(), String> {
    for mirror in mirrored {
        let shown = format!("Mcp-Param-{}", &mirror.header["mcp-param-".len()..]);
        let shown = &*capitalized(&shown);
        let Ok(name) = HeaderName::try_from(mirror.header.as_str()) else {
            continue;
        };
        let header = Single::of(headers, &name);
        let value = arguments.and_then(|a| argument(a.get(), &mirror.path));
        match value.as_deref() {
            None | Some("null") => compare(header, shown, None, |_, _| false)?,
            Some(text) if text.starts_with('"') => {
                let value: String = serde_json::from_str(text).unwrap_or_default();
                compare(header, shown, Some(&value), |a, b| a == b)?;
            }
            // The argument is of a type that the schema refuses, in better words than a header could.
            Some(text) if text.starts_with(['{', '[']) => {}
            Some(text) => compare(header, shown, Some(text), same_number)?,
        }
    }
    Ok(())
}

/// `Mcp-Param-Region` from `Mcp-Param-region`.
fn capitalized(name: &str) -> String {
    let mut start = true;
    name.chars()
        .map(|c| {
            let shown = if start { c.to_ascii_uppercase() } else { c };
            start = c == '-';
            shown
        })
        .collect()
}

/// The text of the member that `path` leads to.
fn argument(arguments: &str, path: &[String]) -> Option<String> {
    let mut at = Cow::Borrowed(arguments);
    for name in path {
        // The last one of a duplicate member counts, as it does for the handler.
        let found = members(&at).into_iter().rev().find(|(key, _)| key == name)?.1.get().to_owned();
        at = Cow::Owned(found);
    }
    Some(at.into_owned())
}

/// `42`, `42.0` and `4.2e1` are one number; `true` is only `true`.
fn same_number(header: &str, body: &str) -> bool {
    if header == body {
        return true;
    }
    let numeric = |text: &str| text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    match (header.parse::<f64>(), body.parse::<f64>()) {
        (Ok(a), Ok(b)) if numeric(header) => {
            // Beyond 2^53 neighbours would look the same.
            a == b && a.abs() <= 9_007_199_254_740_991.0
        }
        _ => false,
    }
}

/// The name of a tool, prompt or resource, as the body says it.
pub(super) fn name_of(raw: Option<&RawJson>) -> Option<Cow<'_, str>> {
    raw.and_then(meta::text)
}

/// The headers as a handler may ask for them.
pub(super) struct Kept(pub(super) HeaderMap);

impl HeaderList for Kept {
    fn list(&self) -> Vec<(String, String)> {
        self.0.iter().map(|(name, value)| (name.as_str().to_owned(), readable(value))).collect()
    }
}

/// A value as text: proxies write names in UTF-8, and what is none is Latin-1 (RFC 9110, 5.5).
fn readable(value: &http::HeaderValue) -> String {
    let bytes = value.as_bytes();
    std::str::from_utf8(bytes).map_or_else(|_| bytes.iter().map(|byte| char::from(*byte)).collect(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let value = |v: &str| http::HeaderValue::from_str(v).expect("value");
        let mut map = HeaderMap::new();
        pairs.iter().for_each(|(k, v)| {
            map.append(HeaderName::from_static(k), value(v));
        });
        map
    }

    #[test]
    fn accept_says_what_the_client_can_read() {
        let of = |accept: &str| {
            let a = Accepts::of(&map(&[("accept", accept)]));
            (a.json, a.events)
        };
        assert_eq!(of("application/json, text/event-stream"), (true, true));
        assert_eq!(of("application/json;q=0.9 , Text/Event-Stream ; q=1"), (true, true));
        assert_eq!(of("*/*"), (true, true));
        assert_eq!(of("application/json"), (true, false));
        assert_eq!(of("text/*"), (false, true));
        assert_eq!(of("application/json;q=0, text/event-stream"), (false, true));
        assert_eq!(of("text/plain"), (false, false));
        assert_eq!(Accepts::of(&HeaderMap::new()), Accepts { json: true, events: true });
        let two = map(&[("accept", "application/json"), ("accept", "text/event-stream")]);
        assert_eq!(Accepts::of(&two), Accepts { json: true, events: true });
    }

    #[test]
    fn a_mirrored_value_is_compared_decoded() {
        let check =
            |pairs: &[(&'static str, &str)], expected: Option<&str>| mirrors(&map(pairs), &NAME, "Mcp-Name", expected);
        assert_eq!(check(&[], None), Ok(()));
        assert_eq!(check(&[("mcp-name", "echo")], Some("echo")), Ok(()));
        assert_eq!(check(&[("mcp-name", "  echo\t")], Some("echo")), Ok(()));
        assert_eq!(check(&[("mcp-name", "=?base64?ZWNobw==?=")], Some("echo")), Ok(()));
        assert_eq!(check(&[("mcp-name", "=?base64?w6nimIM=?=")], Some("é☃")), Ok(()));
        for (pairs, expected) in [
            (&[][..], Some("echo")),
            (&[("mcp-name", "echo")][..], None),
            (&[("mcp-name", "ECHO")][..], Some("echo")),
            (&[("mcp-name", "=?base64?ZWNobw?=")][..], Some("echo")),
            (&[("mcp-name", "=?base64?!!!!?=")][..], Some("echo")),
            (&[("mcp-name", "=?base64?/w==?=")][..], Some("echo")),
            (&[("mcp-name", "echo"), ("mcp-name", "echo")][..], Some("echo")),
        ] {
            assert!(check(pairs, expected).is_err_and(|text| text.contains("Mcp-Name")), "{pairs:?}");
        }
    }

    #[test]
    fn arguments_are_compared_by_value() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "on": {"type": "boolean", "x-mcp-header": "On"},
            "inner": {"properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}}}});
        let mirrored = crate::model::mirror::mirrors(&schema).expect("valid marks");
        let check = |pairs: &[(&'static str, &str)], arguments: &'static str| {
            mirrors_arguments(&map(pairs), &mirrored, Some(&RawJson::trusted(arguments)))
        };
        assert_eq!(check(&[], "{}"), Ok(()));
        assert_eq!(check(&[], r#"{"region":null}"#), Ok(()));
        assert_eq!(check(&[("mcp-param-region", "")], r#"{"region":""}"#), Ok(()));
        assert!(check(&[("mcp-param-region", "Zürich")], r#"{"region":"Zürich"}"#).is_err(), "not ASCII");
        assert_eq!(check(&[("mcp-param-n", "42")], r#"{"n":42}"#), Ok(()));
        assert_eq!(check(&[("mcp-param-n", "42")], r#"{"n":42.0}"#), Ok(()));
        assert_eq!(check(&[("mcp-param-on", "true")], r#"{"on":true}"#), Ok(()));
        assert_eq!(check(&[("mcp-param-deep", "=?base64?w6k=?=")], r#"{"inner":{"deep":"\u00e9"}}"#), Ok(()));
        assert_eq!(check(&[], r#"{"region":["a"]}"#), Ok(()), "the schema will say so");
        for (pairs, arguments) in [
            (&[][..], r#"{"region":"a"}"#),
            (&[("mcp-param-region", "b")][..], r#"{"region":"a"}"#),
            (&[("mcp-param-region", "a")][..], "{}"),
            (&[("mcp-param-region", "a")][..], r#"{"region":null}"#),
            (&[("mcp-param-n", "43")][..], r#"{"n":42}"#),
            (&[("mcp-param-n", "9007199254740993")][..], r#"{"n":9007199254740992}"#),
            (&[("mcp-param-n", "nan")][..], r#"{"n":1}"#),
            (&[("mcp-param-on", "TRUE")][..], r#"{"on":true}"#),
            (&[][..], r#"{"inner":{"deep":"x"}}"#),
        ] {
            assert!(check(pairs, arguments).is_err_and(|text| text.contains("Mcp-Param-")), "{pairs:?} {arguments}");
        }
    }
}
