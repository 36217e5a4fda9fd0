"""Ground of the synchronous clients, for any thread, with or without an event loop in it: their own thread, waiting,
and listening. The clients themselves, with the methods of the asynchronous ones, are in `sync_client`."""

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
from collections.abc import Callable, Coroutine
from concurrent import futures
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ..call.options import OnProgress
from ..call.request_options import limit, progress_sink
from ..errors import MisuseError
from .client import AsyncClient
from .connection import Connection
from .listening import Change, Listener, ListeningClient, late

if TYPE_CHECKING:
    from typing_extensions import Self

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
            self._opened(settled(self._client, self._open))
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


def begin(client: Closing, connection: Connection) -> None:
    """Connects a client on the thread that all share."""
    _may_block(connection)
    the_background().open(client, connection.connect())


def end(client: Closing, connection: Connection) -> None:
    """Ends the connection of a client on the thread that all share."""
    background = the_background()
    background.clients.discard(client)
    background.run(connection.close())


def _may_block(client: Connection | ListeningClient) -> None:
    _must_not_block()
    for peer in client._peers:
        peer._host.must_not_block()


def settled(client: ListeningClient, start: Callable[[int], None], on_progress: OnProgress | None = None) -> bytes:
    """Starts an operation and blocks until it is settled."""
    if on_progress is not None and inspect.iscoroutinefunction(on_progress):
        raise MisuseError("on_progress: a synchronous client calls plain functions only, in the thread that waits")
    _may_block(client)
    answer = _Answer()
    op = client._host.begin(answer, None if on_progress is None else answer.progress)
    try:
        start(op)
        return cast(bytes, answer.wait(None if on_progress is None else progress_sink(on_progress)))
    finally:
        client._host.forget(op)
