"""Prompts: options, definitions, and what a handler's value becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, cast

from ..bridge.host import Host
from ..call.handler import Answer
from ..errors import MisuseError
from ..json.encoding import encode
from ..model.content import Icon, items
from ..model.messages import apart, of_prompt
from ..model.results import GetPromptResult
from .completion import Complete

Json = dict[str, Any]


class PromptOptions(TypedDict, total=False):
    """Options of a prompt; everything not given is read off the function."""

    name: str | None
    """The name that clients get it by; the function's name."""
    title: str | None
    """The name to show to people; none."""
    description: str | None
    """A description of its purpose; the function's docstring."""
    arguments: Sequence[Mapping[str, Any]] | None
    """The schema's PromptArgument objects, instead of those made from the signature."""
    icons: Sequence[Icon | Mapping[str, Any]] | None
    """Images for user interfaces; none."""
    meta: Mapping[str, Any] | None
    """The definition's `_meta`; none."""
    scopes: Sequence[str] | None
    """The scopes that the caller's access token needs for it over HTTP, besides the server's `required_scopes`; it is
    listed to those who have them. None."""
    enabled: bool | None
    """False hides it until `set_enabled` shows it. True."""
    replace: bool | None
    """True puts it in the place of the prompt of this name, if there is one.

    It is hidden when that was, unless `enabled` is given. False.
    """
    complete: Mapping[str, Complete] | None
    """Completion of arguments, by name: a function of the value so far, or a list of all values."""
    run_in_thread: bool | None
    """For plain functions; False runs them on the event loop, which is faster but must never block. True."""


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
    """A result object as it is on the wire, whose messages may have several blocks."""
    several = items(result.get("messages"))
    if not any(
        isinstance(one, dict) and isinstance(cast("dict[str, Any]", one).get("content"), list) for one in several
    ):
        return result
    return {
        **result,
        "messages": [part for one in several for part in (apart(one) if isinstance(one, dict) else [one])],
    }


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
