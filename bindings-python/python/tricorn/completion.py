"""Completion: who says how an argument may go on, and what a client is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from . import checks
from .content import WireResult, member
from .encoding import encode
from .errors import MisuseError, PeerMisbehavedError
from .handler import Answer, Subject, hook, hook_handler
from .host import Handler, Host
from .threads import Threads

Complete = Callable[..., Any] | Sequence[str]
"""`(value)` or `(value, arguments)`, plain or asynchronous, and a parameter annotated `Context` if wanted: gives the
values, or a `Completion`. A list completes by itself what begins like the value."""


class _Values(msgspec.Struct, rename="camel"):
    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class Completion(WireResult):
    """Up to 100 values, best first. `total` says how many there are in all, if that is known.

    A client receives it, and a function that completes may return one.
    """

    __slots__ = ("_values",)
    method = "completion/complete"

    def __init__(
        self,
        values: Sequence[str],
        total: int | None = None,
        has_more: bool | None = None,
        *,
        meta: dict[str, Any] | None = None,
    ) -> None:
        self._values = _Values(list(values), total, has_more)
        given = {"values": self._values.values, "total": total, "hasMore": has_more}
        raw: dict[str, Any] = {"completion": {key: value for key, value in given.items() if value is not None}}
        if meta is not None:
            raw["_meta"] = meta
        self._raw = raw
        self._wire = None

    @classmethod
    def from_wire(cls, wire: bytes) -> Completion:
        """Makes the completion of what a peer answered."""
        self = super().from_wire(wire)
        found = member("the result of completion/complete", self.raw.get("completion"), _Values)
        if found is None:
            raise PeerMisbehavedError("the result of completion/complete: there is no completion")
        self._values = found
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Completion) and other._values == self._values

    __hash__ = None

    @property
    def values(self) -> list[str]:
        """The values, best first."""
        return self._values.values

    @property
    def total(self) -> int | None:
        """The number of values in all."""
        return self._values.total

    @property
    def has_more(self) -> bool | None:
        """True when there are more values."""
        return self._values.has_more


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
