//! Model that the emitters work from: the merged definitions as types, without JSON Schema.
//!
//! Invariant: the same for all target languages; features that a language lacks are its emitter's business.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::docs::Docs;
use crate::schema::{Definitions, Schemas};

/// A type as it occurs in a property, an element or an alias.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Any,
    Null,
    Bool,
    Integer,
    Number,
    String,
    /// Exactly this value.
    Literal(Value),
    /// One of these strings.
    Enum(Vec<String>),
    /// Another definition.
    Ref(String),
    Array(Box<Self>),
    /// Any keys, values of one type.
    Map(Box<Self>),
    /// An object without a name of its own.
    Object(Object),
    Union(Vec<Self>),
}

/// An object with named fields; `open` when the schema itself invites further keys.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Object {
    pub(crate) fields: Vec<Field>,
    pub(crate) open: bool,
}

/// One field of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) ty: Type,
    pub(crate) required: bool,
    pub(crate) doc: Option<String>,
}

/// A named definition.
#[derive(Debug, Clone)]
pub(crate) struct Def {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) body: Type,
}

/// All definitions by name, and what the overlay adds for unions.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) defs: BTreeMap<String, Def>,
    /// A key that tells a member of an untagged union from another with the same required keys.
    pub(crate) marks: BTreeMap<String, String>,
    /// Names for unions that are written out in place.
    pub(crate) unions: BTreeMap<String, Vec<String>>,
}

impl Model {
    /// Lowers the merged definitions.
    pub(crate) fn new(schemas: &Schemas, docs: &Docs) -> Result<Self> {
        let mut defs = BTreeMap::new();
        for (name, definition) in &schemas.merged {
            let lowering = Lowering { definitions: &schemas.merged, docs, schemas };
            let body = lowering.ty(definition, name).with_context(|| format!("definition {name}"))?;
            let doc = docs.of_type(name, &body, schemas);
            defs.insert(name.clone(), Def { name: name.clone(), doc, body });
        }
        Ok(Self { defs, marks: schemas.overlay.marks.clone(), unions: schemas.overlay.unions.clone() })
    }

    /// Definitions so that each comes after those it refers to; a cycle is broken at an arbitrary but fixed place.
    pub(crate) fn in_dependency_order(&self) -> Vec<&Def> {
        fn visit<'a>(model: &'a Model, name: &'a str, seen: &mut BTreeSet<&'a str>, order: &mut Vec<&'a Def>) {
            if !seen.insert(name) {
                return;
            }
            let Some(def) = model.defs.get(name) else { return };
            def.body.refs(&mut |inner| visit(model, inner, seen, order));
            order.push(def);
        }
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in self.defs.keys() {
            visit(self, name, &mut seen, &mut order);
        }
        order
    }

    /// The object behind a type, through names.
    pub(crate) fn object<'a>(&'a self, ty: &'a Type) -> Option<&'a Object> {
        match ty {
            Type::Object(object) => Some(object),
            Type::Ref(name) => self.object(&self.defs.get(name)?.body),
            _ => None,
        }
    }
}

impl Type {
    /// Calls `f` with every definition this type names.
    pub(crate) fn refs<'a>(&'a self, f: &mut dyn FnMut(&'a str)) {
        match self {
            Self::Ref(name) => f(name),
            Self::Array(inner) | Self::Map(inner) => inner.refs(f),
            Self::Object(object) => object.fields.iter().for_each(|field| field.ty.refs(f)),
            Self::Union(members) => members.iter().for_each(|member| member.refs(f)),
            _ => {}
        }
    }
}

struct Lowering<'a> {
    definitions: &'a Definitions,
    docs: &'a Docs,
    schemas: &'a Schemas,
}

impl Lowering<'_> {
    /// `place` is the name of the definition, or "Type.property" inside it.
    fn ty(&self, schema: &Value, place: &str) -> Result<Type> {
        let Value::Object(schema) = schema else { bail!("{place}: not an object schema") };
        if let Some(target) = schema.get("$ref") {
            return Ok(Type::Ref(reference(target)?.to_owned()));
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            return Ok(Type::Object(self.all_of(parts, place)?));
        }
        if let Some(Value::Array(members)) = schema.get("anyOf") {
            let members = members.iter().map(|member| self.ty(member, place)).collect::<Result<Vec<_>>>()?;
            return Ok(union(members));
        }
        if let Some(value) = schema.get("const") {
            return Ok(Type::Literal(value.clone()));
        }
        if let Some(values) = schema.get("enum") {
            return Ok(Type::Enum(
                serde_json::from_value(values.clone()).with_context(|| format!("{place}: enum of strings"))?,
            ));
        }
        match schema.get("type") {
            None => Ok(Type::Any),
            Some(Value::String(name)) => self.of_kind(name, schema, place),
            Some(Value::Array(names)) => {
                let members = names.iter().map(|name| self.of_kind(name.as_str().unwrap_or_default(), schema, place));
                Ok(union(members.collect::<Result<Vec<_>>>()?))
            }
            Some(other) => bail!("{place}: type {other}"),
        }
    }

    fn of_kind(&self, kind: &str, schema: &Map<String, Value>, place: &str) -> Result<Type> {
        Ok(match kind {
            "null" => Type::Null,
            "boolean" => Type::Bool,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "string" => Type::String,
            "array" => Type::Array(Box::new(match schema.get("items") {
                Some(items) => self.ty(items, place)?,
                None => Type::Any,
            })),
            "object" => {
                let object = self.object(schema, place)?;
                if object.fields.is_empty() {
                    let values = match schema.get("additionalProperties") {
                        Some(rest @ Value::Object(_)) => self.ty(rest, place)?,
                        _ => Type::Any,
                    };
                    Type::Map(Box::new(values))
                } else {
                    Type::Object(object)
                }
            }
            other => bail!("{place}: unknown type {other}"),
        })
    }

    fn object(&self, schema: &Map<String, Value>, place: &str) -> Result<Object> {
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let mut fields = Vec::new();
        for (key, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            fields.push(Field {
                key: key.clone(),
                ty: self.ty(property, &format!("{place}.{key}"))?,
                required: required.contains(&key.as_str()),
                doc: self.docs.of_property(place, key, self.schemas),
            });
        }
        sort(&mut fields);
        let open = !matches!(schema.get("additionalProperties"), None | Some(Value::Bool(false)));
        Ok(Object { fields, open })
    }

    /// All parts as one object; where two have a field of the same name, the later one wins.
    fn all_of(&self, parts: &[Value], place: &str) -> Result<Object> {
        let mut whole = Object::default();
        for part in parts {
            let part = match part.get("$ref") {
                Some(target) => {
                    let name = reference(target)?;
                    let definition =
                        self.definitions.get(name).with_context(|| format!("{place}: no definition {name}"))?;
                    self.ty(definition, name)?
                }
                None => self.ty(part, place)?,
            };
            let Type::Object(part) = part else { bail!("{place}: allOf of something else than objects") };
            whole.open |= part.open;
            for field in part.fields {
                whole.fields.retain(|old| old.key != field.key);
                whole.fields.push(field);
            }
        }
        sort(&mut whole.fields);
        Ok(whole)
    }
}

fn union(members: Vec<Type>) -> Type {
    match <[Type; 1]>::try_from(members) {
        Ok([only]) => only,
        Err(members) => Type::Union(members),
    }
}

fn reference(target: &Value) -> Result<&str> {
    let path = target.as_str().context("$ref is no string")?;
    path.rsplit('/').next().context("empty $ref")
}

/// Required first, then what names and tags the object, then by name, `_meta` last: the order of declarations.
fn sort(fields: &mut [Field]) {
    const LEAD: [&str; 17] = [
        "jsonrpc",
        "id",
        "method",
        "params",
        "result",
        "error",
        "resultType",
        "type",
        "mode",
        "role",
        "uri",
        "uriTemplate",
        "name",
        "title",
        "description",
        "code",
        "message",
    ];
    fields.sort_by_key(|field| {
        let lead = LEAD.iter().position(|key| *key == field.key).unwrap_or(LEAD.len());
        (!field.required, field.key == "_meta", lead, field.key.clone())
    });
}
