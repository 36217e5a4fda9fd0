//! From a `>` line to bytes, and (HTTP) to the headers that belong to it.

use crate::Outcome;
use crate::pattern::{self, Captures, MODERN};
use crate::script::{Payload, raw_bytes};
use serde_json::{Map, Value};

/// The `_meta` member that marks a modern request.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Message that goes out: the bytes, and the JSON they are when they are JSON.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The line or body.
    pub bytes: Vec<u8>,
    /// The same, parsed.
    pub value: Option<Value>,
}

impl Outgoing {
    /// Returns true if it holds a request, so that an answer is due.
    pub fn asks(&self) -> bool {
        let request = |message: &Value| message.get("method").is_some() && message.get("id").is_some();
        match &self.value {
            Some(Value::Array(batch)) => batch.iter().any(request),
            Some(message) => request(message),
            None => true,
        }
    }
}

/// Compose what a line sends.
pub fn compose(payload: &Payload, captures: &Captures) -> Outcome<Outgoing> {
    match payload {
        Payload::Message { value, envelope } => {
            let mut value = pattern::fill(value, captures)?;
            match &mut value {
                Value::Array(batch) => batch.iter_mut().for_each(|message| complete(message, *envelope)),
                message => complete(message, *envelope),
            }
            Ok(Outgoing { bytes: value.to_string().into_bytes(), value: Some(value) })
        }
        Payload::Raw(text) => {
            let bytes = raw_bytes(&pattern::fill_text(text, captures)?)?;
            let value = serde_json::from_slice(&bytes).ok();
            Ok(Outgoing { bytes, value })
        }
    }
}

/// Add `jsonrpc`, and to a request of the modern era the envelope.
pub fn complete(message: &mut Value, envelope: bool) {
    let Some(members) = message.as_object_mut() else {
        return;
    };
    if !members.contains_key("jsonrpc") {
        let mut whole = Map::new();
        whole.insert("jsonrpc".into(), "2.0".into());
        whole.append(members);
        *members = whole;
    }
    if !envelope || !members.contains_key("method") || !members.contains_key("id") {
        return;
    }
    let params = members.entry("params").or_insert_with(|| Value::Object(Map::new()));
    let Some(params) = params.as_object_mut() else {
        return;
    };
    let meta = params.entry("_meta").or_insert_with(|| Value::Object(Map::new()));
    if let Some(meta) = meta.as_object_mut() {
        for (key, value) in pattern::modern_meta() {
            meta.entry(key).or_insert(value);
        }
    }
}

/// The headers a correct client sends with this body.
pub fn headers(
    outgoing: &Outgoing,
    revision: &str,
    session: Option<&str>,
    version: Option<&str>,
) -> Vec<(String, String)> {
    let mut headers = vec![
        ("Content-Type".to_owned(), "application/json".to_owned()),
        ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
    ];
    let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
    let message = outgoing.value.as_ref();
    let declared = message
        .and_then(|message| message.pointer("/params/_meta"))
        .and_then(|meta| meta.get(VERSION_KEY))
        .and_then(Value::as_str);
    if declared.is_none() && revision != MODERN {
        if let Some(session) = session {
            add("Mcp-Session-Id", session);
        }
        if let Some(version) = version {
            add("MCP-Protocol-Version", version);
        }
        return headers;
    }
    add("MCP-Protocol-Version", declared.unwrap_or(MODERN));
    // What cannot stand in a header is left out: a line break would begin another header.
    let plain = |text: &&str| text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if let Some(method) = message.and_then(|message| message.get("method")).and_then(Value::as_str).filter(plain) {
        add("Mcp-Method", method);
        let key = match method {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
            _ => return headers,
        };
        if let Some(name) = message
            .and_then(|message| message.pointer("/params"))
            .and_then(|params| params.get(key))
            .and_then(Value::as_str)
        {
            add("Mcp-Name", &header_value(name));
        }
    }
    headers
}

/// A string as a header value: as it is, or in the Base64 form when it could not travel so.
pub fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim_matches([' ', '\t']) == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain { text.to_owned() } else { format!("=?base64?{}?=", base64(text.as_bytes())) }
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().enumerate().fold(0_u32, |word, (index, byte)| word | u32::from(*byte) << (16 - 8 * index));
        for index in 0..4 {
            if index <= chunk.len() {
                text.push(char::from(ALPHABET[(word >> (18 - 6 * index) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_get_the_envelope_and_notifications_do_not() {
        let mut request = json!({"id": 1, "method": "tools/list", "params": {"_meta": {"progressToken": 7}}});
        complete(&mut request, true);
        assert_eq!(request["jsonrpc"], "2.0");
        assert_eq!(request["params"]["_meta"][VERSION_KEY], MODERN);
        assert_eq!(request["params"]["_meta"]["progressToken"], 7);
        let mut notification = json!({"method": "x"});
        complete(&mut notification, true);
        assert!(notification.get("params").is_none());
    }

    #[test]
    fn names_travel_in_headers() {
        assert_eq!(header_value("add"), "add");
        assert_eq!(header_value("Hello"), "Hello");
        assert_eq!(header_value(" a"), "=?base64?IGE=?=");
        assert_eq!(header_value("é"), "=?base64?w6k=?=");
        assert_eq!(base64(b"Hello"), "SGVsbG8=");
    }

    #[test]
    fn headers_follow_the_era() {
        let modern = Outgoing {
            bytes: Vec::new(),
            value: Some(
                json!({"id": 1, "method": "tools/call", "params": {"name": "add", "_meta": {VERSION_KEY: MODERN}}}),
            ),
        };
        let names = |headers: Vec<(String, String)>| headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let sent = names(headers(&modern, MODERN, Some("s"), None));
        assert!(sent.contains(&"Mcp-Name".to_owned()) && !sent.contains(&"Mcp-Session-Id".to_owned()));
        let legacy = Outgoing { bytes: Vec::new(), value: Some(json!({"id": 1, "method": "ping"})) };
        let sent = names(headers(&legacy, "2025-06-18", Some("s"), Some("2025-06-18")));
        assert!(sent.contains(&"Mcp-Session-Id".to_owned()) && !sent.contains(&"Mcp-Method".to_owned()));
    }
}
