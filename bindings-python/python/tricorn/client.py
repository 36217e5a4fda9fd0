"""The clients: `connect` and `AsyncClient` for asyncio, `Client` with the same methods for everything else."""

from __future__ import annotations

import asyncio
import json
import math
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

import msgspec
from msgspec import UNSET, UnsetType

from . import _core
from .content import CallToolResult, Implementation, Progress, Tool
from .errors import ClosedError, MisuseError, PeerMisbehavedError
from .host import Host
from .server import Identity, Server, caller
from .tool import encode

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

Target = str | Server | Mapping[str, Any] | Sequence[str] | os.PathLike[str]
"""A URL, a command line, a server of this process, `{"url": ...}`, `{"command": ..., "args": ...}`, a list of
arguments, the path of a host's `mcp.json`, or what such a file holds, `{"mcpServers": {...}}`."""

OnProgress = Callable[[Progress], object]

MAX_PAGES = 1000
"""Pages of one list; a server that sends more of them never ends."""


class ClientOptions(Identity, total=False):
    """Options of a client; times in seconds."""

    name: str
    """What the server is told; the name of the package, or the file, that makes the client."""
    version: str
    """That package's version."""
    revision: str | None
    """Speak this protocol revision only, such as `"2025-11-25"`; by default the newest both know."""
    request_timeout: float | None
    """Without answer or progress; 60. None or 0: no limit."""
    probe_timeout: float
    """For finding out which revisions an old server speaks; 5."""
    max_message_bytes: int
    """Longest message accepted, in bytes; 4 MiB."""
    max_nesting: int
    """Deepest JSON accepted; 128."""
    max_in_flight: int
    """Requests awaited at once, further ones wait their turn; 256."""
    headers: Mapping[str, str]
    """HTTP headers sent with every request; none."""
    shutdown_grace: float
    """How long a child process may take to end by itself; 2."""
    capabilities: Mapping[str, Any]
    """What the server is told this client can do, such as `{"sampling": {}}`; nothing."""
    server: str
    """Which server of an `mcp.json` with several."""
    on_notification: Callable[[str, dict[str, Any]], object]
    """Called with method and parameters of every notification from the server.

    This and the other callbacks run on the event loop, those of a `Client` in a thread of the library's own, where any
    `Client` raises `MisuseError`. They must not block.
    """
    on_stderr: Callable[[str], object]
    """Called with every line a child process writes to standard error, which otherwise goes to this process's.

    An entry of an `mcp.json`, or a dictionary, that says where its `stderr` goes is left alone.
    """
    on_close: Callable[[str], object]
    """Called with the reason when the connection ended, but not by `close`."""


class RequestOptions(TypedDict, total=False):
    """Options of one request; times in seconds."""

    timeout: float | None
    """Without answer or progress; the client's `request_timeout`. None or 0: no limit."""
    max_timeout: float | None
    """With progress, too; None or 0: no limit, as when not given."""
    on_progress: OnProgress | None


def connect(target: Target, **options: Unpack[ClientOptions]) -> AsyncClient:
    """A client of `target`: `async with connect("https://example.com/mcp") as client: ...`, or `await connect(...)`.

    Errors: `TransportError` when the server cannot be reached, `UnsupportedError` when no revision is common.
    """
    introduce(options, sys._getframe(1).f_globals)
    return AsyncClient(target, **options)


def introduce(options: ClientOptions, module: Mapping[str, Any]) -> None:
    """Fills in name and version of the program that `module` belongs to."""
    if "name" not in options or "version" not in options:
        name, version = caller(module, "version" not in options)
        options.setdefault("name", name)
        options.setdefault("version", version)


class AsyncClient:
    """A connection to one server, for asyncio. It belongs to no task: `close` works from anywhere."""

    def __init__(self, target: Target, **options: Unpack[ClientOptions]) -> None:
        introduce(options, sys._getframe(1).f_globals)
        settings: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
        if "request_timeout" in options:
            settings["request_timeout"] = limit(options["request_timeout"]) or 0
        which = settings.pop("server", None)
        self._on_notification: Callable[[str, dict[str, Any]], object] | None = settings.pop("on_notification", None)
        self._on_stderr: Callable[[str], object] | None = settings.pop("on_stderr", None)
        self._on_close: Callable[[str], object] | None = settings.pop("on_close", None)
        self._host = Host()
        self._peer = target if isinstance(target, Server) else None
        self._info: dict[str, Any] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._user: object = None
        self._lent: object = None
        source = self._host.source(self._event)
        text = encode(settings).decode()
        if isinstance(target, Server):
            self._core = _core.Client.in_memory(self._host.bridge, source, target._core, text)
        else:
            where = resolve(target, which, self._on_stderr is not None)
            self._core = _core.Client(self._host.bridge, source, encode(where).decode(), text)

    # -- life

    async def connect(self) -> Self:
        """Starts or reaches the server and agrees on a protocol revision."""
        if self._info is not None or self._closing is not None:
            raise MisuseError("this client was connected before; make a new one")
        self._user = self._host.attach()
        try:
            if self._peer is not None:
                self._lent = self._peer._host.lend()
            self._info = cast("dict[str, Any]", msgspec.json.decode(await self._host.wait(self._core.connect)))
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """Ends the connection, and the child process if there is one; waiting calls raise `ClosedError`."""
        loop, here = self._host.loop, asyncio.get_running_loop()
        if loop is None:
            self._host.bridge.close()
            return
        if loop is not here:
            if loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.close(), loop))
                return
            # That loop was stopped or closed under the client: nothing there would bring this to its end.
            self._user = self._host.attach()
            self._closing = None
        if self._closing is None:
            self._closing = here.create_task(self._shut())
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        try:
            await self._host.wait(self._core.close)
        finally:
            if self._peer is not None:
                self._peer._host.detach(self._lent)
            self._host.detach(self._user)
            self._host.bridge.close()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.connect().__await__()

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
        """How the server is reached; `"memory"` for a server of this process."""
        return cast(Literal["stdio", "http", "memory"], self._agreed["transport"])

    @property
    def server_info(self) -> Implementation | None:
        """What the server calls itself; no proof of anything."""
        info = self._agreed.get("serverInfo")
        return None if info is None else msgspec.convert(info, Implementation)

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the server offers."""
        return self._agreed.get("capabilities") or {}

    @property
    def instructions(self) -> str | None:
        """What the server wants the model to know."""
        return self._agreed.get("instructions")

    @property
    def session_id(self) -> str | None:
        """The session of a legacy HTTP connection, as it was when connecting."""
        return self._agreed.get("sessionId")

    # -- requests

    async def list_tools(self, **options: Unpack[RequestOptions]) -> list[Tool]:
        """All tools, from as many pages as there are; the options hold for each page."""
        tools, cursor = await self.list_tools_page(**options)
        seen = set[str]()
        while cursor is not None:
            check_cursor(cursor, seen)
            more, cursor = await self.list_tools_page(cursor, **options)
            tools += more
        return tools

    async def list_tools_page(
        self, cursor: str | None = None, **options: Unpack[RequestOptions]
    ) -> tuple[list[Tool], str | None]:
        """One page of tools and the cursor of the next, None after the last."""
        return read_page(await self._wait("tools/list", cursor_params(cursor), options))

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | UnsetType | None = UNSET,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Calls a tool. A tool that fails is a result with `is_error`, not an exception.

        `timeout` is in seconds without progress (default: the client's `request_timeout`; None or 0: no limit),
        `max_timeout` with. `on_progress` is called on the event loop. Cancelling the task cancels the call.
        """
        start = self._start(
            "tools/call", call_params(name, arguments, meta), request_options(timeout, max_timeout, on_progress)
        )
        progress = None if on_progress is None else progress_sink(on_progress)
        return CallToolResult.from_wire(await self._host.wait(start, progress))

    async def ping(self, **options: Unpack[RequestOptions]) -> None:
        """Asks for a sign of life."""
        await self._wait("ping", None, options)

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[RequestOptions]
    ) -> dict[str, Any]:
        """Any request by name; the result object as it is on the wire."""
        answer = await self._wait(method, None if params is None else encode(params), options)
        return cast("dict[str, Any]", msgspec.json.decode(answer))

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification."""
        self._core.notify(method, None if params is None else encode(params))

    def metrics(self) -> dict[str, Any]:
        """Gauges: requests in flight, queued messages."""
        return cast("dict[str, Any]", msgspec.json.decode(self._core.metrics()))

    async def _wait(self, method: str, params: bytes | None, options: RequestOptions) -> bytes:
        on_progress = options.get("on_progress")
        progress = None if on_progress is None else progress_sink(on_progress)
        return await self._host.wait(self._start(method, params, request_options(**options)), progress)

    def _start(self, method: str, params: bytes | None, options: str) -> Callable[[int], None]:
        if self._info is None or self._closing is not None:
            self._refuse()
        core = self._core
        return lambda op: core.request(op, method, params, options)

    def _refuse(self) -> None:
        if self._closing is not None:
            raise ClosedError("this client is closed")
        raise MisuseError("not connected: use `async with`, or `await client.connect()` first")

    def _event(self, name: str, params: bytes) -> None:
        if name == "notification" and self._on_notification is not None:
            value = msgspec.json.decode(params)
            self._on_notification(value["method"], value.get("params") or {})
        elif name == "stderr" and self._on_stderr is not None:
            self._on_stderr(msgspec.json.decode(params)["line"])
        elif name == "closed" and self._on_close is not None and self._closing is None:
            self._on_close(msgspec.json.decode(params)["reason"])

    def __repr__(self) -> str:
        state = "closed" if self._closing else "new" if self._info is None else self.protocol_version
        return f"<{type(self).__name__} {state}>"


# -- shared by both clients


def cursor_params(cursor: str | None) -> bytes | None:
    """The parameters of a list request."""
    return None if cursor is None else encode({"cursor": cursor})


def read_page(answer: bytes) -> tuple[list[Tool], str | None]:
    """The tools of one page, and the cursor of the next."""
    page = msgspec.json.decode(answer)
    tools = page.get("tools")
    if not isinstance(tools, list):
        raise PeerMisbehavedError("the result of tools/list has no array of tools")
    return [Tool(tool) for tool in cast("list[dict[str, Any]]", tools)], page.get("nextCursor")


def check_cursor(cursor: str, seen: set[str]) -> None:
    """Raises when a list runs in circles, or on and on; `cursor` is what the next page is asked with."""
    if cursor in seen:
        raise PeerMisbehavedError(f"tools/list never ends: the cursor {json.dumps(cursor)} came twice")
    seen.add(cursor)
    if len(seen) >= MAX_PAGES:
        raise PeerMisbehavedError(f"tools/list never ends: there are more than {MAX_PAGES} pages")


def call_params(name: str, arguments: Mapping[str, Any] | None, meta: Mapping[str, Any] | None) -> bytes:
    """The parameters of tools/call."""
    params: dict[str, Any] = {"name": name, "arguments": {} if arguments is None else arguments}
    if meta is not None:
        params["_meta"] = meta
    return encode(params)


def limit(seconds: float | None) -> float | None:
    """A time limit as the engine takes it: None for no limit, however that was said."""
    return None if seconds is None or seconds == 0 or seconds == math.inf else seconds


def request_options(
    timeout: float | UnsetType | None = UNSET, max_timeout: float | None = None, on_progress: OnProgress | None = None
) -> str:
    """The options of one request for the engine; empty when there are none."""
    options: dict[str, Any] = {}
    if timeout is not UNSET:
        options["timeout"] = limit(timeout)
    if limit(max_timeout) is not None:
        options["max_timeout"] = max_timeout
    if on_progress is not None:
        options["progress"] = True
    return json.dumps(options) if options else ""


def progress_sink(sink: OnProgress) -> Callable[[bytes], None]:
    """What decodes progress for a callback."""
    decoder = msgspec.json.Decoder(Progress)
    return lambda params: cast(None, sink(decoder.decode(params)))


def resolve(target: Target, which: str | None, heard: bool) -> dict[str, Any]:
    """What the engine shall connect to, for everything but a server of this process.

    `which` names a server of a configuration; `heard`: somebody listens to the program's stderr.
    """
    where: dict[str, Any]
    if isinstance(target, os.PathLike):
        path = os.fsdecode(target)
        if not path.isprintable() and any("\ud800" <= c <= "\udfff" for c in path):
            raise MisuseError(f"cannot connect to {target!r}: the path is not UTF-8")
        where = {"file": path}
    elif isinstance(target, str):
        where = {"text": target}
    elif isinstance(target, Mapping):
        where = dict(target)
    elif isinstance(target, Server) or not target:
        raise MisuseError(f"cannot connect to {target!r}")
    else:
        command, *arguments = target
        where = {"command": command, "args": arguments}
    if which is not None:
        where["server"] = which
    if heard and "url" not in where:
        where.setdefault("stderr", "event")
    return where
