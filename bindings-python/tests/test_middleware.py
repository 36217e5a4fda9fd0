"""Middleware around requests: of a server, those that its handlers answer; of a client, those that it sends."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tricorn import (
    CallToolResult,
    Client,
    Context,
    MisuseError,
    Next,
    Request,
    RequestContext,
    RpcError,
    Server,
    TimeoutError,  # noqa: A004 - this package's
    ToolError,
    UnsupportedError,
    testing,
)
from tricorn.bridge import host
from tricorn.middleware import Result, concurrency_limit, rate_limit, timing
from tricorn.middleware import logging as logged

from .conftest import LEGACY

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")

ERAS = pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])


def full(app: Server) -> Server:
    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    def fail() -> None:
        raise ToolError("no")

    @app.tool
    def refuse() -> None:
        raise RpcError(4242, "custom", [1])

    @app.resource("test://{number}")
    def resource(number: int) -> str:
        return f"number {number}"

    @app.prompt
    def prompt(word: str) -> str:
        return word

    return app


@ERAS
async def test_around_every_request_of_a_server(app: Server, revision: str) -> None:
    seen: list[Any] = []

    @full(app).middleware
    async def outer(request: Request, context: Context, call_next: Next) -> Result:
        seen.append(("outer", request.method, request.params.get("name")))
        result = await call_next(request, context)
        seen.append(("back", sorted(result)[:1]))
        return result

    @app.middleware
    async def inner(request: Request, context: RequestContext, call_next: Next) -> Result:
        assert context.request.method == request.method
        seen.append(("inner", request.method, context.request.protocol_version))
        return await call_next(request, context)

    async with testing.connect(app, revision=revision) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).to(int) == 3
        assert [one[0] for one in seen[-3:]] == ["outer", "inner", "back"]
        assert seen[-3:-1] == [("outer", "tools/call", "add"), ("inner", "tools/call", revision)]
        assert (await client.call_tool("fail")).text == "no"
        assert (await client.read_resource("test://7")).text == "number 7"
        assert (await client.get_prompt("prompt", {"word": "x"})).text == "x"
        assert len(await client.list_tools()) == 3
        assert {"tools/call", "resources/read", "prompts/get", "tools/list"} <= {one[1] for one in seen if len(one) > 2}
        with pytest.raises(RpcError) as caught:
            await client.call_tool("refuse")
        assert (caught.value.code, caught.value.message, caught.value.data) == (4242, "custom", [1])
        with pytest.raises(RpcError, match="unknown tool"):
            await client.call_tool("missing")
    assert not app._host.running
    assert not app._host.values


@ERAS
async def test_what_a_middleware_may_change(app: Server, revision: str) -> None:
    full(app)

    @app.middleware
    async def change(request: Request, context: Context, call_next: Next) -> Any:
        arguments = request.params.get("arguments", {})
        if request.method != "tools/call":
            return await call_next(request, context)
        if arguments.get("a") == 0:
            return CallToolResult("its own")
        if arguments.get("a") == 1:
            arguments["b"] = 100
            return await call_next(request, context)
        if arguments.get("a") == 2:
            params = {"name": "add", "arguments": {"a": 5, "b": 5}}
            first, second = await asyncio.gather(call_next(request, context), call_next(Request("x", params), context))
            return {"content": [*first["content"], *second["content"]]}
        request.params = {"name": "add", "arguments": {"a": 9, "b": "?"}}
        return await call_next(request, context)

    async with testing.connect(app, revision=revision) as client:
        texts = [(await client.call_tool("add", {"a": a, "b": 1})).text for a in range(4)]
    assert texts[:3] == ["its own", "101", "3\n10"]
    assert texts[3].startswith('argument "b"')


@ERAS
async def test_errors_of_a_middleware(app: Server, revision: str, caplog: pytest.LogCaptureFixture) -> None:
    full(app)

    @app.middleware
    async def guard(request: Request, context: Context, call_next: Next) -> Any:
        word = request.params.get("arguments", {}).get("word")
        if word == "error":
            raise RpcError(-1, "no entry", {"why": 1})
        if word == "bug":
            raise ValueError("secret detail")
        if word == "nothing":
            return None
        return await call_next(request, context)

    async with testing.connect(app, revision=revision) as client:
        with pytest.raises(RpcError) as caught:
            await client.get_prompt("prompt", {"word": "error"})
        assert (caught.value.code, caught.value.message, caught.value.data) == (-1, "no entry", {"why": 1})
        assert not caplog.records
        with pytest.raises(RpcError, match='middleware "guard" failed: ValueError'):
            await client.get_prompt("prompt", {"word": "bug"})
        assert "secret detail" in caplog.text
        with pytest.raises(RpcError, match="TypeError"):
            await client.get_prompt("prompt", {"word": "nothing"})
        assert "expected a result object, such as what call_next gives, got null" in caplog.text


@ERAS
async def test_values_of_one_request(app: Server, revision: str) -> None:
    seen: list[Any] = []

    @app.middleware
    async def outer(request: Request, context: Context, call_next: Next) -> Result:
        result = await call_next(request, context)
        seen.append(dict(context.values))
        return result

    @app.middleware
    async def inner(request: Request, context: Context, call_next: Next) -> Result:
        context.values["user"] = request.params.get("name")
        return await call_next(request, context)

    @app.tool
    def plain(ctx: Context) -> str:
        ctx.values["handler"] = "plain"
        return str(ctx.values["user"])

    @app.tool
    async def asynchronous(ctx: Context) -> str:
        assert Context.current().values is ctx.values
        return str(ctx.values["user"])

    async with testing.connect(app, revision=revision) as client:
        both = await asyncio.gather(client.call_tool("plain"), client.call_tool("asynchronous"))
    assert [one.text for one in both] == ["plain", "asynchronous"]
    assert {"user": "plain", "handler": "plain"} in seen
    assert {"user": "asynchronous"} in seen
    assert not app._host.values


async def test_values_without_middleware(app: Server) -> None:
    kept: list[Context] = []

    @app.tool
    def tool(ctx: Context) -> int:
        kept.append(ctx)
        ctx.values["n"] = len(ctx.values)
        return 1 if len(kept) == 2 else ctx.values["n"]  # type: ignore[no-any-return]

    @app.tool
    def other(ctx: Context) -> None:
        kept.append(ctx)

    async with testing.connect(app) as client:
        assert (await client.call_tool("tool")).to(int) == 0
        assert kept[0].values == {"n": 0}
        await client.call_tool("other")
        with pytest.raises(MisuseError, match="over"):
            assert kept[1].values
    assert not app._host.values


async def test_cancelling_goes_through(app: Server) -> None:
    started, ended, around = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.middleware
    async def wait(request: Request, context: Context, call_next: Next) -> Result:
        try:
            return await call_next(request, context)
        except asyncio.CancelledError:
            around.set()
            raise

    @app.tool
    async def slow() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with testing.connect(app) as client:
        task = asyncio.create_task(client.call_tool("slow"))
        await asyncio.wait_for(started.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(around.wait(), 10)
        await asyncio.wait_for(ended.wait(), 10)
    assert not app._host.waiting


async def test_a_middleware_that_gives_up_waiting(app: Server) -> None:
    ended = asyncio.Event()

    @app.middleware
    async def patient(request: Request, context: Context, call_next: Next) -> Result:
        if request.method != "tools/call":
            return await call_next(request, context)
        try:
            return await asyncio.wait_for(call_next(request, context), 0.05)
        except asyncio.TimeoutError:
            raise RpcError(-32603, "too slow") from None

    @app.tool
    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with testing.connect(app) as client:
        with pytest.raises(RpcError, match="too slow"):
            await client.call_tool("slow")
        await asyncio.wait_for(ended.wait(), 10)


async def test_plain_functions_and_objects(app: Server) -> None:
    full(app)

    def passes(request: Request, context: Context, call_next: Next) -> Any:
        return call_next(request, context)

    class Gate:
        async def __call__(self, request: Request, context: Context, call_next: Next) -> Result:
            if request.params.get("name") == "fail":
                return {"content": [{"type": "text", "text": "gate"}]}
            return await call_next(request, context)

    def refuses(request: Request, context: Context, call_next: Next) -> Result:
        raise RpcError(-5, "closed")

    assert app.middleware(passes) is passes
    app.middleware(Gate())
    async with testing.connect(app) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert (await client.call_tool("fail")).text == "gate"
        app.middleware(refuses)
        with pytest.raises(RpcError, match="closed"):
            await client.call_tool("add", {"a": 1, "b": 2})


async def test_asking_from_a_middleware(app: Server) -> None:
    full(app)

    @app.middleware
    async def confirm(request: Request, context: Context, call_next: Next) -> Result:
        if request.method == "tools/call" and not (await context.elicit("Sure?")).accepted:
            raise ToolError("the user does not want it")
        return await call_next(request, context)

    async with testing.connect(app, revision=LEGACY, elicitation=lambda: "decline") as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "the user does not want it"
    async with testing.connect(app, revision=LEGACY, elicitation=lambda: True) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
    async with testing.connect(app, revision=LEGACY) as client:
        with pytest.raises(RpcError, match="does not declare"):
            await client.call_tool("add", {"a": 1, "b": 2})


def test_what_is_no_middleware(app: Server) -> None:
    for wrong in (5, "x", lambda request: request, Server):
        with pytest.raises(MisuseError, match="middleware"):
            app.middleware(wrong)  # type: ignore[call-overload]
    for several in (5, "x", rate_limit(1), lambda *_: None):
        with pytest.raises(MisuseError, match="expected a list"):
            testing.connect(app, middleware=several)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="each second"):
        app.middleware(rate_limit(-1))
    with pytest.raises(MisuseError, match="max"):
        app.middleware(concurrency_limit(0))


# -- clients


@ERAS
async def test_around_every_request_of_a_client(app: Server, revision: str) -> None:
    seen: list[str] = []

    async def retry(request: Request, context: RequestContext, call_next: Next) -> Result:
        seen.append(request.method)
        assert context.request.method == request.method
        try:
            return await call_next(request, context)
        except RpcError as error:
            if error.code != 4242:
                raise
            context.values["again"] = True
            return await call_next(Request(request.method, {"name": "add", "arguments": {"a": 2, "b": 2}}), context)

    async def count(request: Request, context: RequestContext, call_next: Next) -> Result:
        seen.append("again" if context.values.get("again") else "first")
        return await call_next(request, context)

    full(app)
    async with testing.connect(app, revision=revision, middleware=[retry, count]) as client:
        seen.clear()
        assert (await client.call_tool("add", {"a": 1, "b": 2})).to(int) == 3
        assert (await client.call_tool("refuse")).to(int) == 4
        assert len(await client.list_tools()) == 3
        assert seen == ["tools/call", "first", "tools/call", "first", "again", "tools/list", "first"]
        with pytest.raises(RpcError, match="unknown tool"):
            await client.call_tool("missing")
    assert not client._host.values
    assert not client._host.running


class OwnError(Exception):
    pass


async def test_a_clients_middleware_raises_to_the_caller(app: Server) -> None:
    full(app)

    async def outer(request: Request, context: RequestContext, call_next: Next) -> Result:
        try:
            return await call_next(request, context)
        except OwnError as error:
            error.args = (*error.args, "outer")
            raise

    async def inner(request: Request, context: RequestContext, call_next: Next) -> Result:
        if request.params.get("name") == "refuse":
            raise OwnError("inner")
        if request.params.get("name") == "fail":
            raise ToolError("mine")
        return await call_next(request, context)

    kept = dict(host._raised)
    async with testing.connect(app, revision=LEGACY, middleware=[outer, inner]) as client:
        with pytest.raises(OwnError) as caught:
            await client.call_tool("refuse")
        assert caught.value.args == ("inner", "outer")
        with pytest.raises(ToolError, match="mine"):
            await client.call_tool("fail")
        assert host._raised == kept
    async with testing.connect(app, revision="2026-07-28", middleware=[outer]) as client:
        # What goes wrong on the way keeps its kind.
        with pytest.raises(UnsupportedError):
            await client.request("tasks/list")


async def test_times_and_cancelling_of_a_client(app: Server) -> None:
    ended = asyncio.Event()

    @app.tool
    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def passes(request: Request, context: RequestContext, call_next: Next) -> Result:
        return await call_next(request, context)

    async with testing.connect(app, middleware=[passes]) as client:
        with pytest.raises(TimeoutError):
            await client.call_tool("slow", timeout=0.05)
        await asyncio.wait_for(ended.wait(), 10)
        ended.clear()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.call_tool("slow"), 0.05)
        await asyncio.wait_for(ended.wait(), 10)


def test_a_synchronous_client(app: Server) -> None:
    async def change(request: Request, context: RequestContext, call_next: Next) -> Result:
        if request.method == "tools/call":
            if request.params["name"] == "fail":
                raise OwnError("fail")
            request.params["arguments"]["b"] = 40
        return await call_next(request, context)

    with Client(full(app), middleware=[change, timing()]) as client:
        assert client.call_tool("add", {"a": 2, "b": 2}).to(int) == 42
        with pytest.raises(OwnError):
            client.call_tool("fail")
        assert client.metrics()["timing"]["tools/call"]["count"] == 1


# -- built in


@ERAS
async def test_logging(app: Server, revision: str, caplog: pytest.LogCaptureFixture) -> None:
    full(app).middleware(logged())
    caplog.set_level(logging.INFO, logger="tricorn")
    async with testing.connect(app, revision=revision, middleware=[logged()]) as client:
        await client.call_tool("add", {"a": 1, "b": 2})
        with pytest.raises(RpcError):
            await client.call_tool("refuse")
        lines = [record.getMessage() for record in caplog.records]
    called = [line for line in lines if line.startswith("tools/call")]
    assert [line.split()[1] for line in called] == ['"add"', '"add"', '"refuse"', '"refuse"']
    assert all(line.endswith("ms ok") for line in called[:2])
    assert all("failed: custom" in line for line in called[2:])
    records: list[Any] = [record for record in caplog.records if "refuse" in record.getMessage()]
    assert records[0].levelno == logging.WARNING
    assert records[0].request["method"] == "tools/call"


@ERAS
async def test_timing(app: Server, revision: str) -> None:
    full(app).middleware(timing())
    assert app.middleware(timing()).kind == "timing"
    async with testing.connect(app, revision=revision, middleware=[timing()]) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        for metrics in (app.metrics(), client.metrics()):
            entry = metrics["timing"]["tools/call"]
            assert entry["count"] >= 1
            assert entry["seconds"] >= entry["longest"] > 0


async def test_rate_limit(app: Server) -> None:
    full(app).middleware(rate_limit(0.001, burst=2, per_session=True))
    async with testing.connect(app, revision=LEGACY) as client:
        await client.call_tool("add", {"a": 1, "b": 2})
        await client.call_tool("add", {"a": 1, "b": 2})
        with pytest.raises(RpcError):
            await client.call_tool("add", {"a": 1, "b": 2})


async def test_concurrency_limit(app: Server) -> None:
    running = most = 0

    @app.tool
    async def tool() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1

    app.middleware(concurrency_limit(2, max_waiting=8))
    async with testing.connect(app) as client:
        await asyncio.gather(*(client.call_tool("tool") for _ in range(8)))
        assert most == 2
        outcomes = await asyncio.gather(*(client.call_tool("tool") for _ in range(12)), return_exceptions=True)
    assert sum(isinstance(one, RpcError) for one in outcomes) == 2
