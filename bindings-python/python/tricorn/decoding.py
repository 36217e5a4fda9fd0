"""What others wrote as JSON, as values: also where it has what only some parsers take."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from .errors import PeerMisbehavedError, unicode

T = TypeVar("T")


def decode(text: bytes) -> Any:
    """The value of JSON text, with U+FFFD for half of a surrogate pair. `PeerMisbehavedError`: it cannot be read."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return _read(json.loads, text)


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
        return decoder(_mended(text))
    except msgspec.ValidationError:
        raise
    except (ValueError, RecursionError) as error:
        raise PeerMisbehavedError(f"what was sent cannot be read: {error}") from None


def _mended(text: bytes) -> bytes:
    """The same JSON with U+FFFD for half of a surrogate pair, written as an escape. `ValueError`: it is no JSON."""
    return unicode(json.dumps(json.loads(text), ensure_ascii=False)).encode()
