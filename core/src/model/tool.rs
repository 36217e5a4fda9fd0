use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::model::{TaskSupport, check_schema};

/// Hints about a tool's behaviour: the schema's `ToolAnnotations`. Clients must not trust them.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::prelude::*;
///
/// let harmless = ToolAnnotations::new().read_only().open_world(false);
/// let server = Server::new("office")
///     .tool_with(Tool::new("today", "Today's menu").annotations(&harmless), async || Ok("Soup"));
///
/// // A client may ask its user less often before it calls such a tool.
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// assert_eq!(client.list_tools().await?[0]["annotations"]["readOnlyHint"], true);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ToolAnnotations {
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something. Absent means `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it twice is the same as once. Absent means `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches the outside world. Absent means `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

impl ToolAnnotations {
    /// No hints.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says that the tool changes nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only_hint = Some(true);
        self
    }

    /// Says whether the tool may destroy something.
    #[must_use]
    pub fn destructive(mut self, yes: bool) -> Self {
        self.destructive_hint = Some(yes);
        self
    }

    /// Says that calling the tool twice is the same as once.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.idempotent_hint = Some(true);
        self
    }

    /// Says whether the tool reaches the outside world.
    #[must_use]
    pub fn open_world(mut self, yes: bool) -> Self {
        self.open_world_hint = Some(yes);
        self
    }
}

/// A tool's definition: the schema's `Tool`, with every member kept, known or not.
///
/// ```
/// use tricorn::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Note { id: u32 }
///
/// // Schemas of arguments and result come from the function.
/// let delete = Tool::new("delete", "Delete a note for good")
///     .title("Delete a note")
///     .annotations(&ToolAnnotations::new().destructive(true).idempotent())
///     .scopes(["notes:write"]);
/// Server::new("notes").tool_with(delete, async |Note { id }: Note| Ok(format!("deleted {id}")));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    members: Map<String, Value>,
    scopes: Vec<String>,
    /// True if the handler checks its arguments, and what it answers.
    judged: (bool, bool),
    timeout: Option<Duration>,
}

impl Tool {
    /// A tool called `name` that takes no arguments until [`input_schema`](Self::input_schema) says otherwise.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let mut members = Map::new();
        members.insert("name".into(), Value::String(name.into()));
        let description = description.into();
        if !description.is_empty() {
            members.insert("description".into(), Value::String(description));
        }
        members.insert("inputSchema".into(), serde_json::json!({"type": "object", "additionalProperties": false}));
        Self { members, scopes: Vec::new(), judged: (false, false), timeout: None }
    }

    /// Reads a whole definition.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the member that is missing or of the wrong type.
    pub fn parse(definition: &str) -> Result<Self> {
        let members: Map<String, Value> =
            serde_json::from_str(definition).map_err(|e| Error::misuse(format!("tool definition: {e}")))?;
        match members.get("name") {
            Some(Value::String(name)) if !name.is_empty() => {}
            Some(other) => {
                return Err(Error::misuse(format!("tool \"name\": expected a string that is not empty, got {other}")));
            }
            None => return Err(Error::misuse("tool \"name\": missing")),
        }
        let tool = Self { members, scopes: Vec::new(), judged: (false, false), timeout: None };
        tool.check_schemas()?;
        Ok(tool)
    }

    /// Checks that there are schemas where they have to be.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the one that is none.
    pub(crate) fn check_schemas(&self) -> Result<()> {
        let wrong = |side: &str, why: &str| Error::misuse(format!("tool {:?}: {side}: {why}", self.name()));
        let input = self.members.get("inputSchema").ok_or_else(|| wrong("inputSchema", "missing"))?;
        check_schema(input).map_err(|why| wrong("inputSchema", &why))?;
        if input.get("type").and_then(Value::as_str) != Some("object") {
            return Err(wrong("inputSchema", "expected \"type\": \"object\" at the top"));
        }
        match self.members.get("outputSchema").filter(|schema| !schema.is_boolean()) {
            Some(output) => check_schema(output).map_err(|why| wrong("outputSchema", &why)),
            None => Ok(()),
        }
    }

    fn with(mut self, key: &str, value: Value) -> Self {
        self.members.insert(key.into(), value);
        self
    }

    /// Name for people.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        self.with("title", Value::String(title.into()))
    }

    /// JSON Schema of the arguments; its top must say `"type": "object"`.
    #[must_use]
    pub fn input_schema(self, schema: Value) -> Self {
        self.with("inputSchema", schema)
    }

    /// JSON Schema of the structured result.
    #[must_use]
    pub fn output_schema(self, schema: Value) -> Self {
        self.with("outputSchema", schema)
    }

    /// Hints about its behaviour.
    #[must_use]
    pub fn annotations(self, annotations: &ToolAnnotations) -> Self {
        let value = serde_json::to_value(annotations).unwrap_or_default();
        self.with("annotations", value)
    }

    /// The schema's `Icon` objects.
    #[must_use]
    pub fn icons(self, icons: Value) -> Self {
        self.with("icons", icons)
    }

    /// Says whether the tool may be called as a task, where the server has tasks: the schema's `execution`. A tool
    /// that says nothing must not.
    #[must_use]
    pub fn task_support(self, support: TaskSupport) -> Self {
        self.with("execution", serde_json::json!({"taskSupport": support}))
    }

    /// The tool's `_meta`.
    #[must_use]
    pub fn meta(self, meta: Value) -> Self {
        self.with("_meta", meta)
    }

    /// The scopes that the caller's access token needs besides the server's, all of them: without them the tool is not
    /// listed, and calling it is answered with 403 and a challenge. Over HTTP without `Auth` nobody
    /// has any; on other transports they mean nothing.
    #[must_use]
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// The scopes that it needs.
    pub(crate) fn take_scopes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.scopes)
    }

    /// Time after which the handler is cancelled, and its caller answered with an error that the model can read. It begins
    /// anew with each round of questions in revision 2026-07-28; in others the wait for answers of the client counts.
    /// Default: that of
    /// [`Server::tool_timeout`](crate::Server::tool_timeout); zero is none.
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = Some(time);
        self
    }

    /// The longest time of the handler, where it has one of its own.
    pub(crate) fn own_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Says that the handler checks the arguments, or what it answers, itself, as one does that was made of types by a
    /// library which knows more than their JSON Schemas say. The schemas are listed all the same.
    #[must_use]
    pub fn judged(mut self, arguments: bool, result: bool) -> Self {
        self.judged = (arguments, result);
        self
    }

    /// Both are true where the handler itself checks: the arguments, and its answers.
    pub(crate) fn is_judged(&self) -> (bool, bool) {
        self.judged
    }

    /// The tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.members.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Every member, known or not.
    #[must_use]
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    pub(crate) fn into_members(self) -> Map<String, Value> {
        self.members
    }

    /// The whole definition as JSON.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        RawJson::from_value(&self.members)
    }
}
