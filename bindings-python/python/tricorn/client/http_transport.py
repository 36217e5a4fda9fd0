"""A client's HTTP over something other than the engine's own connections: httpx, an application, the program's own."""

from __future__ import annotations

import asyncio
import codecs
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol, cast, runtime_checkable

from ..bridge import callouts
from ..bridge.errors import members
from ..bridge.host import CLOSING, Host, looked_at
from ..errors import MisuseError, TransportError
from ..errors.values import type_of

OPTION = "http_transport"
PIECE = 64 * 1024
"""Bytes of a body that wait for the engine at most, and that it gets at once."""
_CODED = ("content-encoding", "content-length")
_MEMBERS = 16
"""Levels of a group of exceptions that are searched for the cause."""
_EXPECTED = "expected an HttpTransport, an httpx.AsyncClient or an httpx.AsyncBaseTransport"
_BUFFERS = "hands a response on when it is whole, so that streams never come; tricorn.testing.ASGITransport does not"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that a client makes over an `HttpTransport`. Its `repr` is without headers and body."""

    method: str
    """`"POST"`, `"GET"` or `"DELETE"`."""
    url: str
    """The whole URL, `http:` or `https:`."""
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]], repr=False)
    """Names in small letters, each with a value; without `content-length`, and `host` only where it is not the URL's.

    Tokens are among them.
    """
    body: bytes = field(default=b"", repr=False)
    """Empty where there is none."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer of an `HttpTransport`. Its `repr` is without headers and body."""

    status: int
    """Three digits."""
    headers: Iterable[tuple[str, str]] = field(default=(), repr=False)
    """Names in any case, each with a value; a name may come several times."""
    body: AsyncIterable[bytes] | bytes = field(default=b"", repr=False)
    """All of it, or its pieces as they come, of any size: UTF-8 without a content encoding.

    It is read as far as the client needs it, in one task with `send`, and then closed by its `aclose`, if it has that,
    as asynchronous generators have.
    """


@runtime_checkable
class HttpTransport(Protocol):
    """Carries a client's HTTP: the option `http_transport`. Over another HTTP library it is

        class Transport:
            async def send(self, request: HttpRequest) -> HttpResponse:
                response = await library.request(request.method, request.url, ...)
                return HttpResponse(response.status, response.headers.items(), response.chunks())

    An `httpx.AsyncClient` and an `httpx.AsyncBaseTransport` need no such class. It is used on the event loop that the
    client was connected on, a synchronous client's is in a thread of the library's own, by several tasks at once, and
    is left open when the client is closed.
    """

    async def send(self, request: HttpRequest, /) -> HttpResponse:
        """Sends a request and gives the answer as soon as its head is there.

        Redirects are not followed here: the client does that, within the origin. Streams may be silent for as long as
        their server likes: the client has timeouts of its own. A client that gives up cancels this, or the reading of
        the body. Errors raised here or by the body reach the caller as a `TransportError` with the same message, or
        with the type's name if there is none; `on_error` gets each, under the name `http_transport`, with the original
        as its `__cause__`.
        """
        ...


class HttpxClient(Protocol):
    """An `httpx.AsyncClient`, or one of its kind: its proxies, certificates, hooks, cookies and auth are used.

    Its timeouts count for all but reading, redirects are left to the client of the protocol, and it stays open.
    """

    @property
    def build_request(self) -> Callable[..., Any]:
        """Makes a request."""
        ...

    @property
    def send(self) -> Callable[..., Awaitable[Any]]:
        """Sends it."""
        ...

    @property
    def aclose(self) -> Callable[[], Awaitable[None]]:
        """Not called; no synchronous client has it."""
        ...


class HttpxTransport(Protocol):
    """An `httpx.AsyncBaseTransport`, or one of its kind."""

    @property
    def handle_async_request(self) -> Callable[..., Awaitable[Any]]:
        """Carries a request of httpx."""
        ...


def place(host: Host, given: object) -> dict[str, int]:
    """The option `http_transport` as the engine takes it."""
    # The engine tells the caller of all failures; `on_error` hears of each, the log of none.
    return {"handler": callouts.entry(host, OPTION, Exchanges(host, _carrier(host, given)), counted=True)}


def _carrier(host: Host, given: object) -> HttpTransport:
    kind = type(given).__qualname__
    if isinstance(given, type):
        raise MisuseError(f"{OPTION}: {_EXPECTED}, got the class {given.__qualname__}; give an object of it")
    if _has(given, "build_request"):
        if not _has(given, "aclose"):
            raise MisuseError(f"{OPTION}: this {kind} is synchronous; give an httpx.AsyncClient")
        if _buffers(getattr(given, "_transport", None)):
            host.warn(f"{OPTION}: the ASGITransport of this {kind} {_BUFFERS}")
        return _Httpx(given)
    if _has(given, "send"):
        return cast(HttpTransport, given)
    if _has(given, "handle_async_request"):
        if _buffers(given):
            raise MisuseError(f"{OPTION}: this {kind} {_BUFFERS}: give that")
        return _Httpx(_wrapped(given))
    if _has(given, "handle_request"):
        raise MisuseError(f"{OPTION}: this {kind} is synchronous; give an httpx.AsyncBaseTransport")
    fix = "; an application of ASGI goes into a tricorn.testing.ASGITransport" if callable(given) else ""
    raise MisuseError(f"{OPTION}: {_EXPECTED}; this {kind} has no method 'send'{fix}")


def _has(given: object, name: str) -> bool:
    return callable(getattr(given, name, None))


def _buffers(transport: object) -> bool:
    kind = type(transport)
    return kind.__name__ == "ASGITransport" and kind.__module__.partition(".")[0] in ("httpx", "httpx2")


def _wrapped(transport: object) -> object:
    """A client of the library that the transport is made for."""
    bases = [kind.__module__ for kind in type(transport).__mro__ if kind.__name__ == "AsyncBaseTransport"]
    library = bases[0].partition(".")[0] if bases else "httpx"
    try:
        httpx: Any = import_module(library)
    except ImportError:
        kind = type(transport).__qualname__
        raise MisuseError(f"{OPTION}: this {kind} is for {library}, which is not installed") from None
    # Proxies and logins of the environment are not for a transport that the program has chosen.
    return httpx.AsyncClient(transport=transport, trust_env=False)


class _Httpx:
    """An asynchronous client of httpx, or of what has its interface."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Sends a request, as the client is configured; its timeout for reading is left out."""
        content = request.body or None
        made = self._client.build_request(request.method, request.url, headers=request.headers, content=content)
        # The default of 5 s would end streams on which nothing happens, and calls that take their time.
        extensions: dict[str, Any] = made.extensions
        made.extensions = {**extensions, "timeout": {**(extensions.get("timeout") or {}), "read": None}}
        response = await self._client.send(made, stream=True, follow_redirects=False)
        headers: list[tuple[str, str]] = response.headers.multi_items()
        if "content-encoding" in response.headers:  # it decodes the body
            headers = [pair for pair in headers if pair[0].lower() not in _CODED]
        return HttpResponse(response.status_code, headers, _HttpxBody(response))


class _HttpxBody:
    """The body of a response of httpx."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def __aiter__(self) -> AsyncIterator[bytes]:
        return cast("AsyncIterator[bytes]", self._response.aiter_bytes())

    async def aclose(self) -> None:
        """Ends it, and gives its connection back or ends that, too."""
        await self._response.aclose()


class Exchanges:
    """Answers what the engine asks of a transport."""

    def __init__(self, host: Host, transport: HttpTransport) -> None:
        self._host = host
        self._transport = transport
        self.open: dict[int, _Exchange] = {}
        """Those that are not over, by the engine's numbers."""
        host.carriers.append(self._end_all)

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        """Does what `op` says."""
        number: int = params["exchange"]
        match params["op"]:
            case "request":
                return await self._request(number, params)
            case "read":
                return await self._read(number)
            case _:
                self._end(number)
                return {}

    async def _request(self, number: int, params: dict[str, Any]) -> dict[str, Any]:
        headers = [(name, value) for name, value in params["headers"]]
        request = HttpRequest(params["method"], params["url"], headers, (params.get("body") or "").encode())
        self.open[number] = exchange = _Exchange(self._transport, request)
        self._host.carry(exchange.task)
        try:
            return await exchange.head
        except BaseException:
            self._end(number)
            raise

    async def _read(self, number: int) -> dict[str, Any]:
        exchange = self.open.get(number)
        if exchange is None:
            raise TransportError("this exchange is over")
        try:
            text, is_last = await exchange.read()
        except BaseException:
            self._end(number)
            raise
        if not is_last:
            return {"text": text}
        self._end(number)
        return {"text": text, "end": True} if text else {}

    def _end(self, number: int) -> None:
        exchange = self.open.pop(number, None)
        if exchange is not None:
            exchange.end()

    def _end_all(self) -> None:
        for number in list(self.open):
            self._end(number)


class _Exchange:
    """A request and its response: sent, read and closed in one task, as task groups and cancel scopes in it want it."""

    def __init__(self, transport: HttpTransport, request: HttpRequest) -> None:
        loop = asyncio.get_running_loop()
        self.head: asyncio.Future[dict[str, Any]] = loop.create_future()
        self.head.add_done_callback(looked_at)  # who asked may have gone
        self._text = ""
        self._size = 0
        self._is_over = False
        self._is_ending = False
        self._is_given_up = False
        self._error: BaseException | None = None
        # One of the two waits at most: the reader where there is nothing, the task where there is no room.
        self._turn = asyncio.Event()
        self.task = loop.create_task(self._run(transport, request), name=OPTION)
        self.task.add_done_callback(lambda _: self._finish())

    def end(self) -> None:
        """Nobody needs any more of it. What closes it already is not disturbed."""
        if not (self._is_ending or self.task.get_loop().is_closed()):
            self._is_ending = self._is_given_up = True
            self.task.cancel()

    async def read(self) -> tuple[str, bool]:
        """The next piece of the body, and if nothing comes after it. Raises what has broken it off."""
        while not self._text and not self._is_over:
            self._turn.clear()
            await self._turn.wait()
        if self._is_given_up:  # which is no failure
            raise asyncio.CancelledError
        if not self._text and self._error is not None:
            raise self._error
        text, self._text, self._size = self._text, "", 0
        self._turn.set()
        return text, self._is_over and self._error is None

    async def _run(self, transport: HttpTransport, request: HttpRequest) -> None:
        opened: list[object] = []
        try:
            response = await _answer(transport, request)
            opened.append(response.body)
            head = _head(response)
            if not self.head.done():
                self.head.set_result(head)
            await self._take(response.body, opened)
        except GeneratorExit:  # the event loop ended
            raise
        except BaseException as error:  # noqa: BLE001 - who asks gets it
            self._error = _told(error)
            _go_on(error)
        self._finish()
        await _close(opened)

    def _finish(self) -> None:
        self._is_over = self._is_ending = True
        if self._is_given_up or self._error is None:
            self.head.cancel()  # unless it has come
        elif not self.head.done():
            self.head.set_exception(self._error)
        self._turn.set()

    async def _take(self, body: AsyncIterable[bytes] | bytes, opened: list[object]) -> None:
        # "utf-8-sig" would take away a byte order mark, which the engine knows.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        if isinstance(body, (bytes, bytearray, memoryview)):
            await self._add(decoder, body)
        else:
            pieces = aiter(body)
            if pieces is not body:
                opened.append(pieces)
            async for piece in pieces:
                await self._add(decoder, piece)
        self._text += decoder.decode(b"", True)

    async def _add(self, decoder: codecs.IncrementalDecoder, piece: object) -> None:
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            fix = "; give its .encode()" if isinstance(piece, str) else ""
            raise MisuseError(f"{OPTION}: body: expected bytes, got a {type(piece).__qualname__}{fix}")
        whole = bytes(cast(Any, piece))
        for at in range(0, len(whole), PIECE):
            part = whole[at : at + PIECE]
            await self._wait_for_room(len(part))
            if text := decoder.decode(part):
                self._text += text
                self._size += len(part)
                self._turn.set()

    async def _wait_for_room(self, size: int) -> None:
        while self._text and self._size + size > PIECE:
            self._turn.clear()
            await self._turn.wait()


async def _answer(transport: HttpTransport, request: HttpRequest) -> HttpResponse:
    coming: object = transport.send(request)
    if not inspect.isawaitable(coming):
        raise MisuseError(
            f"{OPTION}: send: expected an asynchronous method; this one gave a {type(coming).__qualname__}"
        )
    response = cast(object, await coming)
    if not isinstance(response, HttpResponse):
        raise MisuseError(f"{OPTION}: send: expected an HttpResponse, got a {type(response).__qualname__}")
    return response


def _head(response: HttpResponse) -> dict[str, Any]:
    """The head as the engine takes it."""
    status, headers, body = (cast(object, part) for part in (response.status, response.headers, response.body))
    if isinstance(status, bool) or not isinstance(status, int) or not 100 <= status <= 999:
        raise MisuseError(f"{OPTION}: status: expected a number of three digits, got {status!r}")
    if not isinstance(body, (bytes, bytearray, memoryview, AsyncIterable)):
        fix = "; give its .encode()" if isinstance(body, str) else ""
        why = "expected bytes, or an asynchronous iterable of them, such as an asynchronous generator"
        raise MisuseError(f"{OPTION}: body: {why}, got a {type(body).__qualname__}{fix}")
    return {"status": int(status), "headers": _pairs(headers)}


def _pairs(headers: object) -> list[tuple[str, str]]:
    wrong = f"{OPTION}: headers: expected pairs of a name and a value, both text"
    if isinstance(headers, Mapping):
        raise MisuseError(f"{wrong}, got a {type(cast(object, headers)).__qualname__}; give its .items()")
    try:
        pairs = [(name, value) for name, value in cast("Iterable[tuple[object, object]]", headers)]
    except (TypeError, ValueError):
        raise MisuseError(f"{wrong}, got a {type(headers).__qualname__} of something else") from None
    for pair in pairs:
        for part in pair:
            if not isinstance(part, str):
                fix = "; give its .decode()" if isinstance(part, bytes) else ""
                raise MisuseError(f"{wrong}, got {type_of(part)}{fix}")
    return cast("list[tuple[str, str]]", pairs)


def _told(error: BaseException) -> BaseException:
    """The error that the engine is told: this package's own as they are, any other as one of the transport."""
    if isinstance(error, (MisuseError, TransportError)) or not isinstance(error, (Exception, asyncio.CancelledError)):
        return error
    told = TransportError(_message(error))
    told.__cause__ = error
    return told


def _message(error: BaseException) -> str:
    for _ in range(_MEMBERS):
        error = next(iter(members(error)), error)
    with suppress(Exception):
        if text := str(error).strip():
            return text
    return type(error).__name__


def _go_on(error: BaseException) -> None:
    """A task that was cancelled goes on, to close what it has opened: task groups in that have to know."""
    uncancel = getattr(asyncio.current_task(), "uncancel", None)  # since Python 3.11
    if uncancel is not None and isinstance(error, asyncio.CancelledError):
        uncancel()


async def _close(opened: list[object]) -> None:
    """Closes a body: first what it is read by. It has `CLOSING` seconds."""
    task = asyncio.current_task()
    if not opened or task is None:
        return
    late = asyncio.get_running_loop().call_later(CLOSING, task.cancel)
    try:
        for one in reversed(opened):
            aclose = getattr(one, "aclose", None)
            if callable(aclose):
                # It is needed no more: how it ends says nothing.
                with suppress(Exception):
                    closing = aclose()
                    if inspect.isawaitable(closing):
                        await closing
    finally:
        late.cancel()
