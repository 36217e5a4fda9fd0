"""Deprecated parts of the specification: marks that type checkers read, and warnings where programs use them.

All of it works on. `tests/deprecated.toml` lists what is marked, in every language.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

ROOTS = "MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration"
SAMPLING = "MCP 2026-07-28 deprecates sampling (SEP-2577): call the API of a model's provider"
LOGGING = "MCP 2026-07-28 deprecates log messages (SEP-2577): use standard error or OpenTelemetry"
HTTP_SSE = "MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP"

_OPTIONS = {
    "roots": ROOTS,
    "sampling": SAMPLING,
    "sampling_tools": SAMPLING,
    "sampling_context": SAMPLING,
    "on_log": LOGGING,
    "sse": HTTP_SSE,
    "sse_path": HTTP_SSE,
    "sse_message_path": HTTP_SSE,
}


def _is_own(frame: FrameType | None) -> bool:
    return frame is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "tricorn"


def _warn(text: str) -> None:
    """A `DeprecationWarning` at the line outside of this package that led here."""
    level, frame = 1, sys._getframe(0)
    while _is_own(frame) and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, DeprecationWarning, stacklevel=level)


def warn_options(given: Mapping[str, object]) -> None:
    """Warns of the options among these that are deprecated, and not just switched off."""
    for name, value in given.items():
        if (note := _OPTIONS.get(name)) is not None and value is not False:
            _warn(f"option {name!r}: {note}")


if TYPE_CHECKING:
    from typing_extensions import deprecated as deprecated
else:

    def deprecated(note: str, /):
        """Marks a function or a class as PEP 702 has it; uses by this package itself are not warned of."""

        def mark(target: Any) -> Any:
            is_class = isinstance(target, type)
            run = target.__init__ if is_class else target

            @functools.wraps(run)
            def call(*args: Any, **kwargs: Any) -> Any:
                if not _is_own(sys._getframe(1)):
                    _warn(f"{target.__name__}: {note}")
                return run(*args, **kwargs)

            if is_class:
                target.__init__ = call
                target.__deprecated__ = note
                return target
            call.__deprecated__ = note
            if inspect.iscoroutinefunction(target):
                # Older versions have no such mark, and no need of it: what is returned is awaited.
                getattr(inspect, "markcoroutinefunction", lambda function: function)(call)
            return call

        return mark
