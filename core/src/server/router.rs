use std::borrow::Cow;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;

use serde::Deserialize;

use super::handler::{BoxFuture, finished, panicked};
use super::registry::Registry;
use super::{Context, IntoAnswer, Link, Reply, ToolError};
use crate::error::{Error, Result, shortened};
use crate::jsonrpc::{RawJson, code};
use crate::model::meta;
use crate::protocol::{Call, Payload};

/// Finds what a request asks for and runs it.
pub(crate) struct Router {
    pub(crate) registry: RwLock<Registry>,
    pub(crate) page_size: AtomicUsize,
}

impl Router {
    pub(crate) fn dispatch(&self, link: &Arc<dyn Link>, call: Call) {
        match call.method.name {
            "tools/call" => self.call_tool(link, call),
            "tools/list" => {
                let outcome = self.list_tools(&call).map(Payload::Object);
                link.clone().complete(call.id, outcome);
            }
            name => {
                let error = Error::rpc(code::METHOD_NOT_FOUND, format!("method {name:?} is not served"));
                link.clone().complete(call.id, Err(error));
            }
        }
    }

    fn list_tools(&self, call: &Call) -> Result<RawJson> {
        #[derive(Deserialize, Default)]
        struct Params {
            #[serde(default)]
            cursor: Option<String>,
        }
        let params = match &call.params {
            None => Params::default(),
            Some(params) => params.to().map_err(|_| Error::invalid_params("\"cursor\": expected a string"))?,
        };
        let registry = self.registry.read().unwrap_or_else(PoisonError::into_inner);
        registry.list_tools(call.context.revision, params.cursor.as_deref(), self.page_size.load(Ordering::Relaxed))
    }

    fn call_tool(&self, link: &Arc<dyn Link>, call: Call) {
        let fail = |error: Error| link.clone().complete(call.id, Err(error));
        let Some(name) = &call.name else {
            return fail(Error::invalid_params("\"name\": missing, expected the name of a tool"));
        };
        let Some(name) = serde_json::from_str::<&serde_json::value::RawValue>(name.get()).ok().and_then(meta::string)
        else {
            return fail(Error::invalid_params(format!("\"name\": expected a string, got {}", shown(name))));
        };
        let entry = self.registry.read().unwrap_or_else(PoisonError::into_inner).tool(&name);
        let Some(entry) = entry else {
            return fail(Error::invalid_params(format!("unknown tool {:?}", shortened(&name, 100))));
        };
        let arguments = match call.arguments {
            None => RawJson::empty_object(),
            Some(arguments) if arguments.is_object() => arguments,
            Some(other) => {
                return fail(Error::invalid_params(format!(
                    "\"arguments\": expected an object, got {}",
                    shown(&other)
                )));
            }
        };
        if let Err(text) = entry.check_arguments(&arguments) {
            // The model can mend it, so it is told in every revision.
            return link.clone().complete(call.id, Ok(Payload::Failed(text)));
        }
        let handler = entry.handler.clone();
        let context = Context::new(call.id, call.context, link.clone(), handler.clone());
        if !link.started(&context) {
            return;
        }
        let reply = Reply::new(context.clone(), Some(entry));
        // A panic that gets here has dropped the reply, which has answered.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| handler.call(context, arguments, reply)));
    }
}

fn shown(value: &RawJson) -> Cow<'_, str> {
    shortened(value.get(), 60)
}

/// Runs a handler's future: polled here first, because most are ready at once, and moved to a task when it waits.
pub(crate) fn run<T: IntoAnswer>(
    cx: Context,
    mut future: BoxFuture<Result<T, ToolError>>,
    name: Box<str>,
    reply: Reply,
) {
    let mut nobody = std::task::Context::from_waker(std::task::Waker::noop());
    match std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut nobody))) {
        Err(panic) => panicked(&name, &*panic, reply),
        Ok(Poll::Ready(outcome)) => finished(&name, outcome, reply),
        Ok(Poll::Pending) => {
            let link = cx.link().clone();
            link.spawn(Box::pin(until_cancelled(cx, future, name, reply)));
        }
    }
}

/// Drops the handler's future when the peer cancels.
async fn until_cancelled<T: IntoAnswer>(
    cx: Context,
    mut future: BoxFuture<Result<T, ToolError>>,
    name: Box<str>,
    reply: Reply,
) {
    let cancelled = cx.cancelled();
    let mut cancelled = std::pin::pin!(cancelled);
    let outcome = std::future::poll_fn(|task| {
        if cancelled.as_mut().poll(task).is_ready() {
            return Poll::Ready(None);
        }
        match std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(task))) {
            Err(panic) => Poll::Ready(Some(Err(panic))),
            Ok(Poll::Ready(outcome)) => Poll::Ready(Some(Ok(outcome))),
            Ok(Poll::Pending) => Poll::Pending,
        }
    })
    .await;
    match outcome {
        // The connection has forgotten the request; dropping the reply sends nothing.
        None => drop(reply),
        Some(Ok(outcome)) => finished(&name, outcome, reply),
        Some(Err(panic)) => panicked(&name, &*panic, reply),
    }
}
