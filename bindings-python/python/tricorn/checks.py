"""Checks of what a program hands over, for callers that do not check their types."""

from __future__ import annotations

import math
from typing import cast

from .errors import MisuseError


def number(name: str, value: object) -> None:
    """`MisuseError` for what is no number, or none that JSON has."""
    try:
        if math.isfinite(cast("float", value)):
            return
    except (TypeError, OverflowError):
        pass
    raise MisuseError(f"{name}: expected a number, got {value!r}")


def text(name: str, value: object) -> None:
    """`MisuseError` for what is no text."""
    if not isinstance(value, str):
        raise MisuseError(f"{name}: expected text, got {value!r}")
