"""Handlers of a client for its server: answers to questions, and callbacks for changes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, cast

import msgspec

from .. import _core
from ..bridge.host import Handler, Host
from ..bridge.threads import MAX_THREADS, Threads
from ..call.handler import Answer, Subject, hook, hook_handler
from ..errors import MisuseError, PeerMisbehavedError, unicode
from ..json import checks
from ..json.decoding import decode
from ..json.encoding import encode
from ..model.content import BLOCKS
from ..model.messages import CreateMessageResult, Message
from ..model.results import Elicited, Root

RootLike = str | os.PathLike[str] | Root | Mapping[str, Any]
"""A path, a `file:` URI, a `Root`, or the schema's Root object."""

QUESTIONS = ("sampling", "sampling_tools", "sampling_context", "elicitation", "elicitation_url", "roots")
CALLBACKS = ("on_notification", "on_log", "on_resource_updated", "on_list_changed", "on_stderr", "on_close")

_CHANGED = {
    "notifications/tools/list_changed": "tool",
    "notifications/resources/list_changed": "resource",
    "notifications/prompts/list_changed": "prompt",
}


def hears_lists(callbacks: Mapping[str, object]) -> bool:
    """Returns True when a callback hears of changes of lists, which newer servers tell only to those who listen."""
    return "on_list_changed" in callbacks or "on_notification" in callbacks


def hear(host: Host, callbacks: Mapping[str, Callable[..., object]], event: str, told: dict[str, Any]) -> None:
    """Tells the callbacks that an event of the engine is for."""

    def tell(name: str, *values: object) -> None:
        if (callback := callbacks.get(name)) is not None:
            host.tell(name, callback, *values)

    if event == "stderr":
        tell("on_stderr", told["line"])
    elif event == "closed":
        tell("on_close", told["reason"])
    elif event == "notification":
        method: str = told["method"]
        params: dict[str, Any] = told.get("params") or {}
        tell("on_notification", method, params)
        if method == "notifications/message":
            tell("on_log", params.get("level"), params.get("logger"), params.get("data"))
        elif method == "notifications/resources/updated":
            tell("on_resource_updated", params.get("uri"))
        elif (kind := _CHANGED.get(method)) is not None:
            tell("on_list_changed", kind)


def of_policy(policy: object) -> dict[str, Any]:
    """Returns the answers and callbacks that an object has for the server."""
    found = {name: value for name in (*QUESTIONS, *CALLBACKS) if (value := getattr(policy, name, None)) is not None}
    if not found:
        raise MisuseError(f"policy: {policy!r} has none of {', '.join((*QUESTIONS, *CALLBACKS))}")
    return found


def root_list(roots: Iterable[RootLike]) -> bytes:
    """Roots as the engine takes them; paths become absolute."""
    if isinstance(roots, (str, bytes, Mapping)) or not hasattr(roots, "__iter__"):
        raise MisuseError(
            f"roots: expected a list of paths, URLs or roots, or a function, got {checks.shown(cast('object', roots))}"
        )
    return encode([_root(one) for one in roots])


def _root(one: RootLike) -> object:
    if isinstance(one, (Root, Mapping)):
        return one
    try:
        path = os.fspath(one)
    except TypeError:
        raise MisuseError(f"root {checks.shown(one)}: expected a path, a URL or a root") from None
    return path if "://" in path else os.path.abspath(path)


def offer(core: _core.Client, host: Host, given: Mapping[str, Any]) -> bool:
    """Gives the engine what answers the server's questions. Says whether the roots are a list, which may change."""
    threads = Threads(MAX_THREADS)
    if (sampling := given.get("sampling")) is not None:
        entry = _entry(host, threads, "sampling", sampling, 1, lambda params: (params,), _sampled(host))
        parts: dict[str, Any] = {part: {} for part in ("tools", "context") if given.get(f"sampling_{part}")}
        core.set_handler("sampling/createMessage", encode(parts).decode(), host.add(entry))
    else:
        for name in ("sampling_tools", "sampling_context"):
            if given.get(name):
                raise MisuseError(f"{name}: there is no sampling")
    form, url = given.get("elicitation"), given.get("elicitation_url")
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
    if modes:
        capability = encode({mode: {} for mode in modes}).decode()
        core.set_handler("elicitation/create", capability, host.add(_by_mode(modes)))
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
    signature = hook(checks.called(name, function), most, name, of_client=True)
    return hook_handler(host, Subject(name, ""), signature, values, answer, threads)


def _by_mode(modes: dict[str, Handler]) -> Handler:
    """The engine lets through only what is declared."""
    if len(modes) == 1:
        return next(iter(modes.values()))

    def entry(raw: bytes, key: int) -> None:
        mode: object = None
        with suppress(PeerMisbehavedError):  # either answers what cannot be read
            mode = decode(raw).get("mode")
        modes["url" if mode == "url" else "form"](raw, key)

    return entry


def _sampled(host: Host) -> Answer:
    def answer(key: int, value: Any) -> object:
        if isinstance(value, str):
            return host.bridge.text(key, unicode(value))
        if isinstance(value, CreateMessageResult):
            return host.bridge.result(key, value.to_wire())
        if isinstance(value, (*BLOCKS, list, tuple)):
            value = {"content": value}
        elif isinstance(value, Message):
            value = {"role": value.role, "content": value.content}
        return host.bridge.value(key, encode(value))

    return answer


def _without_none(members: dict[str, Any]) -> dict[str, Any]:
    return {name: member for name, member in members.items() if member is not None}


def _elicited(host: Host) -> Answer:
    def answer(key: int, value: Any) -> object:
        content: object = None
        meta: dict[str, Any] = {}
        if isinstance(value, Elicited):
            given = cast("Elicited[Any]", value)  # type: ignore[redundant-cast]
            meta = {"_meta": given.meta} if given.meta else {}
            if given.action != "accept" or given.content is None:
                return host.bridge.result(key, encode({"action": given.action, **meta}))
            content = given.content
        elif isinstance(value, Mapping) or hasattr(value, "model_dump"):
            # A result, or answers: the engine knows what was asked. Forms know no null: what is None was left out.
            members = _without_none(msgspec.json.decode(encode(value)))
            if isinstance(members.get("content"), dict):
                members["content"] = _without_none(members["content"])
            return host.bridge.value(key, encode(members))
        elif isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value):
            content = value
        if content is not None:
            fields = msgspec.json.decode(encode(content))
            if not isinstance(fields, dict):
                raise TypeError(f"expected an object of answers, got {type(content).__qualname__}")
            answers = _without_none(cast("dict[str, Any]", fields))
            return host.bridge.result(key, encode({"action": "accept", "content": answers, **meta}))
        return host.bridge.value(key, encode(value))

    return answer


def _rooted(host: Host) -> Answer:
    def answer(key: int, value: Any) -> object:
        if isinstance(value, Mapping) and "roots" in value:  # a whole result
            members = cast("Mapping[str, Any]", value)
            roots = msgspec.Raw(root_list(members["roots"]))
            return host.bridge.result(key, encode({**members, "roots": roots}))
        return host.bridge.value(key, root_list(cast("Iterable[RootLike]", value)))

    return answer
