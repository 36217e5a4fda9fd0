//! JSON Schema: bounded when it is read, checked at every call, errors in words that are the same in every language.

mod quick;
mod work;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jsonschema::{Draft, Validator};
use serde_json::Value;
use serde_json::value::RawValue;

use self::quick::Quick;
use self::work::Work;
use super::problem;
use crate::error::{Error, Result, shortened};

/// The deepest nesting of a schema.
const MAX_DEPTH: usize = 64;
/// The most subschemas (objects) in a schema.
const MAX_SUBSCHEMAS: usize = 10_000;

/// A schema that values can be checked against. Compiled on first use: most tools of a server are never called.
#[derive(Debug)]
pub(crate) struct Schema {
    compiled: OnceLock<Result<Validator>>,
    /// The schema in a form that says yes quickly, when it is simple enough for that.
    quick: Option<Quick>,
    /// A check takes no longer than the value is long.
    plain: bool,
}

impl Schema {
    /// Checks the schema's bounds, dialect and references.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) saying where and why.
    pub(crate) fn new(what: &str, source: &Value) -> Result<Self> {
        let mut subschemas = 0;
        bounds(source, source, 0, &mut subschemas).map_err(|why| Error::misuse(format!("{what}: {why}")))?;
        if let Some(dialect) = source.get("$schema") {
            let name = dialect.as_str().unwrap_or_default();
            if draft(name).is_none() {
                return Err(Error::misuse(format!(
                    "{what}: \"$schema\": dialect {dialect} is not supported, use \"https://json-schema.org/draft/2020-12/schema\""
                )));
            }
        }
        let schema = Self { compiled: OnceLock::new(), quick: Quick::new(source), plain: is_plain(source) };
        if !schema.plain {
            // Anything beyond the everyday keywords is compiled now, so that a mistake shows at registration.
            schema.compiled(source).map_err(|e| Error::misuse(format!("{what}: {}", e.message())))?;
        }
        Ok(schema)
    }

    fn compiled(&self, source: &Value) -> Result<&Validator> {
        let built = self.compiled.get_or_init(|| {
            let dialect = source.get("$schema").and_then(Value::as_str).and_then(draft);
            jsonschema::options()
                .with_draft(dialect.unwrap_or(Draft::Draft202012))
                .with_retriever(NoNetwork)
                .build(source)
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

    /// As [`check_text`](Self::check_text), of what a peer has written on both sides: a check that would take more than
    /// [`MAX_STEPS`](work::MAX_STEPS) steps is not begun.
    ///
    /// # Errors
    /// The problems (ten at most) in one line, and the JSON Pointer of the first, which is empty for the value itself.
    pub(crate) fn check_foreign(&self, source: &Value, noun: &str, text: &str) -> Result<(), (String, String)> {
        if self.quick.as_ref().is_some_and(|quick| quick.accepts(text)) {
            return Ok(());
        }
        let whole = |why: String| (why, String::new());
        let value: Value = serde_json::from_str(text).map_err(|e| whole(unreadable(noun, text, &e)))?;
        work::bounded(source, &value).map_err(|why| whole(why.to_owned()))?;
        let validator = self.compiled(source).map_err(|e| whole(e.message().to_owned()))?;
        if validator.is_valid(&value) {
            return Ok(());
        }
        let first = validator.iter_errors(&value).next();
        let at = first.map(|error| error.instance_path().as_str().to_owned()).unwrap_or_default();
        Err((problem::all(noun, validator.iter_errors(&value)), at))
    }

    /// `length` of the value's text: a value that is short and takes long is not checked.
    fn check(&self, source: &Value, noun: &str, value: &Value, length: usize) -> Result<(), String> {
        let validator = self.compiled(source).map_err(|e| e.message().to_owned())?;
        let work = if self.plain { Work::Little } else { Work::of(source, value, length) };
        if work == Work::TooMuch {
            return Err(format!("{noun}s: checking them against the schema takes too many steps"));
        }
        if validator.is_valid(value) {
            return Ok(());
        }
        if work == Work::Much {
            return Err(format!("{noun}s: they do not fit the schema, and finding out where takes too many steps"));
        }
        Err(problem::all(noun, validator.iter_errors(value)))
    }
}

/// JSON that no value can hold, such as `1e400`: the member that it is in, and why.
pub(crate) fn unreadable(noun: &str, text: &str, error: &serde_json::Error) -> String {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    let named = members.iter().find_map(|(name, value)| {
        let why = serde_json::from_str::<Value>(value.get()).err()?.to_string();
        let why = why.split(" at line ").next().unwrap_or_default().to_owned();
        Some(format!("{noun} \"{}\": {why}, got {}", shortened(name, 100), shortened(value.get(), 60)))
    });
    named.unwrap_or_else(|| format!("{noun}s: {error}"))
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

fn bounds(root: &Value, value: &Value, depth: usize, subschemas: &mut usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("schema is nested deeper than {MAX_DEPTH} levels"));
    }
    match value {
        Value::Object(members) => {
            *subschemas += 1;
            if *subschemas > MAX_SUBSCHEMAS {
                return Err(format!("schema has more than {MAX_SUBSCHEMAS} subschemas"));
            }
            if let Some(Value::String(reference)) = members.get("$ref")
                && !reference.starts_with('#')
                && reference.contains("://")
                && !reference.starts_with("https://json-schema.org/")
                && !reference.starts_with("http://json-schema.org/")
                && !has_id(root, reference.split('#').next().unwrap_or_default())
            {
                return Err(format!("\"$ref\" to {reference}: references outside the schema are not followed"));
            }
            members.values().try_for_each(|v| bounds(root, v, depth + 1, subschemas))
        }
        Value::Array(items) => items.iter().try_for_each(|v| bounds(root, v, depth + 1, subschemas)),
        _ => Ok(()),
    }
}

/// Whether a part of the schema is called that.
fn has_id(schema: &Value, id: &str) -> bool {
    match schema {
        Value::Object(members) => {
            let own = members.get("$id").and_then(Value::as_str);
            own.is_some_and(|own| own.trim_end_matches('#') == id) || members.values().any(|inner| has_id(inner, id))
        }
        Value::Array(items) => items.iter().any(|inner| has_id(inner, id)),
        _ => false,
    }
}

/// Whether a schema uses only keywords whose values this function has checked itself.
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
        assert!(check(source.clone(), json!({"e": nested(2, json!("x"))})).contains("argument \"e"));
        let much = check(source.clone(), json!({"e": nested(12, json!("x"))}));
        assert!(much.contains("finding out where takes too many steps"), "{much}");
        let too_much = check(source, json!({"e": nested(40, json!(1))}));
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
    fn a_bad_schema_is_refused_at_registration() {
        let refuse =
            |schema: Value| Schema::new("tool \"t\": inputSchema", &schema).expect_err("bad").message().to_owned();
        assert!(refuse(json!({"type": "strng"})).contains("not a valid JSON Schema"));
        assert!(refuse(json!({"$ref": "https://example.com/s.json"})).contains("not followed"));
        assert!(refuse(json!({"$schema": "urn:mine"})).contains("dialect"));
        assert!(refuse(json!({"$ref": "#/$defs/nowhere"})).contains("not a valid JSON Schema"));
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
        let text: Value = serde_json::from_str(include_str!("../../../tests/schemas/2020-12.json")).expect("JSON");
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
            let foreign = |value: &Value| schema.check_foreign(&source, "result", &value.to_string());
            assert_eq!(check(&fits), Ok(()), "{keyword}");
            assert_eq!(foreign(&fits), Ok(()), "{keyword}");
            // What is a note, and no assertion, fails nothing.
            if !fails.is_null() {
                assert!(check(&fails).is_err_and(|why| !why.is_empty()), "{keyword}: {fails}");
                assert!(foreign(&fails).is_err_and(|(why, _)| !why.is_empty()), "{keyword}: {fails}");
            }
        }
    }

    #[test]
    fn what_a_peer_made_too_costly_is_not_begun() {
        let source = json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]});
        let schema = Schema::new("schema", &source).expect("schema");
        let value = format!("{}{}", "[".repeat(60), "]".repeat(60));
        let (why, at) = schema.check_foreign(&source, "result", &value).expect_err("too much");
        assert!(why.contains("5000000 steps") && at.is_empty(), "{why}");
        let (why, at) = Schema::new("schema", &json!({"items": {"minimum": 1}}))
            .map(|schema| schema.check_foreign(&json!({"items": {"minimum": 1}}), "result", "[1, 0]"))
            .expect("schema")
            .expect_err("too small");
        assert_eq!((&*why, &*at), (r#"result "[1]": expected at least 1, got 0"#, "/1"));
    }

    #[test]
    fn dialects_are_honoured() {
        let draft4 = json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"minimum": 1, "exclusiveMinimum": true}}});
        assert!(!check(draft4, json!({"a": 1})).is_empty());
        let prefix = json!({"properties": {"a": {"prefixItems": [{"type": "integer"}]}}});
        assert!(!check(prefix, json!({"a": ["x"]})).is_empty());
    }
}
