//! Content as a revision can carry it: blocks, alone or in messages, and what a resource holds.

use serde_json::{Value, json};

use super::{Rules, push_structured};
use crate::jsonrpc::RawJson;
use crate::protocol::revision::object::{has, members, push_member};

/// Takes out of `Annotations` what `rules` do not know.
pub(super) fn strip_annotations(rules: &Rules, annotations: Option<&mut Value>) {
    if let (false, Some(Value::Object(annotations))) = (rules.structured, annotations) {
        annotations.shift_remove("lastModified");
    }
}

/// `None`: nothing to change.
pub(super) fn adapt_contents(rules: &Rules, object: &RawJson) -> Option<RawJson> {
    let text = object.get();
    if rules.structured || !has(text, "\"_meta\"") {
        return None;
    }
    let mut result: Value = serde_json::from_str(text).ok()?;
    result.get_mut("contents")?.as_array_mut()?.iter_mut().for_each(strip_meta);
    Some(RawJson::from_value(&result))
}

/// A type's own `_meta`; that of a request or a result has always been there.
fn strip_meta(of: &mut Value) {
    if let Some(members) = of.as_object_mut() {
        members.shift_remove("_meta");
    }
}

/// A block without the members that `rules` do not know.
pub(in crate::protocol::revision) fn known_block(rules: &Rules, block: &mut Value) {
    strip_annotations(rules, block.get_mut("annotations"));
    if !rules.structured {
        strip_meta(block);
        if let Some(resource) = block.get_mut("resource") {
            strip_meta(resource);
        }
    }
    let is_link = block.get("type").and_then(Value::as_str) == Some("resource_link");
    if let (false, true, Some(members)) = (rules.icons, is_link, block.as_object_mut()) {
        members.shift_remove("icons");
    }
}

/// `None`: nothing to change.
pub(super) fn adapt_call_result(rules: &Rules, object: &RawJson) -> Option<RawJson> {
    let text = object.get();
    let structured = !rules.any_structured && has(text, "\"structuredContent\"");
    let content = needs_blocks(rules, text);
    if !structured && !content {
        return None;
    }
    let members = members(text);
    let of = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| value.get());
    let is_empty = of("content").is_none_or(|list| list.trim_matches(['[', ']', ' ', '\n', '\t', '\r']).is_empty());
    // Where there is no structured content, what is nowhere else is shown as text.
    let shown = of("structuredContent").filter(|value| !rules.structured && is_empty && *value != "null");
    let mut out = String::with_capacity(text.len() + 64);
    out.push('{');
    if let Some(value) = shown {
        push_member(&mut out, "content", RawJson::from_value(&json!([{"type": "text", "text": value}])).get());
    }
    for (key, value) in members {
        match key.as_ref() {
            "structuredContent" if !rules.structured => {}
            "content" if shown.is_some() => {}
            "structuredContent" => {
                let mut shaped = String::new();
                push_structured(&mut shaped, rules, value.get(), false);
                push_member(&mut out, &key, &shaped);
            }
            "content" if content => {
                let blocks: Vec<Value> = serde_json::from_str(value.get()).unwrap_or_default();
                let blocks: Vec<Value> =
                    blocks.into_iter().enumerate().map(|(n, b)| adapt_block(rules, n, b)).collect();
                push_member(&mut out, &key, RawJson::from_value(&blocks).get());
            }
            _ => push_member(&mut out, &key, value.get()),
        }
    }
    out.push('}');
    Some(RawJson::written(out))
}

/// `None`: nothing to change.
pub(super) fn adapt_prompt(rules: &Rules, object: &RawJson) -> Option<RawJson> {
    let text = object.get();
    if !needs_blocks(rules, text) {
        return None;
    }
    let mut result: Value = serde_json::from_str(text).ok()?;
    for (n, message) in result.get_mut("messages")?.as_array_mut()?.iter_mut().enumerate() {
        if let Some(content) = message.get_mut("content") {
            let given = std::mem::take(content);
            *content = adapt_block(rules, n, given);
        }
    }
    Some(RawJson::from_value(&result))
}

/// Returns true if there are blocks that `rules` cannot carry, or members of them. Others that are newer pass: blocks
/// are open objects.
fn needs_blocks(rules: &Rules, text: &str) -> bool {
    (!rules.audio && has(text, "\"audio\""))
        || (!rules.structured
            && ["\"resource_link\"", "\"lastModified\"", "\"_meta\""].into_iter().any(|newer| has(text, newer)))
        || (!rules.icons && has(text, "\"resource_link\"") && has(text, "\"icons\""))
}

/// A block that an older revision lacks, in a form that it has, with nothing lost.
fn adapt_block(rules: &Rules, position: usize, mut block: Value) -> Value {
    known_block(rules, &mut block);
    match block.get("type").and_then(Value::as_str) {
        Some("audio") if !rules.audio => json!({
            "type": "resource",
            "resource": {"uri": format!("content:audio/{position}"), "mimeType": block["mimeType"], "blob": block["data"]},
        }),
        Some("resource_link") if !rules.structured => {
            let word = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
            let mut text = format!("{}: {}", word("name"), word("uri"));
            if !word("description").is_empty() {
                text = format!("{text} ({})", word("description"));
            }
            json!({"type": "text", "text": text})
        }
        _ => block,
    }
}
