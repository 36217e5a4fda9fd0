"""Forms that a handler asks its client to fill in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast, overload

import msgspec

from .._core import check_form
from ..errors import MisuseError, PeerMisbehavedError
from ..json import checks
from ..json.choices import restore
from ..json.decoding import decode
from ..json.encoding import encode
from ..json.schema import REF
from .results import Elicited

T = TypeVar("T")
Json = dict[str, Any]

_SCALARS = (str, int, float, bool)
_FIELD = (
    *("type", "title", "description", "default", "enum", "enumNames", "oneOf", "format", "minLength", "maxLength"),
    *("minimum", "maximum", "minItems", "maxItems", "items"),
)
_FORMATS = frozenset(("email", "uri", "date", "date-time"))


class Form(Generic[T]):
    """A form that `ctx.elicit` asks the user to fill in, checked when it is made.

    What no client could show stops the program where the form is written, and not the first user that would see it.

        booking = Form(Booking)  # at the top of the module

        @app.tool
        async def book(ctx: Context) -> str:
            answer = await ctx.elicit("A table?", booking)

    `schema` is a type with flat fields (a dataclass, TypedDict, msgspec or pydantic model), a type of one value (`int`,
    `Literal["red", "blue"]`, `list[Literal[...]]`), a JSON Schema, or None for a mere yes or no. `MisuseError` names
    the field that a form cannot have.
    """

    __slots__ = ("_given", "_read", "judged", "schema")

    @overload
    def __init__(self: Form[Json], schema: Mapping[str, Any]) -> None: ...

    @overload
    def __init__(self, schema: type[T]) -> None: ...

    @overload
    def __init__(self: Form[Any], schema: Any = None) -> None: ...

    def __init__(self, schema: Any = None) -> None:
        self.schema, self._read = _form(schema)
        self.judged = _is_judged(schema)
        self._given = schema
        check_form(encode(self.schema))

    @classmethod
    def of(cls, schema: Any) -> Form[Any]:
        """The form for a question that is being asked: the engine checks it then."""
        if isinstance(schema, Form):
            return cast("Form[Any]", schema)  # type: ignore[redundant-cast]
        form: Form[Any] = cls.__new__(cls)
        form.schema, form._read = _form(schema)
        form.judged = _is_judged(schema)
        form._given = schema
        return form

    def __reduce__(self) -> Any:
        return Form, (self._given,)

    def answer(self, wire: bytes) -> Elicited[T]:
        """Returns the client's answer, its content decoded."""
        result = decode(wire)
        action = result.get("action")
        answered: Elicited[T] = Elicited(action)
        answered.raw = result
        if action == "accept":
            try:
                answered.content = self._read(result.get("content") or {})
                return answered
            except _UnfitError as error:
                raise PeerMisbehavedError(
                    f'the client\'s answer to "elicitation/create" does not fit the form: {error}'
                ) from None
        if action not in ("decline", "cancel"):
            raise PeerMisbehavedError(f"the result of elicitation/create: action {json.dumps(action)}")
        return answered


class _UnfitError(Exception):
    """Raised when an answer does not fit its form; the text says why."""


def _is_judged(schema: Any) -> bool:
    """Returns True when pydantic judges the answer: it has transforms, checks and words that a JSON Schema has not."""
    if schema is None or isinstance(schema, Mapping):
        return False
    from ..json import judge

    return isinstance(judge.of(schema), judge.Pydantic)


def _form(schema: Any) -> tuple[Json, Callable[[Json], Any]]:
    """The form's JSON Schema, and how its content is read."""
    if schema is None:
        return {"type": "object", "properties": {}}, lambda _: None
    if isinstance(schema, Mapping):
        return dict(checks.json_schema("elicit", cast("object", schema))), lambda content: content
    made = _json_schema(schema)
    definitions = cast("dict[str, Json]", made.get("$defs", {}))
    root = _resolved(made, definitions)
    if root.get("type") == "object" and "properties" in root:
        return _flat(root, definitions, schema), _reader(schema)
    value = _field("value", made, definitions, schema)
    flat: Json = {"type": "object", "properties": {"value": value}, "required": ["value"]}
    return flat, _reader(schema, "value")


def _json_schema(hint: Any) -> Json:
    from ..json import judge  # a server's module, which a form needs for this alone

    if isinstance(hint, str):
        raise MisuseError("elicit: expected a JSON Schema, got a string")
    try:
        found = judge.of(hint)
        if isinstance(found, judge.Msgspec):
            made = msgspec.json.schema(found.hint, ref_template=REF)
            restore(made, found.hint, made.get("$defs", {}), times=True)
            return made
        schema, definitions = found.components("validation")
        return {**schema, "$defs": definitions} if definitions else schema
    except (TypeError, NotImplementedError) as error:
        raise MisuseError(f"elicit: {hint!r} has no JSON Schema: {error}") from None
    except MisuseError as error:
        raise MisuseError(f"elicit: {hint!r} has no JSON Schema: {error.message}") from None


def _reader(hint: Any, name: str = "") -> Callable[[Json], Any]:
    """Reads an answer as a value of a type; `name`: that is one field of the answer. `_UnfitError`: it is none."""
    from ..json import judge

    def read(content: Json) -> Any:
        if name and name not in content:
            raise _UnfitError(f"{judge.named(name, 'answer')}: missing (required)")
        found, value = judge.of(hint), content[name] if name else content
        try:
            return found.convert(value)
        except ValueError as error:  # msgspec's and pydantic's
            raise _UnfitError(found.explain(error, value, name, "answer")) from None

    return read


def _resolved(schema: Json, definitions: dict[str, Json]) -> Json:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found = definitions[str(reference).removeprefix("#/$defs/")]
    return {**found, **{key: value for key, value in schema.items() if key not in ("$ref", "$defs")}}


def _flat(root: Json, definitions: dict[str, Json], hint: Any) -> Json:
    properties = {
        name: _field(name, entry, definitions, hint)
        for name, entry in cast("dict[str, Json]", root["properties"]).items()
    }
    required = [name for name in root.get("required", []) if name in properties]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _field(name: str, entry: Json, definitions: dict[str, Json], hint: Any) -> Json:
    """One field as forms have it: text, a number, yes or no, or a choice; nothing nested."""
    entry = _resolved(entry, definitions)
    choices = [_resolved(one, definitions) for one in cast("list[Json]", entry.get("anyOf", []))]
    present = [one for one in choices if one.get("type") != "null" and one != {"enum": [None]}]
    if len(present) == 1:  # what may be left out
        entry = {**present[0], **{key: value for key, value in entry.items() if key != "anyOf"}}
        if entry.get("default", ...) is None:
            del entry["default"]
    if isinstance(entry.get("const"), str):
        entry = {**entry, "enum": [entry["const"]]}
    _choice(entry)
    if entry.get("type") == "array":
        items = dict(_resolved(cast(Json, entry.get("items") or {}), definitions))
        _choice(items)
        if items.get("type") == "string" and "enum" in items:
            entry["items"] = {"type": "string", "enum": items["enum"]}
            return {key: value for key, value in entry.items() if key in _FIELD}
    if entry.get("type") not in ("string", "integer", "number", "boolean"):
        raise MisuseError(
            f"elicit: {name!r} of {getattr(hint, '__name__', hint)}: a form has flat fields only, "
            "of text, numbers, booleans, and choices among texts"
        )
    if entry.get("type") == "integer":  # a form has no other limits
        for other, limit, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            if isinstance(entry.get(other), int):
                entry.setdefault(limit, entry[other] + step)
    if entry.get("format") not in _FORMATS:
        entry.pop("format", None)
    return {key: value for key, value in entry.items() if key in _FIELD}


def _choice(entry: Json) -> None:
    values = entry.get("enum")
    if values and "type" not in entry and all(isinstance(value, str) for value in values):
        entry["type"] = "string"
