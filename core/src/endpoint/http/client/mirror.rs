//! Tool arguments that headers mirror: what a tool's `inputSchema` marks with `x-mcp-header` is sent as
//! `Mcp-Param-<name>`. The client learns the marks from the `tools/list` results that pass through.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::jsonrpc::RawJson;
use crate::model::mirror::{MARK, Mirror, mirrors};
use crate::protocol::revision::object::{members, push_member};

/// The most tools with marks that are remembered; the calls of further ones go out without these headers.
const MAX_TOOLS: usize = 4096;

/// The header's value for these arguments; `None` when the argument is absent, `null` or nothing a header can say.
pub(super) fn value<'a>(mirror: &Mirror, arguments: &'a RawValue) -> Option<Cow<'a, str>> {
    let mut at = arguments;
    for name in &mirror.path {
        // The last one of a duplicate member counts, as it does for most readers.
        at = members(at.get()).into_iter().rev().find(|(key, _)| key == name)?.1;
    }
    let text = at.get();
    match text.as_bytes().first()? {
        b'"' => crate::model::meta::string(at).map(|text| Cow::Owned(super::encoding::encode(&text).into_owned())),
        b't' | b'f' => Some(Cow::Borrowed(text)),
        b'-' | b'0'..=b'9' => Some(integer(text)),
        _ => None,
    }
}

/// A number in decimal. JSON may write an integer as `1.0` or `1e2`.
fn integer(text: &str) -> Cow<'_, str> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if text.bytes().all(|b| b == b'-' || b.is_ascii_digit()) {
        return Cow::Borrowed(text);
    }
    match text.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() <= LARGEST => Cow::Owned(format!("{number:.0}")),
        _ => Cow::Borrowed(text),
    }
}

/// The marked arguments of the tools seen so far.
#[derive(Default)]
pub(super) struct Tools {
    marked: Mutex<HashMap<String, Arc<[Mirror]>>>,
    learnt: AtomicU64,
    /// Held while a list is fetched to learn from, so that many refused calls fetch it once.
    pub(super) learning: tokio::sync::Mutex<()>,
}

impl Tools {
    pub(super) fn of(&self, tool: &str) -> Option<Arc<[Mirror]>> {
        self.marked.lock().unwrap_or_else(PoisonError::into_inner).get(tool).cloned()
    }

    /// Returns the number of lists that were learnt from.
    pub(super) fn learnt(&self) -> u64 {
        self.learnt.load(Ordering::Relaxed)
    }

    /// Learns from a list that another client got, of tools of which nothing is known here. It may not be the newest, so it
    /// does not count as one that was learnt from.
    pub(super) fn learn_from_another(&self, result: &RawJson) {
        if memchr::memmem::find(result.bytes(), MARK.as_bytes()).is_none() {
            return;
        }
        #[derive(Deserialize)]
        struct Page {
            tools: Vec<Value>,
        }
        let Ok(Page { tools }) = result.to() else { return };
        let mut marked = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        for tool in tools {
            let Some(name) = tool["name"].as_str().filter(|name| !marked.contains_key(*name)) else { continue };
            if let Ok(arguments) = mirrors(&tool["inputSchema"])
                && !arguments.is_empty()
                && marked.len() < MAX_TOOLS
            {
                marked.insert(name.to_owned(), arguments.into());
            }
        }
    }

    /// Learns from a `tools/list` result. Tools with a wrong mark must not be offered: `Some` is the result without
    /// them, and `warn` hears of each.
    pub(super) fn learn(&self, result: &RawJson, warn: &mut dyn FnMut(String)) -> Option<RawJson> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            tools: Vec<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
        }
        self.learnt.fetch_add(1, Ordering::Relaxed);
        let has_mark = |text: &str| memchr::memmem::find(text.as_bytes(), MARK.as_bytes()).is_some();
        let mut marked = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        if marked.is_empty() && !has_mark(result.get()) {
            return None;
        }
        let page: Page<'_> = result.borrow().ok()?;
        let (all, mut kept) = (page.tools.len(), Vec::with_capacity(page.tools.len()));
        for tool in page.tools {
            let name = serde_json::from_str::<Head<'_>>(tool.get()).map(|head| head.name).unwrap_or_default();
            if !has_mark(tool.get()) {
                marked.remove(name.as_ref());
                kept.push(tool);
                continue;
            }
            let definition: Value = serde_json::from_str(tool.get()).unwrap_or_default();
            match mirrors(&definition["inputSchema"]) {
                Ok(arguments) => {
                    kept.push(tool);
                    if arguments.is_empty() {
                        marked.remove(name.as_ref());
                    } else if marked.len() < MAX_TOOLS || marked.contains_key(name.as_ref()) {
                        marked.insert(name.into_owned(), arguments.into());
                    }
                }
                Err(why) => {
                    marked.remove(name.as_ref());
                    warn(format!("tool {name:?} is left out: {why}"));
                }
            }
        }
        (kept.len() < all).then(|| without(result, &kept))
    }
}

/// The result with these tools only, everything else as it was.
fn without(result: &RawJson, kept: &[&RawValue]) -> RawJson {
    let mut out = String::with_capacity(result.get().len());
    out.push('{');
    for (key, value) in members(result.get()) {
        if key == "tools" {
            let tools: Vec<&str> = kept.iter().map(|tool| tool.get()).collect();
            push_member(&mut out, &key, &format!("[{}]", tools.join(",")));
        } else {
            push_member(&mut out, &key, value.get());
        }
    }
    out.push('}');
    RawJson::written(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, properties: &Value) -> Value {
        json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
    }

    fn values(schema: &Value, arguments: &str) -> Vec<(String, String)> {
        let arguments: &RawValue = serde_json::from_str(arguments).expect("json");
        let found = mirrors(schema).expect("valid marks");
        found.iter().filter_map(|m| Some((m.header.clone(), value(m, arguments)?.into_owned()))).collect()
    }

    #[test]
    fn marked_arguments_become_headers() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "dry": {"type": ["boolean", "null"], "x-mcp-header": "Dry-Run"},
            "inner": {"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}},
        }});
        let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(k, v)| (format!("mcp-param-{k}"), (*v).to_owned())).collect()
        };
        assert_eq!(
            values(&schema, r#"{"region":"us-west1","count":42,"dry":true,"query":"q","inner":{"deep":"d"}}"#),
            pairs(&[("region", "us-west1"), ("count", "42"), ("dry-run", "true"), ("deep", "d")])
        );
        assert_eq!(
            values(&schema, r#"{"region":"","count":-7.0,"dry":false,"inner":null}"#),
            pairs(&[("region", ""), ("count", "-7"), ("dry-run", "false")])
        );
        assert_eq!(
            values(&schema, r#"{"region":null,"count":9007199254740991}"#),
            pairs(&[("count", "9007199254740991")])
        );
        assert_eq!(
            values(&schema, r#"{"region":"S\u00e3o ","count":1e2}"#),
            pairs(&[("region", "=?base64?U8OjbyA=?="), ("count", "100")])
        );
        assert_eq!(values(&schema, r#"{"region":["a"],"count":{}}"#), pairs(&[]));
    }

    #[test]
    fn a_tool_with_a_wrong_mark_is_left_out_of_the_list() {
        let tools = Tools::default();
        let good = tool("good", &json!({"p": {"type": "string", "x-mcp-header": "P"}}));
        let bad = tool("bad", &json!({"p": {"type": "number", "x-mcp-header": "P"}}));
        let plain = tool("plain", &json!({"p": {"type": "number"}}));
        let result =
            RawJson::from_value(&json!({"ttlMs": 1, "tools": [good, bad, plain], "nextCursor": "c", "x": 1.0}));
        let mut warnings = Vec::new();
        let kept = tools.learn(&result, &mut |w| warnings.push(w)).expect("changed");
        assert_eq!(
            kept,
            RawJson::from_value(&json!({"ttlMs": 1, "tools": [good, plain], "nextCursor": "c", "x": 1.0}))
        );
        assert!(warnings[0].contains("\"bad\""), "{warnings:?}");
        assert!(tools.of("good").is_some() && tools.of("bad").is_none() && tools.of("plain").is_none());
        // The tool lost its mark.
        let result = RawJson::from_value(&json!({"tools": [tool("good", &json!({}))]}));
        assert!(tools.learn(&result, &mut |_| {}).is_none() && tools.of("good").is_none());
    }
}
