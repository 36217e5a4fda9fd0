"""The server as an ASGI application, for any web framework that speaks ASGI 3."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from .errors import Error
from .handler import options_text

if TYPE_CHECKING:
    from ._core import HttpEndpoint
    from .server import HttpOptions, Server

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Application:
    """What `Server.asgi()` returns. It needs no lifespan: the first request finds the event loop by itself.

    Where the framework passes its lifespan on, its end is that of the server's own `lifespan`, too. Else say
    `await application.close()` when the program ends.

    Of a server with `auth` clients look for the protected-resource metadata from the root of the host. What is mounted
    at the root serves it; for what is mounted below add `metadata`, as in Starlette or FastAPI:

        mcp = app.asgi(allowed_hosts=["example.com"])
        routes = [Mount("/mcp", mcp)]
        if mcp.metadata:
            routes.append(Route(mcp.metadata.path, mcp.metadata))
    """

    def __init__(self, server: Server, options: HttpOptions) -> None:
        self._server = server
        self._options = options_text(options)
        self._endpoint: HttpEndpoint | None = server._core.http(self._options)
        self._is_protected = self._endpoint.resource_metadata() is not None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._user: object = None

    @property
    def metadata(self) -> Metadata | None:
        """An ASGI application that serves the protected-resource metadata (RFC 9728), whatever path it is reached by.

        None of a server without `auth`.
        """
        raw = self._here().resource_metadata()
        return None if raw is None else Metadata(self, **msgspec.json.decode(raw))

    async def close(self) -> None:
        """Ends all sessions, and the server's lifespan; a request after that begins anew."""
        if self._loop is asyncio.get_running_loop():
            self._loop = None
            self._endpoint = None
            await self._server._release(self._user)

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
        if self._endpoint is None:
            self._endpoint = self._server._core.http(self._options)
        return self._endpoint

    async def _exchange(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, target: str | None = None
    ) -> None:
        body: bytes | None = b""
        # What is refused without being read is not waited for.
        if not self._is_protected or _has_token(scope):
            body = await _body(receive, self._server._body_limit)
        if body is None:
            return
        host = self._server._host
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._user = host.attach()
            self._loop = loop
        endpoint = self._here()
        parts: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        finished: asyncio.Future[Any] = loop.create_future()
        finished.add_done_callback(lambda _: parts.put_nowait(("end", None)))
        op = host.begin(finished)
        self._server._exchanges[op] = lambda name, part: parts.put_nowait((name, part))
        watch = loop.create_task(_gone(receive, parts))
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
        """Where it has to be reached, from the root of the host."""
        self.text = text
        """The document, for those who serve it themselves, as `application/json`."""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """One ASGI connection."""
        if scope["type"] == "http":
            await self._application._exchange(scope, receive, send, self.path)
        else:
            await self._application(scope, receive, send)


def _head(scope: MutableMapping[str, Any], target: str | None) -> str:
    headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]]
    return json.dumps({"method": scope["method"], "headers": headers, "target": target or _target(scope)})


def _target(scope: MutableMapping[str, Any]) -> str:
    """Path and query: metadata is found by the path, and clients of HTTP+SSE name their session in the query."""
    path: str = quote(scope["path"], safe="/:@!$&'()*+,;=~") or "/"
    query: bytes = scope.get("query_string", b"")
    return f"{path}?{query.decode('latin-1')}" if query else path


def _has_token(scope: MutableMapping[str, Any]) -> bool:
    shown = [value for name, value in scope["headers"] if name.lower() == b"authorization"]
    return len(shown) == 1 and shown[0].strip()[:7].lower() == b"bearer "


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The request body, cut off just above the limit so that the engine refuses it; None when the client left."""
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
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)


async def _gone(receive: Receive, parts: asyncio.Queue[tuple[str, Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
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
