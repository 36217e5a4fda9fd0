//! Tool arguments that HTTP headers mirror: what an `inputSchema` marks with `x-mcp-header` travels as
//! `Mcp-Param-<name>` too, for intermediaries that do not read bodies.

use serde_json::Value;

/// The annotation's name.
pub(crate) const MARK: &str = "x-mcp-header";

/// Most arguments of a tool that may be marked, and longest names that lead to one: they become headers.
const MAX_MIRRORS: usize = 64;
const MAX_PATH: usize = 1024;

/// One marked argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mirror {
    /// The header's whole name, in lower case.
    pub(crate) header: String,
    /// Place of the value in the arguments.
    pub(crate) path: Vec<String>,
}

/// The marked arguments of a tool's `inputSchema`.
///
/// # Errors
/// The fault of a mark, as the end of a sentence about the tool: clients leave such a tool out.
pub(crate) fn mirrors(schema: &Value) -> Result<Vec<Mirror>, String> {
    let mut found = Vec::new();
    walk(schema, &mut Vec::new(), true, &mut found)?;
    Ok(found)
}

fn walk(schema: &Value, path: &mut Vec<String>, reachable: bool, found: &mut Vec<Mirror>) -> Result<(), String> {
    let Value::Object(keywords) = schema else { return Ok(()) };
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            (MARK, mark) => found.push(mirror(mark, keywords.get("type"), path, reachable, found)?),
            ("properties", Value::Object(properties)) => {
                for (name, schema) in properties {
                    path.push(name.clone());
                    walk(schema, path, reachable, found)?;
                    path.pop();
                }
            }
            (
                "patternProperties" | "dependentSchemas" | "dependencies" | "$defs" | "definitions",
                Value::Object(schemas),
            ) => schemas.values().try_for_each(|schema| walk(schema, path, false, found))?,
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(schemas)) => {
                schemas.iter().try_for_each(|schema| walk(schema, path, false, found))?;
            }
            (
                "additionalItems"
                | "additionalProperties"
                | "contains"
                | "contentSchema"
                | "else"
                | "if"
                | "items"
                | "not"
                | "propertyNames"
                | "then"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                schema,
            ) => walk(schema, path, false, found)?,
            // Not schemas: what looks like a mark in an example or a default is none.
            _ => {}
        }
    }
    Ok(())
}

fn mirror(
    mark: &Value,
    kind: Option<&Value>,
    path: &[String],
    reachable: bool,
    found: &[Mirror],
) -> Result<Mirror, String> {
    if !reachable || path.is_empty() {
        return Err(format!("{MARK} {mark} is not on a property that only \"properties\" lead to"));
    }
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let name = mark.as_str().filter(|name| !name.is_empty() && name.bytes().all(token));
    let name = name.ok_or_else(|| format!("{MARK} {mark} is no header name"))?;
    if !is_mirrorable(kind) {
        return Err(format!("{MARK} {mark} is on {path:?}, whose type is not string, integer or boolean"));
    }
    if name.len() > MAX_PATH || path.iter().map(String::len).sum::<usize>() > MAX_PATH {
        return Err(format!("one {MARK}, or the names that lead to it, have more than {MAX_PATH} bytes"));
    }
    if found.len() == MAX_MIRRORS {
        return Err(format!("more than {MAX_MIRRORS} properties have {MARK}"));
    }
    let header = format!("mcp-param-{}", name.to_ascii_lowercase());
    if found.iter().any(|other| other.header == header) {
        return Err(format!("{MARK} {mark} occurs twice"));
    }
    Ok(Mirror { header, path: path.to_vec() })
}

/// One of the three types, or that and `null`, whose values send no header.
fn is_mirrorable(kind: Option<&Value>) -> bool {
    let fits = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Some(Value::Array(kinds)) => {
            let mut rest = kinds.iter().filter(|kind| kind.as_str() != Some("null"));
            rest.next().is_some_and(fits) && rest.next().is_none()
        }
        Some(kind) => fits(kind),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn marks_are_found_with_their_paths() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "dry": {"type": ["boolean", "null"], "x-mcp-header": "Dry-Run"},
            "inner": {"type": "object", "properties": {"deep": {"type": "integer", "x-mcp-header": "Deep"}}},
            "x-mcp-header": {"type": "string"},
        }, "examples": [{"x-mcp-header": 7}]});
        let found = mirrors(&schema).expect("valid marks");
        let found: Vec<_> = found.iter().map(|m| (m.header.as_str(), m.path.join("/"))).collect();
        assert_eq!(
            found,
            [
                ("mcp-param-region", "region".to_owned()),
                ("mcp-param-dry-run", "dry".to_owned()),
                ("mcp-param-deep", "inner/deep".to_owned())
            ]
        );
    }

    #[test]
    fn marks_and_their_paths_are_bounded() {
        let many = |count: usize| {
            let marked = |n| (format!("p{n}"), json!({"type": "string", "x-mcp-header": format!("H{n}")}));
            json!({"properties": (0..count).map(marked).collect::<serde_json::Map<_, _>>()})
        };
        assert_eq!(mirrors(&many(MAX_MIRRORS)).map(|found| found.len()), Ok(MAX_MIRRORS));
        assert!(mirrors(&many(MAX_MIRRORS + 1)).is_err_and(|why| why.contains("more than 64 properties")));
        let below = json!({"properties": {"p": {"type": "string", "x-mcp-header": "P"}}});
        let long = json!({"properties": {"n".repeat(MAX_PATH): below}});
        assert!(mirrors(&long).is_err_and(|why| why.contains("more than 1024 bytes")));
    }

    #[test]
    fn wrong_marks_are_refused() {
        let string = |mark: Value| json!({"properties": {"p": {"type": "string", "x-mcp-header": mark}}});
        let typed = |kind: Value| json!({"properties": {"p": {"type": kind, "x-mcp-header": "P"}}});
        let marked = json!({"type": "string", "x-mcp-header": "P"});
        for schema in [
            string(json!("")),
            string(json!(1)),
            string(json!("a b")),
            string(json!("a:b")),
            string(json!("ä")),
            typed(json!("object")),
            typed(json!("number")),
            typed(json!(["string", "integer"])),
            typed(json!(null)),
            json!({"properties": {"p": marked, "q": {"type": "string", "x-mcp-header": "p"}}}),
            json!({"properties": {"p": {"items": marked}}}),
            json!({"properties": {"p": {"items": {"properties": {"q": marked}}}}}),
            json!({"properties": {"p": {"anyOf": [marked]}}}),
            json!({"then": {"properties": {"p": marked}}}),
            json!({"$defs": {"D": marked}}),
            marked.clone(),
        ] {
            assert!(mirrors(&schema).is_err(), "{schema}");
        }
    }
}
