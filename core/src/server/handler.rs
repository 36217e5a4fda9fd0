use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::question::InputRequired;
use super::typed::unfit;
use crate::call::{self, BoxFuture, Context, Handler, HiddenError, Ran, Reply, RequestHandler};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonrpc::RawJson;
use crate::model::{
    CallToolResult, CompleteResult, Content, GetPromptResult, PromptMessage, ReadResourceResult, ResourceContents,
};

/// Failure of a tool. `?` turns any error into one, also `Box<dyn Error + Send + Sync>` and that of `anyhow`; its text
/// stays out of the model's sight, unlike that of [`HandlerError::new`], of [`ForModel::for_model`], of an [`Error`]
/// that the function made, and of a failed question to its own client. The answer of another server to a
/// [`Client`](crate::Client) of the function's own is not shown.
///
/// ```
/// use tricorn::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Pay { cents: u32 }
///
/// Server::new("bank").tool("pay", "Pay a friend", async |Pay { cents }: Pay| {
///     if cents == 0 {
///         return Err(HandlerError::new("there is nothing to pay")); // the model reads this
///     }
///     let account = std::fs::read_to_string("account.txt")?; // and not why this fails
///     Ok(format!("paid {cents} from {account}"))
/// });
/// ```
#[derive(Debug)]
pub struct HandlerError(Failure);

#[derive(Debug)]
enum Failure {
    Shown(String),
    /// Its text is shown, and what led to it is not.
    Told(Box<HiddenError>),
    Hidden {
        kind: &'static str,
        error: Box<HiddenError>,
    },
    Rpc(Error),
    /// A question could not be asked.
    Unsupported(Error),
    Input(InputRequired),
}

impl HandlerError {
    /// A failure whose text the model is shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Failure::Shown(text.into()))
    }

    fn reply(self, reply: Reply) {
        match self.0 {
            Failure::Shown(text) => reply.failed(text),
            Failure::Told(error) => reply.told(&*error),
            Failure::Rpc(error) => reply.error(error),
            Failure::Unsupported(error) => reply.unsupported(&error),
            Failure::Input(input) => input.send(reply),
            Failure::Hidden { kind, error } => reply.hidden(kind, &*error),
        }
    }
}

/// The word that shows an error's text to the model: `store.get(id).for_model()?`.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> tricorn::Result<()> {
/// use serde_json::json;
/// use tricorn::prelude::*;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Sum { numbers: Vec<String> }
///
/// let server = Server::new("calculator").tool("sum", "Add numbers", async |Sum { numbers }: Sum| {
///     let numbers: Result<Vec<i64>, _> = numbers.iter().map(|text| text.parse()).collect();
///     Ok(numbers.for_model()?.iter().sum::<i64>())
/// });
/// # let client = Client::in_memory(&server, &ClientOptions::new()).await?;
/// let result = client.call_tool("sum", json!({"numbers": ["1", "two"]})).await?;
/// assert_eq!(result.text(), "invalid digit found in string");
/// # Ok(())
/// # }
/// ```
pub trait ForModel<T> {
    /// Fails with the error's own text (`Display`), for the model to read. Its causes
    /// ([`source`](std::error::Error::source)) are for the log only.
    ///
    /// # Errors
    /// That of `self`.
    fn for_model(self) -> Result<T, HandlerError>;
}

impl<T, E: Into<Box<HiddenError>>> ForModel<T> for Result<T, E> {
    fn for_model(self) -> Result<T, HandlerError> {
        self.map_err(|error| HandlerError(Failure::Told(error.into())))
    }
}

impl<E: Into<Box<HiddenError>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let error: Box<HiddenError> = error.into();
        if let Some(error) = error.downcast_ref::<Error>() {
            if let Some(text) = error.as_answer() {
                return Self::new(text);
            }
            match error.kind() {
                // It came from another server, by a client of the handler's own.
                _ if error.is_received() => {}
                ErrorKind::Rpc | ErrorKind::InputRequired => return Self(Failure::Rpc(error.clone())),
                // The fate of a question to the client is no secret.
                ErrorKind::Unsupported => return Self(Failure::Unsupported(error.clone())),
                ErrorKind::Timeout | ErrorKind::PeerMisbehaved => {
                    return Self::new(error.message());
                }
                _ => {}
            }
        }
        let name = std::any::type_name::<E>();
        let kind = match name.split('<').next().unwrap_or(name).rsplit("::").next() {
            Some("Box") | None => "error",
            Some(kind) => kind,
        };
        Self(Failure::Hidden { kind, error })
    }
}

impl From<InputRequired> for HandlerError {
    fn from(input: InputRequired) -> Self {
        Self(Failure::Input(input))
    }
}

/// Results that a tool's function may return.
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

impl IntoAnswer for ResourceContents {
    fn answer(self, reply: Reply) {
        ReadResourceResult::new([self]).answer(reply);
    }
}

impl IntoAnswer for ReadResourceResult {
    fn answer(self, reply: Reply) {
        reply.result(RawJson::from_value(&self));
    }
}

impl IntoAnswer for CompleteResult {
    fn answer(self, reply: Reply) {
        reply.result(RawJson::from_value(&self));
    }
}

impl IntoAnswer for PromptMessage {
    fn answer(self, reply: Reply) {
        GetPromptResult::new([self]).answer(reply);
    }
}

impl IntoAnswer for GetPromptResult {
    fn answer(self, reply: Reply) {
        reply.result(RawJson::from_value(&self));
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
            Err(error) => HandlerError::from(error).reply(reply),
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
    without_true(&mut value);
    value
}

/// Writes `{}` for the schema `true`, which means the same: some clients take a list of tools with a `true` for broken.
fn without_true(schema: &mut Value) {
    let Value::Object(members) = schema else {
        if *schema == Value::Bool(true) {
            *schema = Value::Object(serde_json::Map::new());
        }
        return;
    };
    for (key, member) in members {
        match (key.as_str(), member) {
            ("properties" | "patternProperties" | "$defs" | "dependentSchemas", Value::Object(schemas)) => {
                schemas.values_mut().for_each(without_true);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter_mut().for_each(without_true);
            }
            ("items" | "contains" | "not" | "if" | "then" | "else" | "propertyNames", schema) => without_true(schema),
            // `true` is the usual word there.
            ("additionalProperties", schema @ Value::Object(_)) => without_true(schema),
            _ => {}
        }
    }
}

/// Functions that are handlers: `async || …`, `async |args| …`, `async |context| …`, `async |args, context| …`, returning
/// `Result<T, HandlerError>`.
///
/// ```
/// use tricorn::prelude::*;
/// use tricorn::server::IntoHandler;
///
/// let server = Server::new("clock");
/// // Later, also while clients are connected: they are told.
/// let noon = async || Ok("noon");
/// server.add_tool(Tool::new("time", "What time it is"), noon.into_handler())?;
/// # Ok::<(), tricorn::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "this is no function that can be a handler",
    label = "no handler",
    note = "expected one of: `async || …`, `async |args: Args| …`, `async |context: Context| …`, `async |args: Args, context: Context| …`",
    note = "each returns `Result<T, HandlerError>`: end it with `Ok(value)`; `?` turns any error into a `HandlerError`, and `.map_err(HandlerError::from)` that of a function that returns another error, such as `io::Result`",
    note = "`Args` needs `#[derive(serde::Deserialize, schemars::JsonSchema)]`, and the types of its fields, too",
    note = "`T` is text, `#[derive(serde::Serialize, schemars::JsonSchema)]` data, or a content type of this crate, such as `CallToolResult`; a prompt with several messages is `GetPromptResult::new(messages)`",
    note = "its future is `Send`, and the function `Send + Sync + 'static`: share state by `Arc`, and hold no lock across an `.await`"
)]
pub trait IntoHandler<Marker>: Send + Sync + 'static {
    /// JSON Schema of the arguments, when the function's type says it.
    fn input_schema() -> Option<Value>;
    /// JSON Schema of the result, when the function's type says it.
    fn output_schema() -> Option<Value>;
    /// The handler.
    fn into_handler(self) -> Arc<dyn Handler>;
}

/// Marks functions, of which a client may have some, too.
#[derive(Debug)]
pub struct Function<Marker>(PhantomData<Marker>);

impl<Marker, F: IntoHandler<Marker>> RequestHandler<Function<Marker>> for F {
    fn shared(self) -> Arc<dyn Handler> {
        self.into_handler()
    }
}

/// Marks functions of arguments alone.
#[derive(Debug)]
pub struct WithoutContext<A>(PhantomData<A>);
/// Marks functions of arguments and context.
#[derive(Debug)]
pub struct WithContext<A>(PhantomData<A>);
/// Marks functions of the context alone.
#[derive(Debug)]
pub struct ContextAlone;
/// Marks functions without arguments.
#[derive(Debug)]
pub struct Bare;
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

    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(self)
    }
}

impl<F, Fut, T> IntoHandler<Bare> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, HandlerError>> + Send + 'static,
    T: IntoAnswer,
{
    fn input_schema() -> Option<Value> {
        None
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(FunctionHandler { function: move |_: IgnoredAny, _| self(), args: PhantomData })
    }
}

impl<F, Fut, T> IntoHandler<ContextAlone> for F
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, HandlerError>> + Send + 'static,
    T: IntoAnswer,
{
    fn input_schema() -> Option<Value> {
        None
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(FunctionHandler { function: move |_: IgnoredAny, context| self(context), args: PhantomData })
    }
}

impl<F, A, Fut, T> IntoHandler<WithoutContext<A>> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    Fut: Future<Output = Result<T, HandlerError>> + Send + 'static,
    T: IntoAnswer,
{
    fn input_schema() -> Option<Value> {
        arguments_of::<A>()
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(FunctionHandler { function: move |args, _| self(args), args: PhantomData })
    }
}

impl<F, A, Fut, T> IntoHandler<WithContext<A>> for F
where
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    Fut: Future<Output = Result<T, HandlerError>> + Send + 'static,
    T: IntoAnswer,
{
    fn input_schema() -> Option<Value> {
        arguments_of::<A>()
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }

    fn into_handler(self) -> Arc<dyn Handler> {
        Arc::new(FunctionHandler { function: self, args: PhantomData })
    }
}

/// The schema of arguments; a function of `()` takes none.
fn arguments_of<A: JsonSchema + 'static>() -> Option<Value> {
    (!is_nothing::<A>()).then(|| schema_of::<A>(true))
}

fn is_nothing<A: 'static>() -> bool {
    std::any::TypeId::of::<A>() == std::any::TypeId::of::<()>()
}

struct FunctionHandler<F, A> {
    function: F,
    args: PhantomData<fn(A)>,
}

impl<F, A, Fut, T> Handler for FunctionHandler<F, A>
where
    F: Fn(A, Context) -> Fut + Send + Sync + 'static,
    A: DeserializeOwned + Send + 'static,
    Fut: Future<Output = Result<T, HandlerError>> + Send + 'static,
    T: IntoAnswer,
{
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        let params = if is_nothing::<A>() { RawJson::trusted("null") } else { params };
        let Ok(args) = params.to::<A>().or_else(|error| integral(&params).ok_or(error)) else {
            return reply.failed(unfit::<A>("argument", params.get()));
        };
        let future = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (self.function)(args, cx.clone())))
        {
            Ok(future) => future,
            Err(panic) => return panicked(&*panic, reply),
        };
        self::run(cx, Box::pin(future), reply);
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
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send), reply: Reply) {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    reply.hidden("panic", &*Box::<HiddenError>::from(text.unwrap_or("no message")));
}

/// Answers with what an async handler returned.
pub(crate) fn finished<T: IntoAnswer>(outcome: Result<T, HandlerError>, reply: Reply) {
    match outcome {
        Ok(value) => value.answer(reply),
        Err(error) => error.reply(reply),
    }
}

/// Runs a handler's future.
pub(crate) fn run<T: IntoAnswer>(cx: Context, future: BoxFuture<Result<T, HandlerError>>, reply: Reply) {
    call::run(cx, future, |ran| match ran {
        Ran::Done(outcome) => finished(outcome, reply),
        Ran::Panicked(panic) => panicked(&*panic, reply),
        // The connection has forgotten the request; dropping the reply sends nothing.
        Ran::Cancelled => drop(reply),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[test]
    fn what_fits_its_schema_and_not_its_type_is_named() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "it is never read")]
        struct Note {
            from: std::net::IpAddr,
        }
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "it is never read")]
        struct Arguments {
            note: Note,
            all: Vec<Note>,
        }
        for (text, words) in [
            (r#"{"note": {"from": "soon"}, "all": []}"#, "argument \"note.from\": "),
            (r#"{"note": {"from": "::1"}, "all": [{"from": "::1"}, {"from": "x"}]}"#, "argument \"all[1].from\": "),
        ] {
            let said = unfit::<Arguments>("argument", text);
            assert!(said.starts_with(words) && !said.contains("line"), "{said}");
        }
    }
}
