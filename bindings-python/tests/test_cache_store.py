"""Answers that a client keeps in a store of the program's own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from tricorn import (
    AsyncClient,
    CacheStore,
    Client,
    MisuseError,
    ResourceUpdated,
    Server,
    TransportError,
    connect,
    connect_many,
)

from . import sqlite_cache
from .authorization_server import serving
from .conftest import PATIENCE
from .sqlite_cache import SqliteCache

MODERN = "2026-07-28"


class DictCache:
    """Asynchronous methods; gives bytes, as some clients of Redis do."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.cancelled = 0

    async def get(self, keys: list[str]) -> list[bytes | None]:
        self.asked.append("get")
        return [self.kept.get(key) for key in keys]

    async def set(self, key: str, text: str, ttl: int) -> None:
        assert isinstance(ttl, int)
        self.kept[key] = text.encode()

    async def delete(self, key: str) -> None:
        self.kept.pop(key, None)


class MuteError(TransportError):
    """Has a member that cannot be read."""

    @property
    def message(self) -> str:
        raise LookupError

    @message.setter
    def message(self, message: str) -> None:
        pass


class Wrong(DictCache):
    """Does something else when it is asked."""

    def __init__(self, does: str) -> None:
        super().__init__()
        self.does = does

    async def get(self, keys: list[str]) -> Any:
        found = await super().get(keys)
        match self.does:
            case "hangs":
                try:
                    await asyncio.Event().wait()
                finally:
                    self.cancelled += 1
            case "raises":
                raise ConnectionError("no route to the password")
            case "gives too few":
                return found[1:]
            case "gives a text":
                return "text"
            case "gives numbers":
                return [1 for _ in found]
            case "gives a mapping":
                return dict(zip(keys, found, strict=True))
            case "gives a set":
                return set(found)
            case "is muddled":
                raise MuteError("password")
            case "says how":
                raise TransportError("the password was refused")
            case "gives garbage":
                return [b"\xff\x00{" for _ in found]
        return found


def counting() -> Server:
    app, reads = Server("s", cache={"ttl": 3600}), 0

    def count() -> str:
        nonlocal reads
        reads += 1
        return str(reads)

    app.add_resource("test://count", count, cache={"scope": "public"})
    app.add_resource("test://own", count)
    return app


async def read(client: AsyncClient, uri: str = "test://count") -> str:
    return (await client.read_resource(uri)).text


def test_it_is_a_protocol(tmp_path: Path) -> None:
    stores: list[CacheStore] = [DictCache(), SqliteCache(str(tmp_path / "kept"))]
    assert all(isinstance(store, CacheStore) for store in stores)
    assert not isinstance({}, CacheStore)


async def test_processes_share_what_a_store_keeps(tmp_path: Path) -> None:
    path = str(tmp_path / "kept")
    async with serving(counting()) as url:
        program = [sys.executable, "-X", "dev", sqlite_cache.__file__, url, path]
        for expected in ("1 0", "1 1"):
            process = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
            said, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
            assert (said.decode().strip(), process.returncode) == (expected, 0)
        async with connect(url, revision=MODERN, cache={"store": SqliteCache(path)}) as client:
            assert await read(client) == "1"
    assert all(key.startswith("tricorn:1:") for key in SqliteCache(path).all_keys())


async def test_private_answers_stay_under_their_authorization() -> None:
    store = DictCache()

    def user(url: str, token: str, **cache: Any) -> AsyncClient:
        headers = {"Authorization": f"Bearer {token}"}
        return connect(url, revision=MODERN, headers=headers, cache={"store": store, **cache})

    async with serving(counting()) as url:
        for token, expected in (("ada", ("1", "2")), ("bob", ("3", "2")), ("ada", ("1", "2"))):
            async with user(url, token) as client:
                assert (await read(client, "test://own"), await read(client)) == expected
        for token in ("1", "2"):
            async with user(url, token, scope="carl") as client:
                assert await read(client, "test://own") == "4"


async def test_what_one_hears_of_is_dropped_for_all() -> None:
    store, app = DictCache(), counting()
    async with (
        serving(app) as url,
        connect(url, revision=MODERN, cache={"store": store}) as ada,
        connect(url, revision=MODERN, cache={"store": store}) as bob,
    ):
        for uri in ("test://count", "test://own"):
            assert await read(ada, uri) == await read(bob, uri)
        async with ada.listen(uris=["test://count"]) as changes:
            app.resource_updated("test://count")
            async for change in changes:
                assert change == ResourceUpdated("test://count")
                break
        assert [await read(ada), await read(bob)] == ["3", "3"]
        assert [await read(ada, "test://own"), await read(bob, "test://own")] == ["2", "2"]


@pytest.mark.parametrize(
    ("does", "failures"),
    [
        ("raises", 2),
        ("gives too few", 2),
        ("gives a text", 2),
        ("gives numbers", 2),
        ("gives a mapping", 2),
        ("gives a set", 2),
        ("is muddled", 2),
        ("says how", 2),
        ("gives garbage", 4),  # for the private answer and the public one
        ("hangs", 1),  # it is left alone after that
    ],
)
async def test_a_store_that_fails_costs_a_question_at_the_server(
    does: str, failures: int, caplog: pytest.LogCaptureFixture
) -> None:
    store = Wrong(does)
    failed: list[tuple[type, str]] = []
    options: Any = {"cache": {"store": store}, "on_error": lambda error, name: failed.append((type(error), name))}
    async with serving(counting()) as url, connect(url, revision=MODERN, **options) as client:
        assert [await read(client), await read(client)] == ["1", "2"]
        usage = client.metrics()["cache"]
        assert (usage["hits"], usage["misses"], usage["failures"]) == (0, 2, failures)
    warned = [message for message in caplog.messages if "the cache's store: get: " in message]
    assert len(warned) == 1
    assert ("password" in warned[0]) == (does == "says how")
    assert ("MuteError" in warned[0]) == (does == "is muddled")
    raised: dict[str, type] = {
        "raises": ConnectionError,
        "gives a text": MisuseError,
        "gives numbers": MisuseError,
        "gives a mapping": MisuseError,
        "gives a set": MisuseError,
        "is muddled": MuteError,
        "says how": TransportError,
    }
    assert failed == ([(raised[does], "cache")] * 2 if does in raised else [])
    assert store.cancelled == (does == "hangs")


@pytest.mark.parametrize("does", ["raises", "gives a text", "says how"])
async def test_without_on_error_the_log_hears_of_it_once(does: str, caplog: pytest.LogCaptureFixture) -> None:
    async with (
        serving(counting()) as url,
        connect(url, revision=MODERN, cache={"store": Wrong(does)}) as client,
    ):
        assert [await read(client), await read(client)] == ["1", "2"]
        assert client.metrics()["cache"]["failures"] == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]


@pytest.mark.parametrize("does", ["gives a mapping", "gives a set", "gives a text"])
async def test_what_has_no_order_is_refused(does: str) -> None:
    heard: list[str] = []
    options: Any = {"cache": {"store": Wrong(does)}, "on_error": lambda error, _: heard.append(str(error))}
    async with serving(counting()) as url, connect(url, revision=MODERN, **options) as client:
        assert await read(client) == "1"
    got = {"gives a mapping": "dict", "gives a set": "set", "gives a text": "str"}[does]
    assert heard == [f"cache.store: get: expected a list in the order of the keys, got a {got}"]


async def test_a_request_can_be_given_up_while_the_store_is_asked() -> None:
    store = Wrong("hangs")
    async with serving(counting()) as url, connect(url, revision=MODERN, cache={"store": store}) as client:
        reading = asyncio.create_task(read(client))
        while not store.asked:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        while not store.cancelled:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        store.does = "works"
        assert await read(client) == "1"


async def test_servers_without_an_address_are_kept_in_memory() -> None:
    store = DictCache()
    async with connect(counting(), revision=MODERN, cache={"store": store}) as client:
        assert [await read(client), await read(client)] == ["1", "1"]
        assert client.metrics()["cache"]["entries"] == 1
    assert not store.asked


async def test_the_servers_of_a_group_are_kept_apart() -> None:
    store = DictCache()
    async with serving(counting()) as one, serving(counting()) as two:
        for hits in (0, 1):
            async with connect_many({"one": one, "two": two}, revision=MODERN, cache={"store": store}) as group:
                for name in ("one", "two"):
                    assert await read(group[name]) == "1"
                    assert group[name].metrics()["cache"]["hits"] == hits


async def test_a_synchronous_client_keeps_it_there_too(tmp_path: Path) -> None:
    path = str(tmp_path / "kept")

    def reads(url: str, store: CacheStore) -> list[str]:
        with Client(url, revision=MODERN, cache={"store": store}) as client:
            return [client.read_resource("test://count").text for _ in range(2)]

    async with serving(counting()) as url:
        for store in (SqliteCache(path), SqliteCache(path), DictCache()):
            expected = "2" if isinstance(store, DictCache) else "1"
            assert await asyncio.to_thread(reads, url, store) == [expected, expected]


@pytest.mark.parametrize(
    ("cache", "said"),
    [
        ({"store": {}}, 'cache: store: expected a CacheStore: it has no function "get"'),
        ({"store": "disk"}, '"cache": "store": "url": '),
        (DictCache(), 'cache: this DictCache is a store; give it as cache={"store": ...}'),
        (object(), 'option "cache": expected true, false or an object, got an object'),
        ({"stor": DictCache()}, 'cache: unknown option "stor", did you mean "store"?'),
        ({"zzz": DictCache()}, 'cache: unknown option "zzz", expected one of enabled, max_entries, '),
        ({1: True}, 'cache: unknown option "1", expected one of enabled, '),
        ({"store": DictCache(), "shared": True}, '"shared": with a store of one\'s own they are shared already'),
    ],
)
def test_what_is_wrong_is_named(cache: Any, said: str) -> None:
    with pytest.raises(MisuseError) as caught:
        Client("http://127.0.0.1:1/mcp", cache=cache)
    assert said in str(caught.value)
