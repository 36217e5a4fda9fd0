//! One-line documentation: our own sentences from docs.toml, the rest derived from methods and revision windows.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use crate::model::Type;
use crate::schema::{Definitions, REVISIONS, Schemas};

/// The sentences of docs.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Docs {
    types: BTreeMap<String, String>,
    properties: BTreeMap<String, String>,
}

impl Docs {
    pub(crate) fn load() -> Result<Self> {
        toml::from_str(include_str!("../docs.toml")).context("docs.toml")
    }

    /// The names docs.toml describes that are not among `known`: left over from an older pin.
    pub(crate) fn stale(&self, known: &Definitions) -> Vec<&str> {
        self.types.keys().filter(|name| !known.contains_key(*name)).map(String::as_str).collect()
    }

    /// The line for a type.
    pub(crate) fn of_type(&self, name: &str, body: &Type, schemas: &Schemas) -> String {
        let sentence = match self.types.get(name) {
            Some(sentence) => sentence.clone(),
            None => derived(name, body, schemas),
        };
        join(Some(sentence), type_window(name, schemas)).unwrap_or_default()
    }

    /// The line for a property, when there is something to say. `parent` is a type, or "Type.property" inside one.
    pub(crate) fn of_property(&self, parent: &str, key: &str, schemas: &Schemas) -> Option<String> {
        let sentence = self.properties.get(&format!("{parent}.{key}")).or_else(|| self.properties.get(key)).cloned();
        // Older schemas leave these out of their definitions although they were on the wire.
        let unsaid = key == "jsonrpc" || key == "id" || (key == "_meta" && parent.ends_with("Params"));
        let window = if unsaid || parent.contains('.') { None } else { property_window(parent, key, schemas) };
        join(sentence, window)
    }
}

fn join(sentence: Option<String>, window: Option<String>) -> Option<String> {
    match (sentence, window) {
        (Some(sentence), Some(window)) => Some(format!("{sentence} {window}")),
        (sentence, window) => sentence.or(window),
    }
}

/// A line for requests, notifications and what belongs to them, from the method.
fn derived(name: &str, body: &Type, schemas: &Schemas) -> String {
    if let Type::Object(object) = body
        && let Some(field) = object.fields.iter().find(|field| field.key == "method")
        && let Type::Literal(Value::String(method)) = &field.ty
    {
        return format!("The `{method}` {}.", if name.ends_with("Notification") { "notification" } else { "request" });
    }
    for (suffix, text) in
        [("ResultResponse", "The answer to"), ("Result", "The result of"), ("Params", "The params of")]
    {
        let Some(stem) = name.strip_suffix(suffix) else {
            continue;
        };
        for base in [stem.to_owned(), format!("{stem}Request")] {
            if let Some(method) = schemas
                .merged
                .get(&base)
                .and_then(|def| def.pointer("/properties/method/const"))
                .and_then(Value::as_str)
            {
                return format!("{text} `{method}`.");
            }
        }
    }
    format!("`{name}` of the schema.")
}

/// "Until …" for what the newest revision no longer has, "Since …" for methods that came later than the first one.
fn type_window(name: &str, schemas: &Schemas) -> Option<String> {
    let method = schemas.merged.get(name).and_then(|def| def.pointer("/properties/method/const"));
    let present = |revision: &Definitions| match method {
        Some(method) => revision.values().any(|def| def.pointer("/properties/method/const") == Some(method)),
        None => revision.contains_key(name),
    };
    let first = schemas.published.iter().rposition(present)?;
    let last = schemas.published.iter().position(present)?;
    let since = method.is_some() || last > 0;
    window(if since { first } else { REVISIONS.len() - 1 }, last, REVISIONS.len() - 1)
}

/// The same for a property, counted over the revisions that have its type.
fn property_window(parent: &str, key: &str, schemas: &Schemas) -> Option<String> {
    let has: Vec<Option<bool>> =
        schemas.published.iter().map(|revision| Some(properties(parent, revision)?.get(key).is_some())).collect();
    let oldest = has.iter().rposition(Option::is_some)?;
    let first = has.iter().rposition(|has| *has == Some(true))?;
    let last = has.iter().position(|has| *has == Some(true))?;
    // A type that the newest revision dropped says so itself.
    let newest = has.iter().position(Option::is_some)?;
    window(first, if last == newest { 0 } else { last }, oldest)
}

fn window(first: usize, last: usize, oldest: usize) -> Option<String> {
    match (first < oldest, last > 0) {
        (true, true) if first == last => Some(format!("Only {}.", REVISIONS[first])),
        (true, true) => Some(format!("{} to {}.", REVISIONS[first], REVISIONS[last])),
        (true, false) => Some(format!("Since {}.", REVISIONS[first])),
        (false, true) => Some(format!("Until {}.", REVISIONS[last])),
        (false, false) => None,
    }
}

/// The properties of a type in one revision. Older schemas write params in place, and two types had other names.
fn properties<'a>(name: &str, revision: &'a Definitions) -> Option<&'a Value> {
    let renamed = match name {
        "ResourceTemplateReference" => "ResourceReference",
        "JSONRPCErrorResponse" => "JSONRPCError",
        _ => name,
    };
    if let Some(definition) = revision.get(name).or_else(|| revision.get(renamed)) {
        return definition.get("properties");
    }
    revision.get(name.strip_suffix("Params")?)?.pointer("/properties/params/properties")
}
