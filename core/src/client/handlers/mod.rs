//! Handlers of a client for its server's questions and notifications.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::events::{Events, NoEvents};
use super::roots::{Roots, checked};
use crate::call::{
    Chain, Context, Failures, Handler, Link, Middleware, Reply, RequestHandler, Shaper, TaskOptions, Tasks,
};
use crate::error::{Error, Result};
use crate::jsonrpc::{RawJson, code};
use crate::model::meta::RELATED_TASK;
use crate::model::sampling::check_sampling;
use crate::model::{Capabilities, TASKS_EXTENSION, form};
use crate::protocol::revision::{Method, Revision, Rules, ask};
use crate::protocol::{Call, Payload};

const SAMPLING: &str = "sampling/createMessage";
const ELICITATION: &str = "elicitation/create";
const ROOTS: &str = "roots/list";

/// Tasks on one page of the list.
const PAGE_SIZE: usize = 250;

/// Functions of a client that serve its server. Each one is declared as a capability; a request for a missing one is
/// refused. A clone is the same.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
///
/// # #[derive(Deserialize, JsonSchema)]
/// # struct Party { seats: u32 }
/// # let server = Server::new("restaurant").tool("book", "Book a table", async |cx: Context| {
/// #     Ok(cx.elicit_as::<Party>("How many?").await?.map_or(0, |party| party.seats))
/// # });
/// #[derive(Deserialize, JsonSchema)]
/// struct Question { message: String }
///
/// // Shows the question to the user, and answers its form; `null` declines.
/// let handlers = Handlers::new().elicitation(async |question: Question| {
///     println!("{}", question.message);
///     Ok(json!({"seats": 2}))
/// });
/// let client = Client::in_memory_with(&server, &ClientOptions::new(), &handlers).await?;
/// # assert_eq!(client.call_tool("book", json!({})).await?.text(), "2");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Handlers {
    events: Arc<dyn Events>,
    /// They are there to hear of changes.
    hears: bool,
    by_method: Vec<(&'static str, Arc<dyn Handler>)>,
    /// Answers requests outside the protocol.
    fallback: Option<Arc<dyn Handler>>,
    capabilities: Map<String, Value>,
    roots: Option<Roots>,
    middleware: Chain,
    failures: Arc<Failures>,
    tasks: Option<Arc<Tasks>>,
}

impl Default for Handlers {
    fn default() -> Self {
        Self {
            events: Arc::new(NoEvents),
            hears: false,
            by_method: Vec::new(),
            fallback: None,
            capabilities: Map::new(),
            roots: None,
            middleware: Chain::default(),
            failures: Arc::default(),
            tasks: None,
        }
    }
}

impl Handlers {
    /// Nothing is answered, nothing is heard.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Hears the server's notifications and what happens to the connection. In modern revisions the client listens to
    /// the changes of all lists that the server tells of, and to the resources that it has subscribed to.
    #[must_use]
    pub fn events(mut self, events: impl Events) -> Self {
        self.events = Arc::new(events);
        self.hears = true;
        self
    }

    /// Says whether there is somebody to hear of the changes of lists.
    pub(crate) fn hearing(mut self, yes: bool) -> Self {
        self.hears = yes;
        self
    }

    pub(crate) fn hears(&self) -> bool {
        self.hears
    }

    /// Answers `sampling/createMessage`. The handler gets the request's parameters and answers with a
    /// `CreateMessageResult`, or with text.
    #[must_use]
    #[deprecated(note = "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider")]
    pub fn sampling<M: ?Sized>(self, handler: impl RequestHandler<M>) -> Self {
        self.answer(SAMPLING, handler.shared(), json!({}))
    }

    /// As [`sampling`](Self::sampling), for a handler that knows what to do with tools.
    #[must_use]
    #[deprecated(note = "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider")]
    pub fn sampling_with_tools<M: ?Sized>(self, handler: impl RequestHandler<M>) -> Self {
        self.answer(SAMPLING, handler.shared(), json!({"tools": {}}))
    }

    /// Answers `elicitation/create` with forms. The handler gets the request's parameters and answers with an
    /// `ElicitResult`; with an object alone it accepts, with `null` it declines.
    #[must_use]
    pub fn elicitation<M: ?Sized>(self, handler: impl RequestHandler<M>) -> Self {
        self.answer(ELICITATION, handler.shared(), json!({"form": {}}))
    }

    /// As [`elicitation`](Self::elicitation), for a handler that also leads the user to a URL (`"mode": "url"`).
    #[must_use]
    pub fn elicitation_with_url<M: ?Sized>(self, handler: impl RequestHandler<M>) -> Self {
        self.answer(ELICITATION, handler.shared(), json!({"form": {}, "url": {}}))
    }

    /// Runs sampling and elicitation as tasks, as far as there are handlers for them and the server wants that
    /// (specification 2025-11-25, tasks, experimental). In 2026-07-28 it declares the extension
    /// `io.modelcontextprotocol/tasks`: the server may answer calls of tools with tasks, which are followed to their end.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is wrong.
    pub fn tasks(mut self, options: TaskOptions) -> Result<Self> {
        options.check()?;
        self.tasks = Some(Tasks::new(options));
        Ok(self)
    }

    /// The same with the tasks that the client's options ask for.
    pub(crate) fn with_tasks(&self, options: Option<&TaskOptions>) -> Self {
        let mut all = self.clone();
        if let (Some(options), None) = (options, &self.tasks) {
            all.tasks = Some(Tasks::new(options.clone()));
        }
        all
    }

    /// The connection, or the session that it had, is over.
    pub(crate) fn ended(&self, link: &dyn Link) {
        if let Some(tasks) = &self.tasks {
            tasks.ended(link);
        }
    }

    /// The capability of those tasks.
    fn declared_tasks(&self) -> Option<Value> {
        let mut requests = Map::new();
        for method in self.tasks.iter().flat_map(|_| [SAMPLING, ELICITATION]) {
            if let (true, Some((kind, verb))) =
                (self.by_method.iter().any(|(m, _)| *m == method), method.split_once('/'))
            {
                requests.insert(kind.to_owned(), json!({verb: {}}));
            }
        }
        (!requests.is_empty()).then(|| json!({"list": {}, "cancel": {}, "requests": requests}))
    }

    /// Answers `roots/list` with these.
    #[must_use]
    #[deprecated(
        note = "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
    )]
    pub fn roots(mut self, roots: &Roots) -> Self {
        self.capabilities.insert("roots".into(), json!({"listChanged": true}));
        self.roots = Some(roots.clone());
        self
    }

    /// Answers any request that a server may send, such as those above; `capability` is what is declared for it.
    #[must_use]
    pub fn answer(mut self, method: &'static str, handler: Arc<dyn Handler>, capability: Value) -> Self {
        self.by_method.retain(|(known, _)| *known != method);
        self.by_method.push((method, handler));
        let name = method.split('/').next().unwrap_or(method);
        self.capabilities.insert(name.to_owned(), capability);
        self
    }

    /// Answers requests outside the protocol, in sessions that begin with a handshake: for a client that stands
    /// behind a server. The method is that of the context's request.
    #[doc(hidden)]
    #[must_use]
    pub fn fallback(mut self, handler: Arc<dyn Handler>) -> Self {
        self.fallback = Some(handler);
        self
    }

    pub(crate) fn have_fallback(&self) -> bool {
        self.fallback.is_some()
    }

    /// Puts middleware around every request that the client sends once it is connected; the first that was added is the
    /// outermost.
    #[must_use]
    pub fn middleware(self, middleware: impl Middleware) -> Self {
        self.middleware.add(Arc::new(middleware));
        self
    }

    pub(crate) fn around(&self) -> &Chain {
        &self.middleware
    }

    /// The capabilities of what was set here, without those of options.
    #[doc(hidden)]
    #[must_use]
    pub fn declared(&self) -> &Map<String, Value> {
        &self.capabilities
    }

    /// The capabilities that these need, with those that were given besides.
    pub(crate) fn capabilities(
        &self,
        given: Option<&RawJson>,
        extensions: &BTreeMap<String, Value>,
    ) -> Option<RawJson> {
        let mut all = self.capabilities.clone();
        all.extend(self.declared_tasks().map(|tasks| ("tasks".to_owned(), tasks)));
        if all.is_empty() && self.tasks.is_none() && extensions.is_empty() {
            return given.cloned();
        }
        if let Some(Ok(given)) = given.map(RawJson::to::<Map<String, Value>>) {
            all.extend(given);
        }
        let tasks = self.tasks.is_some().then(|| (TASKS_EXTENSION.to_owned(), json!({})));
        let mut extensions = extensions.clone().into_iter().chain(tasks).peekable();
        if extensions.peek().is_some()
            && let Some(declared) = all.entry("extensions").or_insert_with(|| json!({})).as_object_mut()
        {
            declared.extend(extensions);
        }
        Some(RawJson::from_value(&all))
    }

    /// The same with all that was declared, by whomever.
    pub(crate) fn declaring(&self, declared: Option<&RawJson>) -> Self {
        let mut all = self.clone();
        if let Some(Ok(declared)) = declared.map(RawJson::to) {
            all.capabilities = declared;
        }
        all
    }

    pub(crate) fn heard(&self) -> &Arc<dyn Events> {
        &self.events
    }

    /// The roots are this connection's from now on.
    pub(crate) fn join(&self, link: &Arc<dyn Link>) {
        if let Some(roots) = &self.roots {
            let mut state = roots.lock();
            state.links.retain(|link| link.strong_count() > 0);
            state.links.push(Arc::downgrade(link));
        }
    }

    /// Checks that the server may ask this.
    ///
    /// # Errors
    /// −32602 for what was not declared and for messages that do not fit together.
    fn acceptable(&self, rules: &Rules, method: &str, params: &RawJson) -> Result<()> {
        if method == ELICITATION && params.get().len() > form::MAX_BYTES {
            let (bytes, most) = (params.get().len(), form::MAX_BYTES);
            return Err(Error::invalid_params(format!("{method}: a form of {bytes} bytes, at most {most}")));
        }
        if !matches!(method, SAMPLING | ELICITATION) {
            return Ok(());
        }
        let read: Value = params.to().map_err(|e| Error::invalid_params(format!("{method}: {e}")))?;
        if let Some(missing) = self.undeclared(rules, method, &read) {
            return Err(Error::invalid_params(format!("the client does not declare the capability {missing:?}")));
        }
        if method == ELICITATION {
            let wrong = |why| Error::invalid_params(format!("{method}: {why}"));
            if ask::mode_of(&read).map_err(wrong)? == ask::Mode::Url {
                ask::check_url(&read["url"]).map_err(wrong)?;
            }
        }
        if method == SAMPLING {
            check_sampling(&read).map_err(|why| Error::invalid_params(format!("{method}: {why}")))?;
        }
        Ok(())
    }

    /// Returns true if this client declares what a question of the server needs.
    pub(crate) fn are_asked(&self, rules: &Rules, method: &str, params: Option<&RawJson>) -> bool {
        let is_served =
            self.by_method.iter().any(|(known, _)| *known == method) || (method == ROOTS && self.roots.is_some());
        let read: Value = params.and_then(|params| params.to().ok()).unwrap_or_default();
        is_served && (!matches!(method, SAMPLING | ELICITATION) || self.undeclared(rules, method, &read).is_none())
    }

    fn undeclared(&self, rules: &Rules, method: &str, params: &Value) -> Option<&'static str> {
        let declared = Capabilities::new(RawJson::from_value(&self.capabilities));
        // Deprecated, and a client may ignore it.
        let is_missing = |name: &&'static str| *name != "sampling.context" && !declared.has(name);
        ask::needed(rules, method, params).into_iter().find(is_missing)
    }

    /// Runs a request of the server.
    pub(crate) fn dispatch(&self, link: &Arc<dyn Link>, call: Call) {
        let method = call.method.name;
        if let Some(tasks) = self.tasks.as_ref().filter(|_| method.starts_with("tasks/")) {
            return tasks.serve(link, call, PAGE_SIZE);
        }
        let given = self.by_method.iter().find(|(known, _)| *known == method).map(|(_, handler)| handler.clone());
        let given = given.or_else(|| self.fallback.clone().filter(|_| Method::find(method).is_none()));
        let Some(handler) = given else {
            let outcome = match &self.roots {
                Some(roots) if method == ROOTS => {
                    ask::answer(call.context.revision.rules(), method, &roots.result()).map(Payload::Object)
                }
                _ => Err(Error::rpc(code::METHOD_NOT_FOUND, format!("method {method:?} is not served"))),
            };
            return link.clone().complete(call.id, outcome);
        };
        let params = call.params.clone().unwrap_or_else(RawJson::empty_object);
        let rules = call.context.revision.rules();
        if let Err(error) = self.acceptable(rules, method, &params) {
            return link.clone().complete(call.id, Err(error));
        }
        let shaper = Answered { method, asked: params.clone(), failures: self.failures.clone() };
        if let Some(tasks) = self.tasks.as_ref().filter(|_| call.task.is_some()) {
            return tasks.start(link, call, handler, Some(Arc::new(shaper)), params);
        }
        let context = Context::new(call.id, call.context, link.clone(), handler.clone());
        if !link.started(&context) {
            return;
        }
        let reply = Reply::new(context.clone(), Some(Arc::new(shaper)));
        // A panic that gets here has dropped the reply, which has answered.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| handler.call(context, params, reply)));
    }
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let methods: Vec<_> = self.by_method.iter().map(|(method, _)| *method).collect();
        f.debug_struct("Handlers").field("methods", &methods).field("roots", &self.roots).finish_non_exhaustive()
    }
}

/// Makes of what a handler answered what the server's request is answered with.
struct Answered {
    method: &'static str,
    /// The server's parameters.
    asked: RawJson,
    failures: Arc<Failures>,
}

impl Answered {
    fn wrong(&self, expected: &str) -> Error {
        Error::rpc(code::INTERNAL_ERROR, format!("the client's answer to {:?} does not fit: {expected}", self.method))
    }

    fn sampled(&self, given: Value) -> Result<Value> {
        let text = |text: String| json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": "unknown", "stopReason": "endTurn"});
        match given {
            Value::String(given) => Ok(text(given)),
            Value::Object(mut members) if members.contains_key("content") => {
                members.entry("role").or_insert_with(|| "assistant".into());
                members.entry("model").or_insert_with(|| "unknown".into());
                if let Some(Value::String(text)) = members.get("content") {
                    let content = json!({"type": "text", "text": text});
                    members.insert("content".into(), content);
                }
                Ok(Value::Object(members))
            }
            _ => Err(self.wrong("expected text or a CreateMessageResult")),
        }
    }

    /// The user's answers, with the form's defaults where they say nothing.
    fn elicited(&self, given: Value, whole: bool) -> Result<Value> {
        let asked: Value = self.asked.to().unwrap_or_default();
        let is_form = asked["mode"] != "url";
        let mut result = self.decided(given, whole, is_form.then(|| &asked["requestedSchema"]["properties"]))?;
        if !is_form {
            return Ok(result);
        }
        if result["action"] == "accept" {
            let content = result["content"].take();
            result["content"] = form::with_defaults(&asked["requestedSchema"], content);
        }
        form::check_result(Some(&asked["requestedSchema"]), &result).map_err(|why| {
            let message = format!("the client's answer to {:?} does not fit the form: {why}", self.method);
            Error::rpc(code::INTERNAL_ERROR, message)
        })?;
        Ok(result)
    }

    /// `whole`: it is meant as a result. An answer of decline or cancel is never taken for consent, whatever the server
    /// calls the `fields` of its form; only an accept may be the answers to a form with a field `action`.
    fn decided(&self, given: Value, whole: bool, fields: Option<&Value>) -> Result<Value> {
        match given {
            Value::Null | Value::Bool(false) => Ok(json!({"action": "decline"})),
            Value::Bool(true) => Ok(json!({"action": "accept"})),
            Value::String(action) if matches!(action.as_str(), "accept" | "decline" | "cancel") => {
                Ok(json!({"action": action}))
            }
            Value::Object(members) => {
                let action = members.get("action").and_then(Value::as_str);
                // No field holds an object, as `content` of a result does.
                let is_field = !whole
                    && fields.is_some_and(|fields| fields.get("action").is_some())
                    && !members.get("content").is_some_and(Value::is_object);
                match (action, fields) {
                    (Some("decline" | "cancel"), _) => Ok(Value::Object(members)),
                    (Some("accept"), _) if !is_field => Ok(Value::Object(members)),
                    (Some(_), Some(_)) if is_field => Ok(json!({"action": "accept", "content": members})),
                    (None, Some(_)) => Ok(json!({"action": "accept", "content": members})),
                    _ => Err(self.wrong("expected \"accept\", \"decline\" or \"cancel\" as \"action\"")),
                }
            }
            _ => Err(self.wrong("expected an ElicitResult, an object of answers, or null")),
        }
    }

    fn rooted(&self, given: Value) -> Result<Value> {
        let (list, mut result) = match given {
            Value::Array(list) => (list, Map::new()),
            Value::Object(mut members) => match members.get_mut("roots").map(Value::take) {
                Some(Value::Array(list)) => (list, members),
                _ => return Err(self.wrong("expected an array of roots")),
            },
            _ => return Err(self.wrong("expected an array of roots")),
        };
        let list = checked(list).map_err(|error| self.wrong(error.message()))?;
        result.insert("roots".into(), list.into());
        Ok(result.into())
    }
}

impl Shaper for Answered {
    fn shape(&self, payload: Payload, revision: Revision) -> Result<Payload> {
        let whole = matches!(payload, Payload::Object(_));
        let given: Value = match payload {
            Payload::Object(given) | Payload::Value { value: given, .. } => {
                given.to().map_err(|_| self.wrong("expected JSON"))?
            }
            Payload::Text(text) => Value::String(text),
            Payload::Failed(text) => return Err(Error::rpc(code::INTERNAL_ERROR, text)),
        };
        if Method::find(self.method).is_none() {
            return Ok(Payload::Object(RawJson::from_value(&given)));
        }
        let mut result = match self.method {
            SAMPLING => self.sampled(given)?,
            ELICITATION => self.elicited(given, whole)?,
            ROOTS => self.rooted(given)?,
            _ => given,
        };
        // Messages that belong to a task say so, in both directions.
        let meta = if revision.rules().tasks { self.asked.to::<Value>().ok() } else { None };
        if let Some(task) = meta.and_then(|mut asked| asked["_meta"].get_mut(RELATED_TASK).map(Value::take)) {
            result["_meta"][RELATED_TASK] = task;
        }
        ask::answer(revision.rules(), self.method, &RawJson::from_value(&result)).map(Payload::Object)
    }

    fn subject(&self) -> String {
        format!("the answer to {:?}", self.method)
    }

    fn name(&self) -> &str {
        self.method
    }

    fn failures(&self) -> &Failures {
        &self.failures
    }
}

#[cfg(test)]
mod tests;
