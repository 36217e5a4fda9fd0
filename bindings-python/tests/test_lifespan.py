"""Resources of a server from its first use to its last, and what handlers get of them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tricorn import Client, Context, MisuseError, Server, connect, testing

from .conftest import INITIALIZE, LEGACY, Program
from .test_asgi import post


@dataclass
class State:
    count: int = 0
    log: list[str] = field(default_factory=list)


def counting(log: list[str]) -> Server:
    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[State]:
        log.append(f"start {server.name}")
        try:
            yield State(log=log)
        finally:
            log.append("stop")

    app = Server("life", lifespan=lifespan)

    @app.tool
    async def count(ctx: Context[State]) -> int:
        ctx.state.count += 1
        ctx.state.log.append("call")
        return ctx.state.count

    @app.tool
    def plain(ctx: Context[State]) -> int:
        return ctx.state.count

    return app


@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
async def test_from_the_first_use_to_the_last(revision: str) -> None:
    log: list[str] = []
    app = counting(log)
    async with testing.connect(app, revision=revision) as one:
        assert log == ["start life"]
        async with testing.connect(app, revision=revision) as two:
            assert (await one.call_tool("count")).to(int) == 1
            assert (await two.call_tool("count")).to(int) == 2
        assert (await one.call_tool("plain")).to(int) == 2
        assert "stop" not in log
    assert log == ["start life", "call", "call", "stop"]
    async with testing.connect(app, revision=revision) as again:
        assert (await again.call_tool("count")).to(int) == 1
    assert log[-3:] == ["start life", "call", "stop"]


async def test_over_http_also_when_it_is_cancelled() -> None:
    log: list[str] = []
    async with testing.serving(counting(log)) as url, connect(url) as client:
        assert (await client.call_tool("count")).to(int) == 1
        assert log == ["start life", "call"]
    assert log == ["start life", "call", "stop"]


def test_with_a_synchronous_client() -> None:
    log: list[str] = []
    with Client(counting(log)) as client:
        assert client.call_tool("count").to(int) == 1
    assert log == ["start life", "call", "stop"]


async def test_mounted() -> None:
    log: list[str] = []
    application = counting(log).asgi(allowed_hosts=["localhost"])
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE["params"]}
    await post(application, message)
    assert log == ["start life"]
    await application.close()
    assert log == ["start life", "stop"]
    told: asyncio.Queue[Any] = asyncio.Queue()
    for kind in ("startup", "shutdown"):
        told.put_nowait({"type": f"lifespan.{kind}"})
    await post(application, message)
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await application({"type": "lifespan"}, told.get, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert log == ["start life", "stop"] * 2


async def test_errors(caplog: pytest.LogCaptureFixture) -> None:
    works = False

    async def lifespan(server: Server) -> AsyncGenerator[str]:  # the decorator may be left out
        if not works:
            raise LookupError("no database")
        yield "state"
        raise ValueError("cannot stop")

    app = Server("x", lifespan=lifespan)  # type: ignore[arg-type]
    with pytest.raises(LookupError, match="no database"):
        await testing.connect(app)
    with pytest.raises(LookupError, match="no database"):
        async with testing.serving(app):
            pass
    works = True
    async with testing.connect(app):
        assert app._host.state == "state"
    assert "cannot stop" in caplog.text
    assert not app._host.running


async def test_the_task_that_enters_also_leaves() -> None:
    tasks: list[Any] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        tasks.append(asyncio.current_task())
        yield None
        tasks.append(asyncio.current_task())

    app = Server("x", lifespan=lifespan)

    @app.tool
    async def tool(ctx: Context[None]) -> bool:
        return ctx.state is None

    async with testing.connect(app) as client:
        assert (await client.call_tool("tool")).to(bool)
    assert tasks[0] is tasks[1]


async def test_a_plain_state(app: Server) -> None:
    @app.tool
    async def tool(ctx: Context[State]) -> int:
        return ctx.state.count

    async with testing.connect(app) as client:
        assert (await client.call_tool("tool")).text == 'tool "tool" failed: MisuseError'
    other = Server("x", state=State(7))

    @other.resource("test://count")
    async def count(ctx: Context[State]) -> str:
        return str(ctx.state.count)

    async with testing.connect(other) as client:
        assert (await client.read_resource("test://count")).text == "7"


def test_wrong_options() -> None:
    with pytest.raises(MisuseError, match="lifespan: expected a function"):
        Server("x", lifespan=5)  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match="state"):
        Server("x", lifespan=lambda _: None, state=5)  # type: ignore[arg-type, return-value]


PROGRAM = """
import sys
from contextlib import asynccontextmanager
from tricorn import Context, Server

@asynccontextmanager
async def lifespan(server):
    print("started", file=sys.stderr, flush=True)
    try:
        yield 42
    finally:
        print("stopped", file=sys.stderr, flush=True)

app = Server("x", lifespan=lifespan)

@app.tool
async def tool(ctx: Context[int]) -> int:
    return ctx.state

app.run()
"""


@pytest.mark.parametrize(("how", "status"), [("eof", 0), ("INT", 130), ("TERM", 0)])
def test_it_ends_however_the_program_ends(program: Callable[..., Program], how: str, status: int) -> None:
    it = program(PROGRAM)
    it.start()
    it.call(1, "tool")
    assert it.text() == "42"
    if how == "eof":
        it.end_of_input()
    else:
        it.signal(signal.Signals[f"SIG{how}"])
    assert it.wait() == status
    assert it.stderr().count("started") == it.stderr().count("stopped") == 1


MODERN_CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "count",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


def test_a_mounted_server_on_one_loop_after_the_other() -> None:
    """As the test clients of frameworks make them."""
    log: list[str] = []
    app = counting(log)
    application = app.asgi()

    async def called() -> Any:
        headers = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": "count"}
        return (await post(application, MODERN_CALL, **headers))[2]["result"]["content"][0]["text"]

    async def in_memory() -> str:
        async with testing.connect(app) as client:
            return (await client.call_tool("count")).text

    each = ["start life", "call", "stop"]
    for _ in range(2):
        assert asyncio.run(called()) == "1"
    assert log == 2 * each
    assert asyncio.run(in_memory()) == "1"
    assert asyncio.run(called()) == "1"
    assert log == 4 * each


def test_a_lifespan_that_cannot_begin_on_the_next_loop() -> None:
    told: list[tuple[str, str]] = []
    ready = [True, False, True]

    async def lifespan(_server: Server) -> AsyncGenerator[int]:
        if not ready.pop(0):
            raise RuntimeError("no database")
        yield 1

    app = Server("life", lifespan=lifespan, on_error=lambda error, name: told.append((name, str(error))))
    application = app.asgi()

    async def called() -> Any:
        return (await post(application, INITIALIZE))[0]

    assert asyncio.run(called()) == 200
    asyncio.run(called())
    assert told == [("lifespan", "no database")]
    assert asyncio.run(called()) == 200
    assert not ready
