"""One judge for a type: who makes its schema reads and writes its values, seen by a client in memory."""

# ruff: noqa: B008, RUF013, UP007, UP045 - what others write
from __future__ import annotations

import ast
import dataclasses
import datetime
import enum
import functools
import ipaddress
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union, cast

import annotated_types
import msgspec
import pydantic
import pytest
import typing_extensions
from pydantic import Field

from tricorn import CallToolResult, Context, Form, Image, MisuseError, RpcError, Server, Text, testing
from tricorn.server.extension import Extension

from .conftest import call

T = TypeVar("T")


@dataclasses.dataclass
class Limited:
    n: Annotated[int, Field(ge=0, description="how many")]


@dataclasses.dataclass
class ByDefault:
    n: int = Field(default=1, ge=0)


class LimitedDict(typing_extensions.TypedDict):
    n: Annotated[int, annotated_types.Ge(0)]


class PlainDict(TypedDict):
    n: pydantic.PositiveInt


class LimitedTuple(NamedTuple):
    n: pydantic.NonNegativeInt


@dataclasses.dataclass
class Box(Generic[T]):
    n: T


Amount = NewType("Amount", pydantic.NonNegativeInt)  # type: ignore[valid-newtype]
Alias = typing_extensions.TypeAliasType("Alias", Annotated[int, Field(ge=0)])
Pairs = typing_extensions.TypeAliasType("Pairs", "list[Alias]")
Json = typing_extensions.TypeAliasType("Json", "list[Json] | dict[str, Json] | str | int | bool | None")


LIMITS: list[tuple[Any, Any]] = [
    (pydantic.PositiveInt, -5),
    (pydantic.NonNegativeFloat, -0.5),
    (pydantic.conint(ge=0), -1),
    (pydantic.conlist(int, min_length=2), [1]),
    (pydantic.constr(pattern="^a"), "b"),
    (pydantic.StrictInt, "1"),
    (Annotated[int, annotated_types.Ge(0)], -1),
    (Annotated[int, annotated_types.Interval(gt=0, le=9)], 10),
    (Annotated[list[int], annotated_types.Len(2)], [1]),
    (Annotated[str, annotated_types.MinLen(2)], "a"),
    (Annotated[int, annotated_types.Predicate(lambda n: n % 2 == 0)], 3),
    (
        Annotated[
            int, pydantic.AfterValidator(lambda n: pydantic.TypeAdapter(pydantic.PositiveInt).validate_python(n))
        ],
        -1,
    ),
    (list[pydantic.PositiveInt], [-1]),
    (dict[str, pydantic.PositiveInt], {"a": -1}),
    (Optional[pydantic.PositiveInt], -1),
    (Union[pydantic.PositiveInt, None], -1),
    (tuple[pydantic.PositiveInt, str], [-1, "a"]),
    (set[Annotated[int, annotated_types.Ge(0)]], [-1]),
    (Annotated[list[pydantic.PositiveInt], msgspec.Meta(min_length=2)], [1]),
    (Annotated[int | None, msgspec.Meta(ge=0)], -1),
    (Limited, {"n": -1}),
    (list[Limited], [{"n": -1}]),
    (ByDefault, {"n": -1}),
    (LimitedDict, {"n": -1}),
    (PlainDict, {"n": -1}),
    (LimitedTuple, [-1]),
    (Box[pydantic.PositiveInt], {"n": -1}),
    (Amount, -1),
    (Alias, -1),
    (Pairs, [-1]),
    (Annotated[int, Field(ge=0)], -1),
    (Annotated[int, msgspec.Meta(ge=0)], -1),
    (Annotated[datetime.datetime, Field(gt=datetime.datetime(2020, 1, 1))], "2019-01-01T00:00:00"),
    (pydantic.PastDate, "2999-01-01"),
    (pydantic.AwareDatetime, "2019-01-01T00:00:00"),
]


@pytest.mark.parametrize(("hint", "wrong"), LIMITS, ids=[str(at) for at in range(len(LIMITS))])
async def test_limits_hold_in_tools_and_in_results_that_are_read(app: Server, hint: Any, wrong: Any) -> None:
    def tool(value: Any, other: int = 0) -> str:
        raise AssertionError(value)

    tool.__annotations__["value"] = hint
    app.tool(tool)
    result = await call(app, "tool", value=wrong)
    assert result.is_error
    assert "value" in result.text

    @app.tool
    def sent() -> Any:
        return wrong

    with pytest.raises(ValueError, match=r"."):
        (await call(app, "sent")).to(list[hint] if isinstance(wrong, str) else hint)


async def test_limits_are_in_the_listed_schema(app: Server) -> None:
    @app.tool
    def pay(
        a: pydantic.PositiveInt,
        b: Annotated[int, annotated_types.Ge(0)],
        c: list[pydantic.PositiveInt],
        d: Limited,
        e: pydantic.NonNegativeFloat | None = None,
    ) -> str:
        return ""

    async with testing.connect(app) as client:
        (tool,) = await client.list_tools()
    properties = tool.input_schema["properties"]
    assert properties["a"] == {"type": "integer", "exclusiveMinimum": 0}
    assert properties["b"] == {"type": "integer", "minimum": 0}
    assert properties["c"]["items"]["exclusiveMinimum"] == 0
    assert properties["e"]["anyOf"][0]["minimum"] == 0
    field = tool.input_schema["$defs"]["Limited"]["properties"]["n"]
    assert (field["minimum"], field["description"]) == (0, "how many")


async def test_limits_of_prompts_and_templates(app: Server) -> None:
    @app.prompt
    def ask(n: pydantic.PositiveInt) -> str:
        return str(n)

    @app.resource("n://{n}")
    def read(n: Annotated[int, annotated_types.Le(9)]) -> str:
        return str(n)

    async with testing.connect(app) as client:
        with pytest.raises(RpcError, match='"n"'):
            await client.get_prompt("ask", {"n": "-5"})
        with pytest.raises(RpcError):
            await client.read_resource("n://10")
        assert (await client.get_prompt("ask", {"n": "5"})).text == "5"
        assert (await client.read_resource("n://9")).text == "9"


async def test_limits_of_forms(app: Server) -> None:
    assert Form(pydantic.PositiveInt).schema["properties"]["value"]["minimum"] == 1
    assert Form(Annotated[int, annotated_types.Ge(0)]).schema["properties"]["value"]["minimum"] == 0

    @app.tool
    async def ask(ctx: Context) -> str:
        return repr(await ctx.elicit("How much?", Annotated[float, Field(gt=0)]))

    async with testing.connect(app, elicitation=lambda _: {"value": -0.5}) as client:
        result = await client.call_tool("ask")
    assert result.is_error, result.text


async def test_limits_of_extensions(app: Server) -> None:
    extension = Extension("com.example/count")

    @extension.method("com.example/count")
    def count(n: pydantic.PositiveInt) -> dict[str, int]:
        return {"n": n}

    app.add_extension(extension)
    async with testing.connect(app, extensions={"com.example/count": {}}) as client:
        assert (await client.request("com.example/count", {"n": 1}))["n"] == 1
        with pytest.raises(RpcError, match='"n"'):
            await client.request("com.example/count", {"n": -1})


class Nobody:
    pass


@dataclasses.dataclass
class Mixed:
    n: Annotated[int, msgspec.Meta(ge=0)]
    model: Model


class Foreign(msgspec.Struct):
    n: Annotated[int, annotated_types.Ge(0)]


class Marked(TypedDict):
    n: Annotated[int, Nobody()]


class Overlooked(pydantic.BaseModel):
    n: Annotated[int, msgspec.Meta(ge=0)]


@pytest.mark.parametrize(
    ("hint", "named"),
    [
        (Annotated[int, Nobody()], "Nobody"),
        (list[Annotated[int, 5.5]], "5.5"),
        (Annotated[int, Nobody], "Nobody"),
        (Annotated[pydantic.PositiveInt, Nobody()], "Nobody"),
        (Annotated[int, annotated_types.Unit("m")], "Unit"),
        (Marked, "Nobody"),
        (Mixed, "Meta"),
        (Foreign, "Ge"),
        (Overlooked, "Meta"),
    ],
)
def test_metadata_that_nobody_understands_is_refused(app: Server, hint: Any, named: str) -> None:
    def tool(value: Any) -> str:
        return ""

    def giving() -> Any: ...

    tool.__annotations__["value"] = hint
    giving.__annotations__["return"] = hint
    with pytest.raises(MisuseError, match=named):
        app.tool(tool)
    with pytest.raises(MisuseError, match=named):
        app.tool(giving)
    with pytest.raises(MisuseError, match=named):
        app.prompt(tool)
    with pytest.raises(MisuseError, match=named):
        app.resource("x://{value}")(tool)


# -- what a type keeps back


class Model(pydantic.BaseModel):
    x: int


@pydantic.dataclasses.dataclass
class User:
    name: str
    password: str = Field(exclude=True)


class Public(pydantic.BaseModel):
    name: str


class Private(Public):
    password: str


@dataclasses.dataclass
class PlainPublic:
    name: str


@dataclasses.dataclass
class PlainPrivate(PlainPublic):
    password: str


class StructPublic(msgspec.Struct, rename="camel", tag=True):
    name: str


class StructPrivate(StructPublic):
    password: str


class DictPublic(TypedDict):
    name: str


class DictPrivate(DictPublic):
    password: str


class Holder(pydantic.BaseModel):
    user: User


@dataclasses.dataclass
class PlainHolder:
    user: User


class TuplePublic(NamedTuple):
    name: str


class TupleHolder(NamedTuple):
    number: int
    user: PlainPublic


@dataclasses.dataclass
class PublicHolder:
    user: PlainPublic
    number: int = 1


class StructHolder(msgspec.Struct, rename="camel", tag=True):
    the_user: PlainPublic


class OfNumpy:
    """A number that msgspec does not take for one when it reads."""

    def tolist(self) -> int:
        return 7


user = User(name="ada", password="hunter2")
private = Private(name="ada", password="hunter2")
plain_private = PlainPrivate("ada", "hunter2")

KEPT: list[tuple[Any, Any]] = [
    (User, user),
    (list[User], [user]),
    (dict[str, User], {"a": user}),
    (Optional[User], user),
    (Union[User, int], user),
    (tuple[User, int], (user, 1)),
    (Holder, Holder(user=user)),
    (PlainHolder, PlainHolder(user)),
    (Public, private),
    (list[Public], [private]),
    (dict[str, Public], {"a": private}),
    (Optional[Public], private),
    (Public, {"name": "ada", "password": "hunter2"}),
    (PlainPublic, plain_private),
    (list[PlainPublic], [plain_private]),
    (dict[str, PlainPublic], {"a": plain_private}),
    (Optional[PlainPublic], plain_private),
    (tuple[PlainPublic, ...], (plain_private,)),
    (tuple[PlainPublic, int], (plain_private, 1)),
    (Box[PlainPublic], Box(plain_private)),
    (StructPublic, StructPrivate("ada", "hunter2")),
    (list[StructPublic], [StructPrivate("ada", "hunter2")]),
    (DictPublic, DictPrivate(name="ada", password="hunter2")),
    (list[DictPublic], [DictPrivate(name="ada", password="hunter2")]),
    (Image | Public, private),
    (pydantic.BaseModel, Holder(user=user)),
    (list[pydantic.BaseModel], [Holder(user=user)]),
    (PublicHolder, {"user": plain_private}),
    (list[PublicHolder], [{"user": plain_private}]),
    (Optional[PublicHolder], {"user": plain_private}),
    (StructHolder, {"type": "StructHolder", "theUser": plain_private}),
    (TupleHolder, (1, plain_private)),
    (Box[PlainPublic], {"n": plain_private}),
    (Optional[PlainPublic], {"name": "ada", "password": "hunter2"}),
    (list[PlainPublic | None], [{"name": "ada", "password": "hunter2"}]),
    (StructPublic | StructHolder, {"type": "StructPublic", "name": "ada", "password": "hunter2"}),
    (PublicHolder, {"user": PlainPublic("ada"), "number": OfNumpy(), "password": "hunter2"}),
    (Any, user),
    (Any, [user]),
    (Any, {"a": {"b": (user,)}}),
    (Any, PlainHolder(user)),
    (Any, deque([user])),
    (Any, Holder(user=user)),
    (Any, (one for one in [user])),
    (list, [user]),
    (dict[str, Any], {"a": user}),
    (list[Any], [[user]]),
]


@pytest.mark.parametrize(("hint", "value"), KEPT, ids=[str(at) for at in range(len(KEPT))])
async def test_what_a_type_keeps_back_is_sent_to_nobody(app: Server, hint: Any, value: Any) -> None:
    def tool() -> Any:
        return value

    tool.__annotations__["return"] = hint
    app.tool(tool)
    result = await call(app, "tool")
    assert not result.is_error, result.text
    assert "ada" in result.text
    assert "hunter2" not in str(result.raw)


async def test_a_subclass_of_a_class_of_attrs_is_written_as_the_class_is(app: Server) -> None:
    attrs: Any = pytest.importorskip("attrs")
    public = attrs.make_class("Public", {"name": attrs.field(type=str), "_kept": attrs.field(type=int, default=1)})
    private = attrs.make_class("Private", {"password": attrs.field(type=str, default="hunter2")}, bases=(public,))

    @app.tool
    def tool(by_subclass: bool) -> public:  # type: ignore[valid-type]
        return (private if by_subclass else public)(name="ada")

    for by_subclass in (False, True):
        assert (await call(app, "tool", by_subclass=by_subclass)).structured == {"name": "ada"}


@dataclasses.dataclass
class Defaulted:
    name: str
    size: int = 4
    next: Optional[Defaulted] = None


async def test_a_dataclass_that_was_read_is_written_with_its_defaults(app: Server) -> None:
    @app.tool
    def back(one: Defaulted) -> Defaulted:
        return one

    @app.tool
    def made() -> list[Optional[Defaulted]]:
        return cast("list[Optional[Defaulted]]", [{"name": "b"}])

    whole = {"name": "a", "size": 4, "next": {"name": "b", "size": 4, "next": None}}
    result = await call(app, "back", one={"name": "a", "next": {"name": "b"}})
    assert result.structured == whole
    assert (await call(app, "made")).structured == [whole["next"]]


async def test_what_a_type_keeps_back_is_in_no_resource_either(app: Server) -> None:
    @app.resource("u://user")
    def read() -> User:
        return user

    @app.resource("u://public")
    def public() -> list[PlainPublic]:
        return [plain_private]

    app.add_resource("u://value", [user])
    async with testing.connect(app) as client:
        for uri in ("u://user", "u://public", "u://value"):
            text = (await client.read_resource(uri)).text
            assert "ada" in text
            assert "hunter2" not in text


@pydantic.dataclasses.dataclass
class Renamed:
    at: datetime.datetime
    first: int = Field(alias="First")
    second: int = Field(serialization_alias="Second")

    @pydantic.field_serializer("at")
    def _at(self, value: datetime.datetime) -> int:
        return value.year


class Snake(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(serialize_by_alias=False, populate_by_name=True)
    first_name: str = Field(alias="firstName")


async def test_a_value_is_written_by_who_made_the_schema(app: Server) -> None:
    when = datetime.datetime(2025, 1, 2, tzinfo=datetime.timezone.utc)

    @app.tool
    def renamed() -> Renamed:
        return Renamed(First=1, second=2, at=when)  # type: ignore[call-arg]

    @app.tool
    def serialized() -> Annotated[datetime.datetime, pydantic.PlainSerializer(lambda at: at.year, return_type=int)]:
        return when

    @app.tool
    def snake() -> Snake:
        return Snake(first_name="ada")  # type: ignore[call-arg]

    assert (await call(app, "renamed")).structured == {"First": 1, "Second": 2, "at": 2025}
    assert (await call(app, "serialized")).text == "2025"
    assert (await call(app, "snake")).structured == {"first_name": "ada"}


class Filled(pydantic.BaseModel):
    x: int
    y: int = 2


@dataclasses.dataclass
class Held:
    m: Model


class HeldDict(typing_extensions.TypedDict):
    m: Model


class HeldOldDict(TypedDict):
    m: Model


class HeldTuple(NamedTuple):
    m: Model


class HeldStruct(msgspec.Struct):
    m: Model


class Recursive(pydantic.BaseModel):
    children: list[Recursive] = []


@pytest.mark.parametrize(
    ("hint", "value", "expected"),
    [
        (Held, Held(Model(x=1)), {"m": {"x": 1}}),
        (HeldDict, {"m": Model(x=1)}, {"m": {"x": 1}}),
        (HeldOldDict, {"m": Model(x=1)}, {"m": {"x": 1}}),
        (HeldStruct, HeldStruct(Model(x=1)), {"m": {"x": 1}}),
        (dict[str, Model], {"m": Model(x=1)}, {"m": {"x": 1}}),
        (Box[Model], Box(Model(x=1)), {"n": {"x": 1}}),
        (Filled, {"x": 1}, {"x": 1, "y": 2}),
        (Recursive, Recursive(children=[Recursive()]), {"children": [{"children": []}]}),
        (list[Model], [Model(x=1)], [{"x": 1}]),
        (HeldTuple, HeldTuple(Model(x=1)), [{"x": 1}]),
        (Model | int, Model(x=1), {"x": 1}),
    ],
)
async def test_what_holds_a_model_has_its_schema(app: Server, hint: Any, value: Any, expected: Any) -> None:
    def tool() -> Any:
        return value

    def taking(value: Any) -> str:
        return repr(value)

    tool.__annotations__["return"] = hint
    taking.__annotations__["value"] = hint
    app.tool(tool)
    app.tool(taking)
    async with testing.connect(app, revision="2026-07-28") as client:
        listed = {tool.name: tool for tool in await client.list_tools()}
        schema = listed["tool"].output_schema
        assert schema is not None
        if isinstance(expected, dict) and hint != Model | int:
            assert schema["type"] == "object"
        result = await client.call_tool("tool")
        assert not result.is_error, result.text
        assert result.structured == expected
        taken = await client.call_tool("taking", {"value": expected})
        assert not taken.is_error, taken.text
        assert "Model(x=1)" in taken.text or hint in (Filled, Recursive)
        wrong = await client.call_tool("taking", {"value": {"m": {"x": "no"}, "children": 1}})
        assert wrong.is_error
    async with testing.connect(app, revision="2025-11-25") as client:
        if isinstance(expected, dict) and hint != Model | int:
            assert (await client.call_tool("tool")).structured == expected


async def test_a_result_that_does_not_fit_its_type_is_not_sent(app: Server) -> None:
    @app.tool
    def tool() -> Model:
        return {"password": "hunter2"}  # type: ignore[return-value]

    result = await call(app, "tool")
    assert result.is_error
    assert "hunter2" not in str(result.raw)


class Bytes(pydantic.BaseModel):
    b: bytes


@pytest.mark.parametrize(("hint", "place"), [(Bytes, "b"), (list[Bytes], r"\[0\]\.b"), (Any, "b")])
async def test_bytes_that_are_no_text_are_named(hint: Any, place: str) -> None:
    heard: list[Exception] = []
    app = Server("demo", on_error=lambda error, _: heard.append(error))
    model = Bytes(b=b"\x89PNG")

    def tool() -> Any:
        return [model] if hint == list[Bytes] else model

    tool.__annotations__["return"] = hint
    app.tool(tool)
    assert (await call(app, "tool")).is_error
    (error,) = heard
    assert isinstance(error, MisuseError)
    assert error.message.startswith(place.replace("\\", ""))
    assert 'ser_json_bytes="base64"' in error.message


# -- one parameter does not change another


async def test_a_parameter_means_what_its_own_type_says(app: Server) -> None:
    class Colour(enum.Enum):
        RED = "red"

    def alone(
        data: bytes, several: list[bytes], day: datetime.date, span: datetime.timedelta, some: set[int], colour: Colour
    ) -> str:
        return repr((data, several, day, span, some, colour))

    def beside(
        data: bytes,
        several: list[bytes],
        day: datetime.date,
        span: datetime.timedelta,
        some: set[int],
        colour: Colour,
        n: Annotated[int, Field(ge=0)] = 0,
        path: Path = Path("/"),
        model: Model | None = None,
    ) -> str:
        return repr((data, several, day, span, some, colour))

    app.tool(alone)
    app.tool(beside)
    given = {"data": "aGk=", "several": ["aGk="], "day": "2025-01-02", "span": "PT1S", "some": [1], "colour": "red"}
    async with testing.connect(app) as client:
        listed = {tool.name: tool.input_schema for tool in await client.list_tools()}
        for name, property_ in listed["alone"]["properties"].items():
            assert listed["beside"]["properties"][name] == property_
        assert listed["alone"]["properties"]["data"]["contentEncoding"] == "base64"
        text = (await client.call_tool("alone", given)).text
        assert "b'hi', [b'hi']" in text
        assert (await client.call_tool("beside", given)).text == text
        assert (await client.call_tool("beside", given | {"n": 1, "path": "/x", "model": {"x": 1}})).text == text
        wrong = await client.call_tool("beside", given | {"n": -1})
        assert wrong.is_error


async def test_definitions_of_two_judges_with_one_name_are_two(app: Server) -> None:
    def ours() -> type:
        @dataclasses.dataclass
        class Point:
            x: int

        return Point

    def theirs() -> type:
        class Point(pydantic.BaseModel):
            y: int

        return Point

    def tool(a: Any, b: Any, c: Any) -> str:
        return f"{a.x} {b.y} {c[0].y}"

    model = theirs()
    tool.__annotations__.update(a=ours(), b=model, c=list[model])  # type: ignore[valid-type]
    app.tool(tool)
    assert (await call(app, "tool", a={"x": 1}, b={"y": 2}, c=[{"y": 3}])).text == "1 2 3"


# -- what a type may be


@dataclasses.dataclass
class A:
    a: int


@dataclasses.dataclass
class B:
    b: int


TAKEN = """
import sys
from tricorn import Server, testing
import asyncio, dataclasses, typing, collections, pathlib, ipaddress, datetime
app = Server("demo")
@dataclasses.dataclass
class A: a: int
@dataclasses.dataclass
class B: b: int
def add(name, hint):
    def tool(value): return type(value).__name__
    tool.__annotations__["value"] = hint
    app.tool(name=name)(tool)
add("union", A | B)
add("dict", dict | A)
add("text", str | bytes)
add("date", datetime.date | datetime.datetime)
add("list", list | tuple)
add("path", pathlib.Path)
add("address", ipaddress.IPv4Address)
add("iterable", typing.Iterable[int])
add("deque", collections.deque)
add("object", object)
async def main():
    async with testing.connect(app) as client:
        given = {"union": {"b": 1}, "path": "/x", "address": "127.0.0.1", "deque": [1], "object": 1}
        for name, value in given.items():
            print(name, (await client.call_tool(name, {"value": value})).text)
        print([tool.input_schema for tool in await client.list_tools()])
asyncio.run(main())
"""


def test_what_a_type_may_be_does_not_depend_on_imports(script: Callable[[str], str]) -> None:
    plain = script(TAKEN)
    assert plain.splitlines()[:5] == ["union B", "path PosixPath", "address IPv4Address", "deque deque", "object int"]
    assert script("import pydantic\n" + TAKEN) == plain


def test_without_pydantic_types_that_need_it_say_so(script: Callable[[str], str]) -> None:
    code = """
        import sys
        sys.modules["pydantic"] = None
        import dataclasses, pathlib
        from typing import Annotated
        import annotated_types
        from tricorn import MisuseError, Server
        from tricorn.call.signature import arguments_of, signature_of
        from tricorn.json.judge import ArgumentError
        app = Server("demo")
        def tool(value): ...
        def registered(hint):
            tool.__annotations__["value"] = hint
            try:
                print(arguments_of(signature_of(tool))[0]["properties"]["value"])
            except MisuseError as error:
                print(error.message)
        @dataclasses.dataclass
        class Limited:
            n: Annotated[int, annotated_types.Ge(0)]
        registered(pathlib.Path)
        registered(list[Annotated[int, annotated_types.Ge(0)]])
        registered(Annotated[list[int], annotated_types.Len(1, 2)])
        registered(Annotated[int, annotated_types.Predicate(bool)])
        registered(Limited)
        class Own:
            __get_pydantic_core_schema__ = None
        registered(Own)
    """
    lines = script(code).splitlines()
    assert lines[0].endswith("; pydantic may know it: pip install 'tricorn[pydantic]'")
    assert lines[1] == "{'type': 'array', 'items': {'type': 'integer', 'minimum': 0}}"
    assert ast.literal_eval(lines[2]) == {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}
    assert "Predicate" in lines[3]
    assert lines[3].endswith(": leave it out, or install pydantic: pip install 'tricorn[pydantic]'")
    assert "Ge(ge=0) in Limited" in lines[4]
    assert lines[4].endswith(": write msgspec.Meta(...), or install pydantic: pip install 'tricorn[pydantic]'")
    assert lines[5].endswith(": pydantic is needed: pip install 'tricorn[pydantic]'")


async def test_aliases_that_refer_to_themselves(app: Server) -> None:
    def tool(value: Any) -> Any:
        return value

    tool.__annotations__.update({"value": Json, "return": Json})
    app.tool(tool)
    result = await call(app, "tool", value=[{"a": [1, None]}])
    assert not result.is_error, result.text
    assert result.text == '[{"a":[1,null]}]'


# -- descriptions


async def test_descriptions_stand_at_the_property(app: Server) -> None:
    @app.tool
    def tool(
        a: Annotated[str | None, Field(description="a")] = None,
        b: Annotated[str, Field(description="b")] = None,  # type: ignore[assignment]
        c: Annotated[str, Field(description="c")] | None = None,
        d: Annotated[str | None, msgspec.Meta(description="d")] = None,
        e: Annotated[int, msgspec.Meta(description="e", ge=0)] = None,  # type: ignore[assignment]
        f: Annotated[int, "f"] = 0,
        g: Annotated[int | None, typing_extensions.Doc("g")] = None,
        h: Annotated[Model | None, Field(description="h")] = None,
        i: pydantic.PositiveInt | None = Field(None, description="i"),
        j: Literal["x", "y"] | None = Field(default=None, description="j"),
    ) -> str:
        return f"{a} {b} {c} {d} {e} {f} {g} {h} {i} {j}"

    @app.prompt
    def ask(
        a: Annotated[str | None, Field(description="a")] = None, d: Annotated[str, msgspec.Meta(description="d")] = ""
    ) -> str:
        return ""

    async with testing.connect(app) as client:
        (listed,) = await client.list_tools()
        for name, found in listed.input_schema["properties"].items():
            assert found.get("description") == name
            assert "anyOf" not in str(found.get("anyOf", ""))
        (prompt,) = await client.list_prompts()
        assert [argument.description for argument in prompt.arguments] == ["a", "d"]
        assert (await client.call_tool("tool")).text == "None None None None None 0 None None None None"


# -- signatures


class Options(typing_extensions.TypedDict, total=False):
    limit: typing_extensions.Required[pydantic.PositiveInt]
    day: datetime.date


async def test_other_arguments_are_decoded_beside_those_with_names(app: Server) -> None:
    @app.tool
    def any_rest(a: A, when: datetime.date, **rest: Any) -> str:
        return f"{a} {when!r} {rest}"

    @app.tool
    def typed(a: A, n: pydantic.PositiveInt, **rest: datetime.date) -> str:
        return f"{a} {n} {rest}"

    @app.tool
    def limited(**rest: pydantic.PositiveInt) -> str:
        return repr(rest)

    @app.tool
    def unpacked(a: int, **rest: typing_extensions.Unpack[Options]) -> str:
        return repr((a, sorted(rest.items())))

    @app.prompt
    def ask(when: datetime.date, **rest: Any) -> str:
        return repr((when, rest))

    async with testing.connect(app) as client:
        text = (await client.call_tool("any_rest", {"a": {"a": 1}, "when": "2025-01-02", "x": [1]})).text
        assert text == "A(a=1) datetime.date(2025, 1, 2) {'x': [1]}"
        assert (await client.call_tool("any_rest", {"a": {"a": 1}, "when": "yesterday"})).is_error
        text = (await client.call_tool("typed", {"a": {"a": 1}, "n": 2, "x": "2025-01-02"})).text
        assert text == "A(a=1) 2 {'x': datetime.date(2025, 1, 2)}"
        assert (await client.call_tool("typed", {"a": {"a": 1}, "n": 2, "x": "yesterday"})).is_error
        assert (await client.call_tool("typed", {"a": {"a": 1}, "n": -2})).is_error
        assert (await client.call_tool("limited", {"x": 1})).text == "{'x': 1}"
        assert (await client.call_tool("limited", {"x": -1})).is_error
        assert (await client.call_tool("unpacked", {"a": 1, "limit": 2})).text == "(1, [('limit', 2)])"
        text = (await client.call_tool("unpacked", {"a": 1, "limit": 2, "day": "2025-01-02"})).text
        assert text == "(1, [('day', datetime.date(2025, 1, 2)), ('limit', 2)])"
        assert (await client.call_tool("unpacked", {"a": 1})).is_error
        assert (await client.call_tool("unpacked", {"a": 1, "limit": 2, "other": 3})).is_error
        listed = {tool.name: tool.input_schema for tool in await client.list_tools()}
        assert listed["limited"]["additionalProperties"]["exclusiveMinimum"] == 0
        assert list(listed["unpacked"]["properties"]) == ["a", "limit", "day"]
        assert listed["unpacked"]["required"] == ["a", "limit"]
        with pytest.raises(RpcError):
            await client.get_prompt("ask", {"when": "yesterday"})
        assert (await client.get_prompt("ask", {"when": "2025-01-02"})).text == "(datetime.date(2025, 1, 2), {})"


@pytest.mark.parametrize("typed", [False, True])
async def test_arguments_by_position_land_in_their_places(app: Server, typed: bool) -> None:
    def tool(a: int = 1, b: int = 2, /, c: int = 3, *, d: int = 4) -> str:
        return f"{a} {b} {c} {d}"

    if typed:
        tool.__annotations__["b"] = pydantic.PositiveInt
    app.tool(tool)
    assert (await call(app, "tool", b=5)).text == "1 5 3 4"
    assert (await call(app, "tool", c=5)).text == "1 2 5 4"
    assert (await call(app, "tool", a=5, d=6)).text == "5 2 3 6"
    assert (await call(app, "tool")).text == "1 2 3 4"


async def test_the_context_may_be_by_position_too(app: Server) -> None:
    @app.tool
    def tool(ctx: Context, a: int = 1, b: int = 2, /) -> str:
        return f"{ctx.request.method} {a} {b}"

    assert (await call(app, "tool", b=5)).text == "tools/call 1 5"


async def test_an_alias_is_what_clients_call_a_parameter(app: Server) -> None:
    @app.tool
    def tool(from_: Annotated[int, Field(alias="from")], to: int = Field(2, alias="until", ge=1)) -> str:
        return f"{from_} {to}"

    async with testing.connect(app) as client:
        (listed,) = await client.list_tools()
        assert list(listed.input_schema["properties"]) == ["from", "until"]
        assert listed.input_schema["required"] == ["from"]
        assert (await client.call_tool("tool", {"from": 1})).text == "1 2"
        assert (await client.call_tool("tool", {"from": 1, "until": 0})).is_error


# -- reading results


async def test_results_are_read_as_what_they_were(app: Server) -> None:
    @app.tool
    def model() -> Model:
        return Model(x=1)

    @app.tool
    def several() -> list[Model]:
        return [Model(x=1)]

    @app.tool
    def text() -> str:
        return '{"x": 1}'

    @app.tool
    def numbered() -> dict[int, str]:
        return {1: "a"}

    for revision in ("2025-06-18", "2026-07-28"):
        async with testing.connect(app, revision=revision) as client:
            assert (await client.call_tool("model")).to(Model) == Model(x=1)
            assert (await client.call_tool("several")).to(list[Model]) == [Model(x=1)]
            assert (await client.call_tool("text")).to(Model) == Model(x=1)
            assert (await client.call_tool("numbered")).to(dict[int, str]) == {1: "a"}
            assert (await client.call_tool("model")).to(dict[str, pydantic.PositiveInt]) == {"x": 1}
            with pytest.raises(pydantic.ValidationError):
                (await client.call_tool("model")).to(list[Model])
            with pytest.raises(msgspec.ValidationError):
                (await client.call_tool("model")).to(list[int])


@pytest.mark.parametrize(
    ("hint", "value", "text"),
    [
        (dict[int, str], {"x": "a"}, 'argument "value": a key: expected `int`, got `str`'),
        (dict[str, int], {"x": "a"}, 'argument "value[...]": expected `int`, got `str`'),
        (datetime.date, "yesterday", 'argument "value": invalid RFC3339 encoded date, got "yesterday"'),
        (list[A], [{"a": 1}, {}], 'argument "value[1].a": missing (required)'),
        (Model, {}, 'argument "value.x": missing (required)'),
        (pydantic.PositiveInt, -1, 'argument "value": input should be greater than 0, got -1'),
        (pydantic.Json[list[int]], [1], 'argument "value": JSON input should be string, bytes or bytearray, got [1]'),
        (list[Model], [{"x": []}], 'argument "value[0].x": input should be a valid integer, got []'),
    ],
)
def test_one_form_of_errors(hint: Any, value: Any, text: str) -> None:
    from tricorn.call.signature import arguments_of, signature_of
    from tricorn.json.judge import ArgumentError

    def tool(value: Any, n: Annotated[int, Field(ge=0)] = 0, s: str = "") -> None: ...

    tool.__annotations__["value"] = hint
    decode = arguments_of(signature_of(tool))[1]()
    with pytest.raises(ArgumentError) as caught:
        decode(msgspec.json.encode({"value": value}))
    assert str(caught.value) == text


def test_methods_and_generators_are_refused_when_they_are_registered(app: Server) -> None:
    with pytest.raises(MisuseError, match=r"app\.add_tool\(Shop\(\.\.\.\)\.buy\)"):

        class Shop:
            @app.tool
            def buy(self, n: int) -> str:
                return ""

    def numbers() -> Iterable[int]:
        yield 1

    async def later() -> Any:
        yield 1

    for function in (numbers, later):
        with pytest.raises(MisuseError, match=r"is a generator: .*`ctx\.progress\("):
            app.tool(function)
        with pytest.raises(MisuseError, match="is a generator"):
            app.prompt(function)
        with pytest.raises(MisuseError, match="is a generator"):
            app.resource("x://y")(function)


async def test_addresses_and_the_like_are_written(app: Server) -> None:
    @app.tool
    def typed() -> ipaddress.IPv4Address:
        return ipaddress.IPv4Address("127.0.0.1")

    @app.tool
    def untyped() -> Any:
        return {"a": ipaddress.IPv4Address("127.0.0.1")}

    assert (await call(app, "typed")).text == "127.0.0.1"
    assert (await call(app, "untyped")).text == '{"a":"127.0.0.1"}'


# -- what was reported of others


async def test_a_default_within_annotated_is_a_default(app: Server) -> None:
    @app.tool
    def tool(a: Annotated[int, Field(default=3)], b: Annotated[int, Field(default_factory=lambda: 4)]) -> str:
        return f"{a} {b}"

    async with testing.connect(app) as client:
        (listed,) = await client.list_tools()
        assert "required" not in listed.input_schema
        assert (await client.call_tool("tool")).text == "3 4"


class Computed(pydantic.BaseModel):
    value: int = Field(validation_alias="wireIn", serialization_alias="wireOut")

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return self.value * 2


async def test_what_is_sent_has_the_names_of_its_schema(app: Server) -> None:
    @app.tool
    def typed() -> Computed:
        return Computed(wireIn=1)  # type: ignore[call-arg]

    @app.tool
    def whole() -> CallToolResult:
        return CallToolResult(structured=Computed(wireIn=1))  # type: ignore[call-arg]

    async with testing.connect(app) as client:
        schema = {tool.name: tool.output_schema for tool in await client.list_tools()}["typed"]
        assert schema is not None
        assert schema["required"] == ["wireOut", "double"]
    for name in ("typed", "whole"):
        assert (await call(app, name)).structured == {"wireOut": 1, "double": 2}


class OwnResult(CallToolResult):
    def __init__(self, text: str) -> None:
        super().__init__(text, structured={"text": text})


class OwnText(Text):
    pass


async def test_subclasses_of_results_and_blocks_are_what_they_are(app: Server) -> None:
    @app.tool
    def typed() -> OwnResult:
        return OwnResult("hello")

    @app.tool
    def untyped() -> Any:
        return OwnResult("hello")

    @app.tool
    def block() -> OwnText:
        return OwnText("hello")

    @app.tool
    def blocks() -> Any:
        return [OwnText("hello")]

    for name in ("typed", "untyped", "block", "blocks"):
        result = await call(app, name)
        assert result.raw["content"][0] == {"type": "text", "text": "hello"}
        assert result.structured == ({"text": "hello"} if "typed" in name else None)


@pytest.mark.parametrize("text", ["12345", '{"a": 1}', "[1]", "true", "null"])
async def test_text_stays_text(app: Server, text: str) -> None:
    @app.tool
    def plain(value: str, n: pydantic.PositiveInt = 1) -> str:
        return value

    @app.tool
    def limited(value: Annotated[str, Field(min_length=1)]) -> str:
        return value

    for name in ("plain", "limited"):
        assert (await call(app, name, value=text)).text == text


async def test_validators_see_what_was_sent(app: Server) -> None:
    def split(value: Any) -> Any:
        return value.split(",") if isinstance(value, str) else value

    @app.tool
    def tool(
        tags: Annotated[list[str], pydantic.BeforeValidator(split)], n: int = 0, p: pydantic.PositiveInt = 1
    ) -> str:
        return f"{tags} {n} {p}"

    assert (await call(app, "tool", tags="a,b")).text == "['a', 'b'] 0 1"
    assert (await call(app, "tool", tags=["a"], n=2.0)).text == "['a'] 2 1"
    for wrong, said in (
        ({"tags": 5}, 'argument "tags": input should be a valid array, got 5'),
        ({"tags": [], "n": "x"}, 'argument "n": expected integer, got "x"'),
        ({"tags": [], "other": 1}, 'argument "other": unknown'),
        ({}, 'argument "tags": missing (required)'),
        ({"tags": [], "p": -1}, 'argument "p": input should be greater than 0, got -1'),
    ):
        result = await call(app, "tool", **wrong)  # type: ignore[arg-type]
        assert (result.is_error, result.text) == (True, said)

    @app.tool
    def alone(p: pydantic.PositiveInt) -> str:
        return str(p)

    assert (await call(app, "alone", p=1, q=2)).text == 'argument "q": unknown'
    assert (await call(app, "alone")).text == 'argument "p": missing (required)'


async def test_what_is_read_once_is_sent_whole(app: Server) -> None:
    @app.tool
    def typed() -> Iterable[int]:
        return (n for n in range(3))

    @app.tool
    def taken(values: Iterable[pydantic.PositiveInt]) -> str:
        return repr(list(values))

    assert (await call(app, "typed")).text == "[0,1,2]"
    assert (await call(app, "taken", values=[1, 2])).text == "[1, 2]"
    assert (await call(app, "taken", values=[1, -2])).text.startswith('argument "values[1]": ')


async def test_an_optional_whole_number_is_taken(app: Server) -> None:
    @app.tool
    def tool(size: Annotated[int | None, "Size in GB (default: 30)"] = 30) -> str:
        return repr(size)

    async with testing.connect(app) as client:
        (listed,) = await client.list_tools()
        assert listed.input_schema["properties"]["size"]["description"] == "Size in GB (default: 30)"
        assert (await client.call_tool("tool", {"size": 200})).text == "200"
        assert (await client.call_tool("tool", {"size": None})).text == "None"


async def test_a_partial_function_that_is_dressed_as_the_whole_one(app: Server) -> None:
    def add(a: pydantic.PositiveInt, b: int) -> int:
        """Add."""
        return a + b

    app.add_tool(functools.update_wrapper(functools.partial(add, 1), add))
    async with testing.connect(app) as client:
        (tool,) = await client.list_tools()
        assert (tool.name, tool.description) == ("add", "Add.")
        assert list(tool.input_schema["properties"]) == ["b"]
        assert (await client.call_tool("add", {"b": 2})).text == "3"


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


async def test_choices_say_what_type_they_are(app: Server) -> None:
    """Gemini and others take no list of tools in which a choice has no type."""

    class Order(msgspec.Struct, tag="order"):
        color: Color
        enum: Literal["a"]
        default: Literal[True] = True

    @app.tool
    def choose(
        color: Color,
        size: Size,
        word: Literal["a", "b"],
        order: Order,
        mixed: Literal["a", 1, None],
        perhaps: Optional[Literal["a", "b"]] = None,
        several: tuple[Literal[1, 2], ...] = (),
        const: Literal["c"] = "c",
    ) -> Literal["x", "y"]:
        return "x"

    (tool,) = [one for one in await listed(app) if one.name == "choose"]
    properties, definitions = tool.input_schema["properties"], tool.input_schema["$defs"]
    assert definitions["Color"]["type"] == "string"
    assert definitions["Size"]["type"] == "integer"
    assert properties["word"] == {"enum": ["a", "b"], "type": "string"}
    assert properties["perhaps"]["anyOf"][0] == {"enum": ["a", "b"], "type": "string"}
    assert properties["several"]["items"] == {"enum": [1, 2], "type": "integer"}
    assert properties["const"] == {"enum": ["c"], "type": "string", "default": "c"}
    assert "type" not in properties["mixed"]
    fields = definitions["Order"]["properties"]
    assert {name: fields[name]["type"] for name in ("type", "enum", "default")} == {
        "type": "string",
        "enum": "string",
        "default": "boolean",
    }
    assert tool.output_schema == {"enum": ["x", "y"], "type": "string"}
    arguments = {"color": "red", "size": 2, "word": "b", "mixed": None}
    assert (await call(app, "choose", **arguments, order={"type": "order", "color": "blue", "enum": "a"})).text == "x"


@dataclasses.dataclass
class Made:
    name: str
    source: dataclasses.InitVar[str]

    def __post_init__(self, source: str) -> None:
        self.name = f"{self.name} of {source}"


async def test_what_only_makes_a_value_is_no_part_of_it(app: Server) -> None:
    """An InitVar is an argument, and in no result."""

    @app.tool
    def make(made: Made) -> list[Made]:
        return [made]

    tool = (await listed(app))[-1]
    assert set(tool.input_schema["$defs"]["Made"]["required"]) == {"name", "source"}
    assert tool.output_schema is not None
    assert tool.output_schema["$defs"]["Made"]["required"] == ["name"]
    made = await call(app, "make", made={"name": "cup", "source": "clay"})
    assert made.structured == [{"name": "cup of clay"}]


async def listed(app: Server) -> list[Any]:
    async with testing.connect(app) as client:
        return list(await client.list_tools())


def _clashing() -> tuple[Any, Any, Any, Any]:
    """Models of pydantic's, and a dataclass, of which several have one name."""
    item, other = pydantic.create_model("Item", a=(int, ...)), pydantic.create_model("Item", b=(str, ...))
    plain = dataclasses.make_dataclass("Item", [("c", str)])
    return (
        pydantic.create_model("First", item=(item, ...)),
        pydantic.create_model("Second", item=(other, ...)),
        pydantic.create_model("Wrapper", item=(item, ...)),
        dataclasses.make_dataclass("Wrapper", [("item", plain)]),
    )


First, Second, OneWrapper, AnotherWrapper = _clashing()


class OfBoth(msgspec.Struct):
    first: First
    second: Second


async def test_types_of_one_name_stay_apart(app: Server) -> None:
    @app.tool
    def both(it: OfBoth) -> OfBoth:
        return it

    @app.tool
    def beside(one: OneWrapper, another: AnotherWrapper) -> str:
        return f"{one.item.a} {another.item.c}"

    it = {"first": {"item": {"a": 1}}, "second": {"item": {"b": "x"}}}
    result = await call(app, "both", it=it)
    assert result.structured == it, result.text
    arguments: dict[str, Any] = {"one": {"item": {"a": 1}}, "another": {"item": {"c": "x"}}}
    assert (await call(app, "beside", **arguments)).text == "1 x"
    async with testing.connect(app) as client:
        properties = {tool.name: tool.input_schema for tool in await client.list_tools()}["beside"]
    kinds = {name: properties["properties"][name]["$ref"].removeprefix("#/$defs/") for name in ("one", "another")}
    items = {name: properties["$defs"][kind]["properties"]["item"]["$ref"] for name, kind in kinds.items()}
    assert [
        list(properties["$defs"][items[name].removeprefix("#/$defs/")]["properties"]) for name in ("one", "another")
    ] == [["a"], ["c"]]


def _even(n: int) -> int:
    if n % 2:
        raise ValueError("that is odd")
    return n


class Even(pydantic.BaseModel):
    n: Annotated[int, pydantic.AfterValidator(_even)]


class Holds(msgspec.Struct):
    even: Even


async def test_a_model_in_a_struct_tells_its_mistakes_as_any_other(app: Server) -> None:
    @app.tool
    def both(several: list[OfBoth]) -> int:
        return len(several)

    several = [{"first": {"item": {"a": 1}}, "second": {"item": {"b": ["x"]}}}]
    async with testing.connect(app) as client:
        text = (await client.call_tool("both", {"several": several})).text
    assert text == 'argument "several[0].second.item.b": expected string, got ["x"]'

    @app.tool
    def holding(holds: Holds) -> int:
        return holds.even.n

    assert (await call(app, "holding", holds={"even": {"n": 3}})).text == (
        'argument "holds.even.n": value error, that is odd, got 3'
    )


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2026-07-28"])
async def test_a_text_is_read_as_what_it_stands_for(app: Server, revision: str) -> None:
    when = datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc)

    @app.tool(name="when")
    def _when() -> datetime.datetime:
        return when

    @app.tool
    def choice() -> Literal["a", "b"]:
        return "a"

    @app.tool
    def amount() -> pydantic.PositiveInt:
        return 3

    async with testing.connect(app, revision=revision) as client:
        assert (await client.call_tool("when")).to(datetime.datetime) == when
        assert (await client.call_tool("when")).to(pydantic.AwareDatetime) == when
        assert (await client.call_tool("choice")).to(Literal["a", "b"]) == "a"  # type: ignore[arg-type]
        assert (await client.call_tool("amount")).to(pydantic.PositiveInt) == 3
        with pytest.raises(ValueError, match="int"):
            (await client.call_tool("choice")).to(int)
        with pytest.raises(pydantic.ValidationError):
            (await client.call_tool("choice")).to(Model)
