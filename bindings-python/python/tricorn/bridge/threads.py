"""Plain functions in worker threads."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import _core

if TYPE_CHECKING:
    import contextvars
    import logging
    from concurrent import futures

MAX_GIVEN_UP = 256
"""Functions of one pool that go on although nobody waits for them, and have a thread besides the others."""
PATIENCE = 60.0
"""Seconds for which a function waits for a thread; after that its call fails."""

MAX_THREADS = 32


@functools.cache
def log() -> logging.Logger:
    """The logger of this package; `logging` is imported when there is something to say."""
    import logging

    return logging.getLogger("tricorn")


class ThreadCall:
    """A plain function waiting for a worker thread, or at work in one. It cannot be interrupted, only told."""

    __slots__ = ("_starts", "cancelled", "give_up", "waits")

    def __init__(self, starts: bool = False) -> None:
        self._starts = starts
        self.cancelled = False
        self.waits: set[futures.Future[Any]] = set()
        self.give_up: Callable[[], None] | None = None
        """Lets another function have the thread of this one, which nobody waits for any more."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Keeps it from starting, unless it always does; one that runs sees `ctx.cancelled`, its `ctx.wait` raises."""
        del msg
        self.cancelled = not self._starts
        for future in list(self.waits):
            future.cancel()
        if self.cancelled and self.give_up is not None:
            self.give_up()
        return True

    def wait(self, future: futures.Future[Any]) -> Any:
        """Waits for something that is cancelled with the call."""
        self.waits.add(future)
        try:
            if self.cancelled:  # what it has come to by now is not what the function waits for
                from concurrent.futures import CancelledError

                future.cancel()
                raise CancelledError
            return future.result()
        finally:
            self.waits.discard(future)


class Job:
    """A function that waits for a worker thread, is at work in one, or is over."""

    __slots__ = ("context", "is_given_up", "is_over", "is_started", "work")

    def __init__(self, context: contextvars.Context, work: Callable[[], None]) -> None:
        self.context = context
        self.work = work
        self.is_started = False
        self.is_given_up = False
        self.is_over = False


class _Shared:
    """State that a pool shares with its workers, which must not keep the pool alive."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.workers = 0
        self.spare = 0
        """Workers that have nothing to do, less the jobs that no worker has taken."""
        self.given_up = 0


class Threads:
    """Worker threads for plain functions, at most `limit`, started when needed.

    They are daemons: a function that never returns must not keep the process from ending, which is why this is not
    concurrent.futures, whose threads are always waited for.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._shared = _Shared()
        self._forks = _core.forks()
        self._warned = False

    def __del__(self) -> None:
        for _ in range(self._shared.workers):
            self._shared.jobs.put(None)

    @property
    def limit(self) -> int:
        """The greatest number of threads."""
        return self._limit

    @property
    def is_full(self) -> bool:
        """True when what is submitted now has to wait for a thread."""
        return self._shared.spare < 0

    def submit(self, context: contextvars.Context, work: Callable[[], None]) -> Job:
        """Runs `work` in a worker thread with `context`'s variables."""
        if self._forks != _core.forks():  # none of the parent's threads are here
            self._forks, self._shared = _core.forks(), _Shared()
        job, shared = Job(context, work), self._shared
        shared.jobs.put(job)
        with shared.lock:
            shared.spare -= 1
            number = self._another()
        self._start(number)
        return job

    def give_up(self, job: Job) -> None:
        """Nobody waits for a function any more that is at work: another thread takes the place of its.

        There are `MAX_GIVEN_UP` such places; after that it keeps its own.
        """
        shared, number = self._shared, 0
        with shared.lock:
            if job.is_over or job.is_given_up or not job.is_started:
                return
            is_full = shared.given_up >= MAX_GIVEN_UP
            if not is_full:
                job.is_given_up = True
                shared.given_up += 1
                shared.workers -= 1
                number = self._another()
        if is_full and not self._warned:
            self._warned = True
            log().warning("%d functions that were given up are still at work: others wait for a thread", MAX_GIVEN_UP)
        self._start(number)

    def _another(self) -> int:
        # Under the lock: the number of a worker to start, or 0.
        shared = self._shared
        if shared.spare >= 0 or shared.workers >= self._limit:
            return 0
        shared.workers += 1
        shared.spare += 1
        return shared.workers

    def _start(self, number: int) -> None:
        if number:
            threading.Thread(target=_work, args=(self._shared,), name=f"tricorn-{number}", daemon=True).start()


def _work(shared: _Shared) -> None:
    while True:
        job = shared.jobs.get()
        if job is None:
            return
        with shared.lock:
            job.is_started = True
        job.context.run(job.work)
        with shared.lock:
            if job.is_given_up:
                shared.given_up -= 1
                return
            job.is_over = True
            shared.spare += 1
        del job  # an idle thread must keep nothing alive
