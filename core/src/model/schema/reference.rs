//! References: the one reader of `$ref`, `$id`, `$anchor` and their like. A reference that it cannot resolve is
//! refused, and those for the library have been written as URIs have to be.

use std::borrow::Cow;
use std::collections::HashMap;

use jsonschema::{Draft, Uri, uri};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

/// The most schemas that are called by a name.
const MAX_NAMES: usize = 10_000;
/// The longest pointer or URI, in bytes.
const MAX_PLACE: usize = 16 << 10;
/// All pointers, URIs and names of a schema together, in bytes.
const MAX_PLACES: usize = 32 << 20;

/// The dialect as a number that can be compared: 4, 6, 7, 2019 or 2020.
pub(super) fn year(draft: Draft) -> u16 {
    match draft {
        Draft::Draft4 => 4,
        Draft::Draft6 => 6,
        Draft::Draft7 => 7,
        Draft::Draft201909 => 2019,
        _ => 2020,
    }
}

/// Place of a value in the document, and the resource (`$id`) that it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) pointer: String,
    pub(super) resource: u32,
}

/// A part of the document that has a URI of its own.
struct Resource<'a> {
    root: &'a Value,
    pointer: String,
    uri: Option<Uri<String>>,
}

/// All that a reference can lead to.
pub(super) struct References<'a> {
    year: u16,
    resources: Vec<Resource<'a>>,
    by_uri: HashMap<String, u32>,
    anchors: HashMap<(u32, String), &'a Value>,
    pub(super) dynamic: HashMap<(u32, String), &'a Value>,
    places: HashMap<usize, Place>,
    /// Size of pointers, URIs and names, in bytes.
    taken: usize,
}

/// Returns the identity of a value of the document.
pub(super) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

/// Target of a reference.
pub(super) enum Target<'a> {
    Schema(&'a Value),
    /// The schema of a dialect.
    Dialect(Draft),
}

impl<'a> References<'a> {
    pub(super) fn new(source: &'a Value, year: u16) -> Result<Self, String> {
        let root = Resource { root: source, pointer: String::new(), uri: None };
        let mut all = Self {
            year,
            resources: vec![root],
            by_uri: HashMap::new(),
            anchors: HashMap::new(),
            dynamic: HashMap::new(),
            places: HashMap::new(),
            taken: 0,
        };
        all.index(source, String::new(), 0)?;
        Ok(all)
    }

    /// Returns the place of a schema; one that no reference has led to yet is at its parent's.
    pub(super) fn place(&self, schema: &Value) -> Place {
        self.places.get(&address(schema)).cloned().unwrap_or(Place { pointer: String::new(), resource: 0 })
    }

    /// The schema that a resource begins with.
    pub(super) fn root(&self, resource: u32) -> &'a Value {
        self.resources[resource as usize].root
    }

    fn base(&self, resource: u32) -> Result<Uri<String>, String> {
        match &self.resources[resource as usize].uri {
            Some(uri) => Ok(uri.clone()),
            None => uri::from_str("").map_err(|e| e.to_string()),
        }
    }

    /// Counts a pointer, a URI or a name before it is kept.
    fn take(&mut self, text: &str, pointer: &str) -> Result<(), String> {
        let place = || crate::error::shortened(pointer, 200);
        if text.len() > MAX_PLACE {
            return Err(format!("{:?}: a place or name of more than {MAX_PLACE} bytes", place()));
        }
        self.taken += text.len();
        if self.taken > MAX_PLACES {
            return Err(format!("{:?}: the places and names of the schema take more than {MAX_PLACES} bytes", place()));
        }
        Ok(())
    }

    /// Keeps the name of a schema.
    fn name(&mut self, resource: u32, name: &str, schema: &'a Value, pointer: &str) -> Result<(), String> {
        if self.anchors.len() >= MAX_NAMES {
            return Err(format!("{pointer:?}: more than {MAX_NAMES} names (\"$anchor\")"));
        }
        self.take(name, pointer)?;
        self.anchors.insert((resource, name.to_owned()), schema);
        Ok(())
    }

    /// The name that a schema gives itself.
    fn id<'m>(&self, members: &'m Map<String, Value>) -> Option<&'m str> {
        if self.year <= 7 && members.contains_key("$ref") {
            return None;
        }
        members.get(if self.year == 4 { "id" } else { "$id" }).and_then(Value::as_str)
    }

    /// The resource that begins at `schema`, if one does.
    fn enter(&mut self, schema: &'a Value, pointer: &str, resource: u32) -> Result<u32, String> {
        let Some(id) = schema.as_object().and_then(|members| self.id(members)) else { return Ok(resource) };
        let (name, fragment) = id.split_once('#').unwrap_or((id, ""));
        if !fragment.is_empty() && self.year <= 7 {
            self.name(resource, fragment, schema, pointer)?;
        }
        if name.is_empty() {
            return Ok(resource);
        }
        let base = self.base(resource)?;
        let uri = uri::resolve_against(&base.borrow(), &written(name))
            .map_err(|e| format!("{pointer:?}: \"$id\" {id:?}: {e}"))?;
        self.take(uri.as_str(), pointer)?;
        if self.by_uri.len() >= MAX_NAMES {
            return Err(format!("{pointer:?}: more than {MAX_NAMES} names (\"$id\")"));
        }
        let number = match self.by_uri.get(uri.as_str()) {
            Some(number) => *number,
            None if pointer.is_empty() => 0,
            None => {
                self.resources.push(Resource { root: schema, pointer: pointer.to_owned(), uri: None });
                u32::try_from(self.resources.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.by_uri.insert(uri.as_str().to_owned(), number);
        self.resources[number as usize].uri = Some(uri);
        Ok(number)
    }

    /// Reads the names in `schema` and everything in it. Its depth is bounded.
    fn index(&mut self, schema: &'a Value, pointer: String, resource: u32) -> Result<(), String> {
        if self.places.contains_key(&address(schema)) {
            return Ok(());
        }
        self.take(&pointer, &pointer)?;
        let resource = self.enter(schema, &pointer, resource)?;
        let Value::Object(members) = schema else {
            self.places.insert(address(schema), Place { pointer, resource });
            return Ok(());
        };
        if self.year >= 2019 {
            for (key, is_dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
                if let Some(name) = members.get(key).and_then(Value::as_str) {
                    self.name(resource, name, schema, &pointer)?;
                    if is_dynamic {
                        self.dynamic.insert((resource, name.to_owned()), schema);
                    }
                }
            }
        }
        self.places.insert(address(schema), Place { pointer: pointer.clone(), resource });
        for (path, inner) in children(members) {
            self.index(inner, format!("{pointer}{path}"), resource)?;
        }
        Ok(())
    }

    /// Returns the target of `reference`, which stands in a schema of this resource.
    ///
    /// # Errors
    /// The reason why it leads nowhere, as the end of a sentence.
    pub(super) fn resolve(&mut self, resource: u32, reference: &str) -> Result<Target<'a>, String> {
        let reference = written(reference);
        let (name, fragment) = reference.split_once('#').unwrap_or((&*reference, ""));
        let resource = if name.is_empty() {
            resource
        } else {
            let base = self.base(resource)?;
            let uri = uri::resolve_against(&base.borrow(), name).map_err(|e| e.to_string())?;
            match self.by_uri.get(uri.as_str()) {
                Some(found) => *found,
                None => match super::draft(uri.as_str()) {
                    Some(draft) if fragment.is_empty() => return Ok(Target::Dialect(draft)),
                    _ if uri.as_str().starts_with("json-schema:") => return Err("nothing is called that".to_owned()),
                    _ => return Err("references outside the schema are not followed".to_owned()),
                },
            }
        };
        let fragment = percent_decode_str(fragment).decode_utf8().map_err(|_| "it is not UTF-8".to_owned())?;
        if fragment.is_empty() {
            return Ok(Target::Schema(self.root(resource)));
        }
        if !fragment.starts_with('/') {
            let found = self.anchors.get(&(resource, fragment.into_owned()));
            return found.map(|found| Target::Schema(found)).ok_or_else(|| "there is no such anchor".to_owned());
        }
        let begin = &self.resources[resource as usize];
        let (mut at, mut pointer, mut of) = (begin.root, begin.pointer.clone(), resource);
        for segment in fragment.split('/').skip(1) {
            let name = segment.replace("~1", "/").replace("~0", "~");
            let next = match at {
                Value::Object(members) => members.get(&name),
                Value::Array(items) => name.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            at = next.ok_or_else(|| "it leads to nothing".to_owned())?;
            pointer.push('/');
            pointer.push_str(segment);
            if pointer.len() > MAX_PLACE {
                return Err(format!("it is longer than {MAX_PLACE} bytes"));
            }
            of = match self.places.get(&address(at)) {
                Some(place) => place.resource,
                None => of,
            };
        }
        if !at.is_object() && !at.is_boolean() {
            return Err("it leads to what is no schema".to_owned());
        }
        self.index(at, pointer, of)?;
        Ok(Target::Schema(at))
    }
}

/// The schema that a reference in `root` leads to.
pub(super) fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    if let Some(fragment) = reference.strip_prefix('#')
        && (fragment.is_empty() || fragment.starts_with('/'))
    {
        return root.pointer(&percent_decode_str(fragment).decode_utf8().ok()?);
    }
    match References::new(root, year(super::dialect(root))).ok()?.resolve(0, reference).ok()? {
        Target::Schema(found) => Some(found),
        Target::Dialect(_) => None,
    }
}

/// The subschemas of a schema, with the rest of their pointers.
pub(super) fn children(members: &Map<String, Value>) -> Vec<(String, &Value)> {
    let mut out = Vec::new();
    for (key, value) in members {
        match (key.as_str(), value) {
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
                Value::Object(all),
            ) => {
                for (name, inner) in all {
                    if inner.is_object() || inner.is_boolean() {
                        out.push((format!("/{key}/{}", escaped(name)), inner));
                    }
                }
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(all)) => {
                out.extend(all.iter().enumerate().map(|(n, inner)| (format!("/{key}/{n}"), inner)));
            }
            (
                "not"
                | "if"
                | "then"
                | "else"
                | "items"
                | "additionalItems"
                | "contains"
                | "additionalProperties"
                | "propertyNames"
                | "unevaluatedProperties"
                | "unevaluatedItems"
                | "contentSchema",
                Value::Object(_) | Value::Bool(_),
            ) => out.push((format!("/{key}"), value)),
            _ => {}
        }
    }
    out
}

/// A name as a part of a JSON Pointer.
pub(super) fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { name.replace('~', "~0").replace('/', "~1").into() } else { name.into() }
}

/// A reference with everything percent-encoded that no URI may have, such as the brackets of `#/$defs/Page[Item]`.
pub(super) fn written(reference: &str) -> Cow<'_, str> {
    let bytes = reference.as_bytes();
    let begins = reference.find('#').unwrap_or(bytes.len());
    let has_host = reference.contains("//");
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    let stays = |at: usize, byte: u8| match byte {
        b'%' => is_hex(at + 1) && is_hex(at + 2),
        b'#' => at == begins,
        b'[' | b']' => at < begins && has_host,
        b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => false,
        _ => byte.is_ascii_graphic(),
    };
    if bytes.iter().enumerate().all(|(at, byte)| stays(at, *byte)) {
        return reference.into();
    }
    let mut out = String::with_capacity(reference.len() + 16);
    for (at, byte) in bytes.iter().enumerate() {
        if stays(at, *byte) {
            out.push(char::from(*byte));
        } else {
            out.push_str(percent_encoding::percent_encode_byte(*byte));
        }
    }
    out.into()
}

/// Returns true if the members of this keyword's value are names that the schema's author chose.
pub(crate) fn has_names(keyword: &str) -> bool {
    const ALL: [&str; 6] =
        ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
    ALL.contains(&keyword)
}

/// The schema with every reference [`written`], for the library; borrowed when they all are.
pub(super) fn rewritten(source: &Value) -> Cow<'_, Value> {
    fn is_written(schema: &Value) -> bool {
        match schema {
            Value::Object(members) => members.iter().all(|(key, value)| match value {
                Value::String(text) => !is_reference(key) || matches!(written(text), Cow::Borrowed(_)),
                _ => is_written(value),
            }),
            Value::Array(items) => items.iter().all(is_written),
            _ => true,
        }
    }
    fn write(schema: &mut Value, are_names: bool) {
        match schema {
            Value::Object(members) => {
                for (key, value) in members.iter_mut() {
                    match value {
                        Value::String(text) if !are_names && is_reference(key) => {
                            let right = written(text).into_owned();
                            *text = right;
                        }
                        // No schemas.
                        _ if !are_names && matches!(key.as_str(), "const" | "enum" | "default" | "examples") => {}
                        _ => write(value, !are_names && has_names(key)),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| write(item, false)),
            _ => {}
        }
    }
    if is_written(source) {
        return Cow::Borrowed(source);
    }
    let mut out = source.clone();
    write(&mut out, false);
    Cow::Owned(out)
}

fn is_reference(key: &str) -> bool {
    matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef" | "$id" | "id")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_no_uri_may_have_is_encoded_and_the_rest_stays() {
        for (given, expected) in [
            ("#/$defs/Page[Item]", "#/$defs/Page%5BItem%5D"),
            ("#/$defs/Foo Bar", "#/$defs/Foo%20Bar"),
            ("#/$defs/A<B, C>", "#/$defs/A%3CB,%20C%3E"),
            ("#/$defs/100%", "#/$defs/100%25"),
            ("#/$defs/Größe", "#/$defs/Gr%C3%B6%C3%9Fe"),
            ("#/$defs/a#b", "#/$defs/a%23b"),
            ("#/$defs/Line%20Item", "#/$defs/Line%20Item"),
            ("#/$defs/a~1b", "#/$defs/a~1b"),
            ("http://[::1]/a#/b", "http://[::1]/a#/b"),
        ] {
            assert_eq!(written(given), expected);
        }
    }

    /// A long name with many others below it: their pointers are as long, each.
    #[test]
    fn pointers_take_little_memory() {
        let below: Map<String, Value> = (0..5_000).map(|at| (at.to_string(), json!({}))).collect();
        let long = |bytes: usize| json!({"properties": {"x".repeat(bytes): {"properties": &below}}});
        let refused = |source: &Value| References::new(source, 2020).err().unwrap_or_default();
        assert_eq!(refused(&long(1_000)), "");
        assert!(refused(&long(10_000)).contains("take more than"), "{}", refused(&long(10_000)));
        assert!(refused(&long(20_000)).contains("more than 16384 bytes"), "{}", refused(&long(20_000)));
        let mut names = json!({});
        for at in 0..30 {
            names = json!({"$id": format!("{}/{at}", "a".repeat(400)), "properties": {"x": names}});
        }
        names["$id"] = json!("https://example.com/");
        assert_eq!(refused(&names), "");
        let anchors: Map<String, Value> =
            (0..=MAX_NAMES).map(|at| (at.to_string(), json!({"$anchor": format!("a{at}")}))).collect();
        assert!(refused(&json!({"$defs": anchors})).contains("$anchor"));
    }

    #[test]
    fn references_lead_where_they_say() {
        let source = json!({"$id": "https://example.com/root", "$defs": {
            "Line Item": {"title": "line"}, "a/b~c": {"title": "escaped"}, "Page[Item]": {"title": "page"},
            "named": {"$anchor": "here", "title": "anchor"},
            "other": {"$id": "other", "title": "other", "$defs": {"in": {"title": "inner"}}},
        }, "components": {"x": {"title": "outside"}}});
        let mut references = References::new(&source, 2020).expect("names");
        for (reference, title) in [
            ("#/$defs/Line%20Item", "line"),
            ("#/$defs/Line Item", "line"),
            ("#/$defs/a~1b~0c", "escaped"),
            ("#/$defs/Page%5BItem%5D", "page"),
            ("#/$defs/Page[Item]", "page"),
            ("#here", "anchor"),
            ("other", "other"),
            ("https://example.com/other#/$defs/in", "inner"),
            ("root#/components/x", "outside"),
        ] {
            match references.resolve(0, reference) {
                Ok(Target::Schema(found)) => assert_eq!(found["title"], title, "{reference}"),
                _ => panic!("{reference} leads nowhere"),
            }
        }
        for nowhere in ["#/$defs/none", "#none", "none", "https://example.net/x", "#/$id"] {
            assert!(references.resolve(0, nowhere).is_err(), "{nowhere}");
        }
        let own = "https://json-schema.org/draft/2020-12/schema";
        assert!(matches!(references.resolve(0, own), Ok(Target::Dialect(Draft::Draft202012))));
    }
}
