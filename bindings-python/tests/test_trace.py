"""The trace that requests belong to: into handlers, and out with what they ask."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
from typing import Any

import pytest

from tricorn import (
    Client,
    Context,
    MisuseError,
    Next,
    Request,
    RequestContext,
    Server,
    TraceContext,
    connect_many,
    testing,
)
from tricorn.middleware import Result

from .conftest import LEGACY

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")

ERAS = pytest.mark.parametrize("revision", ["2024-11-05", LEGACY, "2026-07-28"])


def trace(number: int) -> TraceContext:
    parent = f"00-4bf92f3577b34da6a3ce929d0e0e4736-{number:016x}-01"
    return TraceContext(parent, tracestate="vendor=1", baggage="tenant=a%20b")


def filled(app: Server) -> Server:
    @app.tool
    def seen(ctx: Context) -> str:
        return repr(ctx.trace_context)

    @app.tool
    def meta(ctx: Context) -> str:
        return json.dumps(ctx.request.meta)

    @app.tool
    async def asks(ctx: Context) -> str:
        first = await ctx.sample("first?", 9)
        second = await ctx.sample("second?", 9)
        return f"{first.text} {second.text}"

    return app


def model(_: Any, ctx: RequestContext) -> str:
    return repr(ctx.trace_context)


@ERAS
async def test_a_trace_goes_to_the_handler_and_back_with_its_questions(app: Server, revision: str) -> None:
    numbers = itertools.count(1)
    options: Any = {"revision": revision, "sampling": model, "trace_context": lambda: trace(next(numbers))}
    async with testing.connect(filled(app), **options) as client:
        assert (await client.call_tool("seen")).text == repr(trace(1))
        # All rounds of one request are of one trace.
        assert (await client.call_tool("asks")).text == f"{trace(2)!r} {trace(2)!r}"
        assert (await client.call_tool("seen")).text == repr(trace(3))
    async with testing.serving(app) as url:

        def blocking() -> None:
            with Client(url, **options) as client:
                assert client.call_tool("seen").text == repr(trace(4))
                assert client.call_tool("asks").text == f"{trace(5)!r} {trace(5)!r}"

        await asyncio.to_thread(blocking)


@ERAS
async def test_what_is_said_of_one_request_comes_first(app: Server, revision: str) -> None:
    async with testing.connect(filled(app), revision=revision, trace_context=lambda: trace(1)) as client:
        assert (await client.call_tool("seen", trace_context=trace(2))).text == repr(trace(2))
        plain = {"traceparent": trace(3).traceparent}
        assert (await client.call_tool("seen", trace_context=plain)).text == repr(TraceContext(trace(3).traceparent))
        by_hand = {"traceparent": trace(4).traceparent, "own/key": 1}
        meta = json.loads((await client.call_tool("meta", trace_context=trace(2), meta=by_hand)).text)
        assert meta["traceparent"] == trace(4).traceparent
        assert "tracestate" not in meta
        assert (meta["own/key"], meta["baggage"]) == (1, "tenant=a%20b")
        asked = await client.request("tools/call", {"name": "seen", "arguments": {}}, trace_context=trace(5))
        assert asked["content"][0]["text"] == repr(trace(5))
    async with testing.connect(app, revision=revision, trace_context=lambda: None) as client:
        assert (await client.call_tool("seen")).text == "None"


@ERAS
async def test_what_is_malformed_is_as_if_it_were_not_there(app: Server, revision: str) -> None:
    async with testing.connect(filled(app), revision=revision) as client:
        for bad in ("junk", trace(0).traceparent, 7, None):
            meta = {"traceparent": bad, "tracestate": "a=1"}
            assert (await client.call_tool("seen", meta=meta)).text == "None"
            with_baggage = await client.call_tool("seen", meta={**meta, "baggage": "k=v"})
            assert with_baggage.text == repr(TraceContext(baggage="k=v"))
        for wrong, part in (
            (TraceContext("junk"), '"traceparent": expected'),
            (TraceContext(tracestate="a=1"), 'a "traceparent" beside it'),
            ({"traceParent": "x"}, '"traceParent": expected one of'),
            ("junk", "trace context: expected an object"),
        ):
            with pytest.raises(MisuseError, match=part):
                await client.call_tool("seen", trace_context=wrong)  # type: ignore[arg-type]


async def test_what_says_it_may_fail(app: Server) -> None:
    failed: list[tuple[str, str]] = []
    options: Any = {
        "trace_context": lambda: 1 / 0,
        "on_error": lambda error, name: failed.append((type(error).__name__, name)),
    }
    async with testing.connect(filled(app), **options) as client:
        assert (await client.call_tool("seen")).text == "None"
    assert failed[-1] == ("ZeroDivisionError", "trace_context")
    with pytest.raises(MisuseError, match="trace_context: expected a function"):
        testing.connect(app, trace_context="00-")  # type: ignore[arg-type]


@ERAS
async def test_middleware_may_put_another_in_its_place(app: Server, revision: str) -> None:
    numbers = itertools.count(100)

    async def spans(request: Request, context: RequestContext, call_next: Next) -> Result:
        seen.append(context.trace_context)
        context.trace_context = trace(next(numbers))
        return await call_next(request, context)

    seen: list[TraceContext | None] = []
    app.middleware(spans)
    async with testing.connect(filled(app), revision=revision, sampling=model) as client:
        assert (await client.call_tool("seen", trace_context=trace(1))).text == repr(trace(100))
        # Where rounds are requests, the second question is asked in the second one.
        second = 102 if revision == "2026-07-28" else 101
        assert (await client.call_tool("asks")).text == f"{trace(101)!r} {trace(second)!r}"
    assert seen[:2] == [trace(1), None]
    plain = filled(Server("plain"))
    async with testing.connect(plain, revision=revision, middleware=[spans], trace_context=lambda: trace(7)) as client:
        seen.clear()
        number = next(numbers)
        assert (await client.call_tool("seen")).text == repr(trace(number + 1))
        assert seen == [trace(7)]


async def test_a_group_asks_for_each_server(app: Server) -> None:
    async with connect_many({"one": filled(app)}, trace_context=lambda: trace(3)) as group:
        assert (await group.call_tool("seen")).text == repr(trace(3))


async def test_handlers_see_the_context_variables_of_the_middleware_around_them(app: Server) -> None:
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    @app.middleware
    async def outer(request: Request, context: Context, call_next: Next) -> Result:
        who.set(request.params.get("name", "?"))
        return await call_next(request, context)

    @app.middleware
    async def inner(request: Request, context: Context, call_next: Next) -> Result:
        token = who.set(f"{who.get()} twice")
        try:
            return await call_next(request, context)
        finally:
            who.reset(token)

    @app.tool
    async def asynchronous() -> str:
        return who.get()

    @app.tool
    def threaded() -> str:
        return who.get()

    async with testing.connect(app) as client:
        for name in ("asynchronous", "threaded", "asynchronous"):
            assert (await client.call_tool(name)).text == f"{name} twice"
    assert who.get() == "nobody"
    assert not app._host.contexts
