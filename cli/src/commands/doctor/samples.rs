//! Arguments made of a schema: some that should fit.

use serde_json::{Map, Value, json};

const DEEPEST: usize = 8;
const STEPS: usize = 500;

/// Size of the numbers among the arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Little,
    Much,
}

/// Arguments for a tool, if any can be made.
pub(super) fn sample(schema: &Value, size: Size) -> Option<Value> {
    Maker { root: schema, size, steps: STEPS }.object(schema.as_object()?, 0)
}

/// True if a number is among the arguments that have to be there.
pub(super) fn has_number(schema: &Value) -> bool {
    let properties = schema["properties"].as_object();
    let is_number = |of: &Value| ["integer", "number"].iter().any(|kind| of["type"] == *kind);
    properties.into_iter().flatten().any(|(_, of)| is_number(of))
}

struct Maker<'a> {
    root: &'a Value,
    size: Size,
    steps: usize,
}

impl Maker<'_> {
    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Option<Value> {
        let mut made = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let of = properties.and_then(|properties| properties.get(name)).cloned().unwrap_or_else(|| json!({}));
            made.insert(name.to_owned(), self.value(&of, depth + 1)?);
        }
        // A tool that takes time often says so by an argument that may be left out.
        let fills = depth == 0 && self.size == Size::Much;
        for (name, of) in properties.into_iter().flatten() {
            if fills && ["integer", "number"].iter().any(|kind| of["type"] == *kind) && !made.contains_key(name) {
                made.insert(name.clone(), self.value(of, depth + 1)?);
            }
        }
        Some(Value::Object(made))
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Option<Value> {
        if depth > DEEPEST || self.steps == 0 {
            return None;
        }
        self.steps -= 1;
        let Some(members) = schema.as_object() else { return Some(json!("a")) };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            let target = self.root.pointer(reference.strip_prefix('#')?)?.clone();
            return self.value(&target, depth + 1);
        }
        if let Some(value) = members.get("const") {
            return Some(value.clone());
        }
        if let Some(value) = members.get("enum").and_then(|values| values.get(0)) {
            return Some(value.clone());
        }
        let is_number = ["integer", "number"].iter().any(|kind| schema["type"] == *kind);
        let given = members.get("default").or_else(|| members.get("examples").and_then(|values| values.get(0)));
        if let Some(value) = given.filter(|_| !(is_number && self.size == Size::Much)) {
            return Some(value.clone());
        }
        for keyword in ["anyOf", "oneOf", "allOf"] {
            if let Some(first) = members.get(keyword).and_then(|all| all.get(0)) {
                let first = first.clone();
                return self.value(&first, depth + 1);
            }
        }
        let kind = match members.get("type") {
            Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or("string"),
            kind => kind.and_then(Value::as_str).unwrap_or("string"),
        };
        let count = |name: &str| members.get(name).and_then(Value::as_u64).unwrap_or_default();
        Some(match kind {
            "integer" | "number" => self.number(members),
            "boolean" => json!(false),
            "null" => Value::Null,
            "array" => {
                let items = members.get("items").cloned().unwrap_or_else(|| json!({}));
                let mut made = Vec::new();
                for _ in 0..count("minItems").min(16) {
                    made.push(self.value(&items, depth + 1)?);
                }
                Value::Array(made)
            }
            "object" => self.object(members, depth)?,
            _ => text(members, usize::try_from(count("minLength").min(1000)).unwrap_or_default()),
        })
    }

    fn number(&self, members: &Map<String, Value>) -> Value {
        let bound = |name: &str| members.get(name).and_then(Value::as_f64);
        let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + 1.0));
        let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - 1.0));
        let wanted: f64 = if self.size == Size::Much { 200.0 } else { 3.0 };
        let wanted = wanted.max(least.unwrap_or(wanted)).min(most.unwrap_or(f64::MAX));
        #[expect(clippy::cast_possible_truncation, reason = "a whole number within a range")]
        let whole = wanted.clamp(-9e15, 9e15).ceil() as i64;
        json!(whole)
    }
}

fn text(members: &Map<String, Value>, least: usize) -> Value {
    let format = members.get("format").and_then(Value::as_str).unwrap_or_default();
    let fixed = match format {
        "uri" | "url" => "https://example.com/",
        "email" => "nobody@example.com",
        "date" => "2000-01-01",
        "date-time" => "2000-01-01T00:00:00Z",
        "time" => "00:00:00Z",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        _ => "a",
    };
    json!(format!("{fixed:a<least$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_made() {
        let schema = json!({"type": "object", "required": ["a", "b", "c", "d"], "properties": {
            "a": {"type": "integer", "minimum": 5}, "b": {"$ref": "#/$defs/B"}, "c": {"enum": ["x", "y"]},
            "d": {"type": "array", "items": {"type": "string", "minLength": 3}, "minItems": 2}, "e": {"type": "number"}},
            "$defs": {"B": {"type": "object", "required": ["x"], "properties": {"x": {"type": ["null", "string"]}}}}});
        let made = sample(&schema, Size::Little);
        assert_eq!(made, Some(json!({"a": 5, "b": {"x": null}, "c": "x", "d": ["aaa", "aaa"]})));
        let much = sample(&schema, Size::Much).expect("arguments");
        assert_eq!((&much["a"], &much["e"]), (&json!(200), &json!(200)));
        let endless = json!({"properties": {"a": {"$ref": "#/properties/a"}}, "required": ["a"]});
        assert_eq!(sample(&endless, Size::Little), None);
    }
}
