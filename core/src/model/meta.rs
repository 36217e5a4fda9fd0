//! `_meta`: the keys this crate acts on. Everything else in it passes through.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::jsonrpc::{self, RawJson};

/// The revision of a modern request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The capabilities of the client that sent a modern request.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The identity of the client that sent a modern request.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The least level of log messages a modern request asks for.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Key of the token under which a request wants to hear of its progress.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The identity of the server that sent a modern result.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The listen stream that a notification belongs to, by the id of its request.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Key of a result that a client kept for longer than it should have been, and that it gives because the server could
/// not be asked: `{"ageMs"}`, since it was received.
pub const STALE: &str = "tricorn/stale";

/// The task that a message belongs to: `{"taskId"}`.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The members of a request's `_meta` that steer the engine, borrowed.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RequestMeta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion", deserialize_with = "present")]
    pub(crate) protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(crate) client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub(crate) client_info: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    pub(crate) log_level: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "progressToken")]
    pub(crate) progress_token: Option<&'a RawValue>,
}

/// `null` is a value here, not an absence.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The members of a request's `params` that routing needs, borrowed, read in one pass.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ParamsHead<'a> {
    #[serde(borrow, default, rename = "_meta")]
    pub(crate) meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) task: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "inputResponses", deserialize_with = "present")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestState", deserialize_with = "present")]
    request_state: Option<&'a RawValue>,
}

impl ParamsHead<'_> {
    /// Returns true if the request came before, and was answered with questions: it goes on with their answers.
    pub(crate) fn goes_on(&self) -> bool {
        self.input_responses.is_some() || self.request_state.is_some()
    }
}

/// The text of a JSON string, if `raw` is one.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    jsonrpc::unquoted(raw.get())
}

/// The text of a JSON string, if `raw` is one.
pub(crate) fn text(raw: &RawJson) -> Option<Cow<'_, str>> {
    jsonrpc::unquoted(raw.get())
}
