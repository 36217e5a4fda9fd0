"""Resources of a server from its first use to its last: a pool of connections, a cache."""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, cast

from ..bridge.host import NO_STATE, OF_PARENTS, Host, looked_at
from ..call.handler import Subject, handler
from ..call.signature import Signature
from ..errors import ClosedError, MisuseError
from ..json import checks

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any]]
"""`@asynccontextmanager async def lifespan(server): ...; yield state; ...`, or the same without the decorator."""

PATIENCE = 1.0
"""Seconds in which the engine says that the last use is over, when the loop that the server works on lets go of it."""


class _Lasting(asyncio.Task[None]):
    """A task that ends in order with its loop, which cancels all tasks at its end: as Ctrl-C, and the end of `run`, do.

    What is cancelled from within the loop, by a time limit or a task group of its own, is cancelled as usual.
    """

    over: asyncio.Event | None = None
    """The event that tells it to end, once it has begun."""

    def cancel(self, msg: Any | None = None) -> bool:
        """As of any task, but by a loop that has ended."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self.over is not None:
                self.over.set()
                return False
        return super().cancel(msg)


class Life:
    """Runs a lifespan function: from its beginning to its end in one task, as task groups in it want it."""

    def __init__(self, host: Host, server: object, function: object) -> None:
        if not callable(function):
            raise MisuseError(f"lifespan: expected a function of the server, got {checks.shown(function)}")
        if inspect.isasyncgenfunction(function):
            function = asynccontextmanager(cast("Callable[..., AsyncGenerator[Any]]", function))
        self._function = cast(Lifespan, function)
        self._server = server
        self._host = host
        self.mounts: set[object] = set()
        """The uses of the host that are mounted endpoints: nobody awaits their start."""
        self._begin()

    def _begin(self) -> None:
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._asked: asyncio.Event | None = None
        self._stopping: asyncio.Task[Any] | None = None

    def renew(self) -> None:
        """In a forked child it has not started."""
        OF_PARENTS.append((self._task, self._stopping, self._host.state))
        self._begin()
        self.mounts.clear()
        self._host.state = NO_STATE

    def revived(self) -> asyncio.Task[None] | None:
        """Begins again on the running loop when it has ended with another, and the engine takes it for running.

        So it is of a mounted server whose framework makes one loop after the other, as in its tests.
        """
        if self._task is None or not self._task.done() or self._asked is None or self._asked.is_set():
            return None
        return self._host.base.copy().run(asyncio.get_running_loop().create_task, self._again())

    async def _again(self) -> None:
        try:
            await self._start()
        except Exception as error:  # noqa: BLE001 - nobody awaits it
            self._asked = asyncio.Event()  # the next loop tries again
            if not self._host.has_only(self.mounts):
                self._host.report(error, "lifespan")

    @property
    def is_current(self) -> bool:
        """True when its own function is what asks."""
        return self._task is not None and self._task is asyncio.current_task()

    def numbers(self) -> tuple[int, int]:
        """The entries of the handler table that start and stop it."""
        return self._entry(self._start), self._entry(self._stop)

    def _entry(self, function: Callable[[], Any]) -> int:
        host = self._host
        signature = Signature(function, True, None, [], False, None, typing.Any)
        subject = Subject("lifespan", "", to_caller=True)
        return host.add(
            handler(host, subject, signature, lambda: lambda _: {}, lambda key, _: host.bridge.result(key, b"{}"), None)
        )

    async def _start(self) -> None:
        loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = loop.create_future()
        self._asked = self._stopping = None
        self._over = over = asyncio.Event()
        self._task = task = _Lasting(self._run(started, over), loop=loop, name="lifespan")
        try:
            await asyncio.shield(started)
        except asyncio.CancelledError:
            started.add_done_callback(looked_at)
            task.cancel()
            raise
        task.over = over
        self._asked = asyncio.Event()

    async def _run(self, started: asyncio.Future[None], over: asyncio.Event) -> None:
        cancelled: asyncio.CancelledError | None = None
        try:
            async with self._function(self._server) as state:
                self._host.state = state
                if not started.done():
                    started.set_result(None)
                try:
                    await over.wait()
                except asyncio.CancelledError as error:
                    cancelled = error  # the loop ends: what the lifespan has begun ends before
            if cancelled is not None:
                raise cancelled
        except BaseException as error:
            if not started.done():
                is_own = isinstance(error, Exception)
                started.set_exception(error if is_own else ClosedError("the lifespan was cancelled"))
                if isinstance(error, Exception) and self._host.has_only(self.mounts):
                    self._host.report(error, "lifespan")
            elif isinstance(error, Exception):
                self._host.report(error, "lifespan")
            if not isinstance(error, Exception):
                raise
        finally:
            self._host.state = NO_STATE

    async def _stop(self) -> None:
        self._stopping = asyncio.current_task()
        if self._asked is not None:
            self._asked.set()
        self._over.set()
        await self._ended()

    async def _ended(self) -> None:
        task = self._task
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            return
        while not task.done():
            # The loop may cancel this, too, and then waits for it.
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])

    async def release(self) -> None:
        """Waits for the end when the event loop lets go of the server."""
        task = self._task
        if task is None or task.get_loop() is not asyncio.get_running_loop():
            return
        if task.done() and not task.cancelled():
            await self._stopped()
            return
        done, _ = await asyncio.wait([task], timeout=PATIENCE)
        if not done:
            self._over.set()
            await asyncio.wait([task])
        elif task.cancelled() and self._asked is not None:
            # With all other tasks, as Python 3.10 does it at Ctrl-C. The engine is about to ask all the same.
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._asked.wait(), PATIENCE)
        await self._stopped()

    async def _stopped(self) -> None:
        """Lets what was asked to stop it answer: the engine waits for that."""
        if self._stopping is not None:
            await asyncio.wait([self._stopping])
