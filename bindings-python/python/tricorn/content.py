"""The contents of calls: content blocks, the results around them, and the small records beside them.

The classes mirror the wire (specification: server/tools, "Tool Result"): `mime_type` here is `mimeType` there,
`meta` is `_meta`, bytes are base64.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

import msgspec

from .decoding import decode
from .encoding import encode, plain
from .errors import MisuseError, PeerMisbehavedError, ToolError, printable

if TYPE_CHECKING:
    from typing_extensions import Self

    from . import judge

T = TypeVar("T")


TaskSupport = Literal["forbidden", "optional", "required"]


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


class Image(_Record, tag_field="type", tag="image"):
    """An image: its raw bytes and MIME type."""

    data: bytes
    # A factory, because a plain default would be left out on the wire.
    mime_type: str = msgspec.field(default_factory=lambda: "image/png")
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class Audio(_Record, tag_field="type", tag="audio"):
    """A sound: its raw bytes and MIME type."""

    data: bytes
    mime_type: str = msgspec.field(default_factory=lambda: "audio/wav")
    annotations: Annotations | None = None
    meta: dict[str, Any] | None = None


class ResourceContents(_Record):
    """The contents of a resource: either `text` or `blob` (raw bytes).

    What is returned for a resource may leave out `uri` and `mime_type`: the request and the definition say them.
    """

    uri: str = ""
    mime_type: str | None = None
    text: str | None = None
    blob: bytes | None = None
    meta: dict[str, Any] | None = None


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


Content = Text | Image | Audio | EmbeddedResource | ResourceLink
"""Any content block."""

BLOCKS: tuple[type[Any], ...] = (Text, Image, Audio, EmbeddedResource, ResourceLink)
_BY_TAG: dict[Any, type[Any]] = {cls.__struct_config__.tag: cls for cls in BLOCKS}


class Progress(msgspec.Struct):
    """The progress of a request: `progress` grows, `total` may be unknown."""

    progress: float
    total: float | None = None
    message: str | None = None


class WireResult:
    """A result as it is on the wire: parsed when first looked at, passed on without loss."""

    __slots__ = ("_raw", "_wire")
    method = ""

    _raw: dict[str, Any] | None
    _wire: bytes | None

    @classmethod
    def from_wire(cls, wire: bytes) -> Self:
        """The result a peer sent, as JSON text."""
        self = cls.__new__(cls)
        self._raw = None
        self._wire = wire
        return self

    def to_wire(self) -> bytes:
        """The result as JSON text; what was received is passed on unchanged."""
        if self._wire is not None:
            return self._wire
        return encode(self._raw)

    @property
    def raw(self) -> dict[str, Any]:
        """The result object exactly as it is on the wire."""
        if self._raw is None:
            raw = decode(self._wire or b"null")
            if not isinstance(raw, dict):
                raise PeerMisbehavedError(f"the result of {self.method} is not an object")
            self._raw = cast("dict[str, Any]", raw)
        return self._raw

    @property
    def meta(self) -> dict[str, Any]:
        """The result's `_meta`."""
        return self.raw.get("_meta") or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WireResult) and type(other) is type(self) and other.raw == self.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"


def items(value: Any) -> list[Any]:
    """The items of an array; none of anything else."""
    return cast(Any, value) if isinstance(value, list) else []


def texts(blocks: Any) -> str:
    """The texts of a peer's content blocks, joined by line breaks."""
    members = [cast("dict[str, Any]", one) for one in items(blocks) if isinstance(one, dict)]
    found = [one.get("text") for one in members if one.get("type") == "text"]
    return "\n".join(text for text in found if isinstance(text, str))


class Page(tuple[list[T], str | None], Generic[T]):
    """One page of a list: `entries, cursor = page`. `raw` is the result without any loss.

    It is its entries and the cursor of the next page, None after the last.
    """

    raw: dict[str, Any]
    """The result object as the server sent it. That of a group is made: its entries, and nothing besides."""

    def __new__(cls, entries: list[T], raw: dict[str, Any]) -> Page[T]:
        """The page with these entries that a peer sent."""
        self = super().__new__(cls, (entries, raw.get("nextCursor")))
        self.raw = raw
        return self

    def __getnewargs__(self) -> Any:  # copies have it, too
        return self[0], self.raw

    @property
    def entries(self) -> list[T]:
        """In the server's order."""
        return self[0]

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page; None after the last."""
        return self[1]

    @property
    def meta(self) -> dict[str, Any]:
        """The result's `_meta`."""
        return self.raw.get("_meta") or {}


class CallToolResult(WireResult):
    """The whole result of a tool call.

    A client receives it, and a tool may return one to set everything itself, or to pass on another server's result
    without loss. `structured` then is any JSON value, None meaning `null`; left out, there is none.
    """

    __slots__ = ()
    method = "tools/call"

    def __init__(
        self,
        content: list[Content] | list[dict[str, Any]] | str = "",
        *,
        structured: Any = msgspec.UNSET,
        is_error: bool = False,
        meta: dict[str, Any] | None = None,
    ) -> None:
        blocks: Any = content
        if isinstance(content, str):
            blocks = [{"type": "text", "text": content}] if content else []
        raw: dict[str, Any] = {"content": msgspec.to_builtins(blocks)}
        if structured is not msgspec.UNSET:
            raw["structuredContent"] = msgspec.to_builtins(plain(structured), str_keys=True)
        if is_error:
            raw["isError"] = True
        if meta is not None:
            raw["_meta"] = meta
        self._raw = raw
        self._wire = None

    @property
    def content(self) -> list[Content | dict[str, Any]]:
        """The content blocks in order; a block of an unknown type stays a dictionary."""
        return [block(item) for item in self.raw.get("content") or ()]

    @property
    def structured(self) -> Any:
        """The structured content: any JSON value. None is JSON `null`, or that there is none: see `has_structured`.

        Legacy revisions have objects only; their servers wrap anything else as `{"result": value}`, which `to` undoes.
        """
        return self.raw.get("structuredContent")

    @property
    def has_structured(self) -> bool:
        """True when there is structured content; it may be `null`, which `structured` shows as None."""
        return "structuredContent" in self.raw

    @property
    def text(self) -> str:
        """All text blocks joined by line breaks."""
        return texts(self.raw.get("content"))

    @property
    def is_error(self) -> bool:
        """True when the tool failed; `text` says why."""
        return self.raw.get("isError") is True

    def to(self, type: type[T]) -> T:  # noqa: A002 - the natural word here
        """The structured content, or else the text read as JSON, as a value of `type` (a dataclass, TypedDict, ...).
        What is a text in JSON, such as a date, is the text as it is.

        A value that a legacy server wrapped as `{"result": value}` is unwrapped. Raises `ToolError` with the text when
        the tool failed, a `ValueError` of msgspec's or pydantic's, by who judges the type, when the value is something
        else.
        """
        from . import judge  # a server's module, which a client needs for this alone

        if self.is_error:
            raise ToolError(printable(self.text))
        found = judge.of(type)
        if not self.has_structured:
            return cast(T, self.text) if type is str else cast(T, _read(found, self.text))
        value = self.structured
        wrapped = isinstance(value, dict) and cast("dict[str, Any]", value).keys() == {"result"}
        try:
            return cast(T, found.convert(value))
        except ValueError:
            if not wrapped:
                raise
            return cast(T, found.convert(value["result"]))


def _read(found: judge.Judge, text: str) -> Any:
    """A text as the value whose JSON it is, or which is a text in JSON, such as a date: that stands there as it is."""
    try:
        return found.read(text.encode())
    except PeerMisbehavedError:  # it is no JSON
        return found.convert(text)
    except ValueError:
        with suppress(ValueError):
            return found.convert(text)
        raise


class Definition:
    """Something as a server lists it. `raw` is the definition without any loss."""

    __slots__ = ("raw", "server")

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.server: str | None = None
        """The name of the server of a group that has it."""

    @property
    def name(self) -> str:
        """The name to use it by, or, of a resource, a name for programs."""
        return self._text("name")

    @property
    def title(self) -> str:
        """The name to show to people."""
        return cast(str, self.raw.get("title") or self.name)

    def _text(self, key: str) -> str:
        value = self.raw.get(key)
        if not isinstance(value, str):
            raise PeerMisbehavedError(f"{type(self).__name__}.{key}: expected a string, got {json.dumps(value)[:80]}")
        return value

    @property
    def description(self) -> str | None:
        """A description for the model."""
        return self.raw.get("description")

    @property
    def icons(self) -> list[Icon]:
        """Images for user interfaces."""
        return member(f"{type(self).__name__}.icons", self.raw.get("icons"), list[Icon]) or []

    @property
    def meta(self) -> dict[str, Any]:
        """The definition's `_meta`."""
        return self.raw.get("_meta") or {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Definition) and type(other) is type(self) and other.raw == self.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.raw!r})"


class Tool(Definition):
    """A tool as a server lists it. `raw` is the definition without any loss."""

    __slots__ = ()

    @property
    def title(self) -> str:
        """The name to show to people."""
        annotations = self.annotations
        return cast(str, self.raw.get("title") or (annotations and annotations.title) or self.name)

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        schema = self.raw.get("inputSchema")
        if not isinstance(schema, dict):
            raise PeerMisbehavedError(f"Tool.inputSchema: expected an object, got {json.dumps(schema)[:80]}")
        return cast("dict[str, Any]", schema)

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema of the structured content."""
        return self.raw.get("outputSchema")

    @property
    def task_support(self) -> TaskSupport:
        """Support for calls as a task: `"forbidden"`, `"optional"` or `"required"`."""
        execution = cast("dict[str, Any]", self.raw.get("execution") or {})
        return cast(Any, execution.get("taskSupport") or "forbidden")  # type: ignore[no-any-return]

    @property
    def annotations(self) -> ToolAnnotations | None:
        """Hints about its behaviour."""
        return member("Tool.annotations", self.raw.get("annotations"), ToolAnnotations)


def member(name: str, value: Any, cls: type[T]) -> T | None:
    """Converts what a peer sent to a value of `cls`; `name` names it in the error when it is something else.

    What does no harm is overlooked: null for what may be left out, whole numbers written as fractions, base64 without
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
