//! Schemas in a few words.

use serde_json::Value;

use super::{Schema, Steps};

/// Values of an enumeration that are shown.
const VALUES: usize = 12;
const DEPTH: usize = 4;

/// Names the values that a schema takes: `an integer`, `one of a, b`, `a list of texts`.
pub(crate) fn describe(schema: Schema<'_>) -> String {
    words(schema, 0, false, &Steps::new())
}

fn words(schema: Schema<'_>, depth: usize, plural: bool, steps: &Steps) -> String {
    let schema = schema.resolved();
    if depth > DEPTH || !steps.next() {
        return if plural { "values" } else { "a value" }.to_owned();
    }
    if let Some(values) = schema.values() {
        let shown: Vec<_> = values.iter().take(VALUES).map(|value| plain(value)).collect();
        let more = if values.len() > VALUES { ", …" } else { "" };
        return match shown.as_slice() {
            [one] => one.clone(),
            _ => format!("one of {}{more}", shown.join(", ")),
        };
    }
    let types = schema.types();
    if !types.is_empty() {
        let named: Vec<_> = types.iter().map(|name| of_type(schema, name, depth, plural, steps)).collect();
        return named.join(" or ");
    }
    let alternatives = schema.alternatives();
    if !alternatives.is_empty() {
        let mut named: Vec<_> =
            alternatives.into_iter().map(|schema| words(schema, depth + 1, plural, steps)).collect();
        named.dedup();
        return named.join(" or ");
    }
    if let Some(part) =
        schema.list("allOf").into_iter().find(|part| !part.types().is_empty() || part.values().is_some())
    {
        return words(part, depth + 1, plural, steps);
    }
    if schema.get("properties").is_some() {
        return of_type(schema, "object", depth, plural, steps);
    }
    if plural { "values" } else { "any value" }.to_owned()
}

fn of_type(schema: Schema<'_>, name: &str, depth: usize, plural: bool, steps: &Steps) -> String {
    match (name, plural) {
        ("null", _) => "null".to_owned(),
        ("boolean", false) => "true or false".to_owned(),
        ("boolean", true) => "booleans".to_owned(),
        ("integer", false) => "an integer".to_owned(),
        ("integer", true) => "integers".to_owned(),
        ("number", false) => "a number".to_owned(),
        ("number", true) => "numbers".to_owned(),
        ("object", false) => "an object".to_owned(),
        ("object", true) => "objects".to_owned(),
        ("string", false) => "a text".to_owned(),
        ("string", true) => "texts".to_owned(),
        ("array", _) => {
            let items = schema.get("items").map(|items| words(schema.of(items), depth + 1, true, steps));
            let head = if plural { "lists" } else { "a list" };
            items.map_or_else(|| head.to_owned(), |items| format!("{head} of {items}"))
        }
        (other, _) => other.to_owned(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The arguments in short, those that may be left out in brackets: `a b [c]`.
pub(crate) fn signature(schema: &Value) -> String {
    let schema = Schema::new(schema);
    let required = schema.required();
    let names = schema.properties().into_iter().map(|(name, _)| name);
    let shown = names.map(|name| if required.contains(&name) { name.to_owned() } else { format!("[{name}]") });
    shown.collect::<Vec<_>>().join(" ")
}
