"""Values that are JSON all the same: subclasses, other containers, odd keys, what can be read once."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import types
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from tricorn import CallToolResult, MisuseError, Server
from tricorn.json.encoding import encode

from .conftest import call


class Text(str):
    pass


class Whole(int):
    pass


class Real(float):
    pass


class Stamp(datetime.datetime):
    pass


class Day(datetime.date):
    pass


class Span(datetime.timedelta):
    pass


class Money(decimal.Decimal):
    pass


class Id(uuid.UUID):
    pass


class Colour(str, enum.Enum):
    RED = "red"


class Struct(msgspec.Struct, rename="camel", omit_defaults=True, tag="s"):
    first_one: Any
    rest: int = 0


@dataclasses.dataclass
class Data:
    a: Any


def numbers() -> Iterator[int]:
    yield from (1, 2)


VALUES: list[tuple[Callable[[], Any], str]] = [
    (lambda: Text("a"), '"a"'),
    (lambda: Whole(7), "7"),
    (lambda: Real(1.5), "1.5"),
    (lambda: Stamp(2025, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc), '"2025-01-02T03:04:05Z"'),
    (lambda: Day(2025, 1, 2), '"2025-01-02"'),
    (lambda: Span(days=1), '"P1D"'),
    (lambda: Money("1.50"), '"1.50"'),
    (lambda: Id(int=1), '"00000000-0000-0000-0000-000000000001"'),
    (lambda: {Text("a"): Whole(1)}, '{"a":1}'),
    (lambda: {Whole(1): "a"}, '{"1":"a"}'),
    (lambda: {True: 1, False: 2, None: 3}, '{"true":1,"false":2,"None":3}'),
    (lambda: {Colour.RED: 1, None: 2}, '{"red":1,"None":2}'),
    (lambda: {datetime.date(2025, 1, 2): 1, None: 2}, '{"2025-01-02":1,"None":2}'),
    (lambda: {1.5: 1, None: 2}, '{"1.5":1,"None":2}'),
    (lambda: [{None: [{True: Whole(1)}]}], '[{"None":[{"true":1}]}]'),
    (lambda: collections.deque([1, Whole(2)]), "[1,2]"),
    (lambda: types.MappingProxyType({"a": 1}), '{"a":1}'),
    (lambda: collections.UserDict({"a": 1}), '{"a":1}'),
    (lambda: collections.UserList([1]), "[1]"),
    (lambda: collections.UserString("a"), '"a"'),
    (lambda: collections.ChainMap({"a": 1}, {"b": 2}), '{"b":2,"a":1}'),
    (lambda: collections.Counter("aa"), '{"a":2}'),
    (numbers, "[1,2]"),
    (lambda: {"a": numbers(), "b": [numbers()]}, '{"a":[1,2],"b":[[1,2]]}'),
    (lambda: map(str, [1]), '["1"]'),
    (lambda: zip([1], "a"), '[[1,"a"]]'),
    (lambda: {"a": 1}.keys(), '["a"]'),
    (lambda: {"a": 1}.values(), "[1]"),
    (lambda: {"a": 1}.items(), '[["a",1]]'),
    (lambda: range(3), "[0,1,2]"),
    (lambda: array.array("i", [1, 2]), "[1,2]"),
    (lambda: Data(numbers()), '{"a":[1,2]}'),
    (lambda: Data({None: 1}), '{"a":{"None":1}}'),
    (lambda: Struct(numbers()), '{"type":"s","firstOne":[1,2]}'),
    (lambda: Struct({None: 1}, 3), '{"type":"s","firstOne":{"None":1},"rest":3}'),
    (lambda: [b"hi", bytearray(b"hi"), memoryview(b"hi"), numbers()], '["aGk=","aGk=","aGk=",[1,2]]'),
    (lambda: ["\ud800", numbers()], '["\ufffd",[1,2]]'),
]


@pytest.mark.parametrize(("make", "text"), VALUES, ids=[str(at) for at in range(len(VALUES))])
async def test_values_that_are_json_all_the_same(app: Server, make: Callable[[], Any], text: str) -> None:
    assert encode(make()).decode() == text

    @app.tool
    def untyped() -> Any:
        return [make()]

    result = await call(app, "untyped")
    assert not result.is_error, result.text
    assert result.text == f"[{text}]"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"a": [object()]}, "object cannot be written"),
        ({"a": int}, "the class int cannot be written"),
        ({(1, 2): 1}, "tuple cannot be a key"),
        (open, "cannot be written"),
        ({None: float("nan")}, "None: expected a finite number"),
        (({"a": x} for x in [float("inf")]), r"\[0\].a: expected a finite number"),
    ],
)
def test_what_is_no_json_is_refused(value: Any, named: str) -> None:
    with pytest.raises((TypeError, MisuseError), match=named):
        encode(value)


def test_a_whole_result_takes_them_too() -> None:
    result = CallToolResult(structured={"when": Stamp(2025, 1, 2), "some": numbers(), None: 1})
    assert result.structured == {"when": "2025-01-02T00:00:00", "some": [1, 2], "None": 1}


def test_tables_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"day": pandas.to_datetime(["2025-01-02", None]), "n": pandas.array([1, None], "Int64")})
    assert encode(frame.to_dict("records")) == b'[{"day":"2025-01-02T00:00:00","n":1},{"day":null,"n":null}]'
    assert encode({pandas.Timestamp("2025-01-02"): pandas.Timedelta(days=1)}) == b'{"2025-01-02T00:00:00":"P1D"}'
