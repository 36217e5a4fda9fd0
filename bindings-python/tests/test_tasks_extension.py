"""Tasks of the extension `io.modelcontextprotocol/tasks` (2026-07-28): calls that their server answers with a task."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tricorn import (
    CancelledError,
    Context,
    InputRequired,
    MisuseError,
    Next,
    Question,
    Request,
    RpcError,
    Server,
    ToolError,
    testing,
)
from tricorn.middleware import Result

from .conftest import LEGACY, MODERN, PATIENCE, until
from .test_asgi import post

EXTENSION = "io.modelcontextprotocol/tasks"

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def app() -> Server:
    return Server("tasks", tasks=True)


def accepted(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"value": value}}


class Caller:
    """Sends raw requests, each a POST of its own."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.declares = True

    async def post(self, method: str, name: str, /, **params: Any) -> dict[str, Any]:
        params["_meta"] = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {
                "elicitation": {},
                "extensions": {EXTENSION: {}} if self.declares else {},
            },
            "progressToken": 1,
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"mcp_protocol_version": MODERN, "mcp_method": method, "mcp_name": name}
        _, _, answer = await post(self.application, body, **headers)
        assert isinstance(answer, dict)
        return answer

    async def call(self, tool: str, /, **params: Any) -> dict[str, Any]:
        return await self.post("tools/call", tool, name=tool, **params)

    async def start(self, tool: str, /, **params: Any) -> str:
        """Calls a tool that is answered with a task."""
        answer = await self.call(tool, **params)
        assert answer["result"]["resultType"] == "task", answer
        assert answer["result"]["status"] == "working"
        task: str = answer["result"]["taskId"]
        return task

    async def task(self, method: str, task: str, **params: Any) -> dict[str, Any]:
        answer = await self.post(f"tasks/{method}", task, taskId=task, **params)
        result: dict[str, Any] = answer["result"]
        assert result["resultType"] == "complete"
        return result

    async def until(self, task: str, status: str) -> dict[str, Any]:
        """The task, as soon as it is so."""

        async def poll() -> dict[str, Any]:
            while (got := await self.task("get", task))["status"] != status:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
            return got

        return await asyncio.wait_for(poll(), PATIENCE)

    async def answer(self, task: str, value: Any) -> dict[str, Any]:
        """Answers the one question that the task asks, and gives that."""
        asked = await self.until(task, "input_required")
        [(key, question)] = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        await self.task("update", task, inputResponses={key: accepted(value)})
        assert isinstance(question, dict)
        return question

    async def text(self, task: str) -> str:
        """Returns the text of the task's result."""
        done = await self.until(task, "completed")
        assert "inputRequests" not in done
        text: str = done["result"]["content"][0]["text"]
        return text


@asynccontextmanager
async def calling(app: Server) -> AsyncGenerator[Caller]:
    application = app.asgi()
    try:
        yield Caller(application)
    finally:
        await application.close()
    assert not app._host.running
    assert not app._host.values
    assert not app._host.waiting
    assert not app._host.cancelled


# -- the tool says so


async def test_a_tool_is_answered_with_a_task_that_asks(app: Server) -> None:
    asked: list[str] = []

    @app.tool(task_support="optional")
    async def book(ctx: Context) -> str:
        asked.append(str(ctx.request.task_id))
        declared = ctx.extension("io.modelcontextprotocol/tasks")
        assert declared == (None if ctx.request.task_id is None else {})
        assert ctx.run_as_task() is (ctx.request.task_id is not None)
        assert ctx.set_status("looking")
        assert ctx.progress(1, 2)
        seat = (await ctx.elicit("Which seat?", str)).content
        row, side = await ctx.ask_all((Question.elicit("Row?", int), Question.elicit("Side?", str)))
        return f"seat {seat} {row.content} {side.content}"

    @app.tool(task_support="optional")
    def plain(ctx: Context) -> str:
        seat = ctx.wait(ctx.elicit("Which seat?", str)).content
        assert ctx.progress(1)
        return f"seat {seat}"

    async with calling(app) as caller:
        task = await caller.start("book")
        assert asked == [task]
        assert (await caller.until(task, "input_required"))["statusMessage"] == "looking"
        assert (await caller.answer(task, "12A"))["params"]["message"] == "Which seat?"
        await until(lambda: len(app._host.waiting) == 2)
        both = (await caller.until(task, "input_required"))["inputRequests"]
        assert [question["params"]["message"] for question in both.values()] == ["Row?", "Side?"]
        await caller.task("update", task, inputResponses=dict(zip(both, map(accepted, (3, "left")))))
        assert await caller.text(task) == "seat 12A 3 left"

        task = await caller.start("plain")
        await caller.answer(task, "1C")
        assert await caller.text(task) == "seat 1C"

        # Who does not declare the extension is answered as ever.
        caller.declares = False
        answer = await caller.call("book")
        assert answer["result"]["resultType"] == "input_required"
        assert asked[-1] == "None"


async def test_rounds_by_hand_are_asked_by_the_task(app: Server) -> None:
    seen: list[Any] = []

    @app.tool(task_support="required")
    async def tool(ctx: Context) -> str | InputRequired:
        seen.append(ctx.request_state)
        match ctx.input_responses.get("who"):
            case {"content": {"value": str(name)}}:
                return name
        return InputRequired({"who": Question.elicit("who?", str)}, state=7)

    async with calling(app) as caller:
        task = await caller.start("tool")
        await caller.answer(task, "Ada")
        assert await caller.text(task) == "Ada"
        assert seen == [None, 7]


async def test_how_it_ends_is_inside_of_the_task(app: Server) -> None:
    heard: list[Exception] = []
    app._host.on_error = lambda error, _: heard.append(error)

    @app.tool(task_support="required")
    async def tool() -> None:
        raise ToolError("not today")

    @app.tool(task_support="required")
    async def error() -> None:
        raise RpcError(-31050, "no such thing", {"a": 1})

    @app.tool(task_support="required")
    def exception() -> None:
        raise ValueError("secret")

    async with calling(app) as caller:
        done = await caller.until(await caller.start("tool"), "completed")
        assert done["result"] == {"content": [{"type": "text", "text": "not today"}], "isError": True}
        failed = await caller.until(await caller.start("error"), "failed")
        assert failed["error"] == {"code": -31050, "message": "no such thing", "data": {"a": 1}}
        assert not heard
        assert await caller.text(await caller.start("exception")) == 'tool "exception" failed: ValueError'
        assert [str(error) for error in heard] == ["secret"]
        caller.declares = False
        refused = await caller.call("tool")
        assert refused["error"]["code"] == -32021
        assert refused["error"]["data"]["requiredCapabilities"] == {"extensions": {EXTENSION: {}}}


# -- the handler says so


@pytest.mark.parametrize("wrapped", [False, True])
async def test_rounds_first_and_then_a_task(app: Server, wrapped: bool) -> None:
    runs: list[int] = []
    passed: list[str] = []

    if wrapped:

        @app.middleware
        async def around(request: Request, context: Context, call_next: Next) -> Result:
            context.values["by"] = "middleware"
            result = await call_next(request, context)
            passed.append(f"{request.method} {result.get('resultType')}")
            return result

    @app.tool
    async def tool(ctx: Context) -> str:
        runs.append(1)
        name = (await ctx.elicit("name?", str)).content
        is_task = ctx.run_as_task()
        assert ctx.run_as_task() is is_task
        assert ctx.set_status("asking") is True
        assert ctx.progress(1)
        age = (await ctx.elicit("age?", int)).content
        number = await ctx.step("number", lambda: 7)
        return f"{name} {age} {number} {is_task} {ctx.values.get('by')} {ctx.request.method}"

    async with calling(app) as caller:
        first = (await caller.call("tool"))["result"]
        assert first["resultType"] == "input_required"
        [key] = first["inputRequests"]
        given = {"inputResponses": {key: accepted("Ada")}, "requestState": first["requestState"]}
        task = await caller.start("tool", **given)
        assert (await caller.until(task, "input_required"))["statusMessage"] == "asking"
        assert len(app._host.running) == 1
        assert (await caller.answer(task, 36))["params"]["message"] == "age?"
        by = "middleware" if wrapped else "None"
        assert await caller.text(task) == f"Ada 36 7 True {by} tools/call"
        assert len(runs) == 2
        calls = [one for one in passed if one.startswith("tools/call")]
        assert calls == (["tools/call input_required", "tools/call task"] if wrapped else [])
        assert not app._host.running


async def test_what_middleware_shares_outlives_it(app: Server) -> None:
    over = threading.Event()

    @app.middleware
    async def outer(request: Request, context: Context, call_next: Next) -> Result:
        context.values["outer"] = request.method
        try:
            return await call_next(request, context)
        finally:
            if request.method == "tools/call":
                asyncio.get_running_loop().call_later(0.02, over.set)

    @app.middleware
    async def inner(request: Request, context: Context, call_next: Next) -> Result:
        return await call_next(request, context)

    @app.tool(task_support="optional")
    async def tool(ctx: Context) -> str:
        await until(over.is_set)
        return str(ctx.values)

    @app.tool(task_support="optional")
    def plain(ctx: Context) -> str:
        assert over.wait(PATIENCE)
        return str(ctx.values)

    async with calling(app) as caller:
        for name in ("tool", "plain"):
            over.clear()
            task = await caller.start(name)
            assert await caller.text(task) == str({"outer": "tools/call"})
            await until(lambda: not app._host.values)


async def test_where_no_task_is_taken(app: Server) -> None:
    async def tool(ctx: Context) -> bool:
        return ctx.run_as_task()

    def plain(ctx: Context) -> bool:
        return ctx.run_as_task()

    without = Server("without")
    for server in (app, without):
        server.add_tool(tool)
        server.add_tool(plain)
    for name in ("tool", "plain"):
        async with calling(app) as caller:
            assert await caller.text(await caller.start(name)) == "true"
            caller.declares = False
            assert (await caller.call(name))["result"]["content"][0]["text"] == "false"
        async with calling(without) as caller:
            assert (await caller.call(name))["result"]["content"][0]["text"] == "false"
        async with testing.connect(app, revision=LEGACY) as client:
            assert (await client.call_tool(name)).to(bool) is False


async def test_what_refuses_a_task() -> None:
    app = Server("x", tasks={"max_tasks": 1, "max_session_tasks": 1})
    kept: list[Context] = []
    go = asyncio.Event()

    @app.tool
    async def first(ctx: Context) -> str:
        kept.append(ctx)
        assert ctx.run_as_task()
        await go.wait()
        return "done"

    @app.tool
    async def second(ctx: Context, catches: bool = True) -> str:
        try:
            ctx.run_as_task()
        except RpcError as error:
            if not catches:
                raise
            return f"{error.code} {(await ctx.elicit('and now?', str)).content}"
        return "?"

    @app.tool
    async def too_late(ctx: Context) -> str:
        question = asyncio.ensure_future(ctx.elicit("sure?", str))
        await asyncio.sleep(0)
        try:
            ctx.run_as_task()
        except MisuseError as error:
            said.append(error.message)
        return str((await question).content)

    said: list[str] = []
    async with calling(app) as caller:
        task = await caller.start("first")
        refused = await caller.call("second", arguments={"catches": False})
        assert refused["error"]["code"] == -32603
        assert "max_tasks" in refused["error"]["message"]
        # Nothing has changed for who catches it.
        asked = (await caller.call("second"))["result"]
        [key] = asked["inputRequests"]
        given = {"inputResponses": {key: accepted("plain")}, "requestState": asked["requestState"]}
        assert (await caller.call("second", **given))["result"]["content"][0]["text"] == "-32603 plain"
        go.set()
        assert await caller.text(task) == "done"
        assert (await caller.call("too_late"))["result"]["resultType"] == "input_required"
        assert len(said) == 1
        assert "questions wait" in said[0]
        with pytest.raises(CancelledError):
            kept[0].run_as_task()


# -- ends from outside


async def test_cancelling_reaches_the_handler(app: Server) -> None:
    reached: list[str] = []
    begun: list[str] = []

    @app.tool(task_support="optional")
    async def at_once(ctx: Context) -> None:
        begun.append("at_once")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            reached.append("at_once")
            assert ctx.cancelled
            raise

    @app.tool
    async def later(ctx: Context) -> None:
        assert ctx.run_as_task()
        try:
            await asyncio.sleep(60)
        finally:
            reached.append("later")

    @app.tool
    async def asking(ctx: Context) -> None:
        assert ctx.run_as_task()
        try:
            await ctx.elicit("?")
        finally:
            reached.append("asking")

    @app.tool
    def thread(ctx: Context) -> None:
        assert ctx.run_as_task()
        with pytest.raises(CancelledError):
            ctx.wait(ctx.elicit("?"))
        assert ctx.cancelled
        reached.append("thread")

    def is_over(name: str) -> Callable[[], bool]:
        return lambda: reached[-1:] == [name] and not app._host.running

    async with calling(app) as caller:
        for name in ("at_once", "later", "asking", "thread"):
            task = await caller.start(name)
            if name in ("asking", "thread"):
                await caller.until(task, "input_required")
            elif name == "at_once":
                # One that has not begun is never run.
                await until(lambda: begun == ["at_once"])
            await caller.task("cancel", task)
            cancelled = await caller.task("get", task)
            assert cancelled["status"] == "cancelled"
            assert not cancelled.keys() & {"result", "error", "inputRequests"}
            await until(is_over(name))
            await caller.task("cancel", task)
            assert (await caller.task("get", task))["status"] == "cancelled"
    assert reached == ["at_once", "later", "asking", "thread"]


async def test_the_end_of_the_application_ends_its_tasks(app: Server) -> None:
    ended = asyncio.Event()

    @app.tool
    async def tool(ctx: Context) -> None:
        assert ctx.run_as_task()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with calling(app) as caller:
        await caller.start("tool")
        assert len(app._host.running) == 1
    await asyncio.wait_for(ended.wait(), PATIENCE)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_call_that_is_cancelled_just_then_has_not_failed(app: Server, in_thread: bool) -> None:
    heard: list[Exception] = []
    app._host.on_error = lambda error, _: heard.append(error)
    ended = threading.Event()

    def work(ctx: Context) -> None:
        deadline = time.monotonic() + PATIENCE
        app.close()
        while ctx.set_status("at work") and time.monotonic() < deadline:
            time.sleep(0.001)
        try:
            ctx.run_as_task()
        finally:
            ended.set()

    if in_thread:
        app.add_tool(work, name="tool")
    else:

        @app.tool
        async def tool(ctx: Context) -> None:
            work(ctx)

    async with testing.connect(app) as client:
        call = asyncio.ensure_future(client.call_tool("tool"))
        await until(ended.is_set)
        await asyncio.gather(call, return_exceptions=True)
    assert not heard
