//! Middleware that lives in the host, and the built-in ones by name.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde::Deserialize;

use super::{Bridge, Client, HostHandler, Server, lock};
use crate::call::{BoxFuture, Context, Handler, Middleware, Next, Reply, Request, handled};
use crate::error::{Error, Result};
use crate::jsonrpc::RawJson;
use crate::middleware::{ConcurrencyLimit, Logging, RateLimit, Timing};
use crate::model::TraceContext;
use crate::protocol::Origin;

/// A host's function that stands around requests. It is called with `{"method", "params"?}`, goes on with
/// [`Bridge::next`] and answers with a result object.
struct HostMiddleware {
    bridge: Bridge,
    handler: u32,
}

impl Middleware for HostMiddleware {
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        let params = super::message(&request.method, request.params.as_ref());
        let host = HostHandler { bridge: self.bridge.clone(), handler: self.handler };
        let passing: Arc<dyn Handler> = Arc::new(Passing { host, next: (request, next) });
        Box::pin(handled(&context, &passing, params))
    }
}

/// One request on its way through a host's middleware.
struct Passing {
    host: HostHandler,
    next: (Request, Next),
}

impl Handler for Passing {
    fn call(&self, cx: Context, params: RawJson, reply: Reply) {
        self.host.deliver(cx, params, reply, Some(self.next.clone()));
    }

    fn cancel(&self, cx: &Context, reason: Option<&str>) {
        self.host.cancel(cx, reason);
    }
}

/// The call that a request came through on its way.
pub(super) struct Through(pub(super) u64);

impl Bridge {
    /// Goes on with the request that a call of middleware is about, with other parameters where some are given; settles
    /// its result. `trace` is the trace that it belongs to from here on, `{"traceparent"?, "tracestate"?, "baggage"?}` as
    /// JSON, or "" for the one that it belonged to. Settling `op` early cancels what runs. It may be done again, to try once
    /// more.
    pub fn next(&self, key: u64, op: u64, params: Option<RawJson>, trace: &str) {
        let trace = TraceContext::parse(trace);
        let found = lock(&self.0.calls).get(&key).and_then(|running| {
            let (request, next) = running.next.clone().filter(|_| !running.context.is_cancelled())?;
            Some((running.context.clone(), request, next))
        });
        self.spawn(op, async move {
            let (context, mut request, next) =
                found.ok_or_else(|| Error::cancelled("the request is not on its way through middleware any more"))?;
            if params.is_some() {
                request.params = params;
            }
            let context = context.with_state(Through(key));
            let context = match trace? {
                Some(trace) => context.with_state(trace),
                None => context,
            };
            next.run(request, &context).await
        });
    }
}

impl Server {
    /// Puts a host's function around every request that a handler answers; the first is the outermost. It is called
    /// with `{"method", "params"?}`, goes on with [`Bridge::next`] and answers with a result object.
    pub fn add_middleware(&self, handler: u32) {
        let middleware = HostMiddleware { bridge: self.bridge.clone(), handler };
        self.server.add_middleware(Arc::new(middleware));
    }

    /// Puts a built-in middleware around every request: JSON, `{"kind": "logging"}` (event `request` with `{"method",
    /// "name"?, "seconds", "error"?, "cancelled"}`), `{"kind": "timing"}` (member `timing` of the metrics),
    /// `{"kind": "rate_limit", "per_second", "burst"?, "per_session"?}`,
    /// `{"kind": "concurrency_limit", "max", "max_waiting"?}`.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn add_builtin(&self, options: &str) -> Result<()> {
        let middleware = builtin(options, &self.bridge, self.source, &self.timing)?;
        self.server.add_middleware(middleware);
        Ok(())
    }
}

impl Client {
    /// Puts a host's function around every request that the client sends, as [`Server::add_middleware`]. Before
    /// connecting.
    pub fn add_middleware(&self, handler: u32) {
        self.wrap(Arc::new(HostMiddleware { bridge: self.bridge.clone(), handler }));
    }

    /// Puts a built-in middleware around every request, as [`Server::add_builtin`]. Before connecting.
    ///
    /// # Errors
    /// [`Misuse`](crate::ErrorKind::Misuse) naming the option that is unknown or wrong.
    pub fn add_builtin(&self, options: &str) -> Result<()> {
        self.wrap(builtin(options, &self.bridge, self.source, &self.timing)?);
        Ok(())
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Options {
    kind: String,
    per_second: Option<f64>,
    burst: Option<NonZeroU32>,
    per_session: bool,
    max: Option<usize>,
    max_waiting: Option<usize>,
}

fn builtin(options: &str, bridge: &Bridge, source: u32, timing: &Timing) -> Result<Arc<dyn Middleware>> {
    let options: Options = crate::options::read("middleware", options)?;
    let missing =
        |name: &str, what: &str| Error::misuse(format!("middleware: option {name:?}: missing, expected {what}"));
    Ok(match options.kind.as_str() {
        "logging" => {
            let bridge = bridge.clone();
            Arc::new(Logging::new(move |record| {
                let origin = record.origin.as_ref().map_or(0, Origin::number);
                bridge.offer_event_of(origin, source, "request", RawJson::from_value(record));
            }))
        }
        "timing" => Arc::new(timing.clone()),
        "rate_limit" => {
            let rate = options.per_second.ok_or_else(|| missing("per_second", "requests each second"))?;
            let mut limit = RateLimit::per_second(rate)?;
            if let Some(burst) = options.burst {
                limit = limit.burst(burst);
            }
            Arc::new(if options.per_session { limit.per_session() } else { limit })
        }
        "concurrency_limit" => {
            let most = options.max.ok_or_else(|| missing("max", "at least 1 request at once"))?;
            let mut limit = ConcurrencyLimit::new(most)?;
            if let Some(waiting) = options.max_waiting {
                limit = limit.max_waiting(waiting);
            }
            Arc::new(limit)
        }
        other => {
            return Err(Error::misuse(format!(
                "middleware {other:?}: expected one of \"logging\", \"timing\", \"rate_limit\", \"concurrency_limit\""
            )));
        }
    })
}
