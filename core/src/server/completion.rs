//! `completion/complete`: the choice of the handler that completes an argument, and the use of its answer.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::listed::{Common, Entry, Kind};
use super::registry::{Changes, Registry};
use super::resources::Completions;
use crate::call::{Failures, Handler, Shaper};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::protocol::Payload;
use crate::protocol::revision::Revision;

/// The most values of one answer (specification, completion: "Maximum 100 items per response").
const MAX_VALUES: usize = 100;

/// Argument or variable to be completed.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) kind: Kind,
    pub(super) name: String,
    argument: String,
    value: String,
}

impl Asked {
    /// Reads a request's parameters.
    ///
    /// # Errors
    /// −32602 naming the member that is missing or wrong.
    pub(super) fn read(params: Option<&RawJson>) -> Result<Self> {
        #[derive(Deserialize)]
        struct Params {
            r#ref: Reference,
            argument: Argument,
        }
        #[derive(Deserialize)]
        struct Reference {
            r#type: String,
            name: Option<String>,
            uri: Option<String>,
        }
        #[derive(Deserialize)]
        struct Argument {
            name: String,
            value: String,
        }
        let params = params.ok_or_else(|| Error::invalid_params("\"ref\": missing"))?;
        let params: Params = params.to().map_err(|_| wrong(params))?;
        let missing = |key: &str| Error::invalid_params(format!("\"ref\": {key:?}: missing"));
        let (kind, name) = match params.r#ref.r#type.as_str() {
            "ref/prompt" => (Kind::Prompt, params.r#ref.name.ok_or_else(|| missing("name"))?),
            "ref/resource" => (Kind::ResourceTemplate, params.r#ref.uri.ok_or_else(|| missing("uri"))?),
            other => {
                let other = shortened(other, 100);
                return Err(Error::invalid_params(format!(
                    "\"ref\": \"type\": expected \"ref/prompt\" or \"ref/resource\", got {other:?}"
                )));
            }
        };
        Ok(Self { kind, name, argument: params.argument.name, value: params.argument.value })
    }
}

/// Returns the error that names the member of the parameters that cannot be read.
fn wrong(params: &RawJson) -> Error {
    let params: Value = params.to().unwrap_or_default();
    let says = |place: &str, value: Option<&Value>, expected: &str| {
        let text = match value {
            None => format!("{place}: missing"),
            Some(value) => format!("{place}: expected {expected}, got {}", shortened(&value.to_string(), 60)),
        };
        Error::invalid_params(text)
    };
    // `true`: has to be there.
    for (holder, members) in [
        ("ref", &[("type", true), ("name", false), ("uri", false)][..]),
        ("argument", &[("name", true), ("value", true)]),
    ] {
        let held = params.get(holder);
        let Some(Value::Object(held)) = held else {
            return says(&format!("{holder:?}"), held, "an object");
        };
        for (member, required) in members {
            let value = held.get(*member);
            if if *required { value.is_none_or(|v| !v.is_string()) } else { value.is_some_and(|v| !v.is_string()) } {
                return says(&format!("{holder:?}: {member:?}"), value, "a string");
            }
        }
    }
    Error::invalid_params("completion/complete: parameters that cannot be read")
}

/// Source of the values.
pub(super) enum Found {
    Handler(Arc<dyn Handler>),
    Values(Vec<String>),
}

/// Finds the source of the completions.
///
/// # Errors
/// −32602 when there is no such prompt, template or argument.
pub(super) fn find(registry: &Registry, changes: Option<&Changes>, asked: &Asked) -> Result<Found> {
    let found = match asked.kind {
        Kind::Prompt => registry.find(|r| &r.prompts, &asked.name, changes).map(|entry| {
            let known = entry.argument_names().contains(&asked.argument.as_str());
            (known, handler(&entry.completions, asked), values(entry.schema(), asked), entry.listed().subject())
        }),
        _ => registry.find(|r| &r.templates, &asked.name, changes).map(|entry| {
            let known = entry.template.variables().any(|name| name == asked.argument);
            (known, handler(&entry.completions, asked), values(entry.schema(), asked), entry.listed().subject())
        }),
    };
    let fallback = registry.completion.clone().map(Found::Handler);
    match found {
        Some((_, Some(handler), _, _)) => Ok(Found::Handler(handler)),
        Some((true, None, values, _)) if !values.is_empty() => Ok(Found::Values(values)),
        Some((true, None, values, _)) => Ok(fallback.unwrap_or(Found::Values(values))),
        Some((false, None, _, subject)) => {
            let argument = shortened(&asked.argument, 100);
            Err(Error::invalid_params(format!("\"argument\": {subject} has no argument {argument:?}")))
        }
        // A resource has nothing to complete, but it is there.
        None if asked.kind != Kind::Prompt && registry.find(|r| &r.resources, &asked.name, changes).is_some() => {
            Ok(fallback.unwrap_or(Found::Values(Vec::new())))
        }
        None => fallback.ok_or_else(|| {
            let name = shortened(&asked.name, 100);
            Error::invalid_params(format!("\"ref\": there is no {} {name:?}", asked.kind.word()))
        }),
    }
}

pub(super) fn handler(completions: &Completions, asked: &Asked) -> Option<Arc<dyn Handler>> {
    completions.iter().find(|(name, _)| *name == asked.argument).map(|(_, handler)| handler.clone())
}

/// Returns the values of an argument's schema: its `enum` and `const`, `true` and `false`; those that begin with the
/// text so far.
pub(super) fn values(schema: Option<&Value>, asked: &Asked) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(schema) = schema
        && let Some(property) = schema.get("properties").and_then(|p| p.get(&asked.argument))
    {
        choices(schema, property, 0, &mut all);
    }
    let begun = asked.value.to_lowercase();
    all.retain(|value| value.to_lowercase().starts_with(&begun));
    all
}

fn choices(root: &Value, schema: &Value, depth: usize, all: &mut Vec<String>) {
    if depth > 8 {
        return;
    }
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|to| crate::model::schema::target(root, to));
    if let Some(found) = target {
        choices(root, found, depth + 1, all);
    }
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten().chain(schema.get("const"));
    all.extend(listed.filter_map(|value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }));
    if schema.get("type").and_then(Value::as_str) == Some("boolean") {
        all.extend(["true".to_owned(), "false".to_owned()]);
    }
    for key in ["anyOf", "oneOf"] {
        for one in schema.get(key).and_then(Value::as_array).into_iter().flatten() {
            choices(root, one, depth + 1, all);
        }
    }
}

/// A `CompleteResult` with at most a hundred values.
pub(super) fn result(mut values: Vec<Value>, total: Option<u64>, has_more: Option<bool>) -> Map<String, Value> {
    let all = values.len() as u64;
    values.truncate(MAX_VALUES);
    // A handler that says how many there are, and has not given all, has more. One that says only that there are more
    // does not know how many.
    let given = values.len() as u64;
    let more = has_more.unwrap_or_else(|| total.is_some_and(|total| total > given)) || all > given;
    let total = total.map(|total| total.max(all)).or_else(|| (has_more != Some(true)).then_some(all));
    let mut completion = Map::new();
    completion.insert("values".into(), Value::Array(values));
    if let Some(total) = total {
        completion.insert("total".into(), total.into());
    }
    completion.insert("hasMore".into(), more.into());
    Map::from_iter([("completion".to_owned(), Value::Object(completion))])
}

/// Makes a `CompleteResult` of what a handler answered: an array of values, or an object with `values` and, if the
/// handler knows better than their number, `total` and `hasMore`.
pub(super) struct Completed {
    pub(super) common: Arc<Common>,
}

impl Completed {
    fn wrong(&self) -> Error {
        let message = "the completion failed: expected an array of strings, or an object with \"values\", and \"total\" an integer";
        Error::rpc(code::INTERNAL_ERROR, message)
    }
}

impl Shaper for Completed {
    fn shape(&self, payload: Payload, _: Revision) -> Result<Payload> {
        let given: Value = match payload {
            Payload::Object(given) | Payload::Value { value: given, .. } => given.to().map_err(|_| self.wrong())?,
            Payload::Text(text) => Value::Array(vec![text.into()]),
            Payload::Failed(text) => return Err(Error::rpc(code::INTERNAL_ERROR, text)),
        };
        let mut rest = Map::new();
        let given = match given {
            Value::Object(mut members) if members.contains_key("completion") => {
                let completion = members.shift_remove("completion").unwrap_or_default();
                rest = members;
                completion
            }
            other => other,
        };
        let mut further = Map::new();
        let (values, total, has_more) = match given {
            Value::Null => (Vec::new(), None, None),
            Value::Array(values) => (values, None, None),
            Value::Object(mut members) => match members.shift_remove("values") {
                Some(Value::Array(values)) => {
                    let more = members.shift_remove("hasMore").and_then(|more| more.as_bool());
                    let total = match members.shift_remove("total") {
                        None | Some(Value::Null) => None,
                        Some(total) => Some(total.as_u64().ok_or_else(|| self.wrong())?),
                    };
                    further = members;
                    (values, total, more)
                }
                _ => return Err(self.wrong()),
            },
            _ => return Err(self.wrong()),
        };
        if !values.iter().all(Value::is_string) {
            return Err(self.wrong());
        }
        let mut result = result(values, total, has_more);
        if let Some(Value::Object(completion)) = result.get_mut("completion") {
            completion.extend(further);
        }
        result.extend(rest);
        Ok(Payload::Object(RawJson::from_value(&result)))
    }

    fn subject(&self) -> String {
        "the completion".into()
    }

    fn name(&self) -> &str {
        "completion"
    }

    fn failures(&self) -> &Failures {
        &self.common.failures
    }
}
