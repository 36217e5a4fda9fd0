"""Stores for the answers that a client caches, other than the memory of this process."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping, Set
from typing import Any, Protocol, cast, runtime_checkable

from ..bridge import callouts
from ..bridge.host import Host
from ..bridge.threads import MAX_THREADS, Threads
from ..errors import MisuseError
from ..json import checks
from ..json.options import is_shared

_METHODS = ("get", "set", "delete")


@runtime_checkable
class CacheStore(Protocol):
    """A store that the clients of several processes share for answers, such as a Redis: texts under keys.

    Those of one HTTP server get what the others have kept, private answers only under the same authorization. Methods
    may be plain, then they run in worker threads, or asynchronous. With `redis.asyncio` they are

        async def get(self, keys):
            return await redis.mget(keys)

        async def set(self, key, text, ttl):
            await redis.set(key, text, ex=ttl)

        async def delete(self, key):
            await redis.delete(key)

    A key is visible ASCII of at most 160 characters, `tricorn:1:SERVER:METHOD:...`: the format's version, a digest of
    the server's address, the method, then digests of what else the answer depends on. It is the same in all processes,
    languages and versions that have this format; others begin otherwise. A text is JSON, or a word of 24 characters
    under the keys with `:mark:`, by which clients know what has changed since an answer was kept.

    What is kept may go at any time: it is asked for again then. It must not come back, and whoever can read it can read
    the answers, private ones too. The machines' clocks have to agree: by what they do not, answers are fresh for
    longer.

    What takes longer than 2 s counts as failed and is cancelled, and for 5 s the store is not asked. Where it fails the
    server is asked instead, and nothing is kept: the logger `tricorn` hears of that, once in a minute, `on_error` what
    was raised each time, under the name `cache`, and `metrics()["cache"]["failures"]` counts it.
    """

    def get(self, keys: list[str], /) -> Iterable[str | bytes | None] | Awaitable[Iterable[str | bytes | None]]:
        """Returns the texts that are kept under these keys, in their order, at most 16; None where there is nothing."""
        ...

    def set(self, key: str, text: str, ttl: int, /) -> object:
        """Keeps this text instead of the one before. After `ttl` seconds nobody needs it any more."""
        ...

    def delete(self, key: str, /) -> object:
        """Keeps nothing any more; no error when there was nothing."""
        ...


def kept(host: Host, given: object, known: type) -> dict[str, Any]:
    """The option `cache`, other than True and False, as the engine takes it; `known` has its members."""
    kind = type(given).__qualname__
    if isinstance(given, CacheStore):
        raise MisuseError(f'cache: this {kind} is a store; give it as cache={{"store": ...}}')
    if not isinstance(given, Mapping):
        got = checks.type_of(given)
        raise MisuseError(f'client options: option "cache": expected true, false or an object, got {got}')
    cache = dict(cast("Mapping[str, Any]", given))
    checks.known_options("cache", cache, known)
    if cache.get("store") is not None:
        cache["store"] = place(host, cache["store"])
    return cache


def place(host: Host, store: object) -> object:
    """Returns the cache store as the engine takes it."""
    if is_shared(store):
        return store
    for name in _METHODS:
        if not checks.has_method(store, name):
            raise MisuseError(f'cache: store: expected a CacheStore: it has no function "{name}"')
    threads = Threads(MAX_THREADS)

    async def do(params: dict[str, Any]) -> object:
        match params["op"]:
            case "get":
                return {"texts": _texts(await callouts.method(threads, store, "get", params["keys"]))}
            case "set":
                await callouts.method(threads, store, "set", params["key"], params["text"], params["ttl"])
            case _:
                await callouts.method(threads, store, "delete", params["key"])
        return {}

    return {"handler": callouts.entry(host, "cache", do, counted=True)}


def _texts(found: object) -> list[str | None]:
    if isinstance(found, (str, bytes, Mapping, Set)) or not isinstance(found, Iterable):
        got = f"a {type(cast(Any, found)).__qualname__}"
        raise MisuseError(f"cache.store: get: expected a list in the order of the keys, got {got}")
    texts: list[str | None] = []
    for value in cast("Iterable[object]", found):
        if isinstance(value, bytes):
            texts.append(value.decode(errors="replace"))
            continue
        if value is not None:
            checks.secret("cache.store: get", value)
        texts.append(cast("str | None", value))
    return texts
