"""The server as an ASGI application, for any web framework that speaks ASGI 3."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import quote

import msgspec

from ..bridge.host import AROUND, OF_PARENTS
from ..bridge.threads import log
from ..errors import Error, MisuseError
from ..json.options import options_text
from . import hosting

if TYPE_CHECKING:
    from .. import _core
    from .._core import HttpEndpoint
    from ..bridge.host import Host
    from .lifespan import Life
    from .options import HttpOptions

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


GRACE = 10.0
"""Seconds that running calls have to be answered when the program that has mounted the server is told to end."""

LOOK = 0.2
"""Seconds between two looks at whether uvicorn was told to end."""


class MountedServer(Protocol):
    """The server that an application serves."""

    _host: Host
    _life: Life | None
    _body_limit: int
    _exchanges: dict[int, Callable[[str, dict[str, Any]], None]]

    @property
    def _core(self) -> _core.Server:
        """The native server, which is another one in a forked child."""
        ...

    async def _release(self, user: object) -> None:
        """The counterpart of attaching to the event loop."""


class Application:
    """The ASGI application that `Server.asgi()` returns. It needs no lifespan: the first request finds the event loop.

    It ends with the program that has mounted it. When that is told to end by a signal it has a handler for, as uvicorn
    and hypercorn have, streams end at once, running calls have 10 seconds, and the server's own `lifespan` is left. So
    it is when the framework passes its lifespan on, and when the event loop cancels its tasks, as `asyncio.run` does.
    A program that ends in another way says `await application.close()`, or passes `application.lifespan` on:

        web = Starlette(routes=mcp.routes("/mcp"), lifespan=mcp.lifespan)

    Of a server with `auth` clients look for the protected-resource metadata from the root of the host. What is mounted
    at the root serves it, and so does `routes`; for what is mounted below in another way add `metadata`.
    """

    def __init__(self, server: MountedServer, options: HttpOptions) -> None:
        self._server = server
        self._options = options_text(options)
        self._core = server._core
        self._endpoint: HttpEndpoint | None = self._core.http(self._options)
        self._is_protected = self._endpoint.resource_metadata() is not None
        self._begin()

    def _begin(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._user: object = None
        self._ending: asyncio.Task[None] | None = None
        self._is_ending = False
        self._uvicorn: Any = None
        self._look: asyncio.TimerHandle | None = None

    @property
    def metadata(self) -> Metadata | None:
        """An ASGI application that serves the protected-resource metadata (RFC 9728), whatever path it is reached by.

        None of a server without `auth`.
        """
        raw = self._here().resource_metadata()
        return None if raw is None else Metadata(self, **msgspec.json.decode(raw))

    def routes(self, path: str = "/mcp") -> list[Any]:
        """The routes of Starlette and FastAPI that lead here, at `path` with and without a slash at its end.

        A `Mount` alone redirects clients from the one to the other, which those of hosted assistants do not follow:

            web = Starlette(routes=app.asgi().routes("/mcp"))
            web.routes.extend(app.asgi().routes("/mcp"))  # FastAPI

        Of a server with `auth` they include that of `metadata`.
        """
        from starlette.routing import Mount, Route

        path = "/" + path.strip("/")
        at_root: list[Any] = [Route(self.metadata.path, self.metadata)] if self.metadata else []
        if path == "/":
            return [*at_root, Mount("/", self)]
        return [*at_root, Route(path, self), Mount(path, self)]

    async def close(self, grace: float = 0) -> None:
        """Ends all sessions and streams, and the server's lifespan; a request after that begins anew.

        Running calls have `grace` seconds to be answered. Within the server's lifespan this waits for nothing.
        """
        loop, ending, life = asyncio.get_running_loop(), self._ending, self._server._life
        if life is not None and life.is_current:  # which has to be over before this is
            if not self._is_ending:
                self._host_ends(grace)
        elif ending is not None and ending.get_loop() is loop and ending is not asyncio.current_task():
            await asyncio.wait((ending,))
        elif self._loop is loop:
            await self._end(grace)

    async def _end(self, grace: float) -> None:
        endpoint, user = self._endpoint, self._user
        self._is_ending = True
        if self._look is not None:
            self._look.cancel()
        try:
            if endpoint is not None:
                await self._server._host.wait(lambda op: endpoint.shutdown(op, grace))
        finally:
            self._loop = self._endpoint = self._uvicorn = self._look = None
            self._is_ending = False
            await self._server._release(user)

    @asynccontextmanager
    async def lifespan(self, application: object = None) -> AsyncGenerator[None]:
        """A lifespan to pass on to the framework, which ends this with it: `Starlette(..., lifespan=mcp.lifespan)`."""
        del application
        try:
            yield
        finally:
            await self.close()

    def host_ends(self) -> None:
        """The program was told to end: called in the handler of a signal."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._host_ends)

    def _host_ends(self, grace: float = GRACE) -> None:
        if self._loop is None or self._ending is not None:
            return
        self._ending = task = self._loop.create_task(self._end(grace), name="ending")
        task.add_done_callback(self._has_ended)
        if self._uvicorn is not None:  # it goes on ending when its tasks are done
            awaited = hosting.awaited_by(self._uvicorn)
            awaited.add(task)
            task.add_done_callback(awaited.discard)

    def _look_at_uvicorn(self) -> None:
        if self._uvicorn is None or self._loop is None:
            return
        if hosting.tells_to_end(self._uvicorn):
            self._host_ends()
        else:
            self._look = self._loop.call_later(LOOK, self._look_at_uvicorn)

    def _has_ended(self, task: asyncio.Task[None]) -> None:
        self._ending = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log().warning("the mounted server could not end: %s", error)

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One ASGI connection."""
        if scope["type"] == "http":
            await self._exchange(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _here(self) -> HttpEndpoint:
        core = self._server._core
        if self._core is not core:  # a forked child has a new one
            OF_PARENTS.append((self._loop, self._ending, self._look))
            self._core, self._endpoint = core, None
            self._begin()
        if self._endpoint is None:
            self._endpoint = core.http(self._options)
        return self._endpoint

    async def _exchange(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, target: str | None = None
    ) -> None:
        body, is_whole = b"", False
        # What is refused without being read is not waited for.
        if not self._is_protected or _has_token(scope):
            read = await _body(receive, self._server._body_limit)
            if read is None:
                return
            body, is_whole = read
            if body == b"" and _length(scope) > 0:
                raise MisuseError(
                    "the body was read before the request came here, as by a middleware that uses request.stream() or "
                    "request.form(): let it use request.body(), or pass on what it has read"
                )
        endpoint, host = self._here(), self._server._host
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._user = host.attach()
            self._loop = loop
            if self._server._life is not None:
                self._server._life.mounts.add(self._user)
            self._uvicorn = hosting.uvicorn_server(loop)
            # What goes on looking must not keep the context of the first request.
            host.base.copy().run(self._look_at_uvicorn)
        hosting.watch(self)
        parts: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        finished: asyncio.Future[Any] = loop.create_future()
        finished.add_done_callback(lambda _: parts.put_nowait(("end", None)))
        op = host.begin(finished)
        AROUND[op] = scope
        self._server._exchanges[op] = lambda name, part: parts.put_nowait((name, part))
        watch = loop.create_task(_gone(receive, parts, is_whole))
        try:
            endpoint.exchange(op, _head(scope, target), body)
            await _answer(parts, finished, send, lambda: endpoint.written(op))
        finally:
            watch.cancel()
            self._server._exchanges.pop(op, None)
            host.forget(op)


class Metadata:
    """The protected-resource metadata of a mounted server, as an ASGI application: `Application.metadata`."""

    def __init__(self, application: Application, path: str, text: str) -> None:
        self._application = application
        self.path = path
        """The path at which it must be reachable, from the root of the host."""
        self.text = text
        """The document, for those who serve it themselves, as `application/json`."""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One ASGI connection."""
        if scope["type"] == "http":
            await self._application._exchange(scope, receive, send, self.path)
        else:
            await self._application(scope, receive, send)


def _head(scope: MutableMapping[str, Any], target: str | None) -> str:
    headers = [[name.decode("latin-1"), _readable(value)] for name, value in scope["headers"]]
    return json.dumps({"method": scope["method"], "headers": headers, "target": target or _target(scope)})


def _readable(value: bytes) -> str:
    """A header's value: proxies write names in UTF-8, and what is none is Latin-1."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _target(scope: MutableMapping[str, Any]) -> str:
    """Path and query: metadata is found by the path, and clients of HTTP+SSE name their session in the query."""
    path: str = quote(scope["path"], safe="/:@!$&'()*+,;=~") or "/"
    query: bytes = scope.get("query_string", b"")
    return f"{path}?{query.decode('latin-1')}" if query else path


def _has_token(scope: MutableMapping[str, Any]) -> bool:
    shown = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    return len(shown) == 1 and shown[0].strip()[:7].lower() == b"bearer "


def _length(scope: MutableMapping[str, Any]) -> int:
    """The length that a request announces, if it does."""
    announced = [value for name, value in scope["headers"] if name.lower() == b"content-length"]
    return int(announced[0]) if len(announced) == 1 and announced[0].isdigit() else 0


async def _body(receive: Receive, limit: int) -> tuple[bytes, bool] | None:
    """The request body, cut off just above the limit so that the engine refuses it, and whether that is all of it.

    None when the client left.
    """
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        piece: bytes = message.get("body", b"")
        pieces.append(piece)
        size += len(piece)
        if not message.get("more_body") or size > limit:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces), not message.get("more_body")


async def _gone(receive: Receive, parts: asyncio.Queue[tuple[str, Any]], is_whole: bool) -> None:
    """Waits for the client's leaving. Behind a body that `is_whole` nothing else comes.

    What comes all the same is of a middleware that says what it has read again and again, without ever waiting, and
    hears of no end.
    """
    while (message := await receive())["type"] != "http.disconnect":
        if is_whole:
            return
        is_whole = not message.get("more_body")
        await asyncio.sleep(0)
    parts.put_nowait(("gone", None))


async def _answer(
    parts: asyncio.Queue[tuple[str, Any]], finished: asyncio.Future[Any], send: Send, written: Callable[[], None]
) -> None:
    started = False
    while True:
        name, part = await parts.get()
        if name == "http_head":
            headers = [(key.lower().encode("latin-1"), value.encode("latin-1")) for key, value in part["headers"]]
            await send({"type": "http.response.start", "status": part["status"], "headers": headers})
            started = True
        elif name == "http_chunk":
            await send({"type": "http.response.body", "body": part["text"].encode(), "more_body": True})
            # The server has taken it, at its client's pace: only now is the next chunk made.
            written()
        elif name == "gone":
            return
        else:
            error = finished.exception()
            if not started:
                reason = error.message if isinstance(error, Error) else "no answer"
                head = [(b"content-type", b"text/plain; charset=utf-8")]
                await send({"type": "http.response.start", "status": 500, "headers": head})
                await send({"type": "http.response.body", "body": reason.encode()})
                return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
