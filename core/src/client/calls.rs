use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::cache::{Cache, CacheUsage, Look};
#[cfg(feature = "runtime")]
use super::cache::{Search, Searched};
use super::handlers::Handlers;
use super::known::Known;
use super::lengths::Lengths;
use super::listening::Hub;
use crate::call::{Answer, CallOptions, Chain, Done, Guard, Link, Request, TraceSource, prepared, traced};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::{CallToolResult, Capabilities};
use crate::options::check_object;
use crate::protocol::revision::{Era, Method, Revision};
use crate::protocol::{Input, Opening, RequestContext};
#[cfg(feature = "runtime")]
use crate::signal::Signal;

const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// Ends a connection in order.
pub(crate) trait Closer: Send + Sync {
    /// The id of the legacy HTTP session, when the server gave one.
    fn session_id(&self) -> Option<String> {
        None
    }
    /// A list of tools that another client got of this server.
    fn listed_elsewhere(&self, _result: &RawJson) {}
    /// Returns true if the server turned out to speak the oldest HTTP transport.
    fn is_pair(&self) -> bool {
        false
    }
    /// Starts the end; the future resolves when it is done.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

pub(crate) struct Connected {
    pub(crate) link: Arc<dyn Link>,
    pub(crate) closer: Arc<dyn Closer>,
    /// The server's first account of itself.
    pub(crate) first: Arc<Opening>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) transport: &'static str,
    pub(crate) middleware: Chain,
    pub(crate) trace: TraceSource,
    pub(crate) known: Arc<Known>,
    /// True if results are checked against the schemas that their tools were listed with.
    pub(crate) validate_output: bool,
    pub(crate) handlers: Handlers,
    pub(crate) cache: Arc<Cache>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) lengths: Arc<Lengths>,
}

impl Connected {
    /// Returns the server's latest account of itself.
    pub(crate) fn opening(&self) -> Arc<Opening> {
        self.hub.opening().unwrap_or_else(|| self.first.clone())
    }
}

/// A connected client. A clone is the same connection; it ends with [`close`](Self::close) or the last clone.
///
/// ```no_run
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
///
/// let client = Client::connect(&"https://example.com/mcp".parse()?, &ClientOptions::new()).await?;
/// for tool in client.list_tools().await? {
///     println!("{}", tool["name"]);
/// }
/// let sum: i64 = client.call_tool("add", json!({"a": 1, "b": 2})).await?.structured_as()?;
/// println!("{sum}, in revision {}", client.revision());
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) connected: Arc<Connected>,
}

impl Client {
    /// The negotiated revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.connected.first.revision
    }

    /// `stdio`, `http` or `memory`.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.connected.transport
    }

    /// The server's `Implementation` object, when it sent one. As the following, it may be another when the server was
    /// started again, or its session begun anew ([`Events::reopened`](super::Events::reopened)).
    #[must_use]
    pub fn server_info(&self) -> Option<RawJson> {
        self.connected.opening().peer.info.clone()
    }

    /// Returns the capabilities of the server.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.connected.opening().peer.capabilities.clone()
    }

    /// The server's hint for the model.
    #[must_use]
    pub fn instructions(&self) -> Option<String> {
        self.connected.opening().instructions.clone()
    }

    /// Returns the server's answer from the opening of the connection, as it came, with `_meta` and the members that
    /// this version does not know: the result of `initialize`, in modern revisions that of `server/discover`.
    #[must_use]
    pub fn initialize_result(&self) -> RawJson {
        self.connected.opening().result.clone()
    }

    /// The id of the legacy HTTP session, when the server gave one. It changes when the server loses the session.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        self.connected.closer.session_id()
    }

    /// Sends any request. Dropping the future cancels it at the server. A result that asks for input (revision 2026-07-28)
    /// is answered by this client's handlers, and `inputResponses` and `requestState` are those of that: what the parameters
    /// had of them, as those of another request do, is not sent.
    ///
    /// # Errors
    /// [`Rpc`](ErrorKind::Rpc) for the server's error, [`Timeout`](ErrorKind::Timeout), [`Closed`](ErrorKind::Closed),
    /// [`Transport`](ErrorKind::Transport); [`Unsupported`](ErrorKind::Unsupported) when the negotiated revision has
    /// no such method; [`Misuse`](ErrorKind::Misuse) for parameters that are no object.
    pub fn request(&self, method: &str, params: Option<RawJson>, options: &CallOptions) -> Answer {
        Answer::of(|done| self.start(method, params, options, done))
    }

    /// Sends any request; `done` is called once, from any thread. Dropping what is returned cancels.
    pub(crate) fn start(&self, method: &str, params: Option<RawJson>, options: &CallOptions, done: Done) -> Guard {
        let done = self.learning(method, Box::new(move |outcome| done(outcome.map_err(Error::received))));
        let params = match prepared(method, params, options) {
            Ok(params) => params,
            Err(error) => {
                done(Err(error));
                return Box::new(());
            }
        };
        let mut options = CallOptions { meta: None, ..options.clone() };
        options.trace_context = options.trace_context.or_else(|| self.connected.trace.current());
        let Some(around) = self.connected.middleware.all() else {
            return self.perform(method, params, &options, done);
        };
        let peer = self.connected.opening().peer.clone();
        let known = Method::find(method).map_or("", |row| row.name);
        let mut facts = RequestContext::of_own(self.revision(), known, peer, self.transport());
        facts.origin.clone_from(&options.origin);
        if let Some(trace) = &options.trace_context {
            facts.states = facts.states.and(Arc::new(trace.clone()));
        }
        let (name, client) = (method.to_owned(), self.clone());
        let send = move |request: Request, done: Done| client.perform(&name, request.params, &options, done);
        let request = Request { method: method.to_owned(), params };
        around.outgoing(&self.connected.link, facts, request, done, send)
    }

    /// Sends a request, after its tool's schema was read.
    fn perform(&self, method: &str, params: Option<RawJson>, options: &CallOptions, done: Done) -> Guard {
        #[cfg(feature = "runtime")]
        let done = match self.reading(method, params.as_ref(), options, done) {
            Ok(guard) => return guard,
            Err(done) => done,
        };
        self.perform_read(method, params, options, done)
    }

    /// Sends a request and, where it becomes a task, follows that to its result.
    pub(super) fn perform_read(
        &self,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> Guard {
        let done = match self.checking(method, params.as_ref(), options, done) {
            Ok(done) => done,
            Err((error, done)) => {
                done(Err(error));
                return Box::new(());
            }
        };
        let done = match self.subscription(method, params.as_ref(), options, done) {
            Ok(guard) => return guard,
            Err(done) => done,
        };
        #[cfg(feature = "runtime")]
        let done = match self.extended(method, params.as_ref(), options, done) {
            Ok(guard) => return guard,
            Err(done) => done,
        };
        match self.as_task(method, params.as_ref(), options) {
            #[cfg(feature = "runtime")]
            Ok(None) if self.may_be_asked(method) => self.send_rounds(method, params, options, done),
            Ok(None) => self.send(method, params, options, done),
            Ok(Some(metadata)) => self.requestor(None, None).start(method, params, metadata, options.clone(), done),
            Err(error) => {
                done(Err(error));
                Box::new(())
            }
        }
    }

    /// Returns true if the answer to this may be questions.
    #[cfg(feature = "runtime")]
    fn may_be_asked(&self, method: &str) -> bool {
        self.revision().era() == Era::Modern && Method::find(method).is_some_and(|row| row.input_required)
    }

    /// Sends a request as it stands, unless there is an answer that was kept.
    pub(super) fn send(&self, method: &str, params: Option<RawJson>, options: &CallOptions, done: Done) -> Guard {
        let connected = &self.connected;
        let now = || connected.link.clock().now();
        match connected.cache.look(now, self.revision(), method, params.as_ref(), options) {
            Look::Plain => self.transmit(method, params, options, done),
            Look::Hit(_) if !self.gives_what_is_kept() => self.transmit(method, params, options, done),
            Look::Hit(result) => {
                self.listed_elsewhere(method, &result);
                done(Ok(result));
                Box::new(())
            }
            Look::Ask(asked) => {
                let clock = connected.link.clock();
                let done = Box::new(move |outcome| done(asked.settle(clock.now(), outcome)));
                self.transmit(method, params, options, done)
            }
            #[cfg(feature = "runtime")]
            Look::Search(search) => self.search(search, method, params, options, done),
        }
    }

    /// Sends a request unless a store has an answer, and brings the store the one that comes.
    #[cfg(feature = "runtime")]
    fn search(
        &self,
        search: Search,
        method: &str,
        params: Option<RawJson>,
        options: &CallOptions,
        done: Done,
    ) -> Guard {
        struct Ends(Arc<Signal>);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.set();
            }
        }
        let over = Arc::<Signal>::default();
        let (client, method, options, ended) = (self.clone(), method.to_owned(), options.clone(), over.clone());
        let answered = async move {
            let send = || Answer::of(|done| client.transmit(&method, params, &options, done));
            match search.done().await {
                Searched::Hit(_) if !client.gives_what_is_kept() => send().await,
                Searched::Hit(result) => {
                    client.listed_elsewhere(&method, &result);
                    Ok(result)
                }
                Searched::Ask(sent) => {
                    let outcome = send().await;
                    sent.settle(outcome).await
                }
            }
        };
        self.connected.link.spawn(Box::pin(async move {
            if let Some(outcome) = ended.unless(answered).await {
                done(outcome);
            }
        }));
        Box::new(Ends(over))
    }

    /// Returns true if cached answers may be given. They are no sign of life: without one they go only to clients that
    /// allow it.
    fn gives_what_is_kept(&self) -> bool {
        !self.connected.hub.over.is_set() || self.connected.cache.gives_without_server()
    }

    /// Another client may have listed them; its transport has learnt from that, this one's has not.
    fn listed_elsewhere(&self, method: &str, result: &RawJson) {
        if self.connected.cache.is_shared && method == "tools/list" {
            self.connected.closer.listed_elsewhere(result);
        }
    }

    fn transmit(&self, method: &str, params: Option<RawJson>, options: &CallOptions, done: Done) -> Guard {
        let mut options = options.clone();
        options.by_default |= options.timeout.is_none();
        options.timeout = options.timeout.or(self.connected.timeout).filter(|timeout| !timeout.is_zero());
        options.max_timeout = options.max_timeout.filter(|timeout| !timeout.is_zero());
        let params = match &options.trace_context {
            Some(trace) => Some(traced(params.as_ref(), trace)),
            None => params,
        };
        let done = match Lengths::place(method) {
            Some(list) => {
                let (clock, lengths) = (self.connected.link.clock(), self.connected.lengths.clone());
                lengths.asked(list, params.as_ref(), clock.now());
                Box::new(move |outcome: Result<RawJson>| {
                    done(outcome.and_then(|page| lengths.came(list, page, clock.now())));
                })
            }
            None => done,
        };
        self.connected.link.clone().request(method, params, &options, None, done)
    }

    /// Sends a notification of the protocol. That of changed roots is not sent in modern revisions, where a server asks for
    /// roots whenever it needs them.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) for a method that a client does not notify, for changes of roots that were not
    /// declared, and for parameters that are no object.
    pub fn notify(&self, method: &str, params: Option<RawJson>) -> Result<()> {
        let params = params.unwrap_or_else(RawJson::empty_object);
        check_object(format_args!("{method}: parameters"), &params)?;
        let revision = self.revision();
        // The connection drops it where it is not.
        let is_dropped = |m: &Method| m.name == ROOTS_CHANGED && revision.era() == Era::Modern;
        let row = Method::find(method).filter(|m| m.is_told_by_client(revision, self.transport()) || is_dropped(m));
        let Some(row) = row else {
            return Err(Error::misuse(format!("{method:?} is no notification of a client in revision {revision}")));
        };
        if let Some(capability) = row.capability.filter(|capability| !self.connected.link.declares(capability)) {
            let message = format!("{method:?} was not sent: the client does not declare the capability {capability:?}");
            return Err(Error::misuse(message));
        }
        self.connected.link.clone().input(Input::Notify { method: row.name, params, related: None });
        Ok(())
    }

    /// Passes on a notification of somebody else outside the protocol. One of the protocol is not sent.
    #[doc(hidden)]
    pub fn pass_on(&self, method: &str, params: Option<RawJson>) {
        if let Some(row) = Method::foreign(method) {
            let params = params.unwrap_or_else(RawJson::empty_object);
            self.connected.link.clone().input(Input::Notify { method: row.name, params, related: None });
        }
    }

    /// Tells the server that the client's roots are others now: of a client whose roots are a function
    /// ([`Handlers::answer`](super::Handlers::answer)); [`Roots::set`](super::Roots::set) tells it by itself. In modern
    /// revisions there is nothing to tell: a server asks for them whenever it needs them.
    ///
    /// # Errors
    /// [`Misuse`](ErrorKind::Misuse) when the client declared no `roots.listChanged`.
    #[deprecated(
        note = "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )]
    pub fn roots_changed(&self) -> Result<()> {
        self.notify(ROOTS_CHANGED, None)
    }

    /// Calls a tool. A tool that fails is a result with `is_error`, not an error. One that was listed as a tool to be
    /// called as a task only is called as that, and this waits for the task's result; dropping the future cancels it.
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

    /// Returns the contents of the cache, and its use so far.
    #[must_use]
    pub fn cache_usage(&self) -> CacheUsage {
        self.connected.cache.usage()
    }

    /// Requests of this client that wait for an answer.
    #[must_use]
    pub fn awaited(&self) -> usize {
        self.connected.link.awaited()
    }

    /// Ends the connection in order: a session is deleted, a child process is let go, then told, then killed.
    pub async fn close(&self) {
        self.connected.cache.give_up();
        self.connected.closer.close().await;
        self.connected.cache.part().await;
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("opening", &self.connected.opening()).finish_non_exhaustive()
    }
}
