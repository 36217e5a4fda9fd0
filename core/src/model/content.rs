use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::or_default;
use crate::jsonrpc::RawJson;

/// Audience and priority of content: the schema's `Annotations`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Annotations {
    /// `user`, `assistant` or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience: Option<Vec<String>>,
    /// 0 (optional) to 1 (required).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

/// One content block: the schema's `ContentBlock`, with every member kept, known or not.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
///
/// let server = Server::new("camera").tool("photo", "Take a photo", async || {
///     Ok(CallToolResult::new(["From the roof:".into(), Content::image("iVBORw0KGgo=", "image/png")]))
/// });
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// for block in client.call_tool("photo", json!({})).await?.content {
///     match block.as_text() {
///         Some(text) => println!("{text}"),
///         None => println!("{} {}", block.kind(), block.members()["mimeType"]),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Content(Map<String, Value>);

impl Content {
    fn of(value: Value) -> Self {
        match value {
            Value::Object(members) => Self(members),
            other => Self::text(other.to_string()),
        }
    }

    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(json!({"type": "text", "text": text.into()}))
    }

    /// An image: base64 data and its MIME type.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::of(json!({"type": "image", "data": data.into(), "mimeType": mime_type.into()}))
    }

    /// Sound: base64 data and its MIME type. A revision without audio blocks gets it as an embedded resource.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::of(json!({"type": "audio", "data": data.into(), "mimeType": mime_type.into()}))
    }

    /// The text of a resource, embedded.
    pub fn resource_text(uri: impl Into<String>, mime_type: impl Into<String>, text: impl Into<String>) -> Self {
        Self::of(
            json!({"type": "resource", "resource": {"uri": uri.into(), "mimeType": mime_type.into(), "text": text.into()}}),
        )
    }

    /// The bytes of a resource (base64), embedded.
    pub fn resource_blob(uri: impl Into<String>, mime_type: impl Into<String>, blob: impl Into<String>) -> Self {
        Self::of(
            json!({"type": "resource", "resource": {"uri": uri.into(), "mimeType": mime_type.into(), "blob": blob.into()}}),
        )
    }

    /// A link to a resource.
    pub fn resource_link(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self::of(json!({"type": "resource_link", "uri": uri.into(), "name": name.into()}))
    }

    /// Adds annotations.
    #[must_use]
    pub fn annotations(self, annotations: &Annotations) -> Self {
        let value = serde_json::to_value(annotations).unwrap_or_default();
        self.with("annotations", value)
    }

    /// Adds `_meta`.
    #[must_use]
    pub fn meta(self, meta: Value) -> Self {
        self.with("_meta", meta)
    }

    /// Sets any member.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.0.insert(key.into(), value);
        self
    }

    /// `text`, `image`, `audio`, `resource`, `resource_link`, or what a newer peer sent.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// The text of a text block.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        (self.kind() == "text").then(|| self.0.get("text").and_then(Value::as_str)).flatten()
    }

    /// Every member, known or not.
    #[must_use]
    pub fn members(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self)
    }
}

/// Result of a tool call: the schema's `CallToolResult`.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Weather { celsius: f64 }
///
/// let server = Server::new("weather").tool("now", "Weather", async || Ok(Weather { celsius: 22.5 }));
/// let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let result = client.call_tool("now", json!({})).await?;
/// if result.is_error {
///     println!("failed: {}", result.text()); // the model reads it, too
/// }
/// let weather: Weather = result.structured_as()?;
/// assert_eq!(weather.celsius, 22.5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CallToolResult {
    /// The blocks for the model.
    #[serde(default, deserialize_with = "or_default")]
    pub content: Vec<Content>,
    /// The result as data. `null` is a value, distinct from absent.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub structured_content: Option<RawJson>,
    /// The tool failed; `content` says how.
    #[serde(default, skip_serializing_if = "is_false", deserialize_with = "or_default")]
    pub is_error: bool,
    /// `_meta`.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Map<String, Value>>,
    /// Every other member, known or not.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(value: &bool) -> bool {
    !value
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

impl CallToolResult {
    /// These blocks.
    pub fn new(content: impl IntoIterator<Item = Content>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// A failure the model can read.
    pub fn failed(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], is_error: true, ..Self::default() }
    }

    /// Adds structured content.
    #[must_use]
    pub fn structured(mut self, value: &impl Serialize) -> Self {
        self.structured_content = Some(RawJson::from_value(value));
        self
    }

    /// Adds `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: Map<String, Value>) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The text blocks, joined by line breaks.
    #[must_use]
    pub fn text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
    }

    /// The structured content, or else the text read as JSON (a `String` as it is), decoded. A value that is no object
    /// comes as `{"result": value}` in legacy revisions; it is decoded alike.
    ///
    /// # Errors
    /// [`PeerMisbehaved`](crate::ErrorKind::PeerMisbehaved) when it does not fit `T`, or the tool failed and gave none.
    pub fn structured_as<T: serde::de::DeserializeOwned>(&self) -> crate::Result<T> {
        let Some(raw) = &self.structured_content else {
            return self.text_as();
        };
        raw.to()
            .or_else(|error| wrapped(raw).ok_or(error))
            .map_err(|e| crate::Error::new(crate::ErrorKind::PeerMisbehaved, format!("structuredContent: {e}")))
    }

    fn text_as<T: serde::de::DeserializeOwned>(&self) -> crate::Result<T> {
        let (text, kind) = (self.text(), crate::ErrorKind::PeerMisbehaved);
        if self.is_error {
            return Err(crate::Error::new(
                kind,
                format!("the result has no structuredContent, the tool failed: {text}"),
            ));
        }
        let plain = std::any::type_name::<T>() == std::any::type_name::<String>();
        let read = match serde_json::from_str(&text) {
            Ok(value) if !plain => Ok(value),
            Err(error) if !plain => {
                // A date or a choice is a text without quotes.
                serde_json::from_value(text.into()).map_err(|_| error)
            }
            _ => serde_json::from_value(text.into()),
        };
        read.map_err(|e| crate::Error::new(kind, format!("the result has no structuredContent, and its text: {e}")))
    }
}

/// The value in `{"result": value}`.
fn wrapped<T: serde::de::DeserializeOwned>(raw: &RawJson) -> Option<T> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Wrapped<T> {
        result: T,
    }
    raw.to::<Wrapped<T>>().ok().map(|wrapped| wrapped.result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn without_structured_content_the_text_is_read() {
        let result = |text: &str| CallToolResult::new([Content::text(text)]);
        assert_eq!(result("3").structured_as::<i64>().expect("a number"), 3);
        assert_eq!(result("[1, 2]").structured_as::<Vec<i64>>().expect("numbers"), [1, 2]);
        for text in ["3", "\"3\"", "three"] {
            assert_eq!(result(text).structured_as::<String>().expect("text"), text);
        }
        assert!(result("three").structured_as::<i64>().is_err());
        #[derive(Debug, PartialEq, Deserialize)]
        enum Choice {
            Red,
        }
        assert_eq!(result("Red").structured_as::<Choice>().expect("a choice"), Choice::Red);
        assert!(result("Blue").structured_as::<Choice>().is_err());
        assert!(CallToolResult::failed("3").structured_as::<i64>().is_err());
        assert!(CallToolResult::default().structured_as::<()>().is_err());
    }

    #[test]
    fn structured_content_is_found_in_its_wrapping() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Sum {
            result: i64,
        }
        let result = |value: Value| CallToolResult::default().structured(&value);
        assert_eq!(result(json!({"result": 3})).structured_as::<i64>().expect("a number"), 3);
        assert_eq!(result(json!(3)).structured_as::<i64>().expect("a number"), 3);
        assert_eq!(result(json!({"result": 3})).structured_as::<Sum>().expect("a sum"), Sum { result: 3 });
        for bad in [json!({"result": 3, "more": 1}), json!({"result": "3"}), json!({"other": 3})] {
            let error = result(bad).structured_as::<i64>().expect_err("no number");
            assert!(error.message().starts_with("structuredContent: invalid type: map"), "{error}");
        }
    }
}
