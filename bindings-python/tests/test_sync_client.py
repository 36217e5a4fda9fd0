"""The synchronous client: threads, callbacks, the loops around it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tricorn import (
    Client,
    ClosedError,
    Error,
    MisuseError,
    RpcError,
    Server,
    testing,
)

from .conftest import Heard


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
        assert client.transport == "memory"


def test_the_thread_of_the_callbacks_may_not_wait(script: Callable[[str], str]) -> None:
    code = """
        import queue, sys
        from tricorn import Client, MisuseError, Server

        app = Server("demo")

        @app.tool
        async def complain() -> str:
            print("a complaint", file=sys.stderr, flush=True)
            return "complained"

        if sys.argv[1:]:
            app.run()
            sys.exit()

        target = [sys.executable, __file__, "child"]
        said = queue.Queue()

        def hear(line):
            for attempt in (client.ping, client.close, Client(target).connect):
                try:
                    attempt()
                except MisuseError as error:
                    said.put("used in its own callbacks" in str(error))

        with Client(target, on_stderr=hear) as client:
            client.call_tool("complain")
            print(said.get(), said.get(), said.get())

            @app.tool
            async def ask() -> str:
                try:
                    return client.call_tool("complain").text
                except MisuseError as error:
                    return "refused"

            with Client(app) as other:
                print(other.call_tool("ask").text)
            print(client.call_tool("complain").text)
    """
    assert script(code) == "True True True\nrefused\ncomplained\n"


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
