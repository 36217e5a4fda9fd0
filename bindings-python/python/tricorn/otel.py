"""Requests as spans and metrics of OpenTelemetry. It needs the package `opentelemetry-api`, as of `tricorn[otel]`.

from tricorn.otel import Telemetry

app = Server("demo", middleware=[Telemetry()])
async with connect(target, middleware=[Telemetry()]) as client:
    ...
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

try:
    from opentelemetry import context as otel
    from opentelemetry import metrics, trace
    from opentelemetry.baggage.propagation import W3CBaggagePropagator
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "tricorn.otel needs the package opentelemetry-api: pip install 'tricorn[otel]'", name=error.name
    ) from error

from . import _core
from .call.context import RequestContext
from .call.middleware import Next, Request, Result
from .errors import CancelledError, Error, RpcError
from .model.input_required import InputRequired
from .model.trace import TraceContext

if TYPE_CHECKING:
    from opentelemetry.util.types import AttributeValue

__all__ = ["Telemetry"]

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Bounds of the histograms that the conventions want, in seconds."""
LONGEST = 1000
"""The most characters of a name, a URI, an id or a message: the peer chooses them, and spans keep them."""

MOST_BAGGAGE = 8192
"""More of it is not sent, as nobody has to take it."""

_NAMES = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
_ABOUT_URIS = ("resources/read", "resources/subscribe", "resources/unsubscribe")
_PROPAGATORS = (TraceContextTextMapPropagator(), W3CBaggagePropagator())


class Telemetry:
    """Middleware that makes a span and a measurement of every request, of servers and clients.

    It follows the semantic conventions of OpenTelemetry for MCP.

    - A server's span (kind SERVER) has the parent that the request's `_meta` names, and is current while its handler
      runs. What the handler asks the client belongs to it.
    - A client's span (kind CLIENT) has the parent that is current where the request is made, and goes out in `_meta`
      with the current baggage. What is said there by hand stays.
    - The span is called by method and tool or prompt, such as `tools/call add`; a request that fails, and a tool's
      result with `isError`, has the status error.
    - Durations are in the histograms `mcp.server.operation.duration` and `mcp.client.operation.duration`.

    `tracer_provider` and `meter_provider` default to the global ones. As the first middleware it measures what the
    others do, too.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        version = _core.version()
        self._tracer = trace.get_tracer("tricorn", version, tracer_provider)
        meter = metrics.get_meter("tricorn", version, meter_provider)
        self._served, self._asked = (
            meter.create_histogram(
                f"mcp.{side}.operation.duration",
                unit="s",
                description=what,
                explicit_bucket_boundaries_advisory=BUCKETS,
            )
            for side, what in (
                ("server", "Time from a request's arrival to its answer"),
                ("client", "Time from sending a request to its answer"),
            )
        )

    def trace_context(self) -> TraceContext | None:
        """The trace and the baggage that are current here; a client asks for it where a request is made."""
        return _told(otel.get_current())

    async def __call__(self, request: Request, context: RequestContext, call_next: Next) -> Result:
        """Handles one request."""
        serves = context._host.serves
        measured = _measured(request, context)
        name = measured.get(_NAMES.get(request.method, ""))
        parent = _heard(context.trace_context)
        span = self._tracer.start_span(
            request.method if name is None else f"{request.method} {name}",
            parent,
            trace.SpanKind.SERVER if serves else trace.SpanKind.CLIENT,
            {**measured, **_more(request, context, serves)},
            record_exception=False,
            set_status_on_exception=False,
        )
        inside = trace.set_span_in_context(span, parent)
        told = _told(inside)
        if told is not None:
            context.trace_context = told
        failed: dict[str, AttributeValue] = {}
        message: str | None = None
        begun = time.perf_counter()
        token = otel.attach(inside)
        try:
            result = await call_next(request, context)
            if request.method == "tools/call" and result.get("isError") is True:
                failed = {"error.type": "tool_error"}  # what the model is told stays out of it: it may hold anything
            return result
        except BaseException as error:
            failed, message = _failed(error, serves and context.request.era == "modern")
            raise
        finally:
            otel.detach(token)
            if failed:
                span.set_attributes(failed)
                span.set_status(trace.StatusCode.ERROR, message)
            span.end()
            histogram = self._served if serves else self._asked
            histogram.record(time.perf_counter() - begun, {**measured, **failed}, inside)


def _heard(told: TraceContext | None) -> otel.Context:
    """The context of OpenTelemetry that a trace context names."""
    # Middleware runs on the event loop, whose own context is that of whoever started it.
    found = otel.Context()
    if told is not None:
        carrier = {name: [value] for name, value in _members(told)}
        for propagator in _PROPAGATORS:
            found = propagator.extract(carrier, found)
    return found


def _told(context: otel.Context) -> TraceContext | None:
    """A context's span and baggage, when there are any."""
    carrier: dict[str, str] = {}
    for propagator in _PROPAGATORS:
        propagator.inject(carrier, context)
    if len(carrier.get("baggage", "")) > MOST_BAGGAGE:
        del carrier["baggage"]
    return TraceContext(**carrier) if carrier else None


def _members(told: TraceContext) -> list[tuple[str, str]]:
    members = (("traceparent", told.traceparent), ("tracestate", told.tracestate), ("baggage", told.baggage))
    return [(name, value) for name, value in members if value is not None]


def _text(request: Request, member: str) -> str | None:
    value = request.params.get(member)
    return value[:LONGEST] if isinstance(value, str) else None


def _measured(request: Request, context: RequestContext) -> dict[str, AttributeValue]:
    """Returns the attributes of metrics and spans."""
    known, method = context.request, request.method
    found: dict[str, AttributeValue] = {"mcp.method.name": method, "mcp.protocol.version": known.protocol_version}
    if method in _NAMES and (name := _text(request, "name")) is not None:
        found[_NAMES[method]] = name
    if method == "tools/call":
        found["gen_ai.operation.name"] = "execute_tool"
    if known.transport == "http":
        found.update({"network.transport": "tcp", "network.protocol.name": "http"})
    elif known.transport == "stdio":
        found["network.transport"] = "pipe"
    return found


def _more(request: Request, context: RequestContext, serves: bool) -> dict[str, AttributeValue]:
    """Returns the further attributes of spans."""
    found: dict[str, AttributeValue] = {}
    known = context.request
    if request.method in _ABOUT_URIS and (uri := _text(request, "uri")) is not None:
        found["mcp.resource.uri"] = uri
    if serves:  # the number of what goes out is the connection's, and not known here
        found["jsonrpc.request.id"] = str(known.id)[:LONGEST]
    if known.session_id is not None:
        found["mcp.session.id"] = known.session_id
    return found


def _failed(error: BaseException, answers_modern: bool) -> tuple[dict[str, Any], str | None]:
    """Returns the attributes, and the description, of a request that failed with this error."""
    if InputRequired.of(error) is not None:
        return {}, None  # it goes on with the client's answer
    if isinstance(error, RpcError):
        # The engine answers modern clients with another code than middleware sees.
        code = str(-32602 if answers_modern and error.code == -32002 else error.code)
        return {"error.type": code, "rpc.response.status_code": code}, error.message[:LONGEST]
    if isinstance(error, (asyncio.CancelledError, CancelledError)):
        return {"error.type": "cancelled"}, "the request was cancelled"
    if isinstance(error, Error):
        return {"error.type": error.kind}, error.message[:LONGEST]
    return {"error.type": type(error).__qualname__}, None
