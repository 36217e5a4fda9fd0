//! Text arguments as the values that their schema says.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::shortened;
use crate::jsonrpc::RawJson;
use crate::model::problem;
use crate::model::schema::target;
use crate::protocol::revision::object;

/// Text arguments, such as a URI's variables or a prompt's arguments, as the types that their schema says: text that is
/// a number, `true`, an array or an object becomes one where text is not wanted. A value that does not fit stays text,
/// and the check says so.
pub(crate) fn typed(schema: &Value, given: Map<String, Value>) -> RawJson {
    let mut out = String::from("{");
    for (name, value) in &given {
        let rest = || schema.get("additionalProperties").filter(|rest| rest.is_object());
        let property = schema.get("properties").and_then(|properties| properties.get(name)).or_else(rest);
        let text = property.map_or_else(|| value.to_string(), |property| typed_text(schema, property, value));
        object::push_member(&mut out, name, &text);
    }
    out.push('}');
    RawJson::written(out)
}

/// The JSON text of one argument. Numbers keep the digits that they came with.
fn typed_text(root: &Value, schema: &Value, value: &Value) -> String {
    match value {
        Value::String(text) if !wants_text(root, schema, 0) && serde_json::from_str::<Value>(text).is_ok() => {
            text.trim().to_owned()
        }
        Value::Array(items) => {
            let each = items_of(root, schema, 0);
            let texts: Vec<String> = items
                .iter()
                .map(|item| each.map_or_else(|| item.to_string(), |each| typed_text(root, each, item)))
                .collect();
            format!("[{}]", texts.join(","))
        }
        other => other.to_string(),
    }
}

/// Returns the schema of a list's items.
fn items_of<'a>(root: &'a Value, schema: &'a Value, depth: usize) -> Option<&'a Value> {
    if depth > 8 {
        return None;
    }
    if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
        return items_of(root, target(root, to)?, depth + 1);
    }
    if let Some(items) = schema.get("items") {
        return Some(items);
    }
    let any = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array())?;
    any.iter().find_map(|one| items_of(root, one, depth + 1))
}

/// Returns true if a value of this schema may be text.
fn wants_text(root: &Value, schema: &Value, depth: usize) -> bool {
    if depth > 8 {
        return true;
    }
    if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
        return target(root, to).is_none_or(|found| wants_text(root, found, depth + 1));
    }
    if let Some(constant) = schema.get("const") {
        return constant.is_string();
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return values.iter().any(Value::is_string);
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(any)) = schema.get(key) {
            return any.iter().any(|one| wants_text(root, one, depth + 1));
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => name == "string",
        Some(Value::Array(names)) => names.iter().any(|name| name == "string"),
        _ => true,
    }
}

/// Returns serde's objection to a text that fits its schema, with the name of the member, as the schema's problems have
/// it.
pub(crate) fn unfit<T: DeserializeOwned>(noun: &str, text: &str) -> String {
    let mut reader = serde_json::Deserializer::from_str(text);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut reader) else {
        return format!("{}: no fit", problem::whole(noun));
    };
    let (path, why) = (error.path().to_string(), error.inner().to_string());
    let why = why.split(" at line ").next().unwrap_or_default();
    match path.as_str() {
        "." | "" => format!("{}: {why}", problem::whole(noun)),
        path => format!("{noun} \"{}\": {why}", shortened(path, 100)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::schema::Schema;
    use serde_json::json;

    #[test]
    fn text_that_is_no_number_stays_text() {
        let source = json!({"properties": {"d": {"type": "number", "minimum": 1}}});
        let schema = Schema::new("schema", &source).expect("schema");
        let Value::Object(given) = json!({"d": "1e400"}) else { panic!("an object") };
        let text = typed(&source, given);
        let wrong = schema.check_text(|| &source, "argument", text.get()).expect_err("no number");
        assert_eq!(wrong, r#"argument "d": expected number, got "1e400""#);
    }

    #[test]
    fn text_becomes_what_its_schema_says() {
        let schema = json!({"$defs": {"N": {"type": "integer"}}, "properties": {
            "big": {"type": "integer"}, "text": {"type": "string"}, "flag": {"type": "boolean"},
            "list": {"type": "array", "items": {"$ref": "#/$defs/N"}},
            "words": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        }});
        let given = json!({"big": "123456789012345678901234", "text": "1", "flag": " true ", "list": ["1", "x", "3"],
            "words": ["1", "2"], "other": "1"});
        let Value::Object(given) = given else { panic!("an object") };
        let typed = typed(&schema, given);
        assert_eq!(
            typed.get(),
            r#"{"big":123456789012345678901234,"text":"1","flag":true,"list":[1,"x",3],"words":["1","2"],"other":"1"}"#
        );
        let Value::Object(given) = json!({"n": "1", "rest": "2"}) else { panic!("an object") };
        let open = json!({"properties": {"n": {"type": "string"}}, "additionalProperties": {"type": "integer"}});
        assert_eq!(super::typed(&open, given).get(), r#"{"n":"1","rest":2}"#);
    }
}
