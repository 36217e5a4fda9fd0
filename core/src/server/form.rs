//! Forms that are made before anybody is asked.

use std::ops::Deref;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::model::check_schema;
use crate::model::form::check_form;

/// A form of [`Context::elicit`](crate::Context::elicit), checked when it is made: what no client could show stops the
/// program where the form is written, and not the first user that would see it.
///
/// ```
/// # use serde::Deserialize;
/// # use schemars::JsonSchema;
/// use tricorn::server::Form;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Booking { name: String, seats: u32 }
///
/// let booking = Form::of::<Booking>()?; // where the server is built
/// # Ok::<(), tricorn::Error>(())
/// ```
/// A handler that has it asks by `cx.elicit("A table?", &booking)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Form(Value);

impl Form {
    /// The form of a JSON Schema: of an object whose properties are text, numbers, booleans and choices (specification,
    /// elicitation, "Requested Schema").
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) that names the property and what to do.
    pub fn new(schema: Value) -> Result<Self> {
        check_schema(&schema).map_err(|why| Error::misuse(format!("elicit: {why}")))?;
        check_form(&schema).map_err(Error::misuse)?;
        Ok(Self(schema))
    }

    /// The form of a struct of text, numbers, booleans and enums without fields.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of<T: JsonSchema>() -> Result<Self> {
        Self::new(form_of::<T>())
    }
}

/// Its schema.
impl Deref for Form {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

/// The JSON Schema of a form: an object of primitives, written out.
pub(super) fn form_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.meta_schema = None;
        s.inline_subschemas = true;
    });
    let mut form = SchemaGenerator::new(settings.for_deserialize()).into_root_schema_for::<T>().to_value();
    let Some(members) = form.as_object_mut() else { return form };
    members.retain(|key, _| matches!(key.as_str(), "type" | "properties" | "required"));
    let properties = members.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flatten().filter_map(|(_, property)| property.as_object_mut()) {
        // An answer that may be missing is not required, and `null` is no answer.
        if let Some(Value::Array(any)) = property.get("anyOf") {
            let some: Vec<&Value> = any.iter().filter(|one| one["type"] != "null").collect();
            if let [Value::Object(one)] = some.as_slice() {
                let one = one.clone();
                property.shift_remove("anyOf");
                property.extend(one);
            }
        }
        if let Some(Value::Array(types)) = property.get("type") {
            let mut named = types.iter().filter(|name| *name != "null").cloned().collect::<Vec<_>>();
            if named.len() == 1 {
                property.insert("type".into(), named.remove(0));
            }
        }
        if let Some(Value::Array(values)) = property.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
        // Those of numbers are this crate's dialect, not the form's.
        let known = ["email", "uri", "date", "date-time"];
        if property.get("format").and_then(Value::as_str).is_some_and(|format| !known.contains(&format)) {
            property.shift_remove("format");
        }
        if property.get("default").is_some_and(Value::is_null) {
            property.shift_remove("default");
        }
        if let Some(Value::Array(choices)) = property.get_mut("oneOf") {
            // Choices without words of their own come together.
            let each = |choice: Value| match choice.get("enum").and_then(Value::as_array) {
                Some(values) => values.iter().map(|value| json!({"const": value})).collect(),
                None => vec![choice],
            };
            *choices = std::mem::take(choices).into_iter().flat_map(each).collect();
        }
        for choice in property.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(choice) = choice.as_object_mut() else { continue };
            choice.shift_remove("type");
            let title = choice.shift_remove("description").or_else(|| choice.get("const").cloned());
            if let Some(title) = title {
                choice.entry("title").or_insert(title);
            }
        }
        if property.contains_key("oneOf") {
            property.insert("type".into(), "string".into());
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn a_type_becomes_a_form() {
        /// Paint.
        #[derive(Deserialize, JsonSchema)]
        enum Colour {
            /// Like a rose
            Red,
            /// Like the sky
            Blue,
        }
        #[derive(Deserialize, JsonSchema)]
        enum Size {
            Small,
            Large,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        struct Answers {
            name: String,
            age: Option<u32>,
            colour: Colour,
            size: Option<Size>,
        }
        assert_eq!(
            form_of::<Answers>(),
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "age": {"type": "integer", "minimum": 0},
                    "colour": {
                        "description": "Paint.",
                        "oneOf": [
                            {"const": "Red", "title": "Like a rose"},
                            {"const": "Blue", "title": "Like the sky"},
                        ],
                        "type": "string",
                    },
                    "size": {"type": "string", "enum": ["Small", "Large"]},
                },
                "required": ["name", "colour"],
            })
        );
        assert_eq!(check_form(&form_of::<Answers>()), Ok(()));
    }

    #[test]
    fn choices_with_and_without_words_are_all_choices() {
        #[derive(Deserialize, JsonSchema)]
        enum Tone {
            Plain,
            Formal,
            /// Among friends
            Friendly,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        struct Answers {
            tone: Tone,
        }
        let form = form_of::<Answers>();
        let choice = |value: &str, title: &str| json!({"const": value, "title": title});
        let all = [choice("Plain", "Plain"), choice("Formal", "Formal"), choice("Friendly", "Among friends")];
        assert_eq!(form["properties"]["tone"]["oneOf"], json!(all));
        assert_eq!(check_form(&form), Ok(()));
    }

    #[test]
    fn a_form_that_cannot_be_shown_is_refused_where_it_is_made() {
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        struct Home {
            street: String,
        }
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "only its schema is of interest")]
        struct Person {
            name: String,
            home: Home,
        }
        let error = Form::of::<Person>().expect_err("nested");
        assert!(error.message().contains("property \"home\""), "{error}");
        let form = Form::new(json!({"type": "object", "properties": {"name": {"type": "string"}}})).expect("a form");
        assert_eq!(form["properties"]["name"]["type"], "string");
    }
}
