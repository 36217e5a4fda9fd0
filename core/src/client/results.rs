//! Contents of the server's answers, and checks of them.

use serde::{Deserialize, Deserializer, Serialize};
#[cfg(feature = "runtime")]
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::RawJson;
use crate::model::meta::STALE;
use crate::protocol::Kind;
use crate::protocol::revision::object;

/// The longest text of what is wrong with an answer, in characters.
const MAX_TEXT: usize = 300;

/// One page of a list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ListPage {
    /// The definitions, with every member kept, known or not.
    pub entries: Vec<Map<String, Value>>,
    /// Cursor of the next page; absent on the last one.
    pub next_cursor: Option<String>,
    /// `_meta`.
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    pub extra: Map<String, Value>,
}

impl ListPage {
    /// Returns true if it was kept for longer than it should have been, and is given because the server could not be
    /// asked (the client's option `cache`, `stale_on_error`).
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
    #[serde(deserialize_with = "entries")]
    pub tools: Vec<Map<String, Value>>,
    /// Cursor of the next page; absent on the last one.
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

/// Reads a list, taking `null` in it, or in place of it, for nothing.
fn entries<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Vec<Map<String, Value>>, D::Error> {
    let entries: Option<Vec<Option<Map<String, Value>>>> = Deserialize::deserialize(deserializer)?;
    Ok(entries.into_iter().flatten().flatten().collect())
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
    let entries = match entries {
        Value::Null => Vec::new(),
        entries => {
            let entries: Vec<Option<Map<String, Value>>> =
                serde_json::from_value(entries).map_err(|e| wrong(&e.to_string()))?;
            entries.into_iter().flatten().collect()
        }
    };
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

/// Returns the reader of results for hosts that read a result of `method` themselves: it checks the shape that Rust's
/// typed methods need, and leaves out members that mean nothing there: `null` in a list, in place of it or of a flag.
#[cfg(feature = "runtime")]
pub(crate) fn reading_of(method: &str) -> fn(RawJson) -> Result<RawJson> {
    /// An object of any members.
    struct Object;
    impl<'de> Deserialize<'de> for Object {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
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
    /// A member that may be `null`, which stands for what is absent or empty.
    #[derive(Default)]
    struct Member<T>(Option<Option<T>>);
    impl<'de, T: Deserialize<'de>> Deserialize<'de> for Member<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
            Option::<T>::deserialize(deserializer).map(|value| Self(Some(value)))
        }
    }
    /// One that has to be there.
    fn member<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> std::result::Result<Member<T>, D::Error> {
        Member::deserialize(deserializer)
    }
    impl<T> Member<T> {
        fn is_null(&self) -> bool {
            matches!(self.0, Some(None))
        }
    }
    impl<T> Member<Vec<Option<T>>> {
        fn has_null(&self) -> bool {
            self.is_null() || matches!(&self.0, Some(Some(list)) if list.iter().any(Option::is_none))
        }
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Tools {
        #[serde(deserialize_with = "member")]
        tools: Member<Vec<Option<Object>>>,
        #[serde(default, rename = "nextCursor")]
        _next_cursor: Option<String>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Called {
        #[serde(default)]
        content: Member<Vec<Object>>,
        #[serde(default)]
        is_error: Member<bool>,
    }
    #[derive(Deserialize)]
    struct Read {
        #[serde(deserialize_with = "member")]
        contents: Member<Vec<Object>>,
    }
    #[derive(Deserialize)]
    struct Got {
        #[serde(deserialize_with = "member")]
        messages: Member<Vec<Object>>,
    }
    #[derive(Deserialize)]
    struct Completed {
        completion: Values,
    }
    #[derive(Deserialize)]
    struct Values {
        #[serde(deserialize_with = "member")]
        values: Member<Vec<String>>,
    }
    /// `is_odd`: something in it means nothing.
    fn read<T: serde::de::DeserializeOwned>(
        method: &str,
        result: RawJson,
        is_odd: impl FnOnce(&T) -> bool,
        lists: &[&str],
    ) -> Result<RawJson> {
        let read: T = typed(method, &result)?;
        Ok(if is_odd(&read) { plain(&result, lists) } else { result })
    }
    fn pages(kind: Kind, result: RawJson) -> Result<RawJson> {
        let page = page(kind, &result)?;
        // Entries were left out if the list is empty, or has a `null`.
        let is_odd = page.entries.is_empty() || object::has(result.get(), "null");
        Ok(if is_odd { plain(&result, &[kind.list_member()]) } else { result })
    }
    match method {
        "tools/list" => |result| {
            let is_odd = |read: &Tools| read.tools.has_null();
            read::<Tools>("tools/list", result, is_odd, &["tools"])
        },
        "tools/call" => |result| {
            let is_odd = |read: &Called| read.content.is_null() || read.is_error.is_null();
            read::<Called>("tools/call", result, is_odd, &["content"])
        },
        "resources/list" => |result| pages(Kind::Resource, result),
        "resources/templates/list" => |result| pages(Kind::ResourceTemplate, result),
        "prompts/list" => |result| pages(Kind::Prompt, result),
        "resources/read" => {
            |result| read::<Read>("resources/read", result, |read| read.contents.is_null(), &["contents"])
        }
        "prompts/get" => |result| read::<Got>("prompts/get", result, |read| read.messages.is_null(), &["messages"]),
        "completion/complete" => |result| {
            let is_odd = |read: &Completed| read.completion.values.is_null();
            match typed::<Completed>("completion/complete", &result)? {
                read if is_odd(&read) => Ok(RawJson::from_value(&serde_json::json!({"completion": {"values": []}}))),
                _ => Ok(result),
            }
        },
        _ => Ok,
    }
}

/// A list without what is `null` in it.
#[cfg(feature = "runtime")]
fn without_null(list: &str) -> String {
    let Ok(entries) = serde_json::from_str::<Vec<&RawValue>>(list) else { return list.to_owned() };
    let entries: Vec<_> = entries.into_iter().map(RawValue::get).filter(|entry| *entry != "null").collect();
    format!("[{}]", entries.join(","))
}

/// A result with `[]` where one of these lists is `null`, without an `isError` or a cursor that is `null`.
#[cfg(feature = "runtime")]
fn plain(result: &RawJson, lists: &[&str]) -> RawJson {
    let mut out = String::from("{");
    for (name, value) in object::members(result.get()) {
        match (&*name, value.get()) {
            (name, "null") if lists.contains(&name) => object::push_member(&mut out, name, "[]"),
            (name, list) if lists.contains(&name) && object::has(list, "null") => {
                object::push_member(&mut out, name, &without_null(list));
            }
            ("isError" | "nextCursor", "null") => {}
            (name, value) => object::push_member(&mut out, name, value),
        }
    }
    out.push('}');
    RawJson::written(out)
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

    #[cfg(feature = "runtime")]
    #[test]
    fn what_means_nothing_is_left_out_for_hosts() {
        for (method, result, read) in [
            ("tools/list", r#"{"tools":null,"x":null}"#, r#"{"tools":[],"x":null}"#),
            (
                "tools/list",
                r#"{"tools":[{"name":"a"}],"nextCursor":""}"#,
                r#"{"tools":[{"name":"a"}],"nextCursor":""}"#,
            ),
            ("tools/list", r#"{"tools":[],"nextCursor":"a"}"#, r#"{"tools":[],"nextCursor":"a"}"#),
            ("tools/list", r#"{"tools":[null,{"name":"a","x":null}]}"#, r#"{"tools":[{"name":"a","x":null}]}"#),
            ("prompts/list", r#"{"prompts":[{"name":"a"},null]}"#, r#"{"prompts":[{"name":"a"}]}"#),
            ("resources/list", r#"{"resources":null,"nextCursor":null}"#, r#"{"resources":[]}"#),
            (
                "resources/templates/list",
                r#"{"resourceTemplates":[{}],"nextCursor":null}"#,
                r#"{"resourceTemplates":[{}]}"#,
            ),
            ("prompts/list", r#"{"nextCursor":null,"prompts":null}"#, r#"{"prompts":[]}"#),
            ("tools/call", r#"{"content":null,"isError":null}"#, r#"{"content":[]}"#),
            ("tools/call", r#"{"isError":null,"structuredContent":null}"#, r#"{"structuredContent":null}"#),
            (
                "tools/call",
                r#"{"content":[{"a":null}],"isError":false}"#,
                r#"{"content":[{"a":null}],"isError":false}"#,
            ),
            ("resources/read", r#"{"contents":null}"#, r#"{"contents":[]}"#),
            ("prompts/get", r#"{"messages":null,"description":null}"#, r#"{"messages":[],"description":null}"#),
            ("completion/complete", r#"{"completion":{"values":null}}"#, r#"{"completion":{"values":[]}}"#),
            ("own/method", r#"{"tools":null}"#, r#"{"tools":null}"#),
        ] {
            let given = reading_of(method)(RawJson::parse(result).expect("JSON")).expect(method);
            assert_eq!(given.get(), read, "{method}");
        }
        for (method, result) in [
            ("tools/list", "{}"),
            ("tools/list", r#"{"tools":["a"]}"#),
            ("tools/call", r#"{"content":{}}"#),
            ("tools/call", r#"{"isError":"no"}"#),
            ("resources/read", "{}"),
            ("prompts/list", r#"{"prompts":[],"nextCursor":1}"#),
        ] {
            assert!(reading_of(method)(RawJson::parse(result).expect("JSON")).is_err(), "{method} {result}");
        }
    }

    #[test]
    fn null_stands_for_what_is_not_there() {
        let called: crate::model::CallToolResult =
            serde_json::from_str(r#"{"content":null,"isError":null}"#).expect("a result");
        assert!(called.content.is_empty() && !called.is_error);
        let listed: ListToolsResult = serde_json::from_str(r#"{"tools":null,"nextCursor":null}"#).expect("a result");
        assert!(listed.tools.is_empty() && listed.next_cursor.is_none());
        let read: crate::model::ReadResourceResult = serde_json::from_str(r#"{"contents":null}"#).expect("a result");
        assert!(read.contents.is_empty());
    }
}
