"""The Python half of the bridge: handler table, running handlers and waiting calls.

The engine never touches Python from its own threads. It writes to a file descriptor the event loop watches, or to a
socket, and everything here then happens on that loop's thread.
"""

from __future__ import annotations

import contextvars
import inspect
import itertools
import json
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from .. import _core
from ..errors import ClosedError, MisuseError, PeerMisbehavedError, RpcError
from ..json.decoding import decode, decoded
from ..model.input_required import InputRequired
from . import waking
from .threads import ThreadCall, Threads, log

if TYPE_CHECKING:
    import asyncio
    from concurrent import futures

    from .receiving import Ear

LAST_POLLS = 64
"""Further batches that a stopping host looks at; what comes after them gets an error from the engine."""

MAX_TASKS = 256
"""Callbacks of one host that wait for something at once; what is heard meanwhile is told to no more of them."""
CLOSING = 5.0
"""Seconds in which what a client's transport has opened is closed, when nobody needs it any more."""
MAX_RAISED = 256
"""Exceptions on their way through the engine to a caller of this process."""
RAISED = "tricorn.raised"
NO_STATE: Any = object()
"""The state of a server that has none."""


class _Through(msgspec.Struct):
    through: int | None = None


_through = msgspec.json.Decoder(_Through).decode
Handler = Callable[[bytes, int], None]
OnError = Callable[[Exception, str], object]
EventSink = Callable[[str, bytes], None]


_ops = itertools.count(1)
"""Numbers of operations, unlike any other's of the process: a server's handlers are told those of its clients."""
ORIGINS: dict[int, contextvars.Context] = {}
"""The context that each operation was started in, until it is over and nothing runs for it any more."""
AROUND: dict[int, Any] = {}
"""The ASGI scopes of the exchanges that are such operations."""


class Waiter(Protocol):
    """A waiter for an operation: a future of asyncio or of concurrent.futures."""

    def done(self) -> bool:
        """Returns True when the answer came, or nobody waits any more."""
        ...

    def set_result(self, result: Any, /) -> None:
        """The answer."""

    def set_exception(self, exception: BaseException, /) -> None:
        """The error instead."""


OF_PARENTS: list[object] = []
"""State of parent processes when they forked. It is kept, as dropping it would end it here a second time."""


class Table(dict[int, Handler]):
    """Handlers by number. Numbers never come back: a call of what was removed may be on the way."""

    def __init__(self, missing: Handler) -> None:
        super().__init__()
        self._missing = missing

    def __missing__(self, number: int) -> Handler:
        return self._missing


class Host:
    """One native bridge with everything of it that Python owns; it works on one event loop at a time.

    `serves`: its handlers are a server's, which have a client to talk to. `new_context` makes what they get as their
    context, of this host and the number of the call.
    """

    def __init__(
        self, serves: bool, new_context: Callable[[Host, int], object], on_error: OnError | None = None
    ) -> None:
        self.bridge = _core.Bridge(ORIGINS)
        self._forks = _core.forks()
        # What nobody's request causes runs in this context, in a copy.
        self.base = contextvars.copy_context()
        self.lasting: set[int] = set()
        self._ends: dict[int, asyncio.Future[None]] = {}
        self.serves = serves
        self.new_context = new_context
        self.on_error = on_error
        self.table = Table(self._gone)
        self.state: Any = NO_STATE
        self.threads: Threads | None = None
        self.kept: dict[int, None] = {}
        self.values: dict[int, dict[Any, Any]] = {}
        self.contexts: dict[int, contextvars.Context] = {}
        self.running: dict[int, asyncio.Task[None] | ThreadCall] = {}
        self.cancelled: set[int] = set()
        self.first_step: int | None = None
        """The call whose handler is in its first step, which is not in `running` yet."""
        self.asked: set[int] = set()
        self.extensions: set[str] = set()
        self.steps: dict[int, set[futures.Future[None]]] = {}
        self.reserved: set[asyncio.Task[None]] = set()
        self.waiting: dict[int, Waiter] = {}
        self.progress: dict[int, Callable[[bytes], None]] = {}
        self.sinks: dict[int, EventSink] = {}
        self.loop: asyncio.AbstractEventLoop | None = None
        self._ear: Ear | None = None
        # Functions of asyncio, set by `attach`: importing it takes longer than all else that defining a server needs.
        self._running_loop: Callable[[], asyncio.AbstractEventLoop]
        self._task: Callable[..., asyncio.Task[None]]
        self.revive: Callable[[], asyncio.Task[None] | None] | None = None
        """Begins on the running loop what has ended with an earlier one, though it is still used."""
        self._ready_queue: Any = None
        self._users: set[object] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._carried: set[asyncio.Task[None]] = set()
        self.carriers: list[Callable[[], None]] = []
        """Functions that end all that a transport of the user's carries."""
        self._numbers = itertools.count()
        self._sources = itertools.count(1)

    def __del__(self) -> None:
        if sys.is_finalizing():  # the process ends: its engine threads end with it
            return
        try:
            self._free_all()
            self.bridge.close()
            self._listen_no_more()
        except Exception:  # noqa: BLE001 - a forked child, or __init__ failed
            return

    @property
    def is_parents(self) -> bool:
        """True when a parent process has made this, or renewed it."""
        return self._forks != _core.forks()

    def renew(self) -> None:
        """Begins anew in a forked child, with the same handlers: what the parent is about is none of the child's."""
        if not self.is_parents:
            return
        self.bridge.renew()
        self._forks = _core.forks()
        OF_PARENTS.append((self.loop, self._users, self.running, self._tasks, self.waiting, self.reserved, self.steps))
        OF_PARENTS.append((self._carried, self._ear))
        self.loop = self._ear = self._ready_queue = self.first_step = None
        self._users, self._tasks, self.reserved, self._carried = set(), set(), set(), set()
        self.running, self.waiting, self.steps, self.progress = {}, {}, {}, {}
        self.values, self.contexts, self.lasting = {}, {}, set()
        self.cancelled, self.asked = set(), set()
        for number in self.kept:
            self.drop(number)
        self.kept.clear()

    # -- the event loop

    def attach(self) -> object:
        """Works on the running loop from now on, until everything that this returned was given to `detach`."""
        import asyncio

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise MisuseError(
                "no event loop of asyncio is running here: asyncio.run(...) makes one; without asyncio, as under trio, "
                "there is the synchronous Client"
            ) from None
        if self.loop is not loop:
            if self.loop is not None:
                self._leave(self.loop)
            self._running_loop, self._task = asyncio.get_running_loop, asyncio.Task
            self.loop = loop  # after these: other threads look at it
            self._ready_queue = getattr(loop, "_ready", None)
            begun = None if self.revive is None else self.revive()
            if begun is None:
                self._hear(loop)
            else:  # handlers need what it begins
                begun.add_done_callback(lambda _: self._hear(loop) if self.loop is loop else None)
        user = object()
        self._users.add(user)
        return user

    def _hear(self, loop: asyncio.AbstractEventLoop) -> None:
        # A reader keeps the context that it is added in: that of whoever comes first is not for all others.
        self.base.copy().run(self._listen, loop)
        self._again()  # what an earlier loop left behind

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        arguments = (self.table, self._cancel, self._settle, self._progress, self._event, self._again)
        self._listen_no_more()
        self._ear = waking.listen(loop, self.bridge, arguments)

    def _listen_no_more(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            ear.close()

    def detach(self, user: object) -> None:
        """The counterpart of `attach`: the last one stops all handlers and answers their calls."""
        if user not in self._users:  # the host has moved to another loop, whose users are others
            return
        self._users.discard(user)
        if not self._users and self.loop is not None:
            self._listen_no_more()
            self._abandon()

    def is_last(self, user: object) -> bool:
        """Returns True when `detach` would stop everything."""
        return self._users == {user} and self.loop is self._running_loop()

    def has_only(self, users: set[object]) -> bool:
        """Returns True when nobody uses it but these."""
        return self._users <= users

    def lend(self) -> object | None:
        """Attaches to the running loop unless the host already works on a live one; gives what `detach` is due for."""
        if self.loop is not None and self.loop is not self._running_loop() and self.loop.is_running():
            return None
        return self.attach()

    def must_not_block(self) -> None:
        """Refuses to block the very loop that would have to answer."""
        if self.loop is None:
            return
        try:
            running = self._running_loop()
        except RuntimeError:
            return
        if self.loop is running:
            raise MisuseError("a synchronous client would block the event loop its own server runs on; use connect()")

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop.is_running():
            raise MisuseError("this object already works on another event loop, which is still running")
        # That loop ended without a word, or was closed early: nothing of it will ever run again.
        self._listen_no_more()
        self._users.clear()
        self._abandon()

    def _abandon(self) -> None:
        from asyncio import Future

        loop, self.loop = self.loop, None
        if loop is not None and loop.is_closed():
            for op, waiter in list(self.waiting.items()):
                if isinstance(waiter, Future):  # it cannot be told any more
                    self.forget(op)
        # One more round, so that settled operations are delivered and queued calls are refused, not forgotten.
        refuse = Table(self._refuse)
        for _ in range(LAST_POLLS):
            if not self.bridge.poll(refuse, self._cancel, self._settle, self._progress, self._event):
                break
        for key, handler in list(self.running.items()):
            self.bridge.error(key, "the server stopped")
            if isinstance(handler, ThreadCall) or not (loop is None or loop.is_closed()):
                handler.cancel("the server stopped")
        self.running.clear()
        self.cancelled.clear()
        self.asked.clear()
        self.steps.clear()
        self.values.clear()
        self.contexts.clear()
        self._free_all()
        self.cancel_tasks()
        for op in list(self.waiting):
            self._settle(op, None, ClosedError("the event loop ended before the answer came"))

    def _refuse(self, _params: bytes, key: int) -> None:
        self.bridge.error(key, "the server stopped")

    def _again(self) -> None:
        # Busy: stay in polling mode, which needs no wake-ups, and let the loop do other things in between.
        if self.loop is not None:
            self.loop.call_soon(self._poll, context=self.base.copy())

    def _poll(self) -> None:
        if self.loop is not None and self.bridge.poll(
            self.table, self._cancel, self._settle, self._progress, self._event
        ):
            self._again()

    # -- deliveries

    def _cancel(self, key: int, reason: str | None) -> None:
        handler = self.running.get(key)
        if handler is None:
            return
        self.cancelled.add(key)
        if key not in self.running:  # a worker thread was done with it just now
            self.cancelled.discard(key)
            return
        handler.cancel(reason or "cancelled by the client")
        if not isinstance(handler, ThreadCall):
            # A task cancelled before its first step never reaches its own `finally`.
            handler.add_done_callback(lambda _: self.done(key))

    def _settle(self, op: int, value: bytes | None, error: BaseException | None) -> None:
        waiter = self.waiting.pop(op, None)
        if waiter is not None and not waiter.done():
            if error is None:
                waiter.set_result(value)
            else:
                if isinstance(error, RpcError):
                    error.received = True
                waiter.set_exception(_as_raised(error) if isinstance(error, Exception) else error)

    def _progress(self, op: int, params: bytes) -> None:
        if (sink := self.progress.get(op)) is not None:
            sink(params)

    def _event(self, source: int, name: str, params: bytes) -> None:
        try:
            if name == "warning":
                log().warning("%s", decode(params).get("message"))
            elif name == "released":  # a handler of a session, or one that was replaced: nothing calls it any more
                number = decode(params)["handler"]
                self.kept.pop(number, None)
                self.drop(number)
            elif name == "held":  # a task goes on for an operation that is over next
                self.lasting.add(decode(params)["op"])
            elif name == "freed":
                self._free(decode(params)["op"])
            elif name == "request":
                _log_request(decode(params))
            if (sink := self.sinks.get(source)) is not None:
                sink(name, params)
        except PeerMisbehavedError as error:
            log().warning("%s was not heard: %s", name, error)

    # -- operations

    def source(self, sink: EventSink | None = None) -> int:
        """A number for a server or client; its events go to `sink`."""
        number = next(self._sources)
        if sink is not None:
            self.sinks[number] = sink
        return number

    async def wait(self, start: Callable[[int], None], progress: Callable[[bytes], None] | None = None) -> bytes:
        """Starts an operation and waits for it; cancelling the waiting task cancels the operation."""
        loop = self.loop
        if loop is None or loop is not self._running_loop():
            raise MisuseError("this object belongs to another event loop")
        op = next(_ops)
        future: asyncio.Future[bytes] = loop.create_future()
        self.waiting[op] = future
        ORIGINS[op] = contextvars.copy_context()
        if progress is not None:
            self.progress[op] = progress
        try:
            start(op)
            return await future
        finally:
            self.forget(op)

    def begin(self, waiter: Waiter, progress: Callable[[bytes], None] | None = None) -> int:
        """Announces an operation that `waiter` waits for, from any thread; `forget` it in the end."""
        op = next(_ops)
        self.waiting[op] = waiter
        ORIGINS[op] = contextvars.copy_context()
        if self.loop is None:  # looked at after the entry was made: a host that stops now sees the entry
            self.waiting.pop(op, None)
            ORIGINS.pop(op, None)
            raise ClosedError("the connection is closed")
        if progress is not None:
            self.progress[op] = progress
        return op

    def number(self) -> int:
        """A number that no operation has, and nothing else that is numbered so."""
        return next(_ops)

    def forget(self, op: int) -> None:
        """Nobody waits for `op` any more."""
        self.waiting.pop(op, None)
        self.progress.pop(op, None)
        goes_on = op in self.lasting
        # Before the engine is asked: it may say at once that nothing runs for it any more.
        self.lasting.add(op)
        if not self.bridge.settle(op) and not goes_on:
            self._free(op)

    async def ended(self, op: int, patience: float) -> None:
        """Waits until nothing runs any more for an operation that nobody waits for."""
        if op not in self.lasting:
            return
        import asyncio

        self._ends[op] = end = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait((end,), timeout=patience)
        finally:
            self._ends.pop(op, None)

    def _free(self, op: int) -> None:
        self.lasting.discard(op)
        end = self._ends.get(op)
        if end is not None and not end.done():
            end.set_result(None)
        ORIGINS.pop(op, None)
        AROUND.pop(op, None)

    def _free_all(self) -> None:
        for op in list(self.lasting):
            self._free(op)

    # -- handlers

    def add(self, handler: Handler) -> int:
        """Puts a handler into the table; gives the number that the engine calls it by."""
        number = next(self._numbers)
        self.table[number] = handler
        return number

    def drop(self, number: int) -> None:
        """Forgets a handler that was removed."""
        self.table.pop(number, None)

    def _gone(self, _params: bytes, key: int) -> None:
        self.bridge.gone(key)

    if sys.version_info >= (3, 12):

        def spawn(self, key: int, coroutine: Coroutine[Any, Any, None], name: str) -> None:
            """Runs an asynchronous handler; one that never waits is done when this returns."""
            self.first_step = key
            task = self._task(coroutine, loop=self.loop, name=name, eager_start=True)
            self.first_step = None
            if not task.done():
                self.running[key] = task

    else:

        def spawn(self, key: int, coroutine: Coroutine[Any, Any, None], name: str) -> None:
            """Runs an asynchronous handler; one that never waits is done when this returns."""
            task = self._task(coroutine, loop=self.loop, name=name)
            # Python 3.12 starts a task eagerly when asked to. Here its first step stands in the loop's queue: taking
            # it out and running it now has the same effect, and saves a whole round of the loop.
            ready = self._ready_queue
            if ready:
                step = ready.pop()
                if getattr(step._callback, "__self__", None) is task:
                    self.first_step = key
                    step._run()
                    self.first_step = None
                    if task.done():
                        return
                else:
                    ready.append(step)
            self.running[key] = task

    def done(self, key: int) -> None:
        """The handler of `key` has returned."""
        self.running.pop(key, None)
        if self.values:
            self.values.pop(key, None)
            self.contexts.pop(key, None)
        if self.cancelled:
            self.cancelled.discard(key)
        if self.asked:
            self.asked.discard(key)

    def is_running(self, key: int) -> bool:
        """Returns True when this is asked in the handler of `key`, or while it is at work."""
        return key in self.running or self.first_step == key

    def share(self, key: int) -> dict[Any, Any] | None:
        """Returns the values that the running call of `key` shares with its middleware, until its end; None when it is
        over.

        The middleware may end before the call does, which goes on as a task: this is to be called as the call begins.
        """
        values = self.values.get(key)
        if values is None and (text := self.bridge.context(key)) is not None:
            through = decoded(_through, text).through
            outer = None if through is None else self.values.get(through)
            if through in self.contexts:
                self.contexts[key] = self.contexts[through]
            values = self.values.setdefault(key, {} if outer is None else outer)
        return values

    def context_of(self, key: int) -> contextvars.Context:
        """A copy of the context variables that a call's handler sees: those of the middleware that let it go on."""
        around = self.contexts.get(key)
        return contextvars.copy_context() if around is None else around.copy()

    def ends_at_question(self, key: int) -> None:
        """The running handler of `key` has come to a question that its client answers in another round.

        However it ends now, it has not failed. This is called in the task that asked.
        """
        if key in self.running:
            self.asked.add(key)
            if key not in self.running:  # a worker thread was done with it just now
                self.asked.discard(key)
        from asyncio import current_task

        task = current_task()
        if task is not None:
            # One of several that ask; nobody need look at it any more when another one has ended the run.
            task.add_done_callback(looked_at)

    @contextmanager
    def at_work(self, key: int) -> Generator[None]:
        """A step of the running handler of `key`, which is to be done before the handler runs again."""
        from concurrent.futures import Future

        step: Future[None] = Future()
        step.set_running_or_notify_cancel()  # who waits for it may be cancelled, it may not
        steps = self.steps.setdefault(key, set())
        steps.add(step)
        try:
            yield
        finally:
            step.set_result(None)
            steps.discard(step)
            if not steps and self.steps.get(key) is steps:
                del self.steps[key]

    def unfinished(self, key: int, error: BaseException | None = None) -> list[futures.Future[None]]:
        """The steps that are still at work when the handler of `key` has ended, if it runs again."""
        if key not in self.asked and (error is None or InputRequired.of(error) is None):
            return []
        return list(self.steps.get(key, ()))

    # -- callbacks

    def tell(self, name: str, callback: Callable[..., object], *values: object) -> None:
        """Calls a callback of the user, and awaits what it hands back; errors go to `on_error` or the log."""
        try:
            told = contextvars.copy_context().run(callback, *values)
            if not inspect.isawaitable(told):
                return
            if len(self._tasks) < MAX_TASKS and self.loop is not None:
                task = self.loop.create_task(self._told(name, told), name=name)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                return
            if inspect.iscoroutine(told):
                told.close()
            log().warning("%s was not told: %d of it are still at work", name, len(self._tasks))
        except Exception as error:  # noqa: BLE001 - one callback must not cost the others theirs
            self.report(error, name)

    async def _told(self, name: str, told: Awaitable[object]) -> None:
        try:
            await told
        except Exception as error:  # noqa: BLE001 - as above
            self.report(error, name)

    def cancel_tasks(self) -> None:
        """Cancels what callbacks still wait for, and what a transport carries."""
        if self.loop is None or not self.loop.is_closed():
            for task in list(self._tasks):
                task.cancel()
        self._tasks.clear()
        for end in self.carriers:
            end()

    def carry(self, task: asyncio.Task[None]) -> None:
        """A task in which a transport of the user's carries a request and its response."""
        self._carried.add(task)
        task.add_done_callback(self._carried.discard)

    async def carried(self) -> None:
        """Waits until everything is closed that a transport has opened, for `CLOSING` seconds and a little."""
        import asyncio

        # A loop that has ended does not end its tasks any more.
        here = asyncio.get_running_loop()
        if carried := {task for task in self._carried if task.get_loop() is here}:
            await asyncio.wait(carried, timeout=CLOSING + 1)

    def warn(self, message: str) -> None:
        """Writes a warning to the log."""
        log().warning("%s", message)

    def report(self, error: BaseException, name: str, what: object = None) -> None:
        """Tells `on_error`, or the log, that a function of the user failed."""
        try:
            if self.on_error is None:
                log().error("%s failed", what or name, exc_info=error)
            else:
                self.on_error(cast("Exception", error), name)  # nearly always one
        except BaseException as second:  # the thread or task that this happens in must go on
            log().error("on_error failed for %s", what or name, exc_info=second)
            if not isinstance(second, Exception):
                raise

    def quit(self, reason: BaseException) -> None:
        """Ends the event loop with SystemExit or KeyboardInterrupt, wherever a handler raised it."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(_raise, reason)


_raised: dict[int, Exception] = {}
_raised_numbers = itertools.count(1)


def raised(error: Exception) -> bytes:
    """Keeps an exception for the operation that it is settled with; gives the data that stands for it in between."""
    number = next(_raised_numbers)
    _raised[number] = error
    _raised.pop(number - MAX_RAISED, None)
    return msgspec.json.encode({RAISED: number})


def _as_raised(error: Exception) -> Exception:
    # Of this kind no peer can send an error.
    data: Any = error.data if isinstance(error, MisuseError) else None
    return _raised.pop(cast("dict[str, Any]", data).get(RAISED, 0), error) if isinstance(data, dict) else error


def looked_at(task: asyncio.Future[Any]) -> None:
    """Nobody need look at how this ended."""
    if not task.cancelled():
        task.exception()


_INFO, _WARNING = 20, 30  # of `logging`


def _log_request(record: dict[str, Any]) -> None:
    name, error = record.get("name"), record.get("error")
    level = _INFO if error is None else _WARNING
    if not log().isEnabledFor(level):
        return
    outcome = f"failed: {error}" if error is not None else "cancelled" if record.get("cancelled") else "ok"
    what = record["method"] if name is None else f"{record['method']} {json.dumps(name, ensure_ascii=False)}"
    log().log(level, "%s %.1f ms %s", what, record["seconds"] * 1000, outcome, extra={"request": record})


def _raise(reason: BaseException) -> None:
    raise reason
