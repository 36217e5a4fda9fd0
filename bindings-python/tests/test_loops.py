"""Event loops that end early, one after another, or by what a callback raises: nobody waits for ever."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest


def test_closing_a_loop_early(script: Callable[[str], str]) -> None:
    code = """
        import asyncio
        from tricorn import Server, testing

        app = Server("demo")
        started = []

        @app.tool
        async def slow() -> str:
            started.append(1)
            await asyncio.sleep(600)
            return "?"

        @app.tool
        async def hello() -> str:
            return "hello"

        async def begin():
            client = await testing.connect(app)
            task = asyncio.ensure_future(client.call_tool("slow"))
            while not started:
                await asyncio.sleep(0)
            return client, task

        loop = asyncio.new_event_loop()
        client, task = loop.run_until_complete(begin())
        task._log_destroy_pending = False
        for other in asyncio.all_tasks(loop):
            other._log_destroy_pending = False
        loop.close()

        async def again():
            async with testing.connect(app) as client:
                return (await client.call_tool("hello")).text

        print(asyncio.run(again()))
        print(testing.call(app, "hello").text)
        del client, task, other
    """
    assert script(code) == "hello\nhello\n"


def test_stopping_a_loop_and_running_another(script: Callable[[str], str]) -> None:
    code = """
        import asyncio
        from tricorn import Server, testing

        app = Server("demo")

        @app.tool
        async def hello() -> str:
            return "hello"

        async def begin():
            return await testing.connect(app)

        loop = asyncio.new_event_loop()
        client = loop.run_until_complete(begin())

        async def again():
            async with testing.connect(app) as client:
                return (await client.call_tool("hello")).text

        print(asyncio.run(again()))
        loop.run_until_complete(client.close())
        loop.close()
    """
    assert script(code) == "hello\n"


@pytest.mark.parametrize("ending", ["", "loop.close()"])
@pytest.mark.parametrize("target", ["app", "[sys.executable, __file__, 'child']"])
def test_closing_on_another_loop_than_the_one_that_ended(
    script: Callable[[str], str], target: str, ending: str
) -> None:
    code = f"""
        import asyncio, os, sys
        from tricorn import Error, Server, connect

        app = Server("demo")

        @app.tool
        async def pid() -> int:
            return os.getpid()

        @app.tool
        async def slow() -> str:
            await asyncio.sleep(600)
            return "?"

        if sys.argv[1:]:
            app.run()
            sys.exit()

        async def begin():
            client = await connect({target})
            process = (await client.call_tool("pid")).to(int)
            task = asyncio.ensure_future(client.call_tool("slow"))
            await client.ping()
            return client, process, task

        loop = asyncio.new_event_loop()
        client, process, task = loop.run_until_complete(begin())
        for one in asyncio.all_tasks(loop):
            one._log_destroy_pending = False
        {ending}

        async def end():
            async with connect(app) as other:
                await client.close()
                await client.close()
                return (await other.call_tool("pid")).to(int) == os.getpid()

        print(asyncio.run(end()))
        if process != os.getpid():
            try:
                os.kill(process, 0)
            except ProcessLookupError:
                print("gone")
        if not loop.is_closed():
            try:
                loop.run_until_complete(task)
            except Error:
                print("told")
            loop.close()
        del one
    """
    told = "" if ending else "told\n"
    assert script(code) == "True\n" + ("gone\n" if "child" in target else "") + told


COUNTING = """
    import asyncio
    from tricorn import Context, Server, testing

    app = Server("demo")

    @app.tool
    async def count(ctx: Context) -> str:
        for n in range(3):
            ctx.progress(n)
        return "counted"

"""


def test_a_callback_that_raises_costs_nobody_else_anything(script: Callable[[str], str]) -> None:
    code = """
        async def main():
            gone = asyncio.get_running_loop().create_future()
            gone.cancel()
            async with testing.connect(app) as client:
                for _ in range(2):
                    print((await client.call_tool("count", on_progress=lambda _: gone.result())).text)

        asyncio.run(main())
    """
    assert script(dedent(COUNTING) + dedent(code)) == "counted\ncounted\n"


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit"])
def test_a_loop_that_goes_on_after_a_callback_ended_it(script: Callable[[str], str], error: str) -> None:
    code = f"""
        def leave(progress):
            print(progress.progress)
            raise {error}

        async def begin():
            return await testing.connect(app)

        loop = asyncio.new_event_loop()
        client = loop.run_until_complete(begin())
        task = loop.create_task(client.call_tool("count", on_progress=leave))
        for _ in range(3):
            try:
                loop.run_until_complete(task)
            except {error}:
                print("left")
        print(loop.run_until_complete(task).text)
        loop.run_until_complete(client.close())
        loop.close()
    """
    assert script(dedent(COUNTING) + dedent(code)) == "0.0\nleft\n1.0\nleft\n2.0\nleft\ncounted\n"
