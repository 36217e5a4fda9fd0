//! Headers of an HTTP request beside its body: era, session, and the members of the body that intermediaries may read.

use std::borrow::Cow;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserializer as _;
use serde::de::{Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::encoding::encode;
use super::mirror;
use crate::jsonrpc::RawJson;
use crate::model::meta;
use crate::model::mirror::Mirror;
use crate::protocol::revision::{Era, Method, Revision};

static VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
static METHOD: HeaderName = HeaderName::from_static("mcp-method");
static NAME: HeaderName = HeaderName::from_static("mcp-name");
pub(super) static SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Adds a header whose value is what [`encode`] made, which every header can carry.
fn put(out: &mut HeaderMap, name: HeaderName, value: Cow<'_, str>) {
    let value = match value {
        Cow::Borrowed(text) => HeaderValue::from_str(text),
        Cow::Owned(text) => HeaderValue::try_from(text),
    };
    if let Ok(value) = value {
        out.insert(name, value);
    }
}

/// The headers that this transport writes itself; a user's own would contradict the body.
pub(super) fn is_reserved(name: &HeaderName) -> bool {
    const FRAMING: [&str; 7] =
        ["accept", "connection", "content-length", "content-type", "last-event-id", "transfer-encoding", "upgrade"];
    let name = name.as_str();
    FRAMING.contains(&name) || name.starts_with("mcp-")
}

/// Adds the headers of every request of a legacy session, and those of the standalone stream and its end.
pub(super) fn put_session(out: &mut HeaderMap, revision: Option<Revision>, session: Option<&HeaderValue>) {
    if let Some(revision) = revision.filter(|r| r.rules().version_header) {
        out.insert(VERSION.clone(), HeaderValue::from_static(revision.as_str()));
    }
    if let Some(session) = session {
        out.insert(SESSION.clone(), session.clone());
    }
}

/// Adds the headers of a request: a legacy one carries its session, a modern one members of its body.
pub(super) fn put_request(
    out: &mut HeaderMap,
    revision: Revision,
    session: Option<&HeaderValue>,
    method: &str,
    params: Option<&RawJson>,
    mirrored: impl FnOnce(&str) -> Option<std::sync::Arc<[Mirror]>>,
) {
    if revision.era() == Era::Legacy {
        // `initialize` settles the version; until then there is none to name.
        let settled = (method != "initialize").then_some(revision);
        return put_session(out, settled, session);
    }
    put_session(out, Some(revision), None);
    put(out, METHOD.clone(), encode(method));
    let Some(member) = Method::find_in(revision, method).and_then(Method::header_member) else { return };
    let Some(name) = params.and_then(|params| first(params, member)).and_then(meta::string) else { return };
    put(out, NAME.clone(), encode(&name));
    if method == "tools/call"
        && let Some(mirrored) = mirrored(&name)
        && let Some(arguments) = params.and_then(|params| first(params, "arguments"))
    {
        for argument in mirrored.iter() {
            if let Some(value) = mirror::value(argument, arguments)
                && let Ok(name) = argument.header.parse()
            {
                put(out, name, value);
            }
        }
    }
}

/// The value of a member of an object. The text after it is not read: a tool's arguments may be long, and its name
/// usually comes before them.
pub(super) fn first<'a>(object: &'a RawJson, member: &str) -> Option<&'a RawValue> {
    struct Search<'m, 'a>(&'m str, &'m mut Option<&'a RawValue>);
    impl<'a> Visitor<'a> for Search<'_, 'a> {
        type Value = ();

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<Cow<'a, str>>()? {
                let value: &RawValue = map.next_value()?;
                if key == self.0 {
                    *self.1 = Some(value);
                    // The only way to stop.
                    return Err(A::Error::custom("found"));
                }
            }
            Ok(())
        }
    }
    let mut found = None;
    let _ = serde_json::Deserializer::from_slice(object.bytes()).deserialize_map(Search(member, &mut found));
    found
}

/// Adds the headers of a notification or a response of ours.
pub(super) fn put_message(
    out: &mut HeaderMap,
    revision: Option<Revision>,
    session: Option<&HeaderValue>,
    method: impl FnOnce() -> Option<String>,
) {
    put_session(out, revision, session);
    if revision.is_some_and(|r| r.era() == Era::Modern)
        && let Some(method) = method()
    {
        put(out, METHOD.clone(), encode(&method));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_a_header_cannot_carry_are_encoded() {
        for (text, header) in [
            ("add", "add"),
            ("", ""),
            ("my-hyphenated-tool", "my-hyphenated-tool"),
            ("file:///path/to/file%20name.txt", "file:///path/to/file%20name.txt"),
            ("two words, a \"quote\" and a ~", "two words, a \"quote\" and a ~"),
            (" leading", "=?base64?IGxlYWRpbmc=?="),
            ("trailing ", "=?base64?dHJhaWxpbmcg?="),
            ("a\tb", "=?base64?YQli?="),
            ("a\nb", "=?base64?YQpi?="),
            ("\u{7f}", "=?base64?fw==?="),
            ("Zürich", "=?base64?WsO8cmljaA==?="),
            ("世界", "=?base64?5LiW55WM?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ("=?base64?x", "=?base64?x"),
            ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
        ] {
            assert_eq!(encode(text), header, "{text:?}");
        }
    }

    fn request(revision: Revision, method: &str, params: Option<&str>) -> String {
        let (mut out, params) = (HeaderMap::new(), params.map(|p| RawJson::trusted(p.to_owned())));
        put_request(&mut out, revision, Some(&HeaderValue::from_static("s-1")), method, params.as_ref(), |_| None);
        out.iter().map(|(name, value)| format!("{name}: {}|", value.to_str().expect("ascii"))).collect()
    }

    #[test]
    fn a_modern_request_mirrors_its_body() {
        for (method, params, rest) in [
            ("tools/list", Some("{}"), "mcp-method: tools/list|"),
            (
                "prompts/get",
                Some(r#"{"name":"gr\u00fc\u00df"}"#),
                "mcp-method: prompts/get|mcp-name: =?base64?Z3LDvMOf?=|",
            ),
            (
                "resources/read",
                Some(r#"{"uri":"file:///a%20b"}"#),
                "mcp-method: resources/read|mcp-name: file:///a%20b|",
            ),
            ("tools/call", Some(r#"{"name":7}"#), "mcp-method: tools/call|"),
            (
                "tools/call",
                Some(r#"{"arguments":{"name":"b"},"n\u0061me":"a"}"#),
                "mcp-method: tools/call|mcp-name: a|",
            ),
            ("tools/call", Some("[]"), "mcp-method: tools/call|"),
            ("own/method", None, "mcp-method: own/method|"),
            ("a\r\nb: c", None, "mcp-method: =?base64?YQ0KYjogYw==?=|"),
        ] {
            let version = format!("mcp-protocol-version: {}|", Revision::NEWEST);
            assert_eq!(request(Revision::NEWEST, method, params), version + rest);
        }
    }

    #[test]
    fn a_legacy_request_names_its_session_and_where_the_revision_wants_it_the_version() {
        for revision in Revision::of_era(Era::Legacy) {
            let version = if revision.rules().version_header {
                format!("mcp-protocol-version: {revision}|")
            } else {
                String::new()
            };
            assert_eq!(request(revision, "tools/list", None), version + "mcp-session-id: s-1|");
        }
        let mut out = HeaderMap::new();
        put_request(&mut out, Revision::NEWEST_LEGACY, None, "initialize", None, |_| None);
        assert!(out.is_empty());
    }
}
