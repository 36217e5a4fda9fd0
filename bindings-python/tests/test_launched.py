"""Programs that are launched, and what launches them: odd descriptors, terminals, tasks and limits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tricorn import Server, TransportError, connect, testing

from .conftest import INITIALIZE, PATIENCE

SERVER = """
import sys
from tricorn import Server

app = Server("launched")

@app.tool
def hello(size: int = 5) -> str:
    return "x" * size

app.run()
"""


@pytest.fixture
def server(tmp_path: Path) -> list[str]:
    path = tmp_path / "server.py"
    path.write_text(SERVER, encoding="utf-8")
    return [sys.executable, str(path)]


async def test_clients_are_closed_in_any_order_and_by_any_task(server: list[str]) -> None:
    first, second = connect(server), connect(server)
    await asyncio.create_task(first.__aenter__())
    client = await second.__aenter__()
    await asyncio.create_task(first.__aexit__(None, None, None))
    assert (await client.call_tool("hello")).text == "xxxxx"
    await asyncio.create_task(second.__aexit__(None, None, None))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs a descriptor of a process")
async def test_a_connect_that_is_given_up_leaves_no_process() -> None:
    silent = "import os, sys, time; print(os.getpid(), file=sys.stderr, flush=True); time.sleep(600)"
    loop = asyncio.get_running_loop()
    started, gone = loop.create_future(), asyncio.Event()
    connecting = asyncio.ensure_future(
        connect([sys.executable, "-c", silent], on_stderr=started.set_result, shutdown_grace=0.1).__aenter__()
    )
    process = os.pidfd_open(int(await asyncio.wait_for(started, PATIENCE)))
    try:
        loop.add_reader(process, gone.set)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await asyncio.wait_for(gone.wait(), PATIENCE)
    finally:
        loop.remove_reader(process)
        os.close(process)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors")
async def test_a_program_that_cannot_be_started_for_want_of_descriptors(server: list[str]) -> None:
    import resource

    async with connect(server) as client:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        # The limit is on numbers: what is open stays so, and nothing more can be had whatever is closed meanwhile.
        resource.setrlimit(resource.RLIMIT_NOFILE, (4, before[1]))
        try:
            with pytest.raises((TransportError, OSError), match="Too many open files"):
                await connect(server).__aenter__()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        # Nobody else has noticed.
        assert (await client.call_tool("hello")).text == "xxxxx"
        async with connect(server) as other:
            assert (await other.call_tool("hello")).text == "xxxxx"


class Raw:
    """A program on descriptors of one's own."""

    def __init__(self, command: list[str], stdin: int, stdout: int) -> None:
        self.process = subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE)

    def ends(self) -> tuple[int, str]:
        try:
            said = self.process.communicate(timeout=PATIENCE)[1]
        finally:
            self.process.kill()
        return self.process.returncode, said.decode()


@pytest.mark.parametrize(("how", "status"), [("signal", 130), ("end", 0), ("hangup", 0)])
def test_one_ctrl_c_ends_a_server_at_a_terminal(server: list[str], how: str, status: int) -> None:
    near, far = os.openpty()
    with contextlib.ExitStack() as files:
        answers, out = os.pipe()
        terminal = files.enter_context(open(near, "wb", buffering=0))
        lines = files.enter_context(open(answers, "rb"))
        program = Raw(server, far, out)
        os.close(far)
        os.close(out)
        terminal.write(b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n')
        assert json.loads(lines.readline())["id"] == 7
        if how == "signal":
            program.process.send_signal(signal.SIGINT)
        elif how == "end":
            terminal.write(b"\x04")
        else:
            terminal.close()
        assert program.ends() == (status, "")


def test_streams_that_do_not_block(server: list[str]) -> None:
    (stdin, requests), (answers, stdout) = os.pipe(), os.pipe()
    for end in (stdin, stdout):
        os.set_blocking(end, False)
    with open(requests, "wb", buffering=0) as to, open(answers, "rb") as lines:
        program = Raw(server, stdin, stdout)
        os.close(stdin)
        os.close(stdout)

        def ask(message: dict[str, Any]) -> dict[str, Any]:
            to.write(json.dumps(message).encode() + b"\n")
            answer: dict[str, Any] = json.loads(lines.readline())
            return answer

        assert ask(INITIALIZE)["id"] == 0
        # More than a pipe takes: somebody has to wait for its reader.
        params = {"name": "hello", "arguments": {"size": 3_000_000}}
        answer = ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert len(answer["result"]["content"][0]["text"]) == 3_000_000
        to.close()
        assert program.ends() == (0, "")


async def test_a_plain_tool_runs_a_loop_of_its_own(app: Server) -> None:
    @app.tool
    def one() -> str:
        return "one"

    @app.tool
    def nested() -> str:
        async def asked() -> str:
            async with connect(app) as inner:
                return (await inner.call_tool("one")).text

        return asyncio.run(asked())

    @app.tool
    def listening() -> str:
        async def asked() -> str:
            other = Server("other")
            other.tool(one)
            async with other.listen(port=0) as url, connect(url) as inner:
                return (await inner.call_tool("one")).text

        return asyncio.run(asked())

    async with testing.connect(app) as client:
        for name in ("nested", "listening"):
            assert (await client.call_tool(name)).text == "one"
