"""Facts of a type that msgspec's schemas lose: the order of choices and, where wanted, that a text is a time."""

from __future__ import annotations

import datetime
import enum
import types
import typing
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Union, cast

Schema = dict[str, Any]

_UNIONS = (Union, types.UnionType)


def restore(schema: Schema, hint: Any, definitions: dict[str, Schema], times: bool) -> None:
    """Puts it into the schema that was made for a type, and into the definitions that it refers to.

    `times`: the schema is one of what is read. Times that are written may have no zone, and a duration may be negative.
    """
    _Walk(definitions, times).walk(schema, hint)


class _Walk:
    def __init__(self, definitions: dict[str, Schema], times: bool) -> None:
        self._definitions = definitions
        self._times = times
        self._seen = set[str]()

    def walk(self, schema: Schema, hint: Any) -> None:
        """Goes through a schema and its type side by side; what does not fit together is left alone."""
        while True:
            if typing.get_origin(hint) is Annotated:
                hint = typing.get_args(hint)[0]
            elif isinstance(hint, typing.NewType):
                hint = hint.__supertype__
            else:
                break
        reference = schema.get("$ref")
        if isinstance(reference, str):
            name = reference.rpartition("/")[2]
            if name not in self._seen and name in self._definitions:
                self._seen.add(name)
                self.walk(self._definitions[name], hint)
            return
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin in _UNIONS:
            for part in schema.get("anyOf", [schema]):
                for one in inner:
                    self.walk(part, one)
        elif origin is Literal:
            _reorder(schema, _values(hint))
        elif isinstance(hint, type) and issubclass(hint, enum.Enum):
            _reorder(schema, [one.value for one in hint])
        elif hint is datetime.datetime or hint is datetime.time:
            if self._times and schema.get("type") == "string":
                schema.setdefault("format", "time" if hint is datetime.time else "date-time")
        elif hint is datetime.timedelta:
            if not self._times:
                schema.pop("format", None)
        else:
            self._inside(schema, hint, origin, inner)

    def _inside(self, schema: Schema, hint: Any, origin: Any, inner: tuple[Any, ...]) -> None:
        owner = origin or hint
        if not isinstance(owner, type):
            return
        if inner and issubclass(owner, tuple) and "prefixItems" in schema:
            for part, one in zip(schema["prefixItems"], inner):
                self.walk(part, one)
        elif inner and issubclass(owner, Mapping):
            self._part(schema, "additionalProperties", inner[-1])
        elif inner and issubclass(owner, Collection):
            self._part(schema, "items", inner[0])
        elif "properties" in schema or "prefixItems" in schema:
            self._fields(schema, cast("type[Any]", owner))

    def _part(self, schema: Schema, member: str, hint: Any) -> None:
        part = schema.get(member)
        if isinstance(part, dict):
            self.walk(cast(Schema, part), hint)

    def _fields(self, schema: Schema, owner: type) -> None:
        try:
            hints = typing.get_type_hints(owner, include_extras=True)
        except Exception:  # noqa: BLE001 - msgspec could resolve them; the order is not worth a failure
            return
        names: tuple[str, ...] = getattr(owner, "__struct_fields__", None) or tuple(hints)
        written: tuple[str, ...] = getattr(owner, "__struct_encode_fields__", None) or names
        properties = cast("dict[str, Schema]", schema.get("properties", {}))
        for name, key in zip(names, written):
            if key in properties:
                self.walk(properties[key], _field(hints.get(name)))


def _field(hint: Any) -> Any:
    """Without what TypedDicts say of a key."""
    required = getattr(typing, "Required", None), getattr(typing, "NotRequired", None)
    origin = typing.get_origin(hint)
    return typing.get_args(hint)[0] if origin is not None and origin in required else hint


def _values(hint: Any) -> list[Any]:
    values: list[Any] = []
    for one in typing.get_args(hint):
        values.extend(_values(one) if typing.get_origin(one) is Literal else [one])
    return values


def _reorder(schema: Schema, values: list[Any]) -> None:
    there = schema.get("enum")
    if isinstance(there, list):
        known = cast("list[Any]", there)  # type: ignore[redundant-cast]
        if len(known) == len(values) and all(value in values for value in known):
            schema["enum"] = values
