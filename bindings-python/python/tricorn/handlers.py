"""What a client does for its server: answers questions with functions, and hears of changes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, cast

import msgspec

from . import _core
from .ask import CreateMessageResult, Elicited, Root
from .content import BLOCKS
from .errors import MisuseError
from .handler import INVALID_PARAMS, Answer, Subject, encode, hook, hook_handler
from .host import Handler, Host, Threads
from .prompts import Message

MAX_THREADS = 32

RootLike = str | os.PathLike[str] | Root | Mapping[str, Any]
"""A path, a `file:` URI, a `Root`, or the schema's Root object."""


class Handlers(TypedDict, total=False):
    """What a client does for its server. What is given is declared as a capability.

    All may be plain functions, which run in worker threads, or asynchronous ones; those of a `Client` then run on a
    thread of the library's own. They take fewer parameters if they like, and one more annotated `Context`.
    """

    sampling: Callable[..., Any]
    """`(params)`: has a model go on. Gets the schema's CreateMessageRequestParams, gives text or a
    `CreateMessageResult`."""
    sampling_tools: bool
    """True declares that `sampling` knows what to do with `params["tools"]`."""
    elicitation: Callable[..., Any]
    """`(message, schema)`: shows the user a form. Gives the content as a dictionary or object, `"decline"`, `"cancel"`
    or an `Elicited`; None declines."""
    elicitation_url: Callable[..., Any]
    """`(message, url, elicitation_id)`: shows the user where a page is. Gives `"accept"` or True when the user agrees
    to go there, `"decline"` or `"cancel"` otherwise."""
    roots: Sequence[RootLike] | Callable[..., Any]
    """The folders and files that the server may work on, or a function that says which."""
    on_log: Callable[[str, str | None, Any], object]
    """Called with level, logger and data of every log message."""
    on_resource_updated: Callable[[str], object]
    """Called with the URI of a resource that was subscribed to and has changed."""
    on_list_changed: Callable[[str], object]
    """Called with `"tool"`, `"resource"` (templates, too) or `"prompt"` when that list has changed."""


QUESTIONS = ("sampling", "sampling_tools", "elicitation", "elicitation_url", "roots")
CALLBACKS = ("on_log", "on_resource_updated", "on_list_changed")

_CHANGED = {
    "notifications/tools/list_changed": "tool",
    "notifications/resources/list_changed": "resource",
    "notifications/prompts/list_changed": "prompt",
}


def hear(callbacks: Mapping[str, Callable[..., object]], method: str, params: dict[str, Any]) -> None:
    """Tells the callback that a notification is for."""
    if method == "notifications/message":
        if heard := callbacks.get("on_log"):
            heard(params.get("level"), params.get("logger"), params.get("data"))
    elif method == "notifications/resources/updated":
        if heard := callbacks.get("on_resource_updated"):
            heard(params.get("uri"))
    elif (kind := _CHANGED.get(method)) and (heard := callbacks.get("on_list_changed")):
        heard(kind)


def root_list(roots: Iterable[RootLike]) -> bytes:
    """Roots as the engine takes them; paths become absolute."""
    if isinstance(roots, (str, bytes)):
        raise MisuseError(f"roots: expected a list, got {roots!r}")
    return encode([_root(one) for one in roots])


def _root(one: RootLike) -> object:
    if isinstance(one, (Root, Mapping)):
        return one
    path = os.fspath(one)
    return path if "://" in path else os.path.abspath(path)


def offer(core: _core.Client, host: Host, given: Mapping[str, Any]) -> bool:
    """Gives the engine what answers the server's questions. Says whether the roots are a list, which may change."""
    threads = Threads(MAX_THREADS)
    if (sampling := given.get("sampling")) is not None:
        entry = _entry(host, threads, "sampling", sampling, 1, lambda params: (params,), _sampled(host))
        capability = '{"tools":{}}' if given.get("sampling_tools") else "{}"
        core.set_handler("sampling/createMessage", capability, host.add(entry))
    elif given.get("sampling_tools"):
        raise MisuseError("sampling_tools: there is no sampling")
    form, url = given.get("elicitation"), given.get("elicitation_url")
    if form is not None or url is not None:
        modes: dict[str, Handler] = {}
        if form is not None:
            modes["form"] = _entry(
                host,
                threads,
                "elicitation",
                form,
                2,
                lambda params: (params.get("message"), params.get("requestedSchema")),
                _elicited(host),
            )
        if url is not None:
            modes["url"] = _entry(
                host,
                threads,
                "elicitation_url",
                url,
                3,
                lambda params: (params.get("message"), params.get("url"), params.get("elicitationId")),
                _elicited(host),
            )
        capability = encode({mode: {} for mode in modes}).decode()
        core.set_handler("elicitation/create", capability, host.add(_by_mode(host, modes)))
    roots = given.get("roots")
    if roots is None:
        return False
    if callable(roots):
        entry = _entry(host, threads, "roots", roots, 0, lambda _: (), _rooted(host))
        core.set_handler("roots/list", '{"listChanged":true}', host.add(entry))
        return False
    core.set_roots(root_list(roots).decode())
    return True


def _entry(
    host: Host,
    threads: Threads,
    name: str,
    function: Callable[..., Any],
    most: int,
    values: Callable[[dict[str, Any]], tuple[Any, ...]],
    answer: Answer,
) -> Handler:
    if not callable(function):
        raise MisuseError(f"{name}: expected a function, got {function!r}")
    return hook_handler(host, Subject(name, ""), hook(function, most, name), values, answer, threads, None)


def _by_mode(host: Host, modes: dict[str, Handler]) -> Handler:
    def entry(raw: bytes, key: int) -> None:
        mode = msgspec.json.decode(raw).get("mode") or "form"
        found = modes.get(mode)
        if found is None:
            host.bridge.error(key, f"elicitation of mode {mode!r} is not declared", INVALID_PARAMS)
        else:
            found(raw, key)

    return entry


def _sampled(host: Host) -> Answer:
    def answer(key: int, value: Any) -> object:
        if isinstance(value, str):
            return host.bridge.text(key, value)
        if isinstance(value, CreateMessageResult):
            return host.bridge.result(key, value.to_wire())
        if isinstance(value, (*BLOCKS, list, tuple)):
            value = {"content": value}
        elif isinstance(value, Message):
            value = {"role": value.role, "content": value.content}
        return host.bridge.value(key, encode(value))

    return answer


_ACTIONS = ("accept", "decline", "cancel")


def _elicited(host: Host) -> Answer:
    def answer(key: int, value: Any) -> object:
        content: object = None
        if isinstance(value, Elicited):
            given = cast("Elicited[Any]", value)  # type: ignore[redundant-cast]
            value = {"action": given.action}
            content = given.content if given.action == "accept" else None
        elif isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            if members.get("action") not in _ACTIONS or not members.keys() <= {"action", "content", "_meta"}:
                content = members
        elif isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value) or hasattr(value, "model_dump"):
            content = value
        if content is not None:
            # Forms know no null: what is None was left out.
            fields = msgspec.json.decode(encode(content))
            if not isinstance(fields, dict):
                raise TypeError(f"expected an object of answers, got {type(content).__qualname__}")
            fields = cast("dict[str, Any]", fields)
            value = {"action": "accept", "content": {n: field for n, field in fields.items() if field is not None}}
        return host.bridge.value(key, encode(value))

    return answer


def _rooted(host: Host) -> Answer:
    return lambda key, value: host.bridge.value(key, root_list(value))
