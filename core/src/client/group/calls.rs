use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;

use serde::Serialize;
use serde_json::{Map, Value};

use super::joined::Joined;
use super::listing::Snapshot;
use super::route::Route;
use super::{ClientGroup, MAX_SERVERS, all, lock};
use crate::call::CallOptions;
use crate::error::{Error, Result};
use crate::model::{CallToolResult, CompleteResult, ReadResourceResult, UriTemplate};
use crate::protocol::{Kind, LogLevel};

/// The most templates that are read to find the server of one URI, those that may fit by their beginning, and the most
/// bytes of them.
const MAX_TEMPLATES_TRIED: usize = 1000;
const MAX_BYTES_TRIED: usize = 64 << 10;

impl ClientGroup {
    /// Calls a tool by its public name. A tool that fails is a result with `is_error`, not an error.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when no server has such a tool, naming what is near; as
    /// [`Client::request`](crate::Client::request).
    pub async fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<CallToolResult> {
        self.call_tool_with(name, arguments, &CallOptions::default()).await
    }

    /// Calls a tool by its public name, with options.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: &CallOptions,
    ) -> Result<CallToolResult> {
        let route = self.route(Kind::Tool, name).await?;
        route.client.call_tool_with(&route.name, arguments, options).await
    }

    /// Gets a prompt by its public name: a `GetPromptResult`. Arguments are text.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<Map<String, Value>> {
        self.get_prompt_with(name, arguments, &CallOptions::default()).await
    }

    /// Gets a prompt by its public name, with options.
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool).
    pub async fn get_prompt_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: &CallOptions,
    ) -> Result<Map<String, Value>> {
        let route = self.route(Kind::Prompt, name).await?;
        route.client.get_prompt_with(&route.name, arguments, options).await
    }

    /// Reads the resource of this URI from the server that lists it, else from the one that has a template for it, else
    /// from the only one that has resources.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when it could be several servers', naming them, or nobody's; as
    /// [`Client::read_resource`](crate::Client::read_resource).
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult> {
        self.read_resource_with(uri, &CallOptions::default()).await
    }

    /// Reads a resource, with options.
    ///
    /// # Errors
    /// As [`read_resource`](Self::read_resource).
    pub async fn read_resource_with(&self, uri: &str, options: &CallOptions) -> Result<ReadResourceResult> {
        self.route_uri(uri).await?.client.read_resource_with(uri, options).await
    }

    /// Completes an argument of a prompt, by its public name, or a variable of a resource template, by its URI
    /// template. As [`Client::complete`](crate::Client::complete).
    ///
    /// # Errors
    /// As [`call_tool`](Self::call_tool) and [`read_resource`](Self::read_resource).
    pub async fn complete(
        &self,
        kind: Kind,
        name: &str,
        argument: &str,
        value: &str,
        context: Option<&Map<String, Value>>,
    ) -> Result<CompleteResult> {
        let route = match kind {
            Kind::ResourceTemplate => self.route_template(name).await?,
            kind => self.route(kind, name).await?,
        };
        route.client.complete(kind, &route.name, argument, value, context).await
    }

    /// Asks all servers that log for messages of at least this level, and those that are connected later. Returns the
    /// errors, by server.
    #[deprecated(note = "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry")]
    pub async fn set_log_level(&self, level: LogLevel) -> BTreeMap<String, Error> {
        *lock(&self.0.log_level) = Some(level);
        let mut servers = lock(&self.0.members).joined();
        servers.retain(|(_, server)| server.client.capabilities().has("logging"));
        #[allow(deprecated, reason = "this is of it")]
        let tell = |(name, server): (String, Joined)| async move {
            Some((name, server.client.set_log_level_with(level, &CallOptions::default()).await.err()?))
        };
        let told = servers.into_iter().map(tell).collect();
        all(told, MAX_SERVERS).await.into_iter().flatten().collect()
    }

    /// The server of a resource.
    pub(crate) async fn route_uri(&self, uri: &str) -> Result<Route> {
        let listed = self.known(Kind::Resource).await;
        let of_list = having(&listed, Kind::Resource, |known| known == uri);
        if let Some(route) = only(of_list, "resource", uri)? {
            return Ok(route);
        }
        let templates = self.known(Kind::ResourceTemplate).await;
        let (mut left, mut bytes) = (MAX_TEMPLATES_TRIED, MAX_BYTES_TRIED);
        let mut of_template: Vec<Route> = Vec::new();
        for (server, _, definition) in templates.iter() {
            let template = definition.get(Kind::ResourceTemplate.key()).and_then(Value::as_str).unwrap_or_default();
            if of_template.iter().any(|route| route.server == server.0) || !UriTemplate::may_match(template, uri) {
                continue;
            }
            if left == 0 {
                break;
            }
            if bytes < template.len() {
                continue;
            }
            (left, bytes) = (left - 1, bytes - template.len());
            if UriTemplate::parse(template).is_ok_and(|template| template.matches(uri).is_some()) {
                of_template.extend(Route::of(Some((server, template))));
            }
            // To read one takes milliseconds, in which nothing else happens on this thread.
            give_way().await;
        }
        of_template.iter_mut().for_each(|route| uri.clone_into(&mut route.name));
        if let Some(route) = only(of_template, "resource", uri)? {
            return Ok(route);
        }
        // It need not be listed anywhere, and a tool may have given it.
        match &self.declaring(Kind::Resource)[..] {
            [(server, joined)] => {
                Ok(Route { client: joined.client.clone(), server: server.clone(), name: uri.to_owned() })
            }
            [] => Err(Error::misuse(format!("no connected server of the group has resources: {uri:?}"))),
            several => {
                let names: Vec<_> = several.iter().map(|(name, _)| format!("{name:?}")).collect();
                Err(Error::misuse(format!(
                    "no server of the group lists the resource {uri:?} or a template for it: take the client of the one \
                     that is meant (get), one of {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// The server of a resource template: its URI template or its public name.
    pub(crate) async fn route_template(&self, name: &str) -> Result<Route> {
        let known = self.known(Kind::ResourceTemplate).await;
        match only(having(&known, Kind::ResourceTemplate, |template| template == name), "resource template", name)? {
            Some(route) => Ok(route),
            None => self.route(Kind::ResourceTemplate, name).await,
        }
    }
}

/// Lets others go on.
async fn give_way() {
    let mut is_begun = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut is_begun, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The servers of which something fits, each once.
fn having(known: &Snapshot, kind: Kind, mut fits: impl FnMut(&str) -> bool) -> Vec<Route> {
    let mut found: Vec<Route> = Vec::new();
    for (server, _, definition) in known.iter() {
        let id = definition.get(kind.key()).and_then(Value::as_str).unwrap_or_default();
        if found.iter().all(|route| route.server != server.0) && fits(id) {
            found.extend(Route::of(Some((server, id))));
        }
    }
    found
}

/// The one that there is, if it is one.
fn only(mut found: Vec<Route>, what: &str, uri: &str) -> Result<Option<Route>> {
    if found.len() > 1 {
        let names: Vec<_> = found.iter().map(|route| format!("{:?}", route.server)).collect();
        return Err(Error::misuse(format!(
            "the {what} {uri:?} is one of several servers: take the client of the one that is meant (get), one of {}",
            names.join(", ")
        )));
    }
    Ok(found.pop())
}
