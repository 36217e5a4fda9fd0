//! Arguments by the JSON Schema of what takes them.

mod coerce;
mod describe;
mod given;

use serde_json::{Map, Value};

pub(crate) use coerce::coerce;
pub(crate) use describe::{describe, signature};
pub(crate) use given::{Given, pair};

use crate::failure::{Failure, Outcome, instead};

/// References that are followed before a schema counts as one that says nothing.
const REFERENCES: usize = 32;
/// Parts of an `allOf`, and alternatives of one union, that are looked at.
const PARTS: usize = 64;
/// Schemas that are looked at for one value or one description.
const STEPS: u32 = 2000;

/// Work that a schema may still cause: references make a short one as large as they like.
struct Steps {
    left: std::cell::Cell<u32>,
    /// Other words for `true` and `false` count.
    lenient: bool,
}

impl Steps {
    fn new() -> Self {
        Self { left: std::cell::Cell::new(STEPS), lenient: false }
    }

    /// The same anew.
    fn again(&self) -> Self {
        Self { lenient: self.lenient, ..Self::new() }
    }

    /// Takes one step; false if there is none left.
    fn next(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

/// A schema, with the document that its references are of.
#[derive(Clone, Copy)]
pub(crate) struct Schema<'a> {
    root: &'a Value,
    at: &'a Value,
}

impl<'a> Schema<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        Self { root, at: root }
    }

    fn of(self, at: &'a Value) -> Self {
        Self { at, ..self }
    }

    /// The schema that a chain of `$ref` leads to, of this document alone.
    fn resolved(self) -> Self {
        let mut at = self.at;
        for _ in 0..REFERENCES {
            let Some(reference) = at.get("$ref").and_then(Value::as_str) else { break };
            let Some(found) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else { break };
            at = found;
        }
        self.of(at)
    }

    fn get(self, name: &str) -> Option<&'a Value> {
        self.at.get(name)
    }

    fn list(self, name: &str) -> Vec<Self> {
        let members = self.get(name).and_then(Value::as_array);
        members.into_iter().flatten().take(PARTS).map(|member| self.of(member).resolved()).collect()
    }

    /// The schema and the parts of its `allOf`, each once.
    fn parts(self) -> Vec<Self> {
        let (mut all, mut open) = (Vec::<Self>::new(), vec![self.resolved()]);
        while let Some(schema) = open.pop() {
            if all.len() == PARTS || all.iter().any(|known| std::ptr::eq(known.at, schema.at)) {
                continue;
            }
            all.push(schema);
            open.extend(schema.list("allOf").into_iter().rev());
        }
        all
    }

    /// The alternatives of a union.
    fn alternatives(self) -> Vec<Self> {
        ["anyOf", "oneOf"].iter().flat_map(|name| self.list(name)).collect()
    }

    /// The names of its types.
    fn types(self) -> Vec<&'a str> {
        match (self.at, self.get("type")) {
            // A type where its schema should be: what is meant is plain.
            (Value::String(name), _) | (_, Some(Value::String(name))) => vec![name],
            (_, Some(Value::Array(names))) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// The values that are allowed, where they are listed.
    fn values(self) -> Option<Vec<&'a Value>> {
        match (self.get("enum").and_then(Value::as_array), self.get("const")) {
            (Some(values), _) => Some(values.iter().collect()),
            (None, Some(value)) => Some(vec![value]),
            (None, None) => None,
        }
    }

    /// The properties of an object, in their order, those of `allOf` included.
    pub(crate) fn properties(self) -> Vec<(&'a str, Self)> {
        let mut known = std::collections::HashSet::new();
        let parts = self.parts().into_iter();
        let all = parts.filter_map(|part| part.get("properties")?.as_object()).flatten();
        all.filter(|(name, _)| known.insert(name.as_str())).map(|(name, at)| (name.as_str(), self.of(at))).collect()
    }

    /// The names of the properties that have to be there.
    pub(crate) fn required(self) -> Vec<&'a str> {
        let parts = self.parts().into_iter();
        parts.filter_map(|part| part.get("required")?.as_array()).flatten().filter_map(Value::as_str).collect()
    }

    /// True if it takes properties that it does not name.
    fn is_open(self) -> bool {
        let schema = self.resolved();
        let more = schema.get("additionalProperties");
        schema.get("patternProperties").is_some()
            || more.is_some_and(|more| more.is_object() || *more == Value::Bool(true))
            || (schema.properties().is_empty() && more.is_none())
            || !schema.alternatives().is_empty()
    }

    /// A description, a title.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        self.get(name).or_else(|| self.resolved().get(name)).and_then(Value::as_str)
    }

    /// The default.
    pub(crate) fn default(self) -> Option<&'a Value> {
        self.get("default").or_else(|| self.resolved().get("default"))
    }
}

/// Makes the arguments of `what` from what was given, as its schema has them.
pub(crate) fn arguments(what: &str, schema: &Value, given: Given) -> Outcome<Map<String, Value>> {
    let schema = Schema::new(schema);
    let properties = schema.properties();
    let names: Vec<_> = properties.iter().map(|(name, _)| *name).collect();
    let mut arguments = given.whole;
    for (name, texts) in given.texts {
        let property = properties.iter().find(|(known, _)| *known == name).map(|(_, schema)| *schema);
        let value = match property {
            Some(property) => {
                coerce(property, &texts).map_err(|why| Failure::misuse(format!("{what}: {name}: {why}")))?
            }
            None => texts.into_iter().next_back().map_or(Value::Null, Value::String),
        };
        arguments.insert(name, value);
    }
    for (name, value) in given.values {
        arguments.insert(name, value);
    }
    if !schema.is_open()
        && let Some(unknown) = arguments.keys().find(|name| !names.contains(&name.as_str()))
    {
        let hint = if names.is_empty() {
            "; it takes none".to_owned()
        } else {
            instead(unknown, "arguments", names.iter().copied())
        };
        return Err(Failure::misuse(format!("{what} has no argument {unknown:?}{hint}")));
    }
    let missing = schema.required().into_iter().find(|name| !arguments.contains_key(*name));
    if let Some(missing) = missing {
        let kind = properties.iter().find(|(name, _)| *name == missing).map(|(_, schema)| describe(*schema));
        let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
        return Err(Failure::misuse(format!("{what}: the argument {missing:?}{kind} is missing: add {missing}=…")));
    }
    Ok(arguments)
}
