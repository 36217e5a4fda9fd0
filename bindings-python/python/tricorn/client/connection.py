"""Start and end of a connection, or of a group of them, on an event loop."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ..bridge.host import Host
from ..errors import MisuseError
from ..json.decoding import decode

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..bridge.local_server import LocalServer

LAST = 15.0
"""Seconds that a connection which ends waits for a login: one exchange, and what is kept of it."""


class Core(Protocol):
    """The native object that is connected."""

    def connect(self, op: int) -> None:
        """`op` settles with what was agreed."""

    def close(self, op: int) -> None:
        """`op` settles when everything has ended."""


class Connection:
    """It belongs to no task: `close` works from anywhere."""

    def _begin(self, host: Host, peers: Iterable[LocalServer]) -> None:
        self._host = host
        self._peers = list(peers)
        self._lent: list[tuple[LocalServer, object]] = []
        self._closing: asyncio.Task[None] | None = None
        self._user: object = None
        self._began = False

    def __reduce__(self) -> Any:
        raise TypeError("a client cannot be copied or pickled: connect where it is needed, such as in each process")

    @property
    def _native(self) -> Core:
        raise NotImplementedError

    def _opened(self, agreed: dict[str, Any]) -> None:
        raise NotImplementedError

    async def connect(self) -> Self:
        """Starts or reaches the server and agrees on a protocol revision."""
        if self._began or self._closing is not None:
            raise MisuseError("this client was connected or closed before; make a new one")
        self._began = True
        self._host.base = contextvars.copy_context()
        self._user = self._host.attach()
        try:
            for peer in self._peers:
                self._borrow(peer)
            self._opened(decode(await self._host.wait(self._native.connect)))
        except BaseException as error:
            await self.close()
            self._failed(error)
            raise
        return self

    def _failed(self, error: BaseException) -> None:
        """It was not connected because of this."""

    def _borrow(self, peer: LocalServer) -> None:
        """A server of this process works on this loop, unless it has one that runs."""
        self._lent.append((peer, peer._lend()))

    async def close(self) -> None:
        """Ends the connection, and the child process if there is one; waiting calls raise `ClosedError`.

        A login that is being renewed comes to its end, and into its store, before: 15 s are given to that.
        """
        if self._host.is_parents:  # who goes on with it, and ends it
            return
        loop, here = self._host.loop, asyncio.get_running_loop()
        if loop is None:
            self._began = True  # it is not connected any more
            self._end()
            return
        if loop is not here:
            if loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.close(), loop))
                return
            # That loop was stopped or closed under the client: nothing there would bring this to its end.
            self._user = self._host.attach()
            self._closing = None
        if self._closing is None:
            self._closing = here.create_task(self._shut())
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        loop, host = asyncio.get_running_loop(), self._host
        until = loop.time() + LAST
        try:
            await host.wait(self._native.close)
            # A refresh token that is used up has to be replaced in a store that only this host can ask. The engine
            # waits for a client that is connected, not for one that was given up before.
            while host.reserved and (left := until - loop.time()) > 0:
                await asyncio.wait(set(host.reserved), timeout=left)
        finally:
            try:
                while self._lent:
                    peer, user = self._lent.pop()
                    await peer._release(user)
            finally:
                host.cancel_tasks()
                try:
                    await host.carried()
                finally:
                    host.detach(self._user)
                    self._end()

    def _end(self) -> None:
        self._host.bridge.close()
        if self._host.loop is None:
            # Not only when the cycles that it is in are collected.
            self._host.bridge.close_descriptor()
        # Nothing calls the functions any more that the program gave.
        self._host.table.clear()
        self._host.carriers.clear()

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.connect().__await__()
