"""Tools, resources and prompts of one client's session, besides what the server offers to all."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ..bridge.host import Host
from ..errors import Error, MisuseError
from ..json import checks
from ..model.definitions import Kind
from .registry import Offering

MAX_HANDLERS = 10_000
"""Functions that the sessions of one server have; the oldest goes, and with it what is still offered by it."""


class Session(Offering):
    """The session of the client that a call came from: `ctx.session.add_tool(function)` is for this client alone.

    It lasts as long as the client's session, and the client is told of the change. Revisions without sessions raise
    `UnsupportedError`, and so does what the client was not told of when it connected: see `capabilities` of the server.
    """

    def __init__(self, host: Host, key: int) -> None:
        if host.threads is None:
            raise MisuseError("only the handlers of a server have a session to add to")
        self._host = host
        self._threads = host.threads
        self._key = key

    def set_enabled(self, kind: Kind, name: str, enabled: bool) -> bool:
        """Shows or hides something from this client alone; as `ctx.set_enabled`."""
        checks.text("set_enabled: kind", kind)
        checks.text("set_enabled: name", name)
        with self._asking():
            return self._host.bridge.set_enabled(self._key, kind, name, enabled)

    def _tell(self, kind: Kind, name: str, definition: str, options: str, number: int) -> None:
        with self._asking():
            self._host.bridge.session_add(self._key, kind, definition, options, number)

    def _keep(self, kind: Kind, name: str, numbers: list[int]) -> None:
        # The engine says when they are needed no more.
        kept = self._host.kept
        kept.update(dict.fromkeys(numbers))
        while len(kept) > MAX_HANDLERS:
            oldest = next(iter(kept))
            del kept[oldest]
            self._host.drop(oldest)

    def _remove(self, kind: Kind, name: str) -> bool:
        with self._asking():
            return self._host.bridge.session_remove(self._key, kind, name)

    @contextmanager
    def _asking(self) -> Generator[None]:
        """An error says that this call caused it, so that its client is told."""
        try:
            yield
        except Error as error:
            error.asked = (self._host, self._key)
            raise
