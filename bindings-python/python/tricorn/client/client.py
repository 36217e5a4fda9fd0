"""The clients: `connect` and `AsyncClient` for asyncio, `Client` with the same methods for everything else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from .. import _core
from ..bridge.host import Host
from ..bridge.local_server import LocalServer
from ..call.context import RequestContext
from ..call.middleware import wrap_all
from ..call.options import CacheMode, OnProgress, RawRequestOptions, RequestOptions
from ..call.request_options import (
    joined,
    notified,
    progress_of,
    request_options,
    with_meta,
    written,
)
from ..errors import ClosedError, Error, MisuseError
from ..json.decoding import decode
from ..json.deprecation import deprecated
from ..json.options import options_text
from ..model.content import Implementation, member
from ..model.definitions import Resource
from ..model.results import CallToolResult
from ..model.trace import TraceLike
from .connection import Connection
from .features import AsyncFeatures
from .handlers import RootLike, hear, hears_lists, offer, root_list
from .listening import AsyncListening, Known, Wanted, wanted
from .options import ClientOptions
from .requests import Request, call_params
from .settings import Given, Target, introduce, resolve

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..errors.auth_step import AuthStep

T = TypeVar("T")


def connect(target: Target, **options: Unpack[ClientOptions]) -> AsyncClient:
    """A client of `target`: `async with connect("https://example.com/mcp") as client: ...`, or `await connect(...)`.

    Errors: `TransportError` when the server cannot be reached, `UnsupportedError` when no revision is common.
    """
    introduce(options, sys._getframe(1).f_globals)
    return AsyncClient(target, **options)


class AsyncClient(Connection, AsyncFeatures):
    """A connection to one server, for asyncio. It belongs to no task: `close` works from anywhere."""

    def __init__(self, target: Target, **options: Unpack[ClientOptions]) -> None:
        introduce(options, sys._getframe(1).f_globals)
        given = Given("client", options, ClientOptions)
        which = given.settings.pop("server", None)
        self._prepare(
            Host(False, RequestContext, given.on_error), [target] if isinstance(target, LocalServer) else [], given
        )
        source = self._host.source(self._event)
        text = given.text(self._host)
        if isinstance(target, LocalServer):
            core = _core.Client.in_memory(self._host.bridge, source, target._core, text)
        else:
            where = resolve(target, which, "on_stderr" in self._callbacks)
            core = _core.Client(self._host.bridge, source, options_text(where), text)
        self._offer(core, given)

    def _prepare(self, host: Host, peers: Iterable[LocalServer], given: Given) -> None:
        self._begin(host, peers)
        self._callbacks = given.callbacks
        self._trace = given.trace
        self._info: dict[str, Any] | None = None

    def _offer(self, core: _core.Client, given: Given) -> None:
        self._core = core
        self._has_roots = offer(core, self._host, given.questions)
        wrap_all(core, self._host, given.middleware)
        if hears_lists(given.callbacks):
            core.hear_changes()

    @property
    def _native(self) -> _core.Client:
        return self._core

    def _opened(self, agreed: dict[str, Any]) -> None:
        self._info = agreed

    # -- what was agreed

    @property
    def _agreed(self) -> dict[str, Any]:
        if self._info is None:
            raise MisuseError("not connected: use `async with`, or `await client.connect()` first")
        return self._info

    @property
    def protocol_version(self) -> str:
        """The protocol revision agreed on."""
        return cast(str, self._agreed["protocolVersion"])

    @property
    def era(self) -> str:
        """`"legacy"` (with a handshake) or `"modern"` (stateless)."""
        return cast(str, self._agreed["era"])

    @property
    def transport(self) -> Literal["stdio", "http", "memory"]:
        """The transport to the server; `"memory"` for a server of this process."""
        return cast(Literal["stdio", "http", "memory"], self._agreed["transport"])

    @property
    def server_info(self) -> Implementation | None:
        """The name and version that the server gives for itself; no proof of anything."""
        info = self._agreed.get("serverInfo")
        return member("serverInfo", info, Implementation)

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities of the server."""
        return self._agreed.get("capabilities") or {}

    @property
    def instructions(self) -> str | None:
        """Instructions of the server for the model."""
        return self._agreed.get("instructions")

    @property
    def initialize_result(self) -> dict[str, Any]:
        """The server's answer when the connection was opened, as it came, `_meta` and unknown members included.

        The result of `initialize`, in modern revisions that of `server/discover`.
        """
        return cast("dict[str, Any]", self._agreed["initializeResult"])

    @property
    def session_id(self) -> str | None:
        """The session of a legacy HTTP connection as it is now, which changes when the server loses it.

        None: there is none, or the client is closed.
        """
        return self._core.session_id() if self._agreed else None

    # -- requests

    @deprecated("MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration")
    def set_roots(self, roots: Iterable[RootLike]) -> None:
        """The folders and files that the server may work on from now on; it is told. Needs `roots=[...]` at first."""
        if not self._has_roots and self._info is not None:
            raise MisuseError('set_roots: connect with the option "roots", a list, which may be empty')
        self._core.set_roots(root_list(roots).decode())
        self._has_roots = True

    @deprecated("MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration")
    def roots_changed(self) -> None:
        """Tells the server that what `roots`, a function, gives has changed. `set_roots` tells it by itself.

        In modern revisions there is nothing to tell: a server asks for roots whenever it needs them. `MisuseError` for
        a client that was connected without `roots`.
        """
        self.notify("notifications/roots/list_changed")

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | UnsetType | None = UNSET,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        idempotent: bool | None = False,
        task: float | bool | None = False,
        meta: Mapping[str, Any] | None = None,
        cache: CacheMode | None = None,
        trace_context: TraceLike | None = None,
    ) -> CallToolResult:
        """Calls a tool. A tool that fails is a result with `is_error`, not an exception.

        `timeout` is in seconds without progress (default: the client's `request_timeout`; None or 0: no limit),
        `max_timeout` with. `on_progress` is called on the event loop. Cancelling the task cancels the call.
        `idempotent`: after a lost session or answer it may be sent again. `task` runs it as a task of the server, which
        keeps it for so many seconds (True: as long as it likes), and waits for the result. `cache` changes nothing: of
        calls nothing is kept. `trace_context` is the trace that it belongs to.
        """
        start = self._start(
            "tools/call",
            call_params(name, arguments, meta),
            request_options(
                timeout, max_timeout, on_progress, idempotent, task, cache=cache, trace_context=trace_context
            ),
        )
        progress = None if on_progress is None else progress_of({"on_progress": on_progress}, self._host)
        return CallToolResult.from_wire(await self._host.wait(start, progress))

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[RawRequestOptions]
    ) -> dict[str, Any]:
        """Any request by name; the result object as it is on the wire."""
        answer = await self._wait(method, params, options)
        return cast("dict[str, Any]", decode(answer))

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Iterable[str | Resource] = (),
        tasks: Iterable[str | Known] = (),
        extensions: Mapping[str, Wanted] | None = None,
    ) -> AsyncListening:
        """Listens to changes at the server, in every revision, until the block is left.

            async with client.listen(tools=True, uris=["notes://today"]) as changes:
                async for change in changes:
                    match change:
                        case ToolsListChanged():
                            ...
                        case ResourceUpdated(uri):
                            ...

        `tools`, `prompts`, `resources`: that their list has changed; templates belong to the resources. `uris`: that
        one of these resources has changed, or a part of one. `tasks`: how these are, by id or as handles (the option
        `tasks`; in 2025-11-25 where the server tells of them). `honoured` of what is entered says which of that the
        server tells of. A client may listen 1,000 times at once. `extensions`: members
        of the filter that belong to extensions that this client declares, each True, or the keys of what is wanted;
        older revisions cannot choose, and tell everything. Entering raises `UnsupportedError`, naming what the
        server does not declare to tell of, and `MisuseError` when nothing is asked for; nothing was sent then.
        """
        return AsyncListening(self, wanted(tools, prompts, resources, uris, extensions, tasks))

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification."""
        self._core.notify(method, notified(method, params))

    def metrics(self) -> dict[str, Any]:
        """Gauges: requests in flight, queued messages."""
        return cast("dict[str, Any]", msgspec.json.decode(self._core.metrics()))

    def auth_trace(self) -> list[AuthStep]:
        """Returns the steps of the last logins (asked, answered, decided), oldest first: 128 at most, without secrets.

        Also after a `connect` that failed, whose error has it as `auth_trace`. The clients of a group share it. Empty
        without the option `auth`.
        """
        from ..errors.auth_step import AuthStep

        return msgspec.json.decode(self._core.auth_trace(), type=list[AuthStep])

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Error):
            error.auth_trace = tuple(self.auth_trace())

    async def _do(self, request: Request[T], options: RequestOptions) -> T:
        if request.becomes_task:
            options = request.checked(self.era, self.capabilities, options)
        return request.read(
            await self._wait(request.method, request.params, options, request.until_over, request.follows)
        )

    def _number(self) -> int:
        return self._host.number()

    def _leave(self, number: int) -> None:
        self._core.end_listening(number)

    async def _wait(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        options: RequestOptions | RawRequestOptions,
        until_over: bool = False,
        follows: int | None = None,
    ) -> bytes:
        start = self._start(method, with_meta(method, params, options), written(method, options, until_over, follows))
        return await self._host.wait(start, progress_of(options, self._host))

    def _start(self, method: str, params: bytes | None, options: str) -> Callable[[int], None]:
        self._check()
        core = self._core
        if self._trace is not None:
            options = joined(options, self._trace, self._host)
        return lambda op: core.request(op, method, params, options)

    def _check(self) -> None:
        if self._info is None or self._closing is not None:
            self._refuse()

    def _refuse(self) -> None:
        if self._closing is not None:
            raise ClosedError("this client is closed")
        raise MisuseError("not connected: use `async with`, or `await client.connect()` first")

    def _event(self, name: str, params: bytes) -> None:
        if name == "reopened":
            if self._info is not None:
                self._info = {"transport": self.transport, **decode(params)}
        elif self._callbacks and (name != "closed" or self._closing is None):
            hear(self._host, self._callbacks, name, decode(params))

    def __repr__(self) -> str:
        state = "closed" if self._closing else "new" if self._info is None else self.protocol_version
        return f"<{type(self).__name__} {state}>"
