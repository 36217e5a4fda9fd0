use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use serde::Deserialize;
use serde_json::json;

use super::Bridge;
use crate::error::{Error, Result};
use crate::http::Endpoint;
use crate::jsonrpc::RawJson;

/// A server mounted in the host's own HTTP server: requests come as text, answers go as events.
pub struct HttpEndpoint {
    bridge: Bridge,
    source: u32,
    endpoint: Endpoint,
}

impl HttpEndpoint {
    pub(super) fn new(bridge: Bridge, source: u32, endpoint: Endpoint) -> Self {
        Self { bridge, source, endpoint }
    }

    /// Answers one request. `head` is `{"method", "path", "headers": [[name, value], …]}`. The answer arrives as the
    /// event `http_head` `{"op", "status", "headers"}`, any number of `http_chunk` `{"op", "text"}`, and the
    /// settlement of `op`. Settling `op` early means that the client went away.
    pub fn exchange(&self, op: u64, head: &str, body: Bytes) {
        let request = request(head, body);
        let (endpoint, bridge, source) = (self.endpoint.clone(), self.bridge.clone(), self.source);
        self.bridge.spawn(op, async move {
            let response = endpoint.handle(request?).await;
            let headers: Vec<(&str, &str)> = response
                .headers()
                .iter()
                .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
                .collect();
            let head = json!({"op": op, "status": response.status().as_u16(), "headers": headers});
            bridge.event(source, "http_head", RawJson::from_value(&head));
            let mut body = response.into_body();
            while let Some(frame) = body.frame().await {
                let Ok(frame) = frame;
                if let Ok(data) = frame.into_data() {
                    let chunk = json!({"op": op, "text": String::from_utf8_lossy(&data)});
                    bridge.event(source, "http_chunk", RawJson::from_value(&chunk));
                }
            }
            Ok(RawJson::empty_object())
        });
    }
}

fn request(head: &str, body: Bytes) -> Result<http::Request<Full<Bytes>>> {
    #[derive(Deserialize)]
    struct Head {
        method: String,
        path: String,
        headers: Vec<(String, String)>,
    }
    let head: Head = serde_json::from_str(head).map_err(|e| Error::misuse(format!("HTTP request head: {e}")))?;
    let mut request = http::Request::builder().method(head.method.as_str()).uri(head.path);
    for (name, value) in head.headers {
        request = request.header(name, value);
    }
    request.body(Full::new(body)).map_err(|e| Error::misuse(format!("HTTP request head: {e}")))
}
