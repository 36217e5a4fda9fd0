"""Tools that take longer than they may."""

from __future__ import annotations

import asyncio
import math
import queue
import re
import threading
from time import monotonic, sleep
from typing import Any

import pytest

from tricorn import Context, MisuseError, Server, testing

from .conftest import LEGACY, PATIENCE, until


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


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("5", 'expected a number of seconds, got "5"'),
        (True, "expected a number of seconds, got true"),
        ([5], "expected a number of seconds, got [5]"),
        (math.inf, "expected a finite number of seconds, got inf"),
        (math.nan, "expected a finite number of seconds, got nan"),
    ],
)
def test_values_that_are_no_times(value: Any, why: str) -> None:
    """NousResearch/hermes-agent 45915, openclaw 105784: nothing that a timer would take for no time, or for ever."""
    with pytest.raises(MisuseError, match=rf'"?timeout"?: {re.escape(why)}'):
        Server("timeouts").add_tool(lambda: "hello", name="a", timeout=value)
    with pytest.raises(MisuseError, match=rf'"?tool_timeout"?: {re.escape(why)}'):
        Server("timeouts", tool_timeout=value)


@pytest.mark.parametrize("value", [None, 0, 0.0, 2**31 / 1000, 2**31, 1e9, 2**53])
async def test_times_beyond_all_calls(value: float | None) -> None:
    """python-sdk 1687, openclaw 105784: none at all, and more than a timer of 32 bits holds."""
    app = Server("timeouts", tool_timeout=value)

    @app.tool(timeout=value)
    async def own() -> str:
        await asyncio.sleep(0.02)
        return "done"

    @app.tool
    async def shared() -> str:
        await asyncio.sleep(0.02)
        return "done"

    async with testing.connect(app) as client:
        for name in ("own", "shared"):
            result = await client.call_tool(name)
            assert (result.is_error, result.text) == (False, "done")


def late(name: str, time: str) -> tuple[bool, str]:
    """The result of a tool that has taken longer."""
    return True, f'tool "{name}" was cancelled: it took longer than {time}'


def server(heard: list[str], **options: Any) -> Server:
    """A server that tells its errors to `heard`."""
    return Server("timeouts", on_error=lambda error, name: heard.append(f"{name}: {error}"), **options)


@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
async def test_a_plain_function_outlives_its_time(revision: str) -> None:
    """python-sdk 1646, huggingface/OpenEnv 1214: its answer is dropped, and others do not wait for its thread."""
    heard: list[str] = []
    app = server(heard, tool_timeout=0.1, max_threads=1)
    release, told = threading.Event(), queue.SimpleQueue[bool]()

    @app.tool
    def deaf(ctx: Context) -> str:
        release.wait(PATIENCE)
        told.put(ctx.cancelled)
        return "late"

    @app.tool(timeout=0)
    def quick() -> str:
        return "done"

    async with testing.connect(app, revision=revision) as client:
        result = await client.call_tool("deaf")
        assert (result.is_error, result.text) == late("deaf", "0.1 s")
        assert (await client.call_tool("quick")).text == "done"
        await until(lambda: len(app._host.cancelled) == 1)
        release.set()
        await until(lambda: not app._host.running)
        assert told.get(timeout=PATIENCE)
        assert (await client.call_tool("quick")).text == "done"
    assert not app._host.cancelled
    assert not heard


async def test_the_time_passes_while_a_plain_function_waits_for_a_thread() -> None:
    """huggingface/OpenEnv 1214, infiniflow/ragflow 18869: a call whose time is over does not begin any more."""
    app = Server("timeouts", tool_timeout=0.2, max_threads=1)
    began, release = threading.Event(), threading.Event()
    ran: list[str] = []

    @app.tool(timeout=0)
    def holds() -> str:
        began.set()
        release.wait(PATIENCE)
        return "held"

    @app.tool
    def waits(who: str) -> str:
        ran.append(who)
        return "done"

    async with testing.connect(app) as client:
        holding = asyncio.create_task(client.call_tool("holds"))
        assert await asyncio.to_thread(began.wait, PATIENCE)
        result = await client.call_tool("waits", {"who": "first"})
        assert (result.is_error, result.text) == late("waits", "0.2 s")
        await until(lambda: len(app._host.cancelled) == 1)
        release.set()
        assert (await holding).text == "held"
        assert (await client.call_tool("waits", {"who": "second"})).text == "done"
    assert ran == ["second"]


async def test_a_function_that_blocks_the_event_loop_is_answered_for() -> None:
    """python-sdk 1646, fastmcp 4010: the engine's time passes also while nothing of Python runs but that."""
    app = Server("timeouts", tool_timeout=0.1)
    left: list[int] = []

    @app.tool(run_in_thread=False)
    def blocks() -> str:
        end = monotonic() + PATIENCE
        while app.metrics()["in_flight"] and monotonic() < end:
            sleep(0.001)
        left.append(app.metrics()["in_flight"])
        return "late"

    async with testing.connect(app) as client:
        result = await client.call_tool("blocks")
        assert (result.is_error, result.text) == late("blocks", "0.1 s")
    assert left == [0]


@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
async def test_a_tool_that_returns_when_it_is_cancelled(revision: str) -> None:
    """python-sdk 1152, HKUDS/nanobot 1728, stickerdaniel/linkedin-mcp-server 889: there is one answer."""
    heard: list[str] = []
    app = server(heard, tool_timeout=0.1)

    @app.tool
    async def stubborn(rest: bool) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if rest:
                await asyncio.sleep(0)
        return "late"

    @app.tool
    async def quick() -> str:
        return "done"

    async with testing.connect(app, revision=revision) as client:
        for rest in (False, True):
            result = await client.call_tool("stubborn", {"rest": rest})
            assert (result.is_error, result.text) == late("stubborn", "0.1 s")
            await until(lambda: not app._host.running)
            assert (await client.call_tool("quick")).text == "done"
    assert not app._host.cancelled
    assert not heard


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_an_exception_upon_cancellation_is_reported_whoever_cancels(how: str) -> None:
    """cherry-studio 18294: a failure that comes with a cancellation is not hidden, and not told to the caller."""
    heard: list[str] = []
    started = asyncio.Event()
    app = server(heard, tool_timeout=0.1 if how == "timeout" else 0)

    @app.tool
    async def slow() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("the cursor is closed") from None
        return "?"

    async with testing.connect(app) as client:
        call = asyncio.create_task(client.call_tool("slow"))
        await asyncio.wait_for(started.wait(), PATIENCE)
        if how == "cancel":
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        else:
            result = await call
            assert (result.is_error, result.text) == late("slow", "0.1 s")
        await until(lambda: bool(heard))
    assert heard == ["slow: the cursor is closed"]


@pytest.mark.parametrize("name", ["asks", "plain"])
async def test_a_question_is_taken_back_when_the_time_is_over(name: str) -> None:
    """executor 1953, codex 17566: nobody goes on filling in a form that nobody waits for."""
    heard: list[str] = []
    released = asyncio.Event()
    app = server(heard, tool_timeout=0.3)

    @app.tool
    async def asks(ctx: Context) -> str:
        return (await ctx.elicit("?")).action

    @app.tool
    def plain(ctx: Context) -> str:
        return ctx.wait(ctx.elicit("?")).action

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            released.set()

    async with testing.connect(app, revision=LEGACY, elicitation=never) as client:
        result = await client.call_tool(name)
        assert (result.is_error, result.text) == late(name, "0.3 s")
        await asyncio.wait_for(released.wait(), PATIENCE)
        await until(lambda: not app._host.running)
    assert not heard
