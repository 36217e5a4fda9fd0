//! types.py: TypedDicts and aliases, for a reader that supports Python 3.10 and has no typing_extensions.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use crate::model::{Def, Field, Model, Object, Type};
use crate::{NOTICE, capitalized};

const WIDTH: usize = 120;

pub(crate) fn emit(model: &Model) -> String {
    let mut out = format!(
        "\"\"\"The types of the protocol as they are on the wire: plain dictionaries, every key optional that some revision leaves out.\n\n\
         Keys a type does not name are kept by whoever passes the dictionary on.\n\"\"\"\n\n\
         # {NOTICE}\n\nfrom typing import Any, Literal, TypeAlias, TypedDict\n"
    );
    let mut emitter = Emitter::default();
    for def in model.in_dependency_order() {
        emitter.def(def);
    }
    out.push_str(&emitter.text);
    out.push_str(if emitter.after_class { "\n\n__all__ = [\n" } else { "\n__all__ = [\n" });
    let mut names: Vec<&str> = model.defs.keys().map(String::as_str).collect();
    names.sort_by_key(|name| sorting(name));
    for name in names {
        let _ = writeln!(out, "    \"{name}\",");
    }
    out.push_str("]\n");
    out
}

/// The order linters want in `__all__`: constants, then classes.
fn sorting(name: &str) -> (bool, &str) {
    (name.chars().any(|letter| letter.is_lowercase()), name)
}

#[derive(Default)]
struct Emitter {
    emitted: BTreeSet<String>,
    text: String,
    after_class: bool,
}

impl Emitter {
    /// Two blank lines around classes, one between assignments.
    fn gap(&mut self, class: bool) {
        self.text.push_str(if class || self.after_class { "\n\n" } else { "\n" });
        self.after_class = class;
    }

    fn def(&mut self, def: &Def) {
        match &def.body {
            Type::Object(object) if !is_plain(object) => self.class(&def.name, Some(&def.doc), object),
            body => {
                let mut doc = def.doc.clone();
                if let Type::Object(object) = body {
                    doc.push_str("\n\n");
                    for Field { key, doc: line, .. } in &object.fields {
                        let _ = writeln!(doc, "- `{key}`: {}", line.as_deref().unwrap_or("see the schema."));
                    }
                }
                let value = self.expression(body, &def.name);
                let line = assignment(&format!("{}: TypeAlias", def.name), &value);
                self.gap(false);
                let _ = write!(self.text, "{line}\n\"\"\"{doc}\"\"\"\n");
            }
        }
        self.emitted.insert(def.name.clone());
    }

    /// Required and optional keys in one TypedDict take two classes before Python 3.11, keys that are no identifiers
    /// the functional form.
    fn class(&mut self, name: &str, doc: Option<&str>, object: &Object) {
        let (odd, plain): (Vec<&Field>, Vec<&Field>) =
            object.fields.iter().partition(|field| !is_identifier(&field.key));
        let (required, optional): (Vec<&Field>, Vec<&Field>) = plain.into_iter().partition(|field| field.required);
        let mut base = "TypedDict".to_owned();
        for (total, suffix) in [(true, "Required"), (false, "Keys")] {
            let fields: Vec<(String, String)> = odd
                .iter()
                .filter(|field| field.required == total)
                .map(|field| (field.key.clone(), self.of_field(name, field)))
                .collect();
            if fields.is_empty() {
                continue;
            }
            let entries: Vec<String> = fields.iter().map(|(key, ty)| format!("{key:?}: {ty}")).collect();
            let tail = if total { "" } else { ", total=False" };
            let arguments = format!("\"_{name}{suffix}\", {{{}}}{tail}", entries.join(", "));
            let line = format!("_{name}{suffix} = TypedDict({arguments})");
            self.gap(false);
            if line.len() <= WIDTH {
                let _ = writeln!(self.text, "{line}");
            } else {
                let _ = writeln!(self.text, "_{name}{suffix} = TypedDict(\n    {arguments}\n)");
            }
            base = if base == "TypedDict" { format!("_{name}{suffix}") } else { format!("{base}, _{name}{suffix}") };
        }
        let required = self.lines(name, &required);
        let optional = self.lines(name, &optional);
        match (required.is_empty(), optional.is_empty()) {
            (false, false) => {
                self.gap(true);
                let _ = write!(self.text, "class _{name}({base}):\n{required}");
                self.head(name, &format!("_{name}, total=False"), doc, &optional);
            }
            (false, true) => self.head(name, &base, doc, &required),
            (true, _) => self.head(name, &format!("{base}, total=False"), doc, &optional),
        }
    }

    fn head(&mut self, name: &str, bases: &str, doc: Option<&str>, fields: &str) {
        self.gap(true);
        let _ = writeln!(self.text, "class {name}({bases}):");
        if let Some(doc) = doc {
            let _ = write!(self.text, "    \"\"\"{doc}\"\"\"\n\n");
        }
        self.text.push_str(fields);
    }

    fn lines(&mut self, name: &str, fields: &[&Field]) -> String {
        let mut lines = String::new();
        for field in fields {
            let ty = self.of_field(name, field);
            let _ = writeln!(lines, "    {}: {ty}", field.key);
            if let Some(doc) = &field.doc {
                let _ = writeln!(lines, "    \"\"\"{doc}\"\"\"");
            }
        }
        lines
    }

    fn of_field(&mut self, name: &str, field: &Field) -> String {
        self.expression(&field.ty, &format!("{name}{}", capitalized(&field.key)))
    }

    /// The type as an expression; an object in place becomes a class called `hint` before what is being written.
    fn expression(&mut self, ty: &Type, hint: &str) -> String {
        match ty {
            Type::Any => "Any".to_owned(),
            Type::Null => "None".to_owned(),
            Type::Bool => "bool".to_owned(),
            Type::Integer => "int".to_owned(),
            Type::Number => "float".to_owned(),
            Type::String => "str".to_owned(),
            Type::Literal(value) => format!("Literal[{}]", literal(value)),
            Type::Enum(values) => {
                let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
                format!("Literal[{}]", values.join(", "))
            }
            // Only the recursive JSON aliases name what comes later.
            Type::Ref(name) if self.emitted.contains(name) => name.clone(),
            Type::Ref(name) => format!("\"{name}\""),
            Type::Array(inner) => format!("list[{}]", self.expression(inner, hint)),
            Type::Map(inner) => format!("dict[str, {}]", self.expression(inner, hint)),
            Type::Object(object) if object.open => "dict[str, Any]".to_owned(),
            Type::Object(object) => {
                self.class(hint, None, object);
                hint.to_owned()
            }
            Type::Union(members) => {
                let members: Vec<String> = members.iter().map(|member| self.expression(member, hint)).collect();
                members.join(" | ")
            }
        }
    }
}

/// Open, and without required keys or with none that Python could spell: a TypedDict would only forbid what the schema
/// allows.
fn is_plain(object: &Object) -> bool {
    let fields = &object.fields;
    object.open && (fields.iter().all(|field| !field.required) || !fields.iter().any(|field| is_identifier(&field.key)))
}

fn assignment(target: &str, value: &str) -> String {
    if target.len() + 3 + value.len() <= WIDTH || !value.contains(" | ") {
        return format!("{target} = {value}");
    }
    format!("{target} = (\n    {}\n)", value.replace(" | ", "\n    | "))
}

fn literal(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        value => value.to_string(),
    }
}

fn is_identifier(key: &str) -> bool {
    const KEYWORDS: [&str; 6] = ["from", "import", "class", "None", "True", "False"];
    !KEYWORDS.contains(&key) && key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}
