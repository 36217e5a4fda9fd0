"""The server, seen by a client in memory: what a handler returns, raises, knows and does."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, TypedDict

import msgspec
import pydantic
import pytest

from tricorn import (
    Annotations,
    Audio,
    ClosedError,
    Content,
    Context,
    EmbeddedResource,
    Icon,
    Image,
    MisuseError,
    ResourceContents,
    ResourceLink,
    RpcError,
    Server,
    Text,
    ToolAnnotations,
    ToolError,
    ToolResult,
    connect,
    testing,
)


class Sum(TypedDict):
    sum: int


async def call(app: Server, name: str, /, **arguments: Any) -> ToolResult:
    async with testing.connect(app) as client:
        return await client.call_tool(name, arguments)


@pytest.fixture
def app() -> Server:
    return Server("test", "1.2.3")


async def test_a_typed_function_is_a_tool(app: Server) -> None:
    @app.tool
    async def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    async with testing.connect(app) as client:
        (tool,) = await client.list_tools()
        assert (tool.name, tool.description) == ("add", "Add two numbers.")
        assert tool.input_schema["required"] == ["a"]
        assert tool.output_schema == {"type": "integer"}
        result = await client.call_tool("add", {"a": 1})
        assert result.text == "3"
        assert not result.is_error
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("test", "1.2.3")


@pytest.mark.parametrize("options", [{}, {"run_in_thread": False}])
async def test_plain_functions(app: Server, options: dict[str, Any]) -> None:
    @app.tool(**options)
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert (await call(app, "where")).text == ("true" if options else "false")


async def test_options_of_a_tool(app: Server) -> None:
    @app.tool(
        name="renamed",
        title="Title",
        description="Said explicitly",
        annotations=ToolAnnotations(read_only_hint=True),
        icons=[Icon("https://example.com/i.png", "image/png", ["48x48"], "dark")],
        meta={"com.example/x": 1},
        input_schema={"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 5}}},
        output_schema={"type": "object"},
    )
    async def tool(n: int) -> Any:
        """Not used."""
        return {"n": n}

    async with testing.connect(app) as client:
        (listed,) = await client.list_tools()
        assert listed.raw == {
            "name": "renamed",
            "title": "Title",
            "description": "Said explicitly",
            "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 5}}},
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
            "icons": [
                {"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}
            ],
            "_meta": {"com.example/x": 1},
        }
        assert listed.annotations == ToolAnnotations(read_only_hint=True)
        assert (await client.call_tool("renamed", {"n": 10})).structured == {"n": 10}
        assert (await client.call_tool("renamed", {"n": 11})).is_error


async def test_a_whole_definition(app: Server) -> None:
    definition = {"name": "x", "inputSchema": {"type": "object", "x-unknown": [1]}, "com.example": {"kept": True}}

    @app.tool(definition=definition)
    async def anything(**arguments: Any) -> Any:
        return arguments

    async with testing.connect(app) as client:
        assert (await client.list_tools())[0].raw == definition
        assert (await client.call_tool("x", {"q": [1]})).text == '{"q":[1]}'


def test_mistakes_show_at_registration(app: Server) -> None:
    with pytest.raises(MisuseError, match="run_in_tread"):
        app.tool(run_in_tread=False)(len)  # type: ignore[call-overload]
    with pytest.raises(MisuseError, match="has no name"):
        app.tool(lambda: 1)
    with pytest.raises(MisuseError):
        app.tool(input_schema={"type": "nonsense"})(lambda: 1)
    with pytest.raises(MisuseError, match="page_size"):
        Server("x", page_sise=1)  # type: ignore[call-arg]


@dataclass
class Point:
    x: int


class Model(pydantic.BaseModel):
    x: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ({"a": [1]}, '{"a":[1]}'),
        ([1, "2"], '[1,"2"]'),
        (7, "7"),
        (True, "true"),
        (Point(1), '{"x":1}'),
        (Model(x=2), '{"x":2}'),
        (PurePosixPath("/a/b"), "/a/b"),
    ],
)
async def test_values_of_untyped_functions(app: Server, value: Any, text: str) -> None:
    @app.tool
    async def tool() -> Any:
        return value

    result = await call(app, "tool")
    assert result.text == text
    assert not result.is_error


async def test_nothing(app: Server) -> None:
    @app.tool
    async def tool() -> None: ...

    assert (await call(app, "tool")).raw["content"] == []


async def test_typed_results_are_structured(app: Server) -> None:
    @app.tool
    async def typed() -> Sum:
        return {"sum": 3}

    @app.tool
    async def model() -> Model:
        return Model(x=4)

    @app.tool
    async def without(n: int) -> dict[str, int]:
        return {"n": n}

    result = await call(app, "typed")
    assert result.structured == {"sum": 3}
    assert result.text == '{"sum":3}'
    assert result.to(Sum) == {"sum": 3}
    assert (await call(app, "model")).structured == {"x": 4}
    assert (await call(app, "without", n=1)).structured == {"n": 1}


async def test_a_string_that_a_schema_declares_is_structured(app: Server) -> None:
    @app.tool(output_schema={"type": ["string", "null"]})
    async def maybe(text: str | None) -> str | None:
        return text

    async with testing.connect(app, revision="2026-07-28") as client:
        assert (await client.call_tool("maybe", {"text": "x"})).structured == "x"
        result = await client.call_tool("maybe", {"text": None})
        assert result.structured is None
        assert "structuredContent" in result.raw


async def test_content_blocks(app: Server) -> None:
    blocks: list[Content] = [
        Text("one", Annotations(audience=["user"], priority=0.5), {"com.example/n": 1}),
        Image(b"\x89PNG"),
        Audio(b"RIFF", "audio/mpeg"),
        ResourceLink("test://a", "a", size=3),
        EmbeddedResource(ResourceContents("test://b", "text/plain", text="b")),
        EmbeddedResource(ResourceContents("test://c", blob=b"\x00\x01")),
    ]

    @app.tool
    async def many() -> list[Content]:
        return blocks

    @app.tool
    async def single() -> Image:
        return Image(b"\x89PNG")

    @app.tool
    async def mixed() -> list[str | Image]:
        return ["look:", Image(b"x", "image/gif")]

    result = await call(app, "many")
    assert result.content == blocks
    assert result.raw["content"][1] == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    assert (await call(app, "single")).content == [Image(b"\x89PNG")]
    assert (await call(app, "mixed")).content == [Text("look:"), Image(b"x", "image/gif")]


async def test_whole_results(app: Server) -> None:
    @app.tool
    async def whole() -> ToolResult:
        return ToolResult([Text("a")], structured={"n": 1}, is_error=True, meta={"com.example/x": 1})

    result = await call(app, "whole")
    assert (result.text, result.structured, result.is_error) == ("a", {"n": 1}, True)
    assert result.meta["com.example/x"] == 1


async def test_passing_on_the_result_of_another_server(app: Server) -> None:
    other = Server("other")

    @other.tool
    async def inner() -> Any:
        return ToolResult([{"type": "text", "text": "x", "com.example": [1]}], meta={"com.example/kept": True})

    @app.tool
    async def outer() -> ToolResult:
        async with testing.connect(other) as client:
            return await client.call_tool("inner")

    result = await call(app, "outer")
    assert result.raw["content"] == [{"type": "text", "text": "x", "com.example": [1]}]
    assert result.meta["com.example/kept"] is True


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


async def test_a_received_protocol_error_is_not_passed_on(app: Server) -> None:
    @app.tool
    async def outer() -> str:
        async with testing.connect(app) as client:
            return (await client.call_tool("missing")).text

    result = await call(app, "outer")
    assert (result.is_error, result.text) == (True, 'tool "outer" failed: RpcError')


async def test_a_result_that_is_no_json(app: Server, caplog: pytest.LogCaptureFixture) -> None:
    @app.tool
    async def bad() -> Any:
        return object()

    result = await call(app, "bad")
    assert (result.is_error, result.text) == (True, 'tool "bad" failed: TypeError')
    assert "object cannot be written as JSON" in caplog.text


async def test_bad_arguments(app: Server) -> None:
    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    assert (await call(app, "add", a="x", b=1)).text == 'argument "a": expected integer, got "x"'
    assert (await call(app, "add", a=1)).text == 'argument "b": missing (required)'
    assert (await call(app, "add", a=1, b=2, c=3)).text == 'argument "c": unknown'
    assert (await call(app, "add", a=1.0, b=2)).text == "3"


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


async def test_unknown_tools(app: Server) -> None:
    async def known() -> None: ...

    app.add_tool(known)
    with pytest.raises(RpcError) as caught:
        await call(app, "missing")
    assert caught.value.code == -32602


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


async def test_changing_tools(app: Server) -> None:
    async def one() -> str:
        return "1"

    app.add_tool(one, name="always")
    async with testing.connect(app) as client:
        app.add_tool(one)
        assert [tool.name for tool in await client.list_tools()] == ["always", "one"]
        assert app.remove_tool("one")
        assert not app.remove_tool("one")
        assert [tool.name for tool in await client.list_tools()] == ["always"]


async def test_metrics(app: Server) -> None:
    assert isinstance(app.metrics(), dict)
    async with testing.connect(app) as client:
        assert isinstance(client.metrics(), dict)


def test_one_server_serves_loop_after_loop(app: Server) -> None:
    @app.tool
    async def hello() -> str:
        return "hello"

    for _ in range(3):
        assert asyncio.run(call(app, "hello")).text == "hello"


async def test_stopping_answers_what_runs(app: Server) -> None:
    started = asyncio.Event()

    @app.tool
    async def slow() -> str:
        started.set()
        await asyncio.sleep(60)
        return "?"

    async with testing.serving(app) as url, connect(url) as client:
        task = asyncio.create_task(client.call_tool("slow"))
        await started.wait()
        app.close()
        with pytest.raises((ClosedError, RpcError, OSError)):
            await asyncio.wait_for(task, 10)


def test_names_default_to_the_program(script: Callable[[str], str]) -> None:
    code = """
        import sys, types
        from tricorn import Server
        print(Server(), Server("given"), Server("given", "9"))
        package = types.ModuleType("acme"); package.__version__ = "4.5"; sys.modules["acme"] = package
        space = {"__name__": "acme.server", "__package__": "acme", "Server": Server}
        exec("app = Server()", space)
        print(space["app"])
        space = {"__name__": "pytest.x", "__package__": "msgspec", "Server": Server}
        exec("app = Server('x')", space)
        print(space["app"].version == __import__("msgspec").__version__)
    """
    assert script(code).splitlines() == [
        "Server('script', '0.0.0') Server('given', '0.0.0') Server('given', '9')",
        "Server('acme', '4.5')",
        "True",
    ]


def test_a_call_from_a_plain_test(app: Server) -> None:
    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    assert testing.call(app, "add", {"a": 1, "b": 2}).text == "3"


def test_msgspec_constraints_are_checked_by_the_engine(app: Server) -> None:
    @app.tool
    def small(n: Annotated[int, msgspec.Meta(le=10)]) -> int:
        return n

    assert testing.call(app, "small", {"n": 11}).is_error
    assert testing.call(app, "small", {"n": 10}).text == "10"
