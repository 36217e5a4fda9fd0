"""The end of a program that has mounted a server: who serves it hears of signals, and this hears with it.

A web server closes its sockets when it is told to end, and then waits for the responses that are under way; only after
those it tells the application. A stream of events ends for nobody's sake, so both would wait for each other.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGQUIT", "SIGBREAK") if hasattr(signal, name))
_DEPTH = 32
"""Number of coroutines that wait for one another and are looked at."""
Action = Callable[[int, FrameType | None], Any]


class Ending(Protocol):
    """A listener for the end of the program."""

    def host_ends(self) -> None:
        """The program was told to end; called in a signal's handler."""
        ...


class _Watch:
    """One for a process: the handlers that others have put in place, called by those that stand before them."""

    def __init__(self) -> None:
        self._others: dict[int, Action] = {}
        self._mounted: weakref.WeakSet[Any] = weakref.WeakSet()
        self._inside = False

    def join(self, mounted: Ending) -> None:
        """Tells `mounted` of the signals that somebody in this process has a handler for."""
        self._mounted.add(mounted)
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._stand_before(number)

    def _stand_before(self, number: int) -> None:
        there: Any = signal.getsignal(number)
        # Where nobody handles it, the process ends by it: that is left alone.
        if there == self._heard or not callable(there) or there is signal.default_int_handler:
            return
        self._others[number] = there
        signal.signal(number, self._heard)
        if sys.platform != "win32":  # where no signal interrupts what the system does
            signal.siginterrupt(number, False)

    def _heard(self, number: int, frame: FrameType | None) -> Any:
        if self._inside:  # somebody has put a handler before this one that calls it
            return None
        self._inside = True
        try:
            for mounted in list(self._mounted):
                mounted.host_ends()
            return self._others[number](number, frame)
        finally:
            self._inside = False

    def forget(self) -> None:
        """A child that was forked serves nothing."""
        self._mounted.clear()


_watch = _Watch()
if sys.platform != "win32" and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watch.forget)


def watch(mounted: Ending) -> None:
    """Tells `mounted` when the program that has mounted it is told to end; cheap enough for every request."""
    _watch.join(mounted)


def uvicorn_server(loop: asyncio.AbstractEventLoop) -> Any:
    """The server of uvicorn that works on this loop; None when something else does.

    It tells no application that it ends before all responses are over, and can be told to end without a signal.
    """
    module: Any = sys.modules.get("uvicorn.server")
    if module is None:
        return None
    for task in asyncio.all_tasks(loop):
        step: Any = task.get_coro()
        for _ in range(_DEPTH):
            frame: FrameType | None = getattr(step, "cr_frame", None)
            if frame is None:
                break
            # A frame keeps what was once shown of its variables: those of others are left alone.
            if frame.f_globals.get("__name__") == module.__name__:
                server = frame.f_locals.get("self")
                if isinstance(server, module.Server):
                    return server
            step = getattr(step, "cr_await", None)
    return None


def tells_to_end(server: Any) -> bool:
    """Returns True when uvicorn was told to end."""
    return bool(getattr(server, "should_exit", False))


def awaited_by(server: Any) -> set[Any]:
    """The tasks that uvicorn waits for when it ends."""
    tasks: Any = getattr(getattr(server, "server_state", None), "tasks", None)
    return tasks if isinstance(tasks, set) else set()  # pyright: ignore[reportUnknownVariableType]
