"""The ear of an event loop for the engine: a descriptor that it watches, or a socket where it watches no descriptors.

Loops of selectors, uvloop and others have `add_reader`. The one that Windows has by default does not, and neither do
some that were made for a toolkit of windows; all of them can receive from a socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from .. import _core
    from .receiving import Ear


def listen(loop: asyncio.AbstractEventLoop, bridge: _core.Bridge, arguments: tuple[Any, ...]) -> Ear | None:
    """Has `bridge.ready(*arguments)` called in the loop when deliveries wait. None where none will come any more."""
    if (descriptor := bridge.fileno()) >= 0:
        try:
            loop.add_reader(descriptor, bridge.ready, *arguments)
        except NotImplementedError:
            pass
        else:
            return Watching(loop, bridge, descriptor)
    from .receiving import listen_to_socket  # of no use where a descriptor is watched

    return listen_to_socket(loop, bridge, arguments)


class Watching:
    """Looks at the descriptor of the bridge."""

    def __init__(self, loop: asyncio.AbstractEventLoop, bridge: _core.Bridge, descriptor: int) -> None:
        self._loop, self._bridge, self._descriptor = loop, bridge, descriptor

    def close(self) -> None:
        """Looks at it no more."""
        if not self._loop.is_closed() and self._bridge.fileno() == self._descriptor:
            self._loop.remove_reader(self._descriptor)
