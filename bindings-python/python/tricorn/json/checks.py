"""Checks of what a program hands over, for callers that do not check their types."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec

from .. import _core
from ..errors import MisuseError, unicode
from ..errors.values import shown as shown
from ..errors.values import type_of as type_of

F = TypeVar("F")


_SECONDS = ("ttl", "timeout", "interval", "grace", "retry")


def finite(name: str, value: Any) -> None:
    """`MisuseError` naming the option whose number is infinite or NaN: as JSON it would be null, which is not given."""
    if isinstance(value, float):
        if not math.isfinite(value):
            number = "number of seconds" if name.endswith(_SECONDS) else "number"
            place = f"{name}: " if name else ""
            raise MisuseError(f"{place}expected a finite {number}, got {float(value)!r}")
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            finite(f"{name}.{key}" if name else str(key), item)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for at, item in enumerate(cast("list[object]", value)):
            finite(f"{name}[{at}]", item)
    elif isinstance(value, msgspec.Struct):
        finite(name, msgspec.structs.asdict(value))
    elif hasattr(value, "tolist"):  # numpy's
        finite(name, value.tolist())
    elif hasattr(cast("Any", type(value)), "__dataclass_fields__"):
        from dataclasses import fields  # whoever has such a value has imported it

        finite(name, {field.name: getattr(value, field.name) for field in fields(value)})


def number(name: str, value: object) -> None:
    """`MisuseError` for what is no number, or none that JSON has."""
    try:
        if math.isfinite(cast("float", value)):
            return
    except (TypeError, OverflowError):
        pass
    raise MisuseError(f"{name}: expected a number, got {shown(value)}")


def text(name: str, value: object) -> None:
    """`MisuseError` for what is no string."""
    if not isinstance(value, str):
        raise MisuseError(f"{name}: expected a string, got {shown(value)}")


def texts(name: str, value: object) -> None:
    """`MisuseError` for what is no list of strings, such as one string."""
    if not _are_texts(value):
        raise MisuseError(f"{name}: expected a list of strings, got {shown(value)}")


def _are_texts(value: object) -> bool:
    listed = isinstance(value, (list, tuple, set, frozenset))
    return listed and all(isinstance(item, str) for item in cast("list[object]", value))


def mapping(name: str, value: object) -> None:
    """`MisuseError` for what is no mapping; it is not shown."""
    if not isinstance(value, (dict, Mapping)):
        raise MisuseError(f'{name}: expected an object, such as {{"name": "value"}}, got {type_of(value)}')


def settings(name: str, value: object) -> None:
    """`MisuseError` for what is no mapping; it is shown."""
    if not isinstance(value, (dict, Mapping)):
        raise MisuseError(f"{name}: expected an object, got {shown(value)}")


_KEYWORDS = re.compile(
    r"\$(anchor|comment|defs|dynamicAnchor|dynamicRef|id|recursiveAnchor|recursiveRef|ref|schema|vocabulary)"
    r"|additionalItems|additionalProperties|allOf|anyOf|const|contains|contentEncoding|contentMediaType|contentSchema"
    r"|default|definitions|dependencies|dependentRequired|dependentSchemas|deprecated|description|else|enum|examples"
    r"|exclusiveMaximum|exclusiveMinimum|format|if|items|maxContains|maxItems|maxLength|maxProperties|maximum"
    r"|minContains|minItems|minLength|minProperties|minimum|multipleOf|not|oneOf|pattern|patternProperties|prefixItems"
    r"|properties|propertyNames|readOnly|required|then|title|type|unevaluatedItems|unevaluatedProperties|uniqueItems"
    r"|writeOnly|x-.*"
)
"""The keywords of JSON Schema: of 2020-12, 2019-09 and draft 7. Every schema that says something has one of them, or is
of an extension, whose members begin with `x-`."""


def json_schema(name: str, value: object) -> Mapping[str, Any]:
    """The JSON Schema; `MisuseError` for what is none, such as schemas by name."""
    if not isinstance(value, Mapping):
        raise MisuseError(f"{name}: expected a JSON Schema, got {type_of(value)}")
    schema = cast("Mapping[str, Any]", value)
    if schema and not any(_KEYWORDS.fullmatch(str(keyword)) for keyword in schema):
        first = shown(str(next(iter(schema))))
        give = f'{{"type": "object", "properties": {{{first}: …}}}}'
        raise MisuseError(f"{name}: {first} is no keyword of JSON Schema: give {give}")
    return schema


def secret(name: str, value: object, expected: str = "a string") -> None:
    """`MisuseError` for what is no string; it is not shown."""
    if not isinstance(value, str):
        fix = "; give its .decode()" if isinstance(value, bytes) else ""
        raise MisuseError(f"{name}: expected {expected}, got {type_of(value)}{fix}")


def secrets(name: str, value: object) -> None:
    """`MisuseError` for what is no list of strings; it is not shown."""
    listed = isinstance(value, (list, tuple, set, frozenset))
    odd = [item for item in cast("list[object]", value) if not isinstance(item, str)] if listed else []
    if odd or not listed:
        got = f"{type_of(odd[0])} in it" if odd else type_of(value)
        raise MisuseError(f"{name}: expected a list of strings, got {got}")


def scope_list(name: str, value: object) -> None:
    """`MisuseError` for what is no list of strings. The engine looks at each."""
    if isinstance(value, str):
        raise MisuseError(f"{name}: expected a list of strings, got a string: split it")
    secrets(name, value)


def scopes(name: str, value: object) -> None:
    """`MisuseError` for what is no list of scopes, such as several in one string."""
    scope_list(name, value)
    for scope in cast("list[str]", value):
        if scope.split() != [scope]:
            fix = ": split it" if scope.strip() else "; leave it out"
            raise MisuseError(f"{name}: expected one scope in each string, got {shown(scope)}{fix}")


def flag(name: str, value: object) -> None:
    """`MisuseError` for what is neither True nor False."""
    if not isinstance(value, bool):
        raise MisuseError(f"{name}: expected a boolean, got {type_of(value)}")


def seconds(name: str, value: object) -> None:
    """`MisuseError` for what is no number of seconds; None stands for the default."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise MisuseError(f"{name}: expected a number of seconds, got {type_of(value)}")


def a(name: str, value: object, kind: type) -> None:
    """`MisuseError` for what is no instance of `kind`; it is not shown."""
    if not isinstance(value, kind):
        word = "an object" if kind is Mapping else f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
        raise MisuseError(f"{name}: expected {word}, got {type_of(value)}")


def called(name: str, function: F) -> F:
    """The function that an option gives; anything else is refused."""
    if function is not None and not callable(function):
        raise MisuseError(f"{name}: expected a function, got {shown(function)}")
    return function


def has_method(value: object, name: str) -> bool:
    """True if a value has this method. Those of a dictionary do not count: it is none of the things that have some."""
    own = getattr(value, name, None)
    return callable(own) and getattr(type(value), name, None) is not getattr(dict, name, value)


def known_options(what: str, options: Mapping[str, Any], known: type) -> None:
    """Refuses options that do not exist, in the engine's words. One that is given already was not meant."""
    names = known.__annotations__
    for name in options:
        if name not in names:
            _core.unknown_option(what, unicode(str(name)), [one for one in names if one not in options])
