"""Forked processes: in each a server begins anew, with all that it offers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tricorn import connect

from .conftest import PATIENCE, Program

Start = Callable[..., Program]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="fork is safe enough there alone")

APP = """
    import asyncio, contextlib, multiprocessing, os, sys
    from tricorn import Client, ClosedError, Context, Extension, MisuseError, Server, connect

    @contextlib.asynccontextmanager
    async def lifespan(server):
        sys.stderr.write(f"started {os.getpid()}\\n")
        try:
            yield os.getpid()
        finally:
            sys.stderr.write(f"stopped {os.getpid()}\\n")

    app = Server("forked", lifespan=lifespan)

    @app.tool
    def plain(ctx: Context) -> bool:
        return ctx.state == os.getpid() == int(os.environ.get("PID", os.getpid()))

    @app.tool
    async def pid(ctx: Context) -> int:
        return ctx.state

    @app.tool
    def gone() -> None: ...

    @app.tool(name="shown")
    def old() -> None: ...

    @app.tool(name="shown", replace=True)
    def new() -> str:
        return "new"

    @app.tool
    def hidden() -> None: ...

    app.remove_tool("gone")
    app.set_enabled("tool", "hidden", False)

    @app.resource("a://b")
    def resource() -> str:
        return "text"

    @app.prompt
    def prompt(word: str) -> str:
        return word

    @app.middleware
    async def around(request, context, call_next):
        context.values["around"] = os.getpid()
        return await call_next(request, context)

    async def use(where):
        async with connect(where) as client:
            names = sorted(tool.name for tool in await client.list_tools())
            assert names == ["pid", "plain", "shown"], names
            assert (await client.call_tool("plain")).text == "true"
            assert (await client.call_tool("shown")).text == "new"
            assert (await client.read_resource("a://b")).text == "text"
            assert [p.name for p in await client.list_prompts()] == ["prompt"]
            return int((await client.call_tool("pid")).text)

    def child(work):
        number = os.fork()
        if number == 0:
            status = 1
            try:
                work()
                status = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(number, 0)
        assert status == 0, status
        return number
"""


def done(tmp_path: Path, code: str) -> list[str]:
    """Runs a program to its end; what it said on standard error."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(APP) + textwrap.dedent(code), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=PATIENCE, check=False, env={**os.environ}
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stderr.splitlines()


@pytest.mark.parametrize("used_before", [False, True])
def test_a_server_begins_anew_in_each_forked_process(tmp_path: Path, used_before: bool) -> None:
    said = done(
        tmp_path,
        f"""
        def work():
            assert asyncio.run(use(app)) == os.getpid()
            child(lambda: asyncio.run(use(app)))  # of the second generation

        if {used_before}:
            asyncio.run(use(app))
        first, second = child(work), child(work)
        assert asyncio.run(use(app)) == os.getpid()
        """,
    )
    pids = [line.split()[1] for line in said]
    assert len(set(pids)) == 5
    assert sorted(said) == sorted(f"{word} {pid}" for pid in pids[::2] for word in ("started", "stopped"))


def test_what_is_added_and_removed_in_a_child_is_its_own(tmp_path: Path) -> None:
    done(
        tmp_path,
        """
        async def names():
            async with connect(app) as client:
                return sorted(tool.name for tool in await client.list_tools())

        def work():
            @app.tool
            def another() -> int:
                return 1
            app.remove_tool("plain")
            app.set_enabled("tool", "hidden", True)
            assert asyncio.run(names()) == ["another", "hidden", "pid", "shown"]

        child(work)
        assert asyncio.run(names()) == ["pid", "plain", "shown"]
        """,
    )


def test_a_child_of_a_server_that_serves(tmp_path: Path) -> None:
    said = done(
        tmp_path,
        """
        def work():
            assert asyncio.run(use(app)) == os.getpid()
            async def listening():
                async with app.listen(port=0) as url:
                    return await use(url)
            assert asyncio.run(listening()) == os.getpid()

        @app.tool
        def forks() -> str:
            app.remove_tool("forks")
            child(work)
            return "forked"

        async def main():
            async with app.listen(port=0) as url, connect(url) as client:
                assert (await client.call_tool("forks")).text == "forked"
                child(lambda: os._exit(0))
                assert await use(url) == os.getpid()

        asyncio.run(main())
        """,
    )
    assert said[0].split()[1] == said[-1].split()[1]  # it started first and stopped last, once
    assert len(said) == 6


def test_children_of_multiprocessing_make_clients_and_servers(tmp_path: Path) -> None:
    done(
        tmp_path,
        """
        def work(number):
            own = Server("own")

            @own.tool
            def twice(n: int) -> int:
                return 2 * n

            async def main():
                async with connect(own) as client:
                    return int((await client.call_tool("twice", {"n": number})).text)

            with Client(own) as client:
                assert int(client.call_tool("twice", {"n": 2}).text) == 4
            return asyncio.run(main()), asyncio.run(use(app)) == os.getpid()

        if __name__ == "__main__":
            asyncio.run(use(app))
            with multiprocessing.get_context("fork").Pool(2) as pool:
                assert pool.map(work, [1, 2, 3]) == [(2, True), (4, True), (6, True)]
        """,
    )


def test_a_client_belongs_to_its_process(tmp_path: Path) -> None:
    done(
        tmp_path,
        """
        async def main():
            async with connect(app) as client:
                async def other():
                    try:
                        await client.call_tool("pid")
                    except MisuseError:
                        await client.close()
                        return
                    raise AssertionError
                child(lambda: asyncio.run(other()))
                assert int((await client.call_tool("pid")).text) == os.getpid()

        asyncio.run(main())
        with Client(app) as client:
            def other():
                try:
                    client.call_tool("pid")
                except (MisuseError, ClosedError):
                    client.close()
                    return
                raise AssertionError
            child(other)
            assert int(client.call_tool("pid").text) == os.getpid()
        """,
    )


def test_what_the_parent_is_about_does_not_end_in_a_child(tmp_path: Path) -> None:
    said = done(
        tmp_path,
        """
        import gc
        started = asyncio.Event()

        @app.tool(name="waits")
        async def waits() -> None:
            started.set()
            try:
                await asyncio.sleep(600)
            finally:
                sys.stderr.write(f"ended {os.getpid()}\\n")

        def work():
            app.remove_tool("waits")
            asyncio.run(use(app))
            gc.collect()

        async def main():
            async with connect(app) as client:
                call = asyncio.create_task(client.call_tool("waits"))
                await started.wait()
                child(work)
                call.cancel()
                await asyncio.wait([call])

        asyncio.run(main())
        """,
    )
    parent = said[0].split()[1]
    assert [line for line in said if line.startswith("ended")] == [f"ended {parent}"]


@pytest.mark.parametrize("preload", [["--preload"], []])
async def test_gunicorn(tmp_path: Path, preload: list[str]) -> None:
    pytest.importorskip("gunicorn")
    mounted = "mcp = app.asgi(stateless=True)\n"
    (tmp_path / "served.py").write_text(textwrap.dedent(APP) + mounted, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "gunicorn.app.wsgiapp", "-k", "asgi", "-w", "2", "-b", f"127.0.0.1:{port}", "--no-control-socket"]
    process = subprocess.Popen(  # noqa: ASYNC220 - it is read by lines here
        [sys.executable, *command, *preload, "served:mcp"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        said: list[str] = []
        while sum("ASGI server listening" in line for line in said) < 2:
            said.append(process.stderr.readline())
            assert said[-1], said
        pids: set[str] = set()
        for number in range(20):
            async with connect(f"http://127.0.0.1:{port}", revision=(None, "2025-11-25")[number % 2]) as client:
                assert (await client.call_tool("plain")).text == "true"
                pids.add((await client.call_tool("pid")).text)
        assert pids
        assert str(process.pid) not in pids
        process.send_signal(signal.SIGTERM)
        said += process.stderr.read().splitlines()
        assert process.wait(PATIENCE) == 0
        for pid in pids:
            assert any(line.strip() == f"stopped {pid}" for line in said), said
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
