"""The server: what it offers, served over standard input and output, HTTP, or another web framework."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar, cast, overload

import msgspec

from . import _core, checks
from .content import Icon
from .context import Context
from .deprecation import warn_options
from .engine import Engine
from .errors import ClosedError, MisuseError
from .extension import Extension
from .handler import options_text
from .host import NO_STATE, Host, OnError
from .middleware import Around, Builtin, wrap
from .offer import Offer
from .resources import CacheHints
from .store_options import StoreOptions
from .threads import Threads

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .asgi import Application
    from .document_store import DocumentStore, DocumentStoreOptions
    from .lifespan import Life, Lifespan
    from .running import Ending
    from .server_auth import ServerAuth

A = TypeVar("A", bound=Around[Context])

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of an HTTP request body taken in, unless `max_message_bytes` says otherwise."""

CLOSING = 2.0
"""Seconds in which the engine closes a port that it has served."""


class Identity(TypedDict, total=False):
    """The identity that a server or client presents to the other side; what is not given is not told."""

    title: str | None
    """The name to show to people."""
    description: str | None
    """A description of its purpose, in a sentence or two."""
    website_url: str | None
    """The URL of a page to read more."""
    icons: Sequence[Icon | Mapping[str, Any]] | None
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
    """Lifetime of a task when its request does not say; 3600."""
    max_task_ttl: float
    """The longest that a task lives, whatever its request says; 86400."""
    task_poll_interval: float
    """Interval at which a client should look; 1."""


class ServerCache(CacheHints, total=False):
    """Lifetime and audience of a server's answers in caches: `ttl` and `scope` for everything, others for a part.

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
    """Contents of resources, where neither the resource nor the result says it."""


class ServerOptions(Identity, total=False):
    """Options of a server; sizes in bytes, every limit has a safe default."""

    instructions: str | None
    """Instructions for the model about this server; none."""
    revision: str | None
    """Speaks only this revision, such as `"2025-11-25"`, or only those with handshakes (`"legacy"`) or without
    (`"modern"`); all of them."""
    auth: ServerAuth | None
    """Validation of access tokens over HTTP, such as `ServerAuth(issuer=..., resource=...)`; it asks for none."""
    page_size: int | None
    """Entries on one page of a list; 250."""
    max_message_bytes: int | None
    """Longest message accepted; 4 MiB."""
    max_nesting: int | None
    """Deepest JSON accepted; 128."""
    max_decoded_bytes: int | None
    """Memory that a message's values may take once decoded, in bytes and by estimate; 64 MiB."""
    max_memory: int | None
    """Bytes that the whole process keeps for its peers at most: long bodies and what is in them, events for clients
    that lose a stream, notifications for slow readers. One client has at most as much as is left for others; beyond
    that new work is refused (503). A quarter of the memory of the machine or its control group. The server that is
    made last decides."""
    max_in_flight: int | None
    """Requests of one connection worked on at once; 256."""
    max_queued_notifications: int | None
    """Notifications waiting for a slow subscriber; 256."""
    max_listeners: int | None
    """Listen streams (`subscriptions/listen`) of one connection; 64. Over HTTP each is a request of its own."""
    ping_interval: float | None
    """Seconds without a message of a legacy client after which it is asked for a sign of life; 0, which is never."""
    ping_timeout: float | None
    """Seconds after which a client that does not answer that is taken for lost, and its session ends; 20."""
    capabilities: Sequence[Literal["completions", "prompts", "resources"]] | Mapping[str, Mapping[str, Any]] | None
    """Capabilities declared to clients besides those of what is registered; none. Names: though there is none of it
    yet, because what a client was not told of as it connected it never asks for. A mapping can also declare
    `experimental` and capabilities unknown to this library: `{"prompts": {}, "experimental": {"ours": {}}}`."""
    tasks: TaskOptions | bool | None
    """Runs tool calls as tasks, where client and tool want that: in 2025-11-25 (experimental), and in 2026-07-28 by the
    extension `io.modelcontextprotocol/tasks`; no."""
    request_state_keys: Sequence[str] | None
    """Secrets of at least 32 bytes that seal what a request of revision 2026-07-28 has to remember between two rounds
    of questions (`requestState`); a secret of this process alone. The first one seals, all of them open, so that they
    can be changed one after the other. Servers that answer the same clients need the same. An empty list is refused: it
    is a setting that has got lost."""
    request_state_ttl: float | None
    """Seconds for which such a state holds: as long as a user may take to answer; 600."""
    max_request_state_bytes: int | None
    """The longest such state, which holds the answers so far; 16 KiB."""
    store: str | StoreOptions | DocumentStore | DocumentStoreOptions | None
    """The store that makes one server of several processes, which need the same name and the same store: a URL such as
    `redis://host:6379`, `StoreOptions`, or a `DocumentStore` of your own, alone or as
    `{"documents": store, "prefix": "shop"}`; that of the environment variable `TRICORN_STORE`, and without one each
    process is a server of its own."""
    cache: ServerCache | None
    """Lifetime and audience of answers in clients' caches, such as `{"ttl": 60, "tools": {"scope": "public"}}`; they
    are not to be cached."""


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

    path: str | None
    """The path of the endpoint on the port that is listened on; `/mcp`."""
    cert: str | None
    """The certificate of the server that listens on a port, and those between it and its authority, as PEM or as
    the path of a file with that, which is read again when it changes. Clients speak https then. None."""
    key: str | None
    """The private key of `cert`, in the same way; it may be in `cert`."""
    access_log: bool | None
    """A line on standard error for each request to a port, when its answer is over, in the Common Log Format with the
    milliseconds that it took; without queries, headers and bodies. No."""
    allowed_hosts: Sequence[str] | None
    """Values of the Host header accepted; by default the loopback names of the port."""
    allowed_origins: Sequence[str] | None
    """Values of the Origin header accepted; by default those of the loopback names."""
    max_sessions: int | None
    """Legacy sessions kept; 10,000, then an idle one of whoever has the most goes."""
    session_idle_timeout: float | None
    """After which an idle legacy session goes; 1800."""
    drain_timeout: float | None
    """Time in which requests are answered after SIGTERM or `drain`, on a port or socket: no connection is taken then,
    and streams that wait for news end. Calls that are left are cancelled; 5, and 0 cancels at once."""
    keep_alive_interval: float | None
    """Between two keep-alive comments on a silent stream; 15."""
    max_events: int | None
    """Events of one session kept for clients that lose a stream; 256, and 0 for none."""
    max_event_bytes: int | None
    """Bytes of them; 1 MiB."""
    sse_retry: float | None
    """After which a client that lost a stream asks for the rest; 1."""
    stateless: bool | None
    """Serves clients of the handshake revisions without sessions, so that any of several processes can
    answer each request; what needs a session then fails with an error that says so. No."""
    sse: bool | None
    """Serves the oldest transport, HTTP+SSE, too; no.

    Deprecated: MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP.
    """
    sse_path: str | None
    """The path of its stream on the port that is listened on; `/sse`.

    Deprecated: MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP.
    """
    sse_message_path: str | None
    """The path to which its messages are posted, on the port that is listened on; `/messages`.

    Deprecated: MCP 2025-03-26 deprecates HTTP+SSE (SEP-2596): use Streamable HTTP.
    """
    max_connections: int | None
    """Sockets at once, and stateless requests at work at once; 4096."""
    trusted_proxies: Sequence[str] | None
    """Proxies whose X-Forwarded-For or Forwarded says where a request comes from, by which sockets, streams and
    sessions are counted: addresses, or networks as `10.0.0.0/8`; none, so that all behind a proxy count as one."""


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
        self._host = Host(True, checks.called("on_error", on_error))
        self._threads = self._host.threads = Threads(max_threads)
        self._body_limit = int(options.get("max_message_bytes") or BODY_LIMIT)
        settings: dict[str, Any] = {"name": self.name, "version": self.version, **options}
        switched(settings)
        if settings.get("auth") is not None:
            from . import server_auth

            settings["auth"] = server_auth.settings(self._host, settings["auth"])
        if not isinstance(settings.get("store"), (str, type(None))):
            from . import document_store

            settings["store"] = document_store.place(self._host, settings["store"])
        source = self._host.source(self._event)
        self._own_engine = Engine(self._host, source, options_text(settings))
        self._life: Life | None = None
        if lifespan is not None:
            if state is not None:
                raise MisuseError("state: the lifespan gives it")
            from .lifespan import Life

            self._life = Life(self._host, self, lifespan)
            self._engine.set_lifespan(*self._life.numbers())
            self._host.revive = self._life.revived
        elif state is not None:
            self._host.state = state
        self._host.extensions.update(_declared(settings))
        if isinstance(extensions, (str, bytes)) or not isinstance(cast(object, extensions), Iterable):
            raise MisuseError(f"extensions: expected a list of extensions, got {checks.shown(extensions)}")
        for extension in extensions:
            self.add_extension(extension)
        self._closed = False
        self._listening: dict[int, Callable[[str], object]] = {}
        self._exchanges: dict[int, Callable[[str, dict[str, Any]], None]] = {}

    @property
    def state(self) -> Any:
        """The value of `ctx.state`: the one that was given, or that the lifespan has yielded; None before it has
        started.

        It can be set where there is no lifespan, such as in a test.
        """
        state = self._host.state
        return None if state is NO_STATE else state

    @state.setter
    def state(self, value: Any) -> None:
        if self._life is not None:
            raise MisuseError("state: the lifespan gives it")
        self._host.state = value

    @property
    def _engine(self) -> Engine:
        engine = self._own_engine
        if engine.is_parents:
            engine.renew()
            self._listening, self._exchanges = {}, {}
            if self._life is not None:
                self._life.renew()
            if self._closed:
                engine.core.close()
        return engine

    def __reduce__(self) -> Any:
        raise TypeError("a Server cannot be copied or pickled: make one where it is needed, such as in each process")

    # -- serving

    async def serve_stdio(self) -> None:
        """Serves standard input and output until end of file; answers of running handlers are still written."""
        await self._serve_stdio(None)

    async def _serve_stdio(self, ending: Ending | None) -> None:
        from .running import check_streams, give_back_streams, pass_on_printed, patient_log

        check_streams()
        user, core = self._engine.attach(), self._core

        def start(op: int) -> None:
            core.serve_stdio(op)
            if ending is not None:
                # Nothing else is served here: what runs for the engine is over when the input is.
                ending.watch_input(lambda: not self._closed and msgspec.json.decode(core.metrics())["bridge_ops"] == 0)

        try:
            pass_on_printed()
            with patient_log():
                await self._host.wait(start)
        finally:
            try:
                await self._release(user)
            finally:
                give_back_streams()

    async def serve_http(
        self,
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        on_listening: Callable[[str], None] | None = None,
        **options: Unpack[HttpOptions],
    ) -> None:
        """Serves HTTP until cancelled or closed. Port 0 takes any free one; `on_listening` is told the URL.

        The host `unix:/run/mcp.sock` is a Unix socket, which has no port: its file has the permissions that the umask
        leaves, and its clients count as 127.0.0.1.
        """
        warn_options(options)
        await self._serve_http(host, port, on_listening, _http_options("serve_http", options))

    async def _serve_http(
        self, host: str, port: int, on_listening: Callable[[str], None] | None, options: HttpOptions
    ) -> None:
        from .running import patient_log

        _check_host(host, port)
        settings = options_text({"host": host, "port": port, **options})
        user = self._engine.attach()
        numbers: list[int] = []

        def start(op: int) -> None:
            numbers.append(op)
            if on_listening is not None:
                self._listening[op] = on_listening
            self._core.serve_http(settings, op)

        try:
            with patient_log():
                await self._host.wait(start)
        finally:
            try:
                for op in numbers:
                    self._listening.pop(op, None)
                    await self._host.ended(op, CLOSING)
            finally:
                await self._release(user)

    @asynccontextmanager
    async def listen(
        self, host: str = "127.0.0.1", port: int = 8000, **options: Unpack[HttpOptions]
    ) -> AsyncGenerator[str]:
        """Serves HTTP within a block, and gives the URL: `async with app.listen(port=0) as url: ...`.

        What keeps it from serving is raised where the block begins: a port that is taken, a wrong option, a lifespan
        that fails. At its end nothing new is accepted, running handlers are cancelled, and the lifespan is left. When
        the server is closed, or fails, earlier, the block goes on; a failure is raised at its end. Port 0 takes any
        free one.
        """
        import asyncio

        warn_options(options)
        loop = asyncio.get_running_loop()
        started: asyncio.Future[str] = loop.create_future()

        def listening(url: str) -> None:
            if not started.done():
                started.set_result(url)

        serving = loop.create_task(
            self._serve_http(host, port, listening, _http_options("listen", options)), name="listen"
        )
        try:
            await asyncio.wait((serving, started), return_when=asyncio.FIRST_COMPLETED)
            if not started.done():
                await serving
                raise ClosedError("the server was closed before it listened")
            yield started.result()
        finally:
            if not serving.done():
                serving.cancel()
                await asyncio.wait((serving,))
        if not serving.cancelled():
            serving.result()

    def run(self, http: str | int | bool | None = None, **options: Unpack[HttpOptions]) -> None:
        """Serves until the client or the user ends it: standard input and output, unless HTTP is asked for.

        HTTP is asked for by `http` (`True`, a port, `"host:port"`, `"unix:/run/mcp.sock"`) or on the command line by
        `--http [HOST:PORT|unix:PATH]`; `ready <url>` then appears on standard error. Ctrl-C ends the process with
        status 130, SIGHUP with 129; SIGTERM drains and returns. A handler that the program has for Ctrl-C or SIGTERM is
        called then, and decides that instead; one for SIGHUP is left alone, and what is ignored is ignored. After
        either, and after the end of input, other threads keep the process for a second only. On Windows Ctrl-Break
        is SIGTERM.
        """
        import asyncio

        from .running import ends

        warn_options(options)
        address = _address(http if http is not None else _asked(sys.argv[1:]))
        _run_options(options, address)
        _refuse_loop()
        with ends(self._core.close, lambda: self._core.drain(0)) as ending:
            try:
                asyncio.run(self._run(address, options, ending))
            except KeyboardInterrupt:
                raise SystemExit(130) from None
        if ending.error is not None:
            raise ending.error
        if ending.status:
            raise SystemExit(ending.status)

    async def _run(self, address: tuple[str, int] | None, options: HttpOptions, ending: Ending) -> None:
        try:
            with ending.on_loop():
                if address is None:
                    await self._serve_stdio(ending)
                    if not self._closed:
                        ending.watch()
                else:
                    given = options.get("drain_timeout")
                    # Another type is refused when it serves.
                    patience = given if isinstance(given, (int, float)) else 5.0
                    ending.patience = min(float(patience), threading.TIMEOUT_MAX / 2)
                    await self._serve_http(*address, _ready, options)
        finally:
            ending.served()

    def asgi(self, **options: Unpack[HttpOptions]) -> Application:
        """An ASGI application: mount it in any framework, at any path, with no lifespan needed.

        The framework decides the path; `allowed_hosts` should name the public host.
        """
        from .asgi import Application

        warn_options(options)
        return Application(self, _http_options("asgi", options))

    async def _release(self, user: object) -> None:
        try:
            if self._life is not None and self._host.is_last(user):
                await self._life.release()
        finally:
            self._host.detach(user)

    def drain(self) -> None:
        """Closes gently, from any thread; `run` and its like return when that is over.

        Over HTTP no connection is taken any more, `/readyz` says 503, streams that wait for news end, and requests have
        `drain_timeout` to be answered. All the rest is closed after that. SIGTERM does the same in `run`.
        """
        self._closed = True
        self._core.drain(0)

    def close(self) -> None:
        """Stops serving everywhere, from any thread: nothing new is accepted, running handlers are cancelled."""
        self._closed = True
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
        wrap(self._engine, self._host, middleware)
        return middleware

    def metrics(self) -> dict[str, Any]:
        """Gauges: connections, sessions, calls in flight, listen streams (`listeners`), queued messages, `memory`
        (bytes that the process keeps for its peers), `timing` when that middleware is there.
        """
        metrics: dict[str, Any] = msgspec.json.decode(self._core.metrics())
        return metrics

    def _event(self, name: str, params: bytes) -> None:
        if name in ("http_head", "http_chunk"):
            part = msgspec.json.decode(params)
            sink = self._exchanges.get(part["op"])
            if sink is not None:
                sink(name, part)
        elif name == "listening":
            told = msgspec.json.decode(params)
            if (listening := self._listening.pop(told["op"], None)) is not None:
                listening(told["url"])
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
    if isinstance(http, str) and _is_socket(http):
        return http, 8000
    host, _, port = str(http).rpartition(":")
    try:
        return host.strip("[]") or "127.0.0.1", int(port)
    except ValueError:
        raise MisuseError(f"http: expected a port, host:port or unix:PATH, got {http!r}") from None


def _is_socket(host: str) -> bool:
    return host[:5].lower() == "unix:" and "/" in host


def _check_host(host: object, port: object) -> None:
    """`MisuseError` for what `run` takes in one argument, with what to write where they are two."""
    if isinstance(host, int):
        raise MisuseError(f"host: expected a name or an address, got {host}: a port is given as port={host}")
    if not isinstance(host, str) or _is_socket(host):
        return
    if "/" in host:
        raise MisuseError(f"host: expected a name or an address, got the URL {host!r}")
    name, _, number = host.rpartition(":")
    if number.isdigit() and name and (":" not in name or name.endswith("]")):
        why = 'expected a name or an address without a port, such as "0.0.0.0"'
        fix = 'the port is an option of its own: "port"'
        raise MisuseError(f'HTTP option "host": {why}, got {checks.shown(host)} ({fix})')


def _refuse_loop() -> None:
    """`MisuseError` where an event loop runs already, as in a notebook or an `async def`."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise MisuseError(
        "run: an event loop is running here already: `await app.serve_stdio()`, `await app.serve_http()`, or "
        "`async with app.listen() as url`"
    )


def _http_options(what: str, options: HttpOptions) -> HttpOptions:
    """`MisuseError` for what is no option of HTTP, by its name."""
    if unknown := options.keys() - HttpOptions.__annotations__.keys():
        if unknown & {"host", "port"}:
            name = sorted(unknown)[0]
            raise MisuseError(f"{what}: option {name!r} means nothing here: whoever mounts the server listens")
        checks.known_options("HTTP options", options, HttpOptions)
    return options


def _run_options(given: HttpOptions, address: tuple[str, int] | None) -> None:
    """`MisuseError` for what `run` does not know, or what means nothing for the way it serves, with what to write."""
    options = cast("dict[str, Any]", given)
    if foreign := [name for name in ("transport", "host", "port") if name in options]:
        where = address or ("127.0.0.1", 8000)
        host, port = options.get("host", where[0]), options.get("port", where[1])
        spelled = f"app.run({port!r})" if host == "127.0.0.1" else f'app.run("{host}:{port}")'
        if options.get("transport") == "stdio":
            raise MisuseError('run: unknown option "transport": standard input and output are what app.run() serves')
        raise MisuseError(f'run: unknown option "{foreign[0]}": HTTP is asked for by {spelled}')
    _http_options("run", given)
    if address is None and (named := next(iter(options), None)):
        raise MisuseError(
            f'run: option "{named}" is of HTTP, and standard input and output are served: '
            f"app.run(8000, {named}={options[named]!r}) serves HTTP"
        )


def _ready(url: str) -> None:
    _core.write_stderr(f"ready {url}\n")
