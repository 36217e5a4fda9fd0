//! Expected values: JSON in which some strings and members stand for "whatever fits".
//!
//! | pattern | matches |
//! |---|---|
//! | `"$any"` `"$string"` `"$int"` `"$number"` `"$bool"` `"$object"` `"$array"` | a value of that type |
//! | `"$absent"`, `"$unset"` (member) | the member is missing; is missing or null |
//! | `"$like:GLOB"` | a string; `*` is any run of characters |
//! | `"$capture:NAME"` | anything, remembered |
//! | `"$NAME"` | what was remembered |
//! | `"$$text"` | the string `$text` |
//! | `{"...":true, …}` | an object that may hold more members |
//! | `{"$oneOf":[…]}` `{"$all":[…]}` `{"$not":…}` | one, all, none of the patterns (a missing member is none, too) |
//! | `{"$unordered":[…]}` | an array with these elements in any order |
//! | `{"$contains":[…]}` | an array holding an element for each of these |
//! | `{"$each":…}` | a non-empty array whose elements all match |
//!
//! Numbers are compared by value (`1` is `1.0`), strings and member names exactly.

use crate::Outcome;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Values remembered by `$capture`, by name.
pub type Captures = BTreeMap<String, Value>;

/// Permission for objects to hold members that the pattern does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Every member must be named (unless the pattern holds `"..."`).
    Exact,
    /// Other members are allowed at every depth.
    Subset,
}

/// Compare `got` with `pattern`, remembering captures.
///
/// The error names the path of the first difference.
pub fn check(pattern: &Value, got: &Value, strictness: Strictness, captures: &mut Captures) -> Outcome {
    at("", pattern, got, strictness, captures)
}

fn at(path: &str, pattern: &Value, got: &Value, how: Strictness, captures: &mut Captures) -> Outcome {
    match pattern {
        Value::String(text) if text.starts_with('$') => word(path, text, got, captures),
        Value::Object(members) => match operator(members) {
            Some((name, operand)) => operate(path, name, operand, got, how, captures),
            None => object(path, members, got, how, captures),
        },
        Value::Array(expected) => {
            let Some(elements) = got.as_array() else {
                return differs(path, pattern, got);
            };
            if elements.len() != expected.len() {
                return Err(format!(
                    "{}: expected {} elements, got {}: {}",
                    shown(path),
                    expected.len(),
                    elements.len(),
                    brief(got)
                ));
            }
            for (index, (want, have)) in expected.iter().zip(elements).enumerate() {
                at(&format!("{path}/{index}"), want, have, how, captures)?;
            }
            Ok(())
        }
        Value::Number(_) if equal_numbers(pattern, got) => Ok(()),
        _ if pattern == got => Ok(()),
        _ => differs(path, pattern, got),
    }
}

fn object(path: &str, members: &Map<String, Value>, got: &Value, how: Strictness, captures: &mut Captures) -> Outcome {
    let Some(have) = got.as_object() else {
        return Err(format!("{}: expected an object, got {}", shown(path), brief(got)));
    };
    let open = how == Strictness::Subset || members.contains_key("...");
    for (name, want) in members.iter().filter(|(name, _)| *name != "...") {
        let inner = format!("{path}/{name}");
        let unset = want.as_str() == Some("$unset") && have.get(name).is_none_or(Value::is_null);
        match (unset || want.as_str() == Some("$absent"), have.get(name).filter(|_| !unset)) {
            (true, None) => {}
            (true, Some(value)) => {
                return Err(format!("{inner}: expected to be absent, got {}", brief(value)));
            }
            (false, None) if want.get("$not").is_some() => {}
            (false, None) => return Err(format!("{inner}: missing in {}", brief(got))),
            (false, Some(value)) => at(&inner, want, value, how, captures)?,
        }
    }
    if !open && let Some((name, value)) = have.iter().find(|(name, _)| !members.contains_key(*name)) {
        return Err(format!("{path}/{name}: not expected, got {}", brief(value)));
    }
    Ok(())
}

fn word(path: &str, text: &str, got: &Value, captures: &mut Captures) -> Outcome {
    let fits = match text {
        "$any" => true,
        "$string" => got.is_string(),
        "$int" => got.is_i64() || got.is_u64(),
        "$number" => got.is_number(),
        "$bool" => got.is_boolean(),
        "$object" => got.is_object(),
        "$array" => got.is_array(),
        "$absent" | "$unset" => return Err(format!("{}: expected to be absent, got {}", shown(path), brief(got))),
        _ => {
            if let Some(literal) = text.strip_prefix("$$") {
                got.as_str() == Some(&format!("${literal}"))
            } else if let Some(glob) = text.strip_prefix("$like:") {
                got.as_str().is_some_and(|have| like(glob, have))
            } else if let Some(name) = text.strip_prefix("$capture:") {
                captures.insert(name.to_owned(), got.clone());
                true
            } else {
                let name = &text[1..];
                let Some(known) = captures.get(name) else {
                    return Err(format!("{}: nothing was captured as {name:?}", shown(path)));
                };
                known == got || equal_numbers(known, got)
            }
        }
    };
    if fits { Ok(()) } else { Err(format!("{}: expected {text}, got {}", shown(path), brief(got))) }
}

const OPERATORS: [&str; 6] = ["$oneOf", "$all", "$not", "$unordered", "$contains", "$each"];

fn operator(members: &Map<String, Value>) -> Option<(&'static str, &Value)> {
    if members.len() != 1 {
        return None;
    }
    OPERATORS.into_iter().find_map(|name| members.get(name).map(|operand| (name, operand)))
}

fn operate(path: &str, name: &str, operand: &Value, got: &Value, how: Strictness, captures: &mut Captures) -> Outcome {
    let patterns = operand.as_array().map(Vec::as_slice).unwrap_or_default();
    let elements = || got.as_array().ok_or_else(|| format!("{}: expected an array, got {}", shown(path), brief(got)));
    match name {
        "$oneOf" => {
            let mut reasons = Vec::new();
            for pattern in patterns {
                let mut attempt = captures.clone();
                match at(path, pattern, got, how, &mut attempt) {
                    Ok(()) => {
                        *captures = attempt;
                        return Ok(());
                    }
                    Err(reason) => reasons.push(reason),
                }
            }
            Err(format!("none of {} alternatives: {}", patterns.len(), reasons.join(" | ")))
        }
        "$all" => patterns.iter().try_for_each(|pattern| at(path, pattern, got, how, captures)),
        "$not" => match at(path, operand, got, how, &mut captures.clone()) {
            Ok(()) => Err(format!("{}: must not be {}, got {}", shown(path), brief(operand), brief(got))),
            Err(_) => Ok(()),
        },
        "$unordered" => {
            let elements = elements()?;
            if elements.len() != patterns.len() {
                return Err(format!(
                    "{}: expected {} elements, got {}: {}",
                    shown(path),
                    patterns.len(),
                    elements.len(),
                    brief(got)
                ));
            }
            let mut left: Vec<&Value> = elements.iter().collect();
            for pattern in patterns {
                let place = find(path, pattern, left.iter().copied(), how, captures)
                    .ok_or_else(|| format!("{}: no element like {}", shown(path), brief(pattern)))?;
                left.remove(place);
            }
            Ok(())
        }
        "$contains" => {
            let elements = elements()?;
            for pattern in patterns {
                find(path, pattern, elements.iter(), how, captures)
                    .ok_or_else(|| format!("{}: no element like {} in {}", shown(path), brief(pattern), brief(got)))?;
            }
            Ok(())
        }
        _ => {
            let elements = elements()?;
            if elements.is_empty() {
                return Err(format!("{}: expected elements, got none", shown(path)));
            }
            for (index, element) in elements.iter().enumerate() {
                at(&format!("{path}/{index}"), operand, element, how, captures)?;
            }
            Ok(())
        }
    }
}

fn find<'a>(
    path: &str,
    pattern: &Value,
    elements: impl Iterator<Item = &'a Value>,
    how: Strictness,
    captures: &mut Captures,
) -> Option<usize> {
    for (index, element) in elements.enumerate() {
        let mut attempt = captures.clone();
        if at(path, pattern, element, how, &mut attempt).is_ok() {
            *captures = attempt;
            return Some(index);
        }
    }
    None
}

/// Replace `"$NAME"` by what was captured and `{"$modern":true}` by the modern envelope.
///
/// Strings that start with `$` and name nothing captured are an error; `$$` escapes.
pub fn fill(value: &Value, captures: &Captures) -> Outcome<Value> {
    Ok(match value {
        Value::String(text) => match text.strip_prefix('$') {
            Some(rest) if rest.starts_with('$') => Value::String(rest.to_owned()),
            Some(name) => captures.get(name).cloned().ok_or_else(|| format!("nothing was captured as {name:?}"))?,
            None => value.clone(),
        },
        Value::Array(elements) => {
            elements.iter().map(|element| fill(element, captures)).collect::<Outcome<Vec<_>>>()?.into()
        }
        Value::Object(members) => {
            let mut filled = Map::new();
            if members.contains_key("$modern") {
                filled = modern_meta();
            }
            for (name, member) in members.iter().filter(|(name, _)| *name != "$modern") {
                filled.insert(name.clone(), fill(member, captures)?);
            }
            Value::Object(filled)
        }
        _ => value.clone(),
    })
}

/// Put captured values in place of `${NAME}` (header values).
pub fn fill_text(text: &str, captures: &Captures) -> Outcome<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let end = rest[start..].find('}').ok_or("unclosed ${")? + start;
        let name = &rest[start + 2..end];
        let value = captures.get(name).ok_or_else(|| format!("nothing was captured as {name:?}"))?;
        filled.push_str(&rest[..start]);
        match value {
            Value::String(text) => filled.push_str(text),
            other => filled.push_str(&other.to_string()),
        }
        rest = &rest[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// The newest revision, the only one with a per-request envelope.
pub const MODERN: &str = "2026-07-28";

/// The `_meta` members every modern request carries.
pub fn modern_meta() -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert("io.modelcontextprotocol/protocolVersion".into(), MODERN.into());
    meta.insert(
        "io.modelcontextprotocol/clientInfo".into(),
        serde_json::json!({"name": "contract", "version": "1.0.0"}),
    );
    meta.insert("io.modelcontextprotocol/clientCapabilities".into(), Value::Object(Map::new()));
    meta
}

/// Returns true if `text` fits `glob`, in which `*` stands for any run of characters.
pub fn like(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    true
}

fn equal_numbers(one: &Value, other: &Value) -> bool {
    if !one.is_number() || !other.is_number() {
        return false;
    }
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one == other,
        _ => one.as_f64() == other.as_f64(),
    }
}

fn differs(path: &str, want: &Value, got: &Value) -> Outcome {
    Err(format!("{}: expected {}, got {}", shown(path), brief(want), brief(got)))
}

fn shown(path: &str) -> &str {
    if path.is_empty() { "message" } else { path }
}

/// A value as one line of at most a few hundred characters.
pub fn brief(value: &Value) -> String {
    shorten(&value.to_string())
}

/// Text cut to a few hundred characters.
pub fn shorten(text: &str) -> String {
    const LIMIT: usize = 400;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fits(pattern: Value, got: Value) -> bool {
        check(&pattern, &got, Strictness::Exact, &mut Captures::new()).is_ok()
    }

    #[test]
    fn exact_objects_name_every_member() {
        assert!(fits(json!({"a": 1}), json!({"a": 1.0})));
        assert!(!fits(json!({"a": 1}), json!({"a": 1, "b": 2})));
        assert!(fits(json!({"a": 1, "...": true}), json!({"a": 1, "b": 2})));
        assert!(fits(json!({"b": "$absent"}), json!({})));
        assert!(!fits(json!({"b": "$absent"}), json!({"b": null})));
        assert!(fits(json!({"b": "$unset"}), json!({"b": null})) && fits(json!({"b": "$unset"}), json!({})));
        assert!(
            fits(json!({"b": {"$not": true}}), json!({})) && !fits(json!({"b": {"$not": true}}), json!({"b": true}))
        );
        assert!(!fits(json!({"a": "1"}), json!({"a": 1})));
    }

    #[test]
    fn subset_reaches_every_depth() {
        let got = json!({"a": {"b": 1, "c": 2}, "d": 3});
        let pattern = json!({"a": {"b": 1}});
        assert!(check(&pattern, &got, Strictness::Subset, &mut Captures::new()).is_ok());
        assert!(check(&pattern, &got, Strictness::Exact, &mut Captures::new()).is_err());
    }

    #[test]
    fn arrays_by_content() {
        assert!(fits(json!({"$unordered": [1, "$string"]}), json!(["x", 1])));
        assert!(!fits(json!({"$unordered": [1]}), json!([1, 2])));
        assert!(fits(json!({"$contains": [2]}), json!([1, 2])));
        assert!(fits(json!({"$each": "$int"}), json!([1, 2])));
        assert!(!fits(json!({"$each": "$int"}), json!([])));
        assert!(!fits(json!({"$not": "$int"}), json!(1)));
    }

    #[test]
    fn captures_come_back() {
        let mut captures = Captures::new();
        check(&json!({"c": "$capture:next"}), &json!({"c": "abc"}), Strictness::Exact, &mut captures)
            .expect("captures");
        let sent = fill(&json!({"cursor": "$next", "x": "$$y"}), &captures).expect("fills");
        assert_eq!(sent, json!({"cursor": "abc", "x": "$y"}));
        assert_eq!(fill_text("a ${next}!", &captures).expect("fills"), "a abc!");
        assert!(fill(&json!("$other"), &captures).is_err());
    }

    #[test]
    fn globs() {
        assert!(like("a*c", "abbc") && like("*", "") && like("a", "a") && like("*b*", "abc"));
        assert!(!like("a", "ab") && !like("a*c", "ab") && !like("*b*", "ac"));
    }

    #[test]
    fn modern_envelope_can_be_overridden() {
        let sent = fill(&json!({"$modern": true, "progressToken": 1}), &Captures::new()).expect("fills");
        assert_eq!(sent.as_object().map(Map::len), Some(4));
    }
}
