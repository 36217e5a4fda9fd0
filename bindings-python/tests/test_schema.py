"""Signatures: what a function's arguments and result look like to a client, and how arguments are decoded."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, NoReturn, Optional, TypedDict
from uuid import UUID

import msgspec
import pydantic
import pytest

from tricorn import CallToolResult, Context, Image, MisuseError, Text
from tricorn.call.signature import arguments_of, result_of, signature_of
from tricorn.json.judge import ArgumentError


def arguments(function: Callable[..., Any]) -> dict[str, Any]:
    return arguments_of(signature_of(function))[0]


def decode(function: Callable[..., Any], raw: bytes) -> dict[str, Any]:
    return arguments_of(signature_of(function))[1]()(raw)


def result(function: Callable[..., Any]) -> tuple[str, dict[str, Any] | None]:
    return result_of(signature_of(function).hint)[:2]


@dataclass
class Point:
    x: int
    y: int = 0


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Sum(TypedDict):
    sum: int


class Tree(msgspec.Struct):
    value: int
    children: list[Tree] = []


class Opaque:
    pass


class User(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0, description="In years")


def test_plain_types() -> None:
    def tool(a: int, b: str, c: float, d: bool) -> None: ...

    assert arguments(tool) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "string"},
            "c": {"type": "number"},
            "d": {"type": "boolean"},
        },
        "required": ["a", "b", "c", "d"],
        "additionalProperties": False,
    }


def test_no_arguments() -> None:
    def tool() -> None: ...

    assert arguments(tool) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert decode(tool, b"{}") == {}


def test_defaults_are_shown_and_left_to_python() -> None:
    def tool(a: int, b: int = 3, c: list[str] | None = None, d: Color = Color.RED) -> None: ...

    made = arguments(tool)
    assert made["required"] == ["a"]
    assert made["properties"]["b"] == {"type": "integer", "default": 3}
    assert made["properties"]["c"]["default"] is None
    assert made["properties"]["d"]["default"] == "red"
    assert decode(tool, b'{"a":1}') == {"a": 1}


def test_a_default_that_is_no_json_is_not_shown() -> None:
    def tool(a: Any = object()) -> None: ...  # noqa: B008

    assert arguments(tool)["properties"] == {"a": {}}


def test_an_untyped_parameter_takes_anything() -> None:
    def tool(a, b=1): ...  # type: ignore[no-untyped-def]

    assert arguments(tool)["properties"] == {"a": {}, "b": {"default": 1}}
    assert decode(tool, b'{"a":[1,{"x":null}]}') == {"a": [1, {"x": None}]}


def test_structured_types_are_decoded() -> None:
    def tool(p: Point, t: Tree, when: datetime, ids: list[UUID], color: Color, kind: Literal["a", "b"]) -> None: ...

    made = arguments(tool)
    assert made["properties"]["p"] == {"$ref": "#/$defs/Point"}
    assert made["$defs"]["Point"]["required"] == ["x"]
    got = decode(
        tool,
        b'{"p":{"x":1},"t":{"value":1,"children":[{"value":2}]},"when":"2025-01-02T03:04:05Z",'
        b'"ids":["12345678-1234-5678-1234-567812345678"],"color":"blue","kind":"a"}',
    )
    assert got["p"] == Point(1)
    assert got["t"] == Tree(1, [Tree(2)])
    assert got["when"].year == 2025
    assert got["ids"] == [UUID("12345678-1234-5678-1234-567812345678")]
    assert got["color"] is Color.BLUE


def test_descriptions_from_annotations_and_docstring() -> None:
    def tool(a: Annotated[int, msgspec.Meta(description="from Meta", ge=1)], b: str, c: str = "") -> None:
        """Do something.

        Over two paragraphs.

        Args:
            a: not used
            b (str): the second
                over two lines
            c: the third

        Returns:
            Nothing.
        """

    signature = signature_of(tool)
    assert signature.description == "Do something.\n\nOver two paragraphs.\n\nReturns:\n    Nothing."
    properties = arguments(tool)["properties"]
    assert properties["a"] == {"type": "integer", "minimum": 1, "description": "from Meta"}
    assert properties["b"]["description"] == "the second over two lines"
    assert properties["c"] == {"type": "string", "description": "the third", "default": ""}


def test_sphinx_docstrings() -> None:
    def tool(a: int, b: str) -> None:
        """Do something.

        :param a: the first
        :param str b: the second
        :returns: nothing
        """

    assert signature_of(tool).description == "Do something."
    assert arguments(tool)["properties"]["a"]["description"] == "the first"
    assert arguments(tool)["properties"]["b"]["description"] == "the second"


def test_the_context_is_no_argument() -> None:
    def tool(a: int, ctx: Context, b: int = 0) -> None: ...
    def optional(ctx: Optional[Context] = None) -> None: ...  # noqa: UP045
    def union(ctx: "Context | None" = None) -> None: ...  # noqa: UP037

    assert signature_of(tool).context == "ctx"
    assert list(arguments(tool)["properties"]) == ["a", "b"]
    assert signature_of(optional).context == "ctx"
    assert signature_of(union).context == "ctx"


def test_keyword_catch_all() -> None:
    def tool(a: int, **rest: Any) -> None: ...

    assert "additionalProperties" not in arguments(tool)
    assert decode(tool, b'{"a":1,"z":2}') == {"a": 1, "z": 2}


def test_positional_only_parameters_are_called_by_position() -> None:
    def tool(a: int, b: int = 2, /, c: int = 3) -> tuple[int, int, int]:
        return a, b, c

    signature = signature_of(tool)
    assert signature.call(a=1, b=5, c=7) == (1, 5, 7)
    assert signature.call(a=1) == (1, 2, 3)


def test_partials_methods_and_callables() -> None:
    class Adder:
        def __call__(self, a: int) -> int:
            return a

        async def method(self, a: int) -> int:
            return a

    def plain(a: int, b: str) -> None: ...

    assert list(arguments(functools.partial(plain, b="x"))["properties"]) == ["a", "b"]
    assert arguments(functools.partial(plain, 1))["required"] == ["b"]
    assert arguments(Adder())["required"] == ["a"]
    assert signature_of(Adder().method).is_async
    assert not signature_of(Adder()).is_async


def test_a_partial_of_what_a_decorator_has_made() -> None:
    def plain(a: int, b: str) -> None: ...

    @functools.wraps(plain)
    async def decorated(*args: Any, **kwargs: Any) -> None: ...

    partial = functools.partial(decorated, b="x")
    for function in (partial, functools.update_wrapper(partial, plain), functools.partial(partial, b="y")):
        assert arguments(function)["properties"]["a"] == {"type": "integer"}
        assert arguments(function)["required"] == ["a"]
        assert signature_of(function).is_async


def test_a_partial_is_described_as_the_whole() -> None:
    def plain(a: int, b: str) -> None:
        """Does it.

        Args:
            a: how often
        """

    partial = functools.partial(functools.partial(plain, b="x"), b="y")
    assert signature_of(partial).description == "Does it."
    assert arguments(partial)["properties"]["a"]["description"] == "how often"
    partial.__doc__ = "Does it to y."
    assert signature_of(partial).description == "Does it to y."
    assert signature_of(functools.partial(lambda a: a, 1)).description is None


def test_a_decorator_without_wraps_is_told_what_helps() -> None:
    def decorated(*args: Any, **kwargs: Any) -> None: ...

    with pytest.raises(MisuseError, match=r"\*args cannot .* use functools\.wraps"):
        arguments(decorated)


def test_what_cannot_be_described_is_refused_with_its_name() -> None:
    def opaque(thing: Opaque) -> None: ...
    def many(*numbers: int) -> None: ...
    def unresolved(thing: Nowhere) -> None: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(MisuseError, match=r"parameter 'thing' has no JSON Schema.*Opaque"):
        arguments(opaque)
    with pytest.raises(MisuseError, match=r"\*numbers cannot .* take a list instead$"):
        arguments(many)
    with pytest.raises(MisuseError, match="Nowhere"):
        arguments(unresolved)


def test_local_names_in_annotations_are_found() -> None:
    @dataclass
    class Local:
        x: int

    def tool(point: Local) -> None: ...

    assert arguments_of(signature_of(tool))[0]["properties"]["point"] == {"$ref": "#/$defs/Local"}


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b'{"a":"x","p":{"x":1}}', 'argument "a": expected integer, got "x"'),
        (b'{"a":1,"p":{"x":1,"y":[]}}', 'argument "p.y": expected integer, got []'),
        (b'{"a":1}', 'argument "p": missing (required)'),
        (b'{"a":1,"p":{}}', 'argument "p.x": missing (required)'),
        (b'{"a":1,"p":{"x":1},"ids":["q"]}', 'argument "ids[0]": invalid UUID, got "q"'),
        (
            b'{"a":1,"p":{"x":1},"n":"%s"}' % (b"y" * 100),
            'argument "n": expected integer or null, got "' + "y" * 76 + "...",
        ),
    ],
)
def test_decoding_errors_speak_of_arguments(raw: bytes, text: str) -> None:
    def tool(a: int, p: Point, ids: list[UUID] | None = None, n: int | None = None) -> None: ...

    with pytest.raises(ArgumentError) as caught:
        decode(tool, raw)
    assert str(caught.value) == text


def test_integral_floats_are_integers_as_in_json_schema() -> None:
    def tool(a: int, b: list[int], c: float) -> None: ...

    assert decode(tool, b'{"a":1.0,"b":[2.0],"c":3}') == {"a": 1, "b": [2], "c": 3.0}
    with pytest.raises(ArgumentError, match=r'argument "a": expected integer, got 1\.5'):
        decode(tool, b'{"a":1.5,"b":[],"c":1}')


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (None, ("nothing", None)),
        (NoReturn, ("nothing", None)),
        (str, ("text", None)),
        (Any, ("any", None)),
        (str | None, ("any", None)),
        (Text, ("any", None)),
        (list[Image], ("blocks", None)),
        (list[str | Image], ("blocks", None)),
        (list[Image] | None, ("blocks", None)),
        (list, ("values", {"type": "array", "items": {}})),
        (list[Any] | None, ("values", {"anyOf": [{"type": "array", "items": {}}, {"type": "null"}]})),
        (CallToolResult, ("any", None)),
        (object, ("any", None)),
        (int, ("value", {"type": "integer"})),
        (list[int], ("value", {"type": "array", "items": {"type": "integer"}})),
        (dict[str, int], ("value", {"type": "object", "additionalProperties": {"type": "integer"}})),
        (
            Sum,
            (
                "value",
                {"title": "Sum", "type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]},
            ),
        ),
    ],
)
def test_results(hint: Any, expected: tuple[str, Any]) -> None:
    assert result_of(hint)[:2] == expected


def test_the_root_of_an_output_schema_is_no_reference() -> None:
    def tool() -> Tree:
        raise NotImplementedError

    kind, made = result(tool)
    assert kind == "value"
    assert made is not None
    assert made["type"] == "object"
    assert made["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert "Tree" in made["$defs"]


def test_pydantic_models_and_fields() -> None:
    def tool(
        user: User, n: Annotated[int, pydantic.Field(description="How many", gt=0)] = 1, late: int = pydantic.Field(2)
    ) -> User:
        """Do it.

        Args:
            user: Whom
        """
        raise NotImplementedError

    made = arguments(tool)
    assert made["required"] == ["user"]
    assert made["properties"]["user"] == {"$ref": "#/$defs/User", "description": "Whom"}
    assert made["properties"]["n"]["description"] == "How many"
    assert made["$defs"]["User"]["properties"]["age"]["description"] == "In years"
    got = decode(tool, b'{"user":{"name":"Ada","age":36}}')
    assert got == {"user": User(name="Ada", age=36), "n": 1, "late": 2}
    with pytest.raises(ArgumentError) as caught:
        decode(tool, b'{"user":{"name":"Ada","age":-1}}')
    assert str(caught.value) == 'argument "user.age": input should be greater than or equal to 0, got -1'
    kind, output = result(tool)
    assert kind == "value"
    assert output is not None
    assert output["properties"]["name"]["type"] == "string"


def test_pydantic_is_not_imported_for_those_who_do_not_use_it(script: Callable[[str], str]) -> None:
    code = """
        import sys
        from tricorn import Server
        app = Server("demo")
        @app.tool
        def add(a: int, b: int) -> int:
            return a + b
        unused = {"pydantic", "tricorn.client.client", "tricorn.server.asgi", "importlib.metadata"}
        print(sorted(unused & sys.modules.keys()))
    """
    assert script(code) == "[]\n"


def test_choices_keep_their_order() -> None:
    class Inner(msgspec.Struct, rename="camel"):
        first_size: Literal["S", "M", "L"]
        others: dict[str, tuple[Literal["z", "a"], ...]]

    def function(
        size: Literal["S", "M", None, "L"],
        number: Annotated[Literal[3, 1], "x"],
        inner: Inner,
        pair: tuple[Literal["z", "a"], int],
    ) -> list[Literal["z", "a"]]: ...

    made = arguments_of(signature_of(function)).schema
    properties, fields = made["properties"], made["$defs"]["Inner"]["properties"]
    assert properties["size"]["enum"] == ["S", "M", None, "L"]
    assert properties["number"]["enum"] == [3, 1]
    assert properties["pair"]["prefixItems"][0]["enum"] == ["z", "a"]
    assert fields["firstSize"]["enum"] == ["S", "M", "L"]
    assert fields["others"]["additionalProperties"]["items"]["enum"] == ["z", "a"]
    assert result_of(signature_of(function).hint)[1] == {
        "type": "array",
        "items": {"enum": ["z", "a"], "type": "string"},
    }
