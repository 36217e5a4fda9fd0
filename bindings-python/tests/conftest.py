"""Fixtures of several test files: a server to fill, and programs run as processes, with every wait bounded."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tricorn import CallToolResult, Context, Server, testing

from . import platforms
from .authorization_server import AuthorizationServer, Visitor

LEGACY = "2025-11-25"
Question = Callable[[Context], Awaitable[Any]]
PATIENCE = 30.0
"""Seconds until something that should have happened counts as hanging."""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    platforms.skip(items)


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # What runs in the background of a shell ignores it, and so would every program that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)


async def call(app: Server, name: str, /, **arguments: Any) -> CallToolResult:
    """One call of a client in memory."""
    async with testing.connect(app) as client:
        return await client.call_tool(name, arguments)


@pytest.fixture
def app() -> Server:
    return Server("test", "1.2.3")


class Program:
    """A Python program under test that speaks the protocol on its standard streams."""

    def __init__(self, code: str, folder: Path, *arguments: str, **environment: str) -> None:
        path = folder / "program.py"
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, "-X", "dev", str(path), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYTHONUNBUFFERED": "", **environment},
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.errors: queue.Queue[str | None] = queue.Queue()
        self.said: list[str] = []
        self.readers: list[threading.Thread] = []
        for stream, lines in ((self.process.stdout, self.lines), (self.process.stderr, self.errors)):
            self.readers.append(threading.Thread(target=self._read, args=(stream, lines), daemon=True))
            self.readers[-1].start()

    def _read(self, stream: Any, lines: queue.Queue[str | None]) -> None:
        for line in stream:
            if lines is self.errors:
                self.said.append(line)
            lines.put(line.rstrip("\n"))
        lines.put(None)

    def send(self, *messages: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(json.dumps(message) + "\n" for message in messages))
        self.process.stdin.flush()

    def call(self, number: int, name: str, /, **arguments: Any) -> None:
        params = {"name": name, "arguments": arguments}
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def start(self) -> None:
        self.send(INITIALIZE)
        assert self.receive()["id"] == 0
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def receive(self) -> dict[str, Any]:
        line = self.lines.get(timeout=PATIENCE)
        assert line is not None, f"the program ended: {''.join(self.said)}"
        message: dict[str, Any] = json.loads(line)
        return message

    def text(self) -> str:
        text: str = self.receive()["result"]["content"][0]["text"]
        return text

    def expect_error(self, part: str) -> str:
        """Waits for a line on standard error that contains `part`."""
        while (line := self.errors.get(timeout=PATIENCE)) is not None:
            if part in line:
                return line
        raise AssertionError(f"{part!r} never appeared in {''.join(self.said)}")

    def end_of_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the program hangs: {''.join(self.said)}") from None

    def stderr(self) -> str:
        """Everything the program, which has ended, wrote to standard error."""
        for reader in self.readers:
            reader.join(PATIENCE)
        return "".join(self.said)


@pytest.fixture
def program(tmp_path: Path) -> Generator[Callable[..., Program]]:
    started: list[Program] = []

    def start(code: str, *arguments: str, **environment: str) -> Program:
        started.append(Program(code, tmp_path, *arguments, **environment))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
        for stream in (one.process.stdin, one.process.stdout, one.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Runs a program to its end and gives its standard output; fails when it hangs, fails or warns."""

    def run(code: str) -> str:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-X", "dev", str(path)], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


class Asking:
    """Runs questions inside a tool and gives what they came to."""

    def __init__(self) -> None:
        self.app = Server("asking")
        self.app.add_tool(self._ask, name="ask")

    async def _ask(self, ctx: Context) -> None:
        try:
            self.outcome: Any = await self.question(ctx)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.outcome = error

    async def __call__(self, question: Question, revision: str = LEGACY, **options: Any) -> Any:
        self.question = question
        async with testing.connect(self.app, revision=revision, **options) as client:
            await client.call_tool("ask")
        return self.outcome


@pytest.fixture
def asking() -> Asking:
    return Asking()


CHILD = """
import asyncio, os, sys
from tricorn import Context, Server

app = Server("child", "7", page_size=2)

@app.tool
async def add(a: int, b: int) -> int:
    return a + b

@app.tool
async def environment(name: str) -> str:
    return os.environ.get(name, "-") + " " + os.path.basename(os.getcwd())

@app.tool
async def count(ctx: Context) -> str:
    for n in range(3):
        ctx.progress(n, 3)
    return "counted"

@app.tool
async def slow() -> str:
    print("slow started", file=sys.stderr, flush=True)
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        print("slow cancelled", file=sys.stderr, flush=True)
        raise
    return "?"

@app.tool
async def die() -> None:
    os._exit(3)

@app.tool
async def complain() -> str:
    print("this is a complaint", file=sys.stderr, flush=True)
    return "complained"

app.run()
"""


@pytest.fixture(scope="session")
def server_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("server") / "server.py"
    path.write_text(CHILD, encoding="utf-8")
    return path


@pytest.fixture
def command(server_file: Path) -> list[str]:
    return [sys.executable, str(server_file)]


class Heard:
    """Lines of a child on standard error, to wait for in coroutines and threads."""

    def __init__(self) -> None:
        self.lines: queue.Queue[str] = queue.Queue()

    def wait(self, text: str) -> None:
        while text not in self.lines.get(timeout=30):
            pass

    async def hear(self, text: str) -> None:
        await asyncio.to_thread(self.wait, text)


@pytest.fixture
def heard() -> Heard:
    return Heard()


# -- rounds of questions

REVISIONS = ["2025-06-18", "2025-11-25", "2026-07-28"]
MODERN = REVISIONS[-1]


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> str:
    revision: str = request.param
    return revision


class User:
    """Answers every form with the message it is asked by, and keeps the messages."""

    def __init__(self, content: Callable[[str], Any] = lambda message: {"value": message}) -> None:
        self.content = content
        self.asked: list[str] = []

    async def __call__(self, message: str) -> Any:
        self.asked.append(message)
        return self.content(message)


@pytest.fixture
def failures(app: Server) -> list[Exception]:
    """Errors that the server's `on_error` hears."""
    heard: list[Exception] = []
    app._host.on_error = lambda error, _: heard.append(error)
    return heard


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Any:
    """Nothing is written to any log, and nothing is kept."""
    yield
    gc.collect()  # that is when asyncio tells of exceptions that nobody looked at
    assert not [*caplog.get_records("call"), *caplog.records]


async def called(app: Server, revision: str, user: User | None = None, name: str = "tool", **options: Any) -> str:
    async with testing.connect(app, revision=revision, elicitation=user, **options) as client:
        result = await client.call_tool(name)
    assert not result.is_error, result.text
    assert not app._host.asked
    assert not app._host.running
    return result.text


# -- changes


def full(app: Server) -> Server:
    """One of everything."""
    app.add_tool(lambda: "t", name="t")
    app.add_resource("a://one", "1")
    app.add_resource("a://many/{n}", lambda n: n)
    app.add_prompt(lambda: "p", name="p")
    return app


async def until(is_so: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), PATIENCE)


def gauges(app: Server) -> tuple[int, int]:
    metrics = app.metrics()
    return metrics["listeners"], metrics["in_flight"]


async def idle(app: Server) -> None:
    await until(lambda: gauges(app) == (0, 0))


# -- authorization


@pytest.fixture
def authority() -> Generator[AuthorizationServer]:
    server = AuthorizationServer()
    yield server
    server.close()


@pytest.fixture
def visitor() -> Visitor:
    return Visitor()
