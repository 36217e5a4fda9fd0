"""Faults that users of other packages meet: schemas that clients refuse, content made by hand, groups of exceptions."""

from __future__ import annotations

import datetime
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pydantic
import pytest

from tricorn import (
    CallToolResult,
    Context,
    EmbeddedResource,
    GetPromptResult,
    Image,
    Message,
    MisuseError,
    ResourceContents,
    RpcError,
    Server,
    Text,
    ToolError,
    testing,
    types,
    user,
)
from tricorn.call.signature import arguments_of, result_of, signature_of

from .conftest import call

PICTURE = Image(b"x", "image/gif")
Y2025 = datetime.datetime(2025, 10, 22)
UTC = datetime.timezone.utc


def argument(hint: Any) -> dict[str, Any]:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = hint
    return arguments_of(signature_of(tool)).schema


def read(hint: Any, raw: bytes) -> Any:
    def tool(value: Any) -> None: ...

    tool.__annotations__["value"] = hint
    return arguments_of(signature_of(tool)).decoder()(b'{"value":' + raw + b"}")["value"]


# -- schemas


@dataclass
class Bag:
    things: list  # type: ignore[type-arg]
    at: datetime.datetime | None = None


ANY = {"type": "array", "items": {}}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (list, ANY),
        (list[Any], ANY),
        (list[list], {"type": "array", "items": ANY}),  # type: ignore[type-arg]
        (set, {**ANY, "uniqueItems": True}),
        (tuple, ANY),
        (Sequence, ANY),
        (dict[str, list], {"type": "object", "additionalProperties": ANY}),  # type: ignore[type-arg]
        (list | None, {"anyOf": [ANY, {"type": "null"}]}),
    ],
)
def test_arrays_say_that_their_items_are_anything(hint: Any, schema: Any) -> None:
    assert argument(hint)["properties"]["value"] == schema


def test_arrays_in_classes_and_results_do_so_too() -> None:
    assert argument(Bag)["$defs"]["Bag"]["properties"]["things"] == ANY
    found = result_of(dict[str, list]).schema  # type: ignore[type-arg]
    assert found is not None
    assert found["additionalProperties"] == ANY
    pair = argument(tuple[int, str])["properties"]["value"]
    assert (len(pair["prefixItems"]), pair["items"]) == (2, False)


# -- times


@pytest.mark.parametrize(
    ("hint", "format", "raw", "value"),
    [
        (datetime.datetime, "date-time", b'"2025-10-22"', Y2025),
        (datetime.datetime, "date-time", b'"2025-10-22T15:50"', Y2025.replace(hour=15, minute=50)),
        (datetime.datetime, "date-time", b'"2025-10-22 15:50Z"', Y2025.replace(hour=15, minute=50, tzinfo=UTC)),
        (datetime.datetime, "date-time", b'"2025-10-22T00:00:00"', Y2025),
        (datetime.time, "time", b'"10:00"', datetime.time(10)),
        (datetime.time, "time", b'"10:00:01.5"', datetime.time(10, 0, 1, 500000)),
        (datetime.date, "date", b'"2025-10-22"', Y2025.date()),
    ],
)
def test_times_are_described_and_need_no_seconds(hint: Any, format: str, raw: bytes, value: Any) -> None:  # noqa: A002
    assert argument(hint)["properties"]["value"] == {"type": "string", "format": format}
    assert read(hint, raw) == value


@pytest.mark.parametrize(
    ("hint", "raw", "value"),
    [
        (list[datetime.datetime], b'["2025-10-22"]', [Y2025]),
        (dict[str, datetime.datetime], b'{"a":"2025-10-22"}', {"a": Y2025}),
        (tuple[str, datetime.datetime], b'["2025-10-22","2025-10-22"]', ("2025-10-22", Y2025)),
        (Bag, b'{"things":["2025-10-22"],"at":"2025-10-22"}', Bag(["2025-10-22"], Y2025)),
        (list[Bag | None], b'[null,{"things":[1.0],"at":"2025-10-22"}]', [None, Bag([1], Y2025)]),
    ],
)
def test_times_within_other_types_need_none_either(hint: Any, raw: bytes, value: Any) -> None:
    assert read(hint, raw) == value


def test_a_text_that_is_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match='argument "value": invalid RFC3339 encoded datetime, got "soon"'):
        read(datetime.datetime, b'"soon"')


class Log(pydantic.BaseModel):
    at: datetime.datetime
    zoned: pydantic.AwareDatetime
    clock: datetime.time
    took: datetime.timedelta


@dataclass
class Plain:
    log: Log
    at: datetime.datetime
    took: datetime.timedelta


def test_results_promise_only_formats_that_all_values_have() -> None:
    found = result_of(Log).schema
    assert found is not None
    assert {name: one.get("format") for name, one in found["properties"].items()} == {
        "at": None,
        "zoned": "date-time",
        "clock": None,
        "took": None,
    }
    assert argument(Log)["$defs"]["Log"]["properties"]["at"]["format"] == "date-time"
    found = result_of(Plain).schema
    assert found is not None
    assert "format" not in found["properties"]["at"].keys() | found["properties"]["took"].keys()
    assert "format" not in found["$defs"]["Log"]["properties"]["at"]


# -- lists with blocks


@dataclass
class Public:
    x: int


@dataclass
class Private(Public):
    secret: str = "no"


TEXTS: list[Any] = [{"type": "text", "text": "hi"}]
SHOWN: dict[str, Any] = {"type": "image", "data": "eA==", "mimeType": "image/gif"}


@pytest.mark.parametrize(
    ("hint", "value", "content"),
    [
        (
            Any,
            ["hi", PICTURE, {"a": 1}, None, 5],
            [*TEXTS, SHOWN, {"type": "text", "text": '{"a":1}'}, {"type": "text", "text": "5"}],
        ),
        (list[Image], [], []),
        (list[Image] | None, [], []),
        (list[str | Image], ["hi"], TEXTS),
        (list[dict[str, Any] | Image], [{"type": "text", "text": "hi"}, SHOWN], [*TEXTS, SHOWN]),
        (list[Public | Image], [Private(1)], [{"type": "text", "text": '{"x":1}'}]),
    ],
)
async def test_each_item_of_a_list_with_blocks_is_one(app: Server, hint: Any, value: Any, content: Any) -> None:
    async def tool() -> Any:
        return value

    tool.__annotations__["return"] = hint
    app.add_tool(tool)
    result = await call(app, "tool")
    assert result.raw["content"] == content
    assert not result.has_structured


@pytest.mark.parametrize(
    ("hint", "value", "content", "structured"),
    [
        (list, ["hi", PICTURE], [*TEXTS, SHOWN], ["hi"]),
        (list[Any], ("hi", PICTURE), [*TEXTS, SHOWN], ["hi"]),
        (Sequence[Any], ["hi", PICTURE], [*TEXTS, SHOWN], ["hi"]),
        (list[Any] | None, [PICTURE], [SHOWN], []),
        (list, ["hi"], [{"type": "text", "text": '["hi"]'}], ["hi"]),
        (list, [], [{"type": "text", "text": "[]"}], []),
    ],
)
async def test_programs_get_the_values_of_a_list_of_anything(
    app: Server, hint: Any, value: Any, content: Any, structured: Any
) -> None:
    async def tool() -> Any:
        return value

    tool.__annotations__["return"] = hint
    app.add_tool(tool)
    for revision, expected in [("2025-11-25", {"result": structured}), ("2026-07-28", structured)]:
        async with testing.connect(app, revision=revision) as client:
            result = await client.call_tool("tool")
            assert (result.raw["content"], result.structured) == (content, expected)


# -- content made by hand


def test_whole_results_take_what_tools_return() -> None:
    assert CallToolResult(["hi", PICTURE]).raw["content"] == [*TEXTS, SHOWN]
    assert CallToolResult(Text("hi")).raw["content"] == TEXTS  # type: ignore[arg-type]
    assert CallToolResult([{"type": "future"}]).raw["content"] == [{"type": "future"}]
    assert Image("eA==").data == "eA=="  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: CallToolResult([5]), r"CallToolResult: content\[0\]: expected text or a content block, .*got 5"),
        (lambda: CallToolResult([{"a": 1}]), r'CallToolResult: content\[0\]: .*which has a "type", got an object'),
        (lambda: CallToolResult([{"type": "text"}]), r'content\[0\]: .*"text": .*missing required field `text`'),
        (lambda: Text(5), r"Text: text: expected a string, got 5: give str\(\.\.\.\)"),
        (lambda: Text(None), r"Text: text: expected a string, got null"),
        (lambda: Image("/tmp/x.png"), r'Image: data: .*base64 text, got "/tmp/x.png": read the file'),
        (lambda: Image(Path("x.png")), r"Image: data: .*: read the file"),
        (lambda: ResourceContents(text=5), r"ResourceContents: text: expected a string, got 5"),
        (lambda: ResourceContents(blob="/a.b"), r"ResourceContents: blob: .*: read the file"),
        (lambda: user(5), r"a message: expected text or a content block, .*got 5"),
        (lambda: GetPromptResult({"role": "user"}), r"a message: content: .*got null"),
        (lambda: GetPromptResult(Message("system", "x")), r'role: expected "user" or "assistant", got "system"'),
    ],
)
def test_what_is_no_content_is_refused_by_name(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(MisuseError, match=said):
        make()


async def test_dictionaries_are_looked_at_when_they_are_answered() -> None:
    heard: list[str] = []
    app = Server("test", on_error=lambda error, name: heard.append(f"{name}: {error}"))

    @app.tool
    async def tool() -> types.CallToolResult:
        return {"content": [{"type": "text"}]}  # type: ignore[typeddict-item]

    @app.prompt
    async def prompt() -> Any:
        return {"messages": [{"role": "system", "content": "Be brief."}]}

    async with testing.connect(app) as client:
        assert (await client.call_tool("tool")).text == 'tool "tool" failed: MisuseError'
        with pytest.raises(RpcError, match="MisuseError"):
            await client.get_prompt("prompt")
    assert [one.partition(":")[0] for one in heard] == ["tool", "prompt"]


# -- exceptions


class Panic(BaseException):
    """As pyo3 has one."""


class GroupError(Exception):  # as `exceptiongroup` has it for older versions of Python
    def __init__(self, *exceptions: BaseException) -> None:
        super().__init__("several")
        self.exceptions = exceptions


@pytest.mark.parametrize(
    ("error", "answer", "told"),
    [
        (GroupError(ToolError("a")), "a", 0),
        (GroupError(GroupError(ToolError("a")), ToolError("b")), "a", 0),
        (GroupError(ToolError("a"), ValueError("b")), "a", 1),
        (GroupError(RpcError(-5, "a")), "a", 0),
        (GroupError(ToolError("a"), RpcError(-5, "b")), 'tool "tool" failed: GroupError', 1),
        (GroupError(ValueError("b")), 'tool "tool" failed: GroupError', 1),
        (Panic("a"), 'tool "tool" failed: Panic', 1),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
async def test_groups_and_panics(error: BaseException, answer: str, told: int, is_async: bool) -> None:
    heard: list[BaseException] = []
    app = Server("test", on_error=lambda error, _: heard.append(error))

    def plain() -> None:
        raise error

    async def asynchronous() -> None:
        raise error

    app.add_tool(asynchronous if is_async else plain, name="tool")
    try:
        said = (await call(app, "tool")).text
    except RpcError as raised:
        said = raised.message
    assert said == answer
    assert heard == [error] * told


@pytest.mark.skipif(sys.version_info < (3, 11), reason="there are no task groups")
async def test_a_task_group_fails_as_its_task(app: Server) -> None:
    import asyncio

    async def fail() -> None:
        raise ToolError("no such city")

    @app.tool
    async def tool() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())

    assert (await call(app, "tool")).text == "no such city"


# -- signatures


@dataclass
class Square:
    side: int
    area: int = field(init=False)
    notes: list[str] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.area = self.side**2


def test_what_a_dataclass_computes_is_no_argument() -> None:
    assert list(argument(Square)["$defs"]["Square"]["properties"]) == ["side"]
    assert read(Square, b'{"side":3}') == Square(3)
    found = result_of(Square).schema
    assert found is not None
    assert list(found["properties"]) == ["side", "area", "notes"]


def test_types_of_a_signature_that_was_made() -> None:
    def tool(**arguments: Any):  # type: ignore[no-untyped-def]
        return arguments

    by_name = inspect.Parameter.KEYWORD_ONLY
    made: Any = tool
    made.__signature__ = inspect.Signature(
        [
            inspect.Parameter("number", by_name, annotation=int),
            inspect.Parameter("ctx", by_name, annotation=Context),
        ],
        return_annotation=str,
    )
    found = signature_of(tool)
    assert ([(one.name, one.type) for one in found.parameters], found.context, found.hint) == (
        [("number", int)],
        "ctx",
        str,
    )


def test_final_says_nothing_of_an_argument() -> None:
    def tool(a: Final[int], b: Final = 3) -> None: ...  # type: ignore[valid-type]

    assert arguments_of(signature_of(tool)).schema["properties"] == {"a": {"type": "integer"}, "b": {"default": 3}}
    assert arguments_of(signature_of(tool)).decoder()(b'{"a":1}') == {"a": 1}


# -- resources


@pytest.mark.parametrize(
    ("value", "contents"),
    [
        (PICTURE, [{"uri": "a://b", "mimeType": "image/gif", "blob": "eA=="}]),
        (Text("hi"), [{"uri": "a://b", "mimeType": "text/css", "text": "hi"}]),
        (["hi", PICTURE], [{"uri": "a://b", "text": "hi"}, {"uri": "a://b", "mimeType": "image/gif", "blob": "eA=="}]),
        (EmbeddedResource(ResourceContents("c://d", text="hi")), [{"uri": "c://d", "text": "hi"}]),
    ],
)
async def test_resources_of_content_blocks(app: Server, value: Any, contents: Any) -> None:
    @app.resource("a://b", mime_type="text/css")
    async def read() -> Any:
        return value

    async with testing.connect(app) as client:
        found = (await client.read_resource("a://b")).raw["contents"]
    assert [one | {"mimeType": one.get("mimeType", "text/css")} for one in found] == [
        {"mimeType": "text/css"} | one for one in contents
    ]
