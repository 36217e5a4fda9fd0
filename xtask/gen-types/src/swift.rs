//! Types.swift: structs that keep the fields they do not know, enums that keep the members they do not know.
//!
//! All of it lies in the namespace `Types`: the schema's `Error`, `Result`, `Task` and `Notification` would otherwise
//! hide Swift's own. The hand-written half is Wire.swift.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::model::{Field, Model, Object, Type};
use crate::{NOTICE, capitalized};

/// Types that JSON.swift already has.
const BUILT_IN: [&str; 2] = ["JSONValue", "JSONObject"];

pub(crate) fn emit(model: &Model) -> Result<String> {
    let mut out = format!(
        "// {NOTICE}\n// swift-format-ignore-file\n\n/// The types of the protocol as they are on the wire; every property is optional that some revision leaves out.\n\
         /// Fields and members of unions that a type does not name are kept: decoding and encoding loses nothing.\n\
         public enum Types {{\n"
    );
    let emitter = Emitter { model, enums: recurring_enums(model) };
    let mut first = true;
    for def in model.defs.values().filter(|def| !BUILT_IN.contains(&def.name.as_str())) {
        emitter.declare(&mut out, &def.name, Some(&def.doc), &def.body, 1, &mut first)?;
    }
    for (name, members) in &model.unions {
        let doc = members.iter().map(|member| format!("`{member}`")).collect::<Vec<_>>().join(" or ");
        let body = Type::Union(members.iter().cloned().map(Type::Ref).collect());
        emitter.declare(
            &mut out,
            name,
            Some(&format!("{doc}; a union without a name in the schema.")),
            &body,
            1,
            &mut first,
        )?;
    }
    for (name, values) in &emitter.enums {
        emitter.declare(&mut out, name, None, &Type::Enum(values.clone()), 1, &mut first)?;
    }
    out.push_str("}\n");
    Ok(out)
}

/// CorpusTypes.swift: the types of the corpus by name, for the tests.
pub(crate) fn corpus_types(names: &BTreeSet<&str>) -> String {
    let mut out = format!(
        "// {NOTICE}\n// swift-format-ignore-file\n\n@testable import Tricorn\n\nlet corpusTypes: [String: any WireValue.Type] = [\n"
    );
    for name in names {
        let _ = writeln!(out, "    \"{name}\": Types.{name}.self,");
    }
    out.push_str("]\n");
    out
}

/// The enums that several types write out in place for a property of the same name, by that name.
fn recurring_enums(model: &Model) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    let objects =
        model.defs.values().filter_map(|def| if let Type::Object(object) = &def.body { Some(object) } else { None });
    for field in objects.flat_map(|object| &object.fields) {
        if let Type::Enum(values) = &field.ty {
            *found.entry((capitalized(&field.key), values.clone())).or_insert(0) += 1;
        }
    }
    found.into_iter().filter(|(_, count)| *count > 1).map(|(key, _)| key).collect()
}

/// A type that has to be declared beside its use.
struct Nested<'a> {
    name: String,
    body: &'a Type,
}

struct Emitter<'a> {
    model: &'a Model,
    enums: BTreeMap<String, Vec<String>>,
}

impl Emitter<'_> {
    fn declare(
        &self,
        out: &mut String,
        name: &str,
        doc: Option<&str>,
        body: &Type,
        depth: usize,
        first: &mut bool,
    ) -> Result<()> {
        if !std::mem::take(first) {
            out.push('\n');
        }
        let mut text = String::new();
        if let Some(doc) = doc {
            let _ = writeln!(text, "/// {doc}");
        }
        match body {
            Type::Object(object) => self.structure(&mut text, name, object)?,
            Type::Enum(values) => open_enum(&mut text, name, values),
            Type::Union(members) => self.union(&mut text, name, members)?,
            body => {
                let mut nested = Vec::new();
                let value = self.ty(body, &format!("{name}Item"), &mut nested);
                let _ = writeln!(text, "public typealias {name} = {value}");
                for Nested { name, body } in nested {
                    self.declare(&mut text, &name, None, body, 0, &mut false)?;
                }
            }
        }
        let indent = "    ".repeat(depth);
        for line in text.lines() {
            let _ = if line.is_empty() { writeln!(out) } else { writeln!(out, "{indent}{line}") };
        }
        Ok(())
    }

    fn structure(&self, out: &mut String, name: &str, object: &Object) -> Result<()> {
        let mut nested = Vec::new();
        let fields: Vec<Property> = object.fields.iter().map(|field| self.property(field, &mut nested)).collect();
        let _ = writeln!(
            out,
            "public struct {name}: _WireObject, WireValue {{\n    public static let rules: [_WireRule] = ["
        );
        for Property { key, ty, kind, constant, values, .. } in &fields {
            let _ = match kind {
                Kind::Constant => writeln!(out, "        .constant(\"{key}\", {constant}),"),
                Kind::Required if key == "type" && !values.is_empty() => {
                    writeln!(out, "        .tag(\"{key}\", {values:?}),")
                }
                Kind::Required => writeln!(out, "        .required(\"{key}\", {ty}.self),"),
                Kind::Optional => writeln!(out, "        .optional(\"{key}\", {ty}.self),"),
                Kind::Nullable => writeln!(out, "        .nullable(\"{key}\", {ty}.self),"),
            };
        }
        out.push_str("    ]\n    public private(set) var fields: _WireFields\n    public init(fields: _WireFields) { self.fields = fields }\n\n");
        initializer(out, &fields);
        for Property { key, name, ty, kind, constant, doc, .. } in &fields {
            // Every message has the same `jsonrpc`.
            if *kind == Kind::Constant && key == "jsonrpc" {
                continue;
            }
            if let Some(doc) = doc {
                let _ = writeln!(out, "    /// {doc}");
            }
            let (ty, get, set) = match kind {
                Kind::Constant => {
                    let _ = writeln!(out, "    public var {name}: {ty} {{ {constant} }}");
                    continue;
                }
                Kind::Required => (ty.clone(), "required", ""),
                Kind::Optional => (format!("{ty}?"), "optional", ""),
                Kind::Nullable => (format!("{ty}?"), "optional", "nullable: "),
            };
            let (get, set) = (
                format!("get {{ fields.{get}(\"{key}\") }}"),
                format!("set {{ fields.put({set}\"{key}\", newValue) }}"),
            );
            let line = format!("    public var {name}: {ty} {{ {get} {set} }}");
            if line.len() + 4 <= 120 {
                let _ = writeln!(out, "{line}");
            } else {
                let _ = writeln!(out, "    public var {name}: {ty} {{\n        {get}\n        {set}\n    }}");
            }
        }
        for Nested { name, body } in nested {
            self.declare(out, &name, None, body, 1, &mut false)?;
        }
        out.push_str("}\n");
        Ok(())
    }

    fn property<'a>(&self, field: &'a Field, nested: &mut Vec<Nested<'a>>) -> Property {
        let hint = match capitalized(&field.key).as_str() {
            "Type" => "Kind".to_owned(),
            name => name.to_owned(),
        };
        let (kind, ty, constant) = match &field.ty {
            Type::Literal(value) if field.required => (Kind::Constant, scalar(value), value.to_string()),
            Type::Literal(value) => (Kind::Optional, scalar(value), String::new()),
            Type::Union(members) if field.required && members.len() == 2 && members[1] == Type::Null => {
                (Kind::Nullable, self.ty(&members[0], &hint, nested), String::new())
            }
            ty => (
                if field.required { Kind::Required } else { Kind::Optional },
                self.ty(ty, &hint, nested),
                String::new(),
            ),
        };
        let values = if let Type::Enum(values) = &field.ty { values.clone() } else { Vec::new() };
        let (key, name, doc) = (field.key.clone(), property_name(&field.key), field.doc.clone());
        Property { key, name, kind, ty, constant, values, doc }
    }

    /// The type by name; what has none yet is put into `nested` under `hint`.
    fn ty<'a>(&self, ty: &'a Type, hint: &str, nested: &mut Vec<Nested<'a>>) -> String {
        match ty {
            Type::Any | Type::Null => "JSONValue".to_owned(),
            Type::Bool => "Bool".to_owned(),
            Type::Integer => "Int".to_owned(),
            Type::Number => "Double".to_owned(),
            Type::String => "String".to_owned(),
            Type::Literal(value) => scalar(value),
            Type::Ref(name) => name.clone(),
            Type::Array(inner) => format!("[{}]", self.ty(inner, hint, nested)),
            Type::Map(inner) => match self.ty(inner, hint, nested).as_str() {
                "JSONValue" => "JSONObject".to_owned(),
                inner => format!("[String: {inner}]"),
            },
            Type::Object(object) if object.open => "JSONObject".to_owned(),
            Type::Union(members) if members.iter().all(is_scalar) => "JSONValue".to_owned(),
            Type::Enum(values) if self.enums.get(hint) == Some(values) => hint.to_owned(),
            Type::Union(members) if self.name_of(members).is_some() => self.name_of(members).unwrap_or_default(),
            Type::Object(_) | Type::Enum(_) | Type::Union(_) => {
                nested.push(Nested { name: hint.to_owned(), body: ty });
                hint.to_owned()
            }
        }
    }

    fn name_of(&self, members: &[Type]) -> Option<String> {
        let names: Vec<&String> =
            members.iter().filter_map(|member| if let Type::Ref(name) = member { Some(name) } else { None }).collect();
        let found = self.model.unions.iter().find(|(_, union)| union.iter().collect::<Vec<_>>() == names)?;
        Some(found.0.clone())
    }

    fn union(&self, out: &mut String, name: &str, members: &[Type]) -> Result<()> {
        let mut nested = Vec::new();
        if members.iter().all(|member| matches!(member, Type::String | Type::Integer)) {
            let _ = write!(
                out,
                "public enum {name}: _WireScalar, WireValue {{\n    case string(String)\n    case int(Int)\n\n    public var json: JSONValue {{\n        \
                 switch self {{\n        case .string(let value): .string(value)\n        case .int(let value): .int(value)\n        }}\n    }}\n}}\n"
            );
            return Ok(());
        }
        let types: Vec<String> = members.iter().map(|member| self.ty(member, name, &mut nested)).collect();
        ensure!(nested.is_empty(), "{name}: a union of objects without names");
        let cases = self.cases(members, &types);
        let _ = writeln!(out, "public enum {name}: _WireUnion, WireValue {{");
        for (case, ty) in cases.iter().zip(&types) {
            let _ = writeln!(out, "    case {case}({ty})");
        }
        out.push_str("    case other(JSONValue)\n\n");
        let order = match self.tag(members) {
            Some((key, values)) => {
                let _ = writeln!(out, "    public static let members = _WireMembers(tag: \"{key}\", [");
                for (value, ty) in values.iter().zip(&types) {
                    let _ = writeln!(out, "        {value:?}: {ty}.self,");
                }
                out.push_str("    ])\n\n");
                (0..members.len()).collect()
            }
            None => {
                let order = self.by_strictness(members);
                out.push_str("    public static let members = _WireMembers([\n");
                let mut marks = Vec::new();
                for (position, index) in order.iter().enumerate() {
                    let _ = writeln!(out, "        {}.self,", types[*index]);
                    if let Type::Ref(member) = &members[*index]
                        && let Some(key) = self.model.marks.get(member)
                    {
                        marks.push(format!("{position}: \"{key}\""));
                    }
                }
                let marks = if marks.is_empty() { String::new() } else { format!(", marks: [{}]", marks.join(", ")) };
                let _ = writeln!(out, "    ]{marks})\n");
                order
            }
        };
        out.push_str("    public init(_ match: _WireMatch) {\n        switch match.index {\n");
        for (position, index) in order.iter().enumerate() {
            let _ = writeln!(out, "        case {position}: self = .{}(.init(checked: match.json))", cases[*index]);
        }
        out.push_str("        default: self = .other(match.json)\n        }\n");
        out.push_str("    }\n\n    public var json: JSONValue {\n        switch self {\n");
        for case in &cases {
            let _ = writeln!(out, "        case .{case}(let value): value.json");
        }
        out.push_str("        case .other(let json): json\n        }\n    }\n}\n");
        Ok(())
    }

    /// Names of the cases: the tag where it is `type`, else the type without what all have in common.
    fn cases(&self, members: &[Type], types: &[String]) -> Vec<String> {
        if let [one, Type::Array(many)] = members
            && **many == *one
        {
            return vec!["one".to_owned(), "many".to_owned()];
        }
        if let Some(("type", values)) = self.tag(members).as_ref().map(|(key, values)| (key.as_str(), values)) {
            return values.iter().map(|value| lower(&capitalized(value))).collect();
        }
        let suffix = ["Request", "Notification", "Result", "EnumSchema", "Schema", "ResourceContents"]
            .into_iter()
            .find(|suffix| types.iter().all(|ty| ty.ends_with(suffix)))
            .unwrap_or_default();
        let short = |ty: &String| {
            let ty = ty.strip_suffix(suffix).filter(|rest| !rest.is_empty()).unwrap_or(ty);
            lower(ty.strip_prefix("JSONRPC").unwrap_or(ty))
        };
        types.iter().map(short).collect()
    }

    /// The property that has a different constant in every member.
    fn tag(&self, members: &[Type]) -> Option<(String, Vec<String>)> {
        ["method", "type", "mode"].into_iter().find_map(|key| {
            let values = members.iter().map(|member| self.constant(member, key)).collect::<Option<Vec<_>>>()?;
            let mut distinct = values.clone();
            distinct.sort();
            distinct.dedup();
            (distinct.len() == values.len()).then(|| (key.to_owned(), values))
        })
    }

    fn constant(&self, ty: &Type, key: &str) -> Option<String> {
        let field = self.model.object(ty)?.fields.iter().find(|field| field.key == key && field.required)?;
        match &field.ty {
            Type::Literal(Value::String(value)) => Some(value.clone()),
            _ => None,
        }
    }

    /// Members with a mark first, then those that require most: the first one that fits is meant.
    fn by_strictness(&self, members: &[Type]) -> Vec<usize> {
        let strictness = |index: &usize| {
            let marked = matches!(&members[*index], Type::Ref(name) if self.model.marks.contains_key(name));
            let required = self
                .model
                .object(&members[*index])
                .map_or(0, |object| object.fields.iter().filter(|field| field.required).count());
            (marked, required)
        };
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(strictness(index)));
        order
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Constant,
    Required,
    Optional,
    /// Required, but may be null.
    Nullable,
}

struct Property {
    key: String,
    name: String,
    kind: Kind,
    ty: String,
    constant: String,
    /// The values of an enum.
    values: Vec<String>,
    doc: Option<String>,
}

/// The initializer with a parameter for each field.
fn initializer(out: &mut String, fields: &[Property]) {
    let mut parameters = Vec::new();
    let mut body = String::new();
    for Property { key, name, ty, kind, constant, .. } in fields {
        match kind {
            Kind::Constant => {
                let _ = writeln!(body, "        fields.put(\"{key}\", {constant} as {ty})");
                continue;
            }
            Kind::Required => parameters.push(format!("{name}: {ty}")),
            Kind::Optional => parameters.push(format!("{name}: {ty}? = nil")),
            Kind::Nullable => parameters.push(format!("{name}: {ty}?")),
        }
        let nullable = if *kind == Kind::Nullable { "nullable: " } else { "" };
        let _ = writeln!(body, "        fields.put({nullable}\"{key}\", {name})");
    }
    let line = format!("    public init({}) {{", parameters.join(", "));
    if line.len() <= 116 {
        let _ = writeln!(out, "{line}");
    } else {
        let _ = writeln!(out, "    public init(\n        {}\n    ) {{", parameters.join(",\n        "));
    }
    let _ = write!(out, "        fields = _WireFields()\n{body}    }}\n\n");
}

fn open_enum(out: &mut String, name: &str, values: &[String]) {
    let _ = writeln!(out, "public struct {name}: _WireString, WireValue {{");
    for value in values {
        let _ = writeln!(
            out,
            "    public static let {} = {name}(rawValue: {value:?})",
            escaped(&lower(&capitalized(value)))
        );
    }
    out.push_str(
        "\n    public let rawValue: String\n    public init(rawValue: String) { self.rawValue = rawValue }\n}\n",
    );
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Array(inner) => is_scalar(inner),
        ty => matches!(ty, Type::Any | Type::Null | Type::Bool | Type::Integer | Type::Number | Type::String),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Bool(_) => "Bool",
        Value::Number(_) => "Int",
        _ => "String",
    }
    .to_owned()
}

fn property_name(key: &str) -> String {
    escaped(&lower(&capitalized(key)))
}

fn escaped(name: &str) -> String {
    const KEYWORDS: [&str; 10] = ["default", "enum", "init", "is", "as", "in", "self", "protocol", "private", "public"];
    if KEYWORDS.contains(&name) { format!("`{name}`") } else { name.to_owned() }
}

fn lower(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
