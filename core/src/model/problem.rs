//! What is wrong with a value, in words that are the same in every language and on both sides.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use crate::error::shortened;

/// The most problems named in one answer.
pub(crate) const MAX_PROBLEMS: usize = 10;
/// The longest name in an answer, in characters.
const MAX_NAME: usize = 100;
/// The longest of the validator's own texts, which may hold the whole value.
const MAX_TEXT: usize = 300;

/// The problems ([`MAX_PROBLEMS`] at most) in one line; `noun` is what a member is called: `argument`, `result`,
/// `answer`.
pub(crate) fn all<'e>(noun: &str, errors: impl Iterator<Item = ValidationError<'e>>) -> String {
    let problems: Vec<String> = errors.flat_map(|error| describe(noun, &error)).take(MAX_PROBLEMS).collect();
    problems.join("; ")
}

/// `a.b[0]` from the pointer `/a/b/0`.
fn path(pointer: &str) -> String {
    let mut out = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty() {
            out.push_str(&format!("[{part}]"));
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&part);
        }
    }
    out
}

fn shown(value: &Value) -> String {
    shortened(&value.to_string(), 60).into_owned()
}

fn describe(noun: &str, error: &ValidationError<'_>) -> Vec<String> {
    let at = path(error.instance_path().as_str());
    let at = shortened(&at, MAX_NAME);
    let inside = |name: &str| {
        let name = shortened(name, MAX_NAME);
        if at.is_empty() { name.into_owned() } else { format!("{at}.{name}") }
    };
    let here = |text: String| {
        if at.is_empty() { vec![format!("{noun}s: {text}")] } else { vec![format!("{noun} \"{at}\": {text}")] }
    };
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                jsonschema::error::TypeKind::Single(t) => t.to_string(),
                jsonschema::error::TypeKind::Multiple(types) => {
                    types.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(" or ")
                }
            };
            here(format!("expected {expected}, got {}", shown(error.instance())))
        }
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![format!("{noun} \"{}\": missing (required)", inside(name))]
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            unexpected.iter().take(MAX_PROBLEMS).map(|name| format!("{noun} \"{}\": unknown", inside(name))).collect()
        }
        ValidationErrorKind::Enum { options } => {
            here(format!("expected one of {}, got {}", shown(options), shown(error.instance())))
        }
        ValidationErrorKind::Constant { expected_value } => {
            here(format!("expected {}, got {}", shown(expected_value), shown(error.instance())))
        }
        ValidationErrorKind::Minimum { limit } => {
            here(format!("expected at least {limit}, got {}", shown(error.instance())))
        }
        ValidationErrorKind::Maximum { limit } => {
            here(format!("expected at most {limit}, got {}", shown(error.instance())))
        }
        ValidationErrorKind::MinLength { limit } => {
            here(format!("expected at least {limit} characters, got {}", shown(error.instance())))
        }
        ValidationErrorKind::MaxLength { limit } => {
            here(format!("expected at most {limit} characters, got {}", shown(error.instance())))
        }
        ValidationErrorKind::MinItems { limit } => {
            here(format!("expected at least {limit} items, got {}", shown(error.instance())))
        }
        ValidationErrorKind::MaxItems { limit } => {
            here(format!("expected at most {limit} items, got {}", shown(error.instance())))
        }
        ValidationErrorKind::Format { format } => {
            here(format!("expected the format {format}, got {}", shown(error.instance())))
        }
        ValidationErrorKind::Pattern { pattern } => {
            here(format!("expected a match of the pattern {pattern}, got {}", shown(error.instance())))
        }
        _ => here(shortened(&error.to_string(), MAX_TEXT).into_owned()),
    }
}
