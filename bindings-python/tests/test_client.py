"""The clients: targets, paging, timeouts, progress, cancelling, closing; asynchronous and synchronous."""

from __future__ import annotations

import asyncio
import json
import math
import os
import queue
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tricorn import (
    AsyncClient,
    Client,
    ClosedError,
    Context,
    Error,
    MisuseError,
    PeerMisbehavedError,
    Progress,
    RpcError,
    Server,
    TransportError,
    connect,
    testing,
)

SERVER = """
import asyncio, os, sys
from tricorn import Context, Server

app = Server("child", "7", page_size=2)

@app.tool
async def add(a: int, b: int) -> int:
    return a + b

@app.tool
async def environment(name: str) -> str:
    return os.environ.get(name, "-") + " " + os.path.basename(os.getcwd())

@app.tool
async def count(ctx: Context) -> str:
    for n in range(3):
        ctx.progress(n, 3)
    return "counted"

@app.tool
async def slow() -> str:
    print("slow started", file=sys.stderr, flush=True)
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        print("slow cancelled", file=sys.stderr, flush=True)
        raise
    return "?"

@app.tool
async def die() -> None:
    os._exit(3)

@app.tool
async def complain() -> str:
    print("this is a complaint", file=sys.stderr, flush=True)
    return "complained"

app.run()
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("server") / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    return path


@pytest.fixture
def command(server: Path) -> list[str]:
    return [sys.executable, str(server)]


class Heard:
    """What a child says on standard error, to wait for in coroutines and threads."""

    def __init__(self) -> None:
        self.lines: queue.Queue[str] = queue.Queue()

    def wait(self, text: str) -> None:
        while text not in self.lines.get(timeout=30):
            pass

    async def hear(self, text: str) -> None:
        await asyncio.to_thread(self.wait, text)


@pytest.fixture
def heard() -> Heard:
    return Heard()


async def check(client: AsyncClient) -> None:
    async with client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert client.server_info is not None
        assert client.server_info.name == "child"


async def test_command_lines(server: Path) -> None:
    await check(connect(f"'{sys.executable}' '{server}'"))


async def test_lists_of_arguments(command: list[str]) -> None:
    await check(connect(command))


async def test_dictionaries(command: list[str], tmp_path: Path) -> None:
    target = {"command": command[0], "args": command[1:], "env": {"HELLO": "world"}, "cwd": str(tmp_path)}
    async with connect(target) as client:
        assert (await client.call_tool("environment", {"name": "HELLO"})).text == f"world {tmp_path.name}"
        assert (await client.call_tool("environment", {"name": "PATH"})).text.startswith(os.environ["PATH"])


async def test_configuration_files_of_hosts(command: list[str], tmp_path: Path) -> None:
    entry = {"type": "stdio", "command": command[0], "args": command[1:]}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"child": entry}}))
    await check(connect(path))
    await check(connect(str(path)))
    path.write_text(json.dumps({"servers": {"other": {"url": "http://127.0.0.1:1/mcp"}, "child": entry}}))
    await check(connect(path, server="child"))
    with pytest.raises(MisuseError, match="other, child"):
        connect(path)
    path.write_text("{")
    with pytest.raises(MisuseError, match=r"mcp\.json"):
        connect(path)
    with pytest.raises(MisuseError, match="No such file"):
        connect(tmp_path / "missing.json")


async def test_urls() -> None:
    app = Server("web")

    @app.tool
    async def session(ctx: Context) -> str:
        return f"{ctx.request.transport} {ctx.request.headers.get('x-mine')}"

    async with testing.serving(app) as url:
        for revision in ("2025-11-25", "2026-07-28"):
            async with connect(url, revision=revision, headers={"X-Mine": "yes"}) as client:
                assert client.protocol_version == revision
                assert client.era == ("legacy" if revision < "2026" else "modern")
                assert (client.session_id is not None) == (revision < "2026")
                assert (await client.call_tool("session")).text == "http yes"


async def test_targets_that_cannot_be_reached() -> None:
    with pytest.raises(TransportError):
        await connect("http://127.0.0.1:1/mcp")
    with pytest.raises(TransportError):
        await connect(["/nonexistent/program"])
    with pytest.raises(MisuseError):
        connect([])
    with pytest.raises(MisuseError, match="revisoin"):
        connect("x", revisoin="2025-11-25")  # type: ignore[call-arg]


async def test_awaiting_instead_of_async_with(command: list[str]) -> None:
    client = await connect(command)
    assert "AsyncClient 20" in repr(client)
    await client.close()
    await client.close()
    assert "closed" in repr(client)
    with pytest.raises(ClosedError):
        await client.call_tool("add", {"a": 1, "b": 1})


async def test_nothing_works_before_connecting(command: list[str]) -> None:
    client = connect(command)
    with pytest.raises(MisuseError, match="not connected"):
        await client.list_tools()
    with pytest.raises(MisuseError, match="not connected"):
        _ = client.protocol_version
    await client.close()


async def test_paging(command: list[str]) -> None:
    async with connect(command) as client:
        first, cursor = await client.list_tools_page()
        assert [tool.name for tool in first] == ["add", "environment"]
        second, cursor = await client.list_tools_page(cursor)
        third, cursor = await client.list_tools_page(cursor)
        assert cursor is None
        assert [tool.name for tool in await client.list_tools()] == [tool.name for tool in first + second + third]
        with pytest.raises(RpcError) as caught:
            await client.list_tools_page("nonsense")
        assert caught.value.received


async def test_progress(command: list[str]) -> None:
    seen: list[Progress] = []
    async with connect(command) as client:
        await client.call_tool("count", on_progress=seen.append)
    assert [p.progress for p in seen] == [0, 1, 2]


async def test_cancelling_is_remote(command: list[str], heard: Heard) -> None:
    async with connect(command, on_stderr=heard.lines.put) as client:
        task = asyncio.create_task(client.call_tool("slow"))
        await heard.hear("slow started")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await heard.hear("slow cancelled")
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"


async def test_timeouts_are_remote(command: list[str], heard: Heard) -> None:
    async with connect(command, on_stderr=heard.lines.put) as client:
        with pytest.raises(TimeoutError) as caught:
            await client.call_tool("slow", timeout=0.5)
        assert isinstance(caught.value, Error)
        await heard.hear("slow cancelled")


async def test_closing_from_another_task_ends_waiting_calls(command: list[str], heard: Heard) -> None:
    client = await connect(command, on_stderr=heard.lines.put)
    task = asyncio.create_task(client.call_tool("slow"))
    await heard.hear("slow started")
    await asyncio.create_task(client.close())
    with pytest.raises(ClosedError):
        await task


async def test_closing_from_another_thread(command: list[str], heard: Heard) -> None:
    client = await connect(command, on_stderr=heard.lines.put)
    task = asyncio.create_task(client.call_tool("slow"))
    await heard.hear("slow started")
    await asyncio.to_thread(lambda: asyncio.run(client.close()))
    with pytest.raises(ClosedError):
        await task


async def test_generic_requests_ping_and_notifications(command: list[str]) -> None:
    async with connect(command, revision="2025-11-25") as client:
        await client.ping()
        assert len((await client.request("tools/list"))["tools"]) == 2
        with pytest.raises(RpcError) as caught:
            await client.request("no/such/method", {"a": 1})
        assert caught.value.code == -32601
        client.notify("notifications/roots/list_changed")


async def test_standard_error_of_a_child(command: list[str], heard: Heard) -> None:
    async with connect(command, on_stderr=heard.lines.put) as client:
        await client.call_tool("complain")
        await heard.hear("this is a complaint")


async def test_notifications_from_the_server() -> None:
    app = Server("talkative")
    seen: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    @app.tool
    async def talk(ctx: Context) -> bool:
        return ctx.log("warning", {"n": 1}, "here")

    client = testing.connect(
        app, revision="2025-11-25", on_notification=lambda method, params: seen.put_nowait((method, params))
    )
    async with client:
        await client.call_tool("talk")
        method, params = await asyncio.wait_for(seen.get(), 10)
        assert method == "notifications/message"
        assert params == {"level": "warning", "logger": "here", "data": {"n": 1}}


async def test_a_killed_server(command: list[str]) -> None:
    async with connect(command) as client:
        with pytest.raises((ClosedError, TransportError)):
            await client.call_tool("die")
        with pytest.raises((ClosedError, TransportError)):
            await client.call_tool("die")


async def test_no_limit() -> None:
    app = Server("restful")

    @app.tool
    async def nap() -> str:
        await asyncio.sleep(0.3)
        return "rested"

    for unlimited in (None, 0, math.inf):
        async with connect(app, request_timeout=0.05) as client:
            with pytest.raises(TimeoutError):
                await client.call_tool("nap")
            assert (await client.call_tool("nap", timeout=unlimited, max_timeout=unlimited)).text == "rested"
        async with connect(app, request_timeout=unlimited) as client:
            assert (await client.call_tool("nap")).text == "rested"


async def test_options_of_every_request(command: list[str]) -> None:
    seen: list[Progress] = []
    async with connect(command, revision="2025-11-25") as client:
        assert len(await client.list_tools(timeout=10, max_timeout=20, on_progress=seen.append)) == 6
        assert (await client.list_tools_page(timeout=None))[1] is not None
        await client.ping(timeout=10)
        await client.request("tools/call", {"name": "count"}, max_timeout=20, on_progress=seen.append)
        assert [p.progress for p in seen] == [0, 1, 2]
        with pytest.raises(TimeoutError):
            await client.request("tools/call", {"name": "slow"}, max_timeout=0.2)
        with pytest.raises(TypeError, match="timout"):
            await client.ping(timout=10)  # type: ignore[call-arg]


async def test_the_end_of_a_connection_is_told(command: list[str]) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    async with connect(command, on_close=told.put_nowait) as client:
        with pytest.raises((ClosedError, TransportError)):
            await client.call_tool("die")
        assert await asyncio.wait_for(told.get(), 10)
    async with connect(command, on_close=told.put_nowait):
        pass
    await asyncio.sleep(0.05)
    assert told.empty()


ENDLESS = """
import json, sys

next_cursor = eval(sys.argv[1])
page = 0
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        result["serverInfo"] = {"name": "endless", "version": "1"}
    else:
        page += 1
        result = {"tools": [], "nextCursor": next_cursor(page)}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize(
    ("cursors", "reason"),
    [("lambda page: 'ab'[page % 2]", 'the cursor "b" came twice'), ("str", "there are more than 1000 pages")],
)
async def test_lists_without_end(tmp_path: Path, cursors: str, reason: str) -> None:
    path = tmp_path / "endless.py"
    path.write_text(ENDLESS, encoding="utf-8")
    command = [sys.executable, str(path), cursors]
    async with connect(command, revision="2025-11-25") as client:
        with pytest.raises(PeerMisbehavedError, match=f"^tools/list never ends: {reason}$"):
            await client.list_tools()

    def synchronous() -> None:
        with Client(command, revision="2025-11-25") as client:
            client.list_tools()

    with pytest.raises(PeerMisbehavedError, match=reason):
        await asyncio.to_thread(synchronous)


# -- synchronous


@pytest.fixture
def client(command: list[str]) -> Generator[Client]:
    with Client(command) as client:
        yield client


def test_the_synchronous_client(client: Client) -> None:
    assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
    assert len(client.list_tools()) == 6
    assert client.server_info is not None
    seen: list[tuple[float, threading.Thread]] = []
    client.call_tool("count", on_progress=lambda p: seen.append((p.progress, threading.current_thread())))
    assert seen == [(n, threading.current_thread()) for n in range(3)]
    with pytest.raises(TimeoutError):
        client.call_tool("slow", timeout=0.3)
    with pytest.raises(TimeoutError):
        client.request("tools/call", {"name": "slow"}, max_timeout=0.3)
    assert len(client.list_tools(timeout=10, max_timeout=None)) == 6
    client.request(
        "tools/call", {"name": "count"}, on_progress=lambda p: seen.append((p.progress, threading.current_thread()))
    )
    assert seen[3:] == seen[:3]
    with pytest.raises(RpcError):
        client.call_tool("missing")


def test_many_threads_share_a_synchronous_client(client: Client) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: client.call_tool("add", {"a": n, "b": n}).text, range(200)))
    assert results == [str(2 * n) for n in range(200)]


def test_a_callback_may_call_again(client: Client) -> None:
    inner: list[str] = []
    client.call_tool("count", on_progress=lambda _: inner.append(client.call_tool("add", {"a": 1, "b": 1}).text))
    assert inner == ["2", "2", "2"]


async def test_the_synchronous_client_beside_a_running_loop(command: list[str]) -> None:
    def work() -> str:
        with Client(command) as client:
            return client.call_tool("add", {"a": 1, "b": 2}).text

    assert await asyncio.to_thread(work) == "3"
    assert work() == "3"  # blocks this loop, as in a notebook, and still works


def test_the_synchronous_client_of_a_server_object() -> None:
    app = Server("memory")

    @app.tool
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    with Client(app) as client, Client(app) as other:
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
        assert other.call_tool("add", {"a": 2, "b": 2}).text == "4"


async def test_a_synchronous_client_does_not_block_its_own_server() -> None:
    app = Server("memory")

    @app.tool
    async def hello() -> str:
        return "hello"

    async with testing.connect(app) as client:
        with pytest.raises(MisuseError, match="block"), Client(app):
            pass
        assert (await client.call_tool("hello")).text == "hello"
        # Another thread may block as long as it likes.
        text = await asyncio.to_thread(lambda: testing.call(app, "hello").text)
        assert text == "hello"


def test_closing_a_synchronous_client_from_another_thread(command: list[str], heard: Heard) -> None:
    client = Client(command, on_stderr=heard.lines.put).connect()
    outcome: list[BaseException] = []

    def wait() -> None:
        try:
            client.call_tool("slow")
        except Error as error:
            outcome.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    heard.wait("slow started")
    client.close()
    thread.join(10)
    assert not thread.is_alive()
    assert isinstance(outcome[0], ClosedError)
    with pytest.raises(ClosedError):
        client.call_tool("add", {"a": 1, "b": 2})
