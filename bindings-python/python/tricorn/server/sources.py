"""Sources of what is not registered: lists that a program makes up, or another server's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ..bridge.host import Handler, Host
from ..bridge.threads import Threads
from ..call.handler import Answer, Subject, hook, hook_handler
from ..json.encoding import encode
from ..model.definitions import Definition, Kind
from ..model.results import Page
from . import prompts, resources, tools

_MEMBERS = {
    "tool": "tools",
    "resource": "resources",
    "resource_template": "resourceTemplates",
    "prompt": "prompts",
}


def lister(host: Host, kind: Kind, function: Callable[..., Any], threads: Threads) -> Handler:
    """The entry of the handler table that gives one page of a list."""
    bridge, member = host.bridge, _MEMBERS.get(kind, kind)

    def answer(key: int, value: Any) -> object:
        if isinstance(value, dict):  # a whole list result
            return bridge.result(key, encode(value))
        cursor: object = None
        page: dict[str, Any] = {}
        if isinstance(value, Page):  # another server's, with all that it says
            page = value.raw
        if isinstance(value, tuple):
            value, cursor = cast("tuple[Any, Any]", value)
        entries = [entry.raw if isinstance(entry, Definition) else entry for entry in cast("list[Any]", value)]
        page = {**page, member: entries}
        if cursor is not None:
            page["nextCursor"] = cursor
        return bridge.result(key, encode(page))

    subject = Subject(f"the list of {member}", "", passes_on=True)
    signature = hook(function, 1, f"set_source({kind!r}): list")
    return hook_handler(host, subject, signature, lambda p: (p.get("cursor"),), answer, threads)


def getter(host: Host, kind: Kind, function: Callable[..., Any], threads: Threads) -> Handler:
    """The entry of the handler table that gets one thing by name or URI."""
    answers: dict[str, Callable[[Host], Answer]] = {
        "resource": resources.answering,
        "resource_template": resources.answering,
        "prompt": prompts.answering,
    }
    make = answers.get(kind)
    answer = tools.answering(host, "any", False) if make is None else make(host)

    def named(params: dict[str, Any]) -> tuple[Any, ...]:
        return params["name"], params.get("arguments") or {}

    def located(params: dict[str, Any]) -> tuple[Any, ...]:
        return (params["uri"],)

    is_resource = make is resources.answering
    signature = hook(function, 1 if is_resource else 2, f"set_source({kind!r}): get")
    values = located if is_resource else named
    subject = Subject(f"the source of {_MEMBERS.get(kind, kind)}", "", for_model=kind == "tool", passes_on=True)
    return hook_handler(host, subject, signature, values, answer, threads)
