"""Tools: what a function becomes for clients, and what its value becomes for the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, cast

from ..bridge.host import Host
from ..call.handler import Answer
from ..call.signature import Returns, Signature
from ..errors import MisuseError, unicode
from ..json import checks
from ..json.encoding import encode
from ..model.content import BLOCKS, Icon, Text, ToolAnnotations
from ..model.definitions import TaskSupport
from ..model.results import CallToolResult

Json = dict[str, Any]

_NOTHING = b'{"content":[]}'
_SPECIAL: tuple[type[Any], ...] = (CallToolResult, *BLOCKS)


def answering(host: Host, returns: Returns, declared: bool, write: Callable[[Any], bytes] = encode) -> Answer:
    """Returns the function that makes the call's answer of a value; `declared` means that there is an output schema.

    `write` makes the text of what is no content: of what the function's type declares, and no more.
    """
    bridge = host.bridge

    def anything(key: int, value: object) -> object:
        kind = type(value)
        if isinstance(value, CallToolResult):
            return bridge.result(key, value.to_wire())
        if isinstance(value, BLOCKS):
            return bridge.result(key, encode({"content": [value]}))
        if kind in (list, tuple):
            items = cast("list[object]", value)
            if any(isinstance(item, BLOCKS) for item in items):
                blocks = [Text(item) if isinstance(item, str) else item for item in items]
                return bridge.result(key, encode({"content": blocks}))
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

    def whole(key: int, value: Any) -> object:
        if type(value) is dict:
            return bridge.result(key, encode(value))
        return anything(key, value)

    if returns == "result":
        return whole
    if returns == "value" and declared:
        return plain
    return text if returns == "text" and not declared else anything


class ToolOptions(TypedDict, total=False):
    """Options of a tool; everything not given is read off the function."""

    name: str | None
    """The name that clients call it by; the function's name."""
    title: str | None
    """The name to show to people; none."""
    description: str | None
    """A description of what it does, for the model; the function's docstring."""
    annotations: ToolAnnotations | Mapping[str, Any] | None
    """Hints about its behaviour, such as `ToolAnnotations(read_only_hint=True)`; none."""
    icons: Sequence[Icon | Mapping[str, Any]] | None
    """Images for user interfaces; none."""
    meta: Mapping[str, Any] | None
    """The definition's `_meta`; none."""
    input_schema: Mapping[str, Any] | None
    """JSON Schema of the arguments, instead of the one made from the signature."""
    output_schema: Mapping[str, Any] | None
    """JSON Schema of the structured content, instead of the one of the return type; None for a tool without."""
    definition: Mapping[str, Any] | None
    """The whole Tool object as clients shall see it; nothing is read off the function then."""
    task_support: TaskSupport | None
    """Support for calls as a task, where the server has `tasks`: clients may, or must; `"forbidden"`. In 2026-07-28
    either answers a client that declares the extension `io.modelcontextprotocol/tasks` with a task; see
    `Context.run_as_task`, too."""
    run_in_thread: bool | None
    """For plain functions; False runs them on the event loop, which is faster but must never block. True."""
    scopes: Sequence[str] | None
    """The scopes that the caller's access token needs for it over HTTP, besides the server's `required_scopes`; it is
    listed to those who have them. None."""
    enabled: bool | None
    """False hides it until `set_enabled` shows it. True."""
    replace: bool | None
    """True puts it in the place of the tool of this name, if there is one.

    It is hidden when that was, unless `enabled` is given. False.
    """


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
