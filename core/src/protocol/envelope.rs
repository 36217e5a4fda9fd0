//! Where the members of `_meta` are that steer the engine.

use std::cell::RefCell;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::model::meta::RequestMeta;

/// Parts of a `_meta`'s text, each one a JSON value.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Meta<'a> {
    pub(super) version: Option<&'a str>,
    pub(super) capabilities: Option<&'a str>,
    pub(super) info: Option<&'a str>,
    pub(super) log_level: Option<&'a str>,
    pub(super) progress_token: Option<&'a str>,
}

/// The last text that was read, and where its members were: a client sends the same one with each of its requests, and
/// comparing it is ten times as quick as reading it.
#[derive(Debug)]
struct Kept {
    text: Box<str>,
    version: Option<Range<usize>>,
    capabilities: Option<Range<usize>>,
    info: Option<Range<usize>>,
    log_level: Option<Range<usize>>,
}

/// The longest text that is kept: one for each thread that reads requests.
const MAX_KEPT: usize = 4 << 10;

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// Reads `_meta`.
///
/// # Errors
/// −32602 when it is no object, or one of these members is there twice.
pub(super) fn read(text: &str) -> Result<Meta<'_>> {
    KEPT.with_borrow_mut(|kept| match kept {
        Some(kept) if *kept.text == *text => {
            let part = |at: &Option<Range<usize>>| text.get(at.clone()?);
            Ok(Meta {
                version: part(&kept.version),
                capabilities: part(&kept.capabilities),
                info: part(&kept.info),
                log_level: part(&kept.log_level),
                progress_token: None,
            })
        }
        _ => {
            let meta = parse(text)?;
            // One that names a token is another one each time.
            if meta.version.is_some() && meta.progress_token.is_none() && text.len() <= MAX_KEPT {
                let at = |part: Option<&str>| {
                    let start = (part?.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
                    Some(start..start + part?.len())
                };
                *kept = Some(Kept {
                    text: text.into(),
                    version: at(meta.version),
                    capabilities: at(meta.capabilities),
                    info: at(meta.info),
                    log_level: at(meta.log_level),
                });
            }
            Ok(meta)
        }
    })
}

fn parse(text: &str) -> Result<Meta<'_>> {
    if !text.starts_with('{') {
        return Err(Error::invalid_params("params._meta: expected an object"));
    }
    let meta: RequestMeta<'_> =
        serde_json::from_str(text).map_err(|e| Error::invalid_params(format!("params._meta: {e}")))?;
    Ok(Meta {
        version: meta.protocol_version.map(RawValue::get),
        capabilities: meta.client_capabilities.map(RawValue::get),
        info: meta.client_info.map(RawValue::get),
        log_level: meta.log_level.map(RawValue::get),
        progress_token: meta.progress_token.map(RawValue::get),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_as_what_is_read() {
        let version = r#""io.modelcontextprotocol/protocolVersion": "2026-07-28""#;
        let capabilities = r#""io.modelcontextprotocol/clientCapabilities": {"roots": {}}"#;
        let info = r#""io.modelcontextprotocol/clientInfo": {"name": "ü", "version": "1"}"#;
        let level = r#""io.modelcontextprotocol/logLevel" : "info""#;
        let long = format!(r#"{{{version}, "x": "{}"}}"#, "y".repeat(MAX_KEPT));
        for text in [
            "{}",
            &format!("{{{version}}}"),
            &format!("{{ {version} , {capabilities}, {info},{level} }}"),
            &format!(r#"{{{version}, "progressToken": 7, {capabilities}}}"#),
            &format!(r#"{{{version}, "progressToken": null, {capabilities}}}"#),
            &format!(r#"{{"traceparent": "é", {capabilities}, {version}}}"#),
            &long,
        ] {
            // The second time may be from what was kept, at another address.
            for text in [text.to_owned(), text.to_owned()] {
                assert_eq!(read(&text).expect("an object"), parse(&text).expect("an object"), "{text}");
            }
        }
        for wrong in ["[]", "7", &format!("{{{version}, {version}}}")] {
            assert!(read(wrong).is_err() && read(wrong).is_err(), "{wrong}");
        }
    }
}
