"""A typed function as the engine sees it: JSON Schema of its arguments and result, and how to decode arguments.

msgspec does the work. pydantic takes over for a function whose signature mentions it, and is never imported here
unless the program has imported it already.
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

from .choices import restore
from .content import BLOCKS, CallToolResult
from .context import RequestContext
from .decoding import decode as decode_any
from .decoding import decoded
from .encoding import encode, encode_hook
from .errors import InputRequired, MisuseError

Decode = Callable[[bytes], dict[str, Any]]
Returns = Literal["any", "nothing", "text", "value", "result"]
Schema = dict[str, Any]

_SIMPLE: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_REF = "#/$defs/{name}"
_UNIONS = (Union, types.UnionType)


class ArgumentError(ValueError):
    """Arguments that passed the schema but not the types; the text is for the model."""


class Parameter(NamedTuple):
    """One argument of a function."""

    name: str
    type: Any
    default: Any  # inspect.Parameter.empty: required
    description: str | None


class Signature(NamedTuple):
    """What a function tells about itself."""

    call: Callable[..., Any]  # takes the arguments by name
    is_async: bool
    context: str | None  # the parameter that wants the Context
    parameters: list[Parameter]
    open: bool  # takes any other argument too (**kwargs)
    description: str | None
    hint: Any  # what it returns


def read(function: Callable[..., Any]) -> Signature:
    """Looks at a function: its parameters, its docstring, what it returns."""
    target = unwrapped(function)
    known = hints(function, target)
    summary, documented = docstring(inspect.getdoc(function))
    empty = inspect.Parameter.empty
    context: str | None = None
    positional: list[str] = []
    parameters: list[Parameter] = []
    is_open = False
    for name, parameter in inspect.signature(function).parameters.items():
        hint = known.get(name, Any)
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(name)
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
        elif parameter.kind is parameter.VAR_POSITIONAL:
            raise MisuseError(f"{_name(function)}: *{name} cannot be described to a client; take a list instead")
        elif is_context(hint):
            context = name
        else:
            if parameter.default is None and hint is not Any:
                hint = typing.Optional[hint]  # noqa: UP045 - the hint may be a type without `|`
            parameters.append(Parameter(name, hint, parameter.default, documented.get(name)))
    call = function
    if positional:

        def call(**arguments: Any) -> Any:
            first = [arguments.pop(name) for name in positional if name in arguments]
            return function(*first, **arguments)

    hint = known.get("return", empty)
    return Signature(
        call=call,
        is_async=inspect.iscoroutinefunction(target),
        context=context,
        parameters=parameters,
        open=is_open,
        description=summary,
        hint=_answered(_awaited(hint)),
    )


def unwrapped(function: Callable[..., Any]) -> Any:
    """What holds the annotations of a function, of a partial one, or of an object that is called."""
    target: Any = function
    while isinstance(target, functools.partial):
        target = target.func
    return target if inspect.isroutine(target) or isinstance(target, type) else type(target).__call__


def hints(function: Callable[..., Any], target: Any) -> dict[str, Any]:
    """The types that a function's annotations name, also those that are local where it was made."""
    try:
        return typing.get_type_hints(target, include_extras=True)
    except NameError:
        pass
    # A function made inside another one may mention names that are local there.
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith("tricorn."):
        frame = frame.f_back
    try:
        return typing.get_type_hints(target, localns=frame.f_locals, include_extras=True)
    except NameError as error:
        raise MisuseError(
            f"{_name(function)}: cannot resolve an annotation: {error}. "
            "Names used in annotations must exist when the function is registered, not only under TYPE_CHECKING"
        ) from None


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def is_context(hint: Any, cls: type[RequestContext] = RequestContext) -> bool:
    """Whether a parameter wants the call's context: one of that class."""
    if typing.get_origin(hint) in _UNIONS:
        return any(is_context(part, cls) for part in typing.get_args(hint))
    found = typing.get_origin(hint) or hint
    return isinstance(found, type) and issubclass(found, cls)


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


def arguments(signature: Signature) -> tuple[Schema, Callable[[], Decode]]:
    """The JSON Schema of the arguments object, and what makes the decoder when the first call comes."""
    made, make = _arguments(signature)
    return _writable(made), make


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


def _arguments(signature: Signature) -> tuple[Schema, Callable[[], Decode]]:
    parameters = signature.parameters
    if any(is_pydantic(p.type) or _is_pydantic_field(p.default) for p in parameters):
        return _pydantic_arguments(signature)
    try:
        schemas, definitions = _schemas([p.type for p in parameters])
    except (TypeError, NotImplementedError) as error:
        if "pydantic" in sys.modules:
            with contextlib.suppress(MisuseError):
                return _pydantic_arguments(signature)
        raise MisuseError(_unsupported(signature, error)) from None
    properties: dict[str, Schema] = {}
    for parameter, found in zip(parameters, schemas):
        entry = dict(found)
        if parameter.description:
            entry.setdefault("description", parameter.description)
        if parameter.default is not inspect.Parameter.empty:
            with contextlib.suppress(TypeError):  # a default that is no JSON is still a default
                entry["default"] = msgspec.to_builtins(parameter.default, enc_hook=encode_hook)
        properties[parameter.name] = entry
    required = [p.name for p in parameters if p.default is inspect.Parameter.empty]
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if not signature.open:
        schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema, lambda: _decoder(signature, required)


def _schemas(hints: list[Any]) -> tuple[list[Schema], Schema]:
    if all(hint in _SIMPLE for hint in hints if isinstance(hint, type)) and all(isinstance(h, type) for h in hints):
        return [{"type": _SIMPLE[hint]} for hint in hints], {}
    schemas, definitions = msgspec.json.schema_components(hints, ref_template=_REF)
    for schema, hint in zip(schemas, hints):
        restore(schema, hint, definitions)
    return list(schemas), definitions


def _unsupported(signature: Signature, error: Exception) -> str:
    for parameter in signature.parameters:
        try:
            _schemas([parameter.type])
        except (TypeError, NotImplementedError) as found:
            reason = str(found).strip().splitlines()[-1]
            return f"{_name(signature.call)}: parameter {parameter.name!r} has no JSON Schema: {reason}"
    return f"{_name(signature.call)}: {error}"


def _decoder(signature: Signature, required: list[str]) -> Decode:
    parameters = signature.parameters
    if signature.open:
        return functools.partial(decoded, msgspec.json.Decoder(dict[str, Any]).decode)
    if not parameters:
        return lambda _raw: {}
    fields = {p.name: p.type for p in parameters}
    record = cast(Any, typing).TypedDict("Arguments", fields)
    record.__required_keys__ = frozenset(required)
    record.__optional_keys__ = frozenset(fields) - record.__required_keys__
    plain = cast(Decode, msgspec.json.Decoder(record).decode)

    def decode(raw: bytes) -> dict[str, Any]:
        try:
            return decoded(plain, raw)
        except msgspec.ValidationError as error:
            if "got `float`" in str(error):
                # JSON Schema counts 1.0 as an integer, and so did the check in the engine.
                try:
                    return plain(msgspec.json.encode(integral(decode_any(raw))))
                except msgspec.ValidationError:
                    pass
            raise ArgumentError(_explain(str(error), raw)) from None

    return decode


def integral(value: Any) -> Any:
    """The value with whole numbers written as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: integral(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [integral(item) for item in cast("list[Any]", value)]  # type: ignore[redundant-cast]
    return value


_WORDS = {"int": "integer", "str": "string", "float": "number", "bool": "boolean"}
_EXPECTED = re.compile(r"^Expected `(.+?)`, got `")
_MISSING = re.compile(r"^Object missing required field `(.+?)`")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def _explain(message: str, raw: bytes) -> str:
    text, _, at = message.partition(" - at `$")
    path = at.rstrip("`").lstrip(".")
    if missing := _MISSING.match(text):
        path = f"{path}.{missing[1]}" if path else missing[1]
        return f'argument "{path}": missing (required)'
    value: Any = decode_any(raw)
    try:
        for step in _STEP.finditer("." + path):
            value = value[step[1]] if step[1] is not None else value[int(step[2])]
    except (KeyError, IndexError, TypeError):
        return f'argument "{path}": {text[:1].lower()}{text[1:]}'
    if expected := _EXPECTED.match(text):
        words = " or ".join(_WORDS.get(word, word) for word in expected[1].split(" | "))
        return f'argument "{path}": expected {words}, got {_shown(value)}'
    return f'argument "{path}": {text[:1].lower()}{text[1:]}, got {_shown(value)}'


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text) <= 80 else text[:77] + "..."


# -- results


def result(hint: Any) -> tuple[Returns, Schema | None]:
    """How a function's result is answered, and the output schema of its type when it has one."""
    returns, made = _result(hint)
    return returns, _writable(made)


def _result(hint: Any) -> tuple[Returns, Schema | None]:
    if hint is None or hint is type(None) or hint is typing.NoReturn:
        return "nothing", None
    if hint is str:
        return "text", None
    if hint in (inspect.Parameter.empty, Any, object):
        return "any", None
    if is_result(hint, "CallToolResult"):
        return "result", None
    if _is_content(hint):
        return "any", None
    if isinstance(hint, type) and hint in _SIMPLE:
        return "value", {"type": _SIMPLE[hint]}
    if is_pydantic(hint):
        return "value", _pydantic().TypeAdapter(hint).json_schema(mode="serialization")
    try:
        (schema,), definitions = _schemas([hint])
    except (TypeError, NotImplementedError):
        return "any", None
    reference = schema.get("$ref", "")
    if reference.startswith("#/$defs/"):
        # Clients before 2026-07-28 want "type": "object" at the root itself.
        name = reference.removeprefix("#/$defs/")
        schema = {**definitions[name], **{key: value for key, value in schema.items() if key != "$ref"}}
        if f'"{reference}"' not in json.dumps([schema, definitions]):
            del definitions[name]
    return ("value", {**schema, "$defs": definitions} if definitions else schema) if schema else ("any", None)


def is_result(hint: Any, name: str) -> bool:
    """Whether a function says that it returns a whole result as `tricorn.types` has it: a dictionary."""
    return getattr(hint, "__module__", None) == "tricorn.types" and getattr(hint, "__name__", None) == name


def _is_content(hint: Any) -> bool:
    if hint is CallToolResult or hint in BLOCKS:
        return True
    if typing.get_origin(hint) in _UNIONS and set(typing.get_args(hint)) <= {str, type(None)}:
        return True
    return any(_is_content(part) for part in typing.get_args(hint) if part is not hint and not isinstance(part, str))


# -- pydantic, only when the program uses it


def _pydantic() -> Any:
    return sys.modules["pydantic"]


def is_pydantic(hint: Any) -> bool:
    """Whether a type is pydantic's, or mentions it."""
    if "pydantic" not in sys.modules:
        return False
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        return hasattr(hint, "__pydantic_core_schema__") or hasattr(hint, "__get_pydantic_core_schema__")
    if typing.get_origin(hint) is Annotated:
        inner, *extras = typing.get_args(hint)
        return is_pydantic(inner) or any(type(extra).__module__.startswith("pydantic") for extra in extras)
    return any(is_pydantic(part) for part in typing.get_args(hint) if not isinstance(part, str))


def _is_pydantic_field(default: Any) -> bool:
    return type(default).__module__ == "pydantic.fields"


def _pydantic_arguments(signature: Signature) -> tuple[Schema, Callable[[], Decode]]:
    def collect(**arguments: Any) -> dict[str, Any]:
        return arguments

    parameters = [
        inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=p.default, annotation=p.type)
        for p in signature.parameters
    ]
    if signature.open:
        parameters.append(inspect.Parameter("arguments", inspect.Parameter.VAR_KEYWORD, annotation=Any))
    function: Any = collect
    function.__signature__ = inspect.Signature(parameters)
    function.__annotations__ = {p.name: p.type for p in signature.parameters}
    pydantic = _pydantic()
    try:
        adapter = pydantic.TypeAdapter(function)
        schema: Schema = adapter.json_schema()
    except pydantic.errors.PydanticUserError as error:
        raise MisuseError(f"{_name(signature.call)}: {error.message}") from None
    for parameter in signature.parameters:
        entry = schema["properties"].get(parameter.name, {})
        if entry.get("title") == parameter.name.replace("_", " ").title():
            del entry["title"]  # made up by pydantic; says nothing to anybody
        if parameter.description and "description" not in entry:
            entry["description"] = parameter.description
    validate = adapter.validator.validate_json

    def decode(raw: bytes) -> dict[str, Any]:
        try:
            return cast("dict[str, Any]", validate(raw))
        except pydantic.ValidationError as error:
            raise ArgumentError("; ".join(_pydantic_text(item) for item in error.errors())) from None

    return schema, lambda: decode


def _pydantic_text(item: dict[str, Any]) -> str:
    path = ""
    for step in item["loc"]:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    message = str(item["msg"])
    return f'argument "{path}": {message[:1].lower()}{message[1:]}, got {_shown(msgspec.to_builtins(item["input"]))}'
