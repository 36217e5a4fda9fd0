"""Values as JSON text: what msgspec does not know, and what JSON does not have."""

# What is looked at here is of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import os
import re
import sys
import types
import uuid
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, Sequence, Set, ValuesView
from typing import Any, cast

import msgspec

from ..errors import MisuseError, unicode
from . import checks

_DEPTH = 64
"""Depth to which a value is followed to the member that is no JSON."""


def encode_hook(value: Any) -> Any:
    """Converts what msgspec does not know to what it knows: pydantic models, paths, arrays, subclasses, other
    containers."""
    if isinstance(value, type):
        raise TypeError(f"the class {value.__qualname__} cannot be written as JSON")
    if isinstance(value, _AS_KEYS):
        raise TypeError(f"{type(value).__qualname__} cannot be a key of JSON")
    if is_pydantic_value(value):
        return dumped(value)
    if isinstance(value, os.PathLike):
        return os.fspath(cast("os.PathLike[str]", value))
    if isinstance(value, _BASES):
        return _base(value)
    if hasattr(value, "tolist"):
        return _held(value.tolist())
    if isinstance(value, Mapping):
        return _held(dict(value))
    if isinstance(value, _SEVERAL):
        return _held(list(cast("list[Any]", value)))
    if isinstance(value, READ_ONCE):
        raise _OnceError(f"{type(value).__qualname__} can be read once only")
    if type(value).__name__ == "NAType" and type(value).__module__.startswith("pandas."):
        return None
    if isinstance(value, enum.Enum):
        return cast("object", value.value)
    if isinstance(value, ipaddress_types()):
        return str(value)
    raise TypeError(f"{type(value).__qualname__} cannot be written as JSON")


class _OnceError(TypeError):
    """Raised for a value that can be read only once: `plain` reads it, because text may be made a second time."""


_BASES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, uuid.UUID, decimal.Decimal)
_BASES += (collections.UserString, int, float, str, bytes)  # type: ignore[assignment]
_SEVERAL = (Sequence, Set, KeysView, ValuesView, ItemsView, collections.deque)
READ_ONCE = (types.GeneratorType, map, filter, zip, enumerate, reversed)
_AS_KEYS = (bool, type(None), list, tuple, set, frozenset, dict)
"""Types that msgspec asks about only where they are keys."""
_LEAVES = frozenset((type(None), bool, int, float, str, bytes, datetime.datetime, datetime.date))


def ipaddress_types() -> tuple[type, ...]:
    """The classes of `ipaddress`, if anybody has imported it."""
    module: Any = sys.modules.get("ipaddress")
    names = ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface")
    return () if module is None else tuple(getattr(module, name) for name in names)


def _base(value: Any) -> Any:
    """An instance of a subclass as one of what msgspec knows."""
    if isinstance(value, datetime.datetime):
        if value != value:  # pandas' NaT
            return None
        clock = (value.hour, value.minute, value.second, value.microsecond, value.tzinfo)
        return datetime.datetime(value.year, value.month, value.day, *clock, fold=value.fold)
    if isinstance(value, datetime.date):
        return datetime.date(value.year, value.month, value.day)
    if isinstance(value, datetime.time):
        return datetime.time(value.hour, value.minute, value.second, value.microsecond, value.tzinfo, fold=value.fold)
    if isinstance(value, datetime.timedelta):
        return datetime.timedelta(value.days, value.seconds, value.microseconds)
    if isinstance(value, uuid.UUID):
        return uuid.UUID(int=value.int)
    if isinstance(value, decimal.Decimal):
        return decimal.Decimal(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    return bytes(value) if isinstance(value, bytes) else str.__str__(value) if isinstance(value, str) else str(value)


# -- what is pydantic's: its own serializer knows what to keep back


def is_pydantic_value(value: object) -> bool:
    """Returns True for a value that pydantic writes: an instance of a model, or of a dataclass of pydantic's."""
    cls = type(value)
    return hasattr(cls, "__pydantic_serializer__") or hasattr(cls, "model_dump")


def dumped(value: Any) -> Any:
    """An instance of a model, or of a dataclass of pydantic's, as its class writes it."""
    cls = type(value)
    try:
        if hasattr(cls, "model_dump"):
            return value.model_dump(mode="json", by_alias=writes_aliases(cls))
        return cls.__pydantic_serializer__.to_python(value, mode="json", by_alias=writes_aliases(cls))
    except (UnicodeDecodeError, ValueError) as error:
        raise no_text(value, error) from None


def writes_aliases(cls: Any) -> bool:
    """Returns True when a class of pydantic's writes the names that it reads: unless its configuration says
    otherwise."""
    config: Any = getattr(cls, "model_config", None) or getattr(cls, "__pydantic_config__", None) or {}
    return config.get("serialize_by_alias") is not False


def no_text(value: Any, error: Exception) -> Exception:
    """Returns the error for bytes that pydantic could not write as text: their place, and the setting that helps."""
    if isinstance(error, UnicodeDecodeError) or "invalid utf-8" in str(error):
        place = _bytes_in(value)
        where = f"{place}: " if place else ""
        return MisuseError(
            f"{where}these bytes are no UTF-8 text, which pydantic writes bytes as; "
            'set ser_json_bytes="base64" and val_json_bytes="base64" in the configuration of the model'
        )
    return error


def _bytes_in(value: Any, depth: int = _DEPTH) -> str:
    """The place of the first bytes that are no UTF-8."""
    members: list[tuple[str, Any]] = []
    if isinstance(value, (bytes, bytearray)):
        return ""
    if isinstance(value, Mapping):
        members = [(f".{name}", item) for name, item in value.items()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        members = [(f"[{at}]", item) for at, item in enumerate(cast("list[Any]", value))]
    elif hasattr(type(value), "__pydantic_fields__") or hasattr(type(value), "__dataclass_fields__"):
        fields: Any = getattr(type(value), "__pydantic_fields__", None) or type(value).__dataclass_fields__
        members = [(f".{name}", getattr(value, name, None)) for name in fields]
    for name, item in members if depth else ():
        if isinstance(item, (bytes, bytearray)):
            try:
                item.decode()
            except UnicodeDecodeError:
                return name.removeprefix(".")
        elif found := _bytes_in(item, depth - 1):
            return f"{name.removeprefix('.')}{found if found.startswith('[') else '.' + found}"
    return ""


def _may_hold_kept() -> bool:
    """Returns True when there can be dataclasses of pydantic's, which msgspec takes for plain ones and never asks
    about."""
    return "pydantic.dataclasses" in sys.modules


def _holds_kept(value: Any) -> bool:
    """Returns True when a dataclass of pydantic's is in a value that msgspec writes by itself."""
    cls: Any = type(value)
    if cls in _LEAVES:
        return False
    if hasattr(cls, "__dataclass_fields__"):
        return hasattr(cls, "__pydantic_serializer__") or _any_kept(getattr(value, name, None) for name in _fields(cls))
    if isinstance(value, dict):
        return _any_kept(cast("dict[Any, Any]", value).values())  # type: ignore[redundant-cast]
    if isinstance(value, (list, tuple, set, frozenset)):
        return _any_kept(cast("list[Any]", value))
    return bool(names := _fields(cls)) and _any_kept(getattr(value, name, None) for name in names)


def _any_kept(values: Iterable[Any]) -> bool:
    several = list(values)
    return not _LEAVES.issuperset(map(type, several)) and any(map(_holds_kept, several))


def _fields(cls: Any) -> Iterable[str]:
    """The names of what is written of an instance of a dataclass, a Struct or a class of attrs, as msgspec does it."""
    if hasattr(cls, "__dataclass_fields__"):
        return cast("dict[str, Any]", cls.__dataclass_fields__)
    if hasattr(cls, "__struct_fields__"):
        return cast("tuple[str, ...]", cls.__struct_fields__)
    return [field.name for field in getattr(cls, "__attrs_attrs__", ()) if not field.name.startswith("_")]


def _held(value: Any) -> Any:
    return plain(value) if _may_hold_kept() else value


def plain(value: Any) -> Any:
    """The value as dictionaries, lists and what else msgspec knows, each part of it looked at once."""
    cls: Any = type(value)
    if cls in _LEAVES or cls is msgspec.Raw or value is msgspec.UNSET:
        return value
    if is_pydantic_value(value):
        return plain(dumped(value))
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    if hasattr(cls, "__dataclass_fields__") and not isinstance(value, type):
        return _members(value, cls)
    if hasattr(cls, "__attrs_attrs__"):
        return _members(value, cls)
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, *READ_ONCE)):
        return [plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, (bytearray, memoryview)) or cls in _BASES:
        return value
    if isinstance(value, enum.Enum):
        return plain(value.value)
    return plain(encode_hook(value))


def _members(value: Any, cls: Any) -> dict[str, Any]:
    members = {name: getattr(value, name, msgspec.UNSET) for name in _fields(cls)}
    return {name: plain(item) for name, item in members.items() if item is not msgspec.UNSET}


def _struct(value: Any) -> Any:
    members: dict[str, Any] = {}
    cls: Any = type(value)
    config = cls.__struct_config__
    if config.array_like:
        items = [plain(getattr(value, name)) for name in cls.__struct_fields__]
        return items if config.tag is None else [config.tag, *items]
    if config.tag is not None:
        members[config.tag_field] = config.tag
    written = msgspec.to_builtins(value, enc_hook=lambda _: None).keys() if config.omit_defaults else None
    for name, key in zip(cls.__struct_fields__, cls.__struct_encode_fields__):
        item = getattr(value, name, msgspec.UNSET)
        if item is not msgspec.UNSET and (written is None or key in written):
            members[key] = plain(item)
    return members


def _key(key: Any) -> Any:
    """The name of a member, as pydantic writes it."""
    if type(key) is str:
        return key
    if isinstance(key, enum.Enum):
        return _key(key.value)
    if isinstance(key, str):
        return str.__str__(key)
    if key is None:
        return "None"
    if isinstance(key, bool):
        return "true" if key else "false"
    if hasattr(key, "item") and hasattr(key, "dtype"):  # a number of numpy's
        return _key(key.item())
    return _base(key) if isinstance(key, _BASES) else key


_encode = msgspec.json.Encoder(enc_hook=encode_hook).encode
_pack = msgspec.msgpack.Encoder(enc_hook=encode_hook).encode
# A float of MessagePack whose exponent is all ones. In UTF-8 there are no such bytes.
_may_be_infinite = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]").search


def encode(value: Any) -> bytes:
    """`value` as JSON text, with U+FFFD for what is no Unicode.

    `MisuseError` naming the place of a number that is infinite or NaN; `TypeError` and the like for what is no JSON.
    """
    if type(value) not in _LEAVES and _may_hold_kept() and _holds(value):
        value = plain(value)
    try:
        text = _encode(value)
    except (UnicodeEncodeError, TypeError):
        value = _mended(plain(value))
        text = _encode(value)
    if (
        b"null" in text
    ):  # What msgspec makes of such a number. To look at all values here would cost more than the text.
        _check_finite(value)
    return text


def _holds(value: Any) -> bool:
    try:
        return _holds_kept(value)
    except RecursionError:  # what writes it says so
        return False


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
    except (UnicodeEncodeError, TypeError):
        return _encode(_mended(plain(value)))


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
    """Returns why a mapping whose members are JSON is none itself: the key that is at fault. None: no key is."""
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
