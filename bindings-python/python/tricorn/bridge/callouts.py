"""Functions of the program that the engine asks for itself, and for no peer: of authorization, of stores."""

from __future__ import annotations

import asyncio
import builtins
import contextvars
import inspect
from collections.abc import Awaitable, Callable
from concurrent import futures
from contextlib import suppress
from typing import Any

from ..errors import (
    AuthError,
    CancelledError,
    ClosedError,
    Error,
    MisuseError,
    TimeoutError,  # noqa: A004
    TransportError,
    unicode,
)
from ..json.decoding import decode
from ..json.encoding import encode
from .errors import members
from .host import Host
from .threads import Threads

Asked = Callable[[dict[str, Any]], Awaitable[object]]
_LATE = (builtins.TimeoutError, asyncio.TimeoutError, futures.TimeoutError)
_CAUSES = 64
"""Number of exceptions examined to find the cause of one."""


def entry(host: Host, name: str, asked: Asked, counted: bool = False) -> int:
    """The number that the engine asks `asked` by. What it raises is told by its kind, and else to `on_error`.

    `counted`: the engine counts all failures, and warns of them itself. `on_error` hears of each, the log of none.
    """
    bridge = host.bridge

    def is_told(error: BaseException) -> bool:
        if counted:
            return host.on_error is not None
        return isinstance(error, MisuseError) or not isinstance(error, Error)

    def failed(key: int, error: BaseException) -> None:
        said, kind = _said(error)
        bridge.error(key, said, None, None, kind)
        if isinstance(error, (SystemExit, KeyboardInterrupt)):
            host.quit(error)
        elif is_told(error):
            host.report(error, name)

    async def run(raw: bytes, key: int) -> None:
        try:
            bridge.result(key, encode(await asked(decode(raw))))
        except asyncio.CancelledError:
            bridge.error(key, "it was cancelled", None, None, CancelledError.kind)
            raise
        except GeneratorExit:
            bridge.error(key, "the event loop ended")
            raise
        except BaseException as error:  # noqa: BLE001 - all of them are answered
            failed(key, error)
        finally:
            host.done(key)

    return host.add(lambda raw, key: host.spawn(key, run(raw, key), name))


def _said(error: BaseException) -> tuple[str, str]:
    """Returns the text and the kind that the engine gets. The class may be the user's, whose members raise what they
    like."""
    said, kind = type(error).__name__, AuthError.kind
    with suppress(Exception):
        kind = str(kind_of(error))
    with suppress(Exception):
        said = str(error.message) if isinstance(error, Error) else said
    return unicode(said), kind


def kind_of(error: BaseException) -> str:
    """Returns what an exception means to the engine: no answer for now (`"timeout"`, `"transport"`), or another kind.

    Libraries have exceptions of their own for a host that is not reached: they say by what they were caused. Of a group
    the first member that means something counts.
    """
    reasons: list[BaseException | None] = [error]
    for _ in range(_CAUSES):
        reason = reasons.pop() if reasons else None
        if isinstance(reason, ClosedError):
            return TransportError.kind
        if isinstance(reason, Error):
            return reason.kind
        if isinstance(reason, _LATE):
            return TimeoutError.kind
        if isinstance(reason, OSError) and not isinstance(reason, PermissionError):
            return TransportError.kind
        if reason is not None:
            reasons.append(reason.__cause__ or _context(reason, reason is error))
            reasons.extend(reversed(members(reason)))
    return AuthError.kind


def _context(error: BaseException, by_function: bool) -> BaseException | None:
    # `from None` of the function itself says that it knows better. Libraries mean tracebacks by it: httpx, whose cause
    # is httpcore, which hides the OSError.
    return None if by_function and error.__suppress_context__ else error.__context__


async def method(threads: Threads, owner: object, name: str, *values: object) -> Any:
    """Returns the result of a method of the user's object. Plain methods run in worker threads."""
    call: Callable[..., Any] = getattr(owner, name)
    if inspect.iscoroutinefunction(call):
        return await call(*values)
    return await answered(threads, lambda: call(*values))


async def answered(threads: Threads, call: Callable[[], Any]) -> Any:
    """Returns the result of a plain function, which runs in a worker thread, or of the awaitable that it returns.

    It cannot be interrupted: cancelled, it goes on, and the others get another thread in its place.
    """
    future: futures.Future[Any] = futures.Future()

    def work() -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - whoever waits gets it
                future.set_exception(error)

    job = threads.submit(contextvars.copy_context(), work)
    try:
        value = await asyncio.wrap_future(future)
    except asyncio.CancelledError:
        if not future.cancel():
            threads.give_up(job)
        raise
    return await value if inspect.isawaitable(value) else value
