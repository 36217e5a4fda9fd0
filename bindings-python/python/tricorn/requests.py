"""Requests of both clients to a server: each one's method and parameters, and the reading of its answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from . import checks
from .completion import Completion
from .content import Page, Progress, Tool
from .decoding import decode, decoded
from .encoding import encode, encode_params
from .errors import MisuseError, PeerMisbehavedError, RpcError, UnsupportedError, known_as_not_found
from .handler import options_text
from .host import Host
from .prompts import GetPromptResult, Prompt
from .resources import ReadResourceResult, Resource, ResourceTemplate
from .trace import TraceLike, told

if TYPE_CHECKING:
    from .question import Question

T = TypeVar("T")
D = TypeVar("D")

OnProgress = Callable[[Progress], object]

CacheMode = Literal["default", "refresh", "bypass"]
"""Use of the client's cache by a request."""

INVALID_PARAMS = -32602

MAX_PAGES = 1000
"""Pages of one list; a server that sends more of them never ends."""


class RequestOptions(TypedDict, total=False):
    """Options of one request; times in seconds."""

    timeout: float | None
    """Without answer or progress; the client's `request_timeout`. None or 0: no limit."""
    max_timeout: float | None
    """With progress, too; None or 0: no limit, as when not given."""
    idempotent: bool | None
    """It may be sent again although nobody knows whether it was carried out: after a lost session. Listing, reading and
    the like always may; no."""
    on_progress: OnProgress | None
    """Called with the progress that the peer reports; nobody."""
    meta: Mapping[str, Any] | None
    """The request's `_meta`; none."""
    task: float | bool | None
    """Runs it as a task of the peer, where it can, and waits for its result: the seconds that the peer keeps it, or
    True for as long as it likes; no. In 2026-07-28 the server decides."""
    cache: CacheMode | None
    """Use of the answers that a client keeps. `"refresh"` asks the server and keeps its answer,
    `"bypass"` asks and leaves what is kept as it is; `"default"`."""
    trace_context: TraceLike | None
    """The trace that it belongs to; what the client's `trace_context` says, and of what a handler asks that of its
    call. What `meta` says comes first."""


class RawRequestOptions(RequestOptions, total=False):
    """Options of a request by name."""

    any_result: bool | None
    """Takes a result of a type (`resultType`) that this library does not know, such as an extension's, as it is; no: it
    is a `PeerMisbehavedError`."""


_OPTIONS = frozenset((*RequestOptions.__annotations__, *RawRequestOptions.__annotations__))


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


def limit(seconds: float | None) -> float | None:
    """A time limit as the engine takes it: None for no limit, however that was said."""
    return None if seconds is None or seconds == 0 or seconds == math.inf else seconds


def request_options(
    timeout: float | UnsetType | None = UNSET,
    max_timeout: float | None = None,
    on_progress: OnProgress | None = None,
    idempotent: bool | None = False,
    task: float | bool | None = False,
    until_over: bool = False,
    cache: CacheMode | None = None,
    any_result: bool | None = False,
    trace_context: TraceLike | None = None,
    follows: int | None = None,
) -> str:
    """The options of one request for the engine; empty when there are none."""
    options: dict[str, Any] = {}
    if timeout is not UNSET:
        options["timeout"] = limit(timeout)
    if limit(max_timeout) is not None:
        options["max_timeout"] = max_timeout
    if on_progress is not None:
        options["progress"] = True
    if idempotent:
        options["idempotent"] = True
    if task is True:
        options["task"] = {}
    elif task is not False and task is not None:
        checks.finite("task", task)
        options["task"] = {"ttl": round(task * 1000)}
    if until_over:
        options["wait"] = True
    if cache is not None:
        options["cache"] = cache
    if any_result:
        options["any_result"] = True
    if trace_context is not None:
        options["trace_context"] = told(trace_context)
    if follows is not None:
        options["follow"] = follows
    return options_text(options) if options else ""


def written(
    method: str,
    options: RequestOptions | RawRequestOptions,
    until_over: bool = False,
    follows: int | None = None,
) -> str:
    """The options of one request for the engine, as `request_options`; an unknown one is refused."""
    if not options and not until_over and follows is None:
        return ""
    if unknown := options.keys() - _OPTIONS:
        raise TypeError(f"{method}: no option {min(unknown)!r}; there are {', '.join(RequestOptions.__annotations__)}")
    return request_options(
        options.get("timeout", UNSET),
        options.get("max_timeout"),
        options.get("on_progress"),
        options.get("idempotent", False),
        options.get("task", False),
        until_over,
        options.get("cache"),
        cast("RawRequestOptions", options).get("any_result", False),
        options.get("trace_context"),
        follows,
    )


Asked = tuple[str, msgspec.Raw]
"""A question's method and its parameters, which are JSON text already."""


def as_asked(questions: Sequence[Question[Any]], options: RequestOptions) -> list[Asked]:
    """Several questions as they are sent. `MisuseError` naming what is no JSON, as for each of them alone."""
    texts = [(one.method, with_meta(one.method, one.params, options)) for one in questions]
    return [(method, msgspec.Raw(text or b"{}")) for method, text in texts]


def together_with(settings: str, questions: Sequence[Asked], judged: bool = False) -> str:
    """The options of one of several questions, of which none is sent when one cannot be.

    `judged`: a library judges what its answer holds, and the engine does not.
    """
    if judged:
        given: dict[str, Any] = json.loads(settings) if settings else {}
        settings = options_text({**given, "judged": True})
    if len(questions) < 2:
        return settings
    members: dict[str, Any] = json.loads(settings) if settings else {}
    return options_text({**members, "together": questions})


def with_meta(method: str, params: Mapping[str, Any] | None, options: RequestOptions) -> bytes | None:
    """The parameters of a request as JSON text, with the `_meta` that its options give."""
    if params is not None:
        checks.mapping(f"{method}: parameters", params)
    meta = options.get("meta")
    if meta is not None:
        checks.mapping(f"{method}: meta", meta)
        own: Any = {} if params is None or params.get("_meta") is None else params["_meta"]
        checks.mapping(f"{method}: _meta", own)
        params = {**(params or {}), "_meta": {**own, **meta}}
    return None if params is None else encode_params(method, params)


def notified(method: str, params: Mapping[str, Any] | None) -> bytes | None:
    """The parameters of a notification as JSON text."""
    checks.text("notify: method", method)
    if params is None:
        return None
    checks.mapping(f"{method}: parameters", params)
    return encode_params(method, params)


def progress_of(options: RequestOptions, host: Host) -> Callable[[bytes], None] | None:
    """Returns the receiver of the progress that the options ask for, on the event loop of `host`."""
    callback = options.get("on_progress")
    if callback is None:
        return None
    return progress_sink(lambda progress: host.tell("on_progress", callback, progress))


def progress_sink(sink: OnProgress) -> Callable[[bytes], None]:
    """Returns the function that decodes progress for a callback."""
    decoder = msgspec.json.Decoder(Progress)

    def hear(params: bytes) -> None:
        try:
            progress = decoded(decoder.decode, params)
        except (msgspec.ValidationError, PeerMisbehavedError):  # the request goes on all the same
            return None
        return cast(None, sink(progress))

    return hear
