"""The trace that a request belongs to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from ..errors import MisuseError
from ..errors.values import shown


class TraceContext(msgspec.Struct, frozen=True, omit_defaults=True):
    """The trace that a request belongs to, each member as its W3C header has it.

    In a request's `_meta` the members have the same names. Malformed values are left out there; what a program gives is
    checked by the engine, which names the member (`MisuseError`).
    """

    traceparent: str | None = None
    """`version-traceid-parentid-flags` of W3C Trace Context, such as
    `"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"`."""
    tracestate: str | None = None
    """Data of tracing systems beside it, `key=value,...`; only with a `traceparent`."""
    baggage: str | None = None
    """Data that the program gave the trace on its way: W3C Baggage, `key=value,...`, percent-encoded, 8,192 bytes at
    most."""

    @property
    def trace_id(self) -> str | None:
        """The trace, 32 hex digits."""
        return None if self.traceparent is None else self.traceparent[3:35]

    @property
    def parent_id(self) -> str | None:
        """The span that the request was made in, 16 hex digits."""
        return None if self.traceparent is None else self.traceparent[36:52]


TraceLike = TraceContext | Mapping[str, str | None]
"""A `TraceContext`, or an object with its members."""
TraceSource = Callable[[], TraceLike | None]
"""A function that gives the trace of a request that is made where it is called."""


def trace_of(raw: Mapping[str, Any]) -> TraceContext | None:
    """Returns the trace of a request as the engine gives it."""
    found = raw.get("traceContext")
    return None if found is None else TraceContext(**found)


def told(trace: object) -> dict[str, Any]:
    """A trace as the engine takes it."""
    if isinstance(trace, TraceContext):
        members: dict[str, Any] = msgspec.to_builtins(trace)
        return members
    if isinstance(trace, Mapping):
        return dict(trace)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise MisuseError(f"trace context: expected an object, got {shown(trace)}")


def source_of(given: TraceSource | None, middleware: object) -> TraceSource | None:
    """Returns a client's source of traces: its option, else the first of its middleware that has one."""
    if given is not None or not isinstance(middleware, (list, tuple)):
        return given
    found = (getattr(one, "trace_context", None) for one in middleware)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return cast("TraceSource | None", next((one for one in found if callable(one)), None))
