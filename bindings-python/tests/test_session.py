"""Tools, resources and prompts of one client's session, besides what the server offers to all."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from tricorn import Context, MisuseError, RpcError, Server, UnsupportedError, testing
from tricorn.server import session

from .conftest import LEGACY


def secret(word: str) -> str:
    return f"secret {word}"


@pytest.fixture
def app() -> Server:
    app = Server("x", capabilities=["resources", "prompts", "completions"])

    @app.tool
    async def grow(ctx: Context) -> None:
        ctx.session.add_tool(secret, title="Secret")

        @ctx.session.tool
        def own(ctx: Context) -> str:
            return str(ctx.request.protocol_version)

        ctx.session.add_resource("test://own", "text")
        ctx.session.add_resource("test://own/{number}", lambda number: number)
        ctx.session.add_prompt(secret, name="say", complete={"word": ["a", "b"]})

    @app.tool
    def shrink(ctx: Context) -> list[bool]:
        it = ctx.session
        removed = [
            it.remove_tool("own"),
            it.remove_resource("test://own"),
            it.remove_resource_template("test://own/{number}"),
            it.remove_prompt("say"),
            it.remove_tool("own"),
        ]
        return [*removed, it.set_enabled("tool", "grow", False)]

    return app


async def test_adding_for_one_client(app: Server) -> None:
    changed: asyncio.Queue[Any] = asyncio.Queue()
    async with (
        testing.connect(app, revision=LEGACY, on_list_changed=changed.put_nowait) as one,
        testing.connect(app, revision=LEGACY) as two,
    ):
        assert not (await one.call_tool("grow")).is_error
        assert await asyncio.wait_for(changed.get(), 10) == "tool"
        assert {tool.name for tool in await one.list_tools()} == {"grow", "shrink", "secret", "own"}
        assert {tool.name for tool in await two.list_tools()} == {"grow", "shrink"}
        assert (await one.call_tool("secret", {"word": "x"})).text == "secret x"
        assert (await one.call_tool("secret", {"word": 5})).text == 'argument "word": expected string, got 5'
        assert (await one.call_tool("own")).text == LEGACY
        assert (await one.read_resource("test://own")).text == "text"
        assert (await one.read_resource("test://own/7")).text == "7"
        assert (await one.get_prompt("say", {"word": "x"})).text == "secret x"
        assert (await one.complete("say", "word", "")).values == ["a", "b"]
        for attempt in (two.call_tool("own"), two.read_resource("test://own"), two.get_prompt("say")):
            with pytest.raises(RpcError):
                await attempt
        assert (await one.call_tool("shrink")).to(list[bool]) == [True, True, True, True, False, True]
        assert {tool.name for tool in await one.list_tools()} == {"shrink", "secret"}


async def test_where_it_cannot_be() -> None:
    app = Server("x")
    errors: list[Any] = []

    @app.tool
    async def grow(ctx: Context) -> None:
        for add in (
            lambda: ctx.session.add_tool(secret),
            lambda: ctx.session.add_resource("test://own", "text"),
            lambda: ctx.session.add_tool(5),  # type: ignore[arg-type]
        ):
            try:
                add()
            except Exception as error:  # noqa: BLE001 - the test looks at it
                errors.append(error)

    for revision in ("2026-07-28", LEGACY):
        async with testing.connect(app, revision=revision) as client:
            await client.call_tool("grow")
    assert [isinstance(error, UnsupportedError) for error in errors] == [True, True, False, True, False]
    size = len(app._host.table)
    async with testing.connect(app, revision="2026-07-28") as client:
        await client.call_tool("grow")
    assert len(app._host.table) == size


async def test_what_a_session_has_is_replaced() -> None:
    app = Server("x", capabilities=["resources", "prompts"])

    @app.tool
    def put(text: str, ctx: Context) -> None:
        ctx.session.add_tool(lambda: text, name="own", replace=True)
        ctx.session.add_resource("test://own", text, replace=True)
        ctx.session.add_resource("test://own/{x}", lambda x: text, replace=True)
        ctx.session.add_prompt(lambda: text, name="own", replace=True)

    async with testing.connect(app, revision=LEGACY) as one, testing.connect(app, revision=LEGACY) as two:
        await two.call_tool("put", {"text": "other"})
        for text in ("old", "new"):
            assert not (await one.call_tool("put", {"text": text})).is_error
            assert [tool.name for tool in await one.list_tools()] == ["put", "own"]
            assert (await one.call_tool("own")).text == text
            assert (await one.read_resource("test://own")).text == text
            assert (await one.read_resource("test://own/1")).text == text
            assert (await one.get_prompt("own")).text == text
        assert (await two.call_tool("own")).text == "other"


async def test_removing_where_there_is_no_session_says_so() -> None:
    app = Server("x")

    @app.tool
    def shrink(ctx: Context) -> bool:
        return ctx.session.remove_tool("x")

    async with testing.connect(app, revision="2026-07-28") as client:
        result = await client.call_tool("shrink")
        assert result.is_error
        assert "session" in result.text
        assert "failed" not in result.text
    async with testing.connect(app, revision=LEGACY) as client:
        assert (await client.call_tool("shrink")).text == "false"


async def test_functions_of_sessions_are_bounded(app: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MAX_HANDLERS", 12)
    size = len(app._host.table)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(5):
            client = await stack.enter_async_context(testing.connect(app, revision=LEGACY))
            await client.call_tool("grow")
            assert (await client.call_tool("secret", {"word": "x"})).text == "secret x"
        assert len(app._host.table) == size + 12
        with pytest.raises(MisuseError, match="a server"):
            session.Session(client._host, 1)


async def test_functions_of_a_session_end_with_it(app: Server) -> None:
    size = len(app._host.table)

    async def released(left: int) -> None:
        while len(app._host.table) > size + left:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    async with testing.connect(app, revision=LEGACY) as other:
        async with testing.connect(app, revision=LEGACY) as client:
            await client.call_tool("grow")
            assert len(app._host.table) == size + 6
            await client.call_tool("shrink")
            await asyncio.wait_for(released(1), 10)
        await asyncio.wait_for(released(0), 10)
        assert not app._host.kept
        await other.ping()
