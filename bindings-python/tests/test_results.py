"""Results, seen by a client in memory: what a handler returns, and what becomes of it on the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from tricorn import (
    Annotations,
    Audio,
    CallToolResult,
    Content,
    EmbeddedResource,
    Image,
    MisuseError,
    ResourceContents,
    ResourceLink,
    Server,
    Text,
    ToolError,
    testing,
)

from .conftest import call


class Sum(TypedDict):
    sum: int


@dataclass
class Point:
    x: int


class Model(pydantic.BaseModel):
    x: int


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ({"a": [1]}, '{"a":[1]}'),
        ([1, "2"], '[1,"2"]'),
        (7, "7"),
        (True, "true"),
        (Point(1), '{"x":1}'),
        (Model(x=2), '{"x":2}'),
        (PurePosixPath("/a/b"), "/a/b"),
    ],
)
async def test_values_of_untyped_functions(app: Server, value: Any, text: str) -> None:
    @app.tool
    async def tool() -> Any:
        return value

    result = await call(app, "tool")
    assert result.text == text
    assert not result.is_error


async def test_nothing(app: Server) -> None:
    @app.tool
    async def tool() -> None: ...

    assert (await call(app, "tool")).raw["content"] == []


async def test_typed_results_are_structured(app: Server) -> None:
    @app.tool
    async def typed() -> Sum:
        return {"sum": 3}

    @app.tool
    async def model() -> Model:
        return Model(x=4)

    @app.tool
    async def without(n: int) -> dict[str, int]:
        return {"n": n}

    result = await call(app, "typed")
    assert result.structured == {"sum": 3}
    assert result.text == '{"sum":3}'
    assert result.to(Sum) == {"sum": 3}
    assert (await call(app, "model")).structured == {"x": 4}
    assert (await call(app, "without", n=1)).structured == {"n": 1}


async def test_a_string_that_a_schema_declares_is_structured(app: Server) -> None:
    @app.tool(output_schema={"type": ["string", "null"]})
    async def maybe(text: str | None) -> str | None:
        return text

    async with testing.connect(app, revision="2026-07-28") as client:
        assert (await client.call_tool("maybe", {"text": "x"})).structured == "x"
        result = await client.call_tool("maybe", {"text": None})
        assert (result.structured, result.has_structured) == (None, True)


async def test_structured_content_may_be_missing(app: Server) -> None:
    @app.tool
    async def plain() -> str:
        return "x"

    result = await call(app, "plain")
    assert (result.structured, result.has_structured) == (None, False)


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25", "2026-07-28"])
async def test_results_as_a_type(app: Server, revision: str) -> None:
    @app.tool
    async def number() -> int:
        return 3

    @app.tool
    async def numbers() -> list[int]:
        return [1, 2]

    @app.tool
    async def record() -> Sum:
        return {"sum": 3}

    @app.tool
    async def text() -> str:
        return "7"

    @app.tool
    async def fail() -> int:
        raise ToolError("no luck")

    async with testing.connect(app, revision=revision) as client:
        assert (await client.call_tool("number")).to(int) == 3
        assert (await client.call_tool("numbers")).to(list[int]) == [1, 2]
        assert (await client.call_tool("record")).to(Sum) == {"sum": 3}
        assert (await client.call_tool("text")).to(str) == "7"
        with pytest.raises(ToolError, match="no luck"):
            (await client.call_tool("fail")).to(int)
        with pytest.raises(msgspec.DecodeError, match="Expected `array`, got `int`"):
            (await client.call_tool("number")).to(list[int])


def test_only_what_does_not_fit_is_unwrapped() -> None:
    class Holder(TypedDict):
        result: int

    assert CallToolResult(structured={"result": 3}).to(Holder) == {"result": 3}
    assert CallToolResult(structured={"result": None}).to(type(None)) is None
    with pytest.raises(msgspec.ValidationError, match="got `object`"):
        CallToolResult(structured={"result": 3, "more": 4}).to(int)


async def test_content_blocks(app: Server) -> None:
    blocks: list[Content] = [
        Text("one", Annotations(audience=["user"], priority=0.5), {"com.example/n": 1}),
        Image(b"\x89PNG"),
        Audio(b"RIFF", "audio/mpeg"),
        ResourceLink("test://a", "a", size=3),
        EmbeddedResource(ResourceContents("test://b", "text/plain", text="b")),
        EmbeddedResource(ResourceContents("test://c", blob=b"\x00\x01")),
    ]

    @app.tool
    async def many() -> list[Content]:
        return blocks

    @app.tool
    async def single() -> Image:
        return Image(b"\x89PNG")

    @app.tool
    async def mixed() -> list[str | Image]:
        return ["look:", Image(b"x", "image/gif")]

    result = await call(app, "many")
    assert result.content == blocks
    assert result.raw["content"][1] == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    assert (await call(app, "single")).content == [Image(b"\x89PNG")]
    assert (await call(app, "mixed")).content == [Text("look:"), Image(b"x", "image/gif")]


async def test_whole_results(app: Server) -> None:
    @app.tool
    async def whole() -> CallToolResult:
        return CallToolResult([Text("a")], structured={"n": 1}, is_error=True, meta={"com.example/x": 1})

    result = await call(app, "whole")
    assert (result.text, result.structured, result.is_error) == ("a", {"n": 1}, True)
    assert result.meta["com.example/x"] == 1


async def test_passing_on_the_result_of_another_server(app: Server) -> None:
    other = Server("other")

    @other.tool
    async def inner() -> Any:
        return CallToolResult([{"type": "text", "text": "x", "com.example": [1]}], meta={"com.example/kept": True})

    @app.tool
    async def outer() -> CallToolResult:
        async with testing.connect(other) as client:
            return await client.call_tool("inner")

    result = await call(app, "outer")
    assert result.raw["content"] == [{"type": "text", "text": "x", "com.example": [1]}]
    assert result.meta["com.example/kept"] is True


async def test_a_result_that_is_no_json(app: Server, caplog: pytest.LogCaptureFixture) -> None:
    @app.tool
    async def bad() -> Any:
        return object()

    result = await call(app, "bad")
    assert (result.is_error, result.text) == (True, 'tool "bad" failed: TypeError')
    assert "object cannot be written as JSON" in caplog.text


def test_an_embedded_resource_says_where_it_is() -> None:
    with pytest.raises(MisuseError, match="needs a URI"):
        EmbeddedResource(ResourceContents(text="x"))
