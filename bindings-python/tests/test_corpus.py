"""The corpus of tests/corpus: every example is decoded, has its type, and is encoded without loss."""

from __future__ import annotations

import json
import types as standard_types
import typing
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest

from tricorn import types

ROOT = Path(__file__).parents[2]
CASES: list[dict[str, Any]] = json.loads((ROOT / "tests/corpus/index.json").read_text(encoding="utf-8"))["cases"]


class Number(str):
    """A number as it is written."""


def exact(text: bytes | str) -> Any:
    """The value with the order of its keys and the text of its numbers."""
    return json.loads(text, object_pairs_hook=tuple, parse_int=Number, parse_float=Number)


def fits(value: Any, expected: Any, *, closed: bool = False) -> bool:
    """Returns True when a decoded value has the type; `closed`: and no key that the type does not name."""
    if isinstance(expected, str):
        return fits(value, getattr(types, expected), closed=closed)
    if expected is Any:
        return True
    if expected is None or expected is type(None):
        return value is None
    if expected is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if expected is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if expected in (bool, str):
        return isinstance(value, expected)
    if isinstance(expected, typing.ForwardRef):
        return fits(value, expected.__forward_arg__, closed=closed)
    origin, arguments = get_origin(expected), get_args(expected)
    if origin is Literal:
        return any(value == known and type(value) is type(known) for known in arguments)
    if origin in (Union, standard_types.UnionType):
        return any(fits(value, member, closed=closed) for member in arguments)
    if origin is list:
        return isinstance(value, list) and all(fits(item, arguments[0], closed=closed) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(item, arguments[1], closed=closed) for item in value.values())
    assert typing.is_typeddict(expected), expected
    if not isinstance(value, dict) or not expected.__required_keys__ <= value.keys():
        return False
    hints = typing.get_type_hints(expected)
    return all(fits(item, hints[key], closed=closed) if key in hints else not closed for key, item in value.items())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_round_trip(case: dict[str, Any]) -> None:
    text = (ROOT / case["file"]).read_bytes()
    value = msgspec.json.decode(text)
    # Keys without a name in the type are what some cases are about; the official examples have none.
    assert fits(value, getattr(types, case["type"]), closed=case["official"]) == case["typed"]
    assert "python" not in case["inexact_in"]
    assert exact(msgspec.json.encode(value)) == exact(text)


def test_the_official_examples_are_all_there() -> None:
    assert sum(case["official"] for case in CASES) == 129


def test_a_dropped_field_is_noticed() -> None:
    """Decoding straight into a TypedDict drops what it does not name: never do that with what is passed on."""
    text = b'{"title": "T", "undoHint": true}'
    whole = msgspec.json.decode(text)
    lossy = msgspec.json.decode(text, type=types.ToolAnnotations)
    assert exact(msgspec.json.encode(whole)) == exact(text)
    assert exact(msgspec.json.encode(lossy)) != exact(text)


@pytest.mark.parametrize(("left", "right"), [("1", "1.0"), ('{"a":null}', "{}"), ('{"a":1,"b":2}', '{"b":2,"a":1}')])
def test_the_comparison_is_exact(left: str, right: str) -> None:
    assert exact(left) != exact(right)


def test_every_type_has_the_name_of_the_schema() -> None:
    names: set[str] = set()
    for revision in ("2026-07-28", "2025-11-25"):
        names |= json.loads((ROOT / f"schema/{revision}.json").read_text(encoding="utf-8"))["$defs"].keys()
    assert names <= set(types.__all__)
    assert all(hasattr(types, name) for name in types.__all__)
