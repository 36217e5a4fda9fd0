//! Features of a server, as its client asks for them: lists, resources, prompts, completion, logging.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use futures_core::Stream;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Client;
use super::results::{ListPage, ListToolsResult, method, page, typed};
use crate::call::{Answer, CallOptions};
use crate::error::{Error, ErrorKind, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::model::{CompleteResult, ReadResourceResult};
use crate::protocol::{Kind, LogLevel};

/// The most pages that listing everything reads.
const MAX_PAGES: usize = 1000;

/// Tells cursors from each other.
static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Check for a server whose pages do not end.
#[derive(Default)]
pub(super) struct Seen(Vec<u64>);

impl Seen {
    /// The next page's cursor; none when the list ends with an empty one that was there before.
    pub(super) fn next(&mut self, method: &str, cursor: String) -> Result<Option<String>> {
        let misbehaved = |what: String| {
            Err(Error::new(ErrorKind::PeerMisbehaved, format!("{method} never ends: {what}")).received())
        };
        // They may be of any length, and there may be many.
        let digest = STATE.hash_one(&cursor);
        if self.0.contains(&digest) {
            if cursor.is_empty() {
                return Ok(None);
            }
            return misbehaved(format!("the cursor {:?} came twice", shortened(&cursor, 100)));
        }
        if self.0.len() + 1 >= MAX_PAGES {
            return misbehaved(format!("there are more than {MAX_PAGES} pages"));
        }
        self.0.push(digest);
        Ok(Some(cursor))
    }
}

/// The entries of a list, page by page as they are asked for: a stream, or [`next_page`](Self::next_page). A cursor that
/// the server refuses may be of a page that was kept, and of a list that is another one now: then all pages are asked for
/// once more from the first, and what was given already is left out.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use tricorn::prelude::*;
/// use tricorn::server::Kind;
///
/// # let server = Server::new("shelf").tool("search", "Search", async || Ok("nothing"));
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let mut pages = client.pages(Kind::Tool, &CallOptions::new());
/// // Asks for a page only when the one before had no such tool.
/// while let Some(page) = pages.next_page().await? {
///     if let Some(tool) = page.entries.iter().find(|tool| tool["name"] == "search") {
///         println!("{}", tool["description"]);
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Pages {
    client: Client,
    kind: Kind,
    options: CallOptions,
    seen: Seen,
    state: State,
    /// Entries that were given before the list began anew.
    given: HashSet<String>,
    is_anew: bool,
}

enum State {
    /// The next page begins here.
    Ready(Option<String>),
    /// The page that begins there is asked for.
    Asking(Answer, Option<String>),
    /// The last page, with those entries that were not taken yet, in reverse.
    Has(ListPage),
    /// The page that begins here could not be had. A stream ends with that; [`next_page`](Pages::next_page) asks again.
    Failed(Option<String>),
    Ended,
}

impl State {
    fn after(next: Option<String>) -> Self {
        next.map_or(Self::Ended, |cursor| Self::Ready(Some(cursor)))
    }
}

impl Pages {
    fn method(&self) -> &'static str {
        method(self.kind)
    }

    fn read(&mut self, outcome: Result<RawJson>) -> Result<ListPage> {
        let mut page = outcome.and_then(|result| page(self.kind, &result))?;
        page.next_cursor = page.next_cursor.map(|cursor| self.seen.next(self.method(), cursor)).transpose()?.flatten();
        if self.is_anew {
            page.entries.retain(|entry| self.name(entry).is_none_or(|name| !self.given.contains(name)));
        }
        Ok(page)
    }

    fn name<'a>(&self, entry: &'a Map<String, Value>) -> Option<&'a str> {
        entry.get(self.kind.key()).and_then(Value::as_str)
    }

    /// Remembers what was given, in case the list begins anew.
    fn give(&mut self, entries: &[Map<String, Value>]) {
        if !self.is_anew {
            let names: Vec<_> = entries.iter().filter_map(|entry| self.name(entry)).map(str::to_owned).collect();
            self.given.extend(names);
        }
    }

    /// Returns true if the list is to be read from its first page, because the page at `cursor` was refused. Once.
    fn begins_anew(&mut self, cursor: Option<&str>, error: &Error) -> bool {
        let begins = cursor.is_some() && error.code() == Some(code::INVALID_PARAMS) && !self.is_anew;
        if begins {
            (self.is_anew, self.seen) = (true, Seen::default());
        }
        begins
    }

    /// The next page; none after the last. The rest of a page that the stream has not given yet is one. After an error,
    /// or when the future was dropped, the same page is asked for again.
    ///
    /// # Errors
    /// As [`Client::request`]; [`PeerMisbehaved`](ErrorKind::PeerMisbehaved) when the pages do not end.
    pub async fn next_page(&mut self) -> Result<Option<ListPage>> {
        loop {
            let was_anew = self.is_anew;
            let page = self.following_page().await;
            if self.is_anew == was_anew {
                if let Ok(Some(page)) = &page {
                    self.give(&page.entries);
                }
                return page;
            }
        }
    }

    /// As [`next_page`](Self::next_page). An error may also be that the list begins anew.
    async fn following_page(&mut self) -> Result<Option<ListPage>> {
        let (asked, cursor) = match std::mem::replace(&mut self.state, State::Ended) {
            State::Ended => return Ok(None),
            State::Has(mut page) if !page.entries.is_empty() => {
                page.entries.reverse();
                self.state = State::after(page.next_cursor.clone());
                return Ok(Some(page));
            }
            State::Has(ListPage { next_cursor: None, .. }) => return Ok(None),
            State::Ready(cursor) | State::Failed(cursor) | State::Has(ListPage { next_cursor: cursor, .. }) => {
                (None, cursor)
            }
            State::Asking(answer, cursor) => (Some(answer), cursor),
        };
        // Should this be dropped, the list is not at its end.
        self.state = State::Ready(cursor.clone());
        let asked = asked.unwrap_or_else(|| self.client.list_request(self.kind, cursor.as_deref(), &self.options));
        let outcome = asked.await;
        match self.read(outcome) {
            Ok(page) => {
                self.state = State::after(page.next_cursor.clone());
                Ok(Some(page))
            }
            Err(error) => {
                let anew = self.begins_anew(cursor.as_deref(), &error);
                self.state = if anew { State::Ready(None) } else { State::Failed(cursor) };
                Err(error)
            }
        }
    }

    /// Everything that is left.
    ///
    /// # Errors
    /// As [`next_page`](Self::next_page).
    pub async fn all(mut self) -> Result<Vec<Map<String, Value>>> {
        let mut all = Vec::new();
        loop {
            let was_anew = self.is_anew;
            match self.following_page().await {
                Ok(Some(page)) => all.extend(page.entries),
                Ok(None) => return Ok(all),
                // None of it was given to anybody yet.
                Err(_) if self.is_anew != was_anew => all.clear(),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Stream for Pages {
    type Item = Result<Map<String, Value>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Poll::Ready(None),
                State::Failed(cursor) => {
                    self.state = State::Failed(cursor);
                    return Poll::Ready(None);
                }
                State::Ready(cursor) => {
                    let answer = self.client.list_request(self.kind, cursor.as_deref(), &self.options);
                    self.state = State::Asking(answer, cursor);
                }
                State::Asking(mut answer, cursor) => match std::future::Future::poll(Pin::new(&mut answer), cx) {
                    Poll::Pending => {
                        self.state = State::Asking(answer, cursor);
                        return Poll::Pending;
                    }
                    Poll::Ready(outcome) => match self.read(outcome) {
                        Ok(mut page) => {
                            page.entries.reverse();
                            self.state = State::Has(page);
                        }
                        Err(error) if self.begins_anew(cursor.as_deref(), &error) => self.state = State::Ready(None),
                        Err(error) => {
                            self.state = State::Failed(cursor);
                            return Poll::Ready(Some(Err(error)));
                        }
                    },
                },
                State::Has(mut page) => match page.entries.pop() {
                    Some(entry) => {
                        self.give(std::slice::from_ref(&entry));
                        self.state = State::Has(page);
                        return Poll::Ready(Some(Ok(entry)));
                    }
                    None => self.state = State::after(page.next_cursor),
                },
            }
        }
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").field("method", &self.method()).finish_non_exhaustive()
    }
}

impl Client {
    fn list_request(&self, kind: Kind, cursor: Option<&str>, options: &CallOptions) -> Answer {
        let params = cursor.map(|cursor| RawJson::from_value(&json!({"cursor": cursor})));
        self.request(method(kind), params, options)
    }

    /// Returns the server's list of this kind, page by page as it is asked for. The options hold for each page.
    #[must_use]
    pub fn pages(&self, kind: Kind, options: &CallOptions) -> Pages {
        let (client, options) = (self.clone(), options.clone());
        let (seen, given) = (Seen::default(), HashSet::new());
        Pages { client, kind, options, seen, state: State::Ready(None), given, is_anew: false }
    }

    /// One page of what the server lists of this kind; `cursor` is the previous page's `next_cursor`.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn page(&self, kind: Kind, cursor: Option<&str>, options: &CallOptions) -> Result<ListPage> {
        page(kind, &self.list_request(kind, cursor, options).await?)
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
        let result = self.list_request(Kind::Tool, cursor, options).await?;
        typed("tools/list", &result)
    }

    /// One page of the server's resources; `cursor` is the previous page's `next_cursor`.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn list_resources_page(&self, cursor: Option<&str>) -> Result<ListPage> {
        self.page(Kind::Resource, cursor, &CallOptions::default()).await
    }

    /// One page of the server's resource templates; `cursor` is the previous page's `next_cursor`.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn list_resource_templates_page(&self, cursor: Option<&str>) -> Result<ListPage> {
        self.page(Kind::ResourceTemplate, cursor, &CallOptions::default()).await
    }

    /// One page of the server's prompts; `cursor` is the previous page's `next_cursor`.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn list_prompts_page(&self, cursor: Option<&str>) -> Result<ListPage> {
        self.page(Kind::Prompt, cursor, &CallOptions::default()).await
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
        self.pages(Kind::Tool, options).all().await
    }

    /// All the server's resources.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resources(&self) -> Result<Vec<Map<String, Value>>> {
        self.pages(Kind::Resource, &CallOptions::default()).all().await
    }

    /// All the server's resource templates.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_resource_templates(&self) -> Result<Vec<Map<String, Value>>> {
        self.pages(Kind::ResourceTemplate, &CallOptions::default()).all().await
    }

    /// All the server's prompts.
    ///
    /// # Errors
    /// As [`list_tools`](Self::list_tools).
    pub async fn list_prompts(&self) -> Result<Vec<Map<String, Value>>> {
        self.pages(Kind::Prompt, &CallOptions::default()).all().await
    }

    /// Reads a resource: its contents, each with `uri` and `text` or `blob` (base64).
    ///
    /// # Errors
    /// As [`request`](Self::request); there is none: [`Rpc`](ErrorKind::Rpc) with −32002, or −32602 in newer revisions.
    pub async fn read_resource(&self, uri: &str) -> Result<ReadResourceResult> {
        self.read_resource_with(uri, &CallOptions::default()).await
    }

    /// Reads a resource, with options.
    ///
    /// # Errors
    /// As [`read_resource`](Self::read_resource).
    pub async fn read_resource_with(&self, uri: &str, options: &CallOptions) -> Result<ReadResourceResult> {
        let params = RawJson::from_value(&json!({"uri": uri}));
        let result = self.request("resources/read", Some(params), options).await?;
        typed("resources/read", &result)
    }

    /// Asks for `notifications/resources/updated` of a resource, which [`Events`](super::Events) hear. Where the revision has
    /// no such request, the client's own listen stream is replaced by one that tells of it, too.
    ///
    /// # Errors
    /// As [`request`](Self::request); [`Unsupported`](ErrorKind::Unsupported) when the server has no subscriptions,
    /// or in modern revisions does not tell of this resource.
    pub async fn subscribe(&self, uri: &str) -> Result<()> {
        let params = RawJson::from_value(&json!({"uri": uri}));
        self.request("resources/subscribe", Some(params), &CallOptions::default()).await.map(drop)
    }

    /// No longer asks for it.
    ///
    /// # Errors
    /// As [`subscribe`](Self::subscribe).
    pub async fn unsubscribe(&self, uri: &str) -> Result<()> {
        let params = RawJson::from_value(&json!({"uri": uri}));
        self.request("resources/unsubscribe", Some(params), &CallOptions::default()).await.map(drop)
    }

    /// Gets a prompt: a `GetPromptResult`. Arguments are text.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn get_prompt(&self, name: &str, arguments: impl Serialize) -> Result<Map<String, Value>> {
        self.get_prompt_with(name, arguments, &CallOptions::default()).await
    }

    /// Gets a prompt, with options.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn get_prompt_with(
        &self,
        name: &str,
        arguments: impl Serialize,
        options: &CallOptions,
    ) -> Result<Map<String, Value>> {
        let mut params = Map::new();
        params.insert("name".into(), name.into());
        match serde_json::to_value(&arguments).map_err(|e| Error::misuse(format!("arguments: {e}")))? {
            Value::Null => {}
            arguments => {
                params.insert("arguments".into(), arguments);
            }
        }
        let result = self.request("prompts/get", Some(RawJson::from_value(&params)), options).await?;
        let mut prompt: Map<String, Value> = typed("prompts/get", &result)?;
        if let Some(messages) = prompt.get_mut("messages").filter(|messages| messages.is_null()) {
            *messages = json!([]);
        }
        Ok(prompt)
    }

    /// Completes an argument of a prompt (`Kind::Prompt`) or a variable of a resource template
    /// (`Kind::ResourceTemplate`), of which the others that are known are `context`.
    ///
    /// # Errors
    /// As [`request`](Self::request); [`Misuse`](ErrorKind::Misuse) for another kind.
    pub async fn complete(
        &self,
        kind: Kind,
        name: &str,
        argument: &str,
        value: &str,
        context: Option<&Map<String, Value>>,
    ) -> Result<CompleteResult> {
        let reference = match kind {
            Kind::Prompt => json!({"type": "ref/prompt", "name": name}),
            Kind::Resource | Kind::ResourceTemplate => json!({"type": "ref/resource", "uri": name}),
            Kind::Tool => {
                return Err(Error::misuse("a tool has no completion: expected a prompt or a resource template"));
            }
        };
        let mut params = json!({"ref": reference, "argument": {"name": argument, "value": value}});
        if let Some(context) = context {
            params["context"] = json!({"arguments": context});
        }
        let result =
            self.request("completion/complete", Some(RawJson::from_value(&params)), &CallOptions::default()).await?;
        typed("completion/complete", &result)
    }

    /// Asks for log messages of at least this level from now on. In modern revisions nothing is sent: every request that
    /// follows asks for it in its `_meta`, unless that has a level of its own (`io.modelcontextprotocol/logLevel`).
    ///
    /// # Errors
    /// As [`request`](Self::request); [`Unsupported`](ErrorKind::Unsupported) when the server has no log.
    #[deprecated(note = "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry")]
    pub async fn set_log_level(&self, level: LogLevel) -> Result<()> {
        self.set_log_level_with(level, &CallOptions::default()).await
    }

    pub(crate) async fn set_log_level_with(&self, level: LogLevel, options: &CallOptions) -> Result<()> {
        let params = RawJson::from_value(&json!({"level": level}));
        self.request("logging/setLevel", Some(params), options).await.map(drop)
    }
}
