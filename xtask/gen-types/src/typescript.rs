//! types.ts: interfaces and unions, no runtime code.

use std::fmt::Write;

use crate::NOTICE;
use crate::model::{Field, Model, Object, Type};

const WIDTH: usize = 120;

pub(crate) fn emit(model: &Model) -> String {
    let mut out = format!(
        "// {NOTICE}\n\n/**\n * The types of the protocol as they are on the wire; every property is optional that some revision leaves out.\n\
         \x20* Properties a type does not name are kept by whoever passes the object on.\n *\n * @module\n */\n"
    );
    for def in model.defs.values() {
        let _ = write!(out, "\n/** {} */\n", def.doc);
        match &def.body {
            Type::Object(object) => {
                let _ = writeln!(out, "export interface {} {}", def.name, block(object, 0));
            }
            Type::Map(inner) => {
                let _ =
                    writeln!(out, "export interface {} {{\n  [key: string]: {};\n}}", def.name, expression(inner, 1));
            }
            body => {
                let _ = writeln!(out, "{}", alias(&def.name, body));
            }
        }
    }
    out
}

fn alias(name: &str, body: &Type) -> String {
    let line = format!("export type {name} = {};", expression(body, 0));
    match body {
        Type::Union(members) if line.len() > WIDTH => {
            let members: Vec<String> = members.iter().map(|member| expression(member, 1)).collect();
            format!("export type {name} =\n  | {};", members.join("\n  | "))
        }
        Type::Enum(values) if line.len() > WIDTH => {
            format!(
                "export type {name} =\n  | {};",
                values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join("\n  | ")
            )
        }
        _ => line,
    }
}

fn block(object: &Object, depth: usize) -> String {
    let indent = "  ".repeat(depth + 1);
    let mut out = "{\n".to_owned();
    for Field { key, ty, required, doc } in &object.fields {
        if let Some(doc) = doc {
            let _ = writeln!(out, "{indent}/** {doc} */");
        }
        let key = if key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$') {
            key.clone()
        } else {
            format!("{key:?}")
        };
        let _ = writeln!(out, "{indent}{key}{}: {};", if *required { "" } else { "?" }, expression(ty, depth + 1));
    }
    if object.open {
        let _ = writeln!(out, "{indent}[key: string]: unknown;");
    }
    let _ = write!(out, "{}}}", "  ".repeat(depth));
    out
}

fn expression(ty: &Type, depth: usize) -> String {
    match ty {
        Type::Any => "unknown".to_owned(),
        Type::Null => "null".to_owned(),
        Type::Bool => "boolean".to_owned(),
        Type::Integer | Type::Number => "number".to_owned(),
        Type::String => "string".to_owned(),
        Type::Literal(value) => value.to_string(),
        Type::Enum(values) => values.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>().join(" | "),
        Type::Ref(name) => name.clone(),
        Type::Array(inner) => match **inner {
            Type::Union(_) | Type::Enum(_) => format!("({})[]", expression(inner, depth)),
            _ => format!("{}[]", expression(inner, depth)),
        },
        Type::Map(inner) => format!("{{ [key: string]: {} }}", expression(inner, depth)),
        Type::Object(object) => block(object, depth),
        Type::Union(members) => members.iter().map(|member| expression(member, depth)).collect::<Vec<_>>().join(" | "),
    }
}
