"""Values that cannot be written as JSON: every request is answered all the same, and the place is named."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from tricorn import (
    CallToolResult,
    Client,
    Context,
    Extension,
    InputRequired,
    MisuseError,
    Question,
    ResourceNotFoundError,
    RpcError,
    Server,
    Text,
    ToolError,
    testing,
)
from tricorn.json.encoding import encode

from .conftest import LEGACY

NO_UTF8 = os.fsdecode(b"caf\xe9.txt")
SHOWN = "caf\ufffd.txt"
Raising = Callable[[], Exception]


class Named(msgspec.Struct):
    name: str


@dataclass
class Called:
    name: str


class MuteError(ToolError):
    def __str__(self) -> str:
        raise LookupError("s3cret")


class OddError(Exception):
    exceptions = 5


def changed(**members: Any) -> Raising:
    def make() -> Exception:
        error = RpcError(4242, "m")
        for name, value in members.items():
            setattr(error, name, value)
        return error

    return make


def in_itself() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["me"] = value
    return value


UNSENT: list[tuple[Raising, str]] = [
    (lambda: RpcError(4242, "m", {"x": object()}), "object cannot be written as JSON"),
    (lambda: RpcError(4242, "m", {"x": [math.nan]}), "x[0]: expected a finite number, got nan"),
    (lambda: RpcError(4242, "m", in_itself()), "RecursionError"),
    (changed(code=1.5), "TypeError"),
    (changed(code=2**70), "OverflowError"),
    (changed(message=5), "AttributeError"),
    (lambda: MuteError(), "LookupError: s3cret"),
]


@pytest.mark.parametrize(("make", "why"), UNSENT)
@pytest.mark.parametrize("kind", ["async", "thread", "inline"])
async def test_an_error_that_cannot_be_sent_is_answered(make: Raising, why: str, kind: str) -> None:
    heard: asyncio.Queue[tuple[Exception, str]] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    app = Server("test", on_error=lambda error, name: loop.call_soon_threadsafe(heard.put_nowait, (error, name)))

    def fail() -> str:
        raise make()

    async def coroutine() -> str:
        return fail()

    app.add_tool(coroutine if kind == "async" else fail, name="fail", run_in_thread=kind == "thread")
    async with testing.connect(app) as client:
        with pytest.raises(RpcError) as caught:
            await client.call_tool("fail", timeout=10)
        assert caught.value.code == -32603
        assert caught.value.message == f'tool "fail" failed: its {type(make()).__name__} cannot be sent'
        error, name = await asyncio.wait_for(heard.get(), 10)
    assert isinstance(error, MisuseError)
    assert (name, why in str(error)) == ("fail", True), error
    assert heard.empty()


@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
async def test_texts_that_are_no_unicode(revision: str) -> None:
    app = Server("test")

    @app.tool
    async def tool(how: str, ctx: Context) -> str:
        if how == "tool":
            raise ToolError(f"cannot read {NO_UTF8}")
        if how == "rpc":
            raise RpcError(4242, NO_UTF8)
        assert ctx.progress(1, message=NO_UTF8)
        assert ctx.set_status(NO_UTF8)
        return NO_UTF8

    @app.resource("notes://{name}")
    async def note(name: str) -> str:
        if name == "none":
            raise ResourceNotFoundError("notes://" + NO_UTF8)
        return NO_UTF8

    @app.prompt
    def prompt() -> str:
        raise ToolError(NO_UTF8)

    progress: list[str | None] = []
    async with testing.connect(app, revision=revision) as client:
        result = await client.call_tool("tool", {"how": "tool"}, timeout=10)
        assert (result.is_error, result.text) == (True, f"cannot read {SHOWN}")
        with pytest.raises(RpcError, match=SHOWN):
            await client.call_tool("tool", {"how": "rpc"}, timeout=10)
        told = await client.call_tool("tool", {"how": ""}, on_progress=lambda one: progress.append(one.message))
        assert (told.text, progress) == (SHOWN, [SHOWN])
        assert (await client.read_resource("notes://x")).text == SHOWN
        with pytest.raises(RpcError) as caught:
            await client.read_resource("notes://none", timeout=10)
        assert caught.value.data == {"uri": "notes://" + SHOWN}
        with pytest.raises(RpcError, match=SHOWN):
            await client.get_prompt("prompt", timeout=10)


@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
async def test_texts_that_are_no_unicode_in_values(revision: str) -> None:
    app = Server("test")
    values: dict[str, Any] = {
        "members": {"name": NO_UTF8, NO_UTF8: [NO_UTF8]},
        "blocks": [Text(NO_UTF8), NO_UTF8],
        "block": Text(NO_UTF8),
        "result": CallToolResult([Text(NO_UTF8)], structured={"name": NO_UTF8}, meta={"com.example/x": NO_UTF8}),
        "objects": {"path": Path(NO_UTF8), "struct": Named(NO_UTF8), "data": Called(NO_UTF8), "raw": msgspec.Raw(b"1")},
    }

    @app.tool
    async def tool(which: str) -> Any:
        return values[which]

    @app.tool
    async def fail() -> None:
        raise RpcError(4242, "m", {"file": NO_UTF8, NO_UTF8: 1})

    @app.tool
    async def echo(value: Any) -> Any:
        return value

    @app.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit(NO_UTF8, {"type": "object", "properties": {"x": {"type": "string"}}})
        return f"{(answer.content or {})['x']}"

    @app.resource("notes://{name}")
    async def note(name: str) -> Any:
        return {"of": NO_UTF8}

    @app.prompt
    def prompt(text: str) -> str:
        return f"{text} {NO_UTF8}"

    asked: list[str] = []

    def answer(message: str) -> dict[str, str]:
        asked.append(message)
        return {"x": NO_UTF8}

    async with testing.connect(app, revision=revision, elicitation=answer) as client:
        assert (await client.call_tool("tool", {"which": "members"})).structured == {"name": SHOWN, SHOWN: [SHOWN]}
        assert (await client.call_tool("tool", {"which": "blocks"})).text == f"{SHOWN}\n{SHOWN}"
        assert (await client.call_tool("tool", {"which": "block"})).text == SHOWN
        result = await client.call_tool("tool", {"which": "result"})
        assert (result.text, result.structured, result.meta["com.example/x"]) == (SHOWN, {"name": SHOWN}, SHOWN)
        objects = (await client.call_tool("tool", {"which": "objects"})).structured
        assert objects == {"path": SHOWN, "struct": {"name": SHOWN}, "data": {"name": SHOWN}, "raw": 1}
        with pytest.raises(RpcError) as caught:
            await client.call_tool("fail", timeout=10)
        assert (caught.value.code, caught.value.data) == (4242, {"file": SHOWN, SHOWN: 1})
        sent = {"a": [NO_UTF8, {NO_UTF8: None}]}
        assert (await client.call_tool("echo", {"value": sent})).structured == {"a": [SHOWN, {SHOWN: None}]}
        assert ((await client.call_tool("ask")).text, asked) == (SHOWN, [SHOWN])
        assert SHOWN in (await client.read_resource("notes://x")).text
        assert (await client.get_prompt("prompt", {"text": NO_UTF8})).text == f"{SHOWN} {SHOWN}"


def test_what_is_looked_up_is_not_changed() -> None:
    with pytest.raises(MisuseError, match="path: it is no Unicode"):
        Server("test").add_file(NO_UTF8, "notes://x")
    with pytest.raises(MisuseError, match=r"args\[0\]: it is no Unicode"):
        Client(["python", NO_UTF8])


@pytest.mark.parametrize("revision", [LEGACY, "2026-07-28"])
async def test_a_clients_handler_and_middleware(revision: str) -> None:
    app = Server("test")

    @app.tool
    async def ask(ctx: Context) -> str:
        return str((await ctx.elicit("A?", {"type": "object", "properties": {}})).content)

    @app.tool
    async def odd() -> str:
        raise OddError

    @app.tool
    async def state() -> InputRequired:
        return InputRequired({"q": Question.elicit("A?")}, state=object())

    def refuse(*_: Any) -> None:
        raise RpcError(1, "m", object())

    async def around(request: Any, context: Any, call_next: Any) -> Any:
        if request.params.get("name") == "around":
            raise RpcError(1, "m", object())
        return await call_next(request, context)

    guarded = Server("guarded")
    guarded.middleware(around)
    guarded.add_tool(lambda: "x", name="around")
    async with testing.connect(app, revision=revision, elicitation=refuse) as client:
        if revision == "2026-07-28":
            with pytest.raises(RpcError, match="its RpcError cannot be sent"):
                await client.call_tool("ask", timeout=10)
        else:
            assert "its RpcError cannot be sent" in (await client.call_tool("ask", timeout=10)).text
        assert (await client.call_tool("odd", timeout=10)).text == 'tool "odd" failed: OddError'
        assert (await client.call_tool("state", timeout=10)).text == 'tool "state" failed: TypeError'
    async with testing.connect(guarded, revision=revision) as client:
        with pytest.raises(RpcError, match="its RpcError cannot be sent"):
            await client.call_tool("around", timeout=10)


@pytest.mark.parametrize("code", [1.5, "x", None, True, 2**53, -(2**70)])
def test_a_code_that_is_none(code: Any) -> None:
    with pytest.raises(MisuseError, match="RpcError: code: expected an integer"):
        RpcError(code, "m")


def test_a_message_that_is_none() -> None:
    with pytest.raises(MisuseError, match="RpcError: message: expected a string, got null"):
        RpcError(1, None)  # type: ignore[arg-type]


# -- numbers that JSON does not have


class Struct(msgspec.Struct):
    x: float


class Model(pydantic.BaseModel):
    x: float


@dataclass
class Data:
    x: float


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (math.nan, ""),
        ({"a": [None, {"b": math.inf}]}, "a[1].b: "),
        (({"a": -math.inf},), "[0].a: "),
        (Struct(math.nan), "x: "),
        ([Data(math.inf)], "[0].x: "),
        ({"m": Model(x=math.inf), "big": 2**80}, None),
        ({math.inf}, "[0]: "),
        ({"a": math.nan, "r": msgspec.Raw(b"1")}, "a: "),
        ([{math.nan}, msgspec.Raw(b"1")], "[0][0]: "),
        ([msgspec.Raw(b"1"), Data(math.inf), Struct(0)], "[1].x: "),
    ],
)
def test_a_number_that_is_none_has_a_place(value: Any, place: str | None) -> None:
    if place is None:  # some releases of pydantic make null of it themselves
        assert b"nan" not in msgspec.json.encode(value["big"])
        return
    with pytest.raises(MisuseError) as caught:
        encode(value)
    assert str(caught.value).startswith(f"{place}expected a finite number, got ")


def test_null_is_no_such_number() -> None:
    value = {"a": None, "text": "null", "raw": b"\xcb\x7f\xf8", "big": 2**80, "z": 1e308, "at": [0.5, -1]}
    assert msgspec.json.decode(encode(value))["a"] is None
    assert encode([None, msgspec.Raw(b"null")]) == b"[null,null]"


async def test_numbers_that_are_none_are_not_sent() -> None:
    heard: asyncio.Queue[Exception] = asyncio.Queue()
    app = Server("test", on_error=lambda error, _: heard.put_nowait(error))

    @app.tool
    async def plain() -> dict[str, Any]:
        return {"price": math.nan}

    @app.tool
    async def typed() -> list[float]:
        return [1, math.inf]

    @app.tool
    async def whole() -> CallToolResult:
        return CallToolResult("x", structured={"price": math.nan})

    @app.tool
    async def echo(value: Any) -> Any:
        return value

    async with testing.connect(app) as client:
        for name, place in (("plain", "price"), ("typed", "[1]"), ("whole", "structuredContent.price")):
            result = await client.call_tool(name)
            assert (result.is_error, result.text) == (True, f'tool "{name}" failed: MisuseError')
            assert str(await heard.get()).startswith(f"{place}: expected a finite number")
        with pytest.raises(MisuseError, match=r"call_tool: arguments\.value\.x: expected a finite number, got nan"):
            await client.call_tool("echo", {"value": {"x": math.nan}})


# -- what a client sends


async def wrong_calls(client: Any) -> list[tuple[Callable[[], Any], str]]:
    return [
        (lambda: client.call_tool(None), "call_tool: name: expected a string"),
        (lambda: client.call_tool(5), "call_tool: name: expected a string"),
        (lambda: client.call_tool("t", []), "call_tool: arguments: expected an object"),
        (lambda: client.call_tool("t", "x"), "call_tool: arguments: expected an object"),
        (lambda: client.call_tool("t", {"a": [{"b": object()}]}), r"call_tool: arguments\.a\[0\]\.b: object cannot be"),
        (lambda: client.call_tool("t", {"a": "\ud800", "b": object()}), r"call_tool: arguments\.b: object cannot be"),
        (lambda: client.call_tool("t", in_itself()), "call_tool: arguments: it is in itself"),
        (lambda: client.call_tool("t", {}, meta=5), "call_tool: meta: expected an object"),
        (lambda: client.call_tool("t", {}, meta={"a": object()}), r"call_tool: _meta\.a: object cannot be"),
        (lambda: client.call_tool_task("t", [1]), "call_tool_task: arguments: expected an object"),
        (lambda: client.get_prompt(None), "get_prompt: name: expected a string"),
        (lambda: client.get_prompt("p", [1]), "get_prompt: arguments: expected an object"),
        (lambda: client.get_prompt("p", {"a": object()}), r"get_prompt: arguments\.a: object cannot be"),
        (lambda: client.get_prompt("p", meta="x"), "prompts/get: meta: expected an object"),
        (lambda: client.read_resource(None), "read_resource: uri: expected a string"),
        (lambda: client.subscribe(5), "subscribe: uri: expected a string"),
        (lambda: client.complete("p", 5, ""), "complete: argument: expected a string"),
        (lambda: client.complete("p", "a", None), "complete: value: expected a string"),
        (lambda: client.complete("p", "a", "", context=[1]), "complete: context: expected an object"),
        (lambda: client.request("x/y", [1]), "x/y: parameters: expected an object"),
        (lambda: client.request("x/y", {"_meta": 5}, meta={"a": 1}), "x/y: _meta: expected an object, .* got a number"),
        (lambda: client.request("x/y", {(1, 2): 3}), r"x/y: the key \(1, 2\): tuple cannot be"),
        (lambda: client.request("x/y", {"a": [{(1, 2): 3}]}), r"x/y: a\[0\]: the key \(1, 2\): tuple cannot be"),
    ]


async def test_parameters_that_the_protocol_does_not_have(app: Server) -> None:
    async with testing.connect(app) as client:
        for call, why in await wrong_calls(client):
            with pytest.raises(MisuseError, match=why):
                await call()
        with pytest.raises(MisuseError, match="x/y: parameters: expected an object"):
            client.notify("x/y", [1])  # type: ignore[arg-type]


def test_parameters_without_asyncio(app: Server) -> None:
    with Client(app) as client:
        for call, why in asyncio.run(wrong_calls(client)):
            with pytest.raises(MisuseError, match=why):
                call()


@pytest.mark.parametrize("settings", [5, "x", [], [1]])
def test_settings_that_are_none(settings: Any) -> None:
    with pytest.raises(MisuseError, match=r'extension "com\.example/x": settings: expected an object'):
        Extension("com.example/x", settings)


def test_settings_that_are_no_json() -> None:
    with pytest.raises(MisuseError, match=r"extension 'com\.example/x': settings\.a: object cannot be written"):
        Server("x", extensions=[Extension("com.example/x", {"a": object()})])
