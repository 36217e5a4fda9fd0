"""Results of requests, those of a server and those of a client."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

import msgspec

from ..errors import PeerMisbehavedError, ToolError, printable
from ..json.decoding import decode
from ..json.encoding import plain
from .content import (
    Audio,
    Content,
    EmbeddedResource,
    Image,
    ResourceContents,
    Text,
    block,
    items,
    member,
    several_given,
    texts,
)
from .messages import Message, Said, of_prompt
from .wire_result import WireResult

if TYPE_CHECKING:
    from ..json import judge

Json = dict[str, Any]
Action = Literal["accept", "decline", "cancel"]

T = TypeVar("T")


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
        blocks = [] if content == "" else several_given("CallToolResult: content", content)
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
        Values that are text in JSON, such as a date, are the text as it is.

        A value that a legacy server wrapped as `{"result": value}` is unwrapped. Raises `ToolError` with the text when
        the tool failed, a `ValueError` of msgspec's or pydantic's, by who judges the type, when the value is something
        else.
        """
        from ..json import judge  # a server's module, which a client needs for this alone

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


class ReadResourceResult(WireResult):
    """The contents of a resource.

    A client receives it, and a handler may return one to set everything itself, or to pass on another server's result
    without loss.
    """

    __slots__ = ()
    method = "resources/read"

    def __init__(
        self,
        contents: str | bytes | ResourceContents | Sequence[ResourceContents],
        *,
        meta: dict[str, Any] | None = None,
    ) -> None:
        several = [contents] if isinstance(contents, (str, bytes, ResourceContents)) else contents
        raw: dict[str, Any] = {"contents": [msgspec.to_builtins(contents_of(item)) for item in several]}
        if meta is not None:
            raw["_meta"] = meta
        self._raw = raw
        self._wire = None

    @property
    def contents(self) -> list[ResourceContents]:
        """The contents; several for what has parts, such as the files of a folder."""
        return member("the result of resources/read", self.raw.get("contents"), list[ResourceContents]) or []

    @property
    def text(self) -> str:
        """All texts joined by line breaks."""
        return "\n".join(item.text for item in self.contents if item.text is not None)

    @property
    def blob(self) -> bytes | None:
        """The first bytes; None when there is only text."""
        return next((item.blob for item in self.contents if item.blob is not None), None)


def contents_of(value: object) -> object:
    """The contents that a value stands for: text, bytes and the content blocks of them are contents by themselves."""
    if isinstance(value, str):
        return ResourceContents(text=value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ResourceContents(blob=bytes(cast(bytes, value)))
    if isinstance(value, Text):
        return ResourceContents(text=value.text, meta=value.meta)
    if isinstance(value, (Image, Audio)):
        return ResourceContents(mime_type=value.mime_type, blob=value.data, meta=value.meta)
    return value.resource if isinstance(value, EmbeddedResource) else value


class GetPromptResult(WireResult):
    """A prompt with its arguments filled in.

    A client receives it, and a prompt may return one to set everything itself, or to pass on another server's result
    without loss.
    """

    __slots__ = ()
    method = "prompts/get"

    def __init__(
        self,
        messages: Said | Message | Sequence[Said | Message],
        *,
        description: str | None = None,
        meta: dict[str, Any] | None = None,
    ) -> None:
        raw: dict[str, Any] = {"messages": msgspec.to_builtins(of_prompt(messages))}
        if description is not None:
            raw["description"] = description
        if meta is not None:
            raw["_meta"] = meta
        self._raw = raw
        self._wire = None

    @property
    def messages(self) -> list[Message]:
        """The messages in order; content of an unknown type stays a dictionary."""
        try:
            return [Message(item["role"], _blocks(item["content"])) for item in self.raw.get("messages") or ()]
        except KeyError as error:
            raise PeerMisbehavedError(f"the result of prompts/get: a message without {error}") from None
        except TypeError:
            raise PeerMisbehavedError("the result of prompts/get: a message is no object") from None

    @property
    def text(self) -> str:
        """The texts of all messages joined by line breaks."""
        return "\n".join(text for text in (message.text for message in self.messages) if text)

    @property
    def description(self) -> str | None:
        """A description of the prompt's purpose."""
        return self.raw.get("description")


def _blocks(content: Any) -> Any:
    return [block(one) for one in items(content)] if isinstance(content, list) else block(content)


class _Values(msgspec.Struct, rename="camel"):
    values: list[str]
    total: int | None = None
    has_more: bool | None = None


class Completion(WireResult):
    """Up to 100 values, best first. `total` says how many there are in all, if that is known.

    A client receives it, and a function that completes may return one.
    """

    __slots__ = ("_values",)
    method = "completion/complete"

    def __init__(
        self,
        values: Sequence[str],
        total: int | None = None,
        has_more: bool | None = None,
        *,
        meta: dict[str, Any] | None = None,
    ) -> None:
        self._values = _Values(list(values), total, has_more)
        given = {"values": self._values.values, "total": total, "hasMore": has_more}
        raw: dict[str, Any] = {"completion": {key: value for key, value in given.items() if value is not None}}
        if meta is not None:
            raw["_meta"] = meta
        self._raw = raw
        self._wire = None

    @classmethod
    def from_wire(cls, wire: bytes) -> Completion:
        """Makes the completion of what a peer answered."""
        self = super().from_wire(wire)
        found = member("the result of completion/complete", self.raw.get("completion"), _Values)
        if found is None:
            raise PeerMisbehavedError("the result of completion/complete: there is no completion")
        self._values = found
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Completion) and other._values == self._values

    __hash__ = None

    @property
    def values(self) -> list[str]:
        """The values, best first."""
        return self._values.values

    @property
    def total(self) -> int | None:
        """The number of values in all."""
        return self._values.total

    @property
    def has_more(self) -> bool | None:
        """True when there are more values."""
        return self._values.has_more


class Elicited(Generic[T]):
    """The user's response to a form or a page: `action`, and the form's `content` when it was accepted.

    A handler gets it from `ctx.elicit`; a client's `elicitation` function may return one.
    """

    __slots__ = ("action", "content", "raw")

    def __init__(self, action: Action, content: T | None = None, *, meta: dict[str, Any] | None = None) -> None:
        self.action: Action = action
        self.content: T | None = content
        self.raw: dict[str, Any] = {} if meta is None else {"_meta": meta}
        """The result object that a handler gets, exactly as it is on the wire."""

    @property
    def meta(self) -> dict[str, Any]:
        """The result's `_meta`."""
        return self.raw.get("_meta") or {}

    @property
    def accepted(self) -> bool:
        """True when the user agreed; a form is then filled in, a page perhaps not yet visited."""
        return self.action == "accept"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Elicited):
            return False
        that = cast("Elicited[Any]", other)  # type: ignore[redundant-cast]
        return (self.action, self.content) == (that.action, that.content)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Elicited({self.action!r}, {self.content!r})"


class Root(msgspec.Struct, omit_defaults=True, rename={"meta": "_meta"}):
    """A folder or file that the client lets servers work on: a `file:` URI."""

    uri: str
    name: str | None = None
    meta: dict[str, Any] | None = None

    @property
    def path(self) -> str:
        """The path in the client's file system."""
        from urllib.parse import unquote, urlsplit

        return unquote(urlsplit(self.uri).path)


class ListRootsResult(list[Root]):
    """The folders and files that a client lets the server work on. `raw` is the result without any loss."""

    raw: Json
    """The result object exactly as it is on the wire."""

    @classmethod
    def from_wire(cls, wire: bytes) -> ListRootsResult:
        """Makes the result of what a client answered."""
        raw = decode(wire)
        roots = member("the result of roots/list", raw.get("roots"), list[Root])
        if roots is None:
            raise PeerMisbehavedError("the result of roots/list: there are no roots")
        self = cls(roots)
        self.raw = raw
        return self

    @property
    def meta(self) -> dict[str, Any]:
        """The result's `_meta`."""
        return self.raw.get("_meta") or {}
