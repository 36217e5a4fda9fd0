"""An event loop's ear for the engine that is a socket, for loops that watch no descriptors."""

from __future__ import annotations

import socket
from asyncio import CancelledError
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio

    from .. import _core

ENOUGH = 4096
"""Bytes to receive at once: each of them is a wake-up, and one for all of them is enough."""


MOST = 3
"""Pairs that may fail one after the other."""


class Ear(Protocol):
    """The means by which a loop hears the engine."""

    def close(self) -> None:
        """Hears no more; also when the loop is closed."""
        ...


class Near(socket.socket):
    """This end of the pair; a loop that ends without a word leaves it to be collected."""

    def __del__(self) -> None:
        self.close()


def listen_to_socket(loop: asyncio.AbstractEventLoop, bridge: _core.Bridge, arguments: tuple[Any, ...]) -> Ear | None:
    """As `listen`, without a descriptor."""
    if (near := _near(bridge)) is None:
        return None

    def ready() -> None:
        bridge.ready(*arguments)

    try:
        return Reading(loop, bridge, near, ready)
    except NotImplementedError:
        return Receiving(loop, bridge, near, ready)


def _near(bridge: _core.Bridge) -> Near | None:
    """A new end of a pair, in place of the last one. None where nothing will come any more."""
    if (number := bridge.pair()) is None:
        return None
    near = Near(fileno=number)
    near.setblocking(False)
    near.set_inheritable(False)
    return near


class Reading:
    """Looks at a socket: with the loop of selectors that Windows has, too."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bridge: _core.Bridge, near: Near, ready: Callable[[], object]
    ) -> None:
        loop.add_reader(near.fileno(), self._heard)
        self._loop, self._bridge, self._near, self._ready = loop, bridge, near, ready

    def _heard(self) -> None:
        with suppress(BlockingIOError):  # heard already
            self._near.recv(ENOUGH)
        self._ready()

    def close(self) -> None:
        """Looks at it no more, and closes it."""
        self._bridge.unpair()
        if not self._loop.is_closed():
            self._loop.remove_reader(self._near.fileno())
        self._near.close()


class Receiving:
    """Receives from a socket, in no task: whoever cancels, awaits or counts those of the program does not find it.

    A loop that is closed before this is tells nobody of it either.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bridge: _core.Bridge, near: Near, ready: Callable[[], object]
    ) -> None:
        self._loop, self._bridge, self._near, self._ready = loop, bridge, near, ready
        self._receiving: Coroutine[Any, Any, bytes] | None = None
        self._waiting: asyncio.Future[Any] | None = None
        self._closed = False
        self._failures = 0
        self._go_on()

    def _go_on(self, _: object = None) -> None:
        """Takes what has come, and waits for more: that first, as what is called then may end the loop for now."""
        came = False
        self._waiting = None
        while not self._closed:
            if self._receiving is None:
                self._receiving = self._receive()
            try:
                waiting = self._receiving.send(None)
            except StopIteration as over:
                self._receiving = None
                if not over.value:  # the other end is closed
                    break
                came = True
                self._failures = 0
                continue
            except CancelledError:  # by somebody who cancels all futures of the loop
                self._receiving = None
                continue
            except OSError:  # a firewall, or a machine that slept, has cut the connection
                self._receiving = None
                if not self._anew():
                    raise
                came = True  # a wake-up may be lost
                continue
            if waiting is None:
                self._loop.call_soon(self._go_on)
            else:
                self._waiting = waiting
                waiting.add_done_callback(self._go_on)
            break
        if came:
            self._ready()

    def _anew(self) -> bool:
        """Has another pair. False where that is of no use."""
        self._failures += 1
        if self._failures > MOST or (near := _near(self._bridge)) is None:
            return False
        self._near.close()
        self._near = near
        return True

    async def _receive(self) -> bytes:
        return await self._loop.sock_recv(self._near, ENOUGH)

    def close(self) -> None:
        """Receives no more, and closes the socket."""
        self._closed = True
        self._bridge.unpair()
        receiving, self._receiving = self._receiving, None
        waiting, self._waiting = self._waiting, None
        if self._loop.is_closed():
            self._near.close()
        else:
            if waiting is not None:
                waiting.remove_done_callback(self._go_on)
                waiting.cancel()
            if self._loop.is_running():
                # The loop still needs the socket's number to cancel the future.
                self._loop.call_soon(self._near.close)
            else:
                self._near.close()
        if receiving is not None:
            receiving.close()
