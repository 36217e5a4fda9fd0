use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::CallOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::{CallToolResult, Capabilities};
use crate::protocol::Opening;
use crate::protocol::revision::{Method, Revision, shape};

/// Keeps a request alive; dropped before the answer it cancels the request at the peer.
pub(crate) type Guard = Box<dyn Send + Sync>;

/// The way to the peer, whatever moves the bytes.
pub(crate) trait Link: Send + Sync {
    /// Sends a request; `done` is called once, from any thread.
    fn request(
        self: Arc<Self>,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        done: Box<dyn FnOnce(Result<RawJson>) + Send>,
    ) -> Guard;
    /// Sends a notification.
    fn notify(self: Arc<Self>, method: &'static str, params: RawJson);
    /// Requests that wait for an answer.
    fn awaited(&self) -> usize;
}

/// Ends a connection in order.
pub(crate) trait Closer: Send + Sync {
    /// The id of the legacy HTTP session, when the server gave one.
    fn session_id(&self) -> Option<String> {
        None
    }
    /// Whether the server turned out to speak the oldest HTTP transport.
    fn is_pair(&self) -> bool {
        false
    }
    /// Starts the end; the future resolves when it is done.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// One page of `tools/list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListToolsResult {
    /// The definitions, with every member kept, known or not.
    pub tools: Vec<Map<String, Value>>,
    /// Where the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// How a result of `method` is checked for hosts that read it themselves: the shape that Rust's typed methods need.
#[cfg(feature = "runtime")]
pub(crate) fn check_of(method: &str) -> fn(&RawJson) -> Result<()> {
    /// An object of any members.
    struct Object;
    impl<'de> Deserialize<'de> for Object {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
            deserializer.deserialize_map(Self)
        }
    }
    impl<'de> serde::de::Visitor<'de> for Object {
        type Value = Self;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self, A::Error> {
            while map.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
            Ok(self)
        }
    }
    #[derive(Deserialize)]
    struct Tools {
        #[serde(rename = "tools")]
        _tools: Vec<Object>,
        #[serde(default, rename = "nextCursor")]
        _next_cursor: Option<String>,
    }
    #[derive(Deserialize)]
    struct Called {
        #[serde(default, rename = "content")]
        _content: Vec<Object>,
        #[serde(default, rename = "isError")]
        _is_error: bool,
    }
    fn fits<T: serde::de::DeserializeOwned>(method: &str, result: &RawJson) -> Result<()> {
        let fit = result.to::<T>().map(drop);
        fit.map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("result of {method}: {e}")))
    }
    match method {
        "tools/list" => |result| fits::<Tools>("tools/list", result),
        "tools/call" => |result| fits::<Called>("tools/call", result),
        _ => |_| Ok(()),
    }
}

pub(crate) struct Connected {
    pub(crate) link: Arc<dyn Link>,
    pub(crate) closer: Arc<dyn Closer>,
    pub(crate) opening: Opening,
    pub(crate) timeout: Option<Duration>,
    pub(crate) transport: &'static str,
}

/// A connected client. A clone is the same connection; it ends with [`close`](Self::close) or the last clone.
#[derive(Clone)]
pub struct Client {
    pub(crate) connected: Arc<Connected>,
}

/// The most pages that listing everything reads.
const MAX_PAGES: usize = 1000;

impl Client {
    /// The negotiated revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.connected.opening.revision
    }

    /// `stdio`, `http` or `memory`.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.connected.transport
    }

    /// The server's `Implementation` object, when it sent one.
    #[must_use]
    pub fn server_info(&self) -> Option<&RawJson> {
        self.connected.opening.peer.info.as_ref()
    }

    /// What the server offers.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.connected.opening.peer.capabilities
    }

    /// The server's hint for the model.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.connected.opening.instructions.as_deref()
    }

    /// The id of the legacy HTTP session, when the server gave one. It changes when the server loses the session.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.connected.closer.session_id()
    }

    /// Sends any request. Dropping the future cancels it at the server.
    ///
    /// # Errors
    /// [`Rpc`](ErrorKind::Rpc) for the server's error, [`Timeout`](ErrorKind::Timeout), [`Closed`](ErrorKind::Closed),
    /// [`Transport`](ErrorKind::Transport); [`Unsupported`](ErrorKind::Unsupported) when the negotiated revision has
    /// no such method.
    pub fn request(&self, method: &str, params: Option<RawJson>, options: &CallOptions) -> Answer {
        let slot: Arc<Mutex<Slot>> = Arc::default();
        let filled = slot.clone();
        let done = Box::new(move |outcome| {
            let mut slot = filled.lock().unwrap_or_else(PoisonError::into_inner);
            slot.outcome = Some(outcome);
            let waker = slot.waker.take();
            drop(slot);
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        let guard = self.start(method, params, options, done);
        Answer { slot, guard: Some(guard) }
    }

    /// Sends any request; `done` is called once, from any thread. Dropping what is returned cancels.
    pub(crate) fn start(
        &self,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        done: Box<dyn FnOnce(Result<RawJson>) + Send>,
    ) -> Guard {
        let mut options = options.clone();
        options.timeout = options.timeout.or(self.connected.timeout).filter(|timeout| !timeout.is_zero());
        options.max_timeout = options.max_timeout.filter(|timeout| !timeout.is_zero());
        let params = match &options.meta {
            None => params,
            Some(meta) if meta.is_object() => Some(with_meta(params.as_ref(), meta)),
            Some(meta) => {
                done(Err(Error::misuse(format!("request option \"meta\": expected an object, got {meta}"))));
                return Box::new(());
            }
        };
        self.connected.link.clone().request(method, params, &options, done)
    }

    /// Sends a notification of the protocol.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) for a method that a client does not notify.
    pub fn notify(&self, method: &str, params: Option<RawJson>) -> Result<()> {
        let row = Method::find(method).filter(|m| m.notification && m.from_client() && m.exists_in(self.revision()));
        let Some(row) = row else {
            return Err(Error::misuse(format!(
                "{method:?} is no notification of a client in revision {}",
                self.revision()
            )));
        };
        self.connected.link.clone().notify(row.name, params.unwrap_or_else(RawJson::empty_object));
        Ok(())
    }

    /// One page of the server's tools; `cursor` is the previous page's `next_cursor`.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn list_tools_page(&self, cursor: Option<&str>) -> Result<ListToolsResult> {
        self.list_tools_page_with(cursor, &CallOptions::default()).await
    }

    /// One page of the server's tools, with options.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn list_tools_page_with(&self, cursor: Option<&str>, options: &CallOptions) -> Result<ListToolsResult> {
        let params = cursor.map(|cursor| RawJson::from_value(&json!({"cursor": cursor})));
        let result = self.request("tools/list", params, options).await?;
        result.to().map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("result of tools/list: {e}")))
    }

    /// All the server's tools.
    ///
    /// # Errors
    /// As [`request`](Self::request); [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) when the pages do not end.
    pub async fn list_tools(&self) -> Result<Vec<Map<String, Value>>> {
        self.list_tools_with(&CallOptions::default()).await
    }

    /// All the server's tools; the options hold for each page.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_tools_with(&self, options: &CallOptions) -> Result<Vec<Map<String, Value>>> {
        let (mut tools, mut seen) = (Vec::new(), Vec::<String>::new());
        while seen.len() < MAX_PAGES {
            let page = self.list_tools_page_with(seen.last().map(String::as_str), options).await?;
            tools.extend(page.tools);
            match page.next_cursor {
                Some(next) if seen.contains(&next) => {
                    let message = format!("tools/list never ends: the cursor {next:?} came twice");
                    return Err(Error::new(ErrorKind::PeerMisbehaved, message));
                }
                Some(next) => seen.push(next),
                None => return Ok(tools),
            }
        }
        let message = format!("tools/list never ends: there are more than {MAX_PAGES} pages");
        Err(Error::new(ErrorKind::PeerMisbehaved, message))
    }

    /// Calls a tool. A tool that fails is a result with `is_error`, not an error.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<CallToolResult> {
        self.call_tool_with(name, arguments, &CallOptions::default()).await
    }

    /// Calls a tool with options.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn call_tool_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: &CallOptions,
    ) -> Result<CallToolResult> {
        #[derive(Serialize)]
        struct Params<'a, A> {
            name: &'a str,
            arguments: &'a A,
        }
        let params = RawJson::from_value(&Params { name, arguments: &arguments });
        let result = self.request("tools/call", Some(params), options).await?;
        result.to().map_err(|e| Error::new(ErrorKind::PeerMisbehaved, format!("result of tools/call: {e}")))
    }

    /// Asks for a sign of life. Where the revision has no `ping`, `server/discover` is asked instead.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn ping(&self) -> Result<()> {
        self.ping_with(&CallOptions::default()).await
    }

    /// Asks for a sign of life, with options.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn ping_with(&self, options: &CallOptions) -> Result<()> {
        self.request("ping", None, options).await.map(drop)
    }

    /// Requests of this client that wait for an answer.
    #[must_use]
    pub fn awaited(&self) -> usize {
        self.connected.link.awaited()
    }

    /// Ends the connection in order: a session is deleted, a child process is let go, then told, then killed.
    pub async fn close(&self) {
        self.connected.closer.close().await;
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("opening", &self.connected.opening).finish_non_exhaustive()
    }
}

/// The parameters with these members in their `_meta`.
fn with_meta(params: Option<&RawJson>, meta: &RawJson) -> RawJson {
    let given = params.map_or("{}", RawJson::get);
    let own = shape::members(meta.get());
    let (mut text, mut merged) = (String::from("{"), String::from("{"));
    for (key, value) in shape::members(given) {
        if key == "_meta" {
            let kept = shape::members(value.get()).into_iter().filter(|(key, _)| own.iter().all(|(k, _)| k != key));
            kept.for_each(|(key, value)| shape::push_member(&mut merged, &key, value.get()));
        } else {
            shape::push_member(&mut text, &key, value.get());
        }
    }
    own.iter().for_each(|(key, value)| shape::push_member(&mut merged, key, value.get()));
    merged.push('}');
    shape::push_member(&mut text, "_meta", &merged);
    text.push('}');
    RawJson::written(text)
}

#[derive(Default)]
struct Slot {
    outcome: Option<Result<RawJson>>,
    waker: Option<Waker>,
}

/// The answer to a request, as a future. Dropping it cancels the request at the peer.
#[must_use]
pub struct Answer {
    slot: Arc<Mutex<Slot>>,
    guard: Option<Guard>,
}

impl Future for Answer {
    type Output = Result<RawJson>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        match slot.outcome.take() {
            Some(outcome) => {
                drop(slot);
                self.guard = None;
                Poll::Ready(outcome)
            }
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_meta_joins_what_the_parameters_have() {
        let meta = RawJson::trusted(r#"{"a":1,"n":12345678901234567890123}"#);
        assert_eq!(with_meta(None, &meta).get(), r#"{"_meta":{"a":1,"n":12345678901234567890123}}"#);
        let params = RawJson::trusted(r#"{"name":"t","_meta":{"b":2,"a":0}}"#);
        let merged = r#"{"name":"t","_meta":{"b":2,"a":1,"n":12345678901234567890123}}"#;
        assert_eq!(with_meta(Some(&params), &meta).get(), merged);
    }
}
