//! The modern envelope: every request carries the sender's facts in `params._meta`.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::json;

use super::object::{ESCAPE, META};
use super::{Era, Revision};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{Id, RawJson};
use crate::model::{Capabilities, meta};
use crate::protocol::envelope::{Checked, Head};
use crate::protocol::revision::object;
use crate::protocol::{LogLevel, PeerFacts};

/// A modern HTTP header is missing, malformed or says something else than the body.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The request needs a client capability that it does not declare.
pub(crate) const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The request's revision is not served.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

fn missing(key: &str) -> Error {
    Error::invalid_params(format!("params._meta[\"{key}\"]: missing, every request of this revision carries it"))
}

/// The revision's name in the envelope.
///
/// # Errors
/// −32602 when it is missing or no string.
pub(crate) fn version(head: &Head) -> Result<Cow<'_, str>> {
    let key = meta::PROTOCOL_VERSION;
    let envelope = head.envelope.as_ref().ok_or_else(|| missing(key))?;
    if let Some(checked) = envelope.checked.get() {
        return Ok(Cow::Borrowed(&checked.version));
    }
    meta::text(&envelope.version)
        .ok_or_else(|| Error::invalid_params(format!("params._meta[\"{key}\"]: expected a string")))
}

/// Reads the envelope, unless that was done for an earlier request.
///
/// # Errors
/// −32602 naming the member that is missing or of the wrong type.
pub(crate) fn envelope(head: &Head) -> Result<&Checked> {
    let envelope = head.envelope.as_ref().ok_or_else(|| missing(meta::PROTOCOL_VERSION))?;
    if let Some(checked) = envelope.checked.get() {
        return Ok(checked);
    }
    let version = version(head)?.into();
    let capabilities = envelope.capabilities.as_ref().ok_or_else(|| missing(meta::CLIENT_CAPABILITIES))?;
    for (key, value) in [(meta::CLIENT_CAPABILITIES, Some(capabilities)), (meta::CLIENT_INFO, envelope.info.as_ref())] {
        if value.is_some_and(|v| !v.is_object()) {
            return Err(Error::invalid_params(format!("params._meta[\"{key}\"]: expected an object")));
        }
    }
    let log_level = match &envelope.log_level {
        None => None,
        Some(raw) => {
            let wrong = |why: &str| Error::invalid_params(format!("params._meta[\"{}\"]: {why}", meta::LOG_LEVEL));
            let name = meta::text(raw)
                .ok_or_else(|| wrong(&format!("expected a string, got {}", shortened(raw.get(), 60))))?;
            Some(name.parse().map_err(|e: Error| wrong(e.message()))?)
        }
    };
    let facts = PeerFacts { info: envelope.info.clone(), capabilities: Capabilities::new(capabilities.clone()) };
    Ok(envelope.checked.get_or_init(|| Checked { version, peer: Arc::new(facts), log_level }))
}

/// The revision called `version`, if it is modern and among `served`.
///
/// # Errors
/// −32022 with `data: {supported, requested}`.
pub(crate) fn revision(version: &str, served: &[Revision]) -> Result<Revision> {
    match Revision::parse(version) {
        Some(r) if r.era() == Era::Modern && served.contains(&r) => Ok(r),
        _ => Err(unsupported(version, served)),
    }
}

/// −32022: `requested` is none of `served`.
pub(crate) fn unsupported(requested: &str, served: &[Revision]) -> Error {
    let modern: Vec<_> = served.iter().rev().filter(|r| r.era() == Era::Modern).collect();
    let supported = if modern.is_empty() { served.iter().rev().collect() } else { modern };
    Error::rpc(UNSUPPORTED_VERSION, format!("unsupported protocol version {:?}", shortened(requested, 100)))
        .with_data(RawJson::from_value(&json!({"supported": supported, "requested": shortened(requested, 100)})))
}

/// −32021: the request would need `capability` (dotted path) of its client.
pub(crate) fn missing_capability(capability: &str) -> Error {
    missing_capabilities(&[capability])
}

/// −32021: the request would need all these (dotted paths) of its client.
pub(crate) fn missing_capabilities(capabilities: &[&str]) -> Error {
    let mut required = json!({});
    for capability in capabilities {
        let mut at = &mut required;
        for key in capability.split('.') {
            at = &mut at[key];
            if at.is_null() {
                *at = json!({});
            }
        }
    }
    let mut named = std::collections::BTreeSet::new();
    let once = capabilities.iter().filter(|name| named.insert(**name));
    let names: Vec<_> = once.map(|name| format!("{name:?}")).collect();
    let what = if names.len() > 1 { "capabilities" } else { "capability" };
    Error::rpc(MISSING_CLIENT_CAPABILITY, format!("the client does not declare the {what} {}", names.join(", ")))
        .with_data(RawJson::from_value(&json!({"requiredCapabilities": required})))
}

/// −32021: the request would need its client to declare this extension.
pub(crate) fn missing_extension(id: &str) -> Error {
    let required = json!({"requiredCapabilities": {"extensions": {id: {}}}});
    Error::rpc(MISSING_CLIENT_CAPABILITY, format!("the client does not declare the extension {id:?}"))
        .with_data(RawJson::from_value(&required))
}

/// `params` of an outgoing modern request: the caller's, with the envelope, the level of log messages and the progress
/// token in `_meta`. A request may ask for another level than the rest do.
pub(crate) fn with_envelope(
    params: Option<&RawJson>,
    envelope: &str,
    level: Option<LogLevel>,
    progress_token: Option<&Id>,
) -> RawJson {
    let level = level.filter(|_| !params.is_some_and(|params| has_in_meta(params, |key| key == meta::LOG_LEVEL)));
    merge_meta(params, &[], |members| {
        // `envelope` is the inside of an object, written once per connection.
        members.push_str(envelope);
        if let Some(level) = level {
            push(members, meta::LOG_LEVEL, &format!("\"{}\"", level.as_str()));
        }
        if let Some(token) = progress_token {
            push_token(members, token);
        }
    })
}

/// Members of a modern request about its sender. In a session they have been told, and a request with them would be
/// taken for a modern one.
const OF_SENDER: [&str; 4] = [meta::PROTOCOL_VERSION, meta::CLIENT_INFO, meta::CLIENT_CAPABILITIES, meta::LOG_LEVEL];

/// `params` of an outgoing legacy request that wants progress.
pub(crate) fn with_progress_token(params: Option<&RawJson>, token: &Id) -> RawJson {
    merge_meta(params, &OF_SENDER, |members| push_token(members, token))
}

/// `params` of an outgoing legacy request that wants no progress: a token of the caller's own might be that of another
/// request of this connection, whose progress it would become, and the envelope is that of a request which is handed on.
pub(crate) fn without_envelope(params: RawJson) -> RawJson {
    let goes = |key: &str| key == meta::PROGRESS_TOKEN || OF_SENDER.contains(&key);
    if has_in_meta(&params, goes) { merge_meta(Some(&params), &OF_SENDER, |_| {}) } else { params }
}

/// Returns true if `_meta` of these parameters has a member that is one of the protocol's. Mostly the text alone says
/// that it has not.
fn has_in_meta(params: &RawJson, is_one: impl Fn(&str) -> bool) -> bool {
    use super::object::{has, members};
    let is_there = || {
        let all = members(params.get());
        let meta = all.iter().find(|(key, _)| key == "_meta");
        meta.is_some_and(|(_, value)| members(value.get()).iter().any(|(key, _)| is_one(key)))
    };
    // The slash may be written with a backslash before it.
    let may_be = has(params.get(), meta::PROGRESS_TOKEN) || has(params.get(), "io.modelcontextprotocol");
    may_be && is_there()
}

fn push_token(members: &mut String, token: &Id) {
    push(members, meta::PROGRESS_TOKEN, &serde_json::to_string(token).unwrap_or_default());
}

/// As a member of what is the inside of an object.
fn push(members: &mut String, key: &str, value: &str) {
    if !members.is_empty() {
        members.push(',');
    }
    members.push_str(&format!("\"{key}\":{value}"));
}

/// Adds members in front of those that the caller's `_meta` has; the engine's own come first, so that a duplicate of
/// the caller's is dropped, never the engine's. `without` goes, too.
fn merge_meta(params: Option<&RawJson>, without: &[&str], add: impl FnOnce(&mut String)) -> RawJson {
    let text = params.map_or("{}", RawJson::get);
    let mut out = String::with_capacity(text.len() + 256);
    out.push_str("{\"_meta\":{");
    let mut own = String::with_capacity(192);
    add(&mut own);
    out.push_str(&own);
    if !META.is_in(text)
        && !ESCAPE.is_in(text)
        && let Some(rest) = text.strip_prefix('{').map(str::trim_ascii_start)
    {
        // Nothing to be merged with.
        out.push_str(if rest.starts_with('}') { "}" } else { "}," });
        out.push_str(rest);
        return RawJson::written(out);
    }
    let members = object::members(text);
    let ours = object::members(&format!("{{{own}}}")).into_iter().map(|(k, _)| k.into_owned()).collect::<Vec<_>>();
    for (key, value) in &members {
        if key == "_meta" {
            for (key, value) in object::members(value.get()) {
                let goes = key == meta::PROGRESS_TOKEN || without.contains(&key.as_ref());
                if !goes && !ours.iter().any(|k| *k == *key) {
                    object::push_member(&mut out, &key, value.get());
                }
            }
        }
    }
    out.push('}');
    for (key, value) in &members {
        if key != "_meta" {
            object::push_member(&mut out, key, value.get());
        }
    }
    out.push('}');
    RawJson::written(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_merged_into_the_callers_meta() {
        let params =
            RawJson::parse(r#"{"name":"add","_meta":{"x/y":1,"progressToken":"mine"},"z":null}"#).expect("json");
        let merged = with_envelope(Some(&params), r#""v":"1""#, None, Some(&Id::Number(7)));
        assert_eq!(merged.get(), r#"{"_meta":{"v":"1","progressToken":7,"x/y":1},"name":"add","z":null}"#);
        assert_eq!(with_envelope(None, r#""v":"1""#, None, None).get(), r#"{"_meta":{"v":"1"}}"#);
        for (params, merged) in [
            (" { } ", r#"{"_meta":{"v":"1"}}"#),
            (r#"{"a":{"b":1}}"#, r#"{"_meta":{"v":"1"},"a":{"b":1}}"#),
            (r#" { "a" : "\u005f" }"#, r#"{"_meta":{"v":"1"},"a":"\u005f"}"#),
            (r#"{"\u005fmeta":{"w":2},"a":1}"#, r#"{"_meta":{"v":"1","w":2},"a":1}"#),
            (r#"{"a":"\"_meta\""}"#, r#"{"_meta":{"v":"1"},"a":"\"_meta\""}"#),
        ] {
            let params = RawJson::parse(params).expect("json");
            assert_eq!(with_envelope(Some(&params), r#""v":"1""#, None, None).get(), merged);
        }
    }

    #[test]
    fn a_progress_token_is_this_sides_own() {
        let params = RawJson::parse(r#"{"_meta":{"progressToken":3,"x/y":1},"name":"add"}"#).expect("json");
        assert_eq!(without_envelope(params.clone()).get(), r#"{"_meta":{"x/y":1},"name":"add"}"#);
        assert_eq!(with_envelope(Some(&params), "", None, None).get(), r#"{"_meta":{"x/y":1},"name":"add"}"#);
        let plain = RawJson::parse(r#"{"arguments": {"progressToken": 1}}"#).expect("json");
        assert_eq!(without_envelope(plain.clone()), plain);
    }

    #[test]
    fn a_session_has_no_envelope_of_somebody_elses_request() {
        let params = RawJson::parse(
            r#"{"name":"add","_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28",
            "io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{},
            "io.modelcontextprotocol/logLevel":"info","io.modelcontextprotocol/related-task":{"taskId":"t"},"x/y":1}}"#,
        )
        .expect("json");
        let rest = r#""io.modelcontextprotocol/related-task":{"taskId":"t"},"x/y":1},"name":"add"}"#;
        assert_eq!(without_envelope(params.clone()).get(), format!(r#"{{"_meta":{{{rest}"#));
        let merged = with_progress_token(Some(&params), &Id::Number(7));
        assert_eq!(merged.get(), format!(r#"{{"_meta":{{"progressToken":7,{rest}"#));
        let plain = RawJson::parse(r#"{"_meta": {"io.modelcontextprotocol/related-task": {}}}"#).expect("json");
        assert_eq!(without_envelope(plain.clone()), plain);
    }

    #[test]
    fn a_request_says_the_level_that_it_wants_itself_or_that_of_all() {
        let said = |params: &str| {
            let params = RawJson::written(params.to_owned());
            with_envelope(Some(&params), r#""v":"1""#, Some(LogLevel::Notice), None).get().to_owned()
        };
        let (ours, other) = (r#""io.modelcontextprotocol/logLevel":"notice""#, "io.modelcontextprotocol/logLevel");
        assert_eq!(said("{}"), format!(r#"{{"_meta":{{"v":"1",{ours}}}}}"#));
        let own = format!(r#"{{"_meta":{{"{other}":"debug"}}}}"#);
        assert_eq!(said(&own), format!(r#"{{"_meta":{{"v":"1","{other}":"debug"}}}}"#));
        // That of something else than the request.
        let deep = format!(r#"{{"arguments":{{"{other}":"debug"}}}}"#);
        assert_eq!(said(&deep), format!(r#"{{"_meta":{{"v":"1",{ours}}},"arguments":{{"{other}":"debug"}}}}"#));
    }

    #[test]
    fn a_missing_capability_is_named_as_an_object() {
        let error = missing_capability("elicitation.url");
        assert_eq!(error.data().map(RawJson::get), Some(r#"{"requiredCapabilities":{"elicitation":{"url":{}}}}"#));
        let error = missing_capabilities(&["sampling", "elicitation.url", "sampling.tools"]);
        let all = r#"{"requiredCapabilities":{"sampling":{"tools":{}},"elicitation":{"url":{}}}}"#;
        assert_eq!(error.data().map(RawJson::get), Some(all));
    }
}
