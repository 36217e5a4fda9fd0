"""Prompts: messages, what a handler's value becomes, and what a client gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

import msgspec

from .ask import CreateMessageResult
from .completion import Complete
from .content import BLOCKS, Content, Definition, Icon, Text, WireResult, block, items, member
from .encoding import encode
from .errors import MisuseError, PeerMisbehavedError
from .handler import Answer
from .host import Host

Json = dict[str, Any]
Role = Literal["user", "assistant"]


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
    return [_said(item) for item in cast("list[Any]", content)] if isinstance(content, (list, tuple)) else content


def message(value: Any) -> Any:
    """The message that a value stands for; text and content blocks alone are the user's."""
    if isinstance(value, Message):
        return value
    if isinstance(value, CreateMessageResult):
        return {"role": value.role, "content": value.raw.get("content")}
    if isinstance(value, Mapping) and "role" in value:
        members = cast("Mapping[str, Any]", value)
        return {**members, "content": _said(members.get("content"))}
    if not isinstance(value, (str, Mapping, *BLOCKS)):
        raise TypeError(f"expected text, a message or a content block, got {type(cast(object, value)).__qualname__}")
    return {"role": "user", "content": _said(value)}


def messages(value: Any) -> list[Any]:
    """The messages that a value, or several in a list, stand for."""
    return [message(item) for item in (cast("list[Any]", value) if isinstance(value, (list, tuple)) else [value])]


def of_prompt(value: Any) -> list[Any]:
    """The same of a prompt, whose messages have one content block each."""
    return [one for item in messages(value) for one in _apart(item)]


def _apart(value: Any) -> list[Any]:
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


class PromptOptions(TypedDict, total=False):
    """Options of a prompt; everything not given is read off the function."""

    name: str | None
    """The name that clients get it by; the function's name."""
    title: str | None
    """The name to show to people; none."""
    description: str | None
    """A description of its purpose; the function's docstring."""
    arguments: Sequence[Mapping[str, Any]] | None
    """The schema's PromptArgument objects, instead of those made from the signature."""
    icons: Sequence[Icon | Mapping[str, Any]] | None
    """Images for user interfaces; none."""
    meta: Mapping[str, Any] | None
    """The definition's `_meta`; none."""
    scopes: Sequence[str] | None
    """The scopes that the caller's access token needs for it over HTTP, besides the server's `required_scopes`; it is
    listed to those who have them. None."""
    enabled: bool | None
    """False hides it until `set_enabled` shows it. True."""
    replace: bool | None
    """True puts it in the place of the prompt of this name, if there is one.

    It is hidden when that was, unless `enabled` is given. False.
    """
    complete: Mapping[str, Complete] | None
    """Completion of arguments, by name: a function of the value so far, or a list of all values."""
    run_in_thread: bool | None
    """For plain functions; False runs them on the event loop, which is faster but must never block. True."""


class PromptArgument(msgspec.Struct, omit_defaults=True):
    """An argument of a prompt; its value is text."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False


class Prompt(Definition):
    """A prompt as a server lists it. `raw` is the definition without any loss."""

    __slots__ = ()

    @property
    def arguments(self) -> list[PromptArgument]:
        """The arguments that may or must be filled in."""
        return member("Prompt.arguments", self.raw.get("arguments"), list[PromptArgument]) or []


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


def answering(host: Host, typed: bool = False) -> Answer:
    """Returns the function that makes the answer to prompts/get of a value; `typed`: it is declared to be a whole
    result."""
    bridge = host.bridge

    def answer(key: int, value: Any) -> object:
        if isinstance(value, GetPromptResult):
            return bridge.result(key, value.to_wire())
        if isinstance(value, dict) and (typed or "messages" in value):
            return bridge.result(key, encode(_whole(cast("dict[str, Any]", value))))
        if value is None:
            return bridge.value(key, b"null")  # the engine says what is expected
        return bridge.result(key, encode({"messages": of_prompt(value)}))

    return answer


def _whole(result: dict[str, Any]) -> dict[str, Any]:
    """A result object as it is on the wire, whose messages may have several blocks."""
    several = items(result.get("messages"))
    if not any(
        isinstance(one, dict) and isinstance(cast("dict[str, Any]", one).get("content"), list) for one in several
    ):
        return result
    return {
        **result,
        "messages": [part for one in several for part in (_apart(one) if isinstance(one, dict) else [one])],
    }


def define(function: Callable[..., Any], description: str | None, options: PromptOptions) -> Json:
    """The schema's Prompt object; the engine adds the arguments that the signature says."""
    name = options.get("name") or getattr(function, "__name__", "<lambda>")
    if name == "<lambda>":
        raise MisuseError(f"prompt: {function!r} has no name of its own; give it one with name=...")
    values = {
        "name": name,
        "title": options.get("title"),
        "description": options.get("description", description),
        "arguments": options.get("arguments"),
        "icons": options.get("icons"),
        "_meta": options.get("meta"),
    }
    return {key: value for key, value in values.items() if value is not None}
