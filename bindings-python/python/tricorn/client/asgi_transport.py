"""An ASGI application of this process, as what carries a client's HTTP."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, unquote, urlsplit

from ..bridge.host import looked_at
from ..bridge.threads import log
from ..errors import MisuseError
from .http_transport import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from typing_extensions import Self


Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Awaitable[Any]]
"""An application of ASGI 3: `await app(scope, receive, send)`."""

BACKLOG = 64 * 1024
"""Bytes of a body that wait for the client; with more than that the application waits."""
GRACE = 1.0
"""Seconds in which an application ends by itself that was told that its client has left."""
_PORTS = {"http": 80, "https": 443}


class ASGITransport:
    """An application of ASGI 3, in this process and without a socket, as a client's `http_transport`:

        transport = ASGITransport(server.asgi())
        async with connect("http://localhost/mcp", http_transport=transport) as client:
            ...

    Starlette, FastAPI, Django and anything else that speaks ASGI will do. Responses are streams: each piece is handed
    on when it comes, and the application waits for a client that does not read. It runs in a task for each request, in
    the context that the transport was made in, and hears `http.disconnect` when the client has no more use for the
    response; a second later it is cancelled.

    Its error before the response begins is raised by the request, a later one breaks the response off; the logger
    `tricorn` gets the traceback. The `Host` of requests is the URL's: `server.asgi()` takes the loopback names, and
    others by `allowed_hosts`.

    Its lifespan is not run, unless the transport is entered, on the event loop of the client:

        async with ASGITransport(web) as transport:
            ...
    """

    def __init__(self, app: App, *, client: tuple[str, int] = ("127.0.0.1", 123), root_path: str = "") -> None:
        """`client`: whose requests they are. `root_path`: the path that the application is mounted below, with which
        URLs begin.
        """
        if not callable(app):
            fix = "; give its .asgi()" if hasattr(app, "asgi") else ""
            raise MisuseError(f"ASGITransport: expected an application of ASGI 3, got a {type(app).__qualname__}{fix}")
        self._app = app
        self._client = client
        self._root_path = root_path
        # A server's requests run outside of the context that they are made in.
        self._context = contextvars.copy_context()
        self._calls: set[_Call] = set()
        self._state: dict[str, Any] = {}
        self._lifespan: _Lifespan | None = None

    async def send(self, request: HttpRequest, /) -> HttpResponse:
        """Runs the application with a request, until its response begins."""
        call = _Call(self._scope(request), request.body)
        self._calls.add(call)
        call.start(self._app, self._context, self._calls.discard)
        try:
            status, headers = await call.head
        except BaseException:
            call.leave()
            raise
        return HttpResponse(status, headers, call)

    def _scope(self, request: HttpRequest) -> dict[str, Any]:
        url = urlsplit(request.url)
        return {
            "type": "http",
            # Since 2.4 Starlette ends a stream only when it sends something to a client that has left.
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": request.method.upper(),
            "scheme": url.scheme,
            "path": unquote(url.path) or "/",
            "raw_path": (url.path or "/").encode(),
            "query_string": url.query.encode(),
            "root_path": self._root_path,
            "headers": _headers(request, url),
            "client": self._client,
            "server": (url.hostname, url.port or _PORTS.get(url.scheme)),
            "state": dict(self._state),
        }

    async def __aenter__(self) -> Self:
        if self._lifespan is not None:
            raise MisuseError("ASGITransport: its lifespan has begun already")
        self._state = {}
        self._lifespan = lifespan = _Lifespan()
        try:
            await lifespan.start(self._app, self._context, self._state)
        except BaseException:
            self._lifespan = None
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        lifespan, self._lifespan = self._lifespan, None
        self._state = {}
        calls = list(self._calls)
        for call in calls:
            call.leave()
        if calls:
            await asyncio.wait([call.task for call in calls], timeout=2 * GRACE)
        if lifespan is not None:
            await lifespan.stop()

    def __repr__(self) -> str:
        return f"ASGITransport({self._app!r})"


def _headers(request: HttpRequest, url: SplitResult) -> list[tuple[bytes, bytes]]:
    headers = [(name.lower().encode("latin-1"), _bytes(value)) for name, value in request.headers]
    names = {name for name, _ in headers}
    if b"host" not in names:
        headers.insert(0, (b"host", url.netloc.rpartition("@")[2].encode()))
    if request.body and not names & {b"content-length", b"transfer-encoding"}:
        headers.append((b"content-length", str(len(request.body)).encode()))
    return headers


def _bytes(value: str) -> bytes:
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode()


def _run(context: contextvars.Context, work: Any, name: str) -> asyncio.Task[None]:
    """A task with a context of its own."""
    loop = asyncio.get_running_loop()
    return context.copy().run(lambda: loop.create_task(work, name=name))


class _Call:
    """The application at work on one request; also the body of its response."""

    task: asyncio.Task[None]

    def __init__(self, scope: dict[str, Any], body: bytes) -> None:
        self._scope = scope
        self._body: bytes | None = body
        self.head: asyncio.Future[tuple[int, list[tuple[str, str]]]] = asyncio.get_running_loop().create_future()
        self.head.add_done_callback(looked_at)  # who waits for it may have gone
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._has_begun = False
        self._is_complete = False
        self._has_left = False
        self._error: BaseException | None = None
        self._disconnected = asyncio.Event()
        # One of the two waits at most: the reader where there is nothing, the application where there is no room.
        self._turn = asyncio.Event()

    def start(self, app: App, context: contextvars.Context, over: Callable[[_Call], None]) -> None:
        """Begins; `over` is called in the end."""
        self.task = _run(context, self._work(app), "asgi")
        self.task.add_done_callback(self._ended)
        self.task.add_done_callback(lambda _: over(self))

    async def _work(self, app: App) -> None:
        await app(self._scope, self._receive, self._send)

    def leave(self) -> None:
        """The client has no more use for it."""
        if self._has_left or self.task.done():
            return
        self._has_left = True
        self._disconnected.set()
        self._turn.set()
        late = asyncio.get_running_loop().call_later(GRACE, self.task.cancel)
        self.task.add_done_callback(lambda _: late.cancel())

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = RuntimeError("the application was cancelled") if task.cancelled() else task.exception()
        if error is not None and not (self._has_left or task.cancelled()):
            log().error("the application of an ASGITransport failed", exc_info=error)
        if not self._is_complete:
            did = "left its response unfinished" if self._has_begun else "gave no response"
            self._error = error or RuntimeError(f"the application {did}")
            if not self.head.done():
                self.head.set_exception(self._error)
        self._disconnected.set()
        self._turn.set()

    # -- the application's side

    async def _receive(self) -> Message:
        body, self._body = self._body, None
        if body is not None and not self._disconnected.is_set():
            return {"type": "http.request", "body": body, "more_body": False}
        await self._disconnected.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if self._has_left:
            raise ConnectionResetError("the client has left")
        if message["type"] == "http.response.start":
            self._begin(message)
        elif message["type"] == "http.response.body":
            if not self._has_begun or self._is_complete:
                state = "before http.response.start" if not self._has_begun else "after the end of the response"
                raise RuntimeError(f"the application sent http.response.body {state}")
            await self._hand_on(bytes(message.get("body", b"")), bool(message.get("more_body", False)))

    def _begin(self, message: Message) -> None:
        if self._has_begun:
            raise RuntimeError("the application sent http.response.start twice")
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message.get("headers", ())]
        self._has_begun = True
        if not self.head.done():
            self.head.set_result((message["status"], headers))

    async def _hand_on(self, piece: bytes, more: bool) -> None:
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)
        if not more:
            self._is_complete = True
            self._disconnected.set()
        self._turn.set()
        while more and self._size > BACKLOG and not self._has_left:
            self._turn.clear()
            await self._turn.wait()

    # -- the client's side

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        while not self._pieces:
            if self._is_complete or self._has_left:
                raise StopAsyncIteration
            if self._error is not None:
                raise self._error
            self._turn.clear()
            await self._turn.wait()
        piece = self._pieces.popleft()
        self._size -= len(piece)
        self._turn.set()
        return piece

    async def aclose(self) -> None:
        """Tells the application that the client has left, unless it has said everything, and waits until it ends."""
        if self._is_complete or self.task.done():
            return
        self.leave()
        await asyncio.wait([self.task], timeout=2 * GRACE)


class _Lifespan:
    """The lifespan of an application: from its beginning to its end in one task."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._started: asyncio.Future[None] = loop.create_future()
        self._stopped: asyncio.Future[None] = loop.create_future()
        self._started.add_done_callback(looked_at)
        self._stopped.add_done_callback(looked_at)
        self._has_asked = False
        self._task: asyncio.Task[None] | None = None

    async def start(self, app: App, context: contextvars.Context, state: dict[str, Any]) -> None:
        """Waits until the application has started. One that knows no lifespan has at once."""
        self._incoming.put_nowait({"type": "lifespan.startup"})
        self._task = task = _run(context, self._work(app, state), "lifespan")
        task.add_done_callback(looked_at)
        await self._until(task, self._started)
        if self._started.done():
            if self._started.exception() is not None:
                await self._ends(task)
                self._raise(task, self._started)
        elif self._has_asked:
            self._raise(task, None)

    async def stop(self) -> None:
        """Waits until the application has stopped."""
        task = self._task
        if task is None or not self._started.done():  # it knows no lifespan
            return
        self._incoming.put_nowait({"type": "lifespan.shutdown"})
        await self._until(task, self._stopped)
        await self._ends(task)
        self._raise(task, self._stopped)

    async def _work(self, app: App, state: dict[str, Any]) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": state}
        await app(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        self._has_asked = True
        return await self._incoming.get()

    async def _send(self, message: Message) -> None:
        event, _, outcome = cast("tuple[str, str, str]", message["type"].rpartition("."))
        said = {"lifespan.startup": self._started, "lifespan.shutdown": self._stopped}.get(event)
        if said is None or said.done():
            raise RuntimeError(f"the application sent {message['type']}, which nobody waits for")
        if outcome == "failed":
            said.set_exception(RuntimeError(message.get("message") or f"{message['type']} of the application"))
        else:
            said.set_result(None)

    async def _until(self, task: asyncio.Task[None], said: asyncio.Future[None]) -> None:
        try:
            await asyncio.wait({task, said}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task], timeout=GRACE)
            raise

    async def _ends(self, task: asyncio.Task[None]) -> None:
        done, _ = await asyncio.wait([task], timeout=GRACE)
        if not done:
            task.cancel()
            await asyncio.wait([task], timeout=GRACE)

    def _raise(self, task: asyncio.Task[None], said: asyncio.Future[None] | None) -> None:
        """Raises what the application has raised, or else what it has said."""
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            raise error
        if said is not None and said.done():
            said.result()
