"""Errors that keep what they are, whatever words they get; handlers that are gone; libraries that judge forms."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from tricorn import Context, PeerMisbehavedError, RpcError, Server, UnsupportedError, connect, connect_many, testing

MODERN, OLDER = "2026-07-28", "2025-11-25"

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("how", ["inside", "cause", "later", "none"])
async def test_a_refused_question_is_known_whatever_its_words(how: str) -> None:
    app = Server("books", on_error=lambda *_: None)

    @app.tool
    async def book(ctx: Context) -> str:
        kept: UnsupportedError
        try:
            await ctx.elicit("A table?", int)
        except UnsupportedError as error:
            if how == "inside":
                raise UnsupportedError("booking: " + error.message)  # noqa: B904 - as many write it
            if how == "cause":
                raise UnsupportedError("booking: " + error.message) from error
            if how == "none":
                raise UnsupportedError("booking: " + error.message) from None
            kept = error
        raise UnsupportedError("booking: " + kept.message)

    async with testing.connect(app, revision=MODERN) as client:
        with pytest.raises(RpcError) as caught:
            await client.call_tool("book")
        assert caught.value.code == -32021
        assert caught.value.data["requiredCapabilities"].keys() == {"elicitation"}
    async with testing.connect(app, revision=OLDER) as client:
        result = await client.call_tool("book")
        assert result.is_error
        assert result.text.startswith("booking: ") == (how in ("inside", "cause"))


async def test_the_question_that_ended_the_call_is_named_and_no_other() -> None:
    app = Server("books")

    @app.tool
    async def ask(ctx: Context) -> str:
        try:
            await ctx.elicit("A table?", int)
        except UnsupportedError:
            await ctx.ask("roots/list")
        return ""

    async with testing.connect(app, revision=MODERN) as client:
        with pytest.raises(RpcError) as caught:
            await client.call_tool("ask")
        assert caught.value.data["requiredCapabilities"].keys() == {"roots"}


async def test_a_handler_that_is_gone_is_answered_as_what_there_is_not() -> None:
    app = Server("gone")

    @app.tool
    def tool() -> str:
        return ""

    @app.prompt
    def prompt() -> str:
        return ""

    @app.resource("memo://r")
    def resource() -> str:
        return ""

    async with testing.connect(app, revision=OLDER) as client:
        app._host.table.clear()  # pyright: ignore[reportPrivateUsage] - as if all were removed just now
        with pytest.raises(RpcError, match='unknown tool "tool"') as caught:
            await client.call_tool("tool")
        assert caught.value.code == -32602
        with pytest.raises(RpcError, match='unknown prompt "prompt"'):
            await client.get_prompt("prompt")
        with pytest.raises(RpcError, match="no resource") as caught:
            await client.read_resource("memo://r")
        assert caught.value.code == -32002


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("a party is of even size")
    return value


class Party(BaseModel):
    size: Annotated[int, AfterValidator(_even)]


@pytest.mark.parametrize("revision", [MODERN, OLDER])
async def test_pydantic_judges_the_answer_to_its_form(revision: str) -> None:
    app = Server("books")
    seen: list[str] = []

    @app.tool
    async def book(ctx: Context) -> int:
        try:
            answer = await ctx.elicit("A table?", Party)
        except PeerMisbehavedError as error:
            seen.append(error.message)
            raise
        assert answer.content is not None
        return answer.content.size

    given = [4, 3]

    async def fill(*_: Any) -> dict[str, Any]:
        return {"size": given[0]}

    async with testing.connect(app, revision=revision, elicitation=fill) as client:
        assert (await client.call_tool("book")).text == "4"
        given.pop(0)
        assert (await client.call_tool("book")).is_error
    assert "a party is of even size" in seen[-1]


# -- configurations


def _entry() -> dict[str, Any]:
    program = (
        "import os, sys; from tricorn import Server; app = Server('env');"
        "seen = lambda: [os.environ.get('OWN', ''), os.environ.get('SECRET_OF_TEST', ''), sys.argv[1:]];"
        "app.tool(seen, name='seen');"
        "app.run()"
    )
    return {"command": sys.executable, "args": ["-c", program, "${input:key}"], "env": _environment()}


def _environment() -> dict[str, str]:
    return {"OWN": "1", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}


@pytest.mark.parametrize("root", ["mcpServers", "servers", "context_servers"])
async def test_variables_and_a_short_environment(root: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_TEST", "s")
    held = {root: {"a": _entry()}}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(held))
    variables = {"input:key": "k"}
    async with connect(path, variables=variables, inherit_env=False) as client:
        assert json.loads((await client.call_tool("seen")).text) == ["1", "", ["k"]]
    async with connect_many(held, variables=variables, inherit_env=["SECRET_OF_TEST"]) as group:
        assert not group.failures
        assert json.loads((await group.call_tool("seen")).text) == ["1", "s", ["k"]]
    async with connect_many(path) as group:
        assert "input:key" in group.failures["a"].message
