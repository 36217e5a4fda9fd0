"""The asynchronous client: targets, paging, timeouts, progress, cancelling, closing."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import shlex
import sys
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

from .conftest import Heard

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")


async def check(client: AsyncClient) -> None:
    async with client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert client.server_info is not None
        assert client.server_info.name == "child"
        assert client.transport == "stdio"


async def test_command_lines(server_file: Path) -> None:
    await check(connect(f"'{sys.executable}' '{server_file}'"))


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
    with pytest.raises(MisuseError, match='"other", "child"'):
        connect(path)
    with pytest.raises(MisuseError, match="server: only a configuration file"):
        connect("command line", server="child")
    path.write_text("{")
    with pytest.raises(MisuseError, match=r"mcp\.json"):
        connect(path)
    with pytest.raises(MisuseError, match="No such file"):
        connect(tmp_path / "missing.json")
    with pytest.raises(MisuseError, match="not UTF-8"):
        connect(tmp_path / os.fsdecode(b"\xff.json"))


async def test_a_client_that_was_closed_does_not_connect() -> None:
    client = connect("http://127.0.0.1:1/mcp")
    await client.close()
    with pytest.raises(MisuseError, match="make a new one"):
        await client.connect()
    await client.close()


async def test_urls() -> None:
    app = Server("web")

    @app.tool
    async def session(ctx: Context) -> str:
        return f"{ctx.request.transport} {ctx.request.headers.get('x-mine')}"

    async with testing.serving(app) as url:
        for revision in ("2025-11-25", "2026-07-28"):
            async with connect(url, revision=revision, headers={"X-Mine": "yes"}) as client:
                assert client.protocol_version == revision
                assert client.transport == "http"
                assert client.era == ("legacy" if revision < "2026" else "modern")
                assert (client.session_id is not None) == (revision < "2026")
                assert (await client.call_tool("session")).text == "http yes"


async def test_targets_that_cannot_be_reached() -> None:
    with pytest.raises(TransportError):
        await connect("http://127.0.0.1:1/mcp")
    with pytest.raises(TransportError):
        await connect(["/nonexistent/program"])
    for nothing in ([], 123, None, b"server", object()):
        shown = "bytes" if isinstance(nothing, bytes) else repr(nothing)
        with pytest.raises(MisuseError, match=re.escape(f"cannot connect to {shown}: expected a URL")):
            connect(nothing)  # type: ignore[arg-type]
    for text, scheme in (("htps://x/mcp", "htps"), ("ftp://x/mcp.json", "ftp"), ("file:///mcp.json", "file")):
        with pytest.raises(MisuseError, match=f'the scheme is "{scheme}", expected http://, https:// or unix:'):
            connect(text)
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
        assert [tool.name for tool in first] == ["add", "complain"]  # by name, as there are several pages
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
        client.notify("notifications/cancelled", {"requestId": 99})
        with pytest.raises(MisuseError, match=r"roots\.listChanged"):
            client.notify("notifications/roots/list_changed")


async def test_standard_error_of_a_child(command: list[str], heard: Heard, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"child": {"command": command[0], "args": command[1:]}}}))
    for target in (command, shlex.join(command), path):
        async with connect(target, on_stderr=heard.lines.put) as client:
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
        with pytest.raises(MisuseError, match='ping: unknown option "timout", did you mean "timeout"'):
            await client.ping(timout=10)  # type: ignore[call-arg]


async def test_the_end_of_a_connection_is_told(command: list[str]) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    async with connect(command, on_close=told.put_nowait, restart=False) as client:
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
