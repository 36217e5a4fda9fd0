"""Prompts: options, definitions, and what a handler's value becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ..bridge.host import Host
from ..call.handler import Answer
from ..errors import MisuseError
from ..json.encoding import encode
from ..model.messages import of_prompt
from ..model.results import GetPromptResult
from .definition_options import PromptOptions

Json = dict[str, Any]


def answering(host: Host, typed: bool = False) -> Answer:
    """Returns the function that makes the answer to prompts/get of a value; `typed`: it is declared to be a whole
    result."""
    bridge = host.bridge

    def answer(key: int, value: Any) -> object:
        if isinstance(value, GetPromptResult):
            return bridge.result(key, value.to_wire())
        if isinstance(value, dict) and (typed or "messages" in value):
            return bridge.result(key, encode(_whole(cast("dict[str, Any]", value))))
        if value is None:
            return bridge.value(key, b"null")  # the engine says what is expected
        return bridge.result(key, encode({"messages": of_prompt(value)}))

    return answer


def _whole(result: dict[str, Any]) -> dict[str, Any]:
    """A result object as it is on the wire, whose messages may be text or have several blocks."""
    return {**result, "messages": of_prompt(result["messages"])} if "messages" in result else result


def define(function: Callable[..., Any], description: str | None, options: PromptOptions) -> Json:
    """The schema's Prompt object; the engine adds the arguments that the signature says."""
    name = options.get("name") or getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise MisuseError(f"prompt: {function!r} has no name of its own; give it one with name=...")
    values = {
        "name": name,
        "title": options.get("title"),
        "description": options.get("description", description),
        "arguments": options.get("arguments"),
        "icons": options.get("icons"),
        "_meta": options.get("meta"),
    }
    return {key: value for key, value in values.items() if value is not None}
