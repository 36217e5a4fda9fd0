"""Completion: functions and lists that say how an argument may go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..bridge.host import Handler, Host
from ..bridge.threads import Threads
from ..call.handler import Answer, Subject, hook, hook_handler
from ..errors import MisuseError
from ..json import checks
from ..json.encoding import encode
from ..model.results import Completion

Complete = Callable[..., Any] | Sequence[str]
"""`(value)` or `(value, arguments)`, plain or asynchronous, and a parameter annotated `Context` if wanted: gives the
values, or a `Completion`. A list completes by itself what begins like the value."""


def answering(host: Host) -> Answer:
    """Returns the function that turns a handler's value into the answer to completion/complete."""
    bridge = host.bridge

    def answer(key: int, value: Any) -> object:
        if isinstance(value, Completion):
            return bridge.result(key, value.to_wire())
        if value is None:
            value = []
        elif not isinstance(value, (str, Mapping)):
            value = list(value)
        return bridge.value(key, encode(value))

    return answer


def _begun(values: Sequence[str]) -> Callable[[str], list[str]]:
    def begin(value: str) -> list[str]:
        return [one for one in values if one.lower().startswith(value.lower())]

    return begin


def _arguments(params: dict[str, Any]) -> dict[str, str]:
    context: dict[str, Any] = params.get("context") or {}
    return context.get("arguments") or {}


def completer(host: Host, of: str, argument: str, complete: Complete, threads: Threads) -> Handler:
    """The entry of the handler table that completes one argument of a prompt or a template, `of`."""
    what = f'{of}: the completion of "{argument}"'
    if not callable(complete):
        several: list[Any] = list(complete) if hasattr(complete, "__iter__") else [complete]
        if isinstance(complete, (str, Mapping)) or not all(isinstance(one, str) for one in several):
            raise MisuseError(f"{what}: expected a function or a list of strings, got {checks.shown(complete)}")
        signature = hook(_begun(several), 1, what)
        inline: Threads | None = None
    else:
        signature = hook(complete, 2, what)
        inline = threads

    def values(params: dict[str, Any]) -> tuple[Any, ...]:
        return params["argument"]["value"], _arguments(params)

    subject = Subject("the completion of", argument)
    return hook_handler(host, subject, signature, values, answering(host), inline)


def fallback(host: Host, complete: Callable[..., Any], threads: Threads) -> Handler:
    """The entry of the handler table that completes what nothing else does."""
    signature = hook(complete, 4, "on_complete")

    def values(params: dict[str, Any]) -> tuple[Any, ...]:
        return params["ref"], params["argument"]["name"], params["argument"]["value"], _arguments(params)

    return hook_handler(host, Subject("the completion", ""), signature, values, answering(host), threads)
