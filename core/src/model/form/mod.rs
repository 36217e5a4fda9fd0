//! Forms: the flat schemas of elicitation and their answers (specification, "Elicitation", "Requested Schema").
//!
//! Errors are texts: the caller knows which side is at fault for a bad form or answer.

use jsonschema::Draft;
use serde_json::{Map, Value, json};

use super::problem;
use crate::error::shortened;

/// The most properties of a form.
const MAX_PROPERTIES: usize = 1_000;
/// The most bytes of a question with its form that a client takes.
pub(crate) const MAX_BYTES: usize = 256 << 10;
/// The most choices of one property.
const MAX_CHOICES: usize = 10_000;
/// The formats that a string may have.
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];
/// The keywords that mean something to a value; each kind of property has its own among them. Others are notes.
const MEANING: [&str; 42] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "enumNames",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "then",
    "unevaluatedProperties",
];

/// Checks that a client can make a form of `schema`: an object whose properties are strings, numbers, booleans, one
/// choice (`enum`, `oneOf` with titles, `enum` with `enumNames`) or several (`array` of those), with defaults that fit.
///
/// # Errors
/// The property and what to do, such as `property "home": type "object" is not allowed in a form, …`.
pub(crate) fn check_form(schema: &Value) -> Result<(), String> {
    let form = schema.as_object().ok_or("form: expected an object schema")?;
    if form.get("type").and_then(Value::as_str) != Some("object") {
        return Err("form: expected \"type\": \"object\"".to_owned());
    }
    meaning(form, &["properties", "additionalProperties"]).map_err(|why| format!("form: {why}"))?;
    if form.get("additionalProperties").is_some_and(|v| !v.is_boolean()) {
        return Err("form: \"additionalProperties\" is not allowed in a form, take it out".to_owned());
    }
    if form.get("$schema").is_some_and(|v| !v.is_string()) {
        return Err("form: \"$schema\": expected a string".to_owned());
    }
    let Some(Value::Object(properties)) = form.get("properties") else {
        return Err("form: expected \"properties\", an object with a schema for each field".to_owned());
    };
    if properties.len() > MAX_PROPERTIES {
        return Err(format!("form: {} properties, at most {MAX_PROPERTIES}", properties.len()));
    }
    for (name, property) in properties {
        check_property(property).map_err(|why| format!("property \"{}\": {why}", shortened(name, 100)))?;
    }
    if let Some(required) = form.get("required") {
        let names = required.as_array().ok_or("form: \"required\": expected a list of names")?;
        for name in names {
            let known = name.as_str().is_some_and(|name| properties.contains_key(name));
            if !known {
                return Err(format!("form: \"required\" names {name}, which is no property"));
            }
        }
    }
    let defaults = with_defaults(schema, json!({}));
    check("default", &plain(schema, false), &defaults)
}

fn meaning(schema: &Map<String, Value>, allowed: &[&str]) -> Result<(), String> {
    match schema.keys().find(|key| MEANING.contains(&key.as_str()) && !allowed.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => {
            let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
            Err(format!(
                "\"{key}\" is not allowed for type \"{kind}\" in a form, take it out and check the answer yourself"
            ))
        }
    }
}

fn check_property(property: &Value) -> Result<(), String> {
    const HELP: &str = "use string, number, integer, boolean, or array for several choices";
    let schema = property.as_object().ok_or_else(|| format!("expected a schema object, {HELP}"))?;
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(kind) => return Err(format!("type {kind} is not allowed in a form, name one type: {HELP}")),
        None => return Err(format!("\"type\" is missing, {HELP}")),
    };
    match kind {
        "string" => {
            meaning(schema, &["minLength", "maxLength", "format", "enum", "enumNames", "oneOf"])?;
            bounds(schema, "minLength", "maxLength", true)?;
            if let Some(format) = schema.get("format")
                && !format.as_str().is_some_and(|format| FORMATS.contains(&format))
            {
                return Err(format!("format {format} is not allowed in a form, use one of {}", FORMATS.join(", ")));
            }
            if schema.contains_key("enum") && schema.contains_key("oneOf") {
                return Err("both \"enum\" and \"oneOf\", take one of them".to_owned());
            }
            if let Some(titled) = schema.get("oneOf") {
                return check_titled("oneOf", titled);
            }
            let choices = schema.get("enum").map(check_choices).transpose()?;
            match (schema.get("enumNames"), choices) {
                (None, _) => Ok(()),
                (Some(Value::Array(names)), Some(count))
                    if names.len() == count && names.iter().all(Value::is_string) =>
                {
                    Ok(())
                }
                _ => Err("\"enumNames\": expected one string for each value of \"enum\"".to_owned()),
            }
        }
        // `format` is a note for numbers: schemas made from types say `int32`.
        "number" | "integer" => {
            meaning(schema, &["minimum", "maximum", "format"])?;
            bounds(schema, "minimum", "maximum", false)
        }
        "boolean" => meaning(schema, &[]),
        "array" => {
            meaning(schema, &["items", "minItems", "maxItems"])?;
            bounds(schema, "minItems", "maxItems", true)?;
            let items = schema.get("items").and_then(Value::as_object);
            match items.map(|items| (items, items.get("enum"), items.get("anyOf"))) {
                Some((items, Some(choices), None)) => {
                    meaning(items, &["enum"]).map_err(|why| format!("items: {why}"))?;
                    if items.get("type").and_then(Value::as_str) != Some("string") {
                        return Err("items: expected \"type\": \"string\"".to_owned());
                    }
                    check_choices(choices).map(drop)
                }
                Some((items, None, Some(titled))) => {
                    meaning(items, &["anyOf"]).map_err(|why| format!("items: {why}"))?;
                    check_titled("anyOf", titled)
                }
                _ => Err("an array in a form is a choice of several, give \"items\" an \"enum\" of strings or an \
                          \"anyOf\" of {\"const\", \"title\"}"
                    .to_owned()),
            }
        }
        other => Err(format!("type \"{}\" is not allowed in a form, {HELP}", shortened(other, 60))),
    }
}

fn bounds(schema: &Map<String, Value>, least: &str, most: &str, whole: bool) -> Result<(), String> {
    let read = |key: &str| match schema.get(key) {
        None => Ok(None),
        Some(value) => match value.as_f64().filter(|n| !whole || (*n >= 0.0 && n.fract() == 0.0)) {
            Some(number) => Ok(Some(number)),
            None if whole => Err(format!("\"{key}\": expected a whole number, 0 or more, got {value}")),
            None => Err(format!("\"{key}\": expected a number, got {value}")),
        },
    };
    match (read(least)?, read(most)?) {
        (Some(low), Some(high)) if low > high => Err(format!("\"{least}\" is larger than \"{most}\"")),
        _ => Ok(()),
    }
}

fn check_choices(choices: &Value) -> Result<usize, String> {
    let choices = choices.as_array().filter(|choices| !choices.is_empty() && choices.iter().all(Value::is_string));
    let choices = choices.ok_or("\"enum\": expected a list of strings, one at least")?;
    distinct(choices.iter().filter_map(Value::as_str))
}

fn check_titled(keyword: &str, choices: &Value) -> Result<(), String> {
    let wrong = || format!("\"{keyword}\": expected a list of {{\"const\": string, \"title\": string}}, one at least");
    let choices = choices.as_array().filter(|choices| !choices.is_empty()).ok_or_else(wrong)?;
    let is_titled = |choice: &Value| choice["const"].is_string() && choice["title"].is_string();
    if !choices.iter().all(is_titled) {
        return Err(wrong());
    }
    distinct(choices.iter().filter_map(|choice| choice["const"].as_str())).map(drop)
}

fn distinct<'a>(choices: impl Iterator<Item = &'a str>) -> Result<usize, String> {
    let mut seen = std::collections::HashSet::new();
    for choice in choices {
        if !seen.insert(choice) {
            return Err(format!("the choice {:?} comes twice", shortened(choice, 60)));
        }
        if seen.len() > MAX_CHOICES {
            return Err(format!("more than {MAX_CHOICES} choices"));
        }
    }
    Ok(seen.len())
}

/// Checks that the answer's `content` is what the form asks for. Members that the form does not have may be there.
///
/// # Errors
/// The problems in one line, such as `answer "age": expected integer, got "x"`.
pub(crate) fn check_answer(schema: &Value, content: &Value) -> Result<(), String> {
    if let Some(members) = content.as_object().map(Map::len).filter(|members| *members > MAX_PROPERTIES) {
        return Err(format!("answer: {members} members, at most {MAX_PROPERTIES}"));
    }
    check("answer", &plain(schema, true), content)
}

/// Checks that `result` is an `ElicitResult`, for a form (`Some`) or for a URL (`None`). Only the answer of an accepted
/// form is looked at.
///
/// # Errors
/// The fault, as for [`check_answer`].
pub(crate) fn check_result(schema: Option<&Value>, result: &Value) -> Result<(), String> {
    match result["action"].as_str() {
        Some("decline" | "cancel") => Ok(()),
        Some("accept") => match (schema, result.get("content")) {
            (None, _) => Ok(()),
            (Some(schema), Some(content)) => check_answer(schema, content),
            (Some(schema), None) => check_answer(schema, &json!({})),
        },
        _ => Err(format!(
            "\"action\": expected accept, decline or cancel, got {}",
            shortened(&result["action"].to_string(), 60)
        )),
    }
}

fn check(noun: &str, plain: &Value, value: &Value) -> Result<(), String> {
    let validator = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true).build(plain);
    let validator = validator.map_err(|e| format!("form: {}", shortened(&e.to_string(), 300)))?;
    if validator.is_valid(value) { Ok(()) } else { Err(problem::all(noun, plain, validator.iter_errors(value))) }
}

/// The form as a schema of the keywords that forms have, with every choice as an `enum`. Nothing else of a peer's schema
/// reaches the validator: no reference and no pattern.
fn plain(schema: &Value, required: bool) -> Value {
    let keep = |property: &Value, keys: &[&str]| {
        let mut out = Map::new();
        for key in keys {
            if let Some(value) = property.get(key) {
                out.insert((*key).to_owned(), value.clone());
            }
        }
        out
    };
    let choices = |schema: &Value, titled: &str| {
        let titled = schema.get(titled).and_then(Value::as_array);
        let titled = titled.map(|titled| titled.iter().filter_map(|choice| choice.get("const").cloned()).collect());
        titled.map(Value::Array).or_else(|| schema.get("enum").cloned())
    };
    let property = |property: &Value| match property["type"].as_str() {
        Some("string") => {
            let mut out = keep(property, &["type", "minLength", "maxLength"]);
            if let Some(format) = property["format"].as_str().filter(|format| FORMATS.contains(format)) {
                out.insert("format".to_owned(), format.into());
            }
            if let Some(choices) = choices(property, "oneOf") {
                out.insert("enum".to_owned(), choices);
            }
            Value::Object(out)
        }
        Some("array") => {
            let mut out = keep(property, &["type", "minItems", "maxItems"]);
            let mut items = json!({"type": "string"});
            if let Some(choices) = choices(&property["items"], "anyOf") {
                items["enum"] = choices;
            }
            out.insert("items".to_owned(), items);
            Value::Object(out)
        }
        Some("number" | "integer") => Value::Object(keep(property, &["type", "minimum", "maximum"])),
        _ => Value::Object(keep(property, &["type"])),
    };
    let properties = schema["properties"].as_object();
    let properties: Map<_, _> =
        properties.into_iter().flatten().map(|(name, schema)| (name.clone(), property(schema))).collect();
    let mut out = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": {"type": ["string", "number", "boolean", "array"], "items": {"type": "string"}},
    });
    if let Some(names) = schema.get("required").filter(|_| required) {
        out["required"] = names.clone();
    }
    out
}

/// The answer with the form's defaults where it says nothing; `null` counts as an empty answer.
pub(crate) fn with_defaults(schema: &Value, content: Value) -> Value {
    let mut content = if content.is_null() { json!({}) } else { content };
    if let (Some(members), Some(properties)) = (content.as_object_mut(), schema["properties"].as_object()) {
        for (name, property) in properties {
            if let Some(default) = property.get("default")
                && !members.contains_key(name)
            {
                members.insert(name.clone(), default.clone());
            }
        }
    }
    content
}

#[cfg(test)]
mod tests;
