"""Values of a program in messages: never at any length, and never by code of their own that fails."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from typing import Any, cast

_SHOWN = 60
_ITEMS = 8
_BITS = 64
_TYPES: dict[Any, str] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    bytes: "bytes",
    list: "a list",
    Mapping: "an object",
}


def shown(value: object) -> str:
    """A value as JSON where it is small and JSON, else its type, or the beginning of its `repr`."""
    if isinstance(value, str):
        text = json.dumps(value[: _SHOWN + 1], ensure_ascii=False)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > _BITS:
        return "a large number"
    if value is None or isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        items = cast("list[object]", value)
        if len(items) <= _ITEMS and all(item is None or isinstance(item, (str, bool, int, float)) for item in items):
            text = f"[{','.join(map(shown, items))}]"
            return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    return reprlib.repr(value)


def type_of(value: object) -> str:
    """The type of a value that must not be shown, in JSON's words."""
    if value is None:
        return "null"
    for kind, word in _TYPES.items():
        if isinstance(value, kind):
            return word
    name = type(value).__qualname__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
