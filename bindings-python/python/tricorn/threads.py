"""Plain functions in worker threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent import futures
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import contextvars


class ThreadCall:
    """A plain function waiting for a worker thread, or at work in one. It cannot be interrupted, only told."""

    __slots__ = ("_starts", "cancelled", "waits")

    def __init__(self, starts: bool = False) -> None:
        self._starts = starts
        self.cancelled = False
        self.waits: set[futures.Future[Any]] = set()

    def cancel(self, msg: Any | None = None) -> bool:
        """Keeps it from starting, unless it always does; one that runs sees `ctx.cancelled`, its `ctx.wait` raises."""
        del msg
        self.cancelled = not self._starts
        for future in list(self.waits):
            future.cancel()
        return True

    def wait(self, future: futures.Future[Any]) -> Any:
        """Waits for something that is cancelled with the call."""
        self.waits.add(future)
        try:
            if self.cancelled:
                future.cancel()
            return future.result()
        finally:
            self.waits.discard(future)


class Threads:
    """Worker threads for plain functions, at most `limit`, started when needed.

    They are daemons: a function that never returns must not keep the process from ending, which is why this is not
    concurrent.futures, whose threads are always waited for.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._queue: queue.SimpleQueue[tuple[contextvars.Context, Callable[[], None]] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)

    def __del__(self) -> None:
        for _ in range(self._count):
            self._queue.put(None)

    def submit(self, context: contextvars.Context, work: Callable[[], None]) -> None:
        """Runs `work` in a worker thread with `context`'s variables."""
        self._queue.put((context, work))
        if not self._idle.acquire(blocking=False) and self._count < self._limit:
            self._count += 1
            threading.Thread(
                target=_work, args=(self._queue, self._idle), name=f"tricorn-{self._count}", daemon=True
            ).start()


def _work(
    jobs: queue.SimpleQueue[tuple[contextvars.Context, Callable[[], None]] | None], idle: threading.Semaphore
) -> None:
    while True:
        job = jobs.get()
        if job is None:
            return
        context, work = job
        context.run(work)
        del job, context, work  # an idle thread must keep nothing alive
        idle.release()
