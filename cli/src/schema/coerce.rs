//! From a text of the command line to the value that a schema wants.

use serde_json::{Number, Value};

use super::describe::describe;
use super::{Schema, Steps};

/// Depth of unions and arrays in each other, at most.
const DEPTH: usize = 16;

/// Makes the value of an argument; of several texts those of an array.
///
/// # Errors
/// Says which value was expected.
pub(crate) fn coerce(schema: Schema<'_>, texts: &[String]) -> Result<Value, String> {
    let schema = schema.resolved();
    // A value with a meaning of its own, such as a text or a number, comes first.
    let one = |schema: Schema<'_>, text: &str, depth| {
        let lenient = || one(schema, text, depth, &Steps { lenient: true, ..Steps::new() });
        one(schema, text, depth, &Steps::new()).or_else(lenient)
    };
    match texts {
        [text] => one(schema, text, 0).ok_or_else(|| wrong(schema, text)),
        [] => Ok(Value::Null),
        several => {
            let items = items(schema, 0, &Steps::new());
            let Some(items) = items else { return Err("it is given more than once".to_owned()) };
            let values = several.iter().map(|text| one(items, text, 1).ok_or_else(|| wrong(items, text)));
            values.collect::<Result<Vec<_>, _>>().map(Value::Array)
        }
    }
}

fn wrong(schema: Schema<'_>, text: &str) -> String {
    let hint = match schema.types().as_slice() {
        ["object"] => " as JSON",
        _ => "",
    };
    format!("expected {}{hint}, got {text:?}", describe(schema))
}

/// The schema of the items, if it may be an array.
fn items<'a>(schema: Schema<'a>, depth: usize, steps: &Steps) -> Option<Schema<'a>> {
    const ANYTHING: &Value = &Value::Bool(true);
    let schema = schema.resolved();
    if schema.types().contains(&"array") || schema.get("items").is_some() {
        return Some(schema.get("items").map_or_else(|| schema.of(ANYTHING), |items| schema.of(items).resolved()));
    }
    if depth > DEPTH || !steps.next() {
        return None;
    }
    schema.alternatives().into_iter().find_map(|schema| items(schema, depth + 1, steps))
}

fn one(schema: Schema<'_>, text: &str, depth: usize, steps: &Steps) -> Option<Value> {
    let schema = schema.resolved();
    if depth > DEPTH || !steps.next() {
        return None;
    }
    if let Some(values) = schema.values() {
        let parsed: Option<Value> = serde_json::from_str(text).ok();
        let same =
            |value: &&&Value| value.as_str() == Some(text) || (!value.is_string() && Some(**value) == parsed.as_ref());
        return values.iter().find(same).map(|value| (*value).clone());
    }
    let types = schema.types();
    if !types.is_empty() {
        // Text is what everything is, so it comes last.
        let mut ranked = types;
        ranked.sort_by_key(|name| rank(name));
        return ranked.into_iter().find_map(|name| of_type(schema, name, text, depth, steps));
    }
    let mut alternatives = schema.alternatives();
    if !alternatives.is_empty() {
        alternatives.sort_by_key(|schema| {
            schema
                .types()
                .iter()
                .map(|name| rank(name))
                .max()
                .unwrap_or_else(|| usize::from(schema.values().is_none()) * 5)
        });
        return alternatives.into_iter().find_map(|schema| one(schema, text, depth + 1, steps));
    }
    if let Some(part) =
        schema.list("allOf").into_iter().find(|part| !part.types().is_empty() || part.values().is_some())
    {
        return one(part, text, depth + 1, steps);
    }
    if schema.get("properties").is_some() {
        return of_type(schema, "object", text, depth, steps);
    }
    if schema.get("items").is_some() {
        return of_type(schema, "array", text, depth, steps);
    }
    Some(text.into())
}

fn rank(name: &str) -> usize {
    ["null", "boolean", "integer", "number", "array", "object", "string"]
        .iter()
        .position(|known| *known == name)
        .unwrap_or(usize::MAX)
}

fn of_type(schema: Schema<'_>, name: &str, text: &str, depth: usize, steps: &Steps) -> Option<Value> {
    match name {
        "null" => (text == "null").then_some(Value::Null),
        "boolean" => match text {
            "true" | "True" => Some(true.into()),
            "false" | "False" => Some(false.into()),
            _ if steps.lenient => switch(text),
            _ => None,
        },
        "integer" => integer(text),
        "number" => number(text),
        "array" => array(schema, text, depth, steps),
        "object" => serde_json::from_str::<Value>(text).ok().filter(Value::is_object),
        _ => Some(text.into()),
    }
}

/// Other words for `true` and `false`.
fn switch(text: &str) -> Option<Value> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true.into()),
        "false" | "no" | "off" | "0" => Some(false.into()),
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (sign, rest) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    // As calculators and other languages write it.
    let written = if rest.starts_with('.') { format!("{sign}0{rest}") } else { text.to_owned() };
    serde_json::from_str::<Number>(&written).ok().map(Value::Number)
}

fn integer(text: &str) -> Option<Value> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let number: Number = serde_json::from_str(text).ok()?;
    let whole = || number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 9e15).map(|value| value as i64);
    if number.is_i64() || number.is_u64() { Some(Value::Number(number)) } else { whole().map(Value::from) }
}

/// An array as JSON, or its items between commas.
fn array(schema: Schema<'_>, text: &str, depth: usize, steps: &Steps) -> Option<Value> {
    if text.trim_start().starts_with('[')
        && let Ok(value @ Value::Array(_)) = serde_json::from_str(text)
    {
        return Some(value);
    }
    if text.is_empty() {
        return Some(Value::Array(Vec::new()));
    }
    let items = items(schema, depth, steps)?;
    // One item with commas in it may be an object.
    if let Some(value) = of_json(items, text) {
        return Some(Value::Array(vec![value]));
    }
    // The number of items is the user's; those of an array in an array are of the same budget.
    let values = text.split(',').map(|part| {
        let steps = if depth == 0 { &steps.again() } else { steps };
        one(items, part.trim(), depth + 1, steps)
    });
    values.collect::<Option<Vec<_>>>().map(Value::Array)
}

fn of_json(items: Schema<'_>, text: &str) -> Option<Value> {
    let is_object = items.types().contains(&"object") || items.get("properties").is_some();
    serde_json::from_str::<Value>(text).ok().filter(|value| is_object && value.is_object())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(schema: &Value, texts: &[&str]) -> Result<Value, String> {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        coerce(Schema::new(schema), &texts)
    }

    #[test]
    fn texts_become_what_the_schema_wants() {
        for (schema, text, value) in [
            (json!({"type": "integer"}), "42", json!(42)),
            (json!({"type": "integer"}), "-7", json!(-7)),
            (json!({"type": "integer"}), "2.0", json!(2)),
            (json!({"type": "integer"}), "18446744073709551615", json!(u64::MAX)),
            (json!({"type": "number"}), "1.5", json!(1.5)),
            (json!({"type": "number"}), "-.5", json!(-0.5)),
            (json!({"type": "boolean"}), "true", json!(true)),
            (json!({"type": "boolean"}), "Yes", json!(true)),
            (json!({"type": ["boolean", "null"]}), "0", json!(false)),
            (json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]}), "off", json!(false)),
            (json!({"type": ["boolean", "string"]}), "yes", json!("yes")),
            (json!({"type": ["boolean", "integer"]}), "1", json!(1)),
            (json!({"type": "array", "items": {"type": "boolean"}}), "on,no", json!([true, false])),
            (json!({"type": "null"}), "null", json!(null)),
            (json!({"type": "string"}), "42", json!("42")),
            (json!({"type": ["string", "null"]}), "null", json!(null)),
            (json!({"type": ["string", "integer"]}), "42", json!(42)),
            (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), "x", json!("x")),
            (json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}), "3", json!(3)),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), "null", json!(null)),
            (json!({"enum": ["a", 1, null, true]}), "1", json!(1)),
            (json!({"enum": ["a", 1, null, true]}), "null", json!(null)),
            (json!({"const": "1"}), "1", json!("1")),
            (json!({"type": "array", "items": {"type": "integer"}}), "1, 2", json!([1, 2])),
            (json!({"type": "array", "items": {"type": "integer"}}), "[1,2]", json!([1, 2])),
            (json!({"type": "array", "items": {"type": "string"}}), "", json!([])),
            (json!({"type": "array"}), "a,b", json!(["a", "b"])),
            (json!({"type": "object"}), "{\"a\": 1}", json!({"a": 1})),
            (json!({"type": "array", "items": {"type": "object"}}), "{\"a\": 1, \"b\": 2}", json!([{"a": 1, "b": 2}])),
            (json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}), "5", json!(5)),
            (json!({"allOf": [{"type": "integer"}]}), "5", json!(5)),
            (json!({}), "5", json!("5")),
            (json!(true), "x", json!("x")),
        ] {
            assert_eq!(made(&schema, &[text]), Ok(value), "{schema} {text}");
        }
    }

    #[test]
    fn a_short_schema_causes_little_work() {
        let itself = json!({"$ref": "#"});
        let union = json!({"anyOf": [itself, itself, itself, itself, itself, itself]});
        assert!(made(&union, &["1"]).is_err());
        let circle = json!({"allOf": [{"$ref": "#"}], "type": "object", "properties": {"a": {"type": "integer"}}});
        assert_eq!(Schema::new(&circle).properties().len(), 1);
        let mut doubled = serde_json::Map::new();
        doubled.insert("d0".to_owned(), json!({"required": ["a"]}));
        for number in 1..40 {
            let before = json!({"$ref": format!("#/$defs/d{}", number - 1)});
            doubled.insert(format!("d{number}"), json!({"allOf": [before, before]}));
        }
        let doubled = json!({"$ref": "#/$defs/d39", "$defs": doubled});
        assert_eq!(Schema::new(&doubled).required(), ["a"]);
        assert!(describe(Schema::new(&union)).len() < 10_000);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        for (schema, text, why) in [
            (json!({"type": "integer"}), "1.5", "expected an integer, got \"1.5\""),
            (json!({"type": "boolean"}), "y", "expected true or false, got \"y\""),
            (json!({"enum": ["a", "b"]}), "c", "expected one of a, b, got \"c\""),
            (json!({"type": "object"}), "c", "expected an object as JSON, got \"c\""),
            (json!({"type": "array", "items": {"type": "integer"}}), "1,x", "expected a list of integers, got \"1,x\""),
            (json!({"$ref": "#"}), "1", "1"),
        ] {
            let outcome = made(&schema, &[text]);
            assert!(outcome.as_ref().err().is_none_or(|error| error == why), "{schema}: {outcome:?}");
        }
        let list = json!({"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]});
        assert_eq!(made(&list, &["1", "2"]), Ok(json!([1, 2])));
        assert!(made(&json!({"type": "integer"}), &["1", "2"]).is_err());
    }
}
