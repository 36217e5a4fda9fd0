"""Requests as spans and metrics, with the SDK of OpenTelemetry, between real clients and servers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from opentelemetry import baggage, trace
from opentelemetry import context as otel
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tricorn import (
    AsyncClient,
    Client,
    Context,
    RequestContext,
    RpcError,
    Server,
    ToolError,
    TraceContext,
    connect,
    testing,
)
from tricorn.otel import Telemetry

from .conftest import LEGACY, PATIENCE

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")

ERAS = pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
TRANSPORTS = pytest.mark.parametrize("transport", ["memory", "http"])


class Told:
    """One side's providers with what they were told."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self.tracer = self.tracers.get_tracer("the program")

    def telemetry(self) -> Telemetry:
        return Telemetry(self.tracers, self.meters)

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def span(self, name: str) -> ReadableSpan:
        (span,) = self.spans(name)
        return span

    def measured(self, name: str) -> list[tuple[dict[str, Any], int]]:
        """Returns the number of measurements of each combination of attributes."""
        data: Any = self.reader.get_metrics_data()
        every = [metric for one in data.resource_metrics for scope in one.scope_metrics for metric in scope.metrics]
        (metric,) = [metric for metric in every if metric.name == name]
        assert metric.unit == "s"
        points = metric.data.data_points
        assert all(point.explicit_bounds[:3] == (0.01, 0.02, 0.05) for point in points)
        return [(dict(point.attributes), point.count) for point in points]


def flags(span: ReadableSpan) -> str:
    """Those of its trace: whether it is sampled, and in newer SDKs whether its id is random."""
    assert span.context is not None
    return f"{span.context.trace_flags:02x}"


def ids(span: ReadableSpan) -> tuple[str, str]:
    context: Any = span.context
    return trace.format_trace_id(context.trace_id), trace.format_span_id(context.span_id)


def parent(span: ReadableSpan) -> str | None:
    return None if span.parent is None else trace.format_span_id(span.parent.span_id)


def filled(theirs: Told) -> Server:
    app = Server("s")
    app.middleware(theirs.telemetry())

    def inside(ctx: Context) -> dict[str, Any]:
        theirs.tracer.start_span("inside").end()
        told: Any = ctx.trace_context
        return {"trace": [told.traceparent, told.baggage], "tenant": baggage.get_baggage("tenant")}

    @app.tool
    async def work(ctx: Context) -> dict[str, Any]:
        await asyncio.sleep(0)
        return inside(ctx)

    @app.tool
    def work_in_a_thread(ctx: Context) -> dict[str, Any]:
        return inside(ctx)

    @app.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.sample("where?", 9)).text

    @app.tool
    def fail() -> None:
        raise ToolError("a secret")

    @app.tool
    def refuse() -> None:
        raise RpcError(4242, "custom")

    @app.tool
    async def wait(ctx: Context) -> None:
        ctx.progress(1)
        await asyncio.Event().wait()

    @app.resource("x://a")
    def resource() -> str:
        return "text"

    @app.prompt
    def greet() -> str:
        return "hello"

    return app


def model(_: Any, ctx: RequestContext) -> str:
    told = ctx.trace_context
    return str(told and told.parent_id)


@asynccontextmanager
async def connected(app: Server, ours: Told, revision: str, transport: str) -> AsyncGenerator[AsyncClient]:
    options: Any = {"revision": revision, "sampling": model, "middleware": [ours.telemetry()]}
    if transport == "memory":
        async with testing.connect(app, **options) as client:
            yield client
    else:
        async with testing.serving(app) as url, connect(url, **options) as client:
            yield client


@ERAS
@TRANSPORTS
@pytest.mark.parametrize("tool", ["work", "work_in_a_thread"])
async def test_client_and_server_are_one_trace(revision: str, transport: str, tool: str) -> None:
    ours, theirs = Told(), Told()
    async with connected(filled(theirs), ours, revision, transport) as client:
        with ours.tracer.start_as_current_span("root"):
            token = otel.attach(baggage.set_baggage("tenant", "a b"))
            result = await client.call_tool(tool)
            otel.detach(token)
        session = client.session_id
    root, sent = ours.span("root"), ours.span(f"tools/call {tool}")
    served, inside = theirs.span(f"tools/call {tool}"), theirs.span("inside")
    assert {ids(span)[0] for span in (root, sent, served, inside)} == {ids(root)[0]}
    assert [parent(span) for span in (sent, served, inside)] == [ids(span)[1] for span in (root, sent, served)]
    assert [span.kind.name for span in (sent, served, inside)] == ["CLIENT", "SERVER", "INTERNAL"]
    assert {span.status.status_code for span in (sent, served)} == {trace.StatusCode.UNSET}
    own = f"00-{ids(root)[0]}-{ids(served)[1]}-{flags(served)}"
    assert result.structured == {"trace": [own, "tenant=a+b"], "tenant": "a b"}
    expected: dict[str, Any] = {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": revision,
        "gen_ai.tool.name": tool,
        "gen_ai.operation.name": "execute_tool",
    }
    if transport == "http":
        expected.update({"network.transport": "tcp", "network.protocol.name": "http"})
    assert dict(sent.attributes or {}) == expected
    assert ours.measured("mcp.client.operation.duration") == [(expected, 1)]
    assert theirs.measured("mcp.server.operation.duration") == [(expected, 1)]
    more = dict(served.attributes or {})
    assert more.pop("jsonrpc.request.id")
    assert more.pop("mcp.session.id", None) == session
    assert more == expected


@ERAS
@TRANSPORTS
async def test_what_a_handler_asks_belongs_to_its_span(revision: str, transport: str) -> None:
    ours, theirs = Told(), Told()
    async with connected(filled(theirs), ours, revision, transport) as client:
        asked = (await client.call_tool("ask")).text
    served = theirs.spans("tools/call ask")
    # In rounds the same request is served twice; the question is of the first time.
    assert len(served) == (2 if revision == "2026-07-28" else 1)
    assert {parent(span) for span in served} == {ids(ours.span("tools/call ask"))[1]}
    assert {span.status.status_code for span in served} == {trace.StatusCode.UNSET}
    assert asked == ids(served[0])[1]


@ERAS
@TRANSPORTS
async def test_a_request_that_fails_is_an_error_of_both(revision: str, transport: str) -> None:
    ours, theirs = Told(), Told()
    async with connected(filled(theirs), ours, revision, transport) as client:
        assert (await client.call_tool("fail")).is_error
        with pytest.raises(RpcError):
            await client.call_tool("refuse")
        await client.read_resource("x://a")
        await client.get_prompt("greet")
    for told in (ours, theirs):
        failed, refused = told.span("tools/call fail"), told.span("tools/call refuse")
        assert (failed.attributes or {})["error.type"] == "tool_error"
        assert failed.status.status_code is trace.StatusCode.ERROR
        assert "secret" not in str(failed.to_json())
        attributes = refused.attributes or {}
        assert (attributes["error.type"], attributes["rpc.response.status_code"]) == ("4242", "4242")
        assert (refused.status.status_code, refused.status.description) == (trace.StatusCode.ERROR, "custom")
        read = told.span("resources/read")
        assert (read.attributes or {})["mcp.resource.uri"] == "x://a"
        prompt = told.span("prompts/get greet").attributes or {}
        assert prompt["gen_ai.prompt.name"] == "greet"
        assert "gen_ai.operation.name" not in prompt
    measured = theirs.measured("mcp.server.operation.duration")
    kinds = sorted(str(attributes.get("error.type")) for attributes, _ in measured)
    assert kinds == ["4242", "None", "None", "tool_error"]
    assert not any("mcp.resource.uri" in attributes for attributes, _ in measured)


@ERAS
@TRANSPORTS
async def test_a_request_that_is_given_up_is_one_too(revision: str, transport: str) -> None:
    ours, theirs = Told(), Told()
    async with connected(filled(theirs), ours, revision, transport) as client:
        begun = asyncio.Event()
        task = asyncio.create_task(client.call_tool("wait", on_progress=lambda _: begun.set()))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        async def ended() -> None:  # both sides hear of it later
            while not (ours.spans("tools/call wait") and theirs.spans("tools/call wait")):
                await client.call_tool("work")

        await asyncio.wait_for(ended(), PATIENCE)
    for told in (ours, theirs):
        span = told.span("tools/call wait")
        assert (span.attributes or {})["error.type"] == "cancelled"
        assert span.status.status_code is trace.StatusCode.ERROR


async def test_a_blocking_client_and_what_is_said_by_hand() -> None:
    ours, theirs = Told(), Told()
    app = filled(theirs)
    async with testing.serving(app) as url:

        def blocking() -> None:
            with Client(url, middleware=[ours.telemetry()]) as client, ours.tracer.start_as_current_span("root"):
                client.call_tool("work")
                by_hand = TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
                client.call_tool("work_in_a_thread", meta={"traceparent": by_hand.traceparent})

        await asyncio.to_thread(blocking)
    assert parent(ours.span("tools/call work")) == ids(ours.span("root"))[1]
    assert parent(theirs.span("tools/call work")) == ids(ours.span("tools/call work"))[1]
    assert parent(theirs.span("tools/call work_in_a_thread")) == "00f067aa0ba902b7"


def test_without_the_package_it_says_what_is_missing() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
import tricorn
try:
    import tricorn.otel
except ModuleNotFoundError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert said.stdout.strip() == "tricorn.otel needs the package opentelemetry-api: pip install 'tricorn[otel]'"
