//! What an HTTP request says beside its body: era, session, and the members of the body that intermediaries may read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::mirror::Mirrored;
use crate::jsonrpc::RawJson;
use crate::model::meta::{self, ParamsHead};
use crate::protocol::revision::{Era, Method, Revision};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The headers that this transport writes itself; a user's own would contradict the body.
pub(super) fn is_reserved(name: &HeaderName) -> bool {
    const FRAMING: [&str; 7] =
        ["accept", "connection", "content-length", "content-type", "last-event-id", "transfer-encoding", "upgrade"];
    let name = name.as_str();
    FRAMING.contains(&name) || name.starts_with("mcp-")
}

/// A text as a header's value. What is not plain printable ASCII, or could be taken for the encoded form, is encoded:
/// `=?base64?…?=`.
pub(super) fn encode(text: &str) -> HeaderValue {
    let bytes = text.as_bytes();
    let plain = bytes.iter().all(|b| matches!(b, b' '..=b'~'))
        && bytes.first() != Some(&b' ')
        && bytes.last() != Some(&b' ')
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let value = if plain { HeaderValue::from_str(text) } else { HeaderValue::try_from(wrap(text)) };
    // Both forms are printable ASCII.
    value.unwrap_or(HeaderValue::from_static(""))
}

fn wrap(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 4 / 3 + 16);
    out.push_str("=?base64?");
    STANDARD.encode_string(text, &mut out);
    out.push_str("?=");
    out
}

/// What every request of a legacy session carries, and what the standalone stream and its end carry.
pub(super) fn put_session(headers: &mut HeaderMap, revision: Option<Revision>, session: Option<&HeaderValue>) {
    if let Some(revision) = revision.filter(|r| r.rules().version_header) {
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(revision.as_str()));
    }
    if let Some(session) = session {
        headers.insert(SESSION_ID, session.clone());
    }
}

/// What a request carries: a legacy one its session, a modern one what its body says.
pub(super) fn put_request(
    headers: &mut HeaderMap,
    revision: Revision,
    session: Option<&HeaderValue>,
    method: &str,
    params: Option<&RawJson>,
    mirrored: impl FnOnce(&str) -> Option<std::sync::Arc<[Mirrored]>>,
) {
    if revision.era() == Era::Legacy {
        // `initialize` settles the version; until then there is none to name.
        let settled = (method != "initialize").then_some(revision);
        return put_session(headers, settled, session);
    }
    put_session(headers, Some(revision), None);
    let row = Method::find(method);
    headers.insert(METHOD, row.map_or_else(|| encode(method), |row| HeaderValue::from_static(row.name)));
    let Some(member) = row.and_then(|row| row.name_member) else {
        return;
    };
    let Some(Ok(head)) = params.map(RawJson::borrow::<ParamsHead<'_>>) else {
        return;
    };
    let name = if member == "uri" { head.uri } else { head.name };
    let Some(name) = name.and_then(meta::string) else {
        return;
    };
    headers.insert(NAME, encode(&name));
    if method == "tools/call"
        && let Some(mirrored) = mirrored(&name)
        && let Some(arguments) = head.arguments
    {
        for argument in mirrored.iter() {
            if let Some(value) = argument.value(arguments) {
                headers.insert(argument.header.clone(), value);
            }
        }
    }
}

/// What a notification or a response of ours carries.
pub(super) fn put_message(
    headers: &mut HeaderMap,
    revision: Option<Revision>,
    session: Option<&HeaderValue>,
    method: impl FnOnce() -> Option<String>,
) {
    put_session(headers, revision, session);
    if revision.is_some_and(|r| r.era() == Era::Modern)
        && let Some(method) = method()
    {
        headers.insert(METHOD, encode(&method));
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

    #[test]
    fn a_modern_request_mirrors_its_body() {
        let modern = Revision::NEWEST;
        let mut headers = HeaderMap::new();
        let params = RawJson::trusted(r#"{"_meta":{},"name":"gr\u00fc\u00df"}"#);
        put_request(&mut headers, modern, Some(&HeaderValue::from_static("s")), "prompts/get", Some(&params), |_| None);
        assert_eq!(headers["mcp-protocol-version"], modern.as_str());
        assert_eq!(headers["mcp-method"], "prompts/get");
        assert_eq!(headers["mcp-name"], "=?base64?Z3LDvMOf?=");
        assert!(!headers.contains_key("mcp-session-id"));
        let params = RawJson::trusted(r#"{"uri":"file:///a%20b"}"#);
        put_request(&mut headers, modern, None, "resources/read", Some(&params), |_| None);
        assert_eq!(headers["mcp-name"], "file:///a%20b");
        let mut headers = HeaderMap::new();
        put_request(&mut headers, modern, None, "tools/list", None, |_| None);
        assert!(!headers.contains_key("mcp-name"));
    }

    #[test]
    fn a_legacy_request_names_its_session_and_where_the_revision_wants_it_the_version() {
        let session = HeaderValue::from_static("s-1");
        for revision in Revision::of_era(Era::Legacy) {
            let mut headers = HeaderMap::new();
            put_request(&mut headers, revision, Some(&session), "tools/list", None, |_| None);
            assert_eq!(headers["mcp-session-id"], "s-1");
            assert_eq!(headers.contains_key("mcp-protocol-version"), revision.rules().version_header);
            assert!(!headers.contains_key("mcp-method"));
            let mut headers = HeaderMap::new();
            put_request(&mut headers, revision, None, "initialize", None, |_| None);
            assert!(headers.is_empty(), "{revision}");
        }
    }
}
