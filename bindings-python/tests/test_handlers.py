"""Handlers: their arguments and context, what they raise, and how they are run and cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import math
import threading
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from tricorn import (
    Context,
    MisuseError,
    RpcError,
    Server,
    ToolError,
    testing,
)
from tricorn.bridge.threads import ThreadCall

from .conftest import call

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")


@pytest.mark.parametrize("options", [{}, {"run_in_thread": False}])
async def test_plain_functions(app: Server, options: dict[str, Any]) -> None:
    @app.tool(**options)
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert (await call(app, "where")).text == ("true" if options else "false")


async def test_errors(app: Server, caplog: pytest.LogCaptureFixture) -> None:
    @app.tool
    async def fail(kind: str) -> str:
        if kind == "tool":
            raise ToolError("the tool says no")
        if kind == "protocol":
            raise RpcError(4242, "custom refusal", {"hint": "x"})
        raise ValueError("secret detail")

    result = await call(app, "fail", kind="tool")
    assert (result.is_error, result.text) == (True, "the tool says no")
    with pytest.raises(RpcError) as caught:
        await call(app, "fail", kind="protocol")
    assert (caught.value.code, caught.value.message, caught.value.data) == (4242, "custom refusal", {"hint": "x"})
    assert not caplog.records
    result = await call(app, "fail", kind="other")
    assert (result.is_error, result.text) == (True, 'tool "fail" failed: ValueError')
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "secret detail" in caplog.text
    assert record.levelno == logging.ERROR


async def test_on_error(caplog: pytest.LogCaptureFixture) -> None:
    heard: asyncio.Queue[tuple[Exception, str]] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    app = Server("test", on_error=lambda error, tool: loop.call_soon_threadsafe(heard.put_nowait, (error, tool)))

    def fail(kind: str) -> str:
        if kind == "tool":
            raise ToolError("the tool says no")
        raise ValueError("secret detail")

    async def coroutine(kind: str) -> str:
        return fail(kind)

    app.add_tool(fail, name="threaded")
    app.add_tool(fail, name="inline", run_in_thread=False)
    app.add_tool(coroutine)
    async with testing.connect(app) as client:
        for name in ("threaded", "inline", "coroutine"):
            assert (await client.call_tool(name, {"kind": "tool"})).text == "the tool says no"
            assert (await client.call_tool(name, {"kind": "other"})).text == f'tool "{name}" failed: ValueError'
            error, tool = await asyncio.wait_for(heard.get(), 10)
            assert (str(error), tool) == ("secret detail", name)
    assert heard.empty()
    assert not caplog.records


async def test_on_error_hears_of_a_result_that_does_not_fit() -> None:
    heard: asyncio.Queue[tuple[Exception, str]] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    app = Server("test", on_error=lambda error, tool: loop.call_soon_threadsafe(heard.put_nowait, (error, tool)))
    app.add_tool(lambda: {"a": 1}, name="wrong", output_schema={"type": "object", "required": ["b"]})
    async with testing.connect(app) as client:
        result = await client.call_tool("wrong")
        assert result.is_error
        assert "outputSchema" in result.text
    error, tool = await asyncio.wait_for(heard.get(), 10)
    assert tool == "wrong"
    assert isinstance(error, MisuseError)
    assert str(error).startswith("the result does not fit")
    assert '"b"' in str(error)


async def test_an_on_error_that_fails_itself(caplog: pytest.LogCaptureFixture) -> None:
    def broken(error: Exception, tool: str) -> None:
        raise LookupError(tool)

    app = Server("test", max_threads=1, on_error=broken)

    def fail() -> str:
        raise ValueError

    async def coroutine() -> str:
        return fail()

    app.add_tool(fail, name="threaded")
    app.add_tool(fail, name="inline", run_in_thread=False)
    app.add_tool(coroutine)
    async with testing.connect(app) as client:
        for name in ("threaded", "inline", "coroutine") * 2:
            assert (await client.call_tool(name)).text == f'tool "{name}" failed: ValueError'
    after = threading.Event()  # the only thread is done with the rest when it comes to this
    app._threads.submit(contextvars.copy_context(), after.set)
    assert await asyncio.to_thread(after.wait, 10)
    assert not app._host.running
    assert caplog.text.count("on_error failed for tool") == 6


async def test_a_received_protocol_error_is_not_passed_on(app: Server) -> None:
    @app.tool
    async def outer() -> str:
        async with testing.connect(app) as client:
            return (await client.call_tool("missing")).text

    result = await call(app, "outer")
    assert (result.is_error, result.text) == (True, 'tool "outer" failed: RpcError')


async def test_bad_arguments(app: Server) -> None:
    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    assert (await call(app, "add", a="x", b=1)).text == 'argument "a": expected integer, got "x"'
    assert (await call(app, "add", a=1)).text == 'argument "b": missing (required)'
    assert (await call(app, "add", a=1, b=2, c=3)).text == 'argument "c": unknown'
    assert (await call(app, "add", a=1.0, b=2)).text == "3"


@dataclass
class Point:
    x: int


async def test_what_the_schema_allows_but_the_types_do_not(app: Server) -> None:
    @app.tool(input_schema={"type": "object"})
    async def tool(point: Point) -> int:
        return point.x

    result = await call(app, "tool", point={"x": "y"})
    assert (result.is_error, result.text) == (True, 'argument "point.x": expected integer, got "y"')


async def test_arguments_the_function_does_not_take(app: Server, caplog: pytest.LogCaptureFixture) -> None:
    async def strange(a: int) -> int:
        return a

    strange.__signature__ = inspect.signature(lambda a, b: None)  # type: ignore[attr-defined]
    app.add_tool(strange)
    result = await call(app, "strange", a=1, b=2)
    assert (result.is_error, result.text) == (True, 'tool "strange" failed: TypeError')
    assert "unexpected keyword argument" in caplog.text


async def test_a_validator_that_cancels_itself_is_answered(app: Server) -> None:
    def odd(value: object) -> object:
        raise asyncio.CancelledError

    async def coroutine(n: Annotated[int, pydantic.BeforeValidator(odd)]) -> int:
        return n

    def plain(n: Annotated[int, pydantic.BeforeValidator(odd)]) -> int:
        return n

    app.add_tool(coroutine)
    app.add_tool(plain)
    for name in ("coroutine", "plain"):
        assert (await call(app, name, n=1)).text == f'tool "{name}" failed: CancelledError'


async def test_a_plain_function_may_return_a_coroutine(app: Server) -> None:
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return n

    def deferred(n: int) -> Awaitable[int]:
        return work(n)

    app.add_tool(deferred)
    app.add_tool(deferred, name="inline", run_in_thread=False)
    assert (await call(app, "deferred", n=1)).text == "1"
    assert (await call(app, "inline", n=2)).text == "2"


variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


async def test_context_variables(app: Server) -> None:
    def body() -> str:
        before = variable.get()
        variable.set("changed by a handler")
        return before

    async def coroutine() -> str:
        return body()

    app.add_tool(body, name="threaded")
    app.add_tool(body, name="inline", run_in_thread=False)
    app.add_tool(coroutine)
    variable.set("from outside")
    async with testing.connect(app) as client:
        for name in ("threaded", "inline", "coroutine") * 2:
            assert (await client.call_tool(name)).text == "from outside"


async def test_tasks_groups_and_timeouts_work_in_handlers(app: Server) -> None:
    @app.tool
    async def slow() -> str:
        try:
            await asyncio.wait_for(asyncio.sleep(60), 0.01)
        except asyncio.TimeoutError:
            return type(asyncio.current_task()).__name__
        return "?"

    assert (await call(app, "slow")).text == "Task"


async def test_progress_and_log(app: Server) -> None:
    @app.tool
    async def work(ctx: Context) -> bool:
        ctx.progress(1, 3, "one")
        ctx.progress(2, 3)
        return ctx.progress(3)

    seen: list[Any] = []
    async with testing.connect(app) as client:
        result = await client.call_tool("work", on_progress=seen.append)
        assert result.text == "true"
        assert [(p.progress, p.total, p.message) for p in seen] == [(1, 3, "one"), (2, 3, None), (3, None, None)]
        assert (await client.call_tool("work")).text == "true"
        assert len(seen) == 3


async def test_request_information(app: Server) -> None:
    kept: list[Context] = []

    @app.tool
    async def look(ctx: Context) -> dict[str, Any]:
        kept.append(ctx)
        request = ctx.request
        assert request.client_info is not None
        return {
            "method": request.method,
            "version": request.protocol_version,
            "era": request.era,
            "client": request.client_info.name,
            "capabilities": request.client_capabilities,
            "transport": request.transport,
            "mine": request.meta.get("com.example/mine"),
            "headers": request.headers,
        }

    @app.tool
    async def ignorant(ctx: Context) -> None:
        kept.append(ctx)

    options: Any = {"name": "me", "capabilities": {"sampling": {}}, "revision": "2025-06-18"}
    async with testing.connect(app, **options) as client:
        got = (await client.call_tool("look", meta={"com.example/mine": 5})).structured
        assert got == {
            "method": "tools/call",
            "version": "2025-06-18",
            "era": "legacy",
            "client": "me",
            "capabilities": {"sampling": {}},
            "transport": "memory",
            "mine": 5,
            "headers": {},
        }
        assert kept[0].request.method == "tools/call"
        await client.call_tool("ignorant")
        with pytest.raises(MisuseError, match="call is over"):
            _ = kept[1].request


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_required_capabilities(app: Server, revision: str) -> None:
    @app.tool
    async def sample(ctx: Context) -> str:
        ctx.require("sampling")
        return "can"

    async with testing.connect(app, revision=revision) as client:
        with pytest.raises(RpcError):
            await client.call_tool("sample")
    async with testing.connect(app, revision=revision, capabilities={"sampling": {}}) as client:
        assert (await client.call_tool("sample")).text == "can"


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_cancellation_reaches_asynchronous_handlers(app: Server, how: str) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()
    flag: list[bool] = []

    @app.tool
    async def slow(ctx: Context) -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            flag.append(ctx.cancelled)
            cancelled.set()
            raise
        return "?"

    async with testing.connect(app) as client:
        timeout = 0.05 if how == "timeout" else 60
        task = asyncio.create_task(client.call_tool("slow", timeout=timeout))
        await started.wait()
        if how == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(TimeoutError):
                await task
        await asyncio.wait_for(cancelled.wait(), 10)
        assert flag == [True]
    assert not app._host.running
    assert not app._host.cancelled


async def test_cancellation_is_told_to_plain_functions(app: Server) -> None:
    started, seen = threading.Event(), threading.Event()

    @app.tool
    def slow(ctx: Context) -> str:
        started.set()
        while not ctx.cancelled:
            time.sleep(0.001)
        seen.set()
        return "ignored"

    async with testing.connect(app) as client:
        task = asyncio.create_task(client.call_tool("slow"))
        await asyncio.to_thread(started.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(seen.wait, 10)


async def test_a_thread_that_is_done_while_its_call_is_cancelled(app: Server) -> None:
    host = app._host

    class Racing(dict[int, Any]):
        def get(self, key: int, default: Any = None) -> Any:
            found = super().get(key, default)
            host.done(key)  # by the worker thread, in just this moment
            return found

    host.running = Racing({1: ThreadCall()})
    host._cancel(1, None)
    assert not host.cancelled


async def test_a_handler_that_cancels_itself_is_answered(app: Server) -> None:
    @app.tool
    async def odd() -> str:
        raise asyncio.CancelledError

    result = await call(app, "odd")
    assert (result.is_error, result.text) == (True, 'tool "odd" failed: CancelledError')


async def test_many_calls_at_once(app: Server) -> None:
    @app.tool
    async def double(n: int) -> int:
        await asyncio.sleep(0)
        return 2 * n

    @app.tool
    def threaded(n: int) -> int:
        return 2 * n

    async with testing.connect(app) as client:
        for name in ("double", "threaded"):
            results = await asyncio.gather(*(client.call_tool(name, {"n": n}) for n in range(200)))
            assert [int(result.text) for result in results] == [2 * n for n in range(200)]
    assert not app._host.running
    assert not app._host.waiting


def test_msgspec_constraints_are_checked_by_the_engine(app: Server) -> None:
    @app.tool
    def small(n: Annotated[int, msgspec.Meta(le=10)]) -> int:
        return n

    assert testing.call(app, "small", {"n": 11}).is_error
    assert testing.call(app, "small", {"n": 10}).text == "10"


async def test_a_policy_object_answers_for_many_clients() -> None:
    class Policy:
        roots = ("/srv/notes",)

        def __init__(self) -> None:
            self.asked: list[str] = []

        async def sampling(self, params: dict[str, Any]) -> str:
            self.asked.append(params["messages"][0]["content"]["text"])
            return "from the policy"

        def elicitation(self, message: str) -> dict[str, Any]:
            self.asked.append(message)
            return {"value": 7}

    app, policy = Server("asks"), Policy()

    @app.tool
    async def ask(ctx: Context) -> list[Any]:
        said = (await ctx.sample("how?", 1)).text
        return [said, (await ctx.elicit("how many?", int)).content, [root.path for root in await ctx.list_roots()]]

    for _ in range(2):
        async with testing.connect(app, revision="2025-11-25", policy=policy) as client:
            told = (await client.call_tool("ask")).to(list[Any])
        assert told == ["from the policy", 7, ["/srv/notes"]]
    async with testing.connect(app, revision="2025-11-25", policy=policy, sampling=lambda: "beside it") as client:
        assert (await client.call_tool("ask")).to(list[Any])[0] == "beside it"
    assert policy.asked == ["how?", "how many?", "how?", "how many?", "how many?"]
    with pytest.raises(MisuseError, match="has none of sampling"):
        testing.connect(app, policy=object())


async def test_arguments_of_the_wrong_type() -> None:
    app = Server("types")

    @app.tool
    async def check(ctx: Context) -> list[str]:
        wrong: Any = object()
        said: list[str] = []
        for mistake in (
            lambda: ctx.progress("1"),  # type: ignore[arg-type]
            lambda: ctx.progress(math.nan),
            lambda: ctx.progress(1, "x"),  # type: ignore[arg-type]
            lambda: ctx.progress(1, math.inf),
            lambda: ctx.progress(1, 2, 3),  # type: ignore[arg-type]
            lambda: ctx.log(20, "x"),  # type: ignore[arg-type]
            lambda: ctx.log("info", "x", 5),  # type: ignore[arg-type]
            lambda: ctx.set_status(wrong),
            lambda: ctx.require(wrong),
            lambda: ctx.notify(wrong),
            lambda: ctx.set_enabled("tool", wrong, True),
        ):
            with pytest.raises(MisuseError) as caught:
                mistake()
            said.append(str(caught.value).partition(": expected ")[0])
        assert ctx.progress(Fraction(1, 2), True)
        assert ctx.progress(1, None, None)
        return said

    async with testing.connect(app) as client:
        assert (await client.call_tool("check")).to(list[str]) == [
            "progress: progress",
            "progress: progress",
            "progress: total",
            "progress: total",
            "progress: message",
            "log: level",
            "log: logger",
            "set_status: message",
            "require: capability",
            "notify: method",
            "set_enabled: name",
        ]
