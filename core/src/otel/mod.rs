//! Requests as spans and metrics of OpenTelemetry: [`Telemetry`], for servers and clients.
//!
//! ```
//! use tricorn::client::Handlers;
//! use tricorn::otel::Telemetry;
//! use tricorn::prelude::*;
//!
//! let server = Server::new("demo").middleware(Telemetry::new());
//! let handlers = Handlers::new().middleware(Telemetry::new());
//! # let _ = (server, handlers);
//! ```

mod carried;
mod facts;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use opentelemetry::global::{self, BoxedTracer, ObjectSafeTracerProvider};
use opentelemetry::metrics::{Histogram, Meter, MeterProvider};
use opentelemetry::trace::{FutureExt, Link, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context as Spans, InstrumentationScope, KeyValue};

use self::facts::Facts;
use crate::call::{BoxFuture, Context, Middleware, Next, OtelScope, Request};
use crate::error::Result;
use crate::jsonrpc::RawJson;
use crate::protocol::Role;

/// The buckets that the conventions want, in seconds.
const BUCKETS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// Middleware that makes a span and a measurement of every request, as the semantic conventions of OpenTelemetry for MCP
/// have them; of servers and clients.
///
/// - A server's span (kind `SERVER`) has the parent that the request's `_meta` names, and is current while its handler
///   runs. The handler's questions to the client belong to it.
/// - A client's span (kind `CLIENT`) has the parent that is current where the request is made, and goes out in `_meta`
///   with the current baggage. Members that are set there by hand stay.
/// - The span is called by method and tool or prompt, such as `tools/call add`; a request that fails, and a tool's result
///   with `isError`, has the status error.
/// - Durations are in the histograms `mcp.server.operation.duration` and `mcp.client.operation.duration`.
///
/// As the outermost middleware it measures what the others do, too. `initialize` and `server/discover`, before a client
/// is connected, are no spans of it.
#[derive(Clone)]
pub struct Telemetry(Arc<Instruments>);

struct Instruments {
    tracer: BoxedTracer,
    served: Histogram<f64>,
    asked: Histogram<f64>,
}

impl Telemetry {
    /// Reports to the global providers of traces and metrics, as they are now.
    #[must_use]
    pub fn new() -> Self {
        Self::made(global::tracer_with_scope(scope()), &global::meter_with_scope(scope()))
    }

    /// Reports to these.
    #[must_use]
    pub fn with_providers(tracers: &dyn ObjectSafeTracerProvider, meters: &dyn MeterProvider) -> Self {
        Self::made(BoxedTracer::new(tracers.boxed_tracer(scope())), &meters.meter_with_scope(scope()))
    }

    fn made(tracer: BoxedTracer, meter: &Meter) -> Self {
        let histogram = |name: &'static str, what: &'static str| {
            meter.f64_histogram(name).with_unit("s").with_description(what).with_boundaries(BUCKETS.to_vec()).build()
        };
        let served = histogram("mcp.server.operation.duration", "Time from a request's arrival to its answer");
        let asked = histogram("mcp.client.operation.duration", "Time from sending a request to its answer");
        Self(Arc::new(Instruments { tracer, served, asked }))
    }
}

impl Default for Telemetry {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Telemetry").finish_non_exhaustive()
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope::builder("tricorn").with_version(crate::VERSION).build()
}

impl Middleware for Telemetry {
    fn handle(&self, request: Request, context: Context, next: Next) -> BoxFuture<Result<RawJson>> {
        let is_server = context.link().role() == Role::Server;
        let facts = Facts::of(&request, &context, is_server);
        let ambient = Spans::current();
        let trace = context.trace_context();
        let here = ambient.span().span_context().clone();
        // A server goes by what its client says; a client by what runs here.
        let remote = trace.as_ref().and_then(carried::span_context).filter(|_| is_server || !here.is_valid());
        let link = remote.as_ref().filter(|remote| here.is_valid() && here.span_id() != remote.span_id());
        let link = link.map(|_| Link::with_context(here));
        let parent = remote.map_or_else(|| ambient.clone(), |remote| ambient.with_remote_span_context(remote));
        let parent = match trace.as_ref().and_then(|trace| trace.baggage()) {
            Some(baggage) => carried::with_baggage(&parent, baggage),
            None => parent,
        };
        let builder = SpanBuilder::from_name(facts.span_name())
            .with_kind(if is_server { SpanKind::Server } else { SpanKind::Client })
            .with_attributes(facts.attributes())
            .with_links(link.into_iter().collect());
        let span = self.0.tracer.build_with_context(builder, &parent);
        let spans = parent.with_span(span);
        // The handler sees, and asks with, this span and not its parent; a client says what was not said by hand.
        let context = context.with_state(OtelScope(spans.clone()));
        let context = match carried::trace_context(&spans) {
            Some(trace) => context.with_state(trace),
            None => context,
        };
        let (instruments, begun) = (self.0.clone(), Instant::now());
        let mut ending = Ending { instruments, spans: spans.clone(), facts: Some(facts), begun };
        let handled = async move {
            let outcome = next.run(request, &context).await;
            ending.end(Some(&outcome));
            outcome
        };
        Box::pin(handled.with_context(spans))
    }
}

/// Ends the span, with the request or when that is given up.
struct Ending {
    instruments: Arc<Instruments>,
    spans: Spans,
    facts: Option<Facts>,
    begun: Instant,
}

impl Ending {
    fn end(&mut self, outcome: Option<&Result<RawJson>>) {
        let Some(facts) = self.facts.take() else { return };
        let span = self.spans.span();
        let mut measured = facts.measured();
        if let Some(failure) = facts::failure(&facts, outcome) {
            let mut attributes = vec![KeyValue::new("error.type", failure.kind.clone())];
            attributes.extend(failure.code.map(|code| KeyValue::new("rpc.response.status_code", code.to_string())));
            span.set_attributes(attributes.iter().cloned());
            span.set_status(Status::error(Cow::Owned(failure.message)));
            measured.extend(attributes);
        }
        span.end();
        let histogram = if facts.is_server { &self.instruments.served } else { &self.instruments.asked };
        histogram.record(self.begun.elapsed().as_secs_f64(), &measured);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.end(None);
    }
}
