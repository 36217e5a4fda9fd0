//! The pinned schemas, merged into one set of definitions that fits every revision.
//!
//! Invariant: knows JSON Schema and the overlay, nothing of the target languages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Every pinned revision, newest first.
pub(crate) const REVISIONS: [&str; 5] = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Number of [`REVISIONS`] that are merged. The older ones leave `jsonrpc` and `id` out of their definitions and add no
/// type that the second newest does not have, batches apart (see the overlay).
const MERGED: usize = 2;

/// The exceptions to the merge rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Overlay {
    replace: BTreeMap<String, Value>,
    patch: BTreeMap<String, Value>,
    pub(crate) marks: BTreeMap<String, String>,
    pub(crate) unions: BTreeMap<String, Vec<String>>,
}

/// The definitions of one revision as published, by type name.
pub(crate) type Definitions = Map<String, Value>;

/// The published definitions of all revisions (in the order of [`REVISIONS`]) and the merged ones.
#[derive(Debug)]
pub(crate) struct Schemas {
    pub(crate) published: Vec<Definitions>,
    pub(crate) merged: Definitions,
    pub(crate) overlay: Overlay,
}

impl Schemas {
    /// Reads `<root>/schema/<revision>.json` and merges.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let published = REVISIONS.iter().map(|revision| read(root, revision)).collect::<Result<Vec<_>>>()?;
        let overlay: Overlay = toml::from_str(include_str!("../overlay.toml")).context("overlay.toml")?;
        let merged = merge_all(&published[..MERGED], &overlay)?;
        Ok(Self { published, merged, overlay })
    }
}

fn read(root: &Path, revision: &str) -> Result<Definitions> {
    let path = root.join("schema").join(format!("{revision}.json"));
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut schema: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    // draft-07 says `definitions`, 2020-12 says `$defs`
    for key in ["$defs", "definitions"] {
        if let Some(Value::Object(definitions)) = schema.get_mut(key).map(Value::take) {
            return Ok(definitions);
        }
    }
    bail!("{}: no definitions", path.display())
}

fn merge_all(revisions: &[Definitions], overlay: &Overlay) -> Result<Definitions> {
    let mut merged = Definitions::new();
    for definitions in revisions {
        for (name, older) in definitions {
            match merged.get_mut(name) {
                Some(newer) => merge(newer, older),
                None => drop(merged.insert(name.clone(), older.clone())),
            }
        }
    }
    merged.values_mut().for_each(name_meta);
    for (name, definition) in &overlay.replace {
        merged.insert(name.clone(), definition.clone());
    }
    for (name, change) in &overlay.patch {
        match merged.get_mut(name) {
            Some(definition) => patch(definition, change),
            None => bail!("overlay.toml patches {name}, which no schema has"),
        }
    }
    merged.sort_keys();
    Ok(merged)
}

/// Makes `newer` fit `older` too: keeps what only the older has, and requires only what both require.
fn merge(newer: &mut Value, older: &Value) {
    if let (Some(members), Some(more)) = (array_mut(newer, "anyOf"), array(older, "anyOf")) {
        let added: Vec<Value> = more.iter().filter(|member| !members.contains(member)).cloned().collect();
        members.extend(added);
        return;
    }
    // An object the newest leaves open is not narrowed to what an older one listed.
    if newer
        .get("additionalProperties")
        .is_some_and(|rest| rest != older.get("additionalProperties").unwrap_or(&Value::Null))
    {
        return;
    }
    let Some(Value::Object(more)) = older.get("properties") else {
        return;
    };
    let Some(Value::Object(properties)) = newer.get_mut("properties") else {
        return;
    };
    for (key, theirs) in more {
        match properties.get_mut(key) {
            Some(ours) => merge(ours, theirs),
            None => drop(properties.insert(key.clone(), theirs.clone())),
        }
    }
    let theirs = array(older, "required").cloned().unwrap_or_default();
    if let Some(ours) = array_mut(newer, "required") {
        ours.retain(|key| theirs.contains(key));
    }
}

/// Gives the `_meta` that older definitions write out in place the names the newest has for it.
fn name_meta(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Object(properties)) = object.get_mut("properties")
                && let Some(meta) = properties.get_mut("_meta")
                && meta.get("$ref").is_none()
            {
                let name = if meta.pointer("/properties/progressToken").is_some() {
                    "RequestMetaObject"
                } else {
                    "MetaObject"
                };
                *meta = json!({ "$ref": format!("#/$defs/{name}") });
            }
            object.values_mut().for_each(name_meta);
        }
        Value::Array(items) => items.iter_mut().for_each(name_meta),
        _ => {}
    }
}

/// Puts `change` over `target`: objects key by key, everything else whole.
fn patch(target: &mut Value, change: &Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (key, value) in change {
                match target.get_mut(key) {
                    Some(inner) => patch(inner, value),
                    None => drop(target.insert(key.clone(), value.clone())),
                }
            }
        }
        (target, change) => *target = change.clone(),
    }
}

fn array<'a>(value: &'a Value, key: &str) -> Option<&'a Vec<Value>> {
    value.get(key).and_then(Value::as_array)
}

fn array_mut<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Vec<Value>> {
    value.get_mut(key).and_then(Value::as_array_mut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_merge_keeps_older_properties_and_requires_what_both_require() {
        let mut newer = json!({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]});
        merge(
            &mut newer,
            &json!({"properties": {"a": {"type": "integer"}, "c": {"type": "null"}}, "required": ["a", "c"]}),
        );
        assert_eq!(
            newer,
            json!({"properties": {"a": {"type": "string"}, "b": {}, "c": {"type": "null"}}, "required": ["a"]})
        );
    }

    #[test]
    fn the_merge_descends_into_closed_objects_only() {
        let older = json!({"properties": {"x": {"properties": {"old": {}}}}});
        let mut closed = json!({"properties": {"x": {"properties": {"new": {}}}}});
        merge(&mut closed, &older);
        assert_eq!(closed.pointer("/properties/x/properties/old"), Some(&json!({})));
        let mut open = json!({"properties": {"x": {"properties": {"new": {}}, "additionalProperties": {}}}});
        merge(&mut open, &older);
        assert_eq!(open.pointer("/properties/x/properties/old"), None);
    }

    #[test]
    fn unions_get_the_members_of_both() {
        let mut newer = json!({"anyOf": [{"$ref": "A"}, {"$ref": "B"}]});
        merge(&mut newer, &json!({"anyOf": [{"$ref": "B"}, {"$ref": "C"}]}));
        assert_eq!(newer, json!({"anyOf": [{"$ref": "A"}, {"$ref": "B"}, {"$ref": "C"}]}));
    }
}
