"""Values as their declared type shows them: a subclass has no more to say than what was declared, and a time is one
also without seconds."""

# What is looked at here is of any type.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import datetime
import re
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, cast

import msgspec

from . import look

Show = Callable[[Any], Any]


def of(hint: Any) -> Show | None:
    """Returns the function that shows values of a type; None: msgspec writes all of them as they are."""
    return _Shows({}).of(hint)


class _Walk:
    """Makes functions of types that change values, from those of the parts of a type. None: nothing changes."""

    def __init__(self, known: dict[Any, Show]) -> None:
        self._known = known

    def of(self, hint: Any) -> Show | None:
        hint, origin, inner = _plain(hint)
        if (own := self._own(hint)) is not None:
            return own
        if origin in look.UNIONS:
            return self._union(inner)
        owner = origin or hint
        if not isinstance(owner, type):
            return None
        if look.members(owner):
            return self._record(hint, owner, inner)
        if not inner:
            return None
        if issubclass(owner, Mapping):
            return _each_member(self.of(inner[-1]))
        if issubclass(owner, tuple) and inner[-1] is not Ellipsis:
            return _pairs([self.of(part) for part in inner])
        return _each(self.of(inner[0])) if issubclass(owner, Collection) else None

    def _own(self, hint: Any) -> Show | None:
        del hint
        return None

    def _union(self, parts: tuple[Any, ...]) -> Show | None:
        raise NotImplementedError

    def _record(self, hint: Any, cls: type, inner: tuple[Any, ...]) -> Show | None:
        raise NotImplementedError


class _Shows(_Walk):
    def _union(self, parts: tuple[Any, ...]) -> Show | None:
        shows = [(_class(part), found) for part in parts if (found := self.of(part)) is not None]
        if not shows:
            return None
        exact = dict(shows)
        # What a dictionary may stand for, where it is none itself.
        is_itself = any((cls := _class(part)) is not None and issubclass(cls, Mapping) for part in parts)
        records = [] if is_itself else [(cls, one) for cls, one in shows if cls and look.members(cls)]

        def show(value: Any) -> Any:
            found = exact.get(type(value)) or next((s for cls, s in shows if cls and isinstance(value, cls)), None)
            if found is None and records and isinstance(value, Mapping):
                members = cast("Mapping[str, Any]", value)
                found = next((one for cls, one in records if len(records) == 1 or _is_tagged(cls, members)), None)
            return value if found is None else found(value)

        return show

    def _record(self, hint: Any, cls: type, inner: tuple[Any, ...]) -> Show:
        if hint in self._known:
            return self._known[hint]
        later: list[Show] = []
        self._known[hint] = lambda value: later[0](value)
        inside = {name: show for name, one in look.filled(cls, inner).items() if (show := self.of(one)) is not None}
        later.append(_typed_dict(cls, inside) if look.is_typed_dict(cls) else _fields(cls, inside))
        return later[0]


def _plain(hint: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    """The type without metadata and other names, its origin and its arguments."""
    while True:
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if origin is typing.Annotated:
            hint = inner[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif look.is_alias(hint):
            hint = look.alias_value(hint)
        else:
            return hint, origin, inner


def _class(hint: Any) -> type | None:
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return _class(typing.get_args(hint)[0])
    owner = dict if look.is_typed_dict(hint) else origin or hint
    return owner if isinstance(owner, type) else None


def _is_tagged(cls: Any, members: Mapping[str, Any]) -> bool:
    config = getattr(cls, "__struct_config__", None)
    return config is not None and config.tag is not None and members.get(config.tag_field) == config.tag


def _each(show: Show | None) -> Show | None:
    if show is None:
        return None

    def several(value: Any) -> Any:
        is_list = isinstance(value, Collection) and not isinstance(value, (str, bytes, Mapping))
        return [show(item) for item in cast("Collection[Any]", value)] if is_list else value

    return several


def _pairs(shows: list[Show | None]) -> Show | None:
    if not any(shows):
        return None

    def several(value: Any) -> Any:
        if not isinstance(value, (tuple, list)) or len(cast("list[Any]", value)) != len(shows):
            return value
        return [item if show is None else show(item) for show, item in zip(shows, cast("list[Any]", value))]

    return several


def _each_member(show: Show | None) -> Show | None:
    if show is None:
        return None

    def several(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {name: show(item) for name, item in value.items()}

    return several


def _typed_dict(cls: type, inside: dict[str, Show]) -> Show:
    names = look.members(cls).keys()

    def show(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        members = cast("Mapping[str, Any]", value)
        if not inside and members.keys() <= names:
            return members
        return {name: inside[name](item) if name in inside else item for name, item in members.items() if name in names}

    return show


def _fields(cls: type, inside: dict[str, Show]) -> Show:
    names = list(look.members(cls))
    encoded: Iterable[str] = getattr(cls, "__struct_encode_fields__", ())
    keys: dict[str, str] = dict(zip(getattr(cls, "__struct_fields__", ()), encoded))
    is_plain = not hasattr(cls, "__struct_fields__") and not issubclass(cls, tuple)
    defaults = frozenset(name for name in names if hasattr(cls, name)) if is_plain else frozenset[str]()
    within = {keys.get(name, name): show for name, show in inside.items()}
    in_order = _pairs([inside.get(name) for name in names]) if issubclass(cls, tuple) else None
    is_simple = not inside and not defaults

    def show(value: Any) -> Any:
        if is_simple and type(value) is cls:
            return value
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            made = _made(cls, {name: within[name](one) if name in within else one for name, one in members.items()})
            return made if not isinstance(made, cls) or _is_whole(made, defaults) else _written(cls, made, {})
        if not isinstance(value, cls):
            return value if in_order is None else in_order(value)
        changed = {
            name: shown
            for name, one in inside.items()
            if (shown := one(item := getattr(value, name, None))) is not item
        }
        is_as_it_is = type(value) is cls and not changed and _is_whole(value, defaults)
        return value if is_as_it_is else _written(cls, value, changed)

    return show


def _is_whole(value: Any, defaults: frozenset[str]) -> bool:
    """Returns True when msgspec writes all of it: it omits defaults that it has left to the class when it read the
    value."""
    own: dict[str, Any] | None = getattr(value, "__dict__", None)
    return own is None or own.keys() >= defaults


def _made(cls: Any, value: Any) -> Any:
    """A dictionary that stands for an instance: with its defaults, and no more than it has."""
    try:
        return msgspec.convert(value, cls)
    except (ValueError, TypeError):  # the engine says what does not fit the schema
        config = getattr(cls, "__struct_config__", None)
        if config is not None and config.forbid_unknown_fields:
            return value
        names: Any = getattr(cls, "__struct_encode_fields__", None) or look.members(cls)
        tag = None if config is None else config.tag_field
        return {name: item for name, item in value.items() if name in names or name == tag}


def _written(cls: Any, value: Any, changed: dict[str, Any]) -> Any:
    """Returns the members of a class that an instance of a subclass has."""
    names: Any = look.members(cls)
    if hasattr(cls, "__attrs_attrs__"):  # as msgspec does it
        names = [name for name in names if not name.startswith("_")]
    if isinstance(value, tuple):
        return [changed.get(name, getattr(value, name)) for name in names]
    members = {name: changed.get(name, getattr(value, name, msgspec.UNSET)) for name in names}
    if not hasattr(cls, "__struct_fields__"):
        return {name: item for name, item in members.items() if item is not msgspec.UNSET}
    config = cls.__struct_config__
    if config.array_like:
        return list(members.values()) if config.tag is None else [config.tag, *members.values()]
    written: dict[str, Any] = {} if config.tag is None else {config.tag_field: config.tag}
    own: Any = msgspec.structs.fields(cls)
    for field in own:
        item = members[field.name]
        is_default = config.omit_defaults and (
            item is field.default or (field.default_factory is not msgspec.NODEFAULT and item in ([], {}, set()))
        )
        if item is not msgspec.UNSET and not is_default:
            written[field.encode_name] = item
    return written


# -- times

_ZONE = r"([Zz]|[+-]\d\d:?\d\d)?"
_DATETIME = re.compile(rf"(\d{{4}}-\d\d-\d\d)(?:[Tt_ ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?{_ZONE})?")
_TIME = re.compile(rf"(\d\d:\d\d)(:\d\d(?:\.\d+)?)?{_ZONE}")


def is_of_time(message: str) -> bool:
    """Returns True when msgspec refused a time for how it is written, as it does without seconds."""
    return message.startswith(("Invalid RFC3339 encoded datetime", "Invalid RFC3339 encoded time"))


def times_of(hint: Any) -> Show | None:
    """Returns the function that completes the times in JSON of a type; None: it can have none."""
    return _Times({}).of(hint)


class _Times(_Walk):
    def _own(self, hint: Any) -> Show | None:
        return {datetime.datetime: _datetime, datetime.time: _time}.get(hint) if isinstance(hint, type) else None

    def _union(self, parts: tuple[Any, ...]) -> Show | None:
        found = [(_class(part), one) for part in parts if (one := self.of(part)) is not None]
        if not found:
            return None

        def show(value: Any) -> Any:
            for cls, one in found:
                if not isinstance(value, Mapping) or not _has_tag(cls) or _is_tagged(cast("type", cls), value):
                    value = one(value)
            return value

        return show

    def _record(self, hint: Any, cls: type, inner: tuple[Any, ...]) -> Show:
        if hint in self._known:
            return self._known[hint]
        later: list[Show] = []
        self._known[hint] = lambda value: later[0](value)
        shows = {name: self.of(one) for name, one in look.filled(cls, inner).items()}
        encoded: Iterable[str] = getattr(cls, "__struct_encode_fields__", ())
        keys: dict[str, str] = dict(zip(getattr(cls, "__struct_fields__", ()), encoded))
        inside = {keys.get(name, name): one for name, one in shows.items() if one is not None}
        in_order = _pairs(list(shows.values()))

        def show(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: inside[name](item) if name in inside else item for name, item in value.items()}
            return value if in_order is None else in_order(value)

        later.append(show)
        return show


def _has_tag(cls: type | None) -> bool:
    config = getattr(cls, "__struct_config__", None)
    return config is not None and config.tag is not None


def _datetime(value: Any) -> Any:
    found = _DATETIME.fullmatch(value) if isinstance(value, str) else None
    return value if found is None else f"{found[1]}T{found[2] or '00:00'}{found[3] or ':00'}{found[4] or ''}"


def _time(value: Any) -> Any:
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    return value if found is None else f"{found[1]}{found[2] or ':00'}{found[3] or ''}"
