"""The synchronous client: the same methods as `AsyncClient`, for any thread, with or without an event loop in it."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import math
import os
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent import futures
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from msgspec import UNSET, UnsetType

from ..call.options import CacheMode, OnProgress, RawRequestOptions, RequestOptions
from ..call.request_options import (
    limit,
    progress_sink,
    request_options,
    with_meta,
    written,
)
from ..errors import MisuseError
from ..json.decoding import decode
from ..json.deprecation import deprecated
from ..model.content import Implementation
from ..model.definitions import Resource
from ..model.results import CallToolResult
from ..model.trace import TraceLike
from .client import AsyncClient
from .features import Features
from .handlers import RootLike
from .listening import Change, Known, Listener, ListeningClient, Wanted, late, wanted
from .options import ClientOptions
from .requests import Request, call_params
from .settings import Target, introduce

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from ..errors.auth_step import AuthStep

T = TypeVar("T")

GLANCE = 0.25
"""Seconds until a blocked main thread notices Ctrl-C at the latest."""


class Closing(Protocol):
    """An object that is closed when the process ends, if it was not before."""

    def close(self) -> None:
        """Ends it in order."""


class _Background:
    """One daemon thread with an event loop, shared by all synchronous clients of the process."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.clients: weakref.WeakSet[Closing] = weakref.WeakSet()
        self.thread = threading.Thread(target=self.loop.run_forever, name="tricorn-clients", daemon=True)
        self.thread.start()
        atexit.register(self.close_all)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            while True:
                done, _ = futures.wait([future], timeout=GLANCE)
                if done:
                    return future.result()
        except BaseException:
            future.cancel()
            raise

    def open(self, client: Closing, connecting: Coroutine[Any, Any, object]) -> None:
        """Connects a client; one whose connecting Ctrl-C has interrupted is closed."""
        try:
            self.run(connecting)
        except BaseException as error:
            if not isinstance(error, Exception):
                client.close()
            raise
        self.clients.add(client)

    def close_all(self) -> None:
        # Child processes get their orderly end even when the program forgot to close.
        for client in list(self.clients):
            client.close()


_background: _Background | None = None
_lock = threading.Lock()


def the_background() -> _Background:
    """The thread that all synchronous clients share; refuses to be waited for in itself."""
    _must_not_block()
    global _background
    with _lock:
        if _background is None:
            _background = _Background()
        return _background


def _must_not_block() -> None:
    if _background is not None and threading.get_ident() == _background.thread.ident:
        raise MisuseError(
            "a synchronous client cannot be used in its own callbacks, nor in a server that runs on its thread: "
            "waiting there would block what brings the answer; let another thread do it"
        )


def _forget_background() -> None:
    """In a forked child the thread is gone; the next client there starts one of its own."""
    global _background, _lock
    if _background is not None:
        atexit.unregister(_background.close_all)
    _background = None
    _lock = threading.Lock()


if sys.platform != "win32" and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_background)


class _Answer:
    """Queue at which a blocked thread waits for its answer, and hears of progress meanwhile."""

    __slots__ = ("_queue", "came")

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self.came = False

    def done(self) -> bool:
        return False

    def set_result(self, result: Any) -> None:
        self._queue.put((0, result))

    def set_exception(self, exception: BaseException) -> None:
        self._queue.put((1, exception))

    def progress(self, params: bytes) -> None:
        self._queue.put((2, params))

    def wait(self, progress: Callable[[bytes], None] | None, until: float = math.inf) -> bytes | None:
        """Gives the answer, or raises the error; None when neither has come by then, of `time.monotonic`."""
        # A signal that comes just before the main thread blocks would not interrupt it: so it looks up now and then.
        glance = GLANCE if threading.current_thread() is threading.main_thread() else math.inf
        while True:
            patience = min(glance, until - time.monotonic())
            try:
                kind, value = self._queue.get(timeout=None if patience == math.inf else max(0.0, patience))
            except queue.Empty:
                if time.monotonic() >= until:
                    return None
                continue
            self.came = kind != 2
            if kind == 0:
                return cast(bytes, value)
            if kind == 1:
                raise value
            if progress is not None:
                progress(value)


class Listening(Listener[_Answer]):
    """The changes that a client listens to, in the order in which they came.

        with client.listen(tools=True) as changes:
            for change in changes:
                ...

    What is not taken yet is there once, however often it changed. Leaving the block ends it at the server, and so does
    `close`, from any thread. The loop ends when the server has ended it in order. When the connection broke off the
    client listens again, and since something may have been missed everything that is listened to is said to have
    changed, once. `ClosedError` when the connection ends for good, and why it could not be listened again; after that,
    nothing comes.
    """

    def __init__(self, client: AsyncClient, filter: str) -> None:  # noqa: A002 - its name
        super().__init__(client, filter)
        self._turn = threading.Lock()

    def next(self, timeout: float | None = None) -> Change | None:
        """The next change; None after the last one. `TimeoutError` when there is none for `timeout` seconds.

        Nothing is lost with that. None or 0: no limit.
        """
        _may_block(self._client)
        seconds = limit(timeout)
        until = math.inf if seconds is None else time.monotonic() + seconds
        if not self._turn.acquire(timeout=-1 if seconds is None else seconds):
            raise late()
        try:
            waiter = self._waiter(_Answer)
            if waiter is None:
                return None
            try:
                answer = waiter.wait(None, until)
            except BaseException:
                if waiter.came:
                    self.close()
                raise
            if answer is None:
                raise late()
            self._take(waiter)
            return self._change(answer)
        finally:
            self._turn.release()

    def __enter__(self) -> Self:
        self._begin()
        try:
            self._opened(_settled(self._client, self._open))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        change = self.next()
        if change is None:
            raise StopIteration
        return change


def _may_block(client: ListeningClient) -> None:
    _must_not_block()
    for peer in client._peers:
        peer._host.must_not_block()


def _settled(client: ListeningClient, start: Callable[[int], None], on_progress: OnProgress | None = None) -> bytes:
    """Starts an operation and blocks until it is settled."""
    _may_block(client)
    answer = _Answer()
    op = client._host.begin(answer, None if on_progress is None else answer.progress)
    try:
        start(op)
        return cast(bytes, answer.wait(None if on_progress is None else progress_sink(on_progress)))
    finally:
        client._host.forget(op)


class Client(Features):
    """A connection to one server, for code without asyncio.

        with Client("python server.py") as client:
            print(client.call_tool("add", {"a": 1, "b": 2}).structured)

    Any number of threads may use one client at once. `on_progress` is called in the thread that waits, the callbacks
    of the connection in one of the library's own.
    """

    def __init__(self, target: Target, **options: Unpack[ClientOptions]) -> None:
        introduce(options, sys._getframe(1).f_globals)
        self._async = AsyncClient(target, **options)

    @classmethod
    def of(cls, client: AsyncClient) -> Client:
        """The synchronous face of a client of the library's own thread."""
        self = cls.__new__(cls)
        self._async = client
        return self

    def connect(self) -> Self:
        """Starts or reaches the server and agrees on a protocol revision."""
        _may_block(self._async)
        the_background().open(self, self._async.connect())
        return self

    def close(self) -> None:
        """Ends the connection, and the child process if there is one; waiting calls raise `ClosedError`.

        A login that is being renewed comes to its end, and into its store, before: 15 s are given to that.
        """
        _must_not_block()
        background = the_background()
        background.clients.discard(self)
        background.run(self._async.close())

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def protocol_version(self) -> str:
        """The protocol revision agreed on."""
        return self._async.protocol_version

    @property
    def era(self) -> str:
        """`"legacy"` (with a handshake) or `"modern"` (stateless)."""
        return self._async.era

    @property
    def transport(self) -> Literal["stdio", "http", "memory"]:
        """The transport to the server; `"memory"` for a server of this process."""
        return self._async.transport

    @property
    def server_info(self) -> Implementation | None:
        """The name and version that the server gives for itself; no proof of anything."""
        return self._async.server_info

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities of the server."""
        return self._async.capabilities

    @property
    def instructions(self) -> str | None:
        """Instructions of the server for the model."""
        return self._async.instructions

    @property
    def initialize_result(self) -> dict[str, Any]:
        """The server's answer when the connection was opened, as it came, `_meta` and unknown members included.

        The result of `initialize`, in modern revisions that of `server/discover`.
        """
        return self._async.initialize_result

    @property
    def session_id(self) -> str | None:
        """The session of a legacy HTTP connection as it is now, which changes when the server loses it.

        None: there is none, or the client is closed.
        """
        return self._async.session_id

    @deprecated("MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration")
    def set_roots(self, roots: Iterable[RootLike]) -> None:
        """The folders and files that the server may work on from now on; it is told. Needs `roots=[...]` at first."""
        self._async.set_roots(roots)

    @deprecated("MCP 2026-07-28 deprecates roots (SEP-2577): use tool arguments, resource URIs or configuration")
    def roots_changed(self) -> None:
        """Tells the server that what `roots`, a function, gives has changed. `set_roots` tells it by itself.

        In modern revisions there is nothing to tell: a server asks for roots whenever it needs them. `MisuseError` for
        a client that was connected without `roots`.
        """
        self._async.roots_changed()

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | UnsetType | None = UNSET,
        max_timeout: float | None = None,
        on_progress: OnProgress | None = None,
        idempotent: bool = False,
        task: float | bool = False,
        meta: Mapping[str, Any] | None = None,
        cache: CacheMode | None = None,
        trace_context: TraceLike | None = None,
    ) -> CallToolResult:
        """Calls a tool. A tool that fails is a result with `is_error`, not an exception.

        `timeout` is in seconds without progress (default: the client's `request_timeout`; None or 0: no limit),
        `max_timeout` with. `on_progress` is called in this thread. Ctrl-C cancels the call at the server.
        `idempotent`: after a lost session it may be sent again. `task` runs it as a task of the server, which keeps it
        for so many seconds (True: as long as it likes), and waits for the result. `cache` changes nothing: of calls
        nothing is kept. `trace_context` is the trace that it belongs to.
        """
        options = request_options(
            timeout, max_timeout, on_progress, idempotent, task, cache=cache, trace_context=trace_context
        )
        answer = self._wait("tools/call", call_params(name, arguments, meta), options, on_progress)
        return CallToolResult.from_wire(answer)

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Unpack[RawRequestOptions]
    ) -> dict[str, Any]:
        """Any request by name; the result object as it is on the wire."""
        text = with_meta(method, params, options)
        answer = self._wait(method, text, written(method, options), options.get("on_progress"))
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
    ) -> Listening:
        """Listens to changes at the server, in every revision, until the block is left.

            with client.listen(tools=True, uris=["notes://today"]) as changes:
                for change in changes:
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
        return Listening(self._async, wanted(tools, prompts, resources, uris, extensions, tasks))

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Sends a notification."""
        self._async.notify(method, params)

    def metrics(self) -> dict[str, Any]:
        """Gauges: requests in flight, queued messages."""
        return self._async.metrics()

    def auth_trace(self) -> list[AuthStep]:
        """Returns the steps of the last logins: what was asked, answered and decided, as `AsyncClient.auth_trace`."""
        return self._async.auth_trace()

    def _do(self, request: Request[T], options: RequestOptions) -> T:
        if request.becomes_task:
            options = request.checked(self.era, self.capabilities, options)
        settings = written(request.method, options, request.until_over, request.follows)
        text = with_meta(request.method, request.params, options)
        return request.read(self._wait(request.method, text, settings, options.get("on_progress")))

    def _number(self) -> int:
        return self._async._number()

    def _leave(self, number: int) -> None:
        self._async._leave(number)

    def _wait(self, method: str, params: bytes | None, options: str, on_progress: OnProgress | None) -> bytes:
        if on_progress is not None and inspect.iscoroutinefunction(on_progress):
            raise MisuseError("on_progress: a synchronous client calls plain functions only, in the thread that waits")
        return _settled(self._async, self._async._start(method, params, options), on_progress)

    def __repr__(self) -> str:
        return repr(self._async).replace("AsyncClient", "Client")
