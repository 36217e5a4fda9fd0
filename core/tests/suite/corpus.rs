//! The corpus of tests/corpus: every example goes through the codec or a model type and comes out the same.
#![allow(clippy::unwrap_used, missing_docs, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tricorn::jsonrpc::{Decoded, Limits, Message, RawJson, decode};
use tricorn::model::{Annotations, CallToolResult, Capabilities, Content, Implementation, Tool, ToolAnnotations};

#[derive(Deserialize)]
struct Index {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    file: String,
    r#type: String,
    message: bool,
    official: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every case with its text.
fn cases() -> Vec<(Case, String)> {
    let index: Index =
        serde_json::from_str(&fs::read_to_string(root().join("tests/corpus/index.json")).unwrap()).unwrap();
    index
        .cases
        .into_iter()
        .map(|case| (fs::read_to_string(root().join(&case.file)).unwrap(), case))
        .map(|(text, case)| (case, text))
        .collect()
}

/// A JSON text without white space, keys sorted, strings in one spelling, numbers as they were written.
fn canonical(text: &str) -> String {
    let text = text.trim();
    let parts = |parts: Vec<String>| parts.join(",");
    match text.as_bytes()[0] {
        b'{' => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap();
            format!(
                "{{{}}}",
                parts(members.iter().map(|(key, value)| format!("{key:?}:{}", canonical(value.get()))).collect())
            )
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap();
            format!("[{}]", parts(items.iter().map(|item| canonical(item.get())).collect()))
        }
        b'"' => serde_json::to_string(&serde_json::from_str::<String>(text).unwrap()).unwrap(),
        _ => text.to_owned(),
    }
}

/// The same without these members at the top.
fn without(text: &str, keys: &[&str]) -> String {
    let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap();
    members.retain(|key, _| !keys.contains(&key.as_str()));
    canonical(&serde_json::to_string(&members).unwrap())
}

fn decoded(text: &str) -> Decoded {
    decode(&Bytes::copy_from_slice(text.as_bytes()), &Limits { max_nesting: 512, ..Limits::default() }).unwrap()
}

fn through<T: DeserializeOwned + serde::Serialize>(text: &str) -> String {
    serde_json::to_string(&serde_json::from_str::<T>(text).unwrap()).unwrap()
}

#[test]
fn the_index_lists_every_official_example() {
    assert_eq!(cases().iter().filter(|(case, _)| case.official).count(), 129);
}

#[test]
fn messages_pass_the_codec() {
    let mut seen = 0;
    for (case, text) in cases() {
        let batch = text.trim_start().starts_with('[') && case.r#type.starts_with("JSONRPCBatch");
        if !case.message && !batch {
            continue;
        }
        seen += 1;
        let encoded = match decoded(&text) {
            Decoded::One(message) => message.encode().get().to_owned(),
            Decoded::Batch(items) => {
                let items: Vec<String> =
                    items.iter().map(|item| item.as_ref().unwrap().encode().get().to_owned()).collect();
                format!("[{}]", items.join(","))
            }
        };
        assert!(!encoded.contains('\n'), "{}", case.file);
        // JSON-RPC's envelope and error object have no room for more; what is inside them stays.
        let expected = match case.file.rsplit('/').next().unwrap() {
            "unknown-envelope-member.json" => without(&text, &["trace"]),
            _ => canonical(&text),
        };
        assert_eq!(canonical(&encoded), expected, "{}", case.file);
    }
    assert!(seen >= 60, "{seen} messages");
}

#[test]
fn a_message_is_what_its_type_says() {
    for (case, text) in cases().into_iter().filter(|(case, _)| case.message) {
        let Decoded::One(message) = decoded(&text) else { panic!("{}: a batch", case.file) };
        let fits = match message {
            Message::Request { .. } => case.r#type.ends_with("Request"),
            Message::Notification { .. } => case.r#type.ends_with("Notification"),
            Message::Response { .. } => case.r#type.ends_with("Response"),
            Message::Error { .. } => case.r#type.ends_with("Error") || case.r#type == "JSONRPCErrorResponse",
        };
        assert!(fits, "{}", case.file);
    }
}

#[test]
fn model_types_keep_what_they_are_given() {
    let mut seen = BTreeMap::<String, usize>::new();
    for (case, text) in cases() {
        let same = match case.r#type.as_str() {
            "Tool" => Tool::parse(&text).unwrap().to_json().get().to_owned(),
            "TextContent" | "ImageContent" | "AudioContent" | "ResourceLink" | "EmbeddedResource" => {
                through::<Content>(&text)
            }
            "ClientCapabilities" | "ServerCapabilities" => {
                Capabilities::new(RawJson::parse(text.clone()).unwrap()).raw().get().to_owned()
            }
            "Implementation" => through::<Implementation>(&text),
            "ToolAnnotations" => through::<ToolAnnotations>(&text),
            "Annotations" => through::<Annotations>(&text),
            "CallToolResult" => {
                // Has the fields that the engine acts on, and `isError` only when it is true.
                let kept = ["content", "structuredContent", "_meta"];
                let fields: BTreeMap<String, &RawValue> = serde_json::from_str(&text).unwrap();
                let dropped: Vec<&str> = fields.keys().map(String::as_str).filter(|key| !kept.contains(key)).collect();
                assert_eq!(
                    without(&through::<CallToolResult>(&text), &dropped),
                    without(&text, &dropped),
                    "{}",
                    case.file
                );
                continue;
            }
            _ => continue,
        };
        *seen.entry(case.r#type.clone()).or_default() += 1;
        assert_eq!(canonical(&same), canonical(&text), "{}", case.file);
    }
    assert!(seen.len() >= 8, "{seen:?}");
}

#[test]
fn everything_passes_as_raw_json() {
    for (case, text) in cases() {
        assert_eq!(canonical(RawJson::parse(text.clone()).unwrap().get()), canonical(&text), "{}", case.file);
    }
}

#[test]
fn the_comparison_notices_what_is_dropped_or_respelled() {
    let text = r#"{"a": 1, "b": {"c": null, "d": [1.0]}}"#;
    for other in
        [r#"{"a":1,"b":{"d":[1.0]}}"#, r#"{"a":1,"b":{"c":null,"d":[1]}}"#, r#"{"a":1.0,"b":{"c":null,"d":[1.0]}}"#]
    {
        assert_ne!(canonical(other), canonical(text), "{other}");
    }
    assert_eq!(canonical(r#"{"b":{"d":[1.0],"c":null},"a":1}"#), canonical(text));
}
