//! Definitions of a server's features besides tools, as they are listed.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Annotations, CacheHints, CacheScope, or_default};
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;

macro_rules! definition {
    ($(#[$docs:meta])* $name:ident, $what:literal, [$($key:literal),+]) => {
        $(#[$docs])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            members: Map<String, Value>,
            hints: CacheHints,
            scopes: Vec<String>,
        }

        impl $name {
            /// Reads a whole definition.
            ///
            /// # Errors
            /// [`Misuse`](crate::ErrorKind::Misuse) naming the member that is missing or of the wrong type.
            pub fn parse(definition: &str) -> Result<Self> {
                let members: Map<String, Value> = serde_json::from_str(definition)
                    .map_err(|e| Error::misuse(format!(concat!($what, " definition: {}"), e)))?;
                for key in [$($key),+] {
                    match members.get(key) {
                        Some(Value::String(text)) if !text.is_empty() => {}
                        Some(other) => {
                            return Err(Error::misuse(format!(
                                concat!($what, " {:?}: expected a string that is not empty, got {}"), key, other
                            )));
                        }
                        None => return Err(Error::misuse(format!(concat!($what, " {:?}: missing"), key))),
                    }
                }
                Ok(Self::of(members))
            }

            fn of(members: Map<String, Value>) -> Self {
                Self { members, hints: CacheHints::new(), scopes: Vec::new() }
            }

            /// The scopes that the caller's access token needs besides the server's, all of them: without them it is
            /// not listed, and asking for it is answered with 403 and a challenge. Over HTTP without
            /// `Auth` nobody has any; on other transports they mean nothing.
            #[must_use]
            pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
                self.scopes = scopes.into_iter().map(Into::into).collect();
                self
            }

            /// The scopes that it needs.
            pub(crate) fn take_scopes(&mut self) -> Vec<String> {
                std::mem::take(&mut self.scopes)
            }

            /// Name for people.
            #[must_use]
            pub fn title(self, title: impl Into<String>) -> Self {
                self.with("title", Value::String(title.into()))
            }

            /// Sets the description, for the model and for people.
            #[must_use]
            pub fn description(self, description: impl Into<String>) -> Self {
                self.with("description", Value::String(description.into()))
            }

            /// The schema's `Icon` objects, as an array.
            #[must_use]
            pub fn icons(self, icons: Value) -> Self {
                self.with("icons", icons)
            }

            /// `_meta`, an object.
            #[must_use]
            pub fn meta(self, meta: Value) -> Self {
                self.with("_meta", meta)
            }

            /// Sets any member, also one that this crate does not know.
            #[must_use]
            pub fn with(mut self, key: &str, value: Value) -> Self {
                self.members.insert(key.to_owned(), value);
                self
            }

            /// Every member.
            #[must_use]
            pub fn members(&self) -> &Map<String, Value> {
                &self.members
            }

            #[allow(dead_code, reason = "not all of them are taken apart")]
            pub(crate) fn into_members(self) -> Map<String, Value> {
                self.members
            }

            #[allow(dead_code, reason = "not all of them are read")]
            pub(crate) fn hints(&self) -> CacheHints {
                self.hints
            }
        }
    };
}

definition! {
    /// A resource's definition: the schema's `Resource`, with every member kept, known or not.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> tricorn::Result<()> {
    /// use tricorn::prelude::*;
    ///
    /// let today = Resource::new("notes://today", "today")
    ///     .title("Today")
    ///     .description("Things to do today")
    ///     .mime_type("text/markdown");
    /// let server = Server::new("notes").resource(today, async || Ok("- Buy milk"));
    ///
    /// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
    /// assert_eq!(client.read_resource("notes://today").await?.text(), "- Buy milk");
    /// # Ok(())
    /// # }
    /// ```
    Resource, "resource", ["uri", "name"]
}

definition! {
    /// A resource template's definition: the schema's `ResourceTemplate`, with every member kept, known or not.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> tricorn::Result<()> {
    /// use tricorn::prelude::*;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Month { year: u32, month: u32 }
    ///
    /// let months = ResourceTemplate::new("notes://{year}/{month}", "month").description("Notes of a month");
    /// let server = Server::new("notes").resource_template(months, async |Month { year, month }: Month| {
    ///     Ok(format!("Notes of {month}/{year}"))
    /// });
    /// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
    /// assert_eq!(client.read_resource("notes://2026/11").await?.text(), "Notes of 11/2026");
    /// # Ok(())
    /// # }
    /// ```
    ResourceTemplate, "resource template", ["uriTemplate", "name"]
}

definition! {
    /// A prompt's definition: the schema's `Prompt`, with every member kept, known or not.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> tricorn::Result<()> {
    /// use serde_json::json;
    /// use tricorn::prelude::*;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Review {
    ///     /// The code to review
    ///     code: String, // a required argument, with this description
    /// }
    ///
    /// let server = Server::new("reviews")
    ///     .prompt(Prompt::new("review").description("Review code"), async |Review { code }: Review| {
    ///         Ok(format!("Review this: {code}"))
    ///     });
    /// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
    /// let prompt = client.get_prompt("review", json!({"code": "x = 1"})).await?;
    /// assert_eq!(prompt["messages"][0]["content"]["text"], "Review this: x = 1");
    /// # Ok(())
    /// # }
    /// ```
    Prompt, "prompt", ["name"]
}

fn object(members: impl IntoIterator<Item = (&'static str, String)>) -> Map<String, Value> {
    members.into_iter().map(|(key, value)| (key.to_owned(), Value::String(value))).collect()
}

impl Resource {
    /// The resource at `uri`, an absolute URI, called `name`.
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::of(object([("uri", uri.into()), ("name", name.into())]))
    }

    /// Sets the lifetime and the scope of the contents, where the result does not name them itself.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.hints = hints;
        self
    }

    /// The MIME type of its contents.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        self.with("mimeType", Value::String(mime_type.into()))
    }

    /// The bytes of its contents, before base64.
    #[must_use]
    pub fn size(self, bytes: u64) -> Self {
        self.with("size", bytes.into())
    }

    /// Sets the audience and the priority.
    #[must_use]
    pub fn annotations(self, annotations: &Annotations) -> Self {
        self.with("annotations", serde_json::to_value(annotations).unwrap_or_default())
    }
}

impl ResourceTemplate {
    /// The resources whose URIs fit `uri_template` (RFC 6570), called `name`.
    pub fn new(uri_template: impl Into<String>, name: impl Into<String>) -> Self {
        Self::of(object([("uriTemplate", uri_template.into()), ("name", name.into())]))
    }

    /// Sets the lifetime and the scope of the contents, where the result does not name them itself.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        self.hints = hints;
        self
    }

    /// The MIME type of the contents of all of them.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        self.with("mimeType", Value::String(mime_type.into()))
    }

    /// Sets the audience and the priority.
    #[must_use]
    pub fn annotations(self, annotations: &Annotations) -> Self {
        self.with("annotations", serde_json::to_value(annotations).unwrap_or_default())
    }
}

impl Prompt {
    /// The prompt called `name`, without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self::of(object([("name", name.into())]))
    }

    /// Adds an argument. Arguments that a function's type says need not be added.
    #[must_use]
    pub fn argument(mut self, name: &str, description: &str, required: bool) -> Self {
        let mut argument = object([("name", name.to_owned()), ("description", description.to_owned())]);
        argument.insert("required".into(), required.into());
        match self.members.entry("arguments").or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(arguments) => arguments.push(Value::Object(argument)),
            other => *other = Value::Array(vec![Value::Object(argument)]),
        }
        self
    }
}

/// Contents of a resource: the schema's `TextResourceContents` or `BlobResourceContents`. Without a URI it is the one
/// that was read.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::prelude::*;
///
/// let logo = Resource::new("logo://dot", "dot").mime_type("image/png");
/// let server = Server::new("logos").resource(logo, async || Ok(ResourceContents::blob(b"\x89PNG")));
///
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let read = client.read_resource("logo://dot").await?;
/// assert_eq!(read.contents[0].as_blob(), Some("iVBORw==")); // base64
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceContents(Map<String, Value>);

impl ResourceContents {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self(object([("text", text.into())]))
    }

    /// Bytes, which go out as base64.
    pub fn blob(bytes: impl AsRef<[u8]>) -> Self {
        use base64::Engine;
        Self(object([("blob", base64::engine::general_purpose::STANDARD.encode(bytes))]))
    }

    /// Sets the URI of these contents, when it is not the one that was read.
    #[must_use]
    pub fn uri(self, uri: impl Into<String>) -> Self {
        self.with("uri", Value::String(uri.into()))
    }

    /// The MIME type; that of the resource's definition else.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        self.with("mimeType", Value::String(mime_type.into()))
    }

    /// Sets any member, such as `_meta`.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.to_owned(), value);
        self
    }

    /// The text, when it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        self.0.get("text").and_then(Value::as_str)
    }

    /// The bytes as base64, when it is bytes.
    #[must_use]
    pub fn as_blob(&self) -> Option<&str> {
        self.0.get("blob").and_then(Value::as_str)
    }

    /// Every member.
    #[must_use]
    pub fn members(&self) -> &Map<String, Value> {
        &self.0
    }
}

/// Result of reading a resource: the schema's `ReadResourceResult`.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use std::time::Duration;
/// use tricorn::model::CacheHints;
/// use tricorn::prelude::*;
///
/// let server = Server::new("shop").resource(Resource::new("shop://prices", "prices"), async || {
///     let (apple, pear) = (ResourceContents::text("1 euro"), ResourceContents::text("2 euros"));
///     let all = [apple.uri("shop://prices/apple"), pear.uri("shop://prices/pear")];
///     Ok(ReadResourceResult::new(all).cache(CacheHints::new().ttl(Duration::from_secs(60))))
/// });
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let prices = client.read_resource("shop://prices").await?;
/// assert_eq!(prices.text(), "1 euro\n2 euros");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadResourceResult {
    /// One as a rule; several of what has parts.
    #[serde(deserialize_with = "or_default")]
    pub contents: Vec<ResourceContents>,
    /// For how many milliseconds it keeps (revision 2026-07-28).
    #[serde(default, rename = "ttlMs", skip_serializing_if = "Option::is_none", deserialize_with = "time")]
    pub ttl_ms: Option<u64>,
    /// Scope in which it may be cached (revision 2026-07-28).
    #[serde(default, rename = "cacheScope", skip_serializing_if = "Option::is_none", deserialize_with = "scope")]
    pub cache_scope: Option<CacheScope>,
    /// `_meta`.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Reads a time, which is a hint only: anything else counts as none.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<u64>, D::Error> {
    Value::deserialize(deserializer).map(|value| value.as_u64())
}

fn scope<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<CacheScope>, D::Error> {
    Value::deserialize(deserializer).map(|value| value.as_str().and_then(CacheScope::parse))
}

impl ReadResourceResult {
    /// These contents.
    pub fn new(contents: impl IntoIterator<Item = ResourceContents>) -> Self {
        Self { contents: contents.into_iter().collect(), ..Self::default() }
    }

    /// Sets its lifetime and its scope, whatever its resource's definition says.
    #[must_use]
    pub fn cache(mut self, hints: CacheHints) -> Self {
        let (millis, scope) = hints.members();
        self.ttl_ms = hints.ttl.map(|_| millis).or(self.ttl_ms);
        self.cache_scope = hints.scope.map(|_| scope).or(self.cache_scope);
        self
    }

    /// Returns true if it was kept for longer than it should have been, and is given because the server could not be
    /// asked (the client's option `cache`, `stale_on_error`).
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.meta.as_ref().is_some_and(|meta| meta.contains_key(super::meta::STALE))
    }

    /// Adds `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The contents that are text, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        self.contents.iter().filter_map(ResourceContents::as_text).collect::<Vec<_>>().join("\n")
    }
}

/// Completions of an argument: the schema's `CompleteResult`. The function that completes may return it, to say more
/// than the values.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::model::CompleteResult;
/// use tricorn::prelude::*;
/// use tricorn::server::{Kind, Parameters};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Review { language: String }
///
/// let languages = Parameters::default()
///     .complete("language", async || Ok(CompleteResult::new(["python", "rust"]).total(31)));
/// let server = Server::new("reviews").prompt_with(Prompt::new("review"), languages, async |review: Review| {
///     Ok(format!("Review this {}.", review.language))
/// });
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let found = client.complete(Kind::Prompt, "review", "language", "", None).await?;
/// assert_eq!((found.completion.values.len(), found.completion.total), (2, Some(31)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompleteResult {
    /// The values, and how many there are besides.
    pub completion: Completion,
    /// `_meta`.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CompleteResult {
    /// These values, best first; at most a hundred are sent.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        Self { completion: Completion { values, ..Completion::default() }, ..Self::default() }
    }

    /// Sets the number of values in all.
    #[must_use]
    pub fn total(mut self, total: u64) -> Self {
        self.completion.total = Some(total);
        self
    }

    /// Adds `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta = Some(meta);
        self
    }
}

/// The values of a [`CompleteResult`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completion {
    /// Up to a hundred, best first.
    #[serde(deserialize_with = "or_default")]
    pub values: Vec<String>,
    /// Number of values in all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// True if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_more: Option<bool>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One message of a prompt: the schema's `PromptMessage`.
///
/// ```
/// use tricorn::prelude::*;
///
/// let shown = [
///     PromptMessage::user(Content::image("iVBORw0KGgo=", "image/png")),
///     PromptMessage::assistant("A dot.".into()),
/// ];
/// Server::new("captions").prompt(Prompt::new("caption").description("Describe pictures"), move || {
///     let shown = shown.clone();
///     async { Ok(GetPromptResult::new(shown)) }
/// });
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PromptMessage {
    role: &'static str,
    content: super::Content,
}

impl PromptMessage {
    /// Said by the user.
    pub fn user(content: super::Content) -> Self {
        Self { role: "user", content }
    }

    /// Said by the model.
    pub fn assistant(content: super::Content) -> Self {
        Self { role: "assistant", content }
    }
}

/// Result of getting a prompt: the schema's `GetPromptResult`.
///
/// ```
/// use tricorn::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Explain { topic: String }
///
/// let explain = Prompt::new("explain").description("Explain something");
/// Server::new("teacher").prompt(explain, async |Explain { topic }: Explain| {
///     let question = Content::text(format!("What is {topic}? One example, please."));
///     let text = Content::resource_link("lessons://all", "lessons");
///     let messages = [PromptMessage::user(text), PromptMessage::user(question)];
///     Ok(GetPromptResult::new(messages).description(format!("{topic}, explained")))
/// });
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GetPromptResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    messages: Vec<PromptMessage>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<RawJson>,
}

impl GetPromptResult {
    /// These messages; the description is the prompt's own.
    pub fn new(messages: impl IntoIterator<Item = PromptMessage>) -> Self {
        Self { description: None, messages: messages.into_iter().collect(), meta: None }
    }

    /// Another description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta = Some(RawJson::from_value(&meta));
        self
    }
}
