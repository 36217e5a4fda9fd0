//! The server of a bridge: it has nothing of its own, and asks the one behind it.

use std::future::Future;
use std::sync::Arc;

use serde_json::{Value, json};
use tricorn::client::{ClientOptions, Target};
use tricorn::jsonrpc::RawJson;
use tricorn::protocol::Kind;
use tricorn::{CallOptions, Context, Error, ErrorKind, Handler, Reply, Server};

use super::behind::Facts;
use super::empty;
use super::order::Turn;
use super::upstream::{Arrival, Upstreams, answered};
use crate::targets::{Found, Reach};

/// Members of `_meta` that belong to one connection.
const OWN_META: &str = "io.modelcontextprotocol/";

/// Makes a server of what the one behind says of itself.
pub(super) fn server(facts: &Facts, spoken: &Spoken, upstreams: &Arc<Upstreams>) -> Server {
    let mut server = Server::new(&facts.name).version(&facts.version);
    if let Some(revision) = &spoken.0 {
        server = server.revision(revision);
    }
    if let Some(title) = &facts.title {
        server = server.title(title);
    }
    if let Some(instructions) = &facts.instructions {
        server = server.instructions(instructions);
    }
    server = server.introduction(facts.info.clone(), facts.foreign.clone());
    let ask = |method: &'static str| -> Option<Arc<dyn Handler>> {
        Some(Arc::new(Forward { method, upstreams: upstreams.clone() }))
    };
    let sources = [
        ("tools", Kind::Tool, "tools/list", "tools/call"),
        ("resources", Kind::Resource, "resources/list", "resources/read"),
        ("resources", Kind::ResourceTemplate, "resources/templates/list", "resources/read"),
        ("prompts", Kind::Prompt, "prompts/list", "prompts/get"),
    ];
    for (capability, kind, list, get) in sources {
        if (facts.has)(capability) {
            let get = (kind != Kind::ResourceTemplate).then(|| ask(get)).flatten();
            server.set_source(kind, ask(list), get);
        }
    }
    if (facts.has)("completions") {
        ask("completion/complete").into_iter().for_each(|handler| server.set_completion(handler));
    }
    if (facts.has)("resources.subscribe") {
        server.set_subscription(Arc::new(Subscribe(upstreams.clone())));
    }
    server.set_roots_changed(Arc::new(RootsChanged(upstreams.clone())));
    server.set_fallback(Arc::new(Other(upstreams.clone())), Arc::new(Heard(upstreams.clone())));
    server
}

/// The revision, or the era, that a bridge speaks to its clients; `None`: all of them.
pub(super) struct Spoken(Option<String>);

impl Spoken {
    /// Takes it out of the options, where it is not about the server behind.
    pub(super) fn of(found: &Found, options: ClientOptions) -> (Self, ClientOptions) {
        match &found.reach {
            // A cassette answers again when a request with answers to its questions comes.
            Reach::One(Target::Replay { .. }) => {
                (Self(options.get_revision().map(str::to_owned)), options.any_revision())
            }
            // Those with sessions: what that one asks goes to whoever called it, while the call goes on.
            _ => (Self(Some("legacy".to_owned())), options),
        }
    }
}

/// Sends a request on.
struct Forward {
    method: &'static str,
    upstreams: Arc<Upstreams>,
}

impl Handler for Forward {
    fn call(&self, context: Context, params: RawJson, reply: Reply) {
        if self.method == "tools/list"
            && let Some(list) = empty::asked(context.request().meta.as_ref())
        {
            return reply.result(list);
        }
        let (method, upstreams) = (self.method, self.upstreams.clone());
        let arrival = upstreams.arrives(&context);
        upstreams.clone().spawn(async move {
            let forwarded = forwarded(method, &upstreams, arrival, &context, &params);
            let outcome = tokio::select! {
                outcome = forwarded => outcome,
                // Dropped, it is cancelled there.
                () = context.cancelled() => return,
            };
            match outcome {
                Ok(result) => reply.result(adapted(method, result)),
                Err(error) => reply.error(answered(&error)),
            }
        });
    }
}

async fn forwarded(
    method: &str,
    upstreams: &Arc<Upstreams>,
    arrival: Arrival,
    context: &Context,
    params: &RawJson,
) -> tricorn::Result<RawJson> {
    let (upstream, turn) = upstreams.of(arrival, context).await?;
    let _at_work = upstream.works_for(context);
    let mut options = CallOptions::new().timeout(std::time::Duration::ZERO);
    if context.request().progress_token.is_some() {
        let context = context.clone();
        options = options.on_progress(move |told| {
            let Ok(told) = told.to::<Value>() else { return };
            let progress = told["progress"].as_f64().unwrap_or_default();
            context.progress(progress, told["total"].as_f64(), told["message"].as_str());
        });
    }
    match sent(turn, upstream.behind.request(method, carried(params), &options)).await {
        // It is asked for all lists where it may have them later.
        Err(error) if error.kind() == ErrorKind::Unsupported => empty::list(method).ok_or(error),
        outcome => outcome,
    }
}

/// Waits for the answer to a message. Whoever comes next has the turn once the message is sent.
async fn sent<T>(turn: Turn, asking: impl Future<Output = T>) -> T {
    let mut asking = std::pin::pin!(asking);
    // The first look sends it.
    let at_once = tokio::select! {
        biased;
        outcome = &mut asking => Some(outcome),
        () = std::future::ready(()) => None,
    };
    drop(turn);
    match at_once {
        Some(outcome) => outcome,
        None => asking.await,
    }
}

/// The parameters without what belongs to the connection that they came by.
fn carried(params: &RawJson) -> RawJson {
    let Ok(mut members) = params.to::<Value>() else { return params.clone() };
    let Some(meta) = members.get_mut("_meta").and_then(Value::as_object_mut) else { return params.clone() };
    meta.retain(|name, _| name != "progressToken" && !name.starts_with(OWN_META));
    RawJson::from_value(&members)
}

/// The result as this side can carry it: a tool that runs as a task there is an ordinary one here.
fn adapted(method: &str, result: RawJson) -> RawJson {
    if method != "tools/list" {
        return result;
    }
    let Ok(mut listed) = result.to::<Value>() else { return result };
    for tool in listed["tools"].as_array_mut().into_iter().flatten() {
        if let Some(tool) = tool.as_object_mut() {
            tool.shift_remove("execution");
        }
    }
    RawJson::from_value(&listed)
}

/// Subscribes where the resource is.
struct Subscribe(Arc<Upstreams>);

impl Handler for Subscribe {
    fn call(&self, context: Context, params: RawJson, reply: Reply) {
        let upstreams = self.0.clone();
        let arrival = upstreams.arrives(&context);
        upstreams.clone().spawn(async move {
            let asked: Value = params.to().unwrap_or_default();
            let uri = asked["uri"].as_str().unwrap_or_default();
            let outcome = async {
                let (upstream, turn) = upstreams.of(arrival, &context).await?;
                let _at_work = upstream.works_for(&context);
                sent(turn, upstream.subscribe(uri, asked["subscribed"] == true)).await
            };
            let outcome = tokio::select! {
                outcome = outcome => outcome,
                () = context.cancelled() => return,
            };
            match outcome {
                Ok(()) => reply.value(RawJson::from_value(&json!(null))),
                Err(error) => reply.error(answered(&error)),
            }
        });
    }
}

/// Passes on a request that the protocol does not have.
struct Other(Arc<Upstreams>);

impl Handler for Other {
    fn call(&self, context: Context, params: RawJson, reply: Reply) {
        let method = context.request().method;
        Forward { method, upstreams: self.0.clone() }.call(context, params, reply);
    }
}

/// Passes on a notification that the protocol does not have.
struct Heard(Arc<Upstreams>);

impl Handler for Heard {
    fn call(&self, context: Context, params: RawJson, reply: Reply) {
        let upstreams = self.0.clone();
        let Some(arrival) = upstreams.is_told(&context) else {
            return reply.value(RawJson::from_value(&json!(null)));
        };
        upstreams.clone().spawn(async move {
            if let Ok((upstream, _turn)) = upstreams.of(arrival, &context).await {
                upstream.behind.pass_on(context.request().method, &params);
            }
            reply.value(RawJson::from_value(&json!(null)));
        });
    }
}

/// Tells that the client's roots are others.
struct RootsChanged(Arc<Upstreams>);

impl Handler for RootsChanged {
    fn call(&self, context: Context, _params: RawJson, reply: Reply) {
        let upstreams = self.0.clone();
        let arrival = upstreams.arrives(&context);
        upstreams.clone().spawn(async move {
            if let Ok((upstream, _turn)) = upstreams.of(arrival, &context).await {
                upstream.behind.roots_changed();
            }
            reply.value(RawJson::from_value(&json!(null)));
        });
    }
}

/// A failure of the bridge itself, in the words of the protocol.
pub(super) fn internal(message: &str) -> Error {
    Error::rpc(-32603, message)
}
