"""Requests of both clients to a server: each one's method and parameters, and the reading of its answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, cast

import msgspec

from ..call.options import RequestOptions
from ..errors import MisuseError, PeerMisbehavedError, RpcError, UnsupportedError, known_as_not_found
from ..json import checks
from ..json.decoding import decode
from ..json.encoding import encode, encode_params
from ..model.definitions import Prompt, Resource, ResourceTemplate, Tool
from ..model.results import Completion, GetPromptResult, Page, ReadResourceResult

T = TypeVar("T")
D = TypeVar("D")

INVALID_PARAMS = -32602

MAX_PAGES = 1000
"""Pages of one list; a server that sends more of them never ends."""


class Request(Generic[T]):
    """A request that can be sent any number of times; one for a task may be answered when that is over only.

    `becomes_task`: it is not to be sent where there are no tasks. `follows`: it is answered with the next change of a
    task, of those that have this number.
    """

    __slots__ = ("becomes_task", "follows", "method", "params", "read", "until_over")

    def __init__(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        read: Callable[[bytes], T],
        until_over: bool = False,
        becomes_task: bool = False,
        follows: int | None = None,
    ) -> None:
        self.method = method
        self.params = params
        self.read = read
        self.until_over = until_over
        self.becomes_task = becomes_task
        self.follows = follows

    def checked(self, era: str, capabilities: Mapping[str, Any], options: RequestOptions) -> RequestOptions:
        """The options that a task is asked for with, of a server that declares these capabilities."""
        if era == "modern":
            return {**options, "task": True}  # the engine knows whether both sides declare the extension
        declared: Any = capabilities
        for name in ("tasks", "requests", "tools", "call"):
            declared = declared.get(name) if isinstance(declared, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if declared is None:
            raise UnsupportedError(
                f'"{self.method}" was not sent: the server does not declare the capability "tasks.requests.tools.call"'
            )
        return options


class AsyncSender:
    """Base of asynchronous clients: sends requests."""

    async def _do(self, request: Request[T], options: RequestOptions) -> T:
        raise NotImplementedError

    def _number(self) -> int:
        """A number to follow a task by, of which there is no other; any, where there are no tasks."""
        return 0

    def _leave(self, number: int) -> None:
        """No longer follows a task by this number."""


class Sender:
    """Base of synchronous clients: sends requests."""

    def _do(self, request: Request[T], options: RequestOptions) -> T:
        raise NotImplementedError

    def _number(self) -> int:
        """A number to follow a task by, of which there is no other; any, where there are no tasks."""
        return 0

    def _leave(self, number: int) -> None:
        """No longer follows a task by this number."""


class Listing(Generic[D]):
    """One of the lists that come in pages."""

    def __init__(self, method: str, member: str, key: str, cls: Callable[[dict[str, Any]], D]) -> None:
        self.method = method
        self.member = member
        self.key = key
        """The member that tells its entries apart."""
        self.cls = cls

    def page(self, cursor: str | None) -> Request[Page[D]]:
        """Asks for one page."""
        return Request(self.method, None if cursor is None else {"cursor": cursor}, self._read)

    def _read(self, answer: bytes) -> Page[D]:
        page = decode(answer)
        entries: Any = page.get(self.member)
        if not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):  # pyright: ignore[reportUnknownVariableType]
            raise PeerMisbehavedError(f"the result of {self.method} has no array of {self.member}")
        return Page([self.cls(entry) for entry in cast("list[dict[str, Any]]", entries)], page)


class Pages(Generic[D]):
    """Follows the pages of one list. A cursor that the server refuses may be of a page that was kept, and of a list
    that is another one now: then all pages are asked for once more from the first."""

    def __init__(self, listing: Listing[D]) -> None:
        self.listing = listing
        self.cursor: str | None = None
        self._seen = set[str]()
        self._given = set[str]()
        self._anew = False

    def request(self) -> Request[Page[D]]:
        """Asks for the page whose turn it is."""
        return self.listing.page(self.cursor)

    def begins_anew(self, error: RpcError) -> bool:
        """Returns True, once, when the list is to be asked for from its first page, because the server refused the
        cursor."""
        if self.cursor is None or self._anew or error.code != INVALID_PARAMS:
            return False
        self.cursor, self._anew = None, True
        self._seen.clear()
        return True

    def unknown(self, page: Page[D]) -> list[D]:
        """The entries without those that were given before the list began anew."""
        listing, entries = self.listing, page[0]
        names = [entry.get(listing.key) for entry in page.raw[listing.member]]
        if self._anew:
            known = [isinstance(name, str) and name in self._given for name in names]
            return [entry for entry, is_known in zip(entries, known, strict=True) if not is_known]
        self._given.update(name for name in names if isinstance(name, str))
        return list(entries)

    def goes_on(self, page: Page[D]) -> bool:
        """Returns True when there is another page; raises when the list runs in circles, or on and on."""
        self.cursor = page[1]
        if self.cursor is None:
            return False
        method = self.listing.method
        if not self.cursor and self.cursor in self._seen:
            # An empty cursor is one like any other, but one that comes again is the end of a server that has none.
            return False
        if self.cursor in self._seen:
            raise PeerMisbehavedError(f"{method} never ends: the cursor {json.dumps(self.cursor)} came twice")
        self._seen.add(self.cursor)
        if len(self._seen) >= MAX_PAGES:
            raise PeerMisbehavedError(f"{method} never ends: there are more than {MAX_PAGES} pages")
        return True


TOOLS = Listing("tools/list", "tools", "name", Tool)
RESOURCES = Listing("resources/list", "resources", "uri", Resource)
RESOURCE_TEMPLATES = Listing("resources/templates/list", "resourceTemplates", "uriTemplate", ResourceTemplate)
PROMPTS = Listing("prompts/list", "prompts", "name", Prompt)


def _nothing(_: bytes) -> None:
    return None


def ping() -> Request[None]:
    """A sign of life."""
    return Request("ping", None, _nothing)


@contextmanager
def reading(uri: str | Resource) -> Generator[Request[ReadResourceResult]]:
    """Reads the contents of a resource; makes the error that there is none a `ResourceNotFoundError`, whatever its
    code."""
    where = _uri("read_resource", uri)
    try:
        yield Request("resources/read", {"uri": where}, ReadResourceResult.from_wire)
    except RpcError as error:
        known_as_not_found(error)
        raise


def _uri(what: str, uri: str | Resource) -> str:
    where = uri.uri if isinstance(uri, Resource) else uri
    if not isinstance(cast("object", where), str):
        raise MisuseError(f"{what}: uri: expected a string, got {checks.shown(where)}")
    return where


def subscribe(uri: str | Resource, begins: bool) -> Request[None]:
    """Asks to be told of a resource's changes, or no longer."""
    word = "subscribe" if begins else "unsubscribe"
    return Request(f"resources/{word}", {"uri": _uri(word, uri)}, _nothing)


def get_prompt(name: str, arguments: Mapping[str, Any] | None) -> Request[GetPromptResult]:
    """A prompt with its arguments filled in."""
    checks.text("get_prompt: name", name)
    params: dict[str, Any] = {"name": name}
    if arguments is not None:
        checks.mapping("get_prompt: arguments", arguments)
        encode_params("get_prompt", {"arguments": arguments})  # which names the one that is no JSON
        params["arguments"] = {key: _text(value) for key, value in arguments.items() if value is not None}
    return Request("prompts/get", params, GetPromptResult.from_wire)


def _text(value: Any) -> str:
    """An argument as text: that of a JSON string without its quotes, else the JSON."""
    text = encode(value)
    return cast(str, msgspec.json.decode(text)) if text.startswith(b'"') else text.decode()


def complete(
    ref: str | Prompt | ResourceTemplate | Mapping[str, Any],
    argument: str,
    value: str,
    context: Mapping[str, str] | None,
) -> Request[Completion]:
    """Returns the request for values of an argument of a prompt or a variable of a template."""
    reference: Mapping[str, Any]
    if isinstance(ref, Prompt):
        reference = {"type": "ref/prompt", "name": ref.name}
    elif isinstance(ref, ResourceTemplate):
        reference = {"type": "ref/resource", "uri": ref.uri_template}
    elif isinstance(ref, str):
        reference = {"type": "ref/resource", "uri": ref} if "{" in ref else {"type": "ref/prompt", "name": ref}
    elif isinstance(ref, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may not check types
        reference = ref
    else:
        raise MisuseError(f"complete: expected a prompt's name or a URI template, got {ref!r}")
    checks.text("complete: argument", argument)
    checks.text("complete: value", value)
    if context is not None:
        checks.mapping("complete: context", context)
    params: dict[str, Any] = {"ref": reference, "argument": {"name": argument, "value": value}}
    if context:
        params["context"] = {"arguments": context}
    return Request("completion/complete", params, Completion.from_wire)


def set_log_level(level: str) -> Request[None]:
    """The least severe log messages wanted."""
    return Request("logging/setLevel", {"level": level}, _nothing)


def call_params(name: str, arguments: Mapping[str, Any] | None, meta: Mapping[str, Any] | None) -> bytes:
    """The parameters of tools/call. `MisuseError` naming what the protocol does not allow there."""
    params = called_with("call_tool", name, arguments)
    if meta is not None:
        checks.mapping("call_tool: meta", meta)
        params["_meta"] = meta
    return encode_params("call_tool", params)


def called_with(what: str, name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """A tool's name and its arguments."""
    if type(name) is not str or type(arguments) is not dict:  # what it is nearly always costs no more than this
        checks.text(f"{what}: name", name)
        if arguments is not None:
            checks.mapping(f"{what}: arguments", arguments)
    return {"name": name, "arguments": {} if arguments is None else arguments}
