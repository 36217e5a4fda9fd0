//! Text arguments as the values that their schema says: of prompts and templates, which have nothing but text, and of tools
//! whose hosts write numbers, lists and objects as text.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::error::shortened;
use crate::jsonrpc::RawJson;
use crate::model::problem;
use crate::model::schema::target;
use crate::protocol::revision::object;

/// Text arguments, such as a URI's variables or a prompt's arguments, as the types that their schema says: text that is
/// a number, `true`, an array or an object becomes one where text is not wanted. Empty text for what may be left out and
/// cannot be empty is left out. A value that does not fit stays text, and the check says so.
pub(crate) fn typed(schema: &Value, given: Map<String, Value>) -> RawJson {
    let mut out = String::from("{");
    let required = schema.get("required").and_then(Value::as_array);
    for (name, value) in &given {
        let property = property(schema, name);
        let is_required = || required.is_some_and(|all| all.iter().any(|one| one == name));
        if value == "" && property.is_some_and(|property| !takes_empty(schema, property)) && !is_required() {
            continue;
        }
        let text = property.map_or_else(|| value.to_string(), |property| typed_text(schema, property, value));
        object::push_member(&mut out, name, &text);
    }
    out.push('}');
    RawJson::written(out)
}

/// The arguments of a tool, of which some are text although their schema wants none. `None`: there are none of these.
/// `judged`: a validator of the host's own knows whether it reads numbers and booleans from text, so only lists and objects
/// are read here.
pub(crate) fn untexted(schema: &Value, arguments: &RawJson, judged: bool) -> Option<RawJson> {
    let has = |begin: &str| memchr::memmem::find(arguments.bytes(), begin.as_bytes()).is_some();
    if judged && !has("\"[") && !has("\"{") {
        return None;
    }
    let members = object::members(arguments.get());
    let is_texted = |(name, value): &(Cow<'_, str>, &RawValue)| {
        value.get().starts_with('"') && property(schema, name).is_some_and(|property| !wants_text(schema, property))
    };
    if !members.iter().any(is_texted) {
        return None;
    }
    let mut out = String::from("{");
    for (name, value) in &members {
        let texted = property(schema, name).filter(|_| value.get().starts_with('"'));
        let read = texted
            .map(|property| typed_text(schema, property, &serde_json::from_str(value.get()).unwrap_or(Value::Null)));
        let text =
            read.filter(|read| !judged || read.starts_with(['[', '{'])).unwrap_or_else(|| value.get().to_owned());
        object::push_member(&mut out, name, &text);
    }
    out.push('}');
    Some(RawJson::written(out))
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let rest = || schema.get("additionalProperties").filter(|rest| rest.is_object());
    schema.get("properties").and_then(|properties| properties.get(name)).or_else(rest)
}

/// The JSON text of one argument. Numbers keep the digits that they came with.
fn typed_text(root: &Value, schema: &Value, value: &Value) -> String {
    match value {
        Value::String(text) if !wants_text(root, schema) => {
            read_text(root, schema, text.trim()).map_or_else(|| value.to_string(), Cow::into_owned)
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

/// The JSON text of what somebody has written as text.
fn read_text<'t>(root: &Value, schema: &Value, text: &'t str) -> Option<Cow<'t, str>> {
    let is = |kind: &str| is_of(root, schema, kind);
    if is("boolean") && !is("integer") && !is("number") {
        match text.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => return Some("true".into()),
            "false" | "f" | "no" | "n" | "off" | "0" => return Some("false".into()),
            _ => {}
        }
    }
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        // Something else, such as a number for a list, is not for us to make: a validator of the host's own may read it.
        let fits = match value {
            Value::Number(_) => is("integer") || is("number"),
            Value::String(_) => false,
            value => is(kind_of(&value)),
        };
        return fits.then_some(text.into());
    }
    // As people write numbers: 05, +5.
    let (sign, digits) =
        text.strip_prefix('-').map_or_else(|| ("", text.strip_prefix('+').unwrap_or(text)), |d| ("-", d));
    let shorter = digits.trim_start_matches('0');
    let zero = if shorter.starts_with(|first: char| first.is_ascii_digit()) { "" } else { "0" };
    let number = format!("{sign}{zero}{shorter}");
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit()) && (is("integer") || is("number"));
    (is_number && serde_json::from_str::<Value>(&number).is_ok()).then_some(number.into())
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns true if one of the schema's alternatives is like this; `unknown` where nobody can say.
fn any_is(root: &Value, schema: &Value, unknown: bool, is: &dyn Fn(&Value) -> bool, depth: usize) -> bool {
    if depth > 8 {
        return unknown;
    }
    if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
        return target(root, to).map_or(unknown, |found| any_is(root, found, unknown, is, depth + 1));
    }
    match ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array()) {
        Some(any) => any.iter().any(|one| any_is(root, one, unknown, is, depth + 1)),
        None => is(schema),
    }
}

/// The values that a schema lists, if it does.
fn listed(schema: &Value) -> Option<&[Value]> {
    let constant = schema.get("const").map(std::slice::from_ref);
    constant.or_else(|| schema.get("enum")?.as_array().map(Vec::as_slice))
}

/// Returns true if the schema names a type that passes.
fn names(schema: &Value, unnamed: bool, is: impl Fn(&str) -> bool) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => is(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is),
        _ => unnamed,
    }
}

/// Returns true if a value of this schema may be of that type, and the schema says so.
fn is_of(root: &Value, schema: &Value, kind: &str) -> bool {
    let fits = |value: &Value| kind_of(value) == kind || (kind == "integer" && value.is_number());
    let is =
        |one: &Value| listed(one).map_or_else(|| names(one, false, |name| name == kind), |all| all.iter().any(fits));
    any_is(root, schema, false, &is, 0)
}

/// Returns true if a value of this schema may be text.
fn wants_text(root: &Value, schema: &Value) -> bool {
    any_is(root, schema, true, &is_text, 0)
}

fn is_text(schema: &Value) -> bool {
    listed(schema).map_or_else(|| names(schema, true, |name| name == "string"), |all| all.iter().any(Value::is_string))
}

/// Returns true if empty text may be a value of this schema.
fn takes_empty(root: &Value, schema: &Value) -> bool {
    const FORMATS: [&str; 7] = ["date-time", "date", "time", "duration", "uuid", "email", "uri"];
    let is = |one: &Value| match listed(one) {
        Some(all) => all.iter().any(|value| value == ""),
        None => {
            let least = one.get("minLength").and_then(Value::as_u64).unwrap_or_default();
            let format = one.get("format").and_then(Value::as_str).unwrap_or_default();
            is_text(one) && least == 0 && !FORMATS.contains(&format)
        }
    };
    any_is(root, schema, true, &is, 0)
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
        let said = |schema: &Value, given: Value| {
            let Value::Object(given) = given else { panic!("an object") };
            super::typed(schema, given).get().to_owned()
        };
        // As people and hosts write them.
        let usual = json!({"required": ["must"], "properties": {
            "n": {"type": "integer"}, "x": {"type": "number"}, "b": {"type": "boolean"}, "must": {"type": "integer"},
            "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}, "s": {"type": "string"},
        }});
        for (given, expected) in [
            (json!({"n": "05"}), r#"{"n":5}"#),
            (json!({"n": "-007"}), r#"{"n":-7}"#),
            (json!({"n": "000"}), r#"{"n":0}"#),
            (json!({"n": "+5", "x": "01.5"}), r#"{"n":5,"x":1.5}"#),
            (json!({"n": "0x5"}), r#"{"n":"0x5"}"#),
            (json!({"b": "True"}), r#"{"b":true}"#),
            (json!({"b": "1"}), r#"{"b":true}"#),
            (json!({"b": "no"}), r#"{"b":false}"#),
            (json!({"b": "maybe"}), r#"{"b":"maybe"}"#),
            (json!({"n": "", "b": "", "when": "", "s": ""}), r#"{"s":""}"#),
            (json!({"must": ""}), r#"{"must":""}"#),
        ] {
            assert_eq!(said(&usual, given.clone()), expected, "{given}");
        }
        let Value::Object(given) = json!({"n": "1", "rest": "2"}) else { panic!("an object") };
        let open = json!({"properties": {"n": {"type": "string"}}, "additionalProperties": {"type": "integer"}});
        assert_eq!(super::typed(&open, given).get(), r#"{"n":"1","rest":2}"#);
    }

    #[test]
    fn arguments_that_a_host_wrote_as_text_are_read() {
        let schema = json!({"$defs": {"U": {"type": "object"}}, "properties": {
            "values": {"type": "array", "items": {"type": "integer"}}, "n": {"type": "integer"},
            "user": {"$ref": "#/$defs/U"}, "text": {"type": "string"}, "any": {},
        }});
        let read =
            |given: Value| untexted(&schema, &RawJson::from_value(&given), false).map(|text| text.get().to_owned());
        let given =
            json!({"values": "[1,2]", "n": "7", "user": "{\"a\": 1}", "text": "[1]", "any": "{}", "other": "1"});
        let expected = r#"{"values":[1,2],"n":7,"user":{"a": 1},"text":"[1]","any":"{}","other":"1"}"#;
        assert_eq!(read(given).as_deref(), Some(expected));
        assert_eq!(read(json!({"text": "1", "any": "2", "n": 1})), None);
        let given = RawJson::from_value(&json!({"values": "[1,2]", "n": "7"}));
        let judged = untexted(&schema, &given, true);
        assert_eq!(judged.as_ref().map(RawJson::get), Some(r#"{"values":[1,2],"n":"7"}"#));
        // A validator of the host's own may read these.
        let given = json!({"values": "5", "n": "[1]", "user": "null"});
        assert_eq!(read(given).as_deref(), Some(r#"{"values":"5","n":"[1]","user":"null"}"#));
    }
}
