"""Content blocks of calls, and the small records beside them.

The classes mirror the wire (specification: server/tools, "Tool Result"): `mime_type` here is `mimeType` there,
`meta` is `_meta`, bytes are base64.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, cast

import msgspec

from ..errors import MisuseError, PeerMisbehavedError
from ..errors.values import shown

T = TypeVar("T")


class _Record(msgspec.Struct, omit_defaults=True, rename={"mime_type": "mimeType", "meta": "_meta"}):
    pass


class Annotations(msgspec.Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Hints for the client about a block: who it is for, how much it matters (0 to 1), when it changed (ISO 8601)."""

    audience: list[Literal["user", "assistant"]] | None = None
    priority: float | None = None
    last_modified: str | None = None


class Icon(_Record):
    """An image for user interfaces: an `https:` or `data:` URI, sizes like `"48x48"` or `"any"`."""

    src: str
    mime_type: str | None = None
    sizes: list[str] | None = None
    theme: Literal["light", "dark"] | None = None


class Implementation(msgspec.Struct, omit_defaults=True, rename="camel"):
    """The name and version a client or server gives itself; never proof of anything."""

    name: str
    version: str = ""
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


class ToolAnnotations(msgspec.Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Hints about a tool's behaviour; a client only trusts those of a server it trusts."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class Text(_Record, tag_field="type", tag="text"):
    """A block of text."""

    text: str
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_text("Text", self.text)


class Image(_Record, tag_field="type", tag="image"):
    """An image: its raw bytes and MIME type."""

    data: bytes
    # A factory, because a plain default would be left out on the wire.
    mime_type: str = msgspec.field(default_factory=lambda: "image/png")
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_bytes("Image: data", self.data)


class Audio(_Record, tag_field="type", tag="audio"):
    """A sound: its raw bytes and MIME type."""

    data: bytes
    mime_type: str = msgspec.field(default_factory=lambda: "audio/wav")
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_bytes("Audio: data", self.data)


class ResourceContents(_Record):
    """The contents of a resource: either `text` or `blob` (raw bytes).

    The value of a resource may leave out `uri` and `mime_type`: the request and the definition say them.
    """

    uri: str = ""
    mime_type: str | None = None
    text: str | None = None
    blob: bytes | None = None
    meta: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.text is not None:
            _check_text("ResourceContents", self.text)
        if self.blob is not None:
            _check_bytes("ResourceContents: blob", self.blob)


class EmbeddedResource(_Record, tag_field="type", tag="resource"):
    """A resource with its contents, which say their `uri`, inside the result."""

    resource: ResourceContents
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.resource.uri:
            raise MisuseError("an embedded resource needs a URI: ResourceContents(uri, ...)")


class ResourceLink(_Record, tag_field="type", tag="resource_link"):
    """A pointer to a resource the client may read; `size` is in bytes."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: list[Icon] | None = None
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/_-]")


def _check_text(of: str, value: object) -> None:
    if not isinstance(value, str):
        raise MisuseError(f"{of}: text: expected a string, got {shown(value)}: give str(...) or json.dumps(...) of it")


def _check_bytes(of: str, value: object) -> None:
    if isinstance(value, (bytes, bytearray, memoryview)) or (isinstance(value, str) and _is_base64(value)):
        return
    got = shown(value)
    fix = ": read the file, such as Path(...).read_bytes()" if isinstance(value, (str, os.PathLike)) else ""
    raise MisuseError(f"{of}: expected bytes or base64 text, got {got}{fix}")


def _is_base64(text: str) -> bool:
    """Returns True for the letters of base64, or of its form for URLs, with or without padding and line ends."""
    letters = re.sub(r"\s+", "", text).rstrip("=")
    return len(letters) % 4 != 1 and _NOT_BASE64.search(letters) is None


Content = Text | Image | Audio | EmbeddedResource | ResourceLink
"""Any content block."""

BLOCKS: tuple[type[Any], ...] = (Text, Image, Audio, EmbeddedResource, ResourceLink)
_BY_TAG: dict[Any, type[Any]] = {cls.__struct_config__.tag: cls for cls in BLOCKS}


class Progress(msgspec.Struct):
    """The progress of a request: `progress` grows, `total` may be unknown."""

    progress: float
    total: float | None = None
    message: str | None = None


def items(value: Any) -> list[Any]:
    """The items of an array; none of anything else."""
    return cast(Any, value) if isinstance(value, list) else []


def texts(blocks: Any) -> str:
    """The texts of a peer's content blocks, joined by line breaks."""
    members = [cast("dict[str, Any]", one) for one in items(blocks) if isinstance(one, dict)]
    found = [one.get("text") for one in members if one.get("type") == "text"]
    return "\n".join(text for text in found if isinstance(text, str))


def member(name: str, value: Any, cls: type[T]) -> T | None:
    """Converts what a peer sent to a value of `cls`; `name` names it in the error when it is something else.

    Harmless faults are overlooked: null for what may be left out, whole numbers written as fractions, base64 without
    its padding or in the alphabet for URLs.
    """
    if value is None:
        return None
    try:
        return msgspec.convert(value, cls)
    except msgspec.ValidationError:
        try:
            return msgspec.convert(_lenient(value), cls)
        except (msgspec.ValidationError, ValueError) as error:
            raise PeerMisbehavedError(f"{name}: {error}") from None


def _lenient(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {k: _lenient(one, k) for k, one in members.items() if one is not None and k != "_meta"} | (
            {"_meta": members["_meta"]} if isinstance(members.get("_meta"), dict) else {}
        )
    if isinstance(value, list):
        return [_lenient(one) for one in cast("list[Any]", value)]  # type: ignore[redundant-cast]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and key in ("data", "blob"):
        text = "".join(value.split()).rstrip("=").replace("-", "+").replace("_", "/")
        return text + "=" * (-len(text) % 4)
    return value


def is_block(value: object) -> bool:
    """Returns True for a content block, also in its wire form."""
    if isinstance(value, BLOCKS):
        return True
    kind: object = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
    if not isinstance(kind, str) or kind not in _BY_TAG:
        return False
    try:
        msgspec.convert(value, _BY_TAG[kind])
    except ValueError:
        return False
    return True


def given(of: str, value: object) -> Any:
    """The block that a program gives, as text or by itself. `MisuseError`: it is none; `of` names it."""
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, BLOCKS):
        return value
    if not isinstance(value, Mapping):
        raise MisuseError(f"{of}: expected text or a content block, such as Text(...), got {shown(value)}")
    return _on_wire(of, cast("Mapping[str, Any]", value))


def _on_wire(of: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    """A block in its wire form; those of unknown types are not looked into."""
    kind: object = value.get("type")
    if not isinstance(kind, str):
        raise MisuseError(f'{of}: expected text or a content block, which has a "type", got an object')
    if kind in _BY_TAG:
        try:
            msgspec.convert(value, _BY_TAG[kind])
        except ValueError as error:
            raise MisuseError(f"{of}: a content block of type {shown(kind)}: {error}") from None
    return value


def several_given(of: str, value: object) -> list[Any]:
    """The same of several in a list; one alone is a list of one."""
    if not isinstance(value, (list, tuple)):
        return [given(of, value)]
    return [given(f"{of}[{at}]", item) for at, item in enumerate(cast("list[object]", value))]


def block(item: Any) -> Content | dict[str, Any]:
    """The content block for its wire form; a block of an unknown type stays a dictionary."""
    if not isinstance(item, dict):
        raise PeerMisbehavedError(f"content block: expected an object, got {json.dumps(item)[:80]}")
    members = cast("dict[str, Any]", item)
    cls = _BY_TAG.get(members.get("type"))
    if cls is None:
        return members
    found: Content | None = member(f"content block of type {members['type']!r}", members, cls)
    return members if found is None else found
