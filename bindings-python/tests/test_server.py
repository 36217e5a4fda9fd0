"""The server, seen by a client in memory: its tools, its options, its beginning and end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tricorn import (
    ClosedError,
    Icon,
    MisuseError,
    RpcError,
    Server,
    ToolAnnotations,
    connect,
    testing,
)

from .conftest import call


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
        definition["inputSchema"] = {**definition["inputSchema"], "properties": {}}
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


async def test_unknown_tools(app: Server) -> None:
    async def known() -> None: ...

    app.add_tool(known)
    with pytest.raises(RpcError) as caught:
        await call(app, "missing")
    assert caught.value.code == -32602


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


async def test_what_the_protocol_knows_nothing_of_is_declared() -> None:
    ours = {"experimental": {"ours": {"depth": 3}}, "com.example": {"x": 1}}
    async with testing.connect(Server("x", capabilities={**ours, "prompts": {}})) as client:
        told = client.capabilities
        assert {**told, **ours} == told
        assert "prompts" in told
    with pytest.raises(MisuseError, match="promts"):
        Server("x", capabilities={"promts": {}})
