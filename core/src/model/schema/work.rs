//! How much a check would have to do, counted before it is done: a schema of a peer may say that every value is looked at
//! a million times.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The most steps of one check: a schema at a place of the value.
pub(super) const MAX_STEPS: usize = 5_000_000;
/// The most schemas that lead to each other at one place of a value.
const MAX_CHAIN: usize = 256;

/// Whether a check of `value` stays within the bounds, counted as if no keyword were ever cut short.
///
/// # Errors
/// What is too much, as the end of a sentence.
pub(super) fn bounded(schema: &Value, value: &Value) -> Result<(), &'static str> {
    let mut names = HashMap::new();
    collect(schema, &mut names);
    Count { names, left: MAX_STEPS }.visit(schema, schema, value, 0)
}

/// What a check of a peer's value against a schema of our own would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Little,
    /// It can be done, but finding all problems takes ten times as long.
    Much,
    /// Out of proportion.
    TooMuch,
}

impl Work {
    /// Steps that every check may take, some 100 ms, and those for each byte of the value's text.
    const FREE: usize = 100_000;
    const FOR_EACH_BYTE: usize = 20;
    /// A check of so many of those at most finds all problems.
    const PART: usize = 5;

    pub(super) fn of(schema: &Value, value: &Value, length: usize) -> Self {
        let most = Self::FREE.saturating_add(length.saturating_mul(Self::FOR_EACH_BYTE));
        let mut names = HashMap::new();
        collect(schema, &mut names);
        let mut count = Count { names, left: most };
        match count.visit(schema, schema, value, 0) {
            Err(TOO_MUCH) => Self::TooMuch,
            _ if most - count.left > most / Self::PART => Self::Much,
            // What refers to itself at one place is for the validator to find.
            _ => Self::Little,
        }
    }
}

const TOO_MUCH: &str = "checking it takes more than 5000000 steps";
const CIRCLE: &str = "its schema refers to itself at one place of a value, or to what cannot be found";

/// Where names (`$anchor`, `$id`) lead. Several of one name count together.
fn collect<'a>(schema: &'a Value, names: &mut HashMap<String, Vec<&'a Value>>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members {
                let name = match (key.as_str(), value) {
                    ("$anchor" | "$dynamicAnchor", Value::String(name)) => Some(format!("#{name}")),
                    ("$id" | "id", Value::String(name)) => Some(name.trim_end_matches('#').to_owned()),
                    // No schemas.
                    ("const" | "enum" | "default" | "examples", _) => continue,
                    _ => None,
                };
                if let Some(name) = name {
                    names.entry(name).or_default().push(schema);
                }
                collect(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

struct Count<'a> {
    names: HashMap<String, Vec<&'a Value>>,
    left: usize,
}

impl<'a> Count<'a> {
    fn spend(&mut self, steps: usize) -> Result<(), &'static str> {
        self.left = self.left.checked_sub(steps).ok_or(TOO_MUCH)?;
        Ok(())
    }

    /// `base` is the schema that pointers begin at.
    fn visit(&mut self, base: &'a Value, schema: &'a Value, value: &Value, chain: usize) -> Result<(), &'static str> {
        self.spend(1)?;
        if chain > MAX_CHAIN {
            return Err(CIRCLE);
        }
        let Value::Object(keywords) = schema else { return Ok(()) };
        let base = if keywords.contains_key("$id") { schema } else { base };
        for (keyword, inner) in keywords {
            match (keyword.as_str(), inner) {
                // A dialect's own schema is finite, and needs nothing of this one.
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to))
                    if !to.contains("://json-schema.org/") =>
                {
                    let targets = self.targets(base, to);
                    if targets.is_empty() {
                        return Err(CIRCLE);
                    }
                    for (base, target) in targets {
                        self.visit(base, target, value, chain + 1)?;
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    for one in all {
                        self.visit(base, one, value, chain + 1)?;
                    }
                }
                ("not" | "if" | "then" | "else", one) => self.visit(base, one, value, chain + 1)?,
                ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                    for one in all.values() {
                        self.visit(base, one, value, chain + 1)?;
                    }
                }
                ("enum", Value::Array(choices)) => self.spend(choices.len())?,
                ("properties", Value::Object(all)) => self.named(base, all, value)?,
                ("patternProperties", Value::Object(all)) => {
                    for one in all.values() {
                        self.each(base, one, value)?;
                    }
                }
                ("prefixItems" | "items", Value::Array(all)) => {
                    for (one, item) in all.iter().zip(value.as_array().into_iter().flatten()) {
                        self.visit(base, one, item, 0)?;
                    }
                }
                (
                    "additionalProperties"
                    | "unevaluatedProperties"
                    | "items"
                    | "contains"
                    | "unevaluatedItems"
                    | "additionalItems",
                    one,
                ) => self.each(base, one, value)?,
                ("propertyNames", _) => self.spend(value.as_object().map_or(0, Map::len))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The members that have a schema of their own.
    fn named(&mut self, base: &'a Value, schemas: &'a Map<String, Value>, value: &Value) -> Result<(), &'static str> {
        let Value::Object(members) = value else { return Ok(()) };
        for (name, one) in schemas {
            self.spend(1)?;
            if let Some(member) = members.get(name) {
                self.visit(base, one, member, 0)?;
            }
        }
        Ok(())
    }

    fn each(&mut self, base: &'a Value, schema: &'a Value, value: &Value) -> Result<(), &'static str> {
        match value {
            Value::Object(members) => members.values().try_for_each(|member| self.visit(base, schema, member, 0)),
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(base, schema, item, 0)),
            _ => Ok(()),
        }
    }

    /// Everything that a reference may mean, with where its own pointers begin.
    fn targets(&self, base: &'a Value, reference: &str) -> Vec<(&'a Value, &'a Value)> {
        let (name, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let of_base = |base: &'a Value| -> Vec<(&'a Value, &'a Value)> {
            if fragment.is_empty() || fragment.starts_with('/') {
                return base.pointer(fragment).map(|found| (base, found)).into_iter().collect();
            }
            let named = self.names.get(&format!("#{fragment}"));
            named.into_iter().flatten().map(|found| (base, *found)).collect()
        };
        if name.is_empty() {
            return of_base(base);
        }
        let is_meant = |id: &str| id == name || id.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'));
        let ids = self.names.iter().filter(|(id, _)| is_meant(id)).flat_map(|(_, found)| found);
        ids.flat_map(|found| of_base(found)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_doubles_is_refused() {
        let mut defs = Map::new();
        for n in 0..60 {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            defs.insert(format!("d{n}"), json!({"allOf": [next, next]}));
        }
        defs.insert("d60".into(), json!({"type": "integer"}));
        let schema = json!({"$defs": defs, "$ref": "#/$defs/d0"});
        assert_eq!(bounded(&schema, &json!(1)), Err(TOO_MUCH));
        // It grows with the depth of the value.
        let schema = json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]});
        let nested = |depth: usize| (0..depth).fold(json!([]), |inner, _| json!([inner]));
        assert_eq!(bounded(&schema, &nested(100)), Err(TOO_MUCH));
        assert_eq!(bounded(&schema, &nested(3)), Ok(()));
    }

    #[test]
    fn what_goes_in_circles_is_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            json!({"$ref": "#nowhere"}),
        ] {
            assert_eq!(bounded(&schema, &json!(1)), Err(CIRCLE), "{schema}");
        }
    }

    #[test]
    fn what_ends_is_counted() {
        let tree = json!({"$id": "tree", "$defs": {"n": {"$anchor": "number", "type": "integer"}},
            "properties": {"n": {"$ref": "#number"}, "left": {"$ref": "tree"}, "right": {"$ref": "#"},
                "all": {"$ref": "tree#/$defs/n"}, "same": {"$dynamicRef": "#number"}}});
        assert_eq!(bounded(&tree, &json!({"n": 1, "left": {"n": 2, "right": {}}, "all": 3, "same": 4})), Ok(()));
        let list = json!({"items": {"enum": vec![0; 1000]}});
        assert_eq!(bounded(&list, &json!(vec![0; 10])), Ok(()));
        assert_eq!(bounded(&list, &json!(vec![0; 10_000])), Err(TOO_MUCH));
        let meta = json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
        assert_eq!(bounded(&meta, &json!({})), Ok(()));
    }
}
