"""Tools: what a function becomes for clients, and what its value becomes for the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ..bridge.host import Host
from ..call.handler import Answer
from ..call.signature import Returns, Signature
from ..errors import MisuseError, unicode
from ..json import checks
from ..json.encoding import encode
from ..model.content import BLOCKS, Text, is_block, several_given
from ..model.results import CallToolResult
from .definition_options import ToolOptions

Json = dict[str, Any]

_NOTHING = b'{"content":[]}'
_SPECIAL: tuple[type[Any], ...] = (CallToolResult, *BLOCKS)


def answering(
    host: Host,
    returns: Returns,
    declared: bool,
    write: Callable[[Any], bytes] = encode,
    write_item: Callable[[Any], bytes] = encode,
) -> Answer:
    """Returns the function that makes the call's answer of a value; `declared` means that there is an output schema.

    `write` makes the text of what is no content: of what the function's type declares, and no more. `write_item` does
    so beside content, in a list.
    """
    bridge = host.bridge

    def several(key: int, items: list[object]) -> object:
        blocks = [_block(item, write_item) for item in items if item is not None]
        return bridge.result(key, encode({"content": blocks}))

    def anything(key: int, value: object) -> object:
        kind = type(value)
        if isinstance(value, CallToolResult):
            return bridge.result(key, value.to_wire())
        if isinstance(value, BLOCKS):
            return bridge.result(key, encode({"content": [value]}))
        if kind in (list, tuple):
            items = cast("list[object]", value)
            if any(isinstance(item, BLOCKS) for item in items):
                return several(key, items)
        if not declared:
            if value is None:
                return bridge.result(key, _NOTHING)
            if isinstance(value, str):
                return bridge.text(key, unicode(value))
        return bridge.value(key, write(value))

    def plain(key: int, value: Any) -> object:
        if isinstance(value, _SPECIAL):
            return anything(key, value)
        return bridge.value(key, write(value))

    def text(key: int, value: Any) -> object:
        if type(value) is str:
            return bridge.text(key, unicode(value))
        return anything(key, value)

    def blocks(key: int, value: Any) -> object:
        return several(key, value) if type(value) in (list, tuple) else anything(key, value)

    def values(key: int, value: Any) -> object:
        items = cast("list[object]", value) if type(value) in (list, tuple) else []
        rest = [item for item in items if not isinstance(item, BLOCKS)]
        if len(rest) == len(items):
            return plain(key, value)
        content = [_block(item, write_item) for item in items if item is not None]
        # Programs get the values, the model all.
        return bridge.result(key, encode({"content": content})[:-1] + b',"structuredContent":' + encode(rest) + b"}")

    def whole(key: int, value: Any) -> object:
        if type(value) is dict:
            return bridge.result(key, encode(_whole(cast(Json, value))))
        return anything(key, value)

    if returns == "result":
        return whole
    if returns == "value" and declared:
        return plain
    if returns == "values" and declared:
        return values
    if returns == "blocks" and not declared:
        return blocks
    return text if returns == "text" and not declared else anything


def _whole(result: Json) -> Json:
    """A result object as it is on the wire, whose content may be text."""
    return {**result, "content": several_given("content", result["content"])} if "content" in result else result


def _block(item: object, write: Callable[[Any], bytes]) -> object:
    """The content block that an item of a list stands for: its text, or its JSON."""
    if is_block(item):
        return item
    return Text(item if isinstance(item, str) else write(item).decode())


def define(
    function: Callable[..., Any], signature: Signature, options: ToolOptions, made: Json, output: Json | None
) -> Json:
    """The schema's Tool object."""
    name = options.get("name") or getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise MisuseError(f"tool: {function!r} has no name of its own; give it one with name=...")
    of = f"tool {checks.shown(name)}"
    if (own := options.get("input_schema")) is not None:
        checks.json_schema(f"{of}: inputSchema", own)
    given = options.get("output_schema", output)
    output = None if given is None else dict(checks.json_schema(f"{of}: outputSchema", given))
    values = {
        "name": name,
        "title": options.get("title"),
        "description": options.get("description", signature.description),
        "inputSchema": options.get("input_schema", made),
        "outputSchema": output,
        "annotations": options.get("annotations"),
        "execution": {"taskSupport": options["task_support"]} if "task_support" in options else None,
        "icons": options.get("icons"),
        "_meta": options.get("meta"),
    }
    return {key: value for key, value in values.items() if value is not None}
