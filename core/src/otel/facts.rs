//! Facts of a request that the semantic conventions ask for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use opentelemetry::KeyValue;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::call::{Context, Request};
use crate::error::{Error, ErrorKind, RESOURCE_NOT_FOUND, Result, shortened};
use crate::jsonrpc::{Id, RawJson, unquoted};

/// The most characters of a name, a URI, an id or a message.
const LONGEST: usize = 1000;

/// One request, as spans and metrics tell it.
pub(super) struct Facts {
    pub(super) is_server: bool,
    method: String,
    revision: String,
    transport: &'static str,
    /// A tool's or prompt's name.
    name: Option<(&'static str, String)>,
    uri: Option<String>,
    id: Option<String>,
    session: Option<String>,
    /// The revision's code for a resource that there is not.
    not_found: i64,
}

impl Facts {
    pub(super) fn of(request: &Request, context: &Context, is_server: bool) -> Self {
        let known = context.request();
        let method = request.method.clone();
        let member = match method.as_str() {
            "tools/call" | "prompts/get" => Some("name"),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
            _ => None,
        };
        let text = member.and_then(|member| text(request.params.as_ref()?, member));
        let (name, uri) = match method.as_str() {
            "tools/call" => (text.map(|name| ("gen_ai.tool.name", name)), None),
            "prompts/get" => (text.map(|name| ("gen_ai.prompt.name", name)), None),
            _ => (None, text),
        };
        // The number of a request that goes out is the connection's, and not known here.
        let id = is_server.then(|| match &known.id {
            Id::Number(number) => number.to_string(),
            Id::String(text) => bounded(text),
        });
        Self {
            is_server,
            method,
            revision: known.revision.to_string(),
            transport: known.transport.kind,
            name,
            uri,
            id,
            session: known.transport.session_id.as_deref().map(str::to_owned),
            not_found: known.revision.rules().resource_not_found,
        }
    }

    /// Method and target, of which there are few.
    pub(super) fn span_name(&self) -> String {
        match &self.name {
            Some((_, name)) => format!("{} {name}", self.method),
            None => self.method.clone(),
        }
    }

    /// Returns the attributes of both spans and metrics.
    pub(super) fn measured(&self) -> Vec<KeyValue> {
        let mut all = vec![
            KeyValue::new("mcp.method.name", self.method.clone()),
            KeyValue::new("mcp.protocol.version", self.revision.clone()),
        ];
        all.extend(self.name.clone().map(|(key, name)| KeyValue::new(key, name)));
        if self.method == "tools/call" {
            all.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
        }
        match self.transport {
            "http" => {
                all.push(KeyValue::new("network.transport", "tcp"));
                all.push(KeyValue::new("network.protocol.name", "http"));
            }
            "stdio" => all.push(KeyValue::new("network.transport", "pipe")),
            _ => {}
        }
        all
    }

    /// Returns the attributes of spans.
    pub(super) fn attributes(&self) -> Vec<KeyValue> {
        let mut all = self.measured();
        let more =
            [("mcp.resource.uri", &self.uri), ("jsonrpc.request.id", &self.id), ("mcp.session.id", &self.session)];
        all.extend(more.into_iter().filter_map(|(key, value)| Some(KeyValue::new(key, value.clone()?))));
        all
    }
}

/// A text among the parameters.
fn text(params: &RawJson, key: &str) -> Option<String> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = params.borrow().ok()?;
    unquoted(members.get(key)?.get()).map(|text| bounded(&text))
}

/// The peer chooses what it says, and spans keep it.
fn bounded(text: &str) -> String {
    shortened(text, LONGEST).to_string()
}

/// Failure of a request.
pub(super) struct Failure {
    /// Its kind, one of a few values.
    pub(super) kind: String,
    pub(super) code: Option<i64>,
    pub(super) message: String,
}

/// Returns the failure of a request, if it failed; a request without an outcome was given up.
pub(super) fn failure(facts: &Facts, outcome: Option<&Result<RawJson>>) -> Option<Failure> {
    match outcome {
        None => Some(Failure { kind: "cancelled".into(), code: None, message: "the request was cancelled".into() }),
        // It goes on with the client's answer.
        Some(Err(error)) if error.kind() == ErrorKind::InputRequired => None,
        Some(Err(error)) => Some(failed(facts, error)),
        Some(Ok(result)) if facts.method == "tools/call" => tool_error(result),
        Some(Ok(_)) => None,
    }
}

fn failed(facts: &Facts, error: &Error) -> Failure {
    // The code that the client gets is made after the middleware.
    let told = |code| if facts.is_server && code == RESOURCE_NOT_FOUND { facts.not_found } else { code };
    let code = error.code().map(told);
    let kind = code.map_or_else(|| error.kind().as_str().to_owned(), |code| code.to_string());
    Failure { kind, code, message: bounded(error.message()) }
}

/// Returns the failure of a tool without the text for the model, which may hold anything.
fn tool_error(result: &RawJson) -> Option<Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        #[serde(default)]
        is_error: bool,
    }
    let failed = result.borrow::<Head>().is_ok_and(|head| head.is_error);
    failed.then(|| Failure { kind: "tool_error".into(), code: None, message: String::new() })
}
