"""Beginnings and ends of processes and event loops: no hang, no crash, no answer lost that was already computed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

import pytest

from .conftest import Program

Start = Callable[..., Program]

SERVER = """
    import asyncio, os, sys, threading, time
    from tricorn import Context, Server

    app = Server("demo")

    @app.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    def threaded(a: int, b: int) -> int:
        return a + b

    @app.tool
    async def short() -> str:
        print("short began", file=sys.stderr, flush=True)
        await asyncio.sleep(0.2)
        return "finished"

    @app.tool
    async def slow() -> str:
        print("slow began", file=sys.stderr, flush=True)
        try:
            await asyncio.sleep(600)
        finally:
            print("slow ended", file=sys.stderr, flush=True)
        return "?"

    @app.tool
    def stuck() -> str:
        print("stuck began", file=sys.stderr, flush=True)
        time.sleep(600)
        return "?"

    @app.tool
    async def leave() -> str:
        sys.exit(7)

    @app.tool
    def leave_thread() -> str:
        sys.exit(7)

    @app.tool(run_in_thread=False)
    def leave_inline() -> str:
        sys.exit(7)

    @app.tool
    async def careless() -> str:
        print("careless words")
        os.system("echo careless child")
        return "printed"

"""


@pytest.fixture
def server(program: Start) -> Program:
    started = program(SERVER + "    app.run()\n    print('after run', file=sys.stderr)\n")
    started.start()
    return started


def test_end_of_input_ends_the_program(server: Program) -> None:
    server.call(1, "add", a=1, b=2)
    assert server.text() == "3"
    server.end_of_input()
    assert server.wait() == 0
    assert "after run" in server.stderr()


def test_end_of_input_waits_for_running_handlers(server: Program) -> None:
    server.call(1, "short")
    server.expect_error("short began")
    server.end_of_input()
    assert server.text() == "finished"
    assert server.wait() == 0


@pytest.mark.parametrize("name", ["slow", "stuck"])
def test_end_of_input_does_not_wait_for_ever(server: Program, name: str) -> None:
    server.call(1, name)
    server.expect_error(f"{name} began")
    server.end_of_input()
    assert server.wait() == 0


@pytest.mark.parametrize("name", [None, "slow", "stuck"])
def test_ctrl_c(server: Program, name: str | None) -> None:
    if name:
        server.call(1, name)
        server.expect_error(f"{name} began")
    server.signal(signal.SIGINT)
    assert server.wait() == 130
    assert "Traceback" not in server.stderr()
    if name == "slow":
        assert "slow ended" in server.stderr()


@pytest.mark.parametrize("name", [None, "slow", "stuck"])
def test_termination(server: Program, name: str | None) -> None:
    if name:
        server.call(1, name)
        server.expect_error(f"{name} began")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "after run" in server.stderr()


@pytest.mark.parametrize("name", ["leave", "leave_thread", "leave_inline"])
def test_sys_exit_in_a_handler(server: Program, name: str) -> None:
    server.call(1, "add", a=1, b=2)
    server.call(2, name)
    answers = {}
    for _ in range(2):
        answer = server.receive()
        answers[answer["id"]] = answer["result"]["content"][0]["text"]
    assert answers == {1: "3", 2: f'tool "{name}" failed: SystemExit'}
    assert server.wait() == 7
    assert "Traceback" not in server.stderr()


def test_no_computed_answer_is_lost(server: Program) -> None:
    for number in range(200):
        server.call(number, "add" if number % 2 else "threaded", a=number, b=0)
    server.end_of_input()
    answers = {}
    for _ in range(200):
        answer = server.receive()
        answers[answer["id"]] = answer["result"]["content"][0]["text"]
    assert answers == {number: str(number) for number in range(200)}
    assert server.wait() == 0


def test_what_is_printed_goes_to_standard_error(server: Program) -> None:
    server.call(1, "careless")
    assert server.text() == "printed"
    server.expect_error("careless words")
    server.end_of_input()
    assert server.wait() == 0
    # On Windows it does not pass through the engine, which would say so.
    assert server.stderr().count("stdout belongs to the protocol") == (sys.platform != "win32")
    assert "careless child" in server.stderr()


def test_http_says_when_it_is_ready_and_ends_on_sigterm(program: Start) -> None:
    server = program(SERVER + "    app.run()\n", "--http", "127.0.0.1:0")
    assert server.expect_error("ready ").startswith("ready http://127.0.0.1:")
    server.signal(signal.SIGTERM)
    assert server.wait() == 0


def test_an_address_that_is_taken(program: Start) -> None:
    server = program(
        """
        import socket
        from tricorn import Server, TransportError
        with socket.create_server(("127.0.0.1", 0)) as taken:
            try:
                Server("x").run(taken.getsockname()[1])
            except TransportError as error:
                print("refused", flush=True)
        """
    )
    assert server.lines.get(timeout=30) == "refused"
    assert server.wait() == 0


def test_forgotten_clients_do_not_keep_the_process(script: Callable[[str], str], tmp_path: object) -> None:
    code = """
        import asyncio, sys
        from tricorn import Client, Server, connect

        if sys.argv[1:]:
            Server("child").run()
            sys.exit()
        target = [sys.executable, __file__, "child"]
        client = Client(target)
        client.connect()

        async def main():
            return await connect(target)

        loop = asyncio.new_event_loop()
        other = loop.run_until_complete(main())
        print(client.protocol_version == other.protocol_version)
        loop.close()
    """
    assert script(code) == "True\n"


def test_fork(script: Callable[[str], str]) -> None:
    code = """
        import os, sys, warnings
        from tricorn import Client, MisuseError, Server, testing
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads: exactly what this is about

        app = Server("parent")

        @app.tool
        def hello() -> str:
            return "hello"

        client = Client(app).connect()
        assert client.call_tool("hello").text == "hello"
        pid = os.fork()
        if pid == 0:
            try:
                client.call_tool("hello")
            except MisuseError as error:
                assert "parent process" in str(error), error
            else:
                os._exit(3)
            child = Server("child")

            @child.tool
            def hello() -> str:
                return "hello from the child"

            assert testing.call(child, "hello").text == "hello from the child"
            sys.exit(5)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
        print(client.call_tool("hello").text)
        client.close()
    """
    assert script(code) == "hello\n"


def test_multiprocessing(script: Callable[[str], str]) -> None:
    code = """
        import multiprocessing, warnings
        from tricorn import Server, testing
        warnings.simplefilter("ignore", DeprecationWarning)

        def work(number):
            app = Server("worker")

            @app.tool
            def double(n: int) -> int:
                return 2 * n

            return testing.call(app, "double", {"n": number}).text

        if __name__ == "__main__":
            print(work(1))
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(work, [2, 3]))
    """
    assert script(code) == "2\n['4', '6']\n"


def test_objects_are_collected(script: Callable[[str], str]) -> None:
    code = """
        import asyncio, gc, os, weakref
        from tricorn import Server, testing

        def descriptors():
            return len(os.listdir("/proc/self/fd"))

        async def once():
            app = Server("demo")

            @app.tool
            async def hello() -> str:
                return "hello"

            async with testing.connect(app) as client:
                await client.call_tool("hello")
            return weakref.ref(app), weakref.ref(client)

        asyncio.run(once())
        gc.collect()
        before = descriptors()
        references = [reference for _ in range(20) for reference in asyncio.run(once())]
        gc.collect()
        print([reference() for reference in references if reference() is not None], descriptors() - before)
    """
    assert script(code) == "[] 0\n"


def test_ctrl_c_in_a_blocking_call(program: Start) -> None:
    waiting = program(
        """
        import asyncio, sys
        from tricorn import Client, Server

        app = Server("demo")

        @app.tool
        async def slow() -> str:
            print("began", file=sys.stderr, flush=True)
            try:
                await asyncio.sleep(600)
            finally:
                print("cancelled", file=sys.stderr, flush=True)
            return "?"

        client = Client(app).connect()
        try:
            client.call_tool("slow")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        client.close()
        """
    )
    waiting.expect_error("began")
    waiting.signal(signal.SIGINT)
    waiting.expect_error("cancelled")
    assert waiting.lines.get(timeout=30) == "interrupted"
    assert waiting.wait() == 0
