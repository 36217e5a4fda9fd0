use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

use super::{Bridge, lock};
use crate::error::{Error, ErrorKind};
use crate::http::{Body, Endpoint};
use crate::jsonrpc::RawJson;

/// A server mounted in the host's own HTTP server: requests come as text, answers go as events.
pub struct HttpEndpoint {
    bridge: Bridge,
    source: u32,
    endpoint: Endpoint,
    exchanges: Exchanges,
}

/// The exchanges under way, each with what tells it that the host has written the last chunk.
type Exchanges = Arc<Mutex<HashMap<u64, Arc<Notify>>>>;

/// Approximate size of a chunk: it takes in whatever is ready until then.
const CHUNK: usize = 64 << 10;

impl HttpEndpoint {
    pub(super) fn new(bridge: Bridge, source: u32, endpoint: Endpoint) -> Self {
        Self { bridge, source, endpoint, exchanges: Exchanges::default() }
    }

    /// Answers one request. `head` is `{"method", "headers": [[name, value], …], "target"?}`; the target, path and query,
    /// is needed for HTTP+SSE (`sse`), whose clients name their session in the query. The answer arrives as the event `http_head` `{"op", "status", "headers"}`, any number of `http_chunk` `{"op", "text"}`, and the
    /// settlement of `op`. The next chunk comes after [`written`](Self::written). Settling `op` early means that the
    /// client went away.
    pub fn exchange(&self, op: u64, head: &str, body: Bytes) {
        let request = request(head, body);
        let (endpoint, bridge, source) = (self.endpoint.clone(), self.bridge.clone(), self.source);
        let listed = Listed::new(&self.exchanges, op);
        self.bridge.spawn_causing(op, |origin| async move {
            let response = match request {
                Ok(mut request) => {
                    request.extensions_mut().insert(origin);
                    endpoint.handle(request).await
                }
                Err(why) => endpoint.malformed(&why),
            };
            let headers: Vec<(&str, &str)> = response
                .headers()
                .iter()
                .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
                .collect();
            let head = json!({"op": op, "status": response.status().as_u16(), "headers": headers});
            bridge.event(source, "http_head", RawJson::from_value(&head));
            let mut body = response.into_body();
            while let Some(text) = chunk(&mut body).await {
                let chunk = json!({"op": op, "text": String::from_utf8_lossy(&text)});
                bridge.event(source, "http_chunk", RawJson::from_value(&chunk));
                if http_body::Body::is_end_stream(&body) {
                    break;
                }
                // A host that keeps a response and never reads on is as good as gone.
                if tokio::time::timeout(WRITE_TIMEOUT, listed.written.notified()).await.is_err() {
                    return Err(Error::new(ErrorKind::Timeout, "the response was not read on for a minute"));
                }
            }
            Ok(RawJson::empty_object())
        });
    }

    /// `{"path", "text"}` of a document that the host has to serve to everybody, by GET as `application/json`, where its
    /// mount does not reach that path; `None` when there is none.
    #[cfg(feature = "auth")]
    #[must_use]
    pub fn resource_metadata(&self) -> Option<RawJson> {
        let document = self.endpoint.resource_metadata()?;
        Some(RawJson::from_value(&json!({"path": document.path, "text": document.text})))
    }

    /// The host is about to end: streams end at once and in order, what runs has `grace` seconds to be answered, then
    /// everything ends and `op` is settled. A request that comes after that begins anew.
    ///
    /// See [`Endpoint::shutdown`].
    pub fn shutdown(&self, op: u64, grace: f64) {
        let grace = Duration::try_from_secs_f64(grace.clamp(0.0, MAX_GRACE)).unwrap_or_default();
        let ended = self.endpoint.shutdown(grace);
        self.bridge.spawn(op, async move {
            ended.await;
            Ok(RawJson::empty_object())
        });
    }

    #[cfg(test)]
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.exchanges).is_empty()
    }

    /// The host has written the last chunk of exchange `op` and can do with another.
    pub fn written(&self, op: u64) {
        if let Some(written) = lock(&self.exchanges).get(&op) {
            written.notify_one();
        }
    }
}

/// Returns the bytes that the body has ready, once it has some.
async fn chunk(body: &mut Body) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    std::future::poll_fn(|cx| {
        while text.len() < CHUNK {
            match http_body::Body::poll_frame(pin!(&mut *body), cx) {
                Poll::Ready(Some(Ok(frame))) => text.extend_from_slice(frame.data_ref().map_or(&[], |data| data)),
                Poll::Ready(None) => break,
                Poll::Pending if text.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(())
    })
    .await;
    (!text.is_empty()).then_some(text)
}

/// Longest time that the host may take to write one chunk.
const WRITE_TIMEOUT: Duration = if cfg!(test) { Duration::from_millis(500) } else { Duration::from_secs(60) };

/// A day is as good as for ever.
const MAX_GRACE: f64 = 86_400.0;

/// An exchange that is listed for as long as it runs.
struct Listed {
    exchanges: Exchanges,
    op: u64,
    written: Arc<Notify>,
}

impl Listed {
    fn new(exchanges: &Exchanges, op: u64) -> Self {
        let written = Arc::new(Notify::new());
        lock(exchanges).insert(op, written.clone());
        Self { exchanges: exchanges.clone(), op, written }
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        lock(&self.exchanges).remove(&self.op);
    }
}

/// The request; what is no HTTP is the sender's fault.
fn request(head: &str, body: Bytes) -> Result<http::Request<Full<Bytes>>, String> {
    #[derive(Deserialize)]
    struct Head {
        method: String,
        headers: Vec<(String, String)>,
        #[serde(default)]
        target: Option<String>,
    }
    let head: Head = serde_json::from_str(head).map_err(|e| e.to_string())?;
    let mut request = http::Request::builder().method(head.method.as_str());
    request = request.uri(head.target.as_deref().unwrap_or("/"));
    for (name, value) in head.headers {
        request = request.header(name, value);
    }
    request.body(Full::new(body)).map_err(|e| e.to_string())
}
