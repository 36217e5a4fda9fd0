"""The engine of a server, which can be made again: of that of a parent process a forked child has no use."""

from __future__ import annotations

from collections.abc import Callable

from .. import _core
from ..bridge.host import Host
from ..model.definitions import Kind


class Engine:
    """A native server, and what it was told, to tell it to the one of a forked child."""

    def __init__(self, host: Host, source: int, options: str) -> None:
        self._host = host
        self._source = source
        self._options = options
        self._said: dict[tuple[object, ...], Callable[[_core.Server], object]] = {}
        self._around = 0
        self._make()

    def _make(self) -> None:
        self.core = _core.Server(self._host.bridge, self._source, self._options)
        self._forks = _core.forks()

    @property
    def is_parents(self) -> bool:
        """True when a parent process has made it, so that it is of no use here."""
        return self._forks != _core.forks()

    def renew(self) -> None:
        """Makes the one of this process, which offers the same."""
        self._host.renew()
        self._make()
        for say in self._said.values():
            say(self.core)

    def attach(self) -> object:
        """Works on the running loop, as `Host.attach`."""
        return self._host.attach()

    def lend(self) -> object | None:
        """Works on the running loop unless the server has one, as `Host.lend`."""
        return self._host.lend()

    def _say(self, what: tuple[object, ...], say: Callable[[_core.Server], object]) -> None:
        say(self.core)
        self._said[what] = say

    def add(self, kind: Kind, name: str, definition: str, options: str, handler: int) -> None:
        """Offers something."""
        self._say((kind, name), lambda core: core.add(kind, definition, options, handler))
        self._said.pop(("enabled", kind, name), None)  # what is replaced begins anew

    def add_files(self, uri: str, options: str) -> None:
        """Offers a file or a directory."""
        self._say(("resource", uri), lambda core: core.add_files(options))

    def remove(self, kind: Kind, name: str) -> bool:
        """Offers something no longer; False when there is none of that name."""
        removed = self.core.remove(kind, name)
        self._said.pop(("enabled", kind, name), None)
        if removed:
            self._said.pop((kind, name), None)
        return removed

    def set_enabled(self, kind: Kind, name: str, enabled: bool) -> bool:
        """Shows or hides something; False: nothing changed."""
        changed = self.core.set_enabled(kind, name, enabled)
        if changed:
            self._said[("enabled", kind, name)] = lambda core: core.set_enabled(kind, name, enabled)
        return changed

    def set_source(self, kind: Kind, listing: int | None, get: int | None) -> None:
        """Sets the functions that list and get what is not registered."""
        self._say(("source", kind), lambda core: core.set_source(kind, listing, get))

    def set_hook(self, name: str, handler: int) -> None:
        """Sets the function that the engine asks about something."""
        self._say(("hook", name), lambda core: core.set_hook(name, handler))

    def set_lifespan(self, start: int, stop: int) -> None:
        """Sets the functions that start and stop the server."""
        self._say(("lifespan",), lambda core: core.set_lifespan(start, stop))

    def add_extension(self, definition: str) -> None:
        """Offers an extension."""
        self._say(("extension", definition), lambda core: core.add_extension(definition))

    def add_middleware(self, handler: int) -> None:
        """Puts a function around every request."""
        self._around += 1
        self._say(("around", self._around), lambda core: core.add_middleware(handler))

    def add_builtin(self, options: str) -> None:
        """Puts one of the engine's middleware around every request."""
        self._around += 1
        self._say(("around", self._around), lambda core: core.add_builtin(options))
