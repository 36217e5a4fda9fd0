"""Event loops that watch no descriptors, as the default one of Windows: what such a loop does, and what it leaves."""

from __future__ import annotations

import ast
import asyncio
import contextvars
import gc
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tricorn import Server, testing
from tricorn.bridge import receiving, waking

from . import platforms
from .conftest import PATIENCE


class NoReaders(asyncio.SelectorEventLoop):
    """Receives from sockets, and watches nothing for anybody."""

    def add_reader(self, *_: Any) -> None:
        raise NotImplementedError


class Futures(NoReaders):
    """Gives a future, as a loop may that is not written in Python."""

    def sock_recv(self, sock: Any, n: int) -> Any:
        received, number = self.create_future(), sock.fileno()
        own: Any = self

        def come() -> None:
            if not received.done():
                received.set_result(sock.recv(n))

        own._add_reader(number, come)
        received.add_done_callback(lambda _: own._remove_reader(number))
        return received


class Yields(NoReaders):
    """Lets others have their turn first."""

    async def sock_recv(self, sock: Any, n: int) -> bytes:
        await asyncio.sleep(0)
        return await super().sock_recv(sock, n)


class Cuts(NoReaders):
    """Loses what it receives from, now and then."""

    times = 0

    async def sock_recv(self, sock: Any, n: int) -> bytes:
        received = await super().sock_recv(sock, n)
        self.times += 1
        if self.times % 3 == 0:
            raise ConnectionResetError("cut")
        return received


LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [NoReaders, Futures, Yields, Cuts]
if sys.platform == "win32":
    LOOPS = [asyncio.ProactorEventLoop, asyncio.SelectorEventLoop, *LOOPS]

USER: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="-")


@pytest.fixture(params=LOOPS)
def make(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    made: Callable[[], asyncio.AbstractEventLoop] = request.param
    return made


@pytest.fixture
def app() -> Server:
    app = Server("waking")

    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    def threaded() -> str:
        return threading.current_thread().name

    @app.tool
    async def user() -> str:
        return USER.get()

    return app


def run(make: Callable[[], asyncio.AbstractEventLoop], work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    loop = make()
    loop.set_debug(True)
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(work())
    finally:
        left = asyncio.all_tasks(loop)
        loop.close()
        asyncio.set_event_loop(None)
        assert not left


async def use(app: Server) -> str:
    async with testing.connect(app) as client:
        for number in range(20):
            assert (await client.call_tool("add", {"a": number, "b": 1})).text == str(number + 1)
        answers = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": n}) for n in range(50)))
        assert [answer.text for answer in answers] == [str(2 * n) for n in range(50)]
        assert (await client.call_tool("threaded")).text != threading.current_thread().name
        return type(client._host._ear).__name__


def test_loops_one_after_another(app: Server, make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    expected = "Reading" if sys.platform == "win32" and make is asyncio.SelectorEventLoop else "Receiving"
    for _ in range(5):
        assert run(make, lambda: use(app)) == expected
    # And the ordinary one.
    usual = asyncio.run(use(app))
    assert usual == ("Watching" if sys.platform != "win32" else "Receiving")
    assert run(make, lambda: use(app)) == expected


def test_a_loop_that_watches_a_socket(app: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waking, "listen", receiving.listen_to_socket)
    for _ in range(3):
        assert asyncio.run(use(app)) in ("Reading", "Receiving")


@pytest.mark.filterwarnings("error")
def test_a_loop_that_is_closed_with_a_wake_up_waiting(
    app: Server, make: Callable[[], asyncio.AbstractEventLoop], caplog: pytest.LogCaptureFixture
) -> None:
    loop = make()

    async def begin() -> Any:
        client = await testing.connect(app)
        app._host.bridge.poll(*[app._host.table, *[lambda *_: None] * 4])
        return client

    client = loop.run_until_complete(begin())
    assert not asyncio.all_tasks(loop)
    loop.close()
    # Deliveries that have come meanwhile are of that loop.
    assert run(make, lambda: use(app))
    del client, loop
    gc.collect()
    # On a machine that has other things to do, asyncio tells what took it long.
    assert not [record for record in caplog.records if not record.getMessage().startswith("Executing <")]


def test_the_end_of_a_program_that_is_cancelled(app: Server, make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """`asyncio.run` cancels all tasks, and what they do then needs the engine."""
    heard: list[str] = []

    async def work(client: Any, ready: asyncio.Event) -> None:
        try:
            ready.set()
            await asyncio.sleep(600)
        finally:
            heard.append((await client.call_tool("add", {"a": 1, "b": 1})).text)

    async def main() -> None:
        client, ready = await testing.connect(app), asyncio.Event()
        task = asyncio.ensure_future(work(client, ready))
        await ready.wait()
        # As `asyncio.run` does, and everybody who waits for the others.
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert others == {task}
        for one in others:
            one.cancel()
        await asyncio.wait_for(asyncio.gather(*others, return_exceptions=True), PATIENCE)
        await client.close()

    run(make, main)
    assert heard == ["2"]


def test_handlers_have_the_context_of_their_cause(app: Server, make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> list[str]:
        USER.set("first")
        async with testing.connect(app) as client:
            first = (await client.call_tool("user")).text
            USER.set("second")
            return [first, (await client.call_tool("user")).text]

    assert run(make, main) == ["first", "second"]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors")
def test_no_socket_is_left(app: Server, make: Callable[[], asyncio.AbstractEventLoop]) -> None:
    def count() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    run(make, lambda: use(app))
    before = count()
    for _ in range(5):
        run(make, lambda: use(app))
    assert count() <= before


def test_what_a_callback_raises_leaves_the_loop_awake(
    app: Server, make: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    @app.tool
    async def leave() -> None:
        raise SystemExit(7)

    async def main() -> str:
        async with testing.connect(app) as client:
            with pytest.raises(SystemExit):
                await client.call_tool("leave", timeout=PATIENCE)
            return ""

    loop = make()
    with pytest.raises(SystemExit):
        loop.run_until_complete(main())
    loop.run_until_complete(asyncio.sleep(0))
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(loop), return_exceptions=True))
    loop.close()
    assert run(make, lambda: use(app))


def test_what_is_left_out_on_windows_exists() -> None:
    folder = Path(__file__).parent
    for name, tests in platforms.NOT_ON_WINDOWS.items():
        code = ast.parse((folder / name).read_text(encoding="utf-8"))
        found = {node.name for node in ast.walk(code) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
        assert not tests.keys() - found
