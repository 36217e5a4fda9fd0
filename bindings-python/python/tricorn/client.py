"""The clients: `connect` and `AsyncClient` for asyncio, `Client` with the same methods for everything else."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from . import _core, checks
from .checks import called, known_options
from .connection import Connection
from .content import CallToolResult, Implementation, member
from .context import RequestContext
from .decoding import decode
from .deprecation import deprecated, warn_options
from .errors import ClosedError, Error, MisuseError
from .features import AsyncFeatures
from .handler import options_text
from .handlers import (
    CALLBACKS,
    QUESTIONS,
    Handlers,
    RootLike,
    hear,
    hears_lists,
    of_policy,
    offer,
    root_list,
)
from .host import Host, OnError
from .listening import AsyncListening, Known, Wanted, wanted
from .middleware import Around, Builtin, wrap_all
from .requests import (
    CacheMode,
    OnProgress,
    RawRequestOptions,
    Request,
    RequestOptions,
    call_params,
    limit,
    notified,
    progress_of,
    request_options,
    with_meta,
    written,
)
from .resources import Resource
from .server import Identity, Server, TaskOptions, caller, switched
from .trace import TraceLike, TraceSource, joined, source_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .cache_store import CacheStore
    from .client_auth import AuthStep, ClientAuth
    from .http_transport import HttpTransport, HttpxClient, HttpxTransport
    from .store_options import StoreOptions

T = TypeVar("T")
Target = str | Server | Mapping[str, Any] | Sequence[str] | os.PathLike[str]
"""A URL, a command line, a server of this process, `{"url": ...}`, `{"command": ..., "args": ...}`, a list of
arguments, the path of a host's `mcp.json`, what such a file holds, `{"mcpServers": {...}}`, or a cassette,
`"replay:FILE"` or `"replay:FILE?strict"`."""


class ClientCache(TypedDict, total=False):
    """Options of a client's cache of its server's answers, which keeps them as long as they say (2026-07-28)."""

    enabled: bool
    """Caches answers; True."""
    max_entries: int
    """Answers that are kept; 1,000. Those that were used longest ago make room."""
    max_bytes: int
    """Bytes of them; 16 MiB."""
    stale_on_error: bool
    """Gives the last answer when the server cannot be asked, although it is no longer fresh, with `tricorn/stale` in
    its `_meta`; no."""
    shared: bool
    """Keeps them together with other clients of this process that do: of one HTTP server, and private answers only
    under the same authorization; no."""
    scope: str
    """The authorization under which private answers are kept, such as a user's id, where that is not what the HTTP
    headers and the address say."""
    store: CacheStore | str | StoreOptions
    """Keeps them in a Redis or Valkey at this URL, or in a store of your own, which other processes may share: of
    HTTP servers, what is private only under the same authorization. What other servers say is kept in the client's
    memory."""


class SharedOptions(Identity, Handlers, total=False):
    """Options of a client, or of every client of a group; times in seconds."""

    name: str | None
    """The name that the server is told; that of the package, or the file, that makes the client."""
    version: str | None
    """That package's version."""
    revision: str | None
    """Speak this protocol revision only, such as `"2025-11-25"`; by default the newest both know."""
    request_timeout: float | None
    """Without answer or progress; 60. None or 0: no limit."""
    probe_timeout: float | None
    """For finding out which revisions an old server speaks; 5."""
    max_message_bytes: int | None
    """Longest message accepted, in bytes; 32 MiB."""
    max_nesting: int | None
    """Deepest JSON accepted; 128."""
    max_decoded_bytes: int | None
    """Memory that a message's values may take once decoded, in bytes and by estimate; 64 MiB."""
    max_memory: int | None
    """Bytes that the whole process keeps for its peers at most, such as long messages until they are read; a quarter of
    the memory of the machine or its control group. The last client or server that says it decides for all."""
    max_in_flight: int | None
    """Requests awaited at once, further ones wait their turn; 256."""
    headers: Mapping[str, str] | None
    """HTTP headers sent with every request; none."""
    proxy: str | None
    """The proxy for all that is asked over HTTP, logins included: a URL with `http://` or `socks5://`; empty for none.
    By default `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say it."""
    ca: str | None
    """Authorities whose certificates are trusted besides those of this machine, which `SSL_CERT_FILE`, `SSL_CERT_DIR`
    and `NODE_EXTRA_CA_CERTS` may name: PEM, or the path of a file with that; none."""
    cert: str | None
    """The client's own certificate: PEM, or the path of a file with that; none."""
    key: str | None
    """The private key that it belongs to: PEM, or the path of a file with that; by default it is in `cert`."""
    http_transport: HttpTransport | HttpxClient | HttpxTransport | None
    """Carries all HTTP of this client, logins included, in place of connections of its own: an `HttpTransport`, an
    `httpx.AsyncClient`, an `httpx.AsyncBaseTransport`, or a `tricorn.testing.ASGITransport`, for an application of this
    process. It stays open when the client is closed. `proxy`, `ca`, `cert` and `key` beside it are a `MisuseError`, and
    what it raises is a `TransportError`. Default: connections of its own."""
    auth: ClientAuth | bool | None
    """Authorization at a protected server, over HTTP; True, as `ClientAuth()`, finds out everything. No."""
    shutdown_grace: float | None
    """Seconds a child process has to end by itself; 2."""
    ping_interval: float | None
    """Seconds without a message of the server after which it is asked for a sign of life; 0, which is never."""
    ping_timeout: float | None
    """Seconds after which a server that does not answer that is taken for lost, and the connection ends; 20."""
    tasks: TaskOptions | bool | None
    """Runs `sampling` and `elicitation` as tasks, where the server wants that (2025-11-25, experimental). In 2026-07-28
    it declares the extension `io.modelcontextprotocol/tasks`: the server may answer calls of tools with tasks, which
    are followed to their end. No."""
    cache: ClientCache | bool | None
    """The cache of the server's answers, of those that say they may be kept. False: nothing."""
    extensions: Mapping[str, Mapping[str, Any]] | None
    """Extensions of the protocol to declare, each with its settings: `{"com.example/search": {}}`; none."""
    validate_output: bool | None
    """Checks a tool's structured content against the output schema that this client has listed; what does
    not fit is a `PeerMisbehavedError`; True."""
    record: str | None
    """Records everything that passes as a cassette, in this file, which is replaced; nothing. `"replay:FILE"` is a
    target that plays it."""
    redact: bool | None
    """Leaves secrets out of what is recorded: values of headers, of the target's environment and query, of `auth`, of
    members and variables that are named like secrets, and texts that look like them; True."""
    restart: bool | None
    """Restarts a program that has ended unasked, when it is needed, in revisions without sessions, at
    most five times within a minute; in others the client ends with it; True."""
    inherit_env: bool | Sequence[str] | None
    """The part of this program's environment that a started program gets, besides the `env` of its target: all of it
    (True), a short list of what programs need, in which no secret is (False), or that list and these names; True."""
    variables: Mapping[str, str] | None
    """Values of the placeholders of an `mcp.json`, by the text between their braces: `{"input:key": "..."}`; they
    come before the environment; nothing."""
    capabilities: Mapping[str, Any] | None
    """Further capabilities that the client declares, such as `{"experimental": {}}`; none."""
    trace_context: TraceSource | None
    """Called where a request is made, for the trace that it belongs to; None is no trace. Default: what the first of
    `middleware` says that has a method `trace_context`, such as `tricorn.otel.Telemetry`; else nothing."""
    middleware: Sequence[Around[RequestContext] | Builtin] | None
    """Middleware around every request that is sent, the first outermost; none. See `Server.middleware`."""
    on_error: OnError | None
    """Called with what a handler or a callback raised, and its name; by default the logger `tricorn` gets it."""


class ClientOptions(SharedOptions, total=False):
    """Options of a client; times in seconds."""

    server: str | None
    """The server to use of an `mcp.json` with several."""


def connect(target: Target, **options: Unpack[ClientOptions]) -> AsyncClient:
    """A client of `target`: `async with connect("https://example.com/mcp") as client: ...`, or `await connect(...)`.

    Errors: `TransportError` when the server cannot be reached, `UnsupportedError` when no revision is common.
    """
    introduce(options, sys._getframe(1).f_globals)
    return AsyncClient(target, **options)


def introduce(options: SharedOptions, module: Mapping[str, Any]) -> None:
    """Fills in name and version of the program that `module` belongs to."""
    if "name" not in options or "version" not in options:
        name, version = caller(module, "version" not in options)
        options.setdefault("name", name)
        options.setdefault("version", version)


class Given:
    """A client's options, sorted by who needs them."""

    def __init__(self, what: str, options: Mapping[str, Any], known: type) -> None:
        known_options(f"{what} options", options, known)
        self.settings: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
        if "request_timeout" in options:
            self.settings["request_timeout"] = limit(options["request_timeout"]) or 0
        switched(self.settings)
        take = self.settings.pop
        if (policy := take("policy", None)) is not None:
            self.settings = {**of_policy(policy), **self.settings}
            take = self.settings.pop
        warn_options(self.settings)
        self.auth: object = take("auth", None)
        self.http_transport: object = take("http_transport", None)
        self.callbacks = {name: called(name, take(name)) for name in CALLBACKS if name in self.settings}
        self.questions = {name: take(name) for name in QUESTIONS if name in self.settings}
        self.middleware: object = take("middleware", ())
        self.trace = source_of(called("trace_context", take("trace_context", None)), self.middleware)
        self.on_error: OnError | None = called("on_error", take("on_error", None))

    def text(self, host: Host) -> str:
        """The settings as the engine takes them; functions among them get their places in the table of `host`."""
        all_of_them: dict[str, Any] = {**self.settings}
        given: object = all_of_them.get("cache")
        if given is not None and not isinstance(given, bool):
            from .cache_store import kept

            all_of_them["cache"] = kept(host, given, ClientCache)
        if self.http_transport is not None:
            from .http_transport import place

            all_of_them["http_transport"] = place(host, self.http_transport)
        if self.auth:
            from .client_auth import settings

            all_of_them["auth"] = settings(host, self.auth)
        return options_text(all_of_them)

    def plus(self, what: str, more: Mapping[str, Any]) -> Given:
        """The same with other callbacks and answers in place."""
        added = Given(what, more, Handlers)
        both = Given(what, {}, Handlers)
        both.callbacks = {**self.callbacks, **added.callbacks}
        both.questions = {**self.questions, **added.questions}
        both.middleware, both.trace = self.middleware, self.trace
        return both


class AsyncClient(Connection, AsyncFeatures):
    """A connection to one server, for asyncio. It belongs to no task: `close` works from anywhere."""

    def __init__(self, target: Target, **options: Unpack[ClientOptions]) -> None:
        introduce(options, sys._getframe(1).f_globals)
        given = Given("client", options, ClientOptions)
        which = given.settings.pop("server", None)
        self._prepare(Host(False, given.on_error), [target] if isinstance(target, Server) else [], given)
        source = self._host.source(self._event)
        text = given.text(self._host)
        if isinstance(target, Server):
            core = _core.Client.in_memory(self._host.bridge, source, target._core, text)
        else:
            where = resolve(target, which, "on_stderr" in self._callbacks)
            core = _core.Client(self._host.bridge, source, options_text(where), text)
        self._offer(core, given)

    def _prepare(self, host: Host, peers: Iterable[Server], given: Given) -> None:
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
        from .client_auth import AuthStep

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


def _python(target: object) -> list[str] | None:
    """The words of a command that begins with a Python file which the system cannot run by itself: `./weather.py`."""
    words: list[str]
    if isinstance(target, str):
        # The engine says again what is wrong with it, for which UnicodeEncodeError has no words.
        with suppress(MisuseError, UnicodeEncodeError):
            words = [target] if os.path.isfile(target) else _core.split_command(target)
            return _run_by_python(words)
        return None
    if isinstance(target, os.PathLike):
        return _run_by_python([os.fsdecode(cast("os.PathLike[str]", target))])
    if isinstance(target, Sequence) and not isinstance(target, bytes):
        return _run_by_python([*cast("Sequence[str]", target)])
    return None


def _run_by_python(words: list[str]) -> list[str] | None:
    if not words or not os.path.normcase(words[0]).endswith(".py") or not os.path.isfile(words[0]):
        return None
    # On Windows every file counts as a program, and this is none.
    return None if sys.platform != "win32" and os.access(words[0], os.X_OK) else [sys.executable, *words]


def resolve(target: Target, which: str | None, heard: bool) -> dict[str, Any]:
    """Returns the target that the engine connects to, for everything but a server of this process.

    `which` names a server of a configuration; `heard`: somebody listens to the program's stderr.
    """
    where: dict[str, Any]
    if (program := _python(target)) is not None:
        target = program
    if isinstance(target, os.PathLike):
        path = os.fsdecode(target)
        if not path.isprintable() and any("\ud800" <= c <= "\udfff" for c in path):
            raise MisuseError(f"cannot connect to {target!r}: the path is not UTF-8")
        where = {"file": path}
    elif isinstance(target, str):
        where = {"text": target}
    elif isinstance(target, Mapping):
        where = dict(target)
        if "mcpServers" in where and not isinstance(where["mcpServers"], Mapping):
            raise MisuseError(f'target "mcpServers": expected an object, got {checks.type_of(where["mcpServers"])}')
    elif isinstance(target, Server) or not isinstance(target, Sequence) or isinstance(target, bytes) or not target:  # pyright: ignore[reportUnnecessaryIsInstance]
        got = "bytes" if isinstance(target, bytes) else repr(target)
        raise MisuseError(f"cannot connect to {got}: expected a URL, a path, a command line or an object")
    else:
        command, *arguments = target
        where = {"command": command, "args": arguments}
    if which is not None:
        where["server"] = which
    if heard and "url" not in where:
        where.setdefault("stderr", "event")
    return where
