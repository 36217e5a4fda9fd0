use std::sync::Arc;

use serde_json::json;

use super::{Bridge, HostHandler};
use crate::error::Result;
use crate::jsonrpc::RawJson;
use crate::model::Tool;
use crate::server::{self, ServerOptions};

/// A host's server object.
pub struct Server {
    bridge: Bridge,
    source: u32,
    pub(super) server: server::Server,
}

impl Server {
    /// A server; `source` is the number under which its events arrive, `options` are [`ServerOptions`] as JSON.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn new(bridge: &Bridge, source: u32, options: &str) -> Result<Self> {
        let options = ServerOptions::parse(options)?;
        Ok(Self { bridge: bridge.clone(), source, server: server::Server::with_options(options) })
    }

    /// Adds a tool: `definition` is the schema's `Tool` as JSON, `handler` names the host's function.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) when the definition or a schema is bad or the name is taken.
    pub fn add_tool(&self, definition: &str, handler: u32) -> Result<()> {
        let tool = Tool::parse(definition)?;
        self.server.add_tool(tool, Arc::new(HostHandler { bridge: self.bridge.clone(), handler }))
    }

    /// Removes a tool. Says whether there was one.
    pub fn remove_tool(&self, name: &str) -> bool {
        self.server.remove_tool(name)
    }

    /// Serves on the process's standard streams; settles `{}` when input has ended and all is answered.
    #[cfg(feature = "client-process")]
    pub fn serve_stdio(&self, op: u64) {
        let server = self.server.clone();
        self.bridge.spawn(op, async move { server.serve_stdio().await.map(|()| RawJson::empty_object()) });
    }

    /// Serves over HTTP. `options` are [`HttpOptions`](crate::http::HttpOptions) as JSON. The event `listening`
    /// `{"url"}` says where; settles `{}` after [`close`](Self::close).
    #[cfg(feature = "http")]
    pub fn serve_http(&self, options: &str, op: u64) {
        let options = crate::http::HttpOptions::parse(options);
        let (server, bridge, source) = (self.server.clone(), self.bridge.clone(), self.source);
        self.bridge.spawn(op, async move {
            let serving = server.serve_http(options?).await?;
            bridge.event(source, "listening", RawJson::from_value(&json!({"url": serving.url()})));
            serving.join().await;
            Ok(RawJson::empty_object())
        });
    }

    /// The server as an HTTP endpoint without a socket, to be mounted in the host's own HTTP server.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    #[cfg(feature = "http")]
    pub fn http(&self, options: &str) -> Result<super::HttpEndpoint> {
        let options = crate::http::HttpOptions::parse(options)?;
        let endpoint = self.server.endpoint(options)?;
        Ok(super::HttpEndpoint::new(self.bridge.clone(), self.source, endpoint))
    }

    /// Stops serving everywhere: nothing more is accepted, running calls are cancelled, serving operations settle.
    pub fn close(&self) {
        self.server.close();
    }

    /// `{"connections", "bridge_queued", "bridge_calls", "bridge_ops", "bridge_dropped", …}`
    #[must_use]
    pub fn metrics(&self) -> RawJson {
        let bridge = self.bridge.metrics();
        let mut value = self.server.metrics();
        if let Some(members) = value.as_object_mut() {
            members.insert("bridge_queued".into(), bridge.queued.into());
            members.insert("bridge_calls".into(), bridge.calls.into());
            members.insert("bridge_ops".into(), bridge.ops.into());
            members.insert("bridge_dropped".into(), bridge.dropped.into());
        }
        RawJson::from_value(&value)
    }
}

impl server::Server {
    /// The server's gauges as a JSON object: `connections` (pipes and sockets), `in_flight` (calls of all transports),
    /// and of HTTP `sessions` and `streams`.
    #[must_use]
    pub fn metrics(&self) -> serde_json::Value {
        let usage = self.usage();
        json!({
            "connections": usage.connections,
            "sessions": usage.sessions,
            "in_flight": usage.in_flight,
            "streams": usage.streams,
        })
    }
}
