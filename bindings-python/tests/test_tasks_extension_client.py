"""Clients of servers that answer with tasks (2026-07-28): they need not know, and have the handles of 2025-11-25."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tricorn import (
    AsyncTaskHandle,
    Client,
    Context,
    Honoured,
    MisuseError,
    Next,
    Request,
    RpcError,
    Server,
    Task,
    TaskChanged,
    ToolError,
    UnsupportedError,
    testing,
)
from tricorn.middleware import Result

from .conftest import LEGACY, MODERN, until

pytestmark = pytest.mark.usefixtures("quiet")


def booking(app: Server) -> Server:
    @app.tool(task_support="optional")
    async def book(ctx: Context, row: int = 1) -> str:
        ctx.set_status("looking")
        return f"seat {row}{(await ctx.elicit('Which side?', str)).content}"

    @app.tool(task_support="required")
    async def refuse() -> None:
        raise ToolError("full")

    @app.tool(task_support="required")
    async def error() -> None:
        raise RpcError(-31050, "no such thing")

    @app.tool(task_support="optional")
    async def slow() -> None:
        await asyncio.sleep(60)

    @app.tool
    async def quick() -> str:
        return "at once"

    return app


async def last(handle: AsyncTaskHandle) -> Task:
    return [task async for task in handle.changes()][-1]


async def test_a_client_follows_tasks() -> None:
    app = booking(Server("x", tasks={"task_poll_interval": 0.01}))
    asked: list[str] = []

    @app.middleware
    async def around(request: Request, context: Context, call_next: Next) -> Result:
        asked.append(request.method)
        return await call_next(request, context)

    async with testing.connect(app, revision=MODERN, tasks=True, elicitation=lambda: {"value": "A"}) as client:
        assert (await client.call_tool("book", {"row": 2})).text == "seat 2A"
        assert (await client.call_tool("book", task=True)).text == "seat 1A"
        assert (await client.call_tool("refuse")).is_error
        with pytest.raises(RpcError, match="no such thing"):
            await client.call_tool("error")
        handle = await client.call_tool_task("book")
        assert (await handle.result()).text == "seat 1A"
        assert (await handle.status()).status == "completed"
        assert (await client.task(handle.id).wait()).status_message == "looking"
        handle = await client.call_tool_task("quick")
        assert (await handle.status()).is_over
        assert (await handle.result()).text == "at once"
        handle = await client.call_tool_task("slow")
        assert [task.status async for task in handle.changes() if await handle.cancel()] == ["working", "cancelled"]
        await until(lambda: not app._host.running)
        handle = await client.call_tool_task("book")
        assert (await asyncio.wait_for(last(handle), 20)).status == "completed"
        assert (await handle.result()).text == "seat 1A"
        asked.clear()
        call = asyncio.ensure_future(client.call_tool("slow"))
        await until(lambda: "tasks/get" in asked)
        assert app._host.running
        call.cancel()
        await until(lambda: not app._host.running)
        assert "tasks/cancel" in asked
        with pytest.raises(UnsupportedError):
            await client.list_tasks()


def test_a_synchronous_client_follows_tasks() -> None:
    app = booking(Server("x", tasks={"task_poll_interval": 0.01}))
    with Client(app, revision=MODERN, tasks=True, elicitation=lambda: {"value": "A"}) as client:
        assert client.call_tool("book").text == "seat 1A"
        handle = client.call_tool_task("book", {"row": 3})
        assert handle.result().text == "seat 3A"
        handle = client.call_tool_task("book", {"row": 4})
        assert [task.status for task in handle.changes()][-1] == "completed"
        assert handle.result().text == "seat 4A"
        assert client.call_tool_task("slow").cancel().status == "cancelled"


async def test_tasks_are_listened_to_by_their_ids() -> None:
    goes_on = asyncio.Event()
    app = Server("x", tasks=True)

    @app.tool(task_support="required")
    async def work() -> str:
        await goes_on.wait()
        return "done"

    async with testing.connect(app, revision=MODERN, tasks=True) as client:
        handle, other = await client.call_tool_task("work"), await client.call_tool_task("work")
        async with client.listen(tasks=[handle]) as changes:
            assert changes.honoured == Honoured(tasks=(handle.id,))
            goes_on.set()
            task = None
            while task is None or not task.is_over:
                change = await changes.next(20)
                assert isinstance(change, TaskChanged), change
                task = change.task
            assert (task.id, task.status) == (handle.id, "completed")
            assert task.raw["result"]["content"][0]["text"] == "done"
        async with client.listen(tasks=[other.id, "unknown"]) as changes:
            assert changes.honoured.tasks == (other.id,)
        given: Any
        for given in (handle.id, [7], None):
            with pytest.raises(MisuseError, match="listen: tasks"):
                client.listen(tasks=given)
        with pytest.raises(MisuseError, match="say tools, prompts, resources, uris or tasks"):
            client.listen(extensions={"taskIds": ["x"]})
    async with testing.connect(app, revision=MODERN) as client:
        with pytest.raises(UnsupportedError, match="taskIds"):
            await client.listen(tasks=["x"]).__aenter__()


def test_a_synchronous_client_listens_to_tasks() -> None:
    app = booking(Server("x", tasks=True))
    with Client(app, revision=MODERN, tasks=True) as client:
        handle = client.call_tool_task("slow")
        with client.listen(tasks=[handle]) as changes:
            assert changes.honoured.tasks == (handle.id,)
            handle.cancel()
            change = changes.next(20)
            assert isinstance(change, TaskChanged)
            assert change.task.status == "cancelled"


async def test_a_client_without_the_extension() -> None:
    app = booking(Server("with", tasks=True))
    async with testing.connect(app, revision=MODERN) as client:
        assert (await client.call_tool("quick")).text == "at once"
        with pytest.raises(RpcError) as refused:
            await client.call_tool("refuse")
        assert refused.value.code == -32021
        with pytest.raises(UnsupportedError, match=r"option .tasks."):
            await client.call_tool_task("quick")
        with pytest.raises(UnsupportedError, match=r"option .tasks."):
            await client.call_tool("quick", task=True)
    without = booking(Server("without"))
    for revision in (LEGACY, MODERN):
        async with testing.connect(without, revision=revision, tasks=True) as client:
            with pytest.raises(UnsupportedError, match="the server does not declare"):
                await client.call_tool_task("quick")
            assert (await client.call_tool("refuse")).is_error
