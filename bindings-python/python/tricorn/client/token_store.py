"""Stores for a client's logins, other than the places that the engine knows."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Iterable
from concurrent import futures
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal, NamedTuple, Protocol, cast, runtime_checkable

from ..bridge import callouts
from ..bridge.host import Host, looked_at
from ..bridge.threads import Threads
from ..errors import MisuseError
from ..json import checks
from ..json.options import is_shared
from ..model.options import StoreOptions

_PLACES = '"memory", "file", "keychain" or a store'


class TokenKey(NamedTuple):
    """The key of a login, by issuer and server: compared as texts."""

    issuer: str
    """The authorization server's issuer identifier, as its metadata spells it."""
    server: str
    """The MCP server's URL, as the `resource` of its tokens."""


class FileStore:
    """Keeps logins in files of this directory, which only the user can read; processes may share it.

    The directory is made when it is needed. Without one of your own: `store="file"`.
    """

    __slots__ = ("directory",)

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        if not isinstance(directory, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MisuseError(f"FileStore: expected a path, got a {type(directory).__qualname__}")
        self.directory = os.fsdecode(directory)

    def __repr__(self) -> str:
        return f"FileStore({self.directory!r})"


@runtime_checkable
class TokenStore(Protocol):
    """A store of a client's logins, each one text of at most 256 KiB, which is a secret.

    Its methods may be plain, then they run in worker threads, or asynchronous. Each has a minute. When `save` returns,
    the login is kept, whatever happens to the process; when it fails, what was there still is.

    A refresh token is used up by being used: so one client at a time changes a login, and one that is closed meanwhile,
    or whose connecting is cancelled, ends when that has come to its end, or after 15 s. Clients of this process that
    are given the same object take turns by themselves. A store that other processes share, too, has a method

        @asynccontextmanager
        async def reserve(self, key: TokenKey, wait: float) -> AsyncGenerator[None]:
            async with somewhere.lock(key, timeout=wait):
                yield

    which is entered before a login is changed and left after it, or raises `TimeoutError` after `wait` seconds. It has
    to end with the process, however that ends.
    """

    def load(self, key: TokenKey, /) -> str | Awaitable[str | None] | None:
        """Returns the login that is kept under this key, or None; it waits for nobody who changes it."""
        ...

    def find(self, server: str, /) -> Iterable[tuple[str, str]] | Awaitable[Iterable[tuple[str, str]]]:
        """All that is kept for a server: pairs of an issuer and a login."""
        ...

    def save(self, key: TokenKey, login: str, /) -> object:
        """Keeps this in place of what was there."""
        ...

    def remove(self, key: TokenKey, /) -> object:
        """Keeps nothing any more; no error when there was nothing."""
        ...


Store = Literal["file", "memory", "keychain"] | FileStore | StoreOptions | TokenStore


def place(host: Host, store: object, threads: Threads) -> object:
    """Returns the store of logins as the engine takes it."""
    if is_shared(store):
        return store
    if isinstance(store, FileStore):
        return {"directory": store.directory}
    for name in ("load", "find", "save", "remove"):
        if not callable(getattr(store, name, None)):
            got = checks.type_of(store)
            if not isinstance(store, (int, float, list, tuple)):
                got += f' without the method "{name}"'
            raise MisuseError(f'option "auth": option "store": expected {_PLACES}, got {got}')
    return {"handler": callouts.entry(host, "store", _Kept(host, store, threads)), "reserves": True}


class _Kept:
    """A store of the user's, as the engine asks it."""

    def __init__(self, host: Host, store: Any, threads: Threads) -> None:
        self._host = host
        self._store = store
        self._threads = threads
        self._held: dict[TokenKey, tuple[asyncio.Task[None], asyncio.Event]] = {}

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        """Does what `op` says."""
        op = params["op"]
        if op == "find":
            return {"logins": _logins(await self._do("find", params["server"]))}
        key = TokenKey(params["issuer"], params["server"])
        if op == "load":
            login = await self._do("load", key)
            if login is not None:
                checks.secret("store: load", login)
            return {"login": login}
        if op == "save":
            await self._do("save", key, params["login"])
        elif op == "remove":
            await self._do("remove", key)
        elif op == "reserve":
            await self._reserve(key, params["wait"])
        elif op == "release":
            await self._release(key)
        return {}

    async def _do(self, name: str, *values: object) -> Any:
        return await callouts.method(self._threads, self._store, name, *values)

    async def _reserve(self, key: TokenKey, wait: float) -> None:
        loop = asyncio.get_running_loop()
        entered: asyncio.Future[None] = loop.create_future()
        over = asyncio.Event()
        # It is entered and left in one task, as task groups and cancel scopes in it want it.
        task = loop.create_task(self._hold(key, wait, entered, over), name="store")
        self._host._tasks.add(task)
        task.add_done_callback(self._host._tasks.discard)
        self._held[key] = (task, over)
        try:
            await asyncio.shield(entered)
        except asyncio.CancelledError:
            entered.add_done_callback(looked_at)
            task.cancel()
            raise

    async def _hold(self, key: TokenKey, wait: float, entered: asyncio.Future[None], over: asyncio.Event) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            async with self._reserved(key, wait):
                if not entered.done():
                    self._host.reserved.add(task)
                    entered.set_result(None)
                await over.wait()
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            if entered.done():
                self._host.report(error, "store")
            else:
                entered.set_exception(error)
        finally:
            self._host.reserved.discard(task)
            entered.cancel()

    def _reserved(self, key: TokenKey, wait: float) -> AbstractAsyncContextManager[object]:
        reserve = getattr(self._store, "reserve", None)
        if reserve is None:
            return _turn((id(self._store), key), wait)
        manager = reserve(key, wait)
        if not hasattr(manager, "__aenter__"):
            raise MisuseError("store: reserve: expected an asynchronous context manager")
        return cast("AbstractAsyncContextManager[object]", manager)

    async def _release(self, key: TokenKey) -> None:
        held = self._held.pop(key, None)
        if held is not None:
            task, over = held
            over.set()
            await asyncio.wait([task])


def _logins(found: object) -> list[dict[str, str]]:
    try:
        pairs = list(cast("Iterable[tuple[str, str]]", found))
        logins = [{"issuer": issuer, "login": login} for issuer, login in pairs]
    except (TypeError, ValueError):
        raise MisuseError("store: find: expected pairs of an issuer and a login") from None
    for pair in logins:
        for name, value in pair.items():
            checks.secret(f"store: find: {name}", value)
    return logins


_lock = threading.Lock()
_turns: dict[tuple[int, TokenKey], deque[futures.Future[None]]] = {}


@asynccontextmanager
async def _turn(what: tuple[int, TokenKey], wait: float) -> AsyncGenerator[None]:
    """One after the other, whichever event loop they are on."""
    mine: futures.Future[None] = futures.Future()
    with _lock:
        turns = _turns.setdefault(what, deque())
        turns.append(mine)
        if turns[0] is mine:
            mine.set_result(None)
    try:
        await asyncio.wait_for(asyncio.wrap_future(mine), wait)
        yield
    finally:
        with _lock:
            was_first = turns[0] is mine
            turns.remove(mine)
            if not turns:
                del _turns[what]
            elif was_first and turns[0].set_running_or_notify_cancel():
                turns[0].set_result(None)
