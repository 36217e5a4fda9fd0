"""Looks through a type: whose things are anywhere in it, and who can therefore judge it."""

# What is looked at here is of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import collections.abc
import enum
import importlib
import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple, Union, cast

import msgspec

UNIONS = (Union, types.UnionType)
PYDANTIC = ("pydantic", "pydantic_core", "pydantic_extra_types", "pydantic_settings")
_KEYS = ("Required", "NotRequired", "ReadOnly")
_DEPTH = 200
"""Greatest depth of a type; one that refers to itself is looked at once."""


class Found(NamedTuple):
    """Parts found anywhere in a type, by the library they belong to."""

    pydantic: list[str]
    """Parts that pydantic alone understands, and msgspec would overlook."""
    models: list[str]
    """Classes that only pydantic knows, which msgspec can leave to it."""
    limits: list[str]
    """Metadata of `annotated_types`."""
    meta: list[str]
    """`msgspec.Meta` inside of a class, where pydantic would not see it."""
    structs: list[str]
    """Classes that only msgspec knows."""
    unknown: list[str]
    """Metadata that nobody understands."""
    computed: list[str]
    """Dataclasses with fields that they set themselves, `field(init=False)`, which msgspec wants to read."""


def look(hint: Any) -> Found:
    """Finds the parts of libraries anywhere in a type."""
    walk = _Walk()
    walk.go(hint, "", 0)
    return walk.found


def module(name: str) -> Any:
    """An optional library, imported if it is installed; else None."""
    if name in sys.modules:
        return sys.modules[name]
    return None if importlib.util.find_spec(name) is None else importlib.import_module(name)


def of_module(cls: type, names: Iterable[str]) -> bool:
    """Returns True when a class, or one of its bases, comes from one of these packages."""
    return any(base.__module__.partition(".")[0] in names for base in cls.__mro__)


def is_of_pydantic(value: object) -> bool:
    """Returns True when a value, such as metadata or a default, is pydantic's, or made for it."""
    cls = type(value)
    return of_module(cls, PYDANTIC) or hasattr(value, "__get_pydantic_core_schema__") or has_json_hook(value)


def has_json_hook(value: object) -> bool:
    """Returns True when pydantic would ask it for a JSON Schema."""
    return hasattr(value, "__get_pydantic_json_schema__") or hasattr(value, "__prepare_pydantic_annotations__")


def documentation(extra: object) -> str | None:
    """The text of metadata that only describes: a text, or `Doc` (PEP 727), which is `annotated_types.doc`, too."""
    if isinstance(extra, str):
        return extra
    text: object = getattr(extra, "documentation", None)
    return text if isinstance(text, str) and type(extra).__name__ in ("Doc", "DocInfo") else None


def alias_value(alias: Any) -> Any:
    """The type that a type alias (PEP 695) stands for, also when it was written as text."""
    value = alias.__value__
    if not isinstance(value, str):
        return value
    namespace = vars(sys.modules.get(alias.__module__, typing))
    try:
        return eval(value, dict(namespace), {alias.__name__: alias})
    except Exception:  # noqa: BLE001 - pydantic may know it, and says so if it does not
        return value


def is_alias(hint: Any) -> bool:
    """Returns True for a type alias of PEP 695."""
    return type(hint).__name__ == "TypeAliasType" and hasattr(hint, "__value__")


def is_typed_dict(cls: Any) -> bool:
    """Returns True for a class of `TypedDict`."""
    return isinstance(cls, type) and issubclass(cls, dict) and hasattr(cls, "__total__")


def filled(cls: Any, inner: tuple[Any, ...]) -> dict[str, Any]:
    """The `members` of a generic class with these arguments."""
    parameters: tuple[Any, ...] = getattr(cls, "__parameters__", ())
    given = dict(zip(parameters, inner))
    return {name: _fill(hint, given) for name, hint in members(cls).items()} if given else members(cls)


def _fill(hint: Any, given: dict[Any, Any]) -> Any:
    if isinstance(hint, typing.TypeVar):
        return given.get(hint, hint)
    parameters: tuple[Any, ...] = getattr(hint, "__parameters__", ())
    if not parameters or isinstance(hint, type):
        return hint
    return hint[tuple(given.get(one, one) for one in parameters)]


def members(cls: Any) -> dict[str, Any]:
    """The types of what an instance of a class holds that is written down as fields; none of other classes."""
    if not isinstance(cls, type) or issubclass(cls, enum.Enum):
        return {}
    is_record = (
        hasattr(cls, "__dataclass_fields__")
        or hasattr(cls, "__struct_fields__")
        or hasattr(cls, "__attrs_attrs__")
        or is_typed_dict(cls)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
    )
    if not is_record:
        return {}
    try:
        hints = typing.get_type_hints(cls, include_extras=True)
    except Exception:  # noqa: BLE001 - whoever judges the type resolves them, or says that it cannot
        hints = {}
        for base in reversed(cls.__mro__):
            hints.update(inspect.get_annotations(base))
    names: Any = (
        getattr(cls, "__struct_fields__", None)
        or getattr(cls, "__dataclass_fields__", None)
        or [field.name for field in getattr(cls, "__attrs_attrs__", ())]
        or hints
    )
    return {name: key_type(hints[name]) for name in names if name in hints}


def required_keys(cls: Any) -> frozenset[str]:
    """The keys that a TypedDict needs, also where `Required` stands in annotations that were text."""
    required = set(cast("frozenset[str]", cls.__required_keys__))
    for name, hint in typing.get_type_hints(cls, include_extras=True).items():
        marks = set[str]()
        while (mark := getattr(typing.get_origin(hint), "_name", None)) in _KEYS:
            marks.add(str(mark))
            hint = typing.get_args(hint)[0]
        if "Required" in marks:
            required.add(name)
        elif "NotRequired" in marks:
            required.discard(name)
    return frozenset(required)


def key_type(hint: Any) -> Any:
    """Without what TypedDicts say of a key."""
    while typing.get_origin(hint) is not None and getattr(typing.get_origin(hint), "_name", None) in _KEYS:
        hint = typing.get_args(hint)[0]
    return hint


class _Walk:
    def __init__(self) -> None:
        self.found = Found([], [], [], [], [], [], [])
        self._seen = set[int]()
        self._kept: list[Any] = []
        """Objects whose ids are in `_seen`, so that nothing else gets them."""

    def go(self, hint: Any, place: str, depth: int) -> None:
        """`place` is the class that the type stands in; empty: it stands where it can be put in other words."""
        if isinstance(hint, (str, bytes, int, type(None))) or depth > _DEPTH:
            return
        if id(hint) in self._seen:
            return
        self._seen.add(id(hint))
        self._kept.append(hint)
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is Annotated:
            self.go(inner[0], place, depth + 1)
            for extra in hint.__metadata__:
                self._extra(extra, place)
        elif is_alias(hint) or is_alias(origin):
            self.go(alias_value(origin if is_alias(origin) else hint), place, depth + 1)
        elif isinstance(hint, typing.NewType):
            self.go(hint.__supertype__, place, depth + 1)
        elif isinstance(hint, typing.TypeVar):
            for one in (hint.__bound__, *hint.__constraints__):
                self.go(one, place, depth + 1)
        elif origin is typing.Literal:
            return
        elif origin is None:
            self._class(hint, depth)
            return
        elif isinstance(origin, type):
            self._class(origin, depth)
        for one in inner if origin is not Annotated else ():
            self._arguments(one, place, depth)

    def _arguments(self, one: Any, place: str, depth: int) -> None:
        several: Any = one if isinstance(one, list) else [one]
        for part in several:
            self.go(part, place, depth + 1)

    def _extra(self, extra: Any, place: str) -> None:
        if extra is None:  # it says nothing; pydantic's own functions leave it there
            return
        if isinstance(extra, msgspec.Meta):
            if place:
                self.found.meta.append(f"{extra!r} in {place}")
        elif is_of_pydantic(extra):
            self.found.pydantic.append(_shown(extra))
        elif documentation(extra) is None:
            what = f"{_shown(extra)} in {place}" if place else _shown(extra)
            known = of_module(type(extra), ["annotated_types"]) and type(extra).__name__ not in ("Unit", "Timezone")
            (self.found.limits if known else self.found.unknown).append(what)

    def _class(self, cls: Any, depth: int) -> None:
        if not isinstance(cls, type):
            return
        name = cls.__qualname__
        if is_pydantic_class(cls):
            is_overlooked = bool(members(cls)) or not is_own_class(cls)
            (self.found.pydantic if is_overlooked else self.found.models).append(name)
            self._model(cls)
            return
        if hasattr(cls, "__struct_fields__") or (hasattr(cls, "__attrs_attrs__")):
            self.found.structs.append(name)
        fields: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
        if not all(field.init for field in fields.values()):
            self.found.computed.append(name)
        for hint in members(cls).values():
            self.go(hint, name, depth + 1)
        for default in _defaults(cls):
            if is_of_pydantic(default):
                self.found.pydantic.append(name)

    def _model(self, cls: Any) -> None:
        """Pydantic overlooks limits of msgspec's in its models: they are found here, and refused."""
        fields: Any = getattr(cls, "__pydantic_fields__", None)
        for name, field in cast("dict[str, Any]", fields if isinstance(fields, dict) else {}).items():
            for extra in getattr(field, "metadata", ()):
                if isinstance(extra, msgspec.Meta):
                    self.found.meta.append(f"{extra!r} in {cls.__qualname__}.{name}")


def is_pydantic_class(cls: type) -> bool:
    """Returns True when pydantic knows the class: a model, a class with its fields or validators, a type of its own."""
    if hasattr(cls, "__pydantic_core_schema__") or hasattr(cls, "__get_pydantic_core_schema__"):
        return True
    if hasattr(cls, "__pydantic_config__") or has_json_hook(cls) or of_module(cls, PYDANTIC):
        return True
    return any(
        type(member).__module__.partition(".")[0] in PYDANTIC
        for base in cls.__mro__
        if base is not object
        for member in list(vars(base).values())
    )


def is_own_class(cls: type) -> bool:
    """Returns True when msgspec asks what to do with the class: none of the built-in classes that it knows."""
    return cls.__module__ not in ("builtins", "datetime", "decimal", "uuid", "collections")


def _defaults(cls: Any) -> Iterable[Any]:
    fields: Any = getattr(cls, "__dataclass_fields__", None)
    return [field.default for field in fields.values()] if fields else []


def _shown(extra: Any) -> str:
    text = repr(extra)
    return text if len(text) <= 80 else text[:77] + "..."


def rebuilt(hint: Any, extra: Callable[[Any], Any], records: bool) -> Any:
    """The type with other metadata, wherever it does not stand in a class; None is metadata that is left out.

    `records`: TypedDicts are made anew by `typing_extensions`, as pydantic wants them before Python 3.12.
    """
    return _Rebuild(extra, records).go(hint, 0)


class _Rebuild:
    def __init__(self, extra: Callable[[Any], Any], records: bool) -> None:
        self._extra = extra
        self._records = records
        self._open: list[Any] = []

    def go(self, hint: Any, depth: int) -> Any:
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if depth > _DEPTH or origin is typing.Literal:
            return hint
        if origin is Annotated:
            extras = [found for one in hint.__metadata__ if (found := self._extra(one)) is not None]
            whole = (self.go(inner[0], depth + 1), *extras)
            return cast("Any", Annotated)[whole] if extras else whole[0]
        if origin in UNIONS:
            parts = [self.go(part, depth + 1) for part in inner]
            return hint if _same(parts, inner) else Union[tuple(parts)]  # noqa: UP007
        if origin is collections.abc.Iterable:  # pydantic would check its items when they are read, one by one
            return list[self.go(inner[0], depth + 1)]  # type: ignore[misc]
        if origin is not None and isinstance(origin, type) and inner:
            parts = [self.go(part, depth + 1) for part in inner]
            if _same(parts, inner):
                return hint
            return hint.copy_with(tuple(parts)) if hasattr(hint, "copy_with") else origin[tuple(parts)]  # type: ignore[index]
        if (
            self._records
            and isinstance(hint, type)
            and (hint.__module__, hint.__name__) == ("pydantic.main", "BaseModel")
        ):
            # It says nothing of what its subclasses have: each says that itself.
            return cast("Any", Annotated)[hint, module("pydantic").SerializeAsAny()]
        if self._records and is_typed_dict(hint) and type(hint).__module__ == "typing" and hint not in self._open:
            self._open.append(hint)
            try:
                return self._record(hint, depth)
            finally:
                self._open.pop()
        return hint

    def _record(self, hint: Any, depth: int) -> Any:
        extensions: Any = module("typing_extensions")
        try:
            hints = typing.get_type_hints(hint, include_extras=True)
        except Exception:  # noqa: BLE001 - pydantic says it
            return hint
        required = required_keys(hint)
        fields = {
            name: (extensions.Required if name in required else extensions.NotRequired)[
                self.go(key_type(one), depth + 1)
            ]
            for name, one in hints.items()
        }
        made = extensions.TypedDict(hint.__name__, fields)
        made.__module__, made.__qualname__, made.__doc__ = hint.__module__, hint.__qualname__, hint.__doc__
        for config in ("__pydantic_config__",):
            if hasattr(hint, config):
                setattr(made, config, getattr(hint, config))
        return made


def _same(parts: list[Any], inner: tuple[Any, ...]) -> bool:
    return all(made is one for made, one in zip(parts, inner))
