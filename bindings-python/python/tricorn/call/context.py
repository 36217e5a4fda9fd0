"""Context of the request that a function works on: the optional parameter of every handler."""

from __future__ import annotations

import contextvars
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

from ..errors import CancelledError, ClosedError, MisuseError, unicode
from ..json import checks
from ..json.decoding import decode
from ..model.request_info import RequestInfo
from ..model.trace import TraceContext, TraceLike, told

if TYPE_CHECKING:
    from concurrent import futures

    from typing_extensions import Self

    from ..bridge.host import Host

T = TypeVar("T")
CURRENT: contextvars.ContextVar[tuple[Host, int]] = contextvars.ContextVar("tricorn.call")
"""The call whose handler runs here."""

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class RequestContext:
    """The request that a function works on: all that a client's handlers and middleware get, and the base of `Context`.

    Everything that is no coroutine may be called from any thread. After the function has returned it does nothing.
    """

    __slots__ = ("_host", "_key", "_origin", "_request", "_trace", "_values")
    _serves: ClassVar[bool] = False
    """True for the context of a server's handler, which has a client to talk to."""

    def __init__(self, host: Host, key: int) -> None:
        self._host = host
        self._key = key
        self._request: RequestInfo | None = None
        self._origin = 0
        self._trace: TraceLike | None = None
        self._values: dict[Any, Any] | None = None

    @classmethod
    def current(cls) -> Self:
        """The context of the call whose handler runs here, for functions that are not handed one."""
        host, key = CURRENT.get(None) or (None, 0)
        if host is None:
            raise MisuseError(f"there is no call: {cls.__name__}.current() works in handlers and what they call")
        if cls._serves and not host.serves:
            raise MisuseError(
                "this is a client's handler, which has no client to talk to: use RequestContext.current()"
            )
        return cls(host, key)

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> bool:
        """Tells the peer how far the call is, if it asked; False when the call is over.

        In a handler whose call was cancelled it raises, so that a loop of reports ends: `asyncio.CancelledError` on an
        event loop, `CancelledError` in a worker thread.
        `progress` must grow with every report; any unit will do, `total` in the same one. A value that is
        no number, such as NaN, is a `MisuseError`.
        """
        checks.number("progress: progress", progress)
        if total is not None:
            checks.number("progress: total", total)
        if message is not None:
            checks.text("progress: message", message)
            message = unicode(message)
        if self._key in self._host.cancelled:
            raise _was_cancelled()
        if self._host.bridge.progress(self._key, progress, total, message):
            return True
        if self._host.is_running(self._key):
            raise _was_cancelled()
        return False

    @property
    def cancelled(self) -> bool:
        """True when the peer no longer wants the answer; asynchronous functions are cancelled as well."""
        return self._key in self._host.cancelled

    @property
    def request(self) -> RequestInfo:
        """Facts about the request: revision, client, headers, principal; read them while the handler still runs."""
        if self._request is None:
            text = self._host.bridge.context(self._key)
            if text is None:
                raise MisuseError("the call is over: read ctx.request while the handler still runs")
            raw: dict[str, Any] = decode(text)
            self._origin = raw.pop("origin", 0)
            self._request = RequestInfo(raw)
        return self._request

    def extension(self, id: str) -> dict[str, Any] | None:  # noqa: A002 - its name
        """The settings with which the client declares an extension of this server, such as `"com.example/search"`.

        None when it does not, or the server does not offer it: nothing of it may be used then.
        """
        declared = self.request.client_capabilities.get("extensions")
        if id not in self._host.extensions or not isinstance(declared, dict):
            return None
        settings: Any = cast("dict[str, Any]", declared).get(id)
        return cast("dict[str, Any]", settings) if isinstance(settings, dict) else None

    @property
    def trace_context(self) -> TraceContext | None:
        """The trace that the request belongs to; what a handler asks belongs to it, too. None: nobody said.

        Middleware may set it before `call_next`: a `TraceContext`, or a mapping.
        """
        if self._trace is not None:
            return TraceContext(**told(self._trace))
        return self.request.trace_context

    @trace_context.setter
    def trace_context(self, trace: TraceLike) -> None:
        self._trace = trace

    @property
    def values(self) -> dict[Any, Any]:
        """Values that the middleware and the handler of this one request share; empty at first."""
        if self._values is None:
            values = self._host.share(self._key)
            if values is None:
                raise MisuseError("the call is over: read ctx.values while the handler still runs")
            self._values = values
        return self._values

    def wait(self, question: Awaitable[T]) -> T:
        """Waits in a worker thread for what `elicit` and the like return: `ctx.wait(ctx.elicit("Sure?"))`.

        When the call is cancelled meanwhile, it raises `CancelledError`. A plain function that is a `step` runs in this
        thread.
        """
        from asyncio import run_coroutine_threadsafe
        from concurrent import futures

        host = self._host
        if on_a_loop():
            _discard(question)
            raise MisuseError("ctx.wait would block the event loop: use await here")
        if self._is_step(question):
            return finished(cast("Coroutine[Any, Any, T]", question))
        call = cast("Callable[[futures.Future[T]], T] | None", getattr(host.running.get(self._key), "wait", None))
        if host.loop is None or call is None:
            _discard(question)
            raise ClosedError("the call is over, or does not run in a worker thread")
        future = run_coroutine_threadsafe(_awaited(question), host.loop)
        try:
            return call(future)
        except futures.CancelledError:
            raise CancelledError("the client no longer wants the answer") from None

    def _is_step(self, question: object) -> bool:
        """Returns True for a step that waits for nothing in a worker thread."""
        del question
        return False


async def _awaited(question: Awaitable[T]) -> T:
    return await question


def _discard(question: Any) -> None:
    close = getattr(question, "close", None)
    if close is not None:
        close()


def _was_cancelled() -> BaseException:
    """The exception by which a cancelled call ends, in the form that its handler's kind of function knows."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return CancelledError("the call was cancelled")
    return asyncio.CancelledError("the call was cancelled")


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return cast("T", stop.value)
    raise RuntimeError("a step in a worker thread waited for the event loop")


def on_a_loop() -> bool:
    """Returns True when an event loop runs in this thread."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
