"""Functions of the program that the engine asks for no request, as they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..bridge.callouts import answered
from ..bridge.threads import Threads
from ..errors import MisuseError
from ..json.checks import called
from .handler import hook


class Function:
    """A function of the user's of one value, or of none. Plain ones run in worker threads."""

    def __init__(self, name: str, function: Callable[..., Any], threads: Threads) -> None:
        signature = hook(called(name, function), 1, name)
        if signature.context is not None:
            raise MisuseError(f"{name}: {function!r} wants a context; it is asked for no request, so there is none")
        self._call, self._is_async = signature.call, signature.is_async
        self._threads = threads

    async def __call__(self, value: object) -> Any:
        """Returns the result of the function."""
        if self._is_async:
            return await self._call(values=(value,))
        return await answered(self._threads, lambda: self._call(values=(value,)))
