"""Decoding of JSON that others wrote, also where it has what only some parsers take."""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from ..errors import PeerMisbehavedError, unicode

T = TypeVar("T")
_DIGITS = 4300
"""The longest integer that is an int; longer ones are a `decimal.Decimal`, as are numbers that are no float's."""


def decode(text: bytes) -> Any:
    """The value of JSON text, with U+FFFD for half of a surrogate pair. `PeerMisbehavedError`: it cannot be read."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        pass
    try:
        value = json.loads(text, parse_int=_whole, parse_float=_real)
        return _whole_text(value) if b"\\u" in text else value
    except (ValueError, RecursionError) as error:
        raise PeerMisbehavedError(f"what was sent cannot be read: {error}") from None


def _whole(text: str) -> int | decimal.Decimal:
    # Python makes no int of thousands of digits, as that takes a time that grows with their square.
    return int(text) if len(text) <= _DIGITS else decimal.Decimal(text)


def _real(text: str) -> float | decimal.Decimal:
    number = float(text)
    return number if math.isfinite(number) else decimal.Decimal(text)


_decode = msgspec.json.Decoder(float_hook=_real).decode


def _whole_text(value: Any) -> Any:
    """The value with U+FFFD for half of a surrogate pair."""
    if isinstance(value, str):
        return unicode(value)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {unicode(name): _whole_text(item) for name, item in members.items()}
    return [_whole_text(item) for item in cast("Any", value)] if isinstance(value, list) else value


def decoded(decoder: Callable[[bytes], T], text: bytes) -> T:
    """As `decode`, by a decoder of msgspec for one type; `msgspec.ValidationError` when it is a value of another."""
    try:
        return decoder(text)
    except msgspec.ValidationError:
        raise
    except (ValueError, RecursionError):
        return _read(decoder, text)


def _read(decoder: Callable[[bytes], T], text: bytes) -> T:
    try:
        return decoder(mended(text))
    except msgspec.ValidationError:
        raise
    except (ValueError, RecursionError) as error:
        raise PeerMisbehavedError(f"what was sent cannot be read: {error}") from None


def mended(text: bytes) -> bytes:
    """The same JSON with U+FFFD for half of a surrogate pair, written as an escape. `ValueError`: it is no JSON."""
    return unicode(json.dumps(json.loads(text), ensure_ascii=False)).encode()
