"""Tasks of 2025-11-25: tool calls that go on after their answer, and questions that are asked as tasks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tricorn import (
    Client,
    Context,
    MisuseError,
    RpcError,
    Server,
    Task,
    TimeoutError,  # noqa: A004 - this package's
    ToolError,
    UnsupportedError,
    testing,
)

from .conftest import LEGACY

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")


@pytest.fixture
def app() -> Server:
    app = Server("tasks", tasks={"task_poll_interval": 0.01, "max_task_ttl": 100})

    @app.tool(task_support="optional")
    async def add(a: int, b: int, ctx: Context) -> int:
        ctx.set_status("adding")
        return a + b

    @app.tool(task_support="optional")
    async def slow(ctx: Context) -> str:
        assert ctx.request.task_id is not None
        assert ctx.set_status("asleep")
        await asyncio.sleep(60)
        return "?"

    @app.tool(task_support="required")
    def refuse(ctx: Context) -> None:
        raise ToolError(f"not {ctx.request.task_id is not None}")

    @app.tool
    def never() -> None: ...

    return app


async def test_the_result_of_a_task_in_one_await(app: Server) -> None:
    async with testing.connect(app, revision=LEGACY) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2}, task=True)).to(int) == 3
        assert (await client.call_tool("add", {"a": 1, "b": 2}, task=5)).to(int) == 3
        assert {task.ttl for task in await client.list_tasks()} == {5, 3600} & {5, 100} | {5, 100}
        assert (await client.call_tool("add", {"a": 1, "b": 2})).to(int) == 3
        tools = {tool.name: tool.task_support for tool in await client.list_tools()}
        assert tools == {"add": "optional", "slow": "optional", "refuse": "required", "never": "forbidden"}
        # A tool that must be a task is one, once it is known.
        assert (await client.call_tool("refuse")).text == "not True"
        with pytest.raises(UnsupportedError):
            await client.call_tool("never", task=True)
        with pytest.raises(UnsupportedError):
            await client.call_tool_task("never")
    async with testing.connect(app, revision=LEGACY) as client:
        with pytest.raises(RpcError):  # nobody has listed it: the server knows
            await client.call_tool_task("never")


async def test_a_handle(app: Server) -> None:
    async with testing.connect(app, revision=LEGACY) as client:
        handle = await client.call_tool_task("add", {"a": 1, "b": 2}, 50)
        assert (await handle.result()).to(int) == 3
        task = await handle.wait()
        assert (task.id, task.status, task.is_over, task.ttl) == (handle.id, "completed", True, 50)
        assert task.poll_interval == 0.01
        assert task.created_at <= task.last_updated_at
        assert (await client.task(handle.id).status()) == task
        handle = await client.call_tool_task("slow")
        async for task in handle.changes():
            if task.status_message == "asleep":
                break
        assert task.status == "working"
        with pytest.raises(TimeoutError):
            await handle.result(timeout=0.05)
        assert not (await handle.status()).is_over
        assert (await handle.cancel()).status == "cancelled"
        assert (await handle.wait()).status == "cancelled"
        with pytest.raises(RpcError):
            await handle.cancel()
        with pytest.raises(RpcError):
            await client.task("unknown").status()
        listed = await client.list_tasks()
        assert {one.id for one in listed} >= {handle.id}
        assert [one.id async for one in client.tasks()] == [one.id for one in listed]
        assert len((await client.list_tasks_page())[0]) == 2
        failed = await client.call_tool_task("refuse")
        assert (await failed.result()).is_error
        assert (await failed.wait()).status == "failed"
    assert not app._host.running


def test_a_synchronous_client(app: Server) -> None:
    with Client(app, revision=LEGACY) as client:
        assert client.call_tool("add", {"a": 1, "b": 2}, task=True).to(int) == 3
        handle = client.call_tool_task("add", {"a": 1, "b": 2})
        assert handle.result().to(int) == 3
        assert handle.wait().status == "completed"
        assert [task.is_over for task in client.tasks()] == [True, True]
        assert client.list_tasks() == list(client.tasks())
        handle = client.call_tool_task("slow")
        assert client.task(handle.id).cancel().status == "cancelled"


async def test_questions_as_tasks() -> None:
    app = Server("x")

    @app.tool
    async def ask(ctx: Context) -> Any:
        return [(await ctx.sample("?", 1, task=True)).text, (await ctx.elicit("?", int, task=10)).content]

    @app.tool
    def plain(ctx: Context) -> str:
        return ctx.wait(ctx.sample("?", 1, task=True)).text

    options: dict[str, Any] = {"sampling": lambda: "said", "elicitation": lambda: {"value": 7}}
    async with testing.connect(app, revision=LEGACY, tasks=True, **options) as client:
        assert (await client.call_tool("ask")).to(list[Any]) == ["said", 7]
        assert (await client.call_tool("plain")).text == "said"


async def test_where_there_are_no_tasks() -> None:
    app = Server("x", tasks=False)

    @app.tool
    async def tool() -> str:
        return "x"

    for revision in (LEGACY, "2026-07-28"):
        async with testing.connect(app, revision=revision) as client:
            with pytest.raises(UnsupportedError):
                await client.list_tasks()
            with pytest.raises((UnsupportedError, MisuseError)):
                await client.call_tool("tool", task=True)
    with pytest.raises(MisuseError, match="max_task"):
        Server("x", tasks={"max_task": 5})  # type: ignore[typeddict-unknown-key]


def test_a_state_as_it_came() -> None:
    task = Task({"taskId": "1", "status": "working", "ttl": None, "pollInterval": 500.0})
    assert (task.ttl, task.poll_interval, task.status_message, task.is_over) == (None, 0.5, None, False)
