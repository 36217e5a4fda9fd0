use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Context;
use super::registry::ToolEntry;
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::{RawJson, code};
use crate::model::{CallToolResult, Content};
use crate::protocol::{Payload, Structured};

/// Runs requests. Completion style: `call` must not block; the answer goes through `reply`, now or later, from any
/// thread. Async functions and closures are handlers through [`IntoHandler`].
pub trait Handler: Send + Sync + 'static {
    /// Runs one request. For tools `params` are the arguments, valid against the input schema.
    fn call(&self, cx: Context, params: RawJson, reply: Reply);

    /// The peer has cancelled the request or is gone. An answer is no longer wanted.
    fn cancel(&self, _cx: &Context, _reason: Option<&str>) {}
}

/// The answer to one request, given once. Dropped without one, it answers with an error: no request is ever lost.
#[must_use]
pub struct Reply {
    context: Option<Context>,
    tool: Option<Arc<ToolEntry>>,
}

impl Reply {
    pub(crate) fn new(context: Context, tool: Option<Arc<ToolEntry>>) -> Self {
        Self { context: Some(context), tool }
    }

    /// A whole result object; for tools a `CallToolResult`.
    pub fn result(self, object: RawJson) {
        self.send(Ok(Payload::Object(object)));
    }

    /// A tool's plain value: text, and structured content where there is an output schema or the value is an object.
    pub fn value(self, value: RawJson) {
        self.send(Ok(Payload::Value { value, structured: Structured::Plain }));
    }

    /// A tool's plain text.
    pub fn text(self, text: impl Into<String>) {
        self.send(Ok(Payload::Text(text.into())));
    }

    /// A tool's failure, for the model to read.
    pub fn failed(self, text: impl Into<String>) {
        self.send(Ok(Payload::Failed(text.into())));
    }

    /// A JSON-RPC error.
    pub fn error(self, error: Error) {
        self.send(Err(error));
    }

    /// Tells the server's author of an error that the model is not shown.
    fn report(&self, tool: &str, kind: &str, error: &HiddenError) {
        match &self.tool {
            Some(entry) => entry.failures.report(tool, kind, error),
            None => Failures::default().report(tool, kind, error),
        }
    }

    fn send(mut self, outcome: Result<Payload>) {
        let Some(context) = self.context.take() else { return };
        let outcome = match (&self.tool, outcome) {
            (Some(tool), Ok(payload)) => Ok(tool.checked(payload, context.request().revision)),
            (_, outcome) => outcome,
        };
        context.link().clone().complete(context.call(), outcome);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(context) = self.context.take() {
            let error = Error::rpc(code::INTERNAL_ERROR, "the handler ended without an answer");
            context.link().clone().complete(context.call(), Err(error));
        }
    }
}

/// Why a tool failed. `?` turns any error into one; its text stays out of the model's sight, unlike that of
/// [`ToolError::new`].
#[derive(Debug)]
pub struct ToolError(Failure);

#[derive(Debug)]
enum Failure {
    Shown(String),
    Hidden { kind: &'static str, error: Box<HiddenError> },
    Rpc(Error),
}

impl ToolError {
    /// A failure whose text the model is shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Failure::Shown(text.into()))
    }

    fn reply(self, tool: &str, reply: Reply) {
        match self.0 {
            Failure::Shown(text) => reply.failed(text),
            Failure::Rpc(error) => reply.error(error),
            Failure::Hidden { kind, error } => {
                reply.report(tool, kind, &*error);
                reply.failed(safe_message(tool, kind));
            }
        }
    }
}

/// What the model is told of a failure that was not meant for it.
pub(crate) fn safe_message(tool: &str, kind: &str) -> String {
    format!("tool {tool:?} failed: {kind}")
}

/// An error that was not meant for the model.
pub(crate) type HiddenError = dyn std::error::Error + Send + Sync;

type OnError = dyn Fn(&HiddenError, &str) + Send + Sync;

/// Who hears of the errors that the model is not shown.
#[derive(Default)]
pub(crate) struct Failures(RwLock<Option<Arc<OnError>>>);

impl Failures {
    pub(super) fn heard_by(&self, f: Arc<OnError>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(f);
    }

    pub(crate) fn report(&self, tool: &str, kind: &str, error: &HiddenError) {
        let heard = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        match heard {
            Some(f) => f(error, tool),
            None => eprintln!("tricorn: tool {tool:?} failed: {kind}: {error}"),
        }
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let any: &dyn std::any::Any = &error;
        if let Some(error) = any.downcast_ref::<Error>()
            && error.kind() == ErrorKind::Rpc
        {
            return Self(Failure::Rpc(error.clone()));
        }
        let kind = std::any::type_name::<E>().rsplit("::").next().unwrap_or("error");
        Self(Failure::Hidden { kind, error: Box::new(error) })
    }
}

/// What a tool's function may return.
pub trait IntoAnswer: Send + 'static {
    /// JSON Schema of the structured content, when there is any.
    fn output_schema() -> Option<Value> {
        None
    }

    /// Answers with this value.
    fn answer(self, reply: Reply);
}

impl IntoAnswer for CallToolResult {
    fn answer(self, reply: Reply) {
        reply.result(RawJson::from_value(&self));
    }
}

impl IntoAnswer for Content {
    fn answer(self, reply: Reply) {
        CallToolResult::new([self]).answer(reply);
    }
}

impl<T: Serialize + JsonSchema + Send + 'static> IntoAnswer for T {
    fn output_schema() -> Option<Value> {
        let schema = schema_of::<Self>(false);
        match schema.get("type").and_then(Value::as_str) {
            Some("string" | "null") => None,
            // A schema that says nothing, such as that of `serde_json::Value`, is none.
            None if schema
                .as_object()
                .is_none_or(|s| !["$ref", "anyOf", "oneOf", "enum"].iter().any(|k| s.contains_key(*k))) =>
            {
                None
            }
            _ => Some(schema),
        }
    }

    fn answer(self, reply: Reply) {
        match serde_json::to_string(&self) {
            Ok(text) => reply.value(RawJson::written(text)),
            Err(error) => ToolError::from(error).reply("result", reply),
        }
    }
}

/// The JSON Schema (2020-12) of `T`, as arguments (`input`) or as a result.
pub(crate) fn schema_of<T: JsonSchema>(input: bool) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| s.meta_schema = None);
    let settings = if input { settings.for_deserialize() } else { settings.for_serialize() };
    let schema: Schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    let mut value = schema.to_value();
    if let Some(object) = value.as_object_mut() {
        object.shift_remove("title");
    }
    value
}

/// Functions that are handlers: `async |args| …`, `async |args, context| …`, returning `Result<T, ToolError>`.
pub trait IntoHandler<Marker>: Send + Sync + 'static {
    /// JSON Schema of the arguments, when the function's type says it.
    fn input_schema() -> Option<Value>;
    /// JSON Schema of the result, when the function's type says it.
    fn output_schema() -> Option<Value>;
    /// The handler for the tool called `name`.
    fn into_handler(self, name: &str) -> Arc<dyn Handler>;
}

/// Marks functions of arguments alone.
#[derive(Debug)]
pub struct WithoutContext<A>(PhantomData<A>);
/// Marks functions of arguments and context.
#[derive(Debug)]
pub struct WithContext<A>(PhantomData<A>);
/// Marks what is a [`Handler`] already.
#[derive(Debug)]
pub struct Already;

impl<H: Handler> IntoHandler<Already> for H {
    fn input_schema() -> Option<Value> {
        None
    }

    fn output_schema() -> Option<Value> {
        None
    }

    fn into_handler(self, _name: &str) -> Arc<dyn Handler> {
        Arc::new(self)
    }
}

impl<F, A, Fut, T> IntoHandler<WithoutContext<A>> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
    T: IntoAnswer,
{
    fn input_schema() -> Option<Value> {
        Some(schema_of::<A>(true))
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_handler(self, name: &str) -> Arc<dyn Handler> {
        Arc::new(FunctionHandler { name: name.into(), function: move |args, _| self(args), args: PhantomData })
    }
}

impl<F, A, Fut, T> IntoHandler<WithContext<A>> for F
where
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
    T: IntoAnswer,
{
    fn input_schema() -> Option<Value> {
        Some(schema_of::<A>(true))
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_handler(self, name: &str) -> Arc<dyn Handler> {
        Arc::new(FunctionHandler { name: name.into(), function: self, args: PhantomData })
    }
}

struct FunctionHandler<F, A> {
    name: Box<str>,
    function: F,
    args: PhantomData<fn(A)>,
}

impl<F, A, Fut, T> Handler for FunctionHandler<F, A>
where
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
    T: IntoAnswer,
{
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        let args = match params.to::<A>().or_else(|error| integral(&params).ok_or(error)) {
            Ok(args) => args,
            Err(error) => return reply.failed(format!("arguments: {error}")),
        };
        let future = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.function)(args, cx.clone())))
        {
            Ok(future) => future,
            Err(panic) => return panicked(&self.name, &*panic, reply),
        };
        super::router::run(cx, Box::pin(future), self.name.clone(), reply);
    }
}

/// The arguments with whole numbers written as such: `1.0` is an integer for JSON Schema, and none for serde.
fn integral<A: DeserializeOwned>(params: &RawJson) -> Option<A> {
    fn rewrite(value: &mut Value) {
        match value {
            Value::Number(number) => {
                // Beyond this, a double does not say which integer it is.
                const EXACT: f64 = 9_007_199_254_740_992.0;
                let whole = number.as_f64().filter(|n| number.is_f64() && n.fract() == 0.0 && n.abs() <= EXACT);
                if let Some(whole) = whole {
                    *number = (whole as i64).into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(rewrite),
            Value::Object(members) => members.values_mut().for_each(rewrite),
            _ => {}
        }
    }
    let mut value = params.to::<Value>().ok()?;
    rewrite(&mut value);
    serde_json::from_value(value).ok()
}

/// Answers for a handler that panicked: an ordinary failure, with the message in the log only.
pub(crate) fn panicked(tool: &str, panic: &(dyn std::any::Any + Send), reply: Reply) {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    reply.report(tool, "panic", &*Box::<HiddenError>::from(text.unwrap_or("no message")));
    reply.failed(safe_message(tool, "panic"));
}

/// Answers with what an async handler returned.
pub(crate) fn finished<T: IntoAnswer>(tool: &str, outcome: Result<T, ToolError>, reply: Reply) {
    match outcome {
        Ok(value) => value.answer(reply),
        Err(error) => error.reply(tool, reply),
    }
}

/// A boxed future that may move between threads.
pub(crate) type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
