"""The server: what it offers, served over standard input and output, HTTP, or another web framework."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast, overload

import msgspec

from . import _core
from .content import Icon
from .context import Context
from .deprecation import warn_options
from .errors import MisuseError
from .extension import Extension
from .handler import options_text
from .handlers import called
from .host import Host, OnError
from .lifespan import Life, Lifespan
from .middleware import Around, Builtin, wrap
from .offer import Offer
from .resources import CacheHints
from .threads import Threads

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .asgi import Application
    from .server_auth import ServerAuth

A = TypeVar("A", bound=Around[Context])

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of an HTTP request body taken in, unless `max_message_bytes` says otherwise."""


class Identity(TypedDict, total=False):
    """How a server or client presents itself to the other side; what is not given is not told."""

    title: str
    """The name to show to people."""
    description: str
    """What it is for, in a sentence or two."""
    website_url: str
    """Where people can read more."""
    icons: Sequence[Icon | Mapping[str, Any]]
    """Images for user interfaces, such as `Icon("https://example.com/i.png", "image/png", ["48x48"])`."""


class TaskOptions(TypedDict, total=False):
    """Bounds of the tasks that a server, or a client, runs; times in seconds."""

    max_tasks: int
    """Kept of all sessions; 1,000. The longest finished make room."""
    max_session_tasks: int
    """Kept of one session; 250."""
    max_task_bytes: int
    """Bytes of all results kept; 16 MiB."""
    task_ttl: float
    """How long a task lives when its request does not say; 3600."""
    max_task_ttl: float
    """The longest that a task lives, whatever its request says; 86400."""
    task_poll_interval: float
    """How often whoever waits should look; 1."""


class ServerCache(CacheHints, total=False):
    """How long what a server answers keeps, and for whom: `ttl` and `scope` for everything, others for a part.

    What is read, and a list of which a function gives a part, may depend on who asks: they are private unless `scope`
    is given for them.
    """

    discover: CacheHints
    """`server/discover`."""
    tools: CacheHints
    """The list of tools."""
    prompts: CacheHints
    """The list of prompts."""
    resources: CacheHints
    """The list of resources."""
    resource_templates: CacheHints
    """The list of resource templates."""
    read: CacheHints
    """What is read, where neither the resource nor the result says it."""


class ServerOptions(Identity, total=False):
    """Options of a server; sizes in bytes, every limit has a safe default."""

    instructions: str
    """What the model should know about this server; nothing."""
    revision: str
    """Speaks only this revision, such as `"2025-11-25"`, or only those with handshakes (`"legacy"`) or without
    (`"modern"`); all of them."""
    auth: ServerAuth
    """Whose access tokens it takes over HTTP, such as `ServerAuth(issuer=..., resource=...)`; it asks for none."""
    page_size: int
    """Entries on one page of a list; 250."""
    max_message_bytes: int
    """Longest message accepted; 4 MiB."""
    max_nesting: int
    """Deepest JSON accepted; 128."""
    max_in_flight: int
    """Requests of one connection worked on at once; 256."""
    max_queued_notifications: int
    """Notifications waiting for a slow subscriber; 256."""
    max_listeners: int
    """Listen streams (`subscriptions/listen`) of one connection; 64. Over HTTP each is a request of its own."""
    ping_interval: float
    """Seconds without a message of a legacy client after which it is asked for a sign of life; 0, which is never."""
    ping_timeout: float
    """Seconds after which a client that does not answer that is taken for lost, and its session ends; 20."""
    capabilities: Sequence[Literal["completions", "prompts", "resources"]] | Mapping[str, Mapping[str, Any]]
    """What is declared to clients besides what there is; nothing. Names: though there is none of it yet, because what a
    client was not told of as it connected it never asks for. A mapping can also declare `experimental` and capabilities
    that this library knows nothing of: `{"prompts": {}, "experimental": {"ours": {}}}`."""
    tasks: TaskOptions | bool
    """Runs tool calls as tasks, where client and tool want that: in 2025-11-25 (experimental), and in 2026-07-28 by the
    extension `io.modelcontextprotocol/tasks`; no."""
    request_state_keys: Sequence[str]
    """Secrets of at least 32 bytes that seal what a request of revision 2026-07-28 has to remember between two rounds
    of questions (`requestState`); a secret of this process alone. The first one seals, all of them open, so that they
    can be changed one after the other. Servers that answer the same clients need the same. An empty list is refused: it
    is a setting that has got lost."""
    request_state_ttl: float
    """Seconds for which such a state holds: as long as a user may take to answer; 600."""
    max_request_state_bytes: int
    """The longest such state, which holds the answers so far; 16 KiB."""
    cache: ServerCache
    """How long clients may keep what is answered, and for whom, such as `{"ttl": 60, "tools": {"scope": "public"}}`;
    not at all."""


def switched(settings: dict[str, Any]) -> None:
    """Writes the option `tasks` as the engine takes it, where it is just switched on or off."""
    if isinstance(settings.get("tasks"), bool):
        settings["tasks"] = {} if settings["tasks"] else None


def _declared(settings: Mapping[str, Any]) -> Iterator[str]:
    """The extensions that the options declare by themselves."""
    capabilities: Any = settings.get("capabilities")
    if isinstance(capabilities, Mapping):
        extensions: Any = cast("Mapping[str, Any]", capabilities).get("extensions")
        if isinstance(extensions, Mapping):
            yield from cast("Mapping[str, Any]", extensions)
    if settings.get("tasks") is not None:
        yield "io.modelcontextprotocol/tasks"


class HttpOptions(TypedDict, total=False):
    """Options of an HTTP endpoint; times in seconds."""

    path: str
    """Where the endpoint is when a port is listened on; `/mcp`."""
    allowed_hosts: Sequence[str]
    """Values of the Host header accepted; by default the loopback names of the port."""
    allowed_origins: Sequence[str]
    """Values of the Origin header accepted; by default those of the loopback names."""
    max_sessions: int
    """Legacy sessions kept; 10,000, then an idle one of whoever has the most goes."""
    session_idle_timeout: float
    """After which an idle legacy session goes; 1800."""
    keep_alive_interval: float
    """Between two keep-alive comments on a silent stream; 15."""
    max_events: int
    """Events of one session kept for clients that lose a stream; 256, and 0 for none."""
    max_event_bytes: int
    """Bytes of them; 1 MiB."""
    sse_retry: float
    """After which a client that lost a stream asks for the rest; 1."""
    sse: bool
    """Whether the oldest transport, HTTP+SSE, is served, too; no.

    Deprecated: MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP.
    """
    sse_path: str
    """Where its stream is when a port is listened on; `/sse`.

    Deprecated: MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP.
    """
    sse_message_path: str
    """Where its messages are posted when a port is listened on; `/messages`.

    Deprecated: MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP.
    """
    max_connections: int
    """Sockets at once, and stateless requests at work at once; 4096."""


class Server(Offer):
    """An MCP server.

        app = Server("demo")

        @app.tool
        def add(a: int, b: int) -> int:
            "Add two numbers."
            return a + b

        app.run()

    `name` and `version` default to those of the package, or the file, that calls this. `max_threads` bounds the
    worker threads for plain functions (32). `on_error(error, name)` hears of what handlers raise, other than
    `ToolError` and a protocol error of their own, in the thread of the handler, and of results that do not fit their
    output schema, as `MisuseError`; by default the logger `tricorn` gets it. The client only ever learns the type of
    such an exception. `name` is that of the tool or prompt, or a URI.

    `lifespan` is an asynchronous context manager function of the server. It is entered before the first request is
    answered, on any transport, and left after the last use, also on Ctrl-C and SIGTERM; what it yields is `ctx.state`
    of every handler:

        async def lifespan(server):
            async with connect_to_database() as database:
                yield AppState(database)

        app = Server("demo", lifespan=lifespan)

        @app.tool
        async def query(text: str, ctx: Context[AppState]) -> list[str]:
            return await ctx.state.database.query(text)

    When it fails, serving or connecting raises that exception. `state` is a value that needs neither beginning nor end.

    `extensions` of the protocol are off unless they are given here, or by `add_extension`.
    """

    def __init__(
        self,
        name: str | None = None,
        version: str | None = None,
        *,
        max_threads: int = 32,
        on_error: OnError | None = None,
        lifespan: Lifespan | None = None,
        state: Any = None,
        extensions: Iterable[Extension] = (),
        **options: Unpack[ServerOptions],
    ) -> None:
        super().__init__()
        own_name, own_version = caller(sys._getframe(1).f_globals, version is None)
        self.name = name or own_name
        self.version = version or own_version
        self._host = Host(True, called("on_error", on_error))
        self._threads = self._host.threads = Threads(max_threads)
        self._body_limit = int(options.get("max_message_bytes", BODY_LIMIT))
        settings: dict[str, Any] = {"name": self.name, "version": self.version, **options}
        switched(settings)
        if settings.get("auth") is not None:
            from . import server_auth

            settings["auth"] = server_auth.settings(self._host, settings["auth"])
        source = self._host.source(self._event)
        self._core = _core.Server(self._host.bridge, source, options_text(settings))
        self._life: Life | None = None
        if lifespan is not None:
            if state is not None:
                raise MisuseError("state: the lifespan gives it")
            self._life = Life(self._host, self, lifespan)
            self._core.set_lifespan(*self._life.numbers())
        elif state is not None:
            self._host.state = state
        self._host.extensions.update(_declared(settings))
        for extension in extensions:
            self.add_extension(extension)
        self._listening: list[Callable[[str], None]] = []
        self._exchanges: dict[int, Callable[[str, dict[str, Any]], None]] = {}

    # -- serving

    async def serve_stdio(self) -> None:
        """Serves standard input and output until end of file; answers of running handlers are still written."""
        user = self._host.attach()
        try:
            printed: object = sys.stdout
            if isinstance(printed, io.TextIOWrapper):
                # The engine sends what is printed from now on to standard error; let nothing of it wait in a buffer.
                printed.reconfigure(line_buffering=True)
            await self._host.wait(self._core.serve_stdio)
        finally:
            await self._release(user)

    async def serve_http(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        on_listening: Callable[[str], None] | None = None,
        **options: Unpack[HttpOptions],
    ) -> None:
        """Serves HTTP until cancelled or closed. Port 0 takes any free one; `on_listening` is told the URL."""
        warn_options(options)
        await self._serve_http(host, port, on_listening, options)

    async def _serve_http(
        self, host: str, port: int, on_listening: Callable[[str], None] | None, options: HttpOptions
    ) -> None:
        settings = options_text({"host": host, "port": port, **options})
        user = self._host.attach()
        if on_listening is not None:
            self._listening.append(on_listening)
        try:
            await self._host.wait(lambda op: self._core.serve_http(settings, op))
        finally:
            if on_listening is not None and on_listening in self._listening:
                self._listening.remove(on_listening)
            await self._release(user)

    def run(self, http: str | int | bool | None = None, **options: Unpack[HttpOptions]) -> None:
        """Serves until the client or the user ends it: standard input and output, unless HTTP is asked for.

        HTTP is asked for by `http` (`True`, a port, `"host:port"`) or on the command line by `--http [HOST:PORT]`;
        `ready <url>` then appears on standard error. Ctrl-C ends the process with status 130; SIGTERM closes and
        returns.
        """
        warn_options(options)
        address = _address(http if http is not None else _asked(sys.argv[1:]))
        try:
            asyncio.run(self._run(address, options))
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    async def _run(self, address: tuple[str, int] | None, options: HttpOptions) -> None:
        if threading.current_thread() is threading.main_thread() and os.name == "posix":
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.close)
        if address is None:
            await self.serve_stdio()
        else:
            await self._serve_http(*address, _ready, options)

    def asgi(self, **options: Unpack[HttpOptions]) -> Application:
        """An ASGI application: mount it in any framework, at any path, with no lifespan needed.

        The framework decides the path; `allowed_hosts` should name the public host.
        """
        from .asgi import Application

        warn_options(options)
        return Application(self, options)

    async def _release(self, user: object) -> None:
        try:
            if self._life is not None and self._host.is_last(user):
                await self._life.release()
        finally:
            self._host.detach(user)

    def close(self) -> None:
        """Stops serving everywhere, from any thread: nothing new is accepted, running handlers are cancelled."""
        self._core.close()

    # -- around requests

    @overload
    def middleware(self, middleware: A, /) -> A: ...

    @overload
    def middleware(self, middleware: Builtin, /) -> Builtin: ...

    def middleware(self, middleware: Any, /) -> Any:
        """Puts a function around every request that a handler answers, the first outermost: `@app.middleware`.

            @app.middleware
            async def patient(request: Request, context: Context, call_next: Next) -> Result:
                try:
                    return await asyncio.wait_for(call_next(request, context), 10)
                except asyncio.TimeoutError:
                    raise RpcError(-32603, "too slow") from None

        What it returns is the answer, a result object as it is on the wire. `call_next` may be called again, or not at
        all. An exception answers with an error as in handlers; of those of `call_next` nothing is hidden.
        `context.values` is shared with the handler. A plain function runs on the event loop and must not block. Built
        in are those of `tricorn.middleware`: `app.middleware(rate_limit(5))`.
        """
        wrap(self._core, self._host, middleware)
        return middleware

    def metrics(self) -> dict[str, Any]:
        """Gauges: connections, sessions, calls in flight, listen streams (`listeners`), queued messages, `timing` when
        that middleware is there.
        """
        metrics: dict[str, Any] = msgspec.json.decode(self._core.metrics())
        return metrics

    def _event(self, name: str, params: bytes) -> None:
        if name in ("http_head", "http_chunk"):
            part = msgspec.json.decode(params)
            sink = self._exchanges.get(part["op"])
            if sink is not None:
                sink(name, part)
        elif name == "listening" and self._listening:
            self._listening.pop(0)(msgspec.json.decode(params)["url"])
        elif name == "failed":
            failed = msgspec.json.decode(params)
            self._host.report(MisuseError(failed["message"]), failed["name"])

    def __repr__(self) -> str:
        return f"Server({self.name!r}, {self.version!r})"


def caller(module: Mapping[str, Any], version: bool) -> tuple[str, str]:
    """Name and version of the package, or else the file, that a module belongs to."""
    package = str(module.get("__package__") or module.get("__name__") or "").partition(".")[0]
    if package in ("", "__main__"):
        stem = os.path.splitext(os.path.basename(str(module.get("__file__") or "server")))[0]
        return stem, str(module.get("__version__", "0.0.0"))
    known = getattr(sys.modules.get(package), "__version__", None)
    if known is None and version:
        from importlib import metadata  # slow to import, so only for packages that do not say

        try:
            known = metadata.version(package)
        except metadata.PackageNotFoundError:
            known = None
    return package, str(known or "0.0.0")


def _asked(arguments: Sequence[str]) -> str | None:
    for place, argument in enumerate(arguments):
        if argument == "--http":
            value = "".join(arguments[place + 1 : place + 2])
            return "" if value.startswith("-") else value
        if argument.startswith("--http="):
            return argument.removeprefix("--http=")
    return None


def _address(http: str | int | bool | None) -> tuple[str, int] | None:
    if http is None or http is False:
        return None
    if http is True or http == "":
        return "127.0.0.1", 8000
    host, _, port = str(http).rpartition(":")
    try:
        return host.strip("[]") or "127.0.0.1", int(port)
    except ValueError:
        raise MisuseError(f"http: expected a port or host:port, got {http!r}") from None


def _ready(url: str) -> None:
    sys.stderr.write(f"ready {url}\n")
    sys.stderr.flush()
