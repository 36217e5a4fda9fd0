"""A mounted server in the programs that serve it: it ends with them, whatever its clients hold open."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tricorn import ClosedError, Server, connect

from .conftest import INITIALIZE, PATIENCE
from .test_asgi import post

CODE = """
import asyncio, contextlib, sys, os
from starlette.applications import Starlette
from starlette.routing import Mount
from tricorn import Context, Server

@contextlib.asynccontextmanager
async def lifespan(server):
    print("started", flush=True)
    yield "state"
    await asyncio.sleep(0.05)
    print("stopped", flush=True)

app = Server("mounted", lifespan=lifespan)

@app.tool
async def quick(ctx: Context) -> str:
    return ctx.state

@app.tool
async def slow() -> str:
    print("running", flush=True)
    await asyncio.sleep(0.3)
    return "finished"

mcp = app.asgi()
web = {
    "bare": lambda: mcp,
    "mounted": lambda: Starlette(routes=[Mount("/mcp", mcp)]),
    "passed on": lambda: Starlette(routes=[Mount("/mcp", mcp)], lifespan=mcp.lifespan),
}[os.environ["SHAPE"]]()
"""

UVICORN = """
import uvicorn
uvicorn.run(web, port=0, lifespan=os.environ.get("LIFESPAN", "auto"), loop="asyncio")
"""

PROGRAMMATIC = """
import threading, uvicorn
server = uvicorn.Server(uvicorn.Config(web, port=0))
def end():
    sys.stdin.read()
    server.should_exit = True
threading.Thread(target=end).start()
server.run()
"""

HYPERCORN = """
from hypercorn.asyncio import serve
from hypercorn.config import Config
config = Config()
config.bind = ["127.0.0.1:0"]
config.graceful_timeout = 60
asyncio.run(serve(web, config))
"""


class Host:
    """A program that serves a mounted server, and what it says."""

    def __init__(self, code: str, folder: Path, **environment: str) -> None:
        path = folder / "program.py"
        path.write_text(textwrap.dedent(code))
        self.process = subprocess.Popen(
            [sys.executable, str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, **environment},
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.said: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            self.lines.put(line.rstrip())
        self.lines.put(None)

    def heard(self, part: str) -> str:
        """The next line that has `part`."""
        while True:
            line = self.lines.get(timeout=PATIENCE)
            assert line is not None, self.said
            if part in line:
                return line

    async def later(self, part: str) -> str:
        return await asyncio.to_thread(self.heard, part)

    def url(self) -> str:
        line = self.heard("unning on http")
        return next(word for word in line.split() if word.startswith("http://")) + "/mcp/"

    async def ends(self) -> int:
        return await asyncio.to_thread(self.process.wait, PATIENCE)


@pytest.fixture
def hosts(tmp_path: Path) -> Generator[Any]:
    begun: list[Host] = []

    def begin(code: str, **environment: str) -> Host:
        begun.append(Host(code, tmp_path, **environment))
        return begun[-1]

    yield begin
    for host in begun:
        host.process.kill()
        host.process.wait()
        host.reader.join(PATIENCE)
        for stream in (host.process.stdin, host.process.stdout):
            assert stream is not None
            stream.close()


@contextlib.asynccontextmanager
async def clients(url: str) -> AsyncGenerator[None]:
    """Clients that hold streams open: a session's own, and one that is listened to."""
    async with (
        connect(url, revision="2025-06-18") as session,
        connect(url, revision="2026-07-28") as modern,
        modern.listen(tools=True),
    ):
        assert (await session.call_tool("quick")).text == "state"
        yield


HOSTS = [
    pytest.param(UVICORN, {"SHAPE": "mounted"}, id="uvicorn mounted"),
    pytest.param(UVICORN, {"SHAPE": "mounted", "LIFESPAN": "off"}, id="uvicorn without lifespan"),
    pytest.param(UVICORN, {"SHAPE": "bare"}, id="uvicorn bare"),
    pytest.param(UVICORN, {"SHAPE": "bare", "LIFESPAN": "off"}, id="uvicorn bare without lifespan"),
    pytest.param(UVICORN, {"SHAPE": "passed on"}, id="uvicorn passed on"),
    pytest.param(HYPERCORN, {"SHAPE": "mounted"}, id="hypercorn mounted"),
    pytest.param(HYPERCORN, {"SHAPE": "bare"}, id="hypercorn bare"),
]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(("serve", "environment"), HOSTS)
async def test_a_program_that_is_told_to_end_waits_for_no_stream(
    hosts: Any, serve: str, environment: dict[str, str], number: signal.Signals
) -> None:
    if serve is HYPERCORN:
        pytest.importorskip("hypercorn")
    host = hosts(CODE + serve, **environment)
    url = await asyncio.to_thread(host.url)
    with contextlib.suppress(Exception):  # the clients hear of the end
        async with clients(url):
            await host.later("started")
            host.process.send_signal(number)
            await host.ends()
    assert host.process.returncode is not None
    await host.later("stopped")
    assert host.said.count("stopped") == 1
    assert not [line for line in host.said if "Traceback" in line or "without completing" in line]


async def test_a_program_that_ends_without_a_signal_waits_for_no_stream(hosts: Any) -> None:
    host = hosts(CODE + PROGRAMMATIC, SHAPE="mounted")
    url = await asyncio.to_thread(host.url)
    with contextlib.suppress(Exception):
        async with clients(url):
            await host.later("started")
            host.process.stdin.close()
            await host.ends()
    assert host.process.returncode == 0
    await host.later("stopped")


async def test_the_oldest_transport_keeps_nobody_waiting(hosts: Any) -> None:
    code = CODE.replace("app.asgi()", "app.asgi(sse=True)")
    host = hosts(code + UVICORN, SHAPE="mounted", PYTHONWARNINGS="ignore")
    url = await asyncio.to_thread(host.url)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.split(":")[2].split("/")[0]))
    writer.write(f"GET /mcp/ HTTP/1.1\r\nHost: {url.split('/')[2]}\r\nAccept: text/event-stream\r\n\r\n".encode())
    assert b"200" in await asyncio.wait_for(reader.readline(), PATIENCE)
    host.process.terminate()
    await host.ends()
    writer.close()


async def test_a_call_that_runs_is_finished(hosts: Any) -> None:
    host = hosts(CODE + UVICORN, SHAPE="mounted")
    url = await asyncio.to_thread(host.url)
    async with connect(url) as client:
        call = asyncio.create_task(client.call_tool("slow"))
        await host.later("running")
        host.process.terminate()
        assert (await call).text == "finished"
        await host.ends()
    await host.later("stopped")


async def test_a_program_that_has_no_request_yet_ends(hosts: Any) -> None:
    host = hosts(CODE + UVICORN, SHAPE="mounted")
    await asyncio.to_thread(host.url)
    host.process.terminate()
    await host.ends()
    assert "stopped" not in host.said


async def test_the_action_of_a_signal_stays_that_of_the_program(hosts: Any) -> None:
    host = hosts(CODE + UVICORN, SHAPE="mounted")
    url = await asyncio.to_thread(host.url)
    async with connect(url) as client:
        await client.call_tool("quick")
    host.process.terminate()
    assert await host.ends() == -signal.SIGTERM


async def test_a_lifespan_that_is_passed_on_ends_the_server() -> None:
    said: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        said.append("started")
        yield
        said.append("stopped")

    mcp = Server("demo", lifespan=lifespan).asgi()
    web = Starlette(routes=[Mount("/mcp", mcp)], lifespan=mcp.lifespan)
    for times in (1, 2):
        async with web.router.lifespan_context(web):
            assert (await post(mcp, INITIALIZE))[0] == 200
            assert said == ["started", "stopped"] * (times - 1) + ["started"]
        assert said == ["started", "stopped"] * times


def test_the_end_of_the_loop_is_the_end_of_the_server() -> None:
    said: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        said.append("started")
        yield
        await asyncio.sleep(0)
        said.append("stopped")

    mcp = Server("demo", lifespan=lifespan).asgi()
    sent: list[Any] = []

    async def main() -> None:
        sent.append(await post(mcp, INITIALIZE))

    asyncio.run(main())
    assert sent[0][0] == 200
    assert said == ["started", "stopped"]


async def test_a_start_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        raise RuntimeError("no database")
        yield

    heard: list[tuple[str, str]] = []
    app = Server("demo", lifespan=lifespan, on_error=lambda error, name: heard.append((str(error), name)))
    status, _, _ = await post(app.asgi(), INITIALIZE)
    assert status == 503
    assert heard == [("no database", "lifespan")]
    with caplog.at_level(logging.ERROR, "tricorn"):
        await post(Server("demo", lifespan=lifespan).asgi(), INITIALIZE)
    assert "lifespan failed" in caplog.text
    assert "no database" in caplog.text


async def test_a_start_that_fails_for_a_caller_is_raised_and_not_told() -> None:
    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        raise RuntimeError("no database")
        yield

    heard: list[str] = []
    app = Server("demo", lifespan=lifespan, on_error=lambda error, name: heard.append(str(error)))
    with pytest.raises(RuntimeError, match="no database"):
        async with app.listen(port=0):
            raise AssertionError
    with pytest.raises(RuntimeError, match="no database"):
        async with connect(app):
            raise AssertionError
    assert heard == []


# -- start, and where it is


async def test_listen_serves_within_a_block() -> None:
    said: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        said.append("started")
        yield
        said.append("stopped")

    app = Server("demo", lifespan=lifespan)

    @app.tool
    def hello() -> str:
        return "hello"

    async with app.listen(port=0) as url:
        assert said == ["started"]
        async with connect(url) as client:
            assert (await client.call_tool("hello")).text == "hello"
    assert said == ["started", "stopped"]
    async with app.listen("127.0.0.1", 0, path="/other") as url:
        assert url.endswith("/other")


async def test_a_start_that_is_cancelled_says_nothing() -> None:
    begun, heard = asyncio.Event(), list[Any]()
    asyncio.get_running_loop().set_exception_handler(lambda _, told: heard.append(told))

    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        begun.set()
        await asyncio.sleep(600)
        yield

    listening = asyncio.create_task(_listened(Server("demo", lifespan=lifespan), 0))
    await begun.wait()
    others = asyncio.all_tasks() - {asyncio.current_task(), listening}
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    await asyncio.wait(others, timeout=10)
    del listening, others
    gc.collect()
    await asyncio.sleep(0)
    assert heard == []


async def test_what_keeps_it_from_listening_is_raised() -> None:
    app = Server("demo")
    async with app.listen(port=0) as url, app.listen(port=0) as other:
        assert url != other
        port = int(url.rpartition(":")[2].partition("/")[0])
        with pytest.raises(OSError, match=str(port)):
            async with Server("other").listen(port=port):
                raise AssertionError
        failed, listened = await asyncio.gather(_listened(app, port), _listened(app, 0), return_exceptions=True)
        assert isinstance(failed, OSError)
        assert isinstance(listened, str)
    with pytest.raises(ValueError, match='did you mean "path"'):
        async with app.listen(port=0, paht="/"):  # type: ignore[call-arg]
            raise AssertionError
    app.close()
    with pytest.raises(ClosedError):
        async with app.listen(port=0):
            raise AssertionError


async def _listened(app: Server, port: int) -> str:
    async with app.listen(port=port) as url:
        return url


async def test_an_error_of_the_block_is_the_blocks() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with Server("demo").listen(port=0):
            raise KeyError("mine")


# -- options that nobody reads


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"transport": "http", "port": 9000}, r"app\.run\(9000\)"),
        ({"transport": "streamable-http"}, r"app\.run\(8000\)"),
        ({"host": "0.0.0.0", "port": 9000}, r'app\.run\("0\.0\.0\.0:9000"\)'),
        ({"transport": "stdio"}, r"app\.run\(\)"),
        ({"path": "/x"}, r"app\.run\(8000, path='/x'\)"),
        ({"http": 8000, "pth": "/x"}, 'did you mean "path"'),
        ({"http": 8000, "port": 9000}, r"app\.run\(9000\)"),
        ({"show_banner": False}, "unknown option"),
        ({"http": "stdio"}, "expected a port"),
    ],
)
def test_options_that_run_does_not_know_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Server("demo").run(**given)


async def test_options_that_mean_nothing_are_refused() -> None:
    app = Server("demo")
    with pytest.raises(ValueError, match="'port' means nothing here"):
        app.asgi(port=8000)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match='did you mean "allowed_hosts"'):
        app.asgi(allowed_host=["x"])  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="unknown option"):
        await app.serve_http(port=0, transport="http")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"await app\.serve_stdio\(\)"):
        app.run()


def test_the_name_may_stand_before_the_options() -> None:
    app = Server("demo")

    @app.tool("other")
    def tool() -> str:
        return ""

    @app.prompt("another", title="A")
    def prompt() -> str:
        return ""

    with pytest.raises(ValueError, match="two names"):
        app.tool("a", name="b")
    with pytest.raises(ValueError, match="expected a function, got 5"):
        app.tool(5)  # type: ignore[call-overload]
    assert app.remove_tool("other")
    assert app.remove_prompt("another")
