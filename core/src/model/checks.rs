//! Checks of a definition's members against the schema, where it is registered. Definitions of a source or a peer pass
//! as they are.

use serde_json::{Map, Value};

use super::is_safe_icon;
use crate::error::shortened;
use crate::options::type_of;

/// Checks the members that resources, templates, prompts and tools share; `annotated`: `annotations` are the schema's
/// `Annotations`, and not a tool's.
///
/// # Errors
/// The member, what is expected and what there is.
pub(crate) fn check_definition(members: &Map<String, Value>, annotated: bool) -> Result<(), String> {
    if let Some(size) = members.get("size").filter(|_| annotated)
        && !size.is_u64()
    {
        return Err(format!("\"size\": expected an integer of bytes, at least 0, got {}", shown(size)));
    }
    if let Some(annotations) = members.get("annotations").filter(|_| annotated) {
        check_annotations(annotations)?;
    }
    members.get("icons").map_or(Ok(()), check_icons)?;
    members.get("_meta").map_or(Ok(()), check_meta)
}

fn shown(value: &Value) -> String {
    shortened(&value.to_string(), 60).into_owned()
}

/// The keywords of JSON Schema: of 2020-12, 2019-09 and draft 7. Every schema that says something has one of them, or is of
/// an extension, whose members begin with `x-`.
const KEYWORDS: [&str; 62] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
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
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];

/// Checks that this is an object with keywords in it, and not schemas by name.
///
/// # Errors
/// The type that it is of, or what to give instead.
pub(crate) fn check_schema(schema: &Value) -> Result<(), String> {
    let Value::Object(members) = schema else {
        return Err(format!("expected a JSON Schema, got {}", type_of(schema)));
    };
    let is_keyword = |name: &String| KEYWORDS.contains(&name.as_str()) || name.starts_with("x-");
    match members.keys().next().map(|name| shortened(name, 60)) {
        Some(first) if !members.keys().any(is_keyword) => {
            let give = format!("{{\"type\": \"object\", \"properties\": {{{first:?}: …}}}}");
            Err(format!("{first:?} is no keyword of JSON Schema: give {give}"))
        }
        _ => Ok(()),
    }
}

fn check_annotations(annotations: &Value) -> Result<(), String> {
    let wrong = |member: &str, expected: &str, value: &Value| {
        Err(format!("\"annotations\": {member:?}: expected {expected}, got {}", shown(value)))
    };
    let Value::Object(members) = annotations else {
        return Err(format!("\"annotations\": expected an object, got {}", shown(annotations)));
    };
    for (member, value) in members {
        match member.as_str() {
            "priority" if !value.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority)) => {
                return wrong(member, "a number from 0 to 1", value);
            }
            "audience" => {
                let is_role = |role: &Value| matches!(role.as_str(), Some("user" | "assistant"));
                if !value.as_array().is_some_and(|roles| roles.iter().all(is_role)) {
                    return wrong(member, "an array of \"user\" and \"assistant\"", value);
                }
            }
            "lastModified" if !value.as_str().is_some_and(is_time) => {
                return wrong(member, "an ISO 8601 time such as \"2025-01-12T15:00:58Z\"", value);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks that this is an array of the schema's `Icon`, each with a `src` that a client may load.
///
/// # Errors
/// The icon and what is expected.
pub(crate) fn check_icons(icons: &Value) -> Result<(), String> {
    let Value::Array(icons) = icons else {
        return Err(format!("\"icons\": expected an array, got {}", shown(icons)));
    };
    match icons.iter().enumerate().find(|(_, icon)| !icon["src"].as_str().is_some_and(is_safe_icon)) {
        Some((at, icon)) => Err(format!(
            "\"icons\": {at}: \"src\": expected an https: URL or an image as data: URL, got {}",
            shown(&icon["src"])
        )),
        None => Ok(()),
    }
}

/// Returns true if a text is a date, with or without a time of the day and a zone, of ISO 8601's extended format.
fn is_time(text: &str) -> bool {
    let (date, time) = text.split_once(['T', 't', ' ']).map_or((text, None), |(date, time)| (date, Some(time)));
    let number = |text: &str, digits: usize, range: std::ops::RangeInclusive<u32>| {
        text.len() == digits
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse().is_ok_and(|number| range.contains(&number))
    };
    let [year, month, day] = date.split('-').collect::<Vec<_>>()[..] else { return false };
    if !(number(year, 4, 0..=9999) && number(month, 2, 1..=12) && number(day, 2, 1..=31)) {
        return false;
    }
    let Some(time) = time else { return true };
    let clock = |text: &str| match text.split(':').collect::<Vec<_>>()[..] {
        [hour, minute] => number(hour, 2, 0..=24) && number(minute, 2, 0..=59),
        [hour, minute, second] => {
            let (second, fraction) = second.split_once(['.', ',']).unwrap_or((second, "0"));
            let fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
            number(hour, 2, 0..=24) && number(minute, 2, 0..=59) && number(second, 2, 0..=60) && fraction
        }
        _ => false,
    };
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return clock(time);
    }
    match time.rsplit_once(['+', '-']) {
        Some((time, zone)) => {
            let zone = match zone.split_once(':') {
                Some((hours, minutes)) => number(hours, 2, 0..=23) && number(minutes, 2, 0..=59),
                None => number(zone, 2, 0..=23) || number(zone, 4, 0..=2359),
            };
            clock(time) && zone
        }
        None => clock(time),
    }
}

/// Names in `_meta` that the specification and its extensions define.
const DEFINED: [&str; 4] = ["related-task", "model-immediate-response", "ui", "tasks"];

/// Checks that `_meta` has keys of the specification's grammar (overview, "`_meta`"), and none of those that it
/// reserves but does not define.
///
/// # Errors
/// The key and what is wrong with it.
fn check_meta(meta: &Value) -> Result<(), String> {
    let Value::Object(members) = meta else {
        return Err(format!("\"_meta\": expected an object, got {}", shown(meta)));
    };
    for key in members.keys() {
        let (prefix, name) = key.split_once('/').map_or((None, key.as_str()), |(prefix, name)| (Some(prefix), name));
        if !is_name(name) || prefix.is_some_and(|prefix| !prefix.split('.').all(is_label)) {
            let key = shortened(key, 60);
            return Err(format!("\"_meta\": {key:?}: expected a name such as \"color\" or \"com.example/color\""));
        }
        let reserved = prefix
            .and_then(|prefix| prefix.split('.').nth(1))
            .is_some_and(|l| matches!(l, "modelcontextprotocol" | "mcp"));
        let defined = prefix == Some("io.modelcontextprotocol") && DEFINED.contains(&name);
        if reserved && !defined {
            let key = shortened(key, 60);
            return Err(format!("\"_meta\": {key:?}: the prefix is reserved for the protocol"));
        }
    }
    Ok(())
}

/// Checks that an extension may be called so, and be declared with these settings.
///
/// # Errors
/// The fault of its name or its settings.
pub(crate) fn check_extension(id: &str, settings: &Value) -> Result<(), String> {
    let is_right = id.len() <= 200
        && id
            .split_once('/')
            .is_some_and(|(prefix, name)| prefix.split('.').all(is_label) && !name.is_empty() && is_name(name));
    if !is_right {
        return Err("expected an identifier with a prefix, such as \"com.example/search\"".into());
    }
    if !settings.is_object() {
        return Err(format!("settings: expected an object, got {}", shown(settings)));
    }
    Ok(())
}

fn is_label(label: &str) -> bool {
    label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label.ends_with(|c: char| c.is_ascii_alphanumeric())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_name(name: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    name.is_empty() || (name.starts_with(ends) && name.ends_with(ends) && name.bytes().all(inner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome(members: Value) -> Result<(), String> {
        check_definition(members.as_object().expect("an object"), true)
    }

    #[test]
    fn what_the_schema_allows_passes() {
        for members in [
            json!({}),
            json!({"size": 0, "x": {"any": 1}}),
            json!({"annotations": {"priority": 1, "audience": ["user", "assistant"], "x": 7}}),
            json!({"annotations": {"priority": 0.0, "audience": [], "lastModified": "2025-01-12T15:00:58Z"}}),
            json!({"annotations": {"lastModified": "2025-01-12T15:00:58.25+02:00"}}),
            json!({"annotations": {"lastModified": "2025-01-12T15:00"}}),
            json!({"annotations": {"lastModified": "2025-01-12"}}),
            json!({"icons": [{"src": "https://h/i.png"}, {"src": "data:image/png;base64,AA=="}]}),
            json!({"_meta": {"a": 1, "com.example/a_b.c-d": 1, "com.example.mcp/x": 1, "mcp": 1, "ui": {}}}),
            json!({"_meta": {"io.modelcontextprotocol/ui": {}, "ui/resourceUri": "ui://x", "com.example/": 1}}),
        ] {
            assert_eq!(outcome(members.clone()), Ok(()), "{members}");
        }
        // A tool's annotations are others.
        let tool = json!({"annotations": {"priority": 7}});
        assert_eq!(check_definition(tool.as_object().expect("an object"), false), Ok(()));
    }

    #[test]
    fn every_keyword_makes_a_schema() {
        for schema in [
            json!({}),
            json!({"pattern": "a"}),
            json!({"contains": {}, "minContains": 1}),
            json!({"then": {}}),
            json!({"$recursiveRef": "#"}),
            json!({"a": 1, "uniqueItems": true}),
            json!({"x-order": 1, "x-group": "a"}),
        ] {
            assert_eq!(check_schema(&schema), Ok(()), "{schema}");
        }
        for (schema, first) in [(json!({"minutes": {"type": "integer"}}), "minutes"), (json!({"y-a": 1}), "y-a")] {
            let refused = check_schema(&schema).expect_err(first);
            assert!(refused.starts_with(&format!("{first:?} is no keyword of JSON Schema: give")), "{refused}");
        }
    }

    #[test]
    fn what_it_does_not_is_named() {
        for (members, part) in [
            (json!({"size": -1}), "\"size\""),
            (json!({"size": 1.5}), "\"size\""),
            (json!({"annotations": []}), "\"annotations\": expected an object"),
            (json!({"annotations": {"priority": 7}}), "\"priority\": expected a number from 0 to 1, got 7"),
            (json!({"annotations": {"audience": ["robot"]}}), "\"audience\""),
            (json!({"annotations": {"audience": "user"}}), "\"audience\""),
            (json!({"annotations": {"lastModified": "yesterday"}}), "\"lastModified\""),
            (json!({"annotations": {"lastModified": "2025-13-12"}}), "\"lastModified\""),
            (json!({"annotations": {"lastModified": "2025-01-12T25:00:00Z"}}), "\"lastModified\""),
            (json!({"icons": {}}), "\"icons\": expected an array"),
            (json!({"icons": [{"src": "https://h/i"}, {}]}), "\"icons\": 1: \"src\""),
            (json!({"icons": [{"src": "javascript:alert(1)"}]}), "got \"javascript:alert(1)\""),
            (json!({"_meta": 1}), "\"_meta\": expected an object"),
            (json!({"_meta": {"bad key!": 1}}), "\"bad key!\""),
            (json!({"_meta": {"-a": 1}}), "\"-a\""),
            (json!({"_meta": {"1a.b/c": 1}}), "\"1a.b/c\""),
            (json!({"_meta": {"a/b/c": 1}}), "\"a/b/c\""),
            (json!({"_meta": {"io.modelcontextprotocol/x": 1}}), "reserved"),
            (json!({"_meta": {"dev.mcp/x": 1}}), "reserved"),
        ] {
            let message = outcome(members.clone()).expect_err(part);
            assert!(message.contains(part), "{members}: {message}");
        }
    }
}
