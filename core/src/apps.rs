//! MCP Apps, the extension `io.modelcontextprotocol/ui`: tools with a user interface of their own, which the host
//! shows. A tool's answer has to make sense without it, too: not every client shows one.
//!
//! ```
//! use tricorn::apps::{self, ResourceUi, ToolUi};
//! use tricorn::prelude::*;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct City {
//!     city: String,
//! }
//!
//! # fn server() -> tricorn::Result<Server> {
//! let tool = Tool::new("forecast", "The weather of the coming days").meta(ToolUi::new("ui://weather/map")?.meta());
//! let app = Server::new("weather").extension(apps::extension()).tool_with(tool, async |_: City, cx: Context| {
//!     Ok(if apps::is_supported(&cx) { "See the map." } else { "Sunny from Monday to Sunday, 21 to 25 degrees." })
//! });
//! apps::resource(app, "ui://weather/map", &ResourceUi::new(), || "<h1>Map</h1>")
//! # }
//! ```

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::call::Context;
use crate::error::{Error, Result, shortened};
use crate::model::{Resource, ResourceContents};
use crate::server::{Extension, HandlerError, Server};

/// The extension's identifier.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The MIME type of a user interface.
pub const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The extension, for a server.
pub fn extension() -> Extension {
    Extension::new(EXTENSION)
}

/// Returns the settings of a client that shows user interfaces of these MIME types, as a rule [`MIME_TYPE`].
#[must_use]
pub fn client_settings(mime_types: &[&str]) -> Value {
    json!({"mimeTypes": mime_types})
}

/// Returns true if the client of this request shows user interfaces: it declares the extension with [`MIME_TYPE`].
#[must_use]
pub fn is_supported(cx: &Context) -> bool {
    supports(cx, MIME_TYPE)
}

/// The same for user interfaces of this MIME type.
#[must_use]
pub fn supports(cx: &Context, mime_type: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settings {
        #[serde(default)]
        mime_types: Vec<String>,
    }
    let settings = cx.extension(EXTENSION).and_then(|settings| settings.to::<Settings>().ok());
    settings.is_some_and(|settings| settings.mime_types.iter().any(|one| one == mime_type))
}

/// Callers that a tool is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Visibility {
    /// The model.
    Model,
    /// The user interface.
    App,
}

/// The user interface of a tool: `_meta.ui` of its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolUi {
    /// Its address, a `ui://` URI; without one the tool has none, and only `visibility` counts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub resource_uri: Option<String>,
    /// Callers that the tool is meant for. Default: both.
    #[serde(default = "everybody")]
    pub visibility: Vec<Visibility>,
}

fn everybody() -> Vec<Visibility> {
    vec![Visibility::Model, Visibility::App]
}

impl Default for ToolUi {
    /// No user interface, for everybody.
    fn default() -> Self {
        Self { resource_uri: None, visibility: everybody() }
    }
}

impl ToolUi {
    /// The user interface at this `ui://` URI.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) for another URI.
    pub fn new(resource_uri: impl Into<String>) -> Result<Self> {
        let uri = resource_uri.into();
        check("resource_uri", &uri)?;
        Ok(Self { resource_uri: Some(uri), ..Self::default() })
    }

    /// Only these may call the tool.
    #[must_use]
    pub fn visibility(mut self, visibility: impl Into<Vec<Visibility>>) -> Self {
        self.visibility = visibility.into();
        self
    }

    /// The `_meta` of the tool's definition.
    #[must_use]
    pub fn meta(&self) -> Value {
        json!({"ui": self})
    }

    /// That of a listed tool, also under its former name `ui/resourceUri`; `None` for none, or for what is no such thing.
    #[must_use]
    pub fn of(tool: &Map<String, Value>) -> Option<Self> {
        let meta = tool.get("_meta")?;
        let ui = meta.get("ui").map(Value::as_object);
        let own = Self { resource_uri: None, visibility: visibility(tool)? };
        let uri = match ui {
            Some(ui) => ui?.get("resourceUri"),
            None => None,
        };
        match uri.or_else(|| meta.get("ui/resourceUri")) {
            Some(uri) => Some(Self { visibility: own.visibility, ..Self::new(uri.as_str()?).ok()? }),
            None => ui.map(|_| own),
        }
    }

    /// Returns true if a host may tell the model of a listed tool. Not when its visibility is no list.
    #[must_use]
    pub fn is_visible_to_model(tool: &Map<String, Value>) -> bool {
        names(tool, Visibility::Model)
    }

    /// Returns true if a host may let a user interface call a listed tool. Not when its visibility is no list.
    #[must_use]
    pub fn is_callable_by_app(tool: &Map<String, Value>) -> bool {
        names(tool, Visibility::App)
    }
}

fn names(tool: &Map<String, Value>, whom: Visibility) -> bool {
    visibility(tool).is_some_and(|given| given.contains(&whom))
}

/// Returns the known callers of a listed tool; `None` when its `visibility` is no list.
fn visibility(tool: &Map<String, Value>) -> Option<Vec<Visibility>> {
    let Some(given) = tool.get("_meta").and_then(|meta| meta.get("ui")?.get("visibility")) else {
        return Some(everybody());
    };
    Some(given.as_array()?.iter().filter_map(|whom| Visibility::deserialize(whom).ok()).collect())
}

/// Display of a user interface by a host: `_meta.ui` of a resource's contents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResourceUi {
    #[serde(skip_serializing_if = "Map::is_empty")]
    csp: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    permissions: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefers_border: Option<bool>,
}

/// Permission that a user interface would like to have; the host may refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Permission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The user's location.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl ResourceUi {
    /// As the host likes: no origins, no permissions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The origins that requests may go to.
    #[must_use]
    pub fn connect_domains<D: Into<String>>(self, domains: impl IntoIterator<Item = D>) -> Self {
        self.csp("connectDomains", domains)
    }

    /// The origins of images, scripts, styles, fonts and media.
    #[must_use]
    pub fn resource_domains<D: Into<String>>(self, domains: impl IntoIterator<Item = D>) -> Self {
        self.csp("resourceDomains", domains)
    }

    /// The origins of frames.
    #[must_use]
    pub fn frame_domains<D: Into<String>>(self, domains: impl IntoIterator<Item = D>) -> Self {
        self.csp("frameDomains", domains)
    }

    /// The origins of base URIs.
    #[must_use]
    pub fn base_uri_domains<D: Into<String>>(self, domains: impl IntoIterator<Item = D>) -> Self {
        self.csp("baseUriDomains", domains)
    }

    fn csp<D: Into<String>>(mut self, name: &str, domains: impl IntoIterator<Item = D>) -> Self {
        self.csp.insert(name.into(), domains.into_iter().map(|domain| Value::String(domain.into())).collect());
        self
    }

    /// Would like to use this, too.
    #[must_use]
    pub fn permission(mut self, permission: Permission) -> Self {
        if let Value::String(name) = json!(permission) {
            self.permissions.insert(name, json!({}));
        }
        self
    }

    /// The origin that it is to have, as the host names them.
    #[must_use]
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.domain = Some(domain.into());
        self
    }

    /// Asks for a border around it, or for none.
    #[must_use]
    pub fn prefers_border(mut self, yes: bool) -> Self {
        self.prefers_border = Some(yes);
        self
    }

    /// The `_meta` of the resource's contents.
    #[must_use]
    pub fn meta(&self) -> Value {
        json!({"ui": self})
    }
}

/// Adds a user interface to a server: HTML that `html` makes when it is read.
///
/// # Errors
/// [`Misuse`](crate::ErrorKind::Misuse) for a URI that is no `ui://` one.
pub fn resource<H, T>(server: Server, uri: &str, ui: &ResourceUi, html: H) -> Result<Server>
where
    H: Fn() -> T + Send + Sync + 'static,
    T: Into<String>,
{
    resource_with(server, Resource::new(uri, uri.trim_start_matches("ui://")), ui, html)
}

/// The same with a title and whatever else a resource can say of itself. Its MIME type is [`MIME_TYPE`].
///
/// # Errors
/// As [`resource`].
pub fn resource_with<H, T>(server: Server, resource: Resource, ui: &ResourceUi, html: H) -> Result<Server>
where
    H: Fn() -> T + Send + Sync + 'static,
    T: Into<String>,
{
    let uri = resource.members().get("uri").and_then(Value::as_str).unwrap_or_default().to_owned();
    check("uri", &uri)?;
    let meta = ui.meta();
    Ok(server.resource(resource.mime_type(MIME_TYPE), move || {
        let contents =
            ResourceContents::text(html().into()).uri(&*uri).mime_type(MIME_TYPE).with("_meta", meta.clone());
        async { Ok::<_, HandlerError>(contents) }
    }))
}

fn is_ui(uri: &str) -> bool {
    uri.starts_with("ui://")
}

fn check(name: &str, uri: &str) -> Result<()> {
    if is_ui(uri) {
        return Ok(());
    }
    Err(Error::misuse(format!("{name}: expected a URI that begins with ui://, got {:?}", shortened(uri, 100))))
}
