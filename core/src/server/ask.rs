//! Questions to the client, as straight-line awaits of a running handler.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::form::form_of;
use crate::call::{CallOptions, Context};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::Content;

/// Reaction of the user to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "the schema has these three")]
pub enum ElicitAction {
    /// Answered it; of a URL: agreed to visit it.
    Accept,
    /// Said no.
    Decline,
    /// Said nothing.
    Cancel,
}

/// The answer to a form or a URL: the schema's `ElicitResult`.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
/// use tricorn::server::ElicitAction;
///
/// let book = async |cx: Context| {
///     let form = json!({"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]});
///     let answer = cx.elicit("How many seats?", &form).await?;
///     Ok(match answer.action {
///         ElicitAction::Accept => format!("booked {}", answer.content["seats"]),
///         ElicitAction::Decline | ElicitAction::Cancel => "not booked".to_owned(),
///     })
/// };
/// let server = Server::new("restaurant").tool("book", "Book a table", book);
/// # let handlers = Handlers::new().elicitation(async || Ok(json!({"seats": 2})));
/// # let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await?;
/// # assert_eq!(client.call_tool("book", json!({})).await?.text(), "booked 2");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ElicitResult {
    /// The user's reaction.
    pub action: ElicitAction,
    /// The answers, when it was accepted.
    #[serde(default, deserialize_with = "or_nothing")]
    pub content: Map<String, Value>,
    /// `_meta`.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `null` is nothing.
fn or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Map<String, Value>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A question to the client's model: the schema's `CreateMessageRequestParams`, with every member kept.
///
/// ```
/// use tricorn::prelude::*;
/// use tricorn::server::CreateMessageRequestParams;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Input { text: String }
///
/// # #[allow(deprecated)]
/// let summarize = async |Input { text }: Input, cx: Context| {
///     let question = CreateMessageRequestParams::new(50)
///         .system_prompt("Be brief.")
///         .user(&Content::text(format!("Sum up: {text}")));
///     Ok(cx.sample(&question).await?.text())
/// };
/// Server::new("writer").tool("summarize", "Sum up a text", summarize);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct CreateMessageRequestParams(Map<String, Value>);

impl CreateMessageRequestParams {
    /// At most `max_tokens` tokens are wanted.
    #[must_use]
    pub fn new(max_tokens: u32) -> Self {
        let mut members = Map::new();
        members.insert("messages".into(), Value::Array(Vec::new()));
        members.insert("maxTokens".into(), max_tokens.into());
        Self(members)
    }

    /// Adds what the user says: text as `Content::text`, or any other block.
    #[must_use]
    pub fn user(self, content: &Content) -> Self {
        self.message("user", json!(content))
    }

    /// Adds what the model says.
    #[must_use]
    pub fn assistant(self, content: &Content) -> Self {
        self.message("assistant", json!(content))
    }

    /// Adds a message; `content` is a block or an array of blocks.
    #[must_use]
    pub fn message(mut self, role: &str, content: Value) -> Self {
        if let Some(Value::Array(messages)) = self.0.get_mut("messages") {
            messages.push(json!({"role": role, "content": content}));
        }
        self
    }

    /// The system prompt that is wished for.
    #[must_use]
    pub fn system_prompt(self, text: impl Into<String>) -> Self {
        self.with("systemPrompt", Value::String(text.into()))
    }

    /// The tools that the model may use, each a `Tool`. The client must declare `sampling.tools`.
    #[must_use]
    pub fn tools(self, tools: Vec<Value>) -> Self {
        self.with("tools", Value::Array(tools))
    }

    /// Any other member, such as `temperature`, `stopSequences`, `modelPreferences`, `toolChoice`.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }
}

/// Answer of the client's model: the schema's `CreateMessageResult`.
///
/// ```
/// # #[allow(deprecated)]
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// # use serde_json::json;
/// use tricorn::prelude::*;
/// use tricorn::server::CreateMessageRequestParams;
///
/// let name = async |cx: Context| {
///     let question = CreateMessageRequestParams::new(10).user(&"A name for a cat?".into());
///     let result = cx.sample(&question).await?;
///     if result.stop_reason.as_deref() == Some("maxTokens") {
///         return Err(HandlerError::new("the name is too long"));
///     }
///     Ok(format!("{}, says {}", result.text(), result.model))
/// };
/// let server = Server::new("cats").tool("name", "Find a name", name);
/// # let handlers = Handlers::new().sampling(async || Ok(json!({"content": "Tom", "model": "tiny"})));
/// # let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await?;
/// # assert_eq!(client.call_tool("name", json!({})).await?.text(), "Tom, says tiny");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CreateMessageResult {
    /// `assistant`, as a rule.
    pub role: String,
    /// One block or an array of them.
    pub content: Value,
    /// Name of the model.
    pub model: String,
    /// `endTurn`, `stopSequence`, `maxTokens`, `toolUse` or anything else.
    #[serde(default)]
    pub stop_reason: Option<String>,
    /// `_meta`.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CreateMessageResult {
    /// The blocks.
    #[must_use]
    pub fn blocks(&self) -> &[Value] {
        match &self.content {
            Value::Array(blocks) => blocks,
            one => std::slice::from_ref(one),
        }
    }

    /// The text of all text blocks.
    #[must_use]
    pub fn text(&self) -> String {
        self.blocks().iter().filter_map(|block| block.get("text")?.as_str()).collect()
    }
}

/// A folder or file that the client lets the server look at: the schema's `Root`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Root {
    /// A `file://` URI.
    pub uri: String,
    /// Name for people.
    #[serde(default)]
    pub name: Option<String>,
    /// Everything else about it.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Value>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The folders and files that the client lets the server look at: the schema's `ListRootsResult`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct ListRootsResult {
    /// In the client's order.
    pub roots: Vec<Root>,
    /// `_meta`.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

fn read<T: DeserializeOwned>(method: &str, result: &RawJson) -> Result<T> {
    result.to().map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("result of {method}: {e}")))
}

impl Context {
    async fn asked<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
        options: &CallOptions,
    ) -> Result<T> {
        let result = self.ask(method, Some(RawJson::from_value(params)), options).await?;
        read(method, &result)
    }

    /// Asks the user to fill in a form: a JSON Schema of an object whose properties are text, numbers, booleans or
    /// choices (specification, elicitation). A [`Form`](super::Form) is one that was checked when it was made.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) for a schema that is no such form; [`Unsupported`](ErrorKind::Unsupported) when the
    /// client does not declare `elicitation`; [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) for answers that do not fit
    /// the form; as [`ask`](Self::ask).
    pub async fn elicit(&self, message: &str, form: &Value) -> Result<ElicitResult> {
        self.elicit_with(message, form, &CallOptions::default()).await
    }

    /// As [`elicit`](Self::elicit), with options: as a task of the client, for example.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit); [`Unsupported`](ErrorKind::Unsupported) when it is to be a task and the client does
    /// not declare that.
    pub async fn elicit_with(&self, message: &str, form: &Value, options: &CallOptions) -> Result<ElicitResult> {
        let params = json!({"mode": "form", "message": message, "requestedSchema": form});
        self.asked("elicitation/create", &params, options).await
    }

    /// Asks the user for a `T`, a struct of text, numbers, booleans and enums without fields. None when the user does not
    /// give one.
    ///
    /// # Errors
    /// As [`elicit`](Self::elicit).
    pub async fn elicit_as<T: JsonSchema + DeserializeOwned>(&self, message: &str) -> Result<Option<T>> {
        let result = self.elicit(message, &form_of::<T>()).await?;
        match result.action {
            ElicitAction::Accept => {
                let text = Value::Object(result.content).to_string();
                serde_json::from_str(&text)
                    .map(Some)
                    .map_err(|_| Error::new(ErrorKind::PeerMisbehaved, super::typed::unfit::<T>("answer", &text)))
            }
            ElicitAction::Decline | ElicitAction::Cancel => Ok(None),
        }
    }

    /// Asks the user to visit a URL. The answer's `action` is `Accept` when the user agreed, not when it is done; tell the
    /// client that with [`elicitation_complete`](Self::elicitation_complete) and the same `elicitation_id`.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) when the client does not declare `elicitation.url`; as
    /// [`ask`](Self::ask).
    pub async fn elicit_url(&self, message: &str, url: &str, elicitation_id: &str) -> Result<ElicitResult> {
        let params = json!({"mode": "url", "message": message, "url": url, "elicitationId": elicitation_id});
        self.asked("elicitation/create", &params, &CallOptions::default()).await
    }

    /// Tells the client that what the user did at a URL is done.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) in revisions that do not know it.
    pub fn elicitation_complete(&self, elicitation_id: &str) -> Result<()> {
        let params = RawJson::from_value(&json!({"elicitationId": elicitation_id}));
        self.notify("notifications/elicitation/complete", Some(params))
    }

    /// Asks the client's model.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) when the client does not declare `sampling`, or `sampling.tools` where
    /// there are tools; as [`ask`](Self::ask).
    #[deprecated(note = "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider")]
    #[allow(deprecated, reason = "this is of it")]
    pub async fn sample(&self, params: &CreateMessageRequestParams) -> Result<CreateMessageResult> {
        self.asked("sampling/createMessage", params, &CallOptions::default()).await
    }

    /// As [`sample`](Self::sample), with options: as a task of the client, for example.
    ///
    /// # Errors
    /// As [`sample`](Self::sample); [`Unsupported`](ErrorKind::Unsupported) when it is to be a task and the client does
    /// not declare that.
    #[deprecated(note = "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider")]
    pub async fn sample_with(
        &self,
        params: &CreateMessageRequestParams,
        options: &CallOptions,
    ) -> Result<CreateMessageResult> {
        self.asked("sampling/createMessage", params, options).await
    }

    /// Asks which folders and files the server may look at.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) when the client does not declare `roots`; as [`ask`](Self::ask).
    #[deprecated(
        note = "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )]
    pub async fn list_roots(&self) -> Result<ListRootsResult> {
        self.asked("roots/list", &json!({}), &CallOptions::default()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_content_is_none() {
        let read = |text: &str| serde_json::from_str::<ElicitResult>(text).expect("an answer");
        assert_eq!(read(r#"{"action": "decline", "content": null}"#), read(r#"{"action": "decline"}"#));
    }
}
