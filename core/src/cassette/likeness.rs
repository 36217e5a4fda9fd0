//! Likeness of recorded and live values. A mark of a secret stands for any text.

use serde_json::Value;

const MARK: &str = "<secret-";

/// Returns true if the values are the same; numbers by their value, members in any order.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    first_difference(a, b).is_none()
}

fn is_same_leaf(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a == b || fits(a, b) || fits(b, a),
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

/// Returns true if a text with marks may have been `text`.
fn fits(marked: &str, text: &str) -> bool {
    let Some(parts) = parts(marked) else { return false };
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
    let Some(rest) = text.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else { return false };
    let mut rest = rest;
    parts[1..parts.len() - 1].iter().all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// The parts between marks; `None` without a mark.
fn parts(marked: &str) -> Option<Vec<&str>> {
    let (mut parts, mut rest, mut from) = (Vec::new(), marked, 0);
    while let Some(at) = rest[from..].find(MARK).map(|at| at + from) {
        let digits = rest[at + MARK.len()..].bytes().take_while(u8::is_ascii_digit).count();
        let end = at + MARK.len() + digits;
        if digits > 0 && rest[end..].starts_with('>') {
            parts.push(&rest[..at]);
            rest = &rest[end + 1..];
            from = 0;
        } else {
            from = at + MARK.len();
        }
    }
    if parts.is_empty() {
        return None;
    }
    parts.push(rest);
    Some(parts)
}

/// The first place where two values differ, as a path, and what is there in each.
pub(super) fn first_difference<'a>(
    a: &'a Value,
    b: &'a Value,
) -> Option<(String, Option<&'a Value>, Option<&'a Value>)> {
    let mut found = Vec::new();
    compare(&mut String::new(), Some(a), Some(b), 1, &mut found);
    found.pop()
}

/// Adds the places where two values differ, `most` of them at most.
pub(super) fn compare<'a>(
    path: &mut String,
    a: Option<&'a Value>,
    b: Option<&'a Value>,
    most: usize,
    found: &mut Vec<(String, Option<&'a Value>, Option<&'a Value>)>,
) {
    if found.len() >= most {
        return;
    }
    let length = path.len();
    match (a, b) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let others = b.keys().filter(|name| !a.contains_key(*name));
            for name in a.keys().chain(others) {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
                compare(path, a.get(name), b.get(name), most, found);
                path.truncate(length);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for at in 0..a.len().max(b.len()) {
                path.push_str(&format!("[{at}]"));
                compare(path, a.get(at), b.get(at), most, found);
                path.truncate(length);
            }
        }
        (Some(a), Some(b)) if is_same_leaf(a, b) => {}
        (None, None) => {}
        (a, b) => found.push((path.clone(), a, b)),
    }
}

/// The number of leaves that are the same, and of all.
pub(super) fn score(a: &Value, b: &Value) -> (usize, usize) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let others = b.keys().filter(|name| !a.contains_key(*name)).count();
            a.iter().fold((0, others), |(same, all), (name, value)| {
                let (more, of) = b.get(name).map_or((0, 1), |other| score(value, other));
                (same + more, all + of)
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            let others = a.len().abs_diff(b.len());
            a.iter().zip(b).fold((0, others), |(same, all), (a, b)| {
                let (more, of) = score(a, b);
                (same + more, all + of)
            })
        }
        (a, b) => (usize::from(is_same_leaf(a, b)), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mark_stands_for_any_text() {
        for (marked, text, same) in [
            ("<secret-1>", "anything", true),
            ("Bearer <secret-12>", "Bearer x", true),
            ("Bearer <secret-12>", "Basic x", false),
            ("a <secret-1> b <secret-2> c", "a 1 b 2 c", true),
            ("a <secret-1> b <secret-2> c", "a 1 2 c", false),
            ("<secret-x>", "y", false),
            ("<secret-1><secret-2>", "", true),
        ] {
            assert_eq!(is_same(&json!(marked), &json!(text)), same, "{marked} {text}");
            assert_eq!(is_same(&json!(text), &json!(marked)), same, "{text} {marked}");
        }
    }

    #[test]
    fn differences_have_a_path() {
        let a = json!({"a": 1, "b": {"c": [1, 2]}});
        let b = json!({"b": {"c": [1, 3], "d": 4}, "a": 1.0});
        let (path, left, right) = first_difference(&a, &b).expect("one");
        assert_eq!((path.as_str(), left, right), ("b.c[1]", Some(&json!(2)), Some(&json!(3))));
        assert_eq!(score(&a, &b), (2, 4));
    }
}
