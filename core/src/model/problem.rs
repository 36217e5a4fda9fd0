//! Descriptions of values that do not fit, in words that are the same in every language and on both sides.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use crate::error::shortened;

/// The most problems named in one answer.
pub(crate) const MAX_PROBLEMS: usize = 10;
/// The longest name in an answer, in characters.
const MAX_NAME: usize = 100;
/// The longest pattern in an answer: what is longer says nothing to a reader.
const MAX_PATTERN: usize = 80;
/// The longest of the validator's own texts, which may hold the whole value.
const MAX_TEXT: usize = 300;

/// The problems ([`MAX_PROBLEMS`] at most) in one line; `noun` is what a member is called: `argument`, `result`,
/// `answer`.
///
/// `source` is the schema that they are of.
pub(crate) fn all<'e>(noun: &str, source: &Value, errors: impl Iterator<Item = ValidationError<'e>>) -> String {
    let noun = Noun { text: noun, source };
    let problems: Vec<String> = errors.flat_map(|error| describe(noun, &error)).take(MAX_PROBLEMS).collect();
    problems.join("; ")
}

/// As [`all`], where only the place of the value and that of the rule are known.
pub(crate) fn plain(noun: &str, at: &str, place: &str) -> String {
    let (at, place) = (path(at), shortened(place, 200));
    if at.is_empty() {
        format!("{}: no fit for {place:?} of the schema", whole(noun))
    } else {
        format!("{noun} \"{}\": it does not fit {place:?} of the schema", shortened(&at, MAX_NAME))
    }
}

/// The value of which members are called `noun`: the arguments, but one result.
pub(crate) fn whole(noun: &str) -> String {
    if noun == "result" { noun.to_owned() } else { format!("{noun}s") }
}

/// Name of a member, and the schema that it is checked against.
#[derive(Clone, Copy)]
struct Noun<'a> {
    text: &'a str,
    source: &'a Value,
}

impl fmt::Display for Noun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// Describes the text that should have matched a pattern: by the format beside it, which says more to a reader, if
/// there is one.
fn unmatched(source: &Value, error: &ValidationError<'_>, pattern: &str) -> String {
    let beside = error.schema_path().as_str().rsplit_once('/').and_then(|(above, _)| source.pointer(above));
    match beside.and_then(|schema| schema.get("format")).and_then(Value::as_str) {
        Some("date-time") => "an ISO datetime".to_owned(),
        Some("date") => "an ISO date".to_owned(),
        Some("time") => "an ISO time".to_owned(),
        Some("duration") => "an ISO duration".to_owned(),
        Some("email") => "an email address".to_owned(),
        Some("uuid") => "a UUID".to_owned(),
        Some("uri") => "a URI".to_owned(),
        Some(format) => format!("the format {}", shortened(format, 60)),
        None => format!("a match of the pattern {}", shortened(pattern, MAX_PATTERN)),
    }
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
    let mut beginning = Beginning(Vec::new());
    // Its only error is that there is enough.
    let _ = serde_json::to_writer(&mut beginning, value);
    shortened(&String::from_utf8_lossy(&beginning.0), MAX_SHOWN).into_owned()
}

/// The most that is shown of a value, in characters.
const MAX_SHOWN: usize = 60;

/// Beginning of a text, as long as it is shown.
struct Beginning(Vec<u8>);

impl std::io::Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // No character has more than four bytes: cut off is one that is not shown.
        let left = (4 * (MAX_SHOWN + 1)).saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(left)]);
        if bytes.len() > left { Err(std::io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn describe(noun: Noun<'_>, error: &ValidationError<'_>) -> Vec<String> {
    let at = path(error.instance_path().as_str());
    let at = shortened(&at, MAX_NAME);
    let inside = |name: &str| {
        let name = shortened(name, MAX_NAME);
        if at.is_empty() { name.into_owned() } else { format!("{at}.{name}") }
    };
    let here = |text: String| {
        if at.is_empty() {
            vec![format!("{}: {text}", whole(noun.text))]
        } else {
            vec![format!("{noun} \"{at}\": {text}")]
        }
    };
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(t) => t.to_string(),
                TypeKind::Multiple(types) => types.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(" or "),
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
            let expected = unmatched(noun.source, error, pattern);
            here(format!("expected {expected}, got {}", shown(error.instance())))
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            match described(noun, error, context) {
                Described::Here(expected) => here(format!("expected {expected}, got {}", shown(error.instance()))),
                Described::Whole(problems) => problems,
            }
        }
        ValidationErrorKind::Contains => here(contained(error)),
        _ => here(shortened(&error.to_string(), MAX_TEXT).into_owned()),
    }
}

/// Describes a wrong number of items that `contains` asks for. With `maxContains` alone the validator says the same of
/// too many and of none.
fn contained(error: &ValidationError<'_>) -> String {
    let got = shown(error.instance());
    match error.schema_path().as_str().rsplit('/').next() {
        Some("maxContains") if error.instance().as_array().is_some_and(|items| items.len() > 1) => {
            format!("too many items are what \"contains\" asks for (maxContains), or none is, got {got}")
        }
        Some("minContains") => format!("too few items are what \"contains\" asks for (minContains), got {got}"),
        _ => format!("no item is what \"contains\" asks for, got {got}"),
    }
}

/// Errors of one alternative.
type Alternative<'e> = Vec<&'e ValidationError<'static>>;

/// Description of a value that fits none of several alternatives.
enum Described {
    /// Expectation of the value itself.
    Here(String),
    /// Whole problems, of what is in it.
    Whole(Vec<String>),
}

fn described(noun: Noun<'_>, union: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) -> Described {
    let at = union.instance_path().as_str();
    let mut all = Vec::new();
    flatten(at, context, &mut all);
    // A caller that may leave a value out has not meant to.
    if all.iter().any(|one| !is_null(at, one)) {
        all.retain(|one| !is_null(at, one));
    }
    // Where the kind of value is right for some, those were meant.
    let is_other_kind = |one: &Alternative<'_>| {
        let kinds = |e: &&ValidationError<'_>| matches!(e.kind(), ValidationErrorKind::Type { .. });
        one.iter().filter(|e| e.instance_path().as_str() == at).any(kinds)
    };
    if all.iter().any(|one| !is_other_kind(one)) {
        all.retain(|one| !is_other_kind(one));
    }
    if let [one] = &*all {
        return Described::Whole(problems(noun, one));
    }
    if let Some(expected) = all.iter().map(|one| expected(at, one)).collect::<Option<Vec<_>>>() {
        return Described::Here(alternatives(expected));
    }
    if let Some(found) = by_tag(noun, at, &all) {
        return Described::Whole(found);
    }
    let mut each: Vec<Vec<String>> = all.iter().map(|one| problems(noun, one)).collect();
    let shared = |problem: &String| each.iter().all(|one| one.contains(problem));
    let common: Vec<String> = each.first().into_iter().flatten().filter(|p| shared(p)).cloned().collect();
    if !common.is_empty() {
        return Described::Whole(common);
    }
    each.sort_by_key(Vec::len);
    let texts: Vec<String> = each.iter().map(|one| one.join(", ")).collect();
    Described::Whole(vec![shortened(&texts.join(", or "), MAX_TEXT).into_owned()])
}

/// The alternatives, with those of alternatives that are themselves nothing but a choice.
fn flatten<'e>(at: &str, context: &'e [Vec<ValidationError<'static>>], out: &mut Vec<Alternative<'e>>) {
    for one in context {
        match &**one {
            [inner] if inner.instance_path().as_str() == at => match inner.kind() {
                ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
                    flatten(at, context, out);
                }
                _ => out.push(vec![inner]),
            },
            errors => out.push(errors.iter().collect()),
        }
    }
}

fn problems(noun: Noun<'_>, one: &Alternative<'_>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for problem in one.iter().flat_map(|error| describe(noun, error)) {
        if !found.contains(&problem) {
            found.push(problem);
        }
    }
    found
}

fn is_null(at: &str, one: &Alternative<'_>) -> bool {
    one.iter().any(|error| {
        error.instance_path().as_str() == at
            && match error.kind() {
                ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Null) } => true,
                ValidationErrorKind::Type { kind: TypeKind::Multiple(types) } => {
                    types.iter().all(|one| one == JsonType::Null)
                }
                ValidationErrorKind::Constant { expected_value } => expected_value.is_null(),
                ValidationErrorKind::Enum { options } => **options == Value::Array(vec![Value::Null]),
                _ => false,
            }
    })
}

/// Expectation of an alternative that wants another kind of value, or another value, altogether.
#[derive(PartialEq)]
enum Expected {
    Types(Vec<String>),
    Values(Vec<Value>),
}

fn expected(at: &str, one: &Alternative<'_>) -> Option<Expected> {
    let here = || one.iter().filter(|error| error.instance_path().as_str() == at);
    // The values say more than their type.
    let values = here().find_map(|error| match error.kind() {
        ValidationErrorKind::Enum { options } => Some(options.as_array().cloned().unwrap_or_default()),
        ValidationErrorKind::Constant { expected_value } => Some(vec![Value::clone(expected_value)]),
        _ => None,
    });
    let types = || {
        here().find_map(|error| match error.kind() {
            ValidationErrorKind::Type { kind: TypeKind::Single(one) } => Some(vec![one.to_string()]),
            ValidationErrorKind::Type { kind: TypeKind::Multiple(types) } => {
                let all: Vec<JsonType> = types.iter().collect();
                let meant = |one: &&JsonType| all.len() == 1 || **one != JsonType::Null;
                Some(all.iter().filter(meant).map(|one| one.to_string()).collect())
            }
            _ => None,
        })
    };
    values.map(Expected::Values).or_else(|| types().map(Expected::Types))
}

/// `integer or array or one of ["a","b"]`
fn alternatives(expected: Vec<Expected>) -> String {
    let (mut types, mut values): (Vec<String>, Vec<Value>) = Default::default();
    for one in expected {
        match one {
            Expected::Types(more) => more.into_iter().for_each(|one| add(&mut types, one)),
            Expected::Values(more) => more.into_iter().for_each(|one| add(&mut values, one)),
        }
    }
    match &*values {
        [] => {}
        [one] => types.push(shown(one)),
        _ => types.push(format!("one of {}", shown(&Value::Array(values)))),
    }
    types.join(" or ")
}

fn add<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}

/// Alternatives that are told apart by a member with one value each: those that the value names were meant, and if it
/// names none, that is the problem.
fn by_tag(noun: Noun<'_>, at: &str, all: &[Alternative<'_>]) -> Option<Vec<String>> {
    let tag_of = |one: &Alternative<'_>| {
        one.iter().find_map(|error| {
            let name = error.instance_path().as_str().strip_prefix(at)?.strip_prefix('/')?.to_owned();
            let values = match error.kind() {
                ValidationErrorKind::Enum { options } => options.as_array().cloned()?,
                ValidationErrorKind::Constant { expected_value } => vec![Value::clone(expected_value)],
                _ => return None,
            };
            (!name.contains('/')).then(|| (name, values, error.instance().clone()))
        })
    };
    let tags: Vec<_> = all.iter().map(tag_of).collect();
    let (name, _, got) = tags.iter().flatten().next()?;
    if tags.iter().flatten().any(|(other, ..)| other != name) {
        return None;
    }
    let mut meant = all.iter().zip(&tags).filter(|(_, tag)| tag.is_none()).map(|(one, _)| one);
    match (meant.next(), meant.next()) {
        (Some(one), None) => Some(problems(noun, one)),
        (Some(_), Some(_)) => None,
        (None, _) => {
            let values = tags.iter().flatten().map(|(_, values, _)| Expected::Values(values.clone())).collect();
            let at = path(&format!("{at}/{name}"));
            let (at, got) = (shortened(&at, MAX_NAME), shown(got));
            Some(vec![format!("{noun} \"{at}\": expected {}, got {got}", alternatives(values))])
        }
    }
}
