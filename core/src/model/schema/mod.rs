//! JSON Schema: bounded when it is read, checked at every call, errors in words that are the same in every language.
//!
//! A value is judged by `judge`, which counts its steps as it takes them. The library finds the words for what is wrong,
//! where that takes it no longer than it should.

mod judge;
mod pattern;
mod quick;
mod reference;
mod rules;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;
use serde_json::value::RawValue;

use self::judge::{Run, Stop, is_schema};
use self::quick::Quick;
pub(crate) use self::reference::has_names;
use self::rules::Rules;
use super::problem;
use crate::error::{Error, Result, shortened};

/// The deepest nesting of a schema.
const MAX_DEPTH: usize = 64;
/// The most subschemas (objects) in a schema.
const MAX_SUBSCHEMAS: usize = 10_000;
/// The longest text of a peer's schema, in bytes.
const MAX_FOREIGN: usize = 1 << 20;
/// The most steps of one check of what a peer has written on both sides.
const MAX_STEPS: usize = 3_000_000;
/// Steps that every check of a peer's value may take, some 10 ms, those for each byte of its text, and the most.
const FREE_STEPS: usize = 100_000;
const STEPS_FOR_EACH_BYTE: usize = 20;
const MAX_OWN_STEPS: usize = 6_000_000;
/// The steps of a thorough check up to which the library finds the words: it looks at things several times.
const MAX_WORDED: usize = 20_000;
/// The same for one's own schema. A value with more members has plain words: naming each of them takes its memory again.
const MAX_OWN_WORDED: usize = 400_000;
/// The largest schemas of peers that the library reads for that, and those of one's own.
const MAX_WORDED_NODES: usize = 500;
/// Steps that a check may take where it is asked for; those that take more are worth a thread of their own.
const INLINE_STEPS: usize = 20_000;
/// The longest text that is read where it is asked for.
const INLINE_BYTES: usize = 64 << 10;

/// A schema that values can be checked against.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The library's, made when it is needed for the first time: most tools of a server are never called.
    compiled: OnceLock<Result<Validator>>,
    /// The schema in a form that says yes quickly, when it is simple enough for that.
    quick: Option<Quick>,
    /// Rules that values are judged by. None for a plain schema, whose check takes no longer than the value is long.
    rules: Option<Rules>,
    /// True if the library asserts something that the rules do not: formats, in old dialects.
    has_formats: bool,
}

/// A check of what a peer has written on both sides that did not say yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The problems (ten at most) in one line, and the JSON Pointer of the first, which is empty for the value itself.
    Unfit(String, String),
    /// It takes more steps than there may be.
    TooMuch(String),
    /// It has to be done where it may take long.
    Long,
    /// Nobody waits for it.
    Left,
}

/// Effort that a check may take.
#[derive(Debug, Clone)]
pub(crate) enum Effort {
    /// Next to nothing.
    Inline,
    /// All there may be, until this is set.
    Full(Arc<AtomicBool>),
}

impl Schema {
    /// Checks the schema's bounds, dialect and references.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) saying where and why.
    pub(crate) fn new(what: &str, source: &Value) -> Result<Self> {
        Self::read(source, false).map_err(|why| Error::misuse(format!("{what}: {why}")))
    }

    /// As [`new`](Self::new), of a peer's schema.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn foreign(what: &str, text: &str) -> Result<(Value, Self)> {
        let misuse = |why: String| Error::misuse(format!("{what}: {why}"));
        if text.len() > MAX_FOREIGN {
            return Err(misuse(format!("schema of more than {MAX_FOREIGN} bytes")));
        }
        let source: Value = serde_json::from_str(text).map_err(|e| misuse(e.to_string()))?;
        let schema = Self::read(&source, true).map_err(misuse)?;
        Ok((source, schema))
    }

    /// Returns true if reading a peer's schema is done so quickly that it needs no thread of its own.
    pub(crate) fn is_read_quickly(text: &str) -> bool {
        // A name may be written with escapes.
        let has = |part: &[u8]| memchr::memmem::find(text.as_bytes(), part).is_some();
        text.len() <= INLINE_BYTES / 4 && !has(b"attern") && !has(b"\\u")
    }

    fn read(source: &Value, is_foreign: bool) -> Result<Self, String> {
        let mut subschemas = 0;
        bounds(source, &mut Vec::new(), &mut subschemas)?;
        if let Some(dialect) = source.get("$schema") {
            let name = dialect.as_str().unwrap_or_default();
            if draft(name).is_none() {
                let dialect = dialect.to_string();
                let dialect = shortened(&dialect, 100);
                return Err(format!(
                    "\"$schema\": dialect {dialect} is not supported, use \"https://json-schema.org/draft/2020-12/schema\""
                ));
            }
        }
        let mut schema = Self { compiled: OnceLock::new(), quick: Quick::new(source), rules: None, has_formats: false };
        if is_foreign || !is_plain(source) {
            let draft = dialect(source);
            let normal = reference::rewritten(source);
            is_schema(draft, &normal).map_err(|why| format!("not a valid JSON Schema: {why}"))?;
            schema.rules = Some(Rules::read(source, draft, is_foreign, MAX_SUBSCHEMAS)?);
            schema.has_formats = !is_foreign && reference::year(draft) <= 7 && asserts_formats(source);
        }
        Ok(schema)
    }

    fn compiled(&self, source: &Value) -> Result<&Validator> {
        let cache = self.rules.as_ref().map_or(64 << 10, |rules| rules.cache);
        let built = self.compiled.get_or_init(|| {
            jsonschema::options()
                .with_draft(dialect(source))
                .with_retriever(NoNetwork)
                .with_pattern_options(
                    PatternOptions::fancy_regex().backtrack_limit(10_000).size_limit(1 << 20).dfa_size_limit(cache),
                )
                .build(&reference::rewritten(source))
                .map_err(|e| Error::misuse(format!("not a valid JSON Schema: {e}")))
        });
        built.as_ref().map_err(Clone::clone)
    }

    /// Checks a value's text. `source` finds what this was made of, which its owner has anyway, when it is needed;
    /// `noun` is what a member is called: `argument` or `result`.
    ///
    /// # Errors
    /// The problems (ten at most) in one line.
    pub(crate) fn check_text<'a>(
        &self,
        source: impl FnOnce() -> &'a Value,
        noun: &str,
        text: &str,
    ) -> Result<(), String> {
        if self.quick.as_ref().is_some_and(|quick| quick.accepts(text)) {
            return Ok(());
        }
        let value: Value = serde_json::from_str(text).map_err(|e| unreadable(noun, text, &e))?;
        self.check(source(), noun, &value, text.len())
    }

    /// As [`check_text`](Self::check_text), for a schema and a value that a peer has written. A check that cannot be
    /// done in time, such as that of a pattern that looks back, finds no problem.
    ///
    /// # Errors
    /// The reason why it does not say yes.
    pub(crate) fn check_foreign(&self, source: &Value, noun: &str, text: &str, effort: &Effort) -> Result<(), Wrong> {
        if self.quick.as_ref().is_some_and(|quick| quick.accepts(text)) {
            return Ok(());
        }
        let Some(rules) = &self.rules else { return Ok(()) };
        let (steps, stop) = match effort {
            Effort::Inline if text.len() > INLINE_BYTES => return Err(Wrong::Long),
            Effort::Inline => (INLINE_STEPS, None),
            Effort::Full(stop) => (MAX_STEPS, Some(stop.clone())),
        };
        let whole = |why: String| Wrong::Unfit(why, String::new());
        let value: Value = serde_json::from_str(text).map_err(|e| whole(unreadable(noun, text, &e)))?;
        let mut run = Run::new(rules, steps).until(stop.clone());
        match (run.judge(&value), effort) {
            (Ok(true), _) => Ok(()),
            // Finding the words takes longer.
            (Ok(false), Effort::Inline) => Err(Wrong::Long),
            (Ok(false), Effort::Full(_)) => {
                let (why, at) = self.words(source, rules, noun, &value, stop);
                Err(Wrong::Unfit(why, at))
            }
            (Err(Stop::Steps(_)), Effort::Inline) => Err(Wrong::Long),
            (Err(Stop::Steps(place)), Effort::Full(_)) => Err(Wrong::TooMuch(format!(
                "checking it takes more than {MAX_STEPS} steps, most of them at {:?} of the schema",
                shortened(&place, 200)
            ))),
            (Err(Stop::Left), _) => Err(Wrong::Left),
            (Err(Stop::Deep(_) | Stop::Pattern(_)), _) => Ok(()),
        }
    }

    /// Describes the errors of a value that does not fit, each with its place.
    fn words(
        &self,
        source: &Value,
        rules: &Rules,
        noun: &str,
        value: &Value,
        stop: Option<Arc<AtomicBool>>,
    ) -> (String, String) {
        if self.is_worded(rules, MAX_WORDED, value)
            && rules.nodes.len() <= MAX_WORDED_NODES
            && let Ok(validator) = self.compiled(source)
            && let Some(first) = validator.iter_errors(value).next()
        {
            let at = first.instance_path().as_str().to_owned();
            return (problem::all(noun, source, validator.iter_errors(value)), at);
        }
        let mut run = Run::new(rules, MAX_STEPS).until(stop).explaining();
        let judged = run.judge(value);
        match run.problem().filter(|_| judged == Ok(false)) {
            Some(found) => (problem::plain(noun, &found.at, &found.place), found.at),
            None => (format!("{}: no fit for the schema", problem::whole(noun)), String::new()),
        }
    }

    /// Returns true if the library finds the words in time.
    fn is_worded(&self, rules: &Rules, steps: usize, value: &Value) -> bool {
        // A rule that takes the rest has the library look at everything beside it again.
        let steps = match (rules.tracking, rules.ways) {
            (0, _) => steps,
            (1..=4, 0..=1_000) => steps / 20,
            _ => return false,
        };
        Run::new(rules, steps).thorough().judge(value).is_ok()
    }

    /// `length` of the value's text: a value that is short and takes long is not checked.
    fn check(&self, source: &Value, noun: &str, value: &Value, length: usize) -> Result<(), String> {
        let library = || -> Result<(), String> {
            let validator = self.compiled(source).map_err(|e| e.message().to_owned())?;
            if validator.is_valid(value) {
                return Ok(());
            }
            let is_told = self.rules.is_some() || {
                let rules = Rules::read(source, dialect(source), false, MAX_SUBSCHEMAS);
                rules.is_ok_and(|rules| Run::new(&rules, usize::MAX).thorough().judge(value).is_ok())
            };
            if is_told {
                return Err(problem::all(noun, source, validator.iter_errors(value)));
            }
            // Each of them has the whole way to its place, so only the first is told.
            Err(problem::all(noun, source, validator.validate(value).err().into_iter()))
        };
        let Some(rules) = &self.rules else { return library() };
        let most = FREE_STEPS.saturating_add(length.saturating_mul(STEPS_FOR_EACH_BYTE)).min(MAX_OWN_STEPS);
        let mut run = Run::new(rules, most);
        match run.judge(value) {
            Ok(true) if !self.has_formats => Ok(()),
            Ok(true) => library(),
            Ok(false) if self.is_worded(rules, MAX_WORDED.max(most / 5).min(MAX_OWN_WORDED), value) => {
                library().and_then(|()| Err(self.words(source, rules, noun, value, None).0))
            }
            Ok(false) => Err(self.words(source, rules, noun, value, None).0),
            Err(Stop::Steps(place)) => Err(format!(
                "{}: checking against the schema takes too many steps, more than {most}, most of them at {:?}",
                problem::whole(noun),
                shortened(&place, 200)
            )),
            Err(Stop::Deep(place)) => Err(format!(
                "{}: checking goes too deep at {:?} of the schema",
                problem::whole(noun),
                shortened(&place, 200)
            )),
            Err(Stop::Pattern(place)) => Err(format!(
                "{}: matching the pattern at {:?} takes too many steps",
                problem::whole(noun),
                shortened(&place, 200)
            )),
            Err(Stop::Left) => Err(format!("{}: nobody waits for it", problem::whole(noun))),
        }
    }
}

/// A schema that a peer has written, for who looks at it without calling anything: read and checked within bounds.
pub struct PeerSchema {
    source: Value,
    schema: Schema,
}

impl PeerSchema {
    /// Reads a schema.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) saying where it is none, or over a bound.
    pub fn read(text: &str) -> Result<Self> {
        let (source, schema) = Schema::foreign("schema", text)?;
        Ok(Self { source, schema })
    }

    /// Checks the text of a value. A check that cannot be done within its bounds finds nothing.
    ///
    /// # Errors
    /// [`PeerMisbehaved`](crate::ErrorKind::PeerMisbehaved) with the problems, ten at most, in one line.
    pub fn check(&self, text: &str) -> Result<()> {
        let effort = Effort::Full(Arc::default());
        match self.schema.check_foreign(&self.source, "result", text, &effort) {
            Err(Wrong::Unfit(why, _)) => Err(Error::new(crate::ErrorKind::PeerMisbehaved, why)),
            Ok(()) | Err(Wrong::TooMuch(_) | Wrong::Long | Wrong::Left) => Ok(()),
        }
    }
}

/// The schema that a reference in `root` leads to, such as `#/$defs/Line%20Item`.
pub(crate) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    reference::target(root, reference)
}

/// Returns true if there is anything that old dialects assert and the rules do not.
fn asserts_formats(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| {
            (value.is_string() && matches!(key.as_str(), "format" | "contentEncoding" | "contentMediaType"))
                || asserts_formats(value)
        }),
        Value::Array(items) => items.iter().any(asserts_formats),
        _ => false,
    }
}

fn dialect(source: &Value) -> Draft {
    source.get("$schema").and_then(Value::as_str).and_then(draft).unwrap_or(Draft::Draft202012)
}

/// JSON that no value can hold, such as `1e400`: the member that it is in, and why.
pub(crate) fn unreadable(noun: &str, text: &str, error: &serde_json::Error) -> String {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    let named = members.iter().find_map(|(name, value)| {
        let why = serde_json::from_str::<Value>(value.get()).err()?.to_string();
        let why = why.split(" at line ").next().unwrap_or_default().to_owned();
        Some(format!("{noun} \"{}\": {why}, got {}", shortened(name, 100), shortened(value.get(), 60)))
    });
    named.unwrap_or_else(|| format!("{}: {error}", problem::whole(noun)))
}

struct NoNetwork;

impl jsonschema::Retrieve for NoNetwork {
    fn retrieve(
        &self,
        uri: &jsonschema::Uri<String>,
    ) -> std::result::Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("\"$ref\" to {uri}: references outside the schema are not followed").into())
    }
}

fn draft(name: &str) -> Option<Draft> {
    match name.trim_end_matches('#') {
        "https://json-schema.org/draft/2020-12/schema" => Some(Draft::Draft202012),
        "https://json-schema.org/draft/2019-09/schema" => Some(Draft::Draft201909),
        "http://json-schema.org/draft-07/schema" | "https://json-schema.org/draft-07/schema" => Some(Draft::Draft7),
        "http://json-schema.org/draft-06/schema" => Some(Draft::Draft6),
        "http://json-schema.org/draft-04/schema" => Some(Draft::Draft4),
        _ => None,
    }
}

/// The nesting and the number of subschemas, with the place that is over a bound.
fn bounds<'a>(value: &'a Value, path: &mut Vec<Cow<'a, str>>, subschemas: &mut usize) -> Result<(), String> {
    if path.len() > MAX_DEPTH {
        return Err(format!("{}: schema is nested deeper than {MAX_DEPTH} levels", place(path)));
    }
    match value {
        Value::Object(members) => {
            *subschemas += 1;
            if *subschemas > MAX_SUBSCHEMAS {
                return Err(format!("{}: schema has more than {MAX_SUBSCHEMAS} subschemas", place(path)));
            }
            for (name, inner) in members {
                path.push(reference::escaped(name));
                bounds(inner, path, subschemas)?;
                path.pop();
            }
        }
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                path.push(at.to_string().into());
                bounds(inner, path, subschemas)?;
                path.pop();
            }
        }
        _ => {}
    }
    Ok(())
}

fn place(path: &[Cow<'_, str>]) -> String {
    let pointer: String = path.iter().flat_map(|name| ["/", &**name]).collect();
    format!("{:?}", shortened(&pointer, 200))
}

/// Returns true if a schema uses only keywords whose values this function has checked itself.
fn is_plain(schema: &Value) -> bool {
    const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "object", "array", "null"];
    let Value::Object(members) = schema else {
        return schema.is_boolean();
    };
    members.iter().all(|(key, value)| match key.as_str() {
        "type" => value.as_str().is_some_and(|t| TYPES.contains(&t)),
        "properties" => value.as_object().is_some_and(|p| p.values().all(is_plain)),
        "required" => value.as_array().is_some_and(|r| r.iter().all(Value::is_string)),
        "items" | "additionalProperties" => is_plain(value),
        "title" | "description" | "format" | "$schema" => value.is_string(),
        "minimum" | "maximum" => value.is_number(),
        "default" | "examples" => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::problem::MAX_PROBLEMS;
    use serde_json::json;

    fn check(source: Value, value: Value) -> String {
        let schema = Schema::new("schema", &source).expect("schema");
        let text = schema.check_text(|| &source, "argument", &value.to_string());
        assert_eq!(
            text,
            schema.check(&source, "argument", &value, value.to_string().len()),
            "the quick way says the same"
        );
        text.err().unwrap_or_default()
    }

    #[test]
    fn problems_name_the_argument_and_the_expectation() {
        let add = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                         "required": ["a", "b"], "additionalProperties": false});
        assert_eq!(check(add.clone(), json!({"a": "x", "b": 2})), r#"argument "a": expected integer, got "x""#);
        assert_eq!(check(add.clone(), json!({"a": 1})), r#"argument "b": missing (required)"#);
        assert_eq!(check(add.clone(), json!({"a": 1, "b": 2, "c": 3})), r#"argument "c": unknown"#);
        assert_eq!(check(add, json!({"a": 1, "b": 2})), "");
        let nested = json!({"type": "object", "properties": {"p": {"type": "array", "items": {"type": "object",
            "properties": {"x": {"enum": [1, 2]}}}}}});
        assert_eq!(check(nested, json!({"p": [{"x": 3}]})), r#"argument "p[0].x": expected one of [1,2], got 3"#);
        let union = json!({"properties": {"a": {"type": ["string", "null"]}}});
        assert!(check(union, json!({"a": 1})).contains("or"), "both types are named");
    }

    #[test]
    fn too_many_is_not_called_none() {
        let of = |bounds: Value, items: Value| {
            let mut schema = json!({"type": "array", "contains": {"const": 1}});
            schema.as_object_mut().expect("an object").extend(bounds.as_object().expect("an object").clone());
            check(json!({"properties": {"a": schema}}), json!({"a": items}))
        };
        let text = |what: &str, got: &str| format!("argument \"a\": {what}, got {got}");
        let none = "no item is what \"contains\" asks for";
        let many = "too many items are what \"contains\" asks for (maxContains), or none is";
        assert_eq!(of(json!({"maxContains": 1}), json!([1, 1])), text(many, "[1,1]"));
        assert_eq!(of(json!({"minContains": 1, "maxContains": 1}), json!([1, 1])), text(many, "[1,1]"));
        assert_eq!(of(json!({"maxContains": 1}), json!([2])), text(none, "[2]"));
        assert_eq!(of(json!({}), json!([2, 3])), text(none, "[2,3]"));
        let few = "too few items are what \"contains\" asks for (minContains)";
        assert_eq!(of(json!({"minContains": 2}), json!([1])), text(few, "[1]"));
        assert_eq!(of(json!({"minContains": 1, "maxContains": 1}), json!([])), text(few, "[]"));
    }

    #[test]
    fn of_alternatives_the_one_that_was_meant_is_described() {
        let property = |schema: Value| {
            let defs = json!({"P": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
                "E": {"enum": ["red", "blue"], "type": "string"}});
            move |value: Value| {
                let whole = json!({"$defs": defs.clone(), "type": "object", "properties": {"a": schema.clone()}});
                check(whole, json!({"a": value}))
            }
        };
        let none = json!({"type": "null"});
        let either = property(json!({"anyOf": [{"type": "integer"}, none]}));
        assert_eq!(either(json!("x")), r#"argument "a": expected integer, got "x""#);
        let bounded = property(json!({"anyOf": [none, {"type": "integer", "minimum": 1}]}));
        assert_eq!(bounded(json!(0)), r#"argument "a": expected at least 1, got 0"#);
        let object = property(json!({"anyOf": [{"$ref": "#/$defs/P"}, none]}));
        assert_eq!(object(json!({"x": "a"})), r#"argument "a.x": expected integer, got "a""#);
        assert_eq!(object(json!({})), r#"argument "a.x": missing (required)"#);
        assert_eq!(object(json!(1)), r#"argument "a": expected object, got 1"#);
        let nothing = property(json!({"anyOf": [{"type": ["null"]}, {"type": ["null"]}]}));
        assert_eq!(nothing(json!(1)), r#"argument "a": expected null, got 1"#);
        let choice = property(json!({"oneOf": [{"$ref": "#/$defs/E"}, {"const": null}]}));
        assert_eq!(choice(json!("x")), r#"argument "a": expected one of ["red","blue"], got "x""#);
        let list = property(json!({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}));
        assert_eq!(list(json!("x")), r#"argument "a": expected integer or array, got "x""#);
        assert_eq!(list(json!([1, "x"])), r#"argument "a[1]": expected integer, got "x""#);
        let deep = property(json!({"anyOf": [{"anyOf": [{"type": "boolean"}, {"$ref": "#/$defs/E"}]}, none]}));
        assert_eq!(deep(json!({})), r#"argument "a": expected boolean or one of ["red","blue"], got {}"#);
        let many = property(json!({"anyOf": [{"const": "on"}, {"enum": ["off", 1]}, {"const": "on"}]}));
        assert_eq!(many(json!("x")), r#"argument "a": expected one of ["on","off",1], got "x""#);
    }

    #[test]
    fn what_is_short_and_takes_long_is_not_checked() {
        let operation =
            |name: &str| json!({"type": "object", "properties": {"arg": {"$ref": "#/$defs/E"}, "op": {"const": name}}});
        let source = json!({
            "$defs": {"E": {"anyOf": [operation("not"), operation("neg"), {"type": "integer"}]}},
            "properties": {"e": {"$ref": "#/$defs/E"}},
        });
        let nested = |depth: usize, leaf: Value| (0..depth).fold(leaf, |arg, _| json!({"arg": arg, "op": "not"}));
        assert_eq!(check(source.clone(), json!({"e": nested(4, json!(1))})), "");
        assert_eq!(check(source.clone(), json!({"e": nested(40, json!(1))})), "", "the first alternative fits");
        assert!(check(source.clone(), json!({"e": nested(2, json!("x"))})).contains("argument \"e"));
        let much = check(source.clone(), json!({"e": nested(12, json!("x"))}));
        assert!(much.starts_with("argument \"e") && much.contains("of the schema"), "{much}");
        let too_much = check(source, json!({"e": nested(40, json!("x"))}));
        assert!(too_much.contains("takes too many steps"), "{too_much}");
        // A long list is in proportion.
        let list = json!({"properties": {"l": {"items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}});
        let mut items = vec![json!(1); 50_000];
        assert_eq!(check(list.clone(), json!({"l": items})), "");
        items[40_000] = json!("x");
        assert!(check(list, json!({"l": items})).contains("l[40000]"));
    }

    #[test]
    fn alternatives_with_a_tag_are_told_apart_by_it() {
        let one = |kind: &str, member: &str| {
            json!({"type": "object", "properties": {"kind": {"const": kind}, member: {"type": "integer"}},
                "required": ["kind", member]})
        };
        let shape = json!({"properties": {"s": {"oneOf": [one("circle", "radius"), one("square", "side")]}}});
        let said = |value: Value| check(shape.clone(), json!({"s": value}));
        let expected = r#"argument "s.kind": expected one of ["circle","square"], got "line""#;
        assert_eq!(said(json!({"kind": "line", "side": 1})), expected);
        assert_eq!(said(json!({"kind": "square", "side": "x"})), r#"argument "s.side": expected integer, got "x""#);
        assert_eq!(said(json!({"kind": "circle"})), r#"argument "s.radius": missing (required)"#);
        assert_eq!(said(json!({})), r#"argument "s.kind": missing (required)"#);
        assert_eq!(said(json!("x")), r#"argument "s": expected object, got "x""#);
        // Without a tag, each says what it wants.
        let free = json!({"anyOf": [{"required": ["x"]}, {"required": ["y", "z"]}]});
        let expected = r#"argument "x": missing (required), or argument "y": missing (required), argument "z": missing (required)"#;
        assert_eq!(check(free, json!({})), expected);
    }

    #[test]
    fn a_number_that_none_can_hold_is_named() {
        let source =
            json!({"properties": {"a": {"type": "integer", "minimum": 1}, "d": {"type": "number", "minimum": 1}}});
        let schema = Schema::new("schema", &source).expect("schema");
        let wrong = schema.check_text(|| &source, "argument", r#"{"a": 1, "d": 1e400}"#).expect_err("too large");
        assert_eq!(wrong, r#"argument "d": number out of range, got 1e400"#);
    }

    #[test]
    fn problems_are_few_and_short() {
        let none = json!({"properties": {"a": {}}, "additionalProperties": false});
        let many: serde_json::Map<String, Value> = (0..100_000).map(|n| (n.to_string(), json!(0))).collect();
        assert_eq!(check(none.clone(), Value::Object(many)).matches("unknown").count(), MAX_PROBLEMS);
        let long = check(none, json!({"x".repeat(100_000): 0}));
        assert!(long.len() < 150 && long.contains("xxx…"), "{long}");
        let either = json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]});
        assert!(check(either, json!("x".repeat(100_000))).len() < 400);
    }

    #[test]
    fn problems_with_long_ways_take_no_more_memory_than_the_value() {
        let began = std::time::Instant::now();
        let long = "n".repeat(400_000);
        // All problems together would take gigabytes: the first is told.
        let plain = json!({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}});
        let said = check(plain, json!({&*long: vec![json!("x"); 20_000]}));
        assert!(said.contains("nnn") && said.contains("expected integer") && said.len() < 400, "{said}");
        let either = json!({"additionalProperties": {"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}});
        let mut items = vec![json!(1); 30_000];
        items.push(json!(null));
        let value = json!({&*long: items});
        let said = check(either.clone(), value.clone());
        assert!(said.starts_with("argument \"nnn") && said.contains("anyOf"), "{said}");
        // A text that is not ASCII costs next to nothing more.
        let word = json!({"properties": {"s": {"pattern": r"\bfoo\b"}}});
        assert_eq!(check(word.clone(), json!({"s": "größe foo"})), "");
        assert!(check(word, json!({"s": "größefoob"})).contains("expected a match"));
        assert!(matches!(foreign(&either, &value), Err(Wrong::Unfit(why, _)) if why.len() < 400));
        let other = json!({"additionalProperties": {"items": {"type": "integer"}}});
        assert!(matches!(foreign(&other, &json!({&*long: vec![json!("x"); 3_000]})), Err(Wrong::Unfit(..))));
        // Some hundred milliseconds without optimization; it was half a minute.
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn a_bad_schema_is_refused_at_registration() {
        let refuse =
            |schema: Value| Schema::new("tool \"t\": inputSchema", &schema).expect_err("bad").message().to_owned();
        assert!(refuse(json!({"type": "strng"})).contains("not a valid JSON Schema"));
        assert!(refuse(json!({"$ref": "https://example.com/s.json"})).contains("not followed"));
        assert!(refuse(json!({"$schema": "urn:mine"})).contains("dialect"));
        let nowhere = refuse(json!({"properties": {"a": {"$ref": "#/$defs/nowhere"}}}));
        assert!(nowhere.contains("\"/properties/a\": \"$ref\" to #/$defs/nowhere: it leads to nothing"), "{nowhere}");
        let mut deep = json!({});
        for _ in 0..70 {
            deep = json!({"items": deep});
        }
        assert!(refuse(deep).contains("64 levels"));
        let wide: serde_json::Map<String, Value> = (0..10_001).map(|n| (n.to_string(), json!({}))).collect();
        assert!(refuse(json!({"properties": wide})).contains("10000 subschemas"));
    }

    /// The rows of the file: a keyword, a schema with it, a value that fits and one that does not.
    fn keywords() -> Vec<(&'static str, Value, Value, Value)> {
        let text: Value = serde_json::from_str(include_str!("../../../../tests/schemas/2020-12.json")).expect("JSON");
        let rows = text.as_array().expect("rows");
        assert!(rows.len() > 35, "every keyword has a row");
        rows.iter()
            .map(|row| {
                let name: &str = row["keyword"].as_str().expect("a name");
                (&*Box::leak(name.into()), row["schema"].clone(), row["fits"].clone(), row["fails"].clone())
            })
            .collect()
    }

    #[test]
    fn every_keyword_of_2020_12_is_checked() {
        for (keyword, source, fits, fails) in keywords() {
            let schema = Schema::new(keyword, &source).expect(keyword);
            let check = |value: &Value| schema.check_text(|| &source, "result", &value.to_string());
            let (_, read) = Schema::foreign(keyword, &source.to_string()).expect(keyword);
            let foreign = |value: &Value| read.check_foreign(&source, "result", &value.to_string(), &full());
            assert_eq!(check(&fits), Ok(()), "{keyword}");
            assert_eq!(foreign(&fits), Ok(()), "{keyword}");
            // A note, which is no assertion, fails nothing.
            if !fails.is_null() {
                assert!(check(&fails).is_err_and(|why| !why.is_empty()), "{keyword}: {fails}");
                assert!(matches!(foreign(&fails), Err(Wrong::Unfit(why, _)) if !why.is_empty()), "{keyword}: {fails}");
            }
        }
    }

    fn full() -> Effort {
        Effort::Full(Arc::default())
    }

    fn foreign(source: &Value, value: &Value) -> Result<(), Wrong> {
        let (source, schema) = Schema::foreign("schema", &source.to_string()).expect("schema");
        schema.check_foreign(&source, "result", &value.to_string(), &full())
    }

    /// Definitions each of which leads to the next twice.
    fn doubling(levels: usize, each: impl Fn(Value) -> Value) -> Value {
        let mut defs = serde_json::Map::new();
        for n in 0..levels {
            defs.insert(format!("d{n}"), each(json!({"$ref": format!("#/$defs/d{}", n + 1)})));
        }
        defs.insert(format!("d{levels}"), json!({"properties": {"a": {}}}));
        json!({"type": "object", "$defs": defs, "$ref": "#/$defs/d0"})
    }

    #[test]
    fn what_a_peer_made_too_costly_ends() {
        let source = json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]});
        let nested = (0..60).fold(json!([]), |inner, _| json!([inner]));
        let Err(Wrong::TooMuch(why)) = foreign(&source, &nested) else { panic!("too much") };
        assert!(why.contains("3000000 steps, most of them at "), "{why}");
        let small = foreign(&json!({"items": {"minimum": 1}}), &json!([1, 0]));
        assert_eq!(small, Err(Wrong::Unfit(r#"result "[1]": expected at least 1, got 0"#.into(), "/1".into())));
    }

    /// Looking a name up takes as long as the name is.
    #[test]
    fn names_are_counted_by_their_length() {
        let name = "n".repeat(400 << 10);
        let many: Value = (0..5_000).map(|_| json!({})).collect();
        let source = json!({"items": {"dependentRequired": {&name: ["a"]}}});
        let Err(Wrong::TooMuch(why)) = foreign(&source, &many) else { panic!("too much") };
        assert!(why.contains("steps"), "{why}");
        let named: Value = (0..20).map(|_| json!({&name: 1})).collect();
        let source = json!({"items": {"allOf": vec![json!({"properties": {"a": {}}}); 100]}});
        assert!(matches!(foreign(&source, &named), Err(Wrong::TooMuch(_))));
    }

    /// Whole numbers beyond 2^53 that differ may be one number as `f64`.
    #[test]
    fn comparisons_of_unique_items_are_counted() {
        let items: Value = (0..200_000u64).map(|at| json!((1u64 << 62) + at % 512 + (at / 512) * 1024)).collect();
        let unique = json!({"uniqueItems": true});
        assert_eq!(foreign(&unique, &json!([1u64 << 62, (1u64 << 62) + 1])), Ok(()));
        assert!(matches!(foreign(&unique, &items), Err(Wrong::TooMuch(_))));
    }

    #[test]
    fn whatever_doubles_is_counted_as_it_is_done() {
        let value = json!({"a": 1, "b": [1, 2]});
        type Each = fn(Value) -> Value;
        let each: [Each; 12] = [
            |next| json!({"allOf": [next.clone(), next]}),
            |next| json!({"anyOf": [next.clone(), next], "unevaluatedProperties": false}),
            |next| json!({"oneOf": [next.clone(), {"allOf": [next, false]}]}),
            |next| json!({"if": next.clone(), "then": next}),
            |next| json!({"not": {"not": {"allOf": [next.clone(), next]}}}),
            |next| json!({"dependentSchemas": {"a": next.clone(), "b": next}}),
            |next| json!({"anyOf": [{"allOf": [next.clone(), false]}, next]}),
            |next| json!({"allOf": [next.clone(), next], "unevaluatedProperties": {}, "unevaluatedItems": false}),
            |next| json!({"$dynamicRef": next["$ref"], "$ref": next["$ref"]}),
            |next| json!({"properties": {"b": {"contains": {"type": "integer"}}}, "allOf": [next.clone(), next]}),
            |next| {
                json!({"dependentSchemas": {"a": {"dependentSchemas": {"b": next.clone()}}, "b": next},
                "unevaluatedProperties": {}})
            },
            |next| json!({"then": next.clone(), "if": {"anyOf": [false, next.clone()]}, "else": next}),
        ];
        for (n, each) in each.iter().enumerate() {
            for levels in [4, 16, 28] {
                let begun = std::time::Instant::now();
                let judged = foreign(&doubling(levels, each), &value);
                assert!(!matches!(judged, Err(Wrong::Long | Wrong::Left)), "{n}, {levels}");
                assert!(levels < 28 || matches!(judged, Err(Wrong::TooMuch(_))), "{n}, {levels}: {judged:?}");
                assert!(begun.elapsed().as_secs() < 60, "{n}, {levels}");
            }
        }
    }

    #[test]
    fn cheap_checks_stay_and_others_are_long() {
        let check = |levels: usize| {
            let source = doubling(levels, |next| json!({"allOf": [next.clone(), next]}));
            let (source, schema) = Schema::foreign("schema", &source.to_string()).expect("schema");
            schema.check_foreign(&source, "result", "{\"a\":1}", &Effort::Inline)
        };
        assert_eq!((check(4), check(16)), (Ok(()), Err(Wrong::Long)));
        let left = Effort::Full(Arc::new(AtomicBool::new(true)));
        let source = doubling(16, |next| json!({"allOf": [next.clone(), next]}));
        let (source, schema) = Schema::foreign("schema", &source.to_string()).expect("schema");
        assert_eq!(schema.check_foreign(&source, "result", "{\"a\":1}", &left), Err(Wrong::Left));
    }

    #[test]
    fn both_spellings_of_a_reference_work_on_both_sides() {
        for (name, references) in [
            ("Line Item", ["#/$defs/Line%20Item", "#/$defs/Line Item"]),
            ("Page[Item]", ["#/$defs/Page%5BItem%5D", "#/$defs/Page[Item]"]),
            ("A<B>", ["#/$defs/A%3CB%3E", "#/$defs/A<B>"]),
            ("Größe", ["#/$defs/Gr%C3%B6%C3%9Fe", "#/$defs/Größe"]),
            ("a/b", ["#/$defs/a~1b", "#/$defs/a%7E1b"]),
        ] {
            for reference in references {
                let source = json!({"type": "object", "properties": {"p": {"$ref": reference}},
                    "$defs": {name: {"type": "integer"}}});
                assert_eq!(check(source.clone(), json!({"p": 1})), "", "{reference}");
                assert_eq!(check(source.clone(), json!({"p": "x"})), r#"argument "p": expected integer, got "x""#);
                assert_eq!(foreign(&source, &json!({"p": 1})), Ok(()), "{reference}");
                let wrong = Wrong::Unfit(r#"result "p": expected integer, got "x""#.into(), "/p".into());
                assert_eq!(foreign(&source, &json!({"p": "x"})), Err(wrong));
            }
        }
    }

    #[test]
    fn what_goes_in_circles_or_nowhere_is_refused_when_it_is_read() {
        for (schema, place) in [
            (json!({"$ref": "#"}), "\"\""),
            (
                json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
                "/$defs",
            ),
            (json!({"properties": {"a": {"$ref": "#nowhere"}}}), "/properties/a"),
            (json!({"properties": {"a": {"$ref": "other#/x"}}}), "/properties/a"),
        ] {
            for read in [Schema::new("s", &schema).map(drop), Schema::foreign("s", &schema.to_string()).map(drop)] {
                let why = read.expect_err("refused");
                assert!(why.message().contains(place), "{why:?}");
            }
        }
    }

    #[test]
    fn patterns_of_a_peer_are_bounded() {
        let many: serde_json::Map<String, Value> = (0..300)
            .map(|n| (n.to_string(), json!({"pattern": format!(r"^[\p{{L}}\p{{N}}\p{{S}}]{{90}}x{n}$")})))
            .collect();
        let refused = Schema::foreign("s", &json!({"properties": many}).to_string()).expect_err("too large");
        assert!(refused.message().contains("/properties/") && refused.message().contains("1024 KiB"), "{refused:?}");
        // The look-ahead has it go back and forth: nobody can say whether it matches, so the result is not thrown away.
        let source = json!({"type": "array", "items": {"pattern": "^(?:(?:(?=a)a+)+!|a+)$"}});
        assert_eq!(foreign(&source, &json!(vec!["a".repeat(40); 4_000])), Ok(()));
        assert!(matches!(foreign(&source, &json!(["b"])), Err(Wrong::Unfit(_, at)) if at == "/0"));
        // Bytes times patterns.
        let names: serde_json::Map<String, Value> =
            (0..100).map(|n| (format!("^[a-z]{{0,300}}x{n}$"), json!({}))).collect();
        let source = json!({"patternProperties": names});
        let members: serde_json::Map<String, Value> =
            (0..200).map(|n| (format!("{n}{}", "a".repeat(5_000)), json!(1))).collect();
        assert!(matches!(foreign(&source, &Value::Object(members)), Err(Wrong::TooMuch(_))));
    }

    /// Schemas put together at random, each with a value.
    fn random(state: &mut u64, depth: usize) -> Value {
        let mut next = |most: u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 33) % most
        };
        let kind = next(if depth == 0 { 8 } else { 24 });
        let number = next(4);
        let inner = |state: &mut u64| random(state, depth - 1);
        match kind {
            0 => json!({"type": (["integer", "string", "array", "object"][number as usize])}),
            1 => json!({"minimum": number}),
            2 => json!({"maxLength": number}),
            3 => json!({"pattern": (["^a", "b$", "[0-9]+", "."][number as usize])}),
            4 => json!({"enum": [number, "a", [1], {}]}),
            5 => json!({"required": ["a"]}),
            6 => json!({"uniqueItems": true, "maxItems": number + 1}),
            7 => json!(number > 0),
            8 => json!({"allOf": [inner(state), inner(state)]}),
            9 => json!({"anyOf": [inner(state), inner(state)]}),
            10 => json!({"oneOf": [inner(state), inner(state)]}),
            11 => json!({"not": inner(state)}),
            12 => json!({"if": inner(state), "then": inner(state), "else": inner(state)}),
            13 => json!({"properties": {"a": inner(state), "b": inner(state)}}),
            14 => json!({"properties": {"a": inner(state)}, "additionalProperties": inner(state)}),
            15 => json!({"items": inner(state), "prefixItems": [inner(state)]}),
            16 => json!({"contains": inner(state), "maxContains": number + 1, "minContains": number % 2}),
            17 => json!({"patternProperties": {"^a": inner(state)}, "unevaluatedProperties": inner(state)}),
            18 => json!({"anyOf": [inner(state), inner(state)], "unevaluatedProperties": inner(state)}),
            19 => json!({"allOf": [inner(state)], "prefixItems": [inner(state)], "unevaluatedItems": inner(state)}),
            20 => json!({"contains": inner(state), "unevaluatedItems": inner(state)}),
            21 => json!({"dependentSchemas": {"a": inner(state)}, "unevaluatedProperties": false}),
            22 => json!({"propertyNames": inner(state)}),
            _ => json!({"$ref": "#/$defs/x", "unevaluatedProperties": inner(state)}),
        }
    }

    #[test]
    fn the_judge_says_what_the_library_says() {
        let values = [
            json!(1),
            json!("ab"),
            json!([]),
            json!([1, "a", 1.0]),
            json!([{"a": 1}, 2, 3]),
            json!({}),
            json!({"a": 1}),
            json!({"a": "b", "b": [1], "ab": 3}),
            json!({"a": {"a": {"b": "1"}}, "c": null}),
            json!(null),
            json!(2.0),
        ];
        let mut state = 20;
        for n in 0..3_000 {
            let mut source = json!({"$defs": {"x": random(&mut state, 2)}});
            let body = random(&mut state, 3);
            match body {
                Value::Object(members) => source.as_object_mut().expect("an object").extend(members),
                other => source = json!({"allOf": [other]}),
            }
            let rules = Rules::read(&source, Draft::Draft202012, true, MAX_SUBSCHEMAS);
            let Ok(rules) = rules else { continue };
            let library = jsonschema::draft202012::new(&source).expect("a schema");
            for value in &values {
                let judged = Run::new(&rules, MAX_STEPS).judge(value);
                assert_eq!(judged, Ok(library.is_valid(value)), "{n}: {source} {value}");
                assert_eq!(Run::new(&rules, MAX_STEPS).thorough().judge(value), judged, "{n}: {source} {value}");
            }
        }
    }

    #[test]
    fn an_unmet_format_is_named_before_its_pattern() {
        let of = |schema: Value| check(json!({"properties": {"a": schema}}), json!({"a": "x"}));
        let pattern = format!("^(?:{})$", "[0-9]{4}-".repeat(40));
        assert_eq!(
            of(json!({"format": "date-time", "pattern": pattern})),
            r#"argument "a": expected an ISO datetime, got "x""#
        );
        assert_eq!(
            of(json!({"format": "email", "pattern": "@"})),
            r#"argument "a": expected an email address, got "x""#
        );
        assert_eq!(of(json!({"format": "uuid", "pattern": "-"})), r#"argument "a": expected a UUID, got "x""#);
        assert_eq!(of(json!({"pattern": "^V"})), r#"argument "a": expected a match of the pattern ^V, got "x""#);
        assert!(of(json!({"pattern": pattern})).len() < 160);
    }

    #[test]
    fn dialects_are_honoured() {
        let draft4 = json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}});
        assert!(!check(draft4, json!({"a": 1})).is_empty());
        let prefix = json!({"properties": {"a": {"prefixItems": [{"type": "integer"}]}}});
        assert!(!check(prefix, json!({"a": ["x"]})).is_empty());
    }
}
