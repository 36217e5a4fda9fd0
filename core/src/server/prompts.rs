use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::listed::{Common, Entry, Kind, Listed};
use super::parameters::Parameters;
use super::resources::Completions;
use super::typed::typed;
use crate::call::{Failures, Handler, Shaper};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::model::Prompt;
use crate::model::schema::Schema;
use crate::protocol::Payload;
use crate::protocol::revision::Revision;

/// A registered prompt.
pub(crate) struct PromptEntry {
    listed: Listed,
    /// Schema of the arguments; without one they are text.
    parameters: Option<(Value, Schema)>,
    /// The handler checks them.
    judged: bool,
    pub(super) completions: Completions,
}

impl Entry for PromptEntry {
    fn listed(&self) -> &Listed {
        &self.listed
    }
}

impl PromptEntry {
    pub(super) fn new(
        mut prompt: Prompt,
        handler: Arc<dyn Handler>,
        parameters: Parameters,
        common: &Arc<Common>,
    ) -> Result<Self> {
        let Parameters { schema: parameters, completions, judged } = parameters;
        let scopes = prompt.take_scopes();
        let mut members = prompt.into_members();
        if let Some(schema) = &parameters
            && !members.contains_key("arguments")
        {
            let arguments = arguments_of(schema);
            if !arguments.is_empty() {
                members.insert("arguments".into(), Value::Array(arguments));
            }
        }
        let listed = Listed::new(Kind::Prompt, members, scopes, handler, common)?;
        let subject = listed.subject();
        let names = names(&listed.members);
        if let Some(argument) = arguments(&listed.members).find(|a| a.get("name").and_then(Value::as_str).is_none()) {
            return Err(Error::misuse(format!("{subject}: \"arguments\": {argument}: \"name\": expected a string")));
        }
        for (name, _) in &completions {
            if !names.contains(&name.as_str()) {
                return Err(Error::misuse(format!(
                    "{subject}: the completion of {name:?} is of no argument; they are {names:?}"
                )));
            }
        }
        let parameters = match parameters {
            Some(schema) => {
                let checked = Schema::new(&format!("{subject}: parameters"), &schema)?;
                Some((schema, checked))
            }
            None => None,
        };
        Ok(Self { listed, parameters, judged, completions })
    }

    pub(super) fn argument_names(&self) -> Vec<&str> {
        names(&self.listed.members)
    }

    pub(super) fn schema(&self) -> Option<&Value> {
        self.parameters.as_ref().map(|(source, _)| source)
    }

    /// The arguments of a request as the handler gets them.
    ///
    /// # Errors
    /// −32602 naming the argument that is missing or wrong.
    pub(crate) fn arguments(&self, given: Option<&RawJson>) -> Result<RawJson> {
        let given = match given.filter(|given| !matches!(given.get(), "null" | "[]")) {
            None => Map::new(),
            Some(given) => match given.to() {
                // Hosts send what was left blank as null.
                Ok(Value::Object(members)) => members.into_iter().filter(|(_, value)| !value.is_null()).collect(),
                _ => return Err(Error::invalid_params("\"arguments\": expected an object")),
            },
        };
        for (name, value) in &given {
            if !value.is_string() {
                let (name, value) = (shortened(name, 100), value.to_string());
                let value = shortened(&value, 60);
                return Err(Error::invalid_params(format!("argument {name:?}: expected string, got {value}")));
            }
        }
        for argument in arguments(&self.listed.members) {
            let name = argument.get("name").and_then(Value::as_str).unwrap_or_default();
            if argument.get("required") == Some(&Value::Bool(true)) && !given.contains_key(name) {
                return Err(Error::invalid_params(format!("argument {name:?}: missing (required)")));
            }
        }
        let Some((source, schema)) = &self.parameters else {
            return Ok(RawJson::from_value(&given));
        };
        let text = typed(source, given);
        if !self.judged {
            schema.check_text(|| source, "argument", text.get()).map_err(Error::invalid_params)?;
        }
        Ok(text)
    }
}

/// Makes of what a prompt's handler answered a `GetPromptResult`.
struct Prompted<'a> {
    description: Option<&'a Value>,
    subject: &'a str,
}

impl Prompted<'_> {
    fn messages(&self, messages: Vec<Value>) -> RawJson {
        let mut result = Map::new();
        if let Some(description) = self.description {
            result.insert("description".into(), description.clone());
        }
        result.insert("messages".into(), Value::Array(messages.into_iter().flat_map(said).collect()));
        RawJson::from_value(&result)
    }

    fn object(&self, object: &RawJson) -> Result<RawJson> {
        let mut members: Map<String, Value> = object.to().map_err(|_| self.wrong())?;
        if let Some(Value::Array(messages)) = members.get_mut("messages") {
            let given = std::mem::take(messages);
            *messages = given.into_iter().flat_map(said).collect();
            if let Some(description) = self.description {
                members.entry("description").or_insert_with(|| description.clone());
            }
            return Ok(RawJson::from_value(&members));
        }
        // Something of the caller's own, such as a result of an extension.
        if members.contains_key("resultType") {
            return Ok(object.clone());
        }
        if members.contains_key("role") || members.contains_key("type") {
            return Ok(self.messages(vec![Value::Object(members)]));
        }
        Err(self.wrong())
    }

    fn wrong(&self) -> Error {
        let subject = self.subject;
        Error::rpc(
            code::INTERNAL_ERROR,
            format!("{subject} failed: expected text, a message, an array of them or a GetPromptResult"),
        )
    }

    fn result(&self, payload: Payload) -> Result<Payload> {
        let object = match payload {
            Payload::Text(text) => self.messages(vec![Value::String(text)]),
            Payload::Failed(text) => return Err(Error::rpc(code::INTERNAL_ERROR, text)),
            Payload::Object(object) => self.object(&object)?,
            Payload::Value { value, .. } => match value.to::<Value>().map_err(|_| self.wrong())? {
                text @ Value::String(_) => self.messages(vec![text]),
                Value::Array(messages) => self.messages(messages),
                Value::Object(_) => self.object(&value)?,
                _ => return Err(self.wrong()),
            },
        };
        Ok(Payload::Object(object))
    }
}

/// Makes a result of what the handler of prompts that are not registered answered.
pub(super) struct Unlisted {
    pub(super) common: Arc<Common>,
}

impl Shaper for Unlisted {
    fn shape(&self, payload: Payload, _: Revision) -> Result<Payload> {
        Prompted { description: None, subject: "the prompt" }.result(payload)
    }

    fn subject(&self) -> String {
        "the prompt".into()
    }

    fn name(&self) -> &str {
        "prompt"
    }

    fn failures(&self) -> &Failures {
        &self.common.failures
    }
}

fn arguments(definition: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    definition.get("arguments").and_then(Value::as_array).into_iter().flatten()
}

fn names(definition: &Map<String, Value>) -> Vec<&str> {
    arguments(definition).filter_map(|argument| argument.get("name").and_then(Value::as_str)).collect()
}

/// The `PromptArgument`s that a JSON Schema says.
fn arguments_of(schema: &Value) -> Vec<Value> {
    let required = |name: &str| schema["required"].as_array().is_some_and(|r| r.iter().any(|r| r == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let argument = |(name, property): (&String, &Value)| {
        let mut argument = Map::new();
        argument.insert("name".into(), name.as_str().into());
        for key in ["title", "description"] {
            if let Some(text) = property.get(key) {
                argument.insert(key.into(), text.clone());
            }
        }
        argument.insert("required".into(), required(name).into());
        Value::Object(argument)
    };
    properties.into_iter().flatten().map(argument).collect()
}

/// The messages made of what stands for one: text and content blocks are the user's. A prompt's message has one block, so
/// what is said in several are as many messages.
fn said(value: Value) -> Vec<Value> {
    let (members, content) = match value {
        Value::Object(mut members) if members.contains_key("role") => match members.remove("content") {
            Some(content) => (members, content),
            None => return vec![Value::Object(members)],
        },
        content => (Map::from_iter([("role".to_owned(), Value::from("user"))]), content),
    };
    let blocks = match content {
        Value::Array(blocks) => blocks,
        block => vec![block],
    };
    let message = |block| {
        let mut members = members.clone();
        let block = match block {
            Value::String(text) => json!({"type": "text", "text": text}),
            block => block,
        };
        members.insert("content".into(), block);
        Value::Object(members)
    };
    blocks.into_iter().map(message).collect()
}

impl Shaper for PromptEntry {
    fn shape(&self, payload: Payload, _: Revision) -> Result<Payload> {
        let subject = self.subject();
        Prompted { description: self.listed.members.get("description"), subject: &subject }.result(payload)
    }

    fn subject(&self) -> String {
        self.listed.subject()
    }

    fn name(&self) -> &str {
        self.listed.name()
    }

    fn failures(&self) -> &Failures {
        &self.listed.common.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_several_blocks_is_as_many_messages() {
        let block = |text: &str| json!({"type": "text", "text": text});
        let message = |role: &str, text: &str| json!({"role": role, "content": block(text)});
        for (given, expected) in [
            (json!("a"), vec![message("user", "a")]),
            (block("a"), vec![message("user", "a")]),
            (json!(["a", block("b")]), vec![message("user", "a"), message("user", "b")]),
            (json!({"role": "assistant", "content": "a"}), vec![message("assistant", "a")]),
            (
                json!({"role": "assistant", "content": [block("a"), "b"]}),
                vec![message("assistant", "a"), message("assistant", "b")],
            ),
            (json!({"role": "user", "content": []}), Vec::new()),
            (json!({"role": "user"}), vec![json!({"role": "user"})]),
        ] {
            assert_eq!(said(given), expected);
        }
    }
}
