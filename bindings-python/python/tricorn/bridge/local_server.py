"""Servers of this process, to which clients connect in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .. import _core
    from .host import Host


class LocalServer:
    """A server that clients of the same process can connect to."""

    _host: Host

    @property
    def _core(self) -> _core.Server:
        """The native server."""
        raise NotImplementedError

    def _lend(self) -> object | None:
        """Works on the running loop unless the server has one, as `Host.lend`."""
        raise NotImplementedError

    async def _release(self, user: object) -> None:
        """The counterpart of `_lend`."""
        raise NotImplementedError
