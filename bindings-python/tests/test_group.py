"""Many servers as one client."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tricorn import (
    ClientGroup,
    Context,
    Handlers,
    MisuseError,
    Next,
    Request,
    RequestContext,
    RpcError,
    Server,
    TransportError,
    connect_many,
)

from .conftest import LEGACY

pytestmark = pytest.mark.filterwarnings("ignore:.*MCP .* deprecates:DeprecationWarning")


def named(name: str) -> Server:
    app = Server(name, tasks=True)

    @app.tool(task_support="optional")
    async def who(ctx: Context) -> str:
        ctx.log("info", name)
        return name

    app.add_tool(lambda: f"only {name}", name=f"only_{name}")
    app.add_resource(f"test://{name}", f"resource of {name}")
    app.add_resource(f"{name}://{{number}}", lambda number: number)

    @app.prompt(complete={"word": [f"{name}-word"]})
    async def say(word: str) -> str:
        return f"{name} {word}"

    @app.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.sample("?", 1)).text

    return app


@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
async def test_many_servers_are_one(revision: str) -> None:
    async with connect_many({"one": named("one"), "two": named("two")}, revision=revision) as group:
        assert group.names == ["one", "two"]
        assert group.failures == {}
        tools = {tool.name: tool.server for tool in await group.list_tools()}
        expected = {"one_who", "only_one", "one_ask", "two_who", "only_two", "two_ask"}
        assert tools.keys() == expected
        assert (tools["one_who"], tools["only_two"]) == ("one", "two")
        assert (await group.call_tool("one_who")).text == "one"
        assert (await group.call_tool("two_who", timeout=10)).text == "two"
        assert (await group.call_tool("only_two")).text == "only two"
        with pytest.raises(Exception, match="one_who"):
            await group.call_tool("one_wo")
        assert [r.server async for r in group.resources()] == ["one", "two"]
        assert (await group.read_resource("test://two")).text == "resource of two"
        assert (await group.read_resource("one://7")).text == "7"
        assert {t.uri_template: t.server for t in await group.list_resource_templates()}["two://{number}"] == "two"
        prompts, cursor = await group.list_prompts_page()
        assert ([p.name for p in prompts], cursor) == (["one_say", "two_say"], None)
        assert (await group.get_prompt("two_say", {"word": "x"})).text == "two x"
        assert (await group.complete("one_say", "word", "o")).values == ["one-word"]
        await group.ping()
        assert (await group["one"].call_tool("who")).text == "one"
        assert group["one"].server_info is not None
        with pytest.raises(MisuseError, match="no server 'three'; there are one, two"):
            group["three"]
        with pytest.raises(MisuseError, match=r"ask one of the servers, as in group\[\"one\"\]"):
            await group.list_tasks()
    assert not group._host.waiting


async def test_failures_stop_nothing(tmp_path: Path, command: list[str]) -> None:
    servers = {
        "gone": {"command": "/no/such/program"},
        "off": {"command": "/no/such/program", "disabled": True},
        "here": {"command": command[0], "args": command[1:]},
    }
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    for config in (path, str(path), {"mcpServers": servers}):
        async with connect_many(config) as group:
            assert group.names == ["gone", "here"]
            assert isinstance(group.failures["gone"], TransportError)
            assert (await group.call_tool("add", {"a": 1, "b": 2})).text == "3"
            with pytest.raises(TransportError):
                await group["gone"].list_tools()
            with pytest.raises(TransportError):
                await group.reconnect("gone")


async def test_servers_and_targets_keep_their_order() -> None:
    servers = {
        "first": {"command": "/no/such/program"},
        "own": named("own"),
        "wrong": {"file": "/no/such/file.json"},
        "last": named("last"),
    }
    async with connect_many(servers) as group:
        assert group.names == ["first", "own", "wrong", "last"]
        assert {name: error.kind for name, error in group.failures.items()} == {
            "first": "transport",
            "wrong": "misuse",
        }
        assert [tool.server for tool in await group.list_tools()] == ["own"] * 3 + ["last"] * 3


async def test_servers_that_come_and_go() -> None:
    async with connect_many({"one": named("one")}, prefix="always") as group:
        assert {tool.name for tool in await group.list_tools()} == {"one_who", "one_only_one", "one_ask"}
        two = await group.add("two", named("two"))
        assert (await two.call_tool("who")).text == "two"
        assert (await group.call_tool("two_who")).text == "two"
        assert await group.remove("two")
        assert not await group.remove("two")
        with pytest.raises(Exception, match="two_who"):
            await group.call_tool("two_who")
        await group["one"].close()
        with pytest.raises(Exception, match=r"one|closed"):
            await group["one"].call_tool("who")
        await group["one"].connect()
        assert (await group.call_tool("one_who")).text == "one"


async def test_callbacks_and_answers() -> None:
    heard: asyncio.Queue[Any] = asyncio.Queue()

    def for_server(name: str) -> Handlers:
        def on_log(level: str, logger: str | None, data: Any) -> None:
            heard.put_nowait((name, data))

        return {"on_log": on_log, "sampling": lambda: f"to {name}"}

    async def count(request: Request, context: RequestContext, call_next: Next) -> Any:
        if request.method == "tools/call":
            heard.put_nowait("around")
        return await call_next(request, context)

    servers = {"one": named("one"), "two": named("two")}
    async with connect_many(servers, revision=LEGACY, for_server=for_server, middleware=[count]) as group:
        await group.set_log_level("info")
        await group.call_tool("two_who")
        assert await asyncio.wait_for(heard.get(), 10) == "around"
        assert await asyncio.wait_for(heard.get(), 10) == ("two", "two")
        assert (await group.call_tool("one_ask")).text == "to one"
        handle = await group.call_tool_task("one_who")
        assert (await handle.result()).text == "one"


def test_a_synchronous_group() -> None:
    with ClientGroup({"one": named("one"), "two": named("two")}, revision=LEGACY) as group:
        assert len(group.list_tools()) == 6
        assert group.call_tool("one_who").text == "one"
        assert group.read_resource("test://two").text == "resource of two"
        assert [prompt.name for prompt in group.prompts()] == ["one_say", "two_say"]
        assert group["two"].call_tool("who").text == "two"
        assert group.call_tool_task("two_who").result().text == "two"
        assert group.add("three", named("three")).call_tool("who").text == "three"
        assert group.names == ["one", "two", "three"]
        group.set_log_level("info")
        group.ping()
        assert group.reconnect("one").call_tool("who").text == "one"
        assert group.remove("three")
        assert group.failures == {}
        with pytest.raises(RpcError):
            group.get_prompt("one_say")


async def test_the_end_of_one_connection_is_told(command: list[str]) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()

    def for_server(name: str) -> Any:
        return {"on_close": lambda reason: told.put_nowait(name)}

    servers = {"dies": command, "stays": command, "goes": command}
    async with connect_many(servers, for_server=for_server, restart=False) as group:
        with pytest.raises(Exception, match=r"."):
            await group["dies"].call_tool("die")
        assert await asyncio.wait_for(told.get(), 10) == "dies"
        await group.remove("goes")
        await group["stays"].close()
        await group["stays"].connect()
        assert (await group.call_tool("add", {"a": 1, "b": 2})).text == "3"
        assert list(group.failures) == ["dies"]
    await asyncio.sleep(0.05)
    assert told.empty()


@pytest.mark.parametrize(
    ("servers", "options", "says"),
    [
        ("/no/such/mcp.json", {}, "mcp.json"),
        ({"one": named("one")}, {"prefix": "no"}, "prefix"),
        ({"one": named("one")}, {"prefx": "no"}, 'did you mean "prefix"'),
        ({"one": named("one")}, {"on_log": 5}, "on_log"),
        ({f"s{n}": named("x") for n in range(65)}, {}, "64"),
    ],
)
def test_wrong_options(servers: Any, options: Any, says: str) -> None:
    with pytest.raises(MisuseError, match=says):
        connect_many(servers, **options)
