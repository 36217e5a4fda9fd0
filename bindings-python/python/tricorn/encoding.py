"""Values as JSON text: what msgspec does not know, and what JSON does not have."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from . import checks
from .errors import MisuseError, unicode

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
    """`value` as JSON text, with U+FFFD for what is no Unicode.

    `MisuseError` naming the place of a number that is infinite or NaN; `TypeError` and the like for what is no JSON.
    """
    try:
        text = _encode(value)
    except UnicodeEncodeError:
        text = _encode(_mended(value))
    if (
        b"null" in text
    ):  # What msgspec makes of such a number. To look at all values here would cost more than the text.
        _check_finite(value)
    return text


def encode_exact(value: Any) -> bytes:
    """As `encode`, for what is looked up by its text, such as a path. `MisuseError` naming what is no Unicode."""
    try:
        text = _encode(value)
    except UnicodeEncodeError as error:
        place, why = wrong_in(value, error, _encode)
        raise MisuseError(f"{place}: {why}" if place else why) from None
    if b"null" in text:
        _check_finite(value)
    return text


def _mended(value: Any) -> Any:
    """The value with U+FFFD for what is no Unicode."""
    if isinstance(value, str):
        return unicode(value)
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)  # type: ignore[redundant-cast]
        return {unicode(key) if isinstance(key, str) else key: _mended(item) for key, item in members.items()}
    if isinstance(value, (list, tuple)):
        return [_mended(item) for item in cast("list[Any]", value)]
    if value is None or isinstance(value, (bool, int, float, msgspec.Raw)):
        return value
    return _mended(msgspec.to_builtins(value, str_keys=True, enc_hook=encode_hook))


def _check_finite(value: Any) -> None:
    try:
        if not _may_be_infinite(_pack(value)):
            return
    except Exception:  # noqa: BLE001 - what MessagePack does not have, such as longer integers
        pass
    try:
        plain = msgspec.to_builtins(value, str_keys=True, enc_hook=encode_hook)
    except TypeError:  # `msgspec.Raw`, which is JSON already
        plain = value
    checks.finite("", plain)


def encode_params(what: str, params: Mapping[str, Any]) -> bytes:
    """Parameters that a program gave for `what`, as JSON text. `MisuseError` naming the one that is no JSON."""
    try:
        return encode(params)
    except MisuseError as error:
        raise MisuseError(f"{what}: {error.message}") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        place, why = wrong_in(params, error, _text)
        where = f"{what}: {place}" if place else what
        raise MisuseError(f"{where}: {why}; give what JSON has, such as text of it") from error


def _text(value: Any) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(_mended(value))


def wrong_in(value: Any, error: Exception, write: Callable[[Any], bytes]) -> tuple[str, str]:
    """The place in `value` that is no JSON, empty for itself, and why, when to `write` all of it raised `error`."""
    place = ""
    for _ in range(_DEPTH):
        found = _wrong_member(value, write)
        if found is None:
            break
        name, value, error = found
        place += name if name.startswith("[") or not place else f".{name}"
    if isinstance(error, RecursionError):
        return place.partition(".")[0].partition("[")[0], "it is in itself, or too deep"
    if isinstance(error, UnicodeEncodeError):
        return place, "it is no Unicode: it has half of a surrogate pair"
    return place, _wrong_key(value, write) or str(error)


def _wrong_key(value: Any, write: Callable[[Any], bytes]) -> str | None:
    """Why a mapping is no JSON whose members are."""
    for key in cast("Mapping[object, Any]", value) if isinstance(value, Mapping) else ():
        try:
            write({key: None})
        except Exception as error:  # noqa: BLE001 - whatever it is that was asked for
            return f"the key {key!r}: {error}"
    return None


def _wrong_member(value: Any, write: Callable[[Any], bytes]) -> tuple[str, Any, Exception] | None:
    members: list[tuple[str, Any]] = []
    if isinstance(value, Mapping):
        members = [(str(name), member) for name, member in cast("Mapping[object, Any]", value).items()]
    elif isinstance(value, (list, tuple)):
        members = [(f"[{at}]", member) for at, member in enumerate(cast("list[Any]", value))]
    for name, member in members:
        try:
            write({name: member})
        except Exception as error:  # noqa: BLE001 - whatever it is that was asked for
            return name, member, error
    return None
