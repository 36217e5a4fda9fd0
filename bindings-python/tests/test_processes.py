"""Processes and threads of the user: they behave beside a server as without one, and none of them keeps it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from .conftest import PATIENCE, Program

Start = Callable[..., Program]

PRELUDE = """
    import asyncio, logging, multiprocessing, os, signal, subprocess, sys, threading, time
    from tricorn import Server

    app = Server("processes")
    fork = multiprocessing.get_context("fork") if hasattr(os, "fork") else None

    @app.tool
    def read() -> str:
        count = [sys.executable, "-c", "import sys; print(len(sys.stdin.buffer.read()))"]
        done = subprocess.run(count, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode().strip()

    @app.tool
    def line() -> str:
        return repr(sys.stdin.readline())

    @app.tool
    def ask() -> str:
        try:
            return input("? ")
        except EOFError:
            return "the end"

    @app.tool
    def terminate() -> str:
        child = fork.Process(target=time.sleep, args=(600,))
        child.start()
        child.terminate()
        child.join()
        return str(child.exitcode)

    @app.tool
    async def terminate_in_loop() -> str:
        return terminate()

    def grandchild(pipe):
        child = fork.Process(target=time.sleep, args=(600,))
        child.start()
        child.terminate()
        child.join()
        pipe.send(child.exitcode)

    @app.tool
    def terminate_far() -> str:
        near, far = fork.Pipe()
        child = fork.Process(target=grandchild, args=(far,))
        child.start()
        code = near.recv()
        child.join()
        return f"{code} {child.exitcode}"

    @app.tool
    def pool() -> str:
        with fork.Pool(2) as workers:
            return str(sum(workers.map(abs, range(-10, 0))))

    def handlers(pipe):
        pipe.send([signal.getsignal(s) in (signal.SIG_DFL, signal.default_int_handler) for s in (15, 2)])

    @app.tool
    def inherited() -> str:
        near, far = fork.Pipe()
        child = fork.Process(target=handlers, args=(far,))
        child.start()
        child.join()
        return str(near.recv())

    @app.tool
    def noisy() -> str:
        print("x" * 8192)
        logging.getLogger("app").error("y" * 200)
        raise ValueError("no")

    @app.tool
    async def says() -> str:
        print("without an end", end="")
        return "said"
"""


@pytest.fixture
def server(program: Start) -> Program:
    started = program(PRELUDE + "    app.run()\n")
    started.start()
    return started


def answers(server: Program, count: int) -> dict[int, str]:
    received = [server.receive() for _ in range(count)]
    return {answer["id"]: answer["result"]["content"][0]["text"] for answer in received}


def test_a_child_reads_nothing_of_the_protocol(server: Program) -> None:
    server.call(0, "read")
    for number in range(1, 100):
        server.call(number, "line" if number % 2 else "ask")
    expected = {number: "''" if number % 2 else "the end" for number in range(1, 100)}
    assert answers(server, 100) == {0: "0", **expected}
    server.end_of_input()
    assert server.wait() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="fork is safe enough there alone")
@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("terminate", "-15"),
        ("terminate_in_loop", "-15"),
        ("terminate_far", "-15 0"),
        ("pool", "55"),
        ("inherited", "[True, True]"),
    ],
)
def test_children_made_by_fork(server: Program, tool: str, expected: str) -> None:
    for number in range(6):
        server.call(number, tool)
        assert server.text() == expected
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


@pytest.mark.parametrize("how", ["input", signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "alive",
    [
        "threading.Thread(target=time.sleep, args=(600,)).start()",
        "__import__('concurrent.futures').futures.ThreadPoolExecutor().submit(time.sleep, 600)",
    ],
)
def test_a_thread_does_not_keep_the_program(program: Start, how: signal.Signals | str, alive: str) -> None:
    server = program(PRELUDE + f"    {alive}\n    app.run()\n    print('after run', file=sys.stderr)\n")
    server.start()
    if isinstance(how, str):
        server.end_of_input()
    else:
        server.signal(how)
    assert server.wait() == (130 if how == signal.SIGINT else 0)
    assert ("after run" in server.stderr()) == (how != signal.SIGINT)


@pytest.mark.parametrize("how", ["input", signal.SIGTERM, signal.SIGINT])
def test_a_handler_that_blocks_the_loop_does_not_keep_the_program(program: Start, how: signal.Signals | str) -> None:
    server = program(
        PRELUDE
        + """
    @app.tool
    async def block() -> str:
        print("blocks", file=sys.stderr, flush=True)
        time.sleep(600)

    app.run()
"""
    )
    server.start()
    server.call(1, "block")
    server.expect_error("blocks")
    if isinstance(how, str):
        server.end_of_input()
    else:
        server.signal(how)
    assert server.wait() == (130 if how == signal.SIGINT else 0)


def test_a_time_limit_for_all_sockets_is_none_for_signals(program: Start) -> None:
    server = program(
        PRELUDE
        + """
    import socket
    socket.setdefaulttimeout(0.05)

    @app.tool
    async def rest() -> str:
        await asyncio.sleep(0.5)
        return "rested"

    app.run()
"""
    )
    server.start()
    server.call(1, "rest")
    assert server.text() == "rested"
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "Traceback" not in server.stderr()


Raw = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def raw(tmp_path: Path) -> Generator[Raw]:
    """Starts a program with these standard streams, of which nothing is read meanwhile."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str, **streams: int) -> subprocess.Popen[bytes]:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(code), encoding="utf-8")
        given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, **streams}
        environment = {**os.environ, "PYTHONUNBUFFERED": ""}
        process = subprocess.Popen([sys.executable, str(path)], env=environment, **given)  # type: ignore[call-overload]
        started.append(process)
        return started[-1]

    yield start
    for process in started:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        process.wait()


def modern(number: int, tool: str) -> bytes:
    meta = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
    return (
        f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call",'
        f'"params":{{"name":"{tool}","arguments":{{}},"_meta":{meta}}}}}\n'
    ).encode()


@pytest.mark.parametrize("ending", ["input", "signal"])
def test_nobody_reads_standard_error(raw: Raw, ending: str) -> None:
    near, far = os.pipe()
    process = raw(PRELUDE + "    app.run()\n", stderr=far)
    os.close(far)
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(60):
        process.stdin.write(modern(number, "noisy" if number % 2 else "says"))
        process.stdin.flush()
        assert process.stdout.readline()
    if ending == "input":
        process.stdin.close()
    else:
        process.terminate()
    assert process.wait(PATIENCE) == 0
    os.close(near)


def test_nobody_reads_standard_output(raw: Raw) -> None:
    near, far = os.pipe()
    process = raw(PRELUDE + "    app.run()\n", stdout=far)
    os.close(far)
    os.close(near)
    assert process.wait(PATIENCE) == 0  # its input stays open


@pytest.mark.parametrize("closed", [0, 1])
def test_standard_streams_that_are_closed_are_named(tmp_path: Path, closed: int) -> None:
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PRELUDE + "    app.run()\n"), encoding="utf-8")
    words = f'exec "$0" "$1" {closed}>&-'
    command = ["sh", "-c", words, sys.executable, str(path)]
    done = subprocess.run(command, input=b"", capture_output=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    name = ("input", "output")[closed]
    assert f"standard {name} is closed" in done.stderr.decode()


def test_the_streams_are_given_back(raw: Raw) -> None:
    code = """
        import asyncio, os, sys
        from tricorn import Server

        app = Server("x")

        async def main():
            before = [os.fstat(fd).st_ino for fd in (0, 1)]
            serving = asyncio.create_task(app.serve_stdio())
            while os.fstat(0).st_ino == before[0]:
                await asyncio.sleep(0.01)
            while os.fstat(1).st_ino == before[1]:
                await asyncio.sleep(0.01)
            print("during", end="")
            app.close()
            await serving
            assert before == [os.fstat(fd).st_ino for fd in (0, 1)]
            print("after", sys.stdin.readline().strip())

        asyncio.run(main())
    """
    process = raw(code, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stderr is not None
    said = process.stderr.readline() + process.stderr.read1(100)  # type: ignore[attr-defined]
    process.stdin.write(b"a line\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"after a line\n"
    assert process.wait(PATIENCE) == 0
    assert b"during" in said + process.stderr.read()


@pytest.mark.parametrize("ending", ["killed", "terminated", "exits", "fails"])
def test_a_client_that_did_not_close_leaves_no_server(ending: str) -> None:
    # A server that ignores the end of its input, and holds standard error as long as it lives.
    server = """
        read -r line
        id=$(printf %s "$line" | sed 's/.*"id":\\([0-9]*\\).*/\\1/')
        result='{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\\n' "$id" "$result"
        sleep 600 &
        wait
    """
    code = """
        import asyncio, os, sys
        from tricorn import connect

        async def main():
            client = await connect(["sh", "-c", sys.argv[2]], revision="legacy", shutdown_grace=600)
            print("open", flush=True)
            if sys.argv[1] == "exits":
                os._exit(3)
            if sys.argv[1] == "fails":
                raise RuntimeError("as expected")
            await asyncio.sleep(600)

        asyncio.run(main())
    """
    command = [sys.executable, "-c", textwrap.dedent(code), ending, server]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        if ending in ("killed", "terminated"):
            process.send_signal(signal.SIGKILL if ending == "killed" else signal.SIGTERM)
        # The end of what both of them hold.
        said = process.communicate(timeout=PATIENCE)[1].decode()
        assert ending != "fails" or "as expected" in said
