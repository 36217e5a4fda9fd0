"""Duties of a program that is a server: its signals, what its forked children inherit of them, its end."""

from __future__ import annotations

import asyncio
import atexit
import codecs
import io
import logging
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from types import FrameType
from typing import Any, TextIO, cast

from .. import _core
from ..errors import TransportError

STUBBORN = 1.0
"""Seconds that what runs in the event loop may go on after a signal has told it to end."""

REST = 1.0
"""Seconds that other threads may go on when the program has come to its end."""

LAST = 10.0
"""Seconds that the functions of `atexit` may take."""

LOOK = 1.0
"""Seconds between two looks at whether the input is over, of which a blocked event loop does not hear."""

_replaced: dict[signal.Signals, Any] = {}
"""The handlers that stand aside while a server runs, by their signals."""


if sys.platform != "win32":  # where there is no fork()
    _forking = threading.local()
    """Signals that a forking thread had blocked before, so that none gets to a child that still has our handlers."""

    def _forks() -> None:
        if _replaced:
            _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, set(_replaced))

    def _forked() -> None:
        """In a child of `fork()` signals do what they did before: they are not about this server."""
        _speaking.clear()
        if _replaced:
            signal.set_wakeup_fd(-1)
            _restore()
        _unblock()

    def _unblock() -> None:
        mask = _forking.__dict__.pop("mask", None)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_forks, after_in_parent=_unblock, after_in_child=_forked)


def _restore() -> None:
    while _replaced:
        number, handler = _replaced.popitem()
        # Anything that the program has put there meanwhile stays.
        if getattr(signal.getsignal(number), "__func__", None) is Ending.told:
            signal.signal(number, handler)


def check_streams() -> None:
    """Refuses standard streams that were closed when the interpreter began: others may stand in their places now."""
    for stream, name in ((sys.__stdin__, "input"), (sys.__stdout__, "output")):
        if stream is None:
            raise TransportError(f"standard {name} is closed, and a client speaks over it")


def pass_on_printed() -> None:
    """Sends to standard error what was printed and not written yet: the client would take it for a message."""
    _speaking.append(None)
    printed: object = sys.stdout
    if sys.platform == "win32":
        from . import crt

        crt.move_aside()
        with suppress(Exception):  # closed, or not there
            sys.stdout.flush()
    if not isinstance(printed, io.TextIOWrapper):
        return
    with suppress(OSError, ValueError):  # closed, detached, or no file
        if sys.platform != "win32" and printed.fileno() == 1 and not printed.isatty():
            _core.write_stderr(_unwritten(sys.stdout))
    # Output goes to standard error from now on: let nothing of it wait in a buffer, or fail for its letters.
    with suppress(ValueError):
        if printed.errors in ("strict", "surrogateescape") and codecs.lookup(printed.encoding).name != "utf-8":
            _strict.append((cast("Any", printed), printed.errors))
            printed.reconfigure(errors="backslashreplace")
        printed.reconfigure(line_buffering=True)


_speaking: list[None] = []
"""As many as serve on the standard streams: one, and those that are refused meanwhile, which give nothing back."""

_strict: list[tuple[Any, str]] = []
"""Standard output, with what it does about letters that its encoding does not have, once nobody is served on it."""


def _unwritten(printed: TextIO) -> str:
    """Empties the buffers of standard output: into a pipe, as nobody can look into them."""
    near, far = os.pipe()
    with closing(os.fdopen(near, "rb")) as reader:
        before = os.dup(1)
        try:
            if sys.platform != "win32":  # nobody comes here there
                os.set_blocking(far, False)
            os.dup2(far, 1)
            os.close(far)
            with suppress(BlockingIOError):  # more than a pipe takes
                printed.flush()
        finally:
            os.dup2(before, 1)
            os.close(before)
        return reader.read().decode(printed.encoding, "replace")


def give_back_streams() -> None:
    """Standard input and output are the program's again; what was printed before goes to standard error."""
    if _speaking:
        _speaking.pop()
    if _speaking:
        return
    with suppress(Exception):  # closed, or not there
        sys.stdout.flush()
    _core.give_back_streams()
    if sys.platform == "win32":
        from . import crt

        crt.give_back()
    while _strict:
        stream, errors = _strict.pop()
        with suppress(ValueError):
            stream.reconfigure(errors=errors)


class LastResort(logging.Handler):
    """Handler of `logging` for records that nobody else handles; it does not wait for the reader of standard error."""

    def __init__(self, before: logging.Handler) -> None:
        super().__init__(before.level)
        self.before = before

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        if sys.stderr is sys.__stderr__:
            _core.write_stderr(f"{self.format(record)}\n")
        else:
            self.before.emit(record)


_patient: list[object] = []


@contextmanager
def patient_log() -> Generator[None]:
    """Meanwhile records of `logging` for which the program has no handler hold nothing up."""
    before = logging.lastResort
    if before is not None and not isinstance(before, LastResort):
        logging.lastResort = cast("Any", LastResort(before))
    user = object()
    _patient.append(user)
    try:
        yield
    finally:
        _patient.remove(user)
        last: object = logging.lastResort
        if not _patient and isinstance(last, LastResort):
            logging.lastResort = cast("Any", last.before)


class Ending:
    """The end of the program, begun by a signal or the end of input, whatever else of the program is alive."""

    def __init__(self, close: Callable[[], object], drain: Callable[[], object]) -> None:
        self.status: int | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self._close = close
        self._drain = drain
        self._served = threading.Event()
        self._left = threading.Event()
        self._over = threading.Event()
        self._alone = threading.Event()
        # A signal's handler starts no thread and takes no lock: it may have come in the middle of just that.
        self._asked: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self.patience = 0.0
        """`drain_timeout`, where HTTP is served: time in which handlers may answer after a polite signal."""
        self._watched = False
        self.error: BaseException | None = None
        """The exception of one of the program's signal handlers, to be raised when the server has ended in order."""
        self._is_main = threading.current_thread() is threading.main_thread()

    def told(self, number: int, frame: FrameType | None) -> None:
        """Closes or drains the server; the next signal does what it always does, the program's handler does it now."""
        own = _replaced.get(signal.Signals(number))
        _restore()
        self.status = STATUS[signal.Signals(number)]
        self.watch(self.patience if number in POLITE else 0.0)
        if number in POLITE:
            self._drain()
        else:
            self._close()
        if callable(own) and own is not signal.default_int_handler:
            self.status = 0
            try:
                own(number, frame)
            except SystemExit as error:
                self.status = error.code if isinstance(error.code, int) else int(error.code is not None)
                self.error = error
            except KeyboardInterrupt as error:
                self.status, self.error = 130, error

    @contextmanager
    def on_loop(self) -> Generator[None]:
        """While the running loop serves, signals wake it: one that comes as it falls asleep would wait for an event."""
        self.loop = loop = asyncio.get_running_loop()
        if not _replaced or not self._is_main:
            yield
            return
        near, far = socket.socketpair()
        with near, far:
            near.settimeout(None)  # whatever `socket.setdefaulttimeout` says
            far.setblocking(False)
            before = signal.set_wakeup_fd(far.fileno(), warn_on_full_buffer=False)
            if before != -1 and not _only_wakes(loop, before):  # somebody sees to it
                signal.set_wakeup_fd(before)
            hearing = threading.Thread(target=self._hear, args=(near, loop), name="tricorn-signals", daemon=True)
            hearing.start()
            try:
                yield
            finally:
                now = signal.set_wakeup_fd(-1)
                if now != far.fileno():
                    signal.set_wakeup_fd(now)
                elif before != -1:
                    signal.set_wakeup_fd(before)
                far.shutdown(socket.SHUT_WR)  # children of `fork()` may still have it
                hearing.join()

    def _hear(self, near: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        """Wakes the loop; where it does not come to its signal handlers, the program ends without them."""
        while numbers := near.recv(4096):
            with suppress(RuntimeError):  # closed
                loop.call_soon_threadsafe(lambda: None)
            for number in numbers:
                if number in STATUS and getattr(signal.getsignal(number), "__func__", None) is Ending.told:
                    if self.status is None:
                        self.status = STATUS[signal.Signals(number)]
                    if number in POLITE:
                        self._drain()  # what blocks the loop may be what is to be answered
                    self.watch(self.patience if number in POLITE else 0.0)

    def served(self) -> None:
        """Nobody is served any more, and what the lifespan has begun is stopped."""
        self._served.set()

    def left(self) -> None:
        """The event loop is closed, and the rest is the program's own."""
        self._left.set()

    def begin(self) -> None:
        """Makes ready what `watch` wakes."""
        if self._is_main:
            threading.Thread(target=self._watch, name="tricorn-end", daemon=True).start()

    def watch(self, patience: float = 0.0) -> None:
        """Sees to it that the process ends, `patience` later where the loop is blocked; also in a signal's handler."""
        self._watched = self._is_main
        self._asked.put(patience)

    def watch_input(self, is_over: Callable[[], bool]) -> None:
        """Sees to it that the process ends after its input, when something in the event loop does not let it hear."""

        def look() -> None:
            while not self._served.wait(LOOK):
                if is_over():
                    self.watch()
                    return

        if self._is_main:
            threading.Thread(target=look, name="tricorn-input", daemon=True).start()

    def at_end(self) -> None:
        """To be told when the program has nothing left to do: before any thread is waited for, and after that."""
        self._asked.put(None)  # unless it was told before
        if self._watched:
            atexit.register(self._alone.set)
            with suppress(AttributeError, RuntimeError):
                threading._register_atexit(self._over.set)  # type: ignore[attr-defined]
                return
            self._over.set()

    def _watch(self) -> None:
        patience = self._asked.get()
        if patience is None:
            return
        stuck = self._is_stuck(patience + STUBBORN)
        while not stuck and not self._served.wait(patience + LAST):
            stuck = self._is_stuck(LAST)
        if not stuck and self._left.wait(STUBBORN):
            self._over.wait()
            if self._alone.wait(REST):
                # Functions that the program has registered for its end run now, and nothing else.
                threading.Event().wait(LAST)
                os._exit(self.status or 0)
        last = threading.Thread(target=atexit._run_exitfuncs, name="tricorn-atexit", daemon=True)
        last.start()
        last.join(LAST)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(self.status or 0)

    def _is_stuck(self, patience: float) -> bool:
        """Returns True when something in the event loop does not let it go on."""
        turn = threading.Event()
        try:
            if self.loop is not None:
                self.loop.call_soon_threadsafe(turn.set)
        except RuntimeError:  # closed
            turn.set()
        return not turn.wait(patience)


def _only_wakes(loop: asyncio.AbstractEventLoop, descriptor: int) -> bool:
    """True if signals go to the loop's own socket, as with every loop on Windows, and mean nothing to it."""
    if sys.platform != "win32":
        return False
    own: Any = getattr(loop, "_csock", None)
    return isinstance(own, socket.socket) and own.fileno() == descriptor


HANGUP = 129

STATUS = {
    getattr(signal, name): status
    for name, status in (("SIGINT", 130), ("SIGTERM", 0), ("SIGHUP", HANGUP), ("SIGBREAK", 0))
    if hasattr(signal, name)
}
"""The signals that end a server, and the status of the program then. On Windows Ctrl-Break is what asks politely."""


POLITE = [number for number, status in STATUS.items() if status == 0]
"""Those after which running calls have time to be answered."""


@contextmanager
def ends(close: Callable[[], object], drain: Callable[[], object]) -> Generator[Ending]:
    """While a server runs, SIGTERM and Ctrl-Break `drain` it, Ctrl-C and SIGHUP `close` it, unless they are ignored.

    A program that handles SIGHUP reads its configuration anew then.
    """
    ending = Ending(close, drain)
    ending.begin()
    here = threading.current_thread() is threading.main_thread()
    if here:
        for number in STATUS:
            there = signal.getsignal(number)
            is_ours = there is signal.SIG_DFL if STATUS[number] == HANGUP else there is not signal.SIG_IGN
            if is_ours and there is not None:  # a handler that is not Python's
                _replaced[number] = signal.signal(number, ending.told)
    try:
        yield ending
    finally:
        if here:
            _restore()
        ending.at_end()
        ending.left()
