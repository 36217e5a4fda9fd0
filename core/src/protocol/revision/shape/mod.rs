//! The edge: the neutral (newest) form of results becomes what a revision can carry.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde_json::{Map, Value, json};

use super::object::{ESCAPE, Sought, has, members, push_member, push_string};
use super::{Method, Rules};
use crate::jsonrpc::{Id, RawJson};
use crate::model::schema::{has_names, target};
use crate::protocol::{Kind, Payload, Structured};

mod blocks;
mod cache;
mod peer;

pub(super) use blocks::known_block;
use blocks::{adapt_call_result, adapt_contents, adapt_prompt, strip_annotations};
pub(crate) use peer::{capabilities, completion, implementation};

pub(crate) static INPUT_REQUIRED: Sought = Sought(LazyLock::new(|| Finder::new("\"input_required\"")));
static RESULT_TYPE: Sought = Sought(LazyLock::new(|| Finder::new("\"resultType\"")));
static RESPONSES: Sought = Sought(LazyLock::new(|| Finder::new("inputResponses")));
static STATE: Sought = Sought(LazyLock::new(|| Finder::new("requestState")));

/// Returns true if a result is plainly a complete one: it says so, or says nothing, wherever in it. Otherwise it has to
/// be read.
pub(crate) fn is_plainly_complete(result: &RawJson) -> bool {
    let text = result.get();
    if !text.starts_with('{') || ESCAPE.is_in(text) {
        return false;
    }
    match RESULT_TYPE.after_only(text) {
        Some(rest) => {
            rest.trim_start().strip_prefix(':').is_some_and(|rest| rest.trim_start().starts_with("\"complete\""))
        }
        None => !RESULT_TYPE.is_in(text),
    }
}

/// The parameters without what belongs to the rounds of one request: what is asked by others has its own.
pub(crate) fn without_rounds(params: &RawJson) -> RawJson {
    const OF_ROUNDS: [&str; 2] = ["inputResponses", "requestState"];
    if !RESPONSES.is_in(params.get()) && !STATE.is_in(params.get()) {
        return params.clone();
    }
    without(params, &OF_ROUNDS)
}

/// An object without these members.
pub(crate) fn without(object: &RawJson, names: &[&str]) -> RawJson {
    let mut text = String::from("{");
    let rest = members(object.get()).into_iter().filter(|(key, _)| !names.contains(&key.as_ref()));
    rest.for_each(|(key, value)| push_member(&mut text, &key, value.get()));
    text.push('}');
    RawJson::written(text)
}

/// The parameters with these members in their `_meta`.
pub(crate) fn with_meta(params: Option<&RawJson>, meta: &RawJson) -> RawJson {
    let given = params.map_or("{}", RawJson::get);
    let own = members(meta.get());
    let (mut text, mut merged) = (String::from("{"), String::from("{"));
    for (key, value) in members(given) {
        if key == "_meta" {
            let kept = members(value.get()).into_iter().filter(|(key, _)| own.iter().all(|(k, _)| k != key));
            kept.for_each(|(key, value)| push_member(&mut merged, &key, value.get()));
        } else {
            push_member(&mut text, &key, value.get());
        }
    }
    own.iter().for_each(|(key, value)| push_member(&mut merged, key, value.get()));
    merged.push('}');
    push_member(&mut text, "_meta", &merged);
    text.push('}');
    RawJson::written(text)
}

/// The parameters of `notifications/progress`.
pub(crate) fn progress(token: &Id, progress: f64, total: Option<f64>, message: Option<&str>) -> RawJson {
    let mut params = String::from("{");
    push_member(&mut params, "progressToken", &serde_json::to_string(token).unwrap_or_default());
    push_member(&mut params, "progress", &number(progress));
    if let Some(total) = total {
        push_member(&mut params, "total", &number(total));
    }
    if let Some(message) = message {
        push_member(&mut params, "message", &serde_json::to_string(message).unwrap_or_default());
    }
    params.push('}');
    RawJson::written(params)
}

/// A whole number without a fraction, as JSON would have it from an integer.
fn number(value: f64) -> String {
    serde_json::to_string(&value).map_or_else(|_| "null".into(), |s| s.strip_suffix(".0").map(Into::into).unwrap_or(s))
}

/// A definition as `rules` can carry it.
pub(crate) fn definition(rules: &Rules, kind: Kind, members: &Map<String, Value>) -> RawJson {
    let mut members = members.clone();
    let mut strip = |key: &str, keep: bool| {
        if !keep {
            members.shift_remove(key);
        }
    };
    strip("title", rules.structured);
    strip("_meta", rules.structured);
    strip("icons", rules.icons);
    match kind {
        Kind::Tool => {
            strip("annotations", rules.tool_annotations);
            strip("outputSchema", rules.structured);
            strip("execution", rules.tool_execution);
            with_properties(&mut members);
        }
        Kind::Prompt if !rules.structured => {
            for argument in members.get_mut("arguments").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(argument) = argument.as_object_mut() {
                    argument.shift_remove("title");
                }
            }
        }
        _ => {}
    }
    if kind != Kind::Tool {
        strip_annotations(rules, members.get_mut("annotations"));
    }
    if !rules.any_structured
        && let Some(schema) = members.get("outputSchema")
        && !says_object(schema)
    {
        match object_schema(schema).or_else(|| wrapped_schema(schema)) {
            Some(fitting) => members.insert("outputSchema".into(), fitting),
            None => members.shift_remove("outputSchema"),
        };
    }
    RawJson::from_value(&members)
}

/// Clients, and the function schemas of models' providers, look for the properties of the arguments also where there are
/// none.
fn with_properties(members: &mut Map<String, Value>) {
    if let Some(Value::Object(schema)) = members.get_mut("inputSchema")
        && schema.get("type").and_then(Value::as_str) == Some("object")
        && !schema.get("properties").is_some_and(Value::is_object)
    {
        schema.insert("properties".to_owned(), json!({}));
    }
}

/// As [`definition`], of a tool whose answers nobody fits to its output schema: one that would have to be wrapped is left
/// out.
pub(crate) fn foreign_definition(rules: &Rules, kind: Kind, mut members: Map<String, Value>) -> RawJson {
    let is_object = |schema: &Value| says_object(schema) || object_schema(schema).is_some();
    if !rules.any_structured && members.get("outputSchema").is_some_and(|schema| !is_object(schema)) {
        members.shift_remove("outputSchema");
    }
    definition(rules, kind, &members)
}

/// Fate of an output schema, and so of the values, where structured content is always an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Every value is an object: nothing changes.
    Object,
    /// Schema and value become the member `result` of an object, also a value that is one already.
    Wrapped,
    /// There is no such schema: the tool is listed without.
    Dropped,
}

impl Fit {
    pub(crate) fn of(schema: &Value) -> Self {
        match says_object(schema) || object_schema(schema).is_some() {
            true => Self::Object,
            false if wrapped_schema(schema).is_some() => Self::Wrapped,
            false => Self::Dropped,
        }
    }
}

fn says_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// A schema that only refers to one of its definitions, with that in its place, when that is an object: revisions whose
/// structured content is an object want the top to say so.
fn object_schema(schema: &Value) -> Option<Value> {
    let members = schema.as_object()?;
    let notes = ["$ref", "$defs", "definitions", "$schema", "title", "description"];
    let mut to = members.get("$ref")?.as_str()?;
    if !members.keys().all(|key| notes.contains(&key.as_str())) {
        return None;
    }
    let mut found = target(schema, to)?;
    // A definition that is nothing but another one's name.
    for _ in 0..8 {
        match found.get("$ref").and_then(Value::as_str) {
            Some(next) if found.as_object().is_some_and(|only| only.len() == 1) => {
                to = next;
                found = target(schema, to)?;
            }
            _ => break,
        }
    }
    if !says_object(found) || found.get("$id").is_some() || found.get("$anchor").is_some() {
        return None;
    }
    let mut out = members.clone();
    out.shift_remove("$ref");
    for (key, value) in found.as_object()? {
        if !matches!(key.as_str(), "$defs" | "definitions" | "$schema") {
            out.insert(key.clone(), value.clone());
        } else if members.contains_key(key) {
            return None;
        }
    }
    Some(Value::Object(out))
}

/// Returns true if a schema has a base of its own, to which what is moved would no longer belong, or refers to what
/// cannot be followed.
fn is_bound(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| match (key.as_str(), value) {
            ("$id", Value::String(_)) => true,
            ("$dynamicRef" | "$recursiveRef", Value::String(to)) => to == "#" || to.starts_with("#/"),
            _ => is_bound(value),
        }),
        Value::Array(items) => items.iter().any(is_bound),
        _ => false,
    }
}

/// Has the references to the top, and to what stays beside it, lead to where that is now.
fn move_references(schema: &mut Value, are_names: bool) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                match (key.as_str(), value) {
                    ("$ref", Value::String(to)) if !are_names => {
                        let rest = to.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/'));
                        let stays = |rest: &&str| !rest.starts_with("/$defs/") && !rest.starts_with("/definitions/");
                        if let Some(rest) = rest.filter(stays) {
                            *to = format!("#/properties/result{rest}");
                        }
                    }
                    // No schemas.
                    ("const" | "enum" | "default" | "examples", _) if !are_names => {}
                    (_, value) => move_references(value, !are_names && has_names(key)),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| move_references(item, false)),
        _ => {}
    }
}

/// `{"result": schema}` for revisions whose structured content is always an object. The definitions move to the new
/// top, where their references still find them; references to the old top follow it. One with a base of its own cannot be
/// wrapped.
fn wrapped_schema(schema: &Value) -> Option<Value> {
    if is_bound(schema) {
        return None;
    }
    let mut inner = schema.clone();
    move_references(&mut inner, false);
    let mut outer = json!({"type": "object"});
    if let Some(object) = inner.as_object_mut() {
        for key in ["$schema", "$defs", "definitions"] {
            if let Some(value) = object.shift_remove(key) {
                outer[key] = value;
            }
        }
    }
    outer["properties"] = json!({"result": inner});
    outer["required"] = json!(["result"]);
    Some(outer)
}

/// A call's result as an object, without what only the envelope of newer revisions adds.
pub(crate) fn call_result(rules: &Rules, payload: Payload) -> RawJson {
    if let Payload::Object(object) = payload {
        return object;
    }
    let mut out = String::with_capacity(size_hint(&payload));
    write_content(&mut out, rules, payload);
    out.push('}');
    RawJson::written(out)
}

/// Appends a result as `rules` can carry it.
pub(crate) fn write_result(out: &mut String, rules: &Rules, server_info: &str, method: &Method, payload: Payload) {
    match payload {
        Payload::Object(object) => {
            let adapted = match method.name {
                "tools/call" => adapt_call_result(rules, &object),
                "prompts/get" => adapt_prompt(rules, &object),
                "resources/read" => adapt_contents(rules, &object),
                _ => None,
            };
            let object = adapted.unwrap_or(object);
            let text = object.get();
            if !rules.result_type {
                // Members of a newer server that are passed on, or that only newer clients are told.
                return if has(text, "\"resultType\"") || (method.cacheable && cache::is_in(text)) {
                    out.push_str(&without_modern(text))
                } else {
                    out.push_str(text)
                };
            }
            let hinted = method.cacheable && cache::is_in(text);
            if has(text, "\"resultType\"") || has(text, "\"_meta\"") || (hinted && !cache::is_at_end(text)) {
                return out.push_str(&merge_modern(text, server_info, method));
            }
            write_content(out, rules, Payload::Object(object));
            finish(out, rules, server_info, method.cacheable && !hinted);
        }
        content => {
            write_content(out, rules, content);
            finish(out, rules, server_info, method.cacheable);
        }
    }
}

/// Appends a plain answer as the content of a call's result, without the closing brace.
fn write_content(out: &mut String, rules: &Rules, payload: Payload) {
    match payload {
        Payload::Object(object) => out.push_str(&object.get()[..object.get().len() - 1]),
        Payload::Text(text) => {
            out.push_str("{\"content\":[{\"type\":\"text\",\"text\":");
            push_string(out, &text);
            out.push_str("}]");
        }
        Payload::Failed(text) => {
            out.push_str("{\"content\":[{\"type\":\"text\",\"text\":");
            push_string(out, &text);
            out.push_str("}],\"isError\":true");
        }
        Payload::Value { value, structured } => {
            out.push_str("{\"content\":[{\"type\":\"text\",\"text\":");
            if value.get().starts_with('"') {
                out.push_str(value.get());
            } else {
                push_string(out, value.get());
            }
            out.push_str("}]");
            if structured != Structured::No && rules.structured {
                out.push_str(",\"structuredContent\":");
                push_structured(out, rules, value.get(), structured == Structured::Wrapped);
            }
        }
    }
}

/// Returns the approximate length of a result.
pub(crate) fn size_hint(payload: &Payload) -> usize {
    256 + match payload {
        Payload::Object(object) => object.get().len(),
        Payload::Text(text) | Payload::Failed(text) => text.len() + text.len() / 16,
        Payload::Value { value, .. } => value.get().len() * 2,
    }
}

fn push_structured(out: &mut String, rules: &Rules, value: &str, wrapped: bool) {
    if rules.any_structured || (value.starts_with('{') && !wrapped) {
        out.push_str(value);
    } else {
        out.push_str("{\"result\":");
        out.push_str(value);
        out.push('}');
    }
}

/// Closes an object that has neither `resultType` nor `_meta` yet; `unhinted`: how long it keeps is not said either.
fn finish(out: &mut String, rules: &Rules, server_info: &str, unhinted: bool) {
    if rules.result_type {
        if !out.ends_with('{') {
            out.push(',');
        }
        out.push_str("\"resultType\":\"complete\"");
        if unhinted {
            // The author of the result knows whom it is for; nobody else can say that it may be kept.
            out.push_str(",\"ttlMs\":0,\"cacheScope\":\"private\"");
        }
        out.push_str(",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":");
        out.push_str(server_info);
        out.push('}');
    }
    out.push('}');
}

/// A result without what only modern ones carry.
fn without_modern(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    out.push('{');
    for (key, value) in members(text) {
        match key.as_ref() {
            "resultType" | "ttlMs" | "cacheScope" => {}
            "_meta" => {
                let mut meta = String::from("{");
                for (key, value) in members(value.get()) {
                    if key != crate::model::meta::SERVER_INFO {
                        push_member(&mut meta, &key, value.get());
                    }
                }
                meta.push('}');
                if meta != "{}" {
                    push_member(&mut out, &key, &meta);
                }
            }
            _ => push_member(&mut out, &key, value.get()),
        }
    }
    out.push('}');
    out
}

fn merge_modern(text: &str, server_info: &str, method: &Method) -> String {
    let members = members(text);
    let mut out = String::with_capacity(text.len() + 200);
    out.push('{');
    let is_hint = |key: &str| method.cacheable && matches!(key, "ttlMs" | "cacheScope");
    for (key, value) in members.iter().filter(|(k, _)| k != "_meta" && !is_hint(k)) {
        push_member(&mut out, key, value.get());
    }
    let missing = |key: &str| !members.iter().any(|(k, _)| k == key);
    let complete = members.iter().find(|(k, _)| k == "resultType").is_none_or(|(_, v)| v.get() == "\"complete\"");
    if missing("resultType") {
        push_member(&mut out, "resultType", "\"complete\"");
    }
    if method.cacheable && complete {
        cache::write(&mut out, &members);
    }
    let (mut meta, mut named) = (String::from("{"), false);
    for (key, value) in members.iter().filter(|(k, _)| k == "_meta").flat_map(|(_, v)| self::members(v.get())) {
        push_member(&mut meta, &key, value.get());
        named |= key == crate::model::meta::SERVER_INFO;
    }
    if !named {
        push_member(&mut meta, crate::model::meta::SERVER_INFO, server_info);
    }
    meta.push('}');
    push_member(&mut out, "_meta", &meta);
    out.push('}');
    out
}

/// A call's result whose structured content is the member `result` of an object, as a wrapped schema says.
pub(crate) fn wrap_structured(result: &RawJson) -> RawJson {
    let mut out = String::with_capacity(result.get().len() + 16);
    out.push('{');
    for (key, value) in members(result.get()) {
        if key == "structuredContent" {
            push_member(&mut out, &key, &format!("{{\"result\":{}}}", value.get()));
        } else {
            push_member(&mut out, &key, value.get());
        }
    }
    out.push('}');
    RawJson::written(out)
}

#[cfg(test)]
mod tests;
