"""The choice of a library for a type: that one makes its JSON Schema, reads its values and writes them.

pydantic judges what has anything of pydantic or `annotated_types` anywhere in it, and what msgspec cannot take.
msgspec judges the rest. pydantic is imported when a type needs it, and not before: what a type may be does not depend
on who has imported what.
"""

from __future__ import annotations

import functools
import json
import re
import typing
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Literal, cast

import msgspec

from ..errors import MisuseError, PeerMisbehavedError
from . import look, showing
from .choices import restore
from .decoding import decode as decode_any
from .decoding import decoded, mended
from .encoding import READ_ONCE, encode, encode_hook, no_text, writes_aliases
from .schema import REF, SIMPLE, Schema, complete, hoist

Mode = Literal["validation", "serialization"]
UNFIT = (TypeError, NotImplementedError, RecursionError, NameError)
INSTALL = "pip install 'tricorn[pydantic]'"
MAX_KEPT = 256
"""Types whose judges are kept."""
_SHOWN = 10
"""Number of mistakes of one value that are told."""


class ArgumentError(ValueError):
    """Arguments that passed the schema but not the types; the text is for the model."""


class Judge:
    """One library, for one type."""

    hint: Any

    def components(self, mode: Mode) -> tuple[Schema, Schema]:
        """The JSON Schema of the type, and the definitions that it refers to."""
        raise NotImplementedError

    def read(self, text: bytes) -> Any:
        """The value of JSON text; a ValueError of the library when it does not fit."""
        raise NotImplementedError

    def convert(self, value: Any) -> Any:
        """The same of JSON that was read already."""
        return self.read(encode(value))

    def write(self, value: Any) -> bytes:
        """A value as JSON text: what the type says of it, and no more."""
        raise NotImplementedError

    def explain(self, error: Exception, value: Any, path: str = "", part: str = "argument") -> str:
        """Explains why JSON that `read` refused with this error does not fit: the place in it, and the library's own
        words."""
        raise NotImplementedError


def of(hint: Any) -> Judge:
    """The judge of a type; those asked for last are kept. `MisuseError`: nobody can judge it."""
    try:
        return _kept(hint, repr(hint))
    except TypeError:  # metadata that cannot be kept by
        return found(hint, "validation")[0]


def found(hint: Any, mode: Mode) -> tuple[Judge, Schema, Schema]:
    """A new judge of a type, with what `components` says. `MisuseError`: nobody can judge it."""
    judge = made(hint)
    try:
        return (judge, *judge.components(mode))
    except UNFIT as error:
        judge = fallback(hint, error)
        return (judge, *judge.components(mode))


@functools.lru_cache(maxsize=MAX_KEPT)
def _kept(hint: Any, _spelling: str) -> Judge:
    return found(hint, "validation")[0]


def made(hint: Any) -> Judge:
    """A new judge of a type. `MisuseError`: nobody can judge it."""
    inside = look.look(hint)
    if inside.unknown:
        raise MisuseError(
            f"nobody understands the metadata {inside.unknown[0]}: write msgspec.Meta(...) or pydantic.Field(...), "
            "or leave it out"
        )
    if inside.structs and (inside.pydantic or inside.limits):
        other = (inside.limits or inside.pydantic)[0]
        raise MisuseError(
            f"{other} is pydantic's and {inside.structs[0]} is msgspec's: no library judges both in a type"
        )
    if inside.pydantic or inside.limits or (inside.models and not inside.structs):
        if inside.pydantic or inside.models or look.module("pydantic") is not None:
            return Pydantic(hint, inside)
        return Msgspec(translated(hint))
    return Msgspec(hint)


def made_to_read(hint: Any) -> Judge:
    """As `made`, for values that come from elsewhere: those that a dataclass computes are none of them."""
    judge = made(hint)
    if isinstance(judge, Msgspec) and look.look(hint).computed and look.module("pydantic") is not None:
        with suppress(MisuseError):
            return fallback(hint, TypeError())
    return judge


def fallback(hint: Any, error: Exception) -> Judge:
    """The judge of a type that msgspec cannot take. `MisuseError`: pydantic cannot either, or is not there."""
    reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
    if look.module("pydantic") is None:
        raise MisuseError(f"{reason[0]}; pydantic may know it: {INSTALL}") from None
    inside = look.look(hint)
    if inside.structs:
        raise MisuseError(reason[0])
    try:
        judge = Pydantic(hint, inside)
        judge.components("validation")
    except MisuseError as other:
        raise MisuseError(f"{reason[0]} (pydantic: {other.message})") from None
    return judge


# -- msgspec


class Msgspec(Judge):
    """msgspec, which leaves the classes that only pydantic knows to it."""

    def __init__(self, hint: Any) -> None:
        self.hint = hint

    def components(self, mode: Mode) -> tuple[Schema, Schema]:
        """As `Judge.components`; raises what msgspec does for a type that it cannot take."""
        (schema,), definitions = schemas([self.hint], mode)
        return schema, definitions

    @functools.cached_property
    def _decode(self) -> Callable[[bytes], Any]:
        return cast("Callable[[bytes], Any]", msgspec.json.Decoder(self.hint, dec_hook=decode_hook).decode)

    @functools.cached_property
    def _show(self) -> Callable[[Any], Any] | None:
        return showing.of(self.hint)

    def read(self, text: bytes) -> Any:
        """As `Judge.read`."""
        return natural_too(self._decode, text, self.hint)

    def convert(self, value: Any) -> Any:
        """As `Judge.convert`."""
        try:
            return msgspec.convert(value, self.hint, str_keys=True, dec_hook=decode_hook)
        except msgspec.ValidationError as error:
            if (exact := natural(value, self.hint, error)) is None:
                raise
            try:
                return msgspec.convert(exact, self.hint, str_keys=True, dec_hook=decode_hook)
            except msgspec.ValidationError:
                raise error from None

    def write(self, value: Any) -> bytes:
        """As `Judge.write`."""
        return encode(value if self._show is None else self._show(value))

    def explain(self, error: Exception, value: Any, path: str = "", part: str = "argument") -> str:
        """As `Judge.explain`."""
        return explain(error, value, path, part)


def schemas(hints: list[Any], mode: Mode) -> tuple[list[Schema], Schema]:
    """The JSON Schemas of types by msgspec, with what it does not keep of them, and their definitions."""
    if all(isinstance(hint, type) and hint in SIMPLE for hint in hints):
        return [{"type": SIMPLE[hint]} for hint in hints], {}
    found, definitions = msgspec.json.schema_components(
        hints, ref_template=REF, schema_hook=functools.partial(_schema_hook, mode)
    )
    for schema, hint in zip(found, hints):
        restore(schema, hint, definitions, times=mode == "validation")
    for name, definition in list(definitions.items()):
        definitions[name] = hoist(definition, definitions)
    hoisted = [cast(Schema, hoist(part, definitions)) for part in found]
    for part in (*hoisted, *definitions.values()):
        complete(part)
    return hoisted, definitions


def _schema_hook(mode: Mode, cls: type) -> Schema:
    if not look.is_pydantic_class(cls):
        raise NotImplementedError(f"{cls.__qualname__} is not a type with a JSON Schema")
    schema, definitions = Pydantic(cls, look.look(cls)).components(mode)
    return {**schema, "$defs": definitions} if definitions else schema


def decode_hook(cls: type, value: Any) -> Any:
    """Reads what only pydantic knows, inside of what msgspec reads."""
    if not look.is_pydantic_class(cls):
        raise NotImplementedError(f"{cls.__qualname__} is not a type that JSON can be read as")
    return of(cls).convert(value)


def natural_too(decode: Callable[[bytes], Any], text: bytes, hint: Any) -> Any:
    """Decodes a type with msgspec, also where whole numbers and times are written as people do it: see `natural`."""
    try:
        return decoded(decode, text)
    except msgspec.ValidationError as error:
        if (exact := natural(decode_any(text), hint, error)) is None:
            raise
        try:
            return decode(encode(exact))
        except (msgspec.ValidationError, MisuseError):
            raise error from None


def natural(value: Any, hint: Any, error: Exception) -> Any:
    """The value with integers for fractions that are whole, which JSON Schema counts as such, and with whole times for
    such without seconds. None: it is not for them that msgspec refused it."""
    said = str(error)
    if "got `float`" not in said and not showing.is_of_time(said):
        return None
    whole = showing.times_of(hint)
    return integral(value) if whole is None else integral(whole(value))


@contextmanager
def readable() -> Generator[None]:
    """Turns what cannot be read at all into a mistake of the arguments."""
    try:
        yield
    except PeerMisbehavedError as error:
        raise ArgumentError(f"the arguments: {error.message}") from None


def integral(value: Any) -> Any:
    """The value with whole numbers written as integers."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: integral(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [integral(item) for item in cast("list[Any]", value)]  # type: ignore[redundant-cast]
    return value


def translated(hint: Any) -> Any:
    """A type with limits of `annotated_types` as msgspec writes them. `MisuseError`: it cannot say one of them."""

    def extra(one: Any) -> Any:
        if isinstance(one, msgspec.Meta) or look.documentation(one) is not None:
            return one
        limits: dict[str, Any] = {}
        for name in ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length"):
            value: Any = getattr(one, name, None)
            if value is not None and not (name == "min_length" and value == 0):
                limits[name] = value
        if type(one).__name__ not in ("Gt", "Ge", "Lt", "Le", "Interval", "MultipleOf", "MinLen", "MaxLen", "Len"):
            raise MisuseError(f"msgspec does not know {one!r}: leave it out, or install pydantic: {INSTALL}")
        return msgspec.Meta(**limits)

    made = look.rebuilt(hint, extra, records=False)
    if left := look.look(made).limits:
        raise MisuseError(f"msgspec does not know {left[0]}: write msgspec.Meta(...), or install pydantic: {INSTALL}")
    return made


_WORDS = {"int": "integer", "str": "string", "float": "number", "bool": "boolean"}
_EXPECTED = re.compile(r"^Expected `(.+?)`, got `")
_MISSING = re.compile(r"^Object missing required field `(.+?)`")
_AT = re.compile(r" - at `(?:(key) in )?\$(.*?)`$|( - at `key` in `)\$(.*?)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def explain(error: Exception, value: Any, path: str = "", part: str = "argument") -> str:
    """An error of msgspec's about a value, as arguments are spoken of: `argument "a.b": ...`."""
    message = text = str(error)
    of_key, at = False, ""
    if found := _AT.search(message):
        text, of_key = message[: found.start()], bool(found[1] or found[3])
        at = (found[2] if found[2] is not None else found[4]) or ""
    place = f"{path}{at}".lstrip(".")
    if hasattr(error.__cause__, "errors"):  # of a class that only pydantic knows, inside of what msgspec reads
        return explained(error.__cause__, place, part)
    if missing := _MISSING.match(text):
        return f"{named(f'{place}.{missing[1]}' if place else missing[1], part)}: missing (required)"
    said = within(text)
    try:
        for step in _STEP.finditer(at):
            value = value[step[1]] if step[1] is not None else value[int(step[2])]
    except (KeyError, IndexError, TypeError, ValueError):
        return f"{named(place, part)}: {'a key: ' if of_key else ''}{said}"
    if of_key:
        return f"{named(place, part)}: a key: {said}"
    if expected := _EXPECTED.match(text):
        words = " or ".join(_WORDS.get(word, word) for word in expected[1].split(" | "))
        return f"{named(place, part)}: expected {words}, got {shown(value)}"
    return f"{named(place, part)}: {said}, got {shown(value)}"


def within(message: str) -> str:
    """A sentence within another one: `input should be ...`, but `JSON input should be ...`."""
    return message if message[1:2].isupper() else f"{message[:1].lower()}{message[1:]}"


def named(place: str, part: str = "argument") -> str:
    """An argument, or what is in it, by name; `part`: it is of a result, or of an answer."""
    return f'{part} "{place}"' if place else "the arguments" if part == "argument" else f"the {part}"


def shown(value: Any) -> str:
    """A value in a message."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__qualname__}"
    return text if len(text) <= 80 else text[:77] + "..."


# -- pydantic


def pydantic() -> Any:
    """The library."""
    module = look.module("pydantic")
    if module is None:
        raise MisuseError(f"pydantic is needed: {INSTALL}")
    if not hasattr(module, "TypeAdapter"):
        raise MisuseError("pydantic 2 is needed, an older one is installed")
    return module


@functools.cache
def generator() -> Any:
    """Returns the class that makes JSON Schemas of pydantic's types.

    A time without a zone, and a negative duration, are not what the formats of JSON Schema mean.
    """
    pydantic()
    from pydantic.json_schema import GenerateJsonSchema

    class Quiet(GenerateJsonSchema):
        """A default that is no JSON is not shown, and that is all right."""

        ignored_warning_kinds = cast("Any", {*GenerateJsonSchema.ignored_warning_kinds, "non-serializable-default"})

        def field_is_present(self, field: Any) -> bool:
            # An InitVar is given to `__post_init__`, and is no part of what is written; `field(init=False)` is no part
            # of what is read.
            is_other = field.get("init_only") if self.mode == "serialization" else field.get("init") is False
            return super().field_is_present(field) and not is_other

        def datetime_schema(self, schema: Any) -> Any:
            return self._promised(super().datetime_schema(schema), schema.get("tz_constraint") not in (None, "naive"))

        def time_schema(self, schema: Any) -> Any:
            return self._promised(super().time_schema(schema), schema.get("tz_constraint") not in (None, "naive"))

        def timedelta_schema(self, schema: Any) -> Any:
            least = schema.get("ge", schema.get("gt"))
            return self._promised(super().timedelta_schema(schema), least is not None and least >= timedelta())

        def _promised(self, made: Any, is_kept: bool) -> Any:
            """Returns the schema of a time; of results without the format, unless all that is written has it."""
            if self.mode == "serialization" and not is_kept:
                made.pop("format", None)
            return made

    return Quiet


def for_pydantic(hint: Any, found: look.Found | None = None) -> Any:
    """A type as pydantic understands all of it. `MisuseError` names what it would overlook."""
    if (found or look.look(hint)).meta:
        which = (found or look.look(hint)).meta[0]
        raise MisuseError(f"pydantic judges this type, and does not know {which}: write pydantic.Field(...) there")

    def extra(one: Any) -> Any:
        return _field(one) if isinstance(one, msgspec.Meta) else one

    return look.rebuilt(hint, extra, records=True)


def _field(meta: msgspec.Meta) -> Any:
    if meta.tz is not None:
        raise MisuseError(f"pydantic judges this type, and does not know {meta!r}: write pydantic.AwareDatetime")
    names = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "title", "description")
    given = {name: getattr(meta, name) for name in names if getattr(meta, name) is not None}
    if meta.examples is not None:
        given["examples"] = meta.examples
    if meta.extra_json_schema is not None:
        given["json_schema_extra"] = meta.extra_json_schema
    return pydantic().Field(**given)


def guarded(make: Callable[[], Any]) -> Any:
    """Returns what pydantic makes of a type; raises `MisuseError` with pydantic's own words when it cannot."""
    library = pydantic()
    try:
        return make()
    except library.errors.PydanticUserError as error:
        raise MisuseError(error.message.strip().splitlines()[0]) from None
    except UNFIT as error:
        raise MisuseError(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}") from None


class Pydantic(Judge):
    """pydantic, by a `TypeAdapter`."""

    def __init__(self, hint: Any, found: look.Found | None = None) -> None:
        self.hint = hint
        self._known = for_pydantic(hint, found)
        self._by_alias = writes_aliases(hint)

    @functools.cached_property
    def _adapter(self) -> Any:
        return guarded(lambda: pydantic().TypeAdapter(self._known))

    def components(self, mode: Mode) -> tuple[Schema, Schema]:
        """As `Judge.components`."""
        by_alias = self._by_alias or mode == "validation"
        made: Schema = guarded(
            lambda: self._adapter.json_schema(
                mode=mode, by_alias=by_alias, ref_template="#/$defs/{model}", schema_generator=generator()
            )
        )
        return made, made.pop("$defs", {})

    def read(self, text: bytes) -> Any:
        """As `Judge.read`."""
        return with_surrogates(self._adapter.validate_json, text)

    def write(self, value: Any) -> bytes:
        """As `Judge.write`. A value of another type is made one of this, or refused."""
        library = pydantic()
        if isinstance(value, READ_ONCE):
            value = list(cast("Any", value))
        try:
            try:
                dumped = self._dumped(value, "error")
            except (library.PydanticSchemaGenerationError, AttributeError, TypeError, ValueError) as error:
                if isinstance(error, UnicodeDecodeError) or "invalid utf-8" in str(error):
                    raise
                value = self._made(value, error)
                dumped = self._dumped(value, False)
        except (UnicodeDecodeError, ValueError) as error:
            raise no_text(value, error) from None
        return encode(dumped)

    def _dumped(self, value: Any, warnings: Any) -> Any:
        return self._adapter.dump_python(value, mode="json", by_alias=self._by_alias, warnings=warnings)

    def _made(self, value: Any, error: Exception) -> Any:
        """A value that is not of the type, such as a dictionary, as one of it: with its defaults, and no more."""
        library = pydantic()
        try:
            return self._adapter.validate_python(value)
        except library.ValidationError as wrong:
            said = self.explain(wrong, value, part="result")
            raise MisuseError(f"what the function gave does not fit its type: {said}") from error

    def explain(self, error: Exception, value: Any, path: str = "", part: str = "argument") -> str:
        """As `Judge.explain`."""
        return explained(error, path, part)


def with_surrogates(read: Callable[[bytes], Any], text: bytes) -> Any:
    """Reads with pydantic, with U+FFFD for half of a surrogate pair, which pydantic takes for no JSON."""
    try:
        return read(text)
    except ValueError as error:
        kinds: Any = getattr(error, "errors", None)
        if kinds is None or b"\\u" not in text or kinds(include_url=False)[0]["type"] != "json_invalid":
            raise
    return read(mended(text))


def explained(error: Any, path: str = "", part: str = "argument") -> str:
    """An error of pydantic's as arguments are spoken of: `argument "a.b": ...`, in pydantic's own words."""
    found = error.errors(include_url=False)
    texts = [_text(item, path, part) for item in found[:_SHOWN]]
    if len(found) > _SHOWN:
        texts.append(f"and {len(found) - _SHOWN} more")
    return "; ".join(texts)


def _text(item: dict[str, Any], path: str, part: str) -> str:
    for step in item["loc"]:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else str(step)
    if item["type"].startswith("missing"):
        return f"{named(path, part)}: missing (required)"
    if item["type"] == "unexpected_keyword_argument":
        return f"{named(path, part)}: unknown"
    return f"{named(path, part)}: {within(str(item['msg']))}, got {_input(item['input'])}"


def _input(value: Any) -> str:
    try:
        return shown(msgspec.to_builtins(value, str_keys=True, enc_hook=encode_hook))
    except Exception:  # noqa: BLE001 - it is only shown
        return f"a {type(value).__qualname__}"


# -- what both have


def none_fits(hint: Any) -> bool:
    """Returns True when None is a value of a type."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in (None, type(None), Any, object):
        return True
    if origin is typing.Annotated:
        return none_fits(inner[0])
    if look.is_alias(hint):
        return none_fits(look.alias_value(hint))
    if isinstance(hint, typing.NewType):
        return none_fits(hint.__supertype__)
    if origin is Literal:
        return None in inner
    return origin in look.UNIONS and any(none_fits(part) for part in inner)


def description(hint: Any) -> str | None:
    """Returns the description of a type in its metadata."""
    if typing.get_origin(hint) is typing.Annotated:
        texts = [text for extra in hint.__metadata__ if (text := look.documentation(extra)) is not None]
        return texts[-1] if texts else description(typing.get_args(hint)[0])
    if typing.get_origin(hint) in look.UNIONS:
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        return description(parts[0]) if len(parts) == 1 else None
    return None
