"""JSON Schemas as objects: definitions of several put together, references, names of types."""

from __future__ import annotations

from typing import Any, cast

Schema = dict[str, Any]

REF = "#/$defs/{name}"
SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


_VALUES = frozenset(("default", "examples", "enum", "const", "required"))
"""Keywords that hold values, and no schemas."""
_BY_NAME = frozenset(("properties", "patternProperties", "$defs", "dependentSchemas"))
"""Keywords that hold schemas by name."""


def complete(schema: Any) -> None:
    """Adds what some clients do not read a schema without: the type of choices that have one, the items of arrays."""
    if isinstance(schema, list):
        for item in cast("list[Any]", schema):  # type: ignore[redundant-cast]
            complete(item)
    if not isinstance(schema, dict):
        return
    members = cast(Schema, schema)
    choices: Any = members.get("enum")
    if isinstance(choices, list) and "type" not in members:
        kinds: set[Any] = {type(choice) for choice in cast("list[Any]", choices)}  # type: ignore[redundant-cast]
        if len(kinds) == 1 and (kind := SIMPLE.get(kinds.pop())) is not None:
            members["type"] = kind
    if members.get("type") == "array" and not members.keys() & {"items", "prefixItems"}:
        members["items"] = {}
    for key, item in members.items():
        if key in _BY_NAME and isinstance(item, dict):
            complete(list(cast(Schema, item).values()))
        elif key not in _VALUES:
            complete(item)


def hoist(schema: Any, definitions: Schema) -> Any:
    """The schema without the definitions within it, of classes that only pydantic knows, which are among all then."""
    if isinstance(schema, list):
        return [hoist(item, definitions) for item in cast("list[Any]", schema)]  # type: ignore[redundant-cast]
    if not isinstance(schema, dict):
        return schema
    members = cast(Schema, schema)
    if "$defs" not in members:
        return {key: hoist(item, definitions) for key, item in members.items()}
    inner: Schema = members.pop("$defs")
    return renamed(members, merge(inner, definitions))


def merge(theirs: Schema, definitions: Schema) -> dict[str, str]:
    """Adds definitions to others; gives the references that have to change, because another has the name."""
    names = {name: name for name in theirs}
    changed: dict[str, str] = {}
    while True:
        for name, definition in theirs.items():
            # A definition that refers to one with another name is another one, too.
            wanted = renamed(definition, changed)
            while names[name] in definitions and definitions[names[name]] != wanted:
                names[name] += "_"
        found = {REF.format(name=name): REF.format(name=free) for name, free in names.items() if free != name}
        if found == changed:
            break
        changed = found
    for name, definition in theirs.items():
        definitions[names[name]] = renamed(definition, changed)
    return changed


def renamed(schema: Any, changed: dict[str, str]) -> Any:
    """A schema with these references changed."""
    if isinstance(schema, list):
        return [renamed(item, changed) for item in cast("list[Any]", schema)]  # type: ignore[redundant-cast]
    if not isinstance(schema, dict):
        return schema
    members = cast(Schema, schema)
    return {
        key: changed.get(item, item) if key == "$ref" and isinstance(item, str) else renamed(item, changed)
        for key, item in members.items()
    }
