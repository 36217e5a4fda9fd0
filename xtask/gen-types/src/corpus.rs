//! tests/corpus/index.json: every example, its type, and what may be expected of a round trip in each language.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::model::{Model, Object, Type};
use crate::{files, schema::REVISIONS};

/// The cases of the corpus.
pub(crate) struct Corpus {
    cases: Vec<Value>,
}

impl Corpus {
    /// index.json.
    pub(crate) fn index(&self) -> String {
        let lines: Vec<String> = self.cases.iter().map(|case| format!("    {case}")).collect();
        format!("{{\n  \"note\": {:?},\n  \"cases\": [\n{}\n  ]\n}}\n", crate::NOTICE, lines.join(",\n"))
    }

    /// The types that have a case.
    pub(crate) fn types(&self) -> BTreeSet<&str> {
        self.cases.iter().filter_map(|case| case["type"].as_str()).collect()
    }
}

/// Lists the official examples and our own cases. Fails when a folder names no type or an official example does not
/// fit its type: then the generated types are wrong.
pub(crate) fn read(root: &Path, model: &Model) -> Result<Corpus> {
    let mut cases = Vec::new();
    for (folder, official) in [("schema/examples", true), ("tests/corpus", false)] {
        for name in files(&root.join(folder), "json")? {
            if name == "index.json" {
                continue;
            }
            let file = format!("{folder}/{name}");
            cases.push(case(root, model, &file, &name, official).context(file)?);
        }
    }
    Ok(Corpus { cases })
}

fn case(root: &Path, model: &Model, file: &str, name: &str, official: bool) -> Result<Value> {
    let parts: Vec<&str> = name.split('/').collect();
    let [revision, ty, _] = parts[..] else { anyhow::bail!("not <revision>/<Type>/<name>.json") };
    ensure!(REVISIONS.contains(&revision), "no revision {revision}");
    ensure!(model.defs.contains_key(ty), "no type {ty}");
    let text = fs::read_to_string(root.join(file))?;
    let value: Value = serde_json::from_str(&text)?;
    let typed = fits(model, &Type::Ref(ty.to_owned()), &value);
    ensure!(typed || !official, "does not fit the generated type");
    let numbers = numbers(&text);
    let mut inexact = Vec::new();
    if numbers.iter().any(|number| !exact_as_double(number)) {
        inexact.push("node");
    }
    if numbers.iter().any(|number| is_whole(number) && number.parse::<i64>().is_err()) {
        inexact.push("swift");
    }
    let message = value.get("jsonrpc").is_some();
    Ok(json!({
        "file": file, "revision": revision, "type": ty, "official": official, "message": message, "typed": typed,
        "inexact_in": inexact,
    }))
}

/// Returns true if a value has this type, fields that the type does not name aside.
fn fits(model: &Model, ty: &Type, value: &Value) -> bool {
    match ty {
        Type::Any => true,
        Type::Null => value.is_null(),
        Type::Bool => value.is_boolean(),
        Type::Integer => value.is_i64() || value.is_u64(),
        Type::Number => value.is_number(),
        Type::String => value.is_string(),
        Type::Literal(expected) => value == expected,
        Type::Enum(values) => value.as_str().is_some_and(|value| values.iter().any(|known| known == value)),
        Type::Ref(name) => model.defs.get(name).is_some_and(|def| fits(model, &def.body, value)),
        Type::Array(inner) => value.as_array().is_some_and(|items| items.iter().all(|item| fits(model, inner, item))),
        Type::Map(inner) => {
            value.as_object().is_some_and(|object| object.values().all(|item| fits(model, inner, item)))
        }
        Type::Object(Object { fields, .. }) => value.as_object().is_some_and(|object| {
            fields
                .iter()
                .all(|field| object.get(&field.key).map_or(!field.required, |value| fits(model, &field.ty, value)))
        }),
        Type::Union(members) => members.iter().any(|member| fits(model, member, value)),
    }
}

/// The numbers of a JSON text as they are written.
fn numbers(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter == '"' || letter == '-' || letter.is_ascii_digit()) {
        rest = &rest[start..];
        let end = if rest.starts_with('"') { end_of_string(rest) } else { end_of_number(rest) };
        if !rest.starts_with('"') {
            found.push(&rest[..end]);
        }
        rest = &rest[end..];
    }
    found
}

fn end_of_string(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, letter)| {
        let closes = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        closes
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

fn end_of_number(text: &str) -> usize {
    text.find(|letter: char| !matches!(letter, '-' | '+' | '.' | 'e' | 'E' | '0'..='9')).unwrap_or(text.len())
}

fn is_whole(number: &str) -> bool {
    !number.contains(['.', 'e', 'E'])
}

/// Returns true if the number, read as a double and written as JavaScript does, gives the same text.
fn exact_as_double(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(|double| double.abs() < 1e21 && format!("{double}") == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_outside_of_strings() {
        assert_eq!(numbers(r#"{"a1": [-1, 2.50, "3 \" 4"], "\\": 1e-7}"#), ["-1", "2.50", "1e-7"]);
    }

    #[test]
    fn a_double_keeps_some_numbers() {
        for number in ["0", "-1", "0.1", "9007199254740992", "100000000000000000000"] {
            assert!(exact_as_double(number), "{number}");
        }
        for number in ["1.0", "9007199254740993", "1e2", "1000000000000000000000"] {
            assert!(!exact_as_double(number), "{number}");
        }
    }
}
