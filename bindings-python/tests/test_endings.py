"""Ends of programs: their own handlers and exit functions, what they have printed before, ports that are free again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from tricorn import ClosedError, MisuseError, Server, connect

from .conftest import INITIALIZE, PATIENCE, Program

Start = Callable[..., Program]

PRELUDE = """
    import atexit, contextlib, signal, sys, threading, time
    from tricorn import Server

    def say(*words):
        print(*words, file=sys.stderr, flush=True)

    @contextlib.asynccontextmanager
    async def lifespan(server):
        try:
            yield
        finally:
            say("lifespan left")

    app = Server("endings", lifespan=lifespan)

    @app.tool
    def hello() -> str:
        return "hello"

    atexit.register(say, "at exit")
"""

TERM, INT = signal.SIGTERM, signal.SIGINT
HUP = getattr(signal, "SIGHUP", TERM)

OWN = """
    def own(number, frame):
        say("own handler")
        {more}

    signal.signal({number}, own)
"""

RUN = """
    app.run({http})
    say("after run")
"""


def lines(server: Program) -> list[str]:
    # On a machine that has other things to do, asyncio tells what took it long.
    said = [line.strip() for line in server.stderr().splitlines()]
    return [line for line in said if not line.startswith("Executing <")]


@pytest.mark.parametrize("http", ["", "0"])
@pytest.mark.parametrize(
    ("number", "status", "after"),
    [(TERM, 0, ["after run"]), (INT, 130, []), (HUP, 129, [])],
)
def test_signals_that_end_a_program(
    program: Start, http: str, number: signal.Signals, status: int, after: list[str]
) -> None:
    server = begun(program, PRELUDE + RUN.format(http=http), http)
    server.signal(number)
    assert server.wait() == status
    ready = [line for line in lines(server) if not line.startswith("ready")]
    assert ready == ["lifespan left", *after, "at exit"]


@pytest.mark.parametrize("http", ["", "0"])
@pytest.mark.parametrize("number", [TERM, INT])
@pytest.mark.parametrize(
    ("more", "status", "after"),
    [("pass", 0, ["after run"]), ("sys.exit(7)", 7, []), ("sys.exit()", 0, []), ("sys.exit('why')", 1, ["why"])],
)
def test_a_handler_of_the_program_is_called_too(
    program: Start, http: str, number: signal.Signals, more: str, status: int, after: list[str]
) -> None:
    own = OWN.format(number=int(number), more=more)
    server = begun(program, PRELUDE + own + RUN.format(http=http), http)
    server.signal(number)
    assert server.wait() == status
    said = [line for line in lines(server) if not line.startswith("ready")]
    assert said == ["own handler", "lifespan left", *after, "at exit"]


@pytest.mark.parametrize(
    ("number", "handler"),
    [(TERM, "signal.SIG_IGN"), (HUP, "signal.SIG_IGN"), (HUP, "lambda number, frame: say('read anew')")],
)
def test_what_is_no_end_for_the_program(program: Start, number: signal.Signals, handler: str) -> None:
    server = program(PRELUDE + f"    signal.signal({int(number)}, {handler})\n" + RUN.format(http=""))
    server.start()
    server.signal(number)
    server.call(1, "hello")
    assert server.text() == "hello"
    server.end_of_input()
    assert server.wait() == 0
    assert "after run" in lines(server)
    assert ("read anew" in lines(server)) == ("read anew" in handler)


def test_a_handler_that_was_set_meanwhile_stays(program: Start) -> None:
    server = program(
        PRELUDE
        + """
    @app.tool
    async def own() -> str:
        signal.signal(signal.SIGTERM, lambda number, frame: say("set meanwhile"))
        return "set"

    app.run()
    signal.raise_signal(signal.SIGTERM)
"""
    )
    server.start()
    server.call(1, "own")
    assert server.text() == "set"
    server.end_of_input()
    assert server.wait() == 0
    assert "set meanwhile" in lines(server)


@pytest.mark.parametrize("http", ["", "0"])
@pytest.mark.parametrize(
    ("name", "status", "after"),
    [("SIGINT", 130, []), ("SIGTERM", 0, ["after run"]), ("SIGBREAK", 0, ["after run"])],
)
def test_a_signal_that_comes_to_another_thread_wakes_the_loop(
    program: Start, http: str, name: str, status: int, after: list[str]
) -> None:
    """As all of them do on Windows."""
    if not hasattr(signal, name):
        pytest.skip(f"there is no {name} here")
    number = int(getattr(signal, name))
    raised = f"    threading.Timer(1, signal.raise_signal, args=({number},)).start()\n"
    server = begun(program, PRELUDE + raised + RUN.format(http=http), http)
    assert server.wait() == status
    ready = [line for line in lines(server) if not line.startswith("ready")]
    assert ready == ["lifespan left", *after, "at exit"]


PRINTING = """
    @app.tool
    def careless() -> str:
        import os, subprocess
        print("printed \\u2713")
        os.write(1, b"written\\n")
        subprocess.run([sys.executable, "-c", "print('of a child', flush=True)"], check=True)
        return repr(sys.stdin.readline())

    print("before")
    own = sys.stdout.errors
    app.run()
    assert sys.stdout.errors == own
    print("after")
"""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "ascii:surrogateescape", "latin-1:strict"])
def test_what_is_printed_meanwhile_is_said_and_fails_nothing(program: Start, encoding: str) -> None:
    server = program(PRELUDE + PRINTING, PYTHONIOENCODING=encoding)
    server.start()
    server.call(1, "careless")
    assert server.text() == "''"
    server.end_of_input()
    assert server.lines.get(timeout=PATIENCE) == "after"
    assert server.wait() == 0
    said = lines(server)
    printed = "printed \u2713" if encoding == "utf-8" else r"printed \u2713"
    assert {"before", printed, "written", "of a child"} <= {*said}


def test_a_server_that_is_refused_gives_no_streams_back(program: Start) -> None:
    server = program(
        PRELUDE
        + """
    import asyncio
    from tricorn import MisuseError

    @app.tool
    async def other() -> str:
        try:
            await Server("other").serve_stdio()
        except MisuseError as error:
            print("refused:", error)
            return str(error)

    app.run()
    print("after")
"""
    )
    server.start()
    server.call(1, "other")
    assert "in use" in server.text()
    server.end_of_input()
    assert server.lines.get(timeout=PATIENCE) == "after"
    assert server.wait() == 0
    assert [line for line in lines(server) if line.startswith("refused: the standard streams are in use")]


@pytest.mark.parametrize("how", ["input", TERM, INT])
@pytest.mark.parametrize(
    ("alive", "last"),
    [
        # Something else of the program is alive.
        ("threading.Thread(target=time.sleep, args=(600,)).start()", "at exit"),
        # Its own end takes longer than what else is alive may go on.
        ("atexit.register(lambda: (time.sleep(2), say('slept')))", "at exit"),
        # One of its last functions never ends.
        ("atexit.register(lambda: say('hangs'))", "at exit"),
    ],
)
def test_functions_for_the_exit_run(program: Start, how: signal.Signals | str, alive: str, last: str) -> None:
    server = program(PRELUDE + f"    {alive}\n" + RUN.format(http=""))
    server.start()
    if isinstance(how, str):
        server.end_of_input()
    else:
        server.signal(how)
    assert server.wait() == (130 if how == INT else 0)
    assert lines(server)[-1] == last
    assert ("slept" in lines(server)) == ("slept" in alive)


@pytest.mark.parametrize(
    "prints",
    [
        "print('starting up')",
        "sys.stdout.write('starting up')",
        "sys.stdout.buffer.write(b'starting up')",
        "print('starting up' * 500)",
        "print('starting up \\u2026', end='')",
    ],
)
def test_what_was_printed_before_is_no_message(program: Start, prints: str) -> None:
    server = program(PRELUDE + f"    {prints}\n" + RUN.format(http=""))
    server.start()  # the first line is the answer
    server.call(1, "hello")
    assert server.text() == "hello"
    server.end_of_input()
    assert server.wait() == 0
    assert "starting up" in server.stderr()


def begun(program: Start, code: str, http: str) -> Program:
    server = program(code)
    if http:
        server.expect_error("ready")
    else:
        server.start()
    return server


# -- ports


def port_of(url: str) -> int:
    found = re.search(r":(\d+)/", url)
    assert found is not None
    return int(found[1])


def server_of(**options: Any) -> Server:
    app = Server("ports", **options)

    @app.tool
    async def hello() -> str:
        return "hello"

    return app


async def test_a_port_is_free_when_its_block_has_ended() -> None:
    app = server_of()
    async with contextlib.AsyncExitStack() as clients:
        port = 0
        for _ in range(20):
            async with app.listen(port=port) as url:
                port = port_of(url)
                # It stays: nothing that a client does holds up the end.
                client = await clients.enter_async_context(connect(url))
                assert (await client.call_tool("hello")).text == "hello"


async def test_a_port_is_free_when_serving_was_cancelled() -> None:
    app, port = server_of(), 0
    for _ in range(20):
        listening = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(app.serve_http(port=port, on_listening=listening.set_result))
        await asyncio.wait((serving, listening), return_when=asyncio.FIRST_COMPLETED)
        port = port_of(listening.result())
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", port))


async def test_sockets_that_say_nothing_do_not_hold_up_the_end() -> None:
    app, loop = server_of(), asyncio.get_running_loop()
    with contextlib.ExitStack() as sockets:
        async with app.listen(port=0) as url:
            for said in (b"", b"POST /mcp HTTP/1.1\r\nHost: x", b"POST /mcp HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"):
                one = sockets.enter_context(socket.create_connection(("127.0.0.1", port_of(url))))
                one.sendall(said)
            begun = loop.time()
        assert loop.time() - begun < PATIENCE / 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"host": 8000}, "a port is given as port=8000"),
        ({"host": "0.0.0.0:9000"}, "the port is an option of its own"),
        ({"host": "[::1]:9000"}, r"the port is an option of its own"),
        ({"host": "http://127.0.0.1"}, "URL"),
    ],
)
async def test_an_address_in_the_place_of_a_host_is_refused(given: dict[str, Any], said: str) -> None:
    app = server_of()
    with pytest.raises(MisuseError, match=said):
        async with app.listen(**given):
            raise AssertionError
    with pytest.raises(MisuseError, match=said):
        await app.serve_http(**given)


async def test_addresses_with_colons() -> None:
    async with server_of().listen("::1", 0) as url, server_of().listen("[::1]", 0) as other:
        assert url.startswith("http://[::1]:")
        assert other.startswith("http://[::1]:")


# -- within its own end


@pytest.mark.parametrize("at", ["start", "stop"])
async def test_a_lifespan_that_closes_its_server(at: str) -> None:
    said: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        if at == "start":
            server.close()
        said.append("started")
        yield
        server.close()
        said.append("stopped")

    app = server_of(lifespan=lifespan)

    async def served() -> str:
        async with app.listen(port=0) as url, connect(url) as client:
            return (await client.call_tool("hello")).text

    (outcome,) = await asyncio.gather(asyncio.wait_for(served(), PATIENCE), return_exceptions=True)
    assert isinstance(outcome, ClosedError) if at == "start" else outcome == "hello"
    assert said == ["started", "stopped"]


async def test_a_lifespan_that_closes_its_mount() -> None:
    stopped = asyncio.Event()

    @contextlib.asynccontextmanager
    async def lifespan(server: Server) -> AsyncGenerator[None]:
        yield
        await mounted.close()
        stopped.set()

    app = server_of(lifespan=lifespan)
    mounted = app.asgi()
    sent: list[Any] = []
    received = iter([{"type": "http.request", "body": json.dumps(INITIALIZE).encode()}])

    async def receive() -> dict[str, Any]:
        for message in received:
            return message
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    names = [
        ("host", "127.0.0.1"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ]
    headers = [(name.encode(), value.encode()) for name, value in names]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}
    await mounted(scope, receive, send)
    assert sent[0]["status"] == 200
    await asyncio.wait_for(mounted.close(), PATIENCE)
    assert stopped.is_set()


CLIENT_THAT_IS_STOPPED = """
    import asyncio, os, signal, subprocess, sys
    from tricorn import connect

    SERVER = (
        "import time\\nfrom tricorn import Server\\napp = Server('slow')\\n"
        "@app.tool\\ndef late() -> str:\\n    time.sleep(0.3)\\n    return 'there'\\napp.run()\\n"
    )

    async def main():
        async with connect([sys.executable, "-c", SERVER]) as client:
            await client.list_tools()
            # Stops this process while the answer is on its way, and lets it go on after the timeout.
            other = f"sleep 0.1; kill -STOP {os.getpid()}; sleep 2.5; kill -CONT {os.getpid()}"
            with subprocess.Popen(["sh", "-c", other]):
                print((await client.call_tool("late", timeout=1.5)).text)

    asyncio.run(main())
"""


def test_an_answer_that_came_while_the_process_was_stopped_is_read_before_its_timeout() -> None:
    program = textwrap.dedent(CLIENT_THAT_IS_STOPPED)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (0, "there\n"), done.stderr
