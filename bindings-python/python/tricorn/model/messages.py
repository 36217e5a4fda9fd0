"""Messages of prompts, and of conversations with a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from ..errors import MisuseError
from ..errors.values import shown
from .content import BLOCKS, Content, Text, block, given, several_given, texts
from .wire_result import WireResult

Json = dict[str, Any]
Role = Literal["user", "assistant"]


class CreateMessageResult(WireResult):
    """A message that the client's model wrote. A client's `sampling` function may return one, or just the text."""

    __slots__ = ()
    method = "sampling/createMessage"

    def __init__(
        self,
        content: str | Content | Mapping[str, Any] | Sequence[Content | Mapping[str, Any]],
        *,
        model: str = "unknown",
        stop_reason: str | None = "endTurn",
        role: Literal["user", "assistant"] = "assistant",
        meta: dict[str, Any] | None = None,
    ) -> None:
        blocks: Any = {"type": "text", "text": content} if isinstance(content, str) else content
        raw: Json = {"role": role, "content": msgspec.to_builtins(blocks), "model": model}
        if stop_reason is not None:
            raw["stopReason"] = stop_reason
        if meta is not None:
            raw["_meta"] = meta
        self._raw = raw
        self._wire = None

    @property
    def content(self) -> list[Content | dict[str, Any]]:
        """The content blocks; a block of an unknown type, such as `tool_use`, stays a dictionary."""
        return [block(item) for item in self._blocks]

    @property
    def text(self) -> str:
        """All text blocks joined by line breaks."""
        return texts(self._blocks)

    @property
    def _blocks(self) -> list[Json]:
        content = self.raw.get("content")
        return cast("list[Json]", content if isinstance(content, list) else [content])

    @property
    def role(self) -> str:
        """The role of the message's author; the model's is `"assistant"`."""
        return cast(str, self.raw.get("role") or "assistant")

    @property
    def model(self) -> str:
        """The model that wrote it."""
        return cast(str, self.raw.get("model") or "unknown")

    @property
    def stop_reason(self) -> str | None:
        """`"endTurn"`, `"stopSequence"`, `"maxTokens"`, `"toolUse"` or the provider's own word."""
        return self.raw.get("stopReason")


class Message(msgspec.Struct):
    """One message of a prompt, or of a conversation with a model. `user` and `assistant` make them."""

    role: Role
    content: Content | dict[str, Any] | list[Content | dict[str, Any]]
    """One block; in a conversation with a model also several."""

    def __post_init__(self) -> None:
        self.content = _said(self.content)

    @property
    def text(self) -> str:
        """All text blocks joined by line breaks."""
        blocks = self.content if isinstance(self.content, list) else [self.content]
        texts = (b.get("text") if isinstance(b, dict) else getattr(b, "text", None) for b in blocks)
        return "\n".join(text for text in texts if isinstance(text, str))


Said = str | Content | Mapping[str, Any]


def user(content: Said | Sequence[Said]) -> Message:
    """Makes a message of the user: text or a content block. A prompt sends several as that many messages."""
    return Message("user", cast(Any, content))


def assistant(content: Said | Sequence[Said]) -> Message:
    """Makes a message of the model: text or a content block. A prompt sends several as that many messages."""
    return Message("assistant", cast(Any, content))


def _said(content: Any) -> Any:
    if isinstance(content, str):
        return Text(content)
    if isinstance(content, (list, tuple)):
        return [_said(item) for item in cast("list[Any]", content)]
    return cast("Any", content) if isinstance(content, Mapping) else given("a message", content)


def _checked(role: object, content: Any) -> Any:
    """The content of a message that is sent."""
    if role not in ("user", "assistant"):
        fix = "; give instructions as the user's" if role == "system" else ""
        raise MisuseError(f'a message: role: expected "user" or "assistant", got {shown(role)}{fix}')
    several = several_given("a message: content", content)
    return several if isinstance(content, (list, tuple)) else several[0]


def message(value: Any) -> Any:
    """The message that a value stands for; text and content blocks alone are the user's."""
    if isinstance(value, Message):
        _checked(value.role, value.content)
        return value
    if isinstance(value, CreateMessageResult):
        return {"role": value.role, "content": value.raw.get("content")}
    if isinstance(value, Mapping) and "role" in value:
        members = cast("Mapping[str, Any]", value)
        return {**members, "content": _checked(members["role"], members.get("content"))}
    if not isinstance(value, (str, Mapping, *BLOCKS)):
        raise TypeError(f"expected text, a message or a content block, got {type(cast(object, value)).__qualname__}")
    return {"role": "user", "content": given("a message", cast("object", value))}  # type: ignore[redundant-cast]


def messages(value: Any) -> list[Any]:
    """The messages that a value, or several in a list, stand for."""
    return [message(item) for item in (cast("list[Any]", value) if isinstance(value, (list, tuple)) else [value])]


def of_prompt(value: Any) -> list[Any]:
    """The same of a prompt, whose messages have one content block each."""
    return [one for item in messages(value) for one in apart(item)]


def apart(value: Any) -> list[Any]:
    """A message as those that a prompt may have, whose content is one block."""
    content: Any = cast("dict[str, Any]", value).get("content") if isinstance(value, dict) else value.content
    if not isinstance(content, list):
        return [value]
    if not content:
        raise TypeError("a message of a prompt has a content block, and this one has none")
    blocks = cast("list[Any]", content)  # type: ignore[redundant-cast]
    if isinstance(value, dict):
        return [{**cast("dict[str, Any]", value), "content": block} for block in blocks]
    return [Message(value.role, block) for block in blocks]
