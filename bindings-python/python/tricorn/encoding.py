"""Values as JSON text: what msgspec does not know, and what JSON does not have."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from . import checks
from .errors import MisuseError

_DEPTH = 64
"""How far a value is followed to the member that is no JSON."""


def encode_hook(value: Any) -> Any:
    """What msgspec does not know: pydantic models, paths, and numbers and arrays of numpy."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__qualname__} cannot be written as JSON")


_encode = msgspec.json.Encoder(enc_hook=encode_hook).encode
_pack = msgspec.msgpack.Encoder(enc_hook=encode_hook).encode
# A float of MessagePack whose exponent is all ones. In UTF-8 there are no such bytes.
_may_be_infinite = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]").search


def encode(value: Any) -> bytes:
    """`value` as JSON text.

    `MisuseError` naming the place of a number that is infinite or NaN; `TypeError` and the like for what is no JSON.
    """
    text = _encode(value)
    if (
        b"null" in text
    ):  # What msgspec makes of such a number. To look at all values here would cost more than the text.
        _check_finite(value)
    return text


def _check_finite(value: Any) -> None:
    try:
        if not _may_be_infinite(_pack(value)):
            return
    except Exception:  # noqa: BLE001 - what MessagePack does not have, such as longer integers
        pass
    with contextlib.suppress(TypeError):  # `msgspec.Raw`, which is JSON already
        checks.finite("", msgspec.to_builtins(value, str_keys=True, enc_hook=encode_hook))


def encode_params(what: str, params: Mapping[str, Any]) -> bytes:
    """Parameters that a program gave for `what`, as JSON text. `MisuseError` naming the one that is no JSON."""
    try:
        text = _encode(params)
        if b"null" in text:
            _check_finite(params)
        return text
    except MisuseError as error:
        raise MisuseError(f"{what}: {error.message}") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        place, why = wrong_in(params, error)
        raise MisuseError(f"{what}: {place}: {why}; give what JSON has, such as text of it") from error


def wrong_in(value: Any, error: Exception) -> tuple[str, str]:
    """The place in `value` that is no JSON, and why, when encoding all of it raised `error`."""
    place = ""
    for _ in range(_DEPTH):
        found = _wrong_member(value)
        if found is None:
            break
        name, value, error = found
        place += name if name.startswith("[") or not place else f".{name}"
    if isinstance(error, RecursionError):
        return place.partition(".")[0].partition("[")[0], "it is in itself, or too deep"
    if isinstance(error, UnicodeEncodeError):
        return place, "it is no Unicode: it has half of a surrogate pair"
    return place, str(error)


def _wrong_member(value: Any) -> tuple[str, Any, Exception] | None:
    members: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        members = [(str(name), member) for name, member in cast("Mapping[object, Any]", value).items()]
    elif isinstance(value, (list, tuple)):
        members = [(f"[{at}]", member) for at, member in enumerate(cast("list[Any]", value))]
    for name, member in members:
        try:
            _encode({name: member})
        except Exception as error:  # noqa: BLE001 - whatever it is that was asked for
            return name, member, error
    return None
