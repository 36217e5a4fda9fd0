//! What the server's answers hold, and that they hold it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::RawJson;
use crate::model::meta::STALE;
use crate::protocol::Kind;

/// The longest text of what is wrong with an answer, in characters.
const MAX_TEXT: usize = 300;

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ListPage {
    /// The definitions, with every member kept, known or not.
    pub entries: Vec<Map<String, Value>>,
    /// Where the next page begins; absent on the last one.
    pub next_cursor: Option<String>,
    /// `_meta`.
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    pub extra: Map<String, Value>,
}

impl ListPage {
    /// Whether it was kept for longer than it should have been, and is given because the server could not be asked
    /// (the client's option `cache`, `stale_on_error`).
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.contains_key(STALE))
    }
}

/// One page of `tools/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// The definitions, with every member kept, known or not.
    pub tools: Vec<Map<String, Value>>,
    /// Where the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// `_meta`.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The request that lists this kind.
pub(super) const fn method(kind: Kind) -> &'static str {
    match kind {
        Kind::Tool => "tools/list",
        Kind::Resource => "resources/list",
        Kind::ResourceTemplate => "resources/templates/list",
        Kind::Prompt => "prompts/list",
    }
}

/// Reads one page.
pub(super) fn page(kind: Kind, result: &RawJson) -> Result<ListPage> {
    let wrong = |why: &str| wrong(method(kind), why);
    let mut members: Map<String, Value> = result.to().map_err(|e| wrong(&e.to_string()))?;
    let other = |name: &str, expected: &str, got: &Value| {
        wrong(&format!("{name:?}: expected {expected}, got {}", shortened(&got.to_string(), 60)))
    };
    let entries =
        members.shift_remove(kind.list_member()).ok_or_else(|| wrong(&format!("{:?}: missing", kind.list_member())))?;
    let entries = serde_json::from_value(entries).map_err(|e| wrong(&e.to_string()))?;
    let next_cursor = match members.shift_remove("nextCursor") {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(got) => return Err(other("nextCursor", "a string", &got)),
    };
    let meta = match members.shift_remove("_meta") {
        None | Some(Value::Null) => None,
        Some(Value::Object(meta)) => Some(meta),
        Some(got) => return Err(other("_meta", "an object", &got)),
    };
    Ok(ListPage { entries, next_cursor, meta, extra: members })
}

pub(super) fn typed<T: serde::de::DeserializeOwned>(method: &str, result: &RawJson) -> Result<T> {
    result.to().map_err(|e| wrong(method, &e.to_string()))
}

/// `why` may hold what the server sent.
fn wrong(method: &str, why: &str) -> Error {
    let message = format!("result of {method}: {}", shortened(why, MAX_TEXT));
    Error::new(ErrorKind::PeerMisbehaved, message).received()
}

/// How a result of `method` is checked for hosts that read it themselves: the shape that Rust's typed methods need.
#[cfg(feature = "runtime")]
pub(crate) fn check_of(method: &str) -> fn(&RawJson) -> Result<()> {
    /// An object of any members.
    struct Object;
    impl<'de> Deserialize<'de> for Object {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
            deserializer.deserialize_map(Self)
        }
    }
    impl<'de> serde::de::Visitor<'de> for Object {
        type Value = Self;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self, A::Error> {
            while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
            Ok(self)
        }
    }
    #[derive(Deserialize)]
    struct Tools {
        #[serde(rename = "tools")]
        _tools: Vec<Object>,
        #[serde(default, rename = "nextCursor")]
        _next_cursor: Option<String>,
    }
    #[derive(Deserialize)]
    struct Called {
        #[serde(default, rename = "content")]
        _content: Vec<Object>,
        #[serde(default, rename = "isError")]
        _is_error: bool,
    }
    #[derive(Deserialize)]
    struct Read {
        #[serde(rename = "contents")]
        _contents: Vec<Object>,
    }
    #[derive(Deserialize)]
    struct Got {
        #[serde(rename = "messages")]
        _messages: Vec<Object>,
    }
    #[derive(Deserialize)]
    struct Completed {
        #[serde(rename = "completion")]
        _completion: Values,
    }
    #[derive(Deserialize)]
    struct Values {
        #[serde(rename = "values")]
        _values: Vec<String>,
    }
    fn fits<T: serde::de::DeserializeOwned>(method: &str, result: &RawJson) -> Result<()> {
        typed::<T>(method, result).map(drop)
    }
    fn pages(kind: Kind, result: &RawJson) -> Result<()> {
        page(kind, result).map(drop)
    }
    match method {
        "tools/list" => |result| fits::<Tools>("tools/list", result),
        "tools/call" => |result| fits::<Called>("tools/call", result),
        "resources/list" => |result| pages(Kind::Resource, result),
        "resources/templates/list" => |result| pages(Kind::ResourceTemplate, result),
        "prompts/list" => |result| pages(Kind::Prompt, result),
        "resources/read" => |result| fits::<Read>("resources/read", result),
        "prompts/get" => |result| fits::<Got>("prompts/get", result),
        "completion/complete" => |result| fits::<Completed>("completion/complete", result),
        _ => |_| Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_page_is_said_in_short() {
        let long = "x".repeat(100_000);
        for result in [
            format!(r#"{{"tools": [], "nextCursor": ["{long}"]}}"#),
            format!(r#"{{"tools": [], "_meta": "{long}"}}"#),
            format!(r#"{{"tools": "{long}"}}"#),
        ] {
            let error = page(Kind::Tool, &RawJson::parse(result).expect("JSON")).expect_err("wrong");
            assert_eq!(error.kind(), ErrorKind::PeerMisbehaved);
            assert!(error.message().starts_with("result of tools/list: "), "{error}");
            assert!(error.message().len() < 500, "{} bytes", error.message().len());
        }
    }
}
