"""Uses that are not in any guide: options that depend on settings, copies, loops of others, odd numbers."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import decimal
import json
import os
import pickle
import queue
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tricorn import (
    CallToolResult,
    CancelledError,
    Context,
    Form,
    MisuseError,
    RpcError,
    Server,
    ToolError,
    connect,
    connect_many,
    testing,
)
from tricorn.bridge.threads import Threads
from tricorn.errors import Error

from .conftest import PATIENCE, call

WEATHER = """
import sys
from tricorn import Server
print("weather is here", file=sys.stderr)
app = Server("weather")
@app.tool
def city() -> str:
    return " ".join(sys.argv[1:]) or "Ghent"
app.run()
"""


@pytest.fixture
def weather(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "weather.py"
    path.write_text(textwrap.dedent(WEATHER))
    monkeypatch.chdir(tmp_path)
    return path


# -- options


async def test_none_stands_for_an_option_that_is_not_given() -> None:
    app = Server("x", instructions=None)

    @app.tool(title=None, run_in_thread=None, enabled=None, task_support=None, scopes=None, input_schema=None)
    def tool(a: int) -> str:
        return threading.current_thread().name

    @app.prompt(title=None, enabled=None, complete=None)
    def prompt() -> str:
        return "prompt"

    @app.resource("x://y", mime_type=None, cache=None, enabled=None)
    def resource() -> str:
        return "resource"

    async with connect(app, name=None, on_list_changed=None, cache=None) as client:
        (listed,) = await client.list_tools()
        assert listed.input_schema["required"] == ["a"]
        options: dict[str, Any] = {"idempotent": None, "task": None, "cache": None, "meta": None, "on_progress": None}
        assert (await client.call_tool("tool", {"a": 1}, **options)).text.startswith("tricorn")
        assert (await client.get_prompt("prompt")).text == "prompt"
        assert (await client.read_resource("x://y")).text == "resource"
    app.asgi(allowed_hosts=None, max_sessions=None)


async def test_the_state_can_be_set() -> None:
    app = Server("x")

    @app.tool
    def tool(ctx: Context[str]) -> str:
        return ctx.state

    assert app.state is None
    app.state = "fake"
    assert (await call(app, "tool")).text == "fake"
    assert app.state == "fake"

    async def lifespan(server: Server) -> Any:
        yield 1

    with pytest.raises(MisuseError, match="the lifespan gives it"):
        Server("x", lifespan=lifespan).state = 5


@pytest.mark.parametrize("option", ["prob_timeout", "max_nestin", "onlog"])
def test_what_is_meant_is_said_as_the_engine_says_it(option: str) -> None:
    with pytest.raises(MisuseError, match="did you mean"):
        connect("true", **{option: 1})  # type: ignore[arg-type]
    with pytest.raises(MisuseError, match=r"expected one of .*, sampling, "):
        connect("true", zzzzzzzzzzzz=1)  # type: ignore[call-arg]


# -- programs in Python


@pytest.mark.parametrize("target", ["./weather.py", "weather.py", Path("weather.py"), ["./weather.py"]])
async def test_a_python_file_is_run_by_python(weather: Path, target: Any) -> None:
    async with connect(target, on_stderr=lambda _: None) as client:
        assert (await client.call_tool("city")).text == "Ghent"


async def test_a_python_file_with_arguments_is_run_by_python(weather: Path) -> None:
    async with connect("./weather.py New York", on_stderr=lambda _: None) as client:
        assert (await client.call_tool("city")).text == "New York"
    async with connect(["weather.py", "New York"], on_stderr=lambda _: None) as client:
        assert (await client.call_tool("city")).text == "New York"


@pytest.mark.parametrize("way", ["path", "text", "file", "names", "each"])
async def test_a_group_hears_standard_error_whatever_way_its_servers_come(weather: Path, way: str) -> None:
    entry = {"command": sys.executable, "args": [str(weather)], "env": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    config = {"mcpServers": {"weather": entry}}
    path = weather.parent / "mcp.json"
    path.write_text(json.dumps(config))
    servers: Any = {"path": path, "text": config, "file": str(path), "names": {"weather": entry}, "each": config}[way]
    lines: queue.Queue[str] = queue.Queue()
    options: dict[str, Any] = {"on_stderr": lines.put}
    if way == "each":
        options = {"for_server": lambda name: {"on_stderr": lambda line: lines.put(f"{name}: {line}")}}
    async with connect_many(servers, **options) as group:
        assert (await group.call_tool("city")).text == "Ghent"
        heard = await asyncio.to_thread(lines.get, timeout=PATIENCE)
    assert heard == ("weather: weather is here" if way == "each" else "weather is here")


async def test_what_no_callback_of_a_group_hears_goes_on_to_standard_error(
    weather: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"command": sys.executable, "args": [str(weather)], "env": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    async with connect_many({"mcpServers": {"weather": entry}}, for_server=lambda _: {}) as group:
        await group.call_tool("city")
    assert "weather is here" in capsys.readouterr().err


# -- loops of others


def test_a_loop_of_another_library_is_named() -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        async with connect(Server("x")):
            raise AssertionError

    with pytest.raises(MisuseError, match=r"asyncio.*synchronous"):
        trio.run(main)


# -- copies


def test_errors_are_copied_whole() -> None:
    error = RpcError(-32602, "no such page", {"page": 7})
    error.received = True
    for copied in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert (copied.received, copied.code, copied.message, copied.data) == (
            True,
            -32602,
            "no such page",
            {"page": 7},
        )


@dataclasses.dataclass
class Booking:
    seats: int


def test_forms_are_copied() -> None:
    form = Form(Booking)
    answer = b'{"action":"accept","content":{"seats":2}}'
    for copied in (copy.copy(form), copy.deepcopy(form), pickle.loads(pickle.dumps(form))):
        assert copied.schema == form.schema
        assert copied.answer(answer).content == Booking(2)


def test_servers_and_clients_say_that_they_are_not_copied() -> None:
    for one in (Server("x"), connect(Server("x"))):
        for way in (copy.deepcopy, pickle.dumps, copy.copy):
            with pytest.raises(TypeError, match="cannot be copied"):
                way(one)


# -- numbers and texts of peers


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 5000])
async def test_numbers_that_are_too_much_for_python(number: str) -> None:
    wire = b'{"content":[{"type":"text","text":"fine"}],"structuredContent":{"n":%s}}' % number.encode()
    result = CallToolResult.from_wire(wire)
    assert result.text == "fine"
    assert result.structured == {"n": decimal.Decimal(number)}
    with pytest.raises(ValueError, match=r"."):
        result.to(dict[str, int])


@pytest.mark.parametrize("number", ["1e400", "9" * 5000])
def test_arguments_that_are_too_much_are_refused(number: str) -> None:
    from tricorn.call.signature import arguments_of, signature_of
    from tricorn.json.judge import ArgumentError

    def whole(n: int, s: str = "") -> None: ...
    def real(n: float) -> None: ...

    for function in (whole, real):
        decode = arguments_of(signature_of(function))[1]()
        with pytest.raises(ArgumentError):
            decode(b'{"n":%s}' % number.encode())


def test_the_text_of_an_exception_has_no_control_characters_and_an_end() -> None:
    text = "\x1b[31mred\x9b\x00\r\n\tend" + "x" * 200_000
    for error in (Error(text), RpcError(-32000, text)):
        assert "\\x1b[31mred\\x9b\\x00\\x0d\n\tend" in str(error)
        assert len(str(error)) < 10_000
        assert error.message == text
    result = CallToolResult(text, is_error=True)
    with pytest.raises(ToolError) as caught:
        result.to(str)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 10_000
    assert str(Error("plain, ünïcode\nlines")) == "plain, ünïcode\nlines"


# -- calls that nobody waits for


async def test_cancelled_plain_tools_leave_room_for_others() -> None:
    app = Server("x", max_threads=2)
    begun: queue.Queue[int] = queue.Queue()
    over = threading.Event()

    @app.tool
    def stubborn(n: int) -> str:
        begun.put(n)
        over.wait(PATIENCE)
        return ""

    @app.tool
    def quick() -> str:
        return "quick"

    try:
        async with testing.connect(app) as client:
            calls = [asyncio.create_task(client.call_tool("stubborn", {"n": n})) for n in range(2)]
            for _ in calls:
                await asyncio.to_thread(begun.get, timeout=PATIENCE)
            for one in calls:
                one.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert (await asyncio.wait_for(client.call_tool("quick"), PATIENCE)).text == "quick"
    finally:
        over.set()


@pytest.mark.parametrize("where", ["thread", "loop", "inline"])
async def test_progress_of_a_cancelled_call_raises(where: str) -> None:
    app = Server("x")
    ended: queue.Queue[BaseException | None] = queue.Queue()
    begun = threading.Event()

    def work(ctx: Context) -> None:
        step = 0
        try:
            limit = time.monotonic() + PATIENCE
            while time.monotonic() < limit:
                step += 1
                ctx.progress(step)
                begun.set()
            ended.put(None)
        except BaseException as error:
            ended.put(error)
            raise

    if where == "loop":

        @app.tool
        async def endless(ctx: Context) -> None:
            work(ctx)
    else:

        @app.tool(run_in_thread=where == "thread")
        def endless(ctx: Context) -> None:  # type: ignore[misc]
            work(ctx)

    def client() -> None:
        async def main() -> None:
            async with connect(url) as other:
                calling = asyncio.create_task(other.call_tool("endless"))
                await asyncio.to_thread(begun.wait, PATIENCE)
                calling.cancel()
                await asyncio.gather(calling, return_exceptions=True)

        asyncio.run(main())

    async with app.listen(port=0) as url:
        thread = threading.Thread(target=client)
        thread.start()
        error = await asyncio.to_thread(ended.get, timeout=PATIENCE)
        await asyncio.to_thread(thread.join, PATIENCE)
    assert isinstance(error, CancelledError if where == "thread" else asyncio.CancelledError)


async def test_waiting_for_a_thread_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tricorn.call.handler.PATIENCE", 0.05)
    heard: list[str] = []
    app = Server("x", max_threads=1, on_error=lambda error, _: heard.append(str(error)))
    over, begun = threading.Event(), threading.Event()

    @app.tool
    def slow() -> str:
        begun.set()
        over.wait(PATIENCE)
        return "slow"

    async with testing.connect(app) as client:
        first = asyncio.create_task(client.call_tool("slow"))
        await asyncio.to_thread(begun.wait, PATIENCE)
        with pytest.raises(RpcError, match=r"no thread was free .* have 1 \(max_threads\)"):
            await client.call_tool("slow")
        over.set()
        assert (await first).text == "slow"
        assert (await client.call_tool("slow")).text == "slow"
    assert len(heard) == 1


def test_giving_up_what_has_not_begun_makes_no_threads() -> None:
    import contextvars

    threads = Threads(1)
    begun, over = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        over.wait(PATIENCE)

    first = threads.submit(contextvars.copy_context(), work)
    assert begun.wait(PATIENCE)
    second = threads.submit(contextvars.copy_context(), lambda: None)
    threads.give_up(second)
    assert not second.is_started
    threads.give_up(first)
    over.set()


def test_templates_take_lists_where_their_variables_are_lists(app: Server) -> None:
    def one(path: str) -> str:
        return path

    def several(path: list[str]) -> str:
        return "/".join(path)

    with pytest.raises(MisuseError, match=r"path: list\[str\]"):
        app.resource("f://{path*}")(one)
    app.resource("f://{path*}")(several)
    app.resource("g://{path}")(one)
