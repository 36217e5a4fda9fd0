"""Messages of imperfect peers: harmless mistakes are overlooked, anything else is an error that names the member."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tricorn import (
    CallToolResult,
    Completion,
    CreateMessageResult,
    GetPromptResult,
    Image,
    PeerMisbehavedError,
    Prompt,
    ReadResourceResult,
    RequestInfo,
    Resource,
    ResourceTemplate,
    Tool,
    user,
)
from tricorn.model.results import ListRootsResult


def wire(value: Any) -> bytes:
    return msgspec.json.encode(value)


def test_what_is_overlooked() -> None:
    prompt = Prompt({"name": "p", "arguments": [{"name": "a", "required": None, "title": None}]})
    assert prompt.arguments[0].required is False
    completion = Completion.from_wire(wire({"completion": {"values": ["a"], "total": 5.0, "hasMore": None}}))
    assert (completion.total, completion.has_more) == (5, None)
    image = {"type": "image", "data": "_-8", "mimeType": "image/png", "annotations": {"audience": None, "priority": 1}}
    block = CallToolResult.from_wire(wire({"content": [image]})).content[0]
    assert isinstance(block, Image)
    assert block.data == b"\xff\xef"
    read = ReadResourceResult.from_wire(wire({"contents": [{"uri": "x:1", "blob": "YQ", "_meta": {"n": 1.0}}]}))
    assert read.blob == b"a"
    assert read.contents[0].meta == {"n": 1.0}
    assert Resource({"uri": "x:1", "name": "x", "size": 5.0}).size == 5
    tool = Tool({"name": "t", "icons": [{"src": "data:,", "sizes": None}], "annotations": {"readOnlyHint": None}})
    assert tool.icons[0].sizes is None
    assert tool.annotations is not None
    assert tool.title == "t"
    info = RequestInfo({"clientInfo": {"name": "x", "version": None}}).client_info
    assert info is not None
    assert info.name == "x"
    result = CallToolResult.from_wire(wire({"content": [{"type": "text"}, {"type": "text", "text": "a"}]}))
    assert result.text == "a"
    prompt_result = GetPromptResult.from_wire(
        wire({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]})
    )
    assert prompt_result.messages == [user(["a"])]


@pytest.mark.parametrize(
    ("look", "member"),
    [
        (lambda: RequestInfo({"clientInfo": {"name": 5}}).client_info, "clientInfo"),
        (lambda: Tool({"name": "t", "icons": [{"src": 5}]}).icons, "Tool.icons"),
        (lambda: Tool({"name": "t", "annotations": {"title": 5}}).annotations, "Tool.annotations"),
        (lambda: Tool({"title": None}).title, "Tool.name"),
        (lambda: Tool({"name": "t"}).input_schema, "Tool.inputSchema"),
        (lambda: Resource({"name": "x"}).uri, "Resource.uri"),
        (lambda: Resource({"uri": "x:1", "name": "x", "size": "5"}).size, "Resource.size"),
        (lambda: ResourceTemplate({"uriTemplate": 5}).uri_template, "ResourceTemplate.uriTemplate"),
        (lambda: Prompt({"name": "p", "arguments": [{}]}).arguments, "Prompt.arguments"),
        (lambda: Completion.from_wire(wire({"completion": {"values": 5}})), "completion/complete"),
        (lambda: Completion.from_wire(wire({})), "completion/complete"),
        (lambda: CallToolResult.from_wire(wire({"content": [5]})).content, "content block"),
        (lambda: CallToolResult.from_wire(wire({"content": [{"type": "image", "data": "*"}]})).content, "'image'"),
        (lambda: ReadResourceResult.from_wire(wire({"contents": [{"uri": 5}]})).contents, "resources/read"),
        (lambda: GetPromptResult.from_wire(wire({"messages": [5]})).messages, "prompts/get"),
        (lambda: CreateMessageResult.from_wire(wire({"content": 5})).content, "content block"),
        (lambda: ListRootsResult.from_wire(wire({"roots": [{"name": "x"}]})), "roots/list"),
    ],
)
def test_what_is_an_error(look: Any, member: str) -> None:
    with pytest.raises(PeerMisbehavedError, match=member):
        look()
