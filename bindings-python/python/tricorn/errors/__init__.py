"""Exceptions that this package raises: one class per kind of fault, all of them plain `Error`s."""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from .values import shown

if TYPE_CHECKING:
    from .auth_step import AuthStep

INVALID_PARAMS = -32602
RESOURCE_NOT_FOUND = -32002
URL_ELICITATION_REQUIRED = -32042
_MAX_CODE = 2**53 - 1
_SHOWN = 8192
"""Characters of a message in an exception's text; `message` has all of it."""
_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_CONTROL = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]")


def unicode(text: str) -> str:
    """The text with U+FFFD for what is no Unicode: half of a surrogate pair, as in a file name that is not UTF-8."""
    if text.isascii():
        return text
    if _PAIR.search(text):
        text = _PAIR.sub(lambda found: found[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le"), text)
    return _HALF.sub("\ufffd", text)


def printable(text: str) -> str:
    """A text that may be a peer's as a terminal or a log can show it: no control characters, and not for ever."""
    if len(text) > _SHOWN:
        text = f"{text[:_SHOWN]}... ({len(text)} characters)"
    return text if text.isprintable() else _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class Error(Exception):
    """Base class: something went wrong between this program, the engine and the peer.

    `kind` is the same word in every language (`"timeout"`, `"closed"`, ...), `message` is for people, `code` and
    `data` are those of the JSON-RPC error when there is one.
    """

    kind = "misuse"
    auth_trace: Sequence[AuthStep] = ()
    """Steps of the logins that kept a client with `auth` (also one of a group) from connecting, without secrets: what
    was asked, answered and decided. Else empty."""
    refusal: int | None = None
    """The number of a question that was not sent, by which the engine knows it."""
    by_engine = False
    """True for what the engine has said, of whatever connection."""
    asked: object = None
    """The call whose question to its own client ended like this, which is no secret to that client."""

    def __init__(self, message: str, *, code: int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data

    def __str__(self) -> str:
        return printable(self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        # What it belongs to here, a call and its question, it does not elsewhere.
        state = {name: value for name, value in self.__dict__.items() if name not in ("asked", "by_engine", "refusal")}
        return _rebuild, (type(self), self.message, self.code, self.data), state


class RpcError(Error):
    """A JSON-RPC error: sent by the peer, or raised by a handler to be sent to it.

    `raise RpcError(-32602, "no such page", {"page": 7})` in a handler answers with exactly that error object. `code` is
    an integer of at most 53 bits, which every language reads; `MisuseError` names what is something else. `data` has to
    be JSON: with other data the request is answered with -32603, and `on_error` hears why.
    """

    kind = "rpc"
    code: int
    received = False
    """True when the peer sent it. A handler that lets it pass fails like with any other exception. With what its own
    client answered to a question, the failure says code and message."""
    is_answer = False
    """True when the peer answered a question of a handler with it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        if isinstance(code, bool) or not isinstance(cast("object", code), int) or abs(code) > _MAX_CODE:
            got = shown(code)
            raise MisuseError(f"RpcError: code: expected an integer of at most 53 bits, such as -32602, got {got}")
        if not isinstance(cast("object", message), str):
            raise MisuseError(f"RpcError: message: expected a string, got {shown(message)}")
        super().__init__(message, code=int(code), data=data)

    def __str__(self) -> str:
        return f"{printable(self.message)} (JSON-RPC error {self.code})"


class ResourceNotFoundError(RpcError):
    """There is no such resource: raise it in the handler of a resource template, or of a source.

    Clients get -32002 with the URI in `data`, in revisions that have given that code up -32602 with the same `data`.
    `read_resource` raises it for both, with the `code` that came.
    """

    def __init__(self, uri: str, message: str | None = None) -> None:
        what = unicode(uri)
        super().__init__(RESOURCE_NOT_FOUND, message or f"there is no resource {json.dumps(what)}", {"uri": what})

    @property
    def uri(self) -> str | None:
        """The URI that was looked for, if the peer says so."""
        data: Any = self.data
        return data.get("uri") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def known_as_not_found(error: RpcError) -> None:
    """Makes the error with which a resource was not read a `ResourceNotFoundError`, if it is one: since 2026-07-28 it
    has the code of wrong parameters, and only its data tell, which name a URI.
    """
    data: object = error.data
    if type(error) is not RpcError or error.code != INVALID_PARAMS or not isinstance(data, dict):
        return
    if isinstance(cast("dict[str, Any]", data).get("uri"), str):
        error.__class__ = ResourceNotFoundError


class PeerMisbehavedError(Error):
    """The peer broke the protocol."""

    kind = "peer_misbehaved"


class UnsupportedError(Error):
    """The peer, or the negotiated revision, does not offer what was asked for."""

    kind = "unsupported"


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001 - it is one, so `except TimeoutError` catches it
    """No answer in time; the peer was told that nobody waits any more."""

    kind = "timeout"


class CancelledError(Error):
    """The call was cancelled by the other side (cancelling your own task raises asyncio's own exception)."""

    kind = "cancelled"


class ClosedError(Error):
    """The connection is closed."""

    kind = "closed"


class TransportError(Error, OSError):
    """Bytes could not be moved: process, socket or HTTP status."""

    kind = "transport"


class AuthError(Error):
    """Authorization is missing or was refused."""

    kind = "auth"


class MisuseError(Error, ValueError):
    """This package was called wrongly; the message says what to do instead."""

    kind = "misuse"


class ToolError(Exception):
    """Raised by a tool to tell the model what went wrong: the text is shown to it as it is, `isError` is set."""


def _rebuild(cls: type[Error], message: str, code: int | None, data: Any) -> Error:
    error = cls.__new__(cls)
    Error.__init__(error, message, code=0 if code is None and issubclass(cls, RpcError) else code, data=data)
    return error
