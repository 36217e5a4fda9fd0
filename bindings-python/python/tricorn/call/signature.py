"""A typed function as the engine sees it: JSON Schema of its arguments and result, and how to decode arguments.

Each parameter, and the result, has one judge (`json/judge.py`), by its own type.
"""

from __future__ import annotations

import collections.abc
import contextlib
import functools
import inspect
import json
import math
import re
import sys
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, Union, cast

import msgspec

from ..errors import MisuseError
from ..json import judge, look
from ..json.decoding import decode as decode_any
from ..json.decoding import decoded
from ..json.encoding import encode, encode_hook
from ..json.judge import ArgumentError
from ..json.schema import SIMPLE, merge, renamed
from ..model.content import BLOCKS
from ..model.input_required import InputRequired
from ..model.results import CallToolResult
from .context import RequestContext

Decode = Callable[[bytes], dict[str, Any]]
Returns = Literal["any", "nothing", "text", "value", "result", "blocks", "values"]
Schema = dict[str, Any]

_UNIONS = (Union, types.UnionType)
_LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Collection, collections.abc.Iterable)
ABSENT: Any = object()
"""The default of an argument that is not passed when nobody gives it: of `**rest: Unpack[...]`."""


class Parameter(NamedTuple):
    """One argument of a function."""

    name: str
    type: Any
    default: Any  # inspect.Parameter.empty: required
    description: str | None


class Signature(NamedTuple):
    """A function's parameters, description and result, as its signature tells them."""

    call: Callable[..., Any]  # takes the arguments by name
    is_async: bool
    context: str | None  # the parameter that wants the Context
    parameters: list[Parameter]
    open: bool  # takes any other argument too (**kwargs)
    description: str | None
    hint: Any  # what it returns
    rest: Any = Any  # the type of each other argument, where it is open


def signature_of(function: Callable[..., Any]) -> Signature:
    """Looks at a function: its parameters, its docstring, what it returns."""
    target = unwrapped(function)
    _refuse_misplaced(function, target)
    known = hints(function, target)
    summary, documented = docstring(_documentation(function))
    context: str | None = None
    positional: dict[str, Any] = {}
    parameters: list[Parameter] = []
    is_open = False
    rest: Any = Any
    signature = inspect.signature(_undressed(function))
    taken = signature.parameters
    for name, parameter in taken.items():
        hint = _bare(known[name] if name in known else _written(parameter.annotation))
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional[name] = parameter.default
        if parameter.kind is parameter.VAR_KEYWORD:
            if _is_unpack(hint):
                parameters += _unpacked(function, name, hint, documented, {p.name for p in parameters})
            else:
                is_open, rest = True, hint
        elif parameter.kind is parameter.VAR_POSITIONAL:
            remedy = "take a list instead"
            if any(other.kind is other.VAR_KEYWORD for other in taken.values()):
                remedy += ", or, in a decorator, use functools.wraps, which keeps what the function itself takes"
            raise MisuseError(f"{name_of(function)}: *{name} cannot be described to a client; {remedy}")
        elif is_context(hint):
            context = name
        else:
            if parameter.default is None and not judge.none_fits(hint):
                hint = typing.Optional[hint]  # noqa: UP045 - the hint may be a type without `|`
            parameters.append(Parameter(name, hint, parameter.default, documented.get(name)))
    hint = known["return"] if "return" in known else _written(signature.return_annotation)
    return Signature(
        call=_by_position(function, positional) if positional else function,
        is_async=inspect.iscoroutinefunction(target),
        context=context,
        parameters=parameters,
        open=is_open,
        description=summary,
        hint=_answered(_awaited(hint)),
        rest=rest,
    )


def _written(annotation: Any) -> Any:
    """The type that stands in a `__signature__` alone."""
    return Any if annotation is inspect.Parameter.empty or isinstance(annotation, str) else annotation


def _bare(hint: Any) -> Any:
    """The type without `Final`, which is about the function's own assignments."""
    if hint is typing.Final:
        return Any
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Final else hint


def _documentation(function: Any) -> str | None:
    """The docstring; of a partial function that has none of its own, that of the whole one."""
    own = inspect.getdoc(function)
    if isinstance(function, functools.partial) and own == inspect.getdoc(functools.partial):
        return _documentation(function.func)
    return own


def _undressed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A partial function without what it may be dressed as: the whole one, whose arguments it no longer takes."""
    if not isinstance(function, functools.partial):
        return function
    return functools.partial(_undressed(function.func), *function.args, **function.keywords)


def _by_position(function: Callable[..., Any], positional: dict[str, Any]) -> Callable[..., Any]:
    """The function called by names, though it takes some parameters by position only."""
    names = list(positional)

    @functools.wraps(function)
    def call(**arguments: Any) -> Any:
        given = [place for place, name in enumerate(names) if name in arguments]
        first = [arguments.pop(name, positional[name]) for name in names[: given[-1] + 1 if given else 0]]
        return function(*first, **arguments)

    return call


def _refuse_misplaced(function: Callable[..., Any], target: Any) -> None:
    """Refuses functions that could never answer: a method without its object, a generator."""
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise MisuseError(
            f"{name_of(function)} is a generator: return all of it, such as a list; `ctx.progress(...)` tells "
            "meanwhile how far it is"
        )
    if not inspect.isfunction(function):
        return
    owner = function.__qualname__.rpartition(".")[0]
    first = next(iter(inspect.signature(function).parameters), "")
    if owner and not owner.endswith("<locals>") and first in ("self", "cls"):
        method = f"{owner.rpartition('.')[2]}(...).{function.__name__}"
        raise MisuseError(
            f"{name_of(function)} is a method of a class, and has no object yet: register it of an object, "
            f"such as app.add_tool({method})"
        )


def _is_unpack(hint: Any) -> bool:
    return (
        getattr(typing.get_origin(hint), "_name", None) == "Unpack"
        or getattr(typing.get_origin(hint), "__name__", None) == "Unpack"
    )


def _unpacked(
    function: Callable[..., Any], name: str, hint: Any, documented: dict[str, str], taken: set[str]
) -> list[Parameter]:
    """The parameters that `**name: Unpack[TypedDict]` stands for."""
    record = typing.get_args(hint)[0]
    owner = typing.get_origin(record) or record
    if not look.is_typed_dict(owner):
        raise MisuseError(f"{name_of(function)}: **{name}: expected Unpack of a TypedDict, got {record!r}")
    required = look.required_keys(owner)
    return [
        Parameter(key, type_, inspect.Parameter.empty if key in required else ABSENT, documented.get(key))
        for key, type_ in look.members(owner).items()
        if key not in taken
    ]


def unwrapped(function: Callable[..., Any]) -> Any:
    """Returns the object with the annotations of a function, of a partial one, or of an object that is called."""
    target: Any = function
    while isinstance(target, functools.partial):
        target = target.func
    return target if inspect.isroutine(target) or isinstance(target, type) else type(target).__call__


def hints(function: Callable[..., Any], target: Any) -> dict[str, Any]:
    """The types that a function's annotations name, also those that are local where it was made."""
    try:
        return _resolved(target, None)
    except NameError:
        pass
    # A function made inside another one may mention names that are local there.
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("tricorn."):
        frame = frame.f_back
    try:
        return _resolved(target, frame.f_locals)
    except NameError as error:
        raise MisuseError(
            f"{name_of(function)}: cannot resolve an annotation: {error}. "
            "Names used in annotations must exist when the function is registered, not only under TYPE_CHECKING"
        ) from None


def _resolved(target: Any, names: dict[str, Any] | None) -> dict[str, Any]:
    try:
        return typing.get_type_hints(target, localns=names, include_extras=True)
    except TypeError:  # `Final` in an annotation that is text
        return inspect.get_annotations(target, locals=names, eval_str=True)


def name_of(function: Callable[..., Any]) -> str:
    """Returns the name of a function in messages."""
    return getattr(function, "__qualname__", None) or repr(function)


def is_context(hint: Any, serves: bool = False) -> bool:
    """Returns True when a parameter wants the call's context; `serves`: that of a server's handler."""
    if typing.get_origin(hint) in _UNIONS:
        return any(is_context(part, serves) for part in typing.get_args(hint))
    found = typing.get_origin(hint) or hint
    return isinstance(found, type) and issubclass(found, RequestContext) and (found._serves or not serves)


def _awaited(hint: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin in (collections.abc.Awaitable, collections.abc.Coroutine):
        return typing.get_args(hint)[-1]
    return hint


def _answered(hint: Any) -> Any:
    """Without the `InputRequired` that is returned instead of an answer."""
    if hint is InputRequired:
        return None
    parts = typing.get_args(hint)
    if typing.get_origin(hint) not in _UNIONS or InputRequired not in parts:
        return hint
    return Union[tuple(part for part in parts if part is not InputRequired)]  # noqa: UP007 - there is no other way


# -- docstrings

_SECTION = re.compile(r"^(Args|Arguments|Parameters):\s*$")
_ANY_SECTION = re.compile(r"^[A-Z][A-Za-z ]*:\s*$")
_ITEM = re.compile(r"^(\s+)\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)$")
_FIELD = re.compile(r"^:param (?:[^:]* )?(\w+):\s*(.*)$")


def docstring(text: str | None) -> tuple[str | None, dict[str, str]]:
    """The description without its `Args:` section or `:param x:` lines, and the parameter descriptions in those."""
    if not text:
        return None, {}
    if ":" not in text:
        return text, {}
    kept: list[str] = []
    found: dict[str, list[str]] = {}
    inside = False
    current: list[str] | None = None
    indent = 0
    for line in text.splitlines():
        stripped = line.strip()
        field = _FIELD.match(stripped)
        if _SECTION.match(line):
            inside, current = True, None
        elif field:
            current = found.setdefault(field[1], [field[2]])
            inside, indent = False, 0
        elif inside and (not stripped or line[0].isspace()):
            item = _ITEM.match(line)
            if item and (current is None or len(item[1]) <= indent):
                indent = len(item[1])
                current = found.setdefault(item[2], [item[3]])
            elif stripped and current is not None:
                current.append(stripped)
        elif current is not None and not inside and line[:1].isspace() and stripped:
            current.append(stripped)
        else:
            inside, current = False, None
            if not stripped.startswith((":return", ":rtype", ":raises", ":type")):
                kept.append(line)
    summary = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return summary or None, {name: " ".join(part for part in parts if part) for name, parts in found.items()}


# -- arguments


class Arguments(NamedTuple):
    """The arguments of a function."""

    schema: Schema
    """The JSON Schema of the arguments object."""
    decoder: Callable[[], Decode]
    """Makes the decoder when the first call comes."""
    judged: bool
    """The decoder checks all of it, by validators that JSON Schema does not know: the engine must not before."""


def arguments_of(signature: Signature) -> Arguments:
    """Returns the arguments of a function. `MisuseError`: a type that nobody can judge."""
    made = _arguments(signature)
    return made._replace(schema=_writable(made.schema))


def _writable(schema: Any) -> Any:
    """The schema without defaults that JSON does not have, such as `math.inf`: they are defaults all the same."""
    try:
        encode(schema)
    except MisuseError:
        return _without_infinite(schema)
    return schema


def _without_infinite(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_infinite(item) for item in cast("list[Any]", schema)]  # type: ignore[redundant-cast]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema).items()
    return {
        name: _without_infinite(member)
        for name, member in members
        if name != "default" or not isinstance(member, float) or math.isfinite(member)
    }


def _arguments(signature: Signature) -> Arguments:
    name = name_of(signature.call)
    groups = _Groups([], [], {})
    for parameter in signature.parameters:
        _judged(parameter, name, groups)
    definitions: Schema = {}
    found = _ours(groups, definitions)
    theirs, needed = _theirs(groups, name, definitions)
    found.update(theirs)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for parameter in signature.parameters:
        key = groups.keys.get(parameter.name, parameter.name)
        entry = _lifted(found[key])
        text = judge.description(parameter.type) or parameter.description
        if text and "description" not in entry:
            entry["description"] = text
        properties[key] = entry
        is_needed = parameter.default is inspect.Parameter.empty
        if needed.get(key, is_needed):
            required.append(key)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    rest = _rest(signature, definitions)
    if rest is not None:
        schema["additionalProperties"] = rest[1]
    elif not signature.open:
        schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    judged = bool(groups.theirs) or (rest is not None and isinstance(rest[0], judge.Pydantic))
    return Arguments(schema, lambda: _decoder(signature, groups, None if rest is None else rest[0]), judged)


class _Groups(NamedTuple):
    """The parameters by who judges them."""

    ours: list[Parameter]
    theirs: list[Parameter]
    keys: dict[str, str]
    """The names of pydantic's parameters as clients know them."""


def _judged(parameter: Parameter, name: str, groups: _Groups) -> None:
    """Finds who judges a parameter."""
    hint, default = parameter.type, parameter.default
    if isinstance(hint, type) and hint in SIMPLE and type(default) in _PLAIN:
        groups.ours.append(parameter)
        return
    if hint is Any or hint is object:
        hint = Any
        if not look.is_of_pydantic(default):
            groups.ours.append(parameter._replace(type=Any))
            return
    try:
        if look.is_of_pydantic(default):
            found: judge.Judge = judge.Pydantic(hint)
        else:
            found = judge.made_to_read(hint)
            if isinstance(found, judge.Msgspec):
                try:
                    found.components("validation")
                except judge.UNFIT as error:
                    found = judge.fallback(hint, error)
    except MisuseError as error:
        raise MisuseError(f"{name}: parameter {parameter.name!r} has no JSON Schema: {error.message}") from None
    if isinstance(found, judge.Msgspec):
        groups.ours.append(parameter._replace(type=found.hint))
        return
    groups.theirs.append(parameter)
    groups.keys[parameter.name] = _alias(parameter, name) or parameter.name


_PLAIN = frozenset((type, str, int, float, bool, type(None)))
"""Types of defaults that are no `Field(...)`; that of none is a class."""


def _alias(parameter: Parameter, name: str) -> str | None:
    """The name that `Field(alias=...)` gives a parameter."""
    fields = [parameter.default, *(typing.get_args(parameter.type)[1:] if _is_annotated(parameter.type) else ())]
    for field in fields:
        alias: Any = getattr(field, "validation_alias", None) or getattr(field, "alias", None)
        if not look.is_of_pydantic(field) or alias is None:
            continue
        if not isinstance(alias, str):
            raise MisuseError(
                f"{name}: parameter {parameter.name!r}: an alias of an argument is one name, got {alias!r}"
            )
        return alias
    return None


def _is_annotated(hint: Any) -> bool:
    return typing.get_origin(hint) is Annotated


def _ours(groups: _Groups, definitions: Schema) -> dict[str, Schema]:
    """Returns the schemas that msgspec makes of its parameters."""
    schemas, found = judge.schemas([p.type for p in groups.ours], "validation")
    definitions.update(found)
    entries: dict[str, Schema] = {}
    for parameter, schema in zip(groups.ours, schemas):
        entry = entries[parameter.name] = dict(schema)
        if parameter.default is not inspect.Parameter.empty and parameter.default is not ABSENT:
            with contextlib.suppress(TypeError):  # a default that is no JSON is still a default
                entry["default"] = msgspec.to_builtins(parameter.default, enc_hook=encode_hook)
    return entries


def _theirs(groups: _Groups, name: str, definitions: Schema) -> tuple[dict[str, Schema], dict[str, bool]]:
    """Returns the schemas that pydantic makes of its parameters, and which of them it needs."""
    if not groups.theirs:
        return {}, {}
    schema = _made_by_pydantic(groups.theirs, name)
    entries: dict[str, Schema] = schema["properties"]
    changed = merge(cast(Schema, schema.get("$defs", {})), definitions)
    for parameter in groups.theirs:
        key = groups.keys[parameter.name]
        entry = cast(Schema, renamed(entries[key], changed))
        if entry.get("title") == key.replace("_", " ").title():
            del entry["title"]  # made up by pydantic; says nothing to anybody
        entries[key] = entry
    required: list[str] = schema.get("required", [])
    return entries, {key: key in required for key in entries}


def _made_by_pydantic(parameters: list[Parameter], name: str) -> Schema:
    try:
        adapter = _adapter(parameters)
        return cast(Schema, judge.guarded(lambda: adapter.json_schema(schema_generator=judge.generator())))
    except MisuseError as error:
        if len(parameters) > 1:
            for parameter in parameters:
                _made_by_pydantic([parameter], name)
        raise MisuseError(f"{name}: parameter {parameters[0].name!r} has no JSON Schema: {error.message}") from None


_NOTES = ("title", "description", "examples", "deprecated")


def _lifted(entry: Schema) -> Schema:
    """A property with what is said of it where clients look: not within the branch beside null."""
    branches: Any = entry.get("anyOf")
    if not isinstance(branches, list):
        return entry
    several = cast("list[Schema]", branches)
    others = [one for one in several if one.get("type") != "null"]
    if len(others) != 1:
        return entry
    noted = {
        key: item for key, item in others[0].items() if key in _NOTES and key not in entry and "$ref" not in others[0]
    }
    if not noted:
        return entry
    bare = {key: item for key, item in others[0].items() if key not in noted}
    return {**entry, "anyOf": [bare if one is others[0] else one for one in several], **noted}


def _rest(signature: Signature, definitions: Schema) -> tuple[judge.Judge, Schema] | None:
    """Returns the judge of the arguments that have no name of their own, and the schema of each."""
    if not signature.open or signature.rest in (Any, object, inspect.Parameter.empty):
        return None
    try:
        found, schema, others = judge.found(signature.rest, "validation")
    except MisuseError as error:
        raise MisuseError(f"{name_of(signature.call)}: its **arguments have no JSON Schema: {error.message}") from None
    return found, cast(Schema, renamed(schema, merge(others, definitions)))


def _adapter(parameters: list[Parameter]) -> Any:
    """Returns the judge of parameters that are pydantic's: a `TypeAdapter` of a function that has them."""

    def collect(**arguments: Any) -> dict[str, Any]:
        return arguments

    function: Any = collect
    types = {p.name: judge.for_pydantic(p.type) for p in parameters}
    function.__signature__ = inspect.Signature(
        [
            inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=p.default, annotation=types[p.name])
            for p in parameters
        ]
    )
    function.__annotations__ = types
    return judge.guarded(lambda: judge.pydantic().TypeAdapter(function))


def _decoder(signature: Signature, groups: _Groups, rest: judge.Judge | None) -> Decode:
    plain = _plain_decoder(groups.ours) if groups.ours else None
    theirs = _pydantic_decoder(groups) if groups.theirs else None
    if not signature.open:
        if theirs is None:
            return plain or (lambda _raw: {})
        if plain is None:
            return theirs
    split = cast("Callable[[bytes], dict[str, msgspec.Raw]]", msgspec.json.Decoder(dict[str, msgspec.Raw]).decode)
    keys = frozenset(groups.keys.values())
    known = keys | {p.name for p in groups.ours}

    def decode(raw: bytes) -> dict[str, Any]:
        with judge.readable():
            parts = decoded(split, raw)
        arguments = {} if plain is None else plain(raw)
        if theirs is not None:
            arguments.update(theirs(_joined({name: part for name, part in parts.items() if name in keys})))
        for name, part in parts.items():
            if name not in known:
                if not signature.open:
                    raise ArgumentError(f"{judge.named(name)}: unknown")
                arguments[name] = _read(rest, bytes(part), name)
        return arguments

    return decode


def _joined(parts: dict[str, msgspec.Raw]) -> bytes:
    return b"{" + b",".join(msgspec.json.encode(name) + b":" + bytes(part) for name, part in parts.items()) + b"}"


def _read(rest: judge.Judge | None, text: bytes, name: str) -> Any:
    if rest is None:
        return decode_any(text)
    try:
        return rest.read(text)
    except ValueError as error:
        raise ArgumentError(rest.explain(error, decode_any(text), name)) from None


def _plain_decoder(parameters: list[Parameter]) -> Decode:
    fields = {p.name: p.type for p in parameters}
    record = cast(Any, typing).TypedDict("Arguments", fields)
    record.__required_keys__ = frozenset(p.name for p in parameters if p.default is inspect.Parameter.empty)
    record.__optional_keys__ = frozenset(fields) - record.__required_keys__
    plain = cast(Decode, msgspec.json.Decoder(record, dec_hook=judge.decode_hook).decode)

    def decode(raw: bytes) -> dict[str, Any]:
        try:
            return plain(raw)
        except ValueError:
            pass
        try:
            with judge.readable():
                return cast("dict[str, Any]", judge.natural_too(plain, raw, record))
        except msgspec.ValidationError as error:
            raise ArgumentError(judge.explain(error, decode_any(raw))) from None

    return decode


def _pydantic_decoder(groups: _Groups) -> Decode:
    validate = _adapter(groups.theirs).validator.validate_json
    invalid = judge.pydantic().ValidationError
    absent = [p.name for p in groups.theirs if p.default is ABSENT]

    def decode(raw: bytes) -> dict[str, Any]:
        try:
            found = cast("dict[str, Any]", judge.with_surrogates(validate, raw))
        except invalid as error:
            raise ArgumentError(judge.explained(error)) from None
        for one in absent:
            if found[one] is ABSENT:
                del found[one]
        return found

    return decode


# -- results


class Result(NamedTuple):
    """The way to answer with a function's result."""

    returns: Returns
    schema: Schema | None
    """The output schema of its type, when it has one."""
    write: Callable[[Any], bytes]
    """A value as JSON text: of what the type declares, and no more."""
    write_item: Callable[[Any], bytes] = encode
    """The same of what stands beside content blocks in a list."""


def result_of(hint: Any, name: str = "") -> Result:
    """Returns the way to answer with a function's result. `MisuseError`: its type says what nobody understands."""
    try:
        found = _result(hint)
    except MisuseError as error:
        raise MisuseError(f"{name or 'the function'}: its result: {error.message}") from None
    return found._replace(schema=_writable(found.schema))


def _result(hint: Any) -> Result:
    if hint is None or hint is type(None) or hint in (typing.NoReturn, getattr(typing, "Never", None)):
        return Result("nothing", None, encode)
    if hint is str:
        return Result("text", None, encode)
    if hint in (inspect.Parameter.empty, Any, object):
        return Result("any", None, encode)
    if is_result(hint, "CallToolResult"):
        return Result("result", None, encode)
    if (item := _beside_blocks(hint)) is not None:
        return Result("blocks", None, _beside_content(hint), _beside_content(item))
    if _is_content(hint):
        return Result("any", None, _beside_content(hint))
    if isinstance(hint, type) and hint in SIMPLE:
        return Result("value", {"type": SIMPLE[hint]}, encode)
    found = judge.made(hint)
    try:
        schema, definitions = found.components("serialization")
    except judge.UNFIT:
        try:
            found, schema, definitions = judge.found(hint, "serialization")
        except MisuseError:
            return Result("any", None, encode)  # of a class that nobody knows: its values may be written all the same
    schema = _rooted(schema, definitions)
    if not schema:
        return Result("any", None, found.write)
    # A list of anything may have blocks in it, which are for the model alone.
    kind: Returns = "values" if _lists_anything(hint) else "value"
    return Result(kind, {**schema, "$defs": definitions} if definitions else schema, found.write)


def _rooted(schema: Schema, definitions: Schema) -> Schema:
    """The schema with what it refers to at its root: clients before 2026-07-28 want "type": "object" there."""
    reference = schema.get("$ref", "")
    if not reference.startswith("#/$defs/"):
        return schema
    name = reference.removeprefix("#/$defs/")
    schema = {**definitions[name], **{key: value for key, value in schema.items() if key != "$ref"}}
    if f'"{reference}"' not in json.dumps([schema, definitions]):
        del definitions[name]
    return schema


def _beside_content(hint: Any) -> Callable[[Any], bytes]:
    """Returns the function that writes values of a type with content blocks in it: those are written by themselves."""
    plain = (str, type(None))
    parts = [part for part in typing.get_args(hint) if part not in plain and not _is_content(part)]
    if typing.get_origin(hint) not in _UNIONS or not parts:
        return encode
    return _result(Union[tuple(parts)]).write  # noqa: UP007 - there is no other way


def _beside_blocks(hint: Any) -> Any:
    """The type of the items of a list with content blocks in it; None: it is no such list."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        return next((found for part in inner if (found := _beside_blocks(part)) is not None), None)
    if origin not in _LISTS or not any(map(_has_blocks, inner)):
        return None
    return Union[tuple(part for part in inner if part is not Ellipsis)]  # noqa: UP007 - there is no other way


def _lists_anything(hint: Any) -> bool:
    """Returns True for lists of whatever there is, content blocks included."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in _UNIONS:
        parts = [part for part in inner if part not in (str, type(None))]
        return bool(parts) and all(map(_lists_anything, parts))
    return (origin or hint) in _LISTS and all(part in (Any, object, Ellipsis) for part in inner)


def _has_blocks(hint: Any) -> bool:
    if isinstance(hint, type) and typing.get_origin(hint) is None and issubclass(hint, BLOCKS):
        return True
    return any(_has_blocks(part) for part in typing.get_args(hint))


def is_result(hint: Any, name: str) -> bool:
    """Returns True when a function says that it returns a whole result as `tricorn.types` has it: a dictionary."""
    return getattr(hint, "__module__", None) == "tricorn.types" and getattr(hint, "__name__", None) == name


def _is_content(hint: Any) -> bool:
    """Returns True when values of a type are content blocks, or have some: they are no structured content."""
    if isinstance(hint, type) and typing.get_origin(hint) is None and issubclass(hint, (CallToolResult, *BLOCKS)):
        return True
    if typing.get_origin(hint) in _UNIONS and set(typing.get_args(hint)) <= {str, type(None)}:
        return True
    return any(_is_content(part) for part in typing.get_args(hint) if part is not hint and not isinstance(part, str))
