"""Tools that take longer than they may."""

from __future__ import annotations

import asyncio

import pytest

from tricorn import MisuseError, Server, testing

from .conftest import LEGACY


@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
async def test_a_tool_that_takes_too_long_is_cancelled_and_answered_for(revision: str) -> None:
    app = Server("timeouts", tool_timeout=0.2)
    ended: asyncio.Queue[str] = asyncio.Queue()

    async def wait(name: str) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.put_nowait(name)
            raise

    @app.tool
    async def slow() -> None:
        await wait("slow")

    @app.tool(timeout=0.05)
    async def hasty() -> None:
        await wait("hasty")

    @app.tool(timeout=0)
    async def patient() -> str:
        await asyncio.sleep(0.4)
        return "done"

    async with testing.connect(app, revision=revision) as client:
        for name, time in (("slow", "0.2 s"), ("hasty", "0.05 s")):
            result = await client.call_tool(name)
            told = f'tool "{name}" was cancelled: it took longer than {time}'
            assert (result.is_error, result.text) == (True, told)
            assert await asyncio.wait_for(ended.get(), 20) == name
        assert (await client.call_tool("patient")).text == "done"


def test_times_that_are_none() -> None:
    def hello() -> str:
        return "hello"

    with pytest.raises(MisuseError, match='tool "a": option "timeout": expected seconds of at least 0, got -1'):
        Server("timeouts").add_tool(hello, name="a", timeout=-1)
    with pytest.raises(MisuseError, match='option "tool_timeout": expected seconds of at least 0, got -1'):
        Server("timeouts", tool_timeout=-1)
