"""The server: what it offers, served over standard input and output, HTTP, or another web framework."""

from __future__ import annotations

import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import msgspec

from .. import _core
from ..bridge.host import NO_STATE, Host, OnError
from ..bridge.threads import Threads
from ..call.middleware import Around, Builtin, wrap
from ..errors import ClosedError, MisuseError
from ..json import checks
from ..json.deprecation import warn_options
from ..json.options import options_text, switched
from ..model.identity import caller
from .context import Context
from .engine import Engine
from .extension import Extension
from .options import HttpOptions, ServerOptions
from .registration import Offer

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .asgi import Application
    from .lifespan import Life, Lifespan
    from .running import Ending

A = TypeVar("A", bound=Around[Context])

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of an HTTP request body taken in, unless `max_message_bytes` says otherwise."""

CLOSING = 2.0
"""Seconds in which the engine closes a port that it has served."""


def _declared(settings: Mapping[str, Any]) -> Iterator[str]:
    """The extensions that the options declare by themselves."""
    capabilities: Any = settings.get("capabilities")
    if isinstance(capabilities, Mapping):
        extensions: Any = cast("Mapping[str, Any]", capabilities).get("extensions")
        if isinstance(extensions, Mapping):
            yield from cast("Mapping[str, Any]", extensions)
    if settings.get("tasks") is not None:
        yield "io.modelcontextprotocol/tasks"


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
        self._host = Host(True, Context, checks.called("on_error", on_error))
        self._threads = self._host.threads = Threads(max_threads)
        self._body_limit = int(options.get("max_message_bytes") or BODY_LIMIT)
        settings: dict[str, Any] = {"name": self.name, "version": self.version, **options}
        switched(settings)
        if settings.get("auth") is not None:
            from . import auth

            settings["auth"] = auth.settings(self._host, settings["auth"])
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

    def _lend(self) -> object | None:
        return self._engine.lend()

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
