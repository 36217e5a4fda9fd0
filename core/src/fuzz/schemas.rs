//! Descriptions by one side that the other fills in: schemas, forms and URI templates.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{SLOWEST, Target, mutate, run, shown, sort};
use crate::error::ErrorKind;
use crate::model::UriTemplate;
use crate::model::form::{check_answer, check_form, check_result, with_defaults};
use crate::model::schema::{Effort, Schema, Wrong};

/// Five million steps may be taken, which are slow ones where nothing is optimized.
const SLOW: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

const KEYWORDS: &[&str] = &[
    "$schema",
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
    "http://json-schema.org/draft-04/schema#",
    "$id",
    "$anchor",
    "$ref",
    "#",
    "#/$defs/a",
    "#/properties/a",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$defs",
    "definitions",
    "type",
    "object",
    "array",
    "string",
    "integer",
    "number",
    "boolean",
    "null",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "required",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minLength",
    "maxLength",
    "pattern",
    "^(a+)+$",
    "(?=a)a|\\\\1",
    "[",
    "\\\\p{L}{1000}",
    "format",
    "date-time",
    "email",
    "uri",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "multipleOf",
    "enum",
    "const",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "title",
    "default",
    "schema",
    "value",
    "a",
];

/// A schema, and a value for it, as they stand in the text.
#[derive(Deserialize)]
struct Pair<'a> {
    #[serde(borrow)]
    schema: &'a RawValue,
    #[serde(borrow)]
    value: &'a RawValue,
}

fn pair(input: &[u8]) -> Option<Pair<'_>> {
    // Members by their order would do for serde.
    let is_object = input.trim_ascii_start().first() == Some(&b'{');
    if is_object { serde_json::from_slice(input).ok() } else { None }
}

#[test]
fn schemas_of_a_server() {
    let (name, property) = ("schemas", foreign as fn(&[u8]) -> u64);
    run(&Target { name, property, mutate: mutate::json_text, words: KEYWORDS, slowest: SLOW });
}

/// A hostile server's schema is read or refused, and a value is checked against it, in bounded time and with few words.
fn foreign(input: &[u8]) -> u64 {
    let Some(Pair { schema: text, value }) = pair(input) else { return 0 };
    let (source, schema) = match Schema::foreign("schema", text.get()) {
        Ok(read) => read,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.message().starts_with("schema: "), "{error}");
            // Names of places may be long.
            let most = if error.message().contains("dialect") { 2000 } else { 40_000 };
            assert!(error.message().len() <= most, "{}", shown(error.message().as_bytes()));
            return sort(error.message());
        }
    };
    let full = schema.check_foreign(&source, "result", value.get(), &Effort::Full(Arc::default()));
    let inline = schema.check_foreign(&source, "result", value.get(), &Effort::Inline);
    assert!(inline != Ok(()) || full == Ok(()), "{full:?} with more effort: {}", shown(input));
    match &full {
        Ok(()) => sort("fits"),
        Err(Wrong::Unfit(why, at)) => {
            assert!((1..=16_000).contains(&why.len()), "{} bytes: {}", why.len(), shown(why.as_bytes()));
            assert!(at.is_empty() || at.starts_with('/'), "{at}");
            sort(why)
        }
        Err(Wrong::TooMuch(why)) => {
            assert!((1..=2000).contains(&why.len()), "{}", shown(why.as_bytes()));
            sort("too much")
        }
        Err(wrong) => panic!("{wrong:?} of a check that may take its time: {}", shown(input)),
    }
}

#[test]
fn arguments_of_a_client() {
    let (name, property) = ("arguments", arguments as fn(&[u8]) -> u64);
    run(&Target { name, property, mutate: mutate::json_text, words: KEYWORDS, slowest: SLOW });
}

/// Arguments of a hostile client are checked against a schema of one's own in bounded time and with few words, and the
/// quick way through their text says the same as the way through their values.
fn arguments(input: &[u8]) -> u64 {
    let Some(Pair { schema: text, value }) = pair(input) else { return 0 };
    let Ok(source) = serde_json::from_str::<Value>(text.get()) else { return 1 };
    let schema = match Schema::new("schema", &source) {
        Ok(schema) => schema,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            return sort(error.message());
        }
    };
    let checked = schema.check_text(|| &source, "argument", value.get());
    if let Err(why) = &checked {
        assert!((1..=16_000).contains(&why.len()), "{} bytes: {}", why.len(), shown(why.as_bytes()));
    }
    if let Ok(value) = serde_json::from_str::<Value>(value.get())
        && !has_reals(&value)
    {
        let other = schema.check_text(|| &source, "argument", &value.to_string());
        // A shorter text takes fewer steps.
        let gave_up = |checked: &Result<(), String>| {
            checked.as_ref().is_err_and(|why| ["too many steps", "too deep"].iter().any(|part| why.contains(part)))
        };
        let is_same = gave_up(&checked) || gave_up(&other) || checked.is_ok() == other.is_ok();
        assert!(is_same, "{checked:?} and {other:?}: {}", shown(input));
    }
    sort(checked.as_ref().map_or_else(String::as_str, |()| "fits"))
}

/// True for what may be another number once it was written.
fn has_reals(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_reals),
        Value::Object(members) => members.values().any(has_reals),
        _ => false,
    }
}

const FORMS: &[&str] = &[
    "form",
    "answer",
    "type",
    "object",
    "string",
    "integer",
    "number",
    "boolean",
    "array",
    "properties",
    "required",
    "additionalProperties",
    "title",
    "default",
    "enum",
    "enumNames",
    "oneOf",
    "anyOf",
    "const",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "format",
    "email",
    "uri",
    "date",
    "date-time",
    "pattern",
    "$ref",
    "$schema",
    "name",
];

#[test]
fn forms() {
    run(&Target { name: "forms", property: filled, mutate: mutate::json_text, words: FORMS, slowest: SLOWEST });
}

/// An answer that is accepted has what the form requires, of the types that it says; a form's own defaults fit it.
fn filled(input: &[u8]) -> u64 {
    let Ok(whole) = serde_json::from_slice::<Value>(input) else { return 0 };
    let (form, answer) = (&whole["form"], &whole["answer"]);
    let fits = check_form(form);
    let checked = check_answer(form, answer);
    let result = json!({"action": "accept", "content": answer});
    assert_eq!(check_result(Some(form), &result), checked, "{}", shown(input));
    assert_eq!(check_result(Some(form), &json!({"action": "decline"})), Ok(()));
    if let Err(why) = &fits {
        assert!(!why.is_empty());
        return sort(why);
    }
    let none = Map::new();
    let properties = form["properties"].as_object().unwrap_or(&none);
    if form.get("required").is_none() {
        let defaults = with_defaults(form, Value::Null);
        assert_eq!(check_answer(form, &defaults), Ok(()), "{defaults}: {}", shown(input));
    }
    if checked.is_ok() {
        let members = answer.as_object().expect("an answer that fits a form is an object");
        for name in form["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(members.contains_key(name), "{name:?} is missing: {}", shown(input));
        }
        for (name, property) in properties {
            let Some(value) = members.get(name) else { continue };
            let is_right = match property["type"].as_str() {
                Some("string") => value.is_string(),
                Some("boolean") => value.is_boolean(),
                Some("number" | "integer") => value.is_number(),
                Some("array") => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
                _ => false,
            };
            assert!(is_right, "{name:?} is {value}: {}", shown(input));
        }
    }
    let filled = with_defaults(form, answer.clone());
    let has_all = |filled: &Map<String, Value>| {
        properties.iter().all(|(name, property)| property.get("default").is_none() || filled.contains_key(name))
    };
    assert!(filled.as_object().is_none_or(has_all), "{filled}: {}", shown(input));
    sort(checked.as_ref().map_or_else(String::as_str, |()| "fits"))
}

const TEMPLATES: &[&str] = &[
    "{a}",
    "{+a}",
    "{#a}",
    "{.a}",
    "{/a}",
    "{/a*}",
    "{;a,b}",
    "{?a,b*}",
    "{&a}",
    "{a:3}",
    "{a,b,c}",
    "{",
    "}",
    "*",
    ":9999",
    "file:///",
    "x://h/",
    "%2F",
    "%ff",
    "%",
    "/",
    "?a=1&b=2",
    "#f",
    ";a;b=1",
    ",",
    "é",
    "\n",
    "{\"a\":\"b\"}",
];

#[test]
fn templates() {
    run(&Target { name: "templates", property: matched, mutate: mutate::lines, words: TEMPLATES, slowest: SLOWEST });
}

/// The longest URI.
const MAX_URI: usize = 8 << 10;

/// A template, a URI, and values, each on a line. A URI that fits gives values for variables of the template; what was
/// expanded from texts fits, and gives them back.
fn matched(input: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(input);
    let mut lines = text.split('\n');
    let (source, uri) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let values: Map<String, Value> =
        lines.next().and_then(|values| serde_json::from_str(values).ok()).unwrap_or_default();
    given_back(source, uri);
    let template = match UriTemplate::parse(source) {
        Ok(template) => template,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.message().len() <= 2000, "{}", shown(error.message().as_bytes()));
            return sort(error.message());
        }
    };
    assert_eq!(template.as_str(), source);
    let names: std::collections::BTreeSet<&str> = template.variables().collect();
    assert_eq!(names.len(), template.variables().count(), "each is named once: {source}");
    let found = template.matches(uri);
    if let Some(found) = &found {
        assert!(uri.len() <= MAX_URI && UriTemplate::may_match(source, uri), "{source} {uri}");
        for (name, value) in found {
            let is_right = value.is_string() || value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
            assert!(names.contains(name.as_str()) && is_right, "{name}={value}: {source} {uri}");
        }
        let again = template.expand(found);
        let is_right = again.as_ref().is_ok_and(|uri| uri.len() <= MAX_URI)
            || again.as_ref().is_err_and(|error| error.message().contains("longer than"))
            // `{a*}` and `{?a:3}`.
            || again.as_ref().is_err_and(|error| error.message().contains("has no first characters"));
        assert!(is_right, "{again:?}: {source} {uri}");
    }
    match template.expand(&values) {
        Ok(expanded) => {
            assert!(expanded.len() <= MAX_URI, "{} bytes", expanded.len());
            let back = template.matches(&expanded);
            sort(&format!("{} {}", found.is_some(), back.is_some()))
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            sort(&format!("{} {}", found.is_some(), error.message().rsplit(": ").next().unwrap_or_default()))
        }
    }
}

/// Checks that values of any kind are found again where the template keeps them apart.
fn given_back(one: &str, other: &str) {
    let all: Vec<&str> = one.split(',').chain(other.split('/')).filter(|part| !part.is_empty()).take(8).collect();
    if one.is_empty() || other.is_empty() || all.is_empty() {
        return;
    }
    let values =
        Map::from_iter([("a".to_owned(), json!(one)), ("b".to_owned(), json!(other)), ("l".to_owned(), json!(all))]);
    for source in ["s://{a}/{b}/{l*}", "s:{/a,b,l*}", "s{;a,b,l*}", "s{?a,b,l*}", "s?x{&a,b,l*}"] {
        let template = UriTemplate::parse(source).expect(source);
        let Ok(uri) = template.expand(&values) else { continue };
        assert_eq!(template.matches(&uri).as_ref(), Some(&values), "{source}: {uri}");
    }
}
